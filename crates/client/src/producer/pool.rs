use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use highwater_types::Millis;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::error::ClientError;

/// The memory of a producer (`buffer.memory`), handed out a batch at a time. Buffers of the usual
/// size are used again. Whoever finds it empty waits, first come, first served.
pub(super) struct BufferPool {
    room: Arc<Semaphore>,
    /// Buffers of `batch_size` bytes that are not in use.
    free: Mutex<Vec<Vec<u8>>>,
    batch_size: usize,
    bytes_max: usize,
    waiting: AtomicUsize,
}

/// A buffer out of the pool. Its bytes count against the pool until this is dropped.
pub(super) struct PooledBuffer {
    /// Invariant: never grows beyond what was asked for.
    buffer: Vec<u8>,
    room: Room,
    /// Whether it is one of those that are used again.
    is_usual: bool,
}

/// A part of the pool's memory. It comes back when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Room {
    pool: Arc<BufferPool>,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl BufferPool {
    pub(super) fn new(bytes_max: usize, batch_size: usize) -> Arc<Self> {
        Arc::new(Self {
            room: Arc::new(Semaphore::new(bytes_max)),
            free: Mutex::default(),
            batch_size,
            bytes_max,
            waiting: AtomicUsize::new(0),
        })
    }

    /// A buffer for a batch of `bytes`, or of the usual size if that is larger.
    pub(super) async fn take(
        self: &Arc<Self>,
        bytes: usize,
        deadline: Instant,
        max_block: Millis,
    ) -> Result<PooledBuffer, ClientError> {
        let size_bytes = bytes.max(self.batch_size);
        let Some(permits) = u32::try_from(size_bytes)
            .ok()
            .filter(|_| size_bytes <= self.bytes_max)
        else {
            let (max_bytes, key) = (self.bytes_max, "buffer.memory");
            return Err(ClientError::RecordTooLarge {
                size_bytes,
                max_bytes,
                key,
            });
        };
        let acquired = match self.room.clone().try_acquire_many_owned(permits) {
            Ok(room) => Ok(room),
            Err(_) => {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let _waits = Waits(&self.waiting);
                let wait = self.room.clone().acquire_many_owned(permits);
                timeout_at(deadline, wait)
                    .await
                    .map_err(|_| ClientError::BufferFull {
                        waited_ms: max_block.as_u64(),
                    })?
                    .map_err(|_| ClientError::ProducerClosed)
            }
        };
        let room = Room {
            pool: self.clone(),
            _permit: Arc::new(acquired?),
        };
        let reused = if size_bytes == self.batch_size {
            self.lock_free().pop()
        } else {
            None
        };
        let buffer = reused.unwrap_or_else(|| Vec::with_capacity(size_bytes));
        Ok(PooledBuffer {
            is_usual: buffer.capacity() == self.batch_size,
            buffer,
            room,
        })
    }

    /// Whether somebody waits for memory: then nothing should linger.
    pub(super) fn is_exhausted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Bytes that are not handed out.
    #[cfg(test)]
    pub(super) fn room_bytes(&self) -> usize {
        self.room.available_permits()
    }

    fn lock_free(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Room {
    /// A buffer without memory of its own, for a part of what this room was taken for.
    pub(super) fn buffer(&self) -> PooledBuffer {
        PooledBuffer {
            buffer: Vec::new(),
            room: self.clone(),
            is_usual: false,
        }
    }
}

impl PooledBuffer {
    /// What its bytes count against.
    pub(super) fn room(&self) -> Room {
        self.room.clone()
    }

    /// Lends the buffer out to be written to; [`PooledBuffer::put`] gives it back.
    pub(super) fn borrow(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    pub(super) fn put(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let pool = &self.room.pool;
        if self.is_usual && buffer.capacity() == pool.batch_size {
            buffer.clear();
            pool.lock_free().push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(30)
    }

    #[tokio::test]
    async fn memory_is_bounded_and_used_again() {
        let pool = BufferPool::new(1000, 400);
        let block = Millis::new(30);
        let mut first = pool.take(10, soon(), block).await.unwrap();
        let second = pool.take(400, soon(), block).await.unwrap();
        assert_eq!(pool.room_bytes(), 200);
        let full = pool.take(1, soon(), block).await.err();
        assert_eq!(full, Some(ClientError::BufferFull { waited_ms: 30 }));
        first.bytes_mut().extend_from_slice(b"old");
        let at = first.as_ref().as_ptr();
        drop(first);
        let third = pool.take(1, soon(), block).await.unwrap();
        assert!(third.as_ref().is_empty());
        assert_eq!(third.as_ref().as_ptr(), at, "the buffer is used again");
        drop((second, third));
        assert_eq!(pool.room_bytes(), 1000);
        let large = pool.take(1001, soon(), block).await.err();
        assert!(matches!(large, Some(ClientError::RecordTooLarge { .. })));
        assert!(!pool.is_exhausted());
    }

    /// CVE-2026-35554: a buffer that was used again while its request was still on its way.
    #[tokio::test]
    async fn b_48_a_buffer_comes_back_when_nobody_holds_its_bytes_any_more() {
        let pool = BufferPool::new(100, 100);
        let mut buffer = pool.take(1, soon(), Millis::new(30)).await.unwrap();
        buffer.bytes_mut().push(1);
        let batch = bytes::Bytes::from_owner(buffer);
        let on_its_way = batch.slice(..);
        drop(batch);
        assert_eq!(pool.room_bytes(), 0);
        assert!(pool.lock_free().is_empty());
        drop(on_its_way);
        assert_eq!(pool.room_bytes(), 100);
        assert_eq!(pool.lock_free().len(), 1);
    }

    #[tokio::test]
    async fn who_waits_gets_what_comes_back() {
        let pool = BufferPool::new(100, 100);
        let held = pool.take(1, soon(), Millis::new(30)).await.unwrap();
        let waiter = tokio::spawn({
            let pool = pool.clone();
            async move {
                let far = Instant::now() + Duration::from_secs(20);
                pool.take(1, far, Millis::new(20_000)).await.is_ok()
            }
        });
        while !pool.is_exhausted() {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert!(waiter.await.unwrap());
    }
}
