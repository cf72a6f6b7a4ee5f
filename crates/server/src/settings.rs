use highwater_types::Millis;

/// What sockets may cost, from the node's configuration.
#[derive(Clone, Debug)]
pub struct SocketSettings {
    /// `socket.request.max.bytes`: longer frames close the connection.
    pub request_bytes_max: usize,
    /// Read buffers of all connections together, in bytes.
    pub inbound_bytes_max: u64,
    /// Read buffers of one connection beyond the frame under way, in bytes.
    pub connection_inbound_bytes_max: u64,
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

impl SocketSettings {
    /// How often connections are looked at for overdue ones: at a quarter of the shortest limit,
    /// between 0.1 and 5 seconds.
    pub(crate) fn sweep_interval(&self) -> Millis {
        let shortest = self.idle_max.min(self.first_request_max).as_u64();
        Millis::new((shortest / 4).clamp(100, 5_000))
    }
}
