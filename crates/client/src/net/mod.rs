//! One connection to one broker: the IO around `protocol::client`.

mod call;
mod connection;
mod frames;
mod pacing;

pub use self::call::Call;
pub use self::connection::Connection;
