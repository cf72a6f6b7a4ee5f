//! `cargo xtask interop`: stock clients and Apache Kafka's own tools against real nodes.

mod java;
mod kcat;
mod librdkafka;
mod node;
mod tools;

use anyhow::{Result, ensure};

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

/// Installs the tools, builds the node and runs every suite. `arguments` may name the suites.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wanted = |suite: &str| arguments.is_empty() || arguments.iter().any(|name| name == suite);
    let binary = node::build()?;
    let tools = Tools::install()?;
    let mut report = Report::default();
    if wanted("kcat") {
        kcat::suite(&binary, &mut report);
    }
    if wanted("java") {
        java::suite(&binary, &tools, &mut report);
    }
    if wanted("librdkafka") {
        librdkafka::suite(&binary, &tools, &mut report);
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
