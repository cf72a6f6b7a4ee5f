//! One connection to one broker: negotiation, correlation, pipelining.

mod call;
mod connection;
mod frames;
mod versions;

pub use self::call::Call;
pub use self::connection::Connection;
pub use self::versions::Versions;

pub(crate) use self::connection::{Answer, EncodedRequest};
