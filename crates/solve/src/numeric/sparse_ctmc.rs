//! Markov chains of many states with few moves each: how likely each state is, and the time in each before absorption.

use crate::numeric::anderson::Anderson;

/// Sweeps at most, and in a round.
const MOST: usize = 4000;
const ROUND: usize = 4;
/// Rounds before an acceleration begins: it costs as much as two sweeps.
const PLAIN: usize = 5;
/// Chains up to this size are solved by elimination.
const SMALL: usize = 120;
/// Multiplications of an elimination at most, where sweeps do not converge: about a second.
const BAND_WORK: usize = 500_000_000;
/// Rates that it keeps at most: 80 MB.
const BAND_RATES: usize = 10_000_000;
/// Sweeps of the iteration for the time in each state, and by how much times may change in the last one.
const ABSORBING_SWEEPS: usize = 2000;
const ABSORBING_BOUND: f64 = 1e-10;

/// Probabilities of states from the rates between them and where to start, and the sweeps that it took until they changed
/// by no more than the bound; nothing where they are not found. States of a level are close to each other: where there are
/// several levels, how likely each is comes from a chain of levels between rounds of sweeps (Takahashi 1975). Where sweeps do not
/// converge, a chain whose moves are all to levels nearby is solved by elimination.
pub(crate) fn stationary(
    levels: &[u32],
    moves: &[(u32, u32, f64)],
    start: Option<Vec<f64>>,
    bound: f64,
) -> Option<(Vec<f64>, usize)> {
    let states = levels.len();
    if states <= SMALL {
        return Some((eliminate(states, moves)?, 0));
    }
    iterate(levels, moves, start, bound).or_else(|| Some((eliminate_in_band(levels, moves)?, 0)))
}

/// Sweeps, with levels balanced between rounds of them, until probabilities change by no more than the bound.
fn iterate(
    levels: &[u32],
    moves: &[(u32, u32, f64)],
    start: Option<Vec<f64>>,
    bound: f64,
) -> Option<(Vec<f64>, usize)> {
    let states = levels.len();
    let incoming = Incoming::new(states, moves);
    let mut point = start.unwrap_or_else(|| vec![1.0 / states as f64; states]);
    let mut probabilities = point.clone();
    let mut acceleration = Anderson::of_parts();
    let several = levels.iter().any(|level| *level != levels[0]);
    for round in 0..MOST / ROUND {
        if several {
            balance(levels, moves, &mut probabilities)?;
        }
        for sweep in 1..=ROUND {
            let change = incoming.sweep(&mut probabilities);
            let total: f64 = probabilities.iter().sum();
            if !total.is_finite() || total <= 0.0 {
                return None;
            }
            for value in &mut probabilities {
                *value /= total;
            }
            if change < bound * total {
                return Some((probabilities, round * ROUND + sweep));
            }
        }
        if round < PLAIN {
            point.copy_from_slice(&probabilities);
        } else {
            acceleration.accelerate(&mut point, &probabilities);
            probabilities.copy_from_slice(&point);
        }
    }
    None
}

/// Makes levels as likely as a chain of them says.
fn balance(levels: &[u32], moves: &[(u32, u32, f64)], probabilities: &mut [f64]) -> Option<()> {
    let count = levels.iter().max().map_or(0, |level| *level as usize + 1);
    let mut totals = vec![0.0; count];
    for (level, probability) in levels.iter().zip(&*probabilities) {
        totals[*level as usize] += probability;
    }
    if totals.iter().any(|total| *total <= 0.0) {
        return Some(());
    }
    let between: Vec<(u32, u32, f64)> = moves
        .iter()
        .filter(|(from, to, _)| levels[*from as usize] != levels[*to as usize])
        .map(|&(from, to, rate)| {
            let level = levels[from as usize];
            (level, levels[to as usize], rate * probabilities[from as usize] / totals[level as usize])
        })
        .collect();
    let new = eliminate(count, &between)?;
    for (level, probability) in levels.iter().zip(probabilities) {
        *probability *= new[*level as usize] / totals[*level as usize];
    }
    Some(())
}

/// Moves by where they lead.
struct Incoming {
    first: Vec<u32>,
    from: Vec<u32>,
    rate: Vec<f64>,
    /// One over the rate out of each state.
    out: Vec<f64>,
}

impl Incoming {
    fn new(states: usize, moves: &[(u32, u32, f64)]) -> Self {
        let mut first = vec![0_u32; states + 1];
        let mut out = vec![0.0; states];
        for &(from, to, rate) in moves.iter().filter(|(from, to, _)| from != to) {
            first[to as usize + 1] += 1;
            out[from as usize] += rate;
        }
        for state in 0..states {
            first[state + 1] += first[state];
        }
        let mut next = first.clone();
        let count = first[states] as usize;
        let (mut sources, mut rates) = (vec![0; count], vec![0.0; count]);
        for &(from, to, rate) in moves.iter().filter(|(from, to, _)| from != to) {
            let place = next[to as usize] as usize;
            next[to as usize] += 1;
            sources[place] = from;
            rates[place] = rate;
        }
        let out = out.into_iter().map(|rate: f64| if rate > 0.0 { 1.0 / rate } else { 0.0 }).collect();
        Self { first, from: sources, rate: rates, out }
    }

    /// A Gauss–Seidel sweep over all states and back, and by how much probabilities changed in all.
    fn sweep(&self, probabilities: &mut [f64]) -> f64 {
        let states = self.out.len();
        (0..states).chain((0..states).rev()).map(|state| self.relax(state, 0.0, probabilities)).sum()
    }

    /// Brings a state into balance with those that lead to it and what comes from outside; by how much it changed.
    fn relax(&self, state: usize, outside: f64, values: &mut [f64]) -> f64 {
        let range = self.first[state] as usize..self.first[state + 1] as usize;
        let ways = self.from[range.clone()].iter().zip(&self.rate[range]);
        let flow: f64 = ways.map(|(from, rate)| values[*from as usize] * rate).sum();
        let new = (outside + flow) * self.out[state];
        let change = (new - values[state]).abs();
        values[state] = new;
        change
    }
}

/// A chain that ends: from each state one without a way out is reached.
pub(crate) struct AbsorbingChain {
    /// How likely it begins in each state.
    begin: Vec<f64>,
    incoming: Incoming,
}

impl AbsorbingChain {
    /// From where it begins and the rates between states.
    pub fn new(begin: Vec<f64>, moves: &[(u32, u32, f64)]) -> Self {
        let incoming = Incoming::new(begin.len(), moves);
        Self { begin, incoming }
    }

    /// Mean time in each state before the end, seconds, from what is known of it; that of another chain is not used. States are
    /// best in an order in which it mostly goes to lower ones.
    pub fn times(&self, known: &mut Vec<f64>) {
        if known.len() != self.begin.len() {
            known.clone_from(&self.begin);
        }
        let states = self.begin.len();
        for _ in 0..ABSORBING_SWEEPS {
            let sweep = (0..states).rev().chain(0..states);
            let change: f64 = sweep.map(|state| self.incoming.relax(state, self.begin[state], known)).sum();
            if change <= ABSORBING_BOUND * known.iter().sum::<f64>() {
                break;
            }
        }
    }

    /// The variance of the time until the end, seconds².
    pub fn variance(mut self) -> f64 {
        let (mut times, mut after) = (Vec::new(), Vec::new());
        self.times(&mut times);
        let mean: f64 = times.iter().sum();
        // The time in each state after one that is spent in the others as long as on the mean: half the second moment.
        self.begin = times;
        self.times(&mut after);
        (2.0 * after.iter().sum::<f64>() - mean * mean).max(0.0)
    }
}

/// Elimination without subtraction, of states in the order of their levels: only what lies within the longest move of the diagonal is
/// ever filled. Nothing where that is too much work.
fn eliminate_in_band(levels: &[u32], moves: &[(u32, u32, f64)]) -> Option<Vec<f64>> {
    let states = levels.len();
    let mut order: Vec<u32> = (0..states as u32).collect();
    order.sort_by_key(|state| levels[*state as usize]);
    let mut place = vec![0; states];
    for (at, state) in order.iter().enumerate() {
        place[*state as usize] = at;
    }
    let places = || moves.iter().map(|&(from, to, rate)| (place[from as usize], place[to as usize], rate));
    let band = places().map(|(from, to, _)| from.abs_diff(to)).max().unwrap_or(0);
    // Row by row, what leads from a state to those at most a band before or behind it.
    let width = 2 * band + 1;
    if states.saturating_mul(width) > BAND_RATES || states.saturating_mul(band).saturating_mul(band) > BAND_WORK {
        return None;
    }
    let at = |from: usize, to: usize| from * width + band + to - from;
    let mut rates = vec![0.0; states * width];
    for (from, to, rate) in places().filter(|(from, to, _)| from != to) {
        rates[at(from, to)] += rate;
    }
    let mut out = vec![0.0; states];
    for last in (1..states).rev() {
        let first = last.saturating_sub(band);
        let total: f64 = rates[at(last, first)..at(last, last)].iter().sum();
        out[last] = total;
        if total <= 0.0 {
            return None;
        }
        for from in first..last {
            let part = rates[at(from, last)] / total;
            if part > 0.0 {
                for to in first..last {
                    rates[at(from, to)] += part * rates[at(last, to)];
                }
            }
        }
    }
    let mut found = vec![0.0; states];
    found[0] = 1.0;
    for state in 1..states {
        let first = state.saturating_sub(band);
        let flow: f64 = (first..state).map(|from| found[from] * rates[at(from, state)]).sum();
        found[state] = flow / out[state];
    }
    let total: f64 = found.iter().sum();
    total.is_finite().then(|| place.into_iter().map(|at| found[at] / total).collect())
}

/// Elimination without subtraction (Grassmann, Taksar and Heyman 1985).
fn eliminate(states: usize, moves: &[(u32, u32, f64)]) -> Option<Vec<f64>> {
    let mut rates = vec![0.0; states * states];
    for &(from, to, rate) in moves.iter().filter(|(from, to, _)| from != to) {
        rates[from as usize * states + to as usize] += rate;
    }
    let mut out = vec![0.0; states];
    for last in (1..states).rev() {
        let total: f64 = rates[last * states..last * states + last].iter().sum();
        out[last] = total;
        if total <= 0.0 {
            return None;
        }
        let (before, row) = rates.split_at_mut(last * states);
        for from in before.chunks_exact_mut(states) {
            let part = from[last] / total;
            if part > 0.0 {
                for to in 0..last {
                    from[to] += part * row[to];
                }
            }
        }
    }
    let mut probabilities = vec![0.0; states];
    probabilities[0] = 1.0;
    for state in 1..states {
        let flow: f64 = (0..state).map(|from| probabilities[from] * rates[from * states + state]).sum();
        probabilities[state] = flow / out[state];
    }
    let total: f64 = probabilities.iter().sum();
    for value in &mut probabilities {
        *value /= total;
    }
    total.is_finite().then_some(probabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of customers in a shop, each of which leaves letters for one clerk; the levels are the letters. All share a processor.
    fn letters(customers: u32, most: u32) -> (Vec<u32>, Vec<(u32, u32, f64)>) {
        let number = |asking: u32, letters: u32| letters * (customers + 1) + asking;
        let (mut levels, mut moves) = (Vec::new(), Vec::new());
        for letters in 0..=most {
            for asking in 0..=customers {
                levels.push(letters);
                let own = number(asking, letters);
                let share = 1.0 / f64::from(asking + u32::from(letters > 0)).max(1.0);
                if asking < customers {
                    moves.push((own, number(asking + 1, letters), f64::from(customers - asking) / 2.0));
                }
                if asking > 0 {
                    let rate = share * f64::from(asking) / 0.08;
                    moves.push((own, number(asking - 1, letters), rate));
                    if letters < most {
                        moves.push((own, number(asking, letters + 1), rate));
                    }
                }
                if letters > 0 {
                    moves.push((own, number(asking, letters - 1), share / 0.06));
                }
            }
        }
        (levels, moves)
    }

    #[test]
    fn elimination_in_a_band_is_elimination() {
        let (levels, moves) = letters(8, 40);
        let whole = eliminate(levels.len(), &moves).expect("the chain is irreducible");
        let banded = eliminate_in_band(&levels, &moves).expect("its band is narrow");
        for (one, other) in whole.iter().zip(&banded) {
            assert!((one - other).abs() <= 1e-12 * one.max(1e-9), "{one} {other}");
        }
    }

    #[test]
    fn a_chain_of_many_levels_is_solved() {
        for most in [16, 32, 64, 128] {
            let (levels, moves) = letters(8, most);
            let (found, _) = stationary(&levels, &moves, None, 1e-10).expect("it is solved");
            let exact = eliminate_in_band(&levels, &moves).expect("its band is narrow");
            let error: f64 = found.iter().zip(&exact).map(|(one, other)| (one - other).abs()).sum();
            assert!(error < 1e-7, "{most} letters: {error}");
        }
    }
}
