use highwater_disk::Disk;
use highwater_types::{Offset, TopicIdPartition};

use super::replica::Hearing;
use super::{FetchPosition, Look, PartitionRead, Reader, Row, SetId};
use crate::machine::Ticket;

/// Between the shard that a fetch came in on (its home) and the owner of a partition that it
/// wants.
#[derive(Debug)]
pub enum FetchPart<D: Disk> {
    /// Home to owner: read these, and tell the set of the next change of each.
    Read(FetchRead),
    /// Home to owner: a request of a follower's session came in, and wants nothing new here.
    Heard(FetchHeard),
    /// Owner to home: what they said.
    Done(FetchDone<D>),
    /// Owner to home: a partition changed.
    Changed(FetchChanged<D>),
    /// Home to owner: a parked fetch still waits; tell of the next change. Told at once when more
    /// is readable than `known`, and to a follower when the high watermark is another one.
    Arm(FetchArm),
    /// Home to owner: the set no longer wants these.
    Forget(FetchForget),
}

/// See [`FetchPart::Heard`].
#[derive(Clone, Copy, Debug)]
pub struct FetchHeard {
    pub(crate) set: SetId,
}

/// See [`FetchPart::Read`].
#[derive(Debug)]
pub struct FetchRead {
    pub(crate) ticket: Ticket,
    /// Tells the reads of one fetch apart.
    pub(crate) round: u32,
    pub(crate) set: SetId,
    pub(crate) reader: Reader,
    /// Whether it is the first read of a request.
    pub(crate) arrived: bool,
    /// Whether the fetch is answered by any byte.
    pub(crate) takes_any: bool,
    /// The whole answer's limit: the home cuts what the shards bring together.
    pub(crate) max_bytes: u64,
    pub(crate) wanted: Vec<FetchWanted>,
}

/// One partition of a [`FetchRead`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchWanted {
    pub(crate) slot: u32,
    pub(crate) at: TopicIdPartition,
    pub(crate) position: FetchPosition,
    pub(crate) hearing: Hearing,
}

/// See [`FetchPart::Done`].
#[derive(Debug)]
pub struct FetchDone<D: Disk> {
    pub(crate) ticket: Ticket,
    pub(crate) round: u32,
    pub(crate) reads: Vec<Row<D::File>>,
}

/// See [`FetchPart::Changed`].
#[derive(Debug)]
pub struct FetchChanged<D: Disk> {
    pub(crate) set: SetId,
    pub(crate) slot: u32,
    pub(crate) at: TopicIdPartition,
    pub(crate) look: Look,
    /// What is read there now, for a follower that takes anything: so nobody has to ask for it,
    /// and it is on its way at once.
    pub(crate) brings: Option<Box<FetchBrings<D>>>,
}

/// See [`FetchChanged::brings`].
#[derive(Debug)]
pub(crate) struct FetchBrings<D: Disk> {
    /// Where it was read: the set may have moved on.
    pub(crate) position: FetchPosition,
    pub(crate) read: PartitionRead<D::File>,
}

/// See [`FetchPart::Arm`].
#[derive(Clone, Copy, Debug)]
pub struct FetchArm {
    pub(crate) set: SetId,
    pub(crate) at: TopicIdPartition,
    pub(crate) known: u64,
    pub(crate) known_high_watermark: Offset,
}

/// See [`FetchPart::Forget`].
#[derive(Debug)]
pub struct FetchForget {
    pub(crate) set: SetId,
    pub(crate) partitions: Vec<TopicIdPartition>,
    /// Whether the set is no more.
    pub(crate) ends: bool,
}
