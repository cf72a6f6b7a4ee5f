//! Fetches of followers: who may, which of them count, and what a session does not say again.

use std::collections::BTreeMap;

use highwater_disk::Disk;
use highwater_replication::{FollowerFetch, Output, Replica};
use highwater_types::{BrokerEpoch, ErrorCode, LeaderEpoch, Mono, NodeId, TopicIdPartition};

use super::read::{ReadContext, Refusal};
use super::{FetchPosition, FetchState, SetId};
use crate::shard::partition::OnlinePartition;

/// The first version of Fetch that carries the broker epoch of a follower (KIP-903).
const BROKER_EPOCH_SINCE: i16 = 15;
/// The first level of metadata.version at which every broker speaks that version (3.5-IV1).
const BROKER_EPOCH_SINCE_METADATA: i16 = 10;

/// A broker that replicates by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchingReplica {
    /// Who it says it is.
    pub(crate) id: NodeId,
    /// The registration that it fetches under.
    pub(crate) epoch: BrokerEpoch,
    /// The version of the request.
    pub(crate) version: i16,
}

/// Whether a read of a follower is a fetch of its own, which tells the leader what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// The request came in just now and says what it wants of the partition.
    Mentioned,
    /// The request came in just now; its session wants of the partition what it wanted before.
    Unmentioned,
    /// The request has waited: it was heard when it came in.
    HeardBefore,
}

/// What became of a follower's fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Nothing new: the request had waited.
    #[default]
    Not,
    /// It does not count. Whatever counted before does not either.
    Refused,
    /// It counts, and does so again with each further request of its session.
    Counted(FollowerFetch),
}

/// When each session of a follower was last heard of at this shard, whose partitions it wants.
///
/// A partition that its session does not mention is fetched again by each request (KIP-227). That
/// is worth one entry a session, not one a partition: it is looked up when something happens to
/// the partition.
#[derive(Debug, Default)]
pub(crate) struct HeardSessions {
    by_set: BTreeMap<(u16, SetId), Mono>,
}

impl HeardSessions {
    /// A request of the session came in.
    pub(crate) fn hear(&mut self, home: u16, set: SetId, now: Mono) {
        let last = self.by_set.entry((home, set)).or_insert(now);
        *last = now.max(*last);
    }

    /// The session is no more.
    pub(crate) fn forget(&mut self, home: u16, set: SetId) {
        self.by_set.remove(&(home, set));
    }

    fn last(&self, home: u16, set: SetId) -> Option<Mono> {
        self.by_set.get(&(home, set)).copied()
    }
}

impl<D: Disk> FetchState<D> {
    /// Tells a leader which of its followers fetched again meanwhile without saying so.
    pub(crate) fn tell_heard(&self, at: TopicIdPartition, replica: &mut Replica) {
        for subscriber in self.subscribers.known_of(at) {
            if let Some(fetch) = subscriber.counted
                && let Some(heard) = self.heard.last(subscriber.home, subscriber.set)
            {
                replica.handle_follower_heard(heard, fetch);
            }
        }
    }
}

impl<D: Disk> ReadContext<'_, D> {
    /// Refuses who is no follower of this leader: one that is not assigned, as Kafka does; one
    /// that fetches under a registration that is over (KIP-903); and one that does not say under
    /// which, where every broker does (NP-01).
    pub(super) fn check_follower(
        &self,
        at: TopicIdPartition,
        online: &OnlinePartition<D>,
        position: &FetchPosition,
        replica: FetchingReplica,
    ) -> Result<(), Refusal> {
        let not_leader = || Refusal {
            error: ErrorCode::NOT_LEADER_OR_FOLLOWER,
            leader: self.current_leader(at),
        };
        let leader = online.replica.role().as_leader();
        if !leader.is_some_and(|it| it.followers.contains_key(&replica.id)) {
            return Err(match position.current_leader_epoch {
                LeaderEpoch::NONE => not_leader(),
                // The metadata that assign it have not come here yet.
                _ => ErrorCode::UNKNOWN_LEADER_EPOCH.into(),
            });
        }
        let registered = self.image.broker(replica.id).map(|it| it.epoch);
        let is_stale = match replica.epoch {
            BrokerEpoch::NONE => {
                replica.version >= BROKER_EPOCH_SINCE
                    || self.image.metadata_version() >= BROKER_EPOCH_SINCE_METADATA
            }
            epoch => registered.is_some_and(|registered| epoch < registered),
        };
        #[cfg(feature = "planted-bugs")]
        let is_stale = is_stale
            && !highwater_types::is_planted(highwater_types::PlantedBug::AcceptAStaleBrokerEpoch);
        if is_stale {
            return Err(not_leader());
        }
        Ok(())
    }

    /// Tells the leader what a follower holds. Comes after its history was compared: where a fetch
    /// diverges its offset acknowledges nothing (KAFKA-13141).
    pub(super) fn note_follower(
        &mut self,
        at: TopicIdPartition,
        position: &FetchPosition,
        replica: FetchingReplica,
        hearing: Hearing,
    ) -> Result<Noted, Refusal> {
        // Without an epoch nobody can tell whether the fetch was meant for this leader: it is
        // served, and acknowledges nothing. No broker of today leaves it out.
        if position.current_leader_epoch == LeaderEpoch::NONE {
            return Ok(Noted::Refused);
        }
        let fetch = FollowerFetch {
            replica: replica.id,
            broker_epoch: replica.epoch,
            leader_epoch: position.current_leader_epoch,
            fetch_offset: position.offset,
        };
        let Some(online) = self.partitions.online_mut(at) else {
            return Ok(Noted::Refused);
        };
        match hearing {
            Hearing::HeardBefore => return Ok(Noted::Not),
            // Of a session that the follower has taken the partition out of, or is about to.
            Hearing::Unmentioned if online.replica.has_heard_more(fetch) => {
                return Ok(Noted::Refused);
            }
            Hearing::Unmentioned | Hearing::Mentioned => {}
        }
        let mut outputs = Vec::new();
        let replica = &mut online.replica;
        replica.handle_follower_fetch(self.now, fetch, &mut outputs)?;
        let outputs = outputs.into_iter().map(|output| (at, output));
        self.outputs.extend(outputs);
        Ok(Noted::Counted(fetch))
    }
}

/// What replicas put out while a fetch was served, to be performed at the end of it.
pub(crate) type FetchOutputs = Vec<(TopicIdPartition, Output)>;
