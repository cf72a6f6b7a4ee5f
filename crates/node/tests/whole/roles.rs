//! Nodes of one role: how they come up, find each other, and stop.

use highwater_protocol::messages::ApiVersionsRequest;
use highwater_protocol::{ApiKey, ListenerKind, Response};
use highwater_types::NodeId;

use crate::cluster::{Cluster, Role, node_config, the_partition};
use crate::host::file;

const APART: [(i32, Role, &str); 3] = [
    (100, Role::Controller, ""),
    (1, Role::Broker, ""),
    (2, Role::Broker, ""),
];

#[test]
fn a_broker_only_node_comes_up_and_follows() {
    let mut cluster = Cluster::serving(&[(1, Role::Combined, ""), (2, Role::Broker, "")]);
    assert_eq!(cluster.host(2).opened, [ListenerKind::Broker]);
    assert_eq!(
        cluster.host(1).opened,
        [ListenerKind::Controller, ListenerKind::Broker]
    );
    cluster.create(1, "orders", &[2]);
    cluster.settle(1);
    let image = cluster.host(2).control.image();
    let topic = image.topic_by_name("orders").expect("the topic");
    assert_eq!(the_partition(topic).leader, NodeId::new(2));
    assert!(
        cluster
            .host(2)
            .events
            .iter()
            .any(|it| it.contains("orders-0"))
    );
}

#[test]
fn a_controller_apart_serves_brokers_only() {
    let mut cluster = Cluster::serving(&APART);
    assert_eq!(cluster.host(100).opened, [ListenerKind::Controller]);
    assert!(cluster.host(100).shards.is_empty());
    cluster.create(100, "orders", &[1, 2]);
    cluster.settle(100);
    let image = cluster.host(100).control.image();
    let brokers: Vec<i32> = image.brokers.keys().map(|it| it.raw()).collect();
    assert_eq!(brokers, [1, 2]);
    assert!(image.controllers.contains_key(&NodeId::new(100)));
    // What lies in control records is known to a broker that began without any.
    let api_versions = ApiVersionsRequest {
        client_software_name: "test".to_owned(),
        client_software_version: "1".to_owned(),
        ..ApiVersionsRequest::default()
    };
    let answer = cluster.call(1, ListenerKind::Broker, api_versions);
    let Response::ApiVersions(answer) = answer else {
        panic!("another answer")
    };
    let features = answer.finalized_features.iter();
    let kraft = features.clone().find(|it| it.name == "kraft.version");
    assert_eq!(kraft.map(|it| it.max_version_level), Some(1));
    // A controller apart sends nobody heartbeats, and does not fetch from itself.
    let own = |(from, _, _): &&(i32, i32, ApiKey)| *from == 100;
    assert_eq!(cluster.carried.iter().find(own), None);
}

#[test]
fn brokers_that_start_before_their_controller_find_it() {
    let mut cluster = Cluster::new(&APART);
    cluster.start(1);
    cluster.start(2);
    cluster.pass(3000);
    assert_eq!(cluster.host(1).control.phase(), "Starting");
    cluster.start(100);
    cluster.run_until("both serve", |cluster| {
        cluster.host(1).control.is_serving() && cluster.host(2).control.is_serving()
    });
    // What went wrong is told once, not with every try.
    let complaints = cluster.host(1).events.iter();
    let complaints = complaints.filter(|it| it.contains("cannot be followed"));
    assert_eq!(complaints.count(), 1);
}

#[test]
fn a_controller_that_moved_is_found_although_the_metadata_name_its_old_address() {
    let mut cluster = Cluster::serving(&[(1, Role::Combined, ""), (2, Role::Broker, "")]);
    cluster.settle(1);
    cluster.stop(2);
    cluster.stop(1);
    let moved = "listeners=CLIENT://127.0.0.1:9001,CONTROLLER://127.0.0.1:9193\n";
    let told = "controller.quorum.bootstrap.servers=127.0.0.1:9193\n";
    let mut configure = |id, role, extra| {
        let member = cluster.members.get_mut(&id).expect("there");
        member.config = node_config(id, role, extra);
    };
    configure(1, Role::Combined, moved);
    configure(2, Role::Broker, told);
    cluster.start(1);
    cluster.run_until("it serves", |cluster| cluster.host(1).control.is_serving());
    let before = cluster.now.mono;
    cluster.start(2);
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    let took = cluster.now.mono.since(before).as_u64();
    assert!(took < 500, "{took} ms");
}

#[test]
fn a_broker_that_finds_no_controller_gives_up_in_words() {
    let extra = "initial.broker.registration.timeout.ms=2000\n";
    let mut cluster = Cluster::new(&[(2, Role::Broker, extra)]);
    cluster.start(2);
    cluster.run_until("it stopped", |cluster| cluster.host(2).stopped);
    let told = cluster.host(2).events.join("\n");
    assert!(
        told.contains("no controller was found") && told.contains("127.0.0.1:9093"),
        "{told}"
    );
}

#[test]
fn a_stopping_broker_hands_over_and_is_known_to_have_stopped_cleanly() {
    let mut cluster = Cluster::serving(&APART);
    cluster.create(100, "orders", &[1, 2]);
    cluster.settle(100);
    cluster.run_until("both are in sync", |cluster| {
        let image = cluster.host(100).control.image();
        let topic = image.topic_by_name("orders").expect("the topic");
        the_partition(topic).in_sync_replicas.len() == 2
    });
    let before = cluster.now.mono;
    let events = cluster.stop(1);
    // The other broker need not be waited for until its next heartbeat is due.
    let took = cluster.now.mono.since(before).as_u64();
    assert!(took < 500, "{took} ms");
    assert!(!events.iter().any(|it| it.contains("anyway")), "{events:?}");
    let image = cluster.host(100).control.image();
    let topic = image.topic_by_name("orders").expect("the topic");
    assert_eq!(the_partition(topic).leader, NodeId::new(2));
    let epoch = image.broker(NodeId::new(1)).expect("registered").epoch;
    let dirs = &cluster.members[&1].dirs;
    let marker = file(dirs, ".kafka_cleanshutdown").expect("a marker");
    let expected = format!("{{\"version\":0,\"brokerEpoch\":{epoch}}}");
    assert_eq!(String::from_utf8(marker), Ok(expected));
    cluster.start(1);
    cluster.run_until("it serves", |cluster| cluster.host(1).control.is_serving());
}

#[test]
fn a_controller_apart_stops_at_once_and_its_brokers_do_not_wait_for_it() {
    let mut cluster = Cluster::serving(&APART);
    let before = cluster.now.mono;
    cluster.stop(100);
    assert!(cluster.now.mono.since(before).as_u64() < 100);
    let before = cluster.now.mono;
    let events = cluster.stop(1);
    let took = cluster.now.mono.since(before).as_u64();
    assert!((3000..8000).contains(&took), "{took} ms");
    assert!(
        events
            .iter()
            .any(|it| it.contains("no controller is there"))
    );
}

#[test]
fn a_broker_in_another_cluster_is_not_taken_in() {
    let extra = "initial.broker.registration.timeout.ms=2000\n";
    let mut cluster = Cluster::serving(&[(1, Role::Combined, "")]);
    let mut other = Cluster::new(&[(2, Role::Broker, extra)]);
    let stranger = other.members.remove(&2).expect("there");
    let path = std::path::Path::new("meta.properties");
    let text = file(&stranger.dirs, "meta.properties").expect("formatted");
    let text = String::from_utf8(text).expect("text");
    let text = text.replace("sFZgKj3kQfiXtPP7KgFf4w", "NA2Ru8BiRSeksP7Zb7oYlg");
    use highwater_disk::{Blocking, Disk as _};
    let b = Blocking::enter();
    stranger.dirs[0]
        .replace(path, text.as_bytes(), &b)
        .expect("written");
    cluster.members.insert(2, stranger);
    cluster.start(2);
    cluster.run_until("it gave up", |cluster| cluster.host(2).stopped);
    let told = cluster.host(2).events.join("\n");
    assert!(told.contains("is that of another cluster"), "{told}");
    assert_eq!(cluster.host(1).control.image().brokers.len(), 1);
}
