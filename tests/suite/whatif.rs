//! Questions that begin with "what if": warm starts against cold, parameters by path, and the command, end to end.

use std::fs;
use std::process::Command;

use dyelog::lqn::{self, Body, Model, Multiplicity};
use dyelog::solve::bounds::Resource;
use dyelog::solve::{LayeredOptions, SolveOptions, layered, layered_from};
use dyelog::study::bottleneck::bottlenecks;
use dyelog::study::sweep::{Grid, SweepOptions, sweep};
use serde_json::Value;

use crate::cli::Folder;
use crate::generator::Random;
use crate::servers::{spans, station};
use crate::waits::{Span, exponential, operation};

pub const CASE: [&str; 3] = ["traces/case-study.angio", "--config", "examples/case-study.toml"];

pub fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

fn whatif(arguments: &[&str]) -> (i32, String, String) {
    run(&[&["whatif"], &CASE[..], arguments].concat())
}

/// The columns of CSV after its header.
fn columns(csv: &str) -> Vec<Vec<String>> {
    csv.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The model of the case study.
fn case_study() -> Model {
    let (code, text, errors) = run(&[&["model"], &CASE[..], &["--format", "json"]].concat());
    assert_eq!(code, 0, "{errors}");
    lqn::parse_any(&std::sync::Arc::from("case"), &text).expect("it reads its own").0
}

fn varied(model: &Model, customers: f64, demand: f64) -> Model {
    let mut model = model.clone();
    let source = model.tasks.iter_mut().find(|task| task.scheduling == lqn::Scheduling::Reference);
    source.expect("customers").multiplicity = Multiplicity::Finite(customers as u32);
    let translate = model.task_named("NumTrans1").expect("it is in the case study");
    let entry = model.tasks[translate.index()].entries[0];
    if let Body::Phases(phases) = &mut model.entries[entry.index()].body {
        phases[0].demand = demand;
    }
    model
}

#[test]
fn questions_about_far_more_load_are_told() {
    let told = |arguments: &[&str]| {
        let (code, _, words) = run(&[&["whatif", "traces/shop.otlp.jsonl"], arguments].concat());
        assert_eq!(code, 0, "{words}");
        let line = words.lines().find(|line| line.contains("M081")).map(str::to_owned);
        line.map(|line| line.split("about ").nth(1).unwrap_or_default().to_owned())
    };
    assert_eq!(told(&["--vary", "load=1,2,3"]), None);
    let checkout = "scenario.\"gateway POST /checkout/{id}\".rate=x3.5,x1";
    let words = "3.5 times the traced load of scenario `gateway POST /checkout/{id}`";
    assert_eq!(told(&["--vary", checkout]).as_deref(), Some(words));
    assert_eq!(told(&["--vary", "processor.gateway.speed=1,10"]), None);
    let both = told(&["--set", &checkout.replace(",x1", ""), "--vary", "load=0.5,0.8"]);
    assert_eq!(both, None);
}

/// One parameter scales all loads: those of several scenarios of traces, customers, and sources of a model file.
#[test]
fn all_loads_are_scaled_at_once() {
    let shop = "traces/shop.otlp.jsonl";
    let ask = |arguments: &[&str]| {
        let (code, text, errors) = run(&[arguments, &["--format", "csv", "--quiet"]].concat());
        assert_eq!(code, 0, "{errors}");
        columns(&text)
    };
    let names = ["gateway GET /product/{id}", "gateway POST /checkout/{id}"];
    let rates = names.map(|name| format!("scenario.\"{name}\".rate=x2"));
    let scaled = ask(&["whatif", shop, "--vary", "load=x2"]);
    let each = ask(&["whatif", shop, "--set", &rates[0], "--vary", &rates[1]]);
    assert_eq!(scaled[0][1..], each[0][1..]);
    let scaled = ask(&[&["whatif"], &CASE[..], &["--vary", "load=1,1.5,+200%"]].concat());
    let each = ask(&[&["whatif"], &CASE[..], &["--vary", "scenario.set-up.population=x1,x1.5,x3"]].concat());
    assert_eq!(scaled.len(), 3);
    for (one, other) in scaled.iter().zip(&each) {
        assert_eq!(one[1..], other[1..]);
    }
    // One customer and a third is one with less time to think.
    let one = &["--set", "scenario.set-up.population=1", "--set", "scenario.set-up.think_time=1 s"];
    let scaled = ask(&[&["whatif"], &CASE[..], one, &["--vary", "load=1.3"]].concat());
    let think = format!("scenario.set-up.think_time={} s", 1.0 / 1.3);
    let each = ask(&[&["whatif"], &CASE[..], &one[..2], &["--vary", &think]].concat());
    assert_eq!(scaled[0][1..], each[0][1..]);
    let folder = Folder::new();
    let file = folder.path("shop.lqn").to_string_lossy().into_owned();
    let (code, _, errors) = run(&["model", shop, "--format", "lqn", "-o", &file]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(ask(&["whatif", &file, "--vary", "load=1,2"]).len(), 2);
    let (code, _, errors) = run(&["whatif", shop, "--set", "load=0"]);
    assert_eq!(code, 2);
    assert!(errors.contains("0 times the load is none"), "{errors}");
}

#[test]
fn a_start_elsewhere_leads_to_the_same_results() {
    let model = case_study();
    for (tolerance, bound) in [(1e-6, 2e-5), (1e-8, 1e-6)] {
        let options = LayeredOptions { tolerance, iterations: 2000, states: 0, ..LayeredOptions::default() };
        let mut warm_start = None;
        for customers in (1..=10).map(|step| f64::from(step * 8)) {
            let model = varied(&model, customers, 0.0025);
            let (warm, end) = layered_from(&model, &options, warm_start, &mut ()).expect("it can be solved");
            warm_start = Some(end.moved(1.0));
            let cold = layered(&model, &options).expect("it can be solved");
            assert!(warm.convergence.converged && cold.convergence.converged, "{customers}");
            for (warm, cold) in warm.entries.iter().zip(&cold.entries) {
                for (warm, cold) in [(warm.throughput, cold.throughput), (warm.service[0], cold.service[0])] {
                    let difference = (warm - cold).abs() / cold.abs().max(1e-12);
                    assert!(difference < bound, "{customers} customers at {tolerance}: {warm} and {cold}");
                }
            }
        }
    }
}

#[test]
fn a_sweep_is_the_same_with_any_number_of_threads_and_point_by_point() {
    let model = case_study();
    let customers: Vec<f64> = (1..=60).map(f64::from).collect();
    let demands: Vec<f64> = (0..6).map(|step| 0.0025 + 0.0005 * f64::from(step)).collect();
    let grid = Grid { axes: vec![demands.clone(), customers.clone()] };
    let build = |at: &[usize]| Ok(varied(&model, customers[at[1]], demands[at[0]]));
    let read = |_: &Model, results: &lqn::results::Results| {
        assert!(results.convergence.converged);
        results.entries.iter().map(|entry| entry.throughput).collect::<Vec<f64>>()
    };
    let with = |threads: usize, warm: bool| -> Vec<Vec<f64>> {
        let options = SweepOptions { threads, warm, ..SweepOptions::default() };
        let found = sweep(&grid, &options, build, read, &|| ());
        found.into_iter().map(|point| point.expect("it can be solved")).collect()
    };
    let warm = with(1, true);
    assert_eq!(warm.len(), 360);
    // The same to the last bit.
    assert_eq!(warm, with(4, true));
    for (number, point) in warm.iter().enumerate().step_by(29) {
        let at = grid.point(number);
        let cold = layered(&varied(&model, customers[at[1]], demands[at[0]]), &LayeredOptions::default());
        for (warm, cold) in point.iter().zip(&cold.expect("it can be solved").entries) {
            assert!((warm - cold.throughput).abs() <= 2e-5 * cold.throughput, "{at:?}: {warm} {}", cold.throughput);
        }
    }
}

#[test]
fn the_shop_is_solved_past_its_saturation_point() {
    let shop = ["whatif", "traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml", "--format", "csv"];
    let population = "scenario.\"gateway GET /product/{id}\".population=29,35,60,100";
    let asked = ["--vary", population, "--show", "scenario.\"gateway GET /product/{id}\".throughput"];
    let rates = |more: &[&str]| -> Vec<f64> {
        let (code, csv, errors) = run(&[&shop[..], &asked, more].concat());
        assert_eq!(code, 0, "all of it converges: {errors}");
        columns(&csv).iter().map(|row| row[1].parse().expect("a rate")).collect()
    };
    let (warm, cold) = (rates(&[]), rates(&["--cold"]));
    assert_eq!(warm.len(), 4);
    assert!(warm.is_sorted() && warm[3] < 1000.0, "{warm:?}");
    for (warm, cold) in warm.iter().zip(&cold) {
        assert!((warm - cold).abs() <= 2e-5 * cold, "{warm} and {cold}");
    }
}

/// Each server more makes responses no longer, up to those without queues: there is no jump where the number of servers is large.
#[test]
fn more_servers_lead_to_infinitely_many_without_a_jump() {
    let shop = ["whatif", "traces/shop.otlp.jsonl", "--format", "csv", "--set"];
    let load = ["scenario.\"gateway GET /product/{id}\".rate=4000", "--vary"];
    let asked = ["defaults.multiplicity=12,14,15,16,17,20,32,infinite", "--show"];
    let shown = ["scenario.\"gateway GET /product/{id}\".response"];
    let (code, csv, errors) = run(&[&shop[..], &load, &asked, &shown].concat());
    assert_eq!(code, 0, "{errors}");
    let responses: Vec<f64> = columns(&csv).iter().map(|row| row[1].parse().expect("a time")).collect();
    let last = responses[responses.len() - 1];
    assert!(responses.windows(2).all(|pair| pair[1] <= pair[0] * 1.001), "{responses:?}");
    assert!(responses[3] < last * 1.02, "{responses:?}");
}

/// So few wait that more servers would fit as well: what a higher load makes of that hangs on how many there are. Where the question says how many, nothing is open.
#[test]
fn figures_that_hang_on_open_servers_are_told() {
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &spans(&station(7, 4, 0.3, 200), 1000, |_| true));
    let rate = "scenario.\"host serve\".rate=x3";
    let (code, _, words) = run(&["whatif", &file, "--set", rate]);
    assert!(code != 2 && words.contains("figures hang on numbers of servers that traces leave open"), "{words}");
    assert!(words.contains("servers of `host`: "), "{words}");
    let (_, _, words) = run(&["whatif", &file, "--set", rate, "--set", "processor.host.multiplicity=4"]);
    assert!(!words.contains("figures hang"), "{words}");
}

#[test]
fn points_that_are_no_models_say_why() {
    let grid = Grid { axes: vec![vec![0.0, 1.0, 2.0]] };
    let model = case_study();
    let build = |at: &[usize]| Ok(varied(&model, 3.0, if at[0] == 1 { f64::NAN } else { 0.002 }));
    let found = sweep(&grid, &SweepOptions::default(), build, |_, results| results.convergence.converged, &|| ());
    assert_eq!(found[0], Ok(true));
    assert!(found[1].as_ref().is_err_and(|reasons| reasons.to_string().contains("S001")));
    assert_eq!(found[2], Ok(true));
}

#[test]
fn two_curves_of_the_case_study() {
    let (code, csv, errors) = whatif(&[
        "--vary",
        "scenario.set-up.population=1..60 step 6",
        "--vary",
        "demand.translate=2.5 ms,5 ms",
        "--show",
        "scenario.set-up.response",
        "--format",
        "csv",
    ]);
    assert_eq!(code, 0, "{errors}");
    assert!(csv.starts_with("scenario.set-up.population,demand.activity.translate,scenario.set-up.response,state\n"));
    let rows = columns(&csv);
    assert_eq!(rows.len(), 20);
    let response = |row: usize| rows[row][2].parse::<f64>().expect("a number");
    for step in 0..10 {
        assert_eq!((rows[2 * step][1].as_str(), rows[2 * step + 1][1].as_str()), ("0.0025", "0.005"));
        assert!(response(2 * step) < response(2 * step + 1), "the slower curve lies above");
        assert!(step == 0 || response(2 * step) > response(2 * step - 2), "response times grow with the load");
    }
}

#[test]
fn forms_of_a_sweep() {
    let sweep = ["--vary", "scenario.set-up.population=1,10", "--show", "scenario.set-up", "--show", "task.NumTrans1"];
    let with = |more: &[&str]| {
        let (code, out, errors) = whatif(&[&sweep, more].concat());
        assert_eq!(code, 0, "{errors}");
        out
    };
    let json: Value = serde_json::from_str(&with(&["--format", "json"])).expect("it is JSON");
    assert_eq!(json["dyelog-sweep"], 1);
    assert_eq!(json["parameters"][0]["path"], "scenario.set-up.population");
    assert_eq!(json["figures"][1]["name"], "task.NumTrans1.utilization");
    assert_eq!(json["points"][1]["values"][0], 10.0);
    assert_eq!(json["points"][1]["state"], "converged");
    let text = with(&[]);
    assert_eq!(text.lines().count(), 3, "{text}");
    let svg = with(&["--format", "svg"]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("class=\"curve c0\"").count(), 4, "two plots with a curve and a legend each: {svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let ascii = with(&["--format", "plot", "--ascii"]);
    assert!(ascii.is_ascii() && ascii.contains("scenario.set-up.population"), "{ascii}");
    let braille = with(&["--format", "plot"]);
    assert!(braille.chars().any(|character| ('\u{2801}'..='\u{28ff}').contains(&character)), "{braille}");
}

#[test]
fn parameters_of_all_kinds() {
    let (code, list, _) = whatif(&["--list"]);
    assert_eq!(code, 0);
    for line in
        ["scenario.set-up.population = 20", "processor.\"Processor 1\".speed = 1", "demand.activity.serve = 0.001 s"]
    {
        assert!(list.lines().any(|own| own == line), "{line} is not in\n{list}");
    }
    let response = |arguments: &[&str]| -> f64 {
        let (code, csv, errors) = whatif(&[arguments, &["--format", "csv"]].concat());
        assert_eq!(code, 0, "{arguments:?}: {errors}");
        columns(&csv)[0][0].parse().expect("a response time")
    };
    let base = response(&[]);
    for slower in [
        "scenario.set-up.population=x2",
        "scenario.set-up.think_time=500 ms",
        "demand.serve=+20%",
        "demand.task.NumTrans1.translate=9 ms",
        "processor.\"Processor 3\".speed=0.5",
        "task.NumTrans1.processor=Processor 1",
    ] {
        assert!(response(&["--set", slower]) > base * 1.001, "{slower}");
    }
    for faster in [
        "processor.\"Processor 1\".multiplicity=2",
        "task.ServCntrl1.threads=inf",
        "demand.serve=x0.5",
        "parameter.translation=1 ms",
    ] {
        assert!(response(&["--set", faster]) < base, "{faster}");
    }
    // An open load in the place of customers.
    let (code, csv, errors) =
        whatif(&["--set", "scenario.set-up.rate=10/s", "--show", "scenario.set-up.throughput", "--format", "csv"]);
    assert_eq!((code, columns(&csv)[0][0].as_str()), (0, "10"), "{errors}");
}

#[test]
fn what_there_is_not_has_a_code_and_a_hint() {
    for (arguments, code, words) in [
        (["--set", "scenario.setup.population=3"], "M041", "did you mean `scenario.set-up.population`?"),
        (["--vary", "scenario.set-up.population=0..3"], "M043", "no whole number from 1"),
        (["--set", "scenario.set-up.population=1.5"], "M042", "no whole number from 1"),
        (["--set", "scenario.set-up.population"], "M040", "gives its parameter no value"),
        (["--show", "task.NumTrans"], "M045", "did you mean"),
        (["--format", "svg"], "M043", "--vary"),
    ] {
        let (exit, out, errors) = whatif(&arguments);
        assert_eq!((exit, out.as_str()), (2, ""), "{arguments:?}");
        assert!(errors.contains(&format!("[{code}]")) && errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[test]
fn changes_without_effect_and_changes_of_one_parameter_twice_are_told_of() {
    let (code, _, errors) = whatif(&["--set", "defaults.threads=1"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("[M044]") && errors.contains("`defaults.threads` makes no difference"), "{errors}");
    let (_, _, errors) = whatif(&["--set", "task.ServCntrl1.threads=2"]);
    assert!(!errors.contains("[M044]"), "{errors}");
    let threads = "task.ServCntrl1.threads";
    let (once, twice) = (format!("{threads}=2"), format!("{threads}=3"));
    for arguments in
        [["--set", &once, "--set", &twice], ["--set", &once, "--vary", &twice], ["--vary", &once, "--vary", &twice]]
    {
        let (code, _, errors) = whatif(&arguments);
        assert_eq!(code, 2, "{arguments:?}: {errors}");
        assert!(errors.contains("[M005]") && errors.contains("is given 2 times"), "{arguments:?}: {errors}");
    }
    let (_, _, errors) =
        whatif(&["--set", "processor.\"Processor 1\".multiplicity=2", "--set", "task.NumTrans1.processor=Procesor 1"]);
    assert!(errors.contains("[M029]") && errors.contains("did you mean `Processor 1`?"), "{errors}");
}

#[test]
fn points_without_a_steady_state_are_marked() {
    let (code, csv, errors) = whatif(&["--vary", "scenario.set-up.rate=1,10,1000", "--format", "csv"]);
    assert_eq!(code, 3, "{csv}{errors}");
    let states: Vec<String> = columns(&csv).iter().map(|row| row[3].clone()).collect();
    assert_eq!(states, ["converged", "converged", "not converged"]);
    assert!(errors.contains("1 of 3 points did not converge") && errors.contains("saturated"), "{errors}");
    let (_, text, _) = whatif(&["--vary", "scenario.set-up.rate=1,10,1000"]);
    assert_eq!(text.matches("NOT CONVERGED").count(), 1, "{text}");
    // What grows for as long as one looks is no figure.
    let saturated = &columns(&csv)[2];
    assert_eq!((saturated[1].as_str(), saturated[2].as_str()), ("", ""), "{csv}");
    assert_eq!(
        text.lines().find(|line| line.contains("NOT CONVERGED")).map(|line| line.matches('–').count()),
        Some(2),
        "{text}"
    );
    let (_, json, _) = whatif(&["--vary", "scenario.set-up.rate=1,1000", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["points"][1]["figures"][0].is_null() && json["points"][0]["figures"][0].is_number(), "{json}");
}

/// Throughputs of open arrivals say nothing of where an iteration came to.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn open_arrivals_from_a_neighbours_solution_are_those_from_scratch() {
    let trace = crate::support::shared("traces/jaeger/traceweaver/media-load75.json.gz");
    let ask = |more: &[&str]| {
        let name = trace.to_str().expect("a plain path");
        let vary = ["whatif", name, "--vary", "defaults.multiplicity=1,2", "--format", "csv"];
        let (code, out, err) = run(&[&vary[..], more].concat());
        assert_eq!(code, 0, "{err}");
        columns(&out).into_iter().map(|row| row[1].parse().expect("a response")).collect::<Vec<f64>>()
    };
    for (warm, cold) in ask(&[]).into_iter().zip(ask(&["--cold"])) {
        assert!((warm / cold - 1.0).abs() < 1e-3, "{warm} and {cold}");
    }
}

/// A profile takes the place of its scenarios, under its own name.
#[test]
fn profiles_have_parameters_of_their_own() {
    let folder = Folder::new();
    let text = "[profile.shoppers]\npopulation = 10\nthink_time = \"1 s\"\n[profile.shoppers.scenario]\n\
                \"gateway GET /product/{id}\" = 0.8\n\"gateway POST /checkout/{id}\" = 0.2\n";
    let config = folder.file("profile.toml", text);
    let ask = |more: &[&str]| {
        let (code, out, err) = run(&[&["whatif", "traces/shop.otlp.jsonl", "--config", &config], more].concat());
        assert_eq!(code, 0, "{err}");
        (out, err)
    };
    let (list, _) = ask(&["--list"]);
    assert!(!list.contains("scenario.shoppers"), "{list}");
    for line in
        ["profile.shoppers.population = 10\n", "profile.shoppers.scenario.\"gateway POST /checkout/{id}\" = 0.2\n"]
    {
        assert!(list.contains(line), "{line} in {list}");
    }
    let figures = |vary: &str| {
        let (out, err) = ask(&["--vary", vary, "--format", "csv"]);
        assert!(!err.contains("M044"), "{err}");
        assert!(out.contains(",profile.shoppers.response,profile.shoppers.throughput,"), "{out}");
        let number = |cell: &String| cell.parse::<f64>().expect("a figure");
        let rows = columns(&out).into_iter().map(|row| (number(&row[1]), number(&row[2])));
        rows.collect::<Vec<(f64, f64)>>()
    };
    let customers = figures("profile.shoppers.population=10,20");
    assert!((customers[1].1 / customers[0].1 - 2.0).abs() < 0.01, "twice the throughput: {customers:?}");
    let parts = figures("profile.shoppers.scenario.\"gateway POST /checkout/{id}\"=0.2,0.8");
    assert!(parts[1].0 > 1.2 * parts[0].0, "those who buy wait for longer: {parts:?}");
}

#[test]
fn a_model_file_in_its_own_words_and_side_by_side() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let text = "G \"two tiers\" 1e-6 100 -1\nP 2\np cpu f\np clients i\n-1\nT 2\nt users r cycle -1 clients m 4 z 1\n\
                t server n serve -1 cpu m 1\n-1\nE 2\ns cycle 0 -1\ny cycle serve 2 -1\ns serve 0.1 -1\n-1\n";
    let slow = folder.path().join("slow.lqn");
    let fast = folder.path().join("fast.lqn");
    fs::write(&slow, text).expect("it can be written");
    fs::write(&fast, text.replace("s serve 0.1", "s serve 0.05")).expect("it can be written");
    let slow = slow.to_str().expect("a plain path");
    let fast = fast.to_str().expect("a plain path");
    for (change, bigger) in [
        ("task.users.multiplicity=8", true),
        ("task.users.think_time=0.1", true),
        ("entry.serve.demand=x2", true),
        ("entry.serve.phase2=0.05", true),
        ("call.cycle.serve.mean=3", true),
        ("entry.serve.rate=2", true),
        ("processor.cpu.speed=2", false),
    ] {
        let ask = |more: &[&str]| -> f64 {
            let asked = ["whatif", slow, "--show", "task.users.response", "--format", "csv"];
            let (code, csv, errors) = run(&[&asked, more].concat());
            assert_eq!(code, 0, "{change}: {errors}");
            columns(&csv)[0][0].parse().expect("a number")
        };
        assert_eq!(ask(&["--set", change]) > ask(&[]), bigger, "{change}");
    }
    let vary = ["--vary", "task.users.multiplicity=1..3", "--format", "csv"];
    let (code, csv, errors) = run(&[&["whatif", slow, "--against", fast], &vary[..]].concat());
    assert_eq!(code, 0, "{errors}");
    let rows = columns(&csv);
    assert_eq!(rows.len(), 6);
    assert_eq!((rows[0][0].as_str(), rows[3][0].as_str()), (slow, fast));
    assert!((0..3).all(|row| rows[row][2].parse::<f64>().ok() > rows[row + 3][2].parse::<f64>().ok()), "{csv}");
}

/// A configuration is for the traces among what is compared; a model beside them is complete.
#[test]
fn a_model_file_stands_beside_traces_with_a_configuration() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    // As JSON: text does not tell calls that one of two executions makes from geometric ones.
    let file = folder.path().join("study.json").display().to_string();
    assert_eq!(run(&[&["model"], &CASE[..], &["-o", &file]].concat()).0, 0);
    let vary = ["--vary", "entry.R7.demand=2.5 ms,5 ms", "--show", "task.Cu_set-up.throughput", "--format", "csv"];
    let (code, csv, errors) = whatif(&[&["--against", &file], &vary[..]].concat());
    assert_eq!(code, 0, "{errors}");
    let rows = columns(&csv);
    assert_eq!(rows.len(), 4);
    assert_eq!((&rows[0][1..], &rows[1][1..]), (&rows[2][1..], &rows[3][1..]), "{csv}");
    // The other way round, too; but there has to be a trace.
    let config = ["--config", CASE[2]];
    let (code, turned, _) = run(&[&["whatif", &file, "--against", CASE[0]], &config[..], &vary[..]].concat());
    assert_eq!((code, columns(&turned)[2][1..].to_vec()), (0, rows[0][1..].to_vec()));
    let (code, _, errors) = run(&[&["whatif", &file, "--against", &file], &config[..], &vary[..]].concat());
    assert!(code == 2 && errors.contains("a model file is complete"), "{errors}");
    let (code, _, errors) = whatif(&["--against", &file, "--set", "task.NumTrans1.threads=2"]);
    assert!(code == 2 && errors.contains(&format!("in {file}")), "{errors}");
}

/// What arithmetic comes to is what relative values are relative to.
#[test]
fn values_may_be_relative_to_arithmetic() {
    let show = ["--show", "scenario.set-up.response", "--format", "csv"];
    let ask = |vary: &str| {
        let (code, csv, errors) = whatif(&[&["--vary", vary], &show[..]].concat());
        assert_eq!(code, 0, "{errors}");
        columns(&csv)
    };
    let plain = ask("demand.translate=2.5 ms,5 ms");
    for vary in ["demand.translate=x1,x2", "demand.translate=*1,*2", "demand.translate=+0%,+100%"] {
        assert_eq!(ask(vary), plain, "{vary}");
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("study.toml").display().to_string();
    let text = fs::read_to_string(format!("{}/{}", env!("CARGO_MANIFEST_DIR"), CASE[2])).expect("it is bundled");
    let text = text
        .replace("[parameters]", "[parameters]\nhalf = \"translation / 2\"")
        .replace("\"translation\"", "\"half * 2\"");
    fs::write(&file, &text).expect("the folder is writable");
    let own = ["whatif", CASE[0], "--config", &file];
    let asked = run(&[&own[..], &["--vary", "parameters.half=x1,x2"], &show[..]].concat());
    let figures = |rows: Vec<Vec<String>>| rows.into_iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    assert_eq!(figures(columns(&asked.1)), figures(plain), "{text}{}", asked.2);
}

/// The solver's throughput of the case study's customers.
fn throughput(model: &Model, customers: f64) -> f64 {
    let results = layered(&varied(model, customers, 0.0025), &LayeredOptions::default()).expect("it can be solved");
    let source = model.tasks.iter().position(|task| task.scheduling == lqn::Scheduling::Reference);
    results.tasks[source.expect("customers")].throughput
}

#[test]
fn bounds_hold_for_what_the_solver_finds() {
    let model = varied(&case_study(), 20.0, 0.0025);
    let found = bottlenecks(&model, &SolveOptions::default()).expect("it can be solved");
    let [source] = &found.sources[..] else { panic!("one load") };
    for customers in [1.0, 5.0, 20.0, 40.0, 60.0, 80.0, 120.0, 200.0] {
        let (most, _) = source.of(customers);
        let rate = throughput(&model, customers);
        assert!(rate <= most * (1.0 + 1e-6), "{customers}: {rate} above {most}");
    }
    // One customer meets the bound; far beyond the saturation nearly all that is possible is done.
    assert!((throughput(&model, 1.0) / source.of(1.0).0 - 1.0).abs() < 0.01);
    let first = &found.steps[0];
    let saturation = source.saturation_point().expect("it is bounded");
    assert!((first.throughputs[0] / throughput(&model, (3.0 * saturation).ceil()) - 1.0).abs() < 0.01);
    assert!(first.throughputs[0] <= source.limits[0].throughput() * (1.0 + 1e-6));
    // What is relieved is no longer in the way.
    for pair in found.steps.windows(2) {
        assert!(pair[1].throughputs[0] >= pair[0].throughputs[0] * 0.999, "{:?}", found.steps);
        assert!(pair[1].resource != pair[0].resource);
    }
}

#[test]
fn software_can_be_the_bottleneck() {
    // One thread is held for 0.3 s a request, of which 0.05 s are its own; the disk is a delay.
    let text = "G \"software\" 1e-6 100 -1\nP 3\np cpu s 0.1\np clients i\np disk i\n-1\nT 3\n\
                t users r cycle -1 clients m 4 z 1\nt server n serve -1 cpu m 1\nt store i keep -1 disk i\n-1\n\
                E 3\ns cycle 0 -1\ny cycle serve 1 -1\ns serve 0.05 -1\ny serve keep 1 -1\ns keep 0.25 -1\n-1\n";
    let (model, _) = lqn::parse_any(&std::sync::Arc::from("software"), text).expect("it is a model");
    let found = bottlenecks(&model, &SolveOptions::default()).expect("it can be solved");
    let source = &found.sources[0];
    assert!((source.response - 0.3).abs() < 1e-9 && (source.limits[0].throughput() - 1.0 / 0.3).abs() < 1e-9);
    let names: Vec<(&str, f64)> = found
        .steps
        .iter()
        .map(|step| match step.resource {
            Resource::Processor(id) => (&*model.processors[id.index()].name, step.throughputs[0]),
            Resource::Task(id) => (&*model.tasks[id.index()].name, step.throughputs[0]),
        })
        .collect();
    assert_eq!(names.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["server", "cpu"], "{names:?}");
    assert!((names[0].1 - 1.0 / 0.3).abs() < 0.05 && (names[1].1 - 20.0).abs() < 0.5, "{names:?}");
    assert!(found.steps[0].processor_utilization < 0.2);
}

#[test]
fn the_command_tells_bottlenecks() {
    let (code, text, errors) = run(&[&["bottleneck"], &CASE[..]].concat());
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("at most") && text.contains("first"), "{text}");
    // It opens with the answer that `solve` gives.
    let (_, solved, _) = run(&[&["solve"], &CASE[..]].concat());
    let answer = text.lines().next().expect("it says something");
    assert!(answer.starts_with("saturates first: ") && solved.lines().any(|line| line == answer), "{text} {solved}");
    let (_, text, _) = run(&[&["bottleneck"], &CASE[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(json["dyelog-bottlenecks"], 1);
    assert!(json["sources"][0]["limits"][0]["throughput"].as_f64() > Some(1.0));
    assert!(json["saturates_first"]["factor"].as_f64() > Some(1.0), "{json}");
}

#[test]
fn open_arrivals_have_bounds_that_the_solver_agrees_with() {
    // At 2/s and 1/s the CPU is busy for 0.2 + 0.3 of the time, the two threads of the store for 2 · 0.25 / 2.
    let text = "G \"open\" 1e-6 100 -1\nP 2\np cpu s\np disk i\n-1\nT 2\nt server n read write -1 cpu i\nt store n keep -1 disk m 2\n-1\n\
                E 3\na read 2\na write 1\ns read 0.1 -1\ns write 0.3 -1\ny read keep 1 -1\ns keep 0.25 -1\n-1\n";
    let (model, _) = lqn::parse_any(&std::sync::Arc::from("open"), text).expect("it is a model");
    let found = bottlenecks(&model, &SolveOptions::default()).expect("it can be solved");
    assert!(found.sources.is_empty() && found.steps.is_empty());
    let alone: Vec<f64> = found.arrivals.iter().map(|source| source.limits[0].throughput()).collect();
    assert!((alone[0] - 8.0).abs() < 1e-9 && (alone[1] - 1.0 / 0.3).abs() < 1e-9, "{alone:?}");
    let [cpu, store] = &found.rooms[..] else { panic!("two resources: {:?}", found.rooms) };
    assert!(matches!((cpu.resource, store.resource), (Resource::Processor(_), Resource::Task(_))));
    assert!((cpu.factor() - 2.0).abs() < 1e-9 && (store.factor() - 4.0).abs() < 1e-9);
    let under = |factor: f64| {
        let mut model = model.clone();
        for entry in &mut model.entries {
            entry.open_arrival_rate = entry.open_arrival_rate.map(|rate| rate * factor);
        }
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        (results.convergence.converged, results.processors[0].utilization)
    };
    let (fits, busy) = under(0.98 * cpu.factor());
    assert!(fits && (busy - 0.98).abs() < 1e-6, "{busy}");
    assert!(!under(1.02 * cpu.factor()).0, "more than the bound is too much");
}

#[test]
fn the_command_tells_the_bounds_of_open_arrivals() {
    let (code, text, errors) = run(&["bottleneck", "traces/shop.otlp.jsonl"]);
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("OPEN ARRIVALS SATURATE") && text.contains("alone at most"), "{text}");
    let (_, text, _) = run(&["bottleneck", "traces/shop.otlp.jsonl", "--format", "json"]);
    let json: Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(json["arrivals"].as_array().is_some_and(|arrivals| arrivals.len() == 2), "{text}");
    assert!(json["rooms"][0]["factor"].as_f64() > Some(1.0), "{text}");
}

/// A model that does not respond as traced does not do so at other loads either: `whatif` and `search` say so.
#[test]
fn where_the_model_is_unlike_the_traces_questions_tell_it() {
    let folder = Folder::new();
    let stays = crate::servers::station(3, 1, 0.3, 3000);
    let trace = folder.file("t.jsonl", &crate::servers::spans(&stays, 1, |_| true));
    let config = folder.file("t.toml", "[demand.entry]\nserve = \"1 ms\"\n");
    let goal = ["--largest", "scenario.\"host serve\".rate=1..100", "--goal", "utilization < 0.9"];
    for (config, told) in [(Some(config), true), (None, false)] {
        let given: Vec<&str> = config.iter().flat_map(|file| ["--config", file]).collect();
        let asked = [&["whatif", &trace, "--set", "scenario.\"host serve\".rate=*1.1"][..], &given].concat();
        let (_, _, words) = run(&asked);
        let is_told = |words: &str| words.contains("warning[M030]");
        assert_eq!(is_told(&words), told, "{words}");
        let (_, _, words) = run(&[&["search", &trace][..], &goal, &given].concat());
        assert_eq!(is_told(&words), told, "{words}");
    }
}

/// Each operation calls one of ten peers, which models take for a tenth of a call of each: the mean is right, and percentiles are not. Who asks for these is told so.
#[test]
fn where_percentiles_are_unlike_the_traces_questions_about_them_tell_it() {
    let mut random = Random::new(11);
    let (mut text, mut now) = (String::new(), 0.0);
    for number in 0..2000_usize {
        now += exponential(&mut random, 0.2);
        let end = now + 0.02 + exponential(&mut random, 0.005);
        let peer = format!("peer-{}", char::from(b'a' + (number % 10) as u8));
        let spans = [
            Span { service: "web", kind: 2, id: 1, parent: 0, name: "ask", at: (now, end) },
            Span { service: "web", kind: 3, id: 2, parent: 1, name: "ask", at: (now + 1e-4, end - 1e-4) },
            Span { service: &peer, kind: 2, id: 3, parent: 2, name: "ask", at: (now + 3e-4, end - 3e-4) },
        ];
        operation(&mut text, number, &spans);
    }
    let folder = Folder::new();
    let trace = folder.file("t.jsonl", &text);
    let rate = "scenario.\"web ask\".rate";
    let (up, along) = (format!("{rate}=5,6"), format!("{rate}=5..6"));
    let is_told = |arguments: &[&str]| {
        let (_, _, words) = run(&[&[arguments[0], &trace], &arguments[1..]].concat());
        words.contains("warning[M058]")
    };
    assert!(is_told(&["solve"]));
    assert!(is_told(&["search", "--largest", &along, "--goal", "p95 < 500 ms"]));
    assert!(is_told(&["whatif", "--vary", &up, "--show", "p95"]));
    // Who asks for means is told of means.
    assert!(!is_told(&["search", "--largest", &along, "--goal", "response < 500 ms"]));
    assert!(!is_told(&["whatif", "--vary", &up]));
}

/// Services that call each other, now one first and now the other, make a circle: one finding says so for all scenarios, and solvers name it, however long its names are.
#[test]
fn calls_in_a_circle_are_told_once() {
    let long = "n".repeat(400);
    let text: String = (0..60).fold(String::new(), |text, number: u64| {
        let name = format!("get {}", number % 12);
        let mut services = [("one", "list"), ("two", &*long)];
        if number.is_multiple_of(2) {
            services.reverse();
        }
        let [first, second] = services;
        let rows: [crate::lost::Row; 5] = [
            ("front", 1, 0, 2, 0, 9000, &name),
            ("front", 2, 1, 3, 1000, 8000, "call"),
            (first.0, 3, 2, 2, 1500, 7500, first.1),
            (first.0, 4, 3, 3, 2000, 7000, "call"),
            (second.0, 5, 4, 2, 2500, 6500, second.1),
        ];
        text + &crate::lost::spans_at(number + 1, 100_000 * number, &rows, "")
    });
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &text);
    let (code, _, told) = run(&["solve", &file]);
    assert!(code != 0 && told.contains("warning[M016]") && !told.contains("cannot sustain"), "{told}");
    let refused = told.lines().find(|line| line.contains("[S003]")).unwrap_or_else(|| panic!("{told}"));
    assert!(refused.contains("list → ") && refused.len() < 600 && !refused.contains(&long), "{refused}");
    assert!(told.contains("help: take one of these calls out"), "{told}");
    // No other times would help.
    let (code, _, told) = run(&["calibrate", &file]);
    assert!(code != 0 && told.contains("error[S003]") && !told.contains("M070"), "{told}");
    assert_eq!(run(&["solve", &file, "--merge", "none"]).0, 0);
}

/// Two scenarios share an entry that takes 2 ms for one and 30 ms for the other: one of them has a clone of it. Where a setting gives one demand for both, a warning says
/// so.
#[test]
fn an_entry_that_takes_another_time_for_others_is_named() {
    let text: String = (0..300).fold(String::new(), |text, number: u64| {
        let (name, work) = if number.is_multiple_of(2) { ("brief", 2000) } else { ("long", 30_000) };
        let rows: [crate::lost::Row; 3] = [
            ("front", 1, 0, 2, 0, work + 3000, name),
            ("front", 2, 1, 3, 1000, work + 2000, "look up"),
            ("back", 3, 2, 2, 1500, work + 1500, "look up"),
        ];
        text + &crate::lost::spans_at(number + 1, 100_000 * number + number * 7919 % 20_011, &rows, "")
    });
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &text);
    let (_, answer, told) = run(&["solve", &file]);
    assert!(told.contains("note[M077]: `look up` takes 2 ms for `brief` and 30 ms for others"), "{told}");
    assert!(!told.contains("one demand for all callers") && answer.contains("look up for brief"), "{told}{answer}");
    let config = folder.file("t.toml", "[demand.entry]\n\"look up\" = \"16 ms\"\n");
    let told = run(&["solve", &file, "--config", &config]).2;
    let of = |scenario: &str| told.split("warning[").find(|own| own.starts_with("M030") && own.contains(scenario));
    let why = "and 16 ms on the mean of all calls: an entry has one demand for all callers";
    let brief = of("`front brief`").unwrap_or_else(|| panic!("{told}"));
    assert!(brief.contains("`look up` takes 2 ms when `brief` calls it") && brief.contains(why), "{told}");
    let alike = text.replace("\"name\":\"long\"", "\"name\":\"brief\"");
    let told = run(&["solve", &folder.file("u.jsonl", &alike)]).2;
    assert!(!told.contains("one demand for all callers") && !told.contains("M077"), "{told}");
}

#[test]
fn quotas_of_processors_are_parameters() {
    let folder = Folder::new();
    let text = |scheduling: &str| {
        format!("P 0 p cpu {scheduling} m 4 -1 T 0 t app i work -1 cpu -1 E 0 a work 100 s work 0.01 -1 -1")
    };
    let shared = folder.file("shared.lqn", &text("s"));
    let (code, csv, errors) =
        run(&["whatif", &shared, "--vary", "processor.cpu.quota=5,4,2,1.2", "--show", "response", "--format", "csv"]);
    assert_eq!(code, 0, "{errors}");
    let responses: Vec<f64> = columns(&csv).iter().map(|row| row[1].parse().expect("it is a number")).collect();
    assert_eq!(responses[0].to_bits(), responses[1].to_bits(), "as many servers as there are, or more, are no quota");
    assert!(responses[1..].windows(2).all(|two| two[0] < two[1]), "{responses:?}");
    // More servers do not change the quota.
    let more = ["--set", "processor.cpu.quota=1.2", "--vary", "processor.cpu.multiplicity=4,8", "--format", "csv"];
    let (_, csv, errors) = run(&[&["whatif", &shared, "--show", "response"], &more[..]].concat());
    let with_more: Vec<f64> = columns(&csv).iter().map(|row| row[1].parse().expect("it is a number")).collect();
    let is_alike = |own: &f64| (own / responses[3] - 1.0).abs() < 0.05;
    assert!(with_more.len() == 2 && with_more.iter().all(is_alike), "{with_more:?} {responses:?} {errors}");
    let (code, _, errors) = run(&["whatif", &shared, "--set", "processor.cpu.quota=0"]);
    assert!(code != 0 && errors.contains("a quota is greater than 0"), "{code} {errors}");
    let first = folder.file("first.lqn", &text("f"));
    let (code, _, errors) = run(&["whatif", &first, "--set", "processor.cpu.quota=2"]);
    assert!(code != 0 && errors.contains("order of service is sharing"), "{code} {errors}");
}

#[test]
fn a_configuration_gives_quotas() {
    let folder = Folder::new();
    let config = folder.file("c.toml", "[processor.payment]\nmultiplicity = 4\nscheduling = \"ps\"\nquota = 1.5\n");
    let (code, text, errors) = run(&["model", "traces/shop.otlp.jsonl", "--config", &config]);
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("g payment 0.375 c payment"), "{text}");
    let (code, list, _) = run(&["whatif", "traces/shop.otlp.jsonl", "--config", &config, "--list"]);
    assert!(code == 0 && list.contains("processor.payment.quota = 1.5"), "{list}");
}
