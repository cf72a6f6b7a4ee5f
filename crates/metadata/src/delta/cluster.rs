use std::sync::Arc;

use highwater_records::stored::metadata::{
    BrokerRegistrationChangeRecord, FenceBrokerRecord, RegisterBrokerRecord,
    RegisterControllerRecord, UnfenceBrokerRecord, UnregisterBrokerRecord,
    UnregisterControllerRecord,
};
use highwater_types::{BrokerEpoch, DirectoryId, NodeId, Uuid};

use super::{MetadataDelta, ReplayError};
use crate::image::{BrokerEndpoint, BrokerImage, ControllerImage, FeatureRange};

impl MetadataDelta {
    pub(super) fn register_broker(
        &mut self,
        record: &RegisterBrokerRecord,
    ) -> Result<(), ReplayError> {
        let id = record.broker_id;
        if !id.is_some() {
            return Err(ReplayError::Field {
                record: "REGISTER_BROKER_RECORD",
                field: "brokerId",
            });
        }
        let broker = BrokerImage {
            id,
            epoch: BrokerEpoch::new(record.broker_epoch),
            incarnation: record.incarnation_id,
            endpoints: record
                .end_points
                .iter()
                .map(|it| BrokerEndpoint {
                    name: it.name.clone(),
                    host: it.host.clone(),
                    port: it.port,
                    security_protocol: it.security_protocol,
                })
                .collect(),
            features: record
                .features
                .iter()
                .map(|it| FeatureRange {
                    name: it.name.clone(),
                    min: it.min_supported_version,
                    max: it.max_supported_version,
                })
                .collect(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            is_migrating: record.is_migrating_zk_broker,
            directories: directories(&record.log_dirs),
            cordoned: record.cordoned_log_dirs.as_deref().map(directories),
        };
        Arc::make_mut(&mut self.image.brokers).insert(id, Arc::new(broker));
        self.changes.cluster = true;
        Ok(())
    }

    pub(super) fn unregister_broker(
        &mut self,
        record: &UnregisterBrokerRecord,
    ) -> Result<(), ReplayError> {
        let (id, epoch) = (record.broker_id, record.broker_epoch);
        self.broker_mut("UNREGISTER_BROKER_RECORD", id, epoch)?;
        Arc::make_mut(&mut self.image.brokers).remove(&id);
        Ok(())
    }

    pub(super) fn fence_broker(&mut self, record: &FenceBrokerRecord) -> Result<(), ReplayError> {
        self.broker_mut("FENCE_BROKER_RECORD", record.id, record.epoch)?
            .fenced = true;
        Ok(())
    }

    pub(super) fn unfence_broker(
        &mut self,
        record: &UnfenceBrokerRecord,
    ) -> Result<(), ReplayError> {
        self.broker_mut("UNFENCE_BROKER_RECORD", record.id, record.epoch)?
            .fenced = false;
        Ok(())
    }

    pub(super) fn change_broker(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
    ) -> Result<(), ReplayError> {
        const TYPE: &str = "BROKER_REGISTRATION_CHANGE_RECORD";
        let (fenced, in_controlled_shutdown) = (record.fenced, record.in_controlled_shutdown);
        if !(-1..=1).contains(&fenced) {
            return Err(ReplayError::Field {
                record: TYPE,
                field: "fenced",
            });
        }
        if !(0..=1).contains(&in_controlled_shutdown) {
            return Err(ReplayError::Field {
                record: TYPE,
                field: "inControlledShutdown",
            });
        }
        let broker = self.broker_mut(TYPE, record.broker_id, record.broker_epoch)?;
        match fenced {
            1 => broker.fenced = true,
            -1 => broker.fenced = false,
            _ => {}
        }
        broker.in_controlled_shutdown |= in_controlled_shutdown == 1;
        if !record.log_dirs.is_empty() {
            broker.directories = directories(&record.log_dirs);
        }
        if let Some(cordoned) = &record.cordoned_log_dirs {
            broker.cordoned = Some(directories(cordoned));
        }
        Ok(())
    }

    pub(super) fn register_controller(&mut self, record: &RegisterControllerRecord) {
        let controller = ControllerImage {
            id: record.controller_id,
            incarnation: record.incarnation_id,
            zk_migration_ready: record.zk_migration_ready,
            endpoints: record
                .end_points
                .iter()
                .map(|it| BrokerEndpoint {
                    name: it.name.clone(),
                    host: it.host.clone(),
                    port: it.port,
                    security_protocol: it.security_protocol,
                })
                .collect(),
            features: record
                .features
                .iter()
                .map(|it| FeatureRange {
                    name: it.name.clone(),
                    min: it.min_supported_version,
                    max: it.max_supported_version,
                })
                .collect(),
        };
        let controllers = Arc::make_mut(&mut self.image.controllers);
        controllers.insert(controller.id, Arc::new(controller));
        self.changes.cluster = true;
    }

    pub(super) fn unregister_controller(&mut self, record: &UnregisterControllerRecord) {
        let id = record.controller_id;
        Arc::make_mut(&mut self.image.controllers).remove(&id);
        self.changes.cluster = true;
    }

    fn broker_mut(
        &mut self,
        record: &'static str,
        id: NodeId,
        epoch: i64,
    ) -> Result<&mut BrokerImage, ReplayError> {
        let known = self
            .image
            .broker(id)
            .is_some_and(|it| it.epoch.raw() == epoch);
        if !known {
            return Err(ReplayError::NoBroker {
                record,
                broker: id,
                epoch,
            });
        }
        self.changes.cluster = true;
        let broker = Arc::make_mut(&mut self.image.brokers).get_mut(&id);
        Ok(Arc::make_mut(broker.expect("the broker was just found")))
    }
}

fn directories(uuids: &[Uuid]) -> Vec<DirectoryId> {
    uuids.iter().copied().map(DirectoryId::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered() -> MetadataDelta {
        let mut delta = MetadataDelta::default();
        let record = RegisterBrokerRecord {
            broker_id: NodeId::new(1),
            broker_epoch: 7,
            log_dirs: vec![Uuid::from_u128(1000)],
            ..RegisterBrokerRecord::default()
        };
        delta.replay(&record.into()).expect("fits");
        delta
    }

    #[test]
    fn a_registration_changes_field_by_field() {
        let mut delta = registered();
        assert!(
            delta
                .image()
                .broker(NodeId::new(1))
                .is_some_and(|it| it.fenced)
        );
        let change = BrokerRegistrationChangeRecord {
            broker_id: NodeId::new(1),
            broker_epoch: 7,
            fenced: -1,
            ..BrokerRegistrationChangeRecord::default()
        };
        delta.replay(&change.clone().into()).expect("fits");
        assert!(delta.image().is_active(NodeId::new(1)));
        let leaves = BrokerRegistrationChangeRecord {
            fenced: 0,
            in_controlled_shutdown: 1,
            ..change
        };
        delta.replay(&leaves.clone().into()).expect("fits");
        assert!(!delta.image().is_active(NodeId::new(1)));
        let cordons = BrokerRegistrationChangeRecord {
            in_controlled_shutdown: 0,
            cordoned_log_dirs: Some(Vec::new()),
            ..leaves
        };
        delta.replay(&cordons.into()).expect("fits");
        let broker = delta.image().broker(NodeId::new(1)).expect("registered");
        assert!(broker.in_controlled_shutdown && !broker.fenced);
        assert_eq!(broker.cordoned, Some(Vec::new()));
        assert_eq!(
            broker.directories,
            [DirectoryId::new(Uuid::from_u128(1000))]
        );
    }

    #[test]
    fn i_20_a_record_of_an_older_registration_is_refused() {
        let mut delta = registered();
        for (id, epoch) in [(1, 6), (2, 7)] {
            let id = NodeId::new(id);
            let error = delta.replay(&FenceBrokerRecord { id, epoch }.into());
            assert!(
                matches!(error, Err(ReplayError::NoBroker { .. })),
                "{id} {epoch}"
            );
            let record = UnregisterBrokerRecord {
                broker_id: id,
                broker_epoch: epoch,
            };
            assert!(delta.replay(&record.into()).is_err());
        }
    }
}
