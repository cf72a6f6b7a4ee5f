use highwater_records::stored::metadata::RegisterBrokerRecord;
use highwater_types::{BrokerEpoch, DirectoryId, ErrorCode, Mono, NodeId, Uuid};

use super::elections::Upheaval;
use super::{Controller, Decision, NextOffset, Refusal};
use crate::image::{BrokerEndpoint, BrokerImage, FeatureRange, METADATA_VERSION, MetadataImage};
use crate::snapshot::broker_record;

/// The metadata.version from which directories are told apart (KIP-858).
const DIRECTORIES_SINCE: i16 = 17;

/// A broker that wants to register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Its node id.
    pub broker_id: NodeId,
    /// The cluster that it thinks it belongs to.
    pub cluster_id: String,
    /// One life of its process.
    pub incarnation: Uuid,
    /// Where it is reached.
    pub endpoints: Vec<BrokerEndpoint>,
    /// What it can work with.
    pub features: Vec<FeatureRange>,
    /// Its rack.
    pub rack: Option<String>,
    /// From a ZooKeeper cluster: refused.
    pub is_migrating: bool,
    /// Its online log directories.
    pub directories: Vec<DirectoryId>,
    /// The epoch in its clean-shutdown files; [`BrokerEpoch::NONE`] when it did not stop cleanly,
    /// or does not say.
    pub previous_epoch: BrokerEpoch,
}

impl Controller {
    /// Decides on a registration: the checks of `ClusterControlManager.registerBroker`, in its
    /// order, and one of our own: a process that holds the locks of the same directories proves the
    /// process before it dead, so it need not wait for a live session to end. What a process sent
    /// that was proved dead so is refused when it comes late.
    ///
    /// # Errors
    /// INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, INVALID_REGISTRATION,
    /// UNSUPPORTED_VERSION, INVALID_REQUEST.
    pub fn register_broker(
        &mut self,
        image: &MetadataImage,
        request: &Registration,
        kraft_version: i16,
        next: NextOffset,
        now: Mono,
    ) -> Result<Decision<BrokerEpoch>, Refusal> {
        self.check_identity(image, request, now)?;
        check_directories(image, request)?;
        check_features(image, &request.features, kraft_version, "broker")?;
        let existing = image.broker(request.broker_id);
        if let Some(same) = existing.filter(|it| it.incarnation == request.incarnation) {
            // The same process says more about itself: nothing it had is lost.
            let record = record(
                request,
                same.epoch,
                same.fenced,
                same.in_controlled_shutdown,
            );
            return Ok(Decision {
                records: vec![record.into()],
                answer: same.epoch,
            });
        }
        if let Some(other) = existing {
            self.sessions.replace(other.id, other.incarnation);
        }
        let stopped = self.how_it_stopped(image, request);
        let mut records = self.partition_changes(image, &stopped);
        // Kafka's controllers take the first offset of the decision, whatever the record there.
        let epoch = BrokerEpoch::new(next.raw());
        records.push(record(request, epoch, true, false).into());
        Ok(Decision {
            records,
            answer: epoch,
        })
    }

    /// What follows from how the last life of a broker ended. One that cannot name its epoch did
    /// not stop cleanly. Without eligible leader replicas that makes no difference, as in Kafka.
    fn how_it_stopped(&self, image: &MetadataImage, request: &Registration) -> Upheaval {
        let id = request.broker_id;
        let stored = image.broker(id).map(|it| it.epoch);
        let clean = stored == Some(request.previous_epoch);
        match clean {
            false if self.old_rule => Upheaval::UncleanUnderOldRule(id),
            false if image.elr_enabled() => Upheaval::Unclean(id),
            _ => Upheaval::Removed(id),
        }
    }

    fn check_identity(
        &self,
        image: &MetadataImage,
        request: &Registration,
        now: Mono,
    ) -> Result<(), Refusal> {
        let id = request.broker_id;
        if request.cluster_id != *self.cluster_id {
            let text = format!(
                "Expected cluster ID {}, but got cluster ID {}",
                self.cluster_id, request.cluster_id
            );
            return Err(Refusal::new(ErrorCode::INCONSISTENT_CLUSTER_ID, text));
        }
        if !id.is_some() {
            return Err(Refusal::new(
                ErrorCode::INVALID_REQUEST,
                "The broker id is negative.",
            ));
        }
        let Some(existing) = image.broker(id) else {
            return Ok(());
        };
        let live = self
            .sessions
            .is_live(id, existing.epoch, now, self.session_timeout);
        let other = existing.incarnation != request.incarnation;
        let proved = existing.in_controlled_shutdown || same_directories(existing, request);
        let over = self.sessions.is_replaced(id, request.incarnation);
        if live && other && (over || !proved) {
            return Err(Refusal::new(
                ErrorCode::DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently \
                 restarted this resolves itself once the session of the other one ends.",
            ));
        }
        Ok(())
    }
}

/// Whether a new process has the very directories of the registered one, so holds their locks.
fn same_directories(existing: &BrokerImage, request: &Registration) -> bool {
    !existing.directories.is_empty()
        && existing.directories.len() == request.directories.len()
        && existing
            .directories
            .iter()
            .all(|it| request.directories.contains(it))
}

fn check_directories(image: &MetadataImage, request: &Registration) -> Result<(), Refusal> {
    let invalid = |text: String| Err(Refusal::new(ErrorCode::INVALID_REGISTRATION, text));
    if request.is_migrating {
        let text = "Brokers of a ZooKeeper cluster cannot register.";
        return Err(Refusal::new(ErrorCode::BROKER_ID_NOT_REGISTERED, text));
    }
    if image.metadata_version() < DIRECTORIES_SINCE {
        return Ok(());
    }
    let directories = &request.directories;
    if directories.is_empty() {
        return invalid("No directories specified in request".to_owned());
    }
    for (at, directory) in directories.iter().enumerate() {
        if directory.uuid().is_reserved() {
            return invalid("Reserved directory ID in request".to_owned());
        }
        if directories
            .iter()
            .skip(at + 1)
            .any(|other| other == directory)
        {
            return invalid("Duplicate directory ID in request".to_owned());
        }
        if let Some(owner) = image.directory_owner(*directory, request.broker_id) {
            return invalid(format!(
                "Broker {owner} is already registered with directory {directory}"
            ));
        }
    }
    Ok(())
}

/// Every finalised level must lie in the announced range; a feature that is not announced counts
/// as 0 to 0, one that is not finalised as level 0.
pub(super) fn check_features(
    image: &MetadataImage,
    announced: &[FeatureRange],
    kraft_version: i16,
    who: &str,
) -> Result<(), Refusal> {
    if !announced.iter().any(|it| it.name == METADATA_VERSION) {
        let text = format!("The {who} does not say which metadata.version it supports.");
        return Err(Refusal::new(ErrorCode::INVALID_REGISTRATION, text));
    }
    let unsupported = |name: &str, level: i16, min: i16, max: i16| {
        Err(Refusal::new(
            ErrorCode::UNSUPPORTED_VERSION,
            format!(
                "Unable to register because the {who} does not support finalized version {level} \
                 of {name}. The {who} wants a version between {min} and {max}, inclusive."
            ),
        ))
    };
    for range in announced {
        let level = if range.name == crate::image::KRAFT_VERSION {
            kraft_version
        } else {
            image.features.level(&range.name)
        };
        if !(range.min..=range.max).contains(&level) {
            return unsupported(&range.name, level, range.min, range.max);
        }
    }
    for (name, level) in &image.features.levels {
        let is_announced = announced.iter().any(|it| it.name == *name);
        if !is_announced && *level > 0 {
            return unsupported(name, *level, 0, 0);
        }
    }
    Ok(())
}

fn record(
    request: &Registration,
    epoch: BrokerEpoch,
    fenced: bool,
    in_controlled_shutdown: bool,
) -> RegisterBrokerRecord {
    broker_record(&BrokerImage {
        id: request.broker_id,
        epoch,
        incarnation: request.incarnation,
        endpoints: request.endpoints.clone(),
        features: request.features.clone(),
        rack: request.rack.clone(),
        fenced,
        in_controlled_shutdown,
        is_migrating: false,
        directories: request.directories.clone(),
        cordoned: None,
    })
}

#[cfg(test)]
mod tests {
    use highwater_types::{Millis, Offset};

    use super::*;
    use crate::controller::testing::{Cluster, directory, ids};

    fn refused(cluster: &Cluster, request: &Registration) -> ErrorCode {
        cluster.try_register(request).expect_err("refused").code
    }

    #[test]
    fn a_new_broker_gets_the_offset_of_its_registration_as_epoch() {
        let mut cluster = Cluster::new(0);
        let epoch = cluster.register(&cluster.registration(1));
        let broker = cluster.image().broker(NodeId::new(1)).expect("registered");
        assert!(broker.fenced);
        assert_eq!(broker.epoch, epoch);
        assert_eq!(epoch.raw() + 1, cluster.image().end.offset.raw());
    }

    #[test]
    fn cm_13_another_cluster_is_refused() {
        let cluster = Cluster::new(0);
        let request = Registration {
            cluster_id: "other".to_owned(),
            ..cluster.registration(1)
        };
        assert_eq!(
            refused(&cluster, &request),
            ErrorCode::INCONSISTENT_CLUSTER_ID
        );
    }

    #[test]
    fn directories_are_checked() {
        let cluster = Cluster::new(2);
        for directories in [
            vec![],
            vec![DirectoryId::LOST],
            vec![directory(7), directory(7)],
            vec![directory(2)],
        ] {
            let request = Registration {
                directories,
                ..cluster.registration(3)
            };
            assert_eq!(refused(&cluster, &request), ErrorCode::INVALID_REGISTRATION);
        }
    }

    #[test]
    fn cm_14_a_broker_that_lacks_a_finalised_level_is_refused() {
        let mut cluster = Cluster::new(0);
        cluster.finalize("group.version", 1);
        let good = cluster.registration(1);
        let without = |name: &str| Registration {
            features: good
                .features
                .iter()
                .filter(|it| it.name != name)
                .cloned()
                .collect(),
            ..good.clone()
        };
        assert_eq!(
            refused(&cluster, &without("group.version")),
            ErrorCode::UNSUPPORTED_VERSION
        );
        let no_version = without(METADATA_VERSION);
        assert_eq!(
            refused(&cluster, &no_version),
            ErrorCode::INVALID_REGISTRATION
        );
        let mut old = good.clone();
        for range in old
            .features
            .iter_mut()
            .filter(|it| it.name == METADATA_VERSION)
        {
            range.max = 30;
        }
        assert_eq!(refused(&cluster, &old), ErrorCode::UNSUPPORTED_VERSION);
        // Not finalised means level 0, which must be in the range.
        let mut above = good.clone();
        above.features.push(FeatureRange {
            name: "new".to_owned(),
            min: 1,
            max: 2,
        });
        assert_eq!(refused(&cluster, &above), ErrorCode::UNSUPPORTED_VERSION);
        assert!(cluster.try_register(&good).is_ok());
        // Not announced counts as 0 to 0: fine as long as it is not finalised.
        assert!(cluster.try_register(&without("share.version")).is_ok());
    }

    #[test]
    fn a_live_session_is_replaced_only_by_a_process_with_its_directories() {
        let mut cluster = Cluster::new(2);
        let other = Registration {
            incarnation: Uuid::from_u128(77),
            directories: vec![directory(9)],
            ..cluster.registration(1)
        };
        assert_eq!(
            refused(&cluster, &other),
            ErrorCode::DUPLICATE_BROKER_REGISTRATION
        );
        let restarted = Registration {
            directories: vec![directory(1)],
            ..other.clone()
        };
        assert!(cluster.try_register(&restarted).is_ok());
        // Once the session is over, any process may.
        cluster.advance(Millis::new(9001));
        assert!(cluster.try_register(&other).is_ok());
    }

    #[test]
    fn the_same_process_amends_its_registration_and_keeps_its_epoch() {
        let mut cluster = Cluster::new(1);
        let before = (**cluster.image().broker(NodeId::new(1)).expect("registered")).clone();
        let again = Registration {
            rack: Some("r".to_owned()),
            incarnation: before.incarnation,
            ..cluster.registration(1)
        };
        let epoch = cluster.register(&again);
        let after = cluster.image().broker(NodeId::new(1)).expect("registered");
        assert_eq!((epoch, after.fenced), (before.epoch, false));
        assert_eq!(after.rack.as_deref(), Some("r"));
    }

    #[test]
    fn cm_09_an_unclean_restart_loses_isr_and_leadership_before_it_serves() {
        let mut cluster = Cluster::new(3);
        cluster.create("t", &[&[1, 2, 3]]);
        let before = cluster.partition("t", 0);
        let restarted = Registration {
            incarnation: Uuid::from_u128(77),
            previous_epoch: BrokerEpoch::NONE,
            ..cluster.registration(1)
        };
        cluster.register(&restarted);
        let after = cluster.partition("t", 0);
        assert_eq!(after.leader, NodeId::new(2));
        assert_eq!(after.in_sync_replicas, ids(&[2, 3]));
        assert_eq!(after.leader_epoch, before.leader_epoch.next());
        assert!(
            cluster
                .image()
                .broker(NodeId::new(1))
                .is_some_and(|it| it.fenced)
        );
    }

    #[test]
    fn a_sole_replica_serves_again_at_once_after_a_kill() {
        let mut cluster = Cluster::new(1);
        cluster.create("t", &[&[1]]);
        let restarted = Registration {
            incarnation: Uuid::from_u128(77),
            ..cluster.registration(1)
        };
        let epoch = cluster.register(&restarted);
        let gone = cluster.partition("t", 0);
        assert_eq!(
            (gone.leader, gone.last_known_elr.clone()),
            (NodeId::NONE, ids(&[1]))
        );
        assert!(gone.in_sync_replicas.is_empty() && gone.eligible_leader_replicas.is_empty());
        cluster.unfence(1, epoch);
        let back = cluster.partition("t", 0);
        assert_eq!(
            (back.leader, back.in_sync_replicas.clone()),
            (NodeId::new(1), ids(&[1]))
        );
        assert!(back.recovering && back.last_known_elr.is_empty());
        assert_eq!(back.leader_epoch.raw(), 2);
    }

    #[test]
    fn a_clean_restart_stays_eligible() {
        let mut cluster = Cluster::new(1);
        cluster.create("t", &[&[1]]);
        let stopped = cluster
            .image()
            .broker(NodeId::new(1))
            .expect("registered")
            .epoch;
        let restarted = Registration {
            incarnation: Uuid::from_u128(77),
            previous_epoch: stopped,
            ..cluster.registration(1)
        };
        let epoch = cluster.register(&restarted);
        assert_eq!(
            cluster.partition("t", 0).eligible_leader_replicas,
            ids(&[1])
        );
        cluster.unfence(1, epoch);
        assert!(!cluster.partition("t", 0).recovering);
        assert!(cluster.image().end.offset > Offset::new(epoch.raw()));
    }

    #[test]
    fn under_the_old_rule_an_unclean_broker_stays_in_sync_and_only_leads_no_more() {
        let mut cluster = Cluster::new(2);
        cluster.controller.old_rule = true;
        cluster.create("t", &[&[1, 2], &[2, 1]]);
        let restarted = Registration {
            incarnation: Uuid::from_u128(77),
            ..cluster.registration(1)
        };
        let before = cluster.partition("t", 1);
        cluster.register(&restarted);
        let led = cluster.partition("t", 0);
        assert_eq!(
            (led.leader, led.in_sync_replicas),
            (NodeId::new(2), ids(&[1, 2]))
        );
        assert_eq!(
            cluster.partition("t", 1),
            before,
            "a follower there: nothing changes"
        );
    }

    #[test]
    fn i_14_a_broker_that_is_not_known_any_more_did_not_stop_cleanly() {
        let mut cluster = Cluster::new(2);
        cluster.create("t", &[&[2]]);
        cluster.beat(2, |it| it.want_fence = true);
        assert_eq!(
            cluster.partition("t", 0).eligible_leader_replicas,
            ids(&[2])
        );
        cluster.unregister(2);
        cluster.register(&cluster.registration(2));
        assert_eq!(cluster.partition("t", 0).eligible_leader_replicas, []);
    }

    #[test]
    fn np_08_a_registration_of_a_life_that_is_over_comes_too_late() {
        let mut cluster = Cluster::new(1);
        let lives = [70, 71].map(|number| Registration {
            incarnation: Uuid::from_u128(number),
            ..cluster.registration(1)
        });
        let first = cluster.registration(1);
        for life in &lives {
            cluster.register(life);
        }
        for late in [&first, &lives[0]] {
            let code = refused(&cluster, late);
            assert_eq!(code, ErrorCode::DUPLICATE_BROKER_REGISTRATION);
        }
        // The present one may say it again.
        assert!(cluster.try_register(&lives[1]).is_ok());
    }
}
