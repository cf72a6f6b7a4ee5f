use std::collections::{BTreeMap, BTreeSet};

use highwater_protocol::client::group::{
    CommittedOffset, PartitionSet, Subscription, decode_assignment,
};
use highwater_protocol::messages::describe_groups_response::{DescribedGroup, GroupRebalances};
use highwater_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use highwater_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest, OffsetDeleteRequest,
};
use highwater_types::{ErrorCode, NodeId, PartitionIndex, TopicName, TopicPartition};

use super::coordinator::{CoordinatorLink, address, call_up_to};
use super::offsets::{CommitResults, CommittedOffsets};
use crate::cluster::Client;
use crate::error::ClientError;
use crate::net::Connection;

/// A group as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// Its name.
    pub group_id: String,
    /// `consumer`, or empty for one that only keeps offsets.
    pub protocol_type: String,
    /// Such as `Stable`, from ListGroups v4 on.
    pub state: Option<String>,
    /// Such as `classic`, from ListGroups v5 on.
    pub group_type: Option<String>,
    /// The broker that coordinates it.
    pub coordinator: NodeId,
}

/// A group and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name.
    pub group_id: String,
    /// Such as `Stable` or `PreparingRebalance`.
    pub state: String,
    /// `consumer` for a group of consumers.
    pub protocol_type: String,
    /// The assignor, while there are members.
    pub protocol: String,
    /// The broker that coordinates it.
    pub coordinator: NodeId,
    /// Where that is.
    pub coordinator_address: String,
    /// Its members, by id.
    pub members: Vec<MemberDescription>,
    /// What happened to it last and whom it waits for; `None` from a broker that does not tell.
    pub rebalances: Option<GroupRebalances>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The id that the coordinator gave it.
    pub member_id: String,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    /// `client.id`.
    pub client_id: String,
    /// The host it came from.
    pub client_host: String,
    /// The topics that it wants, as far as it told in the way of consumers.
    pub topics: BTreeSet<TopicName>,
    /// What it was dealt; empty while the group rebalances.
    pub assigned: PartitionSet,
}

impl Client {
    /// All groups of the cluster, by name: each broker is asked for those that it coordinates.
    /// With `states`, only groups in one of them.
    ///
    /// # Errors
    /// When a broker cannot be asked, or with its error code: a list with holes is none.
    pub async fn list_groups(&self, states: &[String]) -> Result<Vec<GroupListing>, ClientError> {
        let limit = self.config().default_api_timeout;
        let metadata = self.refresh(Some(&[])).await?;
        let mut groups = BTreeMap::new();
        for &node in metadata.brokers.keys() {
            let listed = self
                .retry(limit, || self.list_groups_of(node, states))
                .await?;
            groups.extend(listed.into_iter().map(|it| (it.group_id.clone(), it)));
        }
        Ok(groups.into_values().collect())
    }

    async fn list_groups_of(
        &self,
        node: NodeId,
        states: &[String],
    ) -> Result<Vec<GroupListing>, ClientError> {
        let request = ListGroupsRequest {
            states_filter: states.to_vec(),
            ..ListGroupsRequest::default()
        };
        let answer = self.call_node(node, &request).await?;
        let what = || format!("list groups of broker {node}");
        ClientError::check(what, answer.error_code, None)?;
        let text = |text: String| Some(text).filter(|it| !it.is_empty());
        let groups = answer.groups.into_iter();
        let groups = groups.map(|group| GroupListing {
            group_id: group.group_id,
            protocol_type: group.protocol_type,
            state: text(group.group_state),
            group_type: text(group.group_type),
            coordinator: node,
        });
        Ok(groups.collect())
    }

    /// A group with its members.
    ///
    /// # Errors
    /// [`ErrorCode::GROUP_ID_NOT_FOUND`] for a group that does not exist, as
    /// [`ClientError::Refused`]; else the coordinator's error.
    pub async fn describe_group(&self, group_id: &str) -> Result<GroupDescription, ClientError> {
        let link = CoordinatorLink::new(self, group_id);
        let limit = self.config().default_api_timeout;
        let group = link
            .call(limit, |it| describe_once(self, it, group_id))
            .await?;
        let coordinator = link.coordinator().await?;
        Ok(describe(group, coordinator.node, address(&coordinator)))
    }

    /// What a group has committed: of `partitions`, or all.
    ///
    /// # Errors
    /// The coordinator's error. A group that does not exist has no offsets.
    pub async fn group_offsets(
        &self,
        group_id: &str,
        partitions: Option<&PartitionSet>,
    ) -> Result<CommittedOffsets, ClientError> {
        let limit = self.config().default_api_timeout;
        let link = CoordinatorLink::new(self, group_id);
        link.fetch_offsets(partitions, false, limit).await
    }

    /// Commits for a group without members. Results by partition.
    ///
    /// # Errors
    /// The coordinator's error. With members in it, each partition has
    /// [`ErrorCode::UNKNOWN_MEMBER_ID`].
    pub async fn alter_group_offsets(
        &self,
        group_id: &str,
        offsets: &BTreeMap<TopicPartition, CommittedOffset>,
    ) -> Result<CommitResults, ClientError> {
        let limit = self.config().default_api_timeout;
        let link = CoordinatorLink::new(self, group_id);
        link.commit_offsets(None, offsets, limit).await
    }

    /// Deletes a group with all that it has committed.
    ///
    /// # Errors
    /// [`ErrorCode::NON_EMPTY_GROUP`], [`ErrorCode::GROUP_ID_NOT_FOUND`] and others, as
    /// [`ClientError::Refused`].
    pub async fn delete_group(&self, group_id: &str) -> Result<(), ClientError> {
        let request = DeleteGroupsRequest {
            groups_names: vec![group_id.to_owned()],
        };
        let link = CoordinatorLink::new(self, group_id);
        let (request, limit) = (&request, self.config().request_timeout);
        let ask = |connection: Connection| async move {
            let answer = call_up_to(&connection, request.clone(), i16::MAX, limit).await?;
            let what = || format!("delete group {group_id}");
            let result = answer
                .results
                .into_iter()
                .find(|it| it.group_id == group_id);
            let result = result.ok_or_else(|| unanswered(what()))?;
            ClientError::check(what, result.error_code, result.error_message)
        };
        link.call(self.config().default_api_timeout, ask).await
    }

    /// Deletes committed offsets. Results by partition.
    ///
    /// # Errors
    /// The coordinator's error for the whole group, such as [`ErrorCode::GROUP_ID_NOT_FOUND`].
    pub async fn delete_group_offsets(
        &self,
        group_id: &str,
        partitions: &PartitionSet,
    ) -> Result<CommitResults, ClientError> {
        let request = offset_delete(group_id, partitions);
        let link = CoordinatorLink::new(self, group_id);
        let (request, limit) = (&request, self.config().request_timeout);
        let ask = |connection: Connection| async move {
            let answer = call_up_to(&connection, request.clone(), i16::MAX, limit).await?;
            let what = || format!("delete offsets of group {group_id}");
            ClientError::check(what, answer.error_code, None)?;
            let mut results = CommitResults::new();
            for topic in answer.topics {
                let Ok(name) = TopicName::new(&topic.name) else {
                    continue;
                };
                for it in topic.partitions {
                    let partition = TopicPartition {
                        topic: name.clone(),
                        partition: PartitionIndex::new(it.partition_index),
                    };
                    let code = it.error_code;
                    let result = if code.is_error() { Err(code) } else { Ok(()) };
                    results.insert(partition, result);
                }
            }
            Ok(results)
        };
        link.call(self.config().default_api_timeout, ask).await
    }
}

async fn describe_once(
    client: &Client,
    connection: Connection,
    group_id: &str,
) -> Result<DescribedGroup, ClientError> {
    let request = DescribeGroupsRequest {
        groups: vec![group_id.to_owned()],
        include_rebalances: true,
        ..DescribeGroupsRequest::default()
    };
    let limit = client.config().request_timeout;
    let answer = call_up_to(&connection, request, i16::MAX, limit).await?;
    let what = || format!("describe group {group_id}");
    let group = answer.groups.into_iter().find(|it| it.group_id == group_id);
    let group = group.ok_or_else(|| unanswered(what()))?;
    ClientError::check(what, group.error_code, group.error_message.clone())?;
    if group.group_state == "Dead" && group.members.is_empty() {
        // That is how versions before 6 say it (KIP-1043).
        let code = ErrorCode::GROUP_ID_NOT_FOUND;
        return Err(ClientError::refused(what(), code, None));
    }
    Ok(group)
}

fn describe(group: DescribedGroup, coordinator: NodeId, address: String) -> GroupDescription {
    let mut members: Vec<_> = group
        .members
        .into_iter()
        .map(|member| MemberDescription {
            topics: Subscription::decode(&member.member_metadata)
                .map(|it| it.topics)
                .unwrap_or_default(),
            assigned: decode_assignment(&member.member_assignment).unwrap_or_default(),
            member_id: member.member_id,
            instance_id: member.group_instance_id,
            client_id: member.client_id,
            client_host: member.client_host,
        })
        .collect();
    members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
    let is_told = group.rebalances != GroupRebalances::default();
    GroupDescription {
        group_id: group.group_id,
        state: group.group_state,
        protocol_type: group.protocol_type,
        protocol: group.protocol_data,
        coordinator,
        coordinator_address: address,
        members,
        rebalances: Some(group.rebalances).filter(|_| is_told),
    }
}

fn offset_delete(group_id: &str, partitions: &PartitionSet) -> OffsetDeleteRequest {
    let mut topics: BTreeMap<&TopicName, Vec<OffsetDeleteRequestPartition>> = BTreeMap::new();
    for it in partitions {
        let of_topic = topics.entry(&it.topic).or_default();
        of_topic.push(OffsetDeleteRequestPartition {
            partition_index: it.partition.raw(),
        });
    }
    let topics = topics
        .into_iter()
        .map(|(name, partitions)| OffsetDeleteRequestTopic {
            name: name.to_string(),
            partitions,
        });
    OffsetDeleteRequest {
        group_id: group_id.to_owned(),
        topics: topics.collect(),
    }
}

fn unanswered(what: String) -> ClientError {
    let message = Some("the broker's answer does not mention it".to_owned());
    ClientError::refused(what, ErrorCode::UNKNOWN_SERVER_ERROR, message)
}
