//! Requests that ask each partition one question: ListOffsets and OffsetForLeaderEpoch.
//!
//! The rows of a request go to the owners of their partitions and are joined on the shard of the
//! connection. A question by time is answered by a job, for it may read cold segments.

mod part;

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::Disk;
use highwater_log::{TimeFound, TimeLookup, TimeLookupError};
use highwater_protocol::Response;
use highwater_types::{ErrorCode, LeaderEpoch, Now, Offset, TopicIdPartition, WallMs};

pub use part::LookupPart;
pub(crate) use part::{LookupRow, Question};

use super::fetch::Refusal;
use super::{Effects, Shard, owner_shard};
use crate::job::{Job, LogDirNumber, Work};
use crate::machine::{ConnId, Effect, MachineId, Ticket, Token};
use crate::part::Part;

/// Look-ups by time in one job: a long request leaves room for other jobs.
const LOOKUPS_PER_JOB_MAX: usize = 128;

/// What a partition said. An error, or nothing found, leaves the other fields at none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LookupAnswer {
    pub(crate) error: ErrorCode,
    pub(crate) timestamp: Option<WallMs>,
    pub(crate) offset: Option<Offset>,
    pub(crate) leader_epoch: LeaderEpoch,
}

/// What answering a row takes.
#[derive(Debug)]
pub(crate) enum Outcome<D: Disk> {
    /// Nothing more.
    Now(LookupAnswer),
    /// A job in a log directory.
    Later {
        dir: LogDirNumber,
        lookup: TimeLookup<D>,
        bound: TimeBound,
    },
}

/// How far a record that was found by time may be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBound {
    /// Exclusive: what the caller may read.
    pub(crate) readable_end: Offset,
    /// The high watermark is still below the start of the leader's epoch: what lies above the
    /// bound may become readable (KIP-207).
    pub(crate) lagging: bool,
}

/// Turns the joined rows into the answer of their request.
type Compose = Box<dyn FnOnce(&[LookupAnswer]) -> Response + Send>;

/// The look-ups that a shard asked for, and those that it works on.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    asked: BTreeMap<u64, Asked>,
    next: u64,
    jobs: BTreeMap<Token, TimeJob>,
}

/// A request whose rows are not all there.
struct Asked {
    ticket: Ticket,
    version: i16,
    rows: Vec<LookupAnswer>,
    outstanding: usize,
    compose: Compose,
}

/// A job that looks by time.
#[derive(Debug)]
struct TimeJob {
    home: u16,
    lookup: u64,
    bounds: Vec<(u32, TimeBound)>,
}

/// Look-ups by time for one directory's pool.
#[derive(Debug)]
pub struct TimeLookups<D: Disk> {
    pub(crate) lookups: Vec<(u32, TimeLookup<D>)>,
}

/// What [`TimeLookups`] found, by row.
pub type TimesFound = Vec<(u32, Result<Option<TimeFound>, TimeLookupError>)>;

impl<D: Disk> TimeLookups<D> {
    /// Does the work.
    pub(crate) fn run(self, b: &highwater_disk::Blocking) -> TimesFound {
        self.lookups
            .into_iter()
            .map(|(row, lookup)| (row, lookup.run(b)))
            .collect()
    }
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            ticket,
            version,
            rows,
            outstanding,
            compose: _,
        } = self;
        let fields = (ticket, version, rows.len(), outstanding);
        f.debug_tuple("Asked").field(&fields).finish()
    }
}

impl LookupAnswer {
    /// An error in place of an answer.
    pub(crate) fn refused(error: ErrorCode) -> Self {
        // These requests name topics: their clients do not know about ids.
        let error = match error {
            ErrorCode::UNKNOWN_TOPIC_ID => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            error => error,
        };
        Self {
            error,
            ..Self::default()
        }
    }

    /// An offset.
    pub(crate) const fn offset(offset: Offset, leader_epoch: LeaderEpoch) -> Self {
        let error = ErrorCode::NONE;
        Self {
            error,
            timestamp: None,
            offset: Some(offset),
            leader_epoch,
        }
    }

    fn by_time(found: Result<Option<TimeFound>, TimeLookupError>, bound: TimeBound) -> Self {
        let beyond = if bound.lagging {
            Self::refused(ErrorCode::OFFSET_NOT_AVAILABLE)
        } else {
            Self::default()
        };
        match found {
            Ok(Some(found)) if found.offset < bound.readable_end => Self {
                timestamp: Some(found.timestamp),
                ..Self::offset(found.offset, found.leader_epoch)
            },
            Ok(_) => beyond,
            Err(TimeLookupError::Disk(_)) => Self::refused(ErrorCode::KAFKA_STORAGE_ERROR),
            Err(TimeLookupError::Damaged { .. }) => Self::refused(ErrorCode::CORRUPT_MESSAGE),
        }
    }
}

impl<D: Disk> From<Refusal> for Outcome<D> {
    fn from(refusal: Refusal) -> Self {
        Self::Now(LookupAnswer::refused(refusal.error))
    }
}

impl<D: Disk> Shard<D> {
    /// Asks the owners of the rows; answers once all have. Rows that need no owner are in
    /// `rows` already, and not in `questions`.
    pub(crate) fn ask_partitions(
        &mut self,
        now: Now,
        (ticket, version): (Ticket, i16),
        rows: Vec<LookupAnswer>,
        questions: Vec<LookupRow>,
        compose: Compose,
        out: &mut Effects<D>,
    ) {
        let lookups = &mut self.serve.lookups;
        lookups.next += 1;
        let lookup = lookups.next;
        let outstanding = questions.len();
        lookups.asked.insert(
            lookup,
            Asked {
                ticket,
                version,
                rows,
                outstanding,
                compose,
            },
        );
        let mut by_owner: BTreeMap<u16, Vec<LookupRow>> = BTreeMap::new();
        for question in questions {
            let owner = owner_shard(question.at, self.shards);
            by_owner.entry(owner).or_default().push(question);
        }
        if by_owner.is_empty() {
            self.rows_answered(lookup, Vec::new(), out);
        }
        for (owner, rows) in by_owner {
            if owner == self.number {
                self.answer_rows(now, owner, lookup, rows, out);
            } else {
                let to = MachineId::Shard(owner);
                let part = LookupPart::Ask { lookup, rows };
                out.push(Effect::Part {
                    to,
                    part: Part::Lookup(Box::new(part)),
                });
            }
        }
    }

    /// Takes another shard's question, or the answer to an own one.
    pub(crate) fn handle_lookup_part(
        &mut self,
        now: Now,
        from: MachineId,
        part: LookupPart,
        out: &mut Effects<D>,
    ) {
        let MachineId::Shard(from) = from else { return };
        match part {
            LookupPart::Ask { lookup, rows } => self.answer_rows(now, from, lookup, rows, out),
            LookupPart::Answers { lookup, rows } => self.rows_answered(lookup, rows, out),
        }
    }

    /// A job by time is done.
    pub(crate) fn handle_times_found(
        &mut self,
        token: Token,
        found: TimesFound,
        out: &mut Effects<D>,
    ) {
        let Some(job) = self.serve.lookups.jobs.remove(&token) else {
            return;
        };
        let rows = job
            .bounds
            .into_iter()
            .zip(found)
            .map(|((row, bound), (of, found))| {
                assert_eq!(row, of, "a job answers its rows in order");
                (row, LookupAnswer::by_time(found, bound))
            });
        let rows = rows.collect();
        self.deliver_rows(job.home, job.lookup, rows, out);
    }

    /// Drops the questions of a connection.
    pub(crate) fn lookup_connection_closed(&mut self, conn: ConnId) {
        self.serve
            .lookups
            .asked
            .retain(|_, asked| asked.ticket.conn != conn);
    }

    /// Answers rows about partitions of this shard.
    fn answer_rows(
        &mut self,
        now: Now,
        home: u16,
        lookup: u64,
        rows: Vec<LookupRow>,
        out: &mut Effects<D>,
    ) {
        let mut answers = Vec::with_capacity(rows.len());
        let mut later: BTreeMap<LogDirNumber, Vec<(u32, TimeLookup<D>, TimeBound)>> =
            BTreeMap::new();
        for LookupRow {
            row,
            at,
            current_leader_epoch,
            question,
        } in rows
        {
            let (_, cx) = self.fetch_and_context(now);
            let outcome = match question {
                Question::Time { timestamp, reader } => {
                    super::list_offsets::find(&cx, at, current_leader_epoch, timestamp, reader)
                }
                Question::EpochEnd(epoch) => {
                    super::epochs::find(&cx, at, current_leader_epoch, epoch)
                }
            };
            match outcome {
                Outcome::Now(answer) => answers.push((row, answer)),
                Outcome::Later { dir, lookup, bound } => {
                    later.entry(dir).or_default().push((row, lookup, bound));
                }
            }
        }
        for (dir, found) in later {
            let mut found = found.into_iter().peekable();
            while found.peek().is_some() {
                let chunk = found.by_ref().take(LOOKUPS_PER_JOB_MAX);
                let mut job = TimeJob {
                    home,
                    lookup,
                    bounds: Vec::new(),
                };
                let mut lookups = Vec::new();
                for (row, time_lookup, bound) in chunk {
                    job.bounds.push((row, bound));
                    lookups.push((row, time_lookup));
                }
                let token = self.new_token();
                self.serve.lookups.jobs.insert(token, job);
                let work = Work::TimeLookups(TimeLookups { lookups });
                out.push(Effect::Job {
                    token,
                    job: Job { dir, work },
                });
            }
        }
        if !answers.is_empty() {
            self.deliver_rows(home, lookup, answers, out);
        }
    }

    fn deliver_rows(
        &mut self,
        home: u16,
        lookup: u64,
        rows: Vec<(u32, LookupAnswer)>,
        out: &mut Effects<D>,
    ) {
        if home == self.number {
            self.rows_answered(lookup, rows, out);
        } else {
            let part = LookupPart::Answers { lookup, rows };
            let to = MachineId::Shard(home);
            out.push(Effect::Part {
                to,
                part: Part::Lookup(Box::new(part)),
            });
        }
    }

    fn rows_answered(&mut self, lookup: u64, rows: Vec<(u32, LookupAnswer)>, out: &mut Effects<D>) {
        let Some(asked) = self.serve.lookups.asked.get_mut(&lookup) else {
            return;
        };
        for (row, answer) in rows {
            let place = asked
                .rows
                .get_mut(row as usize)
                .expect("an answer has a row");
            *place = answer;
            asked.outstanding -= 1;
        }
        if asked.outstanding == 0 {
            let asked = self
                .serve
                .lookups
                .asked
                .remove(&lookup)
                .expect("it was just there");
            let response = (asked.compose)(&asked.rows);
            super::requests::push_answer(asked.ticket, asked.version, &response, out);
        }
    }
}

/// The partitions that a request names more than once.
pub(crate) fn repeated<'a>(
    named: impl Iterator<Item = (&'a str, i32)>,
) -> BTreeSet<(&'a str, i32)> {
    let mut seen = BTreeSet::new();
    named.filter(|partition| !seen.insert(*partition)).collect()
}

/// The partition that a client names, if the metadata knows it.
pub(crate) fn named_partition(
    image: &highwater_metadata::MetadataImage,
    topic: &str,
    partition: i32,
) -> Option<TopicIdPartition> {
    let topic = image.topic_by_name(topic)?;
    let partition = highwater_types::PartitionIndex::new(partition);
    let known = topic.partitions.contains_key(&partition);
    known.then_some(TopicIdPartition {
        topic_id: topic.id,
        partition,
    })
}
