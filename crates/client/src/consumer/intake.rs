//! What the consumer makes of a broker's answer.

use highwater_protocol::messages::FetchResponse;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_types::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId};
use tokio::time::Instant;

use super::fetched::{BatchReader, PartitionRecords};
use super::handle::{Asked, Consumer};
use super::position::Position;
use crate::config::duration;
use crate::error::ClientError;
use crate::offsets::PartitionName;

impl Consumer {
    /// Takes in an answer to what was `asked`. A partition that was moved meanwhile is skipped.
    pub(super) fn take_in(
        &mut self,
        asked: &Asked,
        answer: FetchResponse,
        now: Instant,
    ) -> Vec<PartitionRecords> {
        let mut records = Vec::new();
        for topic in answer.responses {
            let id = TopicId::new(topic.topic_id);
            let by_id = || asked.iter().find(|(_, (_, topic_id))| *topic_id == id);
            let topic_name = if topic.topic.is_empty() {
                by_id().map(|((name, _), _)| name.clone())
            } else {
                Some(topic.topic)
            };
            let Some(topic_name) = topic_name else {
                continue;
            };
            for data in topic.partitions {
                let name = (
                    topic_name.clone(),
                    PartitionIndex::new(data.partition_index),
                );
                let Some((offset, _)) = asked.get(&name) else {
                    continue;
                };
                let moved = self
                    .partitions
                    .get(&name)
                    .is_none_or(|tracked| tracked.position != Position::At(*offset));
                if !moved {
                    records.extend(self.take_in_partition(&name, *offset, data, now));
                }
            }
        }
        records
    }

    fn take_in_partition(
        &mut self,
        name: &PartitionName,
        offset: Offset,
        data: PartitionData,
        now: Instant,
    ) -> Option<PartitionRecords> {
        if data.error_code.is_error() {
            self.refused(name, offset, &data, now);
            return None;
        }
        if data.diverging_epoch.end_offset >= 0 {
            self.diverged(name, offset, Offset::new(data.diverging_epoch.end_offset));
            return None;
        }
        let tracked = self.partitions.get_mut(name)?;
        tracked.failures = 0;
        tracked.high_watermark = Some(Offset::new(data.high_watermark));
        tracked.last_stable_offset = Some(Offset::new(data.last_stable_offset));
        tracked.log_start_offset =
            (data.log_start_offset >= 0).then(|| Offset::new(data.log_start_offset));
        let bytes = data.records.unwrap_or_default();
        let mut reader = BatchReader {
            config: &self.config,
            decompressor: &mut self.decompressor,
        };
        let intake = reader.read(
            &bytes,
            offset,
            tracked.last_epoch,
            data.aborted_transactions,
        );
        tracked.position = Position::At(intake.next);
        tracked.last_epoch = intake.last_epoch;
        if let Some((at, why)) = intake.stopped {
            tracked.failures += 1;
            let pause = self.client.config().backoff(tracked.failures);
            tracked.not_before = now + duration(pause);
            self.errors.push_back(ClientError::Corrupt {
                partition: format!("{}-{}", name.0, name.1),
                offset: at,
                why: why.to_string(),
            });
        }
        if intake.batches.is_empty() {
            return None;
        }
        Some(PartitionRecords {
            topic: name.0.clone(),
            partition: name.1,
            high_watermark: Offset::new(data.high_watermark),
            last_stable_offset: Offset::new(data.last_stable_offset),
            log_start_offset: tracked.log_start_offset,
            batches: intake.batches,
            from: offset,
        })
    }

    fn refused(
        &mut self,
        name: &PartitionName,
        offset: Offset,
        data: &PartitionData,
        now: Instant,
    ) {
        let code = data.error_code;
        let (topic, index) = name;
        let leader = &data.current_leader;
        let epoch = LeaderEpoch::new(leader.leader_epoch);
        let is_news = self
            .client
            .note_leader(topic, *index, leader.leader_id, epoch);
        let Some(tracked) = self.partitions.get_mut(name) else {
            return;
        };
        tracked.failures += 1;
        let pause = self.client.config().backoff(tracked.failures);
        tracked.not_before = now + duration(pause);
        let partition = format!("{topic}-{index}");
        if code == ErrorCode::OFFSET_OUT_OF_RANGE {
            match self.config.auto_offset_reset.spec() {
                Some(spec) => {
                    tracing::debug!(partition, %offset, "outside the log: position is reset");
                    tracked.position = Position::Unknown(spec);
                    tracked.last_epoch = LeaderEpoch::NONE;
                    tracked.not_before = now;
                }
                None => {
                    let error = ClientError::OffsetOutOfRange { partition, offset };
                    self.errors.push_back(error);
                }
            }
            return;
        }
        if code == ErrorCode::CORRUPT_MESSAGE {
            let why = "the broker says so".to_owned();
            self.errors.push_back(ClientError::Corrupt {
                partition,
                offset,
                why,
            });
            return;
        }
        if code.is_retriable() {
            tracing::debug!(partition, %code, "fetch is tried again");
            if is_news {
                tracked.not_before = now;
            } else {
                self.stale.insert(topic.clone());
            }
            return;
        }
        self.errors.push_back(ClientError::refused(
            format!("fetch {partition}"),
            code,
            None,
        ));
    }

    /// The log was truncated below the position. Goes on where histories part, if positions may
    /// be reset at all.
    fn diverged(&mut self, name: &PartitionName, position: Offset, end: Offset) {
        let Some(tracked) = self.partitions.get_mut(name) else {
            return;
        };
        let truncated_to = end.min(position);
        tracked.last_epoch = LeaderEpoch::NONE;
        if self.config.auto_offset_reset.spec().is_some() {
            tracked.position = Position::At(truncated_to);
            return;
        }
        let partition = format!("{}-{}", name.0, name.1);
        self.errors.push_back(ClientError::Truncated {
            partition,
            position,
            truncated_to,
        });
    }
}
