use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{anyhow, bail};
use highwater_disk::{Blocking, Disk, FileDisk};
use highwater_metadata::config::Property;
use highwater_node::{FormatOptions, FormatVoters, NodeConfig, format};
use highwater_server::{BoundNode, Ready, now, random_seed};
use tracing_subscriber::EnvFilter;

use crate::args::StartArgs;
use crate::node_settings::{self, DirState};

/// `start`: runs a node until SIGTERM or Ctrl-C.
pub(crate) fn run(args: StartArgs) -> anyhow::Result<()> {
    if args.brokers != 1 {
        bail!(
            "--brokers {}: this version runs one broker in a process; leave the option out, and \
             start one process per broker once clusters are there",
            args.brokers
        );
    }
    let mut properties = match &args.config {
        Some(path) => node_settings::read_file(path)?,
        None => Vec::new(),
    };
    for pair in &args.settings {
        let (key, value) = node_settings::parse_pair(pair, "--set")?;
        properties.retain(|it| it.key != key);
        properties.push(Property {
            line: 0,
            key,
            value,
        });
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
    let bound = BoundNode::bind(config)?;
    log_to_standard_error();
    for notice in notices {
        tracing::warn!("{notice}");
    }
    let dirs = node_settings::open_dirs(bound.config())?;
    if states.contains(&DirState::Empty) {
        first_format(bound.config(), &dirs)?;
    }
    bound.run(dirs, say_ready)?;
    Ok(())
}

/// Formats what is empty, for a node that is the only voter or one of static voters.
fn first_format(config: &NodeConfig, dirs: &[FileDisk]) -> anyhow::Result<()> {
    let b = Blocking::enter();
    // Two first starts at once: the second finds it formatted, or the lock taken.
    let locks = dirs.iter().map(lock).collect::<anyhow::Result<Vec<_>>>()?;
    let voters = match config.static_voters {
        Some(_) => FormatVoters::Static,
        None => FormatVoters::Standalone,
    };
    let options = FormatOptions {
        cluster_id: None,
        voters,
        ignore_formatted: true,
        features: Vec::new(),
    };
    let formatted = format(config, dirs, &options, now(), random_seed()?, &b)?;
    drop(locks);
    tracing::info!(
        "formatted {} for cluster {}",
        config.log_dirs.join(","),
        formatted.cluster_id
    );
    Ok(())
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

fn say_ready(ready: &Ready) {
    let mut out = io::stdout().lock();
    // Whoever started the node may have closed its standard output: it serves all the same.
    let _nobody_reads = writeln!(
        out,
        "highwater ready bootstrap={} cluster-id={} data={}",
        ready.bootstrap.join(","),
        ready.cluster_id,
        ready.data.join(",")
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
