//! Listeners, sendfile, job pools, timers: a node between real sockets and disks.
//!
//! Each machine runs on a thread of its own with a current-thread tokio runtime. A connection
//! lives on the thread of a shard (on control's, when it came by the controller listener), and all
//! that happens to it happens there: `serve` waits for the socket, `Conn` holds the bytes on their
//! way in and out, `Host` steps the machine. Other threads are told by `Mail`; blocking work goes
//! to a pool per log directory. What the machines decide is in `highwater-node`; nothing here
//! knows what a request means.

mod abort;
mod accept;
mod clock;
mod conn;
mod driver;
mod host;
mod jobs;
mod limits;
mod listener;
mod loopback;
mod mailbox;
mod memory;
mod node;
mod pace;
mod peer;
mod peers;
mod quiet;
mod run;
mod serve;
mod settings;
mod socket;
#[cfg(test)]
mod tests;

pub use crate::listener::ListenError;
pub use crate::node::{BoundNode, Ready, RunError, now, random_seed};
pub use crate::run::run_all;
pub use crate::settings::SocketSettings;
