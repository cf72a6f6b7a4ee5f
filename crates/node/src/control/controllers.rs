//! How a controller makes itself known to the active one, over the wire also when both are one
//! (KIP-919).

use highwater_disk::Disk;
use highwater_metadata::controller::CONTROLLERS_SINCE;
use highwater_metadata::image::{BrokerEndpoint, supported_features};
use highwater_protocol::Response;
use highwater_protocol::messages::ControllerRegistrationRequest;
use highwater_protocol::messages::controller_registration_request::{Feature, Listener};
use highwater_types::{Millis, Mono, Now, Uuid};

use super::{Control, Effects};
use crate::machine::{Channel, Effect, PeerError, Token};

/// How long after a failure the next try waits: this long at first, twice as long each time.
const RETRY_MIN: Millis = Millis::new(100);
const RETRY_MAX: Millis = Millis::new(10_000);

/// This controller's own registration.
#[derive(Debug)]
pub(super) struct OwnRegistration {
    /// One life of this controller.
    incarnation: Uuid,
    /// The request that is out.
    waiting: Option<Token>,
    /// After a failure: not before.
    retry_at: Option<Mono>,
    failures: u32,
}

impl OwnRegistration {
    pub(super) const fn new(incarnation: Uuid) -> Self {
        Self {
            incarnation,
            waiting: None,
            retry_at: None,
            failures: 0,
        }
    }

    /// When there is something to do again.
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.retry_at.filter(|_| self.waiting.is_none())
    }
}

impl<D: Disk> Control<D> {
    /// Registers this controller, unless the committed metadata know its present life.
    pub(super) fn register_as_controller(&mut self, now: Now, out: &mut Effects<D>) {
        if !self.config.roles.controller {
            return;
        }
        let own = &self.own_registration;
        let image = self.committed.settled_image();
        let known = image.controllers.get(&self.config.node_id);
        let is_known = known.is_some_and(|it| it.incarnation == own.incarnation);
        if is_known || image.metadata_version() < CONTROLLERS_SINCE {
            self.own_registration.retry_at = None;
            return;
        }
        let waits = own.waiting.is_some() || own.retry_at.is_some_and(|at| at > now.mono);
        if waits {
            return;
        }
        let token = self.new_token();
        self.own_registration.waiting = Some(token);
        out.push(Effect::Send {
            peer: self.to_controller(),
            channel: Channel::Others,
            token,
            request: self.own_registration_request().into(),
            deadline: now.mono.plus(RETRY_MAX),
        });
    }

    fn own_registration_request(&self) -> ControllerRegistrationRequest {
        let endpoints = crate::format::controller_endpoints(&self.config);
        let listener = |it: BrokerEndpoint| Listener {
            name: it.name,
            host: it.host,
            port: it.port,
            security_protocol: it.security_protocol,
        };
        let features = supported_features().iter().map(|it| Feature {
            name: it.name.to_owned(),
            min_supported_version: it.min,
            max_supported_version: it.max,
        });
        ControllerRegistrationRequest {
            controller_id: self.config.node_id.raw(),
            incarnation_id: self.own_registration.incarnation,
            zk_migration_ready: false,
            listeners: endpoints.into_iter().map(listener).collect(),
            features: features.collect(),
        }
    }

    /// Takes the answer to the own registration. Whether it was one to this.
    pub(super) fn registered_as_controller(
        &mut self,
        now: Now,
        token: Token,
        result: &Result<Response, PeerError>,
    ) -> bool {
        let own = &mut self.own_registration;
        if own.waiting.take_if(|it| *it == token).is_none() {
            return false;
        }
        let why = match result {
            Ok(Response::ControllerRegistration(answer)) if !answer.error_code.is_error() => {
                (own.failures, own.retry_at) = (0, None);
                return true;
            }
            Ok(Response::ControllerRegistration(answer)) => answer.error_code.to_string(),
            Ok(_) => "another answer than was asked for".to_owned(),
            Err(why) => why.to_string(),
        };
        let wait = RETRY_MIN.as_u64().saturating_mul(1 << own.failures.min(10));
        own.failures = own.failures.saturating_add(1);
        own.retry_at = Some(now.mono.plus(Millis::new(wait).min(RETRY_MAX)));
        self.warnings
            .push(format!("this controller is not registered yet: {why}"));
        true
    }
}
