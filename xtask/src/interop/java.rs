//! Apache Kafka 4.4's own tools: over the wire, and over our files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::Report;
use super::node::Node;
use super::tools::Tools;

/// Where the classes of the tools are.
pub(super) const TOOLS: &str = "org.apache.kafka.tools";

/// One node, used by every tool in turn; then its files, read by Kafka's dump.
pub(super) fn suite(binary: &Path, tools: &Tools, report: &mut Report) {
    let Ok(folder) = tempfile::tempdir() else {
        return report.case("java", no_folder());
    };
    let data = folder.path().join("data");
    // Small segments and many snapshots: the dump gets to see every kind of file.
    let settings = [
        "metadata.log.max.record.bytes.between.snapshots=500",
        "log.segment.bytes=1048576",
        "log.index.interval.bytes=1000",
    ];
    let node = match Node::start_with(binary, &data, 0, &settings) {
        Ok(node) => node,
        Err(why) => return report.case("java: a node to talk to", Err(why)),
    };
    let java = Java::new(tools, &node.bootstrap);
    let cases: [(&str, Case<'_>); 8] = [
        ("TopicCommand: create, list, describe, delete", Java::topics),
        (
            "ConsoleProducer with default settings, ConsoleConsumer by partition and offset",
            Java::console,
        ),
        (
            "GetOffsetShell: every special time, and by time",
            Java::offsets,
        ),
        (
            "ProducerPerformance, acks=1 and all, each codec",
            Java::performance,
        ),
        ("VerifiableProducer", Java::verifiable),
        ("ConfigCommand: describe topic and broker", Java::configs),
        (
            "BrokerApiVersionsCommand, FeatureCommand, ClusterTool",
            Java::cluster,
        ),
        ("ReplicaVerificationTool", Java::replicas),
    ];
    for (name, case) in cases {
        report.case(name, case(&java));
    }
    report.case("graceful stop", node.stop());
    report.case(
        "DumpLogSegments reads every file of the directory",
        java.dump(&data),
    );
}

fn no_folder() -> Result<()> {
    anyhow::bail!("cannot make a temporary directory")
}

type Case<'a> = fn(&Java<'a>) -> Result<()>;

/// The tools, and the node that they talk to.
pub(super) struct Java<'a> {
    tools: &'a Tools,
    bootstrap: String,
}

impl<'a> Java<'a> {
    pub(super) fn new(tools: &'a Tools, bootstrap: &str) -> Self {
        let bootstrap = bootstrap.to_owned();
        Self { tools, bootstrap }
    }

    fn topics(&self) -> Result<()> {
        let class = format!("{TOOLS}.TopicCommand");
        let create = ["--create", "--topic", "made", "--partitions", "3"];
        self.client(&class, &create, "")?;
        let listed = self.client(&class, &["--list"], "")?;
        ensure!(
            listed.lines().any(|line| line == "made"),
            "not listed: {listed}"
        );
        let described = self.client(&class, &["--describe", "--topic", "made"], "")?;
        ensure!(described.contains("PartitionCount: 3"), "{described}");
        ensure!(described.matches("Leader: 1").count() == 3, "{described}");
        self.client(&class, &["--delete", "--topic", "made"], "")?;
        let listed = self.client(&class, &["--list"], "")?;
        ensure!(
            !listed.lines().any(|line| line == "made"),
            "still listed: {listed}"
        );
        Ok(())
    }

    fn console(&self) -> Result<()> {
        let lines: Vec<String> = (0..100).map(|number| format!("line {number}\n")).collect();
        let class = format!("{TOOLS}.ConsoleProducer");
        self.client(&class, &["--topic", "console"], &lines.concat())?;
        for first in [0, 42] {
            let rest = lines.get(first..).unwrap_or_default();
            let read = self.consume("console", first, rest.len())?;
            ensure!(read == rest.concat(), "from {first} on:\n{read}");
        }
        Ok(())
    }

    /// What ConsoleConsumer prints of partition 0.
    fn consume(&self, topic: &str, offset: usize, count: usize) -> Result<String> {
        let (offset, count) = (offset.to_string(), count.to_string());
        let mut arguments = vec!["--topic", topic, "--partition", "0", "--offset", &offset];
        arguments.extend(["--max-messages", &count, "--timeout-ms", "20000"]);
        self.client(&format!("{TOOLS}.consumer.ConsoleConsumer"), &arguments, "")
    }

    fn offsets(&self) -> Result<()> {
        for (time, offset) in [
            ("latest", "100"),
            ("-1", "100"),
            ("earliest", "0"),
            ("-2", "0"),
            // Records of one millisecond share the largest timestamp: any of them may be named.
            ("max-timestamp", ""),
            ("earliest-local", "0"),
            ("1", "0"),
        ] {
            let told = self.offset(time)?;
            ensure!(
                told.starts_with(&format!("console:0:{offset}")),
                "{time}: {told}"
            );
        }
        // The tool prints nothing for a partition that has no such offset.
        for time in ["latest-tiered", "earliest-pending-upload", "4102444800000"] {
            let told = self.offset(time)?;
            ensure!(told.is_empty(), "{time}: {told}");
        }
        Ok(())
    }

    fn offset(&self, time: &str) -> Result<String> {
        let class = format!("{TOOLS}.GetOffsetShell");
        let arguments = ["--topic-partitions", "console:0", "--time", time];
        Ok(self.client(&class, &arguments, "")?.trim().to_owned())
    }

    fn performance(&self) -> Result<()> {
        for (acks, codec) in [
            ("acks=1", "compression.type=none"),
            ("acks=all", "compression.type=none"),
            ("acks=all", "compression.type=gzip"),
            ("acks=all", "compression.type=snappy"),
            ("acks=all", "compression.type=lz4"),
            ("acks=all", "compression.type=zstd"),
        ] {
            let mut arguments = vec!["--topic", "performance", "--num-records", "10000"];
            arguments.extend(["--record-size", "500", "--throughput", "-1"]);
            arguments.extend(["--command-property", acks, "--command-property", codec]);
            let class = format!("{TOOLS}.ProducerPerformance");
            let told = self.client(&class, &arguments, "")?;
            ensure!(
                told.contains("10000 records sent"),
                "{acks} {codec}: {told}"
            );
        }
        // Every record can be read, whatever it was packed with.
        let read = self.consume("performance", 0, 60_000)?;
        ensure!(
            read.lines().count() == 60_000,
            "{} lines",
            read.lines().count()
        );
        Ok(())
    }

    fn verifiable(&self) -> Result<()> {
        let class = format!("{TOOLS}.VerifiableProducer");
        let told = self.client(
            &class,
            &["--topic", "verifiable", "--max-messages", "50"],
            "",
        )?;
        ensure!(told.contains("\"sent\":50,\"acked\":50"), "{told}");
        Ok(())
    }

    fn configs(&self) -> Result<()> {
        let class = format!("{TOOLS}.ConfigCommand");
        for (kind, name, all, expected) in [
            ("topics", "console", true, "retention.ms=604800000"),
            (
                "topics",
                "console",
                false,
                "Dynamic configs for topic console are:",
            ),
            ("brokers", "1", true, "num.partitions="),
            ("brokers", "1", false, "Dynamic configs for broker 1 are:"),
        ] {
            let mut arguments = vec!["--describe", "--entity-type", kind, "--entity-name", name];
            if all {
                arguments.push("--all");
            }
            let told = self.client(&class, &arguments, "")?;
            ensure!(told.contains(expected), "{kind} {name}: {told}");
        }
        let arguments = ["--describe", "--entity-type", "brokers", "--entity-default"];
        self.client(&class, &arguments, "")?;
        Ok(())
    }

    fn cluster(&self) -> Result<()> {
        let told = self.client(&format!("{TOOLS}.BrokerApiVersionsCommand"), &[], "")?;
        ensure!(told.contains("Fetch(1): 4 to 18"), "{told}");
        ensure!(told.contains("Produce(0): 0 to 13"), "{told}");
        let told = self.client(&format!("{TOOLS}.FeatureCommand"), &["describe"], "")?;
        ensure!(told.contains("FinalizedVersionLevel: 4.4-IV2"), "{told}");
        let at = ["--bootstrap-server", self.bootstrap.as_str()];
        let class = format!("{TOOLS}.ClusterTool");
        let told = self.run(&class, &[&["cluster-id"], &at[..]].concat(), "")?;
        ensure!(told.contains("Cluster ID: "), "{told}");
        let told = self.run(&class, &[&["list-endpoints"], &at[..]].concat(), "")?;
        ensure!(told.contains("127.0.0.1"), "{told}");
        Ok(())
    }

    /// Fetches as a debugging replica (id -2) and compares; runs until it is stopped.
    fn replicas(&self) -> Result<()> {
        let mut arguments = vec!["--broker-list", self.bootstrap.as_str()];
        arguments.extend([
            "--topics-include",
            "console",
            "--report-interval-ms",
            "1000",
        ]);
        let class = format!("{TOOLS}.ReplicaVerificationTool");
        let output = self
            .command("5", &class, &arguments)
            .stderr(Stdio::null())
            .output()
            .context("cannot run java")?;
        let told = String::from_utf8_lossy(&output.stdout);
        ensure!(
            told.contains("max lag is 0 for partition console-0"),
            "{told}"
        );
        Ok(())
    }

    /// Every kind of file is there, and Kafka's dump complains of none.
    fn dump(&self, data: &Path) -> Result<()> {
        let files = log_files(data)?;
        for kind in ["log", "index", "timeindex", "snapshot"] {
            let mut of_kind = files.iter().filter(|file| extension(file) == kind);
            ensure!(of_kind.any(|file| !is_metadata(file)), "no .{kind} file");
        }
        self.dump_logs(data)
    }

    /// Everything that Kafka's dump knows how to read, snapshots of the metadata among it, without
    /// one complaint.
    pub(super) fn dump_logs(&self, data: &Path) -> Result<()> {
        let files = log_files(data)?.into_iter();
        let (metadata, records): (Vec<_>, Vec<_>) = files.partition(|file| is_metadata(file));
        let snapshots = metadata
            .iter()
            .filter(|file| extension(file) == "checkpoint");
        ensure!(snapshots.count() > 1, "no snapshot of the metadata");
        for (files, decoder) in [
            (records, None),
            (metadata, Some("--cluster-metadata-decoder")),
        ] {
            if files.is_empty() {
                continue;
            }
            let names: Vec<_> = files.iter().map(|it| it.to_string_lossy()).collect();
            let names = names.join(",");
            let mut arguments = vec!["--deep-iteration", "--print-data-log", "--files", &names];
            arguments.extend(decoder);
            let told = self.run(&format!("{TOOLS}.DumpLogSegments"), &arguments, "")?;
            for complaint in [
                "isvalid: false",
                "Found",
                "Error",
                "Mismatch",
                "xception",
                "orrupt",
                "Could not",
            ] {
                let line = told.lines().find(|line| line.contains(complaint));
                ensure!(line.is_none(), "'{complaint}' in {line:?}");
            }
            let dumped = told
                .lines()
                .filter(|line| line.starts_with("Dumping "))
                .count();
            ensure!(
                dumped == files.len(),
                "{dumped} of {} files dumped",
                files.len()
            );
        }
        Ok(())
    }

    /// Runs a tool against the node: what it prints; any complaint is a failure.
    pub(super) fn client(&self, class: &str, arguments: &[&str], input: &str) -> Result<String> {
        let mut all = vec!["--bootstrap-server", self.bootstrap.as_str()];
        all.extend(arguments);
        self.run(class, &all, input)
    }

    /// Runs a tool.
    pub(super) fn run(&self, class: &str, arguments: &[&str], input: &str) -> Result<String> {
        let mut process = self
            .command("120", class, arguments)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run java")?;
        process
            .stdin
            .take()
            .context("stdin is piped")?
            .write_all(input.as_bytes())?;
        let output = process.wait_with_output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr);
        // Of a topic that is made for them clients hear only the next time.
        let complains = complaints
            .lines()
            .filter(|line| !line.contains("UNKNOWN_TOPIC_OR_PARTITION"))
            .any(|line| line.contains(" WARN ") || line.contains(" ERROR "));
        ensure!(
            output.status.success() && !complains,
            "{class} {arguments:?}: {}\n{told}{complaints}",
            output.status,
        );
        Ok(told)
    }

    fn command(&self, seconds: &str, class: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args([seconds, "java", "-XX:TieredStopAtLevel=1", "-Xshare:auto"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-cp")
            .arg(self.tools.kafka_libs.join("*"))
            .arg(class)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }
}

fn is_metadata(file: &Path) -> bool {
    file.to_string_lossy().contains("__cluster_metadata-0")
}

fn log_files(data: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for partition in std::fs::read_dir(data)? {
        let partition = partition?.path();
        if !partition.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(partition)? {
            let file = file?.path();
            let known = ["log", "index", "timeindex", "snapshot", "checkpoint"];
            if known.contains(&extension(&file)) && file.metadata()?.len() > 0 {
                files.push(file);
            }
        }
    }
    Ok(files)
}

fn extension(file: &Path) -> &str {
    let extension = file.extension().and_then(|kind| kind.to_str());
    extension.unwrap_or_default()
}
