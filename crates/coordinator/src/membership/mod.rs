//! What members do: join, sync, heartbeat, leave; and what their silence does.

mod describe;
mod handle;
mod heartbeat;
mod join;
mod leave;
mod load;
mod rebalance;
mod sessions;
mod static_member;
mod sync;

pub(crate) use self::handle::Asked;
