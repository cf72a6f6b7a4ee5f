//! Random runs: a seed decides the node, its topics, its clients, and everything that goes wrong.

mod cluster;
mod groups;

use highwater_types::{Millis, NodeId, TopicName, TopicPartition};

pub use self::cluster::run_cluster_seed;
use self::groups::Groups;
use crate::check::Counts;
use crate::client::ClientId;
use crate::random::Random;
use crate::setup;
use crate::trace::Trace;
use crate::world::clients::requests::{self, Purpose, Replicas};
use crate::world::clients::{ConsumerLoad, Load, ProducerLoad};
use crate::world::{Delays, World};

const NODE: NodeId = NodeId::new(1);
/// Makes the topics.
const ADMIN: ClientId = ClientId(1);
/// Things that go wrong in a run.
const FAULTS: (u64, u64) = (3, 9);
/// How long the node has to come up, and the clients to finish, once nothing goes wrong any more.
const PATIENCE: Millis = Millis::new(120_000);
const PRODUCE_VERSIONS: [i16; 6] = [3, 7, 8, 9, 12, 13];
const FETCH_VERSIONS: [i16; 7] = [4, 7, 11, 12, 13, 16, 18];

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub struct SeedReport {
    /// I-28: the same for the same seed.
    pub trace_hash: u64,
    /// Events that happened.
    pub events: u64,
    /// Batches that were found in logs and checked.
    pub batches: u64,
    /// Records that were acknowledged.
    pub acknowledged: u64,
    /// Records that clients read.
    pub read: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Assignments that members of groups were given.
    pub assignments: u64,
    /// Acknowledged or read records, and acknowledged commits, that a loss of power took.
    pub lost_with_power: u64,
}

/// Plays the random run of `seed`, and hands each line of its trace to `tell` as it happens.
///
/// # Panics
/// When an invariant breaks, with its id: a mistake of the node.
pub fn run_seed(seed: u64, tell: impl FnMut(&str) + 'static) -> SeedReport {
    let mut world = World::new(seed, Delays::WILD);
    world.trace = Trace::told_to(tell);
    let mut plan = Random::new(seed ^ 0x5eed);
    begin(&mut world, &mut plan);
    let topics = make_topics(&mut world, &mut plan);
    add_clients(&mut world, &mut plan, &topics);
    let mut groups = Groups::begin(&mut world, &mut plan, &topics);
    for _ in 0..plan.between(FAULTS.0, FAULTS.1) {
        world.run_for(Millis::new(plan.between(5, 4000)));
        if !groups.one_fault(&mut world, &mut plan) {
            one_fault(&mut world, &mut plan);
        }
    }
    groups.go_on(&mut world);
    finish(&mut world);
    report(&world)
}

fn begin(world: &mut World, plan: &mut Random) {
    let shards = u16::try_from(plan.between(1, 3)).unwrap_or(1);
    let dirs = usize::try_from(plan.between(1, 2)).unwrap_or(1);
    let interval = plan.between(200, 6000).to_string();
    let flush_messages = plan.pick(&["1", "9223372036854775807"]);
    let groups_partitions = plan.pick(&["1", "2"]);
    let delay = plan.pick(&["0", "200", "3000"]);
    let keys = [
        (
            "replica.high.watermark.checkpoint.interval.ms",
            interval.as_str(),
        ),
        ("log.flush.offset.checkpoint.interval.ms", interval.as_str()),
        ("log.retention.check.interval.ms", "1000"),
        ("log.flush.interval.messages", flush_messages),
        ("offsets.topic.num.partitions", groups_partitions),
        ("group.initial.rebalance.delay.ms", delay),
    ];
    setup::one_node(world, NODE, shards, dirs, &keys).expect("keys of a run are right");
    assert!(
        world.run_until(PATIENCE, |world| world.serves(NODE)),
        "the node comes to serve"
    );
}

fn make_topics(world: &mut World, plan: &mut Random) -> Vec<TopicPartition> {
    world.add_client(ADMIN, NODE, Load::Scripted);
    let mut partitions = Vec::new();
    for number in 0..plan.between(1, 3) {
        let name = TopicName::new(&format!("t{number}")).expect("a legal name");
        let count = i32::try_from(plan.between(1, 3)).unwrap_or(1);
        let flush_messages = plan.pick(&["1", "3", "9223372036854775807"]);
        let segment_bytes = plan.pick(&["400", "2000", "1000000"]);
        let configs = [
            ("flush.messages", *flush_messages),
            ("internal.segment.bytes", *segment_bytes),
            ("index.interval.bytes", "100"),
        ];
        let request = requests::create_topic(&name, count, &Replicas::Count(1), &configs);
        let asked = world.ask(ADMIN, &request, 7, Purpose::CreateTopic(name.clone()));
        asked.expect("the node serves");
        let made = world.run_until(PATIENCE, |world| {
            let admin = world.clients.get(&ADMIN);
            admin.is_some_and(|it| it.topic_ids.contains_key(&name))
        });
        assert!(made, "topic {name} is made");
        partitions.extend((0..count).map(|at| requests::partition(&name, at)));
    }
    partitions
}

fn add_clients(world: &mut World, plan: &mut Random, partitions: &[TopicPartition]) {
    let topic_ids = world.client(ADMIN).topic_ids.clone();
    let mut next = ADMIN.0;
    let mut add = |world: &mut World, load: Load| {
        next += 1;
        let id = ClientId(next);
        world.add_client(id, NODE, load);
        world.client(id).topic_ids = topic_ids.clone();
    };
    for _ in 0..plan.between(1, 3) {
        let version = *plan.pick(&PRODUCE_VERSIONS);
        let (idempotent, budget) = (plan.percent(70), plan.between(20, 150));
        let acks = if idempotent || plan.percent(50) {
            -1
        } else {
            1
        };
        let load = ProducerLoad::new(partitions.to_vec(), version, acks, idempotent, budget);
        add(world, Load::Producer(load));
    }
    for _ in 0..plan.between(1, 2) {
        let version = *plan.pick(&FETCH_VERSIONS);
        let isolation_level = i8::from(plan.percent(40));
        let load = ConsumerLoad::new(partitions, version, isolation_level);
        add(world, Load::Consumer(load));
    }
}

fn one_fault(world: &mut World, plan: &mut Random) {
    let pause = Millis::new(plan.between(0, 500));
    match plan.below(6) {
        0 => world.crash(NODE),
        1 | 2 => world.power_off(NODE),
        3 => world.power_off_losing_unsynced(NODE),
        4 => world.stop(NODE),
        _ => {
            let clients: Vec<ClientId> = world.clients.keys().copied().collect();
            let client = *plan.pick(&clients);
            world.cut_client(client);
        }
    }
    if !world.runs(NODE) {
        world.run_for(pause);
        world.start(NODE);
        assert!(
            world.run_until(PATIENCE, |world| world.serves(NODE)),
            "it serves again"
        );
    }
}

/// Nothing goes wrong any more: everybody gets done, and every consumer reads to the end.
fn finish(world: &mut World) {
    let done = world.run_until(PATIENCE, |world| {
        world.clients.values().all(|client| match &client.load {
            Load::Producer(load) => load.is_done() && client.in_flight() == 0,
            Load::Scripted | Load::Consumer(_) | Load::Member(_) | Load::Hand(_) | Load::Gone => {
                true
            }
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
    world.run_for(Millis::new(3000));
}

fn report(world: &World) -> SeedReport {
    let Counts {
        batches,
        acknowledged,
        read,
        lost_with_power,
    } = world.checker.counts;
    let groups = world.checker.groups.counts;
    SeedReport {
        trace_hash: world.trace.hash(),
        events: world.steps,
        batches,
        acknowledged,
        read,
        commits: groups.commits,
        assignments: groups.assignments,
        lost_with_power,
    }
}
