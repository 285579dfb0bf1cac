//! What an arriving customer finds at a station, and what that makes of its visit.

use super::{Deviations, Populations, Problem, State};
use crate::heuristics::Heuristic;
use crate::mva::{ChainId, Discipline, StationId, Stay, Visit};
use crate::numeric::arrivals::Arrivals;
use crate::numeric::by_id::Id;
use crate::numeric::caps::{beside_a_part, part_of_cap};
use crate::numeric::erlang::{all_busy, variance_ratio};
use crate::numeric::two_moment::Distribution;

/// What open load leaves free at least, so that a saturated station gives large numbers and no infinite ones.
const LEAST_FREE: f64 = 1e-6;
/// Stations with more visitors than this are summed up once for all of them.
const FEW: usize = 48;

/// What a visit's customers mean to one that arrives. Times left are those of exponential service.
#[derive(Clone, Copy, Default)]
pub(super) struct VisitorLoad {
    /// Number that wait.
    pub waiting: f64,
    /// Work of those that wait.
    pub queued: f64,
    /// Mean in service.
    pub busy: f64,
    /// Work left of those in service.
    pub residual: f64,
    /// Servers that go on for customers that have left.
    pub after: f64,
    /// Work left of those.
    pub after_residual: f64,
    /// Sum of second moments of what keeps the server busy, per second.
    pub second: f64,
    /// Visits per second.
    pub rate: f64,
    /// Number that are there for reasons of their own, beyond service and waits.
    pub longer: f64,
}

/// What is the same for all visitors of a station.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    /// Closed chains.
    pub part: VisitorLoad,
    /// Open chains.
    pub open: VisitorLoad,
    /// How many customers there can be; infinite where open load or further phases keep servers busy.
    pub population: f64,
    /// Effect of service times that are not exponential.
    pub ratio: f64,
}

impl Totals {
    /// How much of the way from a station without a cap to one with as many servers as the cap leaves a station is at which work stands still once the cap of a period is used.
    fn capped(&self, at_once: f64, servers: f64) -> f64 {
        let rate = self.part.rate + self.open.rate;
        let busy = self.part.load() + self.open.load();
        let second = self.part.second + self.open.second;
        if rate <= 0.0 || busy <= 0.0 || second <= 0.0 {
            return 0.0;
        }
        part_of_cap((at_once, servers), busy, busy / rate, second / (2.0 * busy))
    }

    /// How many customers can be there beside one that arrives.
    fn others(&self, open: bool) -> f64 {
        if open { f64::INFINITY } else { self.population - 1.0 }
    }
}

impl VisitorLoad {
    /// Mean busy servers.
    pub fn load(&self) -> f64 {
        self.busy + self.after
    }

    pub fn add(&mut self, other: &Self, factor: f64, after_factor: f64) {
        self.waiting += factor * other.waiting;
        self.queued += factor * other.queued;
        self.busy += factor * other.busy;
        self.residual += factor * other.residual;
        self.after += after_factor * other.after;
        self.after_residual += after_factor * other.after_residual;
        self.second += other.second;
        self.rate += other.rate;
        self.longer += other.longer;
    }
}

impl Problem<'_> {
    /// All visitors of a station together; what service times that are not exponential do to them may be known.
    pub(super) fn totals(
        &self,
        station: StationId,
        populations: &Populations,
        state: &State,
        ratio: Option<f64>,
    ) -> Totals {
        let mut totals = Totals::default();
        let mut goes_on = false;
        for &index in &self.visitors[station] {
            let visit = &self.network.visits[index];
            goes_on |= visit.after > 0.0;
            if self.open[visit.chain] {
                totals.open.add(&state.parts[index], 1.0, 1.0);
            } else {
                totals.part.add(&state.parts[index], 1.0, 1.0);
                totals.population += populations[visit.chain];
            }
        }
        let closed = totals.population;
        let finite = self.network.heuristics.has(Heuristic::FinitePopulationServers);
        if totals.open.rate > 0.0 || goes_on || !finite {
            totals.population = f64::INFINITY;
        }
        totals.ratio = ratio.unwrap_or_else(|| self.ratio(station, &totals, closed));
        totals
    }

    /// How much longer a queue with these visitors is than one with exponential service and Poisson arrivals.
    fn ratio(&self, station: StationId, totals: &Totals, closed: f64) -> f64 {
        let own = &self.network.stations[station];
        let (own_cv2, ratio) =
            if own.discipline == Discipline::Sharing { (1.0, 1.0) } else { self.variance(station, totals, closed) };
        let dispatching = match own.arrivals {
            Arrivals::Poisson => return ratio,
            Arrivals::InTurn { .. } => Heuristic::RegularArrivals,
            Arrivals::Shortest { .. } | Arrivals::ShortestOfTwo { .. } => Heuristic::ShortestQueues,
        };
        if !self.network.heuristics.has(dispatching) {
            return ratio;
        }
        let load = (totals.part.load() + totals.open.load()) / own.servers;
        ratio * own.arrivals.shorter(own.servers, own_cv2, load)
    }

    /// The squared coefficient of variation of service, and how much longer a queue that is served in the order of arrival is for it.
    fn variance(&self, station: StationId, totals: &Totals, closed: f64) -> (f64, f64) {
        let (part, open) = (&totals.part, &totals.open);
        let rate = part.rate + open.rate;
        let load = part.busy + part.after + open.busy + open.after;
        let base = 2.0 * (part.residual + part.after_residual + open.residual + open.after_residual);
        if rate <= 0.0 || load <= 0.0 || base <= 0.0 {
            return (1.0, 1.0);
        }
        let mean = load / rate;
        let cv2 = |second: f64| (second / rate / (mean * mean) - 1.0).max(0.0);
        let (own, exponential) = (cv2(part.second + open.second), cv2(base));
        let unbounded = (1.0 + own) / (1.0 + exponential);
        if part.rate <= 0.0 || !self.network.heuristics.has(Heuristic::FiniteSourceVariance) {
            return (own, unbounded);
        }
        let servers = self.network.stations[station].servers;
        let think = ((closed - part.waiting - part.busy) / part.rate).max(1e-9 * mean);
        let bounded = variance_ratio(own, exponential, closed - servers + 1.0, mean / servers / think);
        (own, (part.rate * bounded + open.rate * unbounded) / rate)
    }

    /// The part of the other visit's customers that one of `chain` finds on arrival.
    fn factor(
        &self,
        chain: ChainId,
        other: usize,
        populations: &Populations,
        state: &State,
        deviations: Option<&Deviations>,
    ) -> f64 {
        let other_chain = self.network.visits[other].chain;
        if self.open[chain] || self.open[other_chain] {
            return 1.0;
        }
        let population = populations[other_chain];
        if population <= 0.0 {
            return 0.0;
        }
        let left = if chain == other_chain { ((population - 1.0) / population).max(0.0) } else { 1.0 };
        let interlocked = self.interlocked(chain, other_chain);
        let base = if chain == other_chain { left.min(1.0 - interlocked) } else { 1.0 - interlocked };
        let shift = match deviations {
            Some(deviations) if state.customers[other] > 0.0 => {
                1.0 + deviations[chain][other] * population / state.customers[other]
            }
            _ => 1.0,
        };
        (base * shift).max(0.0)
    }

    fn interlocked(&self, chain: ChainId, other: ChainId) -> f64 {
        let (chain, other) = (chain.position(), other.position());
        if chain < self.width && other < self.width { self.interlock[chain * self.width + other] } else { 0.0 }
    }

    /// What an arriving customer finds, closed chains only.
    fn found(
        &self,
        index: usize,
        populations: &Populations,
        state: &State,
        deviations: Option<&Deviations>,
        totals: &VisitorLoad,
    ) -> VisitorLoad {
        let visit = &self.network.visits[index];
        if self.open[visit.chain] {
            return *totals;
        }
        let visitors = &self.visitors[visit.station];
        let own_after = |chain: ChainId| {
            let population = populations[chain];
            if chain == visit.chain && population > 0.0 { ((population - 1.0) / population).max(0.0) } else { 1.0 }
        };
        let station = &self.network.stations[visit.station];
        let bounded = station.discipline == Discipline::Fcfs
            && station.servers <= 1.0
            && self.network.heuristics.has(Heuristic::DelayBound);
        let sees_all = || {
            let row = visit.chain.position() * self.width;
            visit.chain.position() >= self.width
                || self.interlock[row..row + self.width].iter().all(|part| *part == 0.0)
        };
        if visitors.len() > FEW || (deviations.is_none() && !bounded && sees_all()) {
            let mut found = *totals;
            let factor = self.factor(visit.chain, index, populations, state, None);
            found.add(&state.parts[index], factor - 1.0, own_after(visit.chain) - 1.0);
            return found;
        }
        // While it queues, a customer waits for others no more than the server serves them: each service delays it once.
        let longest = between_visits(visit, populations, state);
        let mut found = VisitorLoad::default();
        for &other in visitors {
            let chain = self.network.visits[other].chain;
            if !self.open[chain] {
                let factor = self.factor(visit.chain, other, populations, state, deviations);
                let part = &state.parts[other];
                let most = if bounded && chain != visit.chain { longest * part.load() } else { f64::INFINITY };
                let after = own_after(chain);
                let work = factor * (part.queued + part.residual) + after * part.after_residual;
                let limit = if work > most { most / work } else { 1.0 };
                found.add(part, factor * limit, after * limit);
            }
        }
        found
    }

    /// Whether the server is still busy for this customer's own previous request when it comes again, and the mean work
    /// that is left then: a second phase against an exponential time between reply and next arrival.
    fn overtaking(&self, index: usize, populations: &Populations, state: &State) -> (f64, f64) {
        let visit = &self.network.visits[index];
        if visit.after <= 0.0 || self.open[visit.chain] || !self.network.heuristics.has(Heuristic::Overtaking) {
            return (0.0, 0.0);
        }
        let between = between_visits(visit, populations, state);
        if !between.is_finite() {
            return (0.0, 0.0);
        }
        let stay = state.stays[index];
        let gap = (between - (stay.wait + visit.service * (1.0 + stay.slowdown))).max(0.0);
        let repeats = self.network.heuristics.has(Heuristic::RepeatVisits);
        let repeat = if repeats && visit.inter_visit < gap { visit.repeat } else { 0.0 };
        let (near, far) = (
            overtakes(visit, visit.inter_visit),
            overtakes(visit, (gap - repeat * visit.inter_visit) / (1.0 - repeat).max(1e-9)),
        );
        (repeat * near.0 + (1.0 - repeat) * far.0, repeat * near.1 + (1.0 - repeat) * far.1)
    }

    /// Work of all others that are at the station while it is busy for this customer's previous request: they wait.
    fn overtaken_queue(&self, index: usize, populations: &Populations, state: &State, totals: &Totals) -> f64 {
        let chain = self.network.visits[index].chain;
        let mut work = totals.open.busy;
        for &other in &self.visitors[self.network.visits[index].station] {
            let visit = &self.network.visits[other];
            let factor = if visit.chain == chain {
                ((populations[chain] - 1.0) / populations[chain]).max(0.0)
            } else {
                1.0 - self.interlocked(chain, visit.chain)
            };
            if !self.open[visit.chain] {
                work += factor.max(0.0) * state.customers[other] * (visit.service + visit.after);
            }
        }
        work
    }

    /// What the visit takes beyond its service, as things stand.
    pub(super) fn stay(
        &self,
        index: usize,
        populations: &Populations,
        state: &State,
        deviations: Option<&Deviations>,
        totals: &Totals,
    ) -> Stay {
        let visit = &self.network.visits[index];
        let station = &self.network.stations[visit.station];
        if matches!(station.discipline, Discipline::HeadOfLine | Discipline::Preemptive) {
            return self.priority_stay(index, populations, state, deviations, totals);
        }
        let found = self.found(index, populations, state, deviations, &totals.part);
        let (overtakes, overtaking) = self.overtaking(index, populations, state);
        let open = &totals.open;
        let servers = station.servers;
        // What open load waits for itself is in what it leaves free, what it waits for reasons of its own is not.
        let free = (servers - self.open_load[visit.station]).max(LEAST_FREE * servers);
        let busy = found.busy + found.after + open.busy + open.after;
        let residual = found.residual + found.after_residual + open.residual + open.after_residual;
        if let Some(at_once) = station.at_once {
            let others = totals.others(self.open[visit.chain]);
            let part =
                if self.network.heuristics.has(Heuristic::CapPeriods) { totals.capped(at_once, servers) } else { 1.0 };
            let slowdown = |servers: f64| {
                let free = (servers - self.open_load[visit.station]).max(LEAST_FREE * servers);
                if servers > 1.0 {
                    let queueing = beside_a_part(servers, busy) * all_busy(servers, others, busy);
                    ((totals.ratio * queueing + open.longer) / free, 1.0 / free)
                } else {
                    // Less than one server serves whoever is alone more slowly, too.
                    ((totals.ratio * busy + open.longer + 1.0 - servers) / free, 1.0 / free)
                }
            };
            let (without, of_cap) = (slowdown(at_once), slowdown(servers));
            let more = part * (of_cap.0 - without.0).max(0.0);
            // Those that wait do so for either reason.
            let all = without.0 + more;
            let of_waiting = if all > 0.0 { (without.0 * without.1 + more * of_cap.1) / all } else { without.1 };
            return Stay { wait: 0.0, slowdown: all + found.waiting * of_waiting };
        }
        if servers <= 1.0 {
            return if station.discipline == Discipline::Sharing {
                Stay { wait: overtaking, slowdown: (found.waiting + totals.ratio * busy + open.longer) / free }
            } else {
                // A customer that overtakes finds the queue behind its own previous request.
                let overtaken_queue =
                    if overtakes > 0.0 { self.overtaken_queue(index, populations, state, totals) } else { 0.0 };
                // Service that varies lengthens what is left of the service under way; those that queue need theirs as it is.
                let mean = if open.rate > 0.0 { open.load() / open.rate } else { 0.0 };
                let plain = found.queued + open.longer * mean + totals.ratio * residual;
                Stay {
                    wait: (overtaking + overtakes * overtaken_queue + (1.0 - overtakes) * plain) / free,
                    slowdown: 0.0,
                }
            };
        }
        let all = all_busy(servers, totals.others(self.open[visit.chain]), busy);
        if station.discipline == Discipline::Sharing {
            Stay { wait: 0.0, slowdown: (found.waiting + totals.ratio * all + open.longer) / free }
        } else {
            let mean = if busy > 0.0 { residual / busy } else { 0.0 };
            // Relative to service times that are exponential and the same for all.
            let rate = found.rate + open.rate;
            let spread = if busy > 0.0 { mean * rate / busy } else { 1.0 };
            // Customers of closed chains that wait for that are among those that others find waiting.
            let once = (1.0 - totals.part.load() / free).max(0.0);
            let thread_queueing = totals.ratio * spread * once * station.thread_queueing;
            let plain = (found.queued + totals.ratio * all * mean) / free;
            Stay { wait: (plain + thread_queueing).max(0.0), slowdown: 0.0 }
        }
    }

    fn priority_stay(
        &self,
        index: usize,
        populations: &Populations,
        state: &State,
        deviations: Option<&Deviations>,
        totals: &Totals,
    ) -> Stay {
        let visit = &self.network.visits[index];
        let station = &self.network.stations[visit.station];
        let servers = station.servers;
        let preemptive = station.discipline == Discipline::Preemptive;
        let mut found = VisitorLoad::default();
        let (mut ahead, mut higher) = (0.0, 0.0);
        for &other in &self.visitors[visit.station] {
            let (theirs, part) = (&self.network.visits[other], &state.parts[other]);
            if theirs.priority > visit.priority {
                higher += part.busy + part.after;
            }
        }
        let free = (servers - higher).max(1e-3 * servers);
        for &other in &self.visitors[visit.station] {
            let theirs = &self.network.visits[other];
            let part = &state.parts[other];
            let factor = self.factor(visit.chain, other, populations, state, deviations);
            // While one of a higher class is served, it is not that one that comes ahead of those that wait (compare Bryant,
            // Krzesinski, Lakshmi and Chandy 1984).
            let shadowed = self.network.heuristics.has(Heuristic::PriorityShadow);
            let once = if shadowed && theirs.priority > visit.priority && !self.open[theirs.chain] {
                free / (free + (part.busy + part.after) / populations[theirs.chain].max(1.0))
            } else {
                1.0
            };
            if theirs.priority >= visit.priority {
                ahead += factor * once * part.queued;
            }
            if !preemptive || theirs.priority >= visit.priority {
                found.add(part, factor * once, once * if theirs.chain == visit.chain { factor } else { 1.0 });
            }
        }
        let residual = found.residual + found.after_residual;
        let busy = found.busy + found.after;
        let (overtakes, overtaking) = self.overtaking(index, populations, state);
        let work = if servers <= 1.0 {
            residual
        } else if busy > 0.0 {
            all_busy(servers, totals.others(self.open[visit.chain]), busy.min(servers)) * residual / busy
        } else {
            0.0
        };
        let slowdown = match (preemptive, servers <= 1.0) {
            (false, _) => 0.0,
            (true, true) => 1.0 / free - 1.0,
            (true, false) => {
                let lost = all_busy(servers, f64::INFINITY, higher.min(servers * 0.999));
                lost / free
            }
        };
        let wait = ((1.0 - overtakes) * (ahead + totals.ratio * work) + overtaking + overtakes * ahead) / free;
        // Where open load fills the station, each step finds a longer queue than the one before.
        Stay { wait: wait.min((visit.service + residual) / (LEAST_FREE * free)), slowdown }
    }
}

/// The chance that what the server goes on with outlasts an exponential time of the given mean, and the mean excess.
fn overtakes(visit: &Visit, gap: f64) -> (f64, f64) {
    if gap <= 0.0 {
        return (1.0, visit.after);
    }
    let after = Distribution::of_variance(visit.after, visit.after2 - visit.after * visit.after);
    let odds = after.odds(1.0 / gap);
    let longer = odds / (1.0 + odds);
    (longer, (visit.after - gap * longer).max(0.0))
}

/// Mean time from one visit of a customer to its next.
fn between_visits(visit: &Visit, populations: &Populations, state: &State) -> f64 {
    let rate = state.throughputs[visit.chain] * visit.visits;
    if rate > 0.0 { populations[visit.chain] / rate } else { f64::INFINITY }
}
