//! Random runs. A seed that breaks an invariant panics with the invariant's id; play it again with
//! `highwater sim seed N`.

use highwater_sim::run_seed;

/// Seeds of one test run.
const SEEDS: u64 = 300;

#[test]
fn random_runs_keep_every_invariant() {
    let (mut batches, mut acknowledged, mut read, mut lost) = (0, 0, 0, 0);
    let (mut commits, mut assignments) = (0, 0);
    for seed in 0..SEEDS {
        let report = std::panic::catch_unwind(|| run_seed(seed, |_| ()));
        let report = report.unwrap_or_else(|_| panic!("seed {seed} breaks, see above"));
        batches += report.batches;
        acknowledged += report.acknowledged;
        read += report.read;
        lost += report.lost_with_power;
        commits += report.commits;
        assignments += report.assignments;
    }
    println!("{batches} batches, {acknowledged} acknowledged, {read} read, {lost} lost with power");
    println!("{commits} commits, {assignments} assignments");
    // Runs in which nothing happens prove nothing.
    assert!(batches > SEEDS * 20, "{batches} batches");
    assert!(
        acknowledged > SEEDS * 50,
        "{acknowledged} records acknowledged"
    );
    assert!(read > SEEDS * 50, "{read} records read");
    assert!(commits > SEEDS * 3, "{commits} commits");
    assert!(assignments > SEEDS * 2, "{assignments} assignments");
    assert!(lost > 0, "no loss of power ever took what was not flushed");
}

#[test]
fn i_28_a_seed_is_the_same_run_each_time() {
    for seed in 1000..1010 {
        let (first, second) = (run_seed(seed, |_| ()), run_seed(seed, |_| ()));
        assert_eq!(first.trace_hash, second.trace_hash, "seed {seed}");
    }
}
