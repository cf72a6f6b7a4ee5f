use std::collections::VecDeque;

use bytes::Bytes;
use highwater_types::ErrorCode;

use super::PeerVersions;
use crate::api::ApiKey;
use crate::header::{RequestHeader, response_header_version};
use crate::messages::{ApiVersionsRequest, ApiVersionsResponse, ResponseHeader};
use crate::request::{OutRequest, Request};
use crate::response::Response;
use crate::wire::{DecodeError, EncodeError, Message as _, Reader, Wire as _, Writer};

/// The client's side of one connection: negotiates versions, numbers requests, and matches the
/// answers, which a server sends in the order of the requests. Does no IO.
///
/// The owner sends what [`ClientConnection::begin`] yields, then hands in every frame that comes.
/// After [`Received::Ready`] it may send; `T` goes with each request and comes back with its
/// answer. When the connection breaks, or after an error, it drops this value and deals with what
/// [`ClientConnection::take_waiting`] yields.
#[derive(Debug)]
pub struct ClientConnection<T> {
    client_id: Option<String>,
    software: Software,
    state: State,
    next_correlation_id: i32,
    waiting: VecDeque<Waiting<T>>,
}

/// What a client tells about itself (KIP-511).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Software {
    /// `[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?`, or the peer refuses.
    pub name: String,
    /// Likewise.
    pub version: String,
}

#[derive(Debug)]
enum State {
    /// Nothing was sent.
    New,
    /// ApiVersions was asked for at this version.
    Asked { version: i16, correlation_id: i32 },
    /// Both sides know what they speak.
    Ready(PeerVersions),
    /// An error was met; nothing more is taken in.
    Broken,
}

#[derive(Debug)]
struct Waiting<T> {
    correlation_id: i32,
    api_key: ApiKey,
    version: i16,
    context: T,
}

/// A frame to send: `head` has the length and the header, `body` comes after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFrame {
    /// Length and header.
    pub head: Bytes,
    /// The request's body.
    pub body: Bytes,
}

/// What a frame from the server brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// Versions are negotiated: requests may be sent.
    Ready,
    /// The peer does not know our version of ApiVersions: this asks at one that it does.
    AskAgain(OutFrame),
    /// The answer to the oldest request.
    Answer {
        /// What was given with the request.
        context: T,
        /// The version of request and answer.
        version: i16,
        /// The answer.
        response: Response,
    },
}

/// Why a frame from the server is wrong. The connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A frame although nothing was asked.
    #[error("the server sent a frame that nobody asked for")]
    Unasked,
    /// Another request's answer.
    #[error("the server answered request {received} where {expected} was due")]
    OutOfOrder {
        /// The oldest request's correlation id.
        expected: i32,
        /// What the frame says.
        received: i32,
    },
    /// The frame cannot be decoded.
    #[error("the server's answer cannot be decoded: {0}")]
    Malformed(#[from] DecodeError),
    /// ApiVersions failed.
    #[error("the server refused to tell its versions: {0}")]
    Refused(ErrorCode),
}

/// Why a request cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Versions are not negotiated yet, or the connection is broken.
    #[error("the connection is not ready")]
    NotReady,
    /// There is no version that both sides speak.
    #[error("the server offers no version of {0} that this build speaks")]
    Unsupported(ApiKey),
    /// The common version cannot carry the request.
    #[error("the request cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
}

impl<T> ClientConnection<T> {
    /// A new connection, before anything was sent.
    #[must_use]
    pub const fn new(client_id: Option<String>, software: Software) -> Self {
        Self {
            client_id,
            software,
            state: State::New,
            next_correlation_id: 0,
            waiting: VecDeque::new(),
        }
    }

    /// The first frame: ApiVersions at the highest version that this build knows.
    ///
    /// # Panics
    /// When called twice.
    pub fn begin(&mut self) -> OutFrame {
        assert!(matches!(self.state, State::New), "begin is called once");
        let (_, version) = ApiKey::ApiVersions.versions();
        self.ask(version)
    }

    /// What the server offers, once it is known.
    #[must_use]
    pub const fn versions(&self) -> Option<&PeerVersions> {
        match &self.state {
            State::Ready(versions) => Some(versions),
            State::New | State::Asked { .. } | State::Broken => None,
        }
    }

    /// Requests that wait for their answers.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The frame of a request, at the highest version up to `version_max` that both sides speak.
    ///
    /// A Produce request with acks=0 has no answer: its context is dropped.
    ///
    /// # Errors
    /// When it cannot be sent; the connection can go on.
    pub fn send(
        &mut self,
        request: &Request,
        version_max: i16,
        context: T,
    ) -> Result<OutFrame, SendError> {
        let silent = matches!(request, Request::Produce(produce) if produce.acks() == 0);
        let encode = |version| request.encode(version);
        self.send_encoded(request.api_key(), version_max, silent, encode, context)
    }

    /// As [`ClientConnection::send`], for what a node sends to another.
    ///
    /// # Errors
    /// When it cannot be sent; the connection can go on.
    pub fn send_out(
        &mut self,
        request: &OutRequest,
        version_max: i16,
        context: T,
    ) -> Result<OutFrame, SendError> {
        let silent = matches!(request, OutRequest::Produce(produce) if produce.acks == 0);
        let encode = |version| request.encode(version);
        self.send_encoded(request.api_key(), version_max, silent, encode, context)
    }

    fn send_encoded(
        &mut self,
        api_key: ApiKey,
        version_max: i16,
        silent: bool,
        encode: impl FnOnce(i16) -> Result<Bytes, EncodeError>,
        context: T,
    ) -> Result<OutFrame, SendError> {
        let versions = self.versions().ok_or(SendError::NotReady)?;
        let version = versions
            .highest_common_up_to(api_key, version_max)
            .ok_or(SendError::Unsupported(api_key))?;
        let body = encode(version)?;
        let (correlation_id, frame) = self.frame(api_key, version, body)?;
        if !silent {
            self.waiting.push_back(Waiting {
                correlation_id,
                api_key,
                version,
                context,
            });
        }
        Ok(frame)
    }

    /// Takes in a frame from the server, without its length.
    ///
    /// # Errors
    /// When it is wrong; the connection cannot go on.
    pub fn handle_frame(&mut self, frame: &Bytes) -> Result<Received<T>, ClientError> {
        let received = match self.state {
            State::Asked {
                version,
                correlation_id,
            } => self.handle_versions(frame, version, correlation_id),
            State::Ready(_) => self.handle_answer(frame),
            State::New | State::Broken => Err(ClientError::Unasked),
        };
        if received.is_err() {
            self.state = State::Broken;
        }
        received
    }

    /// The contexts of the requests that wait for an answer, oldest first. For when the connection
    /// is given up: none of them will be answered.
    pub fn take_waiting(&mut self) -> impl Iterator<Item = T> {
        self.state = State::Broken;
        std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|it| it.context)
    }

    fn handle_answer(&mut self, frame: &Bytes) -> Result<Received<T>, ClientError> {
        let Waiting {
            correlation_id,
            api_key,
            version,
            context,
        } = self.waiting.pop_front().ok_or(ClientError::Unasked)?;
        let body = body_of(
            frame,
            response_header_version(api_key, version),
            correlation_id,
        )?;
        let response = Response::decode(api_key, version, &body)?;
        Ok(Received::Answer {
            context,
            version,
            response,
        })
    }

    fn handle_versions(
        &mut self,
        frame: &Bytes,
        asked: i16,
        correlation_id: i32,
    ) -> Result<Received<T>, ClientError> {
        let body = body_of(frame, 0, correlation_id)?;
        let error_code = ErrorCode::read(&mut Reader::new(&body))?;
        // A peer that does not know the version answers in the form of v0 (KIP-511).
        let unknown = error_code == ErrorCode::UNSUPPORTED_VERSION;
        let answer = ApiVersionsResponse::from_bytes(&body, if unknown { 0 } else { asked })?;
        let offered = PeerVersions::new(&answer);
        if unknown && asked > 0 {
            let version = offered.highest_common_up_to(ApiKey::ApiVersions, asked - 1);
            return Ok(Received::AskAgain(self.ask(version.unwrap_or(0))));
        }
        if error_code.is_error() {
            return Err(ClientError::Refused(error_code));
        }
        self.state = State::Ready(offered);
        Ok(Received::Ready)
    }

    fn ask(&mut self, version: i16) -> OutFrame {
        let request = ApiVersionsRequest {
            client_software_name: self.software.name.clone(),
            client_software_version: self.software.version.clone(),
            ..ApiVersionsRequest::default()
        };
        let body = request
            .to_bytes(version)
            .expect("every version can carry it");
        let frame = self.frame(ApiKey::ApiVersions, version, body);
        let (correlation_id, frame) = frame.expect("a header of legal length");
        self.state = State::Asked {
            version,
            correlation_id,
        };
        frame
    }

    fn frame(
        &mut self,
        api_key: ApiKey,
        version: i16,
        body: Bytes,
    ) -> Result<(i32, OutFrame), EncodeError> {
        let correlation_id = self.next_correlation_id;
        let header = RequestHeader {
            api_key: api_key.raw(),
            version,
            correlation_id,
            client_id: self.client_id.clone(),
        };
        let mut w = Writer::new();
        header.encode(&mut w)?;
        let header = w.into_bytes();
        let len = header.len() + body.len();
        let len = i32::try_from(len).map_err(|_| EncodeError::TooLong(len))?;
        let mut w = Writer::with_capacity(4 + header.len());
        w.put(&len.to_be_bytes());
        w.put(&header);
        self.next_correlation_id = correlation_id.checked_add(1).unwrap_or(0);
        Ok((
            correlation_id,
            OutFrame {
                head: w.into_bytes(),
                body,
            },
        ))
    }
}

/// The body of an answer that must have this correlation id.
fn body_of(frame: &Bytes, header_version: i16, expected: i32) -> Result<Bytes, ClientError> {
    let mut r = Reader::new(frame);
    let header = ResponseHeader::decode(&mut r, header_version)?;
    let received = header.correlation_id;
    if received != expected {
        return Err(ClientError::OutOfOrder { expected, received });
    }
    Ok(frame.slice(frame.len() - r.left()..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ListenerKind;
    use crate::header::api_versions_fallback;
    use crate::messages::api_versions_response::ApiVersion;
    use crate::messages::{FetchResponse, MetadataRequest, MetadataResponse};

    fn connection() -> ClientConnection<&'static str> {
        let software = Software {
            name: "highwater".into(),
            version: "0.1.0".into(),
        };
        ClientConnection::new(Some("me".into()), software)
    }

    /// A frame of the server: header and body.
    fn answer(correlation_id: i32, header_version: i16, body: &Bytes) -> Bytes {
        let header = ResponseHeader { correlation_id };
        let mut w = Writer::new();
        header.encode(&mut w, header_version).expect("a header");
        w.put(body);
        w.into_bytes()
    }

    fn offered(max: i16) -> ApiVersionsResponse {
        let range = |api_key, min_version, max_version| ApiVersion {
            api_key,
            min_version,
            max_version,
        };
        ApiVersionsResponse {
            api_keys: vec![range(3, 0, max), range(18, 0, max)],
            ..ApiVersionsResponse::default()
        }
    }

    fn ready() -> ClientConnection<&'static str> {
        let mut it = connection();
        it.begin();
        let body = offered(9).to_bytes(5).expect("encodes");
        assert_eq!(it.handle_frame(&answer(0, 0, &body)), Ok(Received::Ready));
        it
    }

    fn metadata() -> Request {
        Request::from(MetadataRequest::default())
    }

    #[test]
    fn the_first_frame_asks_for_versions() {
        let frame = connection().begin();
        let mut whole = Bytes::from([frame.head.as_ref(), frame.body.as_ref()].concat());
        let len = whole.split_to(4);
        assert_eq!(
            len.as_ref(),
            u32::try_from(whole.len()).expect("small").to_be_bytes()
        );
        let header = RequestHeader::decode(&mut whole).expect("a header");
        assert_eq!(
            (header.api_key, header.version, header.correlation_id),
            (18, 5, 0)
        );
        let request = ApiVersionsRequest::from_bytes(&whole, 5).expect("a request");
        assert_eq!(request.client_software_name, "highwater");
    }

    #[test]
    fn a_peer_that_does_not_know_our_version_is_asked_again() {
        let mut it = connection();
        it.begin();
        let fallback = answer(0, 0, &offered_unknown(3));
        let Ok(Received::AskAgain(frame)) = it.handle_frame(&fallback) else {
            panic!("it must ask again");
        };
        let mut whole = Bytes::from([frame.head.as_ref(), frame.body.as_ref()].concat());
        let header = RequestHeader::decode(&mut whole.split_off(4)).expect("a header");
        assert_eq!((header.version, header.correlation_id), (3, 1));
        let body = offered(3).to_bytes(3).expect("encodes");
        assert_eq!(it.handle_frame(&answer(1, 0, &body)), Ok(Received::Ready));
    }

    fn offered_unknown(max: i16) -> Bytes {
        let mut answer = offered(max);
        answer.error_code = ErrorCode::UNSUPPORTED_VERSION;
        answer.to_bytes(0).expect("encodes")
    }

    #[test]
    fn a_peer_that_knows_no_version_at_all_is_given_up() {
        let mut it = connection();
        it.begin();
        for correlation_id in 0..6 {
            let fallback = answer(
                correlation_id,
                0,
                &api_versions_fallback(ListenerKind::Broker),
            );
            match it.handle_frame(&fallback) {
                Ok(Received::AskAgain(_)) => assert!(correlation_id < 5, "each version once"),
                refused => {
                    let code = ErrorCode::UNSUPPORTED_VERSION;
                    assert_eq!(refused, Err(ClientError::Refused(code)));
                    return;
                }
            }
        }
        panic!("it never gave up");
    }

    #[test]
    fn answers_come_in_the_order_of_requests() {
        let mut it = ready();
        it.send(&metadata(), i16::MAX, "first").expect("sends");
        it.send(&metadata(), 4, "second").expect("sends");
        assert_eq!(it.waiting(), 2);
        let body = |version| {
            MetadataResponse::default()
                .to_bytes(version)
                .expect("encodes")
        };
        let first = it.handle_frame(&answer(1, 1, &body(9)));
        assert!(matches!(
            first,
            Ok(Received::Answer {
                context: "first",
                version: 9,
                ..
            })
        ));
        let second = it.handle_frame(&answer(2, 0, &body(4)));
        assert!(matches!(
            second,
            Ok(Received::Answer {
                context: "second",
                version: 4,
                ..
            })
        ));
        assert_eq!(
            it.handle_frame(&answer(3, 0, &body(4))),
            Err(ClientError::Unasked)
        );
    }

    #[test]
    fn a_wrong_correlation_id_breaks_the_connection() {
        let mut it = ready();
        it.send(&metadata(), i16::MAX, "first").expect("sends");
        let body = FetchResponse::default().to_bytes(4).expect("encodes");
        let wrong = ClientError::OutOfOrder {
            expected: 1,
            received: 9,
        };
        assert_eq!(it.handle_frame(&answer(9, 1, &body)), Err(wrong));
        assert_eq!(
            it.send(&metadata(), i16::MAX, "late"),
            Err(SendError::NotReady)
        );
    }

    #[test]
    fn what_the_peer_lacks_is_not_sent() {
        let mut it = ready();
        let describe = Request::from(crate::messages::DescribeClusterRequest::default());
        let unsupported = SendError::Unsupported(ApiKey::DescribeCluster);
        assert_eq!(it.send(&describe, i16::MAX, "it"), Err(unsupported));
        it.send(&metadata(), i16::MAX, "waits").expect("sends");
        assert_eq!(it.take_waiting().collect::<Vec<_>>(), ["waits"]);
    }
}
