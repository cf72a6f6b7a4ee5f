use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use highwater_disk::{Blocking, FileDisk};
use highwater_node::{BootError, Input, Machine, MachineId, Node, NodeConfig};
use highwater_protocol::ListenerKind;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::abort::AbortOnPanic;
use crate::accept::Dealer;
use crate::clock::Clock;
use crate::driver;
use crate::host::{Host, Shared, Told};
use crate::jobs::JobPool;
use crate::listener::{BoundListener, ListenError};
use crate::mailbox::{Links, Mail, Mailbox};
use crate::memory::{BufferPool, InboundMemory};
use crate::quiet::Quiet;
use crate::settings::SocketSettings;

/// Files that a node needs to start and to hold a few partitions and connections.
const FILES_MIN: usize = 64;
/// A signal that repeats another within this time is the same one, sent to the process and to its
/// group, as `timeout` and terminals do.
const SIGNAL_ECHO: Duration = Duration::from_secs(1);
/// Longest that a graceful stop may take.
const STOP_MAX: Duration = Duration::from_secs(60);
/// Threads for the blocking work of one log directory beyond those that open logs.
const JOB_THREADS: usize = 2;
/// Unused read buffers that one thread keeps, in bytes.
const IDLE_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A node that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Addresses for clients, HOST:PORT.
    pub bootstrap: Vec<String>,
    /// The cluster.
    pub cluster_id: String,
    /// The log directories, as the config names them.
    pub data: Vec<String>,
}

/// Why a node does not run, or does not run any more. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A port cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The node does not come up.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The system refused something that every node needs.
    #[error("cannot {what}: {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: io::Error,
    },
    /// The process may not have enough files open.
    #[error(
        "this process may have {limit} files open, but a node needs {FILES_MIN} at least, and some \
         for each partition and connection: raise the limit (ulimit -n)"
    )]
    Files {
        /// What the system allows.
        limit: usize,
    },
    /// The node gave up by itself.
    #[error("the node stopped by itself; the last error in its log says why")]
    GaveUp,
    /// A second signal came.
    #[error(
        "stopped at once by a second signal; the next start recovers what was not closed cleanly"
    )]
    Forced,
    /// The graceful stop took too long.
    #[error(
        "the node did not stop within {} s and was ended; the next start recovers",
        STOP_MAX.as_secs()
    )]
    Stuck,
}

/// A node's listeners: they own their ports, but accept nobody before the node serves.
#[derive(Debug)]
pub struct BoundNode {
    config: NodeConfig,
    settings: SocketSettings,
    listeners: Vec<BoundListener>,
}

impl BoundNode {
    /// Takes the ports, so that a port in use is known before anything is written, and the real
    /// port is known before the broker registers.
    ///
    /// # Errors
    /// When a port cannot be had.
    pub fn bind(mut config: NodeConfig) -> Result<Self, RunError> {
        let mut settings = SocketSettings::new(&config.broker);
        let files = raise_file_limit();
        if files < FILES_MIN {
            return Err(RunError::Files { limit: files });
        }
        settings.connections_max = settings.connections_max.min(files / 2);
        let mut listeners = Vec::new();
        for listener in config.listeners.clone() {
            let (name, kind) = (listener.name, listener.kind);
            let (host, port) = (listener.host, listener.port);
            let bound = BoundListener::bind(name, kind, &host, port, &settings)?;
            config.set_bound_port(&bound.name, bound.address.port());
            listeners.push(bound);
        }
        Ok(Self {
            config,
            settings,
            listeners,
        })
    }

    /// The config with the real ports.
    #[must_use]
    pub const fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Boots on formatted directories, serves, and returns after SIGTERM or Ctrl-C once everything
    /// is flushed and closed. `on_ready` is called when the first client can connect.
    ///
    /// # Errors
    /// When the node does not come up or does not stop gracefully.
    pub fn run(self, dirs: Vec<FileDisk>, on_ready: impl FnOnce(&Ready)) -> Result<(), RunError> {
        let b = Blocking::enter();
        let clock = Clock::start();
        let pools = (0..dirs.len()).map(|number| self.pool(number)).collect();
        let ready = self.ready();
        let runtime = runtime("start the main runtime")?;
        let _taken = runtime.block_on(async { take_file_size_signal() })?;
        let (config, seed) = (self.config.clone(), random_seed()?);
        let node = highwater_node::boot(config, dirs, clock.now(), seed, &b)?;
        for entry in &node.events {
            crate::host::log(entry);
        }
        let ready = Ready {
            cluster_id: node.cluster_id.clone(),
            ..ready
        };
        let Machines {
            threads,
            shared,
            told,
        } = self.start_machines(node, clock, pools)?;
        let done = LocalSet::new().block_on(
            &runtime,
            supervise(Arc::clone(&shared), told, self.listeners, ready, on_ready),
        );
        if done.is_ok() {
            shared.links.send_all(|| Mail::Exit);
            for pool in &shared.pools {
                pool.close();
            }
            for thread in threads {
                let _aborted = thread.join();
            }
        }
        done
    }

    fn pool(&self, number: usize) -> JobPool {
        let opening = self
            .config
            .broker
            .count("num.recovery.threads.per.data.dir");
        let threads = usize::try_from(opening)
            .unwrap_or(1)
            .saturating_add(JOB_THREADS);
        JobPool::new(format!("disk-{number}"), threads)
    }

    fn ready(&self) -> Ready {
        let clients = self
            .config
            .advertised
            .iter()
            .filter(|it| it.kind == ListenerKind::Broker);
        let bootstrap = clients.map(|it| {
            let v6 = it.host.contains(':');
            if v6 {
                format!("[{}]:{}", it.host, it.port)
            } else {
                format!("{}:{}", it.host, it.port)
            }
        });
        let data = self.config.log_dirs.clone();
        Ready {
            bootstrap: bootstrap.collect(),
            cluster_id: String::new(),
            data,
        }
    }

    fn start_machines(
        &self,
        node: Node<FileDisk>,
        clock: Clock,
        pools: Vec<JobPool>,
    ) -> Result<Machines, RunError> {
        let (control, control_mail) = mpsc::unbounded_channel();
        let (shards, shard_mails): (Vec<Mailbox>, Vec<_>) = node
            .shards
            .iter()
            .map(|_| mpsc::unbounded_channel())
            .unzip();
        let (tell, told) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            clock,
            node_id: node.node_id,
            links: Links {
                control,
                shards: shards.into(),
            },
            pools,
            warmers: JobPool::new("cold-reads", JOB_THREADS),
            settings: self.settings.clone(),
            quiet: Quiet::default(),
            told: tell,
        });
        let memory = InboundMemory::new(self.settings.inbound_bytes_max);
        let start = |id, machine, mail| {
            let buffers = BufferPool::new(Arc::clone(&memory), IDLE_BUFFER_BYTES_MAX);
            start_machine(Arc::clone(&shared), id, machine, mail, buffers)
        };
        let mut threads = vec![start(
            MachineId::Control,
            Box::new(node.control) as BoxMachine,
            control_mail,
        )?];
        for (number, (shard, mail)) in node.shards.into_iter().zip(shard_mails).enumerate() {
            let number = u16::try_from(number).expect("num.shards is 64 at most");
            threads.push(start(MachineId::Shard(number), Box::new(shard), mail)?);
        }
        Ok(Machines {
            threads,
            shared,
            told,
        })
    }
}

/// The running threads of a node.
struct Machines {
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
    told: mpsc::UnboundedReceiver<Told>,
}

type BoxMachine = Box<dyn Machine<FileDisk>>;

pub(crate) fn start_machine(
    shared: Arc<Shared>,
    id: MachineId,
    machine: BoxMachine,
    mail: mpsc::UnboundedReceiver<Mail>,
    buffers: Arc<BufferPool>,
) -> Result<JoinHandle<()>, RunError> {
    let name = match id {
        MachineId::Control => "control".to_owned(),
        MachineId::Shard(number) => format!("shard-{number}"),
    };
    let runtime = runtime("start a machine's runtime")?;
    let run = move || {
        let _abort = AbortOnPanic;
        let host = Host::new(shared, id, machine, buffers);
        LocalSet::new().block_on(&runtime, driver::drive(host, mail));
    };
    let started = thread::Builder::new().name(name).spawn(run);
    started.map_err(|why| RunError::System {
        what: "start a machine's thread",
        why,
    })
}

pub(crate) fn runtime(what: &'static str) -> Result<tokio::runtime::Runtime, RunError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .build()
        .map_err(|why| RunError::System { what, why })
}

/// The life of the node from the outside: opens the listeners when control says that the node
/// serves, and stops it when a signal comes.
async fn supervise(
    shared: Arc<Shared>,
    mut told: mpsc::UnboundedReceiver<Told>,
    listeners: Vec<BoundListener>,
    ready: Ready,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), RunError> {
    let mut signals = Signals::new()?;
    let dealer = std::rc::Rc::new(Dealer::new(Arc::clone(&shared)));
    let mut accepting = Vec::new();
    let mut on_ready = Some(on_ready);
    loop {
        tokio::select! {
            () = signals.next() => break,
            news = told.recv() => match news {
                Some(Told::Serving(kind)) => {
                    for bound in listeners.iter().filter(|it| it.kind == kind) {
                        let listener = bound.listen(&shared.settings)?;
                        let (dealer, name) = (std::rc::Rc::clone(&dealer), bound.name.clone());
                        accepting.push(tokio::task::spawn_local(async move {
                            dealer.accept(listener, &name, kind).await;
                        }));
                    }
                    if kind == ListenerKind::Broker
                        && let Some(on_ready) = on_ready.take()
                    {
                        on_ready(&ready);
                    }
                }
                // Control ended by itself, or all threads did.
                Some(Told::Stopped) | None => return Err(RunError::GaveUp),
            },
        }
    }
    tracing::info!("stopping");
    for task in accepting {
        task.abort();
    }
    drop(listeners);
    shared
        .links
        .send(MachineId::Control, Mail::Input(Input::Stop));
    let stopped = async {
        while let Some(news) = told.recv().await {
            if news == Told::Stopped {
                return;
            }
        }
    };
    tokio::select! {
        () = stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        () = signals.second() => Err(RunError::Forced),
        () = tokio::time::sleep(STOP_MAX) => Err(RunError::Stuck),
    }
}

/// SIGTERM and Ctrl-C.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self, RunError> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|why| RunError::System {
                what: "listen for signals",
                why,
            })
        };
        let terminate = listen(SignalKind::terminate())?;
        Ok(Self {
            terminate,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// One more than the one that is being obeyed.
    async fn second(&mut self) {
        let first = tokio::time::Instant::now();
        while first.elapsed() < SIGNAL_ECHO {
            self.next().await;
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Raises the number of files that this process may have open to what it is allowed to, as a JVM
/// does, and gives it. Connections may have half of it: logs need the rest, and nobody outside
/// may take it from them.
fn raise_file_limit() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_err() {
        limit.current = before;
    }
    let files = limit.current.and_then(|files| usize::try_from(files).ok());
    files.unwrap_or(usize::MAX)
}

/// Takes the signal of a write beyond the limit of file sizes (`ulimit -f`), which would end the
/// process: the write then fails like one to a full disk.
fn take_file_size_signal() -> Result<tokio::signal::unix::Signal, RunError> {
    use tokio::signal::unix::{SignalKind, signal};
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    signal(kind).map_err(|why| RunError::System {
        what: "take signals",
        why,
    })
}

/// Randomness of the system, for ids and jitter.
///
/// # Errors
/// When the system has none.
pub fn random_seed() -> Result<[u8; 32], RunError> {
    let mut seed = [0; 32];
    let read = std::fs::File::open(PathBuf::from("/dev/urandom"))
        .and_then(|mut file| file.read_exact(&mut seed));
    read.map_err(|why| RunError::System {
        what: "read random bytes",
        why,
    })?;
    Ok(seed)
}

/// Both clocks of a process that runs no node, for offline commands.
#[must_use]
pub fn now() -> highwater_types::Now {
    Clock::start().now()
}
