use highwater_records::stored::metadata::ProducerIdsRecord;
use highwater_types::{BrokerEpoch, ErrorCode, NodeId};

use super::{Controller, Decision};
use crate::image::MetadataImage;

/// Producer ids that a broker gets at a time.
pub const PRODUCER_IDS_PER_BLOCK: i32 = 1000;

/// A block of producer ids that nobody else will be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedProducerIds {
    /// The first.
    pub start: i64,
    /// How many.
    pub count: i32,
}

impl Controller {
    /// Hands out the next block of producer ids.
    ///
    /// # Errors
    /// STALE_BROKER_EPOCH for a broker that is not registered so; UNKNOWN_SERVER_ERROR when all
    /// ids are used up.
    pub fn allocate_producer_ids(
        &self,
        image: &MetadataImage,
        id: NodeId,
        epoch: BrokerEpoch,
    ) -> Result<Decision<AllocatedProducerIds>, ErrorCode> {
        Self::check_broker_epoch(image, id, epoch)?;
        let start = image.next_producer_id;
        let next = start.checked_add(i64::from(PRODUCER_IDS_PER_BLOCK));
        let next_producer_id = next.ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)?;
        let record = ProducerIdsRecord {
            broker_id: id,
            broker_epoch: epoch.raw(),
            next_producer_id,
        };
        let answer = AllocatedProducerIds {
            start,
            count: PRODUCER_IDS_PER_BLOCK,
        };
        Ok(Decision {
            records: vec![record.into()],
            answer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::Cluster;

    #[test]
    fn i_23_no_two_blocks_overlap() {
        let mut cluster = Cluster::new(1);
        let epoch = cluster
            .image()
            .broker(NodeId::new(1))
            .expect("registered")
            .epoch;
        for start in [0, 1000, 2000] {
            let decision = cluster
                .controller
                .allocate_producer_ids(cluster.image(), NodeId::new(1), epoch)
                .expect("known");
            assert_eq!(decision.answer, AllocatedProducerIds { start, count: 1000 });
            cluster.apply(&decision.records);
        }
        let stale = BrokerEpoch::new(epoch.raw() + 1);
        let refused =
            cluster
                .controller
                .allocate_producer_ids(cluster.image(), NodeId::new(1), stale);
        assert_eq!(refused, Err(ErrorCode::STALE_BROKER_EPOCH));
    }
}
