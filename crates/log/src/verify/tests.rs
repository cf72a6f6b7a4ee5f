use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, DiskOp, Fault, FaultPath, MemDisk};

use super::*;
use crate::recovery::Severity;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The log directory `dir` of a fixture. Some index files have fewer zeros at their end than they
/// had, which makes no difference here.
fn fixture(set: &str, dir: &str) -> Files {
    let root = Path::new("data").join(dir);
    let files = highwater_fixtures::kafka_data(set).into_iter();
    let inside = |path: &Path| path.strip_prefix(&root).map(Path::to_path_buf).ok();
    files
        .filter_map(|(path, bytes)| Some((inside(&path)?, bytes)))
        .collect()
}

fn one_node() -> Files {
    fixture("one-node-clean", "")
}

/// As after kill -9.
fn unclean(mut files: Files) -> Files {
    files
        .remove(Path::new(".kafka_cleanshutdown"))
        .expect("it was clean");
    files
}

fn check_disks(disks: &[MemDisk]) -> VerifyReport {
    let before: Vec<Files> = disks.iter().map(MemDisk::files).collect();
    let report = verify(disks, &Blocking::enter(), &|_| ());
    for (disk, before) in disks.iter().zip(before) {
        assert!(
            disk.files() == before && disk.ops_count() == 0,
            "a check changes nothing"
        );
    }
    report.expect("the directory can be listed")
}

fn check(files: &Files) -> VerifyReport {
    check_disks(&[MemDisk::with_files("dir", files)])
}

/// Findings as `severity log file position offset action`; what is wrong, in words, is left out.
fn rows(report: &VerifyReport) -> Vec<String> {
    let row = |it: &VerifyFinding| {
        let [severity, log, file, position, offset, _, _] = it.row();
        let file = file.replace("000000000000000000", "0..0");
        [
            severity.as_str(),
            &log,
            &file,
            &position,
            &offset,
            it.action.name(),
        ]
        .join(" ")
    };
    report.findings.iter().map(row).collect()
}

const UNCLEAN: &str = "note - .kafka_cleanshutdown - - nothing";

#[track_caller]
fn expect(files: &Files, rows_expected: &[&str]) {
    let report = check(files);
    assert_eq!(rows(&report), rows_expected, "{:#?}", report.findings);
}

/// Damages a copy of a clean directory; what is found must be `clean`, and without the marker of
/// a clean stop `UNCLEAN` and then `killed`.
#[track_caller]
fn expect_both(damage: impl Fn(&mut Files), clean: &[&str], killed: &[&str]) {
    let mut files = one_node();
    damage(&mut files);
    expect(&files, clean);
    let killed: Vec<&str> = [UNCLEAN].iter().chain(killed).copied().collect();
    expect(&unclean(files), &killed);
}

fn edit<'a>(files: &'a mut Files, path: &str) -> &'a mut Vec<u8> {
    files
        .get_mut(Path::new(path))
        .unwrap_or_else(|| panic!("{path} is in the fixture"))
}

fn edit_text(files: &mut Files, path: &str, from: &str, to: &str) {
    let text = String::from_utf8(edit(files, path).clone()).expect("text");
    assert!(text.contains(from), "{path} has no {from:?}: {text:?}");
    *edit(files, path) = text.replacen(from, to, 1).into_bytes();
}

fn remove(files: &mut Files, path: &str) {
    files
        .remove(Path::new(path))
        .unwrap_or_else(|| panic!("{path} is in the fixture"));
}

/// Start of the last batch of a segment.
fn last_batch(log: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let length = u32::from_be_bytes(log[at + 8..at + 12].try_into().expect("four bytes"));
        let next = at + 12 + length as usize;
        if next >= log.len() {
            return at;
        }
        at = next;
    }
}

const CODECS: &str = "codecs-0/00000000000000000000.log";
const LOGAPPEND: &str = "logappend-0/00000000000000000000.log";

#[test]
fn golden_clean_directories_have_nothing_to_tell() {
    let mut batches = 0;
    for (set, dir) in [
        ("one-node-clean", ""),
        ("one-node-recovered", ""),
        ("static-quorum-clean", ""),
        ("three-nodes-clean", "node-1"),
        ("three-nodes-clean", "node-3-dir-b"),
    ] {
        let report = check(&fixture(set, dir));
        assert_eq!(report.findings, [], "{set} {dir}");
        batches += report.batches;
    }
    assert!(batches > 3000, "{batches}");
    // A server that stops within file.delete.delay.ms leaves files that were deleted.
    for dir in ["node-2", "node-3-dir-a"] {
        let deleted = "note __cluster_metadata-0 *.deleted - - remove";
        expect(&fixture("three-nodes-clean", dir), &[deleted]);
    }
}

#[test]
fn golden_killed_and_formatted_directories_are_only_that() {
    for (set, dir) in [
        ("one-node-killed", ""),
        ("one-node-formatted", ""),
        ("three-nodes-formatted", "node-3-dir-a"),
        ("three-nodes-formatted", "node-4-broker-only"),
    ] {
        expect(&fixture(set, dir), &[UNCLEAN]);
    }
    for dir in ["node-4-broker-only", "node-5-joined-controller"] {
        let deleted = "note __cluster_metadata-0 *.deleted - - remove";
        expect(&fixture("three-nodes-running", dir), &[UNCLEAN, deleted]);
    }
}

#[test]
fn golden_two_directories_of_one_node_agree() {
    let disks = ["node-3-dir-a", "node-3-dir-b"]
        .map(|dir| MemDisk::with_files(dir, &fixture("three-nodes-clean", dir)));
    let report = check_disks(&disks);
    assert_eq!(
        rows(&report),
        ["note __cluster_metadata-0 *.deleted - - remove"]
    );
}

#[test]
fn a_torn_tail_above_the_high_watermark_is_cut() {
    let garbage = |files: &mut Files| {
        edit(files, CODECS).extend([0xde, 0xad, 0xbe, 0xef].repeat(8));
    };
    let end = one_node()[Path::new(CODECS)].len();
    let row = format!("note codecs-0 0..000.log {end} 50 cut");
    expect_both(garbage, &[&row], &[&row]);
}

#[test]
fn damage_below_the_recovery_point_is_kept_and_served_as_corrupt() {
    let at = last_batch(&one_node()[Path::new(CODECS)]);
    let row = format!("damage codecs-0 0..000.log {at} 40 serve-corrupt");
    let flip_last = |files: &mut Files| edit(files, CODECS)[at + 70] ^= 1;
    expect_both(flip_last, &[&row], &[&row]);
    // After a clean stop opening does not read so far back, unless an earlier one did and has
    // left word.
    let unread = "damage codecs-0 0..000.log 0 0 send-as-is";
    let row = "damage codecs-0 0..000.log 0 0 serve-corrupt";
    let flip_first = |files: &mut Files| edit(files, CODECS)[70] ^= 1;
    expect_both(flip_first, &[unread], &[row]);
    let known = |files: &mut Files| {
        flip_first(files);
        files.insert(
            "codecs-0/damage-checkpoint".into(),
            b"0\n1\n0 10\n".to_vec(),
        );
    };
    expect_both(known, &[row], &[row]);
}

#[test]
fn above_the_recovery_point_the_high_watermark_decides() {
    let at = last_batch(&one_node()[Path::new(LOGAPPEND)]);
    let damaged = |recovery_point: &str, high_watermark: &str| {
        let mut files = unclean(one_node());
        let line = |offset: &str| format!("logappend 0 {offset}\n");
        let (recovery, replication) = (
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
        );
        edit_text(&mut files, recovery, &line("12"), &line(recovery_point));
        edit_text(&mut files, replication, &line("12"), &line(high_watermark));
        let log = edit(&mut files, LOGAPPEND);
        log.truncate(log.len() - 10);
        files
    };
    let row = |how: &str| format!("{how} logappend-0 0..000.log {at} 8 ").replace("  ", " ");
    expect(&damaged("0", "8"), &[UNCLEAN, &(row("note") + "cut")]);
    expect(
        &damaged("0", "12"),
        &[UNCLEAN, &(row("loss") + "cut-and-alarm")],
    );
    // In the middle, with acknowledged records behind it.
    let mut files = damaged("0", "12");
    edit(&mut files, LOGAPPEND)[70] ^= 1;
    let first = "damage logappend-0 0..000.log 0 0 serve-corrupt";
    expect(&files, &[UNCLEAN, first, &(row("loss") + "cut-and-alarm")]);
}

#[test]
fn records_that_are_gone_without_a_trace_are_missed() {
    let whole_batch_gone = |files: &mut Files| {
        let log = edit(files, CODECS);
        log.truncate(last_batch(log));
    };
    let lost = "loss codecs-0 - - 40 cut-and-alarm";
    let index = "repair codecs-0 0..000.index 24 - rebuild";
    expect_both(whole_batch_gone, &[index, lost], &[index, lost]);
}

#[test]
fn indexes_that_are_missing_or_lie_are_rebuilt() {
    // many.batches-0 and grown-* have one segment; plain-2 has rolled.
    let old = "plain-2/00000000000000000000";
    let missing = |files: &mut Files| remove(files, &format!("{old}.index"));
    expect_one(missing, "repair plain-2 0..000.index - - rebuild");
    let garbage = |files: &mut Files| edit(files, &format!("{old}.timeindex")).fill(0x7f);
    expect_one(garbage, "repair plain-2 0..000.timeindex 12 - rebuild");
    let short = |files: &mut Files| {
        edit(files, &format!("{old}.timeindex")).pop();
    };
    expect_one(short, "repair plain-2 0..000.timeindex - - rebuild");
}

#[track_caller]
fn expect_one(damage: impl Fn(&mut Files), row: &str) {
    expect_both(damage, &[row], &[row]);
}

#[test]
fn sc_11_a_time_index_filled_up_with_zeros_is_rebuilt() {
    let path = "plain-2/00000000000000000000.timeindex";
    let zeros = |files: &mut Files| edit(files, path).extend([0; 24]);
    let at = one_node()[Path::new(path)].len();
    expect_one(
        zeros,
        &format!("repair plain-2 0..000.timeindex {at} - rebuild"),
    );
    let all_zeros = |files: &mut Files| edit(files, path).fill(0);
    expect_one(all_zeros, "repair plain-2 0..000.timeindex 0 - rebuild");
}

#[test]
fn i_18_index_entries_point_at_batch_boundaries() {
    let files = one_node();
    let index = files.iter().find(|(path, bytes)| {
        path.extension().is_some_and(|it| it == "index")
            && !path.starts_with("__cluster_metadata-0")
            && bytes.iter().any(|it| *it != 0)
    });
    let (path, _) = index.expect("an index with an entry");
    let path = path.to_str().expect("text").to_owned();
    let log = path.split('/').next().expect("a directory").to_owned();
    let name = Path::new(&path)
        .file_name()
        .and_then(|it| it.to_str())
        .expect("a name");
    let name = name.replace("000000000000000000", "0..0");
    let row = format!("repair {log} {name} 0 - rebuild");
    expect_one(|files: &mut Files| edit(files, &path)[7] ^= 1, &row);
    expect_one(
        |files: &mut Files| edit(files, &path)[3] ^= 0x60,
        &row.replace("index 0", "index 8"),
    );
    expect_one(
        |files: &mut Files| edit(files, &path)[4] ^= 0x40,
        &row.replace("index 0", "index 8"),
    );
}

#[test]
fn sc_09_leader_epochs_are_rebuilt_from_the_batches() {
    let file = "codecs-0/leader-epoch-checkpoint";
    let log = "repair codecs-0 leader-epoch-checkpoint -";
    expect_one(
        |files: &mut Files| remove(files, file),
        &format!("{log} - rebuild"),
    );
    expect_one(
        |files: &mut Files| edit(files, file).clear(),
        &format!("{log} 0 rebuild"),
    );
    let garbage = |files: &mut Files| edit(files, file).fill(0);
    expect_one(garbage, &format!("{log} - rebuild"));
    let gap = |files: &mut Files| *edit(files, file) = b"0\n1\n6 40\n".to_vec();
    let report = check(&{
        let mut files = one_node();
        gap(&mut files);
        files
    });
    assert_eq!(
        report.severity(),
        Some(Severity::Repaired),
        "{:?}",
        report.findings
    );
    let beyond = |files: &mut Files| *edit(files, file) = b"0\n2\n0 0\n9 4000\n".to_vec();
    expect_one(beyond, &format!("{log} 4000 rebuild"));
}

/// The log begins at its first segment again, earlier than its epochs.
const TRIMMED_EPOCHS: &str = "repair trimmed-0 leader-epoch-checkpoint - 35 rebuild";

#[test]
fn sc_10_checkpoints_that_are_missing_empty_or_garbage() {
    for (file, action) in [
        ("recovery-point-offset-checkpoint", "scan-all"),
        ("replication-offset-checkpoint", "learn-again"),
        ("log-start-offset-checkpoint", "clamp"),
    ] {
        let row = format!("repair - {file} - - {action}");
        let more: &[&str] = if action == "clamp" {
            &[TRIMMED_EPOCHS]
        } else {
            &[]
        };
        let damages: [fn(&mut Files, &str); 3] = [
            |files, file| remove(files, file),
            |files, file| edit(files, file).clear(),
            |files, file| edit(files, file).fill(0),
        ];
        for damage in damages {
            let clean: Vec<&str> = [row.as_str()].iter().chain(more).copied().collect();
            let mut files = one_node();
            damage(&mut files, file);
            expect(&files, &clean);
            let killed: Vec<&str> = [UNCLEAN].iter().chain(&clean).copied().collect();
            expect(&unclean(files), &killed);
        }
    }
    let marker = ".kafka_cleanshutdown";
    let mut files = one_node();
    edit(&mut files, marker).fill(0);
    expect(&files, &["repair - .kafka_cleanshutdown - - remove"]);
    edit(&mut files, marker).clear();
    expect(&files, &[]);
}

#[test]
fn sc_08_checkpoints_beyond_the_log_are_told() {
    for (file, row) in [
        (
            "recovery-point-offset-checkpoint",
            "loss codecs-0 - - 50 cut-and-alarm",
        ),
        (
            "replication-offset-checkpoint",
            "loss codecs-0 - - 50 cut-and-alarm",
        ),
    ] {
        let beyond = |files: &mut Files| edit_text(files, file, "codecs 0 50\n", "codecs 0 60\n");
        expect_one(beyond, row);
    }
    let start = "log-start-offset-checkpoint";
    let beyond = |files: &mut Files| edit_text(files, start, "trimmed 0 37\n", "trimmed 0 999\n");
    expect_one(beyond, "loss trimmed-0 - - 999 cut-and-alarm");
    let below = |files: &mut Files| edit_text(files, start, "trimmed 0 37\n", "trimmed 0 1\n");
    let clamped = ["repair trimmed-0 - - 1 clamp", TRIMMED_EPOCHS];
    expect_both(below, &clamped, &clamped);
    let cleaner = "cleaner-offset-checkpoint";
    let report = check(&{
        let mut files = one_node();
        *edit(&mut files, cleaner) = b"0\n2\ncompact 0 98765\ngone 3 7\n".to_vec();
        files
    });
    let about = |it: &&String| it.contains(cleaner);
    let rows: Vec<String> = rows(&report).iter().filter(about).cloned().collect();
    let expected = [
        "repair - cleaner-offset-checkpoint - 98765 clamp",
        "note - cleaner-offset-checkpoint - - nothing",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn transaction_indexes_and_snapshots_are_rebuilt() {
    let file = "txn-0/00000000000000000007.txnindex";
    let row = "repair txn-0 0..007.txnindex - - rebuild";
    expect_one(|files: &mut Files| remove(files, file), row);
    let cut = |files: &mut Files| edit(files, file).truncate(50);
    expect_one(cut, row);
    let one_less = |files: &mut Files| edit(files, file).truncate(34);
    expect_one(one_less, "repair txn-0 0..007.txnindex - 14 rebuild");
    let one_more = |files: &mut Files| {
        let mut more = edit(files, file)[..34].to_vec();
        more[25] = 200;
        edit(files, file).extend(more);
    };
    expect_one(one_more, "repair txn-0 0..007.txnindex - 200 rebuild");

    let file = "codecs-0/00000000000000000050.snapshot";
    let snapshot = |action: &str| format!("repair codecs-0 0..050.snapshot - {action}");
    let lacking = snapshot("50 rebuild");
    let missing = |files: &mut Files| remove(files, file);
    expect_both(missing, &[&lacking], &[]);
    let flipped = |files: &mut Files| edit(files, file)[20] ^= 1;
    expect_both(
        flipped,
        &[&snapshot("- remove"), &lacking],
        &[&snapshot("- remove")],
    );
    // Sound, but of another log.
    let other = |files: &mut Files| {
        let state = crate::ProducerState::decode_snapshot(
            edit(files, file),
            highwater_types::Offset::new(50),
        );
        let mut bytes = state.expect("sound").encode_snapshot();
        bytes[23] ^= 1;
        let crc = crc32c::crc32c(&bytes[6..]).to_be_bytes();
        bytes[2..6].copy_from_slice(&crc);
        *edit(files, file) = bytes;
    };
    expect_one(other, &snapshot("- rebuild"));
}

#[test]
fn an_identity_that_is_missing_or_bad_is_refused() {
    let row = "damage - meta.properties - - refuse";
    let mut files = one_node();
    edit(&mut files, "meta.properties").fill(0);
    expect(&files, &[row]);
    edit(&mut files, "meta.properties").clear();
    expect(&files, &[row]);
    remove(&mut files, "meta.properties");
    expect(&files, &[row]);
}

#[test]
fn two_directories_that_do_not_belong_together_are_refused() {
    let [a, b] = ["node-3-dir-a", "node-3-dir-b"].map(|dir| fixture("three-nodes-clean", dir));
    let pair = |b: &Files| {
        let disks = [MemDisk::with_files("a", &a), MemDisk::with_files("b", b)];
        let rows = rows(&check_disks(&disks)).into_iter();
        rows.filter(|it| !it.contains(".deleted"))
            .collect::<Vec<_>>()
    };
    assert!(pair(&b).is_empty());
    let refused = ["damage - meta.properties - - refuse"];
    for key in ["node.id=3", "cluster.id="] {
        let mut other = b.clone();
        edit_text(&mut other, "meta.properties", key, &format!("{key}7"));
        assert_eq!(pair(&other), refused, "{key}");
    }
    let mut same = b.clone();
    same.insert(
        "meta.properties".into(),
        a[Path::new("meta.properties")].clone(),
    );
    assert_eq!(pair(&same), refused, "the same directory.id");
    let (not_together, dir_b) = (
        "note - .kafka_cleanshutdown - - nothing",
        unclean(b.clone()),
    );
    assert_eq!(pair(&dir_b), [not_together; 3]);
    // A log in both.
    let log = a
        .keys()
        .find(|path| path.starts_with("plain-0") || path.starts_with("plain-1"));
    let log = log
        .expect("a log")
        .components()
        .next()
        .expect("its directory")
        .as_os_str();
    let mut both = b.clone();
    let copied = a.iter().filter(|(path, _)| path.starts_with(log));
    both.extend(copied.map(|(path, bytes)| (path.clone(), bytes.clone())));
    let twice = format!("damage {} - - - refuse", log.to_str().expect("text"));
    assert!(pair(&both).contains(&twice), "{:?}", pair(&both));
}

#[test]
fn a_log_without_an_identity_is_set_aside() {
    let file = "plain-1/partition.metadata";
    let row = "damage plain-1 partition.metadata - - set-aside";
    expect_one(|files: &mut Files| remove(files, file), row);
    expect_one(|files: &mut Files| edit(files, file).clear(), row);
    expect_one(
        |files: &mut Files| edit_text(files, file, "topic_id: ", "topic_id: x"),
        row,
    );
}

#[test]
fn leftovers_and_strangers_are_noted() {
    let mut files = one_node();
    let segment = files[Path::new(CODECS)].clone();
    for name in [
        ".lock",
        "replication-offset-checkpoint.tmp",
        "notes.txt",
        "codecs-0/00000000000000000000.log.swap",
        "codecs-0/00000000000000000000.log.cleaned",
        "codecs-0/00000000000000000000.index.deleted",
        "codecs-0/leader-epoch-checkpoint.tmp",
        "codecs-0/00000000000000000777.timeindex",
        "codecs-0/README",
    ] {
        files.insert(name.into(), segment.clone());
    }
    let expected = [
        "note - .lock - - nothing",
        "note - notes.txt - - nothing",
        "note - replication-offset-checkpoint.tmp - - remove",
        "note codecs-0 0..000.log.cleaned - - remove",
        "note codecs-0 0..000.log.swap - - take-in",
        "note codecs-0 README - - nothing",
        "note codecs-0 *.deleted - - remove",
        "note codecs-0 *.tmp, *.part - - remove",
        "note codecs-0 00000000000000000777.timeindex - - remove",
    ];
    expect(&files, &expected);
}

#[test]
fn the_metadata_log_has_no_gaps_and_its_votes_are_readable() {
    let log = "__cluster_metadata-0/00000000000000000000.log";
    let state = "__cluster_metadata-0/quorum-state";
    let damage = "damage __cluster_metadata-0";
    let refuse_state = format!("{damage} quorum-state - - refuse");
    expect_one(
        |files: &mut Files| edit(files, state).fill(0),
        &refuse_state,
    );
    expect_one(
        |files: &mut Files| edit(files, state).truncate(10),
        &refuse_state,
    );
    let text = |files: &mut Files| edit_text(files, state, "leaderEpoch", "leader");
    expect_one(text, &refuse_state);

    // A whole batch in the middle is gone.
    let mut files = one_node();
    let bytes = edit(&mut files, log);
    let second = 12 + u32::from_be_bytes(bytes[8..12].try_into().expect("four")) as usize;
    let length = &bytes[second + 8..second + 12];
    let third = second + 12 + u32::from_be_bytes(length.try_into().expect("four")) as usize;
    bytes.drain(second..third);
    let report = check(&files);
    let gap = format!("{damage} 0..000.log {second} ");
    let is_gap = |row: &String| row.starts_with(&gap) && row.ends_with(" refuse");
    assert!(rows(&report).iter().any(is_gap), "{:?}", rows(&report));

    // A rotten batch with others behind it.
    let mut files = one_node();
    edit(&mut files, log)[second + 70] ^= 1;
    let report = check(&files);
    assert!(rows(&report).iter().any(is_gap), "{:?}", rows(&report));
}

#[test]
fn a_metadata_log_that_begins_later_needs_its_snapshot() {
    let dir = Path::new("__cluster_metadata-0");
    let is_snapshot = |path: &Path| {
        path.starts_with(dir) && path.extension().is_some_and(|it| it == "checkpoint")
    };
    let files = fixture("three-nodes-clean", "node-1");
    let mut without = files.clone();
    without.retain(|path, _| !is_snapshot(path));
    let report = check(&without);
    let has_refusal = |it: &VerifyFinding| it.action == BrokerAction::Refuse;
    assert!(
        report.findings.iter().any(has_refusal),
        "{:?}",
        report.findings
    );
    // Each way to spoil a snapshot is seen.
    let (path, bytes) = files
        .iter()
        .find(|(path, _)| is_snapshot(path))
        .expect("one");
    for spoil in [
        &|bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 90) as _,
        &|bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2),
        &|bytes: &mut Vec<u8>| bytes.clear(),
        &|bytes: &mut Vec<u8>| bytes[100] ^= 1,
        &|bytes: &mut Vec<u8>| drop(bytes.drain(..last_batch(&bytes.clone()))),
    ] as [&dyn Fn(&mut Vec<u8>); 5]
    {
        let mut spoilt = bytes.clone();
        spoil(&mut spoilt);
        let mut files = files.clone();
        files.insert(path.clone(), spoilt);
        let report = check(&files);
        let name = path.file_name().and_then(|it| it.to_str()).expect("text");
        let about = |it: &VerifyFinding| it.file == name && it.severity == Severity::Damage;
        assert!(report.findings.iter().any(about), "{:?}", report.findings);
    }
}

#[test]
fn what_cannot_be_read_is_a_finding() {
    let disk = MemDisk::with_files("dir", &one_node());
    disk.inject(Fault::io_error(DiskOp::Read, FaultPath::Is(CODECS.into())));
    let report = check_disks(&[disk]);
    assert_eq!(
        rows(&report),
        ["damage codecs-0 0..000.log - - take-offline"]
    );
}

#[test]
fn a_segment_that_is_missing_is_told() {
    let gone = |files: &mut Files| {
        for extension in ["log", "index", "timeindex", "snapshot"] {
            remove(files, &format!("plain-2/00000000000000000075.{extension}"));
        }
    };
    expect_one(gone, "loss plain-2 00000000000000000110.log - 75 nothing");
}

#[test]
fn every_flipped_bit_of_a_log_is_noticed() {
    let all = one_node();
    let is_of_log =
        |path: &Path| path.starts_with("many.batches-0") || path.parent() == Some(Path::new(""));
    let small: Files = all
        .into_iter()
        .filter(|(path, _)| is_of_log(path))
        .collect();
    let log = "many.batches-0/00000000000000000000.log";
    let count = |files: &Files| {
        let report = check(files);
        report
            .findings
            .into_iter()
            .filter(|it| it.log == "many.batches-0")
            .count()
    };
    assert_eq!(count(&small), 0);
    for at in 0..small[Path::new(log)].len() {
        let mut flipped = small.clone();
        edit(&mut flipped, log)[at] ^= 1 << (at % 8);
        assert!(count(&flipped) > 0, "byte {at}");
    }
}

#[test]
fn the_report_is_json_and_a_table() {
    let mut files = one_node();
    edit(&mut files, CODECS)[70] ^= 1;
    let report = check(&files);
    let json = report.to_json();
    assert_eq!(json["severity"], "damage");
    assert_eq!(json["logs"], 25);
    let finding = &json["findings"][0];
    assert_eq!(
        (&finding["log"], &finding["offset"]),
        (&"codecs-0".into(), &0.into())
    );
    assert_eq!(finding["action"], "send-as-is");
    let [severity, .., action] = report.findings[0].row();
    assert_eq!(severity, "damage");
    assert_eq!(action, "send it as it is; clients check the CRC");
    assert!(report.has_damage());
}

#[test]
fn directories_that_are_no_logs() {
    let with = |dir: &str| {
        let mut files = one_node();
        files.insert(Path::new(dir).join("x"), Vec::new());
        files
    };
    let unique = "0123456789abcdef0123456789abcdef";
    for (dir, severity, action) in [
        (format!("plain-0.{unique}-delete"), "note", "remove"),
        (format!("plain-0.{unique}-stray"), "note", "nothing"),
        (format!("plain-0.{unique}-future"), "note", "nothing"),
        ("odd".to_owned(), "repair", "nothing"),
    ] {
        expect(&with(&dir), &[&format!("{severity} - {dir} - - {action}")]);
    }
}
