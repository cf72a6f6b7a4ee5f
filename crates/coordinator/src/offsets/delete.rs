//! Offsets that are taken away: by OffsetDelete, with their group, with their topic.

use highwater_types::{ErrorCode, Offset, PartitionIndex, TopicId, TopicName};

use super::moved::tell;
use super::store::tombstone;
use super::{MovedOffset, OffsetsBy, OffsetsCause, OffsetsMoved};
use crate::answer::GroupState;
use crate::appender::AppendRefused;
use crate::coordinator::MemberCaller;
use crate::group::Group;
use crate::offset_request::{
    CommittedPartition, CommittedTopic, OffsetDeleteAnswer, OffsetDeleteRequest,
};
use crate::record::Record;
use crate::step::Step;
use crate::subscription::CONSUMER_PROTOCOL_TYPE;

/// Tombstones in one batch at most, so that it fits every limit of a batch.
const BATCH_RECORDS_MAX: usize = 1_000;

/// Decides an OffsetDelete. Gives the answer and the end of the newest record that it depends on.
pub(crate) fn delete(
    step: &mut Step<'_>,
    group: &mut Group,
    caller: &MemberCaller,
    request: &OffsetDeleteRequest,
) -> (Offset, OffsetDeleteAnswer) {
    if let Err(error) = check(group) {
        return (group.newest(), refused(error));
    }
    let subscribed = group.subscribed();
    let mut gone = Vec::new();
    let topics = request.topics.iter().map(|topic| {
        let is_subscribed = subscribed.has(topic.name.as_str());
        let mut row = |&partition: &PartitionIndex| {
            if is_subscribed {
                return CommittedPartition {
                    partition,
                    error: ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
                };
            }
            gone.extend(what_is_there(group, &topic.name, partition));
            // Also where nothing was committed.
            CommittedPartition {
                partition,
                error: ErrorCode::NONE,
            }
        };
        CommittedTopic {
            name: topic.name.clone(),
            topic_id: TopicId::ZERO,
            partitions: topic.partitions.iter().map(&mut row).collect(),
        }
    });
    let topics = topics.collect();
    let answer = OffsetDeleteAnswer {
        error: ErrorCode::NONE,
        topics,
    };
    let by = OffsetsBy::client(crate::MemberId::default(), caller);
    match take_away(step, group, gone, OffsetsCause::Deleted, by) {
        Ok(()) => (group.newest(), answer),
        Err(why) => (Offset::ZERO, refused(why.error_code())),
    }
}

/// The answer to a request that is refused as a whole.
pub(crate) const fn refused(error: ErrorCode) -> OffsetDeleteAnswer {
    OffsetDeleteAnswer {
        error,
        topics: Vec::new(),
    }
}

/// A group with members can be asked only when it tells what they subscribe to.
fn check(group: &Group) -> Result<(), ErrorCode> {
    if let Some(foreign) = &group.foreign {
        return foreign.check_offset_delete();
    }
    let is_consumers = group.members.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE);
    if group.state() == GroupState::Empty || is_consumers {
        Ok(())
    } else {
        Err(ErrorCode::NON_EMPTY_GROUP)
    }
}

/// What a tombstone for the partition would take away; a transaction's offset may be all there is.
fn what_is_there(
    group: &Group,
    topic: &TopicName,
    partition: PartitionIndex,
) -> Option<MovedOffset> {
    let committed = group.offsets.get(topic, partition).map(|it| it.offset);
    (committed.is_some() || group.offsets.is_pending(topic, partition)).then(|| MovedOffset {
        topic: topic.clone(),
        partition,
        from: committed,
        to: None,
    })
}

/// Writes a tombstone for each of `gone`, and tells the journal. When the log refuses half-way,
/// what was written holds; nothing of it was answered yet, and the rest can be tried again.
pub(crate) fn take_away(
    step: &mut Step<'_>,
    group: &mut Group,
    gone: Vec<MovedOffset>,
    cause: OffsetsCause,
    by: OffsetsBy,
) -> Result<(), AppendRefused> {
    if gone.is_empty() {
        return Ok(());
    }
    let records: Vec<Record> = gone
        .iter()
        .map(|it| tombstone(&it.topic, it.partition))
        .collect();
    for batch in records.chunks(BATCH_RECORDS_MAX) {
        step.commit(group, batch)?;
    }
    tell(step, group, OffsetsMoved::new(cause, by, gone));
    Ok(())
}

/// Every offset of the group, also those of open transactions.
pub(crate) fn everything(group: &Group) -> Vec<MovedOffset> {
    let committed = group.offsets.iter();
    let mut gone: Vec<MovedOffset> = committed
        .map(|(topic, partition, it)| MovedOffset::gone(topic, partition, it.offset))
        .collect();
    let pending = group.offsets.pending_only();
    gone.extend(pending.into_iter().map(|(topic, partition)| MovedOffset {
        topic,
        partition,
        from: None,
        to: None,
    }));
    gone
}

/// Topics are gone, and with them what was committed for them. A commit that does not tell the
/// topic's id is taken to be for the deleted one; a commit for a later topic of the name stays.
pub(crate) fn of_deleted_topics(
    step: &mut Step<'_>,
    group: &mut Group,
    topics: &[(TopicId, TopicName)],
) -> Result<(), AppendRefused> {
    let is_gone = |topic: &TopicName, id: TopicId| {
        let mut named = topics.iter().filter(|(_, name)| name == topic);
        named.any(|(deleted, _)| id.is_zero() || id == *deleted)
    };
    let committed = group.offsets.iter();
    let mut gone: Vec<MovedOffset> = committed
        .filter(|(topic, _, it)| is_gone(topic, it.topic_id))
        .map(|(topic, partition, it)| MovedOffset::gone(topic, partition, it.offset))
        .collect();
    let pending = group.offsets.iter_pending();
    for (topic, partition, _) in pending.filter(|(topic, _, it)| is_gone(topic, it.topic_id)) {
        let is_named = |known: &MovedOffset| known.topic == *topic && known.partition == partition;
        if !gone.iter().any(is_named) {
            gone.push(MovedOffset {
                topic: topic.clone(),
                partition,
                from: None,
                to: None,
            });
        }
    }
    take_away(
        step,
        group,
        gone,
        OffsetsCause::TopicDeleted,
        OffsetsBy::Coordinator,
    )
}
