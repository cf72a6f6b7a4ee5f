use socket2::SockRef;
use tokio::net::TcpStream;

/// Congestion controls that release what is sent by timers.
const PACED: &[u8] = b"bbr";
/// What takes their place, in this order. Any process may choose `reno`; the other is the usual
/// choice of Linux.
const UNPACED: [&[u8]; 2] = [b"cubic", b"reno"];

/// Sends at once, without the timers of a paced congestion control, what goes to a broker on this
/// machine: pacing spares the queues of routers, and there are none in between, while its timers
/// cost both ends more than the bytes. A system that does not pace, and connections to others,
/// stay as they are.
pub(super) fn unpace_local(stream: &TcpStream) {
    let (Ok(ours), Ok(theirs)) = (stream.local_addr(), stream.peer_addr()) else {
        return;
    };
    let (ours, theirs) = (ours.ip().to_canonical(), theirs.ip().to_canonical());
    if !theirs.is_loopback() && ours != theirs {
        return;
    }
    let socket = SockRef::from(stream);
    // Whoever cannot be asked is left alone.
    let is_paced = socket
        .tcp_congestion()
        .is_ok_and(|name| name.starts_with(PACED));
    if is_paced {
        let mut done = UNPACED.iter().map(|name| socket.set_tcp_congestion(name));
        if !done.any(|it| it.is_ok()) {
            tracing::debug!(peer = %theirs, "a connection within this machine stays paced");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_within_this_machine_is_not_paced() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let socket = SockRef::from(&stream);
        // Where the system has it; where it has not, nothing was paced.
        let could_pace = socket.set_tcp_congestion(PACED).is_ok();
        unpace_local(&stream);
        let name = socket.tcp_congestion().unwrap();
        assert!(
            !name.starts_with(PACED),
            "{name:?}, paced before: {could_pace}"
        );
    }
}
