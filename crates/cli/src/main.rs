//! The `highwater` command: start and format nodes, look at and use a cluster, look into logs.

mod args;
mod client_commands;
mod format;
mod group_args;
mod log_commands;
mod log_dump;
mod log_verify;
mod moment;
mod node_settings;
mod output;
mod placing;
mod sim;
mod start;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};

/// Exit code 0 is done, 1 failed, 2 wrong usage (clap's own).
fn main() -> ExitCode {
    let cli = Cli::parse_from(placing::verb_first(std::env::args_os()));
    let output = cli.output;
    let done = match cli.command {
        Command::Start(args) => start::run(args),
        Command::Format(args) => format::run(args),
        Command::Topic(command) => client_commands::topic::run(command, output),
        Command::Produce(args) => client_commands::produce::run(args, output),
        Command::Consume(args) => client_commands::consume::run(args, output),
        Command::Group(command) => client_commands::group::run(command, output),
        Command::Cluster(command) => client_commands::cluster::run(command, output),
        Command::Log(command) => log_commands::run(command, output),
        Command::Sim(args) => sim::run(args, output),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(why) if is_broken_pipe(&why) => ExitCode::SUCCESS,
        Err(why) => {
            if let Some(usage) = why.downcast_ref::<output::Usage>() {
                output::complain(&usage.to_string());
                return ExitCode::from(2);
            }
            // What is read or sent has words of its own; what is printed has not.
            let unprinted = why.is::<io::Error>();
            let what = if unprinted {
                "cannot write the output: "
            } else {
                ""
            };
            output::complain(&format!("{what}{why:#}"));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(why: &anyhow::Error) -> bool {
    let mut causes = why
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
