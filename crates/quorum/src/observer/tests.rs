use highwater_types::{EpochEnd, EpochEntry, EpochHistory, OffsetAndEpoch};

use super::*;

const NOW: Mono = Mono::from_micros(5_000_000);

fn address(port: u16) -> Address {
    Address {
        host: "h".to_owned(),
        port,
    }
}

fn observer(
    stored: Option<&QuorumState>,
    last_epoch: i32,
    committed: Option<i64>,
) -> ObserverState {
    let settings = ObserverSettings {
        bootstrap: vec![address(1), address(2)],
        fetch_timeout: Millis::new(2000),
        retry_backoff: Millis::new(20),
    };
    let committed = committed.map(Offset::new);
    ObserverState::new(
        settings,
        stored,
        LeaderEpoch::new(last_epoch),
        committed,
        NOW,
    )
}

fn answer(error: ErrorCode, epoch: i32, leader: Option<(i32, u16)>) -> FetchAnswer {
    FetchAnswer {
        error,
        leader: LeaderTold {
            epoch: LeaderEpoch::new(epoch),
            id: leader.map(|(id, _)| NodeId::new(id)),
            address: leader.map(|(_, port)| address(port)),
        },
        diverging: None,
        snapshot: None,
    }
}

fn entries(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
    let entry = |&(epoch, start): &(i32, i64)| EpochEntry {
        epoch: LeaderEpoch::new(epoch),
        start_offset: Offset::new(start),
    };
    pairs.iter().map(entry).collect()
}

fn judge(it: &mut ObserverState, answer: &FetchAnswer, log: &[(i32, i64)], end: i64) -> FetchStep {
    let entries = entries(log);
    let log = LogState {
        epochs: EpochHistory {
            entries: &entries,
            log_end_offset: Offset::new(end),
        },
        log_start_offset: Offset::ZERO,
        snapshots: None,
    };
    let target = it.target(NOW).expect("an address");
    let epoch = it.epoch();
    it.judge_fetch(NOW, &target, epoch, answer, log)
}

fn target(it: &mut ObserverState, now: Mono) -> (Option<i32>, u16) {
    let target = it.target(now).expect("an address");
    (target.id.map(NodeId::raw), target.address.port)
}

#[test]
fn a_fresh_observer_is_told_who_leads() {
    let mut it = observer(None, 0, None);
    assert_eq!(target(&mut it, NOW), (None, 1));
    let told = answer(ErrorCode::FENCED_LEADER_EPOCH, 3, Some((7, 9)));
    assert_eq!(judge(&mut it, &told, &[], 0), FetchStep::Moved);
    assert_eq!(it.epoch(), LeaderEpoch::new(3));
    assert_eq!(target(&mut it, NOW), (Some(7), 9));
    assert_eq!(it.quorum_state(Vec::new()).leader_id, Some(NodeId::new(7)));
    let data = answer(ErrorCode::NONE, 3, Some((7, 9)));
    assert_eq!(judge(&mut it, &data, &[], 0), FetchStep::Append);
}

#[test]
fn while_nobody_knows_the_leader_the_controllers_are_asked_in_turn() {
    let mut it = observer(None, 0, None);
    let told = answer(ErrorCode::NOT_LEADER_OR_FOLLOWER, 0, None);
    assert_eq!(target(&mut it, NOW), (None, 1));
    let rests = [20, 40, 80, 160, 320, 640, 1000, 1000];
    for millis in rests {
        let step = judge(&mut it, &told, &[], 0);
        assert_eq!(step, FetchStep::Rest(Millis::new(millis)));
    }
    // `judge` asked at one each time.
    assert_eq!(target(&mut it, NOW), (None, 2));
    assert_eq!(target(&mut it, NOW), (None, 1));
}

#[test]
fn an_old_leader_is_not_believed() {
    let mut it = observer(None, 5, None);
    let old = answer(ErrorCode::NONE, 4, Some((7, 9)));
    assert!(matches!(
        judge(&mut it, &old, &[(5, 0)], 3),
        FetchStep::Rest(_)
    ));
    let behind = answer(ErrorCode::UNKNOWN_LEADER_EPOCH, 4, Some((7, 9)));
    assert!(matches!(
        judge(&mut it, &behind, &[(5, 0)], 3),
        FetchStep::Rest(_)
    ));
    assert_eq!((it.epoch(), it.leader()), (LeaderEpoch::new(5), None));
}

#[test]
fn i_19_in_one_epoch_there_is_one_leader() {
    let mut it = observer(None, 0, None);
    judge(&mut it, &answer(ErrorCode::NONE, 2, Some((1, 8))), &[], 0);
    let other = answer(ErrorCode::NOT_LEADER_OR_FOLLOWER, 2, Some((2, 9)));
    assert!(matches!(judge(&mut it, &other, &[], 0), FetchStep::Rest(_)));
    assert_eq!(it.leader().map(|it| it.id), Some(NodeId::new(1)));
    // A newer epoch whose leader is not known yet.
    let newer = answer(ErrorCode::FENCED_LEADER_EPOCH, 3, None);
    assert_eq!(judge(&mut it, &newer, &[], 0), FetchStep::Moved);
    assert_eq!((it.epoch(), it.leader()), (LeaderEpoch::new(3), None));
}

#[test]
fn a_leader_that_is_silent_for_the_fetch_timeout_is_looked_for() {
    let mut it = observer(None, 0, None);
    judge(
        &mut it,
        &answer(ErrorCode::FENCED_LEADER_EPOCH, 1, Some((7, 9))),
        &[],
        0,
    );
    judge(&mut it, &answer(ErrorCode::NONE, 1, Some((7, 9))), &[], 0);
    let later = |millis| NOW.plus(Millis::new(millis));
    assert_eq!(target(&mut it, later(2000)), (Some(7), 9));
    it.handle_failed();
    assert_eq!(target(&mut it, later(10)), (None, 2));
    it.handle_failed();
    assert_eq!(target(&mut it, later(1999)), (Some(7), 9));
    assert_eq!(target(&mut it, later(2000)), (None, 1));
    // It answers where it was all the time.
    judge(&mut it, &answer(ErrorCode::NONE, 1, Some((7, 9))), &[], 0);
    assert_eq!(target(&mut it, NOW), (Some(7), 9));
}

#[test]
fn an_old_version_names_no_address_and_the_config_does() {
    let mut it = observer(None, 0, None);
    it.set_voters(&VoterSet::parse("7@h:9", "C").expect("voters"), "C");
    let mut told = answer(ErrorCode::FENCED_LEADER_EPOCH, 3, Some((7, 0)));
    told.leader.address = None;
    assert_eq!(judge(&mut it, &told, &[], 0), FetchStep::Moved);
    assert_eq!(target(&mut it, NOW), (Some(7), 9));
    // Nor does anybody know the next one: but who serves records leads.
    let mut serves = answer(ErrorCode::NONE, 4, Some((8, 0)));
    serves.leader.address = None;
    assert_eq!(judge(&mut it, &serves, &[], 0), FetchStep::Moved);
    assert_eq!(target(&mut it, NOW), (Some(8), 9));
}

#[test]
fn a_tail_that_the_leader_does_not_have_is_cut() {
    let mut it = observer(None, 3, Some(4));
    judge(
        &mut it,
        &answer(ErrorCode::FENCED_LEADER_EPOCH, 4, Some((7, 9))),
        &[(1, 0)],
        9,
    );
    let mut told = answer(ErrorCode::NONE, 4, Some((7, 9)));
    let end = |epoch, end| EpochEnd {
        epoch: LeaderEpoch::new(epoch),
        end_offset: Offset::new(end),
    };
    told.diverging = Some(end(1, 6));
    let log = [(1, 0), (3, 8)];
    assert_eq!(
        judge(&mut it, &told, &log, 9),
        FetchStep::Truncate(Offset::new(6))
    );
    told.diverging = Some(end(2, 7));
    assert_eq!(
        judge(&mut it, &told, &log, 9),
        FetchStep::Truncate(Offset::new(8))
    );
    // What is committed cannot be taken back.
    told.diverging = Some(end(1, 3));
    assert!(matches!(
        judge(&mut it, &told, &log, 9),
        FetchStep::Contradiction(_)
    ));
    told.diverging = Some(end(0, 0));
    assert!(matches!(
        judge(&mut it, &told, &log, 9),
        FetchStep::Contradiction(_)
    ));
}

#[test]
fn a_snapshot_is_taken_unless_more_is_committed_here() {
    let mut it = observer(None, 1, Some(100));
    it.hear_leader();
    let mut told = answer(ErrorCode::NONE, 1, Some((7, 9)));
    let id = |offset| OffsetAndEpoch {
        offset: Offset::new(offset),
        epoch: LeaderEpoch::new(1),
    };
    told.snapshot = Some(id(620));
    assert_eq!(
        judge(&mut it, &told, &[(1, 0)], 200),
        FetchStep::TakeSnapshot(id(620))
    );
    told.snapshot = Some(id(99));
    assert!(matches!(
        judge(&mut it, &told, &[(1, 0)], 200),
        FetchStep::Contradiction(_)
    ));
}

#[test]
fn the_high_watermark_follows_and_never_falls() {
    let mut it = observer(None, 1, None);
    let mut told = |leaders, end| {
        it.handle_high_watermark(Offset::new(leaders), Offset::new(end))
            .map(Offset::raw)
    };
    assert_eq!(told(-1, 10), None);
    assert_eq!(told(20, 10), Some(10));
    assert_eq!(told(20, 10), None);
    assert_eq!(told(5, 10), None);
    assert_eq!(told(20, 30), Some(20));
}

#[test]
fn what_was_stored_counts_unless_the_log_is_newer() {
    let stored = QuorumState {
        leader_epoch: LeaderEpoch::new(3),
        leader_id: Some(NodeId::new(7)),
        voted: None,
        current_voters: Vec::new(),
    };
    let it = observer(Some(&stored), 2, None);
    assert_eq!(it.epoch(), LeaderEpoch::new(3));
    assert_eq!(it.leader().map(|it| it.id), Some(NodeId::new(7)));
    let it = observer(Some(&stored), 5, None);
    assert_eq!((it.epoch(), it.leader()), (LeaderEpoch::new(5), None));
}

impl ObserverState {
    fn hear_leader(&mut self) {
        self.leader = Some(Leader {
            id: NodeId::new(7),
            address: Some(address(9)),
        });
    }
}
