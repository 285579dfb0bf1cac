//! The subnetwork of a flow-equivalent server: what a request of a thread pool finds below it beside so many others of the pool.
//!
//! It has the processors that a request needs, directly or through the tasks that it calls, and the threads of those tasks. Mean value
//! analysis follows it from one customer to the next (Reiser and Lavenberg 1980). That is exact where threads do not run out and there is
//! no background load. Where the threads of a task run out before processors do, a request that waits for one is at no processor, and
//! one that has a thread finds no more of its kind than there are threads. Where a processor is exhausted first, threads hardly
//! matter: a request that waits for one would wait at the processor instead. Background load stays as it is, and comes the less often the
//! longer it takes.

use std::collections::BTreeMap;

use crate::layered::chains::{ClientId, ClientKind, Decomposition, StationId};
use crate::layered::submodels;
use crate::prepare::plan::ModelPlan;

use super::Inputs;
use super::background::{BackgroundLoad, BackgroundLoads};
use super::queue::Queue;

/// More visits to stations than this are too many to follow.
const MOST_VISITS: usize = 200;

/// A task that takes part in a request: the pool itself first.
#[derive(Clone, Debug, Default)]
struct Participant {
    /// Calls and mean executions of the task in one request of the pool.
    calls: f64,
    works: f64,
    /// Infinite for the pool itself.
    threads: f64,
    delay: f64,
    /// By how much what it takes is less than the sum over stations, as branches go on side by side.
    together: f64,
    /// Its threads, unless it is the pool itself.
    queue: usize,
    /// From 0, where a processor is exhausted long before its threads are, to 1, where its threads are.
    scarce: f64,
    /// The part of what is waited for a thread that would not be waited at processors instead if there were a thread for each.
    own_wait: f64,
    served: Vec<Served>,
    called: Vec<Called>,
    held: f64,
}

/// What a participant needs, before all participants and queues have their places.
#[derive(Clone, Debug, Default)]
struct Needs {
    /// Processors, and seconds of service there in an execution.
    processors: Vec<(StationId, f64)>,
    /// Clients that it calls: calls in an execution, and executions that it waits for.
    clients: Vec<(ClientId, f64, f64)>,
}

/// What a task does at a processor.
#[derive(Clone, Copy, Debug)]
struct Served {
    queue: usize,
    /// Seconds in an execution.
    service: f64,
    /// How many of those from here are there.
    there: f64,
}

/// What a task asks of another one below the pool.
#[derive(Clone, Copy, Debug)]
struct Called {
    /// The other participant.
    part: usize,
    /// Calls in an execution, and executions that it waits for.
    calls: f64,
    works: f64,
    /// How many of those from here are there.
    there: f64,
}

/// The network below a pool.
#[derive(Clone, Debug)]
pub(super) struct Subnetwork {
    queues: Vec<Queue>,
    parts: Vec<Participant>,
    rate: f64,
    /// By station, then of delays: seconds that the first customer takes, and from one end to the next where many are there.
    limits: Vec<(f64, f64)>,
    /// 1 where nobody else is below: then this is no approximation of what is there. Less by as much as others take of what is
    /// served somewhere, and 0 where branches go on beside each other.
    pub own: f64,
}

impl Subnetwork {
    /// What is below a client; none if it is too much.
    pub fn new(
        plan: &ModelPlan,
        decomposition: &Decomposition,
        inputs: &Inputs,
        all: &BackgroundLoads,
        pool: ClientId,
    ) -> Option<Self> {
        let mut parts = Vec::new();
        let mut places = BTreeMap::new();
        let mut open = BTreeMap::from([(pool, (1.0, 1.0))]);
        let mut needs: Vec<Needs> = Vec::new();
        let mut visits = 0;
        while let Some((client, (calls, works))) = open.pop_first() {
            let demands = &inputs.demands[client];
            visits += demands.len();
            if visits > MOST_VISITS {
                return None;
            }
            let stays: f64 = demands.iter().map(|demand| demand.stay).sum();
            let busy = inputs.busy[client];
            let mut part = Participant {
                calls,
                works,
                threads: if client == pool { f64::INFINITY } else { decomposition.clients[client].population },
                delay: (busy - stays).max(0.0),
                // Rounding makes no branches.
                together: if stays > busy * (1.0 + 1e-6) { busy / stays } else { 1.0 },
                ..Participant::default()
            };
            let mut own = Needs::default();
            for demand in demands {
                let Err(task) = decomposition.element(demand.station) else {
                    own.processors.push((demand.station, demand.service));
                    continue;
                };
                match decomposition.threads_of[task] {
                    // What is called lies behind its callers, but for tasks that call each other.
                    Some(called) if called > client && inputs.busy[called] > 0.0 => {
                        let per_call = demand.time / inputs.busy[called];
                        let entry = open.entry(called).or_insert((0.0, 0.0));
                        entry.0 += works * demand.visits;
                        entry.1 += works * per_call;
                        let works = demand.service / inputs.busy[called];
                        own.clients.push((called, demand.visits, works));
                    }
                    _ => part.delay += demand.stay,
                }
            }
            places.insert(client, parts.len());
            parts.push(part);
            needs.push(own);
        }
        let mut rest = all.clone();
        for (&client, &place) in &places {
            let all_of = inputs.throughputs[client];
            let part =
                if all_of > 0.0 { (inputs.throughputs[pool] * parts[place].works / all_of).min(1.0) } else { 0.0 };
            BackgroundLoad::add(&mut rest, decomposition, inputs, client, -part);
        }
        let mut numbers: BTreeMap<StationId, usize> = BTreeMap::new();
        let mut queues = Vec::new();
        let mut shared = 0.0_f64;
        let mut queue = |station: StationId| {
            *numbers.entry(station).or_insert_with(|| {
                let others = rest[station].cut(all[station].load());
                shared = shared.max(others.load() / all[station].load().max(1e-300));
                let threads = decomposition.element(station).is_err();
                queues.push(Queue::new(submodels::station(plan, decomposition, station).servers, threads, others));
                queues.len() - 1
            })
        };
        for (&client, &place) in &places {
            let part = &mut parts[place];
            if let (ClientKind::Threads(task), true) = (decomposition.clients[client].kind, client != pool) {
                part.queue = queue(decomposition.task_station(task));
            }
            for &(station, service) in &needs[place].processors {
                part.served.push(Served { queue: queue(station), service, there: 0.0 });
            }
            for &(client, calls, works) in &needs[place].clients {
                part.called.push(Called { part: places[&client], calls, works, there: 0.0 });
            }
        }
        let own = if parts.iter().any(|part| part.together < 1.0) { 0.0 } else { 1.0 - shared.min(1.0) };
        weigh(&mut parts, &queues);
        Some(Self { queues, parts, rate: 0.0, limits: Vec::new(), own })
    }

    /// A pool that needs but a delay and processors of its own: seconds and servers.
    #[cfg(test)]
    pub fn of(delay: f64, processors: &[(f64, f64)]) -> Self {
        let served =
            processors.iter().enumerate().map(|(queue, &(service, _))| Served { queue, service, there: 0.0 }).collect();
        let queues =
            processors.iter().map(|&(_, servers)| Queue::new(servers, false, BackgroundLoad::default())).collect();
        let part = Participant {
            calls: 1.0,
            works: 1.0,
            threads: f64::INFINITY,
            delay,
            together: 1.0,
            served,
            ..Participant::default()
        };
        Self { queues, parts: vec![part], rate: 0.0, limits: Vec::new(), own: 1.0 }
    }

    /// Requests per second with so many customers, where the last were those of one fewer.
    pub fn rate(&mut self, count: f64) -> f64 {
        for number in (0..self.parts.len()).rev() {
            self.hold(number);
        }
        self.rate = count / self.parts[0].held.max(1e-300);
        self.turn();
        if self.limits.is_empty() {
            self.limit();
        }
        self.rate
    }

    /// For how long a participant is held by one execution, with those there that the last customers left.
    fn hold(&mut self, number: usize) {
        let part = &self.parts[number];
        // A request that has a thread finds no more of those that have one than there are threads.
        let inside = self.rate * part.works * part.held;
        let seen = if inside > 0.0 { ((part.threads - 1.0) / inside).clamp(0.0, 1.0) } else { 1.0 };
        let excluded = part.scarce * (1.0 - seen);
        let (mut served, mut called) = (part.served.clone(), part.called.clone());
        let mut time = 0.0;
        for served in &mut served {
            let slowed = served.service * self.queues[served.queue].slowdown(excluded * served.there);
            time += slowed;
            served.there = slowed;
        }
        for called in &mut called {
            let other = &self.parts[called.part];
            let held = other.held * other.works / other.calls.max(1e-300);
            let longer = self.queues[other.queue].slowdown(excluded * called.there) - 1.0;
            let waits = held * longer * (other.scarce + (1.0 - other.scarce) * other.own_wait);
            time += called.calls * waits + called.works * other.held;
            called.there = called.calls * (waits + held);
        }
        let held = part.delay + part.together * time;
        let part = &mut self.parts[number];
        (part.held, part.served, part.called) = (held, served, called);
    }

    /// Puts all queues to the present rate.
    fn turn(&mut self) {
        let mut turns = vec![(0.0, 0.0); self.queues.len()];
        let behind: Vec<usize> = self.parts.iter().map(|part| part.queue).collect();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let rate = self.rate * part.works;
            for served in &mut part.served {
                served.there *= rate;
                turns[served.queue].0 += rate * served.service;
                turns[served.queue].1 += served.there;
            }
            for called in &mut part.called {
                called.there *= rate;
                turns[behind[called.part]].1 += called.there;
            }
            if number > 0 {
                turns[part.queue].0 += rate * part.held;
            }
        }
        for (queue, (busy, there)) in self.queues.iter_mut().zip(turns) {
            queue.turn(busy, there);
        }
    }

    /// How many customers there are at that rate if each finds at each station that part of those that are there, where the first
    /// one took so long as it did.
    pub fn customers(&self, rate: f64, seen: f64) -> f64 {
        let mut time = 0.0;
        for &(alone, interdeparture) in &self.limits {
            let left = 1.0 - seen * rate * interdeparture;
            time += if left > 0.0 { alone - interdeparture + interdeparture / left } else { return f64::INFINITY };
        }
        rate * time
    }

    /// Seconds that the first one takes by station, and from one end to the next where many are there.
    fn limit(&mut self) {
        let mut limits = vec![(0.0, 0.0); self.queues.len()];
        let mut delay = 0.0;
        for (number, part) in self.parts.iter().enumerate() {
            delay += part.works * part.delay;
            for served in &part.served {
                limits[served.queue].0 += part.together * part.works * served.service;
            }
            if number > 0 {
                limits[part.queue].1 += part.works * part.held;
            }
        }
        for (limit, queue) in limits.iter_mut().zip(&self.queues) {
            let alone = limit.0 * queue.others.slowdown(queue.servers, 1.0);
            *limit = (alone, (alone + limit.1) / queue.servers);
        }
        limits.push((delay, 0.0));
        self.limits = limits;
    }
}

/// Finds out by how much the threads of tasks below a pool hold up more than what these need does anyway.
///
/// Where one processor does all, a request that waits for a thread waits for the processor: without the bound of threads there would be a
/// queue as long there. With m threads that take A seconds by themselves, and C from one end to the next where they are many, that
/// part is (A - C) / (A + (m - 1)·C): what n customers and a thread for each would do more than m do, if what is below were a delay and
/// one queue.
fn weigh(parts: &mut [Participant], queues: &[Queue]) {
    // By part: seconds that one execution takes alone, and its work by queue, tasks below included.
    let mut alone = vec![0.0; parts.len()];
    let mut works: Vec<Vec<(usize, f64)>> = vec![Vec::new(); parts.len()];
    for (number, part) in parts.iter().enumerate().rev() {
        let mut own: Vec<(usize, f64)> = part.served.iter().map(|served| (served.queue, served.service)).collect();
        let mut time: f64 = own.iter().map(|work| work.1).sum();
        for called in &part.called {
            time += called.works * alone[called.part];
            own.extend(works[called.part].iter().map(|&(queue, service)| (queue, called.works * service)));
        }
        own.sort_unstable_by_key(|work| work.0);
        own.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 += if same { next.1 } else { 0.0 };
            same
        });
        (alone[number], works[number]) = (part.delay + part.together * time, own);
    }
    let longest = |works: &[(usize, f64)]| {
        works.iter().map(|&(queue, service)| service / queues[queue].servers).fold(0.0, f64::max)
    };
    let processors = longest(&works[0]);
    for (number, part) in parts.iter_mut().enumerate().skip(1) {
        let (time, busiest) = (alone[number], longest(&works[number]));
        // The fourth power tells one from the other where neither is near to both; where all is done at one processor, it is that.
        let ratio = (part.works * time / part.threads / processors.max(1e-300)).min(1e3);
        let (threads, processor) = (ratio.powi(4) * (time - busiest).max(0.0), busiest);
        part.scarce = if threads > 0.0 { threads / (threads + processor) } else { 0.0 };
        part.own_wait =
            if time > 0.0 { (time - busiest).max(0.0) / (time + (part.threads - 1.0) * busiest) } else { 1.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::{BackgroundLoad, Called, Participant, Queue, Served, Subnetwork, weigh};

    fn rates(mut below: Subnetwork, most: u32) -> Vec<f64> {
        (1..=most).map(|count| below.rate(f64::from(count))).collect()
    }

    /// A pool with a task of so many threads below it, on one processor.
    fn task(threads: f64, own: f64, other: f64) -> Subnetwork {
        let mut below = Subnetwork::of(0.0, &[(own, 1.0)]);
        below.queues.push(Queue::new(threads, true, BackgroundLoad::default()));
        below.parts[0].called.push(Called { part: 1, calls: 1.0, works: 1.0, there: 0.0 });
        let served = vec![Served { queue: 0, service: other, there: 0.0 }];
        below.parts.push(Participant {
            calls: 1.0,
            works: 1.0,
            threads,
            together: 1.0,
            queue: 1,
            served,
            ..Participant::default()
        });
        weigh(&mut below.parts, &below.queues);
        below
    }

    #[test]
    fn a_processor_that_a_pool_and_its_servers_share_is_one_queue() {
        for (count, rate) in (1..).zip(rates(task(40.0, 0.3, 0.7), 40)) {
            assert!((rate - 1.0).abs() < 1e-9, "{count}: {rate}");
        }
    }

    #[test]
    fn one_processor_is_as_fast_with_any_number_of_threads() {
        // A request that waits for a thread waits for one that is at the processor.
        for threads in [1.0, 2.0, 5.0] {
            for (count, rate) in (1..).zip(rates(task(threads, 0.3, 0.7), 60)) {
                assert!((rate - 1.0).abs() < 0.01, "{threads} threads, {count}: {rate}");
            }
        }
    }

    #[test]
    fn threads_that_mostly_wait_are_no_faster_than_their_number() {
        // A delay of 2 s in so many threads, and 0.1 s at a processor around it.
        for threads in [1.0, 3.0] {
            let mut below = task(threads, 0.05, 0.05);
            below.parts[1].delay = 2.0;
            weigh(&mut below.parts, &below.queues);
            let rates = rates(below, 60);
            let most = threads / 2.05;
            assert!((1.0 / 2.1 - rates[0]).abs() < 1e-9, "{}", rates[0]);
            assert!(rates.iter().all(|rate| *rate < most * 1.03), "{threads} threads: {rates:?}");
            assert!(rates[59] > 0.9 * most, "{threads} threads: {}", rates[59]);
        }
    }

    #[test]
    fn many_servers_are_followed_to_their_end() {
        // M/M/m and a delay: no slower with more customers, and in the end as fast as the servers are.
        for servers in [4.0, 16.0, 64.0] {
            let rates = rates(Subnetwork::of(9.0, &[(1.0, servers)]), 40 * servers as u32);
            assert!(rates.is_sorted_by(|left, right| *right > left * (1.0 - 1e-3)), "{servers} servers");
            assert!((rates[rates.len() - 1] / servers - 1.0).abs() < 1e-3, "{servers}: {}", rates[rates.len() - 1]);
        }
    }
}
