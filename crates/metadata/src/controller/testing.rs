//! A cluster without a log, for tests of decisions: records are applied as soon as they are made.

use std::sync::Arc;

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::{
    FeatureLevelRecord, PartitionChangeRecord, UnregisterBrokerRecord,
};
use highwater_types::{
    BrokerEpoch, DirectoryId, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Offset, OffsetAndEpoch,
    PartitionIndex, Uuid,
};

use super::{
    AssignDirs, Controller, CreateTopic, CreateTopics, Heartbeat, HeartbeatAnswer, Refusal,
    Registration, TopicOutcome,
};
use crate::config::{BrokerConfig, parse_properties};
use crate::delta::MetadataDelta;
use crate::image::{FeatureRange, MetadataImage, PartitionImage, supported_features};

pub(crate) struct Cluster {
    pub(crate) controller: Controller,
    delta: MetadataDelta,
    now: Mono,
    random: u8,
}

pub(crate) fn ids(raw: &[i32]) -> Vec<NodeId> {
    raw.iter().copied().map(NodeId::new).collect()
}

pub(crate) fn directory(number: u128) -> DirectoryId {
    DirectoryId::new(Uuid::from_u128(1000 + number))
}

impl Cluster {
    /// Brokers 1 to `brokers`, unfenced, with one directory each; ELR on.
    pub(crate) fn new(brokers: i32) -> Self {
        Self::with_config(brokers, "")
    }

    pub(crate) fn with_config(brokers: i32, text: &str) -> Self {
        let properties = parse_properties(text).expect("well formed");
        let (config, _) = BrokerConfig::new(&properties).expect("values");
        let controller = Controller::new("cluster".into(), NodeId::new(1), Arc::new(config));
        let (delta, now) = (MetadataDelta::default(), Mono::from_micros(1));
        let mut cluster = Self {
            controller,
            delta,
            now,
            random: 0,
        };
        cluster.finalize("metadata.version", 33);
        cluster.finalize("eligible.leader.replicas.version", 1);
        for id in 1..=brokers {
            let epoch = cluster.register(&cluster.registration(id));
            cluster.unfence(id, epoch);
        }
        cluster
    }

    pub(crate) fn image(&self) -> &MetadataImage {
        self.delta.image()
    }

    pub(crate) fn apply(&mut self, records: &[MetadataRecord]) {
        for record in records {
            self.delta
                .replay(record)
                .expect("the controller's records fit");
            let offset = self.image().end.offset.next();
            self.delta.set_end(OffsetAndEpoch {
                epoch: LeaderEpoch::new(1),
                offset,
            });
        }
    }

    pub(crate) fn finalize(&mut self, name: &str, feature_level: i16) {
        self.apply(&[FeatureLevelRecord {
            name: name.to_owned(),
            feature_level,
        }
        .into()]);
    }

    pub(crate) fn advance(&mut self, span: Millis) {
        self.now = self.now.plus(span);
    }

    /// What broker `id` sends when it registers for the first time.
    pub(crate) fn registration(&self, id: i32) -> Registration {
        let number = u128::try_from(id).expect("a small id");
        let features = supported_features().iter().map(|it| FeatureRange {
            name: it.name.to_owned(),
            min: it.min,
            max: it.max,
        });
        Registration {
            broker_id: NodeId::new(id),
            cluster_id: "cluster".to_owned(),
            incarnation: Uuid::from_u128(500 + number),
            features: features.collect(),
            directories: vec![directory(number)],
            previous_epoch: BrokerEpoch::NONE,
            ..Registration::default()
        }
    }

    /// Somebody had the broker forgotten.
    pub(crate) fn unregister(&mut self, id: i32) {
        let epoch = self
            .image()
            .broker(NodeId::new(id))
            .expect("registered")
            .epoch;
        self.apply(&[UnregisterBrokerRecord {
            broker_id: NodeId::new(id),
            broker_epoch: epoch.raw(),
        }
        .into()]);
    }

    /// Only asks.
    pub(crate) fn try_register(&self, request: &Registration) -> Result<BrokerEpoch, Refusal> {
        let (image, next) = (self.image(), self.image().end.offset);
        let mut controller = self.controller.clone();
        let decision = controller.register_broker(image, request, 1, next, self.now);
        decision.map(|decision| decision.answer)
    }

    pub(crate) fn register(&mut self, request: &Registration) -> BrokerEpoch {
        let (image, now) = (self.delta.image(), self.now);
        let next = image.end.offset;
        let decision = self
            .controller
            .register_broker(image, request, 1, next, now);
        let decision = decision.expect("accepted");
        self.apply(&decision.records);
        let (id, epoch) = (request.broker_id, decision.answer);
        self.controller
            .sessions
            .touch(id, epoch, self.now, Offset::NONE);
        epoch
    }

    pub(crate) fn unfence(&mut self, id: i32, epoch: BrokerEpoch) {
        let request = Heartbeat {
            broker_id: NodeId::new(id),
            broker_epoch: epoch,
            current_metadata_offset: Offset::new(epoch.raw()),
            ..Heartbeat::default()
        };
        let answer = self.heartbeat(&request).expect("registered");
        assert!(!answer.is_fenced);
    }

    pub(crate) fn heartbeat(&mut self, request: &Heartbeat) -> Result<HeartbeatAnswer, ErrorCode> {
        let image = self.delta.image().clone();
        let next = image.end.offset;
        let decision = self.controller.heartbeat(&image, request, next, self.now)?;
        self.apply(&decision.records);
        Ok(decision.answer)
    }

    /// A heartbeat of a broker that has applied everything.
    pub(crate) fn beat(&mut self, id: i32, edit: impl FnOnce(&mut Heartbeat)) -> HeartbeatAnswer {
        let id = NodeId::new(id);
        let mut request = Heartbeat {
            broker_id: id,
            broker_epoch: self.image().broker(id).expect("registered").epoch,
            current_metadata_offset: Offset::new(self.image().end.offset.raw() - 1),
            ..Heartbeat::default()
        };
        edit(&mut request);
        self.heartbeat(&request).expect("registered")
    }

    pub(crate) fn assign_dirs(
        &mut self,
        request: &AssignDirs,
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        let decision = self.controller.assign_dirs(self.delta.image(), request)?;
        self.apply(&decision.records);
        Ok(decision.answer)
    }

    pub(crate) fn fence_one_expired(&mut self) -> Option<NodeId> {
        let timeout = self.controller.session_timeout;
        let id = self
            .controller
            .sessions
            .expired(self.image(), self.now, timeout)?;
        let records = self.controller.fence_expired(self.image(), id);
        self.apply(&records);
        Some(id)
    }

    pub(crate) fn create_topics(
        &mut self,
        topics: Vec<CreateTopic>,
        validate_only: bool,
    ) -> Vec<TopicOutcome> {
        let request = CreateTopics {
            topics,
            validate_only,
        };
        let mut random = self.random;
        let decision = self
            .controller
            .create_topics(self.image(), &request, &mut || {
                random = random.wrapping_add(1);
                [random; 16]
            });
        self.random = random;
        self.apply(&decision.records);
        decision.answer
    }

    /// A topic with these replicas.
    pub(crate) fn create(&mut self, name: &str, replicas: &[&[i32]]) {
        let assignments = replicas
            .iter()
            .zip(0..)
            .map(|(replicas, index)| (index, ids(replicas)));
        let topic = CreateTopic {
            name: name.to_owned(),
            partitions: -1,
            replication_factor: -1,
            assignments: assignments.collect(),
            configs: Vec::new(),
        };
        let outcomes = self.create_topics(vec![topic], false);
        assert!(outcomes.iter().all(|it| it.result.is_ok()), "{outcomes:?}");
    }

    pub(crate) fn partition(&self, name: &str, index: i32) -> PartitionImage {
        let topic = self.image().topic_by_name(name).expect("made");
        let partition = topic
            .partitions
            .get(&PartitionIndex::new(index))
            .expect("made");
        (**partition).clone()
    }

    pub(crate) fn set_isr(&mut self, name: &str, index: i32, isr: &[i32]) {
        let topic_id = self.image().topic_by_name(name).expect("made").id.uuid();
        let record = PartitionChangeRecord {
            partition_id: index,
            topic_id,
            isr: Some(ids(isr)),
            ..PartitionChangeRecord::default()
        };
        self.apply(&[record.into()]);
    }

    pub(crate) fn assign_directory(&mut self, name: &str, index: i32, to: &[DirectoryId]) {
        let topic_id = self.image().topic_by_name(name).expect("made").id.uuid();
        let record = PartitionChangeRecord {
            partition_id: index,
            topic_id,
            directories: Some(to.iter().map(|it| it.uuid()).collect()),
            ..PartitionChangeRecord::default()
        };
        self.apply(&[record.into()]);
    }
}
