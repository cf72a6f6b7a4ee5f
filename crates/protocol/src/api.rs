use std::fmt;

use crate::messages::{
    AllocateProducerIdsRequest, AlterPartitionRequest, ApiVersionsRequest,
    AssignReplicasToDirsRequest, BrokerHeartbeatRequest, BrokerRegistrationRequest,
    ControllerRegistrationRequest, CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, DescribeQuorumRequest,
    DescribeTopicPartitionsRequest, EnvelopeRequest, FetchRequest, FetchSnapshotRequest,
    FindCoordinatorRequest, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest,
    LeaveGroupRequest, ListGroupsRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest,
    SyncGroupRequest,
};
use crate::wire::Message;

/// Which APIs and versions a listener offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerKind {
    /// For clients and brokers.
    Broker,
    /// For controllers, and for brokers that talk to them.
    Controller,
}

/// The versions of one API that a listener offers, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiVersionRange {
    /// The API.
    pub api_key: ApiKey,
    /// The lowest version.
    pub min: i16,
    /// The highest version.
    pub max: i16,
}

macro_rules! api_keys {
    ($($name:ident $key:literal $request:ident;)*) => {
        /// An API that this build serves or calls.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each name is Kafka's own and says what it means")]
        pub enum ApiKey {
            $($name,)*
        }

        impl ApiKey {
            /// All of them, by rising key.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The key as it is on the wire.
            #[must_use]
            pub const fn raw(self) -> i16 {
                match self {
                    $(Self::$name => $key,)*
                }
            }

            /// The API with this key, if this build knows it.
            #[must_use]
            pub const fn from_raw(raw: i16) -> Option<Self> {
                match raw {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The lowest and the highest version that this build can encode and decode.
            #[must_use]
            pub const fn versions(self) -> (i16, i16) {
                match self {
                    $(Self::$name => <$request as Message>::VERSIONS,)*
                }
            }

            /// From this version on requests and responses are flexible (KIP-482).
            #[must_use]
            pub const fn flexible_since(self) -> i16 {
                match self {
                    $(Self::$name => <$request as Message>::FLEXIBLE_SINCE,)*
                }
            }
        }
    };
}

api_keys! {
    Produce 0 ProduceRequest;
    Fetch 1 FetchRequest;
    ListOffsets 2 ListOffsetsRequest;
    Metadata 3 MetadataRequest;
    OffsetCommit 8 OffsetCommitRequest;
    OffsetFetch 9 OffsetFetchRequest;
    FindCoordinator 10 FindCoordinatorRequest;
    JoinGroup 11 JoinGroupRequest;
    Heartbeat 12 HeartbeatRequest;
    LeaveGroup 13 LeaveGroupRequest;
    SyncGroup 14 SyncGroupRequest;
    DescribeGroups 15 DescribeGroupsRequest;
    ListGroups 16 ListGroupsRequest;
    ApiVersions 18 ApiVersionsRequest;
    CreateTopics 19 CreateTopicsRequest;
    DeleteTopics 20 DeleteTopicsRequest;
    InitProducerId 22 InitProducerIdRequest;
    OffsetForLeaderEpoch 23 OffsetForLeaderEpochRequest;
    DescribeConfigs 32 DescribeConfigsRequest;
    DeleteGroups 42 DeleteGroupsRequest;
    OffsetDelete 47 OffsetDeleteRequest;
    DescribeQuorum 55 DescribeQuorumRequest;
    AlterPartition 56 AlterPartitionRequest;
    Envelope 58 EnvelopeRequest;
    FetchSnapshot 59 FetchSnapshotRequest;
    DescribeCluster 60 DescribeClusterRequest;
    BrokerRegistration 62 BrokerRegistrationRequest;
    BrokerHeartbeat 63 BrokerHeartbeatRequest;
    AllocateProducerIds 67 AllocateProducerIdsRequest;
    ControllerRegistration 70 ControllerRegistrationRequest;
    AssignReplicasToDirs 73 AssignReplicasToDirsRequest;
    DescribeTopicPartitions 75 DescribeTopicPartitionsRequest;
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a listener offers, by rising key: exactly what is served, at Kafka 4.4's versions.
///
/// The one exception is Produce, announced from 0 on because librdkafka picks features by it
/// (KAFKA-18659); there is no decoder below 3, so such a request closes its connection.
#[must_use]
pub const fn supported_versions(listener: ListenerKind) -> &'static [ApiVersionRange] {
    match listener {
        ListenerKind::Broker => BROKER,
        ListenerKind::Controller => CONTROLLER,
    }
}

const BROKER: &[ApiVersionRange] = &[
    range(ApiKey::Produce, 0, 13),
    range(ApiKey::Fetch, 4, 18),
    range(ApiKey::ListOffsets, 1, 11),
    range(ApiKey::Metadata, 0, 13),
    range(ApiKey::OffsetCommit, 2, 10),
    range(ApiKey::OffsetFetch, 1, 10),
    range(ApiKey::FindCoordinator, 0, 6),
    range(ApiKey::JoinGroup, 0, 9),
    range(ApiKey::Heartbeat, 0, 4),
    range(ApiKey::LeaveGroup, 0, 5),
    range(ApiKey::SyncGroup, 0, 5),
    range(ApiKey::DescribeGroups, 0, 6),
    range(ApiKey::ListGroups, 0, 5),
    range(ApiKey::ApiVersions, 0, 5),
    range(ApiKey::CreateTopics, 2, 7),
    range(ApiKey::DeleteTopics, 1, 6),
    range(ApiKey::InitProducerId, 0, 5),
    range(ApiKey::OffsetForLeaderEpoch, 2, 4),
    range(ApiKey::DescribeConfigs, 1, 4),
    range(ApiKey::DeleteGroups, 0, 3),
    range(ApiKey::OffsetDelete, 0, 0),
    range(ApiKey::DescribeQuorum, 0, 2),
    range(ApiKey::DescribeCluster, 0, 2),
    range(ApiKey::DescribeTopicPartitions, 0, 0),
];

const CONTROLLER: &[ApiVersionRange] = &[
    range(ApiKey::Fetch, 4, 18),
    range(ApiKey::ApiVersions, 0, 5),
    range(ApiKey::CreateTopics, 2, 7),
    range(ApiKey::DeleteTopics, 1, 6),
    range(ApiKey::DescribeQuorum, 0, 2),
    range(ApiKey::AlterPartition, 2, 3),
    range(ApiKey::Envelope, 0, 0),
    range(ApiKey::FetchSnapshot, 0, 1),
    range(ApiKey::DescribeCluster, 0, 2),
    range(ApiKey::BrokerRegistration, 0, 4),
    range(ApiKey::BrokerHeartbeat, 0, 2),
    range(ApiKey::AllocateProducerIds, 0, 0),
    range(ApiKey::ControllerRegistration, 0, 0),
    range(ApiKey::AssignReplicasToDirs, 0, 0),
];

const fn range(api_key: ApiKey, min: i16, max: i16) -> ApiVersionRange {
    ApiVersionRange { api_key, min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both tables, frozen: whoever changes what is offered changes this too.
    #[test]
    fn what_each_listener_offers() {
        let told = |listener| {
            let ranges = supported_versions(listener).iter();
            ranges
                .map(|it| (it.api_key.raw(), it.min, it.max))
                .collect::<Vec<_>>()
        };
        let broker = [
            (0, 0, 13),
            (1, 4, 18),
            (2, 1, 11),
            (3, 0, 13),
            (8, 2, 10),
            (9, 1, 10),
            (10, 0, 6),
            (11, 0, 9),
            (12, 0, 4),
            (13, 0, 5),
            (14, 0, 5),
            (15, 0, 6),
            (16, 0, 5),
            (18, 0, 5),
            (19, 2, 7),
            (20, 1, 6),
            (22, 0, 5),
            (23, 2, 4),
            (32, 1, 4),
            (42, 0, 3),
            (47, 0, 0),
            (55, 0, 2),
            (60, 0, 2),
            (75, 0, 0),
        ];
        assert_eq!(told(ListenerKind::Broker), broker);
        let controller = [
            (1, 4, 18),
            (18, 0, 5),
            (19, 2, 7),
            (20, 1, 6),
            (55, 0, 2),
            (56, 2, 3),
            (58, 0, 0),
            (59, 0, 1),
            (60, 0, 2),
            (62, 0, 4),
            (63, 0, 2),
            (67, 0, 0),
            (70, 0, 0),
            (73, 0, 0),
        ];
        assert_eq!(told(ListenerKind::Controller), controller);
    }

    #[test]
    fn everything_offered_can_be_decoded() {
        for listener in [ListenerKind::Broker, ListenerKind::Controller] {
            for range in supported_versions(listener) {
                let (min, max) = range.api_key.versions();
                assert_eq!(range.max, max, "{}", range.api_key);
                if range.api_key == ApiKey::Produce {
                    assert_eq!((range.min, min), (0, 3));
                } else {
                    assert_eq!(range.min, min, "{}", range.api_key);
                }
            }
        }
    }

    #[test]
    fn trap_03_produce_is_announced_from_version_0() {
        let first = supported_versions(ListenerKind::Broker).first();
        assert_eq!(
            first.map(|it| (it.api_key, it.min)),
            Some((ApiKey::Produce, 0))
        );
    }

    /// A client that must use topic ids can only learn them from Metadata 10 or above.
    #[test]
    fn c_09_topic_ids_come_with_metadata_10() {
        let broker = supported_versions(ListenerKind::Broker);
        let max = |api_key| {
            broker
                .iter()
                .find(|it| it.api_key == api_key)
                .map(|it| it.max)
        };
        let needs_ids = max(ApiKey::Produce) >= Some(13)
            || max(ApiKey::Fetch) >= Some(13)
            || max(ApiKey::OffsetFetch) >= Some(10)
            || max(ApiKey::OffsetCommit) >= Some(10);
        assert!(!needs_ids || max(ApiKey::Metadata) >= Some(10));
    }

    #[test]
    fn keys_rise_and_are_found_again() {
        assert!(ApiKey::ALL.is_sorted_by(|a, b| a.raw() < b.raw()));
        for key in ApiKey::ALL {
            assert_eq!(ApiKey::from_raw(key.raw()), Some(*key));
        }
        assert_eq!(ApiKey::from_raw(999), None);
    }
}
