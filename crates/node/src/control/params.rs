use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataDelta;
use highwater_quorum::ReplicaKey;
use highwater_types::{BrokerEpoch, DirectoryId, Mono, Uuid};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use super::Control;
use super::controllers::OwnRegistration;
use super::leader::{Leader, LeaderParams};
use super::lifecycle::BrokerLifecycle;
use super::observer::{Observer, ObserverParams};
use super::role::QuorumRole;
use super::snapshots::Snapshots;
use crate::authorizer::AllowAll;
use crate::boot::{OpenMetadata, OpenRole};
use crate::config::NodeConfig;

/// What the control machine is built from; all of it was read by `boot`.
#[derive(Debug)]
pub(crate) struct ControlParams<D: Disk> {
    pub(crate) config: NodeConfig,
    pub(crate) cluster_id: Arc<str>,
    pub(crate) dirs: Vec<ControlDir<D>>,
    pub(crate) locks: Vec<D::Lock>,
    pub(crate) metadata: OpenMetadata<D>,
    /// The epoch of the last run, if all directories agree that it stopped cleanly.
    pub(crate) previous_epoch: BrokerEpoch,
    pub(crate) seed: [u8; 32],
}

/// A log directory as control sees it.
#[derive(Debug)]
pub(crate) struct ControlDir<D: Disk> {
    pub(crate) disk: D,
    pub(crate) id: DirectoryId,
    pub(crate) offline: bool,
}

impl<D: Disk> Control<D> {
    /// A control machine that has not begun its work yet.
    pub(crate) fn new(params: ControlParams<D>) -> Self {
        let config = params.config;
        let mut random = ChaCha8Rng::from_seed(params.seed);
        let incarnation = random_uuid(&mut random);
        let own_registration = OwnRegistration::new(random_uuid(&mut random));
        let committed = params.metadata.replayed.clone();
        let told_kraft_version = params.metadata.log.kraft_version;
        let role = role(
            &config,
            &params.cluster_id,
            &params.dirs,
            params.metadata,
            random,
        );
        Self {
            cluster_id: params.cluster_id,
            dirs: params.dirs,
            role,
            committed,
            image: Arc::default(),
            published: false,
            reloaded: false,
            told_controller: None,
            told_kraft_version,
            broker: BrokerLifecycle::new(&config, incarnation, params.previous_epoch),
            own_registration,
            snapshots: Snapshots::new(&config),
            tokens_used: 0,
            jobs: BTreeMap::new(),
            removals: Vec::new(),
            closing_shards: BTreeSet::new(),
            unclean: BTreeSet::new(),
            locks: params.locks,
            started: false,
            failure: None,
            stepped: Mono::START,
            wanted: None,
            warnings: Vec::new(),
            config,
        }
    }
}

fn role<D: Disk>(
    config: &NodeConfig,
    cluster_id: &Arc<str>,
    dirs: &[ControlDir<D>],
    metadata: OpenMetadata<D>,
    random: ChaCha8Rng,
) -> QuorumRole<D> {
    let OpenMetadata {
        log,
        replayed,
        role,
    } = metadata;
    match role {
        OpenRole::Leader { state, bootstrap } => {
            let latest: MetadataDelta = replayed;
            QuorumRole::Leader(Box::new(Leader::new(LeaderParams {
                config: config.clone(),
                cluster_id: Arc::clone(cluster_id),
                log,
                state,
                latest,
                bootstrap,
                authorizer: Arc::new(AllowAll),
                random,
            })))
        }
        OpenRole::Observer { state, stored } => {
            let dir = dirs.get(config.metadata_dir);
            let key = ReplicaKey {
                id: config.node_id,
                directory_id: dir.map_or(DirectoryId::ZERO, |dir| dir.id),
            };
            QuorumRole::Observer(Box::new(Observer::new(ObserverParams {
                config,
                cluster_id,
                log,
                state,
                key,
                stored,
            })))
        }
    }
}

fn random_uuid(random: &mut ChaCha8Rng) -> Uuid {
    let mut bytes = [0; 16];
    random.fill_bytes(&mut bytes);
    Uuid::from_random(bytes)
}
