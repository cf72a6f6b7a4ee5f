use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::{VotersRecord, voters_record};
use highwater_records::stored::metadata::{
    BeginTransactionRecord, ConfigRecord, EndTransactionRecord, FeatureLevelRecord,
};
use highwater_types::{DirectoryId, NodeId};

use crate::config::BrokerConfig;
use crate::image::{BrokerEndpoint, ELIGIBLE_LEADER_REPLICAS_VERSION, ResourceKind};

/// The first records of a new cluster, one metadata transaction: what `format` left (`formatted`),
/// and with eligible leader replicas the cluster-wide `min.insync.replicas`, which must not differ
/// from broker to broker then (KIP-966).
#[must_use]
pub fn bootstrap_records(
    formatted: Vec<MetadataRecord>,
    config: &BrokerConfig,
) -> Vec<MetadataRecord> {
    let elr = formatted.iter().any(|record| match record {
        MetadataRecord::FeatureLevel(FeatureLevelRecord {
            name,
            feature_level,
        }) => name == ELIGIBLE_LEADER_REPLICAS_VERSION && *feature_level > 0,
        _ => false,
    });
    let begin = BeginTransactionRecord {
        name: Some("Bootstrap records".to_owned()),
    };
    let mut records: Vec<MetadataRecord> = vec![begin.into()];
    records.extend(formatted);
    if elr {
        let record = ConfigRecord {
            resource_type: ResourceKind::Broker.to_wire(),
            resource_name: String::new(),
            name: "min.insync.replicas".to_owned(),
            value: config.text("min.insync.replicas").map(str::to_owned),
        };
        records.push(record.into());
    }
    records.push(EndTransactionRecord::default().into());
    records
}

/// The voters of a quorum of one that keeps its voters in the log.
#[must_use]
pub fn voters_record(
    id: NodeId,
    directory: DirectoryId,
    endpoints: &[BrokerEndpoint],
) -> VotersRecord {
    let endpoint = |it: &BrokerEndpoint| voters_record::Endpoint {
        name: it.name.clone(),
        host: it.host.clone(),
        port: it.port,
    };
    let voter = voters_record::Voter {
        voter_id: id,
        voter_directory_id: directory.uuid(),
        endpoints: endpoints.iter().map(endpoint).collect(),
        kraft_version_feature: voters_record::KRaftVersionFeature {
            min_supported_version: 0,
            max_supported_version: 1,
        },
    };
    VotersRecord {
        version: 0,
        voters: vec![voter],
    }
}
