use highwater_records::stored::MetadataRecord;
use highwater_types::ErrorCode;

use super::registration::check_features;
use super::{Controller, Decision, Refusal};
use crate::image::{ControllerImage, MetadataImage};
use crate::snapshot::controller_record;

/// The metadata.version (3.7-IV0) from which controllers register.
pub const CONTROLLERS_SINCE: i16 = 15;

impl Controller {
    /// Decides on the registration of a controller (KIP-919): it makes itself known each time that
    /// it starts, with the features that it can work with.
    ///
    /// # Errors
    /// UNSUPPORTED_VERSION below [`CONTROLLERS_SINCE`], and for one that cannot work with a
    /// finalised level; INVALID_REGISTRATION, INVALID_REQUEST.
    pub fn register_controller(
        &self,
        image: &MetadataImage,
        request: &ControllerImage,
        kraft_version: i16,
    ) -> Result<Decision<()>, Refusal> {
        if image.metadata_version() < CONTROLLERS_SINCE {
            let text = "The current metadata.version has no registrations of controllers.";
            return Err(Refusal::new(ErrorCode::UNSUPPORTED_VERSION, text));
        }
        if !request.id.is_some() {
            let text = "The controller id is negative.";
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
        }
        check_features(image, &request.features, kraft_version, "controller")?;
        Ok(Decision {
            records: vec![MetadataRecord::from(controller_record(request))],
            answer: (),
        })
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::{NodeId, Uuid};

    use super::*;
    use crate::controller::testing::Cluster;
    use crate::image::{BrokerEndpoint, FeatureRange, METADATA_VERSION, supported_features};

    fn controller(id: i32) -> ControllerImage {
        let features = supported_features().iter().map(|it| FeatureRange {
            name: it.name.to_owned(),
            min: it.min,
            max: it.max,
        });
        ControllerImage {
            id: NodeId::new(id),
            incarnation: Uuid::from_u128(9),
            endpoints: vec![BrokerEndpoint {
                name: "CONTROLLER".to_owned(),
                host: "h".to_owned(),
                port: 9093,
                security_protocol: 0,
            }],
            features: features.collect(),
            ..ControllerImage::default()
        }
    }

    fn register(cluster: &mut Cluster, request: &ControllerImage) -> Result<(), ErrorCode> {
        let decision = cluster
            .controller
            .register_controller(cluster.image(), request, 1);
        let decision = decision.map_err(|why| why.code)?;
        cluster.apply(&decision.records);
        Ok(())
    }

    #[test]
    fn a_controller_is_known_as_it_said() {
        let mut cluster = Cluster::new(0);
        register(&mut cluster, &controller(100)).expect("accepted");
        let known = &cluster.image().controllers[&NodeId::new(100)];
        assert_eq!(**known, controller(100));
        // Another life of it takes its place.
        let again = ControllerImage {
            incarnation: Uuid::from_u128(10),
            ..controller(100)
        };
        register(&mut cluster, &again).expect("accepted");
        assert_eq!(cluster.image().controllers.len(), 1);
        assert_eq!(*cluster.image().controllers[&NodeId::new(100)], again);
    }

    #[test]
    fn a_controller_that_cannot_work_with_a_finalised_level_is_refused() {
        let mut cluster = Cluster::new(0);
        let mut old = controller(100);
        old.features.retain(|it| it.name != METADATA_VERSION);
        assert_eq!(
            register(&mut cluster, &old),
            Err(ErrorCode::INVALID_REGISTRATION)
        );
        old.features.push(FeatureRange {
            name: METADATA_VERSION.to_owned(),
            min: 1,
            max: 20,
        });
        assert_eq!(
            register(&mut cluster, &old),
            Err(ErrorCode::UNSUPPORTED_VERSION)
        );
        assert_eq!(
            register(&mut cluster, &controller(-1)),
            Err(ErrorCode::INVALID_REQUEST)
        );
        cluster.finalize(METADATA_VERSION, 14);
        assert_eq!(
            register(&mut cluster, &controller(1)),
            Err(ErrorCode::UNSUPPORTED_VERSION)
        );
    }
}
