//! What a follower does about its leader's answers.

use highwater_replication::{
    FetchPosition, FollowStep, LeaderAnswer, LeaderRange, NextFetch, Output, ReplicaConfig,
};
use highwater_types::{EpochEnd, EpochEntry, EpochHistory, ErrorCode, LeaderEpoch, Millis, Offset};

use crate::story::{EACH, NEVER, Story, config, offset, text};

/// A follower of node 2 in epoch 3 with its epoch history.
struct Following {
    story: Story,
    entries: Vec<EpochEntry>,
}

impl Following {
    fn new(history: &[(i32, i64)], log_end: i64, high_watermark: i64) -> Self {
        let mut story = Story::new(log_end, log_end, high_watermark, config(1, NEVER));
        story.metadata(2, (3, 1), &[1, 2], &[2]);
        let entries = history.iter().map(|&(epoch, start_offset)| EpochEntry {
            epoch: LeaderEpoch::new(epoch),
            start_offset: offset(start_offset),
        });
        let entries = entries.collect();
        Self { story, entries }
    }

    fn position(&self) -> FetchPosition {
        let newest = self.entries.last().map_or(LeaderEpoch::NONE, |it| it.epoch);
        self.story
            .replica
            .fetch_position(newest)
            .expect("it follows")
    }

    fn answered(&mut self, sent: FetchPosition, answer: LeaderAnswer) -> FollowStep {
        let own = EpochHistory {
            entries: &self.entries,
            log_end_offset: self.story.replica.log_end_offset(),
        };
        self.story
            .replica
            .judge_fetch(self.story.now, sent, own, answer)
    }

    fn range(&mut self, sent: FetchPosition, start: i64, end: i64) -> FollowStep {
        let own = EpochHistory {
            entries: &self.entries,
            log_end_offset: self.story.replica.log_end_offset(),
        };
        let range = LeaderRange {
            log_start_offset: offset(start),
            log_end_offset: offset(end),
        };
        self.story
            .replica
            .judge_leader_range(self.story.now, sent, own, range)
    }

    fn told(&mut self, high_watermark: i64) -> String {
        let mut out: Vec<Output> = Vec::new();
        let replica = &mut self.story.replica;
        replica.handle_leader_high_watermark(offset(high_watermark), &mut out);
        text(&out)
    }

    fn next_fetch(&self) -> NextFetch {
        let follower = self.story.replica.role().as_follower();
        follower.expect("it follows").next_fetch
    }
}

fn diverging(epoch: i32, end_offset: i64) -> LeaderAnswer {
    LeaderAnswer::Diverging(EpochEnd {
        epoch: LeaderEpoch::new(epoch),
        end_offset: offset(end_offset),
    })
}

#[test]
fn records_are_appended_and_the_high_watermark_follows_the_log_end() {
    let mut it = Following::new(&[(1, 0)], 4, 4);
    let sent = it.position();
    assert_eq!(
        (sent.fetch_offset, sent.leader_epoch),
        (offset(4), LeaderEpoch::new(3))
    );
    assert_eq!(it.answered(sent, LeaderAnswer::Records), FollowStep::Append);
    it.story.append(6);
    assert_eq!(it.told(5), "hw 4 -> 5");
    assert_eq!(it.told(9), "hw 5 -> 6", "no higher than what is held");
    assert_eq!(
        it.told(3),
        "",
        "a new leader may not know yet what is committed"
    );
}

#[test]
fn rt_01_a_restarted_follower_cuts_nothing_when_the_histories_agree() {
    // Its checkpoint said 4; the log holds 5 records of epoch 1.
    let mut it = Following::new(&[(1, 0)], 5, 4);
    let sent = it.position();
    assert_eq!(it.answered(sent, LeaderAnswer::Records), FollowStep::Append);
    assert_eq!(it.story.replica.log_end_offset(), offset(5));
}

#[test]
fn rt_02_the_old_leader_cuts_where_the_new_epoch_began() {
    let mut it = Following::new(&[(1, 0)], 2, 2);
    let sent = it.position();
    assert_eq!(
        it.answered(sent, diverging(1, 1)),
        FollowStep::CutTo(offset(1))
    );
}

#[test]
fn rt_06_a_cut_at_the_log_end_is_a_step_all_the_same() {
    let mut it = Following::new(&[(1, 0), (2, 5)], 5, 5);
    let sent = it.position();
    assert_eq!(
        it.answered(sent, diverging(1, 5)),
        FollowStep::CutTo(offset(5))
    );
}

#[test]
fn rt_08_the_high_watermark_comes_after_the_cut() {
    let mut it = Following::new(&[(1, 0)], 15, 8);
    let sent = it.position();
    assert_eq!(
        it.answered(sent, diverging(1, 10)),
        FollowStep::CutTo(offset(10))
    );
    let mut out = Vec::new();
    it.story.replica.handle_truncated(offset(10), &mut out);
    assert_eq!(text(&out), "");
    assert_eq!(it.told(20), "hw 8 -> 10");
}

#[test]
fn rt_10_a_full_cut_takes_the_high_watermark_along() {
    let mut it = Following::new(&[(1, 0)], 300, 300);
    let sent = it.position();
    let out_of_range = LeaderAnswer::Error(ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(it.answered(sent, out_of_range), FollowStep::AskRange);
    assert_eq!(it.range(sent, 500, 900), FollowStep::RestartAt(offset(500)));
    let mut out = Vec::new();
    it.story.replica.handle_restarted(offset(500), &mut out);
    assert_eq!(text(&out), "");
    assert_eq!(it.story.replica.high_watermark(), offset(500));
}

#[test]
fn rt_11_after_an_unclean_election_the_log_is_cut_to_the_leaders_end_and_that_is_told() {
    let mut it = Following::new(&[(1, 0)], 100, 100);
    let sent = it.position();
    assert_eq!(it.range(sent, 0, 50), FollowStep::CutTo(offset(50)));
    let mut out = Vec::new();
    it.story.replica.handle_truncated(offset(50), &mut out);
    assert_eq!(text(&out), "lost [50,100)");
}

#[test]
fn an_offset_that_is_in_range_again_is_fetched_again() {
    let mut it = Following::new(&[(1, 0)], 100, 100);
    let sent = it.position();
    assert_eq!(it.range(sent, 50, 100), FollowStep::Rest);
    let soon = it.story.now.mono.plus(Millis::new(25));
    assert_eq!(it.next_fetch(), NextFetch::At(soon));
}

#[test]
fn what_no_log_can_say_cuts_nothing() {
    let mut it = Following::new(&[(1, 0)], 100, 100);
    let sent = it.position();
    assert_eq!(it.answered(sent, diverging(1, -1)), FollowStep::Rest);
    assert_eq!(it.range(sent, -1, 50), FollowStep::Rest);
    assert_eq!(it.range(sent, 60, 50), FollowStep::Rest);
    assert_eq!(it.range(sent, -1, -1), FollowStep::Rest);
}

#[test]
fn the_log_start_follows_but_never_past_the_high_watermark() {
    let it = Following::new(&[(1, 0)], 100, 60);
    let follow = |leader| {
        let start = it.story.replica.log_start_to_follow(offset(leader));
        start.map(Offset::raw)
    };
    assert_eq!(follow(0), None);
    assert_eq!(follow(50), Some(50));
    assert_eq!(follow(200), Some(60), "rt-14");
    assert_eq!(follow(-1), None);
}

#[test]
fn rt_13_an_empty_log_that_begins_anew_further_down_loses_nothing() {
    let mut it = Following::new(&[], 15, 15);
    let mut out = Vec::new();
    it.story.replica.handle_restarted(offset(15), &mut out);
    it.story.replica.handle_restarted(offset(10), &mut out);
    assert_eq!(text(&out), "");
}

#[test]
fn a_follower_that_has_to_flush_first_does_not_fetch() {
    let mut story = Story::new(0, 0, 0, config(1, EACH));
    story.metadata(2, (1, 1), &[1, 2], &[2]);
    assert!(story.replica.may_fetch(story.now.mono));
    assert_eq!(story.append(5), "flush");
    assert!(!story.replica.may_fetch(story.now.mono));
    story.flushed(5);
    assert!(story.replica.may_fetch(story.now.mono));
}

#[test]
fn the_old_rule_cuts_to_high_watermarks_and_sends_no_epoch() {
    let mut it = Following::new(&[(1, 0)], 5, 4);
    assert_eq!(it.story.replica.old_rule_cut(None), None);
    let now = it.story.now;
    let old_rule = ReplicaConfig {
        old_rule: true,
        ..config(1, NEVER)
    };
    it.story
        .replica
        .handle_config(now, old_rule, &mut Vec::new());
    assert_eq!(it.position().last_fetched_epoch, LeaderEpoch::NONE);
    let cut = |leader: Option<i64>| {
        let cut = it.story.replica.old_rule_cut(leader.map(Offset::new));
        cut.map(Offset::raw)
    };
    assert_eq!(cut(None), Some(4), "after a restart");
    assert_eq!(cut(Some(3)), Some(3), "the leader's is lower");
    assert_eq!(cut(Some(4)), None);
    assert_eq!(cut(Some(-1)), None);
}

#[test]
fn rt_15_an_answer_to_another_life_of_the_log_is_dropped() {
    let mut it = Following::new(&[(1, 0)], 10, 10);
    let sent = it.position();
    it.story.append(13);
    assert_eq!(
        it.answered(sent, LeaderAnswer::Records),
        FollowStep::Drop,
        "the log has grown"
    );
    let sent = it.position();
    it.story.metadata(3, (4, 2), &[1, 2, 3], &[3]);
    assert_eq!(
        it.answered(sent, diverging(1, 5)),
        FollowStep::Drop,
        "another leader"
    );
    assert_eq!(it.range(sent, 500, 900), FollowStep::Drop);
}

#[test]
fn errors_make_it_rest_and_a_fence_waits_for_metadata() {
    let mut it = Following::new(&[(1, 0)], 10, 10);
    let sent = it.position();
    let unknown = LeaderAnswer::Error(ErrorCode::UNKNOWN_LEADER_EPOCH);
    assert_eq!(it.answered(sent, unknown), FollowStep::Rest);
    let after = |it: &Following, span| NextFetch::At(it.story.now.mono.plus(Millis::new(span)));
    assert_eq!(it.next_fetch(), after(&it, 25));
    assert!(!it.story.replica.may_fetch(it.story.now.mono));
    assert_eq!(it.answered(sent, unknown), FollowStep::Rest);
    assert_eq!(it.next_fetch(), after(&it, 50));
    for _ in 0..10 {
        it.answered(sent, unknown);
    }
    assert_eq!(it.next_fetch(), after(&it, 1_000));
    it.told(10);
    assert_eq!(it.next_fetch(), NextFetch::Now);
    let fenced = LeaderAnswer::Error(ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(it.answered(sent, fenced), FollowStep::Rest);
    assert_eq!(
        it.story.metadata(2, (3, 2), &[1, 2], &[1, 2]),
        "",
        "the same epoch"
    );
    assert_eq!(it.next_fetch(), NextFetch::AfterMetadata);
    assert_eq!(it.story.metadata(2, (4, 3), &[1, 2], &[2]), "follows 2 4");
    assert_eq!(it.next_fetch(), NextFetch::Now);
}

#[test]
fn without_a_leader_nothing_is_fetched() {
    let mut it = Following::new(&[(1, 0)], 10, 10);
    it.story.metadata(-1, (4, 2), &[1, 2], &[2]);
    assert_eq!(it.story.replica.fetch_position(LeaderEpoch::new(1)), None);
    assert_eq!(it.story.replica.high_watermark(), Offset::new(10));
}

#[test]
fn a_damaged_copy_is_cut_without_an_alarm() {
    let mut it = Following::new(&[(1, 0)], 10, 8);
    it.story.replica.handle_damage_cut(offset(3));
    let replica = &it.story.replica;
    let ends = (replica.high_watermark(), replica.log_end_offset());
    assert_eq!(ends, (offset(3), offset(3)));
}
