//! Customers behind the arrivals of scenarios: a finite population, or arrivals from outside.
//!
//! A customer begins nothing while it waits for a response. So of N customers with mean think time Z operations begin at rate (N − n) / Z while n
//! are under way, and at one rate, whatever n is, where they come from outside: the arrivals of a finite source (machine repairman, M/G/k//N) and of a
//! Poisson process. Both are point processes with an intensity that depends on n, so that their likelihood is known (Brémaud, Point Processes and
//! Queues, 1981, §VI.3): that of customers over that of arrivals from outside, each with its best rate, is greatest at the N that is
//! taken. How long operations take, and where they wait, does not matter to it.
//!
//! Arrivals from outside may be regular, as those of load generators with a constant rate and of timers are: then few begin while many are under way, too, since one has
//! just begun. So rates are compared among times at which the last begin is as long ago: intensities are in proportion to N − n in each such stratum (Cox, Regression models and
//! life-tables, 1972, whose baseline hazard is of any form). Where n is the same whenever the last begin is as long ago, as where all takes the same time, strata tell nothing: then
//! all times are compared.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::lqn::stays::{Rank, Stay, Stays};
use crate::lqn::submodel::ScenarioTotal;
use crate::model::Load;
use crate::model::{clocks, load, ticks};

/// The logarithm of the likelihood ratio from which on customers are taken. Arrivals from outside reach it by chance once in 3,700 scenarios: half of the
/// tail of chi squared with one degree of freedom, since N is at its bound there.
const TELLS: f64 = 6.0;

/// The fewest begins that tell anything.
const ENOUGH: f64 = 10.0;

/// All N have 95 % of the confidence whose logarithm of the likelihood ratio is not further below the greatest.
const FITS: f64 = 1.92;

/// Begins vary by less than this part of the time between them where a clock makes them.
const REGULAR: f64 = 0.1;

/// Operations that begin within this part of the mean time between begins begin together (ours): requests of one page, or of one batch. They tell nothing of customers who wait for each other,
/// and count as one begin. Of random arrivals a twentieth is left out.
const TOGETHER: f64 = 0.05;

/// More customers arrive as if from outside.
const MOST: u32 = 512;

/// So many strata of times since the last begin, with as many begins in each.
const STRATA: usize = 8;

/// Where the first of these is divided.
const FIRST: [f64; 7] = [0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.999];

/// A finite population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// How many customers, at the greatest likelihood.
    pub customers: u32,
    /// The fewest that fit, and the most where there are any (95 %).
    pub range: (u32, Option<u32>),
    /// The logarithm of the likelihood ratio against arrivals from outside.
    pub gain: f64,
    /// Begins of operations that the likelihoods count.
    pub arrivals: f64,
}

/// The customers of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Customers {
    /// So many, who make the traced rate.
    pub load: Load,
    /// What tells of them.
    pub population: Population,
    /// Of how many scenarios they begin operations.
    pub scenarios: usize,
    /// How many more the model has, since each scenario has a whole number of its own.
    pub surplus: u32,
}

/// What was found of the times of scenarios, by their numbers: it is asked for more than once, and takes long to find.
#[derive(Debug, Default)]
pub struct Found {
    timed: RefCell<BTreeMap<usize, bool>>,
    populations: RefCell<BTreeMap<Vec<usize>, Option<Population>>>,
}

impl Found {
    /// Whether a scenario's operations begin by a clock.
    fn is_timed(&self, number: usize, total: &ScenarioTotal) -> bool {
        let is_by_timer = || ticks::of(total).is_some_and(|own| own.period.is_some());
        *self.timed.borrow_mut().entry(number).or_insert_with(|| is_timed(&total.stays) || is_by_timer())
    }

    /// The common customers of scenarios, each with its number.
    fn population(&self, totals: &[(usize, &ScenarioTotal)]) -> Option<Population> {
        if !totals.iter().all(|(_, total)| load::is_nearly_whole(total)) {
            return None;
        }
        let numbers = totals.iter().map(|(number, _)| *number).collect();
        let fitted = || Presence::of(&totals.iter().map(|(_, total)| &total.stays).collect::<Vec<_>>()).fitted();
        *self.populations.borrow_mut().entry(numbers).or_insert_with(fitted)
    }
}

/// The customers behind scenarios, each with the rate at which it was seen to begin where nothing else tells its load. A scenario has its own, or all have common ones where that is
/// likelier; `None` of one that arrives from outside. What was found before of the times of the same scenarios is not looked for again.
pub fn customers(scenarios: &[(&ScenarioTotal, Option<f64>)], known: &Found) -> Vec<Option<Customers>> {
    let rate_of = |(number, (total, rate)): (usize, &(&ScenarioTotal, Option<f64>))| {
        rate.filter(|_| !known.is_timed(number, total))
    };
    let rates: Vec<Option<f64>> = scenarios.iter().enumerate().map(rate_of).collect();
    let numbered = scenarios.iter().zip(&rates).enumerate();
    let told = numbered.filter_map(|(number, ((total, _), rate))| Some(((number, *total), (*total, (*rate)?))));
    let (all, told): (Vec<_>, Vec<_>) = told.unzip();
    let each: Vec<Option<Population>> = all.iter().map(|own| known.population(&[*own])).collect();
    let gains: f64 = each.iter().flatten().map(|own| own.gain).sum();
    let common = (told.len() > 1).then(|| known.population(&all)).flatten();
    let common = common.filter(|common| common.gain > gains + TELLS);
    let shares = common.map(|common| shares(common.customers, &told)).unwrap_or_default();
    let surplus = shares.iter().sum::<u32>().saturating_sub(common.map_or(0, |common| common.customers));
    let mut found = told.iter().enumerate().map(|(number, (total, rate))| {
        let population = common.or(each[number])?;
        let own = shares.get(number).copied().unwrap_or(population.customers);
        let load = load::as_customers(own, *rate, total)?;
        Some(Customers { load, population, scenarios: if common.is_some() { told.len() } else { 1 }, surplus })
    });
    rates.iter().map(|rate| rate.and_then(|_| found.next().flatten())).collect()
}

/// Whether operations begin by a clock: at regular times, however long the one before took. Customers begin later after a long one.
fn is_timed(stays: &Stays) -> bool {
    let stretches = stays.stretches(stays.complete_before());
    let pairs = || stretches.iter().flat_map(|stretch| stretch.windows(2));
    let interval = |pair: &[Stay]| pair[1].start.abs_diff(pair[0].start) as f64;
    let moments = |of: &dyn Fn(&[Stay]) -> f64| {
        let (count, sum) = pairs().fold((0.0, 0.0), |(count, sum), pair| (count + 1.0, sum + of(pair)));
        let mean = sum / count;
        (count, mean, pairs().map(|pair| (of(pair) - mean).powi(2)).sum::<f64>() / count)
    };
    let (count, mean, variance) = moments(&interval);
    let (_, _, of_pauses) = moments(&|pair| interval(pair) - pair[0].length as f64);
    count >= ENOUGH && variance.sqrt() < REGULAR * mean && variance < of_pauses
}

/// How many of common customers are at each scenario on average, by Little's law: those who wait for it, and those who think before it. Each has no fewer than
/// wait at a time.
fn shares(customers: u32, scenarios: &[(&ScenarioTotal, f64)]) -> Vec<u32> {
    let together: f64 = scenarios.iter().map(|(_, rate)| rate).sum();
    let waiting = |(total, rate): &(&ScenarioTotal, f64)| rate * total.response.mean().unwrap_or_default();
    let thinking = f64::from(customers) - scenarios.iter().map(waiting).sum::<f64>();
    let own = |scenario: &(&ScenarioTotal, f64)| {
        let waiting = waiting(scenario);
        (waiting + thinking.max(0.0) * scenario.1 / together).round().max(waiting.ceil()).max(1.0)
    };
    scenarios.iter().map(|scenario| own(scenario) as u32).collect()
}

/// One customer too many of so many changes little (ours).
const FEW: u32 = 10;

/// Says that arrivals were taken to be those of customers.
pub fn note(scenario: &str, found: &Customers, rate: f64, total: &ScenarioTotal) -> Diagnostic {
    let Customers { load, population: Population { customers, range, gain, arrivals }, scenarios, surplus } = *found;
    let others = if scenarios > 1 { format!(" of {scenarios} scenarios together") } else { String::new() };
    let fit = match range {
        (least, Some(most)) if least == most => "no other number fits".to_owned(),
        (least, Some(most)) => format!("{least} to {most} fit"),
        (least, None) => format!("{least} or more fit"),
    };
    let message =
        format!("scenario `{scenario}` gets {load}, which make the traced {} operations a second", load::short(rate));
    let told = load::note(message)
        .with_note(format!(
            "the more operations{others} were under way, the fewer began, as of {customers} {} for each response before the next request ({fit})",
            if customers == 1 { "customer who waits" } else { "customers who wait" }
        ))
        .with_note(format!(
            "the {} begins of operations that tell it are e^{} times as likely with these as with arrivals from outside",
            load::short(arrivals),
            load::short(gain.round())
        ));
    let told = load::with_sampling(told, total);
    if surplus.saturating_mul(FEW) < customers.max(1) {
        return told.with_hint(load::hint(scenario));
    }
    told.with_note(format!(
        "the model has {} of them, a whole number for each scenario: {surplus} too many, who queue for others",
        customers + surplus
    ))
    .with_hint(format!("set `population = {customers}` and `think_time` in a `[profile.NAME]` of these scenarios"))
}

/// How often operations began, and for how long that was to be seen, by how many were under way.
#[derive(Default)]
struct Presence {
    /// Begins by twice the number that each found.
    found: BTreeMap<u64, f64>,
    /// By how long ago the last begin was.
    strata: Vec<Stratum>,
    /// The most that were under way.
    most: u64,
}

/// Times at which the last begin was about as long ago.
#[derive(Clone, Copy, Default)]
struct Stratum {
    /// Up to how long, nanoseconds.
    until: u64,
    /// Begins.
    arrivals: f64,
    /// Time that was looked at, nanoseconds.
    time: f64,
    /// The same times the number under way.
    spent: f64,
    /// The same times its square.
    squares: f64,
}

impl Stratum {
    /// The logarithm of what is left of the rate of so many customers for those under way.
    fn left(&self, customers: f64) -> f64 {
        // Think times below what clocks tell apart are none.
        (1.0 - self.spent / (customers * self.time)).max(1e-9).ln()
    }

    /// The logarithm of the likelihood ratio that begins here would come to on average if there were so many customers: to second order in how the number under way varies.
    fn due(&self, customers: f64) -> f64 {
        let mean = self.spent / self.time;
        let variance = (self.squares / self.time - mean * mean).max(0.0);
        0.5 * self.arrivals * variance / (customers - mean).max(1e-9).powi(2)
    }
}

/// Strata with as many begins in each, of these intervals between begins; the first of them in parts, since nearly regular begins lie at its end.
fn strata(mut intervals: Vec<u64>) -> Vec<Stratum> {
    intervals.sort_unstable();
    let bound = |number: usize| intervals.get(intervals.len() * number / STRATA).copied().unwrap_or(u64::MAX);
    let first = intervals.get(intervals.len() / STRATA).copied().unwrap_or(0);
    let parts = FIRST.iter().map(|part| (first as f64 * part) as u64);
    let mut bounds: Vec<u64> = parts.chain((1..STRATA).map(bound)).filter(|bound| *bound > 0).collect();
    bounds.dedup();
    bounds.push(u64::MAX);
    bounds.into_iter().map(|until| Stratum { until, ..Stratum::default() }).collect()
}

impl Presence {
    fn of(all: &[&Stays]) -> Self {
        let before: Option<Rank> = all.iter().filter_map(|stays| stays.complete_before()).min();
        let mut merged: Stays = Stays::default();
        let mut kept: Vec<Vec<Stay>> = all.iter().flat_map(|stays| stays.stretches(before)).collect();
        if all.len() > 1 {
            // Stretches of several scenarios overlap.
            kept.iter().flatten().for_each(|stay| merged.add(*stay));
            kept = merged.stretches(before.into_iter().chain(merged.complete_before()).min());
        }
        let mut lengths: Vec<u64> = kept.iter().flatten().map(|stay| stay.length).collect();
        lengths.sort_unstable();
        let Some(&long) = lengths.get(lengths.len().saturating_sub(1) * 99 / 100) else { return Self::default() };
        // By a clock that counts in steps nobody knows how long ago the last begin was.
        let is_coarse = kept.iter().flatten().all(|stay| clocks::is_whole(stay.start) && clocks::is_whole(stay.end()));
        let intervals = kept.iter().filter(|_| !is_coarse).flat_map(|stretch| stretch.windows(2));
        let intervals = intervals.map(|pair| pair[1].start.abs_diff(pair[0].start)).collect();
        let mut presence = Self { strata: strata(intervals), ..Self::default() };
        for stretch in &kept {
            let pause = load::PAUSE * (stretch[stretch.len() - 1].start.abs_diff(stretch[0].start)) as f64
                / stretch.len() as f64;
            let goes_on = |left: &Stay, right: &Stay| right.start.abs_diff(left.start) as f64 <= pause;
            stretch.chunk_by(goes_on).for_each(|part| presence.look(part, long));
        }
        presence
    }

    /// Looks at a stretch of time without pauses. Of what began before it nothing is known, so that its first part, as long as operations take, does not count.
    fn look(&mut self, stretch: &[Stay], long: u64) {
        let Some(first) = stretch.first() else { return };
        let is_coarse = stretch.iter().all(|stay| clocks::is_whole(stay.start) && clocks::is_whole(stay.end()));
        // Zero-length stays find others, and no others find them.
        let lasting = |stays: &[Stay]| stays.iter().filter(|stay| stay.length > 0).count() as u64;
        let mut ends: Vec<i64> = stretch.iter().filter(|stay| stay.length > 0).map(Stay::end).collect();
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let from = first.start.saturating_add_unsigned(long);
        let lasted = stretch[stretch.len() - 1].start.abs_diff(first.start) as f64;
        let together = if is_coarse { 0 } else { (TOGETHER * lasted / stretch.len() as f64) as u64 };
        let (mut there, mut now, mut begun) = (0_u64, first.start, first.start);
        for moment in stretch.chunk_by(|left, right| left.start == right.start) {
            let time = moment[0].start;
            let mut pass = |presence: &mut Self, to: i64, there: u64| {
                // Time in which a begin would not count does not, either.
                let ago = |at: i64| at.max(begun).abs_diff(begun).max(together);
                presence.pass(ago(now.max(from).min(to)), ago(to), there);
                now = to;
            };
            while let Some(end) = ends.next_if(|end| *end < time) {
                pass(self, end, there);
                there = there.saturating_sub(1);
            }
            pass(self, time, there);
            // At one time those that end come first, so that they are not found.
            let mut left = 0;
            while ends.next_if(|end| *end == time).is_some() {
                there = there.saturating_sub(1);
                left += 1;
            }
            let beside = lasting(moment);
            for (number, stay) in moment.iter().enumerate() {
                let own = u64::from(stay.length > 0);
                let is_with_last = !is_coarse && (number > 0 || time.abs_diff(begun) <= together);
                if time > from && !is_with_last {
                    // Of those that end or begin at the same time by a clock that counts in steps, half are there at the same time.
                    let found = 2 * there + if is_coarse { left + beside - own } else { 0 };
                    *self.found.entry(found).or_default() += 1.0;
                    self.at(time.abs_diff(begun)).arrivals += 1.0;
                    self.most = self.most.max(there + 1);
                }
                there += if is_coarse { 0 } else { own };
                begun = time;
            }
            there += if is_coarse { beside } else { 0 };
        }
    }

    /// The stratum where the last begin was so long ago.
    fn at(&mut self, ago: u64) -> &mut Stratum {
        let place = self.strata.partition_point(|own| own.until < ago);
        &mut self.strata[place]
    }

    /// Time passes while so many are under way, from so long to so long after the last begin.
    fn pass(&mut self, from: u64, to: u64, there: u64) {
        let first = self.strata.partition_point(|own| own.until <= from);
        let mut from = from;
        for own in &mut self.strata[first..] {
            let until = own.until.min(to);
            let time = until.saturating_sub(from) as f64;
            own.time += time;
            own.spent += time * there as f64;
            own.squares += time * (there * there) as f64;
            from = until;
            if until == to {
                break;
            }
        }
    }

    /// All times together.
    fn whole(&self) -> Stratum {
        let add = |sum: Stratum, own: &Stratum| Stratum {
            until: own.until,
            arrivals: sum.arrivals + own.arrivals,
            time: sum.time + own.time,
            spent: sum.spent + own.spent,
            squares: sum.squares + own.squares,
        };
        self.strata.iter().fold(Stratum::default(), add)
    }

    /// The logarithm of the likelihood ratio of so many customers against arrivals from outside, in these strata.
    fn gain(&self, strata: &[Stratum], customers: u32) -> f64 {
        let customers = f64::from(customers);
        let met: f64 =
            self.found.iter().map(|(found, count)| count * (-(*found as f64) / 2.0 / customers).ln_1p()).sum();
        let timed = strata.iter().filter(|own| own.time > 0.0);
        met - timed.map(|own| own.arrivals * own.left(customers)).sum::<f64>()
    }

    fn fitted(&self) -> Option<Population> {
        let whole = self.whole();
        if whole.arrivals < ENOUGH || whole.time <= 0.0 {
            return None;
        }
        let found = self.found.keys().next_back().map_or(0, |found| found / 2 + 1);
        let least = u32::try_from(self.most.max(found)).ok().filter(|least| *least <= MOST)?.max(1);
        let gains_in = |strata: &[Stratum]| -> Vec<(u32, f64)> {
            (least..=MOST).map(|customers| (customers, self.gain(strata, customers))).collect()
        };
        let best = |gains: &[(u32, f64)]| {
            gains.iter().max_by(|left, right| left.1.total_cmp(&right.1).then(right.0.cmp(&left.0))).copied()
        };
        let mut gains = gains_in(&self.strata);
        let (mut customers, mut gain) = best(&gains)?;
        if gain < TELLS {
            let all = gains_in(&[whole]);
            let (most_likely, own) = best(&all)?;
            let timed = self.strata.iter().filter(|own| own.time > 0.0);
            let due: f64 = timed.map(|own| own.due(f64::from(most_likely))).sum();
            if due < TELLS {
                (gains, customers, gain) = (all, most_likely, own);
            }
        }
        if gain < TELLS || customers == MOST {
            return None;
        }
        let mut fit = gains.iter().filter(|(_, own)| *own > gain - FITS).map(|(customers, _)| *customers);
        let fewest = fit.next().unwrap_or(customers);
        let most = fit.next_back().unwrap_or(fewest);
        let range = (fewest, Some(most).filter(|most| *most < MOST));
        Some(Population { customers, range, gain, arrivals: whole.arrivals })
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::{Customers, Found, customers, is_timed};
    use crate::lqn::stays::Stay;
    use crate::lqn::submodel::ScenarioTotal;
    use crate::model::Load;

    /// Numbers that look random (splitmix64).
    struct Draw(u64);

    impl Draw {
        /// An exponential time with that mean, nanoseconds.
        fn time(&mut self, mean: f64) -> i64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let part = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
            (-mean * 1e9 * (1.0 - part).ln()) as i64
        }
    }

    /// So many operations of customers who think for so many seconds and wait for so many, each in any of the scenarios.
    fn closed(
        seed: u64,
        population: u32,
        (think, wait): (f64, f64),
        operations: u64,
        scenarios: usize,
    ) -> Vec<ScenarioTotal> {
        let mut draw = Draw(seed);
        let mut next: BinaryHeap<Reverse<i64>> = (0..population).map(|_| Reverse(draw.time(think))).collect();
        let mut totals = vec![ScenarioTotal::default(); scenarios];
        for _ in 0..operations {
            let Some(Reverse(start)) = next.pop() else { break };
            let (wait, scenario) = (draw.time(wait), draw.time(1.0) as usize % scenarios);
            add(&mut totals[scenario], start, wait);
            next.push(Reverse(start + wait + draw.time(think)));
        }
        totals
    }

    /// So many operations that arrive from outside.
    fn open(seed: u64, interval: f64, wait: f64, operations: u64) -> ScenarioTotal {
        let (mut draw, mut total, mut start) = (Draw(seed), ScenarioTotal::default(), 0);
        for _ in 0..operations {
            start += draw.time(interval);
            let wait = draw.time(wait);
            add(&mut total, start, wait);
        }
        total
    }

    fn add(total: &mut ScenarioTotal, start: i64, length: i64) {
        total.operations += 1;
        total.response.add(length as f64 * 1e-9);
        total.stays.add(Stay { start, length: length as u64, part: 0, site: 0 });
    }

    fn rate(total: &ScenarioTotal) -> f64 {
        let kept = total.stays.kept();
        let starts = || kept.iter().map(|stay| stay.start);
        let seconds = starts().max().unwrap_or_default().abs_diff(starts().min().unwrap_or_default()) as f64 * 1e-9;
        kept.len() as f64 / seconds
    }

    fn found(totals: &[ScenarioTotal]) -> Vec<Option<Customers>> {
        let told: Vec<(&ScenarioTotal, Option<f64>)> = totals.iter().map(|total| (total, Some(rate(total)))).collect();
        customers(&told, &Found::default())
    }

    /// Load generators with a constant rate, and timers.
    #[test]
    fn regular_arrivals_from_outside_are_no_customers() {
        for (seed, of) in [(1, 1), (2, 3), (3, 10)] {
            let (mut draw, mut total, mut start) = (Draw(seed), ScenarioTotal::default(), 0);
            for _ in 0..4000 {
                // At a constant rate, or the sum of several exponential times, which is the more regular the more there are.
                start += if of == 1 { 20_000_000 } else { (0..of).map(|_| draw.time(0.02 / f64::from(of))).sum() };
                let wait = draw.time(0.03);
                add(&mut total, start, wait);
            }
            assert_eq!(customers(&[(&total, Some(50.0))], &Found::default()), [None], "{of}");
        }
    }

    /// Requests that take less than a step of the clock that tells their times, most of which have no length by it.
    #[test]
    fn short_arrivals_from_outside_by_coarse_clocks_are_no_customers() {
        let whole = |time: i64| time / 1_000_000 * 1_000_000;
        for (seed, interval, wait) in [(1, 0.004, 0.0004), (2, 0.004, 0.0004), (3, 0.0005, 0.001), (4, 0.02, 0.0001)] {
            let (mut draw, mut total, mut start) = (Draw(seed), ScenarioTotal::default(), 0);
            for _ in 0..8000 {
                start += draw.time(interval);
                let end = start + draw.time(wait);
                add(&mut total, whole(start), whole(end) - whole(start));
            }
            assert_eq!(customers(&[(&total, Some(1.0 / interval))], &Found::default()), [None], "{seed}");
        }
    }

    /// A job or a probe that a timer begins, by a clock that counts milliseconds; and one user who waits before the next request.
    #[test]
    fn timers_are_no_customers() {
        for (seed, every, wait) in [(1, 1_000_000_000_i64, 0.005), (2, 5_000_000_000, 0.7)] {
            let (mut draw, mut timed, mut waiting) = (Draw(seed), ScenarioTotal::default(), ScenarioTotal::default());
            let mut start = 0;
            for number in 0..200_i64 {
                let whole = draw.time(wait) / 1_000_000 * 1_000_000;
                add(&mut timed, number * every, whole);
                add(&mut waiting, start, whole);
                start += whole + every;
            }
            assert_eq!(found(&[timed]), [None]);
            assert!(!is_timed(&waiting.stays), "a user makes it");
        }
    }

    #[test]
    fn a_population_is_found_again() {
        for (population, think, wait) in [(1, 0.1, 0.02), (3, 0.2, 0.02), (7, 0.05, 0.05), (12, 0.2, 0.1)] {
            for seed in 1..=3 {
                let own = found(&closed(seed, population, (think, wait), 3000, 1))[0].expect("customers make it");
                let (least, most) = own.population.range;
                assert!(least <= population && most.is_none_or(|most| population <= most), "{population}: {own:?}");
                assert!(
                    own.population.customers.abs_diff(population) <= population.div_ceil(6),
                    "{population}: {own:?}"
                );
                let Load::Closed { think_time, .. } = own.load else { panic!("{own:?}") };
                let cycle = think + wait;
                let expected = f64::from(own.population.customers) / f64::from(population) * cycle - wait;
                assert!((think_time / expected - 1.0).abs() < 0.1, "{expected}: {own:?}");
            }
        }
    }

    #[test]
    fn what_is_known_answers_as_what_is_looked_for() {
        let totals = [closed(1, 8, (0.05, 0.05), 4000, 2), vec![open(2, 0.03, 0.05, 4000)]].concat();
        let known = Found::default();
        // Other scenarios have a rate each time.
        for without in [2, 0, 3, 2] {
            let told = |(number, total)| (total, Some(rate(total)).filter(|_| number != without));
            let told: Vec<(&ScenarioTotal, Option<f64>)> = totals.iter().enumerate().map(told).collect();
            let wanted = customers(&told, &Found::default());
            assert_eq!(customers(&told, &known), wanted, "{without}");
            assert!(without != 2 || wanted.iter().flatten().count() == 2, "{wanted:?}");
        }
    }

    #[test]
    fn customers_without_think_time_are_found() {
        let own = found(&closed(1, 4, (0.0, 0.05), 500, 1))[0].expect("customers make it");
        let Load::Closed { population, think_time } = own.load else { panic!("{own:?}") };
        assert!(population == 4 && think_time < 0.001, "{own:?}");
    }

    #[test]
    fn arrivals_from_outside_are_no_customers() {
        for seed in 1..=50 {
            for present in [0.1, 1.0, 5.0] {
                assert_eq!(found(&[open(seed, 0.05, present * 0.05, 3000)]), [None], "seed {seed}, {present}");
            }
        }
    }

    #[test]
    fn customers_of_all_scenarios_are_common_ones() {
        let told = found(&closed(1, 8, (0.05, 0.05), 4000, 2));
        let own: Vec<Customers> = told.into_iter().map(|own| own.expect("customers make it")).collect();
        assert!(own.iter().all(|own| own.scenarios == 2 && (7..=9).contains(&own.population.customers)), "{own:?}");
        let sum: u32 =
            own.iter().map(|own| if let Load::Closed { population, .. } = own.load { population } else { 0 }).sum();
        assert_eq!(sum, own[0].population.customers);
    }

    #[test]
    fn each_scenario_has_its_own_customers_or_none() {
        let [closed] = &closed(1, 3, (0.2, 0.05), 2000, 1)[..] else { panic!("one scenario") };
        let told = found(&[closed.clone(), open(2, 0.03, 0.05, 4000)]);
        assert_eq!(told[0].map(|own| (own.scenarios, own.population.customers)), Some((1, 3)));
        assert_eq!(told[1], None);
    }

    #[test]
    fn pauses_between_recordings_are_no_think_time() {
        let mut total = ScenarioTotal::default();
        for recording in 0..4 {
            for stay in open(recording + 1, 0.05, 0.1, 500).stays.kept() {
                add(&mut total, stay.start + recording as i64 * 1_000_000_000_000, stay.length as i64);
            }
        }
        assert_eq!(found(&[total]), [None]);
    }

    #[test]
    fn a_part_of_what_was_seen_tells_as_much() {
        // More than are kept.
        let own = found(&closed(1, 5, (0.1, 0.05), 60_000, 1))[0].expect("customers make it");
        assert_eq!(own.population.customers, 5);
        assert!((4000.0..=8192.0).contains(&own.population.arrivals), "{own:?}");
    }

    #[test]
    fn times_at_the_ends_of_clocks_do_no_harm() {
        let mut total = ScenarioTotal::default();
        for (start, length) in [(i64::MIN, 5), (0, i64::MAX), (i64::MAX, i64::MAX), (i64::MAX - 1, 0)] {
            add(&mut total, start, length);
        }
        assert_eq!(customers(&[(&total, Some(1.0))], &Found::default()), [None]);
    }
}
