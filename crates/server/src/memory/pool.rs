use std::sync::{Arc, Mutex, PoisonError};

use super::inbound::USUAL_BYTES;
use super::{ConnShare, FEW_BYTES, Held, InboundMemory, Turn};

/// Capacity of a usual read buffer in bytes: a produce request with a batch of 64 KiB fits.
pub(crate) const STANDARD_BYTES: usize = 128 * 1024;

const _: () = assert!(STANDARD_BYTES as u64 <= USUAL_BYTES);

/// A buffer of less than this is not worth recycling, in bytes.
const RECYCLED_BYTES_MIN: usize = 16 * 1024;

/// Recycled read buffers of one machine's connections.
///
/// What lies in the pool counts for no connection; it is bounded by `idle_bytes_max`.
#[derive(Debug)]
pub(crate) struct BufferPool {
    memory: Arc<InboundMemory>,
    idle: Mutex<Idle>,
    idle_bytes_max: usize,
}

#[derive(Debug, Default)]
struct Idle {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    /// A pool that keeps at most `idle_bytes_max` bytes of unused buffers.
    pub(crate) fn new(memory: Arc<InboundMemory>, idle_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            memory,
            idle: Mutex::default(),
            idle_bytes_max,
        })
    }

    /// The budget that the pool's buffers are drawn from.
    pub(crate) fn memory(&self) -> &Arc<InboundMemory> {
        &self.memory
    }

    /// An empty buffer with room for at least `capacity` bytes, held by the connection of `share`.
    /// `None` when the budget is used up.
    pub(crate) fn take(
        self: &Arc<Self>,
        share: &Arc<ConnShare>,
        capacity: usize,
        turn: Turn,
    ) -> Option<ReadBuffer> {
        self.take_if(capacity, |bytes| {
            self.memory.hold(share, bytes as u64, turn)
        })
    }

    /// The same, but never beyond the budget.
    pub(crate) fn take_within(
        self: &Arc<Self>,
        share: &Arc<ConnShare>,
        capacity: usize,
    ) -> Option<ReadBuffer> {
        self.take_if(capacity, |bytes| {
            self.memory.hold_within(share, bytes as u64)
        })
    }

    fn take_if(
        self: &Arc<Self>,
        capacity: usize,
        held: impl Fn(usize) -> Option<Held>,
    ) -> Option<ReadBuffer> {
        let pool = Arc::clone(self);
        if let Some(bytes) = self.recycled(capacity) {
            if let Some(held) = held(bytes.capacity()) {
                return Some(ReadBuffer { bytes, held, pool });
            }
            // It is larger than asked for: a smaller one may do.
            self.recycle(bytes);
        }
        let held = held(capacity)?;
        let bytes = Vec::with_capacity(capacity);
        Some(ReadBuffer { bytes, held, pool })
    }

    /// A small buffer, even when the budget is used up.
    pub(crate) fn take_few(self: &Arc<Self>, share: &Arc<ConnShare>) -> ReadBuffer {
        ReadBuffer {
            bytes: Vec::with_capacity(FEW_BYTES),
            held: self.memory.hold_few(share, FEW_BYTES as u64),
            pool: Arc::clone(self),
        }
    }

    /// A copy of `bytes` in a buffer of its own size. `None` when the budget is used up and they
    /// are not few: nobody draws beyond it for a copy.
    pub(crate) fn copy(
        self: &Arc<Self>,
        share: &Arc<ConnShare>,
        bytes: &[u8],
    ) -> Option<ReadBuffer> {
        let capacity = bytes.len().next_power_of_two().max(64);
        let held = if capacity <= FEW_BYTES {
            self.memory.hold_few(share, capacity as u64)
        } else {
            self.memory.hold_within(share, capacity as u64)?
        };
        let mut copy = Vec::with_capacity(capacity);
        copy.extend_from_slice(bytes);
        Some(ReadBuffer {
            bytes: copy,
            held,
            pool: Arc::clone(self),
        })
    }

    /// Frees the unused buffers.
    pub(crate) fn shrink(&self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Idle::default();
    }

    /// The smallest unused buffer that is big enough, but not wastefully big.
    fn recycled(&self, capacity: usize) -> Option<Vec<u8>> {
        if capacity < RECYCLED_BYTES_MIN {
            return None;
        }
        let fits = capacity..=capacity.saturating_mul(4);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, _) = idle
            .buffers
            .iter()
            .enumerate()
            .filter(|(_, buffer)| fits.contains(&buffer.capacity()))
            .min_by_key(|(_, buffer)| buffer.capacity())?;
        let buffer = idle.buffers.swap_remove(at);
        idle.bytes -= buffer.capacity();
        Some(buffer)
    }

    fn recycle(&self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity < RECYCLED_BYTES_MIN {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.bytes + capacity <= self.idle_bytes_max {
            buffer.clear();
            idle.bytes += capacity;
            idle.buffers.push(buffer);
        }
    }
}

/// Received bytes. Goes back to its pool, and its share to the budget, when the last slice of it
/// is dropped.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    held: Held,
    pool: Arc<BufferPool>,
}

impl ReadBuffer {
    /// The received bytes, to append to. Never beyond [`ReadBuffer::capacity`].
    pub(crate) const fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes that fit in all.
    pub(crate) const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for `capacity` bytes in all. Whether the budget allowed it.
    pub(crate) fn grow_to(&mut self, capacity: usize) -> bool {
        let before = self.bytes.capacity();
        if capacity <= before {
            return true;
        }
        if let Some(mut bigger) = self.pool.recycled(capacity) {
            let more = bigger.capacity().saturating_sub(before);
            if !self.held.grow(more as u64, Turn::Large) {
                self.pool.recycle(bigger);
                return false;
            }
            bigger.extend_from_slice(&self.bytes);
            self.pool
                .recycle(std::mem::replace(&mut self.bytes, bigger));
            return true;
        }
        if !self.held.grow((capacity - before) as u64, Turn::Large) {
            return false;
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        true
    }
}

impl AsRef<[u8]> for ReadBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.pool.recycle(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(limit: u64) -> Arc<BufferPool> {
        BufferPool::new(InboundMemory::new(limit), 1 << 20)
    }

    #[test]
    fn a_buffer_is_used_again() {
        let (pool, share) = (pool(1 << 20), Arc::default());
        let mut first = pool
            .take(&share, STANDARD_BYTES, Turn::Usual)
            .expect("memory");
        first.bytes_mut().extend_from_slice(b"abc");
        let place = first.as_ref().as_ptr();
        drop(bytes::Bytes::from_owner(first).slice(1..));
        assert_eq!(pool.memory().used(), 0);
        let second = pool
            .take(&share, STANDARD_BYTES, Turn::Usual)
            .expect("memory");
        assert_eq!(second.as_ref().as_ptr(), place);
        assert!(second.as_ref().is_empty());
        assert_eq!(pool.memory().used(), STANDARD_BYTES as u64);
    }

    #[test]
    fn growing_keeps_the_bytes_and_is_charged() {
        let (pool, share) = (pool(1 << 20), Arc::default());
        let mut buffer = pool.take(&share, 32, Turn::Large).expect("memory");
        buffer.bytes_mut().extend_from_slice(b"abcdef");
        assert!(buffer.grow_to(100_000));
        assert!(buffer.capacity() >= 100_000);
        assert_eq!(buffer.as_ref(), b"abcdef");
        assert!(pool.memory().used() >= 100_000);
    }

    #[test]
    fn unused_buffers_are_bounded() {
        let pool = BufferPool::new(InboundMemory::new(1 << 30), 300_000);
        let share = Arc::default();
        let taken: Vec<_> = (0..10)
            .filter_map(|_| pool.take(&share, STANDARD_BYTES, Turn::Usual))
            .collect();
        drop(taken);
        assert!(pool.idle.lock().expect("lock").bytes <= 300_000);
        pool.shrink();
        assert_eq!(pool.idle.lock().expect("lock").bytes, 0);
    }
}
