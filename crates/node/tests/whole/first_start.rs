//! The process ends at every operation of a node's first life, and it comes up again.

use std::path::Path;

use highwater_disk::MemDisk;
use highwater_records::Batches;

use crate::host::{Host, config, file, formatted};

const LOG: &str = "__cluster_metadata-0/00000000000000000000.log";

fn metadata_version(dirs: &[MemDisk]) -> i16 {
    let host = Host::serving(&config(""), dirs);
    host.control.image().metadata_version()
}

#[test]
fn a_first_start_that_was_killed_after_any_batch_is_made_up_for() {
    let dirs = formatted(&config(""));
    drop(Host::serving(&config(""), &dirs));
    let log = file(&dirs, LOG).expect("a metadata log");
    let mut end = 0;
    for batch in Batches::new(&log) {
        end += batch.expect("well formed").size_bytes();
        let mut files = dirs[0].files();
        files.insert(LOG.into(), log[..end].to_vec());
        // What was committed of it nobody had noted yet.
        files.remove(Path::new("__cluster_metadata-0/high-watermark-checkpoint"));
        let cut = [MemDisk::with_files("a", &files)];
        assert_eq!(metadata_version(&cut), 33, "after {end} bytes");
    }
}

#[test]
fn a_first_start_survives_a_loss_of_power_at_every_operation() {
    let first_life = |dirs: &[MemDisk]| {
        if let Ok(mut host) = Host::try_start(&config(""), dirs) {
            host.try_serve(5);
            host.try_stop(20);
        }
    };
    let dirs = formatted(&config(""));
    let before = dirs[0].ops_count();
    first_life(&dirs);
    let ops = dirs[0].ops_count() - before;
    assert!(ops > 20, "{ops}");
    for seed in [None, Some(1), Some(2)] {
        for op in 0..=ops {
            let dirs = formatted(&config(""));
            let count = dirs[0].ops_count();
            dirs[0].power_off_at_op(count + op, seed);
            first_life(&dirs);
            dirs[0].power_on();
            assert_eq!(metadata_version(&dirs), 33, "op {op} of {ops}, {seed:?}");
        }
    }
}
