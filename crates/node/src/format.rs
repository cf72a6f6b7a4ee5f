//! Makes log directories a node's own, as kafka-storage does.

use std::path::Path;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_log::checkpoint::{MetaProperties, meta_properties};
use highwater_metadata::controller::voters_record;
use highwater_metadata::image::{
    BrokerEndpoint, ELIGIBLE_LEADER_REPLICAS_VERSION, KRAFT_VERSION, METADATA_VERSION,
    supported_features,
};
use highwater_metadata::{SnapshotControl, write_snapshot};
use highwater_protocol::ListenerKind;
use highwater_quorum::VoterSet;
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::{VotersRecord, voters_record as wire};
use highwater_records::stored::metadata::FeatureLevelRecord;
use highwater_types::{DirectoryId, LeaderEpoch, NodeId, Now, Uuid};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use crate::config::NodeConfig;
use crate::control::files::{BOOTSTRAP_SNAPSHOT, METADATA_DIR};

/// Levels of metadata.version from which eligible leader replicas can be, and are, formatted.
const ELR_SINCE: i16 = 23;
const ELR_DEFAULT_SINCE: i16 = 26;

/// How to format.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The cluster's id; `None` picks a random one.
    pub cluster_id: Option<String>,
    /// Who votes.
    pub voters: FormatVoters,
    /// Directories that are formatted already are left alone instead of refused.
    pub ignore_formatted: bool,
    /// Levels to finalise other than this build's own choice, by feature name.
    pub features: Vec<(String, i16)>,
}

/// Who votes in the quorum of a formatted controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatVoters {
    /// This node alone; the voters are kept in the metadata log (`--standalone`).
    Standalone,
    /// These; the voters are kept in the metadata log (`--initial-controllers`).
    Initial(VoterSet),
    /// Nobody knows yet (`--no-initial-controllers`).
    None,
    /// Whoever `controller.quorum.voters` names.
    Static,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// The cluster's id, found or picked.
    pub cluster_id: String,
    /// Each log directory in order: its id, and whether it was formatted now.
    pub dirs: Vec<(DirectoryId, bool)>,
}

/// Why nothing was formatted. Nothing that existed was overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The disk refused.
    #[error("{dir}: {error}")]
    Disk {
        /// The log directory.
        dir: String,
        /// What it said.
        error: DiskError,
    },
    /// Formatted before.
    #[error("log directory {dir} is already formatted; use --ignore-formatted to keep it as it is")]
    AlreadyFormatted {
        /// The log directory.
        dir: String,
    },
    /// Not formatted, and not empty either.
    #[error(
        "log directory {dir} is not empty (it has {name}) but has no meta.properties; use an \
         empty directory"
    )]
    Foreign {
        /// The log directory.
        dir: String,
        /// Something in it.
        name: String,
    },
    /// Formatted for another cluster.
    #[error(
        "log directory {dir} belongs to cluster {found}, not {expected}; use that id, or another \
         directory"
    )]
    OtherCluster {
        /// The log directory.
        dir: String,
        /// Its cluster.
        found: String,
        /// The cluster asked for, or that of another directory.
        expected: String,
    },
    /// Formatted for another node.
    #[error("log directory {dir} belongs to node {found}, but node.id is {expected}")]
    OtherNode {
        /// The log directory.
        dir: String,
        /// Its node.
        found: NodeId,
        /// The config's node.
        expected: NodeId,
    },
    /// meta.properties is there and unreadable.
    #[error("{dir}/meta.properties: {why}; restore it, or use another directory")]
    Identity {
        /// The log directory.
        dir: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not an id.
    #[error(
        "'{0}' is no cluster id: 22 characters of base64url, as random-uuid prints, are expected"
    )]
    ClusterId(String),
    /// A feature or level that there is not.
    #[error("feature {name} has no level {level} that this build can format")]
    Feature {
        /// The feature.
        name: String,
        /// The level.
        level: i16,
    },
    /// Options that do not go together.
    #[error("{0}")]
    Options(&'static str),
}

/// Formats the log directories of a node: `meta.properties` in each, and for a controller the
/// bootstrap records in `__cluster_metadata-0/00000000000000000000-0000000000.checkpoint`.
///
/// `meta.properties` comes last: a directory without it is as if it had never been touched, and
/// can be formatted again. `seed` is random: ids are made of it.
///
/// # Errors
/// [`FormatError`]; nothing that existed was changed.
pub fn format<D: Disk>(
    config: &NodeConfig,
    dirs: &[D],
    options: &FormatOptions,
    now: Now,
    seed: [u8; 32],
    b: &Blocking,
) -> Result<Formatted, FormatError> {
    let mut random = Random(ChaCha8Rng::from_seed(seed));
    check_voters(config, &options.voters)?;
    let levels = feature_levels(options)?;
    let found = dirs
        .iter()
        .map(|dir| identity(config, dir))
        .collect::<Result<Vec<_>, _>>()?;
    let cluster_id = cluster_id(options, dirs, &found, &mut random)?;
    let formatted = dirs.iter().zip(&found).find(|(_, it)| it.is_some());
    if let Some((dir, _)) = formatted.filter(|_| !options.ignore_formatted) {
        return Err(FormatError::AlreadyFormatted { dir: name(dir) });
    }
    let mut outcome = Formatted {
        cluster_id: cluster_id.clone(),
        dirs: Vec::new(),
    };
    for (at, (dir, found)) in dirs.iter().zip(found).enumerate() {
        let disk_error = |error| FormatError::Disk {
            dir: name(dir),
            error,
        };
        if let Some(found) = found {
            outcome
                .dirs
                .push((found.directory_id.unwrap_or_default(), false));
            continue;
        }
        let is_metadata_dir = at == config.metadata_dir;
        let id = directory_id(config, options, is_metadata_dir, &mut random);
        if is_metadata_dir && config.roles.controller {
            let bytes = bootstrap_snapshot(config, options, &levels, id, now);
            dir.create_dir(Path::new(METADATA_DIR))
                .map_err(disk_error)?;
            dir.sync_dir(Path::new(""), b).map_err(disk_error)?;
            dir.replace(Path::new(BOOTSTRAP_SNAPSHOT), &bytes, b)
                .map_err(disk_error)?;
        }
        let identity = MetaProperties {
            cluster_id: cluster_id.clone(),
            node_id: config.node_id,
            directory_id: Some(id),
        };
        let bytes = identity.encode(now.wall);
        dir.replace(Path::new(meta_properties::FILE), &bytes, b)
            .map_err(disk_error)?;
        outcome.dirs.push((id, true));
    }
    Ok(outcome)
}

struct Random(ChaCha8Rng);

impl Random {
    fn uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        self.0.fill_bytes(&mut bytes);
        Uuid::from_random(bytes)
    }
}

fn name<D: Disk>(dir: &D) -> String {
    dir.root().display().to_string()
}

fn check_voters(config: &NodeConfig, voters: &FormatVoters) -> Result<(), FormatError> {
    if !config.roles.controller {
        return match voters {
            FormatVoters::Standalone | FormatVoters::Initial(_) => Err(FormatError::Options(
                "a broker without the controller's role has no vote: --standalone and \
                 --initial-controllers are for controllers",
            )),
            FormatVoters::None | FormatVoters::Static => Ok(()),
        };
    }
    match (voters, &config.static_voters) {
        (FormatVoters::Static, None) => Err(FormatError::Options(
            "controller.quorum.voters is not set; use --standalone, --initial-controllers or \
             --no-initial-controllers",
        )),
        (FormatVoters::Static, Some(_)) => Ok(()),
        (_, Some(_)) => Err(FormatError::Options(
            "controller.quorum.voters is set, so the voters cannot be kept in the metadata log; \
             remove it, or format without --standalone and the like",
        )),
        (FormatVoters::Initial(set), None) if !set.ids().contains(&config.node_id) => Err(
            FormatError::Options("--initial-controllers does not name this node"),
        ),
        (_, None) => Ok(()),
    }
}

/// The levels to finalise, metadata.version first, the others by name; those at zero left out.
fn feature_levels(options: &FormatOptions) -> Result<Vec<(String, i16)>, FormatError> {
    let asked = |name: &str| {
        options
            .features
            .iter()
            .rev()
            .find(|(it, _)| it == name)
            .map(|(_, level)| *level)
    };
    for (name, level) in &options.features {
        let range = supported_features().iter().find(|it| it.name == name);
        let fits = range.is_some_and(|it| (it.min..=it.max).contains(level));
        let voters_fit =
            name != KRAFT_VERSION || (*level == 0) == (options.voters == FormatVoters::Static);
        if !fits || !voters_fit {
            return Err(FormatError::Feature {
                name: name.clone(),
                level: *level,
            });
        }
    }
    let metadata_version = asked(METADATA_VERSION).unwrap_or_else(|| {
        let own = supported_features()
            .iter()
            .find(|it| it.name == METADATA_VERSION);
        own.map_or(0, |it| it.formatted)
    });
    let mut levels = Vec::new();
    for feature in supported_features() {
        let by_default = match feature.name {
            ELIGIBLE_LEADER_REPLICAS_VERSION if metadata_version < ELR_DEFAULT_SINCE => 0,
            _ => feature.formatted,
        };
        let level = asked(feature.name).unwrap_or(by_default);
        let needs_elr = feature.name == ELIGIBLE_LEADER_REPLICAS_VERSION && level > 0;
        if needs_elr && metadata_version < ELR_SINCE {
            return Err(FormatError::Feature {
                name: feature.name.to_owned(),
                level,
            });
        }
        if level > 0 && feature.name != KRAFT_VERSION {
            levels.push((feature.name.to_owned(), level));
        }
    }
    levels.sort_by(|(a, _), (b, _)| (a != METADATA_VERSION, a).cmp(&(b != METADATA_VERSION, b)));
    Ok(levels)
}

/// Whose directory it is, if it is formatted. A directory that is neither formatted nor empty is
/// somebody else's.
fn identity<D: Disk>(config: &NodeConfig, dir: &D) -> Result<Option<MetaProperties>, FormatError> {
    let disk_error = |error| FormatError::Disk {
        dir: name(dir),
        error,
    };
    let bytes = dir
        .read(Path::new(meta_properties::FILE))
        .map_err(disk_error)?;
    let Some(bytes) = bytes else {
        let entries = dir.list(Path::new("")).map_err(disk_error)?;
        let foreign = entries
            .into_iter()
            .find(|entry| !is_harmless(dir, &entry.name));
        return match foreign {
            Some(entry) => Err(FormatError::Foreign {
                dir: name(dir),
                name: entry.name,
            }),
            None => Ok(None),
        };
    };
    let found = MetaProperties::decode(&bytes).map_err(|why| FormatError::Identity {
        dir: name(dir),
        why: why.to_string(),
    })?;
    if found.node_id != config.node_id {
        return Err(FormatError::OtherNode {
            dir: name(dir),
            found: found.node_id,
            expected: config.node_id,
        });
    }
    Ok(Some(found))
}

/// Whether something may be in a directory that is to be formatted: what the system or an earlier
/// format that was cut short left.
fn is_harmless<D: Disk>(dir: &D, entry: &str) -> bool {
    match entry {
        "lost+found" | ".lock" => true,
        METADATA_DIR => dir.list(Path::new(METADATA_DIR)).is_ok_and(|inside| {
            let file = Path::new(BOOTSTRAP_SNAPSHOT)
                .file_name()
                .and_then(|it| it.to_str());
            inside
                .iter()
                .all(|it| file.is_some_and(|file| it.name.starts_with(file)))
        }),
        other => other.starts_with(meta_properties::FILE),
    }
}

fn cluster_id<D: Disk>(
    options: &FormatOptions,
    dirs: &[D],
    found: &[Option<MetaProperties>],
    random: &mut Random,
) -> Result<String, FormatError> {
    let mut expected = options.cluster_id.clone();
    if let Some(text) = &expected {
        let uuid: Result<Uuid, _> = text.parse();
        if uuid.is_err() {
            return Err(FormatError::ClusterId(text.clone()));
        }
    }
    for (dir, found) in dirs.iter().zip(found) {
        let Some(found) = found else { continue };
        let expected = expected.get_or_insert_with(|| found.cluster_id.clone());
        if *expected != found.cluster_id {
            return Err(FormatError::OtherCluster {
                dir: name(dir),
                found: found.cluster_id.clone(),
                expected: expected.clone(),
            });
        }
    }
    Ok(expected.unwrap_or_else(|| random.uuid().to_string()))
}

fn directory_id(
    config: &NodeConfig,
    options: &FormatOptions,
    is_metadata_dir: bool,
    random: &mut Random,
) -> DirectoryId {
    let picked = DirectoryId::new(random.uuid());
    match &options.voters {
        FormatVoters::Initial(set) if is_metadata_dir => {
            let own = set.voters.iter().find(|it| it.key.id == config.node_id);
            own.map(|it| it.key.directory_id)
                .filter(|id| !id.is_zero())
                .unwrap_or(picked)
        }
        _ => picked,
    }
}

fn bootstrap_snapshot(
    config: &NodeConfig,
    options: &FormatOptions,
    levels: &[(String, i16)],
    id: DirectoryId,
    now: Now,
) -> Vec<u8> {
    let dynamic = options.voters != FormatVoters::Static;
    let voters = match &options.voters {
        FormatVoters::Standalone => Some(voters_record(
            config.node_id,
            id,
            &controller_endpoints(config),
        )),
        FormatVoters::Initial(set) => Some(record_of(set, config.node_id, id)),
        FormatVoters::None | FormatVoters::Static => None,
    };
    let control = SnapshotControl {
        last_contained_timestamp: now.wall,
        kraft_version: dynamic.then_some(1),
        voters,
    };
    let records = levels.iter().map(|(name, level)| {
        MetadataRecord::from(FeatureLevelRecord {
            name: name.clone(),
            feature_level: *level,
        })
    });
    write_snapshot(&control, LeaderEpoch::ZERO, now.wall, 0, records)
        .expect("a handful of small records")
}

/// The addresses of this node's controller listeners.
pub(crate) fn controller_endpoints(config: &NodeConfig) -> Vec<BrokerEndpoint> {
    endpoints(config, ListenerKind::Controller)
}

/// The announced addresses of this node's listeners of one kind.
pub(crate) fn endpoints(config: &NodeConfig, kind: ListenerKind) -> Vec<BrokerEndpoint> {
    let ours = config.advertised.iter().filter(|it| it.kind == kind);
    ours.map(|it| BrokerEndpoint {
        name: it.name.clone(),
        host: it.host.clone(),
        port: it.port,
        security_protocol: it.protocol.to_wire(),
    })
    .collect()
}

fn record_of(set: &VoterSet, own: NodeId, id: DirectoryId) -> VotersRecord {
    let voters = set.voters.iter().map(|voter| wire::Voter {
        voter_id: voter.key.id,
        voter_directory_id: if voter.key.id == own {
            id.uuid()
        } else {
            voter.key.directory_id.uuid()
        },
        endpoints: voter
            .endpoints
            .iter()
            .map(|it| wire::Endpoint {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port,
            })
            .collect(),
        kraft_version_feature: wire::KRaftVersionFeature {
            min_supported_version: 0,
            max_supported_version: 1,
        },
    });
    VotersRecord {
        version: 0,
        voters: voters.collect(),
    }
}

#[cfg(test)]
mod tests {
    use highwater_disk::MemDisk;
    use highwater_metadata::config::{BrokerConfig, parse_properties};
    use highwater_metadata::read_snapshot;
    use highwater_types::WallMs;

    use super::*;

    const CLUSTER: &str = "sFZgKj3kQfiXtPP7KgFf4w";

    fn config(extra: &str) -> NodeConfig {
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\nlog.dirs=a,b\n\
             listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:20193\n\
             listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.listener.names=CONTROLLER\n{extra}"
        );
        let properties = parse_properties(&text).expect("well formed");
        NodeConfig::new(BrokerConfig::new(&properties).expect("values").0).expect("a node")
    }

    fn options() -> FormatOptions {
        FormatOptions {
            cluster_id: Some(CLUSTER.to_owned()),
            voters: FormatVoters::Standalone,
            ignore_formatted: false,
            features: Vec::new(),
        }
    }

    fn disks() -> [MemDisk; 2] {
        [MemDisk::new("a"), MemDisk::new("b")]
    }

    fn now() -> Now {
        Now {
            wall: WallMs::new(1_796_022_163_430),
            ..Now::default()
        }
    }

    fn run(
        config: &NodeConfig,
        dirs: &[MemDisk],
        options: &FormatOptions,
    ) -> Result<Formatted, FormatError> {
        format(config, dirs, options, now(), [7; 32], &Blocking::enter())
    }

    #[test]
    fn a_formatted_directory_has_what_kafkas_has() {
        let dirs = disks();
        let done = run(&config(""), &dirs, &options()).expect("formatted");
        assert_eq!(done.cluster_id, CLUSTER);
        let [(first, true), (second, true)] = done.dirs.as_slice() else {
            panic!("{done:?}")
        };
        assert_ne!(first, second);
        let fixture = highwater_fixtures::kafka_data("one-node-formatted");
        let kafkas = fixture
            .get(&Path::new("data").join(BOOTSTRAP_SNAPSHOT))
            .expect("there");
        let ours = dirs[0]
            .read(Path::new(BOOTSTRAP_SNAPSHOT))
            .expect("readable")
            .expect("there");
        let records = |bytes: &[u8]| {
            let mut records = Vec::new();
            let control = read_snapshot(bytes, |record| {
                records.push(record.to_json(record.usual_version()).to_string());
                Ok(())
            });
            (control.expect("whole"), records)
        };
        let (our_control, our_records) = records(&ours);
        let (kafkas_control, kafkas_records) = records(kafkas);
        assert_eq!(our_control.kraft_version, kafkas_control.kraft_version);
        let mut voters = our_control.voters.expect("standalone");
        for voter in &mut voters.voters {
            assert_eq!(voter.voter_directory_id, first.uuid());
            voter.voter_directory_id = "UTARtl2PRbOhjfLstsytsQ".parse().expect("an id");
        }
        assert_eq!(Some(voters), kafkas_control.voters);
        // Features that are not built yet are left at zero; the rest is in Kafka's order.
        let expected: Vec<_> = kafkas_records
            .into_iter()
            .filter(|it| it.contains("metadata.version") || it.contains("eligible"))
            .collect();
        assert_eq!(our_records, expected);
        let meta = dirs[1]
            .read(Path::new("meta.properties"))
            .expect("readable")
            .expect("there");
        let meta = String::from_utf8(meta).expect("text");
        assert!(meta.contains("node.id=1\n") && meta.contains(&format!("directory.id={second}")));
        assert!(dirs[1].list(Path::new(METADATA_DIR)).is_err());
    }

    #[test]
    fn c_58_another_cluster_or_spelling_is_refused_in_words() {
        let dirs = disks();
        run(&config(""), &dirs, &options()).expect("formatted");
        let again = |id: &str| FormatOptions {
            cluster_id: Some(id.to_owned()),
            ignore_formatted: true,
            ..options()
        };
        // The last character has bits that belong to no byte.
        let stray = run(&config(""), &dirs, &again("sFZgKj3kQfiXtPP7KgFf4x"));
        assert_eq!(
            stray,
            Err(FormatError::ClusterId("sFZgKj3kQfiXtPP7KgFf4x".to_owned()))
        );
        let other = run(&config(""), &dirs, &again("NA2Ru8BiRSeksP7Zb7oYlg"));
        let text = other.expect_err("refused").to_string();
        for part in [CLUSTER, "NA2Ru8BiRSeksP7Zb7oYlg", "log directory a"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn nothing_that_exists_is_overwritten() {
        let dirs = disks();
        let first = run(&config(""), &dirs, &options()).expect("formatted");
        let before = [dirs[0].files(), dirs[1].files()];
        assert!(matches!(
            run(&config(""), &dirs, &options()),
            Err(FormatError::AlreadyFormatted { .. })
        ));
        let ignore = FormatOptions {
            ignore_formatted: true,
            cluster_id: None,
            ..options()
        };
        let kept = run(&config(""), &dirs, &ignore).expect("kept");
        assert_eq!(kept.cluster_id, CLUSTER);
        let ids: Vec<_> = first.dirs.iter().map(|(id, _)| (*id, false)).collect();
        assert_eq!(kept.dirs, ids);
        assert!([dirs[0].files(), dirs[1].files()] == before);
        let other_node = config("node.id=2\n");
        assert!(matches!(
            run(&other_node, &dirs, &ignore),
            Err(FormatError::OtherNode { .. })
        ));
        let foreign = MemDisk::new("c");
        foreign.create_dir(Path::new("photos")).expect("made");
        let text = run(&config(""), &[foreign], &options())
            .expect_err("refused")
            .to_string();
        assert!(text.contains("photos"), "{text}");
    }

    #[test]
    fn a_new_directory_joins_those_that_are_formatted() {
        let dirs = disks();
        let one = config("log.dirs=a\n");
        run(&one, &dirs[..1], &options()).expect("formatted");
        let both = FormatOptions {
            ignore_formatted: true,
            cluster_id: None,
            ..options()
        };
        let done = run(&config(""), &dirs, &both).expect("formatted");
        assert_eq!(
            done.dirs.iter().map(|it| it.1).collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(done.cluster_id, CLUSTER);
    }

    #[test]
    fn sc_16_a_format_that_was_cut_short_can_be_done_again() {
        for op in 0..200 {
            let disk = MemDisk::new("a");
            let one = config("log.dirs=a\n");
            disk.power_off_at_op(op, Some(op));
            let cut = run(&one, std::slice::from_ref(&disk), &options());
            disk.power_on();
            let again = FormatOptions {
                ignore_formatted: true,
                ..options()
            };
            let disk = disk.session();
            run(&one, std::slice::from_ref(&disk), &again)
                .unwrap_or_else(|why| panic!("after op {op}: {why}"));
            if cut.is_ok() {
                return;
            }
        }
        panic!("format never ended");
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        let dirs = disks();
        let static_config = config("controller.quorum.voters=1@127.0.0.1:20193\n");
        assert!(matches!(
            run(&static_config, &dirs, &options()),
            Err(FormatError::Options(_))
        ));
        let no_voters = FormatOptions {
            voters: FormatVoters::Static,
            ..options()
        };
        assert!(matches!(
            run(&config(""), &dirs, &no_voters),
            Err(FormatError::Options(_))
        ));
        for (name, level) in [("metadata.version", 34), ("group.version", 2), ("x", 1)] {
            let features = vec![(name.to_owned(), level)];
            let asked = FormatOptions {
                features,
                ..options()
            };
            assert!(matches!(
                run(&config(""), &dirs, &asked),
                Err(FormatError::Feature { .. })
            ));
        }
        assert!(run(&static_config, &dirs, &no_voters).is_ok());
    }

    #[test]
    fn a_broker_only_gets_an_identity_and_nothing_else() {
        let text = "process.roles=broker\nnode.id=2\nlog.dirs=a\n\
            listeners=PLAINTEXT://127.0.0.1:9092\ncontroller.listener.names=CONTROLLER\n\
            controller.quorum.bootstrap.servers=127.0.0.1:9093\n";
        let properties = parse_properties(text).expect("well formed");
        let config = NodeConfig::new(BrokerConfig::new(&properties).expect("values").0);
        let config = config.expect("a broker");
        let dirs = disks();
        let refused = run(&config, &dirs[..1], &options());
        assert!(matches!(refused, Err(FormatError::Options(_))));
        let no_voters = FormatOptions {
            voters: FormatVoters::None,
            ..options()
        };
        run(&config, &dirs[..1], &no_voters).expect("formatted");
        let files: Vec<_> = dirs[0].files().into_keys().collect();
        assert_eq!(files, [Path::new("meta.properties")]);
    }

    #[test]
    fn an_older_release_has_no_eligible_leader_replicas() {
        let features = vec![("metadata.version".to_owned(), 21)];
        let levels = feature_levels(&FormatOptions {
            features,
            ..options()
        })
        .expect("fits");
        assert_eq!(levels, [("metadata.version".to_owned(), 21)]);
    }
}
