//! Every scenario file is played; its trace is the expectation. `REWRITE=1` records anew,
//! `ONLY=rt-01` plays those whose path has that in it, drafts too.

use std::path::{Path, PathBuf};

use highwater_sim::scenario::{play, play_told};

#[test]
fn every_story_is_told_as_written() {
    let rewrites = std::env::var_os("REWRITE").is_some();
    let mut different = Vec::new();
    let files = scenario_files();
    assert!(
        files.len() > 15 || std::env::var_os("ONLY").is_some(),
        "only {} scenario files found",
        files.len()
    );
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let is_alone = std::env::var_os("ONLY").is_some();
        let played = play_told(&text, move |line| {
            if is_alone {
                println!("{line}");
            }
        });
        let played = played.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        if played.matches {
            continue;
        }
        if rewrites {
            std::fs::write(&path, &played.recorded).expect("a writable file");
        } else {
            different.push(format!(
                "{}\n{}",
                path.display(),
                difference(&text, &played.recorded)
            ));
        }
    }
    assert!(
        different.is_empty(),
        "not as written:\n{}",
        different.join("\n")
    );
}

#[test]
fn a_story_is_the_same_each_time() {
    for path in scenario_files() {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let hash = || play(&text).map(|played| played.trace.hash());
        assert_eq!(hash(), hash(), "I-28: {}", path.display());
    }
}

fn scenario_files() -> Vec<PathBuf> {
    let only = std::env::var("ONLY").ok();
    let is_played = |path: &Path| match &only {
        Some(only) => path.to_string_lossy().contains(only.as_str()),
        None => path.extension().is_some_and(|kind| kind == "txt"),
    };
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if is_played(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn difference(written: &str, recorded: &str) -> String {
    let (written, recorded): (Vec<_>, Vec<_>) =
        (written.lines().collect(), recorded.lines().collect());
    let first = written.iter().zip(&recorded).position(|(a, b)| a != b);
    let first = first.unwrap_or_else(|| written.len().min(recorded.len()));
    let line = |lines: &[&str]| {
        lines
            .get(first)
            .map_or("(the end)", |line| *line)
            .to_owned()
    };
    format!(
        "  line {}\n  written:  {}\n  recorded: {}",
        first + 1,
        line(&written),
        line(&recorded)
    )
}
