use highwater_disk::Disk;
use highwater_types::{Now, TopicIdPartition};

use super::delete::{DelayedRemoval, Removal};
use crate::journal::{Happening, Level};
use crate::shard::{Effects, Shard};

impl<D: Disk> Shard<D> {
    /// Deletes what is past retention in every log (`log.retention.check.interval.ms`).
    pub(super) fn check_retention(&mut self, now: Now, out: &mut Effects<D>) {
        for id in self.partitions.ids() {
            self.retain(now, id, out);
        }
    }

    /// Deletes what is past retention in one log: only what lies wholly below the high watermark.
    pub(crate) fn retain(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        let Some(partition) = self.partitions.find_mut(id) else {
            return;
        };
        let dir = partition.dir;
        let Ok(online) = partition.online_mut() else {
            return;
        };
        let high_watermark = online.replica.high_watermark();
        match online.log.retain(now, high_watermark) {
            Ok(None) => {}
            Ok(Some(retained)) => {
                let log_start_offset = retained.log_start_offset;
                let due = retained.files.not_before();
                let removal = Removal::Files(retained.files);
                self.remove_at(due, DelayedRemoval { dir, removal });
                self.checkpoints.note_log_start();
                self.with_replica(now, id, out, |replica, _| {
                    replica.handle_log_start(log_start_offset);
                });
                let happening = |partition| Happening::Retained {
                    partition,
                    log_start_offset,
                };
                self.partition_changed(id, Level::Info, happening, out);
                self.after_append(now, id, out);
            }
            Err(why) => self.fail_partition(id, &why.to_string(), out),
        }
    }

    /// Forgets producers that have been idle for `producer.id.expiration.ms`.
    pub(super) fn expire_producers(&mut self, now: Now) {
        for id in self.partitions.ids() {
            if let Some(online) = self.partitions.online_mut(id) {
                online.log.expire_producers(now);
            }
        }
    }
}
