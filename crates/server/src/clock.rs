use std::time::{Instant, SystemTime, UNIX_EPOCH};

use highwater_types::{Mono, Now, WallMs};

/// The process's two clocks: monotonic time since the server started, and wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts the monotonic clock at zero.
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Both clocks, read now.
    pub(crate) fn now(&self) -> Now {
        Now {
            mono: self.mono(),
            wall: wall(),
        }
    }

    /// The monotonic clock alone.
    pub(crate) fn mono(&self) -> Mono {
        let micros = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        Mono::from_micros(micros)
    }

    /// The instant at which this clock shows `at`; far away when it is out of the system's range.
    pub(crate) fn instant(&self, at: Mono) -> Instant {
        let span = std::time::Duration::from_micros(at.as_micros());
        self.start
            .checked_add(span)
            .unwrap_or_else(|| self.start + FAR)
    }
}

/// Thirty years: later than any deadline that matters, within every system's range.
const FAR: std::time::Duration = std::time::Duration::from_secs(30 * 365 * 86_400);

fn wall() -> WallMs {
    let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_millis()).map_or(i64::MIN, i64::saturating_neg)
        }
    };
    WallMs::new(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_turn_into_instants() {
        let clock = Clock::start();
        let at = Mono::from_micros(5_000);
        assert_eq!(
            clock.instant(at) - clock.start,
            std::time::Duration::from_millis(5)
        );
        assert!(clock.instant(Mono::from_micros(u64::MAX)) > clock.start);
    }

    #[test]
    fn the_wall_clock_is_in_this_century() {
        assert!(Clock::start().now().wall.raw() > 1_600_000_000_000);
    }
}
