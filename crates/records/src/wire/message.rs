use std::fmt;

use bytes::Bytes;

use super::{DecodeError, EncodeError, Reader, Wire, Writer};

/// Most answers take less, so that their bytes are allocated once.
const USUAL_BYTES: usize = 256;

/// A whole message: a request, a response, a header or a stored record. All are generated.
pub trait Message: Wire + Clone + Default + PartialEq + fmt::Debug {
    /// Kafka's name of the message.
    const NAME: &'static str;
    /// The lowest and the highest version, both inclusive. Unstable versions are not in it.
    const VERSIONS: (i16, i16);
    /// From this version on lengths are compact and tagged fields follow (KIP-482).
    /// [`i16::MAX`]: never.
    const FLEXIBLE_SINCE: i16;

    /// Whether the message exists at `version`.
    #[must_use]
    fn has_version(version: i16) -> bool {
        let (lowest, highest) = Self::VERSIONS;
        (lowest..=highest).contains(&version)
    }

    /// Reads a message. What follows it is the caller's business.
    ///
    /// # Errors
    /// When the bytes are not such a message, or there is no such version.
    fn decode(r: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError> {
        if !Self::has_version(version) {
            return Err(DecodeError::Version {
                message: Self::NAME,
                version,
            });
        }
        r.start(version, version >= Self::FLEXIBLE_SINCE);
        r.read()
    }

    /// Writes the message.
    ///
    /// # Errors
    /// When `version` does not exist or cannot carry what is set.
    fn encode(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        if !Self::has_version(version) {
            return Err(EncodeError::Version {
                message: Self::NAME,
                version,
            });
        }
        w.start(version, version >= Self::FLEXIBLE_SINCE);
        self.write(w)
    }

    /// Reads a message from the start of `bytes` and ignores what follows, as Kafka's servers and
    /// clients do. Byte fields are slices of `bytes`.
    ///
    /// # Errors
    /// As [`Message::decode`].
    fn from_bytes(bytes: &Bytes, version: i16) -> Result<Self, DecodeError> {
        Self::decode(&mut Reader::new(bytes), version)
    }

    /// Reads a stored message that must fill `bytes` exactly. Byte fields are copied.
    ///
    /// # Errors
    /// As [`Message::decode`], and when bytes are left over.
    fn from_stored(bytes: &[u8], version: i16) -> Result<Self, DecodeError> {
        let mut r = Reader::from_slice(bytes);
        let message = Self::decode(&mut r, version)?;
        r.finish()?;
        Ok(message)
    }

    /// The message as bytes of their own.
    ///
    /// # Errors
    /// As [`Message::encode`].
    fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut w = Writer::with_capacity(USUAL_BYTES);
        self.encode(&mut w, version)?;
        Ok(w.into_bytes())
    }
}

/// Decodes and encodes again; see [`MessageInfo`].
pub type Recode = fn(&Bytes, i16) -> Result<(Bytes, usize), RecodeError>;

/// A message without its type, for tests and fuzzers that walk over all of them.
#[derive(Clone, Copy, Debug)]
pub struct MessageInfo {
    /// Kafka's name of the message.
    pub name: &'static str,
    /// The lowest and the highest version, both inclusive.
    pub versions: (i16, i16),
    /// Decodes and encodes again. Also yields how many bytes were not read.
    pub recode: Recode,
}

/// Why a message could not be decoded and encoded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecodeError {
    /// The bytes are not such a message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// What was decoded cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl MessageInfo {
    /// Describes `M`.
    #[must_use]
    pub const fn of<M: Message>() -> Self {
        Self {
            name: M::NAME,
            versions: M::VERSIONS,
            recode: recode::<M>,
        }
    }
}

fn recode<M: Message>(bytes: &Bytes, version: i16) -> Result<(Bytes, usize), RecodeError> {
    let mut r = Reader::new(bytes);
    let message = M::decode(&mut r, version)?;
    Ok((message.to_bytes(version)?, r.left()))
}
