use crate::config::definition::config_keys;

config_keys! {
    /// Keys that only Highwater has.
    OWN_KEYS;
    "num.shards" Int "1" [1, 64] Static Medium Works
        "Data shards of the node. Each owns a part of the partitions and runs on a thread of its \
         own.";
    "max.inbound.memory.bytes" Long "134217728" [1048576] Static High Works
        "Most memory that requests on their way in may take in all, over all connections. Beyond \
         it reads pause.";
    "max.inbound.memory.per.connection.bytes" Long "104857700" [65536] Static Medium Works
        "Most memory that requests on their way in may take on one connection.";
    "max.waiting.requests.per.connection" Int "64" [1, 65536] Static Low Works
        "Most requests of one connection that may wait for their answer at once.";
    "max.decompressed.batch.bytes" Long "268435456" [1024] Static Medium Works
        "A record batch that unpacks to more than this is refused with MESSAGE_TOO_LARGE.";
    "max.incremental.fetch.session.partitions" Long "100000" [1000] Static Medium Works
        "Partitions that all fetch sessions of the node together may remember, and as many again \
         for fetches that wait without a session. Each takes about 400 bytes. A client for whom \
         there is no room gets no session (KIP-227), or an answer at once in place of a wait.";
    "connection.handshake.timeout.ms" Long "10000" [1] Static Low Works
        "A connection that has not sent a whole first request within this time is closed.";
    "metadata.noop.min.interval.ms" Long "60000" [0] Static Low Works
        "While nothing happens, the metadata log of a lone voter gets a NoOp record no more \
         often than this.";
}
