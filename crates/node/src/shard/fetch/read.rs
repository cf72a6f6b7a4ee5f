use highwater_disk::Disk;
use highwater_log::{FileRegion, PartitionLog, ReadResult};
use highwater_metadata::MetadataImage;
use highwater_replication::Role;
use highwater_types::{
    EpochEnd, ErrorCode, LeaderEpoch, NodeId, Now, Offset, ProducerId, TopicIdPartition,
};

use super::FetchPosition;
use super::replica::{FetchOutputs, FetchingReplica, Hearing, Noted};
use crate::authorizer::Authorizer;
use crate::machine::Region;
use crate::shard::partition::{OnlinePartition, PartitionTable};

/// For whom a partition is read: decides how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A client, up to the high watermark.
    Uncommitted(Of),
    /// A client, up to the last stable offset, with the list of aborted transactions.
    Committed(Of),
    /// A follower, up to the log end.
    Replica(FetchingReplica),
}

/// Which replica of a partition a client may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The leader's.
    Leader,
    /// That of a follower too (KIP-392).
    Any,
}

impl Reader {
    /// Whether it is a follower that says so.
    pub(crate) const fn is_replica(self) -> bool {
        matches!(self, Self::Replica(_))
    }

    const fn of(self) -> Of {
        match self {
            Self::Uncommitted(of) | Self::Committed(of) => of,
            Self::Replica(_) => Of::Leader,
        }
    }
}

/// What one partition of this shard said, all of it in one step.
#[derive(Debug)]
pub(crate) struct PartitionRead<F> {
    /// Anything but none leaves the other fields empty.
    pub(crate) error: ErrorCode,
    pub(crate) high_watermark: Offset,
    pub(crate) last_stable_offset: Offset,
    pub(crate) log_start_offset: Offset,
    /// Where the histories of client and leader part: no records then (KIP-595).
    pub(crate) diverging: Option<EpochEnd>,
    /// Told with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (KIP-951).
    pub(crate) leader: Option<CurrentLeader>,
    /// Transactions that a `read_committed` client must skip; `None` for others.
    pub(crate) aborted: Option<Vec<AbortedTransaction>>,
    pub(crate) records: Option<Region<F>>,
    /// The size of the first batch of `records`, which may be more than was asked for.
    pub(crate) first_batch_bytes: u64,
    /// More is readable than this read took.
    pub(crate) more: bool,
    /// The metadata refused it, not the partition: such an answer need not be at once when the
    /// client knows it already.
    pub(crate) unknown: bool,
    /// What the leader made of it, for a follower.
    pub(crate) noted: Noted,
}

/// The leader that a client should turn to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CurrentLeader {
    /// None while there is no leader.
    pub(crate) id: NodeId,
    pub(crate) epoch: LeaderEpoch,
}

/// A transaction whose records a `read_committed` client skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbortedTransaction {
    pub(crate) producer_id: ProducerId,
    pub(crate) first_offset: Offset,
}

/// A short look at a partition that a parked fetch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Readable bytes, counted no further than the fetch asked for.
    pub(crate) readable: u64,
    /// Something that completes the fetch at once: an error, or a divergence.
    pub(crate) urgent: bool,
    /// The high watermark; none beside an error.
    pub(crate) high_watermark: Offset,
}

impl Look {
    const URGENT: Self = Self {
        readable: 0,
        urgent: true,
        high_watermark: Offset::NONE,
    };
}

/// How many bytes of records an answer may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Bytes left.
    pub(crate) bytes: u64,
    /// The first batch of the answer is taken whole even if it is larger (KIP-74).
    pub(crate) at_least_one: bool,
}

/// What reading needs of a shard.
#[derive(Debug)]
pub(crate) struct ReadContext<'a, D: Disk> {
    pub(crate) now: Now,
    pub(crate) number: u16,
    pub(crate) shards: u16,
    pub(crate) image: &'a MetadataImage,
    pub(crate) partitions: &'a mut PartitionTable<D>,
    pub(crate) authorizer: &'a dyn Authorizer,
    /// What replicas put out because of a follower's fetch.
    pub(crate) outputs: &'a mut FetchOutputs,
}

/// Why a partition does not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error: ErrorCode,
    pub(crate) leader: Option<CurrentLeader>,
}

impl From<ErrorCode> for Refusal {
    fn from(error: ErrorCode) -> Self {
        Self {
            error,
            leader: None,
        }
    }
}

impl From<&highwater_log::AbortedTransaction> for AbortedTransaction {
    fn from(found: &highwater_log::AbortedTransaction) -> Self {
        Self {
            producer_id: found.producer_id,
            first_offset: found.first_offset,
        }
    }
}

impl<F> PartitionRead<F> {
    /// An error in place of data.
    pub(crate) const fn refused(error: ErrorCode) -> Self {
        Self {
            error,
            high_watermark: Offset::NONE,
            last_stable_offset: Offset::NONE,
            log_start_offset: Offset::NONE,
            diverging: None,
            leader: None,
            aborted: None,
            records: None,
            first_batch_bytes: 0,
            more: false,
            unknown: false,
            noted: Noted::Not,
        }
    }

    /// What the metadata does not know. Kafka's list of aborted transactions is empty here and
    /// null in the other errors.
    pub(crate) fn unknown(error: ErrorCode) -> Self {
        Self {
            aborted: Some(Vec::new()),
            unknown: true,
            ..Self::refused(error)
        }
    }

    /// Bytes of records.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.as_ref().map_or(0, |it| it.len)
    }

    /// Whether it completes a fetch at once.
    pub(crate) const fn is_urgent(&self) -> bool {
        self.error.is_error() || self.diverging.is_some()
    }

    /// Cuts the records to what the answer may still take of one partition, `max_bytes` at most,
    /// and takes them off the budget. Only the answer's first batch may be larger.
    pub(crate) fn fit(&mut self, max_bytes: u32, budget: &mut Budget) {
        let Some(records) = &mut self.records else {
            return;
        };
        let least = if budget.at_least_one {
            self.first_batch_bytes
        } else {
            0
        };
        let most = budget.bytes.min(u64::from(max_bytes)).max(least);
        if most < self.first_batch_bytes {
            self.records = None;
            // As in Kafka, which finds a part of a batch, gives it away and leaves no list.
            self.aborted = self
                .aborted
                .take()
                .filter(|_| most == 0)
                .map(|_| Vec::new());
            self.more = true;
            return;
        }
        if records.len > most {
            records.len = most;
            self.more = true;
        }
        budget.bytes = budget.bytes.saturating_sub(records.len);
        budget.at_least_one = false;
    }
}

impl<D: Disk> ReadContext<'_, D> {
    /// The leader's log of a partition of this shard.
    ///
    /// # Errors
    /// In Kafka's order: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR,
    /// FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH for another epoch than the current one, and
    /// NOT_LEADER_OR_FOLLOWER.
    pub(crate) fn leader(
        &self,
        at: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
    ) -> Result<&OnlinePartition<D>, Refusal> {
        self.replica_of(at, current_leader_epoch, Of::Leader)
    }

    /// The log of a partition of this shard, whether it leads or follows.
    ///
    /// # Errors
    /// As [`ReadContext::leader`].
    pub(crate) fn replica(
        &self,
        at: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
    ) -> Result<&OnlinePartition<D>, Refusal> {
        self.replica_of(at, current_leader_epoch, Of::Any)
    }

    /// As [`ReadContext::leader`]; a follower's log too if any replica will do (KIP-392).
    fn replica_of(
        &self,
        at: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        of: Of,
    ) -> Result<&OnlinePartition<D>, Refusal> {
        let Some(partition) = self.partitions.find(at) else {
            return Err(self.not_here(at));
        };
        let online = partition.online().map_err(|error| {
            let not_leader = error == ErrorCode::NOT_LEADER_OR_FOLLOWER;
            Refusal {
                error,
                leader: not_leader.then(|| self.current_leader(at)).flatten(),
            }
        })?;
        let epoch = online.replica.leader_epoch();
        let refuse = |error| Refusal {
            error,
            leader: self.current_leader(at),
        };
        let checks_epoch = current_leader_epoch != LeaderEpoch::NONE;
        #[cfg(feature = "planted-bugs")]
        let checks_epoch = checks_epoch
            && !highwater_types::is_planted(highwater_types::PlantedBug::SkipTheEpochCheckOnFetch);
        if checks_epoch {
            if current_leader_epoch < epoch {
                return Err(refuse(ErrorCode::FENCED_LEADER_EPOCH));
            }
            if current_leader_epoch > epoch {
                return Err(Refusal::from(ErrorCode::UNKNOWN_LEADER_EPOCH));
            }
        }
        let serves = match of {
            Of::Leader => online.replica.is_leader(),
            Of::Any => *online.replica.role() != Role::None,
        };
        if !serves {
            return Err(refuse(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        }
        Ok(online)
    }

    /// Reads a partition of this shard. A follower's fetch is noted first, so that the answer
    /// already tells what it moved.
    pub(crate) fn read(
        &mut self,
        at: TopicIdPartition,
        position: &FetchPosition,
        reader: Reader,
        hearing: Hearing,
        budget: &mut Budget,
    ) -> PartitionRead<D::File> {
        match self.try_read(at, position, reader, hearing, budget) {
            Ok(read) => read,
            Err(refusal) => PartitionRead {
                leader: refusal.leader,
                noted: Noted::Refused,
                ..PartitionRead::refused(refusal.error)
            },
        }
    }

    /// Looks whether a parked fetch has something new to read, without reading it. Bytes are
    /// counted only when `exact`; otherwise one stands for any.
    pub(crate) fn look(
        &mut self,
        at: TopicIdPartition,
        position: &FetchPosition,
        reader: Reader,
        exact: bool,
    ) -> Look {
        if self.check_fetch(at, position, reader).is_err() {
            return Look::URGENT;
        }
        let Some(online) = self.partitions.online_mut(at) else {
            return Look::URGENT;
        };
        let end = read_end(online, reader);
        let high_watermark = online.high_watermark();
        let readable = |readable| Look {
            readable,
            urgent: false,
            high_watermark,
        };
        let log = &mut online.log;
        if position.offset < log.log_start_offset() || position.offset > log.log_end_offset() {
            return Look::URGENT;
        }
        if !matches!(diverges(log, position), Ok(None)) {
            return Look::URGENT;
        }
        if position.offset >= end {
            return readable(0);
        }
        if !exact {
            return readable(1);
        }
        match log.read(position.offset, end, u64::from(position.max_bytes), true) {
            Ok(ReadResult::Local(local)) => readable(local.region.map_or(0, |region| region.len)),
            Ok(ReadResult::Remote) | Err(_) => Look::URGENT,
        }
    }

    fn try_read(
        &mut self,
        at: TopicIdPartition,
        position: &FetchPosition,
        reader: Reader,
        hearing: Hearing,
        budget: &mut Budget,
    ) -> Result<PartitionRead<D::File>, Refusal> {
        let online = self.check_fetch(at, position, reader)?;
        let log = &online.log;
        let diverging = diverges(log, position)?;
        let in_range = log.log_start_offset()..=log.log_end_offset();
        let is_out = !in_range.contains(&position.offset);
        let mut noted = Noted::Not;
        if let Reader::Replica(replica) = reader {
            noted = if is_out || diverging.is_some() {
                Noted::Refused
            } else {
                self.note_follower(at, position, replica, hearing)?
            };
        }
        let online = self.partitions.online_mut(at).expect("it was found");
        let mut read = PartitionRead {
            high_watermark: online.high_watermark(),
            last_stable_offset: online.last_stable_offset(),
            log_start_offset: online.log.log_start_offset(),
            diverging,
            noted,
            ..PartitionRead::refused(ErrorCode::NONE)
        };
        if diverging.is_some() {
            return Ok(read);
        }
        if matches!(reader, Reader::Committed(_)) {
            read.aborted = Some(Vec::new());
        }
        if is_out {
            return Err(Refusal::from(ErrorCode::OFFSET_OUT_OF_RANGE));
        }
        read_records(online, position, reader, budget, &mut read)?;
        Ok(read)
    }

    /// The log that serves a fetch.
    ///
    /// # Errors
    /// As [`ReadContext::leader`], and refuses who only claims to be a follower of it.
    fn check_fetch(
        &self,
        at: TopicIdPartition,
        position: &FetchPosition,
        reader: Reader,
    ) -> Result<&OnlinePartition<D>, Refusal> {
        let online = self.replica_of(at, position.current_leader_epoch, reader.of())?;
        if let Reader::Replica(replica) = reader {
            self.check_follower(at, online, position, replica)?;
        }
        Ok(online)
    }

    fn not_here(&self, at: TopicIdPartition) -> Refusal {
        if self.image.topic(at.topic_id).is_none() {
            return Refusal::from(ErrorCode::UNKNOWN_TOPIC_ID);
        }
        match self.current_leader(at) {
            Some(leader) => {
                let error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
                Refusal {
                    error,
                    leader: Some(leader),
                }
            }
            None => Refusal::from(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        }
    }

    pub(super) fn current_leader(&self, at: TopicIdPartition) -> Option<CurrentLeader> {
        let partition = self.image.partition(at)?;
        Some(CurrentLeader {
            id: partition.leader,
            epoch: partition.leader_epoch,
        })
    }
}

/// Finds the records that an answer still has room for.
fn read_records<D: Disk>(
    online: &mut OnlinePartition<D>,
    position: &FetchPosition,
    reader: Reader,
    budget: &mut Budget,
    read: &mut PartitionRead<D::File>,
) -> Result<(), Refusal> {
    let end = read_end(online, reader);
    let log = &mut online.log;
    if position.offset >= end {
        return Ok(());
    }
    let max_bytes = budget.bytes.min(u64::from(position.max_bytes));
    if max_bytes == 0 && !budget.at_least_one {
        read.more = true;
        return Ok(());
    }
    let found = log.read(position.offset, end, max_bytes, budget.at_least_one);
    let local = match found.map_err(|why| Refusal::from(why.error_code()))? {
        ReadResult::Local(local) => local,
        ReadResult::Remote => return Err(Refusal::from(ErrorCode::OFFSET_OUT_OF_RANGE)),
    };
    read.more = local.more;
    let Some(region) = local.region else {
        if local.first_batch_bytes > 0 {
            // As in `fit`.
            read.aborted = None;
        }
        return Ok(());
    };
    if matches!(reader, Reader::Committed(_)) {
        let aborted = log.aborted_transactions(position.offset, local.end_offset);
        read.aborted = Some(aborted.iter().map(AbortedTransaction::from).collect());
    }
    let FileRegion {
        file,
        position: from,
        len,
    } = region;
    read.records = Some(Region {
        file,
        position: from,
        len,
    });
    read.first_batch_bytes = local.first_batch_bytes;
    read.fit(position.max_bytes, budget);
    Ok(())
}

/// Exclusive end of what `reader` may read.
fn read_end<D: Disk>(online: &OnlinePartition<D>, reader: Reader) -> Offset {
    match reader {
        #[cfg(feature = "planted-bugs")]
        Reader::Uncommitted(_)
            if highwater_types::is_planted(
                highwater_types::PlantedBug::ServeAboveTheHighWatermark,
            ) =>
        {
            online.log.log_end_offset()
        }
        Reader::Uncommitted(_) => online.high_watermark(),
        Reader::Committed(_) => online.last_stable_offset(),
        Reader::Replica(_) => online.log.log_end_offset(),
    }
}

/// Compares the epoch of the client's last record with the leader's history (KIP-595).
fn diverges<D: Disk>(
    log: &PartitionLog<D>,
    position: &FetchPosition,
) -> Result<Option<EpochEnd>, Refusal> {
    let last = position.last_fetched_epoch;
    if last == LeaderEpoch::NONE {
        return Ok(None);
    }
    let out_of_range = Refusal::from(ErrorCode::OFFSET_OUT_OF_RANGE);
    let end = log.end_offset_for_epoch(last).ok_or(out_of_range)?;
    if position.offset < log.log_start_offset() {
        return Err(out_of_range);
    }
    let parted = end.epoch < last || end.end_offset < position.offset;
    Ok(parted.then_some(end))
}
