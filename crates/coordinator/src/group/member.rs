use std::sync::Arc;

use bytes::Bytes;
use highwater_types::Millis;

use crate::InstanceId;
use crate::ids::RequestId;
use crate::request::JoinProtocol;

/// One member of a group, as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) instance_id: Option<InstanceId>,
    pub(crate) client_id: Arc<str>,
    pub(crate) client_host: Arc<str>,
    pub(crate) session_timeout: Millis,
    pub(crate) rebalance_timeout: Millis,
    /// In the member's order of preference. A loaded member has one: its group's.
    pub(crate) protocols: Vec<JoinProtocol>,
    pub(crate) assignment: Bytes,
    /// Whether it has not seen a generation yet.
    pub(crate) is_new: bool,
    /// Whether it was never told its id: it joined without one (JoinGroup up to v3).
    pub(crate) knows_no_id: bool,
    pub(crate) waiting: Waiting,
}

/// What a member waits for. The request is gone when its connection is; the member still waits
/// then, as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For nothing.
    No,
    /// For the end of the join phase.
    Join(Option<RequestId>),
    /// For its assignment.
    Sync(Option<RequestId>),
}

impl Member {
    /// What it says for `protocol`; nothing for one that it does not offer.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let offered = self
            .protocols
            .iter()
            .find(|it| it.name.as_ref() == protocol);
        offered.map_or_else(Bytes::new, |it| it.metadata.clone())
    }

    pub(crate) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    pub(crate) fn waits_for_join(&self) -> bool {
        matches!(self.waiting, Waiting::Join(_))
    }

    /// Whether its silence is nobody's fault: it waits for us. A new member may time out even so;
    /// it may have gone without a word while its join is parked.
    pub(crate) fn may_be_silent(&self) -> bool {
        !self.is_new && self.waiting != Waiting::No
    }
}
