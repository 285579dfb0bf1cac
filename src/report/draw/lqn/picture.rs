//! The picture: boxes placed, arcs drawn, words under it.

use rustc_hash::FxHashMap;

use crate::lqn::layout::{Graph, Layout, Link, Port, Route, Shape, Wish};
use crate::lqn::results::Results;
use crate::lqn::{CallKind, ProcessorId, TaskId};
use crate::report::draw::Drawn;
use crate::report::draw::lqn::LqnOptions;
use crate::report::draw::lqn::activities::{GraphPart, Inner};
use crate::report::draw::lqn::caption::{self, Legend};
use crate::report::draw::lqn::numbers::{means, short, time};
use crate::report::draw::lqn::tasks::{
    BESIDE, Busy, Ellipse, LINE, Line, SLANT, TaskBox, busy_processor, busy_task, ellipse,
};
use crate::report::draw::lqn::view::{Caller, Requests, View};
use crate::report::draw::svg::{Anchor, Path, Svg};
use crate::report::draw::text::{PLAIN, SMALL};

/// Room around the picture.
const MARGIN: f64 = 18.0;

/// What an arc of the layout is.
enum Arc<'v> {
    Requests(usize, &'v Requests),
    Arrivals(f64),
    Uses,
}

/// What a box of the layout is.
enum Node {
    Task(Box<TaskBox>),
    Processor(Ellipse),
    /// Where open arrivals come from.
    Source,
}

struct Picture<'v, 'm> {
    view: &'v View<'m>,
    results: Option<&'v Results>,
    options: &'v LqnOptions,
    nodes: Vec<Node>,
    arcs: Vec<Arc<'v>>,
    graph: Graph,
    svg: Svg,
}

/// Draws what is in view.
pub(super) fn draw(view: &View<'_>, results: Option<&Results>, options: &LqnOptions) -> Drawn {
    let mut picture = Picture {
        view,
        results,
        options,
        nodes: Vec::new(),
        arcs: Vec::new(),
        graph: Graph::default(),
        svg: Svg::default(),
    };
    picture.build();
    let layout = picture.graph.layout();
    let notes = view.notes();
    let legend = Legend {
        kinds: [Some(CallKind::Synchronous), Some(CallKind::Asynchronous), None]
            .map(|kind| view.requests.iter().any(|requests| requests.kind == kind)),
        delays: view.has_delays(),
        uses: picture.arcs.iter().any(|arc| matches!(arc, Arc::Uses)),
        results: results.is_some(),
        notes: &notes,
    };
    picture.write(&layout);
    let width = (layout.width + 2.0 * MARGIN).max(360.0);
    let height = caption::write(&mut picture.svg, &legend, MARGIN, layout.height + 2.0 * MARGIN, width - 2.0 * MARGIN);
    let description = describe(view);
    let text = picture.svg.finish(&options.id, "lqn", (width, height + MARGIN), &options.title, &description);
    Drawn { text, notes }
}

/// The picture in words.
fn describe(view: &View<'_>) -> String {
    let mut sentences = vec![format!("{} tasks, {} kinds of requests.", view.tasks.len(), view.requests.len())];
    for requests in view.requests.iter().take(12) {
        let verb = match requests.kind {
            Some(CallKind::Synchronous) => "calls",
            Some(CallKind::Asynchronous) => "sends to",
            None => "forwards to",
        };
        let to = &view.model.entries[requests.to.index()];
        sentences.push(format!(
            "{} {verb} {} of {} {} times.",
            PLAIN.fit(caller_name(view, requests.from), 240.0),
            PLAIN.fit(&to.name, 240.0),
            PLAIN.fit(&view.task(to.task).name, 240.0),
            means(&requests.means)
        ));
    }
    sentences.join(" ")
}

fn caller_name<'m>(view: &View<'m>, caller: Caller) -> &'m str {
    match caller {
        Caller::Entry(entry) => &view.model.entries[entry.index()].name,
        Caller::Activity(activity) => &view.model.activities[activity.index()].name,
    }
}

impl Picture<'_, '_> {
    /// Makes the boxes and arcs.
    fn build(&mut self) {
        let view = self.view;
        let mut places: FxHashMap<TaskId, usize> = FxHashMap::default();
        for &task in &view.tasks {
            let made = TaskBox::new(view, task, self.results, self.options.seconds);
            places.insert(task, self.nodes.len());
            self.graph.boxes.push(made.shape(view));
            self.nodes.push(Node::Task(Box::new(made)));
        }
        let mut exits: FxHashMap<TaskId, usize> = FxHashMap::default();
        for (number, requests) in view.requests.iter().enumerate() {
            let exit = exits.entry(requests.task).or_default();
            let turn = *exit;
            *exit += 1;
            let to_task = view.model.entries[requests.to.index()].task;
            if to_task == requests.task {
                continue;
            }
            let (Some(from), Some(to)) = (
                self.port_of_caller(places[&requests.task], requests, turn),
                self.port_of_entry(places[&to_task], requests),
            ) else {
                continue;
            };
            let label = means(&requests.means);
            let size = (SMALL.width(&label), SMALL.height());
            self.graph.arcs.push(Link { from, to, label: Some(size) });
            self.arcs.push(Arc::Requests(number, requests));
        }
        self.arrivals(&places);
        self.processors(&places);
    }

    fn port_of_caller(&self, node: usize, requests: &Requests, turn: usize) -> Option<(usize, usize)> {
        let Node::Task(made) = &self.nodes[node] else { return None };
        if made.inner.is_some() {
            return Some((node, made.compartments.len() + turn));
        }
        let place = match requests.from {
            Caller::Entry(entry) => made.compartments.iter().position(|one| one.entry == Some(entry)),
            // Activities that are not drawn call from their task.
            Caller::Activity(_) => Some(made.compartments.len() - 1),
        };
        place.map(|place| (node, place))
    }

    fn port_of_entry(&self, node: usize, requests: &Requests) -> Option<(usize, usize)> {
        let Node::Task(made) = &self.nodes[node] else { return None };
        made.compartments.iter().position(|one| one.entry == Some(requests.to)).map(|place| (node, place))
    }

    /// Open arrivals come from nowhere: from a point above.
    fn arrivals(&mut self, places: &FxHashMap<TaskId, usize>) {
        for &task in &self.view.tasks {
            let node = places[&task];
            let entries: Vec<_> = self.view.entries(task).collect();
            for entry in entries {
                let Some(rate) = self.view.model.entries[entry.index()].open_arrival_rate else { continue };
                let Node::Task(made) = &self.nodes[node] else { continue };
                let Some(place) = made.compartments.iter().position(|one| one.entry == Some(entry)) else { continue };
                let label = arrival_label(rate, self.options.seconds);
                let source = self.nodes.len();
                let ports = vec![Port { top: (4.0, 4.0), bottom: (4.0, 4.0) }];
                self.graph.boxes.push(Shape { width: 8.0, height: 8.0, ports, wish: Wish::Free });
                self.nodes.push(Node::Source);
                let size = (SMALL.width(&label), SMALL.height());
                self.graph.arcs.push(Link { from: (source, 0), to: (node, place), label: Some(size) });
                self.arcs.push(Arc::Arrivals(rate));
            }
        }
    }

    /// Processors that several tasks share.
    fn processors(&mut self, places: &FxHashMap<TaskId, usize>) {
        let view = self.view;
        for (&processor, tasks) in &view.processors {
            let shared: Vec<usize> = tasks
                .iter()
                .map(|task| places[task])
                .filter(|&node| matches!(&self.nodes[node], Node::Task(made) if made.own.is_none()))
                .collect();
            if shared.is_empty() {
                continue;
            }
            let made = ellipse(view, processor, self.results);
            let node = self.nodes.len();
            let middle = (made.width * 0.2, made.width * 0.8);
            let ports = vec![Port { top: middle, bottom: middle }];
            self.graph.boxes.push(Shape { width: made.width, height: made.height, ports, wish: Wish::Free });
            self.nodes.push(Node::Processor(made));
            for task in shared {
                let Node::Task(made) = &self.nodes[task] else { continue };
                let exits = made.inner.as_ref().map_or(0, |inner| inner.exits.len());
                let port = made.compartments.len() - 1 + exits;
                self.graph.arcs.push(Link { from: (task, port), to: (node, 0), label: None });
                self.arcs.push(Arc::Uses);
            }
        }
    }

    /// Writes everything in its place: arcs first, so that boxes lie on top of them.
    fn write(&mut self, layout: &Layout) {
        let arcs = std::mem::take(&mut self.arcs);
        let nodes = std::mem::take(&mut self.nodes);
        for (arc, route) in arcs.iter().zip(&layout.routes) {
            // An arc to a processor ends on the ellipse, not on the box around it.
            self.arc(arc, route);
        }
        for (node, place) in nodes.iter().zip(&layout.boxes) {
            let at = (place.x + MARGIN, place.y + MARGIN);
            match node {
                Node::Task(made) => self.task(made, at),
                Node::Processor(made) => self.processor(made, at),
                Node::Source => self.svg.ellipse("small", (at.0 + 4.0, at.1 + 4.0), (3.0, 3.0)),
            }
        }
    }

    fn arc(&mut self, arc: &Arc<'_>, route: &Route) {
        if route.stretches.is_empty() {
            return;
        }
        let (class, open, label) = match arc {
            Arc::Uses => {
                self.svg.path("use", &line(route, 8.0));
                return;
            }
            Arc::Arrivals(rate) => ("arc", true, arrival_label(*rate, self.options.seconds)),
            Arc::Requests(number, requests) => {
                let (id, tooltip) = (format!("{}-r{number}", self.options.id), self.about_requests(requests));
                self.svg.open(&id, "request", &tooltip);
                let class = if requests.kind.is_none() { "arc forward" } else { "arc" };
                (class, requests.kind == Some(CallKind::Asynchronous), means(&requests.means))
            }
        };
        self.svg.path(class, &line(route, 0.0));
        let (x, y) = if route.upwards {
            route.stretches.first().map_or((0.0, 0.0), |first| (first.x, first.top))
        } else {
            route.stretches.last().map_or((0.0, 0.0), |last| (last.x, last.bottom))
        };
        let down = if route.upwards { -1.0 } else { 1.0 };
        self.svg.arrowhead((x + MARGIN, y + MARGIN), (0.0, down), open);
        if let Some(place) = &route.label {
            self.svg.text((place.x + MARGIN, place.y + MARGIN), Anchor::Start, SMALL, "", &label);
        }
        if matches!(arc, Arc::Requests(..)) {
            self.svg.close();
        }
    }

    fn task(&mut self, made: &TaskBox, (x, y): (f64, f64)) {
        let task = self.view.task(made.task);
        let source = task.scheduling.is_source();
        let focus = self.options.focus.contains(&made.task);
        let class = match (source, focus) {
            (true, true) => "ref focus",
            (true, false) => "ref",
            (false, true) => "focus",
            (false, false) => "",
        };
        let busy = busy_task(self.view, made.task, self.results);
        self.svg.open(&format!("{}-t{}", self.options.id, made.task.0), class, &self.about_task(made.task, busy));
        let corner = |at: f64, height: f64| (x + at - SLANT * height / made.height, y + height);
        let outline =
            [corner(SLANT, 0.0), corner(made.width, 0.0), corner(made.width, made.height), corner(SLANT, made.height)];
        self.svg.polygon("task", &outline);
        let border = |at: f64, height: f64| (x + made.border(at, height), y + height);
        if let Some(own) = made.compartments.last() {
            // The name's compartment goes on to the right side.
            let colour = busy.and_then(Busy::class).map_or_else(|| "name".to_owned(), |class| format!("name u{class}"));
            let shape = [
                border(own.from, 0.0),
                corner(made.width, 0.0),
                corner(made.width, made.row_height),
                border(own.from, made.row_height),
            ];
            self.svg.polygon(&colour, &shape);
        }
        for one in made.compartments.iter().skip(1).rev().skip(1) {
            let ((top, from), (foot, to)) = (border(one.from, 0.0), border(one.from, made.row_height));
            self.svg.path("rule", &Path::from(top, from).line(foot, to));
        }
        if made.inner.is_some() {
            let (left, right) = (corner(SLANT, made.row_height), corner(made.width, made.row_height));
            self.svg.path("rule", &Path::from(left.0, left.1).line(right.0, right.1));
        }
        for one in &made.compartments {
            let on = match (one.entry, busy.and_then(Busy::class)) {
                (None, Some(6)) => "on6",
                (None, Some(_)) => "on1",
                _ => "",
            };
            let middle = f64::midpoint(one.from, one.to);
            if let Some(entry) = one.entry {
                let id = format!("{}-e{}", self.options.id, entry.0);
                let tooltip = self.about_entry(entry);
                self.svg.open(&id, "entry", &tooltip);
            }
            let middle = x + made.border(middle, made.row_height / 2.0);
            lines(&mut self.svg, &one.lines, middle, (y, made.row_height), on);
            if one.entry.is_some() {
                self.svg.close();
            }
        }
        if let Some(inner) = &made.inner {
            self.inner(inner, (x + SLANT, y));
        }
        self.svg.close();
        let mut right = x + made.width;
        if let Some(own) = &made.own {
            let middle = y + own.height.max(made.row_height) / 2.0;
            let from = right - SLANT * (middle - y) / made.height;
            self.svg.path("use", &Path::from(from, middle).line(right + BESIDE, middle));
            self.processor(own, (right + BESIDE, middle - own.height / 2.0));
            right += BESIDE + own.width;
        }
        self.loops(made, right, y);
    }

    /// Requests of a task to itself: an arrow that turns back, and a line of text each.
    fn loops(&mut self, made: &TaskBox, right: f64, y: f64) {
        if made.to_itself.is_empty() {
            return;
        }
        let loop_back = Path::from(right + 2.0, y + 6.0).curve(
            (right + 20.0, y + 4.0),
            (right + 20.0, y + 28.0),
            (right + 3.0, y + 24.0),
        );
        self.svg.path("arc", &loop_back);
        for (place, text) in made.to_itself.iter().enumerate() {
            self.svg.text((right + 22.0, y + place as f64 * LINE), Anchor::Start, SMALL, "", text);
        }
    }

    fn inner(&mut self, inner: &Inner, (x, y): (f64, f64)) {
        for (number, route) in inner.layout.routes.iter().enumerate() {
            if route.stretches.is_empty() {
                continue;
            }
            let mut path = Path::default();
            for (place, stretch) in route.stretches.iter().enumerate() {
                path = step(path, place, route, (x, y));
                path = path.line(stretch.x + x, stretch.bottom + y);
            }
            let exit = inner.arc_exits[number];
            if exit {
                // On to the foot of the task.
                if let Some(last) = route.stretches.last() {
                    path = path.line(last.x + x, inner.height + y);
                }
            }
            self.svg.path(if exit { "arc" } else { "flow" }, &path);
            if let Some(place) = &route.label {
                self.svg.text((place.x + x, place.y + y), Anchor::Start, SMALL, "dim", &inner.labels[number]);
            }
            if let (false, Some(last)) = (exit, route.stretches.last()) {
                let (x, y) = (last.x + x, last.bottom + y);
                self.svg.polygon("small", &[(x, y), (x - 3.0, y - 6.0), (x + 3.0, y - 6.0)]);
            }
        }
        for (part, place) in inner.parts.iter().zip(&inner.layout.boxes) {
            let at = (place.x + x, place.y + y);
            match part {
                GraphPart::Row | GraphPart::Exit => {}
                GraphPart::Operator(sign) => {
                    self.svg.rectangle("op", at, (place.width, place.height), place.height / 2.0);
                    let top = at.1 + (place.height - PLAIN.height()) / 2.0;
                    self.svg.text((at.0 + place.width / 2.0, top), Anchor::Middle, PLAIN, "", sign);
                }
                GraphPart::Activity(id, lines) => {
                    let id = format!("{}-a{}", self.options.id, id.0);
                    self.svg.open(&id, "activity", "");
                    self.svg.rectangle("act", at, (place.width, place.height), 5.0);
                    for (number, line) in lines.iter().enumerate() {
                        let (face, class) = if number == 0 { (PLAIN, "") } else { (SMALL, "dim") };
                        let top = at.1 + 4.0 + number as f64 * LINE;
                        self.svg.text((at.0 + place.width / 2.0, top), Anchor::Middle, face, class, line);
                    }
                    self.svg.close();
                }
            }
        }
    }

    fn processor(&mut self, made: &Ellipse, (x, y): (f64, f64)) {
        let busy = busy_processor(self.view, made.processor, self.results);
        let id = format!("{}-p{}", self.options.id, made.processor.0);
        let tooltip = self.about_processor(made.processor, busy);
        self.svg.open(&id, "processor", &tooltip);
        let class = busy.and_then(Busy::class);
        let colour = class.map_or_else(|| "proc".to_owned(), |class| format!("proc u{class}"));
        let (rx, ry) = (made.width / 2.0, made.height / 2.0);
        self.svg.ellipse(&colour, (x + rx, y + ry), (rx, ry));
        let on = match class {
            Some(6) => "on6",
            Some(_) => "on1",
            None => "",
        };
        lines(&mut self.svg, &made.lines, x + rx, (y, made.height), on);
        self.svg.close();
    }

    fn about_task(&self, id: TaskId, busy: Option<Busy>) -> String {
        let task = self.view.task(id);
        let mut text = format!("task {}", task.name);
        if let Some(processor) = self.view.model.processors.get(task.processor.index()) {
            text.push_str(&format!("\non processor {}", processor.name));
        }
        if let (Some(busy), Some(result)) = (busy, self.results.and_then(|results| results.tasks.get(id.index()))) {
            text.push_str(&format!(
                "\n{} busy threads, {} invocations per second",
                short(busy.servers),
                short(result.throughput)
            ));
        }
        text
    }

    fn about_processor(&self, id: ProcessorId, busy: Option<Busy>) -> String {
        let processor = &self.view.model.processors[id.index()];
        let mut text = format!("processor {}\n{}", processor.name, crate::lqn::terms::scheduling(processor.scheduling));
        if let Some(busy) = busy {
            text.push_str(&format!("\n{} busy servers", short(busy.servers)));
        }
        text
    }

    fn about_entry(&self, id: crate::lqn::EntryId) -> String {
        let entry = &self.view.model.entries[id.index()];
        let mut text = format!("entry {}", entry.name);
        if let Some(result) = self.results.and_then(|results| results.entries.get(id.index())) {
            text.push_str(&format!("\n{} invocations per second", short(result.throughput)));
            for (phase, service) in result.service.iter().enumerate().filter(|(_, service)| **service > 0.0) {
                text.push_str(&format!("\nphase {}: {}", phase + 1, time(*service, self.options.seconds)));
            }
        }
        text
    }

    fn about_requests(&self, requests: &Requests) -> String {
        let to = &self.view.model.entries[requests.to.index()];
        let kind = match requests.kind {
            Some(CallKind::Synchronous) => "synchronous",
            Some(CallKind::Asynchronous) => "asynchronous",
            None => "forwarded",
        };
        format!(
            "{} of {}\nto {} of {}\n{kind}, mean number per invocation {}",
            caller_name(self.view, requests.from),
            self.view.task(requests.task).name,
            to.name,
            self.view.task(to.task).name,
            means(&requests.means)
        )
    }
}

fn arrival_label(rate: f64, seconds: bool) -> String {
    format!("λ = {}{}", short(rate), if seconds { "/s" } else { "" })
}

/// Lines of text about a middle, centred between two heights.
fn lines(svg: &mut Svg, lines: &[Line], middle: f64, (top, height): (f64, f64), class: &str) {
    let shown: Vec<&Line> = lines.iter().filter(|line| !line.text.is_empty()).collect();
    let mut y = top + (height - shown.len() as f64 * LINE) / 2.0;
    for line in shown {
        let class = if line.dim && class.is_empty() { "dim" } else { class };
        svg.text((middle, y), Anchor::Middle, line.face, class, &line.text);
        y += LINE;
    }
}

/// The line of an arc; `into` is how far it goes on into the lower box.
fn line(route: &Route, into: f64) -> Path {
    let mut path = Path::default();
    for (place, stretch) in route.stretches.iter().enumerate() {
        path = step(path, place, route, (MARGIN, MARGIN));
        if stretch.bottom > stretch.top {
            path = path.line(stretch.x + MARGIN, stretch.bottom + MARGIN);
        }
    }
    match route.stretches.last() {
        Some(last) if into > 0.0 => path.line(last.x + MARGIN, last.bottom + into + MARGIN),
        _ => path,
    }
}

/// To the top of the next vertical piece: straight, or in a bend that begins and ends vertically.
fn step(path: Path, place: usize, route: &Route, (x, y): (f64, f64)) -> Path {
    let next = route.stretches[place];
    let end = (next.x + x, next.top + y);
    let Some(last) = place.checked_sub(1).map(|last| route.stretches[last]) else { return Path::from(end.0, end.1) };
    let start = (last.x + x, last.bottom + y);
    if (start.0 - end.0).abs() < 0.05 {
        return path.line(end.0, end.1);
    }
    let middle = f64::midpoint(start.1, end.1);
    path.curve((start.0, middle), (end.0, middle), end)
}
