//! The three (with the cleaner's, four) files that hold one offset for each log of a directory.

use std::collections::BTreeMap;

use highwater_types::{Offset, PartitionIndex, TopicName, TopicPartition};

use super::text::{self, CheckpointError};

/// Below its offset everything of a log is flushed. Bad or missing: every log is scanned whole.
pub const RECOVERY_POINT_FILE: &str = "recovery-point-offset-checkpoint";
/// The high watermarks. Bad or missing: each starts at its log's start and is learned again.
pub const HIGH_WATERMARK_FILE: &str = "replication-offset-checkpoint";
/// The log starts that are above their first segment's base. Bad or missing: a log starts at its
/// first segment, so deleted records may come back.
pub const LOG_START_FILE: &str = "log-start-offset-checkpoint";
/// How far the cleaner came. Bad or missing: it begins again.
pub const CLEANER_FILE: &str = "cleaner-offset-checkpoint";

/// One of the offset checkpoint files of a log directory: `<topic> <partition> <offset>` lines.
/// `__cluster_metadata-0` is in none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCheckpoint {
    /// The offset of each log, sorted by name.
    pub offsets: BTreeMap<TopicPartition, Offset>,
}

impl OffsetCheckpoint {
    /// Reads the file's bytes. An empty file has no entries, as Kafka leaves it before its first
    /// write. Of two lines for one log the later counts.
    ///
    /// # Errors
    /// When the bytes are no such checkpoint.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let mut offsets = BTreeMap::new();
        for (number, line) in text::lines(bytes)? {
            let (log, offset) = parse(line).ok_or_else(|| text::bad_line(number, line))?;
            offsets.insert(log, offset);
        }
        Ok(Self { offsets })
    }

    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let line = |(log, offset): (&TopicPartition, &Offset)| {
            format!("{} {} {offset}", log.topic, log.partition)
        };
        text::file(self.offsets.iter().map(line))
    }
}

fn parse(line: &str) -> Option<(TopicPartition, Offset)> {
    let mut fields = line.split_ascii_whitespace();
    let topic = TopicName::new(fields.next()?).ok()?;
    let partition = fields.next()?.parse().ok().map(PartitionIndex::new)?;
    let offset = text::offset(fields.next()?)?;
    let is_sound = partition.is_some() && fields.next().is_none();
    is_sound.then_some((TopicPartition { topic, partition }, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        let text = b"0\n2\nheaders 0 30\nplain 2 204\n";
        let read = OffsetCheckpoint::decode(text).expect("good");
        assert_eq!(read.offsets.len(), 2);
        assert_eq!(read.encode(), text);
        assert_eq!(OffsetCheckpoint::default().encode(), b"0\n0\n");
    }

    #[test]
    fn sc_10_an_empty_file_is_an_empty_checkpoint() {
        assert_eq!(
            OffsetCheckpoint::decode(b""),
            Ok(OffsetCheckpoint::default())
        );
    }

    #[test]
    fn sc_10_garbage_is_told_apart() {
        let cases: [(&[u8], CheckpointError); 7] = [
            (&[0; 40], CheckpointError::NotText),
            (&[0xde, 0xad, 0xbe, 0xef], CheckpointError::NotText),
            (
                b"1\n0\n",
                CheckpointError::Version {
                    found: "1".into(),
                    expected: 0,
                },
            ),
            (
                b"0\n3\na 0 1\n",
                CheckpointError::Count { count: 3, found: 1 },
            ),
            (
                b"0\n",
                CheckpointError::Line {
                    line: 2,
                    text: String::new(),
                },
            ),
            (
                b"0\n1\na 0 -1\n",
                CheckpointError::Line {
                    line: 3,
                    text: "a 0 -1".into(),
                },
            ),
            (
                b"0\n1\na 0\n",
                CheckpointError::Line {
                    line: 3,
                    text: "a 0".into(),
                },
            ),
        ];
        for (bytes, why) in cases {
            assert_eq!(OffsetCheckpoint::decode(bytes), Err(why), "{bytes:?}");
        }
    }

    #[test]
    fn a_count_from_outside_reserves_nothing() {
        let bytes = b"0\n18446744073709551615\na 0 1\n";
        let count = u64::MAX;
        assert_eq!(
            OffsetCheckpoint::decode(bytes),
            Err(CheckpointError::Count { count, found: 1 })
        );
    }

    #[test]
    fn kafkas_own_files_read() {
        for set in highwater_fixtures::KAFKA_DATA_SETS {
            for (path, bytes) in highwater_fixtures::kafka_data(set) {
                let name = path
                    .file_name()
                    .and_then(|it| it.to_str())
                    .unwrap_or_default();
                if !name.ends_with("-offset-checkpoint") {
                    continue;
                }
                let read = OffsetCheckpoint::decode(&bytes).expect("Kafka wrote it");
                // The order of Kafka's lines is arbitrary; ours is sorted.
                let sorted = |bytes: &[u8]| {
                    let mut lines: Vec<Vec<u8>> =
                        bytes.split(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
                    lines.sort();
                    lines
                };
                if !bytes.is_empty() {
                    assert_eq!(sorted(&read.encode()), sorted(&bytes), "{}", path.display());
                }
            }
        }
    }
}
