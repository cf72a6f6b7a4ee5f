//! Stories of one replica: inputs in, outputs compared.

mod following;
mod isr;
mod random;
mod story;

use highwater_replication::FlushPolicy;
use highwater_types::{ErrorCode, LeaderEpoch, Millis, NodeId};

use story::{EACH, NEVER, Story, config, offset, text};

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
    assert_eq!(story.metadata(1, (0, 1), &[1, 2], &[1]), "isr 1,2 -> 1");
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
    assert_eq!(
        story.metadata(1, (0, 2), &[1, 2], &[1, 2]),
        "isr 1 -> 1,2; hw 10 -> 11"
    );
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
