//! `cargo xtask bench`: ours, the floor programs and Apache Kafka, interleaved in one run.
//!
//! Every figure is given as minimum, median and maximum over the rounds, and compared as a ratio
//! of medians, for machines differ and noise is large. Nothing here asserts a time.

mod batch;
pub(crate) mod floor;
pub(crate) mod load;
mod open_loop;
mod report;
mod subject;
mod three;
pub(crate) mod wire;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use self::load::Load;
use self::report::Report;
use self::subject::{Kind, Subject};
use crate::tree;

const USAGE: &str = "\
usage: cargo xtask bench [three] [--rounds N] [--mib N] [--without-kafka] [--json]
  three: brokers in three processes and a controller, RF=3, acks=all";
const TOPIC: &str = "bench";
/// All subjects keep this much of what they write, in files of [`SEGMENT_BYTES`]: the pages of
/// what they remove are used again, while new ones may cost a virtual machine more than all the
/// rest together.
const RETAINED_BYTES: usize = 256 << 20;
const SEGMENT_BYTES: usize = 32 << 20;
/// What is fetched over and over.
const HOT_BYTES: usize = 128 << 20;
/// Fetching is cheap and CPU time is told in steps of 10 ms: so many bytes are fetched for each
/// that is produced.
const FETCH_FACTOR: usize = 4;

/// Where the two ends run: what a byte costs over loopback depends on whether they share a CPU.
const SUBJECT_CPU: &str = "0";
const LOAD_CPU: &str = "1";

/// Topics of the node whose idleness is measured.
const IDLE_TOPICS: usize = 5;

/// What to run.
#[derive(Clone, Copy, Debug)]
struct Options {
    rounds: usize,
    mib_per_round: usize,
    with_kafka: bool,
    as_json: bool,
}

/// Builds everything optimised and runs the comparison in an optimised process.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimised(arguments);
    }
    let (is_three, rest) = match arguments.split_first() {
        Some((first, rest)) if first == "three" => (true, rest),
        _ => (false, arguments),
    };
    let options = parse(rest)?;
    let folder = tempfile::tempdir().context("no temporary directory")?;
    let mut report = Report::default();
    if is_three {
        three::run(folder.path(), options, &mut report)?;
    } else {
        start_up(folder.path(), options, &mut report)?;
        // The last: it binds this process to a CPU, and those that are started later would inherit
        // it.
        bulk(folder.path(), options, &mut report)?;
    }
    if options.as_json {
        report.print_json()
    } else {
        report.print_table()
    }
    Ok(())
}

fn run_optimised(arguments: &[String]) -> Result<()> {
    let build = [
        "build",
        "--release",
        "--quiet",
        "--package",
        "highwater-cli",
        "--package",
        "xtask",
    ];
    let status = Command::new(env!("CARGO"))
        .args(build)
        .current_dir(tree::root())
        .status()?;
    ensure!(status.success(), "the optimised build failed");
    let status = Command::new(subject::release_binary("xtask"))
        .arg("bench")
        .args(arguments)
        .status()?;
    ensure!(status.success(), "the comparison failed");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        rounds: 5,
        mib_per_round: 1024,
        with_kafka: true,
        as_json: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut number =
            || -> Result<usize> { arguments.next().context(USAGE)?.parse().context(USAGE) };
        match argument.as_str() {
            "--rounds" => options.rounds = number()?.max(1),
            // The floor program reads files that were written whole.
            "--mib" => options.mib_per_round = number()?.max(RETAINED_BYTES >> 20),
            "--without-kafka" => options.with_kafka = false,
            "--json" => options.as_json = true,
            _ => anyhow::bail!(USAGE),
        }
    }
    Ok(options)
}

/// Produce, hot fetch and small requests: server CPU per GB and requests per CPU second.
fn bulk(folder: &Path, options: Options, report: &mut Report) -> Result<()> {
    let mut kinds = vec![Kind::Floor, Kind::Highwater];
    if options.with_kafka {
        kinds.push(Kind::Kafka);
    }
    let mut subjects = Vec::new();
    for kind in kinds {
        eprintln!("bench: starting {}", kind.name());
        let data = folder.join(kind.name());
        subjects.push(Subject::start(kind, &data)?);
    }
    for subject in &mut subjects {
        subject::bind(subject.id(), SUBJECT_CPU);
        if subject.kind != Kind::Floor {
            Load::connect(subject.port)?.create_topic(TOPIC, &topic_configs())?;
        }
        subject::bind(std::process::id(), LOAD_CPU);
        // A JVM compiles what is hot only after a while: the first rounds do not count.
        let warm_up = if subject.kind == Kind::Kafka { 3 } else { 1 };
        for _ in 0..warm_up {
            one_round(subject, options, &mut Report::default())?;
        }
    }
    for round in 1..=options.rounds {
        eprintln!("bench: round {round} of {}", options.rounds);
        for subject in &mut subjects {
            one_round(subject, options, report)?;
        }
    }
    for subject in subjects {
        subject.stop()?;
    }
    Ok(())
}

/// Of the topic for bulk data, so that it is kept as the floor program keeps its files.
fn topic_configs() -> [(&'static str, String); 3] {
    [
        ("segment.bytes", SEGMENT_BYTES.to_string()),
        ("retention.bytes", RETAINED_BYTES.to_string()),
        ("file.delete.delay.ms", "0".to_owned()),
    ]
}

fn one_round(subject: &mut Subject, options: Options, report: &mut Report) -> Result<()> {
    let name = subject.kind.name();
    let mut load = Load::connect(subject.port)?;

    let bytes = options.mib_per_round << 20;
    let mut end = 0;
    let cost = measure(subject, || {
        end = load.produce(TOPIC, bytes)?;
        Ok(())
    })?;
    cost.add_to(report, "produce", name, bytes);

    let hot_bytes = bytes.min(HOT_BYTES);
    let bytes = bytes * FETCH_FACTOR;
    let cost = measure(subject, || load.fetch(TOPIC, end, hot_bytes, bytes))?;
    cost.add_to(report, "hot fetch", name, bytes);

    let requests = 100_000;
    let cost = measure(subject, || load.produce_small(TOPIC, requests))?;
    report.add(
        "small produce, requests per CPU s",
        name,
        f64::from(requests) / cost.server_cpu,
    );
    Ok(())
}

/// What a piece of load cost, in seconds.
struct Cost {
    server_cpu: f64,
    /// Of the load generator: on loopback each end may do much of the other's work in the kernel.
    load_cpu: f64,
    time: f64,
}

fn measure(subject: &Subject, load: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let began = Instant::now();
    let (server_before, load_before) = (subject.cpu_seconds()?, subject::own_cpu_seconds()?);
    load()?;
    Ok(Cost {
        server_cpu: (subject.cpu_seconds()? - server_before).max(0.01),
        load_cpu: subject::own_cpu_seconds()? - load_before,
        time: began.elapsed().as_secs_f64(),
    })
}

impl Cost {
    fn add_to(&self, report: &mut Report, what: &str, name: &'static str, bytes: usize) {
        let gigabytes = bytes as f64 / 1e9;
        let both_cpu = self.server_cpu + self.load_cpu;
        for (measure, value) in [
            ("server CPU s/GB", self.server_cpu / gigabytes),
            ("both ends CPU s/GB", both_cpu / gigabytes),
            ("MB/s", gigabytes * 1e3 / self.time),
        ] {
            report.add(format!("{what}, {measure}"), name, value);
        }
    }
}

/// Start to the first acknowledged record, and what an idle node costs.
fn start_up(folder: &Path, options: Options, report: &mut Report) -> Result<()> {
    for round in 0..options.rounds {
        let data = folder.join(format!("first-{round}"));
        let began = Instant::now();
        let subject = Subject::start(Kind::Highwater, &data)?;
        let mut load = Load::connect(subject.port)?;
        load.create_topic(TOPIC, &[])?;
        let first = began.elapsed().as_secs_f64() * 1e3;
        report.add("start to first acknowledged record, ms", "highwater", first);
        if round == 0 {
            for number in 1..IDLE_TOPICS {
                load.create_topic(&format!("idle-{number}"), &[])?;
            }
            drop(load);
            idle(&subject, report)?;
        }
        subject.stop()?;
    }
    Ok(())
}

fn idle(subject: &Subject, report: &mut Report) -> Result<()> {
    eprintln!("bench: idle for 20 s");
    std::thread::sleep(Duration::from_secs(2));
    let before = subject.cpu_seconds()?;
    let seconds = 20.0;
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let share = (subject.cpu_seconds()? - before) / seconds * 100.0;
    report.add("idle, % of a core", "highwater", share);
    report.add(
        "idle, resident MB",
        "highwater",
        subject.resident_bytes()? as f64 / 1e6,
    );
    Ok(())
}
