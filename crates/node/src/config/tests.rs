use highwater_metadata::config::parse_properties;

use super::*;

const ONE_NODE: &str = "process.roles=broker,controller\nnode.id=1\nlog.dirs=/a,/b\n\
    listeners=CLIENT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093\n\
    listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
    inter.broker.listener.name=CLIENT\ncontroller.listener.names=CONTROLLER\n";

fn read(text: &str) -> Result<NodeConfig, String> {
    let properties = parse_properties(text).expect("well formed");
    let (broker, _) = BrokerConfig::new(&properties).expect("values");
    NodeConfig::new(broker).map_err(|why| why.to_string())
}

#[test]
fn a_usual_file_of_one_node() {
    let mut config = read(ONE_NODE).expect("a node");
    assert_eq!(config.log_dirs, ["/a", "/b"]);
    config.set_bound_port("CLIENT", 4711);
    let addresses: Vec<_> = config
        .advertised
        .iter()
        .map(|it| (it.name.as_str(), it.port, it.kind))
        .collect();
    assert_eq!(
        addresses,
        [
            ("CLIENT", 4711, ListenerKind::Broker),
            ("CONTROLLER", 9093, ListenerKind::Controller)
        ]
    );
    assert_eq!(config.inter_broker_listener(), "CLIENT");
    assert_eq!(config.static_voters, None);
}

#[test]
fn what_is_wrong_is_said() {
    let with = |line: &str| read(&format!("{ONE_NODE}{line}\n")).expect_err("refused");
    assert!(with("listeners=CLIENT://x").contains("NAME://HOST:PORT"));
    assert!(with("listeners=OTHER://h:1").contains("OTHER has no protocol"));
    assert!(with("listeners=CLIENT://h:1").contains("names CONTROLLER"));
    assert!(with("advertised.listeners=CLIENT://0.0.0.0:1").contains("0.0.0.0 is no address"));
    assert!(with("controller.quorum.voters=2@h:1").contains("does not name it"));
    assert!(with("broker.heartbeat.interval.ms=9000").contains("must be below"));
    assert!(with("log.dirs=/a,/a").contains("twice"));
    assert!(with("broker.id=7").contains("remove broker.id"));
    assert!(
        read("node.id=1\n")
            .expect_err("refused")
            .contains("process.roles")
    );
}

const BROKER_ONLY: &str = "process.roles=broker\nnode.id=2\nlog.dirs=/a\n\
    listeners=CLIENT://127.0.0.1:0\n\
    listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
    inter.broker.listener.name=CLIENT\ncontroller.listener.names=CONTROLLER\n\
    controller.quorum.bootstrap.servers=127.0.0.1:9093,[::1]:9094\n";

#[test]
fn a_broker_alone_has_no_listener_for_controllers() {
    let config = read(BROKER_ONLY).expect("a broker");
    assert!(config.roles.broker && !config.roles.controller);
    let controllers: Vec<_> = config
        .controllers
        .iter()
        .map(|it| (it.host.as_str(), it.port))
        .collect();
    assert_eq!(controllers, [("127.0.0.1", 9093), ("::1", 9094)]);
    assert_eq!(config.controller_listener(), "CONTROLLER");
    let with = |line: &str| read(&format!("{BROKER_ONLY}{line}\n"));
    let voters = with("controller.quorum.bootstrap.servers=\ncontroller.quorum.voters=1@h:9");
    let config = voters.expect("a broker of a static quorum");
    assert_eq!(config.controllers.first().map(|it| it.port), Some(9));
    let refused = |line: &str| with(line).expect_err("refused");
    assert!(refused("controller.quorum.bootstrap.servers=").contains("where the controllers are"));
    assert!(refused("controller.quorum.bootstrap.servers=h").contains("'h'"));
    assert!(refused("controller.quorum.bootstrap.servers=h:0").contains("'h:0'"));
    assert!(refused("controller.quorum.voters=2@h:9").contains("of its own"));
    assert!(refused("controller.listener.names=").contains("controller.listener.names"));
    let both = "listeners=CLIENT://127.0.0.1:0,CONTROLLER://127.0.0.1:0";
    assert!(refused(both).contains("CONTROLLER"));
    let announced = "advertised.listeners=CLIENT://127.0.0.1:0,CONTROLLER://127.0.0.1:9";
    assert!(refused(announced).contains("advertised.listeners names CONTROLLER"));
    let map = "listener.security.protocol.map=CLIENT:PLAINTEXT";
    assert!(refused(map).contains("CONTROLLER has no protocol"));
}

#[test]
fn a_controller_alone_has_listeners_for_controllers_only() {
    let text = "process.roles=controller\nnode.id=100\nlog.dirs=/a\n\
        listeners=CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n";
    let config = read(text).expect("a controller");
    assert!(config.roles.controller && !config.roles.broker);
    assert_eq!(config.shards(), 0);
    let with = |line: &str| read(&format!("{text}{line}\n")).expect_err("refused");
    let map = "listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT";
    let both = "listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093";
    assert!(with(&format!("{map}\n{both}")).contains("CLIENT"));
    assert!(with("controller.quorum.voters=1@h:1").contains("does not name it"));
}
