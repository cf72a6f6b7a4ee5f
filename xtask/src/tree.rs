//! The files of the repository, as git sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A text file of the tree.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the root, with forward slashes.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

impl SourceFile {
    /// The crate folder that the file is in: `log` for `crates/log/src/lib.rs`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the file is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file is compiled into a crate proper: not in `tests/` or `benches/`.
    pub(crate) fn is_product(&self) -> bool {
        self.is_rust() && self.path.contains("/src/")
    }
}

/// Every tracked or new, not ignored, text file. Fixtures are packed bytes and are left out.
pub(crate) fn text_files() -> Result<Vec<SourceFile>> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .context("cannot run git")?;
    ensure!(listed.status.success(), "git ls-files failed");
    let listed = String::from_utf8(listed.stdout).context("a path that is not UTF-8")?;
    let mut files = Vec::new();
    for path in listed.lines() {
        let is_text = [
            ".rs",
            ".toml",
            ".md",
            ".txt",
            ".sh",
            ".py",
            ".properties",
            ".java",
        ]
        .iter()
        .any(|ending| path.ends_with(ending))
            || path == ".ci/run";
        // A file may be deleted but not yet committed so.
        if let (true, Ok(bytes)) = (is_text, std::fs::read(root.join(path))) {
            let text = String::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))?;
            files.push(SourceFile {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}
