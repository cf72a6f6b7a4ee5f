use highwater_types::Millis;

/// What configuration says about groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// `group.initial.rebalance.delay.ms`: how long the first join of an empty group waits for
    /// more.
    pub initial_rebalance_delay: Millis,
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: Millis,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: Millis,
    /// How long a member that has not seen its first generation stays without a word; five minutes
    /// in Kafka, which has no setting for it.
    pub new_member_join_timeout: Millis,
    /// `group.max.size`: members of one group at most.
    pub members_max: usize,
    /// `offset.metadata.max.bytes`: the longest text that a commit may carry, in bytes.
    pub offset_metadata_bytes_max: usize,
    /// `offsets.retention.minutes`, as a span.
    pub offsets_retention: Millis,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval: Millis,
}

impl Default for GroupSettings {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            initial_rebalance_delay: Millis::new(3_000),
            session_timeout_min: Millis::new(6_000),
            session_timeout_max: Millis::new(1_800_000),
            new_member_join_timeout: Millis::new(300_000),
            members_max: 2_147_483_647,
            offset_metadata_bytes_max: 4_096,
            offsets_retention: Millis::new(10_080 * 60_000),
            offsets_retention_check_interval: Millis::new(600_000),
        }
    }
}
