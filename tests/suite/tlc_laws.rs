//! Laws of `tlc` on generated operations: every interaction is recovered and none invented, and no order of input or work
//! changes a byte of the model.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use dyelog::lqn::Language;
use dyelog::lqn::submodel::{SubModel, WorkTotal};
use dyelog::model::{self, Configuration};
use dyelog::tlc::counters::TaskCounters;
use dyelog::tlc::driver::{self, Committed, Observer, Outcome, Plans};
use dyelog::tlc::facts::{GraphFacts, NoRelations, RuleRelations};
use dyelog::tlc::matcher::{Matcher, Relations, Starting, Symbols};
use dyelog::tlc::visits::Visits;
use dyelog::tlc::{EntryMerge, ReduceOptions, Reducer, Reduction, Rules};
use dyelog::trace::{Operation, ReadOptions, Toeg, TraceNames, angio, read};
use proptest::prelude::*;

use crate::generator::{Generated, Generator, Interaction, Mix, Random, Shape};

/// Notes the committed matches in the form of the truth.
struct Note(Vec<Interaction>);

impl Observer for Note {
    fn committed(&mut self, toeg: &Toeg, committed: &Committed<'_>) {
        let glue = toeg.event(committed.glue);
        let (plan, found) = (committed.plan, committed.found);
        let template = match &*plan.name {
            "basic_rpc" => "basic_rpc",
            "rpc_phase2" => "rpc_phase2",
            "forwarding" => "forwarding",
            "continued_forwarding" => "continued_forwarding",
            "async_rpc" => "async_rpc",
            "nested_async_rpc" => "nested_async_rpc",
            "asynchronous" => "asynchronous",
            "parallel_branch" => "parallel_branch",
            "open_branch" => "open_branch",
            "wait" => "wait",
            "multicast" => "multicast",
            "activity" => "activity",
            "begin" => "begin",
            "end" => "end",
            _ => "another template",
        };
        let accepts: &[&str] = match template {
            "basic_rpc" | "rpc_phase2" | "forwarding" | "continued_forwarding" | "asynchronous" | "multicast" => {
                &["e2"]
            }
            "async_rpc" | "nested_async_rpc" => &["e3"],
            "parallel_branch" | "open_branch" => &["b"],
            _ => &[],
        };
        let accepts_in_round = usize::from(template == "multicast");
        let slots = (0..plan.slot_names.len()).filter(|&slot| accepts.contains(&&*plan.slot_names[slot]));
        let nodes =
            slots.map(|slot| found.slots[slot]).chain(found.rounds.chunks(2).map(|round| round[accepts_in_round]));
        let responders = nodes.map(|node| toeg.event(node).task).collect();
        self.0.push(Interaction { thread: glue.thread, node: glue.index, template, initiator: glue.task, responders });
    }
}

fn outcome(rules: &Rules, names: &TraceNames, toeg: &Toeg) -> (Outcome, Vec<Interaction>) {
    let symbols = Symbols::of(rules.code(), names);
    let budget = u64::MAX.into();
    let facts = GraphFacts::new(toeg, names);
    let asked = rules.relations().map(|relations| RuleRelations::new(relations, &facts));
    let matcher = Matcher {
        program: rules.code(),
        toeg,
        names,
        symbols: &symbols,
        relations: asked.as_ref().map_or(&NoRelations as &dyn Relations, |asked| asked),
        budget,
        visits: Visits::default(),
        counters: TaskCounters::default(),
        starting: Starting::default(),
    };
    let mut engine = Plans::new(matcher);
    // The rules loaded by default ask nothing but what plans have turned into navigation.
    assert!(rules.relations().is_none() || !rules.is_default());
    let mut note = Note(Vec::new());
    let outcome = driver::run(toeg, rules.plans(), &mut engine, &mut note);
    (outcome, note.0)
}

/// The first differences of two sorted lists.
fn differences<T: Ord + std::fmt::Debug>(found: &[T], truth: &[T]) -> String {
    let missing = truth.iter().filter(|item| found.binary_search(item).is_err());
    let invented = found.iter().filter(|item| truth.binary_search(item).is_err());
    let mut text = String::new();
    for (title, items) in [("missing", missing.take(5).collect::<Vec<_>>()), ("invented", invented.take(5).collect())] {
        for item in items {
            let _ = writeln!(text, "{title} {item:?}");
        }
    }
    text
}

/// Every interaction is recovered with who took part, none is invented, and every node is in its visit and phase.
fn check_recovery(rules: &Rules, names: &TraceNames, generated: Generated) {
    let Generated { operation, mut truth, visits, phases, mut requests } = generated;
    let labels: Vec<(u32, u32)> = operation.events.iter().map(|event| (event.thread, event.index)).collect();
    let toeg = Toeg::build(operation).expect("what is generated is well-formed");
    let (outcome, mut found) = outcome(rules, names, &toeg);
    truth.sort();
    found.sort();
    let recovered = truth.iter().filter(|item| found.binary_search(item).is_ok()).count();
    assert!(
        found == truth,
        "{recovered} of {} interactions recovered, {} found\n{}",
        truth.len(),
        found.len(),
        differences(&found, &truth)
    );
    assert_eq!(outcome.irregular, []);
    assert!((0..toeg.len() as u32).all(|node| outcome.is_processed(node)));
    // Entry numbers follow the order of recognition, visits that of acceptance.
    let mut entry_of = vec![None; outcome.entries.len()];
    for ((&(thread, index), &visit), &phase) in labels.iter().zip(&visits).zip(&phases) {
        let node = toeg.thread(thread).expect("it has nodes").first + index - 1;
        let owner = outcome.owner[node as usize] as usize;
        assert_eq!(*entry_of[visit as usize].get_or_insert(owner), owner, "the visit of node {thread},{index}");
        assert_eq!(outcome.phase(node), phase, "the phase of node {thread},{index}");
    }
    requests.sort_unstable();
    let entry = |visit: u32| entry_of[visit as usize].expect("every visit has nodes") as u32;
    let mut expected: Vec<(u32, u32)> = requests.iter().map(|(from, to)| (entry(*from), entry(*to))).collect();
    expected.push((0, 1));
    expected.sort_unstable();
    let mut made: Vec<(u32, u32)> = outcome.requests.iter().map(|request| (request.from, request.to)).collect();
    made.sort_unstable();
    assert!(made == expected, "{}", differences(&made, &expected));
    assert_eq!(outcome.entries.len(), requests.len() + 2);
}

/// The same through what a program calls: the reducer, its rows and its figures.
fn check_reduction(rules: &Rules, names: &TraceNames, generated: &Generated) {
    let options = ReduceOptions { keep_matches: true, ..ReduceOptions::default() };
    let reduction = reduce(rules, names, options, std::slice::from_ref(&generated.operation));
    let mut rows: Vec<(u32, u32, &str)> =
        reduction.matches.iter().map(|row| (row.thread, row.node, &*row.template)).collect();
    let mut truth: Vec<(u32, u32, &str)> =
        generated.truth.iter().map(|item| (item.thread, item.node, item.template)).collect();
    rows.sort_unstable();
    truth.sort_unstable();
    assert!(rows == truth, "{}", differences(&rows, &truth));
    assert_eq!(reduction.nodes, generated.operation.events.len() as u64);
    assert_eq!(reduction.processed, reduction.nodes);
    assert!(reduction.findings.counted.is_empty() && reduction.findings.findings.is_empty());
    assert_eq!(reduction.quality.sound, 1);
}

fn reduce(rules: &Rules, names: &TraceNames, options: ReduceOptions, operations: &[Operation]) -> Reduction {
    use dyelog::trace::Sink;
    let mut reducer = Reducer::new(rules, options);
    for operation in operations {
        assert_eq!(reducer.operation(names, operation.clone()), ControlFlow::Continue(()));
    }
    reducer.finish(names).expect("what is generated is well-formed")
}

fn recover(shape: Shape, nodes: usize, seeds: std::ops::Range<u64>) {
    recover_by(&Rules::shipped(), shape, nodes, seeds);
}

fn recover_by(rules: &Rules, shape: Shape, nodes: usize, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut generator = Generator::new(seed, shape);
        let generated = generator.operation("1", nodes);
        assert!(generated.operation.events.len() >= nodes);
        check_reduction(rules, &generator.names, &generated);
        check_recovery(rules, &generator.names, generated);
    }
}

/// Branches within branches, branches that move to other threads, and such that nobody waits for.
#[test]
fn every_interaction_within_branches_is_recovered() {
    let shape = Shape { nested: true, ..Shape::default() };
    for tasks in [12, 40, 300] {
        recover(Shape { tasks, ..shape }, 60, 0..60);
        recover(Shape { tasks, depth: 12, ..shape }, 600, 0..20);
    }
    recover(Shape { tasks: 800, depth: 10, ..shape }, 20_000, 0..3);
    for seed in 0..5 {
        let mut generator = Generator::new(seed, shape);
        let operation = generator.operation("1", 1000).operation;
        crate::tlc::engines_agree(&generator.text([&operation]));
    }
    let truth = Generator::new(1, shape).operation("1", 20_000).truth;
    for template in ["parallel_branch", "open_branch", "wait"] {
        let count = truth.iter().filter(|item| item.template == template).count();
        assert!(count >= 50, "{template}: {count}");
    }
}

/// Messages to several receivers, between other messages and asynchronous RPCs.
#[test]
fn every_multicast_is_recovered() {
    let name: std::sync::Arc<str> = "ext/multicast.dl".into();
    let text = dyelog::tlc::rules::shipped_text(&name).expect("it is shipped");
    let rules = Rules::with_user_files(&[(name, text)], &|_| None).expect("it loads");
    let shape = Shape { multicast: true, nested: true, ..Shape::default() };
    for tasks in [12, 40, 300] {
        recover_by(&rules, Shape { tasks, ..shape }, 60, 0..60);
        recover_by(&rules, Shape { tasks, depth: 12, ..shape }, 600, 0..20);
    }
    recover_by(&rules, Shape { tasks: 800, depth: 10, ..shape }, 20_000, 0..2);
    let truth = Generator::new(1, shape).operation("1", 20_000).truth;
    for receivers in 2..=4 {
        let of = |item: &&Interaction| item.template == "multicast" && item.responders.len() == receivers;
        assert!(truth.iter().filter(of).count() >= 20, "{receivers} receivers");
    }
}

#[test]
fn every_interaction_of_small_operations_is_recovered() {
    for tasks in [12, 40, 300] {
        recover(Shape { tasks, ..Shape::default() }, 60, 0..60);
        recover(Shape { tasks, depth: 12, ..Shape::default() }, 600, 0..20);
    }
}

#[test]
fn every_interaction_is_recovered_at_ten_thousand_nodes() {
    recover(Shape::default(), 10_000, 0..6);
    recover(Shape { branches: false, attributes: false, depth: 20, ..Shape::default() }, 10_000, 6..9);
}

#[test]
fn every_interaction_is_recovered_at_a_hundred_thousand_nodes() {
    recover(Shape { tasks: 800, depth: 10, ..Shape::default() }, 100_000, 0..3);
    recover(Shape { mix: Mix::Loop, ..Shape::default() }, 100_000, 3..4);
    recover(Shape { mix: Mix::Nested, tasks: 40_000, depth: 30_000, ..Shape::default() }, 100_000, 4..5);
}

/// The generator makes every interaction, in numbers that mean something.
/// The reference needs memory and time for a large operation, so that this is the size at which both run in a test.
#[test]
fn both_engines_agree_on_generated_operations() {
    for (seed, nodes) in [(11, 300), (12, 3_000), (13, 10_000)] {
        let mut generator = Generator::new(seed, Shape::default());
        let operation = generator.operation("1", nodes).operation;
        crate::tlc::engines_agree(&generator.text([&operation]));
    }
}

#[test]
fn all_interactions_are_generated() {
    let mut generator = Generator::new(1, Shape::default());
    let generated = generator.operation("1", 20_000);
    let count = |template: &str, responders: usize| {
        let wanted = |item: &&Interaction| item.template == template && item.responders.len() == responders;
        generated.truth.iter().filter(wanted).count()
    };
    let templates = ["basic_rpc", "rpc_phase2", "async_rpc", "nested_async_rpc", "asynchronous", "parallel_branch"];
    for template in templates {
        assert!(count(template, 1) >= 50, "{template}: {}", count(template, 1));
    }
    for depth in 1..=3 {
        assert!(
            count("forwarding", depth + 1) >= 20,
            "forwarding of depth {depth}: {}",
            count("forwarding", depth + 1)
        );
        let continued = count("continued_forwarding", depth + 1);
        assert!(continued >= 5, "forwarding of depth {depth} that is continued elsewhere: {continued}");
    }
    let threads = |items: &[Interaction]| items.iter().map(|item| item.thread).max();
    assert!(threads(&generated.truth) > Some(1000));
}

/// More than two batches for each thread, with damage and repeats in several of them.
#[test]
fn threads_that_reduce_while_the_reader_reads_change_nothing() {
    let rules = Rules::shipped();
    let mut generator = Generator::new(7, Shape { tasks: 40, depth: 4, ..Shape::default() });
    let mut operations: Vec<Operation> =
        (0..90).map(|run| generator.operation(&format!("r{run}"), 5000).operation).collect();
    for damaged in [5, 33, 34, 71] {
        operations[damaged].events.swap_remove(17);
        operations[damaged].events.swap_remove(100);
    }
    operations.push(operations[3].clone());
    let mut reused = operations[4].clone();
    reused.run = operations[50].run.clone();
    operations.insert(60, reused);
    let outcome = |threads: usize| {
        let options = ReduceOptions { threads, keep_matches: true, ..ReduceOptions::default() };
        let reduction = reduce(&rules, &generator.names, options, &operations);
        let rest = (reduction.quality, reduction.findings, reduction.matches, reduction.nodes, reduction.processed);
        (dump(&reduction.submodel, true), rest)
    };
    let (submodel, rest) = outcome(1);
    assert_eq!((rest.0.operations, rest.0.set_aside, rest.0.doubtful.len()), (92, 5, 1));
    for threads in [2, 3, 5] {
        let (other, others) = outcome(threads);
        assert!(submodel == other, "{threads} threads make another sub-model");
        assert!(rest == others, "{threads} threads tell something else");
    }
    let strict = |threads: usize| {
        use dyelog::trace::Sink;
        let options = ReduceOptions {
            threads,
            policy: dyelog::trace::quality::Policy { strict: true },
            ..ReduceOptions::default()
        };
        let mut reducer = Reducer::new(&rules, options);
        for operation in &operations {
            assert_eq!(reducer.operation(&generator.names, operation.clone()), ControlFlow::Continue(()));
        }
        reducer.finish(&generator.names).expect_err("the policy is strict")
    };
    assert_eq!(strict(1).0.len(), 5);
    assert_eq!(strict(1), strict(3));
}

/// The graph is the same, whatever order the events come in; only some orders let it be made in one pass.
#[test]
fn the_order_of_events_does_not_change_the_graph() {
    for seed in 0..20 {
        let mut generator = Generator::new(seed, Shape { tasks: 12, depth: 4, ..Shape::default() });
        let operation = generator.operation("1", 300).operation;
        let graph = |operation: Operation| {
            let toeg = Toeg::build(operation).expect("what is generated is well-formed");
            let nodes = 0..toeg.len() as u32;
            let arcs: Vec<_> = nodes
                .map(|node| (toeg.next_in_task(node), toeg.previous_in_task(node), toeg.thread_number(node)))
                .collect();
            let events = format!("{:?}", toeg.operation().events);
            (toeg.threads().to_vec(), arcs, toeg.root(), events)
        };
        let as_it_came = graph(operation.clone());
        let mut random = Random::new(seed);
        let mut mixed = operation.clone();
        random.shuffle(&mut mixed.events);
        assert_eq!(as_it_came, graph(mixed.clone()));
        mixed.events.sort_by_key(|event| (event.thread, event.index));
        assert_eq!(as_it_came, graph(mixed.clone()));
        mixed.events.reverse();
        assert_eq!(as_it_came, graph(mixed));
    }
}

/// What of a sub-model does not depend on its order of arrival. Lines of witnesses only where the input had one order.
fn dump(submodel: &SubModel, lines: bool) -> String {
    let mut text = String::new();
    let names = |name| submodel.names.text(name);
    for index in submodel.canonical_order() {
        let entry = submodel.entry(index);
        let (task, service) = (names(entry.task), names(entry.service));
        let _ = writeln!(
            text,
            "{:?} {task}.{} {:?} {service:?} x{}",
            entry.key, entry.instance, entry.interaction, entry.invocations
        );
        let mut work: Vec<_> = entry.work.iter().collect();
        work.sort_by_key(|(position, _)| **position);
        for (position, total) in work {
            let _ = writeln!(text, "  {position:?} {}", dump_work(submodel, total));
        }
        for witness in &entry.witnesses {
            let _ = write!(text, "  {}/{} {},{}", witness.scenario, witness.run, witness.thread, witness.index);
            let _ = if lines { writeln!(text, " {}:{}", witness.file, witness.item) } else { writeln!(text) };
        }
    }
    let mut scenarios: Vec<_> = submodel.scenarios.iter().map(|(name, total)| (names(*name), total)).collect();
    scenarios.sort_by_key(|(name, _)| *name);
    let _ = writeln!(text, "{scenarios:?} {} set aside", submodel.set_aside);
    text
}

fn dump_work(submodel: &SubModel, work: &WorkTotal) -> String {
    let mut activities: Vec<String> =
        work.activities.iter().map(|(name, total)| format!("{:?} {total:?}", submodel.names.text(*name))).collect();
    activities.sort();
    let mut requests: Vec<String> = work
        .requests
        .iter()
        .map(|((kind, to), total)| format!("{kind:?} {:?} {total:?}", submodel.entry(*to).key))
        .collect();
    requests.sort();
    format!("x{} {:?} {activities:?} {requests:?}", work.visits, work.exclusive)
}

fn lqn(submodel: &SubModel) -> String {
    let (model, _, _) = model::complete(submodel, &Configuration::default()).expect("there is something to model");
    Language::Lqn.write(&model)
}

/// Several runs with few tasks, so that they have entries in common.
fn runs(seed: u64, nodes: &[usize]) -> (Generator, Vec<Operation>) {
    let mut generator = Generator::new(seed, Shape { tasks: 14, depth: 4, ..Shape::default() });
    let operations = nodes
        .iter()
        .enumerate()
        .map(|(run, nodes)| generator.operation(&format!("r{run}"), *nodes).operation)
        .collect();
    (generator, operations)
}

/// Reads files one after the other and reduces them together.
fn reduce_files(rules: &Rules, options: ReduceOptions, files: &[String]) -> SubModel {
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(rules, options);
    for (number, file) in files.iter().enumerate() {
        let name = format!("{number}.angio");
        read(&name, file.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer).expect("it was written so");
    }
    let reduction = reducer.finish(&names).expect("what is generated is well-formed");
    assert_eq!(reduction.processed, reduction.nodes);
    reduction.submodel
}

/// The text with the lines of each operation, and the operations, in another order.
fn shuffled(text: &str, random: &mut Random) -> String {
    let mut operations: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("operation ") {
            operations.push(Vec::new());
        }
        operations.last_mut().expect("a header comes first").push(line);
    }
    for operation in &mut operations {
        random.shuffle(&mut operation[1..]);
    }
    random.shuffle(&mut operations);
    operations.iter().flatten().fold(String::new(), |text, line| text + line + "\n")
}

const MERGES: [EntryMerge; 3] = [EntryMerge::Name, EntryMerge::Structure, EntryMerge::None];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_changes_a_byte_of_the_model(
        seed in any::<u64>(),
        nodes in prop::collection::vec(3_usize..300, 1..7),
        merge in prop::sample::select(&MERGES[..]),
    ) {
        let rules = Rules::shipped();
        let (generator, operations) = runs(seed, &nodes);
        let text = generator.text(&operations);
        let options = ReduceOptions { merge, ..ReduceOptions::default() };
        let one = reduce_files(&rules, options, std::slice::from_ref(&text));
        for threads in [2, 3] {
            let other = reduce_files(&rules, ReduceOptions { threads, ..options }, std::slice::from_ref(&text));
            prop_assert_eq!(dump(&one, true), dump(&other, true));
            prop_assert_eq!(lqn(&one), lqn(&other));
        }
        let other = shuffled(&text, &mut Random::new(seed));
        prop_assert!(nodes.len() < 3 || other != text);
        let threads = 1 + (seed % 3) as usize;
        let other = reduce_files(&rules, ReduceOptions { threads, ..options }, &[other]);
        prop_assert_eq!(dump(&one, false), dump(&other, false));
        prop_assert_eq!(lqn(&one), lqn(&other));
    }

    #[test]
    fn runs_in_several_files_give_the_model_of_one_file(
        seed in any::<u64>(),
        nodes in prop::collection::vec(3_usize..200, 2..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let rules = Rules::shipped();
        let (generator, operations) = runs(seed, &nodes);
        let (left, right) = operations.split_at(cut.index(operations.len()));
        let options = ReduceOptions::default();
        let one = reduce_files(&rules, options, &[generator.text(&operations)]);
        // A file without operations is refused, as it should be: it is left out.
        let parts: Vec<String> =
            [right, left].into_iter().filter(|part| !part.is_empty()).map(|part| generator.text(part)).collect();
        let several = reduce_files(&rules, options, &parts);
        prop_assert_eq!(dump(&one, false), dump(&several, false));
        prop_assert_eq!(lqn(&one), lqn(&several));
        // And merging what each file gave on its own, each with names of its own.
        let merged = parts.iter().fold(SubModel::new(), |mut all, part| {
            all.merge(&reduce_files(&rules, options, std::slice::from_ref(part)));
            all
        });
        prop_assert_eq!(dump(&one, false), dump(&merged, false));
        prop_assert_eq!(lqn(&one), lqn(&merged));
    }

    #[test]
    fn merging_is_a_commutative_monoid(
        seed in any::<u64>(),
        nodes in prop::collection::vec(3_usize..200, 3),
        merge in prop::sample::select(&MERGES[..]),
    ) {
        let rules = Rules::shipped();
        let (generator, operations) = runs(seed, &nodes);
        let options = ReduceOptions { merge, ..ReduceOptions::default() };
        let parts: Vec<SubModel> = operations
            .iter()
            .map(|operation| reduce_files(&rules, options, &[generator.text([operation])]))
            .collect();
        let merged = |left: &SubModel, right: &SubModel| {
            let mut both = left.clone();
            both.merge(right);
            both
        };
        let [a, b, c] = &parts[..] else { unreachable!("there are three runs") };
        prop_assert_eq!(dump(&merged(&merged(a, b), c), true), dump(&merged(a, &merged(b, c)), true));
        prop_assert_eq!(dump(&merged(a, b), true), dump(&merged(b, a), true));
        prop_assert_eq!(dump(&merged(a, &SubModel::new()), true), dump(a, true));
        prop_assert_eq!(dump(&merged(&SubModel::new(), a), true), dump(a, true));
        prop_assert_ne!(dump(&merged(a, b), true), dump(a, true));
    }

    #[test]
    fn reading_what_was_written_gives_the_same(
        seed in any::<u64>(),
        nodes in prop::collection::vec(3_usize..300, 1..5),
        attributes in any::<bool>(),
    ) {
        let mut generator = Generator::new(seed, Shape { tasks: 30, attributes, ..Shape::default() });
        let operations: Vec<Operation> =
            nodes.iter().enumerate().map(|(run, nodes)| generator.operation(&format!("run {run}\""), *nodes).operation).collect();
        let text = generator.text(&operations);
        let mut again: Vec<Operation> = Vec::new();
        let mut names = TraceNames::new();
        let mut keep = |_: &TraceNames, operation: Operation| {
            again.push(operation);
            ControlFlow::Continue(())
        };
        read("generated", text.as_bytes(), &ReadOptions::default(), &mut names, &mut keep).expect("it was written so");
        let written = again.iter().fold(Vec::new(), |mut text, operation| {
            angio::write_text(&mut text, &names, operation).expect("memory takes all");
            text
        });
        prop_assert_eq!(&text, &String::from_utf8(written).expect("the text is UTF-8"));
        prop_assert_eq!(shown(&generator.names, &operations), shown(&names, &again));
    }
}

/// All that an operation says, by name, but for lines.
fn shown(names: &TraceNames, operations: &[Operation]) -> Vec<String> {
    let mut lines = Vec::new();
    for operation in operations {
        lines.push(format!("{} {} {:?}", names.names.text(operation.scenario), operation.run, operation.start));
        lines.extend(operation.events.iter().map(|event| {
            format!(
                "{} {} {:?} {} {} {:?} {:?} {:?} {:?}",
                event.thread,
                event.index,
                event.kind,
                names.task_label(event.task),
                event.counter,
                names.names.text(event.activity),
                names.names.text(event.service),
                event.time,
                event.cpu
            )
        }));
    }
    lines
}
