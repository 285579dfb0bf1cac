//! Rule files in one style, comments and all.
//!
//! Tokens and comments stay as they are, in their order; only white space changes, and commas that close a list go. What
//! an author wrote on one line stays on one line where it fits: statements, conditions, short blocks. Nodes of a `match`
//! stand under each other in columns.

mod columns;
mod pieces;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::ast::{NodePattern, Statement, Template};
use crate::event_template::{Asserted, Lookup, Retired};
use crate::syntax::lexer::TokenKind as Kind;
use crate::syntax::{Item, parse_file};
use columns::{Row, parts, widths};
use dyelog_diagnostic::Diagnostic;
use pieces::{Comment, Piece, gap, pieces};

/// The longest line that is not broken where it could be.
const WIDTH: usize = 120;
/// How far a block is indented.
const STEP: usize = 2;

/// The text of a rule file in the one style. Formatting it again changes nothing.
///
/// # Errors
/// What keeps the file from being read: such a file has no style.
pub fn format(name: &Arc<str>, text: &str) -> Result<String, Vec<Diagnostic>> {
    let (items, diagnostics) = parse_file(0, name, text);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let (pieces, last) = pieces(text);
    let mut printer =
        Printer { pieces, at: 0, out: String::new(), line: 0, indent: 0, fresh: true, ends: ends(&items) };
    let mut after_template = false;
    for item in &items {
        let template = matches!(item, Item::Template(_) | Item::EventTemplate(_));
        printer.lead(template || after_template);
        match item {
            Item::Template(_) => printer.template(false),
            Item::EventTemplate(_) => printer.template(true),
            Item::Rule(_) | Item::Export(_) | Item::Output(_) => printer.rule(),
            Item::Use(_) => printer.run(2),
        }
        after_template = template;
    }
    printer.comments(&last, after_template);
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    Ok(printer.out)
}

/// Where each node and each statement ends, by where it begins.
fn ends(items: &[Item]) -> HashMap<u32, u32> {
    let mut found = HashMap::new();
    let mut node = |node: &NodePattern| {
        found.insert(node.span.start, node.span.end);
    };
    let templates = || {
        items.iter().filter_map(|item| match item {
            Item::Template(template) => Some(template),
            _ => None,
        })
    };
    templates().flat_map(Template::nodes).for_each(&mut node);
    for item in items {
        if let Item::EventTemplate(template) = item {
            let parts = template.event.iter().map(|event| event.span);
            let parts = parts.chain(template.lookups.iter().map(Lookup::span));
            let parts = parts.chain(template.asserted.iter().map(Asserted::span));
            let parts = parts.chain(template.records.iter().map(|record| record.span));
            found.extend(parts.chain(template.retired.iter().map(Retired::span)).map(|span| (span.start, span.end)));
        }
    }
    let mut open: Vec<&Statement> = templates().flat_map(|template| &template.statements).collect();
    while let Some(statement) = open.pop() {
        match statement {
            Statement::NewEntry { span, .. } | Statement::Operation { span, .. } => {
                found.insert(span.start, span.end);
            }
            Statement::For { body, .. } => open.extend(body),
        }
    }
    found
}

struct Printer<'t> {
    pieces: Vec<Piece<'t>>,
    at: usize,
    out: String,
    /// Where the last line begins in `out`.
    line: usize,
    indent: usize,
    /// Whether nothing stands in the block, or the file, yet.
    fresh: bool,
    ends: HashMap<u32, u32>,
}

impl<'t> Printer<'t> {
    fn kind(&self) -> Option<Kind> {
        self.pieces.get(self.at).map(|piece| piece.kind)
    }

    fn word(&self) -> &str {
        self.pieces.get(self.at).map_or("", |piece| piece.text)
    }

    /// A new line, after an empty one where that is wanted and something stands above.
    fn break_line(&mut self, blank: bool, indent: usize) {
        if !self.out.is_empty() {
            self.out.push('\n');
            if blank && !self.fresh {
                self.out.push('\n');
            }
        }
        self.line = self.out.len();
        self.out.push_str(&" ".repeat(indent));
        self.fresh = false;
    }

    /// Comments at the beginning of a line or behind what stands there; the line of the last is still open. Gives back
    /// whether the empty line that is wanted is still owed.
    fn comments(&mut self, comments: &[Comment<'_>], mut blank: bool) -> bool {
        for comment in comments {
            if comment.own_line || self.out.is_empty() {
                self.break_line(blank || comment.blank, self.indent);
                blank = false;
            } else {
                self.out.push_str("  ");
            }
            self.out.push_str(comment.text);
        }
        blank
    }

    fn take_comments(&mut self) -> Vec<Comment<'t>> {
        self.pieces.get_mut(self.at).map(|piece| std::mem::take(&mut piece.comments)).unwrap_or_default()
    }

    /// Goes to a new line for the piece here, over its comments.
    fn lead(&mut self, blank: bool) {
        let Some(piece) = self.pieces.get_mut(self.at) else { return };
        let (comments, own) = (std::mem::take(&mut piece.comments), piece.blank);
        let owed = self.comments(&comments, blank);
        self.break_line(owed || own, self.indent);
    }

    /// The piece here, where a line begins.
    fn token(&mut self) {
        if let Some(piece) = self.pieces.get(self.at) {
            self.out.push_str(piece.text);
            self.at += 1;
        }
    }

    /// The piece here, so far from the one before. Comments between them break the line.
    fn inline(&mut self, gap: &str) {
        let Some(piece) = self.pieces.get_mut(self.at) else { return };
        let comments = std::mem::take(&mut piece.comments);
        let deeper = self.indent + 2 * STEP;
        for comment in &comments {
            if comment.own_line {
                self.break_line(false, deeper);
            } else {
                self.out.push_str("  ");
            }
            self.out.push_str(comment.text);
        }
        if comments.is_empty() {
            self.out.push_str(gap);
        } else {
            self.break_line(false, deeper);
        }
        self.token();
    }

    /// That many pieces, the first where a line begins.
    fn run(&mut self, count: usize) {
        for number in 0..count {
            if number == 0 {
                self.token();
            } else {
                let gap = gap(&self.pieces, self.at);
                self.inline(gap);
            }
        }
    }

    /// Pieces as text on one line.
    fn flat(&self, range: Range<usize>) -> String {
        let mut text = String::new();
        for at in range.clone() {
            if at > range.start {
                text.push_str(gap(&self.pieces, at));
            }
            text.push_str(self.pieces[at].text);
        }
        text
    }

    /// Whether no comment stands within these pieces; before the first is not within.
    fn plain(&self, range: Range<usize>) -> bool {
        self.pieces[range].iter().skip(1).all(|piece| piece.comments.is_empty())
    }

    fn room(&self) -> usize {
        WIDTH.saturating_sub(self.out[self.line..].chars().count())
    }

    /// The index after the piece that ends at a byte.
    fn after(&self, end: u32) -> usize {
        self.pieces.partition_point(|piece| piece.end <= end)
    }

    /// The pieces of the node or statement that begins here.
    fn construct(&self) -> Range<usize> {
        let end = self.pieces.get(self.at).and_then(|piece| self.ends.get(&piece.start));
        // Every node and statement is known; anything else would be one piece.
        self.at..end.map_or(self.at + 1, |end| self.after(*end).max(self.at + 1))
    }

    /// The index of the brace that closes the one at `open`.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for (at, piece) in self.pieces.iter().enumerate().skip(open) {
            match piece.kind {
                Kind::OpenCurly => depth += 1,
                Kind::CloseCurly => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.pieces.len()
    }

    /// A block on one line, where it was on one and fits: `{ … }` with so much between its statements.
    fn block_on_a_line(&mut self) -> bool {
        let (open, close) = (self.at, self.closing(self.at));
        let one = self.pieces.get(open..=close).is_some_and(|pieces| {
            pieces[0].comments.is_empty() && pieces[1..].iter().all(|piece| !piece.newline && piece.comments.is_empty())
        });
        if !one {
            return false;
        }
        let mut text = String::from(" {");
        for at in open + 1..=close {
            let statement = self.ends.contains_key(&self.pieces[at].start) && at > open + 1;
            text.push_str(if statement { "  " } else { gap(&self.pieces, at) });
            text.push_str(self.pieces[at].text);
        }
        if text.chars().count() > self.room() {
            return false;
        }
        self.out.push_str(&text);
        self.at = close + 1;
        true
    }

    fn open(&mut self) {
        self.inline(" ");
        self.indent += STEP;
        self.fresh = true;
    }

    fn close(&mut self) {
        let comments = self.take_comments();
        let empty = self.fresh && comments.is_empty();
        self.comments(&comments, false);
        self.indent -= STEP;
        if !empty {
            self.break_line(false, self.indent);
        }
        self.token();
        self.fresh = false;
    }

    fn template(&mut self, on_event: bool) {
        self.run(2);
        self.open();
        while self.kind().is_some_and(|kind| kind != Kind::CloseCurly) {
            self.lead(false);
            if on_event { self.event_section() } else { self.section() }
        }
        self.close();
    }

    fn event_section(&mut self) {
        match self.word() {
            "on" => {
                self.run(1);
                let event = self.construct();
                self.inline(" ");
                (1..event.len()).for_each(|_| self.inline(gap(&self.pieces, self.at)));
            }
            "match" | "assert" | "model" | "retire" => {
                self.token();
                self.statements();
            }
            _ => self.section(),
        }
    }

    fn section(&mut self) {
        match self.word() {
            "match" => self.match_section(),
            "where" => self.where_section(),
            "model" => {
                self.token();
                self.statements();
            }
            "order" => {
                let negative = self.pieces.get(self.at + 1).is_some_and(|piece| piece.kind == Kind::Minus);
                self.run(if negative { 3 } else { 2 });
            }
            "expect" => self.run(2),
            _ => self.token(),
        }
    }

    fn match_section(&mut self) {
        self.token();
        let first = self.at + 1;
        let single = self.pieces.get(first).and_then(|piece| self.ends.get(&piece.start)).map(|end| self.after(*end));
        let close = self.closing(self.at);
        if (single == Some(close) || first == close) && self.block_on_a_line() {
            return;
        }
        self.nodes();
    }

    /// Alternatives, each after `or` behind the one before; what is optional or repeated.
    fn block_of_nodes(&mut self) {
        self.lead(false);
        let header = self.pieces[self.at..].iter().position(|piece| piece.kind == Kind::OpenCurly);
        if header == Some(0) {
            self.token();
            self.indent += STEP;
            self.fresh = true;
            self.rest_of_nodes();
        } else {
            self.run(header.unwrap_or(1));
            self.nodes();
        }
        while self.word() == "or" && self.pieces.get(self.at + 1).is_some_and(|piece| piece.kind == Kind::OpenCurly) {
            self.inline(" ");
            self.nodes();
        }
    }

    /// A block of nodes, repetitions and alternatives.
    fn nodes(&mut self) {
        self.open();
        self.rest_of_nodes();
    }

    fn rest_of_nodes(&mut self) {
        while self.kind().is_some_and(|kind| kind != Kind::CloseCurly) {
            if !self.ends.contains_key(&self.pieces[self.at].start) {
                self.block_of_nodes();
                continue;
            }
            let rows = self.rows();
            let widths = widths(rows.iter().filter_map(|(_, row)| row.as_ref()));
            for (pieces, row) in rows {
                self.lead(false);
                match row {
                    Some(row) => {
                        self.out.push_str(&row.line(&widths));
                        self.at = pieces.end;
                    }
                    None => self.run(pieces.len()),
                }
            }
        }
        self.close();
    }

    /// The nodes from here on that stand under each other, up to an empty line or a repetition.
    fn rows(&self) -> Vec<(Range<usize>, Option<Row>)> {
        let mut rows = Vec::new();
        let mut at = self.at;
        while let Some(piece) = self.pieces.get(at) {
            let Some(end) = self.ends.get(&piece.start) else { break };
            let apart = piece.blank || piece.comments.iter().any(|comment| comment.blank);
            if !rows.is_empty() && apart {
                break;
            }
            let range = at..self.after(*end).max(at + 1);
            at = range.end;
            let row = if self.plain(range.clone()) { self.row(range.clone()) } else { None };
            rows.push((range, row));
        }
        rows
    }

    fn row(&self, range: Range<usize>) -> Option<Row> {
        let kinds: Vec<Kind> = self.pieces[range.clone()].iter().map(|piece| piece.kind).collect();
        let (cells, rest) = parts(&kinds)?;
        let text = |part: Range<usize>| self.flat(range.start + part.start..range.start + part.end);
        Some(Row::new(cells.map(&text), text(rest..range.len())))
    }

    fn where_section(&mut self) {
        self.token();
        if self.block_on_a_line() {
            return;
        }
        let close = self.closing(self.at);
        self.open();
        self.list(close, true);
        self.close();
    }

    /// Parts of a list up to an index, broken where it was or where a line is full.
    fn list(&mut self, end: usize, mut at_line_start: bool) {
        while self.at < end {
            let part = self.at..self.part_end(end);
            let piece = &self.pieces[part.start];
            let broken = at_line_start || piece.newline || !piece.comments.is_empty();
            let plain = self.plain(part.clone());
            let fits = plain && self.flat(part.clone()).chars().count() < self.room();
            if broken || !fits {
                self.lead(false);
            } else {
                self.out.push(' ');
            }
            self.run(part.len());
            at_line_start = !plain;
        }
    }

    /// The end of the part of a list that begins here: after the next comma outside brackets.
    fn part_end(&self, end: usize) -> usize {
        let mut depth = 0usize;
        for at in self.at..end {
            match self.pieces[at].kind {
                Kind::OpenRound | Kind::OpenSquare | Kind::OpenCurly => depth += 1,
                Kind::CloseRound | Kind::CloseSquare | Kind::CloseCurly => depth = depth.saturating_sub(1),
                Kind::Comma if depth == 0 => return at + 1,
                _ => {}
            }
        }
        end
    }

    /// A block of statements.
    fn statements(&mut self) {
        let close = self.closing(self.at);
        let loops = |printer: &Self| {
            let inner = printer.pieces.get(printer.at + 1..close).unwrap_or_default();
            inner.iter().any(|piece| piece.kind == Kind::OpenCurly)
        };
        let was_one_line = self.pieces.get(self.at + 1..=close).is_some_and(|all| all.iter().all(|p| !p.newline));
        if !loops(self) && self.block_on_a_line() {
            return;
        }
        self.open();
        let mut alone = true;
        while self.kind().is_some_and(|kind| kind != Kind::CloseCurly) {
            if !self.ends.contains_key(&self.pieces[self.at].start) {
                self.lead(false);
                let header = self.pieces[self.at..].iter().position(|piece| piece.kind == Kind::OpenCurly);
                self.run(header.unwrap_or(1));
                self.statements();
                alone = true;
                continue;
            }
            let statement = self.construct();
            let piece = &self.pieces[statement.start];
            let plain = self.plain(statement.clone());
            let fits = plain && self.flat(statement.clone()).chars().count() + 2 <= self.room();
            if alone || was_one_line || piece.newline || !piece.comments.is_empty() || !fits {
                self.lead(false);
            } else {
                self.out.push_str("  ");
            }
            self.run(statement.len());
            alone = !plain;
        }
        self.close();
    }

    /// A rule: its head and `:-`, then its body, further lines indented.
    fn rule(&mut self) {
        let mut depth = 0usize;
        let mut stop = self.pieces.len();
        let mut neck = None;
        for (at, piece) in self.pieces.iter().enumerate().skip(self.at) {
            match piece.kind {
                Kind::OpenRound | Kind::OpenSquare | Kind::OpenCurly => depth += 1,
                Kind::CloseRound | Kind::CloseSquare | Kind::CloseCurly => depth = depth.saturating_sub(1),
                Kind::If if depth == 0 => neck = Some(at),
                Kind::Dot if depth == 0 => {
                    stop = at + 1;
                    break;
                }
                _ => {}
            }
        }
        let head = neck.map_or(stop, |neck| neck + 1);
        let plain = self.plain(self.at..head);
        self.run(head - self.at);
        self.indent += STEP;
        self.list(stop, !plain);
        self.indent -= STEP;
    }
}
