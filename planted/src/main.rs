//! Bugs are planted in the cores, one at a time: the scenario that is about it and the random seeds
//! have to find each. A simulator that finds nothing may be a simulator that looks at nothing.
//!
//! `cargo xtask planted` builds and runs this, in a target directory of its own.

#![expect(clippy::print_stdout, reason = "its tables are its output")]

mod hunt;
mod options;

use std::process::ExitCode;

use crate::options::{Options, Work};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let done = match options.work {
        Work::Table { seeds } => hunt::table(options.bug, seeds),
        Work::Seeds { from, to } => hunt::seeds(options.bug, options.is_of_clusters, from, to),
        Work::Seed(seed) => hunt::one_seed(options.bug, options.is_of_clusters, seed),
        Work::Play(file) => hunt::play(options.bug, &file),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("planted: {why}");
            ExitCode::FAILURE
        }
    }
}
