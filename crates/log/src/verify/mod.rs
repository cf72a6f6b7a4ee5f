//! A read-only check of whole log directories, Highwater's or Apache Kafka's.
//!
//! Reads every byte of every log and compares all that is derived from them: indexes, producer
//! snapshots, leader epochs, checkpoints. Says of each difference what a broker would do.

mod directory;
mod epochs;
mod indexes;
mod log;
mod metadata_log;
mod producers;
mod report;
#[cfg(test)]
mod tests;
mod walk;

use highwater_disk::{Blocking, Disk, DiskError};

pub use self::report::{BrokerAction, VerifyFinding, VerifyReport};

/// Checks the log directories of one node; a node with several keeps its identity in each.
/// Changes nothing. `progress` hears how many bytes of logs were read so far.
///
/// # Errors
/// When a log directory cannot be listed. What cannot be read within it is a finding.
pub fn verify<D: Disk>(
    disks: &[D],
    _b: &Blocking,
    progress: &dyn Fn(u64),
) -> Result<VerifyReport, DiskError> {
    let mut report = VerifyReport::default();
    directory::check_identities(disks, &mut report);
    directory::check_doubles(disks, &mut report)?;
    for disk in disks {
        directory::check(disk, &mut report, progress)?;
    }
    Ok(report)
}
