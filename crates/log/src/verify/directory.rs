//! The files of a log directory itself, and which directories in it are logs.

use std::collections::BTreeMap;
use std::path::Path;

use highwater_disk::{Disk, DiskError, EntryKind};
use highwater_types::{BrokerEpoch, DirectoryId, Offset, TopicPartition};

use super::log::{Bounds, Checkpointed, check_log};
use super::report::{At, BrokerAction, Findings, VerifyReport};
use crate::checkpoint::{
    CheckpointError, CleanShutdown, MetaProperties, OffsetCheckpoint, clean_shutdown,
    meta_properties, offsets,
};
use crate::recovery::Severity;

/// The log of the quorum: in no checkpoint file, and with rules of its own.
pub(super) const METADATA_LOG: &str = "__cluster_metadata-0";
const LOCK_FILE: &str = ".lock";
const BOOTSTRAP_FILE: &str = "bootstrap.checkpoint";

const REFUSE: (Severity, BrokerAction) = (Severity::Damage, BrokerAction::Refuse);

/// The identities of the directories of one node agree.
pub(super) fn check_identities<D: Disk>(disks: &[D], report: &mut VerifyReport) {
    let mut first: Option<MetaProperties> = None;
    let mut seen: Vec<DirectoryId> = Vec::new();
    let mut clean_epochs: Vec<Option<BrokerEpoch>> = Vec::new();
    for disk in disks {
        clean_epochs.push(clean_epoch(disk));
        let mut findings = Findings::new(report, disk.root(), "");
        let Some(meta) = check_identity(disk, &mut findings) else {
            continue;
        };
        if let Some(id) = meta.directory_id {
            if seen.contains(&id) {
                let what = format!("another directory of the node has directory.id {id} too");
                findings.add(REFUSE, meta_properties::FILE, At::FILE, what);
            }
            seen.push(id);
        }
        let first = first.get_or_insert_with(|| meta.clone());
        for (key, ours, theirs) in [
            ("cluster.id", &meta.cluster_id, &first.cluster_id),
            (
                "node.id",
                &meta.node_id.to_string(),
                &first.node_id.to_string(),
            ),
        ] {
            if ours != theirs {
                let what = format!("{key} is {ours}, in another directory of the node {theirs}");
                findings.add(REFUSE, meta_properties::FILE, At::FILE, what);
            }
        }
    }
    clean_epochs.dedup();
    if clean_epochs.len() > 1 {
        for disk in disks {
            let what = "the directories do not agree on the last stop: its epoch does not count";
            let mut findings = Findings::new(report, disk.root(), "");
            findings.note(BrokerAction::Nothing, clean_shutdown::FILE, what);
        }
    }
}

fn check_identity<D: Disk>(disk: &D, findings: &mut Findings<'_>) -> Option<MetaProperties> {
    let file = meta_properties::FILE;
    let bytes = match read(disk, Path::new(file), file, findings) {
        Some(Some(bytes)) => bytes,
        Some(None) => {
            let what = "missing: the directory is not formatted";
            findings.add(REFUSE, file, At::FILE, what);
            return None;
        }
        None => return None,
    };
    match MetaProperties::decode(&bytes) {
        Ok(meta) => Some(meta),
        Err(why) => {
            findings.add(REFUSE, file, At::FILE, why.to_string());
            None
        }
    }
}

/// No log lies in two directories.
pub(super) fn check_doubles<D: Disk>(
    disks: &[D],
    report: &mut VerifyReport,
) -> Result<(), DiskError> {
    let mut homes: BTreeMap<String, &Path> = BTreeMap::new();
    for disk in disks {
        for entry in disk.list(Path::new(""))? {
            let is_log =
                entry.kind == EntryKind::Dir && TopicPartition::parse(&entry.name).is_some();
            if !is_log {
                continue;
            }
            if let Some(other) = homes.insert(entry.name.clone(), disk.root()) {
                let mut findings = Findings::new(report, disk.root(), &entry.name);
                let what = format!("the log is in {} too", other.display());
                findings.add(REFUSE, "", At::FILE, what);
            }
        }
    }
    Ok(())
}

/// One log directory with all its logs.
pub(super) fn check<D: Disk>(
    disk: &D,
    report: &mut VerifyReport,
    progress: &dyn Fn(u64),
) -> Result<(), DiskError> {
    let entries = disk.list(Path::new(""))?;
    let mut findings = Findings::new(report, disk.root(), "");
    let is_clean = check_stop(disk, &mut findings);
    let has_logs = entries.iter().any(|entry| {
        let is_log = TopicPartition::parse(&entry.name).is_some();
        entry.kind == EntryKind::Dir && is_log && entry.name != METADATA_LOG
    });
    let checkpoints = check_checkpoints(disk, has_logs, &mut findings);
    let mut logs = Vec::new();
    for entry in &entries {
        match entry.kind {
            EntryKind::File => check_file(&entry.name, &mut findings),
            EntryKind::Dir => match TopicPartition::parse(&entry.name) {
                Some(log) => logs.push((entry.name.clone(), log)),
                None => check_other_dir(&entry.name, &mut findings),
            },
        }
    }
    let mut ends = BTreeMap::new();
    for (name, log) in &logs {
        let checkpointed = checkpoints.of(log, is_clean, name == METADATA_LOG);
        let mut findings = Findings::new(report, disk.root(), name);
        let bounds = check_log(
            disk,
            Path::new(name),
            &checkpointed,
            &mut findings,
            progress,
        );
        ends.insert(log.clone(), bounds);
    }
    let mut findings = Findings::new(report, disk.root(), "");
    checkpoints.check_names(&ends, &mut findings);
    Ok(())
}

/// Whether the last stop was clean.
fn check_stop<D: Disk>(disk: &D, findings: &mut Findings<'_>) -> bool {
    let file = clean_shutdown::FILE;
    let Some(bytes) = read(disk, Path::new(file), file, findings) else {
        return false;
    };
    match bytes.map(|bytes| CleanShutdown::decode(&bytes)) {
        Some(Ok(_)) => true,
        Some(Err(why)) => {
            let what = format!("{why}: the stop does not count as clean");
            findings.repair(BrokerAction::Remove, file, At::FILE, what);
            false
        }
        None => {
            let what = "missing: the server runs, never ran, or was not stopped cleanly";
            findings.note(BrokerAction::Nothing, file, what);
            false
        }
    }
}

fn clean_epoch<D: Disk>(disk: &D) -> Option<BrokerEpoch> {
    let bytes = disk.read(Path::new(clean_shutdown::FILE)).ok().flatten()?;
    CleanShutdown::decode(&bytes).ok().map(|it| it.broker_epoch)
}

fn check_file(name: &str, findings: &mut Findings<'_>) {
    match name {
        meta_properties::FILE
        | clean_shutdown::FILE
        | offsets::RECOVERY_POINT_FILE
        | offsets::HIGH_WATERMARK_FILE
        | offsets::LOG_START_FILE
        | offsets::CLEANER_FILE
        | BOOTSTRAP_FILE => {}
        LOCK_FILE => {
            let what = "a server runs on the directory, or was killed";
            findings.note(BrokerAction::Nothing, name, what);
        }
        _ if name.ends_with(".tmp") => {
            let what = "an unfinished write; the file that it was to replace is in place";
            findings.note(BrokerAction::Remove, name, what);
        }
        _ => findings.note(BrokerAction::Nothing, name, "no file of a log directory"),
    }
}

fn check_other_dir(name: &str, findings: &mut Findings<'_>) {
    if name == "lost+found" {
        return;
    }
    match SetAside::of(name) {
        Some(SetAside::Delete) => {
            findings.note(
                BrokerAction::Remove,
                name,
                "a deleted log whose files were not gone yet",
            );
        }
        Some(SetAside::Stray) => {
            let what = "a log that was set aside because the cluster does not know it";
            findings.note(BrokerAction::Nothing, name, what);
        }
        Some(SetAside::Future) => {
            let what = "an unfinished move of a log between directories";
            findings.note(BrokerAction::Nothing, name, what);
        }
        None => {
            let what = "a directory whose name is no log's; Apache Kafka refuses to start on it";
            findings.repair(BrokerAction::Nothing, name, At::FILE, what);
        }
    }
}

/// The forms `<topic>-<p>.<32 hexadecimal digits>-<what>` of a log's directory.
enum SetAside {
    Delete,
    Stray,
    Future,
}

impl SetAside {
    fn of(name: &str) -> Option<Self> {
        let (front, what) = name.rsplit_once('-')?;
        let (_, unique) = front.rsplit_once('.')?;
        if unique.len() != 32 || !unique.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        match what {
            "delete" => Some(Self::Delete),
            "stray" => Some(Self::Stray),
            "future" => Some(Self::Future),
            _ => None,
        }
    }
}

/// The offset checkpoints of a directory; `None` for one that is missing or bad.
struct Checkpoints {
    recovery_point: Option<OffsetCheckpoint>,
    high_watermark: Option<OffsetCheckpoint>,
    log_start: Option<OffsetCheckpoint>,
    cleaner: Option<OffsetCheckpoint>,
}

fn check_checkpoints<D: Disk>(
    disk: &D,
    has_logs: bool,
    findings: &mut Findings<'_>,
) -> Checkpoints {
    let mut get = |file, action, is_needed: bool| {
        let bytes = read(disk, Path::new(file), file, findings)?;
        // Kafka leaves these files empty until the first write.
        let decoded = match &bytes {
            Some(bytes) if bytes.is_empty() && is_needed => Err(CheckpointError::Empty),
            Some(bytes) => OffsetCheckpoint::decode(bytes),
            None if !is_needed => return None,
            None => {
                findings.repair(action, file, At::FILE, "missing");
                return None;
            }
        };
        let failed = |why: CheckpointError| {
            findings.repair(action, file, At::FILE, why.to_string());
        };
        decoded.map_err(failed).ok()
    };
    Checkpoints {
        recovery_point: get(
            offsets::RECOVERY_POINT_FILE,
            BrokerAction::ScanAll,
            has_logs,
        ),
        high_watermark: get(
            offsets::HIGH_WATERMARK_FILE,
            BrokerAction::LearnAgain,
            has_logs,
        ),
        log_start: get(offsets::LOG_START_FILE, BrokerAction::Clamp, has_logs),
        cleaner: get(offsets::CLEANER_FILE, BrokerAction::LearnAgain, false),
    }
}

impl Checkpoints {
    fn of(&self, log: &TopicPartition, is_clean: bool, is_metadata: bool) -> Checkpointed {
        let offset = |from: &Option<OffsetCheckpoint>| {
            from.as_ref().and_then(|it| it.offsets.get(log).copied())
        };
        let is_internal = log.topic.as_str().starts_with("__");
        Checkpointed {
            recovery_point: offset(&self.recovery_point).unwrap_or(Offset::ZERO),
            high_watermark: offset(&self.high_watermark),
            log_start: offset(&self.log_start),
            may_be_compacted: is_internal || offset(&self.cleaner).is_some(),
            is_clean,
            is_metadata,
        }
    }

    /// Entries of logs that are not here, and entries beyond the end of those that are.
    fn check_names(&self, logs: &BTreeMap<TopicPartition, Bounds>, findings: &mut Findings<'_>) {
        for (file, checkpoint) in [
            (offsets::RECOVERY_POINT_FILE, &self.recovery_point),
            (offsets::HIGH_WATERMARK_FILE, &self.high_watermark),
            (offsets::LOG_START_FILE, &self.log_start),
            (offsets::CLEANER_FILE, &self.cleaner),
        ] {
            let entries = checkpoint.iter().flat_map(|it| &it.offsets);
            for (log, offset) in entries {
                let Some(bounds) = logs.get(log) else {
                    let what = format!("has an entry for {log}, which is not in the directory");
                    findings.note(BrokerAction::Nothing, file, what);
                    continue;
                };
                // A missing part of the log is told where the log is.
                let is_told = file != offsets::CLEANER_FILE;
                if *offset > bounds.end && !is_told {
                    let what = format!("has {offset} for {log}, which ends at {}", bounds.end);
                    findings.repair(BrokerAction::Clamp, file, At::offset(*offset), what);
                }
            }
        }
    }
}

/// Reads a small file. The outer `None` says that it cannot be read, which is then a finding.
pub(super) fn read<D: Disk>(
    disk: &D,
    path: &Path,
    name: &str,
    findings: &mut Findings<'_>,
) -> Option<Option<Vec<u8>>> {
    match disk.read(path) {
        Ok(bytes) => Some(bytes),
        Err(why) => {
            let action = (Severity::Damage, BrokerAction::TakeOffline);
            findings.add(action, name, At::FILE, why.to_string());
            None
        }
    }
}
