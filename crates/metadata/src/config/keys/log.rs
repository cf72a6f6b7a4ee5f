use crate::config::definition::config_keys;

config_keys! {
    /// Logs on disk: roll, retention, flush, cleaning, tiers.
    LOG_KEYS;
    "log.dir" String "/tmp/kafka-logs" any Static High Works
        "The log directory, when log.dirs is absent.";
    "log.dirs" List none any Static High Works
        "The log directories, separated by commas.";
    "log.segment.bytes" Int "1073741824" [1048576, 2147483647] ClusterWide High Works
        "Size at which a log segment ends.";
    "log.roll.ms" Long none [1] ClusterWide High Works
        "Age at which a log segment ends; log.roll.hours when absent.";
    "log.roll.hours" Int "168" [1, 2147483647] Static High Works
        "Age in hours at which a log segment ends.";
    "log.roll.jitter.ms" Long none [0] ClusterWide High Works
        "Most that is taken off a segment's age at random; log.roll.jitter.hours when absent.";
    "log.roll.jitter.hours" Int "0" [0, 2147483647] Static High Works
        "Most hours that are taken off a segment's age at random.";
    "log.retention.ms" Long none [-1] ClusterWide High Works
        "Age at which old segments go; log.retention.minutes when absent. -1: never.";
    "log.retention.minutes" Int none any Static High Works
        "Age in minutes at which old segments go; log.retention.hours when absent.";
    "log.retention.hours" Int "168" any Static High Works
        "Age in hours at which old segments go.";
    "log.retention.bytes" Long "-1" [-1] ClusterWide High Works
        "Old segments go once a partition takes more than this. -1: no limit.";
    "log.retention.check.interval.ms" Long "300000" [1] Static Medium Works
        "How often segments that may go are looked for.";
    "log.initial.task.delay.ms" Long "30000" [0] Static Low NotYet
        "How long after the start the first look for old segments is.";
    "log.cleanup.policy" List "delete" (list "compact" "delete") ClusterWide Medium Works
        "What is done with old records: delete, compact, or both.";
    "log.index.size.max.bytes" Int "10485760" [4, 2147483647] ClusterWide Medium Works
        "Size that an index file is reserved with.";
    "log.index.interval.bytes" Int "4096" [0, 2147483647] ClusterWide Medium Works
        "Bytes of records between two index entries.";
    "log.flush.interval.messages" Long "9223372036854775807" [1] ClusterWide High Works
        "Records after which a log is flushed. With 1, each write is on disk before it is \
         acknowledged.";
    "log.flush.interval.ms" Long none any ClusterWide High Works
        "Longest that records stay unflushed; log.flush.scheduler.interval.ms when absent.";
    "log.flush.scheduler.interval.ms" Long "9223372036854775807" any Static High Works
        "How often logs are looked at for flushing.";
    "log.flush.offset.checkpoint.interval.ms" Int "60000" [0, 2147483647] Static High Works
        "How often recovery points are written to disk.";
    "log.flush.start.offset.checkpoint.interval.ms" Int "60000" [0, 2147483647] Static High Works
        "How often log start offsets are written to disk.";
    "log.segment.delete.delay.ms" Long "60000" [0] ClusterWide High Works
        "How long a retired file stays before it is removed.";
    "message.max.bytes" Int "1048588" [0, 2147483647] ClusterWide High Works
        "Largest record batch that is taken, packed.";
    "max.decompressed.message.bytes" Int "2147483639" [1, 2147483647] ClusterWide Low NotYet
        "Largest record that is taken, unpacked. See max.decompressed.batch.bytes for whole \
         batches.";
    "log.message.timestamp.type" String "CreateTime" { "CreateTime" "LogAppendTime" }
        ClusterWide Medium Works
        "Whose clock stamps records: the producer's or the broker's.";
    "log.message.timestamp.before.max.ms" Long "9223372036854775807" [0] ClusterWide Medium Works
        "How far behind the broker's clock a record's time may be.";
    "log.message.timestamp.after.max.ms" Long "3600000" [0] ClusterWide Medium Works
        "How far ahead of the broker's clock a record's time may be.";
    "compression.type" String "producer" { "uncompressed" "zstd" "lz4" "snappy" "gzip" "producer" }
        ClusterWide High Works
        "The codec that batches are kept in; producer leaves them as they come.";
    "compression.gzip.level" Int "-1" (or -1 1 9) ClusterWide Medium Works
        "Level for gzip.";
    "compression.lz4.level" Int "9" [1, 17] ClusterWide Medium Works
        "Level for lz4.";
    "compression.zstd.level" Int "3" [-131072, 22] ClusterWide Medium Works
        "Level for zstd.";
    "log.preallocate" Boolean "false" any ClusterWide Medium NotYet
        "Whether segment files are reserved in full.";
    "num.recovery.threads.per.data.dir" Int "2" [1, 2147483647] ClusterWide High Works
        "Logs of one directory that are opened at the same time.";
    "log.dir.failure.timeout.ms" Long "30000" [1] Static Low NotYet
        "A broker that cannot tell of a failed directory within this time stops.";
    "cordoned.log.dirs" List "" any PerBroker Medium NotYet
        "Log directories that get no new replicas.";
    "log.cleaner.enable" Boolean "true" any Static Medium NotYet
        "Whether logs are compacted at all.";
    "log.cleaner.threads" Int "1" [0, 2147483647] ClusterWide Medium NotYet
        "Cleaners that run at once.";
    "log.cleaner.dedupe.buffer.size" Long "134217728" any ClusterWide Medium NotYet
        "Memory for the keys of a cleaning, over all cleaners.";
    "log.cleaner.io.buffer.size" Int "524288" [0, 2147483647] ClusterWide Medium NotYet
        "Memory for reading and writing, over all cleaners.";
    "log.cleaner.io.buffer.load.factor" Double "0.9" any ClusterWide Medium NotYet
        "How full the key table of a cleaning may get.";
    "log.cleaner.io.max.bytes.per.second" Double "1.7976931348623157E308" any
        ClusterWide Medium NotYet
        "Bytes a second that cleaners read and write.";
    "log.cleaner.backoff.ms" Long "15000" [0] ClusterWide Medium NotYet
        "Pause of a cleaner that finds nothing to do.";
    "log.cleaner.min.cleanable.ratio" Double "0.5" (fraction 0.0 1.0) ClusterWide Medium NotYet
        "Part of a log that must be uncleaned before it is cleaned.";
    "log.cleaner.delete.retention.ms" Long "86400000" [0] ClusterWide Medium NotYet
        "How long tombstones and transaction markers stay after a cleaning.";
    "log.cleaner.min.compaction.lag.ms" Long "0" [0] ClusterWide Medium NotYet
        "Records younger than this are not compacted.";
    "log.cleaner.max.compaction.lag.ms" Long "9223372036854775807" [1] ClusterWide Medium NotYet
        "Records older than this make their log due for cleaning.";
    "log.local.retention.ms" Long "-2" [-2] ClusterWide Medium NotYet
        "Age at which local segments that are in the remote tier go.";
    "log.local.retention.bytes" Long "-2" [-2] ClusterWide Medium NotYet
        "Size beyond which local segments that are in the remote tier go.";
    "log.remote.copy.lag.ms" Long "0" [-1] ClusterWide Medium NotYet
        "Segments younger than this are not copied to the remote tier.";
    "log.remote.copy.lag.bytes" Long "-1" [-1] ClusterWide Medium NotYet
        "The newest bytes that are not copied to the remote tier.";
    "remote.log.storage.system.enable" Boolean "false" any Static Medium NotYet
        "Whether there is a remote tier.";
    "remote.log.storage.manager.class.name" String none any Static Medium NotYet
        "Java class of the remote tier.";
    "remote.log.metadata.manager.class.name" String
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager" any
        Static Medium NotYet
        "Java class that keeps track of the remote tier.";
    "remote.log.manager.task.interval.ms" Long "30000" [1] Static Low NotYet
        "How often segments for the remote tier are looked for.";
}
