//! What the times of a file tell of its clock: the unit, and how fine it counts.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::spans::grain::{Grain, MILLI};
use crate::spans::model::{Span, Spans};
use crate::spans::time::{OUR_DAYS, unit_of};
use crate::{ReadReport, codes};
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// Where half of the spans take so many steps of a clock, it does not matter how fine it counts.
const LONG: usize = 100;

/// The times of all files so far.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// In the order in which they came.
    files: Vec<FileTimes>,
    numbers: FxHashMap<Arc<str>, usize>,
}

impl Clocks {
    /// Takes in spans. Those of a file may come in parts, and between those of others.
    pub fn look(&mut self, spans: &Spans) {
        for part in spans.spans.chunk_by(|one, next| one.file == next.file) {
            let file = spans.file_of(&part[0]);
            let number = self.numbers.get(file).copied().unwrap_or_else(|| {
                self.numbers.insert(Arc::clone(file), self.files.len());
                self.files.push(FileTimes::new(file));
                self.files.len() - 1
            });
            for span in part {
                self.files[number].add(spans, span);
            }
        }
    }

    /// How fine the clocks of each of these files count.
    pub fn grains(&self, files: &[Arc<str>]) -> Vec<Grain> {
        let known = |file| self.numbers.get(file).map(|number| self.files[*number].grain);
        files.iter().map(|file| known(file).unwrap_or_default()).collect()
    }

    /// Says what there is to say of each file.
    pub fn report(self, report: &mut ReadReport) {
        for file in self.files {
            file.report(report);
        }
    }
}

/// The times of one file so far.
#[derive(Debug)]
struct FileTimes {
    file: Arc<str>,
    least: i64,
    grain: Grain,
    durations: Durations,
    other_units: ReadReport,
}

/// In how many nanoseconds a time of our days is counted, where it is not one.
fn other_unit(start: i64) -> Option<i64> {
    unit_of(start as f64).filter(|unit| *unit != 1)
}

impl FileTimes {
    fn new(file: &Arc<str>) -> Self {
        Self {
            file: Arc::clone(file),
            least: i64::MAX,
            grain: Grain::default(),
            durations: Durations::default(),
            other_units: ReadReport::default(),
        }
    }

    fn add(&mut self, all: &Spans, span: &Span) {
        self.least = self.least.min(span.start);
        self.grain.add(span);
        self.durations.add(span.duration(), self.grain.so_far());
        self.look_at_unit(all, span);
    }

    /// Counts a span whose times are in another unit than the format has: if they lie far from our days, and a thousand, a million or
    /// a thousand million times as late within them, or beyond them.
    fn look_at_unit(&mut self, all: &Spans, span: &Span) {
        let found = match other_unit(span.start) {
            Some(scale) => {
                let year = 1970.0 + span.start as f64 * scale as f64 / 1e9 / 31_556_952.0;
                format!("{scale} times too small: it begins in {} if they are in another unit", year.floor())
            }
            None if span.start >= OUR_DAYS.end => "too large, by a factor of 1000 or more".to_owned(),
            None => return,
        };
        self.other_units.count("span whose times are in another unit", || {
            Diagnostic::warning(codes::OTHER_UNIT, all.place_of(span), format!("the times of this span are {found}"))
                .with_note("they are taken as they are, so that durations are off by the same factor")
                .with_hint("times of OTLP are nanoseconds since 1970, those of Jaeger microseconds")
        });
    }

    fn report(mut self, report: &mut ReadReport) {
        // Times from the start of a program begin near zero: where they are not those of a calendar nothing is said.
        if other_unit(self.least).is_some() || self.least >= OUR_DAYS.start {
            report.add_counted(std::mem::take(&mut self.other_units));
        }
        self.look_at_grain(report);
    }

    /// Says how well durations are known where the clocks count milliseconds or more, and half of the spans take no hundred of these steps.
    fn look_at_grain(&self, report: &mut ReadReport) {
        let Some(step) = self.grain.coarse() else { return };
        let Some(median) = self.durations.median(self.grain.spans()) else { return };
        let clocks = if step == MILLI {
            "file whose clocks count milliseconds"
        } else {
            "file whose clocks count more than milliseconds"
        };
        report.count(clocks, || {
            let [step, median] = [step, median].map(|time| time / MILLI);
            let times = if step == 1 { "milliseconds".to_owned() } else { format!("multiples of {step} ms") };
            let message = format!("all times of this trace are whole {times}, and half of its spans take {median} ms or less");
            let place = Place::File { file: Arc::clone(&self.file) };
            Diagnostic::new(Severity::Note, codes::COARSE_CLOCK, place, message)
                .with_note("means of durations are true where begins and ends were read off such a clock; where durations were cut off by themselves, they are too short by half a step")
                .with_note("of calls within a step no clock tells which came first: a client that may have waited counts as one that waits")
        });
    }
}

/// Spans by how many steps of a clock they take, all long ones together.
#[derive(Debug, Default)]
struct Durations {
    /// In nanoseconds; what was counted in greater steps than turned out is counted anew in these.
    step: i64,
    spans: Vec<u64>,
}

impl Durations {
    /// Takes in a duration, a multiple of what divides all times so far. Where no coarse step does, nothing is counted any more.
    fn add(&mut self, duration: i64, step: Option<i64>) {
        let Some(step) = step else {
            self.spans = Vec::new();
            return;
        };
        if self.spans.is_empty() {
            (self.step, self.spans) = (step, vec![0; LONG + 1]);
        }
        if step != self.step {
            let finer = usize::try_from(self.step / step).unwrap_or(LONG);
            let coarse = std::mem::replace(&mut self.spans, vec![0; LONG + 1]);
            for (steps, spans) in coarse.into_iter().enumerate() {
                self.spans[steps.saturating_mul(finer).min(LONG)] += spans;
            }
            self.step = step;
        }
        self.spans[usize::try_from(duration / step).unwrap_or(0).min(LONG)] += 1;
    }

    /// What half of so many spans do not exceed, in nanoseconds; `None` where that is long.
    fn median(&self, spans: u64) -> Option<i64> {
        let mut below = 0;
        let median = self.spans.iter().position(|count| {
            below += count;
            below > spans / 2
        });
        median.filter(|median| *median < LONG).map(|median| median as i64 * self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::{Durations, MILLI};

    #[test]
    fn the_median_does_not_depend_on_when_the_step_is_known() {
        let times = [3_000, 70, 20, 2_000, 10, 400, 0, 5_000, 90, 30, 60];
        let median = |order: &[i64]| {
            let mut durations = Durations::default();
            let mut step = 1_000 * MILLI;
            for time in order {
                while time * MILLI % step != 0 {
                    step /= 10;
                }
                durations.add(time * MILLI, Some(step));
            }
            durations.median(order.len() as u64)
        };
        let mut sorted = times;
        sorted.sort_unstable();
        assert_eq!(median(&times), Some(sorted[times.len() / 2] * MILLI));
        assert_eq!(median(&sorted), median(&times));
        sorted.reverse();
        assert_eq!(median(&sorted), median(&times));
    }
}
