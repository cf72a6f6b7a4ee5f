//! Stories of one replica: inputs in, outputs compared.

use highwater_replication::{
    Assignment, FlushPolicy, FollowerFetch, LogEnds, Output, Replica, ReplicaConfig,
};
use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, Offset, PartitionEpoch,
};
use proptest::prelude::*;

const SELF: i32 = 1;

struct Story {
    replica: Replica,
    now: Now,
}

fn text(outputs: &[Output]) -> String {
    let line = |output: &Output| match output {
        Output::Leads {
            epoch,
            start_offset,
        } => format!("leads {epoch} at {start_offset}"),
        Output::LeadsNoMore { epoch } => format!("leads no more {epoch}"),
        Output::Follows { leader, epoch } => {
            format!("follows {} {epoch}", leader.map_or(-1, NodeId::raw))
        }
        Output::HighWatermark { from, to } => format!("hw {from} -> {to}"),
        Output::Flush => "flush".to_owned(),
        Output::DataLoss { from, to } => format!("lost [{from},{to})"),
    };
    outputs.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn offset(raw: i64) -> Offset {
    Offset::new(raw)
}

fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId::new).collect()
}

fn config(min_in_sync_replicas: usize, flush: FlushPolicy) -> ReplicaConfig {
    ReplicaConfig {
        min_in_sync_replicas,
        flush,
    }
}

const NEVER: FlushPolicy = FlushPolicy::NEVER;
const EACH: FlushPolicy = FlushPolicy {
    messages: 1,
    age: None,
};

impl Story {
    fn new(log_end: i64, flushed: i64, hw: i64, config: ReplicaConfig) -> Self {
        let now = Now {
            mono: Mono::from_micros(1_000_000),
            ..Now::default()
        };
        let ends = LogEnds {
            log_start_offset: offset(0),
            log_end_offset: offset(log_end),
            flushed_offset: offset(flushed),
        };
        Self {
            replica: Replica::new(now, NodeId::new(SELF), ends, offset(hw), config),
            now,
        }
    }

    fn metadata(&mut self, leader: i32, epochs: (i32, i32), ar: &[i32], isr: &[i32]) -> String {
        let assignment = Assignment {
            leader: (leader >= 0).then(|| NodeId::new(leader)),
            leader_epoch: LeaderEpoch::new(epochs.0),
            partition_epoch: PartitionEpoch::new(epochs.1),
            assigned_replicas: nodes(ar),
            in_sync_replicas: nodes(isr),
        };
        let mut out = Vec::new();
        self.replica
            .handle_metadata(self.now, &assignment, &mut out);
        text(&out)
    }

    fn append(&mut self, log_end: i64) -> String {
        let mut out = Vec::new();
        self.replica
            .handle_appended(self.now, offset(log_end), &mut out);
        text(&out)
    }

    fn flushed(&mut self, to: i64) -> String {
        let mut out = Vec::new();
        self.replica.handle_flushed(self.now, offset(to), &mut out);
        text(&out)
    }

    fn advance(&mut self, ms: u64) -> String {
        self.now.mono = self.now.mono.plus(Millis::new(ms));
        let mut out = Vec::new();
        self.replica.handle_tick(self.now, &mut out);
        text(&out)
    }

    fn fetch(&mut self, replica: i32, epoch: i32, at: i64) -> Result<String, ErrorCode> {
        let fetch = FollowerFetch {
            replica: NodeId::new(replica),
            broker_epoch: BrokerEpoch::new(5),
            leader_epoch: LeaderEpoch::new(epoch),
            fetch_offset: offset(at),
        };
        let mut out = Vec::new();
        self.replica
            .handle_follower_fetch(self.now, fetch, &mut out)
            .map(|()| text(&out))
    }
}

#[test]
fn a_sole_replica_commits_as_it_appends() {
    let mut story = Story::new(0, 0, 0, config(1, NEVER));
    assert_eq!(
        story.replica.check_append(false),
        Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    );
    assert_eq!(story.metadata(1, (0, 0), &[1], &[1]), "leads 0 at 0");
    assert_eq!(story.append(3), "hw 0 -> 3");
    assert_eq!(
        story.replica.acks_all_outcome(offset(3)),
        Some(ErrorCode::NONE)
    );
    assert_eq!(story.replica.acks_all_outcome(offset(4)), None);
}

#[test]
fn a_restarted_sole_replica_takes_up_its_log_when_it_leads() {
    let mut story = Story::new(10, 4, 2, config(1, NEVER));
    assert_eq!(story.metadata(-1, (4, 7), &[1], &[1]), "follows -1 4");
    assert_eq!(story.replica.high_watermark(), offset(2));
    assert_eq!(
        story.metadata(1, (5, 8), &[1], &[1]),
        "leads 5 at 10; hw 2 -> 10"
    );
}

#[test]
fn flush_messages_1_holds_the_high_watermark_until_the_flush() {
    let mut story = Story::new(0, 0, 0, config(1, EACH));
    story.metadata(1, (0, 0), &[1], &[1]);
    assert_eq!(story.append(2), "flush");
    assert_eq!(story.append(5), "", "one sync in flight is enough");
    assert_eq!(story.replica.acks_all_outcome(offset(2)), None);
    assert_eq!(
        story.flushed(2),
        "flush; hw 0 -> 2",
        "the log end has moved: sync again"
    );
    assert_eq!(story.flushed(5), "hw 2 -> 5");
    assert_eq!(story.replica.next_deadline(), None);
}

#[test]
fn flush_messages_many_lets_fewer_unflushed_records_pass() {
    let policy = FlushPolicy {
        messages: 10,
        age: None,
    };
    let mut story = Story::new(0, 0, 0, config(1, policy));
    story.metadata(1, (0, 0), &[1], &[1]);
    assert_eq!(story.append(9), "hw 0 -> 9");
    assert_eq!(story.append(10), "flush");
    assert_eq!(story.replica.high_watermark(), offset(9));
    assert_eq!(story.flushed(10), "hw 9 -> 10");
}

#[test]
fn flush_ms_bounds_the_age_of_what_is_not_flushed() {
    let policy = FlushPolicy {
        messages: u64::MAX,
        age: Some(Millis::new(100)),
    };
    let mut story = Story::new(0, 0, 0, config(1, policy));
    story.metadata(1, (0, 0), &[1], &[1]);
    assert_eq!(story.append(1), "hw 0 -> 1");
    assert_eq!(
        story.replica.next_deadline(),
        Some(story.now.mono.plus(Millis::new(100)))
    );
    assert_eq!(story.advance(99), "");
    assert_eq!(story.advance(1), "flush");
    assert_eq!(
        story.append(2),
        "",
        "held back: the oldest record is overdue"
    );
    assert_eq!(story.flushed(1), "hw 1 -> 2", "what is left is young again");
    assert_eq!(story.advance(100), "flush");
}

#[test]
fn ih_12_below_the_minimum_isr_the_high_watermark_stands_still() {
    let mut story = Story::new(0, 0, 0, config(2, NEVER));
    story.metadata(1, (0, 0), &[1, 2], &[1, 2]);
    assert_eq!(story.append(10), "");
    assert_eq!(story.fetch(2, 0, 10), Ok("hw 0 -> 10".to_owned()));
    assert_eq!(story.append(11), "");
    assert_eq!(story.metadata(1, (0, 1), &[1, 2], &[1]), "");
    assert_eq!(story.replica.high_watermark(), offset(10));
    assert_eq!(
        story.replica.check_append(true),
        Err(ErrorCode::NOT_ENOUGH_REPLICAS)
    );
    assert_eq!(story.replica.check_append(false), Ok(LeaderEpoch::new(0)));
    assert_eq!(
        story.replica.acks_all_outcome(offset(10)),
        Some(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    );
    assert_eq!(
        story.fetch(2, 0, 11),
        Ok(String::new()),
        "still below the minimum"
    );
    assert_eq!(story.metadata(1, (0, 2), &[1, 2], &[1, 2]), "hw 10 -> 11");
}

#[test]
fn the_minimum_isr_counts_no_further_than_the_replicas() {
    let mut story = Story::new(0, 0, 0, config(3, NEVER));
    story.metadata(1, (0, 0), &[1], &[1]);
    assert_eq!(story.replica.effective_min_in_sync_replicas(), 1);
    assert_eq!(story.append(1), "hw 0 -> 1");
}

#[test]
fn rt_04_a_fetch_of_another_epoch_changes_nothing() {
    let mut story = Story::new(5, 5, 5, config(1, NEVER));
    story.metadata(1, (3, 9), &[1, 2], &[1, 2]);
    story.append(6);
    assert_eq!(story.fetch(2, 1, 6), Err(ErrorCode::FENCED_LEADER_EPOCH));
    assert_eq!(story.fetch(2, 4, 6), Err(ErrorCode::UNKNOWN_LEADER_EPOCH));
    assert_eq!(
        story.fetch(3, 3, 6),
        Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
        "not assigned"
    );
    assert_eq!(story.replica.high_watermark(), offset(5));
    assert_eq!(story.fetch(2, 3, 6), Ok("hw 5 -> 6".to_owned()));
}

#[test]
fn cm_10_the_same_epoch_keeps_epoch_start_and_followers() {
    let mut story = Story::new(4, 4, 4, config(1, NEVER));
    assert_eq!(story.metadata(1, (4, 9), &[1, 2], &[1, 2]), "leads 4 at 4");
    story.append(8);
    story.fetch(2, 4, 8).expect("a good fetch");
    assert_eq!(story.metadata(1, (4, 10), &[1, 2, 3], &[1, 2]), "");
    let leader = story.replica.role().as_leader().expect("leads");
    assert_eq!(leader.epoch_start_offset, offset(4));
    assert_eq!(leader.followers[&NodeId::new(2)].log_end_offset, offset(8));
    assert_eq!(
        story.metadata(1, (5, 11), &[1, 2, 3], &[1, 2]),
        "leads 5 at 8"
    );
}

#[test]
fn leadership_that_may_have_been_elsewhere_is_lost_even_if_regained() {
    let mut story = Story::new(0, 0, 0, config(1, NEVER));
    story.metadata(1, (1, 0), &[1], &[1]);
    assert_eq!(
        story.metadata(1, (2, 1), &[1], &[1]),
        "leads 2 at 0",
        "the next epoch is ours"
    );
    assert_eq!(
        story.metadata(1, (4, 3), &[1], &[1]),
        "leads no more 2; leads 4 at 0"
    );
    assert_eq!(
        story.metadata(2, (5, 4), &[1, 2], &[2]),
        "leads no more 4; follows 2 5"
    );
    assert_eq!(
        story.replica.acks_all_outcome(offset(0)),
        Some(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    );
}

#[test]
fn i_20_older_metadata_is_ignored() {
    let mut story = Story::new(0, 0, 0, config(1, NEVER));
    story.metadata(1, (3, 7), &[1], &[1]);
    assert_eq!(story.metadata(2, (2, 6), &[1, 2], &[2]), "");
    assert!(story.replica.is_leader());
    assert_eq!(
        story.metadata(1, (3, 7), &[1], &[1]),
        "",
        "the same once more"
    );
}

#[test]
fn rt_17_a_cut_below_the_high_watermark_is_told_before_it_happens() {
    let mut story = Story::new(10, 10, 8, config(1, NEVER));
    let mut out = Vec::new();
    story.replica.handle_truncated(offset(6), &mut out);
    assert_eq!(text(&out), "lost [6,8)");
    assert_eq!(story.replica.high_watermark(), offset(6));
}

#[test]
fn a_follower_with_a_flush_policy_flushes_but_moves_no_high_watermark() {
    let mut story = Story::new(0, 0, 0, config(1, EACH));
    story.metadata(2, (1, 1), &[1, 2], &[2]);
    assert_eq!(story.append(5), "flush");
    assert_eq!(story.flushed(5), "");
    assert_eq!(story.replica.high_watermark(), offset(0));
}

proptest! {
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
                for node in leader.maximal_isr.iter().filter(|node| node.raw() != SELF) {
                    prop_assert!(leader.followers[node].log_end_offset >= after);
                }
            }
        }
    }
}
