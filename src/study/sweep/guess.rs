//! Where to start a point from: what the solutions of points before it lead to expect.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Grid;

/// So many numbers are kept at most, all points together.
const MOST: usize = 1 << 22;

/// Values are extrapolated with weights up to these, all together: errors grow by that.
const MOST_WEIGHT: f64 = 12.0;

/// Points that are looked back to at most, along the row and across the rows.
const ALONG: usize = 2;
const ACROSS: usize = 2;

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
    /// From the points before, the solution goes on along the row as it did up to there, and across the rows as it did in
    /// those beside; what both have in common counts once. So what is missed is what is new in both directions.
    pub(super) fn guess(&self, grid: &Grid, before: usize, own: usize) -> Vec<(f64, &[f64])> {
        let (own, before) = (grid.point(own), grid.point(before));
        let axes: Vec<usize> = (0..own.len()).filter(|axis| own[*axis] != before[*axis]).collect();
        let [axis] = axes[..] else { return Vec::new() };
        let along = self.trail(grid, &own, axis, own[axis] < before[axis], ALONG);
        let sides = (0..own.len()).filter(|side| *side != axis).flat_map(|side| [(side, false), (side, true)]);
        let known = |(point, weight): &(Vec<usize>, f64)| Some((*weight, self.at(grid, point)?));
        let mut terms: Vec<(f64, &[f64])> = along.iter().filter_map(known).collect();
        for (side, up) in sides {
            for far in (1..=ACROSS).rev() {
                if let Some(beside) = self.crossed(grid, &along, (side, up), far, &own) {
                    terms.extend(beside);
                    return terms;
                }
            }
        }
        terms
    }

    /// The known points that come next in a direction, at most so many, with the weights that take them to the point.
    fn trail(&self, grid: &Grid, own: &[usize], axis: usize, up: bool, most: usize) -> Vec<(Vec<usize>, f64)> {
        let points: Vec<Vec<usize>> = (1..=most)
            .map_while(|steps| moved(grid, own, axis, up, steps).filter(|point| self.at(grid, point).is_some()))
            .collect();
        for count in (1..=points.len()).rev() {
            let places: Vec<f64> = points[..count].iter().map(|point| grid.axes[axis][point[axis]]).collect();
            if let Some(weights) = weights(&places, grid.axes[axis][own[axis]]) {
                return points.into_iter().zip(weights).collect();
            }
        }
        Vec::new()
    }

    /// What the rows beside, so many of them, say of the point beyond what its own row does.
    fn crossed(
        &self,
        grid: &Grid,
        along: &[(Vec<usize>, f64)],
        (side, up): (usize, bool),
        far: usize,
        own: &[usize],
    ) -> Option<Vec<(f64, &[f64])>> {
        let across = self.trail(grid, own, side, up, far);
        if across.len() < far {
            return None;
        }
        let mut terms = Vec::new();
        for (point, weight) in &across {
            terms.push((*weight, self.at(grid, point)?));
            for (behind, part) in along {
                let mut corner = behind.clone();
                corner[side] = point[side];
                terms.push((-weight * part, self.at(grid, &corner)?));
            }
        }
        Some(terms)
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

/// The weights with which values at places make the polynomial through them at another place (Lagrange); `None` where
/// places are too unlike in their distances.
fn weights(places: &[f64], at: f64) -> Option<Vec<f64>> {
    let weight = |own: usize| -> f64 {
        let others = places.iter().enumerate().filter(|(other, _)| *other != own);
        others.map(|(_, place)| (at - place) / (places[own] - place)).product()
    };
    let weights: Vec<f64> = (0..places.len()).map(weight).collect();
    let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
    (sum < MOST_WEIGHT).then_some(weights)
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
