use highwater_disk::Disk;
use highwater_protocol::Request;
use highwater_types::Now;

use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Effect, Incoming};
use crate::shard::{Effects, Shard};

/// Most groups, or keys, of one request. Far beyond any client, and it bounds what a request of
/// many short names makes us hold.
const GROUPS_MAX: usize = 100_000;

impl<D: Disk> Shard<D> {
    /// Serves the requests about groups. Each is answered exactly once.
    pub(crate) fn handle_group_request(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: Request,
        out: &mut Effects<D>,
    ) {
        let groups = group_count(&request);
        if groups > GROUPS_MAX {
            let api = request.api_key();
            let why = format!("{api} of {groups} groups");
            return refuse(incoming, &why, out);
        }
        match request {
            Request::FindCoordinator(it) => self.handle_find_coordinator(now, incoming, it, out),
            Request::JoinGroup(it) => self.handle_join_group(now, incoming, it, out),
            Request::SyncGroup(it) => self.handle_sync_group(now, incoming, it, out),
            Request::Heartbeat(it) => self.handle_group_heartbeat(now, incoming, it, out),
            Request::LeaveGroup(it) => self.handle_leave_group(now, incoming, it, out),
            Request::OffsetCommit(it) => self.handle_offset_commit(now, incoming, it, out),
            Request::OffsetFetch(it) => self.handle_offset_fetch(now, incoming, it, out),
            Request::OffsetDelete(it) => self.handle_offset_delete(now, incoming, it, out),
            Request::DescribeGroups(it) => self.handle_describe_groups(now, incoming, it, out),
            Request::ListGroups(it) => self.handle_list_groups(now, incoming, it, out),
            Request::DeleteGroups(it) => self.handle_delete_groups(now, incoming, it, out),
            other => {
                let why = format!("{} is not served here", other.api_key());
                refuse(incoming, &why, out);
            }
        }
    }
}

fn refuse<D: Disk>(incoming: &Incoming, why: &str, out: &mut Effects<D>) {
    let text = format!("connection closed: {why}");
    out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
    out.push(Effect::Answer {
        ticket: incoming.ticket,
        answer: Answer::close(),
    });
}

const fn group_count(request: &Request) -> usize {
    match request {
        Request::FindCoordinator(it) => it.coordinator_keys.len(),
        Request::OffsetFetch(it) => it.groups.len(),
        Request::DescribeGroups(it) => it.groups.len(),
        Request::DeleteGroups(it) => it.groups_names.len(),
        _ => 1,
    }
}
