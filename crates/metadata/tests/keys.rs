//! Every key of Kafka's `server.properties` that is written down in the reference, with Kafka's
//! default: each is accepted, and said once when it has no effect yet.

use highwater_metadata::config::{
    BrokerConfig, ConfigNotice, Effect, broker_key, parse_properties, topic_key,
};

/// Keys and defaults; `-` is null, `?` a key that has to be given or has no one default.
const KEYS: &str = "
    default.replication.factor 1
    replica.lag.time.max.ms ?
    min.insync.replicas 1
    unclean.leader.election.enable false
    num.replica.fetchers 1
    replica.fetch.wait.max.ms 500
    replica.fetch.min.bytes 1
    replica.fetch.max.bytes 1048576
    replica.fetch.response.max.bytes 10485760
    replica.fetch.backoff.ms 1000
    replica.socket.timeout.ms 30000
    replica.socket.receive.buffer.bytes 65536
    replica.high.watermark.checkpoint.interval.ms 5000
    replica.selector.class -
    auto.leader.rebalance.enable true
    leader.imbalance.check.interval.seconds 300
    unclean.leader.election.interval.ms 300000
    controlled.shutdown.enable true
    fetch.purgatory.purge.interval.requests 1000
    producer.purgatory.purge.interval.requests 1000
    max.incremental.fetch.session.cache.slots 1000
    fetch.max.bytes 57671680
    broker.rack -
    inter.broker.listener.name -
    security.inter.broker.protocol PLAINTEXT
    auto.create.topics.enable true
    num.partitions 1
    log.dir ?
    log.dirs -
    log.segment.bytes 1073741824
    log.roll.hours 168
    log.roll.ms -
    log.roll.jitter.hours 0
    log.retention.hours 168
    log.retention.minutes -
    log.retention.ms -
    log.retention.bytes -1
    log.retention.check.interval.ms 300000
    log.cleanup.policy delete
    log.index.size.max.bytes 10485760
    log.index.interval.bytes 4096
    log.flush.interval.messages 9223372036854775807
    log.flush.interval.ms -
    log.flush.scheduler.interval.ms 9223372036854775807
    log.flush.offset.checkpoint.interval.ms 60000
    log.flush.start.offset.checkpoint.interval.ms 60000
    log.segment.delete.delay.ms 60000
    message.max.bytes 1048588
    log.message.timestamp.type CreateTime
    log.message.timestamp.before.max.ms 9223372036854775807
    log.message.timestamp.after.max.ms 3600000
    compression.type producer
    log.preallocate false
    num.recovery.threads.per.data.dir 2
    log.dir.failure.timeout.ms 30000
    delete.topic.enable true
    log.cleaner.threads 1
    log.cleaner.dedupe.buffer.size 134217728
    log.cleaner.io.buffer.size 524288
    log.cleaner.backoff.ms 15000
    log.cleaner.min.cleanable.ratio 0.5
    log.cleaner.delete.retention.ms 86400000
    log.cleaner.min.compaction.lag.ms 0
    log.cleaner.max.compaction.lag.ms 9223372036854775807
    offsets.topic.num.partitions 50
    offsets.topic.replication.factor 3
    offsets.topic.segment.bytes 104857600
    offsets.retention.minutes 10080
    offsets.retention.check.interval.ms 600000
    offset.metadata.max.bytes 4096
    offsets.commit.timeout.ms 5000
    group.initial.rebalance.delay.ms 3000
    group.min.session.timeout.ms 6000
    group.max.session.timeout.ms 1800000
    group.max.size 2147483647
    group.coordinator.threads ?
    group.coordinator.append.linger.ms ?
    group.coordinator.rebalance.protocols ?
    group.consumer.assignors ?
    group.consumer.session.timeout.ms 45000
    group.consumer.heartbeat.interval.ms 5000
    group.share.session.timeout.ms 45000
    group.share.heartbeat.interval.ms 5000
    group.share.record.lock.duration.ms 30000
    group.share.delivery.count.limit 5
    group.consumer.migration.policy bidirectional
    transaction.state.log.num.partitions 50
    transaction.state.log.replication.factor 3
    transaction.state.log.min.isr 2
    transaction.state.log.segment.bytes 104857600
    transaction.max.timeout.ms 900000
    transactional.id.expiration.ms 604800000
    transaction.abort.timed.out.transaction.cleanup.interval.ms 10000
    transaction.remove.expired.transaction.cleanup.interval.ms 3600000
    producer.id.expiration.ms 86400000
    transaction.partition.verification.enable true
    listeners ?
    advertised.listeners -
    listener.security.protocol.map ?
    num.network.threads 3
    num.io.threads 8
    background.threads 10
    queued.max.requests 500
    socket.send.buffer.bytes 102400
    socket.receive.buffer.bytes 102400
    socket.request.max.bytes 104857600
    socket.listen.backlog.size 50
    connections.max.idle.ms 600000
    max.connections 2147483647
    max.connections.per.ip 2147483647
    connection.failed.authentication.delay.ms 100
    request.timeout.ms 30000
    quota.window.num 11
    quota.window.size.seconds 1
    replication.quota.window.num 11
    replication.quota.window.size.seconds 1
    leader.replication.throttled.rate 9223372036854775807
    follower.replication.throttled.rate 9223372036854775807
    process.roles ?
    node.id ?
    controller.listener.names ?
    controller.quorum.voters ?
    controller.quorum.bootstrap.servers ?
    broker.heartbeat.interval.ms 2000
    broker.session.timeout.ms 9000
    initial.broker.registration.timeout.ms 60000
    controller.quorum.election.timeout.ms 1000
    controller.quorum.fetch.timeout.ms 2000
    controller.quorum.election.backoff.max.ms 1000
    controller.quorum.request.timeout.ms 2000
    controller.quorum.retry.backoff.ms 20
    controller.quorum.append.linger.ms 25
    metadata.log.segment.bytes 1073741824
    metadata.log.segment.ms 604800000
    metadata.log.max.record.bytes.between.snapshots 20971520
    metadata.log.max.snapshot.interval.ms 3600000
    metadata.max.retention.bytes 104857600
    metadata.max.retention.ms 604800000
    metadata.max.idle.interval.ms 500
";

/// Topic keys whose names are not their broker key's.
const TOPIC_KEYS: &str = "
    segment.bytes 1073741824
    segment.ms 604800000
    segment.jitter.ms 0
    retention.ms 604800000
    retention.bytes -1
    cleanup.policy delete
    segment.index.bytes 10485760
    index.interval.bytes 4096
    flush.messages 9223372036854775807
    flush.ms 9223372036854775807
    file.delete.delay.ms 60000
    max.message.bytes 1048588
    message.timestamp.type CreateTime
    message.timestamp.before.max.ms 9223372036854775807
    message.timestamp.after.max.ms 3600000
    compression.type producer
    preallocate false
    min.insync.replicas 1
    unclean.leader.election.enable false
    min.cleanable.dirty.ratio 0.5
    delete.retention.ms 86400000
    min.compaction.lag.ms 0
    max.compaction.lag.ms 9223372036854775807
    remote.storage.enable false
    local.retention.ms -2
    local.retention.bytes -2
    leader.replication.throttled.replicas ?
    follower.replication.throttled.replicas ?
";

fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|line| line.trim().split_once(' '))
}

#[test]
fn server_properties_keys_are_known_with_kafkas_defaults() {
    let mut wrong = Vec::new();
    for (name, default) in rows(KEYS) {
        let Some(key) = broker_key(name) else {
            wrong.push(format!("{name} is not known"));
            continue;
        };
        if default != "?" && key.default.unwrap_or("-") != default {
            wrong.push(format!("{name} is {:?}, not {default}", key.default));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(rows(KEYS).count() > 130);
}

#[test]
fn topic_keys_are_known_with_kafkas_defaults() {
    for (name, default) in rows(TOPIC_KEYS) {
        let key = topic_key(name).unwrap_or_else(|| panic!("{name} is not known"));
        if default != "?" {
            assert_eq!(key.default.unwrap_or("-"), default, "{name}");
        }
    }
}

#[test]
fn server_properties_keys_are_all_accepted_and_idle_ones_said_once() {
    let mut text = String::new();
    for (name, default) in rows(KEYS) {
        let value = match default {
            "-" => continue,
            "?" => match broker_key(name).and_then(|key| key.default) {
                Some(value) => value,
                None => continue,
            },
            value => value,
        };
        text.push_str(&format!("{name}={value}\n"));
    }
    let properties = parse_properties(&text).expect("well formed");
    let count = properties.len();
    assert!(count > 110, "{count}");
    let (_, notices) = BrokerConfig::new(&properties).expect("each default is a value");
    let mut idle = 0;
    for notice in &notices {
        let ConfigNotice::NoEffectYet { key, .. } = notice else {
            panic!("{notice}")
        };
        let told = notices
            .iter()
            .filter(|it| it.to_string().contains(&format!(" {key} is ")));
        assert!(told.count() <= 1, "{key} is said once");
        idle += 1;
    }
    let expected = properties.iter().filter(|it| {
        let key = broker_key(&it.key).expect("known");
        matches!(key.effect, Effect::NotYet)
    });
    assert_eq!(
        idle,
        expected.count(),
        "exactly those without effect are said"
    );
}
