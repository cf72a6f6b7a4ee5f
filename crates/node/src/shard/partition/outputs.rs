use highwater_disk::Disk;
use highwater_replication::{Output, Replica};
use highwater_types::{ErrorCode, LeaderEpoch, Now, TopicIdPartition, TopicPartition};

use super::super::{Effects, Shard};
use super::OnlinePartition;
use crate::journal::{Happening, Level};

impl<D: Disk> Shard<D> {
    /// Lets a partition's replica handle something and performs what it puts out. Does nothing
    /// when the partition's log is not open.
    pub(crate) fn with_replica(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        out: &mut Effects<D>,
        handle: impl FnOnce(&mut Replica, &mut Vec<Output>),
    ) {
        let mut outputs = std::mem::take(&mut self.outputs);
        if let Some(online) = self.partitions.online_mut(id) {
            // Whoever fetched before this happened did so then.
            self.fetch.tell_heard(id, &mut online.replica);
            handle(&mut online.replica, &mut outputs);
            for output in outputs.drain(..) {
                self.perform(now, id, output, out);
            }
        }
        outputs.clear();
        self.outputs = outputs;
    }

    pub(crate) fn perform(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        output: Output,
        out: &mut Effects<D>,
    ) {
        match output {
            Output::Leads {
                epoch,
                start_offset,
            } => {
                if let Some(OnlinePartition { log, .. }) = self.partitions.online_mut(id) {
                    log.assign_leader_epoch(epoch);
                }
                let happening = |partition| Happening::Leads {
                    partition,
                    epoch,
                    start_offset,
                };
                self.partition_changed(id, Level::Trace, happening, out);
            }
            Output::LeadsNoMore { epoch } => self.lead_no_more(id, epoch, out),
            Output::Follows { leader, epoch } => {
                self.partitions.mark_changed(id);
                if let Some(leader) = leader {
                    let happening = |partition| Happening::Follows {
                        partition,
                        leader,
                        epoch,
                    };
                    self.journal_of(id, Level::Trace, happening, out);
                }
            }
            Output::HighWatermark { from, to } => {
                self.checkpoints.note_high_watermark();
                let happening = |partition| Happening::HighWatermark {
                    partition,
                    from,
                    to,
                };
                self.partition_changed(id, Level::Trace, happening, out);
            }
            Output::ProposeIsr(proposal) => self.propose_isr(id, *proposal, out),
            Output::IsrChanged { from, to } => {
                let happening = |partition| Happening::IsrChanged {
                    partition,
                    from,
                    to,
                };
                self.partition_changed(id, Level::Info, happening, out);
            }
            Output::Flush => self.start_sync(now, id, out),
            Output::DataLoss { from, to } => {
                let why = "the log is cut below its high watermark";
                let happening = |partition| Happening::DataLoss {
                    partition,
                    from,
                    to,
                    why,
                };
                self.partition_changed(id, Level::Error, happening, out);
            }
        }
    }

    fn lead_no_more(&mut self, id: TopicIdPartition, epoch: LeaderEpoch, out: &mut Effects<D>) {
        self.groups_lead_no_more(id);
        let error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
        let failed = self.end_waiting_appends(id, error, out);
        // Usual at every stop; worth a line only when somebody was let down.
        let level = if failed > 0 {
            Level::Info
        } else {
            Level::Trace
        };
        let why = "the metadata no longer names this broker";
        let happening = |partition| Happening::LeadsNoMore {
            partition,
            epoch,
            why,
        };
        self.partition_changed(id, level, happening, out);
    }

    /// Marks a partition as changed and tells the journal why.
    pub(crate) fn partition_changed(
        &mut self,
        id: TopicIdPartition,
        level: Level,
        happening: impl FnOnce(TopicPartition) -> Happening,
        out: &mut Effects<D>,
    ) {
        self.partitions.mark_changed(id);
        self.journal_of(id, level, happening, out);
    }

    /// Tells the journal something about a partition. Costs nothing when nobody would hear it.
    pub(crate) fn journal_of(
        &self,
        id: TopicIdPartition,
        level: Level,
        happening: impl FnOnce(TopicPartition) -> Happening,
        out: &mut Effects<D>,
    ) {
        if (level > Level::Trace || self.settings.trace)
            && let Some(partition) = self.partitions.find(id)
        {
            self.journal(level, happening(partition.name.clone()), out);
        }
    }
}
