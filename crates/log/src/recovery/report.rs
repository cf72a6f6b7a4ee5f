use std::fmt;

use highwater_types::{LeaderEpoch, Offset};

use crate::damage::DamagedRange;

/// What opening a log found out, and what was done about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// In the order in which it was found.
    pub findings: Vec<Finding>,
    /// Bytes of `.log` files that were read whole.
    pub scanned_bytes: u64,
    /// Segments that were read whole.
    pub scanned_segments: usize,
}

/// How much a [`Finding`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A usual trace of an unclean stop; nothing that counted is gone.
    Normal,
    /// Something was wrong and has been put right without loss.
    Repaired,
    /// Records that should be there cannot be read. They were not cut.
    Damage,
    /// Records below the recovered high watermark are gone: raise the alarm.
    Loss,
}

/// One thing that opening a log found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Bytes behind the last whole batch, above the high watermark, were cut.
    TornTail {
        /// Segment.
        base_offset: Offset,
        /// The log ends here now.
        end: Offset,
        /// How many bytes went, later segments included.
        bytes: u64,
        /// What stood there.
        what: &'static str,
    },
    /// Records between recovery point and high watermark are missing: they were acknowledged and
    /// never flushed.
    UnflushedLoss {
        /// The log ends here now.
        end: Offset,
        /// The checkpointed high watermark.
        high_watermark: Offset,
        /// How many bytes were cut.
        bytes: u64,
    },
    /// Records below the recovery point are missing although they were flushed.
    FlushedLoss {
        /// The log ends here now.
        end: Offset,
        /// The checkpointed recovery point.
        recovery_point: Offset,
    },
    /// Bytes that are no batches lie where records should be. They stay; a read that starts there
    /// is refused.
    Damage {
        /// Segment.
        base_offset: Offset,
        /// First byte.
        position: u64,
        /// The records.
        range: DamagedRange,
        /// What stands there.
        what: &'static str,
    },
    /// A segment is missing or empty between two others although no loss of power explains it.
    /// Readers go on behind the hole.
    Hole {
        /// First missing offset.
        from: Offset,
        /// Where the next segment begins.
        to: Offset,
    },
    /// Batches that a later segment replaces were cut: an unfinished truncation.
    Superseded {
        /// Segment.
        base_offset: Offset,
        /// Where the later segment begins.
        end: Offset,
    },
    /// An offset, time or transaction index was missing or wrong and is built anew.
    IndexRebuilt {
        /// Segment.
        base_offset: Offset,
        /// Extension of the file.
        file: &'static str,
        /// What was wrong.
        why: &'static str,
    },
    /// The leader epochs were taken from the batches.
    EpochsRebuilt {
        /// What was wrong with the checkpoint.
        why: String,
    },
    /// A batch had a leader epoch that is impossible where it lies. The checksum does not cover
    /// that field; its records are all right and stay.
    EpochRestamped {
        /// First offset of the batch.
        offset: Offset,
        /// What stood there.
        found: LeaderEpoch,
        /// What stands there now.
        written: LeaderEpoch,
    },
    /// A producer snapshot is no good and is removed.
    SnapshotDropped {
        /// The offset in its name.
        offset: Offset,
        /// What is wrong with it.
        why: String,
    },
    /// Producers were taken from the batches because a snapshot was missing or bad.
    ProducersRebuilt {
        /// First offset that was read for it.
        from: Offset,
        /// Exclusive end.
        to: Offset,
    },
    /// The log start offset lies above the log end: what is left was deleted before the stop, and
    /// all segments went.
    StartBeyondEnd {
        /// The checkpointed log start.
        log_start_offset: Offset,
        /// Where the log ended.
        log_end_offset: Offset,
        /// The checkpointed high watermark, which no log start passes.
        high_watermark: Offset,
    },
    /// Files that belong to no segment, or that waited to be removed, are removed.
    Removed {
        /// Name of the file.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A cleaner's finished work took its place.
    SwapCompleted {
        /// Segment.
        base_offset: Offset,
    },
}

impl RecoveryReport {
    /// The worst severity of all findings.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }

    /// Whether records below the recovered high watermark are gone.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        self.severity() == Some(Severity::Loss)
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl Finding {
    /// How much it matters.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::TornTail { .. }
            | Self::Superseded { .. }
            | Self::Removed { .. }
            | Self::SwapCompleted { .. } => Severity::Normal,
            Self::IndexRebuilt { .. }
            | Self::EpochsRebuilt { .. }
            | Self::EpochRestamped { .. }
            | Self::SnapshotDropped { .. }
            | Self::ProducersRebuilt { .. } => Severity::Repaired,
            Self::Damage { .. } => Severity::Damage,
            Self::UnflushedLoss { .. } | Self::FlushedLoss { .. } | Self::Hole { .. } => {
                Severity::Loss
            }
            // A log start above the high watermark is not to be believed, and yet it counts.
            Self::StartBeyondEnd {
                log_start_offset,
                high_watermark,
                ..
            } => {
                if high_watermark.raw() < log_start_offset.raw() {
                    Severity::Loss
                } else {
                    Severity::Normal
                }
            }
        }
    }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, finding) in self.findings.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail {
                base_offset,
                end,
                bytes,
                what,
            } => {
                write!(
                    f,
                    "segment {base_offset}: cut {bytes} bytes at {end}, {what}"
                )
            }
            Self::UnflushedLoss {
                end,
                high_watermark,
                bytes,
            } => {
                let range = DamagedRange {
                    from: *end,
                    to: *high_watermark,
                };
                write!(
                    f,
                    "LOSS: unflushed records {range} are gone, {bytes} bytes cut"
                )
            }
            Self::FlushedLoss {
                end,
                recovery_point,
            } => {
                let range = DamagedRange {
                    from: *end,
                    to: *recovery_point,
                };
                write!(f, "LOSS: flushed records {range} are missing")
            }
            Self::Damage {
                base_offset,
                position,
                range,
                what,
            } => write!(
                f,
                "DAMAGE: segment {base_offset} position {position}: {what}; {range} not readable"
            ),
            Self::Hole { from, to } => write!(
                f,
                "LOSS: records [{from}, {to}) are missing between two segments; with the node \
                 stopped, put their .log file back from another copy, else readers go on at {to}"
            ),
            Self::StartBeyondEnd {
                log_start_offset,
                log_end_offset,
                ..
            } => write!(
                f,
                "log start {log_start_offset} lies above log end {log_end_offset}, begun anew"
            ),
            repaired => repaired.fmt_repaired(f),
        }
    }
}

impl Finding {
    /// The findings that cost nobody a record.
    fn fmt_repaired(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superseded { base_offset, end } => {
                write!(
                    f,
                    "segment {base_offset}: batches from {end} on are replaced by a later one"
                )
            }
            Self::IndexRebuilt {
                base_offset,
                file,
                why,
            } => {
                write!(f, "segment {base_offset}: .{file} built anew, {why}")
            }
            Self::EpochsRebuilt { why } => write!(f, "leader epochs taken from the batches: {why}"),
            Self::EpochRestamped {
                offset,
                found,
                written,
            } => write!(
                f,
                "batch at {offset}: leader epoch {found} was damaged, {written} is written"
            ),
            Self::SnapshotDropped { offset, why } => {
                write!(f, "producer snapshot {offset} dropped: {why}")
            }
            Self::ProducersRebuilt { from, to } => {
                write!(f, "producers taken from the batches [{from}, {to})")
            }
            Self::Removed { name, why } => write!(f, "{name} removed, {why}"),
            Self::SwapCompleted { base_offset } => {
                write!(f, "segment {base_offset}: cleaned segment taken in")
            }
            Self::TornTail { .. }
            | Self::UnflushedLoss { .. }
            | Self::FlushedLoss { .. }
            | Self::Damage { .. }
            | Self::Hole { .. }
            | Self::StartBeyondEnd { .. } => fmt::Display::fmt(self, f),
        }
    }
}
