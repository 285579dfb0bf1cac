//! Laws that hold for any model, on random small ones.

use dyelog::lqn::model::{
    Activity, ActivityId, Body, Call, CallKind, Entry, EntryId, Fork, Join, Model, Multiplicity, Precedence, Processor,
    ProcessorId, Scheduling, Task, TaskId, Work,
};
use dyelog::lqn::results::Results;
use dyelog::solve::{LayeredOptions, layered};
use proptest::prelude::*;

/// What a random model is made from: a client, and tasks that call tasks of higher numbers.
#[derive(Clone, Debug)]
struct Recipe {
    population: u32,
    think: f64,
    /// Processor, threads (0 is infinite), demand of both phases.
    tasks: Vec<(u32, u32, f64, f64)>,
    /// Caller (0 is the client), offset of the target, mean, whether it is asynchronous.
    calls: Vec<(usize, usize, f64, bool)>,
    scheduling: Vec<usize>,
    priorities: Vec<i32>,
    /// A task with open arrivals, and how many per second.
    open: Option<(usize, f64)>,
    /// A task whose entry does its work in two branches.
    fork: Option<usize>,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let task = (0..3_u32, 0..4_u32, 0.05..1.0_f64, prop_oneof![2 => Just(0.0), 1 => 0.05..0.5_f64]);
    let call = (0..5_usize, 0..5_usize, 0.2..2.0_f64, prop::bool::weighted(0.15));
    (
        1..12_u32,
        0.5..20.0_f64,
        prop::collection::vec(task, 1..5),
        prop::collection::vec(call, 1..8),
        prop::collection::vec(prop_oneof![3 => 0..3_usize, 1 => 3..5_usize], 3),
        prop::collection::vec(0..3_i32, 4),
        prop::option::weighted(0.25, (0..4_usize, 0.005..0.1_f64)),
        prop::option::weighted(0.3, 0..4_usize),
    )
        .prop_map(|(population, think, tasks, calls, scheduling, priorities, open, fork)| Recipe {
            open: open.map(|(task, rate)| (task % tasks.len(), rate)),
            fork: fork.map(|task| task % tasks.len()),
            population,
            think,
            tasks,
            calls,
            scheduling,
            priorities,
        })
}

fn build(recipe: &Recipe, stretched: f64) -> Model {
    let mut model = Model::default();
    model.processors.push(Processor::new("client", Scheduling::Delay));
    for (index, kind) in recipe.scheduling.iter().enumerate() {
        let scheduling = [
            Scheduling::Fcfs,
            Scheduling::ProcessorSharing,
            Scheduling::Delay,
            Scheduling::HeadOfLine,
            Scheduling::PreemptivePriority,
        ][*kind];
        model.processors.push(Processor::new(&format!("p{index}"), scheduling));
    }
    let mut client = Task::new("client", ProcessorId(0), Scheduling::Reference);
    client.multiplicity = Multiplicity::Finite(recipe.population);
    client.think_time = recipe.think;
    client.entries = vec![EntryId(0)];
    model.tasks.push(client);
    model.entries.push(Entry::new("cycle", TaskId(0)));
    for (index, (processor, threads, ..)) in recipe.tasks.iter().enumerate() {
        let number = index as u32 + 1;
        let mut task = Task::new(&format!("t{number}"), ProcessorId(processor + 1), Scheduling::Fcfs);
        task.multiplicity = if *threads == 0 { Multiplicity::Infinite } else { Multiplicity::Finite(*threads) };
        task.entries = vec![EntryId(number)];
        task.priority = recipe.priorities[index];
        model.tasks.push(task);
        let mut entry = Entry::new(&format!("e{number}"), TaskId(number));
        entry.open_arrival_rate = recipe.open.filter(|open| open.0 == index).map(|open| open.1);
        model.entries.push(entry);
    }
    for number in 0..=recipe.tasks.len() {
        let mut phases = vec![Work::default()];
        if let Some((_, _, first, second)) = number.checked_sub(1).map(|index| recipe.tasks[index]) {
            phases[0].demand = first * stretched;
            if second > 0.0 {
                phases.push(Work { demand: second * stretched, ..Work::default() });
            }
        }
        for (from, offset, mean, asynchronous) in &recipe.calls {
            let to = from + 1 + offset;
            if *from == number && to <= recipe.tasks.len() {
                let kind = if *asynchronous { CallKind::Asynchronous } else { CallKind::Synchronous };
                phases[0].calls.push(Call { to: EntryId(to as u32), kind, mean: *mean });
            }
        }
        model.entries[number].body = Body::Phases(phases);
    }
    if let Some(task) = recipe.fork {
        fork(&mut model, task + 1);
    }
    model
}

/// Makes an entry do its first phase in two branches, with a quarter of the work before and a quarter after them.
fn fork(model: &mut Model, entry: usize) {
    let (id, task) = (EntryId::from(entry), model.entries[entry].task);
    let Body::Phases(phases) = std::mem::replace(&mut model.entries[entry].body, Body::Activities(ActivityId(0)))
    else {
        return;
    };
    let mut works = vec![Work { demand: phases[0].demand / 4.0, ..Work::default() }; 4];
    for (place, call) in phases[0].calls.iter().enumerate() {
        works[1 + place % 2].calls.push(call.clone());
    }
    works.extend(phases.into_iter().skip(1));
    for (number, work) in works.into_iter().enumerate() {
        let replies = if number == 3 { vec![id] } else { Vec::new() };
        model.tasks[task.index()].activities.push(ActivityId(number as u32));
        model.activities.push(Activity { work, replies, ..Activity::new(&format!("a{number}"), task) });
    }
    let branches = vec![ActivityId(1), ActivityId(2)];
    let mut precedences = vec![
        Precedence { join: Join::Sequence(ActivityId(0)), fork: Some(Fork::And(branches.clone())) },
        Precedence {
            join: Join::And { activities: branches, quorum: None },
            fork: Some(Fork::Sequence(ActivityId(3))),
        },
    ];
    if model.activities.len() > 4 {
        precedences.push(Precedence { join: Join::Sequence(ActivityId(3)), fork: Some(Fork::Sequence(ActivityId(4))) });
    }
    model.tasks[task.index()].precedences = precedences;
}

/// What an invocation of an entry does, each once.
fn works(model: &Model, entry: usize) -> Vec<&Work> {
    match &model.entries[entry].body {
        Body::Phases(phases) => phases.iter().collect(),
        Body::Activities(_) => model.activities.iter().map(|activity| &activity.work).collect(),
    }
}

/// Solved in layers, and exactly where few states will do.
fn solve(model: &Model) -> Vec<Results> {
    let with = |states: usize| {
        let options = LayeredOptions { states, ..LayeredOptions::default() };
        layered(model, &options).expect("random models can be solved")
    };
    let mut found = vec![with(0)];
    let exact = with(2000);
    if exact != found[0] {
        found.push(exact);
    }
    found.retain(|results| results.convergence.converged);
    found
}

/// Whether two results were found in the same way, in however many layers or states: where the solver starts again with another
/// method, that one errs in another way.
fn alike(left: &Results, right: &Results) -> bool {
    let method = |results: &Results| {
        let words = results.convergence.method.split_whitespace();
        words
            .filter(|word| word.parse::<u64>().is_err())
            .map(|word| word.replace("layers", "layer"))
            .collect::<Vec<_>>()
    };
    method(left) == method(right)
}

/// How far off results may be: where requests are lost, by some times the one in ten thousand that may be, which is told.
fn tolerance(results: &Results) -> f64 {
    if results.caveats.iter().any(|doubt| doubt.contains("are lost")) { 1e-3 } else { 1e-4 }
}

fn close(left: f64, right: f64) -> bool {
    within(1e-4, left, right)
}

fn within(tolerance: f64, left: f64, right: f64) -> bool {
    (left - right).abs() <= tolerance * left.abs().max(right.abs()).max(1e-9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn flows_balance_and_utilisations_follow(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        for results in solve(&model) {
            let close = |left: f64, right: f64| within(tolerance(&results), left, right);
            let mut flows = vec![0.0; model.entries.len()];
            flows[0] = results.entries[0].throughput;
            for (index, entry) in model.entries.iter().enumerate() {
                flows[index] += entry.open_arrival_rate.unwrap_or(0.0);
                for work in works(&model, index) {
                    for call in &work.calls {
                        flows[call.to.index()] += results.entries[index].throughput * call.mean;
                    }
                }
            }
            let mut busy = vec![0.0; model.processors.len()];
            for (index, entry) in model.entries.iter().enumerate() {
                let result = &results.entries[index];
                prop_assert!(close(result.throughput, flows[index]), "flow of {}: {} for {}", entry.name, result.throughput, flows[index]);
                let demand: f64 = works(&model, index).iter().map(|work| work.demand).sum();
                busy[model.tasks[entry.task.index()].processor.index()] += result.throughput * demand;
                // An entry that is called takes at least its demand, or half of it where it has two branches.
                let least = if recipe.fork.is_some() { 0.5 * demand } else { demand };
                let rounding = if tolerance(&results) > 1e-4 { 1e-3 } else { 1e-6 };
                prop_assert!(result.throughput == 0.0 || result.service.iter().sum::<f64>() >= least * (1.0 - rounding));
                let held = result.throughput * result.service.iter().sum::<f64>();
                prop_assert!(close(result.utilization, held), "busy threads of {}", entry.name);
            }
            for (index, processor) in model.processors.iter().enumerate() {
                prop_assert!(close(results.processors[index].utilization, busy[index]), "utilisation of {}", processor.name);
            }
        }
    }

    #[test]
    fn customers_are_somewhere(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        for results in solve(&model) {
            // Little's law for the whole: population = throughput · (think time + response).
            let cycle = recipe.think + results.entries[0].service.iter().sum::<f64>();
            prop_assert!(close(results.tasks[0].throughput * cycle, f64::from(recipe.population)));
        }
    }

    #[test]
    fn no_server_does_more_than_it_can(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        for results in solve(&model) {
            for (index, processor) in model.processors.iter().enumerate() {
                if processor.scheduling != Scheduling::Delay {
                    // Approximations may go past a bound by a little; more is a defect.
                    prop_assert!(results.processors[index].utilization <= 1.03, "{} of {}", results.processors[index].utilization, processor.name);
                }
            }
            for (task, result) in model.tasks.iter().zip(&results.tasks) {
                if let Multiplicity::Finite(threads) = task.multiplicity {
                    prop_assert!(result.utilization <= f64::from(threads) * 1.03, "{} threads busy of {}", result.utilization, task.name);
                }
            }
        }
    }

    #[test]
    fn more_demand_is_no_faster(recipe in recipe()) {
        let (light, heavy) = (solve(&build(&recipe, 1.0)), solve(&build(&recipe, 1.2)));
        for (light, heavy) in light.iter().zip(&heavy).filter(|(light, heavy)| alike(light, heavy)) {
            prop_assert!(heavy.tasks[0].throughput <= light.tasks[0].throughput * (1.0 + 1e-4));
        }
    }

    #[test]
    fn throughput_is_within_its_asymptotes(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        for results in solve(&model) {
            // Nobody is faster than alone, and no queue is: where requests that nobody waits for queue up, too, all are slower.
            let alone: f64 = results.entries.iter().enumerate().skip(1).map(|(index, entry)| {
                let Body::Phases(phases) = &model.entries[index].body else { return 0.0 };
                let waited = recipe.calls.iter().all(|call| !call.3) && recipe.open.is_none() && recipe.fork.is_none() && phases.len() == 1;
                let visits = entry.throughput / results.tasks[0].throughput;
                if waited { visits * phases[0].demand } else { 0.0 }
            }).sum();
            let bound = f64::from(recipe.population) / (recipe.think + alone);
            prop_assert!(results.tasks[0].throughput <= bound * (1.0 + 1e-4), "{} over {bound}", results.tasks[0].throughput);
        }
    }

    #[test]
    fn layers_are_not_far_from_the_exact_answer(recipe in recipe()) {
        let found = solve(&build(&recipe, 1.0));
        if let [layers, exact] = &found[..] {
            let (layers, exact) = (layers.tasks[0].throughput, exact.tasks[0].throughput);
            prop_assert!((layers - exact).abs() <= 0.25 * exact, "{layers} for {exact}");
        }
    }

    #[test]
    fn exact_answers_found_in_two_ways_are_one(recipe in recipe()) {
        let found = solve(&build(&recipe, 1.0));
        if let [layers, chain] = &found[..] && layers.convergence.exact && chain.convergence.exact {
            for (layers, chain) in layers.entries.iter().zip(&chain.entries) {
                prop_assert!(close(layers.throughput, chain.throughput), "{} and {}", layers.throughput, chain.throughput);
                prop_assert!(close(layers.utilization, chain.utilization), "{} and {}", layers.utilization, chain.utilization);
            }
        }
    }

    #[test]
    fn copies_of_all_are_each_like_one(recipe in recipe(), copies in 2..4_u32) {
        let model = build(&recipe, 1.0);
        let mut replicated = model.clone();
        replicated.processors.iter_mut().for_each(|processor| processor.replicas = copies);
        replicated.tasks.iter_mut().for_each(|task| task.replicas = copies);
        for (one, of_all) in solve(&model).iter().zip(&solve(&replicated)).filter(|(one, of_all)| alike(one, of_all)) {
            let close = |left: f64, right: f64| within(tolerance(one).max(tolerance(of_all)), left, right);
            for (one, of_all) in one.tasks.iter().zip(&of_all.tasks) {
                prop_assert!(close(one.throughput, of_all.throughput), "{} and {}", one.throughput, of_all.throughput);
                prop_assert!(close(one.utilization, of_all.utilization), "{} and {}", one.utilization, of_all.utilization);
            }
            for (one, of_all) in one.processors.iter().zip(&of_all.processors) {
                prop_assert!(close(one.utilization, of_all.utilization), "{} and {}", one.utilization, of_all.utilization);
            }
        }
    }

    #[test]
    fn the_same_model_gives_the_same_results(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        let options = LayeredOptions { states: 2000, ..LayeredOptions::default() };
        prop_assert_eq!(layered(&model, &options), layered(&model, &options));
    }
}
