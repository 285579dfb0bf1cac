//! Conditions decided by trying every value for every open variable over tables of what the graph holds. It shares no code with
//! what it is compared with but the reading of rule files.

use std::collections::BTreeMap;

use dyelog::datalog::ast::{Comparison, Condition, Index, Operator, Quantifier, Spanned, Term, Variable};
use dyelog::trace::{Kind, Toeg, TraceNames};

/// A value: a node and a number are told apart by the columns that they come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Number(i64),
    Text(String),
}

/// Rows of each relation.
pub type Tables = BTreeMap<&'static str, Vec<Vec<Value>>>;

/// What a match binds: names to values, with the round where they have an index.
pub type Bindings = BTreeMap<(String, Option<i64>), Value>;

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Begin => "Be",
        Kind::Activity => "Ac",
        Kind::End => "Ed",
        Kind::Fork(_) => "Fk",
        Kind::Join(_) => "Jn",
    }
}

/// What holds of a graph, and of the rules that the laws use.
pub fn tables(toeg: &Toeg, names: &TraceNames) -> Tables {
    let events = &toeg.operation().events;
    let number = |node: usize| Value::Number(node as i64);
    let of = |value: u32| Value::Number(i64::from(value));
    let mut tables = Tables::new();
    let mut add = |name: &'static str, row: Vec<Value>| tables.entry(name).or_default().push(row);
    for (node, event) in events.iter().enumerate() {
        let task = names.names.text(names.task(event.task).name);
        add("node", vec![number(node)]);
        add("kind", vec![number(node), text(kind(event.kind))]);
        add("task", vec![number(node), text(task), of(event.counter)]);
        add("thread", vec![number(node), of(event.thread), of(event.index)]);
        if event.counter % 2 == 0 {
            add("even", vec![number(node)]);
        }
        if !event.time.is_nan() {
            let start = toeg.operation().start.unwrap_or(0);
            add("time", vec![number(node), Value::Number(start + (event.time * 1e9).round() as i64)]);
        }
        for (other, later) in events.iter().enumerate() {
            if later.thread == event.thread && later.index == event.index + 1 {
                add("next_in_thread", vec![number(node), number(other)]);
            }
            if later.task == event.task && later.counter == event.counter + 1 {
                add("next_in_task", vec![number(node), number(other)]);
            }
            if event.kind == Kind::Fork(later.thread) && later.index == 1 {
                add("forks", vec![number(node), number(other)]);
            }
        }
    }
    for value in [1, 2, 4, 6] {
        add("p", vec![Value::Number(value)]);
        add("twice", vec![Value::Number(value), Value::Number(2 * value)]);
    }
    tables
}

/// Whether a template's conditions hold of what a match binds, with so many rounds.
pub fn holds(conditions: &[Spanned<Condition>], bindings: &Bindings, rounds: i64, tables: &Tables) -> bool {
    let mut plain: Vec<&Condition> = Vec::new();
    for condition in conditions {
        let Condition::Rounds { quantifier, body, .. } = &condition.value else {
            plain.push(&condition.value);
            continue;
        };
        let body: Vec<&Condition> = body.iter().map(|condition| &condition.value).collect();
        let good = match quantifier {
            Quantifier::Some => places(&body, rounds).any(|x| together(&body, bindings, rounds, Some(x), tables)),
            Quantifier::Every => places(&body, rounds).all(|x| together(&body, bindings, rounds, Some(x), tables)),
        };
        if !good {
            return false;
        }
    }
    let (of_rounds, once) = sorted(&plain, bindings);
    together(&once, bindings, rounds, None, tables) && every(&of_rounds, bindings, rounds, tables)
}

/// Literals about a round, alone or through open names that they share, and all others.
fn sorted<'c>(plain: &[&'c Condition], bindings: &Bindings) -> (Vec<&'c Condition>, Vec<&'c Condition>) {
    let mut inside: Vec<bool> = plain.iter().map(|condition| of_round(condition)).collect();
    loop {
        let before = inside.clone();
        for one in 0..plain.len() {
            for other in 0..plain.len() {
                let (left, right) = (open(plain[one], bindings), open(plain[other], bindings));
                inside[one] |= inside[other] && left.iter().any(|name| right.contains(name));
            }
        }
        if inside == before {
            break;
        }
    }
    let part = |wanted: bool| {
        plain.iter().zip(&inside).filter(|(_, inside)| **inside == wanted).map(|(condition, _)| *condition).collect()
    };
    (part(true), part(false))
}

/// Each group of literals that share open names holds of every round that it can be asked of.
fn every(body: &[&Condition], bindings: &Bindings, rounds: i64, tables: &Tables) -> bool {
    let mut groups: Vec<Vec<&Condition>> = Vec::new();
    for condition in body {
        let names = open(condition, bindings);
        let shares = |group: &Vec<&Condition>| {
            group.iter().any(|other| open(other, bindings).iter().any(|name| names.contains(name)))
        };
        let (mut joined, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares);
        joined.push(vec![*condition]);
        groups = apart;
        groups.push(joined.concat());
    }
    groups.iter().all(|group| places(group, rounds).all(|x| together(group, bindings, rounds, Some(x), tables)))
}

/// The rounds that a condition can be asked of: those with others before and behind them, where it speaks of these.
fn places(body: &[&Condition], rounds: i64) -> std::ops::RangeInclusive<i64> {
    let (mut least, mut most) = (0, 0);
    for condition in body {
        each(condition, &mut |variable| {
            if let Some(Index { variable: Some(x), offset }) = &variable.index
                && &**x == "x"
            {
                (least, most) = (least.min(*offset), most.max(*offset));
            }
        });
    }
    1 - least..=rounds - most
}

fn of_round(condition: &Condition) -> bool {
    let mut found = false;
    each(condition, &mut |variable| {
        found |=
            &*variable.name == "x" || matches!(&variable.index, Some(Index { variable: Some(x), .. }) if &**x == "x");
    });
    found
}

pub fn open(condition: &Condition, bindings: &Bindings) -> Vec<String> {
    let mut names = Vec::new();
    each(condition, &mut |variable| {
        let name = variable.name.to_string();
        let index = name == "x";
        if !index && variable.index.is_none() && !bindings.contains_key(&(name.clone(), None)) && !names.contains(&name)
        {
            names.push(name);
        }
    });
    names
}

pub fn each(condition: &Condition, found: &mut dyn FnMut(&Variable)) {
    match condition {
        Condition::Compare(left, _, right) => [left, right].into_iter().for_each(|side| term(&side.value, found)),
        Condition::Atom { atom, .. } => atom.arguments.iter().for_each(|argument| term(&argument.value, found)),
        _ => panic!("a condition that the laws do not use"),
    }
}

fn term(value: &Term, found: &mut dyn FnMut(&Variable)) {
    match value {
        Term::Variable(variable, _) => found(variable),
        Term::Arithmetic(left, _, right) => {
            term(&left.value, found);
            term(&right.value, found);
        }
        _ => {}
    }
}

/// Whether some values of the open names make all of it hold.
fn together(body: &[&Condition], bindings: &Bindings, rounds: i64, x: Option<i64>, tables: &Tables) -> bool {
    let mut names: Vec<String> = Vec::new();
    for condition in body {
        for name in open(condition, bindings) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    // Most conditions are about names that have values.
    let domain = if names.is_empty() { Vec::new() } else { domain(tables) };
    let mut found = bindings.clone();
    any(&names, &domain, &mut found, &|found| {
        body.iter().all(|condition| literal(condition, found, rounds, x, tables) != Some(false))
    })
}

/// All values that a name may have.
fn domain(tables: &Tables) -> Vec<Value> {
    let mut domain: Vec<Value> = tables.values().flatten().flatten().cloned().collect();
    domain.extend((-40..=60).map(Value::Number));
    domain.sort();
    domain.dedup();
    domain
}

/// Tries all values; literals whose names are not all given yet are passed over.
fn any(names: &[String], domain: &[Value], found: &mut Bindings, good: &dyn Fn(&Bindings) -> bool) -> bool {
    if !good(found) {
        return false;
    }
    let Some((name, rest)) = names.split_first() else { return true };
    for value in domain {
        found.insert((name.clone(), None), value.clone());
        if any(rest, domain, found, good) {
            found.remove(&(name.clone(), None));
            return true;
        }
    }
    found.remove(&(name.clone(), None));
    false
}

/// Whether a literal holds; none where a name has no value yet.
fn literal(condition: &Condition, found: &Bindings, rounds: i64, x: Option<i64>, tables: &Tables) -> Option<bool> {
    let value = |term: &Term| eval(term, found, rounds, x);
    match condition {
        Condition::Compare(left, comparison, right) => {
            let (left, right) = (value(&left.value)?, value(&right.value)?);
            let (Got::Value(left), Got::Value(right)) = (left, right) else { return Some(false) };
            Some(match (comparison, left, right) {
                (Comparison::Equal, left, right) => left == right,
                (Comparison::NotEqual, left, right) => left != right,
                (other, Value::Number(left), Value::Number(right)) => match other {
                    Comparison::Less => left < right,
                    Comparison::LessOrEqual => left <= right,
                    Comparison::Greater => left > right,
                    _ => left >= right,
                },
                _ => false,
            })
        }
        Condition::Atom { negated, atom } => {
            let mut pattern = Vec::new();
            for argument in &atom.arguments {
                pattern.push(value(&argument.value)?);
            }
            if pattern.contains(&Got::Nothing) {
                return Some(false);
            }
            let rows = tables.get(&*atom.relation.value).map_or(&[][..], Vec::as_slice);
            let fits = |row: &Vec<Value>| {
                row.iter().zip(&pattern).all(|(value, wanted)| match wanted {
                    Got::Value(wanted) => wanted == value,
                    _ => true,
                })
            };
            Some(rows.iter().any(fits) != *negated)
        }
        _ => panic!("a condition that the laws do not use"),
    }
}

/// What a term comes to.
#[derive(Clone, Debug, PartialEq)]
enum Got {
    Value(Value),
    Any,
    Nothing,
}

/// The value of a term; none where a name has none yet.
fn eval(term: &Term, found: &Bindings, rounds: i64, x: Option<i64>) -> Option<Got> {
    Some(match term {
        Term::Wildcard => Got::Any,
        Term::Integer(number) => Got::Value(Value::Number(*number)),
        Term::Float(_) => Got::Nothing, // these templates have none
        Term::Symbol(symbol) => Got::Value(text(symbol)),
        Term::Variable(variable, offset) => {
            let index = match &variable.index {
                None => None,
                Some(Index { variable: None, offset }) => Some(*offset),
                Some(Index { variable: Some(name), offset }) if &**name == "x" => Some(x? + offset),
                Some(Index { offset, .. }) => Some(rounds + offset),
            };
            if &*variable.name == "x" {
                return Some(Got::Value(Value::Number(x? + offset)));
            }
            let Some(value) = found.get(&(variable.name.to_string(), index)) else {
                // Without rounds there is no first and no last one; an open name has no value yet.
                return index.map(|_| Got::Nothing);
            };
            match value {
                Value::Number(number) => Got::Value(Value::Number(number + offset)),
                value @ Value::Text(_) if *offset == 0 => Got::Value(value.clone()),
                Value::Text(_) => Got::Nothing,
            }
        }
        Term::Arithmetic(left, operator, right) => {
            let (left, right) = (eval(&left.value, found, rounds, x)?, eval(&right.value, found, rounds, x)?);
            let (Got::Value(Value::Number(left)), Got::Value(Value::Number(right))) = (left, right) else {
                return Some(Got::Nothing);
            };
            let number = match operator {
                Operator::Add => Some(left + right),
                Operator::Subtract => Some(left - right),
                Operator::Multiply => Some(left * right),
                Operator::Divide => left.checked_div(right),
                Operator::Remainder => left.checked_rem(right),
            };
            number.map_or(Got::Nothing, |number| Got::Value(Value::Number(number)))
        }
    })
}
