use crate::config::definition::config_keys;

config_keys! {
    /// Consumer, share and streams groups.
    GROUP_KEYS;
    "offsets.topic.num.partitions" Int "50" [1, 2147483647] Static High Works
        "Partitions of the topic that keeps committed offsets.";
    "offsets.topic.replication.factor" Short "3" [1, 32767] Static High Works
        "Replicas of the topic that keeps committed offsets. Unset: 3, or fewer with few brokers.";
    "offsets.topic.segment.bytes" Int "104857600" [1, 2147483647] Static High Works
        "Segment size of the topic that keeps committed offsets.";
    "offsets.topic.compression.codec" Int "0" [0, 4] Static High Works
        "Codec of the topic that keeps committed offsets.";
    "offsets.load.buffer.size" Int "5242880" [1, 2147483647] Static High Works
        "Bytes read at a time when committed offsets are loaded.";
    "offsets.retention.minutes" Int "10080" [1, 2147483647] Static High Works
        "How long the offsets of an empty group are kept.";
    "offsets.retention.check.interval.ms" Long "600000" [1] Static High Works
        "How often old offsets are looked for.";
    "offset.metadata.max.bytes" Int "4096" [0, 2147483647] Static High Works
        "Longest text that comes with a committed offset.";
    "offsets.commit.timeout.ms" Int "5000" [1, 2147483647] Static High Works
        "Longest that a commit waits for its replicas.";
    "group.initial.rebalance.delay.ms" Int "3000" [0, 2147483647] Static Medium Works
        "How long a new group waits for more members.";
    "group.min.session.timeout.ms" Int "6000" [0, 2147483647] Static Medium Works
        "Shortest session timeout that a member may ask for.";
    "group.max.session.timeout.ms" Int "1800000" [0, 2147483647] Static Medium Works
        "Longest session timeout that a member may ask for.";
    "group.max.size" Int "2147483647" [1, 2147483647] Static Medium Works
        "Most members of a group.";
    "group.coordinator.threads" Int "4" [1, 2147483647] Static High NotYet
        "Kept for old files: coordinators live on their shards here.";
    "group.coordinator.append.linger.ms" Int "-1" [-1, 2147483647] Static Medium NotYet
        "How long a coordinator gathers records before it writes them. -1: as long as it pays.";
    "group.coordinator.rebalance.protocols" List
        "classic,consumer,streams" (list "classic" "consumer" "share" "streams")
        Static Medium NotYet
        "Group protocols that are served.";
    "group.coordinator.cached.buffer.max.bytes" Int "1048588" [524288, 2147483647]
        ClusterWide Medium NotYet
        "Largest buffer that a coordinator keeps for its next write.";
    "group.consumer.assignors" List "uniform,range" any Static Medium NotYet
        "Assignors that the broker offers, the default first.";
    "group.consumer.migration.policy" String
        "bidirectional" { "disabled" "upgrade" "downgrade" "bidirectional" } Static Medium NotYet
        "Which groups may change between the classic and the consumer protocol.";
    "group.consumer.max.size" Int "2147483647" [1, 2147483647] Static Medium NotYet
        "Most members of a group of the consumer protocol.";
    "group.consumer.session.timeout.ms" Int "45000" [1, 2147483647] Static Medium NotYet
        "A member that is not heard of for this long is removed.";
    "group.consumer.min.session.timeout.ms" Int "45000" [1, 2147483647] Static Medium NotYet
        "Shortest session timeout that a group may be given.";
    "group.consumer.max.session.timeout.ms" Int "60000" [1, 2147483647] Static Medium NotYet
        "Longest session timeout that a group may be given.";
    "group.consumer.heartbeat.interval.ms" Int "5000" [1, 2147483647] Static Medium NotYet
        "Time between two heartbeats of a member.";
    "group.consumer.min.heartbeat.interval.ms" Int "5000" [1, 2147483647] Static Medium NotYet
        "Shortest heartbeat interval that a group may be given.";
    "group.consumer.max.heartbeat.interval.ms" Int "15000" [1, 2147483647] Static Medium NotYet
        "Longest heartbeat interval that a group may be given.";
    "group.consumer.regex.refresh.interval.ms" Int "600000" [10000, 2147483647] Static Medium NotYet
        "How often subscriptions by pattern are looked at again.";
    "group.share.session.timeout.ms" Int "45000" [1, 2147483647] Static Medium NotYet
        "A member of a share group that is not heard of for this long is removed.";
    "group.share.min.session.timeout.ms" Int "45000" [1, 2147483647] Static Medium NotYet
        "Shortest session timeout of a share group.";
    "group.share.max.session.timeout.ms" Int "60000" [1, 2147483647] Static Medium NotYet
        "Longest session timeout of a share group.";
    "group.share.heartbeat.interval.ms" Int "5000" [1, 2147483647] Static Medium NotYet
        "Time between two heartbeats of a member of a share group.";
    "group.share.min.heartbeat.interval.ms" Int "5000" [1, 2147483647] Static Medium NotYet
        "Shortest heartbeat interval of a share group.";
    "group.share.max.heartbeat.interval.ms" Int "15000" [1, 2147483647] Static Medium NotYet
        "Longest heartbeat interval of a share group.";
    "group.share.max.size" Int "200" [1, 1000] Static Medium NotYet
        "Most members of a share group.";
    "group.share.assignors" List "simple" any Static Medium NotYet
        "Assignors for share groups.";
    "group.share.delivery.count.limit" Int "5" [2, 10] Static Medium NotYet
        "How often a record is offered before it is given up.";
    "group.share.record.lock.duration.ms" Int "30000" [1000, 3600000] Static Medium NotYet
        "How long a record stays with the consumer that took it.";
    "group.share.min.record.lock.duration.ms" Int "15000" [1000, 30000] Static Medium NotYet
        "Shortest record lock that a share group may be given.";
    "group.share.max.record.lock.duration.ms" Int "60000" [30000, 3600000] Static Medium NotYet
        "Longest record lock that a share group may be given.";
    "group.share.partition.max.record.locks" Int "2000" [100, 10000] Static Medium NotYet
        "Most records of a partition that are locked at once.";
    "group.share.max.share.sessions" Int "2000" [1, 2147483647] Static Medium NotYet
        "Most share sessions of a broker.";
    "share.coordinator.state.topic.num.partitions" Int "50" [1, 2147483647] Static High NotYet
        "Partitions of the topic that keeps the state of share groups.";
    "share.coordinator.state.topic.replication.factor" Short "3" [1, 32767] Static High NotYet
        "Replicas of the topic that keeps the state of share groups.";
    "share.coordinator.state.topic.min.isr" Short "2" [1, 32767] Static High NotYet
        "Minimum in-sync replicas of the topic that keeps the state of share groups.";
    "share.coordinator.state.topic.segment.bytes" Int "104857600" [1, 2147483647] Static High NotYet
        "Segment size of the topic that keeps the state of share groups.";
    "group.streams.session.timeout.ms" Int "45000" [1, 2147483647] Static Medium NotYet
        "A member of a streams group that is not heard of for this long is removed.";
    "group.streams.heartbeat.interval.ms" Int "5000" [1, 2147483647] Static Medium NotYet
        "Time between two heartbeats of a member of a streams group.";
    "group.streams.max.size" Int "2147483647" [1, 2147483647] Static Medium NotYet
        "Most members of a streams group.";
    "group.streams.num.standby.replicas" Int "0" [0, 2147483647] Static Medium NotYet
        "Standby tasks of a streams group.";
}
