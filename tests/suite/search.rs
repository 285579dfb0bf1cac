//! Searching for a setting that meets goals: the answer against trying every value, and the command, end to end.

use dyelog::lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
};
use dyelog::model::parameter::{Among, Bounds, Change, Kind, Path, Subject, Value};
use dyelog::solve::LayeredOptions;
use dyelog::study::search::{Aim, Along, Evaluator, Goal, Method, Search, Verdict};
use proptest::prelude::*;
use serde_json::Value as Json;

use crate::cli::Folder;
use crate::whatif::{CASE, run};

fn search(arguments: &[&str]) -> (i32, String, String) {
    run(&[&["search"], &CASE[..], arguments].concat())
}

fn json(arguments: &[&str]) -> (i32, Json) {
    let (code, text, errors) = search(&[arguments, &["--format", "json"]].concat());
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}")))
}

/// Customers of a chain of tasks, each with a number of threads, a demand, and calls to the next.
#[derive(Clone, Debug)]
struct Recipe {
    population: u32,
    think: f64,
    tasks: Vec<(u32, f64, f64)>,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let task = (1..4_u32, 0.05..1.0_f64, 0.3..2.0_f64);
    (1..25_u32, 0.5..20.0_f64, prop::collection::vec(task, 1..4)).prop_map(|(population, think, tasks)| Recipe {
        population,
        think,
        tasks,
    })
}

fn build(recipe: &Recipe) -> Model {
    let mut model = Model::default();
    model.processors.push(Processor::new("client", Scheduling::Delay));
    model.processors.push(Processor::new("host", Scheduling::ProcessorSharing));
    let mut client = Task::new("users", ProcessorId(0), Scheduling::Reference);
    client.multiplicity = Multiplicity::Finite(recipe.population);
    client.think_time = recipe.think;
    client.entries = vec![EntryId(0)];
    model.tasks.push(client);
    model.entries.push(Entry::new("go", TaskId(0)));
    let call = |to: u32, mean: f64| Call { to: EntryId(to), kind: CallKind::Synchronous, mean };
    model.entries[0].body = Body::Phases(vec![Work { calls: vec![call(1, 1.0)], ..Work::default() }]);
    for (number, &(threads, demand, mean)) in (1..).zip(&recipe.tasks) {
        let mut task = Task::new(&format!("t{number}"), ProcessorId(1), Scheduling::Fcfs);
        task.multiplicity = Multiplicity::Finite(threads);
        task.entries = vec![EntryId(number)];
        model.tasks.push(task);
        let mut entry = Entry::new(&format!("e{number}"), TaskId(number));
        let calls = if number as usize == recipe.tasks.len() { Vec::new() } else { vec![call(number + 1, mean)] };
        entry.body = Body::Phases(vec![Work { demand, calls, ..Work::default() }]);
        model.entries.push(entry);
    }
    model
}

fn path(text: &str) -> Path {
    Path::parse(text).expect("it is a path")
}

fn goals(subject: &Subject, texts: &[String]) -> Vec<Goal> {
    let model = &subject.base().model;
    texts.iter().flat_map(|text| Goal::parse(text, model, None).expect("it is a goal")).collect()
}

/// In layers, without exact solutions, which would take another method for some points than for others.
fn method() -> Method {
    Method::Layered(LayeredOptions { states: 0, ..LayeredOptions::default() })
}

const LAST: u32 = 60;

/// Whether each value of a parameter meets the goals, from scratch.
fn scan(evaluator: &Evaluator<'_>, parameter: &str) -> Vec<Verdict> {
    let at = |value: u32| Change { path: path(parameter), value: Value::Number(f64::from(value)) };
    (1..=LAST).map(|value| evaluator.attempt(&[at(value)], &mut None).0).collect()
}

fn whole(last: u32, start: u32) -> Bounds {
    Bounds { kind: Kind::Count, present: Some(f64::from(start)), among: Among::From(1.0, Some(f64::from(last))) }
}

fn answer(found: &Search) -> Option<f64> {
    found.points[found.answer?].values[0].number()
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 50, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn answers_are_those_of_trying_every_value(recipe in recipe(), bound in 1.1..20.0_f64, which in 0..3_usize) {
        let subject = Subject::of_model(build(&recipe));
        let alone: f64 = recipe.tasks.iter().map(|task| task.1).sum();
        let (parameter, aim, texts) = [
            ("task.users.multiplicity", Aim::Largest, vec![format!("task.users.response < {}", bound * alone)]),
            ("task.users.multiplicity", Aim::Smallest, vec![
                format!("processor.host.utilization >= {}", (bound / 20.0).min(0.95)),
            ]),
            ("task.t1.multiplicity", Aim::Smallest, vec![
                format!("task.users.response < {}", bound * alone),
                "task.users.throughput > 0.01/s".to_owned(),
            ]),
        ][which].clone();
        let goals = goals(&subject, &texts);
        let method = method();
        let evaluator = Evaluator { subject: &subject, goals: &goals, method: &method };
        let all = scan(&evaluator, parameter);
        let met = |value: f64| all[value as usize - 1] == Verdict::Met;
        let mut values = (1..=LAST).map(f64::from).filter(|value| met(*value));
        let exact = if aim == Aim::Largest { values.next_back() } else { values.next() };
        for (checks, start) in [(0, 1), (8, recipe.population), (60, 30)] {
            let along = Along { aim, checks, digits: 3 };
            let found = evaluator.along(&path(parameter), &whole(LAST, start), along, &|| ());
            // What is met is one range only, as far as every value shows; else only trying all of them can tell.
            let changes = all.windows(2).filter(|pair| (pair[0] == Verdict::Met) != (pair[1] == Verdict::Met)).count();
            if changes <= 1 || checks == 60 {
                prop_assert_eq!(answer(&found), exact, "{} {:?}", parameter, all);
            }
            if let Some(answer) = answer(&found) {
                prop_assert!(met(answer));
            }
            if let Some(beyond) = found.beyond {
                let value = found.points[beyond].values[0].number().expect("a number");
                prop_assert!(!met(value));
            }
            prop_assert_eq!(found.is_complete(), checks == 60);
            prop_assert!(found.points.len() <= 24 + checks);
        }
    }

    #[test]
    fn answers_that_are_no_counts_are_as_near_as_their_digits(recipe in recipe(), bound in 1.2..8.0_f64) {
        let subject = Subject::of_model(build(&recipe));
        let alone: f64 = recipe.tasks.iter().map(|task| task.1).sum();
        let goals = goals(&subject, &[format!("response < {}", bound * alone)]);
        let method = method();
        let evaluator = Evaluator { subject: &subject, goals: &goals, method: &method };
        let parameter = path("entry.e1.demand");
        let bounds = Bounds { kind: Kind::Time, present: Some(recipe.tasks[0].1), among: Among::From(0.0, Some(50.0)) };
        let found = evaluator.along(&parameter, &bounds, Along { aim: Aim::Largest, checks: 4, digits: 2 }, &|| ());
        let at = |value: f64| evaluator.attempt(&[Change { path: parameter.clone(), value: Value::Number(value) }], &mut None).0;
        let (Some(answer), Some(beyond)) = (answer(&found), found.beyond) else { return Ok(()) };
        let next = found.points[beyond].values[0].number().expect("a number");
        prop_assert_eq!((at(answer), at(next)), (Verdict::Met, Verdict::Missed));
        prop_assert!(answer < next && (next <= answer * 1.101 || answer == 0.0), "{answer} {next}");
    }
}

#[test]
fn the_largest_population() {
    let goal = "scenario.set-up.response < 100 ms";
    let (code, found) = json(&["--largest", "scenario.set-up.population", "--goal", goal]);
    assert_eq!(code, 0);
    let answer = found["answer"]["values"][0].as_f64().expect("there is one");
    assert_eq!(found["beyond"]["values"][0].as_f64(), Some(answer + 1.0));
    assert_eq!(found["goals"][0]["trend"], "rises");
    assert_eq!((&found["changes"], &found["complete"]), (&Json::from(1), &Json::from(false)));
    // Every value, asked for in another way.
    let range = "scenario.set-up.population=1..80";
    let (code, csv, _) =
        run(&[&["whatif"], &CASE[..], &["--vary", range, "--show", "scenario.set-up", "--format", "csv"]].concat());
    assert_eq!(code, 0);
    let responses: Vec<f64> =
        csv.lines().skip(1).map(|line| line.split(',').nth(1).expect("a figure").parse().expect("a number")).collect();
    let exact = responses.iter().filter(|response| **response < 0.1).count();
    assert_eq!(answer, exact as f64);
    let (code, all) = json(&["--largest", range, "--goal", goal, "--check", "100"]);
    assert_eq!((code, all["answer"]["values"][0].as_f64()), (0, Some(answer)));
    assert_eq!(all["points"].as_array().map(Vec::len), Some(80));
    assert_eq!(all["complete"], true);
}

#[test]
fn the_text_has_the_evidence() {
    let (code, text, errors) = search(&[
        "--largest",
        "scenario.set-up.population=1..",
        "--goal",
        "response < 0.1",
        "--goal",
        "utilization <= 95%",
    ]);
    assert_eq!(code, 0, "{errors}");
    for words in
        ["is the largest value that meets all goals", "% to spare", "missed by", "were tried", "never falls", "BUSIEST"]
    {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let again = search(&[
        "--largest",
        "scenario.set-up.population=1..",
        "--goal",
        "response < 0.1",
        "--goal",
        "utilization <= 95%",
    ]);
    assert_eq!(again.1, text);
}

#[test]
fn what_cannot_be_met_or_always_is() {
    let (code, text, _) = search(&["--largest", "scenario.set-up.population=1..50", "--goal", "response < 1 ms"]);
    assert_eq!(code, 1, "{text}");
    // What was not tried is not spoken of.
    assert!(text.starts_with("none of ") && text.contains(" values tried from 1 to 50 meets the goal\n"), "{text}");
    let few = search(&["--largest", "scenario.set-up.population=1..5", "--goal", "response < 1 ms"]);
    assert!(few.1.starts_with("no value from 1 to 5 meets the goal\n"), "{}", few.1);
    let (code, text, _) = search(&["--largest", "scenario.set-up.population=1..50", "--goal", "response < 100 s"]);
    assert_eq!(code, 0);
    assert!(
        text.starts_with(
            "scenario.set-up.population = 50 is the largest value that meets the goal; the range ends there"
        ),
        "{text}"
    );
    // A rate beyond which there is no steady state.
    let (code, found) = json(&["--largest", "scenario.set-up.rate=1..1000", "--goal", "response < 100 s"]);
    let answer = found["answer"]["values"][0].as_f64().expect("there is one");
    assert!(code == 0 && (50.0..62.6).contains(&answer), "{answer}");
    let last = found["points"].as_array().and_then(|points| points.last()).expect("a point");
    assert_eq!((&last["meets"], &last["state"]), (&Json::from("no"), &Json::from("not converged")));
    assert_eq!((&last["values"][0], &last["goals"][0]["value"]), (&Json::from(1000.0), &Json::Null));
}

#[test]
fn what_is_met_beyond_the_present_value_is_found() {
    // There are 20 customers: 18.9 cycles a second.
    let (more, quick) = ("throughput > 50/s", "response < 200 ms");
    let least = |goal: &str| {
        let (code, found) = json(&["--smallest", "scenario.set-up.population", "--goal", goal]);
        assert_eq!(code, 0);
        found["answer"]["values"][0].as_f64().expect("there is one")
    };
    let begin = least(more);
    assert!(begin > 20.0);
    for (range, last) in [("scenario.set-up.population=1..300", 300.0), ("scenario.set-up.population=1..", 100_001.0)] {
        let (code, found) = json(&["--largest", range, "--goal", more]);
        assert_eq!((code, found["answer"]["values"][0].as_f64()), (0, Some(last)));
        assert_eq!(found["changes"], 1);
    }
    // Below the one and above the other there is a window.
    let end = least("response >= 200 ms");
    for (question, answer) in [("--largest", end - 1.0), ("--smallest", begin)] {
        for range in ["scenario.set-up.population=1..", "scenario.set-up.population=1..100000"] {
            let arguments = [question, range, "--goal", more, "--goal", quick];
            let (code, text, _) = search(&arguments);
            assert!(code == 0 && text.starts_with(&format!("scenario.set-up.population = {answer} is ")), "{text}");
            // Missed, met and missed again: that is one range.
            assert!(!text.contains("ranges"), "{text}");
        }
    }
    let beyond = search(&["--largest", "scenario.set-up.population=1..", "--goal", more, "--goal", "response < 50 ms"]);
    assert!(beyond.0 == 1 && beyond.1.starts_with("none of "), "{}", beyond.1);
}

/// An M/M/1 queue that so many requests ask for so many seconds, each second.
fn queue(folder: &Folder, rate: &str, demand: &str) -> String {
    folder.file(
        "queue.lqn",
        &format!(
            "G \"queue\" 1e-6 100 -1\nP 1\np cpu f\n-1\nT 1\nt server n serve -1 cpu\n-1\nE 1\na serve {rate}\ns serve {demand} -1\n-1\n"
        ),
    )
}

#[test]
fn a_figure_at_its_bound_is_not_below_it() {
    // The response of an M/M/1 queue is 0.01 / (1 - 0.8) at a rate of 80.
    let folder = Folder::new();
    let file = queue(&folder, "8", "0.01");
    let ask = |rates: &str, goals: &[&str], more: &[&str]| {
        let rates = format!("entry.serve.rate={rates}");
        let goals: Vec<&str> = goals.iter().flat_map(|goal| ["--goal", goal]).collect();
        run(&[&["search", &file, "--largest", &rates][..], &goals, more].concat())
    };
    for (goal, answer) in [("entry.serve.response < 50 ms", "79"), ("entry.serve.response <= 50 ms", "80")] {
        let (code, text, _) = ask("70,79,80,81,90", &[goal], &[]);
        assert!(code == 0 && text.starts_with(&format!("entry.serve.rate = {answer} 1/s is the largest")), "{text}");
        assert!(text.contains("which no solver can tell from the bound"), "{text}");
        // The chain of all states is exact.
        assert!(text.contains("never falls\n") && !text.contains("approximate"), "{text}");
    }
    // Of one figure it is said once how it goes, and of one value not at all.
    let goals = ["entry.serve.response < 50 ms", "entry.serve.response < 60 ms"];
    assert_eq!(ask("70,79,80", &goals, &[]).1.matches("along them").count(), 1);
    let (_, text, _) = ask("70", &goals[..1], &[]);
    assert!(text.contains("the only value was tried\n") && !text.contains("along them"), "{text}");
    // Beyond its capacity there is nothing to simulate.
    let (code, text, _) = ask("50,100,200", &goals[..1], &["--solver", "simulate", "--format", "json"]);
    let found: Json = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((code, found["answer"]["values"][0].as_f64()), (0, Some(50.0)), "{text}");
    for point in found["points"].as_array().expect("points").iter().skip(1) {
        assert_eq!((&point["meets"], &point["goals"][0]["value"]), (&Json::from("no"), &Json::Null));
        assert!(
            point["reason"].as_str().is_some_and(|reason| reason.contains("open arrivals ask for more")),
            "{point}"
        );
    }
}

#[test]
fn the_cheapest_choice() {
    let settings = ["--set", "scenario.set-up.population=80", "--goal", "response < 115 ms"];
    let (one, two) = ("processor.\"Processor 1\".multiplicity", "processor.\"Processor 2\".multiplicity");
    let vary = [format!("{one}=1..3"), format!("{two}=1..3")];
    let cost = [format!("{one}=5"), format!("{two}=1:3,2:6,3:9")];
    let arguments = ["--cheapest", &vary[0], "--cheapest", &vary[1], "--cost", &cost[0], "--cost", &cost[1]];
    let (code, found) = json(&[&settings, &arguments[..]].concat());
    assert_eq!(code, 0, "{found}");
    let points = found["points"].as_array().expect("points");
    let cheapest = points
        .iter()
        .filter(|point| point["meets"] == "yes")
        .filter_map(|point| point["cost"].as_f64())
        .fold(f64::INFINITY, f64::min);
    assert_eq!(found["answer"]["cost"].as_f64(), Some(cheapest));
    assert_eq!(points.len(), 9);
    let folder = Folder::new();
    let text = "[[choice]]\nname = \"as it is\"\ncost = 1\n[[choice]]\nname = \"twice\"\ncost = 3.5\n[choice.set]\n\
                'processor.\"Processor 1\".multiplicity' = 2\nprocessor.\"Processor 2\".multiplicity = 2\n\
                [[choice]]\nname = \"more\"\ncost = 9\nset = { \"defaults.multiplicity\" = 4 }\n";
    let file = folder.file("choices.toml", text);
    let (code, text, errors) = search(&[&settings[..], &["--choices", &file]].concat());
    assert_eq!(code, 0, "{errors}");
    assert!(text.starts_with("twice is the cheapest choice that meets the goal, at 3.5\n"), "{text}");
    let file = folder.file("choices.toml", "[[choice]]\nname = 3\nset = { \"task.x.threads\" = 2 }\nprice = 1\n");
    let (code, out, errors) = search(&[&settings[..], &["--choices", &file]].concat());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(errors.matches("[M048]").count() >= 2 && errors.contains("[M041]"), "{errors}");
}

#[test]
fn percentiles_are_searched_by_simulation() {
    // The response of an M/M/1 queue is exponential: 95 % answer within 3.00 / (1 - rate).
    let folder = Folder::new();
    let file = queue(&folder, "0.5", "1");
    let arguments = |threads| {
        [
            "search",
            &file,
            "--largest",
            "entry.serve.rate=0.1..0.9 step 0.1",
            "--goal",
            "entry.serve.p95 < 7 s",
            "--precision",
            "0.05",
            "--format",
            "json",
            "--threads",
            threads,
        ]
    };
    let (code, text, errors) = run(&arguments("1"));
    assert_eq!(code, 0, "{text}{errors}");
    let found: Json = serde_json::from_str(&text).expect("it is JSON");
    // At 0.5 it is 5.99, at 0.6 7.49.
    assert_eq!(found["answer"]["values"][0].as_f64(), Some(0.5), "{text}");
    assert_eq!(found["solver"], "simulate");
    let goal = &found["answer"]["goals"][0];
    let (value, width) = (goal["value"].as_f64().expect("a time"), goal["half_width"].as_f64().expect("a width"));
    assert!((value - 5.99).abs() < 2.0 * width && width < 1.0, "{value} {width}");
    assert_eq!(text, run(&arguments("3")).1);
}

/// Of a model of traces: a busy part grows with the load in proportion, and so does its interval.
#[test]
fn a_value_is_sure_where_the_interval_meets_the_goal() {
    let goal = ["--goal", "processor.gateway.utilization <= 60%", "--format", "json"];
    let found = |more: &[&str]| {
        let (code, text, errors) = run(&[&["search", "traces/shop.otlp.jsonl"], &goal[..], more].concat());
        assert_eq!(code, 0, "{text}{errors}");
        let found: Json = serde_json::from_str(&text).expect("it is JSON");
        (found, errors)
    };
    let (largest, errors) = found(&["--largest", "load"]);
    let answer = largest["answer"]["values"][0].as_f64().expect("a number");
    let (sure, interval) = (&largest["sure"], &largest["sure"]["intervals"][0]);
    let (high, value) = (interval[1].as_f64().expect("it ends"), sure["value"].as_f64().expect("a number"));
    assert_eq!(sure["meets"], false, "{sure}");
    // Two digits, rounded down.
    assert!(high > 0.61 && (0.96..=1.0).contains(&(value / (answer * 0.6 / high))), "{answer} {sure}");
    assert!(errors.contains("warning[M081]"), "{errors}");
    let (again, errors) = found(&["--largest", &format!("load=0.1..{value}")]);
    assert_eq!((&again["sure"]["meets"], again["sure"]["value"].as_f64()), (&Json::Bool(true), Some(value)));
    assert!(!errors.contains("warning[M081]"), "{errors}");
    let cost = ["--cheapest", "processor.gateway.multiplicity=1..3", "--cost", "processor.gateway.multiplicity=1"];
    let (cheapest, _) = found(&[&cost[..], &["--set", "load=x3"]].concat());
    assert_eq!(cheapest["sure"]["value"], Json::Null);
    assert!(cheapest["sure"]["intervals"][0][1].as_f64() > Some(0.6), "{cheapest}");
}

#[test]
fn what_is_no_question_has_a_code_and_a_hint() {
    let population = "scenario.set-up.population";
    let goal = "response < 1";
    for (arguments, code, words) in [
        (vec!["--largest", population, "--goal", "response = 3"], "M046", "has no `<`"),
        (vec!["--largest", population, "--goal", "response < 3 cows"], "M046", "is not a unit"),
        (vec!["--largest", population, "--goal", "task.NumTrans < 3"], "M045", "did you mean"),
        (vec!["--largest", population, "--goal", "task.NumTrans1.p95 < 3"], "M045", "percentiles are known of"),
        (vec!["--largest", "scenario.setup.population", "--goal", goal], "M041", "did you mean"),
        (vec!["--largest", "task.NumTrans1.processor", "--goal", goal], "M047", "--cheapest"),
        (vec!["--largest", population, "--goal", "p200 < 1"], "M045", "between 0 and 100"),
        (vec!["--largest", population, "--goal", "respones < 1"], "M045", "did you mean `response`"),
        (
            vec!["--largest", population, "--set", "scenario.set-up.population=3", "--goal", goal],
            "M005",
            "both set and searched for",
        ),
        (
            vec![
                "--cheapest",
                "defaults.multiplicity=1",
                "--cheapest",
                "defaults.multiplicity=2",
                "--cost",
                "defaults.multiplicity=1",
                "--cost",
                "defaults.multiplicity=2",
                "--goal",
                goal,
            ],
            "M047",
            "has two costs",
        ),
        (vec!["--largest", "task.NumTrans1.priority", "--goal", goal], "M047", "write a range"),
        (vec!["--largest", "scenario.set-up.population=9..3", "--goal", goal], "M047", "ends below"),
        (
            vec!["--cheapest", "defaults.multiplicity=1..3", "--cost", "defaults.multiplicity=a", "--goal", goal],
            "M047",
            "no number",
        ),
        (
            vec!["--cheapest", "defaults.multiplicity=1,2", "--cost", "defaults.threads=2", "--goal", goal],
            "M047",
            "no values",
        ),
        (
            vec!["--cheapest", "defaults.multiplicity=1,2", "--cost", "defaults.multiplicity=1:2", "--goal", goal],
            "M047",
            "has no cost",
        ),
    ] {
        let (exit, out, errors) = search(&arguments);
        assert_eq!((exit, out.as_str()), (2, ""), "{arguments:?}");
        assert!(errors.contains(&format!("[{code}]")) && errors.contains(words), "{arguments:?}: {errors}");
    }
    let (exit, _, errors) = search(&["--goal", goal]);
    assert!(exit == 2 && errors.contains("--largest"), "{errors}");
}
