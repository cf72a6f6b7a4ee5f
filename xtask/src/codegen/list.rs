//! Which messages are generated, and where to.

/// Where schemas live, relative to the root.
pub(super) const SCHEMAS: &str = "crates/protocol/schemas";

/// One folder of generated messages.
pub(super) struct Group {
    /// The folder, relative to the root.
    pub(super) folder: &'static str,
    /// What its `mod.rs` says about it.
    pub(super) about: &'static str,
    /// Schema files, relative to [`SCHEMAS`]; a name that ends in `/` means all files in it.
    pub(super) schemas: &'static [&'static str],
    /// Path of the codec runtime, as the generated code sees it.
    pub(super) wire: &'static str,
    /// Whether the messages are also shown as JSON.
    pub(super) json: bool,
}

pub(super) const GROUPS: [Group; 4] = [
    Group {
        folder: "crates/protocol/src/messages",
        about: "Requests, responses and headers, one file per message.",
        schemas: &[
            "api/00-Produce.txt",
            "api/01-Fetch.txt",
            "api/02-ListOffsets.txt",
            "api/03-Metadata.txt",
            "api/08-OffsetCommit.txt",
            "api/09-OffsetFetch.txt",
            "api/10-FindCoordinator.txt",
            "api/11-JoinGroup.txt",
            "api/12-Heartbeat.txt",
            "api/13-LeaveGroup.txt",
            "api/14-SyncGroup.txt",
            "api/15-DescribeGroups.txt",
            "api/16-ListGroups.txt",
            "api/18-ApiVersions.txt",
            "api/19-CreateTopics.txt",
            "api/20-DeleteTopics.txt",
            "api/22-InitProducerId.txt",
            "api/23-OffsetForLeaderEpoch.txt",
            "api/32-DescribeConfigs.txt",
            "api/42-DeleteGroups.txt",
            "api/47-OffsetDelete.txt",
            "api/55-DescribeQuorum.txt",
            "api/56-AlterPartition.txt",
            "api/58-Envelope.txt",
            "api/59-FetchSnapshot.txt",
            "api/60-DescribeCluster.txt",
            "api/62-BrokerRegistration.txt",
            "api/63-BrokerHeartbeat.txt",
            "api/67-AllocateProducerIds.txt",
            "api/70-ControllerRegistration.txt",
            "api/73-AssignReplicasToDirs.txt",
            "api/75-DescribeTopicPartitions.txt",
            "data/DefaultPrincipalData.txt",
            "data/RequestHeader.txt",
            "data/ResponseHeader.txt",
        ],
        wire: "crate::wire",
        json: false,
    },
    Group {
        folder: "crates/records/src/stored/metadata",
        about: "Records of `__cluster_metadata`, one file per record.",
        schemas: &["metadata/"],
        wire: "crate::wire",
        json: true,
    },
    Group {
        folder: "crates/records/src/stored/coordinator",
        about: "Keys and values of `__consumer_offsets`, `__transaction_state` and\n\
                //! `__share_group_state`, one file each.",
        schemas: &["coordinator/"],
        wire: "crate::wire",
        json: true,
    },
    Group {
        folder: "crates/records/src/stored/data",
        about: "Control records, and what members of a classic consumer group tell each other.",
        schemas: &[
            "data/ConsumerProtocolAssignment.txt",
            "data/ConsumerProtocolSubscription.txt",
            "data/EndTxnMarker.txt",
            "data/KRaftVersionRecord.txt",
            "data/LeaderChangeMessage.txt",
            "data/SnapshotFooterRecord.txt",
            "data/SnapshotHeaderRecord.txt",
            "data/VotersRecord.txt",
        ],
        wire: "crate::wire",
        json: true,
    },
];
