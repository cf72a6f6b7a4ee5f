use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_types::{Now, Offset, TopicId, TopicIdPartition, TopicName, TopicPartition};

use super::Phase;
use crate::job::LogDirNumber;
use crate::journal::{Happening, Level};
use crate::part::{Changed, ImageUpdate};
use crate::shard::checkpoints::Lines;
use crate::shard::params::{FoundLog, FoundTopic};
use crate::shard::partition::{Partition, is_assigned};
use crate::shard::{Effects, Shard, owner_shard};

impl<D: Disk> Shard<D> {
    /// The metadata moved on: makes, opens, deletes and changes replicas accordingly.
    pub(crate) fn handle_image(&mut self, now: Now, update: ImageUpdate, out: &mut Effects<D>) {
        let before = std::mem::replace(&mut self.image, update.image);
        self.groups.note_image(&self.image);
        if self.lifecycle.is_closing() {
            return;
        }
        self.isr_brokers_changed(now, &before, out);
        self.follow_brokers_changed(&before);
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
            self.note_to_apply(&Changed::Everything);
            // Nobody is served yet, and the first checkpoints are to know every partition.
            while self.lifecycle.to_apply.is_waiting() {
                self.apply_some(now, out);
            }
            self.send_first_lines(now, out);
        } else {
            self.note_to_apply(&update.changed);
            self.apply_some(now, out);
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
        partition.was_cleaned = log.was_cleaned;
        self.partitions.insert(partition);
        self.request_open(id);
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
