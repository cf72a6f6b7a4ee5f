//! `highwater sim`: the simulator, where a story or a seed is looked into by hand.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use highwater_sim::{run_seed, scenario};

use crate::args::{Output, SimArgs, SimCommand};

/// Plays what was asked for and prints what happened.
pub(crate) fn run(arguments: SimArgs, _output: Output) -> Result<()> {
    match arguments.command {
        SimCommand::Run { file } => {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let played = scenario::play(&text)
                .with_context(|| format!("{} cannot be played", file.display()))?;
            write!(std::io::stdout(), "{}", played.recorded)?;
            if !played.matches {
                bail!(
                    "{} tells another story: REWRITE=1 cargo test records it",
                    file.display()
                );
            }
            Ok(())
        }
        SimCommand::Seed { seed } => {
            // A run that breaks an invariant does not return: its lines are told as they happen,
            // and a reader that went away is no reason to stop it.
            let report = run_seed(seed, |line| {
                writeln!(std::io::stdout(), "{line}").ok();
            });
            writeln!(
                std::io::stdout(),
                "seed {seed}: trace {:016x}, {} events, {} batches, {} records acknowledged, \
                 {} read, {} lost with power; every invariant held",
                report.trace_hash,
                report.events,
                report.batches,
                report.acknowledged,
                report.read,
                report.lost_with_power
            )?;
            Ok(())
        }
    }
}
