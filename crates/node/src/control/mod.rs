//! The control machine: metadata log, quorum, controller and broker lifecycle.

use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_types::{Mono, Now};

use crate::machine::{Effect, Input, Machine};

/// The control machine of a node.
#[derive(Debug)]
pub struct Control<D: Disk> {
    image: Arc<MetadataImage>,
    locks: Vec<D::Lock>,
}

impl<D: Disk> Machine<D> for Control<D> {
    fn step(&mut self, now: Now, input: Input<D>, out: &mut Vec<Effect<D>>) {
        let _ = (now, input, out);
        unimplemented!("control")
    }

    fn next_deadline(&self) -> Option<Mono> {
        unimplemented!("control")
    }
}

impl<D: Disk> Control<D> {
    /// The committed metadata, for those who look from outside: checkers, journals, metrics.
    #[must_use]
    pub const fn image(&self) -> &Arc<MetadataImage> {
        &self.image
    }
}
