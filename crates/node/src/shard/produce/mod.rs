//! Produce: rows of a request go to the owners of their partitions and are joined here.

use highwater_disk::Disk;
use highwater_types::{Now, TopicIdPartition};

use super::{Effects, Shard};
use crate::machine::ConnId;

/// The produce requests of a shard's connections that are not answered yet, and the appends that
/// wait for a high watermark.
#[derive(Debug, Default)]
pub struct ProduceState {}

/// Appends for another shard, and their outcomes on the way back.
#[derive(Debug)]
pub enum ProducePart {}

impl<D: Disk> Shard<D> {
    pub(crate) fn produce_partitions_changed(
        &mut self,
        now: Now,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        let _ = (now, changed, out);
        unimplemented!()
    }

    pub(crate) fn produce_connection_closed(&mut self, conn: ConnId) {
        let _ = conn;
        unimplemented!()
    }
}
