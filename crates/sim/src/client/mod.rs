//! A connection of a simulated client: requests in the order of sending, and what became of them.

mod wire;

use std::collections::VecDeque;

use bytes::Bytes;
use highwater_node::ConnId;
use highwater_protocol::{ApiKey, Request, Response};
use highwater_types::Mono;

/// Names a client in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(pub(crate) u32);

/// What a client asked for, and why. `P` is the purpose that its owner remembers.
#[derive(Debug)]
struct InFlight<P> {
    correlation_id: i32,
    api_key: ApiKey,
    version: i16,
    sent_at: Mono,
    purpose: P,
}

/// One connection. Generic over the purpose of its requests, which belongs to its owner.
#[derive(Debug)]
pub(crate) struct Client<P> {
    conn: Option<ConnId>,
    next_correlation_id: i32,
    in_flight: VecDeque<InFlight<P>>,
}

impl<P> Client<P> {
    /// A client that is not connected.
    pub(crate) const fn new() -> Self {
        Self {
            conn: None,
            next_correlation_id: 1,
            in_flight: VecDeque::new(),
        }
    }

    /// The connection, if there is one.
    pub(crate) const fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// Takes a new connection.
    pub(crate) fn connected(&mut self, conn: ConnId) {
        assert!(
            self.in_flight.is_empty(),
            "a new connection owes no answers"
        );
        self.conn = Some(conn);
    }

    /// The connection is gone: gives the purposes that stay unanswered, oldest first.
    pub(crate) fn disconnected(&mut self) -> Vec<P> {
        self.conn = None;
        self.in_flight.drain(..).map(|it| it.purpose).collect()
    }

    /// Requests without an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// When the oldest request without an answer was sent.
    pub(crate) fn waits_since(&self) -> Option<Mono> {
        self.in_flight.front().map(|it| it.sent_at)
    }

    /// The frame of a request. With `silent` no answer is expected (acks=0).
    pub(crate) fn send(
        &mut self,
        now: Mono,
        (request, version): (&Request, i16),
        purpose: P,
        silent: bool,
    ) -> Bytes {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = self.next_correlation_id.wrapping_add(1);
        if !silent {
            let api_key = request.api_key();
            let waiting = InFlight {
                correlation_id,
                api_key,
                version,
                sent_at: now,
                purpose,
            };
            self.in_flight.push_back(waiting);
        }
        wire::request_frame(request, version, correlation_id)
    }

    /// Takes an answer frame. NP-05: answers come in the order of the requests, ids echoed.
    ///
    /// # Panics
    /// When the node answers out of order or undecodably: the node's mistake.
    pub(crate) fn receive(&mut self, mut frame: Bytes) -> (P, Response) {
        let correlation_id = wire::correlation_id(&mut frame);
        let oldest = self
            .in_flight
            .pop_front()
            .expect("an answer without a question");
        assert_eq!(
            oldest.correlation_id, correlation_id,
            "NP-05: answers in request order"
        );
        (
            oldest.purpose,
            wire::response(oldest.api_key, oldest.version, frame),
        )
    }
}
