use std::collections::BTreeSet;

use highwater_protocol::client::ReplicaFetchSession;
use highwater_types::{BrokerEpoch, Millis, Mono, NodeId, Now, TopicIdPartition};

use crate::machine::{Channel, Peer, Token};

/// How long a fetcher pauses after the first request that got no answer; twice as long after each
/// that follows.
const PAUSE_MIN: Millis = Millis::new(50);

/// How long a fetch of [`Lane::Joining`] may wait: others may be about to join.
const JOINING_WAIT_MAX: Millis = Millis::new(20);

/// One fetcher: whose partitions, and which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FetcherId {
    /// The broker that is asked.
    pub(super) leader: NodeId,
    /// Which of the partitions that it leads.
    pub(super) lane: Lane,
}

/// The fetchers for one leader: a fetch that waits for records holds up its connection, so what
/// must not wait for it has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Nearly all partitions.
    Ordinary,
    /// Partitions that are flushed before their next fetch. They wait for each other's flushes.
    Flushed,
    /// Partitions that began to fetch while the fetch of their own lane is parked, until that is
    /// answered.
    Joining,
}

impl Lane {
    pub(super) const fn channel(self) -> Channel {
        match self {
            Self::Ordinary => Channel::Fetcher,
            Self::Flushed => Channel::FlushedFetcher,
            Self::Joining => Channel::JoiningFetcher,
        }
    }

    /// How long a fetch may wait for records, where `longest` is usual.
    pub(super) fn wait_max(self, longest: Millis) -> Millis {
        match self {
            Self::Ordinary | Self::Flushed => longest,
            Self::Joining => longest.min(JOINING_WAIT_MAX),
        }
    }
}

/// Fetches from one leader.
#[derive(Debug, Default)]
pub(super) struct Fetcher {
    pub(super) session: ReplicaFetchSession,
    /// The fetch that is on its way.
    pub(super) in_flight: Option<InFlight>,
    /// Members that are being flushed: the next fetch waits for them.
    pub(super) flushing: BTreeSet<TopicIdPartition>,
    /// No fetch before it: the last got no answer.
    resume_at: Option<Mono>,
    /// Fetches without an answer since the last that had one.
    pub(super) failures: u32,
}

/// A fetch on its way.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) token: Token,
    /// Where it was sent.
    pub(super) peer: Peer,
    /// The registration that the leader had then.
    pub(super) leader_epoch: BrokerEpoch,
}

impl Fetcher {
    /// Whether it has something to ask, and may.
    pub(super) fn is_ready(&self) -> bool {
        self.in_flight.is_none()
            && !self.session.is_empty()
            && self.flushing.is_empty()
            && self.resume_at.is_none()
    }

    /// When its pause ends, if it pauses.
    pub(super) const fn pauses_until(&self) -> Option<Mono> {
        self.resume_at
    }

    /// Ends a pause that is over. Whether there was one.
    pub(super) fn end_pause(&mut self, now: Now) -> bool {
        self.resume_at.take_if(|at| *at <= now.mono).is_some()
    }

    /// A fetch got no answer, or one that is none: the next begins a session, after a pause.
    pub(super) fn fail(&mut self, now: Now, pause_max: Millis) {
        let span = PAUSE_MIN.as_u64() << self.failures.min(16);
        let span = Millis::new(span.min(pause_max.as_u64()));
        self.failures = self.failures.saturating_add(1);
        self.resume_at = Some(now.mono.plus(span));
        self.session.handle_failure();
    }

    /// The next fetch need not wait.
    pub(super) const fn resume(&mut self) {
        self.resume_at = None;
        self.failures = 0;
    }
}
