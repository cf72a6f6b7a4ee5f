//! The load: prebuilt batches over one connection, raw protocol.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::net::sockopt;

use super::wire::Acks;
use super::{batch, wire};

/// Produce requests on their way at a time.
const WINDOW: usize = 8;
/// A fetch asks for so many bytes.
const FETCH_BYTES: i32 = 1 << 20;
/// How long a fresh node may take to accept and to elect a leader.
const PATIENCE: Duration = Duration::from_secs(60);
const NONE: i16 = 0;
/// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS
/// before and after the append.
const NOT_YET: [i16; 5] = [3, 6, 7, 19, 20];
const TOPIC_ALREADY_EXISTS: i16 = 36;

/// One connection to a subject.
#[derive(Debug)]
pub(crate) struct Load {
    stream: TcpStream,
    answer: Vec<u8>,
    acks: Acks,
}

impl Load {
    /// Connects, waiting for the subject to listen. Batches are written with acks=1.
    pub(super) fn connect(port: u16) -> Result<Self> {
        Self::connect_with(port, Acks::One)
    }

    /// The same with these acks.
    pub(crate) fn connect_with(port: u16, acks: Acks) -> Result<Self> {
        let began = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    unpace(&stream);
                    stream.set_read_timeout(Some(PATIENCE))?;
                    return Ok(Self {
                        stream,
                        answer: Vec::new(),
                        acks,
                    });
                }
                Err(why) if began.elapsed() > PATIENCE => return Err(why).context("connect"),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Makes the topic and waits until a first small batch is acknowledged.
    pub(super) fn create_topic(&mut self, topic: &str, configs: &[(&str, String)]) -> Result<()> {
        let began = Instant::now();
        loop {
            self.stream.write_all(&wire::create_topic(topic, configs))?;
            self.read_answer()?;
            match self.code_at(wire::create_error_at(topic))? {
                NONE | TOPIC_ALREADY_EXISTS => break,
                code => ensure!(began.elapsed() < PATIENCE, "create topic: error {code}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.first(topic)
    }

    /// Waits until a first small batch is acknowledged.
    pub(crate) fn first(&mut self, topic: &str) -> Result<()> {
        let began = Instant::now();
        while !self.try_one(topic)? {
            ensure!(began.elapsed() < PATIENCE, "nothing is acknowledged");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// One small batch: whether it is acknowledged. It is not while the leader is another one, or
    /// too few replicas are in the ISR.
    fn try_one(&mut self, topic: &str) -> Result<bool> {
        self.send_one(topic)?;
        match self.answer_to_one(topic)? {
            NONE => Ok(true),
            code if NOT_YET.contains(&code) => Ok(false),
            code => anyhow::bail!("produce: error {code}"),
        }
    }

    /// Sends one small batch.
    pub(crate) fn send_one(&mut self, topic: &str) -> Result<()> {
        let request = wire::produce(topic, &batch::small(), self.acks);
        self.stream.write_all(&request).context("cannot send")
    }

    /// The error code of the answer to it.
    pub(crate) fn answer_to_one(&mut self, topic: &str) -> Result<i16> {
        self.read_answer()?;
        self.code_at(wire::produce_error_at(topic))
    }

    /// Produces batches of about 64 KiB until `bytes` are written; gives the offset behind them.
    pub(super) fn produce(&mut self, topic: &str, bytes: usize) -> Result<i64> {
        let batch = batch::large();
        let request = wire::produce(topic, &batch, self.acks);
        let last = self.pipeline(topic, &request, bytes.div_ceil(batch.len()))?;
        Ok(last + i64::try_from(batch::RECORDS)?)
    }

    /// Produces `count` batches of one small record.
    pub(super) fn produce_small(&mut self, topic: &str, count: u32) -> Result<()> {
        let request = wire::produce(topic, &batch::small(), self.acks);
        self.pipeline(topic, &request, count as usize)?;
        Ok(())
    }

    /// Sends a request `count` times; gives the base offset of the last answer.
    fn pipeline(&mut self, topic: &str, request: &[u8], count: usize) -> Result<i64> {
        let error_at = wire::produce_error_at(topic);
        let mut last = 0;
        let (mut sent, mut answered) = (0, 0);
        while answered < count {
            while sent < count && sent - answered < WINDOW {
                self.stream.write_all(request)?;
                sent += 1;
            }
            self.read_answer()?;
            let code = self.code_at(error_at)?;
            ensure!(code == NONE, "produce: error {code}");
            let offset = self
                .answer
                .get(error_at + 2..error_at + 10)
                .context("short answer")?;
            last = i64::from_be_bytes(offset.try_into()?);
            answered += 1;
        }
        Ok(last)
    }

    /// Reads `bytes` in large batches that end at the offset `end`: the last `hot_bytes`, over and
    /// over.
    pub(super) fn fetch(
        &mut self,
        topic: &str,
        end: i64,
        hot_bytes: usize,
        bytes: usize,
    ) -> Result<()> {
        let batch_bytes = batch::large().len();
        let records = |batches: usize| i64::try_from(batches * batch::RECORDS);
        let begin = end - records(hot_bytes / batch_bytes)?;
        let (error_at, records_at) = wire::fetch_parts_at(topic);
        let (mut read, mut offset) = (0, begin);
        while read < bytes {
            self.stream
                .write_all(&wire::fetch(topic, offset, FETCH_BYTES))?;
            self.read_answer()?;
            let code = self.code_at(error_at)?;
            ensure!(code == NONE, "fetch at {offset}: error {code}");
            let length = self
                .answer
                .get(records_at..records_at + 4)
                .context("short answer")?;
            let length = usize::try_from(i32::from_be_bytes(length.try_into()?))?;
            let batches = length / batch_bytes;
            ensure!(batches > 0, "fetch at {offset}: {length} bytes");
            read += length;
            offset += records(batches)?;
            if offset >= end {
                offset = begin;
            }
        }
        Ok(())
    }

    fn read_answer(&mut self) -> Result<()> {
        let mut length = [0; 4];
        self.stream
            .read_exact(&mut length)
            .context("the subject closed the connection")?;
        self.answer
            .resize(usize::try_from(i32::from_be_bytes(length))?, 0);
        self.stream.read_exact(&mut self.answer)?;
        Ok(())
    }

    fn code_at(&self, at: usize) -> Result<i16> {
        let code = self.answer.get(at..at + 2).context("short answer")?;
        Ok(i16::from_be_bytes(code.try_into()?))
    }
}

/// Takes a connection off a congestion control that sends by timers (bbr): over loopback they cost
/// more than the bytes, and differently in each run. Our server does the same for peers on its
/// machine, so the load and the floor do; Apache Kafka sends as the system says.
pub(super) fn unpace(stream: &TcpStream) {
    let is_paced = sockopt::tcp_congestion(stream).is_ok_and(|name| name.starts_with("bbr"));
    if is_paced {
        let mut unpaced = ["cubic", "reno"].into_iter();
        // Where neither is there, everybody is paced.
        unpaced.find(|name| sockopt::set_tcp_congestion(stream, name).is_ok());
    }
}
