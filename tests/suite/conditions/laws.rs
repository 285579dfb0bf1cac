//! Random templates with random conditions: the conditions in the template, the same in a rule, and every value tried by hand
//! come to the same matches.

use std::cell::Cell;

use dyelog::datalog::ast::Template;
use dyelog::diagnostic::{Diagnostic, Severity};
use dyelog::tlc::Rules;
use dyelog::trace::{Toeg, TraceNames};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::naive::{self, Bindings, Tables, Value};
use super::{Fits, fits, rules};
use crate::generator::{Generator, Random, Shape};

pub(super) const HELP: &str = "
even(X) :- task(X, _, V), V % 2 = 0.
p(1). p(2). p(4). p(6). twice(X, Y) :- p(X), Y = X * 2.
";

/// How a random template looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Two nodes that follow each other.
    Pair,
    /// A sequence that begins after the glue node.
    Forward,
    /// A sequence that ends before it.
    Backward,
}

impl Look {
    fn nodes(self) -> &'static str {
        match self {
            Self::Pair => "e1 = _ [j, k, m | a, v]  e2 = _ [j, k, m+1 | b, w]",
            Self::Forward => {
                "e1 = _ [j, k, m[1]-1 | a, v] repeat x in 1..n min MIN { g[x] = _ [j, k, m[x] | t[x], y[x]] } \
                 e2 = _ [j, k, m[n+1] | b, w]"
            }
            Self::Backward => {
                "e1 = _ [j, k, m[n+1] | a, v] repeat x in 1..n min MIN { g[x] = _ [j, k, m[x] | t[x], y[x]] } \
                 e2 = _ [j, k, m[1]-1 | b, w]"
            }
        }
    }
}

/// Where terms are written: how nodes, numbers and tasks are named there.
struct Writer<'r> {
    random: &'r mut Random,
    look: Look,
    /// Whether within `every` or `some`, and the number of it, which its open names carry.
    block: Option<usize>,
    /// Whether a round may be spoken of.
    rounds: bool,
}

impl Writer<'_> {
    fn pick(&mut self, choices: &[&str]) -> String {
        let choice = choices[self.random.below(choices.len())];
        match (choice.len(), self.block) {
            (2, Some(block)) if choice.starts_with(['X', 'V', 'S']) => format!("{choice}{block}"),
            _ => choice.to_owned(),
        }
    }

    fn node(&mut self) -> String {
        if self.rounds && self.random.below(3) > 0 {
            return self.pick(&["g[x]", "g[x]", "g[x]", "g[x+1]", "g[x+2]", "g[x-1]"]);
        }
        if self.look != Look::Pair && self.random.below(6) == 0 {
            return self.pick(&["g[1]", "g[n]", "g[2]", "g[n-1]"]);
        }
        self.pick(&["e1", "e1", "e2", "X1", "X1", "X2", "_"])
    }

    fn number(&mut self) -> String {
        if self.rounds && self.random.below(3) > 0 {
            let all = ["y[x]", "y[x]", "y[x+1]", "y[x]+1", "y[x]*2", "y[x]-v", "x", "x+1", "x%2", "y[x+2]", "y[x-1]"];
            return self.pick(&all);
        }
        if self.look != Look::Pair && self.random.below(6) == 0 {
            return self.pick(&["y[1]", "y[n]", "n", "n+1", "m[1]", "m[n+1]", "y[2]", "y[n-1]"]);
        }
        self.pick(&["v", "w", "v+1", "v*2", "v-w", "(v+w)/2", "w%3", "V1", "V1", "V2", "V1+1", "3", "_"])
    }

    fn symbol(&mut self) -> String {
        if self.rounds && self.random.below(3) > 0 {
            return self.pick(&["t[x]", "t[x]", "t[x+1]", "t[x+2]", "t[x-1]"]);
        }
        self.pick(&["a", "b", "S1", "S1", "\"T1\"", "_"])
    }

    fn literal(&mut self) -> String {
        let not = if self.random.below(4) == 0 { "!" } else { "" };
        match self.random.below(11) {
            0 => format!("{not}next_in_thread({}, {})", self.node(), self.node()),
            1 => format!("{not}next_in_task({}, {})", self.node(), self.node()),
            2 => format!("{not}forks({}, {})", self.node(), self.node()),
            3 => {
                let kind = self.pick(&["\"Ac\"", "\"Be\"", "\"Fk\"", "S2", "S2"]);
                format!("{not}kind({}, {kind})", self.node())
            }
            4 => format!("{not}task({}, {}, {})", self.node(), self.symbol(), self.number()),
            5 => format!("{not}thread({}, {}, {})", self.node(), self.pick(&["V2", "_"]), self.number()),
            6 => format!("{not}even({})", self.node()),
            7 => format!("{not}p({})", self.number()),
            8 => format!("{not}twice({}, {})", self.number(), self.number()),
            _ => {
                let sign = self.pick(&["=", "!=", "<", "<=", ">", ">="]);
                format!("{} {sign} {}", self.number(), self.number())
            }
        }
    }

    fn literals(&mut self, most: usize) -> Vec<String> {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| self.literal()).collect()
    }
}

/// A condition under `where`, and the same by a rule of its own.
struct Written {
    inline: String,
    explicit: String,
    rules: String,
}

fn written(random: &mut Random, look: Look) -> Written {
    let mut all = Written { inline: String::new(), explicit: String::new(), rules: String::new() };
    let mut blocks: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    let plain = Writer { random, look, block: None, rounds: false }.literals(4);
    blocks.push((None, plain));
    if look != Look::Pair {
        let count = random.below(3);
        for number in 0..count {
            let word = if random.below(2) == 0 { "every" } else { "some" };
            let body = Writer { random, look, block: Some(number), rounds: true }.literals(3);
            blocks.push((Some(word), body));
        }
        all.inline.push_str("m[x+1] == m[x]+1, ");
        all.explicit.push_str("m[x+1] == m[x]+1, ");
    }
    for (number, (word, body)) in blocks.iter().enumerate() {
        let text = body.join(", ");
        let columns = columns(&text);
        let names: Vec<&str> = columns.iter().map(|(_, name, _)| &**name).collect();
        let written: Vec<&str> = columns.iter().map(|(written, ..)| &**written).collect();
        let given: Vec<&str> = columns.iter().map(|(_, _, given)| &**given).collect();
        let literals = renamed(&text, &columns);
        let head = format!("asked{number}({})", names.join(", "));
        let head = if names.is_empty() { format!("asked{number}(0)") } else { head };
        let given = if given.is_empty() { String::new() } else { format!("{}, ", given.join(", ")) };
        all.rules.push_str(&format!("{head} :- {given}{literals}.\n"));
        let call = if written.is_empty() {
            format!("asked{number}(0)")
        } else {
            format!("asked{number}({})", written.join(", "))
        };
        let (inline, explicit) = match word {
            Some(word) => (format!("{word} x {{ {text} }}"), format!("{word} x {{ {call} }}")),
            None => (text, call),
        };
        all.inline.push_str(&format!("{inline}, "));
        all.explicit.push_str(&format!("{explicit}, "));
    }
    all
}

/// A text in which the bound names are those of a rule.
fn renamed(text: &str, columns: &[(String, String, String)]) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, end) in words(text) {
        out.push_str(&text[from..at]);
        let word = &text[at..end];
        out.push_str(columns.iter().find(|(written, ..)| written == word).map_or(word, |(_, name, _)| name));
        from = end;
    }
    out.push_str(&text[from..]);
    out
}

/// Where names stand, with their index; names of relations and words in quotes are left out.
fn words(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let starts = bytes[at].is_ascii_alphabetic() && (at == 0 || !is_name(bytes[at - 1]));
        if !starts {
            at += 1;
            continue;
        }
        let mut end = at;
        while end < text.len() && is_name(bytes[end]) {
            end += 1;
        }
        if text[end..].starts_with('[') {
            end += text[end..].find(']').expect("an index ends") + 1;
        }
        if !matches!(bytes.get(end), Some(b'"' | b'(')) {
            found.push((at, end));
        }
        at = end;
    }
    found
}

/// The bound names of literals: as written, as a rule names them, and what gives them a value there.
fn columns(text: &str) -> Vec<(String, String, String)> {
    let mut found: Vec<(String, String, String)> = Vec::new();
    for (at, end) in words(text) {
        let name = &text[at..end];
        if name.starts_with(['X', 'V', 'S']) || found.iter().any(|(own, ..)| own == name) {
            continue;
        }
        let plain: String = format!("c_{}", name.replace(['[', ']'], "_").replace('+', "p").replace('-', "m"));
        let given = match name.as_bytes()[0] {
            b'e' | b'g' => format!("node({plain})"),
            b'a' | b'b' | b't' => format!("task(_, {plain}, _)"),
            b'n' | b'm' | b'x' => format!("upto({plain})"),
            _ => format!("task(_, _, {plain})"),
        };
        found.push((name.to_owned(), plain, given));
    }
    found
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where a template fits by trying it by hand.
fn by_hand(look: Look, template: &Template, min: u32, toeg: &Toeg, names: &TraceNames, tables: &Tables) -> Fits {
    let events = &toeg.operation().events;
    let mut found = Fits::new();
    for node in 0..events.len() {
        let mut counts: Vec<u32> = Vec::new();
        for count in min.. {
            // The other nodes, in the order of the thread.
            let others = if look == Look::Pair { 1 } else { count as usize + 1 };
            let forward = look != Look::Backward;
            let path: Option<Vec<usize>> = (1..=others)
                .map(|step| {
                    let other = if forward { node.checked_add(step)? } else { node.checked_sub(step)? };
                    (events.get(other)?.thread == events[node].thread).then_some(other)
                })
                .collect();
            let Some(mut path) = path else { break };
            let last = path.pop().expect("there is one");
            if !forward {
                path.reverse();
            }
            let bindings = bindings(look, node, last, &path, toeg, names);
            if naive::holds(&template.conditions, &bindings, path.len() as i64, tables) {
                counts.push(count);
            }
            if look == Look::Pair {
                break;
            }
        }
        let chosen = if template.longest { counts.last() } else { counts.first() };
        found.extend(chosen.map(|count| (node as u32, if look == Look::Pair { 0 } else { *count })));
    }
    found
}

fn bindings(look: Look, glue: usize, last: usize, path: &[usize], toeg: &Toeg, names: &TraceNames) -> Bindings {
    let event = |node: usize| toeg.event(node as u32);
    let task = |node: usize| Value::Text(names.names.text(names.task(event(node).task).name).to_owned());
    let counter = |node: usize| Value::Number(i64::from(event(node).counter));
    let place = |node: usize| i64::from(event(node).index);
    let mut all = Bindings::new();
    let mut set = |name: &str, index: Option<i64>, value: Value| drop(all.insert((name.to_owned(), index), value));
    for (node, names) in [(glue, ["e1", "a", "v"]), (last, ["e2", "b", "w"])] {
        set(names[0], None, Value::Number(node as i64));
        set(names[1], None, task(node));
        set(names[2], None, counter(node));
    }
    for (x, &node) in (1..).zip(path) {
        set("g", Some(x), Value::Number(node as i64));
        set("t", Some(x), task(node));
        set("y", Some(x), counter(node));
        set("m", Some(x), Value::Number(place(node)));
    }
    if look != Look::Pair {
        let (before, after) = if look == Look::Forward { (glue, last) } else { (last, glue) };
        set("m", Some(1), Value::Number(place(before) + 1));
        set("m", Some(path.len() as i64 + 1), Value::Number(place(after)));
        set("n", None, Value::Number(path.len() as i64));
    }
    all
}

/// Names that stand once are not allowed: they become wildcards.
pub(super) fn without_single_names(text: &str) -> String {
    let mut out = text.to_owned();
    for name in ["X1", "X2", "V1", "V2", "S1", "S2"] {
        for name in [name.to_owned(), format!("{name}0"), format!("{name}1")] {
            let places: Vec<usize> = out
                .match_indices(&name)
                .map(|(place, _)| place)
                .filter(|place| !out.as_bytes().get(place + name.len()).is_some_and(|byte| is_name(*byte)))
                .collect();
            if let [place] = places[..] {
                out.replace_range(place..place + name.len(), "_");
            }
        }
    }
    out
}

/// Whether rules are refused only because they never hold.
fn never(found: &[Diagnostic]) -> bool {
    found.iter().filter(|one| one.severity == Severity::Error).all(|one| one.code.0 == "R036")
}

/// One random template over one random operation: whether the checker took it, and how many places it fits.
fn compare(seed: u64) -> Option<usize> {
    let random = &mut Random::new(seed);
    let look = [Look::Pair, Look::Pair, Look::Forward, Look::Backward][random.below(4)];
    let min = random.below(2) as u32;
    let longest = if look != Look::Pair && random.below(3) == 0 { "longest" } else { "" };
    let mut generator = Generator::new(random.next(), Shape { tasks: 3, ..Shape::default() });
    let size = 10 + random.below(14);
    let toeg = Toeg::build(generator.operation("1", size).operation).expect("it is sound");
    // Rules that are written out share the text, so that both forms have the same names.
    let mut all = written(random, look);
    let joined = without_single_names(&format!("{}\u{0}{}\u{0}{}", all.inline, all.explicit, ""));
    joined.split('\u{0}').next().expect("a part").clone_into(&mut all.inline);
    all.rules = all.rules.lines().flat_map(|rule| [without_single_names(rule), "\n".to_owned()]).collect();
    let nodes = look.nodes().replace("MIN", &min.to_string());
    let text = |conditions: &str, more: &str| {
        format!("template t {{ order 1 {longest} match {{ {nodes} }} where {{ {conditions} }} }}\n{HELP}{more}")
    };
    let upto = (0..60).map(|number| format!("upto({number}). ")).collect::<Vec<_>>().concat();
    let inline: Rules = rules(&text(&all.inline, "")).ok()?;
    let explicit = text(&all.explicit, &format!("{}{upto}", all.rules));
    let explicit: Result<Rules, _> = rules(&explicit);
    let names = &generator.names;
    let found = fits(&inline, names, &toeg);
    let template = &inline.program().templates[0];
    let tables = naive::tables(&toeg, names);
    let hand = by_hand(look, template, min, &toeg, names, &tables);
    assert_eq!(found, hand, "by hand: {} {look:?} min {min} {longest}", all.inline);
    match explicit {
        Ok(explicit) => assert_eq!(found, fits(&explicit, names, &toeg), "by a rule: {}\n{}", all.inline, all.rules),
        // What the checker sees of the rule alone, and not beside the nodes, is true all the same.
        // Of rounds it may be said in vain: where there are none, or none after the last one.
        Err(errors) if never(&errors) => {
            assert!(look != Look::Pair || found.is_empty(), "never: {}\n{}", all.inline, all.rules);
        }
        Err(errors) => panic!("{}\n{}\n{:?}", all.inline, all.rules, super::errors(&errors)),
    }
    Some(found.len())
}

#[test]
fn conditions_are_rules_over_what_is_bound() {
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
