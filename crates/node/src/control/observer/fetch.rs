//! The fetch loop.

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_log::AppendError;
use highwater_protocol::messages::FetchRequest;
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use highwater_protocol::messages::fetch_response::{FetchResponse, NodeEndpoint, PartitionData};
use highwater_protocol::{ListenerKind, OutRequest, Response};
use highwater_quorum::{Address, FetchAnswer, FetchStep, FetchTarget, LeaderTold};
use highwater_records::Batches;
use highwater_types::{
    EpochEnd, ErrorCode, LeaderEpoch, NodeId, Now, Offset, OffsetAndEpoch, TopicId,
};

use super::download::Download;
use super::{Doing, Followed, MAX_WAIT, Observer, Sent};
use crate::machine::{Channel, Effect, Peer, PeerError, Token};

/// An answer to a fetch of the metadata log.
struct Answer {
    judged: FetchAnswer,
    high_watermark: Offset,
    records: Bytes,
}

impl<D: Disk> Observer<D> {
    /// The next request, when one is due. `new_token` names it.
    pub(in crate::control) fn poll(
        &mut self,
        now: Now,
        new_token: impl FnOnce() -> Token,
    ) -> Option<Effect<D>> {
        match &self.doing {
            Doing::Resting(until) if *until <= now.mono => self.send_fetch(now, new_token()),
            Doing::Downloading(_) => self.send_fetch_snapshot(now, new_token),
            _ => None,
        }
    }

    fn send_fetch(&mut self, now: Now, token: Token) -> Option<Effect<D>> {
        let Some(target) = self.state.target(now.mono) else {
            self.rest(now);
            return None;
        };
        let epoch = self.state.epoch();
        let request = self.fetch_request(epoch);
        self.doing = Doing::Fetching(Sent {
            token,
            target: target.clone(),
            epoch,
        });
        Some(self.send(now, &target, token, request.into()))
    }

    /// The fields as Kafka's observers fill them.
    fn fetch_request(&self, epoch: LeaderEpoch) -> FetchRequest {
        let partition = FetchPartition {
            partition: 0,
            current_leader_epoch: epoch.raw(),
            fetch_offset: self.log.end().raw(),
            last_fetched_epoch: self.log.state().last_epoch().raw(),
            log_start_offset: -1,
            partition_max_bytes: 0,
            replica_directory_id: self.identity.key.directory_id.uuid(),
            high_watermark: self.state.high_watermark().map_or(-1, Offset::raw),
        };
        FetchRequest {
            cluster_id: Some(self.identity.cluster_id.clone()),
            replica_state: ReplicaState {
                replica_id: self.identity.key.id,
                replica_epoch: -1,
            },
            max_wait_ms: i32::try_from(MAX_WAIT.as_u64()).unwrap_or(i32::MAX),
            max_bytes: self.limits.fetch_bytes_max,
            topics: vec![FetchTopic {
                topic_id: TopicId::CLUSTER_METADATA.uuid(),
                partitions: vec![partition],
                ..FetchTopic::default()
            }],
            ..FetchRequest::default()
        }
    }

    pub(super) fn send(
        &self,
        now: Now,
        target: &FetchTarget,
        token: Token,
        request: OutRequest,
    ) -> Effect<D> {
        Effect::Send {
            peer: Peer {
                id: target.id.unwrap_or(NodeId::NONE),
                host: target.address.host.as_str().into(),
                port: target.address.port,
                listener: ListenerKind::Controller,
            },
            channel: Channel::Metadata,
            token,
            request,
            deadline: now.mono.plus(self.limits.request_timeout),
        }
    }

    /// Takes the answer to a request of this observer. `None` when it was not one.
    pub(in crate::control) fn handle_answer(
        &mut self,
        now: Now,
        token: Token,
        result: &Result<Response, PeerError>,
        warnings: &mut Vec<String>,
    ) -> Option<Followed<D>> {
        match &self.doing {
            Doing::Fetching(sent) if sent.token == token => {
                let sent = sent.clone();
                Some(self.fetched(now, &sent, result, warnings))
            }
            Doing::Downloading(download) if download.waits_for(token) => {
                Some(self.snapshot_fetched(now, result, warnings))
            }
            _ => None,
        }
    }

    fn fetched(
        &mut self,
        now: Now,
        sent: &Sent,
        result: &Result<Response, PeerError>,
        warnings: &mut Vec<String>,
    ) -> Followed<D> {
        let answer = match result {
            Ok(Response::Fetch(response)) if response.error_code.is_error() => {
                Err(self.refusal(response.error_code, &sent.target))
            }
            Ok(Response::Fetch(response)) => answer(response),
            Ok(_) => Err("another answer than was asked for".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                self.complain_of_silence(now, &why, warnings);
                self.rest(now);
                return Followed::Nothing;
            }
        };
        let log = self.log.state();
        let step = self
            .state
            .judge_fetch(now.mono, &sent.target, sent.epoch, &answer.judged, log);
        // What can be done at once is: a rest says otherwise.
        self.doing = Doing::Resting(now.mono);
        match step {
            FetchStep::Append => return self.append(now, sent, &answer, warnings),
            FetchStep::Truncate(to) => return self.truncate(now, to),
            FetchStep::TakeSnapshot(id) => return self.begin_download(now, id, warnings),
            FetchStep::Moved => {}
            FetchStep::Rest(span) => {
                let why = self.refusal(answer.judged.error, &sent.target);
                self.complain_of_silence(now, &why, warnings);
                self.doing = Doing::Resting(now.mono.plus(span));
            }
            FetchStep::Contradiction(why) => return Followed::Failed(why),
        }
        Followed::Nothing
    }

    /// What an answer with an error means, for people.
    fn refusal(&self, error: ErrorCode, by: &FetchTarget) -> String {
        let address = &by.address;
        if error == ErrorCode::INCONSISTENT_CLUSTER_ID {
            return format!(
                "the controller at {}:{} is that of another cluster than ours, {}; correct \
                 controller.quorum.bootstrap.servers, or format this node for its cluster",
                address.host, address.port, self.identity.cluster_id
            );
        }
        format!("the controller answered {error}")
    }

    fn append(
        &mut self,
        now: Now,
        sent: &Sent,
        answer: &Answer,
        warnings: &mut Vec<String>,
    ) -> Followed<D> {
        let appended = if let Err(why) = check_gapless(&answer.records, self.log.end()) {
            Err(why)
        } else {
            let log = self.log.log_mut();
            match log.append_as_follower(now, &answer.records, sent.epoch) {
                Ok(_) => Ok(()),
                Err(AppendError::Disk(why)) => {
                    return Followed::Failed(format!("the metadata log cannot be written: {why}"));
                }
                Err(why) => Err(why.to_string()),
            }
        };
        match appended {
            Ok(()) => self.complained = false,
            Err(why) => {
                self.complain(&why, warnings);
                self.rest(now);
            }
        }
        let end = self.log.end();
        self.state.handle_high_watermark(answer.high_watermark, end);
        Followed::Nothing
    }

    fn truncate(&mut self, now: Now, to: Offset) -> Followed<D> {
        match self.log.log_mut().truncate_to(now, to) {
            Ok(files) => Followed::Cut(to, files),
            Err(why) => Followed::Failed(format!("the metadata log cannot be cut: {why}")),
        }
    }

    fn begin_download(
        &mut self,
        now: Now,
        id: OffsetAndEpoch,
        warnings: &mut Vec<String>,
    ) -> Followed<D> {
        match Download::begin(self.log.disk(), id) {
            Ok(download) => {
                self.doing = Doing::Downloading(download);
            }
            Err(why) => {
                self.complain(&why, warnings);
                self.rest(now);
            }
        }
        Followed::Nothing
    }
}

/// Offsets of the metadata log have no gaps.
fn check_gapless(records: &[u8], end: Offset) -> Result<(), String> {
    let mut expected = end;
    for batch in Batches::new(records) {
        let batch = batch.map_err(|why| why.to_string())?;
        let header = batch.header();
        if header.base_offset != expected {
            return Err(format!(
                "the leader sent a batch at {} where {expected} was due",
                header.base_offset
            ));
        }
        expected = header.next_offset();
    }
    Ok(())
}

fn answer(response: &FetchResponse) -> Result<Answer, String> {
    let [topic] = response.responses.as_slice() else {
        return Err("the answer is not about one topic".to_owned());
    };
    let [partition] = topic.partitions.as_slice() else {
        return Err("the answer is not about one partition".to_owned());
    };
    let is_ours =
        topic.topic_id == TopicId::CLUSTER_METADATA.uuid() && partition.partition_index == 0;
    if !is_ours {
        return Err("the answer is not about the metadata log".to_owned());
    }
    Ok(Answer {
        judged: FetchAnswer {
            error: partition.error_code,
            leader: leader_told(partition, &response.node_endpoints),
            diverging: diverging(partition),
            snapshot: snapshot(partition),
        },
        high_watermark: Offset::new(partition.high_watermark),
        records: partition.records.clone().unwrap_or_default(),
    })
}

fn leader_told(partition: &PartitionData, endpoints: &[NodeEndpoint]) -> LeaderTold {
    let told = &partition.current_leader;
    let id = Some(told.leader_id).filter(|id| id.is_some());
    let endpoint = endpoints.iter().find(|it| Some(it.node_id) == id);
    let address = endpoint.and_then(|it| {
        let port = u16::try_from(it.port).ok()?;
        let host = it.host.clone();
        Some(Address { host, port })
    });
    LeaderTold {
        epoch: LeaderEpoch::new(told.leader_epoch),
        id,
        address,
    }
}

fn diverging(partition: &PartitionData) -> Option<EpochEnd> {
    let told = &partition.diverging_epoch;
    (told.epoch >= 0).then(|| EpochEnd {
        epoch: LeaderEpoch::new(told.epoch),
        end_offset: Offset::new(told.end_offset.max(0)),
    })
}

fn snapshot(partition: &PartitionData) -> Option<OffsetAndEpoch> {
    let told = &partition.snapshot_id;
    (told.epoch >= 0 && told.end_offset >= 0).then(|| OffsetAndEpoch {
        epoch: LeaderEpoch::new(told.epoch),
        offset: Offset::new(told.end_offset),
    })
}
