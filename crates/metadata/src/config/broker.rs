use std::collections::BTreeMap;
use std::fmt;

use crate::config::value::{parse_bool, parse_integer, split_list};
use crate::config::{
    ConfigKey, ConfigType, Effect, InvalidValue, Property, broker_key, nearest_broker_key,
};

/// Prefixes under which Kafka takes any key: settings of one listener, one plugin, one SASL
/// mechanism. They are kept and change nothing yet.
const OPEN_PREFIXES: &[&str] = &[
    "listener.name.",
    "config.providers.",
    "ssl.",
    "sasl.",
    "log4j.",
    "remote.log.",
    "rsm.config.",
    "rlmm.config.",
    "internal.",
    "client.quota.callback.",
];

/// The static config of a broker: what its `server.properties` and command line said.
///
/// Invariant: every value that is set was checked against its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerConfig {
    set: BTreeMap<String, String>,
}

/// Something about a config text that a person should read once; nothing is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigNotice {
    /// No such key. Ignored, as Kafka does.
    Unknown {
        /// Where, from 1; zero for the command line.
        line: usize,
        /// The key.
        key: String,
        /// The key that was perhaps meant.
        nearest: Option<&'static str>,
    },
    /// A Kafka key that changes nothing here yet.
    NoEffectYet {
        /// Where, from 1; zero for the command line.
        line: usize,
        /// The key.
        key: String,
    },
}

/// A line of a config text that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where, from 1; zero for the command line.
    pub line: usize,
    /// What is wrong.
    pub what: InvalidValue,
}

impl BrokerConfig {
    /// Checks and takes over properties; a later one replaces an earlier one of the same key.
    /// Unknown keys are told, not refused.
    ///
    /// # Errors
    /// Every line whose value its key does not take.
    pub fn new(properties: &[Property]) -> Result<(Self, Vec<ConfigNotice>), Vec<ConfigProblem>> {
        let mut config = Self::default();
        let mut notices = Vec::new();
        let mut problems = Vec::new();
        for Property { line, key, value } in properties {
            let line = *line;
            let Some(definition) = broker_key(key) else {
                let known = OPEN_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
                notices.push(if known {
                    ConfigNotice::NoEffectYet {
                        line,
                        key: key.clone(),
                    }
                } else {
                    let nearest = nearest_broker_key(key);
                    ConfigNotice::Unknown {
                        line,
                        key: key.clone(),
                        nearest,
                    }
                });
                continue;
            };
            if let Err(what) = definition.check(value) {
                problems.push(ConfigProblem { line, what });
                continue;
            }
            if definition.effect == Effect::NotYet {
                notices.push(ConfigNotice::NoEffectYet {
                    line,
                    key: key.clone(),
                });
            }
            config.set.insert(key.clone(), value.trim().to_owned());
        }
        // One number under two names, as Kafka has it.
        for (from, to) in [("node.id", "broker.id"), ("broker.id", "node.id")] {
            if let (Some(id), None) = (config.set.get(from).cloned(), config.set.get(to)) {
                config.set.insert(to.to_owned(), id);
            }
        }
        if problems.is_empty() {
            Ok((config, notices))
        } else {
            Err(problems)
        }
    }

    /// Sets a key of our own choosing, as `start` without a file does.
    ///
    /// # Errors
    /// When the key does not take the value.
    ///
    /// # Panics
    /// When there is no such key: our own mistake.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidValue> {
        let key = definition(name);
        key.check(value)?;
        self.set.insert(name.to_owned(), value.trim().to_owned());
        Ok(())
    }

    /// The value that was set, if one was.
    #[must_use]
    pub fn static_value(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(String::as_str)
    }

    /// The value that was set, else the default; `None` is Kafka's null.
    ///
    /// # Panics
    /// When there is no such key: our own mistake.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.static_value(name).or_else(|| definition(name).default)
    }

    /// A number, or `None` for null.
    ///
    /// # Panics
    /// When there is no such key, or it is not a number's: our own mistake.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        let kind = definition(name).kind;
        assert!(
            matches!(kind, ConfigType::Int | ConfigType::Short | ConfigType::Long),
            "{name} is a number"
        );
        parse_integer(kind, self.text(name)?)
    }

    /// A number that is never negative and has a default.
    ///
    /// # Panics
    /// When there is no such key, or it can be null: our own mistake.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let number = self.number(name).expect("the key has a default");
        u64::try_from(number).unwrap_or(0)
    }

    /// A truth that has a default.
    ///
    /// # Panics
    /// When there is no such key: our own mistake.
    #[must_use]
    pub fn boolean(&self, name: &str) -> bool {
        self.text(name)
            .and_then(parse_bool)
            .expect("a boolean key with a default")
    }

    /// A list; null and the empty text are both empty.
    ///
    /// # Panics
    /// When there is no such key: our own mistake.
    #[must_use]
    pub fn list(&self, name: &str) -> Vec<String> {
        self.text(name)
            .map(|text| split_list(text).map(str::to_owned).collect())
            .unwrap_or_default()
    }
}

fn definition(name: &str) -> &'static ConfigKey {
    broker_key(name).unwrap_or_else(|| panic!("{name} is no broker key"))
}

impl fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { line, key, nearest } => {
                place(f, *line)?;
                write!(f, "unknown key {key} is ignored")?;
                nearest.map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
            }
            Self::NoEffectYet { line, key } => {
                place(f, *line)?;
                write!(f, "{key} is accepted but has no effect yet")
            }
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, self.line)?;
        self.what.fmt(f)
    }
}

fn place(f: &mut fmt::Formatter<'_>, line: usize) -> fmt::Result {
    if line == 0 {
        Ok(())
    } else {
        write!(f, "line {line}: ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_properties;

    fn read(text: &str) -> Result<(BrokerConfig, Vec<ConfigNotice>), Vec<ConfigProblem>> {
        BrokerConfig::new(&parse_properties(text).expect("well formed"))
    }

    #[test]
    fn unknown_keys_are_named_with_the_nearest_one() {
        let (config, notices) =
            read("num.partition=3\nnum.partitions=4\nnum.network.threads=8\n").expect("taken");
        let texts: Vec<_> = notices.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "line 1: unknown key num.partition is ignored; did you mean num.partitions?",
                "line 3: num.network.threads is accepted but has no effect yet",
            ]
        );
        assert_eq!(config.number("num.partitions"), Some(4));
    }

    #[test]
    fn every_bad_line_is_told_with_its_number() {
        let problems = read("\nnum.partitions=0\nlog.segment.bytes=x\n").expect_err("refused");
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "line 2: Invalid value 0 for configuration num.partitions: \
                 Value must be at least 1",
                "line 3: Invalid value x for configuration log.segment.bytes: \
                 Not a number of type INT",
            ]
        );
    }

    #[test]
    fn values_fall_back_to_defaults() {
        let (config, _) = read("listeners=A://:1 , B://:2\n").expect("taken");
        assert_eq!(config.list("listeners"), ["A://:1", "B://:2"]);
        assert_eq!(config.count("broker.session.timeout.ms"), 9000);
        assert_eq!(config.count("replica.lag.time.max.ms"), 10000);
        assert_eq!(config.text("log.dirs"), None);
        assert!(config.boolean("auto.create.topics.enable"));
    }

    #[test]
    fn settings_of_listeners_are_taken() {
        let (_, notices) = read("listener.name.sasl.plain.sasl.jaas.config=x\n").expect("taken");
        assert!(matches!(
            notices.as_slice(),
            [ConfigNotice::NoEffectYet { .. }]
        ));
    }
}
