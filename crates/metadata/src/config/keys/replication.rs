use crate::config::definition::config_keys;

config_keys! {
    /// Replicas, elections and fetching.
    REPLICATION_KEYS;
    "default.replication.factor" Int "1" [1, 32767] Static Medium Works
        "Replicas of a topic that is made without a number of its own.";
    "min.insync.replicas" Int "1" [1, 2147483647] ClusterWide High Works
        "A write with acks=all is refused while fewer replicas than this are in sync.";
    "unclean.leader.election.enable" Boolean "false" any ClusterWide High Works
        "Whether a replica from outside the ISR may lead when no other can. Committed records \
         can be lost.";
    "unclean.leader.election.interval.ms" Long "300000" [1] Static Low NotYet
        "How often leaderless partitions are looked at where unclean election is on.";
    "replica.lag.time.max.ms" Long "10000" [1] Static High Works
        "A follower that has not caught up for this long leaves the ISR. Kafka's default is 30000.";
    "num.replica.fetchers" Int "1" [1, 2147483647] ClusterWide High NotYet
        "Fetchers per leader broker.";
    "replica.fetch.wait.max.ms" Int "500" [0, 2147483647] Static High Works
        "Longest that a follower's fetch waits for records.";
    "replica.fetch.min.bytes" Int "1" [0, 2147483647] Static High Works
        "A follower's fetch waits until this many bytes are there.";
    "replica.fetch.max.bytes" Int "1048576" [0, 2147483647] Static Medium Works
        "Most bytes of one partition in a follower's fetch.";
    "replica.fetch.response.max.bytes" Int "10485760" [0, 2147483647] Static Medium Works
        "Most bytes in one answer to a follower.";
    "replica.fetch.backoff.ms" Int "1000" [0, 2147483647] Static Medium Works
        "Pause after a failed fetch of a partition.";
    "replica.socket.timeout.ms" Int "30000" [1, 2147483647] Static High Works
        "How long a follower waits for an answer.";
    "replica.socket.receive.buffer.bytes" Int "65536" [-1, 2147483647] Static High NotYet
        "Receive buffer of a follower's socket.";
    "replica.high.watermark.checkpoint.interval.ms" Long "5000" [1] Static High Works
        "How often high watermarks are written to disk.";
    "replica.selector.class" String none any Static Medium NotYet
        "How a consumer's nearest replica is picked.";
    "auto.leader.rebalance.enable" Boolean "true" any Static High Works
        "Whether leadership moves back to preferred leaders by itself.";
    "leader.imbalance.check.interval.seconds" Long "300" [1] Static High Works
        "How often preferred leaders are looked at.";
    "leader.imbalance.per.broker.percentage" Int "10" [0, 2147483647] Static High NotYet
        "Part of partitions led by other than their preferred leader that is let be. Without \
         effect in KRaft.";
    "controlled.shutdown.enable" Boolean "true" any Static Medium Works
        "Whether a stopping broker hands over its partitions first.";
    "controlled.shutdown.max.retries" Int "3" [0, 2147483647] Static Medium NotYet
        "Kept for old files. Without effect in KRaft.";
    "controlled.shutdown.retry.backoff.ms" Long "5000" [0] Static Medium NotYet
        "Kept for old files. Without effect in KRaft.";
    "fetch.purgatory.purge.interval.requests" Int "1000" any Static Medium NotYet
        "Kept for old files: waiting fetches are dropped at once here.";
    "producer.purgatory.purge.interval.requests" Int "1000" any Static Medium NotYet
        "Kept for old files: waiting produce requests are dropped at once here.";
    "delete.records.purgatory.purge.interval.requests" Int "1" any Static Medium NotYet
        "Kept for old files.";
    "max.incremental.fetch.session.cache.slots" Int "1000" [0, 2147483647] Static Medium Works
        "Fetch sessions that are kept at most.";
    "fetch.max.bytes" Int "57671680" [1024, 2147483647] Static Medium Works
        "Most bytes in one fetch answer, whatever the client asks for.";
    "broker.rack" String none any Static Medium Works
        "The place of this broker; replicas of a partition are spread over racks.";
    "num.replica.alter.log.dirs.threads" Int none [1, 2147483647] Static High NotYet
        "Movers of replicas between log directories.";
    "auto.create.topics.enable" Boolean "true" any Static High Works
        "Whether a client that asks for a topic that is not there may have it made.";
    "num.partitions" Int "1" [1, 2147483647] Static Medium Works
        "Partitions of a topic that is made without a number of its own.";
    "delete.topic.enable" Boolean "true" any Static High Works
        "Whether topics can be deleted.";
    "create.topic.policy.class.name" Class none any Static Low NotYet
        "Java policy that may refuse new topics: not run here.";
    "alter.config.policy.class.name" Class none any Static Low NotYet
        "Java policy that may refuse new configs: not run here.";
    "leader.replication.throttled.rate" Long "9223372036854775807" [0] PerBroker Medium NotYet
        "Bytes a second that throttled leaders send to replicas that are not in sync.";
    "follower.replication.throttled.rate" Long "9223372036854775807" [0] PerBroker Medium NotYet
        "Bytes a second that throttled followers fetch.";
    "replica.alter.log.dirs.io.max.bytes.per.second" Long "9223372036854775807" [0]
        PerBroker Medium NotYet
        "Bytes a second for moves between log directories.";
}
