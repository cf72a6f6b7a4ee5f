//! `leader-epoch-checkpoint` of a log: `<epoch> <start offset>` lines.

use highwater_types::{EpochEntry, LeaderEpoch};

use super::text::{self, CheckpointError};
use crate::leader_epoch_cache::LeaderEpochCache;

/// The file's name. Bad, missing or contradicted by the log: rebuilt from the batches.
pub const FILE: &str = "leader-epoch-checkpoint";

/// Reads the file's bytes. An empty file has no entries.
///
/// # Errors
/// When the bytes are no such checkpoint, or their entries do not rise.
pub fn decode(bytes: &[u8]) -> Result<LeaderEpochCache, CheckpointError> {
    let mut entries = Vec::new();
    for (number, line) in text::lines(bytes)? {
        entries.push(parse(line).ok_or_else(|| text::bad_line(number, line))?);
    }
    LeaderEpochCache::from_entries(entries).ok_or(CheckpointError::Order)
}

/// The file's bytes.
#[must_use]
pub fn encode(cache: &LeaderEpochCache) -> Vec<u8> {
    text::file(
        cache
            .entries()
            .iter()
            .map(|it| format!("{} {}", it.epoch, it.start_offset)),
    )
}

fn parse(line: &str) -> Option<EpochEntry> {
    let mut fields = line.split_ascii_whitespace();
    let epoch = fields
        .next()?
        .parse()
        .ok()
        .filter(|raw| *raw >= 0)
        .map(LeaderEpoch::new)?;
    let start_offset = text::offset(fields.next()?)?;
    fields.next().is_none().then_some(EpochEntry {
        epoch,
        start_offset,
    })
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
                    let cache = decode(&bytes).expect("Kafka wrote it");
                    if bytes.is_empty() {
                        // As a fresh log has it.
                        assert!(cache.entries().is_empty());
                        continue;
                    }
                    assert_eq!(encode(&cache), bytes, "{}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen}");
        assert_eq!(encode(&LeaderEpochCache::new()), b"0\n0\n");
    }

    #[test]
    fn sc_09_short_empty_and_contradicting_files() {
        assert_eq!(decode(b""), Ok(LeaderEpochCache::new()));
        let short = CheckpointError::Count { count: 3, found: 2 };
        assert_eq!(decode(b"0\n3\n1 0\n2 50\n"), Err(short));
        assert_eq!(decode(b"0\n2\n2 50\n1 0\n"), Err(CheckpointError::Order));
        let line = CheckpointError::Line {
            line: 3,
            text: "1 x".into(),
        };
        assert_eq!(decode(b"0\n1\n1 x\n"), Err(line));
    }
}
