//! A message sequence chart of an operation (as in the 1998 paper's Figure 8): tasks are vertical lines, time proceeds downwards, a message is
//! an arrow from sender to receiver. Bars show which entry is at work; its second phase is lighter.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::report::draw::Drawn;
use crate::report::draw::operation::{MessageKind, OperationOptions, OperationView, Shown};
use crate::report::draw::svg::{Anchor, Path, Svg};
use crate::report::draw::text::{NAME, PLAIN, SMALL, clip};
use crate::report::draw::time_axis::{Axis, UNIT};
use crate::tlc::driver::UNOWNED;
use crate::trace::toeg::NONE;
use crate::trace::{Kind, NodeId};

const MARGIN: f64 = 16.0;
/// Height of the boxes with names.
const HEAD: f64 = 30.0;
/// From a line to the next that has only events of its own.
const STEP: f64 = 22.0;
/// Room above an arrow for its label.
const ABOVE: f64 = 17.0;
/// Half the width of a bar.
const BAR: f64 = 5.0;
/// How far a bar within a bar stands to its right.
const NEST: f64 = 6.0;
/// The most that a label may take.
const LABEL: f64 = 230.0;

/// A message to draw.
struct Message {
    from: NodeId,
    to: NodeId,
    kind: MessageKind,
    label: String,
}

struct Chart<'a> {
    view: &'a OperationView<'a>,
    shown: &'a Shown,
    /// The column of each node.
    column: FxHashMap<NodeId, usize>,
    /// The line of each node, and where that is.
    line: FxHashMap<NodeId, usize>,
    heights: Vec<f64>,
    /// The axis of time, where all nodes have a time.
    axis: Option<Axis>,
    messages: Vec<Message>,
    /// The middle of each lifeline.
    x: Vec<f64>,
    /// How many bars stand around that of an entry.
    depth: Vec<usize>,
    /// How far text stands from a lifeline's middle.
    beside: f64,
    svg: Svg,
    id: &'a str,
}

/// An operation as a message sequence chart.
pub fn svg(view: &OperationView<'_>, options: &OperationOptions) -> Drawn {
    let shown = Shown::in_time(view, options.limit);
    let axis = Axis::new(view, &shown, STEP);
    let mut chart = Chart {
        view,
        shown: &shown,
        column: FxHashMap::default(),
        line: FxHashMap::default(),
        heights: Vec::new(),
        axis,
        messages: Vec::new(),
        x: Vec::new(),
        depth: vec![0; view.outcome.entries.len()],
        beside: 0.0,
        svg: Svg::default(),
        id: &options.id,
    };
    chart.lines();
    let right = chart.columns();
    let bottom = chart.heights.last().copied().unwrap_or(MARGIN + HEAD) + 22.0;
    chart.times(bottom);
    chart.lifelines(bottom);
    chart.bars();
    for number in 0..chart.messages.len() {
        chart.message(number);
    }
    for &node in &shown.order {
        chart.event(node);
    }
    let notes: Vec<String> = shown.note(view.toeg).into_iter().collect();
    let width = (right + MARGIN).max(440.0);
    let end = chart.legend(bottom + 8.0, width, &notes);
    let operation = view.toeg.operation();
    let scenario = view.names.names.text(operation.scenario);
    let title = format!("Messages of operation {} run {}", clip(scenario, 100), clip(&operation.run, 60));
    let description =
        format!("Message sequence chart with {} tasks and {} messages.", shown.tasks.len(), chart.messages.len());
    let text = chart.svg.finish(&options.id, "msc", (width, end + MARGIN), &title, &description);
    Drawn { text, notes }
}

impl Chart<'_> {
    /// Gives each node a line: a message that is received directly after it was sent lies on one, and takes no time where there is any.
    fn lines(&mut self) {
        let columns: FxHashMap<_, usize> =
            self.shown.tasks.iter().enumerate().map(|(column, &task)| (task, column)).collect();
        let mut y = MARGIN + HEAD + 6.0;
        let mut last = NONE;
        // An arrow needs room above it for its label; what is sent and received later has its label where it is received.
        for &node in &self.shown.order {
            let event = self.view.toeg.event(node);
            self.column.insert(node, columns[&event.task]);
            let message = self.shown.message(self.view, node).filter(|(from, _)| self.shown.drawn[*from as usize]);
            match message {
                // A task that passes on at once what came in does so on a line of its own: a line has one arrow.
                Some((from, _)) if from == last && self.is_at_once(from, node) => {
                    let line = self.heights.len() - 1;
                    self.heights[line] += ABOVE;
                    y += ABOVE;
                    self.line.insert(node, line);
                }
                _ => {
                    let needed = STEP + if message.is_some() { ABOVE } else { 0.0 };
                    let passed = self.axis.as_mut().map_or(0.0, |axis| axis.passes_to(event.time));
                    y += needed.max(passed);
                    self.line.insert(node, self.heights.len());
                    self.heights.push(y);
                }
            }
            if let Some((from, kind)) = message {
                let label = self.label(from, node, kind);
                self.messages.push(Message { from, to: node, kind, label });
            }
            last = node;
        }
    }

    /// Whether a message may lie on one line: it took no time, as far as is known, and its sender has the line for itself.
    fn is_at_once(&self, from: NodeId, to: NodeId) -> bool {
        let (from_event, to_event) = (self.view.toeg.event(from), self.view.toeg.event(to));
        let at_once = self.axis.is_none() || to_event.time <= from_event.time;
        at_once && self.shown.message(self.view, from).is_none()
    }

    /// What is written at a message.
    fn label(&self, from: NodeId, to: NodeId, kind: MessageKind) -> String {
        let names = &self.view.names.names;
        let service = self.view.toeg.event(to).service;
        let text = match kind {
            MessageKind::Reply => String::new(),
            MessageKind::Unknown => "?".to_owned(),
            _ if service.is_some() => names.text(service).to_owned(),
            _ => match self.view.toeg.event(from).kind {
                Kind::Fork(thread) => format!("thread {thread}"),
                _ => String::new(),
            },
        };
        SMALL.fit(&text, LABEL)
    }

    /// What is written beside an event.
    fn words(&self, node: NodeId) -> String {
        let activity = self.view.toeg.event(node).activity;
        if activity.is_some() { SMALL.fit(self.view.names.names.text(activity), LABEL) } else { String::new() }
    }

    /// Gives each lifeline a place: the room to its right fits whatever is written there.
    fn columns(&mut self) -> f64 {
        self.depths();
        let deepest = self.depth.iter().copied().max().unwrap_or(0) as f64 * NEST;
        let tasks = &self.shown.tasks;
        let heads: Vec<f64> = tasks.iter().map(|&task| self.head(task) + 16.0).collect();
        let mut room: Vec<f64> = (0..tasks.len())
            .map(|column| match heads.get(column + 1) {
                Some(next) => f64::midpoint(heads[column], *next) + 18.0,
                None => heads[column] / 2.0,
            })
            .collect();
        self.beside = 2.0 * BAR + deepest + 12.0;
        let beside = self.beside;
        for message in &self.messages {
            let gap = self.gap(message);
            room[gap] = room[gap].max(SMALL.width(&message.label) + 2.0 * beside + 14.0);
        }
        for &node in &self.shown.order {
            let words = self.words(node);
            if !words.is_empty() {
                let column = self.column[&node];
                room[column] = room[column].max(SMALL.width(&words) + 2.0 * beside);
            }
        }
        let axis = self.axis.as_ref().map_or(0.0, |axis| axis.width);
        let mut x = MARGIN + axis + heads.first().copied().unwrap_or(0.0) / 2.0;
        for gap in &room {
            self.x.push(x);
            x += gap;
        }
        x
    }

    fn head(&self, task: crate::trace::TaskId) -> f64 {
        NAME.width(&NAME.fit(&self.view.names.task_label(task), 170.0))
    }

    /// The room between lifelines in which a message's label stands: beside its sender, or where it comes in if that is later.
    fn gap(&self, message: &Message) -> usize {
        let (from, to) = (self.column[&message.from], self.column[&message.to]);
        match (to > from, self.is_level(message)) {
            (true, true) => from,
            (true, false) => to - 1,
            (false, true) => from - 1,
            (false, false) => to,
        }
    }

    /// Whether a message is received on the line on which it is sent.
    fn is_level(&self, message: &Message) -> bool {
        self.line[&message.from] == self.line[&message.to]
    }

    /// How many bars stand around each entry's: visits to a task that is already visited.
    fn depths(&mut self) {
        let mut open: FxHashMap<usize, Vec<(usize, u32)>> = FxHashMap::default();
        let spans = self.spans();
        for (entry, span) in spans.iter().enumerate() {
            let Some((column, first, last)) = *span else { continue };
            let stack = open.entry(column).or_default();
            stack.retain(|&(_, end)| end as usize >= first);
            self.depth[entry] = stack.iter().map(|&(depth, _)| depth + 1).max().unwrap_or(0);
            stack.push((self.depth[entry], last as u32));
        }
    }

    /// Column, first and last line of each entry.
    fn spans(&self) -> Vec<Option<(usize, usize, usize)>> {
        let mut spans: Vec<Option<(usize, usize, usize)>> = vec![None; self.view.outcome.entries.len()];
        for &node in &self.shown.order {
            let owner = self.view.outcome.owner[node as usize];
            if owner >= UNOWNED {
                continue;
            }
            let (column, line) = (self.column[&node], self.line[&node]);
            let span = &mut spans[owner as usize];
            *span = Some(match *span {
                None => (column, line, line),
                Some((column, first, last)) => (column, first.min(line), last.max(line)),
            });
        }
        spans
    }

    /// The axis of time, at the left: each line has its time, and where there is room its distance goes with the time that passes.
    fn times(&mut self, bottom: f64) {
        let Some(axis) = self.axis.take() else { return };
        let right = MARGIN + axis.width - 16.0;
        let top = MARGIN + (HEAD - SMALL.height()) / 2.0;
        self.svg.text((right - 8.0, top), Anchor::End, SMALL, "dim", UNIT);
        self.svg.path("lifeline", &Path::from(right, MARGIN + HEAD).line(right, bottom));
        for (label, &y) in axis.labels().iter().zip(&self.heights) {
            if !label.is_empty() {
                self.svg.path("lifeline", &Path::from(right - 5.0, y).line(right, y));
                self.svg.text((right - 8.0, y - SMALL.height() / 2.0), Anchor::End, SMALL, "dim", label);
            }
        }
        self.axis = Some(axis);
    }

    fn lifelines(&mut self, bottom: f64) {
        for (column, &task) in self.shown.tasks.iter().enumerate() {
            let (x, name) = (self.x[column], NAME.fit(&self.view.names.task_label(task), 170.0));
            let width = NAME.width(&name) + 16.0;
            let tooltip = self.view.names.task_label(task);
            self.svg.open(&format!("{}-t{column}", self.id), "life", &tooltip);
            self.svg.path("lifeline", &Path::from(x, MARGIN + HEAD).line(x, bottom));
            self.svg.rectangle("name", (x - width / 2.0, MARGIN), (width, HEAD), 3.0);
            let top = MARGIN + (HEAD - NAME.height()) / 2.0;
            self.svg.text((x, top), Anchor::Middle, NAME, "", &name);
            self.svg.close();
        }
    }

    /// Where an entry is at work.
    fn bars(&mut self) {
        let mut second: Vec<Option<(usize, usize)>> = vec![None; self.view.outcome.entries.len()];
        for &node in &self.shown.order {
            let owner = self.view.outcome.owner[node as usize];
            if owner < UNOWNED && self.view.outcome.phase(node) > 1 {
                let line = self.line[&node];
                let (first, last) = second[owner as usize].unwrap_or((line, line));
                second[owner as usize] = Some((first.min(line), last.max(line)));
            }
        }
        for (entry, span) in self.spans().into_iter().enumerate() {
            let Some((column, first, last)) = span else { continue };
            let x = self.x[column] - BAR + self.depth[entry] as f64 * NEST;
            let (top, bottom) = (self.heights[first] - 4.0, self.heights[last] + 4.0);
            let name = self.view.names.names.text(self.view.outcome.entries[entry].service);
            let tooltip = format!("entry E{entry} {name}");
            self.svg.open(&format!("{}-e{entry}", self.id), "bar", tooltip.trim_end());
            self.svg.rectangle("work", (x, top), (2.0 * BAR, bottom - top), 1.5);
            if let Some((from, to)) = second[entry] {
                let (from, to) = (self.heights[from] - 4.0, self.heights[to] + 4.0);
                self.svg.rectangle("later", (x, from), (2.0 * BAR, to - from), 1.5);
            }
            self.svg.close();
        }
    }

    /// Half the width of what stands on a lifeline at a node: on the right, and on the left.
    fn sides(&self, node: NodeId) -> (f64, f64) {
        let owner = self.view.outcome.owner[node as usize];
        let depth = if owner >= UNOWNED { 0 } else { self.depth[owner as usize] };
        (BAR + depth as f64 * NEST, BAR - depth as f64 * NEST)
    }

    fn message(&mut self, number: usize) {
        let message = &self.messages[number];
        let (from, to) = (self.column[&message.from], self.column[&message.to]);
        let (start, end) = (self.heights[self.line[&message.from]], self.heights[self.line[&message.to]]);
        let (rightwards, level) = (to > from, self.is_level(message));
        let side = |(right, left): (f64, f64), right_side: bool| if right_side { right } else { -left };
        let x = self.x[from] + side(self.sides(message.from), rightwards);
        let tip = self.x[to] + side(self.sides(message.to), !rightwards);
        let class = match message.kind {
            MessageKind::Call | MessageKind::Send => "arc",
            MessageKind::Forward => "arc forward",
            MessageKind::Reply => "arc reply",
            MessageKind::Unknown => "arc unknown",
        };
        let open = matches!(message.kind, MessageKind::Send | MessageKind::Reply | MessageKind::Unknown);
        let mut tooltip = message.kind.words().to_owned();
        let service = self.view.toeg.event(message.to).service;
        if service.is_some() {
            let _ = write!(tooltip, "\n{}", self.view.names.names.text(service));
        }
        let path = Path::from(x, start).line(tip, end);
        let label = message.label.clone();
        self.svg.open(&format!("{}-m{number}", self.id), "message", &tooltip);
        self.svg.path(class, &path);
        // Straight on into the lifeline, whatever the slope: arrowheads have the direction of most of the arrow.
        let length = ((tip - x).powi(2) + (end - start).powi(2)).sqrt().max(1.0);
        self.svg.arrowhead((tip, end), ((tip - x) / length, (end - start) / length), open);
        let (place, anchor) = match (rightwards, level) {
            (true, true) => (self.x[from] + self.beside, Anchor::Start),
            (true, false) => (self.x[to] - self.beside, Anchor::End),
            (false, true) => (self.x[from] - self.beside, Anchor::End),
            (false, false) => (self.x[to] + self.beside, Anchor::Start),
        };
        self.svg.text((place, end - ABOVE + 1.0), anchor, SMALL, "halo", &label);
        self.svg.close();
    }

    fn event(&mut self, node: NodeId) {
        let (x, y) = (self.x[self.column[&node]], self.heights[self.line[&node]]);
        let words = self.words(node);
        let (right, _) = self.sides(node);
        if matches!(self.view.toeg.event(node).kind, Kind::Begin | Kind::End)
            && self.shown.message(self.view, node).is_none()
        {
            self.svg.ellipse("small", (x + right - BAR, y), (2.5, 2.5));
        }
        self.svg.text((x + right + 5.0, y + 1.0), Anchor::Start, SMALL, "dim halo", &words);
    }

    fn legend(&mut self, top: f64, width: f64, notes: &[String]) -> f64 {
        let signs = [
            (MessageKind::Call, "arc", false),
            (MessageKind::Send, "arc", true),
            (MessageKind::Forward, "arc forward", false),
            (MessageKind::Reply, "arc reply", true),
            (MessageKind::Unknown, "arc unknown", true),
        ];
        let (mut x, mut y) = (MARGIN, top + 10.0);
        for (kind, class, open) in signs {
            if !self.messages.iter().any(|message| message.kind == kind) {
                continue;
            }
            let needed = 54.0 + SMALL.width(kind.words());
            if x > MARGIN && x + needed > width {
                (x, y) = (MARGIN, y + 20.0);
            }
            self.svg.path(class, &Path::from(x, y + 7.0).line(x + 28.0, y + 7.0));
            self.svg.arrowhead((x + 28.0, y + 7.0), (1.0, 0.0), open);
            self.svg.text((x + 36.0, y), Anchor::Start, SMALL, "dim", kind.words());
            x += needed;
        }
        y += 20.0;
        for note in notes {
            self.svg.text((MARGIN, y), Anchor::Start, SMALL, "dim", &PLAIN.fit(note, width * 1.5));
            y += 18.0;
        }
        y
    }
}
