//! Fetches of the metadata log by those that follow it.

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    SnapshotId,
};
use highwater_protocol::{FetchView, Response, TopicKey};
use highwater_quorum::{FetchValidity, Observers, ReplicaKey};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, Offset, TopicId};

use super::{Leader, append::answer};
use crate::control::Effects;
use crate::machine::{ConnId, Ticket};

/// From this version on answers say where the leader is (KIP-853).
const ENDPOINTS_SINCE: i16 = 17;
/// Most bytes in one answer: what a batch may take.
const BYTES_MAX: u64 = 8 << 20;

/// Those that follow the metadata log.
#[derive(Debug, Default)]
pub(super) struct Followers {
    /// How far they are.
    pub(super) observers: Observers,
    /// Fetches that wait for something new.
    parked: Vec<ParkedFetch>,
    /// The log end offset and high watermark that parked fetches were last compared with.
    compared: (Offset, Option<Offset>),
}

#[derive(Debug)]
struct ParkedFetch {
    ticket: Ticket,
    version: i16,
    asked: Asked,
    /// When it is answered whether or not there is anything.
    until: Mono,
}

/// What a well-formed fetch asks for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    key: ReplicaKey,
    epoch: LeaderEpoch,
    offset: Offset,
    last_epoch: LeaderEpoch,
    bytes_max: u64,
    max_wait: Millis,
    /// Moving past it is worth an answer.
    high_watermark: Offset,
}

impl Followers {
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.parked.iter().map(|fetch| fetch.until).min()
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        self.parked.retain(|fetch| fetch.ticket.conn != conn);
    }

    pub(super) fn abandon(&mut self) -> Vec<Ticket> {
        let parked = std::mem::take(&mut self.parked);
        parked.into_iter().map(|fetch| fetch.ticket).collect()
    }
}

impl<D: Disk> Leader<D> {
    /// Serves a fetch: at once when it is wrong, or there is something to tell; else once there is,
    /// or its wait is over.
    pub(super) fn handle_fetch(
        &mut self,
        now: Now,
        ticket: Ticket,
        view: &FetchView,
        out: &mut Effects<D>,
    ) {
        let version = view.version();
        let asked = match self.check(view) {
            Ok(asked) => asked,
            Err(error_code) => {
                let response = FetchResponse {
                    error_code,
                    ..FetchResponse::default()
                };
                return self.answer_fetch(ticket, version, response, out);
            }
        };
        let partition = self.read_for(now, &asked);
        if is_worth_telling(&partition, &asked) || asked.max_wait == Millis::ZERO {
            let response = self.fetch_response(version, partition);
            return self.answer_fetch(ticket, version, response, out);
        }
        self.followers.parked.push(ParkedFetch {
            ticket,
            version,
            asked,
            until: now.mono.plus(asked.max_wait),
        });
    }

    /// Answers the fetches that there is something to tell to now, and those whose wait is over.
    pub(in crate::control) fn wake_fetches(&mut self, now: Now, out: &mut Effects<D>) {
        let state = (self.log.end(), self.high_watermark());
        let moved = std::mem::replace(&mut self.followers.compared, state) != state;
        let due = self.followers.next_deadline();
        if !moved && !self.resigned && due.is_none_or(|at| at > now.mono) {
            return;
        }
        for fetch in std::mem::take(&mut self.followers.parked) {
            let partition = self.read_for(now, &fetch.asked);
            if is_worth_telling(&partition, &fetch.asked) || fetch.until <= now.mono {
                let response = self.fetch_response(fetch.version, partition);
                self.answer_fetch(fetch.ticket, fetch.version, response, out);
            } else {
                self.followers.parked.push(fetch);
            }
        }
    }

    /// Whether a fetch is for this cluster and log, and makes sense: in the order in which Kafka's
    /// leader looks.
    fn check(&self, view: &FetchView) -> Result<Asked, ErrorCode> {
        if view.cluster_id().is_some_and(|id| *id != *self.cluster_id) {
            return Err(ErrorCode::INCONSISTENT_CLUSTER_ID);
        }
        let invalid = ErrorCode::INVALID_REQUEST;
        let mut topics = view.topics();
        let (Some(topic), None) = (topics.next(), topics.next()) else {
            return Err(invalid);
        };
        let mut partitions = topic.partitions;
        let (Some(partition), None) = (partitions.next(), partitions.next()) else {
            return Err(invalid);
        };
        // Versions that name topics by name are too old.
        let is_ours = topic.topic == TopicKey::Id(TopicId::CLUSTER_METADATA)
            && partition.partition.raw() == 0;
        let is_sane = view.max_wait_ms() >= 0
            && partition.fetch_offset >= Offset::ZERO
            && partition.last_fetched_epoch >= LeaderEpoch::ZERO
            && partition.current_leader_epoch >= LeaderEpoch::ZERO
            && partition.last_fetched_epoch <= partition.current_leader_epoch;
        if !is_ours || !is_sane {
            return Err(invalid);
        }
        let asked = u64::try_from(view.max_bytes()).unwrap_or(0);
        Ok(Asked {
            key: ReplicaKey {
                id: view.replica_id(),
                directory_id: partition.replica_directory_id,
            },
            epoch: partition.current_leader_epoch,
            offset: partition.fetch_offset,
            last_epoch: partition.last_fetched_epoch,
            bytes_max: asked.min(BYTES_MAX),
            max_wait: view.max_wait(),
            high_watermark: partition.high_watermark,
        })
    }

    /// Whether this node leads in the epoch that somebody believes it to.
    pub(super) fn check_epoch(&self, epoch: LeaderEpoch) -> Result<(), ErrorCode> {
        let own = self.state.epoch();
        if epoch < own {
            Err(ErrorCode::FENCED_LEADER_EPOCH)
        } else if epoch > own {
            Err(ErrorCode::UNKNOWN_LEADER_EPOCH)
        } else if self.failed || self.resigned {
            Err(ErrorCode::BROKER_NOT_AVAILABLE)
        } else {
            Ok(())
        }
    }

    /// The answer for the one partition: records up to the log's end, committed or not, for whoever
    /// has the same log so far.
    fn read_for(&mut self, now: Now, asked: &Asked) -> PartitionData {
        let mut partition = PartitionData {
            high_watermark: -1,
            log_start_offset: self.log.log().log_start_offset().raw(),
            current_leader: LeaderIdAndEpoch {
                leader_id: self.config.node_id,
                leader_epoch: self.state.epoch().raw(),
            },
            aborted_transactions: Some(Vec::new()),
            records: Some(Bytes::new()),
            ..PartitionData::default()
        };
        if let Err(error_code) = self.check_epoch(asked.epoch) {
            partition.error_code = error_code;
            return partition;
        }
        partition.high_watermark = self.high_watermark().map_or(-1, Offset::raw);
        match self.log.state().check_fetch(asked.offset, asked.last_epoch) {
            FetchValidity::Valid => {}
            FetchValidity::Diverging(end) => {
                partition.diverging_epoch = EpochEndOffset {
                    epoch: end.epoch.raw(),
                    end_offset: end.end_offset.raw(),
                };
                return partition;
            }
            FetchValidity::Snapshot(id) => {
                partition.snapshot_id = SnapshotId {
                    end_offset: id.offset.raw(),
                    epoch: id.epoch.raw(),
                };
                return partition;
            }
        }
        let end = self.log.end();
        if asked.key.id.is_some() {
            let observers = &mut self.followers.observers;
            observers.handle_fetch(now, asked.key, asked.offset, end);
        }
        match self.log.read(asked.offset, end, asked.bytes_max) {
            Ok(bytes) => partition.records = Some(bytes.into()),
            Err(why) => {
                let offset = asked.offset;
                self.warnings.push(format!(
                    "the metadata log cannot be read at {offset}: {why}"
                ));
                partition.error_code = ErrorCode::KAFKA_STORAGE_ERROR;
            }
        }
        partition
    }

    fn fetch_response(&self, version: i16, partition: PartitionData) -> FetchResponse {
        let endpoints = self.endpoint().filter(|_| version >= ENDPOINTS_SINCE);
        let node_endpoints = endpoints.map(|(node_id, host, port)| NodeEndpoint {
            node_id,
            host,
            port: i32::from(port),
            rack: None,
        });
        FetchResponse {
            responses: vec![FetchableTopicResponse {
                topic_id: TopicId::CLUSTER_METADATA.uuid(),
                partitions: vec![partition],
                ..FetchableTopicResponse::default()
            }],
            node_endpoints: node_endpoints.into_iter().collect(),
            ..FetchResponse::default()
        }
    }

    /// Where this leader is reached.
    pub(super) fn endpoint(&self) -> Option<(NodeId, String, u16)> {
        let endpoints = crate::format::controller_endpoints(&self.config);
        let first = endpoints.into_iter().next();
        first.map(|it| (self.config.node_id, it.host, it.port))
    }

    fn answer_fetch(
        &mut self,
        ticket: Ticket,
        version: i16,
        response: FetchResponse,
        out: &mut Effects<D>,
    ) {
        match super::answers::encoded(&Response::from(response), version) {
            Ok(body) => out.push(answer(ticket, body)),
            Err(text) => self.refuse_connection(ticket, text, out),
        }
    }
}

/// Whether an answer says anything that the asker did not know.
fn is_worth_telling(partition: &PartitionData, asked: &Asked) -> bool {
    let has_records = partition.records.as_ref().is_some_and(|it| !it.is_empty());
    partition.error_code.is_error()
        || has_records
        || partition.diverging_epoch.epoch >= 0
        || partition.snapshot_id.epoch >= 0
        || partition.high_watermark > asked.high_watermark.raw()
}
