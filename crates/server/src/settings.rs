use highwater_metadata::config::BrokerConfig;
use highwater_types::Millis;

/// What sockets may cost, from the node's configuration.
#[derive(Clone, Debug)]
pub struct SocketSettings {
    /// `socket.request.max.bytes`: longer frames close the connection.
    pub request_bytes_max: usize,
    /// Longest answer that a peer may give, in bytes: `replica.fetch.response.max.bytes` and one
    /// batch beyond it, which is never longer than the request that brought it.
    pub peer_answer_bytes_max: usize,
    /// Read buffers of all connections together, in bytes.
    pub inbound_bytes_max: u64,
    /// Read buffers of one connection beyond the frame under way, in bytes.
    pub connection_inbound_bytes_max: u64,
    /// `max.waiting.requests.per.connection`.
    pub waiting_requests_max: usize,
    /// `connections.max.idle.ms`.
    pub idle_max: Millis,
    /// A connection that did not send one whole request by then is closed.
    pub first_request_max: Millis,
    /// `max.connections`.
    pub connections_max: usize,
    /// `max.connections.per.ip`.
    pub connections_per_ip_max: usize,
    /// `socket.listen.backlog.size`.
    pub backlog: i32,
    /// `socket.send.buffer.bytes`; `None` leaves it to the system.
    pub send_buffer_bytes: Option<usize>,
    /// `socket.receive.buffer.bytes`; `None` leaves it to the system.
    pub receive_buffer_bytes: Option<usize>,
}

/// Connections that may wait to be accepted, where the configuration does not say.
const BACKLOG: u64 = 4096;

/// Everything in an answer to a replica but the records: names, ids, offsets, aborted transactions.
const ANSWER_HEAD_BYTES: usize = 16 << 20;

impl SocketSettings {
    /// What `config` says.
    #[must_use]
    pub fn new(config: &BrokerConfig) -> Self {
        let size = |name| usize::try_from(config.count(name)).unwrap_or(usize::MAX);
        // A buffer size of its own switches off the system's tuning by the link: only on demand.
        let buffer = |name| {
            let set = config.static_value(name).and_then(|_| config.number(name));
            set.and_then(|bytes| usize::try_from(bytes).ok())
        };
        // -1 is never.
        let idle = config.number("connections.max.idle.ms").unwrap_or(-1);
        // Kafka's 50 is soon full when many clients come at once, and whoever finds it full waits
        // for a second: only on demand. The system cuts it to what it allows.
        let backlog = config
            .static_value("socket.listen.backlog.size")
            .map_or(BACKLOG, |_| config.count("socket.listen.backlog.size"));
        Self {
            request_bytes_max: size("socket.request.max.bytes"),
            peer_answer_bytes_max: size("replica.fetch.response.max.bytes")
                .saturating_add(size("socket.request.max.bytes"))
                .saturating_add(ANSWER_HEAD_BYTES),
            inbound_bytes_max: config.count("max.inbound.memory.bytes"),
            connection_inbound_bytes_max: config.count("max.inbound.memory.per.connection.bytes"),
            waiting_requests_max: size("max.waiting.requests.per.connection"),
            idle_max: u64::try_from(idle).map_or(Millis::MAX, Millis::new),
            first_request_max: Millis::new(config.count("connection.handshake.timeout.ms")),
            connections_max: size("max.connections"),
            connections_per_ip_max: size("max.connections.per.ip"),
            backlog: i32::try_from(backlog).unwrap_or(i32::MAX),
            send_buffer_bytes: buffer("socket.send.buffer.bytes"),
            receive_buffer_bytes: buffer("socket.receive.buffer.bytes"),
        }
    }

    /// How often connections are looked at for overdue ones: at a quarter of the shortest limit,
    /// between 0.1 and 5 seconds.
    pub(crate) fn sweep_interval(&self) -> Millis {
        let shortest = self.idle_max.min(self.first_request_max).as_u64();
        Millis::new((shortest / 4).clamp(100, 5_000))
    }
}
