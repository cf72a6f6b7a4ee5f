use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse};
use highwater_protocol::{ApiKey, ProduceView};
use highwater_records::ProducerStamp;
use highwater_types::{ErrorCode, Millis, NodeId, ProducerEpoch, ProducerId, Uuid};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::accumulator::Queue;
use super::batch::ProducerBatch;
use super::config::Acks;
use super::delivery::Outcome;
use super::handle::Shared;
use crate::config::duration;
use crate::error::ClientError;
use crate::net::Connection;
use crate::offsets::PartitionName;

/// The background task of a producer: picks batches, sends them, judges the answers.
///
/// One event at a time; everything that waits (connecting, answers, metadata) is a task of its own
/// that reports back as an [`Event`].
pub(super) struct Sender {
    pub(super) shared: Arc<Shared>,
    events: mpsc::Receiver<Event>,
    report: mpsc::Sender<Event>,
    nodes: BTreeMap<NodeId, Node>,
    pub(super) identity: Identity,
    /// Topics whose leaders must be asked for.
    pub(super) stale: BTreeSet<String>,
    refresh: Refresh,
    /// Compressed batches are made here before they go into their own buffer.
    scratch: Vec<u8>,
    /// The next batch without idempotence.
    next_number: i64,
    /// Which partition goes first; moves on, so that none starves.
    turn: usize,
}

#[derive(Default)]
struct Node {
    connection: Option<Connection>,
    is_connecting: bool,
    in_flight: usize,
    failures: u32,
    not_before: Option<Instant>,
}

/// Who we are to the brokers.
pub(super) enum Identity {
    /// Without idempotence.
    Nobody,
    /// Must be asked for, not before this.
    Wanted {
        not_before: Instant,
        failures: u32,
    },
    /// Is being asked for.
    Asking {
        failures: u32,
    },
    Known(ProducerId, ProducerEpoch),
}

struct Refresh {
    is_asking: bool,
    not_before: Instant,
    failures: u32,
}

pub(super) enum Event {
    Connected(NodeId, Result<Connection, ClientError>),
    Answered(
        NodeId,
        Vec<Sent>,
        Result<Option<ProduceResponse>, ClientError>,
    ),
    Identified(Result<(ProducerId, ProducerEpoch), ClientError>),
    Refreshed(Result<(), ClientError>),
}

/// A batch on its way.
pub(super) struct Sent {
    pub(super) batch: ProducerBatch,
    /// Its place in [`Queue::in_flight`].
    pub(super) number: i64,
    pub(super) topic_id: Uuid,
}

impl Sender {
    pub(super) fn new(shared: Arc<Shared>, idempotent: bool) -> Self {
        let (report, events) = mpsc::channel(1024);
        let now = Instant::now();
        Self {
            shared,
            events,
            report,
            nodes: BTreeMap::new(),
            identity: if idempotent {
                Identity::Wanted {
                    not_before: now,
                    failures: 0,
                }
            } else {
                Identity::Nobody
            },
            stale: BTreeSet::new(),
            refresh: Refresh {
                is_asking: false,
                not_before: now,
                failures: 0,
            },
            scratch: Vec::new(),
            next_number: 0,
            turn: 0,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let now = Instant::now();
            self.expire(now);
            while self.send_some(now).await {}
            self.ask_for_metadata(now);
            {
                let accumulator = self.shared.lock();
                if accumulator.closed && accumulator.is_idle() {
                    return;
                }
            }
            let next = self.next_look(now);
            tokio::select! {
                () = self.shared.wake.notified() => {}
                event = self.events.recv() => self.handle(event),
                () = sleep_until(next) => {}
            }
            while let Ok(event) = self.events.try_recv() {
                self.handle(Some(event));
            }
        }
    }

    fn handle(&mut self, event: Option<Event>) {
        let now = Instant::now();
        match event.expect("this task holds a sender of its own channel") {
            Event::Connected(node, Ok(connection)) => {
                let node = self.nodes.entry(node).or_default();
                node.is_connecting = false;
                node.failures = 0;
                node.connection = Some(connection);
            }
            Event::Connected(id, Err(why)) => {
                tracing::debug!(node = %id, %why, "cannot connect");
                let node = self.nodes.entry(id).or_default();
                node.is_connecting = false;
                node.failures += 1;
                let pause = self.shared.client.config().backoff(node.failures);
                node.not_before = Some(now + duration(pause));
                self.note_failure(id, &why);
            }
            Event::Answered(node, sent, answer) => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.in_flight -= 1;
                }
                self.handle_answer(sent, answer, now);
            }
            Event::Identified(Ok((id, epoch))) => {
                tracing::debug!(producer = %id, %epoch, "producer id");
                self.identity = Identity::Known(id, epoch);
            }
            Event::Identified(Err(why)) => self.not_identified(why, now),
            Event::Refreshed(result) => {
                self.refresh.is_asking = false;
                if let Err(why) = result {
                    tracing::debug!(%why, "no metadata");
                }
            }
        }
    }

    /// What could not be sent because of a broker is told if it expires, and its leader is asked
    /// for again: it may have moved.
    fn note_failure(&mut self, node: NodeId, why: &ClientError) {
        let client = &self.shared.client;
        let mut accumulator = self.shared.lock();
        for ((topic, index), queue) in &mut accumulator.queues {
            let leads = client
                .known_leader(topic, *index)
                .is_some_and(|it| it.node == node);
            if let Some(batch) = queue.batches.front_mut()
                && leads
            {
                batch.last_error = Some(why.clone());
                self.stale.insert(topic.clone());
            }
        }
    }

    fn not_identified(&mut self, why: ClientError, now: Instant) {
        let failures = match self.identity {
            Identity::Asking { failures } => failures + 1,
            _ => 1,
        };
        let pause = duration(self.shared.client.config().backoff(failures));
        self.identity = Identity::Wanted {
            not_before: now + pause,
            failures,
        };
        let mut accumulator = self.shared.lock();
        for queue in accumulator.queues.values_mut() {
            for batch in &mut queue.batches {
                batch.last_error = Some(why.clone());
            }
            if !why.is_retriable() {
                for mut batch in queue.batches.drain(..) {
                    batch.complete(Outcome::Failed(why.clone()));
                }
            }
        }
    }

    /// Sends one request to each broker that can take one; whether any was sent.
    async fn send_some(&mut self, now: Instant) -> bool {
        if !self.identify(now) {
            return false;
        }
        let picked = self.pick(now);
        let any = !picked.is_empty();
        for (node, batches) in picked {
            self.send(node, batches).await;
        }
        any
    }

    /// Whether we know who we are; asks, if not.
    fn identify(&mut self, now: Instant) -> bool {
        match self.identity {
            Identity::Nobody | Identity::Known(..) => return true,
            Identity::Asking { .. } => return false,
            Identity::Wanted { not_before, .. } if not_before > now => return false,
            Identity::Wanted { failures, .. } => self.identity = Identity::Asking { failures },
        }
        if self.shared.lock().is_idle() {
            self.identity = Identity::Wanted {
                not_before: now,
                failures: 0,
            };
            return false;
        }
        let (client, report) = (self.shared.client.clone(), self.report.clone());
        tokio::spawn(async move {
            let request = InitProducerIdRequest {
                transactional_id: None,
                transaction_timeout_ms: i32::MAX,
                ..InitProducerIdRequest::default()
            };
            let answer = client.call_any(&request).await.and_then(|answer| {
                ClientError::check(|| "producer id".to_owned(), answer.error_code, None)?;
                Ok((
                    answer.producer_id,
                    ProducerEpoch::new(answer.producer_epoch),
                ))
            });
            drop(report.send(Event::Identified(answer)).await);
        });
        false
    }

    /// Takes at most one batch per partition out of the queues, by broker.
    fn pick(&mut self, now: Instant) -> BTreeMap<NodeId, Vec<Sent>> {
        let shared = self.shared.clone();
        let mut accumulator = shared.lock();
        let hurry = accumulator.closed || accumulator.flushes > 0 || shared.pool.is_exhausted();
        let mut picked: BTreeMap<NodeId, Vec<Sent>> = BTreeMap::new();
        let mut sizes: BTreeMap<NodeId, usize> = BTreeMap::new();
        let names: Vec<_> = accumulator.queues.keys().cloned().collect();
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn.checked_rem(names.len()).unwrap_or(0);
        for name in names.iter().cycle().skip(turn).take(names.len()) {
            let Some(queue) = accumulator.queues.get_mut(name) else {
                continue;
            };
            if !self.is_ready(queue, hurry, now) {
                continue;
            }
            let Some(leader) = shared.client.known_leader(&name.0, name.1) else {
                self.stale.insert(name.0.clone());
                continue;
            };
            if !self.is_reachable(leader.node, now) {
                continue;
            }
            let size = sizes.entry(leader.node).or_default();
            let front = queue.batches.front().map_or(0, ProducerBatch::size_bytes);
            if *size > 0 && *size + front > shared.config.max_request_size {
                continue;
            }
            *size += front;
            if let Some(sent) = self.take_front(queue) {
                picked.entry(leader.node).or_default().push(sent);
            }
        }
        picked
    }

    fn is_ready(&self, queue: &mut Queue, hurry: bool, now: Instant) -> bool {
        let waiting = queue.batches.len();
        let Some(front) = queue.batches.front() else {
            return false;
        };
        let is_retry = front.attempts > 0;
        let lingered = now >= front.created + duration(self.shared.config.linger);
        let is_due = hurry || is_retry || waiting > 1 || front.is_full() || lingered;
        // A retry goes alone, so that what comes after it cannot overtake it again.
        let goes_alone = is_retry || queue.sequences.needs_new_epoch;
        let may_go = !goes_alone || queue.in_flight.is_empty();
        is_due && may_go && front.not_before <= now
    }

    /// Whether a request can go to `node` now; connects, if need be.
    fn is_reachable(&mut self, id: NodeId, now: Instant) -> bool {
        let max_in_flight = self.shared.config.max_in_flight;
        let node = self.nodes.entry(id).or_default();
        if node.connection.as_ref().is_some_and(Connection::is_closed) {
            node.connection = None;
        }
        if node.connection.is_some() {
            return node.in_flight < max_in_flight;
        }
        if !node.is_connecting && node.not_before.is_none_or(|at| at <= now) {
            node.is_connecting = true;
            let (client, report) = (self.shared.client.clone(), self.report.clone());
            tokio::spawn(async move {
                let result = client.connection(id).await;
                drop(report.send(Event::Connected(id, result)).await);
            });
        }
        false
    }

    fn take_front(&mut self, queue: &mut Queue) -> Option<Sent> {
        let mut batch = queue.batches.pop_front()?;
        if let Identity::Known(id, epoch) = self.identity {
            if queue.sequences.needs_new_epoch {
                queue.sequences.renew((id, epoch));
                batch.stamp = None;
                for waiting in &mut queue.batches {
                    waiting.stamp = None;
                }
            }
            queue.sequences.identity.get_or_insert((id, epoch));
        }
        let number = self.next_number;
        self.next_number += 1;
        if batch.stamp.is_none() {
            batch.stamp = Some(queue.sequences.take(batch.record_count()));
        }
        queue.in_flight.insert(number);
        queue.outcomes_in_flight.push(batch.subscribe());
        batch.attempts += 1;
        let metadata = self.shared.client.metadata();
        let topic_id = metadata.topics.get(&batch.partition.0).and_then(|it| it.id);
        Some(Sent {
            batch,
            number,
            topic_id: topic_id.map_or(Uuid::ZERO, |id| id.uuid()),
        })
    }

    async fn send(&mut self, id: NodeId, mut sent: Vec<Sent>) {
        let acks = self.shared.config.acks;
        let limit = self.shared.client.config().request_timeout;
        let connection = self.nodes.get(&id).and_then(|node| node.connection.clone());
        let connection = connection.expect("only brokers with a connection are picked");
        let result = match self.encode(&connection, &mut sent) {
            Ok((view, version)) => connection.send(view, version).await,
            Err(why) => Err(why),
        };
        let node = self.nodes.entry(id).or_default();
        node.in_flight += 1;
        let report = self.report.clone();
        tokio::spawn(async move {
            let answer = match result {
                Err(why) => Err(why),
                Ok(answer) => {
                    let wait = async {
                        match acks {
                            Acks::None => answer.written().await.map(|_| None),
                            Acks::Leader | Acks::All => answer.wait().await.map(Some),
                        }
                    };
                    match timeout(duration(limit), wait).await {
                        Ok(answer) => answer,
                        Err(_) => Err(connection.late(ApiKey::Produce, limit)),
                    }
                }
            };
            drop(report.send(Event::Answered(id, sent, answer)).await);
        });
    }

    fn encode(
        &mut self,
        connection: &Connection,
        sent: &mut [Sent],
    ) -> Result<(ProduceView, i16), ClientError> {
        let mut version = connection.version(ApiKey::Produce)?;
        if sent.iter().any(|sent| sent.topic_id.is_zero()) {
            version = version.min(12);
        }
        let mut topics: BTreeMap<String, TopicProduceData> = BTreeMap::new();
        for Sent {
            batch, topic_id, ..
        } in sent
        {
            let stamp = batch.stamp.unwrap_or(ProducerStamp::NONE);
            let compressor = self.shared.config.compressor;
            let records: Bytes = batch.encode(stamp, compressor, &mut self.scratch)?;
            let (topic, index) = &batch.partition;
            let data = topics
                .entry(topic.clone())
                .or_insert_with(|| TopicProduceData {
                    name: if version >= 13 {
                        String::new()
                    } else {
                        topic.clone()
                    },
                    topic_id: if version >= 13 { *topic_id } else { Uuid::ZERO },
                    ..TopicProduceData::default()
                });
            let index = index.raw();
            data.partition_data.push(PartitionProduceData {
                index,
                records: Some(records),
            });
        }
        let timeout_ms = self.shared.client.config().request_timeout.as_u64();
        let request = ProduceRequest {
            transactional_id: None,
            acks: self.shared.config.acks.raw(),
            timeout_ms: i32::try_from(timeout_ms).unwrap_or(i32::MAX),
            topic_data: topics.into_values().collect(),
        };
        let view = ProduceView::from_message(&request, version);
        view.map(|view| (view, version))
            .map_err(|why| ClientError::Encode {
                peer: connection.peer().to_owned(),
                api: ApiKey::Produce,
                why: why.to_string(),
            })
    }

    /// Gives up what waited longer than `delivery.timeout.ms`.
    fn expire(&mut self, now: Instant) {
        let limit = self.shared.config.delivery_timeout;
        let mut accumulator = self.shared.lock();
        for queue in accumulator.queues.values_mut() {
            while let Some(front) = queue.batches.front() {
                if now < front.created + duration(limit) {
                    break;
                }
                let Some(mut batch) = queue.batches.pop_front() else {
                    break;
                };
                if batch.attempts > 0 {
                    queue.sequences.needs_new_epoch = true;
                }
                let why = expired(&batch.partition, limit, batch.last_error.take());
                batch.complete(Outcome::Failed(why));
            }
        }
    }

    fn ask_for_metadata(&mut self, now: Instant) {
        if self.stale.is_empty() || self.refresh.is_asking || self.refresh.not_before > now {
            return;
        }
        self.refresh.is_asking = true;
        self.refresh.failures += 1;
        let pause = duration(self.shared.client.config().backoff(self.refresh.failures));
        self.refresh.not_before = now + pause;
        let topics: Vec<_> = std::mem::take(&mut self.stale).into_iter().collect();
        let (client, report) = (self.shared.client.clone(), self.report.clone());
        tokio::spawn(async move {
            let result = client.refresh(Some(&topics)).await.map(drop);
            drop(report.send(Event::Refreshed(result)).await);
        });
    }

    /// A batch was acknowledged: the next failure is a first one again.
    pub(super) const fn all_is_well(&mut self) {
        self.refresh.failures = 0;
    }

    /// When something may have become due without an event.
    fn next_look(&self, now: Instant) -> Instant {
        let mut next = now + duration(Millis::new(60_000));
        let mut at = |time: Instant| {
            if time > now {
                next = next.min(time);
            }
        };
        let config = &self.shared.config;
        for queue in self.shared.lock().queues.values() {
            if let Some(front) = queue.batches.front() {
                at(front.created + duration(config.linger));
                at(front.created + duration(config.delivery_timeout));
                at(front.not_before);
            }
        }
        self.nodes
            .values()
            .filter_map(|node| node.not_before)
            .for_each(&mut at);
        if let Identity::Wanted { not_before, .. } = self.identity {
            at(not_before);
        }
        at(self.refresh.not_before);
        next
    }
}

pub(super) fn expired(
    (topic, index): &PartitionName,
    limit: Millis,
    last: Option<ClientError>,
) -> ClientError {
    ClientError::Expired {
        partition: format!("{topic}-{index}"),
        limit_ms: limit.as_u64(),
        last: last.map(Box::new),
    }
}

/// Whether a code means that somebody else leads the partition by now, or that the topic is
/// another one.
pub(super) fn is_about_leader(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::INCONSISTENT_TOPIC_ID
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::REPLICA_NOT_AVAILABLE
            | ErrorCode::KAFKA_STORAGE_ERROR
            | ErrorCode::NETWORK_EXCEPTION
    )
}
