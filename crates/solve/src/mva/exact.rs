//! Product-form networks by convolution over the lattice of populations (Reiser and Kobayashi 1975).
//!
//! Demands are scaled by an estimate of each chain's throughput and the delay of each chain enters as a Poisson
//! distribution, so that no normalisation constant overflows; all terms are positive, so nothing cancels.

use super::{
    ChainId, Discipline, InnerStarts, Load, Method, Network, Solution, StationId, Stay, Visit, approximate, cycles,
};
use crate::numeric::arrivals::Arrivals;
use crate::numeric::by_id::ById;

/// The lattice of population vectors 0..=N, chain 0 fastest.
struct Lattice {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    points: usize,
}

impl Lattice {
    fn new(populations: &[usize]) -> Self {
        let sizes: Vec<usize> = populations.iter().map(|population| population + 1).collect();
        let mut strides = Vec::with_capacity(sizes.len());
        let mut points = 1;
        for size in &sizes {
            strides.push(points);
            points *= size;
        }
        Self { sizes, strides, points }
    }

    fn coordinate(&self, point: usize, chain: usize) -> usize {
        point / self.strides[chain] % self.sizes[chain]
    }
}

/// A closed chain.
#[derive(Clone, Copy)]
struct ClosedChain {
    chain: ChainId,
    population: f64,
    delay: f64,
}

fn closed(network: &Network) -> impl Iterator<Item = ClosedChain> + '_ {
    network.chains.pairs().filter_map(|(chain, load)| match *load {
        Load::Closed { population, delay } => Some(ClosedChain { chain, population, delay }),
        Load::Open(_) => None,
    })
}

/// About how many multiplications [`solve`] takes.
pub(super) fn work(network: &Network) -> f64 {
    let points: f64 = closed(network).map(|own| own.population + 1.0).product();
    let chains = closed(network).count() as f64;
    let several = network.stations.iter().filter(|station| station.servers > 1.0).count() as f64;
    let single = network.stations.len() as f64 - several;
    points * (single * chains * 2.0 + several * points * 3.0 + chains)
}

/// Whether the network has product form and is one that [`solve`] can do.
pub(super) fn applies(network: &Network) -> bool {
    let self_only = network.interlock.is_empty();
    let whole = closed(network).all(|own| own.population.fract() == 0.0 && own.population >= 1.0 && own.delay >= 0.0);
    let apart = network.stations.iter().all(|station| {
        station.thread_queueing == 0.0 && station.arrivals == Arrivals::Poisson && station.at_once.is_none()
    });
    let open_several = network.visits.iter().any(|visit| {
        matches!(network.chains[visit.chain], Load::Open(_)) && network.stations[visit.station].servers > 1.0
    });
    self_only && whole && apart && !open_several && product_form(network)
}

/// Whether each visit looks like the first one at its station, where that matters.
pub(super) fn product_form(network: &Network) -> bool {
    let mut first: ById<StationId, Option<&Visit>> = ById::like(&network.stations, None);
    network.visits.iter().all(|visit| {
        let station = &network.stations[visit.station];
        let first = first[visit.station].get_or_insert(visit);
        let alike = visit.after <= 1e-9 * visit.service
            && visit.longer <= 0.0
            && (visit.service - first.service).abs() <= 1e-6 * first.service
            && (visit.service2 - 2.0 * visit.service * visit.service).abs() <= 1e-6 * visit.service2
            && (visit.priority == first.priority || station.discipline == Discipline::Fcfs);
        station.discipline == Discipline::Sharing || alike
    })
}

/// The network with processor sharing everywhere and without interlock, if [`solve`] can do that one.
pub(super) fn nearest(network: &Network) -> Option<Network> {
    // Of thread queueing the neighbour knows nothing, and most of the wait may be that.
    if network.stations.iter().any(|station| station.thread_queueing != 0.0) {
        return None;
    }
    let mut near = network.clone();
    near.interlock.clear();
    for station in &mut near.stations {
        station.discipline = Discipline::Sharing;
        station.thread_queueing = 0.0;
        station.arrivals = Arrivals::Poisson;
    }
    for visit in &mut near.visits {
        visit.after = 0.0;
        visit.after2 = 0.0;
        visit.longer = 0.0;
        visit.service2 = 2.0 * visit.service * visit.service;
    }
    applies(&near).then_some(near)
}

/// Solves a network to which [`applies`].
pub(super) fn solve(network: &Network, inner_starts: &mut InnerStarts) -> Solution {
    let rough = approximate::solve(network, approximate::Core::Schweitzer, inner_starts);
    let chains: Vec<ClosedChain> = closed(network).collect();
    let populations: Vec<usize> = chains.iter().map(|own| own.population as usize).collect();
    let lattice = Lattice::new(&populations);
    let mut slot_of: ById<ChainId, Option<usize>> = ById::like(&network.chains, None);
    for (slot, own) in chains.iter().enumerate() {
        slot_of[own.chain] = Some(slot);
    }
    let mut open = ById::like(&network.stations, 0.0);
    for visit in &network.visits {
        if let Load::Open(rate) = network.chains[visit.chain] {
            open[visit.station] += rate * visit.visits * visit.service;
        }
    }
    if open.iter().any(|load| *load >= 1.0) {
        return rough;
    }
    // Scaled demands by station and slot.
    let scale: Vec<f64> = chains.iter().map(|own| rough.throughputs[own.chain].max(f64::MIN_POSITIVE)).collect();
    let mut demands = ById::like(&network.stations, vec![0.0; chains.len()]);
    for visit in &network.visits {
        if let Some(slot) = slot_of[visit.chain] {
            demands[visit.station][slot] += visit.visits * visit.service * scale[slot]
                / if network.stations[visit.station].servers == 1.0 { 1.0 - open[visit.station] } else { 1.0 };
        }
    }
    let delays = delay_terms(&lattice, &chains, &scale);
    let several: Vec<StationId> = network.stations.ids().filter(|&k| network.stations[k].servers > 1.0).collect();
    let terms: Vec<Vec<f64>> =
        several.iter().map(|&k| server_terms(&lattice, &demands[k], network.stations[k].servers)).collect();
    let mut constant = delays;
    for (station, demand) in demands.pairs() {
        if network.stations[station].servers == 1.0 {
            add_single(&lattice, &mut constant, demand);
        }
    }
    let without_several = constant.clone();
    for term in &terms {
        constant = convolve(&lattice, &constant, term);
    }
    let last = lattice.points - 1;
    let total = constant[last];
    if !(total.is_finite() && total > 0.0) {
        return rough;
    }
    let mut queues = ById::like(&network.stations, vec![0.0; chains.len()]);
    for (station, demand) in demands.pairs() {
        if network.stations[station].servers == 1.0 {
            let mut twice = constant.clone();
            add_single(&lattice, &mut twice, demand);
            for (slot, value) in demand.iter().enumerate() {
                queues[station][slot] = value * twice[last - lattice.strides[slot]] / total;
            }
        }
    }
    for (position, &station) in several.iter().enumerate() {
        let mut others = without_several.clone();
        for (other, term) in terms.iter().enumerate() {
            if other != position {
                others = convolve(&lattice, &others, term);
            }
        }
        for point in 0..lattice.points {
            let weight = terms[position][point] * others[last - point] / total;
            for (slot, queue) in queues[station].iter_mut().enumerate() {
                *queue += weight * lattice.coordinate(point, slot) as f64;
            }
        }
    }
    let mut rates = ById::like(&network.chains, 0.0);
    for (slot, own) in chains.iter().enumerate() {
        rates[own.chain] = scale[slot] * constant[last - lattice.strides[slot]] / total;
    }
    let stays: Vec<Stay> = network
        .visits
        .iter()
        .map(|visit| {
            let time = if let Some(slot) = slot_of[visit.chain] {
                queues[visit.station][slot] / (rates[visit.chain] * visit.visits)
            } else {
                let customers: f64 = queues[visit.station].iter().sum();
                visit.service * (1.0 + customers) / (1.0 - open[visit.station])
            };
            spread(network, visit, (time - visit.service).max(0.0))
        })
        .collect();
    if stays.iter().any(|stay| !(stay.wait.is_finite() && stay.slowdown.is_finite())) {
        return rough;
    }
    let throughputs = cycles(network, &stays);
    Solution {
        stays,
        throughputs,
        method: Method::Exact,
        converged: true,
        saturated: ById::like(&network.stations, false),
    }
}

/// Time beyond service as the discipline deals it out.
fn spread(network: &Network, visit: &Visit, extra: f64) -> Stay {
    if network.stations[visit.station].discipline == Discipline::Sharing && visit.service > 0.0 {
        Stay { wait: 0.0, slowdown: extra / visit.service }
    } else {
        Stay { wait: extra, slowdown: 0.0 }
    }
}

/// The product over chains of Poisson probabilities with the mean number in delay.
fn delay_terms(lattice: &Lattice, chains: &[ClosedChain], scale: &[f64]) -> Vec<f64> {
    let by_chain: Vec<Vec<f64>> = chains
        .iter()
        .zip(scale)
        .enumerate()
        .map(|(slot, (own, scale))| {
            let mean = own.delay * scale;
            let mut log = -mean;
            (0..lattice.sizes[slot])
                .map(|count| {
                    if count == 0 {
                        return log.exp();
                    }
                    if mean <= 0.0 {
                        return 0.0;
                    }
                    log += (mean / count as f64).ln();
                    log.exp()
                })
                .collect()
        })
        .collect();
    (0..lattice.points)
        .map(|point| by_chain.iter().enumerate().map(|(slot, terms)| terms[lattice.coordinate(point, slot)]).product())
        .collect()
}

/// Takes a single-server station into the normalisation constants, in place.
fn add_single(lattice: &Lattice, constant: &mut [f64], demand: &[f64]) {
    for point in 0..lattice.points {
        let mut sum = constant[point];
        for (slot, value) in demand.iter().enumerate() {
            if *value > 0.0 && lattice.coordinate(point, slot) > 0 {
                sum += value * constant[point - lattice.strides[slot]];
            }
        }
        constant[point] = sum;
    }
}

/// Weights of the states of a station with several servers: ordered queues with rates min(n, m).
fn server_terms(lattice: &Lattice, demand: &[f64], servers: f64) -> Vec<f64> {
    let mut terms = vec![0.0; lattice.points];
    terms[0] = 1.0;
    for point in 1..lattice.points {
        let total: usize = (0..demand.len()).map(|slot| lattice.coordinate(point, slot)).sum();
        let mut sum = 0.0;
        for (slot, value) in demand.iter().enumerate() {
            if lattice.coordinate(point, slot) > 0 {
                sum += value * terms[point - lattice.strides[slot]];
            }
        }
        terms[point] = sum / (total as f64).min(servers);
    }
    terms
}

fn convolve(lattice: &Lattice, left: &[f64], right: &[f64]) -> Vec<f64> {
    let mut result = vec![0.0; lattice.points];
    let support: Vec<usize> = (0..lattice.points).filter(|&point| right[point] > 0.0).collect();
    let coordinates: Vec<Vec<usize>> = (0..lattice.points)
        .map(|point| (0..lattice.sizes.len()).map(|chain| lattice.coordinate(point, chain)).collect())
        .collect();
    for (point, out) in result.iter_mut().enumerate() {
        for &part in &support {
            if part > point {
                break;
            }
            let fits = coordinates[part].iter().zip(&coordinates[point]).all(|(small, large)| small <= large);
            if fits {
                *out += right[part] * left[point - part];
            }
        }
    }
    result
}
