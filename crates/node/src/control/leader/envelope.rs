//! Requests of clients that brokers hand on in envelopes.

use highwater_disk::Disk;
use highwater_metadata::MetadataDelta;
use highwater_protocol::Response;
use highwater_protocol::messages::{EnvelopeRequest, EnvelopeResponse};
use highwater_types::{ErrorCode, Now};

use super::Leader;
use super::answers::encoded;
use super::requests::Wait;
use crate::authorizer::{Operation, Resource};
use crate::envelope::{self, Opened};
use crate::machine::Caller;

impl<D: Disk> Leader<D> {
    /// Serves the request in an envelope for the client that is named on it (KIP-590). Only brokers
    /// may say who somebody is.
    pub(super) fn open_envelope(
        &mut self,
        now: Now,
        committed: &MetadataDelta,
        broker: &Caller,
        envelope: EnvelopeRequest,
    ) -> (Response, Wait) {
        let cluster = Resource::Cluster;
        let is_broker = self
            .authorizer
            .allows(broker, Operation::ClusterAction, cluster);
        if !is_broker {
            return refused(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
        }
        let Opened {
            caller,
            api_key,
            version,
            correlation_id,
            request,
        } = match envelope::open(broker, envelope) {
            Ok(opened) => opened,
            Err(code) => return refused(code),
        };
        if self.failed {
            return refused(ErrorCode::NOT_CONTROLLER);
        }
        let Some((response, wait)) = self.respond(now, committed, &caller, request, version) else {
            return refused(ErrorCode::INVALID_REQUEST);
        };
        match encoded(&response, version) {
            Ok(body) => {
                let sealed = envelope::seal_answer(api_key, version, correlation_id, &body);
                (sealed.into(), wait)
            }
            Err(text) => {
                self.warnings.push(text);
                refused(ErrorCode::UNKNOWN_SERVER_ERROR)
            }
        }
    }
}

fn refused(error_code: ErrorCode) -> (Response, Wait) {
    let response = EnvelopeResponse {
        response_data: None,
        error_code,
    };
    (response.into(), Wait::No)
}
