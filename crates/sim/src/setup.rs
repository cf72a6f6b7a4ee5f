//! Nodes as runs begin with them: formatted, of one voter, on disks in memory.

use highwater_disk::MemDisk;
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_node::{FormatVoters, NodeConfig};
use highwater_types::NodeId;

use crate::world::World;

/// The controller of a cluster whose brokers are none.
pub(crate) const CONTROLLER_APART: NodeId = NodeId::new(100);
/// Most brokers of a cluster.
const BROKERS_MAX: i32 = 9;

/// What a node of a run is.
#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    /// Its id; its host is named after it.
    pub(crate) id: NodeId,
    /// `process.roles`.
    pub(crate) roles: &'static str,
    /// The node that is the voter.
    pub(crate) controller: NodeId,
    /// Data shards.
    pub(crate) shards: u16,
    /// Log directories.
    pub(crate) dirs: usize,
    /// The rules of Kafka before leader epochs.
    pub(crate) old_rule: bool,
    /// Config keys on top.
    pub(crate) keys: Vec<(String, String)>,
}

impl NodePlan {
    /// The one node of a run without others.
    pub(crate) fn alone(id: NodeId, shards: u16, dirs: usize, keys: &[(&str, &str)]) -> Self {
        let keys = keys.iter();
        Self {
            id,
            roles: "broker,controller",
            controller: id,
            shards,
            dirs,
            old_rule: false,
            keys: keys
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    /// The nodes of a cluster: brokers 1, 2, 3.. and one voter, which is the first broker or, when
    /// `apart`, a node of its own.
    pub(crate) fn cluster(brokers: i32, apart: bool, like: &Self) -> Result<Vec<Self>, String> {
        if !(1..=BROKERS_MAX).contains(&brokers) {
            return Err(format!("a cluster has 1 to {BROKERS_MAX} brokers"));
        }
        let first = NodeId::new(1);
        let controller = if apart { CONTROLLER_APART } else { first };
        let plan = |id, roles| Self {
            id,
            roles,
            controller,
            ..like.clone()
        };
        let brokers = (1..=brokers).map(|id| match NodeId::new(id) {
            id if id == controller => plan(id, "broker,controller"),
            id => plan(id, "broker"),
        });
        let apart = apart.then(|| plan(CONTROLLER_APART, "controller"));
        Ok(apart.into_iter().chain(brokers).collect())
    }

    fn properties(&self, dirs: &[String]) -> String {
        let (id, controller) = (self.id, self.controller);
        let broker = format!("PLAINTEXT://sim-{id}:9092");
        let quorum = format!("CONTROLLER://sim-{id}:9093");
        let listeners = match self.roles {
            "broker" => broker,
            "controller" => quorum,
            _ => format!("{broker},{quorum}"),
        };
        let mut text = format!(
            "process.roles={}\nnode.id={id}\nlisteners={listeners}\n\
             controller.quorum.bootstrap.servers=sim-{controller}:9093\n\
             controller.listener.names=CONTROLLER\n\
             num.shards={}\nlog.dirs={}\n",
            self.roles,
            self.shards,
            dirs.join(",")
        );
        for (key, value) in &self.keys {
            text.push_str(&format!("{key}={value}\n"));
        }
        text
    }

    fn config(&self, dirs: &[String]) -> Result<NodeConfig, String> {
        let properties = parse_properties(&self.properties(dirs));
        let properties = properties.map_err(|why| why.to_string())?;
        let (broker, _) = BrokerConfig::new(&properties).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            problems.join("; ")
        })?;
        let config = NodeConfig::new(broker).map_err(|why| why.to_string())?;
        Ok(config.with_trace())
    }
}

/// Adds a fresh node with `shards` data shards and `dirs` log directories. `keys` are config keys
/// on top.
///
/// # Errors
/// What is wrong with the keys.
pub(crate) fn one_node(
    world: &mut World,
    id: NodeId,
    shards: u16,
    dirs: usize,
    keys: &[(&str, &str)],
) -> Result<(), String> {
    add(world, &NodePlan::alone(id, shards, dirs, keys), None)?;
    Ok(())
}

/// Adds the fresh nodes of a cluster, the voter first.
///
/// # Errors
/// What is wrong with a plan.
pub(crate) fn cluster(world: &mut World, plans: &[NodePlan]) -> Result<(), String> {
    let is_voter = |plan: &&NodePlan| plan.id == plan.controller;
    let mut cluster_id = None;
    let voters = plans.iter().filter(is_voter);
    let others = plans.iter().filter(|plan| !is_voter(plan));
    for plan in voters.chain(others) {
        cluster_id = Some(add(world, plan, cluster_id)?);
    }
    Ok(())
}

fn add(world: &mut World, plan: &NodePlan, cluster_id: Option<String>) -> Result<String, String> {
    if plan.dirs == 0 {
        return Err("a node has a log directory at least".to_owned());
    }
    let id = plan.id;
    let names: Vec<String> = (0..plan.dirs)
        .map(|at| format!("node-{id}-dir-{at}"))
        .collect();
    let mut config = plan.config(&names)?;
    config.old_rule = plan.old_rule;
    let disks: Vec<MemDisk> = names.into_iter().map(MemDisk::new).collect();
    let voters = if plan.id == plan.controller {
        FormatVoters::Standalone
    } else {
        FormatVoters::None
    };
    let cluster_id = world.format(id, &config, &disks, cluster_id, voters);
    world.add_node(id, config, disks);
    Ok(cluster_id)
}
