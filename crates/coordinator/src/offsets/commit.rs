//! OffsetCommit.

use highwater_types::{ErrorCode, Offset, WallMs};

use super::moved::tell;
use super::{CommittedOffset, MovedOffset, OffsetsBy, OffsetsMoved, Pool};
use crate::answer::{GroupAnswer, GroupState};
use crate::coordinator::MemberCaller;
use crate::group::Group;
use crate::offset_request::{
    CommittedPartition, CommittedTopic, OffsetCommitAnswer, OffsetCommitRequest,
};
use crate::record::Record;
use crate::step::Step;

/// What is to be committed of a request, and what the answer will say of each partition.
struct Decision {
    records: Vec<Record>,
    moves: Vec<MovedOffset>,
    topics: Vec<CommittedTopic>,
}

/// Decides a commit to `group`, which may be new. Gives the answer, and the end of the newest
/// record that it depends on.
pub(crate) fn commit(
    step: &mut Step<'_>,
    group: &mut Group,
    pool: &mut Pool,
    caller: &MemberCaller,
    request: &OffsetCommitRequest,
) -> (Offset, GroupAnswer) {
    if let Err(error) = check(group, request) {
        return refused(request, error, group.newest());
    }
    let is_due = matches!(
        group.state(),
        GroupState::Stable | GroupState::PreparingRebalance
    );
    if is_due && group.foreign.is_none() {
        // A commit is a sign of life, unless the group waits for the leader.
        step.heard_from(group, &request.member_id);
    }
    let Decision {
        records,
        moves,
        topics,
    } = decide(step, group, pool, request);
    if records.is_empty() {
        return (Offset::ZERO, answer(topics));
    }
    match step.commit(group, &records) {
        Ok(end) => {
            let by = OffsetsBy::client(request.member_id.clone(), caller);
            tell(step, group, OffsetsMoved::committed(by, moves));
            (end, answer(topics))
        }
        Err(why) => refused(request, why.error_code(), Offset::ZERO),
    }
}

/// The answer to a commit that is refused as a whole.
pub(crate) fn refused(
    request: &OffsetCommitRequest,
    error: ErrorCode,
    after: Offset,
) -> (Offset, GroupAnswer) {
    let topics = request.topics.iter().map(|topic| CommittedTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|it| CommittedPartition {
                partition: it.partition,
                error,
            })
            .collect(),
    });
    (after, answer(topics.collect()))
}

/// What a commit to a group that is not there answers, if it does not make one: a consumer that is
/// no member, or a tool, may commit to any group.
pub(crate) fn unknown_group(request: &OffsetCommitRequest) -> Option<ErrorCode> {
    if request.generation_id.raw() < 0 {
        None
    } else if request.knows_member_epochs {
        Some(ErrorCode::GROUP_ID_NOT_FOUND)
    } else {
        Some(ErrorCode::ILLEGAL_GENERATION)
    }
}

/// Whether this member, or this non-member, may commit now.
fn check(group: &Group, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
    if let Some(foreign) = &group.foreign {
        return foreign.check_commit(request);
    }
    let state = group.state();
    let is_no_member = request.generation_id.raw() < 0;
    if is_no_member && state == GroupState::Empty {
        return Ok(());
    }
    if is_no_member && request.member_id.is_empty() && request.instance_id.is_none() {
        // Its partitions may be those of a member.
        return Err(ErrorCode::UNKNOWN_MEMBER_ID);
    }
    let members = &group.members;
    members.check(&request.member_id, request.instance_id.as_ref())?;
    #[cfg(feature = "planted-bugs")]
    if highwater_types::is_planted(highwater_types::PlantedBug::CommitOfAnOldGeneration) {
        return Ok(());
    }
    if request.generation_id != members.generation_id {
        return Err(ErrorCode::ILLEGAL_GENERATION);
    }
    if state == GroupState::CompletingRebalance {
        // The partitions may already be somebody else's.
        return Err(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    Ok(())
}

fn decide(
    step: &Step<'_>,
    group: &Group,
    pool: &mut Pool,
    request: &OffsetCommitRequest,
) -> Decision {
    let mut decision = Decision {
        records: Vec::new(),
        moves: Vec::new(),
        topics: Vec::with_capacity(request.topics.len()),
    };
    let wall = step.now.wall;
    let expire_timestamp = request.retention.map(|span| {
        let span = i64::try_from(span.as_u64()).unwrap_or(i64::MAX);
        WallMs::new(wall.raw().saturating_add(span))
    });
    for topic in &request.topics {
        let name = pool.topic(&topic.name);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for it in &topic.partitions {
            // Kafka counts as Java's strings do.
            let is_too_large =
                it.metadata.encode_utf16().count() > step.settings.offset_metadata_bytes_max;
            if is_too_large {
                partitions.push(CommittedPartition {
                    partition: it.partition,
                    error: ErrorCode::OFFSET_METADATA_TOO_LARGE,
                });
                continue;
            }
            partitions.push(CommittedPartition {
                partition: it.partition,
                error: ErrorCode::NONE,
            });
            let before = group.offsets.get(&name, it.partition);
            decision.moves.push(MovedOffset {
                topic: name.clone(),
                partition: it.partition,
                from: before.map(|it| it.offset),
                to: Some(it.offset),
            });
            let commit = CommittedOffset {
                offset: it.offset,
                leader_epoch: it.leader_epoch,
                metadata: pool.metadata(&it.metadata),
                commit_timestamp: wall,
                expire_timestamp,
                topic_id: topic.topic_id,
                record_offset: Offset::NONE,
            };
            decision.records.push(Record::Offset {
                topic: name.clone(),
                partition: it.partition,
                commit: Some(commit),
            });
        }
        decision.topics.push(CommittedTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions,
        });
    }
    decision
}

const fn answer(topics: Vec<CommittedTopic>) -> GroupAnswer {
    GroupAnswer::OffsetCommit(OffsetCommitAnswer { topics })
}
