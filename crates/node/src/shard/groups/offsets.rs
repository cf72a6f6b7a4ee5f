//! OffsetCommit and OffsetDelete: rows that the metadata refuses are answered here, the others by
//! the coordinator.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_coordinator::{
    CommitPartition, CommitTopic, CommittedPartition, CommittedTopic, GenerationId, GroupAnswer,
    GroupRequest, InstanceId, OffsetCommitRequest as CommitQuestion,
    OffsetDeleteRequest as DeleteQuestion, PartitionsOfTopic,
};
use highwater_disk::Disk;
use highwater_metadata::image::TopicImage;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    offset_commit_request::{OffsetCommitRequest, OffsetCommitRequestTopic},
    offset_commit_response::{
        OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
    },
    offset_delete_request::OffsetDeleteRequest,
    offset_delete_response::{
        OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
    },
};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Now, Offset, PartitionIndex, TopicId, Uuid};

use super::RowAnswer;
use super::ask::ComposeContext;
use super::membership::{error_of, only};
use crate::authorizer::{Operation, Resource};
use crate::machine::Incoming;
use crate::shard::requests::push_answer;
use crate::shard::{Effects, Shard};

/// From this version on topics are named by id.
const TOPIC_IDS_SINCE: i16 = 10;
/// From this version on clients know the errors of KIP-848.
const MEMBER_EPOCHS_SINCE: i16 = 9;

/// One topic of an answer. Names and ids are as in the request.
struct AnsweredTopic {
    name: String,
    id: Uuid,
    partitions: Vec<(i32, ErrorCode)>,
}

/// The topics of an answer, in Kafka's order: what was refused first, then what the coordinator
/// says, where a topic has one place.
#[derive(Default)]
struct Answered {
    topics: Vec<AnsweredTopic>,
    places: BTreeMap<(String, Uuid), usize>,
}

impl Answered {
    fn add(&mut self, name: &str, id: Uuid, partitions: impl Iterator<Item = (i32, ErrorCode)>) {
        let next = self.topics.len();
        let place = *self.places.entry((name.to_owned(), id)).or_insert(next);
        if let Some(topic) = self.topics.get_mut(place) {
            topic.partitions.extend(partitions);
        } else {
            self.topics.push(AnsweredTopic {
                name: name.to_owned(),
                id,
                partitions: partitions.collect(),
            });
        }
    }

    fn add_all(&mut self, topics: &[CommittedTopic], with_ids: bool) {
        for topic in topics {
            let (name, id) = if with_ids {
                ("", topic.topic_id.uuid())
            } else {
                (topic.name.as_str(), Uuid::ZERO)
            };
            let partitions = topic.partitions.iter();
            let partitions = partitions.map(|it| (it.partition.raw(), it.error));
            self.add(name, id, partitions);
        }
    }
}

impl<D: Disk> Shard<D> {
    pub(crate) fn handle_offset_commit(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: OffsetCommitRequest,
        out: &mut Effects<D>,
    ) {
        let version = incoming.version;
        let with_ids = version >= TOPIC_IDS_SINCE;
        let mut answered = Answered::default();
        let group = Resource::Group(&request.group_id);
        if !self.allows(&incoming.caller, Operation::Read, group) {
            let error = ErrorCode::GROUP_AUTHORIZATION_FAILED;
            for topic in &request.topics {
                let partitions = topic
                    .partitions
                    .iter()
                    .map(|it| (it.partition_index, error));
                answered.add(&topic.name, topic.topic_id, partitions);
            }
            push_answer(incoming.ticket, version, &commit_response(answered), out);
            return;
        }
        let mut topics = Vec::new();
        for topic in &request.topics {
            topics.extend(self.commit_topic(incoming, topic, &mut answered));
        }
        if topics.is_empty() {
            push_answer(incoming.ticket, version, &commit_response(answered), out);
            return;
        }
        let at = self.partition_of_group(&request.group_id);
        let asked = topics.clone();
        let question = CommitQuestion {
            group_id: request.group_id.into(),
            generation_id: GenerationId::new(request.generation_id_or_member_epoch),
            member_id: request.member_id.into(),
            instance_id: request.group_instance_id.map(InstanceId::from),
            retention: u64::try_from(request.retention_time_ms)
                .ok()
                .map(Millis::new),
            topics,
            knows_member_epochs: version >= MEMBER_EPOCHS_SINCE,
        };
        let question = (at, GroupRequest::OffsetCommit(question));
        let compose = Box::new(move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            match only(rows) {
                Ok(GroupAnswer::OffsetCommit(answer)) => {
                    answered.add_all(&answer.topics, with_ids);
                }
                other => {
                    let error = error_of(other);
                    let refused: Vec<_> = asked.iter().map(|it| refused(it, error)).collect();
                    answered.add_all(&refused, with_ids);
                }
            }
            commit_response(answered)
        });
        self.ask_coordinators(now, incoming, vec![question], compose, out);
    }

    /// What the coordinator is asked about a topic; what is refused at once is answered.
    fn commit_topic(
        &self,
        incoming: &Incoming,
        topic: &OffsetCommitRequestTopic,
        answered: &mut Answered,
    ) -> Option<CommitTopic> {
        let with_ids = incoming.version >= TOPIC_IDS_SINCE;
        let (found, unknown) = if with_ids {
            let found = self.image.topic(TopicId::new(topic.topic_id));
            (found, ErrorCode::UNKNOWN_TOPIC_ID)
        } else {
            let found = self.image.topic_by_name(&topic.name);
            (found, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        };
        let name = found.map_or(topic.name.as_str(), |it| it.name.as_str());
        let is_named = found.is_some() || !with_ids;
        let allowed = self.allows(&incoming.caller, Operation::Read, Resource::Topic(name));
        let refused = if is_named && !allowed {
            Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
        } else {
            found.is_none().then_some(unknown)
        };
        let (name, id) = if with_ids {
            ("", topic.topic_id)
        } else {
            (topic.name.as_str(), Uuid::ZERO)
        };
        let (Some(found), None) = (found, refused) else {
            let error = refused.unwrap_or(unknown);
            let partitions = topic
                .partitions
                .iter()
                .map(|it| (it.partition_index, error));
            answered.add(name, id, partitions);
            return None;
        };
        let exists = |index: i32| found.partitions.contains_key(&PartitionIndex::new(index));
        let missing = topic.partitions.iter().map(|it| it.partition_index);
        let missing: Vec<_> = missing.filter(|index| !exists(*index)).collect();
        if !missing.is_empty() {
            let error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            answered.add(name, id, missing.into_iter().map(|index| (index, error)));
        }
        let partitions = topic.partitions.iter();
        let partitions = partitions.filter(|it| exists(it.partition_index));
        let partitions: Vec<_> = partitions
            .map(|it| CommitPartition {
                partition: PartitionIndex::new(it.partition_index),
                offset: Offset::new(it.committed_offset),
                leader_epoch: LeaderEpoch::new(it.committed_leader_epoch),
                metadata: it.committed_metadata.as_deref().unwrap_or_default().into(),
            })
            .collect();
        (!partitions.is_empty()).then(|| CommitTopic {
            name: found.name.clone(),
            topic_id: found.id,
            partitions,
        })
    }

    pub(crate) fn handle_offset_delete(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: OffsetDeleteRequest,
        out: &mut Effects<D>,
    ) {
        let group = Resource::Group(&request.group_id);
        let refused = if !self.allows(&incoming.caller, Operation::Delete, group) {
            Some(ErrorCode::GROUP_AUTHORIZATION_FAILED)
        } else if request.group_id.is_empty() {
            Some(ErrorCode::INVALID_GROUP_ID)
        } else {
            None
        };
        if let Some(error_code) = refused {
            let response = delete_response(error_code, Answered::default());
            push_answer(incoming.ticket, incoming.version, &response, out);
            return;
        }
        let mut answered = Answered::default();
        let mut topics = Vec::new();
        for topic in &request.topics {
            let allowed = Resource::Topic(&topic.name);
            let allowed = self.allows(&incoming.caller, Operation::Read, allowed);
            let numbers = topic.partitions.iter().map(|it| it.partition_index);
            let found = self.image.topic_by_name(&topic.name).filter(|_| allowed);
            let (known, unknown) = split(found.map(Arc::as_ref), numbers);
            let error = if allowed {
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            } else {
                ErrorCode::TOPIC_AUTHORIZATION_FAILED
            };
            if !unknown.is_empty() || found.is_none() {
                let unknown = unknown.into_iter().map(|index| (index, error));
                answered.add(&topic.name, Uuid::ZERO, unknown);
            }
            if let Some(found) = found.filter(|_| !known.is_empty()) {
                topics.push(PartitionsOfTopic {
                    name: found.name.clone(),
                    partitions: known,
                });
            }
        }
        let at = self.partition_of_group(&request.group_id);
        let question = GroupRequest::OffsetDelete(DeleteQuestion {
            group_id: request.group_id.into(),
            topics,
        });
        let compose =
            Box::new(
                move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| match only(rows) {
                    Ok(GroupAnswer::OffsetDelete(answer)) if !answer.error.is_error() => {
                        answered.add_all(&answer.topics, false);
                        delete_response(ErrorCode::NONE, answered)
                    }
                    // An error of the whole is all that is told.
                    Ok(GroupAnswer::OffsetDelete(answer)) => {
                        delete_response(answer.error, Answered::default())
                    }
                    other => delete_response(error_of(other), Answered::default()),
                },
            );
        self.ask_coordinators(now, incoming, vec![(at, question)], compose, out);
    }
}

/// The partitions that a topic has, and those that it has not.
fn split(
    topic: Option<&TopicImage>,
    numbers: impl Iterator<Item = i32>,
) -> (Vec<PartitionIndex>, Vec<i32>) {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for number in numbers {
        let index = PartitionIndex::new(number);
        if topic.is_some_and(|it| it.partitions.contains_key(&index)) {
            known.push(index);
        } else {
            unknown.push(number);
        }
    }
    (known, unknown)
}

fn refused(topic: &CommitTopic, error: ErrorCode) -> CommittedTopic {
    let partitions = topic.partitions.iter().map(|it| CommittedPartition {
        partition: it.partition,
        error,
    });
    CommittedTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}

fn commit_response(answered: Answered) -> Response {
    let topics = answered.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter();
        let partitions =
            partitions.map(
                |(partition_index, error_code)| OffsetCommitResponsePartition {
                    partition_index,
                    error_code,
                },
            );
        OffsetCommitResponseTopic {
            name: topic.name,
            topic_id: topic.id,
            partitions: partitions.collect(),
        }
    });
    OffsetCommitResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
    .into()
}

fn delete_response(error_code: ErrorCode, answered: Answered) -> Response {
    let topics = answered.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter();
        let partitions =
            partitions.map(
                |(partition_index, error_code)| OffsetDeleteResponsePartition {
                    partition_index,
                    error_code,
                },
            );
        OffsetDeleteResponseTopic {
            name: topic.name,
            partitions: partitions.collect(),
        }
    });
    OffsetDeleteResponse {
        error_code,
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
    .into()
}
