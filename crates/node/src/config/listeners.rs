//! The listeners of a node, and the addresses that it announces.

use highwater_metadata::config::BrokerConfig;
use highwater_protocol::ListenerKind;

use super::{Advertised, Listener, NodeConfigError, Roles, SecurityProtocol};

pub(super) fn listeners(
    broker: &BrokerConfig,
    controller_names: &[String],
) -> Result<Vec<Listener>, NodeConfigError> {
    let mut listeners: Vec<Listener> = Vec::new();
    for entry in broker.list("listeners") {
        let (name, host, port) = parse_listener("listeners", &entry)?;
        let repeated =
            |it: &Listener| it.name == name || (port != 0 && it.port == port && it.host == host);
        if listeners.iter().any(repeated) {
            return Err(NodeConfigError::Repeated(name));
        }
        let protocol = protocol(broker, &name, controller_names)?;
        let kind = kind(&name, controller_names);
        listeners.push(Listener {
            name,
            host,
            port,
            kind,
            protocol,
        });
    }
    Ok(listeners)
}

pub(super) fn check_listeners(
    broker: &BrokerConfig,
    roles: Roles,
    listeners: &[Listener],
    controller_names: &[String],
) -> Result<(), NodeConfigError> {
    let has = |name: &str| listeners.iter().any(|it| it.name == name);
    if controller_names.is_empty() {
        return Err(NodeConfigError::Missing("controller.listener.names"));
    }
    check_roles(broker, roles, listeners, controller_names)?;
    if let Some(name) = controller_names
        .iter()
        .find(|name| roles.controller && !has(name))
    {
        let key = "controller.listener.names";
        return Err(NodeConfigError::UnknownListener {
            key,
            name: name.clone(),
        });
    }
    if let Some(name) = broker.static_value("inter.broker.listener.name")
        && !has(name)
    {
        let key = "inter.broker.listener.name";
        return Err(NodeConfigError::UnknownListener {
            key,
            name: name.to_owned(),
        });
    }
    if roles.broker && !listeners.iter().any(|it| it.kind == ListenerKind::Broker) {
        let text = "listeners must name a listener that is not in controller.listener.names";
        return Err(NodeConfigError::Conflict(text.to_owned()));
    }
    if listeners
        .iter()
        .any(|it| it.protocol != SecurityProtocol::Plaintext)
    {
        return Err(NodeConfigError::NotYet("a listener with SSL or SASL"));
    }
    Ok(())
}

/// A broker without the controller's role only dials its controllers; a controller without the
/// broker's serves nobody else.
fn check_roles(
    broker: &BrokerConfig,
    roles: Roles,
    listeners: &[Listener],
    controller_names: &[String],
) -> Result<(), NodeConfigError> {
    let of_kind = |kind| listeners.iter().find(move |it| it.kind == kind);
    if let Some(it) = of_kind(ListenerKind::Controller).filter(|_| !roles.controller) {
        return Err(NodeConfigError::Conflict(format!(
            "listener {} is one of controller.listener.names, but this node is a broker only; \
             take it out of listeners, or add controller to process.roles",
            it.name
        )));
    }
    if let Some(it) = of_kind(ListenerKind::Broker).filter(|_| !roles.broker) {
        return Err(NodeConfigError::Conflict(format!(
            "listener {} is not one of controller.listener.names, but this node is a controller \
             only; take it out of listeners, or add broker to process.roles",
            it.name
        )));
    }
    // How the controllers are spoken to, where no listener of this node says.
    for name in controller_names {
        if protocol(broker, name, controller_names)? != SecurityProtocol::Plaintext {
            return Err(NodeConfigError::NotYet("a listener with SSL or SASL"));
        }
    }
    Ok(())
}

/// What is announced: `advertised.listeners`, and any listener that it does not name. An empty
/// host is announced as `localhost`: this build does not ask the system for its name.
pub(super) fn advertised(
    broker: &BrokerConfig,
    listeners: &[Listener],
    controller_names: &[String],
) -> Result<Vec<Advertised>, NodeConfigError> {
    let mut all: Vec<Advertised> = Vec::new();
    for entry in broker.list("advertised.listeners") {
        let (name, host, port) = parse_listener("advertised.listeners", &entry)?;
        if !listeners.iter().any(|it| it.name == name) {
            let key = "advertised.listeners";
            return Err(NodeConfigError::UnknownListener { key, name });
        }
        if matches!(host.as_str(), "0.0.0.0" | "::") {
            return Err(NodeConfigError::NotReachable(host));
        }
        let protocol = protocol(broker, &name, controller_names)?;
        let kind = kind(&name, controller_names);
        all.push(Advertised {
            name,
            host,
            port,
            kind,
            protocol,
        });
    }
    let named: Vec<String> = all.iter().map(|it| it.name.clone()).collect();
    for it in listeners.iter().filter(|it| !named.contains(&it.name)) {
        let Listener {
            name,
            host,
            port,
            kind,
            protocol,
        } = it.clone();
        if matches!(host.as_str(), "0.0.0.0" | "::") && kind == ListenerKind::Broker {
            return Err(NodeConfigError::NotReachable(host));
        }
        all.push(Advertised {
            name,
            host,
            port,
            kind,
            protocol,
        });
    }
    for it in &mut all {
        if it.host.is_empty() {
            "localhost".clone_into(&mut it.host);
        }
    }
    all.sort_by_key(|it| it.kind == ListenerKind::Controller);
    Ok(all)
}

fn kind(name: &str, controller_names: &[String]) -> ListenerKind {
    if controller_names.iter().any(|it| it == name) {
        ListenerKind::Controller
    } else {
        ListenerKind::Broker
    }
}

/// `NAME://HOST:PORT`, where HOST may be empty or an IPv6 address in brackets.
fn parse_listener(
    key: &'static str,
    entry: &str,
) -> Result<(String, String, u16), NodeConfigError> {
    let parsed = entry.split_once("://").and_then(|(name, address)| {
        let (host, port) = address.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'))
            .unwrap_or(host);
        let named = !name.is_empty() && !host.contains(['/', ' ']);
        Some((
            name.to_ascii_uppercase(),
            host.to_owned(),
            port.parse().ok()?,
        ))
        .filter(|_| named)
    });
    parsed.ok_or_else(|| NodeConfigError::Listener {
        key,
        entry: entry.to_owned(),
    })
}

/// The protocol that the map gives a listener. A controller listener that the map lacks speaks
/// PLAINTEXT, as long as nobody wrote a map at all.
fn protocol(
    broker: &BrokerConfig,
    name: &str,
    controller_names: &[String],
) -> Result<SecurityProtocol, NodeConfigError> {
    let map = broker
        .text("listener.security.protocol.map")
        .unwrap_or_default();
    // Of two entries for one name the later counts.
    let pairs = map.split(',').rev();
    let found = pairs
        .filter_map(|pair| pair.trim().split_once(':'))
        .find(|(it, _)| it.eq_ignore_ascii_case(name))
        .map(|(_, it)| it);
    let unset = broker
        .static_value("listener.security.protocol.map")
        .is_none();
    match found {
        Some("PLAINTEXT") => Ok(SecurityProtocol::Plaintext),
        Some("SSL") => Ok(SecurityProtocol::Ssl),
        Some("SASL_PLAINTEXT") => Ok(SecurityProtocol::SaslPlaintext),
        Some("SASL_SSL") => Ok(SecurityProtocol::SaslSsl),
        None if unset && kind(name, controller_names) == ListenerKind::Controller => {
            Ok(SecurityProtocol::Plaintext)
        }
        _ => Err(NodeConfigError::Protocol(name.to_owned())),
    }
}
