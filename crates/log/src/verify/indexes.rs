//! Offset and time index of a segment against its batches, entry by entry as the walk goes.

use std::iter::Peekable;
use std::vec::IntoIter;

use highwater_types::{Offset, WallMs};

use super::report::{At, BrokerAction, Findings};
use crate::segment::scan::Located;

const OFFSET_ENTRY_BYTES: usize = 8;
const TIME_ENTRY_BYTES: usize = 12;

/// What an index file holds, besides the zeros that fill it up while its segment is active.
struct Entries<const N: usize> {
    entries: Vec<(u64, [u8; N])>,
    has_padding: bool,
}

impl<const N: usize> Entries<N> {
    /// `None` when the bytes are not whole entries.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks::<N>();
        if !rest.is_empty() {
            return None;
        }
        let filled = chunks
            .iter()
            .rposition(|entry| entry.iter().any(|byte| *byte != 0));
        // A first entry may be all zeros only in a file that is all padding.
        let count = filled.map_or(0, |last| last + 1);
        let positions = (0_u64..).step_by(N);
        let entries = positions.zip(chunks.iter().copied()).take(count).collect();
        Some(Self {
            entries,
            has_padding: count < chunks.len(),
        })
    }
}

/// An offset index entry: the last offset of a batch, and where that batch or one before begins.
#[derive(Clone, Copy, Debug)]
struct OffsetEntry {
    at: u64,
    offset: Offset,
    position: u64,
}

#[derive(Clone, Copy, Debug)]
struct TimeEntry {
    at: u64,
    timestamp: WallMs,
    offset: Offset,
}

/// Compares both indexes of one segment with its batches (I-18, SC-11). Of each file the first
/// thing that is wrong is told: it is rebuilt anyway.
#[derive(Debug)]
pub(super) struct IndexCheck {
    /// Whether the segment was rolled: its indexes are then trimmed and complete.
    is_rolled: bool,
    offsets: Peekable<IntoIter<OffsetEntry>>,
    /// An entry whose position was found, and whose offset is still to come.
    awaited: Option<OffsetEntry>,
    times: Peekable<IntoIter<TimeEntry>>,
    last_time: Option<WallMs>,
    greatest: WallMs,
    offset_file: FileCheck,
    time_file: FileCheck,
}

#[derive(Debug)]
struct FileCheck {
    name: String,
    wrong: Option<(At, String)>,
}

impl FileCheck {
    fn wrong(&mut self, at: u64, what: impl Into<String>) {
        if self.wrong.is_none() {
            self.wrong = Some((At::position(at), what.into()));
        }
    }
}

impl IndexCheck {
    /// `index` and `time_index` are the files' bytes, `None` when they are missing.
    pub(super) fn new(
        base: Offset,
        is_rolled: bool,
        index: Option<&[u8]>,
        time_index: Option<&[u8]>,
    ) -> Self {
        let file = |extension| FileCheck {
            name: format!("{:020}.{extension}", base.raw()),
            wrong: None,
        };
        let mut offset_file = file("index");
        let mut time_file = file("timeindex");
        let offsets = decode_offsets(index, base, is_rolled, &mut offset_file);
        let times = decode_times(time_index, base, is_rolled, &mut time_file);
        let last_time = times.last().map(|it| it.timestamp);
        Self {
            is_rolled,
            offsets: offsets.into_iter().peekable(),
            awaited: None,
            times: times.into_iter().peekable(),
            last_time,
            greatest: WallMs::NONE,
            offset_file,
            time_file,
        }
    }

    /// The next good batch of the segment.
    pub(super) fn batch(&mut self, batch: &Located) {
        let last = batch.header.last_offset();
        while let Some(entry) = self.offsets.next_if(|it| it.position <= batch.position) {
            if entry.position < batch.position {
                let what = format!("position {} is not where a batch begins", entry.position);
                self.offset_file.wrong(entry.at, what);
            } else if self.awaited.replace(entry).is_some() {
                self.offset_file
                    .wrong(entry.at, "two entries lead to one batch");
            }
        }
        if let Some(entry) = self.awaited.take_if(|it| it.offset <= last)
            && entry.offset < last
        {
            let what = format!("offset {} is not the last one of a batch", entry.offset);
            self.offset_file.wrong(entry.at, what);
        }
        self.greatest = self.greatest.max(batch.header.max_timestamp);
        while let Some(entry) = self.times.next_if(|it| it.offset <= last) {
            let is_here = entry.offset >= batch.header.base_offset;
            if !is_here || entry.timestamp != batch.header.max_timestamp {
                let what = format!(
                    "says {} for offset {}, the batch there does not",
                    entry.timestamp, entry.offset
                );
                self.time_file.wrong(entry.at, what);
            }
        }
    }

    /// Damage ends in front of `next`: what leads into it cannot be judged.
    pub(super) fn damage(&mut self, next: &Located) {
        let ends_before = |it: &OffsetEntry| it.position < next.position;
        while self.offsets.next_if(ends_before).is_some() {}
        self.awaited = None;
        while self
            .times
            .next_if(|it| it.offset < next.header.base_offset)
            .is_some()
        {}
    }

    /// The segment is over. With damage in it, what follows the damage cannot be judged.
    pub(super) fn end(mut self, is_whole: bool, findings: &mut Findings<'_>) {
        if is_whole {
            self.check_rest();
        }
        for file in [self.offset_file, self.time_file] {
            if let Some((at, what)) = file.wrong {
                findings.repair(BrokerAction::Rebuild, &file.name, at, what);
            }
        }
    }

    fn check_rest(&mut self) {
        if let Some(entry) = self.awaited.or_else(|| self.offsets.peek().copied()) {
            self.offset_file
                .wrong(entry.at, "leads beyond the end of the segment");
        }
        if let Some(entry) = self.times.peek() {
            self.time_file
                .wrong(entry.at, "leads beyond the end of the segment");
        }
        // A rolled segment's last entry has its greatest timestamp: retention relies on it.
        let greatest = Some(self.greatest).filter(|it| it.raw() >= 0);
        if self.is_rolled && self.last_time != greatest {
            let what = format!(
                "the last entry does not have the segment's greatest timestamp, {}",
                self.greatest
            );
            self.time_file.wrong(0, what);
        }
    }
}

fn decode_offsets(
    bytes: Option<&[u8]>,
    base: Offset,
    is_rolled: bool,
    file: &mut FileCheck,
) -> Vec<OffsetEntry> {
    let Some(found) = entries::<OFFSET_ENTRY_BYTES>(bytes, is_rolled, file) else {
        return Vec::new();
    };
    let decode = |(at, [a, b, c, d, e, f, g, h]): (u64, [u8; OFFSET_ENTRY_BYTES])| OffsetEntry {
        at,
        offset: base.plus(i64::from(i32::from_be_bytes([a, b, c, d]))),
        position: u64::from(u32::from_be_bytes([e, f, g, h])),
    };
    let decoded: Vec<OffsetEntry> = found.into_iter().map(decode).collect();
    let rises = |(earlier, later): (&OffsetEntry, &OffsetEntry)| {
        earlier.offset < later.offset && earlier.position < later.position
    };
    let pairs = decoded.iter().zip(decoded.iter().skip(1));
    let falls = pairs
        .clone()
        .find(|(earlier, later)| !rises((earlier, later)));
    if let Some((_, later)) = falls {
        file.wrong(later.at, "entries do not rise");
        return Vec::new();
    }
    if let Some(below) = decoded.first().filter(|it| it.offset < base) {
        file.wrong(below.at, "an offset below the segment's base");
        return Vec::new();
    }
    decoded
}

fn decode_times(
    bytes: Option<&[u8]>,
    base: Offset,
    is_rolled: bool,
    file: &mut FileCheck,
) -> Vec<TimeEntry> {
    let Some(found) = entries::<TIME_ENTRY_BYTES>(bytes, is_rolled, file) else {
        return Vec::new();
    };
    let decode = |(at, entry): (u64, [u8; TIME_ENTRY_BYTES])| {
        let [time @ .., a, b, c, d] = entry;
        TimeEntry {
            at,
            timestamp: WallMs::new(i64::from_be_bytes(time)),
            offset: base.plus(i64::from(i32::from_be_bytes([a, b, c, d]))),
        }
    };
    let decoded: Vec<TimeEntry> = found.into_iter().map(decode).collect();
    let mut pairs = decoded.iter().zip(decoded.iter().skip(1));
    let falls = pairs.find(|(earlier, later)| {
        later.timestamp < earlier.timestamp || later.offset <= earlier.offset
    });
    if let Some((_, later)) = falls {
        file.wrong(later.at, "entries do not rise");
        return Vec::new();
    }
    decoded
}

/// The entries of a file; `None` when it has none, or is not made of entries.
fn entries<const N: usize>(
    bytes: Option<&[u8]>,
    is_rolled: bool,
    file: &mut FileCheck,
) -> Option<Vec<(u64, [u8; N])>> {
    let Some(bytes) = bytes else {
        // The active segment's may wait to be written.
        if is_rolled {
            file.wrong = Some((At::FILE, "missing".to_owned()));
        }
        return None;
    };
    let Some(found) = Entries::<N>::of(bytes) else {
        let what = format!("{} bytes are not a multiple of {N}", bytes.len());
        file.wrong = Some((At::FILE, what));
        return None;
    };
    if is_rolled && found.has_padding {
        let at = u64::try_from(found.entries.len() * N).unwrap_or(u64::MAX);
        file.wrong(at, "filled up with zeros although the segment was rolled");
        return None;
    }
    Some(found.entries)
}
