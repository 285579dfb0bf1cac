//! How many requests of each service and operation were counted while traces were recorded.

use std::collections::{BTreeMap, BTreeSet};

use crate::lqn::submodel::{Interaction, SubModel};
use crate::model::requests::{Protocol, Requests};
use crate::model::utilisation::processor_of;
use crate::names::Name;

/// The least part of the recorded time in which requests have to be counted.
const COVERED: f64 = 0.5;
/// How many of its steps a counter may begin after another one that is read along with it.
const LATE: f64 = 1.5;

/// What a service served by its counters.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Requests of operations that the traces have, by their names.
    pub operations: BTreeMap<Name, f64>,
    /// Those of others, or of all together.
    pub rest: f64,
    /// The counter's metric and series.
    pub series: usize,
}

/// Requests within the recorded time, by service.
pub(super) struct Counted<'r> {
    pub requests: &'r [Requests],
    pub services: BTreeMap<Name, Served>,
    /// Counters of services that were counted at other times only.
    pub apart: BTreeSet<usize>,
}

pub(super) fn counted<'r>(requests: &'r [Requests], sub: &SubModel, windows: &[(f64, f64)]) -> Counted<'r> {
    let served = served(sub);
    let mut by_service: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    // What was read once did not grow.
    for (place, own) in requests.iter().enumerate().filter(|(_, own)| own.samples.len() > 1) {
        if let Some(service) = service_of(own, &served, sub) {
            by_service.entry(service).or_default().push(place);
        }
    }
    let mut found = Counted { requests, services: BTreeMap::new(), apart: BTreeSet::new() };
    for (service, mut places) in by_service {
        chosen(requests, &mut places);
        let samples: Vec<&Requests> = places.iter().map(|place| &requests[*place]).collect();
        let Some(grown) = grown(&samples, windows) else {
            found.apart.insert(places[0]);
            continue;
        };
        let operations = &served[&service];
        let mut own = Served { series: places[0], ..Served::default() };
        for (series, count) in samples.iter().zip(grown) {
            match operation_of(series, operations, sub) {
                Some(operation) => *own.operations.entry(operation).or_default() += count,
                None => own.rest += count,
            }
        }
        found.services.insert(service, own);
    }
    found
}

/// The operations of each service, with how often they were traced.
pub(super) fn served(sub: &SubModel) -> BTreeMap<Name, BTreeMap<Name, u64>> {
    let mut found: BTreeMap<Name, BTreeMap<Name, u64>> = BTreeMap::new();
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        *found.entry(entry.task).or_default().entry(entry.service).or_default() += entry.invocations;
    }
    found
}

/// The service that a counter is of: by its name, else the only one that has its operation.
fn service_of(own: &Requests, served: &BTreeMap<Name, BTreeMap<Name, u64>>, sub: &SubModel) -> Option<Name> {
    let names: BTreeMap<String, Name> = served.keys().map(|name| (sub.names.text(*name).to_owned(), *name)).collect();
    if own.services.is_empty() {
        let mut having = served.iter().filter(|(_, operations)| operation_of(own, operations, sub).is_some());
        let only = having.next().map(|(name, _)| *name).filter(|_| having.next().is_none());
        return only.or_else(|| served.keys().next().copied().filter(|_| served.len() == 1));
    }
    let known: BTreeSet<String> = names.keys().cloned().collect();
    let found = own.services.iter().find_map(|name| processor_of(name, &known));
    found.and_then(|name| names.get(name).copied())
}

/// Of counters that may count the same requests one: the first metric of each protocol, and what counts all of them in place of several protocols.
fn chosen(requests: &[Requests], places: &mut Vec<usize>) {
    let mut best: BTreeMap<Protocol, (bool, usize, &str)> = BTreeMap::new();
    // A metric that tells operations apart tells more.
    let key = |own: &'_ Requests| (own.operations.is_empty(), own.rank);
    for own in places.iter().map(|place| &requests[*place]) {
        let (plain, rank) = key(own);
        let least = best.entry(own.protocol).or_insert((plain, rank, &own.metric));
        *least = (*least).min((plain, rank, &own.metric));
    }
    let servers = best.contains_key(&Protocol::Http) || best.contains_key(&Protocol::Rpc);
    let all = if servers { None } else { best.keys().next().copied() };
    places.retain(|place| {
        let own = &requests[*place];
        let of_protocol = match all {
            Some(protocol) => own.protocol == protocol,
            None => matches!(own.protocol, Protocol::Http | Protocol::Rpc),
        };
        of_protocol && best.get(&own.protocol).is_some_and(|least| least.2 == own.metric)
    });
}

/// The operation that a counter is of, among those of a service; none where its name fits several.
fn operation_of(own: &Requests, operations: &BTreeMap<Name, u64>, sub: &SubModel) -> Option<Name> {
    let plain: Vec<(String, Name)> = operations.keys().map(|name| (pattern(sub.names.text(*name)), *name)).collect();
    own.operations.iter().map(|wanted| pattern(wanted)).find_map(|wanted| {
        let same = plain.iter().find(|(name, _)| *name == wanted);
        // Routes come without their method, too.
        let mut routes =
            plain.iter().filter(|(name, _)| name.split_once(' ').is_some_and(|(_, route)| route == wanted));
        same.or_else(|| routes.next().filter(|_| routes.next().is_none())).map(|(_, name)| *name)
    })
}

/// A name whose parameters of routes are alike in all spellings: `/a/{id}`, `/a/:id`, `/a/<int:id>`, `/a/*`.
fn pattern(name: &str) -> String {
    let segment = |text: &str| {
        let is_parameter = text.starts_with([':', '{', '<', '*']);
        if is_parameter { "*".to_owned() } else { text.to_ascii_lowercase() }
    };
    let path: Vec<String> = name.trim().trim_end_matches('/').split('/').map(segment).collect();
    path.join("/")
}

/// By how much each of the counters of a service grew within stretches of time, in proportion where a part of these was not counted; `None` where most was not.
fn grown(series: &[&Requests], windows: &[(f64, f64)]) -> Option<Vec<f64>> {
    let overlap =
        |(from, to): (f64, f64)| windows.iter().map(|own| (own.1.min(to) - own.0.max(from)).max(0.0)).sum::<f64>();
    let spans: Vec<(f64, f64)> =
        series.iter().map(|own| (own.samples[0].0, own.samples[own.samples.len() - 1].0)).collect();
    let from = spans.iter().map(|own| own.0).fold(f64::INFINITY, f64::min);
    let to = spans.iter().map(|own| own.1).fold(f64::NEG_INFINITY, f64::max);
    let (whole, covered) = (overlap((f64::NEG_INFINITY, f64::INFINITY)), overlap((from, to)));
    if covered <= 0.0 || covered < COVERED * whole {
        return None;
    }
    let of = |(own, span): (&&Requests, &(f64, f64))| {
        let grown: f64 = windows.iter().map(|window| own.within(*window)).sum();
        // Instances are read one after another, so that one may begin later than the first by a step; what begins later still was not there.
        let (step, own_covered) = (own.usual_step(), overlap(*span));
        let is_whole = span.0 - from <= LATE * step && to - span.1 <= LATE * step && own_covered > 0.0;
        grown * whole / if is_whole { own_covered } else { covered }
    };
    Some(series.iter().zip(&spans).map(of).collect())
}

impl Requests {
    /// How many there were within a stretch of time.
    fn within(&self, (from, to): (f64, f64)) -> f64 {
        let part = |pair: &[(f64, f64)]| {
            let [(begin, before), (end, after)] = pair else { return 0.0 };
            let overlap = end.min(to) - begin.max(from);
            // A counter that falls was set back to zero.
            let grown = if after >= before { after - before } else { *after };
            if overlap <= 0.0 { 0.0 } else { grown * overlap / (end - begin) }
        };
        self.samples.windows(2).map(part).sum()
    }

    /// The median interval between samples.
    fn usual_step(&self) -> f64 {
        let mut steps: Vec<f64> = self.samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(0.0)
    }
}
