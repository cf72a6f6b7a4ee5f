//! Committed offsets at the coordinator.

use std::collections::BTreeMap;

use highwater_protocol::ApiKey;
use highwater_protocol::client::group::{
    CommittedOffset, MemberIdentity, PartitionSet, TopicIds, commit_request, commit_results,
    fetch_request, fetched_offsets,
};
use highwater_types::{ErrorCode, Millis, TopicName, TopicPartition};

use super::coordinator::{CoordinatorLink, call_up_to, is_coordinator_code};
use crate::cluster::Client;
use crate::error::ClientError;
use crate::net::Connection;

/// Committed offsets by partition; `None` where there is none.
pub type CommittedOffsets = BTreeMap<TopicPartition, Option<CommittedOffset>>;

/// What became of a commit, by partition.
pub type CommitResults = BTreeMap<TopicPartition, Result<(), ErrorCode>>;

impl CoordinatorLink {
    /// The committed offsets of `partitions`, or of all that the group has, for as long as `limit`
    /// while the coordinator cannot tell.
    pub(crate) async fn fetch_offsets(
        &self,
        partitions: Option<&PartitionSet>,
        require_stable: bool,
        limit: Millis,
    ) -> Result<CommittedOffsets, ClientError> {
        self.call(limit, |connection| {
            self.fetch_once(connection, partitions, require_stable)
        })
        .await
    }

    async fn fetch_once(
        &self,
        connection: Connection,
        partitions: Option<&PartitionSet>,
        require_stable: bool,
    ) -> Result<CommittedOffsets, ClientError> {
        let group_id = self.group_id();
        let what = || format!("committed offsets of group {group_id}");
        let version = connection.version(ApiKey::OffsetFetch)?;
        let topics = partitions.into_iter().flatten().map(|it| &it.topic);
        let ids = topic_ids(self.client(), topics);
        let (request, version) = fetch_request(group_id, partitions, require_stable, &ids, version);
        let limit = self.client().config().request_timeout;
        let answer = call_up_to(&connection, request, version, limit).await?;
        let offsets = fetched_offsets(&answer, group_id, &ids)
            .map_err(|code| ClientError::refused(what(), code, None))?;
        let mut committed = CommittedOffsets::new();
        for (partition, offset) in offsets {
            let of = || format!("committed offset of group {group_id} in {partition}");
            let offset = offset.map_err(|code| ClientError::refused(of(), code, None))?;
            committed.insert(partition, offset);
        }
        for partition in partitions.into_iter().flatten() {
            committed.entry(partition.clone()).or_insert(None);
        }
        Ok(committed)
    }

    /// Commits under `identity`, or from outside of every generation. Codes about single
    /// partitions and about the membership are in the results.
    pub(crate) async fn commit_offsets(
        &self,
        identity: Option<&MemberIdentity>,
        offsets: &BTreeMap<TopicPartition, CommittedOffset>,
        limit: Millis,
    ) -> Result<CommitResults, ClientError> {
        self.call(limit, |connection| {
            self.commit_once(connection, identity, offsets)
        })
        .await
    }

    async fn commit_once(
        &self,
        connection: Connection,
        identity: Option<&MemberIdentity>,
        offsets: &BTreeMap<TopicPartition, CommittedOffset>,
    ) -> Result<CommitResults, ClientError> {
        let group_id = self.group_id();
        let ids = topic_ids(self.client(), offsets.keys().map(|it| &it.topic));
        let (request, version_max) = commit_request(group_id, identity, offsets, &ids);
        let limit = self.client().config().request_timeout;
        let answer = call_up_to(&connection, request, version_max, limit).await?;
        let answered = commit_results(&answer, &ids);
        let mut results = CommitResults::new();
        for partition in offsets.keys() {
            let code = answered.get(partition).copied();
            let code = code.unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR);
            if is_coordinator_code(code) || code == ErrorCode::REQUEST_TIMED_OUT {
                let what = format!("commit of group {group_id}");
                return Err(ClientError::refused(what, code, None));
            }
            let result = if code.is_error() { Err(code) } else { Ok(()) };
            results.insert(partition.clone(), result);
        }
        Ok(results)
    }
}

/// The ids of topics, as far as metadata has them.
pub(crate) fn topic_ids<'a>(
    client: &Client,
    topics: impl Iterator<Item = &'a TopicName>,
) -> TopicIds {
    let metadata = client.metadata();
    let id = |name: &TopicName| metadata.topics.get(name.as_str())?.id;
    topics
        .filter_map(|name| Some((name.clone(), id(name)?)))
        .collect()
}
