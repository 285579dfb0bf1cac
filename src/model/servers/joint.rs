//! What traces of several loads tell together of their hosts: one number of servers, one demand and one delay for all of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostic;
use crate::lqn::Multiplicity;
use crate::lqn::submodel::{EntryIndex, EntryKey, EntryTotal, SubModel};
use crate::model::config::Configuration;
use crate::model::parts::Parts;
use crate::model::servers::colocation::{self, Colocated};
use crate::model::servers::discipline::Discipline;
use crate::model::servers::evidence::{Asked, Evidence, is_beyond};
use crate::model::servers::fit::{MOST_SERVERS, candidates, disciplines, levels, unlikelihood};
use crate::model::servers::observed::Observed;
use crate::model::servers::occupancy::Occupancy;
use crate::model::servers::sampled::waiting;
use crate::model::servers::waits::Kind;
use crate::model::servers::{
    EARLY, ENOUGH, Host, OwnTime, Traced, busy, copies, given, hosts_of, kind, scheduling_given, waits,
};
use crate::model::slices::Slices;
use crate::model::utilisation::Busy;
use crate::model::weave::Decided;
use crate::model::{deployment, weave};

/// Traces of a load, and how the system that they are of is configured.
pub type LoadTraces<'t> = (&'t SubModel, &'t Configuration);

/// How a model of several loads is made where traces leave it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With the number of servers that fits best.
    Best,
    /// With the fewest servers that fit.
    Fewest,
    /// With the most servers that fit.
    Most,
    /// With the servers that fit best, divided by so many: responses may grow as if there were fewer than their times show at small loads.
    Fewer(u32),
    /// With the demands of the servers that fit best, and these divided by so many: n(1 + Z/D) servers without waits look like n whose operations wait for Z beside each demand D.
    Waits(u32),
    /// With as many servers as fit best, in another order of service that fits.
    Served(Discipline),
    /// Without delays: what is no queueing behind open arrivals is demand.
    NoDelay,
    /// With what the traces of one load tell.
    Alone(usize),
}

/// Where no number is too large, so many times the best one stands for the most servers.
const MANY: u32 = 4;

/// Halvings that look for a demand.
const STEPS: u32 = 60;

/// An entry under one load.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Mean time of its own, seconds.
    own: f64,
    /// How many invocations.
    invocations: f64,
    /// How many in a second.
    rate: f64,
    /// The part of the own time in which it has a processor, by number of servers tried.
    part: f64,
    /// What queueing adds to how much that time varies, as [`OwnTime::spread`].
    spread: f64,
    /// How long work queues, relative to work of exponential length.
    regular: f64,
    /// As [`OwnTime::slices`].
    slices: Option<Slices>,
}

/// A number of servers of a copy, and what entries make of it under each load.
struct Tried {
    servers: u32,
    discipline: Discipline,
    score: f64,
    /// The score among orders of service of as many servers.
    score_of_order: f64,
    fits: bool,
    /// Whether it fits well enough for a delay.
    fits_as_delay: bool,
    /// Whether it would have been busier than was measured under every load.
    is_busier: bool,
    /// By load, then by entry.
    seen: Vec<BTreeMap<EntryKey, Seen>>,
}

/// What was tried of a host.
struct Tries {
    /// By load, how many copies there were, each with a queue of its own.
    copies: Vec<usize>,
    /// Numbers of servers of a copy.
    tried: Vec<Tried>,
    /// How many were at work there together at most, where nothing queues: a delay explains the times better than any number of servers.
    delay: Option<usize>,
}

/// What traces of several loads tell of hosts.
pub struct Joint {
    hosts: BTreeMap<String, Tries>,
    /// Hosts whose utilisation was measured under all loads.
    measured: BTreeSet<String>,
    /// Hosts whose processor time was measured and that one server is too few for, with as many as the largest load needs.
    busy: BTreeMap<String, Host>,
    /// Tasks that share machines which traces do not name.
    colocated: Vec<Colocated>,
}

/// A host under one load.
struct View<'v, 's> {
    observed: Observed,
    entries: &'v [EntryIndex],
    parts: &'v Parts<'s>,
    occupancy: Occupancy,
    busy: Option<Busy>,
}

impl Joint {
    /// Of traces, one a load.
    pub fn of(loads: &[LoadTraces<'_>]) -> Self {
        Self::of_colocated(loads, &colocation::most_telling(loads))
    }

    /// The same where it is known which tasks share machines that traces do not name.
    pub fn of_colocated(loads: &[LoadTraces<'_>], colocated: &[Colocated]) -> Self {
        let placed = |(sub, own): &LoadTraces<'_>| deployment::placed_together(sub, own, colocated).configuration;
        let placed: Vec<Configuration> = loads.iter().map(placed).collect();
        let loads: Vec<LoadTraces<'_>> = loads.iter().zip(&placed).map(|((sub, _), own)| (*sub, own)).collect();
        let loads = &loads[..];
        let decided: Vec<Decided> = loads.iter().map(|(sub, _)| weave::decided(sub)).collect();
        let mut hosts: BTreeMap<String, Tries> = BTreeMap::new();
        let mut measured: BTreeSet<String> = BTreeSet::new();
        let parts: Vec<Parts<'_>> = decided
            .iter()
            .zip(loads)
            .map(|(decided, (_, configuration))| {
                let mut parts = Parts::of_decided(decided);
                parts.leave_out_fragments();
                parts.configure(configuration, &mut Vec::new());
                parts
            })
            .collect();
        let of_load: Vec<_> =
            parts.iter().zip(loads).map(|(parts, (_, own))| (Observed::of(parts), hosts_of(parts, own))).collect();
        let names: BTreeSet<&String> = of_load.iter().flat_map(|(_, hosts)| hosts.keys()).collect();
        for name in names {
            let given = given(loads[0].1, name);
            if given == Some(Multiplicity::Infinite) {
                continue;
            }
            let mut views = Vec::new();
            for ((observed, hosts), (parts, (_, configuration))) in of_load.iter().zip(parts.iter().zip(loads)) {
                let view = observed.as_ref().zip(hosts.get(name)).map(|(observed, entries)| {
                    let totals: Vec<&EntryTotal> = entries.iter().map(|index| parts.sub.entry(*index)).collect();
                    let busy = configuration.measured.processors.get(name).copied();
                    let occupancy = Occupancy::of(&totals, &copies(parts, configuration, name, entries));
                    let observed = observed.at(parts, entries);
                    View { observed, entries, parts, occupancy, busy }
                });
                views.push(view.filter(|view| view.occupancy.stays() >= ENOUGH));
            }
            let Some(most) = views.iter().flatten().map(|view| view.occupancy.most).max() else { continue };
            let tried = match given {
                Some(Multiplicity::Finite(servers)) => {
                    let stations = views[0].as_ref().map_or(1, |view| view.occupancy.stations);
                    vec![(servers / stations as u32).max(1)]
                }
                _ => candidates(most.max(1)),
            };
            let order = Discipline::given(scheduling_given(loads[0].1, name));
            let fullest = views.iter().flatten().max_by_key(|view| view.occupancy.most);
            let probability = views.iter().flatten().map(|view| view.observed.probability).fold(1.0, f64::min);
            let orders = |servers: u32, of: fn(&Occupancy, f64, Option<Discipline>, u32) -> Vec<Discipline>| {
                let orders = fullest.map(|view| of(&view.occupancy, probability, order, servers)).unwrap_or_default();
                orders.into_iter().map(move |order| (servers, order))
            };
            // A pool shows under the load that fills it.
            let kinds = views.iter().flatten().map(|view| kind(view.parts, view.entries));
            let kind = kinds.min().unwrap_or(Kind::Unknown);
            let try_it = |may_wait: bool, (servers, discipline): (u32, Discipline)| {
                let (mut score, mut fits, mut seen) = (unlikelihood(servers), true, Vec::new());
                let mut is_busier = true;
                let mut score_of_order = 0.0;
                let mut fits_as_delay = true;
                for view in &views {
                    let Some(View { observed, entries, parts, occupancy, busy }) = view else {
                        seen.push(BTreeMap::new());
                        continue;
                    };
                    let there = observed.all_present(parts, *entries);
                    let asked = Asked {
                        occupancy,
                        probability: observed.probability,
                        seen: there,
                        busy: *busy,
                        early: EARLY,
                        arrivals: None,
                        may_wait,
                    };
                    let evidence = Evidence::of(asked, servers, discipline).looked(asked);
                    score += evidence.unlikelihood();
                    if observed.probability >= 1.0 {
                        score += waits::due_to_wait(occupancy, servers, there, kind);
                    }
                    score_of_order += evidence.unlikelihood_of_order();
                    fits &= evidence.fits();
                    fits_as_delay &= evidence.fits_within(waits::FITS);
                    let imputed = evidence.imputed;
                    let regular = imputed.regular(discipline);
                    let measured = busy.map(|busy| busy.cores(f64::from(servers) * occupancy.stations as f64));
                    let there = there / observed.probability;
                    is_busier &= occupancy.is_whole(observed.probability)
                        && measured.is_some_and(|busy| is_beyond(there * imputed.all, busy));
                    let most = if observed.probability < 1.0 { there } else { there * imputed.all };
                    // What was measured is shared out by how long invocations were there.
                    let shared = measured.map(|busy| busy.min(most) / there.max(f64::MIN_POSITIVE));
                    let by_order = |shared: f64, place: usize| match discipline {
                        Discipline::Sharing => shared,
                        _ => imputed.processor[place] * shared / imputed.all.max(f64::MIN_POSITIVE),
                    };
                    let one = |(place, index): (usize, &EntryIndex)| {
                        let entry = parts.sub.entry(*index);
                        let invocations = entry.invocations.max(1) as f64;
                        let rate = invocations / observed.probability / observed.seconds;
                        let part = shared.map_or(imputed.processor[place], |shared| by_order(shared, place)).min(1.0);
                        let spread = if observed.probability < 1.0 { 1.0 } else { imputed.spread[place] };
                        let own = entry.own_time() / invocations;
                        let slices = imputed.stretches.get(place).and_then(|stretches| Slices::of(entry, stretches));
                        (entry.key, Seen { own, invocations, rate, part, spread, regular, slices })
                    };
                    seen.push(entries.iter().enumerate().map(one).collect());
                }
                Tried { servers, discipline, score, score_of_order, fits, fits_as_delay, is_busier, seen }
            };
            let counts = || tried.iter().flat_map(|servers| orders(*servers, disciplines));
            let mut tries: Vec<Tried> = counts().map(|own| try_it(false, own)).collect();
            // Where they would have been busier than was measured under every load, stays waited for something else.
            let waits_too = best(&tries).is_busier;
            if waits_too {
                let shared = tried.iter().map(|servers| (*servers, order.unwrap_or(Discipline::Sharing)));
                tries = shared.map(|own| try_it(true, own)).collect();
            }
            let is_told = given.is_some() || order.is_some() || views.iter().flatten().any(|view| view.busy.is_some());
            let unlikely = waits::unlikelihood_of_delay(most, kind).filter(|_| !is_told && probability >= 1.0);
            let delay = unlikely.filter(|unlikely| {
                let together = most.min(MOST_SERVERS) as u32;
                let whole = try_it(false, (together, Discipline::Sharing));
                let due = due_to_wait(&views, together, kind);
                whole.fits_as_delay && whole.score - unlikelihood(together) - due + unlikely < best(&tries).score
            });
            let delay = delay.map(|_| most);
            if !waits_too && kind != Kind::Limited {
                let of_levels = orders(best(&tries).servers, levels).map(|own| try_it(false, own));
                tries.extend(of_levels.collect::<Vec<Tried>>());
            }
            // The order of arrival was not seen. Waits under it follow from the load, and nothing tells whether it holds.
            if probability < 1.0 && order.is_none() {
                tries.extend(unseen_order(&tries, &views));
            }
            tries.sort_by_key(|tried| (tried.servers, tried.discipline));
            if views.iter().flatten().all(|view| view.busy.is_some()) {
                measured.insert(name.clone());
            }
            let copies = views.iter().map(|view| view.as_ref().map_or(1, |view| view.occupancy.stations)).collect();
            hosts.insert(name.clone(), Tries { copies, tried: tries, delay });
        }
        let mut busy: BTreeMap<String, Host> = BTreeMap::new();
        for ((observed, _), (parts, (_, configuration))) in of_load.iter().zip(parts.iter().zip(loads)) {
            let Some(observed) = observed else { continue };
            for (name, host) in busy::hosts(parts, configuration, observed) {
                let own = busy.entry(name).or_insert(host);
                if host.servers > own.servers {
                    *own = host;
                }
            }
        }
        Self { hosts, measured, busy, colocated: colocated.to_vec() }
    }

    /// Orders of service in which hosts may have worked.
    pub fn disciplines(&self) -> BTreeSet<Discipline> {
        self.hosts.values().flat_map(|tries| &tries.tried).map(|tried| tried.discipline).collect()
    }

    /// Tasks that share machines which traces do not name.
    pub fn colocated(&self) -> &[Colocated] {
        &self.colocated
    }

    /// Says which tasks share machines that traces do not name.
    pub fn colocation_note(&self) -> Option<Diagnostic> {
        colocation::note(&self.colocated)
    }

    /// Hosts of which several servers fit best: these are fewer where work waits for what is not traced.
    pub fn of_several_servers(&self) -> BTreeSet<&str> {
        let several = self.hosts.iter().filter(|(_, tries)| tries.delay.is_none() && best(&tries.tried).servers > 1);
        several.map(|(name, _)| name.as_str()).collect()
    }

    /// Whether utilisation of a host was measured.
    pub fn is_measured(&self, host: &str) -> bool {
        self.measured.contains(host)
    }

    /// What all the traces together, summed up in one sub-model, tell in that form.
    pub fn traced(&self, all: &SubModel, form: Form) -> Traced {
        let Decided { sub: all, pools } = &weave::decided(all);
        let mut traced = Traced {
            hosts: self.busy.clone(),
            pools: pools.clone(),
            colocated: self.colocated.clone(),
            is_of_loads: true,
            ..Traced::default()
        };
        for (name, tries) in &self.hosts {
            let (tried, mut host) = chosen(&tries.tried, form);
            if let (Some(most), false) = (tries.delay, matches!(form, Form::Fewest | Form::Fewer(_))) {
                let copies = tries.copies.iter().copied().max().unwrap_or(1) as u32;
                let range = host.range.map(|(least, _)| (least, None));
                traced.hosts.insert(name.clone(), Host { is_delay: true, copies, range, most, ..host });
                continue;
            }
            let own = demands(&mut host, (tried, &tries.copies), form, self.is_measured(name));
            host.copies = tries.copies.iter().copied().max().unwrap_or(1) as u32;
            if let Form::Waits(times) = form {
                let fewer = (host.servers / times.max(1)).max(1);
                host.utilization *= f64::from(host.servers) / f64::from(fewer);
                host.servers = fewer;
            }
            host.servers = host.servers.saturating_mul(host.copies);
            host.replicas = Some(host.copies).filter(|copies| *copies > 1);
            let busy: f64 = host.utilization * f64::from(host.servers);
            for (key, (demand, delay)) in own {
                let Some(index) = all.entry_of(key) else { continue };
                let entry = all.entry(index);
                let mean = entry.own_time() / entry.invocations.max(1) as f64;
                if mean > 0.0 {
                    let processor = (demand / mean).min(2.0);
                    traced.own.insert(
                        index,
                        OwnTime {
                            processor,
                            delay: delay / mean,
                            spread: spread(tried, key),
                            slices: slices(tried, key),
                        },
                    );
                }
            }
            host.alone = busy;
            traced.hosts.insert(name.clone(), host);
        }
        traced
    }
}

/// How many arrivals were due to wait under any of the loads, where none did.
fn due_to_wait(views: &[Option<View<'_, '_>>], servers: u32, kind: Kind) -> f64 {
    let of = |View { observed, entries, parts, occupancy, .. }: &View<'_, '_>| {
        let there = observed.all_present(parts, *entries);
        waits::due_to_wait(occupancy, servers, there, kind)
    };
    views.iter().flatten().map(of).sum()
}

/// First come, first served, by as many servers as fit best, of a host of whose stays only some were traced.
fn unseen_order(tries: &[Tried], views: &[Option<View<'_, '_>>]) -> Option<Tried> {
    let Tried { servers, seen, .. } = best(tries);
    let mut own = Vec::with_capacity(seen.len());
    for (load, view) in seen.iter().zip(views) {
        let copies = view.as_ref().map_or(1, |view| view.occupancy.stations);
        own.push(in_order_of_arrival(load, f64::from(*servers), copies as f64)?);
    }
    let (servers, discipline) = (*servers, Discipline::FirstCome);
    Some(Tried {
        servers,
        discipline,
        score: f64::INFINITY,
        score_of_order: f64::INFINITY,
        fits: true,
        fits_as_delay: false,
        is_busier: false,
        seen: own,
    })
}

/// Entries of a load that wait as long as each other, for as long as Poisson arrivals do (M/G/k by the mean of M/M/k and the second moment of exponential
/// service, Lee and Longton 1959); `None` without such a wait.
fn in_order_of_arrival(load: &BTreeMap<EntryKey, Seen>, servers: f64, copies: f64) -> Option<BTreeMap<EntryKey, Seen>> {
    let rate: f64 = load.values().map(|seen| seen.rate).sum::<f64>() / copies;
    let (mut low, mut high) = (0.0, load.values().map(|seen| seen.own).fold(f64::INFINITY, f64::min));
    if load.is_empty() || rate <= 0.0 {
        return Some(load.clone());
    }
    let waits = |wait: f64| {
        let moment =
            |power: i32| load.values().map(|seen| seen.rate * (seen.own - wait).powi(power)).sum::<f64>() / copies;
        let busy = moment(1);
        // Of exponential times the second moment is twice the square of the mean.
        waiting(servers, busy) / rate * (moment(2) / rate) / (busy / rate).powi(2)
    };
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if waits(middle) > middle { low = middle } else { high = middle }
    }
    let of = |(key, seen): (&EntryKey, &Seen)| {
        (*key, Seen { part: ((seen.own - low) / seen.own.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0), ..*seen })
    };
    low.is_finite().then(|| load.iter().map(of).collect())
}

/// The number of servers and the order of service of a form.
fn chosen(tries: &[Tried], form: Form) -> (&Tried, Host) {
    let telling = || tries.iter().filter(|tried| Discipline::TELLING.contains(&tried.discipline));
    let best = best(tries);
    let best = of_order(tries, best.servers, None);
    let fitting: Vec<&Tried> = telling().filter(|tried| tried.fits).collect();
    let least = fitting.first().map_or(best, |least| if least.servers < best.servers { least } else { best });
    let most = fitting.last().map_or(best, |most| if most.servers > best.servers { most } else { best });
    let (first, last) = (tries.first().map(|tried| tried.servers), tries.last().map(|tried| tried.servers));
    let open = last == Some(most.servers) && first != last;
    let tried = match form {
        Form::Fewest => of_order(tries, least.servers, None),
        Form::Most => of_order(tries, most.servers, None),
        Form::Fewer(times) => {
            let servers = (best.servers / times.max(1)).max(1);
            let own = tries.iter().find(|tried| tried.servers >= servers).unwrap_or(best);
            of_order(tries, own.servers, Some(best.discipline))
        }
        Form::Served(order) => {
            let own = of_order(tries, best.servers, Some(order));
            if own.fits { own } else { best }
        }
        _ => best,
    };
    let servers = match form {
        Form::Most if open => most.servers.max(best.servers.saturating_mul(MANY)),
        Form::Fewer(times) => (best.servers / times.max(1)).max(1),
        _ => tried.servers,
    };
    let range = Some((least.servers, (!open).then_some(most.servers)));
    let host = Host {
        servers,
        is_delay: false,
        discipline: tried.discipline,
        copies: 1,
        replicas: None,
        range: range.filter(|_| first != last),
        most: 2,
        utilization: 0.0,
        measured: None,
        waits: false,
        or_waits: None,
        or_works: None,
        bound: None,
        alone: 0.0,
        latency: None,
        quota: None,
        is_throttled: false,
        machine: None,
        stands_still: false,
    };
    (tried, host)
}

/// The number of servers that fits best, by the orders of service that tell it.
fn best(tries: &[Tried]) -> &Tried {
    let telling = tries.iter().filter(|tried| Discipline::TELLING.contains(&tried.discipline));
    telling.min_by(|left, right| left.score.total_cmp(&right.score)).expect("one number is always tried")
}

/// So many servers in that order of service, where it was tried, else in the one that fits best.
fn of_order(tries: &[Tried], servers: u32, order: Option<Discipline>) -> &Tried {
    let same = || tries.iter().filter(|tried| tried.servers == servers);
    let best = same().min_by(|left, right| left.score_of_order.total_cmp(&right.score_of_order));
    same().find(|tried| Some(tried.discipline) == order).or(best).expect("the number was tried")
}

/// Demand and delay of each entry, over all loads; `copies` are those under each load, and the host is one of them.
fn demands(
    host: &mut Host,
    (tried, copies): (&Tried, &[usize]),
    form: Form,
    is_measured: bool,
) -> BTreeMap<EntryKey, (f64, f64)> {
    let servers = f64::from(host.servers);
    let mut loads: Vec<(&BTreeMap<EntryKey, Seen>, f64)> =
        tried.seen.iter().zip(copies).map(|(seen, copies)| (seen, *copies as f64)).collect();
    if let Form::Alone(load) = form {
        loads = loads.get(load).or(loads.first()).copied().into_iter().collect();
    }
    // What was measured is demand, whatever the rest of the time is. Those that come first queue least, however much they work: that leaves no delay to them.
    let has_delay = form != Form::NoDelay || is_measured;
    let is_shared = !has_delay && tried.discipline != Discipline::FirstCome;
    let mut sums: BTreeMap<EntryKey, (f64, f64)> = BTreeMap::new();
    for (load, copies) in loads.iter().copied() {
        let scale = if is_shared { without_delay(load, servers, copies) } else { 1.0 };
        for (key, seen) in load {
            let part = if is_shared { scale } else { seen.part };
            let sum = sums.entry(*key).or_default();
            *sum = (sum.0 + seen.invocations * part * seen.own, sum.1 + seen.invocations);
        }
    }
    let demand: BTreeMap<EntryKey, f64> =
        sums.into_iter().map(|(key, (sum, count))| (key, sum / count.max(1.0))).collect();
    let mut delays: BTreeMap<EntryKey, (f64, f64)> = BTreeMap::new();
    let mut most: f64 = 0.0;
    for (load, copies) in loads {
        // Copies share the requests, so that each is as busy as any other.
        let busy: f64 = load.iter().map(|(key, seen)| seen.rate * demand[key]).sum::<f64>() / copies;
        most = most.max(busy);
        let regular = load.values().next().map_or(1.0, |seen| seen.regular);
        let queueing = waiting(servers, busy) * regular / busy.max(f64::MIN_POSITIVE);
        let queued: f64 = load.values().map(|seen| seen.rate * seen.own * (1.0 - seen.part)).sum();
        let shown = (busy * copies * queueing / queued.max(f64::MIN_POSITIVE)).min(1.0);
        for (key, seen) in load {
            let queueing = match tried.discipline {
                Discipline::Sharing => demand[key] * queueing,
                // Each queues for the part that it was seen to queue of all that the model lets them queue.
                _ => seen.own * (1.0 - seen.part) * shown,
            };
            let left = seen.own - demand[key] - queueing;
            let sum = delays.entry(*key).or_default();
            let left = if left.is_finite() { left } else { 0.0 };
            *sum = (sum.0 + seen.invocations * left, sum.1 + seen.invocations);
        }
    }
    host.utilization = most / servers;
    let delay = |key: &EntryKey| {
        if !has_delay {
            return 0.0;
        }
        delays.get(key).map_or(0.0, |(sum, count)| (sum / count.max(1.0)).max(0.0))
    };
    demand.iter().map(|(key, own)| (*key, (*own, delay(key)))).collect()
}

/// What queueing adds to how much the time of an entry varies, over all loads.
fn spread(tried: &Tried, key: EntryKey) -> f64 {
    let seen = tried.seen.iter().filter_map(|load| load.get(&key));
    let (sum, count) =
        seen.fold((0.0, 0.0), |(sum, count), seen| (sum + seen.invocations * seen.spread, count + seen.invocations));
    if count > 0.0 { sum / count } else { 1.0 }
}

/// Where in an invocation its processor time lies, over all loads; `None` where one of them does not tell.
fn slices(tried: &Tried, key: EntryKey) -> Option<Slices> {
    let seen = tried.seen.iter().filter_map(|load| load.get(&key));
    let each: Option<Vec<(f64, Slices)>> = seen.map(|seen| Some((seen.invocations, seen.slices?))).collect();
    let each = each.filter(|each| !each.is_empty())?;
    let all: f64 = each.iter().map(|(invocations, _)| invocations).sum();
    let mean = |part: fn(&Slices) -> f64| each.iter().map(|(own, slices)| own * part(slices)).sum::<f64>() / all;
    Some(Slices {
        before: mean(|own| own.before),
        between: mean(|own| own.between),
        after: mean(|own| own.after),
        beside: mean(|own| own.beside),
        cv2: [mean(|own| own.cv2[0]), mean(|own| own.cv2[1]), mean(|own| own.cv2[2]), mean(|own| own.cv2[3])],
    })
}

/// The part of own times that is demand where the rest is queueing of open arrivals at so many copies.
fn without_delay(load: &BTreeMap<EntryKey, Seen>, servers: f64, copies: f64) -> f64 {
    let there: f64 = load.values().map(|seen| seen.rate * seen.own).sum::<f64>() / copies;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let busy = middle * there;
        if busy + waiting(servers, busy) > there { high = middle } else { low = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Seen, in_order_of_arrival};
    use crate::lqn::submodel::EntryKey;

    /// M/M/1 with classes of exponential service: all wait Σ λ D² / (1 − ρ) (Pollaczek and Khinchine).
    #[test]
    fn waits_in_the_order_of_arrival_are_found_again() {
        let classes = [(0.02, 20.0), (0.005, 40.0), (0.1, 1.0)];
        let busy: f64 = classes.iter().map(|(demand, rate)| demand * rate).sum();
        let wait = classes.iter().map(|(demand, rate)| rate * demand * demand).sum::<f64>() / (1.0 - busy);
        let one = |(key, (demand, rate)): (u128, (f64, f64))| {
            (EntryKey(key), Seen { own: demand + wait, invocations: 1000.0, rate, part: 1.0, ..Seen::default() })
        };
        let load: BTreeMap<EntryKey, Seen> = (0..).zip(classes).map(one).collect();
        let found = in_order_of_arrival(&load, 1.0, 1.0).expect("there is such a wait");
        for ((demand, _), seen) in classes.iter().zip(found.values()) {
            assert!((seen.part * seen.own / demand - 1.0).abs() < 1e-6, "{seen:?} for {demand}");
        }
    }
}
