use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use highwater_disk::FileFile;
use highwater_node::loopback::Sender;
use highwater_node::{
    Answer, Channel, ConnId, ConnOutput, Connection, Incoming, JournalEntry, Loopback, PeerError,
    Ticket,
};
use highwater_protocol::{OutRequest, Response};
use highwater_types::Mono;

/// Control's connections to itself: both ends of each, on control's thread.
///
/// Whoever calls a method performs the [`LoopOutput`]s that it pushed, in order.
#[derive(Debug)]
pub(crate) struct LoopbackHost {
    links: BTreeMap<Channel, Link>,
}

/// One of the connections.
#[derive(Debug)]
struct Link {
    ends: Loopback,
    conn: Connection<FileFile>,
    /// Frames that the connection does not take yet.
    frames: VecDeque<Bytes>,
    deadlines: BTreeSet<(Mono, Sender)>,
    deadline_of: BTreeMap<Sender, Mono>,
}

/// What the loopback wants done.
#[derive(Debug)]
pub(crate) enum LoopOutput {
    /// For control.
    Request(Incoming),
    /// For the machine that asked.
    Answer(Sender, Result<Response, PeerError>),
    /// For control: the connection broke, a new one stands ready.
    Closed(ConnId),
    /// Something worth telling.
    Event(JournalEntry),
}

impl LoopbackHost {
    /// Connections of the loopback have ids from here downwards, those of sockets from 0 upwards.
    const FIRST_ID: ConnId = ConnId(u64::MAX);

    pub(crate) fn new() -> Self {
        let ids = (0..).map(|nth| ConnId(Self::FIRST_ID.0 - nth));
        let links = Channel::ALL.into_iter().zip(ids);
        Self {
            links: links
                .map(|(channel, id)| (channel, Link::new(id)))
                .collect(),
        }
    }

    /// Whether `id` is a connection of the loopback.
    pub(crate) fn is_its(&self, id: ConnId) -> bool {
        self.links.values().any(|link| link.conn.id() == id)
    }

    /// When the next request is overdue.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.links.values().filter_map(Link::next_deadline).min()
    }

    /// Sends a machine's request.
    pub(crate) fn handle_request(
        &mut self,
        sender: Sender,
        channel: Channel,
        request: &OutRequest,
        deadline: Mono,
        out: &mut Vec<LoopOutput>,
    ) {
        let link = self.links.get_mut(&channel);
        let link = link.expect("each channel has a link");
        link.handle_request(sender, request, deadline, out);
    }

    /// Takes an `Admitted` effect.
    pub(crate) fn handle_admitted(&mut self, ticket: Ticket, out: &mut Vec<LoopOutput>) {
        if let Some(link) = self.link(ticket.conn) {
            link.handle_admitted(ticket, out);
        }
    }

    /// Takes an `Answer` effect.
    pub(crate) fn handle_answer(
        &mut self,
        ticket: Ticket,
        answer: Answer<FileFile>,
        out: &mut Vec<LoopOutput>,
    ) {
        if let Some(link) = self.link(ticket.conn) {
            link.handle_answer(ticket, answer, out);
        }
    }

    /// Gives up the requests that are overdue.
    pub(crate) fn handle_time(&mut self, now: Mono, out: &mut Vec<LoopOutput>) {
        for link in self.links.values_mut() {
            link.handle_time(now, out);
        }
    }

    fn link(&mut self, id: ConnId) -> Option<&mut Link> {
        self.links.values_mut().find(|link| link.conn.id() == id)
    }
}

impl Link {
    fn new(id: ConnId) -> Self {
        Self {
            ends: Loopback::default(),
            conn: Connection::new(id, Loopback::caller()),
            frames: VecDeque::new(),
            deadlines: BTreeSet::new(),
            deadline_of: BTreeMap::new(),
        }
    }

    fn next_deadline(&self) -> Option<Mono> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    fn handle_request(
        &mut self,
        sender: Sender,
        request: &OutRequest,
        deadline: Mono,
        out: &mut Vec<LoopOutput>,
    ) {
        match self.ends.request_frame(sender, request) {
            Ok(frame) => {
                self.deadlines.insert((deadline, sender));
                self.deadline_of.insert(sender, deadline);
                self.frames.push_back(frame);
                self.pump(Vec::new(), out);
            }
            Err(why) => out.push(LoopOutput::Answer(sender, Err(why))),
        }
    }

    fn handle_admitted(&mut self, ticket: Ticket, out: &mut Vec<LoopOutput>) {
        let mut outputs = Vec::new();
        self.conn.handle_admitted(ticket, &mut outputs);
        self.pump(outputs, out);
    }

    fn handle_answer(
        &mut self,
        ticket: Ticket,
        answer: Answer<FileFile>,
        out: &mut Vec<LoopOutput>,
    ) {
        let mut outputs = Vec::new();
        self.conn.handle_answer(ticket, answer, &mut outputs);
        self.pump(outputs, out);
    }

    fn handle_time(&mut self, now: Mono, out: &mut Vec<LoopOutput>) {
        while let Some(&(at, sender)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, sender));
            self.deadline_of.remove(&sender);
            if self.ends.forget(sender) {
                out.push(LoopOutput::Answer(sender, Err(PeerError::TimedOut)));
            }
        }
    }

    /// Performs what the connection wants, and feeds it as long as it takes frames.
    fn pump(&mut self, outputs: Vec<ConnOutput<FileFile>>, out: &mut Vec<LoopOutput>) {
        let mut outputs = VecDeque::from(outputs);
        loop {
            while let Some(output) = outputs.pop_front() {
                self.perform(output, &mut outputs, out);
            }
            if !self.conn.wants_frames() {
                return;
            }
            let Some(frame) = self.frames.pop_front() else {
                return;
            };
            let mut more = Vec::new();
            self.conn.handle_frame(frame, &mut more);
            outputs.extend(more);
        }
    }

    fn perform(
        &mut self,
        output: ConnOutput<FileFile>,
        outputs: &mut VecDeque<ConnOutput<FileFile>>,
        out: &mut Vec<LoopOutput>,
    ) {
        match output {
            ConnOutput::Request(incoming) => out.push(LoopOutput::Request(incoming)),
            ConnOutput::Write(frame) => {
                if let Some((sender, result)) = self.ends.handle_frame(frame) {
                    self.settle(sender);
                    out.push(LoopOutput::Answer(sender, result));
                }
            }
            ConnOutput::Mute(_) => {
                // A node does not throttle itself.
                let mut more = Vec::new();
                self.conn.handle_unmuted(&mut more);
                outputs.extend(more);
            }
            ConnOutput::Close => {
                let id = self.conn.id();
                for sender in self.ends.close() {
                    self.settle(sender);
                    out.push(LoopOutput::Answer(sender, Err(PeerError::Disconnected)));
                }
                self.frames.clear();
                self.conn =
                    Connection::new(ConnId(id.0 - Channel::ALL.len() as u64), Loopback::caller());
                out.push(LoopOutput::Closed(id));
            }
            ConnOutput::Event(entry) => out.push(LoopOutput::Event(entry)),
        }
    }

    fn settle(&mut self, sender: Sender) {
        if let Some(at) = self.deadline_of.remove(&sender) {
            self.deadlines.remove(&(at, sender));
        }
    }
}

#[cfg(test)]
mod tests {
    use highwater_node::{MachineId, Token};
    use highwater_protocol::messages::{
        AllocateProducerIdsRequest, AllocateProducerIdsResponse, BrokerHeartbeatRequest,
    };

    use super::*;

    fn request() -> OutRequest {
        OutRequest::from(AllocateProducerIdsRequest::default())
    }

    fn sender(token: u64) -> Sender {
        (MachineId::Shard(0), Token(token))
    }

    #[test]
    fn requests_are_answered_in_order_one_at_a_time() {
        let mut host = LoopbackHost::new();
        let mut out = Vec::new();
        let late = Mono::from_micros(1_000_000);
        host.handle_request(sender(1), Channel::Others, &request(), late, &mut out);
        host.handle_request(sender(2), Channel::Others, &request(), late, &mut out);
        let [LoopOutput::Request(first)] = out.as_slice() else {
            panic!("{out:?}")
        };
        let response = Response::from(AllocateProducerIdsResponse::default());
        let body = response.encode(first.version).expect("fits");
        let ticket = first.ticket;
        out.clear();
        host.handle_answer(ticket, Answer::bytes(body), &mut out);
        let [LoopOutput::Answer(to, Ok(answer)), LoopOutput::Request(_)] = out.as_slice() else {
            panic!("{out:?}")
        };
        assert_eq!((*to, answer), (sender(1), &response));
        assert_eq!(host.next_deadline(), Some(late), "the second still waits");
    }

    #[test]
    fn a_heartbeat_does_not_wait_behind_other_requests() {
        let mut host = LoopbackHost::new();
        let mut out = Vec::new();
        let late = Mono::from_micros(1_000_000);
        host.handle_request(sender(1), Channel::Others, &request(), late, &mut out);
        let heartbeat = OutRequest::from(BrokerHeartbeatRequest::default());
        host.handle_request(sender(2), Channel::Lifecycle, &heartbeat, late, &mut out);
        let [LoopOutput::Request(first), LoopOutput::Request(second)] = out.as_slice() else {
            panic!("{out:?}")
        };
        assert_eq!(second.request.api_key(), heartbeat.api_key());
        assert_ne!(first.ticket.conn, second.ticket.conn);
        assert!(host.is_its(first.ticket.conn) && host.is_its(second.ticket.conn));
    }

    #[test]
    fn overdue_requests_time_out_once() {
        let mut host = LoopbackHost::new();
        let mut out = Vec::new();
        host.handle_request(
            sender(1),
            Channel::Others,
            &request(),
            Mono::from_micros(10),
            &mut out,
        );
        out.clear();
        host.handle_time(Mono::from_micros(9), &mut out);
        assert!(out.is_empty());
        host.handle_time(Mono::from_micros(10), &mut out);
        host.handle_time(Mono::from_micros(10), &mut out);
        assert!(matches!(
            out.as_slice(),
            [LoopOutput::Answer(_, Err(PeerError::TimedOut))]
        ));
        assert_eq!(host.next_deadline(), None);
    }
}
