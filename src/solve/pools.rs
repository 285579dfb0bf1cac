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

use super::lanes::{Lanes, Root};
use super::layers::{self, Demand};
use super::plan::Plan;

/// More threads than this are hardly ever all busy.
const MANY: f64 = 2000.0;
/// A source of more customers than this is taken as a stream.
const MOST_SOURCES: f64 = 20_000.0;
/// As many customers circulate where a stream feeds a pool.
const ENDLESS: f64 = 1e6;
/// Of more servers it is not followed how many are idle.
const MOST_SERVERS: f64 = 64.0;
/// What someone finds on arrival is known as exactly as that.
const ENOUGH: f64 = 1e-9;
/// Throughputs are followed up to this number of customers at least; from there on they hardly grow.
const LEAST_FOLLOWED: usize = 400;

/// What a pool's threads do to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pool {
    /// How many customers circulate below.
    pub population: f64,
    /// Seconds for which a request waits for a thread longer than if its threads went their own ways.
    pub crowding: f64,
    limits: Limits,
}

/// How a station serves: the two ends of its throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    /// Seconds that a request takes where there is no other.
    alone: f64,
    /// Seconds from the end of a request to that of the next where many are there.
    crowded: f64,
}

/// What feeds the pools.
pub(super) struct Feeds<'a> {
    pub throughputs: &'a [f64],
    /// By group: demands at stations.
    pub demands: &'a [Vec<Demand>],
    /// By group: time of a cycle without idle time.
    pub busy: &'a [f64],
    /// By group: the part of its activity in which someone waits for it.
    pub blocking: &'a [f64],
    /// By group: requests per second to its task, and of them those that come as a stream.
    pub rates: &'a [(f64, f64)],
}

/// Pools by group; none for groups that are no pool, or too large for one.
pub(super) fn pools(plan: &Plan, lanes: &Lanes, feeds: &Feeds) -> Vec<Option<Pool>> {
    let mut result: Vec<Option<Pool>> = vec![None; lanes.groups.len()];
    let mut load = vec![0.0; lanes.processors + lanes.threads_of.len()];
    for (group, demands) in feeds.demands.iter().enumerate() {
        for demand in demands {
            load[demand.station] += feeds.throughputs[group] * demand.time;
        }
    }
    let mut curves: Vec<Option<Curve>> = lanes.groups.iter().map(|_| None).collect();
    // Callees come after their callers.
    for (group, found) in lanes.groups.iter().enumerate().rev() {
        let Root::Threads(_) = found.root else { continue };
        if !(found.population > 1.0 && found.population <= MANY) {
            continue;
        }
        let demands = &feeds.demands[group];
        let servers = |demand: &Demand| layers::station(plan, lanes, demand.station).servers;
        let others = |demand: &Demand| (load[demand.station] - feeds.throughputs[group] * demand.time).max(0.0);
        // From nobody else to others who take a quarter of what is served somewhere.
        let share = |demand: &Demand| others(demand) / load[demand.station].max(1e-300);
        let alone = 1.0 - 4.0 * demands.iter().map(share).fold(0.0, f64::max).min(0.25);
        let curve = Curve::new(found.population, feeds.busy[group], demands, alone, |demand| {
            let servers = servers(demand);
            let free = (1.0 - others(demand) / servers).max(1e-3);
            let threads = demand.station.checked_sub(lanes.processors).and_then(|task| lanes.threads_of[task]);
            match threads.and_then(|threads| Some((result[threads]?, feeds.busy[threads]))) {
                // What this pool's requests take there is more or less than what others take.
                Some((pool, mean)) if mean > 0.0 => Below {
                    limits: Limits {
                        alone: demand.service / mean * pool.limits.alone,
                        crowded: demand.time / mean * pool.limits.crowded / free,
                    },
                    servers: 1,
                },
                _ if demand.station < lanes.processors && servers <= MOST_SERVERS => {
                    let time = demand.service / free;
                    Below { limits: Limits { alone: time, crowded: time / servers }, servers: servers as usize }
                }
                _ => Below {
                    limits: Limits { alone: demand.service, crowded: demand.time / (servers * free) },
                    servers: 1,
                },
            }
        });
        result[group] =
            Some(Pool { population: found.population, crowding: 0.0, limits: curve.limits(found.population) });
        curves[group] = Some(curve);
    }
    let callers = callers(lanes, feeds);
    for (group, curve) in curves.iter().enumerate() {
        let (Some(curve), Root::Threads(task)) = (curve, lanes.groups[group].root) else { continue };
        // Streams and customers who wait are not alike: beside each other they are not followed.
        let (rate, sent) = feeds.rates[group];
        if sent > 0.0 && sent < rate * (1.0 - 1e-9) {
            continue;
        }
        let threads = lanes.groups[group].population;
        let source = source(lanes, feeds, &result, group, &callers[task.index()]);
        let (population, crowding) = curve.fed(threads, feeds.busy[group], source);
        if let Some(pool) = &mut result[group] {
            (pool.population, pool.crowding) = (population, crowding);
        }
    }
    result
}

/// By task: the groups that wait for it, in their order, with what they demand there.
fn callers<'a>(lanes: &Lanes, feeds: &Feeds<'a>) -> Vec<Vec<(usize, &'a Demand)>> {
    let mut callers = vec![Vec::new(); lanes.threads_of.len()];
    for (caller, demands) in feeds.demands.iter().enumerate() {
        for demand in demands {
            if let Some(task) = demand.station.checked_sub(lanes.processors) {
                callers[task].push((caller, demand));
            }
        }
    }
    callers
}

/// Who sends requests to a pool, as if all were alike.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// Infinitely many for a stream.
    customers: f64,
    /// Requests per second.
    rate: f64,
    /// Seconds from when a customer leaves the pool until it comes again.
    elsewhere: f64,
}

fn source(lanes: &Lanes, feeds: &Feeds, pools: &[Option<Pool>], group: usize, callers: &[(usize, &Demand)]) -> Source {
    let (_, sent) = feeds.rates[group];
    let (mut rate, mut there, mut seen) = (sent, sent * feeds.busy[group], 0.0);
    for &(caller, demand) in callers {
        let (calls, customers) = (feeds.throughputs[caller] * demand.visits, feeds.throughputs[caller] * demand.stay);
        let population = pools[caller].map_or(lanes.groups[caller].population, |pool| pool.population);
        rate += calls;
        there += customers;
        seen += calls * customers / population;
    }
    if seen <= 0.0 {
        return Source { customers: f64::INFINITY, rate, elsewhere: 0.0 };
    }
    // While the pool goes on for nobody who waits, its callers can come again: as if they were more, and stayed as long.
    let blocking = feeds.blocking[group].max(1e-3);
    let customers = (rate * there / seen / blocking).max(1.0);
    let staying = there + rate * feeds.busy[group] * (1.0 - blocking);
    Source { customers, rate, elsewhere: ((customers - staying) / rate).max(1e-9 * customers / rate) }
}

/// A station below a pool.
#[derive(Clone, Copy, Debug)]
struct Below {
    limits: Limits,
    /// Servers that are alike and go their own ways; 1 where the limits tell all.
    servers: usize,
}

/// The throughput of what is below a pool, by the number of threads that are busy.
struct Curve {
    /// Seconds that a request takes without queueing.
    delay: f64,
    /// By how much what a request takes is less than the sum over stations, as branches go on side by side.
    together: f64,
    below: Vec<Below>,
    /// 1 where nobody else is below, nor branches beside each other: then the curve is no approximation of what is there. Down to 0
    /// where others count: what they leave free turns on these requests too where they work for the same customers, so that
    /// the one and the other need not come to agree.
    alone: f64,
    /// Requests per second with 1, 2, … busy threads.
    rates: Vec<f64>,
}

/// Mean numbers of a pool.
#[derive(Clone, Copy, Debug)]
struct Steady {
    busy: f64,
    queue: f64,
}

impl Curve {
    fn new(threads: f64, busy: f64, demands: &[Demand], alone: f64, below: impl Fn(&Demand) -> Below) -> Self {
        let stays: f64 = demands.iter().map(|demand| demand.stay).sum();
        let together = if stays > busy * (1.0 + 1e-9) { busy / stays } else { 1.0 };
        let below = demands.iter().filter(|demand| demand.time > 0.0).map(below).collect();
        let alone = if together < 1.0 { 0.0 } else { alone };
        let mut curve = Self { delay: (busy - stays).max(0.0), together, below, alone, rates: Vec::new() };
        curve.follow(LEAST_FOLLOWED.max(4 * threads as usize));
        curve
    }

    /// Mean value analysis up to so many customers; stations with several servers with the probabilities that some are idle
    /// (Reiser and Lavenberg 1980).
    fn follow(&mut self, most: usize) {
        let mut there = vec![0.0; self.below.len()];
        let nobody = |below: &Below| (0..below.servers).map(|busy| f64::from(u8::from(busy == 0))).collect();
        let mut idle: Vec<Vec<f64>> = self.below.iter().map(nobody).collect();
        let mut times = vec![0.0; self.below.len()];
        for count in 1..=most {
            for (index, &Below { limits, servers }) in self.below.iter().enumerate() {
                // With one, a queue for what is scarce and a delay for the rest, as several servers are often taken (Seidmann
                // et al. 1987). The delay is negative where a server goes on after its reply.
                times[index] = if servers == 1 {
                    limits.alone + limits.crowded * there[index]
                } else {
                    let free: f64 =
                        idle[index].iter().enumerate().map(|(busy, part)| (servers - 1 - busy) as f64 * part).sum();
                    limits.crowded * (1.0 + there[index] + free)
                };
            }
            let time = self.delay + self.together * times.iter().sum::<f64>();
            let rate = count as f64 / time.max(1e-300);
            for (index, &Below { limits, servers }) in self.below.iter().enumerate() {
                if servers == 1 {
                    there[index] = rate * limits.crowded * (1.0 + there[index]);
                    continue;
                }
                there[index] = rate * times[index];
                let mut others = rate * limits.alone;
                for busy in (1..servers).rev() {
                    idle[index][busy] = rate * limits.alone / busy as f64 * idle[index][busy - 1];
                    others += (servers - busy) as f64 * idle[index][busy];
                }
                idle[index][0] = (1.0 - others / servers as f64).max(0.0);
            }
            self.rates.push(rate);
        }
    }

    fn rate(&self, count: f64) -> f64 {
        self.rates[(count as usize).clamp(1, self.rates.len()) - 1]
    }

    fn limits(&self, threads: f64) -> Limits {
        Limits { alone: 1.0 / self.rate(1.0), crowded: 1.0 / self.rate(threads) }
    }

    /// The population below and the crowding of a pool with that source, each of whose requests seems to keep a thread busy for
    /// so long.
    fn fed(&self, threads: f64, busy: f64, source: Source) -> (f64, f64) {
        let alone = if source.customers <= MOST_SOURCES { self.alone } else { 1.0 };
        if alone <= 0.0 {
            return (threads, 0.0);
        }
        let endless = source.customers.min(ENDLESS);
        let between = |population: f64| 1.0 / (alone / population + (1.0 - alone) / threads);
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
        let Some((own, rate)) = balance(&rates, threads, customers, traffic) else { return (threads, 0.0) };
        // Where the curve is sure of it, requests are as long in all as it says, however long they seem to be in threads.
        let time = self.alone * busy + (1.0 - self.alone) * own.busy / rate;
        let apart = steady(|count| count.min(threads) / time, threads, customers, rate);
        let crowding = apart.map_or(0.0, |apart| (own.queue - apart.queue + own.busy - rate * time) / rate);
        // Where threads do go their own ways, rounding is all that is left.
        let crowding = if crowding.abs() > 1e-9 * time { crowding } else { 0.0 };
        (between(self.population(own.busy, threads, customers, rate).min(endless)), alone * crowding)
    }

    /// How many customers would keep so many threads busy at that rate if there were a thread for each: between the threads
    /// that there are and the customers of the source.
    fn population(&self, busy: f64, threads: f64, source: f64, rate: f64) -> f64 {
        let error = |part: f64| {
            let source = 1.0 / part;
            let source = if source > MOST_SOURCES { f64::INFINITY } else { source };
            // Near the end of what can be served, means are no measure: what those who arrive must have found is.
            let found = steady(|count| self.rate(count), f64::INFINITY, source, rate);
            self.seen(busy, rate) - found.map_or(1.0, |found| self.seen(found.busy, rate))
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

    /// The part of the customers at each station that one who arrives must find there, if so many threads are busy at that rate.
    fn seen(&self, busy: f64, rate: f64) -> f64 {
        let customers = |seen: f64| {
            let queueing = |below: &Below| {
                let Limits { alone, crowded } = below.limits;
                let left = 1.0 - seen * rate * crowded;
                if left > 0.0 { alone - crowded + crowded / left } else { f64::INFINITY }
            };
            rate * (self.delay + self.together * self.below.iter().map(queueing).sum::<f64>())
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if customers(middle) < busy {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }
}

/// The birth-death process of a pool that ends `rates(n)` requests per second while n are there, of which at most `threads` are
/// busy, and gets so many per second from a source of so many customers; where it cannot be as many, as many as there can be. None
/// for a stream that grows without end.
fn steady(rates: impl Fn(f64) -> f64, threads: f64, source: f64, rate: f64) -> Option<Steady> {
    if source.is_infinite() {
        return balance(&rates, threads, source, rate).map(|found| found.0);
    }
    // More traffic from each customer brings more requests: traffic and rate are told by logarithms of their ratios to `rate`.
    let mut best = None;
    let mut error = |traffic: f64| {
        let (found, comes) = balance(&rates, threads, source, rate * traffic.exp())?;
        best = Some(found);
        Some((comes / rate).ln())
    };
    let mut low = (0.0, error(0.0)?);
    let mut high = (0.1, error(0.1)?);
    let mut step = 0.2;
    while high.1 < 0.0 {
        let next = high.0 + step;
        if next > 40.0 {
            return Some(Steady { busy: threads.min(source), queue: (source - threads).max(0.0) });
        }
        low = std::mem::replace(&mut high, (next, error(next)?));
        step *= 2.0;
    }
    root(low, high, 1e-12, &mut error)?;
    best
}

/// Where an error that is negative at `low` and positive at `high` is next to nothing, by false position with the Illinois rule
/// (Dowell and Jarratt 1971).
fn root(low: (f64, f64), high: (f64, f64), enough: f64, mut error: impl FnMut(f64) -> Option<f64>) -> Option<f64> {
    let ((mut low, mut at_low), (mut high, mut at_high)) = (low, high);
    let (mut middle, mut side) = (high, 0.0);
    for _ in 0..60 {
        if at_high - at_low <= 0.0 || high - low < 1e-14 * high {
            break;
        }
        middle = (low * at_high - high * at_low) / (at_high - at_low);
        let at = error(middle)?;
        if at.abs() < enough {
            break;
        }
        let again = at.signum() == side;
        side = at.signum();
        if at < 0.0 {
            (low, at_low) = (middle, at);
            at_high *= if again { 0.5 } else { 1.0 };
        } else {
            (high, at_high) = (middle, at);
            at_low *= if again { 0.5 } else { 1.0 };
        }
    }
    Some(middle)
}

/// Mean numbers, and requests per second, where `traffic` would come if nobody were there. None where a stream grows without end.
fn balance(rates: &impl Fn(f64) -> f64, threads: f64, source: f64, traffic: f64) -> Option<(Steady, f64)> {
    let (mut term, mut total, mut come) = (1.0_f64, 1.0_f64, 1.0_f64);
    let (mut busy, mut queue, mut count) = (0.0_f64, 0.0_f64, 0.0_f64);
    loop {
        let free = 1.0 - count / source;
        if free <= 0.0 {
            break;
        }
        count += 1.0;
        let ratio = traffic * free / rates(count);
        term *= ratio;
        total += term;
        come += term * (1.0 - count / source).max(0.0);
        busy += term * count.min(threads);
        queue += term * (count - threads).max(0.0);
        if ratio < 1.0 && term * count < 1e-16 * total * (1.0 - ratio) {
            break;
        }
        if source.is_infinite() && count > 2.0 * MOST_SOURCES {
            return None;
        }
        if total > 1e200 {
            term *= 1e-200;
            total *= 1e-200;
            come *= 1e-200;
            busy *= 1e-200;
            queue *= 1e-200;
        }
    }
    Some((Steady { busy: busy / total, queue: queue / total }, traffic * come / total))
}

#[cfg(test)]
mod tests {
    use super::{Below, Curve, ENDLESS, Limits, Source, steady};

    fn curve(delay: f64, queues: &[f64], most: usize) -> Curve {
        let below = |&time: &f64| Below { limits: Limits { alone: time, crowded: time }, servers: 1 };
        let below = queues.iter().map(below).collect();
        let mut curve = Curve { delay, together: 1.0, below, alone: 1.0, rates: Vec::new() };
        curve.follow(most);
        curve
    }

    #[test]
    fn threads_that_share_one_processor_are_no_faster_than_it() {
        // M/M/1, of which as many as there are threads are in service at a time.
        for (threads, load) in [(2.0, 0.9_f64), (4.0, 0.5), (8.0, 0.99)] {
            let curve = curve(0.0, &[1.0], 400);
            let found = steady(|count| curve.rate(count.min(threads)), threads, f64::INFINITY, load).expect("it is");
            let there = found.busy + found.queue;
            assert!((there * (1.0 - load) / load - 1.0).abs() < 1e-9, "{threads} threads, load {load}: {there}");
        }
    }

    #[test]
    fn several_servers_are_those_of_the_queue() {
        // M/M/2 below four threads: as many in all as without a bound of threads.
        let below = vec![Below { limits: Limits { alone: 1.0, crowded: 0.5 }, servers: 2 }];
        let mut curve = Curve { delay: 0.0, together: 1.0, below, alone: 1.0, rates: Vec::new() };
        curve.follow(400);
        for count in 1..=400 {
            assert!((curve.rate(f64::from(count)) - f64::from(count.min(2))).abs() < 1e-9, "{count}");
        }
        let found = steady(|count| curve.rate(count.min(4.0)), 4.0, f64::INFINITY, 1.5).expect("it is");
        assert!((found.busy + found.queue - 1.5 / (1.0 - 0.5625)).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn who_circulates_below_is_the_source_or_the_threads() {
        let curve = curve(0.01, &[0.02, 0.015], 400);
        // Threads hardly ever run out.
        let fed = |threads, customers, elsewhere| {
            curve.fed(threads, 0.045, Source { customers, rate: customers.min(1e3) / elsewhere, elsewhere })
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
        // The machine repairman with one repairman who takes 1 s, and think time 10 s.
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
