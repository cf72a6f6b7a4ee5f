use std::rc::Rc;
use std::time::Duration;

use tokio::net::tcp::OwnedReadHalf;

use crate::conn::{Conn, Next, Wanted};
use crate::host::Host;

/// The task of one connection: waits for its socket, for its machine and for time, and does what
/// each of them allows. All state is in [`Conn`].
pub(crate) async fn serve(host: Rc<Host>, conn: Rc<Conn>, mut read: OwnedReadHalf) {
    loop {
        // Whatever a connection does, others on this thread get their turn.
        tokio::task::coop::consume_budget().await;
        match conn.next(host.shared.clock.mono()) {
            Next::Close => break,
            Next::Feed => host.feed(&conn),
            Next::Flush => {
                tokio::task::yield_now().await;
                host.flush(&conn);
            }
            Next::Wait(wanted) => {
                if !wait(&host, &conn, &mut read, wanted).await {
                    break;
                }
            }
        }
    }
    let awaited = conn.is_awaited();
    host.closed(conn.id);
    drop(conn);
    linger(read).await;
    if awaited {
        host.taken();
    }
}

/// Waits for one event and performs it. `false`: the connection is lost.
async fn wait(host: &Host, conn: &Rc<Conn>, read: &mut OwnedReadHalf, wanted: Wanted) -> bool {
    let until = wanted
        .until
        .map(|until| host.shared.clock.instant(until).into());
    tokio::select! {
        biased;
        () = conn.wake().notified() => {
            conn.woken();
            true
        }
        ready = read.readable(), if wanted.read => {
            conn.woken();
            if ready.is_err() {
                return false;
            }
            let going_on = conn.fill(read, host.shared.clock.mono()).await;
            if matches!(going_on, Ok(true)) {
                host.feed(conn);
                return true;
            }
            false
        }
        ready = conn.writable(), if wanted.write => {
            conn.woken();
            conn.unblock();
            host.flush(conn);
            ready.is_ok()
        }
        () = sleep_until(until), if until.is_some() => {
            conn.woken();
            true
        }
    }
}

async fn sleep_until(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Reads away what the peer had sent before it saw the close: a socket that is closed with unread
/// bytes resets the connection, and the peer may then lose an answer that was sent before.
async fn linger(read: OwnedReadHalf) {
    let mut left: usize = 256 * 1024;
    let drained = async {
        let mut away = [0; 2048];
        while left > 0 {
            if read.readable().await.is_err() {
                return;
            }
            match read.try_read(&mut away) {
                Ok(0) => return,
                Ok(got) => left = left.saturating_sub(got),
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    // The peer has this long to close its side.
    let _late = tokio::time::timeout(Duration::from_millis(500), drained).await;
}
