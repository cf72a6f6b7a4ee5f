use std::mem::size_of;

use bytes::Bytes;

use super::{DecodeError, Wire};

/// Memory that a message's array elements may always take up, in bytes.
const MEMORY_FREE: usize = 1 << 20;
/// Memory that they may take up on top, per byte of the message.
const MEMORY_PER_BYTE: usize = 8;
/// Memory that they may never exceed, in bytes.
const MEMORY_MAX: usize = 256 << 20;
/// Most bytes of a string: what the length fields of inflexible versions can say, and what Kafka
/// keeps to everywhere.
pub const STRING_BYTES_MAX: usize = 0x7fff;

/// Reads the fields of one message, front to back. After an error it must not be used further.
///
/// Over [`Bytes`] the byte fields are slices that share memory with the input; over a plain slice
/// they are copied.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    whole: Option<&'a Bytes>,
    version: i16,
    flexible: bool,
    memory_left: usize,
}

impl<'a> Reader<'a> {
    /// Reads `whole` from its start.
    #[must_use]
    pub fn new(whole: &'a Bytes) -> Self {
        Self {
            whole: Some(whole),
            ..Self::from_slice(whole)
        }
    }

    /// Reads `bytes` from its start; byte fields are copied.
    #[must_use]
    pub fn from_slice(bytes: &'a [u8]) -> Self {
        let memory_left = bytes
            .len()
            .saturating_mul(MEMORY_PER_BYTE)
            .saturating_add(MEMORY_FREE)
            .min(MEMORY_MAX);
        Self {
            rest: bytes,
            whole: None,
            version: 0,
            flexible: false,
            memory_left,
        }
    }

    /// The same, with at most `bytes` of memory for array elements.
    #[must_use]
    pub fn with_memory_max(mut self, bytes: usize) -> Self {
        self.memory_left = self.memory_left.min(bytes);
        self
    }

    /// Begins a message at the current position.
    pub const fn start(&mut self, version: i16, flexible: bool) {
        self.version = version;
        self.flexible = flexible;
    }

    /// The version of the message that is being read.
    #[must_use]
    pub const fn version(&self) -> i16 {
        self.version
    }

    /// Whether lengths are compact and tagged fields follow (KIP-482).
    #[must_use]
    pub const fn flexible(&self) -> bool {
        self.flexible
    }

    /// Bytes that are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// When bytes are left over.
    pub const fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { left }),
        }
    }

    /// Reads one value.
    ///
    /// # Errors
    /// When the bytes are not such a value.
    pub fn read<T: Wire>(&mut self) -> Result<T, DecodeError> {
        T::read(self)
    }

    /// Reads one value whose lengths are not compact although the message is flexible.
    ///
    /// # Errors
    /// When the bytes are not such a value.
    pub fn read_inflexible<T: Wire>(&mut self) -> Result<T, DecodeError> {
        let flexible = std::mem::replace(&mut self.flexible, false);
        let value = T::read(self);
        self.flexible = flexible;
        value
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(DecodeError::Truncated {
                needed: len,
                left: self.left(),
            });
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(DecodeError::Truncated {
                needed: N,
                left: self.left(),
            });
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// An unsigned varint of at most 5 bytes.
    ///
    /// # Errors
    /// When it is longer or cut.
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.base_128(5)?).map_err(|_| DecodeError::Varint)
    }

    /// A zigzag varint of at most 5 bytes, as records have them.
    ///
    /// # Errors
    /// When it is longer or cut.
    pub fn varint(&mut self) -> Result<i32, DecodeError> {
        let raw = self.unsigned_varint()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A zigzag varlong of at most 10 bytes, as records have them.
    ///
    /// # Errors
    /// When it is longer or cut.
    pub fn varlong(&mut self) -> Result<i64, DecodeError> {
        let raw = self.base_128(10)?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A string.
    ///
    /// # Errors
    /// When it is null, cut or not UTF-8.
    pub fn str(&mut self) -> Result<&'a str, DecodeError> {
        self.nullable_str()?.ok_or(DecodeError::Null)
    }

    /// A string or null. As in Kafka no string is longer than [`STRING_BYTES_MAX`], not even where
    /// the length field of a flexible version has room for more.
    ///
    /// # Errors
    /// When it is cut, too long or not UTF-8.
    pub fn nullable_str(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let len = if self.flexible {
            self.compact_length()?
        } else {
            self.short_length()?
        };
        let Some(len) = len else { return Ok(None) };
        if len > STRING_BYTES_MAX {
            return Err(DecodeError::LongString(len));
        }
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| DecodeError::Utf8)?;
        Ok(Some(text))
    }

    /// A byte array or null; shares memory with the input if that is [`Bytes`].
    ///
    /// # Errors
    /// When it is cut.
    pub fn nullable_bytes(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(slice) = self.nullable_slice()? else {
            return Ok(None);
        };
        Ok(Some(match self.whole {
            Some(whole) => whole.slice_ref(slice),
            None => Bytes::copy_from_slice(slice),
        }))
    }

    /// A byte array or null, borrowed.
    ///
    /// # Errors
    /// When it is cut.
    pub fn nullable_slice(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let len = if self.flexible {
            self.compact_length()?
        } else {
            self.length()?
        };
        len.map(|len| self.take(len)).transpose()
    }

    /// The element count of an array or null. No element is smaller than `size_min` bytes.
    ///
    /// # Errors
    /// When so many elements cannot be in the bytes that are left.
    pub fn nullable_count(&mut self, size_min: usize) -> Result<Option<usize>, DecodeError> {
        let count = if self.flexible {
            self.compact_length()?
        } else {
            self.length()?
        };
        let Some(count) = count else { return Ok(None) };
        if count > self.left() / size_min.max(1) {
            return Err(DecodeError::Count {
                count,
                left: self.left(),
            });
        }
        Ok(Some(count))
    }

    /// The element count of an array. No element is smaller than `size_min` bytes.
    ///
    /// # Errors
    /// When it is null, or so many elements cannot be in the bytes that are left.
    pub fn count(&mut self, size_min: usize) -> Result<usize, DecodeError> {
        self.nullable_count(size_min)?.ok_or(DecodeError::Null)
    }

    /// An array or null.
    ///
    /// # Errors
    /// When the bytes are not such an array, or its elements take up too much memory.
    pub fn nullable_array<T: Wire>(&mut self) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.nullable_count(T::SIZE_MIN)? else {
            return Ok(None);
        };
        let memory = count.saturating_mul(size_of::<T>());
        let left = self
            .memory_left
            .checked_sub(memory)
            .ok_or(DecodeError::Memory)?;
        self.memory_left = left;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(self.read()?);
        }
        Ok(Some(elements))
    }

    /// A struct or null: one byte in front says which, negative for null.
    ///
    /// # Errors
    /// When the bytes are not such a struct.
    pub fn nullable_struct<T: Wire>(&mut self) -> Result<Option<T>, DecodeError> {
        let present: i8 = self.read()?;
        if present < 0 {
            Ok(None)
        } else {
            self.read().map(Some)
        }
    }

    /// A struct or null in a tagged field: one byte in front says which, 0 for null.
    ///
    /// # Errors
    /// When the bytes are not such a struct.
    pub fn nullable_tagged_struct<T: Wire>(&mut self) -> Result<Option<T>, DecodeError> {
        match self.unsigned_varint()? {
            0 => Ok(None),
            _ => self.read().map(Some),
        }
    }

    /// Reads the tagged fields of a struct, if the message is flexible. `field` reads the ones it
    /// knows and says whether it knew the tag; the others are skipped.
    ///
    /// # Errors
    /// When tags do not rise, a size points past the end, or `field` fails or leaves bytes over.
    pub fn tags<F>(&mut self, mut field: F) -> Result<(), DecodeError>
    where
        F: FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    {
        if !self.flexible {
            return Ok(());
        }
        let mut last = None;
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            if let Some(after) = last.filter(|&after| tag <= after) {
                return Err(DecodeError::TagOrder { tag, after });
            }
            last = Some(tag);
            let size = self.unsigned_varint()? as usize;
            let value = self.take(size)?;
            let after = std::mem::replace(&mut self.rest, value);
            if field(tag, self)? && !self.rest.is_empty() {
                return Err(DecodeError::TagSize {
                    tag,
                    left: self.left(),
                });
            }
            self.rest = after;
        }
        Ok(())
    }

    /// Skips the tagged fields of a struct that has none of its own.
    ///
    /// # Errors
    /// When tags do not rise, or a size points past the end.
    pub fn skip_tags(&mut self) -> Result<(), DecodeError> {
        self.tags(|_, _| Ok(false))
    }

    fn base_128(&mut self, bytes_max: u32) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for at in 0..bytes_max {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit only.
            if at == 9 && bits > 1 {
                return Err(DecodeError::Varint);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint)
    }

    fn compact_length(&mut self) -> Result<Option<usize>, DecodeError> {
        Ok(self
            .unsigned_varint()?
            .checked_sub(1)
            .map(|len| len as usize))
    }

    fn short_length(&mut self) -> Result<Option<usize>, DecodeError> {
        length(i32::from(i16::from_be_bytes(self.array()?)))
    }

    fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        length(i32::from_be_bytes(self.array()?))
    }
}

/// The length that a length field means; -1 is null.
fn length(raw: i32) -> Result<Option<usize>, DecodeError> {
    match usize::try_from(raw) {
        Ok(len) => Ok(Some(len)),
        Err(_) if raw == -1 => Ok(None),
        Err(_) => Err(DecodeError::Length(raw)),
    }
}
