//! The committed offsets of one group.

/// The committed offsets of one group, and those of its open transactions.
#[derive(Debug, Default)]
pub(crate) struct GroupOffsets {}

impl GroupOffsets {
    pub(crate) fn is_empty(&self) -> bool {
        true
    }
}
