//! Processes that stand still: their clocks go on, and whatever happens to them waits.

use highwater_types::NodeId;

use super::{Event, World};

impl World {
    /// Whether the process stands still.
    pub(crate) fn is_paused(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|it| it.is_paused)
    }

    /// The process stands still, as by SIGSTOP: its host still takes what arrives for it.
    pub(crate) fn pause(&mut self, id: NodeId) {
        self.tell(format!("{id}: paused"));
        self.node_mut(id).is_paused = true;
    }

    /// The process goes on, and finds everything that has arrived since: inputs before ticks.
    pub(crate) fn resume(&mut self, id: NodeId) {
        self.tell(format!("{id}: continues"));
        self.node_mut(id).is_paused = false;
        let waiting = self.postponed.remove(&id).unwrap_or_default();
        let is_tick = |event: &Event| matches!(event, Event::Tick { .. });
        let (ticks, inputs): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_tick);
        for event in inputs.into_iter().chain(ticks) {
            self.events.push(self.now, event);
        }
    }

    /// Lets something wait until the process goes on.
    pub(super) fn postpone(&mut self, id: NodeId, event: Event) {
        self.postponed.entry(id).or_default().push(event);
    }

    /// A process that stands still dies: nothing waits for it any more.
    pub(super) fn forget_pause(&mut self, id: NodeId) {
        self.node_mut(id).is_paused = false;
        // What reached the host reaches it after the death of the process.
        for event in self.postponed.remove(&id).unwrap_or_default() {
            if matches!(event, Event::Arrive { .. }) {
                self.events.push(self.now, event);
            }
        }
    }
}
