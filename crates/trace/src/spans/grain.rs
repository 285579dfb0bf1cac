//! The steps in which clocks count, read off the digits of the times.

use crate::spans::model::Span;

/// A millisecond, in nanoseconds.
pub const MILLI: i64 = 1_000_000;

/// From fewer spans nothing follows.
const ENOUGH: usize = 10;

/// No clock of a program counts more than a second.
const MOST: i64 = 1_000 * MILLI;

/// The step of the clocks of a file: the greatest power of ten, in nanoseconds, that divides all of its times; 0 where nothing follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grain(i64);

impl Grain {
    /// Of the spans of a file.
    pub fn of(spans: &[Span]) -> Self {
        if spans.len() < ENOUGH {
            return Self::default();
        }
        let mut step = MOST;
        for time in spans.iter().flat_map(|span| [span.start, span.end]) {
            while time % step != 0 {
                step /= 10;
            }
        }
        Self(step)
    }

    /// The step of a clock that counts milliseconds or more.
    pub fn coarse(self) -> Option<i64> {
        (self.0 >= MILLI).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Grain, MILLI};
    use crate::spans::model::Span;

    fn of(step: i64) -> Option<i64> {
        let span = |at: i64| Span { start: at * 7 * step, end: (at * 7 + at % 4) * step, ..Span::default() };
        Grain::of(&(1..30).map(span).collect::<Vec<_>>()).coarse()
    }

    #[test]
    fn the_step_of_a_clock_is_read_off_its_times() {
        assert_eq!(of(1_000), None);
        assert_eq!(of(MILLI), Some(MILLI));
        assert_eq!(of(10 * MILLI), Some(10 * MILLI));
        assert_eq!(of(1_000 * MILLI), Some(1_000 * MILLI));
        assert_eq!(Grain::of(&[Span::default()]).coarse(), None);
    }
}
