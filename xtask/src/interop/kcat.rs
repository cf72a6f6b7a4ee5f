//! Debian's kcat: an old librdkafka (2.0.2).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::Report;
use super::node::Node;
use super::tools::Tools;

/// Produces and consumes with each codec, across a `kill -9`.
pub(super) fn suite(binary: &Path, _tools: &Tools, report: &mut Report) {
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let name = format!("kcat, {codec}, produce, kill -9, consume");
        report.case(&name, round_trip(binary, codec));
    }
    report.case("kcat, metadata", metadata(binary));
    report.case("kcat, offsets by time", offsets(binary));
}

fn round_trip(binary: &Path, codec: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let node = Node::start(binary, &data, 0)?;
    let port = node.port()?;
    let sent: String = (0..1000)
        .map(|number| format!("key-{number}\tvalue {number}\n"))
        .collect();
    let compression = format!("compression.codec={codec}");
    let produce = [
        "-P",
        "-t",
        "orders",
        "-K",
        "\t",
        "-X",
        &compression,
        "-X",
        "acks=all",
    ];
    kcat(&node.bootstrap, &produce, &sent)?;
    node.kill()?;
    let node = Node::start(binary, &data, port)?;
    let consume = [
        "-C",
        "-t",
        "orders",
        "-p",
        "0",
        "-o",
        "beginning",
        "-e",
        "-q",
        "-K",
        "\t",
    ];
    let read = kcat(&node.bootstrap, &consume, "")?;
    ensure!(
        read == sent,
        "{} bytes sent, {} read back",
        sent.len(),
        read.len()
    );
    node.stop()
}

fn metadata(binary: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let node = Node::start(binary, &folder.path().join("data"), 0)?;
    kcat(&node.bootstrap, &["-P", "-t", "orders"], "one\n")?;
    let listed = kcat(&node.bootstrap, &["-L", "-J"], "")?;
    ensure!(
        listed.contains("\"topic\":\"orders\""),
        "no topic in {listed}"
    );
    node.stop()
}

/// The partition and offset that `-Q` prints, at the ends and inside a batch.
fn offsets(binary: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let node = Node::start(binary, &folder.path().join("data"), 0)?;
    kcat(
        &node.bootstrap,
        &["-P", "-t", "orders", "-p", "0"],
        "one\ntwo\n",
    )?;
    let format = [
        "-C", "-t", "orders", "-p", "0", "-o", "1", "-e", "-q", "-f", "%T",
    ];
    let time = kcat(&node.bootstrap, &format, "")?;
    let time: i64 = time.trim().parse().context("a timestamp")?;
    for (time, offset) in [(-1, 2), (-2, 0), (1, 0), (time, 0), (time + 1, -1)] {
        let wanted = format!("orders:0:{time}");
        let told = kcat(&node.bootstrap, &["-Q", "-t", &wanted], "")?;
        let found: i64 = told
            .trim()
            .strip_prefix("orders [0] offset ")
            .context("an offset")?
            .parse()?;
        // The two records may have different times.
        let is_second = offset == 0 && found == 1 && time > 1;
        ensure!(found == offset || is_second, "{wanted}: {told}");
    }
    node.stop()
}

pub(super) fn kcat(bootstrap: &str, arguments: &[&str], input: &str) -> Result<String> {
    let mut process = Command::new("timeout")
        .args(["60", "kcat", "-b", bootstrap])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run kcat")?;
    process
        .stdin
        .take()
        .context("stdin is piped")?
        .write_all(input.as_bytes())?;
    let output = process.wait_with_output()?;
    ensure!(
        output.status.success(),
        "kcat {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
