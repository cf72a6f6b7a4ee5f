//! Members, silence, refusals, lost records and reloads at random.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_coordinator::{
    AppendRefused, Assigned, GenerationId, GroupAnswer, GroupRequest, GroupState, JoinAnswer,
    JoinRequest, MemberId, RequestId,
};
use highwater_types::{ErrorCode, Offset};
use proptest::prelude::*;

use crate::support::{MemLog, Vary as _, World, join, sync};

const CLIENTS: usize = 4;
const PARTITIONS: u8 = 4;

/// One move of the game.
#[derive(Clone, Debug)]
enum Move {
    /// A client takes its next step: reads its answer, or sends what it has to send.
    Act(usize),
    /// A client joins again, with another subscription.
    Change(usize, u8),
    /// A client leaves.
    Leave(usize),
    /// A client dies, and forgets everything but its instance id.
    Crash(usize),
    /// A client's connection is lost.
    Disconnect(usize),
    Advance(u64),
    /// The high watermark reaches the log's end.
    Replicate,
    /// The coordinator is loaded anew, from a log that ends at the high watermark or after it.
    Reload(usize),
    Refuse(bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let client = 0..CLIENTS;
    let one = prop_oneof![
        80 => client.clone().prop_map(Move::Act),
        2 => (client.clone(), any::<u8>()).prop_map(|(it, what)| Move::Change(it, what)),
        1 => client.clone().prop_map(Move::Leave),
        1 => client.clone().prop_map(Move::Crash),
        1 => client.prop_map(Move::Disconnect),
        3 => prop::sample::select(vec![1, 500, 3_000, 9_500, 21_000]).prop_map(Move::Advance),
        30 => Just(Move::Replicate),
        1 => (0_usize..4).prop_map(Move::Reload),
        1 => Just(Move::Refuse(true)),
        3 => Just(Move::Refuse(false)),
    ];
    prop::collection::vec(one, 1..600)
}

/// A client as clients are: it believes what it is told.
#[derive(Clone, Debug, Default)]
struct Client {
    instance: Option<&'static str>,
    is_old: bool,
    member_id: MemberId,
    said: u8,
    waits: Option<(RequestId, GenerationId)>,
    /// The generation that it joined, and what it has to assign if it leads.
    joined: Option<JoinAnswer>,
    has_assignment: bool,
}

struct Game {
    world: World,
    clients: Vec<Client>,
    high_watermark: Offset,
    /// Who was told that it owns a partition in a generation.
    owners: BTreeMap<(GenerationId, u8), String>,
    asked: BTreeSet<RequestId>,
    forgotten: BTreeSet<RequestId>,
}

impl Game {
    fn new() -> Self {
        let mut clients = vec![Client::default(); CLIENTS];
        clients[0].instance = Some("i0");
        clients[1].instance = Some("i1");
        clients[2].is_old = true;
        Self {
            world: World::new(),
            clients,
            high_watermark: Offset::ZERO,
            owners: BTreeMap::new(),
            asked: BTreeSet::new(),
            forgotten: BTreeSet::new(),
        }
    }

    fn play(&mut self, it: Move) {
        match it {
            Move::Act(client) => self.act(client),
            Move::Change(client, what) => {
                if self.clients[client].waits.is_none() {
                    self.clients[client].said = what;
                    self.join(client);
                }
            }
            Move::Leave(client) => self.leave(client),
            Move::Crash(client) => {
                self.disconnect(client);
                self.start_over(client);
            }
            Move::Disconnect(client) => self.disconnect(client),
            Move::Advance(ms) => self.world.advance(ms),
            Move::Replicate => self.high_watermark = self.world.log.end(),
            Move::Reload(more) => self.reload(more),
            Move::Refuse(refuse) => {
                self.world.log.refuse = refuse.then_some(AppendRefused::TooFewInSync);
            }
        }
    }

    /// What is due is done at once, as by the node.
    fn tick(&mut self) {
        self.world.advance(0);
    }

    fn send(&mut self, client: usize, request: GroupRequest, generation: GenerationId) {
        let id = self.world.send(request);
        self.asked.insert(id);
        self.clients[client].waits = Some((id, generation));
    }

    fn act(&mut self, client: usize) {
        if self.clients[client].waits.is_none() {
            self.ask(client);
            self.tick();
        }
        let Some((id, generation)) = self.clients[client].waits else {
            return;
        };
        let answer = self.world.answers.get(&id).cloned();
        if let Some((_, answer)) = answer.filter(|(after, _)| *after <= self.high_watermark) {
            self.clients[client].waits = None;
            self.read(client, generation, answer);
        }
    }

    fn ask(&mut self, client: usize) {
        let it = self.clients[client].clone();
        let Some(joined) = it.joined else {
            self.join(client);
            return;
        };
        let generation = joined.generation_id;
        if it.has_assignment {
            let beat = highwater_coordinator::HeartbeatRequest {
                group_id: "g".into(),
                generation_id: generation,
                member_id: it.member_id,
                instance_id: it.instance.map(Into::into),
            };
            self.send(client, GroupRequest::Heartbeat(beat), generation);
            return;
        }
        let mut request = sync(&it.member_id, generation, &[]);
        request.instance_id = it.instance.map(Into::into);
        if !joined.skip_assignment {
            request.assignments = assign(&joined);
        }
        self.send(client, GroupRequest::Sync(request), generation);
    }

    fn join_request(&self, client: usize) -> JoinRequest {
        let it = &self.clients[client];
        let mut request = join().of(&it.member_id);
        request.instance_id = it.instance.map(Into::into);
        request.protocols[0].metadata = Bytes::copy_from_slice(&[it.said]);
        if it.is_old { request.old() } else { request }
    }

    fn join(&mut self, client: usize) {
        self.clients[client].joined = None;
        self.clients[client].has_assignment = false;
        let request = self.join_request(client);
        self.send(client, GroupRequest::Join(request), GenerationId::NONE);
    }

    fn leave(&mut self, client: usize) {
        let it = self.clients[client].clone();
        if it.waits.is_none() && !it.member_id.is_empty() {
            let _ = self.world.leave(&[(it.member_id.as_str(), it.instance)]);
            self.start_over(client);
        }
    }

    fn start_over(&mut self, client: usize) {
        let it = &mut self.clients[client];
        it.member_id = MemberId::default();
        it.joined = None;
        it.has_assignment = false;
    }

    fn disconnect(&mut self, client: usize) {
        if let Some((id, _)) = self.clients[client].waits.take() {
            self.world.coordinator.forget(id);
            self.forgotten.insert(id);
        }
    }

    fn reload(&mut self, more: usize) {
        for client in 0..CLIENTS {
            self.disconnect(client);
        }
        // The node answers what was open itself.
        self.asked.clear();
        self.forgotten.clear();
        let kept = usize::try_from(self.high_watermark.raw()).unwrap() + more;
        self.world.reload(kept.min(self.world.log.records.len()));
    }

    fn read(&mut self, client: usize, generation: GenerationId, answer: GroupAnswer) {
        let error = match &answer {
            GroupAnswer::Join(answer) => answer.error,
            GroupAnswer::Sync(answer) => answer.error,
            GroupAnswer::Heartbeat(answer) => answer.error,
            other => panic!("nobody asked for {other:?}"),
        };
        match (error, answer) {
            (ErrorCode::NONE, GroupAnswer::Join(answer)) => {
                self.clients[client].member_id = answer.member_id.clone();
                self.clients[client].joined = Some(answer);
            }
            (ErrorCode::NONE, GroupAnswer::Sync(answer)) => {
                self.clients[client].has_assignment = true;
                self.own(client, generation, &answer.assignment);
            }
            (ErrorCode::NONE, _) => {}
            (ErrorCode::MEMBER_ID_REQUIRED, GroupAnswer::Join(answer)) => {
                self.clients[client].member_id = answer.member_id;
            }
            (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID, _) => {
                self.start_over(client);
            }
            (
                ErrorCode::REBALANCE_IN_PROGRESS
                | ErrorCode::ILLEGAL_GENERATION
                | ErrorCode::COORDINATOR_NOT_AVAILABLE,
                _,
            ) => {
                self.clients[client].joined = None;
                self.clients[client].has_assignment = false;
            }
            (other, answer) => panic!("{other}: {answer:?}"),
        }
    }

    /// I-24: one owner of a partition in a generation, whatever was lost and loaded meanwhile.
    fn own(&mut self, client: usize, generation: GenerationId, partitions: &[u8]) {
        let it = &self.clients[client];
        let name = it
            .instance
            .map_or_else(|| it.member_id.to_string(), str::to_owned);
        for partition in partitions {
            let key = (generation, *partition);
            let owner = self.owners.entry(key).or_insert_with(|| name.clone());
            assert_eq!(
                *owner, name,
                "partition {partition} of generation {generation}"
            );
        }
    }

    /// All members are gone in the end, and nobody waits.
    fn finish(&mut self) {
        self.world.log.refuse = None;
        self.world.advance(4_000_000);
        for id in self.asked.difference(&self.forgotten) {
            assert!(
                self.world.answers.contains_key(id),
                "{id:?} is never answered"
            );
        }
        let state = self.world.state();
        assert!(
            matches!(state, GroupState::Empty | GroupState::Dead),
            "{state:?}"
        );
    }
}

/// The partitions in turn, to the members that the leader was told of.
fn assign(joined: &JoinAnswer) -> Vec<Assigned> {
    let count = joined.members.len();
    let of = |at: usize| (0..PARTITIONS).filter(move |it| usize::from(*it) % count == at);
    let assigned = joined
        .members
        .iter()
        .enumerate()
        .map(|(at, member)| Assigned {
            member_id: member.member_id.clone(),
            assignment: of(at).collect::<Vec<u8>>().into(),
        });
    assigned.collect()
}

/// A coordinator that loads any prefix of the log has what the newest record of it says, and no
/// generation that was recorded is ever given out again.
fn check_prefixes(log: &MemLog) {
    let mut generation = 0;
    for count in 0..=log.records.len() {
        let mut world = World::new();
        world.log = log.clone();
        world.log.refuse = None;
        world.reload(count);
        let newest = world.log.groups().last().cloned();
        let described = world.describe();
        let Some(stored) = newest.flatten() else {
            assert_eq!(described.state, GroupState::Dead);
            continue;
        };
        assert!(
            stored.generation >= generation,
            "generation {} is back",
            stored.generation
        );
        generation = stored.generation;
        let ids: Vec<&str> = described
            .members
            .iter()
            .map(|it| it.member_id.as_str())
            .collect();
        let stored_ids: Vec<&str> = stored
            .members
            .iter()
            .map(|it| it.member_id.as_str())
            .collect();
        assert_eq!(ids, stored_ids);
        let is_empty = stored_ids.is_empty();
        assert_eq!(described.state == GroupState::Empty, is_empty);
        assert_eq!(described.state == GroupState::Stable, !is_empty);
        for (member, stored) in described.members.iter().zip(&stored.members) {
            assert_eq!(member.assignment, stored.assignment);
            assert_eq!(member.metadata, stored.subscription);
            let beat = world.heartbeat(&member.member_id, GenerationId::new(generation));
            assert_eq!(beat, ErrorCode::NONE);
        }
        let next = world.join(join().old());
        world.advance(3_000_000);
        assert!(world.joined(next).generation_id.raw() > generation);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i_24_one_owner_no_generation_twice_and_every_request_answered_once(moves in moves()) {
        let mut game = Game::new();
        let mut longest = MemLog::default();
        for it in moves {
            if matches!(it, Move::Reload(_)) {
                check_prefixes(&game.world.log);
            }
            game.play(it);
            game.tick();
            longest.records.clone_from(&game.world.log.records);
        }
        check_prefixes(&longest);
        game.finish();
    }
}

#[test]
#[should_panic(expected = "partition 1 of generation 3")]
fn the_check_sees_two_owners() {
    let mut game = Game::new();
    game.clients[2].member_id = "one".into();
    game.clients[3].member_id = "other".into();
    game.own(2, GenerationId::new(3), &[0, 1]);
    game.own(3, GenerationId::new(4), &[1]);
    game.own(3, GenerationId::new(3), &[1]);
}

#[test]
#[should_panic(expected = "generation 1 is back")]
fn the_check_sees_a_generation_that_comes_back() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    world.leave(&[(ids[0].as_str(), None)]);
    assert_eq!(world.log.newest_group().generation, generation.next().raw());
    let old = world.log.records[1].clone();
    world.log.records.push(old);
    check_prefixes(&world.log);
}

#[test]
#[should_panic(expected = "is never answered")]
fn the_check_sees_a_request_that_is_not_answered() {
    let mut game = Game::new();
    game.asked.insert(RequestId(77));
    game.finish();
}
