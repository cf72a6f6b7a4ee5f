use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::client::{ReplicaPosition, SessionError};
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_replication::{FetchPosition, FollowStep, LeaderAnswer};
use highwater_types::{
    EpochEnd, ErrorCode, LeaderEpoch, NodeId, Now, Offset, PartitionIndex, TopicId,
    TopicIdPartition,
};

use super::fetcher::{FetcherId, Lane};
use super::truncate::Cause;
use crate::journal::{JournalEntry, Level};
use crate::machine::{Effect, PeerError, Token};
use crate::shard::partition::OnlinePartition;
use crate::shard::{Effects, Shard};

impl<D: Disk> Shard<D> {
    /// Takes a leader's answer to a fetch, or to a question where its logs lie.
    pub(crate) fn handle_leader_answer(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        let Some(at) = self.follow.asked.remove(&token) else {
            self.handle_range_answer(now, token, result, out);
            return;
        };
        if let Some(fetcher) = self.follow.fetchers.get_mut(&at) {
            fetcher.in_flight = None;
        }
        self.follow.is_stirred = true;
        match result {
            Ok(Response::Fetch(answer)) => self.take_fetched(now, at, answer, out),
            Ok(_) => self.fetch_failed(now, at, &PeerError::Malformed, out),
            Err(why) => self.fetch_failed(now, at, &why, out),
        }
        self.come_home(now, at);
    }

    /// A fetch got no answer. Told once until there is one again.
    fn fetch_failed(
        &mut self,
        now: Now,
        at: FetcherId,
        why: &dyn std::fmt::Display,
        out: &mut Effects<D>,
    ) {
        let pause_max = self.follow.settings.backoff;
        let Some(fetcher) = self.follow.fetchers.get_mut(&at) else {
            return;
        };
        if fetcher.failures == 0 && !fetcher.session.is_empty() {
            let (leader, count) = (at.leader, fetcher.session.len());
            let text = format!("broker {leader} does not answer the fetch of {count} partitions");
            let text = format!("{text}: {why}; asking again");
            out.push(Effect::Event(JournalEntry::text(Level::Info, text)));
        }
        fetcher.fail(now, pause_max);
    }

    fn take_fetched(
        &mut self,
        now: Now,
        at: FetcherId,
        answer: FetchResponse,
        out: &mut Effects<D>,
    ) {
        let Some(fetcher) = self.follow.fetchers.get_mut(&at) else {
            return;
        };
        match fetcher.session.handle_answer(&answer) {
            Ok(()) => fetcher.resume(),
            // The leader was started anew or had no room: usual, and over with the next request.
            Err(SessionError::Refused(
                ErrorCode::FETCH_SESSION_ID_NOT_FOUND | ErrorCode::INVALID_FETCH_SESSION_EPOCH,
            )) if fetcher.failures == 0 => {
                fetcher.failures = 1;
                return;
            }
            Err(why) => {
                self.fetch_failed(now, at, &why, out);
                return;
            }
        }
        let mut out_of_range = Vec::new();
        for topic in answer.responses {
            let topic_id = TopicId::new(topic.topic_id);
            for data in topic.partitions {
                let id = TopicIdPartition {
                    topic_id,
                    partition: PartitionIndex::new(data.partition_index),
                };
                let fetcher = self.follow.fetchers.get_mut(&at);
                let Some(sent) = fetcher.and_then(|it| it.session.sent(id)) else {
                    continue;
                };
                let step = self.take_partition(now, at, id, sent, data, out);
                if step == FollowStep::AskRange {
                    out_of_range.push((id, sent_position(at.leader, sent)));
                }
                self.refresh(now, id);
            }
        }
        self.ask_ranges(now, at, out_of_range, out);
    }

    /// Does what is to be done about the answer to one partition. Says what that was.
    fn take_partition(
        &mut self,
        now: Now,
        at: FetcherId,
        id: TopicIdPartition,
        sent: ReplicaPosition,
        data: PartitionData,
        out: &mut Effects<D>,
    ) -> FollowStep {
        let Some(OnlinePartition { log, replica, .. }) = self.partitions.online_mut(id) else {
            return FollowStep::Drop;
        };
        let leader_end = EpochEnd {
            epoch: LeaderEpoch::new(data.diverging_epoch.epoch),
            end_offset: Offset::new(data.diverging_epoch.end_offset),
        };
        let answer = if data.error_code.is_error() {
            LeaderAnswer::Error(data.error_code)
        } else if leader_end.epoch >= LeaderEpoch::ZERO {
            LeaderAnswer::Diverging(leader_end)
        } else {
            LeaderAnswer::Records
        };
        #[cfg(feature = "planted-bugs")]
        if highwater_types::is_planted(
            highwater_types::PlantedBug::RaiseTheHighWatermarkBeforeCutting,
        ) && matches!(answer, LeaderAnswer::Diverging(_))
        {
            // The cut comes with the next answer.
            let told = Offset::new(data.high_watermark).min(log.log_end_offset());
            if replica.high_watermark() < told {
                self.with_replica(now, id, out, |replica, outputs| {
                    replica.handle_leader_high_watermark(told, outputs);
                });
                return FollowStep::Drop;
            }
        }
        let position = sent_position(at.leader, sent);
        let step = replica.judge_fetch(now, position, log.epochs(), answer);
        match step {
            FollowStep::Append => self.take_records(now, (at, id), sent, data, out),
            FollowStep::CutTo(to) => {
                self.cut(now, id, to, Cause::Diverging(leader_end), out);
            }
            FollowStep::RestartAt(start) => self.restart(now, id, start, out),
            FollowStep::Rest => self.note_leader_error(id, data.error_code, out),
            FollowStep::Drop | FollowStep::AskRange => {}
        }
        step
    }

    /// The fetch of a lane was answered: those that began to fetch in the meantime come home.
    fn come_home(&mut self, now: Now, at: FetcherId) {
        if at.lane == Lane::Joining {
            return;
        }
        let joining = FetcherId {
            lane: Lane::Joining,
            ..at
        };
        let Some(fetcher) = self.follow.fetchers.get(&joining) else {
            return;
        };
        let ids: Vec<TopicIdPartition> = fetcher.session.wanted().collect();
        for id in ids {
            let Some(place) = self.follow.places.get_mut(&id) else {
                continue;
            };
            let online = self.partitions.find(id).and_then(|it| it.online().ok());
            let is_home = online.is_some_and(|it| super::home_of(it) == at.lane);
            if is_home && place.at == joining {
                place.at = at;
                if let Some(fetcher) = self.follow.fetchers.get_mut(&joining) {
                    fetcher.session.leave_out(id);
                }
                self.refresh(now, id);
            }
        }
    }
}

/// What a replica compares its position with.
pub(super) const fn sent_position(leader: NodeId, sent: ReplicaPosition) -> FetchPosition {
    FetchPosition {
        leader,
        leader_epoch: sent.current_leader_epoch,
        fetch_offset: sent.fetch_offset,
        last_fetched_epoch: sent.last_fetched_epoch,
    }
}
