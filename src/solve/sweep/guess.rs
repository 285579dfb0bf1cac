//! Where to start a point from: what the solutions of points before it lead to expect.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Grid;

/// So many numbers are kept at most, all points together.
const MOST: usize = 1 << 22;

/// Where the solver stood at points, by their numbers; the latest that fit.
#[derive(Default)]
pub(super) struct Ends {
    kept: FxHashMap<usize, Vec<f64>>,
    order: VecDeque<usize>,
    numbers: usize,
}

impl Ends {
    /// Keeps where the solver stood at a point.
    pub(super) fn keep(&mut self, point: usize, numbers: &[f64]) {
        self.numbers += numbers.len();
        self.kept.insert(point, numbers.to_vec());
        self.order.push_back(point);
        while self.numbers > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers -= self.kept.remove(&oldest).map_or(0, |numbers| numbers.len());
        }
    }

    /// The solution of a point, told from those of others with weights; nothing where none is known that helps.
    ///
    /// From the point before, the solution goes on as it did up to there; and it bends as it did in the row beside, if that
    /// has been walked. So what is missed is the bend that is new in this row, of the third order in the steps.
    pub(super) fn guess(&self, grid: &Grid, before: usize, own: usize) -> Vec<(f64, &[f64])> {
        let (own, before) = (grid.point(own), grid.point(before));
        let axes: Vec<usize> = (0..own.len()).filter(|axis| own[*axis] != before[*axis]).collect();
        let [axis] = axes[..] else { return Vec::new() };
        let forward = own[axis] > before[axis];
        let back = |point: &[usize], steps: usize| moved(grid, point, axis, !forward, steps);
        let stride = back(&own, 2).map_or(0.0, |further| {
            let [a, b, c] = [&further, &before, &own].map(|point| grid.axes[axis][point[axis]]);
            let stride = (c - b) / (b - a);
            if stride.is_finite() && (0.0..=4.0).contains(&stride) { stride } else { 0.0 }
        });
        let line = |point: &[usize], stride: f64| -> Option<Vec<(f64, &[f64])>> {
            let mut terms = vec![(1.0 + stride, self.at(grid, &back(point, 1)?)?)];
            if stride > 0.0 {
                terms.push((-stride, self.at(grid, &back(point, 2)?)?));
            }
            Some(terms)
        };
        let beside = |stride: f64| -> Option<Vec<(f64, &[f64])>> {
            let rows = (0..own.len()).filter(|side| *side != axis).flat_map(|side| [(side, false), (side, true)]);
            rows.filter_map(|(side, up)| moved(grid, &own, side, up, 1)).find_map(|point| {
                let mut terms = vec![(1.0, self.at(grid, &point)?)];
                terms.extend(line(&point, stride)?.into_iter().map(|(weight, numbers)| (-weight, numbers)));
                Some(terms)
            })
        };
        for stride in [stride, 0.0] {
            if let Some(mut terms) = line(&own, stride) {
                terms.extend(beside(stride).unwrap_or_default());
                return terms;
            }
        }
        Vec::new()
    }

    fn at(&self, grid: &Grid, point: &[usize]) -> Option<&[f64]> {
        self.kept.get(&grid.number(point)).map(Vec::as_slice)
    }
}

/// The point so many steps up or down on an axis.
fn moved(grid: &Grid, point: &[usize], axis: usize, up: bool, steps: usize) -> Option<Vec<usize>> {
    let place = if up { point[axis].checked_add(steps)? } else { point[axis].checked_sub(steps)? };
    let mut point = point.to_vec();
    point[axis] = place;
    (place < grid.axes[axis].len()).then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_smooth_is_guessed() {
        let grid = Grid { axes: vec![vec![1.0, 2.0, 4.0], vec![1.0, 2.0, 3.0, 5.0]] };
        // Bends along the second axis, and is steeper the further it is on the first.
        let value = |number: usize| {
            let point = grid.point(number);
            let (x, y) = (grid.axes[0][point[0]], grid.axes[1][point[1]]);
            3.0 + x * x - 2.0 * y + 0.5 * x * y + 0.25 * y * y
        };
        let guessed = |ends: &Ends, before: usize, own: usize| -> Option<f64> {
            let terms = ends.guess(&grid, before, own);
            (!terms.is_empty()).then(|| terms.iter().map(|(weight, numbers)| weight * numbers[0]).sum())
        };
        let mut ends = Ends::default();
        let line: Vec<usize> = (0..grid.len()).map(|place| grid.in_line(place)).collect();
        for (place, &own) in line.iter().enumerate() {
            if place == 1 {
                assert_eq!(guessed(&ends, line[0], own), Some(value(line[0])));
            }
            // In the second and third row, from the third point on, nothing is missed.
            if place >= 4 && place % 4 >= 2 {
                let guess = guessed(&ends, line[place - 1], own).expect("there are points before");
                assert!((guess - value(own)).abs() < 1e-12, "{place}: {guess} and {}", value(own));
            }
            ends.keep(own, &[value(own)]);
        }
        assert_eq!(guessed(&ends, line[0], line[5]), None, "no step on one axis");
    }
}
