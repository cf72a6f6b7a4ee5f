//! What a node is in its cluster, and how it finds the metadata quorum.

use highwater_metadata::config::BrokerConfig;
use highwater_quorum::{Address, VoterSet};
use highwater_types::NodeId;

use super::{NodeConfigError, Roles};

pub(super) fn roles(broker: &BrokerConfig) -> Result<Roles, NodeConfigError> {
    let names = broker.list("process.roles");
    let has = |role: &str| names.iter().any(|name| name == role);
    let roles = Roles {
        broker: has("broker"),
        controller: has("controller"),
    };
    if !roles.broker && !roles.controller {
        return Err(NodeConfigError::Missing("process.roles"));
    }
    Ok(roles)
}

pub(super) fn static_voters(
    broker: &BrokerConfig,
    node_id: NodeId,
    roles: Roles,
    controller_names: &[String],
) -> Result<Option<VoterSet>, NodeConfigError> {
    let text = broker.text("controller.quorum.voters").unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let listener = controller_names
        .first()
        .map_or("CONTROLLER", String::as_str);
    let voters = VoterSet::parse(text, listener)?;
    if roles.controller && !voters.ids().contains(&node_id) {
        return Err(NodeConfigError::NotAVoter(node_id));
    }
    if !roles.controller && voters.ids().contains(&node_id) {
        return Err(NodeConfigError::BrokerVotes(node_id));
    }
    Ok(Some(voters))
}

/// Where the controllers are. A broker must be told; a controller that is the one voter need not.
pub(super) fn controllers(
    broker: &BrokerConfig,
    static_voters: Option<&VoterSet>,
    roles: Roles,
) -> Result<Vec<Address>, NodeConfigError> {
    let servers = broker.list("controller.quorum.bootstrap.servers");
    let mut controllers = servers
        .into_iter()
        .map(|server| address(&server).ok_or(NodeConfigError::Controller(server)))
        .collect::<Result<Vec<_>, _>>()?;
    if controllers.is_empty() {
        let voters = static_voters.iter().flat_map(|set| &set.voters);
        let endpoints = voters.filter_map(|voter| voter.endpoints.first());
        controllers.extend(endpoints.map(|it| Address {
            host: it.host.clone(),
            port: it.port,
        }));
    }
    if controllers.is_empty() && !roles.controller {
        return Err(NodeConfigError::NoControllers);
    }
    Ok(controllers)
}

/// `HOST:PORT`, where HOST may be an IPv6 address in brackets.
fn address(text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let is_host = !host.is_empty() && !host.contains([' ', '/']);
    is_host.then(|| Address {
        host: host.to_owned(),
        port,
    })
}
