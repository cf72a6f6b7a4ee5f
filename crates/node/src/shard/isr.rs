//! The ISR of the partitions that this shard leads: who lags, and what the controller is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_protocol::Response;
use highwater_protocol::messages::AlterPartitionResponse;
use highwater_protocol::messages::alter_partition_request::{
    AlterPartitionRequest, BrokerState, PartitionData, TopicData,
};
use highwater_protocol::messages::alter_partition_response;
use highwater_replication::{CommittedIsr, EligibleBrokers, IsrAnswer, IsrProposal, Replica};
use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, PartitionEpoch, PartitionIndex,
    TopicId, TopicIdPartition,
};

use super::{Effects, Shard};
use crate::journal::{Happening, Level};
use crate::machine::{Channel, Effect, PeerError, Token};

/// How long a shard waits before it asks again what went wrong.
const RETRY: Millis = Millis::new(50);

/// A look at the followers that comes later than this: the process stood still.
const STANDSTILL: Millis = Millis::new(100);

/// How long fetches that waited in sockets during a standstill have time to be heard.
const HEARING_MAX: Millis = Millis::new(500);

/// What a shard keeps for the ISRs of its partitions.
#[derive(Debug, Default)]
pub(crate) struct IsrState {
    /// Who may be in an ISR, as the metadata has it now.
    eligible: Arc<EligibleBrokers>,
    /// When followers are looked at next; `None` while nobody follows this shard.
    next_check: Option<Mono>,
    /// The look that is due next was put off once, for the process had stood still.
    put_off: bool,
    /// What is to be asked for; at most one change a partition.
    to_ask: BTreeMap<TopicIdPartition, IsrProposal>,
    /// The change of each partition that the journal was told last, until it is made.
    told: BTreeMap<TopicIdPartition, Change>,
    /// The request that is with the controller: one at a time, as in Kafka.
    asked: Option<Asked>,
    /// Nothing is asked before it: the last request failed.
    ask_after: Option<Mono>,
}

/// Leader epoch and partition epoch that a change starts from, and the ISR that it asks for.
type Change = (LeaderEpoch, PartitionEpoch, Vec<(NodeId, BrokerEpoch)>);

#[derive(Debug)]
struct Asked {
    token: Token,
    changes: BTreeMap<TopicIdPartition, (LeaderEpoch, PartitionEpoch)>,
}

impl IsrState {
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let ask = self.ask_after.filter(|_| !self.to_ask.is_empty());
        [self.next_check, ask].into_iter().flatten().min()
    }
}

impl<D: Disk> Shard<D> {
    /// The metadata has other brokers: every leader with followers looks at them again.
    pub(crate) fn isr_brokers_changed(
        &mut self,
        now: Now,
        before: &MetadataImage,
        out: &mut Effects<D>,
    ) {
        if Arc::ptr_eq(&before.brokers, &self.image.brokers) {
            return;
        }
        let eligible = eligible(&self.image);
        if *self.isr.eligible == eligible {
            return;
        }
        self.isr.eligible = Arc::new(eligible);
        for id in self.followed() {
            self.tell_brokers(now, id, out);
        }
    }

    /// Tells a replica which brokers may be in its ISR.
    pub(crate) fn tell_brokers(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        let eligible = Arc::clone(&self.isr.eligible);
        self.with_replica(now, id, out, |replica, outputs| {
            replica.handle_brokers(now, eligible, outputs);
        });
    }

    /// Somebody may follow a replica of this shard from now on.
    pub(crate) fn watch_followers(&mut self, now: Now) {
        let interval = Millis::new((self.settings.replica_lag_time_max.as_u64() / 2).max(1));
        self.isr
            .next_check
            .get_or_insert_with(|| now.mono.plus(interval));
    }

    /// Notes what a leader wants of the controller; it is sent at the end of the step.
    pub(crate) fn propose_isr(
        &mut self,
        id: TopicIdPartition,
        proposal: IsrProposal,
        out: &mut Effects<D>,
    ) {
        // Told once: while nobody answers it is asked for over and over.
        let wanted = proposal.in_sync_replicas.clone();
        let change = (proposal.leader_epoch, proposal.partition_epoch, wanted);
        let is_news = self.isr.told.get(&id) != Some(&change);
        let level = if is_news { Level::Info } else { Level::Trace };
        let happening = |partition| Happening::IsrProposed {
            partition,
            proposal: Box::new(proposal.clone()),
        };
        self.journal_of(id, level, happening, out);
        self.isr.told.insert(id, change);
        self.isr.to_ask.insert(id, proposal);
    }

    pub(crate) fn isr_tick(&mut self, now: Now, out: &mut Effects<D>) {
        if self.isr.next_check.is_some_and(|due| due <= now.mono) && !self.put_off_check(now) {
            self.isr.next_check = None;
            for id in self.followed() {
                self.watch_followers(now);
                self.with_replica(now, id, out, |replica, outputs| {
                    replica.handle_lag_check(now, outputs);
                });
            }
        }
        self.ask_for_isrs(now, out);
    }

    /// After a standstill of its own a leader first hears whoever sent something meanwhile: what
    /// it did not hear is not the followers' fault. Put off once, not for ever.
    fn put_off_check(&mut self, now: Now) -> bool {
        let stood_still = |due: Mono| now.mono.since(due) > STANDSTILL;
        let put_off = self.isr.next_check.is_some_and(stood_still) && !self.isr.put_off;
        if put_off {
            let quarter = Millis::new(self.settings.replica_lag_time_max.as_u64() / 4);
            self.isr.next_check = Some(now.mono.plus(quarter.min(HEARING_MAX)));
        }
        self.isr.put_off = put_off;
        put_off
    }

    /// Asks the controller for all that is wanted, unless it has not answered yet.
    pub(crate) fn ask_for_isrs(&mut self, now: Now, out: &mut Effects<D>) {
        let must_wait = self.isr.ask_after.is_some_and(|at| now.mono < at);
        if self.isr.asked.is_some() || self.isr.to_ask.is_empty() || must_wait {
            return;
        }
        self.isr.ask_after = None;
        let to_ask = std::mem::take(&mut self.isr.to_ask);
        let broker = self.image.broker(self.node_id);
        let request = AlterPartitionRequest {
            broker_id: self.node_id,
            broker_epoch: broker.map_or(-1, |it| it.epoch.raw()),
            topics: by_topic(&to_ask),
        };
        let changes = to_ask
            .into_iter()
            .map(|(id, it)| (id, (it.leader_epoch, it.partition_epoch)))
            .collect();
        let token = self.new_token();
        self.isr.asked = Some(Asked { token, changes });
        out.push(Effect::Send {
            peer: self.to_controller(),
            channel: Channel::Others,
            token,
            request: request.into(),
            deadline: now.mono.plus(self.serve.settings.request_timeout),
        });
    }

    /// Takes the controller's answer, if `token` is that of the request that is out.
    pub(crate) fn handle_isr_answer(
        &mut self,
        now: Now,
        token: Token,
        result: &Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) -> bool {
        let Some(asked) = self.isr.asked.take_if(|asked| asked.token == token) else {
            return false;
        };
        let mut results = results(result);
        for (id, (leader_epoch, asked_at)) in asked.changes {
            // A partition that the answer leaves out is one of which nobody knows.
            let unknown = Err(ErrorCode::NETWORK_EXCEPTION);
            let result = results.remove(&id).unwrap_or(unknown);
            if result.is_err() {
                self.isr.ask_after = Some(now.mono.plus(RETRY));
            } else {
                self.isr.told.remove(&id);
            }
            let answer = IsrAnswer {
                leader_epoch,
                asked_at,
                result,
            };
            self.with_replica(now, id, out, |replica, outputs| {
                replica.handle_isr_answer(now, &answer, outputs);
            });
        }
        true
    }

    /// The partitions that are led here and have other replicas.
    fn followed(&self) -> Vec<TopicIdPartition> {
        let leads = |replica: &Replica| {
            let leader = replica.role().as_leader();
            leader.is_some_and(|it| !it.followers.is_empty())
        };
        let partitions = self.partitions.iter();
        let followed = partitions.filter(|it| it.online().is_ok_and(|it| leads(it.replica())));
        followed.map(|it| it.id()).collect()
    }
}

fn eligible(image: &MetadataImage) -> EligibleBrokers {
    let active = image.brokers.values().filter(|it| image.is_active(it.id));
    active.map(|it| (it.id, it.epoch)).collect()
}

fn by_topic(to_ask: &BTreeMap<TopicIdPartition, IsrProposal>) -> Vec<TopicData> {
    let mut topics: Vec<TopicData> = Vec::new();
    for (id, proposal) in to_ask {
        let topic_id = id.topic_id.uuid();
        if topics.last().is_none_or(|topic| topic.topic_id != topic_id) {
            let partitions = Vec::new();
            topics.push(TopicData {
                topic_id,
                partitions,
            });
        }
        let isr = proposal.in_sync_replicas.iter();
        let isr = isr.map(|(broker_id, epoch)| BrokerState {
            broker_id: *broker_id,
            broker_epoch: epoch.raw(),
        });
        let partition = PartitionData {
            partition_index: id.partition.raw(),
            leader_epoch: proposal.leader_epoch.raw(),
            new_isr_with_epochs: isr.collect(),
            partition_epoch: proposal.partition_epoch.raw(),
            ..PartitionData::default()
        };
        if let Some(topic) = topics.last_mut() {
            topic.partitions.push(partition);
        }
    }
    topics
}

/// What the controller said of each partition. An error of the whole request is said of none.
fn results(
    result: &Result<Response, PeerError>,
) -> BTreeMap<TopicIdPartition, Result<CommittedIsr, ErrorCode>> {
    let Ok(Response::AlterPartition(AlterPartitionResponse {
        error_code: ErrorCode::NONE,
        topics,
        ..
    })) = result
    else {
        return BTreeMap::new();
    };
    let rows = topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|it| (topic.topic_id, it)));
    let rows = rows.map(|(topic_id, partition)| {
        let id = TopicIdPartition {
            topic_id: TopicId::new(topic_id),
            partition: PartitionIndex::new(partition.partition_index),
        };
        (id, committed(partition))
    });
    rows.collect()
}

fn committed(
    partition: &alter_partition_response::PartitionData,
) -> Result<CommittedIsr, ErrorCode> {
    if partition.error_code.is_error() {
        return Err(partition.error_code);
    }
    Ok(CommittedIsr {
        leader_epoch: LeaderEpoch::new(partition.leader_epoch),
        partition_epoch: PartitionEpoch::new(partition.partition_epoch),
        in_sync_replicas: partition.isr.clone(),
    })
}
