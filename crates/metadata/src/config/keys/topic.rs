use crate::config::definition::config_keys;

config_keys! {
    /// Configs of a topic.
    TOPIC_KEYS;
    "cleanup.policy" List "delete" (list "compact" "delete") ClusterWide Medium Works
        "What is done with old records: delete, compact, or both.";
    "compression.gzip.level" Int "-1" (or -1 1 9) ClusterWide Medium Works
        "Level for gzip.";
    "compression.lz4.level" Int "9" [1, 17] ClusterWide Medium Works
        "Level for lz4.";
    "compression.type" String "producer" { "uncompressed" "zstd" "lz4" "snappy" "gzip" "producer" }
        ClusterWide Medium Works
        "The codec that batches are kept in; producer leaves them as they come.";
    "compression.zstd.level" Int "3" [-131072, 22] ClusterWide Medium Works
        "Level for zstd.";
    "delete.retention.ms" Long "86400000" [0] ClusterWide Medium NotYet
        "How long tombstones and transaction markers stay after a cleaning.";
    "errors.deadletterqueue.group.enable" Boolean "false" any ClusterWide Medium NotYet
        "Whether the topic takes the records that share groups gave up.";
    "file.delete.delay.ms" Long "60000" [0] ClusterWide Medium Works
        "How long a retired file stays before it is removed.";
    "flush.messages" Long "9223372036854775807" [1] ClusterWide Medium Works
        "Records after which the log is flushed. With 1, each write is on disk before it is \
         acknowledged.";
    "flush.ms" Long "9223372036854775807" [0] ClusterWide Medium Works
        "Longest that records stay unflushed.";
    "follower.replication.throttled.replicas" List "" replicas ClusterWide Medium NotYet
        "Followers that are throttled, as PARTITION:BROKER, or *.";
    "index.interval.bytes" Int "4096" [0, 2147483647] ClusterWide Medium Works
        "Bytes of records between two index entries.";
    "internal.segment.bytes" Int none [1, 2147483647] ClusterWide Low Works
        "For tests: segment size without the lower bound.";
    "leader.replication.throttled.replicas" List "" replicas ClusterWide Medium NotYet
        "Leaders that are throttled, as PARTITION:BROKER, or *.";
    "local.retention.bytes" Long "-2" [-2] ClusterWide Medium NotYet
        "Size beyond which local segments that are in the remote tier go. -2: as retention.bytes.";
    "local.retention.ms" Long "-2" [-2] ClusterWide Medium NotYet
        "Age at which local segments that are in the remote tier go. -2: as retention.ms.";
    "max.compaction.lag.ms" Long "9223372036854775807" [1] ClusterWide Medium NotYet
        "Records older than this make the log due for cleaning.";
    "max.decompressed.message.bytes" Int "2147483639" [1, 2147483647] ClusterWide Medium NotYet
        "Largest record that is taken, unpacked.";
    "max.message.bytes" Int "1048588" [0, 2147483647] ClusterWide Medium Works
        "Largest record batch that is taken, packed.";
    "message.timestamp.after.max.ms" Long "3600000" [0] ClusterWide Medium Works
        "How far ahead of the broker's clock a record's time may be.";
    "message.timestamp.before.max.ms" Long "9223372036854775807" [0] ClusterWide Medium Works
        "How far behind the broker's clock a record's time may be.";
    "message.timestamp.type" String "CreateTime" { "CreateTime" "LogAppendTime" }
        ClusterWide Medium Works
        "Whose clock stamps records: the producer's or the broker's.";
    "min.cleanable.dirty.ratio" Double "0.5" (fraction 0.0 1.0) ClusterWide Medium NotYet
        "Part of the log that must be uncleaned before it is cleaned.";
    "min.compaction.lag.ms" Long "0" [0] ClusterWide Medium NotYet
        "Records younger than this are not compacted.";
    "min.insync.replicas" Int "1" [1, 2147483647] ClusterWide Medium Works
        "A write with acks=all is refused while fewer replicas than this are in sync.";
    "preallocate" Boolean "false" any ClusterWide Medium NotYet
        "Whether segment files are reserved in full.";
    "remote.copy.lag.bytes" Long "-1" [-1] ClusterWide Medium NotYet
        "The newest bytes that are not copied to the remote tier.";
    "remote.copy.lag.ms" Long "0" [-1] ClusterWide Medium NotYet
        "Segments younger than this are not copied to the remote tier.";
    "remote.log.copy.disable" Boolean "false" any ClusterWide Medium NotYet
        "Whether nothing more is copied to the remote tier.";
    "remote.log.delete.on.disable" Boolean "false" any ClusterWide Medium NotYet
        "Whether remote data goes when the remote tier is turned off.";
    "remote.storage.enable" Boolean "false" any ClusterWide Medium NotYet
        "Whether the topic has a remote tier.";
    "retention.bytes" Long "-1" [-1] ClusterWide Medium Works
        "Old segments go once a partition takes more than this. -1: no limit.";
    "retention.ms" Long "604800000" [-1] ClusterWide Medium Works
        "Age at which old segments go. -1: never.";
    "segment.bytes" Int "1073741824" [1048576, 2147483647] ClusterWide Medium Works
        "Size at which a segment ends.";
    "segment.index.bytes" Int "10485760" [4, 2147483647] ClusterWide Medium Works
        "Size that an index file is reserved with.";
    "segment.jitter.ms" Long "0" [0] ClusterWide Medium Works
        "Most that is taken off a segment's age at random.";
    "segment.ms" Long "604800000" [1] ClusterWide Medium Works
        "Age at which a segment ends.";
    "unclean.leader.election.enable" Boolean "false" any ClusterWide Medium Works
        "Whether a replica from outside the ISR may lead when no other can.";
}

/// The unit of a broker key, which its topic key has in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The values are the same.
    Same,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
}

/// The broker keys that give a topic key its value when the topic sets none, strongest first.
pub(crate) type TopicSynonym = (&'static str, &'static [(&'static str, Unit)]);

/// Topic keys with broker keys behind them; the first broker key is the one DescribeConfigs names.
pub(crate) const TOPIC_SYNONYMS: &[TopicSynonym] = &[
    ("cleanup.policy", &[("log.cleanup.policy", Unit::Same)]),
    (
        "compression.gzip.level",
        &[("compression.gzip.level", Unit::Same)],
    ),
    (
        "compression.lz4.level",
        &[("compression.lz4.level", Unit::Same)],
    ),
    ("compression.type", &[("compression.type", Unit::Same)]),
    (
        "compression.zstd.level",
        &[("compression.zstd.level", Unit::Same)],
    ),
    (
        "delete.retention.ms",
        &[("log.cleaner.delete.retention.ms", Unit::Same)],
    ),
    (
        "file.delete.delay.ms",
        &[("log.segment.delete.delay.ms", Unit::Same)],
    ),
    (
        "flush.messages",
        &[("log.flush.interval.messages", Unit::Same)],
    ),
    (
        "flush.ms",
        &[
            ("log.flush.interval.ms", Unit::Same),
            ("log.flush.scheduler.interval.ms", Unit::Same),
        ],
    ),
    (
        "index.interval.bytes",
        &[("log.index.interval.bytes", Unit::Same)],
    ),
    (
        "local.retention.bytes",
        &[("log.local.retention.bytes", Unit::Same)],
    ),
    (
        "local.retention.ms",
        &[("log.local.retention.ms", Unit::Same)],
    ),
    (
        "max.compaction.lag.ms",
        &[("log.cleaner.max.compaction.lag.ms", Unit::Same)],
    ),
    (
        "max.decompressed.message.bytes",
        &[("max.decompressed.message.bytes", Unit::Same)],
    ),
    ("max.message.bytes", &[("message.max.bytes", Unit::Same)]),
    (
        "message.timestamp.after.max.ms",
        &[("log.message.timestamp.after.max.ms", Unit::Same)],
    ),
    (
        "message.timestamp.before.max.ms",
        &[("log.message.timestamp.before.max.ms", Unit::Same)],
    ),
    (
        "message.timestamp.type",
        &[("log.message.timestamp.type", Unit::Same)],
    ),
    (
        "min.cleanable.dirty.ratio",
        &[("log.cleaner.min.cleanable.ratio", Unit::Same)],
    ),
    (
        "min.compaction.lag.ms",
        &[("log.cleaner.min.compaction.lag.ms", Unit::Same)],
    ),
    (
        "min.insync.replicas",
        &[("min.insync.replicas", Unit::Same)],
    ),
    ("preallocate", &[("log.preallocate", Unit::Same)]),
    (
        "remote.copy.lag.bytes",
        &[("log.remote.copy.lag.bytes", Unit::Same)],
    ),
    (
        "remote.copy.lag.ms",
        &[("log.remote.copy.lag.ms", Unit::Same)],
    ),
    ("retention.bytes", &[("log.retention.bytes", Unit::Same)]),
    (
        "retention.ms",
        &[
            ("log.retention.ms", Unit::Same),
            ("log.retention.minutes", Unit::Minutes),
            ("log.retention.hours", Unit::Hours),
        ],
    ),
    ("segment.bytes", &[("log.segment.bytes", Unit::Same)]),
    (
        "segment.index.bytes",
        &[("log.index.size.max.bytes", Unit::Same)],
    ),
    (
        "segment.jitter.ms",
        &[
            ("log.roll.jitter.ms", Unit::Same),
            ("log.roll.jitter.hours", Unit::Hours),
        ],
    ),
    (
        "segment.ms",
        &[("log.roll.ms", Unit::Same), ("log.roll.hours", Unit::Hours)],
    ),
    (
        "unclean.leader.election.enable",
        &[("unclean.leader.election.enable", Unit::Same)],
    ),
];
