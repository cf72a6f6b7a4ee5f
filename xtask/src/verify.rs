//! `cargo xtask verify`: the gate. Reads only, but for cargo's own target directory.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{tidy, tree};

/// Runs every check and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    cargo("formatting", &["fmt", "--all", "--check"], &[])?;
    tidy::run()?;
    let clippy = [
        "clippy",
        "--workspace",
        // It has a target directory of its own: `cargo xtask planted`.
        "--exclude",
        "highwater-planted",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    cargo("clippy", &clippy, &[])?;
    let docs = [
        "doc",
        "--workspace",
        "--exclude",
        "highwater-planted",
        "--no-deps",
        "--quiet",
        "--document-private-items",
    ];
    cargo("docs", &docs, &[("RUSTDOCFLAGS", "-D warnings")])?;
    println_step("all checks passed");
    Ok(())
}

fn cargo(what: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println_step(what);
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(tree::root())
        .status()
        .with_context(|| format!("cannot run cargo for {what}"))?;
    ensure!(status.success(), "{what} found something: see above");
    Ok(())
}

fn println_step(what: &str) {
    eprintln!("verify: {what}");
}
