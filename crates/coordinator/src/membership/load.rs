use highwater_types::WallMs;

use crate::group::{Group, Members};
use crate::happening::RebalanceCause;
use crate::step::Step;

impl Group {
    /// The log is replayed: the group is what its newest record says, and every member of it has
    /// a fresh session.
    pub(crate) fn begin_life(&mut self, step: &mut Step<'_>) {
        self.members = match &self.stored {
            Some(stored) => Members::from_stored(stored),
            None => Members::new(WallMs::NONE),
        };
        for id in self.members.ids() {
            self.touch(step, &id);
        }
        if self.members.len() > step.settings.members_max {
            // The limit was lowered. Who comes first stays.
            self.begin_rebalance(step, RebalanceCause::LoadedTooLarge);
        }
    }
}
