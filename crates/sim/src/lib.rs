//! The world around nodes: clocks, network, disks, clients, checkers, scenarios, seeds.
//!
//! Nothing here models a broker: the world drives the very machines of `highwater-node` that the
//! server drives, and only clocks, network and disks are swapped. A run is a function of its seed.

mod check;
mod client;
mod random;
pub mod scenario;
mod seed;
mod setup;
mod trace;
mod world;

pub use crate::seed::{SeedReport, run_cluster_seed, run_seed};
pub use crate::trace::Trace;
