use highwater_types::Offset;

use crate::answer::GroupAnswer;
use crate::happening::GroupHappening;
use crate::ids::RequestId;

/// What a [`crate::Coordinator`] wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// An answer, to be sent once the high watermark of the coordinator's partition is at or past
    /// `after`.
    Answer {
        /// To which request.
        to: RequestId,
        /// Exclusive end of the newest record that the answer depends on; [`Offset::ZERO`]: none.
        after: Offset,
        /// The answer.
        answer: GroupAnswer,
    },
    /// Something for the journal.
    Happened(GroupHappening),
}
