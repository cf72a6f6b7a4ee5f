use highwater_types::{DirectoryId, LeaderEpoch, NodeId};
use serde_json::Value;

use crate::ReplicaKey;

/// Which form of the file is written: it follows kraft.version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuorumStateVersion {
    /// Static voters: kraft.version 0.
    V0,
    /// Voters in the log: kraft.version 1.
    V1,
}

/// What a voter remembers over restarts: the epoch, who leads in it, and whom it voted for. The
/// content of the file `quorum-state`, which is replaced atomically before the node acts on it.
///
/// The file is one JSON object without a newline. Version 1 has `leaderId`, `leaderEpoch`,
/// `votedId`, `votedDirectoryId`, `data_version`. Version 0 has `clusterId` (empty), `leaderId`,
/// `leaderEpoch`, `votedId`, `appliedOffset` (0), `currentVoters`, `data_version`.
///
/// Invariant: `leader_epoch` never falls from one file to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumState {
    /// The newest epoch seen.
    pub leader_epoch: LeaderEpoch,
    /// Who leads in it, if known.
    pub leader_id: Option<NodeId>,
    /// Whom this node voted for in it.
    pub voted: Option<ReplicaKey>,
    /// The voters' ids; only version 0 keeps them.
    pub current_voters: Vec<NodeId>,
}

/// A `quorum-state` file that cannot be used. The node must not guess: it could vote twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuorumStateError {
    /// Not JSON, or not an object.
    #[error("it is not a JSON object")]
    NotJson,
    /// A field is missing or has a value that it cannot have.
    #[error("the field {0} is missing or wrong")]
    Field(&'static str),
    /// Written by a release that knows more.
    #[error("its data_version {0} is not one that this build knows (0 and 1)")]
    Version(i64),
}

impl QuorumState {
    /// Reads the file, in either version.
    ///
    /// # Errors
    /// When it is not what a quorum member writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, QuorumStateError> {
        let value: Value = serde_json::from_slice(bytes).map_err(|_| QuorumStateError::NotJson)?;
        if !value.is_object() {
            return Err(QuorumStateError::NotJson);
        }
        let version = integer(&value, "data_version")?;
        if !(0..=1).contains(&version) {
            return Err(QuorumStateError::Version(version));
        }
        let leader_epoch = LeaderEpoch::new(int32(&value, "leaderEpoch")?);
        if leader_epoch < LeaderEpoch::ZERO {
            return Err(QuorumStateError::Field("leaderEpoch"));
        }
        let node = |name| Ok(Some(NodeId::new(int32(&value, name)?)).filter(|id| id.is_some()));
        let directory_id = match value.get("votedDirectoryId").and_then(Value::as_str) {
            Some(text) => text
                .parse()
                .map_err(|_| QuorumStateError::Field("votedDirectoryId"))?,
            None if version == 0 => DirectoryId::ZERO,
            None => return Err(QuorumStateError::Field("votedDirectoryId")),
        };
        Ok(Self {
            leader_epoch,
            leader_id: node("leaderId")?,
            voted: node("votedId")?.map(|id| ReplicaKey { id, directory_id }),
            current_voters: if version == 0 {
                current_voters(&value)?
            } else {
                Vec::new()
            },
        })
    }

    /// The file's bytes, in Kafka's spelling.
    #[must_use]
    pub fn encode(&self, version: QuorumStateVersion) -> Vec<u8> {
        let leader_id = self.leader_id.unwrap_or(NodeId::NONE);
        let leader_epoch = self.leader_epoch;
        let voted_id = self.voted.map_or(NodeId::NONE, |key| key.id);
        let text = match version {
            QuorumStateVersion::V0 => {
                let voters: Vec<_> = self
                    .current_voters
                    .iter()
                    .map(|id| format!("{{\"voterId\":{id}}}"))
                    .collect();
                format!(
                    "{{\"clusterId\":\"\",\"leaderId\":{leader_id},\"leaderEpoch\":{leader_epoch},\
                     \"votedId\":{voted_id},\"appliedOffset\":0,\"currentVoters\":[{}],\
                     \"data_version\":0}}",
                    voters.join(",")
                )
            }
            QuorumStateVersion::V1 => {
                let directory_id = self.voted.map_or(DirectoryId::ZERO, |key| key.directory_id);
                format!(
                    "{{\"leaderId\":{leader_id},\"leaderEpoch\":{leader_epoch},\
                     \"votedId\":{voted_id},\"votedDirectoryId\":\"{directory_id}\",\
                     \"data_version\":1}}"
                )
            }
        };
        text.into_bytes()
    }
}

fn integer(value: &Value, name: &'static str) -> Result<i64, QuorumStateError> {
    value
        .get(name)
        .and_then(Value::as_i64)
        .ok_or(QuorumStateError::Field(name))
}

fn int32(value: &Value, name: &'static str) -> Result<i32, QuorumStateError> {
    i32::try_from(integer(value, name)?).map_err(|_| QuorumStateError::Field(name))
}

fn current_voters(value: &Value) -> Result<Vec<NodeId>, QuorumStateError> {
    let wrong = || QuorumStateError::Field("currentVoters");
    // Kafka writes null here when it knows no voters.
    let Some(list) = value.get("currentVoters").filter(|it| !it.is_null()) else {
        return Ok(Vec::new());
    };
    let list = list.as_array().ok_or_else(wrong)?;
    list.iter()
        .map(|voter| {
            int32(voter, "voterId")
                .map(NodeId::new)
                .map_err(|_| wrong())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_spelled_as_kafka_spells_them() {
        let voted = "{\"leaderId\":-1,\"leaderEpoch\":7,\"votedId\":2,\
                     \"votedDirectoryId\":\"UTARtl2PRbOhjfLstsytsQ\",\"data_version\":1}";
        let elected = "{\"leaderId\":1,\"leaderEpoch\":3,\"votedId\":-1,\
                       \"votedDirectoryId\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":1}";
        let old = "{\"clusterId\":\"\",\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\
                   \"appliedOffset\":0,\"currentVoters\":[{\"voterId\":1}],\"data_version\":0}";
        let observer = "{\"clusterId\":\"\",\"leaderId\":-1,\"leaderEpoch\":0,\"votedId\":-1,\
                        \"appliedOffset\":0,\"currentVoters\":[],\"data_version\":0}";
        for (text, version) in [
            (voted, QuorumStateVersion::V1),
            (elected, QuorumStateVersion::V1),
            (old, QuorumStateVersion::V0),
            (observer, QuorumStateVersion::V0),
        ] {
            let state = QuorumState::decode(text.as_bytes()).expect("well formed");
            assert_eq!(
                String::from_utf8(state.encode(version)).as_deref(),
                Ok(text)
            );
        }
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        use QuorumStateError::{Field, NotJson, Version};
        for (text, error) in [
            ("", NotJson),
            ("[]", NotJson),
            ("{\"data_version\":2}", Version(2)),
            ("{\"data_version\":1}", Field("leaderEpoch")),
            (
                "{\"data_version\":1,\"leaderEpoch\":-3}",
                Field("leaderEpoch"),
            ),
            (
                "{\"data_version\":1,\"leaderEpoch\":99999999999}",
                Field("leaderEpoch"),
            ),
            (
                "{\"data_version\":1,\"leaderEpoch\":1,\"leaderId\":1,\"votedId\":1}",
                Field("votedDirectoryId"),
            ),
        ] {
            assert_eq!(QuorumState::decode(text.as_bytes()), Err(error), "{text}");
        }
    }
}
