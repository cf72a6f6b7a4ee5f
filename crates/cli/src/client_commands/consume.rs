use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use highwater_client::{
    Client, ClientError, Consumer, ConsumerConfig, IsolationLevel, OffsetReset, OffsetSpec,
    PartitionName, StartAt,
};
use highwater_records::{Record, TimestampType};
use highwater_types::{ErrorCode, Millis, Offset, PartitionIndex};
use serde_json::{Value, json};

use super::{block_on, connect};
use crate::args::{ConsumeArgs, Output};
use crate::node_settings::parse_pair;
use crate::output::{self, Usage};

/// How long one wait for records takes before the ends are looked at again.
const POLL: Millis = Millis::new(1_000);

/// Start and end of partitions.
pub(super) type Ends = BTreeMap<PartitionName, (Offset, Offset)>;

/// `consume TOPIC`: prints records until it is stopped, or has enough.
pub(crate) fn run(args: ConsumeArgs, output: Output) -> anyhow::Result<()> {
    if let Some(group) = &args.group {
        return super::consume_group::run(&args, group, output);
    }
    let start = start_at(&args)?;
    let config = consumer_config(&args, start)?;
    block_on(consume(&args, start, config, output))
}

fn start_at(args: &ConsumeArgs) -> anyhow::Result<StartAt> {
    if args.from_beginning {
        return Ok(StartAt::Earliest);
    }
    match args.offset.as_deref() {
        None | Some("latest") => Ok(StartAt::Latest),
        Some("earliest") => Ok(StartAt::Earliest),
        Some(text) => match text.parse() {
            Ok(offset) if offset >= 0 => Ok(StartAt::Offset(Offset::new(offset))),
            Ok(_) | Err(_) => {
                let why = "a number from 0, earliest or latest is expected";
                Err(Usage(format!("--offset {text}: {why}")).into())
            }
        },
    }
}

fn consumer_config(args: &ConsumeArgs, start: StartAt) -> anyhow::Result<ConsumerConfig> {
    let mut config = ConsumerConfig {
        auto_offset_reset: match start {
            StartAt::Earliest => OffsetReset::Earliest,
            // Records that are gone must not go unnoticed.
            StartAt::Offset(_) => OffsetReset::None,
            StartAt::Latest | StartAt::Timestamp(_) => OffsetReset::Latest,
        },
        ..ConsumerConfig::default()
    };
    if args.read_committed {
        config.isolation_level = IsolationLevel::ReadCommitted;
    }
    for pair in &args.property {
        let (key, value) = parse_pair(pair, "--property")?;
        let known = config
            .set(&key, &value)
            .map_err(|why| anyhow!(Usage(why.to_string())))?;
        if !known {
            return Err(no_such_key(&key).into());
        }
    }
    Ok(config)
}

pub(super) fn no_such_key(key: &str) -> Usage {
    Usage(format!("--property {key}: no consumer has such a key"))
}

async fn consume(
    args: &ConsumeArgs,
    start: StartAt,
    config: ConsumerConfig,
    output: Output,
) -> anyhow::Result<()> {
    let client = connect(&args.at).await?;
    let mut partitions = Vec::new();
    for topic in &args.topics {
        partitions.extend(partitions_of(&client, topic, &args.partition).await?);
    }
    let ends = if args.exit_at_end {
        ends(&client, &partitions, config.isolation_level).await?
    } else {
        BTreeMap::new()
    };
    let mut consumer = Consumer::new(&client, config);
    for (topic, partition) in &partitions {
        consumer.assign(topic, *partition, start).await?;
    }
    let mut left = args.max_messages.unwrap_or(u64::MAX);
    let mut out = output::stdout();
    // An offset behind the end is not the end: the brokers are asked once whether it can be.
    let mut is_sure = !starts_behind(start, &ends);
    while left > 0 && !(args.exit_at_end && is_sure && at_end(&consumer, &ends)) {
        let polled = consumer.poll(POLL).await.map_err(in_words)?;
        is_sure = true;
        for records in polled {
            let place = (records.topic.as_str(), records.partition);
            for batch in &records.batches {
                let time = batch.header().attributes.timestamp_type();
                let from = records.from;
                let wanted = batch.records().filter(|it| it.offset >= from);
                for record in wanted {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    print(&mut out, args, place, time, &record, output)?;
                }
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// The partitions of a topic that are `named`, or all.
pub(super) async fn partitions_of(
    client: &Client,
    name: &str,
    named: &[i32],
) -> anyhow::Result<Vec<PartitionName>> {
    let names = [name.to_owned()];
    let topics = client.describe_topics(Some(&names)).await?;
    let topic = topics.into_iter().find(|topic| topic.name == name);
    let Some(topic) = topic.filter(|it| it.error != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) else {
        bail!(
            "there is no topic {name}: make it with `highwater topic create`, or produce to it \
             first"
        );
    };
    if topic.error.is_error() {
        bail!("cannot read topic {name}: {}", topic.error);
    }
    let all: Vec<PartitionIndex> = topic.partitions.iter().map(|it| it.index).collect();
    let named: Vec<PartitionIndex> = named
        .iter()
        .map(|&number| PartitionIndex::new(number))
        .collect();
    if let Some(missing) = named.iter().find(|partition| !all.contains(partition)) {
        let count = all.len();
        bail!("there is no partition {name}-{missing}: the topic has {count}, from 0");
    }
    let wanted = if named.is_empty() { all } else { named };
    Ok(wanted
        .into_iter()
        .map(|partition| (name.to_owned(), partition))
        .collect())
}

/// Start and end of each partition now.
pub(super) async fn ends(
    client: &Client,
    partitions: &[PartitionName],
    isolation: IsolationLevel,
) -> Result<Ends, ClientError> {
    let mut ends = BTreeMap::new();
    let specs = |spec| {
        partitions
            .iter()
            .map(|it| (it.clone(), spec))
            .collect::<Vec<_>>()
    };
    let starts = client
        .list_offsets(&specs(OffsetSpec::Earliest), isolation)
        .await;
    let lasts = client
        .list_offsets(&specs(OffsetSpec::Latest), isolation)
        .await;
    for ((partition, start), last) in partitions.iter().zip(starts).zip(lasts) {
        let start = start?.offset.unwrap_or(Offset::ZERO);
        let last = last?.offset.unwrap_or(Offset::ZERO);
        ends.insert(partition.clone(), (start, last));
    }
    Ok(ends)
}

/// An error of the library, with this command's remedy where it has one.
fn in_words(why: ClientError) -> anyhow::Error {
    match why {
        ClientError::OffsetOutOfRange { partition, offset } => anyhow!(
            "{partition}: offset {offset} is outside the log; begin at another --offset, such as \
             earliest or latest"
        ),
        other => other.into(),
    }
}

/// Whether reading begins behind what was there at the beginning.
fn starts_behind(start: StartAt, ends: &Ends) -> bool {
    let StartAt::Offset(offset) = start else {
        return false;
    };
    ends.values().any(|(_, last)| offset > *last)
}

/// Whether everything that was there at the beginning has been read.
fn at_end(consumer: &Consumer, ends: &Ends) -> bool {
    ends.iter().all(|(partition, (start, last))| {
        start >= last || consumer.position(partition).is_some_and(|at| at >= *last)
    })
}

/// Prints one record of a topic's partition.
pub(super) fn print(
    out: &mut impl Write,
    args: &ConsumeArgs,
    (topic, partition): (&str, PartitionIndex),
    time: TimestampType,
    record: &Record<'_>,
    output: Output,
) -> anyhow::Result<()> {
    if output == Output::Json {
        writeln!(out, "{}", to_json(topic, partition, record))?;
        return Ok(());
    }
    let separator = args.key_separator.as_bytes();
    let mut parts: Vec<Vec<u8>> = Vec::new();
    if args.print_timestamp {
        parts.push(format!("{}:{}", time.name(), record.timestamp).into_bytes());
    }
    if args.print_partition {
        parts.push(partition.to_string().into_bytes());
    }
    if args.print_offset {
        parts.push(record.offset.to_string().into_bytes());
    }
    if args.print_headers {
        parts.push(headers_text(record));
    }
    if args.print_key {
        parts.push(record.key.unwrap_or(b"null").to_vec());
    }
    parts.push(record.value.unwrap_or(b"null").to_vec());
    out.write_all(&parts.join(separator))?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Headers as Kafka's console consumer prints them.
fn headers_text(record: &Record<'_>) -> Vec<u8> {
    let headers = record
        .headers()
        .map(|(key, value)| [key, b":", value.unwrap_or(b"null")].concat());
    let headers: Vec<Vec<u8>> = headers.collect();
    if headers.is_empty() {
        b"NO_HEADERS".to_vec()
    } else {
        headers.join(&b","[..])
    }
}

/// A record as JSON. Keys and values that are no UTF-8 come as base64 besides: no text can hold
/// them.
fn to_json(topic: &str, partition: PartitionIndex, record: &Record<'_>) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: Vec<Value> = record
        .headers()
        .map(|(key, value)| json!({ "key": text(key), "value": value.map(text) }))
        .collect();
    let mut told = json!({
        "topic": topic,
        "partition": partition.raw(),
        "offset": record.offset.raw(),
        "timestamp": record.timestamp.raw(),
        "key": record.key.map(text),
        "value": record.value.map(text),
        "headers": headers,
    });
    for (name, bytes) in [("key_base64", record.key), ("value_base64", record.value)] {
        let binary = bytes.filter(|bytes| std::str::from_utf8(bytes).is_err());
        if let (Some(bytes), Some(told)) = (binary, told.as_object_mut()) {
            told.insert(name.to_owned(), json!(BASE64.encode(bytes)));
        }
    }
    told
}
