use std::fmt;

use highwater_protocol::ApiKey;
use highwater_types::{ErrorCode, Millis, Offset};

/// Why something that was asked of a cluster did not happen: what, why, and what to do about it.
///
/// Cheap enough to clone: one error answers every record of a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// None of the addresses could be used.
    #[error("no broker reachable: {tried}; is the cluster up, and is the bootstrap address right?")]
    NoBroker {
        /// Each address with its reason.
        tried: String,
    },
    /// An option that cannot be meant.
    #[error("{key}={value} cannot be used: {why}")]
    Config {
        /// Kafka's key.
        key: &'static str,
        /// What was given.
        value: String,
        /// Why it cannot be used and what can.
        why: String,
    },
    /// A TCP connection could not be made.
    #[error("cannot connect to {peer}: {why}")]
    Connect {
        /// Host and port.
        peer: String,
        /// What the operating system or the resolver says.
        why: String,
    },
    /// A connection ended while an answer was due. The request may have been carried out.
    #[error("the connection to {peer} ended: {why}")]
    Closed {
        /// Host and port.
        peer: String,
        /// Which end closed it and why.
        why: String,
    },
    /// An answer did not come in time. The request may have been carried out.
    #[error("{what} took longer than {limit_ms} ms; the broker is slow, stuck or unreachable")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// The limit.
        limit_ms: u64,
    },
    /// The peer's bytes are not Kafka's protocol, or not the answer to what was asked.
    #[error("{peer} does not speak Kafka's protocol as agreed: {why}")]
    Misbehaved {
        /// Host and port.
        peer: String,
        /// What is wrong with the bytes.
        why: String,
    },
    /// There is no version of an API that both sides know.
    #[error(
        "{peer} offers {api} {theirs}, this client knows {}-{}; use another version of one",
        ours.0,
        ours.1
    )]
    Unsupported {
        /// Host and port.
        peer: String,
        /// The API.
        api: ApiKey,
        /// What the peer offers: `not at all` or a range.
        theirs: String,
        /// The versions of this build, inclusive.
        ours: (i16, i16),
    },
    /// A value that this version of the request cannot carry.
    #[error("cannot ask {peer} for {api}: {why}")]
    Encode {
        /// Host and port.
        peer: String,
        /// The API.
        api: ApiKey,
        /// What cannot be carried.
        why: String,
    },
    /// A broker answered with an error code, perhaps one that this build does not know.
    #[error("{what}: {}{}", Coded(*code), Because(message))]
    Refused {
        /// What was asked.
        what: String,
        /// The code as it came.
        code: ErrorCode,
        /// The broker's own words, if it sent any.
        message: Option<String>,
    },
    /// A record that no batch or request can hold.
    #[error(
        "record of {size_bytes} bytes is larger than {key}={max_bytes}; raise {key} or send less"
    )]
    RecordTooLarge {
        /// What the record takes in a batch of its own.
        size_bytes: usize,
        /// The limit.
        max_bytes: usize,
        /// The option that sets it.
        key: &'static str,
    },
    /// `buffer.memory` was full for all of `max.block.ms`: records come faster than they leave.
    #[error(
        "no room in buffer.memory within max.block.ms={waited_ms}; send slower or raise either"
    )]
    BufferFull {
        /// How long was waited.
        waited_ms: u64,
    },
    /// A record was not acknowledged within `delivery.timeout.ms`. It may be in the log all the
    /// same.
    #[error(
        "{partition}: not acknowledged within delivery.timeout.ms={limit_ms}{}",
        After(last)
    )]
    Expired {
        /// The partition.
        partition: String,
        /// The limit.
        limit_ms: u64,
        /// What went wrong last.
        last: Option<Box<Self>>,
    },
    /// The producer was closed.
    #[error("the producer is closed")]
    ProducerClosed,
    /// Bytes that were fetched are not sound.
    #[error(
        "{partition}: batch at offset {offset} is damaged: {why}; \
         fetch again, or run `highwater log verify` on the broker's data"
    )]
    Corrupt {
        /// The partition.
        partition: String,
        /// Base offset of the batch, or the offset that was asked for.
        offset: Offset,
        /// What is wrong.
        why: String,
    },
    /// The position is outside the log and `auto.offset.reset` is `none`.
    #[error(
        "{partition}: offset {offset} is outside the log; \
         seek, or set auto.offset.reset to earliest or latest"
    )]
    OffsetOutOfRange {
        /// The partition.
        partition: String,
        /// The position.
        offset: Offset,
    },
    /// The group has no committed offset there and `auto.offset.reset` is `none`.
    #[error(
        "group {group} has no committed offset in {partition}; \
         set one with `highwater group reset`, or set auto.offset.reset to earliest or latest"
    )]
    NoCommittedOffset {
        /// The group.
        group: String,
        /// The partition.
        partition: String,
    },
    /// The log was truncated below the position: records that were read are gone.
    #[error(
        "{partition}: the log was truncated to {truncated_to}, below the position {position}; \
         what was read from there on is gone"
    )]
    Truncated {
        /// The partition.
        partition: String,
        /// Where the reader was.
        position: Offset,
        /// Where its history and the log's part.
        truncated_to: Offset,
    },
    /// A name or number that the cluster does not have.
    #[error("{what} does not exist; `highwater topic list` shows what does")]
    Unknown {
        /// Topic or partition.
        what: String,
    },
}

impl ClientError {
    /// The error code, when a broker sent one.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether trying again later may help, as it is or with newer metadata.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Refused { code, .. } => code.is_retriable(),
            Self::Closed { .. }
            | Self::Connect { .. }
            | Self::TimedOut { .. }
            | Self::NoBroker { .. }
            | Self::Unknown { .. } => true,
            Self::Config { .. }
            | Self::Misbehaved { .. }
            | Self::Unsupported { .. }
            | Self::Encode { .. }
            | Self::RecordTooLarge { .. }
            | Self::BufferFull { .. }
            | Self::Expired { .. }
            | Self::ProducerClosed
            | Self::Corrupt { .. }
            | Self::OffsetOutOfRange { .. }
            | Self::NoCommittedOffset { .. }
            | Self::Truncated { .. } => false,
        }
    }

    pub(crate) fn refused(
        what: impl Into<String>,
        code: ErrorCode,
        message: Option<String>,
    ) -> Self {
        let message = message.filter(|message| !message.is_empty());
        Self::Refused {
            what: what.into(),
            code,
            message,
        }
    }

    /// `Ok` for no error, else [`ClientError::Refused`].
    pub(crate) fn check(
        what: impl FnOnce() -> String,
        code: ErrorCode,
        message: Option<String>,
    ) -> Result<(), Self> {
        if code.is_error() {
            Err(Self::refused(what(), code, message))
        } else {
            Ok(())
        }
    }

    pub(crate) fn timed_out(what: impl Into<String>, limit: Millis) -> Self {
        Self::TimedOut {
            what: what.into(),
            limit_ms: limit.as_u64(),
        }
    }
}

/// A code with its number, and what to do where that is known.
struct Coded(ErrorCode);

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(code) = self;
        match code.name() {
            Some(name) => write!(f, "{name} ({})", code.raw())?,
            None => write!(f, "error {}, which this version does not know", code.raw())?,
        }
        remedy(*code).map_or(Ok(()), |remedy| write!(f, " - {remedy}"))
    }
}

fn remedy(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID => {
            "create it, or look at `highwater topic list`"
        }
        ErrorCode::TOPIC_ALREADY_EXISTS => "choose another name, or delete it first",
        ErrorCode::MESSAGE_TOO_LARGE => {
            "send smaller batches, or raise the topic's max.message.bytes"
        }
        ErrorCode::RECORD_LIST_TOO_LARGE => "send smaller batches, or raise segment.bytes",
        ErrorCode::INVALID_TOPIC_EXCEPTION => {
            "topic names have 1 to 249 of letters, digits, '.', '_' and '-'"
        }
        ErrorCode::INVALID_REPLICATION_FACTOR => "it must be between 1 and the number of brokers",
        ErrorCode::INVALID_PARTITIONS => "it must be at least 1",
        ErrorCode::NOT_ENOUGH_REPLICAS | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND => {
            "too few replicas are in sync for min.insync.replicas; start the missing brokers"
        }
        ErrorCode::INVALID_TIMESTAMP => "see message.timestamp.before.max.ms and .after.max.ms",
        ErrorCode::KAFKA_STORAGE_ERROR => "look at the broker's log: a disk or a file failed",
        ErrorCode::NON_EMPTY_GROUP => "the group has members; stop them first",
        ErrorCode::GROUP_ID_NOT_FOUND => "`highwater group list` shows what groups there are",
        ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC => "members read the topic; stop them first",
        ErrorCode::INVALID_SESSION_TIMEOUT => {
            "session.timeout.ms must lie between the broker's group.min.session.timeout.ms and \
             group.max.session.timeout.ms"
        }
        ErrorCode::GROUP_MAX_SIZE_REACHED => "the broker's group.max.size members are in it",
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL => {
            "its members have no assignor in common with this one; \
             see partition.assignment.strategy"
        }
        ErrorCode::TOPIC_AUTHORIZATION_FAILED
        | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
        | ErrorCode::GROUP_AUTHORIZATION_FAILED
        | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED => "the user lacks the right",
        _ => return None,
    })
}

struct Because<'a>(&'a Option<String>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .as_ref()
            .map_or(Ok(()), |message| write!(f, ": {message}"))
    }
}

struct After<'a>(&'a Option<Box<ClientError>>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .as_ref()
            .map_or(Ok(()), |last| write!(f, "; last: {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_future_are_printed() {
        let error = ClientError::refused("create topic t", ErrorCode::new(4711), None);
        let text = error.to_string();
        assert!(
            text.contains("create topic t") && text.contains("4711"),
            "{text}"
        );
        assert!(!error.is_retriable());
    }

    #[test]
    fn a_refusal_says_what_why_and_what_to_do() {
        let code = ErrorCode::TOPIC_ALREADY_EXISTS;
        let error = ClientError::refused("create topic t", code, Some("it is there".to_owned()));
        assert_eq!(
            error.to_string(),
            "create topic t: TOPIC_ALREADY_EXISTS (36) - choose another name, or delete it first: \
             it is there"
        );
    }
}
