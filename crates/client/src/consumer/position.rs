use highwater_types::{LeaderEpoch, Offset, WallMs};
use tokio::time::Instant;

use crate::offsets::OffsetSpec;

/// Where to start reading a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At the log start.
    Earliest,
    /// At the end: only what comes from now on.
    Latest,
    /// At this offset.
    Offset(Offset),
    /// At the first record with this timestamp or a later one; at the end if there is none.
    Timestamp(WallMs),
}

/// One partition that is read.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    pub(super) position: Position,
    /// Epoch of the last record that was read, by which a truncation is noticed.
    pub(super) last_epoch: LeaderEpoch,
    pub(super) high_watermark: Option<Offset>,
    pub(super) last_stable_offset: Option<Offset>,
    pub(super) log_start_offset: Option<Offset>,
    /// Not fetched before this: a pause after a failure.
    pub(super) not_before: Instant,
    pub(super) failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// The next offset to read.
    At(Offset),
    /// Must be looked up first.
    Unknown(OffsetSpec),
    /// Is being looked up.
    Asking(OffsetSpec),
}

impl Tracked {
    pub(super) fn new(start: StartAt, now: Instant) -> Self {
        Self {
            position: start.into(),
            last_epoch: LeaderEpoch::NONE,
            high_watermark: None,
            last_stable_offset: None,
            log_start_offset: None,
            not_before: now,
            failures: 0,
        }
    }
}

impl From<StartAt> for Position {
    fn from(start: StartAt) -> Self {
        match start {
            StartAt::Earliest => Self::Unknown(OffsetSpec::Earliest),
            StartAt::Latest => Self::Unknown(OffsetSpec::Latest),
            StartAt::Offset(offset) => Self::At(offset),
            StartAt::Timestamp(timestamp) => Self::Unknown(OffsetSpec::Timestamp(timestamp)),
        }
    }
}
