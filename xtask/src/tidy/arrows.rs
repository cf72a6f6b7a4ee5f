//! The arrows between crates, and that no core reaches tokio.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Finding, names};
use crate::tree::{self, SourceFile};

/// Which crates of ours each crate may use. A new arrow is rare and reviewed hard.
const ARROWS: [(&str, &[&str]); 15] = [
    ("types", &[]),
    ("fixtures", &[]),
    ("records", &["types"]),
    ("protocol", &["types", "records"]),
    ("disk", &["types"]),
    ("log", &["types", "records", "disk"]),
    ("replication", &["types"]),
    ("quorum", &["types"]),
    ("metadata", &["types", "records"]),
    ("coordinator", &["types", "records"]),
    (
        "node",
        &[
            "types",
            "records",
            "protocol",
            "disk",
            "log",
            "replication",
            "quorum",
            "metadata",
            "coordinator",
        ],
    ),
    ("client", &["types", "records", "protocol"]),
    (
        "server",
        &[
            "types", "records", "protocol", "disk", "log", "metadata", "node",
        ],
    ),
    (
        "sim",
        &[
            "types",
            "records",
            "protocol",
            "disk",
            "log",
            "replication",
            "metadata",
            "node",
        ],
    ),
    (
        "cli",
        &[
            "types", "records", "protocol", "disk", "log", "metadata", "node", "client", "server",
            "sim",
        ],
    ),
];

/// Checks the manifests, and asks cargo whether a core reaches tokio.
pub(super) fn check(files: &[SourceFile], findings: &mut Vec<Finding>) -> Result<()> {
    for file in files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
    {
        let Some(name) = file.crate_name() else {
            continue;
        };
        match ARROWS.iter().find(|(from, _)| *from == name) {
            Some((_, allowed)) => check_manifest(file, allowed, findings),
            None => findings.push(format!("{}: a crate without arrows in tidy", file.path)),
        }
    }
    for core in names::CORES {
        let tree = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--package",
                &format!("highwater-{core}"),
                "--edges",
                "normal",
            ])
            .args(["--prefix", "none", "--offline"])
            .current_dir(tree::root())
            .output()
            .context("cannot run cargo tree")?;
        ensure!(
            tree.status.success(),
            "cargo tree: {}",
            String::from_utf8_lossy(&tree.stderr)
        );
        if String::from_utf8_lossy(&tree.stdout)
            .lines()
            .any(|line| line.starts_with("tokio "))
        {
            findings.push(format!("crates/{core}: a core reaches tokio (cargo tree)"));
        }
    }
    Ok(())
}

fn check_manifest(file: &SourceFile, allowed: &[&str], findings: &mut Vec<Finding>) {
    let mut for_tests = false;
    for line in file.text.lines() {
        if line.starts_with('[') {
            for_tests = line == "[dev-dependencies]";
        }
        let Some(rest) = line.strip_prefix("highwater-") else {
            continue;
        };
        let used = rest.split(['.', ' ', '=']).next().unwrap_or_default();
        // Tests may read fixtures, and a binary's tests drive it with our client.
        let of_tests = for_tests && matches!(used, "fixtures" | "client" | "protocol" | "records");
        if !allowed.contains(&used) && !of_tests {
            findings.push(format!(
                "{}: may not use '{used}' (crate arrows)",
                file.path
            ));
        }
    }
}
