//! `high-watermark-checkpoint` of the metadata log: an offset below which every record was flushed
//! and committed.
//!
//! Apache Kafka has no such file, and leaves files alone whose names it does not know. Without
//! it nobody could tell rot in the newest records of the metadata from the torn tail of a loss of
//! power, and committed metadata would be cut with all that follows it. That batches follow is no
//! proof: while one flush is under way more is appended, and the disk may write that first.
//!
//! The file is overwritten in place in the page cache once a flush is done, and never flushed
//! itself: whatever of it survives was true. It is `0`, the offset in 20 digits, and the CRC-32C
//! of these digits in hexadecimal, a line each; torn bytes do not pass for another offset.

use highwater_types::Offset;

/// The file's name. Missing or bad: nothing is known.
pub const FILE: &str = "high-watermark-checkpoint";

/// Reads the file's bytes.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Offset> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.strip_prefix("0\n")?.get(..20)?;
    let offset = digits.parse().ok().filter(|offset| *offset >= 0)?;
    (encode(Offset::new(offset)) == bytes).then(|| Offset::new(offset))
}

/// The file's bytes, as many for every offset.
#[must_use]
pub fn encode(offset: Offset) -> Vec<u8> {
    let digits = format!("{:020}", offset.raw());
    let crc = crc32c::crc32c(digits.as_bytes());
    format!("0\n{digits}\n{crc:08x}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_bytes_are_no_offset() {
        let (old, new) = (encode(Offset::new(1234)), encode(Offset::new(1301)));
        assert_eq!(decode(&old), Some(Offset::new(1234)));
        assert_eq!(old.len(), new.len());
        for at in 0..=old.len() {
            let (new_first, old_rest) = (&new[..at], &old[at..]);
            let torn = [new_first, old_rest].concat();
            if torn != old && torn != new {
                assert_eq!(decode(&torn), None, "{at}");
            }
            assert_eq!(decode(&old[..at]).is_some(), at == old.len());
        }
        assert_eq!(decode(&[0; 31]), None);
        assert_eq!(decode(b"0\n-0000000000000000001\n00000000\n"), None);
    }
}
