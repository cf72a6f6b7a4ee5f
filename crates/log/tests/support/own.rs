//! A log of our own on a disk in memory, and batches to fill it.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::path::PathBuf;

use highwater_disk::{Blocking, MemDisk};
use highwater_log::{
    Appended, LocalRead, LogConfig, OpenError, OpenLog, Origin, PartitionLog, ReadError,
    ReadResult, RecoveryReport,
};
use highwater_records::{
    Batch, BatchBuilder, BatchOptions, Batches, Compression, Compressor, EndTransactionMarker,
    ProducerStamp, Validated,
};
use highwater_types::{
    LeaderEpoch, Now, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition, WallMs,
};

use super::now;

/// The wall clock of most tests.
pub const START: i64 = 1_700_000_000_000;

pub fn at(offset: i64) -> Offset {
    Offset::new(offset)
}

pub fn epoch(raw: i32) -> LeaderEpoch {
    LeaderEpoch::new(raw)
}

pub fn clock() -> Now {
    now(START)
}

/// How a log is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    pub disk: MemDisk,
    pub config: LogConfig,
    pub recovery_point: Offset,
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
    pub was_cleaned: bool,
    pub leader_epoch: Option<LeaderEpoch>,
    pub clean: bool,
    pub now: Now,
}

impl Opening {
    pub fn new(disk: &MemDisk) -> Self {
        Self {
            disk: disk.clone(),
            config: small(),
            recovery_point: Offset::ZERO,
            high_watermark: Offset::ZERO,
            log_start_offset: Offset::ZERO,
            was_cleaned: false,
            leader_epoch: None,
            clean: false,
            now: clock(),
        }
    }

    pub fn config(self, config: LogConfig) -> Self {
        Self { config, ..self }
    }

    pub fn points(self, recovery_point: i64, high_watermark: i64) -> Self {
        Self {
            recovery_point: at(recovery_point),
            high_watermark: at(high_watermark),
            ..self
        }
    }

    pub fn clean(self) -> Self {
        Self {
            clean: true,
            ..self
        }
    }

    pub fn newest_epoch(self, leader_epoch: i32) -> Self {
        Self {
            leader_epoch: Some(epoch(leader_epoch)),
            ..self
        }
    }

    pub fn start(self, log_start_offset: i64) -> Self {
        Self {
            log_start_offset: at(log_start_offset),
            ..self
        }
    }

    pub fn try_open(self) -> Result<(PartitionLog<MemDisk>, RecoveryReport), OpenError> {
        OpenLog {
            disk: self.disk,
            dir: PathBuf::from("t-0"),
            topic_partition: TopicPartition::parse("t-0").unwrap(),
            topic_id: TopicId::CLUSTER_METADATA,
            config: self.config,
            recovery_point: self.recovery_point,
            high_watermark: self.high_watermark,
            log_start_offset: self.log_start_offset,
            was_cleaned: self.was_cleaned,
            leader_epoch: self.leader_epoch,
            clean_shutdown: self.clean,
            now: self.now,
        }
        .run(&Blocking::enter(), &|_| {})
    }

    pub fn open(self) -> (PartitionLog<MemDisk>, RecoveryReport) {
        self.try_open().unwrap()
    }
}

/// Small segments and a dense index.
pub fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 2000,
        index_interval_bytes: 200,
        producer_id_expiration_ms: highwater_types::Millis::MAX,
        retention_ms: None,
        ..LogConfig::default()
    }
}

/// A new log.
pub fn new_log(disk: &MemDisk) -> PartitionLog<MemDisk> {
    Opening::new(disk).open().0
}

/// A batch to be appended.
#[derive(Clone, Debug)]
pub struct Spec {
    pub timestamps: Vec<i64>,
    pub value_bytes: usize,
    pub compression: Compression,
    pub producer: ProducerStamp,
    pub transactional: bool,
}

impl Spec {
    pub fn of(records: usize) -> Self {
        let timestamps = (0..records)
            .map(|n| START + i64::try_from(n).unwrap())
            .collect();
        Self {
            timestamps,
            value_bytes: 20,
            compression: Compression::None,
            producer: ProducerStamp::NONE,
            transactional: false,
        }
    }

    pub fn at_times(timestamps: &[i64]) -> Self {
        Self {
            timestamps: timestamps.to_vec(),
            ..Self::of(0)
        }
    }

    pub fn producer(self, id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        let producer = ProducerStamp {
            id: ProducerId::new(id),
            epoch: ProducerEpoch::new(producer_epoch),
            base_sequence,
        };
        Self { producer, ..self }
    }

    pub fn transactional(self) -> Self {
        Self {
            transactional: true,
            ..self
        }
    }

    pub fn build_at(&self, base: i64, leader_epoch: i32) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        for (n, timestamp) in self.timestamps.iter().enumerate() {
            let value = vec![u8::try_from(n % 251).unwrap(); self.value_bytes];
            builder
                .append(WallMs::new(*timestamp), None, Some(&value), &[])
                .unwrap();
        }
        let options = BatchOptions {
            base_offset: at(base),
            leader_epoch: epoch(leader_epoch),
            compressor: Compressor::new(self.compression),
            producer: self.producer,
            transactional: self.transactional,
            ..BatchOptions::default()
        };
        builder.finish(&options).unwrap()
    }

    pub fn build(&self) -> Vec<u8> {
        self.build_at(0, -1)
    }
}

pub fn marker(id: i64, producer_epoch: i16, committed: bool) -> Vec<u8> {
    BatchBuilder::end_transaction(
        WallMs::new(START),
        ProducerId::new(id),
        ProducerEpoch::new(producer_epoch),
        EndTransactionMarker {
            committed,
            coordinator_epoch: epoch(0),
        },
    )
}

/// Appends as leader of epoch 0 and at the usual time.
pub fn append(log: &mut PartitionLog<MemDisk>, spec: &Spec) -> Appended {
    append_bytes(log, 0, &spec.build(), Origin::Client)
}

pub fn append_bytes(
    log: &mut PartitionLog<MemDisk>,
    leader_epoch: i32,
    bytes: &[u8],
    origin: Origin,
) -> Appended {
    let validated = Validated::trusted(&Batch::parse(bytes).unwrap());
    log.append_as_leader(clock(), epoch(leader_epoch), bytes, &validated, origin)
        .unwrap()
}

/// `count` batches of `records` records each.
pub fn fill(log: &mut PartitionLog<MemDisk>, count: usize, records: usize) {
    for _ in 0..count {
        append(log, &Spec::of(records));
    }
}

/// Runs a sync job to its end.
pub fn sync(log: &mut PartitionLog<MemDisk>) {
    if let Some(job) = log.sync_job(clock()).unwrap() {
        log.synced(job.run(&Blocking::enter())).unwrap();
    }
}

/// Reads and takes the bytes of the region.
pub fn read(
    log: &mut PartitionLog<MemDisk>,
    from: i64,
    up_to: i64,
    max_bytes: u64,
) -> Result<(Vec<u8>, LocalRead<<MemDisk as highwater_disk::Disk>::File>), ReadError> {
    match log.read(at(from), at(up_to), max_bytes, true)? {
        ReadResult::Local(local) => Ok((bytes_of(&local), local)),
        ReadResult::Remote => panic!("nothing is remote"),
    }
}

pub fn bytes_of(local: &LocalRead<<MemDisk as highwater_disk::Disk>::File>) -> Vec<u8> {
    use highwater_disk::DiskFile as _;
    let Some(region) = &local.region else {
        return Vec::new();
    };
    let mut bytes = vec![0; usize::try_from(region.len).unwrap()];
    let read = region.file.read_at(region.position, &mut bytes).unwrap();
    bytes.truncate(read);
    bytes
}

/// (base offset, last offset) of whole batches in `bytes`, CRCs checked.
pub fn batches(bytes: &[u8]) -> Vec<(i64, i64)> {
    Batches::new(bytes)
        .map(|batch| {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            (
                batch.header().base_offset.raw(),
                batch.header().last_offset().raw(),
            )
        })
        .collect()
}

/// Every batch of the log, read as a consumer would.
pub fn read_all(log: &mut PartitionLog<MemDisk>) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    let mut from = log.log_start_offset().raw();
    let end = log.log_end_offset().raw();
    while from < end {
        let (bytes, _) = read(log, from, end, 100_000).unwrap();
        let part = batches(&bytes);
        assert!(!part.is_empty(), "nothing at {from} below {end}");
        from = part.last().unwrap().1 + 1;
        all.extend(part);
    }
    all
}
