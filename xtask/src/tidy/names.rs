//! Law 1: the cores name no clock, no random source, no socket, no file, no thread, no task.

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use crate::tree::SourceFile;

/// The crates that do no IO. `disk` does, but only in its `file` module.
pub(super) const CORES: [&str; 11] = [
    "types",
    "records",
    "protocol",
    "disk",
    "log",
    "replication",
    "quorum",
    "metadata",
    "coordinator",
    "node",
    "sim",
];

/// Where production touches files.
const FILES_ARE_TOUCHED_IN: &str = "crates/disk/src/file";

/// Where blocking may begin: job runners, start-up and offline commands.
const MAY_BLOCK: [&str; 4] = [
    "crates/server/src/",
    "crates/sim/src/",
    "crates/cli/src/",
    "crates/disk/src/api.rs",
];

/// Names that bring IO, time, chance or an unstable order, and what to use in their place.
const BANNED_NAMES: [(&str, &str); 13] = [
    ("tokio", "a core runs no task"),
    ("SystemTime", "time is an argument: Now"),
    ("Instant", "time is an argument: Now"),
    ("HashMap", "its order may reach an output: BTreeMap"),
    ("HashSet", "its order may reach an output: BTreeSet"),
    ("RandomState", "chance is a seeded argument"),
    ("thread_rng", "chance is a seeded argument"),
    ("getrandom", "chance is a seeded argument"),
    ("TcpStream", "a core opens no socket"),
    ("TcpListener", "a core opens no socket"),
    ("UdpSocket", "a core opens no socket"),
    ("UnixStream", "a core opens no socket"),
    ("OpenOptions", "files exist only behind Disk"),
];

/// Modules of `std` that a core does not use.
const BANNED_MODULES: [&str; 4] = ["fs", "thread", "env", "process"];

/// Checks the product code of a core; tests beside it in `tests/` may do what they need.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Finding>) {
    if !file.is_product() {
        return;
    }
    let Ok(tokens) = file.text.parse::<TokenStream>() else {
        return;
    };
    let mut flat = Vec::new();
    flatten(tokens, &mut flat);
    check_blocking(file, &flat, findings);
    let is_core = file.crate_name().is_some_and(|name| CORES.contains(&name));
    if !is_core || file.path.starts_with(FILES_ARE_TOUCHED_IN) {
        return;
    }
    for (line, word) in &flat {
        if let Some((name, why)) = BANNED_NAMES.iter().find(|(name, _)| name == word) {
            findings.push(format!("{}:{line}: '{name}' in a core: {why}", file.path));
        }
    }
    for window in flat.windows(4) {
        let [(line, std), (_, a), (_, b), (_, module)] = window else {
            continue;
        };
        let is_path = std == "std" && a == ":" && b == ":";
        if is_path && BANNED_MODULES.contains(&module.as_str()) {
            findings.push(format!("{}:{line}: 'std::{module}' in a core", file.path));
        }
    }
}

fn check_blocking(file: &SourceFile, flat: &[(usize, String)], findings: &mut Vec<Finding>) {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    if is_test || MAY_BLOCK.iter().any(|place| file.path.starts_with(place)) {
        return;
    }
    let product = flat.iter().take_while(|(_, word)| word != "tests");
    let product: Vec<&(usize, String)> = product.collect();
    for window in product.windows(4) {
        let [(line, name), (_, a), (_, b), (_, enter)] = window else {
            continue;
        };
        if name == "Blocking" && a == ":" && b == ":" && enter == "enter" {
            findings.push(format!(
                "{}:{line}: Blocking::enter() only in job runners, start-up and offline commands",
                file.path
            ));
        }
    }
}

/// Every identifier and punctuation mark with its line. Comments are not tokens, and strings are
/// left out.
fn flatten(tokens: TokenStream, flat: &mut Vec<(usize, String)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => flatten(group.stream(), flat),
            TokenTree::Ident(ident) => flat.push((ident.span().start().line, ident.to_string())),
            TokenTree::Punct(mark) => {
                flat.push((mark.span().start().line, mark.as_char().to_string()));
            }
            TokenTree::Literal(_) => {}
        }
    }
}
