//! Counted requests: whose they are, and how many operations a traced one stands for by them.

mod counted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::sketch::NORMAL;
use crate::lqn::submodel::{Interaction, Sampled, SubModel};
use crate::model::parts::scenario_of;
use crate::model::requests::counted::{Counted, counted, served};
use crate::model::{codes, load};
use crate::names::Name;

/// A counter of requests that a service served, over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// The file that it is from.
    pub file: Arc<str>,
    /// The metric's name.
    pub metric: String,
    /// Its place among metrics that may count the same.
    pub rank: usize,
    /// What is counted.
    pub protocol: Protocol,
    /// Names that the service goes by, the most telling first; none where the file names no service.
    pub services: Vec<String>,
    /// Names that the operation goes by, the most telling first; none where requests of all operations are counted together.
    pub operations: Vec<String>,
    /// Times, in seconds, and how many there were since some begin, at two times or more, in their order.
    pub samples: Vec<(f64, f64)>,
}

/// What counters count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Requests of HTTP at their server.
    Http,
    /// Calls at their server.
    Rpc,
    /// All requests, by what stands before the server.
    Mesh,
    /// Spans of servers and consumers.
    Spans,
}

/// The fewest traced invocations that are compared with a counter.
const ENOUGH: u64 = 10;
/// Two figures contradict each other beyond this many standard errors.
const ERRORS: f64 = 3.0;
/// What two figures may differ by in any case: requests underway at the ends of the recorded time.
const ANYWAY: f64 = 0.02;
/// How many names are shown.
const SHOWN: usize = 8;
/// Times from here on, in seconds, have a date.
const DATED: f64 = 1e8;

/// Lets the operations of each scenario stand for as many as were counted, where spans themselves do not tell how they were sampled. Tells which counters that
/// follows from, and where they contradict what else is known.
pub fn weigh(requests: &[Requests], sub: &mut SubModel) -> Vec<Diagnostic> {
    let Some(first) = requests.first() else { return Vec::new() };
    let windows = windows(sub);
    if windows.is_empty() {
        return vec![doubt(
            first,
            "requests were counted, and the traces have no times that these could be compared with".to_owned(),
        )];
    }
    let dated = dated(requests, windows[0].0);
    let requests = dated.as_deref().unwrap_or(requests);
    let counted = counted(requests, sub, &windows);
    let mut findings = Vec::new();
    if counted.services.is_empty() {
        findings.push(counted.none(first, sub));
        return findings;
    }
    let weights = counted.weights(sub);
    let mut told: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (scenario, own) in &weights {
        let name = sub.names.text(*scenario).to_owned();
        let Some(total) = sub.scenarios.get_mut(scenario) else { continue };
        let short_of = ERRORS * own.error + ANYWAY;
        if own.stands_for < 1.0 - short_of {
            let message = format!(
                "`{}` counts {} requests where {} were traced of scenario `{name}`: it does not count all, and tells no sampling",
                own.metric,
                load::short(own.requests),
                own.traced
            );
            findings.push(doubt(&requests[own.series], message));
            continue;
        }
        let weight = own.stands_for.max(1.0);
        if let Some(other) = load::told_weight(total) {
            let ids = total.sampled.operations == 0;
            let known = if ids { ERRORS / total.ids.count.max(1) as f64 } else { 0.0 };
            // Identifiers that fill their range say nothing about samplers that decide by something else.
            if (other / weight).ln().abs() > short_of + known && !(ids && other <= 1.0) {
                findings.push(contradiction(&requests[own.series], own, &name, weight, other, ids));
            }
            // What spans carry is trusted more.
            if !ids {
                continue;
            }
        }
        // What a scenario has of counted requests of several is as well known as its part of those traced.
        let parts = (1.0 / total.operations.max(1) as f64 - 1.0 / own.traced.max(1) as f64).abs();
        let counted = (1.0 / (parts + 1.0 / own.requests)).ceil() as u64;
        total.sampled = Sampled { counted, ..Sampled::default() };
        total.sampled.add_alike(total.operations, weight);
        told.entry(&requests[own.series].file).or_default().push(format!(
            "`{name}`: {} requests at {} by `{}`, {} of them traced: each stands for {} operations",
            load::short(own.requests),
            own.at,
            own.metric,
            own.traced,
            load::short(weight)
        ));
    }
    findings.extend(told.into_iter().map(|(file, scenarios)| {
        let message = "rates follow from counted requests".to_owned();
        let place = Place::File { file: file.into() };
        let note = Diagnostic::new(Severity::Note, codes::REQUESTS_COUNTED, place, message);
        let undated = "times of the counters have no date, and are taken to begin with the traces";
        let note = if dated.is_some() { note.with_note(undated) } else { note };
        scenarios.into_iter().fold(note, Diagnostic::with_note)
    }));
    findings
}

/// Counters whose times have no date begin with traces that have one.
fn dated(requests: &[Requests], begin: f64) -> Option<Vec<Requests>> {
    let times = || requests.iter().flat_map(|own| &own.samples).map(|sample| sample.0);
    let (first, last) = (times().fold(f64::INFINITY, f64::min), times().fold(f64::NEG_INFINITY, f64::max));
    (last < DATED && begin >= DATED).then(|| {
        let mut all = requests.to_vec();
        all.iter_mut().flat_map(|own| &mut own.samples).for_each(|sample| sample.0 += begin - first);
        all
    })
}

fn doubt(of: &Requests, message: String) -> Diagnostic {
    Diagnostic::warning(codes::REQUESTS_DOUBTED, Place::File { file: Arc::clone(&of.file) }, message)
}

fn contradiction(of: &Requests, own: &Weight, name: &str, weight: f64, other: f64, ids: bool) -> Diagnostic {
    let message = format!(
        "by `{}` a traced operation of `{name}` stands for {} operations, and by {} for {}",
        own.metric,
        load::short(weight),
        if ids { "its trace identifiers" } else { "what its spans carry" },
        load::short(other)
    );
    let taken = if ids { "the counter is taken" } else { "what spans carry is taken" };
    doubt(of, message)
        .with_note(format!("{taken}; the counter tells it to ± {} %", load::short((NORMAL * own.error * 1000.0).round() / 10.0)))
        .with_hint("a counter that is made of sampled spans counts too few, and so does one of some instances only; `--sampling` gives the probability")
}

/// The stretches of time in which scenarios were recorded, in seconds.
fn windows(sub: &SubModel) -> Vec<(f64, f64)> {
    load::windows(sub.scenarios.values().flat_map(load::recorded_windows).collect())
}

/// For how many operations of a scenario a traced one stands.
struct Weight {
    stands_for: f64,
    /// Its relative standard error.
    error: f64,
    requests: f64,
    traced: u64,
    /// What they were requests of.
    at: String,
    metric: String,
    series: usize,
}

impl Counted<'_> {
    /// By scenario. The first service of a scenario tells how it was sampled, since samplers decide there; else another one, where no scenario that has its own
    /// figure comes by.
    fn weights(&self, sub: &SubModel) -> BTreeMap<Name, Weight> {
        let served = served(sub);
        let (mut found, mut others) = (BTreeMap::new(), BTreeSet::new());
        let reached = reached(sub);
        for (scenario, (root, _)) in &reached {
            let own = root.and_then(|(task, service)| self.weight(sub, &served, *scenario, task, Some(service)));
            match own {
                Some(own) => drop(found.insert(*scenario, own)),
                None => drop(others.insert(*scenario)),
            }
        }
        for scenario in others {
            let mine = |task: &&Name| {
                reached.iter().all(|(own, (_, tasks))| !found.contains_key(own) || !tasks.contains(*task))
            };
            let tasks = reached[&scenario].1.iter().filter(mine);
            let traced = |task: &&Name| served.get(*task).map_or(0, |own| own.values().sum::<u64>());
            let counted = tasks.filter(|task| self.services.contains_key(*task)).max_by_key(traced);
            let own = counted.and_then(|task| self.weight(sub, &served, scenario, *task, None));
            found.extend(own.map(|own| (scenario, own)));
        }
        found
    }

    fn weight(
        &self,
        sub: &SubModel,
        served: &BTreeMap<Name, BTreeMap<Name, u64>>,
        scenario: Name,
        task: Name,
        service: Option<Name>,
    ) -> Option<Weight> {
        let (own, traced) = (self.services.get(&task)?, served.get(&task)?);
        let named = service.and_then(|service| Some((*own.operations.get(&service)?, *traced.get(&service)?)));
        let at = match named.and(service) {
            Some(service) => format!("`{}` of `{}`", sub.names.text(service), sub.names.text(task)),
            None => format!("`{}`", sub.names.text(task)),
        };
        let known = || own.operations.iter().fold((0.0, 0), |sum, (name, count)| (sum.0 + count, sum.1 + traced[name]));
        let all = || (own.rest, traced.values().sum());
        let (requests, traced) = named.unwrap_or_else(|| if own.operations.is_empty() { all() } else { known() });
        let total = sub.scenarios.get(&scenario)?;
        if traced < ENOUGH || total.operations < ENOUGH || requests <= 0.0 {
            return None;
        }
        // Between so many starts there is one interval less; and those that lost their first span are counted on their own.
        let operations = total.operations as f64;
        let weight = requests / (traced as f64 - 1.0) * operations / (operations + total.beheaded as f64);
        let error = ((1.0 - 1.0 / weight).max(0.0) / traced as f64).sqrt() + 1.0 / traced as f64;
        let metric = self.requests[own.series].metric.clone();
        Some(Weight { stands_for: weight, error, requests, traced, at, metric, series: own.series })
    }

    /// Says that no counter is of use.
    fn none(&self, first: &Requests, sub: &SubModel) -> Diagnostic {
        if let Some(place) = self.apart.first() {
            let own = &self.requests[*place];
            let message = format!("`{}` was not read while the traces were recorded, and tells no rates", own.metric);
            return doubt(own, message).with_hint(
                "a counter needs its values at two times at least, which span the traces, in seconds since 1970",
            );
        }
        let tasks: BTreeSet<&str> = served(sub).keys().map(|name| sub.names.text(*name)).collect();
        let shown: Vec<String> = tasks.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let names: BTreeSet<&str> =
            self.requests.iter().filter_map(|own| own.services.first()).map(String::as_str).collect();
        let named: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let told = doubt(first, "counted requests are of no service of the traces, and tell no rates".to_owned());
        let told = if named.is_empty() {
            told.with_note(format!("`{}` names no service", first.metric))
        } else {
            told.with_note(format!("requests are of {}", named.join(", ")))
        };
        told.with_note(format!("services are {}", shown.join(", ")))
    }
}

/// The entry with which operations of a scenario begin, and the tasks that they come by.
type Reached = (Option<(Name, Name)>, BTreeSet<Name>);

/// Of each scenario.
fn reached(sub: &SubModel) -> BTreeMap<Name, Reached> {
    let mut found: BTreeMap<Name, Reached> = BTreeMap::new();
    for index in sub.canonical_order() {
        let entry = sub.entry(index);
        if entry.interaction != Interaction::Customer {
            continue;
        }
        let Some(scenario) = sub.names.get(&scenario_of(sub, entry)) else { continue };
        let begun = entry.work.values().flat_map(|work| &work.requests);
        let first = begun
            .map(|((_, to), request)| (request.count, *to))
            .max_by_key(|(count, to)| (*count, std::cmp::Reverse(to.index())));
        let own = found.entry(scenario).or_default();
        let Some((_, root)) = first else { continue };
        own.0.get_or_insert((sub.entry(root).task, sub.entry(root).service));
        let (mut seen, mut open) = (BTreeSet::from([index.index()]), vec![index]);
        while let Some(at) = open.pop() {
            for ((_, to), _) in sub.entry(at).work.values().flat_map(|work| &work.requests) {
                if seen.insert(to.index()) {
                    own.1.insert(sub.entry(*to).task);
                    open.push(*to);
                }
            }
        }
    }
    found
}
