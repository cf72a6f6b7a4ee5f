//! The log of one partition.

mod append;
mod close;
mod read;
mod recent;
mod retain;
mod sync;
mod time_lookup;
mod truncate;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use highwater_disk::{Disk, DiskError, DiskFile as _, OpenMode};
use highwater_types::{
    EpochEnd, EpochHistory, LeaderEpoch, Mono, Now, Offset, TopicPartition, WallMs,
};

pub use self::append::{Appended, Origin};
pub(crate) use self::append::{MARKER_BYTES_MAX, producer_batch, write_snapshot};
pub use self::close::{CloseLog, Closed, DeleteLog};
pub use self::read::{FileRegion, LocalRead, ReadResult};
use self::recent::Recent;
pub use self::retain::{RemovedFiles, Retained};
pub use self::sync::{SyncLog, Synced};
pub use self::time_lookup::{TimeFound, TimeLookup, TimeLookupError};
use crate::checkpoint::committed;
use crate::config::LogConfig;
use crate::damage::{Damage, DamagedRange};
use crate::lazy_file::{LazyFile, UnsyncedFile};
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::producer_state::ProducerState;
use crate::segment::LogSegment;

/// One partition's log: batches in segments, with their indexes, leader epochs and producers.
///
/// Does file writes and small reads in its methods; whatever may block is a job (`SyncLog`,
/// `RemovedFiles`, `TimeLookup`, `CloseLog`, `DeleteLog`) that the owner runs elsewhere. Opened by
/// `OpenLog`.
///
/// The owner, in this order: (1) appends or reads; (2) runs a `sync_job` whenever its policy asks
/// for one, when `wants_flush` says so, and at `sync_retry_at`, and hands what it brings to
/// `synced`; (3) now and then calls `retain`; (4) ends with `close` or
/// `delete`. A log that is dropped without either is as after a crash.
///
/// Invariant: `log_start_offset <= log_end_offset`, `flushed_offset <= log_end_offset`; segments
/// rise in base offset without overlap, the last is active; the epoch cache ends at or below the
/// log end offset.
#[derive(Debug)]
pub struct PartitionLog<D: Disk> {
    disk: D,
    dir: PathBuf,
    topic_partition: TopicPartition,
    config: LogConfig,
    log_start_offset: Offset,
    segments: VecDeque<LogSegment<D>>,
    flushed_offset: Offset,
    producers: ProducerState,
    epochs: LeaderEpochCache,
    damage: Damage,
    recent: Recent,
    fence: Fence,
    flush: FlushState<D>,
    /// See [`PartitionLog::note_committed`].
    committed: LazyFile<D>,
}

/// Whether the log takes appends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fence {
    /// Yes.
    Open,
    /// A write failed: the bytes behind the last batch are unknown and must be cut first.
    TailUnknown,
    /// A sync failed: nothing more may be believed of this disk (KAFKA storage error).
    Failed(DiskError),
}

/// What the next sync job has to do.
#[derive(Debug)]
struct FlushState<D: Disk> {
    /// A job is out.
    in_flight: bool,
    /// The lowest offset that was cut off since that job was made: it did not sync what was
    /// written there afterwards.
    cut_since: Option<Offset>,
    /// Files were made or renamed.
    names_changed: bool,
    /// The epoch cache differs from its checkpoint.
    epochs_changed: bool,
    /// A segment was closed: Kafka flushes it then. Or recovery read what was not flushed.
    wanted: bool,
    /// Files that the last job had no descriptors for.
    unsynced: Vec<UnsyncedFile<D>>,
    /// What the damage checkpoint has; `None` when it must be written.
    damage_listed: Option<Vec<DamagedRange>>,
    /// Producer snapshots to be written: state covers the offsets below.
    snapshots: Vec<(Offset, Vec<u8>)>,
    /// No job before this, for the last one found the disk full.
    retry_at: Option<Mono>,
}

/// What a log of one segment looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// First offset that may be in it.
    pub base_offset: Offset,
    /// Exclusive end.
    pub end_offset: Offset,
    /// Bytes of its `.log` file.
    pub size_bytes: u64,
    /// Greatest timestamp, if any record has one.
    pub max_timestamp: Option<WallMs>,
}

/// What recovery found out about a log.
#[derive(Debug)]
pub(crate) struct LogParts<D: Disk> {
    pub(crate) disk: D,
    pub(crate) dir: PathBuf,
    pub(crate) topic_partition: TopicPartition,
    pub(crate) config: LogConfig,
    pub(crate) log_start_offset: Offset,
    pub(crate) segments: VecDeque<LogSegment<D>>,
    pub(crate) flushed_offset: Offset,
    pub(crate) producers: ProducerState,
    /// Snapshots that are missing on disk.
    pub(crate) snapshots: Vec<(Offset, Vec<u8>)>,
    /// What was recovered should be made durable soon.
    pub(crate) flush_wanted: bool,
    pub(crate) epochs: LeaderEpochCache,
    pub(crate) damage: Damage,
    /// What the damage checkpoint has; `None` when it must be written.
    pub(crate) damage_listed: Option<Vec<DamagedRange>>,
}

impl<D: Disk> PartitionLog<D> {
    pub(crate) fn from_parts(parts: LogParts<D>) -> Self {
        let committed = parts.dir.join(committed::FILE);
        let mut log = Self {
            committed: LazyFile::new(parts.disk.clone(), committed, OpenMode::Create),
            disk: parts.disk,
            dir: parts.dir,
            topic_partition: parts.topic_partition,
            config: parts.config,
            log_start_offset: parts.log_start_offset,
            segments: parts.segments,
            flushed_offset: parts.flushed_offset,
            producers: parts.producers,
            epochs: parts.epochs,
            damage: parts.damage,
            recent: Recent::default(),
            fence: Fence::Open,
            flush: FlushState {
                in_flight: false,
                cut_since: None,
                names_changed: true,
                epochs_changed: true,
                wanted: parts.flush_wanted,
                unsynced: Vec::new(),
                damage_listed: parts.damage_listed,
                snapshots: parts.snapshots,
                retry_at: None,
            },
        };
        // A process that is killed soon must not forget it.
        log.flush.wanted |= log.is_damage_unlisted();
        log.assert_invariants();
        log
    }

    /// Whose log this is.
    #[must_use]
    pub const fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// The log's directory, relative to its disk.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Puts another configuration in force, for everything from now on.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// First readable offset.
    #[must_use]
    pub const fn log_start_offset(&self) -> Offset {
        self.log_start_offset
    }

    /// First offset that is in local files; the same as the log start until there is tiered
    /// storage.
    #[must_use]
    pub const fn local_log_start_offset(&self) -> Offset {
        self.log_start_offset
    }

    /// Exclusive end: the offset of the next record.
    #[must_use]
    pub fn log_end_offset(&self) -> Offset {
        self.active().end_offset
    }

    /// The recovery point: everything below it survives a loss of power.
    #[must_use]
    pub const fn flushed_offset(&self) -> Offset {
        self.flushed_offset
    }

    /// The newest leader epoch that the log knows.
    #[must_use]
    pub fn last_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.entries().last().map(|entry| entry.epoch)
    }

    /// The history of leader epochs, for [`highwater_types::truncation_point`].
    #[must_use]
    pub fn epochs(&self) -> EpochHistory<'_> {
        EpochHistory {
            entries: self.epochs.entries(),
            log_end_offset: self.log_end_offset(),
        }
    }

    /// Where `epoch` ended in this log (OffsetForLeaderEpoch, diverging epochs).
    #[must_use]
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<EpochEnd> {
        self.epochs().end_of(epoch)
    }

    /// Bytes of all `.log` files.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    /// The segments, oldest first.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = SegmentInfo> + '_ {
        self.segments.iter().map(|segment| SegmentInfo {
            base_offset: segment.base_offset,
            end_offset: segment.end_offset,
            size_bytes: segment.size,
            max_timestamp: segment.max_timestamp(),
        })
    }

    /// Offsets whose bytes are known to be damaged. A read that starts in one is refused.
    #[must_use]
    pub fn damage(&self) -> &[DamagedRange] {
        self.damage.ranges()
    }

    /// What is known of idempotent producers.
    #[must_use]
    pub const fn producers(&self) -> &ProducerState {
        &self.producers
    }

    /// Forgets producers that have been idle for `producer.id.expiration.ms` by the wall clock.
    /// Returns how many.
    pub fn expire_producers(&mut self, now: Now) -> usize {
        let idle = self.config.producer_id_expiration_ms;
        self.producers.remove_expired(now.wall, idle)
    }

    /// Why the log takes no more appends, if a sync failed.
    #[must_use]
    pub const fn failure(&self) -> Option<&DiskError> {
        match &self.fence {
            Fence::Failed(why) => Some(why),
            Fence::Open | Fence::TailUnknown => None,
        }
    }

    /// Notes that `epoch` begins at the log end offset, even if nothing is ever written in it.
    pub fn assign_leader_epoch(&mut self, epoch: LeaderEpoch) {
        let end = self.log_end_offset();
        if self.epochs.assign(epoch, end) {
            self.flush.epochs_changed = true;
        }
        self.assert_invariants();
    }

    /// Leaves word that everything below `high_watermark` is flushed and committed, for a log that
    /// is in none of the directory's checkpoints: see [`checkpoint::committed`](committed). Writes
    /// a few bytes into the page cache.
    ///
    /// # Errors
    /// When the disk refuses. The word that stood there is still true.
    pub fn note_committed(&self, high_watermark: Offset) -> Result<(), DiskError> {
        let flushed = self.flushed_offset;
        assert!(
            high_watermark <= flushed,
            "committed {high_watermark} > flushed {flushed}"
        );
        let bytes = committed::encode(high_watermark);
        let file = self.committed.open()?;
        file.write_at(0, &[IoSlice::new(&bytes)])
    }

    /// Exclusive end for readers of committed data: the high watermark, or below it the first
    /// offset of the oldest transaction that is open or whose end lies above the high watermark.
    #[must_use]
    pub fn last_stable_offset(&self, high_watermark: Offset) -> Offset {
        self.producers.last_stable_offset(high_watermark)
    }

    /// Whether the damage checkpoint differs from what is known.
    fn is_damage_unlisted(&self) -> bool {
        let listed = self.flush.damage_listed.as_deref();
        listed != Some(self.damage.ranges())
    }

    fn active(&self) -> &LogSegment<D> {
        self.segments.back().expect("a log has an active segment")
    }

    fn active_mut(&mut self) -> &mut LogSegment<D> {
        self.segments
            .back_mut()
            .expect("a log has an active segment")
    }

    /// The number of the segment that `offset` belongs to: the last that begins at or below it.
    fn segment_of(&self, offset: Offset) -> Option<usize> {
        self.segments
            .partition_point(|segment| segment.base_offset <= offset)
            .checked_sub(1)
    }

    fn assert_invariants(&self) {
        let end = self.log_end_offset();
        assert!(
            self.log_start_offset <= end,
            "start {} > end {end}",
            self.log_start_offset
        );
        assert!(
            self.flushed_offset <= end,
            "flushed {} > end {end}",
            self.flushed_offset
        );
        if let Some(newest) = self.epochs.entries().last() {
            assert!(
                newest.start_offset <= end,
                "epoch {newest:?} begins above end {end}"
            );
        }
    }
}
