//! `partition.metadata` of a log: which topic, of all that had its name, the log belongs to.

use highwater_types::TopicId;

use super::text::{self, CheckpointError};

/// The file's name. Bad: the log is set aside. Missing: Kafka takes the log for a stray one.
pub const FILE: &str = "partition.metadata";

/// Reads the file's bytes.
///
/// # Errors
/// When version or topic id is missing or wrong.
pub fn decode(bytes: &[u8]) -> Result<TopicId, CheckpointError> {
    let text = text::text(bytes)?;
    if text.trim().is_empty() {
        return Err(CheckpointError::Empty);
    }
    let mut version = None;
    let mut topic_id = None;
    for (line, number) in text.lines().zip(1_usize..) {
        match line.split_once(": ") {
            Some(("version", value)) => version = Some(value.trim()),
            Some(("topic_id", value)) => topic_id = Some(value.trim()),
            _ if line.trim().is_empty() => {}
            _ => return Err(text::bad_line(number, line)),
        }
    }
    let version = version.ok_or(CheckpointError::Missing { key: "version" })?;
    if version != "0" {
        return Err(CheckpointError::Version {
            found: text::clip(version),
            expected: 0,
        });
    }
    let topic_id = topic_id.ok_or(CheckpointError::Missing { key: "topic_id" })?;
    let parsed: Option<TopicId> = topic_id.parse().ok().filter(|it: &TopicId| !it.is_zero());
    parsed.ok_or_else(|| CheckpointError::Value {
        key: "topic_id",
        value: text::clip(topic_id),
    })
}

/// The file's bytes: two lines, the last one without an end.
#[must_use]
pub fn encode(topic_id: TopicId) -> Vec<u8> {
    format!("version: 0\ntopic_id: {topic_id}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_own_files_read_and_write_back() {
        let mut seen = 0;
        for set in highwater_fixtures::KAFKA_DATA_SETS {
            for (path, bytes) in highwater_fixtures::kafka_data(set) {
                if path.file_name().is_some_and(|name| name == FILE) {
                    let topic_id = decode(&bytes).expect("Kafka wrote it");
                    assert_eq!(encode(topic_id), bytes, "{}", path.display());
                    let is_metadata = path.starts_with("data/__cluster_metadata-0");
                    assert!(!is_metadata || topic_id == TopicId::CLUSTER_METADATA);
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn sc_10_damage_is_told_apart() {
        assert_eq!(decode(b""), Err(CheckpointError::Empty));
        assert_eq!(decode(&[0; 44]), Err(CheckpointError::NotText));
        assert_eq!(
            decode(b"version: 0\n"),
            Err(CheckpointError::Missing { key: "topic_id" })
        );
        let version = CheckpointError::Version {
            found: "7".into(),
            expected: 0,
        };
        assert_eq!(decode(b"version: 7\ntopic_id: x"), Err(version));
        let value = CheckpointError::Value {
            key: "topic_id",
            value: "AAAA".into(),
        };
        assert_eq!(decode(b"version: 0\ntopic_id: AAAA"), Err(value));
    }
}
