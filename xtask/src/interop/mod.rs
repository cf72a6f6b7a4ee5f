//! `cargo xtask interop`: stock clients and Apache Kafka's own tools against real nodes.

mod groups;
mod java;
mod kcat;
pub(crate) mod node;
mod python;
mod three;
pub(crate) mod tools;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use self::tools::Tools;

/// Counts what passed and names what did not.
#[derive(Debug, Default)]
struct Report {
    passed: usize,
    failed: Vec<String>,
}

impl Report {
    /// Takes the outcome of one case and says it at once.
    fn case(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => {
                eprintln!("ok      {name}");
                self.passed += 1;
            }
            Err(why) => {
                eprintln!("FAILED  {name}: {why:#}");
                self.failed.push(name.to_owned());
            }
        }
    }
}

type Suite = fn(&Path, &Tools, &mut Report);

/// The suites by name, in the order in which they run.
const SUITES: [(&str, Suite); 8] = [
    ("kcat", kcat::suite),
    ("java", java::suite),
    ("directory", python::directory),
    ("differences", python::differences),
    ("kafka-python", python::kafka_python),
    ("groups", groups::suite),
    ("librdkafka", python::librdkafka),
    ("three", three::suite),
];

/// Installs the tools, builds the node and runs every suite. `arguments` may name the suites.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments
        .iter()
        .find(|name| !SUITES.iter().any(|(known, _)| known == name))
    {
        let known: Vec<_> = SUITES.iter().map(|(name, _)| *name).collect();
        bail!("there is no suite '{unknown}', only {}", known.join(", "));
    }
    let binary = node::build()?;
    let tools = Tools::install()?;
    let mut report = Report::default();
    for (name, suite) in SUITES {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            let start = Instant::now();
            suite(&binary, &tools, &mut report);
            eprintln!("        ({name}: {} s)", start.elapsed().as_secs());
        }
    }
    eprintln!(
        "interop: {} passed, {} failed",
        report.passed,
        report.failed.len()
    );
    ensure!(
        report.failed.is_empty(),
        "failed: {}",
        report.failed.join(", ")
    );
    Ok(())
}
