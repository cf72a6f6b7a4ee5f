//! Records of `__cluster_metadata`, one file per record.
//!
//! Generated from `crates/protocol/schemas` by `cargo xtask codegen`; not edited by hand.

pub mod abort_transaction_record;
pub mod access_control_entry_record;
pub mod begin_transaction_record;
pub mod broker_registration_change_record;
pub mod clear_elr_record;
pub mod client_quota_record;
pub mod config_record;
pub mod delegation_token_record;
pub mod end_transaction_record;
pub mod feature_level_record;
pub mod fence_broker_record;
pub mod no_op_record;
pub mod partition_change_record;
pub mod partition_record;
pub mod producer_ids_record;
pub mod register_broker_record;
pub mod register_controller_record;
pub mod remove_access_control_entry_record;
pub mod remove_delegation_token_record;
pub mod remove_topic_record;
pub mod remove_user_scram_credential_record;
pub mod topic_record;
pub mod unfence_broker_record;
pub mod unregister_broker_record;
pub mod unregister_controller_record;
pub mod user_scram_credential_record;
pub mod zk_migration_state_record;

pub use self::{
    abort_transaction_record::AbortTransactionRecord,
    access_control_entry_record::AccessControlEntryRecord,
    begin_transaction_record::BeginTransactionRecord,
    broker_registration_change_record::BrokerRegistrationChangeRecord,
    clear_elr_record::ClearElrRecord, client_quota_record::ClientQuotaRecord,
    config_record::ConfigRecord, delegation_token_record::DelegationTokenRecord,
    end_transaction_record::EndTransactionRecord, feature_level_record::FeatureLevelRecord,
    fence_broker_record::FenceBrokerRecord, no_op_record::NoOpRecord,
    partition_change_record::PartitionChangeRecord, partition_record::PartitionRecord,
    producer_ids_record::ProducerIdsRecord, register_broker_record::RegisterBrokerRecord,
    register_controller_record::RegisterControllerRecord,
    remove_access_control_entry_record::RemoveAccessControlEntryRecord,
    remove_delegation_token_record::RemoveDelegationTokenRecord,
    remove_topic_record::RemoveTopicRecord,
    remove_user_scram_credential_record::RemoveUserScramCredentialRecord,
    topic_record::TopicRecord, unfence_broker_record::UnfenceBrokerRecord,
    unregister_broker_record::UnregisterBrokerRecord,
    unregister_controller_record::UnregisterControllerRecord,
    user_scram_credential_record::UserScramCredentialRecord,
    zk_migration_state_record::ZkMigrationStateRecord,
};
use crate::wire::MessageInfo;

/// All of them, for tests and fuzzers.
pub const ALL: &[MessageInfo] = &[
    MessageInfo::of::<AbortTransactionRecord>(),
    MessageInfo::of::<AccessControlEntryRecord>(),
    MessageInfo::of::<BeginTransactionRecord>(),
    MessageInfo::of::<BrokerRegistrationChangeRecord>(),
    MessageInfo::of::<ClearElrRecord>(),
    MessageInfo::of::<ClientQuotaRecord>(),
    MessageInfo::of::<ConfigRecord>(),
    MessageInfo::of::<DelegationTokenRecord>(),
    MessageInfo::of::<EndTransactionRecord>(),
    MessageInfo::of::<FeatureLevelRecord>(),
    MessageInfo::of::<FenceBrokerRecord>(),
    MessageInfo::of::<NoOpRecord>(),
    MessageInfo::of::<PartitionChangeRecord>(),
    MessageInfo::of::<PartitionRecord>(),
    MessageInfo::of::<ProducerIdsRecord>(),
    MessageInfo::of::<RegisterBrokerRecord>(),
    MessageInfo::of::<RegisterControllerRecord>(),
    MessageInfo::of::<RemoveAccessControlEntryRecord>(),
    MessageInfo::of::<RemoveDelegationTokenRecord>(),
    MessageInfo::of::<RemoveTopicRecord>(),
    MessageInfo::of::<RemoveUserScramCredentialRecord>(),
    MessageInfo::of::<TopicRecord>(),
    MessageInfo::of::<UnfenceBrokerRecord>(),
    MessageInfo::of::<UnregisterBrokerRecord>(),
    MessageInfo::of::<UnregisterControllerRecord>(),
    MessageInfo::of::<UserScramCredentialRecord>(),
    MessageInfo::of::<ZkMigrationStateRecord>(),
];

crate::stored::metadata_record::metadata_records! {
    0 RegisterBroker(RegisterBrokerRecord)
        "REGISTER_BROKER_RECORD";
    1 UnregisterBroker(UnregisterBrokerRecord)
        "UNREGISTER_BROKER_RECORD";
    2 Topic(TopicRecord)
        "TOPIC_RECORD";
    3 Partition(PartitionRecord)
        "PARTITION_RECORD";
    4 Config(ConfigRecord)
        "CONFIG_RECORD";
    5 PartitionChange(PartitionChangeRecord)
        "PARTITION_CHANGE_RECORD";
    7 FenceBroker(FenceBrokerRecord)
        "FENCE_BROKER_RECORD";
    8 UnfenceBroker(UnfenceBrokerRecord)
        "UNFENCE_BROKER_RECORD";
    9 RemoveTopic(RemoveTopicRecord)
        "REMOVE_TOPIC_RECORD";
    10 DelegationToken(DelegationTokenRecord)
        "DELEGATION_TOKEN_RECORD";
    11 UserScramCredential(UserScramCredentialRecord)
        "USER_SCRAM_CREDENTIAL_RECORD";
    12 FeatureLevel(FeatureLevelRecord)
        "FEATURE_LEVEL_RECORD";
    14 ClientQuota(ClientQuotaRecord)
        "CLIENT_QUOTA_RECORD";
    15 ProducerIds(ProducerIdsRecord)
        "PRODUCER_IDS_RECORD";
    17 BrokerRegistrationChange(BrokerRegistrationChangeRecord)
        "BROKER_REGISTRATION_CHANGE_RECORD";
    18 AccessControlEntry(AccessControlEntryRecord)
        "ACCESS_CONTROL_ENTRY_RECORD";
    19 RemoveAccessControlEntry(RemoveAccessControlEntryRecord)
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD";
    20 NoOp(NoOpRecord)
        "NO_OP_RECORD";
    21 ZkMigrationState(ZkMigrationStateRecord)
        "ZK_MIGRATION_STATE_RECORD";
    22 RemoveUserScramCredential(RemoveUserScramCredentialRecord)
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD";
    23 BeginTransaction(BeginTransactionRecord)
        "BEGIN_TRANSACTION_RECORD";
    24 EndTransaction(EndTransactionRecord)
        "END_TRANSACTION_RECORD";
    25 AbortTransaction(AbortTransactionRecord)
        "ABORT_TRANSACTION_RECORD";
    26 RemoveDelegationToken(RemoveDelegationTokenRecord)
        "REMOVE_DELEGATION_TOKEN_RECORD";
    27 RegisterController(RegisterControllerRecord)
        "REGISTER_CONTROLLER_RECORD";
    28 ClearElr(ClearElrRecord)
        "CLEAR_ELR_RECORD";
    29 UnregisterController(UnregisterControllerRecord)
        "UNREGISTER_CONTROLLER_RECORD";
}
