//! I-19: the metadata log of each node, as far as it is committed there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use highwater_disk::{Disk as _, DiskFile as _, MemDisk, OpenMode};
use highwater_records::stored::MetadataRecord;
use highwater_records::{Batch, BatchHeader};
use highwater_types::{NodeId, Offset};

use super::marks::{BatchMark, Marks, in_words};
use super::verdict::Verdicts;

const FOLDER: &str = "__cluster_metadata-0";
/// Output bound for a batch of metadata.
const BATCH_BYTES_MAX: u64 = 8 << 20;

/// Every node's metadata log, and the one history that all of them have to tell.
#[derive(Debug, Default)]
pub(super) struct MetadataLogs {
    nodes: BTreeMap<NodeId, Followed>,
    committed: Marks,
}

/// How far a node's log was followed.
#[derive(Debug, Default)]
struct Followed {
    /// As the node last said it.
    high_watermark: Offset,
    /// The log directory, once it was found.
    disk: Option<usize>,
    /// The segment, by base offset, and how many of its bytes were seen.
    at: (Offset, u64),
    /// Everything below it was seen.
    end: Offset,
}

impl MetadataLogs {
    /// Looks at what became committed at a node, and gives the records that nobody committed
    /// before.
    pub(super) fn follow(
        &mut self,
        node: NodeId,
        disks: &[MemDisk],
        high_watermark: Offset,
        verdicts: &mut Verdicts,
    ) -> Vec<MetadataRecord> {
        let followed = self.nodes.entry(node).or_default();
        if followed.high_watermark == high_watermark {
            return Vec::new();
        }
        followed.high_watermark = high_watermark;
        let mut records = Vec::new();
        while let Some(bytes) = followed.next_bytes(disks) {
            let mut rest = bytes.as_slice();
            while let Ok(batch) = Batch::parse(rest) {
                let header = batch.header();
                if header.next_offset() > high_watermark {
                    return records;
                }
                rest = rest.get(batch.size_bytes()..).unwrap_or_default();
                followed.at.1 += batch.size_bytes() as u64;
                followed.end = header.next_offset();
                let mark = mark_of(header);
                if self.committed.end().is_none_or(|end| mark.base >= end) {
                    records.extend(records_of(&batch));
                    self.committed.push(mark);
                } else if self.committed.at(mark.base) != Some(&mark) {
                    let other = in_words(self.committed.at(mark.base));
                    let why = format!("{mark} is committed here, but elsewhere {other}");
                    verdicts.broken("I-19", format!("metadata of {node}"), why);
                }
            }
            if followed.end >= high_watermark {
                break;
            }
        }
        records
    }
}

impl Followed {
    /// The bytes behind what was seen, of this segment or of the next; `None` when there is
    /// nothing more.
    fn next_bytes(&mut self, disks: &[MemDisk]) -> Option<Vec<u8>> {
        let found = || disks.iter().position(|disk| !segments(disk).is_empty());
        let at = self.disk.or_else(found)?;
        self.disk = Some(at);
        let disk = disks.get(at)?;
        if let Some(bytes) = read(disk, self.at).filter(|bytes| !bytes.is_empty()) {
            return Some(bytes);
        }
        // A snapshot may have taken the place of what was there.
        let next = segments(disk).into_iter().find(|base| *base >= self.end)?;
        if next == self.at.0 {
            return None;
        }
        self.at = (next, 0);
        self.end = next;
        read(disk, self.at).filter(|bytes| !bytes.is_empty())
    }
}

fn segments(disk: &MemDisk) -> Vec<Offset> {
    let listed = disk.session().list(&PathBuf::from(FOLDER));
    let names = listed.unwrap_or_default().into_iter().map(|it| it.name);
    let base = |name: String| name.strip_suffix(".log")?.parse().ok().map(Offset::new);
    names.filter_map(base).collect()
}

fn read(disk: &MemDisk, (base, from): (Offset, u64)) -> Option<Vec<u8>> {
    let path = PathBuf::from(FOLDER).join(format!("{:020}.log", base.raw()));
    let file = disk.session().open(&path, OpenMode::Read).ok()?;
    let length = file.len().ok()?.checked_sub(from)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let read = file.read_at(from, &mut bytes).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

fn mark_of(header: &BatchHeader) -> BatchMark {
    BatchMark {
        base: header.base_offset,
        next: header.next_offset(),
        epoch: header.leader_epoch,
        crc: header.crc,
        is_idempotent: false,
        values: Vec::new(),
        bytes: None,
    }
}

fn records_of(batch: &Batch<'_>) -> Vec<MetadataRecord> {
    if batch.header().attributes.is_control() {
        return Vec::new();
    }
    let open = batch.open(BATCH_BYTES_MAX).expect("our own batch");
    let records = open.records().map(|record| {
        let record = record.expect("our own record");
        let value = record.value.expect("a record of metadata has a value");
        MetadataRecord::decode_value(value)
            .expect("our own record")
            .0
    });
    records.collect()
}
