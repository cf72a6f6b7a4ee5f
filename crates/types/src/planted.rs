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
    /// A follower whose history parts from its leader's cuts to its own high watermark (KIP-101).
    TruncateToOwnHighWatermark,
    /// The high watermark waits for the committed ISR only, not for who may have joined it (IH-01).
    HighWatermarkOverTheCommittedIsr,
    /// acks=all is answered as soon as the leader has the records.
    AcknowledgeBeforeReplication,
    /// Consumers read up to the log end (RT-08).
    ServeAboveTheHighWatermark,
    /// A fetch of an earlier leader epoch counts (RT-04).
    SkipTheEpochCheckOnFetch,
    /// A cut leaves the leader epochs above it in the history (KAFKA-10706).
    KeepEpochEntriesAboveACut,
    /// Whoever has the leader's high watermark joins the ISR, wherever its epoch begins (IH-03).
    AdmitBelowTheEpochStart,
    /// Fetches of an earlier registration count, and the controller takes it (IH-04).
    AcceptAStaleBrokerEpoch,
    /// A follower takes its leader's high watermark before it cuts (KAFKA-14704).
    RaiseTheHighWatermarkBeforeCutting,
    /// A leader forgets its followers and where its epoch began with each change of the ISR
    /// (KAFKA-13790).
    ResetFollowersOnAnUnchangedEpoch,
}

/// The bug that is planted now, by its place in [`PlantedBug::ALL`], from 1.
static PLANTED: AtomicUsize = AtomicUsize::new(0);

impl PlantedBug {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::CommitOfAnOldGeneration,
        Self::TwoOwners,
        Self::OffsetMovedBackByAReload,
        Self::TruncateToOwnHighWatermark,
        Self::HighWatermarkOverTheCommittedIsr,
        Self::AcknowledgeBeforeReplication,
        Self::ServeAboveTheHighWatermark,
        Self::SkipTheEpochCheckOnFetch,
        Self::KeepEpochEntriesAboveACut,
        Self::AdmitBelowTheEpochStart,
        Self::AcceptAStaleBrokerEpoch,
        Self::RaiseTheHighWatermarkBeforeCutting,
        Self::ResetFollowersOnAnUnchangedEpoch,
    ];

    /// How it is called on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommitOfAnOldGeneration => "commit-of-an-old-generation",
            Self::TwoOwners => "two-owners",
            Self::OffsetMovedBackByAReload => "offset-moved-back-by-a-reload",
            Self::TruncateToOwnHighWatermark => "truncate-to-own-high-watermark",
            Self::HighWatermarkOverTheCommittedIsr => "high-watermark-over-the-committed-isr",
            Self::AcknowledgeBeforeReplication => "acknowledge-before-replication",
            Self::ServeAboveTheHighWatermark => "serve-above-the-high-watermark",
            Self::SkipTheEpochCheckOnFetch => "skip-the-epoch-check-on-fetch",
            Self::KeepEpochEntriesAboveACut => "keep-epoch-entries-above-a-cut",
            Self::AdmitBelowTheEpochStart => "admit-below-the-epoch-start",
            Self::AcceptAStaleBrokerEpoch => "accept-a-stale-broker-epoch",
            Self::RaiseTheHighWatermarkBeforeCutting => "raise-the-high-watermark-before-cutting",
            Self::ResetFollowersOnAnUnchangedEpoch => "reset-followers-on-an-unchanged-epoch",
        }
    }

    /// The scenario that is about it, below the folder of scenarios.
    #[must_use]
    pub const fn scenario(self) -> &'static str {
        match self {
            Self::CommitOfAnOldGeneration => "groups/go-06-a-commit-of-an-old-generation.txt",
            Self::TwoOwners => "groups/a-rebalance-waits-for-its-members.txt",
            Self::OffsetMovedBackByAReload => "groups/a-reload-keeps-the-newest-offset.txt",
            Self::TruncateToOwnHighWatermark => {
                "replication/rt-08-first-the-cut-then-the-high-watermark.txt"
            }
            Self::HighWatermarkOverTheCommittedIsr => {
                "replication/ih-01-who-is-about-to-join-is-waited-for.txt"
            }
            Self::AcknowledgeBeforeReplication => "replication/1-the-five-step-exchange.txt",
            Self::ServeAboveTheHighWatermark => "replication/9-min-isr.txt",
            Self::SkipTheEpochCheckOnFetch => {
                "replication/rt-04-a-fetch-of-an-older-epoch-is-no-acknowledgement.txt"
            }
            Self::KeepEpochEntriesAboveACut => {
                "replication/rt-03-a-leader-that-lacks-the-epoch.txt"
            }
            Self::AdmitBelowTheEpochStart => {
                "replication/ih-03-who-joins-holds-the-start-of-the-epoch.txt"
            }
            Self::AcceptAStaleBrokerEpoch => {
                "replication/ih-04-a-fetch-of-an-earlier-registration.txt"
            }
            Self::RaiseTheHighWatermarkBeforeCutting => {
                "replication/rt-08-first-the-cut-then-the-high-watermark.txt"
            }
            Self::ResetFollowersOnAnUnchangedEpoch => {
                "replication/cm-10-metadata-of-the-same-leader-epoch.txt"
            }
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
