//! Frames of a simulated client: real bytes, at the versions it was told to speak.

use bytes::{Buf as _, Bytes};
use highwater_protocol::wire::Writer;
use highwater_protocol::{ApiKey, Request, RequestHeader, Response, response_header_version};

/// A request frame without its length.
pub(super) fn request_frame(request: &Request, version: i16, correlation_id: i32) -> Bytes {
    let header = RequestHeader {
        api_key: request.api_key().raw(),
        version,
        correlation_id,
        client_id: Some("sim".to_owned()),
    };
    let mut frame = Writer::new();
    header.encode(&mut frame).expect("a short client id");
    let body = request
        .encode(version)
        .expect("the simulator asks for what the version has");
    let mut bytes = frame.into_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes.into()
}

/// The correlation id of an answer frame, and its rest.
pub(super) fn correlation_id(frame: &mut Bytes) -> i32 {
    assert!(frame.len() >= 4, "an answer has a correlation id");
    frame.get_i32()
}

/// Decodes what follows the correlation id of an answer frame.
pub(super) fn response(api_key: ApiKey, version: i16, mut rest: Bytes) -> Response {
    if response_header_version(api_key, version) >= 1 {
        assert_eq!(
            rest.get_u8(),
            0,
            "our answers have no tagged fields in their header"
        );
    }
    Response::decode(api_key, version, &rest).expect("our own answers decode")
}
