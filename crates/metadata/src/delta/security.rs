use std::sync::Arc;

use highwater_records::stored::MetadataRecord;

use super::MetadataDelta;

impl MetadataDelta {
    /// Keeps what this build does not act on yet, so that no snapshot loses it.
    pub(super) fn security(&mut self, record: &MetadataRecord) {
        let kept = Arc::make_mut(&mut self.image.security);
        match record {
            MetadataRecord::UserScramCredential(it) => {
                kept.scram
                    .insert((it.name.clone(), it.mechanism), it.clone());
            }
            MetadataRecord::RemoveUserScramCredential(it) => {
                kept.scram.remove(&(it.name.clone(), it.mechanism));
            }
            MetadataRecord::AccessControlEntry(it) => {
                kept.acls.insert(it.id, it.clone());
            }
            MetadataRecord::RemoveAccessControlEntry(it) => {
                kept.acls.remove(&it.id);
            }
            MetadataRecord::DelegationToken(it) => {
                kept.tokens.insert(it.token_id.clone(), it.clone());
            }
            MetadataRecord::RemoveDelegationToken(it) => {
                kept.tokens.remove(&it.token_id);
            }
            MetadataRecord::ClientQuota(it) => {
                let mut entity: Vec<_> = it
                    .entity
                    .iter()
                    .map(|part| (part.entity_type.clone(), part.entity_name.clone()))
                    .collect();
                entity.sort();
                let key = (entity, it.key.clone());
                if it.remove {
                    kept.quotas.remove(&key);
                } else {
                    kept.quotas.insert(key, it.clone());
                }
            }
            _ => {}
        }
        self.changes.other = true;
    }
}
