//! Consumer groups: requests go to the coordinator of their group and are joined at home.
//!
//! *Home* is the shard of the connection: it takes a request apart into one question per group
//! (`requests`, `membership`, `offsets`, `describe`), and joins the answers (`ask`). The *owner* is
//! the shard of the group's partition of `__consumer_offsets`: while the partition leads here, a
//! [`Coordinator`] lives beside it (`owner`), loaded by jobs (`load`), writing through `append`.
//! An answer leaves the owner once the high watermark is past the newest record that it depends
//! on. With one shard both are the same and a question is a direct call.
//!
//! [`Coordinator`]: highwater_coordinator::Coordinator

mod append;
mod ask;
mod describe;
mod find;
mod load;
mod membership;
mod offset_fetch;
mod offsets;
mod owner;
mod part;
mod requests;
mod route;
mod settings;
mod slot;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use highwater_coordinator::{GroupAnswer, Output, RequestId};
use highwater_metadata::config::BrokerConfig;
use highwater_types::{ErrorCode, Mono, Offset, TopicIdPartition};

use self::ask::Asked;
pub use self::load::{GroupsRead, ReadGroups};
pub use self::part::GroupPart;
use self::route::OffsetsTopic;
use self::settings::GroupServing;
use self::slot::Slot;
use crate::machine::Token;

/// The topic that keeps groups and their offsets.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// What a coordinator said, or why none was asked.
pub(crate) type RowAnswer = Result<GroupAnswer, ErrorCode>;

/// The coordinators of a shard, and the requests of its connections that wait for one.
#[derive(Debug)]
pub(crate) struct GroupState {
    settings: GroupServing,
    /// `__consumer_offsets`, once the metadata has it.
    topic: Option<OffsetsTopic>,
    /// The controller is not asked to make it again before this moment.
    create_not_before: Mono,
    /// Requests of this shard's connections with a row that is not answered.
    asked: BTreeMap<u64, Asked>,
    asked_count: u64,
    /// The led partitions of `__consumer_offsets` that this shard owns.
    slots: BTreeMap<TopicIdPartition, Slot>,
    /// Requests that a coordinator of this shard has not answered, or not yet safely.
    open: BTreeMap<RequestId, Open>,
    open_count: u64,
    /// When coordinators want a tick, at most once per partition.
    ticks: BTreeSet<(Mono, TopicIdPartition)>,
    /// When answers that wait for a high watermark are given up.
    waits: BTreeSet<(Mono, RequestId)>,
    /// Reads that are out.
    reading: BTreeMap<Token, TopicIdPartition>,
    /// Outputs of coordinators on their way to be performed; kept for its memory.
    outputs: Vec<Output>,
}

/// A request that a coordinator of this shard has.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The shard that asked, its number for the request, and the row of it.
    home: u16,
    asked: u64,
    row: u32,
    at: TopicIdPartition,
    /// Its answer is there and waits until the high watermark is here, but not for ever.
    waits: Option<(Offset, Mono)>,
}

impl GroupState {
    /// No group is known.
    pub(crate) fn new(config: &BrokerConfig) -> Self {
        Self {
            settings: GroupServing::new(config),
            topic: None,
            create_not_before: Mono::default(),
            asked: BTreeMap::new(),
            asked_count: 0,
            slots: BTreeMap::new(),
            open: BTreeMap::new(),
            open_count: 0,
            ticks: BTreeSet::new(),
            waits: BTreeSet::new(),
            reading: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// When something here wants a tick.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let tick = self.ticks.first().map(|(due, _)| *due);
        let wait = self.waits.first().map(|(due, _)| *due);
        [tick, wait].into_iter().flatten().min()
    }
}
