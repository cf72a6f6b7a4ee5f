//! Peers that take all the memory for requests and then hardly send: the others are served.

use std::io::{ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use highwater_types::ErrorCode;

use crate::support::{Client, Node, batch};
use crate::{assert_usable, node, produce};

/// A budget of 16 MiB, and twenty peers that sent 1.5 MB each of a frame of 20 MB as far as the
/// node takes it.
fn starved() -> (tempfile::TempDir, Node, Vec<Client>) {
    let (root, node) = node(&["max.inbound.memory.bytes=16777216"]);
    node.connect().topic("t");
    let holders = (0..20).map(|_| holder(&node)).collect();
    (root, node, holders)
}

fn holder(node: &Node) -> Client {
    let mut client = node.connect();
    client.stream.set_nonblocking(true).expect("a socket");
    let length = 20_000_000_i32.to_be_bytes();
    let mut left: &[u8] = &[&length[..], &vec![0; 1_500_000]].concat();
    let late = Instant::now() + Duration::from_millis(300);
    while !left.is_empty() && Instant::now() < late {
        match client.stream.write(left) {
            Ok(sent) => left = &left[sent..],
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(why) => panic!("{why}"),
        }
    }
    client
}

/// How long a produce request of `bytes` takes, on a connection of its own.
fn time_of_a_request(node: &Node, bytes: usize) -> Duration {
    let mut client = node.connect();
    let limit = Some(Duration::from_secs(55));
    client.stream.set_read_timeout(limit).expect("a socket");
    let value = "v".repeat(bytes);
    let began = Instant::now();
    let (error, _) = produce(&mut client, "t", 0, batch(&[&value]));
    assert_eq!(error, ErrorCode::NONE);
    began.elapsed()
}

const USUAL: usize = 64_000;
const LARGE: usize = 900_000;

#[test]
fn b_05_half_sent_frames_starve_neither_small_nor_usual_requests() {
    let (_root, node, holders) = starved();
    let began = Instant::now();
    for _ in 0..20 {
        assert_usable(&mut node.connect());
        time_of_a_request(&node, 10);
        time_of_a_request(&node, USUAL);
    }
    // Sooner than any holder is thrown out.
    let took = began.elapsed();
    assert!(took < Duration::from_millis(4_500), "{took:?}");
    drop(holders);
}

#[test]
fn b_05_half_sent_frames_hold_up_large_requests_for_seconds_only() {
    let (_root, node, holders) = starved();
    // Looks come 5 s apart and see 15 s of standing still; the rest is for slow machines. The
    // limit for slow frames alone would take 60 s.
    let took = time_of_a_request(&node, LARGE);
    assert!(took < Duration::from_secs(45), "{took:?}");
    drop(holders);
}

/// Above the rate of the slowest link, but far too slow for what they hold.
#[test]
fn b_05_frames_that_trickle_in_hold_up_large_requests_for_seconds_only() {
    let (_root, node, mut holders) = starved();
    let trickle = Trickle(AtomicBool::new(true));
    std::thread::scope(|scope| {
        let trickle = &trickle;
        scope.spawn(move || {
            while trickle.0.load(Ordering::Relaxed) {
                for holder in &mut holders {
                    // Whoever was thrown out is gone.
                    let _gone = holder.stream.write(&[0; 2_500]);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let _until_the_end = End(trickle);
        let took = time_of_a_request(&node, LARGE);
        assert!(took < Duration::from_secs(45), "{took:?}");
    });
}

struct Trickle(AtomicBool);

/// Ends it, also when the test fails.
struct End<'a>(&'a Trickle);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}
