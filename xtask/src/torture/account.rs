//! What a witness told, and whether it can all be true of a log that loses and doubles nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};

use crate::cluster::compare::Producer;

/// One record as somebody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// -1 where the broker did not say: it had the record already.
    pub(super) offset: i64,
    /// -1 where nobody said.
    pub(super) epoch: i32,
    /// The number that the record carries.
    pub(super) number: u64,
}

/// What was told of one partition, in the order in which it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) acknowledged: Vec<Seen>,
    /// By a reader that followed all the time; empty when nobody did.
    pub(super) followed: Vec<Seen>,
    /// By a reader at the end.
    pub(super) read: Vec<Seen>,
    /// Offsets of records that their producer wrote once more: see [`Told::excuse_producer`].
    written_again: BTreeSet<i64>,
}

impl Told {
    /// A producer that does not know what became of its requests may raise its own epoch and write
    /// once more what was not acknowledged (librdkafka does after enough errors). No broker can
    /// know these for copies, so the earlier ones are left out; how many there are. A copy of the
    /// same producer epoch stays a fault.
    pub(super) fn excuse_producer(&mut self, by: impl Fn(i64) -> Option<Producer>) -> usize {
        let mut newest: BTreeMap<u64, Producer> = BTreeMap::new();
        for seen in self.read.iter().rev() {
            let Some(producer) = by(seen.offset) else {
                continue;
            };
            match newest.get(&seen.number) {
                Some(later) if later.id == producer.id && later.epoch > producer.epoch => {
                    self.written_again.insert(seen.offset);
                }
                Some(_) => {}
                None => {
                    newest.insert(seen.number, producer);
                }
            }
        }
        self.written_again.len()
    }
}

/// What was told of a topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) partitions: Vec<Told>,
    pub(super) failed: Vec<String>,
    /// Set once the writer is done: records that it sent, and those without a report.
    pub(super) stopped: Option<(usize, usize)>,
    pub(super) is_done: bool,
}

impl Account {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            partitions: vec![Told::default(); partitions],
            ..Self::default()
        }
    }

    /// Takes a line of `interop/torture.py`.
    pub(super) fn take(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["acked", partition, offset, number] => {
                let seen = seen(offset, "-1", number)?;
                self.partition(partition)?.acknowledged.push(seen);
            }
            ["followed", partition, offset, epoch, number] => {
                let seen = seen(offset, epoch, number)?;
                self.partition(partition)?.followed.push(seen);
            }
            ["read", partition, offset, epoch, number] => {
                let seen = seen(offset, epoch, number)?;
                self.partition(partition)?.read.push(seen);
            }
            ["failed", ..] => self.failed.push(line.to_owned()),
            ["stopped", sent, left] => self.stopped = Some((sent.parse()?, left.parse()?)),
            ["done"] => self.is_done = true,
            _ => bail!("a witness says '{line}'"),
        }
        Ok(())
    }

    /// Takes a line of Apache's VerifiableProducer.
    pub(super) fn take_verifiable(&mut self, line: &str) -> Result<()> {
        match field(line, "name") {
            Some("producer_send_success") => {
                let part = |name| field(line, name).with_context(|| format!("no {name}: {line}"));
                let seen = seen(part("offset")?, "-1", part("value")?)?;
                self.partition(part("partition")?)?.acknowledged.push(seen);
            }
            Some("producer_send_error") => self.failed.push(line.to_owned()),
            Some("shutdown_complete") => self.is_done = true,
            _ => {}
        }
        Ok(())
    }

    fn partition(&mut self, index: &str) -> Result<&mut Told> {
        let index: usize = index.parse()?;
        self.partitions.get_mut(index).context("no such partition")
    }

    /// Every acknowledged record is read back once and in order, and nothing was ever read that is
    /// not so at the end. Gives the number of acknowledged records.
    pub(super) fn judge(&self) -> Result<usize> {
        ensure!(
            self.failed.is_empty(),
            "{} records failed: {:?}",
            self.failed.len(),
            self.failed.first()
        );
        let mut acknowledged = 0;
        for (index, told) in self.partitions.iter().enumerate() {
            judge(told).with_context(|| format!("partition {index}"))?;
            acknowledged += told.acknowledged.len();
        }
        if let Some((sent, left)) = self.stopped {
            ensure!(
                left == 0 && acknowledged == sent,
                "{acknowledged} of {sent} records are acknowledged, {left} have no report"
            );
        }
        Ok(acknowledged)
    }
}

fn judge(told: &Told) -> Result<()> {
    // A wait that timed out is answered by a retry, perhaps after what was written behind it: the
    // order of the log counts, not that of the answers.
    let mut acknowledged = told.acknowledged.clone();
    acknowledged.sort_by_key(|it| it.number);
    in_order(&acknowledged).context("acknowledgements")?;
    let is_whole = |it: &&Seen| !told.written_again.contains(&it.offset);
    let read: Vec<Seen> = told.read.iter().filter(is_whole).copied().collect();
    in_order(&read).context("read at the end")?;
    for (expected, seen) in (0_i64..).zip(&told.read) {
        let offset = seen.offset;
        ensure!(
            offset == expected,
            "a hole: offset {offset} where {expected} is expected"
        );
    }
    let mut numbers = read.iter();
    for acknowledged in &acknowledged {
        let number = acknowledged.number;
        // Both rise: whatever is passed over was not acknowledged.
        let found = numbers.find(|it| it.number >= number);
        let found = found.filter(|it| it.number == number);
        let found = found.with_context(|| format!("lost: {acknowledged:?} was acknowledged"))?;
        ensure!(
            acknowledged.offset == found.offset || acknowledged.offset == -1,
            "{acknowledged:?} was acknowledged, and is {found:?}"
        );
    }
    for (followed, read) in told.followed.iter().zip(&told.read) {
        ensure!(
            followed == read,
            "{followed:?} was read, and became {read:?}"
        );
    }
    ensure!(
        told.followed.len() <= told.read.len(),
        "{} records were read on the way, and {} are there",
        told.followed.len(),
        told.read.len()
    );
    Ok(())
}

/// Numbers rise, and offsets where they are told: so nothing is there twice.
fn in_order(records: &[Seen]) -> Result<()> {
    for pair in records.windows(2) {
        let [before, after] = pair else { continue };
        ensure!(
            after.number != before.number,
            "twice: {before:?} and {after:?}"
        );
        ensure!(
            after.number > before.number
                && (after.offset > before.offset || after.offset == -1 || before.offset == -1),
            "out of order: {after:?} after {before:?}"
        );
    }
    Ok(())
}

fn seen(offset: &str, epoch: &str, number: &str) -> Result<Seen> {
    Ok(Seen {
        offset: offset.parse()?,
        epoch: epoch.parse().unwrap_or(-1),
        number: number.parse()?,
    })
}

/// The value of a field of a flat JSON object, without its quotes.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    let value = rest.split([',', '}']).next()?;
    Some(value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &str) -> String {
        let mut account = Account::new(1);
        for line in lines.split(", ") {
            account.take(line).unwrap();
        }
        match account.judge() {
            Ok(count) => count.to_string(),
            Err(why) => format!("{why:#}"),
        }
    }

    #[test]
    fn what_is_true_of_a_good_log_passes() {
        let good = "acked 0 0 0, followed 0 0 2 0, acked 0 1 1, acked 0 -1 2, stopped 3 0, \
                    read 0 0 2 0, read 0 1 2 1, read 0 2 3 2, done";
        assert_eq!(outcome(good), "3");
        // What was not acknowledged may be there, or not.
        let more = "acked 0 0 0, acked 0 2 2, read 0 0 0 0, read 0 1 0 1, read 0 2 0 2";
        assert_eq!(outcome(more), "2");
        // The first was answered only when it was sent again.
        let late = "acked 0 1 1, acked 0 0 0, read 0 0 0 0, read 0 1 0 1";
        assert_eq!(outcome(late), "2");
    }

    #[test]
    fn what_a_producer_of_a_raised_epoch_writes_again_is_no_fault() {
        let lines = "acked 0 0 0, acked 0 2 1, read 0 0 0 0, read 0 1 0 1, read 0 2 0 1";
        let outcome = |epochs: [i16; 3]| {
            let mut account = Account::new(1);
            for line in lines.split(", ") {
                account.take(line).unwrap();
            }
            let told = account.partitions.first_mut().unwrap();
            told.excuse_producer(|offset| {
                let epoch = *epochs.get(usize::try_from(offset).ok()?)?;
                Some(Producer { id: 7, epoch })
            });
            account.judge().map_err(|why| format!("{why:#}"))
        };
        assert_eq!(outcome([0, 0, 1]), Ok(2));
        for same in [[0, 0, 0], [0, 1, 0]] {
            assert!(outcome(same).unwrap_err().contains("twice"), "{same:?}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        for (lines, named) in [
            ("acked 0 0 0, acked 0 1 1, read 0 0 0 0", "lost"),
            ("acked 0 0 0, read 0 0 0 0, read 0 1 0 0", "twice"),
            ("acked 0 0 0, acked 0 0 0, read 0 0 0 0", "twice"),
            ("acked 0 1 0, acked 0 0 1", "out of order"),
            ("read 0 0 0 1, read 0 1 0 0", "out of order"),
            ("read 0 0 0 0, read 0 2 0 1", "a hole"),
            ("read 0 1 0 0", "a hole"),
            ("acked 0 1 0, read 0 0 0 0", "was acknowledged, and is"),
            ("followed 0 0 0 7, read 0 0 0 8", "became"),
            ("followed 0 0 0 0, read 0 0 1 0", "became"),
            ("followed 0 0 0 0", "are there"),
            ("failed 0 3 timed out", "1 records failed"),
            ("acked 0 0 0, stopped 2 1, read 0 0 0 0", "have no report"),
            ("acked 0 0 0, stopped 2 0, read 0 0 0 0", "1 of 2"),
        ] {
            let told = outcome(lines);
            assert!(told.contains(named), "{lines}: {told}");
        }
    }

    #[test]
    fn verifiable_producer_is_understood() {
        let mut account = Account::new(2);
        for line in [
            r#"{"timestamp":1,"name":"startup_complete"}"#,
            r#"{"name":"producer_send_success","key":null,"value":7,"partition":1,"offset":3}"#,
            r#"{"timestamp":2,"name":"shutdown_complete"}"#,
        ] {
            account.take_verifiable(line).unwrap();
        }
        let seen = account.partitions[1].acknowledged[0];
        assert_eq!((seen.offset, seen.number), (3, 7));
        assert!(account.is_done);
    }
}
