//! What running servers wrote as `quorum-state`.

use highwater_fixtures::{KAFKA_DATA_SETS, kafka_data};
use highwater_quorum::{QuorumState, QuorumStateVersion};

#[test]
fn every_stored_quorum_state_is_read_and_written_back_to_the_byte() {
    let mut seen = 0;
    for set in KAFKA_DATA_SETS {
        for (path, bytes) in kafka_data(set) {
            if path.file_name().is_none_or(|name| name != "quorum-state") {
                continue;
            }
            let state = QuorumState::decode(&bytes)
                .unwrap_or_else(|why| panic!("{set} {}: {why}", path.display()));
            let text = String::from_utf8(bytes).expect("text");
            let version = if text.contains("\"data_version\":0") {
                QuorumStateVersion::V0
            } else {
                QuorumStateVersion::V1
            };
            assert_eq!(String::from_utf8(state.encode(version)), Ok(text), "{set}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "only {seen} files");
}
