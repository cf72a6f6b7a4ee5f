//! The connection core: frames in, requests out; answers in, frames out.

mod frame;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use highwater_types::Millis;

use crate::connection::frame::{Begun, ClientIds, PRODUCE, Refusal};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Caller, ConnId, Incoming, Piece, Ticket};

/// Most requests of one connection that wait for an answer at once, unless
/// `max.waiting.requests.per.connection` says otherwise. Clients keep 5 (idempotent) to a few dozen
/// in flight; beyond it the connection is not read.
pub const WAITING_REQUESTS_MAX: usize = 64;

/// One client connection. Owns order, pipelining and back-pressure; does no IO.
///
/// The owner, in this order: (1) while [`Connection::wants_frames`] and everything written before
/// has been sent or is short, reads a frame and calls [`Connection::handle_frame`] with it
/// (without its length); (2) gives `Request`s to the machine of the connection and performs the
/// other outputs in order; (3) feeds `Admitted` and `Answer` effects back; (4) on `Mute`, pauses
/// reading for that long and then calls [`Connection::handle_unmuted`]; (5) on `Close`, or when the
/// peer is gone, tells the machine `Closed` once and drops the connection.
///
/// A request starts when all before it are *admitted*: a Produce once each of its partitions is
/// appended or refused (an `Admitted` effect, or the answer itself), everything else once it is
/// answered. Only a Produce may start while another request waits. Answers leave in the order of
/// the requests.
#[derive(Debug)]
pub struct Connection<F> {
    id: ConnId,
    caller: Arc<Caller>,
    client_ids: ClientIds,
    next_seq: u32,
    /// Frames that may not start yet. In practice one: a request behind a waiting Produce.
    queued: VecDeque<Bytes>,
    /// Requests without a sent answer, in order.
    ///
    /// Invariant: the first has no answer yet; only the last may be `Running`.
    started: VecDeque<Started<F>>,
    waiting_max: usize,
    muted: bool,
    phase: Phase,
}

/// What a [`Connection`] wants done.
#[derive(Debug)]
pub enum ConnOutput<F> {
    /// For the machine that the connection lives on.
    Request(Incoming),
    /// One whole frame (length, header, body) to send.
    Write(Vec<Piece<F>>),
    /// Stop reading for this long, then call [`Connection::handle_unmuted`] (KIP-219).
    Mute(Millis),
    /// Close once everything written before is sent. Nothing comes after it.
    Close,
    /// Something worth telling.
    Event(JournalEntry),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Requests may start.
    Open,
    /// No request starts any more; earlier answers are still awaited and sent.
    Closing,
    /// `Close` was pushed.
    Closed,
}

#[derive(Debug)]
struct Started<F> {
    seq: u32,
    head: frame::AnswerHead,
    state: State<F>,
}

#[derive(Debug)]
enum State<F> {
    Running,
    Admitted,
    Answered(Answer<F>),
}

impl<F> Connection<F> {
    /// A new connection.
    #[must_use]
    pub fn new(id: ConnId, caller: Arc<Caller>) -> Self {
        Self {
            id,
            caller,
            client_ids: ClientIds::default(),
            next_seq: 0,
            queued: VecDeque::new(),
            started: VecDeque::new(),
            waiting_max: WAITING_REQUESTS_MAX,
            muted: false,
            phase: Phase::Open,
        }
    }

    /// The same with another bound on unanswered requests (at least 1).
    #[must_use]
    pub fn with_waiting_max(mut self, waiting_max: usize) -> Self {
        self.waiting_max = waiting_max.max(1);
        self
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> ConnId {
        self.id
    }

    /// Whether the owner may read another frame.
    #[must_use]
    pub fn wants_frames(&self) -> bool {
        self.phase == Phase::Open
            && !self.muted
            && self.queued.is_empty()
            && self.started.len() < self.waiting_max
            && self.all_admitted()
    }

    /// Whether no request is queued or unanswered: an idle time-out may close it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.started.is_empty()
    }

    /// Takes one frame, without its length.
    pub fn handle_frame(&mut self, frame: Bytes, out: &mut Vec<ConnOutput<F>>) {
        if self.phase == Phase::Open {
            self.queued.push_back(frame);
            self.start_what_may(out);
        }
        self.assert_invariants();
    }

    /// Takes an `Admitted` effect.
    pub fn handle_admitted(&mut self, ticket: Ticket, out: &mut Vec<ConnOutput<F>>) {
        if let Some(started) = self.find(ticket)
            && matches!(started.state, State::Running)
        {
            started.state = State::Admitted;
            self.start_what_may(out);
        }
        self.assert_invariants();
    }

    /// Takes an `Answer` effect. It leaves once all before it have left.
    pub fn handle_answer(
        &mut self,
        ticket: Ticket,
        answer: Answer<F>,
        out: &mut Vec<ConnOutput<F>>,
    ) {
        if let Some(started) = self.find(ticket)
            && !matches!(started.state, State::Answered(_))
        {
            let then_close = answer.then_close;
            started.state = State::Answered(answer);
            if then_close {
                self.stop_starting();
            }
            self.send_what_may(out);
            self.start_what_may(out);
        }
        self.assert_invariants();
    }

    /// The time of a `Mute` is over.
    pub fn handle_unmuted(&mut self, out: &mut Vec<ConnOutput<F>>) {
        self.muted = false;
        self.start_what_may(out);
        self.assert_invariants();
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Started<F>> {
        assert_eq!(ticket.conn, self.id, "an effect of another connection");
        self.started.iter_mut().find(|it| it.seq == ticket.seq)
    }

    fn all_admitted(&self) -> bool {
        !matches!(
            self.started.back(),
            Some(Started {
                state: State::Running,
                ..
            })
        )
    }

    fn start_what_may(&mut self, out: &mut Vec<ConnOutput<F>>) {
        while self.phase == Phase::Open
            && !self.muted
            && self.started.len() < self.waiting_max
            && self.all_admitted()
        {
            let Some(next) = self.queued.front() else {
                return;
            };
            let is_produce = frame::api_key(next) == Some(PRODUCE);
            if !self.started.is_empty() && !is_produce {
                return;
            }
            if let Some(frame) = self.queued.pop_front() {
                self.start(frame, out);
            }
        }
    }

    fn start(&mut self, frame: Bytes, out: &mut Vec<ConnOutput<F>>) {
        let seq = self.next_seq;
        match frame::begin(&frame, self.caller.listener, &mut self.client_ids) {
            Ok(Begun::Request {
                head,
                version,
                client_id,
                request,
            }) => {
                self.next_seq = seq.wrapping_add(1);
                self.started.push_back(Started {
                    seq,
                    head,
                    state: State::Running,
                });
                out.push(ConnOutput::Request(Incoming {
                    ticket: Ticket { conn: self.id, seq },
                    caller: Arc::clone(&self.caller),
                    client_id,
                    version,
                    raw: frame,
                    request,
                }));
            }
            Ok(Begun::AnswerNow { head, body }) => {
                self.next_seq = seq.wrapping_add(1);
                let state = State::Answered(Answer::bytes(body));
                self.started.push_back(Started { seq, head, state });
                self.send_what_may(out);
            }
            Err(refusal) => self.refuse(refusal, out),
        }
    }

    fn refuse(&mut self, refusal: Refusal, out: &mut Vec<ConnOutput<F>>) {
        out.push(ConnOutput::Event(refusal.into_journal()));
        self.stop_starting();
        self.send_what_may(out);
    }

    fn stop_starting(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Closing;
        }
        self.queued.clear();
    }

    fn send_what_may(&mut self, out: &mut Vec<ConnOutput<F>>) {
        while let Some(Started {
            state: State::Answered(_),
            ..
        }) = self.started.front()
        {
            let Some(Started {
                head,
                state: State::Answered(answer),
                ..
            }) = self.started.pop_front()
            else {
                return;
            };
            let mut is_last = answer.then_close;
            match answer.pieces.map(|pieces| head.frame(pieces)) {
                None => {}
                Some(Some(pieces)) => out.push(ConnOutput::Write(pieces)),
                Some(None) => {
                    let text = "connection closed: an answer is too long for a frame";
                    out.push(ConnOutput::Event(JournalEntry::text(Level::Warn, text)));
                    self.stop_starting();
                    is_last = true;
                }
            }
            if is_last {
                self.started.clear();
            } else if answer.mute > Millis::ZERO {
                self.muted = true;
                out.push(ConnOutput::Mute(answer.mute));
            }
        }
        if self.phase == Phase::Closing && self.started.is_empty() {
            self.phase = Phase::Closed;
            out.push(ConnOutput::Close);
        }
    }

    fn assert_invariants(&self) {
        assert!(
            !matches!(
                self.started.front(),
                Some(Started {
                    state: State::Answered(_),
                    ..
                })
            ),
            "the first answer of {:?} was not sent",
            self.id
        );
        let running = self
            .started
            .iter()
            .filter(|it| matches!(it.state, State::Running))
            .count();
        assert!(
            running <= 1,
            "{running} requests of {:?} run at once",
            self.id
        );
        assert!(
            self.started.len() <= self.waiting_max,
            "too many requests wait"
        );
        assert!(
            self.phase == Phase::Open || self.queued.is_empty(),
            "frames queue for nothing"
        );
    }
}
