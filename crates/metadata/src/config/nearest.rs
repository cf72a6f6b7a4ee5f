use crate::config::broker_keys;

/// The broker key whose name is nearest to `name`, if one is near enough to be meant: at most one
/// edit in three characters.
#[must_use]
pub fn nearest_broker_key(name: &str) -> Option<&'static str> {
    // Names from files are bounded here: the longest key has fewer than 80 characters.
    if name.len() > 120 {
        return None;
    }
    let distances = broker_keys().map(|key| (distance(name, key.name), key.name));
    let (edits, nearest) = distances.min()?;
    (edits * 3 <= name.len()).then_some(nearest)
}

/// Insertions, deletions and replacements that make `left` of `right`, counted in bytes.
fn distance(left: &str, right: &str) -> usize {
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, left_byte) in left.bytes().enumerate() {
        let mut diagonal = row;
        let mut before = row + 1;
        let mut cells = above.iter_mut();
        if let Some(first) = cells.next() {
            *first = before;
        }
        for (cell, right_byte) in cells.zip(right.bytes()) {
            let replaced = diagonal + usize::from(left_byte != right_byte);
            diagonal = *cell;
            before = replaced.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("abc", "abc", 0),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
            assert_eq!(distance(right, left), edits, "{right} {left}");
        }
    }

    #[test]
    fn a_typo_finds_its_key_and_nonsense_finds_none() {
        assert_eq!(
            nearest_broker_key("log.retention.hour"),
            Some("log.retention.hours")
        );
        assert_eq!(nearest_broker_key("num.partition"), Some("num.partitions"));
        assert_eq!(nearest_broker_key("zzz"), None);
        assert_eq!(nearest_broker_key(&"x".repeat(100_000)), None);
    }
}
