//! Answers as they are sent.

use bytes::Bytes;
use highwater_protocol::messages::{
    AllocateProducerIdsResponse, AlterPartitionResponse, AssignReplicasToDirsResponse,
    BrokerHeartbeatResponse, BrokerRegistrationResponse, ControllerRegistrationResponse,
    FetchResponse, FetchSnapshotResponse,
};
use highwater_protocol::{Request, Response};
use highwater_types::ErrorCode;

/// An error in the form of the request's answer; `None` for what no controller serves.
pub(super) fn refused(request: &Request, error_code: ErrorCode) -> Option<Response> {
    Some(match request {
        Request::Fetch(_) => FetchResponse {
            error_code,
            ..FetchResponse::default()
        }
        .into(),
        Request::FetchSnapshot(_) => FetchSnapshotResponse {
            error_code,
            ..FetchSnapshotResponse::default()
        }
        .into(),
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
