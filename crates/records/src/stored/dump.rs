//! Coordinator and control records as Kafka's log dump prints them, where that is more than their
//! fields: readable states, and the members' own formats within a classic group.

use serde_json::{Value, json};

use super::coordinator::{GroupRecord, ShareRecord, TransactionRecord};
use super::data::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, KRaftVersionRecord,
    LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord,
};
use super::json::ToJson;
use crate::ControlType;
use crate::wire::{DecodeError, Message, Reader};

/// A coordinator's record as Kafka's log dump prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpedRecord {
    /// After `key: `.
    pub key: Value,
    /// After `payload: `; `None` is printed as `<DELETE>`.
    pub payload: Option<Value>,
}

impl DumpedRecord {
    fn new(id: i16, version: i16, (key, value): (Value, Option<Value>)) -> Self {
        Self {
            key: json!({ "type": id.to_string(), "data": key }),
            payload: value.map(|value| json!({ "version": version.to_string(), "data": value })),
        }
    }
}

impl GroupRecord {
    /// The record as Kafka's log dump prints it. `version` is that of its value.
    #[must_use]
    pub fn dump(&self, version: i16) -> DumpedRecord {
        let (key, mut value) = self.to_json(version);
        if let (Self::GroupMetadata(_, Some(group)), Some(value)) = (self, &mut value)
            && group.protocol_type == "consumer"
            && let Some(members) = value.get_mut("members").and_then(Value::as_array_mut)
        {
            for (member, json) in group.members.iter().zip(members) {
                show_as::<ConsumerProtocolSubscription>(json, "subscription", &member.subscription);
                show_as::<ConsumerProtocolAssignment>(json, "assignment", &member.assignment);
            }
        }
        DumpedRecord::new(self.id(), version, (key, value))
    }
}

impl TransactionRecord {
    /// The record as Kafka's log dump prints it. `version` is that of its value.
    #[must_use]
    pub fn dump(&self, version: i16) -> DumpedRecord {
        let (key, mut value) = self.to_json(version);
        let status = value
            .as_mut()
            .and_then(|it| it.get_mut("transactionStatus"));
        if let Some(status) = status
            && let Some(name) = status.as_i64().and_then(transaction_status)
        {
            *status = Value::from(name);
        }
        DumpedRecord::new(self.id(), version, (key, value))
    }
}

impl ShareRecord {
    /// The record as Kafka's log dump prints it. `version` is that of its value.
    #[must_use]
    pub fn dump(&self, version: i16) -> DumpedRecord {
        DumpedRecord::new(self.id(), version, self.to_json(version))
    }
}

/// A control record of the metadata log as Kafka's log dump prints it: a label and the fields.
/// `None` for the markers of transactions, which have no JSON, and for unknown types.
///
/// # Errors
/// When the value is not of its type.
pub fn dump_control(
    control_type: ControlType,
    value: &[u8],
) -> Result<Option<(&'static str, Value)>, DecodeError> {
    // Each of them says its version in its first field.
    let version = || Reader::from_slice(value).read::<i16>();
    Ok(Some(match control_type {
        ControlType::LeaderChange => (
            "LeaderChange:",
            stored_json::<LeaderChangeMessage>(value, version()?)?,
        ),
        ControlType::SnapshotHeader => (
            "SnapshotHeader",
            stored_json::<SnapshotHeaderRecord>(value, version()?)?,
        ),
        ControlType::SnapshotFooter => (
            "SnapshotFooter",
            stored_json::<SnapshotFooterRecord>(value, version()?)?,
        ),
        ControlType::KraftVersion => (
            "KRaftVersion",
            stored_json::<KRaftVersionRecord>(value, version()?)?,
        ),
        ControlType::KraftVoters => (
            "KRaftVoters",
            stored_json::<VotersRecord>(value, version()?)?,
        ),
        ControlType::Abort | ControlType::Commit | ControlType::Unknown(_) => return Ok(None),
    }))
}

fn stored_json<M: Message + ToJson>(value: &[u8], version: i16) -> Result<Value, DecodeError> {
    M::from_stored(value, version).map(|it| it.to_json(version))
}

/// Replaces a member's opaque bytes by what they say in the consumer protocol: a version, then
/// the message at the newest version that both know. Bytes that are something else stay opaque.
fn show_as<M: Message + ToJson>(member: &mut Value, name: &str, bytes: &[u8]) {
    let mut r = Reader::from_slice(bytes);
    let (_, newest) = M::VERSIONS;
    let read = r.read::<i16>().and_then(|version| {
        let version = version.min(newest);
        M::decode(&mut r, version).map(|it| it.to_json(version))
    });
    if let (Ok(json), Some(shown)) = (read, member.get_mut(name)) {
        *shown = json;
    }
}

/// Kafka's name of a transaction's state.
const fn transaction_status(raw: i64) -> Option<&'static str> {
    match raw {
        0 => Some("Empty"),
        1 => Some("Ongoing"),
        2 => Some("PrepareCommit"),
        3 => Some("PrepareAbort"),
        4 => Some("CompleteCommit"),
        5 => Some("CompleteAbort"),
        6 => Some("Dead"),
        7 => Some("PrepareEpochFence"),
        _ => None,
    }
}
