//! What the logs of the processes must say of an ISR that lost a member.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::cluster::Subject;
use crate::cluster::process::{tail, told_since};
use crate::cluster::setup::{BROKERS, CONTROLLER, Setup};

/// Words of one line; `{topic}` is a partition's topic and `{broker}` who is out.
type Words = &'static [&'static str];

/// For each subject, lines of which one must be there.
#[derive(Debug)]
pub(super) struct Cause {
    highwater: &'static [Words],
    kafka: &'static [Words],
}

/// It fetched too little for too long.
pub(super) const OUT_BY_LAG: Cause = Cause {
    highwater: &[&["isr-wanted {topic}-0 ", ": {broker} lags ("]],
    kafka: &[&[
        "{topic}-0",
        "Shrinking ISR from",
        "Out of sync replicas: (brokerId: {broker},",
    ]],
};

/// That, or its session with the controller ended.
pub(super) const OUT_BY_LAG_OR_SESSION: Cause = Cause {
    highwater: &[
        &["isr-wanted {topic}-0 ", ": {broker} lags ("],
        &["broker {broker} was silent for ", ": fenced"],
    ],
    kafka: &[
        &[
            "{topic}-0",
            "Shrinking ISR from",
            "Out of sync replicas: (brokerId: {broker},",
        ],
        &["Fencing broker {broker} ", "session has timed out"],
    ],
};

/// Where each log ended at some moment.
#[derive(Debug)]
pub(super) struct Logs(Vec<(PathBuf, u64)>);

impl Logs {
    /// As they are.
    pub(super) fn now(setup: &Setup) -> Result<Self> {
        let ids = BROKERS.into_iter().chain([CONTROLLER]);
        let logs = ids.map(|id| setup.log(id));
        let ends = logs.map(|log| Ok((log.clone(), log.metadata()?.len())));
        Ok(Self(ends.collect::<Result<_>>()?))
    }

    /// Since then some log says why `broker` left the ISR of the topic's partition 0.
    pub(super) fn must_tell(
        &self,
        subject: Subject,
        topic: &str,
        broker: i32,
        cause: &Cause,
    ) -> Result<()> {
        let lines = match subject {
            Subject::Highwater => cause.highwater,
            Subject::Kafka => cause.kafka,
        };
        let mut all = String::new();
        for (log, start) in &self.0 {
            all.push_str(&told_since(log, *start)?);
        }
        let broker = broker.to_string();
        let fill = |word: &str| word.replace("{topic}", topic).replace("{broker}", &broker);
        let is_told = lines.iter().any(|words| {
            let words: Vec<String> = words.iter().map(|word| fill(word)).collect();
            all.lines()
                .any(|line| words.iter().all(|word| line.contains(word)))
        });
        let of_isr: Vec<&str> = all.lines().filter(|line| line.contains(topic)).collect();
        ensure!(
            is_told,
            "no log tells why broker {broker} left the ISR of {topic}-0; of it they say:\n{}",
            tail(&of_isr.join("\n"), 3000)
        );
        Ok(())
    }
}
