use highwater_records::stored::{
    DumpedRecord, GroupRecord, MetadataRecord, ShareRecord, TransactionRecord, dump_control,
};
use highwater_records::wire::DecodeError;
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
    /// Adds key and payload of a data record. What is not of the decoder's kind is shown as text.
    pub(super) fn put_contents(self, record: &Record<'_>, fields: &mut Fields) {
        let dumped = match self {
            Self::Text => None,
            Self::Metadata => {
                put_text("key", record.key, fields);
                if let Some(value) = record.value {
                    fields.put("payload", metadata(value));
                }
                return;
            }
            Self::Offsets => coordinator(record, |key, value| {
                GroupRecord::decode(key, value).map(|(it, version)| it.dump(version))
            }),
            Self::Transactions => coordinator(record, |key, value| {
                TransactionRecord::decode(key, value).map(|(it, version)| it.dump(version))
            }),
            Self::ShareState => coordinator(record, |key, value| {
                ShareRecord::decode(key, value).map(|(it, version)| it.dump(version))
            }),
        };
        if let Some(DumpedRecord { key, payload }) = dumped {
            fields.put("key", key);
            fields.put("payload", payload.unwrap_or_else(|| "<DELETE>".into()));
        } else {
            put_text("key", record.key, fields);
            put_text("payload", record.value, fields);
        }
    }
}

/// Adds what a control record says.
pub(super) fn put_control(record: &Record<'_>, fields: &mut Fields) {
    let Ok(ControlRecord {
        control_type,
        value,
    }) = ControlRecord::of(record)
    else {
        fields.put("controlType", "UNKNOWN(-1)");
        return;
    };
    if let ControlType::Abort | ControlType::Commit = control_type {
        let commit = control_type == ControlType::Commit;
        let epoch = match EndTransactionMarker::of(record) {
            Ok(Some(marker)) => marker.coordinator_epoch.raw(),
            Ok(None) | Err(_) => -1,
        };
        fields.put("endTxnMarker", if commit { "COMMIT" } else { "ABORT" });
        fields.put("coordinatorEpoch", epoch);
        return;
    }
    match dump_control(control_type, value) {
        Ok(Some((label, json))) => {
            let name = label.trim_end_matches(':');
            fields.put_raw(&format!("{label} {json}"), name, json.clone());
        }
        Ok(None) => {
            let raw = control_type.raw();
            fields.put_as("controlType", &format!("UNKNOWN({raw})"), raw.into());
        }
        Err(why) => {
            fields.put("controlRecord", json!({ "error": why.to_string() }));
        }
    }
}

fn put_text(name: &str, bytes: Option<&[u8]>, fields: &mut Fields) {
    if let Some(bytes) = bytes {
        fields.put(name, String::from_utf8_lossy(bytes).into_owned());
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

fn coordinator(
    record: &Record<'_>,
    decode: impl FnOnce(&[u8], Option<&[u8]>) -> Result<DumpedRecord, DecodeError>,
) -> Option<DumpedRecord> {
    decode(record.key?, record.value).ok()
}
