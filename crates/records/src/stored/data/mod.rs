//! Control records, and what members of a classic consumer group tell each other.
//!
//! Generated from `crates/protocol/schemas` by `cargo xtask codegen`; not edited by hand.

pub mod consumer_protocol_assignment;
pub mod consumer_protocol_subscription;
pub mod end_txn_marker;
pub mod kraft_version_record;
pub mod leader_change_message;
pub mod snapshot_footer_record;
pub mod snapshot_header_record;
pub mod voters_record;

pub use self::{
    consumer_protocol_assignment::ConsumerProtocolAssignment,
    consumer_protocol_subscription::ConsumerProtocolSubscription, end_txn_marker::EndTxnMarker,
    kraft_version_record::KRaftVersionRecord, leader_change_message::LeaderChangeMessage,
    snapshot_footer_record::SnapshotFooterRecord, snapshot_header_record::SnapshotHeaderRecord,
    voters_record::VotersRecord,
};
use crate::wire::MessageInfo;

/// All of them, for tests and fuzzers.
pub const ALL: &[MessageInfo] = &[
    MessageInfo::of::<ConsumerProtocolAssignment>(),
    MessageInfo::of::<ConsumerProtocolSubscription>(),
    MessageInfo::of::<EndTxnMarker>(),
    MessageInfo::of::<KRaftVersionRecord>(),
    MessageInfo::of::<LeaderChangeMessage>(),
    MessageInfo::of::<SnapshotFooterRecord>(),
    MessageInfo::of::<SnapshotHeaderRecord>(),
    MessageInfo::of::<VotersRecord>(),
];
