//! `consume --group`: the records that a member of a consumer group gets.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use highwater_client::{
    ConsumerConfig, GroupConfig, GroupConsumer, IsolationLevel, OffsetReset, PartitionRecords,
};
use highwater_types::{Millis, Offset, PartitionIndex};
use tokio::signal::unix::{SignalKind, signal};

use super::consume::{Ends, ends, no_such_key, partitions_of, print};
use super::{block_on, connect};
use crate::args::{ConsumeArgs, Output};
use crate::node_settings::parse_pair;
use crate::output::{self, Usage};

/// How long one wait for records takes before it is looked whether to stop.
const POLL: Millis = Millis::new(200);

/// Prints records until it is stopped, or has enough; then commits and leaves.
pub(super) fn run(args: &ConsumeArgs, group: &str, output: Output) -> anyhow::Result<()> {
    let (membership, reading) = configs(args, group)?;
    block_on(consume(args, membership, reading, output))
}

fn configs(args: &ConsumeArgs, group: &str) -> anyhow::Result<(GroupConfig, ConsumerConfig)> {
    let mut membership = GroupConfig::new(group);
    let mut reading = ConsumerConfig::default();
    if args.from_beginning {
        reading.auto_offset_reset = OffsetReset::Earliest;
    }
    if args.read_committed {
        reading.isolation_level = IsolationLevel::ReadCommitted;
    }
    let usage = |why: highwater_client::ClientError| anyhow!(Usage(why.to_string()));
    for pair in &args.property {
        let (key, value) = parse_pair(pair, "--property")?;
        let known = membership.set(&key, &value).map_err(usage)?
            || reading.set(&key, &value).map_err(usage)?;
        if !known {
            return Err(no_such_key(&key).into());
        }
    }
    membership.check().map_err(usage)?;
    Ok((membership, reading))
}

async fn consume(
    args: &ConsumeArgs,
    membership: GroupConfig,
    reading: ConsumerConfig,
    output: Output,
) -> anyhow::Result<()> {
    let is_stopped = stop_signal()?;
    let client = connect(&args.at).await?;
    let mut partitions = Vec::new();
    for topic in &args.topics {
        partitions.extend(partitions_of(&client, topic, &[]).await?);
    }
    let ends = if args.exit_at_end {
        ends(&client, &partitions, reading.isolation_level).await?
    } else {
        Ends::new()
    };
    let mut consumer = GroupConsumer::subscribe(&client, &args.topics, membership, reading)?;
    let mut printer = Printer {
        args,
        output,
        out: output::stdout(),
        left: args.max_messages.unwrap_or(u64::MAX),
    };
    let result = loop {
        let is_done = args.exit_at_end && at_end(&consumer, &ends);
        if printer.left == 0 || is_done || is_stopped.load(Ordering::Relaxed) {
            break Ok(());
        }
        let polled = consumer.poll(POLL).await.map_err(anyhow::Error::from);
        if let Err(why) = polled.and_then(|them| printer.print(&mut consumer, &them)) {
            break Err(why);
        }
    };
    let closed = consumer.close().await;
    result?;
    closed.context("what was read last is not committed, and is read again")
}

/// Set by Ctrl-C and SIGTERM.
fn stop_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut stream = signal(kind).context("cannot listen for signals")?;
        let is_stopped = is_stopped.clone();
        tokio::spawn(async move {
            stream.recv().await;
            is_stopped.store(true, Ordering::Relaxed);
        });
    }
    Ok(is_stopped)
}

struct Printer<'a, W> {
    args: &'a ConsumeArgs,
    output: Output,
    out: W,
    left: u64,
}

impl<W: Write> Printer<'_, W> {
    /// Prints what there is room for; what is not printed is not committed either.
    fn print(
        &mut self,
        consumer: &mut GroupConsumer,
        polled: &[PartitionRecords],
    ) -> anyhow::Result<()> {
        let printed = self.print_all(consumer, polled);
        if printed.is_err() {
            // Who cannot be told has not got it.
            for records in polled {
                let name = (records.topic.clone(), records.partition);
                consumer.seek(&name, records.from);
            }
        }
        printed
    }

    fn print_all(
        &mut self,
        consumer: &mut GroupConsumer,
        polled: &[PartitionRecords],
    ) -> anyhow::Result<()> {
        for records in polled {
            if let Some(unprinted) = self.print_some(records)? {
                consumer.seek(&(records.topic.clone(), records.partition), unprinted);
            }
        }
        self.out.flush()?;
        Ok(())
    }

    /// Gives the offset of the first record that was not printed.
    fn print_some(&mut self, records: &PartitionRecords) -> anyhow::Result<Option<Offset>> {
        let place: (&str, PartitionIndex) = (&records.topic, records.partition);
        for batch in &records.batches {
            let time = batch.header().attributes.timestamp_type();
            for record in batch.records().filter(|it| it.offset >= records.from) {
                if self.left == 0 {
                    return Ok(Some(record.offset));
                }
                self.left -= 1;
                print(&mut self.out, self.args, place, time, &record, self.output)?;
            }
        }
        Ok(None)
    }
}

/// Whether everything that this member was dealt is read, as far as it was there at the beginning.
fn at_end(consumer: &GroupConsumer, ends: &Ends) -> bool {
    consumer.has_assignment()
        && consumer.assignment().iter().all(|it| {
            let name = (it.topic.to_string(), it.partition);
            let Some((start, last)) = ends.get(&name) else {
                return true;
            };
            let position = consumer.position(&name);
            start >= last || position.is_some_and(|at| at >= *last)
        })
}
