use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _, Write as _};
use std::thread;

use anyhow::{Context as _, anyhow, bail};
use highwater_client::{Client, ClientError, Delivery, Producer, ProducerConfig, ProducerRecord};
use highwater_types::PartitionIndex;
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use super::{block_on, client_config};
use crate::args::{Output, ProduceArgs};
use crate::node_settings::parse_pair;
use crate::output::{self, Usage};

/// Longest line, in bytes: more than any `max.request.size` that makes sense.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Lines that are read ahead of the producer.
const LINES_AHEAD: usize = 1024;
/// Records whose fate is not known yet, before reading pauses.
const UNKNOWN_MAX: usize = 100_000;

/// `produce TOPIC`: one record per line of standard input.
pub(crate) fn run(args: ProduceArgs, output: Output) -> anyhow::Result<()> {
    let config = producer_config(&args)?;
    let sent = block_on(produce(&args, config))?;
    let mut out = output::stdout();
    match output {
        Output::Json => writeln!(out, "{}", json!({ "topic": args.topic, "records": sent }))?,
        Output::Table => writeln!(out, "sent {} to {}", records(sent), args.topic)?,
    }
    out.flush()?;
    Ok(())
}

fn producer_config(args: &ProduceArgs) -> anyhow::Result<ProducerConfig> {
    let mut config = ProducerConfig::default();
    let usage = |why: ClientError| anyhow!(Usage(why.to_string()));
    config.set("acks", &args.acks).map_err(usage)?;
    config
        .set("compression.type", &args.compression)
        .map_err(usage)?;
    for pair in &args.property {
        let (key, value) = parse_pair(pair, "--property")?;
        if !config.set(&key, &value).map_err(usage)? {
            return Err(Usage(format!("--property {key}: no producer has such a key")).into());
        }
    }
    Ok(config)
}

async fn produce(args: &ProduceArgs, config: ProducerConfig) -> anyhow::Result<u64> {
    let limit = config.delivery_timeout;
    let client = Client::connect(client_config(&args.at)).await;
    let client = client.with_context(|| format!("cannot reach {}", args.at.bootstrap))?;
    let producer = Producer::new(&client, config)?;
    let mut lines = read_lines();
    let mut unknown: VecDeque<Delivery> = VecDeque::new();
    let mut sent = 0;
    let first = Notify::new();
    let mut is_interrupted = false;
    let done = async {
        loop {
            tokio::select! {
                biased;
                () = first.notified(), if !is_interrupted => {
                    // What was read before is still sent.
                    lines.close();
                    is_interrupted = true;
                }
                Some(fate) = oldest(&mut unknown) => {
                    fate.map_err(|why| lost(why, sent))?;
                    sent += 1;
                }
                line = lines.recv(), if unknown.len() < UNKNOWN_MAX => {
                    let Some(line) = line else { break };
                    let line = line.context("cannot read standard input")?;
                    let delivery = producer.send(record(args, &line)).await;
                    unknown.push_back(delivery.map_err(|why| lost(why, sent))?);
                }
            }
        }
        // Nothing lingers once the input has ended.
        producer.flush().await;
        while let Some(fate) = oldest(&mut unknown).await {
            fate.map_err(|why| lost(why, sent))?;
            sent += 1;
        }
        producer.close(limit).await?;
        anyhow::Ok(())
    };
    let twice = async {
        tokio::signal::ctrl_c().await?;
        first.notify_one();
        tokio::signal::ctrl_c().await
    };
    tokio::select! {
        done = done => done?,
        heard = twice => {
            heard.context("cannot listen for Ctrl-C")?;
            bail!("stopped by Ctrl-C before all was acknowledged");
        }
    }
    if is_interrupted {
        bail!(
            "stopped by Ctrl-C: {} before it were sent to {}",
            records(sent),
            args.topic
        );
    }
    Ok(sent)
}

fn records(count: u64) -> String {
    match count {
        1 => "1 record".to_owned(),
        _ => format!("{count} records"),
    }
}

/// Waits for the fate of the oldest record. `None` when there is none.
async fn oldest(unknown: &mut VecDeque<Delivery>) -> Option<Result<(), ClientError>> {
    // A copy: this wait may be given up for the next line.
    let fate = unknown.front()?.clone().wait().await;
    unknown.pop_front();
    Some(fate.map(drop))
}

fn lost(why: ClientError, sent: u64) -> anyhow::Error {
    anyhow!("{why}; {} before it were acknowledged", records(sent))
}

fn record<'a>(args: &'a ProduceArgs, line: &'a [u8]) -> ProducerRecord<'a> {
    let (key, value) = match args.key_separator.as_deref() {
        None | Some("") => (None, line),
        Some(separator) => match split_once(line, separator.as_bytes()) {
            Some((key, value)) => (Some(key), value),
            None => (None, line),
        },
    };
    ProducerRecord {
        topic: &args.topic,
        partition: args.partition.map(PartitionIndex::new),
        key,
        value: Some(value),
        ..ProducerRecord::default()
    }
}

fn split_once<'a>(line: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = line
        .windows(separator.len())
        .position(|window| window == separator)?;
    let (key, rest) = line.split_at_checked(at)?;
    Some((key, rest.get(separator.len()..)?))
}

/// Reads lines on a thread of their own: standard input blocks.
fn read_lines() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (lines, received) = mpsc::channel(LINES_AHEAD);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let line = next_line(&mut input);
            let last = !matches!(line, Ok(Some(_)));
            let gone = match line.transpose() {
                Some(line) => lines.blocking_send(line).is_err(),
                None => true,
            };
            if last || gone {
                return;
            }
        }
    });
    received
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input
        .by_ref()
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut line)?
        == 0
    {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    } else if line.len() as u64 == LINE_BYTES_MAX {
        return Err(io::Error::other("a line is longer than 256 MiB"));
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_kafkas_console_producer_ends_them() {
        let mut input: &[u8] = b"a\r\n\nb\xff\nlast";
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input).expect("memory") {
            lines.push(line);
        }
        assert_eq!(lines, [&b"a"[..], b"", b"b\xff", b"last"]);
    }

    #[test]
    fn keys_stand_before_the_first_separator() {
        assert_eq!(
            split_once(b"k::v::w", b"::"),
            Some((&b"k"[..], &b"v::w"[..]))
        );
        assert_eq!(split_once(b"plain", b"::"), None);
    }
}
