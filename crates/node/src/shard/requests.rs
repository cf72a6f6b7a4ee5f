use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_types::Now;

use super::{Effects, Shard};
use crate::machine::{Incoming, PeerError, Token};

impl<D: Disk> Shard<D> {
    /// Serves every request but Produce: owned by the read side. Each is answered exactly once.
    pub(crate) fn handle_other_request(
        &mut self,
        now: Now,
        incoming: Incoming,
        out: &mut Effects<D>,
    ) {
        let _ = (now, incoming, out);
        unimplemented!()
    }

    /// Takes the answer of a request that this shard forwarded.
    pub(crate) fn handle_peer_answer(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        let _ = (now, token, result, out);
        unimplemented!()
    }
}
