//! Stored records as JSON, spelled and ordered as Kafka's log dump prints them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use highwater_types::{NodeId, ProducerId, Uuid};
use serde_json::{Map, Value};

/// A value that Kafka's JSON can show.
pub trait ToJson {
    /// The value as it is stored at `version`: fields that the version lacks and tagged fields
    /// with their default are left out.
    fn to_json(&self, version: i16) -> Value;
}

/// A JSON object whose members stay in the order in which they were put.
#[derive(Debug, Default)]
pub struct Object(Map<String, Value>);

impl Object {
    /// Adds a member.
    pub fn put<T: ToJson>(&mut self, name: &str, value: &T, version: i16) {
        self.0.insert(name.to_owned(), value.to_json(version));
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

macro_rules! as_it_is {
    ($($ty:ty)*) => {$(
        impl ToJson for $ty {
            fn to_json(&self, _version: i16) -> Value {
                Value::from(self.clone())
            }
        }
    )*};
}

as_it_is! { bool i8 i16 u16 i32 u32 i64 f64 String }

macro_rules! as_number {
    ($($ty:ty)*) => {$(
        impl ToJson for $ty {
            fn to_json(&self, _version: i16) -> Value {
                Value::from(self.raw())
            }
        }
    )*};
}

as_number! { NodeId ProducerId }

impl ToJson for Uuid {
    fn to_json(&self, _version: i16) -> Value {
        Value::from(self.to_string())
    }
}

impl ToJson for Bytes {
    fn to_json(&self, _version: i16) -> Value {
        Value::from(STANDARD.encode(self))
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_json(&self, version: i16) -> Value {
        self.as_ref().map_or(Value::Null, |it| it.to_json(version))
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self, version: i16) -> Value {
        self.iter().map(|it| it.to_json(version)).collect()
    }
}
