//! What administrators do with whole groups: list and delete them.

use highwater_types::{ErrorCode, Offset};

use crate::answer::{GroupAnswer, GroupState, ListedGroup};
use crate::coordinator::{Coordinator, MemberCaller};
use crate::foreign::GroupType;
use crate::group::Group;
use crate::happening::GroupEvent;
use crate::ids::{GroupId, MemberId};
use crate::membership::Asked;
use crate::offset_request::{DeleteAnswer, DeleteRequest, ListRequest};
use crate::offsets::{OffsetsBy, OffsetsCause, delete};
use crate::output::Output;
use crate::record::Record;
use crate::step::Step;

impl Coordinator {
    /// ListGroups, of all groups of this coordinator.
    pub(crate) fn list_groups(&self, asked: Asked<'_>, request: &ListRequest) {
        let Asked { id, out, .. } = asked;
        // That a group is missing may be news of the newest record too.
        let mut after = self.removed_end;
        let mut listed = Vec::new();
        for (group_id, group) in &self.groups {
            after = after.max(group.stored_end);
            let state = group.state();
            if !matches(&request.states, state.as_str())
                || !matches(&request.types, group.group_type().as_str())
            {
                continue;
            }
            after = after.max(group.newest());
            listed.push(ListedGroup {
                group_id: group_id.clone(),
                protocol_type: group.protocol_type(),
                state,
                group_type: group.group_type().as_str(),
            });
        }
        out.push(Output::Answer {
            to: id,
            after,
            answer: GroupAnswer::List(listed),
        });
    }

    /// DeleteGroups, of one group.
    pub(crate) fn delete_group(
        &mut self,
        asked: Asked<'_>,
        caller: &MemberCaller,
        request: &DeleteRequest,
    ) {
        let Asked { now, id, log, out } = asked;
        let group_id = &request.group_id;
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let (after, answer) = match groups.get_mut(group_id) {
            Some(group) => delete_known(&mut step, group, caller),
            None => {
                let message = format!("Group {group_id} not found.");
                (removed_end, refused(ErrorCode::GROUP_ID_NOT_FOUND, message))
            }
        };
        step.answer(id, after, GroupAnswer::Delete(answer));
        self.settle(group_id);
    }
}

impl Group {
    pub(crate) fn group_type(&self) -> GroupType {
        let foreign = self.foreign.as_ref();
        foreign.map_or(GroupType::Classic, |it| it.group_type())
    }

    fn protocol_type(&self) -> std::sync::Arc<str> {
        match &self.foreign {
            Some(foreign) => foreign.group_type().protocol_type().into(),
            None => self.members.protocol_type.clone().unwrap_or_default(),
        }
    }

    /// Takes the whole group away: first its offsets, then itself. So a reload at any record in
    /// between gives a group that can be deleted again, and never offsets without a group that
    /// somebody had deleted.
    pub(crate) fn take_away(
        &mut self,
        step: &mut Step<'_>,
        cause: OffsetsCause,
        by: OffsetsBy,
    ) -> Result<(), crate::AppendRefused> {
        let offsets = delete::everything(self);
        delete::take_away(step, self, offsets, cause, by)?;
        let mut records = match &self.foreign {
            Some(foreign) => foreign.tombstones(),
            None => Vec::new(),
        };
        if records.is_empty() {
            // As Kafka does, also for a group that had only offsets and no record of its own.
            records.push(Record::Group(None));
        }
        step.commit(self, &records)?;
        Ok(())
    }
}

fn delete_known(
    step: &mut Step<'_>,
    group: &mut Group,
    caller: &MemberCaller,
) -> (Offset, DeleteAnswer) {
    let group_id: &GroupId = &group.id;
    if group.state() != GroupState::Empty {
        let message = format!("Group {group_id} is not empty.");
        return (group.newest(), refused(ErrorCode::NON_EMPTY_GROUP, message));
    }
    if group.group_type() == GroupType::Share {
        // Its partitions' state lies in another log, which this build does not lead; without the
        // group nobody would ever delete it.
        let message = format!("Group {group_id} is a share group, which is not led here.");
        return (
            group.newest(),
            refused(ErrorCode::UNSUPPORTED_VERSION, message),
        );
    }
    let by = OffsetsBy::client(MemberId::default(), caller);
    match group.take_away(step, OffsetsCause::GroupDeleted, by) {
        Ok(()) => {
            step.happened(group, GroupEvent::Deleted { by_request: true });
            let answer = DeleteAnswer {
                error: ErrorCode::NONE,
                error_message: None,
            };
            (group.newest(), answer)
        }
        Err(why) => (Offset::ZERO, refused(why.error_code(), why.to_string())),
    }
}

const fn refused(error: ErrorCode, message: String) -> DeleteAnswer {
    DeleteAnswer {
        error,
        error_message: Some(message),
    }
}

/// Whether a filter lets a name through: an empty one lets all, and case does not matter.
fn matches(filter: &[String], name: &str) -> bool {
    filter.is_empty() || filter.iter().any(|it| it.eq_ignore_ascii_case(name))
}
