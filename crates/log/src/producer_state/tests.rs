use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use highwater_records::Batches;
use highwater_types::{ErrorCode, Millis, Offset, ProducerEpoch, ProducerId, WallMs};

use proptest::prelude::*;

use super::*;
use crate::partition_log::producer_batch;

/// A data batch of producer 7.
fn data(epoch: i16, base_sequence: i32, base_offset: i64, records: i32) -> ProducerBatch {
    ProducerBatch {
        producer_id: ProducerId::new(7),
        producer_epoch: ProducerEpoch::new(epoch),
        base_sequence,
        base_offset: Offset::new(base_offset),
        last_offset_delta: records - 1,
        max_timestamp: WallMs::new(1000 + base_offset),
        is_transactional: false,
        is_control: false,
        marker: None,
    }
}

fn transactional(id: i64, sequence: i32, offset: i64) -> ProducerBatch {
    let producer_id = ProducerId::new(id);
    ProducerBatch {
        producer_id,
        is_transactional: true,
        ..data(0, sequence, offset, 1)
    }
}

fn marker(id: i64, epoch: i16, offset: i64, kind: MarkerKind, coordinator: i32) -> ProducerBatch {
    ProducerBatch {
        producer_id: ProducerId::new(id),
        base_sequence: -1,
        is_transactional: true,
        is_control: true,
        marker: Some(TransactionMarker {
            kind,
            coordinator_epoch: coordinator,
        }),
        ..data(epoch, -1, offset, 1)
    }
}

/// What a leader does with a client's batch.
fn produce(state: &mut ProducerState, batch: ProducerBatch) -> Result<Check, ErrorCode> {
    let check = state
        .check(&batch, ProducerOrigin::Client)
        .map_err(|why| why.error_code())?;
    if check == Check::New {
        state.apply(&batch);
    }
    Ok(check)
}

fn state_of(batches: &[ProducerBatch]) -> ProducerState {
    let mut state = ProducerState::new(Offset::ZERO);
    for batch in batches {
        state.apply(batch);
    }
    state
}

fn duplicate(first: i64, last: i64, timestamp: i64) -> Check {
    Check::Duplicate {
        first_offset: Offset::new(first),
        last_offset: Offset::new(last),
        timestamp: WallMs::new(timestamp),
    }
}

#[test]
fn pi_01_a_retry_is_answered_with_its_offsets_also_after_a_restart() {
    let written = state_of(&[data(0, 0, 0, 5)]);
    let bytes = written.encode_snapshot();
    let loaded = ProducerState::decode_snapshot(&bytes, Offset::new(5)).expect("good");
    let replayed = state_of(&[data(0, 0, 0, 5)]);
    for mut state in [written, loaded, replayed] {
        assert_eq!(
            produce(&mut state, data(0, 0, 99, 5)),
            Ok(duplicate(0, 4, 1000))
        );
        assert_eq!(state.end_offset(), Offset::new(5), "nothing was appended");
        assert_eq!(produce(&mut state, data(0, 5, 5, 1)), Ok(Check::New));
    }
}

#[test]
fn pi_02_five_batches_are_remembered_and_an_older_one_is_named_as_such() {
    let mut state = ProducerState::new(Offset::ZERO);
    for nth in 0..6 {
        assert_eq!(
            produce(&mut state, data(0, nth, i64::from(nth), 1)),
            Ok(Check::New)
        );
    }
    for nth in 1..6 {
        let offset = i64::from(nth);
        let answer = produce(&mut state, data(0, nth, 99, 1));
        assert_eq!(
            answer,
            Ok(duplicate(offset, offset, 1000 + offset)),
            "{nth}"
        );
    }
    let too_old = produce(&mut state, data(0, 0, 99, 1));
    assert_eq!(too_old, Err(ErrorCode::DUPLICATE_SEQUENCE_NUMBER));
    assert_eq!(state.end_offset(), Offset::new(6));
}

#[test]
fn pi_02_what_is_not_known_to_be_written_is_never_called_a_duplicate() {
    // The log knows the producer from sequence 7 on only: 5 may never have arrived.
    let mut state = ProducerState::new(Offset::ZERO);
    for nth in 7..14 {
        assert_eq!(
            produce(&mut state, data(0, nth, i64::from(nth), 1)),
            Ok(Check::New)
        );
    }
    let lost = produce(&mut state, data(0, 5, 99, 1));
    assert_eq!(lost, Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    let half_known = produce(&mut state, data(0, 6, 99, 2));
    assert_eq!(half_known, Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    let written = produce(&mut state, data(0, 7, 99, 1));
    assert_eq!(written, Err(ErrorCode::DUPLICATE_SEQUENCE_NUMBER));
    // Within the remembered batches, but cut differently.
    let cut_differently = produce(&mut state, data(0, 10, 99, 2));
    assert_eq!(
        cut_differently,
        Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
    );
}

#[test]
fn pi_04_a_cut_is_rebuilt_without_what_was_cut() {
    let first = data(0, 0, 0, 10);
    let mut state = state_of(&[first, data(0, 10, 10, 5)]);
    assert_eq!(
        produce(&mut state, data(0, 10, 99, 5)),
        Ok(duplicate(10, 14, 1010))
    );
    let mut cut = state_of(&[first]);
    assert_eq!(produce(&mut cut, data(0, 10, 10, 5)), Ok(Check::New));
}

#[test]
fn pi_06_a_new_epoch_begins_at_sequence_0_and_an_old_one_is_fenced() {
    let mut state = state_of(&[data(0, 9, 0, 1)]);
    let refused = produce(&mut state, data(1, 10, 1, 1));
    assert_eq!(refused, Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(produce(&mut state, data(1, 0, 1, 1)), Ok(Check::New));
    let fenced = produce(&mut state, data(0, 10, 2, 1));
    assert_eq!(fenced, Err(ErrorCode::INVALID_PRODUCER_EPOCH));
    let old_retry = produce(&mut state, data(0, 9, 2, 1));
    assert_eq!(old_retry, Err(ErrorCode::INVALID_PRODUCER_EPOCH));
}

#[test]
fn pi_07_an_unknown_producer_starts_anywhere() {
    let hour = Millis::new(3_600_000);
    let mut state = state_of(&[data(0, 6, 0, 1)]);
    let idle_until = WallMs::new(1000 + 3_600_000);
    assert_eq!(
        state.remove_expired(WallMs::new(idle_until.raw() - 1), hour),
        0
    );
    assert_eq!(state.remove_expired(idle_until, hour), 1);
    assert_eq!(produce(&mut state, data(0, 7, 1, 1)), Ok(Check::New));
    // Only a marker is left of this epoch: nobody knows the sequence.
    let mut state = state_of(&[
        transactional(7, 0, 0),
        marker(7, 1, 1, MarkerKind::Commit, 0),
    ]);
    let unknown = produce(&mut state, data(1, 7, 2, 1));
    assert_eq!(unknown, Err(ErrorCode::UNKNOWN_PRODUCER_ID));
    assert_eq!(produce(&mut state, data(1, 0, 2, 1)), Ok(Check::New));
}

#[test]
fn pi_07_an_open_transaction_never_expires() {
    let mut state = state_of(&[transactional(7, 0, 0)]);
    let far = WallMs::new(i64::MAX);
    assert_eq!(state.remove_expired(far, Millis::new(1)), 0);
    state.apply(&marker(7, 0, 1, MarkerKind::Abort, 0));
    assert_eq!(state.remove_expired(far, Millis::new(1)), 1);
}

#[test]
fn pi_08_sequences_wrap() {
    let mut state = state_of(&[data(0, i32::MAX - 1, 0, 1)]);
    let across = data(0, i32::MAX, 1, 3);
    assert_eq!(across.last_sequence(), 1);
    assert_eq!(produce(&mut state, across), Ok(Check::New));
    assert_eq!(
        produce(&mut state, data(0, i32::MAX, 99, 3)),
        Ok(duplicate(1, 3, 1001))
    );
    assert_eq!(produce(&mut state, data(0, 2, 4, 1)), Ok(Check::New));
    for nth in 3..8 {
        assert_eq!(
            produce(&mut state, data(0, nth, i64::from(nth) + 2, 1)),
            Ok(Check::New)
        );
    }
    let old = produce(&mut state, data(0, i32::MAX, 99, 3));
    assert_eq!(old, Err(ErrorCode::DUPLICATE_SEQUENCE_NUMBER));
    let bytes = state_of(&[across]).encode_snapshot();
    let mut loaded = ProducerState::decode_snapshot(&bytes, Offset::new(4)).expect("good");
    assert_eq!(
        produce(&mut loaded, data(0, i32::MAX, 99, 3)),
        Ok(duplicate(1, 3, 1001))
    );
}

#[test]
fn pi_09_a_damaged_snapshot_is_refused_whatever_the_damage() {
    let state = state_of(&[data(0, 0, 0, 3), transactional(9, 0, 3)]);
    let bytes = state.encode_snapshot();
    let end = Offset::new(4);
    assert_eq!(bytes.len(), 10 + 2 * 46);
    assert!(ProducerState::decode_snapshot(&bytes, end).is_ok());
    for len in 0..bytes.len() {
        assert!(
            ProducerState::decode_snapshot(&bytes[..len], end).is_err(),
            "cut to {len}"
        );
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(
            ProducerState::decode_snapshot(&flipped, end).is_err(),
            "bit {bit}"
        );
    }
    assert!(ProducerState::decode_snapshot(&vec![0; bytes.len()], end).is_err());
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(ProducerState::decode_snapshot(&longer, end).is_err());
    // A snapshot that knows of offsets beyond its name is of another log.
    let renamed = ProducerState::decode_snapshot(&bytes, Offset::new(3));
    assert_eq!(renamed, Err(SnapshotError::Producer { index: 1 }));
}

#[test]
fn pi_09_a_count_from_outside_reserves_nothing() {
    let body = i32::MAX.to_be_bytes();
    let crc = crc32c::crc32c(&body).to_be_bytes();
    let bytes = [&[0, 1][..], &crc, &body].concat();
    let error = ProducerState::decode_snapshot(&bytes, Offset::ZERO).expect_err("no entries");
    assert!(
        matches!(error, SnapshotError::Length { bytes: 10, .. }),
        "{error}"
    );
}

#[test]
fn tx_11_markers_count_as_activity_and_replay_tolerates_old_coordinators() {
    let mut state = state_of(&[
        transactional(7, 0, 0),
        marker(7, 0, 5000, MarkerKind::Abort, 4),
    ]);
    let now = WallMs::new(1000 + 5000 + 99);
    assert_eq!(state.remove_expired(now, Millis::new(100)), 0);
    let stale = marker(7, 0, 5001, MarkerKind::Abort, 3);
    let refused = state
        .check(&stale, ProducerOrigin::Coordinator)
        .map_err(|it| it.error_code());
    assert_eq!(refused, Err(ErrorCode::TRANSACTION_COORDINATOR_FENCED));
    assert_eq!(state.check(&stale, ProducerOrigin::Replica), Ok(Check::New));
    assert_eq!(state.apply(&stale), None, "no transaction was open");
}

#[test]
fn the_last_stable_offset_waits_for_the_marker_below_the_high_watermark() {
    let mut state = state_of(&[
        data(0, 0, 0, 2),
        transactional(8, 0, 2),
        transactional(9, 0, 3),
    ]);
    let lso = |state: &ProducerState, hw| state.last_stable_offset(Offset::new(hw)).raw();
    assert_eq!((lso(&state, 1), lso(&state, 4)), (1, 2));
    let committed = state
        .apply(&marker(8, 0, 4, MarkerKind::Commit, 0))
        .expect("was open");
    assert_eq!(committed.aborted(), None);
    assert_eq!(committed.last_stable_offset, Offset::new(3));
    assert_eq!((lso(&state, 4), lso(&state, 5)), (2, 3));
    let aborted = state
        .apply(&marker(9, 0, 5, MarkerKind::Abort, 0))
        .expect("was open");
    let entry = aborted.aborted().expect("an abort");
    assert_eq!((entry.first_offset.raw(), entry.last_offset.raw()), (3, 5));
    assert_eq!(entry.last_stable_offset.raw(), 6);
    assert_eq!((lso(&state, 5), lso(&state, 6)), (3, 6));
    state.forget_decided_below(Offset::new(5));
    assert_eq!(
        (lso(&state, 5), lso(&state, 6)),
        (3, 6),
        "the second marker is at 5"
    );
    assert!(state.has_seen_marker());
}

#[test]
fn a_batch_outside_of_the_open_transaction_is_refused() {
    let mut state = state_of(&[transactional(7, 0, 0)]);
    let outside = produce(&mut state, data(0, 1, 1, 1));
    assert_eq!(outside, Err(ErrorCode::INVALID_TXN_STATE));
    assert_eq!(produce(&mut state, transactional(7, 1, 1)), Ok(Check::New));
    assert_eq!(
        state.first_unstable_offset(Offset::new(9)),
        Some(Offset::ZERO)
    );
}

#[test]
fn a_marker_that_raises_the_epoch_forgets_the_batches() {
    let state = state_of(&[
        transactional(7, 0, 0),
        marker(7, 1, 1, MarkerKind::Commit, 2),
    ]);
    let entry = state.producer(ProducerId::new(7)).expect("known");
    assert_eq!(
        (
            entry.epoch.raw(),
            entry.last_sequence(),
            entry.coordinator_epoch
        ),
        (1, -1, 2)
    );
    assert_eq!(entry.batches().count(), 0);
    let kept = state_of(&[
        transactional(7, 0, 0),
        marker(7, 0, 1, MarkerKind::Commit, 2),
    ]);
    let entry = kept.producer(ProducerId::new(7)).expect("known");
    assert_eq!((entry.epoch.raw(), entry.last_sequence()), (0, 0));
}

/// The wall clock of the servers that made the fixtures: 30 November 2026.
const FIXTURES_MADE: WallMs = WallMs::new(1_796_000_000_000);

/// The 46 bytes of each producer of a snapshot file, as a set: Kafka's order is a hash map's.
fn producers_of(snapshot: &[u8]) -> BTreeSet<Vec<u8>> {
    snapshot[10..].chunks(46).map(<[u8]>::to_vec).collect()
}

/// Segments of each log of a fixture, in order, by the log's directory.
fn logs(files: &BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<PathBuf, Vec<(i64, Vec<u8>)>> {
    let mut logs: BTreeMap<PathBuf, Vec<(i64, Vec<u8>)>> = BTreeMap::new();
    for (path, bytes) in files {
        if path.starts_with("data") && path.extension().is_some_and(|it| it == "log") {
            let dir = path.parent().expect("in a directory").to_path_buf();
            logs.entry(dir)
                .or_default()
                .push((number(path), bytes.clone()));
        }
    }
    logs
}

fn number(path: &Path) -> i64 {
    let stem = path.file_stem().and_then(|it| it.to_str()).expect("a name");
    stem.parse().expect("a number")
}

/// The state after all batches below `end`, and what was aborted on the way.
fn replay(segments: &[(i64, Vec<u8>)], end: i64) -> (ProducerState, Vec<CompletedTransaction>) {
    let mut state = ProducerState::new(Offset::ZERO);
    let mut completed = Vec::new();
    for (_, bytes) in segments {
        for batch in Batches::new(bytes) {
            let batch = batch.expect("Kafka wrote it");
            if batch.header().base_offset.raw() < end {
                completed.extend(state.apply(&producer_batch(batch.header(), batch.bytes())));
            }
        }
    }
    (state, completed)
}

#[test]
fn golden_kafkas_snapshots_are_rebuilt_from_the_log() {
    let (mut compared, mut with_producers, mut same_set, mut same_bytes) = (0, 0, 0, 0);
    for set in highwater_fixtures::KAFKA_DATA_SETS {
        let files = highwater_fixtures::kafka_data(set);
        for (dir, segments) in logs(&files) {
            // A log that lost its beginning, or was compacted, does not have all that made the
            // state.
            let name = dir.file_name().and_then(|it| it.to_str()).expect("a name");
            if segments[0].0 != 0 || name.starts_with("compact") {
                continue;
            }
            let snapshots = files.iter().filter(|(path, _)| {
                path.parent() == Some(&dir) && path.extension().is_some_and(|it| it == "snapshot")
            });
            for (path, theirs) in snapshots {
                let what = format!("{set} {}", path.display());
                let (state, _) = replay(&segments, number(path));
                let ours = state.encode_snapshot();
                let (ours_set, theirs_set) = (producers_of(&ours), producers_of(theirs));
                assert!(ours_set.is_superset(&theirs_set), "{what}");
                // A start dropped the producers that had expired when the fixture was made.
                let mut fresh = state.clone();
                fresh.remove_expired(FIXTURES_MADE, Millis::new(86_400_000));
                let must_stay = producers_of(&fresh.encode_snapshot());
                assert!(theirs_set.is_superset(&must_stay), "{what}");
                same_set += usize::from(ours_set == theirs_set && !ours_set.is_empty());
                let end = Offset::new(number(path));
                let read = ProducerState::decode_snapshot(theirs, end).expect("Kafka wrote it");
                assert_eq!(
                    producers_of(&read.encode_snapshot()),
                    producers_of(theirs),
                    "{what}"
                );
                compared += 1;
                with_producers += usize::from(theirs.len() > 10);
                same_bytes += usize::from(ours == *theirs);
            }
        }
    }
    assert!(compared >= 100, "{compared}");
    assert!(same_set >= 50, "{same_set} of {with_producers}");
    // Where the order happens to be the same, every byte is.
    assert!(same_bytes >= same_set / 2, "{same_bytes} of {same_set}");
}

#[test]
fn golden_kafkas_transaction_indexes_are_rebuilt_from_the_log() {
    let mut compared = 0;
    for set in highwater_fixtures::KAFKA_DATA_SETS {
        let files = highwater_fixtures::kafka_data(set);
        for (dir, segments) in logs(&files) {
            if segments[0].0 != 0 || dir.ends_with("compact-delete-0") {
                continue;
            }
            let (_, completed) = replay(&segments, i64::MAX);
            for (nth, (base, _)) in segments.iter().enumerate() {
                let next = segments.get(nth + 1).map_or(i64::MAX, |it| it.0);
                let here =
                    |it: &&CompletedTransaction| (*base..next).contains(&it.last_offset.raw());
                let aborted = completed.iter().filter(here).filter_map(|it| it.aborted());
                let ours: Vec<u8> = aborted.flat_map(|it| it.encode()).collect();
                let theirs = files.get(&dir.join(format!("{base:020}.txnindex")));
                let what = format!("{set} {} {base}", dir.display());
                assert_eq!(ours, theirs.cloned().unwrap_or_default(), "{what}");
                compared += usize::from(!ours.is_empty());
            }
        }
    }
    assert!(compared >= 15, "{compared}");
}

/// One thing that a producer or a coordinator may do.
#[derive(Clone, Copy, Debug)]
struct Act {
    producer: i64,
    records: i32,
    what: u8,
}

/// Batches of a log in which a few producers do what `acts` say, as a leader would let them.
fn batches_of(acts: &[Act]) -> Vec<ProducerBatch> {
    let mut state = ProducerState::new(Offset::ZERO);
    let mut batches = Vec::new();
    for act in acts {
        let id = ProducerId::new(act.producer);
        let entry = state.producer(id);
        let epoch = entry.map_or(0, |it| it.epoch.raw());
        let offset = state.end_offset().raw();
        let next = entry.map_or(0, |it| it.last_sequence().wrapping_add(1) & i32::MAX);
        let is_open = entry.is_some_and(|it| it.transaction_first_offset.is_some());
        let batch = match act.what {
            0..=3 => data(epoch, next, offset, act.records),
            4 => data(epoch + 1, 0, offset, act.records),
            5 => marker(act.producer, epoch + 1, offset, MarkerKind::Commit, 0),
            6 => marker(act.producer, epoch, offset, MarkerKind::Abort, 0),
            _ => ProducerBatch {
                is_transactional: true,
                ..data(epoch, next, offset, act.records)
            },
        };
        let is_transactional = batch.is_transactional || is_open;
        let batch = ProducerBatch {
            producer_id: id,
            is_transactional,
            ..batch
        };
        assert_eq!(
            state.check(&batch, ProducerOrigin::Coordinator),
            Ok(Check::New)
        );
        state.apply(&batch);
        batches.push(batch);
    }
    batches
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0..4_i64, 1..4_i32, 0..10_u8);
    let act = act.prop_map(|(producer, records, what)| Act {
        producer,
        records,
        what,
    });
    prop::collection::vec(act, 0..60)
}

proptest! {
    /// PI-09, PI-03: a snapshot from anywhere and the batches after it give what a full scan gives.
    #[test]
    fn pi_09_any_snapshot_and_the_rest_equal_a_full_scan(
        acts in acts(),
        at in any::<prop::sample::Index>(),
    ) {
        let batches = batches_of(&acts);
        let cut = at.index(batches.len() + 1);
        let before = state_of(&batches[..cut]);
        let bytes = before.encode_snapshot();
        let mut resumed =
            ProducerState::decode_snapshot(&bytes, before.end_offset()).expect("just written");
        prop_assert_eq!(resumed.encode_snapshot(), bytes);
        for batch in &batches[cut..] {
            resumed.apply(batch);
        }
        let full = state_of(&batches);
        prop_assert_eq!(resumed.encode_snapshot(), full.encode_snapshot());
        // With the high watermark at the end, what was decided before the snapshot is no matter.
        let end = full.end_offset();
        prop_assert_eq!(resumed.last_stable_offset(end), full.last_stable_offset(end));
    }

    /// The last stable offset never falls as the log and the high watermark grow, and no record
    /// of an undecided transaction is below it.
    #[test]
    fn the_last_stable_offset_rises_and_stays_below_open_transactions(acts in acts()) {
        let mut state = ProducerState::new(Offset::ZERO);
        let mut last = Offset::ZERO;
        for batch in batches_of(&acts) {
            let high_watermark = state.end_offset();
            state.apply(&batch);
            let stable = state.last_stable_offset(high_watermark);
            prop_assert!(last <= stable && stable <= high_watermark);
            let mut opened = state.producers().filter_map(|it| it.transaction_first_offset);
            prop_assert!(opened.all(|first| stable <= first));
            last = stable;
        }
    }

    #[test]
    fn no_bytes_make_a_snapshot_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _any = ProducerState::decode_snapshot(&bytes, Offset::new(100));
        let body = &bytes[6.min(bytes.len())..];
        let crc = crc32c::crc32c(body).to_be_bytes();
        let signed = [&[0, 1][..], &crc, body].concat();
        let _any = ProducerState::decode_snapshot(&signed, Offset::new(100));
    }
}
