//! What the broker asks its controller, and what it makes of the answers.

use highwater_disk::Disk;
use highwater_metadata::image::supported_features;
use highwater_protocol::messages::broker_registration_request::{Feature, Listener};
use highwater_protocol::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse,
};
use highwater_protocol::{ListenerKind, OutRequest, Response};
use highwater_types::{BrokerEpoch, ErrorCode, Millis, Now};

use super::Phase;
use crate::control::{Control, Effects};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Channel, Effect, PeerError, Token};

/// How soon a broker asks again while it waits for something that is about to happen.
const SOON: Millis = Millis::new(10);
/// How long a stopping broker looks for a controller that could take its partitions over.
const CONTROLLER_GONE_MAX: Millis = Millis::new(3000);

impl<D: Disk> Control<D> {
    pub(super) fn send_registration(&mut self, now: Now, out: &mut Effects<D>) {
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

    pub(super) fn send_heartbeat(&mut self, now: Now, out: &mut Effects<D>) {
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

    pub(in crate::control) fn handle_lifecycle_answer(
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

    /// The controller does not know this life of the broker any more, for what a life before it
    /// sent came late. This one holds the directories: it registers again.
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
