//! What the machines of a node tell each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_types::TopicId;

use crate::job::LogDirNumber;
use crate::machine::Peer;
use crate::shard::checkpoints::CheckpointPart;
use crate::shard::fetch::FetchPart;
use crate::shard::groups::GroupPart;
use crate::shard::lookup::LookupPart;
use crate::shard::produce::ProducePart;

/// A value from one machine of a node to another. First in, first out per pair of machines.
///
/// One variant per concern; a concern that needs many messages has an enum of its own in its
/// module.
#[derive(Debug)]
pub enum Part<D: Disk> {
    /// Control to every shard: the metadata moved on. The first one is sent once the image holds
    /// all that was committed when the node started, for logs that it does not know are set aside
    /// as strays.
    Image(ImageUpdate),
    /// Control to every shard: who the active controller is, when that is known and whenever it
    /// changes. `None`: nobody knows now.
    Controller(Option<Peer>),
    /// Control to every shard: the level of kraft.version, when a broker learns another than it
    /// started with. It is told to clients, and lies in no image.
    KraftVersion(i16),
    /// Control to every shard: hand-over is done, close all logs and answer [`Part::Closed`].
    /// Control answers `Stopped` itself only after every shard closed.
    Close,
    /// Shard to control, once: every log that the first image assigns here is open or failed.
    LogsLoaded,
    /// Shard to control, once, after [`Part::Close`]: all logs are flushed and closed, and the
    /// checkpoints are written.
    Closed {
        /// Directories with a log that was not closed cleanly, or whose checkpoints were not
        /// written: they get no clean-shutdown marker.
        unclean: BTreeSet<LogDirNumber>,
    },
    /// Shard to control and to every other shard: this log directory must not be used any more.
    DirOffline {
        /// The directory.
        dir: LogDirNumber,
        /// Why, for people.
        why: String,
    },
    /// Shard to shard: appends and their outcomes.
    Produce(Box<ProducePart>),
    /// Shard to the keeper of a directory's checkpoint files.
    Checkpoint(Box<CheckpointPart>),
    /// Shard to shard: reads, changes that a fetch waits for, and their records.
    Fetch(Box<FetchPart<D>>),
    /// Shard to shard: questions of ListOffsets and OffsetForLeaderEpoch, and the answers.
    Lookup(Box<LookupPart>),
    /// Shard to shard: questions to the coordinators of groups, and the answers.
    Groups(Box<GroupPart>),
}

/// A new metadata image, and what to look at again because of it.
#[derive(Clone, Debug)]
pub struct ImageUpdate {
    /// The image at the metadata high watermark.
    pub image: Arc<MetadataImage>,
    /// What is different from the image before.
    pub changed: Changed,
}

/// What an [`ImageUpdate`] changed, as far as topics are concerned.
#[derive(Clone, Debug)]
pub enum Changed {
    /// Everything has to be looked at: the first image, a snapshot, or broker-wide configs.
    Everything,
    /// Topics that were made, changed (partitions or configs) or deleted. May be empty.
    Topics(Arc<BTreeSet<TopicId>>),
}
