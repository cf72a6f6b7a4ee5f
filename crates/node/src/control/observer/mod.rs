//! A broker without the controller's role: it follows the metadata log of the quorum's leader in
//! a copy of its own, and applies what is committed (KIP-595).

mod apply;
mod download;
mod fetch;
mod install;

use highwater_disk::Disk;
use highwater_log::RemovedFiles;
use highwater_quorum::{FetchTarget, ObserverState, QuorumState, QuorumStateVersion, ReplicaKey};
use highwater_types::{LeaderEpoch, Millis, Mono, Now, Offset};

pub(super) use self::apply::Applied;
pub use self::install::{InstallSnapshot, LoadedSnapshot, SnapshotLoaded};

use self::download::Download;
use super::metadata_log::MetadataLog;
use crate::config::NodeConfig;
use crate::machine::Token;

/// How long a leader holds an answer back while there is nothing new, as Kafka's observers ask.
const MAX_WAIT: Millis = Millis::new(500);
/// A leader that does not answer for so long is worth a line in the log.
const SILENCE_TOLD: Millis = Millis::new(1000);

/// A replica of the metadata log that does not vote.
///
/// It appends whatever the leader sends, committed or not, and fetches again at once; only what is
/// below the high watermark is applied. It has one request out at most.
#[derive(Debug)]
pub(super) struct Observer<D: Disk> {
    pub(super) log: MetadataLog<D>,
    pub(super) state: ObserverState,
    identity: Identity,
    limits: Limits,
    doing: Doing<D>,
    /// What the file `quorum-state` says, or is about to say.
    stored: Option<QuorumState>,
    /// Whether it is being written.
    storing: bool,
    /// A failure was told, and nothing went well since.
    complained: bool,
}

/// How this replica names itself.
#[derive(Debug)]
struct Identity {
    cluster_id: String,
    key: ReplicaKey,
    /// The controller listener's name, by which voters are reached.
    listener: String,
}

#[derive(Debug)]
struct Limits {
    fetch_bytes_max: i32,
    snapshot_bytes_max: i32,
    request_timeout: Millis,
}

/// What the observer is at.
///
/// Legal transitions: `Resting` -> `Fetching` or `Downloading`; `Fetching` -> `Resting` or
/// `Downloading`; `Downloading` -> `Resting` or `Installing`; `Installing` -> `Resting`.
#[derive(Debug)]
enum Doing<D: Disk> {
    /// The next fetch is due then.
    Resting(Mono),
    /// A fetch is out.
    Fetching(Sent),
    /// A snapshot is on its way.
    Downloading(Download<D>),
    /// A snapshot is complete and being loaded.
    Installing,
}

/// A request that is out.
#[derive(Clone, Debug)]
struct Sent {
    token: Token,
    target: FetchTarget,
    epoch: LeaderEpoch,
}

/// What an answer leads to, beyond the observer itself.
#[derive(Debug)]
pub(super) enum Followed<D: Disk> {
    /// Nothing.
    Nothing,
    /// The log was cut here: these files go.
    Cut(Offset, RemovedFiles<D>),
    /// A snapshot is complete: a job loads it.
    Downloaded(InstallSnapshot<D>),
    /// The node cannot go on.
    Failed(String),
}

/// What an observer begins with.
#[derive(Debug)]
pub(super) struct ObserverParams<'a, D: Disk> {
    pub(super) config: &'a NodeConfig,
    pub(super) cluster_id: &'a str,
    pub(super) log: MetadataLog<D>,
    pub(super) state: ObserverState,
    pub(super) key: ReplicaKey,
    pub(super) stored: Option<QuorumState>,
}

impl<D: Disk> Observer<D> {
    pub(super) fn new(params: ObserverParams<'_, D>) -> Self {
        let config = params.config;
        let count = |name: &str| config.broker.count(name);
        let bytes = |name: &str| i32::try_from(count(name)).unwrap_or(i32::MAX);
        let mut observer = Self {
            log: params.log,
            state: params.state,
            identity: Identity {
                cluster_id: params.cluster_id.to_owned(),
                key: params.key,
                listener: config.controller_listener(),
            },
            limits: Limits {
                fetch_bytes_max: bytes("controller.quorum.fetch.max.bytes"),
                snapshot_bytes_max: bytes("controller.quorum.fetch.snapshot.max.bytes"),
                request_timeout: Millis::new(count("controller.quorum.request.timeout.ms")),
            },
            doing: Doing::Resting(Mono::START),
            stored: params.stored,
            storing: false,
            complained: false,
        };
        if let Some(voters) = &config.static_voters {
            observer
                .state
                .set_voters(voters, &observer.identity.listener);
        }
        observer.voters_changed();
        observer
    }

    /// When there is something to do: at once while committed records behind `applied` wait.
    pub(super) fn next_deadline(&self, applied: Offset) -> Option<Mono> {
        if self.high_watermark().is_some_and(|it| it > applied) {
            return Some(Mono::START);
        }
        match &self.doing {
            Doing::Resting(until) => Some(*until),
            Doing::Downloading(download) => download.next_deadline(),
            Doing::Fetching(_) | Doing::Installing => None,
        }
    }

    /// Exclusive: all below it is here, and committed; `None` until that is known. More may be
    /// committed than is here, after damage in this copy.
    pub(super) fn high_watermark(&self) -> Option<Offset> {
        let committed = self.state.high_watermark();
        committed.map(|it| it.min(self.log.end()))
    }

    /// The content of `quorum-state`, when it has to be written anew.
    pub(super) fn quorum_state_to_store(&mut self, config: &NodeConfig) -> Option<Vec<u8>> {
        let voters = config.static_voters.as_ref();
        let voters = voters.map(|set| set.ids()).unwrap_or_default();
        let state = self.state.quorum_state(voters);
        if self.storing || self.stored.as_ref() == Some(&state) {
            return None;
        }
        let version = if self.log.kraft_version > 0 {
            QuorumStateVersion::V1
        } else {
            QuorumStateVersion::V0
        };
        let bytes = state.encode(version);
        self.stored = Some(state);
        self.storing = true;
        Some(bytes)
    }

    /// The file was written, or could not be: an observer has no vote to remember, so that does
    /// not stop it.
    pub(super) const fn quorum_state_stored(&mut self) {
        self.storing = false;
    }

    /// Voters are known by the metadata log.
    fn voters_changed(&mut self) {
        if let Some(record) = &self.log.voters {
            let voters = crate::boot::voter_set(record);
            self.state.set_voters(&voters, &self.identity.listener);
        }
    }

    fn rest(&mut self, now: Now) {
        let span = self.state.handle_failed();
        self.doing = Doing::Resting(now.mono.plus(span));
    }

    /// Tells that no leader answers, once that is so for some time: at a start, controllers and
    /// brokers may come up in any order.
    fn complain_of_silence(&mut self, now: Now, why: &str, warnings: &mut Vec<String>) {
        if self.state.silent_for(now.mono) >= SILENCE_TOLD {
            self.complain(why, warnings);
        }
    }

    /// Tells a failure unless the one before was told and nothing went well since.
    fn complain(&mut self, why: &str, warnings: &mut Vec<String>) {
        if !std::mem::replace(&mut self.complained, true) {
            warnings.push(format!("the metadata log cannot be followed: {why}"));
        }
    }
}
