use highwater_types::LeaderEpoch;

use super::{BatchError, Record};

/// What a record of a control batch says: the number in its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControlType {
    /// A transaction ended without effect (0).
    Abort,
    /// A transaction was committed (1).
    Commit,
    /// A leader of the quorum began its epoch (2).
    LeaderChange,
    /// First record of a metadata snapshot (3).
    SnapshotHeader,
    /// Last record of a metadata snapshot (4).
    SnapshotFooter,
    /// The quorum's protocol version (5, KIP-853).
    KraftVersion,
    /// The quorum's voters (6, KIP-853).
    KraftVoters,
    /// A number that this build does not know; such a record is skipped.
    Unknown(i16),
}

impl ControlType {
    /// The type with this number.
    #[must_use]
    pub const fn from_raw(raw: i16) -> Self {
        match raw {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KraftVersion,
            6 => Self::KraftVoters,
            other => Self::Unknown(other),
        }
    }

    /// The number in the key.
    #[must_use]
    pub const fn raw(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KraftVersion => 5,
            Self::KraftVoters => 6,
            Self::Unknown(raw) => raw,
        }
    }

    /// The key of a control record: key version 0 and the type, two bytes each.
    #[must_use]
    pub const fn key(self) -> [u8; 4] {
        let [high, low] = self.raw().to_be_bytes();
        [0, 0, high, low]
    }

    /// The type in a control record's key. Key versions above 0 may only add fields.
    ///
    /// # Errors
    /// [`BatchError::Record`] for a key that is missing, too short or of a negative version.
    pub fn of_key(key: Option<&[u8]>) -> Result<Self, BatchError> {
        match key {
            Some([version_high, _, high, low, ..]) if *version_high < 0x80 => {
                Ok(Self::from_raw(i16::from_be_bytes([*high, *low])))
            }
            _ => Err(BatchError::Record {
                index: 0,
                what: "not the key of a control record",
            }),
        }
    }
}

/// One record of a control batch.
#[derive(Clone, Copy, Debug)]
pub struct ControlRecord<'a> {
    /// What it says.
    pub control_type: ControlType,
    /// The message in it; `stored` has the decoders.
    pub value: &'a [u8],
}

impl<'a> ControlRecord<'a> {
    /// Reads `record`, which must come from a control batch.
    ///
    /// # Errors
    /// As [`ControlType::of_key`].
    pub fn of(record: &Record<'a>) -> Result<Self, BatchError> {
        let control_type = ControlType::of_key(record.key)?;
        Ok(Self {
            control_type,
            value: record.value.unwrap_or_default(),
        })
    }
}

/// The end of a transaction in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTransactionMarker {
    /// Committed, or aborted.
    pub committed: bool,
    /// Epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: LeaderEpoch,
}

impl EndTransactionMarker {
    /// Reads the marker in `record`; `None` when it is another control record.
    ///
    /// # Errors
    /// [`BatchError::Record`] for a value that is too short or of a negative version. Value: int16
    /// version 0, int32 coordinator epoch; later versions may only add fields.
    pub fn of(record: &Record<'_>) -> Result<Option<Self>, BatchError> {
        let control = ControlRecord::of(record)?;
        let committed = match control.control_type {
            ControlType::Abort => false,
            ControlType::Commit => true,
            _ => return Ok(None),
        };
        match control.value {
            [version_high, _, a, b, c, d, ..] if *version_high < 0x80 => Ok(Some(Self {
                committed,
                coordinator_epoch: LeaderEpoch::new(i32::from_be_bytes([*a, *b, *c, *d])),
            })),
            _ => Err(BatchError::Record {
                index: 0,
                what: "not an end-transaction marker",
            }),
        }
    }

    /// The type that the record's key names.
    #[must_use]
    pub const fn control_type(self) -> ControlType {
        if self.committed {
            ControlType::Commit
        } else {
            ControlType::Abort
        }
    }

    /// The record's value.
    #[must_use]
    pub const fn value(self) -> [u8; 6] {
        let [a, b, c, d] = self.coordinator_epoch.raw().to_be_bytes();
        [0, 0, a, b, c, d]
    }
}
