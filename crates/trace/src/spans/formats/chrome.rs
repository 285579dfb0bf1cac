//! Chrome trace events, as Perfetto and `chrome://tracing` show them: `{"traceEvents": […]}` or a bare list, with or without its end.
//!
//! | what | events |
//! |---|---|
//! | span | complete `X`; `B` … `E` of a thread; asynchronous `b` … `e` (also `S` … `F`) of one `cat`, `id` and `scope` |
//! | parent | the span around it in its thread; else where the flow (`s`, `t` … `f`) begins that ends in it |
//! | operation | what begins at a span without a parent |
//! | service, instance | names of process and thread (`M`), else their numbers |
//!
//! - Spans of a thread that overlap without lying in each other are side by side, and the later one belongs to what is around both.
//! - A flow that ends binds to the span around its end (`"bp": "e"`), else to the next one of the thread.
//! - Counters, instants and samples are no spans: they are counted.
//!
//! Times are microseconds, with or without a fraction.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::codes;
use crate::spans::builder::Builder;
use crate::spans::formats::records::{Documents, Record, Records, attributes, time};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::SpanId;
use crate::spans::input;
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Chrome,
    title: "Chrome trace events",
    content: &[Content::Json],
    detect: |_, head| head.has_any(&["traceEvents"]) || head.has(&["ph", "ts"]) || head.has(&["ph", "pid", "tid"]),
    read: |builder, input, strict| {
        let Documents(chrome) = input::documents::<Documents<Chrome>>(builder, input, strict)?;
        chrome.finish(builder);
        Ok(())
    },
    together: None,
};

/// A thread, by the numbers or names of process and thread.
type Thread = (Name, Name);

/// A span of a thread or of an asynchronous track.
#[derive(Clone, Debug)]
struct Slice {
    thread: Thread,
    name: Name,
    start: i64,
    end: Option<i64>,
    /// Its attributes, an object or nothing.
    arguments: Value,
    /// Whether it lies on a track of its own, beside those of the thread.
    is_async: bool,
}

/// One end of an arrow.
#[derive(Clone, Copy, Debug)]
struct FlowEnd {
    thread: Thread,
    time: i64,
    /// Whether it binds to the span around it, else to the next one.
    encloses: bool,
}

/// The events so far.
#[derive(Default)]
struct Chrome {
    slices: Vec<Slice>,
    /// What is open in each thread, the innermost last.
    open: BTreeMap<Thread, Vec<usize>>,
    /// What is open of each asynchronous track.
    tracks: BTreeMap<(Name, Name, Name), Vec<usize>>,
    /// The ends of flows, in the order of the file; the first of each begins it.
    flows: BTreeMap<(Name, Name), Vec<FlowEnd>>,
    processes: BTreeMap<Name, Name>,
    threads: BTreeMap<Thread, Name>,
}

impl Records for Chrome {
    const HOLDERS: &'static [&'static str] = &["traceEvents"];
    const OPEN_ENDED: bool = true;

    fn record(&mut self, builder: &mut Builder<'_>, event: Record<'_>) {
        let phase = event.text(&["ph"]);
        if phase.is_empty() {
            // What stands beside the list of events.
            return;
        }
        let text = |builder: &mut Builder<'_>, keys: &[&str]| builder.names.intern(&event.text(keys));
        let thread = (text(builder, &["pid"]), text(builder, &["tid"]));
        let name = text(builder, &["name"]);
        let micros = |key: &str| event.any(&[key]).and_then(|value| time(value, 1_000));
        if &*phase == "M" {
            let Some(named) = event.object("args").map(|arguments| arguments.text(&["name"])) else { return };
            let named = builder.names.intern(&named);
            match &*event.text(&["name"]) {
                "process_name" => drop(self.processes.insert(thread.0, named)),
                "thread_name" => drop(self.threads.insert(thread, named)),
                _ => {}
            }
            return;
        }
        let Some(start) = micros("ts") else {
            builder.report.tally("event without a time", 1);
            return;
        };
        let arguments = || event.any(&["args"]).cloned().unwrap_or_default();
        let slice = |end, is_async| Slice { thread, name, start, end, arguments: arguments(), is_async };
        let id = |builder: &mut Builder<'_>| {
            let local =
                event.object("id2").map_or_else(|| event.text(&["id", "bind_id"]), |id| id.text(&["global", "local"]));
            builder.names.intern(&local)
        };
        match &*phase {
            "X" => self.slices.push(slice(Some(start.saturating_add(micros("dur").unwrap_or(0))), false)),
            "B" => {
                self.open.entry(thread).or_default().push(self.slices.len());
                self.slices.push(slice(None, false));
            }
            "E" => match self.open.get_mut(&thread).and_then(Vec::pop) {
                Some(open) => self.slices[open].end = Some(start),
                None => unpaired(builder, event),
            },
            "b" | "S" => {
                let track = (text(builder, &["cat"]), id(builder), text(builder, &["scope"]));
                self.tracks.entry(track).or_default().push(self.slices.len());
                self.slices.push(slice(None, true));
            }
            "e" | "F" => {
                let track = (text(builder, &["cat"]), id(builder), text(builder, &["scope"]));
                match self.tracks.get_mut(&track).and_then(Vec::pop) {
                    Some(open) => self.slices[open].end = Some(start),
                    None => unpaired(builder, event),
                }
            }
            "s" | "t" | "f" => {
                let flow = (text(builder, &["cat"]), id(builder));
                let encloses = &*phase != "f" || event.text(&["bp"]) == "e";
                self.flows.entry(flow).or_default().push(FlowEnd { thread, time: start, encloses });
            }
            _ => builder.report.tally("event that is no span", 1),
        }
    }

    fn usable(&self, _: &Builder<'_>) -> usize {
        self.slices.len()
    }
}

fn unpaired(builder: &mut Builder<'_>, event: Record<'_>) {
    let item = format!("event `{}` at {} µs", event.text(&["name"]), event.text(&["ts"]));
    let place = Place::Item { file: Arc::clone(&builder.file), item };
    builder.report.count("end without a begin", || {
        Diagnostic::warning(codes::LOST_RECORDS, place, "an end without a begin was left out")
    });
}

impl Chrome {
    /// Makes spans of all events.
    fn finish(self, builder: &mut Builder<'_>) {
        let parents = self.parents();
        let roots = roots(&parents);
        for (number, slice) in self.slices.iter().enumerate() {
            builder.open();
            if let Some(arguments) = Record::of(&slice.arguments) {
                attributes(builder, "", arguments);
            }
            let root = roots[number];
            let mut span = Span { name: slice.name, ..Span::default() };
            span.trace = builder.spans.trace_id(&format!("{:032x}", root + 1));
            span.id = builder.spans.span_id(&format!("{:016x}", number + 1));
            let parent = parents[number].filter(|_| root != number);
            span.parent = parent.map_or(SpanId::NONE, |parent| builder.spans.span_id(&format!("{:016x}", parent + 1)));
            let (process, thread) = slice.thread;
            let named = |name: Option<&Name>, word: &str, number: Name, builder: &Builder<'_>| match name {
                Some(name) => builder.names.text(*name).to_owned(),
                None => format!("{word} {}", builder.names.text(number)),
            };
            let service = named(self.processes.get(&process), "process", process, builder);
            let instance = named(self.threads.get(&slice.thread), "thread", thread, builder);
            (span.service, span.instance) = (builder.names.intern(&service), builder.names.intern(&instance));
            span.kind = match parent {
                Some(parent) if self.slices[parent].thread.0 == process => SpanKind::Internal,
                Some(_) => SpanKind::Unspecified,
                None => SpanKind::Server,
            };
            builder.apply_attributes_but_service(&mut span);
            builder.finish(span, Some(slice.start), slice.end);
        }
    }

    /// The parent of each slice.
    fn parents(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.slices.len()];
        let mut threads: BTreeMap<Thread, Vec<usize>> = BTreeMap::new();
        for (number, slice) in self.slices.iter().enumerate() {
            if !slice.is_async {
                threads.entry(slice.thread).or_default().push(number);
            }
        }
        let end = |slice: usize| self.slices[slice].end.unwrap_or(i64::MAX);
        for own in threads.values_mut() {
            // What is around comes first.
            own.sort_by_key(|slice| (self.slices[*slice].start, std::cmp::Reverse(end(*slice)), *slice));
            let mut open: Vec<usize> = Vec::new();
            for &slice in own.iter() {
                let start = self.slices[slice].start;
                while open.last().is_some_and(|around| end(*around) <= start || end(*around) < end(slice)) {
                    open.pop();
                }
                parents[slice] = open.last().copied();
                open.push(slice);
            }
        }
        // An asynchronous span begins in what its thread does at that time.
        for (number, slice) in self.slices.iter().enumerate().filter(|(_, slice)| slice.is_async) {
            parents[number] = threads.get(&slice.thread).and_then(|own| self.around(own, &parents, slice.start));
        }
        // Arrows count beside how spans lie in each other, and do not change it.
        let within = parents.clone();
        for ends in self.flows.values() {
            for pair in ends.windows(2) {
                let at = |flow: &FlowEnd| {
                    let own = threads.get(&flow.thread)?;
                    let around = self.around(own, &within, flow.time);
                    if flow.encloses {
                        return around;
                    }
                    let next = own.partition_point(|slice| self.slices[*slice].start < flow.time);
                    own.get(next).copied().or(around)
                };
                let (Some(from), Some(to)) = (at(&pair[0]), at(&pair[1])) else { continue };
                if parents[to].is_none() && from != to && pair[0].time <= pair[1].time {
                    parents[to] = Some(from);
                }
            }
        }
        parents
    }

    /// The innermost of some slices, in the order of their begins, around a time.
    fn around(&self, own: &[usize], parents: &[Option<usize>], time: i64) -> Option<usize> {
        let after = own.partition_point(|slice| self.slices[*slice].start <= time);
        let mut at = own[..after].last().copied();
        while let Some(slice) = at
            && self.slices[slice].end.is_some_and(|end| end < time)
        {
            at = parents[slice].filter(|parent| self.slices[*parent].thread == self.slices[slice].thread);
        }
        at
    }
}

/// The span at the top of each, by the parents of all. Arrows may go in a circle: the span that closes it is at the top.
fn roots(parents: &[Option<usize>]) -> Vec<usize> {
    let mut roots: Vec<Option<usize>> = vec![None; parents.len()];
    let mut walk = vec![usize::MAX; parents.len()];
    for slice in 0..parents.len() {
        let (mut at, mut path) = (slice, Vec::new());
        let root = loop {
            if let Some(root) = roots[at] {
                break root;
            }
            walk[at] = slice;
            path.push(at);
            match parents[at] {
                Some(parent) if walk[parent] != slice => at = parent,
                _ => break at,
            }
        };
        for own in path {
            roots[own] = Some(root);
        }
    }
    roots.into_iter().enumerate().map(|(slice, root)| root.unwrap_or(slice)).collect()
}
