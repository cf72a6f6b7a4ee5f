use std::collections::BTreeMap;

use crate::config::{ConfigLayers, InvalidValue, topic_key};

/// Why configs of a topic are refused: always INVALID_CONFIG, with this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicConfigError {
    /// No such key. Refused, for a wrong name would be a setting that is silently not there.
    #[error("Unknown topic config name: {0}")]
    Unknown(String),
    /// The value is not one.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// A key without a value.
    #[error("Null value not supported for topic configs: {0}")]
    Null(String),
    /// Two keys that cannot be so at once.
    #[error("conflict topic config setting {0}")]
    Conflict(String),
    /// There is no remote tier.
    #[error(
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with \
         remote log storage."
    )]
    NoRemoteTier,
}

/// Checks the configs of a new topic and returns them as they are to be stored.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_topic_configs<'a>(
    layers: ConfigLayers<'_>,
    configs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<BTreeMap<String, String>, TopicConfigError> {
    let mut checked = BTreeMap::new();
    for (name, value) in configs {
        let key = topic_key(name).ok_or_else(|| TopicConfigError::Unknown(name.to_owned()))?;
        let value = value.ok_or_else(|| TopicConfigError::Null(name.to_owned()))?;
        key.check(value)?;
        checked.insert(name.to_owned(), value.to_owned());
    }
    check_together(layers, &checked)?;
    Ok(checked)
}

fn check_together(
    layers: ConfigLayers<'_>,
    own: &BTreeMap<String, String>,
) -> Result<(), TopicConfigError> {
    let number = |name: &str| -> Option<i64> {
        let text = own
            .get(name)
            .cloned()
            .or_else(|| layers.topic_default(topic_key(name)?));
        text?.trim().parse().ok()
    };
    let (least, most) = (
        number("min.compaction.lag.ms"),
        number("max.compaction.lag.ms"),
    );
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        return Err(TopicConfigError::Conflict(format!(
            "min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )));
    }
    let wants_remote = own
        .get("remote.storage.enable")
        .is_some_and(|it| it.trim() == "true");
    if wants_remote {
        Err(TopicConfigError::NoRemoteTier)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BrokerConfig;

    fn check(configs: &[(&str, Option<&str>)]) -> Result<(), String> {
        let static_config = BrokerConfig::default();
        let layers = ConfigLayers {
            dynamic_broker: None,
            dynamic_default: None,
            static_config: &static_config,
        };
        check_topic_configs(layers, configs.iter().copied())
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn trap_21_harmless_keys_are_taken_and_wrong_names_are_not() {
        for name in [
            "min.insync.replicas",
            "flush.messages",
            "flush.ms",
            "segment.jitter.ms",
        ] {
            assert_eq!(check(&[(name, Some("1"))]), Ok(()), "{name}");
        }
        for name in ["unclean.leader.election.enable", "preallocate"] {
            assert_eq!(check(&[(name, Some("true"))]), Ok(()), "{name}");
        }
        assert_eq!(check(&[("internal.segment.bytes", Some("2048"))]), Ok(()));
        assert_eq!(
            check(&[("retention", Some("1"))]),
            Err("Unknown topic config name: retention".to_owned())
        );
        assert_eq!(
            check(&[("retention.ms", None)]),
            Err("Null value not supported for topic configs: retention.ms".to_owned())
        );
    }

    #[test]
    fn values_that_cannot_be_together() {
        let lags = [
            ("min.compaction.lag.ms", Some("10")),
            ("max.compaction.lag.ms", Some("5")),
        ];
        assert!(check(&lags).is_err_and(|text| text.contains("(10) > ")));
        assert!(check(&[("remote.storage.enable", Some("true"))]).is_err());
    }
}
