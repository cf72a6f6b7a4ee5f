//! The newest librdkafka, by way of confluent-kafka: see `interop/librdkafka.py`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Report;
use super::tools::Tools;
use crate::tree;

/// Two rounds a codec; `HIGHWATER_INTEROP_ROUNDS` asks for more.
pub(super) fn suite(binary: &Path, tools: &Tools, report: &mut Report) {
    let rounds = std::env::var("HIGHWATER_INTEROP_ROUNDS").unwrap_or_else(|_| "2".to_owned());
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let name = format!("librdkafka, {codec}, kill -9 in the middle, {rounds} rounds");
        report.case(&name, kill_in_the_middle(binary, tools, codec, &rounds));
    }
}

fn kill_in_the_middle(binary: &Path, tools: &Tools, codec: &str, rounds: &str) -> Result<()> {
    let output = Command::new(&tools.python)
        .arg(tree::root().join("interop/librdkafka.py"))
        .arg("--binary")
        .arg(binary)
        .args(["--rounds", rounds, "--codecs", codec])
        .output()
        .context("cannot run Python")?;
    ensure!(
        output.status.success(),
        "\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
