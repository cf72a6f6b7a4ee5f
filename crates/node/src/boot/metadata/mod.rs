//! Opens the metadata log, for the role that the node has in its quorum.

mod log;
mod reader;
mod voters;

pub(crate) use voters::voter_set;

use highwater_disk::{Blocking, Disk};
use highwater_log::PartitionLog;
use highwater_metadata::{EPOCH_MAX, MetadataDelta, QuorumRecord, SnapshotControl};
use highwater_quorum::{LeaderState, ObserverSettings, ObserverState, QuorumState, ReplicaKey};
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::VotersRecord;
use highwater_types::{LeaderEpoch, Millis, Now, Offset};

use super::BootError;
use super::identity::Identity;
use crate::config::NodeConfig;
use crate::control::MetadataLog;
use crate::control::snapshots::SnapshotFile;
use crate::journal::JournalEntry;
use reader::Reader;

/// The metadata as it was found.
#[derive(Debug)]
pub(crate) struct OpenMetadata<D: Disk> {
    pub(crate) log: MetadataLog<D>,
    /// For a leader, the metadata with everything that is in the log; for an observer, those of the
    /// newest snapshot: it does not know what else is committed.
    pub(crate) replayed: MetadataDelta,
    pub(crate) role: OpenRole,
}

/// The part of this node in the quorum.
#[derive(Debug)]
pub(crate) enum OpenRole {
    /// The leader of the next epoch.
    Leader {
        state: LeaderState,
        /// What `format` left, when nothing of it is in the log yet.
        bootstrap: Option<Vec<MetadataRecord>>,
    },
    /// An observer, and what its `quorum-state` says.
    Observer {
        state: ObserverState,
        stored: Option<QuorumState>,
    },
}

impl<D: Disk> OpenMetadata<D> {
    /// Whether the metadata have never known a topic.
    pub(super) const fn is_new(&self) -> bool {
        matches!(
            self.role,
            OpenRole::Leader {
                bootstrap: Some(_),
                ..
            }
        )
    }
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

/// Opens the metadata log and loads the newest snapshot; a leader replays the log over it, and
/// begins a new epoch in `quorum-state`.
pub(super) fn open<D: Disk>(
    start: &Start<'_>,
    dir: &D,
    events: &mut Vec<JournalEntry>,
    b: &Blocking,
) -> Result<OpenMetadata<D>, BootError> {
    let mut reader = Reader::new(dir, events, b, !start.config.roles.controller);
    let ids = reader.snapshot_ids()?;
    let (mut log, is_damaged) = reader.open_log(start)?;
    let mut state = State::default();
    let snapshots = reader.load_snapshot(&mut state, &ids)?;
    reader.fit(&mut log, &state, is_damaged, start.now)?;
    if start.config.roles.controller {
        lead(start, &mut reader, log, state, snapshots)
    } else {
        observe(start, &mut reader, log, state, snapshots)
    }
}

fn lead<D: Disk>(
    start: &Start<'_>,
    reader: &mut Reader<'_, D>,
    mut log: PartitionLog<D>,
    mut state: State,
    snapshots: Vec<SnapshotFile>,
) -> Result<OpenMetadata<D>, BootError> {
    let Start {
        config, identity, ..
    } = *start;
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
    let key = ReplicaKey {
        id: config.node_id,
        directory_id: directory_id.unwrap_or_default(),
    };
    let voters = voters::leading(config, &state, key)?;
    let last_epoch = last_epoch(&log, &state);
    let leader = LeaderState::new(
        key,
        voters,
        stored.as_ref(),
        last_epoch,
        log.log_end_offset(),
    )
    .map_err(|why| BootError(why.to_string()))?;
    reader.write_quorum_state(&leader, state.kraft_version)?;
    let mut log = MetadataLog::new(log, reader.disk().clone(), snapshots);
    log.bytes_since_snapshot = bytes_since_snapshot;
    log.kraft_version = state.kraft_version;
    log.voters = state.voters;
    Ok(OpenMetadata {
        log,
        replayed: state.delta,
        role: OpenRole::Leader {
            state: leader,
            bootstrap,
        },
    })
}

fn observe<D: Disk>(
    start: &Start<'_>,
    reader: &mut Reader<'_, D>,
    log: PartitionLog<D>,
    state: State,
    snapshots: Vec<SnapshotFile>,
) -> Result<OpenMetadata<D>, BootError> {
    let config = start.config;
    let count = |name: &str| Millis::new(config.broker.count(name));
    let settings = ObserverSettings {
        bootstrap: config.controllers.clone(),
        fetch_timeout: count("controller.quorum.fetch.timeout.ms"),
        retry_backoff: count("controller.quorum.retry.backoff.ms"),
    };
    let stored = reader.quorum_state()?;
    let end = state.delta.image().end.offset;
    let committed = (end > Offset::ZERO).then_some(end);
    let last_epoch = last_epoch(&log, &state);
    let now = start.now.mono;
    let observer = ObserverState::new(settings, stored.as_ref(), last_epoch, committed, now);
    let mut log = MetadataLog::new(log, reader.disk().clone(), snapshots);
    log.kraft_version = state.kraft_version;
    log.voters = state.voters;
    Ok(OpenMetadata {
        log,
        replayed: state.delta,
        role: OpenRole::Observer {
            state: observer,
            stored,
        },
    })
}

/// The newest epoch in log or snapshot.
fn last_epoch<D: Disk>(log: &PartitionLog<D>, state: &State) -> LeaderEpoch {
    let last_epoch = log.last_epoch().unwrap_or(LeaderEpoch::ZERO);
    last_epoch.max(state.delta.image().end.epoch)
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
