//! Acceleration of iterations, inside layers and over all of them.

/// How many steps [`Anderson`] looks back.
const DEPTH: usize = 8;
/// Where a residual grows by more than this, the steps before tell nothing about the way from here.
const ASTRAY: f64 = 2.0;

/// Steps in which no residual changed by more than this are not told to others: they are mostly noise.
const PLAIN: f64 = 1e-5;

/// Anderson's (1965) acceleration of a fixed-point iteration: the next point is the combination of the last ones whose
/// residuals, combined in the same way, are least.
///
/// Residuals are relative, so that rates and times weigh alike, except among parts of a whole. What is kept of a step is by how much the residual and the
/// image changed. That holds near the fixed point of a like iteration, too, so that one may go on with another's steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Anderson {
    /// The residual before, and what the iteration made of its point.
    last: Option<(Vec<f64>, Vec<f64>)>,
    /// The latest last.
    steps: Vec<Difference>,
    of_parts: bool,
}

/// What came of a step.
#[derive(Clone, Debug)]
struct Difference {
    /// By how much the residual changed.
    residual: Vec<f64>,
    /// By how much the image changed.
    image: Vec<f64>,
    /// The products of its change of the residual with those of the steps before it, and with itself.
    products: Vec<f64>,
}

impl Anderson {
    /// For parts of a whole, such as probabilities: small ones hardly matter.
    pub(crate) fn of_parts() -> Self {
        Self { of_parts: true, ..Self::default() }
    }

    /// For another iteration, which may be like this one: with the steps, but at no point.
    pub(crate) fn for_another(mut self) -> Self {
        self.last = None;
        for place in (0..self.steps.len()).rev() {
            if self.steps[place].residual.iter().all(|change| change.abs() <= PLAIN) {
                self.forget(place);
            }
        }
        self
    }

    fn forget(&mut self, place: usize) {
        self.steps.remove(place);
        for later in &mut self.steps[place..] {
            later.products.remove(place);
        }
    }

    /// Replaces the point, of which the iteration made `next`, by the one to go on from.
    pub(crate) fn accelerate(&mut self, point: &mut [f64], next: &[f64]) {
        let change = if self.of_parts { |next: f64, point: f64| next - point } else { relative };
        let residual: Vec<f64> = next.iter().zip(&*point).map(|(next, point)| change(*next, *point)).collect();
        if self.steps.iter().any(|step| step.residual.len() != residual.len()) {
            self.steps.clear();
        }
        if let Some((old, image)) = self.last.take() {
            if dot(&residual, &residual) > ASTRAY * ASTRAY * dot(&old, &old) {
                self.steps.clear();
            }
            if self.steps.len() == DEPTH {
                self.forget(0);
            }
            let change = |new: &[f64], old: &[f64]| new.iter().zip(old).map(|(new, old)| new - old).collect();
            let (residual, image): (Vec<f64>, Vec<f64>) = (change(&residual, &old), change(next, &image));
            let mut products: Vec<f64> = self.steps.iter().map(|step| dot(&step.residual, &residual)).collect();
            products.push(dot(&residual, &residual));
            self.steps.push(Difference { residual, image, products });
        }
        point.copy_from_slice(next);
        for (step, weight) in self.steps.iter().zip(self.weights(&residual)) {
            for (value, change) in point.iter_mut().zip(&step.image) {
                *value -= weight * change;
            }
        }
        for (value, image) in point.iter_mut().zip(next) {
            // A combination may leave the range of what makes sense; no number is left as it is.
            *value = value.max(image * 0.5).min(image * 2.0);
        }
        self.last = Some((residual, next.to_vec()));
    }

    /// How much of each step to take back: least squares by normal equations, slightly regularised.
    fn weights(&self, residual: &[f64]) -> Vec<f64> {
        let count = self.steps.len();
        let product = |row: usize, column: usize| self.steps[row.max(column)].products[row.min(column)];
        let mut matrix: Vec<Vec<f64>> = (0..count)
            .map(|row| {
                let mut line: Vec<f64> = (0..count).map(|column| product(row, column)).collect();
                line[row] *= 1.0 + 1e-10;
                line.push(dot(&self.steps[row].residual, residual));
                line
            })
            .collect();
        eliminate(&mut matrix)
    }
}

/// The scalar product, in eight sums side by side.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (left, right) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest = left.remainder().iter().zip(right.remainder()).map(|(left, right)| left * right).sum::<f64>();
    for (left, right) in left.zip(right) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The relative change.
fn relative(next: f64, point: f64) -> f64 {
    let scale = next.abs().max(point.abs());
    if scale > 1e-300 { (next - point) / scale } else { 0.0 }
}

/// Solves a small system of equations in place; zero for what they leave open.
pub(crate) fn eliminate(matrix: &mut [Vec<f64>]) -> Vec<f64> {
    let count = matrix.len();
    for pivot in 0..count {
        let best =
            (pivot..count).max_by(|&left, &right| matrix[left][pivot].abs().total_cmp(&matrix[right][pivot].abs()));
        if let Some(best) = best {
            matrix.swap(pivot, best);
        }
        let lead = matrix[pivot][pivot];
        if lead.abs() < 1e-300 {
            matrix[pivot].fill(0.0);
            continue;
        }
        let line = matrix[pivot].clone();
        for (row, other) in matrix.iter_mut().enumerate() {
            if row != pivot {
                let factor = other[pivot] / lead;
                other.iter_mut().zip(&line).for_each(|(value, own)| *value -= factor * own);
            }
        }
    }
    let solved = |row: usize| if matrix[row][row] == 0.0 { 0.0 } else { matrix[row][count] / matrix[row][row] };
    (0..count).map(solved).collect()
}

#[cfg(test)]
mod tests {
    use super::Anderson;

    #[test]
    fn a_slow_iteration_ends_soon() {
        // Converges by itself at a rate of 0.95: some 400 steps to nine digits.
        let image = |point: &[f64]| vec![0.95 * point[0] + 0.1, 0.9 * point[1] + 0.05 * point[0] + 0.3];
        let mut point = vec![1.0, 1.0];
        let mut acceleration = Anderson::default();
        for _ in 0..20 {
            let next = image(&point);
            acceleration.accelerate(&mut point, &next);
        }
        assert!((point[0] - 2.0).abs() < 1e-9 && (point[1] - 4.0).abs() < 1e-9, "{point:?}");
    }
}
