//! The processes that write and read while a cluster is tortured.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};

use super::account::Account;
use crate::cluster::process::{Process, Start, tail};
use crate::cluster::setup::{borrowed, java};
use crate::interop::tools::Tools;
use crate::tree;

/// How long a witness may hear nothing. Its own patience is shorter.
const PATIENCE: Duration = Duration::from_secs(90);
const GLANCE: Duration = Duration::from_millis(5);

/// Records a second of the Java witness.
const VERIFIABLE_RATE: &str = "150";

/// A process that tells what it wrote and read.
#[derive(Debug)]
pub(super) struct Witness {
    process: Process,
    input: Option<ChildStdin>,
    heard: Arc<Mutex<Heard>>,
    listener: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Heard {
    account: Account,
    /// What could not be understood, or the end of its output.
    trouble: Option<String>,
}

/// Understands a line of a witness.
type Take = fn(&mut Account, &str) -> Result<()>;

impl Witness {
    /// librdkafka: writes, reads along, and at the end reads it all again.
    pub(super) fn librdkafka(
        tools: &Tools,
        bootstrap: &str,
        topic: &str,
        partitions: usize,
        home: &Path,
    ) -> Result<Self> {
        Self::python(tools, bootstrap, topic, partitions, home, &[])
    }

    /// librdkafka: only reads it all.
    pub(super) fn reader(
        tools: &Tools,
        bootstrap: &str,
        topic: &str,
        partitions: usize,
        home: &Path,
    ) -> Result<Self> {
        let only = ["--only-read".as_ref()];
        Self::python(tools, bootstrap, topic, partitions, home, &only)
    }

    fn python(
        tools: &Tools,
        bootstrap: &str,
        topic: &str,
        partitions: usize,
        home: &Path,
        more: &[&OsStr],
    ) -> Result<Self> {
        let script = tree::root().join("interop/torture.py");
        let count = partitions.to_string();
        let mut arguments = vec![
            script.as_os_str(),
            "--bootstrap".as_ref(),
            bootstrap.as_ref(),
            "--topic".as_ref(),
            topic.as_ref(),
            "--partitions".as_ref(),
            count.as_ref(),
        ];
        arguments.extend(more);
        let start = Start {
            name: format!("the witness of {topic}"),
            program: tools.python.as_os_str(),
            arguments: &arguments,
            log: &home.join(format!("{topic}.librdkafka.log")),
            is_piped: true,
        };
        let told = home.join(format!("{topic}.librdkafka.told"));
        Self::start(&start, partitions, &told, Account::take)
    }

    /// Apache's VerifiableProducer, idempotent, with retries, for as long as it is left alone.
    pub(super) fn verifiable(
        tools: &Tools,
        bootstrap: &str,
        topic: &str,
        partitions: usize,
        home: &Path,
    ) -> Result<Self> {
        let config = home.join("verifiable.properties");
        std::fs::write(
            &config,
            "enable.idempotence=true\nretries=2147483647\ndelivery.timeout.ms=90000\n\
             request.timeout.ms=2000\nmetadata.max.age.ms=1000\nlinger.ms=3\n\
             reconnect.backoff.max.ms=500\n",
        )?;
        let class = "org.apache.kafka.tools.VerifiableProducer";
        let (program, mut arguments) = java(&tools.kafka_libs, "128m", class);
        // Keys spread the records over all partitions from the start. A producer whose very first
        // requests to a partition die with their leader may begin with a later sequence at the next
        // one, which takes it from a producer that it does not know: Kafka's rule.
        let more: [&OsStr; 12] = [
            "--repeating-keys".as_ref(),
            "16".as_ref(),
            "--bootstrap-server".as_ref(),
            bootstrap.as_ref(),
            "--topic".as_ref(),
            topic.as_ref(),
            "--acks".as_ref(),
            "-1".as_ref(),
            "--throughput".as_ref(),
            VERIFIABLE_RATE.as_ref(),
            "--command-config".as_ref(),
            config.as_ref(),
        ];
        arguments.extend(more.map(OsString::from));
        let start = Start {
            name: "VerifiableProducer".to_owned(),
            program: &program,
            arguments: &borrowed(&arguments),
            log: &home.join("verifiable.log"),
            is_piped: true,
        };
        let told = home.join("verifiable.told");
        Self::start(&start, partitions, &told, Account::take_verifiable)
    }

    fn start(start: &Start<'_>, partitions: usize, told: &Path, take: Take) -> Result<Self> {
        let mut process = Process::start(start)?;
        let (input, output) = process.pipes()?;
        let heard = Arc::new(Mutex::new(Heard {
            account: Account::new(partitions),
            trouble: None,
        }));
        let transcript = std::fs::File::create(told)?;
        let ear = Arc::clone(&heard);
        let listener = std::thread::spawn(move || {
            let why = listen(output, transcript, &ear, take);
            let end = why.map_or_else(|why| format!("{why:#}"), |()| "it ended".to_owned());
            lock(&ear).trouble = Some(end);
        });
        Ok(Self {
            process,
            input: Some(input),
            heard,
            listener,
        })
    }

    /// How many records of a partition are acknowledged so far.
    pub(super) fn acknowledged(&self, partition: usize) -> usize {
        let heard = lock(&self.heard);
        let told = heard.account.partitions.get(partition);
        told.map_or(0, |it| it.acknowledged.len())
    }

    /// Waits until `more` further records of the partition are acknowledged.
    pub(super) fn wait_for_more(&self, partition: usize, more: usize) -> Result<()> {
        let wanted = self.acknowledged(partition) + more;
        self.wait("acknowledgements", |account| {
            let told = account.partitions.get(partition);
            told.is_some_and(|it| it.acknowledged.len() >= wanted)
        })
    }

    fn wait(&self, what: &str, holds: impl Fn(&Account) -> bool) -> Result<()> {
        let began = Instant::now();
        loop {
            let trouble = {
                let heard = lock(&self.heard);
                if holds(&heard.account) {
                    return Ok(());
                }
                heard.trouble.clone()
            };
            if trouble.is_some() || began.elapsed() > PATIENCE {
                let told = self.process.told()?;
                return Err(anyhow!(
                    "a witness waits for {what}: {}\n{}",
                    trouble.unwrap_or_else(|| format!("not within {PATIENCE:?}")),
                    tail(&told, 3000)
                ));
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Lets the writer stop; waits until everything is read again, and for the end.
    pub(super) fn finish(mut self) -> Result<Account> {
        if let Some(mut input) = self.input.take() {
            // One that only reads may be done already.
            writeln!(input, "stop").ok();
        }
        self.wait("the end", |account| account.is_done)?;
        self.end()
    }

    /// Stops a process that knows no other way than a signal.
    pub(super) fn finish_by_signal(self) -> Result<Account> {
        self.process.ask_to_end()?;
        self.wait("the end", |account| account.is_done)?;
        self.end()
    }

    fn end(self) -> Result<Account> {
        let status = self.process.wait(PATIENCE)?;
        let is_fine = status.success() || status.code() == Some(143);
        ensure!(is_fine, "a witness ended with {status}");
        self.listener.join().map_err(|_| anyhow!("the listener"))?;
        let heard = std::mem::take(&mut *lock(&self.heard));
        Ok(heard.account)
    }
}

fn listen(
    output: ChildStdout,
    mut transcript: std::fs::File,
    heard: &Mutex<Heard>,
    take: Take,
) -> Result<()> {
    for line in BufReader::new(output).lines() {
        let line = line?;
        writeln!(transcript, "{line}")?;
        take(&mut lock(heard).account, &line).context("not understood")?;
    }
    Ok(())
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
