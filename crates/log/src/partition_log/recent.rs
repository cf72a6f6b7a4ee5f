use std::collections::VecDeque;

use highwater_records::BatchHeader;
use highwater_types::Offset;

/// How many batches are remembered.
const KEPT: usize = 32;

/// Where the newest batches of the active segment lie, so that readers near the end of the log
/// need no index and no file.
#[derive(Debug, Default)]
pub(super) struct Recent {
    batches: VecDeque<RecentBatch>,
}

/// One remembered batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecentBatch {
    pub(super) base_offset: Offset,
    /// Exclusive end.
    pub(super) end_offset: Offset,
    pub(super) position: u64,
    pub(super) size: u64,
}

impl Recent {
    pub(super) fn push(&mut self, header: &BatchHeader, position: u64) {
        if self.batches.len() == KEPT {
            self.batches.pop_front();
        }
        self.batches.push_back(RecentBatch {
            base_offset: header.base_offset,
            end_offset: header.next_offset(),
            position,
            size: header.size_bytes() as u64,
        });
    }

    /// The batch that holds `offset`, if it is remembered.
    pub(super) fn find(&self, offset: Offset) -> Option<RecentBatch> {
        let at = self
            .batches
            .partition_point(|batch| batch.end_offset <= offset);
        self.batches
            .get(at)
            .filter(|batch| batch.base_offset <= offset)
            .copied()
    }

    /// The segment was closed or cut.
    pub(super) fn clear(&mut self) {
        self.batches.clear();
    }
}
