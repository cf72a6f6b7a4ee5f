use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use std::{cell::RefCell, io};

use highwater_node::{Channel, LinkOutput, Peer, Token};
use highwater_protocol::OutRequest;
use highwater_types::{Millis, Mono};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::host::Host;
use crate::peer::{PeerConn, PeerKey, PeerTrouble};
use crate::socket::pacing::unpace_local;

/// Kafka's `socket.connection.setup.timeout.ms`.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a peer cannot be reached before a word is said about it.
const TROUBLE_MIN: Millis = Millis::new(1_000);
/// The time between two words about it.
const TROUBLE_PAUSE: Millis = Millis::new(10_000);

/// The connections of one thread's machine to other nodes.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    conns: RefCell<BTreeMap<PeerKey, Rc<PeerConn>>>,
    /// Addresses that could not be reached.
    unreached: RefCell<BTreeMap<(Arc<str>, u16), Unreached>>,
}

/// Since when nobody is reached at an address, and when that was last told.
#[derive(Clone, Copy, Debug)]
struct Unreached {
    since: Mono,
    told: Option<Mono>,
}

impl Peers {
    /// The connection for a request, and whether it is a new one, whose task is to be started.
    pub(crate) fn conn(
        &self,
        peer: &Peer,
        channel: Channel,
        make: impl FnOnce(Peer, PeerKey) -> PeerConn,
    ) -> (Rc<PeerConn>, bool) {
        let key = PeerKey {
            host: Arc::clone(&peer.host),
            port: peer.port,
            channel,
        };
        let mut conns = self.conns.borrow_mut();
        if let Some(found) = conns.get(&key).filter(|it| !it.is_closed()) {
            return (Rc::clone(found), false);
        }
        let made = Rc::new(make(peer.clone(), key.clone()));
        conns.insert(key, Rc::clone(&made));
        (made, true)
    }

    /// Forgets a connection that is over, unless another took its place.
    fn forget(&self, conn: &Rc<PeerConn>) {
        let mut conns = self.conns.borrow_mut();
        if conns.get(&conn.key).is_some_and(|it| Rc::ptr_eq(it, conn)) {
            conns.remove(&conn.key);
        }
    }

    /// Says that a peer cannot be reached, now and then.
    fn tell_unreached(&self, now: Mono, peer: &Peer, why: &io::Error) {
        let at = (Arc::clone(&peer.host), peer.port);
        let mut unreached = self.unreached.borrow_mut();
        let unreached = unreached.entry(at).or_insert(Unreached {
            since: now,
            told: None,
        });
        let is_due = match unreached.told {
            // Nodes that start together find each other in a moment.
            None => now.since(unreached.since) >= TROUBLE_MIN,
            Some(told) => now.since(told) >= TROUBLE_PAUSE,
        };
        if is_due {
            unreached.told = Some(now);
            let seconds = now.since(unreached.since).as_u64() / 1_000;
            let peer = Shown(peer);
            tracing::warn!("cannot connect to {peer} for {seconds} s now: {why}; trying again");
        }
    }

    fn tell_reached(&self, peer: &Peer) {
        let at = (Arc::clone(&peer.host), peer.port);
        let before = self.unreached.borrow_mut().remove(&at);
        if before.is_some_and(|it| it.told.is_some()) {
            tracing::info!("connected to {}", Shown(peer));
        }
    }
}

/// A peer, for people.
struct Shown<'a>(&'a Peer);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Peer { id, host, port, .. } = self.0;
        let (left, right) = if host.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        if id.raw() >= 0 {
            write!(f, "node {id} at ")?;
        }
        write!(f, "{left}{host}{right}:{port}")
    }
}

/// A request on its way to another node.
#[derive(Debug)]
pub(crate) struct ToPeer {
    pub(crate) peer: Peer,
    pub(crate) channel: Channel,
    pub(crate) token: Token,
    pub(crate) request: OutRequest,
    pub(crate) deadline: Mono,
}

/// The task of one connection to another node: connects, then waits for its socket and for time.
pub(crate) async fn serve_peer(host: Weak<Host>, conn: Rc<PeerConn>) {
    let Some(host) = host.upgrade() else { return };
    let mut read = match connected(&host, &conn).await {
        Ok(Some(read)) => read,
        // Over before it began.
        Ok(None) => return,
        Err(why) => {
            let peers = host.peers();
            peers.tell_unreached(host.shared.clock.mono(), &conn.peer, &why);
            peers.forget(&conn);
            host.peer_closed(&conn);
            return;
        }
    };
    host.peers().tell_reached(&conn.peer);
    let why = until_closed(&host, &conn, &mut read).await;
    host.peers().forget(&conn);
    host.peer_closed(&conn);
    let peer = Shown(&conn.peer);
    match why {
        None => {}
        Some(why @ (PeerTrouble::Closed | PeerTrouble::Socket(_))) => {
            tracing::debug!("connection to {peer} lost: {why}");
        }
        Some(why) => tracing::warn!("connection to {peer} given up: {why}"),
    }
}

/// Connects; requests may meanwhile come and time out. `None`: it was closed.
async fn connected(host: &Host, conn: &Rc<PeerConn>) -> io::Result<Option<OwnedReadHalf>> {
    let connecting = async {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "nobody answers there");
        let stream = tokio::time::timeout(CONNECT_MAX, connect(&conn.peer)).await;
        stream.map_err(late)?
    };
    tokio::pin!(connecting);
    loop {
        tokio::select! {
            stream = &mut connecting => {
                let (read, write) = stream?.into_split();
                host.peer_connected(conn, write);
                return Ok(Some(read));
            }
            () = conn.woken() => {}
            () = host.at(conn.arm()) => {
                host.peer_time(conn);
            }
        }
        if conn.is_closed() {
            return Ok(None);
        }
    }
}

async fn connect(peer: &Peer) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((&*peer.host, peer.port))
        .await?
        .collect();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                unpace_local(&stream);
                SockRef::from(&stream).set_keepalive(true)?;
                return Ok(stream);
            }
            Err(why) => failure = why,
        }
    }
    Err(failure)
}

async fn until_closed(
    host: &Host,
    conn: &Rc<PeerConn>,
    read: &mut OwnedReadHalf,
) -> Option<PeerTrouble> {
    let mut outputs: Vec<LinkOutput> = Vec::new();
    loop {
        // Whatever a peer does, others on this thread get their turn.
        tokio::task::coop::consume_budget().await;
        tokio::select! {
            biased;
            ready = read.readable() => {
                if let Err(why) = ready {
                    return Some(why.into());
                }
                let filled = conn.fill(read, &mut outputs).await;
                if let Some(why) = host.peer_told(conn, &mut outputs) {
                    return Some(why.into());
                }
                if let Err(why) = filled {
                    return Some(why);
                }
            }
            ready = conn.writable() => {
                if let Err(why) = ready {
                    return Some(why.into());
                }
                conn.unblock();
                if let Err(why) = conn.flush() {
                    return Some(why.into());
                }
            }
            () = conn.woken() => {}
            () = host.at(conn.arm()) => {
                if let Some(why) = host.peer_time(conn) {
                    return Some(why.into());
                }
            }
        }
        if conn.is_closed() {
            return None;
        }
    }
}
