//! From a `server.properties` and a command line to the config of a node.

use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use highwater_disk::FileDisk;
use highwater_metadata::config::{BrokerConfig, ConfigNotice, Property, parse_properties};
use highwater_node::NodeConfig;

use crate::output::Usage;

/// Where data goes when nobody says.
pub(crate) const DEFAULT_DATA: &str = "./highwater-data";
/// Where clients connect when nobody says.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:9092";
/// For the controller of a node of its own: a port that nobody else knows, on this machine only.
pub(crate) const OWN_CONTROLLER: &str = "CONTROLLER://127.0.0.1:0";
/// Names in a log directory that are nobody's data.
pub(crate) const HARMLESS_NAMES: &[&str] = &[".lock", "lost+found"];

/// What a log directory holds before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirState {
    /// It is not there, or empty.
    Empty,
    /// It has a meta.properties.
    Formatted,
    /// It has files, but no meta.properties.
    Foreign,
}

/// The properties of a file.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<Vec<Property>> {
    let text = fs::read_to_string(path).with_context(|| {
        let path = path.display();
        format!("cannot read the configuration {path} (--config names a readable text file)")
    })?;
    parse_properties(&text).with_context(|| path.display().to_string())
}

/// One `KEY=VALUE` of the command line.
pub(crate) fn parse_pair(text: &str, option: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(Usage(format!("{option} {text}: KEY=VALUE is expected")).into()),
    }
}

/// Without a configuration a node is somebody's laptop or test: a first consumer starts at once
/// instead of after three seconds in which others might join its group.
pub(crate) fn quicken_groups(properties: &mut Vec<Property>) {
    let key = "group.initial.rebalance.delay.ms";
    if value(properties, key).is_none() {
        put(properties, key, "0");
    }
}

/// Fills in what a node of its own needs and nobody said.
pub(crate) fn complete(
    properties: &mut Vec<Property>,
    data: Option<&Path>,
    listen: Option<&str>,
) -> anyhow::Result<()> {
    let lacks = |properties: &[Property], keys: &[&str]| {
        keys.iter().all(|key| value(properties, key).is_none())
    };
    if let Some(data) = data {
        put(properties, "log.dirs", &path_text(data)?);
    } else if lacks(properties, &["log.dirs", "log.dir"]) {
        put(properties, "log.dirs", DEFAULT_DATA);
    }
    if lacks(properties, &["process.roles"]) {
        put(properties, "process.roles", "broker,controller");
    }
    if lacks(properties, &["node.id", "broker.id"]) {
        let id = known_node_id(properties).unwrap_or_else(|| "1".to_owned());
        put(properties, "node.id", &id);
    }
    let names_controllers = !lacks(properties, &["controller.listener.names"]);
    if !names_controllers {
        put(properties, "controller.listener.names", "CONTROLLER");
    }
    let roles = value(properties, "process.roles").unwrap_or_default();
    if !roles.split(',').any(|role| role.trim() == "broker") {
        // Nobody but brokers and controllers connects to it.
        return listen.map_or(Ok(()), |it| complete_controller_listener(properties, it));
    }
    match listen {
        Some(listen) => complete_listeners(properties, listen),
        None if lacks(properties, &["listeners"]) => complete_listeners(properties, DEFAULT_LISTEN),
        None if !names_controllers => {
            add_controller_listener(properties);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Makes `listen` the listener of a controller that is no broker.
fn complete_controller_listener(
    properties: &mut Vec<Property>,
    listen: &str,
) -> anyhow::Result<()> {
    refuse_no_address(listen)?;
    let names = value(properties, "controller.listener.names").unwrap_or_default();
    let name = names.split(',').next().unwrap_or_default().trim();
    put(properties, "listeners", &format!("{name}://{listen}"));
    properties.retain(|it| it.key != "advertised.listeners" || it.line == 0);
    Ok(())
}

/// Refuses what is no address to listen on.
pub(crate) fn refuse_no_address(listen: &str) -> anyhow::Result<()> {
    if is_host_and_port(listen) {
        return Ok(());
    }
    let expected = "HOST:PORT is expected, such as 127.0.0.1:9092 or [::1]:9092";
    Err(Usage(format!("--listen {listen}: {expected}")).into())
}

/// Where the file tells of clients only: a node that is its own controller needs a listener for
/// that, which nobody else uses.
fn add_controller_listener(properties: &mut Vec<Property>) {
    let roles = value(properties, "process.roles").unwrap_or_default();
    let listeners = value(properties, "listeners").unwrap_or_default();
    let mut names = listeners.split(',').map(|entry| name_of(entry.trim()));
    let has_one = names.any(|name| name.eq_ignore_ascii_case("CONTROLLER"));
    let is_controller = roles.split(',').any(|role| role.trim() == "controller");
    if is_controller && !has_one {
        let both = format!("{listeners},{OWN_CONTROLLER}");
        put(properties, "listeners", &both);
    }
}

/// Makes `listen` the one listener for clients; those for controllers stay as they are.
fn complete_listeners(properties: &mut Vec<Property>, listen: &str) -> anyhow::Result<()> {
    refuse_no_address(listen)?;
    let names = value(properties, "controller.listener.names").unwrap_or_default();
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let own = value(properties, "listeners").unwrap_or_default();
    let own = own
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    let (controllers, clients): (Vec<&str>, Vec<&str>) = own.partition(|entry| {
        let name = name_of(entry);
        names.iter().any(|it| it.eq_ignore_ascii_case(name))
    });
    let between = value(properties, "inter.broker.listener.name");
    let name = between
        .as_deref()
        .or_else(|| clients.first().map(|entry| name_of(entry)));
    let mut listeners = vec![format!("{}://{listen}", name.unwrap_or("PLAINTEXT"))];
    let roles = value(properties, "process.roles").unwrap_or_default();
    let is_controller = roles.split(',').any(|role| role.trim() == "controller");
    if controllers.is_empty() && is_controller {
        // Nobody else needs this listener yet: it gets a port of its own, on this machine only.
        let name = names.first().copied().unwrap_or("CONTROLLER");
        listeners.push(OWN_CONTROLLER.replace("CONTROLLER", name));
    }
    listeners.extend(controllers.into_iter().map(str::to_owned));
    let replaces = !clients.is_empty();
    put(properties, "listeners", &listeners.join(","));
    if replaces {
        // What the file told clients was about the listeners that it named.
        properties.retain(|it| it.key != "advertised.listeners" || it.line == 0);
    }
    Ok(())
}

/// Brackets, where there are any, go around an IPv6 address; an empty host is every address.
fn is_host_and_port(listen: &str) -> bool {
    let Some((host, port)) = listen.rsplit_once(':') else {
        return false;
    };
    let bracketed = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_v6 = |host: &str| {
        let address = host
            .split_once('%')
            .map_or(host, |(address, _zone)| address);
        address.parse::<Ipv6Addr>().is_ok()
    };
    let is_host = match bracketed {
        Some(inner) => is_v6(inner),
        None if host.contains(':') => is_v6(host),
        None => !host.contains(['[', ']', '/', ',', '@', ' ']),
    };
    is_host && port.parse::<u16>().is_ok()
}

/// The name in `NAME://HOST:PORT`.
fn name_of(entry: &str) -> &str {
    entry.split("://").next().unwrap_or_default()
}

/// Sets one key, whatever it was before.
pub(crate) fn put(properties: &mut Vec<Property>, key: &str, value: &str) {
    properties.retain(|it| it.key != key);
    properties.push(Property {
        line: 0,
        key: key.to_owned(),
        value: value.to_owned(),
    });
}

/// The config of a node, and what is worth saying about its keys.
pub(crate) fn node_config(
    properties: &[Property],
) -> anyhow::Result<(NodeConfig, Vec<ConfigNotice>)> {
    let (broker, notices) = BrokerConfig::new(properties).map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("{}; correct the value and start again", texts.join("; "))
    })?;
    Ok((NodeConfig::new(broker)?, notices))
}

/// What a log directory holds.
pub(crate) fn dir_state(dir: &str) -> anyhow::Result<DirState> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(DirState::Empty),
        Err(why) => {
            return Err(why).with_context(|| {
                format!(
                    "cannot use {dir} as a log directory; make it a directory that this user may \
                     read and write, or choose another with --data or log.dirs"
                )
            });
        }
    };
    let mut state = DirState::Empty;
    for entry in entries {
        let name = entry
            .with_context(|| format!("cannot list the directory {dir}"))?
            .file_name();
        if name == "meta.properties" {
            return Ok(DirState::Formatted);
        }
        if !HARMLESS_NAMES.iter().any(|harmless| name == *harmless) {
            state = DirState::Foreign;
        }
    }
    Ok(state)
}

/// The log directories as disks, made when missing.
pub(crate) fn open_dirs(config: &NodeConfig) -> anyhow::Result<Vec<FileDisk>> {
    let open = |dir: &String| {
        FileDisk::create(dir).with_context(|| {
            format!("cannot use the log directory {dir}; choose another with --data or log.dirs")
        })
    };
    config.log_dirs.iter().map(open).collect()
}

/// Refuses directories that hold somebody else's files.
pub(crate) fn refuse_foreign(config: &NodeConfig) -> anyhow::Result<Vec<DirState>> {
    let mut states = Vec::new();
    for dir in &config.log_dirs {
        let state = dir_state(dir)?;
        if state == DirState::Foreign && Path::new(dir).join("broker-1").is_dir() {
            bail!(
                "{dir} is the data of several brokers; start them with --brokers N, or choose \
                 another directory with --data or log.dirs"
            );
        }
        if state == DirState::Foreign {
            bail!(
                "{dir} is not empty and has no meta.properties, so it is no log directory; \
                 nothing was written: choose an empty or new directory with --data or log.dirs"
            );
        }
        states.push(state);
    }
    Ok(states)
}

/// Refuses to make up for a directory that went missing: an empty one among those of a node that
/// ran before is most likely a disk that is not mounted, and its records would be lost to view.
pub(crate) fn refuse_missing(config: &NodeConfig, states: &[DirState]) -> anyhow::Result<()> {
    if !states.contains(&DirState::Formatted) {
        return Ok(());
    }
    let mut dirs = config.log_dirs.iter().zip(states).enumerate();
    let Some((at, (dir, _))) = dirs.find(|(_, (_, state))| **state == DirState::Empty) else {
        return Ok(());
    };
    let what = format!("{dir} is missing or empty, but other log directories of this node are not");
    if at == config.metadata_dir {
        bail!("{what}; it held the metadata, without which no topic is known: mount or restore it");
    }
    bail!(
        "{what}: mount or restore it, or take it out of log.dirs; a new disk is taken in with \
         highwater format --ignore-formatted, and what only the old one held is gone then"
    );
}

pub(crate) fn value(properties: &[Property], key: &str) -> Option<String> {
    let found = properties.iter().rev().find(|it| it.key == key)?;
    Some(found.value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The node id of a directory that was formatted before.
fn known_node_id(properties: &[Property]) -> Option<String> {
    let dirs = value(properties, "log.dirs").or_else(|| value(properties, "log.dir"))?;
    let first = dirs.split(',').next()?.trim().to_owned();
    let text = fs::read_to_string(PathBuf::from(first).join("meta.properties")).ok()?;
    value(&parse_properties(&text).ok()?, "node.id")
}

pub(crate) fn path_text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().filter(|text| !text.contains(','));
    let text = text.with_context(|| {
        format!(
            "--data {}: the name has a comma or is not UTF-8; choose another",
            path.display()
        )
    })?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file: &str, data: Option<&str>, listen: Option<&str>) -> NodeConfig {
        let mut properties = parse_properties(file).expect("well formed");
        complete(&mut properties, data.map(Path::new), listen).expect("fits");
        node_config(&properties).expect("a node").0
    }

    fn listeners(config: &NodeConfig) -> Vec<String> {
        config.listeners.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_said_is_one_node_on_this_machine() {
        let config = config("", None, None);
        assert_eq!(config.log_dirs, ["./highwater-data"]);
        let own = ["PLAINTEXT://127.0.0.1:9092", "CONTROLLER://127.0.0.1:0"];
        assert_eq!(listeners(&config), own);
    }

    #[test]
    fn a_file_of_listeners_for_clients_only_is_enough() {
        let ours = config("listeners=PLAINTEXT://127.0.0.1:9099\n", None, None);
        let both = ["PLAINTEXT://127.0.0.1:9099", "CONTROLLER://127.0.0.1:0"];
        assert_eq!(listeners(&ours), both);
        let file = "listeners=CONTROLLER://:9093,PLAINTEXT://127.0.0.1:9099\n";
        assert_eq!(listeners(&config(file, None, None)).len(), 2);
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file = "process.roles=broker,controller\nnode.id=7\nlog.dirs=/srv/a,/srv/b\n\
            listeners=PLAINTEXT://:9092,CTL://127.0.0.1:9093\ncontroller.listener.names=CTL\n\
            advertised.listeners=PLAINTEXT://example.org:9092\n";
        let of_file = config(file, None, None);
        assert_eq!(of_file.log_dirs, ["/srv/a", "/srv/b"]);
        assert_eq!(of_file.advertised[0].host, "example.org");
        let ours = config(file, Some("/tmp/x"), Some("127.0.0.1:0"));
        assert_eq!(ours.log_dirs, ["/tmp/x"]);
        assert_eq!(
            listeners(&ours),
            ["PLAINTEXT://127.0.0.1:0", "CTL://127.0.0.1:9093"]
        );
        assert_eq!(ours.advertised[0].host, "127.0.0.1");
    }

    #[test]
    fn a_listener_of_another_name_keeps_it() {
        let file = "listeners=CLIENT://:9092,CONTROLLER://:9093\n\
            listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
            inter.broker.listener.name=CLIENT\n";
        let ours = config(file, None, Some("127.0.0.1:0"));
        assert_eq!(
            listeners(&ours),
            ["CLIENT://127.0.0.1:0", "CONTROLLER://:9093"]
        );
    }

    #[test]
    fn what_is_no_host_and_port_is_wrong_usage() {
        for good in [
            "127.0.0.1:0",
            "[::1]:9092",
            "::1:9092",
            "[fe80::1%eth0]:9092",
            "0.0.0.0:0",
            "node-1:9092",
            ":9092",
        ] {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in [
            "",
            "9092",
            "h:",
            "h:x",
            "h:65536",
            "[::1:0",
            "[]:0",
            "[h]:0",
            "::1",
            "a:b:1",
            "PLAINTEXT://h:1",
            "a:1,b:2",
        ] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
    }

    #[test]
    fn only_empty_and_formatted_directories_are_ours() {
        let root = tempfile::tempdir().expect("temporary directory");
        let dir = root.path().join("data");
        let name = dir.display().to_string();
        assert_eq!(dir_state(&name).expect("missing"), DirState::Empty);
        fs::create_dir(&dir).expect("directory");
        fs::create_dir(dir.join("lost+found")).expect("directory");
        assert_eq!(dir_state(&name).expect("empty"), DirState::Empty);
        fs::write(dir.join("notes"), "mine").expect("file");
        assert_eq!(dir_state(&name).expect("foreign"), DirState::Foreign);
        fs::write(dir.join("meta.properties"), "version=1").expect("file");
        assert_eq!(dir_state(&name).expect("formatted"), DirState::Formatted);
    }
}
