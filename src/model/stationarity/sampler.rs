//! Whether it is the load that changes within a recording, or the part of operations that a sampler keeps.
//!
//! Both change the rates of all scenarios by one factor. Responses tell the load only where something queues. So where they stay, both are named, unless spans or the
//! identifiers of traces tell which it is.

use super::{Change, Grid, RARE, can_tell, cell_of, response};
use crate::diagnostic::quantity::time;
use crate::lqn::kept_ids::{ENOUGH, KeptIds};
use crate::lqn::starts::Stretch;
use crate::lqn::submodel::{Sampled, SubModel};
use crate::model::load::{Recording, short};

/// Logarithms of factors that differ by less, beside three standard errors, are of one factor.
const ALIKE: f64 = 0.1;

/// How many standard errors the mean of trace identifiers is off where it tells something.
const ERRORS: f64 = 4.0;

/// Means of recorded weights that differ by a smaller part are alike.
const WEIGHTS: f64 = 0.1;

/// Means of responses that differ by so many standard errors are different.
const GROWN: f64 = 4.0;

/// By so many they look different, and may be so by chance.
const LOOKS: f64 = 2.0;

/// The rates of all scenarios change by one factor, and responses do not change once for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneFactor {
    /// How many times as high the higher rate is.
    factor: f64,
    cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// The identifiers of traces are those that a sampler leaves in a part of the time.
    SamplerByIds,
    /// Operations tell for how many they stand, and these numbers change.
    SamplerRecorded,
    /// Operations tell that all of them were kept.
    Load,
    /// Where the rate is higher, responses of a scenario are longer: these means, seconds, at the lower and the higher rate.
    LoadByResponses(f64, f64),
    /// They are longer by no more than chance may do.
    LooksLikeLoad(f64, f64),
    Unknown,
}

impl OneFactor {
    /// Of what was recorded, where it is so.
    pub fn of(sub: &SubModel) -> Option<Self> {
        let recording = Recording::of(sub);
        let all: u64 = sub.scenarios.values().map(|total| total.operations).sum();
        let (mut ids, mut sampled, mut operations) = (KeptIds::default(), Sampled::default(), 0_u64);
        let (mut before, mut after, mut errors) = ((0.0, 0.0), (0.0, 0.0), Vec::new());
        let [mut grown, mut looks]: [Option<(f64, f64)>; 2] = [None; 2];
        for total in sub.scenarios.values() {
            if total.operations.saturating_mul(RARE) < all || !can_tell(total, &recording) {
                continue;
            }
            let cells = total.starts.cells();
            let grid = Grid::of(cells, total.starts.shift());
            let change = grid.rate().filter(|_| response(cells).is_none())?;
            let Counts { early, late } = Counts::of(&grid, &change);
            errors.push(((change.after / change.before).ln(), (1.0 / early.max(1.0) + 1.0 / late.max(1.0)).sqrt()));
            let at = cell_of(cells, total.starts.shift(), &change);
            let by = |errors| grows(cells.split_at_checked(at?)?, change.after > change.before, errors);
            grown = grown.or_else(|| by(GROWN));
            looks = looks.or_else(|| by(LOOKS));
            before = (before.0 + early, before.1 + change.before);
            after = (after.0 + late, after.1 + change.after);
            ids.merge(&total.ids);
            sampled.operations += total.sampled.operations;
            sampled.thousandths = sampled.thousandths.saturating_add(total.sampled.thousandths);
            sampled.squares = sampled.squares.saturating_add(total.sampled.squares);
            operations += total.operations;
        }
        if errors.is_empty() || before.1 <= 0.0 || after.1 <= 0.0 {
            return None;
        }
        let logarithm: f64 = (after.1 / before.1).ln();
        if errors.iter().any(|(own, error)| (own - logarithm).abs() > ALIKE + 3.0 * error) {
            return None;
        }
        let kept = (-logarithm.abs()).exp();
        let few = if logarithm < 0.0 { after.0 } else { before.0 };
        let few = few / (before.0 + after.0);
        let cause = if is_recorded(&sampled, operations, few, kept) {
            Cause::SamplerRecorded
        } else if sampled.operations == operations && sampled.thousandths == operations.saturating_mul(1000) {
            Cause::Load
        } else if is_by_ids(&ids, few, kept) {
            Cause::SamplerByIds
        } else if let Some((low, high)) = grown {
            Cause::LoadByResponses(low, high)
        } else if let Some((low, high)) = looks {
            Cause::LooksLikeLoad(low, high)
        } else {
            Cause::Unknown
        };
        Some(Self { factor: 1.0 / kept, cause })
    }

    /// Whether some of the operations may have been left out in a part of the time.
    pub fn may_be_sampler(&self) -> bool {
        !matches!(self.cause, Cause::Load | Cause::LoadByResponses(..))
    }

    /// What changes, in words.
    pub fn note(&self) -> String {
        let factor = short((self.factor * 100.0).round() / 100.0);
        match self.cause {
            Cause::SamplerByIds => format!(
                "a sampler changed, and not the load: trace identifiers show that about one of {factor} operations was kept where the rate is lower"
            ),
            Cause::SamplerRecorded => {
                "a sampler changed, and not the load: operations tell for how many they stand, and that changes"
                    .to_owned()
            }
            Cause::Load => "the load changed: operations tell that all of them were kept".to_owned(),
            Cause::LoadByResponses(low, high) => format!(
                "the load changed, and no sampler: responses of a scenario grow with the rate, from {} to {} on the mean",
                time(low),
                time(high)
            ),
            Cause::LooksLikeLoad(low, high) => format!(
                "all rates change by one factor, and responses of a scenario grow with them, from {} to {} on the mean, which may be chance: the load changed, or the part of operations that a \
                 sampler keeps. If it was a sampler, lower rates are about {factor} times too low",
                time(low),
                time(high)
            ),
            Cause::Unknown => format!(
                "all rates change by one factor and responses stay: the load changed, or the part of operations that a sampler keeps. \
                 If it was a sampler, lower rates are about {factor} times too low"
            ),
        }
    }
}

/// Starts before a change and after it.
struct Counts {
    early: f64,
    late: f64,
}

impl Counts {
    fn of(grid: &Grid, change: &Change) -> Self {
        let at = change.at.saturating_sub(1).min(grid.counts.len());
        Self { early: grid.counts[..at].iter().sum(), late: grid.counts[at..].iter().sum() }
    }
}

/// The mean responses at the lower and the higher of two rates, where those at the higher one are longer by more than so many standard errors.
fn grows((before, after): (&[Stretch], &[Stretch]), rises: bool, errors: f64) -> Option<(f64, f64)> {
    let (low, high) = if rises { (before, after) } else { (after, before) };
    let (low, high) = (mean(low)?, mean(high)?);
    let error = (low.1 / low.0).hypot(high.1 / high.0);
    ((high.0 / low.0).ln() > ALIKE.max(errors * error)).then_some((low.0, high.0))
}

/// The mean response in these stretches and its standard error, seconds.
fn mean(cells: &[Stretch]) -> Option<(f64, f64)> {
    let cells = || cells.iter().map(|cell| (cell.response.count as f64, cell.response.sum.as_f64()));
    let (count, sum) = cells().fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
    let mean = sum / count;
    // Of a ratio: stretches differ in how many operations begin there, and in how long these take.
    let squares: f64 = cells().map(|(count, sum)| (sum - mean * count).powi(2)).sum();
    (mean > 0.0 && cells().count() > 1).then(|| (mean, squares.sqrt() / count))
}

/// Whether operations stand for as many more where rates are lower as that takes, as their weights tell: by their mean, had all been kept where rates are higher, or by how they vary.
fn is_recorded(sampled: &Sampled, operations: u64, few: f64, kept: f64) -> bool {
    let weight = sampled.mean_weight().unwrap_or_default();
    let expected = (1.0 - few) + few / kept;
    let by_mean = (weight / expected - 1.0).abs() < WEIGHTS && weight > 1.0 + WEIGHTS;
    let varies = sampled.operations as f64 / sampled.effective();
    let expected = ((1.0 - few) + few / (kept * kept)) / (expected * expected);
    let by_spread = (varies / expected - 1.0).abs() < WEIGHTS && varies > 1.0 + WEIGHTS;
    sampled.operations == operations && (by_mean || by_spread)
}

/// Whether the numbers that a ratio sampler makes of identifiers have the mean of all of them together with the part `few` of which it kept so many.
fn is_by_ids(ids: &KeptIds, few: f64, kept: f64) -> bool {
    let count = ids.count as f64;
    let error = ERRORS / (12.0 * count).sqrt();
    let expected = 0.5 - 0.5 * few * (1.0 - kept);
    let tells = |sum: u128| {
        let mean = sum as f64 / count / 2.0_f64.powi(32);
        0.5 - mean > error && (mean - expected).abs() <= error
    };
    ids.count >= ENOUGH && ids.in_range().iter().any(|own| tells(own.sum))
}

#[cfg(test)]
mod tests {
    use super::{GROWN, LOOKS, grows, is_recorded};
    use crate::lqn::starts::Stretch;
    use crate::lqn::submodel::{Moments, Sampled};

    /// Stretches of ten operations each, of these mean responses, seconds.
    fn cells(means: &[f64]) -> Vec<Stretch> {
        let cell = |mean: &f64| {
            let mut response = Moments::default();
            (0..10).for_each(|_| response.add(*mean));
            Stretch { first: 0, last: 0, operations: 10, response }
        };
        means.iter().map(cell).collect()
    }

    #[test]
    fn longer_responses_at_a_higher_rate_are_those_of_a_load() {
        let (low, high) = (cells(&[0.010, 0.011, 0.009, 0.010]), cells(&[0.012, 0.5, 0.7, 0.012, 0.6, 0.4, 0.5]));
        let (own, other) = grows((&low, &high), true, GROWN).expect("they grow");
        assert!((own - 0.010).abs() < 1e-9 && other > 0.3, "{own} {other}");
        // The rate fell while they grew, which no load does.
        assert_eq!(grows((&low, &high), false, GROWN), None);
        // One stretch of many is chance.
        assert_eq!(grows((&low, &cells(&[0.010, 0.010, 0.011, 0.5, 0.010])), true, GROWN), None);
        assert_eq!(grows((&low, &cells(&[0.0104, 0.0103])), true, LOOKS), None);
        // By three standard errors they look longer.
        let high = cells(&[0.010, 0.014, 0.019, 0.011, 0.017, 0.010]);
        assert_eq!(grows((&low, &high), true, GROWN), None);
        assert!(grows((&low, &high), true, LOOKS).is_some());
    }

    /// A sampler that kept three of ten operations keeps one of ten: rates fall by a factor of three, and so many stand for more.
    #[test]
    fn weights_that_change_as_rates_do_tell_a_sampler() {
        let of = |parts: [(u64, f64); 2]| {
            let mut sampled = Sampled::default();
            for (operations, weight) in parts {
                sampled.add_alike(operations, weight);
            }
            is_recorded(&sampled, 400, 0.25, 1.0 / 3.0)
        };
        assert!(of([(300, 10.0 / 3.0), (100, 10.0)]) && of([(300, 1.0), (100, 3.0)]));
        // One weight throughout, and one that changes by another factor.
        assert!(!of([(300, 10.0 / 3.0), (100, 10.0 / 3.0)]) && !of([(300, 5.0), (100, 8.0)]));
    }
}
