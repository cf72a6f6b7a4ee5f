//! I-24: groups, by what their log says and what their members are told.
//!
//! - A partition has one owner at a time: in each generation, and across generations as long as the
//!   session of whoever had it before lasts.
//! - Generations never fall. Only what the log holds counts after a start: a generation that was
//!   joined but not completed comes again.
//! - A committed offset changes only by a commit of the generation that is current in the log, and
//!   whoever asks is told what the log says, at the sending of the question or later.

mod log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use highwater_protocol::client::group::FetchedOffsets;
use highwater_types::{ErrorCode, LeaderEpoch, Mono, NodeId, Offset, TopicName, TopicPartition};

use self::log::{GroupLog, GroupRecord, StoredGroup};
use crate::client::ClientId;
use crate::world::World;
use crate::world::clients::{SentCommit, SentOffsetFetch};

/// The topic of the groups' log.
pub(crate) const GROUPS_TOPIC: &str = "__consumer_offsets";

/// Everything that is remembered of groups.
#[derive(Debug, Default)]
pub(crate) struct GroupHistory {
    /// By partition of the groups' log.
    logs: BTreeMap<TopicPartition, GroupLog>,
    /// By their mark.
    commits: BTreeMap<String, Commit>,
    /// Who was given a partition in a generation.
    owners: BTreeMap<(String, i32, TopicPartition), String>,
    /// The highest generation that anybody joined, in the life of the node that is told first.
    joined: BTreeMap<String, JoinFloor>,
    deleted_topics: BTreeSet<TopicName>,
    /// Sessions that began before are void: the log lost records.
    sessions_since: Mono,
    /// A loss of power took bytes out of the middle of the groups' log: the node says so, and does
    /// not serve those groups.
    pub(crate) is_damaged: bool,
    /// For the summary: commits that were acknowledged, and assignments.
    pub(crate) counts: GroupCounts,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupCounts {
    /// Acknowledged commits.
    pub(crate) commits: u64,
    /// Refused commits.
    pub(crate) refused_commits: u64,
    /// Answers that told committed offsets.
    pub(crate) offset_fetches: u64,
    /// Assignments that members were given.
    pub(crate) assignments: u64,
}

/// A time in which a coordinator forgets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoordinatorLife {
    /// Its node.
    pub(crate) node: NodeId,
    /// The life of the node's process.
    pub(crate) life: u32,
    /// The leader epochs of what it leads of the groups' log.
    pub(crate) leader_epochs: Vec<LeaderEpoch>,
    /// No other node can have written to the groups' log.
    pub(crate) is_alone: bool,
}

/// The generation that a JoinGroup can bring at the least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JoinFloor {
    life: CoordinatorLife,
    generation: i32,
}

/// Up to where the groups' logs were known when offsets were asked for.
pub(crate) type FetchFloor = BTreeMap<TopicPartition, Offset>;

#[derive(Debug)]
struct Commit {
    sent: SentCommit,
    state: CommitState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitState {
    OnItsWay,
    Acknowledged,
    /// Refused for what the coordinator knew: it changes nothing.
    Refused,
}

impl GroupHistory {
    /// A mark that no other commit of this run has.
    pub(crate) fn next_mark(&self) -> String {
        format!("c{}", self.commits.len())
    }

    /// How many records the groups' logs hold.
    pub(crate) fn records(&self) -> u64 {
        let counts = self.logs.values().map(|log| log.records.len() as u64);
        counts.sum()
    }

    /// A commit leaves its client.
    pub(crate) fn is_committed(&mut self, commit: &SentCommit) {
        let state = CommitState::OnItsWay;
        let sent = commit.clone();
        self.commits
            .insert(commit.mark.clone(), Commit { sent, state });
    }

    /// A topic is about to be deleted, and its offsets with it.
    pub(crate) fn topic_is_deleted(&mut self, topic: &TopicName) {
        self.deleted_topics.insert(topic.clone());
    }

    /// A commit was answered.
    pub(crate) fn commit_answered(
        &mut self,
        commit: &SentCommit,
        results: &BTreeMap<TopicPartition, ErrorCode>,
    ) {
        let known = self.commits.get_mut(&commit.mark).expect("it was sent");
        for partition in commit.offsets.keys() {
            let code = *results.get(partition).expect("each partition is answered");
            let is_there = self
                .logs
                .values()
                .any(|log| log.holds(partition, &commit.mark));
            let (group, mark) = (&commit.group, &commit.mark);
            if code == ErrorCode::NONE {
                known.state = CommitState::Acknowledged;
                self.counts.commits += 1;
                // Once a log has holes, what replicas commit is not followed any more.
                assert!(
                    is_there || self.is_damaged,
                    "I-24 {group}: commit {mark} of {partition} is acknowledged and not in the log"
                );
            } else if is_refusal(code) {
                known.state = CommitState::Refused;
                self.counts.refused_commits += 1;
                assert!(
                    !is_there,
                    "I-24 {group}: commit {mark} of {partition} is refused and in the log"
                );
            }
        }
    }

    /// What a JoinGroup that leaves now can bring at the least.
    pub(crate) fn join_floor(&self, group: &str, life: CoordinatorLife) -> JoinFloor {
        let joined = self.joined.get(group).filter(|it| it.life == life);
        let joined = joined.map_or(0, |it| it.generation);
        let mut logs = self.logs.values().filter(|_| life.is_alone);
        let stored = logs.find_map(|log| {
            let stored = log.group(group, log.end())?;
            Some(stored.map_or(0, |it| it.generation))
        });
        let generation = joined.max(stored.unwrap_or(0));
        JoinFloor { life, generation }
    }

    /// Somebody joined a generation, in a life of the node.
    pub(crate) fn was_joined(
        &mut self,
        group: &str,
        floor: &JoinFloor,
        joined: (CoordinatorLife, i32),
    ) {
        let (life, generation) = joined;
        assert!(
            floor.life != life || generation >= floor.generation,
            "I-24 {group}: generation {generation} was joined after generation {}",
            floor.generation
        );
        let known = self.joined.entry(group.to_owned()).or_default();
        if known.life != life {
            *known = JoinFloor { life, generation };
        }
        known.generation = known.generation.max(generation);
    }

    /// A member was given what its load says.
    pub(crate) fn was_assigned(&mut self, world: &World, id: ClientId) {
        let member = world.member(id).expect("a member");
        let (group, owner) = (
            &member.config.group_id,
            member.owner_name().expect("in a generation"),
        );
        let identity = member.member.identity().expect("in a generation");
        self.counts.assignments += 1;
        let assignment = Assignment {
            group,
            generation: identity.generation,
            member_id: &identity.member_id,
            owner: &owner,
        };
        self.is_recorded(assignment, member.member.owned());
        for partition in member.member.owned() {
            self.is_given(assignment, partition);
            for (other, load) in world.members().filter(|(other, _)| *other != id) {
                let is_rival = load.config.group_id == *group
                    && load.reads.contains(partition)
                    && load.config.instance_id.as_ref() != Some(&owner);
                let session = load.heard_at.filter(|at| *at >= self.sessions_since);
                let session = session.map(|at| at.plus(load.config.session_timeout));
                let lasts = session.is_some_and(|end| world.now() < end);
                assert!(
                    !(is_rival && lasts),
                    "I-24 {group}: member {} is given {partition} in generation {}, and member {} \
                     has it in generation {:?} with a session that lasts",
                    id.0,
                    identity.generation,
                    other.0,
                    load.generation
                );
            }
        }
    }

    /// What leaves now and asks for offsets is told at least what is in the logs by now.
    pub(crate) fn fetch_floor(&self) -> FetchFloor {
        let ends = self
            .logs
            .iter()
            .map(|(name, log)| (name.clone(), log.end()));
        ends.collect()
    }

    /// Committed offsets were told.
    pub(crate) fn was_fetched(&mut self, fetch: &SentOffsetFetch, told: &FetchedOffsets) {
        self.counts.offset_fetches += 1;
        let group = &fetch.group;
        for (partition, told) in told {
            let Ok(told) = told else {
                continue;
            };
            let told = told.as_ref().map(|it| (it.offset, it.metadata.as_str()));
            let log = self.logs.iter().find(|(_, log)| {
                let mut values = log.values(group, partition, Offset::ZERO).into_iter();
                values.any(|it| it.is_some())
            });
            let right = match log {
                Some((name, log)) => {
                    let from = fetch.floor.get(name).copied().unwrap_or(Offset::ZERO);
                    let values = log.values(group, partition, from).into_iter();
                    values
                        .map(|it| it.map(|it| (it.offset, it.mark.as_str())))
                        .collect()
                }
                None => vec![None],
            };
            assert!(
                right.contains(&told),
                "I-24 {group}: {partition} is told as {told:?}, but the log had {right:?} since it \
                 was asked for"
            );
        }
    }

    /// A record is found in a log, for the first time or again.
    pub(super) fn record(
        &mut self,
        name: &TopicPartition,
        offset: Offset,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) {
        let record = GroupRecord::decode(key.expect("every record here has a key"), value);
        let log = self.logs.entry(name.clone()).or_default();
        if let Some(known) = log.records.get(&offset) {
            assert_eq!(
                *known, record,
                "I-24 {name}: another record at {offset} than before"
            );
            return;
        }
        match &record {
            GroupRecord::Group(group, Some(stored)) => {
                self.is_right_group(name, offset, group, stored)
            }
            GroupRecord::Group(group, None) => self.group_begins_anew(group),
            GroupRecord::Offset(group, partition, Some(stored)) => {
                self.is_right_commit(name, offset, group, partition, stored);
            }
            GroupRecord::Offset(group, partition, None) => {
                self.may_be_deleted(name, offset, group, partition);
            }
            GroupRecord::Other => {}
        }
        if let Some(log) = self.logs.get_mut(name) {
            log.records.insert(offset, record);
        }
    }

    /// Everything that a log holds, after a start.
    pub(super) fn holds(&self, name: &TopicPartition, stored: &BTreeSet<Offset>) {
        let known = self.logs.get(name).into_iter();
        let mut known = known.flat_map(|log| log.records.keys());
        let missing = known.find(|offset| !stored.contains(offset));
        assert_eq!(
            missing, None,
            "I-24 {name}: a record that was there is gone"
        );
    }

    /// The only copy of a log ends at `end` after a start: how many acknowledged commits are gone.
    pub(super) fn cut(&mut self, name: &TopicPartition, end: Offset, now: Mono) -> u64 {
        self.forget(name, now, |offset| offset >= end)
    }

    /// The only copy of a log lost `[from, to)` out of its middle, and says so.
    pub(super) fn damaged(
        &mut self,
        name: &TopicPartition,
        (from, to): (Offset, Offset),
        now: Mono,
    ) -> u64 {
        self.is_damaged |= self.logs.contains_key(name);
        self.forget(name, now, |offset| offset >= from && offset < to)
    }

    fn forget(&mut self, name: &TopicPartition, now: Mono, gone: impl Fn(Offset) -> bool) -> u64 {
        let Some(log) = self.logs.get_mut(name) else {
            return 0;
        };
        let is_gone = |(offset, _): &(&Offset, &GroupRecord)| gone(**offset);
        let lost: Vec<GroupRecord> = log
            .records
            .iter()
            .filter(is_gone)
            .map(|(_, record)| record.clone())
            .collect();
        log.records.retain(|offset, _| !gone(*offset));
        if lost.is_empty() {
            return 0;
        }
        self.sessions_since = now;
        let mut told = 0;
        for record in lost {
            match record {
                GroupRecord::Group(group, _) => self.group_begins_anew(&group),
                GroupRecord::Offset(_, _, Some(stored)) => {
                    let commit = self.commits.get(&stored.mark);
                    told +=
                        u64::from(commit.is_some_and(|it| it.state == CommitState::Acknowledged));
                }
                GroupRecord::Offset(..) | GroupRecord::Other => {}
            }
        }
        told
    }

    /// Its generations may come again.
    fn group_begins_anew(&mut self, group: &str) {
        self.owners.retain(|(of, ..), _| of != group);
        self.joined.remove(group);
    }

    fn is_recorded(
        &self,
        of: Assignment<'_>,
        owned: &highwater_protocol::client::group::PartitionSet,
    ) {
        let Assignment {
            group,
            generation,
            member_id,
            ..
        } = of;
        if self.is_damaged {
            // A log of several replicas is not followed any more.
            return;
        }
        let mut logs = self.logs.values();
        let stored = logs.find_map(|log| log.generation(group, generation));
        let stored = stored.and_then(|it| it.members.get(member_id));
        let assigned = stored.map(|it| &it.assigned);
        assert_eq!(
            assigned,
            Some(owned),
            "I-24 {group}: {member_id} is told another assignment of generation {generation} than \
             the log has"
        );
    }

    fn is_given(&mut self, of: Assignment<'_>, partition: &TopicPartition) {
        let Assignment {
            group,
            generation,
            owner,
            ..
        } = of;
        let key = (group.to_owned(), generation, partition.clone());
        let known = self.owners.entry(key).or_insert_with(|| owner.to_owned());
        assert_eq!(
            known, owner,
            "I-24 {group}: {partition} has two owners in generation {generation}"
        );
    }

    fn is_right_group(
        &mut self,
        name: &TopicPartition,
        offset: Offset,
        group: &str,
        stored: &StoredGroup,
    ) {
        let before = self.logs.get(name).and_then(|log| log.group(group, offset));
        if let Some(Some(before)) = before {
            assert!(
                before.generation <= stored.generation,
                "I-24 {group}: generation {} follows {} in the log",
                stored.generation,
                before.generation
            );
        }
        for (member_id, member) in &stored.members {
            let assignment = Assignment {
                group,
                generation: stored.generation,
                member_id,
                owner: member.owner(member_id),
            };
            for partition in &member.assigned {
                self.is_given(assignment, partition);
            }
        }
    }

    fn is_right_commit(
        &self,
        name: &TopicPartition,
        offset: Offset,
        group: &str,
        partition: &TopicPartition,
        stored: &log::StoredOffset,
    ) {
        let mark = &stored.mark;
        let commit = self.commits.get(mark);
        let sent = commit.filter(|it| {
            it.sent.group == group && it.sent.offsets.get(partition) == Some(&stored.offset)
        });
        let commit = sent.unwrap_or_else(|| {
            panic!("I-24 {group}: {partition} moves to {stored:?}, which nobody committed")
        });
        assert!(
            commit.state != CommitState::Refused,
            "I-24 {group}: commit {mark} of {partition} was refused and is in the log"
        );
        let current = self.logs.get(name).and_then(|log| log.group(group, offset));
        let current = current.flatten();
        match &commit.sent.identity {
            Some(identity) => {
                let is_member =
                    current.is_some_and(|it| it.members.contains_key(&identity.member_id));
                let generation = current.map(|it| it.generation);
                assert!(
                    is_member && generation == Some(identity.generation),
                    "I-24 {group}: {partition} moves by a commit of {} in generation {}, but the \
                     log is in generation {generation:?}",
                    identity.member_id,
                    identity.generation
                );
            }
            None => assert!(
                current.is_none_or(|it| it.members.is_empty()),
                "I-24 {group}: {partition} moves by nobody's commit while the group has members"
            ),
        }
    }

    /// GO-01: offsets go only when nobody is in the group, or nobody subscribes to the topic.
    fn may_be_deleted(
        &self,
        name: &TopicPartition,
        offset: Offset,
        group: &str,
        partition: &TopicPartition,
    ) {
        let current = self.logs.get(name).and_then(|log| log.group(group, offset));
        let members = current.flatten().map(|it| it.members.values());
        let mut members = members.into_iter().flatten();
        let is_wanted = members.any(|it| it.topics.contains(&partition.topic));
        assert!(
            !is_wanted || self.deleted_topics.contains(&partition.topic),
            "I-24 {group}: the offset of {partition} is deleted while the group lives"
        );
    }
}

/// A member in a generation.
#[derive(Clone, Copy)]
struct Assignment<'a> {
    group: &'a str,
    generation: i32,
    member_id: &'a str,
    owner: &'a str,
}

/// Whether this answer to a commit says that nothing has changed: the others leave it open.
const fn is_refusal(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::REBALANCE_IN_PROGRESS
            | ErrorCode::FENCED_INSTANCE_ID
            | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::OFFSET_METADATA_TOO_LARGE
            | ErrorCode::GROUP_ID_NOT_FOUND
    )
}
