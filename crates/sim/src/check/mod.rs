//! The invariants, each by its name, looked at after every event of a run.
//!
//! A broken invariant is our own mistake: the checker panics with the id and the numbers, and the
//! run's seed or scenario leads back to it.
//!
//! - I-08 `HwMonotonic`, I-10 `EpochCache`: [`replicas`].
//! - I-18 `LogShape`, I-21 `Idempotence`: [`shape`], over the bytes as they reach the disk.
//! - I-09 `NoReadAboveHw`, I-17 `ConsistentRead`: [`history`], over what clients were told of a
//!   partition with one replica.
//! - I-01 to I-03, I-05 to I-07, I-09, I-11 to I-13, I-16, I-17, I-25, I-26 of partitions with
//!   several replicas: [`cluster`].
//! - I-04 `LeaderInIsr`, I-20 `EpochFencing`: [`controller`], over what is committed.
//! - I-19 `Metadata`: [`metadata_logs`].
//! - I-24 `Groups`: [`groups`], over the groups' log and what members are told.
//! - I-28 `Replay`: whoever runs a seed twice compares the hashes of the traces.

mod cluster;
mod controller;
mod groups;
mod history;
mod marks;
mod metadata_logs;
mod replicas;
mod shape;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::MemDisk;
use highwater_node::shard::partition::Partition;
use highwater_node::{Happening, JournalEntry, MachineId};
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_records::Batch;
use highwater_types::{Mono, NodeId, Offset, TopicIdPartition, TopicName, TopicPartition};

use self::cluster::{Cluster, CopyChange, Outcome};
use self::groups::GroupHistory;
pub(crate) use self::groups::{CoordinatorLife, FetchFloor, GROUPS_TOPIC, JoinFloor};
use self::history::History;
use self::marks::BatchMark;
use self::replicas::LastSeen;
pub(crate) use self::shape::stored_batches;
use self::shape::{BATCH_BYTES_MAX, LogBytes};
pub(crate) use self::verdict::Verdicts;
use crate::world::World;
use crate::world::clients::requests::{SentBatch, SentFetch};

/// A replica: which partition on which node.
type ReplicaKey = (NodeId, TopicIdPartition);

/// Everything that the checkers remember of a run.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    next_value: u64,
    /// Machines that were stepped since the last look.
    touched: BTreeSet<(NodeId, MachineId)>,
    last_seen: BTreeMap<ReplicaKey, LastSeen>,
    bytes: BTreeMap<ReplicaKey, LogBytes>,
    cluster: Cluster,
    history: History,
    /// What becomes of a broken invariant.
    pub(crate) verdicts: Verdicts,
    /// What groups and their members said and were told.
    pub(crate) groups: GroupHistory,
    /// Replicas whose process ended and that were not seen since.
    ended: BTreeMap<ReplicaKey, Ended>,
    /// Partitions whose loss of data was told since the last start of their node.
    told_losses: BTreeSet<(NodeId, TopicPartition)>,
    /// The same, since the last look.
    losses_now: BTreeSet<(NodeId, TopicPartition)>,
    /// Partitions whose damage was cut since the last look, to be copied again.
    copied_again: BTreeSet<(NodeId, TopicPartition)>,
    /// High watermarks that a loss of power left in a checkpoint.
    checkpointed: BTreeMap<(NodeId, TopicPartition), Offset>,
    /// What was looked at, for the summary of a run.
    pub(crate) counts: Counts,
}

/// How much a run looked at: a checker that saw nothing proves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Batches found in logs.
    pub(crate) batches: u64,
    /// Records acknowledged.
    pub(crate) acknowledged: u64,
    /// Records read by clients.
    pub(crate) read: u64,
    /// Records that a loss of power took and that had been acknowledged or read.
    pub(crate) lost_with_power: u64,
}

/// A replica at the moment when its process ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    log_end_offset: Offset,
    flushed_offset: Offset,
    power_lost: bool,
    flushes_each_message: bool,
}

impl Checker {
    /// Values that no record of this run had before.
    pub(crate) fn next_values(&mut self, count: u64) -> Vec<Vec<u8>> {
        let from = self.next_value;
        self.next_value += count;
        (from..self.next_value)
            .map(|number| format!("m{number}").into_bytes())
            .collect()
    }

    /// A machine is stepped: the next look is at what it owns.
    pub(crate) fn touched(&mut self, node: NodeId, machine: MachineId) {
        self.touched.insert((node, machine));
    }

    /// Looks at everything that the last event may have changed.
    pub(crate) fn after_event(&mut self, world: &World) {
        for (id, machine) in std::mem::take(&mut self.touched) {
            self.machine(world, id, machine);
        }
        self.losses_now.clear();
        self.copied_again.clear();
    }

    /// Looks at every replica of every running node.
    #[cfg(test)]
    pub(crate) fn everything(&mut self, world: &World) {
        for (id, node) in world.nodes() {
            for machine in node.process.iter().flat_map(|it| it.machine_ids()) {
                self.machine(world, *id, machine);
            }
        }
    }

    fn machine(&mut self, world: &World, id: NodeId, machine: MachineId) {
        let node = world.node(id);
        let Some(process) = &node.process else {
            return;
        };
        self.cluster.runs(id, node.life);
        match machine {
            MachineId::Control => {
                if let Some(high_watermark) = process.control.metadata_high_watermark() {
                    let (disks, verdicts) = (&node.disks, &mut self.verdicts);
                    self.cluster
                        .control_stepped(id, disks, high_watermark, verdicts);
                    self.cluster_outcomes(world.now());
                }
            }
            MachineId::Shard(number) => {
                let shard = process.shards.get(usize::from(number));
                for partition in shard.into_iter().flat_map(|it| it.partitions().iter()) {
                    self.replica(world.now(), (id, node.life), &node.disks, partition);
                }
            }
        }
    }

    /// Takes a journal entry of a node.
    pub(crate) fn journal(&mut self, node: NodeId, entry: &JournalEntry) {
        if let Happening::DataLoss { partition, .. } = &entry.happening {
            self.told_losses.insert((node, partition.clone()));
            self.losses_now.insert((node, partition.clone()));
        }
        if let Happening::Truncated {
            partition,
            leader_says,
            ..
        } = &entry.happening
        {
            self.told_losses.insert((node, partition.clone()));
            if leader_says.contains("damaged") {
                self.copied_again.insert((node, partition.clone()));
            }
        }
        // What cannot be read is told where it is found, and copied again from others.
        if let Happening::LogOpened {
            partition, report, ..
        } = &entry.happening
            && report.contains("DAMAGE")
        {
            self.told_losses.insert((node, partition.clone()));
        }
    }

    /// A story lets a replica lead that may have lost records.
    pub(crate) fn unclean_is_allowed(&mut self, partition: &TopicPartition) {
        self.cluster.unclean_is_allowed(partition);
    }

    /// A topic is to go, with all that clients were told of it.
    pub(crate) fn topic_is_deleted(&mut self, topic: &TopicName) {
        self.groups.topic_is_deleted(topic);
    }

    /// Whether a partition is left with one copy, and that has holes: nobody can copy it, and what
    /// waits for others waits for ever.
    pub(crate) fn has_holed_leader(&self) -> bool {
        self.cluster.has_holed_leader()
    }

    /// I-26: why things have not come to rest; `None` when everything is as it should be.
    pub(crate) fn why_not_settled(&self) -> Option<String> {
        self.cluster.why_not_settled()
    }

    /// A process ends: what its replicas had flushed is what a loss of power leaves.
    pub(crate) fn process_ends(&mut self, world: &World, id: NodeId) {
        self.told_losses.retain(|(node, _)| *node != id);
        self.touched.retain(|(node, _)| *node != id);
        self.cluster.process_ended(id);
        let Some(process) = &world.node(id).process else {
            return;
        };
        // A graceful stop closes logs before the process ends: what was seen last is flushed then.
        for (key, seen) in std::mem::take(&mut self.last_seen) {
            let log_end_offset = seen.log_end_offset;
            let closed = Ended {
                log_end_offset,
                flushed_offset: log_end_offset,
                power_lost: false,
                flushes_each_message: false,
            };
            if key.0 == id {
                self.bytes.entry(key).or_default().begin_anew();
                self.ended.insert(key, closed);
            } else {
                self.last_seen.insert(key, seen);
            }
        }
        for shard in &process.shards {
            for partition in shard.partitions().iter() {
                let Ok(online) = partition.online() else {
                    continue;
                };
                let log = online.log();
                let ended = Ended {
                    log_end_offset: log.log_end_offset(),
                    flushed_offset: log.flushed_offset(),
                    power_lost: false,
                    flushes_each_message: online.replica().config().flush.messages == 1,
                };
                self.ended.insert((id, partition.id()), ended);
            }
        }
    }

    /// The process that ended lost its power too; these high watermarks stand in a checkpoint.
    pub(crate) fn power_was_lost(
        &mut self,
        id: NodeId,
        checkpointed: BTreeMap<TopicPartition, Offset>,
    ) {
        for ((node, _), ended) in &mut self.ended {
            ended.power_lost |= *node == id;
        }
        self.cluster.disks_lost(id);
        let checkpointed = checkpointed.into_iter();
        let checkpointed = checkpointed.map(|(partition, offset)| ((id, partition), offset));
        self.checkpointed.extend(checkpointed);
    }

    /// Somebody damaged the files of a node that does not run: no promise about them holds.
    pub(crate) fn files_were_damaged(&mut self, id: NodeId) {
        self.cluster.disks_lost(id);
        for ((node, _), ended) in &mut self.ended {
            if *node == id {
                ended.power_lost = true;
                ended.flushed_offset = Offset::ZERO;
                ended.flushes_each_message = false;
            }
        }
    }

    /// Whether a loss of power took bytes out of the middle of a log at this offset, and the log
    /// told so when it was next opened. After a clean stop it does not look again.
    pub(crate) fn knows_damage(&self, node: NodeId, id: TopicIdPartition, at: Offset) -> bool {
        self.bytes
            .get(&(node, id))
            .is_some_and(|bytes| bytes.knows_damage(at))
    }

    /// A batch leaves a client.
    pub(crate) fn sent(&mut self, batch: &SentBatch) {
        self.history.sent(batch);
    }

    /// A batch was acknowledged at `offset`.
    pub(crate) fn acknowledged(
        &mut self,
        world: &World,
        node: NodeId,
        batch: &SentBatch,
        offset: Offset,
    ) {
        let Some(id) = world.partition_id(&batch.partition, batch.topic_id) else {
            return;
        };
        self.counts.acknowledged += batch.values.len() as u64;
        let is_lost = self.ended.get(&(node, id)).is_some_and(|it| it.power_lost);
        assert!(!is_lost, "an answer of a process that lost its power");
        if !self.cluster.is_replicated(id) {
            self.history.acknowledged(id, batch, offset);
        } else if batch.acks == -1
            && let Some(partition) = self.cluster.partition(id)
        {
            partition.acknowledged(node, offset, &batch.values, &mut self.verdicts);
        }
    }

    /// Records were read.
    pub(crate) fn was_read(
        &mut self,
        world: &World,
        node: NodeId,
        fetch: &SentFetch,
        data: &PartitionData,
        records: &[(Offset, Vec<u8>)],
    ) {
        let Some(id) = world.partition_id(&fetch.partition, fetch.topic_id) else {
            return;
        };
        self.counts.read += records.len() as u64;
        if !self.cluster.is_replicated(id) {
            self.history.was_read(id, data, records);
        } else if let Some(partition) = self.cluster.partition(id) {
            let claimed = Offset::new(data.high_watermark);
            partition.was_read(node, claimed, records, &mut self.verdicts);
        }
    }

    fn replica(
        &mut self,
        now: Mono,
        (node, life): (NodeId, u32),
        disks: &[MemDisk],
        partition: &Partition<MemDisk>,
    ) {
        let Ok(online) = partition.online() else {
            return;
        };
        let key = (node, partition.id());
        let before = self.last_seen.get(&key);
        if before.is_some_and(|it| it.still_holds(online)) {
            return;
        }
        let is_replicated = self.cluster.is_replicated(key.1);
        let returns = self.ended.remove(&key);
        if let Some(ended) = returns {
            self.returned(now, key, partition, ended, is_replicated);
        }
        let log = online.log();
        let seen = LastSeen::of(online);
        let before = self.last_seen.insert(key, seen.clone());
        seen.check(partition, online, before.as_ref());
        let disk = disks
            .get(usize::from(partition.dir().0))
            .expect("a directory of the node");
        let bytes = self.bytes.entry(key).or_default();
        let (history, mut stored) = (&self.history, BTreeSet::new());
        let (name, groups) = (partition.name(), &mut self.groups);
        let is_of_groups = name.topic.as_str() == GROUPS_TOPIC;
        let news = bytes.follow(disk, log, false, &mut |record| {
            if is_replicated {
                return;
            }
            history.is_stored(key.1, record.offset, record.value.unwrap_or_default());
            stored.insert(record.offset);
            if is_of_groups {
                groups.record(name, record.offset, record.key, record.value);
            }
        });
        self.counts.batches += news.marks.len() as u64;
        if is_replicated {
            let told_loss = self.losses_now.contains(&(node, name.clone()));
            let copies_again = self.copied_again.contains(&(node, name.clone()));
            let change = CopyChange {
                node,
                life,
                seen: &seen,
                news,
                told_loss,
                copies_again,
            };
            let verdicts = &mut self.verdicts;
            self.cluster.copy_changed(key.1, name, change, verdicts);
            self.cluster_outcomes(now);
            return;
        }
        self.history.high_watermark(key.1, online.high_watermark());
        self.history.log_start(key.1, log.log_start_offset());
        if returns.is_some() {
            self.history.holds(key.1, &stored);
            if !self.groups.is_damaged {
                // What lies about damage is taken for damage too, and each opening may draw the
                // line elsewhere.
                self.groups.holds(name, &stored);
            }
        }
    }

    /// Hands on what became committed or lost in partitions with several replicas.
    fn cluster_outcomes(&mut self, now: Mono) {
        for outcome in self.cluster.take_outcomes() {
            match outcome {
                Outcome::Committed(id, marks) => self.groups_committed(id, &marks),
                Outcome::Lost {
                    id,
                    end,
                    count,
                    is_holed,
                } => {
                    self.counts.lost_with_power += count;
                    if let Some(partition) = self.cluster.partition(id) {
                        let name = partition.name().clone();
                        self.counts.lost_with_power += self.groups.cut(&name, end, now);
                        if is_holed {
                            self.groups.damaged(&name, (end, end), now);
                        }
                    }
                }
            }
        }
    }

    /// The groups' log of several replicas counts once it is committed.
    fn groups_committed(&mut self, id: TopicIdPartition, marks: &[BatchMark]) {
        // A coordinator does not serve a log with holes, and says so.
        if self.groups.is_damaged {
            return;
        }
        let Some(partition) = self.cluster.partition(id) else {
            return;
        };
        let name = partition.name().clone();
        for bytes in marks.iter().filter_map(|mark| mark.bytes.as_ref()) {
            let batch = Batch::parse(bytes).expect("it was parsed before");
            let open = batch.open(BATCH_BYTES_MAX).expect("it was opened before");
            for record in open.records() {
                let record = record.expect("it was read before");
                self.groups
                    .record(&name, record.offset, record.key, record.value);
            }
        }
    }

    /// A replica is seen for the first time since its process ended.
    fn returned(
        &mut self,
        now: Mono,
        key: ReplicaKey,
        partition: &Partition<MemDisk>,
        ended: Ended,
        is_replicated: bool,
    ) {
        let Ok(online) = partition.online() else {
            return;
        };
        let log = online.log();
        let (name, end) = (partition.name(), log.log_end_offset());
        assert!(
            end >= ended.flushed_offset || is_replicated,
            "{name}: flushed {} but ends at {end}",
            ended.flushed_offset
        );
        let checkpointed = self.checkpointed.remove(&(key.0, name.clone()));
        if let Some(high_watermark) = checkpointed.filter(|it| *it > end) {
            assert!(
                self.told_losses.contains(&(key.0, name.clone())),
                "{name}: ends at {end} below its high watermark {high_watermark}, and no data loss \
                 was told"
            );
        }
        // What several replicas hold, and what a follower cut at once, is looked at together.
        if is_replicated {
            return;
        }
        if !ended.power_lost {
            assert_eq!(
                end, ended.log_end_offset,
                "{name}: a crash lost what was written"
            );
        }
        let mut lost = self.history.cut(key.1, end) + self.groups.cut(name, end, now);
        for damage in log.damage() {
            lost += self.history.damaged(key.1, damage.from, damage.to);
            let range = (damage.from, damage.to);
            lost += self.groups.damaged(name, range, now);
        }
        self.counts.lost_with_power += lost;
        if lost > 0 {
            assert!(
                ended.power_lost,
                "{name}: {lost} acknowledged or read records are gone"
            );
            assert!(
                !ended.flushes_each_message,
                "{name}: flush.messages=1, but {lost} are gone"
            );
        }
    }
}
