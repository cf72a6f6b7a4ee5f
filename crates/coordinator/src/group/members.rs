use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_types::{ErrorCode, Millis, WallMs};

use super::member::{Member, Waiting};
use super::phase::Phase;
use super::stored::{StoredGroup, StoredMember};
use crate::answer::JoinedMember;
use crate::request::JoinProtocol;
use crate::{GenerationId, InstanceId, MemberId};

/// The members of a group and where their rebalance is.
///
/// Between two records this runs ahead of what is stored, as in Kafka: a new generation is stored
/// with its assignment. So a reload goes back to the last assignment that was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub(crate) phase: Phase,
    /// When `phase` was entered; -1: not known.
    pub(crate) state_timestamp: WallMs,
    pub(crate) generation_id: GenerationId,
    /// `None` when nobody ever joined.
    pub(crate) protocol_type: Option<Arc<str>>,
    pub(crate) protocol_name: Option<Arc<str>>,
    /// Invariant: a member, and there is one as long as there are members.
    pub(crate) leader: Option<MemberId>,
    /// Boxed, as most groups have few members and a tree's node has place for eleven.
    by_id: BTreeMap<MemberId, Box<Member>>,
    /// Invariant: exactly the members with an instance id.
    by_instance: BTreeMap<InstanceId, MemberId>,
    /// Ids that were given out and not used yet. Invariant: none of them is a member.
    pub(crate) pending: BTreeSet<MemberId>,
    /// How many members wait for the end of the join phase.
    joining: usize,
    /// How many members offer each protocol.
    offers: BTreeMap<Arc<str>, usize>,
}

impl Members {
    /// Of a group that nobody has joined yet.
    pub(crate) fn new(state_timestamp: WallMs) -> Self {
        Self {
            phase: Phase::Empty,
            state_timestamp,
            generation_id: GenerationId::default(),
            protocol_type: None,
            protocol_name: None,
            leader: None,
            by_id: BTreeMap::new(),
            by_instance: BTreeMap::new(),
            pending: BTreeSet::new(),
            joining: 0,
            offers: BTreeMap::new(),
        }
    }

    /// As a record has them, after a load.
    pub(crate) fn from_stored(stored: &StoredGroup) -> Self {
        let mut members = Self::new(stored.state_timestamp);
        members.generation_id = stored.generation_id;
        members.protocol_name.clone_from(&stored.protocol_name);
        if !stored.protocol_type.is_empty() {
            members.protocol_type = Some(stored.protocol_type.clone());
        }
        let protocol = stored.protocol_name.clone().unwrap_or_default();
        for it in &stored.members {
            let is_twice = it
                .instance_id
                .as_ref()
                .is_some_and(|id| members.has_instance(id));
            if is_twice || members.by_id.contains_key(&it.member_id) {
                // No coordinator writes that; the first one keeps its place.
                continue;
            }
            let protocols = vec![JoinProtocol {
                name: protocol.clone(),
                metadata: it.subscription.clone(),
            }];
            members.add(it.member_id.clone(), it.to_member(protocols));
        }
        if let Some(leader) = stored
            .leader
            .clone()
            .filter(|it| members.by_id.contains_key(it))
        {
            members.leader = Some(leader);
        }
        if !members.is_empty() {
            members.phase = Phase::Stable {
                to_sync: BTreeSet::new(),
            };
        }
        members
    }

    /// As they are recorded, with the assignments that they have.
    pub(crate) fn to_stored(&self) -> StoredGroup {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.by_id.iter().map(|(id, it)| StoredMember {
            member_id: id.clone(),
            instance_id: it.instance_id.clone(),
            client_id: it.client_id.clone(),
            client_host: it.client_host.clone(),
            session_timeout: it.session_timeout,
            rebalance_timeout: it.rebalance_timeout,
            subscription: it.metadata(protocol),
            assignment: it.assignment.clone(),
        });
        StoredGroup {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation_id: self.generation_id,
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone(),
            state_timestamp: self.state_timestamp,
            members: members.collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: &MemberId) -> Option<&Member> {
        self.by_id.get(id).map(Box::as_ref)
    }

    pub(crate) fn contains(&self, id: &MemberId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(crate) fn has_instance(&self, id: &InstanceId) -> bool {
        self.by_instance.contains_key(id)
    }

    /// The member that a static member is now.
    pub(crate) fn of_instance(&self, id: &InstanceId) -> Option<&MemberId> {
        self.by_instance.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&MemberId, &Member)> {
        self.by_id.iter().map(|(id, it)| (id, it.as_ref()))
    }

    /// All members, to change what no other field counts: not their protocols, instance or wait.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.by_id.values_mut().map(Box::as_mut)
    }

    pub(crate) fn ids(&self) -> Vec<MemberId> {
        self.by_id.keys().cloned().collect()
    }

    pub(crate) fn is_leader(&self, id: &MemberId) -> bool {
        self.leader.as_ref() == Some(id)
    }

    /// How many members wait for the end of the join phase.
    pub(crate) const fn joining(&self) -> usize {
        self.joining
    }

    /// Whether nobody is missing in the join phase.
    pub(crate) fn all_joined(&self) -> bool {
        self.joining == self.by_id.len() && self.pending.is_empty()
    }

    /// How long members may take to join again: the longest of theirs.
    pub(crate) fn rebalance_timeout(&self) -> Millis {
        let timeouts = self.by_id.values().map(|it| it.rebalance_timeout);
        timeouts.max().unwrap_or(Millis::ZERO)
    }

    /// Whether a member with these protocols can be in the group: all others offer one of them.
    pub(crate) fn supports(&self, protocol_type: &str, protocols: &[JoinProtocol]) -> bool {
        if matches!(self.phase, Phase::Empty) {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let offers = |name: &str| self.offers.get(name).copied().unwrap_or(0);
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|it| offers(&it.name) == self.len())
    }

    /// The protocol that most members like best, among those that all offer; of equals the first
    /// by name. `None` without members.
    pub(crate) fn select_protocol(&self) -> Option<Arc<str>> {
        let is_candidate = |name: &str| self.offers.get(name) == Some(&self.len());
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.by_id.values() {
            if let Some(best) = member.protocols.iter().find(|it| is_candidate(&it.name)) {
                *votes.entry(&best.name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        let winner = votes.into_iter().find(|(_, votes)| *votes == most);
        winner.map(|(name, _)| name.clone())
    }

    /// Whether a request of this member is a current one.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another has taken its place.
    pub(crate) fn check(
        &self,
        id: &MemberId,
        instance_id: Option<&InstanceId>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.by_instance.get(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(current) if current != id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.by_id.contains_key(id) {
            Ok(())
        } else {
            Err(ErrorCode::UNKNOWN_MEMBER_ID)
        }
    }

    /// Takes in a member, which may have been a pending one.
    pub(crate) fn add(&mut self, id: MemberId, member: Member) {
        assert!(!self.by_id.contains_key(&id), "member {id} is added twice");
        if let Some(instance_id) = member.instance_id.clone() {
            let old = self.by_instance.insert(instance_id, id.clone());
            assert_eq!(old, None, "a static member is added twice");
        }
        if self.leader.is_none() {
            self.leader = Some(id.clone());
        }
        self.pending.remove(&id);
        self.joining += usize::from(member.waits_for_join());
        self.count_offers(&member.protocols);
        self.by_id.insert(id, Box::new(member));
    }

    /// Takes out a member or a pending one. The first of the others leads then, if it did.
    pub(crate) fn remove(&mut self, id: &MemberId) -> Option<Member> {
        self.pending.remove(id);
        if let Some(to_sync) = self.phase.to_sync_mut() {
            to_sync.remove(id);
        }
        let member = self.by_id.remove(id)?;
        self.joining -= usize::from(member.waits_for_join());
        self.uncount_offers(&member.protocols);
        if let Some(instance_id) = &member.instance_id {
            self.by_instance.remove(instance_id);
        }
        if self.is_leader(id) {
            self.leader = self.by_id.keys().next().cloned();
        }
        Some(*member)
    }

    /// Gives a static member a new id. It keeps everything but its wait.
    pub(crate) fn rename(&mut self, old: &MemberId, new: MemberId) -> Waiting {
        let led = self.is_leader(old);
        let mut member = self
            .remove(old)
            .expect("a member by instance id is a member");
        let waiting = std::mem::replace(&mut member.waiting, Waiting::No);
        self.add(new.clone(), member);
        if led {
            self.leader = Some(new);
        }
        waiting
    }

    /// Changes what a member offers.
    pub(crate) fn set_protocols(&mut self, id: &MemberId, protocols: Vec<JoinProtocol>) {
        self.count_offers(&protocols);
        let member = self.by_id.get_mut(id).expect("asked of a member");
        let old = std::mem::replace(&mut member.protocols, protocols);
        self.uncount_offers(&old);
    }

    /// Changes what a member waits for, and gives what it waited for.
    pub(crate) fn set_waiting(&mut self, id: &MemberId, waiting: Waiting) -> Waiting {
        let member = self.by_id.get_mut(id).expect("asked of a member");
        let old = std::mem::replace(&mut member.waiting, waiting);
        self.joining -= usize::from(matches!(old, Waiting::Join(_)));
        self.joining += usize::from(matches!(waiting, Waiting::Join(_)));
        old
    }

    pub(crate) fn member_mut(&mut self, id: &MemberId) -> Option<&mut Member> {
        self.by_id.get_mut(id).map(Box::as_mut)
    }

    /// Makes sure that the leader is one who has joined, if anybody has. Gives whether one is.
    pub(crate) fn elect_joined_leader(&mut self) -> bool {
        let leader = self.leader.as_ref().and_then(|id| self.by_id.get(id));
        if leader.is_some_and(|it| it.waits_for_join()) {
            return true;
        }
        let joined = self.by_id.iter().find(|(_, it)| it.waits_for_join());
        let Some(joined) = joined.map(|(id, _)| id.clone()) else {
            return false;
        };
        self.leader = Some(joined);
        true
    }

    /// All members as the leader sees them.
    pub(crate) fn for_leader(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let members = self.by_id.iter().map(|(id, it)| JoinedMember {
            member_id: id.clone(),
            instance_id: it.instance_id.clone(),
            metadata: it.metadata(protocol),
        });
        members.collect()
    }

    fn count_offers(&mut self, protocols: &[JoinProtocol]) {
        for name in distinct(protocols) {
            *self.offers.entry(name.clone()).or_default() += 1;
        }
    }

    fn uncount_offers(&mut self, protocols: &[JoinProtocol]) {
        for name in distinct(protocols) {
            if let Some(count) = self.offers.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.offers.remove(name);
                }
            }
        }
    }

    /// One assert for each invariant above.
    pub(crate) fn assert_invariants(&self) {
        let leads = self
            .leader
            .as_ref()
            .is_some_and(|id| self.by_id.contains_key(id));
        assert_eq!(
            leads,
            !self.by_id.is_empty(),
            "a leader is a member: {:?}",
            self.leader
        );
        let is_empty = matches!(self.phase, Phase::Empty);
        assert!(
            !is_empty || self.by_id.is_empty(),
            "an empty group has members"
        );
        let settled = self.phase.to_sync().is_some();
        assert!(
            !settled || !self.by_id.is_empty(),
            "a generation without members"
        );
        assert!(
            self.joining <= self.by_id.len(),
            "{} members join",
            self.joining
        );
        if cfg!(debug_assertions) {
            self.assert_counts();
        }
    }

    /// What takes a walk over all members.
    fn assert_counts(&self) {
        let joining = self.by_id.values().filter(|it| it.waits_for_join()).count();
        assert_eq!(joining, self.joining, "members that join");
        assert!(
            self.pending.iter().all(|id| !self.by_id.contains_key(id)),
            "pending members"
        );
        let statics = self.by_id.iter().filter(|(_, it)| it.is_static());
        assert_eq!(statics.count(), self.by_instance.len(), "static members");
        for (id, member) in &self.by_id {
            if let Some(instance_id) = &member.instance_id {
                assert_eq!(
                    self.by_instance.get(instance_id),
                    Some(id),
                    "static members"
                );
            }
            let syncs = matches!(member.waiting, Waiting::Sync(_));
            let completing = matches!(self.phase, Phase::Completing { .. });
            assert!(!syncs || completing, "{id} waits for an assignment");
        }
        if let Some(to_sync) = self.phase.to_sync() {
            assert!(
                to_sync.iter().all(|id| self.by_id.contains_key(id)),
                "members to sync"
            );
        }
    }
}

/// The names of protocols, each once.
fn distinct(protocols: &[JoinProtocol]) -> BTreeSet<&Arc<str>> {
    protocols.iter().map(|it| &it.name).collect()
}
