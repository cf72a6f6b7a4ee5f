//! Generated from `crates/protocol/schemas/coordinator/group-ShareGroupMemberMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 10; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroupMemberMetadataValue {
    /// `string`, versions 0+, or null.
    pub rack_id: Option<String>,
    /// `string`, versions 0+.
    pub client_id: String,
    /// `string`, versions 0+.
    pub client_host: String,
    /// `[]string`, versions 0+.
    pub subscribed_topic_names: Vec<String>,
}

impl Default for ShareGroupMemberMetadataValue {
    fn default() -> Self {
        Self {
            rack_id: Some(String::new()),
            client_id: String::new(),
            client_host: String::new(),
            subscribed_topic_names: Vec::new(),
        }
    }
}

impl Wire for ShareGroupMemberMetadataValue {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            rack_id: r.read()?,
            client_id: r.read()?,
            client_host: r.read()?,
            subscribed_topic_names: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.rack_id.write(w)?;
        self.client_id.write(w)?;
        self.client_host.write(w)?;
        self.subscribed_topic_names.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ShareGroupMemberMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("rackId", &self.rack_id, v);
        it.put("clientId", &self.client_id, v);
        it.put("clientHost", &self.client_host, v);
        it.put("subscribedTopicNames", &self.subscribed_topic_names, v);
        it.into()
    }
}

impl Message for ShareGroupMemberMetadataValue {
    const NAME: &'static str = "ShareGroupMemberMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
