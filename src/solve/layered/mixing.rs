//! Acceleration of the outer iteration.

/// How many steps [`Mixing`] looks back.
const DEPTH: usize = 4;

/// Anderson's (1965) acceleration of a fixed-point iteration: the next point is the combination of the last ones whose
/// residuals, combined in the same way, are least.
///
/// Residuals are relative, so that rates and times weigh alike.
#[derive(Default)]
pub(super) struct Mixing {
    /// Residuals and what the iteration made of the points that they belong to, the latest last.
    past: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Mixing {
    /// Replaces the point, of which the iteration made `next`, by the one to go on from.
    pub(super) fn mix(&mut self, point: &mut [f64], next: &[f64]) {
        let residual: Vec<f64> = next.iter().zip(&*point).map(|(next, point)| relative(*next, *point)).collect();
        if self.past.len() > DEPTH {
            self.past.remove(0);
        }
        let weights = self.weights(&residual);
        point.copy_from_slice(next);
        for ((_, image), weight) in self.past.iter().zip(&weights) {
            for ((value, next), old) in point.iter_mut().zip(next).zip(image) {
                *value -= weight * (next - old);
            }
        }
        for (value, image) in point.iter_mut().zip(next) {
            // A combination may leave the range of what makes sense.
            *value = value.clamp(image * 0.5, image * 2.0);
        }
        self.past.push((residual, next.to_vec()));
    }

    /// By how much to go back towards each of the past: least squares by normal equations, slightly regularised.
    fn weights(&self, residual: &[f64]) -> Vec<f64> {
        let count = self.past.len();
        let differences: Vec<Vec<f64>> =
            self.past.iter().map(|(old, _)| residual.iter().zip(old).map(|(new, old)| new - old).collect()).collect();
        let dot = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(left, right)| left * right).sum::<f64>();
        let mut matrix: Vec<Vec<f64>> = (0..count)
            .map(|row| {
                let mut line: Vec<f64> =
                    (0..count).map(|column| dot(&differences[row], &differences[column])).collect();
                line[row] *= 1.0 + 1e-10;
                line.push(dot(&differences[row], residual));
                line
            })
            .collect();
        eliminate(&mut matrix)
    }
}

/// The relative change.
fn relative(next: f64, point: f64) -> f64 {
    let scale = next.abs().max(point.abs());
    if scale > 1e-300 { (next - point) / scale } else { 0.0 }
}

/// Solves a small system of equations in place; zero for what they leave open.
fn eliminate(matrix: &mut [Vec<f64>]) -> Vec<f64> {
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
    use super::Mixing;

    #[test]
    fn a_slow_iteration_ends_soon() {
        // Converges by itself at a rate of 0.95: some 400 steps to nine digits.
        let image = |point: &[f64]| vec![0.95 * point[0] + 0.1, 0.9 * point[1] + 0.05 * point[0] + 0.3];
        let mut point = vec![1.0, 1.0];
        let mut mixing = Mixing::default();
        for _ in 0..20 {
            let next = image(&point);
            mixing.mix(&mut point, &next);
        }
        assert!((point[0] - 2.0).abs() < 1e-9 && (point[1] - 4.0).abs() < 1e-9, "{point:?}");
    }
}
