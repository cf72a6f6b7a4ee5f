//! Several nodes in one process: node 1 is broker and controller, the others are brokers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use highwater_disk::FileDisk;
use highwater_metadata::config::{ConfigNotice, Property, parse_properties};
use highwater_node::{FormatVoters, NodeConfig};
use highwater_protocol::ListenerKind;
use highwater_server::{BoundNode, run_all};

use super::{first_format, format_for, log_to_standard_error, say_ready};
use crate::args::StartArgs;
use crate::node_settings::{self, DirState, put};
use crate::output::Usage;

/// Nodes that one process can run: more would only take memory from each other.
const BROKERS_MAX: u32 = 16;
/// Replicas of a partition where nobody says.
const REPLICATION_FACTOR: u32 = 3;
/// What each node has for itself.
const OWN_KEYS: &[&str] = &[
    "process.roles",
    "node.id",
    "broker.id",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
];

/// `start --brokers N`.
pub(super) fn run(args: &StartArgs, settings: Vec<(String, String)>) -> anyhow::Result<()> {
    let brokers = args.brokers;
    if brokers > BROKERS_MAX {
        let text = format!("--brokers {brokers}: one process runs {BROKERS_MAX} at most");
        return Err(Usage(text).into());
    }
    if args.config.is_some() {
        let text = "--brokers and --config do not go together: a file is that of one node; \
                    give settings for all nodes with --set";
        return Err(Usage(text.to_owned()).into());
    }
    if let Some((key, _)) = settings.iter().find(|(key, _)| OWN_KEYS.contains(&&**key)) {
        let text = format!("--set {key}: with --brokers each node has its own");
        return Err(Usage(text).into());
    }
    let data = args
        .data
        .clone()
        .unwrap_or_else(|| PathBuf::from(node_settings::DEFAULT_DATA));
    refuse_other_data(&data)?;
    let shared = shared(settings, brokers);
    let listen = Listen::parse(args.listen.as_deref())?;
    let nodes = bind(brokers, &shared, &listen, &data)?;
    let ids: Vec<Option<String>> = nodes
        .iter()
        .map(|node| cluster_id(node.bound.config()))
        .collect::<anyhow::Result<_>>()?;
    refuse_other_cluster(&nodes, &ids)?;
    log_to_standard_error();
    for notice in nodes.first().map(|it| &it.notices).into_iter().flatten() {
        tracing::warn!("{notice}");
    }
    run_all(formatted(nodes)?, say_ready)?;
    Ok(())
}

/// The settings of every node.
fn shared(settings: Vec<(String, String)>, brokers: u32) -> Vec<Property> {
    let factor = brokers.min(REPLICATION_FACTOR).to_string();
    let mut shared = Vec::new();
    for key in [
        "default.replication.factor",
        "offsets.topic.replication.factor",
    ] {
        put(&mut shared, key, &factor);
    }
    for (key, value) in settings {
        put(&mut shared, &key, &value);
    }
    node_settings::quicken_groups(&mut shared);
    shared
}

/// One node, before it starts.
struct Prepared {
    bound: BoundNode,
    notices: Vec<ConfigNotice>,
}

/// Takes the ports of all nodes: the first one's controller has one of its own, which the others
/// are told.
fn bind(
    brokers: u32,
    shared: &[Property],
    listen: &Listen,
    data: &Path,
) -> anyhow::Result<Vec<Prepared>> {
    let mut nodes: Vec<Prepared> = Vec::new();
    for id in 1..=brokers {
        let mut own = shared.to_vec();
        put(&mut own, "node.id", &id.to_string());
        let dir = data.join(format!("broker-{id}"));
        put(&mut own, "log.dirs", &node_settings::path_text(&dir)?);
        put(&mut own, "controller.listener.names", "CONTROLLER");
        let client = format!("PLAINTEXT://{}", listen.of(id)?);
        match nodes.first() {
            None => {
                put(&mut own, "process.roles", "broker,controller");
                let both = format!("{client},{}", node_settings::OWN_CONTROLLER);
                put(&mut own, "listeners", &both);
            }
            Some(first) => {
                put(&mut own, "process.roles", "broker");
                put(&mut own, "listeners", &client);
                let controller = controller_address(first.bound.config())?;
                put(&mut own, "controller.quorum.bootstrap.servers", &controller);
            }
        }
        let (config, notices) = node_settings::node_config(&own)?;
        node_settings::refuse_foreign(&config)?;
        let bound = BoundNode::bind_one_of(config, usize::try_from(brokers)?)?;
        nodes.push(Prepared { bound, notices });
    }
    Ok(nodes)
}

fn controller_address(config: &NodeConfig) -> anyhow::Result<String> {
    let mut controllers = config.advertised.iter();
    let found = controllers.find(|it| it.kind == ListenerKind::Controller);
    let found = found.context("node 1 has a controller listener")?;
    Ok(format!("{}:{}", found.host, found.port))
}

/// Where the nodes listen: on one port each, one after the other.
struct Listen {
    host: String,
    port: u16,
}

impl Listen {
    fn parse(text: Option<&str>) -> anyhow::Result<Self> {
        let text = text.unwrap_or(node_settings::DEFAULT_LISTEN);
        node_settings::refuse_no_address(text)?;
        let (host, port) = text.rsplit_once(':').context("an address was checked")?;
        Ok(Self {
            host: host.to_owned(),
            port: port.parse()?,
        })
    }

    /// The address of one node. Port 0 picks a free one for each.
    fn of(&self, id: u32) -> anyhow::Result<String> {
        let port = match self.port {
            0 => Some(0),
            first => u16::try_from(id - 1)
                .ok()
                .and_then(|it| first.checked_add(it)),
        };
        let Some(port) = port else {
            let first = self.port;
            let text = format!("--listen: there are too few ports after {first} for all brokers");
            return Err(Usage(text).into());
        };
        Ok(format!("{}:{port}", self.host))
    }
}

/// Refuses a directory that is that of one node, or nobody's.
fn refuse_other_data(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    let entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why).with_context(|| format!("cannot use {shown}")),
    };
    if data.join("meta.properties").exists() {
        bail!(
            "{shown} is the data of a single node; start it without --brokers, or choose another \
             directory with --data"
        );
    }
    for entry in entries {
        let name = entry
            .with_context(|| format!("cannot list the directory {shown}"))?
            .file_name();
        let name = name.to_string_lossy();
        let is_known =
            name.starts_with("broker-") || node_settings::HARMLESS_NAMES.contains(&&*name);
        if !is_known {
            bail!(
                "{shown} is not empty and holds something else than the data of brokers ({name}); \
                 nothing was written: choose an empty or new directory with --data"
            );
        }
    }
    Ok(())
}

/// The cluster that a node was formatted for, if it was.
fn cluster_id(config: &NodeConfig) -> anyhow::Result<Option<String>> {
    for dir in &config.log_dirs {
        if node_settings::dir_state(dir)? == DirState::Formatted {
            let path = Path::new(dir).join("meta.properties");
            let shown = path.display();
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
            let properties = parse_properties(&text).with_context(|| shown.to_string())?;
            return Ok(node_settings::value(&properties, "cluster.id"));
        }
    }
    Ok(None)
}

/// Refuses brokers of another cluster than the controller's, before anything is written.
fn refuse_other_cluster(nodes: &[Prepared], ids: &[Option<String>]) -> anyhow::Result<()> {
    let controller = ids.first().cloned().flatten();
    for (node, id) in nodes.iter().zip(ids) {
        let Some(id) = id else { continue };
        let dir = node.bound.config().log_dirs.join(",");
        match &controller {
            Some(expected) if expected == id => {}
            Some(expected) => bail!(
                "{dir} belongs to cluster {id}, but node 1 to {expected}; choose another \
                 directory with --data, or move {dir} away"
            ),
            None => bail!(
                "{dir} belongs to cluster {id}, but node 1, which held its metadata, is missing \
                 or empty; restore it, or choose another directory with --data"
            ),
        }
    }
    Ok(())
}

/// Formats what is new: the first node for a cluster of its own, the others for that one.
fn formatted(nodes: Vec<Prepared>) -> anyhow::Result<Vec<(BoundNode, Vec<FileDisk>)>> {
    let mut cluster_id: Option<String> = None;
    let mut ready = Vec::new();
    for node in nodes {
        let config = node.bound.config();
        let dirs = node_settings::open_dirs(config)?;
        match &cluster_id {
            None => cluster_id = Some(first_format(config, &dirs)?),
            Some(id) => {
                format_for(config, &dirs, Some(id.clone()), FormatVoters::None)?;
            }
        }
        ready.push((node.bound, dirs));
    }
    Ok(ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_broker_has_the_next_port_or_a_free_one() {
        let listen = |text| Listen::parse(Some(text)).expect("an address");
        let of = |listen: &Listen, id| listen.of(id).expect("a port");
        let usual = Listen::parse(None).expect("the default");
        assert_eq!(of(&usual, 1), "127.0.0.1:9092");
        assert_eq!(of(&usual, 3), "127.0.0.1:9094");
        assert_eq!(of(&listen("[::1]:0"), 3), "[::1]:0");
        assert!(listen("h:65535").of(2).is_err());
        assert!(Listen::parse(Some("9092")).is_err());
    }

    #[test]
    fn what_nobody_says_fits_the_number_of_brokers() {
        let factor = |brokers, set: &[(&str, &str)]| {
            let set = set
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()));
            let shared = shared(set.collect(), brokers);
            node_settings::value(&shared, "default.replication.factor")
        };
        assert_eq!(factor(2, &[]).as_deref(), Some("2"));
        assert_eq!(factor(5, &[]).as_deref(), Some("3"));
        let set = [("default.replication.factor", "1")];
        assert_eq!(factor(5, &set).as_deref(), Some("1"));
    }

    #[test]
    fn a_directory_of_something_else_is_refused() {
        let root = tempfile::tempdir().expect("temporary directory");
        let data = root.path().join("data");
        refuse_other_data(&data).expect("missing");
        fs::create_dir_all(data.join("broker-1")).expect("directory");
        refuse_other_data(&data).expect("ours");
        fs::write(data.join("notes"), "mine").expect("file");
        refuse_other_data(&data).expect_err("foreign");
        fs::remove_file(data.join("notes")).expect("removed");
        fs::write(data.join("meta.properties"), "version=1").expect("file");
        let single = refuse_other_data(&data).expect_err("a single node's");
        assert!(single.to_string().contains("without --brokers"));
    }
}
