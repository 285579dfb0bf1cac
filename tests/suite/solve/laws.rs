//! Laws that hold for any model, on random small ones.

use dyelog::lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
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
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let task = (0..3_u32, 0..4_u32, 0.05..1.0_f64, prop_oneof![2 => Just(0.0), 1 => 0.05..0.5_f64]);
    let call = (0..5_usize, 0..5_usize, 0.2..2.0_f64, prop::bool::weighted(0.15));
    (
        1..12_u32,
        0.5..20.0_f64,
        prop::collection::vec(task, 1..5),
        prop::collection::vec(call, 1..8),
        prop::collection::vec(0..3_usize, 3),
    )
        .prop_map(|(population, think, tasks, calls, scheduling)| Recipe {
            population,
            think,
            tasks,
            calls,
            scheduling,
        })
}

fn build(recipe: &Recipe, stretched: f64) -> Model {
    let mut model = Model::default();
    model.processors.push(Processor::new("client", Scheduling::Delay));
    for (index, kind) in recipe.scheduling.iter().enumerate() {
        let scheduling = [Scheduling::Fcfs, Scheduling::ProcessorSharing, Scheduling::Delay][*kind];
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
        model.tasks.push(task);
        model.entries.push(Entry::new(&format!("e{number}"), TaskId(number)));
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
    model
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

/// Whether two results were found in the same way.
fn alike(left: &Results, right: &Results) -> bool {
    let method = |results: &Results| {
        let method = &results.convergence.method;
        (method.contains("Markov"), method.starts_with("exact"))
    };
    method(left) == method(right)
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-4 * left.abs().max(right.abs()).max(1e-9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn flows_balance_and_utilisations_follow(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        for results in solve(&model) {
            let mut flows = vec![0.0; model.entries.len()];
            flows[0] = results.entries[0].throughput;
            for (index, entry) in model.entries.iter().enumerate() {
                let Body::Phases(phases) = &entry.body else { continue };
                for work in phases {
                    for call in &work.calls {
                        flows[call.to.index()] += results.entries[index].throughput * call.mean;
                    }
                }
            }
            let mut busy = vec![0.0; model.processors.len()];
            for (index, entry) in model.entries.iter().enumerate() {
                let result = &results.entries[index];
                prop_assert!(close(result.throughput, flows[index]), "flow of {}: {} for {}", entry.name, result.throughput, flows[index]);
                let Body::Phases(phases) = &entry.body else { continue };
                let demand: f64 = phases.iter().map(|work| work.demand).sum();
                busy[model.tasks[entry.task.index()].processor.index()] += result.throughput * demand;
                // An entry that is called takes at least its demand.
                prop_assert!(result.throughput == 0.0 || result.service.iter().sum::<f64>() >= demand * (1.0 - 1e-6));
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
                let waited = recipe.calls.iter().all(|call| !call.3) && phases.len() == 1;
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
    fn the_same_model_gives_the_same_results(recipe in recipe()) {
        let model = build(&recipe, 1.0);
        let options = LayeredOptions { states: 2000, ..LayeredOptions::default() };
        prop_assert_eq!(layered(&model, &options), layered(&model, &options));
    }
}
