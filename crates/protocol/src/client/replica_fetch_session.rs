use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use highwater_types::{
    BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicIdPartition,
};

use super::fetch_session::{SessionEpoch, SessionError};
use crate::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic, ReplicaState};
use crate::messages::{FetchRequest, FetchResponse};

/// What a broker keeps in mind about the session in which it copies partitions from one leader
/// broker (KIP-227): each request names only the partitions that changed, so that thousands of
/// idle partitions cost nothing.
///
/// One request at a time: [`ReplicaFetchSession::next_request`], then
/// [`ReplicaFetchSession::handle_answer`] or [`ReplicaFetchSession::handle_failure`]. What is
/// wanted may change in between.
#[derive(Clone, Debug, Default)]
pub struct ReplicaFetchSession {
    session: SessionEpoch,
    entries: BTreeMap<TopicIdPartition, Entry>,
    /// The entries whose `sent` and `wanted` may differ.
    changed: BTreeSet<TopicIdPartition>,
    wanted_count: usize,
    /// The last partition that got records. A request that names all partitions begins behind it,
    /// for an answer that is full leaves out those at the end.
    served_last: Option<TopicIdPartition>,
}

/// A partition of the session.
///
/// Invariant: at least one of the two is there.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// What the leader knows, or will once it has taken in the request on its way.
    sent: Option<ReplicaPosition>,
    /// What it is to know; `None`: the partition leaves the session.
    wanted: Option<ReplicaPosition>,
}

/// Where a replica fetches a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaPosition {
    /// The follower's log end offset.
    pub fetch_offset: Offset,
    /// The follower's log start offset.
    pub log_start_offset: Offset,
    /// The epoch of the leader, as the follower's metadata has it.
    pub current_leader_epoch: LeaderEpoch,
    /// The newest epoch of the follower's history, or none.
    pub last_fetched_epoch: LeaderEpoch,
    /// The follower's high watermark. A position that differs only in it is not sent anew.
    pub high_watermark: Offset,
    /// Bytes of records wanted at most; the first batch of an answer may exceed them.
    pub partition_max_bytes: i32,
}

/// Who fetches, how much it wants and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaFetch {
    /// The follower's node id.
    pub replica: NodeId,
    /// The follower's registration (KIP-903).
    pub broker_epoch: BrokerEpoch,
    /// Milliseconds that the leader may wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// Bytes of records that end the wait.
    pub min_bytes: i32,
    /// Bytes of records that the answer should not exceed.
    pub max_bytes: i32,
}

impl ReplicaPosition {
    fn says_the_same(&self, other: &Self) -> bool {
        let high_watermark = self.high_watermark;
        *self
            == Self {
                high_watermark,
                ..*other
            }
    }
}

impl ReplicaFetchSession {
    /// No session and no partitions yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many partitions are wanted.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.wanted_count
    }

    /// Whether no partition is wanted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.wanted_count == 0
    }

    /// Has `partition` fetched at `position` from the next request on.
    pub fn want(&mut self, partition: TopicIdPartition, position: ReplicaPosition) {
        let entry = self.entries.entry(partition).or_default();
        if entry.wanted.replace(position).is_none() {
            self.wanted_count += 1;
        }
        if entry.sent.is_none_or(|it| !it.says_the_same(&position)) {
            self.changed.insert(partition);
        }
    }

    /// Has `partition` left out from the next request on.
    pub fn leave_out(&mut self, partition: TopicIdPartition) {
        let Some(entry) = self.entries.get_mut(&partition) else {
            return;
        };
        if entry.wanted.take().is_some() {
            self.wanted_count -= 1;
        }
        if entry.sent.is_none() {
            self.entries.remove(&partition);
            self.changed.remove(&partition);
        } else {
            self.changed.insert(partition);
        }
    }

    /// The partitions that are wanted, by rising topic id and number.
    pub fn wanted(&self) -> impl Iterator<Item = TopicIdPartition> {
        let wanted = self.entries.iter().filter(|(_, it)| it.wanted.is_some());
        wanted.map(|(id, _)| *id)
    }

    /// Where the leader was last asked for `partition`; `None` when it was not.
    #[must_use]
    pub fn sent(&self, partition: TopicIdPartition) -> Option<ReplicaPosition> {
        self.entries.get(&partition)?.sent
    }

    /// The next request, for versions 15 and above.
    #[must_use]
    pub fn next_request(&mut self, fetch: ReplicaFetch) -> FetchRequest {
        let (session_id, session_epoch) = self.session.next();
        let mut request = FetchRequest {
            replica_state: ReplicaState {
                replica_id: fetch.replica,
                replica_epoch: fetch.broker_epoch.raw(),
            },
            max_wait_ms: fetch.max_wait_ms,
            min_bytes: fetch.min_bytes,
            max_bytes: fetch.max_bytes,
            session_id,
            session_epoch,
            ..FetchRequest::default()
        };
        if self.session.is_full_next() {
            self.name_all(&mut request);
        } else {
            self.name_changed(&mut request);
        }
        request
    }

    fn name_all(&mut self, request: &mut FetchRequest) {
        self.changed.clear();
        self.entries.retain(|_, entry| {
            entry.sent = entry.wanted;
            entry.wanted.is_some()
        });
        let behind = self.served_last.map_or(Bound::Unbounded, Bound::Excluded);
        let first = self.entries.range((behind, Bound::Unbounded));
        for (partition, entry) in first {
            push(&mut request.topics, *partition, entry.wanted);
        }
        let Some(served_last) = self.served_last else {
            return;
        };
        for (partition, entry) in self.entries.range(..=served_last) {
            push(&mut request.topics, *partition, entry.wanted);
        }
    }

    fn name_changed(&mut self, request: &mut FetchRequest) {
        for partition in std::mem::take(&mut self.changed) {
            let Some(entry) = self.entries.get_mut(&partition) else {
                continue;
            };
            let before = std::mem::replace(&mut entry.sent, entry.wanted);
            match (before, entry.wanted) {
                (Some(before), Some(wanted)) if before.says_the_same(&wanted) => {
                    // It changed and changed back: the leader still knows the position.
                    entry.sent = Some(before);
                }
                (_, Some(_)) => push(&mut request.topics, partition, entry.wanted),
                (_, None) => {
                    self.entries.remove(&partition);
                    forget(&mut request.forgotten_topics_data, partition);
                }
            }
        }
    }

    /// Takes in the head of the answer to the last request. What it says of single partitions is
    /// the caller's business, with [`ReplicaFetchSession::sent`].
    ///
    /// # Errors
    /// When the leader refused the request, or answered what is not in the session. The next
    /// request then begins a new session.
    pub fn handle_answer(&mut self, answer: &FetchResponse) -> Result<(), SessionError> {
        if let Err(refused) = self.session.check(answer.error_code) {
            return Err(SessionError::Refused(refused));
        }
        let mut rows = answer.responses.iter().flat_map(|topic| {
            let topic_id = TopicId::new(topic.topic_id);
            let rows = topic.partitions.iter();
            rows.map(move |it| (topic_id, it.partition_index))
        });
        let is_known = |(topic_id, number): (TopicId, i32)| {
            let partition = PartitionIndex::new(number);
            let id = TopicIdPartition {
                topic_id,
                partition,
            };
            self.sent(id).is_some()
        };
        if !rows.all(is_known) {
            self.handle_failure();
            return Err(SessionError::Foreign);
        }
        self.session.advance(answer.session_id);
        Ok(())
    }

    /// Notes that the leader gave records of `partition`.
    pub const fn note_served(&mut self, partition: TopicIdPartition) {
        self.served_last = Some(partition);
    }

    /// The last request got no answer: the next one is full and begins a new session.
    pub const fn handle_failure(&mut self) {
        self.session.begin_anew();
    }
}

/// Adds a partition to its topic, or with a new topic at the end.
fn push(topics: &mut Vec<FetchTopic>, at: TopicIdPartition, position: Option<ReplicaPosition>) {
    let Some(position) = position else {
        return;
    };
    let partition = FetchPartition {
        partition: at.partition.raw(),
        current_leader_epoch: position.current_leader_epoch.raw(),
        fetch_offset: position.fetch_offset.raw(),
        last_fetched_epoch: position.last_fetched_epoch.raw(),
        log_start_offset: position.log_start_offset.raw(),
        partition_max_bytes: position.partition_max_bytes,
        high_watermark: position.high_watermark.raw(),
        ..FetchPartition::default()
    };
    let topic_id = at.topic_id.uuid();
    match topics.last_mut().filter(|last| last.topic_id == topic_id) {
        Some(last) => last.partitions.push(partition),
        None => topics.push(FetchTopic {
            topic_id,
            partitions: vec![partition],
            ..FetchTopic::default()
        }),
    }
}

fn forget(topics: &mut Vec<ForgottenTopic>, at: TopicIdPartition) {
    let topic_id = at.topic_id.uuid();
    let partition = at.partition.raw();
    match topics.last_mut().filter(|last| last.topic_id == topic_id) {
        Some(last) => last.partitions.push(partition),
        None => topics.push(ForgottenTopic {
            topic_id,
            partitions: vec![partition],
            ..ForgottenTopic::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::{ErrorCode, Uuid};

    use super::*;
    use crate::messages::fetch_response::{FetchableTopicResponse, PartitionData};

    const FETCH: ReplicaFetch = ReplicaFetch {
        replica: NodeId::new(2),
        broker_epoch: BrokerEpoch::new(17),
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 10 << 20,
    };

    fn id(partition: i32) -> TopicIdPartition {
        TopicIdPartition {
            topic_id: TopicId::new(Uuid::from_u128(7)),
            partition: PartitionIndex::new(partition),
        }
    }

    fn at(fetch_offset: i64) -> ReplicaPosition {
        ReplicaPosition {
            fetch_offset: Offset::new(fetch_offset),
            log_start_offset: Offset::ZERO,
            current_leader_epoch: LeaderEpoch::new(3),
            last_fetched_epoch: LeaderEpoch::new(2),
            high_watermark: Offset::ZERO,
            partition_max_bytes: 1 << 20,
        }
    }

    fn session(partitions: i32) -> ReplicaFetchSession {
        let mut session = ReplicaFetchSession::new();
        for partition in 0..partitions {
            session.want(id(partition), at(0));
        }
        session
    }

    fn answer(session_id: i32, error_code: ErrorCode, partitions: &[i32]) -> FetchResponse {
        let data = |&partition_index| PartitionData {
            partition_index,
            ..PartitionData::default()
        };
        let topic = FetchableTopicResponse {
            topic_id: Uuid::from_u128(7),
            partitions: partitions.iter().map(data).collect(),
            ..FetchableTopicResponse::default()
        };
        FetchResponse {
            session_id,
            error_code,
            responses: vec![topic],
            ..FetchResponse::default()
        }
    }

    /// (session id, epoch, partitions sent with their offsets, partitions forgotten)
    fn told(request: &FetchRequest) -> (i32, i32, Vec<(i32, i64)>, Vec<i32>) {
        let sent = request.topics.iter().flat_map(|it| &it.partitions);
        let sent = sent.map(|it| (it.partition, it.fetch_offset)).collect();
        let gone = request.forgotten_topics_data.iter();
        let gone = gone.flat_map(|it| &it.partitions).copied().collect();
        (request.session_id, request.session_epoch, sent, gone)
    }

    fn exchange(session: &mut ReplicaFetchSession) -> (i32, i32, Vec<(i32, i64)>, Vec<i32>) {
        let request = session.next_request(FETCH);
        let it = answer(9, ErrorCode::NONE, &[]);
        assert_eq!(session.handle_answer(&it), Ok(()));
        told(&request)
    }

    #[test]
    fn later_requests_name_what_changed() {
        let mut session = session(3);
        let first = exchange(&mut session);
        assert_eq!(first, (0, 0, vec![(0, 0), (1, 0), (2, 0)], vec![]));
        assert_eq!(exchange(&mut session), (9, 1, vec![], vec![]));
        session.want(id(0), at(5));
        session.want(id(1), at(0));
        session.leave_out(id(2));
        session.want(id(3), at(0));
        session.leave_out(id(3));
        assert_eq!(session.len(), 2);
        assert_eq!(exchange(&mut session), (9, 2, vec![(0, 5)], vec![2]));
        session.want(id(2), at(7));
        assert_eq!(exchange(&mut session), (9, 3, vec![(2, 7)], vec![]));
    }

    #[test]
    fn what_changed_and_changed_back_is_not_named() {
        let mut session = session(2);
        let _ = exchange(&mut session);
        session.leave_out(id(0));
        session.want(id(0), at(0));
        session.want(id(1), at(4));
        session.want(id(1), at(0));
        assert_eq!(exchange(&mut session), (9, 1, vec![], vec![]));
    }

    #[test]
    fn a_high_watermark_alone_names_no_partition() {
        let mut session = session(2);
        let _ = exchange(&mut session);
        let high_watermark = Offset::new(4);
        let position = ReplicaPosition {
            high_watermark,
            ..at(0)
        };
        session.want(id(0), position);
        assert_eq!(exchange(&mut session).2, vec![]);
        session.want(
            id(0),
            ReplicaPosition {
                fetch_offset: Offset::new(6),
                ..position
            },
        );
        let request = session.next_request(FETCH);
        assert_eq!(request.topics[0].partitions[0].high_watermark, 4);
        assert_eq!(request.replica_state.replica_epoch, 17);
    }

    #[test]
    fn a_lost_answer_begins_a_session_that_names_all() {
        let mut session = session(2);
        let _ = exchange(&mut session);
        session.want(id(0), at(5));
        let _ = session.next_request(FETCH);
        session.handle_failure();
        session.leave_out(id(1));
        // The old session is named, so that the leader drops it.
        assert_eq!(exchange(&mut session), (9, 0, vec![(0, 5)], vec![]));
        let code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        let _ = session.next_request(FETCH);
        let refused = session.handle_answer(&answer(0, code, &[]));
        assert_eq!(refused, Err(SessionError::Refused(code)));
        assert_eq!(exchange(&mut session), (0, 0, vec![(0, 5)], vec![]));
    }

    #[test]
    fn a_partition_that_was_not_asked_for_is_foreign() {
        let mut session = session(1);
        let _ = session.next_request(FETCH);
        let foreign = session.handle_answer(&answer(9, ErrorCode::NONE, &[0, 4]));
        assert_eq!(foreign, Err(SessionError::Foreign));
    }

    #[test]
    fn full_requests_rotate() {
        let mut session = session(4);
        let _ = session.next_request(FETCH);
        assert_eq!(
            session.handle_answer(&answer(0, ErrorCode::NONE, &[0, 1])),
            Ok(())
        );
        session.note_served(id(1));
        let (_, _, order, _) = told(&session.next_request(FETCH));
        assert_eq!(order, [(2, 0), (3, 0), (0, 0), (1, 0)]);
    }
}
