use std::collections::BTreeMap;

use highwater_types::Millis;

use crate::config::value::{parse_bool, parse_integer, split_list};
use crate::config::{ConfigLayers, topic_key};

/// Whose clock stamps the records of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampKind {
    /// The producer's.
    CreateTime,
    /// The broker's, at the append.
    LogAppendTime,
}

/// The configs of one topic in force, typed: what logs and replicas work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Whether old records go by age and size.
    pub delete: bool,
    /// Whether old records go when a newer one has their key.
    pub compact: bool,
    /// `compression.type`, such as `producer`.
    pub compression_type: String,
    /// Age at which old segments go; `None`: never.
    pub retention_ms: Option<Millis>,
    /// Size beyond which old segments go; `None`: no limit.
    pub retention_bytes: Option<u64>,
    /// Size at which a segment ends.
    pub segment_bytes: u32,
    /// Age at which a segment ends.
    pub segment_ms: Millis,
    /// Most that is taken off that age.
    pub segment_jitter_ms: Millis,
    /// Size that an index file is reserved with.
    pub segment_index_bytes: u32,
    /// Bytes of records between two index entries.
    pub index_interval_bytes: u32,
    /// Records after which the log is flushed; `None`: never by number.
    pub flush_messages: Option<u64>,
    /// Longest that records stay unflushed; `None`: no limit.
    pub flush_ms: Option<Millis>,
    /// Largest batch, packed.
    pub max_message_bytes: u32,
    /// Largest record, unpacked.
    pub max_decompressed_message_bytes: u32,
    /// Whose clock stamps records.
    pub timestamp_kind: TimestampKind,
    /// How far behind the broker's clock a record may be.
    pub timestamp_before_max: Millis,
    /// How far ahead of the broker's clock a record may be.
    pub timestamp_after_max: Millis,
    /// acks=all is refused below this many in-sync replicas.
    pub min_in_sync_replicas: u32,
    /// Whether a replica from outside the ISR may lead.
    pub unclean_leader_election: bool,
    /// How long a retired file stays.
    pub file_delete_delay: Millis,
    /// Whether segment files are reserved in full.
    pub preallocate: bool,
}

impl TopicSettings {
    /// Resolves a topic's own dynamic configs over the broker's layers. A stored value that this
    /// build does not take counts as not set: metadata that is committed is never refused.
    #[must_use]
    pub fn resolve(layers: ConfigLayers<'_>, own: Option<&BTreeMap<String, String>>) -> Self {
        let source = Resolver { layers, own };
        let policies = source.text("cleanup.policy");
        let has = |policy| split_list(&policies).any(|it| it == policy);
        Self {
            delete: has("delete"),
            compact: has("compact"),
            compression_type: source.text("compression.type"),
            retention_ms: source.limit("retention.ms").map(Millis::new),
            retention_bytes: source.limit("retention.bytes"),
            segment_bytes: match source.own_number("internal.segment.bytes") {
                Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
                None => source.size("segment.bytes"),
            },
            segment_ms: source.millis("segment.ms"),
            segment_jitter_ms: source.millis("segment.jitter.ms"),
            segment_index_bytes: source.size("segment.index.bytes"),
            index_interval_bytes: source.size("index.interval.bytes"),
            flush_messages: source.limit("flush.messages"),
            flush_ms: source.limit("flush.ms").map(Millis::new),
            max_message_bytes: source.size("max.message.bytes"),
            max_decompressed_message_bytes: source.size("max.decompressed.message.bytes"),
            timestamp_kind: match source.text("message.timestamp.type").as_str() {
                "LogAppendTime" => TimestampKind::LogAppendTime,
                _ => TimestampKind::CreateTime,
            },
            timestamp_before_max: source.millis("message.timestamp.before.max.ms"),
            timestamp_after_max: source.millis("message.timestamp.after.max.ms"),
            min_in_sync_replicas: source.size("min.insync.replicas"),
            unclean_leader_election: source.boolean("unclean.leader.election.enable"),
            file_delete_delay: source.millis("file.delete.delay.ms"),
            preallocate: source.boolean("preallocate"),
        }
    }
}

struct Resolver<'a> {
    layers: ConfigLayers<'a>,
    own: Option<&'a BTreeMap<String, String>>,
}

impl Resolver<'_> {
    fn text(&self, name: &str) -> String {
        let key = topic_key(name).expect("a topic key");
        let own = self
            .own
            .and_then(|own| own.get(name))
            .filter(|it| key.check(it).is_ok());
        let text = own
            .map(|it| it.trim().to_owned())
            .or_else(|| self.layers.topic_default(key));
        text.expect("the key has a default")
    }

    fn own_number(&self, name: &str) -> Option<i64> {
        let key = topic_key(name).expect("a topic key");
        parse_integer(key.kind, self.own?.get(name)?)
    }

    fn number(&self, name: &str) -> i64 {
        let kind = topic_key(name).expect("a topic key").kind;
        parse_integer(kind, &self.text(name)).expect("a checked number")
    }

    /// A bound: negative and the largest number both mean that there is none.
    fn limit(&self, name: &str) -> Option<u64> {
        let number = self.number(name);
        if number == i64::MAX {
            None
        } else {
            u64::try_from(number).ok()
        }
    }

    fn size(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).unwrap_or(0)
    }

    fn millis(&self, name: &str) -> Millis {
        Millis::from_wire(self.number(name))
    }

    fn boolean(&self, name: &str) -> bool {
        parse_bool(&self.text(name)).expect("a checked boolean")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BrokerConfig, parse_properties};

    fn settings(text: &str, own: &[(&str, &str)]) -> TopicSettings {
        let properties = parse_properties(text).expect("well formed");
        let (static_config, _) = BrokerConfig::new(&properties).expect("taken");
        let own = own
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let layers = ConfigLayers {
            dynamic_broker: None,
            dynamic_default: None,
            static_config: &static_config,
        };
        TopicSettings::resolve(layers, Some(&own))
    }

    #[test]
    fn defaults_are_kafkas() {
        let it = settings("", &[]);
        assert!(it.delete && !it.compact && !it.unclean_leader_election);
        assert_eq!(it.retention_ms, Some(Millis::new(604_800_000)));
        assert_eq!(
            (it.retention_bytes, it.flush_messages, it.flush_ms),
            (None, None, None)
        );
        assert_eq!(it.segment_bytes, 1 << 30);
        assert_eq!(it.max_message_bytes, 1_048_588);
    }

    #[test]
    fn a_topics_configs_lie_over_the_brokers() {
        let it = settings(
            "log.flush.interval.messages=7\nlog.roll.hours=2\n",
            &[
                ("flush.messages", "1"),
                ("internal.segment.bytes", "2048"),
                ("retention.ms", "-1"),
            ],
        );
        assert_eq!(it.flush_messages, Some(1));
        assert_eq!(it.segment_bytes, 2048);
        assert_eq!(it.segment_ms, Millis::new(7_200_000));
        assert_eq!(it.retention_ms, None);
    }

    #[test]
    fn a_stored_value_of_another_release_counts_as_not_set() {
        let it = settings("", &[("segment.bytes", "14"), ("flush.ms", "someday")]);
        assert_eq!(it.segment_bytes, 1 << 30);
        assert_eq!(it.flush_ms, None);
    }
}
