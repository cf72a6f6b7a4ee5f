//! Producer snapshots and transaction indexes against the state that the batches give.

use std::collections::BTreeMap;
use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile};
use highwater_types::{Offset, ProducerId};

use super::directory::read;
use super::log::{Bounds, Checkpointed};
use super::report::{At, BrokerAction, Findings};
use super::walk::Visitor;
use crate::names::{FileKind, segment_file};
use crate::partition_log::{MARKER_BYTES_MAX, producer_batch};
use crate::producer_state::{MarkerKind, ProducerState};
use crate::segment::scan::{Located, Scanner};
use crate::transaction_index::{AbortedTransaction, TransactionIndex};

/// The producers and transactions that the batches give, and the snapshots that are to agree.
#[derive(Debug)]
pub(super) struct ProducerCheck {
    state: ProducerState,
    /// Sound snapshots that the walk has not come to yet, by their offset.
    snapshots: BTreeMap<Offset, ProducerState>,
    /// What snapshots contradict the batches in, by their offset.
    contradicted: Vec<(Offset, ProducerId)>,
    /// Aborted transactions of the segment that is walked, as the batches have them.
    aborted: Vec<AbortedTransaction>,
    /// Offsets of the abort markers of the segment that is walked.
    abort_markers: Vec<Offset>,
    /// Producers were seen at all.
    has_producers: bool,
    /// Batches may be missing: a snapshot that says otherwise may be right.
    is_blind: bool,
}

impl<F: DiskFile> Visitor<F> for ProducerCheck {
    fn batch(&mut self, batch: &Located, scanner: &Scanner<F>) -> Result<(), DiskError> {
        let header = &batch.header;
        if header.producer_id.is_some() {
            self.compare_up_to(header.base_offset);
            self.has_producers = true;
        }
        let bytes = if header.attributes.is_control() {
            scanner.whole(batch, MARKER_BYTES_MAX)?
        } else {
            Vec::new()
        };
        let seen = producer_batch(header, &bytes);
        if seen.marker.is_some_and(|it| it.kind == MarkerKind::Abort) {
            self.abort_markers.push(header.base_offset);
        }
        let ended = self.state.apply(&seen);
        self.aborted.extend(ended.and_then(|it| it.aborted()));
        Ok(())
    }
}

impl ProducerCheck {
    /// Reads the snapshots of a log.
    pub(super) fn new<D: Disk>(
        disk: &D,
        dir: &Path,
        first_base: Offset,
        snapshots: &[Offset],
        findings: &mut Findings<'_>,
    ) -> Self {
        let mut sound = BTreeMap::new();
        for offset in snapshots.iter().filter(|it| **it >= first_base) {
            let path = segment_file(dir, *offset, FileKind::Snapshot);
            let name = file_name(&path);
            let Some(Some(bytes)) = read(disk, &path, &name, findings) else {
                continue;
            };
            match ProducerState::decode_snapshot(&bytes, *offset) {
                Ok(state) => {
                    sound.insert(*offset, state);
                }
                Err(why) => {
                    let what = format!("{why}; an older one and the batches give the state");
                    findings.repair(BrokerAction::Remove, &name, At::FILE, what);
                }
            }
        }
        // A log that lost its beginning starts from its oldest snapshot there.
        let state = match sound.get(&first_base) {
            Some(snapshot) => snapshot.clone(),
            None => ProducerState::new(first_base),
        };
        Self {
            state,
            snapshots: sound,
            contradicted: Vec::new(),
            aborted: Vec::new(),
            abort_markers: Vec::new(),
            has_producers: false,
            is_blind: false,
        }
    }

    /// Damage or a gap was met.
    pub(super) const fn blind(&mut self) {
        self.is_blind = true;
    }

    /// A segment is over: its transaction index is to list what was aborted in it.
    pub(super) fn end_segment<D: Disk>(
        &mut self,
        disk: &D,
        dir: &Path,
        base: Offset,
        is_whole: bool,
        may_be_compacted: bool,
        findings: &mut Findings<'_>,
    ) {
        let aborted = std::mem::take(&mut self.aborted);
        let markers = std::mem::take(&mut self.abort_markers);
        let path = segment_file(dir, base, FileKind::TxnIndex);
        let name = file_name(&path);
        let Some(bytes) = read(disk, &path, &name, findings) else {
            return;
        };
        let rebuild = BrokerAction::Rebuild;
        let Some(bytes) = bytes else {
            if !aborted.is_empty() {
                let what = format!(
                    "missing, with {} aborted transactions in the segment; Apache Kafka does not \
                     rebuild it after a clean stop",
                    aborted.len()
                );
                findings.repair(rebuild, &name, At::FILE, what);
            }
            return;
        };
        let index = match TransactionIndex::decode(&bytes, base) {
            Ok(index) => index,
            Err(why) => return findings.repair(rebuild, &name, At::FILE, why.to_string()),
        };
        let listed = index.entries();
        let is_listed = |it: &&AbortedTransaction| {
            listed.iter().any(|entry| {
                entry.producer_id == it.producer_id && entry.last_offset == it.last_offset
            })
        };
        if let Some(missing) = aborted.iter().find(|it| !is_listed(it)) {
            let what = format!("the abort of producer {} is not in it", missing.producer_id);
            return findings.repair(rebuild, &name, At::offset(missing.last_offset), what);
        }
        let is_alone = |it: &&AbortedTransaction| !markers.contains(&it.last_offset);
        if is_whole
            && !may_be_compacted
            && let Some(alone) = listed.iter().find(is_alone)
        {
            let what = format!(
                "lists an abort of producer {} that is not there",
                alone.producer_id
            );
            findings.repair(rebuild, &name, At::offset(alone.last_offset), what);
        }
    }

    /// The walk is over.
    pub(super) fn end(
        mut self,
        dir: &Path,
        known: &Checkpointed,
        bounds: &Bounds,
        findings: &mut Findings<'_>,
    ) {
        let has_last = self.snapshots.contains_key(&bounds.end);
        self.compare_up_to(bounds.end);
        for (offset, producer) in &self.contradicted {
            let name = file_name(&segment_file(dir, *offset, FileKind::Snapshot));
            let what = format!("says of producer {producer} what the batches do not");
            findings.repair(BrokerAction::Rebuild, &name, At::FILE, what);
        }
        if !bounds.is_end_sound {
            // What was cut or is missing had the rest.
            return;
        }
        for beyond in self.snapshots.keys() {
            let name = file_name(&segment_file(dir, *beyond, FileKind::Snapshot));
            let what = format!("is beyond the log's end, {}", bounds.end);
            findings.repair(BrokerAction::Remove, &name, At::offset(*beyond), what);
        }
        if known.is_clean && self.has_producers && !has_last {
            let name = file_name(&segment_file(dir, bounds.end, FileKind::Snapshot));
            let what = "missing after a clean stop; Apache Kafka loses the producers' state";
            findings.repair(BrokerAction::Rebuild, &name, At::offset(bounds.end), what);
        }
    }

    /// Compares the snapshots that stand at or below `offset`, which the walk has reached. Those
    /// in between two batches of producers say what the one before them left.
    fn compare_up_to(&mut self, offset: Offset) {
        while let Some((at, snapshot)) = self.snapshots.first_key_value() {
            if *at > offset {
                break;
            }
            if !self.is_blind
                && let Some(producer) = contradiction(snapshot, &self.state)
            {
                self.contradicted.push((*at, producer));
            }
            self.snapshots.pop_first();
        }
    }
}

/// The first producer of `snapshot` that `state` knows better. A producer that only one of them
/// knows proves nothing: it may have expired, or have been written before the log's start.
fn contradiction(snapshot: &ProducerState, state: &ProducerState) -> Option<ProducerId> {
    let differs = |id: ProducerId| {
        let (Some(theirs), Some(ours)) = (snapshot.producer(id), state.producer(id)) else {
            return false;
        };
        theirs.epoch != ours.epoch
            || theirs.last_sequence() != ours.last_sequence()
            || theirs.newest_batch().map(|it| it.last_offset)
                != ours.newest_batch().map(|it| it.last_offset)
    };
    snapshot
        .producers()
        .map(|it| it.producer_id)
        .find(|id| differs(*id))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default()
}
