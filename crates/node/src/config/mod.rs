//! What a node is told by its config, taken apart once.

mod listeners;
mod quorum;

use std::fmt;
use std::sync::Arc;

use highwater_metadata::config::BrokerConfig;
use highwater_protocol::ListenerKind;
use highwater_quorum::{Address, ParseVotersError, VoterSet};
use highwater_types::NodeId;

use listeners::{advertised, check_listeners, listeners};

/// The config of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Every key, as it was set.
    pub broker: Arc<BrokerConfig>,
    /// `node.id`.
    pub node_id: NodeId,
    /// `process.roles`.
    pub roles: Roles,
    /// Paths of the log directories, as a person wrote them, in order.
    pub log_dirs: Vec<String>,
    /// The number of the log directory that holds the metadata log.
    pub metadata_dir: usize,
    /// Every listener, those of controllers too.
    pub listeners: Vec<Listener>,
    /// The addresses that brokers announce, those of controller listeners last.
    pub advertised: Vec<Advertised>,
    /// The voters of a static quorum; `None` when the voters are in the metadata log.
    pub static_voters: Option<VoterSet>,
    /// Where a broker looks for the controllers: `controller.quorum.bootstrap.servers`, or the
    /// addresses of the static voters.
    pub controllers: Vec<Address>,
    /// Whether machines push `Level::Trace` events: for the simulator.
    pub trace: bool,
    /// Whether followers cut their logs by the rule from before leader epochs, and a broker that
    /// stopped uncleanly stays in the ISR: for the simulator, which shows what that loses.
    pub old_rule: bool,
}

/// What a process plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Serves clients and keeps partitions.
    pub broker: bool,
    /// Keeps the metadata log.
    pub controller: bool,
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, in capitals.
    pub name: String,
    /// Host name or address; empty means all addresses.
    pub host: String,
    /// Port; zero until one is picked.
    pub port: u16,
    /// Which APIs it offers.
    pub kind: ListenerKind,
    /// How it speaks.
    pub protocol: SecurityProtocol,
}

/// An address that clients or brokers are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// The listener's name.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port; zero until the listener has picked one.
    pub port: u16,
    /// Which APIs it offers.
    pub kind: ListenerKind,
    /// How it speaks.
    pub protocol: SecurityProtocol,
}

/// How a listener speaks, by Kafka's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// 0.
    Plaintext,
    /// 1.
    Ssl,
    /// 2.
    SaslPlaintext,
    /// 3.
    SaslSsl,
}

/// A config that no node can be made of. Each text says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeConfigError {
    /// A key that must be there is not.
    #[error("{0} is missing from the config")]
    Missing(&'static str),
    /// A listener that cannot be read.
    #[error("'{entry}' in {key} is no listener: NAME://HOST:PORT is expected")]
    Listener {
        /// `listeners` or `advertised.listeners`.
        key: &'static str,
        /// The part that cannot be read.
        entry: String,
    },
    /// A name without a protocol.
    #[error("listener {0} has no protocol in listener.security.protocol.map")]
    Protocol(String),
    /// Two listeners with one name or one port.
    #[error("listener {0} is named twice, or shares its port with another")]
    Repeated(String),
    /// A name that is used and not defined.
    #[error("{key} names {name}, which is not among the listeners")]
    UnknownListener {
        /// The key that uses it.
        key: &'static str,
        /// The name.
        name: String,
    },
    /// An address that clients cannot connect to.
    #[error(
        "{0} is no address that clients can connect to: say by which name they reach this machine, \
         with advertised.listeners=NAME://HOST:PORT, or listen on an address of this machine"
    )]
    NotReachable(String),
    /// The voters cannot be read.
    #[error("controller.quorum.voters: {0}")]
    Voters(#[from] ParseVotersError),
    /// This node is a controller, but not among the voters.
    #[error("node {0} is a controller, but controller.quorum.voters does not name it")]
    NotAVoter(NodeId),
    /// This node is no controller, but among the voters.
    #[error(
        "node {0} is a broker only, but controller.quorum.voters names it; give the broker a \
         node.id of its own, or add controller to process.roles"
    )]
    BrokerVotes(NodeId),
    /// A broker that is not told where the controllers are.
    #[error(
        "a broker needs to know where the controllers are: set \
         controller.quorum.bootstrap.servers=HOST:PORT, or controller.quorum.voters for a static \
         quorum"
    )]
    NoControllers,
    /// An address of a controller that cannot be read.
    #[error(
        "'{0}' in controller.quorum.bootstrap.servers is no address: HOST:PORT is expected, with \
         the port that the controller listens on"
    )]
    Controller(String),
    /// Two values that cannot be so at once.
    #[error("{0}")]
    Conflict(String),
    /// What this build cannot do yet.
    #[error("{0} is not supported by this build yet")]
    NotYet(&'static str),
}

impl NodeConfig {
    /// Takes a config apart.
    ///
    /// # Errors
    /// When no node can be made of it.
    pub fn new(broker: BrokerConfig) -> Result<Self, NodeConfigError> {
        let node_id = node_id(&broker)?;
        let roles = quorum::roles(&broker)?;
        let controller_names = upper(broker.list("controller.listener.names"));
        let listeners = listeners(&broker, &controller_names)?;
        check_listeners(&broker, roles, &listeners, &controller_names)?;
        let advertised = advertised(&broker, &listeners, &controller_names)?;
        let (log_dirs, metadata_dir) = log_dirs(&broker)?;
        let static_voters = quorum::static_voters(&broker, node_id, roles, &controller_names)?;
        let controllers = quorum::controllers(&broker, static_voters.as_ref(), roles)?;
        check_times(&broker)?;
        Ok(Self {
            node_id,
            roles,
            log_dirs,
            metadata_dir,
            listeners,
            advertised,
            static_voters,
            controllers,
            broker: Arc::new(broker),
            trace: false,
            old_rule: false,
        })
    }

    /// The same with `Level::Trace` events.
    #[must_use]
    pub fn with_trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// The listener `name` got `port`: wherever its port was to be picked, it is this one now.
    pub fn set_bound_port(&mut self, name: &str, port: u16) {
        for listener in self.listeners.iter_mut().filter(|it| it.name == name) {
            listener.port = port;
        }
        for advertised in self
            .advertised
            .iter_mut()
            .filter(|it| it.name == name && it.port == 0)
        {
            advertised.port = port;
        }
    }

    /// `num.shards`; none without the broker's role.
    #[must_use]
    pub fn shards(&self) -> u16 {
        if !self.roles.broker {
            return 0;
        }
        u16::try_from(self.broker.count("num.shards")).expect("the key allows 64 at most")
    }

    /// The name of the listener by which brokers reach each other.
    #[must_use]
    pub fn inter_broker_listener(&self) -> &str {
        let set = self.broker.static_value("inter.broker.listener.name");
        let first = || {
            self.advertised
                .iter()
                .find(|it| it.kind == ListenerKind::Broker)
        };
        set.or_else(|| first().map(|it| it.name.as_str()))
            .unwrap_or("PLAINTEXT")
    }

    /// The first controller listener's name.
    #[must_use]
    pub fn controller_listener(&self) -> String {
        let names = upper(self.broker.list("controller.listener.names"));
        names
            .into_iter()
            .next()
            .unwrap_or_else(|| "CONTROLLER".to_owned())
    }
}

fn upper(names: Vec<String>) -> Vec<String> {
    names
        .into_iter()
        .map(|name| name.to_ascii_uppercase())
        .collect()
}

fn node_id(broker: &BrokerConfig) -> Result<NodeId, NodeConfigError> {
    let old = broker.number("broker.id").filter(|id| *id >= 0);
    let id = broker
        .number("node.id")
        .or(old)
        .ok_or(NodeConfigError::Missing("node.id"))?;
    if old.is_some_and(|old| old != id) {
        let text = format!("node.id is {id}, but broker.id is another; remove broker.id");
        return Err(NodeConfigError::Conflict(text));
    }
    Ok(NodeId::new(i32::try_from(id).expect("a checked int")))
}

fn log_dirs(broker: &BrokerConfig) -> Result<(Vec<String>, usize), NodeConfigError> {
    let mut dirs = broker.list("log.dirs");
    if dirs.is_empty() {
        dirs = broker.list("log.dir");
    }
    let repeated = dirs
        .iter()
        .enumerate()
        .find(|(at, dir)| dirs.iter().skip(at + 1).any(|it| it == *dir));
    if let Some((_, dir)) = repeated {
        return Err(NodeConfigError::Conflict(format!(
            "log.dirs names {dir} twice"
        )));
    }
    if dirs.is_empty() {
        return Err(NodeConfigError::Missing("log.dirs"));
    }
    let metadata_dir = match broker.static_value("metadata.log.dir") {
        None => 0,
        Some(dir) => dirs
            .iter()
            .position(|it| it == dir)
            .ok_or(NodeConfigError::NotYet(
                "a metadata.log.dir that is not one of log.dirs",
            ))?,
    };
    Ok((dirs, metadata_dir))
}

fn check_times(broker: &BrokerConfig) -> Result<(), NodeConfigError> {
    let heartbeat = broker.count("broker.heartbeat.interval.ms");
    let session = broker.count("broker.session.timeout.ms");
    if heartbeat >= session {
        return Err(NodeConfigError::Conflict(format!(
            "broker.heartbeat.interval.ms ({heartbeat}) must be below broker.session.timeout.ms \
             ({session})"
        )));
    }
    Ok(())
}

impl SecurityProtocol {
    /// Kafka's number.
    #[must_use]
    pub const fn to_wire(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.name, self.host, self.port)
    }
}

#[cfg(test)]
mod tests;
