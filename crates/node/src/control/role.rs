use highwater_disk::Disk;
use highwater_types::{Mono, Offset};

use super::leader::Leader;
use super::metadata_log::MetadataLog;
use super::observer::Observer;
use crate::machine::Ticket;

/// A node's part in the metadata quorum. It has the metadata log, and says how far it is committed.
///
/// Legal transitions: each of the first two -> `Closed`. A node leads or observes for all its life:
/// there is one voter.
#[derive(Debug)]
pub(super) enum QuorumRole<D: Disk> {
    /// The one voter: it leads, and with that it is the active controller.
    Leader(Box<Leader<D>>),
    /// A broker that follows the metadata log.
    Observer(Box<Observer<D>>),
    /// The metadata log is closed, or is being closed.
    Closed,
}

impl<D: Disk> QuorumRole<D> {
    pub(super) const fn leader(&self) -> Option<&Leader<D>> {
        match self {
            Self::Leader(leader) => Some(leader),
            Self::Observer(_) | Self::Closed => None,
        }
    }

    pub(super) const fn leader_mut(&mut self) -> Option<&mut Leader<D>> {
        match self {
            Self::Leader(leader) => Some(leader),
            Self::Observer(_) | Self::Closed => None,
        }
    }

    pub(super) const fn observer(&self) -> Option<&Observer<D>> {
        match self {
            Self::Observer(observer) => Some(observer),
            Self::Leader(_) | Self::Closed => None,
        }
    }

    pub(super) const fn observer_mut(&mut self) -> Option<&mut Observer<D>> {
        match self {
            Self::Observer(observer) => Some(observer),
            Self::Leader(_) | Self::Closed => None,
        }
    }

    pub(super) const fn log(&self) -> Option<&MetadataLog<D>> {
        match self {
            Self::Leader(leader) => Some(&leader.log),
            Self::Observer(observer) => Some(&observer.log),
            Self::Closed => None,
        }
    }

    pub(super) const fn log_mut(&mut self) -> Option<&mut MetadataLog<D>> {
        match self {
            Self::Leader(leader) => Some(&mut leader.log),
            Self::Observer(observer) => Some(&mut observer.log),
            Self::Closed => None,
        }
    }

    /// Exclusive: all metadata below it is committed; `None` until that is known.
    pub(super) fn high_watermark(&self) -> Option<Offset> {
        match self {
            Self::Leader(leader) => leader.high_watermark(),
            Self::Observer(observer) => observer.high_watermark(),
            Self::Closed => None,
        }
    }

    /// When the role wants to do something by itself.
    pub(super) fn next_deadline(&self, committed: Offset) -> Option<Mono> {
        match self {
            Self::Leader(leader) => leader.next_deadline(),
            Self::Observer(observer) => observer.next_deadline(committed),
            Self::Closed => None,
        }
    }

    /// Whether somebody waits for a commit.
    pub(super) fn is_waited_for(&self) -> bool {
        self.leader().is_some_and(Leader::is_waited_for)
    }

    /// Everybody who waits, when nothing will be committed any more.
    pub(super) fn abandon(&mut self) -> Vec<Ticket> {
        self.leader_mut().map(Leader::abandon).unwrap_or_default()
    }

    /// Ends the role, and gives away its log.
    pub(super) fn close(&mut self) -> Option<MetadataLog<D>> {
        match std::mem::replace(self, Self::Closed) {
            Self::Leader(leader) => Some(leader.log),
            Self::Observer(observer) => Some(observer.log),
            Self::Closed => None,
        }
    }
}
