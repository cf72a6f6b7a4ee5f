//! A thread with real sockets around a machine that answers what a test tells it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use highwater_disk::{Blocking, Disk as _, DiskFile as _, FileDisk, FileFile, OpenMode};
use highwater_metadata::config::{BrokerConfig, Property};
use highwater_node::{Answer, Effect, Input, Machine, MachineId, Piece, Region};
use highwater_protocol::ListenerKind;
use highwater_types::{Millis, Mono, NodeId, Now};
use tokio::sync::mpsc;

use crate::accept::Dealer;
use crate::clock::Clock;
use crate::host::Shared;
use crate::jobs::JobPool;
use crate::listener::BoundListener;
use crate::mailbox::{Links, Mail};
use crate::memory::{BufferPool, InboundMemory};
use crate::node::start_machine;
use crate::quiet::Quiet;
use crate::settings::SocketSettings;

mod peers;

type Answers = Arc<Mutex<Box<dyn FnMut() -> Answer<FileFile> + Send>>>;

/// Answers every request with what the test's closure makes.
struct Scripted(Answers);

impl Machine<FileDisk> for Scripted {
    fn step(&mut self, _now: Now, input: Input<FileDisk>, out: &mut Vec<Effect<FileDisk>>) {
        if let Input::Request(incoming) = input {
            let answer = self.0.lock().expect("lock")();
            out.push(Effect::Answer {
                ticket: incoming.ticket,
                answer,
            });
        }
    }

    fn next_deadline(&self) -> Option<Mono> {
        None
    }
}

struct Server {
    shared: Arc<Shared>,
    memory: Arc<InboundMemory>,
    address: std::net::SocketAddr,
    machine: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(
        keys: &[(&str, &str)],
        answers: impl FnMut() -> Answer<FileFile> + Send + 'static,
    ) -> Self {
        let properties: Vec<Property> = keys
            .iter()
            .map(|&(key, value)| Property {
                line: 0,
                key: key.to_owned(),
                value: value.to_owned(),
            })
            .collect();
        let (config, _) = BrokerConfig::new(&properties).expect("good keys");
        let settings = SocketSettings::new(&config);
        let (control, _control_mail) = mpsc::unbounded_channel();
        let (shard, mail) = mpsc::unbounded_channel();
        let (told, _) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            node_id: NodeId::new(1),
            links: Links {
                control,
                shards: [shard].into(),
            },
            pools: Vec::new(),
            warmers: JobPool::new("cold-reads", 1),
            settings: settings.clone(),
            quiet: Quiet::default(),
            told,
            stop: tokio::sync::Notify::default(),
        });
        let memory = InboundMemory::new(settings.inbound_bytes_max);
        let buffers = BufferPool::new(Arc::clone(&memory), 1 << 20);
        let machine = Box::new(Scripted(Arc::new(Mutex::new(Box::new(answers)))));
        let thread = start_machine(
            Arc::clone(&shared),
            MachineId::Shard(0),
            machine,
            mail,
            buffers,
        )
        .expect("a thread");
        let kind = ListenerKind::Broker;
        let bound = BoundListener::bind("PLAINTEXT".to_owned(), kind, "127.0.0.1", 0, &settings)
            .expect("a port");
        let (address, for_dealer) = (bound.address, Arc::clone(&shared));
        std::thread::spawn(move || {
            let runtime = crate::node::runtime("test").expect("runtime");
            runtime.block_on(async {
                let listener = bound.listen(&settings).expect("listens");
                Dealer::new(for_dealer)
                    .accept(listener, "PLAINTEXT", kind)
                    .await;
            });
        });
        let server = Self {
            shared,
            memory,
            address,
            machine: Some(thread),
        };
        // The listener opens on its own thread.
        while TcpStream::connect(server.address).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        server
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connects");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a socket");
        stream
    }
}

impl Server {
    /// Ends the machine's thread, as at the end of a graceful stop.
    fn exit(&mut self) -> std::thread::JoinHandle<()> {
        self.shared.links.send_all(|| Mail::Exit);
        self.machine.take().expect("once")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.links.send_all(|| Mail::Exit);
    }
}

/// ApiVersions v0 with an empty client id.
const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 9, 0xff, 0xff];

fn ask(stream: &mut TcpStream) -> Option<Vec<u8>> {
    stream.write_all(&REQUEST).expect("sends");
    receive(stream)
}

/// The body of one answer; `None` when the connection ends first.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes(head[..4].try_into().expect("4 bytes"));
    assert_eq!(head[4..], [0, 0, 0, 9], "the correlation id");
    let mut body = vec![0; length as usize - 4];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

fn file_of(dir: &Path, bytes: &[u8]) -> Arc<FileFile> {
    let disk = FileDisk::open(dir).expect("directory");
    let file = disk
        .open(Path::new("00000000000000000000.log"), OpenMode::Create)
        .expect("file");
    file.write_at(0, &[std::io::IoSlice::new(bytes)])
        .expect("writes");
    file.sync(&Blocking::enter()).expect("syncs");
    file
}

fn pattern(len: usize) -> Vec<u8> {
    (0_u8..253)
        .map(|at| at.wrapping_mul(7))
        .cycle()
        .take(len)
        .collect()
}

fn region(file: &Arc<FileFile>, position: u64, len: u64) -> Piece<FileFile> {
    Piece::Region(Region {
        file: Arc::clone(file),
        position,
        len,
    })
}

#[test]
fn bytes_and_regions_of_all_sizes_arrive_as_they_are() {
    let root = tempfile::tempdir().expect("temporary directory");
    let bytes = pattern(6 << 20);
    let file = file_of(root.path(), &bytes);
    let spans = [
        (0, 10),
        (1, 16_383),
        (5, 16_384),
        (4_096, 3 << 20),
        (9, 100),
        (1 << 20, 5 << 20),
    ];
    let server = Server::start(&[], move || {
        let mut pieces = Vec::new();
        for (position, len) in spans {
            pieces.push(Piece::Bytes(b"head".to_vec().into()));
            pieces.push(region(&file, position, len));
        }
        Answer::pieces(pieces)
    });
    let at = |position: u64| usize::try_from(position).expect("small");
    let mut expected = Vec::new();
    for (position, len) in spans {
        expected.extend_from_slice(b"head");
        let (from, to) = (at(position), at(position + len));
        expected.extend_from_slice(&bytes[from..to]);
    }
    let mut stream = server.connect();
    for _ in 0..3 {
        assert!(ask(&mut stream).as_ref() == Some(&expected));
    }
}

#[test]
fn cold_regions_are_read_by_a_job() {
    let root = tempfile::tempdir().expect("temporary directory");
    let bytes = pattern(3 << 20);
    let file = file_of(root.path(), &bytes);
    let cold = Arc::clone(&file);
    let server = Server::start(&[], move || {
        let whole = std::num::NonZero::new(3 << 20);
        rustix::fs::fadvise(&*cold, 0, whole, rustix::fs::Advice::DontNeed).expect("advice");
        Answer::pieces(vec![
            region(&cold, 100, 1000),
            region(&cold, 4096, (3 << 20) - 4096),
        ])
    });
    let mut stream = server.connect();
    for _ in 0..3 {
        let body = ask(&mut stream).expect("an answer");
        assert!(body[..1000] == bytes[100..1100] && body[1000..] == bytes[4096..]);
    }
}

#[test]
fn a_file_that_was_cut_closes_the_connection() {
    let root = tempfile::tempdir().expect("temporary directory");
    let file = file_of(root.path(), &pattern(200_000));
    for (position, len) in [(0, 250_000), (195_000, 6_000), (200_000, 20_000)] {
        let file = Arc::clone(&file);
        let server = Server::start(&[], move || {
            Answer::pieces(vec![region(&file, position, len)])
        });
        let mut stream = server.connect();
        assert_eq!(ask(&mut stream), None);
    }
}

#[test]
fn earlier_answers_leave_before_the_close() {
    let mut left = 3;
    let server = Server::start(&[], move || {
        left -= 1;
        if left > 0 {
            Answer::bytes(b"body".to_vec().into())
        } else {
            Answer::close()
        }
    });
    let mut stream = server.connect();
    stream.write_all(&[REQUEST; 5].concat()).expect("sends");
    assert_eq!(receive(&mut stream), Some(b"body".to_vec()));
    assert_eq!(receive(&mut stream), Some(b"body".to_vec()));
    assert_eq!(receive(&mut stream), None);
}

/// More than the socket's buffers take, so that most of it still waits in the connection.
#[test]
fn what_was_answered_leaves_before_the_thread_ends() {
    let root = tempfile::tempdir().expect("temporary directory");
    let bytes = pattern(24 << 20);
    let file = file_of(root.path(), &bytes);
    let (answered, asked) = std::sync::mpsc::channel();
    let mut server = Server::start(&[], move || {
        answered.send(()).expect("the test waits");
        Answer::pieces(vec![
            Piece::Bytes(pattern(12 << 20).into()),
            region(&file, 0, 24 << 20),
        ])
    });
    let mut stream = server.connect();
    stream.write_all(&REQUEST).expect("sends");
    asked.recv().expect("a request");
    // What was sent but not asked yet must not take back what is on its way.
    stream.write_all(&[REQUEST; 100].concat()).expect("sends");
    let thread = server.exit();
    std::thread::sleep(Duration::from_millis(50));
    let body = receive(&mut stream).expect("the whole answer");
    assert!(body[..12 << 20] == pattern(12 << 20) && body[12 << 20..] == bytes);
    assert_eq!(receive(&mut stream), None, "and the end");
    thread.join().expect("ends");
}

#[test]
fn a_peer_that_takes_nothing_does_not_hold_up_the_end() {
    let mut server = Server::start(&[], || Answer::bytes(pattern(64 << 20).into()));
    let mut stream = server.connect();
    stream.write_all(&REQUEST).expect("sends");
    while server.memory.used() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = std::time::Instant::now();
    let thread = server.exit();
    thread.join().expect("ends");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_mute_pauses_reads_and_ends() {
    let server = Server::start(&[], || Answer {
        mute: Millis::new(150),
        ..Answer::bytes(b"body".to_vec().into())
    });
    let mut stream = server.connect();
    let began = std::time::Instant::now();
    stream.write_all(&[REQUEST; 3].concat()).expect("sends");
    for _ in 0..3 {
        assert!(receive(&mut stream).is_some());
    }
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(10),
        "{took:?}"
    );
}

#[test]
fn re_01_memory_comes_back_when_connections_go() {
    let server = Server::start(&[], || Answer::bytes(b"body".to_vec().into()));
    let mut streams: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream
            .write_all(&100_000_000_u32.to_be_bytes())
            .expect("sends");
        stream.write_all(&vec![0; 300_000]).expect("sends");
    }
    let late = std::time::Instant::now() + Duration::from_secs(20);
    while server.memory.used() < 50 * 300_000 && std::time::Instant::now() < late {
        std::thread::sleep(Duration::from_millis(5));
    }
    let held = server.memory.used();
    assert!((50 * 300_000..50 * 1_300_000).contains(&held), "{held}");
    drop(streams);
    while server.memory.used() > 0 && std::time::Instant::now() < late {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.memory.used(), 0);
}
