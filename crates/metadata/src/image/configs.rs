/// What a dynamic config belongs to, by Kafka's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// 2.
    Topic,
    /// 4; the empty name means all brokers.
    Broker,
    /// 16.
    ClientMetrics,
    /// 32.
    Group,
    /// A number that this build does not know; kept as it is.
    Other(i8),
}

impl ResourceKind {
    /// From the number in records and requests.
    #[must_use]
    pub const fn from_wire(raw: i8) -> Self {
        match raw {
            2 => Self::Topic,
            4 => Self::Broker,
            16 => Self::ClientMetrics,
            32 => Self::Group,
            other => Self::Other(other),
        }
    }

    /// The number in records and requests.
    #[must_use]
    pub const fn to_wire(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::ClientMetrics => 16,
            Self::Group => 32,
            Self::Other(raw) => raw,
        }
    }
}

/// One thing with dynamic configs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigResource {
    /// Topic, broker, group, client metrics.
    pub kind: ResourceKind,
    /// Its name; for brokers the node id as text, or empty for all brokers.
    pub name: String,
}
