//! The law: a model, simulated, traced, and made a model again, is the same model, with demands and numbers of requests within
//! sampling error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::{ControlFlow, Range};

use dyelog::lqn::model::{ActivityId, Body, CallKind, CallOrder, Entry, Fork, Join, Model, Work};
use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::text;
use dyelog::model::{Configuration, complete};
use dyelog::recording::{TraceOptions, Traced, trace, trace_messages, trace_spans};
use dyelog::same::Options;
use dyelog::solve::{SimulateOptions, simulate};
use dyelog::tlc::{ReduceOptions, Reduction, Rules};
use dyelog::trace::messages::{self, MessageStep};
use dyelog::trace::recorded::WrittenSpan;
use dyelog::trace::spans::write::write_otlp;
use dyelog::trace::{Operation, TraceNames, angio};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::tlc::reduce;

const OPERATIONS: u64 = 1500;
/// Standard errors that an estimate may be off.
const ERRORS: f64 = 6.0;
/// Invocations of an entry in an operation, on average: at least so many, so that what it does is seen, and a caller adds so many at
/// most.
const FLOW: Range<f64> = 0.3..3.0;
/// The least mean of a number of calls.
const LEAST: f64 = 0.3;

/// So many random models of each kind, or as many as `PROPTEST_CASES` says.
fn cases(cases: u32) -> ProptestConfig {
    let config = ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases, ..config } }
}

/// What models are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Synchronous,
    Nested,
    SecondPhase,
    Forwarding,
    Asynchronous,
    Multiserver,
    ForkJoin,
    /// Of everything.
    Mixed,
}

/// How an entry asks another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// Calls and waits, in the first phase.
    Calls,
    /// Calls and waits, in the second phase.
    Later,
    /// Calls and does not wait.
    Sends,
    /// Passes requests on, some of them.
    Forwards,
}

/// An entry asks one of a later task: how, on average how often or how probably.
#[derive(Clone, Debug)]
struct Asks {
    to: Index,
    kind: RequestKind,
    mean: f64,
    part: f64,
}

#[derive(Clone, Debug)]
struct Serves {
    first: f64,
    second: f64,
    /// Whether the numbers of calls are exact.
    exact: bool,
    /// Whether it makes its calls in branches, and waits for all of them.
    forks: bool,
    asks: Vec<Asks>,
}

/// Customers, with what they call on average how often.
#[derive(Clone, Debug)]
struct Users {
    population: u32,
    think: f64,
    calls: Vec<(Index, f64)>,
}

/// Tasks in a row with what they serve, and who asks them.
#[derive(Clone, Debug)]
struct Recipe {
    tasks: Vec<(u32, Vec<Serves>)>,
    users: Vec<Users>,
    /// Arrivals at an entry, per second.
    open: Option<(Index, f64)>,
    seed: u64,
}

fn recipe(family: Family) -> impl Strategy<Value = Recipe> {
    use RequestKind::{Calls, Forwards, Later, Sends};
    let kinds = match family {
        Family::Synchronous | Family::Nested | Family::Multiserver | Family::ForkJoin => vec![Calls],
        Family::SecondPhase => vec![Calls, Later],
        Family::Forwarding => vec![Calls, Forwards, Forwards],
        Family::Asynchronous => vec![Calls, Sends],
        Family::Mixed => vec![Calls, Later, Sends, Forwards],
    };
    let most = if family == Family::Synchronous { 0 } else { 3 };
    let asks = (any::<Index>(), prop::sample::select(kinds), 0.4..1.8_f64, 0.2..1.0_f64)
        .prop_map(|(to, kind, mean, part)| Asks { to, kind, mean, part });
    let (forks, second) = match family {
        Family::ForkJoin => (0.8, 0.0),
        Family::SecondPhase => (0.0, 0.6),
        Family::Mixed => (0.3, 0.4),
        _ => (0.0, 0.0),
    };
    // Below the probability it is so.
    let serves = (0.01..0.3_f64, (0.01..0.3_f64, 0.0..1.0_f64), 0.0..1.0_f64, 0.0..1.0_f64);
    let serves = (serves, prop::collection::vec(asks, 0..=most)).prop_map(
        move |((first, (later, has_second), is_exact, is_forked), asks)| Serves {
            first,
            second: if has_second < second { later } else { 0.0 },
            exact: is_exact < 0.2,
            forks: is_forked < forks,
            asks,
        },
    );
    let threads = if family == Family::Multiserver { 2..5_u32 } else { 1..3_u32 };
    let task = (threads, prop::collection::vec(serves, 1..4));
    let users = (1..4_u32, 0.5..4.0_f64, prop::collection::vec((any::<Index>(), 0.4..1.8_f64), 1..4));
    let users = users.prop_map(|(population, think, calls)| Users { population, think, calls });
    (
        prop::collection::vec(task, 2..6),
        prop::collection::vec(users, 1..4),
        prop::option::weighted(0.3, (any::<Index>(), 0.1..0.5_f64)),
        any::<u64>(),
    )
        .prop_map(|(tasks, users, open, seed)| Recipe { tasks, users, open, seed })
}

/// An entry of a sketch, with those that it asks.
#[derive(Debug)]
struct Drawn<'r> {
    task: usize,
    serves: &'r Serves,
    /// Whether the numbers of calls are exact, and are made in branches.
    exact: bool,
    forks: bool,
    asks: BTreeMap<usize, (RequestKind, f64)>,
    /// Invocations for each operation, on average.
    flow: f64,
    /// How it is asked. One that is asked in two ways comes back as two.
    asked: Option<Way>,
    /// Whether somebody waits for each of its answers.
    waited: bool,
}

/// How an entry is asked: by calls, by messages, or by requests that are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Called,
    Sent,
    Passed,
}

impl RequestKind {
    fn way(self) -> Way {
        match self {
            Self::Calls | Self::Later => Way::Called,
            Self::Sends => Way::Sent,
            Self::Forwards => Way::Passed,
        }
    }
}

/// A recipe with all that could not be told from a trace left out.
struct Sketch<'r> {
    recipe: &'r Recipe,
    entries: Vec<Drawn<'r>>,
    /// What each group of users calls.
    calls: Vec<BTreeMap<usize, f64>>,
    /// An entry with arrivals.
    open: Option<(usize, f64)>,
}

impl<'r> Sketch<'r> {
    fn new(recipe: &'r Recipe) -> Self {
        let served = recipe.tasks.iter().enumerate().flat_map(|(task, (_, entries))| {
            entries.iter().map(move |serves| Drawn {
                task,
                serves,
                exact: false,
                forks: false,
                asks: BTreeMap::new(),
                flow: 0.0,
                asked: None,
                waited: true,
            })
        });
        let mut entries: Vec<Drawn<'r>> = served.collect();
        let each = 1.0 / recipe.users.len() as f64;
        let users = recipe.users.iter();
        let mut calls: Vec<BTreeMap<usize, f64>> = users
            .map(|users| users.calls.iter().map(|(to, mean)| (to.index(entries.len()), *mean)).collect())
            .collect();
        for (to, mean) in calls.iter().flatten() {
            entries[*to].flow += each * mean;
            entries[*to].asked = Some(Way::Called);
        }
        let open = recipe.open.as_ref().map(|(to, rate)| (to.index(entries.len()), *rate));
        if let Some((to, _)) = open {
            // Nobody waits for it, so that nothing tells what it does after its answer.
            (entries[to].asked, entries[to].waited) = (Some(Way::Called), false);
        }
        for number in 0..entries.len() {
            let entry = &mut entries[number];
            if entry.flow < FLOW.start && entry.asked.is_none_or(|way| way == Way::Called) {
                calls[0].insert(number, 1.0);
                entry.flow += each;
            }
            let after = (0..entries.len()).find(|other| entries[*other].task > entries[number].task);
            let later = after.unwrap_or(entries.len())..entries.len();
            if !later.is_empty() {
                ask(&mut entries, number, &later);
            }
        }
        Self { recipe, entries, calls, open }
    }

    /// Tasks that an operation may be in twice at once, if they have several threads: in the trace that would be another task.
    fn overlaps(&self) -> Vec<bool> {
        let mut overlaps = vec![false; self.recipe.tasks.len()];
        for entry in &self.entries {
            overlaps[entry.task] |= entry.second() > 0.0;
            for (to, (kind, _)) in &entry.asks {
                overlaps[entry.task] |= *kind == RequestKind::Later;
                overlaps[self.entries[*to].task] |= entry.forks || *kind == RequestKind::Sends;
            }
        }
        for task in 0..overlaps.len() {
            if !overlaps[task] {
                continue;
            }
            for entry in self.entries.iter().filter(|entry| entry.task == task) {
                for to in entry.asks.keys() {
                    overlaps[self.entries[*to].task] = true;
                }
            }
        }
        overlaps
    }

    fn text(&self) -> String {
        let mut text =
            String::from("G \"\" 1e-05 50 10 0.9 -1\nP 0\n p users i\n p host f m 4\n p shared s 0.01\n-1\nT 0\n");
        let mut add = |line: String| writeln!(text, " {line}").expect("a string");
        for (number, users) in self.recipe.users.iter().enumerate() {
            add(format!("t users{number} r go{number} -1 users z {} m {}", users.think, users.population));
        }
        for ((number, (threads, _)), overlaps) in self.recipe.tasks.iter().enumerate().zip(self.overlaps()) {
            let own = self.entries.iter().enumerate().filter(|(_, entry)| entry.task == number);
            let names: Vec<String> = own.map(|(entry, _)| format!("e{entry}")).collect();
            let names = names.join(" ");
            let processor = if number % 2 == 0 { "host" } else { "shared" };
            add(format!("t t{number} n {names} -1 {processor} m {}", if overlaps { 1 } else { *threads }));
        }
        add("-1\nE 0".to_owned());
        for (number, calls) in self.calls.iter().enumerate() {
            add(format!("s go{number} 0.01 -1"));
            for (to, mean) in calls {
                add(format!("y go{number} e{to} {mean} -1"));
            }
        }
        if let Some((to, rate)) = self.open {
            add(format!("a e{to} {rate}"));
        }
        let mut graphs: BTreeMap<usize, (String, Vec<String>)> = BTreeMap::new();
        for (number, entry) in self.entries.iter().enumerate() {
            if entry.forks {
                add(format!("A e{number} start{number}"));
                let (activities, precedences) = graphs.entry(entry.task).or_default();
                entry.graph(number, activities, precedences);
            } else {
                entry.phases(number).into_iter().for_each(&mut add);
            }
        }
        add("-1".to_owned());
        for (task, (activities, precedences)) in graphs {
            add(format!("A t{task}\n{activities} :\n {}\n-1", precedences.join(";\n ")));
        }
        text
    }
}

/// Lets an entry ask some of the later ones.
fn ask(entries: &mut [Drawn<'_>], number: usize, later: &Range<usize>) {
    let Drawn { serves, flow, waited, .. } = entries[number];
    let targets: BTreeSet<usize> = serves.asks.iter().map(|asks| later.start + asks.to.index(later.len())).collect();
    let most = FLOW.end / flow;
    let forks = serves.forks && targets.len() > 1 && most > 1.0 + LEAST;
    let exact = serves.exact && !forks && most >= 1.0;
    let mut chosen = BTreeMap::new();
    for asks in &serves.asks {
        let to = later.start + asks.to.index(later.len());
        let kind = match (asks.kind, entries[to].asked) {
            _ if forks => RequestKind::Calls,
            // Where nobody waits for an answer, nothing tells a second phase from the first, nor passing on from sending.
            (RequestKind::Later | RequestKind::Forwards, None | Some(Way::Called)) if !waited => RequestKind::Calls,
            (kind, None) => kind,
            (kind, Some(way)) if kind.way() == way => kind,
            (_, Some(Way::Called)) => RequestKind::Calls,
            (_, Some(Way::Sent)) => RequestKind::Sends,
            (_, Some(Way::Passed)) => RequestKind::Forwards,
        };
        let mean = match kind {
            RequestKind::Forwards => asks.part / serves.asks.len() as f64,
            _ if forks => asks.mean.min(most - 1.0),
            _ if exact => asks.mean.min(most).round().max(1.0),
            _ => asks.mean.min(most),
        };
        let possible = if kind == RequestKind::Forwards { waited } else { mean >= LEAST };
        if possible && entries[to].asked.is_none_or(|way| way == kind.way()) {
            entries[to].asked = Some(kind.way());
            chosen.entry(to).or_insert((kind, mean));
        }
    }
    let forks = forks && chosen.len() > 1;
    for (to, (kind, mean)) in &chosen {
        entries[*to].flow += flow * (mean + f64::from(u8::from(forks)));
        entries[*to].waited &= *kind != RequestKind::Sends;
    }
    (entries[number].asks, entries[number].forks, entries[number].exact) = (chosen, forks, exact);
}

impl Drawn<'_> {
    fn second(&self) -> f64 {
        if self.waited && !self.forks { self.serves.second } else { 0.0 }
    }

    fn phases(&self, number: usize) -> Vec<String> {
        let mut lines = vec![format!("s e{number} {} {} -1", self.serves.first, self.second())];
        if self.exact {
            lines.push(format!("f e{number} 1 1 -1"));
        }
        lines.extend(self.asks.iter().map(|(to, (kind, mean))| match kind {
            RequestKind::Calls => format!("y e{number} e{to} {mean} -1"),
            RequestKind::Later => format!("y e{number} e{to} 0 {mean} -1"),
            RequestKind::Sends => format!("z e{number} e{to} {mean} -1"),
            RequestKind::Forwards => format!("F e{number} e{to} {mean} -1"),
        }));
        lines
    }

    /// Branches that call an entry once, and then any number of times. Branches are known by what they call: one that sometimes
    /// calls nobody would be two.
    fn graph(&self, number: usize, activities: &mut String, precedences: &mut Vec<String>) {
        let (first, half) = (self.serves.first, self.serves.first / 2.0);
        let mut all = [Vec::new(), Vec::new()];
        writeln!(activities, " s start{number} {first}\n s fin{number} {half}").expect("a string");
        for (to, (_, mean)) in &self.asks {
            let [b, c] = ["b", "c"].map(|letter| format!("{letter}{number}_{to}"));
            writeln!(activities, " s {b} {half}\n f {b} 1\n y {b} e{to} 1\n s {c} {half}\n y {c} e{to} {mean}")
                .expect("a string");
            precedences.push(format!("{b} -> {c}"));
            all[0].push(b);
            all[1].push(c);
        }
        let [begun, ended] = all.map(|names| names.join(" & "));
        precedences.push(format!("start{number} -> {begun}"));
        precedences.push(format!("{ended} -> fin{number}"));
        precedences.push(format!("fin{number}[e{number}]"));
    }
}

fn build(recipe: &Recipe) -> Model {
    read(&Sketch::new(recipe).text())
}

fn read(source: &str) -> Model {
    let (model, _) = text::parse("recipe", source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    model
}

/// A mean with the variance of a single observation.
#[derive(Clone, Copy, Debug, Default)]
struct Figure {
    mean: f64,
    variance: f64,
}

impl std::ops::AddAssign for Figure {
    fn add_assign(&mut self, other: Self) {
        self.mean += other.mean;
        self.variance += other.variance;
    }
}

impl Figure {
    /// Whether the mean of so many observations may be this one.
    fn is_near(self, found: f64, count: f64) -> bool {
        count == 0.0 || (found - self.mean).abs() <= ERRORS * (self.variance / count).sqrt() + 1e-9
    }
}

/// Means by what they are of, with the entry that does it.
type Figures = BTreeMap<String, (String, Figure)>;

/// Whether all that there is comes back, within sampling error, and nothing else. What is so rare that it need not happen at all
/// may be missing.
fn agree(
    wanted: &Figures,
    found: &Figures,
    invocations: &BTreeMap<String, f64>,
    shown: &dyn Fn() -> String,
) -> Result<(), TestCaseError> {
    let invented: Vec<&String> = found.keys().filter(|what| !wanted.contains_key(*what)).collect();
    prop_assert!(invented.is_empty(), "invents {invented:#?}\n{}", shown());
    for (what, (entry, figure)) in wanted {
        let mean = found.get(what).map_or(0.0, |(_, found)| found.mean);
        let count = invocations.get(entry).copied().unwrap_or(0.0);
        prop_assert!(figure.is_near(mean, count), "{what}: {mean} for {figure:?} of {count}\n{}", shown());
    }
    Ok(())
}

/// What is done in a place of an entry: its demand, and its calls by kind and target.
#[derive(Clone, Debug, Default)]
struct Place {
    demand: Figure,
    calls: BTreeMap<(CallKind, String), Figure>,
}

/// What an entry does: in each phase or part, and where it passes requests on to.
#[derive(Clone, Debug, Default)]
struct Profile {
    places: BTreeMap<String, Place>,
    forwards: BTreeMap<String, Figure>,
}

impl Place {
    /// Adds what is done. Slices are exponential; there is one more than there are calls.
    fn add(&mut self, model: &Model, work: &Work) {
        let calls = work.calls.iter().filter(|call| call.mean > 0.0);
        let (mut slices, mut variance) = (1.0, 0.0);
        for call in calls {
            let own = match work.call_order {
                CallOrder::Stochastic => call.mean * (1.0 + call.mean),
                CallOrder::Deterministic | CallOrder::Bernoulli => call.mean.fract() * (1.0 - call.mean.fract()),
            };
            slices += call.mean;
            variance += own;
            let name = model.entries[call.to.index()].name.to_string();
            *self.calls.entry((call.kind, name)).or_default() += Figure { mean: call.mean, variance: own };
        }
        let slice = work.demand / slices;
        self.demand += Figure { mean: work.demand, variance: slice * slice * (slices + variance) };
    }
}

/// What entries do; customers that were made up are left out.
fn figures(model: &Model) -> Figures {
    let mut figures = Figures::new();
    for entry in model.entries.iter().filter(|entry| !entry.name.starts_with("Cu_")) {
        let Profile { places, forwards } = profile(model, entry);
        let own = format!("{} of {}", entry.name, model.tasks[entry.task.index()].name);
        let mut add = |what: String, figure: Figure| figures.insert(what, (entry.name.to_string(), figure));
        for (place, Place { demand, calls }) in places {
            add(format!("{own}, {place}"), demand);
            for ((kind, to), mean) in calls {
                add(format!("{own}, {place}: {kind:?} {to}"), mean);
            }
        }
        for (to, part) in forwards {
            add(format!("{own}: forwards to {to}"), part);
        }
    }
    figures
}

fn profile(model: &Model, entry: &Entry) -> Profile {
    let mut found = Profile::default();
    match &entry.body {
        Body::Phases(phases) => {
            for (number, work) in (1..).zip(phases) {
                let mut place = Place::default();
                place.add(model, work);
                if place.demand.mean > 0.0 || !place.calls.is_empty() {
                    found.places.insert(format!("phase {number}"), place);
                }
            }
        }
        Body::Activities(start) => found.places = block(model, entry, *start),
    }
    found.forwards = entry
        .forwarding
        .iter()
        .map(|forward| {
            let (name, mean) = (model.entries[forward.to.index()].name.to_string(), forward.probability);
            (name, Figure { mean, variance: mean * (1.0 - mean) })
        })
        .collect();
    found
}

/// Before a fork, its branches, and after the join; or that it is something else.
fn block(model: &Model, entry: &Entry, start: ActivityId) -> BTreeMap<String, Place> {
    let precedences = &model.tasks[entry.task.index()].precedences;
    // An activity with those that follow it one by one, and the last of them.
    let chain = |first: ActivityId| -> (Place, ActivityId) {
        let (mut place, mut last) = (Place::default(), first);
        place.add(model, &model.activities[first.index()].work);
        while let Some(next) = precedences.iter().find_map(|own| match (&own.join, &own.fork) {
            (Join::Sequence(before), Some(Fork::Sequence(after))) if *before == last => Some(*after),
            _ => None,
        }) {
            place.add(model, &model.activities[next.index()].work);
            last = next;
        }
        (place, last)
    };
    let (before, forks) = chain(start);
    let mut places = BTreeMap::from([("before".to_owned(), before)]);
    let branches = precedences.iter().find_map(|own| match (&own.join, &own.fork) {
        (Join::Sequence(last), Some(Fork::And(branches))) if *last == forks => Some(branches),
        _ => None,
    });
    let mut joins = None;
    for branch in branches.into_iter().flatten() {
        let (place, last) = chain(*branch);
        let called: Vec<&str> = place.calls.keys().map(|call| call.1.as_str()).collect();
        let name = format!("branch that calls {}", called.join(" "));
        if let Some(other) = places.insert(name.clone(), place) {
            places.insert(format!("another {name}"), other);
        }
        joins = precedences.iter().find_map(|own| match (&own.join, &own.fork) {
            (Join::And { quorum: None, activities }, Some(Fork::Sequence(after))) if activities.contains(&last) => {
                Some(*after)
            }
            _ => None,
        });
    }
    match joins {
        Some(after) => places.insert("after".to_owned(), chain(after).0),
        None => places.insert(format!("something else: {precedences:?}"), Place::default()),
    };
    places
}

/// By which format the trace goes from the simulation to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Events,
    Spans,
}

/// The trace of a simulation as text, and what becomes of it.
fn traced(model: &Model, seed: u64, through: Through) -> Result<(String, Reduction), TestCaseError> {
    let mut bytes = Vec::new();
    let options = TraceOptions { seed, operations: OPERATIONS, ..TraceOptions::default() };
    let traced = match through {
        Through::Events => trace(model, &options, &mut |names: &TraceNames, operation: Operation| {
            angio::write_text(&mut bytes, names, &operation).expect("memory takes all");
            ControlFlow::Continue(())
        }),
        Through::Spans => trace_spans(model, &options, &mut |number: u64, spans: &[WrittenSpan]| {
            write_otlp(&mut bytes, number, spans).expect("memory takes all");
            ControlFlow::Continue(())
        }),
    };
    let traced = traced.expect("the model can be simulated");
    is_complete(traced, model)?;
    let trace = String::from_utf8(bytes).expect("the trace is text");
    let reduction = reduce(&trace, &Rules::shipped(), ReduceOptions::default());
    Ok((trace, reduction))
}

/// Only of a model in which more messages come than can be worked on is the trace cut short, and then there is nothing to compare.
fn is_complete(traced: Traced, model: &Model) -> Result<(), TestCaseError> {
    if traced.complete {
        return Ok(());
    }
    let simulated = simulate(model, &SimulateOptions::default()).expect("the model can be simulated");
    prop_assert!(simulated.convergence.saturated, "{:?} of\n{}", traced, text::write(model));
    Err(TestCaseError::reject("overloaded"))
}

fn round_trip(recipe: &Recipe, through: Through) -> Result<(), TestCaseError> {
    comes_back(&build(recipe), recipe.seed, through)
}

/// How often each entry was invoked, by its name.
fn invocations(submodel: &SubModel) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    for entry in submodel.entries() {
        *found.entry(submodel.names.text(entry.service).to_owned()).or_default() += entry.invocations as f64;
    }
    found
}

/// Whether a model comes back from the trace of its simulation.
fn comes_back(model: &Model, seed: u64, through: Through) -> Result<(), TestCaseError> {
    let (trace, reduction) = traced(model, seed, through)?;
    let sound = (reduction.quality.set_aside, reduction.quality.restored);
    prop_assert_eq!(sound, (0, 0), "{}", &trace[..trace.len().min(3000)]);
    prop_assert_eq!(reduction.processed, reduction.nodes);
    let invocations = invocations(&reduction.submodel);
    let (again, _, _) = complete(&reduction.submodel, &Configuration::default()).expect("there are operations");
    let shown = || format!("{}\n{}", text::write(model), trace.split("operation ").take(4).collect::<String>());
    agree(&figures(model), &figures(&again), &invocations, &shown)
}

proptest! {
    #![proptest_config(cases(6))]

    #[test]
    fn synchronous(recipe in recipe(Family::Synchronous)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn nested(recipe in recipe(Family::Nested)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn second_phase(recipe in recipe(Family::SecondPhase)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn forwarding(recipe in recipe(Family::Forwarding)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn asynchronous(recipe in recipe(Family::Asynchronous)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn multiserver(recipe in recipe(Family::Multiserver)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn fork_join(recipe in recipe(Family::ForkJoin)) { round_trip(&recipe, Through::Events)?; }

    #[test]
    fn all_in_one(recipe in recipe(Family::Mixed)) { round_trip(&recipe, Through::Events)?; }
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn synchronous_through_spans(recipe in recipe(Family::Synchronous)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn nested_through_spans(recipe in recipe(Family::Nested)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn second_phase_through_spans(recipe in recipe(Family::SecondPhase)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn forwarding_through_spans(recipe in recipe(Family::Forwarding)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn asynchronous_through_spans(recipe in recipe(Family::Asynchronous)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn multiserver_through_spans(recipe in recipe(Family::Multiserver)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn fork_join_through_spans(recipe in recipe(Family::ForkJoin)) { round_trip(&recipe, Through::Spans)?; }

    #[test]
    fn all_in_one_through_spans(recipe in recipe(Family::Mixed)) { round_trip(&recipe, Through::Spans)?; }
}

/// A branch goes on in another thread once it was answered by who has a second phase to do: that one is joined.
#[test]
fn branches_that_are_answered_before_a_second_phase_are_joined() -> Result<(), TestCaseError> {
    let model = read(
        "G \"\" 1e-05 50 10 0.9 -1\nP 0\n p users i\n p host f m 4\n-1\nT 0\n t users r go -1 users z 3 m 3\n t t1 n e1 -1 host\n \
         t t2 n e2 -1 host\n t t3 n e3 -1 host m 2\n t t4 n e4 -1 host\n-1\nE 0\n s go 0.01 -1\n y go e1 1.5 -1\n A e1 start\n \
         s e2 0.01 0.3 -1\n y e2 e4 0 0.6 -1\n s e3 0.04 -1\n s e4 0.1 -1\n-1\nA t1\n s start 0.01\n s fin 0.01\n s b2 0.005\n \
         f b2 1\n y b2 e2 1\n s c2 0.005\n y c2 e2 0.5\n s b3 0.005\n f b3 1\n y b3 e3 1\n s c3 0.005\n y c3 e3 0.5\n :\n \
         start -> b2 & b3;\n b2 -> c2;\n b3 -> c3;\n c2 & c3 -> fin;\n fin[e1]\n-1\n",
    );
    comes_back(&model, 1, Through::Events)
}

/// What entries request of others, wherever they do it.
fn requests(model: &Model) -> Figures {
    let mut found = Figures::new();
    for entry in model.entries.iter().filter(|entry| entry.name.starts_with('e')) {
        let profile = profile(model, entry);
        let calls = profile.places.into_values().flat_map(|place| place.calls);
        let calls = calls.map(|((kind, to), figure)| (format!("{kind:?} {to}"), figure));
        let forwards = profile.forwards.into_iter().map(|(to, figure)| (format!("forwards to {to}"), figure));
        for (what, figure) in calls.chain(forwards) {
            found.entry(format!("{}: {what}", entry.name)).or_insert((entry.name.to_string(), Figure::default())).1 +=
                figure;
        }
    }
    found
}

/// Messages have no dye, so parallel branches and what an entry does after its last message are not to be seen; who asks whom, how
/// and how often is.
fn structure_through_messages(recipe: &Recipe) -> Result<(), TestCaseError> {
    // Nor are arrivals from outside, which nobody sent.
    let model = build(&Recipe { open: None, ..recipe.clone() });
    let mut table = format!("{}\n", messages::THREADED_HEADER).into_bytes();
    let options = TraceOptions { seed: recipe.seed, operations: OPERATIONS, ..TraceOptions::default() };
    let traced = trace_messages(&model, &options, &mut |names: &TraceNames, step: &MessageStep| {
        messages::write_threaded(&mut table, names, step).expect("memory takes all");
        ControlFlow::Continue(())
    });
    is_complete(traced.expect("the model can be simulated"), &model)?;
    let table = String::from_utf8(table).expect("the table is text");
    let (analysis, _, _) = crate::same::analyse(&[("run", &table)], Options::default());
    let invocations = invocations(&analysis.submodel);
    let (again, _, _) = complete(&analysis.submodel, &Configuration::default()).expect("there are operations");
    let shown = || format!("{}\n{}", text::write(&model), table.lines().take(40).collect::<Vec<_>>().join("\n"));
    agree(&requests(&model), &requests(&again), &invocations, &shown)
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn synchronous_through_messages(recipe in recipe(Family::Synchronous)) { structure_through_messages(&recipe)?; }

    #[test]
    fn nested_through_messages(recipe in recipe(Family::Nested)) { structure_through_messages(&recipe)?; }

    #[test]
    fn second_phase_through_messages(recipe in recipe(Family::SecondPhase)) { structure_through_messages(&recipe)?; }

    #[test]
    fn forwarding_through_messages(recipe in recipe(Family::Forwarding)) { structure_through_messages(&recipe)?; }

    #[test]
    fn asynchronous_through_messages(recipe in recipe(Family::Asynchronous)) { structure_through_messages(&recipe)?; }

    #[test]
    fn multiserver_through_messages(recipe in recipe(Family::Multiserver)) { structure_through_messages(&recipe)?; }
}
