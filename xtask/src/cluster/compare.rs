//! The logs of all replicas of a partition, read from their files and compared batch by batch.
//!
//! It reads the format by itself: it judges ours and Apache Kafka's alike.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// Bytes of a batch before those that its length counts.
const PREFIX: usize = 12;
/// Bytes of a batch's header.
const HEADER: usize = 61;
/// Where in a header producer id and epoch are.
const PRODUCER: usize = 43;
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(50);

/// What all replicas hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// The log end offset.
    pub(crate) end: i64,
    pub(crate) batches: usize,
    /// Each leader epoch that has a batch, with its first offset.
    pub(crate) epochs: Vec<(i32, i64)>,
    /// Who wrote each batch, by its last offset.
    pub(crate) producers: BTreeMap<i64, Producer>,
}

/// Who wrote a batch, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    /// Raised by a producer that does not know what became of its requests.
    pub(crate) epoch: i16,
}

impl Agreement {
    /// Who wrote the record at `offset`.
    pub(crate) fn producer(&self, offset: i64) -> Option<Producer> {
        self.producers.range(offset..).next().map(|(_, it)| *it)
    }
}

/// One replica's log.
#[derive(Debug)]
struct Log {
    batches: Vec<Batch>,
    /// Lines of `leader-epoch-checkpoint`.
    checkpoint: Vec<(i32, i64)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Batch {
    base: i64,
    last: i64,
    epoch: i32,
    bytes: Vec<u8>,
}

impl Batch {
    fn producer(&self) -> Producer {
        let header = self.bytes.get(PRODUCER..PRODUCER + 10);
        let (id, epoch) = header.expect("a whole header").split_at(8);
        Producer {
            id: i64::from_be_bytes(id.try_into().expect("eight bytes")),
            epoch: i16::from_be_bytes(epoch.try_into().expect("two bytes")),
        }
    }
}

/// Who wrote the directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Still run: a checkpoint may say less than the log, for it is written later.
    Running,
    /// Have stopped as they should.
    Stopped,
}

/// Compares once no replica writes any more: a follower may be a moment behind.
pub(crate) fn settled(data: &[PathBuf], partition: &str) -> Result<Agreement> {
    let began = Instant::now();
    loop {
        match agree(data, partition, Writers::Running) {
            Ok(agreement) => return Ok(agreement),
            Err(why) if began.elapsed() > PATIENCE => return Err(why),
            Err(_) => std::thread::sleep(GLANCE),
        }
    }
}

/// Compares the logs of `partition` (`orders-0`) in these data directories.
pub(crate) fn agree(data: &[PathBuf], partition: &str, writers: Writers) -> Result<Agreement> {
    let mut logs = Vec::new();
    for folder in data {
        let folder = folder.join(partition);
        let log = read(&folder).with_context(|| folder.display().to_string())?;
        let path = folder.display();
        check(&log).with_context(|| path.to_string())?;
        check_checkpoint(&log, writers).with_context(|| path.to_string())?;
        logs.push((folder, log));
    }
    let Some(((first_folder, first), rest)) = logs.split_first() else {
        bail!("nothing to compare");
    };
    for (folder, log) in rest {
        same(first, log)
            .with_context(|| format!("{} and {}", first_folder.display(), folder.display()))?;
    }
    Ok(Agreement {
        end: first.batches.last().map_or(0, |it| it.last + 1),
        batches: first.batches.len(),
        epochs: first_offsets(first),
        producers: first
            .batches
            .iter()
            .map(|it| (it.last, it.producer()))
            .collect(),
    })
}

fn same(one: &Log, other: &Log) -> Result<()> {
    for (at, (a, b)) in one.batches.iter().zip(&other.batches).enumerate() {
        if a == b {
            continue;
        }
        let what = if (a.base, a.last, a.epoch) == (b.base, b.last, b.epoch) {
            "bytes"
        } else {
            "bounds or leader epoch"
        };
        bail!(
            "batch {at} differs in {what}: offsets {}..={} of epoch {}, and {}..={} of epoch {}",
            a.base,
            a.last,
            a.epoch,
            b.base,
            b.last,
            b.epoch
        );
    }
    let (ours, theirs) = (one.batches.len(), other.batches.len());
    ensure!(ours == theirs, "{ours} batches, and {theirs}");
    Ok(())
}

/// What must hold of a log by itself: no hole, and leader epochs that only rise.
fn check(log: &Log) -> Result<()> {
    for pair in log.batches.windows(2) {
        let [before, after] = pair else { continue };
        ensure!(
            after.base == before.last + 1,
            "a hole: offset {} follows {}",
            after.base,
            before.last
        );
        ensure!(
            after.epoch >= before.epoch,
            "epoch {} at offset {} follows epoch {}",
            after.epoch,
            after.base,
            before.epoch
        );
    }
    Ok(())
}

/// `leader-epoch-checkpoint` says where each leader epoch of the log begins.
fn check_checkpoint(log: &Log, writers: Writers) -> Result<()> {
    let told = &log.checkpoint;
    for (epoch, first) in first_offsets(log) {
        let start = told.iter().find(|(it, _)| *it == epoch).map(|it| it.1);
        let may_be_missing = start.is_none() && writers == Writers::Running;
        ensure!(
            start == Some(first) || may_be_missing,
            "epoch {epoch} begins at {first}, and leader-epoch-checkpoint says {told:?}"
        );
    }
    for pair in told.windows(2) {
        let [before, after] = pair else { continue };
        ensure!(
            before.0 < after.0 && before.1 < after.1,
            "leader-epoch-checkpoint: {after:?} follows {before:?}"
        );
    }
    // A leader notes its epoch before the first batch of it.
    let end = log.batches.last().map_or(0, |it| it.last + 1);
    let beyond = told.iter().find(|(_, start)| *start > end);
    if let (Some(beyond), Writers::Stopped) = (beyond, writers) {
        bail!("leader-epoch-checkpoint: {beyond:?} is beyond the end {end}");
    }
    Ok(())
}

fn first_offsets(log: &Log) -> Vec<(i32, i64)> {
    let mut firsts: Vec<(i32, i64)> = Vec::new();
    for batch in &log.batches {
        if firsts.last().is_none_or(|(epoch, _)| *epoch != batch.epoch) {
            firsts.push((batch.epoch, batch.base));
        }
    }
    firsts
}

fn read(folder: &Path) -> Result<Log> {
    let mut segments = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let file = file?.path();
        if file.extension().is_some_and(|kind| kind == "log") {
            segments.push(file);
        }
    }
    segments.sort();
    let mut batches = Vec::new();
    for segment in segments {
        let bytes = std::fs::read(&segment)?;
        read_segment(&bytes, &mut batches).with_context(|| segment.display().to_string())?;
    }
    let checkpoint = std::fs::read_to_string(folder.join("leader-epoch-checkpoint"));
    Ok(Log {
        batches,
        checkpoint: parse_checkpoint(&checkpoint.unwrap_or_default())?,
    })
}

fn read_segment(mut rest: &[u8], batches: &mut Vec<Batch>) -> Result<()> {
    while !rest.is_empty() {
        let header = rest.get(..HEADER).context("a torn header at the end")?;
        let length = usize::try_from(i32_at(header, 8)?)? + PREFIX;
        ensure!(length >= HEADER, "a batch of {length} bytes");
        let (bytes, after) = rest
            .split_at_checked(length)
            .context("a torn batch at the end")?;
        let base = i64::from_be_bytes(slice(bytes, 0)?);
        let crc = u32::from_be_bytes(slice(bytes, 17)?);
        let checked = bytes.get(21..).context("a short batch")?;
        ensure!(crc32c::crc32c(checked) == crc, "bad CRC at offset {base}");
        batches.push(Batch {
            base,
            last: base + i64::from(i32_at(bytes, 23)?),
            epoch: i32_at(bytes, 12)?,
            bytes: bytes.to_vec(),
        });
        rest = after;
    }
    Ok(())
}

fn i32_at(bytes: &[u8], at: usize) -> Result<i32> {
    Ok(i32::from_be_bytes(slice(bytes, at)?))
}

fn slice<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let found = bytes.get(at..at + N).context("a short batch")?;
    Ok(found.try_into()?)
}

/// Version, count, then a line for each entry.
fn parse_checkpoint(text: &str) -> Result<Vec<(i32, i64)>> {
    let mut entries = Vec::new();
    for line in text.lines().skip(2) {
        let (epoch, start) = line.split_once(' ').context("a line of a checkpoint")?;
        entries.push((epoch.parse()?, start.parse()?));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(base: i64, records: i32, epoch: i32, fill: u8) -> Vec<u8> {
        let mut checked = vec![0, 0];
        checked.extend_from_slice(&(records - 1).to_be_bytes());
        checked.extend_from_slice(&[fill; HEADER - 27]);
        let length = i32::try_from(checked.len() + 9).unwrap();
        let mut bytes = base.to_be_bytes().to_vec();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.push(2);
        bytes.extend_from_slice(&crc32c::crc32c(&checked).to_be_bytes());
        bytes.extend_from_slice(&checked);
        bytes
    }

    fn write(folder: &Path, batches: &[Vec<u8>], checkpoint: &str) -> PathBuf {
        let partition = folder.join("t-0");
        std::fs::create_dir_all(&partition).unwrap();
        let log = partition.join("00000000000000000000.log");
        std::fs::write(log, batches.concat()).unwrap();
        std::fs::write(partition.join("leader-epoch-checkpoint"), checkpoint).unwrap();
        folder.to_owned()
    }

    fn outcome(one: (&[Vec<u8>], &str), other: (&[Vec<u8>], &str)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let a = write(&folder.path().join("a"), one.0, one.1);
        let b = write(&folder.path().join("b"), other.0, other.1);
        match agree(&[a, b], "t-0", Writers::Stopped) {
            Ok(it) => format!(
                "{} batches to {}, epochs {:?}",
                it.batches, it.end, it.epochs
            ),
            Err(why) => format!("{why:#}"),
        }
    }

    const CHECKPOINT: &str = "0\n2\n0 0\n3 2\n";

    #[test]
    fn logs_that_agree_do() {
        let log = [batch(0, 2, 0, 1), batch(2, 3, 3, 2)];
        let told = outcome((&log, CHECKPOINT), (&log, CHECKPOINT));
        assert_eq!(told, "2 batches to 5, epochs [(0, 0), (3, 2)]");
        // The leader has begun an epoch that has no batch yet.
        let begun = "0\n3\n0 0\n3 2\n4 5\n";
        assert_eq!(outcome((&log, begun), (&log, CHECKPOINT)), told);
    }

    #[test]
    fn whatever_differs_is_named() {
        let log = [batch(0, 2, 0, 1), batch(2, 3, 3, 2)];
        let good = (&log[..], CHECKPOINT);
        for (batches, checkpoint, named) in [
            (&log[..1], "0\n1\n0 0\n", "2 batches, and 1"),
            (&[log[0].clone(), batch(2, 3, 3, 9)], CHECKPOINT, "bytes"),
            (&[log[0].clone(), batch(2, 2, 3, 2)], CHECKPOINT, "bounds"),
            (&[log[0].clone(), batch(3, 3, 3, 2)], CHECKPOINT, "a hole"),
            (&[log[0].clone(), log[0].clone()], CHECKPOINT, "a hole"),
            (&[batch(0, 2, 4, 1), log[1].clone()], CHECKPOINT, "epoch 3"),
            (&log[..], "0\n1\n0 0\n", "checkpoint says [(0, 0)]"),
            (&log[..], "0\n3\n0 0\n3 2\n2 4\n", "follows"),
            (&log[..], "0\n3\n0 0\n3 2\n4 6\n", "beyond the end"),
            (&[log[0].clone(), log[1][..50].to_vec()], "", "torn"),
            (&[log[0][..40].to_vec()], "", "torn header"),
        ] {
            let told = outcome(good, (batches, checkpoint));
            assert!(told.contains(named), "{named}: {told}");
        }
        let mut rotten = log[0].clone();
        rotten[40] ^= 1;
        let told = outcome(good, (&[rotten], "0\n1\n0 0\n"));
        assert!(told.contains("bad CRC"), "{told}");
    }
}
