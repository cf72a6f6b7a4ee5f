use std::collections::VecDeque;

use highwater_types::WallMs;

use crate::happening::{GroupEvent, PastEvent};

const EVENTS_MAX: usize = 16;

/// The last happenings of a group, oldest first. Why the newest rebalance began is always among
/// them, however many members have joined since.
#[derive(Debug, Default)]
pub(crate) struct Past(VecDeque<PastEvent>);

impl Past {
    pub(crate) fn push(&mut self, at: WallMs, event: GroupEvent) {
        self.0.push_back(PastEvent { at, event });
        if self.0.len() > EVENTS_MAX {
            let began = |it: &PastEvent| matches!(it.event, GroupEvent::RebalanceBegan { .. });
            let is_kept = self.0.iter().rposition(began) == Some(0);
            self.0.remove(usize::from(is_kept));
        }
    }

    pub(crate) fn to_vec(&self) -> Vec<PastEvent> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GenerationId;
    use crate::happening::RebalanceCause;

    #[test]
    fn keeps_the_last_sixteen_and_why_the_last_rebalance_began() {
        let mut past = Past::default();
        let began = |cause| GroupEvent::RebalanceBegan {
            generation_id: GenerationId::default(),
            cause,
        };
        past.push(WallMs::new(0), began(RebalanceCause::LoadedTooLarge));
        past.push(WallMs::new(1), began(RebalanceCause::AssignmentNotRecorded));
        for at in 2..100 {
            past.push(WallMs::new(at), GroupEvent::Deleted { by_request: true });
        }
        let events = past.to_vec();
        assert_eq!(events.len(), EVENTS_MAX);
        assert_eq!(
            events[0].event,
            began(RebalanceCause::AssignmentNotRecorded)
        );
        assert_eq!(events[1].at, WallMs::new(85));
    }
}
