use std::net::IpAddr;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use tokio::net::TcpStream;

/// Congestion controls that release what is sent by timers.
const PACED: &str = "bbr";
/// What takes their place, in this order. Any process may choose `reno`; the other is the usual
/// choice of Linux.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// Sends at once, without the timers of a paced congestion control, what goes to a peer on this
/// machine. Before anything is sent.
///
/// Pacing spares the queues of routers, and there are none in between. Over loopback its timers
/// cost more than all the bytes: where `bbr` was the system's choice, a hot fetch took 2.5 times
/// the CPU of a bare `sendfile` (0.447 s/GB), and 1.3 times (0.205 s/GB) with `cubic`. Connections
/// to others keep what the system gives them, as does a system that does not pace.
pub(crate) fn unpace_local(stream: &TcpStream) {
    let (Ok(ours), Ok(theirs)) = (stream.local_addr(), stream.peer_addr()) else {
        return;
    };
    if !is_local(ours.ip(), theirs.ip()) {
        return;
    }
    // Whoever cannot be asked is left alone.
    let is_paced = tcp_congestion(stream).is_ok_and(|name| name.starts_with(PACED));
    if !is_paced {
        return;
    }
    let mut done = UNPACED.iter().map(|name| set_tcp_congestion(stream, name));
    if !done.any(|it| it.is_ok()) {
        tracing::debug!(peer = %theirs, "a connection of this machine to itself stays paced");
    }
}

/// Whether both ends are on one machine: a loopback address, or an own address as seen from
/// itself.
fn is_local(ours: IpAddr, theirs: IpAddr) -> bool {
    let (ours, theirs) = (ours.to_canonical(), theirs.to_canonical());
    theirs.is_loopback() || ours == theirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_own_addresses_are_local() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (ours, theirs) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("::ffff:10.0.0.7", "::ffff:10.0.0.7"),
            ("fd00::7", "fd00::7"),
        ] {
            assert!(is_local(ip(ours), ip(theirs)), "{ours} {theirs}");
        }
        for (ours, theirs) in [("10.0.0.7", "10.0.0.8"), ("::ffff:10.0.0.7", "10.0.0.70")] {
            assert!(!is_local(ip(ours), ip(theirs)), "{ours} {theirs}");
        }
    }

    #[tokio::test]
    async fn a_connection_of_this_machine_to_itself_is_not_paced() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let to = listener.local_addr().expect("an address");
        let _client = TcpStream::connect(to).await.expect("connects");
        let (stream, _) = listener.accept().await.expect("a connection");
        // Where the system has it; where it has not, nothing was paced.
        let could_pace = set_tcp_congestion(&stream, PACED).is_ok();
        unpace_local(&stream);
        let name = tcp_congestion(&stream).expect("known");
        assert!(
            !name.starts_with(PACED),
            "{name}, paced before: {could_pace}"
        );
    }
}
