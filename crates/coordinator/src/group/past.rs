use std::collections::VecDeque;

use highwater_types::WallMs;

use crate::happening::{GroupEvent, PastEvent};

const EVENTS_MAX: usize = 16;

/// The last happenings of a group, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Past(VecDeque<PastEvent>);

impl Past {
    pub(crate) fn push(&mut self, at: WallMs, event: GroupEvent) {
        if self.0.len() >= EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(PastEvent { at, event });
    }

    pub(crate) fn to_vec(&self) -> Vec<PastEvent> {
        self.0.iter().cloned().collect()
    }
}
