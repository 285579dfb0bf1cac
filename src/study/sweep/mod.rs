//! Many like models, solved one from another.
//!
//! A [`Grid`] is cut into tiles of a bounded number of points. Those of a tile are put in a line in which neighbours differ
//! in one parameter; the first is solved from scratch, and the others from point to point: from where the points before
//! and those of the rows beside lead to expect, and with the steps that led the iteration there. What comes out thus
//! depends on the grid alone, not on the number of threads. The last point of each tile is solved from scratch as well:
//! should that lead somewhere else, all points of the tile are solved from scratch.

mod answer;
mod far;
mod guess;
mod missed;
mod otherwise;
mod question;
mod simulated;
mod table;
mod written;

pub use answer::Before;
pub use far::far_from_traced;
pub use question::Question;
pub use table::{Point, State, Table, Varied};
pub(in crate::study) use written::given;
pub use written::{WrittenQuestion, set};

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::diagnostic::Diagnostics;
use crate::lqn::model::Model;
use crate::lqn::results::Results;
use crate::model::parameter::Path;

use guess::Ends;

use crate::solve::{SolveOptions, WarmStart, solve};

/// Points solved one from another at most.
const TILE: usize = 256;
/// By how much, relatively, throughputs and times may depend on the start.
const SAME: f64 = 1e-4;
/// States that exact solutions of all points may have together: what a state costs does not come down from point to point,
/// so that the points of a large sweep have to be small to be solved that way.
const STATES: usize = 300_000;

/// Points that combine the values of some axes. A grid without axes has one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The values of each axis where they are numbers, for starts further along a line; any numbers otherwise. The last axis
    /// is the one along which neighbours lie.
    pub axes: Vec<Vec<f64>>,
}

impl Grid {
    /// How many points there are.
    pub fn len(&self) -> usize {
        self.axes.iter().map(Vec::len).product()
    }

    /// Whether there is no point, because an axis has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position on each axis of the point of that number: the last axis runs fastest.
    pub fn point(&self, number: usize) -> Vec<usize> {
        let mut rest = number;
        let mut point = vec![0; self.axes.len()];
        for (place, axis) in point.iter_mut().zip(&self.axes).rev() {
            *place = rest % axis.len().max(1);
            rest /= axis.len().max(1);
        }
        point
    }

    /// The number of the point at that place of a line that turns at the end of each row, so that neighbours in the line
    /// are neighbours on one axis.
    fn in_line(&self, place: usize) -> usize {
        let mut number = 0;
        let mut size = self.len();
        for axis in &self.axes {
            // Each row of an axis goes the other way than the one before.
            let row = place / size.max(1);
            let rest = place % size.max(1);
            size /= axis.len().max(1);
            let step = rest / size.max(1);
            let position = if row % 2 == 1 { axis.len() - 1 - step } else { step };
            number += position * size;
        }
        number
    }

    /// The number of a point.
    fn number(&self, point: &[usize]) -> usize {
        point.iter().zip(&self.axes).fold(0, |number, (place, axis)| number * axis.len() + place)
    }

    /// Cuts the grid, along its longest axis each time, until no part has more points than so many.
    fn tiles(&self, most: usize) -> Vec<Tile> {
        let mut open = vec![Tile { corner: vec![0; self.axes.len()], grid: self.clone() }];
        let mut tiles = Vec::new();
        while let Some(mut tile) = open.pop() {
            let longest = (0..tile.grid.axes.len()).rev().max_by_key(|axis| tile.grid.axes[*axis].len());
            match longest.filter(|_| tile.grid.len() > most) {
                Some(axis) => {
                    let mut rest = tile.clone();
                    let half = tile.grid.axes[axis].len().div_ceil(2);
                    rest.corner[axis] += half;
                    rest.grid.axes[axis] = tile.grid.axes[axis].split_off(half);
                    open.extend([rest, tile]);
                }
                None => tiles.push(tile),
            }
        }
        tiles
    }
}

/// A part of a grid.
#[derive(Clone, Debug, PartialEq)]
struct Tile {
    /// Its first point in the whole.
    corner: Vec<usize>,
    grid: Grid,
}

impl Tile {
    /// The point of the whole at that place of the tile's line.
    fn point(&self, place: usize) -> Vec<usize> {
        let own = self.grid.point(self.grid.in_line(place));
        own.iter().zip(&self.corner).map(|(own, corner)| own + corner).collect()
    }
}

/// How a sweep goes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepOptions {
    /// Of each solution.
    pub solver: SolveOptions,
    /// Threads to work on.
    pub threads: usize,
    /// Whether points start from their neighbours' solutions.
    pub warm: bool,
    /// Parameters that are given as they are, and not relative to what traces tell: these are certain.
    pub given: Vec<Path>,
    /// Whether figures of traces have intervals, in sweeps of no more than 256 points.
    pub has_intervals: bool,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self { solver: SolveOptions::default(), threads: 1, warm: true, given: Vec::new(), has_intervals: true }
    }
}

/// Solves the model that `build` makes of each point, and gives what `read` takes from each solution: one a point, in the
/// order of their numbers. `told` hears of every point that is done, from any thread.
///
/// The more points there are, the smaller a model has to be to be solved by its states.
///
/// A point that cannot be built or solved gives its reasons. One that did not converge is read like the others:
/// [`Convergence`](crate::lqn::results::Convergence) tells.
pub fn sweep<B, T, Build, Read>(
    grid: &Grid,
    options: &SweepOptions,
    build: Build,
    read: Read,
    told: &(dyn Fn() + Sync),
) -> Vec<Result<T, Diagnostics>>
where
    B: AsRef<Model>,
    T: Send,
    Build: Fn(&[usize]) -> Result<B, Diagnostics> + Sync,
    Read: Fn(&B, &Results) -> T + Sync,
{
    let count = grid.len();
    let mut options = options.clone();
    let states = &mut options.solver.layered.states;
    *states = (*states).min(STATES / count.max(1));
    let options = &options;
    let tiles = grid.tiles(TILE);
    let solve = |tile: &Tile| Walk { tile, options, build: &build, read: &read, told }.run();
    let parts = in_parallel(&tiles, options.threads, &solve);
    let mut results: Vec<Option<Result<T, Diagnostics>>> = (0..count).map(|_| None).collect();
    for (tile, part) in tiles.iter().zip(parts) {
        for (place, result) in part.into_iter().enumerate() {
            results[grid.number(&tile.point(place))] = Some(result);
        }
    }
    results.into_iter().flatten().collect()
}

/// What the function makes of each item, in their order, by so many threads.
pub(in crate::study) fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    make: &(dyn Fn(&I) -> T + Sync),
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        while let Some((number, item)) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            items.get(number).map(|item| (number, item))
        } {
            made.push((number, make(item)));
        }
        made
    };
    let mut made = std::thread::scope(|scope| {
        // Where the system gives no further threads, this one does the work.
        let helpers: Vec<_> = (1..threads.min(items.len()))
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut made = work();
        for helper in helpers {
            match helper.join() {
                Ok(others) => made.extend(others),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, made)| made).collect()
}

/// A way along the line of a tile.
struct Walk<'a, Build, Read> {
    tile: &'a Tile,
    options: &'a SweepOptions,
    build: &'a Build,
    read: &'a Read,
    told: &'a (dyn Fn() + Sync),
}

impl<B, T, Build, Read> Walk<'_, Build, Read>
where
    B: AsRef<Model>,
    Build: Fn(&[usize]) -> Result<B, Diagnostics>,
    Read: Fn(&B, &Results) -> T,
{
    fn run(&self) -> Vec<Result<T, Diagnostics>> {
        let grid = &self.tile.grid;
        let mut found = Vec::with_capacity(grid.len());
        let mut warm_start: Option<WarmStart> = None;
        let mut ends = Ends::default();
        let mut last: Option<(B, Results)> = None;
        for place in 0..grid.len() {
            let number = grid.in_line(place);
            let started = warm_start.is_some();
            if let Some(warm_start) = &mut warm_start {
                let guess = ends.guess(grid, grid.in_line(place - 1), number);
                if !guess.is_empty() {
                    warm_start.start_at(&guess);
                }
            }
            let solved = (self.build)(&self.tile.point(place)).and_then(|built| {
                let found = solve(built.as_ref(), &self.options.solver, warm_start.take(), &mut ())?;
                let (results, end) = (found.results, found.warm_start);
                if results.convergence.converged && self.options.warm {
                    ends.keep(number, end.numbers());
                    warm_start = Some(end);
                }
                Ok((built, results))
            });
            found.push(match solved {
                Ok((built, results)) => {
                    let result = (self.read)(&built, &results);
                    last = started.then_some((built, results));
                    Ok(result)
                }
                Err(reasons) => {
                    last = None;
                    Err(reasons)
                }
            });
            (self.told)();
        }
        match last {
            Some((built, results)) if !self.agrees(&built, &results) => {
                (0..grid.len()).map(|place| self.alone(place)).collect()
            }
            _ => found,
        }
    }

    /// Whether the model solved from scratch has the same throughputs and times. Where operations arrive whatever happens, only times
    /// can tell.
    fn agrees(&self, built: &B, results: &Results) -> bool {
        let same = |own: f64, other: f64| (own - other).abs() <= SAME * own.abs().max(other.abs());
        solve(built.as_ref(), &self.options.solver, None, &mut ()).is_ok_and(|scratch| {
            let scratch = scratch.results;
            let mut tasks = scratch.tasks.iter().zip(&results.tasks);
            let mut entries = scratch.entries.iter().zip(&results.entries);
            tasks.all(|(own, other)| same(own.throughput, other.throughput))
                && entries
                    .all(|(own, other)| own.service.iter().zip(&other.service).all(|(own, other)| same(*own, *other)))
        })
    }

    fn alone(&self, place: usize) -> Result<T, Diagnostics> {
        let built = (self.build)(&self.tile.point(place))?;
        let results = solve(built.as_ref(), &self.options.solver, None, &mut ())?.results;
        Ok((self.read)(&built, &results))
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;

    #[test]
    fn neighbours_in_line_differ_on_one_axis_by_one() {
        let grid = Grid { axes: vec![vec![0.0; 3], vec![0.0; 4], vec![0.0; 5]] };
        let mut seen: Vec<usize> = (0..grid.len()).map(|place| grid.in_line(place)).collect();
        for pair in seen.windows(2) {
            let (left, right) = (grid.point(pair[0]), grid.point(pair[1]));
            let distance: usize = left.iter().zip(&right).map(|(left, right)| left.abs_diff(*right)).sum();
            assert_eq!(distance, 1, "{left:?} {right:?}");
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..60).collect::<Vec<_>>());
        assert_eq!(grid.point(7), [0, 1, 2]);
    }

    #[test]
    fn tiles_cover_a_grid_once() {
        let axis = |count: usize| (0..count).map(|place| place as f64).collect::<Vec<f64>>();
        for lengths in [vec![10, 100], vec![1000], vec![7, 3, 50], vec![1], vec![]] {
            let grid = Grid { axes: lengths.iter().map(|count| axis(*count)).collect() };
            let mut seen = vec![0; grid.len()];
            for tile in grid.tiles(64) {
                assert!(tile.grid.len() <= 64, "{tile:?}");
                for place in 0..tile.grid.len() {
                    let point = tile.point(place);
                    let own = tile.grid.point(tile.grid.in_line(place));
                    for (number, axis) in tile.grid.axes.iter().enumerate() {
                        assert_eq!(axis[own[number]], grid.axes[number][point[number]]);
                    }
                    seen[grid.number(&point)] += 1;
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{lengths:?}");
        }
        assert_eq!(Grid { axes: vec![axis(10), axis(100)] }.tiles(256).len(), 4);
        assert!(Grid { axes: vec![axis(3), Vec::new()] }.tiles(2).len() <= 1);
    }

    #[test]
    fn points_have_numbers() {
        let grid = Grid { axes: vec![vec![1.0, 2.0], vec![1.0, 2.0, 4.0]] };
        assert!((0..grid.len()).all(|number| grid.number(&grid.point(number)) == number));
        assert_eq!(Grid::default().len(), 1);
        assert_eq!(Grid::default().point(0), Vec::<usize>::new());
    }
}
