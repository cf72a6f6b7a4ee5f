use highwater_types::Millis;

use super::Assignor;

/// How a member behaves. Fields are named after Kafka's keys and have Kafka's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// `group.id`.
    pub group_id: String,
    /// `group.instance.id`: makes the member a static one (KIP-345), which does not leave when it
    /// stops and has its partitions back when it returns within the session time-out.
    pub instance_id: Option<String>,
    /// `session.timeout.ms`: a member that is silent for so long is out.
    pub session_timeout: Millis,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: Millis,
    /// `max.poll.interval.ms`: a member whose owner does not ask for records for so long leaves.
    /// Also how long a rebalance waits for it.
    pub max_poll_interval: Millis,
    /// `partition.assignment.strategy`, the most wanted first; never empty.
    pub assignors: Vec<Assignor>,
    /// `client.rack`.
    pub rack: Option<String>,
    /// `request.timeout.ms`.
    pub request_timeout: Millis,
    /// `retry.backoff.ms`: the first pause between attempts; it doubles.
    pub retry_backoff: Millis,
    /// `retry.backoff.max.ms`: the longest pause between attempts.
    pub retry_backoff_max: Millis,
}

impl MemberConfig {
    /// Kafka's defaults for a member of `group_id`.
    #[must_use]
    pub fn new(group_id: &str) -> Self {
        Self {
            group_id: group_id.to_owned(),
            instance_id: None,
            session_timeout: Millis::new(45_000),
            heartbeat_interval: Millis::new(3_000),
            max_poll_interval: Millis::new(300_000),
            assignors: vec![Assignor::Range, Assignor::CooperativeSticky],
            rack: None,
            request_timeout: Millis::new(30_000),
            retry_backoff: Millis::new(100),
            retry_backoff_max: Millis::new(1_000),
        }
    }

    /// How long JoinGroup and SyncGroup may take: the coordinator waits for the slowest member.
    pub(super) fn rebalance_limit(&self) -> Millis {
        let limit = self.max_poll_interval.as_u64().saturating_add(5_000);
        Millis::new(limit.max(self.request_timeout.as_u64()))
    }

    /// The pause after `failures` attempts in a row.
    pub(super) fn backoff(&self, failures: u32) -> Millis {
        let factor = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u64::MAX);
        let pause = self.retry_backoff.as_u64().saturating_mul(factor);
        Millis::new(pause.min(self.retry_backoff_max.as_u64()))
    }
}
