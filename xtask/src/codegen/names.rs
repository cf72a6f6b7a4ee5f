//! Names in Rust and in JSON of what the schemas name.

/// `PartitionIndex` and `partitionIndex` become `partition_index`.
pub(super) fn snake(name: &str) -> String {
    // Kafka's one-letter prefix is no word of its own.
    let name = name.replace("KRaft", "Kraft");
    let mut snake = String::new();
    let mut before_is_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before_is_lower {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        before_is_lower = !letter.is_ascii_uppercase();
    }
    snake
}

/// A field's name in Rust.
pub(super) fn field(name: &str) -> String {
    match snake(name).as_str() {
        "type" => "kind".to_owned(),
        other => other.to_owned(),
    }
}

/// A field's name in Kafka's JSON: the first letter is small.
pub(super) fn json(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_ascii_lowercase().to_string() + letters.as_str()
    })
}

/// A stored record's type in Kafka's dumps: `PARTITION_RECORD`.
pub(super) fn dump_type(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_rust_and_json() {
        assert_eq!(snake("PartitionIndex"), "partition_index");
        assert_eq!(snake("validateOnly"), "validate_only");
        assert_eq!(snake("KRaftVersionFeature"), "kraft_version_feature");
        assert_eq!(snake("CurrentLeaderEpoch"), "current_leader_epoch");
        assert_eq!(field("Type"), "kind");
        assert_eq!(json("KRaftVersion"), "kRaftVersion");
        assert_eq!(json("timeoutMs"), "timeoutMs");
        assert_eq!(dump_type("NoOpRecord"), "NO_OP_RECORD");
    }
}
