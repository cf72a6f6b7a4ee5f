//! Several whole nodes with a network between them that loses nothing unless it is cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use highwater_disk::{Blocking, MemDisk};
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_metadata::image::{PartitionImage, TopicImage};
use highwater_node::{
    BootError, Channel, FormatOptions, FormatVoters, Input, NodeConfig, PeerError, Token,
};
use highwater_node::{MachineId, format};
use highwater_protocol::messages::CreateTopicsRequest;
use highwater_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic,
};
use highwater_protocol::{ApiKey, ListenerKind, Request, Response, supported_versions};
use highwater_types::{Millis, Mono, NodeId, Now, PartitionIndex, WallMs};

use crate::host::{Host, options};

/// The controller's port; broker N listens for clients on 9000 + N.
const CONTROLLER_PORT: u16 = 9093;
/// Time passes in steps of this many milliseconds.
const STEP: u64 = 5;

/// What a node of a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Combined,
    Broker,
    Controller,
}

/// The config of node `id`. There is one controller, whatever its id.
pub(crate) fn node_config(id: i32, role: Role, extra: &str) -> NodeConfig {
    let client = format!("CLIENT://127.0.0.1:{}", 9000 + id);
    let controller = format!("CONTROLLER://127.0.0.1:{CONTROLLER_PORT}");
    let (roles, listeners) = match role {
        Role::Combined => ("broker,controller", format!("{client},{controller}")),
        Role::Broker => ("broker", client),
        Role::Controller => ("controller", controller),
    };
    let text = format!(
        "process.roles={roles}\nnode.id={id}\nlog.dirs=a\nlisteners={listeners}\n\
         listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         controller.listener.names=CONTROLLER\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{CONTROLLER_PORT}\nnum.shards=1\n{extra}"
    );
    let properties = parse_properties(&text).expect("well formed");
    let (broker, _) = BrokerConfig::new(&properties).expect("values");
    NodeConfig::new(broker).expect("a node").with_trace()
}

/// One node: what it is started from, and its present life, if it lives.
pub(crate) struct Member {
    pub(crate) config: NodeConfig,
    pub(crate) dirs: Vec<MemDisk>,
    host: Option<Host>,
}

/// A connection between two nodes.
struct Link {
    to: i32,
    client: u64,
    waiting: VecDeque<(Token, ApiKey, i16, Mono)>,
}

/// From where a connection goes, and what for.
type LinkKey = (i32, MachineId, Channel, u16);

pub(crate) struct Cluster {
    pub(crate) members: BTreeMap<i32, Member>,
    links: BTreeMap<LinkKey, Link>,
    cut: BTreeSet<(i32, i32)>,
    pub(crate) now: Now,
    /// Every request that went from one node to another: from, to, API.
    pub(crate) carried: Vec<(i32, i32, ApiKey)>,
}

impl Cluster {
    /// Formats the nodes; none lives yet.
    pub(crate) fn new(nodes: &[(i32, Role, &str)]) -> Self {
        let member = |(id, role, extra): &(i32, Role, &str)| {
            let config = node_config(*id, *role, extra);
            let dirs = vec![MemDisk::new("a")];
            let voters = match role {
                Role::Broker => FormatVoters::None,
                Role::Combined | Role::Controller => FormatVoters::Standalone,
            };
            let options = FormatOptions {
                voters,
                ..options()
            };
            let seed = [u8::try_from(*id).expect("a small id"); 32];
            let b = Blocking::enter();
            format(&config, &dirs, &options, Now::default(), seed, &b).expect("formatted");
            let host = None;
            (*id, Member { config, dirs, host })
        };
        Self {
            members: nodes.iter().map(member).collect(),
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            now: Now {
                mono: Mono::from_micros(1_000_000),
                wall: WallMs::new(1_796_100_000_000),
            },
            carried: Vec::new(),
        }
    }

    /// All of them live and serve.
    pub(crate) fn serving(nodes: &[(i32, Role, &str)]) -> Self {
        let mut cluster = Self::new(nodes);
        for (id, _, _) in nodes {
            cluster.start(*id);
        }
        cluster.run_until("all nodes serve", |cluster| {
            let ids: Vec<i32> = cluster.members.keys().copied().collect();
            ids.into_iter()
                .all(|id| cluster.host(id).control.is_serving())
        });
        cluster
    }

    /// Begins a life of a node.
    pub(crate) fn start(&mut self, id: i32) {
        let begun = self.try_start(id);
        begun.unwrap_or_else(|why| panic!("node {id}: {why}"));
    }

    pub(crate) fn try_start(&mut self, id: i32) -> Result<(), BootError> {
        let member = self.members.get_mut(&id).expect("a node");
        let host = Host::start_at(&member.config, &member.dirs, self.now)?;
        member.host = Some(host);
        self.on(id, Host::tick);
        Ok(())
    }

    /// Ends a life without a word, and with the power when `power` goes, too.
    pub(crate) fn kill(&mut self, id: i32, power: bool) {
        let member = self.members.get_mut(&id).expect("a node");
        member.host = None;
        for disk in &member.dirs {
            if power {
                disk.power_off_losing_unsynced();
                disk.power_on();
            } else {
                disk.crash();
            }
        }
        self.break_links(|from, to| from == id || to == id);
    }

    /// Asks a node to stop, and waits until it has.
    pub(crate) fn stop(&mut self, id: i32) -> Vec<String> {
        self.ask_to_stop(id);
        self.run_until("it stopped", |cluster| cluster.host(id).stopped);
        let member = self.members.get_mut(&id).expect("a node");
        let host = member.host.take().expect("it lived");
        self.break_links(|from, to| from == id || to == id);
        host.events
    }

    pub(crate) fn ask_to_stop(&mut self, id: i32) {
        self.on(id, |host| {
            host.try_stop(0);
        });
    }

    /// Nothing passes between two nodes any more.
    pub(crate) fn cut(&mut self, a: i32, b: i32) {
        self.cut.extend([(a, b), (b, a)]);
        self.break_links(|from, to| (from, to) == (a, b) || (from, to) == (b, a));
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn host(&self, id: i32) -> &Host {
        self.members[&id].host.as_ref().expect("it lives")
    }

    pub(crate) fn host_mut(&mut self, id: i32) -> &mut Host {
        let member = self.members.get_mut(&id).expect("a node");
        member.host.as_mut().expect("it lives")
    }

    /// Does something with a node, and carries what follows from it.
    pub(crate) fn on<R>(&mut self, id: i32, act: impl FnOnce(&mut Host) -> R) -> R {
        let done = act(self.host_mut(id));
        self.carry();
        done
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(STEP) {
            let step = Millis::new(STEP);
            self.now.mono = self.now.mono.plus(step);
            self.now.wall = WallMs::new(self.now.wall.raw() + 5);
            let ids: Vec<i32> = self.members.keys().copied().collect();
            for id in ids {
                let member = self.members.get_mut(&id).expect("a node");
                if let Some(host) = member.host.as_mut().filter(|host| !host.stopped) {
                    host.advance(step);
                }
            }
            self.carry();
        }
    }

    pub(crate) fn run_until(&mut self, what: &str, mut is: impl FnMut(&Self) -> bool) {
        for _ in 0..12_000 {
            if is(self) {
                return;
            }
            self.pass(STEP);
        }
        let told = self.members.iter().filter_map(|(id, member)| {
            let host = member.host.as_ref()?;
            Some(format!("{id} {}: {:#?}", host.control.phase(), host.events))
        });
        panic!("never: {what}\n{}", told.collect::<Vec<_>>().join("\n"));
    }

    /// Runs until every live node has applied what the controller `id` committed.
    pub(crate) fn settle(&mut self, controller: i32) {
        self.run_until("all have applied everything", |cluster| {
            let all = cluster.host(controller).control.metadata_high_watermark();
            let mut live = cluster.members.values().filter_map(|it| it.host.as_ref());
            live.all(|host| Some(host.control.image().end.offset) == all)
        });
    }

    /// Makes a topic of one partition.
    pub(crate) fn create(&mut self, controller: i32, name: &str, replicas: &[i32]) {
        let assignment = CreatableReplicaAssignment {
            partition_index: 0,
            broker_ids: replicas.iter().map(|id| NodeId::new(*id)).collect(),
        };
        let topic = CreatableTopic {
            name: name.to_owned(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: vec![assignment],
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![topic],
            ..CreateTopicsRequest::default()
        };
        let Response::CreateTopics(answer) =
            self.call(controller, ListenerKind::Controller, request)
        else {
            panic!("another answer")
        };
        let code = answer.topics[0].error_code;
        assert!(!code.is_error(), "{name}: {code}");
    }

    /// A request at its highest version to a node, and its answer.
    pub(crate) fn call(
        &mut self,
        id: i32,
        kind: ListenerKind,
        request: impl Into<Request>,
    ) -> Response {
        let request = request.into();
        let version = highest(kind, request.api_key()).expect("offered");
        let client = self.on(id, |host| {
            let client = host.connect(kind);
            host.ask(client, &request, version);
            client
        });
        for _ in 0..1000 {
            if let Some(response) = self.host_mut(id).answer(client, &request, version) {
                return response;
            }
            assert!(!self.host(id).is_closed(client), "closed: {request:?}");
            self.pass(STEP);
        }
        panic!("no answer to {request:?}");
    }

    /// Carries requests and answers until nothing moves.
    fn carry(&mut self) {
        for _ in 0..10_000 {
            if !self.carry_requests() && !self.carry_answers() {
                return;
            }
        }
        panic!("messages never end");
    }

    fn carry_requests(&mut self) -> bool {
        let mut sent = Vec::new();
        for (id, member) in &mut self.members {
            if let Some(host) = &mut member.host {
                sent.extend(host.sent.drain(..).map(|it| (*id, it)));
            }
        }
        let any = !sent.is_empty();
        for (from, it) in sent {
            let to = self.owner(it.peer.port, it.peer.listener);
            let to = to.filter(|to| !it.peer.host.is_empty() && !self.cut.contains(&(from, *to)));
            let Some(to) = to else {
                self.tell(from, it.from, it.token, Err(PeerError::Disconnected));
                continue;
            };
            let kind = it.peer.listener;
            let key = it.request.api_key();
            let version = highest(kind, key).expect("offered");
            let body = it.request.encode(version).expect("fits");
            self.carried.push((from, to, key));
            let link_key = (from, it.from, it.channel, it.peer.port);
            let client = match self.links.get(&link_key) {
                Some(link) => link.client,
                None => {
                    let client = self.host_mut(to).connect(kind);
                    let waiting = VecDeque::new();
                    self.links.insert(
                        link_key,
                        Link {
                            to,
                            client,
                            waiting,
                        },
                    );
                    client
                }
            };
            let link = self.links.get_mut(&link_key).expect("just made");
            link.waiting
                .push_back((it.token, key, version, it.deadline));
            self.host_mut(to).ask_encoded(client, key, version, body);
        }
        any
    }

    fn carry_answers(&mut self) -> bool {
        let keys: Vec<LinkKey> = self.links.keys().copied().collect();
        let mut any = false;
        for key in keys {
            let Some(link) = self.links.get(&key) else {
                continue;
            };
            let (to, client) = (link.to, link.client);
            let Some((token, api_key, version, deadline)) = link.waiting.front().copied() else {
                continue;
            };
            if let Some(response) = self.host_mut(to).answer_to(client, api_key, version) {
                any = true;
                let link = self.links.get_mut(&key).expect("there");
                link.waiting.pop_front();
                self.tell(key.0, key.1, token, Ok(response));
            } else if self.host(to).is_closed(client) || deadline <= self.now.mono {
                any = true;
                self.break_link(key);
            }
        }
        any
    }

    /// Who listens on a port, if it lives and serves there.
    fn owner(&self, port: u16, kind: ListenerKind) -> Option<i32> {
        let listens = |member: &Member| {
            let mut listeners = member.config.listeners.iter();
            let host = member.host.as_ref().filter(|host| !host.stopped);
            listeners.any(|it| it.port == port && it.kind == kind)
                && host.is_some_and(|host| host.opened.contains(&kind))
        };
        let found = self.members.iter().find(|(_, member)| listens(member));
        found.map(|(id, _)| *id)
    }

    fn tell(
        &mut self,
        to: i32,
        machine: MachineId,
        token: Token,
        result: Result<Response, PeerError>,
    ) {
        let member = self.members.get_mut(&to).expect("a node");
        if let Some(host) = member.host.as_mut().filter(|host| !host.stopped) {
            host.step(machine, Input::PeerAnswer { token, result });
        }
    }

    fn break_links(&mut self, which: impl Fn(i32, i32) -> bool) {
        let keys = self.links.iter();
        let keys: Vec<LinkKey> = keys
            .filter(|(key, link)| which(key.0, link.to))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.break_link(key);
        }
        self.carry();
    }

    fn break_link(&mut self, key: LinkKey) {
        let Some(link) = self.links.remove(&key) else {
            return;
        };
        let member = self.members.get_mut(&link.to).expect("a node");
        if let Some(host) = member.host.as_mut().filter(|host| !host.stopped) {
            host.hang_up(link.client);
        }
        for (token, ..) in link.waiting {
            self.tell(key.0, key.1, token, Err(PeerError::Disconnected));
        }
    }
}

fn highest(kind: ListenerKind, key: ApiKey) -> Option<i16> {
    let offered = supported_versions(kind).iter();
    let found = offered.clone().find(|it| it.api_key == key);
    found.map(|it| it.max)
}

/// The one partition of a topic.
pub(crate) fn the_partition(topic: &TopicImage) -> &PartitionImage {
    let found = topic.partitions.get(&PartitionIndex::new(0));
    found.expect("it has one partition")
}
