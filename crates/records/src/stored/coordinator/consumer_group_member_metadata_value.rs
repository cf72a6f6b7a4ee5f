//! Generated from `crates/protocol/schemas/coordinator/group-ConsumerGroupMemberMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 5; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupMemberMetadataValue {
    /// `string`, versions 0+, or null.
    pub instance_id: Option<String>,
    /// `string`, versions 0+, or null.
    pub rack_id: Option<String>,
    /// `string`, versions 0+.
    pub client_id: String,
    /// `string`, versions 0+.
    pub client_host: String,
    /// `[]string`, versions 0+.
    pub subscribed_topic_names: Vec<String>,
    /// `string`, versions 0+, or null.
    pub subscribed_topic_regex: Option<String>,
    /// `int32`, versions 0+.
    pub rebalance_timeout_ms: i32,
    /// `string`, versions 0+, or null.
    pub server_assignor: Option<String>,
    /// `ClassicMemberMetadata`, versions 0+, tag 0, or null.
    pub classic_member_metadata: Option<ClassicMemberMetadata>,
}

impl Default for ConsumerGroupMemberMetadataValue {
    fn default() -> Self {
        Self {
            instance_id: Some(String::new()),
            rack_id: Some(String::new()),
            client_id: String::new(),
            client_host: String::new(),
            subscribed_topic_names: Vec::new(),
            subscribed_topic_regex: Some(String::new()),
            rebalance_timeout_ms: -1,
            server_assignor: Some(String::new()),
            classic_member_metadata: None,
        }
    }
}

impl Wire for ConsumerGroupMemberMetadataValue {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            instance_id: r.read()?,
            rack_id: r.read()?,
            client_id: r.read()?,
            client_host: r.read()?,
            subscribed_topic_names: r.read()?,
            subscribed_topic_regex: r.read()?,
            rebalance_timeout_ms: r.read()?,
            server_assignor: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.classic_member_metadata = r.nullable_tagged_struct()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.instance_id.write(w)?;
        self.rack_id.write(w)?;
        self.client_id.write(w)?;
        self.client_host.write(w)?;
        self.subscribed_topic_names.write(w)?;
        self.subscribed_topic_regex.write(w)?;
        self.rebalance_timeout_ms.write(w)?;
        self.server_assignor.write(w)?;
        w.tags(|tags| {
            tags.put_nullable_struct(0, self.classic_member_metadata.as_ref())?;
            Ok(())
        })
    }
}

impl ToJson for ConsumerGroupMemberMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("instanceId", &self.instance_id, v);
        it.put("rackId", &self.rack_id, v);
        it.put("clientId", &self.client_id, v);
        it.put("clientHost", &self.client_host, v);
        it.put("subscribedTopicNames", &self.subscribed_topic_names, v);
        it.put("subscribedTopicRegex", &self.subscribed_topic_regex, v);
        it.put("rebalanceTimeoutMs", &self.rebalance_timeout_ms, v);
        it.put("serverAssignor", &self.server_assignor, v);
        it.put("classicMemberMetadata", &self.classic_member_metadata, v);
        it.into()
    }
}

/// Part of [`ConsumerGroupMemberMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassicMemberMetadata {
    /// `int32`, versions 0+.
    pub session_timeout_ms: i32,
    /// `[]ClassicProtocol`, versions 0+.
    pub supported_protocols: Vec<ClassicProtocol>,
}

impl Wire for ClassicMemberMetadata {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            session_timeout_ms: r.read()?,
            supported_protocols: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.session_timeout_ms.write(w)?;
        self.supported_protocols.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ClassicMemberMetadata {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("sessionTimeoutMs", &self.session_timeout_ms, v);
        it.put("supportedProtocols", &self.supported_protocols, v);
        it.into()
    }
}

/// Part of [`ConsumerGroupMemberMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassicProtocol {
    /// `string`, versions 0+.
    pub name: String,
    /// `bytes`, versions 0+.
    pub metadata: Bytes,
}

impl Wire for ClassicProtocol {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            metadata: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.metadata.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ClassicProtocol {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("metadata", &self.metadata, v);
        it.into()
    }
}

impl Message for ConsumerGroupMemberMetadataValue {
    const NAME: &'static str = "ConsumerGroupMemberMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
