use highwater_disk::{Disk, DiskError};
use highwater_types::{Now, Offset};

use super::retain::Retire;
use super::{Fence, PartitionLog, RemovedFiles};
use crate::names::{FileKind, LogFile, Stage, segment_file};
use crate::producer_state::ProducerState;
use crate::replay::replay;
use crate::segment::{LogSegment, Place};

impl<D: Disk> PartitionLog<D> {
    /// Cuts everything from `offset` on. A batch that holds `offset` goes as a whole; the log then
    /// ends where that batch began. Epochs and producers roll back with it.
    ///
    /// Readers may still hold regions of what is cut. So no byte is ever written at a position
    /// that had another: the file is cut and a new segment begins, or, where nothing of the
    /// segment is left, its file is renamed first (KAFKA-18723).
    ///
    /// # Errors
    /// When the disk refuses; the log may then be cut in part, at some segment's end above
    /// `offset`.
    pub fn truncate_to(&mut self, now: Now, offset: Offset) -> Result<RemovedFiles<D>, DiskError> {
        self.mend_tail()?;
        if offset >= self.log_end_offset() {
            // An epoch may have begun at the end without a record (KAFKA-10706).
            self.flush.epochs_changed |= self.epochs.truncate_from_end(offset);
            return Ok(self.removed_files(now));
        }
        if offset
            < self
                .segments
                .front()
                .map_or(offset, |first| first.base_offset)
        {
            return self.truncate_fully_and_start_at(now, offset);
        }
        let mut files = self.removed_files(now);
        self.recent.clear();
        let kept = self.cut_segments(offset, &mut files)?;
        let end = kept.unwrap_or(offset);
        self.begin_segment(now, end)?;
        self.cut_the_rest(end);
        self.roll_producers_back(end, &mut files)?;
        // Each segment but the first has a snapshot at its base.
        self.keep_snapshot(end);
        self.assert_invariants();
        Ok(files)
    }

    /// Where the log would end after [`PartitionLog::truncate_to`]: at `offset`, or where the batch
    /// that holds it begins. For those who must say what is lost before it is.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn end_after_truncation(&self, offset: Offset) -> Result<Offset, DiskError> {
        let end = self.log_end_offset();
        if offset >= end {
            return Ok(end);
        }
        let number = self.segment_of(offset);
        let Some(segment) = number.and_then(|number| self.segments.get(number)) else {
            return Ok(offset);
        };
        Ok(match segment.locate(offset)? {
            Place::Batch(batch) => batch.header.base_offset.min(offset),
            Place::Damaged { expected, .. } => expected.min(offset),
            // The index is mended by the truncation itself.
            Place::End | Place::IndexLies => offset,
        })
    }

    /// Drops everything and goes on at `offset`, as a follower does whose leader starts above its
    /// end.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn truncate_fully_and_start_at(
        &mut self,
        now: Now,
        offset: Offset,
    ) -> Result<RemovedFiles<D>, DiskError> {
        let mut files = self.removed_files(now);
        self.recent.clear();
        while let Some(base_offset) = self.segments.back().map(|segment| segment.base_offset) {
            self.retire_segment(base_offset, Retire::Truncated, &mut files)?;
            self.segments.pop_back();
        }
        self.begin_segment(now, offset)?;
        self.flush.epochs_changed |= self.epochs.clear();
        self.log_start_offset = offset;
        self.flushed_offset = offset;
        self.flush.cut_since = Some(self.flush.cut_since.map_or(offset, |cut| cut.min(offset)));
        self.flush.snapshots.clear();
        self.damage.clamp(offset, offset);
        self.retire_snapshots(|_| true, &mut files)?;
        self.producers = ProducerState::new(offset);
        self.fence = match std::mem::replace(&mut self.fence, Fence::Open) {
            Fence::Failed(why) => Fence::Failed(why),
            Fence::Open | Fence::TailUnknown => Fence::Open,
        };
        self.assert_invariants();
        Ok(files)
    }

    /// Takes off the segments from `offset` on, newest first, and cuts the one that holds it.
    /// Returns where the log ends if some of that segment is left.
    fn cut_segments(
        &mut self,
        offset: Offset,
        files: &mut RemovedFiles<D>,
    ) -> Result<Option<Offset>, DiskError> {
        while let Some(last) = self.segments.back() {
            let base_offset = last.base_offset;
            let (position, end) = match last.locate(offset)? {
                _ if base_offset >= offset => (0, offset),
                Place::Batch(batch) => (batch.position, batch.header.base_offset.min(offset)),
                Place::Damaged { position, expected } => (position, expected.min(offset)),
                Place::End => (last.size, offset),
                Place::IndexLies => {
                    let config = self.config.clone();
                    self.active_mut().reindex(&config)?;
                    continue;
                }
            };
            if position > 0 {
                let active = self.active_mut();
                active.cut(position, end)?;
                active.finish()?;
                return Ok(Some(end));
            }
            self.retire_segment(base_offset, Retire::Truncated, files)?;
            self.segments.pop_back();
            if base_offset <= offset {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// The log goes on in a new segment at `base_offset`.
    fn begin_segment(&mut self, now: Now, base_offset: Offset) -> Result<(), DiskError> {
        match LogSegment::create(&self.disk, &self.dir, base_offset, now.wall) {
            Ok(segment) => {
                self.segments.push_back(segment);
                self.flush.names_changed = true;
                Ok(())
            }
            Err(why) => {
                if self.segments.is_empty() {
                    // There is nothing to append to: the owner takes the log offline.
                    let phantom = LogSegment::over(&self.disk, &self.dir, base_offset, now.wall);
                    self.segments.push_back(phantom);
                    self.cut_the_rest(base_offset);
                    self.fence = Fence::Failed(why.clone());
                }
                Err(why)
            }
        }
    }

    /// Everything but segments and producers follows a cut at `end`.
    fn cut_the_rest(&mut self, end: Offset) {
        self.flush.epochs_changed |= self.epochs.truncate_from_end(end);
        self.damage.clamp(Offset::ZERO, end);
        self.log_start_offset = self.log_start_offset.min(end);
        self.flushed_offset = self.flushed_offset.min(end);
        self.flush.cut_since = Some(self.flush.cut_since.map_or(end, |cut| cut.min(end)));
    }

    /// The producers as they were at `end`: from the newest good snapshot at or below it, and the
    /// batches after that (KIP-98).
    fn roll_producers_back(
        &mut self,
        end: Offset,
        files: &mut RemovedFiles<D>,
    ) -> Result<(), DiskError> {
        self.retire_snapshots(|offset| offset > end, files)?;
        self.flush.snapshots.retain(|(offset, _)| *offset <= end);
        if self.producers.is_empty() {
            self.producers = ProducerState::new(end);
            return Ok(());
        }
        let mut state = self.newest_snapshot(end)?;
        replay(&mut state, &self.segments, |_, _| {})?;
        state.advance_end(end);
        self.producers = state;
        Ok(())
    }

    fn newest_snapshot(&self, end: Offset) -> Result<ProducerState, DiskError> {
        let mut known: Vec<(Offset, Option<&[u8]>)> = self
            .snapshot_files()?
            .into_iter()
            .map(|offset| (offset, None))
            .collect();
        known.extend(
            self.flush
                .snapshots
                .iter()
                .map(|(offset, bytes)| (*offset, Some(bytes.as_slice()))),
        );
        known.sort_by_key(|(offset, _)| *offset);
        for (offset, bytes) in known.into_iter().rev().filter(|(offset, _)| *offset <= end) {
            let state = match bytes {
                Some(bytes) => ProducerState::decode_snapshot(bytes, offset).ok(),
                None => self
                    .disk
                    .read(&segment_file(&self.dir, offset, FileKind::Snapshot))?
                    .and_then(|bytes| ProducerState::decode_snapshot(&bytes, offset).ok()),
            };
            if let Some(state) = state {
                return Ok(state);
            }
        }
        let first = self
            .segments
            .front()
            .map_or(end, |segment| segment.base_offset);
        Ok(ProducerState::new(first.max(self.log_start_offset)))
    }

    fn retire_snapshots(
        &self,
        beyond: impl Fn(Offset) -> bool,
        files: &mut RemovedFiles<D>,
    ) -> Result<(), DiskError> {
        for offset in self
            .snapshot_files()?
            .into_iter()
            .filter(|offset| beyond(*offset))
        {
            files.retire(
                &segment_file(&self.dir, offset, FileKind::Snapshot),
                Retire::Truncated,
            )?;
        }
        Ok(())
    }

    fn snapshot_files(&self) -> Result<Vec<Offset>, DiskError> {
        let names = self.disk.list(&self.dir)?;
        let files = names.iter().filter_map(|entry| LogFile::parse(&entry.name));
        let live = |file: &LogFile| file.kind == FileKind::Snapshot && file.stage == Stage::Live;
        Ok(files.filter(live).map(|file| file.base).collect())
    }
}
