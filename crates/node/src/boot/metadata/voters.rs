use highwater_quorum::{ReplicaKey, Voter, VoterEndpoint, VoterSet};
use highwater_records::stored::data::VotersRecord;
use highwater_types::DirectoryId;

use super::State;
use crate::boot::BootError;
use crate::config::NodeConfig;

/// Who votes, for a node that is to lead: in a dynamic quorum those in the log, in a static one
/// those of the config.
pub(super) fn leading(
    config: &NodeConfig,
    state: &State,
    own: ReplicaKey,
) -> Result<VoterSet, BootError> {
    if state.kraft_version == 0 {
        return config.static_voters.clone().ok_or_else(|| {
            BootError(
                "the directory was formatted for a static quorum, but controller.quorum.voters is \
                 not set; set it as it was"
                    .to_owned(),
            )
        });
    }
    let Some(record) = &state.voters else {
        return Err(BootError(
            "the metadata names no voters (formatted with --no-initial-controllers?), so this \
             node cannot lead a quorum alone; format with --standalone"
                .to_owned(),
        ));
    };
    let set = voter_set(record);
    let other = set.voters.iter().find(|it| it.key.id == own.id);
    match other {
        Some(voter) if voter.key.directory_id != own.directory_id => Err(BootError(format!(
            "node {} votes with directory {}, but the metadata directory here is {}: its data \
             are not what the quorum counts on; bring the old directory back",
            own.id, voter.key.directory_id, own.directory_id
        ))),
        _ => Ok(set),
    }
}

/// The voters that a record of the metadata log names.
pub(crate) fn voter_set(record: &VotersRecord) -> VoterSet {
    let voters = record.voters.iter().map(|voter| Voter {
        key: ReplicaKey {
            id: voter.voter_id,
            directory_id: DirectoryId::new(voter.voter_directory_id),
        },
        endpoints: voter
            .endpoints
            .iter()
            .map(|it| VoterEndpoint {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port,
            })
            .collect(),
        kraft_versions: (
            voter.kraft_version_feature.min_supported_version,
            voter.kraft_version_feature.max_supported_version,
        ),
    });
    VoterSet {
        voters: voters.collect(),
    }
}
