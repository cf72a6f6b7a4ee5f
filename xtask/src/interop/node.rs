//! A highwater process under test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::tree;

/// Builds the binary in the profile of the tests and says where it is. `HIGHWATER_BINARY` names
/// another one to try.
pub(crate) fn build() -> Result<PathBuf> {
    if let Some(binary) = std::env::var_os("HIGHWATER_BINARY") {
        return Ok(PathBuf::from(binary));
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "highwater-cli"])
        .current_dir(tree::root())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the build failed");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| tree::root().join("target"), PathBuf::from);
    // A copy: another build may replace the original while nodes are killed and started.
    let home = tree::root().join("target/interop");
    std::fs::create_dir_all(&home).context("cannot make target/interop")?;
    let copy = home.join("highwater");
    std::fs::copy(target.join("debug/highwater"), &copy).context("cannot copy the binary")?;
    Ok(copy)
}

/// One node on a free loopback port. Killed when dropped.
#[derive(Debug)]
pub(super) struct Node {
    process: Child,
    /// `HOST:PORT` of the client listener.
    pub(super) bootstrap: String,
}

impl Node {
    /// Starts a node on `data` and waits for its ready line. Port 0 picks a free one.
    pub(super) fn start(binary: &Path, data: &Path, port: u16) -> Result<Self> {
        Self::start_with(binary, data, port, &[])
    }

    /// The same with some settings, each `key=value`.
    pub(super) fn start_with(
        binary: &Path,
        data: &Path,
        port: u16,
        settings: &[&str],
    ) -> Result<Self> {
        let mut process = Command::new(binary)
            .arg("start")
            .arg("--data")
            .arg(data)
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(settings.iter().flat_map(|pair| ["--set", pair]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = process.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let bootstrap = line
            .strip_prefix("highwater ready bootstrap=")
            .and_then(|rest| rest.split(' ').next())
            .map(str::to_owned);
        let Some(bootstrap) = bootstrap else {
            process.kill().ok();
            process.wait().ok();
            anyhow::bail!("no ready line but '{}'", line.trim_end());
        };
        Ok(Self { process, bootstrap })
    }

    /// The port of the client listener.
    pub(super) fn port(&self) -> Result<u16> {
        let port = self.bootstrap.rsplit(':').next().context("HOST:PORT")?;
        port.parse().context("a port")
    }

    /// Ends the process as a crash does.
    pub(super) fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Ends the process as an operator does, and expects exit code 0.
    pub(super) fn stop(mut self) -> Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let status = self.process.wait()?;
        ensure!(status.success(), "after SIGTERM: {status}");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
