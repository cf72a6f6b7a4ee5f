//! Random histories of one log: appends, cuts, retention, stops of every kind. After each step the
//! log is what its owner knows it to be.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use highwater_disk::{Blocking, MemDisk};
use highwater_log::{LogConfig, Origin, ReadError, Severity};
use highwater_records::{Batch, Compression};
use support::known::*;
use support::own::*;

/// A small generator with a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = self.0 ^ (self.0 >> 31);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

struct History {
    random: Random,
    disk: MemDisk,
    known: Known,
    log: Log,
    epoch: i32,
    /// Next sequence of each producer.
    sequences: BTreeMap<i64, i32>,
}

impl History {
    fn new(seed: u64) -> Self {
        let disk = MemDisk::new("log");
        let known = Known::default();
        let (log, _) = open(&disk, &known).unwrap();
        Self {
            random: Random(seed),
            disk,
            known,
            log,
            epoch: 0,
            sequences: BTreeMap::new(),
        }
    }

    fn step(&mut self) -> String {
        match self.random.below(100) {
            0..60 => self.append(),
            60..70 => {
                self.known.sync(&mut self.log).unwrap();
                "sync".into()
            }
            70..76 => self.truncate(),
            76..80 => self.retain(),
            80..83 => self.advance(),
            83..87 => self.reopen_clean(),
            87..93 => self.reopen_killed(),
            93..97 => self.reopen_after_power_loss(),
            _ => self.marker(),
        }
    }

    fn append(&mut self) -> String {
        let records = usize::try_from(1 + self.random.below(4)).unwrap();
        let mut spec = Spec::of(records);
        for time in &mut spec.timestamps {
            *time += i64::try_from(self.random.below(2000)).unwrap() - 1000;
        }
        spec.value_bytes = usize::try_from(self.random.below(90)).unwrap();
        if self.random.below(4) == 0 {
            spec.compression = Compression::Snappy;
        }
        let id = i64::try_from(self.random.below(4)).unwrap();
        if id > 0 {
            let next = self.sequences.entry(id).or_default();
            spec = spec.producer(id, 0, *next);
            *next += i32::try_from(records).unwrap();
            if id == 3 {
                spec = spec.transactional();
            }
        }
        if self.random.below(10) == 0 {
            self.epoch += 1;
            self.log.assign_leader_epoch(epoch(self.epoch));
        }
        self.known.append(&mut self.log, self.epoch, &spec).unwrap();
        format!(
            "append {records} records of producer {id} in epoch {}",
            self.epoch
        )
    }

    fn marker(&mut self) -> String {
        let is_open = self
            .log
            .producers()
            .producer(highwater_types::ProducerId::new(3))
            .is_some_and(|it| it.transaction_first_offset.is_some());
        if !is_open {
            return "no marker".into();
        }
        let committed = self.random.below(2) == 0;
        let bytes = marker(3, 0, committed);
        let base = self.log.log_end_offset().raw();
        append_bytes(&mut self.log, self.epoch, &bytes, Origin::Coordinator);
        let mut written = bytes;
        written[..8].copy_from_slice(&base.to_be_bytes());
        written[12..16].copy_from_slice(&self.epoch.to_be_bytes());
        self.known.note(base, &written);
        format!("marker committed={committed} at {base}")
    }

    /// Cuts at the base of some batch, as epochs make it, and goes on in a new epoch.
    fn truncate(&mut self) -> String {
        let start = self.log.log_start_offset().raw();
        let bases: Vec<i64> = self
            .known
            .written
            .range(start..)
            .map(|(base, _)| *base)
            .collect();
        if bases.is_empty() {
            return "nothing to cut".into();
        }
        let from = bases.len().saturating_sub(8);
        let pick = usize::try_from(self.random.below((bases.len() - from) as u64)).unwrap();
        let to = bases[from + pick];
        self.known.truncate(&mut self.log, to).unwrap();
        self.epoch += 1;
        self.sequences_from_log();
        format!("truncate to {to}")
    }

    fn sequences_from_log(&mut self) {
        self.sequences.clear();
        for producer in self.log.producers().producers() {
            if let Some(newest) = producer.newest_batch() {
                self.sequences
                    .insert(producer.producer_id.raw(), newest.last_sequence + 1);
            }
        }
    }

    fn retain(&mut self) -> String {
        let config = LogConfig {
            retention_bytes: Some(1500),
            ..self.log.config().clone()
        };
        let before = std::mem::replace(&mut self.known.retained, 0);
        let usual = self.log.config().clone();
        self.log.set_config(config);
        let high_watermark = at(self.known.flushed);
        let retained = self.log.retain(clock(), high_watermark).unwrap();
        self.log.set_config(usual);
        self.known.retained = before.max(self.log.log_start_offset().raw());
        self.known.log_start = self.log.log_start_offset().raw();
        let Some(retained) = retained else {
            return "nothing to retain".into();
        };
        if self.random.below(2) == 0 {
            retained.files.run(&Blocking::enter()).unwrap();
        }
        format!("retain from {}", retained.log_start_offset)
    }

    fn advance(&mut self) -> String {
        let (start, flushed) = (self.log.log_start_offset().raw(), self.known.flushed);
        if start >= flushed {
            return "nothing to advance over".into();
        }
        let span = u64::try_from(flushed - start).unwrap();
        let to = start + i64::try_from(self.random.below(span.min(6) + 1)).unwrap();
        self.log.advance_log_start(at(to)).unwrap();
        self.known.log_start = to;
        self.known.retained = self.known.retained.max(to);
        format!("log start {to}")
    }

    fn reopen_clean(&mut self) -> String {
        let end = self.log.log_end_offset().raw();
        let producers = self.log.producers().encode_snapshot();
        let log = std::mem::replace(
            &mut self.log,
            open(&MemDisk::new("x"), &Known::default()).unwrap().0,
        );
        log.close().run(&Blocking::enter()).unwrap();
        self.known.flushed = end;
        self.disk.crash();
        let (log, report) = opening(&self.disk, &self.known).clean().open();
        assert_eq!(report.to_string(), "", "after a clean stop");
        assert_eq!(log.log_end_offset().raw(), end);
        assert_eq!(log.producers().encode_snapshot(), producers);
        self.log = log;
        "clean stop".into()
    }

    fn reopen_killed(&mut self) -> String {
        let end = self.log.log_end_offset().raw();
        let producers = self.log.producers().encode_snapshot();
        self.disk.crash();
        let (log, report) = open(&self.disk, &self.known).unwrap();
        assert!(
            report.severity() <= Some(Severity::Normal),
            "after a kill: {report}"
        );
        assert_eq!(log.log_end_offset().raw(), end, "{report}");
        assert_eq!(log.producers().encode_snapshot(), producers, "{report}");
        self.log = log;
        format!("kill: {report}")
    }

    fn reopen_after_power_loss(&mut self) -> String {
        let mut random = Random(self.random.next());
        self.disk.power_off(&mut || random.next());
        let (log, report) = open(&self.disk, &self.known).unwrap();
        assert!(!report.is_loss(), "{report}");
        assert!(report.severity() <= Some(Severity::Normal), "{report}");
        self.log = log;
        // What was not flushed may be gone, or be what had been cut before.
        self.known.written = batches_of(&mut self.log);
        self.epoch += 2;
        self.sequences_from_log();
        format!("power loss: {report}")
    }

    fn check(&mut self, what: &str) {
        check_log(&mut self.log, &self.known, what);
        let start = self.log.log_start_offset().raw();
        let now = batches_of(&mut self.log);
        let known: BTreeMap<i64, Vec<u8>> = self
            .known
            .written
            .range(..)
            .filter(|(base, _)| **base >= start)
            .map(clone)
            .collect();
        let kept = now.range(start..).map(clone).collect();
        assert_eq!(known, kept, "{what}");
    }

    /// A scan of everything, without snapshots or indexes, finds what the log has in memory.
    fn check_against_scan(&mut self, what: &str) {
        if self.log.log_start_offset() != at(0) {
            return;
        }
        let mut files = self.disk.files();
        let is_log = |path: &Path| path.extension().is_some_and(|it| it == "log");
        files.retain(|path, _| is_log(path));
        let disk = MemDisk::with_files("scan", &files);
        let (scanned, report) = opening(&disk, &Known::default()).open();
        let live = &self.log;
        assert_eq!(
            scanned.producers().encode_snapshot(),
            live.producers().encode_snapshot(),
            "{what}"
        );
        let end = live.log_end_offset();
        assert_eq!(
            scanned.aborted_transactions(at(0), end),
            live.aborted_transactions(at(0), end),
            "{what}: {report}"
        );
        assert_eq!(
            scanned.last_stable_offset(end),
            live.last_stable_offset(end),
            "{what}"
        );
        let times = |log: &Log| {
            log.segments()
                .map(|it| it.max_timestamp)
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&scanned), times(live), "{what}");
    }
}

fn clone((base, bytes): (&i64, &Vec<u8>)) -> (i64, Vec<u8>) {
    (*base, bytes.clone())
}

fn batches_of(log: &mut Log) -> BTreeMap<i64, Vec<u8>> {
    let (mut from, end) = (log.log_start_offset().raw(), log.log_end_offset().raw());
    let mut found = BTreeMap::new();
    while from < end {
        let (bytes, _) = match read(log, from, end, 1 << 20) {
            Ok(read) => read,
            Err(ReadError::OutOfRange { .. }) => break,
            Err(why) => panic!("{why}"),
        };
        if bytes.is_empty() {
            // A hole that retention left at the end.
            break;
        }
        for batch in highwater_records::Batches::new(&bytes) {
            let batch: Batch<'_> = batch.unwrap();
            from = batch.header().next_offset().raw();
            found.insert(batch.header().base_offset.raw(), batch.bytes().to_vec());
        }
    }
    found
}

#[test]
fn random_histories() {
    for seed in 0..300 {
        let mut history = History::new(seed * 7919 + 1);
        let mut steps = Vec::new();
        let run = std::panic::AssertUnwindSafe(|| {
            for _ in 0..80 {
                let step = history.step();
                steps.push(step);
                let what = format!("seed {seed} step {}", steps.len());
                history.check(&what);
                if steps.len() % 10 == 0 {
                    history.check_against_scan(&what);
                }
            }
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            println!("seed {seed}: {steps:#?}");
            std::panic::resume_unwind(panic);
        }
    }
}
