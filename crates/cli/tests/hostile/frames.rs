//! B-01 to B-14: frames, headers and bodies that do not hold together.

use std::io::Write as _;

use highwater_protocol::messages::{
    MetadataRequest, MetadataResponse, ProduceResponse, metadata_request::MetadataRequestTopic,
};
use highwater_protocol::wire::Message as _;
use highwater_types::ErrorCode;

use crate::support::batch;
use crate::{
    assert_closes, assert_serves, assert_usable, frame, framed, log_end_offset, node, produce,
    produce_named,
};

#[test]
fn b_02_every_length_below_a_header_closes() {
    let (_root, node) = node(&[]);
    for length in 0..8_i32 {
        let mut client = node.connect();
        // With and without the bytes that the length announces.
        let mut bytes = length.to_be_bytes().to_vec();
        if length % 2 == 0 {
            bytes.extend((0..length).map(|_| 0));
        }
        client.stream.write_all(&bytes).expect("sends");
        client.assert_closed();
    }
    assert_serves(&node);
}

#[test]
fn b_09_client_ids_and_strings_of_wrong_length_or_text() {
    let (_root, node) = node(&[]);
    let header = |client_id: &[u8]| {
        let mut frame = vec![0, 3, 0, 1, 0, 0, 0, 7];
        frame.extend(client_id);
        frame
    };
    assert_closes(&node, "client id of -2", &header(b"\xff\xfe\0\0\0\0"));
    assert_closes(
        &node,
        "client id past the end",
        &header(b"\x7f\xffab\0\0\0\0"),
    );
    assert_closes(
        &node,
        "client id that is no text",
        &header(b"\0\x02\xc3\x28\0\0\0\0"),
    );
    for (what, topic) in [
        ("name of -2", &b"\xff\xfe"[..]),
        ("null name", b"\xff\xff"),
        ("name past the end", b"\x7f\xffab"),
        ("name that is no text", b"\0\x03a\xffb"),
    ] {
        let body = [b"\0\0\0\x01", topic].concat();
        assert_closes(&node, what, &frame(3, 1, false, &body));
    }
    for (what, topic) in [
        ("compact name past the end", &b"\x7fab\0\0\0\0\0"[..]),
        ("compact name that is no text", b"\x03\xc3\x28\0\0\0\0\0"),
        ("null compact name", b"\0\0\0\0\0\0"),
    ] {
        let body = [b"\x02", topic].concat();
        assert_closes(&node, what, &frame(3, 9, true, &body));
    }
    assert_serves(&node);
}

#[test]
fn b_10_huge_counts_close_in_every_api() {
    let (_root, node) = node(&[]);
    let huge = i32::MAX.to_be_bytes();
    let ten = [0; 10];
    let old = |head: &[u8]| [head, &huge, &ten].concat();
    // The last version of each API that is not flexible, up to its first list.
    for (api, version, head) in [
        (0, 8, &b"\xff\xff\0\x01\0\0\0\0"[..]),
        (0, 8, b"\xff\xff\0\x01\0\0\0\0\0\0\0\x01\0\x01t"),
        (1, 11, &[0; 25]),
        (2, 5, b"\xff\xff\xff\xff\0"),
        (3, 8, b""),
        (19, 4, b""),
        (19, 4, b"\0\0\0\x01\0\x01t\0\0\0\x01\0\x01"),
        (20, 3, b""),
        (23, 3, b"\xff\xff\xff\xfe"),
        (32, 3, b""),
        (32, 3, b"\0\0\0\x01\x02\0\x01t"),
    ] {
        assert_closes(
            &node,
            &format!("api {api}"),
            &frame(api, version, false, &old(head)),
        );
    }
    let compact = |head: &[u8]| [head, b"\xff\xff\xff\xff\x0f", &ten].concat();
    for (api, version, head) in [
        (0, 12, &b"\0\xff\xff\0\0\x03\xe8"[..]),
        (1, 17, &[0; 21]),
        (2, 11, b"\xff\xff\xff\xff\0"),
        (3, 13, b""),
        (19, 7, b""),
        (20, 6, b""),
        (23, 4, b"\xff\xff\xff\xfe"),
        (32, 4, b""),
        (75, 0, b""),
    ] {
        let what = format!("api {api}, compact");
        assert_closes(&node, &what, &frame(api, version, true, &compact(head)));
    }
    assert_serves(&node);
}

#[test]
fn b_11_null_where_something_must_be_closes() {
    let (_root, node) = node(&[]);
    for count in [-1, -2, i32::MIN] {
        let count: i32 = count;
        let body = count.to_be_bytes();
        assert_closes(&node, "Metadata v0", &frame(3, 0, false, &body));
        let body = [&[0; 25][..], &count.to_be_bytes(), &[0; 8]].concat();
        assert_closes(&node, "Fetch v11", &frame(1, 11, false, &body));
    }
    assert_closes(
        &node,
        "Metadata v8 of -2",
        &frame(3, 8, false, b"\xff\xff\xff\xfe\0\0\0"),
    );
    assert_closes(
        &node,
        "Produce v9",
        &frame(0, 9, true, b"\0\0\x01\0\0\0\0\0\0"),
    );
    assert_closes(
        &node,
        "CreateTopics v7",
        &frame(19, 7, true, b"\0\0\0\0\0\0\0"),
    );
    assert_closes(
        &node,
        "ListOffsets v11",
        &frame(2, 11, true, b"\xff\xff\xff\xff\0\0\0\0"),
    );
    assert_serves(&node);
}

#[test]
fn b_12_varints_that_are_too_long_or_cut_close() {
    let (_root, node) = node(&[]);
    for (what, body) in [
        ("six bytes", &b"\x80\x80\x80\x80\x80\x01\0\0\0\0\0\0"[..]),
        ("33 bits", b"\xff\xff\xff\xff\x1f\0\0\0\0\0\0"),
        ("cut at the end", b"\x80\x80"),
        ("nothing", b""),
    ] {
        assert_closes(&node, what, &frame(3, 9, true, body));
    }
    // Tags of the header.
    let header = frame(3, 9, false, b"\xff\xff\xff\xff\xff\x01");
    assert_closes(&node, "tags of the header", &header);
    assert_serves(&node);
}

#[test]
fn b_13_tagged_fields_that_lie_close_and_unknown_ones_are_skipped() {
    let (_root, node) = node(&[]);
    // Metadata v9 for no topic at all, up to its tags.
    let tags = |tags: &[u8]| frame(3, 9, true, &[b"\x01\0\0\0", tags].concat());
    assert_closes(&node, "huge count", &tags(b"\xff\xff\xff\xff\x0f\x01\x01x"));
    assert_closes(&node, "size past the end", &tags(b"\x01\x05\x7fx"));
    assert_closes(&node, "repeated tag", &tags(b"\x02\x05\0\x05\0"));
    assert_closes(&node, "falling tag", &tags(b"\x02\x05\0\x04\0"));
    let mut client = node.connect();
    client.send_frame(&tags(b"\x02\x05\x01x\xff\x01\0"));
    assert_eq!(client.read_frame().expect("an answer")[..4], [0, 0, 0, 7]);
    assert_usable(&mut client);
}

#[test]
fn b_14_stray_bytes_are_ignored_and_nothing_reaches_out_of_its_parent() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.topic("t");
    let topic = MetadataRequestTopic {
        name: Some("t".to_owned()),
        ..Default::default()
    };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        ..Default::default()
    };
    // As librdkafka 2.16 sends it.
    let stray = [framed(3, 13, &request).as_slice(), &[0, 0, 0]].concat();
    client.send_frame(&stray);
    let answer = bytes::Bytes::from(client.read_frame().expect("an answer"));
    let answer = MetadataResponse::from_bytes(&answer.slice(5..), 13).expect("well formed");
    assert_eq!(answer.topics[0].error_code, ErrorCode::NONE);
    assert_usable(&mut client);

    // Records that are longer than their request.
    let body = b"\xff\xff\0\x01\0\0\0\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\0\0\0\x09abc";
    assert_closes(&node, "records past the end", &frame(0, 3, false, body));
    assert_eq!(
        log_end_offset(&mut client, "t", 0),
        0,
        "nothing was appended"
    );
}

#[test]
fn b_30_acks_timeout_and_partition_that_make_no_sense() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.topic("t");
    let good = Some(batch(&["a"]));
    let mut code = |request: &highwater_protocol::messages::ProduceRequest| {
        let answer: ProduceResponse = client.call(0, 12, request);
        answer.responses[0].partition_responses[0].error_code
    };
    for acks in [7, 2, -2, i16::MIN, i16::MAX] {
        let request = produce_named("t", acks, &[(0, good.clone())]);
        assert_eq!(
            code(&request),
            ErrorCode::INVALID_REQUIRED_ACKS,
            "acks={acks}"
        );
    }
    for timeout_ms in [-1, i32::MIN] {
        let mut request = produce_named("t", -1, &[(0, good.clone())]);
        request.timeout_ms = timeout_ms;
        // Apache Kafka 4.4 takes it as no time at all.
        assert_eq!(code(&request), ErrorCode::NONE, "timeout={timeout_ms}");
    }
    for partition in [-1, 1, i32::MIN, i32::MAX] {
        let request = produce_named("t", -1, &[(partition, good.clone())]);
        assert_eq!(
            code(&request),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            "{partition}"
        );
    }
    assert_eq!(
        log_end_offset(&mut client, "t", 0),
        2,
        "nothing else was appended"
    );
    assert_eq!(
        produce(&mut client, "t", 0, batch(&["a"])),
        (ErrorCode::NONE, 2)
    );
}
