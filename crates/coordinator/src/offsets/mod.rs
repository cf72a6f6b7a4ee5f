//! Committed offsets: what of them is kept, and what requests do to them.

pub(crate) mod commit;
pub(crate) mod delete;
pub(crate) mod fetch;
mod moved;
mod pool;
mod store;

pub use self::moved::{MovedOffset, OffsetsBy, OffsetsCause, OffsetsMoved};
pub(crate) use self::pool::Pool;
pub(crate) use self::store::{CommittedOffset, GroupOffsets};
