use std::collections::{BTreeMap, BTreeSet};

use highwater_types::Mono;

use crate::{GroupId, MemberId};

/// What a timer is for. At most one of each is set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The join phase of a group ends: its initial delay, or its rebalance timeout.
    Joins(GroupId),
    /// The members of a group have to have asked for their assignment.
    Syncs(GroupId),
    /// A member, or an id that was given out for one, has to have been heard of.
    Session(GroupId, MemberId),
    /// The record that a group is empty was refused, and is tried again.
    RecordEmpty(GroupId),
    /// Old offsets are looked for.
    OffsetsExpiry,
}

/// All timers of a coordinator.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Invariant: the same timers as in `due`.
    by_time: BTreeSet<(Mono, Timer)>,
    due: BTreeMap<Timer, Mono>,
}

impl Timers {
    /// Sets `timer`, in place of an older setting of it.
    pub(crate) fn set(&mut self, timer: Timer, at: Mono) {
        if let Some(old) = self.due.insert(timer.clone(), at) {
            self.by_time.remove(&(old, timer.clone()));
        }
        self.by_time.insert((at, timer));
    }

    pub(crate) fn cancel(&mut self, timer: &Timer) {
        if let Some(at) = self.due.remove(timer) {
            self.by_time.remove(&(at, timer.clone()));
        }
    }

    /// Cancels what is set for a group.
    pub(crate) fn cancel_group(&mut self, group: &GroupId) {
        for timer in [Timer::Joins, Timer::Syncs, Timer::RecordEmpty] {
            self.cancel(&timer(group.clone()));
        }
        let from = Timer::Session(group.clone(), MemberId::default());
        let sessions = self.due.range(from..).map(|(timer, _)| timer);
        let sessions = sessions.take_while(|it| matches!(it, Timer::Session(of, _) if of == group));
        let sessions: Vec<Timer> = sessions.cloned().collect();
        for timer in &sessions {
            self.cancel(timer);
        }
    }

    /// When `timer` fires, if it is set.
    pub(crate) fn due(&self, timer: &Timer) -> Option<Mono> {
        self.due.get(timer).copied()
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes out the first timer that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Mono) -> Option<Timer> {
        if self.by_time.first()?.0 > now {
            return None;
        }
        let (_, timer) = self.by_time.pop_first()?;
        self.due.remove(&timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_once_at_its_last_setting_and_never_after_cancel() {
        let at = Mono::from_micros;
        let mut timers = Timers::default();
        let joins = Timer::Joins("g".into());
        timers.set(joins.clone(), at(5));
        timers.set(joins.clone(), at(9));
        timers.set(Timer::OffsetsExpiry, at(7));
        timers.set(Timer::Syncs("g".into()), at(1));
        timers.cancel(&Timer::Syncs("g".into()));
        assert_eq!(timers.next_deadline(), Some(at(7)));
        assert_eq!(timers.due(&joins), Some(at(9)));
        assert_eq!(timers.pop_due(at(6)), None);
        assert_eq!(timers.pop_due(at(9)), Some(Timer::OffsetsExpiry));
        assert_eq!(timers.pop_due(at(9)), Some(joins));
        assert_eq!(timers.pop_due(at(99)), None);
        assert_eq!(timers.next_deadline(), None);
    }
}
