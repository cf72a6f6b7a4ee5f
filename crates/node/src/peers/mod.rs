//! A node's connections to other nodes, without their sockets.

mod link;
mod reader;

pub use self::link::{LinkError, LinkOutput, PeerLink};
pub use self::reader::{AnswerReader, FrameTooLong};
