mod cluster;
mod security;
mod topics;

pub use topics::EPOCH_MAX;
pub(crate) use topics::LEADER_UNCHANGED;

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::{ConfigRecord, FeatureLevelRecord};
use highwater_types::{NodeId, OffsetAndEpoch, TopicId};

use crate::changes::ImageChanges;
use crate::image::{ConfigResource, KRAFT_VERSION, MetadataImage, ResourceKind};

/// An image that records are being applied to, and what they changed since it was last taken.
///
/// Records between the begin and the end of a metadata transaction become visible together: an
/// image can only be taken at a boundary. An abort takes them back.
#[derive(Clone, Debug, Default)]
pub struct MetadataDelta {
    image: MetadataImage,
    changes: ImageChanges,
    /// What was before the transaction that is open.
    before_transaction: Option<Box<(MetadataImage, ImageChanges)>>,
}

/// A committed record that does not fit the records before it. The log is damaged, or written by a
/// release that knows more: the node must not go on as if it had understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Names a topic that is not there.
    #[error("{record} names topic {topic_id}, which does not exist")]
    NoTopic {
        /// The record's type.
        record: &'static str,
        /// The topic.
        topic_id: TopicId,
    },
    /// Names a partition that is not there.
    #[error("{record} names partition {partition} of topic {topic_id}, which does not exist")]
    NoPartition {
        /// The record's type.
        record: &'static str,
        /// The topic.
        topic_id: TopicId,
        /// The partition's number.
        partition: i32,
    },
    /// Names a broker that is not registered, or another registration of it.
    #[error("{record} names broker {broker} at epoch {epoch}, which is not registered")]
    NoBroker {
        /// The record's type.
        record: &'static str,
        /// The broker.
        broker: NodeId,
        /// Its epoch.
        epoch: i64,
    },
    /// Makes a topic whose name is taken, or that is no legal name.
    #[error("a topic record makes {name:?}, which is taken or no topic name")]
    TopicName {
        /// The name.
        name: String,
    },
    /// A transaction begins inside another, or ends without one.
    #[error("{record} does not fit: whether a metadata transaction is open: {open}")]
    Transaction {
        /// The record's type.
        record: &'static str,
        /// Whether one was open.
        open: bool,
    },
    /// Would leave a partition at an epoch that leaves no room for changes to come.
    #[error(
        "{record} puts partition {partition} of topic {topic_id} at an epoch at which its epochs \
         are as good as used up"
    )]
    EpochsUsedUp {
        /// The record's type.
        record: &'static str,
        /// The topic.
        topic_id: TopicId,
        /// The partition's number.
        partition: i32,
    },
    /// A field has a value that it cannot have.
    #[error("{record}: the field {field} has a value that it cannot have")]
    Field {
        /// The record's type.
        record: &'static str,
        /// The field.
        field: &'static str,
    },
}

impl MetadataDelta {
    /// Starts from `image`.
    #[must_use]
    pub fn new(image: MetadataImage) -> Self {
        Self {
            image,
            ..Self::default()
        }
    }

    /// The state with every record applied, those of an open transaction too.
    #[must_use]
    pub const fn image(&self) -> &MetadataImage {
        &self.image
    }

    /// The state without the records of a transaction that is open: what an abort would leave.
    #[must_use]
    pub fn settled_image(&self) -> &MetadataImage {
        self.before_transaction
            .as_ref()
            .map_or(&self.image, |before| &before.0)
    }

    /// Whether a metadata transaction is open.
    #[must_use]
    pub const fn in_transaction(&self) -> bool {
        self.before_transaction.is_some()
    }

    /// Everything up to `end` has been applied: called at the end of each batch, control batches
    /// too.
    pub fn set_end(&mut self, end: OffsetAndEpoch) {
        assert!(
            end.offset >= self.image.end.offset,
            "the end of what was applied falls from {:?} to {end:?}",
            self.image.end
        );
        self.image.end = end;
    }

    /// The image, and what changed since the last call; `None` while a transaction is open.
    pub fn take(&mut self) -> Option<(MetadataImage, ImageChanges)> {
        if self.in_transaction() {
            return None;
        }
        self.image.assert_invariants();
        Some((self.image.clone(), std::mem::take(&mut self.changes)))
    }

    /// Applies one record: the only way in which metadata changes.
    ///
    /// # Errors
    /// When the record does not fit; the state is then as before.
    pub fn replay(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            MetadataRecord::RegisterBroker(it) => self.register_broker(it),
            MetadataRecord::UnregisterBroker(it) => self.unregister_broker(it),
            MetadataRecord::FenceBroker(it) => self.fence_broker(it),
            MetadataRecord::UnfenceBroker(it) => self.unfence_broker(it),
            MetadataRecord::BrokerRegistrationChange(it) => self.change_broker(it),
            MetadataRecord::RegisterController(it) => {
                self.register_controller(it);
                Ok(())
            }
            MetadataRecord::UnregisterController(it) => {
                self.unregister_controller(it);
                Ok(())
            }
            MetadataRecord::Topic(it) => self.make_topic(it),
            MetadataRecord::RemoveTopic(it) => self.remove_topic(it),
            MetadataRecord::Partition(it) => self.make_partition(it),
            MetadataRecord::PartitionChange(it) => self.change_partition(it),
            MetadataRecord::ClearElr(it) => self.clear_elr(it),
            MetadataRecord::Config(it) => {
                self.set_config(it);
                Ok(())
            }
            MetadataRecord::FeatureLevel(it) => {
                self.set_feature(it);
                Ok(())
            }
            MetadataRecord::ProducerIds(it) => {
                self.image.next_producer_id = it.next_producer_id;
                self.changes.other = true;
                Ok(())
            }
            MetadataRecord::BeginTransaction(_)
            | MetadataRecord::EndTransaction(_)
            | MetadataRecord::AbortTransaction(_) => self.transaction(record),
            // Left behind by ZooKeeper migrations; and the heartbeat of an idle log.
            MetadataRecord::NoOp(_) | MetadataRecord::ZkMigrationState(_) => Ok(()),
            MetadataRecord::DelegationToken(_)
            | MetadataRecord::RemoveDelegationToken(_)
            | MetadataRecord::UserScramCredential(_)
            | MetadataRecord::RemoveUserScramCredential(_)
            | MetadataRecord::ClientQuota(_)
            | MetadataRecord::AccessControlEntry(_)
            | MetadataRecord::RemoveAccessControlEntry(_) => {
                self.security(record);
                Ok(())
            }
        }
    }

    fn transaction(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        let open = self.in_transaction();
        let begins = matches!(record, MetadataRecord::BeginTransaction(_));
        if open == begins {
            return Err(ReplayError::Transaction {
                record: record.dump_type(),
                open,
            });
        }
        match record {
            MetadataRecord::BeginTransaction(_) => {
                let before = (self.image.clone(), self.changes.clone());
                self.before_transaction = Some(Box::new(before));
            }
            MetadataRecord::AbortTransaction(_) => {
                if let Some(before) = self.before_transaction.take() {
                    let end = self.image.end;
                    (self.image, self.changes) = *before;
                    self.image.end = end;
                }
            }
            _ => self.before_transaction = None,
        }
        Ok(())
    }

    fn set_config(&mut self, record: &ConfigRecord) {
        let kind = ResourceKind::from_wire(record.resource_type);
        let resource = ConfigResource {
            kind,
            name: record.resource_name.clone(),
        };
        let mut configs: BTreeMap<String, String> = self
            .image
            .configs
            .get(&resource)
            .map(|it| (**it).clone())
            .unwrap_or_default();
        match &record.value {
            Some(value) => configs.insert(record.name.clone(), value.clone()),
            None => configs.remove(&record.name),
        };
        if configs.is_empty() {
            self.image.configs.remove(&resource);
        } else {
            self.image.configs.insert(resource, Arc::new(configs));
        }
        match kind {
            ResourceKind::Topic => {
                let topic = self.image.topic_ids.get(record.resource_name.as_str());
                self.changes.topics.extend(topic);
            }
            ResourceKind::Broker => self.changes.broker_configs = true,
            _ => self.changes.other = true,
        }
    }

    fn set_feature(&mut self, record: &FeatureLevelRecord) {
        // The level of kraft.version lives in a control record; a record of it means nothing.
        if record.name == KRAFT_VERSION {
            return;
        }
        let features = Arc::make_mut(&mut self.image.features);
        if record.feature_level == 0 {
            features.levels.remove(&record.name);
        } else {
            features
                .levels
                .insert(record.name.clone(), record.feature_level);
        }
        self.changes.features = true;
    }
}

#[cfg(test)]
mod tests {
    use highwater_records::stored::metadata::{
        AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord, TopicRecord,
    };
    use highwater_types::{LeaderEpoch, Offset, Uuid};

    use super::*;

    fn topic(name: &str, id: u128) -> MetadataRecord {
        TopicRecord {
            name: name.to_owned(),
            topic_id: Uuid::from_u128(id),
        }
        .into()
    }

    fn end(offset: i64) -> OffsetAndEpoch {
        OffsetAndEpoch {
            epoch: LeaderEpoch::new(1),
            offset: Offset::new(offset),
        }
    }

    #[test]
    fn a_transaction_becomes_visible_at_its_end_or_not_at_all() {
        let mut delta = MetadataDelta::default();
        delta
            .replay(&BeginTransactionRecord::default().into())
            .expect("begins");
        delta.replay(&topic("a", 1000)).expect("fits");
        delta.set_end(end(2));
        assert_eq!(delta.take(), None);
        assert!(delta.image().topic_by_name("a").is_some());
        assert!(delta.settled_image().topic_by_name("a").is_none());
        delta
            .replay(&AbortTransactionRecord::default().into())
            .expect("aborts");
        delta.set_end(end(3));
        let (image, changes) = delta.take().expect("a boundary");
        assert!(image.topic_by_name("a").is_none() && changes.is_empty());
        assert_eq!(image.end, end(3));

        delta
            .replay(&BeginTransactionRecord::default().into())
            .expect("begins");
        delta.replay(&topic("b", 1001)).expect("fits");
        delta
            .replay(&EndTransactionRecord::default().into())
            .expect("ends");
        let (image, changes) = delta.take().expect("a boundary");
        assert!(image.topic_by_name("b").is_some());
        assert_eq!(changes.topics.len(), 1);
        // The image taken before does not see what came later.
        delta.replay(&topic("c", 1002)).expect("fits");
        assert!(image.topic_by_name("c").is_none());
    }

    #[test]
    fn a_transaction_record_out_of_place_is_refused() {
        let mut delta = MetadataDelta::default();
        assert!(
            delta
                .replay(&EndTransactionRecord::default().into())
                .is_err()
        );
        assert!(
            delta
                .replay(&AbortTransactionRecord::default().into())
                .is_err()
        );
        delta
            .replay(&BeginTransactionRecord::default().into())
            .expect("begins");
        assert!(
            delta
                .replay(&BeginTransactionRecord::default().into())
                .is_err()
        );
    }

    #[test]
    fn configs_come_and_go() {
        let mut delta = MetadataDelta::default();
        let config = |value: Option<&str>| -> MetadataRecord {
            ConfigRecord {
                resource_type: 4,
                resource_name: String::new(),
                name: "min.insync.replicas".to_owned(),
                value: value.map(str::to_owned),
            }
            .into()
        };
        delta.replay(&config(Some("2"))).expect("fits");
        let (image, changes) = delta.take().expect("a boundary");
        assert!(changes.broker_configs);
        let configs = image.config(ResourceKind::Broker, "").expect("set");
        assert_eq!(
            configs.get("min.insync.replicas").map(String::as_str),
            Some("2")
        );
        delta.replay(&config(None)).expect("fits");
        assert!(delta.image().configs.is_empty());
    }

    #[test]
    fn features_at_zero_are_absent_and_kraft_version_is_ignored() {
        let mut delta = MetadataDelta::default();
        for (name, feature_level) in [
            ("metadata.version", 33),
            ("group.version", 1),
            ("group.version", 0),
            ("kraft.version", 1),
        ] {
            let record = FeatureLevelRecord {
                name: name.to_owned(),
                feature_level,
            };
            delta.replay(&record.into()).expect("fits");
        }
        assert_eq!(delta.image().metadata_version(), 33);
        assert_eq!(delta.image().features.levels.len(), 1);
    }
}
