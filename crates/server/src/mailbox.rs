use std::sync::Arc;

use highwater_disk::FileDisk;
use highwater_node::{Caller, Channel, ConnId, Input, MachineId, Token};
use highwater_protocol::OutRequest;
use highwater_types::Mono;
use tokio::sync::mpsc;

use crate::limits::Counted;

/// What a machine's thread is told by others.
#[derive(Debug)]
pub(crate) enum Mail {
    /// For the machine itself.
    Input(Input<FileDisk>),
    /// A connection that was dealt to this thread.
    Connection(NewConnection),
    /// The cold bytes of a connection's answer were read into the page cache.
    Warmed(ConnId),
    /// For control: a request from a machine of this node to this node.
    Loopback(Loopback),
    /// Ends the thread.
    Exit,
}

/// An accepted connection on its way to the thread where it lives.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) id: ConnId,
    pub(crate) stream: std::net::TcpStream,
    pub(crate) caller: Arc<Caller>,
    pub(crate) counted: Counted,
}

/// A request of a machine to its own node.
#[derive(Debug)]
pub(crate) struct Loopback {
    pub(crate) from: MachineId,
    pub(crate) channel: Channel,
    pub(crate) token: Token,
    pub(crate) request: OutRequest,
    pub(crate) deadline: Mono,
}

/// The way to one machine's thread. First in, first out per sender; what machines send each other
/// is bounded by the requests and partitions that they have.
pub(crate) type Mailbox = mpsc::UnboundedSender<Mail>;

/// The ways to all machines of the node.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    pub(crate) control: Mailbox,
    pub(crate) shards: Arc<[Mailbox]>,
}

impl Links {
    /// Delivers to `to`. A thread that is gone takes nothing: the node is stopping.
    pub(crate) fn send(&self, to: MachineId, mail: Mail) {
        let mailbox = match to {
            MachineId::Control => Some(&self.control),
            MachineId::Shard(number) => self.shards.get(usize::from(number)),
        };
        let mailbox = mailbox.expect("machines name only machines of their own node");
        drop(mailbox.send(mail));
    }

    /// Delivers to every machine.
    pub(crate) fn send_all(&self, mail: impl Fn() -> Mail) {
        for mailbox in self.shards.iter().chain([&self.control]) {
            drop(mailbox.send(mail()));
        }
    }
}
