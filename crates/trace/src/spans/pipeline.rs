//! From the spans of an input to its operations.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::retained::{Kept, RecordedSpan};
use crate::spans::SpanOptions;
use crate::spans::assemble::{Forest, NOBODY, Tree, assemble};
use crate::spans::call_semantics::{Tolerance, decide_calls};
use crate::spans::classify::{Knowledge, Learned, Missing, TreeView, classify};
use crate::spans::grain::{Grain, MILLI};
use crate::spans::grouping::group;
use crate::spans::ids::SpanId;
use crate::spans::model::{Link, Span, Spans};
use crate::spans::plan::{CallKind, NONE, SpanPlan, What};
use crate::spans::skew::{Observation, Skew};
use crate::spans::time::{OUR_DAYS, unit_of};
use crate::spans::toeg::Emitter;
use crate::spans::unanswered::{Answering, Unanswered};
use crate::{Extent, Operation, Origins, ReadReport, Replica, Sink, SpanItem, SpanTree, TraceNames, Wanted, codes};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// Gives out the operations that the spans form, in the order of their start.
pub(super) fn operations(
    mut spans: Spans,
    options: &SpanOptions,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> ReadReport {
    let mut report = ReadReport::default();
    group(&mut spans, &mut names.names, &options.grouping, &mut report);
    let mut grains = Vec::new();
    for file in spans.spans.chunk_by(|one, next| one.file == next.file) {
        look_at_times(&spans, file, &mut report);
        let grain = Grain::of(file);
        look_at_grain(&spans, file, grain, &mut report);
        let number = file[0].file as usize;
        grains.resize(grains.len().max(number + 1), Grain::default());
        grains[number] = grain;
    }
    let mut forest = assemble(&mut names.names, spans, options.correct_skew, &mut report);
    let kept = forest.spans.kept.take().map(|kept| (sink.wanted(), Arc::new(*kept)));
    let unknown = name_unknown_peers(&forest, &mut names.names);
    let mut tree = TreeView::default();
    let mut plan = SpanPlan::default();

    let Survey { learned, unanswered, skew } =
        survey(&forest, &unknown, options, &mut names.names, &mut tree, &mut plan);
    report_skew(&forest.spans.files, &skew, &names.names, &mut report);

    let known = Knowledge { learned: &learned, unknown: &unknown };
    let mut emitter = Emitter::default();
    let mut missing = Missing::default();
    for tree_range in &forest.trees {
        load(&forest, tree_range, &mut tree);
        missing.add(classify(&tree, &known, &mut plan));
        for (item, answering) in unanswered.name(&mut plan, &tree) {
            report_unanswered(
                &forest.spans,
                &tree.spans[plan.items[item as usize].span as usize],
                answering,
                names,
                &mut report,
            );
        }
        let tolerance = tolerance(&tree, &grains);
        decide_calls(&mut plan, &skew, tolerance);
        let (events, start) = emitter.emit(&plan, names, tolerance);
        let weight = tree.spans[0].weight;
        let operation = Operation {
            scenario: scenario(&plan, &mut names.names),
            run: run(&forest, tree_range, &tree),
            file: Arc::clone(forest.spans.file_of(&tree.spans[0])),
            line: 0,
            start: Some(start),
            weight: options.sampling.map(|part| 1.0 / part).or(Some(weight).filter(|weight| !weight.is_nan())),
            extent: match (tree_range.fragment, tree_range.number) {
                (false, _) => Extent::Whole,
                (true, 1) => Extent::Headless,
                (true, _) => Extent::Rest,
            },
            origins: Origins::Items(
                tree.spans.iter().map(|span| item(span, forest.spans.span_text(span.id), &names.names)).collect(),
            ),
            events,
        };
        report.operations += 1;
        report.events += operation.events.len() as u64;
        if let Some((wanted, kept)) = &kept {
            let shifts = plan.shifts(&tree.parents);
            sink.spans(names, recorded(&forest, tree_range, &tree, &operation, &shifts, wanted, kept));
        }
        if sink.operation(names, operation) == ControlFlow::Break(()) {
            break;
        }
    }
    missing.report(&mut report);
    report
}

/// Counts spans of a file whose times are in another unit than the format has: those that lie far from our days, and a thousand, a million or
/// a thousand million times as late within them, or that lie beyond them. Where times are not those of a calendar nothing is said.
fn look_at_times(all: &Spans, spans: &[Span], report: &mut ReadReport) {
    let late = |start: i64| start >= OUR_DAYS.end;
    let scale = |start: i64| unit_of(start as f64).filter(|unit| *unit != 1);
    let Some(least) = spans.iter().map(|span| span.start).min() else { return };
    // Times from the start of a program begin near zero.
    if scale(least).is_none() && least < OUR_DAYS.start {
        return;
    }
    for span in spans {
        let found = match scale(span.start) {
            Some(scale) => {
                let year = 1970.0 + span.start as f64 * scale as f64 / 1e9 / 31_556_952.0;
                format!("{scale} times too small: it begins in {} if they are in another unit", year.floor())
            }
            None if late(span.start) => "too large, by a factor of 1000 or more".to_owned(),
            None => continue,
        };
        report.count("span whose times are in another unit", || {
            Diagnostic::warning(codes::OTHER_UNIT, all.place_of(span), format!("the times of this span are {found}"))
                .with_note("they are taken as they are, so that durations are off by the same factor")
                .with_hint("times of OTLP are nanoseconds since 1970, those of Jaeger microseconds")
        });
    }
}

/// Says how well durations are known where the clocks of a file count milliseconds or more, and half of the spans take no hundred of these steps.
fn look_at_grain(all: &Spans, spans: &[Span], grain: Grain, report: &mut ReadReport) {
    let Some(step) = grain.coarse() else { return };
    let mut durations: Vec<i64> = spans.iter().map(Span::duration).collect();
    let middle = durations.len() / 2;
    let median = *durations.select_nth_unstable(middle).1;
    if median >= 100 * step {
        return;
    }
    let clocks = if step == MILLI {
        "file whose clocks count milliseconds"
    } else {
        "file whose clocks count more than milliseconds"
    };
    report.count(clocks, || {
        let [step, median] = [step, median].map(|time| time / MILLI);
        let times = if step == 1 { "milliseconds".to_owned() } else { format!("multiples of {step} ms") };
        let message = format!("all times of this trace are whole {times}, and half of its spans take {median} ms or less");
        let place = Place::File { file: Arc::clone(all.file_of(&spans[0])) };
        Diagnostic::new(Severity::Note, codes::COARSE_CLOCK, place, message)
            .with_note("means of durations are true where begins and ends were read off such a clock; where durations were cut off by themselves, they are too short by half a step")
            .with_note("of calls within a step no clock tells which came first: a client that may have waited counts as one that waits")
    });
}

fn item(span: &Span, id: Arc<str>, names: &Names) -> SpanItem {
    // A span in place of a lost one was seen on no instance.
    let replica = if span.lost {
        Replica::default()
    } else {
        Replica { instance: instance(span, names), machine: span.machine, cores: span.cores }
    };
    SpanItem {
        id,
        service: span.service,
        name: span.name,
        kind: span.kind,
        replica,
        failed: span.failed,
        retry: span.retry,
    }
}

/// What tells an instance of a service from others: its identifier, else its host, unless that is an address that everybody has.
fn instance(span: &Span, names: &Names) -> Name {
    let told = [span.instance, span.machine, span.host].into_iter().find(|name| name.is_some());
    let is_own = |name: &Name| {
        let text = names.text(*name);
        let everybodys = ["127.", "0.0.0.0", "169.254.", "fe80:"];
        text != "localhost" && text != "::1" && !everybodys.iter().any(|start| text.starts_with(start))
    };
    told.filter(is_own).unwrap_or(Name::NONE)
}

/// The spans of an operation as they were recorded, their clocks corrected by what is to be added to each.
fn recorded(
    forest: &Forest,
    tree_range: &Tree,
    tree: &TreeView,
    operation: &Operation,
    shifts: &[i64],
    wanted: &Wanted,
    kept: &Arc<Kept>,
) -> SpanTree {
    let Origins::Items(items) = &operation.origins else {
        unreachable!("operations of spans have spans as their origins");
    };
    let order = &forest.order[tree_range.first..tree_range.end];
    let link = |link: &Link| (forest.spans.trace_text(link.trace), forest.spans.span_text(link.span));
    let spans = order.iter().zip(&tree.parents).zip(items).zip(shifts).map(|(((&place, &parent), item), &shift)| {
        let span = &forest.spans.spans[place as usize];
        let above = |parent: u32| order[parent as usize];
        let moved = forest.moved.get(&place).copied().unwrap_or(0);
        // Both halves of a call may have one identifier, and then one parent.
        let has_parent = |parent: u32| {
            let found = &forest.spans.spans[above(parent) as usize];
            (found.id == span.parent || found.id == span.id) && !kept.is_restored(above(parent))
        };
        RecordedSpan {
            id: Arc::clone(&item.id),
            parent: (parent != NONE).then_some(parent),
            service: span.service,
            instance: span.instance,
            host: span.host,
            name: span.name,
            peer: span.peer,
            kind: span.kind,
            start: span.start.saturating_add(shift),
            end: span.end.saturating_add(shift),
            shift: shift.saturating_add(moved),
            orphan: span.parent != SpanId::NONE && (parent == NONE || !has_parent(parent)),
            follows: span.follows,
            endless: span.endless,
            cpu: span.cpu,
            links: if wanted.links { forest.spans.links_of(span).iter().map(link).collect() } else { Vec::new() },
            place,
        }
    });
    SpanTree { spans: spans.collect(), kept: Arc::clone(kept) }
}

impl Missing {
    fn add(&mut self, other: Self) {
        self.servers += other.servers;
        self.clients += other.clients;
        self.several += other.several;
        self.polls += other.polls;
    }

    fn report(self, report: &mut ReadReport) {
        let counts = [
            ("call without a server span", self.servers),
            ("call without a client span", self.clients),
            ("client span with several servers", self.several),
            ("span that waits for messages", self.polls),
        ];
        for (reason, times) in counts {
            if times > 0 {
                report.tally(reason, times);
            }
        }
    }
}

/// Loads one tree.
fn load(forest: &Forest, tree_range: &Tree, tree: &mut TreeView) {
    let order = &forest.order[tree_range.first..tree_range.end];
    tree.spans.clear();
    tree.parents.clear();
    tree.batched.clear();
    let mut parent = 0;
    for (at, &index) in order.iter().enumerate() {
        tree.spans.push(forest.spans.spans[index as usize]);
        tree.batched.push(forest.batched.contains(&index));
        // Children lie in the order of their parents, so the search for the parent never goes back.
        let above = forest.parent[index as usize];
        if at == 0 || above == NOBODY {
            tree.parents.push(NONE);
            continue;
        }
        while order[parent] != above {
            parent += 1;
        }
        tree.parents.push(parent as u32);
    }
    tree.finish();
}

/// Says what a call is taken to have asked whose server span was lost.
fn report_unanswered(
    spans: &Spans,
    client: &Span,
    (service, operation): Answering,
    names: &TraceNames,
    report: &mut ReadReport,
) {
    let text = |name| names.names.text(name).escape_debug();
    report.count("lost server span, named after those of calls like it", || {
        let message = format!(
            "the server span of a call `{}` of `{}` was lost: calls like it ask `{}` of `{}`",
            text(client.name),
            text(client.service),
            text(operation),
            text(service)
        );
        Diagnostic::warning(codes::LOST_HALF, spans.place_of(client), message).with_note(
            "it counts as one of these; its server works for as long as the client waits, less the network latency of such calls",
        )
    });
}

/// What all trees together tell.
struct Survey {
    /// Which peers have which names.
    learned: Learned,
    /// What calls ask that lost their server span.
    unanswered: Unanswered,
    /// How the clocks differ.
    skew: Skew,
}

/// A first look at all trees.
fn survey(
    forest: &Forest,
    unknown: &FxHashMap<Name, Name>,
    options: &SpanOptions,
    names: &mut Names,
    tree: &mut TreeView,
    plan: &mut SpanPlan,
) -> Survey {
    let mut skew = Skew::default();
    let mut unanswered = Unanswered::default();
    let mut seen: FxHashMap<(Name, Name, Name), FxHashMap<Name, u64>> = FxHashMap::default();
    let nothing = Learned::default();
    for tree_range in &forest.trees {
        load(forest, tree_range, tree);
        classify(tree, &Knowledge { learned: &nothing, unknown }, plan);
        unanswered.observe(plan, tree);
        for item in &plan.items {
            let What::Call(call_kind) = item.what else { continue };
            let callee = &plan.visits[item.callee as usize];
            let caller = plan.visit_of(item);
            if callee.unrecorded {
                continue;
            }
            if item.client {
                let client = &tree.spans[item.span as usize];
                let key = (client.service, client.peer, client.name);
                *seen.entry(key).or_default().entry(callee.service).or_default() += 1;
            }
            if options.correct_skew && call_kind == CallKind::Open && (item.client || !caller.unrecorded) {
                let outer = if item.client { (item.start, item.end) } else { (caller.start, caller.end) };
                let inner = (callee.start, callee.end);
                skew.observe(Observation { from: caller.clock, to: callee.clock, outer, inner, client: item.client });
            }
        }
    }
    skew.fit();
    unanswered.settle(names);
    let learned = seen
        .into_iter()
        .filter_map(|(key, services)| {
            // The most frequent one, by name where there are several: the result must not depend on numbers of names.
            let service =
                services.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| names.text(b.0).cmp(names.text(a.0))))?.0;
            Some((key, service))
        })
        .collect();
    Survey { learned, unanswered, skew }
}

/// What the peer of a call is called of which nothing is known.
fn name_unknown_peers(forest: &Forest, names: &mut Names) -> FxHashMap<Name, Name> {
    let mut unknown = FxHashMap::default();
    for span in forest.spans.spans.iter().filter(|span| span.kind.calls() && !span.peer.is_some()) {
        unknown.entry(span.service).or_insert_with(|| {
            let name = format!("peer of {}", names.text(span.service));
            names.intern(&name)
        });
    }
    unknown
}

/// The clock's resolution is read off the digits of the times; a server may seem to overrun its client by a little more
/// than that where their clocks differ.
fn tolerance(tree: &TreeView, grains: &[Grain]) -> Tolerance {
    const MICRO: i64 = 1_000;
    let multiple = |of: i64| tree.spans.iter().all(|span| span.start % of == 0 && span.end % of == 0);
    let told = tree.spans.iter().filter_map(|span| grains.get(span.file as usize)?.coarse()).max();
    // A few spans may begin and end at a whole millisecond, or few spans be all that there are.
    if let Some(grain) = told.filter(|grain| multiple(*grain)).or_else(|| multiple(MILLI).then_some(MILLI)) {
        return Tolerance { resolution: 0, slack: grain.max(SLACK), grain };
    }
    let resolution = if multiple(MICRO) { MICRO } else { 1 };
    Tolerance { resolution, slack: resolution.max(SLACK), grain: 0 }
}

/// How far times of two clocks may differ after correction, in nanoseconds: what synchronised clocks drift apart within a run.
const SLACK: i64 = 500_000;

fn scenario(plan: &SpanPlan, names: &mut Names) -> Name {
    let first = &plan.visits[0];
    if !first.operation.is_some() {
        return first.service;
    }
    let text = format!("{} {}", names.text(first.service), names.text(first.operation));
    names.intern(&text)
}

fn run(forest: &Forest, tree_range: &Tree, tree: &TreeView) -> Arc<str> {
    let root: &Span = &tree.spans[0];
    let trace = forest.spans.trace_text(root.trace);
    if tree_range.number == 1 { trace } else { format!("{trace}.{}", tree_range.number).into() }
}

fn report_skew(files: &[Arc<str>], skew: &Skew, names: &Names, report: &mut ReadReport) {
    let mut offsets: Vec<(String, String, (i64, i64))> =
        skew.offsets().map(|(from, to, offset)| (from.label(names), to.label(names), offset)).collect();
    offsets.sort();
    for (from, to, (least, greatest)) in offsets {
        report.count("clocks that differ", || {
            let place = match files {
                [file] => Place::File { file: Arc::clone(file) },
                _ => Place::Nowhere,
            };
            let off = |offset: i64| {
                let words = if offset < 0 { "ahead of" } else { "behind" };
                format!("{:.3} ms {words}", offset.unsigned_abs() as f64 / 1e6)
            };
            let message = if least == greatest {
                format!("the clock of {to} is {} that of {from}", off(least))
            } else {
                format!(
                    "the clock of {to} is from {} to {} that of {from}: it changes with time",
                    off(least),
                    off(greatest)
                )
            };
            Diagnostic::warning(codes::CLOCK_SKEW, place, message)
                .with_note("the times of the calls between them were corrected by that")
        });
    }
}
