//! The two questions that a driver has, by hand: it depends on nothing under test.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

const METADATA: i16 = 3;
const CREATE_TOPICS: i16 = 19;
const PATIENCE: Duration = Duration::from_secs(5);
/// More is no answer to these.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const TOPIC_ALREADY_EXISTS: i16 = 36;

/// A partition as a broker tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) index: i32,
    /// -1: none.
    pub(crate) leader: i32,
    pub(crate) leader_epoch: i32,
    pub(crate) replicas: Vec<i32>,
    pub(crate) isr: Vec<i32>,
}

/// The leader of partition 0 of a topic and its port, as the broker at `port` knows them.
pub(crate) fn leader_port(port: u16, topic: &str) -> Result<(i32, u16)> {
    let known = metadata(port, topic)?;
    let leader = known.partitions.first().context("no partition 0")?.leader;
    let port = known.ports.into_iter().find(|(id, _)| *id == leader);
    port.with_context(|| format!("broker {leader} is not there"))
}

/// The partitions of a topic, as the broker at `port` knows them, in order.
pub(crate) fn partitions(port: u16, topic: &str) -> Result<Vec<Partition>> {
    Ok(metadata(port, topic)?.partitions)
}

/// What a broker tells of the others and of one topic.
struct Metadata {
    ports: Vec<(i32, u16)>,
    partitions: Vec<Partition>,
}

fn metadata(port: u16, topic: &str) -> Result<Metadata> {
    let mut body = Vec::new();
    body.extend_from_slice(&1_i32.to_be_bytes());
    string(&mut body, topic)?;
    // Not to be made by asking.
    body.push(0);
    let answer = ask(port, METADATA, 7, &body)?;
    let mut rest = Reader(&answer);
    rest.i32()?;
    let mut ports = Vec::new();
    for _ in 0..rest.i32()? {
        let id = rest.i32()?;
        rest.string()?;
        ports.push((id, u16::try_from(rest.i32()?)?));
        rest.string()?;
    }
    rest.string()?;
    rest.i32()?;
    ensure!(rest.i32()? == 1, "one topic was asked for");
    let code = rest.i16()?;
    ensure!(code == 0, "metadata of {topic}: error {code}");
    rest.string()?;
    rest.take(1)?;
    let mut partitions = Vec::new();
    for _ in 0..rest.i32()? {
        rest.i16()?;
        partitions.push(Partition {
            index: rest.i32()?,
            leader: rest.i32()?,
            leader_epoch: rest.i32()?,
            replicas: rest.i32s()?,
            isr: rest.i32s()?,
        });
        rest.i32s()?;
    }
    partitions.sort_by_key(|it| it.index);
    Ok(Metadata { ports, partitions })
}

/// Makes a topic with these replicas, or finds it there already.
pub(crate) fn create_topic(
    port: u16,
    name: &str,
    assignment: &[Vec<i32>],
    configs: &[(&str, &str)],
) -> Result<()> {
    let mut body = Vec::new();
    body.extend_from_slice(&1_i32.to_be_bytes());
    string(&mut body, name)?;
    body.extend_from_slice(&(-1_i32).to_be_bytes());
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&i32::try_from(assignment.len())?.to_be_bytes());
    for (index, replicas) in (0_i32..).zip(assignment) {
        body.extend_from_slice(&index.to_be_bytes());
        body.extend_from_slice(&i32::try_from(replicas.len())?.to_be_bytes());
        for replica in replicas {
            body.extend_from_slice(&replica.to_be_bytes());
        }
    }
    body.extend_from_slice(&i32::try_from(configs.len())?.to_be_bytes());
    for (key, value) in configs {
        string(&mut body, key)?;
        string(&mut body, value)?;
    }
    body.extend_from_slice(&10_000_i32.to_be_bytes());
    body.push(0);
    let answer = ask(port, CREATE_TOPICS, 4, &body)?;
    let mut rest = Reader(&answer);
    rest.i32()?;
    ensure!(rest.i32()? == 1, "one topic was to be made");
    rest.string()?;
    let code = rest.i16()?;
    ensure!(
        code == 0 || code == TOPIC_ALREADY_EXISTS,
        "create {name}: error {code} {:?}",
        rest.string()?
    );
    Ok(())
}

/// One request on a connection of its own; the answer behind its correlation id.
fn ask(port: u16, api_key: i16, version: i16, body: &[u8]) -> Result<Vec<u8>> {
    let address = ([127, 0, 0, 1], port).into();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    request.extend_from_slice(&api_key.to_be_bytes());
    request.extend_from_slice(&version.to_be_bytes());
    request.extend_from_slice(&7_i32.to_be_bytes());
    string(&mut request, "torture")?;
    request.extend_from_slice(body);
    let mut frame = i32::try_from(request.len())?.to_be_bytes().to_vec();
    frame.append(&mut request);
    stream.write_all(&frame)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).context("no answer")?;
    let length = usize::try_from(i32::from_be_bytes(length))?;
    ensure!(
        (4..=ANSWER_BYTES_MAX).contains(&length),
        "an answer of {length} bytes"
    );
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).context("half an answer")?;
    Ok(answer.split_off(4))
}

fn string(out: &mut Vec<u8>, text: &str) -> Result<()> {
    out.extend_from_slice(&i16::try_from(text.len())?.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Reads an answer from its start.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).context("a short answer")?;
        self.0 = rest;
        Ok(taken)
    }

    fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.take(2)?.try_into()?))
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into()?))
    }

    fn i32s(&mut self) -> Result<Vec<i32>> {
        let count = self.i32()?;
        (0..count).map(|_| self.i32()).collect()
    }

    fn string(&mut self) -> Result<Option<String>> {
        match usize::try_from(self.i16()?) {
            Ok(length) => {
                let bytes = self.take(length)?;
                Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
            }
            Err(_) => Ok(None),
        }
    }
}
