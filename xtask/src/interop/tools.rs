//! Installs what the suites need below `target/interop`, once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::tree;

/// Where the installed tools are.
#[derive(Debug)]
pub(crate) struct Tools {
    /// A Python with confluent-kafka.
    pub(crate) python: PathBuf,
    /// The folder with Apache Kafka's jars.
    pub(crate) kafka_libs: PathBuf,
    /// The folder with a `kafka-python-VERSION` for each of [`KAFKA_PYTHONS`].
    pub(crate) kafka_pythons: PathBuf,
    /// The folder with the confluent-kafka of case C-10.
    pub(crate) old_confluent: PathBuf,
    /// The folder with the group members that are written in Go.
    pub(crate) go_members: PathBuf,
    /// A `node_modules` folder with KafkaJS.
    pub(crate) javascript: PathBuf,
}

/// Versions of kafka-python, each in a folder of its own: `interop/kafka_python.py` runs them all.
const KAFKA_PYTHONS: [&str; 4] = ["2.0.2", "2.1.2", "2.3.0", "3.0.12"];

/// The confluent-kafka whose librdkafka sends Fetch v12 unasked (case C-10).
const OLD_CONFLUENT: &str = "2.6.0";

impl Tools {
    /// Installs whatever is missing.
    pub(crate) fn install() -> Result<Self> {
        let home = tree::root().join("target/interop");
        std::fs::create_dir_all(&home).context("cannot make target/interop")?;
        install_packages()?;
        let kafka_libs = home.join("kafka-libs");
        if !kafka_libs.join(".complete").exists() {
            step("fetching Apache Kafka's tools (Maven)");
            let pom = tree::root().join("interop/kafka-tools.pom.xml");
            run(Command::new("mvn")
                .args(["--quiet", "--batch-mode", "--file"])
                .arg(pom)
                .arg("dependency:copy-dependencies")
                .arg(format!("-DoutputDirectory={}", kafka_libs.display())))?;
            std::fs::write(kafka_libs.join(".complete"), "")?;
        }
        let environment = home.join("python-clients");
        let python = environment.join("bin/python");
        if !environment.join(".complete").exists() {
            step("installing confluent-kafka, kafka-python and aiokafka (PyPI)");
            run(Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment))?;
            run(Command::new(&python).args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--upgrade",
                "confluent-kafka",
                "kafka-python",
                "aiokafka",
            ]))?;
            std::fs::write(environment.join(".complete"), "")?;
        }
        for version in KAFKA_PYTHONS {
            package(&home, &python, "kafka-python", version)?;
        }
        let old_confluent = package(&home, &python, "confluent-kafka", OLD_CONFLUENT)?;
        Ok(Self {
            python,
            kafka_libs,
            old_confluent,
            go_members: go_members(&home)?,
            javascript: kafkajs(&home)?,
            kafka_pythons: home,
        })
    }
}

/// Installs one version of a package from PyPI into a folder of its own.
fn package(home: &Path, python: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let folder = home.join(format!("{name}-{version}"));
    if !folder.join(".complete").exists() {
        step(&format!("installing {name} {version} (PyPI)"));
        run(Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
            .arg("--target")
            .arg(&folder)
            .arg(format!("{name}=={version}")))?;
        std::fs::write(folder.join(".complete"), "")?;
    }
    Ok(folder)
}

/// Builds the members in `interop/groups/go`, with what the Go module proxy has.
fn go_members(home: &Path) -> Result<PathBuf> {
    let folder = home.join("go");
    step("building the group members in Go");
    std::fs::create_dir_all(&folder)?;
    // Debian's Go is too old for these clients, so it is not installed from there.
    let build = Command::new("go")
        .args(["build", "-o"])
        .arg(&folder)
        .args(["./franz", "./sarama"])
        .current_dir(tree::root().join("interop/groups/go"))
        .output()
        .context("cannot run go: Go 1.26 or newer is needed for the members in Go")?;
    ensure!(
        build.status.success(),
        "the members in Go cannot be built:\n{}",
        String::from_utf8_lossy(&build.stderr)
    );
    Ok(folder)
}

const KAFKAJS: &str = "kafkajs@2.2.4";

fn kafkajs(home: &Path) -> Result<PathBuf> {
    let folder = home.join("javascript");
    if !folder.join(".complete").exists() {
        step("installing KafkaJS (npm)");
        std::fs::create_dir_all(&folder)?;
        run(Command::new("npm")
            .args(["install", "--silent", "--no-package-lock", "--prefix"])
            .arg(&folder)
            .arg(KAFKAJS))?;
        std::fs::write(folder.join(".complete"), "")?;
    }
    Ok(folder.join("node_modules"))
}

/// Programs that come from Debian: what shows that one is there, and its package.
const PACKAGES: [(&[&str], &str); 6] = [
    (&["kcat", "-V"], "kcat"),
    (&["java", "-version"], "default-jre-headless"),
    (&["mvn", "-version"], "maven"),
    (&["node", "--version"], "nodejs"),
    (&["npm", "--version"], "npm"),
    (&["python3", "-m", "ensurepip", "--version"], "python3-venv"),
];

fn install_packages() -> Result<()> {
    let is_missing = |probe: &[&str]| {
        let output = Command::new("env").args(probe).output();
        !output.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|(probe, _)| is_missing(probe))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    step(&format!("installing {} (Debian)", missing.join(", ")));
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(missing))
}

fn step(what: &str) {
    eprintln!("interop: {what}");
}

fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .with_context(|| format!("cannot run {shown}"))?;
    ensure!(
        output.status.success(),
        "{shown} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
