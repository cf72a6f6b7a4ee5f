//! Generated from `crates/protocol/schemas/coordinator/group-GroupMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 2; versions 0-4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadataValue {
    /// `string`, versions 0+.
    pub protocol_type: String,
    /// `int32`, versions 0+.
    pub generation: i32,
    /// `string`, versions 0+, or null.
    pub protocol: Option<String>,
    /// `string`, versions 0+, or null.
    pub leader: Option<String>,
    /// `int64`, versions 2+.
    pub current_state_timestamp: i64,
    /// `[]MemberMetadata`, versions 0+.
    pub members: Vec<MemberMetadata>,
}

impl Default for GroupMetadataValue {
    fn default() -> Self {
        Self {
            protocol_type: String::new(),
            generation: 0,
            protocol: Some(String::new()),
            leader: Some(String::new()),
            current_state_timestamp: -1,
            members: Vec::new(),
        }
    }
}

impl Wire for GroupMetadataValue {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            protocol_type: r.read()?,
            generation: r.read()?,
            protocol: r.read()?,
            leader: r.read()?,
            ..Self::default()
        };
        if v >= 2 {
            it.current_state_timestamp = r.read()?;
        }
        it.members = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.protocol_type.write(w)?;
        self.generation.write(w)?;
        self.protocol.write(w)?;
        self.leader.write(w)?;
        if v >= 2 {
            self.current_state_timestamp.write(w)?;
        }
        self.members.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for GroupMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("protocolType", &self.protocol_type, v);
        it.put("generation", &self.generation, v);
        it.put("protocol", &self.protocol, v);
        it.put("leader", &self.leader, v);
        if v >= 2 {
            it.put("currentStateTimestamp", &self.current_state_timestamp, v);
        }
        it.put("members", &self.members, v);
        it.into()
    }
}

/// Part of [`GroupMetadataValue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberMetadata {
    /// `string`, versions 0+.
    pub member_id: String,
    /// `string`, versions 3+, or null.
    pub group_instance_id: Option<String>,
    /// `string`, versions 0+.
    pub client_id: String,
    /// `string`, versions 0+.
    pub client_host: String,
    /// `int32`, versions 1+.
    pub rebalance_timeout: i32,
    /// `int32`, versions 0+.
    pub session_timeout: i32,
    /// `bytes`, versions 0+.
    pub subscription: Bytes,
    /// `bytes`, versions 0+.
    pub assignment: Bytes,
}

impl Default for MemberMetadata {
    fn default() -> Self {
        Self {
            member_id: String::new(),
            group_instance_id: None,
            client_id: String::new(),
            client_host: String::new(),
            rebalance_timeout: -1,
            session_timeout: 0,
            subscription: Bytes::new(),
            assignment: Bytes::new(),
        }
    }
}

impl Wire for MemberMetadata {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            member_id: r.read()?,
            ..Self::default()
        };
        if v >= 3 {
            it.group_instance_id = r.read()?;
        }
        it.client_id = r.read()?;
        it.client_host = r.read()?;
        if v >= 1 {
            it.rebalance_timeout = r.read()?;
        }
        it.session_timeout = r.read()?;
        it.subscription = r.read()?;
        it.assignment = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.member_id.write(w)?;
        if v >= 3 {
            self.group_instance_id.write(w)?;
        }
        self.client_id.write(w)?;
        self.client_host.write(w)?;
        if v >= 1 {
            self.rebalance_timeout.write(w)?;
        }
        self.session_timeout.write(w)?;
        self.subscription.write(w)?;
        self.assignment.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for MemberMetadata {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("memberId", &self.member_id, v);
        if v >= 3 {
            it.put("groupInstanceId", &self.group_instance_id, v);
        }
        it.put("clientId", &self.client_id, v);
        it.put("clientHost", &self.client_host, v);
        if v >= 1 {
            it.put("rebalanceTimeout", &self.rebalance_timeout, v);
        }
        it.put("sessionTimeout", &self.session_timeout, v);
        it.put("subscription", &self.subscription, v);
        it.put("assignment", &self.assignment, v);
        it.into()
    }
}

impl Message for GroupMetadataValue {
    const NAME: &'static str = "GroupMetadataValue";
    const VERSIONS: (i16, i16) = (0, 4);
    const FLEXIBLE_SINCE: i16 = 4;
}
