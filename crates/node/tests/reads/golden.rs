//! Captured requests of stock clients, answered as Apache Kafka 4.4 answered them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use highwater_metadata::image::{BrokerImage, ConfigResource, PartitionImage, ResourceKind};
use highwater_node::Changed;
use highwater_protocol::messages::describe_configs_response::DescribeConfigsResult;
use highwater_protocol::messages::{
    DescribeClusterResponse, DescribeConfigsResponse, DescribeTopicPartitionsResponse,
    FetchResponse, MetadataResponse,
};
use highwater_protocol::messages::{
    fetch_response::LeaderIdAndEpoch, metadata_response::MetadataResponsePartition,
};
use highwater_protocol::{ApiKey, Request, RequestHeader, Response, response_header_version};
use highwater_types::{
    DirectoryId, ErrorCode, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, Uuid,
};

use crate::world::*;

/// One captured request and its answer.
struct Pair {
    name: String,
    version: i16,
    request: Request,
    response: Response,
    body: Bytes,
}

/// Every pair of an API that was captured on a listener for clients or brokers.
fn captured(api: ApiKey) -> Vec<Pair> {
    let files = highwater_fixtures::wire();
    let index = files.get(Path::new("index.tsv")).expect("an index");
    let index = String::from_utf8(index.clone()).expect("text");
    let lines = index
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let wanted = lines.filter(|it| it[0] == api.raw().to_string() && it[6].starts_with("broker"));
    let pairs = wanted.map(|line| {
        let name = format!("{:02}-{}/v{}-{}", api.raw(), line[1], line[2], line[3]);
        let read = |what: &str| {
            let path = format!("{name}.{what}.hex");
            let text = files.get(Path::new(&path)).expect("a frame");
            Bytes::from(highwater_fixtures::unhex(text))
        };
        let mut frame = read("request");
        let header = RequestHeader::decode(&mut frame).expect("a header");
        let request = Request::decode(api, header.version, frame).expect("a request");
        let tags = usize::try_from(response_header_version(api, header.version)).expect("0 or 1");
        let body = read("response").slice(4 + tags..);
        let response = Response::decode(api, header.version, &body).expect("an answer");
        Pair {
            name,
            version: header.version,
            request,
            response,
            body,
        }
    });
    pairs.collect()
}

/// Makes the answer's brokers the cluster's. Racks and ports are told by the answer.
fn set_brokers(world: &mut World, brokers: impl Iterator<Item = (NodeId, i32, Option<String>)>) {
    let brokers = brokers.map(|(id, port, rack)| {
        let port = u16::try_from(port).expect("a port");
        let broker = BrokerImage {
            rack,
            ..broker(id.raw(), port)
        };
        (id, Arc::new(broker))
    });
    world.image.brokers = Arc::new(brokers.collect::<BTreeMap<_, _>>());
}

fn set_partition(world: &mut World, name: &str, id: TopicId, told: &MetadataResponsePartition) {
    let image = PartitionImage {
        assigned_replicas: told.replica_nodes.clone(),
        directories: vec![DirectoryId::UNASSIGNED; told.replica_nodes.len()],
        in_sync_replicas: told.isr_nodes.clone(),
        leader: told.leader_id,
        leader_epoch: LeaderEpoch::new(told.leader_epoch.max(0)),
        partition_epoch: PartitionEpoch::ZERO,
        ..PartitionImage::default()
    };
    world.insert_partition(name, id, PartitionIndex::new(told.partition_index), image);
}

fn id_of(name: &str, told: Uuid) -> TopicId {
    if told.is_zero() {
        topic_id(name)
    } else {
        TopicId::new(told)
    }
}

/// Which of the live brokers is named as controller is chance, and so is the order of topics.
fn sorted(mut response: MetadataResponse) -> MetadataResponse {
    response.controller_id = NodeId::NONE;
    response
        .topics
        .sort_by_key(|topic| (topic.name.clone(), topic.topic_id));
    response
}

#[test]
fn metadata_of_every_version_is_answered_as_kafka_does() {
    let mut compared = 0;
    for Pair {
        name,
        version,
        request,
        response,
        body,
    } in captured(ApiKey::Metadata)
    {
        let Response::Metadata(expected) = response else {
            panic!("{name}")
        };
        let mut world = World::new(1, "auto.create.topics.enable=false");
        let brokers = expected.brokers.iter();
        set_brokers(
            &mut world,
            brokers.map(|it| (it.node_id, it.port, it.rack.clone())),
        );
        for topic in expected
            .topics
            .iter()
            .filter(|it| !it.error_code.is_error())
        {
            let name = topic.name.as_deref().expect("a name");
            let id = id_of(name, topic.topic_id);
            for partition in &topic.partitions {
                set_partition(&mut world, name, id, partition);
            }
        }
        world.publish(Changed::Topics(Default::default()));
        let mut found: MetadataResponse = world.ask(version, request);
        if found.cluster_id.is_some() {
            found.cluster_id.clone_from(&expected.cluster_id);
        }
        let same_order = found.topics.len() < 2;
        let (left, right) = (sorted(found.clone()), sorted(expected.clone()));
        assert_eq!(left.topics.len(), right.topics.len(), "{name}");
        for (left, right) in left.topics.iter().zip(&right.topics) {
            assert_eq!(left, right, "{name}");
        }
        assert_eq!(left, right, "{name}");
        if same_order && found.controller_id == expected.controller_id {
            let ours = Response::from(found).encode(version).expect("encodes");
            assert_eq!(ours, body, "{name}");
        }
        compared += 1;
    }
    assert!(compared > 55, "{compared}");
}

#[test]
fn describe_cluster_is_answered_as_kafka_does() {
    for Pair {
        name,
        version,
        request,
        response,
        body,
    } in captured(ApiKey::DescribeCluster)
    {
        let Response::DescribeCluster(expected) = response else {
            panic!("{name}")
        };
        let mut world = World::new(1, "");
        let brokers = expected.brokers.iter();
        set_brokers(
            &mut world,
            brokers.map(|it| (it.broker_id, it.port, it.rack.clone())),
        );
        world.publish(Changed::Everything);
        let mut found: DescribeClusterResponse = world.ask(version, request);
        found.cluster_id = expected.cluster_id;
        found.controller_id = expected.controller_id;
        assert_eq!(Response::from(found).encode(version), Ok(body), "{name}");
    }
}

#[test]
fn describe_topic_partitions_is_answered_as_kafka_does() {
    for Pair {
        name,
        version,
        request,
        response,
        body,
    } in captured(ApiKey::DescribeTopicPartitions)
    {
        let Response::DescribeTopicPartitions(expected) = response else {
            panic!("{name}")
        };
        let mut world = World::new(1, "");
        let everyone = [1, 2, 3].map(NodeId::new);
        let offline = |id: &NodeId| {
            let mut partitions = expected.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.any(|it| it.offline_replicas.contains(id))
        };
        let live = everyone.into_iter().filter(|id| !offline(id));
        set_brokers(&mut world, live.map(|id| (id, 9092, None)));
        for topic in expected
            .topics
            .iter()
            .filter(|it| !it.error_code.is_error())
        {
            let name = topic.name.as_deref().expect("a name");
            // Partitions that the answer left out: the cursor tells of them.
            for partition in 0..3 {
                let told = topic
                    .partitions
                    .iter()
                    .find(|it| it.partition_index == partition);
                let beyond =
                    expected.next_cursor.is_some() || topic.partitions[0].partition_index > 0;
                let Some(it) = told.or_else(|| topic.partitions.first().filter(|_| beyond)) else {
                    continue;
                };
                if told.is_none() && name != "plain" {
                    continue;
                }
                let as_metadata = MetadataResponsePartition {
                    partition_index: partition,
                    leader_id: it.leader_id,
                    leader_epoch: it.leader_epoch,
                    replica_nodes: it.replica_nodes.clone(),
                    isr_nodes: it.isr_nodes.clone(),
                    ..MetadataResponsePartition::default()
                };
                set_partition(&mut world, name, TopicId::new(topic.topic_id), &as_metadata);
            }
        }
        world.publish(Changed::Topics(Default::default()));
        let found: DescribeTopicPartitionsResponse = world.ask(version, request);
        assert_eq!(Response::from(found).encode(version), Ok(body), "{name}");
    }
}

/// Makes the named topics known as far as an error says that they are. `None`: the answer depends
/// on records that are not here.
fn world_of_fetch(request: &Request, expected: &FetchResponse) -> Option<World> {
    let Request::Fetch(view) = request else {
        return None;
    };
    let mut world = World::new(1, "");
    for (topic, asked) in expected.responses.iter().zip(view.topics()) {
        for (partition, asked) in topic.partitions.iter().zip(asked.partitions) {
            let name = if topic.topic.is_empty() {
                "some-topic"
            } else {
                topic.topic.as_str()
            };
            let id = id_of(name, topic.topic_id);
            let known = |world: &mut World, number: i32, epoch: i32| {
                let image = partition_image(epoch);
                world.insert_partition(name, id, PartitionIndex::new(number), image);
            };
            let number = partition.partition_index;
            match partition.error_code.raw() {
                // The topic is not known; named by id, only the partition is not.
                3 if !topic.topic_id.is_zero() => known(&mut world, number + 1, 0),
                3 | 100 => {}
                74 => known(&mut world, number, asked.current_leader_epoch.raw() + 1),
                75 => known(&mut world, number, asked.current_leader_epoch.raw() - 1),
                // Kafka's log had begun above the offset; ours ends below it.
                1 => return None,
                _ => return None,
            }
        }
    }
    world.publish(Changed::Everything);
    Some(world)
}

#[test]
fn errors_of_fetches_are_answered_as_kafka_does() {
    let mut compared = 0;
    for Pair {
        name,
        version,
        request,
        response,
        ..
    } in captured(ApiKey::Fetch)
    {
        let Response::Fetch(mut expected) = response else {
            panic!("{name}")
        };
        let Request::Fetch(view) = &request else {
            panic!("{name}")
        };
        let sessionless = view.session_epoch() == -1;
        let Some(mut world) = world_of_fetch(&request, &expected).filter(|_| sessionless) else {
            continue;
        };
        let ticket = world.request(version, request);
        world.advance(500);
        let mut found = world.fetched(ticket, version);
        // The current leader is told from v12 on, not from v16 on: see compat trap 14.
        for response in [&mut found, &mut expected] {
            response.node_endpoints.clear();
            for partition in response
                .responses
                .iter_mut()
                .flat_map(|it| &mut it.partitions)
            {
                partition.current_leader = LeaderIdAndEpoch::default();
            }
        }
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

#[test]
fn empty_answers_are_kafkas_byte_for_byte() {
    for Pair {
        name,
        version,
        request,
        response,
        body,
    } in captured(ApiKey::Fetch)
    {
        let Response::Fetch(expected) = response else {
            panic!("{name}")
        };
        let Request::Fetch(view) = &request else {
            panic!("{name}")
        };
        // A session that is closed, as stock clients do it.
        if view.session_epoch() != -1 || view.topics().next().is_some() {
            continue;
        }
        let mut world = World::new(1, "");
        let ticket = world.request(version, request);
        assert_eq!(expected.session_id, 0);
        assert_eq!(world.body(ticket), body, "{name}");
    }
}

#[test]
fn refused_look_ups_are_answered_as_kafka_does() {
    let mut compared = 0;
    for api in [ApiKey::ListOffsets, ApiKey::OffsetForLeaderEpoch] {
        for Pair {
            name,
            version,
            request,
            response,
            body,
        } in captured(api)
        {
            let rows: Vec<(String, i32, i16)> = match &response {
                Response::ListOffsets(response) => response
                    .topics
                    .iter()
                    .flat_map(|topic| topic.partitions.iter().map(move |it| (topic, it)))
                    .map(|(topic, it)| {
                        (topic.name.clone(), it.partition_index, it.error_code.raw())
                    })
                    .collect(),
                Response::OffsetForLeaderEpoch(response) => response
                    .topics
                    .iter()
                    .flat_map(|topic| topic.partitions.iter().map(move |it| (topic, it)))
                    .map(|(topic, it)| (topic.topic.clone(), it.partition, it.error_code.raw()))
                    .collect(),
                _ => panic!("{name}"),
            };
            if rows.iter().any(|(_, _, error)| *error == 0) {
                continue;
            }
            let mut world = World::new(2, "");
            for (topic, partition, _) in rows.iter().filter(|(_, _, error)| *error == 74) {
                let index = PartitionIndex::new(*partition);
                world.insert_partition(topic, topic_id(topic), index, partition_image(9));
            }
            world.publish(Changed::Everything);
            let ticket = world.request(version, request);
            assert_eq!(world.body(ticket), body, "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 5, "{compared}");
}

/// Sets what the answer says was set: topic configs (source 1), configs for all brokers (3).
fn world_of_configs(expected: &DescribeConfigsResult) -> World {
    let mut world = World::new(1, "log.index.size.max.bytes=4096\nmin.insync.replicas=2");
    if expected.error_code.is_error() {
        return world;
    }
    world.topic(&expected.resource_name, 1);
    let set = |source: i8| {
        let configs = expected
            .configs
            .iter()
            .filter(move |it| it.config_source == source);
        configs.map(|it| (it.name.clone(), it.value.clone().unwrap_or_default()))
    };
    let resource = |kind, name: &str| ConfigResource {
        kind,
        name: name.to_owned(),
    };
    let own: BTreeMap<String, String> = set(1).collect();
    let key = resource(ResourceKind::Topic, &expected.resource_name);
    world.image.configs.insert(key, Arc::new(own));
    let brokers = set(3).map(|(name, value)| match name.as_str() {
        "max.message.bytes" => ("message.max.bytes".to_owned(), value),
        _ => (name, value),
    });
    let brokers: BTreeMap<String, String> = brokers.collect();
    world
        .image
        .configs
        .insert(resource(ResourceKind::Broker, ""), Arc::new(brokers));
    world.publish(Changed::Topics(Default::default()));
    world
}

#[test]
fn trap_22_describe_configs_is_answered_as_kafka_does() {
    let mut compared = 0;
    for Pair {
        name,
        version,
        request,
        response,
        ..
    } in captured(ApiKey::DescribeConfigs)
    {
        let Response::DescribeConfigs(mut expected) = response else {
            panic!("{name}")
        };
        let refused = expected.results[0].error_code == ErrorCode::TOPIC_AUTHORIZATION_FAILED;
        if refused {
            continue;
        }
        let mut world = world_of_configs(&expected.results[0]);
        let mut found: DescribeConfigsResponse = world.ask(version, request);
        for response in [&mut found, &mut expected] {
            response.results[0]
                .configs
                .sort_by(|a, b| a.name.cmp(&b.name));
        }
        for (ours, kafkas) in found.results[0]
            .configs
            .iter()
            .zip(&expected.results[0].configs)
        {
            assert_eq!(ours, kafkas, "{name}");
        }
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    assert!(compared > 12, "{compared}");
}
