use std::collections::BTreeSet;

use highwater_types::{ErrorCode, Millis, Mono, TopicName};

use super::assignor::wanted_topics;
use super::{
    Assignments, Assignor, CallId, CallTo, GroupCoordinator, GroupError, GroupMemberView,
    MemberCall, MemberConfig, MemberOutput, PartitionSet, Rebalancing, Subscription, TopicCounts,
    encode_assignment,
};
use crate::messages::join_group_request::JoinGroupRequestProtocol;
use crate::messages::sync_group_request::SyncGroupRequestAssignment;
use crate::messages::{HeartbeatRequest, JoinGroupRequest, SyncGroupRequest};

/// What kind of group this is, as all consumers call it.
pub(super) const PROTOCOL_TYPE: &str = "consumer";

/// One member of a classic consumer group: finds the coordinator, joins, deals when it leads,
/// heartbeats, gives up and takes partitions, leaves.
///
/// The owner (1) calls a `handle_*` or a command with an input and the time, (2) performs what was
/// pushed to `out`, in order, (3) calls [`GroupMember::tick`] no later than
/// [`GroupMember::next_deadline`].
///
/// Commands: [`subscribe`](Self::subscribe), [`released`](Self::released),
/// [`polled`](Self::polled), [`topics_changed`](Self::topics_changed), [`leave`](Self::leave).
#[derive(Clone, Debug)]
pub struct GroupMember {
    pub(super) config: MemberConfig,
    pub(super) topics: BTreeSet<TopicName>,
    pub(super) coordinator: Option<GroupCoordinator>,
    /// Empty until the coordinator gave one.
    pub(super) member_id: String,
    /// `None` outside of every generation.
    pub(super) generation: Option<i32>,
    /// Invariant: empty without a generation.
    pub(super) owned: PartitionSet,
    pub(super) stage: Stage,
    /// The one call under way.
    pub(super) call: Option<CallId>,
    next_call: u64,
    pub(super) failures: u32,
    /// Nothing is sent before: a pause after a failure.
    pub(super) not_before: Mono,
    pub(super) heartbeat_at: Mono,
    polled_at: Mono,
    /// What the newest JoinGroup asked for.
    pub(super) joined_topics: BTreeSet<TopicName>,
    /// What the assignment was made by, on the member that made it: the topics that the group
    /// wants, and the partitions of those that exist.
    pub(super) dealt: Option<(BTreeSet<TopicName>, TopicCounts)>,
    /// Why the next join happens, for whoever looks at the coordinator.
    pub(super) reason: String,
}

/// Where a member stands. Legal moves: `Out -> Joining -> (Dealing ->) Syncing -> Stable`;
/// `Stable -> Releasing -> Joining` or straight `Stable -> Joining`; from everywhere back to
/// `Joining` when the coordinator says so; from everywhere to `Leaving -> Out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In no group. `idle`: it left because its owner did not poll, and joins when it does.
    Out { idle: bool },
    /// Has a generation, and the owner is to give up partitions before it joins again.
    Releasing,
    /// Sends JoinGroup.
    Joining,
    /// Leads, and waits for the topics' partition counts.
    /// `skips`: it came back as a static leader whose deal stands (KIP-814), and only wants to know
    /// what to watch.
    Dealing {
        protocol: Assignor,
        members: Vec<GroupMemberView>,
        skips: bool,
    },
    /// Sends SyncGroup.
    Syncing {
        protocol: Assignor,
        assignments: Vec<SyncGroupRequestAssignment>,
    },
    /// Heartbeats.
    Stable,
    /// Sends LeaveGroup. `idle` as in `Out`.
    Leaving { idle: bool, reason: String },
}

/// Under which name a commit counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberIdentity {
    /// The member.
    pub member_id: String,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    /// The generation.
    pub generation: i32,
}

impl GroupMember {
    /// A member that wants nothing yet.
    ///
    /// # Panics
    /// Without any assignor.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        assert!(!config.assignors.is_empty(), "a member has an assignor");
        Self {
            config,
            topics: BTreeSet::new(),
            coordinator: None,
            member_id: String::new(),
            generation: None,
            owned: PartitionSet::new(),
            stage: Stage::Out { idle: false },
            call: None,
            next_call: 1,
            failures: 0,
            not_before: Mono::START,
            heartbeat_at: Mono::START,
            polled_at: Mono::START,
            joined_topics: BTreeSet::new(),
            dealt: None,
            reason: String::new(),
        }
    }

    /// What it reads, or is about to.
    #[must_use]
    pub const fn owned(&self) -> &PartitionSet {
        &self.owned
    }

    /// The coordinator, as far as is known.
    #[must_use]
    pub const fn coordinator(&self) -> Option<&GroupCoordinator> {
        self.coordinator.as_ref()
    }

    /// Under which name it may commit; `None` while it is in no generation.
    #[must_use]
    pub fn identity(&self) -> Option<MemberIdentity> {
        Some(MemberIdentity {
            generation: self.generation?,
            member_id: self.member_id.clone(),
            instance_id: self.config.instance_id.clone(),
        })
    }

    /// Whether it is in a generation that is complete, with nothing to give up.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.stage == Stage::Stable
    }

    /// Wants exactly these topics: joins, or joins anew.
    pub fn subscribe(
        &mut self,
        now: Mono,
        topics: BTreeSet<TopicName>,
        out: &mut Vec<MemberOutput>,
    ) {
        self.polled_at = now;
        let changed = self.topics != topics;
        self.topics = topics;
        match self.stage {
            Stage::Out { .. } => {
                self.stage = Stage::Joining;
                "it subscribed".clone_into(&mut self.reason);
            }
            Stage::Stable if changed => self.rejoin("its subscription changed", out),
            Stage::Leaving { ref mut idle, .. } => *idle = true,
            _ => {}
        }
        self.drive(now, out);
    }

    /// The owner asked for records.
    pub fn polled(&mut self, now: Mono, out: &mut Vec<MemberOutput>) {
        self.polled_at = now;
        if self.stage == (Stage::Out { idle: true }) {
            self.stage = Stage::Joining;
            "it polls again".clone_into(&mut self.reason);
            self.drive(now, out);
        }
    }

    /// What was to be given up is given up, and committed.
    pub fn released(&mut self, now: Mono, out: &mut Vec<MemberOutput>) {
        if self.stage == Stage::Releasing {
            self.stage = Stage::Joining;
            self.drive(now, out);
        }
    }

    /// The topics' partition counts that were asked for by [`MemberOutput::CountTopics`]. A topic
    /// that does not exist is not in them.
    pub fn handle_topics(&mut self, now: Mono, counts: &TopicCounts, out: &mut Vec<MemberOutput>) {
        let Stage::Dealing {
            protocol,
            members,
            skips,
        } = &self.stage
        else {
            return;
        };
        let protocol = *protocol;
        let wanted = wanted_topics(members);
        let dealt = if *skips {
            Assignments::new()
        } else {
            protocol.assign(counts, members)
        };
        let assignments = dealt.into_iter().map(|(member_id, assigned)| {
            // More partitions than a length field can say do not exist.
            let assignment = encode_assignment(&assigned).unwrap_or_default();
            SyncGroupRequestAssignment {
                member_id,
                assignment,
            }
        });
        let assignments = assignments.collect();
        let counts = only(counts, &wanted);
        self.dealt = Some((wanted, counts));
        self.stage = Stage::Syncing {
            protocol,
            assignments,
        };
        self.drive(now, out);
    }

    /// The topics whose partition counts matter to this member: those of its group on the member
    /// that dealt, else none.
    #[must_use]
    pub fn watched_topics(&self) -> BTreeSet<TopicName> {
        let dealt = self.dealt.as_ref();
        dealt.map(|(topics, _)| topics.clone()).unwrap_or_default()
    }

    /// The partition counts of [`watched_topics`](Self::watched_topics) as the cluster has them
    /// now; topics that are not in `counts` do not exist. The member that dealt by others lets the
    /// group rebalance.
    pub fn topics_changed(&mut self, now: Mono, counts: &TopicCounts, out: &mut Vec<MemberOutput>) {
        let dealt = self.dealt.as_ref();
        let is_old = dealt.is_some_and(|(topics, dealt)| only(counts, topics) != *dealt);
        if self.stage == Stage::Stable && is_old {
            self.rejoin("the partitions of its topics changed", out);
            self.drive(now, out);
        }
    }

    /// Leaves the group, unless it is a static member, which only stops. The owner has committed
    /// before, if it wanted to.
    pub fn leave(&mut self, now: Mono, reason: &str, out: &mut Vec<MemberOutput>) {
        self.topics.clear();
        let waits = matches!(self.stage, Stage::Joining | Stage::Syncing { .. });
        if let Some(id) = self.call.take().filter(|_| waits) {
            out.push(MemberOutput::Abandon(id));
        }
        self.begin_to_leave(false, reason, out);
        self.drive(now, out);
    }

    /// Looks at the time.
    pub fn tick(&mut self, now: Mono, out: &mut Vec<MemberOutput>) {
        let reads = matches!(self.stage, Stage::Stable | Stage::Releasing);
        if reads && now >= self.poll_limit() {
            let limit = self.config.max_poll_interval.as_u64();
            let reason = format!("it did not poll for {limit} ms (max.poll.interval.ms)");
            self.lose(out);
            self.call = None;
            self.begin_to_leave(true, &reason, out);
        }
        self.drive(now, out);
    }

    /// When to call [`GroupMember::tick`] at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Mono> {
        let send_at = match self.stage {
            _ if self.call.is_some() => None,
            Stage::Out { .. } | Stage::Dealing { .. } => None,
            Stage::Stable | Stage::Releasing if self.coordinator.is_some() => {
                Some(self.heartbeat_at.max(self.not_before))
            }
            _ => Some(self.not_before),
        };
        let reads = matches!(self.stage, Stage::Stable | Stage::Releasing);
        let poll_limit = reads.then(|| self.poll_limit());
        [send_at, poll_limit].into_iter().flatten().min()
    }

    fn poll_limit(&self) -> Mono {
        self.polled_at.plus(self.config.max_poll_interval)
    }

    /// Sends what is due, one call at a time.
    pub(super) fn drive(&mut self, now: Mono, out: &mut Vec<MemberOutput>) {
        self.assert_invariants();
        let is_silent = match self.stage {
            Stage::Out { .. } | Stage::Dealing { .. } => true,
            Stage::Stable | Stage::Releasing => {
                self.coordinator.is_some() && now < self.heartbeat_at
            }
            _ => false,
        };
        if is_silent || self.call.is_some() || now < self.not_before {
            return;
        }
        let Some(coordinator) = self.coordinator.clone() else {
            let call = MemberCall::FindCoordinator {
                group_id: self.config.group_id.clone(),
            };
            self.send(CallTo::AnyBroker, call, self.config.request_timeout, out);
            return;
        };
        if self.stage == Stage::Joining {
            self.joined_topics = self.topics.clone();
        }
        let (call, timeout) = self.due_call();
        if matches!(call, MemberCall::Heartbeat(_)) {
            self.heartbeat_at = now.plus(self.config.heartbeat_interval);
        }
        self.send(CallTo::Coordinator(coordinator), call, timeout, out);
    }

    fn due_call(&self) -> (MemberCall, Millis) {
        let slow = self.config.rebalance_limit();
        match &self.stage {
            Stage::Joining => (MemberCall::Join(self.join_request()), slow),
            Stage::Syncing {
                protocol,
                assignments,
            } => {
                let request = self.sync_request(*protocol, assignments.clone());
                (MemberCall::Sync(request), slow)
            }
            Stage::Leaving { reason, .. } => {
                let call = MemberCall::Leave {
                    group_id: self.config.group_id.clone(),
                    member_id: self.member_id.clone(),
                    reason: reason.clone(),
                };
                (call, self.config.request_timeout)
            }
            Stage::Stable | Stage::Releasing | Stage::Out { .. } | Stage::Dealing { .. } => {
                let request = HeartbeatRequest {
                    group_id: self.config.group_id.clone(),
                    generation_id: self.generation.unwrap_or(-1),
                    member_id: self.member_id.clone(),
                    group_instance_id: self.config.instance_id.clone(),
                };
                let timeout = self.config.request_timeout.min(self.config.session_timeout);
                (MemberCall::Heartbeat(request), timeout)
            }
        }
    }

    fn send(&mut self, to: CallTo, call: MemberCall, timeout: Millis, out: &mut Vec<MemberOutput>) {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.call = Some(id);
        out.push(MemberOutput::Send {
            id,
            to,
            call,
            timeout,
        });
    }

    fn join_request(&self) -> JoinGroupRequest {
        let protocols = self.config.assignors.iter().map(|assignor| {
            let subscription = Subscription {
                topics: self.topics.clone(),
                owned: self.owned.clone(),
                generation: self.generation,
                rack: self.config.rack.clone(),
                user_data: assignor.user_data(self.generation),
            };
            JoinGroupRequestProtocol {
                name: assignor.name().to_owned(),
                // More topics than a length field can say do not exist.
                metadata: subscription.encode().unwrap_or_default(),
            }
        });
        JoinGroupRequest {
            group_id: self.config.group_id.clone(),
            session_timeout_ms: wire_ms(self.config.session_timeout),
            rebalance_timeout_ms: wire_ms(self.config.max_poll_interval),
            member_id: self.member_id.clone(),
            group_instance_id: self.config.instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: protocols.collect(),
            reason: Some(self.reason.clone()),
        }
    }

    fn sync_request(
        &self,
        protocol: Assignor,
        assignments: Vec<SyncGroupRequestAssignment>,
    ) -> SyncGroupRequest {
        SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.generation.unwrap_or(-1),
            member_id: self.member_id.clone(),
            group_instance_id: self.config.instance_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(protocol.name().to_owned()),
            assignments,
        }
    }

    /// Joins again from a generation that is still good: first what must be given up is.
    pub(super) fn rejoin(&mut self, reason: &str, out: &mut Vec<MemberOutput>) {
        assert!(
            matches!(self.stage, Stage::Stable),
            "only who is in a complete generation joins anew"
        );
        reason.clone_into(&mut self.reason);
        let given_up: PartitionSet = match Assignor::rebalancing(&self.config.assignors) {
            Rebalancing::Eager => std::mem::take(&mut self.owned),
            Rebalancing::Cooperative => {
                let unwanted = |it: &_| -> bool { !self.wants(it) };
                self.owned
                    .iter()
                    .filter(|it| unwanted(it))
                    .cloned()
                    .collect()
            }
        };
        self.owned.retain(|it| !given_up.contains(it));
        if given_up.is_empty() {
            self.stage = Stage::Joining;
        } else {
            self.stage = Stage::Releasing;
            out.push(MemberOutput::Revoke(given_up));
        }
    }

    fn wants(&self, partition: &highwater_types::TopicPartition) -> bool {
        self.topics.contains(&partition.topic)
    }

    /// Out of the generation: everything is lost, also what was about to be given up.
    pub(super) fn lose(&mut self, out: &mut Vec<MemberOutput>) {
        self.generation = None;
        self.dealt = None;
        let lost = std::mem::take(&mut self.owned);
        if !lost.is_empty() || self.stage == Stage::Releasing {
            out.push(MemberOutput::Lost);
        }
    }

    pub(super) fn fail(&mut self, why: GroupError, out: &mut Vec<MemberOutput>) {
        self.lose(out);
        self.stage = Stage::Out { idle: false };
        out.push(MemberOutput::Failed(why));
    }

    fn begin_to_leave(&mut self, idle: bool, reason: &str, out: &mut Vec<MemberOutput>) {
        self.generation = None;
        self.dealt = None;
        self.owned.clear();
        let is_known = !self.member_id.is_empty() && self.coordinator.is_some();
        if is_known && self.config.instance_id.is_none() {
            // One attempt, at once.
            self.not_before = Mono::START;
            let reason = reason.to_owned();
            self.stage = Stage::Leaving { idle, reason };
        } else {
            self.left(idle, out);
        }
    }

    pub(super) fn left(&mut self, idle: bool, out: &mut Vec<MemberOutput>) {
        self.member_id.clear();
        self.stage = Stage::Out { idle };
        if !idle {
            out.push(MemberOutput::Left);
        }
    }

    pub(super) fn pause(&mut self, now: Mono) {
        self.failures += 1;
        self.not_before = now.plus(self.config.backoff(self.failures));
    }

    fn assert_invariants(&self) {
        assert!(
            self.generation.is_some() || self.owned.is_empty(),
            "who is in no generation owns nothing"
        );
        let needs_generation = matches!(
            self.stage,
            Stage::Stable | Stage::Releasing | Stage::Syncing { .. } | Stage::Dealing { .. }
        );
        assert!(
            !needs_generation || self.generation.is_some(),
            "in {:?} a member has a generation",
            self.stage
        );
    }
}

fn only(counts: &TopicCounts, topics: &BTreeSet<TopicName>) -> TopicCounts {
    let kept = counts.iter().filter(|(name, _)| topics.contains(*name));
    kept.map(|(name, count)| (name.clone(), *count)).collect()
}

fn wire_ms(span: Millis) -> i32 {
    i32::try_from(span.as_u64()).unwrap_or(i32::MAX)
}

/// For an answer that a member cannot make anything of.
pub(super) const fn refused(what: &'static str, code: ErrorCode) -> GroupError {
    GroupError::Refused { what, code }
}
