use bytes::Bytes;
use highwater_types::{ErrorCode, Millis};

use crate::answer::{DescribeAnswer, DescribedMember, GroupState, WaitsFor};
use crate::group::{Group, Member, Phase};
use crate::step::Step;
use crate::timers::Timer;
use crate::{GroupId, MemberId};

impl DescribeAnswer {
    /// Of a group that is not there, or is of another type.
    pub(crate) fn unknown(group_id: GroupId, is_other: bool, is_error: bool) -> Self {
        let error = if is_error {
            ErrorCode::GROUP_ID_NOT_FOUND
        } else {
            ErrorCode::NONE
        };
        Self {
            error,
            error_message: is_error.then(|| match is_other {
                true => format!("Group {group_id} is not a classic group."),
                false => format!("Group {group_id} not found."),
            }),
            group_id,
            state: GroupState::Dead,
            protocol_type: "".into(),
            protocol: "".into(),
            members: Vec::new(),
            past: Vec::new(),
            waits_for: Vec::new(),
        }
    }
}

impl Group {
    /// Answers a DescribeGroups of this group.
    pub(crate) fn describe(&self, step: &Step<'_>) -> DescribeAnswer {
        let state = self.state();
        let is_stable = state == GroupState::Stable;
        let protocol = self.members.protocol_name.clone().filter(|_| is_stable);
        let describe = |(id, it): (&MemberId, &Member)| DescribedMember {
            member_id: id.clone(),
            instance_id: it.instance_id.clone(),
            client_id: it.client_id.clone(),
            client_host: it.client_host.clone(),
            metadata: protocol
                .as_deref()
                .map_or_else(Bytes::new, |name| it.metadata(name)),
            assignment: it.assignment.clone(),
        };
        DescribeAnswer {
            error: ErrorCode::NONE,
            error_message: None,
            group_id: self.id.clone(),
            state,
            protocol_type: self.members.protocol_type.clone().unwrap_or_default(),
            members: self.members.iter().map(describe).collect(),
            protocol: protocol.unwrap_or_default(),
            past: self.past.to_vec(),
            waits_for: self.waits_for(step),
        }
    }

    /// Whom the rebalance waits for, if one runs.
    fn waits_for(&self, step: &Step<'_>) -> Vec<WaitsFor> {
        let left = |timer: &Timer| {
            step.timers
                .due(timer)
                .map_or(Millis::ZERO, |at| at.since(step.now.mono))
        };
        let (members, left): (Vec<MemberId>, Millis) = match &self.members.phase {
            Phase::Empty | Phase::Stable { .. } => return Vec::new(),
            Phase::Preparing { .. } => {
                let missing = self.members.iter().filter(|(_, it)| !it.waits_for_join());
                let missing = missing.map(|(id, _)| id).chain(&self.members.pending);
                (
                    missing.cloned().collect(),
                    left(&Timer::Joins(self.id.clone())),
                )
            }
            Phase::Completing { to_sync } => {
                let members = to_sync.iter().cloned().collect();
                (members, left(&Timer::Syncs(self.id.clone())))
            }
        };
        let waits = members
            .into_iter()
            .map(|member_id| WaitsFor { member_id, left });
        waits.collect()
    }
}
