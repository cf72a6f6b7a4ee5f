//! Latency in an open loop: requests leave by the clock, whatever the answers do.
//!
//! Each latency counts from the moment at which its request was due, so that a stall is paid for by
//! all requests that it holds up.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};

use super::wire::{self, Acks};
use super::{batch, load};

/// An answer to a produce request is small.
const ANSWER_BYTES_MAX: usize = 1 << 16;
const PATIENCE: Duration = Duration::from_secs(30);

/// Latencies in milliseconds, in rising order.
#[derive(Debug)]
pub(super) struct Latencies(Vec<f64>);

impl Latencies {
    /// The latency that this share of the requests did not exceed.
    pub(super) fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let index = (share * last as f64).round();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index within a list"
        )]
        let index = index as usize;
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// Sends one small batch of `topic`, acks=all, `rate` times a second for so long.
pub(super) fn run(port: u16, topic: &str, rate: u32, length: Duration) -> Result<Latencies> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    load::unpace(&stream);
    let request = wire::produce(topic, &batch::small(), Acks::All);
    let error_at = wire::produce_error_at(topic);
    let answers = stream.try_clone()?;
    let (due_to, due_from) = channel();
    let receiver = std::thread::spawn(move || receive(answers, error_at, &due_from));
    let (gap, began) = (Duration::from_secs(1) / rate, Instant::now());
    let mut due = began;
    while due.duration_since(began) < length {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due_to
            .send(due)
            .map_err(|_| anyhow!("no answers any more"))?;
        stream.write_all(&request)?;
        due += gap;
    }
    drop(due_to);
    let received = receiver.join().map_err(|_| anyhow!("the receiver"))?;
    let mut latencies = received?;
    latencies.sort_by(f64::total_cmp);
    Ok(Latencies(latencies))
}

fn receive(mut stream: TcpStream, error_at: usize, due: &Receiver<Instant>) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    let mut answer = Vec::new();
    // Ends once the sender has and all is answered.
    while let Ok(due) = due.recv() {
        let mut length = [0; 4];
        stream.read_exact(&mut length).context("no answer")?;
        let length = usize::try_from(i32::from_be_bytes(length))?;
        ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
        answer.resize(length, 0);
        stream.read_exact(&mut answer)?;
        latencies.push(due.elapsed().as_secs_f64() * 1e3);
        let code = answer.get(error_at..error_at + 2);
        ensure!(code == Some(&[0, 0]), "produce: error {code:?}");
    }
    Ok(latencies)
}
