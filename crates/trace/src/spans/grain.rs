//! The steps in which clocks count, read off the digits of the times.

use crate::spans::model::Span;

/// A millisecond, in nanoseconds.
pub const MILLI: i64 = 1_000_000;

/// From fewer spans nothing follows.
const ENOUGH: u64 = 10;

/// No clock of a program counts more than a second.
const MOST: i64 = 1_000 * MILLI;

/// The step of the clocks of a file so far: the greatest power of ten, in nanoseconds, that divides all of its times. What is less than a
/// millisecond is not told apart.
#[derive(Clone, Copy, Debug)]
pub struct Grain {
    step: i64,
    spans: u64,
}

impl Default for Grain {
    fn default() -> Self {
        Self { step: MOST, spans: 0 }
    }
}

impl Grain {
    /// Takes in a span.
    pub fn add(&mut self, span: &Span) {
        self.spans += 1;
        for time in [span.start, span.end] {
            while self.step >= MILLI && time % self.step != 0 {
                self.step /= 10;
            }
        }
    }

    /// How many spans it knows.
    pub fn spans(self) -> u64 {
        self.spans
    }

    /// The step of a clock that counts milliseconds or more.
    pub fn coarse(self) -> Option<i64> {
        self.so_far().filter(|_| self.spans >= ENOUGH)
    }

    /// The same, however few the spans.
    pub fn so_far(self) -> Option<i64> {
        (self.step >= MILLI).then_some(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::{Grain, MILLI};
    use crate::spans::model::Span;

    fn of(step: i64) -> Option<i64> {
        let span = |at: i64| Span { start: at * 7 * step, end: (at * 7 + at % 4) * step, ..Span::default() };
        let mut grain = Grain::default();
        (1..30).for_each(|at| grain.add(&span(at)));
        grain.coarse()
    }

    #[test]
    fn the_step_of_a_clock_is_read_off_its_times() {
        assert_eq!(of(1_000), None);
        assert_eq!(of(MILLI), Some(MILLI));
        assert_eq!(of(10 * MILLI), Some(10 * MILLI));
        assert_eq!(of(1_000 * MILLI), Some(1_000 * MILLI));
        assert_eq!(Grain::default().coarse(), None);
    }
}
