//! Tells the controller in which log directory each replica is, where the metadata say otherwise
//! or nothing (KIP-858).

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::Disk;
use highwater_metadata::controller::DIRECTORIES_SINCE;
use highwater_protocol::Response;
use highwater_protocol::messages::assign_replicas_to_dirs_request::{
    AssignReplicasToDirsRequest, DirectoryData, PartitionData, TopicData,
};
use highwater_protocol::messages::assign_replicas_to_dirs_response::AssignReplicasToDirsResponse;
use highwater_types::{
    BrokerEpoch, DirectoryId, ErrorCode, Millis, Mono, Now, PartitionIndex, TopicId,
    TopicIdPartition,
};

use super::{Effects, Shard};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Channel, Effect, PeerError, Token};

/// Replicas in one request, as in Kafka's brokers.
const REPLICAS_PER_REQUEST_MAX: usize = 2_250;
/// How long after a failure the next try waits: this long at first, twice as long each time.
const RETRY_MIN: Millis = Millis::new(100);
const RETRY_MAX: Millis = Millis::new(10_000);

/// What the controller is still to be told of this shard's replicas.
#[derive(Debug, Default)]
pub(crate) struct DirAssignments {
    /// Replicas that may be elsewhere than the metadata say; each is looked at before it is told.
    to_tell: BTreeSet<TopicIdPartition>,
    /// The request that is out: one at a time.
    sent: Option<(Token, Vec<TopicIdPartition>)>,
    /// After a failure: not before.
    retry_at: Option<Mono>,
    failures: u32,
}

impl DirAssignments {
    /// When there is something to do again.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.retry_at
            .filter(|_| self.sent.is_none() && !self.to_tell.is_empty())
    }
}

impl<D: Disk> Shard<D> {
    /// The place of a replica, or what the metadata say of it, may have changed.
    pub(crate) fn note_directory(&mut self, id: TopicIdPartition) {
        if self.directory_to_tell(id).is_some() {
            self.assignments.to_tell.insert(id);
        }
    }

    /// Where an open replica is, if the metadata do not say so.
    fn directory_to_tell(&self, id: TopicIdPartition) -> Option<DirectoryId> {
        let partition = self.partitions.find(id)?;
        partition.online().ok()?;
        let directory = self.online_dir(partition.dir())?.id;
        let told = self.image.partition(id)?.directory(self.node_id);
        (told != directory).then_some(directory)
    }

    /// Tells what is to be told, if nothing is on its way.
    pub(crate) fn tell_directories(&mut self, now: Now, out: &mut Effects<D>) {
        let assignments = &mut self.assignments;
        if assignments.to_tell.is_empty() || assignments.sent.is_some() {
            return;
        }
        if self.image.metadata_version() < DIRECTORIES_SINCE || self.lifecycle.is_closing() {
            // Should the level rise, every partition is looked at anew.
            assignments.to_tell.clear();
            return;
        }
        if assignments.retry_at.is_some_and(|at| at > now.mono) {
            return;
        }
        let own = self.image.broker(self.node_id);
        let Some(epoch) = own.map(|broker| broker.epoch) else {
            return;
        };
        let mut sent = Vec::new();
        let mut by_directory: Directories = BTreeMap::new();
        while sent.len() < REPLICAS_PER_REQUEST_MAX
            && let Some(id) = self.assignments.to_tell.pop_first()
        {
            let Some(directory) = self.directory_to_tell(id) else {
                continue;
            };
            let topics = by_directory.entry(directory).or_default();
            topics.entry(id.topic_id).or_default().push(id.partition);
            sent.push(id);
        }
        if sent.is_empty() {
            return;
        }
        let token = self.new_token();
        self.assignments.sent = Some((token, sent));
        out.push(Effect::Send {
            peer: self.to_controller(),
            channel: Channel::Others,
            token,
            request: self.request(epoch, by_directory).into(),
            deadline: now.mono.plus(self.serve.settings.request_timeout),
        });
    }

    fn request(
        &self,
        epoch: BrokerEpoch,
        by_directory: Directories,
    ) -> AssignReplicasToDirsRequest {
        let partition = |it: PartitionIndex| PartitionData {
            partition_index: it.raw(),
        };
        let topic = |(id, partitions): (TopicId, Vec<PartitionIndex>)| TopicData {
            topic_id: id.uuid(),
            partitions: partitions.into_iter().map(partition).collect(),
        };
        let directories = by_directory.into_iter().map(|(id, topics)| DirectoryData {
            id: id.uuid(),
            topics: topics.into_iter().map(topic).collect(),
        });
        AssignReplicasToDirsRequest {
            broker_id: self.node_id,
            broker_epoch: epoch.raw(),
            directories: directories.collect(),
        }
    }

    /// Takes the controller's answer, or learns that there is none. Whether it was one to this.
    pub(crate) fn directories_told(
        &mut self,
        now: Now,
        token: Token,
        result: &Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) -> bool {
        let sent = self.assignments.sent.take_if(|(out, _)| *out == token);
        let Some((_, sent)) = sent else { return false };
        let why = match result {
            Ok(Response::AssignReplicasToDirs(answer)) if !answer.error_code.is_error() => {
                self.assignments.failures = 0;
                self.assignments.retry_at = None;
                // Topics that were deleted meanwhile are no concern of anybody's.
                let again = refused(answer).filter(|(_, error)| !is_gone(*error));
                let again: Vec<_> = again.map(|(id, _)| id).collect();
                if again.is_empty() {
                    return true;
                }
                self.assignments.to_tell.extend(again);
                "it did not take all of them".to_owned()
            }
            Ok(Response::AssignReplicasToDirs(answer)) => {
                self.assignments.to_tell.extend(sent);
                answer.error_code.to_string()
            }
            Ok(_) => {
                self.assignments.to_tell.extend(sent);
                "another answer than was asked for".to_owned()
            }
            Err(why) => {
                self.assignments.to_tell.extend(sent);
                why.to_string()
            }
        };
        let failures = self.assignments.failures;
        let wait = RETRY_MIN.as_u64().saturating_mul(1 << failures.min(10));
        let wait = Millis::new(wait).min(RETRY_MAX);
        self.assignments.failures = failures.saturating_add(1);
        self.assignments.retry_at = Some(now.mono.plus(wait));
        let text = format!("the controller was not told of the directories of replicas: {why}");
        out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
        true
    }
}

/// The replicas of a request.
type Directories = BTreeMap<DirectoryId, BTreeMap<TopicId, Vec<PartitionIndex>>>;

/// The replicas that the controller refused, and why.
fn refused(
    answer: &AssignReplicasToDirsResponse,
) -> impl Iterator<Item = (TopicIdPartition, ErrorCode)> {
    let topics = answer.directories.iter().flat_map(|it| &it.topics);
    let replicas = topics.flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let id = TopicIdPartition {
                topic_id: TopicId::new(topic.topic_id),
                partition: PartitionIndex::new(partition.partition_index),
            };
            (id, partition.error_code)
        })
    });
    replicas.filter(|(_, error)| error.is_error())
}

/// Whether the replica is no more.
fn is_gone(error: ErrorCode) -> bool {
    [
        ErrorCode::UNKNOWN_TOPIC_ID,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
    ]
    .contains(&error)
}
