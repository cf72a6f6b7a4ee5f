use std::path::PathBuf;

use crate::args::Output;

/// `log verify DIR...`
pub(crate) fn run(dirs: &[PathBuf], output: Output) -> anyhow::Result<()> {
    let _ = (dirs, output);
    anyhow::bail!("log verify is not there yet")
}
