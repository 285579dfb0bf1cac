//! Why a template does not take a node, as text and JSON.

use serde_json::{Value, json};

use crate::diagnostic::quantity::counted;
use crate::report::explain::failure::{operands, sentence};
use crate::report::explain::reading::rule;
use crate::report::explain::view::{role_in, slot_name};
use crate::report::explain::{Described, match_words};
use crate::report::json::pretty;
use crate::report::look::{Look, Tone};
use crate::report::plan::Words;
use crate::report::table::Table;
use crate::tlc::explain::{Is, Nearest, Study, Try, WhyNot, nearest};
use crate::tlc::plan::TemplatePlan;
use crate::trace::toeg::NONE;

/// An answer for people: whether the template takes the node, else for each role the step that failed and the values compared.
pub fn text(study: &Study<'_>, answer: &WhyNot, look: Look) -> String {
    let plan = &study.rules.plans()[answer.template as usize];
    let node = Described::new(study, answer.node);
    let mut text = format!("{}  {}\n", look.paint(Tone::Heading, &node.label()), node.place());
    if let Some(span) = node.span() {
        text.push_str(&format!("span {span}\n"));
        if let Some(rule) = rule(study, answer.node) {
            text.push_str(&format!("read by *{}* (book: Spans): {}\n", rule.section, rule.when));
        }
    }
    text.push_str(&format!("{}\n", verdict(study, answer)));
    for one in &answer.tries {
        if answer.committed().is_some() && one.committed.is_none() {
            continue;
        }
        text.push('\n');
        text.push_str(&look.paint(Tone::Heading, &heading(plan, one)));
        text.push('\n');
        text.push_str(&nodes(study, plan, one).render(look));
        if let Some(reason) = reason(study, plan, one) {
            text.push_str(&format!("{}: {reason}\n", look.paint(Tone::Caution, "stops")));
        }
        for nearest in nearest(study, plan, &one.attempt) {
            text.push_str(&format!("  {}\n", near_line(study, &nearest)));
        }
        for line in taken_lines(study, plan, one) {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

/// Whether the template takes the node, and which template does where it does not.
fn verdict(study: &Study<'_>, answer: &WhyNot) -> String {
    let plan = &study.rules.plans()[answer.template as usize];
    if let Some(number) = answer.committed() {
        let role = role_in(study, number, answer.node);
        return format!("{} does take it, as {role}: match {} of the operation", plan.name, number + 1);
    }
    match answer.consumer {
        Some(number) => {
            let by = study.plan(&study.matches[number]);
            let role = role_in(study, number, answer.node);
            format!("{} does not take it; {} (order {}) does, as {role}", plan.name, by.name, by.order)
        }
        None => format!("{} does not take it, and no other template does", plan.name),
    }
}

fn heading(plan: &TemplatePlan, one: &Try) -> String {
    let role = slot_name(plan, one.role);
    let glue = if one.role == 0 { ", the glue node" } else { "" };
    let attempt = &one.attempt;
    format!("as {role}{glue}: {} of {}", attempt.passed, counted(attempt.steps as u64, "step"))
}

/// In one line: the role, how far it came, and why no further.
pub fn line(study: &Study<'_>, answer: &WhyNot, one: &Try) -> String {
    let plan = &study.rules.plans()[answer.template as usize];
    let attempt = &one.attempt;
    let mut line = format!("as {} {}/{}", slot_name(plan, one.role), attempt.passed, attempt.steps);
    if let Some(number) = one.committed {
        line.push_str(&format!(": it does match, {}", match_words(study, number)));
    }
    if let Some(reason) = reason(study, plan, one) {
        line.push_str(&format!(": {reason}"));
    }
    for taken in taken_lines(study, plan, one) {
        line.push_str(&format!("; {taken}"));
    }
    line
}

fn reason(study: &Study<'_>, plan: &TemplatePlan, one: &Try) -> Option<String> {
    let failure = one.attempt.failure.as_ref()?;
    Some(sentence(study, plan, &one.attempt, failure))
}

/// Which literal fails, of the template's condition or of the nearest rule, and with which values.
fn near_line(study: &Study<'_>, nearest: &Nearest) -> String {
    let verb = if nearest.negated { "fails, as it holds" } else { "fails" };
    let values: Vec<String> =
        nearest.bindings.iter().map(|(name, is)| format!("{name} = {}", value(study, is))).collect();
    let with = if values.is_empty() { String::new() } else { format!(" with {}", values.join(", ")) };
    let fails = format!("`{}` {verb}{with}", nearest.fails.trim_start_matches('!'));
    match &nearest.rule {
        None => fails,
        Some((rule, span)) => {
            let (file, line) = study.rules.program().line(*span);
            format!(
                "nearest rule, {} of {}: {rule} ({file}:{line}): {fails}",
                nearest.passed,
                counted(nearest.literals as u64, "literal")
            )
        }
    }
}

fn value(study: &Study<'_>, is: &Is) -> String {
    match is {
        Is::Node(node) => Described::new(study, *node).stamp(),
        Is::Number(number) => number.to_string(),
        Is::Name(name) => format!("{:?}", study.names.names.text(*name)),
        Is::Text(text) => format!("{text:?}"),
    }
}

fn near_json(study: &Study<'_>, nearest: &Nearest) -> Value {
    let bindings: serde_json::Map<String, Value> =
        nearest.bindings.iter().map(|(name, is)| (name.to_string(), value(study, is).into())).collect();
    json!({
        "rule": nearest.rule.as_ref().map(|(rule, _)| rule),
        "passed": nearest.passed,
        "literals": nearest.literals,
        "fails": nearest.fails,
        "bindings": bindings,
    })
}

fn nodes(study: &Study<'_>, plan: &TemplatePlan, one: &Try) -> Table {
    let mut table = Table::new(&["NODE", "IS", ">TIME (ms)", "NAMES", "SPAN", "WHERE"]);
    for (name, node) in named(plan, one) {
        let node = Described::new(study, node);
        let span = node.span().unwrap_or_default();
        table.row(vec![name, node.label(), node.time(), node.names(), span, node.place()]);
    }
    table
}

/// The nodes that the attempt got to, by their names.
fn named(plan: &TemplatePlan, one: &Try) -> Vec<(String, u32)> {
    let of_rounds = |slot: &u8| plan.repetitions.iter().any(|repetition| repetition.nodes.contains(slot));
    let slots = (0..plan.slot_names.len() as u8).filter(|slot| !of_rounds(slot));
    let fixed = slots
        .map(|slot| (slot_name(plan, slot).to_owned(), one.attempt.slots.get(slot as usize).copied().unwrap_or(NONE)));
    let fits = one.attempt.failure.is_none();
    let sequences = one.attempt.rounds.iter().enumerate().filter_map(|(place, node)| {
        let (sequence, place) = plan.place_of(place, &one.attempt.sequences)?;
        let repetition = plan.repetitions.get(sequence)?;
        let size = repetition.nodes.len().max(1);
        // The number of a round that was walked from the end is not known before the walk is at its goal.
        let number = match (fits, repetition.backward, place / size) {
            (false, true, 0) => "n".to_owned(),
            (false, true, back) => format!("n-{back}"),
            (_, _, number) => (number + 1).to_string(),
        };
        Some((format!("{}[{number}]", slot_name(plan, repetition.nodes[place % size])), *node))
    });
    fixed.filter(|(_, node)| *node != NONE).chain(sequences).collect()
}

/// The matches that have the nodes that it came by.
fn taken_lines(study: &Study<'_>, plan: &TemplatePlan, one: &Try) -> Vec<String> {
    let names = named(plan, one);
    one.taken
        .iter()
        .map(|(_, node, number)| {
            let made = &study.matches[*number];
            let by = study.plan(made);
            let name = names.iter().find(|(_, other)| other == node).map_or("a node", |(name, _)| name);
            let first = if made.glue == one.attempt.glue && *node == made.glue {
                if by.order < plan.order { ", which is tried first" } else { "" }
            } else {
                ", which came first"
            };
            format!("{name} went to {} (order {}){first}", match_words(study, *number), by.order)
        })
        .collect()
}

/// One JSON document, ending in a newline: `{"dyelog-why-not": 1, "template", "node", "matches", "taken_by", "tries": [{"role",
/// "glue", "passed", "steps", "nodes", "stops", "step", "values", "nearest", "taken"}]}`. What is `nearest` is a literal that fails with the
/// values of variables: of the condition that stops the template, then of the rule that comes nearest to what it asks.
pub fn json(study: &Study<'_>, answers: &[WhyNot]) -> String {
    let all: Vec<Value> = answers.iter().map(|answer| one_json(study, answer)).collect();
    pretty(&json!({ "dyelog-why-not": 1, "answers": all }))
}

fn one_json(study: &Study<'_>, answer: &WhyNot) -> Value {
    let plan = &study.rules.plans()[answer.template as usize];
    let by = |number: usize| {
        let made = &study.matches[number];
        json!({
            "template": &*study.plan(made).name,
            "match": number + 1,
            "glue": Described::new(study, made.glue).stamp(),
        })
    };
    let tries: Vec<Value> = answer
        .tries
        .iter()
        .map(|one| {
            let failure = one.attempt.failure.as_ref();
            let nodes = named(plan, one).into_iter().map(|(name, node)| {
                let node = Described::new(study, node).json();
                json!({ "name": name, "node": node })
            });
            let taken = one
                .taken
                .iter()
                .map(|(_, node, number)| json!({ "node": Described::new(study, *node).stamp(), "by": by(*number) }));
            let words = Words { plan, all: study.rules.plans() };
            let values = failure.map(|failure| {
                let found = operands(study, plan, failure);
                found.into_iter().map(|(words, value)| json!({ "of": words, "is": value })).collect::<Vec<_>>()
            });
            json!({
                "role": slot_name(plan, one.role),
                "glue": Described::new(study, one.attempt.glue).stamp(),
                "passed": one.attempt.passed,
                "steps": one.attempt.steps,
                "nodes": nodes.collect::<Value>(),
                "stops": reason(study, plan, one),
                "step": failure.and_then(|failure| failure.step_of(plan)).map(|step| words.step(step)),
                "values": values,
                "nearest": nearest(study, plan, &one.attempt).iter().map(|near| near_json(study, near)).collect::<Value>(),
                "taken": taken.collect::<Value>(),
            })
        })
        .collect();
    json!({
        "template": &*plan.name,
        "node": Described::new(study, answer.node).json(),
        "span_rule": rule(study, answer.node).map(|rule| json!({ "section": rule.section, "when": rule.when })),
        "matches": answer.committed().map(|number| number + 1),
        "taken_by": answer.consumer.map(by),
        "tries": tries,
    })
}
