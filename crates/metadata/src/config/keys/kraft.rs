use crate::config::definition::config_keys;

config_keys! {
    /// Identity, roles and the metadata quorum.
    KRAFT_KEYS;
    "process.roles" List none (list "broker" "controller") Static High Works
        "What the process is: broker, controller or both.";
    "node.id" Int none [0, 2147483647] Static High Works
        "The number of this node, unique in the cluster and for ever.";
    "broker.id" Int "-1" [-1, 2147483647] Static High Works
        "Old name of node.id; taken when node.id is absent.";
    "controller.listener.names" List none any Static High Works
        "Names of the listeners that controllers use. On a broker the first one says how to \
         reach them.";
    "controller.quorum.voters" List "" any Static High Works
        "Static voters as id@host:port, separated by commas. Empty for a quorum that keeps its \
         voters in the log.";
    "controller.quorum.bootstrap.servers" List "" any Static High Works
        "Addresses of controllers, for finding a quorum that keeps its voters in the log.";
    "controller.quorum.auto.join.enable" Boolean "false" any Static Low NotYet
        "Whether a new controller asks to become a voter by itself.";
    "controller.quorum.election.timeout.ms" Int "1000" [0, 2147483647] Static High NotYet
        "How long a voter waits for votes before it tries again.";
    "controller.quorum.fetch.timeout.ms" Int "2000" [0, 2147483647] Static High Works
        "How long a broker goes without news of the leader before it looks for another. No use yet \
         for voters: there is one.";
    "controller.quorum.election.backoff.max.ms" Int "1000" [0, 2147483647] Static High NotYet
        "Longest random pause before a new election.";
    "controller.quorum.request.timeout.ms" Int "2000" [0, 2147483647] Static Medium Works
        "How long a fetch of the metadata log may take.";
    "controller.quorum.retry.backoff.ms" Int "20" [0, 2147483647] Static Low Works
        "Pause before a fetch of the metadata log is sent again, doubled each time.";
    "controller.quorum.append.linger.ms" Int "25" [0, 2147483647] Static Medium NotYet
        "How long the leader gathers records before it writes them. A lone voter gathers while a \
         sync runs.";
    "controller.quorum.fetch.max.bytes" Int "1048576" [1, 2147483647] Static Low Works
        "Most bytes of the metadata log in one fetch.";
    "controller.quorum.fetch.snapshot.max.bytes" Int "1048576" [1, 2147483647] Static Low Works
        "Most bytes of a metadata snapshot in one fetch.";
    "broker.heartbeat.interval.ms" Int "2000" [1, 2147483647] Static Medium Works
        "Time between two heartbeats of a broker to the controller.";
    "broker.session.timeout.ms" Int "9000" [1, 2147483647] Static Medium Works
        "A broker that is not heard of for this long is fenced.";
    "initial.broker.registration.timeout.ms" Int "60000" [0, 2147483647] Static Medium Works
        "A broker that cannot register within this time gives up.";
    "metadata.log.dir" String none any Static High Works
        "Where the metadata log lives; the first of log.dirs when absent.";
    "metadata.log.segment.bytes" Int "1073741824" [8388608, 2147483647] Static High Works
        "Size at which a segment of the metadata log ends.";
    "internal.metadata.log.segment.bytes" Int none [1024, 2147483647] Static Low Works
        "For tests: size at which a segment of the metadata log ends, without the lower bound.";
    "metadata.log.segment.ms" Long "604800000" [1] Static High Works
        "Age at which a segment of the metadata log ends.";
    "metadata.log.max.record.bytes.between.snapshots" Long "20971520" [1] Static High Works
        "A metadata snapshot is written once this many bytes of records came after the last one.";
    "metadata.log.max.snapshot.interval.ms" Long "3600000" [0] Static High Works
        "A metadata snapshot is written this long after the last one, if anything changed. Zero: \
         never by time.";
    "metadata.max.retention.bytes" Long "104857600" [-1] Static High Works
        "Old metadata segments and snapshots go once log and snapshots take more than this.";
    "metadata.max.retention.ms" Long "604800000" [-1] Static High Works
        "Old metadata segments and snapshots go at this age.";
    "metadata.max.idle.interval.ms" Int "500" [0, 2147483647] Static Low Works
        "How often an idle controller writes a NoOp record. Zero: never. See \
         metadata.noop.min.interval.ms.";
    "internal.metadata.max.batch.size.in.bytes" Int "8388608" [1, 2147483647] Static Low NotYet
        "For tests: largest batch of metadata records.";
    "internal.metadata.max.fetch.size.in.bytes" Int "8388608" [1, 2147483647] Static Low NotYet
        "For tests: largest fetch of metadata records.";
    "internal.metadata.delete.delay.millis" Int "60000" [0, 2147483647] Static Low Works
        "For tests: how long a retired metadata file stays.";
    "server.max.startup.time.ms" Long "9223372036854775807" [0] Static Medium NotYet
        "Longest that a start may take.";
    "controller.performance.sample.period.ms" Long "60000" [100] Static Low NotYet
        "How often slow controller events are looked at.";
    "controller.performance.always.log.threshold.ms" Long "2000" [0] Static Low NotYet
        "Controller events slower than this are always logged.";
    "unstable.api.versions.enable" Boolean "false" any Static Low NotYet
        "Whether versions of APIs that are still in development are offered.";
    "unstable.feature.versions.enable" Boolean "false" any Static Low NotYet
        "Whether feature levels that are still in development may be finalised.";
}
