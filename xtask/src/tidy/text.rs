//! Sizes of files and lines, characters, words, headers.

use super::Finding;
use crate::tree::SourceFile;

const FILE_LINES_MAX: usize = 1000;
const LINE_COLUMNS_MAX: usize = 100;

/// Words that the glossary replaces. Spelled in halves, for this file is checked too.
const NEVER: [&str; 7] = [
    concat!("te", "rm"),
    concat!("commit", "_index"),
    concat!("pri", "mary"),
    concat!("back", "up"),
    concat!("mas", "ter"),
    concat!("sla", "ve"),
    concat!("w", "al"),
];

/// Checks one text file.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Finding>) {
    let path = &file.path;
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(format!(
            "{path}: {lines} lines, at most {FILE_LINES_MAX}: split by concern"
        ));
    }
    let is_scenario = path.starts_with("crates/sim/scenarios/");
    if is_scenario && path.ends_with(".txt") && !file.text.starts_with("# ") {
        findings.push(format!(
            "{path}: a scenario begins with a '# ' header that tells its story"
        ));
    }
    if path.ends_with("_state.rs") && !file.text.contains("Invariant:") {
        findings.push(format!("{path}: a state names its 'Invariant:'"));
    }
    for (number, line) in file.text.lines().enumerate() {
        check_line(file, number + 1, line, is_scenario, findings);
    }
}

fn check_line(
    file: &SourceFile,
    number: usize,
    line: &str,
    is_scenario: bool,
    findings: &mut Vec<Finding>,
) {
    let path = &file.path;
    let is_code = file.is_rust() || path.ends_with(".toml") || path.ends_with(".sh");
    if (file.is_rust() || path.ends_with(".py")) && line.chars().count() > LINE_COLUMNS_MAX {
        findings.push(format!(
            "{path}:{number}: longer than {LINE_COLUMNS_MAX} columns"
        ));
    }
    if (is_code || is_scenario) && !line.is_ascii() {
        findings.push(format!("{path}:{number}: code is ASCII only"));
    }
    if !file.is_rust() {
        return;
    }
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    // Words in capitals are the world's, not ours: the signal TERM.
    for word in words.filter(|word| word.bytes().any(|byte| byte.is_ascii_lowercase())) {
        let lower = word.to_ascii_lowercase();
        for never in NEVER {
            let as_part = lower.split('_').any(|part| part == never);
            if as_part || lower == never {
                findings.push(format!(
                    "{path}:{number}: '{never}' is not our word: GLOSSARY.md"
                ));
            }
        }
    }
}
