use crate::config::{ConfigKey, ConfigType, Valid};

/// A value that a key does not take. Worded as Kafka words it, for tools match on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid value {value} for configuration {name}: {why}")]
pub struct InvalidValue {
    /// The key.
    pub name: String,
    /// The value, or `[hidden]` for a secret.
    pub value: String,
    /// What is wrong with it.
    pub why: String,
}

impl ConfigKey {
    /// Whether the key takes `value`.
    ///
    /// # Errors
    /// [`InvalidValue`] says why not.
    pub fn check(&self, value: &str) -> Result<(), InvalidValue> {
        self.why_not(value.trim())
            .map_or(Ok(()), |why| Err(self.invalid(value, why)))
    }

    fn invalid(&self, value: &str, why: String) -> InvalidValue {
        let value = if self.is_sensitive() {
            "[hidden]"
        } else {
            value
        };
        InvalidValue {
            name: self.name.to_owned(),
            value: value.to_owned(),
            why,
        }
    }

    fn why_not(&self, value: &str) -> Option<String> {
        let not_a_number = || Some(format!("Not a number of type {}", self.kind.name()));
        match self.kind {
            ConfigType::Boolean => (parse_bool(value).is_none())
                .then(|| "Expected value to be either true or false".to_owned()),
            ConfigType::Int | ConfigType::Short | ConfigType::Long => {
                match parse_integer(self.kind, value) {
                    Some(number) => self.valid.why_not_number(number),
                    None => not_a_number(),
                }
            }
            ConfigType::Double => match value.parse::<f64>() {
                Ok(number) if !number.is_nan() => self.valid.why_not_fraction(number),
                Ok(_) | Err(_) => not_a_number(),
            },
            ConfigType::List => self.valid.why_not_list(value),
            ConfigType::String | ConfigType::Class | ConfigType::Password => {
                self.valid.why_not_text(value)
            }
        }
    }
}

impl Valid {
    fn why_not_number(&self, number: i64) -> Option<String> {
        match self {
            Self::Between(least, _) if number < *least => {
                Some(format!("Value must be at least {least}"))
            }
            Self::Between(_, most) if number > *most => {
                Some(format!("Value must be no more than {most}"))
            }
            Self::OneOrBetween(one, least, most)
                if number != *one && !(*least..=*most).contains(&number) =>
            {
                let why = format!("Value must be between {least} and {most} or equal to {one}");
                Some(why)
            }
            _ => None,
        }
    }

    fn why_not_fraction(&self, number: f64) -> Option<String> {
        match self {
            Self::Fraction(least, _) if number < *least => {
                Some(format!("Value must be at least {least}"))
            }
            Self::Fraction(_, most) if number > *most => {
                Some(format!("Value must be no more than {most}"))
            }
            _ => None,
        }
    }

    fn why_not_text(&self, text: &str) -> Option<String> {
        match self {
            Self::OneOf(texts) if !texts.contains(&text) => {
                Some(format!("String must be one of: {}", texts.join(", ")))
            }
            _ => None,
        }
    }

    fn why_not_list(&self, text: &str) -> Option<String> {
        let texts = match self {
            Self::ListOf(texts) => texts,
            Self::Replicas => return why_not_replicas(text),
            _ => return None,
        };
        let items: Vec<_> = split_list(text).collect();
        if items.iter().any(|item| !texts.contains(item)) {
            return Some(format!("String must be one of: {}", texts.join(", ")));
        }
        let repeated = items
            .iter()
            .enumerate()
            .any(|(at, item)| items.iter().skip(at + 1).any(|other| other == item));
        repeated.then(|| "List must not name anything twice".to_owned())
    }
}

fn why_not_replicas(text: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_replica = |item: &str| {
        item.split_once(':')
            .is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
    };
    let is_well = text.trim() == "*" || split_list(text).all(is_replica);
    (!is_well).then(|| "Replicas are named as *, or as PARTITION:BROKER,...".to_owned())
}

/// The items of a list value.
pub(crate) fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// `true` or `false` in any case.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A number that fits into its type.
pub(crate) fn parse_integer(kind: ConfigType, text: &str) -> Option<i64> {
    let text = text.trim();
    match kind {
        ConfigType::Int => text.parse::<i32>().ok().map(i64::from),
        ConfigType::Short => text.parse::<i16>().ok().map(i64::from),
        _ => text.parse::<i64>().ok(),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{broker_key, topic_key};

    fn topic_error(name: &str, value: &str) -> String {
        let key = topic_key(name).expect("a topic key");
        key.check(value).expect_err("refused").to_string()
    }

    #[test]
    fn messages_are_kafkas() {
        assert_eq!(
            topic_error("segment.bytes", "16384"),
            "Invalid value 16384 for configuration segment.bytes: Value must be at least 1048576"
        );
        assert_eq!(
            topic_error("retention.ms", "soon"),
            "Invalid value soon for configuration retention.ms: Not a number of type LONG"
        );
        assert_eq!(
            topic_error("preallocate", "yes"),
            "Invalid value yes for configuration preallocate: \
             Expected value to be either true or false"
        );
        assert_eq!(
            topic_error("cleanup.policy", "delete,shred"),
            "Invalid value delete,shred for configuration cleanup.policy: \
             String must be one of: compact, delete"
        );
        assert_eq!(
            topic_error("min.cleanable.dirty.ratio", "1.5"),
            "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: \
             Value must be no more than 1"
        );
    }

    #[test]
    fn levels_and_replicas_are_checked_as_kafka_does() {
        let gzip = topic_key("compression.gzip.level").expect("a topic key");
        for (value, is_good) in [
            ("-1", true),
            ("0", false),
            ("1", true),
            ("9", true),
            ("10", false),
        ] {
            assert_eq!(gzip.check(value).is_ok(), is_good, "{value}");
        }
        let replicas = topic_key("leader.replication.throttled.replicas").expect("a topic key");
        for (value, is_good) in [
            ("", true),
            ("*", true),
            ("0:1,3:2", true),
            ("0:1,x", false),
            ("none", false),
            ("-1:2", false),
            ("0:", false),
        ] {
            assert_eq!(replicas.check(value).is_ok(), is_good, "{value}");
        }
    }

    #[test]
    fn a_number_too_large_for_its_type_is_no_number_of_it() {
        assert!(topic_error("segment.bytes", "3000000000").ends_with("Not a number of type INT"));
        let key = topic_key("retention.ms").expect("a topic key");
        assert_eq!(key.check(" 3000000000 "), Ok(()));
    }

    #[test]
    fn b_47_a_secret_is_never_in_a_message() {
        let key = broker_key("ssl.key.password").expect("a broker key");
        let error = key.invalid("hunter2", "whatever".to_owned());
        assert!(!error.to_string().contains("hunter2"));
    }
}
