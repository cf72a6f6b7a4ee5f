//! Every request of a client but Produce, and the answers of the controller.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_protocol::messages::metadata_request::MetadataRequest;
use highwater_protocol::{ApiKey, Request, Response};
use highwater_types::{Mono, Now, Offset};

use super::describe::{self, ApiVersionsContext, DescribeContext, MetadataAnswer};
use super::forward::Forwarding;
use super::lookup::Lookups;
use super::producer_ids::ProducerIds;
use super::serving::ServingSettings;
use super::{Effects, Shard};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Caller, ConnId, Effect, Incoming, Ticket};

/// What a shard keeps to serve everything but Produce and Fetch.
#[derive(Debug)]
pub(crate) struct ServeState {
    pub(crate) settings: ServingSettings,
    pub(crate) forwarding: Forwarding,
    pub(crate) producer_ids: ProducerIds,
    pub(crate) lookups: Lookups,
    all_topics: AllTopics,
}

/// The last answers to "all topics", encoded: a client that asks over and over costs little.
///
/// Invariant: every answer is of the image that ends at `of`.
#[derive(Debug, Default)]
struct AllTopics {
    of: Offset,
    answers: BTreeMap<AskedBy, Bytes>,
}

/// Who asked: listener, principal and host decide what is shown; and the version.
type AskedBy = (String, String, Option<IpAddr>, i16);

/// Callers and versions that [`AllTopics`] keeps an answer for.
const ALL_TOPICS_ANSWERS_MAX: usize = 16;
/// Bytes of all kept answers together.
const ALL_TOPICS_BYTES_MAX: usize = 32 << 20;

impl ServeState {
    /// Nothing is under way.
    pub(crate) fn new(settings: ServingSettings) -> Self {
        Self {
            settings,
            forwarding: Forwarding::default(),
            producer_ids: ProducerIds::default(),
            lookups: Lookups::default(),
            all_topics: AllTopics::default(),
        }
    }

    /// When something here wants a tick.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.forwarding.next_deadline()
    }
}

impl<D: Disk> Shard<D> {
    /// Serves every request but Produce. Each is answered exactly once.
    pub(crate) fn handle_other_request(
        &mut self,
        now: Now,
        mut incoming: Incoming,
        out: &mut Effects<D>,
    ) {
        let at = (incoming.ticket, incoming.version);
        let (ticket, version) = at;
        // Taken out, so that what remains can be handed on without a copy.
        let nothing = Request::ApiVersions(Default::default());
        let request = std::mem::replace(&mut incoming.request, nothing);
        let caller = Arc::clone(&incoming.caller);
        match request {
            Request::Fetch(view) => self.handle_fetch(now, incoming, &view, out),
            Request::ListOffsets(request) => {
                self.handle_list_offsets(now, at, &caller, request, out);
            }
            Request::OffsetForLeaderEpoch(request) => {
                self.handle_offset_for_leader_epoch(now, at, &caller, request, out);
            }
            Request::Metadata(request) => self.handle_metadata(now, at, &caller, &request, out),
            Request::ApiVersions(request) => {
                let cx = ApiVersionsContext {
                    listener: caller.listener,
                    node_id: self.node_id,
                    cluster_id: &self.serve.settings.cluster_id,
                    kraft_version: self.serve.settings.kraft_version,
                    image: &self.image,
                };
                let response = describe::api_versions(&cx, version, &request);
                push_answer(ticket, version, &response.into(), out);
            }
            Request::DescribeCluster(request) => {
                let response =
                    describe::describe_cluster(&self.describing(&caller), version, &request);
                push_answer(ticket, version, &response.into(), out);
            }
            Request::DescribeConfigs(request) => {
                let response = describe::describe_configs(&self.describing(&caller), &request);
                push_answer(ticket, version, &response.into(), out);
            }
            Request::DescribeTopicPartitions(request) => {
                let cx = self.describing(&caller);
                let response = describe::describe_topic_partitions(&cx, &request);
                push_answer(ticket, version, &response.into(), out);
            }
            Request::InitProducerId(request) => {
                self.handle_init_producer_id(now, at, &caller, &request, out);
            }
            request @ (Request::CreateTopics(_)
            | Request::DeleteTopics(_)
            | Request::DescribeQuorum(_)) => self.forward(now, &incoming, &request, out),
            Request::Produce(_)
            | Request::AlterPartition(_)
            | Request::BrokerRegistration(_)
            | Request::BrokerHeartbeat(_)
            | Request::AllocateProducerIds(_)
            | Request::Envelope(_)
            | Request::FetchSnapshot(_)
            | Request::ControllerRegistration(_)
            | Request::AssignReplicasToDirs(_) => {
                // No broker listener offers them, so `Connection` lets none through.
                out.push(Effect::Answer {
                    ticket,
                    answer: Answer::close(),
                });
            }
            request => self.handle_group_request(now, &incoming, request, out),
        }
    }

    /// Drops what waits for answers that nobody reads any more.
    pub(crate) fn serve_connection_closed(&mut self, conn: ConnId) {
        self.lookup_connection_closed(conn);
        self.serve.forwarding.connection_closed(conn);
        self.serve.producer_ids.connection_closed(conn);
    }

    fn describing<'a>(&'a self, caller: &'a Caller) -> DescribeContext<'a> {
        DescribeContext {
            image: &self.image,
            settings: &self.serve.settings,
            node_id: self.node_id,
            caller,
            authorizer: self.authorizer.as_ref(),
        }
    }

    fn handle_metadata(
        &mut self,
        now: Now,
        (ticket, version): (Ticket, i16),
        caller: &Arc<Caller>,
        request: &MetadataRequest,
        out: &mut Effects<D>,
    ) {
        let plain = !request.include_cluster_authorized_operations
            && !request.include_topic_authorized_operations;
        let keep = plain && describe::wants_all(version, request);
        let key = (
            caller.listener_name.clone(),
            caller.principal.clone(),
            caller.host,
            version,
        );
        if keep && let Some(body) = self.serve.all_topics.find(self.image.end.offset, &key) {
            out.push(Effect::Answer {
                ticket,
                answer: Answer::bytes(body),
            });
            return;
        }
        let cx = self.describing(caller);
        let MetadataAnswer { response, missing } = describe::metadata(&cx, version, request);
        if !missing.is_empty() {
            self.auto_create_topics(now, caller, missing, out);
        }
        if let Some(body) = push_answer(ticket, version, &response.into(), out)
            && keep
        {
            self.serve.all_topics.keep(key, body);
        }
    }
}

impl AllTopics {
    /// The answer, if it is still that of the image that ends at `end`.
    fn find(&mut self, end: Offset, key: &AskedBy) -> Option<Bytes> {
        if self.of != end {
            self.answers.clear();
            self.of = end;
        }
        self.answers.get(key).cloned()
    }

    fn keep(&mut self, key: AskedBy, body: Bytes) {
        let kept: usize = self.answers.values().map(Bytes::len).sum();
        let fits = kept + body.len() <= ALL_TOPICS_BYTES_MAX;
        if fits && self.answers.len() < ALL_TOPICS_ANSWERS_MAX {
            self.answers.insert(key, body);
        }
    }
}

/// Encodes an answer and pushes it. The body, unless the answer cannot be encoded: that is our
/// own mistake, which costs the client its connection and is told.
pub(crate) fn push_answer<D: Disk>(
    ticket: Ticket,
    version: i16,
    response: &Response,
    out: &mut Effects<D>,
) -> Option<Bytes> {
    match response.encode(version) {
        Ok(body) => {
            out.push(Effect::Answer {
                ticket,
                answer: Answer::bytes(body.clone()),
            });
            Some(body)
        }
        Err(why) => {
            let api: ApiKey = response.api_key();
            let text = format!("an answer to {api} v{version} could not be encoded: {why}");
            out.push(Effect::Event(JournalEntry::text(Level::Error, text)));
            out.push(Effect::Answer {
                ticket,
                answer: Answer::close(),
            });
            None
        }
    }
}
