//! The interface between a node's machines and whoever drives them.

use core::net::IpAddr;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use highwater_disk::{Blocking, Disk};
use highwater_protocol::{ListenerKind, OutRequest, Request, Response};
use highwater_types::{Millis, Mono, NodeId, Now};

use crate::job::{Job, JobResult};
use crate::journal::JournalEntry;
use crate::part::Part;

/// One state machine of a node: the sole owner of its state, changed only in [`Machine::step`].
///
/// The driver, in this order: (1) pops one input and calls `step` with the time; (2) performs
/// what was pushed to `out`, in order, without stepping; (3) steps with [`Input::Tick`] no later
/// than [`Machine::next_deadline`], but works off waiting inputs first.
pub trait Machine<D: Disk>: Send {
    /// Changes the state by one input.
    fn step(&mut self, now: Now, input: Input<D>, out: &mut Vec<Effect<D>>);

    /// When the machine wants a tick, if it waits for time at all.
    fn next_deadline(&self) -> Option<Mono>;
}

/// The address of a machine within its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineId {
    /// Metadata log, controller and broker lifecycle.
    Control,
    /// A data shard, by number.
    Shard(u16),
}

/// A connection, unique within its node's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Names one request of one connection until it is answered. Issued by `Connection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The connection.
    pub conn: ConnId,
    /// Counts the requests of the connection; wraps.
    pub seq: u32,
}

/// Names one thing that a machine waits for: a peer's answer or a job. Unique per machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Who sent a request, and how it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// `User:ANONYMOUS` until there is authentication.
    pub principal: String,
    /// The kind of listener: decides which APIs and versions are offered.
    pub listener: ListenerKind,
    /// The listener's name, for picking advertised endpoints.
    pub listener_name: String,
    /// The peer's address, for quotas, journals and group members.
    pub host: Option<IpAddr>,
}

/// Another node, or this one, as a sender knows it. Machines look addresses up; drivers only
/// connect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The node; [`NodeId::NONE`] while only its address is known.
    pub id: NodeId,
    /// Name or address of its host. Empty: not known, so that nobody is reached.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// The kind of listener there.
    pub listener: ListenerKind,
}

impl Peer {
    /// A node of which no address is known: what is sent there is answered with
    /// [`PeerError::Disconnected`] at once.
    #[must_use]
    pub fn unknown(id: NodeId, listener: ListenerKind) -> Self {
        Self {
            id,
            host: Arc::from(""),
            port: 0,
            listener,
        }
    }

    /// Whether a request of node `own` to this peer stays in its process: it is for its own
    /// controller (see `Loopback`).
    #[must_use]
    pub fn is_loopback(&self, own: NodeId) -> bool {
        self.id == own && self.listener == ListenerKind::Controller
    }
}

/// The connections of one machine to one peer. On each, requests are sent in order and answered in
/// order, and most answers wait for something. So what must not wait for others has a connection
/// of its own, as in Kafka's brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Registration and heartbeats: a broker that waits with them is taken for dead.
    Lifecycle,
    /// Fetches of the metadata log.
    Metadata,
    /// Fetches of replicas.
    Fetcher,
    /// Fetches of replicas whose topics are flushed before the next fetch: others need not wait
    /// for their disks.
    FlushedFetcher,
    /// First fetches of replicas that begin to follow while [`Channel::Fetcher`] is parked.
    JoiningFetcher,
    /// Everything else.
    Others,
}

impl Channel {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Lifecycle,
        Self::Metadata,
        Self::Fetcher,
        Self::FlushedFetcher,
        Self::JoiningFetcher,
        Self::Others,
    ];
}

/// Whatever can happen to a machine.
#[derive(Debug)]
pub enum Input<D: Disk> {
    /// A decoded request of a connection that lives on this machine.
    Request(Incoming),
    /// The connection is gone: its tickets are cancelled.
    Closed(ConnId),
    /// A value from another machine of this node. First in, first out per pair of machines.
    Part {
        /// The sender.
        from: MachineId,
        /// The value.
        part: Part<D>,
    },
    /// The answer to an [`Effect::Send`].
    PeerAnswer {
        /// The token of the `Send`.
        token: Token,
        /// The decoded answer, or why there is none.
        result: Result<Response, PeerError>,
    },
    /// An [`Effect::Job`] is done.
    JobDone {
        /// The token of the `Job`.
        token: Token,
        /// What it brought.
        result: JobResult<D>,
    },
    /// Time has come. Never before other waiting inputs.
    Tick,
    /// The process was asked to stop: hand over, flush, close, then [`Effect::Stopped`].
    Stop,
}

/// One decoded request.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Names the request in effects.
    pub ticket: Ticket,
    /// Who sent it.
    pub caller: Arc<Caller>,
    /// The client id of the request header.
    pub client_id: Option<Arc<str>>,
    /// The version of the request; answers are encoded at it.
    pub version: i16,
    /// The whole frame without its length, as forwarding (Envelope) needs it.
    pub raw: Bytes,
    /// The request.
    pub request: Request,
}

/// Why a peer did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The connection broke, or could not be made.
    #[error("the peer is not reachable")]
    Disconnected,
    /// No answer before the deadline.
    #[error("the peer did not answer in time")]
    TimedOut,
    /// The peer does not offer a version that we speak.
    #[error("the peer offers no version of this request that this build speaks")]
    Unsupported,
    /// The answer could not be decoded.
    #[error("the peer's answer could not be decoded")]
    Malformed,
}

/// What a machine wants done. Performed in order by the driver.
#[derive(Debug)]
pub enum Effect<D: Disk> {
    /// The connection may start its next request (see `Connection`).
    Admitted(Ticket),
    /// The answer to a ticket. Exactly once per ticket, unless the connection closed.
    Answer {
        /// The request.
        ticket: Ticket,
        /// The encoded body.
        answer: Answer<D::File>,
    },
    /// A value for another machine of this node.
    Part {
        /// The receiver.
        to: MachineId,
        /// The value.
        part: Part<D>,
    },
    /// A request to a node, which may be this one: it then loops back as encoded bytes.
    Send {
        /// The receiver.
        peer: Peer,
        /// The connection to it that is used.
        channel: Channel,
        /// Comes back in [`Input::PeerAnswer`].
        token: Token,
        /// The request; encoded at the highest version that both sides speak.
        request: OutRequest,
        /// After it the sender is told [`PeerError::TimedOut`].
        deadline: Mono,
    },
    /// Blocking work for the pool of a log directory.
    Job {
        /// Comes back in [`Input::JobDone`].
        token: Token,
        /// The work.
        job: Job<D>,
    },
    /// Something worth telling: logged by the server, traced by the simulator.
    Event(JournalEntry),
    /// After [`Input::Stop`]: the machine is done and must not be stepped again.
    Stopped,
    /// A kind of listener may be opened. Sent once for each, by control: controllers are served as
    /// soon as the metadata log of this epoch has committed something, clients and brokers when
    /// the broker is first unfenced.
    Serving(ListenerKind),
}

/// An encoded answer body; `Connection` adds length and header.
#[derive(Debug)]
pub struct Answer<F> {
    /// The body, in order. `None`: nothing is sent (acks=0).
    pub pieces: Option<Vec<Piece<F>>>,
    /// Throttling: after the answer, reads from the connection pause this long (KIP-219).
    pub mute: Millis,
    /// Close the connection once everything before and this is sent.
    pub then_close: bool,
}

impl<F> Answer<F> {
    /// An answer of bytes only.
    #[must_use]
    pub fn bytes(body: Bytes) -> Self {
        Self::pieces(vec![Piece::Bytes(body)])
    }

    /// An answer of bytes and file regions.
    #[must_use]
    pub const fn pieces(pieces: Vec<Piece<F>>) -> Self {
        Self {
            pieces: Some(pieces),
            mute: Millis::ZERO,
            then_close: false,
        }
    }

    /// No answer at all: acks=0.
    #[must_use]
    pub const fn silent() -> Self {
        Self {
            pieces: None,
            mute: Millis::ZERO,
            then_close: false,
        }
    }

    /// No answer, and the connection closes once earlier answers are sent.
    #[must_use]
    pub const fn close() -> Self {
        Self {
            pieces: None,
            mute: Millis::ZERO,
            then_close: true,
        }
    }
}

/// A run of an answer's bytes.
#[derive(Debug)]
pub enum Piece<F> {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes of a file, read when they are sent (late: see `Region`).
    Region(Region<F>),
}

impl<F> Piece<F> {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Region(region) => region.len,
        }
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes `[position, position + len)` of a segment file, read at the moment of sending.
///
/// The file never gets other bytes at these positions: a truncation rolls a new segment. So a
/// late read yields these bytes or ends short, and a short send closes the connection
/// (KAFKA-18723).
pub struct Region<F> {
    /// The segment's file.
    pub file: Arc<F>,
    /// First byte.
    pub position: u64,
    /// Length in bytes.
    pub len: u64,
}

impl<F> Clone for Region<F> {
    fn clone(&self) -> Self {
        Self {
            file: Arc::clone(&self.file),
            position: self.position,
            len: self.len,
        }
    }
}

impl<F> fmt::Debug for Region<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region [{}, +{})", self.position, self.len)
    }
}

/// Runs a job where blocking is allowed, and where nobody waits to hear how far it is: the jobs of
/// a simulation take no time.
pub fn run_job<D: Disk>(job: Job<D>, b: &Blocking) -> JobResult<D> {
    job.run(b, &|_| {})
}
