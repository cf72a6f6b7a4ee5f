//! Three brokers and a controller of their own: what each is told, and how it is started.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Subject, archive};

/// The brokers' ids.
pub(crate) const BROKERS: [i32; 3] = [1, 2, 3];
/// The controller's id; it is no broker.
pub(crate) const CONTROLLER: i32 = 4;

/// Where the nodes are, and with what they are run.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) subject: Subject,
    /// One folder a node, and their logs.
    pub(crate) home: PathBuf,
    /// Apache Kafka's jars.
    pub(crate) kafka_libs: PathBuf,
    /// The highwater binary.
    pub(crate) binary: PathBuf,
    /// Further settings of every node, each `key=value`.
    pub(crate) settings: Vec<String>,
    /// Whether what brokers say to each other goes through a proxy.
    pub(crate) is_proxied: bool,
    /// What JVMs are made for.
    pub(crate) life: Life,
}

/// How long a JVM is to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It starts soon and takes little.
    Short(&'static str),
    /// It compiles well what is hot, with the heap that Apache Kafka's scripts give it.
    Long,
}

/// The ports of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    /// For clients.
    pub(crate) client: u16,
    /// For other brokers.
    pub(crate) internal: u16,
    /// Where other brokers are told to connect: the proxy, or `internal` itself.
    pub(crate) advertised: u16,
}

impl Setup {
    /// The data directory of a node.
    pub(crate) fn data(&self, id: i32) -> PathBuf {
        self.home.join(format!("node-{id}"))
    }

    /// Where its log goes.
    pub(crate) fn log(&self, id: i32) -> PathBuf {
        self.home.join(format!("node-{id}.log"))
    }

    fn config(&self, id: i32) -> PathBuf {
        self.home.join(format!("node-{id}.properties"))
    }

    /// Writes the config of each node and formats its directory.
    pub(super) fn prepare(&self, ports: &[(i32, Ports)], controller: u16) -> Result<()> {
        std::fs::create_dir_all(&self.home)?;
        if self.subject == Subject::Kafka {
            archive::make(&self.kafka_libs)?;
        }
        for (id, ports) in ports {
            let mut text = self.common(*id, controller)?;
            write!(
                text,
                "process.roles=broker\n\
                 listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal}\n\
                 advertised.listeners=CLIENT://127.0.0.1:{client},\
                 INTERNAL://127.0.0.1:{advertised}\n\
                 inter.broker.listener.name=INTERNAL\n",
                client = ports.client,
                internal = ports.internal,
                advertised = ports.advertised,
            )?;
            std::fs::write(self.config(*id), text)?;
            self.identify(*id)?;
        }
        let mut text = self.common(CONTROLLER, controller)?;
        write!(
            text,
            "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:{controller}\n"
        )?;
        std::fs::write(self.config(CONTROLLER), text)?;
        self.format_controller()
    }

    fn common(&self, id: i32, controller: u16) -> Result<String> {
        let mut text = format!(
            "node.id={id}\n\
             controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=\
             CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT\n\
             log.dirs={}\n\
             default.replication.factor=3\n\
             offsets.topic.replication.factor=3\n\
             offsets.topic.num.partitions=3\n\
             group.initial.rebalance.delay.ms=0\n\
             auto.leader.rebalance.enable=false\n",
            self.data(id).display()
        );
        if self.subject == Subject::Kafka {
            // Its defaults are for larger heaps.
            text.push_str(
                "log.cleaner.dedupe.buffer.size=4194304\nlog.cleaner.io.buffer.size=65536\n",
            );
        }
        for setting in &self.settings {
            writeln!(text, "{setting}")?;
        }
        Ok(text)
    }

    /// What formatting a broker's directory amounts to, without another process.
    fn identify(&self, id: i32) -> Result<()> {
        let data = self.data(id);
        std::fs::create_dir_all(&data)?;
        let text = format!(
            "node.id={id}\ndirectory.id=HighwaterNode{id:08}A\nversion=1\ncluster.id={CLUSTER}\n"
        );
        std::fs::write(data.join("meta.properties"), text)?;
        Ok(())
    }

    fn format_controller(&self) -> Result<()> {
        let config = self.config(CONTROLLER);
        let (program, mut arguments) = match self.subject {
            Subject::Kafka => self.java("kafka.tools.StorageTool"),
            Subject::Highwater => (self.binary.clone().into_os_string(), Vec::new()),
        };
        arguments.push("format".into());
        let output = Command::new(program)
            .args(arguments)
            .args(["--standalone", "--cluster-id", CLUSTER, "--config"])
            .arg(config)
            .output()
            .context("cannot format the controller's directory")?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "format: {complaints}");
        Ok(())
    }

    /// The command line of a node.
    pub(super) fn command(&self, id: i32) -> (OsString, Vec<OsString>) {
        let config = self.config(id).into_os_string();
        match self.subject {
            Subject::Kafka => {
                let (program, mut arguments) = self.java("kafka.Kafka");
                arguments.push(config);
                (program, arguments)
            }
            Subject::Highwater => {
                let arguments = vec!["start".into(), "--config".into(), config];
                (self.binary.clone().into_os_string(), arguments)
            }
        }
    }

    fn java(&self, class: &str) -> (OsString, Vec<OsString>) {
        match self.life {
            Life::Short(heap) => java(&self.kafka_libs, heap, class),
            Life::Long => {
                let flags = ["-Xms1g", "-Xmx1g"];
                command(&self.kafka_libs, flags.map(OsString::from).to_vec(), class)
            }
        }
    }
}

/// The command line of a class of Apache Kafka, for short lives on few CPUs.
pub(crate) fn java(libs: &Path, heap: &str, class: &str) -> (OsString, Vec<OsString>) {
    let flags = [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        "-Djava.net.preferIPv4Stack=true",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    ];
    let mut arguments = vec![OsString::from(format!("-Xmx{heap}"))];
    arguments.extend(flags.map(OsString::from));
    let archive = archive::path(libs);
    if archive.exists() {
        let flag = format!("-XX:SharedArchiveFile={}", archive.display());
        arguments.push(flag.into());
    }
    command(libs, arguments, class)
}

fn command(libs: &Path, mut arguments: Vec<OsString>, class: &str) -> (OsString, Vec<OsString>) {
    arguments.push("-cp".into());
    arguments.push(libs.join("*").into_os_string());
    arguments.push(class.into());
    ("java".into(), arguments)
}

/// Every cluster's id: they never meet.
const CLUSTER: &str = "HighwaterTortureXtaskQ";

/// Free ports below those that the system picks for clients: a node that is started again finds
/// its port as it left it.
pub(super) fn free_ports(count: usize) -> Result<Vec<u16>> {
    let seed = nanoseconds();
    let mut ports = Vec::new();
    for step in 0..10_000_u16 {
        let port = 20_000 + (seed % 10_000 + step) % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            ports.push(port);
        }
        if ports.len() == count {
            return Ok(ports);
        }
    }
    anyhow::bail!("no {count} free ports between 20000 and 30000")
}

fn nanoseconds() -> u16 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u16::try_from(now.map_or(0, |it| it.subsec_nanos() >> 8) % 10_000).unwrap_or(0)
}

/// Borrows arguments as a process takes them.
pub(crate) fn borrowed(arguments: &[OsString]) -> Vec<&OsStr> {
    arguments.iter().map(OsString::as_os_str).collect()
}

/// Says something to whoever watches.
pub(crate) fn say(what: &str) {
    writeln!(std::io::stderr(), "{what}").ok();
}
