//! `highwater sim`: the simulator, where a story or a seed is looked into by hand.

use std::io::Write as _;
use std::path::Path;
use std::{env, panic};

use anyhow::{Context as _, Result, bail};
use highwater_sim::{SeedReport, run_cluster_seed, run_seed, scenario};
use serde_json::json;

use crate::args::{Output, SimArgs, SimCommand};
use crate::output;

/// Plays what was asked for and prints what happened.
pub(crate) fn run(arguments: SimArgs, output: Output) -> Result<()> {
    fail_in_words();
    match arguments.command {
        SimCommand::Run { file } => play(&file, output),
        SimCommand::Seed { seed, cluster } => play_seed(seed, cluster, output),
    }
}

/// A broken invariant panics. It is told in one line, and where; `RUST_BACKTRACE` asks for more.
fn fail_in_words() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if env::var_os("RUST_BACKTRACE").is_some() {
            default(info);
        }
        let at = info.location().map(ToString::to_string);
        let why = info.payload_as_str().unwrap_or("a panic without words");
        output::complain(&format!(
            "{why} (seen at {})",
            at.as_deref().unwrap_or("an unknown place")
        ));
        #[expect(
            clippy::exit,
            reason = "a panic may abort, and a failed run ends with 1"
        )]
        std::process::exit(1);
    }));
}

fn play(file: &Path, output: Output) -> Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let played =
        scenario::play(&text).with_context(|| format!("{} cannot be played", file.display()))?;
    let mut out = output::stdout();
    match output {
        Output::Table => write!(out, "{}", played.recorded)?,
        Output::Json => {
            let story = json!({ "matches": played.matches, "recorded": played.recorded });
            writeln!(out, "{story}")?;
        }
    }
    out.flush()?;
    if !played.matches {
        bail!(
            "{} tells another story: REWRITE=1 cargo test records it",
            file.display()
        );
    }
    Ok(())
}

fn play_seed(seed: u64, cluster: bool, output: Output) -> Result<()> {
    // A run that breaks an invariant does not return: its lines are told as they happen, and a
    // reader that went away is no reason to stop it.
    let tell = move |line: &str| {
        if output == Output::Table {
            writeln!(std::io::stdout(), "{line}").ok();
        }
    };
    let report = if cluster {
        run_cluster_seed(seed, tell)
    } else {
        run_seed(seed, tell)
    };
    let SeedReport {
        trace_hash,
        events,
        batches,
        acknowledged,
        read,
        commits,
        assignments,
        lost_with_power,
    } = report;
    let mut out = output::stdout();
    match output {
        Output::Table => writeln!(
            out,
            "seed {seed}: trace {trace_hash:016x}, {events} events, {batches} batches, \
             {acknowledged} records acknowledged, {read} read, {commits} commits, {assignments} \
             assignments, {lost_with_power} lost with power; every invariant held"
        )?,
        Output::Json => {
            let report = json!({
                "seed": seed,
                "trace_hash": format!("{trace_hash:016x}"),
                "events": events,
                "batches": batches,
                "acknowledged": acknowledged,
                "read": read,
                "commits": commits,
                "assignments": assignments,
                "lost_with_power": lost_with_power,
            });
            writeln!(out, "{report}")?;
        }
    }
    out.flush()?;
    Ok(())
}
