use crate::config::definition::config_keys;

config_keys! {
    /// Listeners, sockets, quotas and metrics.
    NETWORK_KEYS;
    "listeners" List "PLAINTEXT://:9092" any PerBroker High Works
        "Where the node listens: NAME://HOST:PORT, separated by commas. Port 0 picks a free one.";
    "advertised.listeners" List none any Static High Works
        "What clients are told to connect to; listeners when absent.";
    "listener.security.protocol.map" String
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT" any
        PerBroker Low Works
        "Which protocol each listener speaks, as NAME:PROTOCOL, separated by commas.";
    "inter.broker.listener.name" String none any Static Medium Works
        "The listener by which brokers reach each other.";
    "security.inter.broker.protocol" String
        "PLAINTEXT" { "PLAINTEXT" "SSL" "SASL_PLAINTEXT" "SASL_SSL" } Static Medium NotYet
        "The protocol between brokers, when inter.broker.listener.name is absent.";
    "control.plane.listener.name" String none any Static High NotYet
        "Kept for old files. Without effect in KRaft.";
    "early.start.listeners" String none any Static Low NotYet
        "Listeners that open before the node is ready.";
    "num.network.threads" Int "3" [1, 2147483647] ClusterWide High NotYet
        "Kept for old files: each shard serves its own connections, see num.shards.";
    "num.io.threads" Int "8" [1, 2147483647] ClusterWide High NotYet
        "Kept for old files: see num.shards.";
    "background.threads" Int "10" [1, 2147483647] ClusterWide High NotYet
        "Kept for old files: blocking work has a pool per log directory.";
    "queued.max.requests" Int "500" [1, 2147483647] Static High NotYet
        "Kept for old files: see max.inbound.memory.bytes.";
    "queued.max.request.bytes" Long "-1" any Static Medium NotYet
        "Kept for old files: see max.inbound.memory.bytes.";
    "socket.send.buffer.bytes" Int "102400" [-1, 2147483647] Static High Works
        "Send buffer of a socket. -1: the system's own.";
    "socket.receive.buffer.bytes" Int "102400" [-1, 2147483647] Static High Works
        "Receive buffer of a socket. -1: the system's own.";
    "socket.request.max.bytes" Int "104857600" [1, 2147483647] Static High Works
        "Largest request that is read; a larger one closes the connection.";
    "socket.listen.backlog.size" Int "50" [1, 2147483647] Static Medium Works
        "Connections that may wait to be accepted.";
    "socket.connection.setup.timeout.ms" Long "10000" [1] Static Medium NotYet
        "Longest that a connection to another node may take.";
    "socket.connection.setup.timeout.max.ms" Long "30000" [1] Static Medium NotYet
        "Longest that a connection to another node may take after many failures.";
    "connections.max.idle.ms" Long "600000" [-1] Static Medium Works
        "A connection without a request for this long is closed. -1: never.";
    "connections.max.reauth.ms" Long "0" [0] Static Medium NotYet
        "How long a login lasts.";
    "max.connections" Int "2147483647" [0, 2147483647] ClusterWide Medium Works
        "Most connections of the node.";
    "max.connections.per.ip" Int "2147483647" [0, 2147483647] ClusterWide Medium Works
        "Most connections from one address.";
    "max.connections.per.ip.overrides" String "" any ClusterWide Medium NotYet
        "Other limits for single addresses, as HOST:COUNT, separated by commas.";
    "max.connection.creation.rate" Int "2147483647" [0, 2147483647] ClusterWide Medium NotYet
        "New connections a second.";
    "connection.failed.authentication.delay.ms" Int "100" [0, 2147483647] Static Low NotYet
        "How long a failed login waits for its answer.";
    "request.timeout.ms" Int "30000" [1, 2147483647] Static High Works
        "How long a request to another node may take.";
    "quota.window.num" Int "11" [1, 2147483647] Static Low NotYet
        "Samples that a quota looks back on.";
    "quota.window.size.seconds" Int "1" [1, 2147483647] Static Low NotYet
        "Length of a quota's sample.";
    "replication.quota.window.num" Int "11" [1, 2147483647] Static Low NotYet
        "Samples that a replication quota looks back on.";
    "replication.quota.window.size.seconds" Int "1" [1, 2147483647] Static Low NotYet
        "Length of a replication quota's sample.";
    "alter.log.dirs.replication.quota.window.num" Int "11" [1, 2147483647] Static Low NotYet
        "Samples that the quota of moves between directories looks back on.";
    "alter.log.dirs.replication.quota.window.size.seconds" Int "1" [1, 2147483647] Static Low NotYet
        "Length of a sample of the quota of moves between directories.";
    "controller.quota.window.num" Int "11" [1, 2147483647] Static Low NotYet
        "Samples that the quota of controller changes looks back on.";
    "controller.quota.window.size.seconds" Int "1" [1, 2147483647] Static Low NotYet
        "Length of a sample of the quota of controller changes.";
    "client.quota.callback.class" Class none any Static Low NotYet
        "Java class that computes quotas: not run here.";
    "producer_byte_rate" Long none [1] ClusterWide Medium NotYet
        "Quota key: bytes a second that a client may produce.";
    "consumer_byte_rate" Long none [1] ClusterWide Medium NotYet
        "Quota key: bytes a second that a client may fetch.";
    "request_percentage" Double none any ClusterWide Medium NotYet
        "Quota key: part of the node's time that a client may take.";
    "controller_mutation_rate" Double none any ClusterWide Medium NotYet
        "Quota key: partitions a second that a client may make or delete.";
    "connection_creation_rate" Int none [1, 2147483647] ClusterWide Medium NotYet
        "Quota key: connections a second from one address.";
    "metric.reporters" List "org.apache.kafka.common.metrics.JmxReporter" any ClusterWide Low NotYet
        "Java classes that metrics go to: not run here.";
    "metrics.num.samples" Int "2" [1, 2147483647] Static Low NotYet
        "Samples that a metric looks back on.";
    "metrics.sample.window.ms" Long "30000" [1] Static Low NotYet
        "Length of a metric's sample.";
    "metrics.recording.level" String "INFO" { "INFO" "DEBUG" "TRACE" } Static Low NotYet
        "Which metrics are kept.";
    "telemetry.max.bytes" Int "1048576" [1, 2147483647] Static Low NotYet
        "Most bytes of metrics that a client may push at once.";
    "kafka.metrics.reporters" List "" any Static Low NotYet
        "Java classes that old metrics go to: not run here.";
    "kafka.metrics.polling.interval.secs" Int "10" [1, 2147483647] Static Low NotYet
        "How often old metrics are polled.";
}
