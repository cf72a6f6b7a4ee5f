//! `cargo xtask tidy`: the house rules that a compiler does not check. No exceptions list.

mod arrows;
mod functions;
mod modules;
mod names;
mod text;

use anyhow::{Result, bail};

use crate::{codegen, docs, tree};

/// What a check found: place and fault in one line.
type Finding = String;

/// Checks the whole tree and names everything that is wrong with it.
pub(crate) fn run() -> Result<()> {
    let findings = findings()?;
    if findings.is_empty() {
        return Ok(());
    }
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    bail!("{} finding(s)", findings.len());
}

fn findings() -> Result<Vec<Finding>> {
    let files = tree::text_files()?;
    let mut findings = Vec::new();
    for file in &files {
        text::check(file, &mut findings);
        if file.is_rust() {
            functions::check(file, &mut findings);
            names::check(file, &mut findings);
        }
    }
    modules::check(&files, &mut findings);
    arrows::check(&files, &mut findings)?;
    if let Err(stale) = codegen::run(&["--check".to_owned()]) {
        findings.push(format!("{stale:#}"));
    }
    if let Err(stale) = docs::run(&["--check".to_owned()]) {
        findings.push(format!("{stale:#}"));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let findings = super::findings().expect("tidy runs");
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }
}
