use highwater_types::{LeaderEpoch, NodeId, Offset};

use crate::IsrProposal;

/// What a [`crate::Replica`] wants its owner to do or to know. Performed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The replica leads from now on, in a new leader epoch: the owner notes the epoch at
    /// `start_offset` in the log's epoch history, also when nothing is written in it.
    Leads {
        /// The new leader epoch.
        epoch: LeaderEpoch,
        /// The log end offset at this moment.
        start_offset: Offset,
    },
    /// Leadership is lost: whoever waits for this leader is refused with
    /// NOT_LEADER_OR_FOLLOWER, also if it is regained in the same step.
    LeadsNoMore {
        /// The epoch that ended.
        epoch: LeaderEpoch,
    },
    /// The replica follows from now on.
    Follows {
        /// Whom; `None` while the partition has no leader.
        leader: Option<NodeId>,
        /// The epoch of that leader.
        epoch: LeaderEpoch,
    },
    /// The high watermark rose.
    HighWatermark {
        /// Before.
        from: Offset,
        /// After.
        to: Offset,
    },
    /// The controller is to be asked for another ISR (AlterPartition). The owner gives its answer
    /// to `handle_isr_answer`; a request that was lost is sent again by the owner.
    ProposeIsr(Box<IsrProposal>),
    /// The committed ISR is another one.
    IsrChanged {
        /// Before.
        from: Vec<NodeId>,
        /// After.
        to: Vec<NodeId>,
    },
    /// A sync is due: the owner starts one, or lets the one in flight be followed by another, and
    /// reports with `handle_flushed`.
    Flush,
    /// Records below the high watermark are being cut off. Comes before anything changes.
    DataLoss {
        /// First lost offset.
        from: Offset,
        /// Exclusive end of what was lost for certain: the high watermark before.
        to: Offset,
    },
}
