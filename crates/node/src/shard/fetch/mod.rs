//! Fetch: sessions, parked fetches and their wake-ups.

use highwater_disk::Disk;
use highwater_types::{Mono, Now, TopicIdPartition};

use super::{Effects, Shard};
use crate::machine::ConnId;

/// The fetch sessions and parked fetches of a shard.
#[derive(Debug)]
pub struct FetchState<D: Disk> {
    disk: std::marker::PhantomData<D>,
}

impl<D: Disk> FetchState<D> {
    /// When a parked fetch wants a tick.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        unimplemented!()
    }
}

impl<D: Disk> Shard<D> {
    /// Called once at the end of a step with the partitions of this shard that changed in it: log
    /// end, high watermark, last stable offset, role, log start, truncation, failure, removal.
    pub(crate) fn fetch_partitions_changed(
        &mut self,
        now: Now,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        let _ = (now, changed, out);
        unimplemented!()
    }

    /// Drops the parked fetches of a connection.
    pub(crate) fn fetch_connection_closed(&mut self, conn: ConnId, out: &mut Effects<D>) {
        let _ = (conn, out);
        unimplemented!()
    }

    /// Completes what is due.
    pub(crate) fn fetch_tick(&mut self, now: Now, out: &mut Effects<D>) {
        let _ = (now, out);
        unimplemented!()
    }
}
