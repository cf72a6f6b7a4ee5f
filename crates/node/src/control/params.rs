use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::controller::Controller;
use highwater_types::{BrokerEpoch, DirectoryId, Millis, Mono, Uuid};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use super::Control;
use super::controllers::OwnRegistration;
use super::lifecycle::BrokerLifecycle;
use super::metadata_log::MetadataLog;
use super::snapshots::Snapshots;
use crate::authorizer::AllowAll;
use crate::boot::OpenMetadata;
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
    /// A control machine that has not begun its epoch yet.
    pub(crate) fn new(params: ControlParams<D>) -> Self {
        let (config, metadata) = (params.config, params.metadata);
        let mut random = ChaCha8Rng::from_seed(params.seed);
        let mut bytes = [0; 16];
        random.fill_bytes(&mut bytes);
        let incarnation = Uuid::from_random(bytes);
        let broker = BrokerLifecycle::new(&config, incarnation, params.previous_epoch);
        let mut controller = Controller::new(
            Arc::clone(&params.cluster_id),
            config.node_id,
            Arc::clone(&config.broker),
        );
        controller.old_rule = config.old_rule;
        let mut log = MetadataLog::new(metadata.log, metadata.leader);
        log.bytes_since_snapshot = metadata.bytes_since_snapshot;
        Self {
            cluster_id: params.cluster_id,
            dirs: params.dirs,
            log: Some(log),
            kraft_version: metadata.kraft_version,
            voters: metadata.voters,
            bootstrap: metadata.bootstrap,
            committed: metadata.replayed.clone(),
            latest: metadata.replayed,
            image: Arc::default(),
            published: false,
            controller,
            authorizer: Arc::new(AllowAll),
            broker,
            own_registration: OwnRegistration::default(),
            snapshots: Snapshots::new(&config, metadata.snapshots),
            random,
            tokens_used: 0,
            jobs: std::collections::BTreeMap::new(),
            removals: Vec::new(),
            closing_shards: BTreeSet::new(),
            unclean: BTreeSet::new(),
            locks: params.locks,
            started: false,
            failure: None,
            last_append: Mono::START,
            noop_interval: noop_interval(&config),
            stepped: Mono::START,
            wanted: None,
            stalled: false,
            warnings: Vec::new(),
            config,
        }
    }
}

/// How often an idle log gets a NoOp record. They let others see that the high watermark moves; a
/// lone voter has no others, so it writes them far less often than `metadata.max.idle.interval.ms`
/// says: each costs a flush.
fn noop_interval(config: &NodeConfig) -> Option<Millis> {
    let asked = config.broker.count("metadata.max.idle.interval.ms");
    let least = config.broker.count("metadata.noop.min.interval.ms");
    (asked > 0).then(|| Millis::new(asked.max(least)))
}
