//! Offsets that nobody needs any more, by KIP-211: those of a group that has been empty for longer
//! than `offsets.retention.minutes`, and those that are as old and whose topic no member of the
//! group reads. A group of which nothing is left then goes too.

use std::ops::Bound;

use highwater_types::{Millis, Now, WallMs};

use crate::answer::GroupState;
use crate::appender::{AppendRefused, Appender};
use crate::coordinator::Coordinator;
use crate::foreign::GroupType;
use crate::group::Group;
use crate::happening::GroupEvent;
use crate::offsets::{CommittedOffset, MovedOffset, OffsetsBy, OffsetsCause, delete};
use crate::output::Output;
use crate::step::Step;
use crate::subscription::CONSUMER_PROTOCOL_TYPE;
use crate::timers::Timer;

/// Groups that one tick looks at, so that no step is long.
const GROUPS_PER_TICK: usize = 500;
/// When the next ones have their turn.
const NEXT_TURN: Millis = Millis::new(1);

/// Since when the retention of an offset counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// Since the group is empty, or since the commit if that is later. Kafka counts from the first
    /// alone, so that an offset that a tool sets in a group that was empty for long is gone at the
    /// next look.
    Emptied(WallMs),
    /// Since the commit.
    Commit,
}

impl Coordinator {
    /// Looks through some groups for old offsets, and sets the timer for the next ones.
    pub(crate) fn expire_offsets(
        &mut self,
        now: Now,
        log: &mut dyn Appender,
        out: &mut Vec<Output>,
    ) {
        let from = match self.expired_up_to.take() {
            Some(last) => Bound::Excluded(last),
            None => Bound::Unbounded,
        };
        let (groups, mut step) = self.split(now, log, out);
        let mut looked_at = Vec::new();
        for (group_id, group) in groups
            .range_mut((from, Bound::Unbounded))
            .take(GROUPS_PER_TICK)
        {
            looked_at.push(group_id.clone());
            if let Err(why) = expire_group(&mut step, group) {
                let what = "expired offsets";
                step.happened(group, GroupEvent::NotRecorded { what, why });
                break;
            }
        }
        let interval = step.settings.offsets_retention_check_interval;
        let is_turn_over = looked_at.len() < GROUPS_PER_TICK;
        let next = if is_turn_over { interval } else { NEXT_TURN };
        step.timers.set(Timer::OffsetsExpiry, now.mono.plus(next));
        if is_turn_over {
            let groups = self.groups.values();
            let names = groups.flat_map(|group| group.offsets.topics());
            self.pool.retain(names);
        } else {
            self.expired_up_to = looked_at.last().cloned();
        }
        for group_id in &looked_at {
            self.settle(group_id);
        }
    }
}

/// Takes away what is too old, and the group itself if nothing is left and it has no members.
fn expire_group(step: &mut Step<'_>, group: &mut Group) -> Result<(), AppendRefused> {
    let Some(since) = since(group) else {
        return Ok(());
    };
    let (wall, retention) = (step.now.wall, step.settings.offsets_retention);
    let mut gone = Vec::new();
    for (topic, partition, it) in group.offsets.iter() {
        let is_old = is_expired(it, since, wall, retention);
        // What an open transaction commits may become the last word on the partition.
        if is_old && !group.offsets.is_pending(topic, partition) {
            gone.push(MovedOffset::gone(topic, partition, it.offset));
        }
    }
    if !gone.is_empty() {
        // Only now, as it takes a look at what every member sent.
        let subscribed = group.subscribed();
        gone.retain(|it| !subscribed.has(it.topic.as_str()));
    }
    delete::take_away(
        step,
        group,
        gone,
        OffsetsCause::Expired,
        OffsetsBy::Coordinator,
    )?;
    let is_left_over = group.offsets.is_empty()
        && group.state() == GroupState::Empty
        && group.members.pending.is_empty();
    if is_left_over {
        group.take_away(step, OffsetsCause::Expired, OffsetsBy::Coordinator)?;
        step.happened(group, GroupEvent::Deleted { by_request: false });
    }
    Ok(())
}

/// `None`: nothing of the group expires now.
fn since(group: &Group) -> Option<Since> {
    match group.group_type() {
        GroupType::Share => return None,
        GroupType::Consumer | GroupType::Streams => return Some(Since::Commit),
        GroupType::Classic => {}
    }
    let members = &group.members;
    let Some(protocol_type) = members.protocol_type.as_deref() else {
        // Only tools and consumers without membership ever committed.
        return Some(Since::Commit);
    };
    match group.state() {
        GroupState::Empty => Some(Since::Emptied(members.state_timestamp)),
        GroupState::Stable if protocol_type == CONSUMER_PROTOCOL_TYPE => Some(Since::Commit),
        // GO-01: while a rebalance runs, for however long, nothing expires.
        _ => None,
    }
}

fn is_expired(commit: &CommittedOffset, since: Since, wall: WallMs, retention: Millis) -> bool {
    if let Some(at) = commit.expire_timestamp {
        return wall >= at;
    }
    let from = match since {
        // -1 when it is not known.
        Since::Emptied(at) => at.max(commit.commit_timestamp),
        Since::Commit => commit.commit_timestamp,
    };
    let age = wall.since(from);
    u64::try_from(age).is_ok_and(|age| age >= retention.as_u64())
}
