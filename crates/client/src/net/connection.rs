use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use highwater_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use highwater_protocol::wire::{Message as _, Reader, Writer};
use highwater_protocol::{ApiKey, RequestHeader, response_header_version};
use highwater_types::{ErrorCode, Millis};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::call::Call;
use super::frames::{FrameReader, write_pieces};
use super::versions::{Versions, highest_common};
use crate::config::{ClientConfig, duration};
use crate::error::ClientError;

/// A connection to one broker. Cheap to clone; the last clone that goes closes it.
///
/// Requests may be sent before earlier ones are answered; answers come in order. An answer with
/// another correlation id than the one that is due closes the connection and fails everything that
/// was waiting: whose answer it is cannot be known.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Outgoing>,
}

/// A request's body, ready to be sent, as pieces that are written one after the other.
pub(crate) struct EncodedRequest {
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
    pub(crate) body: Vec<Bytes>,
    /// `false` for Produce with acks=0.
    pub(crate) is_answered: bool,
}

/// An answer that will come.
pub(crate) struct Answer {
    receiver: oneshot::Receiver<Result<Bytes, ClientError>>,
    peer: Arc<str>,
}

struct Shared {
    peer: Arc<str>,
    client_id: String,
    versions: Versions,
    waiting: Mutex<Waiting>,
    closed: watch::Sender<Option<ClientError>>,
}

#[derive(Default)]
struct Waiting {
    next_correlation_id: i32,
    /// In the order in which the requests were written.
    due: VecDeque<Due>,
}

struct Due {
    correlation_id: i32,
    answer: oneshot::Sender<Result<Bytes, ClientError>>,
    api: ApiKey,
    version: i16,
    /// The request's bytes. They live until the answer or the end of the connection, whatever the
    /// caller does: a buffer must not be used again while it may still be on its way.
    _request: Vec<Bytes>,
}

struct Outgoing {
    request: EncodedRequest,
    answer: oneshot::Sender<Result<Bytes, ClientError>>,
}

/// Requests that wait to be written; senders wait beyond that.
const OUTGOING_MAX: usize = 64;

impl Connection {
    /// Connects to `peer` (`HOST:PORT`) and agrees on versions.
    ///
    /// # Errors
    /// [`ClientError::Connect`], [`ClientError::TimedOut`], and what [`Connection::over`] gives.
    pub async fn open(peer: &str, config: &ClientConfig) -> Result<Self, ClientError> {
        let limit = config.connection_setup_timeout;
        let connect = async {
            let stream = TcpStream::connect(peer).await.and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(stream)
            });
            let stream = stream.map_err(|why| ClientError::Connect {
                peer: peer.to_owned(),
                why: why.to_string(),
            })?;
            Self::over(stream, peer, config).await
        };
        let late = || ClientError::timed_out(format!("connecting to {peer}"), limit);
        timeout(duration(limit), connect)
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    /// Agrees on versions over a stream that is already there, and starts the tasks that serve it.
    ///
    /// # Errors
    /// [`ClientError::Closed`] or [`ClientError::Misbehaved`] when the peer is no broker, and
    /// [`ClientError::Refused`] when it does not want this client.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: &str,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let (input, mut output) = tokio::io::split(stream);
        let mut input = FrameReader::new(input, config.answer_bytes_max);
        let peer: Arc<str> = peer.into();
        let mut handshake = Handshake {
            peer: &peer,
            client_id: &config.client_id,
            input: &mut input,
            output: &mut output,
        };
        let versions = handshake.run().await?;
        let shared = Arc::new(Shared {
            peer,
            client_id: config.client_id.clone(),
            versions,
            waiting: Mutex::default(),
            closed: watch::Sender::new(None),
        });
        let (outgoing, requests) = mpsc::channel(OUTGOING_MAX);
        tokio::spawn(write_loop(shared.clone(), output, requests));
        tokio::spawn(read_loop(shared.clone(), input));
        Ok(Self { shared, outgoing })
    }

    /// Host and port of the peer, as it was given.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.shared.peer
    }

    /// What the peer offers.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        &self.shared.versions
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.borrow().is_some()
    }

    /// Sends a request at the highest common version and waits for its answer.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`], [`ClientError::Encode`], [`ClientError::TimedOut`],
    /// [`ClientError::Closed`] and [`ClientError::Misbehaved`]. Error codes inside the answer are
    /// the caller's to look at.
    pub async fn call<C: Call>(
        &self,
        request: &C,
        limit: Millis,
    ) -> Result<C::Answer, ClientError> {
        let version = self.version(C::API)?;
        let encode = |why| ClientError::Encode {
            peer: self.peer().to_owned(),
            api: C::API,
            why: format!("{why}"),
        };
        let body = vec![request.to_bytes(version).map_err(encode)?];
        let encoded = EncodedRequest {
            api: C::API,
            version,
            body,
            is_answered: true,
        };
        let exchange = async { self.send(encoded).await?.decode::<C>(version).await };
        let late = || ClientError::timed_out(format!("{} at {}", C::API, self.peer()), limit);
        timeout(duration(limit), exchange)
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    /// The version at which requests of `api` are sent.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`].
    pub fn version(&self, api: ApiKey) -> Result<i16, ClientError> {
        self.shared.versions.pick(api, &self.shared.peer)
    }

    /// Queues a request; it is written in the order of these calls. One without an answer is
    /// "answered" with no bytes once it is written.
    pub(crate) async fn send(&self, request: EncodedRequest) -> Result<Answer, ClientError> {
        let (answer, receiver) = oneshot::channel();
        if self
            .outgoing
            .send(Outgoing { request, answer })
            .await
            .is_err()
        {
            return Err(self.shared.why_closed());
        }
        Ok(Answer {
            receiver,
            peer: self.shared.peer.clone(),
        })
    }

    /// Closes the connection at once: whatever is due fails with `why`.
    pub(crate) fn close(&self, why: &str) {
        self.shared.close(&self.shared.closed(why));
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.shared.peer)
            .finish_non_exhaustive()
    }
}

impl Answer {
    /// The answer's body, behind the header.
    pub(crate) async fn bytes(self) -> Result<Bytes, ClientError> {
        let gone = || ClientError::Closed {
            peer: self.peer.to_string(),
            why: "it was closed here".to_owned(),
        };
        self.receiver.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn decode<C: Call>(self, version: i16) -> Result<C::Answer, ClientError> {
        let peer = self.peer.clone();
        let body = self.bytes().await?;
        C::Answer::from_bytes(&body, version).map_err(|why| ClientError::Misbehaved {
            peer: peer.to_string(),
            why: format!("its answer to {} v{version} cannot be read: {why}", C::API),
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self, why: &str) -> ClientError {
        ClientError::Closed {
            peer: self.peer.to_string(),
            why: why.to_owned(),
        }
    }

    fn why_closed(&self) -> ClientError {
        self.closed
            .borrow()
            .clone()
            .unwrap_or_else(|| self.closed("it was closed here"))
    }

    /// Marks the connection closed, once, and fails everything that is due.
    fn close(&self, why: &ClientError) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| why.clone());
            first
        });
        let due = std::mem::take(&mut self.lock().due);
        for waiting in due {
            // Whoever waited may have given up; then there is nobody to tell.
            drop(waiting.answer.send(Err(why.clone())));
        }
    }

    /// Takes an answer's frame to whoever waits for it.
    fn deliver(&self, mut frame: Bytes) -> Result<(), ClientError> {
        let misbehaved = |why: String| ClientError::Misbehaved {
            peer: self.peer.to_string(),
            why,
        };
        if frame.len() < 4 {
            return Err(misbehaved("an answer without a header".to_owned()));
        }
        let correlation_id = frame.get_i32();
        let mut waiting = self.lock();
        let expected = waiting.due.front().map(|due| due.correlation_id);
        let due = waiting
            .due
            .pop_front_if(|due| due.correlation_id == correlation_id);
        drop(waiting);
        let Some(due) = due else {
            let expected = expected.map_or("none".to_owned(), |id| id.to_string());
            let why = format!("answer {correlation_id} came where {expected} is due");
            return Err(misbehaved(why));
        };
        if response_header_version(due.api, due.version) >= 1 {
            let mut r = Reader::new(&frame);
            r.start(1, true);
            if let Err(why) = r.skip_tags() {
                let error = misbehaved(format!("header of its answer to {}: {why}", due.api));
                drop(due.answer.send(Err(error.clone())));
                return Err(error);
            }
            let size = frame.len() - r.left();
            frame.advance(size);
        }
        drop(due.answer.send(Ok(frame)));
        Ok(())
    }

    /// Notes what will be due and gives the frame's pieces.
    fn begin(&self, outgoing: Outgoing) -> Result<Begun, ClientError> {
        let Outgoing { request, answer } = outgoing;
        let mut waiting = self.lock();
        let correlation_id = waiting.next_correlation_id;
        waiting.next_correlation_id = correlation_id.wrapping_add(1) & i32::MAX;
        let (api, version) = (request.api, request.version);
        let head = frame_head(api, version, correlation_id, &self.client_id, &request.body)?;
        let mut pieces = Vec::with_capacity(1 + request.body.len());
        pieces.push(head);
        pieces.extend(request.body.iter().cloned());
        if !request.is_answered {
            return Ok(Begun {
                pieces,
                written: Some(answer),
            });
        }
        waiting.due.push_back(Due {
            correlation_id,
            answer,
            api,
            version,
            _request: request.body,
        });
        Ok(Begun {
            pieces,
            written: None,
        })
    }
}

struct Begun {
    pieces: Vec<Bytes>,
    /// To be told that the request is written, when no answer comes.
    written: Option<oneshot::Sender<Result<Bytes, ClientError>>>,
}

/// The frame's length and the request's header.
fn frame_head(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: &str,
    body: &[Bytes],
) -> Result<Bytes, ClientError> {
    let header = RequestHeader {
        api_key: api.raw(),
        version,
        correlation_id,
        client_id: Some(client_id.to_owned()),
    };
    let bad = |why: String| ClientError::Config {
        key: "client.id",
        value: client_id.to_owned(),
        why,
    };
    let mut w = Writer::new();
    header.encode(&mut w).map_err(|why| bad(why.to_string()))?;
    let header = w.into_bytes();
    let length = header.len() + body.iter().map(Bytes::len).sum::<usize>();
    let length = i32::try_from(length)
        .map_err(|_| bad(format!("a request of {length} bytes is longer than 2 GiB")))?;
    let mut head = BytesMut::with_capacity(4 + header.len());
    head.put_i32(length);
    head.put(header);
    Ok(head.freeze())
}

async fn write_loop(
    shared: Arc<Shared>,
    mut output: impl AsyncWrite + Unpin,
    mut requests: mpsc::Receiver<Outgoing>,
) {
    let mut closed = shared.closed.subscribe();
    loop {
        let outgoing = tokio::select! {
            _ = closed.wait_for(Option::is_some) => break,
            outgoing = requests.recv() => outgoing,
        };
        // Without a sender left nobody can wait for an answer any more.
        let Some(outgoing) = outgoing else { break };
        let begun = match shared.begin(outgoing) {
            Ok(begun) => begun,
            Err(why) => {
                shared.close(&why);
                break;
            }
        };
        let result = tokio::select! {
            _ = closed.wait_for(Option::is_some) => break,
            result = write_pieces(&mut output, begun.pieces) => result,
        };
        if let Err(why) = result {
            shared.close(&shared.closed(&format!("writing failed: {why}")));
            break;
        }
        if let Some(written) = begun.written {
            drop(written.send(Ok(Bytes::new())));
        }
    }
    requests.close();
    shared.close(&shared.closed("it was closed here"));
    while let Some(outgoing) = requests.recv().await {
        drop(outgoing.answer.send(Err(shared.why_closed())));
    }
}

async fn read_loop(shared: Arc<Shared>, mut input: FrameReader<impl AsyncRead + Unpin>) {
    let mut closed = shared.closed.subscribe();
    let why = loop {
        let frame = tokio::select! {
            _ = closed.wait_for(Option::is_some) => return,
            frame = input.next() => frame,
        };
        match frame {
            Ok(Some(frame)) => {
                if let Err(why) = shared.deliver(frame) {
                    break why;
                }
            }
            Ok(None) => break shared.closed("the peer closed it"),
            Err(why) if why.kind() == std::io::ErrorKind::InvalidData => {
                let (peer, why) = (shared.peer.to_string(), why.to_string());
                break ClientError::Misbehaved { peer, why };
            }
            Err(why) => break shared.closed(&format!("reading failed: {why}")),
        }
    };
    shared.close(&why);
}

/// The first exchange on a connection, before anything is pipelined.
struct Handshake<'a, R, W> {
    peer: &'a Arc<str>,
    client_id: &'a str,
    input: &'a mut FrameReader<R>,
    output: &'a mut W,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Handshake<'_, R, W> {
    /// Asks at our highest version. A peer that does not know it says so in the form of v0, with
    /// the versions that it does know (KIP-511).
    async fn run(&mut self) -> Result<Versions, ClientError> {
        let ours = ApiKey::ApiVersions.versions();
        let mut body = self.exchange(ours.1).await?;
        if body.starts_with(&ErrorCode::UNSUPPORTED_VERSION.raw().to_be_bytes()) {
            let told = self.decode(&body, 0)?;
            let theirs = Versions::of(&told)
                .offered(ApiKey::ApiVersions)
                .unwrap_or((0, 0));
            let version = highest_common(ours, theirs).unwrap_or(0);
            body = self.exchange(version).await?;
            return self.finish(&body, version);
        }
        self.finish(&body, ours.1)
    }

    fn finish(&self, body: &Bytes, version: i16) -> Result<Versions, ClientError> {
        let answer = self.decode(body, version)?;
        let what = || format!("greeting {}", self.peer);
        ClientError::check(what, answer.error_code, None)?;
        Ok(Versions::of(&answer))
    }

    fn decode(&self, body: &Bytes, version: i16) -> Result<ApiVersionsResponse, ClientError> {
        ApiVersionsResponse::from_bytes(body, version)
            .map_err(|why| self.misbehaved(format!("its ApiVersions answer: {why}")))
    }

    async fn exchange(&mut self, version: i16) -> Result<Bytes, ClientError> {
        let request = ApiVersionsRequest {
            client_software_name: "highwater".to_owned(),
            client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_id: None,
            ..ApiVersionsRequest::default()
        };
        let body = request.to_bytes(version).expect("a version of our own");
        let correlation_id = i32::from(version);
        let body = vec![body];
        let api = ApiKey::ApiVersions;
        let head = frame_head(api, version, correlation_id, self.client_id, &body)?;
        let pieces = [vec![head], body].concat();
        let closed = |why: std::io::Error| ClientError::Closed {
            peer: self.peer.to_string(),
            why: format!("greeting failed: {why}"),
        };
        write_pieces(self.output, pieces).await.map_err(closed)?;
        let frame = match self.input.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => {
                let why = "it closed the connection without an answer; is this port Kafka's?";
                return Err(self.misbehaved(why.to_owned()));
            }
            Err(why) if why.kind() == std::io::ErrorKind::InvalidData => {
                return Err(self.misbehaved(why.to_string()));
            }
            Err(why) => return Err(closed(why)),
        };
        let mut frame = frame;
        if frame.len() < 6 || frame.get_i32() != correlation_id {
            return Err(self.misbehaved("its first answer is not to ApiVersions".to_owned()));
        }
        Ok(frame)
    }

    fn misbehaved(&self, why: String) -> ClientError {
        ClientError::Misbehaved {
            peer: self.peer.to_string(),
            why,
        }
    }
}
