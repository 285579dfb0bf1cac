//! Random templates with alternatives and optional nodes, whose conditions ask for times and calculate: each combination that the matcher and
//! the evaluator that explains take somewhere is the one that trying by hand takes there.

use std::cell::Cell;
use std::collections::BTreeSet;

use dyelog::datalog::ast::{Condition, Spanned};
use dyelog::trace::{Toeg, TraceNames};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::laws::{HELP, without_single_names};
use super::naive::{self, Bindings, Tables, Value};
use super::{rules, walks_of};
use crate::generator::{Generator, Random, Shape};

/// A node of a template: its name, its task, its counter, how many nodes of the thread it is behind `e1`, and of which kind.
#[derive(Clone, Copy)]
struct Part {
    node: &'static str,
    task: &'static str,
    counter: &'static str,
    behind: i64,
    kind: &'static str,
}

impl Part {
    const fn new([node, task, counter]: [&'static str; 3], behind: i64, kind: &'static str) -> Self {
        Self { node, task, counter, behind, kind }
    }

    fn text(&self) -> String {
        let Self { node, task, counter, behind, kind } = self;
        let place = if *behind < 0 { format!("m-{}", -behind) } else { format!("m+{behind}") };
        format!("{node} = {kind} [j, k, {place} | {task}, {counter}]")
    }
}

const E2: [&str; 3] = ["e2", "b", "w"];
const E3: [&str; 3] = ["e3", "c", "u"];

/// Items of `match` behind `e1`, and the nodes of each combination in the order in which these are tried.
fn items(random: &mut Random) -> (String, Vec<Vec<Part>>) {
    let kind = ["_", "Ac", "Fk(_)", "Ed"][random.below(4)];
    let (second, third) = (Part::new(E2, 1, kind), Part::new(E3, [-1, 2][random.below(2)], "_"));
    let other = Part::new(E3, 1, "_");
    match random.below(4) {
        0 => (format!("optional {{ {} }}", second.text()), vec![vec![second], vec![]]),
        1 => (format!("{{ {} }} or {{ {} }}", second.text(), other.text()), vec![vec![second], vec![other]]),
        2 => (
            format!("optional {{ {} }} optional {{ {} }}", second.text(), third.text()),
            vec![vec![second, third], vec![second], vec![third], vec![]],
        ),
        // Both alternatives have an e2.
        _ => {
            let before = Part::new(E2, -1, "_");
            let text = format!("{{ {} }} or {{ {} {} }}", second.text(), before.text(), other.text());
            (text, vec![vec![second], vec![before, other]])
        }
    }
}

fn pick<'c>(random: &mut Random, choices: &[&'c str]) -> &'c str {
    choices[random.below(choices.len())]
}

fn node(random: &mut Random) -> &'static str {
    pick(random, &["e1", "e1", "e2", "e2", "e3", "X1", "X2", "_"])
}

fn number(random: &mut Random) -> &'static str {
    pick(random, &["v", "w", "w", "u", "v+1", "w-v", "(v+u)/2", "w%3", "V1", "V2", "V1+1", "3"])
}

fn literal(random: &mut Random) -> String {
    let not = if random.below(4) == 0 { "!" } else { "" };
    let sign = pick(random, &["=", "!=", "<", "<=", ">", ">="]);
    match random.below(11) {
        0 => format!("{not}next_in_thread({}, {})", node(random), node(random)),
        1 => format!("{not}next_in_task({}, {})", node(random), node(random)),
        2 => format!("{not}kind({}, {})", node(random), pick(random, &["\"Ac\"", "\"Fk\"", "S1"])),
        3 => format!("{not}task({}, {}, {})", node(random), pick(random, &["a", "b", "c", "S2", "_"]), number(random)),
        4 | 5 => format!("{not}time({}, {})", node(random), pick(random, &["V1", "V2"])),
        6 => format!("V2 - V1 {sign} {}", pick(random, &["0", "1000000", "25000000"])),
        7 => format!("{not}even({})", node(random)),
        8 => format!("{not}p({})", number(random)),
        9 => format!("{} {} {}", pick(random, &["a", "b"]), pick(random, &["=", "!="]), pick(random, &["b", "c"])),
        _ => format!("{} {sign} {}", number(random), number(random)),
    }
}

/// The names that a condition uses.
fn names_of(condition: &Condition) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    naive::each(condition, &mut |variable| {
        names.insert(variable.name.to_string());
    });
    names
}

/// Without the conditions that name what is not matched, or what only such a condition could have bound.
fn kept(conditions: &[Spanned<Condition>], own: &[Part], all: &BTreeSet<&str>) -> Vec<Spanned<Condition>> {
    let has = |name: &str| own.iter().any(|part| [part.node, part.task, part.counter].contains(&name));
    let mut absent: BTreeSet<String> = all.iter().filter(|name| !has(name)).map(|name| (*name).to_owned()).collect();
    loop {
        let asks = |condition: &&Spanned<Condition>| !names_of(&condition.value).is_disjoint(&absent);
        let (without, with): (Vec<_>, Vec<_>) = conditions.iter().partition(asks);
        let binds =
            |condition: &&&Spanned<Condition>| matches!(condition.value, Condition::Atom { negated: false, .. });
        let bound: BTreeSet<String> = with.iter().filter(binds).flat_map(|one| names_of(&one.value)).collect();
        let lost = without.iter().flat_map(|one| names_of(&one.value));
        let lost = lost.filter(|name| name.starts_with(['X', 'V', 'S']) && !bound.contains(name));
        let before = absent.len();
        absent.extend(lost.collect::<Vec<_>>());
        if absent.len() == before {
            return with.into_iter().cloned().collect();
        }
    }
}

/// What a combination binds at a glue node, if its nodes are there.
fn bound(own: &[Part], glue: usize, toeg: &Toeg, names: &TraceNames) -> Option<Bindings> {
    let events = &toeg.operation().events;
    let mut all = Bindings::new();
    let mut set = |[node, task, counter]: [&str; 3], at: usize| {
        let event = &events[at];
        let name = Value::Text(names.names.text(names.task(event.task).name).to_owned());
        all.insert((node.to_owned(), None), Value::Number(at as i64));
        all.insert((task.to_owned(), None), name);
        all.insert((counter.to_owned(), None), Value::Number(i64::from(event.counter)));
    };
    set(["e1", "a", "v"], glue);
    for part in own {
        let at = usize::try_from(glue as i64 + part.behind).ok()?;
        let event = events.get(at).filter(|event| event.thread == events[glue].thread)?;
        let kind = naive::kind(event.kind);
        if part.kind != "_" && !part.kind.starts_with(kind) {
            return None;
        }
        set([part.node, part.task, part.counter], at);
    }
    Some(all)
}

/// One random template over one random operation: whether the checker took it, how many places it fits, and how many of them without a part.
fn compare(seed: u64) -> Option<(usize, usize)> {
    let random = &mut Random::new(seed);
    let mut generator = Generator::new(random.next(), Shape { tasks: 3, ..Shape::default() });
    let size = 10 + random.below(14);
    let toeg = Toeg::build(generator.operation("1", size).operation).expect("it is sound");
    let names = &generator.names;
    let (items, combinations) = items(random);
    let count = 1 + random.below(4);
    let literals: Vec<String> = (0..count).map(|_| literal(random)).collect();
    let conditions = without_single_names(&literals.join(", "));
    let text = format!(
        "template t {{ order 1 match {{ e1 = _ [j, k, m | a, v] {items} }} where {{ {conditions} }} }}\n{HELP}"
    );
    let rules = rules(&text).ok()?;
    assert_eq!(rules.plans().len(), combinations.len(), "{text}");
    let written = &rules.program().templates[0].conditions;
    let tables: Tables = naive::tables(&toeg, names);
    let all: BTreeSet<&str> =
        combinations.iter().flatten().flat_map(|part| [part.node, part.task, part.counter]).collect();
    let (mut fitting, mut without) = (0, 0);
    for (plan, own) in combinations.iter().enumerate() {
        let asked = kept(written, own, &all);
        let found: Vec<usize> =
            walks_of(plan, &rules, names, &toeg).into_iter().map(|(node, _)| node as usize).collect();
        let hand: Vec<usize> = (0..toeg.len())
            .filter(|&glue| {
                bound(own, glue, &toeg, names).is_some_and(|bound| naive::holds(&asked, &bound, 0, &tables))
            })
            .collect();
        assert_eq!(found, hand, "combination {plan} of {text}");
        fitting += found.len();
        without += if asked.len() < written.len() { found.len() } else { 0 };
    }
    Some((fitting, without))
}

#[test]
fn each_combination_matches_what_trying_by_hand_does() {
    let (taken, fitting, without) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 128, ..Config::with_source_file(file!()) });
    runner
        .run(&any::<u64>(), |seed| {
            for turn in 0..40 {
                let Some((found, lacking)) = compare(seed.wrapping_add(turn)) else { continue };
                taken.set(taken.get() + 1);
                fitting.set(fitting.get() + usize::from(found > 0));
                without.set(without.get() + usize::from(lacking > 0));
            }
            Ok(())
        })
        .expect("all agree");
    let (taken, fitting, without) = (taken.get(), fitting.get(), without.get());
    println!("{taken} templates were taken, {fitting} fit somewhere, {without} without some of their conditions");
    assert!(taken > 500 && fitting > 300 && without > 100, "{taken} taken, {fitting} fit, {without} lack some");
}
