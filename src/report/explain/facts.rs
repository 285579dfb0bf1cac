//! Rows of relations in words, why they hold, and why they do not.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::datalog::ast::{Aggregate, Condition, Program, Term};
use crate::datalog::base::Type;
use crate::datalog::eval::{Attempt, Cause, Denied, Derivation, Failure, Near, Relation};
use crate::datalog::syntax::{print_condition, print_term};
use crate::datalog::value::Value;
use crate::diagnostic::Place;
use crate::diagnostic::quantity::counted;
use crate::query::{Question, TraceFacts};
use crate::report::explain::view::{place_json, place_words};
use crate::report::look::{Look, Tone};

/// How much of a proof is shown.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Levels of premises.
    pub depth: usize,
    /// Lines of one proof.
    pub lines: usize,
}

/// Levels beyond which lines are numbered instead of indented further.
const INDENTED: usize = 30;

/// What is needed to write rows down.
pub struct Words<'a, 'f> {
    /// The rules.
    pub program: &'a Program,
    /// What is asked of them.
    pub question: &'a Question,
    /// What they are about.
    pub facts: &'a TraceFacts<'f>,
}

impl Words<'_, '_> {
    /// The name of a relation.
    pub fn name(&self, relation: Relation) -> &str {
        match relation {
            Relation::Base(base) => self.question.schema.columns(base).0,
            Relation::Derived(_) => self.question.rules.name(relation).unwrap_or_default(),
        }
    }

    /// What the values of a column are.
    pub fn column(&self, relation: Relation, column: usize) -> Type {
        let types = match relation {
            Relation::Base(base) => self.question.schema.columns(base).1,
            Relation::Derived(number) => {
                self.question.types.get(number as usize).map(Vec::as_slice).unwrap_or_default()
            }
        };
        types.get(column).copied().unwrap_or(Type::Any)
    }

    /// A value as facts on the command line have it.
    fn value(&self, kind: Type, value: Value) -> String {
        let quoted = |text: &str| print_term(&Term::Symbol(text.into()));
        if let Some(name) = value.as_symbol() {
            return quoted(&self.facts.text(name));
        }
        if let Some(number) = value.as_decimal() {
            return print_term(&Term::Float(number));
        }
        match (kind, self.facts.place(kind, value), self.facts.label(kind, value)) {
            (Type::Node, Some(place @ Place::Line { .. }), _) => quoted(&place_words(&place)),
            (Type::Node, Some(place), Some(label)) => format!("{} at {}", quoted(&label), place_words(&place)),
            (_, _, Some(label)) => quoted(&label),
            _ => value.as_integer().unwrap_or_default().to_string(),
        }
    }

    /// Where the trace tells of what a row is about. Nodes tell their own places.
    fn places(&self, relation: Relation, row: &[Option<Value>]) -> String {
        let mut places: Vec<String> = Vec::new();
        for (column, value) in row.iter().enumerate() {
            let kind = self.column(relation, column);
            let place = value.filter(|_| kind != Type::Node).and_then(|value| self.facts.place(kind, value));
            let words = place.map(|place| match place {
                Place::Item { file, .. } => file.to_string(),
                place => place_words(&place),
            });
            places.extend(words.filter(|words| !places.contains(words)));
        }
        if places.is_empty() { String::new() } else { format!(" of {}", places.join(", ")) }
    }

    fn cell(&self, relation: Relation, column: usize, value: Option<Value>) -> String {
        value.map_or_else(|| "_".to_owned(), |value| self.value(self.column(relation, column), value))
    }

    /// A row as a rule's text would have it; `_` for what is open.
    pub fn row(&self, relation: Relation, row: &[Option<Value>]) -> String {
        let cells: Vec<String> =
            row.iter().enumerate().map(|(column, value)| self.cell(relation, column, *value)).collect();
        format!("{}({})", self.name(relation), cells.join(", "))
    }

    fn full(&self, relation: Relation, row: &[Value]) -> String {
        let row: Vec<Option<Value>> = row.iter().copied().map(Some).collect();
        self.row(relation, &row)
    }

    fn rule(&self, rule: usize) -> String {
        let (file, line) = self.program.line(self.program.rules[rule].head.span);
        format!("{file}:{line}")
    }

    /// A proof for people: each row once, what it rests on below it.
    pub fn proof(&self, derivation: &Derivation, extent: Extent) -> String {
        let mut text = String::new();
        let mut shown = vec![false; derivation.steps.len()];
        let mut open = vec![(Line::Row(0), 0usize)];
        let mut lines = 0;
        while let Some((line, depth)) = open.pop() {
            let indent = "  ".repeat(depth.min(INDENTED));
            let place = match line {
                Line::Row(place) => place,
                Line::LeftOut(rows) => {
                    text.push_str(&format!("{indent}… and {rows} more\n"));
                    continue;
                }
            };
            let step = &derivation.steps[place];
            let aggregated = self.question.rules.is_aggregated(step.relation);
            if aggregated
                && matches!(step.because, Cause::Rule(_))
                && let [only] = step.premises[..]
            {
                open.push((Line::Row(only), depth));
                continue;
            }
            if lines == extent.lines {
                let left = shown.iter().filter(|shown| !**shown).count();
                text.push_str(&format!("… and {} more\n", counted(left as u64, "row")));
                break;
            }
            lines += 1;
            let before = std::mem::replace(&mut shown[place], true);
            let (mut words, mut source) = self.step(derivation, place);
            if before && !step.premises.is_empty() {
                "shown above".clone_into(&mut source);
            }
            if depth > INDENTED {
                words = format!("({depth}) {words}");
            }
            let mut premises = if before { &[][..] } else { &step.premises[..] };
            if depth == extent.depth && !premises.is_empty() {
                source.push_str(&format!("; {} left out", counted(premises.len() as u64, "premise")));
                premises = &[];
            }
            text.push_str(&format!("{indent}{words}  {source}\n"));
            if step.left_out > 0 && !premises.is_empty() {
                open.push((Line::LeftOut(step.left_out), depth + 1));
            }
            open.extend(premises.iter().rev().map(|premise| (Line::Row(*premise), depth + 1)));
        }
        text
    }

    /// A row of a proof, and where it comes from.
    fn step(&self, derivation: &Derivation, place: usize) -> (String, String) {
        let step = &derivation.steps[place];
        match step.because {
            Cause::Given => {
                (self.row(step.relation, &step.row), format!("a fact{}", self.places(step.relation, &step.row)))
            }
            Cause::Replaced => {
                (self.row(step.relation, &step.row), "held by a row that a better one has replaced".to_owned())
            }
            Cause::Absent => (format!("no {}", self.row(step.relation, &step.row)), "no such row".to_owned()),
            Cause::Aggregate(function, value) => {
                let value = value.map_or_else(|| "_".to_owned(), |value| self.value(Type::Any, value));
                let rows = step.premises.len() + step.left_out;
                (format!("{} = {value}", function_name(function)), format!("over {}", counted(rows as u64, "row")))
            }
            Cause::Rule(rule) if self.question.rules.is_aggregated(step.relation) => {
                ("all of".to_owned(), format!("by {}", self.rule(rule)))
            }
            Cause::Rule(rule) => {
                let fact = self.program.rules[rule].body.is_empty();
                let by = if fact { "stands in" } else { "by" };
                (self.row(step.relation, &step.row), format!("{by} {}", self.rule(rule)))
            }
        }
    }

    /// A proof for machines: its rows as a list, premises by their places there.
    pub fn proof_json(&self, derivation: &Derivation) -> Json {
        let rows = derivation.steps.iter().map(|step| {
            let mut row = self.row_json(step.relation, &step.row);
            let more = match step.because {
                Cause::Given => json!({ "because": "fact" }),
                Cause::Absent => json!({ "because": "absent" }),
                Cause::Replaced => json!({ "because": "replaced" }),
                Cause::Aggregate(function, value) => json!({
                    "because": function_name(function),
                    "value": value.map(|value| self.json(Type::Any, value)),
                    "rows": step.premises.len() + step.left_out,
                    "left_out": step.left_out,
                }),
                Cause::Rule(rule) => {
                    let (file, line) = self.program.line(self.program.rules[rule].head.span);
                    json!({ "because": "rule", "rule": { "file": &*file, "line": line } })
                }
            };
            merge(&mut row, more);
            merge(&mut row, json!({ "premises": step.premises }));
            row
        });
        rows.collect()
    }

    fn json(&self, kind: Type, value: Value) -> Json {
        if let Some(name) = value.as_symbol() {
            return json!(&*self.facts.text(name));
        }
        let Some(number) = value.as_integer() else { return json!(value.as_decimal()) };
        let Some(noun) = noun(kind) else { return json!(number) };
        let called = match self.facts.label(kind, value) {
            Some(_) if kind == Type::Node => json!(self.value(kind, value)),
            Some(label) => json!(label),
            None => json!(number),
        };
        let mut json = json!({ noun: called, "number": number });
        if let Some(place) = self.facts.place(kind, value) {
            json["place"] = place_json(&place);
        }
        json
    }

    fn row_json(&self, relation: Relation, row: &[Option<Value>]) -> Json {
        let arguments: Vec<Json> = row
            .iter()
            .enumerate()
            .map(|(column, value)| value.map_or(Json::Null, |value| self.json(self.column(relation, column), value)))
            .collect();
        let name = self.name(relation);
        json!({ "relation": if self.question.rules.is_aggregated(relation) { Json::Null } else { json!(name) }, "arguments": arguments })
    }

    /// Why a row does not hold, for people: its nearest rule, then that of the row which this lacks, and so on.
    pub fn why_not(&self, followed: &[Denied], look: Look) -> String {
        let mut text = String::new();
        for (depth, denied) in followed.iter().enumerate() {
            let one = self.denied(denied, look);
            let indent = "  ".repeat(depth);
            one.lines().for_each(|line| text.push_str(&format!("{indent}{line}\n")));
        }
        text
    }

    fn denied(&self, Denied { relation, pattern, why }: &Denied, look: Look) -> String {
        let mut text = format!("{} does not hold\n", look.paint(Tone::Heading, &self.row(*relation, pattern)));
        match why.nearest_attempt() {
            Some(attempt) => self.attempt(&mut text, *relation, attempt, why.attempts.len(), look),
            None => text.push_str(match relation {
                Relation::Base(_) => "the trace has no such fact\n",
                Relation::Derived(_) => "no rule gives rows of it\n",
            }),
        }
        if !why.near.is_empty() {
            text.push_str("rows that hold and differ in one column:\n");
            self.near(&mut text, *relation, &why.near);
        }
        text
    }

    /// How far the nearest rule got.
    fn attempt(&self, text: &mut String, relation: Relation, attempt: &Attempt, rules: usize, look: Look) {
        let of = if rules == 1 { String::new() } else { format!(", the nearest of {rules} rules") };
        text.push_str(&format!(
            "rule {}{of}: {} of {} hold\n",
            self.rule(attempt.rule),
            attempt.held,
            counted(attempt.literals as u64, "literal")
        ));
        let bindings = self.bindings(attempt);
        if !bindings.is_empty() {
            let bindings: Vec<String> =
                bindings.iter().map(|(name, kind, value)| format!("{name} = {}", self.value(*kind, *value))).collect();
            text.push_str(&format!("with {}\n", bindings.join(", ")));
        }
        text.push_str(&format!("{}: {}\n", look.paint(Tone::Caution, "stops"), self.failure(relation, attempt)));
        if let Failure::NoRow { relation, near, .. } = &attempt.failure {
            self.near(text, *relation, near);
        }
        if attempt.cut {
            text.push_str("there are more ways through this rule than were tried\n");
        }
    }

    fn near(&self, text: &mut String, relation: Relation, near: &[Near]) {
        for one in near {
            text.push_str(&format!("  {}  differs in column {}\n", self.full(relation, &one.row), one.column + 1));
        }
    }

    /// The literal that failed, with its values.
    fn failure(&self, relation: Relation, attempt: &Attempt) -> String {
        let rule = &self.program.rules[attempt.rule];
        let literal = |place: usize| print_condition(&rule.body[place].value);
        match &attempt.failure {
            Failure::Head { column, gives } => {
                let gives = match gives {
                    Some(_) => format!("gives {} there", self.cell(relation, *column, *gives)),
                    None => "gives no number there".to_owned(),
                };
                format!("column {} of its head {gives}", column + 1)
            }
            Failure::NoRow { literal: place, relation, pattern, .. } => {
                format!("`{}`: there is no {}", literal(*place), self.row(*relation, pattern))
            }
            Failure::Row { literal: place, relation, row } => {
                format!("`{}`: {} holds", literal(*place), self.full(*relation, row))
            }
            Failure::Compare { literal: place, values } => {
                let kinds = self.kinds(attempt.rule);
                let kind = match &rule.body[*place].value {
                    Condition::Compare(left, ..) => match &left.value {
                        Term::Variable(variable, 0) => kinds.get(&variable.name).copied().unwrap_or(Type::Any),
                        _ => Type::Any,
                    },
                    _ => Type::Any,
                };
                let [left, right] =
                    values.map(|value| value.map_or_else(|| "no number".to_owned(), |value| self.value(kind, value)));
                format!("`{}`: the left is {left}, the right is {right}", literal(*place))
            }
            Failure::Aggregate { literal: place, value, wanted } => {
                let Some(value) = value else {
                    let reason = "over nothing, with a text among the values, or out of range";
                    return format!("`{}`: it has no value ({reason})", literal(*place));
                };
                let say = |value: Value| self.value(Type::Any, value);
                let wanted = wanted.map(|value| format!(", not {}", say(value))).unwrap_or_default();
                format!("`{}`: it is {}{wanted}", literal(*place), say(*value))
            }
        }
    }

    /// What the variables of a rule are, as far as relations say.
    fn kinds(&self, rule: usize) -> HashMap<Arc<str>, Type> {
        let mut kinds = HashMap::new();
        let rule = &self.program.rules[rule];
        let scopes = crate::datalog::scope::Scopes::of(self.program);
        let mut atoms = vec![&rule.head];
        atoms.extend(rule.body.iter().filter_map(|condition| match &condition.value {
            Condition::Atom { atom, .. } => Some(atom),
            _ => None,
        }));
        for atom in atoms {
            let base = self.question.schema.get(&atom.relation.value).map(Relation::Base);
            let Some(relation) = base.or_else(|| scopes.relation(&atom.relation).map(Relation::Derived)) else {
                continue;
            };
            for (column, term) in atom.arguments.iter().enumerate() {
                if let Term::Variable(variable, 0) = &term.value {
                    let kind = self.column(relation, column);
                    if kind != Type::Any {
                        kinds.insert(Arc::clone(&variable.name), kind);
                    }
                }
            }
        }
        kinds
    }

    fn bindings<'t>(&self, attempt: &'t Attempt) -> Vec<(&'t str, Type, Value)> {
        let kinds = self.kinds(attempt.rule);
        let kind = |name: &Arc<str>| kinds.get(name).copied().unwrap_or(Type::Any);
        attempt.bindings.iter().map(|(name, value)| (&**name, kind(name), *value)).collect()
    }

    /// Why a row does not hold, for machines; under `lacks`, why the row does not that the nearest rule lacks.
    pub fn why_not_json(&self, followed: &[Denied]) -> Json {
        let mut json = Json::Null;
        for denied in followed.iter().rev() {
            let lacks = std::mem::replace(&mut json, self.denied_json(denied));
            json["lacks"] = lacks;
        }
        json
    }

    fn denied_json(&self, Denied { relation, pattern, why }: &Denied) -> Json {
        let attempts: Json = why.attempts.iter().map(|attempt| self.attempt_json(*relation, attempt)).collect();
        let mut json = self.row_json(*relation, pattern);
        let near = self.near_json(*relation, &why.near);
        merge(&mut json, json!({ "holds": false, "nearest": why.nearest, "rules": attempts, "near": near }));
        json
    }

    fn attempt_json(&self, relation: Relation, attempt: &Attempt) -> Json {
        let (file, line) = self.program.line(self.program.rules[attempt.rule].head.span);
        let bindings: serde_json::Map<String, Json> = self
            .bindings(attempt)
            .into_iter()
            .map(|(name, kind, value)| (name.to_owned(), self.json(kind, value)))
            .collect();
        let near = match &attempt.failure {
            Failure::NoRow { relation, near: rows, .. } => self.near_json(*relation, rows),
            _ => json!([]),
        };
        json!({
            "rule": { "file": &*file, "line": line },
            "held": attempt.held,
            "literals": attempt.literals,
            "bindings": bindings,
            "stops": self.failure(relation, attempt),
            "near": near,
            "cut": attempt.cut,
        })
    }

    fn near_json(&self, relation: Relation, near: &[Near]) -> Json {
        let rows = near.iter().map(|one| {
            let row: Vec<Option<Value>> = one.row.iter().copied().map(Some).collect();
            let mut json = self.row_json(relation, &row);
            merge(&mut json, json!({ "differs": one.column + 1 }));
            json
        });
        rows.collect()
    }
}

/// A line of a proof.
enum Line {
    /// A row, by its place.
    Row(usize),
    /// So many rows of an aggregate are not shown.
    LeftOut(usize),
}

/// What a value of a type is, in one word; `None` for numbers and symbols.
pub fn noun(kind: Type) -> Option<&'static str> {
    match kind {
        Type::Node => Some("node"),
        Type::Entity(words) => Some(words.split_once(' ').map_or(words, |(_, noun)| noun)),
        _ => None,
    }
}

fn merge(into: &mut Json, more: Json) {
    if let (Json::Object(into), Json::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn function_name(function: Aggregate) -> String {
    match function {
        Aggregate::Count => "count".to_owned(),
        Aggregate::Sum => "sum".to_owned(),
        Aggregate::Min => "min".to_owned(),
        Aggregate::Max => "max".to_owned(),
        Aggregate::Mean => "mean".to_owned(),
        Aggregate::Percentile(part) => format!("p{part}"),
    }
}
