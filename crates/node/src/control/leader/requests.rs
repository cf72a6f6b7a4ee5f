//! The controller's side: requests that came in on the controller listener.

use highwater_disk::Disk;
use highwater_metadata::MetadataDelta;
use highwater_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest,
    AlterPartitionResponse, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse,
};
use highwater_protocol::{ListenerKind, Request, Response};
use highwater_types::{BrokerEpoch, ErrorCode, Now, ProducerId};

use super::answers::{encoded, refused};
use super::{Leader, append::answer, convert};
use crate::authorizer::{Operation, Resource};
use crate::control::Effects;
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

impl<D: Disk> Leader<D> {
    /// Serves a request. `committed` is the metadata below the high watermark.
    pub(in crate::control) fn handle_request(
        &mut self,
        now: Now,
        committed: &MetadataDelta,
        incoming: Incoming,
        out: &mut Effects<D>,
    ) {
        let Incoming {
            ticket,
            caller,
            version,
            request,
            ..
        } = incoming;
        if let Request::Fetch(view) = &request
            && self.allows_cluster_action(&caller)
        {
            return self.handle_fetch(now, ticket, view, out);
        }
        let Some((response, wait)) = self.respond(now, committed, &caller, request, version) else {
            // `Connection` lets nothing else through; a closed connection is the honest answer.
            let answer = Answer::close();
            out.push(Effect::Answer { ticket, answer });
            return;
        };
        match (encoded(&response, version), wait) {
            (Ok(body), Wait::ForCommit) => self.answer_when_committed(ticket, body, out),
            (Ok(body), Wait::No) => out.push(answer(ticket, body)),
            (Err(text), _) => self.refuse_connection(ticket, text, out),
        }
    }

    /// An answer of ours that fits no frame costs its asker the connection, and is told.
    pub(super) fn refuse_connection(&mut self, ticket: Ticket, why: String, out: &mut Effects<D>) {
        self.warnings.push(why);
        let answer = Answer::close();
        out.push(Effect::Answer { ticket, answer });
    }

    fn allows_cluster_action(&self, caller: &Caller) -> bool {
        let cluster = Resource::Cluster;
        self.authorizer
            .allows(caller, Operation::ClusterAction, cluster)
    }

    /// The answer to a request, and whether it depends on what is not committed yet. `None` for
    /// what no controller serves.
    pub(super) fn respond(
        &mut self,
        now: Now,
        committed: &MetadataDelta,
        caller: &Caller,
        request: Request,
        version: i16,
    ) -> Option<(Response, Wait)> {
        if let Request::ApiVersions(request) = &request {
            let cx = ApiVersionsContext {
                listener: ListenerKind::Controller,
                node_id: self.config.node_id,
                cluster_id: &self.cluster_id,
                kraft_version: self.log.kraft_version,
                image: committed.settled_image(),
            };
            return Some((api_versions(&cx, version, request).into(), Wait::No));
        }
        // What clients may send here, or through a broker.
        let request = match request {
            Request::Envelope(envelope) => {
                return Some(self.open_envelope(now, committed, caller, envelope));
            }
            Request::DescribeCluster(request) => {
                let image = committed.settled_image();
                let response = self.describe_cluster(image, caller, version, &request);
                return Some((response.into(), Wait::No));
            }
            Request::DescribeQuorum(request) => {
                let response = self.describe_quorum(now, caller, request);
                return Some((response.into(), Wait::No));
            }
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
        if !self.allows_cluster_action(caller) {
            let response = refused(&request, ErrorCode::CLUSTER_AUTHORIZATION_FAILED)?;
            return Some((response, Wait::No));
        }
        let response = match request {
            Request::BrokerRegistration(request) => self.register(now, request, version).into(),
            Request::ControllerRegistration(request) => {
                self.register_controller(now, request).into()
            }
            Request::BrokerHeartbeat(request) => {
                let (response, wait) = self.heartbeat(now, committed, request);
                return Some((response.into(), wait));
            }
            Request::FetchSnapshot(request) => {
                let response = self.fetch_snapshot(&request, version);
                return Some((response.into(), Wait::No));
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
        let kraft_version = self.log.kraft_version;
        let next = self.log.end();
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
        committed: &MetadataDelta,
        request: BrokerHeartbeatRequest,
    ) -> (BrokerHeartbeatResponse, Wait) {
        let request = convert::heartbeat(request);
        let next = self.log.end();
        let image = self.latest.image().clone();
        let decision = self.controller.heartbeat(&image, &request, next, now.mono);
        let id = request.broker_id;
        // That a broker may stop depends on the partitions that it led, too.
        let is_settled = decision.as_ref().is_ok_and(|decision| {
            let settled = committed.settled_image().broker(id);
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
}
