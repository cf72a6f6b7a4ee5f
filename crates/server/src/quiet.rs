use std::sync::{Mutex, PoisonError};

use highwater_types::{Millis, Mono};

/// Lets a bounded number of log lines through per second, so that a flood of bad connections
/// cannot fill the disk with words.
#[derive(Debug, Default)]
pub(crate) struct Quiet(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began: Mono,
    lines: u32,
    dropped: u64,
}

/// Lines that go through in one second.
const LINES_MAX: u32 = 10;

impl Quiet {
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
}
