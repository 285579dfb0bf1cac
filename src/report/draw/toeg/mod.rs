//! The graph of an operation as the 1998 paper's Figure 3 draws it.
//!
//! Time proceeds from left to right. A task is a level, its nodes follow a thin line; a thread follows a thick, shaded one across tasks.
//! Shape and label tell the type of a node. The nodes of a recognised interaction carry its number and colour, and a bracket above spans
//! it, with the name of its template.

mod grid;

use std::fmt::Write as _;

use crate::diagnostic::quantity::counted;
use crate::report::draw::Drawn;
use crate::report::draw::operation::{OperationOptions, OperationView, Shown};
use crate::report::draw::svg::{Anchor, Path, Svg};
use crate::report::draw::text::{NAME, PLAIN, SMALL, clip, quoted};
use crate::report::draw::toeg::grid::{CELL_TOP, Grid, MIDDLE, RADIUS};
use crate::trace::toeg::NONE;
use crate::trace::{Kind, NodeId};

const MARGIN: f64 = 16.0;
/// Height of a row of brackets.
const BRACKET: f64 = 24.0;
/// How many colours there are for interactions.
const COLOURS: usize = 7;

/// An operation as SVG.
pub fn svg(view: &OperationView<'_>, options: &OperationOptions) -> Drawn {
    let shown = Shown::new(view, options.limit);
    let grid = Grid::new(view, &shown);
    let mut picture = Picture { view, shown: &shown, grid: &grid, svg: Svg::default(), id: &options.id, top: 0.0 };
    let brackets = brackets(view, &grid);
    let rows = brackets.iter().map(|bracket| bracket.row + 1).max().unwrap_or(0);
    picture.top = MARGIN + rows as f64 * BRACKET + if rows > 0 { 8.0 } else { 0.0 };
    let right = brackets.iter().map(|bracket| bracket.end).fold(grid.right(), f64::max);
    picture.lanes(right + MARGIN);
    for bracket in &brackets {
        picture.bracket(bracket);
    }
    picture.lines();
    for &node in &shown.order {
        picture.node(node);
    }
    let notes: Vec<String> = shown.note(view.toeg).into_iter().collect();
    let mut bottom = picture.top + grid.height() + 8.0;
    let width = (right + 2.0 * MARGIN).max(520.0);
    bottom = picture.legend(bottom, &notes);
    let operation = view.toeg.operation();
    let scenario = view.names.names.text(operation.scenario);
    let title = format!("Operation {} run {}", clip(scenario, 100), clip(&operation.run, 60));
    let description = format!(
        "Task and operation event graph with {}, {}, {} and {} of several nodes.",
        counted(view.toeg.len() as u64, "node"),
        counted(view.toeg.threads().len() as u64, "thread"),
        counted(shown.tasks.len() as u64, "task"),
        counted(brackets.len() as u64, "interaction")
    );
    let text = picture.svg.finish(&options.id, "toeg", (width, bottom + MARGIN), &title, &description);
    Drawn { text, notes }
}

/// The span of an interaction above the graph.
struct Bracket {
    number: usize,
    template: String,
    from: f64,
    to: f64,
    /// Where its text ends, if that is further.
    end: f64,
    row: usize,
}

/// Interactions of several nodes, in rows so that they keep out of each other's way.
fn brackets(view: &OperationView<'_>, grid: &Grid) -> Vec<Bracket> {
    let mut brackets: Vec<Bracket> = Vec::new();
    let mut ends: Vec<f64> = Vec::new();
    let mut several: Vec<(usize, f64, f64, &str)> = Vec::new();
    for (number, found) in view.matches.iter().enumerate().filter(|(_, found)| found.nodes.len() > 1) {
        let places: Vec<f64> = found.nodes.iter().filter_map(|&node| grid.place(node)).map(|(x, _)| x).collect();
        if places.is_empty() {
            continue;
        }
        let from = places.iter().copied().fold(f64::INFINITY, f64::min) - RADIUS;
        let to = places.iter().copied().fold(0.0, f64::max) + RADIUS;
        several.push((number, from, to, &found.template));
    }
    // Long ones first in their row: inner calls come to stand below outer ones.
    several.sort_by(|one, other| one.1.total_cmp(&other.1).then(other.2.total_cmp(&one.2)));
    for (number, from, to, template) in several {
        let template = PLAIN.fit(&format!("{} {template}", number + 1), 240.0);
        let end = to.max(from + PLAIN.width(&template) + 6.0);
        let row = ends.iter().position(|&last| last + 12.0 <= from).unwrap_or(ends.len());
        if row == ends.len() {
            ends.push(0.0);
        }
        ends[row] = end;
        brackets.push(Bracket { number, template, from, to, end, row });
    }
    brackets
}

struct Picture<'a> {
    view: &'a OperationView<'a>,
    shown: &'a Shown,
    grid: &'a Grid,
    svg: Svg,
    id: &'a str,
    /// Where the first row of nodes begins.
    top: f64,
}

impl Picture<'_> {
    fn at(&self, node: NodeId) -> Option<(f64, f64)> {
        self.grid.place(node).map(|(x, y)| (x, y + self.top))
    }

    /// A level for each task, with its name.
    fn lanes(&mut self, right: f64) {
        for (row, &task) in self.shown.tasks.iter().enumerate() {
            let y = self.top + grid::row_top(row);
            let class = if row % 2 == 0 { "lane" } else { "lane odd" };
            self.svg.rectangle(class, (MARGIN / 2.0, y), (right - MARGIN / 2.0, grid::LANE), 4.0);
            let name = NAME.fit(&self.view.names.task_label(task), grid::NAMES - 16.0);
            self.svg.text((MARGIN, y + MIDDLE - NAME.height() / 2.0), Anchor::Start, NAME, "", &name);
        }
    }

    fn bracket(&mut self, bracket: &Bracket) {
        let y = MARGIN + bracket.row as f64 * BRACKET;
        let class = format!("band k{}", bracket.number % COLOURS);
        self.svg.rectangle(&class, (bracket.from, y + 16.0), (bracket.to - bracket.from, 5.0), 2.0);
        self.svg.text((bracket.from, y), Anchor::Start, PLAIN, "", &bracket.template);
    }

    /// Threads first, then tasks, so that the thin lines lie on the thick ones.
    fn lines(&mut self) {
        let toeg = self.view.toeg;
        for &node in &self.shown.order {
            let cause = Shown::cause(toeg, node);
            if cause != NONE && self.shown.drawn[cause as usize] {
                let path = self.grid.path(cause, node, self.top);
                let class = if toeg.event(node).kind == Kind::Begin { "thread fork" } else { "thread" };
                self.svg.path(class, &path);
            }
            if let Kind::Join(thread) = toeg.event(node).kind {
                let end = toeg.thread(thread).map_or(NONE, |thread| thread.last);
                if end != NONE && self.shown.drawn[end as usize] {
                    self.svg.path("thread join", &self.grid.path(end, node, self.top));
                }
            }
        }
        for &node in &self.shown.order {
            let next = toeg.next_in_task(node);
            if next == NONE || !self.shown.drawn[next as usize] {
                continue;
            }
            if let (Some(from), Some(to)) = (self.at(node), self.at(next)) {
                self.svg.path("line", &Path::from(from.0, from.1).line(to.0, to.1));
            }
        }
    }

    fn node(&mut self, node: NodeId) {
        let Some((x, y)) = self.at(node) else { return };
        let event = self.view.toeg.event(node);
        let found = self.grid.interaction(node);
        let tooltip = self.about(node);
        self.svg.open(&format!("{}-n{}-{}", self.id, event.thread, event.index), "node", &tooltip);
        let colour = found.filter(|&number| self.view.matches[number].nodes.len() > 1);
        let fill = colour.map_or_else(|| "plain".to_owned(), |number| format!("k{}", number % COLOURS));
        shape(&mut self.svg, &format!("dot {fill}"), event.kind, (x, y));
        if let Some(number) = colour {
            let top = y - SMALL.height() / 2.0;
            self.svg.text((x, top), Anchor::Middle, SMALL, "on1", &(number + 1).to_string());
        }
        if event.kind == Kind::Begin {
            let label = format!("thread {}", event.thread);
            self.svg.text((x, y - MIDDLE + CELL_TOP), Anchor::Middle, SMALL, "dim", &label);
        }
        let (upper, lower) = grid::labels(self.view, node);
        let below = y + RADIUS + 4.0;
        self.svg.text((x, below), Anchor::Middle, SMALL, "", &upper);
        self.svg.text((x, below + 15.0), Anchor::Middle, SMALL, "", &lower);
        let half = SMALL.width(&upper).max(SMALL.width(&lower)) / 2.0;
        self.svg.path("line", &Path::from(x - half, below + 14.0).line(x + half, below + 14.0));
        self.svg.close();
    }

    fn about(&self, node: NodeId) -> String {
        let event = self.view.toeg.event(node);
        let names = &self.view.names.names;
        let mut text = format!(
            "{},{},{},{} | {},{}",
            names.text(self.view.toeg.operation().scenario),
            event.thread,
            event.index,
            event.kind.label(),
            self.view.names.task_label(event.task),
            event.counter
        );
        match self.grid.interaction(node) {
            Some(number) => {
                let _ = write!(text, "\nmatch {}: {}", number + 1, self.view.matches[number].template);
            }
            None => text.push_str("\nno template matches it"),
        }
        for (what, name) in [("activity", event.activity), ("service", event.service)] {
            if name.is_some() {
                let _ = write!(text, "\n{what} {}", names.text(name));
            }
        }
        for (what, value) in [("at", event.time), ("CPU", event.cpu)] {
            if value.is_finite() {
                let _ = write!(text, "\n{what} {}", crate::diagnostic::quantity::time(value));
            }
        }
        text
    }

    fn legend(&mut self, mut y: f64, notes: &[String]) -> f64 {
        let mut x = MARGIN;
        let thread = self.view.toeg.root();
        let begin = self.view.toeg.event(thread).kind;
        let kinds = [
            (begin, "begin"),
            (Kind::Activity, "activity"),
            (Kind::Fork(0), "fork"),
            (Kind::Join(0), "join"),
            (Kind::End, "end"),
        ];
        y += 6.0;
        for (kind, words) in kinds {
            let present = |&node: &NodeId| {
                std::mem::discriminant(&self.view.toeg.event(node).kind) == std::mem::discriminant(&kind)
            };
            if !self.shown.order.iter().any(present) {
                continue;
            }
            shape(&mut self.svg, "dot plain", kind, (x + RADIUS, y + SMALL.height() / 2.0));
            self.svg.text((x + 2.0 * RADIUS + 6.0, y), Anchor::Start, SMALL, "dim", words);
            x += 2.0 * RADIUS + 22.0 + SMALL.width(words);
        }
        y += 28.0;
        x = MARGIN;
        for (class, words) in [("thread", "thread"), ("thread fork", "fork of a thread"), ("line", "task")] {
            self.svg.path(class, &Path::from(x, y + 7.0).line(x + 30.0, y + 7.0));
            self.svg.text((x + 38.0, y), Anchor::Start, SMALL, "dim", words);
            x += 60.0 + SMALL.width(words);
        }
        self.svg.text((x, y), Anchor::Start, SMALL, "dim", "number and colour: interaction");
        y += 20.0;
        for note in notes {
            self.svg.text((MARGIN, y), Anchor::Start, SMALL, "dim", note);
            y += 18.0;
        }
        y
    }
}

/// The shape of a type of node: circles for begin (with a ring) and activity, a diamond for a fork, a hexagon for a join, a square for an
/// end.
fn shape(svg: &mut Svg, class: &str, kind: Kind, (x, y): (f64, f64)) {
    let r = RADIUS;
    match kind {
        Kind::Activity => svg.ellipse(class, (x, y), (r, r)),
        Kind::Begin => {
            svg.ellipse(class, (x, y), (r, r));
            svg.ellipse("ring", (x, y), (r - 3.0, r - 3.0));
        }
        Kind::Fork(_) => {
            let r = r + 2.0;
            svg.polygon(class, &[(x, y - r), (x + r, y), (x, y + r), (x - r, y)]);
        }
        Kind::Join(_) => {
            let h = r / 2.0;
            svg.polygon(
                class,
                &[(x - r, y), (x - h, y - r), (x + h, y - r), (x + r, y), (x + h, y + r), (x - h, y + r)],
            );
        }
        Kind::End => svg.rectangle(class, (x - r + 1.0, y - r + 1.0), (2.0 * r - 2.0, 2.0 * r - 2.0), 0.0),
    }
}

/// An operation in the DOT language of Graphviz.
pub fn dot(view: &OperationView<'_>, options: &OperationOptions) -> Drawn {
    let shown = Shown::new(view, options.limit);
    let grid = Grid::new(view, &shown);
    let notes: Vec<String> = shown.note(view.toeg).into_iter().collect();
    let mut text = String::new();
    for note in &notes {
        let _ = writeln!(text, "// {note}");
    }
    text.push_str("digraph toeg {\n  rankdir=LR;\n  node [fontname=\"Helvetica\", fontsize=10];\n");
    for (row, &task) in shown.tasks.iter().enumerate() {
        let label = clip(&view.names.task_label(task), 60);
        let _ = writeln!(text, "  subgraph cluster_{row} {{\n    label={};", quoted(&label));
        for &node in shown.order.iter().filter(|&&node| view.toeg.event(node).task == task) {
            let (upper, lower) = grid::labels(view, node);
            let found = grid.interaction(node).map_or_else(
                || "no match".to_owned(),
                |number| format!("{} {}", number + 1, view.matches[number].template),
            );
            let shape = match view.toeg.event(node).kind {
                Kind::Begin => "doublecircle",
                Kind::Activity => "ellipse",
                Kind::Fork(_) => "diamond",
                Kind::Join(_) => "hexagon",
                Kind::End => "box",
            };
            let label = quoted(&format!("{upper}\n{lower}\n{}", clip(&found, 60)));
            let _ = writeln!(text, "    n{node} [shape={shape}, label={label}];");
        }
        text.push_str("  }\n");
    }
    let toeg = view.toeg;
    for &node in &shown.order {
        let cause = Shown::cause(toeg, node);
        if cause != NONE && shown.drawn[cause as usize] {
            let style = if toeg.event(node).kind == Kind::Begin { "bold, dashed" } else { "bold" };
            let _ = writeln!(text, "  n{cause} -> n{node} [style=\"{style}\"];");
        }
        if let Kind::Join(thread) = toeg.event(node).kind
            && let Some(thread) = toeg.thread(thread)
            && shown.drawn[thread.last as usize]
        {
            let _ = writeln!(text, "  n{} -> n{node} [style=\"bold, dotted\"];", thread.last);
        }
        let next = toeg.next_in_task(node);
        if next != NONE && shown.drawn[next as usize] && Shown::cause(toeg, next) != node {
            let _ = writeln!(text, "  n{node} -> n{next} [arrowhead=none, color=gray];");
        }
    }
    text.push_str("}\n");
    Drawn { text, notes }
}
