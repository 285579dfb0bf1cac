//! From the spans of an input to its operations.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::retained::{Kept, RecordedSpan};
use crate::spans::SpanOptions;
use crate::spans::alike;
use crate::spans::assemble::{Evidence, Findings, Forest, NOBODY, Tree, link, mend, plant};
use crate::spans::awaited::Awaited;
use crate::spans::call_semantics::{Tolerance, decide_calls};
use crate::spans::classify::{Knowledge, Learned, Missing, TreeView, classify};
use crate::spans::dropped::Dropped;
use crate::spans::grain::{Grain, MILLI};
use crate::spans::ids::SpanId;
use crate::spans::model::{Link, Span, Spans};
use crate::spans::plan::{CallKind, NONE, SpanPlan, What};
use crate::spans::replies::Replies;
use crate::spans::restore::Torn;
use crate::spans::sends::Sends;
use crate::spans::skew::{Observation, Skew};
use crate::spans::store::{Batches, Store, Trees};
use crate::spans::toeg::Emitter;
use crate::spans::unanswered::{Answering, Unanswered, Unreceived, is_message};
use crate::spans::ways::OnTheWay;
use crate::{
    Extent, Operation, Origins, ReadReport, Replica, Sink, SpanItem, SpanTree, TraceNames, VisitEvidence, Wanted, codes,
};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::{Diagnostic, Place};

/// Gives out the operations that the spans form, in the order of their start; of each file there is the step of its clocks, and whether it
/// ends too early and lacks operations of all times.
///
/// # Errors
/// Those of the disk, where spans are kept there.
pub(super) fn operations(
    store: Store,
    files: (&[Grain], &[bool]),
    options: &SpanOptions,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
    report: &mut ReadReport,
) -> io::Result<()> {
    let mut findings = Findings::default();
    let (mut batches, mut evidence) = (Batches::default(), Evidence::default());
    let shared = store.batches(|spans, spill| {
        let mut linked = link(&mut names.names, spans, &mut findings);
        evidence.look(&mut linked, &mut names.names, options.correct_skew);
        batches.add(linked, spill)
    })?;
    if evidence.doubtful || evidence.orphans {
        batches.each(&shared, |linked| evidence.gather(linked, &mut names.names))?;
    }
    if evidence.doubtful {
        batches.each(&shared, |linked| evidence.gather_again(linked, &mut names.names))?;
    }
    let mut torn = Torn::default();
    if evidence.is_rootless() {
        batches = batches.change(&shared, |linked| {
            mend(&mut names.names, linked, &evidence, &mut findings);
            linked.work(&mut names.names, &mut ReadReport::default(), |work| torn.add(work, &evidence.callers));
        })?;
    }
    let mut trees = Trees::default();
    let callers = &evidence.callers;
    let mut survey = Survey {
        lost: callers.lost_part(),
        lost_by_service: callers.lost_by_service(),
        torn: callers.torn(),
        ..Survey::default()
    };
    batches.give(&shared, |mut linked, spill| {
        if !evidence.is_rootless() {
            mend(&mut names.names, &mut linked, &evidence, &mut findings);
        }
        let forest = plant(&mut names.names, linked, torn.lack_a_service(), &mut findings);
        survey.add(&forest, files.0, options, &mut names.names);
        trees.add(forest, spill)
    })?;
    findings.merge_into(report);
    let survey = survey.settle(options, &names.names);
    report_skew(&shared.files, &survey.skew, &names.names, report);
    report_unreceived(&survey.unanswered, &names.names, report);
    survey.sends.report(&names.names, report);
    survey.replies.report(&names.names, report);
    let mut giver = Giver::new(survey, files, options, sink.wanted());
    trees.give(shared, |forest, tree, kept| giver.give(forest, tree, kept, names, sink, report).is_continue())?;
    giver.missing.report(report);
    Ok(())
}

/// Makes operations of trees, with buffers that are used again.
struct Giver<'o> {
    survey: Survey,
    grains: &'o [Grain],
    truncated: &'o [bool],
    options: &'o SpanOptions,
    wanted: Arc<Wanted>,
    emitter: Emitter,
    missing: Missing,
    tree: TreeView,
    plan: SpanPlan,
}

impl<'o> Giver<'o> {
    fn new(
        survey: Survey,
        (grains, truncated): (&'o [Grain], &'o [bool]),
        options: &'o SpanOptions,
        wanted: Arc<Wanted>,
    ) -> Self {
        Self {
            survey,
            grains,
            truncated,
            options,
            wanted,
            emitter: Emitter::default(),
            missing: Missing::default(),
            tree: TreeView::default(),
            plan: SpanPlan::default(),
        }
    }

    fn give(
        &mut self,
        forest: &Forest,
        tree_range: &Tree,
        kept: Option<&Arc<Kept>>,
        names: &mut TraceNames,
        sink: &mut dyn Sink,
        report: &mut ReadReport,
    ) -> ControlFlow<()> {
        let Self { survey, grains, truncated, options, wanted, emitter, missing, tree, plan } = self;
        let known = Knowledge { learned: &survey.learned, unknown: &survey.unknown };
        load(forest, tree_range, tree);
        // A span that waits for messages is no operation: work on a message belongs to the operation of its producer.
        if tree.spans.len() == 1 && tree.spans[0].polls() {
            missing.idle += 1;
            return ControlFlow::Continue(());
        }
        missing.add(classify(tree, &known, plan));
        let named = survey.unanswered.name(plan, tree, &known);
        survey.ways.tell(plan);
        let messages: Vec<bool> = named.iter().map(|(item, _)| is_message(&plan.items[*item as usize])).collect();
        survey.replies.tell(plan, tree);
        survey.sends.tell(plan);
        survey.awaited.tell(plan);
        for visit in &mut plan.visits {
            visit.clock = survey.skew.clock(visit.clock);
        }
        let mut lost = lost_beside(tree, &survey.ways);
        for ((item, answering), was_message) in named.into_iter().zip(messages) {
            let item = &plan.items[item as usize];
            if was_message || is_message(item) {
                // All of them are told at once.
                continue;
            }
            lost[item.span as usize] += 1;
            let client = &tree.spans[item.span as usize];
            report_unanswered(&forest.spans, client, answering, names, report);
        }
        for visit in survey.dropped.put_back(plan, tree) {
            lost[visit as usize] += 1;
            report_put_back(&forest.spans, &tree.spans[visit as usize], names, report);
        }
        let tolerance = tolerance(tree, grains);
        decide_calls(plan, &survey.skew, tolerance);
        let (events, start) = emitter.emit(plan, names, tolerance, tree.spans.len());
        let first = &tree.spans[0];
        let is_truncated = truncated.get(first.file as usize).is_some_and(|truncated| *truncated);
        let weight = if is_truncated { Operation::TRUNCATED } else { first.weight };
        let span_item = |span: &Span, lost| item(span, forest.spans.span_text(span.id), lost, &names.names);
        let mut items: Vec<SpanItem> = tree.spans.iter().zip(lost).map(|(span, lost)| span_item(span, lost)).collect();
        items.extend(emitter.made_up().iter().map(|(at, evidence)| {
            let of = span_item(&tree.spans[*at as usize], 0);
            SpanItem { replica: Replica::default(), failed: false, retry: false, batch: 0, evidence: *evidence, ..of }
        }));
        let operation = Operation {
            scenario: scenario(plan, &mut names.names),
            run: run(forest, tree_range, tree),
            file: Arc::clone(forest.spans.file_of(&tree.spans[0])),
            line: 0,
            start: Some(start),
            weight: options.sampling.map(|part| 1.0 / part).or(Some(weight).filter(|weight| !weight.is_nan())),
            weight_given: options.sampling.is_some(),
            extent: tree_range.extent,
            origins: Origins::Items(items),
            events,
        };
        report.operations += 1;
        report.events += operation.events.len() as u64;
        if let Some(kept) = kept {
            let shifts = plan.shifts(&tree.parents);
            sink.spans(names, recorded(forest, tree_range, tree, &operation, &shifts, wanted, kept));
        }
        sink.operation(names, operation)
    }
}

/// By span, how many beside it were lost whose place was found: as its parent there is another one, or one that stands for it. What a service without spans called has lost none.
fn lost_beside(tree: &TreeView, ways: &OnTheWay) -> Vec<u32> {
    let is_beside = |(span, parent): (&Span, &u32)| {
        let Some(above) = tree.spans.get(*parent as usize) else { return false };
        if span.lost {
            return !ways.is_silent(span.service);
        }
        let is_named = above.id == span.parent || above.id == span.id || above.lost;
        span.parent.is_some() && !span.follows && !above.may_wait && !is_named
    };
    tree.spans.iter().zip(&tree.parents).map(|own| u32::from(is_beside(own))).collect()
}

fn item(span: &Span, id: Arc<str>, lost_beside: u32, names: &Names) -> SpanItem {
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
        lost_beside,
        batch: span.batch,
        may_wait: span.may_wait,
        evidence: if span.lost { VisitEvidence::Silent } else { VisitEvidence::Recorded },
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
        self.idle += other.idle;
        self.back_offs += other.back_offs;
    }

    fn report(self, report: &mut ReadReport) {
        let counts = [
            ("call without a server span", self.servers),
            ("call without a client span", self.clients),
            ("client span with several servers", self.several),
            ("span that waits for messages", self.polls),
            ("wait before a call that failed is made once more", self.back_offs),
            ("span that waits for messages, and no more in its operation: left out", self.idle),
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
    let mut parent = 0;
    for (at, &index) in order.iter().enumerate() {
        tree.spans.push(forest.spans.spans[index as usize]);
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

/// Says how many messages were sent that no span worked on, and what that does to the load of those who work on them.
fn report_unreceived(unanswered: &Unanswered, names: &Names, report: &mut ReadReport) {
    let text = |name| names.text(name).escape_debug();
    for own in unanswered.unreceived(names) {
        let Unreceived { sender, message, answering: (service, operation), sent, lost, counted, apart } = own;
        report.tally("message that no span worked on", lost);
        report.count("messages of which some were worked on by no span", || {
            let message = format!(
                "{lost} of {sent} messages `{}` of `{}` were worked on by no span; `{}` of `{}` worked on the others",
                text(message),
                text(sender),
                text(operation),
                text(service)
            );
            let part = 100.0 * lost as f64 / sent.max(1) as f64;
            let finding = Diagnostic::warning(codes::LOST_HALF, Place::Nowhere, message);
            if apart && counted {
                finding.with_note(format!(
                    "they count as worked on like the others, and as much work of `{}` whose sender's trace was not recorded stands for theirs: traces were sampled one by one",
                    text(service)
                ))
            } else if counted {
                finding.with_note(format!(
                    "they count as worked on like the others. If something else works on them, this load of `{}` is {part:.1} % lower than the model has it",
                    text(service)
                ))
            } else {
                finding.with_note(format!(
                    "too few were worked on to say that the others were, too: if they were, the model lacks {part:.1} % of this load of `{}`",
                    text(service)
                ))
            }
            .with_hint("where the service that works on them samples or loses its own traces, see to its exporter")
        });
    }
}

/// Says that a call is taken to have been made whose client span was lost.
fn report_put_back(spans: &Spans, visit: &Span, names: &TraceNames, report: &mut ReadReport) {
    let text = |name| names.names.text(name).escape_debug();
    report.count("lost client span of a call to a service without spans, put back", || {
        let message = format!(
            "a visit `{}` of `{}` lacks a call that nearly all others make, and works for longer by about its time",
            text(visit.name),
            text(visit.service)
        );
        Diagnostic::warning(codes::LOST_HALF, spans.place_of(visit), message)
            .with_note("it counts as having made that call, for as long as it works longer than the others")
    });
}

/// Whether a visit takes longer than the span within another visit that caused it. By no clock did that span wait for it.
fn outlasts_its_cause(tree: &TreeView, visit: u32, caller: u32) -> bool {
    let cause = tree.parents[visit as usize];
    if cause == NONE || cause == caller {
        return false;
    }
    let [own, cause] = [visit, cause].map(|span| tree.spans[span as usize].duration());
    own > cause.saturating_add(cause / MUCH_LONGER).saturating_add(SLACK)
}

/// A span that a client waits for takes no more than a part of its time longer.
const MUCH_LONGER: i64 = 20;

/// What all trees together tell.
#[derive(Default)]
struct Survey {
    /// How often peers had which names: by calling service, peer attribute and span name.
    seen: FxHashMap<(Name, Name, Name), FxHashMap<Name, u64>>,
    /// Which peers have which names.
    learned: Learned,
    /// What the peer of a call is called of which nothing is known.
    unknown: FxHashMap<Name, Name>,
    /// What calls ask that lost their server span.
    unanswered: Unanswered,
    /// The part of spans that was lost.
    lost: f64,
    /// The same by service, as far as what its visits did tells.
    lost_by_service: FxHashMap<Name, f64>,
    /// By service, how many of its visits were lost whose calls are left.
    torn: FxHashMap<Name, u64>,
    /// How long calls are on their way to services without spans, and from them.
    ways: OnTheWay,
    /// The calls that visits make to services without spans, where spans were lost.
    dropped: Dropped,
    /// Which callers wait for the answers to their calls.
    awaited: Awaited,
    /// Which senders of messages wait until these are taken,
    sends: Sends,
    /// and which until the work on them is done.
    replies: Replies,
    /// How the clocks differ.
    skew: Skew,
}

impl Survey {
    /// A first look at trees.
    fn add(&mut self, forest: &Forest, grains: &[Grain], options: &SpanOptions, names: &mut Names) {
        self.name_unknown_peers(forest, names);
        let Self { seen, unknown, unanswered, skew, sends, replies, awaited, dropped, ways, lost, .. } = self;
        let (mut tree, mut plan) = (TreeView::default(), SpanPlan::default());
        let nothing = Learned::default();
        for tree_range in &forest.trees {
            load(forest, tree_range, &mut tree);
            classify(&tree, &Knowledge { learned: &nothing, unknown }, &mut plan);
            unanswered.observe(&plan, &tree);
            match tree_range.extent {
                Extent::Unlinked => unanswered.observe_unlinked(&plan),
                Extent::Apart => unanswered.observe_apart(&plan),
                _ => {}
            }
            dropped.observe(&plan, &tree);
            let Tolerance { resolution, grain, .. } = tolerance(&tree, grains);
            sends.observe(&plan, &tree, grain.max(resolution));
            replies.observe(&plan, &tree);
            awaited.observe(&plan, &tree);
            // Where no parent is missing, every service that calls others records spans.
            if *lost > 0.0 {
                ways.observe(&plan, &tree);
            }
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
                let bounded = item.client || !caller.unrecorded && !outlasts_its_cause(&tree, callee.span, caller.span);
                let is_message = call_kind == CallKind::Deferred;
                if options.correct_skew && (call_kind == CallKind::Open && bounded || is_message) {
                    let outer = if item.client { (item.start, item.end) } else { (caller.start, caller.end) };
                    let inner = (callee.start, callee.end);
                    let (from, to) = (caller.clock, callee.clock);
                    skew.observe(Observation { from, to, outer, inner, client: item.client, is_message });
                }
            }
        }
    }

    fn name_unknown_peers(&mut self, forest: &Forest, names: &mut Names) {
        for span in forest.spans.spans.iter().filter(|span| span.kind.calls() && !span.peer.is_some()) {
            self.unknown.entry(span.service).or_insert_with(|| {
                let name = format!("peer of {}", names.text(span.service));
                names.intern(&name)
            });
        }
    }

    /// All trees were looked at.
    fn settle(mut self, options: &SpanOptions, names: &Names) -> Self {
        self.replies.settle(Some(&mut self.skew).filter(|_| options.correct_skew));
        self.skew.fit(names);
        self.replies.compare(&self.skew);
        self.unanswered.settle(self.lost, std::mem::take(&mut self.torn), names);
        self.dropped.settle(std::mem::take(&mut self.lost_by_service), &self.unanswered.lost_by_service(), names);
        let most = |services: FxHashMap<Name, u64>| {
            // The most frequent one, by name where there are several: the result must not depend on numbers of names.
            let text = |name| names.text(name);
            services.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| text(b.0).cmp(text(a.0)))).map(|most| most.0)
        };
        self.learned =
            std::mem::take(&mut self.seen).into_iter().filter_map(|(key, all)| Some((key, most(all)?))).collect();
        self
    }
}

/// Whether the clock counts in steps is read off the digits of the times; a server may seem to overrun its client by a little more than those where their clocks differ. Nanoseconds
/// come of microseconds or of floating-point numbers on the way: those of today, in seconds, tell no less than 0.24 µs apart.
fn tolerance(tree: &TreeView, grains: &[Grain]) -> Tolerance {
    const MICRO: i64 = 1_000;
    let multiple = |of: i64| tree.spans.iter().all(|span| span.start % of == 0 && span.end % of == 0);
    let told = tree.spans.iter().filter_map(|span| grains.get(span.file as usize)?.coarse()).max();
    // A few spans may begin and end at a whole millisecond, or few spans be all that there are.
    if let Some(grain) = told.filter(|grain| multiple(*grain)).or_else(|| multiple(MILLI).then_some(MILLI)) {
        return Tolerance { resolution: 0, slack: grain.max(SLACK), grain };
    }
    Tolerance { resolution: MICRO, slack: SLACK, grain: 0 }
}

/// How far times of two clocks may differ after correction, in nanoseconds: what synchronised clocks drift apart within a run.
pub(super) const SLACK: i64 = 500_000;

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
    alike::report(skew, names, report);
    let mut several: Vec<&str> = skew.several().map(|machine| names.text(machine)).collect();
    several.sort_unstable();
    for machine in several {
        report.count("host whose services have clocks that differ", || {
            let message = format!("services that name host `{}` have clocks that differ", machine.escape_debug());
            Diagnostic::warning(codes::CLOCK_SKEW, Place::Nowhere, message)
                .with_note("one machine has one clock: each of them is taken to have a clock of its own, and calls between them are corrected")
                .with_hint("see to what `host.name` is set to; where it is no machine, processors that services share by it are not shared either")
        });
    }
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
