//! Bugs of our own, planted on purpose: only builds with the feature `planted-bugs` have them, and
//! only the workspace member `highwater-planted` asks for it. It shows that the simulator finds
//! each.
//!
//! The place of a bug is marked by `#[cfg(feature = "planted-bugs")]` and asks [`is_planted`].

use std::sync::atomic::{AtomicUsize, Ordering};

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A commit of a generation that is over moves the offset (GO-06).
    CommitOfAnOldGeneration,
    /// A rebalance does not wait for members that are still to join: others get what they own.
    TwoOwners,
    /// A coordinator that loads keeps the oldest of a partition's commits, not the newest.
    OffsetMovedBackByAReload,
}

/// The bug that is planted now, by its place in [`PlantedBug::ALL`], from 1.
static PLANTED: AtomicUsize = AtomicUsize::new(0);

impl PlantedBug {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::CommitOfAnOldGeneration,
        Self::TwoOwners,
        Self::OffsetMovedBackByAReload,
    ];

    /// How it is called on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommitOfAnOldGeneration => "commit-of-an-old-generation",
            Self::TwoOwners => "two-owners",
            Self::OffsetMovedBackByAReload => "offset-moved-back-by-a-reload",
        }
    }

    /// The scenario that is about it, below the folder of scenarios.
    #[must_use]
    pub const fn scenario(self) -> &'static str {
        match self {
            Self::CommitOfAnOldGeneration => "groups/go-06-a-commit-of-an-old-generation.txt",
            Self::TwoOwners => "groups/a-rebalance-waits-for-its-members.txt",
            Self::OffsetMovedBackByAReload => "groups/a-reload-keeps-the-newest-offset.txt",
        }
    }
}

/// Plants this bug, and none beside it; `None` takes it out.
pub fn plant(bug: Option<PlantedBug>) {
    let number = bug.map_or(0, |bug| bug as usize + 1);
    PLANTED.store(number, Ordering::SeqCst);
}

/// Whether this bug is planted.
#[must_use]
pub fn is_planted(bug: PlantedBug) -> bool {
    PLANTED.load(Ordering::SeqCst) == bug as usize + 1
}
