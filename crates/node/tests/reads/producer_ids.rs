use highwater_node::PeerError;
use highwater_protocol::messages::{
    AllocateProducerIdsResponse, InitProducerIdRequest, InitProducerIdResponse,
};
use highwater_protocol::wire::Message as _;
use highwater_protocol::{OutRequest, Response};
use highwater_types::{ErrorCode, ProducerId};

use crate::world::*;

fn idempotent() -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..InitProducerIdRequest::default()
    }
}

fn block(start: i64, len: i32) -> Result<Response, PeerError> {
    Ok(AllocateProducerIdsResponse {
        producer_id_start: ProducerId::new(start),
        producer_id_len: len,
        ..AllocateProducerIdsResponse::default()
    }
    .into())
}

#[test]
fn ids_come_in_blocks_and_the_next_block_is_asked_for_in_time() {
    let mut world = World::new(1, "");
    let first = world.request(5, idempotent());
    let second = world.request(5, idempotent());
    assert_eq!(world.sent.len(), 1, "one block is asked for, whoever waits");
    let (_, _, request) = &world.sent[0];
    let OutRequest::AllocateProducerIds(request) = request else {
        panic!("{request:?}")
    };
    assert_eq!((request.broker_id.raw(), request.broker_epoch), (1, 5));
    world.answer_send(0, block(1000, 20));
    for (ticket, id) in [(first, 1000), (second, 1001)] {
        let body = world.body(ticket);
        let answer = InitProducerIdResponse::from_bytes(&body, 5).expect("an answer");
        assert_eq!((answer.producer_id.raw(), answer.producer_epoch), (id, 0));
    }
    let mut given = Vec::new();
    while world.sent.is_empty() {
        let answer: InitProducerIdResponse = world.ask(5, idempotent());
        given.push(answer.producer_id.raw());
    }
    assert_eq!(
        given,
        (1002..1018).collect::<Vec<_>>(),
        "asked for when a tenth is left"
    );
    world.answer_send(0, block(5000, 20));
    for id in [1018, 1019, 5000] {
        let answer: InitProducerIdResponse = world.ask(0, idempotent());
        assert_eq!(answer.producer_id.raw(), id);
    }
}

#[test]
fn without_a_block_the_client_is_told_to_come_back() {
    let mut world = World::new(1, "");
    let refused = AllocateProducerIdsResponse {
        error_code: ErrorCode::STALE_BROKER_EPOCH,
        ..AllocateProducerIdsResponse::default()
    };
    for result in [Err(PeerError::TimedOut), Ok(refused.into())] {
        let ticket = world.request(5, idempotent());
        world.answer_send(0, result);
        let body = world.body(ticket);
        let answer = InitProducerIdResponse::from_bytes(&body, 5).expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        assert_eq!((answer.producer_id.raw(), answer.producer_epoch), (-1, -1));
    }
}

#[test]
fn trap_34_time_outs_above_the_limit_and_other_wrong_requests() {
    let mut world = World::new(1, "transaction.max.timeout.ms=1000");
    let transactional = |id: &str, timeout: i32| InitProducerIdRequest {
        transactional_id: Some(id.to_owned()),
        transaction_timeout_ms: timeout,
        ..InitProducerIdRequest::default()
    };
    for (request, error) in [
        (
            transactional("tx", 1001),
            ErrorCode::INVALID_TRANSACTION_TIMEOUT,
        ),
        (
            transactional("tx", 0),
            ErrorCode::INVALID_TRANSACTION_TIMEOUT,
        ),
        (
            transactional("tx", -1),
            ErrorCode::INVALID_TRANSACTION_TIMEOUT,
        ),
        (transactional("", 1000), ErrorCode::INVALID_REQUEST),
        (transactional("tx", 1000), ErrorCode::UNSUPPORTED_VERSION),
        (
            InitProducerIdRequest {
                producer_id: ProducerId::new(4),
                ..idempotent()
            },
            ErrorCode::INVALID_REQUEST,
        ),
    ] {
        let answer: InitProducerIdResponse = world.ask(3, request);
        assert_eq!(answer.error_code, error);
        assert_eq!((answer.producer_id.raw(), answer.producer_epoch), (-1, -1));
    }
    assert!(world.sent.is_empty());
}
