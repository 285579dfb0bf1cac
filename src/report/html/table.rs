//! Tables of a page: captioned, with headings that tell their scope, in a frame that scrolls by itself where they are wide.

use crate::report::html::units::count;
use crate::report::markup::Markup;

/// Most rows that a table shows.
pub const ROWS: usize = 200;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A name out of the input, set in the type of code.
    Name(String),
    /// A quantity for people, and the number as it is, shown on hovering.
    Quantity(String, f64),
    /// A share of servers that are busy, with a bar.
    Share(f64),
    /// A count.
    Count(u64),
    /// Nothing.
    Blank,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A table in the making.
#[derive(Debug)]
pub struct Table {
    caption: &'static str,
    headings: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
    hidden: usize,
    order: &'static str,
}

impl Table {
    /// A table; headings that begin with `>` are over numbers.
    pub fn new(caption: &'static str, headings: &'static [&'static str]) -> Self {
        Self { caption, headings, rows: Vec::new(), hidden: 0, order: "" }
    }

    /// Says which rows come first, where not all are shown, such as `the busiest`.
    pub fn in_order(mut self, order: &'static str) -> Self {
        self.order = order;
        self
    }

    /// Adds a row, or counts it where there are many already.
    pub fn row(&mut self, cells: impl FnOnce() -> Vec<Cell>) {
        if self.rows.len() < ROWS {
            self.rows.push(cells());
        } else {
            self.hidden += 1;
        }
    }

    /// Writes it, if it has any row. Columns without any content are left out.
    pub fn write(&self, html: &mut Markup) {
        if self.rows.is_empty() {
            return;
        }
        let used: Vec<usize> = (0..self.headings.len())
            .filter(|column| self.rows.iter().any(|row| row.get(*column).is_some_and(|cell| *cell != Cell::Blank)))
            .collect();
        html.open("div", &[("class", "frame"), ("tabindex", "0"), ("role", "region"), ("aria-label", self.caption)]);
        html.open("table", &[]);
        html.element("caption", &[], &self.caption_text());
        html.open("thead", &[]).open("tr", &[]);
        for &column in &used {
            let heading = self.headings[column];
            match heading.strip_prefix('>') {
                Some(heading) => html.element("th", &[("scope", "col"), ("class", "n")], heading),
                None => html.element("th", &[("scope", "col")], heading),
            };
        }
        html.close().close().open("tbody", &[]);
        for row in &self.rows {
            html.open("tr", &[]);
            for &column in &used {
                let cell = row.get(column).unwrap_or(&Cell::Blank);
                write_cell(html, cell, column == used[0], self.headings[column].starts_with('>'));
            }
            html.close();
        }
        html.close().close().close();
    }

    fn caption_text(&self) -> String {
        if self.hidden == 0 {
            return self.caption.to_owned();
        }
        let all = (self.rows.len() + self.hidden) as u64;
        let order = if self.order.is_empty() { "the first" } else { self.order };
        format!("{} – {order} {} of {}; the others are not shown", self.caption, self.rows.len(), count(all))
    }
}

fn write_cell(html: &mut Markup, cell: &Cell, first: bool, number: bool) {
    match (first, number) {
        (true, _) => html.open("th", &[("scope", "row")]),
        (false, true) => html.open("td", &[("class", "n")]),
        (false, false) => html.open("td", &[]),
    };
    match cell {
        Cell::Text(text) => html.text(text),
        Cell::Name(name) => html.open("code", &[]).name(name).close(),
        Cell::Quantity(text, value) => html.element("span", &[("title", &value.to_string())], text),
        Cell::Share(share) => {
            let width = format!("--share:{:.1}%", (share * 100.0).clamp(0.0, 100.0));
            let class = match share {
                share if *share >= 0.95 => "bar full",
                share if *share >= 0.8 => "bar high",
                _ => "bar",
            };
            html.open("span", &[("class", class), ("style", &width), ("title", &share.to_string())]);
            html.text(&super::units::percent(*share)).close()
        }
        Cell::Count(number) => html.text(&count(*number)),
        Cell::Blank => html,
    };
    html.close();
}
