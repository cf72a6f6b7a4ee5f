//! Clients that fetch from shards whose messages to each other are slow and come in any order:
//! none may miss a record, and none may sleep on one that is there.

use std::collections::BTreeMap;

use highwater_node::{Input, Part, Ticket};
use highwater_protocol::messages::FetchRequest;
use highwater_protocol::messages::fetch_request::FetchTopic;
use highwater_records::Batches;
use highwater_types::{ErrorCode, TopicId};

use crate::world::*;

const PARTITIONS: i32 = 6;

/// A small source of chance.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// One of `count`.
    fn pick(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).expect("small");
        usize::try_from(self.roll(count)).expect("small")
    }
}

/// One consumer of every partition.
struct Client {
    conn: u64,
    shard: usize,
    /// Whether it keeps a session.
    keeps: bool,
    session: (i32, i32),
    /// Next offset by partition; what is below was read.
    positions: BTreeMap<i32, i64>,
    /// Partitions that the session does not know the position of.
    changed: Vec<i32>,
    waits: Option<Wait>,
}

struct Wait {
    ticket: Ticket,
    min_bytes: i32,
    until: u64,
}

impl Client {
    fn ask(&mut self, world: &mut World, id: TopicId, dice: &mut Dice) {
        let known = self.keeps && self.session.0 != 0;
        let wanted: Vec<(i32, i64)> = if known {
            let changed = std::mem::take(&mut self.changed);
            changed
                .into_iter()
                .map(|it| (it, self.positions[&it]))
                .collect()
        } else {
            self.positions
                .iter()
                .map(|(partition, offset)| (*partition, *offset))
                .collect()
        };
        let topics: Vec<FetchTopic> = if wanted.is_empty() {
            Vec::new()
        } else {
            vec![fetch_topic("t", id, &wanted)]
        };
        let max_wait_ms = [0, 5, 50, 500][dice.pick(4)];
        let request = FetchRequest {
            session_id: if self.keeps { self.session.0 } else { 0 },
            session_epoch: if self.keeps { self.session.1 } else { -1 },
            min_bytes: [0, 1, 1, 400][dice.pick(4)],
            max_bytes: [1, 300, 1 << 20][dice.pick(3)],
            max_wait_ms,
            ..fetch_request(topics)
        };
        let ticket = world.fetch_on(self.shard, self.conn, 13, &request);
        let min_bytes = request.min_bytes.min(request.max_bytes);
        let until = world.now.mono.as_micros() + u64::try_from(max_wait_ms).expect("small") * 1000;
        self.waits = Some(Wait {
            ticket,
            min_bytes,
            until,
        });
    }

    /// Takes the answer, if it is there.
    fn take(&mut self, world: &mut World) {
        let Some(wait) = self.waits.take() else {
            return;
        };
        if !world.is_answered(wait.ticket) {
            self.waits = Some(wait);
            return;
        }
        let answer = world.fetched(wait.ticket, 13);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        if self.keeps {
            let epoch = if answer.session_id == self.session.0 {
                self.session.1 + 1
            } else {
                1
            };
            self.session = (
                answer.session_id,
                if answer.session_id == 0 { 0 } else { epoch },
            );
        }
        for told in partitions(&answer) {
            assert_eq!(told.error_code, ErrorCode::NONE);
            let position = self
                .positions
                .get_mut(&told.partition_index)
                .expect("asked for");
            let bytes = told.records.clone().unwrap_or_default();
            for batch in Batches::new(&bytes).map_while(Result::ok) {
                let header = batch.header();
                assert!(header.base_offset.raw() <= *position, "a gap");
                *position = (*position).max(header.next_offset().raw());
                assert!(
                    *position <= told.high_watermark,
                    "beyond the high watermark"
                );
            }
            if !bytes.is_empty() {
                self.changed.push(told.partition_index);
            }
        }
    }
}

#[test]
fn no_record_is_missed_and_nobody_sleeps_on_one() {
    for seed in 0..150 {
        let mut trial = Trial::new(seed);
        for _ in 0..120 {
            trial.turn();
        }
        trial.settle();
        trial.read_everything();
    }
}

/// One world with its clients.
struct Trial {
    seed: u64,
    dice: Dice,
    world: World,
    id: TopicId,
    /// The log end of each partition.
    ends: Vec<i64>,
    clients: Vec<Client>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed * 7_919 + 1);
        let shards = u16::try_from(1 + dice.roll(3)).expect("small");
        let mut world = World::new(shards, "");
        let id = world.topic("t", PARTITIONS);
        let clients = (0..4).map(|conn| Client {
            conn,
            shard: dice.pick(usize::from(shards)),
            keeps: conn % 2 == 0,
            session: (0, 0),
            positions: (0..PARTITIONS).map(|it| (it, 0)).collect(),
            changed: Vec::new(),
            waits: None,
        });
        let clients = clients.collect();
        let ends = vec![0_i64; usize::try_from(PARTITIONS).expect("small")];
        Self {
            seed,
            dice,
            world,
            id,
            ends,
            clients,
        }
    }

    /// One thing happens.
    fn turn(&mut self) {
        self.world.hold_parts = true;
        match self.dice.roll(8) {
            0 | 1 => {
                let partition = self.dice.pick(self.ends.len());
                let records = 1 + self.dice.pick(3);
                let number = i32::try_from(partition).expect("small");
                produce_holding(&mut self.world, number, records);
                self.ends[partition] += i64::try_from(records).expect("small");
            }
            2..=4 => {
                let client = self.dice.pick(self.clients.len());
                let client = &mut self.clients[client];
                if client.waits.is_none() {
                    client.ask(&mut self.world, self.id, &mut self.dice);
                }
            }
            5 | 6 => self.world.release_one_part(self.dice.pick(97)),
            _ => self.world.advance(self.dice.roll(20)),
        }
        self.take_answers();
    }

    fn take_answers(&mut self) {
        for client in &mut self.clients {
            client.take(&mut self.world);
        }
    }

    /// With every message delivered, a fetch may only wait for what is not there.
    fn settle(&mut self) {
        self.world.release_parts();
        self.take_answers();
        for client in &self.clients {
            let Some(wait) = &client.waits else { continue };
            let (seed, conn) = (self.seed, client.conn);
            assert!(
                self.world.now.mono.as_micros() < wait.until,
                "seed {seed}: {conn} is late"
            );
            let readable = client.positions.iter().any(|(partition, offset)| {
                *offset < self.ends[usize::try_from(*partition).expect("small")]
            });
            assert!(
                !readable || wait.min_bytes > 1,
                "seed {seed}: client {conn} sleeps"
            );
        }
    }

    /// Everything that was written is read, by everyone.
    fn read_everything(&mut self) {
        for _ in 0..400 {
            for client in &mut self.clients {
                if client.waits.is_none() {
                    client.ask(&mut self.world, self.id, &mut self.dice);
                }
            }
            self.world.advance(600);
            self.take_answers();
        }
        for client in &self.clients {
            for (partition, offset) in &client.positions {
                let end = self.ends[usize::try_from(*partition).expect("small")];
                let (seed, conn) = (self.seed, client.conn);
                assert_eq!(
                    *offset, end,
                    "seed {seed}, client {conn}, partition {partition}"
                );
            }
        }
    }
}

/// Appends while the parts of fetches stay where they are: those that were under way stay first.
fn produce_holding(world: &mut World, partition: i32, records: usize) {
    let held = std::mem::take(&mut world.held_parts);
    let ticket = world.send_batch("t", partition, &vec![1; records], 100);
    let mut mine = std::mem::replace(&mut world.held_parts, held);
    // Deliver what belongs to the produce, hold what it stirs up among the fetches.
    while !world.is_answered(ticket) {
        let (to, from, part) = mine.pop_front().expect("the produce is under way");
        if !matches!(part, Part::Produce(_)) {
            world.held_parts.push_back((to, from, part));
            continue;
        }
        let before = std::mem::take(&mut world.held_parts);
        world.step(usize::from(to), Input::Part { from, part });
        mine.extend(std::mem::replace(&mut world.held_parts, before));
    }
    world.held_parts.extend(mine);
    world.body(ticket);
}
