//! How long brokers may be silent, and who is not judged for it.

use highwater_disk::Disk;
use highwater_types::{Millis, Mono, Now};

use super::{Leader, PendingBatch};
use crate::control::STALL;

impl<D: Disk> Leader<D> {
    /// This process stood still for so long: silence proves nothing, and everybody gets the time
    /// back that nobody could have been heard in.
    pub(in crate::control) fn forgive(&mut self, late: Millis, now: Mono) {
        self.controller.sessions.extend(late, now);
    }

    /// Brokers may have waited for an answer that this controller held back for a flush.
    pub(super) fn forgive_stall(&mut self, now: Now, batches: &[PendingBatch]) {
        let appended = batches.iter().map(|batch| batch.appended).min();
        let waited = appended.map_or(Millis::ZERO, |at| now.mono.since(at));
        if waited > STALL {
            self.controller.sessions.extend(waited, now.mono);
        }
        self.stalled = false;
    }

    /// Fences brokers that were silent for too long, one by one: each decision builds on the one
    /// before (KAFKA-13173).
    pub(super) fn fence_silent(&mut self, now: Now) {
        let timeout = self.controller.session_timeout;
        let waits = self.pending.front().map(|batch| batch.appended);
        if waits.is_some_and(|since| now.mono.since(since) > STALL) {
            self.stalled = true;
            return;
        }
        while let Some(id) =
            self.controller
                .sessions
                .expired(self.latest.image(), now.mono, timeout)
        {
            let records = self.controller.fence_expired(self.latest.image(), id);
            self.warnings.push(format!(
                "broker {id} was silent for {} ms: fenced",
                timeout.as_u64()
            ));
            if self.append(now, records).is_err() {
                // The disk refuses; the session stays over and is looked at again.
                self.controller.sessions.extend(Millis::new(1000), now.mono);
                return;
            }
        }
    }
}
