//! `damage-checkpoint` of a log: `<from> <to>` lines, offsets that are known to be damaged.
//!
//! The one file that Apache Kafka does not have; it is there only while there is something in it.
//! After a clean stop nobody reads the batches, and below the recovery point nobody ever does, so
//! what an earlier recovery found would be forgotten and bad bytes sent. The means that Kafka's
//! own files offer are worse: without the marker of the clean stop every log of the directory
//! would be scanned, and with a recovery point in front of the damage, or without the index of
//! its segment, Kafka would cut the log there, should it ever take the directory over. Files whose
//! names it does not know it leaves alone.

use super::text::{self, CheckpointError};
use crate::damage::DamagedRange;

/// The file's name. Missing: no damage is known. Bad: as if missing.
pub const FILE: &str = "damage-checkpoint";

/// Reads the file's bytes.
///
/// # Errors
/// When the bytes are no such checkpoint.
pub fn decode(bytes: &[u8]) -> Result<Vec<DamagedRange>, CheckpointError> {
    let lines = text::lines(bytes)?.into_iter();
    lines
        .map(|(number, line)| parse(line).ok_or_else(|| text::bad_line(number, line)))
        .collect()
}

/// The file's bytes.
#[must_use]
pub fn encode(ranges: &[DamagedRange]) -> Vec<u8> {
    text::file(ranges.iter().map(|it| format!("{} {}", it.from, it.to)))
}

fn parse(line: &str) -> Option<DamagedRange> {
    let (from, to) = line.trim().split_once(' ')?;
    let (from, to) = (text::offset(from)?, text::offset(to)?);
    (from < to).then_some(DamagedRange { from, to })
}

#[cfg(test)]
mod tests {
    use highwater_types::Offset;

    use super::*;

    #[test]
    fn ranges_are_written_and_read() {
        let range = |from, to| DamagedRange {
            from: Offset::new(from),
            to: Offset::new(to),
        };
        let ranges = vec![range(3, 5), range(100, 110)];
        let bytes = encode(&ranges);
        assert_eq!(bytes, b"0\n2\n3 5\n100 110\n");
        assert_eq!(decode(&bytes), Ok(ranges));
        assert!(decode(b"0\n1\n5 5\n").is_err());
        assert!(decode(b"0\n2\n3 5\n").is_err());
    }
}
