use std::fmt;
use std::sync::Arc;

use highwater_types::{Offset, PartitionIndex, TopicName};

use crate::MemberId;
use crate::coordinator::MemberCaller;
use crate::group::Group;
use crate::happening::GroupEvent;
use crate::step::Step;

/// How many partitions an [`OffsetsMoved`] names.
const NAMED_MAX: usize = 8;

/// Committed offsets of a group moved or are gone. `Display` says it in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetsMoved {
    /// What happened to them.
    pub cause: OffsetsCause,
    /// By whom.
    pub by: OffsetsBy,
    /// How many partitions.
    pub partitions: usize,
    /// The first of them, at most eight; where they moved back, those come first.
    pub named: Vec<MovedOffset>,
}

/// What happened to committed offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetsCause {
    /// Committed, none of them backwards. Every usual consumer does this all the time.
    Committed,
    /// Committed, some of them backwards: reset, or by a consumer that reads again.
    MovedBack,
    /// Deleted by request.
    Deleted,
    /// Deleted together with their group, by request.
    GroupDeleted,
    /// Older than the retention, and not in use.
    Expired,
    /// Their topic is gone.
    TopicDeleted,
}

/// Who moved offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OffsetsBy {
    /// A client: a member of the group, or with an empty member id somebody else.
    Client {
        /// The member.
        member_id: MemberId,
        /// Its client id.
        client_id: Arc<str>,
        /// Where it is.
        client_host: Arc<str>,
    },
    /// The coordinator itself.
    Coordinator,
}

/// One offset that moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedOffset {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: PartitionIndex,
    /// What was committed before.
    pub from: Option<Offset>,
    /// What is committed now.
    pub to: Option<Offset>,
}

impl OffsetsMoved {
    /// Whether usual consumers do this all the time, so that only a trace should hold it.
    #[must_use]
    pub const fn is_usual(&self) -> bool {
        matches!(self.cause, OffsetsCause::Committed)
    }

    /// A commit of `moves`.
    pub(crate) fn committed(by: OffsetsBy, mut moves: Vec<MovedOffset>) -> Self {
        // Stable: within both halves the order of the request remains.
        moves.sort_by_key(|it| !it.is_back());
        let is_back = moves.first().is_some_and(MovedOffset::is_back);
        let cause = if is_back {
            OffsetsCause::MovedBack
        } else {
            OffsetsCause::Committed
        };
        Self::new(cause, by, moves)
    }

    pub(crate) fn new(cause: OffsetsCause, by: OffsetsBy, mut moves: Vec<MovedOffset>) -> Self {
        let partitions = moves.len();
        moves.truncate(NAMED_MAX);
        moves.shrink_to_fit();
        Self {
            cause,
            by,
            partitions,
            named: moves,
        }
    }
}

impl OffsetsBy {
    pub(crate) fn client(member_id: MemberId, caller: &MemberCaller) -> Self {
        Self::Client {
            member_id,
            client_id: Arc::clone(&caller.client_id),
            client_host: Arc::clone(&caller.client_host),
        }
    }
}

/// Tells the journal; describe answers hear only of what is not usual.
pub(crate) fn tell(step: &mut Step<'_>, group: &mut Group, moved: OffsetsMoved) {
    if moved.is_usual() {
        step.journal(group, GroupEvent::Offsets(moved));
    } else {
        step.happened(group, GroupEvent::Offsets(moved));
    }
}

impl MovedOffset {
    /// An offset that is gone.
    pub(crate) fn gone(topic: &TopicName, partition: PartitionIndex, from: Offset) -> Self {
        Self {
            topic: topic.clone(),
            partition,
            from: Some(from),
            to: None,
        }
    }

    fn is_back(&self) -> bool {
        matches!((self.from, self.to), (Some(from), Some(to)) if to < from)
    }
}

impl fmt::Display for OffsetsMoved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "offsets of {} partitions {}",
            self.partitions, self.cause
        )?;
        write!(f, " by {}: ", self.by)?;
        for (index, moved) in self.named.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{moved}")?;
        }
        if self.named.len() < self.partitions {
            f.write_str(", ...")?;
        }
        Ok(())
    }
}

impl fmt::Display for OffsetsCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Committed => "committed",
            Self::MovedBack => "moved back",
            Self::Deleted => "deleted",
            Self::GroupDeleted => "deleted with the group",
            Self::Expired => "expired",
            Self::TopicDeleted => "deleted with their topic",
        })
    }
}

impl fmt::Display for OffsetsBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client {
                member_id,
                client_id,
                client_host,
            } => {
                if !member_id.is_empty() {
                    write!(f, "member {member_id}, ")?;
                }
                write!(f, "client '{client_id}' at {client_host}")
            }
            Self::Coordinator => f.write_str("the coordinator"),
        }
    }
}

impl fmt::Display for MovedOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} ", self.topic, self.partition)?;
        match (self.from, self.to) {
            (Some(from), Some(to)) => write!(f, "{from} -> {to}"),
            (None, Some(to)) => write!(f, "-> {to}"),
            (Some(from), None) => write!(f, "was {from}"),
            (None, None) => f.write_str("was none"),
        }
    }
}
