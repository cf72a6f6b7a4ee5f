use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use highwater_disk::FileDisk;
use highwater_node::{Input, MachineId};
use highwater_protocol::ListenerKind;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet};
use tracing::{Instrument as _, Span};

use crate::accept::Dealer;
use crate::clock::Clock;
use crate::host::{Shared, Told};
use crate::listener::BoundListener;
use crate::mailbox::Mail;
use crate::node::{BoundNode, Machines, Ready, RunError, STOP_MAX, runtime};

/// A signal that repeats another within this time is the same one, sent to the process and to its
/// group, as `timeout` and terminals do.
const SIGNAL_ECHO: Duration = Duration::from_secs(1);

/// Boots the nodes of one process on their formatted directories, serves, and returns after SIGTERM
/// or Ctrl-C once everything is flushed and closed: first on the nodes that are only brokers, which
/// hand over what they lead, then on those with a controller. `on_ready` is called when every node
/// serves.
///
/// # Errors
/// When a node does not come up, gives up, or does not stop gracefully. The others are stopped.
pub fn run_all(
    nodes: Vec<(BoundNode, Vec<FileDisk>)>,
    on_ready: impl FnOnce(&[Ready]),
) -> Result<(), RunError> {
    let clock = Clock::start();
    let runtime = runtime("start the main runtime")?;
    let _taken = runtime.block_on(async { take_file_size_signal() })?;
    let signals = runtime.block_on(async { Signals::new() })?;
    let names_nodes = nodes.len() > 1;
    let (news, heard) = mpsc::unbounded_channel();
    let mut running = Vec::new();
    let local = LocalSet::new();
    for (at, (bound, dirs)) in nodes.into_iter().enumerate() {
        let span = if names_nodes {
            tracing::error_span!("node", id = bound.node_id().raw())
        } else {
            Span::none()
        };
        let (is_controller, last) = (bound.is_controller(), bound.last_listener());
        let Machines {
            threads,
            shared,
            told,
            listeners,
            ready,
        } = span.in_scope(|| bound.start(dirs, clock))?;
        let supervisor = Supervisor {
            at,
            shared: Arc::clone(&shared),
            told,
            listeners,
            last,
            news: news.clone(),
        };
        let task = local.spawn_local(supervisor.run().instrument(span));
        running.push(Running {
            shared,
            threads,
            is_controller,
            ready,
            task: Some(task),
        });
    }
    drop(news);
    let done = local.block_on(&runtime, supervise(&mut running, heard, signals, on_ready));
    if done.is_ok() {
        for node in running {
            node.end();
        }
    }
    done
}

/// A node that runs in this process.
struct Running {
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
    is_controller: bool,
    ready: Ready,
    /// Ends once the node has stopped.
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl Running {
    /// Ends the threads of a node that has stopped.
    fn end(self) {
        self.shared.links.send_all(|| Mail::Exit);
        for pool in &self.shared.pools {
            pool.close();
        }
        for thread in self.threads {
            let _aborted = thread.join();
        }
    }

    fn stop(&self) {
        self.shared.stop.notify_one();
    }

    /// Waits until it has stopped.
    async fn stopped(&mut self) -> Result<(), RunError> {
        match self.task.take() {
            Some(task) => task.await.unwrap_or(Err(RunError::GaveUp)),
            None => Ok(()),
        }
    }
}

/// What the supervisor of a node tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// All its listeners are open.
    Serves,
    /// It ended unasked.
    Ended(usize),
}

/// The life of all nodes: until every one serves, until a signal comes or one of them gives up,
/// and until all are stopped.
async fn supervise(
    nodes: &mut [Running],
    mut heard: mpsc::UnboundedReceiver<News>,
    mut signals: Signals,
    on_ready: impl FnOnce(&[Ready]),
) -> Result<(), RunError> {
    let mut on_ready = Some(on_ready);
    let mut unready = nodes.len();
    let ended = loop {
        tokio::select! {
            () = signals.next() => break None,
            news = heard.recv() => match news {
                Some(News::Serves) => {
                    unready -= 1;
                    if unready == 0 && let Some(on_ready) = on_ready.take() {
                        let all: Vec<Ready> = nodes.iter().map(|it| it.ready.clone()).collect();
                        on_ready(&all);
                    }
                }
                Some(News::Ended(at)) => break Some(at),
                None => return Err(RunError::GaveUp),
            },
        }
    };
    let mut done = Ok(());
    if let Some(node) = ended.and_then(|at| nodes.get_mut(at)) {
        done = node.stopped().await;
    }
    if done.is_err() && nodes.len() == 1 {
        return done;
    }
    tracing::info!("stopping");
    let stop = stop_all(nodes);
    let stopped = tokio::select! {
        stopped = stop => stopped,
        () = signals.second() => Err(RunError::Forced),
    };
    if stopped.is_ok() {
        tracing::info!("stopped");
    }
    done.and(stopped)
}

/// Stops brokers while there is a controller that takes over what they lead, then the controllers.
async fn stop_all(nodes: &mut [Running]) -> Result<(), RunError> {
    let mut done = Ok(());
    for controllers in [false, true] {
        let is_its_turn = |it: &&mut Running| it.is_controller == controllers;
        for node in nodes.iter_mut().filter(is_its_turn) {
            node.stop();
        }
        let stopped = async {
            let mut done = Ok(());
            for node in nodes.iter_mut().filter(is_its_turn) {
                done = done.and(node.stopped().await);
            }
            done
        };
        let in_time = tokio::time::timeout(STOP_MAX, stopped).await;
        let stopped = in_time.unwrap_or(Err(RunError::Stuck));
        done = done.and(stopped);
    }
    done
}

/// The life of one node from the outside: opens its listeners when control says so, and stops it
/// when it is told to.
struct Supervisor {
    at: usize,
    shared: Arc<Shared>,
    told: mpsc::UnboundedReceiver<Told>,
    listeners: Vec<BoundListener>,
    /// The kind of listener that is opened last.
    last: ListenerKind,
    news: mpsc::UnboundedSender<News>,
}

impl Supervisor {
    async fn run(mut self) -> Result<(), RunError> {
        let mut accepting = Vec::new();
        let mut served = self.until_stop(&mut accepting).await;
        if served.is_err() {
            let _nobody_waits = self.news.send(News::Ended(self.at));
        } else {
            // Whoever follows what this broker hands over may have to connect for it still.
            let links = &self.shared.links;
            links.send(MachineId::Control, Mail::Input(Input::Stop));
            served = self.until_stopped().await;
        }
        for task in accepting {
            task.abort();
        }
        served
    }

    async fn until_stopped(&mut self) -> Result<(), RunError> {
        while let Some(news) = self.told.recv().await {
            if news == Told::Stopped {
                return Ok(());
            }
        }
        Err(RunError::GaveUp)
    }

    async fn until_stop(&mut self, accepting: &mut Vec<JoinHandle<()>>) -> Result<(), RunError> {
        let dealer = Rc::new(Dealer::new(Arc::clone(&self.shared)));
        let shared = Arc::clone(&self.shared);
        loop {
            tokio::select! {
                () = shared.stop.notified() => return Ok(()),
                news = self.told.recv() => match news {
                    Some(Told::Serving(kind)) => {
                        for bound in self.listeners.iter().filter(|it| it.kind == kind) {
                            let listener = bound.listen(&self.shared.settings)?;
                            let (dealer, name) = (Rc::clone(&dealer), bound.name.clone());
                            let accept = async move {
                                dealer.accept(listener, &name, kind).await;
                            };
                            let span = Span::current();
                            let task = tokio::task::spawn_local(accept.instrument(span));
                            accepting.push(task);
                        }
                        if kind == self.last {
                            let _nobody_waits = self.news.send(News::Serves);
                        }
                    }
                    // Control ended by itself, or all threads did.
                    Some(Told::Stopped) | None => return Err(RunError::GaveUp),
                },
            }
        }
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
