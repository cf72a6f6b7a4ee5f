//! Members of groups, through the public interface, with a log in memory that can refuse.

mod joining;
mod leaving;
mod limits;
mod random;
mod rebalancing;
mod reloading;
mod sessions;
mod statics;
mod support;
mod syncing;
