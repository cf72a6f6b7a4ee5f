//! What is done to the cluster while it is written to.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::causes::{self, Logs};
use super::witness::Witness;
use crate::bench::load::Load;
use crate::bench::wire::Acks;
use crate::cluster::ask::{self, Partition};
use crate::cluster::compare;
use crate::cluster::setup::{BROKERS, say};
use crate::cluster::{Cluster, PATIENCE};

/// Past the lag limit and the session of [`super::SETTINGS`].
const LONG: Duration = Duration::from_millis(3500);
const GLANCE: Duration = Duration::from_millis(5);
/// Further acknowledgements that show that writing goes on.
const SOME: usize = 100;

/// One kind of round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) story: &'static str,
    pub(super) act: fn(&mut Round<'_>) -> Result<()>,
}

/// Every kind.
pub(super) const KINDS: [Kind; 6] = [
    Kind {
        name: "kill-leader",
        story: "kill -9 the leader",
        act: kill_leader,
    },
    Kind {
        name: "pause-follower",
        story: "SIGSTOP a follower past the lag limit and continue it",
        act: pause_follower,
    },
    Kind {
        name: "pause-leader",
        story: "SIGSTOP the leader and continue it: a leader that does not know",
        act: pause_leader,
    },
    Kind {
        name: "cut",
        story: "cut the way between leader and follower, and heal it",
        act: cut,
    },
    Kind {
        name: "restart",
        story: "kill -9 all three and start them again; every second time SIGTERM",
        act: restart,
    },
    Kind {
        name: "return",
        story: "kill a follower, write on, restart it, kill the leader at its return to the ISR",
        act: follower_returns,
    },
];

/// A cluster and a topic in which partition 0 is looked at: its replicas are leader, follower and
/// another, in this order.
pub(super) struct Round<'a> {
    pub(super) cluster: &'a mut Cluster,
    pub(super) witness: &'a Witness,
    pub(super) topic: &'a str,
    pub(super) partitions: usize,
    pub(super) number: usize,
    pub(super) leader: i32,
    pub(super) follower: i32,
}

impl Round<'_> {
    /// Waits until all brokers that run say so of partition 0; how long that took.
    fn wait_for(&mut self, what: &str, holds: impl Fn(&Partition) -> bool) -> Result<()> {
        let began = Instant::now();
        let of_first = |it: &Partition| it.index != 0 || holds(it);
        self.cluster
            .wait_for(what, self.topic, self.partitions, of_first)?;
        self.note(what, began);
        Ok(())
    }

    /// Waits until every replica of the topic is in its ISR.
    pub(super) fn wait_for_all(&mut self) -> Result<()> {
        let began = Instant::now();
        let all = |it: &Partition| it.isr.len() == it.replicas.len();
        let what = "all in the ISR";
        self.cluster
            .wait_for(what, self.topic, self.partitions, all)?;
        self.note(what, began);
        Ok(())
    }

    /// Waits until all partitions are written on.
    pub(super) fn write_on(&self, records: usize) -> Result<()> {
        for partition in 0..self.partitions {
            self.witness.wait_for_more(partition, records)?;
        }
        Ok(())
    }

    fn note(&self, what: &str, began: Instant) {
        say(&format!(
            "        {what}: {} ms",
            began.elapsed().as_millis()
        ));
    }

    /// The third broker.
    fn other(&self) -> i32 {
        let mut all = BROKERS.into_iter();
        let other = all.find(|id| *id != self.leader && *id != self.follower);
        other.unwrap_or(self.leader)
    }

    fn start_again(&mut self, id: i32) -> Result<()> {
        let began = Instant::now();
        self.cluster.launch(id)?;
        self.cluster.wait_to_serve(id)?;
        self.note("serves again", began);
        Ok(())
    }

    /// Waits for the first acknowledgement in partition 0 after a leader is gone.
    fn next_acknowledged(&self, gone: Instant) -> Result<()> {
        // What the old leader had answered already comes first.
        std::thread::sleep(Duration::from_millis(100));
        self.witness.wait_for_more(0, 1)?;
        self.note("the next acknowledged record", gone);
        Ok(())
    }
}

fn kill_leader(round: &mut Round<'_>) -> Result<()> {
    let leader = round.leader;
    round.cluster.kill(leader)?;
    round.next_acknowledged(Instant::now())?;
    round.wait_for("another leader", |it| it.leader != leader)?;
    round.write_on(SOME)?;
    round.start_again(leader)
}

fn pause_follower(round: &mut Round<'_>) -> Result<()> {
    let follower = round.follower;
    let logs = Logs::now(&round.cluster.setup)?;
    let paused = Instant::now();
    round.cluster.node(follower)?.pause()?;
    round.wait_for("out of the ISR", |it| !it.isr.contains(&follower))?;
    round.write_on(SOME)?;
    std::thread::sleep(LONG.saturating_sub(paused.elapsed()));
    round.cluster.node(follower)?.resume()?;
    round.wait_for_all()?;
    let subject = round.cluster.setup.subject;
    logs.must_tell(
        subject,
        round.topic,
        follower,
        &causes::OUT_BY_LAG_OR_SESSION,
    )
}

fn pause_leader(round: &mut Round<'_>) -> Result<()> {
    let leader = round.leader;
    let stale = format!("{}-stale", round.topic);
    // One of them alone could acknowledge, if it still took itself for the leader.
    let replicas = vec![leader, round.follower, round.other()];
    let alone = [("min.insync.replicas", "1")];
    round.cluster.create_topic(&stale, &[replicas], &alone)?;
    let mut late = Load::connect_with(round.cluster.port(leader)?, Acks::All)?;
    let paused = Instant::now();
    round.cluster.node(leader)?.pause()?;
    // It lies in the leader's socket until the leader goes on.
    late.send_one(&stale)?;
    round.wait_for("another leader", |it| it.leader != leader)?;
    round.next_acknowledged(paused)?;
    round.write_on(SOME)?;
    let elsewhere = |it: &Partition| it.leader != leader;
    let views = round.cluster.wait_for("another", &stale, 1, elsewhere)?;
    let next = views.first().context("no partition 0")?.leader;
    Load::connect_with(round.cluster.port(next)?, Acks::All)?.first(&stale)?;
    std::thread::sleep(LONG.saturating_sub(paused.elapsed()));
    round.cluster.node(leader)?.resume()?;
    round.wait_for_all()?;
    // Refused, or the connection is closed; any error will do.
    let code = late.answer_to_one(&stale).unwrap_or(-1);
    ensure!(code != 0, "a leader that others have left acknowledged");
    let data = BROKERS.map(|id| round.cluster.setup.data(id));
    let agreed = compare::settled(&data, &format!("{stale}-0"))?;
    ensure!(agreed.end == 1, "{stale} ends at {} of 1", agreed.end);
    Ok(())
}

fn cut(round: &mut Round<'_>) -> Result<()> {
    let (leader, follower) = (round.leader, round.follower);
    let logs = Logs::now(&round.cluster.setup)?;
    round.cluster.cut(leader, follower);
    round.wait_for("out of the ISR", |it| !it.isr.contains(&follower))?;
    round.write_on(SOME)?;
    round.cluster.heal();
    round.wait_for_all()?;
    let subject = round.cluster.setup.subject;
    logs.must_tell(subject, round.topic, follower, &causes::OUT_BY_LAG)
}

fn restart(round: &mut Round<'_>) -> Result<()> {
    let began = Instant::now();
    if round.number % 2 == 1 {
        for id in BROKERS {
            round.cluster.kill(id)?;
        }
    } else {
        round.cluster.stop(&BROKERS)?;
    }
    for id in BROKERS {
        round.cluster.launch(id)?;
    }
    for id in BROKERS {
        round.cluster.wait_to_serve(id)?;
    }
    round.note("all three serve again", began);
    round.next_acknowledged(began)
}

fn follower_returns(round: &mut Round<'_>) -> Result<()> {
    let (leader, follower) = (round.leader, round.follower);
    round.cluster.kill(follower)?;
    round.wait_for("out of the ISR", |it| !it.isr.contains(&follower))?;
    round.write_on(3 * SOME)?;
    let began = Instant::now();
    round.cluster.launch(follower)?;
    let at = wait_to_return(round)?;
    round.cluster.kill(leader)?;
    round.note("back in the ISR", began);
    round.next_acknowledged(at)?;
    round.cluster.wait_to_serve(follower)?;
    round.wait_for("another leader", |it| it.leader != leader)?;
    round.write_on(SOME)?;
    round.start_again(leader)
}

/// Asks the leader, and nobody else, until the follower is in the ISR.
fn wait_to_return(round: &Round<'_>) -> Result<Instant> {
    let port = round.cluster.port(round.leader)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let partitions = ask::partitions(port, round.topic)?;
        let first = partitions.first().context("no partition 0")?;
        ensure!(
            first.leader == round.leader,
            "the leader changed: {first:?}"
        );
        if first.isr.contains(&round.follower) {
            return Ok(Instant::now());
        }
        std::thread::sleep(GLANCE);
    }
    bail!("broker {} does not come back into the ISR", round.follower)
}
