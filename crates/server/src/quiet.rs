use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use highwater_node::{Happening, JournalEntry};
use highwater_types::{Millis, Mono};

/// Lets a bounded number of log lines through per second, so that a flood of bad connections
/// cannot fill the disk with words, and counts what each client was refused.
#[derive(Debug, Default)]
pub(crate) struct Quiet(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began: Mono,
    lines: u32,
    dropped: u64,
    /// When a line about a failed append was written last, and how many failed since.
    failed_appends: Option<(Mono, u64)>,
    /// Refused requests by client id; all others together once there are too many names.
    refused: BTreeMap<String, u64>,
}

/// What to do about an entry that may be of a failed append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedAppend {
    /// It is none.
    None,
    /// A line is due.
    Told {
        /// How many failed since the line before.
        more: u64,
    },
    /// It is counted.
    Counted,
}

/// Between two lines about failed appends.
const FAILED_APPENDS_EVERY: Millis = Millis::new(10_000);
/// Lines that go through in one second.
const LINES_MAX: u32 = 10;
/// Client ids that are counted apart.
const CLIENTS_MAX: usize = 1000;
/// The name of all others: told client ids have no line ends.
const OTHERS: &str = "\n";

impl Quiet {
    /// How many requests of the same client were refused so far, with this one; 0 when the entry
    /// is about none. Counted whether a line is written or not.
    pub(crate) fn count(&self, entry: &JournalEntry) -> u64 {
        let Happening::RequestRefused { client_id, .. } = &entry.happening else {
            return 0;
        };
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = &mut window.refused;
        let mut name = client_id.as_deref().unwrap_or_default();
        if refused.len() >= CLIENTS_MAX && !refused.contains_key(name) {
            name = OTHERS;
        }
        let count = refused.entry(name.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// Appends fail by the thousand when the disk is full: the first is told, then a count.
    pub(crate) fn failed_append(&self, entry: &JournalEntry, now: Mono) -> FailedAppend {
        if !matches!(entry.happening, Happening::AppendFailed { .. }) {
            return FailedAppend::None;
        }
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = match &mut window.failed_appends {
            Some((told, more)) if now.since(*told) < FAILED_APPENDS_EVERY => {
                *more += 1;
                return FailedAppend::Counted;
            }
            Some((_, more)) => *more,
            None => 0,
        };
        window.failed_appends = Some((now, 0));
        FailedAppend::Told { more }
    }

    /// Whether a line may be written now, and how many were dropped before it.
    pub(crate) fn allows(&self, now: Mono) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(window.began) >= Millis::new(1000) {
            window.began = now;
            window.lines = 0;
        }
        if window.lines >= LINES_MAX {
            window.dropped += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.dropped))
    }
}

#[cfg(test)]
mod tests {
    use highwater_node::Level;
    use highwater_types::TopicPartition;

    use super::*;

    #[test]
    fn a_flood_is_thinned_and_counted() {
        let quiet = Quiet::default();
        let through = (0..50)
            .filter(|_| quiet.allows(Mono::from_micros(5)).is_some())
            .count();
        assert_eq!(through, 10);
        assert_eq!(quiet.allows(Mono::from_micros(2_000_000)), Some(40));
    }

    #[test]
    fn c_01_refused_requests_are_counted_by_client_in_bounded_memory() {
        let quiet = Quiet::default();
        let refused = |client: &str| {
            quiet.count(&JournalEntry::warn(Happening::RequestRefused {
                api_key: 2,
                api_version: 0,
                client_id: Some(client.to_owned()),
                why: "no such version".to_owned(),
            }))
        };
        assert_eq!(
            (refused("old"), refused("other"), refused("old")),
            (1, 1, 2)
        );
        for number in 0..2 * CLIENTS_MAX {
            refused(&format!("made up {number}"));
        }
        assert_eq!(refused("old"), 3);
        assert!(refused("yet another") > 1, "all others together");
        let held = quiet.0.lock().expect("one thread").refused.len();
        assert!(held <= CLIENTS_MAX + 1, "{held}");
        assert_eq!(quiet.count(&JournalEntry::text(Level::Info, "hello")), 0);
    }

    #[test]
    fn a_full_disk_is_told_once_and_then_counted() {
        let quiet = Quiet::default();
        let failed = JournalEntry::error(Happening::AppendFailed {
            partition: TopicPartition::parse("orders-0").expect("a partition"),
            why: "no space is left".to_owned(),
        });
        let at = |ms: u64| Mono::from_micros(ms * 1_000);
        let told = |ms| quiet.failed_append(&failed, at(ms));
        assert_eq!(told(1_000), FailedAppend::Told { more: 0 });
        for ms in 1_001..1_500 {
            assert_eq!(told(ms), FailedAppend::Counted);
        }
        assert_eq!(told(10_999), FailedAppend::Counted);
        assert_eq!(told(11_000), FailedAppend::Told { more: 500 });
        assert_eq!(told(40_000), FailedAppend::Told { more: 0 });
        let other = JournalEntry::text(Level::Info, "hello");
        assert_eq!(quiet.failed_append(&other, at(40_001)), FailedAppend::None);
    }
}
