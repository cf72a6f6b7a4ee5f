//! Three brokers and a controller, ours beside Apache Kafka's, set up alike: RF=3, acks=all.
//!
//! Both clusters live all the time and are measured by turns; the one that is not measured stands
//! still (SIGSTOP), so that its idling costs nobody anything. Sessions and the lag limit are long,
//! so that standing still has no consequences. Nothing is bound to a CPU: brokers and load share
//! what there is.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::load::Load;
use super::open_loop;
use super::report::Report;
use super::subject::{cpu_seconds, kafka_libs, release_binary};
use super::wire::Acks;
use super::{Options, SEGMENT_BYTES, TOPIC};
use crate::cluster::ask;
use crate::cluster::setup::{BROKERS, Life, Setup, say};
use crate::cluster::{Cluster, PATIENCE, Subject};

/// Small requests a second, each rate by itself.
const RATES: [u32; 2] = [200, 1000];
/// How long each rate is measured in a round.
const RATE_TIME: Duration = Duration::from_secs(6);
/// A load before the measurement, so that a cluster that stood still is awake.
const WAKE_TIME: Duration = Duration::from_secs(2);
/// What each replica keeps.
const RETAINED_BYTES: usize = 128 << 20;
const IDLE_TIME: Duration = Duration::from_secs(20);
/// Apache Kafka's starts take long.
const SLOW_ROUNDS: usize = 3;

/// Runs all of it.
pub(super) fn run(folder: &Path, options: Options, report: &mut Report) -> Result<()> {
    let mut subjects = vec![Subject::Highwater];
    if options.with_kafka {
        subjects.push(Subject::Kafka);
    }
    for subject in &subjects {
        starts_and_failovers(folder, *subject, options, report)?;
    }
    in_one_process(folder, options, report)?;
    by_turns(folder, &subjects, options, report)
}

fn cluster(folder: &Path, name: &str, subject: Subject, settings: &[&str]) -> Result<Cluster> {
    Cluster::prepare(Setup {
        subject,
        home: folder.join(format!("{name}-{}", subject.name())),
        kafka_libs: kafka_libs(),
        binary: release_binary("highwater"),
        settings: settings.iter().map(|it| (*it).to_owned()).collect(),
        is_proxied: false,
        life: Life::Long,
    })
}

/// One partition, led by the first broker.
fn create_topic(cluster: &mut Cluster, topic: &str) -> Result<()> {
    let segment = SEGMENT_BYTES.to_string();
    let retained = RETAINED_BYTES.to_string();
    let configs = [
        ("segment.bytes", segment.as_str()),
        ("retention.bytes", retained.as_str()),
        ("file.delete.delay.ms", "0"),
    ];
    cluster.create_topic(topic, &[BROKERS.to_vec()], &configs)
}

/// Start of four processes to the first acknowledged record; kill -9 of the leader to the next.
fn starts_and_failovers(
    folder: &Path,
    subject: Subject,
    options: Options,
    report: &mut Report,
) -> Result<()> {
    let name = subject.name();
    let limits = [
        "broker.session.timeout.ms=2000",
        "broker.heartbeat.interval.ms=500",
    ];
    let rounds = match subject {
        Subject::Highwater => options.rounds,
        Subject::Kafka => options.rounds.min(SLOW_ROUNDS),
    };
    for round in 0..rounds {
        say(&format!(
            "bench: start and failover, {name}, {} of {rounds}",
            round + 1
        ));
        let mut cluster = cluster(folder, &format!("start-{round}"), subject, &limits)?;
        let began = Instant::now();
        cluster.start_all()?;
        create_topic(&mut cluster, TOPIC)?;
        let [leader, ..] = BROKERS;
        Load::connect_with(cluster.port(leader)?, Acks::All)?.first(TOPIC)?;
        let first = began.elapsed().as_secs_f64() * 1e3;
        report.add("4 processes, start to first record, ms", name, first);
        cluster.kill(leader)?;
        let killed = Instant::now();
        let next = next_leader(&mut cluster, leader)?;
        Load::connect_with(cluster.port(next)?, Acks::All)?.first(TOPIC)?;
        let failover = killed.elapsed().as_secs_f64() * 1e3;
        report.add("kill -9 of the leader to next record, ms", name, failover);
    }
    Ok(())
}

fn next_leader(cluster: &mut Cluster, gone: i32) -> Result<i32> {
    let began = Instant::now();
    loop {
        for id in cluster.running() {
            let partitions = ask::partitions(cluster.port(id)?, TOPIC).unwrap_or_default();
            let leader = partitions.first().map_or(-1, |it| it.leader);
            if leader >= 0 && leader != gone {
                return Ok(leader);
            }
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "nobody leads after {gone}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `highwater start --brokers 3`: one process, three brokers.
fn in_one_process(folder: &Path, options: Options, report: &mut Report) -> Result<()> {
    let log = std::fs::File::create(folder.join("one-process.log"))?;
    for round in 0..options.rounds {
        let began = Instant::now();
        let child = Command::new(release_binary("highwater"))
            .args([
                "start",
                "--brokers",
                "3",
                "--listen",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(folder.join(format!("one-process-{round}")))
            .stdout(Stdio::piped())
            .stderr(log.try_clone()?)
            .spawn()
            .context("cannot start highwater")?;
        let mut process = Killed(child);
        let ports = ready_ports(&mut process.0)?;
        let any = *ports.first().context("no bootstrap address")?;
        ask::create_topic(any, TOPIC, &[BROKERS.to_vec()], &[])?;
        let [leader, ..] = BROKERS;
        let port = loop {
            match ask::leader_port(any, TOPIC) {
                Ok((id, port)) if id == leader => break port,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        Load::connect_with(port, Acks::All)?.first(TOPIC)?;
        let first = began.elapsed().as_secs_f64() * 1e3;
        report.add("--brokers 3, start to first record, ms", "highwater", first);
    }
    Ok(())
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The ports of the ready line.
fn ready_ports(process: &mut Child) -> Result<Vec<u16>> {
    use std::io::BufRead as _;
    let output = process.stdout.take().context("stdout is piped")?;
    let mut line = String::new();
    std::io::BufReader::new(output).read_line(&mut line)?;
    let list = line.strip_prefix("highwater ready bootstrap=");
    let list = list.and_then(|rest| rest.split(' ').next());
    let list = list.with_context(|| format!("no ready line but '{}'", line.trim_end()))?;
    let port = |address: &str| address.rsplit_once(':')?.1.parse().ok();
    list.split(',')
        .map(|it| port(it).context("a port"))
        .collect()
}

/// CPU per GB, latency and idling, in rounds.
fn by_turns(
    folder: &Path,
    subjects: &[Subject],
    options: Options,
    report: &mut Report,
) -> Result<()> {
    let limits = [
        "broker.session.timeout.ms=600000",
        "replica.lag.time.max.ms=600000",
        "log.retention.check.interval.ms=300",
    ];
    let mut clusters = Vec::new();
    for subject in subjects {
        let mut cluster = cluster(folder, "turns", *subject, &limits)?;
        cluster.start_all()?;
        create_topic(&mut cluster, TOPIC)?;
        create_topic(&mut cluster, SMALL)?;
        // A JVM compiles what is hot only after a while.
        let warm_up = if *subject == Subject::Kafka { 4 } else { 1 };
        for _ in 0..warm_up {
            one_turn(&mut cluster, options, &mut Report::default())?;
        }
        stand_still(&mut cluster, true)?;
        clusters.push(cluster);
    }
    for round in 1..=options.rounds {
        say(&format!("bench: round {round} of {}", options.rounds));
        for cluster in &mut clusters {
            stand_still(cluster, false)?;
            one_turn(cluster, options, report)?;
            stand_still(cluster, true)?;
        }
    }
    for cluster in &mut clusters {
        stand_still(cluster, false)?;
        idle(cluster, report)?;
        stand_still(cluster, true)?;
    }
    Ok(())
}

/// The topic of small requests.
const SMALL: &str = "small";

fn stand_still(cluster: &mut Cluster, is_paused: bool) -> Result<()> {
    for process in cluster.processes() {
        if is_paused {
            process.pause()?;
        } else {
            process.resume()?;
        }
    }
    Ok(())
}

fn one_turn(cluster: &mut Cluster, options: Options, report: &mut Report) -> Result<()> {
    let name = cluster.setup.subject.name();
    let [leader, ..] = BROKERS;
    let port = cluster.port(leader)?;
    let [calm, ..] = RATES;
    open_loop::run(port, SMALL, calm, WAKE_TIME)?;
    for rate in RATES {
        let latencies = open_loop::run(port, SMALL, rate, RATE_TIME)?;
        for (what, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            let measure = format!("latency at {rate}/s, {what}, ms");
            report.add(measure, name, latencies.at(share));
        }
    }
    let bytes = options.mib_per_round << 20;
    let (began, before) = (Instant::now(), cpu(cluster)?);
    Load::connect_with(port, Acks::All)?.produce(TOPIC, bytes)?;
    let time = began.elapsed().as_secs_f64();
    // What the followers still do for these bytes counts.
    std::thread::sleep(Duration::from_millis(200));
    let gigabytes = bytes as f64 / 1e9;
    let cost = (cpu(cluster)? - before) / gigabytes;
    report.add("produce, CPU s/GB of all four", name, cost);
    report.add("produce, MB/s", name, gigabytes * 1e3 / time);
    Ok(())
}

fn idle(cluster: &mut Cluster, report: &mut Report) -> Result<()> {
    let name = cluster.setup.subject.name();
    say(&format!("bench: {name} idles for {IDLE_TIME:?}"));
    std::thread::sleep(WAKE_TIME);
    let before = cpu(cluster)?;
    std::thread::sleep(IDLE_TIME);
    let share = (cpu(cluster)? - before) / IDLE_TIME.as_secs_f64() * 100.0;
    report.add("idle, % of a core, all four", name, share);
    Ok(())
}

/// User and system time of all processes so far, in seconds.
fn cpu(cluster: &mut Cluster) -> Result<f64> {
    cluster
        .processes()
        .map(|it| cpu_seconds(&it.id().to_string()))
        .sum()
}
