//! Generated from `crates/protocol/schemas/coordinator/transaction-TransactionLog.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ProducerId;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 0; versions 0-1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionLogValue {
    /// `int64`, versions 0+.
    pub producer_id: ProducerId,
    /// `int64`, versions 1+, tag 0.
    pub previous_producer_id: ProducerId,
    /// `int64`, versions 1+, tag 1.
    pub next_producer_id: ProducerId,
    /// `int16`, versions 0+.
    pub producer_epoch: i16,
    /// `int16`, versions 1+, tag 3.
    pub next_producer_epoch: i16,
    /// `int32`, versions 0+.
    pub transaction_timeout_ms: i32,
    /// `int8`, versions 0+.
    pub transaction_status: i8,
    /// `[]PartitionsSchema`, versions 0+, or null.
    pub transaction_partitions: Option<Vec<PartitionsSchema>>,
    /// `int64`, versions 0+.
    pub transaction_last_update_timestamp_ms: i64,
    /// `int64`, versions 0+.
    pub transaction_start_timestamp_ms: i64,
    /// `int16`, versions 1+, tag 2.
    pub client_transaction_version: i16,
}

impl Default for TransactionLogValue {
    fn default() -> Self {
        Self {
            producer_id: ProducerId::new(0),
            previous_producer_id: ProducerId::NONE,
            next_producer_id: ProducerId::NONE,
            producer_epoch: 0,
            next_producer_epoch: -1,
            transaction_timeout_ms: 0,
            transaction_status: 0,
            transaction_partitions: Some(Vec::new()),
            transaction_last_update_timestamp_ms: 0,
            transaction_start_timestamp_ms: 0,
            client_transaction_version: 0,
        }
    }
}

impl Wire for TransactionLogValue {
    const SIZE_MIN: usize = 33;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            producer_id: r.read()?,
            producer_epoch: r.read()?,
            transaction_timeout_ms: r.read()?,
            transaction_status: r.read()?,
            transaction_partitions: r.read()?,
            transaction_last_update_timestamp_ms: r.read()?,
            transaction_start_timestamp_ms: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.previous_producer_id = r.read()?,
                1 => it.next_producer_id = r.read()?,
                3 => it.next_producer_epoch = r.read()?,
                2 => it.client_transaction_version = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.producer_id.write(w)?;
        self.producer_epoch.write(w)?;
        self.transaction_timeout_ms.write(w)?;
        self.transaction_status.write(w)?;
        self.transaction_partitions.write(w)?;
        self.transaction_last_update_timestamp_ms.write(w)?;
        self.transaction_start_timestamp_ms.write(w)?;
        if v < 1 {
            w.absent(
                self.previous_producer_id == ProducerId::NONE,
                "PreviousProducerId",
            )?;
            w.absent(self.next_producer_id == ProducerId::NONE, "NextProducerId")?;
            w.absent(self.next_producer_epoch == -1, "NextProducerEpoch")?;
            w.absent(
                self.client_transaction_version == 0,
                "ClientTransactionVersion",
            )?;
        }
        w.tags(|tags| {
            if self.previous_producer_id != ProducerId::NONE {
                tags.put(0, &self.previous_producer_id)?;
            }
            if self.next_producer_id != ProducerId::NONE {
                tags.put(1, &self.next_producer_id)?;
            }
            if self.client_transaction_version != 0 {
                tags.put(2, &self.client_transaction_version)?;
            }
            if self.next_producer_epoch != -1 {
                tags.put(3, &self.next_producer_epoch)?;
            }
            Ok(())
        })
    }
}

impl ToJson for TransactionLogValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("producerId", &self.producer_id, v);
        if v >= 1 && self.previous_producer_id != ProducerId::NONE {
            it.put("previousProducerId", &self.previous_producer_id, v);
        }
        if v >= 1 && self.next_producer_id != ProducerId::NONE {
            it.put("nextProducerId", &self.next_producer_id, v);
        }
        it.put("producerEpoch", &self.producer_epoch, v);
        if v >= 1 && self.next_producer_epoch != -1 {
            it.put("nextProducerEpoch", &self.next_producer_epoch, v);
        }
        it.put("transactionTimeoutMs", &self.transaction_timeout_ms, v);
        it.put("transactionStatus", &self.transaction_status, v);
        it.put("transactionPartitions", &self.transaction_partitions, v);
        it.put(
            "transactionLastUpdateTimestampMs",
            &self.transaction_last_update_timestamp_ms,
            v,
        );
        it.put(
            "transactionStartTimestampMs",
            &self.transaction_start_timestamp_ms,
            v,
        );
        if v >= 1 && self.client_transaction_version != 0 {
            it.put(
                "clientTransactionVersion",
                &self.client_transaction_version,
                v,
            );
        }
        it.into()
    }
}

/// Part of [`TransactionLogValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionsSchema {
    /// `string`, versions 0+.
    pub topic: String,
    /// `[]int32`, versions 0+.
    pub partition_ids: Vec<i32>,
}

impl Wire for PartitionsSchema {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic: r.read()?,
            partition_ids: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic.write(w)?;
        self.partition_ids.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for PartitionsSchema {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topic", &self.topic, v);
        it.put("partitionIds", &self.partition_ids, v);
        it.into()
    }
}

impl Message for TransactionLogValue {
    const NAME: &'static str = "TransactionLogValue";
    const VERSIONS: (i16, i16) = (0, 1);
    const FLEXIBLE_SINCE: i16 = 1;
}
