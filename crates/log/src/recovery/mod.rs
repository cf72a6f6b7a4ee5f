//! Opening a log: what an unclean stop or a bad disk left is found and mended.

mod epochs;
mod files;
mod known_damage;
mod producers;
mod report;
mod segments;
mod zones;

use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_types::{LeaderEpoch, Now, Offset, TopicId, TopicPartition};

use self::files::Files;
pub use self::report::{Finding, RecoveryReport, Severity};
use self::segments::{Segments, SegmentsFound};
use crate::checkpoint::partition_metadata;
use crate::config::LogConfig;
use crate::epoch_runs::Judgement;
use crate::names::{FileKind, segment_file};
use crate::partition_log::{LogParts, PartitionLog, write_snapshot};
use crate::segment::LogSegment;

/// Opens the log of one partition, or makes it.
#[derive(Clone, Debug)]
pub struct OpenLog<D: Disk> {
    /// The log directory that holds the log.
    pub disk: D,
    /// The log's directory in it, usually `<topic>-<partition>`.
    pub dir: PathBuf,
    /// Whose log it is.
    pub topic_partition: TopicPartition,
    /// The topic's id, which `partition.metadata` must have; written when there is none.
    pub topic_id: TopicId,
    /// The configuration to begin with.
    pub config: LogConfig,
    /// From recovery-point-offset-checkpoint; zero when that lacks the log.
    pub recovery_point: Offset,
    /// From replication-offset-checkpoint; zero when that lacks the log.
    pub high_watermark: Offset,
    /// From log-start-offset-checkpoint; zero when that lacks the log.
    pub log_start_offset: Offset,
    /// Whether cleaner-offset-checkpoint has the log: offsets may be missing although the topic
    /// is compacted no more.
    pub was_cleaned: bool,
    /// The newest leader epoch that the partition can have had, when the metadata tells.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Whether the directory's clean shutdown marker was there: then only the last batches are
    /// looked at.
    pub clean_shutdown: bool,
    /// The time.
    pub now: Now,
}

/// How far an [`OpenLog`] is in one of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: RecoveryStep,
    /// Bytes read so far in this step.
    pub scanned_bytes: u64,
    /// Bytes that are to be read in all in this step.
    pub total_bytes: u64,
}

/// What takes long when a log is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStep {
    /// Every batch that may not be flushed is read and checked.
    Batches,
    /// Producers and transactions are learnt from the batches since their newest snapshot.
    Producers,
}

/// Why a log was not opened. This partition only; others are not concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The directory belongs to another topic of the same name.
    #[error("{} belongs to topic id {found}, not {expected}", dir.display())]
    OtherTopic {
        /// The directory.
        dir: PathBuf,
        /// What partition.metadata says.
        found: TopicId,
        /// What it should say.
        expected: TopicId,
    },
    /// partition.metadata cannot be read, so nobody knows whose log it is.
    #[error("{}: {why}; move the directory away, or restore the file", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl<D: Disk> OpenLog<D> {
    /// Does the work. `progress` hears now and then how far it is.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn run(
        self,
        b: &Blocking,
        progress: &dyn Fn(Progress),
    ) -> Result<(PartitionLog<D>, RecoveryReport), OpenError> {
        let mut report = RecoveryReport::default();
        self.make_directory(b)?;
        self.check_identity(b)?;
        let files = files::tidy(&self.disk, &self.dir, &mut report, b)?;
        let mut segments = Segments::new(&self, &files, &mut report, progress);
        let left = segments.open_all(&files)?;
        let (found, explained) = segments.into_found();
        // Newest first: a crash in between leaves no hole.
        for base_offset in left.into_iter().rev() {
            self.remove_segment(base_offset, b)?;
        }
        files::remove_deleted(&self.disk, &self.dir, &files, &explained, b)?;
        self.assemble(files, found, report, (b, progress))
    }

    /// A log without a directory is new.
    fn make_directory(&self, b: &Blocking) -> Result<(), DiskError> {
        match self.disk.list(&self.dir) {
            Ok(_) => Ok(()),
            Err(why) if why.is_not_found() => {
                self.disk.create_dir(&self.dir)?;
                self.disk
                    .sync_dir(self.dir.parent().unwrap_or_else(|| Path::new("")), b)
            }
            Err(why) => Err(why),
        }
    }

    /// Reads partition.metadata, or writes it where there is none.
    fn check_identity(&self, b: &Blocking) -> Result<(), OpenError> {
        let path = self.dir.join(partition_metadata::FILE);
        let Some(bytes) = self.disk.read(&path)? else {
            self.disk
                .replace(&path, &partition_metadata::encode(self.topic_id), b)?;
            return Ok(());
        };
        match partition_metadata::decode(&bytes) {
            Ok(found) if found == self.topic_id => Ok(()),
            Ok(found) => Err(OpenError::OtherTopic {
                dir: self.dir.clone(),
                found,
                expected: self.topic_id,
            }),
            Err(why) => Err(OpenError::Identity {
                path,
                why: why.to_string(),
            }),
        }
    }

    /// Builds the log from its segments.
    fn assemble(
        self,
        files: Files,
        mut found: SegmentsFound<D>,
        mut report: RecoveryReport,
        (b, progress): (&Blocking, &dyn Fn(Progress)),
    ) -> Result<(PartitionLog<D>, RecoveryReport), OpenError> {
        let log_start_offset = self.settle_start(&mut found, &mut report, b)?;
        let first_scanned = found.scanned.first().copied();
        let context = epochs::Context {
            disk: &self.disk,
            dir: &self.dir,
            log_start_offset,
            leader_epoch: self.leader_epoch,
            seen: &found.epochs_seen,
            seen_from: first_scanned,
        };
        let epochs = epochs::load(&context, &mut found.opened, &mut report)?;
        let context = producers::Context {
            disk: &self.disk,
            dir: &self.dir,
            log_start_offset,
            snapshots: &files.snapshots,
            bases: found.opened.iter().map(|it| it.base_offset).collect(),
            first_scanned,
            without_transactions: std::mem::take(&mut found.without_transactions),
            b,
            progress,
        };
        let mut producers = producers::load(context, &mut found.opened, &mut report)?;
        let idle = self.config.producer_id_expiration_ms;
        producers.state.remove_expired(self.now.wall, idle);
        for segment in &mut found.opened {
            segment.write_transactions_if_changed()?;
            segment.release();
        }
        let place = (&self.disk, self.dir.as_path());
        let (opened, damage) = (&mut found.opened, &mut found.damage);
        let damage_listed = known_damage::look_again(place, opened, damage, &mut report)?;
        let end = self.settle_end(&mut found)?;
        self.remove_stray_snapshots(&files, &found, first_scanned, b)?;
        for (offset, bytes) in &producers.snapshots {
            write_snapshot(&self.disk, &self.dir, *offset, bytes)?;
        }
        found.damage.clamp(log_start_offset, end);
        let flushed_offset = if self.clean_shutdown && found.cut_bytes == 0 {
            end
        } else {
            self.recovery_point.min(end).max(log_start_offset.min(end))
        };
        self.report_loss(end, log_start_offset, found.cut_bytes, &mut report);
        let log = PartitionLog::from_parts(LogParts {
            flush_wanted: report.scanned_segments > 0 || found.cut_bytes > 0,
            disk: self.disk,
            dir: self.dir,
            topic_partition: self.topic_partition,
            config: self.config,
            log_start_offset,
            segments: found.opened.into(),
            flushed_offset,
            producers: producers.state,
            snapshots: producers.snapshots,
            epochs,
            damage: found.damage,
            damage_listed,
        });
        Ok((log, report))
    }

    /// Where the log starts. When everything lies below the checkpointed start it begins anew.
    fn settle_start(
        &self,
        found: &mut SegmentsFound<D>,
        report: &mut RecoveryReport,
        b: &Blocking,
    ) -> Result<Offset, DiskError> {
        let said = self.log_start_offset.max(Offset::ZERO);
        let end = found
            .opened
            .last()
            .map_or(said, |segment| segment.end_offset);
        if said > end {
            let finding = Finding::StartBeyondEnd {
                log_start_offset: said,
                log_end_offset: end,
                high_watermark: self.high_watermark,
            };
            report.add(finding);
            for segment in std::mem::take(&mut found.opened) {
                self.remove_segment(segment.base_offset, b)?;
            }
            found.epochs_seen = Judgement::default();
            found.is_tail_damaged = false;
        }
        if found.opened.is_empty() {
            found.opened.push(self.new_segment(said)?);
        }
        Ok(found
            .opened
            .first()
            .map_or(said, |first| first.base_offset.max(said)))
    }

    /// Where the log ends. Damage at the very end stays, so appends go into a new segment.
    fn settle_end(&self, found: &mut SegmentsFound<D>) -> Result<Offset, DiskError> {
        let end = found
            .opened
            .last()
            .map_or(Offset::ZERO, |segment| segment.end_offset);
        if found.is_tail_damaged {
            if let Some(last) = found.opened.last_mut() {
                last.finish()?;
            }
            found.opened.push(self.new_segment(end)?);
        }
        Ok(end)
    }

    fn new_segment(&self, base_offset: Offset) -> Result<LogSegment<D>, DiskError> {
        LogSegment::create(&self.disk, &self.dir, base_offset, self.now.wall)
    }

    fn report_loss(
        &self,
        end: Offset,
        log_start_offset: Offset,
        bytes: u64,
        report: &mut RecoveryReport,
    ) {
        let (recovery_point, high_watermark) = (self.recovery_point, self.high_watermark);
        if end < recovery_point && log_start_offset < recovery_point {
            report.add(Finding::FlushedLoss {
                end,
                recovery_point,
            });
        }
        if end < high_watermark {
            report.add(Finding::UnflushedLoss {
                end,
                high_watermark,
                bytes,
            });
        }
    }

    fn remove_segment(&self, base_offset: Offset, b: &Blocking) -> Result<(), DiskError> {
        for kind in FileKind::ALL {
            self.disk
                .remove(&segment_file(&self.dir, base_offset, kind), b)?;
        }
        Ok(())
    }

    /// Keeps the snapshots at the bases of segments and the newest above the last one, as Kafka
    /// does; after an unclean stop those above the first segment that was read are of a log that
    /// may have gone another way.
    fn remove_stray_snapshots(
        &self,
        files: &Files,
        found: &SegmentsFound<D>,
        first_scanned: Option<Offset>,
        b: &Blocking,
    ) -> Result<(), DiskError> {
        let last = found.opened.last();
        let (last_base, end) = last.map_or((Offset::ZERO, Offset::ZERO), |it| {
            (it.base_offset, it.end_offset)
        });
        // One beyond the end is of records that are gone.
        let mut reached = files.snapshots.iter().filter(|it| **it <= end);
        let newest = reached.next_back().filter(|newest| **newest > last_base);
        for offset in &files.snapshots {
            let is_base = found.opened.iter().any(|it| it.base_offset == *offset);
            let is_stale = first_scanned.is_some_and(|first| *offset > first);
            if is_stale || !is_base && Some(offset) != newest {
                let path = segment_file(&self.dir, *offset, FileKind::Snapshot);
                self.disk.remove(&path, b)?;
            }
        }
        Ok(())
    }
}
