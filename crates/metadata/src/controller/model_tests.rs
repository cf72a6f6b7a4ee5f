//! The controller among brokers that replicate one partition, each on what it last heard: whatever
//! arrives late, twice or not at all, who may lead has every committed record.
//!
//! The brokers here are a sketch, no second broker: a log is a list of epochs and numbers, a fetch
//! cuts to the common prefix and copies. What is tested is what the controller lets in.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, NodeId, PartitionIndex, TopicIdPartition, Uuid,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::testing::{Cluster, ids};
use super::{AlterPartition, IsrChange, Registration};
use crate::image::PartitionImage;

type Log = Vec<(LeaderEpoch, u32)>;

/// A broker, as far as it replicates the partition.
#[derive(Debug, Default)]
struct Replica {
    /// The registration of this life.
    life: BrokerEpoch,
    log: Log,
    /// What a loss of power leaves.
    flushed: usize,
    /// The partition as this life last heard of it; `None` before it heard anything.
    seen: Option<PartitionImage>,
    leads: Option<Leading>,
    /// It lost records and has not registered since.
    dirty: bool,
}

/// What a leader knows.
#[derive(Debug, Default)]
struct Leading {
    epoch_start: usize,
    high_watermark: usize,
    /// How far each follower is, and its registration.
    followers: BTreeMap<NodeId, (usize, BrokerEpoch)>,
    /// Who is asked to be let in.
    pending: Option<Option<NodeId>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Append(i32),
    Flush(i32),
    Learn(i32),
    /// The follower fetches at most so many records.
    Fetch(i32, usize),
    /// The leader asks to let this one in, or out.
    Ask(i32, i32),
    /// A request arrives, and perhaps once more later.
    Deliver(usize, bool),
    /// The process ends as told, and another begins.
    Restart(i32, End),
    Beat(i32),
    Fence(i32),
    ShutDown(i32),
    /// Nobody but the one is heard of for a session.
    Silence(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Clean,
    Killed,
    PowerLost,
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 1..6_i32;
    let end = prop_oneof![Just(End::Clean), Just(End::Killed), Just(End::PowerLost)];
    prop_oneof![
        3 => id().prop_map(Step::Append),
        2 => id().prop_map(Step::Flush),
        4 => id().prop_map(Step::Learn),
        6 => (id(), 0..4_usize).prop_map(|(id, count)| Step::Fetch(id, count)),
        3 => (id(), id()).prop_map(|(leader, other)| Step::Ask(leader, other)),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(at, again)| Step::Deliver(at, again)),
        2 => (id(), end).prop_map(|(id, end)| Step::Restart(id, end)),
        4 => id().prop_map(Step::Beat),
        1 => id().prop_map(Step::Fence),
        1 => id().prop_map(Step::ShutDown),
        1 => id().prop_map(Step::Silence),
    ]
}

struct Model {
    cluster: Cluster,
    at: TopicIdPartition,
    min_isr: usize,
    replicas: BTreeMap<NodeId, Replica>,
    /// Requests of leaders on their way.
    on_the_way: Vec<(BrokerEpoch, NodeId, IsrChange)>,
    /// Every record that was ever committed and is not known to be lost.
    committed: Log,
    appended: u32,
    lives: u128,
}

impl Model {
    fn new(brokers: i32, min_isr: usize) -> Self {
        let config = format!("min.insync.replicas={min_isr}\n");
        let mut cluster = Cluster::with_config(brokers, &config);
        let all: Vec<i32> = (1..=brokers).collect();
        cluster.create("t", &[&all]);
        let topic_id = cluster.image().topic_by_name("t").expect("made").id;
        let at = TopicIdPartition {
            topic_id,
            partition: PartitionIndex::new(0),
        };
        let replica = |id: &NodeId| Replica {
            life: cluster.image().broker(*id).expect("registered").epoch,
            ..Replica::default()
        };
        let replicas = ids(&all).iter().map(|id| (*id, replica(id))).collect();
        let mut model = Self {
            cluster,
            at,
            min_isr: min_isr.min(all.len()),
            replicas,
            on_the_way: Vec::new(),
            committed: Log::new(),
            appended: 0,
            lives: 0,
        };
        for id in ids(&all) {
            model.learn(id);
        }
        model
    }

    fn partition(&self) -> PartitionImage {
        self.cluster.partition("t", 0)
    }

    fn apply(&mut self, step: Step) {
        let known = |id: i32| self.replicas.contains_key(&NodeId::new(id));
        match step {
            Step::Append(id)
            | Step::Flush(id)
            | Step::Learn(id)
            | Step::Fetch(id, _)
            | Step::Ask(id, _)
            | Step::Restart(id, _)
            | Step::Beat(id)
            | Step::Fence(id)
            | Step::ShutDown(id)
                if !known(id) => {}
            Step::Append(id) => self.append(NodeId::new(id)),
            Step::Flush(id) => {
                let replica = self.replica(NodeId::new(id));
                replica.flushed = replica.log.len();
            }
            Step::Learn(id) => self.learn(NodeId::new(id)),
            Step::Fetch(id, count) => self.fetch(NodeId::new(id), count),
            Step::Ask(leader, other) => self.ask(NodeId::new(leader), NodeId::new(other)),
            Step::Deliver(at, again) => self.deliver(at, again),
            Step::Restart(id, end) => self.restart(id, end),
            Step::Beat(id) => drop(self.cluster.beat(id, |_| {})),
            Step::Fence(id) => drop(self.cluster.beat(id, |it| it.want_fence = true)),
            Step::ShutDown(id) => drop(self.cluster.beat(id, |it| it.want_shut_down = true)),
            Step::Silence(heard) => self.silence(heard),
        }
    }

    fn replica(&mut self, id: NodeId) -> &mut Replica {
        self.replicas.get_mut(&id).expect("known")
    }

    fn append(&mut self, id: NodeId) {
        self.appended += 1;
        let number = self.appended;
        let replica = self.replica(id);
        if let (Some(seen), Some(_)) = (&replica.seen, &replica.leads) {
            replica.log.push((seen.leader_epoch, number));
        }
        self.advance_high_watermark(id);
    }

    /// A broker hears how the partition is now.
    fn learn(&mut self, id: NodeId) {
        let now = self.partition();
        let replica = self.replica(id);
        let newer = replica
            .seen
            .as_ref()
            .is_none_or(|seen| now.leader_epoch > seen.leader_epoch);
        if newer {
            replica.leads = (now.leader == id).then(|| Leading {
                epoch_start: replica.log.len(),
                ..Leading::default()
            });
        } else if let Some(leads) = &mut replica.leads {
            let before = replica.seen.as_ref().expect("it leads");
            if now.partition_epoch > before.partition_epoch {
                leads.pending = None;
            }
        }
        replica.seen = Some(now);
        self.advance_high_watermark(id);
    }

    fn fetch(&mut self, id: NodeId, count: usize) {
        let Some(seen) = self.replica(id).seen.clone() else {
            return;
        };
        let Some(leader) = self
            .replicas
            .get(&seen.leader)
            .filter(|_| seen.leader != id)
        else {
            return;
        };
        let same_epoch = leader.seen.as_ref().map(|it| it.leader_epoch) == Some(seen.leader_epoch);
        if leader.leads.is_none() || !same_epoch {
            return;
        }
        let from = leader.log.clone();
        let replica = self.replica(id);
        let common = common(&replica.log, &from);
        if common < replica.log.len() {
            // The answer tells of the divergence, and counts for nothing.
            replica.log.truncate(common);
            replica.flushed = replica.flushed.min(common);
            return;
        }
        let (offset, life) = (replica.log.len(), replica.life);
        replica.log.extend(from.iter().skip(common).take(count));
        let leads = self.replica(seen.leader).leads.as_mut();
        leads
            .expect("it leads")
            .followers
            .insert(id, (offset, life));
        self.advance_high_watermark(seen.leader);
    }

    /// What a leader holds for committed is so.
    fn advance_high_watermark(&mut self, id: NodeId) {
        let min_isr = self.min_isr;
        let replica = self.replicas.get_mut(&id).expect("known");
        let end = replica.log.len();
        let (Some(leads), Some(seen)) = (&mut replica.leads, &replica.seen) else {
            return;
        };
        if seen.in_sync_replicas.len() < min_isr {
            return;
        }
        let joining = leads.pending.flatten();
        let members = seen.in_sync_replicas.iter().copied().chain(joining);
        let follower = |member: NodeId| match leads.followers.get(&member) {
            _ if member == id => end,
            Some((offset, _)) => *offset,
            None => 0,
        };
        let reached = members.map(follower).min().unwrap_or(0);
        leads.high_watermark = leads.high_watermark.max(reached);
        let committed = &replica.log[..leads.high_watermark.min(end)];
        if committed.len() > self.committed.len() {
            let shared = &committed[..self.committed.len()];
            assert_eq!(shared, self.committed, "another history was committed");
            self.committed = committed.to_vec();
        }
    }

    fn ask(&mut self, leader: NodeId, other: NodeId) {
        let at = self.at;
        let replica = self.replica(leader);
        let life = replica.life;
        let (Some(leads), Some(seen)) = (&mut replica.leads, &replica.seen) else {
            return;
        };
        if leads.pending.is_some() || other == leader {
            return;
        }
        let in_sync = seen.in_sync_replicas.contains(&other);
        let needed = leads.high_watermark.max(leads.epoch_start);
        let ready = leads.followers.get(&other).is_some_and(|it| it.0 >= needed);
        if !in_sync && !ready {
            return;
        }
        let mut isr: BTreeSet<NodeId> = seen.in_sync_replicas.iter().copied().collect();
        if in_sync {
            isr.remove(&other);
        } else {
            isr.insert(other);
        }
        leads.pending = Some((!in_sync).then_some(other));
        let epoch_of = |id: NodeId| match leads.followers.get(&id) {
            _ if id == leader => life,
            Some((_, life)) => *life,
            None => BrokerEpoch::NONE,
        };
        let change = IsrChange {
            at,
            leader_epoch: seen.leader_epoch,
            partition_epoch: seen.partition_epoch,
            in_sync_replicas: isr.into_iter().map(|id| (id, epoch_of(id))).collect(),
            recovering: false,
        };
        self.on_the_way.push((life, leader, change));
    }

    fn deliver(&mut self, at: usize, again: bool) {
        if self.on_the_way.is_empty() {
            return;
        }
        let at = at % self.on_the_way.len();
        let (life, leader, change) = if again {
            self.on_the_way[at].clone()
        } else {
            self.on_the_way.remove(at)
        };
        let request = AlterPartition {
            broker_id: leader,
            broker_epoch: life,
            changes: vec![change.clone()],
        };
        let before = self.partition();
        let image = self.cluster.image();
        let decision = self.cluster.controller.alter_partition(image, &request);
        let Ok(decision) = decision else {
            return;
        };
        self.cluster.apply(&decision.records);
        let stale = change.leader_epoch < before.leader_epoch
            || change.partition_epoch < before.partition_epoch;
        if stale {
            assert_eq!(
                self.partition(),
                before,
                "I-20: an older message changed something"
            );
        }
        let replica = self.replica(leader);
        let (Some(leads), Some(seen)) = (&mut replica.leads, &mut replica.seen) else {
            return;
        };
        if replica.life != life || seen.leader_epoch != change.leader_epoch {
            return;
        }
        match &decision.answer[0].result {
            Ok(state) if state.partition_epoch >= seen.partition_epoch => {
                seen.in_sync_replicas.clone_from(&state.in_sync_replicas);
                seen.partition_epoch = state.partition_epoch;
                leads.pending = None;
            }
            // It proves that the change was not made.
            Err(ErrorCode::INELIGIBLE_REPLICA)
                if change.partition_epoch == seen.partition_epoch =>
            {
                leads.pending = None;
            }
            _ => {}
        }
        self.advance_high_watermark(leader);
    }

    fn restart(&mut self, id: i32, end: End) {
        let node = NodeId::new(id);
        self.lives += 1;
        let incarnation = Uuid::from_u128(100_000 + self.lives);
        let replica = self.replica(node);
        match end {
            End::Clean => replica.flushed = replica.log.len(),
            End::Killed => {}
            End::PowerLost => {
                replica.dirty |= replica.flushed < replica.log.len();
                replica.log.truncate(replica.flushed);
            }
        }
        let previous_epoch = if end == End::Clean {
            replica.life
        } else {
            BrokerEpoch::NONE
        };
        (replica.seen, replica.leads) = (None, None);
        let request = Registration {
            incarnation,
            previous_epoch,
            ..self.cluster.registration(id)
        };
        let life = self.cluster.register(&request);
        let (after, old_rule) = (self.partition(), self.cluster.controller.old_rule);
        let replica = self.replica(node);
        (replica.life, replica.dirty) = (life, false);
        if end != End::Clean && !old_rule {
            let known = after.in_sync_replicas.contains(&node)
                || after.eligible_leader_replicas.contains(&node);
            assert!(!known && after.leader != node, "I-14: {after:?}");
        }
    }

    fn silence(&mut self, heard: i32) {
        self.cluster.advance(Millis::new(8999));
        if self.replicas.contains_key(&NodeId::new(heard)) {
            self.cluster.beat(heard, |_| {});
        }
        self.cluster.advance(Millis::new(1));
        while self.cluster.fence_one_expired().is_some() {}
    }

    fn check(&mut self, before: &PartitionImage) {
        let now = self.partition();
        assert!(now.leader_epoch >= before.leader_epoch, "I-20");
        assert!(now.partition_epoch >= before.partition_epoch, "I-20");
        if now.has_leader() {
            assert!(now.in_sync_replicas.contains(&now.leader), "I-04: {now:?}");
        }
        let elected = now.leader_epoch > before.leader_epoch && now.has_leader();
        if elected && now.recovering {
            // The last known leader, which may have lost records: a loss, and marked as one.
            let log = &self.replicas[&now.leader].log;
            let kept = common(log, &self.committed);
            self.committed.truncate(kept);
        }
        let candidates = now.in_sync_replicas.iter();
        for id in candidates.chain(&now.eligible_leader_replicas) {
            let replica = &self.replicas[id];
            if !replica.dirty {
                let shared = common(&replica.log, &self.committed);
                assert_eq!(
                    shared,
                    self.committed.len(),
                    "I-06: {id} may lead and lacks what is committed: {now:?}"
                );
            }
        }
    }
}

fn common(left: &[(LeaderEpoch, u32)], right: &[(LeaderEpoch, u32)]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

fn play(model: &mut Model, steps: Vec<Step>) {
    for step in steps {
        let before = model.partition();
        model.apply(step);
        model.check(&before);
    }
}

/// The model sees what it is there to see: who stopped uncleanly and stays in sync loses records.
#[test]
fn the_old_rule_is_found_to_lose_records() {
    let config = Config {
        cases: 2_000,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let steps = proptest::collection::vec(step(), 1..150);
    let found = runner.run(&steps, |steps| {
        let mut model = Model::new(3, 1);
        model.cluster.controller.old_rule = true;
        let lost = catch_unwind(AssertUnwindSafe(|| play(&mut model, steps)));
        prop_assert!(lost.is_ok());
        Ok(())
    });
    assert!(found.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn i_04_i_06_i_14_i_20_hold_whatever_arrives_when(
        brokers in 3..=5_i32,
        min_isr in 1..=3_usize,
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        play(&mut Model::new(brokers, min_isr), steps);
    }
}
