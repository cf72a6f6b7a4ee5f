//! Metadata that no controller would write, but that a damaged or crafted log may hold: a shard
//! takes them without a fall, and serves what it can.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_metadata::image::PartitionImage;
use highwater_node::Changed;
use highwater_types::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, Uuid};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use support::{World, batch};

struct Dice(ChaCha8Rng);

impl Dice {
    fn of(&mut self, sides: u32) -> u32 {
        self.0.next_u32() % sides
    }

    fn node(&mut self) -> NodeId {
        let ids = [1, 1, 1, 2, 3, -1, -2, 0, i32::MAX, i32::MIN];
        NodeId::new(ids[self.of(10) as usize])
    }

    fn nodes(&mut self) -> Vec<NodeId> {
        (0..self.of(5)).map(|_| self.node()).collect()
    }

    fn epoch(&mut self) -> i32 {
        [0, 1, 2, 3, 5, 7, 1000, i32::MAX - 1_000_000][self.of(8) as usize]
    }

    fn partition(&mut self) -> PartitionImage {
        let directory = |it: u32| match it {
            0 => DirectoryId::UNASSIGNED,
            1 => DirectoryId::MIGRATING,
            it => DirectoryId::new(Uuid::from_u128(u128::from(it) << 64)),
        };
        PartitionImage {
            assigned_replicas: self.nodes(),
            directories: (0..self.of(4)).map(|_| directory(self.of(4))).collect(),
            in_sync_replicas: self.nodes(),
            removing_replicas: self.nodes(),
            adding_replicas: self.nodes(),
            eligible_leader_replicas: self.nodes(),
            last_known_elr: self.nodes(),
            leader: self.node(),
            recovering: self.of(2) == 0,
            leader_epoch: LeaderEpoch::new(self.epoch()),
            partition_epoch: PartitionEpoch::new(self.epoch()),
        }
    }
}

#[test]
fn partitions_of_any_make_are_taken() {
    for seed in 0..60 {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let mut world = World::new();
        let sound = world.topic("sound", 1, &[]);
        let crafted = world.topic("crafted", 3, &[]);
        for _ in 0..30 {
            let mut topic = world
                .image
                .topics
                .get(&crafted)
                .expect("made")
                .as_ref()
                .clone();
            for _ in 0..1 + dice.of(3) {
                let index = [0, 1, 2, 9, i32::MAX][dice.of(5) as usize];
                let partition = Arc::new(dice.partition());
                topic
                    .partitions
                    .insert(PartitionIndex::new(index), partition);
            }
            world.image.topics.insert(crafted, Arc::new(topic));
            let changed = match dice.of(3) {
                0 => Changed::Everything,
                _ => Changed::Topics(Arc::new(BTreeSet::from([crafted]))),
            };
            world.publish(changed);
            let partition = i32::try_from(dice.of(3)).expect("small");
            let acks = [0, 1][dice.of(2) as usize];
            let conn = world.connect();
            world.send_produce(conn, acks, ("crafted", partition), batch(&["a"]));
            world.advance(u64::from(dice.of(200)));
        }
        let (error, _) = world.produce(1, ("sound", 0), batch(&["a"]));
        assert_eq!(error, 0, "seed {seed}: {sound} is served all the same");
        world.stop();
    }
}
