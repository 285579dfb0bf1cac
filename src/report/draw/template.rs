//! A template as Table 1 of the 1998 paper draws it, from its text alone.
//!
//! Tasks are horizontal lines, threads are bands along the nodes that they run through, a node's shape tells its kind. A fork is tied
//! to the begin of its thread by a dashed arrow. The nodes of a `repeat` stand in a frame.

use crate::datalog::ast::{KindPattern, MatchItem, NodePattern, Repeat, Template, Term, Variable};
use crate::datalog::syntax::{print_condition, print_kind, print_term};
use crate::diagnostic::quantity::counted;
use crate::report::draw::Drawn;
use crate::report::draw::svg::{Anchor, Path, Svg};
use crate::report::draw::text::{NAME, PLAIN, SMALL};

/// From one task's line to the next.
const ROW: f64 = 104.0;
/// Room above the first line: for the title, the frame's words and a node's name.
const TOP: f64 = 92.0;
/// Room between the columns of nodes.
const GAP: f64 = 26.0;
/// Half the height of a node.
const SIZE: f64 = 8.0;
/// Colours of bands, again from the first after the last.
const BANDS: usize = 6;
/// The widest that a label, a name or a line of conditions may be; what is longer is cut.
const WIDEST: f64 = 420.0;

/// A node in its place.
struct Spot<'t> {
    node: &'t NodePattern,
    /// Of which repetition it is.
    repeated: Option<usize>,
    x: f64,
    y: f64,
    thread: String,
    kind: String,
    label: String,
}

/// A template as SVG. Its ids begin with `id`.
pub fn svg(template: &Template, id: &str) -> Drawn {
    let (spots, tasks, repeats, left) = place(template);
    let width_of_nodes = spots.last().map_or(left, |spot| spot.x + column(spot) / 2.0 + GAP);
    let title = format!("{} ({})", template.name.value, order(template));
    let title = NAME.fit(&title, WIDEST);
    let doc = template.doc.lines().next().unwrap_or_default();
    let doc = PLAIN.fit(doc, width_of_nodes.max(WIDEST) - 32.0);
    let conditions = conditions(template, width_of_nodes.max(WIDEST) - 32.0);
    let legend_top = TOP + ROW * tasks.len() as f64;
    let words_top = legend_top + 30.0;
    let height = words_top + 18.0 * conditions.len() as f64 + 12.0;
    let widest_words = conditions.iter().map(|line| PLAIN.width(line)).fold(legend_width(), f64::max);
    let width = width_of_nodes.max(widest_words + 32.0).max(PLAIN.width(&doc) + 32.0).max(NAME.width(&title) + 32.0);

    let mut svg = Svg::default();
    svg.text((16.0, 12.0), Anchor::Start, NAME, "", &title);
    svg.text((16.0, 30.0), Anchor::Start, PLAIN, "dim", &doc);
    for (row, task) in tasks.iter().enumerate() {
        let y = line_of(row);
        svg.path("rule", &Path::from(left - 8.0, y).line(width - 16.0, y));
        svg.text((16.0, y - 7.0), Anchor::Start, NAME, "", &NAME.fit(task, 120.0));
    }
    for (number, repeat) in repeats.into_iter().enumerate() {
        frame(&mut svg, &spots, (number, repeat), tasks.len());
    }
    bands(&mut svg, &spots, id);
    arrows(&mut svg, &spots);
    for spot in &spots {
        node(&mut svg, spot);
    }
    legend(&mut svg, legend_top);
    for (number, line) in conditions.iter().enumerate() {
        svg.text((16.0, words_top + 18.0 * number as f64), Anchor::Start, PLAIN, "dim", line);
    }
    let description = format!(
        "{} on {}: {}. {}",
        counted(spots.len() as u64, "node"),
        counted(tasks.len() as u64, "task"),
        spots.iter().map(|spot| format!("{} {}", name(spot.node), spot.kind)).collect::<Vec<_>>().join(", "),
        conditions.join(" ")
    );
    let text = svg.finish(id, "template", (width, height), &format!("Template {}", template.name.value), &description);
    Drawn { text, notes: Vec::new() }
}

/// The same as text: a line for each task, a column for each node, and the threads below.
pub fn text(template: &Template) -> String {
    let (spots, tasks, repeats, _) = place(template);
    let heads: Vec<&str> = tasks.iter().map(String::as_str).chain(["threads"]).collect();
    let head = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = heads.iter().map(|name| format!("{name:<head$} ")).collect();
    for spot in &spots {
        let cell = format!("{} {}", name(spot.node), spot.kind);
        let width = cell.chars().count().max(spot.thread.chars().count());
        for (row, line) in lines.iter_mut().enumerate() {
            if row == tasks.len() {
                line.push_str(&format!(" {:<width$} ", spot.thread));
            } else if spot.y == line_of(row) {
                line.push_str(&format!(" {cell} {}", "─".repeat(width - cell.chars().count())));
            } else {
                line.push_str(&"─".repeat(width + 2));
            }
        }
    }
    let mut text = String::new();
    for line in &lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for (number, repeat) in repeats.into_iter().enumerate() {
        let own = spots.iter().filter(|spot| spot.repeated == Some(number));
        let repeated: Vec<String> = own.map(|spot| name(spot.node)).collect();
        let least = repeat.min.as_ref().map(|min| format!(", at least {}", min.value)).unwrap_or_default();
        let (index, count) = (&repeat.index.value, &repeat.count.value);
        text.push_str(&format!("repeat {index} in 1..{count}{least}: {}\n", repeated.join(", ")));
    }
    text
}

fn order(template: &Template) -> String {
    template.order.as_ref().map_or_else(|| "no order".to_owned(), |order| format!("order {}", order.value))
}

fn line_of(row: usize) -> f64 {
    TOP + ROW * row as f64
}

/// The nodes in columns in the order of the text, the tasks in order of first appearance, the repetitions, and where the
/// lines begin.
fn place(template: &Template) -> (Vec<Spot<'_>>, Vec<String>, Vec<&Repeat>, f64) {
    let mut nodes: Vec<(&NodePattern, Option<usize>)> = Vec::new();
    let mut repeats: Vec<&Repeat> = Vec::new();
    // Of alternatives, the one that is tried first.
    let mut open: Vec<&MatchItem> = template.items.iter().rev().collect();
    while let Some(item) = open.pop() {
        match item {
            MatchItem::Node(node) => nodes.push((node, None)),
            MatchItem::Repeat(block) => {
                nodes.extend(block.nodes.iter().map(|node| (node, Some(repeats.len()))));
                repeats.push(block);
            }
            MatchItem::Choice(choice) => open.extend(choice.ways.iter().take(1).flatten().rev()),
        }
    }
    let mut tasks: Vec<String> = Vec::new();
    let task = |node: &NodePattern| match &node.task.value {
        Term::Wildcard => "any task".to_owned(),
        term => print_term(term),
    };
    for (node, _) in &nodes {
        let task = task(node);
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let names = tasks.iter().map(|task| NAME.width(&NAME.fit(task, 120.0))).fold(0.0, f64::max);
    let left = 16.0 + names + 20.0;
    let mut x = left + GAP;
    let mut spots: Vec<Spot<'_>> = Vec::new();
    for (node, repeated) in nodes {
        let row = tasks.iter().position(|other| *other == task(node)).unwrap_or(0);
        let term = |term: &Term| print_term(term);
        let label =
            format!("{}, {} | {}", term(&node.thread.value), term(&node.position.value), term(&node.counter.value));
        let mut spot = Spot {
            node,
            repeated,
            x: 0.0,
            y: line_of(row),
            thread: term(&node.thread.value),
            kind: SMALL.fit(&print_kind(&node.kind.value), WIDEST),
            label: SMALL.fit(&label, WIDEST),
        };
        // The frame of a repetition needs room of its own.
        if spots.last().is_some_and(|last| last.repeated != repeated) {
            x += GAP;
        }
        let width = column(&spot);
        spot.x = x + width / 2.0;
        x += width + GAP;
        spots.push(spot);
    }
    (spots, tasks, repeats, left)
}

fn name(node: &NodePattern) -> String {
    let index = node.index.as_ref().map(|index| format!("[{}]", index.value)).unwrap_or_default();
    format!("{}{index}", node.name.value)
}

fn column(spot: &Spot<'_>) -> f64 {
    let name = NAME.width(&NAME.fit(&name(spot.node), WIDEST));
    SMALL.width(&spot.label).max(SMALL.width(&spot.kind)).max(name).max(4.0 * SIZE)
}

/// Conditions, as many on a line as fit.
fn conditions(template: &Template, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (number, condition) in template.conditions.iter().enumerate() {
        let text = PLAIN.fit(&print_condition(&condition.value), room - 60.0);
        let longer = lines.last().map(|line| format!("{line}, {text}"));
        match longer.filter(|line| PLAIN.width(line) <= room) {
            Some(longer) => {
                lines.pop();
                lines.push(longer);
            }
            None => lines.push(if number == 0 { format!("where {text}") } else { format!("      {text}") }),
        }
    }
    if template.longest {
        lines.push("the longest sequence that fits".to_owned());
    }
    lines
}

fn frame(svg: &mut Svg, spots: &[Spot<'_>], (number, repeat): (usize, &Repeat), rows: usize) {
    let inner = || spots.iter().filter(|spot| spot.repeated == Some(number));
    let left = inner().map(|spot| spot.x - column(spot) / 2.0).fold(f64::INFINITY, f64::min) - GAP / 2.0;
    let mut right = inner().map(|spot| spot.x + column(spot) / 2.0).fold(0.0, f64::max) + GAP / 2.0;
    if !left.is_finite() {
        return;
    }
    let min = repeat.min.as_ref().map(|min| format!(", at least {}", min.value)).unwrap_or_default();
    let words = format!("repeat {} in 1..{}{min}", repeat.index.value, repeat.count.value);
    let words = SMALL.fit(&words, (right - left - 12.0).max(40.0));
    right = right.max(left + SMALL.width(&words) + 12.0);
    let (top, bottom) = (TOP - 40.0, line_of(rows - 1) + 52.0);
    svg.rectangle("frame", (left, top), (right - left, bottom - top), 6.0);
    svg.text((left + 6.0, top + 3.0), Anchor::Start, SMALL, "dim", &words);
}

/// Threads: a broad line through the nodes of each, from left to right.
fn bands(svg: &mut Svg, spots: &[Spot<'_>], id: &str) {
    let mut threads: Vec<&str> = Vec::new();
    for spot in spots.iter().filter(|spot| spot.thread != "_") {
        if !threads.contains(&&*spot.thread) {
            threads.push(&spot.thread);
        }
    }
    for (number, thread) in threads.into_iter().enumerate() {
        let mut along = spots.iter().filter(|spot| spot.thread == thread);
        let Some(first) = along.next() else { continue };
        svg.open(&format!("{id}-thread-{}", number + 1), "band", &format!("thread {thread}"));
        // A thread of one node is a short band, too.
        let mut path = Path::from(first.x - SIZE - 4.0, first.y);
        path = path.line(first.x + SIZE + 4.0, first.y);
        for spot in along {
            path = path.line(spot.x, spot.y);
        }
        svg.path(&format!("b{}", number % BANDS), &path);
        svg.close();
    }
}

/// Whether a fork of the one thread starts the other: `q` and `q`, `q[1]` and the first `q[x]`, `q[x+1]` and `q[n+1]`.
fn starts(target: &Term, thread: &Term) -> bool {
    match (target, thread) {
        (Term::Variable(left, a), Term::Variable(right, b)) => left.name == right.name && a == b && meet(left, right),
        (left, right) => left == right && *left != Term::Wildcard,
    }
}

fn meet(target: &Variable, thread: &Variable) -> bool {
    let (Some(from), Some(to)) = (&target.index, &thread.index) else { return target.index == thread.index };
    match (&from.variable, &to.variable) {
        // The first round, from outside; or the next one.
        (None, Some(_)) => from.offset == 1 && to.offset == 0,
        (Some(_), Some(_)) => from.offset == to.offset,
        _ => from == to,
    }
}

/// Forks to the begins of their threads, dashed; a join from its thread.
fn arrows(svg: &mut Svg, spots: &[Spot<'_>]) {
    for (number, from) in spots.iter().enumerate() {
        match &from.node.kind.value {
            KindPattern::Fork(target) => {
                let begins = |spot: &&Spot<'_>| {
                    matches!(spot.node.kind.value, KindPattern::Begin) && starts(&target.value, &spot.node.thread.value)
                };
                for to in spots.iter().filter(begins) {
                    arrow(svg, (from.x, from.y), (to.x, to.y));
                }
            }
            KindPattern::Join(target) => {
                let of_thread = |spot: &&Spot<'_>| starts(&target.value, &spot.node.thread.value);
                if let Some(last) = spots[..number].iter().rev().find(of_thread) {
                    arrow(svg, (last.x, last.y), (from.x, from.y));
                }
            }
            _ => {}
        }
    }
}

fn arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    // On one line the arrow goes over what stands between.
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let rise = if dy.abs() < 1.0 { -34.0 } else { 0.0 };
    let middle = (from.0 + dx / 2.0, from.1 + dy / 2.0 + rise);
    let end = (to.0 - (SIZE + 2.0) * dx.signum(), to.1 + if rise == 0.0 { 0.0 } else { -4.0 });
    svg.path("flow forward", &Path::from(from.0, from.1).curve(middle, (middle.0, end.1 + rise / 2.0), end));
    let (tx, ty) = (end.0 - middle.0, end.1 - (end.1 + rise / 2.0));
    let length = (tx * tx + ty * ty).sqrt().max(1.0);
    let (ux, uy) = (tx / length, ty / length);
    let back = (end.0 - 7.0 * ux, end.1 - 7.0 * uy);
    svg.polygon("full", &[end, (back.0 - 3.0 * uy, back.1 + 3.0 * ux), (back.0 + 3.0 * uy, back.1 - 3.0 * ux)]);
}

fn node(svg: &mut Svg, spot: &Spot<'_>) {
    shape(svg, &spot.node.kind.value, (spot.x, spot.y));
    svg.text((spot.x, spot.y - SIZE - 19.0), Anchor::Middle, NAME, "", &NAME.fit(&name(spot.node), WIDEST));
    svg.text((spot.x, spot.y + SIZE + 5.0), Anchor::Middle, SMALL, "", &spot.kind);
    svg.text((spot.x, spot.y + SIZE + 19.0), Anchor::Middle, SMALL, "dim", &spot.label);
}

/// A node's shape: a triangle begins, a square ends, a circle is an activity, a diamond forks, a bow tie joins.
fn shape(svg: &mut Svg, kind: &KindPattern, (x, y): (f64, f64)) {
    let s = SIZE;
    match kind {
        KindPattern::Begin => svg.polygon("task", &[(x - s, y - s), (x + s, y), (x - s, y + s)]),
        KindPattern::Activity => svg.ellipse("task", (x, y), (s, s)),
        KindPattern::End => svg.rectangle("full", (x - s, y - s), (2.0 * s, 2.0 * s), 0.0),
        KindPattern::Fork(_) => {
            svg.polygon("task", &[(x, y - s - 2.0), (x + s + 2.0, y), (x, y + s + 2.0), (x - s - 2.0, y)]);
        }
        KindPattern::Join(_) => svg.polygon("task", &[(x - s, y - s), (x + s, y + s), (x + s, y - s), (x - s, y + s)]),
        KindPattern::Any => svg.ellipse("act", (x, y), (s + 3.0, s)),
    }
}

/// Kinds with their words.
fn kinds() -> [(KindPattern, &'static str); 5] {
    let any = || {
        let span = crate::datalog::ast::Span::default();
        crate::datalog::ast::Spanned { value: Term::Wildcard, span }
    };
    [
        (KindPattern::Begin, "begin"),
        (KindPattern::Activity, "activity"),
        (KindPattern::End, "end"),
        (KindPattern::Fork(any()), "fork"),
        (KindPattern::Join(any()), "join"),
    ]
}

fn legend_width() -> f64 {
    kinds().iter().map(|(_, word)| 3.0 * SIZE + SMALL.width(word) + 18.0).sum::<f64>() + 16.0
}

fn legend(svg: &mut Svg, top: f64) {
    let mut x = 16.0 + SIZE;
    for (kind, word) in kinds() {
        shape(svg, &kind, (x + 2.0, top + 6.0));
        svg.text((x + 2.0 * SIZE, top), Anchor::Start, SMALL, "dim", word);
        x += 3.0 * SIZE + SMALL.width(word) + 18.0;
    }
}
