//! From a Fetch request to a waiting fetch.

use std::sync::Arc;

use highwater_disk::Disk;
use highwater_protocol::{FetchPartitionView, FetchView, TopicKey};
use highwater_types::{ErrorCode, Now, PartitionIndex, TopicIdPartition};

use super::answer::{self, AnswerRow};
use super::read::{Budget, PartitionRead, ReadContext, Reader};
use super::sessions::{SESSION_NONE, SessionWish};
use super::wait::{FetchHead, WaitKind, Waiting, resolve};
use super::{FetchPosition, FetchSet, FetchState, PartitionKey};
use crate::machine::Incoming;
use crate::shard::{Effects, Shard};

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
        let (fetch, mut cx) = self.fetch_and_context(now);
        let head = fetch.head(&cx, incoming, view);
        match SessionWish::of(view.session_id(), view.session_epoch()) {
            SessionWish::Sessionless { close } => {
                fetch.close_session(&mut cx, close, out);
                fetch.fetch_once(&mut cx, head, view, out);
            }
            SessionWish::Create { close } => {
                fetch.close_session(&mut cx, close, out);
                let mut set = FetchSet::default();
                insert_all(&mut set, view);
                let set = fetch.new_set(set);
                fetch.begin(&mut cx, Waiting::new(head, set, WaitKind::Create), out);
            }
            SessionWish::Incremental { id, epoch } => {
                fetch.fetch_more(&mut cx, head, id, epoch, view, out);
            }
        }
        fetch.assert_invariants();
    }
}

impl<D: Disk> FetchState<D> {
    fn head(&self, cx: &ReadContext<'_, D>, incoming: Incoming, view: &FetchView) -> FetchHead {
        let replica = view.replica_id();
        let reader = if replica.is_some() {
            Reader::Replica(replica)
        } else if view.isolation_level() == 1 {
            Reader::Committed
        } else {
            Reader::Uncommitted
        };
        let max_bytes = u64::try_from(view.max_bytes())
            .unwrap_or(0)
            .min(self.bytes_max);
        FetchHead {
            ticket: incoming.ticket,
            version: incoming.version,
            caller: incoming.caller,
            client_id: incoming.client_id,
            reader,
            deadline: cx.now.mono.plus(view.max_wait()),
            min_bytes: u64::try_from(view.min_bytes()).unwrap_or(0).min(max_bytes),
            max_bytes,
        }
    }

    /// A fetch without a session. Most are answered here, with no set at all.
    fn fetch_once(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        head: FetchHead,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        if cx.shards == 1 {
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
        self.begin(cx, Waiting::new(head, set, WaitKind::Sessionless), out);
    }

    /// The next fetch of a session.
    fn fetch_more(
        &mut self,
        cx: &mut ReadContext<'_, D>,
        head: FetchHead,
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
        let kind = if self.sessions.resize(id, partitions) {
            WaitKind::Incremental { id }
        } else {
            WaitKind::Sessionless
        };
        self.begin(cx, Waiting::new(head, set, kind), out);
    }
}

/// Reads every partition of a request, in its order.
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
            let read = match resolve(cx, &key) {
                Ok(at) => cx.read(at, &position(&partition), head.reader, &mut budget),
                Err(error) => PartitionRead::unknown(error),
            };
            rows.push(AnswerRow { key, read });
        }
    }
    rows
}

fn insert_all(set: &mut FetchSet, view: &FetchView) {
    for topic in view.topics() {
        let name = shared_name(topic.topic);
        for partition in topic.partitions {
            set.insert(
                key(topic.topic, &name, partition.partition),
                position(&partition),
            );
        }
    }
}

fn position(view: &FetchPartitionView) -> FetchPosition {
    FetchPosition {
        offset: view.fetch_offset,
        max_bytes: u32::try_from(view.partition_max_bytes).unwrap_or(0),
        current_leader_epoch: view.current_leader_epoch,
        last_fetched_epoch: view.last_fetched_epoch,
    }
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
