use highwater_types::{Millis, Mono, Offset};

/// When a topic asks that its records are on stable storage (`flush.messages`, `flush.ms`).
///
/// Apache Kafka syncs inside the append. Here the append returns at once, and while a sync is due
/// the replica counts only what is flushed in the high watermark: so whoever waits for the high
/// watermark waits for the sync, and one sync serves all that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPolicy {
    /// `flush.messages`: a sync is due once this many records are not flushed. `u64::MAX`: never.
    pub messages: u64,
    /// `flush.ms`: a sync is due once a record is not flushed for this long. `None`: never.
    pub age: Option<Millis>,
}

impl FlushPolicy {
    /// The page cache of the replicas is enough, as in Kafka by default.
    pub const NEVER: Self = Self {
        messages: u64::MAX,
        age: None,
    };

    /// Whether a sync is due at `now` for a log that is flushed up to `flushed_offset` and whose
    /// oldest unflushed record was appended at `unflushed_since`.
    pub(crate) fn is_due(
        &self,
        now: Mono,
        flushed_offset: Offset,
        log_end_offset: Offset,
        unflushed_since: Option<Mono>,
    ) -> bool {
        let unflushed = log_end_offset.distance_from(flushed_offset);
        let Ok(unflushed @ 1..) = u64::try_from(unflushed) else {
            return false;
        };
        let deadline = self.deadline(unflushed_since);
        unflushed >= self.messages.max(1) || deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When [`FlushPolicy::age`] makes a sync due.
    pub(crate) fn deadline(&self, unflushed_since: Option<Mono>) -> Option<Mono> {
        Some(unflushed_since?.plus(self.age?))
    }
}
