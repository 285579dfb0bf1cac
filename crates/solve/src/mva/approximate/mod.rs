//! Approximate mean value analysis of mixed networks.
//!
//! The arrival theorem says what a customer finds: the station as it is with one customer fewer. Schweitzer (1979) takes
//! the own chain's share to shrink in proportion; Linearizer (Chandy and Neuse 1982) corrects that by solving with one
//! customer fewer of each chain. What is found becomes time by the discipline: work ahead under first come first served
//! with class-dependent service (Reiser 1979), Cobham's (1954) formulas for priorities; open load divides by what it leaves
//! free. All formulas are exact for open M/G/1, M/M/m, both kinds of priority M/M/1 and processor sharing alone.

mod stay;

use self::stay::VisitorLoad;
use crate::heuristics::Heuristic;
use crate::numeric::anderson::Anderson;

use super::{ChainId, InnerStarts, Load, Method, Network, Solution, Station, StationId, Stay, cycles};
use crate::numeric::by_id::{ById, Id};

/// Customers of each chain.
type Populations = ById<ChainId, f64>;
/// By the chain that has one customer fewer, and by visit: by how much the part of customers there differs.
type Deviations = ById<ChainId, Vec<f64>>;

/// Which approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    Schweitzer,
    Linearizer,
}

const ITERATIONS: usize = 3000;
/// Iterations as they come; most end within these.
const PLAIN: usize = 20;
/// Iterations after those that are accelerated, before the others are damped.
const ACCELERATED: usize = 100;
const BOUND: f64 = 1e-8;
/// Passes of Linearizer; its authors found three enough.
const PASSES: usize = 4;

/// About how many steps one iteration of Linearizer takes.
pub(super) fn linearizer_work(network: &Network) -> f64 {
    let closed = network.chains.iter().filter(|load| matches!(load, Load::Closed { .. })).count() as f64;
    let mut visitors = ById::like(&network.stations, 0.0);
    for visit in &network.visits {
        visitors[visit.station] += 1.0;
    }
    closed * visitors.iter().map(|count| count * count).sum::<f64>()
}

/// Solves a network of any kind.
pub(super) fn solve(network: &Network, core: Core, inner_starts: &mut InnerStarts) -> Solution {
    let problem = Problem::new(network);
    let mut populations = problem.populations.clone();
    let mut state = problem.start(&populations);
    let mut converged = problem.iterate(&populations, &mut state, None, inner_starts);
    let mut method = Method::Schweitzer;
    if core == Core::Linearizer {
        method = Method::Linearizer;
        let mut deviations = ById::like(&network.chains, vec![0.0; network.visits.len()]);
        for _ in 0..PASSES {
            for chain in network.chains.ids() {
                if problem.open[chain] || populations[chain] < 1.0 {
                    continue;
                }
                populations[chain] -= 1.0;
                let mut fewer = state.clone();
                problem.iterate(&populations, &mut fewer, Some(&deviations), inner_starts);
                for (index, visit) in network.visits.iter().enumerate() {
                    let left = populations[visit.chain];
                    let all = problem.populations[visit.chain];
                    deviations[chain][index] = if left > 0.0 && all > 0.0 && !problem.open[visit.chain] {
                        fewer.customers[index] / left - state.customers[index] / all
                    } else {
                        0.0
                    };
                }
                populations[chain] += 1.0;
            }
            converged = problem.iterate(&populations, &mut state, Some(&deviations), inner_starts);
        }
    }
    let full = |(load, station): (&f64, &Station)| *load >= station.servers * (1.0 - 1e-9);
    let saturated = problem.open_load.iter().zip(&network.stations).map(full).collect();
    let throughputs = cycles(network, &state.stays);
    Solution { stays: state.stays, throughputs, method, converged, saturated }
}

struct Problem<'a> {
    network: &'a Network,
    /// Visits of each station.
    visitors: ById<StationId, Vec<usize>>,
    open: ById<ChainId, bool>,
    populations: Populations,
    delays: ById<ChainId, f64>,
    /// Busy servers due to open load, what they do after the customer has left included.
    open_load: ById<StationId, f64>,
    /// What part of another chain's customers a chain never finds: a square of the chains below that number, row by row.
    interlock: Vec<f64>,
    width: usize,
}

#[derive(Clone)]
struct State {
    stays: Vec<Stay>,
    /// Mean customers of each visit.
    customers: Vec<f64>,
    throughputs: ById<ChainId, f64>,
    parts: Vec<VisitorLoad>,
    /// By station: by how much waits are lengthened so that servers do no more than they can.
    overload: ById<StationId, f64>,
}

impl State {
    /// All numbers that the iteration turns on.
    fn numbers(&self, numbers: &mut Vec<f64>) {
        numbers.clear();
        numbers.extend(self.stays.iter().flat_map(|stay| [stay.wait, stay.slowdown]));
        numbers.extend(self.overload.iter());
    }

    fn put(&mut self, numbers: &[f64]) {
        let (stays, overload) = numbers.split_at(2 * self.stays.len());
        for (stay, numbers) in self.stays.iter_mut().zip(stays.chunks_exact(2)) {
            *stay = Stay { wait: numbers[0], slowdown: numbers[1] };
        }
        self.overload.copy_from_slice(overload);
    }
}

impl<'a> Problem<'a> {
    fn new(network: &'a Network) -> Self {
        let mut visitors = ById::like(&network.stations, Vec::new());
        let mut open_load = ById::like(&network.stations, 0.0);
        for (index, visit) in network.visits.iter().enumerate() {
            visitors[visit.station].push(index);
            if let Load::Open(rate) = network.chains[visit.chain] {
                open_load[visit.station] += rate * visit.visits * (visit.service + visit.after);
            }
        }
        let width = network.interlock.iter().map(|entry| entry.0.max(entry.1).position() + 1).max().unwrap_or(0);
        let mut interlock = vec![0.0; width * width];
        for &(chain, other, fraction) in &network.interlock {
            interlock[chain.position() * width + other.position()] = fraction;
        }
        let open = network.chains.iter().map(|load| matches!(load, Load::Open(_))).collect();
        let populations = network
            .chains
            .iter()
            .map(|load| if let Load::Closed { population, .. } = load { *population } else { 0.0 })
            .collect();
        let delays = network
            .chains
            .iter()
            .map(|load| if let Load::Closed { delay, .. } = load { *delay } else { 0.0 })
            .collect();
        Self { network, visitors, open, populations, delays, open_load, interlock, width }
    }

    fn start(&self, populations: &Populations) -> State {
        let visits = self.network.visits.len();
        let mut state = State {
            stays: self.network.visits.iter().map(|visit| visit.guess).collect(),
            customers: vec![0.0; visits],
            throughputs: ById::like(&self.network.chains, 0.0),
            parts: vec![VisitorLoad::default(); visits],
            overload: ById::like(&self.network.stations, 1.0),
        };
        self.flow(populations, &mut state);
        state
    }

    /// Throughputs and customers by Little's law.
    fn flow(&self, populations: &Populations, state: &mut State) {
        let mut times = self.delays.clone();
        for (visit, stay) in self.network.visits.iter().zip(&state.stays) {
            times[visit.chain] += visit.visits * (stay.wait + visit.service * (1.0 + stay.slowdown));
        }
        for (chain, load) in self.network.chains.pairs() {
            state.throughputs[chain] = match load {
                Load::Open(rate) => *rate,
                Load::Closed { .. } if times[chain] > 0.0 => populations[chain] / times[chain],
                Load::Closed { .. } => 0.0,
            };
        }
        for (index, visit) in self.network.visits.iter().enumerate() {
            let stay = state.stays[index];
            let rate = state.throughputs[visit.chain] * visit.visits;
            let customers = rate * (stay.wait + visit.longer + visit.service * (1.0 + stay.slowdown));
            let busy = rate * visit.service;
            let waiting = (customers - busy).max(0.0);
            let after = rate * visit.after;
            state.customers[index] = customers;
            state.parts[index] = VisitorLoad {
                waiting,
                queued: waiting * (visit.service + visit.after),
                busy,
                residual: busy * (visit.service + visit.after),
                after,
                after_residual: after * visit.after,
                second: rate * (visit.service2 + 2.0 * visit.service * visit.after + visit.after2),
                rate,
                longer: rate * visit.longer,
            };
        }
    }

    fn iterate(
        &self,
        populations: &Populations,
        state: &mut State,
        deviations: Option<&Deviations>,
        inner_starts: &mut InnerStarts,
    ) -> bool {
        inner_starts.recall(&mut state.stays, &mut state.overload);
        let limit = inner_starts.steps();
        let change = self.repeat(populations, state, deviations, limit.unwrap_or(ITERATIONS));
        inner_starts.keep(&state.stays, &state.overload);
        if limit.is_some() {
            inner_starts.unfinished(change);
        }
        change < BOUND || limit.is_some()
    }

    /// Iterates at most so often; the largest relative change in the last step.
    fn repeat(
        &self,
        populations: &Populations,
        state: &mut State,
        deviations: Option<&Deviations>,
        limit: usize,
    ) -> f64 {
        let mut damping = 1.0;
        let mut change = 0.0_f64;
        let mut acceleration = Anderson::default();
        let (mut point, mut image) = (Vec::new(), Vec::new());
        // What costs most and changes least may be that of the first step, if the iteration around this one goes on anyway.
        let lags = limit < PLAIN;
        let mut ratios = ById::like(&self.visitors, None);
        for iteration in 0..limit {
            let accelerates = (PLAIN..PLAIN + ACCELERATED).contains(&iteration);
            if accelerates {
                state.numbers(&mut point);
            }
            self.flow(populations, state);
            change = 0.0;
            for (station, ratio) in self.visitors.ids().zip(&mut ratios) {
                let totals = self.totals(station, populations, state, *ratio);
                *ratio = lags.then_some(totals.ratio);
                let load = (totals.part.load() + totals.open.load()) / self.network.stations[station].servers;
                if self.network.heuristics.has(Heuristic::OverloadCorrection) {
                    state.overload[station] = (state.overload[station] * load.sqrt()).clamp(1.0, 1e3);
                }
                let overload = state.overload[station];
                if totals.part.load() > 0.0 && load > 1.0 + 1e-6 && overload < 1e3 {
                    change = change.max(load - 1.0);
                }
                for &index in &self.visitors[station] {
                    let chain = self.network.visits[index].chain;
                    // A chain without customers needs no overload correction, and does not have to converge.
                    if !self.open[chain] && populations[chain] <= 0.0 {
                        continue;
                    }
                    let mut new = self.stay(index, populations, state, deviations, &totals);
                    if overload > 1.0 && !self.open[chain] {
                        new = Stay { wait: new.wait * overload, slowdown: new.slowdown * overload };
                    }
                    let old = state.stays[index];
                    let visit = &self.network.visits[index];
                    let difference = (new.wait - old.wait).abs() + visit.service * (new.slowdown - old.slowdown).abs();
                    let scale = new.wait + visit.service * (1.0 + new.slowdown);
                    if scale > 0.0 {
                        change = change.max(difference / scale);
                    }
                    state.stays[index] = Stay {
                        wait: old.wait + damping * (new.wait - old.wait),
                        slowdown: old.slowdown + damping * (new.slowdown - old.slowdown),
                    };
                }
            }
            if change < BOUND {
                break;
            }
            if accelerates {
                state.numbers(&mut image);
                acceleration.accelerate(&mut point, &image);
                state.put(&point);
            } else if iteration % 100 == 99 && damping > 0.05 {
                damping *= 0.7;
            }
        }
        self.flow(populations, state);
        change
    }
}
