use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_types::{Mono, Now, Offset, ProducerId, TopicId, TopicName};

use crate::appender::Appender;
use crate::group::Group;
use crate::ids::{GroupId, RequestId};
use crate::load;
use crate::membership::Asked;
use crate::offsets::Pool;
use crate::output::Output;
use crate::random::Random;
use crate::record::{ReplayError, ReplayedAt};
use crate::request::GroupRequest;
use crate::settings::GroupSettings;
use crate::step::Step;
use crate::timers::{Timer, Timers};
use crate::waiters::Waiters;

/// The groups of one partition of `__consumer_offsets`. Does no IO and reads no clock.
///
/// The owner, in this order: (1) makes it when the partition begins to lead here, (2) replays the
/// whole log into it, (3) calls `loaded`; and from then on (4) calls `handle`, `tick`, `forget` and
/// `topics_deleted`, performs what was pushed to `out`, in order, and returns no later than
/// `next_deadline`; (5) drops it when leadership is lost, and answers what is open by itself.
///
/// Every request that `handle` was given is answered by exactly one [`Output::Answer`], at once or
/// later, unless `forget` was called.
#[derive(Debug)]
pub struct Coordinator {
    pub(crate) settings: Arc<GroupSettings>,
    pub(crate) random: Random,
    pub(crate) timers: Timers,
    pub(crate) waiters: Waiters,
    pub(crate) groups: BTreeMap<GroupId, Group>,
    /// Texts that committed offsets share.
    pub(crate) pool: Pool,
    /// Whose offsets each open transaction would commit.
    pub(crate) open_transactions: BTreeMap<ProducerId, BTreeSet<GroupId>>,
    /// Exclusive end of the newest record that took a group away: an answer that finds no group
    /// depends on it.
    pub(crate) removed_end: Offset,
    /// How far the present look for old offsets has come; `None`: it begins anew.
    pub(crate) expired_up_to: Option<GroupId>,
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberCaller {
    /// The request header's client id; empty when it has none.
    pub client_id: Arc<str>,
    /// Where it comes from, as Kafka writes it: `/127.0.0.1`.
    pub client_host: Arc<str>,
}

/// Topic names and ids, as the metadata has them now.
pub trait TopicNames {
    /// The id of the topic of this name.
    fn id_of(&self, name: &str) -> Option<TopicId>;
    /// The name of the topic with this id.
    fn name_of(&self, id: TopicId) -> Option<&str>;
}

impl Coordinator {
    /// A coordinator of no groups. `seed` is all the chance that it has: member ids.
    #[must_use]
    pub fn new(settings: Arc<GroupSettings>, seed: [u8; 32]) -> Self {
        Self {
            settings,
            random: Random::new(seed),
            timers: Timers::default(),
            waiters: Waiters::default(),
            groups: BTreeMap::new(),
            pool: Pool::default(),
            open_transactions: BTreeMap::new(),
            removed_end: Offset::ZERO,
            expired_up_to: None,
        }
    }

    /// Changed configuration; holds from the next request on.
    pub fn set_settings(&mut self, settings: Arc<GroupSettings>) {
        self.settings = settings;
    }

    /// Loading: one record, in log order.
    ///
    /// # Errors
    /// When the record is none that a coordinator writes.
    pub fn replay(
        &mut self,
        at: ReplayedAt,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), ReplayError> {
        load::replay(self, at, key, value)
    }

    /// Loading: the end of a transaction, from a control batch whose exclusive end is `end`. There
    /// is one open transaction for a producer id, so its epoch fences nothing here.
    pub fn replay_transaction_end(
        &mut self,
        producer_id: ProducerId,
        committed: bool,
        end: Offset,
    ) {
        load::replay_transaction_end(self, producer_id, committed, end);
    }

    /// The log is replayed up to its end: the sessions of the loaded members begin.
    pub fn loaded(&mut self, now: Now, log: &mut dyn Appender, out: &mut Vec<Output>) {
        let (groups, mut step) = self.split(now, log, out);
        for group in groups.values_mut() {
            group.begin_life(&mut step);
            group.members.assert_invariants();
        }
        let first_look = step.settings.offsets_retention_check_interval;
        step.timers
            .set(Timer::OffsetsExpiry, now.mono.plus(first_look));
    }

    /// Decides one request.
    #[allow(
        clippy::too_many_arguments,
        reason = "who asks what, and what is at hand for it"
    )]
    pub fn handle(
        &mut self,
        now: Now,
        id: RequestId,
        caller: &MemberCaller,
        request: GroupRequest,
        topics: &dyn TopicNames,
        log: &mut dyn Appender,
        out: &mut Vec<Output>,
    ) {
        let asked = Asked { now, id, log, out };
        match request {
            GroupRequest::Join(request) => self.join(asked, caller, request),
            GroupRequest::Sync(request) => self.sync(asked, request),
            GroupRequest::Heartbeat(request) => self.heartbeat(asked, &request),
            GroupRequest::Leave(request) => self.leave(asked, request),
            GroupRequest::Describe(request) => self.describe(asked, request),
            GroupRequest::OffsetCommit(request) => self.offset_commit(asked, caller, &request),
            GroupRequest::OffsetFetch(request) => self.offset_fetch(asked, &request, topics),
            GroupRequest::OffsetDelete(request) => self.offset_delete(asked, caller, &request),
            GroupRequest::Delete(request) => self.delete_group(asked, caller, &request),
            GroupRequest::List(request) => self.list_groups(asked, &request),
        }
    }

    /// What is due by now is done.
    pub fn tick(&mut self, now: Now, log: &mut dyn Appender, out: &mut Vec<Output>) {
        while let Some(timer) = self.timers.pop_due(now.mono) {
            if timer == Timer::OffsetsExpiry {
                self.expire_offsets(now, log, out);
                continue;
            }
            let (groups, mut step) = self.split(now, log, out);
            let (Timer::Joins(id)
            | Timer::Syncs(id)
            | Timer::Session(id, _)
            | Timer::RecordEmpty(id)) = &timer
            else {
                continue;
            };
            if let Some(group) = groups.get_mut(id) {
                match &timer {
                    Timer::Joins(_) => group.handle_joins_due(&mut step),
                    Timer::Syncs(_) => group.handle_syncs_due(&mut step),
                    Timer::Session(_, member) => group.handle_session_due(&mut step, member),
                    Timer::RecordEmpty(_) => group.record_empty(&mut step),
                    Timer::OffsetsExpiry => {}
                }
            }
            self.settle(id);
        }
    }

    /// When `tick` has something to do at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Mono> {
        self.timers.next_deadline()
    }

    /// No answer to the request is wanted any more: its connection is gone. As in Kafka the member
    /// stays until its session ends.
    pub fn forget(&mut self, id: RequestId) {
        let Some((group, member)) = self.waiters.remove(id) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&group) {
            group.forget(&member, &mut self.timers);
        }
    }

    /// Topics are gone: their offsets are deleted.
    pub fn topics_deleted(
        &mut self,
        now: Now,
        topics: &[(TopicId, TopicName)],
        log: &mut dyn Appender,
        out: &mut Vec<Output>,
    ) {
        self.delete_offsets_of_topics(now, topics, log, out);
    }

    /// The coordinator taken apart: its groups, and what a step has at hand.
    pub(crate) fn split<'a>(
        &'a mut self,
        now: Now,
        log: &'a mut dyn Appender,
        out: &'a mut Vec<Output>,
    ) -> (&'a mut BTreeMap<GroupId, Group>, Step<'a>) {
        let step = Step {
            now,
            settings: &self.settings,
            random: &mut self.random,
            timers: &mut self.timers,
            waiters: &mut self.waiters,
            log,
            out,
            refused: None,
        };
        (&mut self.groups, step)
    }
}
