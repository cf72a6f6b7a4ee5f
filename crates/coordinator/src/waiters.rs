use std::collections::BTreeMap;

use crate::ids::{GroupId, MemberId, RequestId};

/// The requests that wait for an answer, and as whom.
#[derive(Debug, Default)]
pub(crate) struct Waiters(BTreeMap<RequestId, (GroupId, MemberId)>);

impl Waiters {
    pub(crate) fn park(&mut self, request: RequestId, group: GroupId, member: MemberId) {
        let old = self.0.insert(request, (group, member));
        assert_eq!(old, None, "request {} waits twice", request.0);
    }

    /// The request is answered, or its answer is not wanted any more.
    pub(crate) fn remove(&mut self, request: RequestId) -> Option<(GroupId, MemberId)> {
        self.0.remove(&request)
    }
}
