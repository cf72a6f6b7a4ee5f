//! The broker's side: registration, heartbeats, and what is waited for between them. A broker
//! reaches the controller by wire requests only, in one process too.

mod requests;

use std::collections::BTreeSet;

use highwater_disk::Disk;
use highwater_protocol::ListenerKind;
use highwater_types::{BrokerEpoch, Millis, Mono, Now, Uuid};

use super::{Control, Effects};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Effect, Token};

/// The pause after a controller could not be asked: this long at first, twice as long each time, up
/// to the heartbeat interval.
const PAUSE_MIN: Millis = Millis::new(50);
/// Longest that a stopping broker waits for its partitions to be handed over.
const CONTROLLED_SHUTDOWN_MAX: Millis = Millis::new(30_000);

/// Where the broker is on its way up or down.
///
/// Legal transitions: `Starting` -> `Registering` -> `CatchingUp` -> `LoadingLogs` -> `Unfencing`
/// -> `Running`; each of these -> `ShuttingDown` (once registered) or `Closing`; `ShuttingDown` ->
/// `Closing` -> `Marking` -> `Stopped`. From `CatchingUp` to `Running` each -> `Registering`, when
/// the controller does not know this life any more. A node without the broker's role goes from
/// `Starting` to `Running`, and from there to `Closing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing of this epoch is committed yet, or the controller is not known yet.
    Starting,
    /// The registration is not answered yet.
    Registering,
    /// The registration is not applied yet.
    CatchingUp,
    /// The shards open their logs.
    LoadingLogs,
    /// All logs are open; the broker wants to serve.
    Unfencing,
    /// The node serves.
    Running,
    /// The broker hands over what it leads.
    ShuttingDown,
    /// The shards close their logs, then the metadata log closes.
    Closing,
    /// The clean-shutdown markers are being written.
    Marking,
    /// Over.
    Stopped,
}

/// The broker's own state with its controller. Without the broker's role only its phase moves.
#[derive(Debug)]
pub(crate) struct BrokerLifecycle {
    pub(crate) phase: Phase,
    /// One life of this process.
    pub(crate) incarnation: Uuid,
    /// The epoch of the last run, if it stopped cleanly; decides whether data may be missing.
    pub(crate) previous_epoch: BrokerEpoch,
    /// The epoch of the registration; none until it is answered.
    pub(crate) epoch: BrokerEpoch,
    /// The request that is out, if any: one at a time.
    waiting: Option<Token>,
    /// When the next request is due.
    next_request: Mono,
    /// When a registration must have succeeded.
    registered_by: Option<Mono>,
    /// When a controlled shutdown ends, done or not.
    shutdown_by: Option<Mono>,
    /// Since when no controller answers.
    unanswered_since: Option<Mono>,
    /// How many requests in a row were in vain.
    failures: u32,
    /// Whether the node has the broker's role.
    is_broker: bool,
    heartbeat_interval: Millis,
    /// `broker.session.timeout.ms`: an answer that comes later is of no use.
    request_timeout: Millis,
    registration_timeout: Millis,
    /// Shards that have not opened their logs yet.
    pub(crate) loading: BTreeSet<u16>,
    /// Whether the node ever served.
    served: bool,
}

impl BrokerLifecycle {
    pub(crate) fn new(
        config: &crate::config::NodeConfig,
        incarnation: Uuid,
        previous_epoch: BrokerEpoch,
    ) -> Self {
        let millis = |name: &str| Millis::new(config.broker.count(name));
        Self {
            phase: Phase::Starting,
            incarnation,
            previous_epoch,
            epoch: BrokerEpoch::NONE,
            waiting: None,
            next_request: Mono::START,
            registered_by: None,
            shutdown_by: None,
            unanswered_since: None,
            failures: 0,
            is_broker: config.roles.broker,
            heartbeat_interval: millis("broker.heartbeat.interval.ms"),
            request_timeout: millis("broker.session.timeout.ms"),
            registration_timeout: millis("initial.broker.registration.timeout.ms"),
            loading: (0..config.shards()).collect(),
            served: false,
        }
    }

    /// When the broker wants to do something by itself.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let asks =
            self.is_broker && (Phase::Registering..=Phase::ShuttingDown).contains(&self.phase);
        let request = (asks && self.waiting.is_none()).then_some(self.next_request);
        let shutdown = self
            .shutdown_by
            .filter(|_| self.phase == Phase::ShuttingDown);
        let registered = self.registered_by.filter(|_| self.is_unregistered());
        [request, shutdown, registered].into_iter().flatten().min()
    }

    /// Whether a registration is still to succeed.
    fn is_unregistered(&self) -> bool {
        self.is_broker && self.phase <= Phase::Registering
    }

    /// A request was in vain: how long to wait with the next.
    fn pause(&mut self) -> Millis {
        let doubled = PAUSE_MIN.as_u64() << self.failures.min(10);
        self.failures = self.failures.saturating_add(1);
        Millis::new(doubled).min(self.heartbeat_interval)
    }
}

impl<D: Disk> Control<D> {
    /// The node starts: from now on its broker has so long to be registered.
    pub(in crate::control) fn lifecycle_begin(&mut self, now: Now) {
        self.broker.registered_by = Some(now.mono.plus(self.broker.registration_timeout));
    }

    /// Sends what is due: one request at a time.
    pub(in crate::control) fn lifecycle_tick(&mut self, now: Now, out: &mut Effects<D>) {
        self.give_up_registering(now, out);
        if !self.broker.is_broker {
            return;
        }
        let broker = &self.broker;
        if broker.phase == Phase::ShuttingDown
            && broker.shutdown_by.is_some_and(|at| at <= now.mono)
        {
            let text = "the controller did not take over all partitions in time; stopping anyway";
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
            self.begin_close(out);
            return;
        }
        if self.broker.waiting.is_some() || self.broker.next_request > now.mono {
            return;
        }
        match self.broker.phase {
            Phase::Registering => self.send_registration(now, out),
            Phase::CatchingUp
            | Phase::LoadingLogs
            | Phase::Unfencing
            | Phase::Running
            | Phase::ShuttingDown => self.send_heartbeat(now, out),
            Phase::Starting | Phase::Closing | Phase::Marking | Phase::Stopped => {}
        }
    }

    /// The active controller is known, and able to commit where it is this node: the broker may
    /// register, or go on at once with what it could not ask for.
    pub(in crate::control) fn lifecycle_controller_known(
        &mut self,
        now: Now,
        out: &mut Effects<D>,
    ) {
        let first = self.broker.phase == Phase::Starting;
        if first && self.config.roles.controller {
            out.push(Effect::Serving(ListenerKind::Controller));
        }
        if first && !self.broker.is_broker {
            self.broker.phase = Phase::Running;
            return;
        }
        if first {
            self.broker.phase = Phase::Registering;
        }
        if first || self.broker.failures > 0 {
            self.broker.next_request = now.mono;
            self.lifecycle_tick(now, out);
        }
    }

    /// A new image was published: the broker may have been waiting for it.
    pub(in crate::control) fn lifecycle_published(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase == Phase::CatchingUp && self.has_applied_registration() {
            self.broker.phase = Phase::LoadingLogs;
            self.lifecycle_logs_loaded(now, out);
        }
        // A broker that stops may go once all others know what became of its partitions, which
        // their heartbeats say.
        let own = self.config.node_id;
        let mut others = self.image.brokers.values().filter(|it| it.id != own);
        if others.any(|it| it.in_controlled_shutdown && !it.fenced) {
            self.hurry(now, Millis::ZERO);
            self.lifecycle_tick(now, out);
        }
    }

    /// Whether the image that the shards act on holds this life's registration: before it, they
    /// could lead in an epoch of the life before.
    pub(in crate::control) fn has_applied_registration(&self) -> bool {
        let own = self.committed.image().broker(self.config.node_id);
        self.broker.epoch.raw() >= 0 && own.is_some_and(|it| it.epoch == self.broker.epoch)
    }

    /// A shard has opened its logs.
    pub(in crate::control) fn lifecycle_logs_loaded(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase == Phase::LoadingLogs && self.broker.loading.is_empty() {
            self.broker.phase = Phase::Unfencing;
            self.hurry(now, Millis::ZERO);
            self.lifecycle_tick(now, out);
        }
    }

    /// The process was asked to stop.
    pub(in crate::control) fn lifecycle_stop(&mut self, now: Now, out: &mut Effects<D>) {
        let hands_over = self.config.broker.boolean("controlled.shutdown.enable")
            && self.broker.is_broker
            && self.broker.phase >= Phase::CatchingUp
            && self.failure.is_none();
        match self.broker.phase {
            Phase::ShuttingDown | Phase::Closing | Phase::Marking | Phase::Stopped => {}
            _ if hands_over => {
                self.broker.phase = Phase::ShuttingDown;
                self.broker.shutdown_by = Some(now.mono.plus(CONTROLLED_SHUTDOWN_MAX));
                self.broker.unanswered_since = None;
                self.hurry(now, Millis::ZERO);
                self.lifecycle_tick(now, out);
            }
            _ => self.begin_close(out),
        }
    }

    /// Makes the next request due `span` from now at the latest.
    fn hurry(&mut self, now: Now, span: Millis) {
        self.broker.next_request = self.broker.next_request.min(now.mono.plus(span));
    }

    fn give_up_registering(&mut self, now: Now, out: &mut Effects<D>) {
        let late = self.broker.registered_by.is_some_and(|at| at <= now.mono);
        if !late || !self.broker.is_unregistered() {
            return;
        }
        let text = if self.told_controller.is_some() {
            "the broker could not register within initial.broker.registration.timeout.ms".to_owned()
        } else {
            let asked = self.config.controllers.iter();
            let asked: Vec<_> = asked.map(|it| format!("{}:{}", it.host, it.port)).collect();
            format!(
                "no controller was found within initial.broker.registration.timeout.ms; asked at \
                 {}",
                asked.join(", ")
            )
        };
        self.fail(text, out);
    }
}
