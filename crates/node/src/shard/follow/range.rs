use std::collections::BTreeMap;

use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::ListOffsetsResponse;
use highwater_protocol::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use highwater_replication::{FetchPosition, FollowStep, LeaderRange};
use highwater_types::{ErrorCode, Now, Offset, TopicIdPartition};

use super::fetcher::FetcherId;
use super::truncate::Cause;
use crate::machine::{Effect, PeerError, Token};
use crate::shard::partition::OnlinePartition;
use crate::shard::{Effects, Shard};

/// ListOffsets: where the log ends, for a replica.
const LATEST: i64 = -1;
/// ListOffsets: where the log starts.
const EARLIEST: i64 = -2;

/// The questions to leaders where their logs begin and end, which followers ask whose fetches are
/// out of range.
#[derive(Debug, Default)]
pub(super) struct RangeQuestions {
    asked: u64,
    questions: BTreeMap<u64, RangeQuestion>,
    /// The two requests of each question.
    tokens: BTreeMap<Token, (u64, End)>,
}

/// One question, about several partitions.
#[derive(Debug)]
struct RangeQuestion {
    partitions: Vec<(TopicIdPartition, FetchPosition)>,
    starts: Option<Ends>,
    ends: Option<Ends>,
}

/// What a leader said of each partition, by topic name and number.
type Ends = BTreeMap<(String, i32), Result<Offset, ErrorCode>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Start,
    End,
}

impl End {
    const fn timestamp(self) -> i64 {
        match self {
            Self::Start => EARLIEST,
            Self::End => LATEST,
        }
    }
}

impl RangeQuestions {
    pub(super) fn expects(&self, token: Token) -> bool {
        self.tokens.contains_key(&token)
    }
}

impl<D: Disk> Shard<D> {
    /// Asks a leader where its logs of these partitions begin and end. One request cannot ask
    /// twice about a partition.
    pub(super) fn ask_ranges(
        &mut self,
        now: Now,
        at: FetcherId,
        partitions: Vec<(TopicIdPartition, FetchPosition)>,
        out: &mut Effects<D>,
    ) {
        if partitions.is_empty() {
            return;
        }
        for (id, sent) in &partitions {
            if let Some(place) = self.follow.places.get_mut(id) {
                place.asks_range = Some(*sent);
            }
            self.refresh(now, *id);
        }
        let peer = self.peer_of(at.leader);
        let deadline = now.mono.plus(self.follow.settings.timeout);
        self.follow.ranges.asked += 1;
        let number = self.follow.ranges.asked;
        for end in [End::End, End::Start] {
            let request = self.range_request(&partitions, end.timestamp());
            let token = self.new_token();
            self.follow.ranges.tokens.insert(token, (number, end));
            // In front of the next fetch, which may wait.
            out.push(Effect::Send {
                peer: peer.clone(),
                channel: at.lane.channel(),
                token,
                request: request.into(),
                deadline,
            });
        }
        let question = RangeQuestion {
            partitions,
            starts: None,
            ends: None,
        };
        self.follow.ranges.questions.insert(number, question);
    }

    fn range_request(
        &self,
        partitions: &[(TopicIdPartition, FetchPosition)],
        timestamp: i64,
    ) -> ListOffsetsRequest {
        let mut topics: Vec<ListOffsetsTopic> = Vec::new();
        for (id, position) in partitions {
            let Some(partition) = self.partitions.find(*id) else {
                continue;
            };
            let name = partition.name().topic.as_str();
            let row = ListOffsetsPartition {
                partition_index: id.partition.raw(),
                current_leader_epoch: position.leader_epoch.raw(),
                timestamp,
            };
            match topics.last_mut().filter(|last| last.name == name) {
                Some(last) => last.partitions.push(row),
                None => topics.push(ListOffsetsTopic {
                    name: name.to_owned(),
                    partitions: vec![row],
                }),
            }
        }
        ListOffsetsRequest {
            replica_id: self.node_id,
            topics,
            ..ListOffsetsRequest::default()
        }
    }

    /// Takes one of the two answers to a question; with the second, goes on.
    pub(super) fn handle_range_answer(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        let ranges = &mut self.follow.ranges;
        let Some((number, end)) = ranges.tokens.remove(&token) else {
            return;
        };
        let answer = match result {
            Ok(Response::ListOffsets(answer)) => offsets(answer),
            Ok(_) | Err(_) => Ends::new(),
        };
        let Some(question) = ranges.questions.get_mut(&number) else {
            return;
        };
        match end {
            End::Start => question.starts = Some(answer),
            End::End => question.ends = Some(answer),
        }
        if question.starts.is_none() || question.ends.is_none() {
            return;
        }
        let Some(question) = ranges.questions.remove(&number) else {
            return;
        };
        self.follow.is_stirred = true;
        let RangeQuestion {
            partitions,
            starts,
            ends,
        } = question;
        let (starts, ends) = (starts.unwrap_or_default(), ends.unwrap_or_default());
        for (id, sent) in partitions {
            self.take_range(now, (id, sent), (&starts, &ends), out);
        }
    }

    fn take_range(
        &mut self,
        now: Now,
        (id, sent): (TopicIdPartition, FetchPosition),
        (starts, ends): (&Ends, &Ends),
        out: &mut Effects<D>,
    ) {
        if let Some(place) = self.follow.places.get_mut(&id) {
            place.asks_range.take_if(|asked| *asked == sent);
        }
        let Some(OnlinePartition { log, replica, .. }) = self.partitions.online_mut(id) else {
            return;
        };
        let name = log.topic_partition();
        let key = (name.topic.as_str().to_owned(), name.partition.raw());
        let step = match (starts.get(&key), ends.get(&key)) {
            (Some(Ok(start)), Some(Ok(end))) => {
                let range = LeaderRange {
                    log_start_offset: *start,
                    log_end_offset: *end,
                };
                replica.judge_leader_range(now, sent, log.epochs(), range)
            }
            _ => {
                replica.handle_fetch_failed(now);
                FollowStep::Rest
            }
        };
        match step {
            FollowStep::CutTo(to) => self.cut(now, id, to, Cause::LeaderEnd(to), out),
            FollowStep::RestartAt(start) => self.restart(now, id, start, out),
            FollowStep::Append | FollowStep::AskRange | FollowStep::Drop | FollowStep::Rest => {}
        }
        self.refresh(now, id);
    }
}

fn offsets(answer: ListOffsetsResponse) -> Ends {
    let rows = answer.topics.into_iter().flat_map(|topic| {
        let name = topic.name;
        let rows = topic.partitions.into_iter();
        rows.map(move |it| ((name.clone(), it.partition_index), it))
    });
    let rows = rows.map(|(key, it)| {
        let offset = Offset::new(it.offset);
        let said = if it.error_code.is_error() {
            Err(it.error_code)
        } else {
            Ok(offset)
        };
        (key, said)
    });
    rows.collect()
}
