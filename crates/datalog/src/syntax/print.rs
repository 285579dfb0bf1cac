//! Rule files in their canonical form. What is printed reads back as the same items.

use std::fmt::Write;

use crate::ast::{
    Argument, Atom, Condition, Ident, Index, KindPattern, MatchItem, NodePattern, Operator, Output, Program, Repeat,
    Rule, Spanned, Statement, Template, Term, Variable,
};
use crate::event_template::{Asserted, EventTemplate, Lookup, Retired};
use crate::syntax::Item;

/// The text of a program as one file: its templates, then its rules, then what it exports and answers with.
pub fn print(program: &Program) -> String {
    let templates = program.templates.iter().map(print_template);
    let templates = templates.chain(program.event_templates.iter().map(print_event_template));
    let rules = program.rules.iter().map(print_rule);
    let exports = (!program.exports.is_empty()).then(|| print_export(&program.exports));
    let outputs = (!program.outputs.is_empty()).then(|| print_outputs(&program.outputs));
    templates.chain(rules).chain(exports).chain(outputs).collect::<Vec<_>>().join("\n")
}

/// The text of a file's items, in their order.
pub fn print_items(items: &[Item]) -> String {
    let texts = items.iter().map(|item| match item {
        Item::Template(template) => print_template(template),
        Item::EventTemplate(template) => print_event_template(template),
        Item::Rule(rule) => print_rule(rule),
        Item::Use(used) => format!("use {}\n", Quoted(&used.file.value)),
        Item::Export(export) => print_export(&export.relations),
        Item::Output(outputs) => print_outputs(&outputs.relations),
    });
    let mut text = String::new();
    for (index, item) in texts.enumerate() {
        let simple = |item: &Item| match item {
            Item::Template(_) | Item::EventTemplate(_) => false,
            Item::Rule(rule) => rule.doc.is_empty(),
            Item::Use(_) | Item::Export(_) | Item::Output(_) => true,
        };
        if index > 0 && !(simple(&items[index]) && simple(&items[index - 1])) {
            text.push('\n');
        }
        text.push_str(&item);
    }
    text
}

fn print_export(relations: &[Ident]) -> String {
    let names: Vec<&str> = relations.iter().map(|relation| &*relation.value).collect();
    format!("export {}.\n", names.join(", "))
}

fn print_outputs(outputs: &[Output]) -> String {
    let texts = outputs.iter().map(|output| match &output.columns {
        None => output.relation.value.to_string(),
        Some(columns) => {
            let names: Vec<&str> = columns.iter().map(|column| &*column.value).collect();
            format!("{}({})", output.relation.value, names.join(", "))
        }
    });
    format!("output {}.\n", texts.collect::<Vec<_>>().join(", "))
}

/// The text of a rule, ending in a newline.
pub fn print_rule(rule: &Rule) -> String {
    let mut text = String::new();
    doc(&mut text, &rule.doc);
    atom(&mut text, &rule.head);
    if !rule.body.is_empty() {
        text.push_str(" :- ");
        conditions(&mut text, &rule.body);
    }
    text.push_str(".\n");
    text
}

/// The text of a template, ending in a newline.
pub fn print_template(template: &Template) -> String {
    let mut text = String::new();
    doc(&mut text, &template.doc);
    writeln!(text, "template {} {{", template.name.value).expect("a String takes all");
    if let Some(order) = &template.order {
        text.push_str(&format!("  order {}\n", order.value));
    }
    if template.longest {
        text.push_str("  longest\n");
    }
    for expect in &template.expects {
        text.push_str(&format!("  expect {}\n", Quoted(&expect.value)));
    }
    if !template.items.is_empty() {
        text.push_str("  match {\n");
        template.items.iter().for_each(|item| match_item(&mut text, 4, item));
        text.push_str("  }\n");
    }
    if !template.conditions.is_empty() {
        text.push_str("  where { ");
        conditions(&mut text, &template.conditions);
        text.push_str(" }\n");
    }
    if !template.statements.is_empty() {
        text.push_str("  model {\n");
        statements(&mut text, 4, &template.statements);
        text.push_str("  }\n");
    }
    text.push_str("}\n");
    text
}

/// The text of a template on an event, ending in a newline.
pub fn print_event_template(template: &EventTemplate) -> String {
    let mut text = String::new();
    doc(&mut text, &template.doc);
    text.push_str(&format!("template {} {{\n", template.name.value));
    if let Some(order) = &template.order {
        text.push_str(&format!("  order {}\n", order.value));
    }
    if let Some(event) = &template.event {
        let parameters: Vec<&str> = event.parameters.iter().map(|parameter| &*parameter.value).collect();
        text.push_str(&format!("  on {}({})\n", event.name.value, parameters.join(", ")));
    }
    lines(&mut text, "match", template.lookups.iter().map(print_lookup));
    if !template.conditions.is_empty() {
        text.push_str("  where { ");
        conditions(&mut text, &template.conditions);
        text.push_str(" }\n");
    }
    lines(&mut text, "assert", template.asserted.iter().map(print_asserted));
    lines(&mut text, "model", template.records.iter().map(print_atom));
    lines(&mut text, "retire", template.retired.iter().map(print_retired));
    text.push_str("}\n");
    text
}

fn lines(text: &mut String, section: &str, all: impl ExactSizeIterator<Item = String>) {
    if all.len() > 0 {
        text.push_str(&format!("  {section} {{\n"));
        all.for_each(|one| text.push_str(&format!("    {one}\n")));
        text.push_str("  }\n");
    }
}

/// The text of a look-up.
pub fn print_lookup(lookup: &Lookup) -> String {
    match lookup {
        Lookup::Value { variable, function } => format!("{} = {}", variable.value, print_atom(function)),
        Lookup::Path { name, count, from, to, .. } => {
            format!("path {}[1..{}] from {} to {}", name.value, count.value, from.value, to.value)
        }
    }
}

/// The text of what is asserted.
pub fn print_asserted(asserted: &Asserted) -> String {
    match asserted {
        Asserted::New { variable, function } => format!("{} = {}", variable.value, print_atom(function)),
        Asserted::Fact(fact) => print_atom(fact),
    }
}

/// The text of what is retired.
pub fn print_retired(retired: &Retired) -> String {
    match retired {
        Retired::Fact(fact) => print_atom(fact),
        Retired::Path { name, first, last, .. } => {
            format!("{}[{}..{}]", name.value, bound(&first.value), bound(&last.value))
        }
    }
}

/// The text of an atom.
pub fn print_atom(value: &Atom) -> String {
    let mut text = String::new();
    atom(&mut text, value);
    text
}

fn bound(Index { variable, offset }: &Index) -> String {
    match variable {
        None => offset.to_string(),
        Some(name) if *offset == 0 => name.to_string(),
        Some(name) => format!("{name}{offset:+}"),
    }
}

/// The text of a term.
pub fn print_term(value: &Term) -> String {
    let mut text = String::new();
    term(&mut text, value);
    text
}

/// The text of a type label.
pub fn print_kind(value: &KindPattern) -> String {
    let mut text = String::new();
    kind(&mut text, value);
    text
}

/// The text of a condition.
pub fn print_condition(value: &Condition) -> String {
    let mut text = String::new();
    condition(&mut text, value);
    text
}

/// The text of statements, a line each, ending in a newline.
pub fn print_statements(all: &[Statement]) -> String {
    let mut text = String::new();
    statements(&mut text, 0, all);
    text
}

/// A string in quotes, with escapes.
struct Quoted<'t>(&'t str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

fn doc(text: &mut String, doc: &str) {
    if doc.is_empty() {
        return;
    }
    for line in doc.split('\n') {
        text.push_str(if line.is_empty() { "///" } else { "/// " });
        text.push_str(line);
        text.push('\n');
    }
}

fn repeat_block(text: &mut String, indent: usize, repeat: &Repeat) {
    text.push_str(&format!("{}repeat {} in 1..{}", " ".repeat(indent), repeat.index.value, repeat.count.value));
    if let Some(min) = &repeat.min {
        text.push_str(&format!(" min {}", min.value));
    }
    text.push_str(" {\n");
    for node in &repeat.nodes {
        node_line(text, indent + 2, node);
    }
    text.push_str(&format!("{}}}\n", " ".repeat(indent)));
}

fn match_item(text: &mut String, indent: usize, item: &MatchItem) {
    match item {
        MatchItem::Node(node) => node_line(text, indent, node),
        MatchItem::Repeat(repeat) => repeat_block(text, indent, repeat),
        MatchItem::Choice(choice) => {
            let space = " ".repeat(indent);
            text.push_str(&space);
            text.push_str(if choice.optional { "optional " } else { "" });
            for (number, way) in choice.ways.iter().enumerate() {
                text.push_str(if number > 0 { " or {\n" } else { "{\n" });
                for item in way {
                    match_item(text, indent + 2, item);
                }
                text.push_str(&format!("{space}}}"));
            }
            text.push('\n');
        }
    }
}

fn node_line(text: &mut String, indent: usize, node: &NodePattern) {
    text.push_str(&" ".repeat(indent));
    text.push_str(&node.name.value);
    if let Some(index) = &node.index {
        text.push_str(&format!("[{}]", index.value));
    }
    text.push_str(" = ");
    kind(text, &node.kind.value);
    text.push(' ');
    label(text, [&node.scenario, &node.thread, &node.position, &node.task, &node.counter]);
    if !node.attributes.is_empty() {
        text.push_str(" { ");
        for (index, (name, value)) in node.attributes.iter().enumerate() {
            text.push_str(if index > 0 { ", " } else { "" });
            text.push_str(&name.value);
            text.push_str(": ");
            term(text, &value.value);
        }
        text.push_str(" }");
    }
    text.push('\n');
}

fn kind(text: &mut String, kind: &KindPattern) {
    let (word, thread) = match kind {
        KindPattern::Begin => ("Be", None),
        KindPattern::Activity => ("Ac", None),
        KindPattern::End => ("Ed", None),
        KindPattern::Fork(thread) => ("Fk", Some(thread)),
        KindPattern::Join(thread) => ("Jn", Some(thread)),
        KindPattern::Any => ("_", None),
    };
    text.push_str(word);
    if let Some(thread) = thread {
        text.push('(');
        term(text, &thread.value);
        text.push(')');
    }
}

fn label(text: &mut String, terms: [&Spanned<Term>; 5]) {
    for (before, part) in ["[", ", ", ", ", " | ", ", "].into_iter().zip(terms) {
        text.push_str(before);
        term(text, &part.value);
    }
    text.push(']');
}

fn statements(text: &mut String, indent: usize, all: &[Statement]) {
    for statement in all {
        text.push_str(&" ".repeat(indent));
        match statement {
            Statement::NewEntry { entry, interaction, task, .. } => {
                variable(text, &entry.value);
                text.push_str(&format!(" := newEntry({}, ", interaction.value));
                term(text, &task.value);
                text.push_str(")\n");
            }
            Statement::Operation { name, arguments, .. } => {
                text.push_str(&name.value);
                text.push('(');
                for (index, argument) in arguments.iter().enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    match &argument.value {
                        Argument::Term(value) => term(text, value),
                        Argument::Node(node) => {
                            label(text, [&node.scenario, &node.thread, &node.position, &node.task, &node.counter]);
                        }
                    }
                }
                text.push_str(")\n");
            }
            Statement::For { index, from, to, body, .. } => {
                text.push_str(&format!("for {} in {from}..{} {{\n", index.value, to.value));
                statements(text, indent + 2, body);
                text.push_str(&" ".repeat(indent));
                text.push_str("}\n");
            }
        }
    }
}

fn conditions(text: &mut String, all: &[Spanned<Condition>]) {
    for (index, one) in all.iter().enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        condition(text, &one.value);
    }
}

fn condition(text: &mut String, condition: &Condition) {
    match condition {
        Condition::Compare(left, comparison, right) => {
            term(text, &left.value);
            text.push_str(&format!(" {comparison} "));
            term(text, &right.value);
        }
        Condition::Atom { negated, atom: inner } => {
            text.push_str(if *negated { "!" } else { "" });
            atom(text, inner);
        }
        Condition::NotStarts { template, node } => {
            text.push_str(&format!("!starts({}, ", template.value));
            term(text, &node.value);
            text.push(')');
        }
        Condition::Rounds { quantifier, index, body } => {
            text.push_str(&format!("{} {} {{ ", quantifier.word(), index.value));
            conditions(text, body);
            text.push_str(" }");
        }
        Condition::Aggregate { result, function, over, body } => {
            text.push_str(&format!("{} = {function} ", result.value));
            if let Some(over) = over {
                // Brackets where the term could not be told from one that goes on with the function's name.
                let plain = matches!(over.value, Term::Variable(..) | Term::Wildcard | Term::Symbol(_));
                text.push_str(if plain { "" } else { "(" });
                term(text, &over.value);
                text.push_str(if plain { " " } else { ") " });
            }
            text.push_str("{ ");
            conditions(text, body);
            text.push_str(" }");
        }
    }
}

fn atom(text: &mut String, atom: &Atom) {
    text.push_str(&atom.relation.value);
    text.push('(');
    for (index, argument) in atom.arguments.iter().enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        term(text, &argument.value);
    }
    text.push(')');
}

fn variable(text: &mut String, variable: &Variable) {
    text.push_str(&variable.name);
    if let Some(Index { variable, offset }) = &variable.index {
        match variable {
            None => text.push_str(&format!("[{offset}]")),
            Some(name) if *offset == 0 => text.push_str(&format!("[{name}]")),
            Some(name) => text.push_str(&format!("[{name}{offset:+}]")),
        }
    }
}

fn term(text: &mut String, value: &Term) {
    match value {
        Term::Wildcard => text.push('_'),
        Term::Integer(number) => text.push_str(&number.to_string()),
        // Debug keeps a fraction or an exponent, so that it reads back as what it is.
        Term::Float(number) => text.push_str(&format!("{number:?}")),
        Term::Symbol(symbol) => text.push_str(&Quoted(symbol).to_string()),
        Term::Variable(name, offset) => {
            variable(text, name);
            if *offset == i64::MIN {
                text.push_str(&format!("+{offset}")); // its magnitude alone is no number of the language
            } else if *offset != 0 {
                text.push_str(&format!("{offset:+}"));
            }
        }
        Term::Arithmetic(left, operator, right) => {
            operand(text, &left.value, *operator, false);
            text.push_str(&format!(" {operator} "));
            operand(text, &right.value, *operator, true);
        }
    }
}

/// An operand, in brackets where it would otherwise belong to another operator.
fn operand(text: &mut String, value: &Term, outer: Operator, right: bool) {
    let strength = |operator: Operator| match operator {
        Operator::Add | Operator::Subtract => 0,
        Operator::Multiply | Operator::Divide | Operator::Remainder => 1,
    };
    let inner = match value {
        Term::Arithmetic(_, operator, _) => Some(strength(*operator)),
        Term::Variable(_, offset) if *offset != 0 => Some(0),
        _ => None,
    };
    let brackets = inner.is_some_and(|inner| inner < strength(outer) || (right && inner == strength(outer)));
    text.push_str(if brackets { "(" } else { "" });
    term(text, value);
    text.push_str(if brackets { ")" } else { "" });
}
