//! Changes within a period: demands that are others from some moment on, processes that appear or leave (§5.2).

use std::collections::BTreeMap;

use dyelog_diagnostic::{Diagnostic, Place};

use crate::codes;
use crate::demand::{Method, Sample, Summary, means};
use crate::observation::{Operation, Process};
use crate::period::{Period, ProcessPeriod};
use crate::samples::{HostLoad, Resource, operations, samples};

/// How unlikely a change must be by chance, for all operations of a process together.
const CHANCE: f64 = 0.0005;
/// A change by less than this part is none that matters.
const MATTERS: f64 = 0.1;
/// The fewest intervals of a part, and the most blocks in which a period is looked at.
const FEWEST: usize = 8;
const BLOCKS: usize = 240;
/// A process that reports for less than this part of the period came or left in it.
const PRESENT: f64 = 0.9;
/// Most parts of a period.
const MOST_PARTS: usize = 16;

/// A moment from which on a period is another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When, nanoseconds since 1970.
    pub at: i64,
    /// What changed.
    pub what: What,
}

/// What changed.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// What an operation takes: before and after, seconds or operations of disks.
    Demand {
        /// The process.
        process: Process,
        /// The operation.
        operation: Operation,
        /// The resource.
        resource: Resource,
        /// Before.
        before: f64,
        /// After.
        after: f64,
    },
    /// A process that was not there before.
    Appears(Process),
    /// A process that is not there any more.
    Leaves(Process),
}

impl Change {
    /// What is to be said of it.
    pub fn finding(&self, period: &Period) -> Diagnostic {
        let after = (self.at - period.from) as f64 / crate::observation::NANO;
        let (code, message) = match &self.what {
            What::Demand { process, operation, resource, before, after: now } => {
                let unit = match resource {
                    Resource::Processor => "ms of processor time",
                    Resource::Disk => "thousandths of a disk operation",
                };
                let (before, now) = (1e3 * before, 1e3 * now);
                let program = &process.program;
                let text = format!("`{operation}` of `{program}` takes {now:.3} {unit} in place of {before:.3}");
                (codes::CHANGE, text)
            }
            What::Appears(process) => (codes::PARTLY, format!("`{}` ({}) appears", process.program, process.id)),
            What::Leaves(process) => (codes::PARTLY, format!("`{}` ({}) leaves", process.program, process.id)),
        };
        Diagnostic::warning(code, Place::Nowhere, format!("{message}, {after:.0} s after the period begins"))
            .with_hint("make a model of each part of the period")
    }
}

/// Changes within a period, in the order of time. `cores` tells how many cores a host has.
pub fn changes(period: &Period, cores: &dyn Fn(&str) -> f64) -> Vec<Change> {
    let mut found = Vec::new();
    let mut loads: BTreeMap<&str, HostLoad> = BTreeMap::new();
    for process in &period.processes {
        found.extend(presence(period, process));
        if !process.total.managed {
            continue;
        }
        let host: &str = &process.total.process.host;
        let load = loads.entry(host).or_insert_with(|| HostLoad::of(period, host, cores(host)));
        let own = [process];
        let operations = operations(&own);
        for resource in [Resource::Processor, Resource::Disk] {
            let samples = samples(&own, &operations, load, resource);
            for (first, operation, before, after) in breaks(operations.len(), &samples) {
                let what = What::Demand {
                    process: process.total.process.clone(),
                    operation: operations[operation].clone(),
                    resource,
                    before,
                    after,
                };
                found.push(Change { at: process.intervals[first].from, what });
            }
        }
    }
    found.sort_by_key(|change| change.at);
    found
}

/// The parts of a period that are separated by changes: moments closer than the longest interval are one.
pub fn parts(period: &Period, changes: &[Change]) -> Vec<Period> {
    let intervals = period.processes.iter().flat_map(|process| &process.intervals);
    let longest = intervals.map(|interval| interval.to.saturating_sub(interval.from)).max().unwrap_or(0);
    let mut borders = vec![period.from];
    for change in changes {
        let last = borders.last().copied().unwrap_or(period.from);
        if change.at.saturating_sub(last) > longest
            && period.to.saturating_sub(change.at) > longest
            && borders.len() < MOST_PARTS
        {
            borders.push(change.at);
        }
    }
    borders.push(period.to);
    borders.windows(2).map(|pair| period.part(pair[0], pair[1])).filter(|part| !part.processes.is_empty()).collect()
}

/// Whether a process came or left within the period.
fn presence(period: &Period, process: &ProcessPeriod) -> Vec<Change> {
    let (first, last) = (process.total.from, process.total.to);
    let interval = process.intervals.iter().map(|interval| interval.to - interval.from).max().unwrap_or(0);
    let least = ((1.0 - PRESENT) * (period.to - period.from) as f64) as i64;
    let margin = interval.saturating_add(interval / 2).max(least);
    let mut found = Vec::new();
    if first.saturating_sub(period.from) > margin {
        found.push(Change { at: first, what: What::Appears(process.total.process.clone()) });
    }
    if period.to.saturating_sub(last) > margin {
        found.push(Change { at: last, what: What::Leaves(process.total.process.clone()) });
    }
    found
}

/// Samples from which on an operation's demand is another one: the first sample, the operation, its demand before and after.
///
/// What each interval took is shared out among operations, and the deviation from the mean demand summed up along time. Of one demand that is a
/// Brownian bridge, however the rates of operations vary; its greatest excursion is compared with Kolmogorov's distribution.
fn breaks(operations: usize, samples: &[Sample]) -> Vec<(usize, usize, f64, f64)> {
    let mut found = Vec::new();
    let mut open = vec![(0, samples.len())];
    while let Some((from, to)) = open.pop() {
        if found.len() + 1 >= MOST_PARTS {
            break;
        }
        if let Some(own) = break_of(operations, &samples[from..to]) {
            let at = from + own.0;
            found.push((at, own.1, own.2, own.3));
            open.extend([(from, at), (at, to)]);
        }
    }
    found.sort_by_key(|own| own.0);
    found
}

fn break_of(operations: usize, samples: &[Sample]) -> Option<(usize, usize, f64, f64)> {
    let blocks = samples.len().min(BLOCKS);
    if blocks < 2 * FEWEST {
        return None;
    }
    let begin = |block: usize| block * samples.len() / blocks;
    let summaries: Vec<Summary> =
        (0..blocks).map(|block| Summary::of(operations, &samples[begin(block)..begin(block + 1)])).collect();
    let mean = |part: &[Summary]| {
        let mut sum = Summary::new(operations);
        for summary in part {
            sum.merge(summary);
        }
        if sum.was_busy() { means(&sum, Method::Shared, &[]) } else { means(&sum, Method::Average, &[]) }
    };
    let whole = mean(&summaries);
    let own: Vec<Vec<f64>> = summaries.iter().map(|summary| mean(std::slice::from_ref(summary))).collect();
    let limit = (-0.5 * (CHANCE / 2.0 / operations.max(1) as f64).ln()).sqrt();
    let mut best: Option<(f64, usize, usize)> = None;
    for operation in (0..operations).filter(|operation| whole[*operation] > 0.0) {
        let counts = summaries.iter().map(|summary| summary.count(operation));
        let mut off: Vec<f64> =
            own.iter().zip(counts).map(|(own, count)| (own[operation] - whole[operation]) * count).collect();
        let rest = off.iter().sum::<f64>() / blocks as f64;
        for off in &mut off {
            *off -= rest;
        }
        // Neighbours are alike: the variance of their sums is that over a long time.
        let deviation = long_run_variance(&off).sqrt() * (blocks as f64).sqrt();
        if deviation <= 0.0 {
            continue;
        }
        let mut sum: f64 = 0.0;
        for (block, off) in off.iter().enumerate().take(blocks - FEWEST) {
            sum += off;
            let excursion = sum.abs() / deviation;
            if block + 1 >= FEWEST && excursion > limit && best.is_none_or(|best| excursion > best.0) {
                best = Some((excursion, block + 1, operation));
            }
        }
    }
    let (_, block, operation) = best?;
    let (before, after) = (mean(&summaries[..block])[operation], mean(&summaries[block..])[operation]);
    let is_large = (after - before).abs() > MATTERS * before.max(after);
    is_large.then(|| (begin(block), operation, before, after))
}

/// The variance over a long time, by differences of neighbours, which a change of the mean leaves alone but at one place.
fn long_run_variance(values: &[f64]) -> f64 {
    let lag = |lag: usize| {
        let squares: f64 = values.windows(lag + 1).map(|pair| (pair[lag] - pair[0]).powi(2)).sum();
        0.5 * squares / (values.len() - lag) as f64
    };
    let (near, far) = (lag(1), lag(3));
    // Far ones differ by more where neighbours are alike: the correlation of an autoregression of first order.
    if near <= 0.0 {
        return near;
    }
    let correlation = (1.0 - near / far.max(near)).clamp(0.0, 0.5);
    far.max(near) * (1.0 + correlation) / (1.0 - correlation)
}
