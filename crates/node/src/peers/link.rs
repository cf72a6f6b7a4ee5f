use std::collections::VecDeque;

use bytes::Bytes;
use highwater_protocol::client::{
    ClientConnection, ClientError, OutFrame, Received, SendError, Software,
};
use highwater_protocol::{OutRequest, Response};
use highwater_types::Mono;

use crate::machine::{PeerError, Token};

/// The sender's end of one connection to another node, used by `server` and `sim`: which versions
/// both sides speak, which answer is whose, and who waits no longer.
///
/// There is one for each (sending machine, address of the peer, channel). The owner makes it with
/// the first `Effect::Send` and, in this order: (1) hands that and all later requests to
/// [`PeerLink::handle_request`], while it connects already; (2) says
/// [`PeerLink::handle_connected`]; (3) hands in every frame by [`PeerLink::handle_frame`];
/// (4) calls [`PeerLink::handle_time`] at [`PeerLink::next_deadline`]; (5) when the connection
/// cannot be made or breaks, calls [`PeerLink::handle_closed`]. It performs the [`LinkOutput`]s in
/// order. After [`LinkOutput::Close`] or `handle_closed` everybody was answered: it drops the link
/// and makes a new one for the next `Send`.
#[derive(Debug)]
pub struct PeerLink {
    connection: ClientConnection<()>,
    state: State,
    /// Requests that wait until both sides know what they speak.
    queued: VecDeque<Queued>,
    /// Requests that were sent and have no answer yet, oldest first: as many as `connection` waits
    /// for.
    sent: VecDeque<Sent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection yet.
    Connecting,
    /// The peer was asked what it speaks.
    Greeting,
    /// Requests are sent as they come.
    Ready,
    /// Over.
    Closed,
}

#[derive(Debug)]
struct Queued {
    token: Token,
    request: OutRequest,
    deadline: Mono,
}

#[derive(Debug)]
struct Sent {
    /// `None`: the sender was told that it took too long.
    token: Option<Token>,
    deadline: Mono,
}

/// What a link wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkOutput {
    /// Bytes for the peer.
    Write(OutFrame),
    /// For the machine that sent.
    Answer(Token, Result<Response, PeerError>),
    /// The connection is of no use any more, for this reason. Nothing comes after it.
    Close(LinkError),
}

/// Why a link gives its connection up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The peer does not keep to the protocol.
    #[error(transparent)]
    Protocol(#[from] ClientError),
    /// The request that is due next was not answered in time.
    #[error("the peer does not answer")]
    Silent,
}

impl PeerLink {
    /// Most requests without an answer: a machine has a handful.
    pub const PENDING_MAX: usize = 4096;

    /// A link whose connection is about to be made. `client_id` goes with every request.
    #[must_use]
    pub fn new(client_id: String) -> Self {
        let software = Software {
            name: "highwater".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Self {
            connection: ClientConnection::new(Some(client_id), software),
            state: State::Connecting,
            queued: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// When the next request is overdue.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Mono> {
        let queued = self.queued.iter().map(|it| it.deadline);
        let sent = self.sent.iter().filter(|it| it.token.is_some());
        queued.chain(sent.map(|it| it.deadline)).min()
    }

    /// Whether no request waits for anything.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.sent.is_empty()
    }

    /// Sends a machine's request, or keeps it until the connection is ready.
    pub fn handle_request(
        &mut self,
        token: Token,
        request: OutRequest,
        deadline: Mono,
        out: &mut Vec<LinkOutput>,
    ) {
        let waiting = self.queued.len() + self.sent.len();
        if self.state == State::Closed || waiting >= Self::PENDING_MAX {
            out.push(LinkOutput::Answer(token, Err(PeerError::Disconnected)));
            return;
        }
        let queued = Queued {
            token,
            request,
            deadline,
        };
        if self.state == State::Ready {
            self.send(queued, out);
        } else {
            self.queued.push_back(queued);
        }
    }

    /// The connection is made.
    ///
    /// # Panics
    /// When it was before: the owner's mistake.
    pub fn handle_connected(&mut self, out: &mut Vec<LinkOutput>) {
        assert_eq!(self.state, State::Connecting, "connected twice");
        self.state = State::Greeting;
        out.push(LinkOutput::Write(self.connection.begin()));
    }

    /// Takes one frame of the peer, without its length.
    pub fn handle_frame(&mut self, frame: &Bytes, out: &mut Vec<LinkOutput>) {
        if self.state == State::Closed {
            return;
        }
        match self.connection.handle_frame(frame) {
            Ok(Received::AskAgain(frame)) => out.push(LinkOutput::Write(frame)),
            Ok(Received::Ready) => {
                self.state = State::Ready;
                for queued in std::mem::take(&mut self.queued) {
                    self.send(queued, out);
                }
            }
            Ok(Received::Answer { response, .. }) => {
                if let Some(token) = self.take_oldest() {
                    out.push(LinkOutput::Answer(token, Ok(response)));
                }
            }
            Err(why) => {
                if matches!(why, ClientError::Malformed(_))
                    && self.state == State::Ready
                    && let Some(token) = self.take_oldest()
                {
                    out.push(LinkOutput::Answer(token, Err(PeerError::Malformed)));
                }
                self.close(why.into(), out);
            }
        }
    }

    /// Gives up the requests that are overdue. A peer that owes the oldest answer of all is silent:
    /// the connection goes with it, for the way to it may have changed unseen (Kafka's clients do
    /// so too).
    pub fn handle_time(&mut self, now: Mono, out: &mut Vec<LinkOutput>) {
        let timed_out = |token| LinkOutput::Answer(token, Err(PeerError::TimedOut));
        let is_silent = match self.state {
            State::Ready => self.sent.front().is_some_and(|it| it.deadline <= now),
            State::Greeting => self.queued.iter().any(|it| it.deadline <= now),
            State::Connecting | State::Closed => false,
        };
        for sent in self.sent.iter_mut().filter(|it| it.deadline <= now) {
            out.extend(sent.token.take().map(timed_out));
        }
        self.queued.retain(|it| {
            let is_late = it.deadline <= now;
            if is_late {
                out.push(timed_out(it.token));
            }
            !is_late
        });
        if is_silent {
            self.close(LinkError::Silent, out);
        }
    }

    /// The connection could not be made, or is gone.
    pub fn handle_closed(&mut self, out: &mut Vec<LinkOutput>) {
        self.state = State::Closed;
        let sent = std::mem::take(&mut self.sent).into_iter();
        let sent = sent.filter_map(|it| it.token);
        let queued = std::mem::take(&mut self.queued).into_iter();
        let waiting = sent.chain(queued.map(|it| it.token));
        out.extend(waiting.map(|it| LinkOutput::Answer(it, Err(PeerError::Disconnected))));
    }

    fn send(&mut self, queued: Queued, out: &mut Vec<LinkOutput>) {
        let Queued {
            token,
            request,
            deadline,
        } = queued;
        match self.connection.send_out(&request, i16::MAX, ()) {
            Ok(frame) => {
                let token = Some(token);
                self.sent.push_back(Sent { token, deadline });
                assert_eq!(
                    self.connection.waiting(),
                    self.sent.len(),
                    "a node sends no {} that is not answered",
                    request.api_key()
                );
                out.push(LinkOutput::Write(frame));
            }
            Err(SendError::Unsupported(_) | SendError::Encode(_)) => {
                out.push(LinkOutput::Answer(token, Err(PeerError::Unsupported)));
            }
            Err(SendError::NotReady) => {
                out.push(LinkOutput::Answer(token, Err(PeerError::Disconnected)));
            }
        }
    }

    fn take_oldest(&mut self) -> Option<Token> {
        self.sent.pop_front().and_then(|it| it.token)
    }

    fn close(&mut self, why: LinkError, out: &mut Vec<LinkOutput>) {
        self.handle_closed(out);
        out.push(LinkOutput::Close(why));
    }
}

#[cfg(test)]
mod tests;
