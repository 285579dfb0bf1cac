//! Bounds on differences of variables: `x - y <= 3`, kept closed under addition.

use std::collections::{BTreeMap, HashMap};

use crate::ast::Comparison;
use crate::check::contradiction::{Compared, Sorts, sum};

/// Variables of one body that are looked at together.
const MAX_VARIABLES: usize = 64;
/// How often bounds are rounded to whole numbers and added up again.
const ROUNDS: usize = 3;

/// What a difference is at most: a number, and -1 (or less) behind it where the difference is less than that.
type Most = (i128, i64);

/// Variables, and what the second of two is more than the first at most.
struct Bounds<'t> {
    numbers: HashMap<&'t str, usize>,
    /// Whether it is a whole number; the first is nought.
    whole: Vec<bool>,
    most: Vec<Vec<Option<Most>>>,
}

/// Whether comparisons exclude each other by what lies between their sides: `X < Y, Y < X`, `X < 3, X > 5`; or have two sides that must be
/// equal and differ.
pub(super) fn is_circle(compared: &[Compared<'_>], sorts: &Sorts<'_>) -> bool {
    let mut bounds = Bounds { numbers: HashMap::new(), whole: vec![true], most: vec![vec![Some((0, 0))]] };
    let mut unequal = Vec::new();
    for one in compared {
        let Some((x, y, by)) = bounds.difference(one, sorts) else { continue };
        // x ? y + by
        match one.comparison {
            Comparison::Equal => {
                bounds.add(y, x, (by, 0));
                bounds.add(x, y, (-by, 0));
            }
            Comparison::NotEqual => unequal.push((x, y, by)),
            Comparison::Less => bounds.add(y, x, (by, -1)),
            Comparison::LessOrEqual => bounds.add(y, x, (by, 0)),
            Comparison::Greater => bounds.add(x, y, (-by, -1)),
            Comparison::GreaterOrEqual => bounds.add(x, y, (-by, 0)),
        }
    }
    bounds.close();
    let downwards = (0..bounds.whole.len()).any(|one| bounds.most[one][one].is_some_and(|most| most < (0, 0)));
    downwards || unequal.iter().any(|(x, y, by)| bounds.equal(*x, *y, *by))
}

impl<'t> Bounds<'t> {
    /// The number of a variable; none beyond so many.
    fn number(&mut self, name: &'t str, sorts: &Sorts<'_>) -> Option<usize> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = self.whole.len();
        if number > MAX_VARIABLES {
            return None;
        }
        self.numbers.insert(name, number);
        self.whole.push(sorts.whole.contains(name));
        self.most.iter_mut().for_each(|row| row.push(None));
        self.most.push(vec![None; number + 1]);
        self.most[number][number] = Some((0, 0));
        if sorts.counts.contains(name) {
            self.add(number, 0, (0, 0));
        }
        Some(number)
    }

    /// A comparison as one of a variable with another one plus a number, where adding and subtracting makes it so.
    fn difference(&mut self, one: &Compared<'t>, sorts: &Sorts<'_>) -> Option<(usize, usize, i128)> {
        let mut times: BTreeMap<&str, i64> = BTreeMap::new();
        let number = i128::from(sum(one.left, 1, &mut times)?) + i128::from(sum(one.right, -1, &mut times)?);
        times.retain(|_, times| *times != 0);
        let variables: Vec<(&str, i64)> = times.into_iter().collect();
        match variables[..] {
            [] => Some((0, 0, -number)),
            [(x, 1)] => Some((self.number(x, sorts)?, 0, -number)),
            [(y, -1)] => Some((0, self.number(y, sorts)?, -number)),
            [(x, 1), (y, -1)] | [(y, -1), (x, 1)] => Some((self.number(x, sorts)?, self.number(y, sorts)?, -number)),
            _ => None,
        }
    }

    /// `to - from <= most`
    fn add(&mut self, from: usize, to: usize, most: Most) {
        let known = &mut self.most[from][to];
        *known = Some(known.map_or(most, |known| known.min(most)));
    }

    /// Adds bounds up; between whole numbers, being less is being less by one.
    fn close(&mut self) {
        for _ in 0..ROUNDS {
            let mut rounded = self.round();
            for through in 0..self.whole.len() {
                for from in 0..self.whole.len() {
                    let Some(first) = self.most[from][through] else { continue };
                    for to in 0..self.whole.len() {
                        let Some(then) = self.most[through][to] else { continue };
                        self.add(from, to, (first.0.saturating_add(then.0), first.1.saturating_add(then.1)));
                    }
                }
            }
            rounded |= self.round();
            if !rounded {
                return;
            }
        }
    }

    fn round(&mut self) -> bool {
        let mut rounded = false;
        for (from, row) in self.most.iter_mut().enumerate() {
            for (to, most) in row.iter_mut().enumerate() {
                if let Some(most) = most
                    && most.1 < 0
                    && self.whole[from]
                    && self.whole[to]
                {
                    *most = (most.0.saturating_sub(1), 0);
                    rounded = true;
                }
            }
        }
        rounded
    }

    /// Whether `x = y + by` follows.
    fn equal(&self, x: usize, y: usize, by: i128) -> bool {
        let at_most = |from: usize, to: usize, by: i128| self.most[from][to].is_some_and(|most| most <= (by, 0));
        at_most(y, x, by) && at_most(x, y, -by)
    }
}
