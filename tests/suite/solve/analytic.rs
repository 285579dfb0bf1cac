//! Small models with closed-form answers: prints a row a figure and fails on the bars.

use std::fmt::Write as _;
use std::path::Path;

use dyelog::lqn::model::{Model, Scheduling};
use dyelog::lqn::results::{Caller, Results};
use dyelog::lqn::text;
use dyelog::solve::{LayeredOptions, layered};

use crate::support::shared;

/// What a table of exact answers asks for.
pub fn figure(model: &Model, results: &Results, kind: &str, name: &str, metric: &str) -> Option<f64> {
    match (kind, metric) {
        ("proc", "util") => Some(results.processors[model.processor_named(name)?.index()].utilization),
        ("task", "tput") => Some(results.tasks[model.task_named(name)?.index()].throughput),
        ("entry", "resp") => results.entries[model.entry_named(name)?.index()].open_response,
        ("entry", "svc1") => Some(results.entries[model.entry_named(name)?.index()].service[0]),
        ("entry", "svc2") => Some(results.entries[model.entry_named(name)?.index()].service[1]),
        ("entry", "tput") => Some(results.entries[model.entry_named(name)?.index()].throughput),
        // The table's waiting of an asynchronous call includes service.
        ("call", "wait") => {
            let (from, to) = name.split_once("->")?;
            let (entry, phase) = from.split_once('#')?;
            let caller = Caller::Phase(model.entry_named(entry)?, phase.parse().ok()?);
            let target = model.entry_named(to)?;
            let call = results.calls.iter().find(|call| call.from == caller && call.to == target)?;
            Some(call.waiting + results.entries[target.index()].service[0])
        }
        _ => None,
    }
}

fn single_class_product_form(file: &str) -> bool {
    ["mm1-0", "mm2", "mm4", "mm10", "repair", "central", "layers-inf", "serial", "forward"]
        .iter()
        .any(|prefix| file.trim_start_matches("analytic/").starts_with(prefix))
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn analytic_models_are_within_their_bars() {
    let root = shared("lqn/analytic");
    let table = std::fs::read_to_string(root.join("EXACT.tsv")).expect("the table is text");
    let mut shown = String::new();
    let mut failures = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, kind, name, metric, exact, ..] = fields[..] else { continue };
        let exact: f64 = exact.parse().expect("an exact answer is a number");
        let model = read(&root.parent().expect("the folder has a parent").join(file));
        for states in [0, LayeredOptions::default().states] {
            let options = LayeredOptions { states, ..LayeredOptions::default() };
            let results = layered(&model, &options).expect("the model can be solved");
            let found = figure(&model, &results, kind, name, metric).expect("the figure is there");
            let error = 100.0 * (found - exact) / exact;
            let bar = match states {
                _ if single_class_product_form(file) => 0.1,
                0 => 5.0,
                _ => 0.5,
            };
            writeln!(
                shown,
                "{file:36} {kind:5} {name:12} {metric:5} {exact:12.6} {found:12.6} {error:+8.3}%  {}",
                results.convergence.method
            )
            .expect("writing to a string");
            if error.abs() > bar || !results.convergence.converged {
                failures.push(format!(
                    "{file} {kind} {name} {metric}: {found} for {exact} ({error:+.3}%), {:?}",
                    results.convergence
                ));
            }
        }
    }
    eprintln!("{shown}");
    assert!(failures.is_empty(), "beyond the bars:\n{}", failures.join("\n"));
}

/// Reads a model of the text language.
pub fn read(path: &Path) -> Model {
    let source = std::fs::read_to_string(path).expect("the model is text");
    let (model, _) = text::parse(&path.display().to_string(), &source).expect("the model is well-formed");
    assert!(model.tasks.iter().all(|task| task.scheduling != Scheduling::Semaphore || !task.entries.is_empty()));
    model
}
