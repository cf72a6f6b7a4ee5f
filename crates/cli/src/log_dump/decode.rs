use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use highwater_records::stored::data::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, KRaftVersionRecord,
    LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord,
};
use highwater_records::stored::json::ToJson;
use highwater_records::stored::{GroupRecord, MetadataRecord, ShareRecord, TransactionRecord};
use highwater_records::wire::{Message, Reader};
use highwater_records::{ControlRecord, ControlType, EndTransactionMarker, Record};
use serde_json::{Value, json};

use super::fields::Fields;

/// How keys and values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// As text.
    Text,
    /// As records of `__cluster_metadata`.
    Metadata,
    /// As records of `__consumer_offsets`.
    Offsets,
    /// As records of `__transaction_state`.
    Transactions,
    /// As records of `__share_group_state`.
    ShareState,
}

impl Decoder {
    /// Adds key and payload of a data record.
    pub(super) fn put_contents(self, record: &Record<'_>, fields: &mut Fields) {
        let (key, payload) = match self {
            Self::Text => (None, None),
            Self::Metadata => (None, record.value.map(metadata)),
            Self::Offsets => coordinator(record, |key, value| {
                GroupRecord::decode(key, value).ok().map(|(it, version)| {
                    let (key, mut value) = it.to_json(version);
                    if matches!(it, GroupRecord::GroupMetadata(..)) {
                        value.as_mut().map(open_members);
                    }
                    (it.id(), version, (key, value))
                })
            }),
            Self::Transactions => coordinator(record, |key, value| {
                TransactionRecord::decode(key, value)
                    .ok()
                    .map(|(it, version)| {
                        let (key, mut value) = it.to_json(version);
                        if let Some(status) = value.as_mut().and_then(|it| it.get_mut(STATUS)) {
                            *status = status_name(status).into();
                        }
                        (it.id(), version, (key, value))
                    })
            }),
            Self::ShareState => coordinator(record, |key, value| {
                ShareRecord::decode(key, value)
                    .ok()
                    .map(|(it, version)| (it.id(), version, it.to_json(version)))
            }),
        };
        let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
        if let Some(key) = key.or_else(|| record.key.map(text)) {
            fields.put("key", key);
        }
        if let Some(payload) = payload.or_else(|| record.value.map(text)) {
            fields.put("payload", payload);
        }
    }
}

const STATUS: &str = "transactionStatus";

/// Kafka's names of the states of a transaction.
fn status_name(status: &Value) -> &'static str {
    match status.as_i64() {
        Some(0) => "Empty",
        Some(1) => "Ongoing",
        Some(2) => "PrepareCommit",
        Some(3) => "PrepareAbort",
        Some(4) => "CompleteCommit",
        Some(5) => "CompleteAbort",
        Some(6) => "Dead",
        Some(7) => "PrepareEpochFence",
        _ => "Unknown",
    }
}

/// Shows what the members of a classic consumer group told each other.
fn open_members(group: &mut Value) {
    if group.get("protocolType").and_then(Value::as_str) != Some("consumer") {
        return;
    }
    let members = group.get_mut("members").and_then(Value::as_array_mut);
    for member in members.into_iter().flatten() {
        if let Some(field) = member.get_mut("subscription") {
            open_bytes::<ConsumerProtocolSubscription>(field);
        }
        if let Some(field) = member.get_mut("assignment") {
            open_bytes::<ConsumerProtocolAssignment>(field);
        }
    }
}

/// Puts the message in place of its bytes, when they are one.
fn open_bytes<M: Message + ToJson>(field: &mut Value) {
    let Some(bytes) = field.as_str().and_then(|text| STANDARD.decode(text).ok()) else {
        return;
    };
    let Some((version, body)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    // A newer version only has more at its end.
    let version = i16::from_be_bytes(*version).min(M::VERSIONS.1);
    if let Ok(message) = M::decode(&mut Reader::from_slice(body), version) {
        *field = message.to_json(version);
    }
}

/// Adds what a control record says.
pub(super) fn put_control(record: &Record<'_>, fields: &mut Fields) {
    let Ok(control) = ControlRecord::of(record) else {
        fields.put("controlType", "UNKNOWN(-1)");
        return;
    };
    let value = control.value;
    match control.control_type {
        ControlType::Abort | ControlType::Commit => {
            let commit = control.control_type == ControlType::Commit;
            let epoch = match EndTransactionMarker::of(record) {
                Ok(Some(marker)) => marker.coordinator_epoch.raw(),
                Ok(None) | Err(_) => -1,
            };
            fields.put("endTxnMarker", if commit { "COMMIT" } else { "ABORT" });
            fields.put("coordinatorEpoch", epoch);
        }
        ControlType::LeaderChange => {
            let json = message::<LeaderChangeMessage>(value);
            fields.put("LeaderChange", json);
        }
        ControlType::SnapshotHeader => {
            put_object::<SnapshotHeaderRecord>("SnapshotHeader", value, fields);
        }
        ControlType::SnapshotFooter => {
            put_object::<SnapshotFooterRecord>("SnapshotFooter", value, fields);
        }
        ControlType::KraftVersion => {
            put_object::<KRaftVersionRecord>("KRaftVersion", value, fields);
        }
        ControlType::KraftVoters => put_object::<VotersRecord>("KRaftVoters", value, fields),
        ControlType::Unknown(raw) => {
            fields.put_as("controlType", &format!("UNKNOWN({raw})"), raw.into());
        }
    }
}

/// Adds a control record that Kafka prints without a colon.
fn put_object<M: Message + ToJson>(name: &str, value: &[u8], fields: &mut Fields) {
    let json = message::<M>(value);
    fields.put_raw(&format!("{name} {json}"), name, json.clone());
}

/// A control record's value: its first field says at which version it is written.
fn message<M: Message + ToJson>(value: &[u8]) -> Value {
    let version = value
        .first_chunk::<2>()
        .map_or(0, |raw| i16::from_be_bytes(*raw));
    match M::decode(&mut Reader::from_slice(value), version) {
        Ok(message) => message.to_json(version),
        Err(why) => json!({ "error": why.to_string() }),
    }
}

fn metadata(value: &[u8]) -> Value {
    match MetadataRecord::decode_value(value) {
        Ok((record, version)) => record.to_json(version),
        Err(why) => {
            let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("Error at {hex}, skipping. {why}").into()
        }
    }
}

/// Type, version and the JSON of key and value.
type Decoded = (i16, i16, (Value, Option<Value>));

fn coordinator(
    record: &Record<'_>,
    decode: impl FnOnce(&[u8], Option<&[u8]>) -> Option<Decoded>,
) -> (Option<Value>, Option<Value>) {
    let Some(key) = record.key else {
        return (None, None);
    };
    let Some((id, version, (key, value))) = decode(key, record.value) else {
        return (None, None);
    };
    let key = json!({ "type": id.to_string(), "data": key });
    let payload = match value {
        Some(value) => json!({ "version": version.to_string(), "data": value }),
        None => "<DELETE>".into(),
    };
    (Some(key), Some(payload))
}
