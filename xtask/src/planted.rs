//! `cargo xtask planted`: bugs planted in the cores, and whether the simulator finds each.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::tree;

/// Builds `highwater-planted` in a target directory of its own, so that nothing else is ever built
/// with its feature, and runs it with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let target = tree::root().join("target/planted");
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "highwater-planted"])
        .arg("--target-dir")
        .arg(target)
        .arg("--")
        .args(arguments)
        .current_dir(tree::root())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "see above");
    Ok(())
}
