use std::collections::{BTreeSet, VecDeque};

use highwater_disk::Disk;
use highwater_log::{Finding, OpenError, OpenLog, PartitionLog, RecoveryReport, Severity};
use highwater_replication::{LogEnds, Replica};
use highwater_types::{Millis, Mono, Now, Offset, TopicIdPartition, TopicPartition};
use rand_chacha::rand_core::RngCore as _;

use super::Phase;
use super::apply::configure_log;
use crate::job::{Job, LogDirNumber, LogOpened, Work};
use crate::journal::{Happening, JournalEntry, Level};
use crate::machine::{Effect, MachineId, Token};
use crate::part::Part;
use crate::shard::partition::{OnlinePartition, PartitionState, log_config, replica_config};
use crate::shard::{Effects, Shard};

/// How soon a new log is tried again while the directory of a deleted topic has its name: the
/// shard that owned that one has yet to rename it.
const NAME_TAKEN_RETRY: Millis = Millis::new(10);
/// How long it is tried. A directory that stays is nobody's to rename.
const NAME_TAKEN_MAX: Millis = Millis::new(10_000);
/// Jobs that make logs, at once in one directory, on top of those that recover logs.
const MAKING_JOBS_PER_DIR_MAX: usize = 16;

/// A log that is to be opened, or is being opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenRequest {
    pub(crate) id: TopicIdPartition,
    pub(crate) name: TopicPartition,
    pub(crate) dir: LogDirNumber,
    /// Made, not found: goes first, for clients wait for it.
    pub(super) is_new: bool,
    /// The partition was deleted while the job was out: the log is deleted when it comes.
    pub(super) abandoned: bool,
    /// When another topic's directory was first found under the name.
    name_taken_since: Option<Mono>,
}

impl<D: Disk> Shard<D> {
    /// Queues the log of a partition in the table for opening.
    pub(super) fn request_open(&mut self, id: TopicIdPartition) {
        let Some(partition) = self.partitions.find(id) else {
            return;
        };
        let is_new = matches!(
            partition.state,
            PartitionState::Opening { is_new: true, .. }
        );
        let request = OpenRequest {
            id,
            name: partition.name.clone(),
            dir: partition.dir,
            is_new,
            abandoned: false,
            name_taken_since: None,
        };
        if is_new {
            self.lifecycle.to_open.push_front(request);
        } else {
            self.lifecycle.to_open.push_back(request);
        }
        self.lifecycle.to_open_total += u32::from(!is_new);
    }

    /// Starts as many open jobs as each directory takes at once.
    pub(super) fn start_open_jobs(&mut self, now: Now, out: &mut Effects<D>) {
        let mut waiting = std::mem::take(&mut self.lifecycle.to_open);
        let mut stays = VecDeque::new();
        while self.has_room_for_opening()
            && let Some(request) = waiting.pop_front()
        {
            // Pairs of jobs for one directory name never run at once: a topic may be deleted and
            // made again while its old log is still being opened.
            if self.may_open(&request) && !self.is_name_busy(request.dir, &request.name) {
                self.start_open_job(now, request, out);
            } else {
                stays.push_back(request);
            }
        }
        stays.append(&mut waiting);
        self.lifecycle.to_open = stays;
    }

    fn has_room_for_opening(&self) -> bool {
        let room = self.settings.recovery_jobs_per_dir_max + MAKING_JOBS_PER_DIR_MAX;
        self.dirs
            .iter()
            .any(|dir| !dir.offline && dir.opening < room)
    }

    fn may_open(&self, request: &OpenRequest) -> bool {
        // Logs that are made, which takes moments, do not queue behind logs that are recovered.
        let extra = if request.is_new {
            MAKING_JOBS_PER_DIR_MAX
        } else {
            0
        };
        let room = self.settings.recovery_jobs_per_dir_max + extra;
        self.online_dir(request.dir)
            .is_some_and(|dir| dir.opening < room)
    }

    fn is_name_busy(&self, dir: LogDirNumber, name: &TopicPartition) -> bool {
        let lifecycle = &self.lifecycle;
        let mut opening = lifecycle.opening.values();
        let mut syncing = lifecycle.syncing.values();
        opening.any(|it| it.dir == dir && it.name == *name)
            || syncing.any(|it| it.dir == dir && it.name == *name)
    }

    fn start_open_job(&mut self, now: Now, request: OpenRequest, out: &mut Effects<D>) {
        let OpenRequest { id, dir, .. } = request;
        let Some(partition) = self.partitions.find(id) else {
            return;
        };
        let (settings, kept) = (partition.settings.clone(), partition.kept);
        let was_cleaned = partition.was_cleaned;
        let jitter_max = settings.segment_jitter_ms.as_u64();
        let jitter = Millis::new(match jitter_max {
            0 => 0,
            _ => self.random.next_u64() % jitter_max,
        });
        let token = self.new_token();
        let Some(log_dir) = self.dirs.get_mut(usize::from(dir.0)) else {
            return;
        };
        log_dir.opening += 1;
        let open = OpenLog {
            disk: log_dir.disk.clone(),
            dir: request.name.to_string().into(),
            topic_partition: request.name.clone(),
            topic_id: id.topic_id,
            config: log_config(&settings, &self.settings, jitter),
            recovery_point: kept.recovery_point.unwrap_or(Offset::ZERO),
            high_watermark: kept.high_watermark.unwrap_or(Offset::ZERO),
            log_start_offset: kept.log_start_offset.unwrap_or(Offset::ZERO),
            was_cleaned,
            leader_epoch: self.image.partition(id).map(|it| it.leader_epoch),
            clean_shutdown: log_dir.clean_shutdown,
            now,
        };
        self.lifecycle.opening.insert(token, request);
        let work = Work::OpenLog(Box::new(open));
        out.push(Effect::Job {
            token,
            job: Job { dir, work },
        });
    }

    /// An open job is done.
    pub(crate) fn handle_opened(
        &mut self,
        now: Now,
        token: Token,
        opened: LogOpened<D>,
        out: &mut Effects<D>,
    ) {
        let request = self
            .lifecycle
            .opening
            .remove(&token)
            .expect("an open job that is out");
        if let Some(dir) = self.dir_mut(request.dir) {
            dir.opening -= 1;
        }
        match opened {
            Ok((log, report)) => self.take_opened(now, &request, log, &report, out),
            Err(_) if request.abandoned => {}
            Err(why) if self.lifecycle.is_closing() => {
                self.lifecycle.unclean.insert(request.dir);
                let text = format!("{} was not opened: {why}", request.name);
                out.push(Effect::Event(JournalEntry::text(Level::Error, text)));
            }
            Err(OpenError::OtherTopic { .. }) if self.may_retry(now, &request) => {
                let name_taken_since = request.name_taken_since.or(Some(now.mono));
                let request = OpenRequest {
                    name_taken_since,
                    ..request
                };
                let at = now.mono.plus(NAME_TAKEN_RETRY);
                self.lifecycle.name_taken.push((at, request));
            }
            Err(why) => self.fail_partition(request.id, &why.to_string(), out),
        }
        self.start_open_jobs(now, out);
        self.note_if_loaded(out);
        self.note_if_closed(now, out);
    }

    fn may_retry(&self, now: Now, request: &OpenRequest) -> bool {
        let is_late = request
            .name_taken_since
            .is_some_and(|since| since.plus(NAME_TAKEN_MAX) <= now.mono);
        request.is_new && !is_late && self.online_dir(request.dir).is_some()
    }

    /// When a new log whose name was taken is tried again.
    pub(super) fn next_open_retry(&self) -> Option<Mono> {
        self.lifecycle.name_taken.iter().map(|(at, _)| *at).min()
    }

    /// Tries the new logs whose names were taken.
    pub(super) fn retry_opens(&mut self, now: Now, out: &mut Effects<D>) {
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.lifecycle.name_taken)
            .into_iter()
            .partition(|(at, _)| *at <= now.mono);
        self.lifecycle.name_taken = later;
        if due.is_empty() {
            return;
        }
        let due = due.into_iter().map(|(_, request)| request);
        self.lifecycle.to_open.extend(due);
        self.start_open_jobs(now, out);
    }

    fn take_opened(
        &mut self,
        now: Now,
        request: &OpenRequest,
        mut log: PartitionLog<D>,
        report: &RecoveryReport,
        out: &mut Effects<D>,
    ) {
        let id = request.id;
        if request.abandoned {
            self.delete_log(now, request.dir, log, out);
            return;
        }
        if self.lifecycle.is_closing() {
            // Its last lines stay what they were, but for the recovery point.
            let lines = self.lifecycle.last_lines.get(&request.dir);
            let lines = lines
                .and_then(|it| it.get(&request.name))
                .copied()
                .unwrap_or_default();
            self.close_log(request.dir, log, lines, out);
            return;
        }
        self.journal_opened(request, report, out);
        let is_offline = self.online_dir(request.dir).is_none();
        let Some(partition) = self.partitions.find_mut(id) else {
            unreachable!(
                "{} is gone but its open job was not abandoned",
                request.name
            );
        };
        if is_offline || matches!(partition.state, PartitionState::Failed) {
            return;
        }
        // The topic may have been configured anew while the job was out.
        configure_log(&mut log, &partition.settings, &self.settings);
        let ends = LogEnds {
            log_start_offset: log.log_start_offset(),
            log_end_offset: log.log_end_offset(),
            flushed_offset: log.flushed_offset(),
        };
        let high_watermark = partition.kept.high_watermark.unwrap_or(Offset::ZERO);
        let config = replica_config(&partition.settings, &self.settings);
        let replica = Replica::new(now, self.node_id, ends, high_watermark, config);
        let online = OnlinePartition {
            log,
            replica,
            sync_in_flight: false,
            flush_look: None,
        };
        self.checkpoints.note_high_watermark();
        self.checkpoints.note_recovery_point();
        let state = PartitionState::Online(Box::new(online));
        let before = std::mem::replace(&mut partition.state, state);
        self.partitions.mark_changed(id);
        if let Some(image) = self.image.partition(id).cloned() {
            self.apply_assignment(now, id, &image, out);
        }
        if let PartitionState::Opening { queued, .. } = before {
            self.append_queued(now, queued, out);
        }
    }

    fn journal_opened(
        &mut self,
        request: &OpenRequest,
        report: &RecoveryReport,
        out: &mut Effects<D>,
    ) {
        self.lifecycle.opened += u32::from(!request.is_new);
        let (done, total) = (self.lifecycle.opened, self.lifecycle.to_open_total);
        // Plain opens of many logs need no line each.
        let level = match report.severity() {
            None if request.is_new || done % 100 != 0 && done != total => Level::Trace,
            None | Some(Severity::Normal) => Level::Info,
            Some(Severity::Repaired | Severity::Damage) => Level::Warn,
            Some(Severity::Loss) => Level::Error,
        };
        let (partition, report_text) = (request.name.clone(), report.to_string());
        let happening = Happening::LogOpened {
            partition,
            report: report_text,
            done,
            total,
        };
        self.journal(level, happening, out);
        // Two findings may tell of the same records.
        let lost: BTreeSet<_> = report.findings.iter().filter_map(lost).collect();
        for (from, to) in lost {
            let partition = request.name.clone();
            let why = "recovery did not find records that had been committed";
            let happening = Happening::DataLoss {
                partition,
                from,
                to,
                why,
            };
            self.journal(Level::Error, happening, out);
        }
    }

    /// Tells control once every log of the first image is open or failed.
    pub(super) fn note_if_loaded(&mut self, out: &mut Effects<D>) {
        let lifecycle = &mut self.lifecycle;
        let loaded = lifecycle.phase == Phase::Loading
            && !lifecycle.to_apply.is_waiting()
            && lifecycle.to_open.is_empty()
            && lifecycle.name_taken.is_empty()
            && lifecycle.opening.is_empty();
        if loaded {
            lifecycle.phase = Phase::Running;
            out.push(Effect::Part {
                to: MachineId::Control,
                part: Part::LogsLoaded,
            });
        }
    }
}

/// The offsets that a finding says are gone for good.
const fn lost(finding: &Finding) -> Option<(Offset, Offset)> {
    match *finding {
        Finding::UnflushedLoss {
            end,
            high_watermark,
            ..
        } => Some((end, high_watermark)),
        Finding::FlushedLoss {
            end,
            recovery_point,
        } => Some((end, recovery_point)),
        Finding::Hole { from, to } => Some((from, to)),
        Finding::StartBeyondEnd {
            log_start_offset,
            log_end_offset,
            high_watermark,
        } if high_watermark.raw() < log_start_offset.raw() => {
            Some((log_end_offset, log_start_offset))
        }
        _ => None,
    }
}
