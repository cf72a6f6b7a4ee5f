//! What is going to happen, in order of virtual time.

use std::collections::BTreeMap;

use highwater_types::Mono;

/// Events by time; those of one moment leave in the order in which they came.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    events: BTreeMap<(Mono, u64), E>,
    next_seq: u64,
}

impl<E> EventQueue<E> {
    /// Nothing is going to happen.
    pub(crate) const fn new() -> Self {
        Self {
            events: BTreeMap::new(),
            next_seq: 0,
        }
    }

    /// Lets `event` happen at `at`.
    pub(crate) fn push(&mut self, at: Mono, event: E) {
        self.events.insert((at, self.next_seq), event);
        self.next_seq += 1;
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Option<Mono> {
        self.events.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next event, if it happens no later than `until`.
    pub(crate) fn pop_until(&mut self, until: Mono) -> Option<(Mono, E)> {
        if self.next_at()? > until {
            return None;
        }
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }

    /// Drops the events that `gone` names.
    pub(crate) fn drop_if(&mut self, mut gone: impl FnMut(&E) -> bool) {
        self.events.retain(|_, event| !gone(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_keeps_the_order_of_arrival() {
        let mut queue = EventQueue::new();
        queue.push(Mono::from_micros(2), "late");
        queue.push(Mono::from_micros(1), "first");
        queue.push(Mono::from_micros(1), "second");
        let mut popped = Vec::new();
        while let Some((_, event)) = queue.pop_until(Mono::from_micros(1)) {
            popped.push(event);
        }
        assert_eq!(popped, ["first", "second"]);
        assert_eq!(queue.next_at(), Some(Mono::from_micros(2)));
    }
}
