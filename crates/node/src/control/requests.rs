//! The controller's side: requests that came in on the controller listener.

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_metadata::controller::Decision;
use highwater_metadata::split_for_batches;
use highwater_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest,
    AlterPartitionResponse, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse, ControllerRegistrationResponse,
};
use highwater_protocol::{ListenerKind, Request, Response};
use highwater_records::stored::MetadataRecord;
use highwater_types::{BrokerEpoch, ErrorCode, Now, ProducerId, Uuid};
use rand_chacha::rand_core::RngCore as _;

use super::{Control, Effects, convert};
use crate::authorizer::{Operation, Resource};
use crate::machine::{Answer, Caller, Effect, Incoming, Ticket};
use crate::shard::describe::{ApiVersionsContext, api_versions};

/// Whether an answer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It tells nothing that is not committed.
    No,
    /// Until everything appended so far is committed.
    ForCommit,
}

impl<D: Disk> Control<D> {
    pub(super) fn handle_request(&mut self, now: Now, incoming: Incoming, out: &mut Effects<D>) {
        let Incoming {
            ticket,
            caller,
            version,
            request,
            ..
        } = incoming;
        let Some((response, wait)) = self.respond(now, &caller, request, version) else {
            // `Connection` lets nothing else through; a closed connection is the honest answer.
            let answer = Answer::close();
            out.push(Effect::Answer { ticket, answer });
            return;
        };
        match (encoded(&response, version), wait) {
            (Ok(body), Wait::ForCommit) => self.answer_when_committed(ticket, body, out),
            (Ok(body), Wait::No) => self.answer(ticket, body, out),
            (Err(text), _) => {
                self.warnings.push(text);
                let answer = Answer::close();
                out.push(Effect::Answer { ticket, answer });
            }
        }
    }

    /// The answer to a request, and whether it depends on what is not committed yet. `None` for
    /// what no controller serves.
    pub(super) fn respond(
        &mut self,
        now: Now,
        caller: &Caller,
        request: Request,
        version: i16,
    ) -> Option<(Response, Wait)> {
        if let Request::ApiVersions(request) = &request {
            let cx = ApiVersionsContext {
                listener: ListenerKind::Controller,
                node_id: self.config.node_id,
                cluster_id: &self.cluster_id,
                kraft_version: self.kraft_version,
                image: self.committed.settled_image(),
            };
            return Some((api_versions(&cx, version, request).into(), Wait::No));
        }
        // What clients may send here, or through a broker.
        let request = match request {
            Request::Envelope(envelope) => return Some(self.open_envelope(now, caller, envelope)),
            Request::CreateTopics(request) => {
                let response = self.create_topics(now, caller, request);
                return Some((response, Wait::ForCommit));
            }
            Request::DeleteTopics(request) => {
                let response = self.delete_topics(now, caller, request, version);
                return Some((response, Wait::ForCommit));
            }
            request => request,
        };
        // What brokers want of a controller.
        let cluster = Resource::Cluster;
        let allowed = self
            .authorizer
            .allows(caller, Operation::ClusterAction, cluster);
        if !allowed {
            let response = refused(&request, ErrorCode::CLUSTER_AUTHORIZATION_FAILED)?;
            return Some((response, Wait::No));
        }
        let response = match request {
            Request::BrokerRegistration(request) => self.register(now, request, version).into(),
            Request::ControllerRegistration(request) => {
                self.register_controller(now, request).into()
            }
            Request::BrokerHeartbeat(request) => {
                let (response, wait) = self.heartbeat(now, request);
                return Some((response.into(), wait));
            }
            Request::AllocateProducerIds(request) => self.allocate(now, &request).into(),
            Request::AlterPartition(request) => self.alter_partition(now, request).into(),
            Request::AssignReplicasToDirs(request) => self.assign_to_dirs(now, request).into(),
            _ => return None,
        };
        Some((response, Wait::ForCommit))
    }

    fn register(
        &mut self,
        now: Now,
        request: BrokerRegistrationRequest,
        version: i16,
    ) -> BrokerRegistrationResponse {
        let refused = |error_code| BrokerRegistrationResponse {
            error_code,
            ..BrokerRegistrationResponse::default()
        };
        let request = convert::registration(request, version);
        let kraft_version = self.kraft_version;
        let next = self.log_end();
        let decision = self.controller.register_broker(
            self.latest.image(),
            &request,
            kraft_version,
            next,
            now.mono,
        );
        let id = request.broker_id;
        match decision
            .map_err(|why| why.code)
            .and_then(|it| self.commit(now, it))
        {
            Ok(epoch) => {
                let never = highwater_types::Offset::NONE;
                self.controller.sessions.touch(id, epoch, now.mono, never);
                BrokerRegistrationResponse {
                    broker_epoch: epoch.raw(),
                    ..BrokerRegistrationResponse::default()
                }
            }
            Err(code) => refused(code),
        }
    }

    /// The answer to a heartbeat, and whether nothing that is not committed is told with it: then
    /// it need not wait for the changes of others, however long their flush takes.
    fn heartbeat(
        &mut self,
        now: Now,
        request: BrokerHeartbeatRequest,
    ) -> (BrokerHeartbeatResponse, Wait) {
        let request = convert::heartbeat(request);
        let next = self.log_end();
        let image = self.latest.image().clone();
        let decision = self.controller.heartbeat(&image, &request, next, now.mono);
        let id = request.broker_id;
        // That a broker may stop depends on the partitions that it led, too.
        let is_settled = decision.as_ref().is_ok_and(|decision| {
            let settled = self.committed.settled_image().broker(id);
            decision.records.is_empty()
                && !decision.answer.should_shut_down
                && settled == image.broker(id)
        });
        let response = match decision.and_then(|it| self.commit(now, it)) {
            Ok(answer) => BrokerHeartbeatResponse {
                is_caught_up: answer.is_caught_up,
                is_fenced: answer.is_fenced,
                should_shut_down: answer.should_shut_down,
                ..BrokerHeartbeatResponse::default()
            },
            Err(error_code) => BrokerHeartbeatResponse {
                error_code,
                ..BrokerHeartbeatResponse::default()
            },
        };
        let wait = if is_settled {
            Wait::No
        } else {
            Wait::ForCommit
        };
        (response, wait)
    }

    fn allocate(
        &mut self,
        now: Now,
        request: &AllocateProducerIdsRequest,
    ) -> AllocateProducerIdsResponse {
        let (id, epoch) = (request.broker_id, BrokerEpoch::new(request.broker_epoch));
        let decision = self
            .controller
            .allocate_producer_ids(self.latest.image(), id, epoch);
        match decision.and_then(|it| self.commit(now, it)) {
            Ok(block) => AllocateProducerIdsResponse {
                producer_id_start: ProducerId::new(block.start),
                producer_id_len: block.count,
                ..AllocateProducerIdsResponse::default()
            },
            Err(error_code) => AllocateProducerIdsResponse {
                error_code,
                ..AllocateProducerIdsResponse::default()
            },
        }
    }

    fn alter_partition(
        &mut self,
        now: Now,
        request: AlterPartitionRequest,
    ) -> AlterPartitionResponse {
        let asked = convert::alter_partition(request);
        let decision = self.controller.alter_partition(self.latest.image(), &asked);
        match decision.and_then(|it| self.commit(now, it)) {
            Ok(outcomes) => convert::altered_partitions(outcomes),
            Err(error_code) => AlterPartitionResponse {
                error_code,
                ..AlterPartitionResponse::default()
            },
        }
    }

    fn assign_to_dirs(
        &mut self,
        now: Now,
        request: AssignReplicasToDirsRequest,
    ) -> AssignReplicasToDirsResponse {
        let asked = convert::assign_dirs(&request);
        let decision = self.controller.assign_dirs(self.latest.image(), &asked);
        match decision.and_then(|it| self.commit(now, it)) {
            Ok(codes) => convert::assigned_dirs(request, codes),
            Err(error_code) => AssignReplicasToDirsResponse {
                error_code,
                ..AssignReplicasToDirsResponse::default()
            },
        }
    }

    /// Appends the records of a decision and replays them into `latest`: from now on every
    /// decision builds on them. A decision that is too large for a batch takes several, in order:
    /// each record must be right without those after it.
    pub(super) fn commit<A>(&mut self, now: Now, decision: Decision<A>) -> Result<A, ErrorCode> {
        self.append(now, decision.records).map(|()| decision.answer)
    }

    /// As [`Control::commit`], in one batch or not at all: half a topic must not be found after a
    /// loss of power.
    pub(super) fn commit_whole<A>(
        &mut self,
        now: Now,
        decision: Decision<A>,
    ) -> Result<A, ErrorCode> {
        let runs = self.runs(decision.records)?;
        if runs.len() > 1 {
            return Err(ErrorCode::POLICY_VIOLATION);
        }
        self.append_runs(now, runs).map(|()| decision.answer)
    }

    /// As [`Control::commit`], for the machine's own records.
    pub(super) fn append(
        &mut self,
        now: Now,
        records: Vec<MetadataRecord>,
    ) -> Result<(), ErrorCode> {
        let runs = self.runs(records)?;
        self.append_runs(now, runs)
    }

    /// Cuts records into runs of one batch each. Nothing is taken after a failure: what was
    /// appended last may never be committed, so nothing may build on it.
    fn runs(
        &mut self,
        records: Vec<MetadataRecord>,
    ) -> Result<Vec<Vec<MetadataRecord>>, ErrorCode> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let metadata_version = self.latest.image().metadata_version();
        let Some(log) = self.log.as_ref().filter(|_| self.failure.is_none()) else {
            return Err(ErrorCode::NOT_CONTROLLER);
        };
        let runs = split_for_batches(records, metadata_version, log.batch_bytes_max());
        runs.map_err(|why| self.refused(&why.to_string()))
    }

    fn append_runs(&mut self, now: Now, runs: Vec<Vec<MetadataRecord>>) -> Result<(), ErrorCode> {
        let metadata_version = self.latest.image().metadata_version();
        for records in runs {
            self.append_run(now, records, metadata_version)?;
        }
        Ok(())
    }

    fn append_run(
        &mut self,
        now: Now,
        records: Vec<MetadataRecord>,
        metadata_version: i16,
    ) -> Result<(), ErrorCode> {
        let Some(log) = self.log.as_mut() else {
            return Err(ErrorCode::NOT_CONTROLLER);
        };
        let end = log.append(now, records.clone(), metadata_version);
        let end = end.map_err(|why| self.refused(&why.to_string()))?;
        for record in &records {
            self.latest
                .replay(record)
                .expect("the controller's records fit its image");
        }
        self.latest.set_end(end);
        self.last_append = now.mono;
        Ok(())
    }

    fn refused(&mut self, why: &str) -> ErrorCode {
        self.warnings
            .push(format!("the metadata log refused records: {why}"));
        ErrorCode::KAFKA_STORAGE_ERROR
    }

    /// Every answer, of reads too, waits until all that it may depend on is committed.
    fn answer_when_committed(&mut self, ticket: Ticket, body: Bytes, out: &mut Effects<D>) {
        let deferred = match self.log.as_mut() {
            Some(log) if !log.is_committed() => log.defer(ticket, body),
            _ => Some((ticket, body)),
        };
        if let Some((ticket, body)) = deferred {
            self.answer(ticket, body, out);
        }
    }

    pub(super) fn answer(&self, ticket: Ticket, body: Bytes, out: &mut Effects<D>) {
        out.push(Effect::Answer {
            ticket,
            answer: Answer::bytes(body),
        });
    }

    pub(super) fn random_uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        self.random.fill_bytes(&mut bytes);
        Uuid::from_random(bytes)
    }
}

/// An error in the form of the request's answer; `None` for what no controller serves.
fn refused(request: &Request, error_code: ErrorCode) -> Option<Response> {
    Some(match request {
        Request::BrokerRegistration(_) => BrokerRegistrationResponse {
            error_code,
            ..BrokerRegistrationResponse::default()
        }
        .into(),
        Request::BrokerHeartbeat(_) => BrokerHeartbeatResponse {
            error_code,
            ..BrokerHeartbeatResponse::default()
        }
        .into(),
        Request::AllocateProducerIds(_) => AllocateProducerIdsResponse {
            error_code,
            ..AllocateProducerIdsResponse::default()
        }
        .into(),
        Request::ControllerRegistration(_) => ControllerRegistrationResponse {
            error_code,
            ..ControllerRegistrationResponse::default()
        }
        .into(),
        Request::AlterPartition(_) => AlterPartitionResponse {
            error_code,
            ..AlterPartitionResponse::default()
        }
        .into(),
        Request::AssignReplicasToDirs(_) => AssignReplicasToDirsResponse {
            error_code,
            ..AssignReplicasToDirsResponse::default()
        }
        .into(),
        _ => return None,
    })
}

/// An answer as bytes. What does not fit is our own mistake, which costs the asker its connection
/// and is told.
pub(super) fn encoded(response: &Response, version: i16) -> Result<Bytes, String> {
    let body = response.encode(version);
    body.map_err(|why| {
        let api = response.api_key();
        format!("an answer to {api} v{version} could not be encoded: {why}")
    })
}
