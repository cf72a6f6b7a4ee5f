//! A way between brokers that can be cut: whoever connects to what a broker advertises to others
//! comes through here.
//!
//! A cut is what a network without a way is: nothing is refused and nothing is closed, bytes just
//! do not arrive until it is healed. What was on its way arrives late.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use anyhow::{Context as _, Result};

/// Which ways are cut, and which process is which broker.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    cut: BTreeSet<(i32, i32)>,
    processes: BTreeMap<i32, u32>,
}

impl Ways {
    /// No byte passes between the two from now on.
    pub(crate) fn cut(&self, one: i32, other: i32) {
        self.lock().cut.insert(way(one, other));
    }

    /// All ways are open, and what waits goes on.
    pub(crate) fn heal(&self) {
        self.lock().cut.clear();
        self.changed.notify_all();
    }

    /// Broker `id` is this process now.
    pub(crate) fn set_process(&self, id: i32, process: u32) {
        self.lock().processes.insert(id, process);
    }

    fn wait_for(&self, one: i32, other: i32) {
        let mut state = self.lock();
        while state.cut.contains(&way(one, other)) {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        let locked = self.state.lock();
        locked.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

const fn way(one: i32, other: i32) -> (i32, i32) {
    if one < other {
        (one, other)
    } else {
        (other, one)
    }
}

/// Listens on `port` for broker `id`, whose own listener is at `behind`, for as long as the program
/// lives.
pub(crate) fn open(ways: &Arc<Ways>, id: i32, port: u16, behind: u16) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).context("a proxy's port")?;
    let ways = Arc::clone(ways);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let ways = Arc::clone(&ways);
            std::thread::spawn(move || pass(&ways, id, behind, &stream).ok());
        }
    });
    Ok(())
}

fn pass(ways: &Arc<Ways>, id: i32, behind: u16, stream: &TcpStream) -> Result<()> {
    let from = origin(ways, stream).unwrap_or(0);
    ways.wait_for(from, id);
    let onward = TcpStream::connect(("127.0.0.1", behind))?;
    stream.set_nodelay(true)?;
    onward.set_nodelay(true)?;
    let (answers_to, answers_from) = (stream.try_clone()?, onward.try_clone()?);
    let back = Arc::clone(ways);
    std::thread::spawn(move || copy(&back, (from, id), &answers_from, &answers_to));
    copy(ways, (from, id), stream, &onward);
    Ok(())
}

fn copy(ways: &Ways, (one, other): (i32, i32), mut source: &TcpStream, mut sink: &TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = source.read(&mut buffer).unwrap_or(0);
        ways.wait_for(one, other);
        let bytes = buffer.get(..length).unwrap_or_default();
        if bytes.is_empty() || sink.write_all(bytes).is_err() {
            // Both directions end: a broker that was killed answers nobody.
            sink.shutdown(Shutdown::Both).ok();
            source.shutdown(Shutdown::Both).ok();
            return;
        }
    }
}

/// Which broker's process opened this connection: the owner of its other end.
fn origin(ways: &Ways, stream: &TcpStream) -> Option<i32> {
    let here = stream.local_addr().ok()?.port();
    let there = stream.peer_addr().ok()?.port();
    let inode = inode(&std::fs::read_to_string("/proc/net/tcp").ok()?, there, here)?;
    let socket = format!("socket:[{inode}]");
    let processes = ways.lock().processes.clone();
    let owner = processes.iter().find(|(_, process)| {
        let files = std::fs::read_dir(format!("/proc/{process}/fd"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| {
            std::fs::read_link(file.path()).is_ok_and(|it| it.as_path() == Path::new(&socket))
        })
    });
    owner.map(|(id, _)| *id)
}

/// The inode of the socket between two ports of loopback, in the kernel's table.
fn inode(table: &str, local: u16, remote: u16) -> Option<u64> {
    let loopback = |port: u16| format!("0100007F:{port:04X}");
    let (local, remote) = (loopback(local), loopback(remote));
    let row = table.lines().find(|row| {
        let mut words = row.split_whitespace().skip(1);
        words.next() == Some(&local) && words.next() == Some(&remote)
    })?;
    row.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4E21 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0
   1: 0100007F:A1B2 0100007F:4E21 01 00000000:00000000 00:00000000 00000000     0        0 99 1 0
";

    #[test]
    fn the_owner_of_the_other_end_is_found_by_its_ports() {
        assert_eq!(inode(TABLE, 0xA1B2, 0x4E21), Some(99));
        assert_eq!(inode(TABLE, 0x4E21, 0xA1B2), None);
    }

    #[test]
    fn a_cut_way_holds_bytes_back_until_it_is_healed() {
        let ways = Arc::new(Ways::default());
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = proxy.local_addr().unwrap().port();
        drop(proxy);
        open(&ways, 2, port, server.local_addr().unwrap().port()).unwrap();
        ways.set_process(1, std::process::id());
        ways.cut(2, 1);
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"late").unwrap();
        server.set_nonblocking(true).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(server.accept().is_err(), "a cut way lets through");
        ways.heal();
        server.set_nonblocking(false).unwrap();
        let mut arrived = [0; 4];
        server.accept().unwrap().0.read_exact(&mut arrived).unwrap();
        assert_eq!(&arrived, b"late");
    }
}
