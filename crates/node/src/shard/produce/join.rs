use std::sync::Arc;

use highwater_disk::Disk;
use highwater_protocol::TopicKey;
use highwater_types::{PartitionIndex, TopicId};

use super::answer;
use super::outcome::{Outcome, Progress};
use crate::machine::{Caller, Effect, Ticket};
use crate::shard::{Effects, Shard};

/// A Produce request with a row that is not done.
#[derive(Debug)]
pub(super) struct PendingProduce {
    caller: Arc<Caller>,
    version: i16,
    acks: i16,
    topics: Vec<OwnedTopic>,
    rows: Vec<Progress>,
    /// Rows that are neither appended nor refused.
    pending: usize,
    /// Rows that are not done.
    undone: usize,
}

/// A topic of a request that outlives the request's bytes.
#[derive(Debug)]
pub(super) struct OwnedTopic {
    pub(super) topic: OwnedTopicKey,
    pub(super) partitions: Vec<PartitionIndex>,
}

/// As [`TopicKey`].
#[derive(Debug)]
pub(super) enum OwnedTopicKey {
    Name(String),
    Id(TopicId),
}

impl From<TopicKey<'_>> for OwnedTopicKey {
    fn from(key: TopicKey<'_>) -> Self {
        match key {
            TopicKey::Name(name) => Self::Name(name.to_owned()),
            TopicKey::Id(id) => Self::Id(id),
        }
    }
}

impl OwnedTopicKey {
    fn borrow(&self) -> TopicKey<'_> {
        match self {
            Self::Name(name) => TopicKey::Name(name),
            Self::Id(id) => TopicKey::Id(*id),
        }
    }
}

impl PendingProduce {
    pub(super) fn new(
        caller: Arc<Caller>,
        version: i16,
        acks: i16,
        topics: Vec<OwnedTopic>,
        rows: Vec<Progress>,
    ) -> Self {
        let pending = rows
            .iter()
            .filter(|it| matches!(it, Progress::Pending))
            .count();
        let undone = rows
            .iter()
            .filter(|it| !matches!(it, Progress::Done(_)))
            .count();
        Self {
            caller,
            version,
            acks,
            topics,
            rows,
            pending,
            undone,
        }
    }

    /// Notes how far a row is now.
    fn advance(&mut self, row: u32, progress: Progress) {
        let at = usize::try_from(row).unwrap_or(usize::MAX);
        let Some(before) = self.rows.get_mut(at) else {
            unreachable!("row {row} of a request of {} rows", self.rows.len());
        };
        if matches!(before, Progress::Pending) && !matches!(progress, Progress::Pending) {
            self.pending -= 1;
        }
        if !matches!(before, Progress::Done(_)) && matches!(progress, Progress::Done(_)) {
            self.undone -= 1;
        }
        assert!(
            !matches!(before, Progress::Done(_)),
            "row {row} was done and became {progress:?}"
        );
        *before = progress;
    }
}

impl<D: Disk> Shard<D> {
    /// Keeps a request until its last row is done. It is admitted at once if each row is appended
    /// or refused.
    pub(super) fn put_pending(
        &mut self,
        ticket: Ticket,
        pending: PendingProduce,
        out: &mut Effects<D>,
    ) {
        if pending.pending == 0 {
            out.push(Effect::Admitted(ticket));
        }
        let before = self.produce.requests.insert(ticket, pending);
        assert!(before.is_none(), "{ticket:?} is in use");
    }

    /// A row of a request got further. A request that is gone was of a closed connection.
    pub(super) fn join(
        &mut self,
        ticket: Ticket,
        row: u32,
        progress: Progress,
        out: &mut Effects<D>,
    ) {
        let Some(request) = self.produce.requests.get_mut(&ticket) else {
            return;
        };
        let was_admitted = request.pending == 0;
        request.advance(row, progress);
        if request.undone > 0 {
            if request.pending == 0 && !was_admitted {
                out.push(Effect::Admitted(ticket));
            }
            return;
        }
        let Some(request) = self.produce.requests.remove(&ticket) else {
            return;
        };
        let PendingProduce {
            caller,
            version,
            acks,
            topics,
            rows,
            ..
        } = request;
        let topics = topics
            .iter()
            .map(|it| (it.topic.borrow(), it.partitions.iter().copied()));
        let rows = rows.into_iter().filter_map(done);
        let answer = answer::answer(&self.image, &caller, version, acks, topics, rows);
        out.push(Effect::Answer { ticket, answer });
    }
}

fn done(progress: Progress) -> Option<Outcome> {
    match progress {
        Progress::Done(outcome) => Some(outcome),
        Progress::Pending | Progress::Waiting => None,
    }
}
