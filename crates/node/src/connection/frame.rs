//! Frames taken apart and put together.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use highwater_protocol::{
    ListenerKind, Request, RequestHeader, api_versions_fallback, response_header_version,
    supported_versions,
};

use crate::journal::{Happening, JournalEntry};
use crate::machine::Piece;

/// The key of Produce, which alone may follow a waiting request.
pub(crate) const PRODUCE: i16 = 0;
const API_VERSIONS: i16 = 18;
/// Produce is announced from 0 for librdkafka's sake (KAFKA-18659) but served from here.
const PRODUCE_VERSION_MIN: i16 = 3;
/// Bytes of the fixed part of every request header: key, version, correlation id.
const FIXED_HEADER_BYTES: usize = 8;
/// A journal line never repeats more of a client id than this.
const CLIENT_ID_BYTES_TOLD_MAX: usize = 128;

/// A frame that was understood.
pub(crate) enum Begun {
    /// For the machine.
    Request {
        head: AnswerHead,
        version: i16,
        client_id: Option<Arc<str>>,
        request: Request,
    },
    /// Answered without the machine.
    AnswerNow { head: AnswerHead, body: Bytes },
}

/// A frame that closes its connection.
#[derive(Debug)]
pub(crate) struct Refusal {
    api_key: i16,
    api_version: i16,
    client_id: Option<String>,
    why: String,
}

/// What an answer needs besides its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerHead {
    correlation_id: i32,
    /// Response header v1: an empty section of tagged fields follows the correlation id.
    tagged: bool,
}

/// Remembers the client id of the connection's last request, so that it is allocated once.
#[derive(Debug, Default)]
pub(crate) struct ClientIds {
    last: Option<Arc<str>>,
}

/// The api key of a frame.
pub(crate) fn api_key(frame: &[u8]) -> Option<i16> {
    frame.first_chunk::<2>().map(|key| i16::from_be_bytes(*key))
}

/// Decodes a frame as a request of a listener.
pub(crate) fn begin(
    frame: &Bytes,
    listener: ListenerKind,
    client_ids: &mut ClientIds,
) -> Result<Begun, Refusal> {
    let fixed = frame
        .first_chunk::<FIXED_HEADER_BYTES>()
        .ok_or_else(|| Refusal {
            api_key: api_key(frame).unwrap_or(-1),
            api_version: -1,
            client_id: None,
            why: format!(
                "a frame of {} bytes is shorter than a request header",
                frame.len()
            ),
        })?;
    let [k0, k1, v0, v1, c0, c1, c2, c3] = *fixed;
    let (key, version) = (i16::from_be_bytes([k0, k1]), i16::from_be_bytes([v0, v1]));
    let correlation_id = i32::from_be_bytes([c0, c1, c2, c3]);
    let refuse = |why: String| Refusal {
        api_key: key,
        api_version: version,
        client_id: client_id_to_tell(frame),
        why,
    };

    let offered = supported_versions(listener)
        .iter()
        .find(|it| it.api_key.raw() == key);
    let Some(offered) = offered else {
        return Err(refuse("this listener does not serve this api".to_owned()));
    };
    let known = (offered.min..=offered.max).contains(&version);
    if key == API_VERSIONS && !known {
        let head = AnswerHead {
            correlation_id,
            tagged: false,
        };
        return Ok(Begun::AnswerNow {
            head,
            body: api_versions_fallback(listener),
        });
    }
    if !known || (key == PRODUCE && version < PRODUCE_VERSION_MIN) {
        return Err(refuse(format!(
            "unsupported version, offered are {} to {}",
            offered.min, offered.max
        )));
    }

    let mut body = frame.clone();
    let header = RequestHeader::decode(&mut body)
        .map_err(|why| refuse(format!("the request header cannot be decoded: {why}")))?;
    let request = Request::decode(offered.api_key, version, body)
        .map_err(|why| refuse(format!("the request cannot be decoded: {why}")))?;
    let head = AnswerHead {
        correlation_id,
        tagged: response_header_version(offered.api_key, version) > 0,
    };
    let client_id = client_ids.share(header.client_id.as_deref());
    Ok(Begun::Request {
        head,
        version,
        client_id,
        request,
    })
}

/// The client id of a frame whose header may be of any version: it has the same place and form in
/// all of them.
fn client_id_to_tell(frame: &[u8]) -> Option<String> {
    let rest = frame.get(FIXED_HEADER_BYTES..)?;
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let len = usize::try_from(i16::from_be_bytes(*len)).ok()?;
    let told = rest.get(..len)?.get(..len.min(CLIENT_ID_BYTES_TOLD_MAX))?;
    Some(String::from_utf8_lossy(told).escape_debug().to_string())
}

impl ClientIds {
    fn share(&mut self, client_id: Option<&str>) -> Option<Arc<str>> {
        if self.last.as_deref() != client_id {
            self.last = client_id.map(Arc::from);
        }
        self.last.clone()
    }
}

impl AnswerHead {
    /// The whole frame of an answer: length, header, body. `None` when the length does not fit
    /// its field, which a broker told to send 2 GiB at once can bring about.
    pub(crate) fn frame<F>(self, mut pieces: Vec<Piece<F>>) -> Option<Vec<Piece<F>>> {
        let body: u64 = pieces.iter().map(Piece::len).sum();
        let header = 4 + u64::from(self.tagged);
        let len = i32::try_from(header + body).ok()?;
        let mut head = BytesMut::with_capacity(9);
        head.put_i32(len);
        head.put_i32(self.correlation_id);
        if self.tagged {
            head.put_u8(0);
        }
        pieces.insert(0, Piece::Bytes(head.freeze()));
        Some(pieces)
    }
}

impl Refusal {
    pub(crate) fn into_journal(self) -> JournalEntry {
        let Self {
            api_key,
            api_version,
            client_id,
            why,
        } = self;
        JournalEntry::info(Happening::RequestRefused {
            api_key,
            api_version,
            client_id,
            why,
        })
    }
}
