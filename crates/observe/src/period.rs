//! A period of a running system: the intervals that lie in it, by process, and what they come to (§4.1, `get`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyelog_diagnostic::{Diagnostic, Place};
use dyelog_solve::student;

use crate::codes;
use crate::observation::{Input, NANO, Observation, Output, Process, Times};

/// Batches of an interval's estimate, and the fewest of them.
const BATCHES: usize = 20;
const FEWEST_BATCHES: usize = 5;

/// The observations of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Period {
    /// Its begin, nanoseconds since 1970: as it was asked for, or when the first observation begins.
    pub from: i64,
    /// Its end, likewise.
    pub to: i64,
    /// Processes that were observed in it.
    pub processes: Vec<ProcessPeriod>,
    /// Observations that came before, and were left out.
    pub duplicates: u64,
}

/// A process in a period.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessPeriod {
    /// Its intervals, in the order of time.
    pub intervals: Vec<Observation>,
    /// All of them, merged.
    pub total: Observation,
}

/// A figure and its confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Half the width of its 95 % confidence interval, by batch means; `None` where there are too few intervals.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Half the width as a part of the figure.
    pub fn relative(&self) -> Option<f64> {
        self.half_width.filter(|_| self.value > 0.0).map(|half| half / self.value)
    }
}

/// An operation in a period.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationFigures<K> {
    /// The operation.
    pub operation: K,
    /// How often it ended.
    pub count: u64,
    /// How often in a second.
    pub rate: Estimate,
    /// Mean response time, seconds; `None` where it never ended.
    pub response: Option<Estimate>,
    /// The time that 95 of 100 responses do not exceed, seconds, where histograms were kept.
    pub p95: Option<f64>,
}

/// What a process did in a period: the answer of the service `get`.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Seconds that were observed.
    pub seconds: f64,
    /// Busy processors, on the mean.
    pub cpu: Estimate,
    /// Operations of disks per second.
    pub disk: Estimate,
    /// Exported operations.
    pub inputs: Vec<OperationFigures<Input>>,
    /// Imported operations.
    pub outputs: Vec<OperationFigures<Output>>,
}

impl Period {
    /// The observations whose middle lies from one moment until before another one. The order in which they come makes no difference.
    pub fn of<'o>(observations: impl IntoIterator<Item = &'o Observation>, from: i64, to: i64) -> Self {
        let mut processes: BTreeMap<&Process, BTreeMap<(i64, i64), &Observation>> = BTreeMap::new();
        let mut duplicates = 0;
        for observation in observations {
            let middle = i64::midpoint(observation.from, observation.to);
            if !(from..to).contains(&middle) {
                continue;
            }
            let intervals = processes.entry(&observation.process).or_default();
            // Of two that contradict each other the one that comes last in an order of their own, so that arrival does not matter.
            let kept = intervals.entry((observation.from, observation.to)).or_insert(observation);
            if !std::ptr::eq(*kept, observation) {
                duplicates += 1;
                if order(observation) > order(kept) {
                    *kept = observation;
                }
            }
        }
        // A process that observes itself needs no other to look at it.
        let own: BTreeSet<(Arc<str>, u64)> = processes
            .values()
            .flat_map(BTreeMap::values)
            .filter(|observation| observation.managed)
            .map(|observation| (Arc::clone(&observation.process.host), observation.process.id))
            .collect();
        processes.retain(|process, intervals| {
            let is_managed = intervals.values().any(|observation| observation.managed);
            is_managed || !own.contains(&(Arc::clone(&process.host), process.id))
        });
        let processes: Vec<ProcessPeriod> = processes
            .into_values()
            .filter_map(|intervals| ProcessPeriod::of(intervals.into_values().cloned().collect()))
            .collect();
        let first = processes.iter().map(|process| process.total.from).min().unwrap_or(from);
        let last = processes.iter().map(|process| process.total.to).max().unwrap_or(to);
        Self { from: from.max(first), to: to.min(last), processes, duplicates }
    }

    /// The applications that were active.
    pub fn applications(&self) -> BTreeSet<&str> {
        self.processes.iter().map(|process| &*process.total.process.application).collect()
    }

    /// Its length, seconds.
    pub fn seconds(&self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / NANO
    }

    /// A part of it.
    #[must_use]
    pub fn part(&self, from: i64, to: i64) -> Self {
        Self::of(self.processes.iter().flat_map(|process| &process.intervals), from, to)
    }

    /// What is to be said of the observations themselves.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        if self.duplicates > 0 {
            let message = format!("{} observations came before and were left out", self.duplicates);
            findings.push(Diagnostic::warning(codes::DUPLICATE, Place::Nowhere, message));
        }
        for process in &self.processes {
            if process.total.lost > 0 {
                let Process { program, id, .. } = &process.total.process;
                let message = format!("the observer of `{program}` ({id}) lost {} operations", process.total.lost);
                findings.push(
                    Diagnostic::warning(codes::LOST, Place::Nowhere, message)
                        .with_hint("name fewer operations: identifiers in names make each request an operation"),
                );
            }
        }
        findings
    }
}

fn order(observation: &Observation) -> String {
    crate::json::write(std::slice::from_ref(observation))
}

impl ProcessPeriod {
    /// Of intervals in the order of time; `None` where there is none.
    fn of(intervals: Vec<Observation>) -> Option<Self> {
        let mut total = intervals.first()?.clone();
        for interval in &intervals[1..] {
            total.merge(interval);
        }
        Some(Self { intervals, total })
    }

    /// What it did, with confidence intervals by batch means.
    #[expect(clippy::missing_panics_doc, reason = "an interval has a length")]
    pub fn aggregate(&self) -> Aggregate {
        let seconds = |interval: &Observation| interval.seconds();
        let rate =
            |count: &dyn Fn(&Observation) -> f64| self.ratio(count, &seconds).expect("it was observed for some time");
        let inputs = self
            .total
            .inputs
            .iter()
            .map(|(key, total)| self.figures(key.clone(), total, &|interval| interval.inputs.get(key)));
        let outputs = self
            .total
            .outputs
            .iter()
            .map(|(key, total)| self.figures(key.clone(), total, &|interval| interval.outputs.get(key)));
        Aggregate {
            seconds: self.total.seconds(),
            cpu: rate(&|interval| interval.resources.cpu as f64 / NANO),
            disk: rate(&|interval| interval.resources.disk_operations() as f64),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        }
    }

    fn figures<'p, K>(
        &'p self,
        operation: K,
        total: &Times,
        of: &dyn Fn(&'p Observation) -> Option<&'p Times>,
    ) -> OperationFigures<K> {
        let count = |interval: &'p Observation| of(interval).map_or(0.0, |times| times.moments.count as f64);
        let time = |interval: &'p Observation| of(interval).map_or(0.0, Times::seconds);
        OperationFigures {
            operation,
            count: total.moments.count,
            rate: self.ratio(&count, &|interval| interval.seconds()).expect("it was observed for some time"),
            response: self.ratio(&time, &count),
            p95: total.spread.quantiles().p95,
        }
    }

    /// The ratio of two sums over intervals; `None` where that below is zero.
    fn ratio<'p>(
        &'p self,
        above: &dyn Fn(&'p Observation) -> f64,
        below: &dyn Fn(&'p Observation) -> f64,
    ) -> Option<Estimate> {
        let pairs: Vec<(f64, f64)> = self.intervals.iter().map(|interval| (above(interval), below(interval))).collect();
        ratio(&pairs)
    }
}

/// For how long any of these intervals was observed, seconds.
pub(crate) fn observed_seconds<'o>(intervals: impl IntoIterator<Item = &'o Observation>) -> f64 {
    let mut borders: Vec<(i64, i64)> = intervals.into_iter().map(|interval| (interval.from, interval.to)).collect();
    borders.sort_unstable();
    let (mut until, mut sum) = (i64::MIN, 0.0);
    for (from, to) in borders {
        if to > until {
            sum += to.saturating_sub(from.max(until)) as f64 / NANO;
            until = to;
        }
    }
    sum
}

/// The ratio of two sums, with a confidence interval by batch means.
pub(crate) fn ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let (above, below) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    if below <= 0.0 {
        return None;
    }
    let value = above / below;
    let batches = pairs.len().min(BATCHES);
    if batches < FEWEST_BATCHES {
        return Some(Estimate { value, half_width: None });
    }
    let squares: f64 = (0..batches)
        .map(|batch| {
            let part = &pairs[batch * pairs.len() / batches..(batch + 1) * pairs.len() / batches];
            let off: f64 = part.iter().map(|(above, below)| above - value * below).sum();
            off * off
        })
        .sum();
    let count = batches as f64;
    let error = (squares * count / (count - 1.0)).sqrt() / below;
    Some(Estimate { value, half_width: Some(student(batches - 1) * error) })
}
