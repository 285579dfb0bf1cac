//! Queueing networks with closed and open chains, solved by mean value analysis.
//!
//! This folder knows nothing of layered queueing: a [`Network`] has stations, chains and visits, and [`solve`] gives the
//! mean time that each visit takes beyond its service. Small product-form networks are solved exactly (convolution, Buzen
//! 1973; Reiser and Kobayashi 1975); the others by approximate mean value analysis (Schweitzer 1979; Chandy and Neuse
//! 1982) with corrections for order of service, variance, several servers and service that goes on after the customer
//! has left.

mod approximate;
mod exact;
mod inner_start;

pub(crate) use inner_start::InnerStarts;

use crate::heuristics::{Heuristic, Heuristics};
use crate::numeric::arrivals::Arrivals;
use crate::numeric::by_id::{ById, ids};

ids! {
    /// A chain of a [`Network`].
    ChainId,
    /// A station of a [`Network`].
    StationId,
}

/// How a station serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// First come first served, also random order.
    Fcfs,
    /// Processor sharing.
    Sharing,
    /// Higher priority first, without pre-emption.
    HeadOfLine,
    /// Higher priority first, with pre-emption and resumption.
    Preemptive,
}

/// A station with a queue. Stations without one are delays of their chains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Station {
    /// Order of service.
    pub discipline: Discipline,
    /// Number of servers that it has on the mean.
    pub servers: f64,
    /// How many servers of a shared station may be busy at once, until as much is used as `servers` give in a [period](dyelog_lqn::model::CAP_PERIOD).
    pub at_once: Option<f64>,
    /// Seconds for which a request waits longer than if the servers went their own ways, as they queue for something
    /// themselves; where there are several, and first come is first served.
    pub thread_queueing: f64,
    /// How requests come.
    pub arrivals: Arrivals,
}

/// How much load a chain brings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// A population that circulates, with the time of a cycle that is spent at no station.
    Closed {
        /// How many customers.
        population: f64,
        /// Seconds a cycle.
        delay: f64,
    },
    /// A Poisson stream, per second.
    Open(f64),
}

/// A chain's visits to a station, all classes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Visit {
    /// Which chain.
    pub chain: ChainId,
    /// Which station.
    pub station: StationId,
    /// How often in a cycle.
    pub visits: f64,
    /// Mean service, seconds a visit.
    pub service: f64,
    /// Second moment of service.
    pub service2: f64,
    /// Mean time for which the server goes on after the customer has left.
    pub after: f64,
    /// Second moment of that time.
    pub after2: f64,
    /// Priority; higher goes first.
    pub priority: i32,
    /// The part of visits that directly follow one to the same station, and the mean time between those two.
    pub repeat: f64,
    /// Seconds between a visit and the one that directly follows.
    #[expect(clippy::struct_field_names, reason = "the time between visits is called so")]
    pub inter_visit: f64,
    /// By how much longer customers stay for reasons of their own, which others see but which is part of the chain's delay.
    pub longer: f64,
    /// Where an iteration may start: what is known of the stay so far.
    pub guess: Stay,
}

/// A queueing network.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Network {
    /// Stations.
    pub stations: ById<StationId, Station>,
    /// Chains.
    pub chains: ById<ChainId, Load>,
    /// Visits in the order of chains, at most one a chain and station.
    pub visits: Vec<Visit>,
    /// `(c, j, fraction)`: a customer of chain c never finds this fraction of the customers of chain j, because they are
    /// there on behalf of the same customer (or finds more of them, where it is negative). Sorted by c.
    pub interlock: Vec<(ChainId, ChainId, f64)>,
    /// Rules beyond product form.
    pub heuristics: Heuristics,
}

/// What a visit takes beyond its service: a class of service time s stays for `wait + s·(1 + slowdown)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stay {
    /// Seconds that do not depend on the class's own service time.
    pub wait: f64,
    /// Relative lengthening of the class's own service time.
    pub slowdown: f64,
}

/// Which method solved a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    /// Nothing queues, or only independent open stations: formulas.
    Formula,
    /// Exact by convolution.
    Exact,
    /// Exact for the nearest product-form network, plus what approximation says of the difference.
    Corrected,
    /// Linearizer.
    Linearizer,
    /// Schweitzer's approximation.
    Schweitzer,
}

/// Steady state of a network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Solution {
    /// By visit.
    pub stays: Vec<Stay>,
    /// By chain: cycles per second.
    pub throughputs: ById<ChainId, f64>,
    /// How it was found.
    pub method: Method,
    /// Whether the iteration inside the method met its bound.
    pub converged: bool,
    /// By station: whether open load alone fills it.
    pub saturated: ById<StationId, bool>,
}

/// Whether formulas for independent stations are exact: the network has product form, or is a single queue with general
/// service (Pollaczek and Khinchine) that everyone passes `once`.
pub(crate) fn formulas_are_exact(network: &Network, once: bool) -> bool {
    let single = || match &*network.stations {
        [station] => once && station.discipline == Discipline::Fcfs && station.servers <= 1.0,
        _ => false,
    };
    network.stations.iter().all(|station| station.arrivals == Arrivals::Poisson && station.at_once.is_none())
        && (exact::product_form(network) || single())
}

/// How much work the exact method may take.
const EXACT_WORK: f64 = 4e5;
/// How much work one Linearizer iteration may take.
const LINEARIZER_WORK: f64 = 2e3;

/// Solves a network. `thorough` permits the costlier methods; iterations start from what `inner_starts` holds of them.
pub(crate) fn solve(network: &Network, thorough: bool, inner_starts: &mut InnerStarts) -> Solution {
    inner_starts.rewind();
    let closed = network.chains.iter().any(|load| matches!(load, Load::Closed { .. }));
    if !closed || network.visits.is_empty() {
        let mut solution = approximate::solve(network, approximate::Core::Schweitzer, inner_starts);
        solution.method = Method::Formula;
        return solution;
    }
    let small = exact::work(network) <= EXACT_WORK;
    if thorough && small && exact::applies(network) {
        return exact::solve(network, inner_starts);
    }
    let core = if thorough
        && network.heuristics.has(Heuristic::Linearizer)
        && approximate::linearizer_work(network) <= LINEARIZER_WORK
    {
        approximate::Core::Linearizer
    } else {
        approximate::Core::Schweitzer
    };
    let rough = approximate::solve(network, core, inner_starts);
    if thorough
        && small
        && network.heuristics.has(Heuristic::ProductFormCorrection)
        && let Some(near) = exact::nearest(network)
    {
        let base = approximate::solve(&near, core, inner_starts);
        let exact = exact::solve(&near, inner_starts);
        return correct(network, rough, &base, &exact);
    }
    rough
}

/// The exact solution of a neighbour plus the difference that the approximation sees between the two.
fn correct(network: &Network, rough: Solution, base: &Solution, exact: &Solution) -> Solution {
    if !(rough.converged && base.converged) {
        return rough;
    }
    let mut result = rough.clone();
    for (index, visit) in network.visits.iter().enumerate() {
        let total = |stay: &Stay| stay.wait + visit.service * stay.slowdown;
        let (from, near) = (total(&base.stays[index]), total(&exact.stays[index]));
        let stay = &mut result.stays[index];
        let own = total(stay);
        // Relative where the approximation errs by a factor; never negative.
        if from > 1e-12 && own > 0.0 {
            let factor = (near / from).clamp(0.2, 5.0);
            stay.wait *= factor;
            stay.slowdown *= factor;
        }
    }
    result.throughputs = cycles(network, &result.stays);
    result.method = Method::Corrected;
    if overloaded(network, &result) { rough } else { result }
}

/// Whether some servers would have to do more than they can.
fn overloaded(network: &Network, solution: &Solution) -> bool {
    let mut loads = ById::like(&network.stations, 0.0);
    for visit in &network.visits {
        loads[visit.station] += solution.throughputs[visit.chain] * visit.visits * (visit.service + visit.after);
    }
    loads.iter().zip(&network.stations).any(|(load, station)| *load > station.servers * (1.0 + 1e-6))
}

/// By station: mean customers, where all of them are of open chains.
pub(crate) fn open_customers(network: &Network, solution: &Solution) -> Vec<Option<f64>> {
    let mut customers = ById::like(&network.stations, Some(0.0));
    for (visit, stay) in network.visits.iter().zip(&solution.stays) {
        let there = &mut customers[visit.station];
        *there = match network.chains[visit.chain] {
            Load::Open(rate) => there.map(|sum: f64| {
                sum + rate * visit.visits * (stay.wait + visit.longer + visit.service * (1.0 + stay.slowdown))
            }),
            Load::Closed { .. } => None,
        };
    }
    customers.iter().copied().collect()
}

/// Throughputs that follow from stays by Little's law.
pub(crate) fn cycles(network: &Network, stays: &[Stay]) -> ById<ChainId, f64> {
    let mut times = ById::like(&network.chains, 0.0);
    for (visit, stay) in network.visits.iter().zip(stays) {
        times[visit.chain] += visit.visits * (stay.wait + visit.service * (1.0 + stay.slowdown));
    }
    network
        .chains
        .iter()
        .zip(&times)
        .map(|(load, time)| match *load {
            Load::Open(rate) => rate,
            Load::Closed { population, delay } => {
                let cycle = delay + time;
                if cycle > 0.0 { population / cycle } else { 0.0 }
            }
        })
        .collect()
}
