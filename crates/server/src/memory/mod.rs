//! What bytes from outside may cost: the budget over all connections, and recycled read buffers.

mod inbound;
mod pool;

pub(crate) use inbound::{ConnShare, FEW_BYTES, Held, InboundMemory, Turn};
pub(crate) use pool::{BufferPool, ReadBuffer, STANDARD_BYTES};
