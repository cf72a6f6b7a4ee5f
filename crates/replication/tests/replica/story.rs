//! One replica with a clock: inputs in, outputs as text.

use std::sync::Arc;

use highwater_replication::{
    Assignment, CommittedIsr, FlushPolicy, FollowerFetch, IsrAnswer, LogEnds, Output, Replica,
    ReplicaConfig,
};
use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, Offset, PartitionEpoch,
};

/// The registration of every broker of the stories.
pub(crate) const REGISTERED: i64 = 5;
pub(crate) const SELF: i32 = 1;

pub(crate) struct Story {
    pub(crate) replica: Replica,
    pub(crate) now: Now,
}

pub(crate) fn text(outputs: &[Output]) -> String {
    let line = |output: &Output| match output {
        Output::Leads {
            epoch,
            start_offset,
        } => format!("leads {epoch} at {start_offset}"),
        Output::LeadsNoMore { epoch } => format!("leads no more {epoch}"),
        Output::Follows { leader, epoch } => {
            format!("follows {} {epoch}", leader.map_or(-1, NodeId::raw))
        }
        Output::HighWatermark { from, to } => format!("hw {from} -> {to}"),
        Output::ProposeIsr(proposal) => {
            let member = |(node, epoch): &(NodeId, BrokerEpoch)| format!("{node}:{epoch}");
            let isr: Vec<_> = proposal.in_sync_replicas.iter().map(member).collect();
            format!("propose {} at {}", isr.join(","), proposal.partition_epoch)
        }
        Output::IsrChanged { from, to } => format!("isr {} -> {}", ids(from), ids(to)),
        Output::Flush => "flush".to_owned(),
        Output::DataLoss { from, to } => format!("lost [{from},{to})"),
    };
    outputs.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn ids(nodes: &[NodeId]) -> String {
    let ids: Vec<_> = nodes.iter().map(NodeId::to_string).collect();
    ids.join(",")
}

pub(crate) fn offset(raw: i64) -> Offset {
    Offset::new(raw)
}

pub(crate) fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId::new).collect()
}

pub(crate) fn config(min_in_sync_replicas: usize, flush: FlushPolicy) -> ReplicaConfig {
    ReplicaConfig {
        min_in_sync_replicas,
        flush,
        lag_max: LAG_MAX,
        fetch_backoff: Millis::new(1_000),
        old_rule: false,
    }
}

/// `replica.lag.time.max.ms` of the stories.
pub(crate) const LAG_MAX: Millis = Millis::new(10_000);

pub(crate) const NEVER: FlushPolicy = FlushPolicy::NEVER;
pub(crate) const EACH: FlushPolicy = FlushPolicy {
    messages: 1,
    age: None,
};

fn fetch_of(replica: i32, broker_epoch: i64, epoch: i32, at: i64) -> FollowerFetch {
    FollowerFetch {
        replica: NodeId::new(replica),
        broker_epoch: BrokerEpoch::new(broker_epoch),
        leader_epoch: LeaderEpoch::new(epoch),
        fetch_offset: offset(at),
    }
}

impl Story {
    pub(crate) fn new(log_end: i64, flushed: i64, hw: i64, config: ReplicaConfig) -> Self {
        let now = Now {
            mono: Mono::from_micros(1_000_000),
            ..Now::default()
        };
        let ends = LogEnds {
            log_start_offset: offset(0),
            log_end_offset: offset(log_end),
            flushed_offset: offset(flushed),
        };
        Self {
            replica: Replica::new(now, NodeId::new(SELF), ends, offset(hw), config),
            now,
        }
    }

    pub(crate) fn metadata(
        &mut self,
        leader: i32,
        epochs: (i32, i32),
        ar: &[i32],
        isr: &[i32],
    ) -> String {
        let assignment = Assignment {
            leader: (leader >= 0).then(|| NodeId::new(leader)),
            leader_epoch: LeaderEpoch::new(epochs.0),
            partition_epoch: PartitionEpoch::new(epochs.1),
            assigned_replicas: nodes(ar),
            in_sync_replicas: nodes(isr),
        };
        let mut out = Vec::new();
        self.replica
            .handle_metadata(self.now, &assignment, &mut out);
        text(&out)
    }

    pub(crate) fn append(&mut self, log_end: i64) -> String {
        let mut out = Vec::new();
        self.replica
            .handle_appended(self.now, offset(log_end), &mut out);
        text(&out)
    }

    pub(crate) fn flushed(&mut self, to: i64) -> String {
        let mut out = Vec::new();
        self.replica.handle_flushed(self.now, offset(to), &mut out);
        text(&out)
    }

    pub(crate) fn advance(&mut self, ms: u64) -> String {
        self.now.mono = self.now.mono.plus(Millis::new(ms));
        let mut out = Vec::new();
        self.replica.handle_tick(self.now, &mut out);
        text(&out)
    }

    pub(crate) fn fetch(&mut self, replica: i32, epoch: i32, at: i64) -> Result<String, ErrorCode> {
        self.fetch_as(replica, REGISTERED, epoch, at)
    }

    pub(crate) fn fetch_outputs(&mut self, replica: i32, epoch: i32, at: i64) -> Vec<Output> {
        let mut out = Vec::new();
        let fetch = fetch_of(replica, REGISTERED, epoch, at);
        let answer = self
            .replica
            .handle_follower_fetch(self.now, fetch, &mut out);
        answer.expect("a good fetch");
        out
    }

    /// A fetch under another registration.
    pub(crate) fn fetch_as(
        &mut self,
        replica: i32,
        broker_epoch: i64,
        epoch: i32,
        at: i64,
    ) -> Result<String, ErrorCode> {
        let fetch = fetch_of(replica, broker_epoch, epoch, at);
        let mut out = Vec::new();
        self.replica
            .handle_follower_fetch(self.now, fetch, &mut out)
            .map(|()| text(&out))
    }

    /// A follower fetched once more, now, as it did in that epoch at that offset.
    pub(crate) fn heard(&mut self, replica: i32, epoch: i32, at: i64) {
        let fetch = fetch_of(replica, REGISTERED, epoch, at);
        self.replica.handle_follower_heard(self.now.mono, fetch);
    }

    /// When a follower fetched last, as far as the leader knows.
    pub(crate) fn last_fetch(&self, replica: i32) -> Option<Mono> {
        let leader = self.replica.role().as_leader()?;
        let follower = leader.followers.get(&NodeId::new(replica))?;
        follower.last_fetch.map(|it| it.at)
    }

    /// The metadata lets these brokers be in an ISR, all registered as [`REGISTERED`].
    pub(crate) fn brokers(&mut self, ids: &[i32]) -> String {
        let epoch = BrokerEpoch::new(REGISTERED);
        let eligible = ids.iter().map(|id| (NodeId::new(*id), epoch));
        let eligible = Arc::new(eligible.collect());
        let mut out = Vec::new();
        self.replica.handle_brokers(self.now, eligible, &mut out);
        text(&out)
    }

    pub(crate) fn lag_check(&mut self, ms: u64) -> String {
        text(&self.lag_outputs(ms))
    }

    pub(crate) fn lag_outputs(&mut self, ms: u64) -> Vec<Output> {
        self.now.mono = self.now.mono.plus(Millis::new(ms));
        let mut out = Vec::new();
        self.replica.handle_lag_check(self.now, &mut out);
        out
    }

    /// The controller's answer to what was asked at partition epoch `asked_at` of leader epoch
    /// `epoch`.
    pub(crate) fn isr_answer(
        &mut self,
        epoch: i32,
        asked_at: i32,
        result: Result<(i32, &[i32]), ErrorCode>,
    ) -> String {
        let result = result.map(|(partition_epoch, isr)| (partition_epoch, isr.to_vec()));
        text(&self.isr_outputs(epoch, asked_at, result))
    }

    pub(crate) fn isr_outputs(
        &mut self,
        epoch: i32,
        asked_at: i32,
        result: Result<(i32, Vec<i32>), ErrorCode>,
    ) -> Vec<Output> {
        let result = result.map(|(partition_epoch, isr)| CommittedIsr {
            leader_epoch: LeaderEpoch::new(epoch),
            partition_epoch: PartitionEpoch::new(partition_epoch),
            in_sync_replicas: nodes(&isr),
        });
        let answer = IsrAnswer {
            leader_epoch: LeaderEpoch::new(epoch),
            asked_at: PartitionEpoch::new(asked_at),
            result,
        };
        let mut out = Vec::new();
        self.replica.handle_isr_answer(self.now, &answer, &mut out);
        out
    }
}
