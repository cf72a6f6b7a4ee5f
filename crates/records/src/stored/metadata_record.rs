//! How a record of `__cluster_metadata` is framed: unsigned varints for the frame version (1), the
//! record's type and its version, then the body. It has no key.

use bytes::Bytes;

use super::metadata::MetadataRecord;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};

/// The only frame version that there is.
const FRAME_VERSION: u32 = 1;

impl MetadataRecord {
    /// Reads the value of a record, and at which version it was written.
    ///
    /// # Errors
    /// When the bytes are not such a value, have something after it, or are of a type or version
    /// that this build does not know.
    pub fn decode_value(value: &[u8]) -> Result<(Self, i16), DecodeError> {
        let mut r = Reader::from_slice(value);
        let frame = r.unsigned_varint()?;
        if frame != FRAME_VERSION {
            return Err(DecodeError::RecordFrame(i64::from(frame)));
        }
        let id = r.unsigned_varint()?;
        let version = r.unsigned_varint()?;
        // No version is as large as what does not fit.
        let version = i16::try_from(version).unwrap_or(i16::MAX);
        let record = Self::decode(&mut r, id, version)?;
        r.finish()?;
        Ok((record, version))
    }

    /// The value of the record, written at `version`.
    ///
    /// # Errors
    /// When `version` does not exist or cannot carry what is set.
    pub fn encode_value(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut w = Writer::new();
        w.unsigned_varint(FRAME_VERSION);
        w.unsigned_varint(self.id());
        w.unsigned_varint(u32::from(version.unsigned_abs()));
        self.encode(&mut w, version)?;
        Ok(w.into_bytes())
    }

    /// The version that Kafka writes at metadata.version 33 (4.4-IV2): the highest, but for
    /// BrokerRegistrationChange the lowest that carries what is set.
    #[must_use]
    pub fn usual_version(&self) -> i16 {
        let (lowest, highest) = self.versions();
        match self {
            Self::BrokerRegistrationChange(_) => (lowest..highest)
                .find(|&version| self.encode(&mut Writer::new(), version).is_ok())
                .unwrap_or(highest),
            _ => highest,
        }
    }
}

/// Defines [`MetadataRecord`] from lines of `type Variant(Record) "TYPE_IN_DUMPS"`.
macro_rules! metadata_records {
    ($($id:literal $variant:ident($record:ident) $dump:literal;)*) => {
        /// A record of the cluster metadata.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is named after its record")]
        pub enum MetadataRecord {
            $($variant($record),)*
        }

        $(impl From<$record> for MetadataRecord {
            fn from(record: $record) -> Self {
                Self::$variant(record)
            }
        })*

        impl MetadataRecord {
            /// The record's type, as its frame says it.
            #[must_use]
            pub const fn id(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $id,)*
                }
            }

            /// The record's type, as Kafka's log dump spells it.
            #[must_use]
            pub const fn dump_type(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $dump,)*
                }
            }

            /// The lowest and the highest version of the record.
            #[must_use]
            pub const fn versions(&self) -> (i16, i16) {
                match self {
                    $(Self::$variant(_) => <$record as $crate::wire::Message>::VERSIONS,)*
                }
            }

            /// The record as Kafka's log dump prints it: type, version and data.
            #[must_use]
            pub fn to_json(&self, version: i16) -> serde_json::Value {
                use $crate::stored::json::Object;
                let mut it = Object::default();
                it.put("type", &self.dump_type().to_owned(), version);
                it.put("version", &version, version);
                match self {
                    $(Self::$variant(record) => it.put("data", record, version),)*
                }
                it.into()
            }

            pub(in $crate::stored) fn decode(
                r: &mut $crate::wire::Reader<'_>,
                id: u32,
                version: i16,
            ) -> Result<Self, $crate::wire::DecodeError> {
                use $crate::wire::Message as _;
                match id {
                    $($id => $record::decode(r, version).map(Self::$variant),)*
                    other => Err($crate::wire::DecodeError::RecordType(i64::from(other))),
                }
            }

            pub(in $crate::stored) fn encode(
                &self,
                w: &mut $crate::wire::Writer,
                version: i16,
            ) -> Result<(), $crate::wire::EncodeError> {
                use $crate::wire::Message as _;
                match self {
                    $(Self::$variant(record) => record.encode(w, version),)*
                }
            }
        }
    };
}

pub(super) use metadata_records;
