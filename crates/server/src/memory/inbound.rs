use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// What a connection that holds nothing may hold although the budget is used up, in bytes: a
/// usual request that carries no records fits.
pub(crate) const FEW_BYTES: usize = 4 * 1024;

/// What a usual request needs at the most, in bytes.
pub(crate) const USUAL_BYTES: u64 = 128 * 1024;

/// The turns to draw beyond the limit that a connection may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Also the one of those whose whole frame is known to need no more than [`USUAL_BYTES`].
    Usual,
    /// The one of all others.
    Large,
}

/// The memory that read buffers of all connections may hold together, in bytes.
///
/// A connection that gets nothing pauses its reads; it is woken when memory comes back. So that
/// half-received frames can never block each other for good, one connection at a time may draw
/// beyond the limit until its frame is whole, and one more whose frame needs no more than
/// [`USUAL_BYTES`], so that large frames do not hold up usual ones. The total stays below the
/// limit plus one frame, [`USUAL_BYTES`], and [`FEW_BYTES`] for each connection, so that nothing
/// starves a small request.
#[derive(Debug)]
pub(crate) struct InboundMemory {
    limit: u64,
    used: AtomicU64,
    /// Whether somebody draws beyond the limit now.
    overdrawn: AtomicBool,
    /// The same, for the one that holds little.
    overdrawn_usual: AtomicBool,
    /// Whether `waiters` may hold somebody: spares the lock on the usual way.
    has_waiters: AtomicBool,
    waiters: Mutex<Vec<Arc<Notify>>>,
}

impl InboundMemory {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicU64::new(0),
            overdrawn: AtomicBool::new(false),
            overdrawn_usual: AtomicBool::new(false),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::new(Vec::new()),
        })
    }

    /// Bytes held now.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` for a connection. `None` when the budget is used up: the caller then
    /// [waits](Self::wait).
    pub(crate) fn hold(
        self: &Arc<Self>,
        share: &Arc<ConnShare>,
        bytes: u64,
        turn: Turn,
    ) -> Option<Held> {
        let (memory, share) = (Arc::clone(self), Arc::clone(share));
        let mut held = Held {
            memory,
            share,
            bytes: 0,
            overdraws: Overdraws::default(),
        };
        held.grow(bytes, turn).then_some(held)
    }

    /// The same, but never beyond the limit.
    pub(crate) fn hold_within(
        self: &Arc<Self>,
        share: &Arc<ConnShare>,
        bytes: u64,
    ) -> Option<Held> {
        self.take(bytes).then(|| self.taken(share, bytes))
    }

    /// Takes at most [`FEW_BYTES`], even when the budget is used up.
    pub(crate) fn hold_few(self: &Arc<Self>, share: &Arc<ConnShare>, bytes: u64) -> Held {
        assert!(bytes <= FEW_BYTES as u64, "{bytes} bytes are not few");
        self.used.fetch_add(bytes, Ordering::SeqCst);
        self.taken(share, bytes)
    }

    fn taken(self: &Arc<Self>, share: &Arc<ConnShare>, bytes: u64) -> Held {
        share.used.fetch_add(bytes, Ordering::SeqCst);
        Held {
            memory: Arc::clone(self),
            share: Arc::clone(share),
            bytes,
            overdraws: Overdraws::default(),
        }
    }

    /// Whether a connection waits for memory.
    pub(crate) fn is_short(&self) -> bool {
        self.has_waiters.load(Ordering::SeqCst)
    }

    /// Has the connection of `share`, which was refused, woken when memory comes back.
    pub(crate) fn wait(&self, share: &ConnShare) {
        let waiter = &share.wake;
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiters.iter().any(|known| Arc::ptr_eq(known, waiter)) {
            waiters.push(Arc::clone(waiter));
        }
        self.has_waiters.store(true, Ordering::SeqCst);
        drop(waiters);
        // Memory may have come back between the refusal and this registration.
        let refused = share.refused.load(Ordering::SeqCst);
        let would_fit = self.used.load(Ordering::SeqCst).saturating_add(refused) <= self.limit;
        let may_overdraw = !self.overdrawn.load(Ordering::SeqCst)
            || share.refused_usual.load(Ordering::SeqCst)
                && !self.overdrawn_usual.load(Ordering::SeqCst);
        if would_fit || may_overdraw {
            self.wake_waiters();
        }
    }

    fn take(&self, bytes: u64) -> bool {
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= self.limit)
            })
            .is_ok()
    }

    fn give_back(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::SeqCst);
        assert!(before >= bytes, "gave back {bytes} of {before} bytes held");
        if self.has_waiters.load(Ordering::SeqCst) {
            self.wake_waiters();
        }
    }

    fn wake_waiters(&self) {
        self.has_waiters.store(false, Ordering::SeqCst);
        let waiters =
            std::mem::take(&mut *self.waiters.lock().unwrap_or_else(PoisonError::into_inner));
        for waiter in waiters {
            waiter.notify_one();
        }
    }
}

/// What one connection holds of the budget, and how it is woken when that shrinks.
#[derive(Debug, Default)]
pub(crate) struct ConnShare {
    used: AtomicU64,
    /// Bytes that the budget refused last.
    refused: AtomicU64,
    /// Whether it may take the turn for usual frames.
    refused_usual: AtomicBool,
    paused: AtomicBool,
    wake: Arc<Notify>,
}

impl ConnShare {
    /// Bytes held now.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// Asks for a wake-up at the next time that the connection gives memory back.
    pub(crate) fn pause(&self) {
        self.paused.store(true, Ordering::SeqCst);
    }

    /// Wakes the connection's task.
    pub(crate) const fn wake(&self) -> &Arc<Notify> {
        &self.wake
    }
}

/// A part of the budget that one connection holds, given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<InboundMemory>,
    share: Arc<ConnShare>,
    bytes: u64,
    overdraws: Overdraws,
}

/// Which of the turns to draw beyond the limit a connection has.
#[derive(Debug, Default)]
struct Overdraws {
    any: bool,
    usual: bool,
}

impl Held {
    /// Takes `more` bytes on top, beyond the limit when nobody else does so. Whether it got them.
    pub(crate) fn grow(&mut self, more: u64, turn: Turn) -> bool {
        if !self.memory.take(more) {
            let usual = turn == Turn::Usual && self.bytes.saturating_add(more) <= USUAL_BYTES;
            if !self.may_overdraw(usual) {
                self.share.refused.store(more, Ordering::SeqCst);
                self.share.refused_usual.store(usual, Ordering::SeqCst);
                return false;
            }
            self.memory.used.fetch_add(more, Ordering::SeqCst);
        }
        self.share.used.fetch_add(more, Ordering::SeqCst);
        self.bytes += more;
        true
    }

    fn may_overdraw(&mut self, is_usual: bool) -> bool {
        let mine = &mut self.overdraws;
        if is_usual {
            mine.usual = mine.usual || !self.memory.overdrawn_usual.swap(true, Ordering::SeqCst);
            if mine.usual {
                return true;
            }
        }
        mine.any = mine.any || !self.memory.overdrawn.swap(true, Ordering::SeqCst);
        mine.any
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.overdraws.any {
            self.memory.overdrawn.store(false, Ordering::SeqCst);
        }
        if self.overdraws.usual {
            self.memory.overdrawn_usual.store(false, Ordering::SeqCst);
        }
        self.memory.give_back(self.bytes);
        self.share.used.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.share.paused.swap(false, Ordering::SeqCst) {
            self.share.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn re_01_only_one_may_draw_beyond_the_limit() {
        let limit = 10 * USUAL_BYTES;
        let (memory, share) = (InboundMemory::new(limit), Arc::default());
        let first = memory
            .hold(&share, limit - 10, Turn::Large)
            .expect("within the limit");
        let large = 2 * USUAL_BYTES;
        let mut over = memory
            .hold(&share, large, Turn::Large)
            .expect("the one overdraft");
        assert!(memory.hold(&share, large, Turn::Large).is_none());
        assert!(over.grow(10, Turn::Large), "who overdraws may go on");
        assert_eq!(memory.used(), limit + large);
        drop(over);
        assert_eq!(memory.used(), limit - 10);
        drop(first);
        assert_eq!((memory.used(), share.used()), (0, 0));
        assert!(memory.hold(&share, limit, Turn::Large).is_some());
    }

    #[test]
    fn re_01_a_usual_request_passes_large_ones_that_stand_still() {
        let limit = 10 * USUAL_BYTES;
        let (memory, share) = (InboundMemory::new(limit), Arc::default());
        let first = memory
            .hold(&share, limit, Turn::Large)
            .expect("within the limit");
        let over = memory
            .hold(&share, limit, Turn::Large)
            .expect("the one overdraft");
        let mut usual = memory
            .hold(&share, USUAL_BYTES, Turn::Usual)
            .expect("its own turn");
        assert!(
            memory.hold(&share, 1, Turn::Usual).is_none(),
            "one at a time"
        );
        assert!(
            !usual.grow(1, Turn::Usual),
            "it is none of the usual any more"
        );
        drop(usual);
        assert!(
            memory.hold(&share, 1, Turn::Large).is_none(),
            "not known to be usual"
        );
        let small = memory.hold(&share, 1, Turn::Usual);
        assert!(small.is_some());
        assert_eq!(memory.used(), 2 * limit + 1);
        drop((small, first, over));
        assert_eq!((memory.used(), share.used()), (0, 0));
        assert!(!memory.overdrawn.load(Ordering::SeqCst));
        assert!(!memory.overdrawn_usual.load(Ordering::SeqCst));
    }

    /// Or it would be woken and refused in a circle.
    #[tokio::test]
    async fn who_holds_more_than_usual_does_not_wait_for_the_usual_turn() {
        let limit = 10 * USUAL_BYTES;
        let (memory, share) = (InboundMemory::new(limit), Arc::<ConnShare>::default());
        let mut first = memory
            .hold(&share, limit, Turn::Large)
            .expect("within the limit");
        let other = Arc::default();
        let _over = memory
            .hold(&other, limit, Turn::Large)
            .expect("the one overdraft");
        assert!(!first.grow(1, Turn::Usual));
        memory.wait(&share);
        let woken = tokio::time::timeout(Duration::from_millis(20), share.wake().notified());
        assert!(woken.await.is_err(), "nothing came back for it");
    }

    #[test]
    fn re_01_few_bytes_are_always_there() {
        let (memory, share) = (InboundMemory::new(100), Arc::default());
        let first = memory
            .hold(&share, 100, Turn::Large)
            .expect("within the limit");
        assert!(memory.hold_within(&share, 1).is_none());
        let few = memory.hold_few(&share, 4096);
        let turns = (few.overdraws.any, few.overdraws.usual);
        assert_eq!(turns, (false, false), "turns are for frames under way");
        assert_eq!((memory.used(), share.used()), (4196, 4196));
        drop((first, few));
        assert_eq!((memory.used(), share.used()), (0, 0));
    }

    #[tokio::test]
    async fn a_waiter_is_woken_when_memory_comes_back() {
        let limit = 10 * USUAL_BYTES;
        let (memory, share) = (InboundMemory::new(limit), Arc::<ConnShare>::default());
        let first = memory
            .hold(&share, limit, Turn::Large)
            .expect("within the limit");
        let _over = memory
            .hold(&share, limit, Turn::Large)
            .expect("the one overdraft");
        assert!(memory.hold(&share, limit, Turn::Large).is_none());
        memory.wait(&share);
        let woken = |ms| tokio::time::timeout(Duration::from_millis(ms), share.wake().notified());
        assert!(woken(20).await.is_err(), "nothing came back");
        drop(first);
        woken(5_000).await.expect("woken");
    }
}
