//! Who is in the ISR, and what the high watermark waits for meanwhile.

use highwater_replication::{IsrCause, Lagging};
use highwater_types::{ErrorCode, Millis, NodeId};

use crate::story::{NEVER, Story, config, offset};

/// Leads partition epoch 0 of leader epoch 1 over `ar`, with a log of `log_end` records.
fn leader(log_end: i64, high_watermark: i64, ar: &[i32], isr: &[i32]) -> Story {
    let mut story = Story::new(log_end, log_end, high_watermark, config(1, NEVER));
    story.brokers(ar);
    story.metadata(1, (1, 0), ar, isr);
    story
}

fn high_watermark(story: &Story) -> i64 {
    story.replica.high_watermark().raw()
}

/// The founding exchange, seen from the leader.
#[test]
fn five_step_exchange() {
    let mut story = leader(4, 4, &[1, 2], &[1, 2]);
    assert_eq!(story.fetch(2, 1, 4), Ok(String::new()), "(1) both hold 4");
    assert_eq!(story.append(5), "", "(2) the high watermark stays at 4");
    assert_eq!(high_watermark(&story), 4, "(3) the follower copies");
    let acknowledged = story.fetch(2, 1, 5);
    assert_eq!(acknowledged, Ok("hw 4 -> 5".to_owned()), "(4), and (5)");
}

#[test]
fn a_paused_follower_leaves_and_returns_when_it_has_caught_up() {
    let mut story = leader(0, 0, &[1, 2], &[1, 2]);
    assert_eq!(story.fetch(2, 1, 0), Ok(String::new()));
    assert_eq!(story.lag_check(60_000), "", "it holds all there is");
    assert_eq!(story.append(5), "");
    assert_eq!(story.lag_check(10_000), "propose 1:5 at 0");
    let pending = story
        .replica
        .role()
        .as_leader()
        .and_then(|it| it.isr.pending());
    let lagging = Lagging {
        replica: NodeId::new(2),
        log_end_offset: offset(0),
        leader_log_end_offset: offset(5),
        behind_for: Some(Millis::new(70_000)),
        last_fetch: Some(Millis::new(70_000)),
    };
    assert_eq!(pending, Some(&IsrCause::Lag(vec![lagging])));
    assert_eq!(
        high_watermark(&story),
        0,
        "it leaves only when it is committed"
    );
    assert_eq!(story.lag_check(10_000), "", "one change in flight");
    let answer = story.isr_answer(1, 0, Ok((1, &[1])));
    assert_eq!(answer, "isr 1,2 -> 1; hw 0 -> 5");
    assert_eq!(story.fetch(2, 1, 3), Ok(String::new()), "not there yet");
    let back = story.fetch(2, 1, 5);
    assert_eq!(back, Ok("propose 1:5,2:5 at 1".to_owned()));
    assert_eq!(story.append(6), "", "who is about to join is waited for");
    assert_eq!(story.isr_answer(1, 1, Ok((2, &[1, 2]))), "isr 1 -> 1,2");
    assert_eq!(story.fetch(2, 1, 6), Ok("hw 5 -> 6".to_owned()));
}

#[test]
fn a_follower_that_keeps_up_is_waited_for_before_it_has_joined() {
    let mut story = leader(10, 0, &[1, 2], &[1]);
    assert_eq!(high_watermark(&story), 10);
    assert_eq!(story.append(20), "hw 10 -> 20");
    // At 20 it is caught up and would join; it has been refused.
    assert_eq!(story.fetch(2, 1, 20), Ok("propose 1:5,2:5 at 0".to_owned()));
    assert_eq!(
        story.isr_answer(1, 0, Err(ErrorCode::INELIGIBLE_REPLICA)),
        ""
    );
    assert_eq!(
        story.append(30),
        "",
        "else it could never catch up with the high watermark"
    );
    assert_eq!(story.lag_check(10_001), "hw 20 -> 30", "but not for ever");
}

#[test]
fn ih_01_the_high_watermark_waits_for_who_is_about_to_join() {
    let mut story = leader(0, 0, &[1, 2, 3], &[1, 2]);
    assert_eq!(story.fetch(2, 1, 0), Ok(String::new()));
    assert_eq!(
        story.fetch(3, 1, 0),
        Ok("propose 1:5,2:5,3:5 at 0".to_owned())
    );
    assert_eq!(story.append(10), "");
    assert_eq!(story.fetch(2, 1, 10), Ok(String::new()));
    assert_eq!(story.lag_check(20_000), "");
    assert_eq!(high_watermark(&story), 0, "3 may be in the ISR by now");
    assert_eq!(story.fetch(3, 1, 10), Ok("hw 0 -> 10".to_owned()));
}

#[test]
fn ih_02_who_is_about_to_leave_is_waited_for_until_it_is_committed() {
    let mut story = leader(5, 5, &[1, 2, 3], &[1, 2, 3]);
    for follower in [2, 3] {
        assert_eq!(story.fetch(follower, 1, 5), Ok(String::new()));
    }
    assert_eq!(story.append(10), "");
    assert_eq!(story.fetch(2, 1, 10), Ok(String::new()));
    assert_eq!(story.lag_check(10_001), "propose 1:5,2:5 at 0");
    assert_eq!(high_watermark(&story), 5);
    assert_eq!(story.replica.acks_all_outcome(offset(10)), None);
    assert_eq!(
        story.isr_answer(1, 0, Ok((1, &[1, 2]))),
        "isr 1,2,3 -> 1,2; hw 5 -> 10"
    );
}

#[test]
fn ih_03_who_joins_has_reached_the_start_of_the_leader_epoch() {
    let mut story = leader(10, 6, &[2, 1, 3], &[1, 2]);
    assert_eq!(high_watermark(&story), 6);
    assert_eq!(
        story.fetch(3, 1, 7),
        Ok(String::new()),
        "above the high watermark only"
    );
    assert_eq!(story.fetch(3, 1, 9), Ok(String::new()));
    assert_eq!(
        story.fetch(3, 1, 10),
        Ok("propose 1:5,2:-1,3:5 at 0".to_owned())
    );
}

#[test]
fn ih_04_a_fetch_of_an_older_registration_lets_nobody_join() {
    let mut story = leader(10, 10, &[1, 3], &[1]);
    assert_eq!(
        story.fetch_as(3, 4, 1, 10),
        Ok(String::new()),
        "the metadata knows 5"
    );
    assert_eq!(story.fetch_as(3, 5, 1, 4), Ok(String::new()));
    let late = story.fetch_as(3, 4, 1, 10);
    assert_eq!(late, Err(ErrorCode::NOT_LEADER_OR_FOLLOWER), "5 was seen");
    assert_eq!(
        story.fetch_as(3, -1, 1, 10),
        Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    );
    assert_eq!(story.fetch(3, 1, 10), Ok("propose 1:5,3:5 at 0".to_owned()));
}

#[test]
fn ih_05_a_fenced_broker_does_not_join() {
    let mut story = leader(10, 10, &[1, 2], &[1]);
    story.brokers(&[1]);
    assert_eq!(story.fetch(2, 1, 10), Ok(String::new()));
    assert_eq!(
        story.brokers(&[1, 2]),
        "propose 1:5,2:5 at 0",
        "it may not have anything new to fetch for long"
    );
    assert_eq!(story.fetch(2, 1, 10), Ok(String::new()));
    let refused = story.isr_answer(1, 0, Err(ErrorCode::INELIGIBLE_REPLICA));
    assert_eq!(
        refused, "",
        "reverted, and asked for again at its next fetch"
    );
    assert_eq!(story.fetch(2, 1, 10), Ok("propose 1:5,2:5 at 0".to_owned()));
}

#[test]
fn ih_06_a_broker_that_shuts_down_is_not_waited_for() {
    let mut story = leader(50, 50, &[1, 2, 3], &[1, 2, 3]);
    for follower in [2, 3] {
        assert_eq!(story.fetch(follower, 1, 50), Ok(String::new()));
    }
    story.append(60);
    assert_eq!(story.fetch(2, 1, 60), Ok(String::new()));
    assert_eq!(
        story.metadata(1, (1, 1), &[1, 2, 3], &[1, 2]),
        "isr 1,2,3 -> 1,2"
    );
    assert_eq!(high_watermark(&story), 50, "3 keeps up, as far as is known");
    assert_eq!(story.brokers(&[1, 2]), "hw 50 -> 60");
}

#[test]
fn ih_07_a_stale_partition_epoch_leaves_the_change_pending_until_metadata_comes() {
    let mut story = leader(0, 0, &[1, 2], &[1, 2]);
    story.append(5);
    assert_eq!(story.lag_check(10_001), "propose 1:5 at 0");
    let lost = story.isr_answer(1, 0, Err(ErrorCode::NETWORK_EXCEPTION));
    assert_eq!(lost, "propose 1:5 at 0", "nobody knows: the same once more");
    assert_eq!(
        story.isr_answer(1, 0, Err(ErrorCode::INVALID_UPDATE_VERSION)),
        ""
    );
    assert_eq!(
        (story.lag_check(10_001), high_watermark(&story)),
        (String::new(), 0)
    );
    assert_eq!(
        story.metadata(1, (1, 1), &[1, 2], &[1]),
        "isr 1,2 -> 1; hw 0 -> 5"
    );
    assert_eq!(
        story.fetch(2, 1, 5),
        Ok("propose 1:5,2:5 at 1".to_owned()),
        "never frozen"
    );
}

#[test]
fn ih_09_an_answer_to_no_pending_change_is_ignored() {
    let mut story = leader(0, 0, &[1, 2, 3], &[1, 2, 3]);
    story.append(5);
    assert_eq!(story.fetch(2, 1, 5), Ok(String::new()));
    assert_eq!(story.lag_check(10_001), "propose 1:5,2:5 at 0");
    assert_eq!(
        story.metadata(1, (2, 1), &[1, 2, 3], &[1, 2, 3]),
        "leads 2 at 5"
    );
    assert_eq!(
        story.isr_answer(1, 0, Ok((1, &[1, 2]))),
        "",
        "of the epoch before"
    );
    assert_eq!(story.lag_check(10_001), "propose 1:5 at 1", "not frozen");
    assert_eq!(
        story.isr_answer(2, 0, Ok((1, &[1, 2]))),
        "",
        "asked at another epoch"
    );
    assert_eq!(
        story.isr_answer(2, 1, Ok((2, &[1]))),
        "isr 1,2,3 -> 1; hw 0 -> 5"
    );
    assert_eq!(
        story.isr_answer(2, 1, Ok((2, &[1, 2]))),
        "",
        "it was answered"
    );
}

#[test]
fn metadata_that_says_what_the_answer_said_leaves_the_next_change_pending() {
    let mut story = leader(0, 0, &[1, 2, 3], &[1]);
    assert_eq!(story.fetch(2, 1, 0), Ok("propose 1:5,2:5 at 0".to_owned()));
    assert_eq!(story.isr_answer(1, 0, Ok((1, &[1, 2]))), "isr 1 -> 1,2");
    assert_eq!(
        story.fetch(3, 1, 0),
        Ok("propose 1:5,2:5,3:5 at 1".to_owned())
    );
    assert_eq!(story.metadata(1, (1, 1), &[1, 2, 3], &[1, 2]), "");
    story.append(4);
    assert_eq!(story.fetch(2, 1, 4), Ok(String::new()));
    assert_eq!(story.lag_check(30_000), "");
    assert_eq!(high_watermark(&story), 0, "3 may be in the ISR by now");
}

#[test]
fn ih_15_a_leader_that_was_replaced_waits_for_metadata() {
    let mut story = leader(0, 0, &[1, 2], &[1, 2]);
    story.append(5);
    assert_eq!(story.lag_check(10_001), "propose 1:5 at 0");
    assert_eq!(
        story.isr_answer(1, 0, Err(ErrorCode::NEW_LEADER_ELECTED)),
        ""
    );
    assert_eq!(
        (story.lag_check(60_000), high_watermark(&story)),
        (String::new(), 0)
    );
    assert_eq!(
        story.metadata(2, (2, 1), &[2], &[2]),
        "leads no more 1; follows 2 2"
    );
}

/// A zombie: it cannot reach the controller, so its high watermark cannot move without those
/// who follow somebody else by now.
#[test]
fn np_07_a_zombie_leader_acknowledges_nothing() {
    let mut story = leader(5, 5, &[1, 2, 3], &[1, 2, 3]);
    story.append(6);
    assert_eq!(story.lag_check(60_000), "propose 1:5 at 0");
    for _ in 0..3 {
        let lost = story.isr_answer(1, 0, Err(ErrorCode::NETWORK_EXCEPTION));
        assert_eq!(lost, "propose 1:5 at 0");
        assert_eq!(story.replica.acks_all_outcome(offset(6)), None);
    }
}

/// What an incremental fetch session does not mention is fetched again all the same (KIP-227).
#[test]
fn a_follower_that_is_only_heard_of_keeps_up() {
    let mut story = leader(5, 5, &[1, 2], &[1, 2]);
    assert_eq!(story.fetch(2, 1, 5), Ok(String::new()));
    story.advance(60_000);
    story.heard(2, 1, 5);
    assert_eq!(story.append(6), "");
    assert_eq!(story.lag_check(9_000), "", "caught up 9 s ago, not 69");
    story.heard(2, 1, 5);
    assert_eq!(
        story.lag_check(1_001),
        "propose 1:5 at 0",
        "to be heard of is not to catch up"
    );
    let leader = story.replica.role().as_leader().expect("leads");
    let last = leader.followers[&NodeId::new(2)].last_fetch.expect("heard");
    let ago = story.now.mono.since(last.at);
    assert_eq!(ago, Millis::new(1_001), "the last sign of life");
}

/// A copy of an older fetch comes late, and the follower has nothing new to say for long.
#[test]
fn np_08_a_late_copy_is_mended_by_the_next_sign_of_life() {
    let mut story = leader(5, 5, &[1, 2], &[1, 2]);
    assert_eq!(story.fetch(2, 1, 5), Ok(String::new()));
    story.advance(100);
    assert_eq!(story.fetch(2, 1, 3), Ok(String::new()));
    story.advance(100);
    story.heard(2, 1, 5);
    let leader = story.replica.role().as_leader().expect("leads");
    let follower = leader.followers[&NodeId::new(2)];
    assert_eq!(follower.log_end_offset, offset(5));
    assert_eq!(follower.last_caught_up, Some(story.now.mono));
}

#[test]
fn a_follower_that_fell_silent_is_not_taken_for_caught_up_later() {
    let mut story = leader(5, 5, &[1, 2], &[1, 2]);
    assert_eq!(story.fetch(2, 1, 5), Ok(String::new()));
    story.advance(60_000);
    assert_eq!(story.append(6), "");
    assert_eq!(story.lag_check(0), "propose 1:5 at 0");
}

#[test]
fn to_be_heard_of_counts_only_as_what_was_fetched_before() {
    let mut story = leader(5, 5, &[1, 2], &[1]);
    story.brokers(&[1]);
    story.heard(2, 1, 5);
    assert_eq!(story.last_fetch(2), None, "it has not fetched");
    assert_eq!(story.fetch(2, 1, 4), Ok(String::new()));
    let at = story.last_fetch(2);
    story.advance(100);
    story.heard(2, 1, 3);
    story.heard(2, 2, 4);
    assert_eq!(story.last_fetch(2), at, "an older offset, another epoch");
    story.heard(2, 1, 4);
    assert_eq!(story.last_fetch(2), Some(story.now.mono));
    assert_eq!(story.metadata(1, (2, 1), &[1, 2], &[1]), "leads 2 at 5");
    story.heard(2, 1, 4);
    assert_eq!(story.last_fetch(2), None, "of the epoch before");
}

/// The leader learns of a registration, or of an unfencing, after the follower has fetched all
/// there is: it will not mention the partition again for long.
#[test]
fn who_may_join_only_now_joins_without_a_new_fetch() {
    let mut story = leader(5, 5, &[1, 2, 3], &[1]);
    story.brokers(&[1]);
    for follower in [2, 3] {
        assert_eq!(story.fetch(follower, 1, 5), Ok(String::new()));
    }
    assert_eq!(story.brokers(&[1, 2, 3]), "propose 1:5,2:5 at 0");
    assert_eq!(
        story.isr_answer(1, 0, Ok((1, &[1, 2]))),
        "isr 1 -> 1,2; propose 1:5,2:5,3:5 at 1",
        "one change after the other"
    );
    let refused = story.isr_answer(1, 1, Err(ErrorCode::INELIGIBLE_REPLICA));
    assert_eq!(refused, "", "not over and over");
    assert_eq!(story.lag_check(5_000), "propose 1:5,2:5,3:5 at 1");
    story.isr_answer(1, 1, Err(ErrorCode::INELIGIBLE_REPLICA));
    assert_eq!(story.lag_check(5_001), "", "nobody heard of it for long");
}

/// Fetch below version 15 has no place for a broker epoch.
#[test]
fn a_follower_without_a_broker_epoch_joins_as_the_registered_one() {
    let mut story = leader(5, 5, &[1, 2], &[1]);
    assert_eq!(
        story.fetch_as(2, -1, 1, 5),
        Ok("propose 1:5,2:-1 at 0".to_owned())
    );
    story.isr_answer(1, 0, Err(ErrorCode::INELIGIBLE_REPLICA));
    story.brokers(&[1]);
    assert_eq!(
        story.fetch_as(2, -1, 1, 5),
        Ok(String::new()),
        "not registered, or fenced"
    );
}

#[test]
fn ih_12_a_write_that_the_isr_shrinks_under_is_told_at_once() {
    let mut story = Story::new(0, 0, 0, config(2, NEVER));
    story.brokers(&[1, 2]);
    story.metadata(1, (1, 0), &[1, 2], &[1, 2]);
    assert_eq!(story.append(10), "");
    assert_eq!(story.replica.acks_all_outcome(offset(10)), None);
    assert_eq!(story.lag_check(10_001), "propose 1:5 at 0");
    assert_eq!(story.replica.acks_all_outcome(offset(10)), None);
    assert_eq!(story.isr_answer(1, 0, Ok((1, &[1]))), "isr 1,2 -> 1");
    assert_eq!(
        story.replica.acks_all_outcome(offset(10)),
        Some(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    );
    assert_eq!(high_watermark(&story), 0, "not readable");
}
