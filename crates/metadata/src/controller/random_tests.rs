//! Whatever happens to brokers, partitions keep their invariants.

use highwater_types::{BrokerEpoch, Millis, NodeId, Uuid};
use proptest::prelude::*;

use super::Registration;
use super::testing::{Cluster, ids};
use crate::image::PartitionImage;

const BROKERS: i32 = 4;
const PARTITIONS: [(&str, i32); 4] = [("three", 0), ("three", 1), ("two", 0), ("one", 0)];

#[derive(Clone, Debug)]
enum Happening {
    /// The process dies; a new one registers. Cleanly: with the epoch of the last one.
    Restart { id: i32, clean: bool },
    /// The broker says that it is ready.
    Unfence { id: i32 },
    /// The broker asks to stop, again and again.
    ShutDown { id: i32 },
    /// Time passes without a word from anybody.
    Silence,
    /// Everybody but one is heard of while time passes.
    SilenceOf { id: i32 },
}

fn happening() -> impl Strategy<Value = Happening> {
    let id = || 1..=BROKERS;
    prop_oneof![
        (id(), any::<bool>()).prop_map(|(id, clean)| Happening::Restart { id, clean }),
        id().prop_map(|id| Happening::Unfence { id }),
        id().prop_map(|id| Happening::ShutDown { id }),
        Just(Happening::Silence),
        id().prop_map(|id| Happening::SilenceOf { id }),
    ]
}

fn apply(cluster: &mut Cluster, step: &Happening, lives: &mut u128) {
    match *step {
        Happening::Restart { id, clean } => {
            *lives += 1;
            let stored = cluster
                .image()
                .broker(NodeId::new(id))
                .expect("registered")
                .epoch;
            let request = Registration {
                incarnation: Uuid::from_u128(100_000 + *lives),
                previous_epoch: if clean { stored } else { BrokerEpoch::NONE },
                ..cluster.registration(id)
            };
            cluster.register(&request);
        }
        Happening::Unfence { id } => {
            cluster.beat(id, |_| {});
        }
        Happening::ShutDown { id } => {
            cluster.beat(id, |it| it.want_shut_down = true);
        }
        Happening::Silence => {
            cluster.advance(Millis::new(9000));
            while cluster.fence_one_expired().is_some() {}
        }
        Happening::SilenceOf { id } => {
            cluster.advance(Millis::new(8999));
            for other in (1..=BROKERS).filter(|other| *other != id) {
                let image = cluster.image();
                let broker = image.broker(NodeId::new(other)).expect("registered");
                if !broker.fenced && !broker.in_controlled_shutdown {
                    cluster.beat(other, |_| {});
                }
            }
            cluster.advance(Millis::new(1));
            while cluster.fence_one_expired().is_some() {}
        }
    }
}

fn check(cluster: &Cluster, before: &PartitionImage, after: &PartitionImage) {
    let image = cluster.image();
    let assigned = &after.assigned_replicas;
    assert!(
        after.leader_epoch >= before.leader_epoch,
        "a leader epoch fell"
    );
    assert!(
        after.partition_epoch >= before.partition_epoch,
        "a partition epoch fell"
    );
    if after.leader != before.leader {
        assert!(
            after.leader_epoch > before.leader_epoch,
            "a leader without an epoch of its own"
        );
    }
    if after.has_leader() {
        assert!(
            after.in_sync_replicas.contains(&after.leader),
            "I-04: {after:?}"
        );
        assert!(
            image.is_active(after.leader),
            "{} leads but is not active",
            after.leader
        );
        assert!(after.last_known_elr.is_empty(), "{after:?}");
    }
    for replica in &after.in_sync_replicas {
        assert!(assigned.contains(replica));
        assert!(
            image.is_active(*replica),
            "{replica} is in sync but not active"
        );
        assert!(
            !after.eligible_leader_replicas.contains(replica),
            "{after:?}"
        );
    }
    for replica in &after.eligible_leader_replicas {
        assert!(assigned.contains(replica));
    }
    // I-15: somebody is always left to recover from.
    let left = after.in_sync_replicas.len()
        + after.eligible_leader_replicas.len()
        + after.last_known_elr.len();
    assert!(left > 0, "{after:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn i_04_i_13_i_15_i_20_hold_whatever_happens(
        steps in proptest::collection::vec(happening(), 1..60),
        min_isr in 1..=3,
    ) {
        let config = format!("min.insync.replicas={min_isr}\n");
        let mut cluster = Cluster::with_config(BROKERS, &config);
        cluster.create("three", &[&[1, 2, 3], &[2, 3, 4]]);
        cluster.create("two", &[&[4, 1]]);
        cluster.create("one", &[&[3]]);
        let mut lives = 0;
        let partitions = |cluster: &Cluster| -> Vec<PartitionImage> {
            PARTITIONS.iter().map(|(topic, index)| cluster.partition(topic, *index)).collect()
        };
        let mut before = partitions(&cluster);
        for step in &steps {
            apply(&mut cluster, step, &mut lives);
            let after = partitions(&cluster);
            for (before, after) in before.iter().zip(&after) {
                check(&cluster, before, after);
            }
            before = after;
        }
        // Once everybody is back, every partition has a leader.
        for id in 1..=BROKERS {
            apply(&mut cluster, &Happening::Restart { id, clean: true }, &mut lives);
            apply(&mut cluster, &Happening::Unfence { id }, &mut lives);
        }
        for partition in partitions(&cluster) {
            prop_assert!(partition.has_leader(), "{partition:?}");
        }
        prop_assert_eq!(cluster.partition("one", 0).assigned_replicas, ids(&[3]));
    }
}
