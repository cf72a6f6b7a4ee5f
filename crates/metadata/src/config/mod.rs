//! Every config key of broker and topic: one definition each, and all that follows from it.

mod broker;
mod definition;
mod effective;
mod keys;
mod nearest;
mod properties;
mod settings;
mod topic;
mod value;

use std::sync::OnceLock;

pub use broker::{BrokerConfig, ConfigNotice, ConfigProblem};
pub use definition::{ConfigKey, ConfigType, Effect, Importance, Update, Valid};
pub use effective::{
    ConfigEntry, ConfigLayers, ConfigSource, ConfigSynonym, describe_broker, describe_topic,
};
pub use nearest::nearest_broker_key;
pub use properties::{PropertiesError, Property, parse_properties};
pub use settings::{TimestampKind, TopicSettings};
pub use topic::{TopicConfigError, check_topic_configs};
pub use value::InvalidValue;

/// Every broker key, by table.
pub fn broker_keys() -> impl Iterator<Item = &'static ConfigKey> {
    keys::BROKER_TABLES.iter().copied().flatten()
}

/// Every topic key, by name.
pub fn topic_keys() -> impl Iterator<Item = &'static ConfigKey> {
    keys::TOPIC_KEYS.iter()
}

/// The definition of a broker key.
#[must_use]
pub fn broker_key(name: &str) -> Option<&'static ConfigKey> {
    static BY_NAME: OnceLock<Vec<&'static ConfigKey>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let mut keys: Vec<_> = broker_keys().collect();
        keys.sort_by_key(|key| key.name);
        keys
    });
    let at = by_name.binary_search_by(|key| key.name.cmp(name)).ok()?;
    by_name.get(at).copied()
}

/// The definition of a topic key.
#[must_use]
pub fn topic_key(name: &str) -> Option<&'static ConfigKey> {
    let at = keys::TOPIC_KEYS
        .binary_search_by(|key| key.name.cmp(name))
        .ok()?;
    keys::TOPIC_KEYS.get(at)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_topic_keys_sorted() {
        let names: BTreeSet<_> = broker_keys().map(|key| key.name).collect();
        assert_eq!(names.len(), broker_keys().count());
        assert!(keys::TOPIC_KEYS.is_sorted_by_key(|key| key.name));
        for key in topic_keys() {
            assert_eq!(topic_key(key.name), Some(key));
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_key() {
        for key in broker_keys().chain(topic_keys()) {
            if let Some(default) = key.default {
                assert_eq!(key.check(default), Ok(()), "{}", key.name);
            }
            assert!(key.doc.ends_with('.'), "{} is a sentence", key.name);
            assert!(key.doc.is_ascii(), "{}", key.name);
        }
    }

    #[test]
    fn a_topic_key_has_the_type_and_default_of_its_broker_key() {
        for (topic, brokers) in keys::TOPIC_SYNONYMS {
            let topic = topic_key(topic).expect("a synonym of a topic key");
            for (broker, unit) in *brokers {
                let broker = broker_key(broker).expect("a synonym is a broker key");
                if *unit == keys::Unit::Same && broker.default.is_some() {
                    assert_eq!(topic.default, broker.default, "{}", topic.name);
                    assert_eq!(topic.kind, broker.kind, "{}", topic.name);
                }
            }
        }
    }

    #[test]
    fn the_usual_keys_of_a_server_properties_file_are_known() {
        for name in "
            default.replication.factor replica.lag.time.max.ms min.insync.replicas num.partitions
            unclean.leader.election.enable num.replica.fetchers replica.fetch.wait.max.ms log.dirs
            replica.fetch.min.bytes replica.fetch.max.bytes replica.fetch.response.max.bytes
            replica.high.watermark.checkpoint.interval.ms replica.selector.class log.roll.hours
            auto.leader.rebalance.enable leader.imbalance.check.interval.seconds log.retention.ms
            controlled.shutdown.enable fetch.purgatory.purge.interval.requests log.segment.bytes
            producer.purgatory.purge.interval.requests max.incremental.fetch.session.cache.slots
            fetch.max.bytes broker.rack inter.broker.listener.name auto.create.topics.enable
            log.roll.ms log.roll.jitter.hours log.retention.hours log.retention.minutes
            log.retention.bytes log.retention.check.interval.ms log.cleanup.policy listeners
            log.index.size.max.bytes log.index.interval.bytes log.flush.interval.messages
            log.flush.interval.ms log.flush.scheduler.interval.ms message.max.bytes
            log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms
            log.segment.delete.delay.ms log.message.timestamp.type compression.type
            log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms
            num.recovery.threads.per.data.dir log.dir.failure.timeout.ms delete.topic.enable
            log.cleaner.threads log.cleaner.dedupe.buffer.size log.cleaner.min.cleanable.ratio
            offsets.topic.num.partitions offsets.topic.replication.factor offsets.retention.minutes
            group.initial.rebalance.delay.ms group.min.session.timeout.ms group.max.size
            group.coordinator.rebalance.protocols group.consumer.session.timeout.ms
            group.share.record.lock.duration.ms group.consumer.migration.policy
            transaction.state.log.num.partitions transaction.state.log.min.isr
            transaction.max.timeout.ms transactional.id.expiration.ms producer.id.expiration.ms
            transaction.partition.verification.enable advertised.listeners num.network.threads
            listener.security.protocol.map num.io.threads background.threads queued.max.requests
            socket.send.buffer.bytes socket.receive.buffer.bytes socket.request.max.bytes
            socket.listen.backlog.size connections.max.idle.ms max.connections
            max.connections.per.ip connection.failed.authentication.delay.ms request.timeout.ms
            quota.window.num quota.window.size.seconds leader.replication.throttled.rate
            process.roles node.id controller.listener.names controller.quorum.voters
            controller.quorum.bootstrap.servers broker.heartbeat.interval.ms
            broker.session.timeout.ms initial.broker.registration.timeout.ms
            controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms
            controller.quorum.append.linger.ms metadata.log.segment.bytes
            metadata.log.max.record.bytes.between.snapshots metadata.max.retention.bytes
            metadata.log.max.snapshot.interval.ms metadata.max.idle.interval.ms
            authorizer.class.name super.users sasl.enabled.mechanisms ssl.keystore.location
        "
        .split_whitespace()
        {
            assert!(broker_key(name).is_some(), "{name}");
        }
    }
}
