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

pub use self::{
    consumer_group_current_member_assignment_key::ConsumerGroupCurrentMemberAssignmentKey,
    consumer_group_current_member_assignment_value::ConsumerGroupCurrentMemberAssignmentValue,
    consumer_group_member_metadata_key::ConsumerGroupMemberMetadataKey,
    consumer_group_member_metadata_value::ConsumerGroupMemberMetadataValue,
    consumer_group_metadata_key::ConsumerGroupMetadataKey,
    consumer_group_metadata_value::ConsumerGroupMetadataValue,
    consumer_group_partition_metadata_key::ConsumerGroupPartitionMetadataKey,
    consumer_group_partition_metadata_value::ConsumerGroupPartitionMetadataValue,
    consumer_group_regular_expression_key::ConsumerGroupRegularExpressionKey,
    consumer_group_regular_expression_value::ConsumerGroupRegularExpressionValue,
    consumer_group_target_assignment_member_key::ConsumerGroupTargetAssignmentMemberKey,
    consumer_group_target_assignment_member_value::ConsumerGroupTargetAssignmentMemberValue,
    consumer_group_target_assignment_metadata_key::ConsumerGroupTargetAssignmentMetadataKey,
    consumer_group_target_assignment_metadata_value::ConsumerGroupTargetAssignmentMetadataValue,
    group_metadata_key::GroupMetadataKey, group_metadata_value::GroupMetadataValue,
    legacy_offset_commit_key::LegacyOffsetCommitKey,
    legacy_offset_commit_value::LegacyOffsetCommitValue, offset_commit_key::OffsetCommitKey,
    offset_commit_value::OffsetCommitValue,
    share_group_current_member_assignment_key::ShareGroupCurrentMemberAssignmentKey,
    share_group_current_member_assignment_value::ShareGroupCurrentMemberAssignmentValue,
    share_group_member_metadata_key::ShareGroupMemberMetadataKey,
    share_group_member_metadata_value::ShareGroupMemberMetadataValue,
    share_group_metadata_key::ShareGroupMetadataKey,
    share_group_metadata_value::ShareGroupMetadataValue,
    share_group_state_partition_metadata_key::ShareGroupStatePartitionMetadataKey,
    share_group_state_partition_metadata_value::ShareGroupStatePartitionMetadataValue,
    share_group_target_assignment_member_key::ShareGroupTargetAssignmentMemberKey,
    share_group_target_assignment_member_value::ShareGroupTargetAssignmentMemberValue,
    share_group_target_assignment_metadata_key::ShareGroupTargetAssignmentMetadataKey,
    share_group_target_assignment_metadata_value::ShareGroupTargetAssignmentMetadataValue,
    share_snapshot_key::ShareSnapshotKey, share_snapshot_value::ShareSnapshotValue,
    share_update_key::ShareUpdateKey, share_update_value::ShareUpdateValue,
    streams_group_current_member_assignment_key::StreamsGroupCurrentMemberAssignmentKey,
    streams_group_current_member_assignment_value::StreamsGroupCurrentMemberAssignmentValue,
    streams_group_member_metadata_key::StreamsGroupMemberMetadataKey,
    streams_group_member_metadata_value::StreamsGroupMemberMetadataValue,
    streams_group_metadata_key::StreamsGroupMetadataKey,
    streams_group_metadata_value::StreamsGroupMetadataValue,
    streams_group_target_assignment_member_key::StreamsGroupTargetAssignmentMemberKey,
    streams_group_target_assignment_member_value::StreamsGroupTargetAssignmentMemberValue,
    streams_group_target_assignment_metadata_key::StreamsGroupTargetAssignmentMetadataKey,
    streams_group_target_assignment_metadata_value::StreamsGroupTargetAssignmentMetadataValue,
    streams_group_topology_key::StreamsGroupTopologyKey,
    streams_group_topology_value::StreamsGroupTopologyValue,
    transaction_log_key::TransactionLogKey, transaction_log_value::TransactionLogValue,
};
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
    0 LegacyOffsetCommit
        (LegacyOffsetCommitKey, LegacyOffsetCommitValue);
    1 OffsetCommit
        (OffsetCommitKey, OffsetCommitValue);
    2 GroupMetadata
        (GroupMetadataKey, GroupMetadataValue);
    3 ConsumerGroupMetadata
        (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue);
    4 ConsumerGroupPartitionMetadata
        (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue);
    5 ConsumerGroupMemberMetadata
        (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue);
    6 ConsumerGroupTargetAssignmentMetadata
        (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue);
    7 ConsumerGroupTargetAssignmentMember
        (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue);
    8 ConsumerGroupCurrentMemberAssignment
        (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue);
    10 ShareGroupMemberMetadata
        (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue);
    11 ShareGroupMetadata
        (ShareGroupMetadataKey, ShareGroupMetadataValue);
    12 ShareGroupTargetAssignmentMetadata
        (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue);
    13 ShareGroupTargetAssignmentMember
        (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue);
    14 ShareGroupCurrentMemberAssignment
        (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue);
    15 ShareGroupStatePartitionMetadata
        (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue);
    16 ConsumerGroupRegularExpression
        (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue);
    17 StreamsGroupMetadata
        (StreamsGroupMetadataKey, StreamsGroupMetadataValue);
    19 StreamsGroupMemberMetadata
        (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue);
    20 StreamsGroupTargetAssignmentMetadata
        (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue);
    21 StreamsGroupTargetAssignmentMember
        (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue);
    22 StreamsGroupCurrentMemberAssignment
        (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue);
    23 StreamsGroupTopology
        (StreamsGroupTopologyKey, StreamsGroupTopologyValue);
}

crate::stored::coordinator_record::coordinator_records! {
    /// A record of `__transaction_state`: a key, and a value or a tombstone.
    TransactionRecord
    0 TransactionLog
        (TransactionLogKey, TransactionLogValue);
}

crate::stored::coordinator_record::coordinator_records! {
    /// A record of `__share_group_state`: a key, and a value or a tombstone.
    ShareRecord
    0 ShareSnapshot
        (ShareSnapshotKey, ShareSnapshotValue);
    1 ShareUpdate
        (ShareUpdateKey, ShareUpdateValue);
}
