use std::collections::BTreeMap;

use highwater_protocol::messages::ListOffsetsRequest;
use highwater_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use highwater_types::{ErrorCode, LeaderEpoch, NodeId, Offset, PartitionIndex, WallMs};
use tokio::time::{Instant, sleep};

use crate::cluster::Client;
use crate::config::duration;
use crate::error::ClientError;

/// Where to look in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The end that may be read: the high watermark, or the last stable offset (-1).
    Latest,
    /// The log start offset (-2).
    Earliest,
    /// The record with the largest timestamp (-3).
    MaxTimestamp,
    /// The start of what is on the broker itself (-4).
    EarliestLocal,
    /// The end of what is in tiered storage (-5).
    LatestTiered,
    /// The start of what waits for tiered storage (-6).
    EarliestPendingUpload,
    /// The first record with this timestamp or a later one.
    Timestamp(WallMs),
}

/// An answer to an [`OffsetSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// `None` when there is no such record.
    pub offset: Option<Offset>,
    /// The record's timestamp, where one was looked for.
    pub timestamp: WallMs,
    /// The epoch of the leader that wrote it.
    pub leader_epoch: LeaderEpoch,
}

/// Whether records of transactions that are open or aborted are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All up to the high watermark.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, without aborted ones.
    ReadCommitted,
}

/// A partition by topic name and number.
pub type PartitionName = (String, PartitionIndex);

impl OffsetSpec {
    /// The number on the wire.
    #[must_use]
    pub const fn raw(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::EarliestLocal => -4,
            Self::LatestTiered => -5,
            Self::EarliestPendingUpload => -6,
            Self::Timestamp(timestamp) => timestamp.raw(),
        }
    }
}

impl IsolationLevel {
    /// The number on the wire.
    #[must_use]
    pub const fn raw(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}

impl Client {
    /// Looks up offsets, each at its partition's leader. One result per partition, in order.
    /// Partitions without a leader and those that moved are tried again for
    /// `default.api.timeout.ms`.
    pub async fn list_offsets(
        &self,
        wanted: &[(PartitionName, OffsetSpec)],
        isolation: IsolationLevel,
    ) -> Vec<Result<ListedOffset, ClientError>> {
        let deadline = Instant::now() + duration(self.config().default_api_timeout);
        let mut results: Vec<Option<Result<ListedOffset, ClientError>>> = vec![None; wanted.len()];
        let mut failures = 0;
        loop {
            let open = |result: &Option<Result<_, ClientError>>| match result {
                Some(Err(why)) => why.is_retriable(),
                Some(Ok(_)) => false,
                None => true,
            };
            let again: Vec<_> = results
                .iter()
                .zip(wanted)
                .filter(|(it, _)| open(it))
                .collect();
            let again: Vec<_> = again
                .into_iter()
                .map(|(_, wanted)| wanted.clone())
                .collect();
            if again.is_empty() {
                break;
            }
            let pause = duration(self.config().backoff(failures));
            if failures > 0 {
                if Instant::now() + pause > deadline {
                    break;
                }
                sleep(pause).await;
            }
            let mut answers = self
                .list_offsets_once(&again, isolation, failures > 0)
                .await;
            for (result, (partition, _)) in results.iter_mut().zip(wanted) {
                if open(result)
                    && let Some(answer) = answers.remove(partition)
                {
                    *result = Some(answer);
                }
            }
            failures += 1;
        }
        let unknown = |(partition, _): &(PartitionName, OffsetSpec)| {
            Err(ClientError::Unknown {
                what: format!("partition {}-{}", partition.0, partition.1),
            })
        };
        results
            .into_iter()
            .zip(wanted)
            .map(|(it, of)| it.unwrap_or_else(|| unknown(of)))
            .collect()
    }

    /// One round: the partitions' leaders, each asked once.
    async fn list_offsets_once(
        &self,
        wanted: &[(PartitionName, OffsetSpec)],
        isolation: IsolationLevel,
        is_repeated: bool,
    ) -> BTreeMap<PartitionName, Result<ListedOffset, ClientError>> {
        let mut results = BTreeMap::new();
        let mut topics: Vec<String> = wanted.iter().map(|((topic, _), _)| topic.clone()).collect();
        topics.sort();
        topics.dedup();
        let stale = |topic: &String| !self.metadata().topics.contains_key(topic);
        let must_ask = is_repeated || topics.iter().any(stale);
        if must_ask && let Err(why) = self.ask_metadata(Some(&topics), false).await {
            let all = wanted.iter().map(|(it, _)| (it.clone(), Err(why.clone())));
            return all.collect();
        }
        let mut by_leader: BTreeMap<NodeId, Vec<(PartitionName, OffsetSpec, LeaderEpoch)>> =
            BTreeMap::new();
        for ((topic, index), spec) in wanted {
            let name = (topic.clone(), *index);
            match self.known_leader(topic, *index) {
                Some(leader) => {
                    let asked = by_leader.entry(leader.node).or_default();
                    asked.push((name, *spec, leader.epoch));
                }
                None => {
                    results.insert(name, Err(self.why_no_leader(topic, *index)));
                }
            }
        }
        for (node, asked) in by_leader {
            let answer = self.call_node(node, &list_request(&asked, isolation)).await;
            match answer {
                Err(why) => {
                    results.extend(asked.into_iter().map(|(it, ..)| (it, Err(why.clone()))));
                }
                Ok(answer) => {
                    for topic in answer.topics {
                        for it in topic.partitions {
                            let index = PartitionIndex::new(it.partition_index);
                            let name = (topic.name.clone(), index);
                            let what = || format!("offsets of {}-{index}", topic.name);
                            let listed = ClientError::check(what, it.error_code, None);
                            let listed = listed.map(|()| ListedOffset {
                                offset: (it.offset >= 0).then(|| Offset::new(it.offset)),
                                timestamp: WallMs::new(it.timestamp),
                                leader_epoch: LeaderEpoch::new(it.leader_epoch),
                            });
                            results.insert(name, listed);
                        }
                    }
                }
            }
        }
        results
    }

    /// Why a partition cannot be asked for anything.
    pub(crate) fn why_no_leader(&self, topic: &str, index: PartitionIndex) -> ClientError {
        let metadata = self.metadata();
        let what = format!("partition {topic}-{index}");
        match metadata.topics.get(topic) {
            Some(known) if known.error.is_error() => {
                ClientError::refused(format!("topic {topic}"), known.error, None)
            }
            Some(_) if metadata.partition(topic, index).is_some() => {
                ClientError::refused(what, ErrorCode::LEADER_NOT_AVAILABLE, None)
            }
            _ => ClientError::Unknown { what },
        }
    }
}

fn list_request(
    asked: &[(PartitionName, OffsetSpec, LeaderEpoch)],
    isolation: IsolationLevel,
) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for ((topic, index), spec, epoch) in asked {
        topics.entry(topic).or_default().push(ListOffsetsPartition {
            partition_index: index.raw(),
            current_leader_epoch: epoch.raw(),
            timestamp: spec.raw(),
        });
    }
    let topics = topics
        .into_iter()
        .map(|(name, partitions)| ListOffsetsTopic {
            name: name.to_owned(),
            partitions,
        });
    ListOffsetsRequest {
        isolation_level: isolation.raw(),
        topics: topics.collect(),
        ..ListOffsetsRequest::default()
    }
}
