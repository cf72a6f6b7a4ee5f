use std::collections::{BTreeMap, BTreeSet};

use highwater_coordinator::{Coordinator, GroupAnswer, RequestId};
use highwater_types::{ErrorCode, Mono, Offset, TopicId, TopicName};

use crate::machine::Token;

/// The coordinator beside a partition that leads here.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: SlotState,
    /// Leadership was lost since, perhaps regained: all of this is to be dropped.
    pub(super) lost: bool,
    /// Requests that are not answered.
    pub(super) open: BTreeSet<RequestId>,
    /// Answers that wait for the high watermark.
    ///
    /// Invariant: each is of a request in `open`.
    pub(super) waiting: BTreeMap<(Offset, RequestId), GroupAnswer>,
    /// When the coordinator wants a tick, as `GroupState::ticks` has it.
    pub(super) tick_at: Option<Mono>,
}

/// How far a coordinator is.
///
/// Transitions: `Loading -> Active` or `Loading -> Failed`; `Active` is empty while the coordinator
/// works. All end with leadership.
#[derive(Debug)]
pub(super) enum SlotState {
    /// The log is being replayed.
    Loading(Box<Loading>),
    /// It serves.
    Active(Option<Box<Coordinator>>),
    /// The log could not be replayed: nobody knows what its groups are, so nobody is told.
    Failed,
}

/// A coordinator to be.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) coordinator: Coordinator,
    /// Everything below it is replayed.
    pub(super) next: Offset,
    /// The read that is out, if one is. What another brings is of a load that was given up.
    pub(super) reading: Option<Token>,
    /// Records that were replayed.
    pub(super) records: u64,
    /// Topics that were deleted meanwhile.
    pub(super) deleted: Vec<(TopicId, TopicName)>,
}

impl Slot {
    pub(super) fn loading(coordinator: Coordinator, next: Offset) -> Self {
        Self {
            state: SlotState::Loading(Box::new(Loading {
                coordinator,
                next,
                reading: None,
                records: 0,
                deleted: Vec::new(),
            })),
            lost: false,
            open: BTreeSet::new(),
            waiting: BTreeMap::new(),
            tick_at: None,
        }
    }

    /// Why it answers nothing.
    ///
    /// # Errors
    /// As Kafka: COORDINATOR_LOAD_IN_PROGRESS, or NOT_COORDINATOR after a load that failed.
    pub(super) fn check(&self) -> Result<(), ErrorCode> {
        match self.state {
            _ if self.lost => Err(ErrorCode::NOT_COORDINATOR),
            SlotState::Loading(_) => Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            SlotState::Active(_) => Ok(()),
            SlotState::Failed => Err(ErrorCode::NOT_COORDINATOR),
        }
    }

    pub(super) fn assert_invariants(&self) {
        assert!(
            self.waiting.len() <= self.open.len(),
            "{} answers wait for {} requests",
            self.waiting.len(),
            self.open.len()
        );
    }
}
