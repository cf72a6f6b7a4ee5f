//! A process of a cluster, or a witness of it: ended by its id, also when this program is killed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// How often a state that is waited for is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// One process. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    /// Where its standard error goes, and its standard output unless somebody reads it.
    log: PathBuf,
    /// Where in the log this process began.
    log_start: u64,
    is_paused: bool,
}

/// What a process is started with.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) name: String,
    pub(crate) program: &'a OsStr,
    pub(crate) arguments: &'a [&'a OsStr],
    pub(crate) log: &'a Path,
    /// Whether standard input and output are pipes of ours.
    pub(crate) is_piped: bool,
}

impl Process {
    /// Starts it such that it is killed with this thread, which must live as long as the program.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
        let mut log = File::options()
            .create(true)
            .append(true)
            .open(start.log)
            .with_context(|| format!("cannot write {}", start.log.display()))?;
        let log_start = log.seek(SeekFrom::End(0))?;
        let (input, output) = if start.is_piped {
            (Stdio::piped(), Stdio::piped())
        } else {
            (Stdio::null(), Stdio::from(log.try_clone()?))
        };
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(start.program)
            .args(start.arguments)
            .stdin(input)
            .stdout(output)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", start.name))?;
        Ok(Self {
            name: start.name.clone(),
            child,
            log: start.log.to_owned(),
            log_start,
            is_paused: false,
        })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The pipes of a process that was started with them; once.
    pub(crate) fn pipes(&mut self) -> Result<(ChildStdin, ChildStdout)> {
        let input = self.child.stdin.take().context("stdin is piped")?;
        let output = self.child.stdout.take().context("stdout is piped")?;
        Ok((input, output))
    }

    /// What it wrote to its log since it was started.
    pub(crate) fn told(&self) -> Result<String> {
        told_since(&self.log, self.log_start)
    }

    /// Waits until its log holds `text`.
    pub(crate) fn wait_to_tell(&mut self, text: &str, patience: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            let told = self.told()?;
            if told.contains(text) {
                return Ok(());
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || began.elapsed() > patience {
                let told = tail(&told, 2000);
                bail!("{} does not tell '{text}' ({ended:?}):\n{told}", self.name);
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Whether it neither ended nor was paused.
    pub(crate) fn is_running(&mut self) -> bool {
        !self.is_paused && matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Takes the CPU from it until [`Process::resume`].
    pub(crate) fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)?;
        self.is_paused = true;
        Ok(())
    }

    /// Lets it go on.
    pub(crate) fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)?;
        self.is_paused = false;
        Ok(())
    }

    /// Asks it to end, without waiting.
    pub(crate) fn ask_to_end(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Waits for its end; one that does not end in time is killed, which is an error.
    pub(crate) fn wait(mut self, patience: Duration) -> Result<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(
                began.elapsed() < patience,
                "{} does not end in {patience:?}",
                self.name
            );
            std::thread::sleep(GLANCE);
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.child.id())?;
        let id = Pid::from_raw(id).context("a process id")?;
        kill_process(id, signal).with_context(|| format!("cannot signal {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL reaches a paused process too.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The text of a log from a position on.
pub(crate) fn told_since(log: &Path, position: u64) -> Result<String> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(position))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last `bytes` of a text, from the start of a line.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    let mut at = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    text.get(at..).unwrap_or_default()
}
