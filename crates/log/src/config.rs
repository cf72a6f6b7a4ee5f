use highwater_records::TimestampType;
use highwater_types::Millis;

/// What one log is told by its topic's configuration. Names and defaults are Kafka's.
///
/// When records are flushed (`flush.messages`, `flush.ms`) is not its business: its owner decides
/// that and asks for the sync job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment that would grow beyond it is rolled first.
    pub segment_bytes: u32,
    /// `segment.ms`: a segment is rolled when its records span more than this.
    pub segment_ms: Millis,
    /// This log's share of `segment.jitter.ms`, drawn by the owner; taken off `segment_ms`.
    pub segment_jitter_ms: Millis,
    /// `index.interval.bytes`: a batch gets an index entry when more bytes than this lie since
    /// the entry before.
    pub index_interval_bytes: u32,
    /// `segment.index.bytes`: most bytes of an index; a full index rolls the segment.
    pub index_bytes_max: u32,
    /// `retention.ms`; `None` keeps for ever.
    pub retention_ms: Option<Millis>,
    /// `retention.bytes`; `None` keeps all.
    pub retention_bytes: Option<u64>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: u64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: u64,
    /// `max.message.bytes`: largest batch that a client may append.
    pub max_message_bytes: u32,
    /// `file.delete.delay.ms`: how long a deleted file stays as `.deleted`.
    pub file_delete_delay_ms: Millis,
    /// `producer.id.expiration.ms`: a producer idle for so long is forgotten.
    pub producer_id_expiration_ms: Millis,
    /// Whether cleanup.policy has `delete`: retention by time and size applies.
    pub deletes: bool,
    /// Whether cleanup.policy has `compact`: gaps between offsets are normal.
    pub compacts: bool,
    /// Most bytes that a look-up by time may decompress of one batch.
    pub decompressed_bytes_max: u64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: Millis::new(604_800_000),
            segment_jitter_ms: Millis::ZERO,
            index_interval_bytes: 4096,
            index_bytes_max: 10 << 20,
            retention_ms: Some(Millis::new(604_800_000)),
            retention_bytes: None,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: u64::MAX,
            timestamp_after_max_ms: 3_600_000,
            max_message_bytes: 1_048_588,
            file_delete_delay_ms: Millis::new(60_000),
            producer_id_expiration_ms: Millis::new(86_400_000),
            deletes: true,
            compacts: false,
            decompressed_bytes_max: 256 << 20,
        }
    }
}
