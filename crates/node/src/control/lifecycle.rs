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
use highwater_types::{BrokerEpoch, Millis, Mono, Now, Uuid};

use super::{Control, Effects};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Channel, Effect, Peer, PeerError, Token};

/// How soon a broker asks again while it waits for something that is about to happen.
const SOON: Millis = Millis::new(10);
/// Longest that a stopping broker waits for its partitions to be handed over.
const CONTROLLED_SHUTDOWN_MAX: Millis = Millis::new(30_000);

/// Where the broker is on its way up or down.
///
/// Legal transitions: `Starting` -> `Registering` -> `CatchingUp` -> `LoadingLogs` -> `Unfencing`
/// -> `Running`; each of these -> `ShuttingDown` (once registered) or `Closing`; `ShuttingDown` ->
/// `Closing` -> `Marking` -> `Stopped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing of this epoch is committed yet.
    Starting,
    /// The registration is not answered yet.
    Registering,
    /// The registration is not applied yet.
    CatchingUp,
    /// The shards open their logs.
    LoadingLogs,
    /// All logs are open; the broker wants to serve.
    Unfencing,
    /// The broker serves.
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

/// The broker's own state with its controller.
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
    heartbeat_interval: Millis,
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
            heartbeat_interval: millis("broker.heartbeat.interval.ms"),
            registration_timeout: millis("initial.broker.registration.timeout.ms"),
            loading: (0..config.shards()).collect(),
            served: false,
        }
    }

    /// When the broker wants to do something by itself.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let asks = (Phase::Registering..=Phase::ShuttingDown).contains(&self.phase);
        let request = (asks && self.waiting.is_none()).then_some(self.next_request);
        let shutdown = self
            .shutdown_by
            .filter(|_| self.phase == Phase::ShuttingDown);
        request.into_iter().chain(shutdown).min()
    }
}

impl<D: Disk> Control<D> {
    /// Sends what is due: one request at a time.
    pub(super) fn lifecycle_tick(&mut self, now: Now, out: &mut Effects<D>) {
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

    /// The metadata log of this epoch has committed something: the broker may register.
    pub(super) fn lifecycle_leader_ready(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase == Phase::Starting {
            self.broker.phase = Phase::Registering;
            self.broker.registered_by = Some(now.mono.plus(self.broker.registration_timeout));
            self.broker.next_request = now.mono;
            out.push(Effect::Serving(ListenerKind::Controller));
            self.lifecycle_tick(now, out);
        }
    }

    /// A new image was published: the broker may have been waiting for it.
    pub(super) fn lifecycle_published(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase == Phase::CatchingUp && self.has_applied_registration() {
            self.broker.phase = Phase::LoadingLogs;
            self.lifecycle_logs_loaded(now, out);
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
            && self.broker.phase >= Phase::CatchingUp
            && self.failure.is_none();
        match self.broker.phase {
            Phase::ShuttingDown | Phase::Closing | Phase::Marking | Phase::Stopped => {}
            _ if hands_over => {
                self.broker.phase = Phase::ShuttingDown;
                self.broker.shutdown_by = Some(now.mono.plus(CONTROLLED_SHUTDOWN_MAX));
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
            deadline: now.mono.plus(self.controller.session_timeout),
        });
    }

    /// The active controller: this node, as long as it is the only voter.
    pub(super) fn to_controller(&self) -> Peer {
        let (id, listener) = (self.config.node_id, ListenerKind::Controller);
        let endpoint = crate::format::endpoints(&self.config, listener)
            .into_iter()
            .next();
        endpoint.map_or_else(
            || Peer::unknown(id, listener),
            |it| Peer {
                id,
                host: it.host.into(),
                port: it.port,
                listener,
            },
        )
    }

    pub(super) fn handle_peer_answer(
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
        self.broker.next_request = now.mono.plus(self.broker.heartbeat_interval);
        match result {
            Ok(Response::BrokerRegistration(answer)) => self.registered(now, &answer, out),
            Ok(Response::BrokerHeartbeat(answer)) => self.heartbeat_answered(now, &answer, out),
            Ok(_) => self.asked_in_vain("another answer than was asked for", out),
            Err(why) => self.asked_in_vain(&why.to_string(), out),
        }
        self.give_up_registering(now, out);
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

    fn asked_in_vain(&self, why: &str, out: &mut Effects<D>) {
        out.push(Effect::Event(JournalEntry::text(
            Level::Warn,
            format!("controller: {why}"),
        )));
    }

    fn give_up_registering(&mut self, now: Now, out: &mut Effects<D>) {
        let late = self.broker.registered_by.is_some_and(|at| at <= now.mono);
        if late && self.broker.phase == Phase::Registering {
            let text =
                "the broker could not register within initial.broker.registration.timeout.ms";
            self.fail(text.to_owned(), out);
        }
    }
}
