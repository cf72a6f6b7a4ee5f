//! The few frames that the load needs, at versions without compact forms.

#![allow(
    clippy::cast_possible_truncation,
    reason = "frames of at most some 64 KiB"
)]

const CLIENT_ID: &str = "bench";

/// A request frame, its 4-byte length included.
fn frame(api_key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 4];
    frame.extend_from_slice(&api_key.to_be_bytes());
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&correlation_id.to_be_bytes());
    string(&mut frame, CLIENT_ID.as_bytes());
    frame.extend_from_slice(body);
    let length = (frame.len() as i32 - 4).to_be_bytes();
    frame.splice(0..4, length);
    frame
}

/// Whose copies a produce request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acks {
    /// The leader's.
    One,
    /// Those of the whole ISR.
    All,
}

/// Produce v7 of one batch to partition 0.
pub(super) fn produce(topic: &str, batch: &[u8], acks: Acks) -> Vec<u8> {
    let acks: i16 = match acks {
        Acks::One => 1,
        Acks::All => -1,
    };
    let mut body = Vec::new();
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&acks.to_be_bytes());
    body.extend_from_slice(&30_000_i32.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    string(&mut body, topic.as_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&0_i32.to_be_bytes());
    body.extend_from_slice(&(batch.len() as i32).to_be_bytes());
    body.extend_from_slice(batch);
    frame(0, 7, 0, &body)
}

/// Where the batch is in a Produce v7 request (after its length): key, version, correlation id,
/// client id, no transactional id, acks, timeout, one topic, its name, one partition, its number,
/// the length of the batch.
pub(super) const fn produce_batch_at(topic: &str) -> usize {
    2 + 2 + 4 + 2 + CLIENT_ID.len() + 2 + 2 + 4 + 4 + 2 + topic.len() + 4 + 4 + 4
}

/// Fetch v11 without a session from partition 0, at most `bytes_max`.
pub(super) fn fetch(topic: &str, offset: i64, bytes_max: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&(-1_i32).to_be_bytes());
    body.extend_from_slice(&500_i32.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&bytes_max.to_be_bytes());
    body.push(0);
    body.extend_from_slice(&0_i32.to_be_bytes());
    body.extend_from_slice(&(-1_i32).to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    string(&mut body, topic.as_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&0_i32.to_be_bytes());
    body.extend_from_slice(&(-1_i32).to_be_bytes());
    body.extend_from_slice(&offset.to_be_bytes());
    body.extend_from_slice(&(-1_i64).to_be_bytes());
    body.extend_from_slice(&bytes_max.to_be_bytes());
    body.extend_from_slice(&0_i32.to_be_bytes());
    string(&mut body, b"");
    frame(1, 11, 0, &body)
}

/// CreateTopics v4 of one topic with one partition.
pub(super) fn create_topic(topic: &str, configs: &[(&str, String)]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&1_i32.to_be_bytes());
    string(&mut body, topic.as_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&1_i16.to_be_bytes());
    body.extend_from_slice(&0_i32.to_be_bytes());
    body.extend_from_slice(&(configs.len() as i32).to_be_bytes());
    for (key, value) in configs {
        string(&mut body, key.as_bytes());
        string(&mut body, value.as_bytes());
    }
    body.extend_from_slice(&30_000_i32.to_be_bytes());
    body.push(0);
    frame(19, 4, 0, &body)
}

/// Where the error code of the one partition is in a Produce v7 answer (after its length):
/// correlation id, one topic, its name, one partition, its number.
pub(super) const fn produce_error_at(topic: &str) -> usize {
    4 + 4 + 2 + topic.len() + 4 + 4
}

/// Where the parts of the one partition are in a Fetch v11 answer (after its length): error code
/// and length of the records. Correlation id, throttle, error, session, one topic, its name, one
/// partition, its number; then error, high watermark, last stable offset, log start, no aborted
/// transactions, preferred replica.
pub(super) const fn fetch_parts_at(topic: &str) -> (usize, usize) {
    let error = 4 + 4 + 2 + 4 + 4 + 2 + topic.len() + 4 + 4;
    (error, error + 2 + 8 + 8 + 8 + 4 + 4)
}

/// Where the error code of the one topic is in a CreateTopics v4 answer (after its length):
/// correlation id, throttle, one topic, its name.
pub(super) const fn create_error_at(topic: &str) -> usize {
    4 + 4 + 4 + 2 + topic.len()
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text);
}
