use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use highwater_disk::{Blocking, FileDisk};
use highwater_node::{BootError, Machine, MachineId, Node, NodeConfig};
use highwater_protocol::ListenerKind;
use highwater_types::NodeId;
use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;

use crate::abort::AbortOnPanic;
use crate::clock::Clock;
use crate::driver;
use crate::host::{Host, Shared, Told};
use crate::jobs::JobPool;
use crate::listener::{BoundListener, ListenError};
use crate::mailbox::{Links, Mail, Mailbox};
use crate::memory::{BufferPool, InboundMemory};
use crate::quiet::Quiet;
use crate::run::run_all;
use crate::settings::SocketSettings;

/// Files that a node needs to start and to hold a few partitions and connections.
const FILES_MIN: usize = 64;
/// Longest that the graceful stop of a node may take.
pub(crate) const STOP_MAX: Duration = Duration::from_secs(60);
/// Threads for the blocking work of one log directory beyond those that open logs.
const JOB_THREADS: usize = 2;
/// Unused read buffers that one thread keeps, in bytes.
const IDLE_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A node that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Addresses for clients, HOST:PORT; none of a node that is no broker.
    pub bootstrap: Vec<String>,
    /// Addresses of the controller, HOST:PORT; none of a node that is no controller.
    pub controllers: Vec<String>,
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
    pub fn bind(config: NodeConfig) -> Result<Self, RunError> {
        Self::bind_one_of(config, 1)
    }

    /// The same for a node that shares its process with others, `nodes` in all.
    ///
    /// # Errors
    /// As [`BoundNode::bind`].
    pub fn bind_one_of(mut config: NodeConfig, nodes: usize) -> Result<Self, RunError> {
        let mut settings = SocketSettings::new(&config.broker);
        let files = raise_file_limit() / nodes.max(1);
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
        run_all(vec![(self, dirs)], |nodes| {
            if let [node] = nodes {
                on_ready(node);
            }
        })
    }

    /// Whether the node keeps the metadata log: it stops last.
    pub(crate) const fn is_controller(&self) -> bool {
        self.config.roles.controller
    }

    /// The kind of listener that is opened last.
    pub(crate) const fn last_listener(&self) -> ListenerKind {
        if self.config.roles.broker {
            ListenerKind::Broker
        } else {
            ListenerKind::Controller
        }
    }

    pub(crate) const fn node_id(&self) -> NodeId {
        self.config.node_id
    }

    /// Boots on formatted directories and starts the machines.
    pub(crate) fn start(self, dirs: Vec<FileDisk>, clock: Clock) -> Result<Machines, RunError> {
        let pools = (0..dirs.len()).map(|number| self.pool(number)).collect();
        let ready = self.ready();
        let (config, seed) = (self.config.clone(), random_seed()?);
        let b = Blocking::enter();
        let node = highwater_node::boot(config, dirs, clock.now(), seed, &b)?;
        for entry in &node.events {
            crate::host::log(entry);
        }
        let ready = Ready {
            cluster_id: node.cluster_id.clone(),
            ..ready
        };
        self.start_machines(node, clock, pools, ready)
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
        let addresses = |kind| {
            let of_kind = self.config.advertised.iter().filter(|it| it.kind == kind);
            let shown = of_kind.map(|it| {
                let v6 = it.host.contains(':');
                if v6 {
                    format!("[{}]:{}", it.host, it.port)
                } else {
                    format!("{}:{}", it.host, it.port)
                }
            });
            shown.collect()
        };
        let is_broker = self.config.roles.broker;
        Ready {
            bootstrap: if is_broker {
                addresses(ListenerKind::Broker)
            } else {
                Vec::new()
            },
            controllers: addresses(ListenerKind::Controller),
            cluster_id: String::new(),
            data: self.config.log_dirs.clone(),
        }
    }

    fn start_machines(
        self,
        node: Node<FileDisk>,
        clock: Clock,
        pools: Vec<JobPool>,
        ready: Ready,
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
            stop: Notify::default(),
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
            listeners: self.listeners,
            ready,
        })
    }
}

/// The running threads of a node, and what it takes to open it to others.
#[derive(Debug)]
pub(crate) struct Machines {
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) told: mpsc::UnboundedReceiver<Told>,
    pub(crate) listeners: Vec<BoundListener>,
    pub(crate) ready: Ready,
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
    let span = tracing::Span::current();
    let run = move || {
        let _abort = AbortOnPanic;
        let _named = span.entered();
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
