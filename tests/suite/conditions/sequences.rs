//! Templates with two sequences: the plans of both evaluators against trying every number of rounds by hand.

use std::cell::Cell;

use dyelog::trace::{Event, Toeg};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{errors, operation, rules, walks};
use crate::cli::{Folder, run};
use crate::generator::{Generator, Random, Shape};

/// A match: the glue node, the nodes of both sequences, and the node after them.
struct Tried<'t> {
    glue: &'t Event,
    g: Vec<&'t Event>,
    h: Vec<&'t Event>,
    last: &'t Event,
}

type Law = fn(&Tried<'_>) -> bool;

/// Conditions, each with what it means.
const CONDITIONS: &[(&str, Law)] = &[
    ("t[x] = a", |m| m.g.iter().all(|g| g.task == m.glue.task)),
    ("u[z] != a", |m| m.h.iter().all(|h| h.task != m.glue.task)),
    ("w[z] > y[n]", |m| m.h.iter().all(|h| h.counter > m.g[m.g.len() - 1].counter)),
    ("w[z] > y[z]", |m| (0..m.h.len()).all(|z| m.g.get(z).is_some_and(|g| m.h[z].counter > g.counter))),
    ("some z { u[z] = t[z] }", |m| (0..m.h.len()).any(|z| m.g.get(z).is_some_and(|g| m.h[z].task == g.task))),
    ("some z { z > 1, w[z] > y[z-1] }", |m| {
        (1..m.h.len()).any(|z| m.g.get(z - 1).is_some_and(|g| m.h[z].counter > g.counter))
    }),
    ("o = n", |m| m.h.len() == m.g.len()),
    ("o > n", |m| m.h.len() > m.g.len()),
    ("n > 1", |m| m.g.len() > 1),
    ("o != 1", |m| m.h.len() != 1),
    ("n + o < 5", |m| m.g.len() + m.h.len() < 5),
    ("some x { y[x+2] > y[x] + 1 }", |m| (2..m.g.len()).any(|x| m.g[x].counter > m.g[x - 2].counter + 1)),
    ("every x { y[x] >= x }", |m| m.g.iter().zip(1..).all(|(g, x)| g.counter >= x)),
    ("w[z] != z + 1", |m| m.h.iter().zip(1..).all(|(h, z): (&&Event, u32)| h.counter != z + 1)),
    ("t[2] = u[1]", |m| m.g.len() > 1 && !m.h.is_empty() && m.g[1].task == m.h[0].task),
    ("t[n-1] != b", |m| m.g.len() > 1 && m.g[m.g.len() - 2].task != m.last.task),
    ("u[o] = b", |m| m.h.last().is_some_and(|h| h.task == m.last.task)),
    ("kind(h[z], \"Ac\")", |m| m.h.iter().all(|h| h.kind == dyelog::trace::Kind::Activity)),
];

fn by_hand(chosen: &[Law], min: usize, longest: bool, toeg: &Toeg) -> Vec<(u32, [u32; 2])> {
    let events = &toeg.operation().events;
    let mut found = Vec::new();
    for glue in 0..events.len() {
        let mut fitting = Vec::new();
        for n in 1..events.len() {
            for o in min..events.len() {
                let last = glue + n + o + 1;
                if events.get(last).is_none_or(|last| last.thread != events[glue].thread) {
                    break;
                }
                let (g, h) =
                    (events[glue + 1..=glue + n].iter().collect(), events[glue + n + 1..last].iter().collect());
                let tried = Tried { glue: &events[glue], g, h, last: &events[last] };
                if chosen.iter().all(|law| law(&tried)) {
                    fitting.push([n as u32, o as u32]);
                }
            }
        }
        let chosen = if longest { fitting.last() } else { fitting.first() };
        found.extend(chosen.map(|counts| (glue as u32, *counts)));
    }
    found
}

/// One random template with two sequences over one random operation: whether it is one, and how many places it fits.
fn compare(seed: u64) -> Option<usize> {
    let random = &mut Random::new(seed);
    let min = random.below(2);
    let longest = random.below(2) == 0;
    let mut generator = Generator::new(random.next(), Shape { tasks: 3, ..Shape::default() });
    let size = 10 + random.below(14);
    let toeg = Toeg::build(generator.operation("1", size).operation).expect("it is sound");
    let chosen: Vec<_> = (0..random.below(4)).map(|_| CONDITIONS[random.below(CONDITIONS.len())]).collect();
    let conditions: String = chosen.iter().flat_map(|(text, _)| [", ", text]).collect();
    let long = if longest { "longest" } else { "" };
    let text = format!(
        "template two {{ order 1 {long} match {{
           e1 = _ [j, k, m[1]-1 | a, v]
           repeat x in 1..n min 1 {{ g[x] = _ [j, k, m[x] | t[x], y[x]] }}
           repeat z in 1..o min {min} {{ h[z] = _ [j, k, p[z] | u[z], w[z]] }}
           last = _ [j, k, p[o+1] | b, c]
         }} where {{ m[x+1] == m[x]+1, p[z+1] == p[z]+1, p[1] == m[n+1]{conditions} }} }}"
    );
    let taken = match rules(&text) {
        Ok(taken) => taken,
        // Conditions that exclude each other, and what no round at all cannot have.
        Err(found) if errors(&found).iter().all(|error| error.starts_with("R084")) => return None,
        Err(found) => panic!("{text}\n{:?}", errors(&found)),
    };
    let laws: Vec<Law> = chosen.iter().map(|(_, law)| *law).collect();
    let hand = by_hand(&laws, min, longest, &toeg);
    let found: Vec<_> = walks(&taken, &generator.names, &toeg);
    let found: Vec<(u32, [u32; 2])> = found.into_iter().map(|(node, [n, o, ..])| (node, [n, o])).collect();
    assert_eq!(found, hand, "{text}");
    Some(found.len())
}

#[test]
fn two_sequences_are_every_number_of_rounds_of_both() {
    let (taken, fitting) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config::with_source_file(file!()));
    runner
        .run(&any::<u64>(), |seed| {
            for turn in 0..40 {
                let found = compare(seed.wrapping_add(turn));
                taken.set(taken.get() + usize::from(found.is_some()));
                fitting.set(fitting.get() + usize::from(found.is_some_and(|found| found > 0)));
            }
            Ok(())
        })
        .expect("all agree");
    let (taken, fitting) = (taken.get(), fitting.get());
    println!("{taken} templates were taken, {fitting} fit somewhere");
    assert!(taken > 500 && fitting > 100, "{taken} templates, {fitting} fit somewhere");
}

/// A forks three threads, and waits for them in an order.
fn forks(joins: [u32; 3]) -> String {
    let mut text = "operation s run=1\ns,1,1,Be | A,1\ns,1,2,Ac | A,2\n".to_owned();
    for (place, thread) in (3..).zip(2..=4) {
        text.push_str(&format!("s,1,{place},Fk(s,{thread}) | A,{place}\n"));
    }
    for (thread, task) in (2..).zip(["B", "C", "D"]) {
        text.push_str(&format!("s,{thread},1,Be | {task},1\ns,{thread},2,Ed | {task},2\n"));
    }
    for (place, thread) in (6..).zip(joins) {
        text.push_str(&format!("s,1,{place},Jn(s,{thread}) | A,{place}\n"));
    }
    text + "s,1,9,Ac | A,9\ns,1,10,Ed | A,10\n"
}

/// A forks three threads and waits for them in another order: the second sequence names the threads of the first.
#[test]
fn a_later_sequence_names_rounds_of_an_earlier_one() {
    let of = |order: &str, end: &str| {
        let text = format!(
            "template all {{ order 1 match {{
               e1 = Ac [j, k, m[1]-1 | a, v]
               repeat x in 1..n min 1 {{ f[x] = Fk(q[x]) [j, k, m[x] | a, y[x]] }}
               repeat z in 1..o min 1 {{ g[z] = Jn({order}) [j, k, p[z] | a, w[z]] }}
               last = Ac [j, k, p[o+1] | a, {end}]
             }} where {{ m[x+1] == m[x]+1, p[z+1] == p[z]+1, p[1] == m[n+1], o = n }} }}"
        );
        rules(&text).unwrap_or_else(|found| panic!("{:?}", errors(&found)))
    };
    let places = |order: &str, joins: [u32; 3]| {
        let (names, toeg) = operation(&forks(joins));
        let of = |end: &str| -> Vec<_> {
            walks(&of(order, end), &names, &toeg).into_iter().map(|(node, [n, o, ..])| (node, n, o)).collect()
        };
        // The end of the second sequence may be known before: it is walked from its begin all the same.
        let found = of("u");
        assert_eq!(of("v+7"), found, "{order}, {joins:?}");
        found
    };
    assert_eq!(places("q[z]", [2, 3, 4]), [(1, 3, 3)]);
    assert_eq!(places("q[z]", [3, 2, 4]), []);
    assert_eq!(places("r[z]", [3, 2, 4]), [(1, 3, 3)]);
    assert_eq!(places("q[1]", [3, 2, 4]), []);
}

/// What two sequences of a template cannot be.
#[test]
fn sequences_exclude_each_other() {
    let codes = |inside: &str, conditions: &str| {
        let text = format!(
            "template two {{ order 1 match {{ e1 = _ [j, k, m[1]-1 | a, v] {inside} }} where {{ {conditions} }} }}"
        );
        let found = rules(&text).err().unwrap_or_default();
        errors(&found).iter().map(|one| one[..4].to_owned()).collect::<Vec<_>>()
    };
    let first = "repeat x in 1..n min 1 { g[x] = _ [j, k, m[x] | t[x], y[x]] }";
    let second = "repeat z in 1..o min 1 { h[z] = _ [j, k, p[z] | u[z], w[z]] } last = _ [j, k, p[o+1] | b, c]";
    let ways = "m[x+1] == m[x]+1, p[z+1] == p[z]+1, p[1] == m[n+1]";
    let with = |first: &str, second: &str, more: &str| codes(&format!("{first} {second}"), &format!("{ways}{more}"));
    assert!(with(first, second, "").is_empty());
    assert_eq!(with(first, &second.replace("1..o", "1..n").replace("o+1", "n+1"), ""), ["R054"]);
    assert_eq!(with(&first.replace("min 1", "min 0"), second, ""), ["R055"]);
    assert_eq!(with(first, second, ", y[x] > w[z]"), ["R057"]);
    assert_eq!(with(first, second, ", y[x] > w[x]"), ["R057"]);
    assert_eq!(with(first, second, ", y[o] > 1"), ["R057"]);
    assert_eq!(codes(&format!("{first} {second}"), "m[x+1] == m[x]+1, p[z+1] == p[z]+1"), ["R050"]);
    // Only a node of the round after says it: that of the round itself is not known.
    assert_eq!(with(&first.replace("t[x]", "t[x+1]"), &second.replace("u[z]", "t[z]"), ""), ["R050"]);
    // A number of rounds is neither a field nor a name.
    assert_eq!(with(&first.replace("y[x]", "x+2"), second, ""), ["R057"]);
    assert_eq!(with(first, &second.replace("| b, c", "| b, n"), ""), ["R057"]);
    assert_eq!(with(first, second, ", x = \"B\""), ["R022"]);
    assert_eq!(with(first, second, ", n = \"B\""), ["R022"]);
    // The last sequence may have no round, whatever is said of the first.
    let none = second.replace("min 1", "min 0");
    assert!(with(first, &none, ", some x { y[x] > 2 }, w[z] > 5, w[z] < 3").is_empty());
    assert_eq!(with(first, second, ", w[z] > 5, w[z] < 3"), ["R084"]);
}

const GATHER: &str = "/// A forks requests, and waits for all of them in the order in which they were made.
template gather { order -1
  match {
    e1 = Ac [j, k, m[1]-1 | a, v]
    repeat x in 1..n min 1 {
      f[x] = Fk(q[x]) [j, k, m[x] | a, y[x]]
      b[x] = Be [j, q[x], 1 | t[x], s[x]]
    }
    repeat z in 1..o min 1 { g[z] = Jn(q[z]) [j, k, p[z] | a, w[z]] }
    last = Ac [j, k, p[o+1] | a, u]
  }
  where { m[x+1] == m[x]+1, p[z+1] == p[z]+1, p[1] == m[n+1], o = n, t[x] != a, u > v }
  model {
    addActivity(E, e1)
    for x in 1..n {
      S[x] := newEntry(R, t[x])
      awaitRequest(E, S[x], f[x], g[x])
      addTrigger([j, q[x], 2 | t[x], s[x]+1], S[x])
    }
    for z in 1..o { addActivity(E, g[z]) }
    addActivity(E, last)
  }
}
";

/// The model, the explanations and the picture show both sequences.
#[test]
fn both_sequences_are_modelled_explained_and_drawn() {
    let folder = Folder::new();
    let rules = folder.file("gather.dl", GATHER);
    let good = folder.file("good.angio", &forks([2, 3, 4]));
    let swapped = folder.file("swapped.angio", &forks([3, 2, 4]));
    let with = |arguments: &[&str]| run(&[arguments, &["--rules", &rules]].concat());
    let checked = run(&["rules", "check", &rules]);
    assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    let covered = with(&["coverage", &good]);
    assert_eq!(covered.code, 0, "{}{}", covered.out, covered.err);
    let explained = with(&["explain", &good, "--node", "1,7"]);
    assert!(explained.out.contains("g[2]") && explained.out.contains("f[3]"), "{}{}", explained.out, explained.err);
    let missed = with(&["why-not", "gather", "1,2", &swapped]);
    assert!(missed.out.contains("stops: it needs g.position"), "{}{}", missed.out, missed.err);
    let drawn = run(&["rules", "draw", "gather", "--rules", &rules]);
    assert_eq!(drawn.out.matches("class=\"frame\"").count(), 2, "{}{}", drawn.out, drawn.err);
    let planned = run(&["rules", "plan", "gather", "--rules", &rules]);
    assert!(planned.out.contains("all nodes of all sequences are different"), "{}{}", planned.out, planned.err);
    let model = with(&["model", &good]);
    assert!(["B", "C", "D"].into_iter().all(|task| model.out.contains(task)), "{}{}", model.out, model.err);
}
