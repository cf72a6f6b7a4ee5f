use std::fmt;
use std::path::{Path, PathBuf};

use highwater_types::Offset;
use serde_json::{Value, json};

use crate::recovery::Severity;

/// What a check of log directories found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// One for each thing that is not as after a clean stop, worst concerns last in no order:
    /// directory by directory, log by log, by position in a file.
    pub findings: Vec<VerifyFinding>,
    /// Logs that were checked.
    pub logs: u64,
    /// Segments that were read whole.
    pub segments: u64,
    /// Batches whose checksum is right.
    pub batches: u64,
    /// Bytes of `.log` files that were read.
    pub bytes: u64,
}

/// One thing that is not as it should be, and what a broker would do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyFinding {
    /// How much it matters.
    pub severity: Severity,
    /// The log directory.
    pub root: PathBuf,
    /// The log's directory within it; empty for a finding about the whole log directory.
    pub log: String,
    /// The file's name, in the log's directory or else in the log directory.
    pub file: String,
    /// The first byte of the file that is concerned.
    pub position: Option<u64>,
    /// The offset that is concerned.
    pub offset: Option<Offset>,
    /// What is wrong.
    pub what: String,
    /// What a broker would do.
    pub action: BrokerAction,
}

/// What a broker that starts on the directory does about a finding. Highwater's; where Apache
/// Kafka 4.4 does otherwise, the finding says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BrokerAction {
    /// Nothing; it is no obstacle.
    Nothing,
    /// Remove the file or directory.
    Remove,
    /// Put it in the place of what it covers.
    TakeIn,
    /// Build the file anew from the batches.
    Rebuild,
    /// Write the leader epoch that belongs there into the batch.
    Restamp,
    /// Begin at the log's start and learn it again.
    LearnAgain,
    /// Read every log of the directory whole.
    ScanAll,
    /// Use the log's own bounds instead.
    Clamp,
    /// Cut the log there; nothing that was acknowledged is lost.
    Cut,
    /// Cut the log there, raise the alarm, and count the stop as unclean.
    CutAndAlarm,
    /// Keep the bytes; answer a fetch that starts there with CORRUPT_MESSAGE.
    ServeCorrupt,
    /// Send the bytes as they are, for it does not read them; clients see that they are bad.
    SendAsIs,
    /// Set the log's directory aside and start that partition empty.
    SetAside,
    /// Take this log out of service; the others are not concerned.
    TakeOffline,
    /// Refuse to start.
    Refuse,
}

impl VerifyReport {
    /// The worst severity of all findings.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|it| it.severity).max()
    }

    /// Whether something is wrong that a clean or unclean stop alone does not explain.
    #[must_use]
    pub fn has_damage(&self) -> bool {
        self.severity() > Some(Severity::Normal)
    }

    /// The report as JSON: counts, and an array `findings` with the fields of each row.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> = self.findings.iter().map(VerifyFinding::to_json).collect();
        json!({
            "logs": self.logs,
            "segments": self.segments,
            "batches": self.batches,
            "bytes": self.bytes,
            "severity": self.severity().map(severity_name),
            "findings": findings,
        })
    }
}

impl VerifyFinding {
    /// The names of the columns of [`VerifyFinding::row`].
    pub const COLUMNS: [&str; 7] = [
        "severity",
        "log",
        "file",
        "position",
        "offset",
        "what",
        "a broker would",
    ];

    /// The cells of the finding's row in a table; a dash where there is nothing to say.
    #[must_use]
    pub fn row(&self) -> [String; 7] {
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        [
            severity_name(self.severity).to_owned(),
            or_dash(text(&self.log)),
            or_dash(text(&self.file)),
            or_dash(self.position.map(|it| it.to_string())),
            or_dash(self.offset.map(|it| it.to_string())),
            self.what.clone(),
            self.action.to_string(),
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "severity": severity_name(self.severity),
            "directory": self.root.display().to_string(),
            "log": self.log,
            "file": self.file,
            "position": self.position,
            "offset": self.offset.map(Offset::raw),
            "what": self.what,
            "action": self.action.name(),
        })
    }
}

impl BrokerAction {
    /// A short name for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Remove => "remove",
            Self::TakeIn => "take-in",
            Self::Rebuild => "rebuild",
            Self::Restamp => "restamp",
            Self::LearnAgain => "learn-again",
            Self::ScanAll => "scan-all",
            Self::Clamp => "clamp",
            Self::Cut => "cut",
            Self::CutAndAlarm => "cut-and-alarm",
            Self::ServeCorrupt => "serve-corrupt",
            Self::SendAsIs => "send-as-is",
            Self::SetAside => "set-aside",
            Self::TakeOffline => "take-offline",
            Self::Refuse => "refuse",
        }
    }
}

impl fmt::Display for BrokerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "do nothing",
            Self::Remove => "remove it",
            Self::TakeIn => "put it in its place",
            Self::Rebuild => "rebuild it from the batches",
            Self::Restamp => "write the right leader epoch",
            Self::LearnAgain => "begin at the log's start and learn it again",
            Self::ScanAll => "scan every log whole",
            Self::Clamp => "use the log's own bounds",
            Self::Cut => "cut the log there",
            Self::CutAndAlarm => "cut the log there and raise the alarm",
            Self::ServeCorrupt => "keep it and answer CORRUPT_MESSAGE there",
            Self::SendAsIs => "send it as it is; clients check the CRC",
            Self::SetAside => "set the log aside",
            Self::TakeOffline => "take the log out of service",
            Self::Refuse => "refuse to start",
        })
    }
}

/// The word for a severity, in tables and JSON.
pub(super) const fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "note",
        Severity::Repaired => "repair",
        Severity::Damage => "damage",
        Severity::Loss => "loss",
    }
}

/// Collects findings about one log, or about the log directory itself.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    report: &'a mut VerifyReport,
    root: &'a Path,
    log: String,
}

/// Where in a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct At {
    pub(super) position: Option<u64>,
    pub(super) offset: Option<Offset>,
}

impl At {
    pub(super) const FILE: Self = Self {
        position: None,
        offset: None,
    };

    pub(super) const fn offset(offset: Offset) -> Self {
        Self {
            position: None,
            offset: Some(offset),
        }
    }

    pub(super) const fn position(position: u64) -> Self {
        Self {
            position: Some(position),
            offset: None,
        }
    }

    pub(super) const fn batch(position: u64, offset: Offset) -> Self {
        Self {
            position: Some(position),
            offset: Some(offset),
        }
    }
}

impl<'a> Findings<'a> {
    pub(super) fn new(report: &'a mut VerifyReport, root: &'a Path, log: &str) -> Self {
        Self {
            report,
            root,
            log: log.to_owned(),
        }
    }

    pub(super) const fn report(&mut self) -> &mut VerifyReport {
        self.report
    }

    pub(super) fn add(
        &mut self,
        (severity, action): (Severity, BrokerAction),
        file: &str,
        at: At,
        what: impl Into<String>,
    ) {
        self.report.findings.push(VerifyFinding {
            severity,
            root: self.root.to_path_buf(),
            log: self.log.clone(),
            file: file.to_owned(),
            position: at.position,
            offset: at.offset,
            what: what.into(),
            action,
        });
    }

    /// Something that only a stop explains, or leftovers of it.
    pub(super) fn note(&mut self, action: BrokerAction, file: &str, what: impl Into<String>) {
        self.add((Severity::Normal, action), file, At::FILE, what);
    }

    /// Something that is put right without loss.
    pub(super) fn repair(
        &mut self,
        action: BrokerAction,
        file: &str,
        at: At,
        what: impl Into<String>,
    ) {
        self.add((Severity::Repaired, action), file, at, what);
    }
}
