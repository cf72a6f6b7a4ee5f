//! The topics of a random run of a cluster. Some come and go while it lasts.

use highwater_types::{ErrorCode, Millis, TopicName, TopicPartition};

use super::super::ADMIN;
use super::PATIENCE;
use super::faults::Faults;
use crate::random::Random;
use crate::world::World;
use crate::world::clients::Load;
use crate::world::clients::requests::{self, Purpose, Replicas};

/// How long the admin waits for an answer while things go wrong.
const ANSWER_PATIENCE: Millis = Millis::new(3000);
/// How often it asks while things go wrong.
const TRIES: usize = 4;

/// The topics of a run.
#[derive(Debug, Default)]
pub(super) struct Topics {
    lasting: Vec<TopicPartition>,
    /// Topics that come and go, and are there.
    passing: Vec<TopicName>,
    /// Topics that are to go, and perhaps have not.
    going: Vec<TopicName>,
    count: u64,
}

impl Topics {
    /// Makes the topics that last.
    pub(super) fn begin(world: &mut World, plan: &mut Random) -> Self {
        let node = *plan.pick(&world.brokers());
        world.add_client(ADMIN, node, Load::Scripted);
        let mut topics = Self::default();
        let mut faults = Faults::default();
        for number in 0..plan.between(1, 3) {
            let name = TopicName::new(&format!("t{number}")).expect("a legal name");
            let made = topics.make(world, plan, &mut faults, &name);
            let made = made.unwrap_or_else(|| panic!("topic {name} is made"));
            topics.lasting.extend(made);
        }
        topics
    }

    /// The partitions of the topics that last.
    pub(super) fn lasting(&self) -> &[TopicPartition] {
        &self.lasting
    }

    /// A topic comes or goes.
    pub(super) fn change(&mut self, world: &mut World, plan: &mut Random, faults: &mut Faults) {
        if !self.passing.is_empty() && plan.percent(60) {
            let at = usize::try_from(plan.below(self.passing.len() as u64)).unwrap_or(0);
            let name = self.passing.remove(at);
            self.delete(world, faults, name);
            return;
        }
        self.count += 1;
        let name = TopicName::new(&format!("passing{}", self.count)).expect("a legal name");
        match self.make(world, plan, faults, &name) {
            Some(partitions) => {
                for client in world.clients.values_mut() {
                    match &mut client.load {
                        Load::Producer(load) => load.partitions.extend(partitions.iter().cloned()),
                        Load::Consumer(load) => load.begin(&partitions),
                        _ => {}
                    }
                }
                self.passing.push(name);
            }
            // Perhaps it was made, and only the answer is lost.
            None => self.going.push(name),
        }
    }

    fn make(
        &mut self,
        world: &mut World,
        plan: &mut Random,
        faults: &mut Faults,
        name: &TopicName,
    ) -> Option<Vec<TopicPartition>> {
        let brokers = world.brokers().len() as u64;
        let count = i32::try_from(plan.between(1, 3)).unwrap_or(1);
        let replicas = match plan.below(5) {
            0 => 1,
            1 => 2,
            2 | 3 => 3,
            _ => plan.between(3, brokers),
        };
        let min_in_sync = plan.between(1, replicas.min(3)).to_string();
        let flush_messages = plan.pick(&["1", "3", "9223372036854775807", "9223372036854775807"]);
        let segment_bytes = plan.pick(&["400", "2000", "1000000"]);
        let configs = [
            ("flush.messages", *flush_messages),
            ("internal.segment.bytes", *segment_bytes),
            ("index.interval.bytes", "100"),
            ("min.insync.replicas", min_in_sync.as_str()),
        ];
        let replicas = Replicas::Count(i16::try_from(replicas).unwrap_or(1));
        for _ in 0..TRIES {
            let request = requests::create_topic(name, count, &replicas, &configs);
            let purpose = Purpose::CreateTopic(name.clone());
            let code = ask(world, faults, &request, 7, purpose);
            if code == Some(ErrorCode::NONE) {
                return Some((0..count).map(|at| requests::partition(name, at)).collect());
            }
            if code == Some(ErrorCode::TOPIC_ALREADY_EXISTS) {
                return None;
            }
        }
        None
    }

    fn delete(&mut self, world: &mut World, faults: &mut Faults, name: TopicName) {
        for client in world.clients.values_mut() {
            match &mut client.load {
                Load::Producer(load) => load.forget_topic(&name),
                Load::Consumer(load) => load.forget_topic(&name),
                _ => {}
            }
        }
        world.checker.topic_is_deleted(&name);
        for _ in 0..TRIES {
            let request = requests::delete_topic(&name);
            let purpose = Purpose::DeleteTopic(name.clone());
            let code = ask(world, faults, &request, 6, purpose);
            if is_gone(code) {
                return;
            }
        }
        self.going.push(name);
    }

    /// Whatever was to go goes now.
    pub(super) fn finish(&mut self, world: &mut World) {
        let mut faults = Faults::default();
        for name in std::mem::take(&mut self.going) {
            let until = world.now().plus(PATIENCE);
            loop {
                let request = requests::delete_topic(&name);
                let purpose = Purpose::DeleteTopic(name.clone());
                world.checker.topic_is_deleted(&name);
                if is_gone(ask(world, &mut faults, &request, 6, purpose)) {
                    break;
                }
                assert!(world.now() < until, "I-26: topic {name} does not go");
            }
        }
    }
}

fn is_gone(code: Option<ErrorCode>) -> bool {
    matches!(
        code,
        Some(ErrorCode::NONE | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    )
}

/// What the admin is told, by one broker or another; `None`: nothing.
fn ask(
    world: &mut World,
    faults: &mut Faults,
    request: &highwater_protocol::Request,
    version: i16,
    purpose: Purpose,
) -> Option<ErrorCode> {
    let serving = world.brokers().into_iter().filter(|id| world.serves(*id));
    let serving: Vec<_> = serving.collect();
    let turn = usize::try_from(world.steps).unwrap_or(0);
    let node = serving.get(turn % serving.len().max(1)).copied();
    let asked = node.is_some_and(|node| {
        let asked = world.ask_at(ADMIN, node, (request, version), purpose);
        asked.is_ok()
    });
    if !asked {
        faults.advance(world, Millis::new(200));
        return None;
    }
    world.client(ADMIN).code = None;
    faults.advance_until(world, ANSWER_PATIENCE, |world| {
        let admin = world.clients.get(&ADMIN);
        admin.is_none_or(|it| it.code.is_some() || it.in_flight() == 0)
    });
    if let Some(node) = node
        && world.client(ADMIN).in_flight() > 0
    {
        // Whoever gives up waiting closes the connection: an answer would come out of turn.
        world.hang_up(ADMIN, node);
    }
    world.client(ADMIN).code.take()
}
