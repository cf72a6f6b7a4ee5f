use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use highwater_node::{Caller, ConnId, MachineId};
use highwater_protocol::ListenerKind;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use crate::host::Shared;
use crate::limits::ConnectionLimits;
use crate::mailbox::{Mail, NewConnection};
use crate::socket::pacing::unpace_local;

/// After the system refused to accept (no descriptors left, mostly), others get time to close.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Deals accepted connections to the threads where they live: those for clients round-robin to
/// the shards, those for controllers to control.
#[derive(Debug)]
pub(crate) struct Dealer {
    shared: Arc<Shared>,
    limits: Arc<ConnectionLimits>,
    next_id: Cell<u64>,
    next_shard: Cell<u16>,
}

impl Dealer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let settings = &shared.settings;
        let limits =
            ConnectionLimits::new(settings.connections_max, settings.connections_per_ip_max);
        Self {
            shared,
            limits,
            next_id: Cell::new(0),
            next_shard: Cell::new(0),
        }
    }

    /// Accepts on one listener until dropped.
    pub(crate) async fn accept(&self, listener: TcpListener, name: &str, kind: ListenerKind) {
        loop {
            self.limits.room().await;
            match listener.accept().await {
                Ok((stream, peer)) => self.deal(stream, peer, name, kind),
                // The peer gave up while it waited.
                Err(why) if why.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(why) => {
                    if let Some(dropped) = self.shared.quiet.allows(self.shared.clock.mono()) {
                        tracing::warn!(dropped, "cannot accept on listener {name}: {why}");
                    }
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }

    fn deal(&self, stream: TcpStream, peer: SocketAddr, name: &str, kind: ListenerKind) {
        let ip = peer.ip().to_canonical();
        let Some(counted) = self.limits.count(ip) else {
            if let Some(dropped) = self.shared.quiet.allows(self.shared.clock.mono()) {
                tracing::warn!(dropped, %peer, "connection refused: max.connections.per.ip");
            }
            return;
        };
        let stream = match self.prepare(stream) {
            Ok(stream) => stream,
            Err(why) => {
                tracing::debug!(%peer, "connection lost: {why}");
                return;
            }
        };
        let id = ConnId(self.next_id.get());
        self.next_id.set(id.0 + 1);
        let caller = Arc::new(Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: kind,
            listener_name: name.to_owned(),
            host: Some(ip),
        });
        let new = NewConnection {
            id,
            stream,
            caller,
            counted,
        };
        self.shared
            .links
            .send(self.machine(kind), Mail::Connection(new));
    }

    fn prepare(&self, stream: TcpStream) -> io::Result<std::net::TcpStream> {
        stream.set_nodelay(true)?;
        unpace_local(&stream);
        let socket = SockRef::from(&stream);
        socket.set_keepalive(true)?;
        if let Some(bytes) = self.shared.settings.send_buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        stream.into_std()
    }

    fn machine(&self, kind: ListenerKind) -> MachineId {
        match kind {
            ListenerKind::Controller => MachineId::Control,
            ListenerKind::Broker => {
                let shards = u16::try_from(self.shared.links.shards.len()).unwrap_or(u16::MAX);
                let shard = self.next_shard.get();
                self.next_shard.set((shard + 1) % shards.max(1));
                MachineId::Shard(shard)
            }
        }
    }
}
