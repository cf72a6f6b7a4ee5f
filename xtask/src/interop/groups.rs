//! Consumer groups: one story with every usual client, Apache Kafka's group tools, old kcat.

use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::java::{Java, TOOLS};
use super::node::Node;
use super::tools::Tools;
use super::{Report, kcat, python};

/// The story of `interop/groups/story.py`, then tools on a node of their own.
pub(super) fn suite(binary: &Path, tools: &Tools, report: &mut Report) {
    python::group_story(binary, tools, report);
    python::old_confluent(binary, tools, report);
    let Ok(folder) = tempfile::tempdir() else {
        return report.case(
            "groups: a temporary directory",
            Err(anyhow::anyhow!("none")),
        );
    };
    let data = folder.path().join("data");
    let node = match Node::start(binary, &data, 0) {
        Ok(node) => node,
        Err(why) => return report.case("groups: a node to talk to", Err(why)),
    };
    let groups = Groups {
        java: Java::new(tools, &node.bootstrap),
        bootstrap: &node.bootstrap,
    };
    let cases: [(&str, Case<'_>); 5] = [
        (
            "ConsoleConsumer with a group and default settings",
            Groups::console,
        ),
        ("ConsumerGroupCommand: list and describe", Groups::describe),
        ("kcat's balanced consumer, old librdkafka", Groups::kcat),
        (
            "ConsumerGroupCommand: reset, delete offsets, delete",
            Groups::change,
        ),
        (
            "OffsetsMessageFormatter reads __consumer_offsets",
            Groups::formatter,
        ),
    ];
    for (name, case) in cases {
        report.case(name, case(&groups));
    }
    report.case("groups: graceful stop", node.stop());
    let name = "DumpLogSegments decodes every record of __consumer_offsets";
    report.case(name, dump(tools, &data));
}

type Case<'a> = fn(&Groups<'a>) -> Result<()>;

struct Groups<'a> {
    java: Java<'a>,
    bootstrap: &'a str,
}

impl Groups<'_> {
    fn produce(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let lines: String = numbers.map(|number| format!("line {number}\n")).collect();
        kcat::kcat(self.bootstrap, &["-P", "-t", "orders", "-p", "0"], &lines)?;
        Ok(())
    }

    fn console(&self) -> Result<()> {
        self.produce(0..30)?;
        let class = format!("{TOOLS}.consumer.ConsoleConsumer");
        let arguments = [
            "--topic",
            "orders",
            "--group",
            "shell",
            "--timeout-ms",
            "20000",
        ];
        let first = [
            &arguments[..],
            &["--from-beginning", "--max-messages", "20"],
        ]
        .concat();
        let read = self.java.client(&class, &first, "")?;
        ensure!(read.lines().count() == 20, "{read}");
        let rest = [&arguments[..], &["--max-messages", "10"]].concat();
        let read = self.java.client(&class, &rest, "")?;
        ensure!(
            read.starts_with("line 20\n") && read.ends_with("line 29\n"),
            "{read}"
        );
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Result<String> {
        let class = format!("{TOOLS}.consumer.group.ConsumerGroupCommand");
        self.java.client(&class, arguments, "")
    }

    fn describe(&self) -> Result<()> {
        self.produce(30..35)?;
        let listed = self.command(&["--list"])?;
        ensure!(listed.lines().any(|it| it == "shell"), "{listed}");
        let states = self.command(&["--list", "--state", "Empty"])?;
        ensure!(states.contains("shell"), "{states}");
        let told = self.command(&["--describe", "--group", "shell"])?;
        let row = words(&told, "orders")?;
        ensure!(row.get(2..6) == Some(&["0", "30", "35", "5"][..]), "{told}");
        let state = self.command(&["--describe", "--group", "shell", "--state"])?;
        ensure!(state.contains("Empty"), "{state}");
        Ok(())
    }

    /// A member that stays, seen by the tools; then another run goes on where it ended.
    fn kcat(&self) -> Result<()> {
        let member = Member::join(self.bootstrap)?;
        let told = self.until("--members", |told| told.contains("orders:0"))?;
        ensure!(told.contains("orders:0"), "no assignment is told:\n{told}");
        let refused = self.command(&RESET_BALANCED);
        let why = format!("{refused:?}");
        ensure!(why.contains("inactive"), "a live group was reset: {why}");
        member.leave()?;
        let told = self.until("--state", |told| told.contains("Empty"))?;
        ensure!(told.contains("Empty"), "{told}");
        self.produce(35..40)?;
        let more = ["-G", "balanced", "-c", "5", "-q", "orders"];
        let read = kcat::kcat(self.bootstrap, &more, "")?;
        ensure!(
            read.starts_with("line 35\n") && read.ends_with("line 39\n"),
            "{read}"
        );
        Ok(())
    }

    /// Describes the group "balanced" until it looks as it should, or for a while.
    fn until(&self, what: &str, holds: fn(&str) -> bool) -> Result<String> {
        let arguments = ["--describe", "--group", "balanced", "--verbose", what];
        for _ in 0..10 {
            if let Ok(told) = self.command(&arguments)
                && holds(&told)
            {
                return Ok(told);
            }
        }
        self.command(&arguments)
    }

    fn change(&self) -> Result<()> {
        self.command(&RESET_BALANCED)?;
        let told = self.command(&["--describe", "--group", "balanced"])?;
        let row = words(&told, "orders")?;
        ensure!(row.get(3) == Some(&"7"), "{told}");
        let arguments = [
            "--delete-offsets",
            "--group",
            "balanced",
            "--topic",
            "orders",
        ];
        self.command(&arguments)?;
        self.command(&["--delete", "--group", "shell"])?;
        let listed = self.command(&["--list"])?;
        ensure!(!listed.contains("shell"), "still listed: {listed}");
        Ok(())
    }

    fn formatter(&self) -> Result<()> {
        let class = format!("{TOOLS}.consumer.ConsoleConsumer");
        let mut arguments = vec!["--topic", "__consumer_offsets", "--from-beginning"];
        arguments.extend([
            "--timeout-ms",
            "20000",
            "--max-messages",
            "9",
            "--formatter",
        ]);
        let formatter = format!("{TOOLS}.consumer.OffsetsMessageFormatter");
        arguments.push(&formatter);
        let told = self.java.client(&class, &arguments, "")?;
        let shown = told.contains("\"group\":\"shell\"") && told.contains("\"offset\":30");
        ensure!(shown, "{told}");
        Ok(())
    }
}

const RESET_BALANCED: [&str; 7] = [
    "--reset-offsets",
    "--group",
    "balanced",
    "--topic",
    "orders",
    "--execute",
    "--to-offset=7",
];

/// The words of the first row of a table that names `what`.
fn words<'a>(told: &'a str, what: &str) -> Result<Vec<&'a str>> {
    let row = told.lines().skip_while(|it| !it.starts_with("GROUP"));
    let row = row.skip(1).find(|it| it.contains(what));
    let row = row.with_context(|| format!("no row of {what}:\n{told}"))?;
    Ok(row.split_whitespace().collect())
}

/// A kcat that stays in the group "balanced" until it is asked to leave.
struct Member(Child);

impl Member {
    fn join(bootstrap: &str) -> Result<Self> {
        let start = "auto.offset.reset=earliest";
        let member = std::process::Command::new("kcat")
            .args(["-b", bootstrap, "-X", start, "-G", "balanced", "orders"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run kcat")?;
        Ok(Self(member))
    }

    fn leave(mut self) -> Result<()> {
        let id = self.0.id().to_string();
        std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn dump(tools: &Tools, data: &Path) -> Result<()> {
    let mut files = Vec::new();
    for partition in std::fs::read_dir(data)? {
        let log = partition?.path().join("00000000000000000000.log");
        let is_ours = log.to_string_lossy().contains("__consumer_offsets-");
        if is_ours && log.metadata().is_ok_and(|it| it.len() > 0) {
            files.push(log.to_string_lossy().into_owned());
        }
    }
    ensure!(!files.is_empty(), "no record was written");
    let files = files.join(",");
    let arguments = ["--offsets-decoder", "--print-data-log", "--files", &files];
    let told = Java::new(tools, "").run(&format!("{TOOLS}.DumpLogSegments"), &arguments, "")?;
    for wanted in ["\"type\":\"1\"", "\"type\":\"2\"", "\"group\":\"shell\""] {
        ensure!(told.contains(wanted), "no {wanted} in:\n{told}");
    }
    for complaint in ["isvalid: false", "xception", "Could not", "Failed"] {
        ensure!(!told.contains(complaint), "'{complaint}' in:\n{told}");
    }
    Ok(())
}
