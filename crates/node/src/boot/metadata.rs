use std::path::Path;
use std::sync::Arc;

use highwater_disk::{Blocking, Disk, DiskFile as _};
use highwater_log::{
    LogConfig, OpenError, OpenLog, PartitionLog, ReadResult, RecoveryReport, Severity, durable_end,
};
use highwater_metadata::{
    EPOCH_MAX, MetadataDelta, QuorumRecord, SnapshotControl, read_snapshot, replay_batch,
};
use highwater_quorum::{
    LeaderState, QuorumState, QuorumStateVersion, ReplicaKey, Voter, VoterEndpoint, VoterSet,
};
use highwater_records::Batches;
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::VotersRecord;
use highwater_types::{
    DirectoryId, LeaderEpoch, Millis, Now, Offset, OffsetAndEpoch, PartitionIndex, TopicId,
    TopicName, TopicPartition,
};

use super::identity::Identity;
use super::{BootError, not_written, shown};
use crate::config::NodeConfig;
use crate::control::files::{
    BOOTSTRAP_FILE, BOOTSTRAP_SNAPSHOT, METADATA_DIR, QUORUM_STATE, parse_snapshot_name,
    snapshot_path,
};
use crate::control::snapshots::SnapshotFile;
use crate::journal::{JournalEntry, Level};

/// Bytes of the log read at a time.
const READ_BYTES: u64 = 8 << 20;

/// The metadata as it was found, and the leader of its next epoch.
#[derive(Debug)]
pub(crate) struct OpenMetadata<D: Disk> {
    pub(crate) log: PartitionLog<D>,
    pub(crate) leader: LeaderState,
    /// The metadata with everything that is in the log.
    pub(crate) replayed: MetadataDelta,
    /// Bytes of the log behind the newest snapshot.
    pub(crate) bytes_since_snapshot: u64,
    /// By rising end.
    pub(crate) snapshots: Vec<SnapshotFile>,
    pub(crate) kraft_version: i16,
    pub(crate) voters: Option<VotersRecord>,
    /// What `format` left, when nothing of it is in the log yet.
    pub(crate) bootstrap: Option<Vec<MetadataRecord>>,
}

/// What is known of the node when its metadata log is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub(super) config: &'a NodeConfig,
    pub(super) identity: &'a Identity,
    /// Whether the directory's clean-shutdown marker was there.
    pub(super) was_clean: bool,
    pub(super) now: Now,
}

/// Opens the metadata log, replays it over the newest snapshot, and begins a new epoch in
/// `quorum-state`.
pub(super) fn open<D: Disk>(
    start: &Start<'_>,
    dir: &D,
    events: &mut Vec<JournalEntry>,
    b: &Blocking,
) -> Result<OpenMetadata<D>, BootError> {
    let Start {
        config,
        identity,
        was_clean,
        now,
    } = *start;
    let mut reader = Reader { dir, events, b };
    let ids = reader.snapshot_ids()?;
    let mut log = reader.open_log(config, was_clean, now)?;
    let mut state = State::default();
    let snapshots = reader.load_snapshot(&mut state, &mut log, &ids, now)?;
    let from = state.delta.image().end.offset;
    let bytes_since_snapshot = reader.replay_log(&mut state, &mut log, from)?;
    refuse_used_up_epochs(&state.delta)?;
    // Not whether the log is empty: the first start may have ended between its first two appends.
    let bootstrap = if state.delta.settled_image().metadata_version() == 0 {
        Some(reader.bootstrap(&mut state)?)
    } else {
        None
    };
    let stored = reader.quorum_state()?;
    let directory_id = identity.directory_ids.get(config.metadata_dir).copied();
    let voters = voter_set(config, &state, directory_id.unwrap_or_default())?;
    let key = ReplicaKey {
        id: config.node_id,
        directory_id: directory_id.unwrap_or_default(),
    };
    let last_epoch = log.last_epoch().unwrap_or(LeaderEpoch::ZERO);
    let last_epoch = last_epoch.max(state.delta.image().end.epoch);
    let end = log.log_end_offset();
    let leader = LeaderState::new(key, voters, stored.as_ref(), last_epoch, end)
        .map_err(|why| BootError(why.to_string()))?;
    reader.write_quorum_state(&leader, state.kraft_version)?;
    Ok(OpenMetadata {
        log,
        leader,
        replayed: state.delta,
        bytes_since_snapshot,
        snapshots,
        kraft_version: state.kraft_version,
        voters: state.voters,
        bootstrap,
    })
}

/// Every change of a partition needs an epoch. That there is room for those of a life is seen to
/// at its start: later the controller could not even say no.
fn refuse_used_up_epochs(delta: &MetadataDelta) -> Result<(), BootError> {
    let mut partitions = delta.image().partitions();
    let used_up = partitions.find(|(_, _, it)| {
        it.leader_epoch.raw() > EPOCH_MAX || it.partition_epoch.raw() > EPOCH_MAX
    });
    match used_up {
        None => Ok(()),
        Some((topic, index, it)) => Err(BootError(format!(
            "the epochs of partition {}-{index} are as good as used up (leader epoch {}, \
             partition epoch {}): the metadata log is damaged; restore the directory from another \
             copy",
            topic.name, it.leader_epoch, it.partition_epoch
        ))),
    }
}

/// What was read so far.
#[derive(Debug, Default)]
struct State {
    delta: MetadataDelta,
    kraft_version: i16,
    voters: Option<VotersRecord>,
}

impl State {
    fn take_control(&mut self, control: &SnapshotControl) {
        self.kraft_version = control.kraft_version.unwrap_or(self.kraft_version);
        if control.voters.is_some() {
            self.voters.clone_from(&control.voters);
        }
    }

    fn take_quorum_record(&mut self, record: QuorumRecord) {
        match record {
            QuorumRecord::LeaderChange(_) => {}
            QuorumRecord::KraftVersion(level) => self.kraft_version = level,
            QuorumRecord::Voters(voters) => self.voters = Some(voters),
        }
    }
}

struct Reader<'a, D: Disk> {
    dir: &'a D,
    events: &'a mut Vec<JournalEntry>,
    b: &'a Blocking,
}

impl<D: Disk> Reader<'_, D> {
    fn warn(&mut self, text: String) {
        self.events.push(JournalEntry::text(Level::Warn, text));
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, BootError> {
        let read = self.dir.read(path);
        read.map_err(|why| BootError(format!("{}: {why}", shown(self.dir, &text(path)))))
    }

    /// The snapshots that are there, by rising end; leftovers of unfinished ones are removed.
    fn snapshot_ids(&mut self) -> Result<Vec<OffsetAndEpoch>, BootError> {
        let failed = |why| not_written(self.dir, METADATA_DIR, 0, &why);
        self.dir
            .create_dir(Path::new(METADATA_DIR))
            .map_err(failed)?;
        let entries = self.dir.list(Path::new(METADATA_DIR)).map_err(failed)?;
        let mut ids = Vec::new();
        for entry in entries {
            let unfinished = [".checkpoint.part", ".checkpoint.tmp", ".checkpoint.deleted"];
            if let Some(id) = parse_snapshot_name(&entry.name) {
                ids.push(id);
            } else if unfinished.iter().any(|suffix| entry.name.ends_with(suffix)) {
                let path = Path::new(METADATA_DIR).join(&entry.name);
                self.dir.remove(&path, self.b).map_err(failed)?;
            }
        }
        ids.sort();
        Ok(ids)
    }

    fn open_log(
        &mut self,
        config: &NodeConfig,
        was_clean: bool,
        now: Now,
    ) -> Result<PartitionLog<D>, BootError> {
        let committed = durable_end(self.dir, Path::new(METADATA_DIR), was_clean)
            .map_err(|why| BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR))))?;
        let topic = TopicName::new("__cluster_metadata").expect("a legal name");
        let open = OpenLog {
            disk: self.dir.clone(),
            dir: METADATA_DIR.into(),
            topic_partition: TopicPartition {
                topic,
                partition: PartitionIndex::new(0),
            },
            topic_id: TopicId::CLUSTER_METADATA,
            config: log_config(config),
            recovery_point: committed,
            high_watermark: committed,
            log_start_offset: Offset::ZERO,
            was_cleaned: false,
            leader_epoch: None,
            clean_shutdown: was_clean,
            now,
        };
        let opened = open.run(self.b, &|_| {});
        let (log, report) = opened.map_err(|why| match why {
            OpenError::Disk(why) => not_written(self.dir, METADATA_DIR, 0, &why),
            why => BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR))),
        })?;
        self.tell(&report)?;
        Ok(log)
    }

    /// What recovery found. Metadata with a hole is no metadata: such a log is not started from.
    fn tell(&mut self, report: &RecoveryReport) -> Result<(), BootError> {
        for finding in &report.findings {
            let text = format!("{}: {finding}", shown(self.dir, METADATA_DIR));
            match finding.severity() {
                Severity::Normal => self.events.push(JournalEntry::text(Level::Info, text)),
                Severity::Repaired => self.warn(text),
                Severity::Damage | Severity::Loss => {
                    return Err(BootError(format!(
                        "{text}; committed metadata is damaged: restore the directory from \
                         another copy"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Loads the newest snapshot that is whole, and makes sure that the log reaches back to it.
    fn load_snapshot(
        &mut self,
        state: &mut State,
        log: &mut PartitionLog<D>,
        ids: &[OffsetAndEpoch],
        now: Now,
    ) -> Result<Vec<SnapshotFile>, BootError> {
        let mut files = Vec::new();
        let mut loaded = None;
        for id in ids.iter().rev().filter(|id| id.offset > Offset::ZERO) {
            let path = snapshot_path(*id);
            let bytes = self.read(&path)?.unwrap_or_default();
            if let Some(loaded) = loaded {
                files.push(SnapshotFile {
                    id: *id,
                    bytes: bytes.len() as u64,
                    timestamp: loaded,
                });
                continue;
            }
            let mut fresh = State::default();
            let read = read_snapshot(&bytes, |record| Ok(fresh.delta.replay(&record)?));
            match read {
                Ok(control) => {
                    fresh.delta.set_end(*id);
                    fresh.take_control(&control);
                    *state = fresh;
                    let timestamp = control.last_contained_timestamp;
                    let bytes = bytes.len() as u64;
                    files.push(SnapshotFile {
                        id: *id,
                        bytes,
                        timestamp,
                    });
                    loaded = Some(timestamp);
                }
                // An older one and a longer replay give the same state.
                Err(why) => self.warn(format!("{}: {why}", shown(self.dir, &text(&path)))),
            }
        }
        files.reverse();
        let end = state.delta.image().end.offset;
        let start = log.log_start_offset();
        if start > end {
            let newest = if loaded.is_some() {
                format!("the newest usable snapshot ends at {end}")
            } else {
                "there is no usable snapshot".to_owned()
            };
            return Err(BootError(format!(
                "the metadata log in {} starts at offset {start}, but {newest}: the records from \
                 {end} on are missing; restore the directory from another copy",
                shown(self.dir, METADATA_DIR)
            )));
        }
        if log.log_end_offset() < end {
            // The log was lost or cut; the snapshot has everything that was committed.
            let text = format!(
                "the metadata log ends at {}, before its newest snapshot ({end}); going on there",
                log.log_end_offset()
            );
            self.warn(text);
            let cut = log
                .truncate_fully_and_start_at(now, end)
                .map_err(|why| BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR))))?;
            cut.run(self.b)
                .map_err(|why| BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR))))?;
        }
        Ok(files)
    }

    /// Applies everything in the log from `from` on. Returns how many bytes that was.
    fn replay_log(
        &mut self,
        state: &mut State,
        log: &mut PartitionLog<D>,
        from: Offset,
    ) -> Result<u64, BootError> {
        let end = log.log_end_offset();
        let mut at = from;
        let mut bytes_read = 0;
        while at < end {
            let bytes = self.read_at(log, at, end)?;
            let before = at;
            for batch in Batches::new(&bytes) {
                let batch = batch.map_err(|why| self.unreadable(at, &why.to_string()))?;
                let header = *batch.header();
                // A read begins at the batch that holds the offset.
                if header.next_offset() <= at {
                    continue;
                }
                let records = replay_batch(&mut state.delta, &batch)
                    .map_err(|why| self.unreadable(at, &why.to_string()))?;
                for record in records {
                    state.take_quorum_record(record);
                }
                bytes_read += batch.size_bytes() as u64;
                at = header.next_offset();
            }
            if at == before {
                return Err(self.unreadable(at, "no whole batch is there"));
            }
        }
        Ok(bytes_read)
    }

    fn read_at(
        &self,
        log: &mut PartitionLog<D>,
        at: Offset,
        end: Offset,
    ) -> Result<Vec<u8>, BootError> {
        let failed = |why: String| self.unreadable(at, &why);
        let read = log
            .read(at, end, READ_BYTES, true)
            .map_err(|why| failed(why.to_string()))?;
        let ReadResult::Local(read) = read else {
            return Err(failed("it is in tiered storage".to_owned()));
        };
        let Some(region) = read.region else {
            return Ok(Vec::new());
        };
        let len = usize::try_from(region.len).map_err(|_| failed("too large".to_owned()))?;
        let mut bytes = vec![0; len];
        let file = Arc::clone(&region.file);
        let read = file.read_at(region.position, &mut bytes);
        let count = read.map_err(|why| failed(why.to_string()))?;
        bytes.truncate(count);
        Ok(bytes)
    }

    fn unreadable(&self, at: Offset, why: &str) -> BootError {
        BootError(format!(
            "the metadata log in {} cannot be replayed at offset {at}: {why}; committed metadata \
             is damaged: restore the directory from another copy",
            shown(self.dir, METADATA_DIR)
        ))
    }

    /// What `format` left for the first start, ours or Kafka's, of any release.
    fn bootstrap(&self, state: &mut State) -> Result<Vec<MetadataRecord>, BootError> {
        for path in [BOOTSTRAP_SNAPSHOT, BOOTSTRAP_FILE] {
            let Some(bytes) = self.read(Path::new(path))? else {
                continue;
            };
            let mut records = Vec::new();
            let control = read_snapshot(&bytes, |record| {
                records.push(record);
                Ok(())
            });
            let control =
                control.map_err(|why| BootError(format!("{}: {why}", shown(self.dir, path))))?;
            state.take_control(&control);
            return Ok(records);
        }
        Err(BootError(format!(
            "{} is missing and the metadata log has no metadata yet; format the directory with: \
             highwater format --config FILE",
            shown(self.dir, BOOTSTRAP_SNAPSHOT)
        )))
    }

    fn quorum_state(&self) -> Result<Option<QuorumState>, BootError> {
        let Some(bytes) = self.read(Path::new(QUORUM_STATE))? else {
            return Ok(None);
        };
        QuorumState::decode(&bytes).map(Some).map_err(|why| {
            BootError(format!(
                "{}: {why}; restore it: without it this voter could take part in one epoch twice",
                shown(self.dir, QUORUM_STATE)
            ))
        })
    }

    fn write_quorum_state(&self, leader: &LeaderState, level: i16) -> Result<(), BootError> {
        let version = if level > 0 {
            QuorumStateVersion::V1
        } else {
            QuorumStateVersion::V0
        };
        let bytes = leader.quorum_state().encode(version);
        self.dir
            .replace(Path::new(QUORUM_STATE), &bytes, self.b)
            .map_err(|why| not_written(self.dir, QUORUM_STATE, bytes.len(), &why))
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Who votes: in a dynamic quorum those in the log, in a static one those of the config.
fn voter_set(config: &NodeConfig, state: &State, own: DirectoryId) -> Result<VoterSet, BootError> {
    if state.kraft_version == 0 {
        return config.static_voters.clone().ok_or_else(|| {
            BootError(
                "the directory was formatted for a static quorum, but controller.quorum.voters is \
                 not set; set it as it was"
                    .to_owned(),
            )
        });
    }
    let Some(record) = &state.voters else {
        return Err(BootError(
            "the metadata names no voters (formatted with --no-initial-controllers?), so this \
             node cannot lead a quorum alone; format with --standalone"
                .to_owned(),
        ));
    };
    let voters = record.voters.iter().map(|voter| Voter {
        key: ReplicaKey {
            id: voter.voter_id,
            directory_id: DirectoryId::new(voter.voter_directory_id),
        },
        endpoints: voter
            .endpoints
            .iter()
            .map(|it| VoterEndpoint {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port,
            })
            .collect(),
        kraft_versions: (
            voter.kraft_version_feature.min_supported_version,
            voter.kraft_version_feature.max_supported_version,
        ),
    });
    let set = VoterSet {
        voters: voters.collect(),
    };
    let other = set.voters.iter().find(|it| it.key.id == config.node_id);
    match other {
        Some(voter) if voter.key.directory_id != own => Err(BootError(format!(
            "node {} votes with directory {}, but the metadata directory here is {own}: its data \
             are not what the quorum counts on; bring the old directory back",
            config.node_id, voter.key.directory_id
        ))),
        _ => Ok(set),
    }
}

/// The metadata log keeps everything from its start on; only snapshots move that.
fn log_config(config: &NodeConfig) -> LogConfig {
    let broker = &config.broker;
    let internal = broker.number("internal.metadata.log.segment.bytes");
    let segment_bytes = internal.or_else(|| broker.number("metadata.log.segment.bytes"));
    let segment_bytes = segment_bytes.and_then(|bytes| u32::try_from(bytes).ok());
    LogConfig {
        segment_bytes: segment_bytes.unwrap_or(1 << 30),
        segment_ms: Millis::new(broker.count("metadata.log.segment.ms")),
        retention_ms: None,
        retention_bytes: None,
        max_message_bytes: u32::MAX,
        file_delete_delay_ms: Millis::new(broker.count("internal.metadata.delete.delay.millis")),
        ..LogConfig::default()
    }
}
