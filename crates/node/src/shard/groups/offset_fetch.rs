//! OffsetFetch: one group up to v7, many from v8 on.

use highwater_coordinator::{
    FetchTopic, FetchedPartition, FetchedTopic, GroupAnswer, GroupRequest, MemberId,
    OffsetFetchRequest as Question,
};
use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics},
    offset_fetch_response::{
        OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
        OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
    },
};
use highwater_types::{ErrorCode, Now, PartitionIndex, TopicId, TopicName, Uuid};

use super::RowAnswer;
use super::ask::ComposeContext;
use super::membership::error_of;
use crate::authorizer::{Operation, Resource};
use crate::machine::Incoming;
use crate::shard::{Effects, Shard};

/// From this version on a request names several groups.
const GROUPS_SINCE: i16 = 8;
/// From this version on topics are named by id.
const TOPIC_IDS_SINCE: i16 = 10;
/// The first version with an error for the whole group.
const GROUP_ERROR_SINCE: i16 = 2;
/// The answer when nothing is committed.
const NO_OFFSET: i64 = -1;
const NO_EPOCH: i32 = -1;

/// What becomes of one group of a request.
struct Group {
    request: OffsetFetchRequestGroup,
    /// Refused before any coordinator is asked.
    refused: Option<ErrorCode>,
    topics: Vec<Topic>,
}

/// Who answers for a topic.
#[derive(Clone, Copy)]
enum Topic {
    Coordinator,
    /// No topic can have this name, so nothing is committed.
    Nobody,
    Refused(ErrorCode),
}

impl<D: Disk> Shard<D> {
    pub(crate) fn handle_offset_fetch(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: OffsetFetchRequest,
        out: &mut Effects<D>,
    ) {
        let version = incoming.version;
        let require_stable = request.require_stable;
        let mut questions = Vec::new();
        let mut groups = Vec::new();
        for request in groups_of(version, request) {
            let group = Resource::Group(&request.group_id);
            let refused = (!self.allows(&incoming.caller, Operation::Describe, group))
                .then_some(ErrorCode::GROUP_AUTHORIZATION_FAILED);
            let (asked, topics) = self.topics_to_fetch(incoming, &request);
            if refused.is_none() {
                let question = Question {
                    group_id: request.group_id.as_str().into(),
                    member_id: request.member_id.as_deref().map(MemberId::from),
                    member_epoch: request.member_epoch,
                    require_stable,
                    topics: request.topics.is_some().then_some(asked),
                };
                let at = self.partition_of_group(&request.group_id);
                questions.push((at, GroupRequest::OffsetFetch(question)));
            }
            groups.push(Group {
                request,
                refused,
                topics,
            });
        }
        let compose = Box::new(move |cx: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            let mut rows = rows.into_iter();
            let groups = groups.into_iter().map(|group| {
                let answer = match group.refused {
                    Some(error) => Err(error),
                    None => rows.next().expect("a question for each group"),
                };
                answer_group(cx, version, group, answer)
            });
            respond(version, groups.collect())
        });
        self.ask_coordinators(now, incoming, questions, compose, out);
    }

    fn topics_to_fetch(
        &self,
        incoming: &Incoming,
        group: &OffsetFetchRequestGroup,
    ) -> (Vec<FetchTopic>, Vec<Topic>) {
        let with_ids = incoming.version >= TOPIC_IDS_SINCE;
        let mut asked = Vec::new();
        let mut topics = Vec::new();
        for topic in group.topics.iter().flatten() {
            let id = TopicId::new(topic.topic_id);
            let found = self.image.topic(id).filter(|_| with_ids);
            let name = found.map_or(topic.name.as_str(), |it| it.name.as_str());
            if with_ids && found.is_none() {
                topics.push(Topic::Refused(ErrorCode::UNKNOWN_TOPIC_ID));
                continue;
            }
            if !self.allows(&incoming.caller, Operation::Describe, Resource::Topic(name)) {
                topics.push(Topic::Refused(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
                continue;
            }
            let Ok(name) = TopicName::new(name) else {
                topics.push(Topic::Nobody);
                continue;
            };
            let partitions = topic.partition_indexes.iter();
            asked.push(FetchTopic {
                name,
                topic_id: if with_ids { id } else { TopicId::default() },
                partitions: partitions.map(|it| PartitionIndex::new(*it)).collect(),
            });
            topics.push(Topic::Coordinator);
        }
        (asked, topics)
    }
}

/// The groups of a request, in the form of the newest version.
fn groups_of(version: i16, request: OffsetFetchRequest) -> Vec<OffsetFetchRequestGroup> {
    if version >= GROUPS_SINCE {
        return request.groups;
    }
    let topics = request.topics.map(|topics| {
        let topics = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            topic_id: Uuid::ZERO,
            partition_indexes: topic.partition_indexes,
        });
        topics.collect()
    });
    vec![OffsetFetchRequestGroup {
        group_id: request.group_id,
        topics,
        ..OffsetFetchRequestGroup::default()
    }]
}

fn answer_group(
    cx: &ComposeContext<'_>,
    version: i16,
    group: Group,
    answer: RowAnswer,
) -> OffsetFetchResponseGroup {
    let Group {
        request, topics, ..
    } = group;
    let (error_code, fetched) = match answer {
        Ok(GroupAnswer::OffsetFetch(answer)) => (answer.error, answer.topics),
        other => (error_of(other), Vec::new()),
    };
    let topics = match request.topics {
        _ if error_code.is_error() && version >= GROUP_ERROR_SINCE => Vec::new(),
        Some(asked) if error_code.is_error() => {
            let refused = asked.iter().map(|topic| without_offsets(topic, error_code));
            refused.collect()
        }
        Some(asked) => join(&asked, &topics, fetched),
        None => fetched
            .into_iter()
            .filter_map(|topic| visible(cx, version, topic))
            .collect(),
    };
    OffsetFetchResponseGroup {
        group_id: request.group_id,
        topics,
        error_code,
    }
}

/// What the coordinator says, in the order of the request; as in Kafka, refused topics come last.
fn join(
    asked: &[OffsetFetchRequestTopics],
    topics: &[Topic],
    fetched: Vec<FetchedTopic>,
) -> Vec<OffsetFetchResponseTopics> {
    let mut fetched = fetched.into_iter();
    let mut answered = Vec::with_capacity(asked.len());
    let mut refused = Vec::new();
    for (asked, topic) in asked.iter().zip(topics) {
        match topic {
            Topic::Coordinator => {
                let topic = fetched.next().expect("each topic that was asked about");
                answered.push(told(topic));
            }
            Topic::Nobody => answered.push(without_offsets(asked, ErrorCode::NONE)),
            Topic::Refused(error) => refused.push(without_offsets(asked, *error)),
        }
    }
    answered.append(&mut refused);
    answered
}

/// One of all topics of a group, unless the caller may not see it, or it cannot be named.
fn visible(
    cx: &ComposeContext<'_>,
    version: i16,
    mut topic: FetchedTopic,
) -> Option<OffsetFetchResponseTopics> {
    let name = topic.name.as_str();
    if !cx.allows(Operation::Describe, Resource::Topic(name)) {
        return None;
    }
    if version >= TOPIC_IDS_SINCE && topic.topic_id.uuid().is_zero() {
        topic.topic_id = cx.image.topic_by_name(name)?.id;
    }
    Some(told(topic))
}

fn told(topic: FetchedTopic) -> OffsetFetchResponseTopics {
    let partition = |it: FetchedPartition| OffsetFetchResponsePartitions {
        partition_index: it.partition.raw(),
        committed_offset: it.offset.raw(),
        committed_leader_epoch: it.leader_epoch.raw(),
        metadata: Some(it.metadata.to_string()),
        error_code: it.error,
    };
    OffsetFetchResponseTopics {
        name: topic.name.to_string(),
        topic_id: topic.topic_id.uuid(),
        partitions: topic.partitions.into_iter().map(partition).collect(),
    }
}

fn without_offsets(
    topic: &OffsetFetchRequestTopics,
    error_code: ErrorCode,
) -> OffsetFetchResponseTopics {
    let partitions = topic.partition_indexes.iter();
    let partitions = partitions.map(|partition| OffsetFetchResponsePartitions {
        partition_index: *partition,
        committed_offset: NO_OFFSET,
        committed_leader_epoch: NO_EPOCH,
        metadata: Some(String::new()),
        error_code,
    });
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}

fn respond(version: i16, mut groups: Vec<OffsetFetchResponseGroup>) -> Response {
    if version >= GROUPS_SINCE {
        return OffsetFetchResponse {
            groups,
            ..OffsetFetchResponse::default()
        }
        .into();
    }
    let group = groups.pop().expect("old versions have one group");
    let partition = |it: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: it.partition_index,
        committed_offset: it.committed_offset,
        committed_leader_epoch: it.committed_leader_epoch,
        metadata: it.metadata,
        error_code: it.error_code,
    };
    let topics = group
        .topics
        .into_iter()
        .map(|topic| OffsetFetchResponseTopic {
            name: topic.name,
            partitions: topic.partitions.into_iter().map(partition).collect(),
        });
    OffsetFetchResponse {
        topics: topics.collect(),
        error_code: group.error_code,
        ..OffsetFetchResponse::default()
    }
    .into()
}
