//! The codec runtime of generated messages: what one field looks like on the wire.
//!
//! Everything that comes from outside is bounded before memory is reserved for it: lengths and
//! counts by the bytes that are left, the sum of all array elements by [`Reader`]'s budget. How
//! deep structs nest is fixed by the schemas (nothing recurses), so hostile bytes cannot choose it.

mod error;
mod message;
mod reader;
mod values;
mod writer;

pub use self::error::{DecodeError, EncodeError};
pub use self::message::{Message, MessageInfo, Recode, RecodeError};
pub use self::reader::{Reader, STRING_BYTES_MAX};
pub use self::values::Wire;
pub use self::writer::{TagWriter, Writer};
