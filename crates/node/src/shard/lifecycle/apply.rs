use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_log::PartitionLog;
use highwater_metadata::config::{ConfigLayers, TopicSettings};
use highwater_metadata::image::{PartitionImage, ResourceKind, TopicImage};
use highwater_types::{Now, PartitionIndex, TopicId, TopicIdPartition, TopicName, TopicPartition};

use crate::job::LogDirNumber;
use crate::part::Changed;
use crate::shard::partition::{
    Partition, PartitionState, assignment, is_assigned, log_config, replica_config,
};
use crate::shard::{Effects, Shard, ShardSettings, owner_shard};

/// Partitions that one step makes, changes or deletes at most because the metadata moved on: a
/// change of a config of all topics must not hold up those who write and read.
const APPLIED_PER_STEP_MAX: usize = 1_000;

/// Topics whose partitions are still to be looked at, always with the newest image. What is not
/// looked at yet is as it was: the image came a little later for it.
#[derive(Debug, Default)]
pub(crate) struct ToApply {
    topics: BTreeSet<TopicId>,
    /// How far the first of them was looked at.
    from: PartitionIndex,
}

impl ToApply {
    /// Whether there is anything.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.topics.is_empty()
    }

    /// Whether a topic is among them.
    pub(crate) fn contains(&self, topic: TopicId) -> bool {
        self.topics.contains(&topic)
    }

    /// Adds topics, each from its first partition on.
    fn add(&mut self, topics: impl IntoIterator<Item = TopicId>) {
        self.topics.extend(topics);
        self.from = PartitionIndex::default();
    }

    fn done(&mut self, topic: TopicId) {
        self.topics.remove(&topic);
        self.from = PartitionIndex::default();
    }

    /// Nothing is applied any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<D: Disk> Shard<D> {
    /// Notes what an image changed.
    pub(super) fn note_to_apply(&mut self, changed: &Changed) {
        let to_apply = &mut self.lifecycle.to_apply;
        match changed {
            Changed::Everything => {
                let topics = self.partitions.iter().map(|it| it.id().topic_id);
                to_apply.add(topics.chain(self.image.topics.keys().copied()));
            }
            Changed::Topics(topics) => to_apply.add(topics.iter().copied()),
        }
    }

    /// Goes on with what the metadata wants, as far as one step goes.
    pub(super) fn apply_some(&mut self, now: Now, out: &mut Effects<D>) {
        let mut room = APPLIED_PER_STEP_MAX;
        while let Some(topic) = self.lifecycle.to_apply.topics.first().copied() {
            let from = self.lifecycle.to_apply.from;
            match self.apply_topic(now, (topic, from), &mut room, out) {
                Some(from) => {
                    self.lifecycle.to_apply.from = from;
                    return;
                }
                None => self.lifecycle.to_apply.done(topic),
            }
        }
    }

    /// Applies what the image says of a topic, from one of its partitions on. Says where to go
    /// on when there was no room for all.
    fn apply_topic(
        &mut self,
        now: Now,
        (topic_id, from): (TopicId, PartitionIndex),
        room: &mut usize,
        out: &mut Effects<D>,
    ) -> Option<PartitionIndex> {
        let topic = self.image.topic(topic_id).cloned();
        for id in self.partitions.ids_of_topic(topic_id) {
            let image = topic
                .as_ref()
                .and_then(|topic| topic.partitions.get(&id.partition));
            if !image.is_some_and(|image| is_assigned(image, self.node_id)) {
                // Those that are gone are not found again.
                if *room == 0 {
                    return Some(from);
                }
                *room -= 1;
                self.delete_partition(now, id, out);
            }
        }
        let topic = topic?;
        let settings = self.topic_settings(&topic.name);
        for (number, image) in topic.partitions.range_from(&from) {
            let id = TopicIdPartition {
                topic_id,
                partition: *number,
            };
            if !is_assigned(image, self.node_id) || owner_shard(id, self.shards) != self.number {
                continue;
            }
            if *room == 0 {
                return Some(*number);
            }
            *room -= 1;
            if self.partitions.find(id).is_some() {
                self.update_partition(now, id, image, &settings, out);
            } else {
                self.create_partition(id, &topic, image, &settings, out);
            }
        }
        None
    }

    fn create_partition(
        &mut self,
        id: TopicIdPartition,
        topic: &TopicImage,
        image: &PartitionImage,
        settings: &Arc<TopicSettings>,
        out: &mut Effects<D>,
    ) {
        let name = TopicPartition {
            topic: topic.name.clone(),
            partition: id.partition,
        };
        let dir = self.choose_dir(image.directory(self.node_id));
        let at = dir.unwrap_or(LogDirNumber(0));
        let partition = Partition::opening(id, name, at, Arc::clone(settings), true);
        self.partitions.insert(partition);
        if dir.is_some() {
            self.request_open(id);
        } else {
            self.fail_partition(id, "no log directory for it is online", out);
        }
    }

    fn update_partition(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        image: &PartitionImage,
        settings: &Arc<TopicSettings>,
        out: &mut Effects<D>,
    ) {
        let Some(partition) = self.partitions.find_mut(id) else {
            return;
        };
        let configured = partition.settings != *settings;
        partition.settings = Arc::clone(settings);
        if configured && let PartitionState::Online(online) = &mut partition.state {
            configure_log(&mut online.log, settings, &self.settings);
            let config = replica_config(settings, &self.settings);
            self.with_replica(now, id, out, |replica, outputs| {
                replica.handle_config(now, config, outputs);
            });
        }
        self.apply_assignment(now, id, image, out);
    }

    /// Tells the replica what the metadata says now.
    pub(super) fn apply_assignment(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        image: &PartitionImage,
        out: &mut Effects<D>,
    ) {
        let assignment = assignment(image);
        if image.assigned_replicas.len() > 1 {
            self.watch_followers(now);
            self.tell_brokers(now, id, out);
        }
        self.with_replica(now, id, out, |replica, outputs| {
            replica.handle_metadata(now, &assignment, outputs);
        });
        self.note_directory(id);
        self.follow_assigned(id);
        self.after_append(now, id, out);
    }

    /// The configs of a topic in force.
    pub(crate) fn topic_settings(&self, topic: &TopicName) -> Arc<TopicSettings> {
        let image = &self.image;
        let node = self.node_id.to_string();
        let layers = ConfigLayers {
            dynamic_broker: image.config(ResourceKind::Broker, &node).map(Arc::as_ref),
            dynamic_default: image.config(ResourceKind::Broker, "").map(Arc::as_ref),
            static_config: &self.broker_config,
        };
        let own = image
            .config(ResourceKind::Topic, topic.as_str())
            .map(Arc::as_ref);
        Arc::new(TopicSettings::resolve(layers, own))
    }
}

/// Puts a topic's configs in force in its log, which keeps its share of `segment.jitter.ms`.
pub(super) fn configure_log<D: Disk>(
    log: &mut PartitionLog<D>,
    topic: &TopicSettings,
    shard: &ShardSettings,
) {
    let share = log.config().segment_jitter_ms;
    let jitter = share.min(topic.segment_jitter_ms);
    log.set_config(log_config(topic, shard, jitter));
}
