//! Bounds on differences of variables: `x - y <= 3`, kept closed under addition.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::ast::Comparison;
use crate::check::contradiction::{Compared, Sorts, sum};

/// Variables of one body that are looked at together.
const MAX_VARIABLES: usize = 64;
/// How often bounds are rounded to whole numbers and added up again.
const ROUNDS: usize = 3;

/// What a difference is at most: a number, and -1 (or less) behind it where the difference is less than that.
type Most = (i128, i64);

/// Variables, and what the second of two is more than the first at most.
#[derive(Clone)]
pub(super) struct Bounds<'t> {
    numbers: FxHashMap<&'t str, usize>,
    /// Whether it is a whole number; the first is nought.
    whole: Vec<bool>,
    /// A row for each variable that there may be.
    most: Vec<Option<Most>>,
    /// Variables of a row.
    width: usize,
    /// Pairs that differ by anything but so much.
    unequal: Vec<(usize, usize, i128)>,
}

impl<'t> Bounds<'t> {
    /// What comparisons say of differences.
    pub(super) fn of(compared: &[Compared<'t>], sorts: &Sorts<'_>) -> Self {
        let most = vec![Some((0, 0))];
        let mut bounds = Self { numbers: FxHashMap::default(), whole: vec![true], most, width: 1, unequal: Vec::new() };
        bounds.add_all(compared, sorts);
        bounds
    }

    /// Adds what further comparisons say.
    pub(super) fn add_all(&mut self, compared: &[Compared<'t>], sorts: &Sorts<'_>) {
        for one in compared {
            let Some((x, y, by)) = self.difference(one, sorts) else { continue };
            // x ? y + by
            match one.comparison {
                Comparison::Equal => {
                    self.add(y, x, (by, 0));
                    self.add(x, y, (-by, 0));
                }
                Comparison::NotEqual => self.unequal.push((x, y, by)),
                Comparison::Less => self.add(y, x, (by, -1)),
                Comparison::LessOrEqual => self.add(y, x, (by, 0)),
                Comparison::Greater => self.add(x, y, (-by, -1)),
                Comparison::GreaterOrEqual => self.add(x, y, (-by, 0)),
            }
        }
        self.close();
    }

    /// Whether comparisons exclude each other by what lies between their sides: `X < Y, Y < X`, `X < 3, X > 5`; or have two sides that
    /// must be equal and differ.
    pub(super) fn is_circle(&self) -> bool {
        let downwards = (0..self.whole.len()).any(|one| self.most(one, one).is_some_and(|most| most < (0, 0)));
        downwards || self.unequal.iter().any(|(x, y, by)| self.equal(*x, *y, *by))
    }

    fn most(&self, from: usize, to: usize) -> Option<Most> {
        self.most[from * self.width + to]
    }

    /// The number of a variable; none beyond so many.
    fn number(&mut self, name: &'t str, sorts: &Sorts<'_>) -> Option<usize> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = self.whole.len();
        if number > MAX_VARIABLES {
            return None;
        }
        if number == self.width {
            self.widen();
        }
        self.numbers.insert(name, number);
        self.whole.push(sorts.whole.contains(name));
        self.most[number * self.width + number] = Some((0, 0));
        if sorts.counts.contains(name) {
            self.add(number, 0, (0, 0));
        }
        Some(number)
    }

    /// Makes room for as many variables again, and for some at least.
    fn widen(&mut self) {
        let (before, width) = (self.width, (2 * self.width).max(16));
        let mut most = vec![None; width * width];
        for (row, wider) in self.most.chunks_exact(before).zip(most.chunks_exact_mut(width)) {
            wider[..before].copy_from_slice(row);
        }
        (self.most, self.width) = (most, width);
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
        let known = &mut self.most[from * self.width + to];
        *known = Some(known.map_or(most, |known| known.min(most)));
    }

    /// Adds bounds up; between whole numbers, being less is being less by one.
    fn close(&mut self) {
        for _ in 0..ROUNDS {
            let mut rounded = self.round();
            for through in 0..self.whole.len() {
                for from in 0..self.whole.len() {
                    let Some(first) = self.most(from, through) else { continue };
                    for to in 0..self.whole.len() {
                        let Some(then) = self.most(through, to) else { continue };
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
        let known = self.whole.len();
        for (from, row) in self.most.chunks_exact_mut(self.width).enumerate().take(known) {
            for (to, most) in row.iter_mut().enumerate().take(known) {
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
        let at_most = |from: usize, to: usize, by: i128| self.most(from, to).is_some_and(|most| most <= (by, 0));
        at_most(y, x, by) && at_most(x, y, -by)
    }
}
