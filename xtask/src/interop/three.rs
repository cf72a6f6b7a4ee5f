//! Three brokers and a controller: Apache Kafka's tools, clients that live through kills, and the
//! logs of all replicas, compared.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::java::{Java, TOOLS};
use super::tools::Tools;
use super::{Report, python};
use crate::cluster::compare::{self, Writers};
use crate::cluster::setup::{BROKERS, CONTROLLER, Life, Setup};
use crate::cluster::{Cluster, Subject};

/// Who is tried: `kafka` shows that the suite is fair.
const SUBJECT: &str = "HIGHWATER_INTEROP_SUBJECT";

const SETTINGS: [&str; 5] = [
    "replica.lag.time.max.ms=2000",
    "broker.session.timeout.ms=2000",
    "broker.heartbeat.interval.ms=400",
    "min.insync.replicas=2",
    // Many snapshots of the metadata.
    "metadata.log.max.record.bytes.between.snapshots=2000",
];
const PATIENCE: Duration = Duration::from_secs(30);

/// The tools on a healthy cluster and on one that lacks a broker; `interop/three.py`; the files.
pub(super) fn suite(binary: &Path, tools: &Tools, report: &mut Report) {
    let Ok(folder) = tempfile::tempdir() else {
        return report.case("three brokers: a directory", Err(anyhow::anyhow!("none")));
    };
    let mut cluster = match start(binary, tools, folder.path()) {
        Ok(cluster) => cluster,
        Err(why) => return report.case("three brokers and a controller start", Err(why)),
    };
    let cases: [(&str, Case); 4] = [
        ("TopicCommand: three replicas, all in sync", healthy),
        (
            "TopicCommand: under-replicated, at min ISR, under it, unavailable",
            lacking,
        ),
        ("MetadataQuorumCommand: status and replication", quorum),
        ("a cluster's clients", clients),
    ];
    for (name, case) in cases {
        let outcome = case(&mut cluster, tools, report);
        // Its own cases were counted one by one.
        if name != "a cluster's clients" || outcome.is_err() {
            report.case(name, outcome);
        }
    }
    report.case("three brokers and a controller stop", stop(&mut cluster));
    report.case(
        "the logs of all replicas are alike, batch by batch",
        alike(&cluster),
    );
    let java = Java::new(tools, "");
    for id in BROKERS.into_iter().chain([CONTROLLER]) {
        report.case(
            &format!("DumpLogSegments reads every file of node {id}"),
            java.dump_logs(&cluster.setup.data(id)),
        );
    }
}

type Case = fn(&mut Cluster, &Tools, &mut Report) -> Result<()>;

fn start(binary: &Path, tools: &Tools, home: &Path) -> Result<Cluster> {
    let subject = match std::env::var(SUBJECT).as_deref() {
        Ok("kafka") => Subject::Kafka,
        _ => Subject::Highwater,
    };
    let mut cluster = Cluster::prepare(Setup {
        subject,
        home: home.to_owned(),
        kafka_libs: tools.kafka_libs.clone(),
        binary: binary.to_owned(),
        settings: SETTINGS.map(str::to_owned).to_vec(),
        is_proxied: false,
        life: Life::Short("256m"),
    })?;
    cluster.start_all()?;
    Ok(cluster)
}

fn topics(cluster: &mut Cluster, tools: &Tools, arguments: &[&str]) -> Result<String> {
    // Of a broker that is down the tool would complain.
    let mut running = Vec::new();
    for id in cluster.running() {
        running.push(format!("127.0.0.1:{}", cluster.port(id)?));
    }
    let java = Java::new(tools, &running.join(","));
    java.client(&format!("{TOOLS}.TopicCommand"), arguments, "")
}

fn healthy(cluster: &mut Cluster, tools: &Tools, _: &mut Report) -> Result<()> {
    let create = ["--create", "--topic", "made", "--partitions", "6"];
    topics(
        cluster,
        tools,
        &[&create[..], &["--replication-factor", "3"]].concat(),
    )?;
    let all = |it: &crate::cluster::ask::Partition| it.isr.len() == 3;
    cluster.wait_for("all in the ISR", "made", 6, all)?;
    let told = topics(cluster, tools, &["--describe", "--topic", "made"])?;
    ensure!(told.contains("ReplicationFactor: 3"), "{told}");
    for id in BROKERS {
        ensure!(told.contains(&format!("Leader: {id}")), "{told}");
    }
    for what in ["--under-replicated-partitions", "--unavailable-partitions"] {
        let told = topics(cluster, tools, &["--describe", what])?;
        ensure!(told.trim().is_empty(), "{what}: {told}");
    }
    Ok(())
}

fn lacking(cluster: &mut Cluster, tools: &Tools, _: &mut Report) -> Result<()> {
    let [one, two, three] = BROKERS;
    for (name, replicas) in [
        ("full", vec![one, two, three]),
        ("pair", vec![two, three]),
        ("alone", vec![three]),
    ] {
        cluster.create_topic(name, &[replicas], &[])?;
    }
    cluster.kill(three)?;
    let is_out = |it: &crate::cluster::ask::Partition| !it.isr.contains(&three);
    cluster.wait_for("out of the ISR", "full", 1, is_out)?;
    for (what, listed) in [
        (
            "--under-replicated-partitions",
            &["full", "pair", "alone"][..],
        ),
        ("--at-min-isr-partitions", &["full"]),
        ("--under-min-isr-partitions", &["pair", "alone"]),
        ("--unavailable-partitions", &["alone"]),
    ] {
        let told = topics(cluster, tools, &["--describe", what])?;
        for name in ["full", "pair", "alone"] {
            let is_listed = told.contains(&format!("Topic: {name}\t"));
            let (wanted, subject) = (listed.contains(&name), cluster.setup.subject.name());
            ensure!(is_listed == wanted, "{subject}, {what}, {name}:\n{told}");
        }
    }
    cluster.launch(three)?;
    cluster.wait_to_serve(three)?;
    for (name, count) in [("full", 3), ("pair", 2), ("alone", 1), ("made", 3)] {
        let partitions = if name == "made" { 6 } else { 1 };
        let all = |it: &crate::cluster::ask::Partition| it.isr.len() == count;
        cluster.wait_for("all in the ISR", name, partitions, all)?;
    }
    let told = topics(
        cluster,
        tools,
        &["--describe", "--under-replicated-partitions"],
    )?;
    ensure!(told.trim().is_empty(), "{told}");
    Ok(())
}

fn quorum(cluster: &mut Cluster, tools: &Tools, _: &mut Report) -> Result<()> {
    let class = format!("{TOOLS}.MetadataQuorumCommand");
    let (bootstrap, controller) = (cluster.bootstrap(), cluster.controller());
    let java = Java::new(tools, "");
    for at in [
        ["--bootstrap-server", bootstrap.as_str()],
        ["--bootstrap-controller", controller.as_str()],
    ] {
        let told = java.run(&class, &[&at[..], &["describe", "--status"]].concat(), "")?;
        let words: Vec<&str> = told.split_whitespace().collect();
        let has = |pair: &[&str]| words.windows(2).any(|it| it == pair);
        let is_told = has(&["LeaderId:", "4"]) && has(&["CurrentObservers:", "[{\"id\":"]);
        ensure!(is_told, "{at:?}:\n{told}");
        let arguments = [&at[..], &["describe", "--replication"]].concat();
        let began = Instant::now();
        // A lag that is told while a record is on its way says nothing.
        loop {
            let told = java.run(&class, &arguments, "")?;
            match replication(&told) {
                Ok(()) => break,
                Err(why) if began.elapsed() > PATIENCE => bail!("{at:?}: {why:#}\n{told}"),
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// One leader, three observers, nobody behind.
fn replication(told: &str) -> Result<()> {
    for (id, status) in [
        (4, "Leader"),
        (1, "Observer"),
        (2, "Observer"),
        (3, "Observer"),
    ] {
        let row = told.lines().find(|row| row.starts_with(&format!("{id}\t")));
        let row = row.or_else(|| told.lines().find(|row| row.starts_with(&format!("{id} "))));
        let row = row.with_context(|| format!("no row of {id}"))?;
        let words: Vec<&str> = row.split_whitespace().collect();
        ensure!(words.last() == Some(&status), "'{row}'");
        ensure!(words.get(3) == Some(&"0"), "a lag: '{row}'");
    }
    Ok(())
}

/// `interop/three.py`, which asks for what is done to the brokers.
fn clients(cluster: &mut Cluster, tools: &Tools, report: &mut Report) -> Result<()> {
    let mut brokers = Vec::new();
    for id in BROKERS {
        brokers.push(format!("{id}@{}", cluster.port(id)?));
    }
    let brokers = brokers.join(",");
    let arguments = [
        "--brokers".as_ref(),
        brokers.as_ref(),
        "--kafka-libs".as_ref(),
        tools.kafka_libs.as_os_str(),
    ];
    python::run_for("three.py", &arguments, tools, report, |what| {
        let (verb, id) = what.split_once(' ').context("a verb and a broker")?;
        let id = id.parse()?;
        match verb {
            "kill" => cluster.kill(id),
            "stop" => cluster.stop(&[id]),
            "pause" => cluster.node(id)?.pause(),
            "resume" => cluster.node(id)?.resume(),
            "start" => {
                cluster.launch(id)?;
                cluster.wait_to_serve(id)
            }
            _ => bail!("cannot {verb}"),
        }
    })
}

fn stop(cluster: &mut Cluster) -> Result<()> {
    for id in BROKERS {
        if !cluster.running().contains(&id) {
            cluster.launch(id)?;
            cluster.wait_to_serve(id)?;
        }
    }
    cluster.stop(&BROKERS)?;
    cluster.stop(&[CONTROLLER])
}

/// Every partition of every topic, wherever it has replicas.
fn alike(cluster: &Cluster) -> Result<()> {
    let mut by_partition = std::collections::BTreeMap::<String, Vec<PathBuf>>::new();
    for id in BROKERS {
        let data = cluster.setup.data(id);
        for folder in std::fs::read_dir(&data)? {
            let folder = folder?;
            let name = folder.file_name().to_string_lossy().into_owned();
            if folder.path().is_dir() && name != "__cluster_metadata-0" {
                by_partition.entry(name).or_default().push(data.clone());
            }
        }
    }
    let mut batches = 0;
    for (partition, data) in &by_partition {
        let agreed = compare::agree(data, partition, Writers::Stopped);
        batches += agreed.with_context(|| partition.clone())?.batches;
    }
    let replicas = by_partition.get("made-0").map_or(0, Vec::len);
    ensure!(
        replicas == 3 && batches > 0,
        "{replicas} replicas, {batches} batches"
    );
    Ok(())
}
