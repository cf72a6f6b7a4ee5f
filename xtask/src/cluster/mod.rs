//! Three broker processes and a controller-only fourth, ours or Apache Kafka's.

mod archive;
pub(crate) mod ask;
pub(crate) mod compare;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod setup;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use self::ask::Partition;
use self::process::{Process, Start};
use self::proxy::Ways;
use self::setup::{BROKERS, CONTROLLER, Ports, Setup, borrowed, free_ports};

/// How long a state of the cluster is waited for. JVMs on two CPUs need some of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(20);

/// Whose processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Highwater,
    Kafka,
}

impl Subject {
    /// Its name in reports and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Highwater => "highwater",
            Self::Kafka => "kafka",
        }
    }

    /// What a node says when it serves.
    const fn ready(self) -> &'static str {
        match self {
            Self::Highwater => "highwater ready ",
            Self::Kafka => "Kafka Server started",
        }
    }
}

/// The nodes. All are killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) setup: Setup,
    controller: u16,
    ports: BTreeMap<i32, Ports>,
    nodes: BTreeMap<i32, Process>,
    ways: Arc<Ways>,
}

impl Cluster {
    /// Formats the directories; nothing runs yet.
    pub(crate) fn prepare(setup: Setup) -> Result<Self> {
        let free = free_ports(BROKERS.len() * 3 + 1)?;
        let [controller, rest @ ..] = free.as_slice() else {
            anyhow::bail!("no ports");
        };
        let ways = Arc::new(Ways::default());
        let mut ports = BTreeMap::new();
        for (id, three) in BROKERS.into_iter().zip(rest.chunks_exact(3)) {
            let &[client, internal, proxy] = three else {
                continue;
            };
            let advertised = if setup.is_proxied {
                proxy::open(&ways, id, proxy, internal)?;
                proxy
            } else {
                internal
            };
            let three = Ports {
                client,
                internal,
                advertised,
            };
            ports.insert(id, three);
        }
        let list: Vec<_> = ports.iter().map(|(id, ports)| (*id, *ports)).collect();
        setup.prepare(&list, *controller)?;
        Ok(Self {
            setup,
            controller: *controller,
            ports,
            nodes: BTreeMap::new(),
            ways,
        })
    }

    /// Starts every node and waits until all serve.
    pub(crate) fn start_all(&mut self) -> Result<()> {
        self.launch(CONTROLLER)?;
        for id in BROKERS {
            self.launch(id)?;
        }
        for id in BROKERS {
            self.wait_to_serve(id)?;
        }
        Ok(())
    }

    /// Starts a node without waiting for it.
    pub(crate) fn launch(&mut self, id: i32) -> Result<()> {
        let (program, arguments) = self.setup.command(id);
        let process = Process::start(&Start {
            name: format!("node {id}"),
            program: &program,
            arguments: &borrowed(&arguments),
            log: &self.setup.log(id),
            is_piped: false,
        })?;
        self.ways.set_process(id, process.id());
        self.nodes.insert(id, process);
        Ok(())
    }

    /// Waits until a node that was started serves.
    pub(crate) fn wait_to_serve(&mut self, id: i32) -> Result<()> {
        let ready = self.setup.subject.ready();
        self.node(id)?.wait_to_tell(ready, PATIENCE)
    }

    /// A node that runs, or is paused.
    pub(crate) fn node(&mut self, id: i32) -> Result<&mut Process> {
        self.nodes.get_mut(&id).context("no such node is running")
    }

    /// Every process, for what holds of all.
    pub(crate) fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        self.nodes.values_mut()
    }

    /// Ends a node as a crash does.
    pub(crate) fn kill(&mut self, id: i32) -> Result<()> {
        self.nodes.remove(&id).context("no such node")?.kill()
    }

    /// Asks nodes to end as an operator does, all at once, and waits for them.
    pub(crate) fn stop(&mut self, ids: &[i32]) -> Result<()> {
        for id in ids {
            self.node(*id)?.ask_to_end()?;
        }
        for id in ids {
            let node = self.nodes.remove(id).context("no such node")?;
            let status = node.wait(PATIENCE)?;
            // Java says 143 after SIGTERM.
            let is_fine = status.success() || status.code() == Some(143);
            ensure!(is_fine, "node {id} after SIGTERM: {status}");
        }
        Ok(())
    }

    /// No byte passes between the two brokers until [`Cluster::heal`].
    pub(crate) fn cut(&self, one: i32, other: i32) {
        self.ways.cut(one, other);
    }

    /// All ways are open again.
    pub(crate) fn heal(&self) {
        self.ways.heal();
    }

    /// Where clients connect: every broker.
    pub(crate) fn bootstrap(&self) -> String {
        let all: Vec<_> = self
            .ports
            .values()
            .map(|ports| format!("127.0.0.1:{}", ports.client))
            .collect();
        all.join(",")
    }

    /// The address of the controller.
    pub(crate) fn controller(&self) -> String {
        format!("127.0.0.1:{}", self.controller)
    }

    /// The port for clients of one broker.
    pub(crate) fn port(&self, id: i32) -> Result<u16> {
        Ok(self.ports.get(&id).context("no such broker")?.client)
    }

    /// The brokers that run now.
    pub(crate) fn running(&mut self) -> Vec<i32> {
        let nodes = self.nodes.iter_mut();
        nodes
            .filter_map(|(id, node)| (*id != CONTROLLER && node.is_running()).then_some(*id))
            .collect()
    }

    /// Makes a topic; each row names the replicas of a partition, the preferred leader first.
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        assignment: &[Vec<i32>],
        configs: &[(&str, &str)],
    ) -> Result<()> {
        let began = Instant::now();
        loop {
            let any = *self.running().first().context("no broker runs")?;
            match ask::create_topic(self.port(any)?, name, assignment, configs) {
                Ok(()) => break,
                Err(why) if began.elapsed() > PATIENCE => return Err(why),
                Err(_) => std::thread::sleep(GLANCE),
            }
        }
        let all = |partition: &Partition| partition.isr.len() == partition.replicas.len();
        self.wait_for(&format!("{name} to be led"), name, assignment.len(), all)?;
        Ok(())
    }

    /// Waits until every broker that runs says of each partition of a topic that it has a leader
    /// among them, and that `holds`; what the first one says, by partition.
    pub(crate) fn wait_for(
        &mut self,
        what: &str,
        topic: &str,
        partitions: usize,
        holds: impl Fn(&Partition) -> bool,
    ) -> Result<Vec<Partition>> {
        let began = Instant::now();
        loop {
            let running = self.running();
            let mut views = Vec::new();
            for id in &running {
                views.push(ask::partitions(self.port(*id)?, topic));
            }
            let is_so = |view: &Result<Vec<Partition>>| {
                view.as_ref().is_ok_and(|view| {
                    view.len() == partitions
                        && view
                            .iter()
                            .all(|it| running.contains(&it.leader) && holds(it))
                })
            };
            if !views.is_empty() && views.iter().all(is_so) {
                return views.swap_remove(0);
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "waited {PATIENCE:?} for {what}; brokers {running:?} say {views:?}"
            );
            std::thread::sleep(GLANCE);
        }
    }
}
