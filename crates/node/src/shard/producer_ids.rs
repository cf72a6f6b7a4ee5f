use std::collections::VecDeque;
use std::ops::Range;

use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    allocate_producer_ids_request::AllocateProducerIdsRequest,
    init_producer_id_request::InitProducerIdRequest,
    init_producer_id_response::InitProducerIdResponse,
};
use highwater_types::{ErrorCode, Now, ProducerId, TopicName};

use super::requests::push_answer;
use super::{Effects, Shard};
use crate::authorizer::{Operation, Resource};
use crate::machine::{Caller, ConnId, PeerError, Ticket};

/// A new block is asked for when this part of the last one is left, in percent (as Kafka does).
const LEFT_PERCENT: i64 = 10;

/// Producer ids that the controller gave to this shard, and who waits for one.
///
/// Invariant: nobody waits while there is an id to give; `asked` while somebody waits.
#[derive(Debug, Default)]
pub(crate) struct ProducerIds {
    block: Block,
    next_block: Option<Block>,
    waiting: VecDeque<(Ticket, i16)>,
    asked: bool,
}

/// A block of ids, partly used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    left: Range<i64>,
    len: i64,
}

impl Default for Block {
    fn default() -> Self {
        Self { left: 0..0, len: 0 }
    }
}

impl ProducerIds {
    /// The next id, if there is one.
    fn take(&mut self) -> Option<ProducerId> {
        if self.block.left.is_empty() {
            self.block = self.next_block.take()?;
        }
        self.block.left.next().map(ProducerId::new)
    }

    /// Whether a block should be asked for now.
    fn is_low(&self) -> bool {
        let left = self.block.left.end - self.block.left.start;
        let low = left * 100 <= self.block.len * LEFT_PERCENT;
        !self.asked && self.next_block.is_none() && low
    }

    pub(crate) fn connection_closed(&mut self, conn: ConnId) {
        self.waiting.retain(|(ticket, _)| ticket.conn != conn);
    }
}

impl<D: Disk> Shard<D> {
    /// Serves InitProducerId for idempotent producers. Transactional ones are refused until there
    /// are transactions.
    pub(crate) fn handle_init_producer_id(
        &mut self,
        now: Now,
        (ticket, version): (Ticket, i16),
        caller: &Caller,
        request: &InitProducerIdRequest,
        out: &mut Effects<D>,
    ) {
        if let Some(error) = self.refusal(caller, request) {
            push_answer(ticket, version, &refused(error), out);
            return;
        }
        match self.serve.producer_ids.take() {
            Some(id) => {
                push_answer(ticket, version, &given(id), out);
            }
            None => self.serve.producer_ids.waiting.push_back((ticket, version)),
        }
        self.ask_when_low(now, out);
    }

    /// A block came, or did not.
    pub(crate) fn producer_ids_came(
        &mut self,
        now: Now,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        let ids = &mut self.serve.producer_ids;
        ids.asked = false;
        let block = match result {
            Ok(Response::AllocateProducerIds(response)) if !response.error_code.is_error() => {
                let start = response.producer_id_start.raw();
                let end = start.saturating_add(i64::from(response.producer_id_len));
                Some(Block {
                    left: start..end,
                    len: end - start,
                })
                .filter(|it| it.len > 0)
            }
            Ok(_) | Err(_) => None,
        };
        let Some(block) = block else {
            // Retriable, as when Kafka has none: the client comes back.
            for (ticket, version) in std::mem::take(&mut ids.waiting) {
                let response = refused(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
                push_answer(ticket, version, &response, out);
            }
            return;
        };
        ids.next_block = Some(block);
        while let Some((ticket, version)) = ids.waiting.pop_front() {
            match ids.take() {
                Some(id) => {
                    push_answer(ticket, version, &given(id), out);
                }
                None => {
                    ids.waiting.push_front((ticket, version));
                    break;
                }
            }
        }
        self.ask_when_low(now, out);
    }

    fn ask_when_low(&mut self, now: Now, out: &mut Effects<D>) {
        if !self.serve.producer_ids.is_low() {
            return;
        }
        self.serve.producer_ids.asked = true;
        let broker = self.image.broker(self.node_id);
        let request = AllocateProducerIdsRequest {
            broker_id: self.node_id,
            broker_epoch: broker.map_or(-1, |it| it.epoch.raw()),
        };
        self.send_for_producer_ids(now, request.into(), out);
    }

    /// Why a request gets no id, in Kafka's order.
    fn refusal(&self, caller: &Caller, request: &InitProducerIdRequest) -> Option<ErrorCode> {
        if let Some(error) = self.unauthorized(caller, request) {
            return Some(error);
        }
        if (request.producer_id == ProducerId::NONE) != (request.producer_epoch == -1) {
            return Some(ErrorCode::INVALID_REQUEST);
        }
        let transactional_id = request.transactional_id.as_deref()?;
        if transactional_id.is_empty() {
            return Some(ErrorCode::INVALID_REQUEST);
        }
        let time_out = u64::try_from(request.transaction_timeout_ms).unwrap_or(0);
        if time_out == 0 || time_out > self.serve.settings.transaction_timeout_max_ms {
            return Some(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
        }
        Some(ErrorCode::UNSUPPORTED_VERSION)
    }
}

impl<D: Disk> Shard<D> {
    /// A transactional producer writes to its id; another one to the cluster, or, as whoever may
    /// write to any topic, where it may.
    fn unauthorized(&self, caller: &Caller, request: &InitProducerIdRequest) -> Option<ErrorCode> {
        if let Some(id) = request.transactional_id.as_deref() {
            let allowed = self.allows(caller, Operation::Write, Resource::TransactionalId(id));
            return (!allowed).then_some(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        }
        let writes = |topic: &TopicName| {
            let topic = Resource::Topic(topic.as_str());
            self.allows(caller, Operation::Write, topic)
        };
        let allowed = self.allows(caller, Operation::IdempotentWrite, Resource::Cluster)
            || self.image.topic_ids.keys().any(writes);
        (!allowed).then_some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED)
    }
}

fn given(producer_id: ProducerId) -> Response {
    InitProducerIdResponse {
        producer_id,
        producer_epoch: 0,
        ..Default::default()
    }
    .into()
}

fn refused(error_code: ErrorCode) -> Response {
    let (producer_id, producer_epoch) = (ProducerId::NONE, -1);
    InitProducerIdResponse {
        error_code,
        producer_id,
        producer_epoch,
        ..Default::default()
    }
    .into()
}
