use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use highwater_protocol::client::{
    ClientConnection, OutFrame, PeerVersions, Received, SendError, Software,
};
use highwater_protocol::{ApiKey, Request, Response};
use highwater_types::Millis;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::call::Call;
use super::frames::{FrameReader, write_pieces};
use super::pacing::unpace_local;
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

/// An answer that will come.
pub(crate) struct Answer<C> {
    receiver: Answers,
    peer: Arc<str>,
    call: PhantomData<fn() -> C>,
}

struct Shared {
    peer: Arc<str>,
    versions: PeerVersions,
    exchange: Mutex<Exchange>,
    closed: watch::Sender<Option<ClientError>>,
}

type Answers = oneshot::Receiver<Result<Option<Response>, ClientError>>;

type AnswerSender = oneshot::Sender<Result<Option<Response>, ClientError>>;

struct Exchange {
    protocol: ClientConnection<()>,
    /// Who waits, in step with what `protocol` waits for.
    due: VecDeque<Due>,
}

/// Whom to answer, and what must stay until then.
struct Due {
    answer: AnswerSender,
    /// The request's bytes. They live until the answer or the end of the connection, whatever the
    /// caller does: a buffer must not be used again while it may still be on its way.
    _body: Bytes,
}

struct Outgoing {
    request: Request,
    version_max: i16,
    answer: AnswerSender,
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
                unpace_local(&stream);
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
    /// [`ClientError::Closed`] or [`ClientError::Misbehaved`] when the peer is no broker or does
    /// not want this client.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: &str,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let (input, mut output) = tokio::io::split(stream);
        let mut input = FrameReader::new(input, config.answer_bytes_max);
        let software = Software {
            name: "highwater".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut protocol = ClientConnection::new(Some(config.client_id.clone()), software);
        let versions = negotiate(&mut protocol, &mut input, &mut output, peer).await?;
        let shared = Arc::new(Shared {
            peer: peer.into(),
            versions,
            exchange: Mutex::new(Exchange {
                protocol,
                due: VecDeque::new(),
            }),
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
    pub fn versions(&self) -> &PeerVersions {
        &self.shared.versions
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.borrow().is_some()
    }

    /// The version at which requests of `api` are sent: the highest that both sides know.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`].
    pub fn version(&self, api: ApiKey) -> Result<i16, ClientError> {
        let version = self.shared.versions.highest_common(api);
        version.ok_or_else(|| self.shared.unsupported(api))
    }

    /// Sends a request at the highest common version and waits for its answer.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`], [`ClientError::Encode`], [`ClientError::TimedOut`],
    /// [`ClientError::Closed`] and [`ClientError::Misbehaved`]. Error codes inside the answer are
    /// the caller's to look at.
    pub async fn call<C: Call>(&self, request: C, limit: Millis) -> Result<C::Answer, ClientError> {
        let exchange = async { self.send(request, i16::MAX).await?.wait().await };
        match timeout(duration(limit), exchange).await {
            Ok(result) => result,
            Err(_) => Err(self.late(C::API, limit)),
        }
    }

    /// Closes the connection because `api` was not answered within `limit`. Answers come in
    /// order, so nothing behind a stuck request would come either.
    pub(crate) fn late(&self, api: ApiKey, limit: Millis) -> ClientError {
        self.shared
            .close(&self.shared.closed("a request was not answered in time"));
        ClientError::timed_out(format!("{api} at {}", self.peer()), limit)
    }

    /// Queues a request, to be sent at `version_max` at the most; requests are written in the
    /// order of these calls.
    pub(crate) async fn send<C: Call>(
        &self,
        request: C,
        version_max: i16,
    ) -> Result<Answer<C>, ClientError> {
        let (answer, receiver) = oneshot::channel();
        let outgoing = Outgoing {
            request: request.into(),
            version_max,
            answer,
        };
        if self.outgoing.send(outgoing).await.is_err() {
            return Err(self.shared.why_closed());
        }
        Ok(Answer {
            receiver,
            peer: self.shared.peer.clone(),
            call: PhantomData,
        })
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.shared.peer)
            .finish_non_exhaustive()
    }
}

impl<C: Call> Answer<C> {
    /// The answer.
    pub(crate) async fn wait(self) -> Result<C::Answer, ClientError> {
        let peer = self.peer.clone();
        let answer = self.written().await?.and_then(C::answer);
        answer.ok_or_else(|| ClientError::Misbehaved {
            peer: peer.to_string(),
            why: format!("no answer to {} is expected", C::API),
        })
    }

    /// The answer, or `None` once a request that has none is written.
    pub(crate) async fn written(self) -> Result<Option<Response>, ClientError> {
        let Self { receiver, peer, .. } = self;
        receiver.await.unwrap_or_else(|_| {
            let why = "it was closed here".to_owned();
            Err(ClientError::Closed {
                peer: peer.to_string(),
                why,
            })
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn unsupported(&self, api: ApiKey) -> ClientError {
        let theirs = match self.versions.range(api) {
            Some((min, max)) => format!("{min}-{max}"),
            None => "not at all".to_owned(),
        };
        ClientError::Unsupported {
            peer: self.peer.to_string(),
            api,
            theirs,
            ours: api.versions(),
        }
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
            tell(waiting.answer, Err(why.clone()));
        }
    }

    /// Takes an answer's frame to whoever waits for it.
    fn deliver(&self, frame: &Bytes) -> Result<(), ClientError> {
        let (received, due) = {
            let mut exchange = self.lock();
            let received = exchange.protocol.handle_frame(frame);
            let is_answer = matches!(received, Ok(Received::Answer { .. }));
            (
                received,
                if is_answer {
                    exchange.due.pop_front()
                } else {
                    None
                },
            )
        };
        let why = match received {
            Ok(Received::Answer { response, .. }) => {
                let due = due.expect("everything that is waited for has somebody who waits");
                tell(due.answer, Ok(Some(response)));
                return Ok(());
            }
            Ok(Received::Ready | Received::AskAgain(_)) => "it negotiates twice".to_owned(),
            Err(why) => why.to_string(),
        };
        Err(ClientError::Misbehaved {
            peer: self.peer.to_string(),
            why,
        })
    }

    /// The frame of a request, noted as due unless it has no answer. One that cannot be sent is
    /// answered with the reason.
    fn begin(&self, outgoing: Outgoing) -> Option<Begun> {
        let Outgoing {
            request,
            version_max,
            answer,
        } = outgoing;
        let (is_silent, body) = match &request {
            Request::Produce(produce) => (produce.acks() == 0, produce.body().clone()),
            _ => (false, Bytes::new()),
        };
        let mut exchange = self.lock();
        let sent = exchange.protocol.send(&request, version_max, ());
        let why = match sent {
            Ok(frame) if is_silent => {
                return Some(Begun {
                    frame,
                    written: Some(answer),
                });
            }
            Ok(frame) => {
                exchange.due.push_back(Due {
                    answer,
                    _body: body,
                });
                return Some(Begun {
                    frame,
                    written: None,
                });
            }
            Err(SendError::NotReady) => self.why_closed(),
            Err(SendError::Unsupported(api)) => self.unsupported(api),
            Err(SendError::Encode(why)) => ClientError::Encode {
                peer: self.peer.to_string(),
                api: request.api_key(),
                why: why.to_string(),
            },
        };
        drop(exchange);
        tell(answer, Err(why));
        None
    }
}

/// Whoever waited may have given up; then there is nobody to tell.
fn tell(answer: AnswerSender, outcome: Result<Option<Response>, ClientError>) {
    drop(answer.send(outcome));
}

struct Begun {
    frame: OutFrame,
    /// To be told that the request is written, when no answer comes.
    written: Option<AnswerSender>,
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
        // Without a sender left nobody can ask for anything any more.
        let Some(outgoing) = outgoing else { break };
        let Some(Begun { frame, written }) = shared.begin(outgoing) else {
            continue;
        };
        let result = tokio::select! {
            _ = closed.wait_for(Option::is_some) => break,
            result = write_pieces(&mut output, vec![frame.head, frame.body]) => result,
        };
        if let Err(why) = result {
            shared.close(&shared.closed(&format!("writing failed: {why}")));
            break;
        }
        if let Some(answer) = written {
            tell(answer, Ok(None));
        }
    }
    requests.close();
    shared.close(&shared.closed("it was closed here"));
    while let Some(outgoing) = requests.recv().await {
        tell(outgoing.answer, Err(shared.why_closed()));
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
                if let Err(why) = shared.deliver(&frame) {
                    break why;
                }
            }
            other => break ended(&shared.peer, other.err()),
        }
    };
    shared.close(&why);
}

/// Why no frame came: `None` for a clean end.
fn ended(peer: &str, why: Option<io::Error>) -> ClientError {
    let peer = peer.to_owned();
    match why {
        None => ClientError::Closed {
            peer,
            why: "the peer closed it".to_owned(),
        },
        Some(why) if why.kind() == io::ErrorKind::InvalidData => ClientError::Misbehaved {
            peer,
            why: why.to_string(),
        },
        Some(why) => ClientError::Closed {
            peer,
            why: format!("reading failed: {why}"),
        },
    }
}

/// The first exchange on a connection, before anything is pipelined.
async fn negotiate<T>(
    protocol: &mut ClientConnection<T>,
    input: &mut FrameReader<impl AsyncRead + Unpin>,
    output: &mut (impl AsyncWrite + Unpin),
    peer: &str,
) -> Result<PeerVersions, ClientError> {
    let mut frame = protocol.begin();
    // Kafka's own rule needs two rounds at the most; a peer that asks for more is none.
    for _ in 0..3 {
        let written = write_pieces(output, vec![frame.head, frame.body]).await;
        written.map_err(|why| ended(peer, Some(why)))?;
        let answer = match input.next().await {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                let why = "it closed the connection without an answer; is this port Kafka's, \
                           without TLS and login?";
                return Err(ClientError::Misbehaved {
                    peer: peer.to_owned(),
                    why: why.to_owned(),
                });
            }
            Err(why) => return Err(ended(peer, Some(why))),
        };
        match protocol.handle_frame(&answer) {
            Ok(Received::AskAgain(again)) => frame = again,
            Ok(Received::Ready | Received::Answer { .. }) => {
                return Ok(protocol.versions().cloned().unwrap_or_default());
            }
            Err(why) => {
                let (peer, why) = (peer.to_owned(), why.to_string());
                return Err(ClientError::Misbehaved { peer, why });
            }
        }
    }
    let why = "it never agrees on a version of ApiVersions".to_owned();
    Err(ClientError::Misbehaved {
        peer: peer.to_owned(),
        why,
    })
}
