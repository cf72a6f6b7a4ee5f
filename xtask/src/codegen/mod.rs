//! Writes the generated messages: `cargo xtask codegen`.
//!
//! Schemas are read ([`schema`]), each message becomes Rust text ([`message`], [`field`]), and
//! rustfmt gives it its form. [`list`] says which messages there are.

mod field;
mod list;
mod message;
mod module;
mod names;
#[cfg(test)]
mod round_trip;
mod schema;
#[cfg(test)]
mod schema_bytes;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail, ensure};

use self::list::{GROUPS, Group, SCHEMAS};

/// Runs `cargo xtask codegen`: writes what differs, or with `--check` only says so.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("usage: cargo xtask codegen [--check]"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = Vec::new();
    for group in &GROUPS {
        let wanted = sources(&root, group)?;
        let folder = root.join(group.folder);
        for path in generated_files(&folder)? {
            if !wanted.contains_key(&path) {
                stale.push(path.display().to_string());
                if !check {
                    fs::remove_file(&path)?;
                }
            }
        }
        for (path, source) in &wanted {
            if fs::read_to_string(path).is_ok_and(|there| there == *source) {
                continue;
            }
            stale.push(path.display().to_string());
            if !check {
                fs::create_dir_all(&folder)?;
                fs::write(path, source).with_context(|| path.display().to_string())?;
            }
        }
    }
    ensure!(
        !check || stale.is_empty(),
        "stale, run 'cargo xtask codegen':\n  {}",
        stale.join("\n  ")
    );
    Ok(())
}

/// The files of a group with their formatted contents.
fn sources(root: &Path, group: &Group) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let folder = root.join(group.folder);
    let mut raw = Vec::new();
    let mut messages = Vec::new();
    for schema in schema_files(root, group)? {
        let path = root.join(&schema);
        let text = fs::read_to_string(&path).with_context(|| schema.clone())?;
        let parsed = schema::parse(&text).map_err(|why| anyhow!("{schema}: {why}"))?;
        for message in parsed {
            let file = folder.join(names::snake(&message.name) + ".rs");
            raw.push((file, message::source(&message, &schema, group)));
            messages.push(message);
        }
    }
    raw.push((folder.join("mod.rs"), module::source(&messages, group)));
    raw.into_iter()
        .map(|(path, source)| Ok((path, format(&source, root)?)))
        .collect()
}

/// Schema files of a group, relative to the root, sorted within a folder.
fn schema_files(root: &Path, group: &Group) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for schema in group.schemas {
        let path = format!("{SCHEMAS}/{schema}");
        if !path.ends_with('/') {
            files.push(path);
            continue;
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(root.join(&path)).with_context(|| path.clone())? {
            names.push(path.clone() + &entry?.file_name().to_string_lossy());
        }
        names.sort();
        files.append(&mut names);
    }
    Ok(files)
}

fn generated_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// `source` as rustfmt writes it with the configuration of `root`.
fn format(source: &str, root: &Path) -> anyhow::Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("rustfmt")?;
    let mut input = rustfmt.stdin.take().expect("it is piped");
    input.write_all(source.as_bytes())?;
    drop(input);
    let output = rustfmt.wait_with_output()?;
    ensure!(
        output.status.success(),
        "rustfmt refuses generated code:\n{source}"
    );
    Ok(String::from_utf8(output.stdout)?)
}
