//! The broker's side: registration, heartbeats, and what is waited for between them. A broker
//! reaches the controller by wire requests only, in one process too.

use std::collections::BTreeSet;

use highwater_disk::Disk;
use highwater_metadata::image::supported_features;
use highwater_protocol::messages::broker_registration_request::{Feature, Listener};
use highwater_protocol::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse,
};
use highwater_protocol::{ListenerKind, OutRequest, Response};
use highwater_types::{BrokerEpoch, ErrorCode, Millis, Mono, Now, Uuid};

use super::{Control, Effects};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Channel, Effect, PeerError, Token};

/// How soon a broker asks again while it waits for something that is about to happen.
const SOON: Millis = Millis::new(10);
/// The pause after a controller could not be asked: this long at first, twice as long each time, up
/// to the heartbeat interval.
const PAUSE_MIN: Millis = Millis::new(50);
/// How long a stopping broker looks for a controller that could take its partitions over.
const CONTROLLER_GONE_MAX: Millis = Millis::new(3000);
/// Longest that a stopping broker waits for its partitions to be handed over.
const CONTROLLED_SHUTDOWN_MAX: Millis = Millis::new(30_000);

/// Where the broker is on its way up or down.
///
/// Legal transitions: `Starting` -> `Registering` -> `CatchingUp` -> `LoadingLogs` -> `Unfencing`
/// -> `Running`; each of these -> `ShuttingDown` (once registered) or `Closing`; `ShuttingDown` ->
/// `Closing` -> `Marking` -> `Stopped`. From `CatchingUp` to `Running` each -> `Registering`, when the
/// controller does not know this life any more. A node without the broker's role goes from `Starting` to
/// `Running`, and from there to `Closing`.
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
    pub(super) fn lifecycle_begin(&mut self, now: Now) {
        self.broker.registered_by = Some(now.mono.plus(self.broker.registration_timeout));
    }

    /// Sends what is due: one request at a time.
    pub(super) fn lifecycle_tick(&mut self, now: Now, out: &mut Effects<D>) {
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
    pub(super) fn lifecycle_controller_known(&mut self, now: Now, out: &mut Effects<D>) {
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
    pub(super) fn lifecycle_published(&mut self, now: Now, out: &mut Effects<D>) {
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
    pub(super) fn has_applied_registration(&self) -> bool {
        let own = self.committed.image().broker(self.config.node_id);
        self.broker.epoch.raw() >= 0 && own.is_some_and(|it| it.epoch == self.broker.epoch)
    }

    /// A shard has opened its logs.
    pub(super) fn lifecycle_logs_loaded(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase == Phase::LoadingLogs && self.broker.loading.is_empty() {
            self.broker.phase = Phase::Unfencing;
            self.hurry(now, Millis::ZERO);
            self.lifecycle_tick(now, out);
        }
    }

    /// The process was asked to stop.
    pub(super) fn lifecycle_stop(&mut self, now: Now, out: &mut Effects<D>) {
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

    fn send_registration(&mut self, now: Now, out: &mut Effects<D>) {
        let broker_endpoints = crate::format::endpoints(&self.config, ListenerKind::Broker);
        let listeners = broker_endpoints.into_iter().map(|it| Listener {
            name: it.name,
            host: it.host,
            port: it.port,
            security_protocol: it.security_protocol,
        });
        let features = supported_features().iter().map(|it| Feature {
            name: it.name.to_owned(),
            min_supported_version: it.min,
            max_supported_version: it.max,
        });
        let request = BrokerRegistrationRequest {
            broker_id: self.config.node_id,
            cluster_id: self.cluster_id.to_string(),
            incarnation_id: self.broker.incarnation,
            listeners: listeners.collect(),
            features: features.collect(),
            rack: self.config.broker.text("broker.rack").map(str::to_owned),
            is_migrating_zk_broker: false,
            log_dirs: self.online_dirs().map(|dir| dir.id.uuid()).collect(),
            previous_broker_epoch: self.broker.previous_epoch.raw(),
        };
        self.send(now, request.into(), out);
    }

    fn send_heartbeat(&mut self, now: Now, out: &mut Effects<D>) {
        let phase = self.broker.phase;
        let request = BrokerHeartbeatRequest {
            broker_id: self.config.node_id,
            broker_epoch: self.broker.epoch.raw(),
            current_metadata_offset: self.applied_offset().raw(),
            want_fence: phase < Phase::Unfencing,
            want_shut_down: phase == Phase::ShuttingDown,
            offline_log_dirs: self.offline_dirs().map(|dir| dir.id.uuid()).collect(),
            // Nothing can be said of directories before their broker knows its own registration.
            cordoned_log_dirs: self.has_applied_registration().then(Vec::new),
        };
        self.send(now, request.into(), out);
    }

    fn send(&mut self, now: Now, request: OutRequest, out: &mut Effects<D>) {
        let token = self.new_token();
        self.broker.waiting = Some(token);
        out.push(Effect::Send {
            peer: self.to_controller(),
            channel: Channel::Lifecycle,
            token,
            request,
            deadline: now.mono.plus(self.broker.request_timeout),
        });
    }

    pub(super) fn handle_lifecycle_answer(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        if self.broker.waiting != Some(token) {
            return;
        }
        self.broker.waiting = None;
        match result {
            Ok(response) if is_from_another(&response) => {
                self.unanswered(now, "it is not the controller any more", out);
            }
            Ok(response) => {
                self.broker.failures = 0;
                self.broker.unanswered_since = None;
                self.broker.next_request = now.mono.plus(self.broker.heartbeat_interval);
                match response {
                    Response::BrokerRegistration(answer) => self.registered(now, &answer, out),
                    Response::BrokerHeartbeat(answer) => {
                        self.heartbeat_answered(now, &answer, out);
                    }
                    _ => self.asked_in_vain("another answer than was asked for", out),
                }
            }
            Err(why) => self.unanswered(now, &why.to_string(), out),
        }
        self.give_up_registering(now, out);
    }

    /// No controller answered. The next one may be known soon; while the broker stops, it does not
    /// look for one for long.
    fn unanswered(&mut self, now: Now, why: &str, out: &mut Effects<D>) {
        if self.broker.failures == 0 {
            self.asked_in_vain(why, out);
        }
        self.broker.next_request = now.mono.plus(self.broker.pause());
        let since = *self.broker.unanswered_since.get_or_insert(now.mono);
        let gone = now.mono.since(since) >= CONTROLLER_GONE_MAX;
        if gone && self.broker.phase == Phase::ShuttingDown {
            let text = "no controller is there to take over the partitions; stopping anyway";
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
            self.begin_close(out);
        }
    }

    fn registered(&mut self, now: Now, answer: &BrokerRegistrationResponse, out: &mut Effects<D>) {
        if answer.error_code.is_error() {
            let text = format!(
                "the controller refused the registration: {}",
                answer.error_code
            );
            self.asked_in_vain(&text, out);
            return;
        }
        if self.broker.phase == Phase::Registering {
            self.broker.epoch = BrokerEpoch::new(answer.broker_epoch);
            self.broker.phase = Phase::CatchingUp;
            self.hurry(now, Millis::ZERO);
            // The answer came after the commit: the image with it may be waiting.
            self.publish(now, out);
        }
    }

    fn heartbeat_answered(
        &mut self,
        now: Now,
        answer: &BrokerHeartbeatResponse,
        out: &mut Effects<D>,
    ) {
        if answer.error_code.is_error() {
            self.asked_in_vain(&format!("heartbeat: {}", answer.error_code), out);
            if answer.error_code == ErrorCode::STALE_BROKER_EPOCH {
                self.registration_lost(now, out);
            }
            return;
        }
        match self.broker.phase {
            Phase::CatchingUp if !answer.is_caught_up => self.hurry(now, SOON),
            Phase::Unfencing if !answer.is_fenced => {
                self.broker.phase = Phase::Running;
                if !std::mem::replace(&mut self.broker.served, true) {
                    out.push(Effect::Serving(ListenerKind::Broker));
                }
            }
            Phase::Unfencing => self.hurry(now, SOON),
            Phase::Running if answer.is_fenced => {
                let text = "the controller fenced this broker for its silence; asking again";
                out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
                self.broker.phase = Phase::Unfencing;
                self.hurry(now, Millis::ZERO);
            }
            Phase::ShuttingDown if answer.should_shut_down => self.begin_close(out),
            Phase::ShuttingDown => self.hurry(now, SOON),
            _ => {}
        }
        self.lifecycle_tick(now, out);
    }

    /// The controller does not know this life of the broker any more, for what a life before it sent
    /// came late. This one holds the directories: it registers again.
    fn registration_lost(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase == Phase::ShuttingDown {
            // Nothing is left to be handed over.
            return self.begin_close(out);
        }
        self.broker.phase = Phase::Registering;
        self.broker.registered_by = Some(now.mono.plus(self.broker.registration_timeout));
        self.hurry(now, SOON);
    }

    fn asked_in_vain(&self, why: &str, out: &mut Effects<D>) {
        out.push(Effect::Event(JournalEntry::text(
            Level::Warn,
            format!("controller: {why}"),
        )));
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
                "no controller was found within initial.broker.registration.timeout.ms; asked at {}",
                asked.join(", ")
            )
        };
        self.fail(text, out);
    }
}

/// Whether an answer says that somebody else is the controller now.
const fn is_from_another(response: &Response) -> bool {
    let code = match response {
        Response::BrokerRegistration(answer) => answer.error_code,
        Response::BrokerHeartbeat(answer) => answer.error_code,
        _ => return false,
    };
    matches!(code, ErrorCode::NOT_CONTROLLER)
}
