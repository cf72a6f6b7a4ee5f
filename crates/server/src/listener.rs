use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use highwater_protocol::ListenerKind;
use socket2::{Domain, Protocol, Socket, Type};

use crate::settings::SocketSettings;

/// A listener that owns its port but does not accept yet: whoever connects is refused, as when
/// nobody is there.
#[derive(Debug)]
pub(crate) struct BoundListener {
    /// Its name in `listeners`.
    pub(crate) name: String,
    /// Who it is for.
    pub(crate) kind: ListenerKind,
    /// The real address: port 0 became a free port.
    pub(crate) address: SocketAddr,
    socket: Socket,
}

/// Why a listener cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The host name means no address here.
    #[error(
        "cannot listen on {host}:{port}: the name {host} has no address ({why}); \
         give an address of this machine"
    )]
    Unresolved {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the system said.
        why: io::Error,
    },
    /// Somebody else has the port.
    #[error(
        "cannot listen on {host}:{port}: another process listens there; stop it, or choose \
         another port (--listen HOST:PORT, or listeners= in the configuration)"
    )]
    InUse {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// The system refused.
    #[error("cannot listen on {host}:{port}: {why}; choose another address or port")]
    Refused {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the system said.
        why: io::Error,
    },
}

impl BoundListener {
    /// Takes the port. An empty `host` means all addresses.
    pub(crate) fn bind(
        name: String,
        kind: ListenerKind,
        host: &str,
        port: u16,
        settings: &SocketSettings,
    ) -> Result<Self, ListenError> {
        let wrap = |why: io::Error| {
            let host = host.to_owned();
            if why.kind() == io::ErrorKind::AddrInUse {
                ListenError::InUse { host, port }
            } else {
                ListenError::Refused { host, port, why }
            }
        };
        let socket = if host.is_empty() {
            bound_to_all(port, settings)
        } else {
            bound(resolve(host, port)?, settings)
        };
        let socket = socket.map_err(wrap)?;
        let address = socket.local_addr().and_then(|address| {
            address
                .as_socket()
                .ok_or_else(|| io::Error::other("no internet address"))
        });
        Ok(Self {
            name,
            kind,
            address: address.map_err(wrap)?,
            socket,
        })
    }

    /// Begins to accept. Only inside a tokio runtime.
    pub(crate) fn listen(
        &self,
        settings: &SocketSettings,
    ) -> Result<tokio::net::TcpListener, ListenError> {
        let start = || {
            self.socket.listen(settings.backlog)?;
            tokio::net::TcpListener::from_std(self.socket.try_clone()?.into())
        };
        start().map_err(|why: io::Error| {
            let (host, port) = (self.address.ip().to_string(), self.address.port());
            if why.kind() == io::ErrorKind::AddrInUse {
                ListenError::InUse { host, port }
            } else {
                ListenError::Refused { host, port, why }
            }
        })
    }
}

/// All addresses of this machine, of IPv6 and IPv4 alike where the system has both, as in Java.
fn bound_to_all(port: u16, settings: &SocketSettings) -> io::Result<Socket> {
    match bound(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), settings) {
        Err(why) if why.kind() != io::ErrorKind::AddrInUse => {
            bound(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), settings)
        }
        done => done,
    }
}

fn bound(address: SocketAddr, settings: &SocketSettings) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // Accepted sockets inherit the receive buffer, which has to be known before the handshake.
    if let Some(bytes) = settings.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, ListenError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let unresolved = |why| ListenError::Unresolved {
        host: host.to_owned(),
        port,
        why,
    };
    let mut found = (bare, port).to_socket_addrs().map_err(unresolved)?;
    found
        .next()
        .ok_or_else(|| unresolved(io::Error::other("no address")))
}
