//! Generated from `crates/protocol/schemas/coordinator/group-StreamsGroupMemberMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 19; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsGroupMemberMetadataValue {
    /// `string`, versions 0+, or null.
    pub instance_id: Option<String>,
    /// `string`, versions 0+, or null.
    pub rack_id: Option<String>,
    /// `string`, versions 0+.
    pub client_id: String,
    /// `string`, versions 0+.
    pub client_host: String,
    /// `int32`, versions 0+.
    pub rebalance_timeout_ms: i32,
    /// `int32`, versions 0+.
    pub topology_epoch: i32,
    /// `string`, versions 0+.
    pub process_id: String,
    /// `Endpoint`, versions 0+, or null.
    pub user_endpoint: Option<Endpoint>,
    /// `[]KeyValue`, versions 0+.
    pub client_tags: Vec<KeyValue>,
}

impl Default for StreamsGroupMemberMetadataValue {
    fn default() -> Self {
        Self {
            instance_id: Some(String::new()),
            rack_id: Some(String::new()),
            client_id: String::new(),
            client_host: String::new(),
            rebalance_timeout_ms: -1,
            topology_epoch: 0,
            process_id: String::new(),
            user_endpoint: None,
            client_tags: Vec::new(),
        }
    }
}

impl Wire for StreamsGroupMemberMetadataValue {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            instance_id: r.read()?,
            rack_id: r.read()?,
            client_id: r.read()?,
            client_host: r.read()?,
            rebalance_timeout_ms: r.read()?,
            topology_epoch: r.read()?,
            process_id: r.read()?,
            user_endpoint: r.nullable_struct()?,
            client_tags: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.instance_id.write(w)?;
        self.rack_id.write(w)?;
        self.client_id.write(w)?;
        self.client_host.write(w)?;
        self.rebalance_timeout_ms.write(w)?;
        self.topology_epoch.write(w)?;
        self.process_id.write(w)?;
        w.nullable_struct(self.user_endpoint.as_ref())?;
        self.client_tags.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for StreamsGroupMemberMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("instanceId", &self.instance_id, v);
        it.put("rackId", &self.rack_id, v);
        it.put("clientId", &self.client_id, v);
        it.put("clientHost", &self.client_host, v);
        it.put("rebalanceTimeoutMs", &self.rebalance_timeout_ms, v);
        it.put("topologyEpoch", &self.topology_epoch, v);
        it.put("processId", &self.process_id, v);
        it.put("userEndpoint", &self.user_endpoint, v);
        it.put("clientTags", &self.client_tags, v);
        it.into()
    }
}

/// Part of [`StreamsGroupMemberMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `string`, versions 0+.
    pub host: String,
    /// `uint16`, versions 0+.
    pub port: u16,
}

impl Wire for Endpoint {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            host: r.read()?,
            port: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.host.write(w)?;
        self.port.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for Endpoint {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("host", &self.host, v);
        it.put("port", &self.port, v);
        it.into()
    }
}

/// Part of [`StreamsGroupMemberMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// `string`, versions 0+.
    pub key: String,
    /// `string`, versions 0+.
    pub value: String,
}

impl Wire for KeyValue {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            key: r.read()?,
            value: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.key.write(w)?;
        self.value.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for KeyValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("key", &self.key, v);
        it.put("value", &self.value, v);
        it.into()
    }
}

impl Message for StreamsGroupMemberMetadataValue {
    const NAME: &'static str = "StreamsGroupMemberMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
