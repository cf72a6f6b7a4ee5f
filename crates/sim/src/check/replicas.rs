//! I-08 and I-10: what a replica says of itself.

use highwater_disk::MemDisk;
use highwater_node::shard::partition::{OnlinePartition, Partition};
use highwater_replication::Role;
use highwater_types::{EpochEntry, LeaderEpoch, NodeId, Offset, PartitionEpoch};

/// A replica as it was after the event before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastSeen {
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) partition_epoch: PartitionEpoch,
    pub(super) role: SeenRole,
    pub(super) log_start_offset: Offset,
    last_stable_offset: Offset,
    pub(super) high_watermark: Offset,
    pub(super) flushed_offset: Offset,
    pub(super) log_end_offset: Offset,
    epochs: Vec<EpochEntry>,
    /// `min.insync.replicas`, as the topic asks for it.
    pub(super) min_in_sync_replicas: usize,
}

/// What it believes to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SeenRole {
    /// Nothing yet.
    None,
    /// It follows, or waits for a leader.
    Follower(Option<NodeId>),
    /// It leads.
    Leader(SeenLeader),
}

/// The ISR as a leader has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenLeader {
    /// The log end offset when its epoch began.
    pub(super) epoch_start_offset: Offset,
    pub(super) committed: Vec<NodeId>,
    /// With who is about to join.
    pub(super) maximal: Vec<NodeId>,
    pub(super) has_pending: bool,
}

impl LastSeen {
    /// What a replica says of itself now.
    pub(super) fn of(online: &OnlinePartition<MemDisk>) -> Self {
        let (log, replica) = (online.log(), online.replica());
        let role = match replica.role() {
            Role::None => SeenRole::None,
            Role::Follower(follower) => SeenRole::Follower(follower.leader),
            Role::Leader(leader) => SeenRole::Leader(SeenLeader {
                epoch_start_offset: leader.epoch_start_offset,
                committed: leader.isr.committed().to_vec(),
                maximal: leader.isr.maximal().collect(),
                has_pending: leader.isr.pending().is_some(),
            }),
        };
        Self {
            leader_epoch: replica.leader_epoch(),
            partition_epoch: replica.partition_epoch(),
            role,
            log_start_offset: log.log_start_offset(),
            last_stable_offset: online.last_stable_offset(),
            high_watermark: online.high_watermark(),
            flushed_offset: log.flushed_offset(),
            log_end_offset: log.log_end_offset(),
            epochs: log.epochs().entries.to_vec(),
            min_in_sync_replicas: replica.config().min_in_sync_replicas,
        }
    }

    /// Whether the replica still says the same. Looks before it copies: most events change nothing.
    pub(super) fn still_holds(&self, online: &OnlinePartition<MemDisk>) -> bool {
        let (log, replica) = (online.log(), online.replica());
        self.log_end_offset == log.log_end_offset()
            && self.high_watermark == online.high_watermark()
            && self.leader_epoch == replica.leader_epoch()
            && self.partition_epoch == replica.partition_epoch()
            && self.log_start_offset == log.log_start_offset()
            && self.flushed_offset == log.flushed_offset()
            && self.min_in_sync_replicas == replica.config().min_in_sync_replicas
            && self.epochs == log.epochs().entries
            && self.role.still_holds(replica.role())
            && self.last_stable_offset == online.last_stable_offset()
    }

    /// What it says of the ISR, if it leads.
    pub(super) const fn leads(&self) -> Option<&SeenLeader> {
        match &self.role {
            SeenRole::Leader(leader) => Some(leader),
            SeenRole::None | SeenRole::Follower(_) => None,
        }
    }

    /// What a replica could have said: a role, its leader epoch and its offsets.
    #[cfg(test)]
    pub(super) const fn said(
        role: SeenRole,
        leader_epoch: LeaderEpoch,
        high_watermark: Offset,
        log_end_offset: Offset,
    ) -> Self {
        Self {
            leader_epoch,
            partition_epoch: PartitionEpoch::ZERO,
            role,
            log_start_offset: Offset::ZERO,
            last_stable_offset: high_watermark,
            high_watermark,
            flushed_offset: Offset::ZERO,
            log_end_offset,
            epochs: Vec::new(),
            min_in_sync_replicas: 2,
        }
    }

    /// Says another high watermark than the replica did, so that the checker has to miss it.
    #[cfg(test)]
    pub(super) const fn plant_high_watermark(&mut self, high_watermark: Offset) {
        self.high_watermark = high_watermark;
    }

    /// Checks it by itself and against what it said before, in the same process.
    pub(super) fn check(
        &self,
        partition: &Partition<MemDisk>,
        online: &OnlinePartition<MemDisk>,
        before: Option<&Self>,
    ) {
        let name = partition.name();
        let offsets = [
            self.log_start_offset,
            self.last_stable_offset,
            self.high_watermark,
            self.log_end_offset,
        ];
        assert!(
            offsets.is_sorted(),
            "I-08 {name}: start, lso, hw, leo are {offsets:?}"
        );
        assert_eq!(
            online.replica().log_end_offset(),
            self.log_end_offset,
            "{name}: replica and log disagree on the log end offset"
        );
        if let Some(before) = before {
            self.check_since(partition, before);
        }
        self.check_epochs(partition);
    }

    fn check_since(&self, partition: &Partition<MemDisk>, before: &Self) {
        let name = partition.name();
        let (was, is) = (before.leader_epoch, self.leader_epoch);
        assert!(
            was <= is,
            "I-20 {name}: its leader epoch fell from {was} to {is}"
        );
        let (Some(led), Some(leads)) = (before.leads(), self.leads()) else {
            return;
        };
        if before.leader_epoch < self.leader_epoch {
            return;
        }
        let (was, is) = (led.epoch_start_offset, leads.epoch_start_offset);
        assert_eq!(
            was, is,
            "I-13 {name}: the start of epoch {} moved (KAFKA-13790)",
            self.leader_epoch
        );
        let (was, is) = (before.high_watermark, self.high_watermark);
        assert!(
            was <= is,
            "I-08 {name}: the high watermark fell from {was} to {is}"
        );
        assert!(
            before.log_start_offset <= self.log_start_offset,
            "I-08 {name}: the log start offset fell"
        );
        let minimum = self.min_in_sync_replicas.min(before.min_in_sync_replicas);
        let is_below = |leader: &SeenLeader| leader.committed.len() < minimum;
        assert!(
            was == is || !is_below(led) || !is_below(leads),
            "I-08 {name}: the high watermark rose to {is} while the ISR is {:?}",
            leads.committed
        );
    }

    fn check_epochs(&self, partition: &Partition<MemDisk>) {
        let name = partition.name();
        let rises =
            |a: &EpochEntry, b: &EpochEntry| a.epoch < b.epoch && a.start_offset < b.start_offset;
        assert!(
            self.epochs.is_sorted_by(rises),
            "I-10 {name}: {:?}",
            self.epochs
        );
        if let Some(newest) = self.epochs.last() {
            assert!(
                newest.start_offset <= self.log_end_offset,
                "I-10 {name}: {newest:?} above leo"
            );
            assert!(
                newest.epoch <= self.leader_epoch || self.role == SeenRole::None,
                "I-10 {name}: {newest:?} above the epoch"
            );
        }
    }
}

impl SeenRole {
    fn still_holds(&self, role: &Role) -> bool {
        match (self, role) {
            (Self::None, Role::None) => true,
            (Self::Follower(leader), Role::Follower(follower)) => *leader == follower.leader,
            (Self::Leader(seen), Role::Leader(leader)) => {
                seen.epoch_start_offset == leader.epoch_start_offset
                    && seen.has_pending == leader.isr.pending().is_some()
                    && seen.committed == leader.isr.committed()
                    && leader.isr.maximal().eq(seen.maximal.iter().copied())
            }
            _ => false,
        }
    }
}
