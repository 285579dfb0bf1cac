//! Whether a recording is of one state of the system: warm-up, drift and bursts within it.
//!
//! Where operations began is kept in up to 64 cells of time, with their response times. Sums up to each border of cells, less what they would be on the
//! mean, make a bridge that strays far from zero where the mean changes (cumulative sums). Its variance is taken from differences of neighbouring stretches of one to eight
//! cells, which one change hardly moves, and which hold how responses depend on those before. A bridge that goes far enough is a change of the rate. A change of
//! responses goes farther, and all stretches before it lie on one side of all after it, which one long busy period does not bring about. Of steady recordings
//! less than two in a hundred are named (`tests/suite/stationarity.rs`). A change by less than a tenth is left out.
//!
//! The work of invocations shows a change that responses hide ([`work`]), also where instances replace others one by one ([`rollout`]), and a rate may change with a sampler
//! ([`sampler`]).
//!
//! What lies before and after a change is looked at in the same way. The longest part without a change is what models are made of.

mod phases;
mod rollout;
mod sampler;
pub mod series;
mod work;

use std::ops::Range;

use crate::diagnostic::quantity::{percent, time};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::starts::Stretch;
use crate::lqn::submodel::{ScenarioTotal, SubModel};
use crate::model::chance::interarrival_cv2;
use crate::model::codes;
use crate::model::load::{Load, Recording, observed_customers, recorded_at_once, short, toml_key, weight};
use crate::names::Name;

pub use sampler::OneFactor;
use series::{Change, FEWEST_CELLS, MATTERS, Spell, mean_of, of_counts, of_means, spell_of_means};
use work::Changed;

/// The fewest operations of which changes can be told.
const FEWEST: u64 = 200;

/// A stretch of no more than one of so many cells is too short for a part.
const SHORT: usize = 20;

/// It has at least so many operations.
const SEVERAL: f64 = 3.0;

/// They respond more than so many times as slowly as the others. Of servers that are 80 % busy one recording in ten has such a stretch by chance.
const TIMES: f64 = 5.0;

/// Counts vary so many times as much as those of Poisson arrivals where they come in bursts.
const BURSTS: f64 = 2.0;

/// Times between arrivals with a larger squared coefficient of variation are those of batches.
const IN_BATCHES: f64 = 5.0;

/// A scenario that goes on for a smaller part of the recording is not always there (ours),
const FOR_A_TIME: f64 = 0.6;

/// if it has so many operations: all of them lie in such a part by chance five times in a million.
const OFTEN: u64 = 30;

/// A scenario with a smaller part of the operations than one of so many tells nothing of others.
const RARE: u64 = 10;

/// A steady part of the recording is at least so much of it.
const LEAST: f64 = 0.25;

/// Parts of the recording that differ by less are as long.
const ALIKE: f64 = 0.9;

/// A part with so many times the operations of the longest is taken where a sampler may have left out those of the longest.
const FULLER: f64 = 1.5;

/// What changes within the recording of a scenario, which has that load; `rates` is what all of its scenarios have in common.
pub fn finding(
    scenario: &str,
    total: &ScenarioTotal,
    load: Load,
    recording: &Recording,
    rates: Option<&OneFactor>,
) -> Option<Diagnostic> {
    let part = || for_a_time(scenario, total, recording);
    let is_open = matches!(load, Load::Open { .. });
    if !can_tell(total, recording) {
        return part().or_else(|| batches(scenario, total, recording).filter(|_| is_open));
    }
    told(scenario, total, is_open, rates).map(of_all).or_else(part).or_else(|| stall(scenario, total))
}

/// What changes in the work of services within a recording of which all is modelled.
pub fn work_findings(sub: &SubModel) -> Vec<Diagnostic> {
    changed_work(sub).into_iter().map(|own| of_all(own.finding)).chain(phases::finding(sub)).collect()
}

/// Where the work of tasks changes: as a whole, or from the instances that were there before to those that came after.
fn changed_work(sub: &SubModel) -> Vec<Changed> {
    let Some(recorded) = work::recorded(sub) else { return Vec::new() };
    let mut changed = rollout::changed(sub);
    let is_new = |own: &Changed| changed.iter().all(|other| other.task != own.task);
    let steps: Vec<Changed> = work::changed(sub, recorded).into_iter().filter(is_new).collect();
    changed.extend(steps);
    changed
}

/// What there is to say of a recording of which all is modelled.
pub fn findings(sub: &SubModel) -> Vec<Diagnostic> {
    let (rates, recording) = (OneFactor::of(sub), Recording::of(sub));
    let of = |(name, total): (&Name, &ScenarioTotal)| {
        let load = observed_customers(total, &recording).unwrap_or(Load::Open { rate: 0.0 });
        finding(sub.names.text(*name), total, load, &recording, rates.as_ref())
    };
    let mut findings: Vec<Diagnostic> = sub.scenarios.iter().filter_map(of).collect();
    findings.sort_by(|left, right| left.message.cmp(&right.message));
    findings.extend(work_findings(sub));
    findings
}

fn of_all(finding: Diagnostic) -> Diagnostic {
    finding
        .with_note("the model is of the mean of all of it, and predicts neither part")
        .with_hint("leave out what is no normal operation, such as a warm-up, and set `rate` where the load changed")
}

/// That a scenario goes on for a part of the recording only, as a job does. In a file, the model lets it go on all the time; where it is known that it did not, it has the
/// mean rate of all of the time.
fn for_a_time(scenario: &str, total: &ScenarioTotal, recording: &Recording) -> Option<Diagnostic> {
    let (own, whole) = recording.around(total)?;
    let is_mean = recording.observation_period(total).is_some();
    let part = own / whole;
    let goes_on = is_mean || own > 0.0 && part <= FOR_A_TIME;
    if !goes_on || total.operations < OFTEN {
        return None;
    }
    let what = if is_mean { "period" } else { "recording" };
    let message = format!(
        "scenario `{scenario}` goes on for {} s of a {what} of {} s, {}",
        short(own),
        short(whole),
        percent(part)
    );
    let told = Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message);
    let rate_at = format!("set `rate` under `[scenario.{}]`", toml_key(scenario));
    if !is_mean {
        return Some(
            told.with_note("the model lets it go on all the time at the rate that it had then: others wait more than they did on the mean, and resources are busier")
                .with_hint(format!("for the mean of the recording, {rate_at}; else record the time in which it goes on by itself")),
        );
    }
    let per_second = weight(total) * total.operations as f64;
    let then = if own > 0.0 { format!(", {}/s", short(per_second / own)) } else { String::new() };
    Some(
        told.with_note(format!(
            "the model has the mean rate of the period, {}/s: while the scenario goes on{then}, responses are longer and resources are busier",
            short(per_second / whole)
        ))
        .with_hint(format!("ask for the time in which it goes on by itself, or {rate_at}")),
    )
}

/// Says where a stretch that is too short for a state of its own makes much of the mean response. A long queue does that in a busy system, too, so that it is no warning.
fn stall(scenario: &str, total: &ScenarioTotal) -> Option<Diagnostic> {
    let cells = total.starts.cells();
    let means: Vec<(f64, f64)> =
        cells.iter().map(|cell| (cell.response.count as f64, cell.response.sum.as_f64())).collect();
    let (count, mean) = mean_of(&means)?;
    let sum = |cells: &[(f64, f64)]| cells.iter().fold(0.0, |sum, own| sum + own.1);
    let number = |cell: &Stretch| cell.first >> total.starts.shift();
    let time_of = |cells: &[Stretch]| number(&cells[cells.len() - 1]).abs_diff(number(&cells[0])).saturating_add(1);
    let mut worst: Option<(f64, Range<usize>, f64)> = None;
    for length in 1..=cells.len() / SHORT {
        for (at, window) in means.windows(length).enumerate() {
            let Some((own, slow)) = mean_of(window).filter(|(own, _)| *own >= SEVERAL && *own < count) else {
                continue;
            };
            // Where nothing was recorded, windows are longer than they have cells.
            if time_of(&cells[at..at + length]).saturating_mul(SHORT as u64) > time_of(cells) {
                continue;
            }
            // Of sums, which are equal where all others take no time.
            let rest = (sum(&means) - sum(window)) / (count - own);
            let makes = 1.0 - rest / mean;
            if makes > MATTERS
                && rest > 0.0
                && slow > TIMES * rest
                && worst.as_ref().is_none_or(|(most, ..)| makes > *most)
            {
                worst = Some((makes, at..at + length, slow / rest));
            }
        }
    }
    let (makes, within, times) = worst?;
    let seconds = |at: i64| at.abs_diff(cells[0].first) as f64 * 1e-9;
    let (from, to) = (seconds(cells[within.start].first), seconds(cells[within.end - 1].last));
    let message = format!(
        "scenario `{scenario}` responds {} times as slowly from {} s to {} s of its recording, which makes {} % of its mean response",
        short((times * 10.0).round() / 10.0),
        short(from),
        short(to),
        (makes * 100.0).round()
    );
    let finding = Diagnostic::new(Severity::Note, codes::NOT_STEADY, Place::Nowhere, message);
    Some(finding.with_note(
        "a pause of the system does that, and so does one long queue: the model is of the mean of all of it",
    ))
}

/// The longest time of a recording in which neither rates nor response times change.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyPart {
    /// Starts of operations that are in it, nanoseconds from the trace's epoch.
    pub starts: Range<i64>,
    /// What changes, by scenario.
    pub findings: Vec<Diagnostic>,
}

/// The steady part of what was recorded; `None` where all of it is steady, or hardly any.
pub fn steady_part(sub: &SubModel) -> Option<SteadyPart> {
    let totals = || sub.scenarios.values();
    let all: u64 = totals().map(|total| total.operations).sum();
    let recording = Recording::of(sub);
    let mut borders = Vec::new();
    for total in totals() {
        // Few operations do not say where those of others change.
        if total.operations.saturating_mul(RARE) >= all && can_tell(total, &recording) {
            add_borders(total.starts.cells(), total.starts.shift(), &mut borders);
        }
    }
    let works = changed_work(sub);
    borders.extend(works.iter().flat_map(|own| own.borders.iter().copied()));
    let first = totals().filter_map(|total| total.first_start).min()?;
    let last = totals().filter_map(|total| total.last_start).max()?;
    if borders.is_empty() {
        return None;
    }
    borders.sort_unstable();
    let nanoseconds = |part: &Range<i64>| part.end.abs_diff(part.start);
    let ends = borders.iter().map(|(at, cell)| (*at, *cell)).chain([(last.checked_add(1)?, 0)]);
    let mut begin = (first, 0);
    let mut parts = Vec::new();
    for end in ends {
        // Where the border is within its cells nobody knows.
        let part = begin.0.saturating_add(begin.1)..end.0.saturating_sub(end.1);
        if part.start < part.end {
            parts.push(part);
        }
        begin = end;
    }
    let longest = parts.iter().map(nanoseconds).max()?;
    // Of parts that are as long the last is the state in which the system was left.
    let starts = parts.iter().rfind(|part| nanoseconds(part) as f64 >= ALIKE * longest as f64)?.clone();
    let whole = last.abs_diff(first);
    let rates = OneFactor::of(sub);
    let starts = if rates.as_ref().is_some_and(OneFactor::may_be_sampler) {
        let is_long = |part: &Range<i64>| nanoseconds(part) as f64 >= LEAST * whole as f64;
        fuller(sub, parts.into_iter().filter(is_long), starts)
    } else {
        starts
    };
    if (nanoseconds(&starts) as f64) < LEAST * whole as f64 {
        return None;
    }
    let seconds = |at: i64| short(at.abs_diff(first) as f64 * 1e-9);
    let part = nanoseconds(&starts) as f64 / whole as f64 * 100.0;
    let taken = format!(
        "the model is of the {} % of the recording from {} s to {} s, in which no such change was found",
        part.round(),
        seconds(starts.start),
        seconds(starts.end)
    );
    let of = |(name, total): (&Name, &ScenarioTotal)| {
        let is_open = observed_customers(total, &recording).is_none();
        told(sub.names.text(*name), total, is_open, rates.as_ref())
    };
    let mut findings: Vec<Diagnostic> = sub.scenarios.iter().filter_map(of).collect();
    findings.sort_by(|left, right| left.message.cmp(&right.message));
    findings.extend(works.into_iter().map(|own| own.finding));
    let taken = |finding: Diagnostic| {
        finding.with_note(taken.clone()).with_hint("`recording = \"all\"` in the configuration takes all of it")
    };
    let findings = findings.into_iter().map(taken).collect();
    Some(SteadyPart { starts, findings })
}

/// Of parts the one with most operations, where it has so many more than the given one.
fn fuller(sub: &SubModel, parts: impl Iterator<Item = Range<i64>>, given: Range<i64>) -> Range<i64> {
    let operations = |part: &Range<i64>| -> u64 {
        let cells = sub.scenarios.values().flat_map(|total| total.starts.cells());
        cells.filter(|cell| part.contains(&cell.first)).map(|cell| cell.operations).sum()
    };
    let least = FULLER * operations(&given) as f64;
    let most = parts.map(|part| (operations(&part), part)).max_by_key(|(operations, _)| *operations);
    most.filter(|(operations, _)| *operations as f64 >= least).map_or(given, |(_, part)| part)
}

/// Adds where rates or response times change, with the length of the cells in which the border lies: first of all of them, then of what lies
/// before and after.
fn add_borders(cells: &[Stretch], shift: u32, borders: &mut Vec<(i64, i64)>) {
    if cells.len() < FEWEST_CELLS {
        return;
    }
    let by_rate = || cell_of(cells, shift, &Grid::of(cells, shift).rate()?);
    let by_spell = || spell(cells).map(|spell| vec![spell.from, spell.to]);
    let Some(ats) = response(cells).map(|change| change.at).or_else(by_rate).map(|at| vec![at]).or_else(by_spell)
    else {
        return;
    };
    let length = 1_i64.checked_shl(shift).unwrap_or(i64::MAX);
    let mut rest = cells;
    for at in ats.into_iter().rev() {
        borders.push((cells[at].first, length));
        add_borders(&rest[at..], shift, borders);
        rest = &rest[..at];
    }
    add_borders(rest, shift, borders);
}

/// The first of the cells after a change of the rate, where there are some before it.
fn cell_of(cells: &[Stretch], shift: u32, change: &Change) -> Option<usize> {
    let border = (cells[0].first >> shift).saturating_add(i64::try_from(change.at).ok()?).saturating_mul(1 << shift);
    let at = cells.partition_point(|cell| cell.first < border);
    (0 < at && at < cells.len()).then_some(at)
}

/// Whether there are enough operations of one recording.
fn can_tell(total: &ScenarioTotal, recording: &Recording) -> bool {
    total.starts.cells().len() >= FEWEST_CELLS && total.operations >= FEWEST && recorded_at_once(total, recording)
}

/// That operations begin many at a time, with nothing between, so that there are too few stretches to look at.
fn batches(scenario: &str, total: &ScenarioTotal, recording: &Recording) -> Option<Diagnostic> {
    let cv2 = interarrival_cv2(total, recording).filter(|cv2| *cv2 > IN_BATCHES)?;
    let message = format!("scenario `{scenario}` is not steady within its recording");
    let note = format!(
        "operations come in bursts: the squared coefficient of variation of the time between two is {}, where that of independent arrivals is 1",
        short(cv2)
    );
    Some(Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message).with_note(note))
}

/// What changes; bursts are told of open arrivals, since those of customers are how long responses take.
fn told(scenario: &str, total: &ScenarioTotal, is_open: bool, rates: Option<&OneFactor>) -> Option<Diagnostic> {
    let cells = total.starts.cells();
    let begin = cells[0].first;
    let seconds = |at: i64| at.abs_diff(begin) as f64 * 1e-9;
    let whole = seconds(cells[cells.len() - 1].last);
    let mut notes = Vec::new();
    let parts = |change: &Change| {
        let border = seconds(cells[change.at].first);
        (border, (border / whole * 100.0).round())
    };
    if let Some(change) = response(cells) {
        let (border, part) = parts(&change);
        notes.push(format!(
            "operations respond in {} on the mean in the first {} s ({part} % of the time), and in {} after that",
            time(change.before),
            short(border),
            time(change.after)
        ));
    }
    let grid = Grid::of(cells, total.starts.shift());
    let rate = grid.rate();
    if notes.is_empty()
        && rate.is_none()
        && let Some(spell) = spell(cells)
    {
        notes.push(format!(
            "operations respond in {} on the mean from {} s to {} s, and in {} before and after that",
            time(spell.within),
            short(seconds(cells[spell.from].first)),
            short(seconds(cells[spell.to].first)),
            time(spell.beside)
        ));
    }
    if let Some(change) = rate {
        let border = grid.length * change.at as f64;
        notes.push(format!(
            "{} begin a second in the first {} s, and {} after that",
            short(change.before),
            short(border),
            short(change.after)
        ));
        notes.extend(rates.map(OneFactor::note));
    } else if let Some(bursts) = grid.bursts().filter(|_| is_open) {
        notes.push(format!(
            "operations come in bursts: their number in {} s varies {} times as much as that of independent arrivals",
            short(grid.length),
            short(bursts)
        ));
    }
    if notes.is_empty() {
        return None;
    }
    let message = format!("scenario `{scenario}` is not steady within its recording");
    let finding = Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message);
    Some(notes.into_iter().fold(finding, Diagnostic::with_note))
}

/// The change of response times, where there is one.
fn response(cells: &[Stretch]) -> Option<Change> {
    of_means(&responses(cells))
}

/// The spell of other response times, where there is one.
fn spell(cells: &[Stretch]) -> Option<Spell> {
    spell_of_means(&responses(cells))
}

fn responses(cells: &[Stretch]) -> Vec<(f64, f64)> {
    cells.iter().map(|cell| (cell.response.count as f64, cell.response.sum.as_f64())).collect()
}

/// How many times as much numbers of starts vary as those of independent arrivals; 1 where it is no more than by chance.
pub fn dispersion(total: &ScenarioTotal) -> f64 {
    let cells = total.starts.cells();
    if cells.len() < FEWEST_CELLS {
        return 1.0;
    }
    let (index, deviation) = Grid::of(cells, total.starts.shift()).dispersion().unwrap_or((1.0, 0.0));
    if index > 1.0 + 2.0 * deviation { index } else { 1.0 }
}

/// Starts in stretches of equal length, without those at both ends, which are not whole.
struct Grid {
    /// Of a stretch, seconds.
    length: f64,
    counts: Vec<f64>,
}

impl Grid {
    fn of(cells: &[Stretch], shift: u32) -> Self {
        let number = |cell: &Stretch| cell.first >> shift;
        let (first, last) = (number(&cells[0]), number(&cells[cells.len() - 1]));
        let mut counts = vec![0.0; (last.abs_diff(first) as usize).saturating_add(1).min(1 << 12)];
        for cell in cells {
            if let Some(count) = counts.get_mut(number(cell).abs_diff(first) as usize) {
                *count = cell.operations as f64;
            }
        }
        counts.pop();
        if !counts.is_empty() {
            counts.remove(0);
        }
        Self { length: f64::from(shift).exp2() * 1e-9, counts }
    }

    /// The change of the rate, in starts a second.
    fn rate(&self) -> Option<Change> {
        let cells: Vec<(f64, f64)> = self.counts.iter().map(|count| (1.0, *count)).collect();
        let change = of_counts(&cells)?;
        Some(Change {
            at: change.at + 1,
            before: change.before / self.length,
            after: change.after / self.length,
            ..change
        })
    }

    /// The index of dispersion of counts, and the standard deviation of that of independent arrivals, for which it is 1.
    fn dispersion(&self) -> Option<(f64, f64)> {
        let count = self.counts.len() as f64;
        let mean = self.counts.iter().sum::<f64>() / count;
        if count < FEWEST_CELLS as f64 || mean <= 0.0 {
            return None;
        }
        let variance = self.counts.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Some((variance / mean, (2.0 / (count - 1.0)).sqrt()))
    }

    /// How many times as much counts vary as those of independent arrivals.
    fn bursts(&self) -> Option<f64> {
        let (index, deviation) = self.dispersion()?;
        let mean = self.counts.iter().sum::<f64>() / self.counts.len() as f64;
        (mean >= 5.0 && index > BURSTS && index > 1.0 + 5.0 * deviation).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::finding;
    use crate::lqn::submodel::ScenarioTotal;
    use crate::model::load::{Load, Recording};

    /// Five operations a second for four seconds, then twenty, by turns, of equal responses.
    fn in_bursts() -> ScenarioTotal {
        let mut total = ScenarioTotal::default();
        for second in 0..100_i64 {
            let count = if second / 4 % 2 == 0 { 5 } else { 20 };
            for number in 0..count {
                let start = second * 1_000_000_000 + number * 1_000_000_000 / count;
                total.starts.add(start, Some(0.01));
                total.response.add(0.01);
                total.operations += 1;
                total.first_start = total.first_start.or(Some(start));
                total.last_start = Some(start);
            }
        }
        total
    }

    /// Customers who wait begin as responses let them.
    #[test]
    fn bursts_are_those_of_arrivals_from_outside() {
        let of = |load| finding("go", &in_bursts(), load, &Recording::default(), None);
        let told = of(Load::Open { rate: 12.5 }).expect("they come in bursts");
        assert!(told.notes[0].contains("bursts"), "{told:?}");
        assert_eq!(of(Load::Closed { population: 4, think_time: 0.0 }), None);
    }
}
