//! The project's own tools: `cargo xtask codegen | docs | tidy | verify | planted |
//! interop | torture | bench`.

mod bench;
mod cluster;
mod codegen;
mod docs;
mod interop;
mod planted;
mod tidy;
mod torture;
mod tree;
mod verify;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  codegen [--check]   write the generated messages (or only say whether they are fresh)
  docs [--check]      copy traces of scenarios into docs/ (or only say whether they are fresh)
  tidy                check the tree: sizes, crate arrows, banned names, words, freshness
  verify              fmt, clippy with warnings as errors, docs, tidy; changes nothing
  planted [OPTION]... bugs planted in the cores, one by one: the simulator finds each
  interop [SUITE]...  stock clients and Apache Kafka's tools against real nodes:
                      kcat, java, directory, differences, librdkafka, three (all without a name)
  torture [OPTION]... three brokers killed, stopped and cut off while clients write
  bench [OPTION]...   ours, the floor programs and Apache Kafka in one run";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    let result = match command.as_str() {
        "bench" => bench::run(rest),
        "floor" => bench::floor::run(rest),
        "codegen" => codegen::run(rest),
        "docs" => docs::run(rest),
        "tidy" => tidy::run(),
        "verify" => verify::run(),
        "planted" => planted::run(rest),
        "interop" => interop::run(rest),
        "torture" => torture::run(rest),
        _ => {
            eprintln!("xtask: there is no command '{command}'\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask {command}: {why:#}");
            ExitCode::FAILURE
        }
    }
}
