//! The load of a scenario: as configured, else as observed, else one customer.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;

use crate::diagnostic::quantity::{percent, time};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::sketch::SKETCH_ERROR;
use crate::lqn::starts::Stretch;
use crate::lqn::submodel::{ScenarioTotal, Settled, SubModel, Undated};
use crate::model::sampling::{FurtherCut, further_cut};
use crate::model::{chance, clocks, codes, ticks};

/// The fewest operations from which a rate is estimated.
const ENOUGH: u64 = 10;
/// A pause so many times as long as the mean interval between starts does not come about by chance: by that of a Poisson process
/// once in e^100 intervals.
pub const PAUSE: f64 = 100.0;
/// The recording went on in a pause of a scenario if others have operations throughout more than this part of it.
const MOSTLY: f64 = 0.5;
/// A thread with at most so many operations on average is taken for an arrival, not for one of a fixed number of customers: sessions of
/// so few arrive as if each operation did (Schroeder, Wierman and Harchol-Balter, Open versus closed, 2006).
const SESSION: u64 = 5;
/// Where no more operations than this part were not traced, the others show what was under way together.
const FEW: f64 = 0.1;
/// A scenario is absent for a time so many times as long as the mean interval between its operations: a Poisson process is so by chance once in e^10 times.
const ABSENT: f64 = 10.0;
/// An absence of a smaller part of the observation period leaves a rate as it is (ours).
const BRIEF: f64 = 0.02;
/// The most recordings that are shown.
const SHOWN: usize = 5;

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Load {
    /// Customers that ask, wait for the response and think.
    Closed {
        /// How many.
        population: u32,
        /// Mean time to think, seconds.
        think_time: f64,
    },
    /// Operations that arrive whatever happened to those before.
    Open {
        /// Per second.
        rate: f64,
    },
}

impl Load {
    /// The least load: one operation at a time, one after another.
    pub const ALONE: Self = Self::Closed { population: 1, think_time: 0.0 };

    /// So many times as large: customers, rounded to whole ones whose think time makes up for that, or arrivals.
    #[must_use]
    pub fn times(self, times: f64) -> Self {
        match self {
            Self::Closed { population, think_time } => {
                let (population, think_time) = customers(population, think_time, times);
                Self::Closed { population, think_time }
            }
            Self::Open { rate } => Self::Open { rate: rate * times },
        }
    }
}

/// So many times the customers, rounded to whole ones, one at least; their think time makes up for what rounding adds.
pub fn customers(population: u32, think_time: f64, times: f64) -> (u32, f64) {
    let wanted = f64::from(population) * times;
    let rounded = wanted.round().clamp(1.0, f64::from(u32::MAX));
    (rounded as u32, think_time * rounded / wanted)
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { population: 1, think_time } if *think_time == 0.0 => {
                f.write_str("one customer without think time")
            }
            Self::Closed { population: 1, think_time } => write!(f, "one customer, think time {}", time(*think_time)),
            Self::Closed { population, think_time } => {
                write!(f, "{population} customers, think time {}", time(*think_time))
            }
            Self::Open { rate } => write!(f, "open arrivals, {}/s", short(*rate)),
        }
    }
}

/// Why a load was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadReason {
    /// The configuration says so.
    Configured,
    /// The traces show it.
    Observed,
    /// Nobody tells.
    Assumed,
}

/// The load that settings give.
pub fn configured(rate: Option<f64>, population: Option<u32>, think_time: Option<f64>) -> Option<Load> {
    match (rate, population, think_time) {
        (Some(rate), _, _) => Some(Load::Open { rate }),
        (None, None, None) => None,
        (None, population, think_time) => {
            Some(Load::Closed { population: population.unwrap_or(1), think_time: think_time.unwrap_or(0.0) })
        }
    }
}

/// The customers that were seen to ask one after another, each waiting for the answer.
///
/// As many as threads asked, if these were there all the time. Threads that come and go were so many on average as Little's law says:
/// the traced rate times how long one takes to ask again; and with their think time the law holds for the traced response. `None`
/// where threads come to ask a few times and go: that is rather an open load.
pub fn observed_customers(total: &ScenarioTotal, recording: &Recording) -> Option<Load> {
    let seen = u32::try_from(total.clients).ok().filter(|clients| *clients > 0)?;
    if total.response.count == 0 {
        return None;
    }
    let (think_time, operations) = (total.think.mean().unwrap_or(0.0), total.operations as f64);
    let Some((rate, present)) = present(total, recording) else {
        return Some(Load::Closed { population: seen, think_time });
    };
    if total.think.count == 0 {
        return None;
    }
    let threads = f64::from(seen);
    // So many threads were seen in one of the recordings.
    let operations_of_each = operations / recorded(total, recording).map_or(1, |recorded| recorded.recordings) as f64;
    // Where a thread began within its first cycle that could be seen, and where it was within its last one, nobody knows.
    if present * (1.0 + 2.0 * threads / operations_of_each) >= threads {
        return Some(Load::Closed { population: seen, think_time });
    }
    if operations_of_each <= SESSION as f64 * threads && present < threads / 2.0 {
        return None;
    }
    let response = total.response.sum.as_f64() / operations;
    // More than wait for their response at a time, so that there is time to think.
    let population = present.round().max((rate * response).ceil()).clamp(1.0, threads);
    Some(Load::Closed { population: population as u32, think_time: (population / rate - response).max(0.0) })
}

/// The traced rate of operations, and how many customers were there on average, waiting or thinking.
fn present(total: &ScenarioTotal, recording: &Recording) -> Option<(f64, f64)> {
    let rate = observed_rate(total, recording)?;
    let waits = total.response.sum.as_f64() / total.operations as f64;
    Some((rate, rate * (waits + total.think.mean().unwrap_or(0.0))))
}

/// So many customers that make operations at that rate with the traced response; `None` where no response is known. Where they have no time to think, chance makes it
/// a little less than none.
pub fn as_customers(population: u32, rate: f64, total: &ScenarioTotal) -> Option<Load> {
    let think_time = (f64::from(population) / rate - total.response.mean()?).max(0.0);
    Some(Load::Closed { population, think_time })
}

/// Says that customers were taken from the traces.
pub fn customers_note(scenario: &str, load: Load, total: &ScenarioTotal, recording: &Recording) -> Diagnostic {
    let asked = format!("begin its {} operations, and to wait for their end", total.operations);
    let told = note(format!("scenario `{scenario}` gets {load}"));
    let told = match (load, present(total, recording)) {
        (Load::Closed { population, .. }, Some((rate, present))) if u64::from(population) != total.clients => told
            .with_note(format!("{} tasks or threads were seen to {asked}: they come and go", total.clients))
            .with_note(format!(
                "{} of them were there on average; with the traced response these make the traced {} operations a second",
                short(present),
                short(rate)
            )),
        _ => told.with_note(format!("so many tasks were seen to {asked}")),
    };
    told.with_hint(hint(scenario))
}

/// The rate at which operations were seen to start: so many intervals between the first start and the last, the time between
/// recordings left out. Traces whose clocks tell no date were not recorded at once, though all of them begin at 0.
pub fn observed_rate(total: &ScenarioTotal, recording: &Recording) -> Option<f64> {
    let Recorded { intervals, seconds, .. } = recorded(total, recording)?;
    (seconds > 0.0 && total.operations >= ENOUGH).then(|| weight(total) * intervals / seconds)
}

/// When the traces were recorded, all scenarios together.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    seconds: Option<f64>,
    /// Stretches of time in which operations of any scenario started without a pause, or would have been taken in, seconds, in order.
    windows: Vec<(f64, f64)>,
    /// When operations would have been taken in, had they come; empty where nothing tells.
    observed: Vec<(f64, f64)>,
}

impl Recording {
    /// Of a sub-model: the times at which its operations were taken in, where it tells them, with those at which they started.
    pub fn of(sub: &SubModel) -> Self {
        if sub.observed.is_empty() {
            return Self::of_operations(sub.scenarios.values());
        }
        let observed: Vec<(f64, f64)> =
            sub.observed.iter().map(|(from, to)| (*from as f64 * 1e-9, *to as f64 * 1e-9)).collect();
        let dated = sub.scenarios.values().filter(|total| is_dated(total));
        let own =
            dated.flat_map(|total| recorded_windows(total).into_iter().map(|own| (own, total.operations >= ENOUGH)));
        let own: Vec<(f64, f64)> = own.flat_map(|(own, is_often)| unobserved(&observed, own, is_often)).collect();
        let windows = windows(observed.iter().copied().chain(own).collect());
        Self { seconds: Some(seconds(&windows)), windows, observed }
    }

    /// Of these scenarios. Those with operations enough for a rate tell; where none has, all of them together.
    pub fn of_operations<'t>(totals: impl Iterator<Item = &'t ScenarioTotal> + Clone) -> Self {
        let often = totals.clone().filter(|total| total.operations >= ENOUGH);
        let windows = windows(often.flat_map(recorded_windows).collect());
        if !windows.is_empty() {
            return Self { seconds: Some(seconds(&windows)), windows, observed: Vec::new() };
        }
        let dated = totals.filter(|total| is_dated(total));
        let operations: u64 = dated.clone().map(|total| total.operations).sum();
        let seconds = || {
            let first = dated.clone().filter_map(|total| total.first_start).min()?;
            let last = dated.clone().filter_map(|total| total.last_start).max()?;
            let between = last.abs_diff(first) as f64 * 1e-9;
            // So many starts have an interval less between them.
            Some(between * operations as f64 / (operations - 1) as f64).filter(|seconds| *seconds > 0.0)
        };
        Self { seconds: (operations >= ENOUGH).then(seconds).flatten(), windows, observed: Vec::new() }
    }

    /// Whether operations of other scenarios started throughout most of a pause of one, between these nanoseconds: the recording went on, and the scenario came in bursts.
    fn goes_on(&self, from: i64, to: i64) -> bool {
        let (from, to) = (from as f64 * 1e-9, to as f64 * 1e-9);
        let after = self.windows.partition_point(|window| window.1 <= from);
        let within = self.windows[after..].iter().take_while(|window| window.0 < to);
        let recorded: f64 = within.map(|window| window.1.min(to) - window.0.max(from)).sum();
        recorded > MOSTLY * (to - from)
    }

    /// The time from the first operation of a scenario to its last, and that of the one recording in which it lies, seconds, where all clocks tell dates.
    pub fn around(&self, total: &ScenarioTotal) -> Option<(f64, f64)> {
        let whole = self.seconds.filter(|_| is_dated(total))?;
        let (first, last) = (total.first_start? as f64 * 1e-9, total.last_start? as f64 * 1e-9);
        if !self.observed.is_empty() {
            return Some((self.within(first, last), whole));
        }
        // Of several recordings each may have scenarios of its own.
        (self.windows.len() == 1).then_some((last - first, whole))
    }

    /// How long it was recorded between these seconds.
    fn within(&self, from: f64, to: f64) -> f64 {
        self.windows.iter().map(|window| (window.1.min(to) - window.0.max(from)).max(0.0)).sum()
    }

    /// The observation period, seconds, if operations of a scenario came in a part of it only: its rate is their number by that time (operational analysis: Denning and Buzen, The operational analysis
    /// of queueing network models, 1978). Where only chance lies before its first operation and after its last, these tell the rate as in any recording. So they do where all of them are of a time of which
    /// nothing is known: a recording that was sent later.
    pub fn observation_period(&self, total: &ScenarioTotal) -> Option<f64> {
        let whole = self.seconds.filter(|_| is_dated(total) && total.operations > 0)?;
        let (first, last) = (total.first_start? as f64 * 1e-9, total.last_start? as f64 * 1e-9);
        if !self.observed.iter().any(|(from, to)| *from <= last && first <= *to) {
            return None;
        }
        let mean = (last - first) / total.operations as f64;
        let is_chance = |seconds: &f64| *seconds <= ABSENT * mean;
        let ends = [self.within(f64::NEG_INFINITY, first), self.within(last, f64::INFINITY)];
        let absent: f64 = ends.into_iter().filter(|seconds| !is_chance(seconds)).sum();
        (absent > BRIEF * whole).then_some(whole)
    }

    /// The rate at which operations of a scenario were seen to start. Of one with too few for a rate of its own, so many within the time that was recorded: it
    /// is rare, and no load of one customer that asks again at once.
    pub fn rate(&self, total: &ScenarioTotal) -> Option<f64> {
        let rare = || Some(weight(total) * total.operations as f64 / self.of_rare(total)?);
        observed_rate(total, self).or_else(rare)
    }

    /// The time that was recorded, seconds, if the rate of a scenario is taken from it: it is rare, or all of its operations began at one time. What it has before and after all others was
    /// recorded, too.
    fn of_rare(&self, total: &ScenarioTotal) -> Option<f64> {
        let is_at_once = total.first_start == total.last_start;
        let is_rare = total.operations > 0 && (total.operations < ENOUGH || is_at_once) && is_dated(total);
        let seconds = self.seconds.filter(|_| is_rare)?;
        let outside = || {
            let (first, last) = (self.windows.first()?.0, self.windows.last()?.1);
            let own = |start: Option<i64>| Some(start? as f64 * 1e-9);
            Some((first - own(total.first_start)?).max(0.0) + (own(total.last_start)? - last).max(0.0))
        };
        Some(seconds + outside().unwrap_or(0.0))
    }
}

/// What a stretch of time from the first to the last of some operations adds to the times at which operations were taken in: what was sent later. Between two of these times nothing was
/// observed, though operations started before and after; those of a rare scenario tell nothing of when they were sent together.
fn unobserved(observed: &[(f64, f64)], (from, to): (f64, f64), is_often: bool) -> Vec<(f64, f64)> {
    let meets = |(begin, end): &&(f64, f64)| *begin <= to && from <= *end;
    let mut met = observed.iter().filter(meets);
    let Some(first) = met.next() else { return vec![(from, to)] };
    let last = met.next_back().unwrap_or(first);
    let ends = [(from, first.0), (last.1, to)];
    ends.into_iter().filter(|(begin, end)| is_often && begin < end).collect()
}

/// Whether rates of a sub-model are others by the times at which its operations were taken in than by its operations alone.
pub fn rates_depend_on_observed(sub: &SubModel) -> bool {
    let (own, alone) = (Recording::of(sub), Recording::of_operations(sub.scenarios.values()));
    let differs = |total: &ScenarioTotal| match (own.rate(total), alone.rate(total)) {
        (Some(own), Some(alone)) => (own / alone - 1.0).abs() > BRIEF,
        (own, alone) => own.is_some() != alone.is_some(),
    };
    !own.observed.is_empty() && sub.scenarios.values().any(differs)
}

/// How long all of these are together.
fn seconds(windows: &[(f64, f64)]) -> f64 {
    windows.iter().map(|(from, to)| to - from).sum()
}

/// Whether all starts of operations are known, by clocks that tell dates.
fn is_dated(total: &ScenarioTotal) -> bool {
    total.first_start.is_some() && total.last_start >= total.first_start && total.undated.operations == 0
}

/// Stretches of time joined, where they meet, in order.
pub fn windows(mut all: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    all.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut found: Vec<(f64, f64)> = Vec::new();
    for (from, to) in all {
        match found.last_mut().filter(|last| from <= last.1) {
            Some(last) => last.1 = last.1.max(to),
            None => found.push((from, to)),
        }
    }
    found.retain(|(from, to)| to > from);
    found
}

/// How many operations a traced one stands for on average: those that were not sampled, and those whose first span was lost. One whose
/// sampling is not known stands for itself.
pub fn weight(total: &ScenarioTotal) -> f64 {
    let operations = total.operations.max(1) as f64;
    sampled_weight(total) * (operations + total.beheaded as f64) / operations
}

/// Whether nearly all operations were traced, so that what was under way together was seen together. Some that stand for many beside others that stand for none are a
/// sample, though all of them are as many.
pub fn is_nearly_whole(total: &ScenarioTotal) -> bool {
    let are_alike = total.sampled.effective() >= total.sampled.operations as f64 * (1.0 - FEW);
    weight(total) <= 1.0 + FEW && total.chosen + total.truncated == 0 && !is_unweighed(total) && are_alike
}

/// Whether operations were kept by a sampler that does not tell for how many they stand: it names no probability, or kept all of them beside those that count. Requests
/// that were counted tell it.
pub fn is_unweighed(total: &ScenarioTotal) -> bool {
    total.sampled.counted == 0 && (total.unweighed > 0 || stand_for_none(total))
}

/// Whether all operations of which it is recorded for how many they stand were kept beside those that count.
fn stand_for_none(total: &ScenarioTotal) -> bool {
    total.sampled.operations > 0 && total.sampled.thousandths == 0
}

/// How many operations one stands for that was kept in sampling.
pub fn sampled_weight(total: &ScenarioTotal) -> f64 {
    if let Some(probability) = kept(total) {
        return 1.0 / probability;
    }
    if let Some(cut) = further_cut(total) {
        return cut.weight;
    }
    let unknown = total.operations.saturating_sub(total.sampled.operations) as f64;
    // Those that stand for none were there themselves.
    let known =
        if stand_for_none(total) { total.sampled.operations as f64 } else { total.sampled.thousandths as f64 / 1000.0 };
    (known + unknown) / total.operations.max(1) as f64
}

/// The probability with which operations were kept, as their trace identifiers show it: where nothing else tells it, and nearly all of
/// them have one.
fn kept(total: &ScenarioTotal) -> Option<f64> {
    let nearly_all = total.ids.count.saturating_mul(10) >= total.operations.saturating_mul(9);
    let shown = total.settled.map_or_else(|| total.ids.probability(), Settled::probability);
    // Identifiers that fill their range tell nothing of what is behind the end of a file, nor of what a sampler left out that does not look at them.
    let tells = |probability: &f64| total.truncated + total.unweighed == 0 || *probability < 1.0;
    shown.filter(|_| total.sampled.operations == 0 && nearly_all).filter(tells)
}

/// Leaves open how operations were sampled that were kept for what they are, where their trace identifiers look as if all were there.
pub fn leave_open(total: &mut ScenarioTotal, is_chosen: bool) {
    if is_chosen && kept(total).is_some_and(|probability| probability >= 1.0) {
        total.settled = Some(Settled::Chosen);
    }
}

/// How many operations one stands for by what spans tell of all of them; `None` where they do not.
pub fn told_weight(total: &ScenarioTotal) -> Option<f64> {
    let all_recorded = total.sampled.operations == total.operations && total.operations > 0 && !stand_for_none(total);
    (all_recorded || kept(total).is_some()).then(|| sampled_weight(total))
}

/// What is known of the sampling behind a rate. Of traces that are no spans nothing is sampled, and nothing is a fragment.
fn sampling_note(total: &ScenarioTotal) -> Option<String> {
    let is_told = is_unweighed(total) || total.sampled.operations > 0;
    if total.ids.count == 0 && !is_told && total.chosen == 0 && total.fragments == 0 {
        return None;
    }
    let weight = sampled_weight(total);
    if let Some(probability) = kept(total) {
        return Some(if probability < 1.0 {
            format!(
                "each of them stands for {} operations: their trace identifiers fill {} % of the range, as {} leave them",
                short(weight),
                short((probability * 1000.0).round() / 10.0),
                if total.truncated > 0 {
                    "ratio samplers, and files in the order of identifiers that end too early,"
                } else {
                    "ratio samplers"
                }
            )
        } else {
            "no sampler is recorded, and trace identifiers fill their range: all operations are taken to be traced. A sampler that limits rates, or \
             decides at the end, leaves the same; `--sampling` gives its probability"
                .to_owned()
        });
    }
    if let Some(FurtherCut { part, weight, otherwise }) = further_cut(total) {
        return Some(format!(
            "each of them stands for {} operations: trace identifiers fill {} of their range, less than the probability that spans record, so that a sampler left out \
             more of them later; {}, were its decisions {} those of the first",
            short(weight),
            percent(part),
            short(otherwise),
            if otherwise < weight { "among" } else { "independent of" }
        ));
    }
    if total.settled == Some(Settled::Chosen) {
        return Some("they are no random sample of all: the rate and all utilisations are lower bounds".to_owned());
    }
    if total.truncated > 0 {
        return Some(format!(
            "{} of them come from files that end too early and have spans of all times up to their end: operations of the same time are missing, so that the rate and all utilisations are lower bounds",
            total.truncated
        ));
    }
    if is_unweighed(total) {
        return Some(format!("{}: the rate and all utilisations are lower bounds", unweighed_words(total)));
    }
    if total.settled == Some(Settled::Mixed) {
        return Some(
            "operations of its service were sampled in several ways, and its own are too few to tell how: the rate and all utilisations are lower bounds".to_owned(),
        );
    }
    let unknown = total.operations.saturating_sub(total.sampled.operations);
    if unknown > 0 {
        let whose =
            if total.sampled.operations == 0 { "these operations".to_owned() } else { format!("{unknown} of them") };
        return Some(format!("the sampling of {whose} is not known: the rate and all utilisations are lower bounds"));
    }
    let how = if total.sampled.counted > 0 { "by how many requests were counted" } else { "by how they were sampled" };
    ((weight - 1.0).abs() > 1e-9).then(|| format!("each of them stands for {} operations, {how}", short(weight)))
}

/// How operations were kept whose sampler does not tell for how many they stand.
pub fn unweighed_words(total: &ScenarioTotal) -> String {
    let ScenarioTotal { unweighed, operations, limit, .. } = *total;
    let whose = if unweighed == operations { "they".to_owned() } else { format!("{unweighed} of {operations}") };
    match (unweighed, limit) {
        (0, _) => {
            "spans record that they stand for none: they were kept so that there are some, beside those that count"
                .to_owned()
        }
        (_, 0) => format!(
            "{whose} were kept by a sampler that spans name without a probability, such as one that limits rates"
        ),
        _ => format!(
            "{whose} were kept by a sampler that limits rates, as spans record (at most {} traces a second of a process)",
            short(limit as f64 / 1000.0)
        ),
    }
}

/// Whether a rate is a lower bound: operations of the same time are missing, and nothing tells how many.
pub fn is_least_rate(total: &ScenarioTotal) -> bool {
    let lacks =
        total.truncated > 0 || is_unweighed(total) || matches!(total.settled, Some(Settled::Chosen | Settled::Mixed));
    lacks && kept(total).is_none() && further_cut(total).is_none()
}

/// Adds what is known of the sampling behind a rate.
pub fn with_sampling(told: Diagnostic, total: &ScenarioTotal) -> Diagnostic {
    match sampling_note(total) {
        Some(sampling) => told.with_note(sampling),
        None => told,
    }
}

/// What a rate is taken from.
struct Recorded {
    recordings: u64,
    /// Between starts of operations, without the pauses between recordings.
    intervals: f64,
    seconds: f64,
}

fn recorded(total: &ScenarioTotal, recording: &Recording) -> Option<Recorded> {
    if let Some(Undated { traces, operations, nanoseconds }) = several_undated(total) {
        return Some(Recorded {
            recordings: traces,
            intervals: operations.saturating_sub(traces) as f64,
            seconds: nanoseconds as f64 * 1e-9,
        });
    }
    if let Some(seconds) = recording.observation_period(total) {
        return Some(Recorded { recordings: 1, intervals: total.operations as f64, seconds });
    }
    let recordings = recordings(total, recording)?;
    Some(Recorded {
        recordings: recordings.len() as u64,
        intervals: intervals(total, &recordings),
        seconds: recordings.iter().map(Stretch::seconds).sum(),
    })
}

/// Several traces without a date, of which it is not known when each was recorded, if there are no others.
fn several_undated(total: &ScenarioTotal) -> Option<Undated> {
    Some(total.undated).filter(|undated| undated.traces > 1 && undated.operations == total.operations)
}

/// Intervals between starts, by the time that they took.
fn rate_within(total: &ScenarioTotal, recordings: &[Stretch]) -> Option<f64> {
    let seconds: f64 = recordings.iter().map(Stretch::seconds).sum();
    (seconds > 0.0).then(|| intervals(total, recordings) / seconds)
}

/// How many operations begin from the first start of each recording to its last: all but one, or all but those that begin together at one end.
fn intervals(total: &ScenarioTotal, recordings: &[Stretch]) -> f64 {
    let each = ticks::few(total).map_or(1.0, |own| own.each);
    recordings.iter().map(|recording| (recording.operations as f64 - each).max(0.0)).sum()
}

/// The stretches of time in which operations started, as far apart as separate recordings are: by pauses so many times as
/// long as the mean interval within the stretches that chance does not bring them about, and not so many of them that a stretch is
/// but a few operations. While other scenarios go on, there is no pause. `None` where starts of operations are not known.
fn recordings(total: &ScenarioTotal, recording: &Recording) -> Option<Vec<Stretch>> {
    let all = Stretch {
        first: total.first_start?,
        last: total.last_start?,
        operations: total.operations,
        response: total.response,
    };
    if all.first > all.last || all.operations == 0 {
        return None;
    }
    let cells = total.starts.cells();
    // Of some parts it may be known, of others not.
    if cells.iter().map(|cell| cell.operations).sum::<u64>() != total.operations {
        return Some(vec![all]);
    }
    let pause = |at: usize| cells[at].first.abs_diff(cells[at - 1].last);
    let stops = |at: &usize| !recording.goes_on(cells[at - 1].last, cells[*at].first);
    let mut longest: Vec<usize> = (1..cells.len()).filter(stops).collect();
    longest.sort_by_key(|&at| Reverse(pause(at)));
    let step = clocks::step(total).unwrap_or(0.0);
    // Of so many starts that are independent of each other.
    let breaks = |starts: f64| {
        let (mut left, mut breaks) = (all.seconds(), 0);
        for (number, &at) in (1..).zip(&longest) {
            let seconds = pause(at) as f64 * 1e-9;
            left -= seconds;
            if starts < (ENOUGH * (number + 1)) as f64 {
                break;
            }
            let intervals = (starts - 1.0 - number as f64).max(0.0);
            // Between starts by a clock that counts in steps, a step is no pause.
            if left > 0.0 && seconds - step > PAUSE * left / intervals {
                breaks = number as usize;
            }
        }
        breaks
    };
    let number = match breaks(total.operations as f64) {
        0 => 0,
        // What begins together is one event, and nothing begins between two of them.
        found => ticks::of(total).map_or(found, |own| breaks(total.operations as f64 / own.each)),
    };
    longest.truncate(number);
    let mut found: Vec<Stretch> = Vec::with_capacity(number + 1);
    for (at, cell) in cells.iter().enumerate() {
        match found.last_mut().filter(|_| !longest.contains(&at)) {
            Some(recording) => recording.merge(cell),
            None => found.push(*cell),
        }
    }
    Some(found)
}

/// The stretches of time in which a scenario was recorded, by its own operations, in seconds; none where clocks tell no date.
pub fn recorded_windows(total: &ScenarioTotal) -> Vec<(f64, f64)> {
    let alone = Recording::default();
    let known = several_undated(total).is_none().then(|| recordings(total, &alone)).flatten().unwrap_or_default();
    known.iter().map(|own| (own.first as f64 * 1e-9, own.last as f64 * 1e-9)).collect()
}

/// When recordings of a scenario begin after others, nanoseconds from the trace's epoch.
pub fn begins(total: &ScenarioTotal, recording: &Recording) -> Vec<i64> {
    let known = several_undated(total).is_none().then(|| recordings(total, recording)).flatten().unwrap_or_default();
    known.iter().skip(1).map(|own| own.first).collect()
}

/// Whether all of a scenario was recorded without long pauses, by a clock.
pub fn recorded_at_once(total: &ScenarioTotal, recording: &Recording) -> bool {
    several_undated(total).is_none() && recordings(total, recording).is_some_and(|recordings| recordings.len() == 1)
}

/// Says that the time between recordings was left out of a rate, and what either way gives.
pub fn recordings_warning(scenario: &str, total: &ScenarioTotal, recording: &Recording) -> Option<Diagnostic> {
    if several_undated(total).is_some() {
        return None;
    }
    let recordings = recordings(total, recording).filter(|recordings| recordings.len() > 1)?;
    let pauses: f64 = recordings.windows(2).map(|pair| pair[1].first.abs_diff(pair[0].last) as f64 * 1e-9).sum();
    let weight = weight(total);
    let rate = weight * rate_within(total, &recordings)?;
    let message = format!(
        "scenario `{scenario}` was recorded in {} parts, and the {} s between them are left out of its rate",
        recordings.len(),
        short(pauses)
    );
    let mut finding = Diagnostic::warning(codes::SEVERAL_RECORDINGS, Place::Nowhere, message);
    for (number, recording) in (1..).zip(&recordings[..recordings.len().min(SHOWN)]) {
        let own = match rate_within(total, &[*recording]) {
            Some(rate) => format!(" in {} s: {}/s", short(recording.seconds()), short(weight * rate)),
            None => " at one time".to_owned(),
        };
        let operations = if recording.operations == 1 { "operation" } else { "operations" };
        finding = finding.with_note(format!("part {number} has {} {operations}{own}", recording.operations));
    }
    if recordings.len() > SHOWN {
        finding = finding.with_note(format!("and {} more", recordings.len() - SHOWN));
    }
    let whole = total.last_start?.abs_diff(total.first_start?) as f64 * 1e-9;
    let throughout = weight * (total.operations - 1) as f64 / whole;
    Some(finding.with_note(format!("all parts together: {}/s", short(rate))).with_hint(format!(
        "set `rate` under `[scenario.{}]`: that of the part that you mean, or {} if no operation began in between",
        toml_key(scenario),
        short(throughout)
    )))
}

/// Says that a load was taken from the traces.
pub fn observed_note(scenario: &str, rate: f64, total: &ScenarioTotal, recording: &Recording) -> Diagnostic {
    let own = || recorded(total, recording).map_or(0.0, |recorded| recorded.seconds);
    let window = recording.of_rare(total).unwrap_or_else(own);
    let told = note(format!("scenario `{scenario}` gets open arrivals of {}/s", short(rate))).with_note(format!(
        "{} seen to start within {} s, so that the rate is known to ± {} % (95 % interval)",
        if total.operations == 1 {
            "one operation was".to_owned()
        } else {
            format!("{} operations were", total.operations)
        },
        short(window),
        short((chance::rate_error(total, recording).unwrap_or_default() * 1000.0).round() / 10.0)
    ));
    let told = with_sampling(told, total);
    let told = ticks::of(total).map_or(told.clone(), |own| own.told(told));
    let told = match total.beheaded {
        0 => told,
        lost => told.with_note(format!("{lost} more began with a span that was lost")),
    };
    let told = if total.clients > 0 && total.response.count > 0 {
        told.with_note(format!(
            "the {} tasks or threads that began them came and went: they are no closed population",
            total.clients
        ))
    } else {
        told
    };
    told.with_hint(hint(scenario))
}

/// What is assumed where nothing is known: one operation at a time, each on its own. What goes on after the response is over before the
/// next begins, so that operations meet nothing that those that were traced did not meet.
pub fn assumed(total: &ScenarioTotal) -> Load {
    let think_time = goes_on(total).unwrap_or(0.0);
    Load::Closed { population: 1, think_time }
}

/// How long an operation goes on after its response, seconds; `None` where it does not. The last one tells.
fn goes_on(total: &ScenarioTotal) -> Option<f64> {
    let extent = total.last_end?.saturating_sub(total.last_start?) as f64 * 1e-9;
    let slowest = total.responses.quantile(1.0)? * (1.0 + SKETCH_ERROR);
    (extent > slowest).then(|| extent - total.response.mean().unwrap_or(0.0))
}

/// Says that a load was assumed, and why.
pub fn assumed_note(scenario: &str, load: Load, total: &ScenarioTotal) -> Diagnostic {
    let why = if total.operations < ENOUGH {
        match total.operations {
            1 => "one operation has no rate".to_owned(),
            operations => format!("{operations} operations are too few for a rate"),
        }
    } else {
        "the traces have no start times of operations".to_owned()
    };
    let told = note(format!("scenario `{scenario}` gets {load}")).with_note(why);
    let told = match goes_on(total) {
        Some(after) => told.with_note(format!(
            "work goes on for {} after the response, and ends before the next operation begins",
            time(after)
        )),
        None => told,
    };
    told.with_hint(hint(scenario))
}

/// Says that the model cannot sustain the observed rate, and why.
pub fn overload_warning(
    scenario: &str,
    rate: f64,
    (element, utilization): (&str, f64),
    total: &ScenarioTotal,
) -> Diagnostic {
    let why = format!("{element} would be busy {} % of the time", short(utilization * 100.0));
    let message = format!(
        "scenario `{scenario}` gets the observed open arrivals of {}/s, which the model cannot sustain",
        short(rate)
    );
    let told = Diagnostic::warning(codes::LOAD_NOT_SUSTAINED, Place::Nowhere, message).with_note(why);
    with_sampling(told, total)
        .with_hint("give processors their `multiplicity`, tasks their `threads`, or activities their CPU demand")
        .with_hint(hint(scenario))
}

/// A note on a load that was chosen.
pub fn note(message: String) -> Diagnostic {
    Diagnostic::new(Severity::Note, codes::LOAD_CHOSEN, Place::Nowhere, message)
}

/// How a scenario gets another load.
pub fn hint(scenario: &str) -> String {
    format!("set `population` and `think_time`, or `rate`, under `[scenario.{}]`", toml_key(scenario))
}

/// A name as a key of TOML.
pub fn toml_key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { name.to_owned() } else { quoted(name) }
}

/// A text as a string of TOML.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(character))),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A number with four digits that count.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
