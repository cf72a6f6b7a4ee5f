//! A node's requests to itself: encoded, framed and answered over a connection of their own, as
//! those of any other node.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use highwater_protocol::wire::Writer;
use highwater_protocol::{
    ApiKey, ListenerKind, OutRequest, RequestHeader, Response, response_header_version,
    supported_versions,
};

use crate::machine::{Caller, MachineId, PeerError, Piece, Token};

/// The sender's end of one of a node's connections to its own control machine.
///
/// The owner (`server`, `sim`) has one for each `Channel` and, in this order: (1) turns an
/// `Effect::Send` to the own controller (`Peer::is_loopback`) into a frame with
/// [`Loopback::request_frame`] of the effect's channel; (2) carries it, delayed as it likes, to
/// that channel's `Connection` of [`Loopback::caller`] on the control machine; (3) hands each
/// frame that this connection writes to [`Loopback::handle_frame`] and gives the answer to the
/// machine that sent; (4) gives `PeerError::TimedOut` for a token past its deadline if
/// [`Loopback::forget`] says that it was still waiting; (5) when the connection closes, gives
/// `PeerError::Disconnected` for each of [`Loopback::close`]. At most [`Loopback::PENDING_MAX`]
/// requests wait at once.
#[derive(Debug, Default)]
pub struct Loopback {
    next_correlation_id: i32,
    /// Requests without an answer, by correlation id.
    pending: BTreeMap<i32, Pending>,
}

/// Who waits for an answer of a node to itself.
pub type Sender = (MachineId, Token);

#[derive(Clone, Copy, Debug)]
struct Pending {
    sender: Sender,
    api_key: ApiKey,
    version: i16,
}

impl Loopback {
    /// Most requests without an answer: a machine has a handful.
    pub const PENDING_MAX: usize = 4096;

    /// Who asks, on a node's connection to itself.
    #[must_use]
    pub fn caller() -> Arc<Caller> {
        Arc::new(Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: ListenerKind::Controller,
            listener_name: "LOOPBACK".to_owned(),
            host: None,
        })
    }

    /// Encodes a request at the highest version that the controller listener offers. Returns the
    /// frame without its length, as `Connection::handle_frame` takes it.
    ///
    /// # Errors
    /// What to answer the sender with at once: `Unsupported` when the listener does not offer the
    /// API, `Disconnected` when too many requests wait.
    pub fn request_frame(
        &mut self,
        sender: Sender,
        request: &OutRequest,
    ) -> Result<Bytes, PeerError> {
        let api_key = request.api_key();
        let mut offered = supported_versions(ListenerKind::Controller).iter();
        let range = offered
            .find(|it| it.api_key == api_key)
            .ok_or(PeerError::Unsupported)?;
        if self.pending.len() >= Self::PENDING_MAX {
            return Err(PeerError::Disconnected);
        }
        let version = range.max;
        let correlation_id = self.next_correlation_id;
        let header = RequestHeader {
            api_key: api_key.raw(),
            version,
            correlation_id,
            client_id: Some("loopback".to_owned()),
        };
        let mut head = Writer::new();
        header
            .encode(&mut head)
            .map_err(|_| PeerError::Unsupported)?;
        let body = request
            .encode(version)
            .map_err(|_| PeerError::Unsupported)?;
        let head = head.into_bytes();
        let mut frame = BytesMut::with_capacity(head.len() + body.len());
        frame.put(head);
        frame.put(body);
        self.next_correlation_id = correlation_id.wrapping_add(1);
        self.pending.insert(
            correlation_id,
            Pending {
                sender,
                api_key,
                version,
            },
        );
        Ok(frame.freeze())
    }

    /// Takes one frame that the connection wrote, length included. `None` when nobody waits for it
    /// any more.
    pub fn handle_frame<F>(
        &mut self,
        pieces: Vec<Piece<F>>,
    ) -> Option<(Sender, Result<Response, PeerError>)> {
        let mut frame = BytesMut::new();
        for piece in pieces {
            match piece {
                Piece::Bytes(bytes) => frame.put(bytes),
                // Control sends no file regions yet; the sender is told by its deadline.
                Piece::Region(_) => return None,
            }
        }
        let mut frame = frame.freeze();
        if frame.len() < 8 {
            return None;
        }
        frame.advance(4);
        let pending = self.pending.remove(&frame.get_i32())?;
        let Pending {
            sender,
            api_key,
            version,
        } = pending;
        // Of header version 1 only an empty tag section is written.
        if response_header_version(api_key, version) == 1 && frame.has_remaining() {
            frame.advance(1);
        }
        let response = Response::decode(api_key, version, &frame);
        Some((sender, response.map_err(|_| PeerError::Malformed)))
    }

    /// Nobody waits for this answer any more. Returns whether it was still to come.
    pub fn forget(&mut self, sender: Sender) -> bool {
        let found = self.pending.iter().find(|(_, it)| it.sender == sender);
        let found = found.map(|(correlation_id, _)| *correlation_id);
        found.is_some_and(|correlation_id| self.pending.remove(&correlation_id).is_some())
    }

    /// The connection closed: everybody who waits, in the order of their requests.
    pub fn close(&mut self) -> Vec<Sender> {
        std::mem::take(&mut self.pending)
            .into_values()
            .map(|it| it.sender)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use highwater_disk::MemFile;
    use highwater_protocol::messages::{
        AllocateProducerIdsRequest, AllocateProducerIdsResponse, MetadataRequest,
    };
    use highwater_types::ErrorCode;

    use super::*;
    use crate::connection::{ConnOutput, Connection};
    use crate::machine::{Answer, ConnId};

    const SENDER: Sender = (MachineId::Shard(0), Token(7));

    #[test]
    fn a_request_travels_as_bytes_and_comes_back() {
        let mut loopback = Loopback::default();
        let mut connection: Connection<MemFile> = Connection::new(ConnId(0), Loopback::caller());
        let request = OutRequest::from(AllocateProducerIdsRequest::default());
        let frame = loopback.request_frame(SENDER, &request).expect("offered");
        let mut out = Vec::new();
        connection.handle_frame(frame, &mut out);
        let [ConnOutput::Request(incoming)] = out.as_slice() else {
            panic!("{out:?}")
        };
        assert_eq!(incoming.request.api_key(), request.api_key());
        assert_eq!(incoming.request.encode(0), request.encode(0));
        let answer = AllocateProducerIdsResponse {
            error_code: ErrorCode::NOT_CONTROLLER,
            ..AllocateProducerIdsResponse::default()
        };
        let response = Response::from(answer);
        let body = response.encode(incoming.version).expect("fits");
        let ticket = incoming.ticket;
        out.clear();
        connection.handle_answer(ticket, Answer::bytes(body), &mut out);
        let Some(ConnOutput::Write(frame)) = out.into_iter().next() else {
            panic!("no answer")
        };
        assert_eq!(loopback.handle_frame(frame), Some((SENDER, Ok(response))));
        assert!(!loopback.forget(SENDER));
    }

    #[test]
    fn what_the_controller_does_not_offer_is_refused_at_once() {
        let mut loopback = Loopback::default();
        let request = OutRequest::from(MetadataRequest::default());
        assert_eq!(
            loopback.request_frame(SENDER, &request),
            Err(PeerError::Unsupported)
        );
        assert_eq!(loopback.close(), []);
    }

    #[test]
    fn late_answers_are_for_nobody() {
        let mut loopback = Loopback::default();
        let request = OutRequest::from(AllocateProducerIdsRequest::default());
        loopback.request_frame(SENDER, &request).expect("offered");
        assert!(loopback.forget(SENDER));
        let frame = [0, 0, 0, 4, 0, 0, 0, 0].to_vec();
        let pieces: Vec<Piece<MemFile>> = vec![Piece::Bytes(frame.into())];
        assert_eq!(loopback.handle_frame(pieces), None);
    }
}
