//! At home: the rows of a request go to their coordinators, and their answers are joined.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use highwater_coordinator::GroupRequest;
use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_protocol::Response;
use highwater_types::{ErrorCode, Now, TopicIdPartition};

use super::RowAnswer;
use super::part::{GroupPart, GroupRow};
use super::route::member_caller;
use crate::authorizer::{Authorizer, Operation, Resource};
use crate::machine::{Caller, ConnId, Effect, Incoming, MachineId, Ticket};
use crate::part::Part;
use crate::shard::requests::push_answer;
use crate::shard::{Effects, Shard, owner_shard};

/// Turns the joined rows into the answer of their request.
pub(super) type Compose = Box<dyn FnOnce(&ComposeContext<'_>, Vec<RowAnswer>) -> Response + Send>;

/// What composing an answer has at hand.
#[derive(Debug)]
pub(super) struct ComposeContext<'a> {
    pub(super) image: &'a MetadataImage,
    pub(super) authorizer: &'a dyn Authorizer,
    pub(super) caller: &'a Caller,
}

/// A request whose rows are not all there.
pub(crate) struct Asked {
    ticket: Ticket,
    version: i16,
    caller: Arc<Caller>,
    rows: Vec<RowAnswer>,
    /// How many rows each owner has not answered.
    outstanding: BTreeMap<u16, usize>,
    compose: Compose,
}

/// One question of a request, and the partition whose coordinator answers it.
pub(super) type Question = (Option<TopicIdPartition>, GroupRequest);

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = (
            self.ticket,
            self.version,
            self.rows.len(),
            &self.outstanding,
        );
        f.debug_tuple("Asked").field(&fields).finish()
    }
}

impl ComposeContext<'_> {
    /// Whether the caller may do `operation` on a group.
    pub(super) fn allows(&self, operation: Operation, resource: Resource<'_>) -> bool {
        self.authorizer.allows(self.caller, operation, resource)
    }
}

impl<D: Disk> Shard<D> {
    /// The partition that keeps a group; `None` while there is no `__consumer_offsets`.
    pub(super) fn partition_of_group(&self, group_id: &str) -> Option<TopicIdPartition> {
        let topic = self.groups.topic.as_ref()?;
        Some(topic.partition_of(group_id))
    }

    /// Asks the coordinators; answers once all have. Without a partition nobody coordinates.
    pub(super) fn ask_coordinators(
        &mut self,
        now: Now,
        incoming: &Incoming,
        questions: Vec<Question>,
        compose: Compose,
        out: &mut Effects<D>,
    ) {
        let caller = member_caller(incoming);
        self.groups.asked_count += 1;
        let asked = self.groups.asked_count;
        let mut rows = Vec::with_capacity(questions.len());
        let mut by_owner: BTreeMap<u16, Vec<GroupRow>> = BTreeMap::new();
        for (row, (at, request)) in (0_u32..).zip(questions) {
            rows.push(Err(ErrorCode::NOT_COORDINATOR));
            let Some(at) = at else { continue };
            let caller = caller.clone();
            by_owner
                .entry(owner_shard(at, self.shards))
                .or_default()
                .push(GroupRow {
                    row,
                    at,
                    caller,
                    request,
                });
        }
        let outstanding = by_owner.iter().map(|(owner, rows)| (*owner, rows.len()));
        let pending = Asked {
            ticket: incoming.ticket,
            version: incoming.version,
            caller: Arc::clone(&incoming.caller),
            rows,
            outstanding: outstanding.collect(),
            compose,
        };
        self.groups.asked.insert(asked, pending);
        if by_owner.is_empty() {
            self.groups_answered(asked, self.number, Vec::new(), out);
        }
        for (owner, rows) in by_owner {
            if owner == self.number {
                self.ask_own_coordinators(now, owner, asked, rows, out);
            } else {
                send(owner, GroupPart::Ask { asked, rows }, out);
            }
        }
    }

    /// Takes another shard's question, or the answer to an own one.
    pub(crate) fn handle_group_part(
        &mut self,
        now: Now,
        from: MachineId,
        part: GroupPart,
        out: &mut Effects<D>,
    ) {
        let MachineId::Shard(from) = from else { return };
        match part {
            GroupPart::Ask { asked, rows } => {
                self.ask_own_coordinators(now, from, asked, rows, out);
            }
            GroupPart::Answers { asked, rows } => self.groups_answered(asked, from, rows, out),
            GroupPart::Forget { asked } => self.forget_asked(from, asked),
        }
    }

    /// Nobody waits for the connection's requests any more. Members stay, as in Kafka, until
    /// their sessions end.
    pub(crate) fn groups_connection_closed(&mut self, conn: ConnId, out: &mut Effects<D>) {
        let of_conn = |(asked, it): (&u64, &Asked)| (it.ticket.conn == conn).then_some(*asked);
        let gone: Vec<u64> = self.groups.asked.iter().filter_map(of_conn).collect();
        for asked in gone {
            let Some(Asked { outstanding, .. }) = self.groups.asked.remove(&asked) else {
                continue;
            };
            for owner in outstanding.into_keys() {
                if owner == self.number {
                    self.forget_asked(owner, asked);
                } else {
                    send(owner, GroupPart::Forget { asked }, out);
                }
            }
        }
    }

    /// Tells the home of rows what their coordinator said.
    pub(super) fn deliver_group_rows(
        &mut self,
        home: u16,
        asked: u64,
        rows: Vec<(u32, RowAnswer)>,
        out: &mut Effects<D>,
    ) {
        if home == self.number {
            self.groups_answered(asked, home, rows, out);
        } else {
            send(home, GroupPart::Answers { asked, rows }, out);
        }
    }

    fn groups_answered(
        &mut self,
        asked: u64,
        owner: u16,
        rows: Vec<(u32, RowAnswer)>,
        out: &mut Effects<D>,
    ) {
        let Some(pending) = self.groups.asked.get_mut(&asked) else {
            return;
        };
        for (row, answer) in rows {
            let place = pending.rows.get_mut(row as usize);
            *place.expect("an answer has a row") = answer;
            let left = pending.outstanding.get_mut(&owner);
            let left = left.expect("an owner answers what it was asked");
            *left -= 1;
            if *left == 0 {
                pending.outstanding.remove(&owner);
            }
        }
        if !pending.outstanding.is_empty() {
            return;
        }
        let Some(done) = self.groups.asked.remove(&asked) else {
            return;
        };
        let cx = ComposeContext {
            image: &self.image,
            authorizer: self.authorizer.as_ref(),
            caller: &done.caller,
        };
        let response = (done.compose)(&cx, done.rows);
        push_answer(done.ticket, done.version, &response, out);
    }
}

fn send<D: Disk>(shard: u16, part: GroupPart, out: &mut Effects<D>) {
    let to = MachineId::Shard(shard);
    out.push(Effect::Part {
        to,
        part: Part::Groups(Box::new(part)),
    });
}
