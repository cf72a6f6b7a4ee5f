//! Envelopes: a client's request as it came, sent on to the controller with the client's name on it
//! (KIP-590), and the answer as the client shall get it.

use core::net::{IpAddr, Ipv4Addr};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use highwater_protocol::messages::{
    DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse, ResponseHeader,
};
use highwater_protocol::wire::{Message as _, Reader};
use highwater_protocol::{
    ApiKey, ListenerKind, Request, RequestHeader, response_header_version, supported_versions,
};
use highwater_types::ErrorCode;

use crate::machine::Caller;

/// The one form of a principal: its version in front of `DefaultPrincipalData`.
const PRINCIPAL_VERSION: i16 = 0;

/// A request out of an envelope.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Who sent it to the broker, and from where.
    pub(crate) caller: Caller,
    pub(crate) api_key: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) request: Request,
}

/// Whether brokers send requests of this API on in envelopes: those of Kafka's that this build
/// serves.
const fn is_forwarded(api_key: ApiKey) -> bool {
    matches!(
        api_key,
        ApiKey::CreateTopics
            | ApiKey::DeleteTopics
            | ApiKey::DescribeQuorum
            | ApiKey::AllocateProducerIds
    )
}

/// Puts a request into an envelope: `frame` is its header and body.
pub(crate) fn seal(caller: &Caller, frame: Bytes) -> EnvelopeRequest {
    let (kind, name) = caller
        .principal
        .split_once(':')
        .unwrap_or(("User", &caller.principal));
    let data = DefaultPrincipalData {
        kind: kind.to_owned(),
        name: name.to_owned(),
        token_authenticated: false,
    };
    let mut principal = BytesMut::new();
    principal.put_i16(PRINCIPAL_VERSION);
    // A name too long for the wire is nobody's.
    principal.put(data.to_bytes(PRINCIPAL_VERSION).unwrap_or_default());
    EnvelopeRequest {
        request_data: frame,
        request_principal: Some(principal.freeze()),
        client_host_address: address_bytes(
            caller.host.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        ),
    }
}

fn address_bytes(address: IpAddr) -> Bytes {
    match address {
        IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
        IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
    }
}

/// Takes a request out of its envelope, which came in from `outer`.
///
/// # Errors
/// In Kafka's order: PRINCIPAL_DESERIALIZATION_FAILURE; INVALID_REQUEST for an address that is
/// none; UNSUPPORTED_VERSION for a header that cannot be read; INVALID_REQUEST for what is not
/// forwarded; UNSUPPORTED_VERSION for a body that cannot be read.
pub(crate) fn open(outer: &Caller, envelope: EnvelopeRequest) -> Result<Opened, ErrorCode> {
    let principal = principal(envelope.request_principal.as_ref())
        .ok_or(ErrorCode::PRINCIPAL_DESERIALIZATION_FAILURE)?;
    let host = address(&envelope.client_host_address).ok_or(ErrorCode::INVALID_REQUEST)?;
    let mut frame = envelope.request_data;
    let unsupported = |_| ErrorCode::UNSUPPORTED_VERSION;
    let header = RequestHeader::decode(&mut frame).map_err(unsupported)?;
    let api_key = ApiKey::from_raw(header.api_key).ok_or(ErrorCode::UNSUPPORTED_VERSION)?;
    if !is_forwarded(api_key) {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    let version = header.version;
    let mut offered = supported_versions(ListenerKind::Controller).iter();
    let served = offered.any(|it| it.api_key == api_key && (it.min..=it.max).contains(&version));
    if !served {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    let request = Request::decode(api_key, version, frame).map_err(unsupported)?;
    let caller = Caller {
        principal,
        host: Some(host),
        ..outer.clone()
    };
    Ok(Opened {
        caller,
        api_key,
        version,
        correlation_id: header.correlation_id,
        request,
    })
}

fn principal(bytes: Option<&Bytes>) -> Option<String> {
    let bytes = bytes?;
    let mut r = Reader::new(bytes);
    let version: i16 = r.read().ok()?;
    if version != PRINCIPAL_VERSION {
        return None;
    }
    let data = DefaultPrincipalData::decode(&mut r, version).ok()?;
    Some(format!("{}:{}", data.kind, data.name))
}

fn address(bytes: &Bytes) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes.as_ref()).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes.as_ref()).map(IpAddr::from);
    v4.or(v6).ok()
}

/// Puts the answer to a request into an envelope, with the header that the client's answer has.
pub(crate) fn seal_answer(
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    body: &Bytes,
) -> EnvelopeResponse {
    let mut data = BytesMut::with_capacity(body.len() + 5);
    data.put_i32(correlation_id);
    if response_header_version(api_key, version) == 1 {
        data.put_u8(0);
    }
    data.put_slice(body);
    EnvelopeResponse {
        response_data: Some(data.freeze()),
        error_code: ErrorCode::NONE,
    }
}

/// The body of an answer out of its envelope; `None` when it is not the answer to that request.
pub(crate) fn open_answer(
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    data: Option<Bytes>,
) -> Option<Bytes> {
    let mut body = data?;
    let mut r = Reader::new(&body);
    let header_version = response_header_version(api_key, version);
    let header = ResponseHeader::decode(&mut r, header_version).ok()?;
    let size = body.len() - r.left();
    body.advance(size);
    if header.correlation_id != correlation_id {
        return None;
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use highwater_protocol::messages::{CreateTopicsRequest, MetadataRequest};
    use highwater_protocol::wire::Writer;

    use super::*;

    fn caller() -> Caller {
        Caller {
            principal: "User:al:ice".to_owned(),
            listener: ListenerKind::Broker,
            listener_name: "PLAINTEXT".to_owned(),
            host: Some(IpAddr::from([192, 168, 1, 9])),
        }
    }

    fn broker() -> Caller {
        Caller {
            principal: "User:broker".to_owned(),
            listener: ListenerKind::Controller,
            listener_name: "CONTROLLER".to_owned(),
            host: None,
        }
    }

    fn frame(request: &Request, version: i16) -> Bytes {
        let header = RequestHeader {
            api_key: request.api_key().raw(),
            version,
            correlation_id: 77,
            client_id: Some("me".to_owned()),
        };
        let mut w = Writer::new();
        header.encode(&mut w).expect("short");
        w.put(&request.encode(version).expect("legal"));
        w.into_bytes()
    }

    fn create() -> Request {
        CreateTopicsRequest {
            timeout_ms: 9,
            ..Default::default()
        }
        .into()
    }

    #[test]
    fn a_request_comes_out_as_its_client_sent_it() {
        let envelope = seal(&caller(), frame(&create(), 7));
        // int16 version, then the flexible struct.
        let expected = b"\0\0\x05User\x07al:ice\0\0";
        assert_eq!(envelope.request_principal.as_deref(), Some(&expected[..]));
        assert_eq!(envelope.client_host_address.as_ref(), [192, 168, 1, 9]);
        let opened = open(&broker(), envelope).expect("well formed");
        assert_eq!(opened.caller.principal, "User:al:ice");
        assert_eq!(opened.caller.host, caller().host);
        assert_eq!(opened.caller.listener_name, "CONTROLLER");
        assert_eq!((opened.version, opened.correlation_id), (7, 77));
        assert_eq!(opened.request, create());
    }

    #[test]
    fn what_is_wrong_is_told_in_kafkas_order() {
        let good = || seal(&caller(), frame(&create(), 7));
        let with = |edit: &dyn Fn(&mut EnvelopeRequest)| {
            let mut envelope = good();
            edit(&mut envelope);
            open(&broker(), envelope).map(drop)
        };
        let no_principal = ErrorCode::PRINCIPAL_DESERIALIZATION_FAILURE;
        for principal in [
            None,
            Some(&b""[..]),
            Some(b"\0\x01\x02a\x02b\0\0"),
            Some(b"\0\0\x09a"),
        ] {
            let wrong = with(&|it| {
                it.request_principal = principal.map(Bytes::from_static);
                it.client_host_address = Bytes::new();
            });
            assert_eq!(wrong, Err(no_principal));
        }
        let address = with(&|it| {
            it.client_host_address = Bytes::from_static(b"12345");
            it.request_data = Bytes::new();
        });
        assert_eq!(address, Err(ErrorCode::INVALID_REQUEST));
        for data in [&b""[..], b"\0\x13\0\x07", b"\x7f\x7f\0\0\0\0\0\x01\xff\xff"] {
            let header = with(&|it| it.request_data = Bytes::from_static(data));
            assert_eq!(header, Err(ErrorCode::UNSUPPORTED_VERSION));
        }
        let metadata = Request::from(MetadataRequest::default());
        let other = with(&|it| it.request_data = frame(&metadata, 9));
        assert_eq!(
            other,
            Err(ErrorCode::INVALID_REQUEST),
            "it is not forwarded"
        );
        let nested = Request::from(good());
        let nested = with(&|it| it.request_data = frame(&nested, 0));
        assert_eq!(nested, Err(ErrorCode::INVALID_REQUEST));
        let cut = with(&|it| it.request_data.truncate(it.request_data.len() - 3));
        assert_eq!(cut, Err(ErrorCode::UNSUPPORTED_VERSION));
        let mut future = BytesMut::from(frame(&create(), 7).as_ref());
        future[3] = 99;
        let future = future.freeze();
        let version = with(&|it| it.request_data = future.clone());
        assert_eq!(version, Err(ErrorCode::UNSUPPORTED_VERSION));
        assert_eq!(with(&|_| ()), Ok(()));
        let v6 = with(&|it| it.client_host_address = Bytes::from_static(&[7; 16]));
        assert_eq!(v6, Ok(()));
    }

    #[test]
    fn an_answer_comes_out_as_its_client_gets_it() {
        let body = Bytes::from_static(b"body");
        for (version, header) in [(4, 4), (5, 5)] {
            let answer = seal_answer(ApiKey::CreateTopics, version, 77, &body);
            let data = answer.response_data;
            assert_eq!(data.as_ref().map(Bytes::len), Some(header + 4));
            let opened = open_answer(ApiKey::CreateTopics, version, 77, data.clone());
            assert_eq!(opened, Some(body.clone()));
            assert_eq!(open_answer(ApiKey::CreateTopics, version, 78, data), None);
        }
        assert_eq!(open_answer(ApiKey::CreateTopics, 7, 77, None), None);
        let short = Some(Bytes::from_static(b"\0\0"));
        assert_eq!(open_answer(ApiKey::CreateTopics, 7, 77, short), None);
    }
}
