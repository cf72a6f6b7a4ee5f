use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::BrokerRegistrationChangeRecord;
use highwater_types::{BrokerEpoch, DirectoryId, ErrorCode, Mono, NodeId, Offset};

use super::elections::Upheaval;
use super::{Controller, Decision, NextOffset};
use crate::delta::MetadataDelta;
use crate::image::{BrokerImage, MetadataImage};

/// What a broker says about itself every heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Its node id.
    pub broker_id: NodeId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
    /// The last metadata offset that it applied; below zero when none.
    pub current_metadata_offset: Offset,
    /// It does not want to lead or be in an ISR yet, or any more.
    pub want_fence: bool,
    /// It wants to stop.
    pub want_shut_down: bool,
    /// Directories that it lost since it registered.
    pub offline_directories: Vec<DirectoryId>,
    /// Directories that shall get no new replicas; `None`: it does not say.
    pub cordoned_directories: Option<Vec<DirectoryId>>,
}

/// What the broker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// It has applied its own registration.
    pub is_caught_up: bool,
    /// It may neither lead nor be in an ISR.
    pub is_fenced: bool,
    /// It may stop.
    pub should_shut_down: bool,
}

/// Where a broker stands with the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Fenced,
    Unfenced,
    ControlledShutdown,
    ShutdownNow,
}

impl Controller {
    /// Decides on a heartbeat (protocol reference 2.3) and notes that the broker was heard of.
    /// `next` is the offset of the next record.
    ///
    /// # Errors
    /// STALE_BROKER_EPOCH for a broker that is not registered so.
    pub fn heartbeat(
        &mut self,
        image: &MetadataImage,
        request: &Heartbeat,
        next: NextOffset,
        now: Mono,
    ) -> Result<Decision<HeartbeatAnswer>, ErrorCode> {
        let (id, epoch) = (request.broker_id, request.broker_epoch);
        Self::check_broker_epoch(image, id, epoch)?;
        let broker = image.broker(id).expect("its epoch was just checked");
        let standing = self.next_standing(image, broker, request);
        let mut records = self.change_standing(image, broker, standing);
        let lost = &request.offline_directories;
        if records.is_empty() || lost.is_empty() {
            records.extend(self.offline_directories(image, broker, lost));
        } else {
            // Another leader may be looked for twice: the second time among those left by the
            // first (KAFKA-13173).
            let changed = changed(image, &records);
            records.extend(self.offline_directories(&changed, broker, lost));
        }
        records.extend(cordon(image, broker, request.cordoned_directories.as_ref()));
        self.sessions
            .touch(id, epoch, now, request.current_metadata_offset);
        if standing == Standing::ControlledShutdown && !broker.in_controlled_shutdown {
            let count = i64::try_from(records.len()).expect("fewer records than offsets");
            self.sessions.leave(id, next.plus(count - 1));
        }
        let fenced = matches!(standing, Standing::Fenced | Standing::ShutdownNow);
        let answer = HeartbeatAnswer {
            is_caught_up: is_caught_up(broker, request),
            is_fenced: fenced,
            should_shut_down: standing == Standing::ShutdownNow,
        };
        Ok(Decision { records, answer })
    }

    /// Fences a broker that was silent for too long. No records when it is fenced already.
    #[must_use]
    pub fn fence_expired(&self, image: &MetadataImage, id: NodeId) -> Vec<MetadataRecord> {
        let broker = image.broker(id);
        broker
            .map(|it| self.change_standing(image, it, Standing::Fenced))
            .unwrap_or_default()
    }

    fn next_standing(
        &self,
        image: &MetadataImage,
        broker: &BrokerImage,
        request: &Heartbeat,
    ) -> Standing {
        let leads = || image.partitions().any(|(_, _, it)| it.leader == broker.id);
        if broker.fenced {
            // Nothing takes back that a broker is leaving: only its next life is let in again.
            let may_return = is_caught_up(broker, request) && !broker.in_controlled_shutdown;
            return match (request.want_shut_down, request.want_fence) {
                (true, _) => Standing::ShutdownNow,
                (false, false) if may_return => Standing::Unfenced,
                (false, _) => Standing::Fenced,
            };
        }
        if broker.in_controlled_shutdown {
            let others_know =
                self.sessions.leaves_at(broker.id) <= self.sessions.lowest_active_offset(image);
            return if !leads() && others_know {
                Standing::ShutdownNow
            } else {
                Standing::ControlledShutdown
            };
        }
        match (request.want_fence, request.want_shut_down) {
            (true, true) => Standing::ShutdownNow,
            (true, false) => Standing::Fenced,
            (false, true) if leads() => Standing::ControlledShutdown,
            (false, true) => Standing::ShutdownNow,
            (false, false) => Standing::Unfenced,
        }
    }

    fn change_standing(
        &self,
        image: &MetadataImage,
        broker: &BrokerImage,
        standing: Standing,
    ) -> Vec<MetadataRecord> {
        let id = broker.id;
        let change = change_of(broker);
        match standing {
            Standing::Fenced | Standing::ShutdownNow if !broker.fenced => {
                let mut records = self.partition_changes(image, &Upheaval::Removed(id));
                records.push(
                    BrokerRegistrationChangeRecord {
                        fenced: 1,
                        ..change
                    }
                    .into(),
                );
                records
            }
            Standing::Unfenced if broker.fenced => {
                let mut records: Vec<MetadataRecord> = vec![
                    BrokerRegistrationChangeRecord {
                        fenced: -1,
                        ..change
                    }
                    .into(),
                ];
                records.extend(self.partition_changes(image, &Upheaval::Added(id)));
                records
            }
            Standing::ControlledShutdown if !broker.in_controlled_shutdown => {
                let leaves = BrokerRegistrationChangeRecord {
                    in_controlled_shutdown: 1,
                    ..change
                };
                let mut records: Vec<MetadataRecord> = vec![leaves.into()];
                records.extend(self.partition_changes(image, &Upheaval::Removed(id)));
                records
            }
            _ => Vec::new(),
        }
    }

    /// The broker lost directories: they leave its registration, and its replicas there lead no
    /// more.
    fn offline_directories(
        &self,
        image: &MetadataImage,
        broker: &BrokerImage,
        offline: &[DirectoryId],
    ) -> Vec<MetadataRecord> {
        let lost: Vec<DirectoryId> = broker
            .directories
            .iter()
            .copied()
            .filter(|it| offline.contains(it))
            .collect();
        let left: Vec<_> = broker
            .directories
            .iter()
            .filter(|it| !lost.contains(it))
            .collect();
        // A registration cannot say "no directory"; such a broker stops by itself.
        if lost.is_empty() || left.is_empty() {
            return Vec::new();
        }
        let log_dirs = left.into_iter().map(|it| it.uuid()).collect();
        let change = BrokerRegistrationChangeRecord {
            log_dirs,
            ..change_of(broker)
        };
        let mut records: Vec<MetadataRecord> = vec![change.into()];
        let upheaval = Upheaval::DirectoriesLost(broker.id, lost);
        records.extend(self.partition_changes(image, &upheaval));
        records
    }
}

/// The image with these records applied.
fn changed(image: &MetadataImage, records: &[MetadataRecord]) -> MetadataImage {
    let mut delta = MetadataDelta::new(image.clone());
    for record in records {
        let replayed = delta.replay(record);
        replayed.expect("the controller's records fit its image");
    }
    delta.image().clone()
}

/// The metadata.version from which directories can be cordoned.
const CORDONS_SINCE: i16 = 30;

fn cordon(
    image: &MetadataImage,
    broker: &BrokerImage,
    cordoned: Option<&Vec<DirectoryId>>,
) -> Option<MetadataRecord> {
    let cordoned = cordoned.filter(|_| image.metadata_version() >= CORDONS_SINCE)?;
    if broker.cordoned.as_ref() == Some(cordoned) {
        return None;
    }
    let uuids = cordoned.iter().map(|it| it.uuid()).collect();
    let change = BrokerRegistrationChangeRecord {
        cordoned_log_dirs: Some(uuids),
        ..change_of(broker)
    };
    Some(change.into())
}

fn change_of(broker: &BrokerImage) -> BrokerRegistrationChangeRecord {
    BrokerRegistrationChangeRecord {
        broker_id: broker.id,
        broker_epoch: broker.epoch.raw(),
        ..BrokerRegistrationChangeRecord::default()
    }
}

/// Whether the broker has applied its own registration, whose offset is its epoch.
fn is_caught_up(broker: &BrokerImage, request: &Heartbeat) -> bool {
    request.current_metadata_offset.raw() >= broker.epoch.raw()
}

#[cfg(test)]
mod tests {
    use highwater_types::Millis;

    use super::*;
    use crate::controller::testing::{Cluster, directory, ids};

    #[test]
    fn a_broker_is_unfenced_once_it_has_applied_its_registration() {
        let mut cluster = Cluster::new(0);
        let epoch = cluster.register(&cluster.registration(1));
        let request = Heartbeat {
            broker_id: NodeId::new(1),
            broker_epoch: epoch,
            current_metadata_offset: Offset::new(epoch.raw() - 1),
            ..Heartbeat::default()
        };
        let early = cluster.heartbeat(&request).expect("known");
        assert!(!early.is_caught_up && early.is_fenced);
        let wants_fence = Heartbeat {
            current_metadata_offset: Offset::new(epoch.raw()),
            want_fence: true,
            ..request.clone()
        };
        let fenced = cluster.heartbeat(&wants_fence).expect("known");
        assert!(fenced.is_caught_up && fenced.is_fenced);
        let ready = Heartbeat {
            want_fence: false,
            ..wants_fence
        };
        assert!(!cluster.heartbeat(&ready).expect("known").is_fenced);
        assert!(cluster.image().is_active(NodeId::new(1)));
    }

    #[test]
    fn i_20_an_older_registration_changes_nothing() {
        let mut cluster = Cluster::new(1);
        let end = cluster.image().end;
        for (id, epoch) in [(1, -1), (1, 1_000_000), (9, 0)] {
            let request = Heartbeat {
                broker_id: NodeId::new(id),
                broker_epoch: BrokerEpoch::new(epoch),
                want_shut_down: true,
                ..Heartbeat::default()
            };
            assert_eq!(
                cluster.heartbeat(&request),
                Err(ErrorCode::STALE_BROKER_EPOCH)
            );
        }
        assert_eq!(cluster.image().end, end);
    }

    #[test]
    fn a_stopping_broker_hands_over_and_waits_until_the_others_know() {
        let mut cluster = Cluster::new(2);
        cluster.create("t", &[&[1, 2]]);
        let leaving = cluster.beat(1, |it| it.want_shut_down = true);
        assert!(!leaving.should_shut_down && !leaving.is_fenced);
        let partition = cluster.partition("t", 0);
        assert_eq!(
            (partition.leader, partition.in_sync_replicas),
            (NodeId::new(2), ids(&[2]))
        );
        // Broker 2 has not applied the hand-over yet.
        assert!(
            !cluster
                .beat(1, |it| it.want_shut_down = true)
                .should_shut_down
        );
        cluster.beat(2, |_| {});
        let gone = cluster.beat(1, |it| it.want_shut_down = true);
        assert!(gone.should_shut_down && gone.is_fenced);
        assert!(
            cluster
                .image()
                .broker(NodeId::new(1))
                .is_some_and(|it| it.fenced)
        );
    }

    #[test]
    fn a_sole_broker_stops_at_once_and_its_replicas_stay_eligible() {
        let mut cluster = Cluster::new(1);
        cluster.create("t", &[&[1]]);
        assert!(
            !cluster
                .beat(1, |it| it.want_shut_down = true)
                .should_shut_down
        );
        assert!(
            cluster
                .beat(1, |it| it.want_shut_down = true)
                .should_shut_down
        );
        let partition = cluster.partition("t", 0);
        assert_eq!(partition.leader, NodeId::NONE);
        assert_eq!(partition.eligible_leader_replicas, ids(&[1]));
        assert_eq!(partition.last_known_elr, ids(&[1]));
    }

    #[test]
    fn a_broker_that_was_leaving_comes_back_only_in_another_life() {
        let mut cluster = Cluster::new(1);
        cluster.create("t", &[&[1]]);
        cluster.beat(1, |it| it.want_shut_down = true);
        cluster.advance(Millis::new(9000));
        assert_eq!(cluster.fence_one_expired(), Some(NodeId::new(1)));
        assert!(cluster.beat(1, |_| {}).is_fenced);
        assert_eq!(cluster.partition("t", 0).leader, NodeId::NONE);
    }

    #[test]
    fn a_fenced_broker_may_stop_at_once() {
        let mut cluster = Cluster::new(0);
        let epoch = cluster.register(&cluster.registration(1));
        let request = Heartbeat {
            broker_id: NodeId::new(1),
            broker_epoch: epoch,
            want_shut_down: true,
            ..Heartbeat::default()
        };
        let end = cluster.image().end;
        assert!(cluster.heartbeat(&request).expect("known").should_shut_down);
        assert_eq!(cluster.image().end, end, "nothing to write");
    }

    #[test]
    fn cm_06_brokers_that_fall_silent_together_are_fenced_one_by_one() {
        let mut cluster = Cluster::new(3);
        cluster.create("t", &[&[1, 2], &[2, 3]]);
        cluster.advance(Millis::new(9000));
        let mut fenced = Vec::new();
        while let Some(id) = cluster.fence_one_expired() {
            fenced.push(id.raw());
            for index in 0..2 {
                let partition = cluster.partition("t", index);
                assert!(
                    !partition.has_leader() || cluster.image().is_active(partition.leader),
                    "a fenced broker leads"
                );
            }
        }
        assert_eq!(fenced, [1, 2, 3]);
        let first = cluster.partition("t", 0);
        assert_eq!(first.leader, NodeId::NONE);
        assert_eq!(first.last_known_elr, ids(&[2]));
        assert_eq!(first.eligible_leader_replicas, ids(&[2]));
        assert_eq!(cluster.partition("t", 1).last_known_elr, ids(&[3]));
    }

    #[test]
    fn np_06_only_silence_ends_a_session() {
        let mut cluster = Cluster::new(2);
        cluster.advance(Millis::new(8000));
        cluster.beat(2, |_| {});
        cluster.advance(Millis::new(1000));
        assert_eq!(cluster.fence_one_expired(), Some(NodeId::new(1)));
        assert_eq!(cluster.fence_one_expired(), None);
    }

    #[test]
    fn lost_directories_lead_no_more() {
        let mut cluster = Cluster::new(1);
        let two = super::super::Registration {
            directories: vec![directory(20), directory(21)],
            ..cluster.registration(2)
        };
        let epoch = cluster.register(&two);
        cluster.unfence(2, epoch);
        cluster.create("t", &[&[2, 1]]);
        cluster.assign_directory("t", 0, &[directory(20), directory(1)]);
        cluster.beat(2, |it| it.offline_directories = vec![directory(20)]);
        assert_eq!(cluster.partition("t", 0).leader, NodeId::new(1));
        let broker = cluster.image().broker(NodeId::new(2)).expect("registered");
        assert_eq!(broker.directories, [directory(21)]);
    }

    #[test]
    fn cm_06_a_broker_that_comes_back_without_a_directory_does_not_lead_there() {
        let mut cluster = Cluster::new(1);
        let two = super::super::Registration {
            directories: vec![directory(20), directory(21)],
            ..cluster.registration(2)
        };
        let epoch = cluster.register(&two);
        cluster.unfence(2, epoch);
        cluster.create("t", &[&[2]]);
        cluster.assign_directory("t", 0, &[directory(20)]);
        assert!(cluster.beat(2, |it| it.want_fence = true).is_fenced);
        // One heartbeat: it is ready again, and has lost the directory.
        let back = cluster.beat(2, |it| it.offline_directories = vec![directory(20)]);
        assert!(!back.is_fenced);
        let partition = cluster.partition("t", 0);
        assert_eq!(partition.leader, NodeId::NONE, "its directory is offline");
        assert_eq!(partition.in_sync_replicas, []);
    }
}
