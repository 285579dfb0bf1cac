//! What there is to choose from: combinations of values, or the choices of a file.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::model::codes;
use crate::model::parameter::{Axis, Change, Path, Subject};
use crate::study::search::Cost;

/// One of several, and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it costs.
    pub cost: f64,
    /// What it changes.
    pub changes: Vec<Change>,
}

/// More than these are refused.
const MOST: usize = 10_000;

/// Every value of each parameter with every value of the others; the last runs fastest.
///
/// # Errors
/// Where a value has no cost, a cost is that of another parameter, or these are too many.
pub fn alternatives(axes: &[(Path, Axis)], costs: &[Cost]) -> Result<Vec<Alternative>, Diagnostics> {
    let mut errors = Vec::new();
    let mut refuse = |message: String, hint: &str| {
        errors.push(Diagnostic::error(codes::SEARCH, Place::Nowhere, message).with_hint(hint));
    };
    if costs.is_empty() {
        refuse("no cost is given".to_owned(), "give costs: `--cost PATH=COST`");
    }
    for (number, (path, _)) in axes.iter().enumerate() {
        if axes[..number].iter().any(|(other, _)| other == path) {
            refuse(format!("`{path}` is given twice"), "list all its values at once: `--cheapest PATH=VALUES`");
        }
    }
    for (number, cost) in costs.iter().enumerate() {
        if costs[..number].iter().any(|other| other.path == cost.path) {
            refuse(
                format!("`{}` has two costs", cost.path),
                "say once what it costs: `--cost PATH=VALUE:COST,VALUE:COST`",
            );
        }
    }
    for cost in costs.iter().filter(|cost| axes.iter().all(|(path, _)| *path != cost.path)) {
        refuse(
            format!("`{}` has a cost and no values to choose from", cost.path),
            "give them: `--cheapest PATH=VALUES`",
        );
    }
    for (path, axis) in axes {
        for value in &axis.values {
            if costs.iter().any(|cost| cost.path == *path && cost.of(value).is_none()) {
                refuse(
                    format!("`{path}={value}` has no cost"),
                    "name every value: `--cost PATH=VALUE:COST,VALUE:COST`",
                );
            }
        }
    }
    let count = axes.iter().try_fold(1_usize, |count, (_, axis)| count.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= MOST);
    if count.is_none() {
        refuse(
            format!("these are more than {MOST} combinations"),
            "leave some out, or name those that count by `--choices`",
        );
    }
    let (Some(count), true) = (count, errors.is_empty()) else { return Err(Diagnostics(errors)) };
    let all = (0..count).map(|number| {
        let mut rest = number;
        let mut changes: Vec<Change> = axes
            .iter()
            .rev()
            .map(|(path, axis)| {
                let value = axis.values[rest % axis.values.len()].clone();
                rest /= axis.values.len();
                Change { path: path.clone(), value }
            })
            .collect();
        changes.reverse();
        let own = changes.iter().flat_map(|change| {
            costs.iter().filter(|cost| cost.path == change.path).filter_map(|cost| cost.of(&change.value))
        });
        Alternative { name: None, cost: own.sum(), changes }
    });
    Ok(all.collect())
}

/// Warnings of costs of values that are not on offer.
pub fn idle_costs(axes: &[(Path, Axis)], costs: &[Cost]) -> Vec<Diagnostic> {
    let mut idle = Vec::new();
    for cost in costs {
        let Some((path, axis)) = axes.iter().find(|(path, _)| *path == cost.path) else { continue };
        for value in cost.named().filter(|value| !axis.values.contains(value)) {
            let message = format!("`{path}={value}` has a cost and is not among the values to choose from");
            idle.push(Diagnostic::warning(codes::NO_EFFECT, Place::Nowhere, message));
        }
    }
    idle
}

/// Reads a file of choices: `[[choice]]` with a `name`, a `cost` and a table `set` of parameters by their paths.
///
/// # Errors
/// All that is wrong with it.
pub fn choices(file: &Arc<str>, text: &str, subject: &Subject) -> Result<Vec<Alternative>, Diagnostics> {
    let mut reader = Reader { file, subject, errors: Vec::new() };
    let root = DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(Place::File { file: Arc::clone(file) }, |span| reader.place(span));
        Diagnostics::from(Diagnostic::error(codes::CHOICES, place, format!("this is not TOML: {}", error.message())))
    })?;
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    for (key, value) in root.get_ref() {
        let list = value.get_ref().as_array().filter(|_| &**key.get_ref() == "choice");
        let Some(list) = list else {
            reader.refuse(key.span(), format!("`{}` means nothing in a file of choices", key.get_ref()));
            continue;
        };
        for item in list {
            match item.get_ref().as_table() {
                Some(table) => {
                    let Some(choice) = reader.choice(item.span(), table) else { continue };
                    if !names.insert(choice.name.clone()) {
                        let name = choice.name.as_deref().unwrap_or_default();
                        reader.refuse(item.span(), format!("there are two choices of the name `{name}`"));
                    }
                    found.push(choice);
                }
                None => reader.refuse(item.span(), "a choice is a table".to_owned()),
            }
        }
    }
    if found.is_empty() && reader.errors.is_empty() {
        reader.refuse(0..0, "there is no choice".to_owned());
    }
    if found.len() > MOST {
        reader.refuse(0..0, format!("these are more than {MOST} choices"));
    }
    if reader.errors.is_empty() { Ok(found) } else { Err(Diagnostics(reader.errors)) }
}

struct Reader<'r> {
    file: &'r Arc<str>,
    subject: &'r Subject,
    errors: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place::Range { file: Arc::clone(self.file), start: span.start, end: span.end }
    }

    fn refuse(&mut self, span: Range<usize>, message: String) {
        let error = Diagnostic::error(codes::CHOICES, self.place(span), message);
        self.errors.push(error.with_hint(
            "write `[[choice]]`, `name = \"two small\"`, `cost = 4`, `set = { \"processor.db.multiplicity\" = 2 }`",
        ));
    }

    fn choice(&mut self, span: Range<usize>, table: &DeTable<'_>) -> Option<Alternative> {
        let before = self.errors.len();
        let (mut name, mut cost, mut changes) = (None, None, Vec::new());
        for (key, value) in table {
            match (&**key.get_ref(), value.get_ref()) {
                ("name", DeValue::String(text)) => name = Some(text.to_string()),
                ("cost", number) => match scalar(number).and_then(|text| text.parse::<f64>().ok()) {
                    Some(number) if number.is_finite() && number >= 0.0 => cost = Some(number),
                    _ => self.refuse(value.span(), "a cost is a finite number from zero".to_owned()),
                },
                ("set", DeValue::Table(table)) => self.changes(table, &mut changes),
                ("name" | "set", _) => {
                    self.refuse(value.span(), "a name is a string, and `set` a table of parameters".to_owned());
                }
                (other, _) => self.refuse(key.span(), format!("`{other}` means nothing in a choice")),
            }
        }
        // What is there and wrong was reported already.
        let has = |name: &str| table.keys().any(|key| &**key.get_ref() == name);
        if !(has("name") && has("cost")) {
            self.refuse(span, "a choice has a name and a cost".to_owned());
        }
        (self.errors.len() == before).then_some(Alternative { name, cost: cost?, changes })
    }

    /// Parameters by their paths, in one string or as tables within each other.
    fn changes(&mut self, table: &DeTable<'_>, changes: &mut Vec<Change>) {
        let mut stack: Vec<(Vec<String>, &DeTable<'_>)> = vec![(Vec::new(), table)];
        while let Some((names, table)) = stack.pop() {
            for (key, value) in table {
                let mut names = names.clone();
                names.push(key.get_ref().to_string());
                if let DeValue::Table(inner) = value.get_ref() {
                    stack.push((names, inner));
                    continue;
                }
                let path = if let [whole] = &names[..] { whole.clone() } else { Path(names).to_string() };
                let Some(text) = scalar(value.get_ref()) else {
                    self.refuse(value.span(), "a value is a number or a string".to_owned());
                    continue;
                };
                match self.subject.change(&format!("{path}={text}")) {
                    Ok(change) => changes.push(change),
                    Err(error) => {
                        let place = self.place(value.span());
                        self.errors.push(Diagnostic { place, ..error });
                    }
                }
            }
        }
        changes.sort_by(|left, right| left.path.cmp(&right.path));
    }
}

/// A number or a string as text.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|own| own.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}
