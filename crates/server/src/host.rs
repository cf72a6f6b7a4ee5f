use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use highwater_disk::{FileDisk, FileFile};
use highwater_node::{
    ConnId, ConnOutput, Connection, Effect, Input, Job, JournalEntry, Level, LinkError, LinkOutput,
    Machine, MachineId, PeerError, Token,
};
use highwater_protocol::ListenerKind;
use highwater_types::{Millis, Mono, NodeId};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Notify, mpsc};

use crate::clock::Clock;
use crate::conn::{Conn, Overdue};
use crate::jobs::JobPool;
use crate::loopback::{LoopOutput, LoopbackHost};
use crate::mailbox::{Links, Loopback, Mail, NewConnection};
use crate::memory::BufferPool;
use crate::pace::Pace;
use crate::peer::PeerConn;
use crate::peers::{self, Peers, ToPeer};
use crate::quiet::{FailedAppend, Quiet};
use crate::settings::SocketSettings;
use crate::socket::frames::FrameError;
use crate::socket::outgoing;

/// While connections wait for each other's memory: the time between two looks at them.
const STARVING_PAUSE: Millis = Millis::new(250);
/// Each look frees this part of the budget.
const STARVING_PART: u64 = 16;

/// One machine on its thread, with the connections that live there.
///
/// Everything runs on the one thread. Whoever has an input pushes it and calls [`Host::run`], which
/// steps the machine until no input is left and then sends what has come out of it: a request that
/// its own shard can answer takes no hop and no wake-up.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) shared: Arc<Shared>,
    id: MachineId,
    buffers: Arc<BufferPool>,
    core: RefCell<Core>,
    conns: RefCell<HashMap<ConnId, Rc<Conn>>>,
    /// Connections that had bytes to send when the thread was told to exit, until their peers
    /// have them.
    awaited: Cell<usize>,
    /// Rung when a connection is gone.
    gone: Notify,
    /// Control's own: requests of this node's machines to this node.
    loopback: RefCell<LoopbackHost>,
    /// The machine's connections to other nodes.
    peers: Peers,
    /// Itself, for the tasks of those.
    me: Weak<Self>,
    deadline_moved: Notify,
    /// What the driver's timer is set to.
    armed: Cell<Option<Mono>>,
}

/// What all threads of a node share; nothing in it changes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) node_id: NodeId,
    pub(crate) links: Links,
    /// One per log directory, by its number.
    pub(crate) pools: Vec<JobPool>,
    /// Reads cold bytes of answers.
    pub(crate) warmers: JobPool,
    pub(crate) settings: SocketSettings,
    pub(crate) quiet: Quiet,
    pub(crate) told: mpsc::UnboundedSender<Told>,
    /// Rung when the node has to stop.
    pub(crate) stop: Notify,
}

/// What a machine's thread tells the one that started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Listeners of this kind may be opened.
    Serving(ListenerKind),
    /// Control has stopped everything.
    Stopped,
}

#[derive(Debug)]
struct Core {
    machine: MachineBox,
    inputs: VecDeque<Input<FileDisk>>,
    effects: Vec<Effect<FileDisk>>,
    outputs: Vec<ConnOutput<FileFile>>,
    /// Connections that have something to send or may go on reading.
    touched: Vec<Rc<Conn>>,
    /// Connections to other nodes that have something to send.
    touched_peers: Vec<Rc<PeerConn>>,
    /// The machine must not be stepped any more.
    stopped: bool,
}

impl Core {
    fn deadline(&self) -> Option<Mono> {
        if self.stopped {
            None
        } else {
            self.machine.0.next_deadline()
        }
    }
}

/// The machine itself. Opaque to `Debug`.
struct MachineBox(Box<dyn Machine<FileDisk>>);

impl std::fmt::Debug for MachineBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("machine")
    }
}

impl Host {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: MachineId,
        machine: Box<dyn Machine<FileDisk>>,
        buffers: Arc<BufferPool>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            shared,
            id,
            buffers,
            core: RefCell::new(Core {
                machine: MachineBox(machine),
                inputs: VecDeque::new(),
                effects: Vec::new(),
                outputs: Vec::new(),
                touched: Vec::new(),
                touched_peers: Vec::new(),
                stopped: false,
            }),
            conns: RefCell::default(),
            awaited: Cell::new(0),
            gone: Notify::new(),
            loopback: RefCell::new(LoopbackHost::new()),
            peers: Peers::default(),
            me: Weak::clone(me),
            deadline_moved: Notify::new(),
            armed: Cell::new(None),
        })
    }

    /// Queues one input for the machine. [`Host::run`] steps it.
    pub(crate) fn push(&self, input: Input<FileDisk>) {
        self.core.borrow_mut().inputs.push_back(input);
    }

    /// Steps the machine until it has no input left, then sends what came out of it.
    pub(crate) fn run(&self) {
        let core = &mut *self.core.borrow_mut();
        while let Some(input) = core.inputs.pop_front() {
            if core.stopped {
                continue;
            }
            let mut effects = std::mem::take(&mut core.effects);
            core.machine
                .0
                .step(self.shared.clock.now(), input, &mut effects);
            for effect in effects.drain(..) {
                self.perform(effect, core);
            }
            core.effects = effects;
        }
        let mut touched = std::mem::take(&mut core.touched);
        for conn in touched.drain(..) {
            self.flush(&conn);
            conn.wake_if_changed();
        }
        core.touched = touched;
        for peer in core.touched_peers.drain(..) {
            if let Err(why) = peer.flush() {
                // Its task reads the end of it.
                tracing::debug!("connection to {} lost: {why}", peer.peer.host);
            }
        }
        let deadline = core.deadline();
        if deadline.is_some_and(|at| self.armed.get().is_none_or(|armed| at < armed)) {
            self.armed.set(deadline);
            self.deadline_moved.notify_one();
        }
    }

    /// When the machine wants its next tick; the driver's timer is now set to it.
    pub(crate) fn arm(&self) -> Option<Mono> {
        let deadline = self.core.borrow().deadline();
        self.armed.set(deadline);
        deadline
    }

    /// When the next request of this node to itself is overdue.
    pub(crate) fn loopback_deadline(&self) -> Option<Mono> {
        self.loopback.borrow().next_deadline()
    }

    /// Gives up the requests of this node to itself that are overdue.
    pub(crate) fn give_up_overdue(&self) {
        let mut outputs = Vec::new();
        self.loopback
            .borrow_mut()
            .handle_time(self.shared.clock.mono(), &mut outputs);
        self.perform_loopback(outputs, &mut self.core.borrow_mut());
        self.run();
    }

    /// The machine's connections to other nodes.
    pub(crate) const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Performs what a connection to a peer wants, and steps. Why it is to be closed, if it is.
    pub(crate) fn peer_told(
        &self,
        conn: &Rc<PeerConn>,
        outputs: &mut Vec<LinkOutput>,
    ) -> Option<LinkError> {
        if outputs.is_empty() {
            return None;
        }
        let closed = Self::perform_link(conn, outputs, &mut self.core.borrow_mut());
        self.run();
        closed
    }

    /// A connection to a peer stands.
    pub(crate) fn peer_connected(&self, conn: &Rc<PeerConn>, write: OwnedWriteHalf) {
        let mut outputs = Vec::new();
        conn.handle_connected(write, &mut outputs);
        self.peer_told(conn, &mut outputs);
    }

    /// Gives up what is overdue at a peer. Why the connection is to be closed, if it is.
    pub(crate) fn peer_time(&self, conn: &Rc<PeerConn>) -> Option<LinkError> {
        let mut outputs = Vec::new();
        conn.handle_time(self.shared.clock.mono(), &mut outputs);
        self.peer_told(conn, &mut outputs)
    }

    /// A connection to a peer is gone.
    pub(crate) fn peer_closed(&self, conn: &Rc<PeerConn>) {
        let mut outputs = Vec::new();
        conn.handle_closed(&mut outputs);
        self.peer_told(conn, &mut outputs);
    }

    /// Waits until the clock shows `at`; for ever when there is no such time.
    pub(crate) async fn at(&self, at: Option<Mono>) {
        match at {
            Some(at) => tokio::time::sleep_until(self.shared.clock.instant(at).into()).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the machine wants its tick earlier than [`Host::arm`] said.
    pub(crate) async fn deadline_moved(&self) {
        self.deadline_moved.notified().await;
    }

    /// Takes one mail. `None`: the thread has to end.
    pub(crate) fn take_mail(self: &Rc<Self>, mail: Mail) -> Option<()> {
        match mail {
            Mail::Input(input) => self.push(input),
            Mail::Connection(new) => self.open(new),
            Mail::Warmed(conn) => {
                let conn = self.conns.borrow().get(&conn).cloned();
                if let Some(conn) = conn {
                    conn.warmed();
                    self.core.borrow_mut().touched.push(conn);
                }
            }
            Mail::Loopback(request) => {
                let Loopback {
                    from,
                    channel,
                    token,
                    request,
                    deadline,
                } = request;
                let mut outputs = Vec::new();
                self.loopback.borrow_mut().handle_request(
                    (from, token),
                    channel,
                    &request,
                    deadline,
                    &mut outputs,
                );
                self.perform_loopback(outputs, &mut self.core.borrow_mut());
            }
            Mail::Exit => return None,
        }
        Some(())
    }

    /// Hands a connection's frames to its core, steps, and goes on while that lets more in.
    pub(crate) fn feed(&self, conn: &Rc<Conn>) {
        loop {
            match self.feed_once(conn) {
                Ok(true) => self.run(),
                Ok(false) => return,
                Err(why) => {
                    self.complain(conn, &format!("sent {why}"));
                    conn.close_when_sent();
                    self.run();
                    return;
                }
            }
        }
    }

    fn feed_once(&self, conn: &Rc<Conn>) -> Result<bool, FrameError> {
        let core = &mut *self.core.borrow_mut();
        let mut outputs = std::mem::take(&mut core.outputs);
        let fed = conn.feed(self.shared.clock.mono(), &mut outputs);
        self.perform_outputs(conn, &mut outputs, core);
        core.outputs = outputs;
        if !matches!(fed, Ok(false)) {
            core.touched.push(Rc::clone(conn));
        }
        fed
    }

    /// Sends what a connection's socket takes.
    pub(crate) fn flush(&self, conn: &Rc<Conn>) {
        match conn.flush(self.shared.clock.mono()) {
            Ok(None) => {}
            Ok(Some(region)) => {
                let (links, machine, id) = (self.shared.links.clone(), self.id, conn.id);
                let warmed = self.shared.warmers.run(move |_| {
                    outgoing::warm(&region);
                    links.send(machine, Mail::Warmed(id));
                });
                if let Err(why) = warmed {
                    self.complain(conn, &format!("no thread to read its answer: {why}"));
                    conn.close();
                }
            }
            Err(outgoing::SendError::Socket(why)) => {
                tracing::debug!(peer = conn.peer, "connection lost: {why}");
            }
            Err(why) => self.complain(conn, &why.to_string()),
        }
    }

    /// Takes a connection in and starts its task.
    fn open(self: &Rc<Self>, new: NewConnection) {
        let NewConnection {
            id,
            stream,
            caller,
            counted,
        } = new;
        let peer = caller
            .host
            .map_or_else(String::new, |host| host.to_string());
        let stream = match tokio::net::TcpStream::from_std(stream) {
            Ok(stream) => stream,
            Err(why) => {
                tracing::warn!("cannot take in a connection from {peer}: {why}");
                return;
            }
        };
        let (read, write) = stream.into_split();
        let (settings, now) = (&self.shared.settings, self.shared.clock.mono());
        let core = Connection::new(id, caller).with_waiting_max(settings.waiting_requests_max);
        let buffers = Arc::clone(&self.buffers);
        let conn = Rc::new(Conn::new(
            core, peer, write, buffers, settings, counted, now,
        ));
        self.conns.borrow_mut().insert(id, Rc::clone(&conn));
        tokio::task::spawn_local(crate::serve::serve(Rc::clone(self), conn, read));
    }

    /// Has all connections send what waits in them, and end.
    pub(crate) fn close_all(&self) {
        let conns: Vec<Rc<Conn>> = self.conns.borrow().values().cloned().collect();
        for conn in conns {
            if conn.close_awaited() {
                self.awaited.set(self.awaited.get() + 1);
            }
            conn.wake_if_changed();
        }
    }

    /// After [`Host::close_all`]: whether everybody has what was sent.
    pub(crate) fn is_deserted(&self) -> bool {
        self.conns.borrow().is_empty() && self.awaited.get() == 0
    }

    /// Waits until that may have changed.
    pub(crate) async fn deserted(&self) {
        self.gone.notified().await;
    }

    /// The peer of an awaited connection has taken everything, or is not waited for any longer.
    pub(crate) fn taken(&self) {
        self.awaited.set(self.awaited.get() - 1);
        self.gone.notify_one();
    }

    /// Forgets a connection; the machine cancels what it asked for.
    pub(crate) fn closed(&self, id: ConnId) {
        if self.conns.borrow_mut().remove(&id).is_some() {
            self.push(Input::Closed(id));
            self.run();
            self.gone.notify_one();
        }
    }

    /// Closes the connections whose time is over. Gives the time of the next look; `None` when
    /// there is no connection.
    pub(crate) fn sweep(&self) -> Option<Mono> {
        let now = self.shared.clock.mono();
        let settings = &self.shared.settings;
        let conns: Vec<Rc<Conn>> = self.conns.borrow().values().cloned().collect();
        let mut starving = Vec::new();
        for conn in &conns {
            match conn.overdue(now, settings) {
                None => continue,
                Some(Overdue::Idle) => tracing::debug!(peer = conn.peer, "closed: idle"),
                Some(Overdue::FirstRequest) => {
                    self.complain(
                        conn,
                        "sent no request within connection.handshake.timeout.ms",
                    );
                }
                Some(Overdue::Frame) => self.complain(conn, "sends a request far too slowly"),
                Some(Overdue::Starving { held, since }) => {
                    starving.push((since, held, conn));
                    continue;
                }
            }
            conn.close();
            conn.wake_if_changed();
        }
        if !starving.is_empty() {
            self.break_circle(starving);
            return Some(now.plus(STARVING_PAUSE));
        }
        if conns.is_empty() {
            self.buffers.shrink();
            return None;
        }
        Some(now.plus(settings.sweep_interval()))
    }

    /// Closes some of those that all wait for memory and hold some of it, the oldest first.
    fn break_circle(&self, mut starving: Vec<(Mono, usize, &Rc<Conn>)>) {
        starving.sort_by_key(|&(since, _, _)| since);
        let wanted = self.shared.settings.inbound_bytes_max / STARVING_PART;
        let mut freed = 0;
        for (_, held, conn) in starving {
            self.complain(
                conn,
                "max.inbound.memory.bytes is used up by requests under way",
            );
            conn.close();
            conn.wake_if_changed();
            freed += held as u64;
            if freed >= wanted {
                return;
            }
        }
    }

    fn perform(&self, effect: Effect<FileDisk>, core: &mut Core) {
        match effect {
            Effect::Admitted(ticket) if self.loopback.borrow().is_its(ticket.conn) => {
                let mut outputs = Vec::new();
                self.loopback
                    .borrow_mut()
                    .handle_admitted(ticket, &mut outputs);
                self.perform_loopback(outputs, core);
            }
            Effect::Answer { ticket, answer } if self.loopback.borrow().is_its(ticket.conn) => {
                let mut outputs = Vec::new();
                self.loopback
                    .borrow_mut()
                    .handle_answer(ticket, answer, &mut outputs);
                self.perform_loopback(outputs, core);
            }
            Effect::Admitted(ticket) => {
                self.to_conn(ticket.conn, core, |conn, out| conn.admitted(ticket, out));
            }
            Effect::Answer { ticket, answer } => {
                self.to_conn(ticket.conn, core, |conn, out| {
                    conn.answered(ticket, answer, out)
                });
            }
            Effect::Part { to, part } => {
                self.to_machine(
                    to,
                    Input::Part {
                        from: self.id,
                        part,
                    },
                    core,
                );
            }
            Effect::Send {
                peer,
                channel,
                token,
                request,
                deadline,
            } => {
                let request = ToPeer {
                    peer,
                    channel,
                    token,
                    request,
                    deadline,
                };
                self.send(request, core);
            }
            Effect::Job { token, job } => self.start_job(token, job),
            Effect::Event(entry) => self.log(&entry),
            Effect::Stopped => {
                core.stopped = true;
                // Control is the last: its end is the node's.
                if self.id == MachineId::Control {
                    let _nobody_waits = self.shared.told.send(Told::Stopped);
                }
            }
            Effect::Serving(kind) => {
                let _nobody_waits = self.shared.told.send(Told::Serving(kind));
            }
        }
    }

    fn to_machine(&self, to: MachineId, input: Input<FileDisk>, core: &mut Core) {
        if to == self.id {
            core.inputs.push_back(input);
        } else {
            self.shared.links.send(to, Mail::Input(input));
        }
    }

    fn send(&self, to_peer: ToPeer, core: &mut Core) {
        let ToPeer {
            peer,
            channel,
            token,
            request,
            deadline,
        } = to_peer;
        if peer.is_loopback(self.shared.node_id) {
            let request = Loopback {
                from: self.id,
                channel,
                token,
                request,
                deadline,
            };
            let links = &self.shared.links;
            links.send(MachineId::Control, Mail::Loopback(request));
            return;
        }
        if peer.host.is_empty() {
            let result = Err(PeerError::Disconnected);
            core.inputs.push_back(Input::PeerAnswer { token, result });
            return;
        }
        let (node_id, settings) = (self.shared.node_id, &self.shared.settings);
        let (conn, is_new) = self.peers.conn(&peer, channel, |peer, key| {
            let client_id = format!("node-{node_id}-{channel:?}").to_ascii_lowercase();
            PeerConn::new(peer, key, client_id, settings.peer_answer_bytes_max)
        });
        if is_new {
            let task = peers::serve_peer(Weak::clone(&self.me), Rc::clone(&conn));
            tokio::task::spawn_local(task);
        }
        let mut outputs = Vec::new();
        conn.handle_request(token, request, deadline, &mut outputs);
        Self::perform_link(&conn, &mut outputs, core);
    }

    /// Performs what a connection to a peer wants. Why it is to be closed, if it is.
    fn perform_link(
        conn: &Rc<PeerConn>,
        outputs: &mut Vec<LinkOutput>,
        core: &mut Core,
    ) -> Option<LinkError> {
        let mut closed = None;
        let mut writes = false;
        for output in outputs.drain(..) {
            match output {
                LinkOutput::Write(frame) => {
                    conn.push(frame);
                    writes = true;
                }
                LinkOutput::Answer(token, result) => {
                    core.inputs.push_back(Input::PeerAnswer { token, result });
                }
                LinkOutput::Close(why) => {
                    conn.mark_closed();
                    closed = Some(why);
                }
            }
        }
        if writes {
            core.touched_peers.push(Rc::clone(conn));
        }
        closed
    }

    fn start_job(&self, token: Token, job: Job<FileDisk>) {
        let (links, machine, clock) = (self.shared.links.clone(), self.id, self.shared.clock);
        let pool = self.shared.pools.get(usize::from(job.dir().0));
        let pool = pool.expect("jobs name only log directories of their own node");
        let started = pool.run(move |b| {
            let pace = Pace::new(clock.mono());
            let result = job.run(b, &|progress| {
                if pace.is_due(clock.mono()) {
                    log(&progress());
                }
            });
            links.send(machine, Mail::Input(Input::JobDone { token, result }));
        });
        if let Err(why) = started {
            // Without a single thread for the disk nothing can be kept safe.
            panic!("cannot start a thread for the disk: {why}");
        }
    }

    fn to_conn(
        &self,
        id: ConnId,
        core: &mut Core,
        tell: impl FnOnce(&Conn, &mut Vec<ConnOutput<FileFile>>),
    ) {
        let conn = self.conns.borrow().get(&id).cloned();
        // The answer of a connection that was closed meanwhile.
        let Some(conn) = conn else { return };
        let mut outputs = std::mem::take(&mut core.outputs);
        tell(&conn, &mut outputs);
        self.perform_outputs(&conn, &mut outputs, core);
        core.outputs = outputs;
        core.touched.push(conn);
    }

    fn perform_outputs(
        &self,
        conn: &Rc<Conn>,
        outputs: &mut Vec<ConnOutput<FileFile>>,
        core: &mut Core,
    ) {
        for output in outputs.drain(..) {
            match output {
                ConnOutput::Request(incoming) => core.inputs.push_back(Input::Request(incoming)),
                ConnOutput::Write(frame) => conn.push(frame),
                ConnOutput::Mute(span) => conn.mute(self.shared.clock.mono().plus(span)),
                ConnOutput::Close => conn.close_when_sent(),
                ConnOutput::Event(entry) => {
                    let of_client = self.shared.quiet.count(&entry);
                    if let Some(dropped) = self.shared.quiet.allows(self.shared.clock.mono()) {
                        tracing::warn!(peer = conn.peer, of_client, dropped, "{entry}");
                    }
                }
            }
        }
    }

    fn perform_loopback(&self, outputs: Vec<LoopOutput>, core: &mut Core) {
        for output in outputs {
            match output {
                LoopOutput::Request(incoming) => core.inputs.push_back(Input::Request(incoming)),
                LoopOutput::Answer((to, token), result) => {
                    self.to_machine(to, Input::PeerAnswer { token, result }, core);
                }
                LoopOutput::Closed(id) => core.inputs.push_back(Input::Closed(id)),
                LoopOutput::Event(entry) => log(&entry),
            }
        }
    }

    /// Writes a journal entry to the log. Appends that fail over and over, as on a full disk, are
    /// counted.
    fn log(&self, entry: &JournalEntry) {
        match self
            .shared
            .quiet
            .failed_append(entry, self.shared.clock.mono())
        {
            FailedAppend::None | FailedAppend::Told { more: 0 } => log(entry),
            FailedAppend::Told { more } => tracing::error!("{entry} (and {more} more since)"),
            FailedAppend::Counted => {}
        }
    }

    /// Says why a connection is closed, unless too many are.
    fn complain(&self, conn: &Conn, why: &str) {
        if let Some(dropped) = self.shared.quiet.allows(self.shared.clock.mono()) {
            tracing::warn!(peer = conn.peer, dropped, "connection closed: {why}");
        }
    }
}

/// Writes a journal entry to the log, at its level.
pub(crate) fn log(entry: &JournalEntry) {
    match entry.level {
        Level::Trace => tracing::trace!("{entry}"),
        Level::Info => tracing::info!("{entry}"),
        Level::Warn => tracing::warn!("{entry}"),
        Level::Error => tracing::error!("{entry}"),
    }
}
