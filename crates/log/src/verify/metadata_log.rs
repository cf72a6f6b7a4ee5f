//! What only the quorum's log has: quorum-state and metadata snapshots.

use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile as _, OpenMode};
use highwater_records::{Batch, BatchError, ControlType};
use highwater_types::Offset;
use serde_json::Value;

use super::directory::read;
use super::log::{Bounds, LogFiles};
use super::report::{At, BrokerAction, Findings};
use crate::names::snapshot_end;
use crate::recovery::Severity;
use crate::segment::scan::{Found, Scanner};

/// Votes and epoch of this node.
pub(super) const QUORUM_STATE_FILE: &str = "quorum-state";
/// A control batch of a snapshot is not larger.
const CONTROL_BYTES_MAX: usize = 1 << 20;

const REFUSE: (Severity, BrokerAction) = (Severity::Damage, BrokerAction::Refuse);

/// Where the log starts: at its oldest snapshot, whatever else its first segment holds.
pub(super) fn oldest_snapshot(files: &LogFiles) -> Option<Offset> {
    files
        .metadata_snapshots
        .iter()
        .filter_map(|name| snapshot_end(name))
        .min()
}

/// Checks quorum-state and snapshots, and that no record is missing between them and the log.
pub(super) fn check<D: Disk>(
    disk: &D,
    dir: &Path,
    files: &LogFiles,
    bounds: &Bounds,
    findings: &mut Findings<'_>,
) {
    check_quorum_state(disk, dir, files, findings);
    let mut newest: Option<Offset> = None;
    for name in &files.metadata_snapshots {
        match check_snapshot(disk, &dir.join(name)) {
            Ok(None) => newest = newest.max(snapshot_end(name)),
            Ok(Some((position, what))) => {
                let damaged = (Severity::Damage, BrokerAction::Remove);
                findings.add(damaged, name, At::position(position), what);
            }
            Err(why) => findings.add(REFUSE, name, At::FILE, why.to_string()),
        }
    }
    let covered = newest.unwrap_or(Offset::ZERO);
    if bounds.first_base > covered {
        let what = format!(
            "the log begins at {}, and no sound snapshot reaches further than {covered}",
            bounds.first_base
        );
        findings.add(REFUSE, "", At::offset(covered), what);
    }
    if covered > bounds.end {
        let what =
            format!("the newest snapshot ends at {covered}, beyond the log: it begins there");
        findings.repair(BrokerAction::Cut, "", At::offset(bounds.end), what);
    }
}

fn check_quorum_state<D: Disk>(
    disk: &D,
    dir: &Path,
    files: &LogFiles,
    findings: &mut Findings<'_>,
) {
    let file = QUORUM_STATE_FILE;
    if !files.has_quorum_state {
        if !files.segments.is_empty() {
            let what = "missing: this node may have voted and would not know it";
            findings.note(BrokerAction::Nothing, file, what);
        }
        return;
    }
    let Some(bytes) = read(disk, &dir.join(file), file, findings) else {
        return;
    };
    if let Err(what) = quorum_state_fields(&bytes.unwrap_or_default()) {
        findings.add(REFUSE, file, At::FILE, what);
    }
}

/// The fields that both versions of the file have.
fn quorum_state_fields(bytes: &[u8]) -> Result<(), String> {
    let json: Value = serde_json::from_slice(bytes).map_err(|_| "it is not JSON".to_owned())?;
    for key in ["leaderId", "leaderEpoch", "votedId"] {
        if json.get(key).and_then(Value::as_i64).is_none() {
            return Err(format!("it has no number '{key}'"));
        }
    }
    match json.get("data_version").and_then(Value::as_i64) {
        Some(0 | 1) => Ok(()),
        _ => Err("it has no data_version 0 or 1".to_owned()),
    }
}

/// Where and what is wrong with a snapshot; `None` when it is sound: whole batches, a header
/// first and a footer last.
fn check_snapshot<D: Disk>(
    disk: &D,
    path: &Path,
) -> Result<Option<(u64, &'static str)>, DiskError> {
    let file = disk.open(path, OpenMode::Read)?;
    let size = file.len()?;
    let mut scanner = Scanner::bodies(file, Offset::ZERO, size);
    let (mut at, mut expected) = (0, Offset::ZERO);
    let mut last = None;
    loop {
        match scanner.batch_at(at, expected)? {
            Found::Batch(batch) => {
                last = if batch.header.attributes.is_control() {
                    let bytes = scanner.whole(&batch, CONTROL_BYTES_MAX)?;
                    first_control_type(&bytes).ok()
                } else {
                    None
                };
                if at == 0 && last != Some(ControlType::SnapshotHeader) {
                    return Ok(Some((0, "it does not begin with a snapshot header")));
                }
                at = batch.end();
                expected = batch.header.next_offset();
            }
            Found::End if last == Some(ControlType::SnapshotFooter) => return Ok(None),
            Found::End => return Ok(Some((at, "it does not end with a snapshot footer"))),
            Found::Bad(what) => return Ok(Some((at, what))),
        }
    }
}

fn first_control_type(bytes: &[u8]) -> Result<ControlType, BatchError> {
    let open = Batch::parse(bytes)?.open(CONTROL_BYTES_MAX as u64)?;
    let first = open.records().next();
    let record = first.transpose()?.ok_or(BatchError::RecordCount {
        record_count: 0,
        last_offset_delta: 0,
    })?;
    ControlType::of_key(record.key)
}
