//! Where a reset may move to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use highwater_types::{Offset, PartitionIndex, TopicName, TopicPartition, WallMs};

use crate::group_args::ResetArgs;
use crate::moment;
use crate::output::Usage;

/// Where to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Earliest,
    Latest,
    Current,
    Offset(i64),
    Shift(i64),
    Timestamp(WallMs),
    /// To an offset of its own in each partition.
    Each(BTreeMap<TopicPartition, i64>),
}

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl Target {
    /// What the options say; clap has seen to it that exactly one is there.
    pub(super) fn of(args: &ResetArgs) -> anyhow::Result<Self> {
        if let Some(offset) = args.to_offset {
            if offset < 0 {
                return Err(Usage(format!("--to-offset {offset}: offsets begin at 0")).into());
            }
            return Ok(Self::Offset(offset));
        }
        if let Some(by) = args.shift_by {
            return Ok(Self::Shift(by));
        }
        if let Some(text) = &args.to_datetime {
            let moment = moment::parse(text).ok_or_else(|| {
                let expected =
                    "a time such as 2026-11-30T12:00:00 or 2026-11-30T12:00:00.000+01:00";
                Usage(format!("--to-datetime {text}: {expected} is expected"))
            });
            return Ok(Self::Timestamp(WallMs::new(moment?)));
        }
        if let Some(text) = &args.by_duration {
            let span = moment::parse_span(text).ok_or_else(|| {
                let expected = "a span such as 90s, 15m, 2h, 7d or PT2H30M";
                Usage(format!("--by-duration {text}: {expected} is expected"))
            });
            let span = i64::try_from(span?.as_millis()).unwrap_or(i64::MAX);
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.context("the clock stands before 1970")?.as_millis();
            let now = i64::try_from(now).unwrap_or(i64::MAX);
            return Ok(Self::Timestamp(WallMs::new(
                now.saturating_sub(span).max(0),
            )));
        }
        if let Some(path) = &args.from_file {
            return Ok(Self::Each(read(path)?));
        }
        Ok(if args.to_earliest {
            Self::Earliest
        } else if args.to_latest {
            Self::Latest
        } else {
            Self::Current
        })
    }
}

/// What is known of a partition when it is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) committed: Option<Offset>,
    pub(super) start: Offset,
    pub(super) end: Offset,
    /// The first record of the wanted time or a later one.
    pub(super) at_time: Option<Offset>,
}

/// The new offset, and what there is to say about it.
pub(super) fn resolve(
    target: &Target,
    partition: &TopicPartition,
    known: Known,
) -> Result<(Offset, Option<String>), String> {
    let wanted = match target {
        Target::Earliest => known.start.raw(),
        Target::Latest => known.end.raw(),
        Target::Offset(offset) => *offset,
        Target::Current => match known.committed {
            Some(committed) => committed.raw(),
            None => {
                let note = "nothing was committed: the end".to_owned();
                return Ok((known.end, Some(note)));
            }
        },
        Target::Shift(by) => match known.committed {
            Some(committed) => committed.raw().saturating_add(*by),
            None => return Err("nothing is committed that could be shifted".to_owned()),
        },
        Target::Timestamp(_) => match known.at_time {
            Some(offset) => offset.raw(),
            None => {
                let note = "no record is that young: the end".to_owned();
                return Ok((known.end, Some(note)));
            }
        },
        Target::Each(offsets) => match offsets.get(partition) {
            Some(offset) => *offset,
            None => return Err("the file does not name it".to_owned()),
        },
    };
    let clamped = wanted.clamp(known.start.raw(), known.end.raw().max(known.start.raw()));
    let note = match wanted.cmp(&clamped) {
        std::cmp::Ordering::Less => Some(format!("{wanted} is before the log start")),
        std::cmp::Ordering::Greater => Some(format!("{wanted} is behind the end")),
        std::cmp::Ordering::Equal => None,
    };
    Ok((Offset::new(clamped), note))
}

/// Reads lines of `TOPIC,PARTITION,OFFSET`.
fn read(path: &Path) -> anyhow::Result<BTreeMap<TopicPartition, i64>> {
    let size = fs::metadata(path).map(|it| it.len());
    if size.is_ok_and(|size| size > FILE_BYTES_MAX) {
        return Err(anyhow!("{} is larger than 64 MiB", path.display()));
    }
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).map_err(|why| anyhow!("{}: {why}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<TopicPartition, i64>, String> {
    let mut offsets = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("line {number}: TOPIC,PARTITION,OFFSET is expected, not '{line}'");
        let fields: Vec<&str> = line
            .split(',')
            .map(|it| it.trim().trim_matches('"'))
            .collect();
        let [topic, partition, offset] = fields[..] else {
            return Err(wrong());
        };
        let topic = TopicName::new(topic).map_err(|_| wrong())?;
        let partition: i32 = partition.parse().map_err(|_| wrong())?;
        let offset: i64 = offset.parse().map_err(|_| wrong())?;
        if partition < 0 || offset < 0 {
            return Err(wrong());
        }
        let partition = PartitionIndex::new(partition);
        let partition = TopicPartition { topic, partition };
        let text = partition.to_string();
        if offsets.insert(partition, offset).is_some() {
            return Err(format!("line {number}: {text} is named twice"));
        }
    }
    if offsets.is_empty() {
        return Err("it names no partition".to_owned());
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(committed: Option<i64>) -> Known {
        Known {
            committed: committed.map(Offset::new),
            start: Offset::new(10),
            end: Offset::new(20),
            at_time: None,
        }
    }

    fn resolved(target: Target, committed: Option<i64>) -> Result<(i64, Option<String>), String> {
        let partition = TopicPartition::parse("t-0").expect("a partition");
        let (offset, note) = resolve(&target, &partition, known(committed))?;
        Ok((offset.raw(), note))
    }

    #[test]
    fn every_target_is_inside_of_the_log() {
        assert_eq!(resolved(Target::Earliest, None), Ok((10, None)));
        assert_eq!(resolved(Target::Latest, None), Ok((20, None)));
        assert_eq!(resolved(Target::Offset(15), None), Ok((15, None)));
        assert_eq!(resolved(Target::Shift(-3), Some(15)), Ok((12, None)));
        assert_eq!(resolved(Target::Current, Some(15)), Ok((15, None)));
        let clamped = |target, committed| {
            let (offset, note) = resolved(target, committed).expect("an offset");
            (offset, note.is_some())
        };
        assert_eq!(clamped(Target::Offset(5), None), (10, true));
        assert_eq!(clamped(Target::Offset(50), None), (20, true));
        assert_eq!(clamped(Target::Shift(i64::MIN), Some(15)), (10, true));
        assert_eq!(clamped(Target::Shift(i64::MAX), Some(15)), (20, true));
        assert_eq!(clamped(Target::Current, Some(3)), (10, true));
        assert_eq!(clamped(Target::Current, None), (20, true));
        assert_eq!(clamped(Target::Timestamp(WallMs::new(1)), None), (20, true));
        assert!(resolved(Target::Shift(1), None).is_err());
    }

    #[test]
    fn files_are_read_as_kafkas_tool_writes_them() {
        let read = parse("# a comment\n\"a\",0,5\n\nb , 1 , 7\n").expect("a good file");
        let read: Vec<_> = read
            .iter()
            .map(|(it, offset)| (it.to_string(), *offset))
            .collect();
        assert_eq!(read, [("a-0".to_owned(), 5), ("b-1".to_owned(), 7)]);
        for wrong in [
            "",
            "a,0",
            "a,0,1,2",
            "a,x,1",
            "a,-1,1",
            "a,0,-1",
            "a/,0,1",
            "a,0,1\na,0,2",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("a,0,1\nb").unwrap_err().contains("line 2"));
    }
}
