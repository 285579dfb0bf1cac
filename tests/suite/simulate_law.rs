//! The law: a model, simulated, traced, and made a model again, is the same model, with demands and numbers of requests within
//! sampling error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use dyelog::lqn::model::{ActivityId, Body, CallKind, Fork, Join, Model, Work};
use dyelog::lqn::text;
use dyelog::model::{Configuration, complete};
use dyelog::same::Options;
use dyelog::solve::{TraceOptions, trace, trace_messages, trace_spans};
use dyelog::tlc::{ReduceOptions, Reduction, Rules};
use dyelog::trace::messages::{self, Step};
use dyelog::trace::recorded::WrittenSpan;
use dyelog::trace::spans::write::write_otlp;
use dyelog::trace::{Operation, TraceNames, angio};
use proptest::prelude::*;

use crate::tlc::reduce;

const OPERATIONS: u64 = 1500;
/// Standard errors that an estimate may be off.
const ERRORS: f64 = 6.0;

/// So many random models of each kind, or as many as `PROPTEST_CASES` says.
fn cases(cases: u32) -> ProptestConfig {
    let config = ProptestConfig { max_shrink_iters: 20, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases, ..config } }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Synchronous,
    Nested,
    SecondPhase,
    Forwarding,
    Asynchronous,
    Multiserver,
    ForkJoin,
}

/// A client and some tasks after it, each with a demand, a second demand and a mean number of calls.
#[derive(Clone, Debug)]
struct Recipe {
    family: Family,
    tasks: Vec<(f64, f64, f64)>,
    threads: u32,
    population: u32,
    forwarded: f64,
    seed: u64,
}

fn recipe(family: Family) -> impl Strategy<Value = Recipe> {
    (
        prop::collection::vec((0.01..0.5_f64, 0.01..0.5_f64, 0.3..2.5_f64), 2..5),
        2..5_u32,
        1..6_u32,
        0.2..1.0_f64,
        any::<u64>(),
    )
        .prop_map(move |(tasks, threads, population, forwarded, seed)| Recipe {
            family,
            tasks,
            threads,
            population,
            forwarded,
            seed,
        })
}

fn build(recipe: &Recipe) -> Model {
    let Recipe { family, tasks, threads, population, forwarded, .. } = recipe;
    let count = tasks.len();
    let multi = if *family == Family::Multiserver { *threads } else { 1 };
    let mut source = format!("G \"\" 1e-05 50 10 0.9 -1\nP 0\n p users i\n p host f m {}\n-1\nT 0\n", multi.max(2));
    writeln!(source, " t users r go -1 users z 3 m {population}").expect("a string");
    for number in 1..=count {
        writeln!(source, " t t{number} n e{number} -1 host m {multi}").expect("a string");
    }
    source += "-1\nE 0\n s go 0.01 -1\n";
    let mut line = |text: String| writeln!(source, " {text}").expect("a string");
    let next = |number: usize| (number < count).then_some(number + 1);
    match family {
        Family::Synchronous => {
            for number in 1..=count {
                line(format!("y go e{number} {} -1", tasks[number - 1].2));
                line(format!("s e{number} {} -1", tasks[number - 1].0));
            }
        }
        Family::ForkJoin => {
            line("y go e1 1.5 -1".into());
            line("A e1 start".into());
            for number in 2..=count {
                line(format!("s e{number} {} -1", tasks[number - 1].0));
            }
        }
        _ => {
            line("y go e1 1.5 -1".into());
            for number in 1..=count {
                let (first, second, mean) = tasks[number - 1];
                let later = if *family == Family::SecondPhase { second } else { 0.0 };
                line(format!("s e{number} {first} {later} -1"));
                let Some(next) = next(number) else { continue };
                match family {
                    Family::SecondPhase => line(format!("y e{number} e{next} {mean} {} -1", mean / 2.0)),
                    Family::Forwarding if number + 1 == count => line(format!("F e{number} e{next} {forwarded} -1")),
                    Family::Forwarding => line(format!("F e{number} e{next} 1 -1")),
                    Family::Asynchronous => line(format!("z e{number} e{next} {mean} -1")),
                    _ => line(format!("y e{number} e{next} {mean} -1")),
                }
            }
        }
    }
    source += "-1\n";
    if *family == Family::ForkJoin {
        writeln!(source, "A t1\n s start {}\n s fin {}", tasks[0].0, tasks[0].1).expect("a string");
        for number in 2..=count {
            let (_, demand, mean) = tasks[number - 1];
            source += &branch(number, demand, mean);
        }
        source += &joined("e1", &(2..=count).collect::<Vec<usize>>());
    }
    let (model, _) = text::parse("recipe", &source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    model
}

/// A branch that calls an entry once, and then any number of times. Branches are known by what they call: one that sometimes calls
/// nobody would be two.
fn branch(number: usize, demand: f64, mean: f64) -> String {
    let half = demand / 2.0;
    format!(
        " s b{number} {half}\n f b{number} 1\n y b{number} e{number} 1\n s c{number} {half}\n y c{number} e{number} {mean}\n"
    )
}

/// That these branches come after `start`, and `fin`, which answers, after them.
fn joined(entry: &str, branches: &[usize]) -> String {
    let all = |letter: char| -> String {
        branches.iter().map(|number| format!("{letter}{number}")).collect::<Vec<String>>().join(" & ")
    };
    let each = branches.iter().fold(String::new(), |text, number| text + &format!(" b{number} -> c{number};\n"));
    format!(" :\n start -> {};\n{each} {} -> fin;\n fin[{entry}]\n-1\n", all('b'), all('c'))
}

/// How a task of a mixed model goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Calls and waits, in the first phase.
    Calls,
    /// Calls and waits, in the second phase.
    Later,
    /// Calls and does not wait.
    Sends,
    /// Passes requests on, some of them.
    Forwards,
    /// Has branches that call, and waits for all of them.
    Forks,
}

/// A task of a mixed model: how it goes on, two demands, a mean, a probability, and threads.
type Member = (Manner, f64, f64, f64, f64, u32);

fn members() -> impl Strategy<Value = (Vec<Member>, u64)> {
    let manner = prop::sample::select(vec![
        Manner::Calls,
        Manner::Later,
        Manner::Sends,
        Manner::Forwards,
        Manner::Forks,
        Manner::Forks,
    ]);
    let member = (manner, 0.01..0.3_f64, 0.01..0.3_f64, 0.5..2.0_f64, 0.3..1.0_f64, 1..4_u32);
    (prop::collection::vec(member, 3..7), any::<u64>())
}

/// A tree of tasks, each of which goes on in its own manner.
fn mixed(members: &[Member]) -> Model {
    let count = members.len();
    let mut source = String::from("G \"\" 1e-05 50 10 0.9 -1\nP 0\n p users i\n p host f m 4\n-1\nT 0\n");
    source += " t users r go -1 users z 3 m 3\n";
    // What each calls, whether anybody waits for its answer, and whether an operation may be in it twice at once: that is seen as
    // another task, so that such a task has one thread.
    let mut children: Vec<Vec<usize>> = Vec::new();
    let (mut waited, mut overlaps) = (vec![true; count + 1], vec![false; count + 1]);
    let mut next = 2;
    for (number, member) in (1..).zip(members) {
        let own: Vec<usize> = (next..=count).take(if member.0 == Manner::Forks { 2 } else { 1 }).collect();
        next += own.len();
        overlaps[number] |= member.0 == Manner::Later;
        for &child in &own {
            waited[child] = member.0 != Manner::Sends;
            overlaps[child] = overlaps[number] || member.0 == Manner::Sends;
        }
        let threads = if overlaps[number] { 1 } else { member.5 };
        writeln!(source, " t t{number} n e{number} -1 host m {threads}").expect("a string");
        children.push(own);
    }
    source += "-1\nE 0\n s go 0.01 -1\n y go e1 1.5 -1\n";
    let mut activities = String::new();
    for (number, &(manner, first, second, mean, part, _)) in (1..).zip(members) {
        let children = &children[number - 1];
        let mut line = |text: String| writeln!(source, " {text}").expect("a string");
        match (manner, &children[..]) {
            (Manner::Forks, [_, _]) => {
                line(format!("A e{number} start"));
                writeln!(activities, "A t{number}\n s start {first}\n s fin {second}").expect("a string");
                for child in children {
                    activities += &branch(*child, second, mean);
                }
                activities += &joined(&format!("e{number}"), children);
            }
            // Where nobody waits for an answer, nothing tells a second phase from the first.
            (Manner::Later, [child]) if waited[number] => {
                line(format!("s e{number} {first} {second} -1"));
                line(format!("y e{number} e{child} 0 {mean} -1"));
            }
            (Manner::Sends, [child]) => {
                line(format!("s e{number} {first} -1"));
                line(format!("z e{number} e{child} {mean} -1"));
            }
            (Manner::Forwards, [child]) if waited[number] => {
                line(format!("s e{number} {first} -1"));
                line(format!("F e{number} e{child} {part} -1"));
            }
            (_, children) => {
                line(format!("s e{number} {first} -1"));
                for child in children {
                    line(format!("y e{number} e{child} {mean} -1"));
                }
            }
        }
    }
    source += "-1\n";
    source += &activities;
    let (model, _) = text::parse("mixed", &source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    model
}

/// What a place of an entry does: its demand, and its calls by kind and target.
type Place = (f64, BTreeMap<(CallKind, String), f64>);

/// Entries by task and name, with what is done in each phase or part, and where requests are forwarded to.
type Profile = BTreeMap<String, (BTreeMap<String, Place>, BTreeMap<String, f64>)>;

fn place(model: &Model, work: &Work) -> Place {
    let name = |call: &dyelog::lqn::model::Call| (call.kind, model.entries[call.to.index()].name.to_string());
    (work.demand, work.calls.iter().filter(|call| call.mean > 0.0).map(|call| (name(call), call.mean)).collect())
}

fn profile(model: &Model) -> Profile {
    let mut profile = Profile::new();
    for entry in model.entries.iter().filter(|entry| !entry.name.starts_with("Cu_")) {
        let task = &model.tasks[entry.task.index()];
        let mut places = BTreeMap::new();
        match &entry.body {
            Body::Phases(phases) => {
                for (phase, work) in phases.iter().enumerate() {
                    let found = place(model, work);
                    if found.0 > 0.0 || !found.1.is_empty() {
                        places.insert(format!("phase {}", phase + 1), found);
                    }
                }
            }
            Body::Activities(start) => {
                // An activity with those that follow it one by one.
                let all = |id: &ActivityId| -> Place {
                    let mut found = place(model, &model.activities[id.index()].work);
                    let mut last = *id;
                    while let Some(next) = task.precedences.iter().find_map(|own| match (&own.join, &own.fork) {
                        (Join::Sequence(before), Some(Fork::Sequence(after))) if *before == last => Some(*after),
                        _ => None,
                    }) {
                        let (demand, calls) = place(model, &model.activities[next.index()].work);
                        found.0 += demand;
                        for (call, mean) in calls {
                            *found.1.entry(call).or_default() += mean;
                        }
                        last = next;
                    }
                    found
                };
                places.insert("before".into(), all(start));
                for precedence in &task.precedences {
                    match (&precedence.join, &precedence.fork) {
                        (Join::Sequence(_), Some(Fork::And(branches))) => {
                            for branch in branches {
                                let found = all(branch);
                                let called: Vec<&str> = found.1.keys().map(|call| call.1.as_str()).collect();
                                places.insert(format!("branch that calls {}", called.join(" ")), found);
                            }
                        }
                        (Join::Sequence(_), Some(Fork::Sequence(_))) => {}
                        (Join::And { quorum: None, .. }, Some(Fork::Sequence(after))) => {
                            places.insert("after".into(), all(after));
                        }
                        other => panic!("another structure: {other:?}"),
                    }
                }
            }
        }
        let forwards = entry
            .forwarding
            .iter()
            .map(|forward| (model.entries[forward.to.index()].name.to_string(), forward.probability));
        profile.insert(format!("{} of {}", entry.name, task.name), (places, forwards.collect()));
    }
    profile
}

/// By which format the trace goes from the simulation to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Events,
    Spans,
}

/// The trace of a simulation as text, and what becomes of it.
fn traced(model: &Model, seed: u64, through: Through) -> (String, Reduction) {
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
    assert!(traced.complete, "{traced:?}");
    let trace = String::from_utf8(bytes).expect("the trace is text");
    let reduction = reduce(&trace, &Rules::shipped(), ReduceOptions::default());
    (trace, reduction)
}

fn round_trip(recipe: &Recipe, through: Through) -> Result<(), TestCaseError> {
    comes_back(&build(recipe), recipe.seed, through)
}

/// Whether a model comes back from the trace of its simulation.
fn comes_back(model: &Model, seed: u64, through: Through) -> Result<(), TestCaseError> {
    let (trace, reduction) = traced(model, seed, through);
    let sound = (reduction.quality.set_aside, reduction.quality.restored);
    prop_assert_eq!(sound, (0, 0), "{}", &trace[..trace.len().min(3000)]);
    prop_assert_eq!(reduction.processed, reduction.nodes);
    let mut invocations: BTreeMap<String, f64> = BTreeMap::new();
    for entry in reduction.submodel.entries() {
        let name = reduction.submodel.names.text(entry.service);
        *invocations.entry(name.to_owned()).or_default() += entry.invocations as f64;
    }
    let (again, _, _) = complete(&reduction.submodel, &Configuration::default()).expect("there are operations");
    let (before, after) = (profile(model), profile(&again));
    let keys = |profile: &Profile| -> Vec<String> {
        let entries = profile.iter().flat_map(|(entry, (places, forwards))| {
            let calls = places.iter().flat_map(move |(place, found)| {
                std::iter::once(format!("{entry}, {place}"))
                    .chain(found.1.keys().map(move |call| format!("{entry}, {place}: {call:?}")))
            });
            calls.chain(forwards.keys().map(move |to| format!("{entry} forwards to {to}")))
        });
        entries.collect()
    };
    let shown = || trace.split("operation ").take(4).collect::<String>();
    prop_assert_eq!(keys(&before), keys(&after), "{}", shown());
    for (entry, (places, forwards)) in &before {
        let name = entry.split(' ').next().expect("there is a name");
        let count = invocations.get(name).copied().unwrap_or(0.0);
        let (found_places, found_forwards) = &after[entry];
        for (place, (demand, calls)) in places {
            let (found, found_calls) = &found_places[place];
            // The time of all slices of a phase is exponential, as each of them is.
            let error = demand / count.sqrt();
            prop_assert!((found - demand).abs() <= ERRORS * error, "{entry}, {place}: {found} for {demand} ± {error}");
            for (call, mean) in calls {
                let (found, error) = (found_calls[call], (mean * (1.0 + mean) / count).sqrt());
                prop_assert!(
                    (found - mean).abs() <= ERRORS * error,
                    "{entry}, {place}: {call:?} {found} for {mean} ± {error}"
                );
            }
        }
        for (to, probability) in forwards {
            let (found, error) = (found_forwards[to], (probability * (1.0 - probability) / count).sqrt());
            prop_assert!(
                (found - probability).abs() <= ERRORS * error + 1e-9,
                "{entry} to {to}: {found} for {probability}"
            );
        }
    }
    Ok(())
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
    fn fork_join(recipe in recipe(Family::ForkJoin).prop_filter("a fork has branches", |recipe| recipe.tasks.len() > 2)) {
        round_trip(&recipe, Through::Events)?;
    }
    #[test]
    fn all_in_one((members, seed) in members()) { comes_back(&mixed(&members), seed, Through::Events)?; }
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
    fn fork_join_through_spans(recipe in recipe(Family::ForkJoin).prop_filter("a fork has branches", |recipe| recipe.tasks.len() > 2)) {
        round_trip(&recipe, Through::Spans)?;
    }
}

/// A branch goes on in another thread once it was answered by who has a second phase to do: that one is joined.
#[test]
fn branches_that_are_answered_before_a_second_phase_are_joined() -> Result<(), TestCaseError> {
    let members = [
        (Manner::Forks, 0.01, 0.01, 0.5, 0.5, 1),
        (Manner::Later, 0.01, 0.3, 0.6, 0.5, 1),
        (Manner::Calls, 0.04, 0.1, 1.0, 0.5, 2),
        (Manner::Calls, 0.1, 0.1, 1.0, 0.5, 2),
    ];
    comes_back(&mixed(&members), 1, Through::Events)
}

/// Requests of entries other than customers, by names and kind, with their means.
type Requests = BTreeMap<(String, String, String), f64>;

fn requests(model: &Model) -> Requests {
    let mut found = Requests::new();
    let name = |id: dyelog::lqn::EntryId| model.entries[id.index()].name.to_string();
    for entry in model.entries.iter().filter(|entry| entry.name.starts_with('e')) {
        if let Body::Phases(phases) = &entry.body {
            for call in phases.iter().flat_map(|work| &work.calls) {
                *found.entry((entry.name.to_string(), format!("{:?}", call.kind), name(call.to))).or_default() +=
                    call.mean;
            }
        }
        for forward in &entry.forwarding {
            found.insert((entry.name.to_string(), "Forward".into(), name(forward.to)), forward.probability);
        }
    }
    found
}

/// Messages have no dye, so parallel branches and what an entry does after its last message are not to be seen; who asks whom, how
/// and how often is. A message stands where it is received: one that waits in a queue seems to be sent by what its sender does
/// meanwhile, which is why forwarding under load is not among these.
fn structure_through_messages(recipe: &Recipe) -> Result<(), TestCaseError> {
    let model = build(recipe);
    let mut table = format!("{}\n", messages::THREADED_HEADER).into_bytes();
    let options = TraceOptions { seed: recipe.seed, operations: OPERATIONS, ..TraceOptions::default() };
    let traced = trace_messages(&model, &options, &mut |names: &TraceNames, step: &Step| {
        messages::write_threaded(&mut table, names, step).expect("memory takes all");
        ControlFlow::Continue(())
    });
    prop_assert!(traced.expect("the model can be simulated").complete);
    let table = String::from_utf8(table).expect("the table is text");
    let (analysis, _, _) = crate::same::analyse(&[("run", &table)], Options::default());
    let (again, _, _) = complete(&analysis.submodel, &Configuration::default()).expect("there are operations");
    let (before, after) = (requests(&model), requests(&again));
    let shown = || table.lines().take(40).collect::<Vec<_>>().join("\n");
    prop_assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{}", shown());
    for (request, mean) in &before {
        let (found, error) = (after[request], (mean * (1.0 + mean) / OPERATIONS as f64).sqrt());
        prop_assert!((found - mean).abs() <= ERRORS * error, "{request:?}: {found} for {mean} ± {error}");
    }
    Ok(())
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
    fn asynchronous_through_messages(recipe in recipe(Family::Asynchronous)) { structure_through_messages(&recipe)?; }

    #[test]
    fn multiserver_through_messages(recipe in recipe(Family::Multiserver)) { structure_through_messages(&recipe)?; }
}
