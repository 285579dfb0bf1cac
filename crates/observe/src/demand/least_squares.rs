//! Non-negative least squares on the sums of a [`Summary`], plain and drawn towards what was shared out.

use crate::demand::Summary;

/// Rounds of coordinate descent.
const ROUNDS: usize = 500;
/// Where no coordinate changes by more than this part, the descent ends.
const SETTLED: f64 = 1e-9;
/// How far demands are from what was shared out, as a part of it, where intervals do not contradict shares: what was measured of servers whose
/// demands are known.
const WIDTH: f64 = 0.03;
/// Where they do, the widths that are tried.
const WIDTHS: [f64; 4] = [0.1, 0.3, 1.0, 3.0];
/// Intervals contradict shares that leave so many times the squares which a regression leaves. Less says nothing: a request may end in another interval than
/// the one in which it used most, and a regression takes that for demand.
const CONTRADICTS: f64 = 4.0;

/// The normal equations of groups of operations, each group with a mean of its own to which demands within it are in proportion.
struct Equations {
    /// By group: members, each with its part.
    groups: Vec<Vec<(usize, f64)>>,
    gram: Vec<Vec<f64>>,
    cross: Vec<f64>,
    /// What was shared out, by group.
    prior: Vec<f64>,
    squares: f64,
    intervals: f64,
}

impl Equations {
    fn of(summary: &Summary, together: &[Vec<usize>]) -> Self {
        let mut prior = if summary.was_busy() { summary.shared() } else { summary.average() };
        let average = summary.average();
        for (own, average) in prior.iter_mut().zip(&average) {
            // What was never seen busy may take something all the same.
            if *own <= 0.0 && *average > 0.0 {
                *own = 0.001 * average;
            }
        }
        let alone = (0..summary.operations())
            .filter(|operation| summary.count(*operation) > 0.0)
            .filter(|operation| !together.iter().any(|group| group.contains(operation)))
            .map(|operation| vec![operation]);
        let members = |group: Vec<usize>| -> Vec<(usize, f64)> {
            // The first one's demand is the group's.
            let first = prior[group[0]].max(f64::MIN_POSITIVE);
            group.iter().map(|operation| (*operation, prior[*operation] / first)).collect()
        };
        let groups: Vec<Vec<(usize, f64)>> = alone.chain(together.iter().cloned()).map(members).collect();
        let sum = |left: &[(usize, f64)], right: &[(usize, f64)]| -> f64 {
            let one = |(row, by): &(usize, f64)| -> f64 {
                right.iter().map(|(column, other)| by * other * summary.gram(*row, *column)).sum()
            };
            left.iter().map(one).sum()
        };
        let gram = groups.iter().map(|left| groups.iter().map(|right| sum(left, right)).collect()).collect();
        let cross =
            groups.iter().map(|group| group.iter().map(|(row, part)| part * summary.cross(*row)).sum()).collect();
        let prior = groups.iter().map(|group| prior[group[0].0]).collect();
        Self { groups, gram, cross, prior, squares: summary.used_squares(), intervals: summary.intervals as f64 }
    }

    /// The least of the quadratic form with non-negative coordinates, by cyclic coordinate descent; `extra` is added to the diagonal, and what
    /// goes with it drawn towards the prior.
    fn solve(&self, extra: &[f64]) -> Vec<f64> {
        let mut found = self.prior.clone();
        for _ in 0..ROUNDS {
            let mut moved: f64 = 0.0;
            for row in 0..found.len() {
                let diagonal = self.gram[row][row] + extra[row];
                if diagonal <= 0.0 {
                    continue;
                }
                let others: f64 = (0..found.len())
                    .filter(|column| *column != row)
                    .map(|column| self.gram[row][column] * found[column])
                    .sum();
                let next = ((self.cross[row] + extra[row] * self.prior[row] - others) / diagonal).max(0.0);
                moved = moved.max((next - found[row]).abs() / self.prior[row].max(next).max(f64::MIN_POSITIVE));
                found[row] = next;
            }
            if moved < SETTLED {
                break;
            }
        }
        found
    }

    /// The sum of squares that demands leave.
    fn residual(&self, demands: &[f64]) -> f64 {
        let mut sum = self.squares;
        for (row, own) in demands.iter().enumerate() {
            sum -= 2.0 * own * self.cross[row];
            sum += demands.iter().enumerate().map(|(column, other)| own * other * self.gram[row][column]).sum::<f64>();
        }
        sum.max(1e-12 * self.squares)
    }

    /// Demands of all operations from those of groups.
    fn spread(&self, demands: &[f64], operations: usize) -> Vec<f64> {
        let mut all = vec![0.0; operations];
        for (group, demand) in self.groups.iter().zip(demands) {
            for (operation, part) in group {
                all[*operation] = demand * part;
            }
        }
        all
    }

    /// Minus twice the logarithm of the marginal likelihood, up to a constant, of demands that lie about the prior with that width, where what is
    /// left has that variance.
    fn unlikelihood(&self, width: f64, variance: f64) -> f64 {
        // In units of the prior: of D(G)D the determinant, and what is left of the squares.
        let extra: Vec<f64> =
            self.prior.iter().map(|prior| variance / (width * prior).powi(2).max(f64::MIN_POSITIVE)).collect();
        let found = self.solve(&extra);
        let drawn: f64 =
            found.iter().zip(&self.prior).zip(&extra).map(|((own, prior), extra)| extra * (own - prior).powi(2)).sum();
        let scaled: Vec<Vec<f64>> = self
            .gram
            .iter()
            .enumerate()
            .map(|(row, line)| {
                let one = |(column, product): (usize, &f64)| {
                    let unit = width * width * self.prior[row] * self.prior[column] / variance;
                    product * unit + f64::from(u8::from(row == column))
                };
                line.iter().enumerate().map(one).collect()
            })
            .collect();
        (self.residual(&found) + drawn) / variance + log_determinant(scaled)
    }
}

/// The logarithm of the determinant of a positive definite matrix, by Gauss's elimination.
fn log_determinant(mut matrix: Vec<Vec<f64>>) -> f64 {
    let mut sum = 0.0;
    for row in 0..matrix.len() {
        let (above, below) = matrix.split_at_mut(row + 1);
        let pivot = &above[row];
        sum += pivot[row].max(f64::MIN_POSITIVE).ln();
        for line in below {
            let factor = line[row] / pivot[row].max(f64::MIN_POSITIVE);
            for (own, other) in line[row..].iter_mut().zip(&pivot[row..]) {
                *own -= factor * other;
            }
        }
    }
    sum
}

/// Plain non-negative least squares.
pub(super) fn regression(summary: &Summary, together: &[Vec<usize>]) -> Vec<f64> {
    let equations = Equations::of(summary, together);
    let found = equations.solve(&vec![0.0; equations.groups.len()]);
    equations.spread(&found, summary.operations())
}

/// Drawn towards what was shared out, and scaled so that operations take what was used.
pub(super) fn shrunk(summary: &Summary, together: &[Vec<usize>]) -> Vec<f64> {
    let equations = Equations::of(summary, together);
    let groups = equations.groups.len() as f64;
    let plain = equations.solve(&vec![0.0; equations.groups.len()]);
    let variance = equations.residual(&plain) / (equations.intervals - groups).max(1.0);
    if variance <= 0.0 {
        return equations.spread(&plain, summary.operations());
    }
    let by_unlikelihood = |left: &f64, right: &f64| {
        equations.unlikelihood(*left, variance).total_cmp(&equations.unlikelihood(*right, variance))
    };
    let is_contradicted = equations.residual(&equations.prior) > CONTRADICTS * equations.residual(&plain);
    let width = WIDTHS.into_iter().filter(|_| is_contradicted).min_by(by_unlikelihood).unwrap_or(WIDTH);
    let extra: Vec<f64> =
        equations.prior.iter().map(|prior| variance / (width * prior).powi(2).max(f64::MIN_POSITIVE)).collect();
    let mut demands = equations.spread(&equations.solve(&extra), summary.operations());
    let taken: f64 = demands.iter().enumerate().map(|(operation, demand)| demand * summary.count(operation)).sum();
    if taken > 0.0 {
        for demand in &mut demands {
            *demand *= summary.used() / taken;
        }
    }
    demands
}
