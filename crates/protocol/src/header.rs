use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use highwater_types::ErrorCode;

use crate::api::{ApiKey, ListenerKind, supported_versions};
use crate::messages;
use crate::wire::{DecodeError, EncodeError, Message as _, Reader, Writer};

/// The header in front of every request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The key of the API as sent; this build may not know it.
    pub api_key: i16,
    /// The version of the request.
    pub version: i16,
    /// Comes back in the answer.
    pub correlation_id: i32,
    /// Who the client says it is.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads the header and takes it off the front of `frame`, which leaves the body. An API that
    /// this build does not know counts as not flexible.
    ///
    /// # Errors
    /// When the bytes are no header.
    pub fn decode(frame: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fixed = Reader::new(frame);
        let (api_key, version): (i16, i16) = (fixed.read()?, fixed.read()?);
        let mut r = Reader::new(frame);
        let header = messages::RequestHeader::decode(&mut r, header_version(api_key, version))?;
        let size = frame.len() - r.left();
        frame.advance(size);
        Ok(Self {
            api_key,
            version,
            correlation_id: header.correlation_id,
            client_id: header.client_id,
        })
    }

    /// Writes the header.
    ///
    /// # Errors
    /// When the client id is too long.
    pub fn encode(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let header = messages::RequestHeader {
            request_api_key: self.api_key,
            request_api_version: self.version,
            correlation_id: self.correlation_id,
            client_id: self.client_id.clone(),
        };
        header.encode(w, header_version(self.api_key, self.version))
    }
}

/// The version of the header in front of an answer's body: 1 has tagged fields.
///
/// Always 0 for ApiVersions: its client may not know the answer's version (KIP-511).
#[must_use]
pub const fn response_header_version(api_key: ApiKey, version: i16) -> i16 {
    match api_key {
        ApiKey::ApiVersions => 0,
        other if version >= other.flexible_since() => 1,
        _ => 0,
    }
}

/// The body of the answer to an ApiVersions request whose version is not known: in the form of
/// v0, UNSUPPORTED_VERSION and the one range that the client needs to ask again (KIP-511; seen on
/// 4.4.0).
#[must_use]
pub fn api_versions_fallback(listener: ListenerKind) -> Bytes {
    let mut body = BytesMut::new();
    let mut offered = supported_versions(listener).iter();
    let range = offered.find(|it| it.api_key == ApiKey::ApiVersions);
    let range = range.expect("every listener offers ApiVersions");
    body.put_i16(ErrorCode::UNSUPPORTED_VERSION.raw());
    body.put_i32(1);
    body.put_i16(range.api_key.raw());
    body.put_i16(range.min);
    body.put_i16(range.max);
    body.freeze()
}

const fn header_version(api_key: i16, version: i16) -> i16 {
    match ApiKey::from_raw(api_key) {
        Some(api_key) if version >= api_key.flexible_since() => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_01_an_unknown_version_of_api_versions_is_answered_as_kafka_does() {
        let expected = [0, 0x23, 0, 0, 0, 1, 0, 0x12, 0, 0, 0, 5];
        for listener in [ListenerKind::Broker, ListenerKind::Controller] {
            assert_eq!(api_versions_fallback(listener), expected.as_slice());
        }
    }

    #[test]
    fn trap_02_the_answer_to_api_versions_has_no_tags_in_its_header() {
        for version in 0..=5 {
            assert_eq!(response_header_version(ApiKey::ApiVersions, version), 0);
        }
        assert_eq!(response_header_version(ApiKey::Metadata, 8), 0);
        assert_eq!(response_header_version(ApiKey::Metadata, 9), 1);
    }

    #[test]
    fn a_flexible_header_keeps_its_client_id_inflexible() {
        let header = RequestHeader {
            api_key: 3,
            version: 9,
            correlation_id: 7,
            client_id: Some("me".to_owned()),
        };
        let mut w = Writer::new();
        header.encode(&mut w).expect("a legal header");
        w.put(b"body");
        let mut frame = w.into_bytes();
        assert_eq!(frame, b"\0\x03\0\x09\0\0\0\x07\0\x02me\0body".as_slice());
        assert_eq!(RequestHeader::decode(&mut frame), Ok(header));
        assert_eq!(frame, b"body".as_slice());
    }

    #[test]
    fn b_09_client_ids_of_wrong_length_or_text() {
        let header = |client_id: &[u8]| {
            let mut frame = BytesMut::from(&b"\0\x03\0\x01\0\0\0\x07"[..]);
            frame.put_slice(client_id);
            RequestHeader::decode(&mut frame.freeze())
        };
        assert_eq!(header(b"\xff\xfe"), Err(DecodeError::Length(-2)));
        assert_eq!(
            header(b"\0\x09abc"),
            Err(DecodeError::Truncated { needed: 9, left: 3 })
        );
        assert_eq!(header(b"\0\x02\xc3\x28"), Err(DecodeError::Utf8));
        assert_eq!(header(b"\xff\xff").map(|it| it.client_id), Ok(None));
        assert_eq!(
            header(b"\0"),
            Err(DecodeError::Truncated { needed: 2, left: 1 })
        );
    }
}
