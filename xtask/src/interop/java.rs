//! Apache Kafka 4.4's own tools: over the wire, and over our files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::Report;
use super::node::Node;
use super::tools::Tools;

const TOOLS: &str = "org.apache.kafka.tools";

/// One node, used by every tool in turn; then its files, read by Kafka's dump.
pub(super) fn suite(binary: &Path, tools: &Tools, report: &mut Report) {
    let Ok(folder) = tempfile::tempdir() else {
        return report.case("java", no_folder());
    };
    let data = folder.path().join("data");
    let node = match Node::start(binary, &data, 0) {
        Ok(node) => node,
        Err(why) => return report.case("java: a node to talk to", Err(why)),
    };
    let java = Java {
        tools,
        bootstrap: node.bootstrap.clone(),
    };
    report.case(
        "TopicCommand: create, list, describe, delete",
        java.topics(),
    );
    report.case(
        "ConsoleProducer with default settings, ConsoleConsumer by offset",
        java.console(),
    );
    report.case(
        "GetOffsetShell: latest, earliest, max timestamp, by time",
        java.offsets(),
    );
    report.case("ProducerPerformance", java.performance());
    report.case("ConfigCommand: describe topic and broker", java.configs());
    report.case("BrokerApiVersionsCommand", java.api_versions());
    report.case("graceful stop", node.stop());
    report.case(
        "DumpLogSegments reads every file of the directory",
        java.dump(&data),
    );
}

fn no_folder() -> Result<()> {
    anyhow::bail!("cannot make a temporary directory")
}

struct Java<'a> {
    tools: &'a Tools,
    bootstrap: String,
}

impl Java<'_> {
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
        let sent: String = (0..100).map(|number| format!("line {number}\n")).collect();
        self.client(
            &format!("{TOOLS}.ConsoleProducer"),
            &["--topic", "console"],
            &sent,
        )?;
        let consume = [
            "--topic",
            "console",
            "--partition",
            "0",
            "--offset",
            "0",
            "--max-messages",
            "100",
            "--timeout-ms",
            "20000",
        ];
        let class = format!("{TOOLS}.consumer.ConsoleConsumer");
        let read = self.client(&class, &consume, "")?;
        ensure!(read == sent, "sent 100 lines, read back:\n{read}");
        Ok(())
    }

    fn offsets(&self) -> Result<()> {
        let class = format!("{TOOLS}.GetOffsetShell");
        for (time, offset) in [
            ("latest", "100"),
            ("earliest", "0"),
            ("max-timestamp", "99"),
        ] {
            let arguments = ["--topic-partitions", "console:0", "--time", time];
            let told = self.client(&class, &arguments, "")?;
            let expected = format!("console:0:{offset}");
            // Records of one millisecond share the largest timestamp: any of them may be named.
            let is_right = told.trim() == expected || time == "max-timestamp";
            ensure!(is_right && told.starts_with("console:0:"), "{time}: {told}");
        }
        let told = self.client(
            &class,
            &["--topic-partitions", "console:0", "--time", "1"],
            "",
        )?;
        ensure!(told.trim() == "console:0:0", "by time: {told}");
        Ok(())
    }

    fn performance(&self) -> Result<()> {
        let arguments = [
            "--topic",
            "performance",
            "--num-records",
            "20000",
            "--record-size",
            "500",
            "--throughput",
            "-1",
        ];
        let told = self.client(&format!("{TOOLS}.ProducerPerformance"), &arguments, "")?;
        ensure!(told.contains("20000 records sent"), "{told}");
        Ok(())
    }

    fn configs(&self) -> Result<()> {
        let class = format!("{TOOLS}.ConfigCommand");
        let topic = [
            "--describe",
            "--all",
            "--entity-type",
            "topics",
            "--entity-name",
            "console",
        ];
        let told = self.client(&class, &topic, "")?;
        ensure!(told.contains("retention.ms=604800000"), "{told}");
        let broker = [
            "--describe",
            "--all",
            "--entity-type",
            "brokers",
            "--entity-name",
            "1",
        ];
        let told = self.client(&class, &broker, "")?;
        ensure!(told.contains("num.partitions="), "{told}");
        Ok(())
    }

    fn api_versions(&self) -> Result<()> {
        let told = self.client(&format!("{TOOLS}.BrokerApiVersionsCommand"), &[], "")?;
        ensure!(told.contains("Fetch(1): 4 to 18"), "{told}");
        ensure!(told.contains("Produce(0): 0 to 13"), "{told}");
        Ok(())
    }

    /// Everything that Kafka's dump knows how to read, without one complaint.
    fn dump(&self, data: &Path) -> Result<()> {
        let mut dumped = 0;
        for file in log_files(data)? {
            let decoder = file.to_string_lossy().contains("__cluster_metadata-0");
            let mut arguments = vec!["--deep-iteration", "--print-data-log", "--files"];
            let path = file.to_string_lossy().into_owned();
            arguments.push(&path);
            if decoder {
                arguments.push("--cluster-metadata-decoder");
            }
            let told = self.run(&format!("{TOOLS}.DumpLogSegments"), &arguments, "")?;
            for complaint in [
                "isvalid: false",
                "Found",
                "Error",
                "Mismatch",
                "xception",
                "corrupt",
            ] {
                ensure!(
                    !told.contains(complaint),
                    "{path}: '{complaint}' in\n{told}"
                );
            }
            dumped += 1;
        }
        ensure!(dumped > 8, "only {dumped} files found");
        Ok(())
    }

    fn client(&self, class: &str, arguments: &[&str], input: &str) -> Result<String> {
        let mut all = vec!["--bootstrap-server", self.bootstrap.as_str()];
        all.extend(arguments);
        self.run(class, &all, input)
    }

    fn run(&self, class: &str, arguments: &[&str], input: &str) -> Result<String> {
        let class_path = self.tools.kafka_libs.join("*");
        let mut process = Command::new("timeout")
            .args([
                "120",
                "java",
                "-XX:TieredStopAtLevel=1",
                "-Xshare:auto",
                "-cp",
            ])
            .arg(class_path)
            .arg(class)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
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
        ensure!(
            output.status.success(),
            "{class} {arguments:?}: {}\n{told}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(told)
    }
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
            let kind = file
                .extension()
                .and_then(|kind| kind.to_str())
                .unwrap_or_default();
            let is_empty = file.metadata()?.len() == 0;
            if matches!(
                kind,
                "log" | "index" | "timeindex" | "snapshot" | "checkpoint"
            ) && !is_empty
            {
                files.push(file);
            }
        }
    }
    Ok(files)
}
