//! The tables of config keys, by concern.

mod groups;
mod kraft;
mod log;
mod network;
mod own;
mod replication;
mod security;
mod topic;
mod transactions;

pub(crate) use topic::{TOPIC_KEYS, TOPIC_SYNONYMS, Unit};

use crate::config::ConfigKey;

/// Every broker key, table by table.
pub(crate) const BROKER_TABLES: &[&[ConfigKey]] = &[
    kraft::KRAFT_KEYS,
    network::NETWORK_KEYS,
    log::LOG_KEYS,
    replication::REPLICATION_KEYS,
    groups::GROUP_KEYS,
    transactions::TRANSACTION_KEYS,
    security::SECURITY_KEYS,
    own::OWN_KEYS,
];
