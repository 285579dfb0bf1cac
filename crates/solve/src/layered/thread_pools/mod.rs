//! Pools of threads: what those inside do to each other, which a mean service time does not tell.
//!
//! Decomposition gives a task with several threads a mean service time above and a population below. Both lose something:
//! where threads queue for what is below them, more of them busy means that each is slower, so that requests wait longer
//! for a thread than at servers that go their own ways; and as long as a thread is free, those inside are as many as the
//! sources above send, not a population that is bounded by the number of threads.
//!
//! So a pool is one flow-equivalent server (Chandy, Herzog and Woo 1975): the throughput of what is below it with 1, 2, …
//! threads inside, as the rates of a birth-death process that its source feeds. That is exact for product form with one
//! class. It gives the time in the queue, and how many customers would, without a bound, keep as many busy at the same
//! throughput: these circulate below. They are the source's where threads hardly ever run out, and as many as there are
//! threads where all of them are busy.

mod background;
mod queue;
mod subnetwork;

use crate::layered::chains::{ClientId, ClientKind, Decomposition};
use crate::layered::submodels::Demand;
use crate::numeric::birth_death::{MOST_SOURCES, balance, root, steady};
use crate::numeric::by_id::ById;
use crate::prepare::plan::ModelPlan;
use dyelog_lqn::model::TaskId;

use background::BackgroundLoad;
use subnetwork::Subnetwork;

/// More threads than this are hardly ever all busy.
const MANY: f64 = 2000.0;
/// As many customers circulate where a stream feeds a pool.
const ENDLESS: f64 = 1e6;
/// What someone finds on arrival is known as exactly as that.
const ENOUGH: f64 = 1e-9;
/// How often, and by how much at most, a curve is corrected.
const CORRECTIONS: usize = 8;
const MOST_CORRECTED: f64 = 5.0;
/// Throughputs are followed up to this number of customers at least; from there on they hardly grow.
const LEAST_FOLLOWED: usize = 400;

/// What a pool's threads do to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlowEquivalentServer {
    /// How many customers circulate below.
    pub population: f64,
    /// Seconds for which a request waits for a thread longer than if its threads went their own ways.
    pub thread_queueing: f64,
}

/// What feeds the pools.
pub(crate) struct Inputs<'a> {
    /// By client: the pools as they were found before.
    pub before: &'a ById<ClientId, Option<FlowEquivalentServer>>,
    pub throughputs: &'a ById<ClientId, f64>,
    /// By client: demands at stations.
    pub demands: &'a ById<ClientId, Vec<Demand>>,
    /// By client: time of a cycle without idle time.
    pub busy: &'a ById<ClientId, f64>,
    /// By client: the part of its activity in which someone waits for it.
    pub blocking: &'a ById<ClientId, f64>,
    /// By client: requests per second to its task, and of them those that come as a stream.
    pub rates: &'a ById<ClientId, (f64, f64)>,
}

/// Pools by client; none for clients that are no pool, or too large for one.
pub(crate) fn flow_equivalents(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    inputs: &Inputs,
) -> ById<ClientId, Option<FlowEquivalentServer>> {
    let mut result: ById<ClientId, Option<FlowEquivalentServer>> = ById::like(&decomposition.clients, None);
    let background = BackgroundLoad::all(decomposition, inputs);
    let callers = callers(decomposition, inputs);
    // Callers come before those they call.
    for (client, found) in decomposition.clients.pairs() {
        let ClientKind::Threads(task) = found.kind else { continue };
        if !(found.population > 1.0 && found.population <= MANY) {
            continue;
        }
        let Some(subnetwork) = Subnetwork::new(plan, decomposition, inputs, &background, client) else { continue };
        let own = subnetwork.own;
        let source = source(decomposition, inputs, &result, client, &callers[task]);
        let curve = Curve::new(subnetwork, found.population, source.customers);
        let (population, thread_queueing) = curve.fed(found.population, inputs.busy[client], own, source);
        result[client] = Some(FlowEquivalentServer { population, thread_queueing });
    }
    result
}

/// The source of requests to a pool, as if all were alike.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// Infinitely many for a stream.
    customers: f64,
    /// Requests per second.
    rate: f64,
    /// Seconds from when a customer leaves the pool until it comes again.
    elsewhere: f64,
}

/// By task: the clients that wait for it, and what they do there.
fn callers<'a>(decomposition: &Decomposition, inputs: &Inputs<'a>) -> ById<TaskId, Vec<(ClientId, &'a Demand)>> {
    let mut callers = ById::like(&decomposition.threads_of, Vec::new());
    for (caller, demands) in inputs.demands.pairs() {
        for demand in demands {
            if let Err(task) = decomposition.element(demand.station) {
                callers[task].push((caller, demand));
            }
        }
    }
    callers
}

fn source(
    decomposition: &Decomposition,
    inputs: &Inputs,
    flow_equivalents: &ById<ClientId, Option<FlowEquivalentServer>>,
    client: ClientId,
    callers: &[(ClientId, &Demand)],
) -> Source {
    let (_, sent) = inputs.rates[client];
    // Streams are as if more customers waited.
    let (mut rate, mut there) = (0.0, 0.0);
    let mut seen = 0.0;
    for &(caller, demand) in callers {
        let (calls, customers) = (inputs.throughputs[caller] * demand.visits, inputs.throughputs[caller] * demand.stay);
        let population =
            flow_equivalents[caller].map_or(decomposition.clients[caller].population, |pool| pool.population);
        rate += calls;
        there += customers;
        seen += calls * customers / population;
    }
    if seen <= 0.0 {
        return Source { customers: f64::INFINITY, rate: rate + sent, elsewhere: 0.0 };
    }
    let more = 1.0 + sent / rate;
    // While the pool works for no caller that waits, its callers can come again: as if they were more, and stayed as long.
    let blocking = inputs.blocking[client].max(1e-3);
    let customers = more * more * (rate * there / seen / blocking).max(1.0);
    let staying = more * (there + rate * inputs.busy[client] * (1.0 - blocking));
    let rate = more * rate;
    Source { customers, rate, elsewhere: ((customers - staying) / rate).max(1e-9 * customers / rate) }
}

/// The throughput of what is below a pool, by the number of threads that are busy.
struct Curve {
    subnetwork: Subnetwork,
    /// Requests per second with 1, 2, … busy threads.
    rates: Vec<f64>,
}

impl Curve {
    fn new(mut subnetwork: Subnetwork, threads: f64, customers: f64) -> Self {
        // No more are ever there than there are customers; where threads are as many, nobody waits.
        let most = LEAST_FOLLOWED.max(4 * threads as usize);
        let most = if customers <= threads { 1 } else { most.min(customers.ceil() as usize) };
        let mut rates: Vec<f64> = Vec::new();
        for count in 1..=most {
            let rate = subnetwork.rate(count as f64);
            let grows = rates.last().is_none_or(|last| rate > last * (1.0 + 1e-9));
            rates.push(rate);
            if !grows && count as f64 > threads {
                break;
            }
        }
        Self { subnetwork, rates }
    }

    fn rate(&self, count: f64) -> f64 {
        self.rates[(count as usize).clamp(1, self.rates.len()) - 1]
    }

    /// The population below and the thread queueing of a pool with that source, each of whose requests seems to keep a thread busy for
    /// so long, where that part of what is below it is its own.
    fn fed(&self, threads: f64, busy: f64, own_part: f64, source: Source) -> (f64, f64) {
        let part = if source.customers <= MOST_SOURCES { own_part } else { 1.0 };
        if part <= 0.0 {
            return (threads, 0.0);
        }
        let endless = source.customers.min(ENDLESS);
        let between = |population: f64| 1.0 / (part / population + (1.0 - part) / threads);
        if source.rate <= 0.0 || source.customers <= threads {
            return (if source.rate > 0.0 { between(endless) } else { threads }, 0.0);
        }
        let rates = |count: f64| self.rate(count.min(threads));
        // Customers are followed from where they come from: requests per second turn on what they wait, the time elsewhere does not.
        let (customers, traffic) = if source.customers > MOST_SOURCES {
            (f64::INFINITY, source.rate)
        } else {
            (source.customers, source.customers / source.elsewhere)
        };
        let Some((mut own, mut rate)) = balance(&rates, threads, customers, traffic) else { return (threads, 0.0) };
        // From nobody else to others that take a quarter of what is served somewhere the curve is less and less sure of times:
        // where it finds requests longer than they seem to be, it is taken to be as much too slow.
        let sure = (4.0 * own_part - 3.0).max(0.0);
        let mut faster = 1.0;
        for _ in 0..CORRECTIONS {
            let next = faster * (own.busy / rate / busy).powf(1.0 - sure).max(1.0 / faster);
            if !(next <= MOST_CORRECTED && (next - faster).abs() > 1e-3 * faster) {
                break;
            }
            let rates = |count: f64| next * self.rate(count.min(threads));
            let Some((found, comes)) = balance(&rates, threads, customers, traffic) else { break };
            (own, rate, faster) = (found, comes, next);
        }
        // Where the curve is sure of it, requests are as long in all as it says, however long they seem to be in threads.
        let time = sure * busy + (1.0 - sure) * own.busy / rate;
        let apart = steady(|count| count.min(threads) / time, threads, customers, rate);
        let thread_queueing = apart.map_or(0.0, |apart| (own.queue - apart.queue + own.busy - rate * time) / rate);
        // Where threads do go their own ways, rounding is all that is left.
        let thread_queueing = if thread_queueing.abs() > 1e-9 * time { thread_queueing } else { 0.0 };
        // What would come if requests were no longer than that is more than comes where they are longer already.
        let thread_queueing = thread_queueing * (source.rate / rate).min(1.0);
        let rates = |count: f64| faster * self.rate(count);
        let population = self.population(&rates, own.busy, (threads, customers), rate).min(endless);
        (between(population), part * thread_queueing)
    }

    /// How many customers would keep so many threads busy at that rate if there were a thread for each: between the threads
    /// that there are and the customers of the source.
    fn population(&self, rates: &impl Fn(f64) -> f64, busy: f64, (threads, source): (f64, f64), rate: f64) -> f64 {
        let aim = self.seen(busy, rate);
        let error = |part: f64| {
            let source = 1.0 / part;
            let source = if source > MOST_SOURCES { f64::INFINITY } else { source };
            // Near the end of what can be served, means are no measure: what arriving customers must have found is.
            let found = steady(rates, f64::INFINITY, source, rate);
            aim - found.map_or(1.0, |found| self.seen(found.busy, rate))
        };
        let (low, high) = (1.0 / source, 1.0 / threads);
        let (at_low, at_high) = (error(low), error(high));
        if at_low >= -ENOUGH {
            return source;
        }
        if at_high <= ENOUGH {
            return threads;
        }
        let part = root((low, at_low), (high, at_high), ENOUGH, |part| Some(error(part)));
        part.map_or(threads, |part| 1.0 / part)
    }

    /// The part of the customers at each station that one that arrives must find there, if so many threads are busy at that rate.
    fn seen(&self, busy: f64, rate: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if self.subnetwork.customers(rate, middle) < busy {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::{Curve, ENDLESS, Source, Subnetwork, steady};

    fn curve(delay: f64, queues: &[f64], threads: f64) -> Curve {
        let queues: Vec<(f64, f64)> = queues.iter().map(|&time| (time, 1.0)).collect();
        Curve::new(Subnetwork::of(delay, &queues), threads, f64::INFINITY)
    }

    #[test]
    fn threads_that_share_one_processor_are_no_faster_than_it() {
        // M/M/1, of which as many as there are threads are in service at a time.
        for (threads, load) in [(2.0, 0.9_f64), (4.0, 0.5), (8.0, 0.99)] {
            let curve = curve(0.0, &[1.0], threads);
            let found = steady(|count| curve.rate(count.min(threads)), threads, f64::INFINITY, load).expect("it is");
            let there = found.busy + found.queue;
            assert!((there * (1.0 - load) / load - 1.0).abs() < 1e-9, "{threads} threads, load {load}: {there}");
        }
    }

    #[test]
    fn several_servers_are_those_of_the_queue() {
        // M/M/2 below four threads: as many in all as without a bound of threads.
        let curve = Curve::new(Subnetwork::of(0.0, &[(1.0, 2.0)]), 4.0, f64::INFINITY);
        for count in 1..=400 {
            assert!((curve.rate(f64::from(count)) - f64::from(count.min(2))).abs() < 1e-9, "{count}");
        }
        let found = steady(|count| curve.rate(count.min(4.0)), 4.0, f64::INFINITY, 1.5).expect("it is");
        assert!((found.busy + found.queue - 1.5 / (1.0 - 0.5625)).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn who_circulates_below_is_the_source_or_the_threads() {
        let curve = curve(0.01, &[0.02, 0.015], 100.0);
        // Threads hardly ever run out.
        let fed = |threads, customers, elsewhere| {
            curve.fed(threads, 0.045, 1.0, Source { customers, rate: customers.min(1e3) / elsewhere, elsewhere })
        };
        assert!(fed(100.0, f64::INFINITY, 50.0).0 > 0.99 * ENDLESS);
        assert!((fed(100.0, 300.0, 15.0).0 - 300.0).abs() < 1.0);
        // Fewer customers than threads.
        assert_eq!(fed(100.0, 30.0, 1.0), (30.0, 0.0));
        // All are busy nearly always.
        assert!((fed(3.0, 500.0, 0.1).0 - 3.0).abs() < 0.01);
    }

    #[test]
    fn traffic_of_a_source_is_found() {
        // The machine repairman with one repairman that takes 1 s, and think time 10 s.
        for customers in [2.0, 7.0, 15.0] {
            let (mut term, mut total, mut served) = (1.0, 1.0, 0.0);
            for count in 1..=customers as i32 {
                term *= (customers - f64::from(count) + 1.0) / 10.0;
                total += term;
                served += term;
            }
            let rate: f64 = served / total;
            let found = steady(|count| count.min(1.0), 1.0, customers, rate).expect("it is");
            let there = customers - 10.0 * rate;
            assert!((found.busy + found.queue - there).abs() < 1e-8 * there, "{customers}: {found:?}, {there}");
        }
    }
}
