//! The names in the directory of the metadata log. All are Kafka's.

use std::path::PathBuf;

use highwater_types::{LeaderEpoch, Offset, OffsetAndEpoch};

/// The directory of the metadata log within its log directory.
pub(crate) const METADATA_DIR: &str = "__cluster_metadata-0";

/// What `format` leaves for the first start.
pub(crate) const BOOTSTRAP_SNAPSHOT: &str =
    "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";

/// The same, as releases before 4.4 left it.
pub(crate) const BOOTSTRAP_FILE: &str = "bootstrap.checkpoint";

/// The epoch and vote of this voter.
pub(crate) const QUORUM_STATE: &str = "__cluster_metadata-0/quorum-state";

/// `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint` in the metadata log's directory.
pub(crate) fn snapshot_path(id: OffsetAndEpoch) -> PathBuf {
    let name = format!("{:020}-{:010}.checkpoint", id.offset.raw(), id.epoch.raw());
    PathBuf::from(METADATA_DIR).join(name)
}

/// A snapshot that is not whole yet. A start removes what it finds of these.
pub(crate) fn unfinished_snapshot_path(id: OffsetAndEpoch) -> PathBuf {
    let mut path = snapshot_path(id).into_os_string();
    path.push(".part");
    path.into()
}

/// What a snapshot with this file name contains up to.
pub(crate) fn parse_snapshot_name(name: &str) -> Option<OffsetAndEpoch> {
    let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    let digits = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(offset, 20) || !digits(epoch, 10) {
        return None;
    }
    Some(OffsetAndEpoch {
        epoch: LeaderEpoch::new(epoch.parse().ok()?),
        offset: Offset::new(offset.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_names_are_kafkas() {
        let name = "00000000000000000169-0000000001.checkpoint";
        let id = parse_snapshot_name(name).expect("a snapshot");
        assert_eq!((id.offset.raw(), id.epoch.raw()), (169, 1));
        assert_eq!(snapshot_path(id), PathBuf::from(METADATA_DIR).join(name));
        for other in [
            "00000000000000000169-0000000001.checkpoint.part",
            "169-1.checkpoint",
            "leader-epoch-checkpoint",
            "bootstrap.checkpoint",
        ] {
            assert_eq!(parse_snapshot_name(other), None, "{other}");
        }
    }
}
