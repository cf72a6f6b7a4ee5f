//! Fetch: sessions, parked fetches and their wake-ups.
//!
//! A fetch lives on the shard of its connection (its *home*); each partition is read by its
//! *owner*. With one shard both are the same and nothing is sent. Waits live in sets of
//! partitions: a session keeps its set, a fetch without a session has one while it waits. A set
//! subscribes at each owner once; a change marks the set's slot dirty, and only dirty slots are
//! looked at, so a parked fetch costs nothing until one of its partitions changes.

mod answer;
mod part;
mod read;
mod replica;
mod request;
mod sessions;
mod set;
mod subscribers;
mod wait;

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::Disk;
use highwater_types::{ErrorCode, Millis, Mono, Now, TopicIdPartition};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore as _;

pub use part::FetchPart;
use read::PartitionRead;
pub(crate) use read::{Look, ReadContext, Reader, Refusal};
use sessions::{FetchSessions, FullNotice, Newcomer, Opened, SESSION_NONE};
pub(crate) use set::{FetchPosition, FetchSet, PartitionKey};
use subscribers::{RemoteView, Subscriber, Subscribers};
use wait::{FetchHead, Row, Seen, Verdict, Waiting, push_part};

use super::serving::ServingSettings;
use super::{Effects, Shard, owner_shard};
use crate::journal::JournalEntry;
use crate::machine::{ConnId, Effect, MachineId, Ticket};
use part::{FetchArm, FetchBrings, FetchChanged, FetchDone, FetchForget, FetchHeard, FetchRead};
use read::Budget;
pub(crate) use replica::FetchOutputs;
use replica::{HeardSessions, Hearing};

/// How long a session stays at least when others want its place.
const SESSION_EVICT_AGE_MIN: Millis = Millis::new(120_000);

/// How long a client is kept from asking again at most when there was no room to let it wait.
const THROTTLE_MAX: Millis = Millis::new(1_000);

/// Names a set of partitions of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SetId(u64);

/// The fetch sessions and parked fetches of a shard, and the subscriptions at its partitions.
///
/// Invariant: each session and each waiting fetch has its set in `sets`, and each waiting fetch
/// its deadline in `deadlines`.
#[derive(Debug)]
pub struct FetchState<D: Disk> {
    bytes_max: u64,
    sessions: FetchSessions,
    sets: BTreeMap<SetId, HomeSet>,
    waiting: BTreeMap<Ticket, Waiting<D::File>>,
    deadlines: BTreeSet<(Mono, Ticket)>,
    subscribers: Subscribers,
    heard: HeardSessions,
    next_set: u64,
    random: ChaCha8Rng,
    no_session: FullNotice,
    /// Partitions in sets that are of no session: of fetches that wait without one.
    loose: usize,
    loose_max: usize,
    no_room: FullNotice,
}

/// A set whose home is this shard.
#[derive(Debug, Default)]
struct HomeSet {
    set: FetchSet,
    /// The fetch that waits on it.
    waiting: Option<Ticket>,
    /// The other shards that were asked for partitions of it.
    owners: BTreeSet<u16>,
    /// Its part of [`FetchState::loose`].
    loose: usize,
}

impl<D: Disk> FetchState<D> {
    /// No session and no fetch yet. `random` draws session ids.
    pub(crate) fn new(settings: &ServingSettings, shards: u16, random: ChaCha8Rng) -> Self {
        let share = |of: usize| of.div_ceil(usize::from(shards.max(1)));
        let slots = share(settings.fetch_session_slots);
        let partitions_max = share(settings.fetch_partitions_max);
        Self {
            bytes_max: settings.fetch_bytes_max,
            sessions: FetchSessions::new(slots, partitions_max, SESSION_EVICT_AGE_MIN),
            loose: 0,
            loose_max: partitions_max,
            sets: BTreeMap::new(),
            waiting: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            subscribers: Subscribers::default(),
            heard: HeardSessions::default(),
            next_set: 0,
            random,
            no_session: FullNotice::new(
                "every fetch session is in use: a client that opens one per fetch is the usual \
                 cause",
            ),
            no_room: FullNotice::new(
                "fetches without a session wait on too many partitions \
                 (max.incremental.fetch.session.partitions): more are answered at once",
            ),
        }
    }

    /// When a parked fetch wants a tick.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// What of the invariants is cheap to look at.
    fn assert_invariants(&self) {
        let (sets, sessions) = (self.sets.len(), self.sessions.len());
        assert!(sessions <= sets, "{sessions} sessions have {sets} sets");
        let (waiting, deadlines) = (self.waiting.len(), self.deadlines.len());
        assert!(
            deadlines <= waiting,
            "{deadlines} deadlines for {waiting} fetches"
        );
        assert!(waiting <= sets, "{waiting} fetches wait on {sets} sets");
    }

    /// A set that is of no session yet.
    fn new_set(&mut self, set: FetchSet) -> SetId {
        self.next_set += 1;
        let id = SetId(self.next_set);
        let home = HomeSet {
            set,
            ..HomeSet::default()
        };
        self.sets.insert(id, home);
        self.count_loose(id, true);
        id
    }

    /// Whether so many partitions more may be waited on without a session. One fetch always may,
    /// however large it is.
    const fn has_room(&self, partitions: usize) -> bool {
        self.loose == 0 || self.loose + partitions <= self.loose_max
    }

    /// Counts the partitions of a set among those of no session, or no longer.
    fn count_loose(&mut self, id: SetId, is_loose: bool) {
        let Some(home) = self.sets.get_mut(&id) else {
            return;
        };
        let now = if is_loose { home.set.len() } else { 0 };
        let before = std::mem::replace(&mut home.loose, now);
        self.loose = self.loose - before + now;
    }

    /// There is no room to let a fetch wait: it is answered at once, and its client is kept from
    /// asking again for a while instead.
    fn wait_no_longer(
        &mut self,
        cx: &ReadContext<'_, D>,
        head: &mut FetchHead,
        out: &mut Effects<D>,
    ) {
        head.throttle = head.deadline.since(cx.now.mono).min(THROTTLE_MAX);
        head.deadline = cx.now.mono;
        let client = head.client_id.as_ref();
        if let Some(text) = self.no_room.refused(cx.now.mono, client) {
            out.push(Effect::Event(JournalEntry::text(crate::Level::Warn, text)));
        }
    }

    /// Opens a session over a set if there is a place; [`SESSION_NONE`] otherwise.
    fn open_session(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        head: &FetchHead,
        set: SetId,
        out: &mut Effects<D>,
    ) -> i32 {
        let partitions = self.sets.get(&set).map_or(0, |it| it.set.len());
        let newcomer = Newcomer {
            set,
            partitions,
            uses_topic_ids: head.version >= 13,
            privileged: head.reader.is_replica() && wait::may_replicate(cx, head),
        };
        let random = &mut self.random;
        let Opened { id, evicted } = self
            .sessions
            .open(cx.now.mono, newcomer, || random.next_u32());
        for evicted in evicted {
            self.end_session(cx, evicted, out);
        }
        if id != SESSION_NONE {
            self.count_loose(set, false);
            return id;
        }
        let client = head.client_id.as_ref();
        if let Some(text) = self.no_session.refused(cx.now.mono, client) {
            out.push(Effect::Event(JournalEntry::text(crate::Level::Warn, text)));
        }
        SESSION_NONE
    }

    /// Closes a session that a request named.
    fn close_session(&mut self, cx: &mut ReadContext<'_, D>, id: i32, out: &mut Effects<D>) {
        if id != SESSION_NONE
            && let Some(set) = self.sessions.close(id)
        {
            self.end_session(cx, set, out);
        }
    }

    /// Drops the set of a session that is no more, with the fetch that waits on it.
    fn end_session(&mut self, cx: &mut ReadContext<'_, D>, set: SetId, out: &mut Effects<D>) {
        if let Some(ticket) = self.sets.get(&set).and_then(|it| it.waiting) {
            self.fail(
                cx,
                ticket,
                ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
                SESSION_NONE,
                out,
            );
        }
        self.drop_set(cx, set, out);
    }

    /// Drops a set and its subscriptions.
    fn drop_set(&mut self, cx: &mut ReadContext<'_, D>, set: SetId, out: &mut Effects<D>) {
        self.count_loose(set, false);
        if let Some(home) = self.sets.remove(&set) {
            self.unsubscribe(cx, set, home.set.subscriptions(), out);
            self.heard.forget(cx.number, set);
            for owner in home.owners {
                let forget = FetchForget {
                    set,
                    partitions: Vec::new(),
                    ends: true,
                };
                push_part(owner, FetchPart::Forget(forget), out);
            }
        }
    }

    fn unsubscribe(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        set: SetId,
        places: impl IntoIterator<Item = TopicIdPartition>,
        out: &mut Effects<D>,
    ) {
        let mut elsewhere: BTreeMap<u16, Vec<TopicIdPartition>> = BTreeMap::new();
        for at in places {
            let owner = owner_shard(at, cx.shards);
            if owner == cx.number {
                self.subscribers.remove(at, cx.number, set);
            } else {
                elsewhere.entry(owner).or_default().push(at);
            }
        }
        for (owner, partitions) in elsewhere {
            let forget = FetchForget {
                set,
                partitions,
                ends: false,
            };
            push_part(owner, FetchPart::Forget(forget), out);
        }
    }

    /// Reads for a fetch of another shard, and subscribes its set.
    fn read_for(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        home: u16,
        read: FetchRead,
        out: &mut Effects<D>,
    ) {
        let FetchRead {
            ticket,
            round,
            set,
            reader,
            arrived,
            takes_any,
            max_bytes,
            wanted,
        } = read;
        if arrived && reader.is_replica() {
            self.heard.hear(home, set, cx.now.mono);
        }
        let mut budget = Budget {
            bytes: max_bytes,
            at_least_one: true,
        };
        let mut reads = Vec::with_capacity(wanted.len());
        for it in wanted {
            let read = cx.read(it.at, &it.position, reader, it.hearing, &mut budget);
            let noted = read.noted;
            reads.push(Row {
                slot: it.slot,
                at: Some(it.at),
                read,
            });
            let view = RemoteView {
                position: it.position,
                reader,
                armed: true,
                brings: (takes_any && reader.is_replica()).then_some(max_bytes),
            };
            let subscriber = Subscriber {
                home,
                set,
                slot: it.slot,
                remote: Some(view),
                counted: None,
            };
            self.subscribers.add(it.at, subscriber, noted);
        }
        push_part(
            home,
            FetchPart::Done(FetchDone {
                ticket,
                round,
                reads,
            }),
            out,
        );
    }

    /// A set of another shard waits on for a change of a partition of this one.
    fn arm(&mut self, cx: &mut ReadContext<'_, D>, home: u16, arm: FetchArm, out: &mut Effects<D>) {
        let FetchArm {
            set,
            at,
            known,
            known_high_watermark,
        } = arm;
        let subscribers = self.subscribers.of(at).iter_mut();
        for subscriber in subscribers.filter(|it| it.home == home && it.set == set) {
            let slot = subscriber.slot;
            let Some(view) = &mut subscriber.remote else {
                continue;
            };
            let look = cx.look(at, &view.position, view.reader, true);
            let moved = view.reader.is_replica() && look.high_watermark != known_high_watermark;
            view.armed = !(look.urgent || look.readable > known || moved);
            if !view.armed {
                let changed = FetchChanged {
                    set,
                    slot,
                    at,
                    look,
                    brings: None,
                };
                push_part(home, FetchPart::Changed(changed), out);
            }
        }
    }

    /// Tells everyone who wants to know that partitions of this shard changed.
    fn tell_changed(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        if self.subscribers.is_empty() {
            return;
        }
        let mut here = Vec::new();
        for at in changed {
            for subscriber in self.subscribers.of(*at) {
                let Subscriber {
                    home,
                    set,
                    slot,
                    remote,
                    counted: _,
                } = subscriber;
                match remote {
                    None => here.push((*set, *slot, *at)),
                    Some(view) if view.armed => {
                        view.armed = false;
                        let (look, brings) = look_or_bring(cx, *at, view);
                        let changed = FetchChanged {
                            set: *set,
                            slot: *slot,
                            at: *at,
                            look,
                            brings,
                        };
                        push_part(*home, FetchPart::Changed(changed), out);
                    }
                    Some(_) => {}
                }
            }
        }
        let mut complete = Vec::new();
        for (set, slot, at) in here {
            let verdict = self.changed(cx, set, slot, Seen::Here(at));
            if let Verdict::Complete(ticket) = verdict {
                complete.push(ticket);
            }
        }
        complete.dedup();
        for ticket in complete {
            self.evaluate_if_waiting(cx, ticket, out);
        }
    }

    /// The owner of a partition on another shard says that it changed.
    fn told_changed(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        owner: u16,
        told: FetchChanged<D>,
        out: &mut Effects<D>,
    ) {
        let FetchChanged {
            set,
            slot,
            at,
            look,
            brings,
        } = told;
        match self.changed(cx, set, slot, Seen::There(look)) {
            Verdict::Nothing => {}
            Verdict::StillParked { known } => {
                let arm = FetchArm {
                    set,
                    at,
                    known: known.readable,
                    known_high_watermark: known.high_watermark,
                };
                push_part(owner, FetchPart::Arm(arm), out);
            }
            Verdict::Complete(ticket) => match brings {
                Some(brings) if self.takes(ticket, (slot, at), &brings.position) => {
                    let (at, read) = (Some(at), brings.read);
                    let row = Row { slot, at, read };
                    self.answer_with(cx, ticket, row, out);
                }
                _ => self.evaluate_if_waiting(cx, ticket, out),
            },
        }
    }

    fn evaluate_if_waiting(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        ticket: Ticket,
        out: &mut Effects<D>,
    ) {
        if self.waiting.get(&ticket).is_some_and(Waiting::is_parked) {
            self.evaluate(cx, ticket, out);
        }
    }
}

/// Looks at a partition for a set of another shard, and reads it where that is all that is wanted.
fn look_or_bring<D: Disk>(
    cx: &mut ReadContext<'_, D>,
    at: TopicIdPartition,
    view: &RemoteView,
) -> (Look, Option<Box<FetchBrings<D>>>) {
    let RemoteView {
        position, reader, ..
    } = *view;
    let Some(max_bytes) = view.brings else {
        return (cx.look(at, &position, reader, true), None);
    };
    let look = cx.look(at, &position, reader, false);
    if look.urgent || look.readable == 0 {
        return (look, None);
    }
    let mut budget = Budget {
        bytes: max_bytes,
        at_least_one: true,
    };
    let read = cx.read(at, &position, reader, Hearing::HeardBefore, &mut budget);
    (look, Some(Box::new(FetchBrings { position, read })))
}

impl<D: Disk> Shard<D> {
    /// Called once at the end of a step with the partitions of this shard that changed in it: log
    /// end, high watermark, last stable offset, role, log start, truncation, failure, removal.
    pub(crate) fn fetch_partitions_changed(
        &mut self,
        now: Now,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        let (fetch, mut cx) = self.fetch_and_context(now);
        fetch.tell_changed(&mut cx, changed, out);
        fetch.assert_invariants();
    }

    /// Drops the parked fetches of a connection. Its sessions stay: the client may come back on
    /// another connection.
    pub(crate) fn fetch_connection_closed(&mut self, conn: ConnId, out: &mut Effects<D>) {
        let (fetch, mut cx) = self.fetch_and_context(Now::default());
        let range = Ticket { conn, seq: 0 }..=Ticket {
            conn,
            seq: u32::MAX,
        };
        let tickets: Vec<Ticket> = fetch
            .waiting
            .range(range)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in tickets {
            if let Some(waiting) = fetch.stop_waiting(ticket)
                && !matches!(waiting.kind, wait::WaitKind::Incremental { .. })
            {
                fetch.drop_set(&mut cx, waiting.set, out);
            }
        }
    }

    /// Completes what is due.
    pub(crate) fn fetch_tick(&mut self, now: Now, out: &mut Effects<D>) {
        let (fetch, mut cx) = self.fetch_and_context(now);
        while let Some((deadline, ticket)) = fetch.deadlines.first().copied() {
            if deadline > now.mono {
                break;
            }
            fetch.deadlines.pop_first();
            fetch.evaluate_if_waiting(&mut cx, ticket, out);
        }
        fetch.assert_invariants();
    }

    /// Takes a part of another shard's fetch, or of an own one that another shard owns.
    pub(crate) fn handle_fetch_part(
        &mut self,
        now: Now,
        from: MachineId,
        part: FetchPart<D>,
        out: &mut Effects<D>,
    ) {
        let MachineId::Shard(from) = from else { return };
        let (fetch, mut cx) = self.fetch_and_context(now);
        match part {
            FetchPart::Read(read) => fetch.read_for(&mut cx, from, read, out),
            FetchPart::Done(FetchDone {
                ticket,
                round,
                reads,
            }) => {
                fetch.owner_answered(&mut cx, ticket, round, reads, out);
            }
            FetchPart::Heard(FetchHeard { set }) => fetch.heard.hear(from, set, now.mono),
            FetchPart::Changed(told) => fetch.told_changed(&mut cx, from, told, out),
            FetchPart::Arm(arm) => fetch.arm(&mut cx, from, arm, out),
            FetchPart::Forget(FetchForget {
                set,
                partitions,
                ends,
            }) => {
                for at in partitions {
                    fetch.subscribers.remove(at, from, set);
                }
                if ends {
                    fetch.heard.forget(from, set);
                }
            }
        }
        self.perform_fetch_outputs(now, out);
    }

    /// Performs what replicas put out because of followers' fetches.
    fn perform_fetch_outputs(&mut self, now: Now, out: &mut Effects<D>) {
        if self.fetch_outputs.is_empty() {
            return;
        }
        let mut outputs = std::mem::take(&mut self.fetch_outputs);
        for (id, output) in outputs.drain(..) {
            self.perform(now, id, output, out);
        }
        self.fetch_outputs = outputs;
    }

    /// The fetches of this shard, and what reading needs of the rest of it.
    pub(crate) fn fetch_and_context(
        &mut self,
        now: Now,
    ) -> (&mut FetchState<D>, ReadContext<'_, D>) {
        let cx = ReadContext {
            now,
            number: self.number,
            shards: self.shards,
            image: &self.image,
            partitions: &mut self.partitions,
            authorizer: self.authorizer.as_ref(),
            outputs: &mut self.fetch_outputs,
        };
        (&mut self.fetch, cx)
    }
}
