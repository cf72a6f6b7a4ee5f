//! A coordinator, its log in memory, and members that speak to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use highwater_coordinator::{
    AppendRefused, Appender, Assigned, Coordinator, DescribeAnswer, DescribeRequest, GenerationId,
    GroupAnswer, GroupEvent, GroupRequest, GroupSettings, GroupState, HeartbeatRequest, InstanceId,
    JoinAnswer, JoinProtocol, JoinRequest, LeaveAnswer, LeaveRequest, LeavingMember, MemberCaller,
    MemberId, NewRecord, Output, ReplayedAt, RequestId, SyncAnswer, SyncRequest, TopicNames,
};
use highwater_records::stored::GroupRecord;
use highwater_records::stored::coordinator::GroupMetadataValue;
use highwater_types::{
    ErrorCode, Millis, Mono, Now, Offset, ProducerEpoch, ProducerId, TopicId, WallMs,
};

/// A log in memory. Refuses all appends while told to.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemLog {
    pub(crate) records: Vec<NewRecord>,
    pub(crate) refuse: Option<AppendRefused>,
}

impl Appender for MemLog {
    fn append(&mut self, _: Now, records: &[NewRecord]) -> Result<Offset, AppendRefused> {
        if let Some(why) = self.refuse {
            return Err(why);
        }
        self.records.extend_from_slice(records);
        Ok(self.end())
    }
}

impl MemLog {
    pub(crate) fn end(&self) -> Offset {
        Offset::new(i64::try_from(self.records.len()).unwrap())
    }

    /// What the group records say, in order; `None` is a tombstone.
    pub(crate) fn groups(&self) -> Vec<Option<GroupMetadataValue>> {
        let decode = |it: &NewRecord| match GroupRecord::decode(&it.key, it.value.as_deref()) {
            Ok((GroupRecord::GroupMetadata(_, value), version)) => {
                assert!(
                    value.is_none() || version == 3,
                    "Kafka 4.4 writes version 3"
                );
                Some(value)
            }
            _ => None,
        };
        self.records.iter().filter_map(decode).collect()
    }

    pub(crate) fn newest_group(&self) -> GroupMetadataValue {
        self.groups().last().cloned().flatten().unwrap()
    }
}

pub(crate) struct NoTopics;

impl TopicNames for NoTopics {
    fn id_of(&self, _: &str) -> Option<TopicId> {
        None
    }

    fn name_of(&self, _: TopicId) -> Option<&str> {
        None
    }
}

/// All that a test needs.
pub(crate) struct World {
    pub(crate) coordinator: Coordinator,
    pub(crate) log: MemLog,
    pub(crate) now: Now,
    pub(crate) client: &'static str,
    pub(crate) answers: BTreeMap<RequestId, (Offset, GroupAnswer)>,
    pub(crate) events: Vec<GroupEvent>,
    next_id: u64,
    seed: u8,
}

pub(crate) fn settings() -> GroupSettings {
    GroupSettings {
        initial_rebalance_delay: Millis::ZERO,
        ..GroupSettings::default()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: GroupSettings) -> Self {
        Self {
            coordinator: Coordinator::new(Arc::new(settings), [1; 32]),
            log: MemLog::default(),
            now: Now {
                mono: Mono::from_micros(5_000_000),
                wall: WallMs::new(1_700_000_000_000),
            },
            client: "app",
            answers: BTreeMap::new(),
            events: Vec::new(),
            next_id: 0,
            seed: 2,
        }
    }

    /// Hands in a request.
    pub(crate) fn send(&mut self, request: GroupRequest) -> RequestId {
        self.next_id += 1;
        let id = RequestId(self.next_id);
        let caller = MemberCaller {
            client_id: self.client.into(),
            client_host: "/127.0.0.1".into(),
        };
        let mut out = Vec::new();
        let log = &mut self.log;
        self.coordinator
            .handle(self.now, id, &caller, request, &NoTopics, log, &mut out);
        self.take(out);
        id
    }

    fn take(&mut self, out: Vec<Output>) {
        for it in out {
            match it {
                Output::Answer { to, after, answer } => {
                    assert!(
                        after <= self.log.end(),
                        "an answer depends on what is not there"
                    );
                    let old = self.answers.insert(to, (after, answer));
                    assert_eq!(old, None, "{to:?} is answered twice");
                }
                Output::Happened(it) => {
                    assert!(!it.to_string().is_empty());
                    self.events.push(it.event);
                }
            }
        }
    }

    fn tick(&mut self) {
        let mut out = Vec::new();
        self.coordinator.tick(self.now, &mut self.log, &mut out);
        self.take(out);
    }

    /// Lets time pass, with a tick at each deadline.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.now.mono.plus(Millis::new(ms));
        while let Some(at) = self.coordinator.next_deadline().filter(|at| *at <= end) {
            self.set_mono(at.max(self.now.mono));
            self.tick();
        }
        self.set_mono(end);
    }

    fn set_mono(&mut self, mono: Mono) {
        let ms = i64::try_from(mono.since(self.now.mono).as_u64()).unwrap();
        self.now.mono = mono;
        self.now.wall = WallMs::new(self.now.wall.raw() + ms);
    }

    pub(crate) fn answer(&self, id: RequestId) -> Option<&GroupAnswer> {
        self.answers.get(&id).map(|(_, answer)| answer)
    }

    /// The answer to a join, which a tick may bring.
    pub(crate) fn joined(&mut self, id: RequestId) -> JoinAnswer {
        self.tick();
        match self.answer(id) {
            Some(GroupAnswer::Join(answer)) => answer.clone(),
            other => panic!("{id:?} has {other:?}"),
        }
    }

    pub(crate) fn join(&mut self, join: JoinRequest) -> RequestId {
        self.send(GroupRequest::Join(join))
    }

    /// Joins, and is answered at once.
    pub(crate) fn join_now(&mut self, join: JoinRequest) -> JoinAnswer {
        let id = self.join(join);
        self.joined(id)
    }

    /// A dynamic member that has asked for its id.
    pub(crate) fn pending(&mut self) -> MemberId {
        let answer = self.join_now(join());
        assert_eq!(answer.error, ErrorCode::MEMBER_ID_REQUIRED);
        answer.member_id
    }

    pub(crate) fn sync(
        &mut self,
        member: &MemberId,
        generation: GenerationId,
        assignments: &[(&MemberId, &'static str)],
    ) -> RequestId {
        self.send(GroupRequest::Sync(sync(member, generation, assignments)))
    }

    pub(crate) fn synced(&self, id: RequestId) -> SyncAnswer {
        match self.answer(id) {
            Some(GroupAnswer::Sync(answer)) => answer.clone(),
            other => panic!("{id:?} has {other:?}"),
        }
    }

    pub(crate) fn heartbeat(&mut self, member: &MemberId, generation: GenerationId) -> ErrorCode {
        self.heartbeat_as(member, generation, None)
    }

    pub(crate) fn heartbeat_as(
        &mut self,
        member: &MemberId,
        generation: GenerationId,
        instance: Option<&str>,
    ) -> ErrorCode {
        let id = self.send(GroupRequest::Heartbeat(HeartbeatRequest {
            group_id: "g".into(),
            generation_id: generation,
            member_id: member.clone(),
            instance_id: instance.map(InstanceId::from),
        }));
        match self.answer(id) {
            Some(GroupAnswer::Heartbeat(answer)) => answer.error,
            other => panic!("{id:?} has {other:?}"),
        }
    }

    pub(crate) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> LeaveAnswer {
        let leaving = members.iter().map(|(member, instance)| LeavingMember {
            member_id: (*member).into(),
            instance_id: instance.map(InstanceId::from),
            reason: Some("bye".into()),
        });
        let id = self.send(GroupRequest::Leave(LeaveRequest {
            group_id: "g".into(),
            members: leaving.collect(),
        }));
        match self.answer(id) {
            Some(GroupAnswer::Leave(answer)) => answer.clone(),
            other => panic!("{id:?} has {other:?}"),
        }
    }

    pub(crate) fn describe(&mut self) -> DescribeAnswer {
        self.describe_as(true)
    }

    pub(crate) fn describe_as(&mut self, unknown_is_error: bool) -> DescribeAnswer {
        let id = self.send(GroupRequest::Describe(DescribeRequest {
            group_id: "g".into(),
            unknown_is_error,
        }));
        match self.answer(id) {
            Some(GroupAnswer::Describe(answer)) => answer.clone(),
            other => panic!("{id:?} has {other:?}"),
        }
    }

    pub(crate) fn state(&mut self) -> GroupState {
        self.describe().state
    }

    /// A stable group of `count` dynamic members; their ids, the leader first, and the generation.
    pub(crate) fn stable(&mut self, count: usize) -> (Vec<MemberId>, GenerationId) {
        let ids: Vec<MemberId> = (0..count).map(|_| self.pending()).collect();
        let joins: Vec<RequestId> = ids.iter().map(|id| self.join(join().of(id))).collect();
        let answers: Vec<JoinAnswer> = joins.iter().map(|id| self.joined(*id)).collect();
        assert!(
            answers.iter().all(|it| it.error == ErrorCode::NONE),
            "{answers:?}"
        );
        let (leader, generation) = (answers[0].leader.clone(), answers[0].generation_id);
        let mut ids = ids;
        ids.sort_by_key(|id| *id != leader);
        self.sync_all(&ids, generation);
        (ids, generation)
    }

    /// All members sync, the leader first, which gives each its own id.
    pub(crate) fn sync_all(&mut self, ids: &[MemberId], generation: GenerationId) {
        for (at, id) in ids.iter().enumerate() {
            let assigned = ids.iter().map(|id| Assigned {
                member_id: id.clone(),
                assignment: Bytes::copy_from_slice(id.as_str().as_bytes()),
            });
            let mut request = sync(id, generation, &[]);
            if at == 0 {
                request.assignments = assigned.collect();
            }
            let sync = self.send(GroupRequest::Sync(request));
            let answer = self.synced(sync);
            assert_eq!(answer.error, ErrorCode::NONE);
            assert_eq!(
                answer.assignment,
                id.as_str().as_bytes(),
                "its own assignment"
            );
        }
    }

    /// Loads the first `count` records into a coordinator anew, as after a restart.
    pub(crate) fn reload(&mut self, count: usize) {
        self.reload_with(count, settings());
    }

    pub(crate) fn reload_with(&mut self, count: usize, settings: GroupSettings) {
        self.log.records.truncate(count);
        self.coordinator = Coordinator::new(Arc::new(settings), [self.seed; 32]);
        self.seed += 1;
        for (offset, record) in (0..).zip(&self.log.records) {
            let at = ReplayedAt {
                offset: Offset::new(offset),
                producer_id: ProducerId::NONE,
                producer_epoch: ProducerEpoch::NONE,
                transactional: false,
                timestamp: self.now.wall,
            };
            self.coordinator
                .replay(at, &record.key, record.value.as_deref())
                .unwrap();
        }
        let mut out = Vec::new();
        self.coordinator.loaded(self.now, &mut self.log, &mut out);
        self.answers.clear();
        self.take(out);
    }
}

/// A JoinGroup of a consumer at a version that asks for an id first.
pub(crate) fn join() -> JoinRequest {
    JoinRequest {
        group_id: "g".into(),
        member_id: MemberId::default(),
        instance_id: None,
        session_timeout: Millis::new(10_000),
        rebalance_timeout: Some(Millis::new(20_000)),
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range", "topics")],
        reason: None,
        member_id_required: true,
        knows_skip_assignment: true,
    }
}

pub(crate) fn protocol(name: &str, metadata: &'static str) -> JoinProtocol {
    JoinProtocol {
        name: name.into(),
        metadata: Bytes::from_static(metadata.as_bytes()),
    }
}

/// Variations of a JoinGroup.
pub(crate) trait Vary {
    fn of(self, member: &MemberId) -> Self;
    fn instance(self, id: &str) -> Self;
    fn offers(self, names: &[&str]) -> Self;
    fn says(self, metadata: &'static str) -> Self;
    fn old(self) -> Self;
}

impl Vary for JoinRequest {
    fn of(mut self, member: &MemberId) -> Self {
        self.member_id = member.clone();
        self
    }

    fn instance(mut self, id: &str) -> Self {
        self.instance_id = Some(id.into());
        self
    }

    fn offers(mut self, names: &[&str]) -> Self {
        self.protocols = names.iter().map(|name| protocol(name, "topics")).collect();
        self
    }

    fn says(mut self, metadata: &'static str) -> Self {
        self.protocols = vec![protocol("range", metadata)];
        self
    }

    /// As at v1: no id is asked for first.
    fn old(mut self) -> Self {
        self.member_id_required = false;
        self.knows_skip_assignment = false;
        self
    }
}

pub(crate) fn sync(
    member: &MemberId,
    generation: GenerationId,
    assignments: &[(&MemberId, &'static str)],
) -> SyncRequest {
    let assigned = assignments.iter().map(|(id, text)| Assigned {
        member_id: (*id).clone(),
        assignment: Bytes::from_static(text.as_bytes()),
    });
    SyncRequest {
        group_id: "g".into(),
        generation_id: generation,
        member_id: member.clone(),
        instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: assigned.collect(),
    }
}
