use std::collections::{BTreeMap, BTreeSet};

use highwater_metadata::config::{
    ConfigEntry, ConfigLayers, ConfigSource, describe_broker, describe_topic,
};
use highwater_metadata::image::ResourceKind;
use highwater_protocol::messages::{
    describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource},
    describe_configs_response::{
        DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
        DescribeConfigsSynonym,
    },
};
use highwater_protocol::wire::STRING_BYTES_MAX;
use highwater_types::{ErrorCode, TopicName};

use super::DescribeContext;
use crate::authorizer::{Operation, Resource};

/// Kafka's number of the loggers of a broker, which this one does not have.
const BROKER_LOGGER: i8 = 8;

/// A resource whose configs cannot be shown: code and text.
type Refused = (ErrorCode, String);

/// Answers DescribeConfigs for topics and brokers.
pub(crate) fn describe_configs(
    cx: &DescribeContext<'_>,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let odd = request.resources.iter().any(|it| {
        let kind = ResourceKind::from_wire(it.resource_type);
        matches!(kind, ResourceKind::Other(kind) if kind != BROKER_LOGGER)
    });
    let mut seen = BTreeSet::new();
    let results = request.resources.iter().map(|resource| {
        let is_first = seen.insert((resource.resource_type, resource.resource_name.as_str()));
        let mut result = DescribeConfigsResult {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            // Kafka says so when there is no error.
            error_message: Some(String::new()),
            ..Default::default()
        };
        let has_keys = resource
            .configuration_keys
            .as_ref()
            .is_some_and(|keys| !keys.is_empty());
        let entries = if odd {
            Err(odd_kind())
        } else if is_first || has_keys {
            entries(cx, resource)
        } else {
            Err(repeated())
        };
        match entries {
            Ok(entries) => {
                let wanted = |entry: &ConfigEntry| is_wanted(resource, entry.key.name);
                let entries = entries.into_iter().filter(wanted);
                result.configs = entries.map(|entry| shown(entry, request)).collect();
            }
            Err((code, text)) => {
                result.error_code = code;
                result.error_message = Some(text);
            }
        }
        result
    });
    let mut results: Vec<DescribeConfigsResult> = results.collect();
    let too_long = results.iter().any(|result| {
        let text = result.error_message.as_ref();
        text.is_some_and(|text| text.len() > STRING_BYTES_MAX)
    });
    if too_long {
        // As in Kafka: a text that repeats so much of the request that no answer can hold it.
        for result in &mut results {
            result.error_code = ErrorCode::UNKNOWN_SERVER_ERROR;
            result.error_message = Some("The answer's text would be too long.".to_owned());
            result.configs.clear();
        }
    }
    DescribeConfigsResponse {
        throttle_time_ms: 0,
        results,
    }
}

/// As in Kafka, resources of a kind that has no configs fail the whole request.
fn odd_kind() -> Refused {
    let text = "The request names a resource of a kind that has no configs.";
    (ErrorCode::INVALID_REQUEST, text.to_owned())
}

/// A request of many copies of one resource, each for all keys, would be answered with many times
/// its size.
fn repeated() -> Refused {
    let text = "The resource is named before in the same request.";
    (ErrorCode::INVALID_REQUEST, text.to_owned())
}

fn entries(
    cx: &DescribeContext<'_>,
    resource: &DescribeConfigsResource,
) -> Result<Vec<ConfigEntry>, Refused> {
    let name = resource.resource_name.as_str();
    check_allowed(cx, resource)?;
    match ResourceKind::from_wire(resource.resource_type) {
        ResourceKind::Topic => {
            TopicName::new(name)
                .map_err(|why| (ErrorCode::INVALID_TOPIC_EXCEPTION, why.to_string()))?;
            if cx.image.topic_by_name(name).is_none() {
                // Kafka has no text for it.
                return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, String::new()));
            }
            let own = cx.image.config(ResourceKind::Topic, name);
            Ok(describe_topic(layers(cx), own.map(AsRef::as_ref)))
        }
        ResourceKind::Broker => broker_entries(cx, name),
        ResourceKind::Group | ResourceKind::ClientMetrics if name.is_empty() => {
            let text = "A group or a client metrics subscription has a name.";
            Err((ErrorCode::INVALID_REQUEST, text.to_owned()))
        }
        // There is nothing set on groups and client metrics until they are built.
        ResourceKind::Group | ResourceKind::ClientMetrics => Ok(Vec::new()),
        ResourceKind::Other(kind) => {
            let text = format!("Resources of type {kind} have no configs here.");
            Err((ErrorCode::INVALID_REQUEST, text))
        }
    }
}

fn check_allowed(
    cx: &DescribeContext<'_>,
    resource: &DescribeConfigsResource,
) -> Result<(), Refused> {
    let name = resource.resource_name.as_str();
    let (needed, error) = match ResourceKind::from_wire(resource.resource_type) {
        ResourceKind::Topic => (Resource::Topic(name), ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        ResourceKind::Group => (Resource::Group(name), ErrorCode::GROUP_AUTHORIZATION_FAILED),
        ResourceKind::Broker | ResourceKind::ClientMetrics => {
            (Resource::Cluster, ErrorCode::CLUSTER_AUTHORIZATION_FAILED)
        }
        // There is no such thing that one could be allowed to see.
        ResourceKind::Other(_) => return Ok(()),
    };
    let operation = Operation::DescribeConfigs;
    if cx.authorizer.allows(cx.caller, operation, needed) {
        Ok(())
    } else {
        Err((error, format!("{operation:?} is not allowed on {needed:?}")))
    }
}

/// The configs of this broker, or, for the empty name, those set for all brokers at run time.
fn broker_entries(cx: &DescribeContext<'_>, name: &str) -> Result<Vec<ConfigEntry>, Refused> {
    if name.is_empty() {
        let mut entries = describe_broker(ConfigLayers {
            dynamic_broker: None,
            ..layers(cx)
        });
        let set = cx.image.config(ResourceKind::Broker, "");
        entries.retain(|entry| set.is_some_and(|set| set.contains_key(entry.key.name)));
        for entry in &mut entries {
            entry
                .synonyms
                .retain(|it| it.source == ConfigSource::DynamicDefaultBroker);
        }
        return Ok(entries);
    }
    match name.parse::<i32>() {
        // Of the spellings of a number only one counts, or each would be answered in one request.
        Ok(id) if id.to_string() != name => Err(not_a_broker(name)),
        Ok(id) if id == cx.node_id.raw() => Ok(describe_broker(layers(cx))),
        Ok(id) => {
            let text = format!(
                "This is broker {}: only it can show its own configs, not those of broker {id}.",
                cx.node_id
            );
            Err((ErrorCode::INVALID_REQUEST, text))
        }
        Err(_) => Err(not_a_broker(name)),
    }
}

fn not_a_broker(name: &str) -> Refused {
    let text = format!("A broker's resource name is its id or empty, not '{name}'.");
    (ErrorCode::INVALID_REQUEST, text)
}

fn layers<'a>(cx: &'a DescribeContext<'_>) -> ConfigLayers<'a> {
    let dynamic = |name: &str| -> Option<&'a BTreeMap<String, String>> {
        cx.image
            .config(ResourceKind::Broker, name)
            .map(AsRef::as_ref)
    };
    ConfigLayers {
        dynamic_broker: dynamic(&cx.node_id.to_string()),
        dynamic_default: dynamic(""),
        static_config: &cx.settings.broker_config,
    }
}

/// Null keys, and as Kafka has it an empty list too, mean all.
fn is_wanted(resource: &DescribeConfigsResource, name: &str) -> bool {
    let keys = resource
        .configuration_keys
        .as_ref()
        .filter(|keys| !keys.is_empty());
    keys.is_none_or(|keys| keys.iter().any(|key| key == name))
}

fn shown(entry: ConfigEntry, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let synonyms = if request.include_synonyms {
        entry.synonyms
    } else {
        Vec::new()
    };
    let synonyms = synonyms.into_iter().map(|it| DescribeConfigsSynonym {
        name: it.name.to_owned(),
        value: it.value,
        source: it.source.to_wire(),
    });
    DescribeConfigsResourceResult {
        name: entry.key.name.to_owned(),
        value: entry.value,
        read_only: entry.read_only,
        config_source: entry.source.to_wire(),
        is_sensitive: entry.key.is_sensitive(),
        synonyms: synonyms.collect(),
        config_type: entry.key.kind.to_wire(),
        documentation: request
            .include_documentation
            .then(|| entry.key.doc.to_owned()),
    }
}
