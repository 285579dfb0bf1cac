//! The server's clock, which clocks of machines that jump do not lead astray.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clock of this machine, nanoseconds since 1970.
pub fn wall_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    nanoseconds(now)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// By how much the clock of this machine must be ahead until it is followed, nanoseconds.
const JUMP: u64 = 1_000_000_000;
/// By how much the clock of this machine must be behind until it is followed all the same, nanoseconds: what was shown before was wrong then. Less is
/// set right within this time, and until then times stay in order.
pub const WRONG: u64 = 3600 * 1_000_000_000;
/// How many times faster than time passes what is kept may grow old.
const HASTE: u64 = 24;

/// A clock that does not go back by less than an hour. It follows one that jumps ahead, since that was behind before: the machine slept, or had just started.
pub struct Clock(Mutex<(u64, Instant)>);

impl Clock {
    /// From a time on, nanoseconds since 1970.
    pub fn from(time: u64) -> Self {
        Self(Mutex::new((time, Instant::now())))
    }

    /// What it shows.
    pub fn now(&self) -> u64 {
        self.shows(wall_clock(), Instant::now())
    }

    fn shows(&self, wall: u64, moment: Instant) -> u64 {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = own.0.saturating_add(nanoseconds(moment.saturating_duration_since(own.1)));
        if (now.saturating_sub(WRONG)..=now.saturating_add(JUMP)).contains(&wall) {
            return now;
        }
        *own = (wall, moment);
        wall
    }
}

/// How old what is kept has become. A clock that is years ahead for a while, as that of a machine which has just started may be, must not empty
/// the store: the age grows from what was last recorded on, and only so much faster than time passes.
pub struct Age {
    from: u64,
    since: Instant,
}

impl Age {
    /// From a time on, nanoseconds since 1970, which is known to have been.
    pub fn from(time: u64) -> Self {
        Self { from: time, since: Instant::now() }
    }

    /// The time up to which things have become old, where clocks show such times.
    pub fn now(&self, clock: u64) -> u64 {
        self.reached(clock.min(wall_clock()), Instant::now())
    }

    fn reached(&self, clock: u64, moment: Instant) -> u64 {
        let passed = nanoseconds(moment.saturating_duration_since(self.since));
        clock.min(self.from.saturating_add(passed.saturating_mul(HASTE)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Age, Clock};

    const SECOND: u64 = 1_000_000_000;
    const YEAR: u64 = 365 * 86_400 * SECOND;

    #[test]
    fn a_clock_follows_jumps_ahead_and_goes_on_after_others() {
        let clock = Clock::from(100 * SECOND);
        let begin = Instant::now();
        let shows = |wall: u64, seconds: u64| clock.shows(wall * SECOND, begin + Duration::from_secs(seconds)) / SECOND;
        let year = YEAR / SECOND;
        assert!((100..102).contains(&shows(100, 0)));
        // It was set back: time goes on.
        assert!((110..112).contains(&shows(3, 10)));
        // The machine slept.
        assert_eq!(shows(5000, 12), 5000);
        assert_eq!(shows(4990, 13), 5001);
        // It was years ahead, and came back.
        assert_eq!((shows(5 * year, 14), shows(5 * year - 3000, 15), shows(5010, 16)), (5 * year, 5 * year + 1, 5010));
    }

    #[test]
    fn a_clock_that_is_years_ahead_makes_nothing_old() {
        let age = Age::from(50 * YEAR);
        let later = |seconds: u64| Instant::now() + Duration::from_secs(seconds);
        assert!(age.reached(130 * YEAR, later(60)) < 50 * YEAR + 3600 * SECOND);
        // One that is right is followed after a while, however long the server was off.
        assert_eq!(age.reached(51 * YEAR, later(16 * 86_400)), 51 * YEAR);
        assert_eq!(age.reached(49 * YEAR, later(1)), 49 * YEAR);
    }
}
