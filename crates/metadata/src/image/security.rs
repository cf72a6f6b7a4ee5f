use std::collections::BTreeMap;

use highwater_records::stored::metadata::{
    AccessControlEntryRecord, ClientQuotaRecord, DelegationTokenRecord, UserScramCredentialRecord,
};
use highwater_types::Uuid;

/// What is kept of security and quotas: whole records, so that a snapshot loses nothing. No part
/// of this build acts on them yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecurityImage {
    /// SCRAM credentials by user name and mechanism (1 SHA-256, 2 SHA-512).
    pub scram: BTreeMap<(String, i8), UserScramCredentialRecord>,
    /// ACLs by id.
    pub acls: BTreeMap<Uuid, AccessControlEntryRecord>,
    /// Delegation tokens by id.
    pub tokens: BTreeMap<String, DelegationTokenRecord>,
    /// Client quotas by entity (type and name pairs) and key.
    pub quotas: BTreeMap<(QuotaEntity, String), ClientQuotaRecord>,
}

/// Whom a quota is for: type (`user`, `client-id`, `ip`) and name pairs, sorted; no name means the
/// default of the type.
pub type QuotaEntity = Vec<(String, Option<String>)>;
