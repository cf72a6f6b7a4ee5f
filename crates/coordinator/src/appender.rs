use bytes::Bytes;
use highwater_types::{ErrorCode, Now, Offset};

/// The log as the coordinator sees it. The node implements it over the partition that it leads.
pub trait Appender {
    /// Appends the records as one batch with the time `now.wall`, and gives the exclusive end
    /// offset. The records have consecutive offsets up to it.
    ///
    /// # Errors
    /// Why the batch was refused; nothing was written then.
    fn append(&mut self, now: Now, records: &[NewRecord]) -> Result<Offset, AppendRefused>;
}

/// A record to be appended: a key, and a value or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The key's bytes, with the record's type in front.
    pub key: Bytes,
    /// The value's bytes, with its version in front; `None` deletes the key.
    pub value: Option<Bytes>,
}

/// Why an append was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefused {
    /// The partition is no longer led here.
    #[error("the partition is not led here")]
    NotLeader,
    /// Fewer replicas in sync than `min.insync.replicas`.
    #[error("too few replicas are in sync")]
    TooFewInSync,
    /// The batch is larger than the topic allows.
    #[error("the batch is larger than the topic allows")]
    TooLarge,
    /// The disk failed: the partition is offline.
    #[error("the disk failed")]
    Disk,
}

impl AppendRefused {
    /// What the requests that needed the append answer, as Kafka's coordinator maps it: a record
    /// that can never be written is UNKNOWN_SERVER_ERROR, all else may be tried again.
    #[must_use]
    pub const fn error_code(self) -> ErrorCode {
        match self {
            Self::NotLeader | Self::Disk => ErrorCode::NOT_COORDINATOR,
            Self::TooFewInSync => ErrorCode::COORDINATOR_NOT_AVAILABLE,
            Self::TooLarge => ErrorCode::UNKNOWN_SERVER_ERROR,
        }
    }
}
