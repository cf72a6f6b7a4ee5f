//! A client that is a member of a consumer group: the member's own state machine, with real bytes
//! on two connections. One carries membership, the other ("the hand") commits, offsets, records.

mod calls;
mod offsets;

use std::collections::{BTreeMap, BTreeSet};

use highwater_protocol::client::group::{
    GroupMember, MemberConfig, MemberIdentity, MemberOutput, PartitionSet,
};
use highwater_types::{Millis, Mono, NodeId, Offset, TopicName, TopicPartition};

pub(crate) use self::calls::{CallUnderWay, MemberVersions};
pub(crate) use self::offsets::{SentCommit, SentOffsetFetch};
use super::requests::Purpose;
use super::{Load, World};
use crate::client::ClientId;
use crate::world::Event;

/// How far the id of a hand is above its member's.
const HAND_OFFSET: u32 = 10_000;

/// What a member of a group is about.
#[derive(Debug)]
pub(crate) struct MemberLoad {
    /// Joins, deals, heartbeats, leaves.
    pub(crate) member: GroupMember,
    /// How it was set up.
    pub(crate) config: MemberConfig,
    /// What it speaks.
    pub(crate) versions: MemberVersions,
    /// What it reads and may commit: also what it is giving up, until that is done.
    pub(crate) reads: PartitionSet,
    /// When its newest request was sent that the coordinator answered without an error. Its session
    /// lasts from then on, at least.
    pub(crate) heard_at: Option<Mono>,
    /// What it subscribes to; empty once it was told to leave.
    pub(crate) topics: BTreeSet<TopicName>,
    /// The newest generation in which it was given partitions.
    pub(crate) generation: Option<i32>,
    /// Polls and commits by itself; otherwise a script tells it to.
    habits: Option<Habits>,
    /// The next offset of each partition that it reads; `None`: to be asked for.
    positions: BTreeMap<TopicPartition, Option<Offset>>,
    /// Positions as they were last committed.
    committed: BTreeMap<TopicPartition, Offset>,
    call: Option<CallUnderWay>,
    /// The commit under way is the last thing before partitions are given up.
    releases: Release,
    is_committing: bool,
    is_fetching_offsets: bool,
    is_polling: bool,
    /// No offsets are asked for before, after a refusal.
    offsets_not_before: Mono,
    turn: usize,
    /// The process stands still.
    is_paused: bool,
    /// The membership connection was lost while it stood still.
    missed_close: bool,
    wakes_at: Option<Mono>,
}

/// How a member uses what it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// `auto.commit.interval.ms`.
    pub(crate) commit_interval: Millis,
    /// How long it works on what one poll brought.
    pub(crate) poll_interval: Millis,
    next_commit: Mono,
    next_poll: Mono,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    Nothing,
    /// After the commit that is under way another one is due.
    AfterNextCommit,
    AfterCommit,
}

impl Habits {
    /// Commits and polls at these intervals.
    pub(crate) const fn new(commit_interval: Millis, poll_interval: Millis) -> Self {
        Self {
            commit_interval,
            poll_interval,
            next_commit: Mono::START,
            next_poll: Mono::START,
        }
    }
}

impl MemberLoad {
    /// A member that wants nothing yet.
    pub(crate) fn new(
        config: MemberConfig,
        versions: MemberVersions,
        habits: Option<Habits>,
    ) -> Self {
        Self {
            member: GroupMember::new(config.clone()),
            config,
            versions,
            reads: PartitionSet::new(),
            heard_at: None,
            topics: BTreeSet::new(),
            generation: None,
            habits,
            positions: BTreeMap::new(),
            committed: BTreeMap::new(),
            call: None,
            releases: Release::Nothing,
            is_committing: false,
            is_fetching_offsets: false,
            is_polling: false,
            offsets_not_before: Mono::START,
            turn: 0,
            is_paused: false,
            missed_close: false,
            wakes_at: None,
        }
    }

    /// Whether it wants to be in no group any more.
    pub(crate) fn is_out(&self) -> bool {
        self.topics.is_empty()
    }

    /// Whether the process stands still.
    pub(crate) const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The next offset of a partition that it reads, once known.
    pub(crate) fn position(&self, partition: &TopicPartition) -> Option<Offset> {
        self.positions.get(partition).copied().flatten()
    }

    /// Under which name it owns partitions: a static member may come back with another member id.
    pub(crate) fn owner_name(&self) -> Option<String> {
        let identity = self.member.identity()?;
        Some(identity.instance_id.unwrap_or(identity.member_id))
    }

    fn next_deadline(&self) -> Option<Mono> {
        let call = self.call.as_ref().map(|it| it.deadline);
        let habits = self.habits.filter(|_| !self.reads.is_empty());
        let habits = habits.map(|it| it.next_commit.min(it.next_poll));
        let asks = self.wants_offsets().then_some(self.offsets_not_before);
        let deadlines = [self.member.next_deadline(), call, habits, asks];
        deadlines.into_iter().flatten().min()
    }

    fn wants_offsets(&self) -> bool {
        !self.is_fetching_offsets && self.positions.values().any(Option::is_none)
    }

    /// Stops reading at once.
    fn loses_all(&mut self) {
        self.reads.clear();
        self.positions.clear();
        self.committed.clear();
        self.releases = Release::Nothing;
    }
}

/// The other connection of a member.
pub(crate) const fn hand_of(member: ClientId) -> ClientId {
    ClientId(member.0 + HAND_OFFSET)
}

impl World {
    /// Adds a member, with both its connections, that joins at once.
    pub(crate) fn add_member(&mut self, id: ClientId, load: MemberLoad, topics: &[TopicName]) {
        let node = *self.brokers().first().expect("a broker of this world");
        let known = self.clients.values().next().map(|it| it.topic_ids.clone());
        let known = known.unwrap_or_default();
        self.add_client(hand_of(id), node, Load::Hand(id));
        self.add_client(id, node, Load::Member(Box::new(load)));
        self.client(id).topic_ids.clone_from(&known);
        self.client(hand_of(id)).topic_ids = known;
        let topics = topics.iter().cloned().collect();
        self.with_member(id, |load, now, out| {
            load.topics = topics;
            load.member.subscribe(now, load.topics.clone(), out);
        });
    }

    /// The member behind a client id.
    pub(crate) fn member(&self, id: ClientId) -> Option<&MemberLoad> {
        match &self.clients.get(&id)?.load {
            Load::Member(load) => Some(load),
            Load::Scripted | Load::Producer(_) | Load::Consumer(_) | Load::Hand(_) | Load::Gone => {
                None
            }
        }
    }

    /// The member behind a client id.
    pub(crate) fn member_mut(&mut self, id: ClientId) -> Option<&mut MemberLoad> {
        match &mut self.clients.get_mut(&id)?.load {
            Load::Member(load) => Some(load),
            Load::Scripted | Load::Producer(_) | Load::Consumer(_) | Load::Hand(_) | Load::Gone => {
                None
            }
        }
    }

    /// Every member whose process lives, also those that stand still.
    pub(crate) fn members(&self) -> impl Iterator<Item = (ClientId, &MemberLoad)> {
        let members = self.clients.keys().filter(|id| id.0 < HAND_OFFSET);
        members.filter_map(|id| Some((*id, self.member(*id)?)))
    }

    /// Leaves the group; a static member only stops. What it read is committed before.
    pub(crate) fn leave_group(&mut self, id: ClientId) {
        if let Some(load) = self.member_mut(id) {
            load.loses_all();
            load.topics.clear();
        }
        self.with_member(id, |load, now, out| {
            load.member.leave(now, "it was told to", out);
        });
    }

    /// The process of a member dies: it says nothing to anybody.
    pub(crate) fn kill_member(&mut self, id: ClientId) {
        for end in [id, hand_of(id)] {
            self.cut_client(end);
            self.client(end).load = Load::Gone;
        }
    }

    /// The process of a member stands still.
    pub(crate) fn pause_member(&mut self, id: ClientId) {
        if let Some(load) = self.member_mut(id) {
            load.is_paused = true;
            self.hold(id);
            self.hold(hand_of(id));
        }
    }

    /// It goes on, and finds everything that has arrived since.
    pub(crate) fn continue_member(&mut self, id: ClientId) {
        let Some(load) = self.member_mut(id) else {
            return;
        };
        load.is_paused = false;
        let missed_close = std::mem::take(&mut load.missed_close);
        self.deliver_to(&[id, hand_of(id)]);
        if missed_close {
            self.member_lost_connection(id);
        }
        self.member_turn(id);
    }

    /// Lets a member look at what to do next.
    pub(super) fn member_turn(&mut self, id: ClientId) {
        let now = self.now();
        let Some(load) = self.member_mut(id) else {
            return;
        };
        load.wakes_at = None;
        if load.is_paused {
            return;
        }
        let is_late = load.call.as_ref().is_some_and(|it| it.deadline <= now);
        if is_late {
            // Whoever gives up waiting closes the connection: an answer would come out of turn.
            self.hang_up_all(id);
            self.member_lost_connection(id);
        }
        self.with_member(id, |load, now, out| load.member.tick(now, out));
        self.fetch_member_offsets(id);
        self.follow_habits(id);
        self.schedule_member(id);
    }

    fn follow_habits(&mut self, id: ClientId) {
        let now = self.now();
        let Some(load) = self.member_mut(id) else {
            return;
        };
        let Some(habits) = &mut load.habits else {
            return;
        };
        if load.reads.is_empty() {
            return;
        }
        let (commits, polls) = (habits.next_commit <= now, habits.next_poll <= now);
        if commits {
            habits.next_commit = now.plus(habits.commit_interval);
        }
        if polls {
            habits.next_poll = now.plus(habits.poll_interval);
        }
        if polls {
            self.poll_member(id);
        }
        if commits {
            self.commit_member(id);
        }
    }

    /// Gives a member an input and does what it wants done.
    fn with_member(
        &mut self,
        id: ClientId,
        act: impl FnOnce(&mut MemberLoad, Mono, &mut Vec<MemberOutput>),
    ) {
        let now = self.now();
        let mut out = Vec::new();
        let Some(load) = self.member_mut(id) else {
            return;
        };
        act(load, now, &mut out);
        for output in out {
            self.member_output(id, output);
        }
        self.schedule_member(id);
    }

    fn member_output(&mut self, id: ClientId, output: MemberOutput) {
        match output {
            MemberOutput::Send {
                id: call,
                to,
                call: what,
                timeout,
            } => self.send_member_call(id, (call, &to), what, timeout),
            MemberOutput::Abandon(_) => {
                self.hang_up_all(id);
                if let Some(load) = self.member_mut(id) {
                    load.call = None;
                }
            }
            MemberOutput::Revoke(given_up) => self.give_up(id, &given_up),
            MemberOutput::Lost => {
                self.tell(format!("member {}: lost everything", id.0));
                if let Some(load) = self.member_mut(id) {
                    load.loses_all();
                }
            }
            MemberOutput::Assigned(new) => self.assigned(id, &new),
            MemberOutput::CountTopics(topics) => {
                let known = self.partition_counts.iter();
                let counts = known.filter(|(name, _)| topics.contains(*name));
                let counts = counts.map(|(name, count)| (name.clone(), *count)).collect();
                self.with_member(id, |load, now, out| {
                    load.member.handle_topics(now, &counts, out);
                });
            }
            MemberOutput::Left => self.tell(format!("member {}: left", id.0)),
            MemberOutput::Failed(why) => {
                if let Some(load) = self.member_mut(id) {
                    load.topics.clear();
                }
                self.tell(format!("member {}: failed: {why}", id.0));
            }
        }
    }

    fn assigned(&mut self, id: ClientId, new: &PartitionSet) {
        let Some(load) = self.member_mut(id) else {
            return;
        };
        let identity = load.member.identity().expect("who owns has a generation");
        load.generation = Some(identity.generation);
        load.reads.extend(load.member.owned().iter().cloned());
        for partition in new {
            load.positions.insert(partition.clone(), None);
        }
        let owned = list(load.member.owned());
        self.tell(format!(
            "member {}: in generation {} with [{owned}]",
            id.0, identity.generation
        ));
        let mut checker = std::mem::take(&mut self.checker);
        checker.groups.was_assigned(self, id);
        self.checker = checker;
        self.fetch_member_offsets(id);
    }

    fn give_up(&mut self, id: ClientId, given_up: &PartitionSet) {
        self.tell(format!("member {}: gives up [{}]", id.0, list(given_up)));
        let Some(load) = self.member_mut(id) else {
            return;
        };
        if load.is_committing {
            load.releases = Release::AfterNextCommit;
            return;
        }
        load.releases = Release::AfterCommit;
        if !self.commit_member(id) {
            self.released(id);
        }
    }

    /// What was to be given up is given up, whatever came of its commit.
    fn released(&mut self, id: ClientId) {
        let Some(load) = self.member_mut(id) else {
            return;
        };
        load.releases = Release::Nothing;
        let owned = load.member.owned().clone();
        load.reads.retain(|it| owned.contains(it));
        load.positions.retain(|it, _| owned.contains(it));
        load.committed.retain(|it, _| owned.contains(it));
        self.with_member(id, |load, now, out| load.member.released(now, out));
    }

    /// The hand has no commit under way any more.
    fn commit_is_over(&mut self, id: ClientId) {
        let Some(load) = self.member_mut(id) else {
            return;
        };
        load.is_committing = false;
        match load.releases {
            Release::Nothing => {}
            Release::AfterNextCommit => {
                load.releases = Release::AfterCommit;
                if !self.commit_member(id) {
                    self.released(id);
                }
            }
            Release::AfterCommit => self.released(id),
        }
    }

    fn schedule_member(&mut self, id: ClientId) {
        let next = self.now().plus(Millis::new(1));
        let Some(load) = self.member_mut(id) else {
            return;
        };
        if load.is_paused {
            return;
        }
        let Some(deadline) = load.next_deadline() else {
            return;
        };
        let at = deadline.max(next);
        if load.wakes_at.is_none_or(|scheduled| at < scheduled) {
            load.wakes_at = Some(at);
            self.events.push(at, Event::Client(id));
        }
    }

    /// A connection of a member is gone, for the member or for its hand.
    pub(super) fn member_connection_lost(
        &mut self,
        end: ClientId,
        node: NodeId,
        unanswered: Vec<Purpose>,
    ) {
        let talks_to = self.client(end).node;
        match self.client(end).load {
            Load::Hand(id) => {
                for purpose in unanswered {
                    self.hand_lost(id, &purpose);
                }
            }
            // A connection to an earlier coordinator carries nothing that is waited for.
            _ if talks_to != node => {}
            _ => match self.member_mut(end) {
                Some(load) if load.is_paused => load.missed_close = true,
                _ => self.member_lost_connection(end),
            },
        }
    }

    fn member_lost_connection(&mut self, id: ClientId) {
        let call = self.member_mut(id).and_then(|load| load.call.take());
        if let Some(call) = call {
            self.with_member(id, |load, now, out| {
                load.member.handle_failure(now, call.id, out);
            });
        }
    }

    /// The name under which a client is told of.
    pub(super) fn name_of(&self, id: ClientId) -> String {
        match self.clients.get(&id).map(|it| &it.load) {
            Some(Load::Hand(member)) => format!("member {}", member.0),
            Some(Load::Member(_)) => format!("member {}", id.0),
            _ => format!("client {}", id.0),
        }
    }
}

/// What a member says of itself in commits.
pub(crate) fn name_in(identity: Option<&MemberIdentity>) -> String {
    identity.map_or_else(
        || "no member".to_owned(),
        |it| format!("generation {}", it.generation),
    )
}

/// Partitions, in order, with a space between.
pub(crate) fn list(partitions: &PartitionSet) -> String {
    let names: Vec<String> = partitions.iter().map(ToString::to_string).collect();
    names.join(" ")
}
