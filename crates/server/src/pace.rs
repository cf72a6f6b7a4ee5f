use std::cell::Cell;

use highwater_types::{Millis, Mono};

/// Lets one line a second through about something that goes on.
#[derive(Debug)]
pub(crate) struct Pace {
    told: Cell<Mono>,
}

/// Between two lines.
const EVERY: Millis = Millis::new(1_000);

impl Pace {
    /// Something begins now. What is over soon needs no line.
    pub(crate) const fn new(now: Mono) -> Self {
        Self {
            told: Cell::new(now),
        }
    }

    /// Whether a line is due.
    pub(crate) fn is_due(&self, now: Mono) -> bool {
        let is_due = now.since(self.told.get()) >= EVERY;
        if is_due {
            self.told.set(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_and_none_for_what_is_over_soon() {
        let at = |ms: u64| Mono::from_micros(ms * 1_000);
        let pace = Pace::new(at(5_000));
        let told: Vec<u64> = (5_000..8_500).filter(|ms| pace.is_due(at(*ms))).collect();
        assert_eq!(told, [6_000, 7_000, 8_000]);
    }
}
