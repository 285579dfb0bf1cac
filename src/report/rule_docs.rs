//! A rule file as a page of a manual: its templates with their comments, nodes in the paper's notation, conditions and
//! operations, and the relations that its rules define.

use indexmap::IndexMap;

use crate::datalog::ast::{
    Condition, KindPattern, MatchItem, NodePattern, Program, Rule, Spanned, Statement, Template, Term,
};
use crate::datalog::event_template::EventTemplate;
use crate::datalog::syntax::{
    print_asserted, print_atom, print_condition, print_kind, print_lookup, print_retired, print_rule, print_statements,
    print_term,
};
use crate::query::schema;
use crate::tlc::operations::OPERATIONS;

/// What a program says, as Markdown. Only what stands in the file of that number, from 0, is described.
pub fn markdown(program: &Program, file: u32) -> String {
    let name = program.files.get(file as usize).map_or("rules", |file| &*file.name);
    let mut templates: Vec<&Template> =
        program.templates.iter().filter(|template| template.name.span.file == file).collect();
    templates.sort_by_key(|template| template.order.as_ref().map_or(i64::MAX, |order| order.value));
    let on_events = program.event_templates.iter().any(|template| template.name.span.file == file);
    let what = if templates.is_empty() && !on_events { "Rules" } else { "Templates" };
    let mut text = format!("# {what} of `{name}`\n");
    if templates.len() > 1 {
        text.push_str("\n| order | template | |\n|---:|---|---|\n");
        for template in &templates {
            let order = template.order.as_ref().map(|order| order.value.to_string()).unwrap_or_default();
            let first = template.doc.lines().next().unwrap_or_default();
            text.push_str(&format!("| {order} | `{}` | {} |\n", template.name.value, cell(first)));
        }
    }
    for template in &templates {
        self::template(&mut text, template);
    }
    program.event_templates.iter().filter(|one| one.name.span.file == file).for_each(|one| on_event(&mut text, one));
    relations(&mut text, program, file);
    operations(&mut text, &templates);
    text
}

/// Text that may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn template(text: &mut String, template: &Template) {
    text.push_str(&format!("\n## {}\n", template.name.value));
    if !template.doc.is_empty() {
        text.push_str(&format!("\n{}\n", template.doc));
    }
    if let Some(order) = &template.order {
        let longest = if template.longest { " It takes the longest sequence that fits." } else { "" };
        text.push_str(&format!("\nTried at order {}.{longest}\n", order.value));
    }
    text.push_str("\n| node | label | |\n|---|---|---|\n");
    rows(text, &template.items, "");
    if !template.conditions.is_empty() {
        text.push_str("\nWhere:\n\n");
        for condition in &template.conditions {
            text.push_str(&format!("- `{}`\n", print_condition(&condition.value)));
        }
    }
    if !template.statements.is_empty() {
        text.push_str("\nModel:\n\n```text\n");
        text.push_str(&print_statements(&template.statements));
        text.push_str("```\n");
    }
}

/// The rows of nodes, each with what it is part of.
fn rows(text: &mut String, items: &[MatchItem], within: &str) {
    let and = if within.is_empty() { "" } else { ", " };
    for item in items {
        match item {
            MatchItem::Node(node) => row(text, node, within),
            MatchItem::Repeat(repeat) => {
                let min = repeat.min.as_ref().map(|min| format!(", at least {}", min.value)).unwrap_or_default();
                let round = format!("{within}{and}for each {} in 1..{}{min}", repeat.index.value, repeat.count.value);
                repeat.nodes.iter().for_each(|node| row(text, node, &round));
            }
            MatchItem::Choice(choice) => {
                for (number, way) in (1..).zip(&choice.ways) {
                    let part = if choice.optional { "optional".to_owned() } else { format!("alternative {number}") };
                    rows(text, way, &format!("{within}{and}{part}"));
                }
            }
        }
    }
}

/// A template on an event: what it looks up, what it does.
fn on_event(text: &mut String, template: &EventTemplate) {
    text.push_str(&format!("\n## {}\n", template.name.value));
    if !template.doc.is_empty() {
        text.push_str(&format!("\n{}\n", template.doc));
    }
    let order = template.order.as_ref().map(|order| format!(", at order {}", order.value)).unwrap_or_default();
    if let Some(event) = &template.event {
        let parameters: Vec<&str> = event.parameters.iter().map(|parameter| &*parameter.value).collect();
        text.push_str(&format!("\nAsked at `{}({})`{order}.\n", event.name.value, parameters.join(", ")));
    }
    let conditions = template.conditions.iter().map(|condition| print_condition(&condition.value));
    for (what, lines) in [
        ("Looks up", template.lookups.iter().map(print_lookup).collect::<Vec<_>>()),
        ("Where", conditions.collect()),
        ("Asserts", template.asserted.iter().map(print_asserted).collect()),
        ("Model", template.records.iter().map(print_atom).collect()),
        ("Retires", template.retired.iter().map(print_retired).collect()),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{what}:\n\n"));
            for line in lines {
                text.push_str(&format!("- `{line}`\n"));
            }
        }
    }
}

/// A node as the paper writes it: `[j, k, m, l | i, v]`.
fn row(text: &mut String, node: &NodePattern, round: &str) {
    let index = node.index.as_ref().map(|index| format!("[{}]", index.value)).unwrap_or_default();
    let term = |term: &Spanned<Term>| print_term(&term.value);
    let kind = match &node.kind.value {
        KindPattern::Any => "any".to_owned(),
        kind => print_kind(kind),
    };
    let label = format!(
        "[{}, {}, {}, {kind} | {}, {}]",
        term(&node.scenario),
        term(&node.thread),
        term(&node.position),
        term(&node.task),
        term(&node.counter)
    );
    let attributes: Vec<String> =
        node.attributes.iter().map(|(name, value)| format!("{} is `{}`", name.value, cell(&term(value)))).collect();
    let mut words: Vec<&str> = attributes.iter().map(String::as_str).collect();
    if !round.is_empty() {
        words.insert(0, round);
    }
    text.push_str(&format!("| {}{index} | `{}` | {} |\n", node.name.value, cell(&label), words.join("; ")));
}

/// The relations that the file's rules define, and those of the facts that anything in it asks.
fn relations(text: &mut String, program: &Program, file: u32) {
    let mut defined: IndexMap<&str, Vec<&Rule>> = IndexMap::new();
    for rule in program.rules.iter().filter(|rule| rule.span.file == file) {
        defined.entry(&*rule.head.relation.value).or_default().push(rule);
    }
    if !defined.is_empty() {
        text.push_str("\n## Relations\n");
    }
    for (name, rules) in &defined {
        text.push_str(&format!("\n### {name}\n"));
        for doc in rules.iter().map(|rule| &rule.doc).filter(|doc| !doc.is_empty()) {
            text.push_str(&format!("\n{doc}\n"));
        }
        text.push_str("\n```text\n");
        for rule in rules {
            text.push_str(&print_rule(&Rule { doc: String::new(), ..(*rule).clone() }));
        }
        text.push_str("```\n");
    }
    let mut asked: Vec<&str> = Vec::new();
    let mut open: Vec<&Spanned<Condition>> = Vec::new();
    open.extend(program.rules.iter().filter(|rule| rule.span.file == file).flat_map(|rule| &rule.body));
    let templates = program.templates.iter().filter(|template| template.name.span.file == file);
    open.extend(templates.flat_map(|template| &template.conditions));
    while let Some(condition) = open.pop() {
        match &condition.value {
            Condition::Atom { atom, .. } => asked.push(&atom.relation.value),
            Condition::Aggregate { body, .. } | Condition::Rounds { body, .. } => open.extend(body),
            Condition::Compare(..) | Condition::NotStarts { .. } => {}
        }
    }
    let own = |name: &str| program.rules.iter().any(|rule| *rule.head.relation.value == *name);
    let facts: Vec<_> = schema::described().filter(|(name, ..)| asked.contains(name) && !own(name)).collect();
    if !facts.is_empty() {
        text.push_str("\n## Facts asked\n\n| relation | says |\n|---|---|\n");
        for (name, columns, words) in facts {
            text.push_str(&format!("| `{name}/{}` | {} |\n", columns.len(), cell(words)));
        }
    }
}

/// What the modelling operations mean that the templates use.
fn operations(text: &mut String, templates: &[&Template]) {
    let mut used: Vec<&str> = Vec::new();
    let mut open: Vec<&Statement> = templates.iter().flat_map(|template| &template.statements).collect();
    while let Some(statement) = open.pop() {
        match statement {
            Statement::NewEntry { .. } => used.push("newEntry"),
            Statement::Operation { name, .. } => used.push(&name.value),
            Statement::For { body, .. } => open.extend(body),
        }
    }
    if used.is_empty() {
        return;
    }
    text.push_str("\n## Modelling operations\n\n| operation | means |\n|---|---|\n");
    if used.contains(&"newEntry") {
        text.push_str("| `newEntry` | opens an entry of a type (R, A or F) on a task, for this visit |\n");
    }
    for operation in OPERATIONS.iter().filter(|operation| used.contains(&operation.name)) {
        text.push_str(&format!("| `{}` | {} |\n", operation.name, cell(operation.doc)));
    }
}
