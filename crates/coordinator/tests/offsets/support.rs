//! A coordinator over a log in memory, and short words to ask it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use highwater_coordinator::{
    AppendRefused, Appender, Assigned, CommitPartition, CommitTopic, Coordinator, DeleteAnswer,
    DeleteRequest, FetchTopic, GenerationId, GroupAnswer, GroupEvent, GroupRequest, GroupSettings,
    JoinAnswer, JoinProtocol, JoinRequest, LeaveRequest, LeavingMember, ListRequest, ListedGroup,
    MemberCaller, MemberId, NewRecord, OffsetCommitRequest, OffsetDeleteAnswer,
    OffsetDeleteRequest, OffsetFetchAnswer, OffsetFetchRequest, Output, PartitionsOfTopic,
    ReplayedAt, RequestId, SyncRequest, TopicNames,
};
use highwater_records::stored::data::ConsumerProtocolSubscription;
use highwater_records::wire::{Message as _, Writer};
use highwater_types::{
    ErrorCode, LeaderEpoch, Millis, Mono, Now, Offset, PartitionIndex, ProducerEpoch, ProducerId,
    TopicId, TopicName, Uuid, WallMs,
};

/// One record of the log in memory, or the end of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Record {
        key: Bytes,
        value: Option<Bytes>,
        producer_id: ProducerId,
    },
    End {
        producer_id: ProducerId,
        committed: bool,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MemLog {
    pub(crate) entries: Vec<Entry>,
    /// The sizes of the batches that were appended.
    pub(crate) batches: Vec<usize>,
    pub(crate) refuse: Option<AppendRefused>,
}

impl MemLog {
    pub(crate) fn end(&self) -> Offset {
        Offset::new(i64::try_from(self.entries.len()).unwrap())
    }
}

impl Appender for MemLog {
    fn append(&mut self, _: Now, records: &[NewRecord]) -> Result<Offset, AppendRefused> {
        if let Some(why) = self.refuse {
            return Err(why);
        }
        self.batches.push(records.len());
        self.entries.extend(records.iter().map(|it| Entry::Record {
            key: it.key.clone(),
            value: it.value.clone(),
            producer_id: ProducerId::NONE,
        }));
        Ok(self.end())
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Topics(pub(crate) BTreeMap<String, TopicId>);

impl TopicNames for Topics {
    fn id_of(&self, name: &str) -> Option<TopicId> {
        self.0.get(name).copied()
    }

    fn name_of(&self, id: TopicId) -> Option<&str> {
        let mut named = self.0.iter();
        named
            .find(|(_, it)| **it == id)
            .map(|(name, _)| name.as_str())
    }
}

pub(crate) fn topic_id(number: u128) -> TopicId {
    TopicId::new(Uuid::from_u128(number))
}

pub(crate) struct World {
    pub(crate) now: Now,
    pub(crate) settings: GroupSettings,
    pub(crate) log: MemLog,
    pub(crate) coordinator: Coordinator,
    pub(crate) topics: Topics,
    pub(crate) events: Vec<(String, GroupEvent)>,
    pub(crate) answers: BTreeMap<RequestId, (Offset, GroupAnswer)>,
    next_id: u64,
    /// How often it was loaded. Each life has its own chance, or member ids would come again.
    lives: u8,
}

/// A coordinator that has replayed these entries.
pub(crate) fn replayed(settings: &GroupSettings, seed: u8, entries: &[Entry]) -> Coordinator {
    let mut coordinator = Coordinator::new(Arc::new(settings.clone()), [seed; 32]);
    for (offset, entry) in (0..).zip(entries) {
        replay_entry(&mut coordinator, Offset::new(offset), entry);
    }
    coordinator
}

pub(crate) fn replay_entry(coordinator: &mut Coordinator, offset: Offset, entry: &Entry) {
    match entry {
        Entry::Record {
            key,
            value,
            producer_id,
        } => {
            let at = ReplayedAt {
                offset,
                producer_id: *producer_id,
                producer_epoch: ProducerEpoch::NONE,
                transactional: producer_id.is_some(),
                timestamp: WallMs::NONE,
            };
            let done = coordinator.replay(at, key, value.as_deref());
            done.expect("a record of our own");
        }
        Entry::End {
            producer_id,
            committed,
        } => {
            let end = offset.next();
            coordinator.replay_transaction_end(*producer_id, *committed, end);
        }
    }
}

pub(crate) fn settings() -> GroupSettings {
    GroupSettings {
        initial_rebalance_delay: Millis::ZERO,
        offsets_retention: Millis::new(1_000_000),
        offsets_retention_check_interval: Millis::new(1_000),
        ..GroupSettings::default()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(settings(), MemLog::default())
    }

    pub(crate) fn with(settings: GroupSettings, log: MemLog) -> Self {
        let mut world = Self {
            now: Now {
                mono: Mono::from_micros(1_000_000),
                wall: WallMs::new(1_000_000_000),
            },
            coordinator: Coordinator::new(Arc::new(settings.clone()), [7; 32]),
            settings,
            log,
            topics: Topics::default(),
            events: Vec::new(),
            answers: BTreeMap::new(),
            next_id: 0,
            lives: 0,
        };
        world.reload();
        world
    }

    /// The coordinator moves away and back: all that is left is the log.
    pub(crate) fn reload(&mut self) {
        self.lives = self.lives.wrapping_add(1);
        self.coordinator = replayed(&self.settings, self.lives, &self.log.entries);
        let mut out = Vec::new();
        self.coordinator.loaded(self.now, &mut self.log, &mut out);
        self.take(out);
    }

    fn take(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Answer { to, after, answer } => {
                    assert!(after <= self.log.end(), "depends on what is not written");
                    let old = self.answers.insert(to, (after, answer));
                    assert!(old.is_none(), "{to:?} is answered twice");
                }
                Output::Happened(it) => {
                    self.events.push((it.group_id.to_string(), it.event));
                }
            }
        }
    }

    /// Time passes, in steps, and what is due happens.
    pub(crate) fn pass(&mut self, span: Millis) {
        let mut left = span.as_u64();
        while left > 0 {
            let step = left.min(500);
            left -= step;
            self.now.mono = self.now.mono.plus(Millis::new(step));
            let wall = self.now.wall.raw() + i64::try_from(step).unwrap();
            self.now.wall = WallMs::new(wall);
            self.tick();
        }
    }

    pub(crate) fn tick(&mut self) {
        let mut out = Vec::new();
        self.coordinator.tick(self.now, &mut self.log, &mut out);
        self.take(out);
    }

    /// Only the wall clock moves on, and offsets are looked at.
    pub(crate) fn age(&mut self, span: Millis) {
        let wall = self.now.wall.raw() + i64::try_from(span.as_u64()).unwrap();
        self.now.wall = WallMs::new(wall);
    }

    /// Enough time for one look at old offsets, yet none for any session.
    pub(crate) fn look_for_old_offsets(&mut self) {
        self.pass(Millis::new(1_500));
    }

    pub(crate) fn send(&mut self, request: GroupRequest) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let caller = MemberCaller {
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
        };
        let mut out = Vec::new();
        let (now, topics) = (self.now, &self.topics);
        let log = &mut self.log;
        self.coordinator
            .handle(now, id, &caller, request, topics, log, &mut out);
        self.take(out);
        id
    }

    pub(crate) fn ask(&mut self, request: GroupRequest) -> (Offset, GroupAnswer) {
        let id = self.send(request);
        self.answers.remove(&id).expect("is answered at once")
    }

    pub(crate) fn commit_with(&mut self, request: OffsetCommitRequest) -> Vec<ErrorCode> {
        self.commit_after(request).1
    }

    pub(crate) fn commit_after(
        &mut self,
        request: OffsetCommitRequest,
    ) -> (Offset, Vec<ErrorCode>) {
        let (after, answer) = self.ask(GroupRequest::OffsetCommit(request));
        let GroupAnswer::OffsetCommit(answer) = answer else {
            panic!("not a commit's answer: {answer:?}");
        };
        let rows = answer.topics.into_iter().flat_map(|it| it.partitions);
        (after, rows.map(|it| it.error).collect())
    }

    /// A commit of one partition by nobody's member.
    pub(crate) fn commit(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> ErrorCode {
        let request = simple(group, &[(topic, partition, offset)]);
        self.commit_with(request)[0]
    }

    pub(crate) fn fetch_with(
        &mut self,
        request: OffsetFetchRequest,
    ) -> (Offset, OffsetFetchAnswer) {
        match self.ask(GroupRequest::OffsetFetch(request)) {
            (after, GroupAnswer::OffsetFetch(answer)) => (after, answer),
            other => panic!("not a fetch's answer: {other:?}"),
        }
    }

    pub(crate) fn fetch_all(&mut self, group: &str) -> Vec<(String, i32, i64)> {
        let (_, answer) = self.fetch_with(fetch_all(group));
        assert_eq!(answer.error, ErrorCode::NONE);
        let topics = answer.topics.into_iter().flat_map(|topic| {
            let name = topic.name.to_string();
            let rows = topic.partitions.into_iter();
            rows.map(move |it| (name.clone(), it.partition.raw(), it.offset.raw()))
        });
        topics.collect()
    }

    pub(crate) fn fetch(&mut self, group: &str, topic: &str, partition: i32) -> i64 {
        let (_, answer) = self.fetch_with(fetch_one(group, topic, partition));
        answer.topics[0].partitions[0].offset.raw()
    }

    pub(crate) fn delete_offsets(
        &mut self,
        group: &str,
        topic: &str,
        of: &[i32],
    ) -> OffsetDeleteAnswer {
        let partitions = of.iter().map(|&it| PartitionIndex::new(it)).collect();
        let name = name(topic);
        let request = OffsetDeleteRequest {
            group_id: group.into(),
            topics: vec![PartitionsOfTopic { name, partitions }],
        };
        match self.ask(GroupRequest::OffsetDelete(request)) {
            (_, GroupAnswer::OffsetDelete(answer)) => answer,
            other => panic!("not an answer to OffsetDelete: {other:?}"),
        }
    }

    pub(crate) fn delete_group(&mut self, group: &str) -> DeleteAnswer {
        let group_id = group.into();
        match self.ask(GroupRequest::Delete(DeleteRequest { group_id })) {
            (_, GroupAnswer::Delete(answer)) => answer,
            other => panic!("not an answer to DeleteGroups: {other:?}"),
        }
    }

    pub(crate) fn list_with(&mut self, request: ListRequest) -> Vec<ListedGroup> {
        match self.ask(GroupRequest::List(request)) {
            (_, GroupAnswer::List(listed)) => listed,
            other => panic!("not an answer to ListGroups: {other:?}"),
        }
    }

    pub(crate) fn list(&mut self) -> Vec<String> {
        let listed = self.list_with(ListRequest::default());
        listed
            .into_iter()
            .map(|it| it.group_id.to_string())
            .collect()
    }

    /// A request to join, which may wait.
    pub(crate) fn join_request(group: &str, member_id: &str, metadata: Bytes) -> JoinRequest {
        JoinRequest {
            group_id: group.into(),
            member_id: member_id.into(),
            instance_id: None,
            session_timeout: Millis::new(30_000),
            rebalance_timeout: Some(Millis::new(60_000)),
            protocol_type: "consumer".into(),
            protocols: vec![JoinProtocol {
                name: "range".into(),
                metadata,
            }],
            reason: None,
            member_id_required: false,
            knows_skip_assignment: true,
        }
    }

    /// The only member of a group joins; it does not sync.
    pub(crate) fn join(&mut self, request: JoinRequest) -> JoinAnswer {
        let id = self.send(GroupRequest::Join(request));
        for _ in 0..10 {
            if let Some((_, GroupAnswer::Join(answer))) = self.answers.remove(&id) {
                return answer;
            }
            self.pass(Millis::new(1));
        }
        panic!("the join is not answered");
    }

    pub(crate) fn sync(&mut self, group: &str, joined: &JoinAnswer) {
        let request = SyncRequest {
            group_id: group.into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            instance_id: None,
            protocol_type: None,
            protocol_name: None,
            assignments: vec![Assigned {
                member_id: joined.member_id.clone(),
                assignment: Bytes::from_static(b"all of them"),
            }],
        };
        let (_, answer) = self.ask(GroupRequest::Sync(request));
        let GroupAnswer::Sync(answer) = answer else {
            panic!("not an answer to SyncGroup: {answer:?}");
        };
        assert_eq!(answer.error, ErrorCode::NONE);
    }

    /// The only member of a group, stable, subscribed to `topics`.
    pub(crate) fn member_of(&mut self, group: &str, topics: &[&str]) -> (GenerationId, MemberId) {
        let joined = self.join(Self::join_request(group, "", subscription(topics)));
        assert_eq!(joined.error, ErrorCode::NONE);
        self.sync(group, &joined);
        (joined.generation_id, joined.member_id)
    }

    pub(crate) fn leave(&mut self, group: &str, member_id: &MemberId) {
        let request = LeaveRequest {
            group_id: group.into(),
            members: vec![LeavingMember {
                member_id: member_id.clone(),
                instance_id: None,
                reason: None,
            }],
        };
        let (_, answer) = self.ask(GroupRequest::Leave(request));
        let GroupAnswer::Leave(answer) = answer else {
            panic!("not an answer to LeaveGroup: {answer:?}");
        };
        assert_eq!(answer.members[0].error, ErrorCode::NONE);
    }
}

pub(crate) fn name(topic: &str) -> TopicName {
    TopicName::new(topic).unwrap()
}

/// A commit by nobody's member.
pub(crate) fn simple(group: &str, offsets: &[(&str, i32, i64)]) -> OffsetCommitRequest {
    let topic = |&(topic, partition, offset): &(&str, i32, i64)| CommitTopic {
        name: name(topic),
        topic_id: TopicId::ZERO,
        partitions: vec![CommitPartition {
            partition: PartitionIndex::new(partition),
            offset: Offset::new(offset),
            leader_epoch: LeaderEpoch::NONE,
            metadata: "".into(),
        }],
    };
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id: GenerationId::NONE,
        member_id: MemberId::default(),
        instance_id: None,
        retention: None,
        knows_member_epochs: true,
        topics: offsets.iter().map(topic).collect(),
    }
}

pub(crate) fn fetch_all(group: &str) -> OffsetFetchRequest {
    OffsetFetchRequest {
        group_id: group.into(),
        member_id: None,
        member_epoch: -1,
        require_stable: false,
        topics: None,
    }
}

pub(crate) fn fetch_one(group: &str, topic: &str, partition: i32) -> OffsetFetchRequest {
    OffsetFetchRequest {
        topics: Some(vec![FetchTopic {
            name: name(topic),
            topic_id: TopicId::ZERO,
            partitions: vec![PartitionIndex::new(partition)],
        }]),
        ..fetch_all(group)
    }
}

pub(crate) fn subscription(topics: &[&str]) -> Bytes {
    let it = ConsumerProtocolSubscription {
        topics: topics.iter().map(|&it| it.to_owned()).collect(),
        ..ConsumerProtocolSubscription::default()
    };
    let mut w = Writer::new();
    w.write(&3_i16).unwrap();
    it.encode(&mut w, 3).unwrap();
    w.into_bytes()
}
