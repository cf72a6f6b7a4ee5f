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
    broker_keys().find(|key| key.name == name)
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
}
