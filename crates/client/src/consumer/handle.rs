use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use highwater_protocol::client::{FetchLimits, FetchSession, WantedPartition};
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::{ApiKey, FetchView};
use highwater_records::Decompressor;
use highwater_types::{LeaderEpoch, Millis, NodeId, Offset, PartitionIndex, TopicId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::config::ConsumerConfig;
use super::fetched::PartitionRecords;
use super::position::{Position, StartAt, Tracked};
use crate::cluster::Client;
use crate::config::duration;
use crate::error::ClientError;
use crate::net::Connection;
use crate::offsets::{IsolationLevel, ListedOffset, OffsetSpec, PartitionName};

/// Reads partitions: those that were assigned, each from its own position.
///
/// [`Consumer::poll`] gives what has come. Between polls one answer per broker is fetched ahead.
/// A position moves when its records are given out, never before; what an aborted transaction
/// wrote is skipped with `read_committed`.
pub struct Consumer {
    pub(super) client: Client,
    pub(crate) config: ConsumerConfig,
    pub(super) partitions: BTreeMap<PartitionName, Tracked>,
    nodes: BTreeMap<NodeId, Node>,
    pub(super) stale: BTreeSet<String>,
    refresh: Refresh,
    events: mpsc::Receiver<Event>,
    report: mpsc::Sender<Event>,
    pub(super) decompressor: Decompressor,
    /// Told by the next polls, one each: what went well goes first.
    pub(super) errors: VecDeque<ClientError>,
}

#[derive(Default)]
struct Node {
    connection: Option<Connection>,
    session: FetchSession,
    is_busy: bool,
    failures: u32,
    not_before: Option<Instant>,
}

struct Refresh {
    is_asking: bool,
    not_before: Instant,
    failures: u32,
}

/// What was asked for: partition and offset.
pub(super) type Asked = BTreeMap<PartitionName, (Offset, TopicId)>;

enum Event {
    Connected(NodeId, Result<Connection, ClientError>),
    Fetched(NodeId, Asked, Result<FetchResponse, ClientError>),
    Listed(Vec<(PartitionName, OffsetSpec, Result<ListedOffset, ClientError>)>),
    Refreshed(Result<(), ClientError>),
}

impl Consumer {
    /// A consumer with connections of its own and nothing assigned.
    #[must_use]
    pub fn new(client: &Client, config: ConsumerConfig) -> Self {
        let (report, events) = mpsc::channel(1024);
        let now = Instant::now();
        Self {
            client: client.sibling(),
            config,
            partitions: BTreeMap::new(),
            nodes: BTreeMap::new(),
            stale: BTreeSet::new(),
            refresh: Refresh {
                is_asking: false,
                not_before: now,
                failures: 0,
            },
            events,
            report,
            decompressor: Decompressor::new(),
            errors: VecDeque::new(),
        }
    }

    /// Reads a partition from `start` on, also when it was read already.
    ///
    /// # Errors
    /// What [`Client::topic`] gives, and [`ClientError::Unknown`] for a partition that the topic
    /// does not have.
    pub async fn assign(
        &mut self,
        topic: &str,
        partition: PartitionIndex,
        start: StartAt,
    ) -> Result<(), ClientError> {
        let known = self
            .client
            .topic(topic, self.client.config().default_api_timeout)
            .await?;
        if !known.partitions.iter().any(|it| it.index == partition) {
            return Err(ClientError::Unknown {
                what: format!("partition {topic}-{partition}"),
            });
        }
        let tracked = Tracked::new(start, Instant::now());
        self.partitions
            .insert((topic.to_owned(), partition), tracked);
        Ok(())
    }

    /// Reads all partitions that a topic has now, each from `start` on.
    ///
    /// # Errors
    /// What [`Client::topic`] gives.
    pub async fn assign_topic(&mut self, topic: &str, start: StartAt) -> Result<(), ClientError> {
        let known = self
            .client
            .topic(topic, self.client.config().default_api_timeout)
            .await?;
        let now = Instant::now();
        for partition in &known.partitions {
            let name = (topic.to_owned(), partition.index);
            self.partitions.insert(name, Tracked::new(start, now));
        }
        Ok(())
    }

    /// Reads a partition from `start` on, whether or not it is known to exist.
    pub(crate) fn track(&mut self, partition: PartitionName, start: StartAt) {
        let tracked = Tracked::new(start, Instant::now());
        self.partitions.insert(partition, tracked);
    }

    /// The same from `offset` on, where the record before it has `leader_epoch`: by that a
    /// truncation below it is noticed.
    pub(crate) fn track_from(
        &mut self,
        partition: PartitionName,
        offset: Offset,
        leader_epoch: LeaderEpoch,
    ) {
        let mut tracked = Tracked::new(StartAt::Offset(offset), Instant::now());
        tracked.last_epoch = leader_epoch;
        self.partitions.insert(partition, tracked);
    }

    /// Has the next poll tell this.
    pub(crate) fn tell_later(&mut self, why: ClientError) {
        self.errors.push_back(why);
    }

    /// No longer reads a partition.
    pub fn unassign(&mut self, partition: &PartitionName) {
        self.partitions.remove(partition);
    }

    /// Goes on at `start` in a partition that is assigned.
    pub fn seek(&mut self, partition: &PartitionName, start: StartAt) {
        if let Some(tracked) = self.partitions.get_mut(partition) {
            *tracked = Tracked::new(start, Instant::now());
        }
    }

    /// The next offset that will be read; `None` while it is not looked up, and for a partition
    /// that is not assigned.
    #[must_use]
    pub fn position(&self, partition: &PartitionName) -> Option<Offset> {
        match self.partitions.get(partition)?.position {
            Position::At(offset) => Some(offset),
            Position::Unknown(_) | Position::Asking(_) => None,
        }
    }

    /// The position, and the leader epoch of the record before it as far as is known.
    pub(crate) fn position_and_epoch(
        &self,
        partition: &PartitionName,
    ) -> Option<(Offset, LeaderEpoch)> {
        let offset = self.position(partition)?;
        Some((offset, self.partitions.get(partition)?.last_epoch))
    }

    /// The end of what can be read, as of the last answer: the high watermark, or the last stable
    /// offset with `read_committed`.
    #[must_use]
    pub fn end_offset(&self, partition: &PartitionName) -> Option<Offset> {
        let tracked = self.partitions.get(partition)?;
        match self.config.isolation_level {
            IsolationLevel::ReadUncommitted => tracked.high_watermark,
            IsolationLevel::ReadCommitted => tracked.last_stable_offset,
        }
    }

    /// Waits up to `max_wait` for records and gives those that came first, in the order of each
    /// partition. Empty when none came.
    ///
    /// # Errors
    /// One partition's or broker's trouble at a time: [`ClientError::OffsetOutOfRange`],
    /// [`ClientError::Truncated`], [`ClientError::Corrupt`], [`ClientError::Refused`]. Positions
    /// stay as they are, so that the next poll tries again; what passes by itself (a leader that
    /// moves, a lost connection) is tried again without being told.
    pub async fn poll(&mut self, max_wait: Millis) -> Result<Vec<PartitionRecords>, ClientError> {
        let deadline = Instant::now() + duration(max_wait);
        loop {
            if let Some(why) = self.errors.pop_front() {
                return Err(why);
            }
            let now = Instant::now();
            self.look_up();
            self.ask_for_metadata(now);
            self.fetch(now);
            let next = self.next_look(now).min(deadline);
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = sleep_until(next) => None,
            };
            let is_over = Instant::now() >= deadline;
            match event {
                Some(event) => {
                    let records = self.handle(event);
                    if !records.is_empty() {
                        return Ok(records);
                    }
                }
                None if is_over && self.errors.is_empty() => return Ok(Vec::new()),
                None => {}
            }
        }
    }

    fn handle(&mut self, event: Event) -> Vec<PartitionRecords> {
        let now = Instant::now();
        match event {
            Event::Connected(node, Ok(connection)) => {
                let node = self.nodes.entry(node).or_default();
                (node.is_busy, node.failures) = (false, 0);
                node.connection = Some(connection);
            }
            Event::Connected(id, Err(why)) => self.node_failed(id, &why, now),
            Event::Fetched(id, asked, Ok(answer)) => {
                let node = self.nodes.entry(id).or_default();
                node.is_busy = false;
                return match node.session.handle_answer(&answer) {
                    Ok(()) => {
                        node.failures = 0;
                        self.take_in(&asked, answer, now)
                    }
                    Err(why) => {
                        tracing::debug!(node = %id, %why, "fetch session begins anew");
                        self.node_paused(id, now);
                        Vec::new()
                    }
                };
            }
            Event::Fetched(id, _, Err(why)) => {
                self.nodes.entry(id).or_default().session.handle_failure();
                self.node_failed(id, &why, now);
            }
            Event::Listed(listed) => self.take_in_offsets(listed, now),
            Event::Refreshed(result) => {
                self.refresh.is_asking = false;
                match result {
                    Ok(()) => self.refresh.failures = 0,
                    Err(why) => tracing::debug!(%why, "no metadata"),
                }
            }
        }
        Vec::new()
    }

    /// A broker cannot be reached: perhaps others lead its partitions by now.
    fn node_failed(&mut self, id: NodeId, why: &ClientError, now: Instant) {
        tracing::debug!(node = %id, %why, "cannot fetch");
        self.node_paused(id, now);
        let node = self.nodes.entry(id).or_default();
        node.connection = None;
        if !why.is_retriable() && !matches!(why, ClientError::Misbehaved { .. }) {
            self.errors.push_back(why.clone());
        }
        let led = self.partitions.keys().filter(|(topic, index)| {
            self.client
                .known_leader(topic, *index)
                .is_some_and(|leader| leader.node == id)
        });
        self.stale.extend(led.map(|(topic, _)| topic.clone()));
    }

    fn node_paused(&mut self, id: NodeId, now: Instant) {
        let node = self.nodes.entry(id).or_default();
        node.is_busy = false;
        node.failures += 1;
        node.not_before = Some(now + duration(self.client.config().backoff(node.failures)));
    }

    /// Looks up the positions that are not numbers yet.
    fn look_up(&mut self) {
        let now = Instant::now();
        let mut wanted = Vec::new();
        for (name, tracked) in &mut self.partitions {
            if let Position::Unknown(spec) = tracked.position
                && tracked.not_before <= now
            {
                tracked.position = Position::Asking(spec);
                wanted.push((name.clone(), spec));
            }
        }
        if wanted.is_empty() {
            return;
        }
        let (client, report) = (self.client.clone(), self.report.clone());
        let isolation = self.config.isolation_level;
        tokio::spawn(async move {
            let listed = client.list_offsets(&wanted, isolation).await;
            let listed = wanted
                .into_iter()
                .zip(listed)
                .map(|((name, spec), it)| (name, spec, it));
            drop(report.send(Event::Listed(listed.collect())).await);
        });
    }

    fn take_in_offsets(
        &mut self,
        listed: Vec<(PartitionName, OffsetSpec, Result<ListedOffset, ClientError>)>,
        now: Instant,
    ) {
        for (name, spec, listed) in listed {
            let Some(tracked) = self.partitions.get_mut(&name) else {
                continue;
            };
            if tracked.position != Position::Asking(spec) {
                continue;
            }
            tracked.position = match listed {
                Ok(ListedOffset {
                    offset: Some(offset),
                    ..
                }) => Position::At(offset),
                // No record is as late as that: go on at the end.
                Ok(_) => Position::Unknown(OffsetSpec::Latest),
                Err(why) => {
                    tracked.failures += 1;
                    let pause = self.client.config().backoff(tracked.failures);
                    tracked.not_before = now + duration(pause);
                    self.errors.push_back(why);
                    Position::Unknown(spec)
                }
            };
        }
    }

    fn ask_for_metadata(&mut self, now: Instant) {
        if self.stale.is_empty() || self.refresh.is_asking || self.refresh.not_before > now {
            return;
        }
        self.refresh.is_asking = true;
        self.refresh.failures += 1;
        let pause = duration(self.client.config().backoff(self.refresh.failures));
        self.refresh.not_before = now + pause;
        let topics: Vec<_> = std::mem::take(&mut self.stale).into_iter().collect();
        let (client, report) = (self.client.clone(), self.report.clone());
        tokio::spawn(async move {
            let result = client.ask_metadata(Some(&topics), false).await.map(drop);
            drop(report.send(Event::Refreshed(result)).await);
        });
    }

    /// Sends a fetch to each leader that has none to answer.
    fn fetch(&mut self, now: Instant) {
        let mut by_leader: BTreeMap<NodeId, Vec<(PartitionName, WantedPartition)>> =
            BTreeMap::new();
        let metadata = self.client.metadata();
        for (name, tracked) in &self.partitions {
            let Position::At(fetch_offset) = tracked.position else {
                continue;
            };
            if tracked.not_before > now {
                continue;
            }
            let Some(leader) = self.client.known_leader(&name.0, name.1) else {
                self.stale.insert(name.0.clone());
                continue;
            };
            let topic_id = metadata.topics.get(&name.0).and_then(|topic| topic.id);
            let wanted = WantedPartition {
                topic: Arc::from(name.0.as_str()),
                topic_id: topic_id.unwrap_or(TopicId::ZERO),
                partition: name.1,
                fetch_offset,
                current_leader_epoch: leader.epoch,
                last_fetched_epoch: tracked.last_epoch,
                partition_max_bytes: self.config.max_partition_fetch_bytes,
            };
            by_leader
                .entry(leader.node)
                .or_default()
                .push((name.clone(), wanted));
        }
        for (id, wanted) in by_leader {
            self.fetch_from(id, wanted, now);
        }
    }

    fn fetch_from(
        &mut self,
        id: NodeId,
        wanted: Vec<(PartitionName, WantedPartition)>,
        now: Instant,
    ) {
        let node = self.nodes.entry(id).or_default();
        if node.is_busy || node.not_before.is_some_and(|at| at > now) {
            return;
        }
        node.is_busy = true;
        let report = self.report.clone();
        let connection = node
            .connection
            .clone()
            .filter(|connection| !connection.is_closed());
        let Some(connection) = connection else {
            let client = self.client.clone();
            tokio::spawn(async move {
                let result = client.connection(id).await;
                drop(report.send(Event::Connected(id, result)).await);
            });
            return;
        };
        let asked = wanted
            .iter()
            .map(|(name, it)| (name.clone(), (it.fetch_offset, it.topic_id)))
            .collect();
        let wanted = wanted.into_iter().map(|(_, it)| it).collect();
        let limits = FetchLimits {
            max_wait_ms: i32::try_from(self.config.fetch_max_wait.as_u64()).unwrap_or(i32::MAX),
            min_bytes: self.config.fetch_min_bytes,
            max_bytes: self.config.fetch_max_bytes,
            read_committed: self.config.isolation_level == IsolationLevel::ReadCommitted,
        };
        let view = connection.version(ApiKey::Fetch).and_then(|version_max| {
            let (request, version) = node.session.next_request(wanted, limits, version_max);
            let view = FetchView::from_message(&request, version);
            view.map(|view| (view, version))
                .map_err(|why| ClientError::Encode {
                    peer: connection.peer().to_owned(),
                    api: ApiKey::Fetch,
                    why: why.to_string(),
                })
        });
        let request_timeout = self.client.config().request_timeout.as_u64();
        let limit =
            Millis::new(request_timeout.saturating_add(self.config.fetch_max_wait.as_u64()));
        tokio::spawn(async move {
            let answer = match view {
                Err(why) => Err(why),
                Ok((view, version)) => {
                    let exchange = async { connection.send(view, version).await?.wait().await };
                    match timeout(duration(limit), exchange).await {
                        Ok(answer) => answer,
                        Err(_) => Err(connection.late(ApiKey::Fetch, limit)),
                    }
                }
            };
            drop(report.send(Event::Fetched(id, asked, answer)).await);
        });
    }

    /// When something may have become due without an event.
    fn next_look(&self, now: Instant) -> Instant {
        let mut next = now + duration(Millis::new(60_000));
        let pauses = self.partitions.values().map(|tracked| tracked.not_before);
        let nodes = self.nodes.values().filter_map(|node| node.not_before);
        for at in pauses.chain(nodes).chain([self.refresh.not_before]) {
            if at > now {
                next = next.min(at);
            }
        }
        next
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}
