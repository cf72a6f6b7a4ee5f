//! Random runs of clusters of three to five brokers. A seed that breaks an invariant panics with
//! the invariant's id, and is told with the command that plays it again.

use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use highwater_sim::{SeedReport, run_cluster_seed};

/// Seeds of one test run. `CLUSTER_SEEDS=1000..5000` plays others.
const SEEDS: std::ops::Range<u64> = 0..1000;
/// Seeds that are played twice.
const TWICE: std::ops::Range<u64> = 5000..5020;
/// Seeds that are played at a time.
const THREADS: usize = 2;
/// Records that a run acknowledges and reads at the least, on average.
const RECORDS_MIN: u64 = 100;

#[derive(Debug, Default)]
struct Sum {
    runs: u64,
    events: u64,
    batches: u64,
    acknowledged: u64,
    read: u64,
    commits: u64,
    assignments: u64,
    lost_with_power: u64,
}

impl Sum {
    fn add(&mut self, report: &SeedReport) {
        self.runs += 1;
        self.events += report.events;
        self.batches += report.batches;
        self.acknowledged += report.acknowledged;
        self.read += report.read;
        self.commits += report.commits;
        self.assignments += report.assignments;
        self.lost_with_power += report.lost_with_power;
    }
}

#[test]
fn random_runs_of_clusters_keep_every_invariant() {
    let seeds = wanted();
    let next = AtomicU64::new(seeds.start);
    let found = Mutex::new((Sum::default(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let report = panic::catch_unwind(|| run_cluster_seed(seed, |_| ()));
                    let mut found = found.lock().expect("no thread dies with it");
                    match report {
                        Ok(report) => found.0.add(&report),
                        Err(why) => found.1.push((seed, words(&*why))),
                    }
                }
            });
        }
    });
    let (sum, mut broken) = found.into_inner().expect("no thread died with it");
    println!("{sum:?}");
    broken.sort_unstable();
    let lines = broken
        .iter()
        .map(|(seed, why)| format!("highwater sim seed --cluster {seed}\n    {why}\n"));
    let lines: String = lines.collect();
    assert!(
        broken.is_empty(),
        "{} seeds break. Play them again by:\n{lines}",
        broken.len()
    );
    // Runs in which nothing happens prove nothing.
    assert!(sum.acknowledged > sum.runs * RECORDS_MIN, "{sum:?}");
    assert!(sum.read > sum.runs * RECORDS_MIN, "{sum:?}");
    assert!(sum.commits > sum.runs, "{sum:?}");
    assert!(sum.assignments > sum.runs, "{sum:?}");
    assert!(sum.lost_with_power > 0, "no power loss ever took anything");
}

#[test]
fn i_28_a_seed_of_a_cluster_is_the_same_run_each_time() {
    for seed in TWICE {
        let run = || panic::catch_unwind(|| run_cluster_seed(seed, |_| ()).trace_hash).ok();
        let (first, second) = (run(), run());
        assert!(first.is_some(), "seed {seed} breaks");
        assert_eq!(first, second, "I-28: seed {seed}");
    }
}

fn wanted() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("CLUSTER_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").expect("CLUSTER_SEEDS=FROM..TO");
    let number = |text: &str| text.parse().expect("CLUSTER_SEEDS=FROM..TO");
    number(from)..number(to)
}

fn words(why: &(dyn std::any::Any + Send)) -> String {
    let text = why.downcast_ref::<String>().cloned();
    let text = text.or_else(|| why.downcast_ref::<&str>().map(ToString::to_string));
    text.unwrap_or_else(|| "a panic without words".to_owned())
}
