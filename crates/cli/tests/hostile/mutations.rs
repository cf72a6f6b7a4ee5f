//! Captured requests with bytes changed, sent to a real node: each is answered or closes its
//! connection; the node lives on, writes nothing outside of its directory, and stays small.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use crate::support::{Client, Node};
use crate::{assert_serves, memory, names_in, node};

/// APIs that a client listener serves, as the captures name them.
const SERVED: [&str; 12] = [
    "00-Produce",
    "01-Fetch",
    "02-ListOffsets",
    "03-Metadata",
    "18-ApiVersions",
    "19-CreateTopics",
    "20-DeleteTopics",
    "22-InitProducerId",
    "23-OffsetForLeaderEpoch",
    "32-DescribeConfigs",
    "60-DescribeCluster",
    "75-DescribeTopicPartitions",
];

fn captured() -> Vec<(String, Vec<u8>)> {
    let files = highwater_fixtures::wire();
    let requests = files.iter().filter_map(|(path, text)| {
        let name = path.to_string_lossy().into_owned();
        let api = name.split('/').next().unwrap_or_default();
        let api = api.strip_suffix("-cases").unwrap_or(api);
        let wanted = SERVED.contains(&api) && name.ends_with(".request.hex");
        wanted.then(|| (name, highwater_fixtures::unhex(text)))
    });
    requests.collect()
}

/// The ways in which the bytes from `at` on are changed.
fn mutated(frame: &[u8], at: usize) -> Vec<Vec<u8>> {
    let overwritten = |bytes: &[u8]| {
        let mut frame = frame.to_vec();
        for (place, byte) in frame[at..].iter_mut().zip(bytes) {
            *place = *byte;
        }
        frame
    };
    let mut inserted = frame.to_vec();
    inserted.insert(at, 0);
    vec![
        overwritten(b"\x7f\xff\xff\xff"),
        overwritten(b"\xff\xff\xff\xff"),
        overwritten(b"\x80"),
        overwritten(b"\0"),
        frame[..at].to_vec(),
        inserted,
    ]
}

/// What came of a frame.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    Closed,
    Silent,
}

fn send(client: &mut Client, frame: &[u8]) -> Outcome {
    let length = u32::try_from(frame.len()).expect("small").to_be_bytes();
    if client
        .stream
        .write_all(&[&length[..], frame].concat())
        .is_err()
    {
        return Outcome::Closed;
    }
    let mut length = [0; 4];
    match client.stream.read_exact(&mut length) {
        Ok(()) => {
            let mut answer = vec![0; u32::from_be_bytes(length) as usize];
            match client.stream.read_exact(&mut answer) {
                Ok(()) => Outcome::Answered,
                Err(_) => Outcome::Closed,
            }
        }
        Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Outcome::Silent
        }
        Err(_) => Outcome::Closed,
    }
}

fn connect(node: &Node) -> Client {
    let client = node.connect();
    client
        .stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a socket");
    client
}

#[test]
fn b_09_to_b_14_changed_bytes_of_captured_requests_hurt_nobody() {
    let (root, node) = node(&[]);
    let outside = names_in(root.path());
    let (mut answered, mut closed, mut silent) = (0, 0, 0);
    let mut client = connect(&node);
    let frames = captured();
    assert!(frames.len() > 80, "{} captured requests", frames.len());
    for (name, frame) in &frames {
        // Spread over the frame, never in step with its fields.
        let step = (frame.len() / 9).max(1) | 1;
        for at in (0..frame.len()).step_by(step) {
            for bytes in mutated(frame, at) {
                if bytes.len() < 8 {
                    continue;
                }
                match send(&mut client, &bytes) {
                    Outcome::Answered => {
                        answered += 1;
                        continue;
                    }
                    Outcome::Closed => closed += 1,
                    // A Fetch that waits, acks=0, or a Produce that became one of them.
                    Outcome::Silent => {
                        let may_wait = ["00-", "01-"].iter().any(|it| name.starts_with(it));
                        let is_now = matches!(bytes[..2], [0, 0 | 1]);
                        assert!(may_wait || is_now, "{name} at {at}: {bytes:02x?}");
                        silent += 1;
                    }
                }
                client = connect(&node);
            }
        }
    }
    eprintln!("{answered} answered, {closed} closed, {silent} silent");
    assert!(
        answered > 500 && closed > 500,
        "{answered} answered, {closed} closed"
    );
    assert!(silent < 200, "{silent} were not answered at once");
    assert_serves(&node);
    assert_eq!(names_in(root.path()), outside);
    let peak = memory::peak(&node);
    assert!(peak < 96 << 20, "{peak} bytes");
    assert!(!node.said().contains("panic"), "{}", node.said());
}
