use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf as _, Bytes};
use highwater_node::{
    AnswerReader, Channel, FrameTooLong, LinkError, LinkOutput, Peer, PeerLink, Token,
};
use highwater_protocol::OutRequest;
use highwater_protocol::client::OutFrame;
use highwater_types::Mono;
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

/// Chunks of bytes that one call writes.
const CHUNKS_PER_WRITE: usize = 32;

/// Which connection of a thread: to whom, and for what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerKey {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    pub(crate) channel: Channel,
}

/// A connection of this thread's machine to another node, from the first request on.
#[derive(Debug)]
pub(crate) struct PeerConn {
    pub(crate) key: PeerKey,
    pub(crate) peer: Peer,
    state: RefCell<PeerState>,
    /// Rung when its task has something else to wait for.
    wake: Notify,
}

#[derive(Debug)]
struct PeerState {
    link: PeerLink,
    reader: AnswerReader,
    /// Once connected.
    write: Option<Arc<OwnedWriteHalf>>,
    outgoing: VecDeque<Bytes>,
    /// The socket took no more at the last attempt.
    blocked: bool,
    /// What the task's timer is set to.
    armed: Option<Mono>,
    closed: bool,
}

/// Why a connection to a peer is given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerTrouble {
    /// The peer does not keep to the protocol, or is silent.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It sends what cannot be an answer.
    #[error(transparent)]
    Frame(#[from] FrameTooLong),
    /// The socket failed.
    #[error("{0}")]
    Socket(#[from] io::Error),
    /// The peer closed it.
    #[error("closed by the peer")]
    Closed,
}

impl PeerConn {
    /// A connection that is about to be made.
    pub(crate) fn new(peer: Peer, key: PeerKey, client_id: String, frame_bytes_max: usize) -> Self {
        let state = PeerState {
            link: PeerLink::new(client_id),
            reader: AnswerReader::new(frame_bytes_max),
            write: None,
            outgoing: VecDeque::new(),
            blocked: false,
            armed: None,
            closed: false,
        };
        Self {
            key,
            peer,
            state: RefCell::new(state),
            wake: Notify::new(),
        }
    }

    /// Whether it is over, so that the next request needs another.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.borrow().closed
    }

    /// Takes a machine's request. [`PeerConn::flush`] sends it.
    pub(crate) fn handle_request(
        &self,
        token: Token,
        request: OutRequest,
        deadline: Mono,
        out: &mut Vec<LinkOutput>,
    ) {
        let state = &mut *self.state.borrow_mut();
        state.link.handle_request(token, request, deadline, out);
        if state.armed.is_none_or(|armed| deadline < armed) {
            self.wake.notify_one();
        }
    }

    /// Its socket is there.
    pub(crate) fn handle_connected(&self, write: OwnedWriteHalf, out: &mut Vec<LinkOutput>) {
        let state = &mut *self.state.borrow_mut();
        state.write = Some(Arc::new(write));
        state.link.handle_connected(out);
    }

    /// Gives up what is overdue.
    pub(crate) fn handle_time(&self, now: Mono, out: &mut Vec<LinkOutput>) {
        self.state.borrow_mut().link.handle_time(now, out);
    }

    /// It is gone: whoever waits is told.
    pub(crate) fn handle_closed(&self, out: &mut Vec<LinkOutput>) {
        let state = &mut *self.state.borrow_mut();
        state.closed = true;
        state.outgoing.clear();
        state.write = None;
        state.link.handle_closed(out);
        self.wake.notify_one();
    }

    /// Puts a frame behind those that wait to be sent.
    pub(crate) fn push(&self, frame: OutFrame) {
        let outgoing = &mut self.state.borrow_mut().outgoing;
        outgoing.extend(
            [frame.head, frame.body]
                .into_iter()
                .filter(|it| !it.is_empty()),
        );
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&self) -> io::Result<()> {
        let state = &mut *self.state.borrow_mut();
        let Some(write) = &state.write else {
            return Ok(());
        };
        while !state.blocked && !state.outgoing.is_empty() {
            let chunks: Vec<io::IoSlice<'_>> = state
                .outgoing
                .iter()
                .take(CHUNKS_PER_WRITE)
                .map(|chunk| io::IoSlice::new(chunk))
                .collect();
            match write.try_write_vectored(&chunks) {
                Ok(sent) => drop_sent(&mut state.outgoing, sent),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    state.blocked = true;
                    self.wake.notify_one();
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// The socket may take more.
    pub(crate) fn unblock(&self) {
        self.state.borrow_mut().blocked = false;
    }

    /// Waits until the socket takes bytes; for ever while nothing waits for that.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        let write = {
            let state = self.state.borrow();
            state.write.clone().filter(|_| state.blocked)
        };
        match write {
            Some(write) => write.writable().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the task has something else to wait for.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// When the next request is overdue; the task's timer is now set to it.
    pub(crate) fn arm(&self) -> Option<Mono> {
        let state = &mut *self.state.borrow_mut();
        state.armed = state.link.next_deadline();
        state.armed
    }

    /// Reads once what is there, and takes its frames.
    pub(crate) async fn fill(
        &self,
        read: &mut OwnedReadHalf,
        out: &mut Vec<LinkOutput>,
    ) -> Result<(), PeerTrouble> {
        std::future::poll_fn(|cx| {
            let state = &mut *self.state.borrow_mut();
            let got = match pin!(read.read_buf(state.reader.buffer())).poll(cx) {
                Poll::Ready(got) => got?,
                // There was nothing.
                Poll::Pending => return Poll::Ready(Ok(())),
            };
            if got == 0 {
                return Poll::Ready(Err(PeerTrouble::Closed));
            }
            while let Some(frame) = state.reader.next_frame()? {
                state.link.handle_frame(&frame, out);
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// It must not be used any more: the next request needs another.
    pub(crate) fn mark_closed(&self) {
        self.state.borrow_mut().closed = true;
    }
}

/// Takes away the first `sent` bytes.
fn drop_sent(outgoing: &mut VecDeque<Bytes>, mut sent: usize) {
    while let Some(first) = outgoing.front_mut() {
        if sent < first.len() {
            first.advance(sent);
            return;
        }
        sent -= first.len();
        outgoing.pop_front();
    }
}
