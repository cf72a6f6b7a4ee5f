//! The followers of this shard: what they fetch from the leaders of their partitions, and what
//! they do about the answers.
//!
//! A [`Fetcher`] has the partitions that one broker leads, a fetch session there and one request
//! on its way. A partition joins when its replica begins to follow a leader, and leaves when that
//! changes; while it rests, flushes or asks where the leader's log lies, it is left out.

mod answer;
mod append;
mod fetcher;
mod fetches;
mod range;
mod settings;
mod truncate;

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::Disk;
use highwater_metadata::config::BrokerConfig;
use highwater_protocol::client::ReplicaPosition;
use highwater_replication::{FetchPosition, FlushPolicy};
use highwater_types::{Mono, NodeId, Now, Offset, TopicIdPartition};

use self::fetcher::{Fetcher, FetcherId, Lane};
use self::range::RangeQuestions;
use self::settings::FollowSettings;
use super::partition::OnlinePartition;
use super::{Effects, Shard};
use crate::machine::Token;

/// What a shard keeps of the partitions that it follows.
#[derive(Debug)]
pub(crate) struct FollowState {
    settings: FollowSettings,
    fetchers: BTreeMap<FetcherId, Fetcher>,
    /// Every followed partition that has a leader.
    places: BTreeMap<TopicIdPartition, Place>,
    /// When the partitions that rest fetch again.
    rests: BTreeSet<(Mono, TopicIdPartition)>,
    /// The fetches that are on their way.
    asked: BTreeMap<Token, FetcherId>,
    ranges: RangeQuestions,
    /// Partitions whose copies are damaged, and which do not fetch until they are out of the ISR.
    damaged: BTreeSet<TopicIdPartition>,
    /// A fetcher may have something to send.
    is_stirred: bool,
    /// Under the old rule: the partitions that have cut to their own high watermark since their
    /// logs were opened.
    restarted: BTreeSet<TopicIdPartition>,
}

/// Where a followed partition is fetched.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: FetcherId,
    /// As in [`FollowState::rests`].
    rests_until: Option<Mono>,
    /// The leader is being asked where its log lies, because of a fetch at this position.
    asks_range: Option<FetchPosition>,
}

impl FollowState {
    /// Nothing is followed yet.
    pub(crate) fn new(config: &BrokerConfig) -> Self {
        Self {
            settings: FollowSettings::new(config),
            fetchers: BTreeMap::new(),
            places: BTreeMap::new(),
            rests: BTreeSet::new(),
            asked: BTreeMap::new(),
            ranges: RangeQuestions::default(),
            damaged: BTreeSet::new(),
            is_stirred: false,
            restarted: BTreeSet::new(),
        }
    }

    /// When something here wants a tick.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let rest = self.rests.first().map(|(at, _)| *at);
        let pauses = self.fetchers.values().filter_map(Fetcher::pauses_until);
        rest.into_iter().chain(pauses).min()
    }

    /// Whether a peer's answer is to something that was asked here.
    pub(crate) fn expects(&self, token: Token) -> bool {
        self.asked.contains_key(&token) || self.ranges.expects(token)
    }

    /// The fetcher `at`, made if there is none.
    fn fetcher(&mut self, at: FetcherId) -> &mut Fetcher {
        self.is_stirred = true;
        self.fetchers.entry(at).or_default()
    }

    /// Leaves a partition out of the requests of its fetcher.
    fn leave_out(&mut self, id: TopicIdPartition) {
        let Some(place) = self.places.get(&id) else {
            return;
        };
        if let Some(fetcher) = self.fetchers.get_mut(&place.at) {
            fetcher.session.leave_out(id);
            self.is_stirred = true;
        }
    }

    /// Notes when a partition fetches again, if it rests.
    fn set_rest(&mut self, id: TopicIdPartition, until: Option<Mono>) {
        let Some(place) = self.places.get_mut(&id) else {
            return;
        };
        if place.rests_until == until {
            return;
        }
        if let Some(before) = std::mem::replace(&mut place.rests_until, until) {
            self.rests.remove(&(before, id));
        }
        if let Some(until) = until {
            self.rests.insert((until, id));
        }
    }

    /// A partition is no longer followed, or follows another.
    fn remove(&mut self, id: TopicIdPartition) {
        self.leave_out(id);
        self.set_rest(id, None);
        if let Some(place) = self.places.remove(&id) {
            self.set_flushing(place.at.leader, id, false);
        }
    }

    /// Notes whether a partition is being flushed before its next fetch.
    fn set_flushing(&mut self, leader: NodeId, id: TopicIdPartition, is_flushing: bool) {
        let lane = Lane::Flushed;
        let at = FetcherId { leader, lane };
        if is_flushing {
            self.fetcher(at).flushing.insert(id);
        } else if let Some(fetcher) = self.fetchers.get_mut(&at)
            && fetcher.flushing.remove(&id)
        {
            self.is_stirred = true;
        }
    }

    /// Nothing is followed any more: the logs are being closed.
    fn stop(&mut self) {
        self.fetchers.clear();
        self.places.clear();
        self.rests.clear();
        self.damaged.clear();
        self.asked.clear();
        self.ranges = RangeQuestions::default();
    }

    /// Which fetcher a partition that wants to fetch now is best at, and is put there. `home` is
    /// the lane that it belongs to. While the fetch of that one is parked without the partition,
    /// another lane takes it at once.
    fn choose(&self, id: TopicIdPartition, place: Place, home: Lane) -> FetcherId {
        let at = |lane| FetcherId { lane, ..place.at };
        let is_parked = |lane| {
            let fetcher = self.fetchers.get(&at(lane));
            fetcher.filter(|it| it.in_flight.is_some())
        };
        let joining = is_parked(Lane::Joining);
        let is_in = |it: &Fetcher| it.session.sent(id).is_some();
        if place.at.lane == Lane::Joining && joining.is_some_and(is_in) {
            return place.at;
        }
        if is_parked(home).is_some_and(|it| !is_in(it)) {
            at(Lane::Joining)
        } else {
            at(home)
        }
    }
}

impl<D: Disk> Shard<D> {
    /// Looks at partitions whose replicas or logs changed.
    pub(crate) fn follow_partitions_changed(
        &mut self,
        now: Now,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        for id in changed {
            self.place(now, *id, out);
        }
    }

    /// Lets a partition join the fetcher of its leader, or leave that of a former one.
    fn place(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        let wanted = self.followed_leader(id);
        let place = self.follow.places.get(&id);
        if place.map(|it| it.at.leader) != wanted {
            if place.is_some() {
                self.follow.remove(id);
            }
            let Some(leader) = wanted else {
                self.follow.damaged.remove(&id);
                return;
            };
            let lane = Lane::Ordinary;
            let place = Place {
                at: FetcherId { leader, lane },
                rests_until: None,
                asks_range: None,
            };
            self.follow.places.insert(id, place);
            self.restart_by_old_rule(now, id, out);
        }
        if wanted.is_some() {
            self.mend(now, id, out);
        }
        self.refresh(now, id);
    }

    /// The metadata said something about a partition, if only that it left the ISR.
    pub(crate) fn follow_assigned(&mut self, id: TopicIdPartition) {
        if self.follow.damaged.contains(&id) {
            self.partitions.mark_changed(id);
        }
    }

    /// Whom the partition follows now, if it is open and follows anybody.
    fn followed_leader(&self, id: TopicIdPartition) -> Option<NodeId> {
        if self.lifecycle.is_closing() {
            return None;
        }
        let online = self.partitions.find(id)?.online().ok()?;
        online.replica().role().as_follower()?.leader
    }

    /// Brings a fetcher up to what a followed partition wants now.
    fn refresh(&mut self, now: Now, id: TopicIdPartition) {
        let Some(place) = self.follow.places.get(&id).copied() else {
            return;
        };
        let Some(online) = self.partitions.find(id).and_then(|it| it.online().ok()) else {
            return;
        };
        let replica = &online.replica;
        let may_fetch = replica.may_fetch(now.mono) && !self.follow.damaged.contains(&id);
        let rests_until = replica.rests_until();
        self.follow
            .set_rest(id, rests_until.filter(|at| now.mono < *at));
        let home = home_of(online);
        let is_flushing = home == Lane::Flushed && online.sync_in_flight && replica.owes_flush();
        let position = position(online, self.follow.settings.partition_bytes_max);
        let asks_range = place.asks_range.is_some_and(|asked| {
            let newest = online.log.last_epoch().unwrap_or_default();
            replica.fetch_position(newest) == Some(asked)
        });
        self.follow.set_flushing(place.at.leader, id, is_flushing);
        let Some(position) = position.filter(|_| may_fetch && !asks_range) else {
            self.follow.leave_out(id);
            return;
        };
        let at = self.follow.choose(id, place, home);
        if at != place.at {
            self.follow.leave_out(id);
            if let Some(place) = self.follow.places.get_mut(&id) {
                place.at = at;
            }
        }
        self.follow.fetcher(at).session.want(id, position);
    }

    pub(crate) fn follow_tick(&mut self, now: Now) {
        while let Some((at, id)) = self.follow.rests.first().copied()
            && at <= now.mono
        {
            self.follow.set_rest(id, None);
            self.refresh(now, id);
        }
        for fetcher in self.follow.fetchers.values_mut() {
            self.follow.is_stirred |= fetcher.end_pause(now);
        }
    }

    /// The logs are being closed: nothing is fetched, and nothing appended, any more.
    pub(crate) fn stop_following(&mut self) {
        self.follow.stop();
    }
}

/// Where a follower fetches.
fn position<D: Disk>(online: &OnlinePartition<D>, bytes_max: i32) -> Option<ReplicaPosition> {
    let log = online.log();
    let replica = online.replica();
    let position = replica.fetch_position(log.last_epoch().unwrap_or_default())?;
    Some(ReplicaPosition {
        fetch_offset: position.fetch_offset,
        log_start_offset: log.log_start_offset(),
        current_leader_epoch: position.leader_epoch,
        last_fetched_epoch: position.last_fetched_epoch,
        high_watermark: replica.high_watermark().max(Offset::ZERO),
        partition_max_bytes: bytes_max,
    })
}

/// The lane that a partition belongs to: those that have to flush before they fetch on do not hold
/// up the others.
fn home_of<D: Disk>(online: &OnlinePartition<D>) -> Lane {
    if online.replica().config().flush == FlushPolicy::NEVER {
        Lane::Ordinary
    } else {
        Lane::Flushed
    }
}
