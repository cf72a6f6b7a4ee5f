//! Suites that are written in Python, one process each: see `interop/`.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, ensure};

use super::Report;
use super::tools::Tools;
use crate::tree;

/// The newest librdkafka: two rounds a codec; `HIGHWATER_INTEROP_ROUNDS` asks for more.
pub(super) fn librdkafka(binary: &Path, tools: &Tools, report: &mut Report) {
    let rounds = std::env::var("HIGHWATER_INTEROP_ROUNDS").unwrap_or_else(|_| "2".to_owned());
    let arguments = ["--binary".as_ref(), binary.as_os_str()];
    suite("clients.py", &arguments, tools, report);
    let [flag, binary] = arguments;
    let arguments = [flag, binary, "--rounds".as_ref(), rounds.as_ref()];
    suite("librdkafka.py", &arguments, tools, report);
}

/// kafka-python, old and new.
pub(super) fn kafka_python(binary: &Path, tools: &Tools, report: &mut Report) {
    let arguments = [
        "--binary".as_ref(),
        binary.as_os_str(),
        "--packages".as_ref(),
        tools.kafka_pythons.as_os_str(),
    ];
    suite("kafka_python.py", &arguments, tools, report);
}

/// Three members of a group of every usual client, through kills and restarts.
pub(super) fn group_story(binary: &Path, tools: &Tools, report: &mut Report) {
    let arguments = [
        "--binary".as_ref(),
        binary.as_os_str(),
        "--kafka-libs".as_ref(),
        tools.kafka_libs.as_os_str(),
        "--go".as_ref(),
        tools.go_members.as_os_str(),
        "--javascript".as_ref(),
        tools.javascript.as_os_str(),
    ];
    suite("groups/story.py", &arguments, tools, report);
}

/// The confluent-kafka of case C-10.
pub(super) fn old_confluent(binary: &Path, tools: &Tools, report: &mut Report) {
    let arguments = [
        "--binary".as_ref(),
        binary.as_os_str(),
        "--package".as_ref(),
        tools.old_confluent.as_os_str(),
    ];
    suite("old_confluent.py", &arguments, tools, report);
}

/// A data directory that goes back and forth between Apache Kafka and highwater, and one that
/// Apache Kafka wrote long ago.
pub(super) fn directory(binary: &Path, tools: &Tools, report: &mut Report) {
    let fixture = match unpack("one-node-clean") {
        Ok(fixture) => fixture,
        Err(why) => return report.case("directory.py: a fixture", Err(why)),
    };
    let arguments = [
        "--binary".as_ref(),
        binary.as_os_str(),
        "--kafka-libs".as_ref(),
        tools.kafka_libs.as_os_str(),
        "--fixture".as_ref(),
        fixture.path().as_os_str(),
    ];
    suite("directory.py", &arguments, tools, report);
}

/// The log directory of a set of fixtures.
fn unpack(set: &str) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (path, bytes) in highwater_fixtures::kafka_data(set) {
        let Ok(path) = path.strip_prefix("data") else {
            continue;
        };
        let path = folder.path().join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(folder)
}

/// The same bytes to Apache Kafka and to highwater.
pub(super) fn differences(binary: &Path, tools: &Tools, report: &mut Report) {
    with_kafka("differences.py", binary, tools, report);
}

fn with_kafka(script: &str, binary: &Path, tools: &Tools, report: &mut Report) {
    let arguments = [
        "--binary".as_ref(),
        binary.as_os_str(),
        "--kafka-libs".as_ref(),
        tools.kafka_libs.as_os_str(),
    ];
    suite(script, &arguments, tools, report);
}

/// Each line `ok NAME` or `FAILED NAME` is a case; lines below a failure tell more of it.
fn suite(script: &str, arguments: &[&OsStr], tools: &Tools, report: &mut Report) {
    if let Err(why) = run(script, arguments, tools, report) {
        report.case(script, Err(why));
    }
}

fn run(script: &str, arguments: &[&OsStr], tools: &Tools, report: &mut Report) -> Result<()> {
    run_for(script, arguments, tools, report, |_| {
        anyhow::bail!("nothing can be asked for")
    })
}

/// Runs a script that asks for things: each line `do WHAT` is answered with `done`, or why not.
pub(super) fn run_for(
    script: &str,
    arguments: &[&OsStr],
    tools: &Tools,
    report: &mut Report,
    mut act: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut process = Command::new(&tools.python)
        .arg(tree::root().join("interop").join(script))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run Python")?;
    let mut stdin = process.stdin.take().context("stdin is piped")?;
    let stdout = process.stdout.take().context("stdout is piped")?;
    let mut stderr = process.stderr.take().context("stderr is piped")?;
    // Read aside, or a process that complains a lot would stand still.
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).ok();
        String::from_utf8_lossy(&text).into_owned()
    });
    let (mut cases, mut failures) = (0, 0);
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if let Some(name) = line.strip_prefix("ok ") {
            report.case(name.trim(), Ok(()));
            cases += 1;
        } else if let Some(name) = line.strip_prefix("FAILED ") {
            report.case(name.trim(), Err(anyhow!("see {script}")));
            failures += 1;
        } else if let Some(what) = line.strip_prefix("do ") {
            let answer = act(what).map_or_else(|why| format!("{why:#}"), |()| "done".to_owned());
            writeln!(stdin, "{}", answer.replace('\n', " "))?;
        } else {
            eprintln!("        {line}");
        }
    }
    let status = process.wait()?;
    let complaints = complaints.join().unwrap_or_default();
    ensure!(status.success() || failures > 0, "{status}\n{complaints}");
    if failures > 0 {
        eprintln!("{complaints}");
    }
    ensure!(cases + failures > 0, "no case was run");
    Ok(())
}
