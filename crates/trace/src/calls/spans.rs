//! The calls of spans, for call graphs: the same trees that probe records give.
//!
//! | spans | call |
//! |---|---|
//! | CLIENT around the one span of another service | one synchronous call: the CLIENT span is its stub, the other its function |
//! | PRODUCER with its CONSUMER, a span that follows from its parent | one-way call |
//! | SERVER, CONSUMER, a span of another service, without such a half | call whose stub was not recorded |
//! | CLIENT, PRODUCER without spans of another service | collocated call, its object the peer: its time is what the caller sees |
//! | CLIENT around several spans of other services; INTERNAL | collocated call, with the calls in it |
//!
//! An interface is a service, an object its instance, a processor the machine, or the service where that is not told.
//!
//! What a call spent itself is the processor time of its span without that of spans of the same service within it, as a thread's clock is
//! read at both ends; or what a CPU profile has for it, in the services of which it has samples.
//! Where no span has processor time it is the time of the span that no call of it covers, waiting included. The time that a request and its reply
//! are in the network, and that of sending a message, is nobody's: it counts as unattributed.

use std::ops::ControlFlow;
use std::sync::Arc;

use dyelog_callgraph::{
    Builder, ClockReading, Kind as Damage, Made, Measure, Options, Profile, Reading, Site, WholeCall,
};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::{Diagnostic, Place};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cpu::CpuProfile;
use crate::read::{ReadReport, Sink};
use crate::recorded::SpanKind;
use crate::retained::{Data, Keys, RecordedSpan, SpanTree, Wanted};
use crate::spans::ids::SpanId;
use crate::{Operation, TraceNames, codes};

/// No span, and no call.
const NONE: u32 = u32::MAX;

/// In the place of its call: the span is a stub, whose time is that of the call around it.
const STUB: u32 = u32::MAX - 1;

/// A span, as far as its call needs it. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    parent: u32,
    kind: SpanKind,
    follows: bool,
    endless: bool,
    service: Name,
    instance: Name,
    host: Name,
    name: Name,
    peer: Name,
    start: i64,
    end: i64,
    /// With that of spans of the service within it, as attributes have it.
    measured: Option<i64>,
    /// Its own, as profiles have it.
    sampled: Option<i64>,
}

impl Seen {
    fn parent(&self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }
}

/// The spans of an operation.
struct SeenTree {
    run: Arc<str>,
    spans: Vec<Seen>,
    operation: Option<Operation>,
}

/// Takes the spans of operations, and makes a profile of them.
pub struct SpanCalls {
    trees: Vec<SeenTree>,
    pending: Vec<Seen>,
    wanted: Arc<Wanted>,
    /// Attributes with processor time besides those that are known, each with the nanoseconds of its unit.
    attributes: FxHashMap<Arc<str>, f64>,
    profiles: Vec<CpuProfile>,
    /// By profile, the spans of it that were met.
    met: Vec<FxHashSet<SpanId>>,
    keep_operations: bool,
}

/// The operations behind a profile of spans, to be read again with other times.
pub struct SpanOperations {
    names: TraceNames,
    /// Each with the call of each of its spans.
    operations: Vec<(Operation, Vec<u32>)>,
}

impl SpanCalls {
    /// No spans yet. Attributes are those with processor time besides the known ones, each with the seconds of its unit.
    pub fn new(attributes: &[(String, f64)], profiles: Vec<CpuProfile>, keep_operations: bool) -> Self {
        let mut keys = Keys::None;
        let attributes: FxHashMap<Arc<str>, f64> =
            attributes.iter().map(|(key, unit)| (Arc::from(key.as_str()), unit * 1e9)).collect();
        for key in attributes.keys() {
            keys.add(key);
        }
        Self {
            trees: Vec::new(),
            pending: Vec::new(),
            wanted: Arc::new(Wanted { spans: true, attributes: keys, ..Wanted::default() }),
            attributes,
            met: vec![FxHashSet::default(); profiles.len()],
            profiles,
            keep_operations,
        }
    }

    fn seen(&self, names: &Names, tree: &SpanTree, at: usize) -> Seen {
        let span: &RecordedSpan = &tree.spans[at];
        let known = |cpu: f64| (cpu.is_finite() && cpu >= 0.0).then_some(cpu);
        let value = |data: Data| match data {
            Data::Whole(value) => Some(value as f64),
            Data::Float(value) => Some(value),
            Data::Text(text) => names.text(text).trim().parse().ok(),
            Data::Bool(_) => None,
        };
        let chosen = tree.attributes(at as u32).iter().find_map(|attribute| {
            let factor = self.attributes.get(names.text(attribute.key))?;
            known(value(attribute.value)? * factor)
        });
        let mended = tree.is_restored(at as u32);
        Seen {
            parent: span.parent.unwrap_or(NONE),
            kind: span.kind,
            follows: span.follows,
            endless: span.endless || mended,
            service: span.service,
            instance: span.instance,
            host: span.host,
            name: span.name,
            peer: span.peer,
            start: span.start,
            end: span.end,
            measured: chosen.or_else(|| known(span.cpu * 1e9)).map(|time| time.round() as i64),
            sampled: None,
        }
    }

    /// Gives spans the time that profiles have for them: of two halves with one identifier, the one that serves.
    fn join(&mut self, tree: &SpanTree) {
        let mut places: FxHashMap<SpanId, usize> = FxHashMap::default();
        for (at, span) in tree.spans.iter().enumerate() {
            places.insert(SpanId::parse(&span.id).0, at);
        }
        for (profile, met) in self.profiles.iter().zip(&mut self.met) {
            for (id, at) in &places {
                let Some(time) = profile.by_span.get(id).filter(|_| met.insert(*id)) else { continue };
                let sampled = &mut self.pending[*at].sampled;
                *sampled = Some(sampled.unwrap_or(0).saturating_add(*time));
            }
        }
    }

    /// The profile of all spans, and their operations where they were kept.
    pub fn finish(self, names: TraceNames, report: ReadReport, options: &Options) -> (Profile, Option<SpanOperations>) {
        let mut trees = self.trees;
        // What a profile has no sample of ran for less than its period, if the profile knows the service at all.
        let sampled: FxHashSet<Name> =
            spans(&trees).filter(|span| span.sampled.is_some()).map(|span| span.service).collect();
        for span in trees.iter_mut().flat_map(|tree| &mut tree.spans).filter(|span| sampled.contains(&span.service)) {
            span.sampled.get_or_insert(0);
            span.measured = None;
        }
        let wall = match options.measure {
            Measure::Auto => !spans(&trees).any(|span| span.measured.is_some() || span.sampled.is_some()),
            Measure::Cpu => false,
            Measure::Wall => true,
        };
        let mut work = Work { builder: Builder::new(options, wall), names: &names.names, wall, made: 0, timeless: 0 };
        let mut operations = Vec::new();
        for tree in &mut trees {
            let calls = work.tree(tree);
            operations.extend(tree.operation.take().map(|operation| (operation, calls)));
        }
        let mut reading = Reading::default();
        (reading.records, reading.findings, reading.odd) = (report.records, report.findings, report.counted);
        if work.timeless > 0 {
            reading.odd.insert("call without processor time", work.timeless);
        }
        for (profile, met) in self.profiles.iter().zip(&self.met) {
            if met.is_empty() {
                reading.findings.push(of_other_spans(profile));
            } else if !wall {
                work.rest(profile, met, &trees);
            }
        }
        let profile = work.builder.finish(reading);
        (profile, self.keep_operations.then_some(SpanOperations { names, operations }))
    }
}

fn spans(trees: &[SeenTree]) -> impl Iterator<Item = &Seen> {
    trees.iter().flat_map(|tree| &tree.spans)
}

impl Sink for SpanCalls {
    fn operation(&mut self, _: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let run = Arc::clone(&operation.run);
        let spans = std::mem::take(&mut self.pending);
        self.trees.push(SeenTree { run, spans, operation: self.keep_operations.then_some(operation) });
        ControlFlow::Continue(())
    }

    fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted)
    }

    fn spans(&mut self, names: &TraceNames, tree: SpanTree) {
        self.pending = (0..tree.spans.len()).map(|at| self.seen(&names.names, &tree, at)).collect();
        self.join(&tree);
    }
}

/// Makes calls of trees.
struct Work<'a> {
    builder: Builder,
    names: &'a Names,
    wall: bool,
    made: u32,
    /// Calls of which no clock tells what they spent.
    timeless: u64,
}

/// What becomes of a span.
#[derive(Clone, Copy, Debug)]
struct Role {
    /// Whether it works for another process than its parent.
    crosses: bool,
    /// Whether it is but the stub of its one call.
    stub: bool,
    /// The span whose call calls made in it belong to: itself but for stubs.
    scope: u32,
    /// Whether its caller does not wait.
    detached: bool,
}

impl Work<'_> {
    /// Adds the calls of an operation; gives the call of each span.
    fn tree(&mut self, tree: &SeenTree) -> Vec<u32> {
        let spans = &tree.spans;
        let roles = roles(spans);
        let own = if self.wall { own_wall(spans, &roles) } else { self.own_cpu(spans, &roles) };
        let chain = self.builder.tables().chain(&tree.run);
        let mut calls: Vec<u32> = vec![NONE; spans.len()];
        let mut made: Vec<Option<Made>> = vec![None; spans.len()];
        let mut leaf = vec![true; spans.len()];
        for span in spans.iter().filter(|span| span.parent != NONE) {
            leaf[span.parent as usize] = false;
        }
        for (at, span) in spans.iter().enumerate() {
            let role = roles[at];
            if role.stub {
                made[at] = if span.parent == NONE { None } else { made[span.parent as usize] };
                calls[at] = STUB;
                continue;
            }
            let stub = span.parent().filter(|parent| roles[*parent].stub);
            let outside = stub.map(|stub| &spans[stub]);
            let site = self.site(span, leaf[at] && span.kind.calls());
            let caller = outside.map(|stub| self.site(stub, false));
            let interval = |span: &Seen| ClockReading { begin: span.start, end: span.end };
            let call = WholeCall {
                parent: span.parent().and_then(|parent| made[parent]),
                site,
                caller,
                chain,
                event: at as u32 + 1,
                collocated: !role.crosses,
                detached: role.detached,
                time: own[at],
                latency: latency(span, outside.filter(|_| !role.detached)),
                outside: outside.map_or(ClockReading::NONE, interval),
                inside: interval(span),
            };
            if let (true, Some(stub)) = (self.wall, outside) {
                self.on_the_way(stub, Some(span).filter(|_| !role.detached));
            }
            self.timeless += u64::from(own[at].is_none());
            made[at] = Some(self.builder.call(&call));
            calls[at] = self.made;
            self.made += 1;
        }
        calls
    }

    /// The time of a stub in which the function that it waits for does not run is nobody's.
    fn on_the_way(&mut self, stub: &Seen, waits_for: Option<&Seen>) {
        let length = |span: &Seen| span.end.saturating_sub(span.start);
        if stub.endless || waits_for.is_some_and(|span| span.endless) {
            return;
        }
        let way = length(stub).saturating_sub(waits_for.map_or(0, length));
        let processor = self.processor(stub);
        self.builder.unattributed(processor, way.max(0));
    }

    fn processor(&mut self, span: &Seen) -> dyelog_callgraph::Name {
        let name = if span.host.is_some() { span.host } else { span.service };
        self.builder.tables().name(self.names.text(name))
    }

    fn site(&mut self, span: &Seen, peer: bool) -> dyelog_callgraph::SiteId {
        let text = |name: Name| if name.is_some() { self.names.text(name) } else { "" };
        let object = if peer && span.peer.is_some() { span.peer } else { span.instance };
        let function = Some(text(span.name)).filter(|name| !name.is_empty()).unwrap_or("(unnamed)");
        let [service, function, object] = [text(span.service), function, text(object)].map(str::to_owned);
        let processor = self.processor(span);
        let tables = self.builder.tables();
        let (interface, function, object) = (tables.name(&service), tables.name(&function), tables.name(&object));
        tables.site(Site { interface, function, object, process: interface, processor, ..Site::default() })
    }

    /// What each call spent itself by the processors' clocks, its stubs included.
    fn own_cpu(&mut self, spans: &[Seen], roles: &[Role]) -> Vec<Option<i64>> {
        let mut within = vec![0i64; spans.len()];
        let mut own: Vec<Option<i64>> = vec![None; spans.len()];
        for at in (0..spans.len()).rev() {
            let span = &spans[at];
            let all = span.measured.unwrap_or(within[at]);
            own[at] = span.sampled.or_else(|| {
                let left = span.measured?.saturating_sub(within[at]);
                if left < 0 {
                    self.builder.damage(Damage::NegativeTime, 1);
                }
                Some(left).filter(|left| *left >= 0)
            });
            if span.parent != NONE && !roles[at].crosses && !span.follows {
                let around = &mut within[span.parent as usize];
                *around = around.saturating_add(all);
            }
        }
        for (at, role) in roles.iter().enumerate().filter(|(_, role)| role.stub && role.scope != NONE) {
            if let Some(time) = own[at] {
                let scope = &mut own[role.scope as usize];
                *scope = Some(scope.unwrap_or(0).saturating_add(time));
            }
        }
        own
    }

    /// What a profile has besides the spans that were met.
    fn rest(&mut self, profile: &CpuProfile, met: &FxHashSet<SpanId>, trees: &[SeenTree]) {
        let unmet = profile.by_span.iter().filter(|(id, _)| !met.contains(id)).map(|(_, time)| *time);
        let rest = unmet.fold(profile.unnamed, i64::saturating_add);
        // A profile is of one process: what no span accounts for ran where the spans did.
        let host = spans(trees).find(|span| span.sampled.is_some_and(|time| time > 0)).copied();
        if let Some(span) = host {
            let processor = self.processor(&span);
            self.builder.unattributed(processor, rest);
        }
    }
}

fn of_other_spans(profile: &CpuProfile) -> Diagnostic {
    let place = Place::File { file: profile.file.as_str().into() };
    Diagnostic::warning(codes::OTHER_PROFILE, place, "no sample of this profile names a span of the trace")
        .with_note(format!("its samples name {} spans; it is left out", profile.by_span.len()))
}

fn roles(spans: &[Seen]) -> Vec<Role> {
    let mut remote = vec![0u32; spans.len()];
    let mut local = vec![0u32; spans.len()];
    let crosses: Vec<bool> = spans
        .iter()
        .map(|span| {
            let above = span.parent().map(|parent| &spans[parent]);
            span.kind.serves() || above.is_some_and(|above| above.service != span.service)
        })
        .collect();
    for (span, crosses) in spans.iter().zip(&crosses).filter(|(span, _)| span.parent != NONE) {
        let count = if *crosses { &mut remote } else { &mut local };
        count[span.parent as usize] += 1;
    }
    let mut roles: Vec<Role> = Vec::with_capacity(spans.len());
    for (at, span) in spans.iter().enumerate() {
        let measured = span.measured.is_some() || span.sampled.is_some();
        let alone = span.parent != NONE && !crosses[at] || span.parent == NONE && local[at] == 0 && !measured;
        let stub = span.kind.calls() && remote[at] == 1 && alone;
        let above = span.parent().map(|parent| &spans[parent]);
        let sent = above.is_some_and(|above| above.kind == SpanKind::Producer && crosses[at]);
        roles.push(Role {
            crosses: crosses[at],
            stub,
            scope: match (stub, span.parent) {
                (false, _) => at as u32,
                (true, NONE) => NONE,
                (true, parent) => roles[parent as usize].scope,
            },
            detached: span.parent != NONE && (span.follows || span.kind == SpanKind::Consumer || sent),
        });
    }
    roles
}

/// From the begin to the end of a call, by the clock of its caller where that was recorded.
fn latency(span: &Seen, stub: Option<&Seen>) -> Option<i64> {
    let seen = stub.unwrap_or(span);
    (!seen.endless && !span.endless).then(|| seen.end.saturating_sub(seen.start))
}

/// The time of each span that none of its calls covers; a caller does not wait for what is detached.
fn own_wall(spans: &[Seen], roles: &[Role]) -> Vec<Option<i64>> {
    let mut covered: Vec<(u32, i64, i64)> = spans
        .iter()
        .zip(roles)
        .filter(|(span, role)| span.parent != NONE && !role.detached)
        .filter_map(|(span, _)| {
            let scope = roles[span.parent as usize].scope;
            let of = (scope != NONE).then(|| &spans[scope as usize])?;
            // What a stub covers its call covers, too, but for what differing clocks have lie outside.
            Some((scope, span.start.max(of.start), span.end.min(of.end)))
        })
        .collect();
    covered.sort_unstable();
    let mut own: Vec<i64> = spans.iter().map(|span| span.end.saturating_sub(span.start)).collect();
    let (mut current, mut reached) = (NONE, i64::MIN);
    for (scope, start, end) in covered {
        if scope != current {
            (current, reached) = (scope, i64::MIN);
        }
        let start = start.max(reached);
        if end > start {
            own[scope as usize] = own[scope as usize].saturating_sub(end.saturating_sub(start));
            reached = end;
        }
    }
    own.into_iter().map(Some).collect()
}

impl SpanOperations {
    /// Gives out the operations with the demand of each call, in nanoseconds, in place of what was recorded; those that are not given stay as they are.
    pub fn with_demands(
        &self,
        demand: impl Fn(usize) -> Option<i64>,
        names: &mut TraceNames,
        sink: &mut dyn Sink,
    ) -> ReadReport {
        names.clone_from(&self.names);
        let mut report = ReadReport::default();
        for (operation, calls) in &self.operations {
            let mut operation = operation.clone();
            let mut told = vec![false; calls.len()];
            for event in &mut operation.events {
                let at = event.origin as usize;
                let named = event.service.is_some() || event.activity.is_some();
                let Some(told) = told.get_mut(at).filter(|told| named && !**told) else { continue };
                *told = true;
                let time = match calls[at] {
                    NONE => None,
                    STUB => Some(0).filter(|_| !event.cpu.is_nan()),
                    call => demand(call as usize),
                };
                if let Some(time) = time {
                    event.cpu = time as f64 * 1e-9;
                }
            }
            report.operations += 1;
            report.events += operation.events.len() as u64;
            if sink.operation(names, operation) == ControlFlow::Break(()) {
                break;
            }
        }
        report
    }
}
