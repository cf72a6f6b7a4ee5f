use highwater_types::{Offset, ProducerId};

/// One aborted transaction in one segment: 34 bytes of a `.txnindex` file, all big-endian.
///
/// | bytes | field |
/// |---|---|
/// | 0..2 | version, 0 |
/// | 2..10 | producer id |
/// | 10..18 | first offset (inclusive) |
/// | 18..26 | last offset: that of the abort marker (inclusive) |
/// | 26..34 | last stable offset once the abort was applied |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Who aborted.
    pub producer_id: ProducerId,
    /// The first offset of the transaction in this partition.
    pub first_offset: Offset,
    /// The abort marker's offset.
    pub last_offset: Offset,
    /// The last stable offset right after the abort: no transaction below it is undecided.
    pub last_stable_offset: Offset,
}

/// The aborted transactions whose markers lie in one segment. The file exists only once there is
/// one.
///
/// Pure: its owner writes [`AbortedTransaction::encode`] at the end of the file after an append,
/// and cuts the file to [`TransactionIndex::file_bytes`] after a truncation.
///
/// Invariant: last offsets rise strictly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionIndex {
    entries: Vec<AbortedTransaction>,
}

/// What [`TransactionIndex::collect`] found in one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbortedInRange {
    /// The aborted transactions that touch the range, in the order of their markers.
    pub transactions: Vec<AbortedTransaction>,
    /// Whether later segments cannot add any: an entry's last stable offset is at or beyond the
    /// range's end.
    pub is_complete: bool,
}

/// Why bytes are not a transaction index. The remedy is to rebuild it from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionIndexError {
    /// The file does not end with a whole entry.
    #[error("the file has {bytes} bytes, which is not a multiple of 34")]
    Length {
        /// The file's length.
        bytes: usize,
    },
    /// An entry has a version other than 0.
    #[error("entry {entry} has version {version}, 0 is expected")]
    Version {
        /// Counted from 0.
        entry: usize,
        /// What it has.
        version: i16,
    },
    /// An entry contradicts itself, the segment or the entry before.
    #[error("entry {entry} contradicts itself, its segment or the entry before it")]
    Order {
        /// Counted from 0.
        entry: usize,
    },
}

impl AbortedTransaction {
    /// Bytes of an entry in the file.
    pub const BYTES: usize = 34;

    /// The entry as it is in the file.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [
            self.producer_id.raw(),
            self.first_offset.raw(),
            self.last_offset.raw(),
            self.last_stable_offset.raw(),
        ];
        let places = bytes.iter_mut().skip(2);
        for (to, from) in places.zip(fields.iter().flat_map(|field| field.to_be_bytes())) {
            *to = from;
        }
        bytes
    }

    fn decode(bytes: &[u8; Self::BYTES]) -> (i16, Self) {
        let field = |at: usize| {
            let field = bytes.get(at..at + 8).and_then(|it| it.try_into().ok());
            i64::from_be_bytes(field.expect("34 bytes hold every field"))
        };
        let [high, low, ..] = *bytes;
        let entry = Self {
            producer_id: ProducerId::new(field(2)),
            first_offset: Offset::new(field(10)),
            last_offset: Offset::new(field(18)),
            last_stable_offset: Offset::new(field(26)),
        };
        (i16::from_be_bytes([high, low]), entry)
    }

    /// Whether the transaction has records in `from..up_to`.
    #[must_use]
    pub fn touches(&self, from: Offset, up_to: Offset) -> bool {
        self.last_offset >= from && self.first_offset < up_to
    }
}

impl TransactionIndex {
    /// An index without entries, as a segment without a file has.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Reads a `.txnindex` file of the segment that begins at `base_offset`.
    ///
    /// # Errors
    /// When the bytes are no such index; it is then to be rebuilt from the log.
    pub fn decode(bytes: &[u8], base_offset: Offset) -> Result<Self, TransactionIndexError> {
        let (chunks, rest) = bytes.as_chunks::<{ AbortedTransaction::BYTES }>();
        if !rest.is_empty() {
            return Err(TransactionIndexError::Length { bytes: bytes.len() });
        }
        let mut entries: Vec<AbortedTransaction> = Vec::with_capacity(chunks.len());
        for (nth, chunk) in chunks.iter().enumerate() {
            let (version, entry) = AbortedTransaction::decode(chunk);
            if version != 0 {
                return Err(TransactionIndexError::Version {
                    entry: nth,
                    version,
                });
            }
            let follows = entries
                .last()
                .is_none_or(|last| last.last_offset < entry.last_offset);
            let is_sound = entry.producer_id.is_some()
                && Offset::ZERO <= entry.first_offset
                && entry.first_offset <= entry.last_offset
                && base_offset <= entry.last_offset
                && Offset::ZERO <= entry.last_stable_offset;
            if !follows || !is_sound {
                return Err(TransactionIndexError::Order { entry: nth });
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }

    /// The whole file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.entries
            .iter()
            .flat_map(AbortedTransaction::encode)
            .collect()
    }

    /// Bytes of the file; also the position at which the next entry is written.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let bytes = self.entries.len().saturating_mul(AbortedTransaction::BYTES);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Adds a transaction whose abort marker was just appended.
    ///
    /// # Panics
    /// When its marker is not beyond the last one's: offsets of a log rise.
    pub fn append(&mut self, entry: AbortedTransaction) {
        if let Some(last) = self.entries.last() {
            assert!(
                last.last_offset < entry.last_offset,
                "abort marker at {} after one at {}",
                entry.last_offset,
                last.last_offset
            );
        }
        self.entries.push(entry);
    }

    /// The log now ends at `end`: drops the transactions whose marker is cut. Returns whether the
    /// entries changed.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        let keep = self.entries.partition_point(|it| it.last_offset < end);
        let changed = keep < self.entries.len();
        self.entries.truncate(keep);
        changed
    }

    /// The aborted transactions with records in `from..up_to`. The caller goes on with later
    /// segments until one is complete.
    #[must_use]
    pub fn collect(&self, from: Offset, up_to: Offset) -> AbortedInRange {
        let mut found = AbortedInRange::default();
        for entry in &self.entries {
            if entry.touches(from, up_to) {
                found.transactions.push(*entry);
            }
            if entry.last_stable_offset >= up_to {
                found.is_complete = true;
                break;
            }
        }
        found
    }

    /// The entries, in the order of their markers.
    #[must_use]
    pub fn entries(&self) -> &[AbortedTransaction] {
        &self.entries
    }

    /// Whether there is no entry, and so no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn aborted(id: i64, first: i64, last: i64, last_stable: i64) -> AbortedTransaction {
        AbortedTransaction {
            producer_id: ProducerId::new(id),
            first_offset: Offset::new(first),
            last_offset: Offset::new(last),
            last_stable_offset: Offset::new(last_stable),
        }
    }

    fn index() -> TransactionIndex {
        let mut index = TransactionIndex::new();
        for entry in [
            aborted(5, 0, 10, 11),
            aborted(6, 8, 20, 15),
            aborted(7, 15, 30, 31),
        ] {
            index.append(entry);
        }
        index
    }

    fn ids(found: &AbortedInRange) -> Vec<i64> {
        found
            .transactions
            .iter()
            .map(|it| it.producer_id.raw())
            .collect()
    }

    #[test]
    fn finds_what_touches_the_range() {
        for (from, up_to, expected, complete) in [
            (0, 8, &[5][..], true),
            (0, 9, &[5][..], true),
            (0, 12, &[5, 6][..], true),
            (11, 14, &[6][..], true),
            (11, 31, &[6, 7][..], true),
            (31, 40, &[][..], false),
            (0, 99, &[5, 6, 7][..], false),
        ] {
            let found = index().collect(Offset::new(from), Offset::new(up_to));
            assert_eq!(ids(&found), expected, "{from}..{up_to}");
            assert_eq!(found.is_complete, complete, "{from}..{up_to}");
        }
    }

    #[test]
    fn a_cut_takes_the_markers_beyond_it() {
        let mut it = index();
        assert!(!it.truncate_from_end(Offset::new(31)));
        assert!(it.truncate_from_end(Offset::new(30)));
        assert_eq!(it.file_bytes(), 68);
        assert!(it.truncate_from_end(Offset::new(10)));
        assert!(it.is_empty());
    }

    #[test]
    fn bytes_read_back_and_damage_is_named() {
        let bytes = index().encode();
        assert_eq!(TransactionIndex::decode(&bytes, Offset::ZERO), Ok(index()));
        assert_eq!(
            TransactionIndex::decode(&bytes[..50], Offset::ZERO),
            Err(TransactionIndexError::Length { bytes: 50 })
        );
        assert_eq!(
            TransactionIndex::decode(&bytes, Offset::new(11)),
            Err(TransactionIndexError::Order { entry: 0 })
        );
        let mut versioned = bytes.clone();
        versioned[35] = 9;
        assert_eq!(
            TransactionIndex::decode(&versioned, Offset::ZERO),
            Err(TransactionIndexError::Version {
                entry: 1,
                version: 9
            })
        );
        let twice = [bytes.clone(), bytes].concat();
        assert_eq!(
            TransactionIndex::decode(&twice, Offset::ZERO),
            Err(TransactionIndexError::Order { entry: 3 })
        );
    }

    #[test]
    fn kafkas_own_files_read_and_write_back() {
        let files = highwater_fixtures::kafka_data("one-node-clean");
        let mut seen = 0;
        for (path, bytes) in &files {
            if path.extension().is_none_or(|it| it != "txnindex") {
                continue;
            }
            let base = path
                .file_stem()
                .and_then(|it| it.to_str())
                .expect("a numbered file");
            let base = Offset::new(base.parse().expect("a numbered file"));
            let index = TransactionIndex::decode(bytes, base).expect("Kafka wrote it");
            assert_eq!(&index.encode(), bytes, "{}", path.display());
            seen += index.entries().len();
        }
        assert_eq!(seen, 14);
        let txn = &files[Path::new("data/txn-0/00000000000000000007.txnindex")];
        let txn = TransactionIndex::decode(txn, Offset::new(7)).expect("Kafka wrote it");
        assert_eq!(txn.entries()[0], aborted(10, 3, 11, 8));
        assert_eq!(txn.entries()[1], aborted(9, 8, 14, 12));
    }
}
