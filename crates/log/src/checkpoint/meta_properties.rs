//! `meta.properties` of a log directory: which node of which cluster the directory belongs to.

use std::fmt::Write as _;

use highwater_types::{DirectoryId, NodeId, WallMs};

use super::properties;
use super::text::{self, CheckpointError};

/// The file's name. Missing: the directory is not formatted. Bad: no start, with a clear message;
/// guessing an identity could mix two clusters.
pub const FILE: &str = "meta.properties";

/// The identity of a log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// The cluster.
    pub cluster_id: String,
    /// The node.
    pub node_id: NodeId,
    /// The directory. Only directories of releases before 3.7 have none.
    pub directory_id: Option<DirectoryId>,
}

impl MetaProperties {
    /// Reads the file's bytes: Java properties, with unknown keys ignored.
    ///
    /// # Errors
    /// When a key is missing or wrong, or the version is not 1 (version 0 is of ZooKeeper times).
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let text = text::text(bytes)?;
        let pairs = properties::parse(text);
        if pairs.is_empty() {
            return Err(CheckpointError::Empty);
        }
        let field = |key: &'static str| {
            let found = pairs.get(key).map(String::as_str);
            found.ok_or(CheckpointError::Missing { key })
        };
        let bad = |key: &'static str, value: &str| CheckpointError::Value {
            key,
            value: text::clip(value),
        };
        let version = field("version")?;
        if version != "1" {
            return Err(CheckpointError::Version {
                found: text::clip(version),
                expected: 1,
            });
        }
        let node_id = field("node.id")?;
        let parsed = node_id
            .parse()
            .ok()
            .map(NodeId::new)
            .filter(|it| it.is_some());
        let node_id = parsed.ok_or_else(|| bad("node.id", node_id))?;
        let cluster_id = field("cluster.id")?;
        if cluster_id.is_empty() {
            return Err(bad("cluster.id", cluster_id));
        }
        let directory_id = match field("directory.id") {
            Ok(text) => Some(parse_directory_id(text).ok_or_else(|| bad("directory.id", text))?),
            Err(_) => None,
        };
        Ok(Self {
            cluster_id: cluster_id.to_owned(),
            node_id,
            directory_id,
        })
    }

    /// The file's bytes, stamped with the time of writing as Java's `Properties.store` does.
    #[must_use]
    pub fn encode(&self, now: WallMs) -> Vec<u8> {
        let mut text = format!(
            "#\n#{}\nnode.id={}\n",
            properties::java_date(now),
            self.node_id
        );
        if let Some(id) = self.directory_id {
            let _fits = writeln!(text, "directory.id={id}");
        }
        let _fits = write!(
            text,
            "version=1\ncluster.id={}\n",
            properties::escape(&self.cluster_id)
        );
        text.into_bytes()
    }
}

/// A directory id that Kafka accepts: its first hundred values have meanings of their own.
fn parse_directory_id(text: &str) -> Option<DirectoryId> {
    text.parse()
        .ok()
        .filter(|id: &DirectoryId| !id.uuid().is_reserved())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_own_files_read_and_write_back() {
        let mut seen = 0;
        for set in highwater_fixtures::KAFKA_DATA_SETS {
            for (path, bytes) in highwater_fixtures::kafka_data(set) {
                if path.file_name().is_none_or(|name| name != FILE) {
                    continue;
                }
                let read = MetaProperties::decode(&bytes).expect("Kafka wrote it");
                // All but the date.
                let undated = |bytes: &[u8]| {
                    let text = String::from_utf8(bytes.to_vec()).expect("text");
                    let lines = text.lines().enumerate().filter(|(nth, _)| *nth != 1);
                    lines.map(|(_, line)| line.to_owned()).collect::<Vec<_>>()
                };
                let ours = read.encode(WallMs::new(0));
                assert_eq!(undated(&ours), undated(&bytes), "{}", path.display());
                seen += 1;
            }
        }
        assert!(seen >= 9, "{seen}");
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let it = MetaProperties {
            cluster_id: "a cluster: #1=yes\\".to_owned(),
            node_id: NodeId::new(7),
            directory_id: None,
        };
        assert_eq!(MetaProperties::decode(&it.encode(WallMs::new(0))), Ok(it));
    }

    #[test]
    fn sc_10_a_bad_identity_is_refused_with_its_reason() {
        let good = "version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAcQ\n";
        assert!(MetaProperties::decode(good.as_bytes()).is_ok());
        assert_eq!(MetaProperties::decode(b""), Err(CheckpointError::Empty));
        assert_eq!(
            MetaProperties::decode(&[0; 64]),
            Err(CheckpointError::NotText)
        );
        for (line, other, key) in [
            ("node.id=1\n", "", "node.id"),
            ("cluster.id=c\n", "", "cluster.id"),
            ("version=1\n", "", "version"),
            ("node.id=1", "node.id=x", "node.id"),
            ("node.id=1", "node.id=-2", "node.id"),
            (
                "AAAAAAAAAAAAAAAAAAAAcQ",
                "AAAAAAAAAAAAAAAAAAAAAQ",
                "directory.id",
            ),
        ] {
            let bad = good.replace(line, other);
            let why = MetaProperties::decode(bad.as_bytes())
                .expect_err(key)
                .to_string();
            assert!(why.contains(key), "{why}");
        }
        let old = good.replace("version=1", "version=0");
        let why = CheckpointError::Version {
            found: "0".into(),
            expected: 1,
        };
        assert_eq!(MetaProperties::decode(old.as_bytes()), Err(why));
    }
}
