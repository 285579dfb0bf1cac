//! Solving a model from where the solver stood with a like one.

use crate::layered::chains::{ClientKind, Decomposition, Item};
use crate::mva::InnerStarts;
use crate::numeric::anderson::Anderson;
use crate::numeric::by_id::Id;
use crate::prepare::plan::ModelPlan;
use dyelog_lqn::results::Convergence;

use crate::layered::Observer;
use crate::layered::outer::Run;
use crate::layered::state::Solver;

/// A warm start: the final state of the solver, to begin with for a model of the same structure with other numbers.
///
/// Whether two models have the same structure is seen when the second is solved: which customers circulate and which stations each
/// visits, after tasks at which nobody can queue have been taken out. Numbers of any kind may differ.
#[derive(Clone, Debug, Default)]
pub struct WarmStart {
    pub(crate) shape: Vec<u32>,
    /// All numbers of the solver's state.
    pub(crate) row: Vec<f64>,
    /// Those of the warm start before, if this one was begun from it and had as many.
    pub(crate) before: Option<Vec<f64>>,
    /// Whether the row was extrapolated from the final state, which is then in `before`.
    pub(crate) is_moved: bool,
    pub(crate) ends: Vec<InnerStarts>,
    /// The sizes of the last like model that had too many states.
    pub(crate) too_many: Option<Vec<u32>>,
    /// The steps that led there, which tell the next solution its way.
    pub(crate) acceleration: Anderson,
}

impl WarmStart {
    /// Extrapolates from the warm start before to this one, by so much of the distance between them: the start for a
    /// model whose parameters have moved on along the same line. Does nothing where there is none before.
    #[must_use]
    pub fn moved(mut self, part: f64) -> Self {
        if let Some(before) = self.before.as_mut().filter(|_| !self.is_moved) {
            self.is_moved = true;
            for (own, before) in self.row.iter_mut().zip(before) {
                let end = *own;
                // All of them are times, rates and factors, which cannot be negative.
                *own = (end + part * (end - *before)).max(0.0);
                *before = end;
            }
        }
        self
    }

    /// All numbers of the final state, one after the other.
    pub fn numbers(&self) -> &[f64] {
        match &self.before {
            Some(before) if self.is_moved => before,
            _ => &self.row,
        }
    }

    /// Starts where these combine to, each with its weight; they must be numbers of like warm starts.
    pub fn start_at(&mut self, terms: &[(f64, &[f64])]) {
        if terms.iter().any(|(_, numbers)| numbers.len() != self.row.len()) {
            return;
        }
        let end = self.numbers().to_vec();
        self.row.fill(0.0);
        for (weight, numbers) in terms {
            self.row.iter_mut().zip(*numbers).for_each(|(own, number)| *own += weight * number);
        }
        // All of them are times, rates and factors, which cannot be negative.
        self.row.iter_mut().for_each(|own| *own = own.max(0.0));
        self.before = Some(end);
        self.is_moved = true;
    }

    /// Where the solver stood.
    pub(crate) fn end(self) -> Option<Vec<f64>> {
        if self.is_moved { self.before } else { Some(self.row) }
    }
}

/// Iterations from scratch before the acceleration of a large model begins.
pub(crate) const AHEAD: u32 = 3;

impl Solver<'_> {
    /// Goes on as from a like model's solution: inner and outer iterations come to their end together. Nothing where that
    /// does not converge; then all is as it was to begin with.
    pub(crate) fn accelerated(
        &mut self,
        tolerance: f64,
        limit: u32,
        observer: &mut dyn Observer,
    ) -> Option<Convergence> {
        let mut row = Vec::new();
        self.visit_state(&mut |value| row.push(*value));
        let ends = std::mem::take(&mut self.inner.starts);
        let mut start = WarmStart { row, ends, ..WarmStart::default() };
        let found = self.go_on(&mut start, &mut Anderson::default(), tolerance, limit, observer);
        if found.is_none() {
            observer.restart("without acceleration");
            self.reset();
        }
        found
    }

    /// Iterates from a start. `None` where that does not converge.
    pub(crate) fn go_on(
        &mut self,
        start: &mut WarmStart,
        acceleration: &mut Anderson,
        tolerance: f64,
        limit: u32,
        observer: &mut dyn Observer,
    ) -> Option<Convergence> {
        self.inner.starts = std::mem::take(&mut start.ends);
        for inner_starts in &mut self.inner.starts {
            inner_starts.inexact = true;
        }
        let mut run = Run { converged: false, iterations: 0, residual: f64::INFINITY };
        let mut row = start.row.clone();
        let mut next = Vec::with_capacity(row.len());
        while run.iterations < limit && !run.converged {
            self.put(&row);
            run.residual = self.sweep(true, 1.0);
            run.iterations += 1;
            observer.iteration(run.iterations, run.residual);
            if !run.residual.is_finite() {
                return None;
            }
            run.converged = run.residual < tolerance;
            next.clear();
            self.visit_state(&mut |value| next.push(*value));
            if next.len() != row.len() {
                return None;
            }
            acceleration.accelerate(&mut row, &next);
        }
        let converged = run.converged && self.inner.saturated.is_empty() && self.inner.failures == 0;
        converged.then(|| Convergence {
            converged,
            saturated: false,
            iterations: run.iterations,
            residual: run.residual,
            method: self.method(),
            exact: self.is_exact(),
        })
    }

    /// Puts numbers in the place of the state's.
    fn put(&mut self, row: &[f64]) {
        let mut values = row.iter();
        self.visit_state(&mut |value| {
            if let Some(new) = values.next() {
                *value = *new;
            }
        });
        for client in self.decomposition.clients.ids().rev() {
            self.evaluate(client);
            self.update_requests(client);
        }
    }

    /// Shows all numbers that the iteration turns on, in an order that depends on the structure only.
    fn visit_state(&mut self, see: &mut dyn FnMut(&mut f64)) {
        for stay in self.waits.stays.iter_mut().flatten().chain(&mut self.open_stays) {
            see(&mut stay.wait);
            see(&mut stay.slowdown);
        }
        for time in self.waits.service.iter_mut().flatten() {
            see(&mut time.mean);
            see(&mut time.variance);
        }
        self.rates.flows.iter_mut().flatten().for_each(&mut *see);
        for numbers in [&mut self.rates.throughputs, &mut self.rates.cycles, &mut self.held.blocking] {
            numbers.iter_mut().for_each(&mut *see);
        }
        for activity in &mut self.held.activity {
            [&mut activity.time, &mut activity.alone, &mut activity.beside].into_iter().for_each(&mut *see);
        }
        for inner_starts in &mut self.inner.starts {
            inner_starts.visit(see);
        }
    }

    pub(crate) fn warm_start(mut self, shape: Vec<u32>, before: Option<Vec<f64>>, acceleration: Anderson) -> WarmStart {
        let mut row = Vec::new();
        self.visit_state(&mut |value| row.push(*value));
        let before = before.filter(|before| before.len() == row.len());
        WarmStart { shape, row, before, ends: self.inner.starts, acceleration, ..WarmStart::default() }
    }
}

/// Numbers that do not shrink unless the number of states may.
pub(crate) fn sizes(plan: &ModelPlan) -> Vec<u32> {
    let threads = plan.threads.iter().map(|count| if *count < 1e9 { *count as u32 } else { u32::MAX });
    let works = plan.works.iter().flat_map(|work| {
        let calls = work.calls.iter().map(|call| u32::from(call.mean > 0.0));
        [work.slice > 0.0, work.think > 0.0].map(u32::from).into_iter().chain(calls)
    });
    threads.chain(works).collect()
}

/// The structure of a decomposition, flat: two with the same have state of the same shape and meaning.
pub(crate) fn shape(decomposition: &Decomposition) -> Vec<u32> {
    let mut shape: Vec<u32> = decomposition.queues.iter().map(|queues| u32::from(*queues)).collect();
    let index = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    for client in &decomposition.clients {
        shape.extend(match client.kind {
            ClientKind::Customers(task) => [0, task.0],
            ClientKind::Threads(task) => [1, task.0],
            ClientKind::Open { entry, later } => [2 + u32::from(later), entry.0],
        });
        shape.push(index(client.chains.count));
    }
    for chain in &decomposition.chains {
        shape.extend([chain.client.position(), chain.reach.len(), chain.items.len(), chain.stations.len()].map(index));
        shape.extend(chain.stations.iter().map(|station| index(station.position())));
        for reach in &chain.reach {
            shape.extend([reach.entry.0, index(reach.strand), index(reach.items.start)]);
        }
        shape.extend(chain.items.iter().flat_map(|item| match *item {
            Item::Step { work, slot, phase, .. } => [index(work) << 2 | index(phase), slot],
            Item::Call { slot, to, .. } => [to.0, slot],
            Item::Flattened { reach, .. } => [reach, 1],
            Item::Send { to, .. } => [to.0, 2],
            Item::Fork { fork, first_chain } => [index(fork), index(first_chain.position())],
        }));
    }
    shape
}
