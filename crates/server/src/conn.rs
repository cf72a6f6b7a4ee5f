use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::BufMut as _;
use highwater_disk::FileFile;
use highwater_node::{ConnId, ConnOutput, Connection, Region, Ticket};
use highwater_types::{Millis, Mono};
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use crate::limits::Counted;
use crate::memory::{BufferPool, ConnShare, FEW_BYTES};
use crate::settings::SocketSettings;
use crate::socket::frames::{FrameError, Frames, Prepared};
use crate::socket::outgoing::{Outgoing, SendError, Sent};

/// A frame that takes longer than this must have come at [`FRAME_BYTES_PER_SECOND_MIN`].
const FRAME_TIME_MAX: Millis = Millis::new(60_000);
/// Slower than any real link, in bytes.
const FRAME_BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

/// How long a connection is looked at that holds memory which others wait for.
const LOOK_TIME: Millis = Millis::new(5_000);
/// How long one may wait for memory while it holds some: then the oldest of them go, so that a
/// circle of them ends.
const STARVING_TIME: Millis = Millis::new(15_000);
/// A frame must come so fast, while others wait, that what it holds would be filled in this time.
const FILL_SECONDS: u64 = 20;

/// One connection on its thread: the socket's halves of work around the `Connection` core.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) id: ConnId,
    /// For messages only.
    pub(crate) peer: String,
    share: Arc<ConnShare>,
    share_bytes_max: u64,
    write: OwnedWriteHalf,
    state: RefCell<ConnState>,
    /// What its task waits for; `None` while the task runs.
    waiting: Cell<Option<Wanted>>,
    _counted: Counted,
}

#[derive(Debug)]
struct ConnState {
    core: Connection<FileFile>,
    frames: Frames,
    outgoing: Outgoing,
    /// The socket took no more at the last attempt.
    blocked: bool,
    /// A job reads the next bytes from the disk.
    warming: bool,
    /// The budget was used up at the last attempt to read.
    no_memory: bool,
    /// It waits for memory, so that a slow frame is not its fault.
    starves: bool,
    /// While memory is short: since when it is looked at, and what it had of its frame then.
    look: Option<(Mono, usize)>,
    muted_until: Option<Mono>,
    /// Nothing is read any more; closed once all is sent.
    closing: bool,
    /// The end of its thread waits until the peer has what is sent.
    awaited: bool,
    closed: bool,
    /// When it was opened, or last got the memory that it waited for.
    opened: Mono,
    /// When bytes last moved, in or out.
    active: Mono,
    got_frame: bool,
    frame_began: Option<Mono>,
}

/// What the connection's task has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) until: Option<Mono>,
}

/// What the connection's task has to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Drop the connection.
    Close,
    /// Call `Host::feed`.
    Feed,
    /// Give others their turn, then call `Host::flush`.
    Flush,
    /// Wait.
    Wait(Wanted),
}

/// Why a connection that did nothing forbidden is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// `connections.max.idle.ms`.
    Idle,
    /// No whole request since it was opened.
    FirstRequest,
    /// A frame comes too slowly (B-05).
    Frame,
    /// It waits for memory and holds some: one of several that may wait for each other.
    Starving {
        /// What it holds, in bytes.
        held: usize,
        /// When its frame began.
        since: Mono,
    },
}

impl Conn {
    pub(crate) fn new(
        core: Connection<FileFile>,
        peer: String,
        write: OwnedWriteHalf,
        pool: Arc<BufferPool>,
        settings: &SocketSettings,
        counted: Counted,
        now: Mono,
    ) -> Self {
        let share = Arc::new(ConnShare::default());
        let id = core.id();
        let state = ConnState {
            core,
            frames: Frames::new(pool, Arc::clone(&share), settings.request_bytes_max),
            outgoing: Outgoing::default(),
            blocked: false,
            warming: false,
            no_memory: false,
            starves: false,
            look: None,
            muted_until: None,
            closing: false,
            awaited: false,
            closed: false,
            opened: now,
            active: now,
            got_frame: false,
            frame_began: None,
        };
        Self {
            id,
            peer,
            share,
            share_bytes_max: settings.connection_inbound_bytes_max,
            write,
            state: RefCell::new(state),
            waiting: Cell::new(None),
            _counted: counted,
        }
    }

    /// Wakes the connection's task.
    pub(crate) fn wake(&self) -> &Arc<Notify> {
        self.share.wake()
    }

    /// Waits until the socket takes bytes.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.write.writable().await
    }

    /// What its task has to do now. Marks the task as waiting when that is all.
    pub(crate) fn next(&self, now: Mono) -> Next {
        let mut state = self.state.borrow_mut();
        if state.muted_until.is_some_and(|until| until <= now) {
            // The core is told in `Host::feed`.
            return Next::Feed;
        }
        if state.closed || state.closing && state.outgoing.is_empty() {
            return Next::Close;
        }
        if state.goes_on() {
            return Next::Feed;
        }
        if !state.outgoing.is_empty() && !state.blocked && !state.warming {
            return Next::Flush;
        }
        let wanted = state.wanted(&self.share, self.share_bytes_max);
        // Memory is looked for again at the next wake-up.
        state.no_memory = false;
        self.waiting.set(Some(wanted));
        Next::Wait(wanted)
    }

    /// The task runs again.
    pub(crate) fn woken(&self) {
        self.waiting.set(None);
    }

    /// Wakes the task if what it waits for is not what it should do any more.
    pub(crate) fn wake_if_changed(&self) {
        let Some(waiting) = self.waiting.get() else {
            return;
        };
        let state = self.state.borrow();
        let unblocked = !state.outgoing.is_empty() && !state.blocked && !state.warming;
        let changed = state.closed
            || state.closing && state.outgoing.is_empty()
            || unblocked
            || state.goes_on()
            || state.wanted(&self.share, self.share_bytes_max) != waiting;
        if changed {
            self.wake().notify_one();
        }
    }

    /// Reads once. `false`: the peer closed.
    pub(crate) async fn fill(&self, read: &mut OwnedReadHalf, now: Mono) -> io::Result<bool> {
        let got = std::future::poll_fn(|cx| {
            let mut state = self.state.borrow_mut();
            let Prepared::Read(buffer, room) = state.frames.prepare() else {
                return Poll::Ready(Ok(None));
            };
            let mut limited = buffer.limit(room);
            let got = match pin!(read.read_buf(&mut limited)).poll(cx) {
                Poll::Ready(got) => got.map(Some),
                Poll::Pending => Ok(Some(usize::MAX)),
            };
            Poll::Ready(got)
        })
        .await;
        let mut state = self.state.borrow_mut();
        match got {
            Ok(Some(0)) => Ok(false),
            Ok(Some(usize::MAX)) => {
                state.frames.release_idle();
                Ok(true)
            }
            Ok(Some(_)) => {
                state.frames.filled();
                state.active = now;
                if std::mem::take(&mut state.starves) {
                    // What it waited for memory is not its fault.
                    state.look = None;
                    state.opened = now;
                }
                let partial = state.frames.partial_bytes() > 0;
                if !partial || state.frames.has_next() {
                    state.frame_began = partial.then_some(now);
                    state.look = None;
                } else {
                    state.frame_began.get_or_insert(now);
                }
                Ok(true)
            }
            Ok(None) => {
                state.no_memory = true;
                state.starves = true;
                state.frames.wait_for_memory();
                Ok(true)
            }
            Err(why) => {
                state.frames.release_idle();
                Err(why)
            }
        }
    }

    /// Hands the core as many frames as it takes now. Whether there was anything to hand over.
    pub(crate) fn feed(
        &self,
        now: Mono,
        out: &mut Vec<ConnOutput<FileFile>>,
    ) -> Result<bool, FrameError> {
        let mut state = self.state.borrow_mut();
        let mut fed = false;
        if state.muted_until.is_some_and(|until| until <= now) {
            state.muted_until = None;
            state.core.handle_unmuted(out);
            fed = true;
        }
        while state.may_take_frame() {
            let Some(frame) = state.frames.next()? else {
                break;
            };
            state.got_frame = true;
            state.core.handle_frame(frame, out);
            fed = true;
        }
        Ok(fed)
    }

    pub(crate) fn admitted(&self, ticket: Ticket, out: &mut Vec<ConnOutput<FileFile>>) {
        self.state.borrow_mut().core.handle_admitted(ticket, out);
    }

    pub(crate) fn answered(
        &self,
        ticket: Ticket,
        answer: highwater_node::Answer<FileFile>,
        out: &mut Vec<ConnOutput<FileFile>>,
    ) {
        self.state
            .borrow_mut()
            .core
            .handle_answer(ticket, answer, out);
    }

    /// Queues a frame to be sent.
    pub(crate) fn push(&self, frame: Vec<highwater_node::Piece<FileFile>>) {
        let mut state = self.state.borrow_mut();
        if !state.closed {
            state.outgoing.push(frame);
        }
    }

    /// Reads nothing until `until`.
    pub(crate) fn mute(&self, until: Mono) {
        self.state.borrow_mut().muted_until = Some(until);
    }

    /// Closes once everything is sent.
    pub(crate) fn close_when_sent(&self) {
        self.state.borrow_mut().closing = true;
    }

    /// Closes once everything is sent, because the thread ends. Whether there is something.
    pub(crate) fn close_awaited(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.closing = true;
        state.awaited = !state.closed && !state.outgoing.is_empty();
        state.awaited
    }

    /// Whether the end of its thread waits for it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.state.borrow().awaited
    }

    /// Closes at once.
    pub(crate) fn close(&self) {
        self.state.borrow_mut().closed = true;
    }

    /// The socket may take bytes again.
    pub(crate) fn unblock(&self) {
        self.state.borrow_mut().blocked = false;
    }

    /// The cold bytes were read.
    pub(crate) fn warmed(&self) {
        let mut state = self.state.borrow_mut();
        state.warming = false;
        state.outgoing.warmed();
    }

    /// Sends what the socket takes, unless the next request goes first, whose answer then leaves
    /// with this one. Gives a region that has to be read from the disk first.
    pub(crate) fn flush(&self, now: Mono) -> Result<Option<Region<FileFile>>, SendError> {
        let mut state = self.state.borrow_mut();
        let waits = state.blocked || state.warming || state.goes_on();
        if waits || state.outgoing.is_empty() {
            return Ok(None);
        }
        let before = state.outgoing.sent_bytes();
        let sent = state.outgoing.send(self.write.as_ref());
        if state.outgoing.sent_bytes() > before {
            state.active = now;
        }
        match sent {
            Ok(Sent::All | Sent::Yield) => Ok(None),
            Ok(Sent::Blocked) => {
                state.blocked = true;
                Ok(None)
            }
            Ok(Sent::Cold(region)) => {
                state.warming = true;
                Ok(Some(region))
            }
            Err(why) => {
                state.closed = true;
                Err(why)
            }
        }
    }

    /// Whether a time limit is over.
    pub(crate) fn overdue(&self, now: Mono, settings: &SocketSettings) -> Option<Overdue> {
        let mut state = self.state.borrow_mut();
        if let Some(overdue) = state.blocks_others(now) {
            return Some(overdue);
        }
        if let Some(began) = state.frame_began {
            let age = now.since(began);
            let received = state.frames.partial_bytes() as u64;
            let due = age.as_u64() / 1000 * FRAME_BYTES_PER_SECOND_MIN;
            if age > FRAME_TIME_MAX && received < due && !state.starves {
                return Some(Overdue::Frame);
            }
        }
        let is_late = now.since(state.opened) > settings.first_request_max;
        if !state.got_frame && !state.starves && is_late {
            return Some(Overdue::FirstRequest);
        }
        // A connection whose request waits in the machine is not idle, one whose peer takes no
        // bytes is.
        let waits_for_us = !state.core.is_idle() && state.outgoing.is_empty();
        let idle = now.since(state.active) > settings.idle_max;
        (idle && !waits_for_us).then_some(Overdue::Idle)
    }
}

impl ConnState {
    /// Whether others wait for memory that it holds for a frame which hardly grows.
    fn blocks_others(&mut self, now: Mono) -> Option<Overdue> {
        let held = self.frames.partial_held();
        let holder = self.frame_began.filter(|_| held > FEW_BYTES);
        let Some(began) = holder.filter(|_| self.frames.is_memory_short()) else {
            self.look = None;
            return None;
        };
        let bytes = self.frames.partial_bytes();
        let (since, before) = *self.look.get_or_insert((now, bytes));
        let span = now.since(since);
        if self.starves {
            let since = began;
            return (span >= STARVING_TIME).then_some(Overdue::Starving { held, since });
        }
        if span < LOOK_TIME {
            return None;
        }
        self.look = None;
        let rate = FRAME_BYTES_PER_SECOND_MIN.max(held as u64 / FILL_SECONDS);
        let due = span.as_u64() / 1000 * rate;
        let came = bytes.saturating_sub(before) as u64;
        (came < due).then_some(Overdue::Frame)
    }

    /// Whether the next frame may go to the core: one answer is in flight at a time (RE-04), but
    /// short ones are gathered while the socket takes them.
    fn may_take_frame(&self) -> bool {
        let stuck = self.blocked || self.warming;
        let sent = self.outgoing.is_empty() || self.outgoing.is_short() && !stuck;
        !self.closing
            && !self.closed
            && self.muted_until.is_none()
            && sent
            && self.core.wants_frames()
    }

    /// Whether a frame is there and may go to the core.
    fn goes_on(&self) -> bool {
        self.may_take_frame() && self.frames.has_next()
    }

    fn wanted(&self, share: &ConnShare, share_bytes_max: u64) -> Wanted {
        let may_read = self.may_take_frame() && !self.frames.has_next() && !self.no_memory;
        let has_room = || {
            let partial = self.frames.partial_held() as u64;
            share.used().saturating_sub(partial) <= share_bytes_max
        };
        let mut read = may_read && has_room();
        if may_read && !read {
            share.pause();
            // Memory may have come back before the request for a wake-up.
            read = has_room();
        }
        Wanted {
            read,
            write: self.blocked,
            until: self.muted_until,
        }
    }
}
