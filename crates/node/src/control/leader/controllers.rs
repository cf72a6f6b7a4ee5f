//! What the active controller decides about registrations of controllers (KIP-919).

use highwater_disk::Disk;
use highwater_metadata::image::{BrokerEndpoint, ControllerImage, FeatureRange};
use highwater_protocol::messages::{ControllerRegistrationRequest, ControllerRegistrationResponse};
use highwater_types::{ErrorCode, NodeId, Now};

use super::Leader;

impl<D: Disk> Leader<D> {
    /// Serves ControllerRegistration.
    pub(super) fn register_controller(
        &mut self,
        now: Now,
        request: ControllerRegistrationRequest,
    ) -> ControllerRegistrationResponse {
        let kraft_version = self.log.kraft_version;
        let request = controller(request);
        let image = self.latest.image();
        let decision = self
            .controller
            .register_controller(image, &request, kraft_version);
        let (error_code, error_message) = match decision {
            Ok(decision) => match self.commit(now, decision) {
                Ok(()) => (ErrorCode::NONE, None),
                Err(code) => (code, None),
            },
            Err(why) => (why.code, why.message),
        };
        ControllerRegistrationResponse {
            throttle_time_ms: 0,
            error_code,
            error_message,
        }
    }
}

fn controller(request: ControllerRegistrationRequest) -> ControllerImage {
    let endpoints = request.listeners.into_iter().map(|it| BrokerEndpoint {
        name: it.name,
        host: it.host,
        port: it.port,
        security_protocol: it.security_protocol,
    });
    let features = request.features.into_iter().map(|it| FeatureRange {
        name: it.name,
        min: it.min_supported_version,
        max: it.max_supported_version,
    });
    ControllerImage {
        id: NodeId::new(request.controller_id),
        incarnation: request.incarnation_id,
        zk_migration_ready: request.zk_migration_ready,
        endpoints: endpoints.collect(),
        features: features.collect(),
    }
}
