//! The processes that are measured.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::tree;

/// Clock ticks a second in `/proc/PID/stat`: fixed by Linux for user space.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

/// So that old segments go while the run is on (see `RETAINED_BYTES`).
const RETENTION_CHECK: &str = "log.retention.check.interval.ms=300";

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The least that any server must do.
    Floor,
    /// Ours.
    Highwater,
    /// Apache Kafka 4.4.
    Kafka,
}

impl Kind {
    /// Its name in the report.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Highwater => "highwater",
            Self::Kafka => "kafka",
        }
    }
}

/// A running process. Killed when dropped.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) kind: Kind,
    /// Where it listens on loopback.
    pub(super) port: u16,
    process: Child,
}

impl Subject {
    /// Starts one on a fresh directory.
    pub(super) fn start(kind: Kind, data: &Path) -> Result<Self> {
        match kind {
            Kind::Floor => {
                let mut command = Command::new(release_binary("xtask"));
                command.arg("floor").arg(data);
                Self::with_port_line(kind, command, |line| line.trim().parse().ok())
            }
            Kind::Highwater => {
                let mut command = Command::new(release_binary("highwater"));
                command.arg("start").arg("--data").arg(data).args([
                    "--listen",
                    "127.0.0.1:0",
                    "--set",
                    RETENTION_CHECK,
                ]);
                Self::with_port_line(kind, command, |line| {
                    let rest = line.strip_prefix("highwater ready bootstrap=127.0.0.1:")?;
                    rest.split(' ').next()?.parse().ok()
                })
            }
            Kind::Kafka => Self::kafka(data),
        }
    }

    fn with_port_line(
        kind: Kind,
        mut command: Command,
        port: impl FnOnce(&str) -> Option<u16>,
    ) -> Result<Self> {
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", kind.name()))?;
        let mut line = String::new();
        let stdout = process.stdout.take().context("stdout is piped")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let port = port(&line).with_context(|| format!("{}: no port in '{line}'", kind.name()))?;
        Ok(Self {
            kind,
            port,
            process,
        })
    }

    fn kafka(data: &Path) -> Result<Self> {
        std::fs::create_dir_all(data)?;
        let (port, controller) = (free_port()?, free_port()?);
        let properties = data.join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
             log.dirs={}\noffsets.topic.replication.factor=1\n{RETENTION_CHECK}\n",
            data.join("log").display()
        );
        std::fs::write(&properties, text)?;
        let format = java()
            .args(["kafka.tools.StorageTool", "format", "--standalone", "-t"])
            .args(["MkU3OEVBNTcwNTJENDM2Qg", "-c"])
            .arg(&properties)
            .output()
            .context("cannot run java: cargo xtask interop installs Apache Kafka")?;
        ensure!(
            format.status.success(),
            "{}",
            String::from_utf8_lossy(&format.stderr)
        );
        let process = java()
            .arg("kafka.Kafka")
            .arg(&properties)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            kind: Kind::Kafka,
            port,
            process,
        })
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// User and system time so far, of all threads, in seconds; steps of 10 ms.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(&self.process.id().to_string())
    }

    /// Resident memory in bytes.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.process.id()))?;
        let pages: u64 = statm
            .split_whitespace()
            .nth(1)
            .context("/proc statm")?
            .parse()?;
        Ok(pages * PAGE_BYTES)
    }

    /// Ends the process, gently where that is how it is stopped.
    pub(super) fn stop(mut self) -> Result<()> {
        if self.kind == Kind::Floor {
            self.process.kill()?;
        } else {
            let id = self.process.id().to_string();
            Command::new("kill").args(["-TERM", &id]).status()?;
        }
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Binds all threads of a process to a CPU. A machine without it, or without `taskset`, leaves
/// them where they are.
pub(super) fn bind(process: u32, cpu: &str) {
    Command::new("taskset")
        .args(["-a", "-p", "-c", cpu, &process.to_string()])
        .output()
        .ok();
}

/// As [`Subject::cpu_seconds`], of this process.
pub(super) fn own_cpu_seconds() -> Result<f64> {
    cpu_seconds("self")
}

/// As [`Subject::cpu_seconds`], of any process.
pub(super) fn cpu_seconds(process: &str) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may hold blanks; fields 14 and 15 count from 1.
    let (_, fields) = stat.rsplit_once(')').context("/proc stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).context("stat")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Where an optimised build puts a binary.
pub(super) fn release_binary(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| tree::root().join("target"), PathBuf::from);
    target.join("release").join(name)
}

/// Where `cargo xtask interop` puts Apache Kafka's jars.
pub(super) fn kafka_libs() -> PathBuf {
    tree::root().join("target/interop/kafka-libs")
}

fn java() -> Command {
    let libs = kafka_libs();
    let mut command = Command::new("java");
    command
        .args(["-Xmx1g", "-Xms1g", "-cp"])
        .arg(libs.join("*"));
    command
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
