//! The offset checkpoint files of the log directories.
//!
//! A file has the lines of every log of its directory, and several shards own logs in it. So each
//! directory has a *keeper*, shard number `directory mod shards`: the others send it their lines,
//! and it alone writes. It writes nothing before it has heard of every shard once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use highwater_disk::{Disk, DiskError};
use highwater_log::checkpoint::OffsetCheckpoint;
use highwater_log::checkpoint::offsets::{
    HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE,
};
use highwater_types::{Millis, Mono, Now, Offset, TopicPartition};

use super::partition::OnlinePartition;
use super::{Effects, FoundLog, Shard, ShardSettings};
use crate::job::{Job, LogDirNumber, Work, WriteFiles};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Effect, MachineId, Token};
use crate::part::Part;

/// Between the shards and the keeper of a directory's checkpoint files.
#[derive(Debug)]
pub enum CheckpointPart {
    /// The lines of all logs that a shard owns in a directory.
    Lines {
        /// The shard.
        shard: u16,
        /// The directory.
        dir: LogDirNumber,
        /// Which files to write now.
        files: Files,
        /// The lines.
        lines: BTreeMap<TopicPartition, Lines>,
        /// The shard's logs are closed: these are its last lines.
        last: bool,
    },
    /// The last lines of every shard are on disk.
    LastWritten {
        /// The directory.
        dir: LogDirNumber,
        /// Whether that went well.
        written: bool,
    },
}

/// What the three files say about one log. `None`: no line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Everything below it is flushed.
    pub recovery_point: Option<Offset>,
    /// The high watermark.
    pub high_watermark: Option<Offset>,
    /// The log start offset, when it is above the first segment's base.
    pub log_start_offset: Option<Offset>,
}

/// A set of checkpoint files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    recovery_points: bool,
    high_watermarks: bool,
    log_starts: bool,
}

/// When a shard sends its lines, and what it keeps for others.
#[derive(Debug)]
pub struct CheckpointState {
    recovery_points: Pace,
    high_watermarks: Pace,
    log_starts: Pace,
    /// The directories that this shard keeps.
    kept: BTreeMap<LogDirNumber, KeptDir>,
    writing: BTreeMap<Token, LogDirNumber>,
    /// Directories whose last lines are on disk (`true`) or were given up.
    last_written: BTreeMap<LogDirNumber, bool>,
}

/// At most one write per interval, and none while nothing changes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    interval: Millis,
    changed: bool,
    /// At once, whenever the last write was.
    urgent: bool,
    written: Mono,
}

#[derive(Debug, Default)]
struct KeptDir {
    by_shard: BTreeMap<u16, BTreeMap<TopicPartition, Lines>>,
    closed_shards: BTreeSet<u16>,
    wanted: Files,
    in_flight: bool,
    /// The newest write failed.
    failed: bool,
    /// The other shards were told that the last lines are written.
    told: bool,
}

impl Lines {
    pub(crate) const fn of_found(found: &FoundLog) -> Self {
        Self {
            recovery_point: found.recovery_point,
            high_watermark: found.high_watermark,
            log_start_offset: found.log_start_offset,
        }
    }

    pub(crate) fn of<D: Disk>(online: &OnlinePartition<D>) -> Self {
        let log = &online.log;
        let start = log.log_start_offset();
        let first_base = log.segments().next().map(|segment| segment.base_offset);
        Self {
            recovery_point: Some(log.flushed_offset()),
            high_watermark: Some(online.replica.high_watermark()),
            log_start_offset: first_base.is_some_and(|base| base < start).then_some(start),
        }
    }
}

impl Files {
    const NONE: Self = Self {
        recovery_points: false,
        high_watermarks: false,
        log_starts: false,
    };
    const ALL: Self = Self {
        recovery_points: true,
        high_watermarks: true,
        log_starts: true,
    };

    const fn and(self, other: Self) -> Self {
        Self {
            recovery_points: self.recovery_points | other.recovery_points,
            high_watermarks: self.high_watermarks | other.high_watermarks,
            log_starts: self.log_starts | other.log_starts,
        }
    }
}

impl Pace {
    const fn new(interval: Millis) -> Self {
        Self {
            interval,
            changed: false,
            urgent: false,
            written: Mono::START,
        }
    }

    fn due(&self) -> Option<Mono> {
        let paced = self.changed.then(|| self.written.plus(self.interval));
        if self.urgent {
            Some(Mono::START)
        } else {
            paced
        }
    }

    fn take_due(&mut self, now: Now) -> bool {
        let due = self.due().is_some_and(|due| due <= now.mono);
        if due {
            self.changed = false;
            self.urgent = false;
            self.written = now.mono;
        }
        due
    }
}

impl CheckpointState {
    pub(crate) fn new(number: u16, shards: u16, dirs: usize, settings: &ShardSettings) -> Self {
        let numbers = (0_u16..).take(dirs);
        let kept = numbers
            .filter(|dir| dir % shards == number)
            .map(LogDirNumber);
        Self {
            recovery_points: Pace::new(settings.recovery_point_checkpoint_interval),
            high_watermarks: Pace::new(settings.high_watermark_checkpoint_interval),
            log_starts: Pace::new(settings.log_start_checkpoint_interval),
            kept: kept.map(|dir| (dir, KeptDir::default())).collect(),
            writing: BTreeMap::new(),
            last_written: BTreeMap::new(),
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let paces = [self.recovery_points, self.high_watermarks, self.log_starts];
        paces.iter().filter_map(Pace::due).min()
    }

    pub(crate) const fn note_recovery_point(&mut self) {
        self.recovery_points.changed = true;
    }

    pub(crate) const fn note_high_watermark(&mut self) {
        self.high_watermarks.changed = true;
    }

    pub(crate) const fn note_log_start(&mut self) {
        self.log_starts.changed = true;
    }

    /// A log is gone. Its lines must go at once: what is made under its name next would be opened
    /// by them after a crash.
    pub(crate) fn note_deleted(&mut self) {
        self.hurry();
    }

    /// A log was cut. The next start would take what was cut for lost if it found a recovery point
    /// or a high watermark above the log's end.
    pub(crate) fn note_truncated(&mut self) {
        self.hurry();
    }

    fn hurry(&mut self) {
        for pace in [
            &mut self.recovery_points,
            &mut self.high_watermarks,
            &mut self.log_starts,
        ] {
            pace.urgent = true;
        }
    }

    /// Whether the last lines of a directory are on disk, or were given up.
    pub(crate) fn is_last_written(&self, dir: LogDirNumber) -> bool {
        self.last_written.contains_key(&dir)
    }

    /// The directories whose last lines were given up.
    pub(crate) fn not_last_written(&self) -> impl Iterator<Item = LogDirNumber> {
        self.last_written
            .iter()
            .filter(|(_, written)| !**written)
            .map(|(dir, _)| *dir)
    }
}

impl KeptDir {
    fn encode(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let file = |wanted: bool, name: &str, offset: fn(&Lines) -> Option<Offset>| {
            let lines = self.by_shard.values().flatten();
            let offsets = lines.filter_map(|(log, lines)| Some((log.clone(), offset(lines)?)));
            let checkpoint = || OffsetCheckpoint {
                offsets: offsets.collect(),
            };
            wanted.then(|| (PathBuf::from(name), checkpoint().encode()))
        };
        let wanted = self.wanted;
        [
            file(wanted.recovery_points, RECOVERY_POINT_FILE, |lines| {
                lines.recovery_point
            }),
            file(wanted.log_starts, LOG_START_FILE, |lines| {
                lines.log_start_offset
            }),
            file(wanted.high_watermarks, HIGH_WATERMARK_FILE, |lines| {
                lines.high_watermark
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl<D: Disk> Shard<D> {
    pub(crate) fn checkpoints_tick(&mut self, now: Now, out: &mut Effects<D>) {
        let state = &mut self.checkpoints;
        let files = Files {
            recovery_points: state.recovery_points.take_due(now),
            high_watermarks: state.high_watermarks.take_due(now),
            log_starts: state.log_starts.take_due(now),
        };
        if files != Files::NONE {
            self.send_lines(now, files, out);
        }
    }

    /// Lets the keepers know of this shard's logs, so that no line is lost to a write that comes
    /// before anything changed here.
    pub(crate) fn send_first_lines(&mut self, now: Now, out: &mut Effects<D>) {
        self.send_lines(now, Files::NONE, out);
    }

    fn send_lines(&mut self, now: Now, files: Files, out: &mut Effects<D>) {
        if self.lifecycle.is_closing() {
            return;
        }
        let mut by_dir: BTreeMap<LogDirNumber, BTreeMap<TopicPartition, Lines>> = BTreeMap::new();
        for partition in self.partitions.iter() {
            by_dir
                .entry(partition.dir)
                .or_default()
                .insert(partition.name.clone(), partition.lines());
        }
        for dir in self.dir_numbers() {
            let lines = by_dir.remove(&dir).unwrap_or_default();
            self.send_to_keeper(now, dir, files, lines, false, out);
        }
    }

    /// Sends the last lines of all directories: the logs are closed.
    pub(crate) fn send_last_lines(
        &mut self,
        now: Now,
        mut by_dir: BTreeMap<LogDirNumber, BTreeMap<TopicPartition, Lines>>,
        out: &mut Effects<D>,
    ) {
        for dir in self.dir_numbers() {
            let lines = by_dir.remove(&dir).unwrap_or_default();
            self.send_to_keeper(now, dir, Files::ALL, lines, true, out);
        }
    }

    fn send_to_keeper(
        &mut self,
        now: Now,
        dir: LogDirNumber,
        files: Files,
        lines: BTreeMap<TopicPartition, Lines>,
        last: bool,
        out: &mut Effects<D>,
    ) {
        let keeper = dir.0 % self.shards;
        let part = CheckpointPart::Lines {
            shard: self.number,
            dir,
            files,
            lines,
            last,
        };
        if keeper == self.number {
            self.handle_checkpoint_part(now, part, out);
        } else {
            let to = MachineId::Shard(keeper);
            out.push(Effect::Part {
                to,
                part: Part::Checkpoint(Box::new(part)),
            });
        }
    }

    /// Takes lines to keep, or the word that the last ones are written.
    pub(crate) fn handle_checkpoint_part(
        &mut self,
        now: Now,
        part: CheckpointPart,
        out: &mut Effects<D>,
    ) {
        match part {
            CheckpointPart::Lines {
                shard,
                dir,
                files,
                lines,
                last,
            } => {
                let kept = self.checkpoints.kept.get_mut(&dir);
                let kept = kept.expect("lines are sent to the keeper of their directory");
                kept.by_shard.insert(shard, lines);
                kept.wanted = kept.wanted.and(files);
                if last {
                    kept.closed_shards.insert(shard);
                }
                self.write_kept(now, dir, out);
            }
            CheckpointPart::LastWritten { dir, written } => {
                self.checkpoints.last_written.insert(dir, written);
                self.note_if_closed(now, out);
            }
        }
    }

    fn write_kept(&mut self, now: Now, dir: LogDirNumber, out: &mut Effects<D>) {
        let disk = self.online_dir(dir).map(|dir| dir.disk.clone());
        let token = self.new_token();
        let shards = usize::from(self.shards);
        let Some(kept) = self.checkpoints.kept.get_mut(&dir) else {
            return;
        };
        if kept.in_flight || kept.by_shard.len() < shards {
            return;
        }
        if kept.wanted != Files::NONE
            && let Some(disk) = disk
        {
            let files = kept.encode();
            kept.wanted = Files::NONE;
            kept.in_flight = true;
            self.checkpoints.writing.insert(token, dir);
            let work = Work::WriteFiles(WriteFiles { disk, files });
            out.push(Effect::Job {
                token,
                job: Job { dir, work },
            });
        } else if kept.closed_shards.len() == shards && !kept.told {
            kept.told = true;
            let written = !kept.failed;
            self.tell_last_written(now, dir, written, out);
        }
    }

    fn tell_last_written(
        &mut self,
        now: Now,
        dir: LogDirNumber,
        written: bool,
        out: &mut Effects<D>,
    ) {
        let written = written && self.online_dir(dir).is_some();
        for shard in (0..self.shards).filter(|shard| *shard != self.number) {
            let part = Box::new(CheckpointPart::LastWritten { dir, written });
            out.push(Effect::Part {
                to: MachineId::Shard(shard),
                part: Part::Checkpoint(part),
            });
        }
        self.handle_checkpoint_part(now, CheckpointPart::LastWritten { dir, written }, out);
    }

    /// The files of a directory are written, or not.
    pub(crate) fn handle_files_written(
        &mut self,
        now: Now,
        token: Token,
        result: Result<(), DiskError>,
        out: &mut Effects<D>,
    ) {
        let dir = self
            .checkpoints
            .writing
            .remove(&token)
            .expect("a write that is out");
        if let Some(kept) = self.checkpoints.kept.get_mut(&dir) {
            kept.in_flight = false;
            kept.failed = result.is_err();
        }
        match result {
            Ok(()) => {}
            // The old files are still there, and a lower recovery point or high watermark than
            // the true one is safe. Nobody should lose a directory for a disk that is full.
            Err(why) if why.may_pass() => {
                let text = format!("the checkpoints were not written: {why}");
                out.push(Effect::Event(JournalEntry::text(Level::Error, text)));
            }
            Err(why) => self.fail_dir(now, dir, &why, out),
        }
        self.write_kept(now, dir, out);
    }

    /// Every log directory's number.
    pub(crate) fn dir_numbers(&self) -> impl Iterator<Item = LogDirNumber> + use<D> {
        (0_u16..).take(self.dirs.len()).map(LogDirNumber)
    }
}
