//! `cargo xtask docs`: traces of scenario files, copied into the documents that tell of them.
//!
//! `<!-- trace FILE: WORDS -->` stands for the paragraph of `crates/sim/scenarios/FILE` whose
//! comment or commands hold these words, without the comment; the copy goes up to `<!-- end -->`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::tree;

const BEGIN: &str = "<!-- trace ";
const END: &str = "<!-- end -->";

/// Writes the copies anew, or with `--check` only says whether they are fresh.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let only_checks = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => bail!("usage: cargo xtask docs [--check]"),
    };
    let folder = tree::root().join("docs");
    let scenarios = tree::root().join("crates/sim/scenarios");
    for file in std::fs::read_dir(&folder)? {
        let path = file?.path();
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        let old = std::fs::read_to_string(&path)?;
        let read = |name: &str| read_scenario(&scenarios, name);
        let new = fill(&old, read).with_context(|| path.display().to_string())?;
        if new != old && only_checks {
            bail!("{} is stale: cargo xtask docs", path.display());
        }
        if new != old {
            std::fs::write(&path, new)?;
        }
    }
    Ok(())
}

fn read_scenario(folder: &Path, name: &str) -> Result<String> {
    std::fs::read_to_string(folder.join(name)).with_context(|| format!("no scenario {name}"))
}

/// The document with every copy made anew.
fn fill(document: &str, read: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}")?;
        let Some(marker) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let marker = marker
            .strip_suffix(" -->")
            .context("a marker ends in ' -->'")?;
        let (name, words) = marker.split_once(": ").context("FILE: WORDS")?;
        let paragraph = paragraph(&read(name)?, words).with_context(|| name.to_owned())?;
        write!(out, "\n```text\n{paragraph}```\n\n{END}\n")?;
        ensure!(lines.any(|line| line == END), "no '{END}' after {marker}");
    }
    Ok(out)
}

/// The one paragraph whose comment or commands hold the words, without the comment.
fn paragraph(scenario: &str, words: &str) -> Result<String> {
    let mut found = Vec::new();
    for paragraph in scenario.split("\n\n") {
        let (comment, rest): (Vec<&str>, Vec<&str>) =
            paragraph.lines().partition(|line| line.starts_with('#'));
        let comment = comment.iter().map(|it| it.trim_start_matches(['#', ' ']));
        let commands = rest.iter().take_while(|line| **line != "----").copied();
        let told: Vec<&str> = comment.chain(commands).collect();
        if told.join(" ").contains(words) && !rest.is_empty() {
            found.push(format!("{}\n", rest.join("\n")));
        }
    }
    let count = found.len();
    let one = found.pop().filter(|_| count == 1);
    one.with_context(|| format!("{count} paragraphs hold '{words}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "\
# A story.
#
# Step 1: begin.
cluster
----
1: start

# Step 2: go
# on.
show
----
done
";

    fn filled(document: &str) -> Result<String> {
        fill(document, |name| {
            ensure!(name == "a.txt", "no {name}");
            Ok(SCENARIO.to_owned())
        })
    }

    #[test]
    fn a_copy_replaces_what_was_there_and_is_stable() {
        let old = "Before.\n<!-- trace a.txt: go on -->\nold\n<!-- end -->\nAfter.\n";
        let new = filled(old).unwrap();
        assert_eq!(
            new,
            "Before.\n<!-- trace a.txt: go on -->\n\n```text\nshow\n----\ndone\n```\n\n\
             <!-- end -->\nAfter.\n"
        );
        assert_eq!(filled(&new).unwrap(), new);
    }

    #[test]
    fn a_marker_that_names_nothing_or_too_much_is_refused() {
        for marker in ["a.txt: Step 3", "a.txt: Step", "b.txt: Step 1", "a.txt"] {
            let document = format!("{BEGIN}{marker} -->\n{END}\n");
            assert!(filled(&document).is_err(), "{marker}");
        }
        assert!(filled("<!-- trace a.txt: Step 1 -->\n").is_err());
    }
}
