//! Public cases (C-) and compatibility traps that need a whole node and sockets.

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, FetchResponse, ProduceResponse,
    fetch_request::FetchTopic,
};
use highwater_protocol::wire::Message as _;
use highwater_records::{Batches, Compression, Compressor};
use highwater_types::ErrorCode;

use crate::support::{batch, batch_of, fetch_request};
use crate::{
    api_versions, assert_closes, assert_serves, assert_usable, frame, framed, list_offset,
    log_end_offset, node, produce, produce_named,
};

#[test]
fn trap_01_and_c_06_an_unknown_version_of_api_versions_is_answered_in_v0() {
    let (_root, node) = node(&[]);
    for version in [6, 99, i16::MAX, -1] {
        let mut client = node.connect();
        client.send_frame(&frame(18, version, true, b"a body of that version"));
        let answer = client.read_frame().expect("an answer");
        assert_eq!(
            answer,
            [0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5],
            "v{version}"
        );
        assert_usable(&mut client);
    }
}

#[test]
fn trap_02_the_header_of_that_answer_has_no_tags() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    for version in 3..=5 {
        client.send_frame(&framed(18, version, &api_versions()));
        let answer = client.read_frame().expect("an answer");
        // Correlation id, then at once the error code and a compact count of keys.
        assert_eq!(answer[..6], [0, 0, 0, 7, 0, 0], "v{version}");
        let body = Bytes::from(answer).slice(4..);
        assert!(ApiVersionsResponse::from_bytes(&body, version).is_ok());
    }
}

#[test]
fn trap_03_and_05_and_c_09_and_c_15_the_ranges_of_a_node_are_kafkas() {
    let (_root, node) = node(&[]);
    let answer: ApiVersionsResponse = node.connect().call(18, 4, &api_versions());
    let ranges: BTreeMap<i16, (i16, i16)> = answer
        .api_keys
        .iter()
        .map(|it| (it.api_key, (it.min_version, it.max_version)))
        .collect();
    let keys: Vec<i16> = answer.api_keys.iter().map(|it| it.api_key).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let kafkas = kafkas_ranges();
    for (key, range) in &ranges {
        assert_eq!(kafkas.get(key), Some(range), "key {key}");
    }
    assert_eq!(ranges[&0], (0, 13), "trap 3: from 0, though 0 to 2 close");
    assert_eq!(ranges[&2].0, 1, "trap 5: ListOffsets v0 is not offered");
    assert!(ranges[&3].1 >= 10, "C-09: topic ids need Metadata v10");
    assert!(
        !ranges.contains_key(&71) && !ranges.contains_key(&72),
        "C-15"
    );
    assert!(
        node.said().lines().count() < 20,
        "C-15: no spam: {}",
        node.said()
    );
}

/// What a running Kafka 4.4 answered on its client listener.
fn kafkas_ranges() -> BTreeMap<i16, (i16, i16)> {
    let files = highwater_fixtures::wire();
    let answers = files.iter().filter(|(path, _)| {
        path.starts_with("18-ApiVersions") && path.to_string_lossy().ends_with("response.hex")
    });
    let mut decoded = answers.filter_map(|(path, text)| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let version = name
            .strip_prefix('v')?
            .split(['-', '.'])
            .next()?
            .parse()
            .ok()?;
        let bytes = Bytes::from(highwater_fixtures::unhex(text));
        let answer = ApiVersionsResponse::from_bytes(&bytes.slice(4..), version).ok()?;
        let has_produce = answer.api_keys.first().is_some_and(|it| it.api_key == 0);
        has_produce.then_some(answer)
    });
    let answer = decoded.next_back().expect("a captured answer");
    let range = |it: &highwater_protocol::messages::api_versions_response::ApiVersion| {
        (it.api_key, (it.min_version, it.max_version))
    };
    answer.api_keys.iter().map(range).collect()
}

#[test]
fn features_are_announced_and_finalised_as_far_as_they_are_built() {
    let (_root, node) = node(&[]);
    let answer: ApiVersionsResponse = node.connect().call(18, 4, &api_versions());
    let supported: Vec<(&str, i16, i16)> = answer
        .supported_features
        .iter()
        .map(|it| (it.name.as_str(), it.min_version, it.max_version))
        .collect();
    let mut expected = [
        ("metadata.version", 7, 33),
        ("kraft.version", 0, 1),
        ("group.version", 0, 1),
        ("share.version", 0, 2),
        ("streams.version", 0, 1),
        ("transaction.version", 0, 2),
        ("eligible.leader.replicas.version", 0, 1),
    ];
    let mut sorted = supported.clone();
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    let finalized: BTreeMap<&str, i16> = answer
        .finalized_features
        .iter()
        .map(|it| (it.name.as_str(), it.max_version_level))
        .collect();
    assert_eq!(finalized["metadata.version"], 33);
    assert_eq!(finalized["kraft.version"], 1);
    assert_eq!(finalized["eligible.leader.replicas.version"], 1);
    for not_built in [
        "group.version",
        "transaction.version",
        "share.version",
        "streams.version",
    ] {
        assert_eq!(
            finalized.get(not_built).copied().unwrap_or(0),
            0,
            "{not_built}"
        );
    }
    let answer: ApiVersionsResponse = node.connect().call(18, 3, &api_versions());
    let names: Vec<&str> = answer
        .supported_features
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["metadata.version"],
        "below v4 without those whose minimum is 0"
    );
}

#[test]
fn c_01_list_offsets_v0_closes_that_connection_only_and_is_told() {
    let (_root, node) = node(&[]);
    let mut warm = node.connect();
    let mut other = node.connect();
    let topic = warm.topic("t");
    let id = other.send(1, 17, &fetch_request(topic, 0, 0, 300));
    warm.send_frame(&frame(2, 0, false, b"\xff\xff\xff\xff\0\0\0\0"));
    warm.assert_closed();
    let answer: FetchResponse = other.receive(1, 17, id);
    assert_eq!(
        answer.error_code,
        ErrorCode::NONE,
        "the busy one is unharmed"
    );
    let said = node.said();
    let line = said.lines().find(|line| line.contains("api 2 v0"));
    assert!(
        line.is_some_and(|line| line.contains("bad")),
        "api, version, client: {said}"
    );
    // The next of the same client is its second, whatever its connection.
    let mut again = node.connect();
    again.send_frame(&frame(2, 0, false, b"\xff\xff\xff\xff\0\0\0\0"));
    again.assert_closed();
    let said = node.said();
    let counted = said.lines().filter(|line| line.contains("api 2 v0"));
    let counts: Vec<bool> = (1..)
        .zip(counted)
        .map(|(number, line)| line.contains(&format!("of_client={number} ")))
        .collect();
    assert_eq!(counts, [true, true], "counted by client: {said}");
}

#[test]
fn c_02_produce_below_v3_closes_and_appends_nothing() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.topic("t");
    // acks=1, one topic, one partition, a message set of magic 0.
    let set = b"\0\0\0\0\0\0\0\0\0\0\0\x0e\x12\x34\x56\x78\0\0\xff\xff\xff\xff\0\0\0\0";
    let head = b"\0\x01\0\0\x03\xe8\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\0\0\0\x1a";
    for version in 0..3 {
        let what = format!("v{version}");
        assert_closes(
            &node,
            &what,
            &frame(0, version, false, &[&head[..], set].concat()),
        );
    }
    assert_eq!(log_end_offset(&mut client, "t", 0), 0);
}

#[test]
fn c_03_batches_land_as_they_were_sent_in_each_codec() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let topic = client.topic("t");
    let mut base = 0;
    for codec in [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let sent = batch_of(&["value"; 200], Compressor::new(codec));
        let rows = [(0, Some(sent.clone()))];
        let answer: ProduceResponse = client.call(0, 7, &produce_named("t", 1, &rows));
        let row = &answer.responses[0].partition_responses[0];
        assert_eq!(
            (row.error_code, row.base_offset),
            (ErrorCode::NONE, base),
            "{codec}"
        );
        let answer: FetchResponse = client.call(1, 17, &fetch_request(topic, 0, base, 100));
        let read = answer.responses[0].partitions[0]
            .records
            .clone()
            .expect("records");
        let stored = Batches::new(&read).next().expect("one").expect("whole");
        // All but base offset and leader epoch, which are not under the checksum.
        assert_eq!(stored.bytes()[16..], sent[16..], "{codec}");
        base += 200;
    }
}

#[test]
fn c_08_api_versions_again_and_names_with_odd_characters() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    for (name, version, error) in [
        ("franz-go", "1.21.0", ErrorCode::NONE),
        ("franz-go", "1.21.0", ErrorCode::NONE),
        ("bad name!", "1", ErrorCode::INVALID_REQUEST),
        ("franz-go", "bad version!", ErrorCode::INVALID_REQUEST),
        ("", "", ErrorCode::INVALID_REQUEST),
        ("franz-go", "1.21.0", ErrorCode::NONE),
    ] {
        let request = ApiVersionsRequest {
            client_software_name: name.to_owned(),
            client_software_version: version.to_owned(),
            ..Default::default()
        };
        let answer: ApiVersionsResponse = client.call(18, 3, &request);
        assert_eq!(answer.error_code, error, "{name:?} {version:?}");
        assert_eq!(answer.api_keys.is_empty(), error.is_error());
    }
}

#[test]
fn c_14_acks_0_is_never_answered_and_an_error_closes() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.topic("t");
    let none = produce_named("t", 0, &[]);
    let mut no_topics = none.clone();
    no_topics.topic_data.clear();
    client.send(0, 12, &no_topics);
    assert_usable(&mut client);
    client.send(0, 12, &none);
    client.send(0, 12, &produce_named("t", 0, &[(0, Some(batch(&["a"])))]));
    assert_usable(&mut client);
    assert_eq!(log_end_offset(&mut client, "t", 0), 1);
    let mut bad = batch(&["b"]).to_vec();
    *bad.last_mut().expect("bytes") ^= 1;
    for (what, topic, records) in [
        ("unknown topic", "nope", batch(&["a"])),
        ("bad checksum", "t", Bytes::from(bad)),
    ] {
        let mut client = node.connect();
        client.send(0, 12, &produce_named(topic, 0, &[(0, Some(records))]));
        client.send(18, 4, &api_versions());
        assert_eq!(client.read_frame(), None, "{what}");
    }
    assert_eq!(log_end_offset(&mut client, "t", 0), 1);
}

#[test]
fn c_18_max_bytes_1_gives_one_batch_of_the_first_partition_with_data() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.create_topic("t", 5, &[]);
    let topic = client.topic("t");
    for partition in 1..5 {
        assert_eq!(
            produce(&mut client, "t", partition, batch(&["a", "b"])).0,
            ErrorCode::NONE
        );
    }
    let mut request = fetch_request(topic, 0, 0, 0);
    request.max_bytes = 1;
    let one = request.topics[0].partitions[0].clone();
    let partitions = (0..5).map(|partition| {
        let mut it = one.clone();
        it.partition = partition;
        it
    });
    request.topics = vec![FetchTopic {
        topic_id: topic,
        partitions: partitions.collect(),
        ..Default::default()
    }];
    let answer: FetchResponse = client.call(1, 17, &request);
    let with_data: Vec<i32> = answer.responses[0]
        .partitions
        .iter()
        .filter(|it| {
            it.records
                .as_ref()
                .is_some_and(|records| !records.is_empty())
        })
        .map(|it| it.partition_index)
        .collect();
    assert_eq!(with_data, [1]);
}

#[test]
fn c_27_and_trap_06_look_ups_by_time() {
    let (_root, node) = node(&["log.message.timestamp.before.max.ms=9223372036854775807"]);
    let mut client = node.connect();
    client.topic("t");
    let mut builder = highwater_records::BatchBuilder::new();
    for time in [100, 300, 200, 400] {
        builder
            .append(highwater_types::WallMs::new(time), None, Some(b"v"), &[])
            .expect("small");
    }
    let records = builder.finish(&Default::default()).expect("small");
    assert_eq!(
        produce(&mut client, "t", 0, records.into()),
        (ErrorCode::NONE, 0)
    );
    for (time, found) in [
        (200, (0, 300, 1)),
        (201, (0, 300, 1)),
        (400, (0, 400, 3)),
        (401, (0, -1, -1)),
        (0, (0, 100, 0)),
        (-1, (0, -1, 4)),
        (-2, (0, -1, 0)),
        (-3, (0, 400, 3)),
    ] {
        assert_eq!(list_offset(&mut client, "t", 0, time), found, "{time}");
    }
}

#[test]
fn trap_11_and_12_and_13_fetches_in_the_middle_and_at_the_end() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let topic = client.topic("t");
    assert_eq!(
        client.produce(topic, 0, batch(&["a", "b", "c"])),
        (ErrorCode::NONE, 0)
    );
    assert_eq!(
        client.fetch(topic, 0, 1),
        ["b", "c"],
        "the whole batch came"
    );
    let answer: FetchResponse = client.call(1, 12 + 5, &fetch_request(topic, 0, 1, 0));
    let row = &answer.responses[0].partitions[0];
    assert_eq!(row.preferred_read_replica.raw(), -1);
    let read = row.records.clone().expect("records");
    let first = Batches::new(&read).next().expect("one").expect("whole");
    assert_eq!(first.header().base_offset.raw(), 0);
    let began = std::time::Instant::now();
    let answer: FetchResponse = client.call(1, 17, &fetch_request(topic, 0, 3, 400));
    let waited = began.elapsed().as_millis();
    assert_eq!(
        answer.responses[0].partitions[0].error_code,
        ErrorCode::NONE
    );
    assert!(
        (400..5_000).contains(&waited),
        "answered at max_wait: {waited} ms"
    );
    assert_serves(&node);
}

#[test]
fn c_57_a_quiet_topic_is_emptied_by_time_and_not_by_size() {
    let (_root, node) = node(&["log.retention.check.interval.ms=100"]);
    let mut client = node.connect();
    client.create_topic("by-time", 1, &[("retention.ms", "5000")]);
    client.create_topic(
        "by-size",
        1,
        &[("retention.bytes", "1"), ("retention.ms", "-1")],
    );
    for topic in ["by-time", "by-size"] {
        log_end_offset(&mut client, topic, 0);
        // The records are of 2023.
        let (error, _) = produce(&mut client, topic, 0, batch(&["a", "b", "c"]));
        assert_eq!(error, ErrorCode::NONE);
    }
    let late = std::time::Instant::now() + crate::support::PATIENCE;
    while list_offset(&mut client, "by-time", 0, -2).2 != 3 {
        assert!(
            std::time::Instant::now() < late,
            "the active segment never goes"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(log_end_offset(&mut client, "by-time", 0), 3);
    let topic = client.topic("by-time");
    let answer: FetchResponse = client.call(1, 17, &fetch_request(topic, 0, 0, 0));
    let row = &answer.responses[0].partitions[0];
    assert_eq!(row.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(
        produce(&mut client, "by-time", 0, batch(&["d"])),
        (ErrorCode::NONE, 3)
    );
    assert_eq!(
        list_offset(&mut client, "by-size", 0, -2).2,
        0,
        "size alone keeps it"
    );
}

/// Bytes that the node read from files and sockets.
fn read_bytes(node: &crate::support::Node) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", node.id())).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|it| it.parse().ok()).expect("a number")
}

#[test]
fn c_28_look_ups_by_time_over_many_segments_scan_no_bodies() {
    const PARTITIONS: i32 = 100;
    let (root, node) = node(&[]);
    let mut client = node.connect();
    client.create_topic("t", PARTITIONS, &[("internal.segment.bytes", "50000")]);
    let records = batch(&["v".repeat(30_000)]);
    for partition in 0..PARTITIONS {
        log_end_offset(&mut client, "t", partition);
        for _ in 0..20 {
            let (error, _) = produce(&mut client, "t", partition, records.clone());
            assert_eq!(error, ErrorCode::NONE);
        }
    }
    assert!(node.stop().success());
    let node = crate::support::Node::start(&root.path().join("data"), &[]);
    let mut client = node.connect();
    client.topic("t");
    (0..PARTITIONS).for_each(|partition| {
        log_end_offset(&mut client, "t", partition);
    });
    let partition = |partition_index| {
        highwater_protocol::messages::list_offsets_request::ListOffsetsPartition {
            partition_index,
            timestamp: 0,
            ..Default::default()
        }
    };
    let request = highwater_protocol::messages::ListOffsetsRequest {
        replica_id: highwater_types::NodeId::new(-1),
        topics: vec![
            highwater_protocol::messages::list_offsets_request::ListOffsetsTopic {
                name: "t".to_owned(),
                partitions: (0..PARTITIONS).map(partition).collect(),
            },
        ],
        ..Default::default()
    };
    for round in ["cold", "warm"] {
        let (before, began) = (read_bytes(&node), std::time::Instant::now());
        let answer: highwater_protocol::messages::ListOffsetsResponse = client.call(2, 7, &request);
        let (read, took) = (read_bytes(&node) - before, began.elapsed());
        for row in &answer.topics[0].partitions {
            assert_eq!(
                (row.error_code, row.offset),
                (ErrorCode::NONE, 0),
                "{round}"
            );
        }
        eprintln!("{round}: {read} bytes in {took:?}");
        // 60 MB lie there; the one batch that is looked into has 30 kB.
        assert!(read < 5_000_000, "{round}: {read} bytes");
        assert!(
            took < std::time::Duration::from_secs(2),
            "{round}: {took:?}"
        );
    }
}
