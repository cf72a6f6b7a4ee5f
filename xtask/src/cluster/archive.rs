//! A class archive, so that each further JVM of Apache Kafka starts with half of the CPU time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::process::{Process, Start};
use super::setup::{borrowed, free_ports, java, say};
use super::{PATIENCE, Subject};

/// Where it is: beside the jars.
pub(super) fn path(libs: &Path) -> PathBuf {
    libs.join("classes.jsa")
}

/// Makes it unless it is there: one node starts, serves and ends.
pub(super) fn make(libs: &Path) -> Result<()> {
    if path(libs).exists() {
        return Ok(());
    }
    say("archiving Apache Kafka's classes");
    let home = tempfile::tempdir()?;
    let config = home.path().join("server.properties");
    let ports = free_ports(2)?;
    let [port, controller] = *ports.as_slice() else {
        anyhow::bail!("no ports");
    };
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
         log.dirs={}\nlog.cleaner.dedupe.buffer.size=4194304\nlog.cleaner.io.buffer.size=65536\n",
        home.path().join("data").display()
    );
    std::fs::write(&config, text)?;
    let (program, arguments) = java(libs, "256m", "kafka.tools.StorageTool");
    let format = Command::new(program)
        .args(arguments)
        .args([
            "format",
            "--standalone",
            "-t",
            "HighwaterArchivesXtasQ",
            "-c",
        ])
        .arg(&config)
        .output()
        .context("cannot run java")?;
    let complaints = String::from_utf8_lossy(&format.stderr);
    ensure!(format.status.success(), "format: {complaints}");
    // Written beside it and renamed, for another run may look at the same time.
    let unfinished = libs.join(format!("classes-{}.jsa", std::process::id()));
    let (program, mut arguments) = java(libs, "256m", "kafka.Kafka");
    let flag = OsString::from(format!("-XX:ArchiveClassesAtExit={}", unfinished.display()));
    arguments.insert(0, flag);
    arguments.push(config.into_os_string());
    let mut node = Process::start(&Start {
        name: "the node whose classes are archived".to_owned(),
        program: &program,
        arguments: &borrowed(&arguments),
        log: &home.path().join("node.log"),
        is_piped: false,
    })?;
    node.wait_to_tell(Subject::Kafka.ready(), PATIENCE)?;
    node.ask_to_end()?;
    node.wait(PATIENCE)?;
    std::fs::rename(unfinished, path(libs)).context("no archive was written")
}
