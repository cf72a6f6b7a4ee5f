//! Loading: a coordinator replays its whole log before it answers anybody.
//!
//! Jobs read the log in chunks, check and decompress; each chunk is replayed in a step of its own,
//! so that no step is long and no job holds much.

use std::fmt;
use std::sync::Arc;

use highwater_coordinator::{Coordinator, ReplayedAt};
use highwater_disk::{Blocking, Disk, DiskError, DiskFile as _};
use highwater_log::{FileRegion, ReadError, ReadResult};
use highwater_records::{
    BatchError, BatchHeader, Batches, Decompressor, EndTransactionMarker, Records,
};
use highwater_types::{Millis, Now, Offset, TopicIdPartition};
use rand_chacha::rand_core::RngCore as _;

use super::GroupState;
use super::slot::{Loading, Slot, SlotState};
use crate::job::{Job, Work};
use crate::journal::{Happening, Level};
use crate::machine::{Effect, Token};
use crate::shard::{Effects, Shard};

/// A load that lacked memory or descriptors goes on after this time.
const LOAD_AGAIN_AFTER: Millis = Millis::new(1_000);

/// A job: reads batches of a coordinator's log.
pub struct ReadGroups<D: Disk> {
    file: Arc<D::File>,
    position: u64,
    len: u64,
    /// Batches that end at or below it were replayed.
    from: Offset,
    decompressed_bytes_max: u64,
}

/// What [`ReadGroups`] brought.
pub type GroupsRead = Result<Vec<LoadedBatch>, LoadError>;

/// A batch whose checksum is right, with its records as they were before compression.
#[derive(Clone, Debug)]
pub struct LoadedBatch {
    header: BatchHeader,
    records: Vec<u8>,
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Bytes that are no batch.
    #[error("batch at or after offset {from}: {why}")]
    Batch {
        /// Where the read began.
        from: Offset,
        /// What is wrong.
        why: BatchError,
    },
}

impl<D: Disk> fmt::Debug for ReadGroups<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "batches from {} in [{}, +{})",
            self.from, self.position, self.len
        )
    }
}

impl<D: Disk> ReadGroups<D> {
    /// Does the work.
    ///
    /// # Errors
    /// When the disk refuses, or the bytes are not what a leader appends.
    pub fn run(self, _b: &Blocking) -> GroupsRead {
        let len = usize::try_from(self.len).expect("a read is bounded by a segment");
        let mut bytes = vec![0; len];
        let mut got = 0;
        while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(self.position + got as u64, rest)? {
                0 => break,
                more => got += more,
            }
        }
        bytes.truncate(got);
        let from = self.from;
        self.decode(&bytes)
            .map_err(|why| LoadError::Batch { from, why })
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<LoadedBatch>, BatchError> {
        let mut decompressor = Decompressor::new();
        let mut loaded = Vec::new();
        // The last one may be cut where the read ended: it is not given out.
        for batch in Batches::new(bytes) {
            let batch = batch?;
            let header = *batch.header();
            if header.next_offset() <= self.from {
                continue;
            }
            batch.check_crc()?;
            let records = batch
                .open_with(&mut decompressor, self.decompressed_bytes_max)?
                .into_records_bytes();
            loaded.push(LoadedBatch { header, records });
        }
        Ok(loaded)
    }
}

impl LoadedBatch {
    /// Replays the batch; how many records it has, or what is wrong with it.
    fn replay(&self, coordinator: &mut Coordinator) -> Result<u64, String> {
        let header = &self.header;
        let mut count = 0;
        for record in Records::over(*header, &self.records) {
            let record = record.map_err(|why| why.to_string())?;
            count += 1;
            if header.attributes.is_control() {
                let marker = EndTransactionMarker::of(&record).map_err(|why| why.to_string())?;
                if let Some(marker) = marker {
                    coordinator.replay_transaction_end(
                        header.producer_id,
                        marker.committed,
                        header.next_offset(),
                    );
                }
                continue;
            }
            let Some(key) = record.key else {
                return Err(format!("the record at offset {} has no key", record.offset));
            };
            let at = ReplayedAt {
                offset: record.offset,
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                transactional: header.attributes.is_transactional(),
                timestamp: record.timestamp,
            };
            let replayed = coordinator.replay(at, key, record.value);
            replayed.map_err(|why| why.to_string())?;
        }
        Ok(count)
    }
}

impl<D: Disk> Shard<D> {
    /// A partition of `__consumer_offsets` leads here: its coordinator is loaded.
    pub(super) fn begin_load(&mut self, now: Now, at: TopicIdPartition, out: &mut Effects<D>) {
        let Some(online) = self.partitions.online_mut(at) else {
            return;
        };
        let start = online.log.log_start_offset();
        let mut seed = [0; 32];
        self.random.fill_bytes(&mut seed);
        let settings = Arc::clone(&self.groups.settings.coordinator);
        let slot = Slot::loading(Coordinator::new(settings, seed), start);
        self.groups.slots.insert(at, slot);
        self.load_on(now, at, out);
    }

    /// Reads the next chunk, or lets the coordinator serve when there is none.
    pub(super) fn load_on(&mut self, now: Now, at: TopicIdPartition, out: &mut Effects<D>) {
        let Some(Slot {
            state: SlotState::Loading(loading),
            ..
        }) = self.groups.slots.get_mut(&at)
        else {
            return;
        };
        let settings = &self.groups.settings;
        let Some(partition) = self.partitions.find_mut(at) else {
            return;
        };
        let dir = partition.dir;
        let Ok(online) = partition.online_mut() else {
            return;
        };
        // Retention may have been faster.
        loading.next = loading.next.max(online.log.log_start_offset());
        let end = online.log.log_end_offset();
        let read = online
            .log
            .read(loading.next, end, settings.load_bytes, true);
        let why = match read {
            Ok(ReadResult::Local(read)) => match read.region {
                Some(region) => {
                    let limit = settings.decompressed_batch_bytes_max;
                    let work = Work::ReadGroups(ReadGroups::new(region, loading.next, limit));
                    let token = self.new_token();
                    self.groups.begin_reading(at, token);
                    out.push(Effect::Job {
                        token,
                        job: Job { dir, work },
                    });
                    return;
                }
                None => return self.loaded(now, at, out),
            },
            Ok(ReadResult::Remote) => "its log begins in tiered storage".to_owned(),
            Err(ReadError::Disk(why)) if why.may_pass() => {
                return self.load_later(now, at, &why, out);
            }
            Err(why) => why.to_string(),
        };
        self.load_failed(at, why, out);
    }

    /// A job has read: its batches are replayed.
    pub(crate) fn handle_groups_read(
        &mut self,
        now: Now,
        token: Token,
        read: GroupsRead,
        out: &mut Effects<D>,
    ) {
        let Some((at, loading)) = self.groups.end_reading(token) else {
            return;
        };
        let replayed = match read {
            Err(LoadError::Disk(why)) if why.may_pass() => {
                return self.load_later(now, at, &why, out);
            }
            Err(why) => Err(why.to_string()),
            Ok(batches) => loading.replay(&batches),
        };
        match replayed {
            Ok(()) => self.load_on(now, at, out),
            Err(why) => self.load_failed(at, why, out),
        }
    }

    /// The disk, or the process, lacks something that it may have again soon.
    fn load_later(
        &mut self,
        now: Now,
        at: TopicIdPartition,
        why: &DiskError,
        out: &mut Effects<D>,
    ) {
        self.groups
            .set_tick(at, Some(now.mono.plus(LOAD_AGAIN_AFTER)));
        let why = format!("{why}; their load is tried again");
        let happening = |partition| Happening::GroupsNotLoaded { partition, why };
        self.journal_of(at, Level::Warn, happening, out);
    }

    fn loaded(&mut self, now: Now, at: TopicIdPartition, out: &mut Effects<D>) {
        let Some(slot) = self.groups.slots.get_mut(&at) else {
            return;
        };
        let before = std::mem::replace(&mut slot.state, SlotState::Failed);
        let SlotState::Loading(loading) = before else {
            unreachable!("only what is being loaded is loaded");
        };
        let Loading {
            coordinator,
            records,
            deleted,
            ..
        } = *loading;
        slot.state = SlotState::Active(Some(Box::new(coordinator)));
        let level = if records > 0 {
            Level::Info
        } else {
            Level::Trace
        };
        let happening = |partition| Happening::GroupsLoaded { partition, records };
        self.journal_of(at, level, happening, out);
        self.with_coordinator(now, at, out, |it, _, log, outputs| {
            it.loaded(now, log, outputs);
            if !deleted.is_empty() {
                it.topics_deleted(now, &deleted, log, outputs);
            }
        });
    }

    fn load_failed(&mut self, at: TopicIdPartition, why: String, out: &mut Effects<D>) {
        if let Some(slot) = self.groups.slots.get_mut(&at) {
            slot.state = SlotState::Failed;
        }
        let happening = |partition| Happening::GroupsNotLoaded { partition, why };
        self.journal_of(at, Level::Error, happening, out);
    }
}

impl GroupState {
    fn begin_reading(&mut self, at: TopicIdPartition, token: Token) {
        if let Some(Slot {
            state: SlotState::Loading(loading),
            ..
        }) = self.slots.get_mut(&at)
        {
            loading.reading = Some(token);
            self.reading.insert(token, at);
        }
    }

    /// The load that a read was for, unless it was given up.
    fn end_reading(&mut self, token: Token) -> Option<(TopicIdPartition, &mut Loading)> {
        let at = self.reading.remove(&token)?;
        let SlotState::Loading(loading) = &mut self.slots.get_mut(&at)?.state else {
            return None;
        };
        if loading.reading != Some(token) {
            return None;
        }
        loading.reading = None;
        Some((at, loading))
    }
}

impl Loading {
    fn replay(&mut self, batches: &[LoadedBatch]) -> Result<(), String> {
        if batches.is_empty() {
            return Err(format!("no batch at offset {} or after it", self.next));
        }
        for batch in batches {
            self.records += batch.replay(&mut self.coordinator)?;
            self.next = batch.header.next_offset();
        }
        Ok(())
    }
}

impl<D: Disk> ReadGroups<D> {
    fn new(region: FileRegion<D::File>, from: Offset, decompressed_bytes_max: u64) -> Self {
        let FileRegion {
            file,
            position,
            len,
        } = region;
        Self {
            file,
            position,
            len,
            from,
            decompressed_bytes_max,
        }
    }
}
