//! Nodes as runs begin with them: formatted, of one voter, on disks in memory.

use highwater_disk::MemDisk;
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_node::NodeConfig;
use highwater_types::NodeId;

use crate::world::World;

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
    if dirs == 0 {
        return Err("a node has a log directory at least".to_owned());
    }
    let names: Vec<String> = (0..dirs).map(|at| format!("node-{id}-dir-{at}")).collect();
    let mut text = format!(
        "process.roles=broker,controller\nnode.id={id}\n\
         listeners=PLAINTEXT://sim-{id}:9092,CONTROLLER://sim-{id}:9093\n\
         controller.quorum.bootstrap.servers=sim-{id}:9093\n\
         controller.listener.names=CONTROLLER\n\
         num.shards={shards}\nlog.dirs={}\n",
        names.join(",")
    );
    for (key, value) in keys {
        text.push_str(&format!("{key}={value}\n"));
    }
    let properties = parse_properties(&text).map_err(|why| why.to_string())?;
    let (broker, _) = BrokerConfig::new(&properties).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    })?;
    let config = NodeConfig::new(broker).map_err(|why| why.to_string())?;
    let config = config.with_trace();
    let disks: Vec<MemDisk> = names.into_iter().map(MemDisk::new).collect();
    world.format(id, &config, &disks);
    world.add_node(id, config, disks);
    Ok(())
}
