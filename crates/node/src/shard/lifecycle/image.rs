use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_log::PartitionLog;
use highwater_metadata::MetadataImage;
use highwater_metadata::config::{ConfigLayers, TopicSettings};
use highwater_metadata::image::{PartitionImage, ResourceKind, TopicImage};
use highwater_types::{Now, Offset, TopicId, TopicIdPartition, TopicName, TopicPartition};

use super::Phase;
use crate::job::LogDirNumber;
use crate::journal::{Happening, Level};
use crate::part::{Changed, ImageUpdate};
use crate::shard::checkpoints::Lines;
use crate::shard::params::{FoundLog, FoundTopic};
use crate::shard::partition::{
    Partition, PartitionState, assignment, is_assigned, log_config, replica_config,
};
use crate::shard::{Effects, Shard, ShardSettings, owner_shard};

impl<D: Disk> Shard<D> {
    /// The metadata moved on: makes, opens, deletes and changes replicas accordingly.
    pub(crate) fn handle_image(&mut self, now: Now, update: ImageUpdate, out: &mut Effects<D>) {
        let before = std::mem::replace(&mut self.image, update.image);
        self.groups.note_image(&self.image);
        if self.lifecycle.is_closing() {
            return;
        }
        let deleted = deleted_topics(&before, &self.image, &update.changed);
        self.groups_topics_deleted(now, &deleted, out);
        if self.lifecycle.phase == Phase::Waiting {
            self.lifecycle.phase = Phase::Loading;
            self.lifecycle.next_retention_check =
                Some(now.mono.plus(self.settings.retention_check_interval));
            self.lifecycle.next_producer_check =
                Some(now.mono.plus(self.settings.producer_id_check_interval));
            self.remove_leftovers(out);
            self.decide_about_found(now, out);
            self.apply_every_topic(now, out);
            self.send_first_lines(now, out);
        } else {
            match update.changed {
                Changed::Everything => self.apply_every_topic(now, out),
                Changed::Topics(topics) => {
                    topics
                        .iter()
                        .for_each(|topic| self.apply_topic(now, *topic, out));
                }
            }
        }
        self.start_open_jobs(now, out);
        self.note_if_loaded(out);
    }

    /// Opens what the metadata assigns to this broker, and sets everything else aside.
    fn decide_about_found(&mut self, now: Now, out: &mut Effects<D>) {
        let mut found = std::mem::take(&mut self.lifecycle.found);
        found.retain(|(_, log)| self.is_mine(log));
        // Of two logs of one partition the one in the directory that the metadata names is taken.
        found.sort_by_key(|(dir, log)| {
            let is_missing = log.topic == FoundTopic::Missing;
            (is_missing, !self.is_where_it_belongs(*dir, log))
        });
        for (dir, log) in found {
            match &log.topic {
                FoundTopic::Missing => {}
                FoundTopic::Unreadable(why) => self.fail_found(dir, &log, why, out),
                FoundTopic::Known(_) | FoundTopic::Unknown => match self.wanted(&log) {
                    Ok(id) => self.open_found(dir, id, &log),
                    Err(why) => self.set_aside(now, dir, &log.topic_partition, why, out),
                },
            }
            self.note_loss(&log, out);
        }
    }

    /// Whether this shard decides about a log: it owns the partition of that name, so that a
    /// stray is out of the way before the log that takes its place is made.
    fn is_mine(&self, log: &FoundLog) -> bool {
        let named = self.image.topic_by_name(log.topic_partition.topic.as_str());
        let topic_id = named.map(|topic| topic.id).or_else(|| log.topic.id());
        let id = TopicIdPartition {
            topic_id: topic_id.unwrap_or_default(),
            partition: log.topic_partition.partition,
        };
        owner_shard(id, self.shards) == self.number
    }

    /// The partition that the metadata has under a log's name, if it is assigned to this broker.
    fn assigned_by_name(&self, log: &FoundLog) -> Option<TopicIdPartition> {
        let topic = self
            .image
            .topic_by_name(log.topic_partition.topic.as_str())?;
        let partition = log.topic_partition.partition;
        let image = topic.partitions.get(&partition)?;
        let id = TopicIdPartition {
            topic_id: topic.id,
            partition,
        };
        (is_assigned(image, self.node_id) && self.partitions.find(id).is_none()).then_some(id)
    }

    /// Nobody can say whether a log is the partition's that has its name: that partition waits
    /// for a disk that can be read, and nothing takes the log's place.
    fn fail_found(&mut self, dir: LogDirNumber, log: &FoundLog, why: &str, out: &mut Effects<D>) {
        let Some(id) = self.assigned_by_name(log) else {
            return;
        };
        let settings = self.topic_settings(&log.topic_partition.topic);
        let name = log.topic_partition.clone();
        let mut partition = Partition::opening(id, name, dir, settings, false);
        partition.kept = Lines::of_found(log);
        self.partitions.insert(partition);
        self.fail_partition(id, why, out);
    }

    /// Says so when a partition begins anew and empty although a checkpoint knows of records.
    fn note_loss(&mut self, log: &FoundLog, out: &mut Effects<D>) {
        let why = match &log.topic {
            FoundTopic::Missing => "the directory of its log is gone",
            FoundTopic::Unknown => "its log was set aside: nobody knows which topic it is of",
            FoundTopic::Known(_) | FoundTopic::Unreadable(_) => return,
        };
        let from = log.log_start_offset.unwrap_or(Offset::ZERO);
        let to = log.high_watermark.unwrap_or(Offset::ZERO);
        if from < to && self.assigned_by_name(log).is_some() {
            let partition = log.topic_partition.clone();
            let happening = Happening::DataLoss {
                partition,
                from,
                to,
                why,
            };
            self.journal(Level::Error, happening, out);
        }
    }

    fn is_where_it_belongs(&self, dir: LogDirNumber, log: &FoundLog) -> bool {
        let id = self.dirs.get(usize::from(dir.0)).map(|dir| dir.id);
        let Some(topic_id) = log.topic.id() else {
            return false;
        };
        let at = TopicIdPartition {
            topic_id,
            partition: log.topic_partition.partition,
        };
        self.image
            .partition(at)
            .map(|it| it.directory(self.node_id))
            == id
    }

    fn wanted(&self, log: &FoundLog) -> Result<TopicIdPartition, &'static str> {
        let topic_id = log
            .topic
            .id()
            .ok_or("partition.metadata is missing or not understood")?;
        let topic = self
            .image
            .topic(topic_id)
            .ok_or("the metadata has no such topic id")?;
        let number = log.topic_partition.partition;
        if topic.name != log.topic_partition.topic {
            return Err("the metadata has another name for its topic id");
        }
        let image = topic
            .partitions
            .get(&number)
            .ok_or("the metadata has no such partition")?;
        if !is_assigned(image, self.node_id) {
            return Err("the metadata assigns it to other brokers");
        }
        let id = TopicIdPartition {
            topic_id,
            partition: number,
        };
        if self.partitions.find(id).is_some() {
            return Err("another log directory has it");
        }
        Ok(id)
    }

    fn open_found(&mut self, dir: LogDirNumber, id: TopicIdPartition, log: &FoundLog) {
        let settings = self.topic_settings(&log.topic_partition.topic);
        let name = log.topic_partition.clone();
        let mut partition = Partition::opening(id, name, dir, settings, false);
        partition.kept = Lines::of_found(log);
        self.partitions.insert(partition);
        self.request_open(id);
    }

    fn apply_every_topic(&mut self, now: Now, out: &mut Effects<D>) {
        let gone = self.partitions.ids().into_iter().map(|id| id.topic_id);
        let topics: BTreeSet<TopicId> = gone.chain(self.image.topics.keys().copied()).collect();
        topics
            .into_iter()
            .for_each(|topic| self.apply_topic(now, topic, out));
    }

    fn apply_topic(&mut self, now: Now, topic_id: TopicId, out: &mut Effects<D>) {
        let topic = self.image.topic(topic_id).cloned();
        for id in self.partitions.ids_of_topic(topic_id) {
            let image = topic
                .as_ref()
                .and_then(|topic| topic.partitions.get(&id.partition));
            if !image.is_some_and(|image| is_assigned(image, self.node_id)) {
                self.delete_partition(now, id, out);
            }
        }
        let Some(topic) = topic else { return };
        let settings = self.topic_settings(&topic.name);
        for (number, image) in topic.partitions.iter() {
            let id = TopicIdPartition {
                topic_id,
                partition: *number,
            };
            if !is_assigned(image, self.node_id) || owner_shard(id, self.shards) != self.number {
                continue;
            }
            if self.partitions.find(id).is_some() {
                self.update_partition(now, id, image, &settings, out);
            } else {
                self.create_partition(id, &topic, image, &settings, out);
            }
        }
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
            let config = replica_config(settings);
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
        self.with_replica(now, id, out, |replica, outputs| {
            replica.handle_metadata(now, &assignment, outputs);
        });
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

    /// Renames the directory of a log that nobody knows, as Kafka does: it is never deleted.
    fn set_aside(
        &mut self,
        now: Now,
        dir: LogDirNumber,
        name: &TopicPartition,
        why: &'static str,
        out: &mut Effects<D>,
    ) {
        let from = name.to_string();
        match self.rename_log_dir(dir, name, "stray") {
            Ok(to) => {
                let happening = Happening::StrayLog { from, to, why };
                self.journal(Level::Warn, happening, out);
            }
            Err(error) => self.fail_dir(now, dir, &error, out),
        }
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

/// The topics that an update takes away.
fn deleted_topics(
    before: &MetadataImage,
    after: &MetadataImage,
    changed: &Changed,
) -> Vec<(TopicId, TopicName)> {
    let gone = |id: &TopicId| {
        let gone = before.topic(*id).filter(|_| after.topic(*id).is_none());
        gone.map(|topic| (*id, topic.name.clone()))
    };
    match changed {
        Changed::Everything => before.topics.keys().filter_map(gone).collect(),
        Changed::Topics(topics) => topics.iter().filter_map(gone).collect(),
    }
}
