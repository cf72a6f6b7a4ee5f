use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_types::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId};

use crate::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use crate::messages::{FetchRequest, FetchResponse};

/// The last version that names topics by name.
const NAMES_UNTIL: i16 = 12;
/// The first version with fetch sessions (KIP-227).
const SESSIONS_SINCE: i16 = 7;

/// What a consumer keeps in mind about its fetch session with one broker (KIP-227), so that each
/// request names only the partitions that changed.
///
/// One request at a time: [`FetchSession::next_request`], then [`FetchSession::handle_answer`] or
/// [`FetchSession::handle_failure`].
#[derive(Clone, Debug)]
pub struct FetchSession {
    session: SessionEpoch,
    /// Whether the session's topics are named by id.
    by_id: bool,
    /// What the broker knows, or will once it has taken in the request on its way.
    partitions: BTreeMap<Key, WantedPartition>,
}

/// Which session the next request belongs to, and where in it that request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionEpoch {
    /// 0: none.
    id: i32,
    /// Of the next request. 0: a full one, which begins a session.
    epoch: i32,
}

type Key = (TopicRef, PartitionIndex);

/// A topic as the session names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TopicRef {
    Name(Arc<str>),
    Id(TopicId),
}

/// A partition from which a consumer wants records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The topic's id; [`TopicId::ZERO`] when it is not known.
    pub topic_id: TopicId,
    /// The partition.
    pub partition: PartitionIndex,
    /// The first offset wanted.
    pub fetch_offset: Offset,
    /// The leader epoch that the consumer knows, or none.
    pub current_leader_epoch: LeaderEpoch,
    /// The epoch of the last record that the consumer has, or none.
    pub last_fetched_epoch: LeaderEpoch,
    /// Bytes of records wanted at most; the first batch may exceed them.
    pub partition_max_bytes: i32,
}

/// How much a fetch wants and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Milliseconds that the broker may wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// Bytes of records that end the wait.
    pub min_bytes: i32,
    /// Bytes of records that the answer should not exceed.
    pub max_bytes: i32,
    /// Whether only committed transactions are read.
    pub read_committed: bool,
}

/// Why an answer is not taken in; the session begins anew with the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The broker refused the request.
    #[error("the broker refused the fetch: {0}")]
    Refused(ErrorCode),
    /// The broker answered partitions that are not in the session.
    #[error("the broker answered a partition that is not in the fetch session")]
    Foreign,
}

impl Default for FetchSession {
    fn default() -> Self {
        Self::new()
    }
}

impl FetchSession {
    /// No session yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            session: SessionEpoch { id: 0, epoch: 0 },
            by_id: false,
            partitions: BTreeMap::new(),
        }
    }

    /// The next request for exactly the partitions `wanted`, and the version to send it at: at
    /// most `version_max`, and one that names topics by name while an id is not known.
    #[must_use]
    pub fn next_request(
        &mut self,
        wanted: Vec<WantedPartition>,
        limits: FetchLimits,
        version_max: i16,
    ) -> (FetchRequest, i16) {
        let ids_known = wanted.iter().all(|it| !it.topic_id.is_zero());
        let version = if ids_known {
            version_max
        } else {
            version_max.min(NAMES_UNTIL)
        };
        let by_id = version > NAMES_UNTIL;
        if by_id != self.by_id {
            // A session cannot change how it names topics.
            self.session.begin_anew();
        }
        self.by_id = by_id;
        let mut request = FetchRequest {
            max_wait_ms: limits.max_wait_ms,
            min_bytes: limits.min_bytes,
            max_bytes: limits.max_bytes,
            isolation_level: i8::from(limits.read_committed),
            ..FetchRequest::default()
        };
        let mut known = std::mem::take(&mut self.partitions);
        let full = self.session.is_full_next() || version < SESSIONS_SINCE;
        if version >= SESSIONS_SINCE {
            (request.session_id, request.session_epoch) = self.session.next();
        }
        for it in wanted {
            let key = self.key(&it);
            let before = known.remove(&key);
            if full || before.as_ref() != Some(&it) {
                push(&mut request.topics, &it);
            }
            self.partitions.insert(key, it);
        }
        if !full {
            for it in known.values() {
                push_forgotten(&mut request.forgotten_topics_data, it);
            }
        }
        (request, version)
    }

    /// A request that ends the session without fetching, if there is one.
    #[must_use]
    pub fn close_request(&self) -> Option<FetchRequest> {
        (self.session.id != 0).then(|| FetchRequest {
            session_id: self.session.id,
            session_epoch: -1,
            ..FetchRequest::default()
        })
    }

    /// Takes in the answer to the last request.
    ///
    /// # Errors
    /// When the broker refused the request, or answered what is not in the session. The next
    /// request then begins a new session.
    pub fn handle_answer(&mut self, answer: &FetchResponse) -> Result<(), SessionError> {
        self.session
            .check(answer.error_code)
            .map_err(SessionError::Refused)?;
        if !self.knows_all(answer) {
            self.handle_failure();
            return Err(SessionError::Foreign);
        }
        self.session.advance(answer.session_id);
        Ok(())
    }

    /// The last request got no answer: whether the broker took it in is not known, so the next
    /// one is full, and replaces the session if there still is one.
    pub const fn handle_failure(&mut self) {
        self.session.begin_anew();
    }

    fn knows_all(&self, answer: &FetchResponse) -> bool {
        answer.responses.iter().all(|topic| {
            let topic_ref = if self.by_id {
                TopicRef::Id(TopicId::new(topic.topic_id))
            } else {
                TopicRef::Name(topic.topic.as_str().into())
            };
            topic.partitions.iter().all(|it| {
                let key = (topic_ref.clone(), PartitionIndex::new(it.partition_index));
                self.partitions.contains_key(&key)
            })
        })
    }

    fn key(&self, it: &WantedPartition) -> Key {
        let topic = if self.by_id {
            TopicRef::Id(it.topic_id)
        } else {
            TopicRef::Name(Arc::clone(&it.topic))
        };
        (topic, it.partition)
    }
}

impl SessionEpoch {
    /// Session id and epoch of the next request.
    pub(super) const fn next(self) -> (i32, i32) {
        (self.id, self.epoch)
    }

    /// Whether the next request names all partitions.
    pub(super) const fn is_full_next(self) -> bool {
        self.epoch == 0
    }

    /// The next request is full. It replaces the session if there still is one.
    pub(super) const fn begin_anew(&mut self) {
        self.epoch = 0;
    }

    /// Takes in the error of an answer's head, which is given back.
    pub(super) fn check(&mut self, error: ErrorCode) -> Result<(), ErrorCode> {
        if !error.is_error() {
            return Ok(());
        }
        self.begin_anew();
        if error == ErrorCode::FETCH_SESSION_ID_NOT_FOUND {
            self.id = 0;
        }
        Err(error)
    }

    /// The broker has taken in the last request in this session; 0: it keeps none for us.
    pub(super) fn advance(&mut self, session_id: i32) {
        self.id = session_id;
        // Epoch 0 would begin a session, so the count goes on at 1 after the largest.
        let next = self.epoch.checked_add(1).unwrap_or(1);
        self.epoch = if session_id == 0 { 0 } else { next };
    }
}

/// Adds a partition to its topic, or with a new topic at the end.
fn push(topics: &mut Vec<FetchTopic>, it: &WantedPartition) {
    let partition = FetchPartition {
        partition: it.partition.raw(),
        current_leader_epoch: it.current_leader_epoch.raw(),
        fetch_offset: it.fetch_offset.raw(),
        last_fetched_epoch: it.last_fetched_epoch.raw(),
        partition_max_bytes: it.partition_max_bytes,
        ..FetchPartition::default()
    };
    let id = it.topic_id.uuid();
    match topics
        .last_mut()
        .filter(|last| last.topic == *it.topic && last.topic_id == id)
    {
        Some(last) => last.partitions.push(partition),
        None => topics.push(FetchTopic {
            topic: it.topic.as_ref().into(),
            topic_id: id,
            partitions: vec![partition],
        }),
    }
}

fn push_forgotten(topics: &mut Vec<ForgottenTopic>, it: &WantedPartition) {
    let id = it.topic_id.uuid();
    let partition = it.partition.raw();
    match topics
        .last_mut()
        .filter(|last| last.topic == *it.topic && last.topic_id == id)
    {
        Some(last) => last.partitions.push(partition),
        None => topics.push(ForgottenTopic {
            topic: it.topic.as_ref().into(),
            topic_id: id,
            partitions: vec![partition],
        }),
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::Uuid;

    use super::*;
    use crate::messages::fetch_response::{FetchableTopicResponse, PartitionData};

    const LIMITS: FetchLimits = FetchLimits {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        read_committed: false,
    };

    fn wanted(partition: i32, fetch_offset: i64) -> WantedPartition {
        WantedPartition {
            topic: "orders".into(),
            topic_id: TopicId::new(Uuid::from_u128(7)),
            partition: PartitionIndex::new(partition),
            fetch_offset: Offset::new(fetch_offset),
            current_leader_epoch: LeaderEpoch::NONE,
            last_fetched_epoch: LeaderEpoch::NONE,
            partition_max_bytes: 1 << 20,
        }
    }

    fn answer(session_id: i32, error_code: ErrorCode, partitions: &[i32]) -> FetchResponse {
        let data = |&partition_index| PartitionData {
            partition_index,
            ..PartitionData::default()
        };
        let topic = FetchableTopicResponse {
            topic: "orders".into(),
            topic_id: Uuid::from_u128(7),
            partitions: partitions.iter().map(data).collect(),
        };
        FetchResponse {
            session_id,
            error_code,
            responses: vec![topic],
            ..FetchResponse::default()
        }
    }

    /// (session id, epoch, partitions sent, partitions forgotten)
    fn told(request: &FetchRequest) -> (i32, i32, Vec<i32>, Vec<i32>) {
        let sent = request
            .topics
            .iter()
            .flat_map(|it| &it.partitions)
            .map(|it| it.partition);
        let forgotten = request
            .forgotten_topics_data
            .iter()
            .flat_map(|it| &it.partitions);
        (
            request.session_id,
            request.session_epoch,
            sent.collect(),
            forgotten.copied().collect(),
        )
    }

    fn next(session: &mut FetchSession, wanted: Vec<WantedPartition>) -> FetchRequest {
        let (request, version) = session.next_request(wanted, LIMITS, 18);
        assert_eq!(version, 18);
        request
    }

    #[test]
    fn later_requests_name_what_changed() {
        let mut session = FetchSession::new();
        let first = next(&mut session, vec![wanted(0, 0), wanted(1, 0), wanted(2, 0)]);
        assert_eq!(told(&first), (0, 0, vec![0, 1, 2], vec![]));
        assert_eq!(
            session.handle_answer(&answer(9, ErrorCode::NONE, &[0, 1, 2])),
            Ok(())
        );
        let second = next(&mut session, vec![wanted(0, 5), wanted(1, 0)]);
        assert_eq!(told(&second), (9, 1, vec![0], vec![2]));
        assert_eq!(
            session.handle_answer(&answer(9, ErrorCode::NONE, &[])),
            Ok(())
        );
        let third = next(&mut session, vec![wanted(0, 5), wanted(1, 0), wanted(3, 0)]);
        assert_eq!(told(&third), (9, 2, vec![3], vec![]));
    }

    #[test]
    fn a_broker_without_sessions_gets_full_requests() {
        let mut session = FetchSession::new();
        for _ in 0..2 {
            let request = next(&mut session, vec![wanted(0, 0)]);
            assert_eq!(told(&request), (0, 0, vec![0], vec![]));
            assert_eq!(
                session.handle_answer(&answer(0, ErrorCode::NONE, &[0])),
                Ok(())
            );
        }
        assert_eq!(session.close_request(), None);
    }

    #[test]
    fn errors_begin_a_new_session() {
        let mut session = FetchSession::new();
        let _ = next(&mut session, vec![wanted(0, 0)]);
        assert_eq!(
            session.handle_answer(&answer(9, ErrorCode::NONE, &[0])),
            Ok(())
        );
        let _ = next(&mut session, vec![wanted(0, 1)]);
        let code = ErrorCode::INVALID_FETCH_SESSION_EPOCH;
        let refused = session.handle_answer(&answer(0, code, &[]));
        assert_eq!(refused, Err(SessionError::Refused(code)));
        // The old session is named, so that the broker drops it.
        assert_eq!(
            told(&next(&mut session, vec![wanted(0, 1)])),
            (9, 0, vec![0], vec![])
        );
        let code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        assert!(session.handle_answer(&answer(0, code, &[])).is_err());
        assert_eq!(
            told(&next(&mut session, vec![wanted(0, 1)])),
            (0, 0, vec![0], vec![])
        );
    }

    #[test]
    fn a_lost_answer_and_a_foreign_partition_too() {
        let mut session = FetchSession::new();
        let _ = next(&mut session, vec![wanted(0, 0)]);
        assert_eq!(
            session.handle_answer(&answer(9, ErrorCode::NONE, &[0])),
            Ok(())
        );
        let _ = next(&mut session, vec![wanted(0, 1)]);
        session.handle_failure();
        assert_eq!(
            told(&next(&mut session, vec![wanted(0, 1)])),
            (9, 0, vec![0], vec![])
        );
        let foreign = session.handle_answer(&answer(10, ErrorCode::NONE, &[4]));
        assert_eq!(foreign, Err(SessionError::Foreign));
        assert_eq!(told(&next(&mut session, vec![wanted(0, 1)])).1, 0);
    }

    #[test]
    fn an_unknown_id_falls_back_to_names() {
        let mut session = FetchSession::new();
        let nameless = WantedPartition {
            topic_id: TopicId::ZERO,
            ..wanted(0, 0)
        };
        let (_, version) = session.next_request(vec![nameless], LIMITS, 18);
        assert_eq!(version, 12);
        assert_eq!(
            session.handle_answer(&answer(9, ErrorCode::NONE, &[0])),
            Ok(())
        );
        let request = next(&mut session, vec![wanted(0, 0)]);
        assert_eq!(told(&request), (9, 0, vec![0], vec![]));
        let close = session.close_request().expect("there is a session");
        assert_eq!((close.session_id, close.session_epoch), (9, -1));
    }
}
