//! With servers without number nothing queues, so that the model of a trace responds as the trace did: each scenario and each entry,
//! on the mean. And the model does not depend on how its traces were divided.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use dyelog::lqn::saved;
use dyelog::lqn::submodel::{Interaction, SubModel};
use dyelog::lqn::{Activity, ActivityId, Body, Entry, EntryId, Fork, Join, Model};
use dyelog::model::{ActivityOrigin, Configuration, DemandSource, Origins, complete};
use dyelog::solve::{LayeredOptions, SimulateOptions, layered, simulate};
use dyelog::study::ScenarioResult;
use dyelog::tlc::{ReduceOptions, Reducer, Rules};
use dyelog::trace::{ReadOptions, TraceNames, read};
use proptest::prelude::*;

use crate::generator::Random;
use crate::support::shared;

/// By how much a mean may be off, relative to what was traced.
const CLOSE: f64 = 0.005;

pub fn reduced(name: &str, bytes: &[u8]) -> SubModel {
    let rules = Rules::shipped();
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, ReduceOptions::default());
    read(name, bytes, &ReadOptions::default(), &mut names, &mut reducer).expect("it reads");
    reducer.finish(&names).expect("it reduces").submodel
}

pub fn without_queues(sub: &SubModel) -> (Model, Origins) {
    let text = "[defaults]\nmultiplicity = \"infinite\"\n";
    let (configuration, _) = Configuration::parse(&"law.toml".into(), text).expect("it is sound");
    let (model, _, origins) = complete(sub, &configuration).expect("there is something to model");
    (model, origins)
}

/// What does not respond as traced: name, predicted, traced.
fn broken(sub: &SubModel) -> Vec<(String, f64, f64)> {
    let (model, origins) = without_queues(sub);
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let mut found = Vec::new();
    let mut check = |name: &str, predicted: f64, traced: f64| {
        if (predicted - traced).abs() > CLOSE * traced.max(1e-9) {
            found.push((name.to_owned(), predicted, traced));
        }
    };
    for scenario in ScenarioResult::all(&model, &results, &origins) {
        if let (Some(predicted), Some(traced)) = (scenario.response, scenario.origin.observed_response) {
            check(&scenario.origin.name, predicted, traced);
        }
    }
    let shared = callers(&model, &origins).into_iter().map(|callers| callers > 1).collect::<Vec<_>>();
    for (number, ((entry, origin), result)) in
        model.entries.iter().zip(&origins.entries).zip(&results.entries).enumerate()
    {
        let response = sub.entry(origin.total).response;
        if let (Some(traced), Interaction::Rendezvous) = (origin.observed_response, origin.interaction) {
            // An entry of the model answers all its callers alike; those of the trace were answered within a standard error of that.
            let variance = response.squares as f64 / 1e18 / response.count as f64 - traced * traced;
            let error = (variance.max(0.0) / response.count as f64).sqrt();
            let waits_for_shared = called(&model, &origins, EntryId::from(number)).iter().any(|to| shared[to.index()]);
            if !waits_for_shared || (result.service[0] - traced).abs() > error {
                check(&entry.name, result.service[0], traced);
            }
        }
    }
    found
}

/// The entries that an entry calls, in phases or activities.
fn called(model: &Model, origins: &Origins, entry: EntryId) -> Vec<EntryId> {
    let phases = match &model.entries[entry.index()].body {
        Body::Phases(phases) => phases.iter().collect(),
        Body::Activities(_) => Vec::new(),
    };
    let of_entry = |(_, origin): &(&Activity, &ActivityOrigin)| origin.entry == entry;
    let activities = model.activities.iter().zip(&origins.activities).filter(of_entry).map(|(own, _)| &own.work);
    phases.into_iter().chain(activities).flat_map(|work| work.calls.iter().map(|call| call.to)).collect()
}

/// The demand of an entry whose work is a sequence, seconds.
fn demand(entry: &Entry) -> f64 {
    match &entry.body {
        Body::Phases(phases) => phases.iter().map(|work| work.demand).sum(),
        Body::Activities(_) => 0.0,
    }
}

/// How many entries call each.
fn callers(model: &Model, origins: &Origins) -> Vec<usize> {
    let mut callers = vec![0; model.entries.len()];
    for entry in 0..model.entries.len() {
        let all: BTreeSet<EntryId> = called(model, origins, EntryId::from(entry)).into_iter().collect();
        for to in all {
            callers[to.index()] += 1;
        }
    }
    callers
}

/// A program of services: each entry makes its calls in steps, of which each takes one call or several side by side.
struct Program {
    /// By entry: its steps, each with the entries called and when they begin after the step's begin, in microseconds.
    steps: Vec<Vec<Vec<(usize, u64)>>>,
    /// Of how many visits one leaves a step out; 0 where none does.
    skips: usize,
    random: Random,
}

impl Program {
    /// Entries call those after them. Each is called by one other, so that what callers see of it does not differ.
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 3 + random.below(7);
        let mut steps: Vec<Vec<Vec<(usize, u64)>>> = vec![Vec::new(); count];
        for called in 1..count {
            let caller = random.below(called);
            let offset = random.below(1500) as u64;
            match steps[caller].last_mut() {
                Some(step) if random.below(2) == 0 => step.push((called, offset)),
                _ => steps[caller].push(vec![(called, 0)]),
            }
        }
        Self { steps, skips: 0, random }
    }

    /// The same with steps that some visits leave out, and with entries that several call.
    fn sharing(seed: u64) -> Self {
        let mut program = Self { skips: 4, ..Self::new(seed) };
        for called in 2..program.steps.len() {
            let caller = program.random.below(called);
            let own = &mut program.steps[caller];
            match own.last_mut() {
                Some(step) if program.random.below(2) == 0 => step.push((called, 100)),
                _ => own.push(vec![(called, 0)]),
            }
        }
        program
    }

    fn some(&mut self, mean: usize) -> u64 {
        1 + (self.random.below(mean) + self.random.below(mean)) as u64
    }

    /// The spans of an operation, as OTLP.
    fn operation(&mut self, number: u64) -> String {
        let mut spans = Vec::new();
        self.visit(0, 0, 1_000_000 * number, &mut spans);
        spans.iter().fold(String::new(), |mut text, (id, parent, service, kind, start, end)| {
            let name = format!("n{service}");
            let _ = writeln!(
                text,
                "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s{service}\"}}}}]}},\
                 \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{id:016x}\",\"parentSpanId\":\"{}\",\"name\":\"{name}\",\
                 \"kind\":{kind},\"startTimeUnixNano\":\"1700000{start:09}001\",\"endTimeUnixNano\":\"1700000{end:09}001\"}}]}}]}}]}}",
                number + 1,
                if *parent == 0 { String::new() } else { format!("{parent:016x}") },
            );
            text
        })
    }

    /// A visit that begins at a time, in microseconds; gives when it ends.
    fn visit(
        &mut self,
        entry: usize,
        parent: usize,
        start: u64,
        spans: &mut Vec<(usize, usize, usize, u8, u64, u64)>,
    ) -> u64 {
        let own = spans.len();
        spans.push((own + 1, parent, entry, 2, start, start));
        let mut now = start + self.some(300);
        for step in self.steps[entry].clone() {
            if self.skips > 0 && self.random.below(self.skips) == 0 {
                continue;
            }
            let mut last = now;
            for (called, offset) in step {
                let begin = now + if offset > 0 { offset / 2 + self.some(offset as usize) / 2 } else { 0 };
                let client = spans.len();
                spans.push((client + 1, own + 1, entry, 3, begin, begin));
                let arrival = begin + self.some(50);
                let end = self.visit(called, client + 1, arrival, spans) + self.some(50);
                spans[client].5 = end;
                last = last.max(end);
            }
            now = last + self.some(200);
        }
        spans[own].5 = now;
        now
    }
}

pub fn operations(seed: u64, count: u64) -> Vec<String> {
    let mut program = Program::new(seed);
    (0..count).map(|number| program.operation(number)).collect()
}

#[test]
fn random_programs_respond_as_they_did() {
    for seed in 0..60 {
        let text = operations(seed, 20 + seed % 40).concat();
        let broken = broken(&reduced("random.jsonl", text.as_bytes()));
        assert_eq!(broken, [], "seed {seed}");
    }
}

#[test]
fn random_programs_that_share_entries_respond_as_they_did() {
    for seed in 0..40 {
        let mut program = Program::sharing(seed);
        let text: String = (0..40 + seed).map(|number| program.operation(number)).collect();
        let broken = broken(&reduced("random.jsonl", text.as_bytes()));
        assert_eq!(broken, [], "seed {seed}");
    }
}

#[test]
fn a_trace_of_one_operation_responds_as_it_did() {
    for seed in 0..30 {
        let text = operations(seed, 1).concat();
        assert_eq!(broken(&reduced("random.jsonl", text.as_bytes())), [], "seed {seed}");
    }
}

#[test]
fn simulations_respond_so_too() {
    for seed in [3, 5, 11] {
        let sub = reduced("random.jsonl", operations(seed, 50).concat().as_bytes());
        let (model, origins) = without_queues(&sub);
        let results = simulate(&model, &SimulateOptions { precision: 0.02, ..SimulateOptions::default() })
            .expect("it can be simulated");
        for scenario in ScenarioResult::all(&model, &results, &origins) {
            let (predicted, traced) = (scenario.response.expect("it waits"), scenario.origin.observed_response);
            let traced = traced.expect("spans have times");
            assert!((predicted / traced - 1.0).abs() < 0.03, "seed {seed}: {predicted} for {traced}");
        }
    }
}

/// A span of one host: identifier, parent (0 for none), service, kind as OTLP numbers it, begin and end in microseconds.
type Row = (u64, u64, &'static str, u32, u64, u64);

/// Writes the spans of an operation of that number.
fn spans(text: &mut String, number: u64, rows: &[Row]) {
    for &(id, parent, service, kind, start, end) in rows {
        let _ = writeln!(
            text,
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}},\
             {{\"key\":\"host.name\",\"value\":{{\"stringValue\":\"one\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{id:016x}\",\"parentSpanId\":\"{}\",\"name\":\"go\",\
             \"kind\":{kind},\"startTimeUnixNano\":\"1700000{start:09}001\",\"endTimeUnixNano\":\"1700000{end:09}001\"}}]}}]}}]}}",
            number + 1,
            if parent == 0 { String::new() } else { format!("{parent:016x}") },
        );
    }
}

/// Spans of many operations in which a caller forks two calls, the second later: `(offset, first, second)` in microseconds.
fn staggered(of: impl Iterator<Item = (u64, u64, u64)>) -> String {
    let mut text = String::new();
    for (number, (offset, first, second)) in (0..).zip(of) {
        let start = 10_000 * number;
        let end = start + 100 + first.max(offset + second);
        let rows = [
            (1, 0, "front", 2, start, end),
            (2, 1, "left", 2, start + 50, start + 50 + first),
            (3, 1, "right", 2, start + 50 + offset, start + 50 + offset + second),
        ];
        spans(&mut text, number, &rows);
    }
    text
}

#[test]
fn forks_begin_at_their_offsets() {
    let text = staggered((0..100).map(|number| (459 + number % 7, 1465 + number % 11, 900 + number % 5)));
    let sub = reduced("staggered.jsonl", text.as_bytes());
    assert_eq!(broken(&sub), []);
    let (model, _) = without_queues(&sub);
    let task = &model.tasks[model.task_named("front").expect("it is there").index()];
    let forks = task.precedences.iter().filter(|own| matches!(own.fork, Some(Fork::And(_)))).count();
    assert_eq!((forks, task.activities.len()), (1, 4), "two segments and two branches");
}

/// Services whose operations call a shared one, which is a scenario by itself, too. It takes another time for each of them, and calls a store.
fn shared_by_scenarios() -> String {
    let mut text = String::new();
    for number in 0..120_u64 {
        let start = 200_000 * number;
        let (caller, whole, took) = match number % 3 {
            0 => ("slow", 124_000, 120_000),
            1 => ("fast", 13_000 + number % 7, 10_000),
            _ => ("", 0, 48_000 + number % 5),
        };
        let begin = if caller.is_empty() { start } else { start + 1_000 };
        let root = u64::from(!caller.is_empty());
        let rows = [
            (1, 0, caller, 2, start, start + whole),
            (2, root, "shared", 2, begin, begin + took),
            (3, 2, "store", 2, begin + 2_000, begin + 3_000),
        ];
        spans(&mut text, number, &rows[usize::from(caller.is_empty())..]);
    }
    text
}

#[test]
fn an_entry_takes_its_time_for_each_caller() {
    let sub = reduced("shared.jsonl", shared_by_scenarios().as_bytes());
    assert_eq!(broken(&sub), []);
    let (model, findings, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let told: Vec<&str> = findings.iter().filter(|own| own.code.0 == "M077").map(|own| own.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    let shared: Vec<(&str, f64, u64)> = model
        .entries
        .iter()
        .zip(&origins.entries)
        .filter(|(entry, _)| &*model.tasks[entry.task.index()].name == "shared")
        .map(|(entry, origin)| (&*entry.name, demand(entry), origin.invocations))
        .collect();
    // 1 ms of each is spent in the store, which is called once by all.
    let [(_, slow, 40), (_, fast, 40), (_, itself, 40)] = shared[..] else { panic!("{shared:?}") };
    let found = [slow, fast, itself].map(|seconds| (seconds * 1e4).round() / 10.0);
    assert_eq!(found, [119.0, 9.0, 47.0], "{shared:?}");
    let store = model.task_named("store").expect("it is there");
    let called = |to: &EntryId| model.entries[to.index()].task == store;
    let of = |entry: &Entry| matches!(&entry.body, Body::Phases(phases) if phases[0].calls.iter().any(|call| called(&call.to) && call.mean == 1.0));
    assert_eq!(model.entries.iter().filter(|entry| of(entry)).count(), 3);
}

#[test]
fn noise_is_no_structure() {
    // One operation in a hundred has the calls side by side, all others one after the other.
    let of = |number: u64| if number == 40 { (400, 1000, 800) } else { (1010 + number % 3, 1000, 800) };
    let text = staggered((0..100).map(of));
    let sub = reduced("noise.jsonl", text.as_bytes());
    assert_eq!(broken(&sub), []);
    assert!(without_queues(&sub).0.activities.is_empty(), "two calls in sequence");
}

#[test]
fn a_span_within_another_of_its_service_is_no_more_work() {
    let mut text = String::new();
    for number in 0..20_u64 {
        let start = 10_000 * number;
        for (id, parent, start, end) in
            [(1, 0, start, start + 2260), (2, 1, start + 10, start + 2250), (3, 1, start + 400, start + 1200)]
        {
            let _ = writeln!(
                text,
                "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s\"}}}}]}},\
                 \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{id:016x}\",\"parentSpanId\":\"{}\",\"name\":\"n{id}\",\
                 \"kind\":{},\"startTimeUnixNano\":\"1700000{start:09}001\",\"endTimeUnixNano\":\"1700000{end:09}001\"}}]}}]}}]}}",
                number + 1,
                if parent == 0 { String::new() } else { format!("{parent:016x}") },
                if id == 1 { 2 } else { 1 },
            );
        }
    }
    let (model, _) = without_queues(&reduced("local.jsonl", text.as_bytes()));
    let demand: f64 = model.entries.iter().map(demand).sum();
    assert!((demand - 0.00226).abs() < 1e-9, "{demand}");
}

#[test]
fn one_late_server_of_many_is_outvoted() {
    let mut text = String::new();
    for number in 0..200_u64 {
        let start = 20_000 * number;
        // The server of one operation begins 2 ms after its client has ended.
        let late = if number == 77 { 5_000 } else { 0 };
        let rows = [
            (1, 0, "front", 2, start, start + 4_000),
            (2, 1, "front", 3, start + 500, start + 3_500),
            (3, 2, "back", 2, start + 600 + late, start + 3_400 + late),
        ];
        spans(&mut text, number, &rows);
    }
    let sub = reduced("late.jsonl", text.as_bytes());
    let (model, findings, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let back = model.task_named("back").expect("it is there");
    assert_eq!(model.tasks[back.index()].entries.len(), 1, "one entry");
    let told = findings.iter().find(|finding| finding.code.0 == "M038").expect("it is told");
    assert!(told.message.starts_with("1 of 200 invocations"), "{}", told.message);
    assert_eq!(broken(&sub), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn however_operations_are_divided_the_sub_model_is_the_same(
        seed in 0..10_000_u64,
        parts in prop::collection::vec(0..4_usize, 12),
        order in Just((0..4).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let operations = operations(seed, 12);
        let whole = reduced("t.jsonl", operations.concat().as_bytes());
        let mut merged = SubModel::new();
        for part in order {
            let own: String = operations.iter().zip(&parts).filter(|(_, of)| **of == part).map(|(text, _)| text.as_str()).collect();
            if !own.is_empty() {
                let sub = reduced("t.jsonl", own.as_bytes());
                let (again, _) = saved::parse(&"s.json".into(), &saved::write(&sub, "name")).expect("it was just written");
                prop_assert_eq!(saved::write(&again, "name"), saved::write(&sub, "name"));
                merged.merge(&again);
            }
        }
        prop_assert_eq!(saved::write(&merged, "name"), saved::write(&whole, "name"));
        let configuration = Configuration::default();
        let model = |sub: &SubModel| complete(sub, &configuration).expect("there are operations").0;
        prop_assert_eq!(model(&merged), model(&whole));
    }
}

/// Whether all that is known of an entry's work is time: where processor time was measured, the rest of the time is waiting.
fn is_timed(sub: &SubModel) -> bool {
    let (_, origins) = without_queues(sub);
    let timed = |source: &DemandSource| matches!(source, DemandSource::Exclusive | DemandSource::None);
    origins.entries.iter().all(|entry| entry.sources.iter().all(timed))
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn shared_traces_respond_as_they_did() {
    let mut checked = 0;
    let mut all = Vec::new();
    for folder in ["traces/jaeger/traceweaver", "traces/derived/hotel-load25-200", "traces/otlp/motel-known-topology"] {
        let folder = shared(folder);
        let mut files: Vec<_> =
            std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
        files.sort();
        for file in files.iter().filter(|file| is_law_for(file)) {
            let sub = reduced(&file.display().to_string(), &std::fs::read(file).expect("a file"));
            if is_timed(&sub) {
                all.extend(broken(&sub).into_iter().map(|what| (file.display().to_string(), what)));
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked}");
    assert!(all.is_empty(), "{all:#?}");
}

/// Formats that are read, and traces of which no span is lost: a fragment is no operation of its caller's scenario.
fn is_law_for(file: &Path) -> bool {
    let name = file.file_name().expect("a name").to_string_lossy();
    ["otlp", "jaeger", "load", "stdout"].iter().any(|word| name.contains(word)) && !name.contains("drop")
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn media_has_one_structure_a_parent() {
    for load in ["25", "75"] {
        let file = shared(&format!("traces/jaeger/traceweaver/media-load{load}.json.gz"));
        let (model, origins) = without_queues(&reduced("media", &std::fs::read(file).expect("a file")));
        for (number, entry) in model.entries.iter().enumerate() {
            let precedences = &model.tasks[entry.task.index()].precedences;
            let own = |activity: &ActivityId| origins.activities[activity.index()].entry.index() == number;
            let forks = precedences
                .iter()
                .filter(|precedence| matches!(&precedence.fork, Some(Fork::And(begun)) if begun.iter().all(own)))
                .count();
            let most = if *entry.name == *"/wrk2-api/review/compose" { 2 } else { 1 };
            assert!(forks <= most, "{forks} forks of {} at load {load}", entry.name);
            // A fork that some invocations do not come to is one choice.
            let choices = precedences
                .iter()
                .filter(|precedence| matches!(&precedence.join, Join::Or(ended) if ended.iter().all(own)))
                .count();
            assert!(choices <= forks, "{choices} choices of {} at load {load}", entry.name);
        }
        assert!(model.activities.len() <= 60, "{} activities at load {load}", model.activities.len());
    }
}
