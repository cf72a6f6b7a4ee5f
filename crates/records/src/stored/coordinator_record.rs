//! How a record of a coordinator's log is framed: the key is an int16 with the record's type and
//! the key's body; the value is an int16 with the value's version and its body. A record without a
//! value (a tombstone) deletes the key.

/// Defines the enum of the records of one log from lines of `type Variant(Key, Value)`.
macro_rules! coordinator_records {
    (
        $(#[$doc:meta])*
        $name:ident
        $($id:literal $variant:ident($key:ident, $value:ident);)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is named after its key and value")]
        pub enum $name {
            $($variant($key, Option<$value>),)*
        }

        impl $name {
            /// The record's type, as its key says it.
            #[must_use]
            pub const fn id(&self) -> i16 {
                match self {
                    $(Self::$variant(..) => $id,)*
                }
            }

            /// The lowest and the highest version of the record's value.
            #[must_use]
            pub const fn versions(&self) -> (i16, i16) {
                match self {
                    $(Self::$variant(..) => <$value as $crate::wire::Message>::VERSIONS,)*
                }
            }

            /// Reads a record, and at which version its value was written (0 without a value).
            ///
            /// # Errors
            /// When the bytes are not such a record, have something after it, or are of a type
            /// or version that this build does not know.
            pub fn decode(
                key: &[u8],
                value: Option<&[u8]>,
            ) -> Result<(Self, i16), $crate::wire::DecodeError> {
                use $crate::wire::{DecodeError, Message as _, Reader};
                let mut key = Reader::from_slice(key);
                let id: i16 = key.read()?;
                let mut value = value.map(Reader::from_slice);
                let version = value.as_mut().map_or(Ok(0), Reader::read::<i16>)?;
                let record = match id {
                    $($id => {
                        let key = $key::decode(&mut key, 0)?;
                        let value = value.as_mut().map(|r| $value::decode(r, version));
                        Self::$variant(key, value.transpose()?)
                    })*
                    other => return Err(DecodeError::RecordType(i64::from(other))),
                };
                key.finish()?;
                value.map_or(Ok(()), |value| value.finish())?;
                Ok((record, version))
            }

            /// The record's key, and its value written at `version`.
            ///
            /// # Errors
            /// When `version` does not exist or cannot carry what is set.
            pub fn encode(
                &self,
                version: i16,
            ) -> Result<(bytes::Bytes, Option<bytes::Bytes>), $crate::wire::EncodeError> {
                use $crate::wire::{Message as _, Writer};
                let mut key_bytes = Writer::new();
                key_bytes.write(&self.id())?;
                let mut value_bytes = Writer::new();
                value_bytes.write(&version)?;
                let has_value = match self {
                    $(Self::$variant(key, value) => {
                        key.encode(&mut key_bytes, 0)?;
                        if let Some(value) = value {
                            value.encode(&mut value_bytes, version)?;
                        }
                        value.is_some()
                    })*
                };
                let value = has_value.then(|| value_bytes.into_bytes());
                Ok((key_bytes.into_bytes(), value))
            }

            /// The key's and the value's fields, as Kafka's log dump spells them.
            #[must_use]
            pub fn to_json(&self, version: i16) -> (serde_json::Value, Option<serde_json::Value>) {
                use $crate::stored::json::ToJson as _;
                match self {
                    $(Self::$variant(key, value) => {
                        (key.to_json(0), value.as_ref().map(|it| it.to_json(version)))
                    })*
                }
            }
        }
    };
}

pub(super) use coordinator_records;
