//! Several brokers: in one process, and each with a process and a configuration of its own.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Node, PATIENCE, highwater, run};
use tempfile::{TempDir, tempdir};

fn ok(bootstrap: &str, args: &[&str], stdin: &str) -> String {
    let args = [args, &["--bootstrap", bootstrap]].concat();
    let (code, out, error) = run(&args, stdin);
    assert_eq!(code, 0, "{args:?}: {error}");
    out
}

fn json(bootstrap: &str, args: &[&str]) -> Value {
    let out = ok(bootstrap, &[args, &["--output", "json"]].concat(), "");
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}"))
}

/// The replicas of a topic, by broker.
fn replicas(bootstrap: &str, topic: &str) -> Vec<Value> {
    let mut rows = json(bootstrap, &["topic", "describe", topic]);
    let mut rows = rows.as_array_mut().map(std::mem::take).expect("rows");
    rows.sort_by_key(|row| (row["topic_partition"].to_string(), row["broker"].as_i64()));
    rows
}

/// Looks at the replicas until they are as wanted.
fn until(bootstrap: &str, topic: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let late = Instant::now() + PATIENCE;
    loop {
        let rows = replicas(bootstrap, topic);
        if wanted(&rows) {
            return rows;
        }
        assert!(Instant::now() < late, "{rows:#?}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn stands_at(row: &Value, end: i64) -> bool {
    row["hw"] == end && row["leo"] == end
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|it| format!("{it}\n")).collect()
}

#[test]
fn one_command_starts_three_brokers_that_replicate() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let node = Node::start(&data, &["--brokers", "3"]);
    let addresses: Vec<&str> = node.bootstrap.split(',').collect();
    assert_eq!(addresses.len(), 3, "{}", node.ready_line);
    let status = json(&node.bootstrap, &["cluster", "status"]);
    assert_eq!(status["brokers"].as_array().map(Vec::len), Some(3));
    assert_eq!(status["controller"], 1);
    ok(&node.bootstrap, &["topic", "create", "orders"], "");
    ok(&node.bootstrap, &["produce", "orders"], &lines(0..500));
    let rows = until(&node.bootstrap, "orders", |rows| {
        rows.iter().all(|row| stands_at(row, 500))
    });
    assert_eq!(rows.len(), 3, "three replicas where nobody says: {rows:?}");
    let leader = rows.iter().find(|row| row["role"] == "leader");
    let isr = leader.expect("a leader")["isr"].as_array().map(Vec::len);
    assert_eq!(isr, Some(3));
    for row in rows.iter().filter(|row| row["role"] != "leader") {
        assert_eq!(
            (&row["lag"], &row["start"]),
            (&0.into(), &0.into()),
            "{row}"
        );
    }
    // Any of them is enough to find the others.
    for address in addresses {
        assert_eq!(
            json(address, &["topic", "list"]).as_array().map(Vec::len),
            Some(1)
        );
    }
    let said = node.errors.clone();
    assert!(node.stop().success());
    let said = fs::read_to_string(said).expect("a log");
    assert!(
        said.contains("node{id="),
        "the log tells who speaks: {said}"
    );
    for broker in 1..=3 {
        let dir = data.join(format!("broker-{broker}"));
        assert!(
            dir.join(".kafka_cleanshutdown").exists(),
            "{broker}: {said}"
        );
        assert!(dir.join("orders-0").exists(), "{broker}");
    }
    let node = Node::start(&data, &["--brokers", "3"]);
    let args = ["consume", "orders", "--from-beginning", "-n", "500"];
    assert_eq!(ok(&node.bootstrap, &args, ""), lines(0..500));
}

/// A controller and three brokers, each of them a process with a file.
struct Cluster {
    root: TempDir,
    controller: u16,
    cluster_id: String,
}

impl Cluster {
    fn new() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (code, id, _) = run(&["format", "random-uuid"], "");
        assert_eq!(code, 0);
        Self {
            root: tempdir().expect("temporary directory"),
            controller: free.local_addr().expect("an address").port(),
            cluster_id: id.trim().to_owned(),
        }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let port = self.controller;
        let data = self.data(name);
        let shared = format!(
            "controller.listener.names=CONTROLLER\n\
             controller.quorum.bootstrap.servers=127.0.0.1:{port}\n\
             log.dirs={}\nbroker.session.timeout.ms=2000\nbroker.heartbeat.interval.ms=300\n\
             replica.lag.time.max.ms=2000\n",
            data.display()
        );
        let path = self.root.path().join(format!("{name}.properties"));
        fs::write(&path, format!("{shared}{text}")).expect("a file");
        path
    }

    fn data(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn controller_file(&self) -> PathBuf {
        let port = self.controller;
        let text = format!(
            "process.roles=controller\nnode.id=100\nlisteners=CONTROLLER://127.0.0.1:{port}\n"
        );
        self.file("controller", &text)
    }

    fn broker_file(&self, id: u16) -> PathBuf {
        let text = format!(
            "process.roles=broker\nnode.id={id}\nlisteners=PLAINTEXT://127.0.0.1:0\n\
             default.replication.factor=3\n"
        );
        self.file(&format!("broker-{id}"), &text)
    }

    fn format(&self, file: &Path, more: &[&str]) {
        let file = file.to_str().expect("UTF-8");
        let args = ["format", "--config", file, "--cluster-id", &self.cluster_id];
        let (code, _, error) = run(&[&args[..], more].concat(), "");
        assert_eq!(code, 0, "{error}");
    }

    fn start(&self, name: &str, file: &Path) -> Node {
        let mut command = highwater();
        command.arg("start").arg("--config").arg(file);
        let started = Node::spawn(command, &self.data(name));
        started.unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    fn start_broker(&self, id: u16) -> Node {
        self.start(&format!("broker-{id}"), &self.broker_file(id))
    }
}

#[test]
fn each_node_with_a_file_and_a_process_of_its_own() {
    let cluster = Cluster::new();
    let file = cluster.controller_file();
    cluster.format(&file, &["--standalone"]);
    let controller = cluster.start("controller", &file);
    let expected = format!(
        "highwater ready controller=127.0.0.1:{} cluster-id={} data={}",
        cluster.controller,
        cluster.cluster_id,
        cluster.data("controller").display()
    );
    assert_eq!(controller.ready_line, expected);
    for id in 1..=3 {
        cluster.format(&cluster.broker_file(id), &[]);
    }
    let mut brokers: Vec<Node> = (1..=3).map(|id| cluster.start_broker(id)).collect();
    let all: Vec<&str> = brokers.iter().map(|it| it.bootstrap.as_str()).collect();
    let all = all.join(",");
    let status = json(&all, &["cluster", "status"]);
    assert_eq!(status["controller"], 100, "it is no broker");
    let create = ["topic", "create", "orders", "--replica-assignment", "1:2:3"];
    ok(&all, &create, "");
    ok(&all, &["produce", "orders"], &lines(0..200));
    until(&all, "orders", |rows| {
        rows.iter().all(|row| stands_at(row, 200))
    });

    brokers.remove(0).kill();
    ok(&all, &["produce", "orders"], &lines(200..400));
    let is_out = |row: &Value| row["isr"] == "(out)" && row["role"] == "offline";
    let rows = until(&all, "orders", |rows| {
        is_out(&rows[0]) && stands_at(&rows[1], 400)
    });
    assert_eq!(rows[1]["role"], "leader", "{rows:#?}");
    assert_eq!(rows[0]["note"], "its broker is down", "{rows:#?}");
    assert_eq!(rows[0]["leo"], Value::Null, "nobody can tell");

    brokers.insert(0, cluster.start_broker(1));
    let all: Vec<&str> = brokers.iter().map(|it| it.bootstrap.as_str()).collect();
    let all = all.join(",");
    until(&all, "orders", |rows| {
        let is_back = |row: &Value| row["isr"] != "(out)" && row["lag"] != Value::Null;
        is_back(&rows[0]) && rows.iter().all(|row| stands_at(row, 400))
    });
    let args = ["consume", "orders", "--from-beginning", "-n", "400"];
    assert_eq!(ok(&all, &args, ""), lines(0..400));
    for broker in brokers {
        assert!(broker.stop().success());
    }
    assert!(controller.stop().success());
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Runs `start` on a file; it must end by itself; gives what it said.
fn refused(args: &[&str]) -> String {
    let (code, out, error) = run(&[&["start"], args].concat(), "");
    assert_eq!((code, out.as_str()), (1, ""), "{error}");
    error
}

#[test]
fn a_node_of_one_role_says_which_format_it_needs() {
    let cluster = Cluster::new();
    let (broker, controller) = (cluster.broker_file(1), cluster.controller_file());
    for (file, command) in [
        (&broker, "--cluster-id ID`"),
        (&controller, "--cluster-id ID --standalone`"),
    ] {
        let file = file.to_str().expect("UTF-8");
        let error = refused(&["--config", file]);
        let expected = format!("run `highwater format --config {file} {command}");
        assert!(error.contains(&expected), "{error}");
    }
    assert!(!cluster.data("broker-1").exists(), "nothing was made");
}

#[test]
fn data_of_one_node_and_of_many_are_not_mixed_up() {
    let root = tempdir().expect("temporary directory");
    let (one_dir, many_dir) = (root.path().join("one"), root.path().join("many"));
    assert!(Node::start(&one_dir, &[]).stop().success());
    assert!(Node::start(&many_dir, &["--brokers", "2"]).stop().success());
    let (one, many) = (text(&one_dir), text(&many_dir));
    let free = ["--listen", "127.0.0.1:0"];
    let at_one = [&["--brokers", "2", "--data", one][..], &free].concat();
    let error = refused(&at_one);
    assert!(error.contains("start it without --brokers"), "{error}");
    let error = refused(&[&["--data", many][..], &free].concat());
    assert!(error.contains("--brokers"), "{error}");

    // A broker of another cluster.
    let other = root.path().join("other");
    assert!(Node::start(&other, &["--brokers", "2"]).stop().success());
    fs::remove_dir_all(many_dir.join("broker-2")).expect("removed");
    fs::rename(other.join("broker-2"), many_dir.join("broker-2")).expect("moved");
    let at_many = [&["--brokers", "2", "--data", many][..], &free].concat();
    let error = refused(&at_many);
    assert!(error.contains("belongs to cluster"), "{error}");
    fs::remove_dir_all(many_dir.join("broker-1")).expect("removed");
    let error = refused(&at_many);
    assert!(error.contains("node 1"), "{error}");
}

/// A broker that does not get ready.
struct Unready {
    child: std::process::Child,
    log: PathBuf,
    late: Instant,
}

impl Unready {
    fn start(cluster: &Cluster) -> Self {
        let log = cluster.root.path().join("log");
        let mut command = highwater();
        command
            .arg("start")
            .arg("--config")
            .arg(cluster.broker_file(1))
            .stderr(fs::File::create(&log).expect("a file"))
            .stdout(std::process::Stdio::null());
        Self {
            child: command.spawn().expect("runs"),
            log,
            late: Instant::now() + PATIENCE,
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn until_it_says(&mut self, what: &str) {
        while !self.said().contains(what) {
            assert!(Instant::now() < self.late, "{}", self.said());
            assert_eq!(
                self.child.try_wait().expect("a child"),
                None,
                "{}",
                self.said()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(mut self) {
        let pid = self.child.id().to_string();
        let kill = std::process::Command::new("kill").arg(&pid).status();
        assert!(kill.expect("kill runs").success());
        assert!(
            self.child.wait().expect("a child").success(),
            "{}",
            self.said()
        );
    }
}

#[test]
fn a_broker_without_its_controller_says_so_and_finds_it_when_it_comes() {
    let cluster = Cluster::new();
    cluster.format(&cluster.broker_file(1), &[]);
    let mut broker = Unready::start(&cluster);
    broker.until_it_says(&format!(
        "cannot connect to 127.0.0.1:{}",
        cluster.controller
    ));
    let file = cluster.controller_file();
    cluster.format(&file, &["--standalone"]);
    let controller = cluster.start("controller", &file);
    broker.until_it_says("connected to ");
    broker.stop();
    assert!(controller.stop().success());
}

#[test]
fn a_broker_of_another_cluster_is_not_let_in() {
    let cluster = Cluster::new();
    let file = cluster.controller_file();
    cluster.format(&file, &["--standalone"]);
    let controller = cluster.start("controller", &file);
    let stranger = Cluster {
        controller: cluster.controller,
        ..Cluster::new()
    };
    stranger.format(&stranger.broker_file(1), &[]);
    let mut broker = Unready::start(&stranger);
    broker.until_it_says(&format!(
        "another cluster than ours, {}",
        stranger.cluster_id
    ));
    broker.stop();
    assert!(controller.stop().success());
}
