use highwater_types::Offset;

use super::Replica;

impl Replica {
    /// Where a follower cuts its log by the rule from before leader epochs (KIP-101), when
    /// [`super::ReplicaConfig::old_rule`] is set: after a restart at its own high watermark, and
    /// whenever that is above its leader's, there. `None`: nowhere.
    ///
    /// The rule loses acknowledged records and lets logs differ; it exists to show that it does.
    #[must_use]
    pub fn old_rule_cut(&self, leader_high_watermark: Option<Offset>) -> Option<Offset> {
        if !self.config.old_rule || self.role.as_follower().is_none() {
            return None;
        }
        let (own, end) = (self.high_watermark, self.ends.log_end_offset);
        match leader_high_watermark {
            None => (own < end).then_some(own),
            Some(leader) => (Offset::ZERO <= leader && leader < own).then_some(leader),
        }
    }
}
