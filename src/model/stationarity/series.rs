//! Where the mean of a series of values changes.
//!
//! A series is cut into cells of time. Each has a number of values and their sum: so many responses and how long they took, or so many
//! seconds and how many operations began in them.

/// The bridge of counts goes so far from zero with a probability of 2 e^(-2 · 2.3²), 5 in 100,000. The rest is for the variance, which is estimated.
const FAR: f64 = 2.3;

/// Values such as responses depend on those before, so that their bridge goes farther.
const FARTHER: f64 = 3.0;

/// The bridge of logarithms rises or falls by so many standard deviations from one border to another. Of steady stations that are 30 to 80 % busy it did so in 2 of 1,600
/// recordings of 1,000 and 4,000 requests, where all stretches within lie on one side (ours, by simulation).
const SPELL: f64 = 4.0;

/// Stretches of which the variance of logarithms is taken are of no more than one of so many cells: fewer than half of their pairs hold a border of a spell.
const BORDERS: usize = 12;

/// Values before and after a change are compared in stretches of the series' length by so many.
const STRETCHES: usize = 16;

/// At least so many of them lie on each side.
const SIDE: usize = 3;

/// A trend is one of so many stretches of equal length.
const TREND: usize = 8;

/// Of the pairs of these no more than one of so many lie the other way, 3 of 28: 222 of 40,320 orders have so few.
const OUT_OF_ORDER: usize = 9;

/// Stretches of which the variance is taken are of no more than one of so many cells.
const WINDOWS: usize = 8;

/// The median of the square of a standard normal variable.
const MEDIAN: f64 = 0.455;

/// Means that differ by a smaller part of that of all are alike.
pub const MATTERS: f64 = 0.1;

/// The fewest cells of which changes can be told.
pub const FEWEST_CELLS: usize = 12;

/// Each part has at least so many of the cells.
pub const PART: usize = 2;

/// A change of a mean at a border between cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// How many cells come before.
    pub at: usize,
    /// The mean of the values before.
    pub before: f64,
    /// The mean of those after it.
    pub after: f64,
    /// How many times as far the bridge goes as it does by chance.
    pub clear: f64,
}

/// A stretch of time in which a mean is another one, and after which it is again what it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spell {
    /// Its first cell.
    pub from: usize,
    /// The first cell after it.
    pub to: usize,
    /// The mean of the values in it.
    pub within: f64,
    /// The mean of those before and after it.
    pub beside: f64,
}

/// The change of a number of events a second, of which cells have seconds and events.
pub fn of_counts(cells: &[(f64, f64)]) -> Option<Change> {
    change(cells, FAR, &[2])
}

/// The change of the mean of values that depend on those before, of which cells have the number and the sum.
pub fn of_means(cells: &[(f64, f64)]) -> Option<Change> {
    // A trend makes long stretches differ, and a variance of these.
    let trend = || change(cells, FARTHER, &[2]).filter(|_| is_trend(cells));
    change(cells, FARTHER, &[2, 4, 8]).filter(|change| is_divided(cells, change.at)).or_else(trend)
}

/// The spell in which the mean of values that depend on those before is most clearly another one (circular binary segmentation: Olshen and others 2004).
///
/// What makes responses long makes them vary. So logarithms of the means of cells are looked at, each as much as any other, and their variance is by medians, which a spell
/// hardly moves.
pub fn spell_of_means(cells: &[(f64, f64)]) -> Option<Spell> {
    let known: Vec<usize> = (0..cells.len()).filter(|at| cells[*at].0 > 0.0 && cells[*at].1 > 0.0).collect();
    if known.len() < FEWEST_CELLS {
        return None;
    }
    let logs: Vec<f64> = known.iter().map(|at| (cells[*at].1 / cells[*at].0).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let mut bridge = vec![0.0];
    for log in &logs {
        bridge.push(bridge[bridge.len() - 1] + log - mean);
    }
    let last = logs.len() - PART;
    let pairs = (PART..=last).flat_map(|from| (from + PART..=last).map(move |to| (from, to)));
    let rise = |(from, to): (usize, usize)| (bridge[to] - bridge[from]).abs();
    let (from, to) = pairs.max_by(|one, other| rise(*one).total_cmp(&rise(*other)))?;
    let far = SPELL * (variance_of_logs(&logs) * logs.len() as f64).sqrt();
    if rise((from, to)) <= far {
        return None;
    }
    let (from, to) = (known[from], known[to]);
    let (_, within) = mean_of(&cells[from..to])?;
    let (_, beside) = mean_of(&[&cells[..from], &cells[to..]].concat())?;
    let spell = Spell { from, to, within, beside };
    let differs = (within - beside).abs() > MATTERS * beside;
    (differs && is_enclosed(cells, &spell)).then_some(spell)
}

/// The variance of a value as sums over many of them see it, by the medians of what neighbouring stretches of one to eight differ.
fn variance_of_logs(logs: &[f64]) -> f64 {
    let longest = (logs.len() / BORDERS).max(2);
    let of = |length: usize| {
        let length = length.min(longest);
        let square = |both: &[f64]| {
            let (one, other) = both.split_at(length);
            (one.iter().sum::<f64>() - other.iter().sum::<f64>()).powi(2) / (2 * length) as f64
        };
        let mut squares: Vec<f64> = logs.windows(2 * length).map(square).collect();
        squares.sort_by(f64::total_cmp);
        squares.get(squares.len() / 2).map_or(0.0, |median| median / MEDIAN)
    };
    [1, 2, 4, 8].into_iter().map(of).fold(0.0, f64::max)
}

/// Whether the means of all stretches within a spell lie on one side of those of all before and after it.
fn is_enclosed(cells: &[(f64, f64)], spell: &Spell) -> bool {
    let length = (cells.len() / STRETCHES).max(1);
    let within = means(&cells[spell.from..spell.to], length);
    let beside = [means(&cells[..spell.from], length), means(&cells[spell.to..], length)].concat();
    are_apart(&within, &beside)
}

/// The number of values and their mean; `None` where there are no values.
pub fn mean_of(cells: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (count, sum) = cells.iter().fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
    (count > 0.0).then(|| (count, sum / count))
}

/// Whether the means of all stretches before a border lie on one side of those of all after it.
fn is_divided(cells: &[(f64, f64)], at: usize) -> bool {
    let length = (cells.len() / STRETCHES).max(1);
    let reversed: Vec<(f64, f64)> = cells[..at].iter().rev().copied().collect();
    let (before, after) = (means(&reversed, length), means(&cells[at..], length));
    are_apart(&before, &after)
}

/// The means of stretches of so many cells, from the first on; what is left over is none.
fn means(cells: &[(f64, f64)], length: usize) -> Vec<f64> {
    cells.chunks_exact(length).filter_map(mean_of).map(|(_, mean)| mean).collect()
}

/// Whether all of some means lie on one side of all others, and there are enough of both.
fn are_apart(some: &[f64], others: &[f64]) -> bool {
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |of: &[f64]| of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    some.len() >= SIDE && others.len() >= SIDE && (least(some) > most(others) || most(some) < least(others))
}

/// Whether the mean rises, or falls, throughout: of the pairs of stretches hardly any is in another order (Kendall 1938).
fn is_trend(cells: &[(f64, f64)]) -> bool {
    let length = cells.len().div_ceil(TREND).max(1);
    let means: Vec<f64> = cells.chunks(length).filter_map(mean_of).map(|(_, mean)| mean).collect();
    let pairs = || means.iter().enumerate().flat_map(|(at, one)| means[at + 1..].iter().map(move |next| (one, next)));
    let (rises, falls) =
        (pairs().filter(|(one, next)| one < next).count(), pairs().filter(|(one, next)| one > next).count());
    means.len() + 1 >= TREND && rises.min(falls) * OUT_OF_ORDER <= rises + falls
}

/// The variance of a value as sums over many of them see it: from neighbouring cells on the mean, and from neighbouring stretches of several by the
/// median, since a change moves only some of these.
fn variance(cells: &[(f64, f64)], lengths: &[usize]) -> f64 {
    let squares = |cells: &[(f64, f64)], length: usize| -> Vec<f64> {
        let pair = |both: &[(f64, f64)]| {
            let (one, other) = (mean_of(&both[..length])?, mean_of(&both[length..])?);
            Some((one.1 - other.1).powi(2) / (1.0 / one.0 + 1.0 / other.0))
        };
        cells.windows(2 * length).filter_map(pair).collect()
    };
    let filled: Vec<(f64, f64)> = cells.iter().copied().filter(|own| own.0 > 0.0).collect();
    let near = squares(&filled, 1);
    let mut variance = near.iter().sum::<f64>() / (near.len().max(1) as f64);
    // Of pairs of long stretches so many hold one border that it would make their median.
    let longest = (cells.len() / WINDOWS).max(2);
    for length in lengths.iter().map(|length| (*length).min(longest)) {
        let mut own = squares(cells, length);
        if own.len() >= 8 {
            own.sort_by(f64::total_cmp);
            variance = variance.max(own[own.len() / 2] / MEDIAN);
        }
    }
    variance
}

/// The change of the mean of values, of which each cell has so many with such a sum, where the bridge goes so far. Values that depend on those
/// before have their variance from stretches of so many cells, too.
fn change(cells: &[(f64, f64)], far: f64, lengths: &[usize]) -> Option<Change> {
    let (count, mean) = mean_of(cells).filter(|_| cells.len() >= FEWEST_CELLS)?;
    let sum = count * mean;
    let variance = variance(cells, lengths);
    let (mut before, mut best): (_, Option<Change>) = ((0.0, 0.0), None);
    for at in 1..cells.len() {
        before = (before.0 + cells[at - 1].0, before.1 + cells[at - 1].1);
        if at < PART || at + PART > cells.len() || before.0 <= 0.0 || before.0 >= count {
            continue;
        }
        let clear = (before.1 - before.0 * mean).abs() / (variance * count).sqrt() / far;
        if best.is_none_or(|best| clear > best.clear) {
            let after = (sum - before.1) / (count - before.0);
            best = Some(Change { at, before: before.1 / before.0, after, clear });
        }
    }
    let change = best?;
    let differs = (change.before - change.after).abs() > MATTERS * mean;
    (change.clear > 1.0 && differs).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::{FAR, FARTHER, change, of_means, spell_of_means};

    #[test]
    fn a_step_is_found_where_it_is() {
        let cells: Vec<(f64, f64)> =
            (0..40).map(|cell| (50.0, 50.0 * if cell < 10 { 2.0 } else { 1.0 } + f64::from(cell * 7 % 5))).collect();
        let found = change(&cells, FARTHER, &[2, 4, 8]).expect("the mean halves");
        assert_eq!(found.at, 10);
        assert!((found.before - 2.04).abs() < 0.02 && (found.after - 1.04).abs() < 0.02);
        let steady: Vec<(f64, f64)> = (0..40).map(|cell| (50.0, 50.0 + f64::from(cell * 7 % 5))).collect();
        assert_eq!(change(&steady, FAR, &[2]), None);
    }

    #[test]
    fn a_spell_is_found_where_it_is() {
        let cells = |slow: f64| -> Vec<(f64, f64)> {
            let of =
                |cell: i32| (50.0, 50.0 * if (20..36).contains(&cell) { slow } else { 1.0 } + f64::from(cell * 7 % 5));
            (0..64).map(of).collect()
        };
        let found = spell_of_means(&cells(2.0)).expect("there is one");
        assert_eq!((found.from, found.to), (20, 36));
        assert!((found.within - 2.04).abs() < 0.02 && (found.beside - 1.04).abs() < 0.02, "{found:?}");
        assert_eq!(spell_of_means(&cells(1.0)), None);
    }

    /// Each cell is a little slower than the one before, but for noise.
    #[test]
    fn a_slow_growth_is_a_change() {
        let cells: Vec<(f64, f64)> =
            (0..64).map(|cell| (50.0, 50.0 + f64::from(cell) * 0.8 + f64::from(cell * 37 % 23))).collect();
        let found = of_means(&cells).expect("it doubles");
        assert!((20..44).contains(&found.at) && found.after > 1.3 * found.before, "{found:?}");
    }
}
