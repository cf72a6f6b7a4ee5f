use crate::config::definition::config_keys;

config_keys! {
    /// Transactions and idempotent producers.
    TRANSACTION_KEYS;
    "transaction.state.log.num.partitions" Int "50" [1, 2147483647] Static High NotYet
        "Partitions of the topic that keeps transactions.";
    "transaction.state.log.replication.factor" Short "3" [1, 32767] Static High NotYet
        "Replicas of the topic that keeps transactions.";
    "transaction.state.log.min.isr" Int "2" [1, 2147483647] Static High NotYet
        "Minimum in-sync replicas of the topic that keeps transactions.";
    "transaction.state.log.segment.bytes" Int "104857600" [1, 2147483647] Static High NotYet
        "Segment size of the topic that keeps transactions.";
    "transaction.state.log.load.buffer.size" Int "5242880" [1, 2147483647] Static High NotYet
        "Bytes read at a time when transactions are loaded.";
    "transaction.max.timeout.ms" Int "900000" [1, 2147483647] Static High Works
        "Longest timeout that a transaction may ask for.";
    "transactional.id.expiration.ms" Int "604800000" [1, 2147483647] Static High NotYet
        "How long an unused transactional id is kept.";
    "transaction.abort.timed.out.transaction.cleanup.interval.ms" Int "10000" [1, 2147483647]
        Static Low NotYet
        "How often transactions that took too long are looked for.";
    "transaction.remove.expired.transaction.cleanup.interval.ms" Int "3600000" [1, 2147483647]
        Static Low NotYet
        "How often unused transactional ids are looked for.";
    "transaction.partition.verification.enable" Boolean "true" any ClusterWide Low NotYet
        "Whether a leader asks the coordinator before it takes the first record of a transaction.";
    "transaction.two.phase.commit.enable" Boolean "false" any Static Low NotYet
        "Whether transactions may be prepared from outside.";
    "producer.id.expiration.ms" Int "86400000" [1, 2147483647] ClusterWide Low Works
        "How long the state of a silent producer is kept in each partition.";
    "producer.id.expiration.check.interval.ms" Int "600000" [1, 2147483647] Static Low Works
        "How often silent producers are looked for.";
}
