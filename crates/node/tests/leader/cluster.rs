use std::sync::Arc;

use bytes::Bytes;
use highwater_metadata::image::BrokerImage;
use highwater_node::{PeerError, Token, owner_shard};
use highwater_protocol::messages::alter_partition_response::{
    PartitionData as IsrRow, TopicData as IsrTopic,
};
use highwater_protocol::messages::fetch_request::{
    FetchPartition, FetchTopic, ForgottenTopic, ReplicaState,
};
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_protocol::messages::{
    AlterPartitionRequest, AlterPartitionResponse, FetchRequest, FetchResponse,
};
use highwater_protocol::wire::Message as _;
use highwater_protocol::{ApiKey, OutRequest, Response};
use highwater_replication::Leader;
use highwater_types::{BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, TopicId};

use crate::support::{NODE, World, batch};

/// The registration of every broker.
pub(crate) const REGISTERED: i64 = 5;
pub(crate) const TOPIC: &str = "t";
/// `replica.lag.time.max.ms`.
pub(crate) const LAG_MAX: u64 = 2_000;

/// Node 1 leads the partitions of topic `t` in epoch 0; the others follow.
pub(crate) struct Cluster {
    pub(crate) world: World,
    pub(crate) topic: TopicId,
}

/// A follower: its session, and what it wants.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) id: i32,
    pub(crate) epoch: i64,
    pub(crate) version: i16,
    pub(crate) conn: u64,
    pub(crate) session: (i32, i32),
    pub(crate) max_wait_ms: i32,
    pub(crate) max_bytes: i32,
    topic: TopicId,
}

/// What a follower wants of one partition.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) last_epoch: i32,
    /// The tag of version 18.
    pub(crate) high_watermark: Option<i64>,
}

/// At an offset of partition 0, all of it of epoch 0.
pub(crate) fn at(offset: i64) -> Want {
    Want {
        partition: 0,
        offset,
        leader_epoch: 0,
        last_epoch: if offset == 0 { -1 } else { 0 },
        high_watermark: None,
    }
}

impl Want {
    pub(crate) fn of(self, partition: i32) -> Self {
        Self { partition, ..self }
    }

    pub(crate) fn in_epoch(self, leader_epoch: i32) -> Self {
        Self {
            leader_epoch,
            ..self
        }
    }

    pub(crate) fn knows(self, high_watermark: i64) -> Self {
        let high_watermark = Some(high_watermark);
        Self {
            high_watermark,
            ..self
        }
    }
}

impl Cluster {
    /// Brokers are assigned, with the ISR that is named.
    pub(crate) fn new(shards: u16, partitions: i32, replicas: &[i32], isr: &[i32]) -> Self {
        Self::with(shards, partitions, replicas, isr, &[])
    }

    pub(crate) fn with(
        shards: u16,
        partitions: i32,
        replicas: &[i32],
        isr: &[i32],
        configs: &[(&str, &str)],
    ) -> Self {
        Self::of(shards, partitions, (replicas, isr), configs, "")
    }

    /// One partition of three replicas, with further properties of the broker.
    pub(crate) fn with_properties(properties: &str) -> Self {
        Self::of(1, 1, (&[1, 2, 3], &[1, 2, 3]), &[], properties)
    }

    fn of(
        shards: u16,
        partitions: i32,
        (replicas, isr): (&[i32], &[i32]),
        configs: &[(&str, &str)],
        properties: &str,
    ) -> Self {
        let properties = format!("replica.lag.time.max.ms={LAG_MAX}\n{properties}\n");
        let mut world = World::with(shards, 1, &properties);
        for id in replicas {
            world.add_broker(NodeId::new(*id));
            change_broker(&mut world, *id, |_| {});
        }
        let topic = world.topic(TOPIC, partitions, configs);
        world.change_all(topic, |it| {
            it.assigned_replicas = nodes(replicas);
            it.in_sync_replicas = nodes(isr);
        });
        // Much is worked off in several steps.
        world.advance(0);
        world.events.clear();
        Self { world, topic }
    }

    pub(crate) fn follower(&mut self, id: i32, version: i16) -> Follower {
        Follower {
            id,
            epoch: REGISTERED,
            version,
            conn: self.world.connect(),
            session: (0, -1),
            max_wait_ms: 500,
            max_bytes: 10 << 20,
            topic: self.topic,
        }
    }

    /// Changes what the metadata say of a broker, and tells the shards.
    pub(crate) fn broker(&mut self, id: i32, change: impl FnOnce(&mut BrokerImage)) {
        change_broker(&mut self.world, id, change);
        let none = highwater_node::Changed::Topics(Arc::default());
        self.world.publish(none);
    }

    /// Another ISR, leader or epoch, and tells the shards.
    pub(crate) fn metadata(&mut self, leader: i32, leader_epoch: i32, isr: &[i32]) {
        self.world.change(self.topic, 0, |it| {
            it.leader = NodeId::new(leader);
            it.leader_epoch = LeaderEpoch::new(leader_epoch);
            it.in_sync_replicas = nodes(isr);
        });
    }

    /// Appends one record without waiting for anybody.
    pub(crate) fn append(&mut self, partition: i32) {
        let (error, _) = self.world.produce(1, (TOPIC, partition), batch(&["v"]));
        assert_eq!(error, 0);
    }

    pub(crate) fn high_watermark(&self) -> i64 {
        self.world.offsets(TOPIC, 0)[1]
    }

    pub(crate) fn leader(&self, partition: i32) -> &Leader {
        let id = self.world.id(TOPIC, partition);
        let shards = self.world.shards.len();
        let owner = owner_shard(id, u16::try_from(shards).expect("few"));
        let shard = &self.world.shards[usize::from(owner)];
        let online = shard.partitions().find(id).expect("owned").online();
        let role = online.expect("online").replica().role();
        role.as_leader().expect("leads")
    }

    /// What a follower is known to hold, if it was heard in this epoch.
    pub(crate) fn known(&self, follower: i32) -> Option<i64> {
        let follower = self.leader(0).followers.get(&NodeId::new(follower))?;
        follower.last_fetch.map(|_| follower.log_end_offset.raw())
    }

    /// Sends a fetch, and gives back the answer if it is there at once.
    pub(crate) fn fetch(&mut self, who: &mut Follower, wants: &[Want]) -> Option<FetchResponse> {
        self.send(who, wants, &[]);
        self.answer(who)
    }

    /// The only partition of a fetch that is answered at once.
    pub(crate) fn fetch_one(&mut self, who: &mut Follower, want: Want) -> PartitionData {
        let answer = self.fetch(who, &[want]).expect("an answer at once");
        assert_eq!(answer.error_code, ErrorCode::NONE);
        only(&answer)
    }

    pub(crate) fn send(&mut self, who: &mut Follower, wants: &[Want], forgotten: &[i32]) {
        let request = who.request(wants, forgotten);
        let body = request.to_bytes(who.version).expect("a legal request");
        let (conn, version) = (who.conn, who.version);
        self.world.send(conn, ApiKey::Fetch, version, &body);
    }

    /// The next answer, which moves the session on.
    pub(crate) fn answer(&mut self, who: &mut Follower) -> Option<FetchResponse> {
        let body = self.world.receive(who.conn, ApiKey::Fetch, who.version)?;
        let answer = FetchResponse::from_bytes(&body, who.version).expect("an answer of Fetch");
        if who.session.1 >= 0 && !answer.error_code.is_error() {
            who.session = (answer.session_id, who.session.1 + 1);
        }
        Some(answer)
    }

    /// The AlterPartition that is out: where it came from, and the ISR that it asks for.
    pub(crate) fn asked(&mut self) -> Asked {
        let at = self
            .world
            .sent
            .iter()
            .position(|(_, _, it)| matches!(it, OutRequest::AlterPartition(_)));
        let at = at.unwrap_or_else(|| panic!("nothing is asked: {:?}", self.world.sent));
        let (shard, token, request) = self.world.sent.remove(at);
        match request {
            OutRequest::AlterPartition(request) => Asked {
                from: (shard, token),
                request,
            },
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn asks(&self) -> bool {
        let is_asked = |it: &OutRequest| matches!(it, OutRequest::AlterPartition(_));
        self.world.sent.iter().any(|(_, _, it)| is_asked(it))
    }

    pub(crate) fn tell(&mut self, asked: &Asked, answer: Result<ErrorCode, PeerError>) {
        let answer = answer.map(|error| asked.answer(error));
        self.world.answer_peer(asked.from, answer);
    }
}

/// A change of the ISR that the controller is asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) from: (u16, Token),
    pub(crate) request: AlterPartitionRequest,
}

impl Asked {
    /// The ISR of the first partition, with broker epochs.
    pub(crate) fn isr(&self) -> Vec<(i32, i64)> {
        let partition = &self.request.topics[0].partitions[0];
        let members = partition.new_isr_with_epochs.iter();
        members
            .map(|it| (it.broker_id.raw(), it.broker_epoch))
            .collect()
    }

    /// What a controller says that grants everything, or refuses it with an error.
    fn answer(&self, error: ErrorCode) -> Response {
        let partition = &self.request.topics[0].partitions[0];
        let isr = partition.new_isr_with_epochs.iter();
        let row = IsrRow {
            leader_id: NODE,
            leader_epoch: partition.leader_epoch,
            isr: isr.map(|it| it.broker_id).collect(),
            partition_epoch: partition.partition_epoch + 1,
            error_code: error,
            ..IsrRow::default()
        };
        let topic = IsrTopic {
            topic_id: self.request.topics[0].topic_id,
            partitions: vec![row],
        };
        AlterPartitionResponse {
            topics: vec![topic],
            ..AlterPartitionResponse::default()
        }
        .into()
    }
}

impl Follower {
    /// The same with an incremental session that begins with the next fetch.
    pub(crate) fn in_session(self) -> Self {
        Self {
            session: (0, 0),
            ..self
        }
    }

    pub(crate) fn without_waiting(self) -> Self {
        Self {
            max_wait_ms: 0,
            ..self
        }
    }

    fn request(&self, wants: &[Want], forgotten: &[i32]) -> FetchRequest {
        let (by_name, topic_id) = (self.version < 13, self.topic.uuid());
        let mut request = FetchRequest {
            max_wait_ms: self.max_wait_ms,
            min_bytes: 1,
            max_bytes: self.max_bytes,
            session_id: self.session.0,
            session_epoch: self.session.1,
            ..FetchRequest::default()
        };
        if self.version < 15 {
            request.replica_id = NodeId::new(self.id);
        } else {
            request.replica_state = ReplicaState {
                replica_id: NodeId::new(self.id),
                replica_epoch: self.epoch,
            };
        }
        let partition = |want: &Want| FetchPartition {
            partition: want.partition,
            current_leader_epoch: want.leader_epoch,
            fetch_offset: want.offset,
            last_fetched_epoch: if self.version < 12 {
                -1
            } else {
                want.last_epoch
            },
            log_start_offset: 0,
            partition_max_bytes: 1 << 20,
            high_watermark: want.high_watermark.unwrap_or(i64::MAX),
            ..FetchPartition::default()
        };
        let name = |by_name: bool| if by_name { TOPIC } else { "" }.to_owned();
        if !wants.is_empty() {
            request.topics = vec![FetchTopic {
                topic: name(by_name),
                topic_id: if by_name {
                    Default::default()
                } else {
                    topic_id
                },
                partitions: wants.iter().map(partition).collect(),
            }];
        }
        if !forgotten.is_empty() {
            request.forgotten_topics_data = vec![ForgottenTopic {
                topic: name(by_name),
                topic_id: if by_name {
                    Default::default()
                } else {
                    topic_id
                },
                partitions: forgotten.to_vec(),
            }];
        }
        request
    }
}

fn change_broker(world: &mut World, id: i32, change: impl FnOnce(&mut BrokerImage)) {
    let brokers = Arc::make_mut(&mut world.image.brokers);
    let broker = brokers.get_mut(&NodeId::new(id)).expect("a broker");
    let broker = Arc::make_mut(broker);
    broker.epoch = BrokerEpoch::new(REGISTERED);
    change(broker);
}

pub(crate) fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId::new).collect()
}

/// Every partition of an answer, in order.
pub(crate) fn rows(answer: &FetchResponse) -> Vec<PartitionData> {
    let topics = answer.responses.iter();
    topics.flat_map(|it| it.partitions.clone()).collect()
}

/// The numbers of the partitions of an answer, in order.
pub(crate) fn told(answer: &FetchResponse) -> Vec<i32> {
    rows(answer).iter().map(|it| it.partition_index).collect()
}

pub(crate) fn only(answer: &FetchResponse) -> PartitionData {
    let rows = rows(answer);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

pub(crate) fn has_records(row: &PartitionData) -> bool {
    row.records
        .as_ref()
        .is_some_and(|it: &Bytes| !it.is_empty())
}
