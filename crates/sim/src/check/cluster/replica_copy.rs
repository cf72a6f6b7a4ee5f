//! One replica's log as it was last seen on its disk, and what its broker said then.

use highwater_types::Offset;

use crate::check::marks::Marks;
use crate::check::replicas::LastSeen;

/// One replica.
#[derive(Debug, Default)]
pub(super) struct ReplicaCopy {
    /// The process that it was last seen in.
    pub(super) life: u32,
    /// Whether that process runs.
    pub(super) runs: bool,
    pub(super) marks: Marks,
    /// What it last said.
    pub(super) seen: Option<LastSeen>,
    /// Up to here it was compared with the committed log, and is the same.
    pub(super) verified: Offset,
    pub(super) disk: DiskState,
    /// Whether its process ended since it was last let into the ISR.
    pub(super) ended_since_isr: bool,
    /// Whether the controller knows that the broker stopped, since its disk may have lost records.
    pub(super) is_registered: bool,
}

/// What became of the disk below a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DiskState {
    /// It holds what was written.
    #[default]
    Whole,
    /// It may have lost what was not flushed; nobody has looked yet.
    MaybeLost,
    /// Its log was seen again, and the controller does not know of that start yet.
    Reopened,
    /// It lost records, and the controller knows that the broker stopped uncleanly.
    Lost,
}

impl ReplicaCopy {
    /// Whether its log is what it is taken for: nothing was lost that the controller could not
    /// know of yet.
    pub(super) const fn counts(&self) -> bool {
        matches!(self.disk, DiskState::Whole | DiskState::Lost)
    }

    /// The first offset that it has to hold.
    pub(super) fn log_start(&self) -> Offset {
        let seen = self.seen.as_ref();
        seen.map_or(Offset::ZERO, |it| it.log_start_offset)
    }

    /// Compares it with the committed log up to `up_to`, and gives up to where it is the same.
    pub(super) fn verify(&mut self, committed: &Marks, up_to: Offset) -> Offset {
        let from = self.verified.max(self.log_start());
        if from < up_to {
            self.verified = self.marks.holds(committed, from, up_to);
        }
        self.verified.max(self.log_start())
    }

    /// Whether its disk lost records that are committed, or may have, and that it does not have
    /// again.
    pub(super) fn lacks_by_loss(&mut self, committed: &Marks, end: Offset) -> bool {
        match self.disk {
            DiskState::Whole => false,
            DiskState::MaybeLost => {
                let flushed = self.seen.as_ref().map(|it| it.flushed_offset);
                flushed.is_none_or(|flushed| flushed < end)
            }
            DiskState::Reopened => self.verify(committed, end) < end,
            DiskState::Lost => {
                let lacks = self.verify(committed, end) < end;
                if !lacks {
                    self.disk = DiskState::Whole;
                }
                lacks
            }
        }
    }
}
