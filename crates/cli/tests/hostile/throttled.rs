use std::time::{Duration, Instant};

use highwater_protocol::messages::fetch_request::FetchPartition;
use highwater_protocol::messages::{ApiVersionsResponse, FetchRequest, FetchResponse};
use highwater_types::Uuid;

use super::support::fetch_request;
use super::{api_versions, assert_serves, node};

const PARTITIONS: i32 = 501;
const API_FETCH: i16 = 1;
const API_VERSIONS: i16 = 18;

/// A fetch without a session that waits for a record in any of the topic's partitions.
fn wait_for_any(topic: Uuid, wait_ms: i32) -> FetchRequest {
    let mut request = fetch_request(topic, 0, 0, wait_ms);
    let first = request.topics[0].partitions[0].clone();
    let partition = |partition| FetchPartition {
        partition,
        ..first.clone()
    };
    request.topics[0].partitions = (0..PARTITIONS).map(partition).collect();
    request.session_epoch = -1;
    request.min_bytes = 1;
    request
}

/// KIP-219: who is throttled is answered first, told for how long, and not read from until then.
/// A node throttles fetches that it has no room to let wait.
#[test]
fn trap_45_a_throttled_client_is_answered_first_and_then_not_read() {
    let (_root, node) = node(&["max.incremental.fetch.session.partitions=1000"]);
    let mut client = node.connect();
    client.create_topic("t", PARTITIONS, &[]);
    let topic = client.topic("t");

    // Until every log is open some partitions have errors to tell, and nothing waits.
    let all_open = (0..5_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        let answer: FetchResponse = client.call(API_FETCH, 17, &wait_for_any(topic, 0));
        let mut partitions = answer.responses.iter().flat_map(|it| &it.partitions);
        partitions.all(|it| !it.error_code.is_error())
    });
    assert!(all_open);

    let mut waiting = node.connect();
    let request = wait_for_any(topic, 600_000);
    let waits = waiting.send(API_FETCH, 17, &request);
    // Who comes and is answered after it finds it waiting.
    assert_serves(&node);
    let mut throttled = node.connect();
    let began = Instant::now();
    let first = throttled.send(API_FETCH, 17, &request);
    let second = throttled.send(API_VERSIONS, 4, &api_versions());
    let answer: FetchResponse = throttled.receive(API_FETCH, 17, first);
    let partitions: usize = answer.responses.iter().map(|it| it.partitions.len()).sum();
    assert_eq!(answer.throttle_time_ms, 1_000);
    assert_eq!(partitions, 501, "the answer is whole");
    // Others are served meanwhile.
    assert_serves(&node);
    let _: ApiVersionsResponse = throttled.receive(API_VERSIONS, 4, second);
    let passed = began.elapsed();
    assert!(
        passed >= Duration::from_secs(1),
        "read again after {passed:?}"
    );
    // The one that waits is answered as soon as there is something.
    let batch = super::support::batch(&["a"]);
    let (error, _) = client.produce(topic, 7, batch);
    assert!(!error.is_error(), "{error}");
    let answer: FetchResponse = waiting.receive(API_FETCH, 17, waits);
    assert_eq!(answer.throttle_time_ms, 0);
}
