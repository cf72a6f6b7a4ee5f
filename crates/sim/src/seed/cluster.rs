//! Random runs of clusters: a seed decides the nodes, their topics and clients, and everything that
//! goes wrong. In the end nothing does any more, and everybody has to come to rest.

mod faults;
mod topics;

use highwater_types::{Millis, NodeId};

use self::faults::Faults;
use self::topics::Topics;
use super::groups::Groups;
use super::{ADMIN, FETCH_VERSIONS, PRODUCE_VERSIONS, SeedReport, report};
use crate::client::ClientId;
use crate::random::Random;
use crate::setup::{self, NodePlan};
use crate::trace::Trace;
use crate::world::clients::{ConsumerLoad, Load, ProducerLoad};
use crate::world::{Delays, World};

/// Things that go wrong in a run.
const FAULTS: (u64, u64) = (4, 12);
/// How long nodes have to come up, and clients to finish, once nothing goes wrong any more.
const PATIENCE: Millis = Millis::new(120_000);

/// Plays the random run of a cluster that belongs to `seed`, and hands each line of its trace to
/// `tell` as it happens.
///
/// # Panics
/// When an invariant breaks, with its id: a mistake of a node.
pub fn run_cluster_seed(seed: u64, tell: impl FnMut(&str) + 'static) -> SeedReport {
    let mut world = World::new(seed, Delays::WILD);
    world.trace = Trace::told_to(tell);
    let mut plan = Random::new(seed ^ 0xc105_7e45);
    begin(&mut world, &mut plan);
    let mut topics = Topics::begin(&mut world, &mut plan);
    add_clients(&mut world, &mut plan, &topics);
    let mut groups = Groups::begin(&mut world, &mut plan, topics.lasting());
    let mut faults = Faults::default();
    for _ in 0..plan.between(FAULTS.0, FAULTS.1) {
        let span = Millis::new(plan.between(5, 3000));
        faults.advance(&mut world, span);
        match plan.below(10) {
            0 if groups.one_fault(&mut world, &mut plan) => {}
            1 => topics.change(&mut world, &mut plan, &mut faults),
            _ => faults.one_more(&mut world, &mut plan),
        }
    }
    faults.repair_everything(&mut world);
    groups.go_on(&mut world);
    finish(&mut world, &mut topics);
    report(&world)
}

fn begin(world: &mut World, plan: &mut Random) {
    let brokers = i32::try_from(plan.between(3, 5)).unwrap_or(3);
    let apart = plan.percent(50);
    let like = NodePlan {
        keys: keys(plan, brokers),
        ..NodePlan::alone(NodeId::new(1), 1, 1, &[])
    };
    let plans = NodePlan::cluster(brokers, apart, &like);
    let mut plans = plans.expect("a cluster of 3 to 5 brokers");
    for node in &mut plans {
        node.shards = u16::try_from(plan.between(1, 3)).unwrap_or(1);
        node.dirs = usize::try_from(plan.between(1, 2)).unwrap_or(1);
    }
    setup::cluster(world, &plans).expect("keys of a run are right");
    everybody_serves(world);
    world.late_copies = *plan.pick(&[0, 0, 5, 50]);
}

fn keys(plan: &mut Random, brokers: i32) -> Vec<(String, String)> {
    let interval = plan.between(200, 6000).to_string();
    let session = plan.between(1500, 5000);
    let groups_replicas = plan.between(1, u64::try_from(brokers.min(3)).unwrap_or(1));
    let groups_min_isr = plan.between(1, groups_replicas.min(2));
    let keys = [
        (
            "replica.lag.time.max.ms",
            plan.between(700, 5000).to_string(),
        ),
        (
            "replica.fetch.wait.max.ms",
            plan.between(50, 600).to_string(),
        ),
        ("broker.session.timeout.ms", session.to_string()),
        (
            "broker.heartbeat.interval.ms",
            plan.between(100, session / 3).to_string(),
        ),
        (
            "replica.high.watermark.checkpoint.interval.ms",
            interval.clone(),
        ),
        ("log.flush.offset.checkpoint.interval.ms", interval),
        ("log.retention.check.interval.ms", "1000".to_owned()),
        ("controlled.shutdown.max.retries", "1".to_owned()),
        (
            "offsets.topic.num.partitions",
            plan.between(1, 2).to_string(),
        ),
        (
            "offsets.topic.replication.factor",
            groups_replicas.to_string(),
        ),
        (
            "group.initial.rebalance.delay.ms",
            (*plan.pick(&["0", "200", "3000"])).to_owned(),
        ),
        ("min.insync.replicas", groups_min_isr.to_string()),
        (
            "metadata.log.max.record.bytes.between.snapshots",
            (*plan.pick(&["1500", "6000", "20971520"])).to_owned(),
        ),
    ];
    keys.into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn everybody_serves(world: &mut World) {
    let came = world.run_until(PATIENCE, |world| {
        world.nodes().keys().all(|id| world.is_up(*id))
    });
    let silent = world.nodes().keys().filter(|id| !world.is_up(**id));
    let silent: Vec<_> = silent.collect();
    assert!(came, "I-26: {silent:?} do not come to serve");
}

fn add_clients(world: &mut World, plan: &mut Random, topics: &Topics) {
    let mut next = ADMIN.0;
    let mut add = |world: &mut World, plan: &mut Random, load: Load| {
        next += 1;
        let id = ClientId(next);
        let node = *plan.pick(&world.brokers());
        world.add_client(id, node, load);
    };
    for _ in 0..plan.between(1, 3) {
        let version = *plan.pick(&PRODUCE_VERSIONS);
        let (idempotent, budget) = (plan.percent(70), plan.between(20, 120));
        let acks = if idempotent || plan.percent(50) {
            -1
        } else {
            1
        };
        let partitions = topics.lasting().to_vec();
        let load = ProducerLoad::new(partitions, version, acks, idempotent, budget);
        add(world, plan, Load::Producer(load));
    }
    for _ in 0..plan.between(1, 2) {
        let version = *plan.pick(&FETCH_VERSIONS);
        let isolation_level = i8::from(plan.percent(40));
        let mut load = ConsumerLoad::new(topics.lasting(), version, isolation_level);
        if version >= FOLLOWERS_SERVE_SINCE {
            load.from_followers_percent = *plan.pick(&[0, 0, 20, 60]);
        }
        add(world, plan, Load::Consumer(load));
    }
    let topic_ids = world.client(ADMIN).topic_ids.clone();
    for client in world.clients.values_mut() {
        client.topic_ids.clone_from(&topic_ids);
    }
}

/// The first version of Fetch in which consumers may read from followers (KIP-392).
const FOLLOWERS_SERVE_SINCE: i16 = 11;

/// Nothing goes wrong any more: everybody gets done, and every replica has what its leader has.
fn finish(world: &mut World, topics: &mut Topics) {
    everybody_serves(world);
    topics.finish(world);
    let done = world.run_until(PATIENCE, |world| {
        // The last copy has holes, which is said: what waits for others waits for ever.
        world.checker.has_holed_leader()
            || world.clients.values().all(|client| match &client.load {
                Load::Producer(load) => load.is_done() && client.in_flight() == 0,
                Load::Scripted
                | Load::Consumer(_)
                | Load::Member(_)
                | Load::Hand(_)
                | Load::Gone => true,
            })
    });
    assert!(done, "I-26: producers do not finish");
    let settled = world.run_until(PATIENCE, |world| {
        let mut members = world.members();
        // Groups whose log is damaged are not served, which is said: nobody can settle there.
        world.checker.groups.is_damaged
            || members.all(|(_, load)| world.is_settled(&load.config.group_id))
    });
    assert!(settled, "I-26: groups do not settle");
    let rests = world.run_until(PATIENCE, |world| world.why_not_settled().is_none());
    let why = world.why_not_settled().unwrap_or_default();
    assert!(rests, "I-26: {why}");
    world.run_for(Millis::new(1000));
}
