//! The law: a model, simulated, traced, and made a model again, is the same model, with demands and numbers of requests within
//! sampling error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use dyelog::lqn::model::{Body, CallKind, Fork, Join, Model, Work};
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
            // Branches are known by what they call: one that sometimes calls nobody would be two.
            let calls = mean.ceil();
            writeln!(source, " s b{number} {demand}\n f b{number} 1\n y b{number} e{number} {calls}")
                .expect("a string");
        }
        let branches: Vec<String> = (2..=count).map(|number| format!("b{number}")).collect();
        let all = branches.join(" & ");
        writeln!(source, " :\n start -> {all};\n {all} -> fin;\n fin[e1]\n-1").expect("a string");
    }
    let (model, _) = text::parse("recipe", &source).unwrap_or_else(|error| panic!("{error}\n{source}"));
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
                let all = |id: &dyelog::lqn::model::ActivityId| place(model, &model.activities[id.index()].work);
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
    let model = build(recipe);
    let (trace, reduction) = traced(&model, recipe.seed, through);
    let sound = (reduction.quality.set_aside, reduction.quality.restored);
    prop_assert_eq!(sound, (0, 0), "{}", &trace[..trace.len().min(3000)]);
    prop_assert_eq!(reduction.processed, reduction.nodes);
    let mut invocations: BTreeMap<String, f64> = BTreeMap::new();
    for entry in reduction.submodel.entries() {
        let name = reduction.submodel.names.text(entry.service);
        *invocations.entry(name.to_owned()).or_default() += entry.invocations as f64;
    }
    let (again, _, _) = complete(&reduction.submodel, &Configuration::default()).expect("there are operations");
    let (before, after) = (profile(&model), profile(&again));
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
    #![proptest_config(ProptestConfig { max_shrink_iters: 20, ..ProptestConfig::with_cases(6) })]

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
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20, ..ProptestConfig::with_cases(4) })]

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
    #![proptest_config(ProptestConfig { max_shrink_iters: 20, ..ProptestConfig::with_cases(4) })]

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
