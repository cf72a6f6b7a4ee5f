//! DescribeGroups, ListGroups and DeleteGroups.

use std::collections::BTreeSet;

use highwater_coordinator::{
    DeleteRequest, DescribeAnswer, DescribeRequest, DescribedMember, GroupAnswer, GroupRequest,
    ListRequest, ListedGroup,
};
use highwater_disk::Disk;
use highwater_protocol::messages::{
    delete_groups_request::DeleteGroupsRequest,
    delete_groups_response::{DeletableGroupResult, DeleteGroupsResponse},
    describe_groups_request::DescribeGroupsRequest,
    describe_groups_response::{
        AwaitedMember, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
        GroupRebalances,
    },
    list_groups_request::ListGroupsRequest,
    list_groups_response::{ListGroupsResponse, ListedGroup as ListedRow},
};
use highwater_types::{ErrorCode, Now, TopicIdPartition};

use super::ask::ComposeContext;
use super::membership::error_of;
use super::{RowAnswer, text};
use crate::authorizer::{Operation, Resource};
use crate::machine::Incoming;
use crate::shard::requests::push_answer;
use crate::shard::{Effects, Shard};

/// The first DescribeGroups version to which an unknown group is an error (KIP-1043).
const UNKNOWN_IS_ERROR_SINCE: i16 = 6;

impl<D: Disk> Shard<D> {
    pub(crate) fn handle_describe_groups(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: DescribeGroupsRequest,
        out: &mut Effects<D>,
    ) {
        let unknown_is_error = incoming.version >= UNKNOWN_IS_ERROR_SINCE;
        let DescribeGroupsRequest {
            groups,
            include_authorized_operations,
            include_rebalances,
        } = request;
        // As in Kafka, what is refused comes first.
        let (allowed, denied) = self.split_groups(incoming, Operation::Describe, groups);
        let questions = allowed.iter().map(|group_id| {
            let question = DescribeRequest {
                group_id: group_id.as_str().into(),
                unknown_is_error,
            };
            let at = self.partition_of_group(group_id);
            (at, GroupRequest::Describe(question))
        });
        let questions = questions.collect();
        let compose = Box::new(move |cx: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            let not_allowed = ErrorCode::GROUP_AUTHORIZATION_FAILED;
            let mut groups: Vec<_> = denied
                .into_iter()
                .map(|group_id| not_described(group_id, not_allowed))
                .collect();
            for (group_id, row) in allowed.into_iter().zip(rows) {
                let mut group = match row {
                    Ok(GroupAnswer::Describe(answer)) => described(answer, include_rebalances),
                    other => not_described(group_id, error_of(other)),
                };
                if include_authorized_operations && !group.error_code.is_error() {
                    let resource = Resource::Group(&group.group_id);
                    group.authorized_operations = cx.authorizer.operations(cx.caller, resource);
                }
                groups.push(group);
            }
            let throttle_time_ms = 0;
            DescribeGroupsResponse {
                throttle_time_ms,
                groups,
            }
            .into()
        });
        self.ask_coordinators(now, incoming, questions, compose, out);
    }

    pub(crate) fn handle_delete_groups(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: DeleteGroupsRequest,
        out: &mut Effects<D>,
    ) {
        let mut seen = BTreeSet::new();
        let mut names = request.groups_names;
        names.retain(|name| seen.insert(name.clone()));
        let (allowed, denied) = self.split_groups(incoming, Operation::Delete, names);
        let questions = allowed.iter().map(|group_id| {
            let question = DeleteRequest {
                group_id: group_id.as_str().into(),
            };
            let at = self.partition_of_group(group_id);
            (at, GroupRequest::Delete(question))
        });
        let questions = questions.collect();
        let compose = Box::new(move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            let result = |(group_id, row)| {
                let (error_code, error_message) = match row {
                    Ok(GroupAnswer::Delete(answer)) => (answer.error, answer.error_message),
                    other => (error_of(other), None),
                };
                DeletableGroupResult {
                    group_id,
                    error_code,
                    error_message,
                }
            };
            let results = allowed.into_iter().zip(rows).map(result);
            let denied = denied.into_iter().map(|group_id| DeletableGroupResult {
                group_id,
                error_code: ErrorCode::GROUP_AUTHORIZATION_FAILED,
                ..DeletableGroupResult::default()
            });
            DeleteGroupsResponse {
                throttle_time_ms: 0,
                results: results.chain(denied).collect(),
            }
            .into()
        });
        self.ask_coordinators(now, incoming, questions, compose, out);
    }

    pub(crate) fn handle_list_groups(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: ListGroupsRequest,
        out: &mut Effects<D>,
    ) {
        let question = ListRequest {
            states: request.states_filter,
            types: request.types_filter,
        };
        let led = self.led_offsets_partitions();
        let questions = led
            .into_iter()
            .map(|at| (Some(at), GroupRequest::List(question.clone())));
        let questions: Vec<_> = questions.collect();
        if questions.is_empty() {
            let response = ListGroupsResponse::default().into();
            push_answer(incoming.ticket, incoming.version, &response, out);
            return;
        }
        let compose = Box::new(move |cx: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            list_response(cx, rows).into()
        });
        self.ask_coordinators(now, incoming, questions, compose, out);
    }

    /// The partitions of `__consumer_offsets` that this node leads: it lists the groups of no
    /// others.
    fn led_offsets_partitions(&self) -> Vec<TopicIdPartition> {
        let id = self.groups.topic.map(|it| it.id);
        let topic = id.and_then(|id| self.image.topic(id));
        let led = topic.into_iter().flat_map(|topic| {
            let own = topic.partitions.iter();
            let own = own.filter(|(_, image)| image.leader == self.node_id);
            own.map(|(partition, _)| TopicIdPartition {
                topic_id: topic.id,
                partition: *partition,
            })
        });
        led.collect()
    }

    /// The groups that the caller may do `operation` on, and the others.
    fn split_groups(
        &self,
        incoming: &Incoming,
        operation: Operation,
        groups: Vec<String>,
    ) -> (Vec<String>, Vec<String>) {
        groups.into_iter().partition(|group_id| {
            self.allows(&incoming.caller, operation, Resource::Group(group_id))
        })
    }
}

/// Joins the lists. A partition that is led elsewhere by now lists nothing here; while one is
/// loaded nobody knows the whole.
fn list_response(cx: &ComposeContext<'_>, rows: Vec<RowAnswer>) -> ListGroupsResponse {
    let mut groups = Vec::new();
    for row in rows {
        match row {
            Ok(GroupAnswer::List(listed)) => groups.extend(listed),
            Err(ErrorCode::NOT_COORDINATOR) => {}
            other => {
                return ListGroupsResponse {
                    error_code: error_of(other),
                    ..ListGroupsResponse::default()
                };
            }
        }
    }
    let sees_all = cx.allows(Operation::Describe, Resource::Cluster);
    groups.retain(|group| {
        let resource = Resource::Group(group.group_id.as_str());
        sees_all || cx.allows(Operation::Describe, resource)
    });
    let listed = |it: ListedGroup| ListedRow {
        group_id: it.group_id.to_string(),
        protocol_type: it.protocol_type.to_string(),
        group_state: it.state.as_str().to_owned(),
        group_type: it.group_type.to_owned(),
    };
    ListGroupsResponse {
        groups: groups.into_iter().map(listed).collect(),
        ..ListGroupsResponse::default()
    }
}

fn not_described(group_id: String, error_code: ErrorCode) -> DescribedGroup {
    DescribedGroup {
        error_code,
        group_id,
        ..DescribedGroup::default()
    }
}

fn described(answer: DescribeAnswer, include_rebalances: bool) -> DescribedGroup {
    let rebalances = include_rebalances.then(|| GroupRebalances {
        waits_for: answer
            .waits_for
            .iter()
            .map(|it| AwaitedMember {
                member_id: it.member_id.to_string(),
                left_ms: i64::try_from(it.left.as_u64()).unwrap_or(i64::MAX),
            })
            .collect(),
        happenings: answer.past.iter().map(text::happening).collect(),
    });
    DescribedGroup {
        error_code: answer.error,
        error_message: answer.error_message,
        group_id: answer.group_id.to_string(),
        group_state: answer.state.as_str().to_owned(),
        protocol_type: answer.protocol_type.to_string(),
        protocol_data: answer.protocol.to_string(),
        members: answer.members.into_iter().map(described_member).collect(),
        rebalances: rebalances.unwrap_or_default(),
        ..DescribedGroup::default()
    }
}

fn described_member(member: DescribedMember) -> DescribedGroupMember {
    DescribedGroupMember {
        member_id: member.member_id.to_string(),
        group_instance_id: member.instance_id.map(|id| id.to_string()),
        client_id: member.client_id.to_string(),
        client_host: member.client_host.to_string(),
        member_metadata: member.metadata,
        member_assignment: member.assignment,
    }
}
