use std::io::Write as _;

use anyhow::{Context as _, bail};
use highwater_disk::Blocking;
use highwater_metadata::config::Property;
use highwater_node::{FormatOptions, FormatVoters, NodeConfig, VoterSet, format};
use highwater_server::{now, random_seed};
use highwater_types::{DirectoryId, Uuid};

use crate::args::{FormatArgs, FormatCommand};
use crate::node_settings;
use crate::output::{self, Usage};

/// The one release whose features this build formats.
const RELEASES: &[&str] = &["4.4", "4.4.0", "4.4-IV2"];

/// `format`: as kafka-storage does.
pub(crate) fn run(args: FormatArgs) -> anyhow::Result<()> {
    let mut out = output::stdout();
    if let Some(FormatCommand::RandomUuid) = args.command {
        writeln!(out, "{}", random_uuid()?)?;
        out.flush()?;
        return Ok(());
    }
    let (Some(path), Some(cluster_id)) = (&args.config, &args.cluster_id) else {
        return Err(Usage("format needs --config FILE and --cluster-id ID".to_owned()).into());
    };
    if !args.add_scram.is_empty() {
        bail!("--add-scram: this version has no SASL yet; leave the option out");
    }
    if let Some(release) = args
        .release_version
        .as_deref()
        .filter(|it| !RELEASES.contains(it))
    {
        bail!("--release-version {release}: this version formats 4.4-IV2 only");
    }
    let properties = node_settings::read_file(path)?;
    let config = config(properties)?;
    node_settings::refuse_foreign(&config)?;
    let options = FormatOptions {
        cluster_id: Some(cluster_id.clone()),
        voters: voters(&args, &config)?,
        ignore_formatted: args.ignore_formatted,
        features: args
            .feature
            .iter()
            .map(|it| feature(it))
            .collect::<anyhow::Result<_>>()?,
    };
    let dirs = node_settings::open_dirs(&config)?;
    let b = Blocking::enter();
    let formatted = format(&config, &dirs, &options, now(), random_seed()?, &b)?;
    for (dir, (id, is_new)) in config.log_dirs.iter().zip(&formatted.dirs) {
        let did = if *is_new {
            "Formatted"
        } else {
            "Left as it was"
        };
        writeln!(
            out,
            "{did}: {dir} (cluster {}, directory {id})",
            formatted.cluster_id
        )?;
    }
    out.flush()?;
    Ok(())
}

fn config(properties: Vec<Property>) -> anyhow::Result<NodeConfig> {
    let (config, notices) = node_settings::node_config(&properties)?;
    for notice in notices {
        output::complain(&notice.to_string());
    }
    Ok(config)
}

fn voters(args: &FormatArgs, config: &NodeConfig) -> anyhow::Result<FormatVoters> {
    let dynamic = args.standalone || args.initial_controllers.is_some();
    if config.static_voters.is_some() {
        if dynamic || args.no_initial_controllers {
            bail!(
                "controller.quorum.voters is set, so the quorum is static: leave out --standalone, \
                 --initial-controllers and --no-initial-controllers, or remove that key"
            );
        }
        return Ok(FormatVoters::Static);
    }
    if let Some(text) = &args.initial_controllers {
        let listener = config.controller_listener();
        return Ok(FormatVoters::Initial(initial_voters(text, &listener)?));
    }
    // A broker without the controller's role has no vote.
    if args.no_initial_controllers || (!config.roles.controller && !args.standalone) {
        return Ok(FormatVoters::None);
    }
    if !args.standalone {
        bail!(
            "who votes in the quorum is not said: give --standalone, --initial-controllers or \
             --no-initial-controllers, or set controller.quorum.voters"
        );
    }
    Ok(FormatVoters::Standalone)
}

fn feature(text: &str) -> anyhow::Result<(String, i16)> {
    let (name, level) = node_settings::parse_pair(text, "--feature")?;
    let level = level
        .parse()
        .map_err(|_| Usage(format!("--feature {text}: NAME=LEVEL")))?;
    Ok((name, level))
}

/// The voters of `--initial-controllers`: ID@HOST:PORT:DIRECTORY-ID, separated by commas.
fn initial_voters(text: &str, listener: &str) -> anyhow::Result<VoterSet> {
    let mut all = VoterSet::default();
    for entry in text.split(',').map(str::trim) {
        let expected = || {
            Usage(format!(
                "--initial-controllers {entry}: ID@HOST:PORT:DIRECTORY-ID is expected"
            ))
        };
        let (address, directory) = entry.rsplit_once(':').ok_or_else(expected)?;
        let directory: Uuid = directory.parse().map_err(|_| expected())?;
        let mut one = VoterSet::parse(address, listener).map_err(|_| expected())?;
        for voter in &mut one.voters {
            voter.key.directory_id = DirectoryId::new(directory);
            voter.kraft_versions = (0, 1);
        }
        all.voters.append(&mut one.voters);
    }
    all.voters.sort_by_key(|voter| voter.key.id);
    Ok(all)
}

fn random_uuid() -> anyhow::Result<String> {
    let seed = random_seed()?;
    let (bytes, _) = seed.split_first_chunk::<16>().context("32 random bytes")?;
    Ok(Uuid::from_random(*bytes).to_string())
}
