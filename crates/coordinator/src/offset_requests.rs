//! The requests about offsets: which group each is about, and what its answer depends on.

use highwater_types::{ErrorCode, Now, Offset, TopicId, TopicName};

use crate::answer::GroupAnswer;
use crate::appender::Appender;
use crate::coordinator::{Coordinator, MemberCaller, TopicNames};
use crate::group::Group;
use crate::membership::Asked;
use crate::offset_request::{OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest};
use crate::offsets::{commit, delete, fetch};
use crate::output::Output;

impl Coordinator {
    /// OffsetCommit. Anybody but a member may commit to a group that is not there; that makes it.
    pub(crate) fn offset_commit(
        &mut self,
        asked: Asked<'_>,
        caller: &MemberCaller,
        request: &OffsetCommitRequest,
    ) {
        let Asked { now, id, log, out } = asked;
        let group_id = &request.group_id;
        let is_unknown = !self.groups.contains_key(group_id);
        if let Some(error) = commit::unknown_group(request).filter(|_| is_unknown) {
            let (after, answer) = commit::refused(request, error, self.removed_end);
            out.push(Output::Answer {
                to: id,
                after,
                answer,
            });
            return;
        }
        let mut pool = std::mem::take(&mut self.pool);
        let (groups, mut step) = self.split(now, log, out);
        let group = groups
            .entry(group_id.clone())
            .or_insert_with(|| Group::new(group_id.clone()));
        let (after, answer) = commit::commit(&mut step, group, &mut pool, caller, request);
        step.answer(id, after, answer);
        self.pool = pool;
        self.settle(group_id);
    }

    /// OffsetFetch, of one group.
    pub(crate) fn offset_fetch(
        &self,
        asked: Asked<'_>,
        request: &OffsetFetchRequest,
        topics: &dyn TopicNames,
    ) {
        let Asked { id, out, .. } = asked;
        let group = self.groups.get(&request.group_id);
        out.push(Output::Answer {
            to: id,
            after: group.map_or(self.removed_end, Group::newest),
            answer: GroupAnswer::OffsetFetch(fetch::fetch(group, topics, request)),
        });
    }

    /// OffsetDelete.
    pub(crate) fn offset_delete(
        &mut self,
        asked: Asked<'_>,
        caller: &MemberCaller,
        request: &OffsetDeleteRequest,
    ) {
        let Asked { now, id, log, out } = asked;
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let (after, answer) = match groups.get_mut(&request.group_id) {
            // Only commits and fetches know a group without a name, as in Kafka.
            _ if request.group_id.is_empty() => {
                (Offset::ZERO, delete::refused(ErrorCode::INVALID_GROUP_ID))
            }
            Some(group) => delete::delete(&mut step, group, caller, request),
            None => (removed_end, delete::refused(ErrorCode::GROUP_ID_NOT_FOUND)),
        };
        step.answer(id, after, GroupAnswer::OffsetDelete(answer));
        self.settle(&request.group_id);
    }

    /// Topics are gone: their offsets are deleted.
    pub(crate) fn delete_offsets_of_topics(
        &mut self,
        now: Now,
        topics: &[(TopicId, TopicName)],
        log: &mut dyn Appender,
        out: &mut Vec<Output>,
    ) {
        let (groups, mut step) = self.split(now, log, out);
        let mut touched = Vec::new();
        for (group_id, group) in groups {
            let before = group.offsets.newest();
            let done = delete::of_deleted_topics(&mut step, group, topics);
            if group.offsets.newest() != before {
                touched.push(group_id.clone());
            }
            if let Err(why) = done {
                let event = crate::GroupEvent::NotRecorded {
                    what: "offsets of deleted topics",
                    why,
                };
                step.happened(group, event);
            }
        }
        for group_id in &touched {
            self.settle(group_id);
        }
    }
}
