//! Produce: the rows of a request go to the owners of their partitions and are joined at home.
//!
//! *Home* is the shard of the connection: it takes the request apart (`request`), and joins the
//! rows' progress into `Admitted` and the answer (`join`, `answer`). The *owner* of a partition
//! validates, appends (`append`) and waits for the high watermark (`purgatory`). With one shard
//! both are the same and a row is a direct call; otherwise rows travel as [`ProducePart`]s.

mod answer;
mod append;
mod join;
mod outcome;
mod purgatory;
mod request;

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_records::Validator;
use highwater_types::{Millis, Mono, Now, TopicIdPartition};

use self::join::PendingProduce;
use self::outcome::Progress;
use self::purgatory::{Purgatory, RowKey};
use super::{Effects, Shard};
use crate::machine::{ConnId, Effect, MachineId, Ticket, Token};
use crate::part::Part;

/// The produce requests of a shard's connections that are not answered yet, and the appends that
/// wait for a high watermark.
#[derive(Debug, Default)]
pub struct ProduceState {
    /// Requests of this shard's connections with a row that is not done.
    requests: BTreeMap<Ticket, PendingProduce>,
    /// Appends to this shard's partitions that wait.
    purgatory: Purgatory,
    /// Appends to this shard's partitions that an event with this token lets go on. Those that
    /// wait for a new log lie with their partition.
    held: BTreeMap<Token, HeldAppend>,
    validator: Validator,
}

/// Appends for another shard, and their progress on the way back.
#[derive(Debug)]
pub enum ProducePart {
    /// Home to owner: append these.
    Append {
        /// What the rows have in common.
        context: AppendContext,
        /// The rows.
        rows: Vec<AppendRow>,
    },
    /// Owner to home: how far these rows are.
    Progress {
        /// The request.
        ticket: Ticket,
        /// Row numbers and how far they are.
        rows: Vec<(u32, Progress)>,
    },
    /// Home to owner: nobody waits for this request any more.
    Cancel {
        /// The request.
        ticket: Ticket,
    },
}

/// What the rows of one request have in common.
#[derive(Clone, Copy, Debug)]
pub struct AppendContext {
    /// The shard that joins the rows.
    pub(crate) home: u16,
    /// The request.
    pub(crate) ticket: Ticket,
    /// Its version.
    pub(crate) version: i16,
    /// -1, 0 or 1.
    pub(crate) acks: i16,
    /// How long an append may wait for the high watermark.
    pub(crate) timeout: Millis,
}

impl HeldAppend {
    /// A row of a request, before its first stage.
    pub(crate) const fn new(context: AppendContext, row: AppendRow) -> Self {
        let stage = Stage::Log;
        Self {
            context,
            row,
            stage,
        }
    }
}

/// One partition of a request.
#[derive(Clone, Debug)]
pub struct AppendRow {
    /// Its number within the request.
    pub(crate) row: u32,
    /// The partition.
    pub(crate) id: TopicIdPartition,
    /// What should be one record batch.
    pub(crate) records: Bytes,
}

/// An append on its way to the log. It may be held at any `Stage`; the event that it waits for
/// lets it go on from there.
#[derive(Clone, Debug)]
pub struct HeldAppend {
    pub(crate) context: AppendContext,
    pub(crate) row: AppendRow,
    pub(crate) stage: Stage,
}

/// What lies between a row of a request and the log, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The partition leads and its log is open. Appends wait here while a new log is made.
    Log,
    /// A transactional producer has begun its transaction, and on this partition (KIP-890): an
    /// append that nobody vouches for could hang after the transaction's end. Whoever has to ask
    /// waits here.
    Transaction,
    /// The batch is valid and in the form that the topic wants. Appends wait here for the job
    /// that looks at a large batch.
    Batch,
}

impl AppendContext {
    pub(crate) const fn key(&self, row: u32) -> RowKey {
        RowKey {
            home: self.home,
            ticket: self.ticket,
            row,
        }
    }
}

impl ProduceState {
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.purgatory.next_deadline()
    }
}

impl<D: Disk> Shard<D> {
    /// How many appends wait for a high watermark, for metrics and checkers.
    #[must_use]
    pub fn produce_waiting_count(&self) -> usize {
        self.produce.purgatory.len()
    }

    pub(crate) fn handle_produce_part(
        &mut self,
        now: Now,
        part: ProducePart,
        out: &mut Effects<D>,
    ) {
        match part {
            ProducePart::Append { context, rows } => {
                let append = |row: AppendRow| {
                    let number = row.row;
                    (number, self.append_row(now, &context, row, out))
                };
                let rows = rows.into_iter().map(append).collect();
                let part = ProducePart::Progress {
                    ticket: context.ticket,
                    rows,
                };
                send(context.home, part, out);
            }
            ProducePart::Progress { ticket, rows } => {
                for (row, progress) in rows {
                    self.join(ticket, row, progress, out);
                }
            }
            ProducePart::Cancel { ticket } => self.produce.purgatory.cancel(ticket),
        }
    }

    /// Nobody waits for the connection's requests any more. What is appended stays.
    pub(crate) fn produce_connection_closed(&mut self, conn: ConnId, out: &mut Effects<D>) {
        let first = Ticket { conn, seq: 0 };
        let last = Ticket {
            conn,
            seq: u32::MAX,
        };
        let tickets: Vec<_> = self
            .produce
            .requests
            .range(first..=last)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in tickets {
            self.produce.requests.remove(&ticket);
            self.produce.purgatory.cancel(ticket);
            for other in (0..self.shards).filter(|other| *other != self.number) {
                send(other, ProducePart::Cancel { ticket }, out);
            }
        }
    }

    /// Answers the appends whose time is over.
    pub(crate) fn produce_tick(&mut self, now: Now, out: &mut Effects<D>) {
        for (key, outcome) in self.produce.purgatory.take_due(now.mono) {
            self.deliver_row(key, Progress::Done(outcome), out);
        }
    }

    /// Tells the home of a row how far it is.
    fn deliver_row(&mut self, key: RowKey, progress: Progress, out: &mut Effects<D>) {
        if key.home == self.number {
            self.join(key.ticket, key.row, progress, out);
        } else {
            let rows = vec![(key.row, progress)];
            send(
                key.home,
                ProducePart::Progress {
                    ticket: key.ticket,
                    rows,
                },
                out,
            );
        }
    }
}

fn send<D: Disk>(shard: u16, part: ProducePart, out: &mut Effects<D>) {
    let to = MachineId::Shard(shard);
    out.push(Effect::Part {
        to,
        part: Part::Produce(Box::new(part)),
    });
}
