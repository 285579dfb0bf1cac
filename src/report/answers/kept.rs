//! Rows of an answer that are kept until all have come: all of them, or the largest.

use crate::diagnostic::{Diagnostic, Place, similar};
use crate::query::{Asked, Cell, Question, Scope, codes};
use crate::report::answers::{Row, columns};

/// Rows that are kept until all have come.
#[derive(Debug)]
pub struct Kept {
    rows: Vec<Vec<Row>>,
    /// What they take, and may take, in bytes.
    bytes: usize,
    most: usize,
    /// How many are kept, and the column that decides which.
    top: Option<usize>,
    by: Option<String>,
}

impl Kept {
    /// Nothing kept yet. Of each relation the `top` rows with the largest values in the column `by`, or all where there is none; at most so many
    /// bytes.
    ///
    /// # Errors
    /// No relation that is shown has that column.
    pub fn new(question: &Question, top: Option<usize>, by: Option<&str>, most: usize) -> Result<Self, Diagnostic> {
        let rows = vec![Vec::new(); question.asked.len()];
        let kept = Self { rows, bytes: 0, most, top, by: by.map(str::to_owned) };
        let scope = question.scope;
        let Some(by) = &kept.by else { return Ok(kept) };
        if question.asked.iter().any(|asked| kept.place(asked, scope).is_some()) {
            return Ok(kept);
        }
        let message = format!("no relation that is shown has a column `{by}`");
        let finding = Diagnostic::error(codes::NO_COLUMN, Place::Nowhere, message);
        let mut all: Vec<String> = Vec::new();
        for column in question.asked.iter().flat_map(|asked| columns(asked, scope)) {
            if !all.contains(&column) {
                all.push(column);
            }
        }
        Err(match similar(by, all.iter().map(String::as_str)) {
            Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
            None => finding.with_note(format!("they have {}", all.join(", "))),
        })
    }

    /// The place of the column that decides, among those that are shown.
    pub fn place(&self, asked: &Asked, scope: Scope) -> Option<usize> {
        columns(asked, scope).iter().position(|column| Some(&**column) == self.by.as_deref())
    }

    /// Relations that have no such column, where others have.
    pub fn left_out(&self, question: &Question) -> Vec<Diagnostic> {
        let Some(by) = &self.by else { return Vec::new() };
        let without = question.asked.iter().filter(|asked| self.place(asked, question.scope).is_none());
        let told = without.map(|asked| {
            let message = format!("`{}` has no column `{by}`, and is not shown", asked.name);
            let has = columns(asked, question.scope).join(", ");
            Diagnostic::warning(codes::NOT_ORDERED, Place::Nowhere, message).with_note(format!("it has {has}"))
        });
        told.collect()
    }

    /// Whether no column decides.
    pub fn keeps_all(&self) -> bool {
        self.by.is_none()
    }

    /// Keeps a row; of more than twice as many as are wanted, the lesser half goes. Whether there is room for it.
    pub fn take(&mut self, relation: usize, place: Option<usize>, row: Row) -> bool {
        let rows = &mut self.rows[relation];
        self.bytes += row.bytes();
        rows.push(row);
        if let (Some(top), Some(place)) = (self.top, place)
            && rows.len() >= top.saturating_mul(2).max(64)
        {
            largest(rows, place, top);
            self.bytes = self.rows.iter().flatten().map(Row::bytes).sum();
        }
        self.bytes <= self.most
    }

    /// Whether only the largest are kept.
    pub fn keeps_some(&self) -> bool {
        self.top.is_some()
    }

    /// The most that rows may take, in bytes.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The rows by relation, the largest first where only these are kept.
    pub fn take_rows(&mut self, question: &Question) -> Vec<Vec<Row>> {
        let mut rows = std::mem::take(&mut self.rows);
        for (rows, asked) in rows.iter_mut().zip(&question.asked) {
            if let (Some(top), Some(place)) = (self.top, self.place(asked, question.scope)) {
                largest(rows, place, top);
            }
        }
        rows
    }
}

/// The rows with the largest values, largest first; equal ones as they came.
fn largest(rows: &mut Vec<Row>, place: usize, top: usize) {
    rows.sort_by(|left, right| compare(&right.at(place), &left.at(place)));
    rows.truncate(top);
}

/// Numbers by size, texts by letters and before numbers.
fn compare(left: &Cell<'_>, right: &Cell<'_>) -> std::cmp::Ordering {
    let number = |cell: &Cell<'_>| match cell {
        Cell::Whole(number) => Some(*number as f64),
        Cell::Float(number) => Some(*number),
        Cell::Text(_) => None,
    };
    match (left, right) {
        (Cell::Whole(left), Cell::Whole(right)) => left.cmp(right),
        (Cell::Text(left), Cell::Text(right)) => left.cmp(right),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.total_cmp(&right),
            (left, right) => left.is_some().cmp(&right.is_some()),
        },
    }
}
