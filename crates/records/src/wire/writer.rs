use bytes::{BufMut as _, Bytes, BytesMut};

use super::{EncodeError, STRING_BYTES_MAX, Wire};

/// Writes the fields of one message, front to back.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: BytesMut,
    version: i16,
    flexible: bool,
}

impl Writer {
    /// An empty writer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty writer with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: BytesMut::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Begins a message at the current position.
    pub const fn start(&mut self, version: i16, flexible: bool) {
        self.version = version;
        self.flexible = flexible;
    }

    /// The version of the message that is being written.
    #[must_use]
    pub const fn version(&self) -> i16 {
        self.version
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes.freeze()
    }

    /// Takes out what was written so far; writing goes on behind it.
    #[must_use]
    pub fn take_bytes(&mut self) -> Bytes {
        self.bytes.split().freeze()
    }

    /// Appends bytes as they are.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
    }

    /// Writes one value.
    ///
    /// # Errors
    /// When the version cannot carry it.
    pub fn write<T: Wire>(&mut self, value: &T) -> Result<(), EncodeError> {
        value.write(self)
    }

    /// Writes one value whose lengths are not compact although the message is flexible.
    ///
    /// # Errors
    /// When the version cannot carry it.
    pub fn write_inflexible<T: Wire>(&mut self, value: &T) -> Result<(), EncodeError> {
        let flexible = std::mem::replace(&mut self.flexible, false);
        let written = value.write(self);
        self.flexible = flexible;
        written
    }

    /// Writes a value that this version does not allow to be null.
    ///
    /// # Errors
    /// When it is null, or the version cannot carry it.
    pub fn write_some<T: Wire>(&mut self, value: Option<&T>) -> Result<(), EncodeError> {
        value
            .ok_or(EncodeError::Null {
                version: self.version,
            })?
            .write(self)
    }

    /// Checks that a field which this version lacks, and which must not be dropped, has its
    /// default.
    ///
    /// # Errors
    /// When it has not.
    pub const fn absent(&self, is_default: bool, field: &'static str) -> Result<(), EncodeError> {
        if is_default {
            return Ok(());
        }
        Err(EncodeError::Absent {
            field,
            version: self.version,
        })
    }

    /// An unsigned varint.
    pub fn unsigned_varint(&mut self, value: u32) {
        self.base_128(u64::from(value));
    }

    /// A zigzag varint, as records have them.
    pub fn varint(&mut self, value: i32) {
        self.unsigned_varint(((value << 1) ^ (value >> 31)).cast_unsigned());
    }

    /// A zigzag varlong, as records have them.
    pub fn varlong(&mut self, value: i64) {
        self.base_128(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    /// A string or null.
    ///
    /// # Errors
    /// When it is longer than [`STRING_BYTES_MAX`]: nobody would read it.
    pub fn nullable_str(&mut self, text: Option<&str>) -> Result<(), EncodeError> {
        let len = text.map(str::len);
        if let Some(len) = len.filter(|len| *len > STRING_BYTES_MAX) {
            return Err(EncodeError::TooLong(len));
        }
        if self.flexible {
            self.compact_length(len)?;
        } else {
            let raw = len.map_or(Ok(-1), i16::try_from);
            let raw = raw.map_err(|_| EncodeError::TooLong(len.unwrap_or(0)))?;
            self.put(&raw.to_be_bytes());
        }
        self.put(text.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// The length of a byte array or the element count of an array; `None` is null.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn length(&mut self, len: Option<usize>) -> Result<(), EncodeError> {
        if self.flexible {
            return self.compact_length(len);
        }
        let raw = len.map_or(Ok(-1), i32::try_from);
        let raw = raw.map_err(|_| EncodeError::TooLong(len.unwrap_or(0)))?;
        self.put(&raw.to_be_bytes());
        Ok(())
    }

    /// An array or null.
    ///
    /// # Errors
    /// When the version cannot carry an element.
    pub fn nullable_array<T: Wire>(&mut self, elements: Option<&[T]>) -> Result<(), EncodeError> {
        self.length(elements.map(<[T]>::len))?;
        elements
            .unwrap_or_default()
            .iter()
            .try_for_each(|element| element.write(self))
    }

    /// A struct or null: one byte in front says which.
    ///
    /// # Errors
    /// When the version cannot carry it.
    pub fn nullable_struct<T: Wire>(&mut self, value: Option<&T>) -> Result<(), EncodeError> {
        match value {
            Some(value) => {
                self.put(&[1]);
                value.write(self)
            }
            None => {
                self.put(&[0xff]);
                Ok(())
            }
        }
    }

    /// Writes the tagged fields of a struct, if the message is flexible: those that `fields`
    /// puts, in rising order.
    ///
    /// # Errors
    /// When `fields` fails.
    pub fn tags<F>(&mut self, fields: F) -> Result<(), EncodeError>
    where
        F: FnOnce(&mut TagWriter<'_>) -> Result<(), EncodeError>,
    {
        if !self.flexible {
            return Ok(());
        }
        let count_at = self.len();
        self.put(&[0]);
        let mut tags = TagWriter { w: self, count: 0 };
        fields(&mut tags)?;
        let count = tags.count;
        assert!(
            count < 0x80,
            "a struct with {count} tagged fields needs a longer count"
        );
        if let Some(at) = self.bytes.get_mut(count_at) {
            *at = count;
        }
        Ok(())
    }

    /// Writes that a struct has no tagged fields, if the message is flexible.
    pub fn no_tags(&mut self) {
        if self.flexible {
            self.put(&[0]);
        }
    }

    fn base_128(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put(&[value.to_be_bytes()[7] | 0x80]);
            value >>= 7;
        }
        self.put(&[value.to_be_bytes()[7]]);
    }

    fn compact_length(&mut self, len: Option<usize>) -> Result<(), EncodeError> {
        let raw = len.map_or(Some(0), |len| u32::try_from(len).ok()?.checked_add(1));
        self.unsigned_varint(raw.ok_or_else(|| EncodeError::TooLong(len.unwrap_or(0)))?);
        Ok(())
    }
}

/// Writes tagged fields within [`Writer::tags`].
#[derive(Debug)]
pub struct TagWriter<'a> {
    w: &'a mut Writer,
    count: u8,
}

impl TagWriter<'_> {
    /// Writes one tagged field.
    ///
    /// # Errors
    /// When the version cannot carry the value.
    pub fn put<T: Wire>(&mut self, tag: u32, value: &T) -> Result<(), EncodeError> {
        self.put_with(tag, |w| value.write(w))
    }

    /// Writes one tagged field that is a struct which may be null. Kafka writes it also when it is
    /// null by default.
    ///
    /// # Errors
    /// When the version cannot carry the value.
    pub fn put_nullable_struct<T: Wire>(
        &mut self,
        tag: u32,
        value: Option<&T>,
    ) -> Result<(), EncodeError> {
        self.put_with(tag, |w| {
            w.put(&[u8::from(value.is_some())]);
            value.map_or(Ok(()), |value| value.write(w))
        })
    }

    fn put_with<F>(&mut self, tag: u32, value: F) -> Result<(), EncodeError>
    where
        F: FnOnce(&mut Writer) -> Result<(), EncodeError>,
    {
        self.count += 1;
        let start = self.w.len();
        value(self.w)?;
        let end = self.w.len();
        let size = u32::try_from(end - start).map_err(|_| EncodeError::TooLong(end - start))?;
        // The size is known only now; move it in front of the value.
        self.w.unsigned_varint(tag);
        self.w.unsigned_varint(size);
        let header = self.w.len() - end;
        if let Some(field) = self.w.bytes.get_mut(start..) {
            field.rotate_right(header);
        }
        Ok(())
    }
}
