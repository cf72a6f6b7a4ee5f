//! Keys and values of `__consumer_offsets`, `__transaction_state` and
//! `__share_group_state`, one file each.
//!
//! Generated from `crates/protocol/schemas` by `cargo xtask codegen`; not edited by hand.

pub mod consumer_group_current_member_assignment_key;
pub mod consumer_group_current_member_assignment_value;
pub mod consumer_group_member_metadata_key;
pub mod consumer_group_member_metadata_value;
pub mod consumer_group_metadata_key;
pub mod consumer_group_metadata_value;
pub mod consumer_group_partition_metadata_key;
pub mod consumer_group_partition_metadata_value;
pub mod consumer_group_regular_expression_key;
pub mod consumer_group_regular_expression_value;
pub mod consumer_group_target_assignment_member_key;
pub mod consumer_group_target_assignment_member_value;
pub mod consumer_group_target_assignment_metadata_key;
pub mod consumer_group_target_assignment_metadata_value;
pub mod group_metadata_key;
pub mod group_metadata_value;
pub mod legacy_offset_commit_key;
pub mod legacy_offset_commit_value;
pub mod offset_commit_key;
pub mod offset_commit_value;
pub mod share_group_current_member_assignment_key;
pub mod share_group_current_member_assignment_value;
pub mod share_group_member_metadata_key;
pub mod share_group_member_metadata_value;
pub mod share_group_metadata_key;
pub mod share_group_metadata_value;
pub mod share_group_state_partition_metadata_key;
pub mod share_group_state_partition_metadata_value;
pub mod share_group_target_assignment_member_key;
pub mod share_group_target_assignment_member_value;
pub mod share_group_target_assignment_metadata_key;
pub mod share_group_target_assignment_metadata_value;
pub mod share_snapshot_key;
pub mod share_snapshot_value;
pub mod share_update_key;
pub mod share_update_value;
pub mod streams_group_current_member_assignment_key;
pub mod streams_group_current_member_assignment_value;
pub mod streams_group_member_metadata_key;
pub mod streams_group_member_metadata_value;
pub mod streams_group_metadata_key;
pub mod streams_group_metadata_value;
pub mod streams_group_target_assignment_member_key;
pub mod streams_group_target_assignment_member_value;
pub mod streams_group_target_assignment_metadata_key;
pub mod streams_group_target_assignment_metadata_value;
pub mod streams_group_topology_key;
pub mod streams_group_topology_value;
pub mod transaction_log_key;
pub mod transaction_log_value;

pub use self::consumer_group_current_member_assignment_key::ConsumerGroupCurrentMemberAssignmentKey;
pub use self::consumer_group_current_member_assignment_value::ConsumerGroupCurrentMemberAssignmentValue;
pub use self::consumer_group_member_metadata_key::ConsumerGroupMemberMetadataKey;
pub use self::consumer_group_member_metadata_value::ConsumerGroupMemberMetadataValue;
pub use self::consumer_group_metadata_key::ConsumerGroupMetadataKey;
pub use self::consumer_group_metadata_value::ConsumerGroupMetadataValue;
pub use self::consumer_group_partition_metadata_key::ConsumerGroupPartitionMetadataKey;
pub use self::consumer_group_partition_metadata_value::ConsumerGroupPartitionMetadataValue;
pub use self::consumer_group_regular_expression_key::ConsumerGroupRegularExpressionKey;
pub use self::consumer_group_regular_expression_value::ConsumerGroupRegularExpressionValue;
pub use self::consumer_group_target_assignment_member_key::ConsumerGroupTargetAssignmentMemberKey;
pub use self::consumer_group_target_assignment_member_value::ConsumerGroupTargetAssignmentMemberValue;
pub use self::consumer_group_target_assignment_metadata_key::ConsumerGroupTargetAssignmentMetadataKey;
pub use self::consumer_group_target_assignment_metadata_value::ConsumerGroupTargetAssignmentMetadataValue;
pub use self::group_metadata_key::GroupMetadataKey;
pub use self::group_metadata_value::GroupMetadataValue;
pub use self::legacy_offset_commit_key::LegacyOffsetCommitKey;
pub use self::legacy_offset_commit_value::LegacyOffsetCommitValue;
pub use self::offset_commit_key::OffsetCommitKey;
pub use self::offset_commit_value::OffsetCommitValue;
pub use self::share_group_current_member_assignment_key::ShareGroupCurrentMemberAssignmentKey;
pub use self::share_group_current_member_assignment_value::ShareGroupCurrentMemberAssignmentValue;
pub use self::share_group_member_metadata_key::ShareGroupMemberMetadataKey;
pub use self::share_group_member_metadata_value::ShareGroupMemberMetadataValue;
pub use self::share_group_metadata_key::ShareGroupMetadataKey;
pub use self::share_group_metadata_value::ShareGroupMetadataValue;
pub use self::share_group_state_partition_metadata_key::ShareGroupStatePartitionMetadataKey;
pub use self::share_group_state_partition_metadata_value::ShareGroupStatePartitionMetadataValue;
pub use self::share_group_target_assignment_member_key::ShareGroupTargetAssignmentMemberKey;
pub use self::share_group_target_assignment_member_value::ShareGroupTargetAssignmentMemberValue;
pub use self::share_group_target_assignment_metadata_key::ShareGroupTargetAssignmentMetadataKey;
pub use self::share_group_target_assignment_metadata_value::ShareGroupTargetAssignmentMetadataValue;
pub use self::share_snapshot_key::ShareSnapshotKey;
pub use self::share_snapshot_value::ShareSnapshotValue;
pub use self::share_update_key::ShareUpdateKey;
pub use self::share_update_value::ShareUpdateValue;
pub use self::streams_group_current_member_assignment_key::StreamsGroupCurrentMemberAssignmentKey;
pub use self::streams_group_current_member_assignment_value::StreamsGroupCurrentMemberAssignmentValue;
pub use self::streams_group_member_metadata_key::StreamsGroupMemberMetadataKey;
pub use self::streams_group_member_metadata_value::StreamsGroupMemberMetadataValue;
pub use self::streams_group_metadata_key::StreamsGroupMetadataKey;
pub use self::streams_group_metadata_value::StreamsGroupMetadataValue;
pub use self::streams_group_target_assignment_member_key::StreamsGroupTargetAssignmentMemberKey;
pub use self::streams_group_target_assignment_member_value::StreamsGroupTargetAssignmentMemberValue;
pub use self::streams_group_target_assignment_metadata_key::StreamsGroupTargetAssignmentMetadataKey;
pub use self::streams_group_target_assignment_metadata_value::StreamsGroupTargetAssignmentMetadataValue;
pub use self::streams_group_topology_key::StreamsGroupTopologyKey;
pub use self::streams_group_topology_value::StreamsGroupTopologyValue;
pub use self::transaction_log_key::TransactionLogKey;
pub use self::transaction_log_value::TransactionLogValue;
use crate::wire::MessageInfo;

/// All of them, for tests and fuzzers.
pub const ALL: &[MessageInfo] = &[
    MessageInfo::of::<ConsumerGroupCurrentMemberAssignmentKey>(),
    MessageInfo::of::<ConsumerGroupCurrentMemberAssignmentValue>(),
    MessageInfo::of::<ConsumerGroupMemberMetadataKey>(),
    MessageInfo::of::<ConsumerGroupMemberMetadataValue>(),
    MessageInfo::of::<ConsumerGroupMetadataKey>(),
    MessageInfo::of::<ConsumerGroupMetadataValue>(),
    MessageInfo::of::<ConsumerGroupPartitionMetadataKey>(),
    MessageInfo::of::<ConsumerGroupPartitionMetadataValue>(),
    MessageInfo::of::<ConsumerGroupRegularExpressionKey>(),
    MessageInfo::of::<ConsumerGroupRegularExpressionValue>(),
    MessageInfo::of::<ConsumerGroupTargetAssignmentMemberKey>(),
    MessageInfo::of::<ConsumerGroupTargetAssignmentMemberValue>(),
    MessageInfo::of::<ConsumerGroupTargetAssignmentMetadataKey>(),
    MessageInfo::of::<ConsumerGroupTargetAssignmentMetadataValue>(),
    MessageInfo::of::<GroupMetadataKey>(),
    MessageInfo::of::<GroupMetadataValue>(),
    MessageInfo::of::<LegacyOffsetCommitKey>(),
    MessageInfo::of::<LegacyOffsetCommitValue>(),
    MessageInfo::of::<OffsetCommitKey>(),
    MessageInfo::of::<OffsetCommitValue>(),
    MessageInfo::of::<ShareGroupCurrentMemberAssignmentKey>(),
    MessageInfo::of::<ShareGroupCurrentMemberAssignmentValue>(),
    MessageInfo::of::<ShareGroupMemberMetadataKey>(),
    MessageInfo::of::<ShareGroupMemberMetadataValue>(),
    MessageInfo::of::<ShareGroupMetadataKey>(),
    MessageInfo::of::<ShareGroupMetadataValue>(),
    MessageInfo::of::<ShareGroupStatePartitionMetadataKey>(),
    MessageInfo::of::<ShareGroupStatePartitionMetadataValue>(),
    MessageInfo::of::<ShareGroupTargetAssignmentMemberKey>(),
    MessageInfo::of::<ShareGroupTargetAssignmentMemberValue>(),
    MessageInfo::of::<ShareGroupTargetAssignmentMetadataKey>(),
    MessageInfo::of::<ShareGroupTargetAssignmentMetadataValue>(),
    MessageInfo::of::<ShareSnapshotKey>(),
    MessageInfo::of::<ShareSnapshotValue>(),
    MessageInfo::of::<ShareUpdateKey>(),
    MessageInfo::of::<ShareUpdateValue>(),
    MessageInfo::of::<StreamsGroupCurrentMemberAssignmentKey>(),
    MessageInfo::of::<StreamsGroupCurrentMemberAssignmentValue>(),
    MessageInfo::of::<StreamsGroupMemberMetadataKey>(),
    MessageInfo::of::<StreamsGroupMemberMetadataValue>(),
    MessageInfo::of::<StreamsGroupMetadataKey>(),
    MessageInfo::of::<StreamsGroupMetadataValue>(),
    MessageInfo::of::<StreamsGroupTargetAssignmentMemberKey>(),
    MessageInfo::of::<StreamsGroupTargetAssignmentMemberValue>(),
    MessageInfo::of::<StreamsGroupTargetAssignmentMetadataKey>(),
    MessageInfo::of::<StreamsGroupTargetAssignmentMetadataValue>(),
    MessageInfo::of::<StreamsGroupTopologyKey>(),
    MessageInfo::of::<StreamsGroupTopologyValue>(),
    MessageInfo::of::<TransactionLogKey>(),
    MessageInfo::of::<TransactionLogValue>(),
];

crate::stored::coordinator_record::coordinator_records! {
/// A record of `__consumer_offsets`: a key, and a value or a tombstone.
GroupRecord
0 LegacyOffsetCommit(LegacyOffsetCommitKey, LegacyOffsetCommitValue);
1 OffsetCommit(OffsetCommitKey, OffsetCommitValue);
2 GroupMetadata(GroupMetadataKey, GroupMetadataValue);
3 ConsumerGroupMetadata(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue);
4 ConsumerGroupPartitionMetadata(ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue);
5 ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue);
6 ConsumerGroupTargetAssignmentMetadata(ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue);
7 ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue);
8 ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue);
10 ShareGroupMemberMetadata(ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue);
11 ShareGroupMetadata(ShareGroupMetadataKey, ShareGroupMetadataValue);
12 ShareGroupTargetAssignmentMetadata(ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue);
13 ShareGroupTargetAssignmentMember(ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue);
14 ShareGroupCurrentMemberAssignment(ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue);
15 ShareGroupStatePartitionMetadata(ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue);
16 ConsumerGroupRegularExpression(ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue);
17 StreamsGroupMetadata(StreamsGroupMetadataKey, StreamsGroupMetadataValue);
19 StreamsGroupMemberMetadata(StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue);
20 StreamsGroupTargetAssignmentMetadata(StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue);
21 StreamsGroupTargetAssignmentMember(StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue);
22 StreamsGroupCurrentMemberAssignment(StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue);
23 StreamsGroupTopology(StreamsGroupTopologyKey, StreamsGroupTopologyValue);
}

crate::stored::coordinator_record::coordinator_records! {
/// A record of `__transaction_state`: a key, and a value or a tombstone.
TransactionRecord
0 TransactionLog(TransactionLogKey, TransactionLogValue);
}

crate::stored::coordinator_record::coordinator_records! {
/// A record of `__share_group_state`: a key, and a value or a tombstone.
ShareRecord
0 ShareSnapshot(ShareSnapshotKey, ShareSnapshotValue);
1 ShareUpdate(ShareUpdateKey, ShareUpdateValue);
}
