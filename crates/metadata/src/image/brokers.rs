use highwater_types::{BrokerEpoch, DirectoryId, NodeId, Uuid};

/// An address that a broker or controller announces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// The listener's name, such as `PLAINTEXT`.
    pub name: String,
    /// Host name or address as clients are told it.
    pub host: String,
    /// Port.
    pub port: u16,
    /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// The levels of one feature that a node can work with (inclusive).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureRange {
    /// The feature's name.
    pub name: String,
    /// Lowest level.
    pub min: i16,
    /// Highest level.
    pub max: i16,
}

/// A registered broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerImage {
    /// Its node id.
    pub id: NodeId,
    /// The offset of its registration: of the first record that was decided with it.
    pub epoch: BrokerEpoch,
    /// One life of its process.
    pub incarnation: Uuid,
    /// Where clients and brokers reach it.
    pub endpoints: Vec<BrokerEndpoint>,
    /// What it can work with.
    pub features: Vec<FeatureRange>,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// May neither lead nor be in an ISR.
    pub fenced: bool,
    /// Is handing over its partitions before it stops.
    pub in_controlled_shutdown: bool,
    /// Came from a ZooKeeper cluster; kept for old logs.
    pub is_migrating: bool,
    /// Its online log directories.
    pub directories: Vec<DirectoryId>,
    /// Directories that get no new replicas; `None` until the broker says.
    pub cordoned: Option<Vec<DirectoryId>>,
}

impl BrokerImage {
    /// The endpoint of a listener by name.
    #[must_use]
    pub fn endpoint(&self, listener_name: &str) -> Option<&BrokerEndpoint> {
        self.endpoints.iter().find(|it| it.name == listener_name)
    }
}

/// A registered controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerImage {
    /// Its node id.
    pub id: NodeId,
    /// One life of its process.
    pub incarnation: Uuid,
    /// Kept for old logs.
    pub zk_migration_ready: bool,
    /// Where it is reached.
    pub endpoints: Vec<BrokerEndpoint>,
    /// What it can work with.
    pub features: Vec<FeatureRange>,
}
