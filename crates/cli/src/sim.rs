use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::args::{Output, SimArgs, SimCommand};
use crate::output;

/// `sim`: plays scenarios and random seeds.
pub(crate) fn run(args: SimArgs, output: Output) -> anyhow::Result<()> {
    match args.command {
        SimCommand::Run { file } => play(&file, output),
        SimCommand::Seed { seed } => seed_run(seed, output),
    }
}

fn play(file: &Path, output: Output) -> anyhow::Result<()> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the scenario {}", file.display()))?;
    let played = highwater_sim::scenario::play(&text)
        .with_context(|| format!("cannot play {}", file.display()))?;
    let mut out = output::stdout();
    match output {
        Output::Table => write!(out, "{}", played.recorded)?,
        Output::Json => {
            let trace: Vec<&str> = played.trace.lines().iter().map(AsRef::as_ref).collect();
            writeln!(
                out,
                "{}",
                json!({ "matches": played.matches, "trace": trace })
            )?;
        }
    }
    out.flush()?;
    if !played.matches {
        bail!(
            "{}: what happened is not what the file says; compare the output with the file",
            file.display()
        );
    }
    Ok(())
}

fn seed_run(seed: u64, output: Output) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let mut failed = None;
    let report = highwater_sim::run_seed(seed, |line| {
        if output == Output::Table
            && failed.is_none()
            && let Err(why) = writeln!(out, "{line}")
        {
            failed = Some(why);
        }
    });
    if let Some(why) = failed {
        return Err(why.into());
    }
    let report = json!({
        "seed": seed,
        "trace_hash": format!("{:016x}", report.trace_hash),
        "events": report.events,
        "batches": report.batches,
        "acknowledged": report.acknowledged,
        "read": report.read,
        "lost_with_power": report.lost_with_power,
    });
    match output {
        Output::Json => writeln!(out, "{report}")?,
        Output::Table => {
            let fields = report.as_object().into_iter().flatten();
            let words: Vec<String> = fields.map(|(name, it)| format!("{name}={it}")).collect();
            writeln!(out, "{}", words.join(" ").replace('"', ""))?;
        }
    }
    out.flush()?;
    Ok(())
}
