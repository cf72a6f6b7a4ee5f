//! The connection core: frames in, requests out; answers in, frames out.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use highwater_types::Millis;

use crate::journal::JournalEntry;
use crate::machine::{Answer, Caller, ConnId, Incoming, Piece, Ticket};

/// One client connection. Owns order, pipelining and back-pressure; does no IO.
///
/// The owner, in this order: (1) while [`Connection::wants_frames`], reads a frame and calls
/// [`Connection::handle_frame`] with it (without its length); (2) gives `Request`s to the machine
/// of the connection and performs the other outputs in order; (3) feeds `Admitted` and `Answer`
/// effects back; (4) on `Mute`, pauses reading for that long and then calls
/// [`Connection::handle_unmuted`]; (5) on `Close`, or when the peer is gone, tells the machine
/// `Closed` once and drops the connection.
#[derive(Debug)]
pub struct Connection<F> {
    id: ConnId,
    caller: Arc<Caller>,
    next_seq: u32,
    queued: VecDeque<Bytes>,
    started: VecDeque<Started<F>>,
}

/// What a [`Connection`] wants done.
#[derive(Debug)]
pub enum ConnOutput<F> {
    /// For the machine that the connection lives on.
    Request(Incoming),
    /// One whole frame (length, header, body) to send.
    Write(Vec<Piece<F>>),
    /// Stop reading for this long, then call [`Connection::handle_unmuted`].
    Mute(Millis),
    /// Close once everything written before is sent. Nothing comes after it.
    Close,
    /// Something worth telling.
    Event(JournalEntry),
}

#[derive(Debug)]
struct Started<F> {
    ticket: Ticket,
    answer: Option<Answer<F>>,
}

impl<F> Connection<F> {
    /// A new connection.
    #[must_use]
    pub fn new(id: ConnId, caller: Arc<Caller>) -> Self {
        Self { id, caller, next_seq: 0, queued: VecDeque::new(), started: VecDeque::new() }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> ConnId {
        self.id
    }

    /// Whether the owner may read another frame.
    #[must_use]
    pub fn wants_frames(&self) -> bool {
        unimplemented!()
    }

    /// Whether no request is queued or waiting: an idle time-out may close it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        unimplemented!()
    }

    /// Takes one frame, without its length.
    pub fn handle_frame(&mut self, frame: Bytes, out: &mut Vec<ConnOutput<F>>) {
        let _ = (frame, out, &self.caller, self.next_seq);
        unimplemented!()
    }

    /// Takes an `Admitted` effect.
    pub fn handle_admitted(&mut self, ticket: Ticket, out: &mut Vec<ConnOutput<F>>) {
        let _ = (ticket, out);
        unimplemented!()
    }

    /// Takes an `Answer` effect.
    pub fn handle_answer(
        &mut self,
        ticket: Ticket,
        answer: Answer<F>,
        out: &mut Vec<ConnOutput<F>>,
    ) {
        let _ = (ticket, answer, out);
        unimplemented!()
    }

    /// The time of a `Mute` is over.
    pub fn handle_unmuted(&mut self, out: &mut Vec<ConnOutput<F>>) {
        let _ = out;
        unimplemented!()
    }
}
