//! Why templates do not take nodes: a table of near misses, and that the slow evaluator finds what the fast matcher does.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dyelog::report::explain::why_not as report;
use dyelog::tlc::Rules;
use dyelog::tlc::counters::TaskCounters;
use dyelog::tlc::driver::{self, Engine, Plans};
use dyelog::tlc::explain::attempt::Trial;
use dyelog::tlc::explain::{Caused, Made, Studies, Study, Variables, done, why_not};
use dyelog::tlc::matcher::{Match, Matcher, PROCESSED, Relations, Starting, Symbols};
use dyelog::tlc::recognise::with_relations;
use dyelog::tlc::visits::Visits;
use dyelog::trace::quality::Policy;
use dyelog::trace::{Kind, NodeId, NodeName, ReadOptions, Toeg, TraceNames, read};

use crate::generator::{Generator, Shape};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/near_misses");

/// Looks at each sound operation of a trace.
pub fn studied(rules: &Rules, file: &str, text: &[u8], work: impl FnMut(&Study<'_>, &dyn Relations)) {
    let mut work = work;
    let mut names = TraceNames::new();
    let mut studies = Studies::new(rules, |study: &Study<'_>, relations: &dyn Relations| {
        work(study, relations);
        ControlFlow::Continue(())
    });
    studies
        .run(Policy::default(), |sink| read(file, text, &ReadOptions::default(), &mut names, sink))
        .expect("the trace can be read");
}

/// The bundled traces and what is in them.
pub fn bundled() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("traces are bundled").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending != "md"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(&path).expect("it is there"))).collect()
}

/// The answer in lines: one a role.
fn answer(rules: &Rules, template: &str, fragment: &str) -> String {
    let number = rules.plans().iter().position(|plan| *plan.name == *template).expect("there is such a template");
    let marked = fragment.lines().position(|line| line.ends_with("# <--")).expect("a line is marked") + 1;
    let mut lines = String::new();
    let mut operations = 0;
    studied(rules, "fragment", fragment.as_bytes(), |study, relations| {
        operations += 1;
        let nodes = NodeName::parse(&marked.to_string()).find(study.toeg, study.names);
        let found = why_not(study, relations, number as u16, nodes[0]);
        for one in &found.tries {
            lines.push_str(&report::line(study, &found, one));
            lines.push('\n');
        }
    });
    assert_eq!(operations, 1, "the operation is sound:\n{fragment}");
    lines
}

#[test]
fn near_misses_are_explained() {
    let rules = Rules::shipped();
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    let mut files: Vec<PathBuf> =
        fs::read_dir(CASES).expect("there are cases").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let (mut templates, mut cases) = (0, 0);
    for file in files {
        let template = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("it can be read");
        let mut now = String::new();
        let mut rest = text.as_str();
        let mut own = 0;
        while let Some((before, after)) = rest.split_once("```angio\n") {
            let (fragment, after) = after.split_once("```\n").expect("the fragment ends");
            let after = after.strip_prefix("```text\n").expect("the answer follows");
            let (_, after) = after.split_once("```\n").expect("the answer ends");
            let answer = answer(&rules, &template, fragment);
            now.push_str(&format!("{before}```angio\n{fragment}```\n```text\n{answer}```\n"));
            rest = after;
            own += 1;
        }
        now.push_str(rest);
        assert!(own >= 5, "{template} has {own} cases");
        if update {
            fs::write(&file, &now).expect("cases are writable");
        } else {
            similar_asserts(&file, &text, &now);
        }
        templates += 1;
        cases += own;
    }
    assert!(templates >= 6 && cases >= 30, "{templates} templates, {cases} cases");
}

fn similar_asserts(file: &Path, expected: &str, found: &str) {
    let difference = dyelog::report::difference::text(expected, found, 3);
    assert!(expected == found, "{}:\n{difference}", file.display());
}

/// Tries every template by the slow evaluator wherever the fast matcher is asked, and compares what they find.
struct Both<'a> {
    fast: Plans<'a>,
    trial: Trial<'a>,
    rules: &'a Rules,
    asked: usize,
}

impl Engine for Both<'_> {
    fn first_match(&mut self, glue: NodeId, flags: &[u8], found: &mut Match) -> bool {
        let fits = self.fast.first_match(glue, flags, found);
        let taken = |node: NodeId| flags[node as usize] & PROCESSED != 0;
        let mut order: Vec<usize> = (0..self.rules.plans().len()).collect();
        order.sort_by_key(|number| self.rules.plans()[*number].order);
        let attempts = order.iter().map(|number| (*number, self.trial.attempt(*number, glue, &taken)));
        let first = attempts.into_iter().find(|(_, attempt)| attempt.failure.is_none());
        assert_eq!(fits, first.is_some(), "at node {glue}");
        if let Some((number, attempt)) = first {
            let plan = &self.rules.plans()[number];
            assert_eq!(plan.name, self.rules.plans()[found.template as usize].name, "at node {glue}");
            assert_eq!((attempt.sequences, &attempt.rounds), (found.sequences, &found.rounds), "at node {glue}");
            for consumed in &plan.effects.consumed {
                assert_eq!(attempt.slots[consumed.slot as usize], found.slot(consumed.slot), "{}", plan.name);
            }
        }
        self.asked += 1;
        fits
    }
}

fn compare_engines(rules: &Rules, names: &TraceNames, toeg: &Toeg) -> usize {
    let symbols = Symbols::of(rules.code(), names);
    with_relations(rules, names, toeg, |relations| {
        let matcher = Matcher {
            program: rules.code(),
            toeg,
            names,
            symbols: &symbols,
            relations,
            budget: u64::MAX.into(),
            visits: Visits::default(),
            counters: TaskCounters::default(),
            starting: Starting::default(),
        };
        let trial = Trial::new(rules.plans(), toeg, names, relations, u64::MAX);
        let mut both = Both { fast: Plans::new(matcher), trial, rules, asked: 0 };
        driver::run(toeg, rules.plans(), &mut both, &mut ());
        both.asked
    })
    .expect("relations can be evaluated")
}

#[test]
fn the_slow_evaluator_finds_what_the_matcher_finds() {
    let shipped = Rules::shipped();
    let user = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rules/acknowledged.dl"))
        .expect("the example is bundled");
    let own = Rules::with_user_files(&[("own.dl".into(), user.as_str().into())], &|_| None).expect("it loads");
    let asks = "
        forked(x) :- forks(f, x).
        template marked {
          order 0
          match { e1 = Ac [j, k, m | a, v]  e2 = Ac [j, k, m+1 | a, v+1] }
          where { m % 3 = 1, !forked(e1), !starts(basic_rpc, e2), next_in_thread(e1, e2) }
          model { addActivity(E, e1)  addActivity(E, e2) }
        }";
    let multicast =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/ext/multicast.dl")).expect("it ships");
    let multicast =
        Rules::with_user_files(&[("multicast.dl".into(), multicast.as_str().into())], &|_| None).expect("it loads");
    let asking = Rules::with_user_files(&[("asks.dl".into(), asks.into())], &|_| None).expect("it loads");
    let mut asked = 0;
    for rules in [&shipped, &own, &multicast, &asking] {
        for (path, bytes) in bundled() {
            studied(rules, &path.display().to_string(), &bytes, |study, _| {
                asked += compare_engines(rules, study.names, study.toeg);
            });
        }
        for seed in 0..6 {
            let mut generator = Generator::new(seed, Shape::default());
            let generated = generator.operation("1", 400);
            let toeg = Toeg::build(generated.operation).expect("it is sound");
            asked += compare_engines(rules, &generator.names, &toeg);
        }
    }
    assert!(asked > 2000, "only {asked} trials");
}

/// For every committed match, from every node that it took, the answer is that it does match.
#[test]
fn every_match_of_the_bundled_traces_does_match() {
    let rules = Rules::shipped();
    let mut matches = 0;
    for (path, bytes) in bundled() {
        let mut operations = 0;
        studied(&rules, &path.display().to_string(), &bytes, |study, relations| {
            operations += 1;
            if operations > 20 {
                return;
            }
            for (number, made) in study.matches.iter().enumerate() {
                matches += 1;
                for node in made.consumed(study.plan(made)) {
                    let answer = why_not(study, relations, made.template, node);
                    assert_eq!(answer.committed(), Some(number), "{}: node {node}", path.display());
                }
                check_what_was_done(study, made);
            }
        });
    }
    assert!(matches > 300, "only {matches} matches");
}

/// What a match is said to have done is what the outcome has.
fn check_what_was_done(study: &Study<'_>, made: &Made) {
    let variables = Variables::of(study, made);
    let consumed: Vec<NodeId> = made.consumed(study.plan(made)).collect();
    assert!(variables.nodes.iter().all(|(_, node)| consumed.contains(node)));
    let outcome = &study.outcome;
    for done in done(study, made, &variables) {
        match done.caused {
            Caused::Entry(number, interaction) => {
                assert_eq!(outcome.entries[number as usize].interaction, interaction, "{}", done.text);
                assert!(consumed.contains(&outcome.entries[number as usize].accepted_at), "{}", done.text);
                assert_eq!(study.opener(number).map(|own| study.matches[own].glue), Some(made.glue));
            }
            Caused::Request(from, to) => {
                let is = |request: &&driver::Request| (request.from, request.to) == (from, to);
                assert!(outcome.requests.iter().any(|request| is(&request)), "{}", done.text);
            }
            Caused::Activity(entry, node) => {
                assert!(outcome.flags[node as usize] & driver::ACTIVITY != 0, "{}", done.text);
                assert_eq!(outcome.owner[node as usize], entry, "{}", done.text);
            }
            Caused::SecondPhase(node) => {
                assert!(outcome.flags[node as usize] & driver::THEN_NEXT_PHASE != 0, "{}", done.text);
            }
            Caused::Trigger(node, entry) => assert_eq!(outcome.owner[node as usize], entry, "{}", done.text),
            Caused::Branch(entry, begin, join) => {
                let begun = Kind::Join(study.toeg.event(begin).thread);
                assert!(join.is_none_or(|join| study.toeg.event(join).kind == begun), "{}", done.text);
                assert_eq!(outcome.owner[begin as usize], entry);
            }
            Caused::Delay(entry, node) => {
                assert!(outcome.flags[node as usize] & driver::DELAYED != 0, "{}", done.text);
                assert_eq!(outcome.owner[node as usize], entry, "{}", done.text);
            }
            Caused::ForkedRequest(entry, to, fork, join) => {
                let is = |request: &driver::Request| (request.from, request.to, request.at) == (entry, to, fork);
                assert!(outcome.requests.iter().any(is), "{}", done.text);
                assert!(join.is_none_or(|join| outcome.owner[join as usize] == entry), "{}", done.text);
            }
            Caused::Alternative(entry, begin, end) => {
                assert!([begin, end].iter().all(|node| outcome.owner[*node as usize] == entry), "{}", done.text);
            }
            Caused::Barrier(entry, node) => {
                assert_eq!(outcome.part(outcome.owner[node as usize]).0, entry, "{}", done.text);
            }
            Caused::Nothing => {}
        }
    }
}
