//! No dead files: every Rust file in a `src` folder is declared by its parent module.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::SourceFile;

/// Checks that each module file is reachable.
pub(super) fn check(files: &[SourceFile], findings: &mut Vec<Finding>) {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    for file in files.iter().filter(|file| file.is_product()) {
        let Some((folder, name)) = file.path.rsplit_once('/') else {
            continue;
        };
        let stem = name.trim_end_matches(".rs");
        let (folder, module) = match stem {
            "lib" | "main" => continue,
            "mod" => match folder.rsplit_once('/') {
                Some(split) => split,
                None => continue,
            },
            _ => (folder, stem),
        };
        let parents = [
            format!("{folder}/mod.rs"),
            format!("{folder}.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
        ];
        let declared = parents
            .iter()
            .filter_map(|parent| texts.get(parent.as_str()))
            .any(|text| declares(text, module));
        if !declared {
            findings.push(format!("{}: no module declares it: a dead file", file.path));
        }
    }
}

fn declares(text: &str, module: &str) -> bool {
    text.lines().any(|line| {
        line.trim_end().strip_suffix(';').is_some_and(|line| {
            line.strip_suffix(module)
                .is_some_and(|before| before.ends_with("mod "))
        })
    })
}
