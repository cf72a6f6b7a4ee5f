//! From a `server.properties` and a command line to the config of a node.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use highwater_disk::FileDisk;
use highwater_metadata::config::{BrokerConfig, ConfigNotice, Property, parse_properties};
use highwater_node::NodeConfig;

use crate::output::Usage;

/// Where data goes when nobody says.
const DEFAULT_DATA: &str = "./highwater-data";
/// Where clients connect when nobody says.
const DEFAULT_LISTEN: &str = "127.0.0.1:9092";
/// Names in a log directory that are nobody's data.
const HARMLESS_NAMES: &[&str] = &[".lock", "lost+found"];

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
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
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

/// Fills in what a node of its own needs and nobody said.
pub(crate) fn complete(
    properties: &mut Vec<Property>,
    data: Option<&Path>,
    listen: Option<&str>,
) -> anyhow::Result<()> {
    let put = |properties: &mut Vec<Property>, key: &str, value: &str| {
        properties.retain(|it| it.key != key);
        properties.push(Property {
            line: 0,
            key: key.to_owned(),
            value: value.to_owned(),
        });
    };
    if let Some(data) = data {
        put(properties, "log.dirs", &path_text(data)?);
    } else if value(properties, "log.dirs")
        .or_else(|| value(properties, "log.dir"))
        .is_none()
    {
        put(properties, "log.dirs", DEFAULT_DATA);
    }
    if value(properties, "process.roles").is_none() {
        put(properties, "process.roles", "broker,controller");
    }
    if value(properties, "node.id")
        .or_else(|| value(properties, "broker.id"))
        .is_none()
    {
        let id = known_node_id(properties).unwrap_or_else(|| "1".to_owned());
        put(properties, "node.id", &id);
    }
    if value(properties, "controller.listener.names").is_none() {
        put(properties, "controller.listener.names", "CONTROLLER");
    }
    let controllers = value(properties, "controller.listener.names").unwrap_or_default();
    let is_controller = |entry: &str| {
        let name = entry.split("://").next().unwrap_or_default();
        controllers
            .split(',')
            .any(|it| it.trim().eq_ignore_ascii_case(name))
    };
    let own = value(properties, "listeners");
    if listen.is_none() && own.is_some() {
        return Ok(());
    }
    let listen = listen.unwrap_or(DEFAULT_LISTEN);
    let port = listen
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse::<u16>().ok());
    if port.is_none() {
        return Err(Usage(format!("--listen {listen}: HOST:PORT is expected")).into());
    }
    let mut listeners = vec![format!("PLAINTEXT://{listen}")];
    let kept: Vec<String> = own
        .iter()
        .flat_map(|own| own.split(','))
        .map(|entry| entry.trim().to_owned())
        .filter(|entry| is_controller(entry))
        .collect();
    if kept.is_empty() {
        // Nobody else needs this listener yet: it gets a port of its own, on this machine only.
        let name = controllers.split(',').next().unwrap_or("CONTROLLER").trim();
        listeners.push(format!("{name}://127.0.0.1:0"));
    }
    listeners.extend(kept);
    put(properties, "listeners", &listeners.join(","));
    if own.is_some() {
        // What the file told clients was about its own listeners.
        properties.retain(|it| it.key != "advertised.listeners" || it.line == 0);
    }
    Ok(())
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
        Err(why) => return Err(why).with_context(|| format!("cannot list the directory {dir}")),
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

fn value(properties: &[Property], key: &str) -> Option<String> {
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

fn path_text(path: &Path) -> anyhow::Result<String> {
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
