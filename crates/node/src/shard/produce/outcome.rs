use highwater_log::{AppendError, Appended};
use highwater_records::{BatchError, RecordError};
use highwater_types::{ErrorCode, Offset, WallMs};

/// How far one partition of a Produce request is.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Neither appended nor refused: a job prepares the batch, or the log is being made.
    Pending,
    /// Appended; waits for the high watermark. The request may be admitted.
    Waiting,
    /// Done.
    Done(Outcome),
}

/// What a partition of a Produce request is answered.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(crate) error: ErrorCode,
    pub(crate) base_offset: Offset,
    pub(crate) log_append_time: WallMs,
    pub(crate) log_start_offset: Offset,
    /// Only for errors that have more to say than their code.
    pub(crate) details: Option<Box<Details>>,
}

/// What is wrong, for v8 and later (KIP-467).
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub(crate) message: String,
    pub(crate) records: Vec<RecordError>,
}

impl Outcome {
    /// Refused, with nothing more to say.
    pub(crate) const fn refused(error: ErrorCode) -> Self {
        Self {
            error,
            base_offset: Offset::NONE,
            log_append_time: WallMs::NONE,
            log_start_offset: Offset::NONE,
            details: None,
        }
    }

    /// Refused, and why.
    pub(crate) fn explained(error: ErrorCode, message: impl Into<String>) -> Self {
        let details = Details {
            message: message.into(),
            records: Vec::new(),
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::refused(error)
        }
    }

    /// Refused for what the batch is. As in Kafka, the log start is told once the request itself
    /// proved sound and the log looked at the batch.
    pub(crate) fn bad_batch(why: &BatchError, log_start_offset: Offset) -> Self {
        let is_of_request = matches!(
            why,
            BatchError::Cut { .. }
                | BatchError::BatchLength { .. }
                | BatchError::UnknownMagic { .. }
                | BatchError::OldMagic { .. }
                | BatchError::Crc { .. }
                | BatchError::ZstdNotAllowed
                | BatchError::NoBatch
                | BatchError::MoreThanOneBatch { .. }
                | BatchError::TooLarge { .. }
        );
        let details = Details {
            message: why.to_string(),
            records: why.record_errors().to_vec(),
        };
        Self {
            details: Some(Box::new(details)),
            log_start_offset: if is_of_request {
                Offset::NONE
            } else {
                log_start_offset
            },
            ..Self::refused(why.error_code())
        }
    }

    /// Refused by the log. What a disk says is for the journal, not for clients.
    pub(crate) fn not_appended(why: &AppendError, log_start_offset: Offset) -> Self {
        let refused = match why {
            AppendError::Disk(_) => Self::refused(why.error_code()),
            _ => Self::explained(why.error_code(), why.to_string()),
        };
        Self {
            log_start_offset,
            ..refused
        }
    }

    /// Appended, or there already.
    pub(crate) const fn appended(appended: &Appended, log_start_offset: Offset) -> Self {
        Self {
            error: ErrorCode::NONE,
            base_offset: appended.first_offset,
            log_append_time: appended.log_append_time,
            log_start_offset,
            details: None,
        }
    }

    /// The same with another code.
    pub(crate) fn with_error(self, error: ErrorCode) -> Self {
        Self { error, ..self }
    }
}
