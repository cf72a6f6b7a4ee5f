//! The names of a log's files and directories. All are Kafka's.

use std::path::{Path, PathBuf};

use highwater_types::{Offset, TopicPartition, Uuid};

/// Longest name that file systems take, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What a file of a log's directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileKind {
    /// Record batches.
    Log,
    /// Offset index.
    Index,
    /// Time index.
    TimeIndex,
    /// Aborted transactions.
    TxnIndex,
    /// Producer state.
    Snapshot,
}

impl FileKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Log,
        Self::Index,
        Self::TimeIndex,
        Self::TxnIndex,
        Self::Snapshot,
    ];

    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Index => "index",
            Self::TimeIndex => "timeindex",
            Self::TxnIndex => "txnindex",
            Self::Snapshot => "snapshot",
        }
    }
}

/// The stage that a suffix after the usual name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In service.
    Live,
    /// Waits to be removed.
    Deleted,
    /// A cleaner's unfinished work: worthless.
    Cleaned,
    /// A cleaner's finished work: takes the place of what it covers.
    Swap,
}

/// A file name of a log's directory, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub(crate) base: Offset,
    pub(crate) kind: FileKind,
    pub(crate) stage: Stage,
}

impl LogFile {
    /// `None` for a name that is no segment's.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (name, stage) = if let Some(name) = name.strip_suffix(".deleted") {
            (name, Stage::Deleted)
        } else if let Some(name) = name.strip_suffix(".cleaned") {
            (name, Stage::Cleaned)
        } else if let Some(name) = name.strip_suffix(".swap") {
            (name, Stage::Swap)
        } else {
            (name, Stage::Live)
        };
        let (digits, extension) = name.split_once('.')?;
        let kind = FileKind::ALL
            .into_iter()
            .find(|kind| kind.extension() == extension)?;
        if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            base: Offset::new(digits.parse().ok()?),
            kind,
            stage,
        })
    }
}

/// `<base offset, 20 digits>.<extension>` in `dir`.
pub(crate) fn segment_file(dir: &Path, base: Offset, kind: FileKind) -> PathBuf {
    dir.join(format!("{:020}.{}", base.raw(), kind.extension()))
}

/// `path` with `suffix` after its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Where a log's directory goes that is to be deleted (`what` is `delete`) or that the metadata
/// does not know (`stray`): `<topic>-<partition>.<32 hexadecimal digits>-<what>`, the front cut so
/// that the name fits.
#[must_use]
pub fn renamed_dir(partition: &TopicPartition, unique: Uuid, what: &str) -> PathBuf {
    let tail = format!(".{}-{what}", hex(unique));
    let mut name = partition.to_string();
    name.truncate(NAME_BYTES_MAX - tail.len());
    PathBuf::from(name + &tail)
}

fn hex(unique: Uuid) -> String {
    unique
        .to_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The end offset in the name of a metadata snapshot,
/// `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`.
pub(crate) fn snapshot_end(name: &str) -> Option<Offset> {
    let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    let digits = |text: &str, len| text.len() == len && text.bytes().all(|it| it.is_ascii_digit());
    if !digits(offset, 20) || !digits(epoch, 10) {
        return None;
    }
    offset.parse().ok().map(Offset::new)
}

#[cfg(test)]
mod tests {
    use highwater_types::{PartitionIndex, TopicName};

    use super::*;

    #[test]
    fn names_are_taken_apart_and_put_together() {
        let file = LogFile::parse("00000000000000000038.timeindex.deleted");
        assert_eq!(
            file,
            Some(LogFile {
                base: Offset::new(38),
                kind: FileKind::TimeIndex,
                stage: Stage::Deleted
            })
        );
        for other in [
            "leader-epoch-checkpoint",
            "38.log",
            "0000000000000000003x.log",
            ".log",
        ] {
            assert_eq!(LogFile::parse(other), None, "{other}");
        }
        let path = segment_file(Path::new("t-0"), Offset::new(7), FileKind::Log);
        assert_eq!(path, Path::new("t-0/00000000000000000007.log"));
        assert_eq!(
            with_suffix(&path, ".deleted"),
            Path::new("t-0/00000000000000000007.log.deleted")
        );
    }

    #[test]
    fn the_name_of_a_deleted_directory_is_cut_to_what_file_systems_take() {
        let topic = TopicName::new(&"x".repeat(249)).unwrap();
        let partition = TopicPartition {
            topic,
            partition: PartitionIndex::new(3),
        };
        let name = renamed_dir(&partition, Uuid::from_u128(0xab), "delete");
        let name = name.to_str().unwrap();
        assert_eq!(name.len(), 255);
        assert!(name.ends_with("000000ab-delete"), "{name}");
        let short = TopicPartition::parse("orders-3").unwrap();
        let name = renamed_dir(&short, Uuid::from_u128(1), "stray");
        assert_eq!(
            name,
            Path::new("orders-3.00000000000000000000000000000001-stray")
        );
    }
}
