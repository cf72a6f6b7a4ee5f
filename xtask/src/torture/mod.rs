//! `cargo xtask torture`: three brokers and a controller as processes, killed, stopped and cut off
//! while librdkafka and Apache's VerifiableProducer write.
//!
//! Every acknowledged record must be read back once and in order, what was read on the way must
//! still be so, and the logs of all replicas must be alike, batch by batch. The same rounds run
//! against Apache Kafka, so that the judge is known to be fair.

mod account;
mod causes;
mod kinds;
mod witness;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use self::kinds::{KINDS, Kind, Round};
use self::witness::Witness;
use crate::cluster::compare::Writers;
use crate::cluster::setup::{BROKERS, CONTROLLER, Life, Setup, say};
use crate::cluster::{Cluster, Subject, compare};
use crate::interop::node;
use crate::interop::tools::Tools;
use crate::tree;

const USAGE: &str = "\
usage: cargo xtask torture [--subject highwater|kafka] [--rounds N] [--kinds NAME,..] [--keep]
  kinds: kill-leader, pause-follower, pause-leader, cut, restart, return";

/// Limits that a person has the patience for.
const SETTINGS: [&str; 3] = [
    "replica.lag.time.max.ms=2000",
    "broker.session.timeout.ms=2000",
    "broker.heartbeat.interval.ms=400",
];
const MIN_ISR: [(&str, &str); 1] = [("min.insync.replicas", "2")];
/// Partitions of each topic.
const PARTITIONS: usize = 3;
/// The topic of the witness that writes through all rounds.
const VERIFIABLE: &str = "verifiable";

#[derive(Debug)]
struct Options {
    subject: Subject,
    rounds: usize,
    kinds: Vec<Kind>,
    keeps: bool,
}

/// Runs the rounds; the first failure ends them and keeps everything.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let binary = match options.subject {
        Subject::Highwater => node::build()?,
        Subject::Kafka => PathBuf::new(),
    };
    let tools = Tools::install()?;
    let home = home(options.subject)?;
    let torture = Torture {
        options,
        binary,
        tools,
        home,
    };
    let mut passed = 0;
    let outcome = torture.all(&mut passed);
    if let Err(why) = &outcome {
        say(&format!("FAILED  {why:#}"));
    }
    if outcome.is_ok() && !torture.options.keeps {
        std::fs::remove_dir_all(&torture.home)?;
    } else {
        say(&format!(
            "torture: all of it is in {}",
            torture.home.display()
        ));
    }
    let failed = usize::from(outcome.is_err());
    say(&format!("torture: {passed} passed, {failed} failed"));
    ensure!(outcome.is_ok(), "see above");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        subject: Subject::Highwater,
        rounds: 2,
        kinds: KINDS.to_vec(),
        keeps: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--keep" {
            options.keeps = true;
            continue;
        }
        let value = arguments.next().context(USAGE)?;
        match argument.as_str() {
            "--subject" => {
                let mut known = [Subject::Highwater, Subject::Kafka].into_iter();
                options.subject = known.find(|it| it.name() == value).context(USAGE)?;
            }
            "--rounds" => options.rounds = value.parse().context(USAGE)?,
            "--kinds" => {
                let by_name = |name| KINDS.into_iter().find(|kind| kind.name == name);
                let kinds: Option<Vec<Kind>> = value.split(',').map(by_name).collect();
                options.kinds = kinds.context(USAGE)?;
            }
            _ => bail!(USAGE),
        }
    }
    Ok(options)
}

/// A folder of its own for each run: what a failed or interrupted one left stays there.
fn home(subject: Subject) -> Result<PathBuf> {
    let name = format!("{}-{}", subject.name(), std::process::id());
    let home = tree::root().join("target/torture").join(name);
    std::fs::create_dir_all(&home)?;
    Ok(home)
}

struct Torture {
    options: Options,
    binary: PathBuf,
    tools: Tools,
    home: PathBuf,
}

impl Torture {
    fn all(&self, passed: &mut usize) -> Result<()> {
        let mut cluster = Cluster::prepare(Setup {
            subject: self.options.subject,
            home: self.home.clone(),
            kafka_libs: self.tools.kafka_libs.clone(),
            binary: self.binary.clone(),
            settings: SETTINGS.map(str::to_owned).to_vec(),
            is_proxied: true,
            life: Life::Short("256m"),
        })?;
        let began = Instant::now();
        cluster.start_all()?;
        let name = self.options.subject.name();
        say(&format!(
            "torture: {name} serves after {} ms",
            began.elapsed().as_millis()
        ));
        cluster.create_topic(VERIFIABLE, &assignment(0), &MIN_ISR)?;
        let bootstrap = cluster.bootstrap();
        let verifiable =
            Witness::verifiable(&self.tools, &bootstrap, VERIFIABLE, PARTITIONS, &self.home)?;
        let mut topics = vec![VERIFIABLE.to_owned()];
        for number in 1..=self.options.rounds {
            for kind in &self.options.kinds {
                let began = Instant::now();
                let topic = format!("{}-{number}", kind.name);
                let count = self
                    .round(&mut cluster, *kind, number, &topic)
                    .with_context(|| format!("{name} {topic} ({})", kind.story))?;
                let seconds = began.elapsed().as_secs_f64();
                say(&format!(
                    "ok      {name} {topic}: {count} records acknowledged ({seconds:.1} s)"
                ));
                topics.push(topic);
                *passed += 1;
            }
        }
        let account = verifiable.finish_by_signal()?;
        self.judge_verifiable(&cluster, account)
            .context("VerifiableProducer")?;
        *passed += 1;
        cluster.stop(&BROKERS)?;
        cluster.stop(&[CONTROLLER])?;
        self.compare_all(&cluster, &topics)
            .context("the logs after the end")?;
        *passed += 1;
        Ok(())
    }

    /// One kind, once, with a topic of its own; gives the number of acknowledged records.
    fn round(
        &self,
        cluster: &mut Cluster,
        kind: Kind,
        number: usize,
        topic: &str,
    ) -> Result<usize> {
        let assignment = assignment(number);
        cluster.create_topic(topic, &assignment, &MIN_ISR)?;
        let bootstrap = cluster.bootstrap();
        let witness = Witness::librdkafka(&self.tools, &bootstrap, topic, PARTITIONS, &self.home)?;
        let Some(&[leader, follower, ..]) = assignment.first().map(Vec::as_slice) else {
            bail!("no replicas");
        };
        let mut round = Round {
            cluster,
            witness: &witness,
            topic,
            partitions: PARTITIONS,
            number,
            leader,
            follower,
        };
        round.write_on(50)?;
        (kind.act)(&mut round)?;
        round.wait_for_all()?;
        round.write_on(50)?;
        let mut account = witness.finish()?;
        let all = |_: &_| true;
        let views = cluster.wait_for("its leaders", topic, PARTITIONS, all)?;
        let data = data(&cluster.setup);
        for (view, told) in views.iter().zip(&mut account.partitions) {
            let partition = format!("{topic}-{}", view.index);
            let agreed = compare::settled(&data, &partition)?;
            let again = told.excuse_producer(|offset| agreed.producer(offset));
            if again > 0 {
                say(&format!(
                    "        {partition}: the producer wrote {again} records again"
                ));
            }
            let (end, read) = (agreed.end, told.read.len());
            ensure!(
                usize::try_from(end)? == read,
                "{partition} ends at {end}, and {read} records were read"
            );
            let newest = agreed.epochs.last().map_or(-1, |(epoch, _)| *epoch);
            ensure!(
                newest <= view.leader_epoch,
                "{partition} has epoch {newest} in its log, and is in epoch {}",
                view.leader_epoch
            );
            let epochs = told.read.iter().map(|it| it.epoch);
            let epochs: std::collections::BTreeSet<i32> = epochs.collect();
            ensure!(
                agreed.epochs.iter().map(|(epoch, _)| *epoch).eq(epochs),
                "{partition}: readers were told other epochs than {:?}",
                agreed.epochs
            );
        }
        account.judge()
    }

    fn judge_verifiable(&self, cluster: &Cluster, mut account: account::Account) -> Result<()> {
        let bootstrap = cluster.bootstrap();
        let reader = Witness::reader(&self.tools, &bootstrap, VERIFIABLE, PARTITIONS, &self.home)?;
        let read = reader.finish()?;
        for (told, read) in account.partitions.iter_mut().zip(read.partitions) {
            told.read = read.read;
        }
        let count = account.judge()?;
        ensure!(count > 0, "nothing was acknowledged");
        say(&format!(
            "ok      {} VerifiableProducer: {count} records acknowledged",
            self.options.subject.name()
        ));
        Ok(())
    }

    fn compare_all(&self, cluster: &Cluster, topics: &[String]) -> Result<()> {
        let data = data(&cluster.setup);
        let mut batches = 0;
        for topic in topics {
            for partition in 0..PARTITIONS {
                batches +=
                    compare::agree(&data, &format!("{topic}-{partition}"), Writers::Stopped)?
                        .batches;
            }
        }
        let (name, topics) = (self.options.subject.name(), topics.len());
        say(&format!(
            "ok      {name}: the logs of {topics} topics are alike, {batches} batches"
        ));
        Ok(())
    }
}

/// The replicas of each partition: the first is another broker with each round.
fn assignment(number: usize) -> Vec<Vec<i32>> {
    let all = (0..PARTITIONS).map(|partition| {
        let mut replicas = BROKERS.to_vec();
        replicas.rotate_left((partition + number) % BROKERS.len());
        replicas
    });
    all.collect()
}

fn data(setup: &Setup) -> Vec<PathBuf> {
    let all = BROKERS.into_iter().map(|id| setup.data(id));
    all.collect()
}
