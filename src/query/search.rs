//! Whether a trace has what rules look for.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use regex_lite::Regex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::datalog::base::BaseFacts;
use crate::datalog::value::Value;
use crate::diagnostic::{Diagnostic, similar};
use crate::names::Name;
use crate::query::codes;
use crate::query::constants::{Constant, Number, Sought, Source, written};
use crate::query::facts::TraceFacts;
use crate::query::flow::Column;
use crate::query::patterns;
use crate::query::schema::{self, Own};
use crate::trace::TraceNames;

/// Most texts of a column that are kept for suggestions, and most numbers.
const KEPT: usize = 10_000;

/// How many missing texts of one table get a finding each.
const TOLD: usize = 8;

/// How many values a note lists.
const LISTED: usize = 8;

/// What was seen of a column, as far as it is needed.
#[derive(Debug, Default)]
struct Seen {
    names: FxHashSet<Name>,
    texts: BTreeSet<Arc<str>>,
    numbers: FxHashSet<Value>,
    /// The least and the greatest number.
    range: Option<(f64, f64)>,
    missing: BTreeSet<Sought>,
    missing_numbers: FxHashMap<Value, Sought>,
    /// Regular expressions that found no place yet.
    patterns: Vec<(Regex, Sought)>,
}

/// Looks for the constants of a question in the facts that come by.
#[derive(Debug)]
pub(super) struct Search<'q> {
    constants: &'q [Constant],
    columns: BTreeMap<Source, Seen>,
}

impl<'q> Search<'q> {
    pub(super) fn new(constants: &'q [Constant]) -> Self {
        let mut columns: BTreeMap<Source, Seen> = BTreeMap::new();
        for constant in constants {
            let seen = columns.entry(constant.source.clone()).or_default();
            if let Sought::Number(Number { value, .. }) = constant.sought {
                seen.missing_numbers.insert(value, constant.sought.clone());
            }
            if let Sought::Pattern(expression) = &constant.sought
                && let Ok(regex) = patterns::read(expression)
            {
                seen.patterns.push((regex, constant.sought.clone()));
            }
            seen.missing.insert(constant.sought.clone());
        }
        Self { constants, columns }
    }

    /// Looks at the facts about one or more operations, or about messages.
    pub(super) fn look(&mut self, facts: &TraceFacts<'_>, names: &TraceNames) {
        for (source, seen) in &mut self.columns {
            if seen.missing.is_empty() {
                continue;
            }
            if source.column == 1
                && let Some(own @ (Own::Attr | Own::Resource | Own::EventAttr)) = schema::own(source.relation)
            {
                // Only attributes that are wanted have rows, but the keys of all are known.
                for keys in facts.span_trees().map(crate::trace::SpanTree::seen) {
                    let keys = match own {
                        Own::Attr => &keys.attributes,
                        Own::Resource => &keys.resources,
                        _ => &keys.event_attributes,
                    };
                    for key in keys {
                        seen.take_text(*key, || names.names.shared(*key));
                    }
                }
                continue;
            }
            let mut pattern: Vec<Option<Value>> = vec![None; schema::schema().columns(source.relation).1.len()];
            if let Some(key) = &source.key {
                pattern[1] = facts.symbol(key);
            }
            facts.lookup(source.relation, &pattern, &mut |row| {
                let value = row[source.column];
                match value.as_symbol() {
                    Some(name) => seen.take_text(name, || facts.text(name)),
                    None => seen.take_number(value),
                }
                if seen.missing.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            // Numbers of texts beyond the trace's names mean others in the next operation.
            seen.names.retain(|name| name.index() < names.names.len());
        }
    }

    /// What was not found.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        // That there is no value of a key that the trace does not have follows.
        let lacks = |source: &Source, key: &Arc<str>| {
            let keys = Source { column: 1, key: None, ..source.clone() };
            self.columns.get(&keys).is_some_and(|seen| seen.missing.contains(&Sought::Text(Arc::clone(key))))
        };
        let missing = self.constants.iter().filter_map(|constant| {
            let seen = self.columns.get(&constant.source)?;
            let follows = constant.source.key.as_ref().is_some_and(|key| lacks(&constant.source, key));
            (!follows && seen.missing.contains(&constant.sought)).then_some((constant, seen))
        });
        let mut findings = Vec::new();
        // Of a long table of texts, the first ones stand for the others.
        let mut tables: BTreeMap<(&Source, Column), (usize, usize)> = BTreeMap::new();
        for (constant, seen) in missing {
            let Some(finding) = seen.finding(constant) else { continue };
            if let Some(table) = constant.table {
                let (told, last) = tables.entry((&constant.source, table)).or_insert((0, findings.len()));
                *told += 1;
                if *told > TOLD {
                    continue;
                }
                *last = findings.len();
            }
            findings.push(finding);
        }
        for (told, last) in tables.into_values().filter(|(told, _)| *told > TOLD) {
            let more = format!("the trace lacks {} more texts that this rule file has in the same column", told - TOLD);
            findings[last].notes.push(more);
        }
        findings
    }
}

impl Seen {
    fn take_text(&mut self, name: Name, text: impl Fn() -> Arc<str>) {
        if !self.names.insert(name) {
            return;
        }
        let text = text();
        self.missing.remove(&Sought::Text(Arc::clone(&text)));
        let Self { patterns, missing, .. } = self;
        patterns.retain(|(regex, sought)| !(regex.is_match(&text) && missing.remove(sought)));
        if self.texts.len() < KEPT {
            self.texts.insert(text);
        }
    }

    fn take_number(&mut self, value: Value) {
        let Some(number) = value.as_number() else { return };
        if self.range.is_none() {
            self.missing.retain(|sought| !matches!(sought, Sought::AnyNumber(_)));
        }
        let (least, most) = self.range.unwrap_or((number, number));
        self.range = Some((least.min(number), most.max(number)));
        if let Some(sought) = self.missing_numbers.remove(&value) {
            self.missing.remove(&sought);
        }
        if self.numbers.len() < KEPT {
            self.numbers.insert(value);
        }
    }

    fn finding(&self, constant: &Constant) -> Option<Diagnostic> {
        match &constant.sought {
            Sought::Text(text) => Some(self.no_text(constant, text)),
            Sought::Number(number) => Some(self.no_number(constant, &number.written)),
            Sought::Pattern(expression) => Some(self.no_match(constant, expression)),
            Sought::AnyNumber(_) if self.texts.is_empty() => None,
            Sought::Numbers(_) if self.texts.is_empty() || self.range.is_none() => None,
            Sought::Numbers(whole) => Some(self.texts_among(constant, whole)),
            Sought::AnyNumber(whole) => Some(self.only_texts(
                constant,
                &format!("`{whole}` takes numbers, and each {} is a text", constant.source.words()),
            )),
        }
    }

    /// Numbers and texts, where an aggregate takes numbers.
    fn texts_among(&self, constant: &Constant, whole: &str) -> Diagnostic {
        let texts: Vec<String> = self.texts.iter().take(3).map(|text| format!("`{text}`")).collect();
        let others = if self.texts.len() > texts.len() { " and others" } else { "" };
        let message = format!("`{whole}` has no value where a {} is a text", constant.source.words());
        Diagnostic::warning(codes::TEXTS_AMONG, constant.place.clone(), message)
            .with_note(format!("the trace has {}{others} among numbers", texts.join(", ")))
            .with_hint("a comparison within the braces, such as `V >= 0`, leaves texts out")
    }

    fn no_text(&self, constant: &Constant, text: &str) -> Diagnostic {
        let words = constant.source.words();
        let message = format!("no {words} is `{text}` in the trace");
        // Values that are whole numbers as numbers are written are numbers, however the trace writes them.
        let is_whole = text.parse::<i64>().is_ok_and(|number| number.to_string() == *text);
        let number = text.parse().ok().and_then(Value::float);
        if constant.source.is_any() && (is_whole || number.is_some_and(|number| self.numbers.contains(&number))) {
            return Diagnostic::warning(codes::QUOTED_NUMBER, constant.place.clone(), message)
                .with_note("values that are whole numbers are numbers, however the trace writes them")
                .with_hint(format!("write {text} without quotes"));
        }
        let finding = Diagnostic::warning(codes::NOT_IN_TRACE, constant.place.clone(), message);
        match similar(text, self.texts.iter().map(|text| &**text)) {
            Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
            None => self.listed(constant, finding),
        }
    }

    fn no_match(&self, constant: &Constant, expression: &str) -> Diagnostic {
        let message = format!("`{expression}` finds no place in any {} of the trace", constant.source.words());
        self.listed(constant, Diagnostic::warning(codes::NOT_IN_TRACE, constant.place.clone(), message))
    }

    fn no_number(&self, constant: &Constant, number: &str) -> Diagnostic {
        let words = constant.source.words();
        let message = format!("no {words} is {number} in the trace");
        if self.range.is_none() && !self.texts.is_empty() {
            return self.only_texts(constant, &message);
        }
        let finding = Diagnostic::warning(codes::NOT_IN_TRACE, constant.place.clone(), message);
        self.listed(constant, finding)
    }

    /// A column of texts, where rules take it for one of numbers.
    fn only_texts(&self, constant: &Constant, message: &str) -> Diagnostic {
        let finding = Diagnostic::warning(codes::TEXT_COMPARED, constant.place.clone(), message);
        let finding = self.listed(constant, finding);
        let number = if let Sought::Number(number) = &constant.sought { &*number.written } else { "" };
        let near = self.texts.iter().find(|text| text.starts_with(number)).or_else(|| self.texts.first());
        match near {
            Some(text) => finding.with_hint(format!("texts are compared by `=` and `!=`, in quotes: `\"{text}\"`")),
            None => finding,
        }
    }

    /// A finding with the values that the trace has in their place.
    fn listed(&self, constant: &Constant, finding: Diagnostic) -> Diagnostic {
        let count = self.texts.len() + self.numbers.len();
        if count == 0 {
            return finding.with_note(format!("the trace has no {} at all", constant.source.words()));
        }
        if count <= LISTED {
            let texts = self.texts.iter().map(|text| format!("`{text}`"));
            let mut numbers: Vec<Value> = self.numbers.iter().copied().collect();
            numbers.sort_unstable();
            let all: Vec<String> = texts.chain(numbers.into_iter().map(written)).collect();
            return finding.with_note(format!("the trace has {}", all.join(", ")));
        }
        match self.range {
            Some((least, most)) => finding.with_note(format!("the trace has numbers from {least} to {most}")),
            None => {
                let some: Vec<String> = self.texts.iter().take(3).map(|text| format!("`{text}`")).collect();
                finding.with_note(format!("the trace has {} and others", some.join(", ")))
            }
        }
    }
}
