//! Fetches that are being read or parked, and what completes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_types::{ErrorCode, Millis, Mono, TopicIdPartition};

use super::answer::AnswerRow;
use super::part::{FetchHeard, FetchPart, FetchRead, FetchWanted};
use super::read::{Budget, Look, PartitionRead, ReadContext, Reader};
use super::replica::{Hearing, Noted};
use super::subscribers::Subscriber;
use super::{FetchPosition, FetchState, PartitionKey, SetId};
use crate::authorizer::{Operation, Resource};
use crate::machine::{Caller, Effect, MachineId, Ticket};
use crate::part::Part;
use crate::shard::{Effects, owner_shard};

/// How long a follower waits at most to be told that the high watermark moved, if it asked to be
/// told soon: at most 200 such answers a second and session, whatever the number of partitions.
const HIGH_WATERMARK_LINGER: Millis = Millis::new(5);

/// One fetch that is not answered yet.
///
/// It is *reading* while owners of other shards are asked, and *parked* otherwise.
#[derive(Debug)]
pub(crate) struct Waiting<F> {
    pub(super) head: FetchHead,
    pub(super) set: SetId,
    pub(super) kind: WaitKind,
    /// While parked: bytes known to be readable, by slot. Absent ones count as none.
    readable: BTreeMap<u32, u64>,
    /// Their sum.
    readable_bytes: u64,
    reading: Option<Reading<F>>,
    round: u32,
    /// Nothing was read for it yet.
    arrived: bool,
}

/// What all partitions of a fetch have in common.
#[derive(Clone, Debug)]
pub(crate) struct FetchHead {
    pub(super) ticket: Ticket,
    pub(super) version: i16,
    pub(super) caller: Arc<Caller>,
    pub(super) client_id: Option<Arc<str>>,
    pub(super) reader: Reader,
    /// Answered with whatever is there at this time.
    pub(super) deadline: Mono,
    /// Answered as soon as this many bytes are readable.
    pub(super) min_bytes: u64,
    /// Records in the answer; the first batch may be larger.
    pub(super) max_bytes: u64,
    /// How long the client is kept from asking again: set where there was no room to let it wait.
    pub(super) throttle: Millis,
}

/// What kind of answer a fetch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// Every partition; nothing is remembered.
    Sessionless,
    /// Every partition; a session is opened over them.
    Create,
    /// The partitions of a session that have something to say.
    Incremental {
        /// The session.
        id: i32,
    },
}

#[derive(Debug)]
struct Reading<F> {
    outstanding: usize,
    rows: Vec<Row<F>>,
}

/// What a slot's partition said.
#[derive(Debug)]
pub(crate) struct Row<F> {
    pub(super) slot: u32,
    /// The partition; `None` when the metadata does not know it.
    pub(super) at: Option<TopicIdPartition>,
    pub(super) read: PartitionRead<F>,
}

/// That a slot is to be told of changes of its partition.
#[derive(Clone, Copy, Debug)]
struct Wish {
    slot: u32,
    at: Option<TopicIdPartition>,
    noted: Noted,
}

impl<F> Row<F> {
    const fn subscription(&self) -> Wish {
        Wish {
            slot: self.slot,
            at: self.at,
            noted: self.read.noted,
        }
    }
}

/// Partitions of other shards, by owner.
type Elsewhere = BTreeMap<u16, Vec<FetchWanted>>;

impl<F> Waiting<F> {
    pub(super) const fn new(head: FetchHead, set: SetId, kind: WaitKind) -> Self {
        Self {
            head,
            set,
            kind,
            readable: BTreeMap::new(),
            readable_bytes: 0,
            reading: None,
            round: 0,
            arrived: true,
        }
    }

    /// One whose partitions were read already, and what a follower said was noted.
    pub(super) const fn heard_before(head: FetchHead, set: SetId, kind: WaitKind) -> Self {
        let mut waiting = Self::new(head, set, kind);
        waiting.arrived = false;
        waiting
    }

    pub(super) const fn is_parked(&self) -> bool {
        self.reading.is_none()
    }
}

impl<D: Disk> FetchState<D> {
    /// Starts to wait: reads what there is to read, and answers if that is enough.
    pub(super) fn begin(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        waiting: Waiting<D::File>,
        out: &mut Effects<D>,
    ) {
        let ticket = waiting.head.ticket;
        if let Some(home) = self.sets.get_mut(&waiting.set) {
            home.waiting = Some(ticket);
        }
        self.deadlines.insert((waiting.head.deadline, ticket));
        self.waiting.insert(ticket, waiting);
        self.evaluate(cx, ticket, out);
    }

    /// Reads every dirty partition, here or at its owner, and answers if that is enough.
    pub(super) fn evaluate(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        out: &mut Effects<D>,
    ) {
        let Some(waiting) = self.waiting.get_mut(&ticket) else {
            return;
        };
        let arrived = std::mem::replace(&mut waiting.arrived, false);
        let Some((rows, elsewhere)) = self.read_dirty(cx, ticket, arrived) else {
            return;
        };
        if arrived {
            self.hear(cx, ticket, &elsewhere, out);
        }
        if elsewhere.is_empty() {
            self.decide(cx, ticket, rows, out);
            return;
        }
        let Some(waiting) = self.waiting.get_mut(&ticket) else {
            return;
        };
        waiting.round = waiting.round.wrapping_add(1);
        let (round, set, head) = (waiting.round, waiting.set, &waiting.head);
        let (reader, max_bytes) = (head.reader, head.max_bytes);
        let takes_any = head.min_bytes <= 1;
        let here: Vec<_> = rows.iter().map(Row::subscription).collect();
        waiting.reading = Some(Reading {
            outstanding: elsewhere.len(),
            rows,
        });
        // What changes here while others are asked must not be missed.
        for wish in here {
            self.subscribe(cx, set, wish, out);
        }
        for (owner, wanted) in elsewhere {
            for it in &wanted {
                self.note_subscription(cx, set, it.slot, it.at, out);
            }
            let read = FetchRead {
                ticket,
                round,
                set,
                reader,
                arrived,
                takes_any,
                max_bytes,
                wanted,
            };
            push_part(owner, FetchPart::Read(read), out);
        }
    }

    /// A request of a follower's session came in: whoever owns partitions of it hears so, though
    /// the request may not say anything new of them. Those that are asked hear it by that.
    fn hear(
        &mut self,
        cx: &ReadContext<'_, D>,
        ticket: Ticket,
        asked: &Elsewhere,
        out: &mut Effects<D>,
    ) {
        let Some(waiting) = self.waiting.get(&ticket) else {
            return;
        };
        let set = waiting.set;
        let Some(home) = self.sets.get_mut(&set) else {
            return;
        };
        if waiting.head.reader.is_replica() {
            self.heard.hear(cx.number, set, cx.now.mono);
            for owner in home.owners.iter().filter(|it| !asked.contains_key(it)) {
                push_part(*owner, FetchPart::Heard(FetchHeard { set }), out);
            }
        }
        home.owners.extend(asked.keys());
    }

    /// Reads the dirty partitions of this shard; those of other shards come back by owner.
    fn read_dirty(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        arrived: bool,
    ) -> Option<(Vec<Row<D::File>>, Elsewhere)> {
        let waiting = self.waiting.get(&ticket)?;
        let home = self
            .sets
            .get_mut(&waiting.set)
            .expect("a waiting fetch has a set");
        if !matches!(waiting.kind, WaitKind::Incremental { .. }) {
            home.set.mark_all();
        }
        let dirty: Vec<u32> = home.set.dirty().collect();
        let mut budget = Budget {
            bytes: waiting.head.max_bytes,
            at_least_one: true,
        };
        let mut rows = Vec::with_capacity(dirty.len());
        let mut elsewhere = Elsewhere::new();
        for slot in dirty {
            home.set.clean(slot);
            let Some(state) = home.set.slot_mut(slot) else {
                continue;
            };
            let hearing = match (arrived, std::mem::take(&mut state.mentioned)) {
                (true, true) => Hearing::Mentioned,
                (true, false) => Hearing::Unmentioned,
                (false, _) => Hearing::HeardBefore,
            };
            let position = state.position;
            let at = match resolve(cx, &waiting.head, &state.key) {
                Ok(at) => at,
                Err(error) => {
                    rows.push(Row {
                        slot,
                        at: None,
                        read: PartitionRead::unknown(error),
                    });
                    continue;
                }
            };
            let owner = owner_shard(at, cx.shards);
            if owner == cx.number {
                let reader = waiting.head.reader;
                let read = cx.read(at, &position, reader, hearing, &mut budget);
                rows.push(Row {
                    slot,
                    at: Some(at),
                    read,
                });
            } else {
                elsewhere.entry(owner).or_default().push(FetchWanted {
                    slot,
                    at,
                    position,
                    hearing,
                });
            }
        }
        Some((rows, elsewhere))
    }

    /// An owner on another shard answered.
    pub(super) fn owner_answered(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        round: u32,
        reads: Vec<Row<D::File>>,
        out: &mut Effects<D>,
    ) {
        let Some(waiting) = self.waiting.get_mut(&ticket) else {
            return;
        };
        if waiting.round != round {
            return;
        }
        let Some(mut reading) = waiting.reading.take() else {
            return;
        };
        reading.rows.extend(reads);
        reading.outstanding -= 1;
        if reading.outstanding > 0 {
            waiting.reading = Some(reading);
            return;
        }
        let mut rows = reading.rows;
        let mut budget = Budget {
            bytes: waiting.head.max_bytes,
            at_least_one: true,
        };
        let home = self
            .sets
            .get(&waiting.set)
            .expect("a waiting fetch has a set");
        rows.sort_by_key(|row| home.set.order(row.slot));
        for row in &mut rows {
            let slot = home.set.slot(row.slot);
            let max_bytes = slot.map_or(0, |slot| slot.position.max_bytes);
            row.read.fit(max_bytes, &mut budget);
        }
        self.decide(cx, ticket, rows, out);
    }

    /// Answers if the time is over or the rows are enough; parks otherwise.
    fn decide(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        rows: Vec<Row<D::File>>,
        out: &mut Effects<D>,
    ) {
        let Some(waiting) = self.waiting.get_mut(&ticket) else {
            return;
        };
        let home = self
            .sets
            .get_mut(&waiting.set)
            .expect("a waiting fetch has a set");
        let bytes: u64 = rows.iter().map(|row| row.read.bytes()).sum();
        // A client that was told of an unknown partition waits like the others when it asks for
        // more than such: as in Kafka, or it would come back at once, over and over.
        let told = |slot: u32| home.set.slot(slot).is_some_and(|it| it.told_unknown);
        let unknown = rows.iter().filter(|row| row.read.unknown).count();
        let urgent = rows.iter().any(|Row { slot, read, .. }| {
            let waits = read.unknown && told(*slot) && home.set.len() > unknown;
            read.is_urgent() && !waits
        });
        let due = cx.now.mono >= waiting.head.deadline;
        if due || urgent || bytes >= waiting.head.min_bytes || home.set.is_empty() {
            self.answer(cx, ticket, rows, out);
            return;
        }
        // Whatever was marked while owners were being asked is not in the rows.
        let marked_meanwhile = home.set.dirty().next().is_some();
        waiting.readable.clear();
        waiting.readable_bytes = bytes;
        let mut hastens = false;
        for Row { slot, read, .. } in &rows {
            let Some(state) = home.set.slot_mut(*slot) else {
                continue;
            };
            if read.bytes() > 0 {
                waiting.readable.insert(*slot, read.bytes());
            }
            hastens |= state.is_stale(read.high_watermark);
            if read.more || state.has_news(read) {
                home.set.mark(*slot);
            }
        }
        let set = waiting.set;
        if hastens {
            hasten(waiting, &mut self.deadlines, cx.now.mono);
        }
        for row in rows {
            self.subscribe(cx, set, row.subscription(), out);
        }
        if marked_meanwhile {
            self.evaluate(cx, ticket, out);
        }
    }

    /// A partition that a set wants has changed.
    pub(super) fn changed(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        set: SetId,
        slot: u32,
        seen: Seen,
    ) -> Verdict {
        let Some(home) = self.sets.get_mut(&set) else {
            return Verdict::Nothing;
        };
        home.set.mark(slot);
        let parked = home
            .waiting
            .and_then(|ticket| self.waiting.get_mut(&ticket));
        let Some(waiting) = parked.filter(|it| it.is_parked()) else {
            return Verdict::Nothing;
        };
        let Some(state) = home.set.slot(slot) else {
            return Verdict::Nothing;
        };
        let exact = waiting.head.min_bytes > 1;
        let look = match seen {
            Seen::Here(at) => cx.look(at, &state.position, waiting.head.reader, exact),
            Seen::There(look) => look,
        };
        let before = waiting.readable.insert(slot, look.readable).unwrap_or(0);
        waiting.readable_bytes = waiting.readable_bytes - before + look.readable;
        if state.is_stale(look.high_watermark) {
            hasten(waiting, &mut self.deadlines, cx.now.mono);
        }
        let due = cx.now.mono >= waiting.head.deadline;
        if look.urgent || due || waiting.readable_bytes >= waiting.head.min_bytes {
            Verdict::Complete(waiting.head.ticket)
        } else {
            Verdict::StillParked { known: look }
        }
    }

    /// Whether a parked fetch is answered by what was read of one of its partitions alone: the
    /// next fetch of a session is, if it still wants just that.
    pub(super) fn takes(
        &self,
        ticket: Ticket,
        (slot, at): (u32, TopicIdPartition),
        position: &FetchPosition,
    ) -> bool {
        let Some(waiting) = self.waiting.get(&ticket).filter(|it| it.is_parked()) else {
            return false;
        };
        let home = self.sets.get(&waiting.set);
        let state = home.and_then(|home| home.set.slot(slot));
        matches!(waiting.kind, WaitKind::Incremental { .. })
            && waiting.head.min_bytes <= 1
            && state.is_some_and(|it| it.subscribed == Some(at) && it.position == *position)
    }

    /// Answers a parked fetch with what was read of one of its partitions. What else is new is in
    /// the next answer.
    pub(super) fn answer_with(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        row: Row<D::File>,
        out: &mut Effects<D>,
    ) {
        let set = self.waiting.get(&ticket).map(|it| it.set);
        if let Some(home) = set.and_then(|set| self.sets.get_mut(&set)) {
            home.set.clean(row.slot);
        }
        self.answer(cx, ticket, vec![row], out);
    }

    /// Answers a fetch with the rows, and forgets it.
    fn answer(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        rows: Vec<Row<D::File>>,
        out: &mut Effects<D>,
    ) {
        let Some(waiting) = self.stop_waiting(ticket) else {
            return;
        };
        let Waiting {
            head, set, kind, ..
        } = waiting;
        let session = match kind {
            WaitKind::Sessionless => super::SESSION_NONE,
            WaitKind::Incremental { id } => id,
            WaitKind::Create => self.open_session(cx, &head, set, out),
        };
        let home = self
            .sets
            .get_mut(&set)
            .expect("an answered fetch has a set");
        let incremental = matches!(kind, WaitKind::Incremental { .. });
        let mut answered = Vec::with_capacity(rows.len());
        let mut subscribe = Vec::new();
        for row in rows {
            let wish = row.subscription();
            let Row { slot, at, read } = row;
            let Some(state) = home.set.slot_mut(slot) else {
                continue;
            };
            let is_new = state.subscribed != at || read.noted != Noted::Not;
            if session != super::SESSION_NONE && is_new {
                subscribe.push(wish);
            }
            let news = state.has_news(&read);
            state.tell(&read);
            let key = state.key.clone();
            if read.bytes() > 0 {
                home.set.move_to_end(slot);
            }
            if read.bytes() > 0 || read.more || read.is_urgent() {
                home.set.mark(slot);
            }
            if news || !incremental {
                answered.push(AnswerRow { key, read });
            }
        }
        if session == super::SESSION_NONE {
            self.drop_set(cx, set, out);
        }
        for wish in subscribe {
            self.subscribe(cx, set, wish, out);
        }
        super::answer::push(cx, &head, ErrorCode::NONE, session, answered, out);
    }

    /// Answers a waiting fetch with an error for the whole of it.
    pub(super) fn fail(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        error: ErrorCode,
        session: i32,
        out: &mut Effects<D>,
    ) {
        if let Some(waiting) = self.stop_waiting(ticket) {
            super::answer::push(cx, &waiting.head, error, session, Vec::new(), out);
        }
    }

    /// Takes a fetch out of everything that could complete it.
    pub(super) fn stop_waiting(&mut self, ticket: Ticket) -> Option<Waiting<D::File>> {
        let waiting = self.waiting.remove(&ticket)?;
        self.deadlines.remove(&(waiting.head.deadline, ticket));
        if let Some(home) = self.sets.get_mut(&waiting.set) {
            home.waiting = None;
        }
        Some(waiting)
    }

    /// Makes sure that the owner tells of changes. One on another shard was told with the read.
    fn subscribe(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        set: SetId,
        Wish { slot, at, noted }: Wish,
        out: &mut Effects<D>,
    ) {
        let Some(at) = at.filter(|at| owner_shard(*at, cx.shards) == cx.number) else {
            return;
        };
        if self.note_subscription(cx, set, slot, at, out) || noted != Noted::Not {
            let subscriber = Subscriber {
                home: cx.number,
                set,
                slot,
                remote: None,
                counted: None,
            };
            self.subscribers.add(at, subscriber, noted);
        }
    }

    /// Remembers where a slot is subscribed, and takes the old place back. Whether it is a new
    /// place.
    fn note_subscription(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        set: SetId,
        slot: u32,
        at: TopicIdPartition,
        out: &mut Effects<D>,
    ) -> bool {
        let slot = self.sets.get_mut(&set).and_then(|it| it.set.slot_mut(slot));
        let Some(state) = slot else { return false };
        let before = state.subscribed.replace(at);
        if let Some(before) = before.filter(|before| *before != at) {
            self.unsubscribe(cx, set, [before], out);
        }
        before != Some(at)
    }
}

/// Sees to it that a follower soon knows of the high watermark: after a linger, so that many
/// moves, of many partitions, make one answer.
fn hasten<F>(waiting: &mut Waiting<F>, deadlines: &mut BTreeSet<(Mono, Ticket)>, now: Mono) {
    let head = &mut waiting.head;
    let soon = now.plus(HIGH_WATERMARK_LINGER);
    if soon < head.deadline {
        deadlines.remove(&(head.deadline, head.ticket));
        head.deadline = soon;
        deadlines.insert((soon, head.ticket));
    }
}

/// A change of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// Of this shard: it is looked at when somebody waits.
    Here(TopicIdPartition),
    /// Of another shard, whose owner looked.
    There(Look),
}

/// What a change means for the set that wanted to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing waits on the set.
    Nothing,
    /// Not enough yet.
    StillParked {
        /// What the home now knows of the partition.
        known: Look,
    },
    /// The fetch is to be read and answered.
    Complete(Ticket),
}

/// The partition that a client means, if it may be read by it: by name that is asked before
/// anything is told of what exists.
///
/// # Errors
/// UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, or UNKNOWN_TOPIC_OR_PARTITION.
pub(crate) fn resolve<D: Disk>(
    cx: &ReadContext<'_, D>,
    head: &FetchHead,
    key: &PartitionKey,
) -> Result<TopicIdPartition, ErrorCode> {
    let is_replica = head.reader.is_replica();
    if is_replica {
        check_allowed(cx, head, Operation::ClusterAction, Resource::Cluster)?;
    }
    let may_read = |name: &str| match is_replica {
        true => Ok(()),
        false => check_allowed(cx, head, Operation::Read, Resource::Topic(name)),
    };
    let topic = match key {
        PartitionKey::Id(id) => {
            let topic = cx.image.topic(id.topic_id);
            let topic = topic.ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
            may_read(topic.name.as_str())?;
            topic
        }
        PartitionKey::Name(name, _) => {
            may_read(name)?;
            let topic = cx.image.topic_by_name(name);
            topic.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?
        }
    };
    let partition = key.partition();
    if !topic.partitions.contains_key(&partition) {
        return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
    Ok(TopicIdPartition {
        topic_id: topic.id,
        partition,
    })
}

/// Whether who sent a fetch may replicate.
pub(super) fn may_replicate<D: Disk>(cx: &ReadContext<'_, D>, head: &FetchHead) -> bool {
    check_allowed(cx, head, Operation::ClusterAction, Resource::Cluster).is_ok()
}

fn check_allowed<D: Disk>(
    cx: &ReadContext<'_, D>,
    head: &FetchHead,
    operation: Operation,
    resource: Resource<'_>,
) -> Result<(), ErrorCode> {
    if cx.authorizer.allows(&head.caller, operation, resource) {
        Ok(())
    } else {
        Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
    }
}

/// Sends a part to a shard.
pub(super) fn push_part<D: Disk>(to: u16, part: FetchPart<D>, out: &mut Effects<D>) {
    out.push(Effect::Part {
        to: MachineId::Shard(to),
        part: Part::Fetch(Box::new(part)),
    });
}
