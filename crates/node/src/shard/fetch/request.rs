//! From a Fetch request to a waiting fetch.

use std::sync::Arc;

use highwater_disk::Disk;
use highwater_protocol::{FetchPartitionView, FetchView, TopicKey};
use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, Now, Offset, PartitionIndex, TopicIdPartition,
    TopicName,
};

use super::answer::{self, AnswerRow};
use super::read::{Budget, Of, PartitionRead, ReadContext, Reader};
use super::replica::{FetchingReplica, Hearing};
use super::sessions::{SESSION_NONE, SessionWish};
use super::wait::{FetchHead, WaitKind, Waiting, resolve};
use super::{FetchPosition, FetchSet, FetchState, PartitionKey};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Effect, Incoming};
use crate::shard::{Effects, Shard, owner_shard};

/// Most partitions, and most topics, of one request: it bounds what the rows of an answer take up.
const PARTITIONS_MAX: usize = 100_000;
/// The first version with which a client may read from a follower (KIP-392).
const ANY_REPLICA_SINCE: i16 = 11;
/// The first version that names topics by id.
const TOPIC_IDS_SINCE: i16 = 13;

impl<D: Disk> Shard<D> {
    /// Serves a Fetch request.
    pub(crate) fn handle_fetch(
        &mut self,
        now: Now,
        incoming: Incoming,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        let rows = view.partition_count().max(view.topic_count());
        if rows > PARTITIONS_MAX {
            let text = format!("connection closed: Fetch of {rows} topics or partitions");
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
            let (ticket, answer) = (incoming.ticket, Answer::close());
            out.push(Effect::Answer { ticket, answer });
            return;
        }
        let (fetch, mut cx) = self.fetch_and_context(now);
        let head = fetch.head(&cx, incoming, view);
        if !matches!(view.isolation_level(), 0 | 1) && fetch.wants_any(&cx, &head, view) {
            refuse_all(&cx, &head, view, out);
            return;
        }
        match SessionWish::of(view.session_id(), view.session_epoch()) {
            SessionWish::Sessionless { close } => {
                fetch.close_session(&mut cx, close, out);
                fetch.fetch_once(&mut cx, head, view, out);
            }
            SessionWish::Create { close } => {
                fetch.close_session(&mut cx, close, out);
                fetch.fetch_first(&mut cx, head, view, out);
            }
            SessionWish::Incremental { id, epoch } => {
                fetch.fetch_more(&mut cx, head, id, epoch, view, out);
            }
        }
        fetch.assert_invariants();
        self.perform_fetch_outputs(now, out);
    }
}

impl<D: Disk> FetchState<D> {
    fn head(&self, cx: &ReadContext<'_, D>, incoming: Incoming, view: &FetchView) -> FetchHead {
        let replica = view.replica_id();
        let of = if view.version() >= ANY_REPLICA_SINCE {
            Of::Any
        } else {
            Of::Leader
        };
        let reader = if replica.is_some() {
            Reader::Replica(FetchingReplica {
                id: replica,
                epoch: view.replica_epoch().max(BrokerEpoch::NONE),
                version: view.version(),
            })
        } else if view.isolation_level() == 1 {
            Reader::Committed(of)
        } else {
            Reader::Uncommitted(of)
        };
        // fetch.max.bytes is for clients.
        let bytes_max = if reader.is_replica() {
            u64::MAX
        } else {
            self.bytes_max
        };
        let max_bytes = u64::try_from(view.max_bytes()).unwrap_or(0).min(bytes_max);
        FetchHead {
            ticket: incoming.ticket,
            version: incoming.version,
            caller: incoming.caller,
            client_id: incoming.client_id,
            reader,
            deadline: cx.now.mono.plus(view.max_wait()),
            min_bytes: u64::try_from(view.min_bytes()).unwrap_or(0).min(max_bytes),
            max_bytes,
            throttle: Millis::ZERO,
        }
    }

    /// Whether any partition is there to be read: of the request, or of the session that it names.
    /// As in Kafka an isolation level that nobody knows is no matter otherwise.
    fn wants_any(&self, cx: &ReadContext<'_, D>, head: &FetchHead, view: &FetchView) -> bool {
        let of_request = view.topics().any(|topic| {
            let name = shared_name(topic.topic);
            let mut partitions = topic.partitions;
            partitions.any(|it| resolve(cx, head, &key(topic.topic, &name, it.partition)).is_ok())
        });
        let wish = SessionWish::of(view.session_id(), view.session_epoch());
        let SessionWish::Incremental { id, .. } = wish else {
            return of_request;
        };
        let set = self.sessions.set_of(id).and_then(|set| self.sets.get(&set));
        of_request
            || set.is_some_and(|home| home.set.keys().any(|it| resolve(cx, head, it).is_ok()))
    }

    /// A fetch without a session. Most are answered here, with no set at all.
    fn fetch_once(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        head: FetchHead,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        if !self.has_room(view.partition_count()) {
            self.fetch_at_once(cx, head, view, out);
            return;
        }
        let reads_here = cx.shards == 1;
        if reads_here {
            let rows = read_all(cx, &head, view);
            let bytes: u64 = rows.iter().map(|row| row.read.bytes()).sum();
            let urgent = rows.iter().any(|row| row.read.is_urgent());
            let due = head.deadline <= cx.now.mono;
            if due || urgent || bytes >= head.min_bytes || rows.is_empty() {
                answer::push(cx, &head, ErrorCode::NONE, SESSION_NONE, rows, out);
                return;
            }
        }
        let mut set = FetchSet::default();
        insert_all(&mut set, view);
        let set = self.new_set(set);
        let waiting = if reads_here {
            Waiting::heard_before(head, set, WaitKind::Sessionless)
        } else {
            Waiting::new(head, set, WaitKind::Sessionless)
        };
        self.begin(cx, waiting, out);
    }

    /// A fetch that wants a session.
    fn fetch_first(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        head: FetchHead,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        if !self.has_room(view.partition_count()) {
            self.fetch_at_once(cx, head, view, out);
            return;
        }
        let mut set = FetchSet::default();
        insert_all(&mut set, view);
        let set = self.new_set(set);
        // Nothing remembers what cannot exist: such names may be very long.
        let kind = if has_impossible_name(view) {
            WaitKind::Sessionless
        } else {
            WaitKind::Create
        };
        self.begin(cx, Waiting::new(head, set, kind), out);
    }

    /// A fetch that there is no room to let wait: answered with what this shard has. Partitions
    /// of other shards have nothing to say this time.
    fn fetch_at_once(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        mut head: FetchHead,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        let rows = read_all(cx, &head, view);
        let has_any = rows.iter().any(|row| row.read.bytes() > 0);
        if !has_any {
            self.wait_no_longer(cx, &mut head, out);
        }
        answer::push(cx, &head, ErrorCode::NONE, SESSION_NONE, rows, out);
    }

    /// The next fetch of a session.
    fn fetch_more(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        mut head: FetchHead,
        id: i32,
        epoch: i32,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        let by_id = head.version >= TOPIC_IDS_SINCE;
        let set = match self.sessions.advance(cx.now.mono, id, epoch, by_id) {
            Ok(set) => set,
            Err(error) => {
                answer::push(cx, &head, error, SESSION_NONE, Vec::new(), out);
                return;
            }
        };
        // A fetch that still waits on the session has been overtaken.
        if let Some(ticket) = self.sets.get(&set).and_then(|it| it.waiting) {
            self.fail(cx, ticket, ErrorCode::INVALID_FETCH_SESSION_EPOCH, id, out);
        }
        let home = self.sets.get_mut(&set).expect("a session has a set");
        insert_all(&mut home.set, view);
        let mut forgotten = Vec::new();
        for topic in view.forgotten_topics() {
            let name = shared_name(topic.topic);
            for partition in topic.partitions {
                if let Some((_, slot)) = home.set.remove(&key(topic.topic, &name, partition)) {
                    forgotten.extend(slot.subscribed);
                }
            }
        }
        let partitions = home.set.len();
        self.unsubscribe(cx, set, forgotten, out);
        if has_impossible_name(view) {
            self.sessions.close(id);
        }
        let kind = if self.sessions.resize(id, partitions) {
            WaitKind::Incremental { id }
        } else {
            if !self.has_room(partitions) {
                self.wait_no_longer(cx, &mut head, out);
            }
            self.count_loose(set, true);
            WaitKind::Sessionless
        };
        self.begin(cx, Waiting::new(head, set, kind), out);
    }
}

/// A request whose isolation level nobody knows is refused as a whole, in Kafka's form: by each
/// partition where topics have names, by one code where they have ids.
fn refuse_all<D: Disk>(
    cx: &ReadContext<'_, D>,
    head: &FetchHead,
    view: &FetchView,
    out: &mut Effects<D>,
) {
    let error = ErrorCode::UNKNOWN_SERVER_ERROR;
    let mut rows = Vec::new();
    if head.version < TOPIC_IDS_SINCE {
        for topic in view.topics() {
            let name = shared_name(topic.topic);
            for partition in topic.partitions {
                let key = key(topic.topic, &name, partition.partition);
                let read = PartitionRead::unknown(error);
                rows.push(AnswerRow { key, read });
            }
        }
    }
    answer::push(cx, head, error, SESSION_NONE, rows, out);
}

/// Reads every partition of a request that is of this shard, in its order.
fn read_all<D: Disk>(
    cx: &mut ReadContext<'_, D>,
    head: &FetchHead,
    view: &FetchView,
) -> Vec<AnswerRow<D::File>> {
    let mut budget = Budget {
        bytes: head.max_bytes,
        at_least_one: true,
    };
    let mut rows = Vec::new();
    for topic in view.topics() {
        let name = shared_name(topic.topic);
        for partition in topic.partitions {
            let key = key(topic.topic, &name, partition.partition);
            let read = match resolve(cx, head, &key) {
                Ok(at) if owner_shard(at, cx.shards) != cx.number => {
                    PartitionRead::refused(ErrorCode::NONE)
                }
                Ok(at) => {
                    let position = position(&partition);
                    cx.read(at, &position, head.reader, Hearing::Mentioned, &mut budget)
                }
                Err(error) => PartitionRead::unknown(error),
            };
            rows.push(AnswerRow { key, read });
        }
    }
    rows
}

/// Whether a topic's name is longer than any topic's can be.
fn has_impossible_name(view: &FetchView) -> bool {
    let is_long = |topic: TopicKey<'_>| {
        let name = topic.name();
        name.is_some_and(|name| name.len() > TopicName::BYTES_MAX)
    };
    view.topics().any(|topic| is_long(topic.topic))
}

fn insert_all(set: &mut FetchSet, view: &FetchView) {
    for topic in view.topics() {
        let name = shared_name(topic.topic);
        for partition in topic.partitions {
            set.insert(
                key(topic.topic, &name, partition.partition),
                position(&partition),
                known_high_watermark(view, &partition),
            );
        }
    }
}

fn position(view: &FetchPartitionView) -> FetchPosition {
    FetchPosition {
        offset: view.fetch_offset,
        max_bytes: u32::try_from(view.partition_max_bytes).unwrap_or(0),
        current_leader_epoch: told(view.current_leader_epoch),
        last_fetched_epoch: told(view.last_fetched_epoch),
    }
}

/// The high watermark that a follower knows, if it says that it wants to be told of a newer one
/// soon. A consumer has no use for it.
fn known_high_watermark(view: &FetchView, partition: &FetchPartitionView) -> Option<Offset> {
    let says = partition.high_watermark != Offset::MAX && view.replica_id().is_some();
    says.then(|| partition.high_watermark.max(Offset::NONE))
}

/// Any number below zero says that the client knows no epoch.
fn told(epoch: LeaderEpoch) -> LeaderEpoch {
    epoch.max(LeaderEpoch::NONE)
}

/// The name as the keys of the topic's partitions share it; empty for a topic named by id.
fn shared_name(topic: TopicKey<'_>) -> Option<Arc<str>> {
    topic.name().map(Arc::from)
}

fn key(topic: TopicKey<'_>, name: &Option<Arc<str>>, partition: PartitionIndex) -> PartitionKey {
    match (topic, name) {
        (TopicKey::Id(topic_id), _) => PartitionKey::Id(TopicIdPartition {
            topic_id,
            partition,
        }),
        (TopicKey::Name(_), Some(name)) => PartitionKey::Name(Arc::clone(name), partition),
        (TopicKey::Name(text), None) => PartitionKey::Name(Arc::from(text), partition),
    }
}
