mod cluster;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::{anyhow, bail};
use highwater_disk::{Blocking, Disk, FileDisk};
use highwater_node::{FormatOptions, FormatVoters, NodeConfig, format};
use highwater_server::{BoundNode, Ready, now, random_seed};
use tracing_subscriber::EnvFilter;

use crate::args::StartArgs;
use crate::node_settings::{self, DirState};
use crate::output::Usage;

/// `start`: runs a node, or several in one process, until SIGTERM or Ctrl-C.
pub(crate) fn run(args: StartArgs) -> anyhow::Result<()> {
    let mut settings = Vec::new();
    for pair in &args.settings {
        settings.push(node_settings::parse_pair(pair, "--set")?);
    }
    match args.brokers {
        0 => Err(Usage("--brokers 0: at least one is needed".to_owned()).into()),
        1 => run_one(&args, settings),
        _ => cluster::run(&args, settings),
    }
}

fn run_one(args: &StartArgs, settings: Vec<(String, String)>) -> anyhow::Result<()> {
    let mut properties = match &args.config {
        Some(path) => node_settings::read_file(path)?,
        None => Vec::new(),
    };
    for (key, value) in settings {
        node_settings::put(&mut properties, &key, &value);
    }
    if args.config.is_none() {
        node_settings::quicken_groups(&mut properties);
    }
    node_settings::complete(
        &mut properties,
        args.data.as_deref(),
        args.listen.as_deref(),
    )?;
    let (config, notices) = node_settings::node_config(&properties)?;
    let states = node_settings::refuse_foreign(&config)?;
    node_settings::refuse_missing(&config, &states)?;
    let is_new = states.contains(&DirState::Empty);
    if is_new {
        refuse_unformatted(&config, args.config.as_deref())?;
    }
    let bound = BoundNode::bind(config)?;
    log_to_standard_error();
    for notice in notices {
        tracing::warn!("{notice}");
    }
    let dirs = node_settings::open_dirs(bound.config())?;
    if is_new {
        first_format(bound.config(), &dirs)?;
    }
    bound.run(dirs, |ready| say_ready(std::slice::from_ref(ready)))?;
    Ok(())
}

/// A node that plays one role only is part of a cluster: which one, only its people know.
fn refuse_unformatted(config: &NodeConfig, file: Option<&Path>) -> anyhow::Result<()> {
    let (id, voters) = match (config.roles.broker, config.roles.controller) {
        (true, true) => return Ok(()),
        (true, false) => ("ID", ""),
        (false, _) if config.static_voters.is_some() => ("ID", ""),
        (false, _) => ("ID", " --standalone"),
    };
    let file = file.map_or_else(|| "FILE".to_owned(), |it| it.display().to_string());
    let hint = if config.roles.broker {
        "ID is the cluster's: `highwater cluster status` of one of its brokers, or the ready line \
         of its controller, names it"
    } else {
        "ID is the id of the cluster; `highwater format random-uuid` prints one for a new cluster"
    };
    let dirs = config.log_dirs.join(",");
    let command = format!("highwater format --config {file} --cluster-id {id}{voters}");
    bail!("{dirs} is not formatted yet: run `{command}`, and start again ({hint})");
}

/// Formats what is empty, for a node that is the only voter or one of static voters.
fn first_format(config: &NodeConfig, dirs: &[FileDisk]) -> anyhow::Result<String> {
    let voters = match config.static_voters {
        Some(_) => FormatVoters::Static,
        None => FormatVoters::Standalone,
    };
    format_for(config, dirs, None, voters)
}

/// Formats what is empty, for a cluster that is there already, or for a new one. Gives the
/// cluster's id.
fn format_for(
    config: &NodeConfig,
    dirs: &[FileDisk],
    cluster_id: Option<String>,
    voters: FormatVoters,
) -> anyhow::Result<String> {
    let b = Blocking::enter();
    // Two first starts at once: the second finds it formatted, or the lock taken.
    let locks = dirs.iter().map(lock).collect::<anyhow::Result<Vec<_>>>()?;
    let options = FormatOptions {
        cluster_id,
        voters,
        ignore_formatted: true,
        features: Vec::new(),
    };
    let formatted = format(config, dirs, &options, now(), random_seed()?, &b)?;
    drop(locks);
    if formatted.dirs.iter().any(|(_, is_new)| *is_new) {
        let dirs = config.log_dirs.join(",");
        tracing::info!("formatted {dirs} for cluster {}", formatted.cluster_id);
    }
    Ok(formatted.cluster_id)
}

fn lock(dir: &FileDisk) -> anyhow::Result<<FileDisk as Disk>::Lock> {
    dir.lock().map_err(|why| {
        let root = dir.root().display();
        if why.is_locked() {
            anyhow!("log directory {root} is in use by another process; stop that one first")
        } else {
            anyhow!(
                "cannot write to the log directory {root}: {why}; let this user write there, or \
                 choose another with --data or log.dirs"
            )
        }
    })
}

/// One line for all nodes of the process. A controller alone has no addresses for clients.
fn say_ready(nodes: &[Ready]) {
    let all = |of: fn(&Ready) -> &Vec<String>| -> String {
        let parts: Vec<&str> = nodes.iter().flat_map(of).map(String::as_str).collect();
        parts.join(",")
    };
    let bootstrap = all(|it| &it.bootstrap);
    let addresses = if bootstrap.is_empty() {
        format!("controller={}", all(|it| &it.controllers))
    } else {
        format!("bootstrap={bootstrap}")
    };
    let cluster_id = nodes.first().map_or("", |it| it.cluster_id.as_str());
    let data = all(|it| &it.data);
    let mut out = io::stdout().lock();
    // Whoever started the node may have closed its standard output: it serves all the same.
    let _nobody_reads = writeln!(
        out,
        "highwater ready {addresses} cluster-id={cluster_id} data={data}"
    )
    .and_then(|()| out.flush());
}

/// Logs go to standard error; `HIGHWATER_LOG` says how much (`debug`, `highwater_node=trace`).
fn log_to_standard_error() {
    let filter = EnvFilter::try_from_env("HIGHWATER_LOG").unwrap_or_else(|_| "info".into());
    let ansi = io::stderr().is_terminal();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(ansi)
        .with_target(false)
        // It would panic where standard error cannot be written: a full disk, a closed pipe.
        .log_internal_errors(false);
    // Only a subscriber that is set already can refuse this.
    let _already_set = subscriber.try_init();
}
