//! What happened to groups, for the journal and for DescribeGroups.

use highwater_coordinator::{GroupEvent, MemberId, OffsetsBy, PastEvent, RebalanceCause};
use highwater_protocol::messages::describe_groups_response::GroupHappening;

use crate::journal::Level;

/// How loud an event is. Commits are the daily work of groups; members, rebalances and whatever
/// the coordinator does by itself are rare.
pub(super) fn level(event: &GroupEvent) -> Level {
    match event {
        GroupEvent::Offsets(moved) if moved.is_usual() => Level::Trace,
        GroupEvent::NotRecorded { .. } => Level::Warn,
        _ => Level::Info,
    }
}

/// An event as DescribeGroups tells it.
pub(super) fn happening(past: &PastEvent) -> GroupHappening {
    let (what, generation_id, member_id) = parts(&past.event);
    GroupHappening {
        at_ms: past.at.raw(),
        what: what.to_owned(),
        generation_id,
        member_id: member_id.map(|it| it.to_string()).unwrap_or_default(),
        text: past.event.to_string(),
    }
}

fn parts(event: &GroupEvent) -> (&'static str, i32, Option<&MemberId>) {
    match event {
        GroupEvent::Joined { member_id, .. } => ("joined", -1, Some(member_id)),
        GroupEvent::Replaced { new_id, .. } => ("replaced", -1, Some(new_id)),
        GroupEvent::Left { member_id, .. } => ("left", -1, Some(member_id)),
        GroupEvent::RebalanceBegan {
            generation_id,
            cause,
        } => ("rebalance began", generation_id.raw(), by(cause)),
        GroupEvent::Joins {
            generation_id,
            leader,
            ..
        } => ("joins are over", generation_id.raw(), Some(leader)),
        GroupEvent::RebalanceCompleted { generation_id, .. } => {
            ("rebalance completed", generation_id.raw(), None)
        }
        GroupEvent::Emptied { generation_id } => ("emptied", generation_id.raw(), None),
        GroupEvent::NotRecorded { .. } => ("not recorded", -1, None),
        GroupEvent::Offsets(moved) => ("offsets", -1, by_client(&moved.by)),
        GroupEvent::Deleted { .. } => ("deleted", -1, None),
        _ => ("other", -1, None),
    }
}

const fn by_client(by: &OffsetsBy) -> Option<&MemberId> {
    match by {
        OffsetsBy::Client { member_id, .. } => Some(member_id),
        OffsetsBy::Coordinator => None,
    }
}

const fn by(cause: &RebalanceCause) -> Option<&MemberId> {
    match cause {
        RebalanceCause::MemberJoined(member_id)
        | RebalanceCause::MemberRejoined { member_id, .. }
        | RebalanceCause::LeaderRejoined { member_id, .. }
        | RebalanceCause::MemberLeft { member_id, .. } => Some(member_id),
        RebalanceCause::StaticMemberReplaced { .. }
        | RebalanceCause::AssignmentNotRecorded
        | RebalanceCause::LoadedTooLarge => None,
    }
}
