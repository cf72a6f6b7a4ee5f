use std::collections::BTreeMap;

use highwater_replication::{FlushPolicy, Output};
use highwater_types::{BrokerEpoch, ErrorCode, Millis, NodeId};
use proptest::prelude::*;

use crate::story::{NEVER, SELF, Story, config};

/// A controller that decides late, whose answers are lost, and whose metadata comes late; and two
/// followers that really hold what they say.
struct Cluster {
    leader: Story,
    /// What each follower holds.
    held: BTreeMap<i32, i64>,
    isr: Vec<i32>,
    partition_epoch: i32,
    /// Proposals on their way: the partition epoch that they start from, and the ISR.
    asked: Vec<(i32, Vec<i32>)>,
    /// Metadata on its way.
    told: Vec<(i32, Vec<i32>)>,
}

impl Cluster {
    fn new() -> Self {
        let mut leader = Story::new(0, 0, 0, config(1, NEVER));
        leader.brokers(&[1, 2, 3]);
        leader.metadata(SELF, (1, 0), &[1, 2, 3], &[1, 2, 3]);
        Self {
            leader,
            held: BTreeMap::from([(2, 0), (3, 0)]),
            isr: vec![1, 2, 3],
            partition_epoch: 0,
            asked: Vec::new(),
            told: Vec::new(),
        }
    }

    fn note(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            if let Output::ProposeIsr(it) = output {
                let isr = it.in_sync_replicas.iter();
                let isr = isr.map(|(node, _): &(NodeId, BrokerEpoch)| node.raw());
                self.asked.push((it.partition_epoch.raw(), isr.collect()));
            }
        }
    }

    fn held(&self, follower: i32) -> i64 {
        self.held.get(&follower).copied().unwrap_or_default()
    }

    /// The controller takes one proposal; `heard` tells whether its answer arrives.
    fn decide(&mut self, which: usize, heard: bool) {
        if self.asked.is_empty() {
            return;
        }
        let (asked_at, isr) = self.asked.remove(which % self.asked.len());
        let result = if asked_at == self.partition_epoch {
            self.partition_epoch += 1;
            self.isr.clone_from(&isr);
            self.told.push((self.partition_epoch, isr));
            Ok((self.partition_epoch, self.isr.clone()))
        } else {
            Err(ErrorCode::INVALID_UPDATE_VERSION)
        };
        let (result, asked) = match (heard, result) {
            (true, result) => (result, asked_at),
            (false, _) => (Err(ErrorCode::NETWORK_EXCEPTION), asked_at),
        };
        let outputs = self.leader.isr_outputs(1, asked, result);
        self.note(outputs);
    }

    /// Nobody that the controller could elect lacks what was committed.
    fn check(&self) {
        let high_watermark = self.leader.replica.high_watermark().raw();
        for node in self.isr.iter().filter(|node| **node != SELF) {
            let held = self.held(*node);
            assert!(
                held >= high_watermark,
                "{node} of ISR {:?} holds {held}, the high watermark is {high_watermark}",
                self.isr
            );
        }
    }
}

proptest! {
    /// I-06: whatever is delayed, lost or answered late, each member of the ISR that the
    /// controller committed holds everything below the leader's high watermark.
    #[test]
    fn i_06_every_candidate_holds_what_is_committed(
        steps in proptest::collection::vec((0_u8..7, 0_i64..8, any::<bool>()), 1..120),
    ) {
        let mut cluster = Cluster::new();
        let mut log_end = 0;
        for (what, amount, coin) in steps {
            let follower = if coin { 3 } else { 2 };
            match what {
                0 => {
                    log_end += amount;
                    cluster.leader.append(log_end);
                }
                1 | 2 => {
                    // What was copied is acknowledged by the next fetch only.
                    let held = cluster.held(follower);
                    let fetched = cluster.leader.fetch_outputs(follower, 1, held);
                    cluster.note(fetched);
                    cluster.held.insert(follower, (held + amount).min(log_end));
                }
                3 => {
                    let outputs = cluster.leader.lag_outputs(amount.unsigned_abs() * 4_000);
                    cluster.note(outputs);
                }
                4 | 5 => cluster.decide(usize::try_from(amount).expect("small"), coin),
                _ => {
                    if !cluster.told.is_empty() {
                        let (partition_epoch, isr) = cluster.told.remove(0);
                        cluster.leader.metadata(SELF, (1, partition_epoch), &[1, 2, 3], &isr);
                    }
                }
            }
            cluster.check();
        }
    }

    /// Whatever happens, the invariants hold (they are asserted inside) and the high watermark of
    /// a leader never falls nor passes what its followers hold.
    #[test]
    fn i_08_the_high_watermark_never_falls(
        steps in proptest::collection::vec((0_u8..6, 0_i64..20, 0_i32..3), 1..60),
        messages in 1_u64..20,
    ) {
        let policy = FlushPolicy { messages, age: Some(Millis::new(50)) };
        let mut story = Story::new(0, 0, 0, config(2, policy));
        let (mut epoch, mut partition_epoch, mut log_end) = (0, 0, 0);
        story.metadata(1, (epoch, partition_epoch), &[1, 2, 3], &[1, 2, 3]);
        for (what, amount, which) in steps {
            let before = story.replica.high_watermark();
            match what {
                0 | 1 => {
                    log_end += amount;
                    story.append(log_end);
                }
                2 => drop(story.flushed((log_end - amount).max(0))),
                3 => drop(story.fetch(2 + which % 2, epoch, (log_end - amount).max(0))),
                4 => drop(story.advance(amount.unsigned_abs() * 10)),
                _ => {
                    partition_epoch += 1;
                    epoch += i32::from(which == 0);
                    let isr: &[i32] = if which == 1 { &[1] } else { &[1, 2] };
                    story.metadata(1, (epoch, partition_epoch), &[1, 2, 3], isr);
                }
            }
            let after = story.replica.high_watermark();
            prop_assert!(after >= before);
            if after > before {
                let leader = story.replica.role().as_leader().expect("leads throughout");
                for node in leader.isr.maximal().filter(|node| node.raw() != SELF) {
                    prop_assert!(leader.followers[&node].log_end_offset >= after);
                }
            }
        }
    }
}
