use std::collections::BTreeMap;

use crate::config::keys::{TOPIC_SYNONYMS, Unit};
use crate::config::{
    BrokerConfig, ConfigKey, ConfigType, Update, broker_key, broker_keys, topic_keys,
};

/// Where a value comes from, by Kafka's number in DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigSource {
    /// 1: set on the topic.
    DynamicTopic,
    /// 2: set at run time for one broker.
    DynamicBroker,
    /// 3: set at run time for all brokers.
    DynamicDefaultBroker,
    /// 4: from `server.properties` or the command line.
    StaticBroker,
    /// 5: nobody set it.
    Default,
}

impl ConfigSource {
    /// Kafka's number.
    #[must_use]
    pub const fn to_wire(self) -> i8 {
        match self {
            Self::DynamicTopic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefaultBroker => 3,
            Self::StaticBroker => 4,
            Self::Default => 5,
        }
    }
}

/// One place where a value, or the value of a key that stands for it, is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSynonym {
    /// The key that is set there.
    pub name: &'static str,
    /// Its value; `None` for a secret.
    pub value: Option<String>,
    /// Where.
    pub source: ConfigSource,
}

/// One config of a topic or broker as DescribeConfigs shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigEntry {
    /// The definition: name, type, doc.
    pub key: &'static ConfigKey,
    /// The value in force; `None` for null and for secrets.
    pub value: Option<String>,
    /// Where the value comes from, as Kafka shows it.
    pub source: ConfigSource,
    /// Cannot be changed at run time.
    pub read_only: bool,
    /// Everything that has a say, strongest first.
    pub synonyms: Vec<ConfigSynonym>,
}

/// The layers of a broker's config, strongest first; a topic's own configs lie above them.
#[derive(Clone, Copy, Debug)]
pub struct ConfigLayers<'a> {
    /// Dynamic configs of this broker.
    pub dynamic_broker: Option<&'a BTreeMap<String, String>>,
    /// Dynamic configs of all brokers.
    pub dynamic_default: Option<&'a BTreeMap<String, String>>,
    /// `server.properties` and command line.
    pub static_config: &'a BrokerConfig,
}

impl ConfigLayers<'_> {
    /// Every layer where `key` is set, strongest first, the default last.
    fn set_in(&self, key: &'static ConfigKey) -> impl Iterator<Item = (&str, ConfigSource)> {
        [
            (
                dynamic_value(self.dynamic_broker, key),
                ConfigSource::DynamicBroker,
            ),
            (
                dynamic_value(self.dynamic_default, key),
                ConfigSource::DynamicDefaultBroker,
            ),
            (
                self.static_config.static_value(key.name),
                ConfigSource::StaticBroker,
            ),
            (key.default, ConfigSource::Default),
        ]
        .into_iter()
        .filter_map(|(value, source)| value.map(|value| (value, source)))
    }

    /// What DescribeConfigs lists for keys that stand for each other: layer by layer, and within a
    /// layer the strongest key first; nothing before the first entry of the key `shown` is listed.
    fn synonyms(&self, shown: &str, names: &[(&'static str, Unit)]) -> Vec<ConfigSynonym> {
        let keys = names.iter().filter_map(|(name, _)| broker_key(name));
        let mut all: Vec<_> = keys
            .flat_map(|key| {
                self.set_in(key).map(move |(value, source)| ConfigSynonym {
                    name: key.name,
                    value: (!key.is_sensitive()).then(|| value.to_owned()),
                    source,
                })
            })
            .collect();
        all.sort_by_key(|synonym| synonym.source);
        all.into_iter()
            .skip_while(|synonym| synonym.name != shown)
            .collect()
    }

    /// The value in force of a topic key that the topic does not set, in the topic key's unit.
    /// The strongest layer wins, and within it the strongest key that is set.
    pub(crate) fn topic_default(&self, key: &'static ConfigKey) -> Option<String> {
        self.topic_value_by_layer(key)
            .or_else(|| key.default.map(str::to_owned))
    }

    fn topic_value_by_layer(&self, key: &'static ConfigKey) -> Option<String> {
        let (_, names) = TOPIC_SYNONYMS.iter().find(|(name, _)| *name == key.name)?;
        // A key with a finer unit wins over a coarser one whatever layer that is set in, except
        // that a default never wins over what somebody set.
        let mut fallback = None;
        for (name, unit) in *names {
            let broker = broker_key(name)?;
            for (value, source) in self.set_in(broker) {
                if broker.check(value).is_err() {
                    continue;
                }
                let value = unit.to_millis(value);
                if source != ConfigSource::Default {
                    return Some(value);
                }
                fallback = fallback.or(Some(value));
            }
        }
        fallback
    }
}

fn dynamic_value<'a>(
    layer: Option<&'a BTreeMap<String, String>>,
    key: &ConfigKey,
) -> Option<&'a str> {
    layer?.get(key.name).map(String::as_str)
}

impl Unit {
    fn to_millis(self, value: &str) -> String {
        let factor: i64 = match self {
            Self::Same => return value.to_owned(),
            Self::Minutes => 60_000,
            Self::Hours => 3_600_000,
        };
        match value.trim().parse::<i64>() {
            // Negative means never, in every unit.
            Ok(number) if number < 0 => "-1".to_owned(),
            Ok(number) => number.saturating_mul(factor).to_string(),
            Err(_) => value.to_owned(),
        }
    }
}

/// Every config of a topic, by name, with value, source and synonyms as Kafka shows them.
/// `own` are the topic's dynamic configs.
#[must_use]
pub fn describe_topic(
    layers: ConfigLayers<'_>,
    own: Option<&BTreeMap<String, String>>,
) -> Vec<ConfigEntry> {
    let entry = |key: &'static ConfigKey| {
        let set = own.and_then(|own| own.get(key.name)).cloned();
        // Kafka's internal keys are shown only where they are set.
        if set.is_none() && key.default.is_none() {
            return None;
        }
        let names = TOPIC_SYNONYMS.iter().find(|(name, _)| *name == key.name);
        let mut synonyms = names
            .and_then(|(_, names)| Some(layers.synonyms(names.first()?.0, names)))
            .unwrap_or_default();
        if let Some(value) = &set {
            let source = ConfigSource::DynamicTopic;
            synonyms.insert(
                0,
                ConfigSynonym {
                    name: key.name,
                    value: Some(value.clone()),
                    source,
                },
            );
        }
        let source = synonyms
            .first()
            .map_or(ConfigSource::Default, |first| first.source);
        let value = set.or_else(|| layers.topic_default(key));
        Some(ConfigEntry {
            key,
            value,
            source,
            read_only: false,
            synonyms,
        })
    };
    topic_keys().filter_map(entry).collect()
}

/// Every config of a broker, by name, with value, source and synonyms as Kafka shows them.
#[must_use]
pub fn describe_broker(layers: ConfigLayers<'_>) -> Vec<ConfigEntry> {
    let mut entries: Vec<_> = broker_keys()
        .map(|key| {
            let alone = [(key.name, Unit::Same)];
            let family = TOPIC_SYNONYMS
                .iter()
                .map(|(_, names)| *names)
                .find(|names| names.len() > 1 && names.iter().any(|(name, _)| *name == key.name));
            let synonyms = layers.synonyms(key.name, family.unwrap_or(&alone));
            let first = synonyms.first();
            ConfigEntry {
                key,
                value: first.and_then(|first| first.value.clone()),
                source: first.map_or(ConfigSource::Default, |first| first.source),
                read_only: key.update == Update::Static,
                synonyms,
            }
        })
        .collect();
    entries.sort_by_key(|entry| entry.key.name);
    entries
}

impl ConfigEntry {
    /// Kafka's number of the value's type.
    #[must_use]
    pub const fn kind(&self) -> ConfigType {
        self.key.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_properties;

    fn config(text: &str) -> BrokerConfig {
        BrokerConfig::new(&parse_properties(text).expect("well formed"))
            .expect("taken")
            .0
    }

    fn layers(static_config: &BrokerConfig) -> ConfigLayers<'_> {
        ConfigLayers {
            dynamic_broker: None,
            dynamic_default: None,
            static_config,
        }
    }

    fn shown(entries: &[ConfigEntry], name: &str) -> (String, i8, Vec<(String, String, i8)>) {
        let entry = entries
            .iter()
            .find(|it| it.key.name == name)
            .expect("listed");
        let synonyms = entry.synonyms.iter().map(|it| {
            (
                it.name.to_owned(),
                it.value.clone().unwrap_or_default(),
                it.source.to_wire(),
            )
        });
        (
            entry.value.clone().unwrap_or_default(),
            entry.source.to_wire(),
            synonyms.collect(),
        )
    }

    fn synonym(name: &str, value: &str, source: i8) -> (String, String, i8) {
        (name.to_owned(), value.to_owned(), source)
    }

    #[test]
    fn trap_22_sources_and_synonyms_are_kafkas() {
        // As the answer of a broker with these settings was seen.
        let static_config = config("log.index.size.max.bytes=4096\nmin.insync.replicas=2\n");
        let dynamic_default = BTreeMap::from([
            ("message.max.bytes".to_owned(), "2000000".to_owned()),
            ("min.insync.replicas".to_owned(), "2".to_owned()),
        ]);
        let layers = ConfigLayers {
            dynamic_default: Some(&dynamic_default),
            ..layers(&static_config)
        };
        let entries = describe_topic(layers, None);
        assert_eq!(entries.len(), 37);
        assert_eq!(
            shown(&entries, "min.insync.replicas"),
            (
                "2".to_owned(),
                3,
                vec![
                    synonym("min.insync.replicas", "2", 3),
                    synonym("min.insync.replicas", "2", 4),
                    synonym("min.insync.replicas", "1", 5),
                ]
            )
        );
        assert_eq!(
            shown(&entries, "max.message.bytes"),
            (
                "2000000".to_owned(),
                3,
                vec![
                    synonym("message.max.bytes", "2000000", 3),
                    synonym("message.max.bytes", "1048588", 5),
                ]
            )
        );
        assert_eq!(
            shown(&entries, "segment.index.bytes"),
            (
                "4096".to_owned(),
                4,
                vec![
                    synonym("log.index.size.max.bytes", "4096", 4),
                    synonym("log.index.size.max.bytes", "10485760", 5),
                ]
            )
        );
        // The broker key that DescribeConfigs names is null by default: no synonym is shown.
        assert_eq!(
            shown(&entries, "retention.ms"),
            ("604800000".to_owned(), 5, vec![])
        );
        assert_eq!(
            shown(&entries, "flush.ms"),
            (i64::MAX.to_string(), 5, vec![])
        );
    }

    #[test]
    fn hours_and_minutes_become_milliseconds() {
        let value = |text: &str| {
            let static_config = config(text);
            shown(
                &describe_topic(layers(&static_config), None),
                "retention.ms",
            )
            .0
        };
        assert_eq!(value("log.retention.hours=1\n"), "3600000");
        assert_eq!(
            value("log.retention.hours=1\nlog.retention.minutes=1\n"),
            "60000"
        );
        assert_eq!(value("log.retention.hours=1\nlog.retention.ms=5\n"), "5");
        assert_eq!(value("log.retention.hours=-1\n"), "-1");
    }

    #[test]
    fn a_topics_own_value_is_strongest() {
        let static_config = config("log.retention.ms=5\n");
        let own = BTreeMap::from([("retention.ms".to_owned(), "7".to_owned())]);
        let entries = describe_topic(layers(&static_config), Some(&own));
        let synonyms = vec![
            synonym("retention.ms", "7", 1),
            synonym("log.retention.ms", "5", 4),
            synonym("log.retention.hours", "168", 5),
        ];
        assert_eq!(
            shown(&entries, "retention.ms"),
            ("7".to_owned(), 1, synonyms)
        );
    }

    #[test]
    fn secrets_are_never_shown() {
        let static_config = config("ssl.key.password=hunter2\n");
        let entries = describe_broker(layers(&static_config));
        let entry = entries
            .iter()
            .find(|it| it.key.name == "ssl.key.password")
            .expect("listed");
        assert_eq!(entry.value, None);
        assert!(entry.synonyms.iter().all(|it| it.value.is_none()));
        assert!(entries.iter().any(|it| it.key.name == "num.partitions"));
    }
}
