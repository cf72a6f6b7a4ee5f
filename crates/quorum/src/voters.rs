use std::fmt;

use highwater_types::{DirectoryId, NodeId};

/// A replica of the metadata log: node id and, in a quorum that keeps its voters in the log, the
/// id of the directory where its copy lives (KIP-853).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaKey {
    /// The node.
    pub id: NodeId,
    /// Its directory; zero when the quorum does not tell directories apart.
    pub directory_id: DirectoryId,
}

impl fmt::Display for ReplicaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.directory_id.is_zero() {
            self.id.fmt(f)
        } else {
            write!(f, "{} ({})", self.id, self.directory_id)
        }
    }
}

/// One address of a voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterEndpoint {
    /// The controller listener's name.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// One voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// Who.
    pub key: ReplicaKey,
    /// Where.
    pub endpoints: Vec<VoterEndpoint>,
    /// Levels of kraft.version that it can work with (inclusive).
    pub kraft_versions: (i16, i16),
}

/// Who votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VoterSet {
    /// By rising id.
    pub voters: Vec<Voter>,
}

/// A `controller.quorum.voters` text that is not a voter list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{entry}' is no voter: ID@HOST:PORT is expected")]
pub struct ParseVotersError {
    /// The part that cannot be read.
    pub entry: String,
}

impl VoterSet {
    /// Reads the value of `controller.quorum.voters`: `id@host:port`, separated by commas.
    /// `listener` is the controller listener's name.
    ///
    /// # Errors
    /// When a part of it is no voter, or two have one id.
    pub fn parse(text: &str, listener: &str) -> Result<Self, ParseVotersError> {
        let mut voters = Vec::new();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let voter = parse_voter(entry, listener);
            let voter = voter.ok_or_else(|| ParseVotersError {
                entry: entry.to_owned(),
            })?;
            if voters
                .iter()
                .any(|other: &Voter| other.key.id == voter.key.id)
            {
                return Err(ParseVotersError {
                    entry: entry.to_owned(),
                });
            }
            voters.push(voter);
        }
        voters.sort_by_key(|voter| voter.key.id);
        Ok(Self { voters })
    }

    /// Whether `key` votes: by id, and by directory where the set tells directories apart.
    #[must_use]
    pub fn contains(&self, key: ReplicaKey) -> bool {
        self.voters.iter().any(|voter| {
            voter.key.id == key.id
                && (voter.key.directory_id.is_zero() || voter.key.directory_id == key.directory_id)
        })
    }

    /// The ids of the voters.
    #[must_use]
    pub fn ids(&self) -> Vec<NodeId> {
        self.voters.iter().map(|voter| voter.key.id).collect()
    }
}

fn parse_voter(entry: &str, listener: &str) -> Option<Voter> {
    let (id, address) = entry.split_once('@')?;
    let (host, port) = address.rsplit_once(':')?;
    let id = NodeId::new(id.parse().ok()?);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if !id.is_some() || host.is_empty() {
        return None;
    }
    let endpoint = VoterEndpoint {
        name: listener.to_owned(),
        host: host.to_owned(),
        port: port.parse().ok()?,
    };
    Some(Voter {
        key: ReplicaKey {
            id,
            directory_id: DirectoryId::ZERO,
        },
        endpoints: vec![endpoint],
        kraft_versions: (0, 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_voter_list_is_read() {
        let set = VoterSet::parse("3@[::1]:9093, 1@host:9093", "CONTROLLER").expect("voters");
        assert_eq!(set.ids(), [NodeId::new(1), NodeId::new(3)]);
        let hosts: Vec<_> = set
            .voters
            .iter()
            .flat_map(|it| &it.endpoints)
            .map(|it| it.host.as_str())
            .collect();
        assert_eq!(hosts, ["host", "::1"]);
        for text in [
            "1",
            "1@host",
            "x@host:1",
            "-1@host:1",
            "1@host:99999",
            "1@a:1,1@b:2",
        ] {
            assert!(VoterSet::parse(text, "C").is_err(), "{text}");
        }
    }

    #[test]
    fn cm_04_a_voter_with_another_directory_is_another_voter() {
        let key = |directory| ReplicaKey {
            id: NodeId::new(1),
            directory_id: DirectoryId::new(highwater_types::Uuid::from_u128(directory)),
        };
        let voter = Voter {
            key: key(1000),
            endpoints: Vec::new(),
            kraft_versions: (0, 1),
        };
        let set = VoterSet {
            voters: vec![voter],
        };
        assert!(set.contains(key(1000)));
        assert!(!set.contains(key(1001)));
    }
}
