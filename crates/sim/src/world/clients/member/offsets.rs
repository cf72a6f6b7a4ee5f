//! The hand of a member: it commits, asks for committed offsets, and reads.

use std::collections::BTreeMap;

use highwater_protocol::client::group::{
    CommittedOffset, FetchedOffsets, MemberIdentity, PartitionSet, TopicIds, commit_request,
    commit_results, fetch_request, fetched_offsets,
};
use highwater_protocol::messages::{OffsetCommitResponse, OffsetFetchResponse};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Offset, TopicId, TopicPartition};

use super::super::World;
use super::super::requests::{Purpose, SentFetch};
use super::{hand_of, name_in};
use crate::check::FetchFloor;
use crate::client::ClientId;

/// How long a member waits before it asks for offsets again.
const RETRY: Millis = Millis::new(100);

/// A commit on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentCommit {
    /// The group.
    pub(crate) group: String,
    /// Under which name; a tool has none.
    pub(crate) identity: Option<MemberIdentity>,
    /// The positions.
    pub(crate) offsets: BTreeMap<TopicPartition, Offset>,
    /// Metadata that no other commit of this run has.
    pub(crate) mark: String,
}

/// An offset fetch on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentOffsetFetch {
    /// The group.
    pub(crate) group: String,
    /// Up to where the group's log was known at the sending.
    pub(crate) floor: FetchFloor,
}

impl World {
    /// Commits what a member has read, if that is news; whether a commit is under way now.
    pub(crate) fn commit_member(&mut self, id: ClientId) -> bool {
        let Some(load) = self.member(id) else {
            return false;
        };
        let known = load.positions.iter();
        let known = known.filter_map(|(it, at)| Some((it.clone(), (*at)?)));
        let news = known.filter(|(it, at)| load.committed.get(it) != Some(at));
        let offsets: BTreeMap<_, _> = news.collect();
        !offsets.is_empty() && self.commit_as_member(id, offsets)
    }

    /// Commits these offsets under the name of a member; whether the commit is on its way.
    pub(crate) fn commit_as_member(
        &mut self,
        id: ClientId,
        offsets: BTreeMap<TopicPartition, Offset>,
    ) -> bool {
        let Some(load) = self.member_mut(id) else {
            return false;
        };
        let Some(identity) = load.member.identity() else {
            return false;
        };
        if load.is_committing {
            return false;
        }
        load.is_committing = true;
        let (group, version) = (load.config.group_id.clone(), load.versions.commit);
        let sent = self.send_commit(hand_of(id), version, &group, Some(identity), offsets);
        if !sent && let Some(load) = self.member_mut(id) {
            load.is_committing = false;
        }
        sent
    }

    /// Commits for a client, under the name of a member or of none; whether it is on its way.
    pub(crate) fn send_commit(
        &mut self,
        from: ClientId,
        version: i16,
        group: &str,
        identity: Option<MemberIdentity>,
        offsets: BTreeMap<TopicPartition, Offset>,
    ) -> bool {
        let commit = SentCommit {
            group: group.to_owned(),
            identity,
            offsets,
            mark: self.checker.groups.next_mark(),
        };
        let marked = commit.offsets.iter().map(|(it, offset)| {
            let committed = CommittedOffset {
                offset: *offset,
                leader_epoch: LeaderEpoch::NONE,
                metadata: commit.mark.clone(),
            };
            (it.clone(), committed)
        });
        let marked = marked.collect();
        let ids = self.topic_ids(from);
        let identity = commit.identity.as_ref();
        let (request, version_max) = commit_request(group, identity, &marked, &ids);
        self.checker.groups.is_committed(&commit);
        let version = version.min(version_max);
        let purpose = Purpose::Commit(Box::new(commit));
        self.ask(from, &request.into(), version, purpose).is_ok()
    }

    /// Takes the answer to a commit.
    pub(in super::super) fn commit_answered(
        &mut self,
        from: ClientId,
        commit: &SentCommit,
        answer: &OffsetCommitResponse,
    ) {
        let results = commit_results(answer, &self.topic_ids(from));
        let mut checker = std::mem::take(&mut self.checker);
        checker.groups.commit_answered(commit, &results);
        self.checker = checker;
        let shown = commit
            .offsets
            .iter()
            .map(|(it, offset)| format!("{it}={offset}"));
        let shown: Vec<String> = shown.collect();
        let code = results.values().find(|it| it.is_error());
        let code = code.copied().unwrap_or(ErrorCode::NONE);
        let (who, name) = (self.name_of(from), name_in(commit.identity.as_ref()));
        let (group, shown) = (&commit.group, shown.join(" "));
        self.tell(format!(
            "{who}: answer commit {group} {shown} in {name}: {code}"
        ));
        let super::Load::Hand(id) = self.client(from).load else {
            return;
        };
        let refused = code.is_error();
        if let Some(load) = self.member_mut(id)
            && !refused
        {
            let kept = commit.offsets.iter();
            let kept = kept.filter(|(it, _)| load.reads.contains(*it));
            load.committed
                .extend(kept.map(|(it, at)| (it.clone(), *at)));
        }
        self.commit_is_over(id);
        if let Some(identity) = &commit.identity
            && refused
        {
            self.with_member(id, |load, now, out| {
                load.member.handle_offsets_refused(now, identity, code, out);
            });
        }
    }

    /// Asks where to begin, for partitions whose position is not known.
    pub(super) fn fetch_member_offsets(&mut self, id: ClientId) {
        let now = self.now();
        let Some(load) = self.member_mut(id) else {
            return;
        };
        if !load.wants_offsets() || now < load.offsets_not_before {
            return;
        }
        load.is_fetching_offsets = true;
        let unknown = load.positions.iter().filter(|(_, at)| at.is_none());
        let unknown: PartitionSet = unknown.map(|(it, _)| it.clone()).collect();
        let (group, version) = (load.config.group_id.clone(), load.versions.offset_fetch);
        if !self.send_offset_fetch(hand_of(id), version, &group, Some(&unknown)) {
            self.offsets_not_fetched(id);
        }
    }

    /// Asks for committed offsets, for a client; whether the request is on its way.
    pub(crate) fn send_offset_fetch(
        &mut self,
        from: ClientId,
        version: i16,
        group: &str,
        partitions: Option<&PartitionSet>,
    ) -> bool {
        let ids = self.topic_ids(from);
        let (request, version) = fetch_request(group, partitions, false, &ids, version);
        let fetch = SentOffsetFetch {
            group: group.to_owned(),
            floor: self.checker.groups.fetch_floor(),
        };
        let purpose = Purpose::OffsetFetch(fetch);
        self.ask(from, &request.into(), version, purpose).is_ok()
    }

    /// Takes committed offsets.
    pub(in super::super) fn offsets_answered(
        &mut self,
        from: ClientId,
        fetch: &SentOffsetFetch,
        answer: &OffsetFetchResponse,
    ) {
        let fetched = fetched_offsets(answer, &fetch.group, &self.topic_ids(from));
        if let Ok(fetched) = &fetched {
            self.checker.groups.was_fetched(fetch, fetched);
        }
        let (who, group) = (self.name_of(from), &fetch.group);
        let shown = match &fetched {
            Ok(fetched) => shown(fetched),
            Err(code) => code.to_string(),
        };
        self.tell(format!("{who}: answer offsets {group} {shown}"));
        let super::Load::Hand(id) = self.client(from).load else {
            return;
        };
        match fetched {
            Ok(fetched) => self.begin_at(id, fetched),
            Err(code) => {
                self.offsets_not_fetched(id);
                let identity = self.member(id).and_then(|it| it.member.identity());
                if let Some(identity) = identity {
                    self.with_member(id, |load, now, out| {
                        load.member
                            .handle_offsets_refused(now, &identity, code, out);
                    });
                }
            }
        }
    }

    fn begin_at(&mut self, id: ClientId, fetched: FetchedOffsets) {
        let retry = self.now().plus(RETRY);
        let Some(load) = self.member_mut(id) else {
            return;
        };
        load.is_fetching_offsets = false;
        for (partition, told) in fetched {
            let Some(position) = load.positions.get_mut(&partition) else {
                continue;
            };
            match told {
                Ok(Some(committed)) => {
                    *position = Some(committed.offset);
                    load.committed.insert(partition, committed.offset);
                }
                Ok(None) => *position = Some(Offset::ZERO),
                Err(_) => load.offsets_not_before = retry,
            }
        }
        self.schedule_member(id);
    }

    fn offsets_not_fetched(&mut self, id: ClientId) {
        let retry = self.now().plus(RETRY);
        if let Some(load) = self.member_mut(id) {
            load.is_fetching_offsets = false;
            load.offsets_not_before = retry;
        }
        self.schedule_member(id);
    }

    /// Reads from the next of a member's partitions.
    pub(crate) fn poll_member(&mut self, id: ClientId) {
        self.with_member(id, |load, now, out| load.member.polled(now, out));
        let wait = self.random.below(20);
        let topic_ids = self.client(id).topic_ids.clone();
        let Some(load) = self.member_mut(id) else {
            return;
        };
        let known: Vec<_> = load
            .positions
            .iter()
            .filter_map(|(it, at)| Some((it.clone(), (*at)?)))
            .collect();
        if load.is_polling || known.is_empty() {
            return;
        }
        load.turn = (load.turn + 1) % known.len();
        let Some((partition, offset)) = known.get(load.turn).cloned() else {
            return;
        };
        let version = load.versions.fetch;
        let Some(leader) = self.leader_for(hand_of(id), &partition) else {
            return;
        };
        let fetch = SentFetch {
            topic_id: topic_ids.get(&partition.topic).copied().unwrap_or_default(),
            partition,
            offset,
            isolation_level: 0,
            min_bytes: 1,
            max_wait_ms: i32::try_from(wait).unwrap_or(0),
            leader_epoch: None,
            from_follower: false,
        };
        let (request, purpose) = (fetch.request(version), Purpose::Fetch(fetch));
        let asked = self.ask_at(hand_of(id), leader, (&request, version), purpose);
        if let Some(load) = self.member_mut(id) {
            load.is_polling = asked.is_ok();
        }
    }

    /// A poll is over: the position moves, if the partition is still this member's.
    pub(in super::super) fn member_has_read(
        &mut self,
        id: ClientId,
        fetch: &SentFetch,
        next: Option<Offset>,
    ) {
        let Some(load) = self.member_mut(id) else {
            return;
        };
        load.is_polling = false;
        if let (Some(Some(position)), Some(next)) = (load.positions.get_mut(&fetch.partition), next)
            && *position == fetch.offset
        {
            *position = next;
        }
    }

    /// The hand's connection is gone, and with it this answer.
    pub(super) fn hand_lost(&mut self, id: ClientId, purpose: &Purpose) {
        match purpose {
            Purpose::Commit(_) => self.commit_is_over(id),
            Purpose::OffsetFetch(_) => self.offsets_not_fetched(id),
            Purpose::Fetch(fetch) => self.member_has_read(id, fetch, None),
            _ => {}
        }
    }

    fn topic_ids(&self, of: ClientId) -> TopicIds {
        let known = self.clients.get(&of).map(|it| &it.topic_ids);
        let known = known.into_iter().flatten();
        known
            .map(|(name, id)| (name.clone(), TopicId::new(*id)))
            .collect()
    }
}

fn shown(fetched: &FetchedOffsets) -> String {
    let shown = fetched.iter().map(|(partition, told)| match told {
        Ok(Some(committed)) => format!("{partition}={}", committed.offset),
        Ok(None) => format!("{partition}=none"),
        Err(code) => format!("{partition}={code}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}
