use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::{PartitionIndex, TopicId};

/// A legal topic name: 1 to 249 of `[a-zA-Z0-9._-]`, and neither `.` nor `..`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

/// Why a text is no topic name. Says what Kafka says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    /// The empty text.
    #[error("the topic name is empty")]
    Empty,
    /// `.` and `..` would be directories.
    #[error("the topic name cannot be '.' or '..'")]
    Dots,
    /// Longer than 249 characters.
    #[error("the topic name is longer than 249 characters")]
    TooLong,
    /// A character outside `[a-zA-Z0-9._-]`.
    #[error("the topic name has a character other than ASCII letters, digits, '.', '_' and '-'")]
    Character,
}

impl TopicName {
    /// Longest legal name, in bytes.
    pub const BYTES_MAX: usize = 249;

    /// Checks `text` and wraps it.
    ///
    /// # Errors
    /// When `text` is not a legal topic name.
    pub fn new(text: &str) -> Result<Self, TopicNameError> {
        match text {
            "" => return Err(TopicNameError::Empty),
            "." | ".." => return Err(TopicNameError::Dots),
            _ if text.len() > Self::BYTES_MAX => return Err(TopicNameError::TooLong),
            _ => {}
        }
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if !text.bytes().all(legal) {
            return Err(TopicNameError::Character);
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A partition by name, as people and directories call it: `orders-0`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: TopicName,
    /// The partition's number.
    pub partition: PartitionIndex,
}

impl TopicPartition {
    /// Reads `<topic>-<partition>`, the name of a log's directory.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (topic, partition) = text.rsplit_once('-')?;
        if partition.is_empty() || !partition.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let partition = PartitionIndex::new(partition.parse().ok()?);
        Some(Self {
            topic: TopicName::new(topic).ok()?,
            partition,
        })
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A partition by topic id, which a topic of the same name made later does not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicIdPartition {
    /// The topic's id.
    pub topic_id: TopicId,
    /// The partition's number.
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicIdPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.topic_id, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_kafka_refuses() {
        let long = "x".repeat(250);
        for (text, why) in [
            ("", TopicNameError::Empty),
            ("..", TopicNameError::Dots),
            ("a/b", TopicNameError::Character),
            ("nul\0", TopicNameError::Character),
            (long.as_str(), TopicNameError::TooLong),
        ] {
            assert_eq!(TopicName::new(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn a_directory_name_is_a_partition() {
        let parsed = TopicPartition::parse("many.batches-7").map(|it| it.to_string());
        assert_eq!(parsed.as_deref(), Some("many.batches-7"));
        for text in ["plain", "plain-", "plain-x", "-0", "plain-99999999999"] {
            assert_eq!(TopicPartition::parse(text), None, "{text}");
        }
    }
}
