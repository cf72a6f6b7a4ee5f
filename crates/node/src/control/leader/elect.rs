use highwater_disk::Disk;
use highwater_metadata::controller::{Forced, ForcedElection, Refusal};
use highwater_types::{Now, TopicPartition};

use super::Leader;

impl<D: Disk> Leader<D> {
    /// Appends a forced election.
    pub(in crate::control) fn elect(
        &mut self,
        now: Now,
        asked: &ForcedElection,
    ) -> Result<(Forced, TopicPartition), Refusal> {
        let decision = self.controller.elect(self.latest.image(), asked)?;
        let topic = self.latest.image().topic(asked.at.topic_id);
        let partition = TopicPartition {
            topic: topic.expect("it has a partition to elect for").name.clone(),
            partition: asked.at.partition,
        };
        let message = None;
        let forced = self.commit(now, decision);
        let forced = forced.map_err(|code| Refusal { code, message })?;
        Ok((forced, partition))
    }
}
