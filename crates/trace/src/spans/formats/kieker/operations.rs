//! From the records of a log to spans: one for each execution of an operation.

use rustc_hash::{FxHashMap, FxHashSet};

use super::log::{Log, Origin};
use super::record::{Event, Execution, What};
use crate::codes;
use crate::retained::Status;
use crate::spans::builder::Builder;
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// What a signature says: the class and the method, as they are shown.
type Operation = (Name, Name);

/// Makes spans of all records.
///
/// # Errors
/// When those that wait on disk cannot be read.
pub(super) fn spans(builder: &mut Builder<'_>, log: Log) -> Result<(), Diagnostics> {
    let operations = operations(builder, &log);
    builder.finish_traces(|builder| {
        let held = std::mem::take(&mut builder.spans.spans);
        builder.truncate((0, 0));
        executions(builder, held.iter().map(Execution::of_held).collect(), &operations);
    })?;
    events(builder, log.events, &log.traces, &operations);
    Ok(())
}

/// The class and method of each signature. A class goes by its simple name where no other has that.
fn operations(builder: &mut Builder<'_>, log: &Log) -> FxHashMap<Name, Operation> {
    let simple = |class: &str| class.rsplit('.').next().unwrap_or(class).to_owned();
    let mut sharing: FxHashMap<String, FxHashSet<String>> = FxHashMap::default();
    let parts: Vec<(Name, String, String)> = log
        .signatures
        .iter()
        .map(|&signature| {
            let (class, method) = split(builder.names.text(signature));
            sharing.entry(simple(&class)).or_default().insert(class.clone());
            (signature, class, method)
        })
        .collect();
    let named = parts.into_iter().map(|(signature, class, method)| {
        let short = simple(&class);
        let shown = if sharing[&short].len() == 1 { short } else { class };
        (signature, (builder.names.intern(&shown), builder.names.intern(&method)))
    });
    named.collect()
}

/// `public static void a.b.Catalog.get(java.lang.String, int) throws E` as `a.b.Catalog` and `get(String, int)`.
fn split(signature: &str) -> (String, String) {
    let (head, rest) = signature.split_once('(').unwrap_or((signature, ""));
    let qualified = head.split_whitespace().next_back().unwrap_or_default();
    let Some((class, method)) = qualified.rsplit_once('.') else { return (String::new(), signature.to_owned()) };
    if !signature.contains('(') {
        return (class.to_owned(), method.to_owned());
    }
    let parameters = rest.split(')').next().unwrap_or_default();
    let short = |parameter: &str| parameter.trim().rsplit('.').next().unwrap_or_default().to_owned();
    let parameters: Vec<String> = parameters.split(',').map(short).collect();
    (class.to_owned(), format!("{method}({})", parameters.join(", ")))
}

/// A span of an operation; `caller` is the class that calls it, where that is known.
fn span(builder: &Builder<'_>, operation: Option<&Operation>, host: Name, caller: Option<Name>) -> Span {
    let (class, method) = operation.copied().unwrap_or_default();
    // Code outside of any class belongs to its process.
    let service = if class.is_some() { class } else { host };
    let kind = if caller == Some(service) { SpanKind::Internal } else { SpanKind::Server };
    // `<default-host>` and the like name none.
    let machine = if builder.names.text(host).starts_with('<') { Name::NONE } else { host };
    Span { service, host, machine, name: method, kind, ..Span::default() }
}

fn executions(builder: &mut Builder<'_>, mut all: Vec<Execution>, operations: &FxHashMap<Name, Operation>) {
    all.sort_by(|a, b| {
        let key = |own: &Execution| (own.trace.cast_unsigned(), own.eoi, own.ess, own.start, own.end);
        let texts = |own: &Execution| (builder.names.text(own.signature), builder.names.text(own.host));
        key(a).cmp(&key(b)).then_with(|| texts(a).cmp(&texts(b)))
    });
    let mut stack: Vec<(Execution, Name)> = Vec::new();
    for trace in all.chunk_by(|a, b| a.trace == b.trace) {
        // Executions outside of any trace are each one by itself.
        let loose = trace[0].trace == -1 || trace[0].eoi < 0;
        stack.clear();
        let mut last = -1;
        for (number, own) in trace.iter().enumerate() {
            if loose {
                stack.clear();
            } else if own.eoi > last + 1 {
                lost_records(builder, own, last);
            }
            last = last.max(own.eoi);
            while stack.last().is_some_and(|(above, _)| above.ess >= own.ess) {
                stack.pop();
            }
            // A caller on the same host that had ended is not the caller: that one was lost.
            let calls = |above: &Execution| {
                above.ess == own.ess - 1 && (above.host != own.host || above.end >= own.end && above.start <= own.start)
            };
            let caller = stack.last().copied().filter(|(above, _)| calls(above));
            builder.open();
            let mut span = span(builder, operations.get(&own.signature), own.host, caller.map(|(_, class)| class));
            let run = if loose { format!("{}.{}", own.trace, number + 1) } else { run_of(own.trace) };
            span.trace = builder.spans.trace_id(&run);
            span.id = builder.spans.span_id(&format!("#{}", own.eoi));
            span.remote = caller.is_some_and(|(above, _)| above.host != own.host);
            span.parent = match caller {
                Some((above, _)) => builder.spans.span_id(&format!("#{}", above.eoi)),
                None if loose || own.ess <= 0 => SpanId::NONE,
                None => builder.spans.span_id(&format!("the caller at depth {}", own.ess - 1)),
            };
            stack.push((*own, span.service));
            builder.add(span, Some(own.start), Some(own.end));
        }
    }
}

fn lost_records(builder: &mut Builder<'_>, own: &Execution, last: i32) {
    let missing = u64::from((own.eoi - last - 1).unsigned_abs());
    let id = builder.spans.span_id(&format!("#{}", own.eoi));
    let place = builder.place(id);
    builder.report.count("gap in the order of executions", || {
        let message = format!("{missing} executions before this one are missing from trace {}", own.trace);
        Diagnostic::warning(codes::LOST_RECORDS, place, message)
    });
}

/// The text of a trace's number. Numbers begin with 0, which stands for no trace elsewhere.
fn run_of(trace: i64) -> String {
    if trace == 0 { "trace 0".to_owned() } else { trace.to_string() }
}

/// An operation that has begun and not ended.
#[derive(Clone, Copy)]
struct Open {
    start: i64,
    signature: Name,
    span: Span,
}

/// The operation that runs after each event of a trace: the event's place, then that of the operation's begin, and its class.
type Timeline = Vec<(i32, Option<(i32, Name)>)>;

/// What is known of all traces of events.
struct Traces<'a> {
    origins: &'a FxHashMap<i64, Origin>,
    /// Of the traces that others come from.
    running: FxHashMap<i64, Timeline>,
    /// The trace that a trace comes from in the end, for those that come from another.
    first: FxHashMap<i64, i64>,
    /// The traces that are waited for.
    joined: FxHashSet<i64>,
    operations: &'a FxHashMap<Name, Operation>,
}

impl Traces<'_> {
    /// Finds the trace that a trace comes from in the end. What goes round in a circle ends where it closes.
    fn follow(&mut self, trace: i64) {
        let (mut path, mut seen, mut at) = (Vec::new(), FxHashSet::default(), trace);
        while seen.insert(at) {
            if let Some(&first) = self.first.get(&at) {
                at = first;
                break;
            }
            match self.origins.get(&at).map(|origin| origin.parent) {
                Some(parent) if parent != at && self.running.contains_key(&parent) => {
                    path.push(at);
                    at = parent;
                }
                _ => break,
            }
        }
        for member in path {
            self.first.insert(member, at);
        }
    }

    /// The identifier of a span in the trace that its trace comes from.
    fn id(&self, builder: &mut Builder<'_>, trace: i64, order: i32) -> (TraceId, SpanId) {
        let first = self.first.get(&trace).copied().unwrap_or(trace);
        let text = if first == trace { format!("@{order}") } else { format!("{trace}@{order}") };
        (builder.spans.trace_id(&run_of(first)), builder.spans.span_id(&text))
    }

    /// The operation that runs at a place of a trace.
    fn running(&self, trace: i64, order: i32) -> Option<(i32, Name)> {
        let timeline = self.running.get(&trace)?;
        let after = timeline.partition_point(|(place, _)| *place <= order);
        timeline[..after].last()?.1
    }
}

fn events(
    builder: &mut Builder<'_>,
    mut all: Vec<Event>,
    origins: &FxHashMap<i64, Origin>,
    operations: &FxHashMap<Name, Operation>,
) {
    all.sort_by(|a, b| {
        let key = |event: &Event| (event.trace, event.order, event.time);
        let text = |event: &Event| builder.names.text(event.signature);
        key(a).cmp(&key(b)).then_with(|| text(a).cmp(text(b)))
    });
    let joined = all.iter().filter_map(|event| if let What::Joins(trace) = event.what { Some(trace) } else { None });
    let joined = joined.collect();
    let mut traces = Traces { origins, running: FxHashMap::default(), first: FxHashMap::default(), joined, operations };
    let parents: FxHashSet<i64> =
        origins.iter().filter(|(trace, origin)| **trace != origin.parent).map(|(_, origin)| origin.parent).collect();
    for trace in all.chunk_by(|a, b| a.trace == b.trace).filter(|trace| parents.contains(&trace[0].trace)) {
        traces.running.insert(trace[0].trace, timeline(trace, operations));
    }
    for trace in all.chunk_by(|a, b| a.trace == b.trace) {
        traces.follow(trace[0].trace);
    }
    for trace in all.chunk_by(|a, b| a.trace == b.trace) {
        one_trace(builder, trace, &traces);
        builder.hand_on();
    }
}

/// Which operation runs after each event of a trace.
fn timeline(trace: &[Event], operations: &FxHashMap<Name, Operation>) -> Timeline {
    let mut stack: Vec<(i32, Name)> = Vec::new();
    let mut timeline = Vec::with_capacity(trace.len());
    for event in trace {
        match event.what {
            What::Begins => stack.push((event.order, event.signature)),
            What::Ends | What::Fails => {
                if let Some(at) = stack.iter().rposition(|(_, signature)| *signature == event.signature) {
                    stack.truncate(at);
                }
            }
            What::Forks | What::Joins(_) => {}
        }
        let class = |signature: Name| operations.get(&signature).map_or(Name::NONE, |own| own.0);
        timeline.push((event.order, stack.last().map(|(order, signature)| (*order, class(*signature)))));
    }
    timeline
}

fn one_trace(builder: &mut Builder<'_>, trace: &[Event], traces: &Traces<'_>) {
    let number = trace[0].trace;
    let origin = traces.origins.get(&number).copied();
    let host = origin.map_or(Name::NONE, |origin| origin.host);
    let mut stack: Vec<Open> = Vec::new();
    for event in trace {
        match event.what {
            What::Begins => {
                let open = begin(builder, event, stack.last(), origin, host, traces, trace[0].order);
                stack.push(open);
            }
            What::Ends | What::Fails => {
                let Some(at) = stack.iter().rposition(|open| open.signature == event.signature) else {
                    let (_, id) = traces.id(builder, number, event.order);
                    let place = builder.place(id);
                    builder.report.count("end of an operation without its begin", || {
                        Diagnostic::warning(codes::LOST_RECORDS, place, "an operation ends here whose begin is missing")
                            .with_note("it was left out")
                    });
                    continue;
                };
                // Those within it have ended, too, though nothing says so.
                while stack.len() > at + 1 {
                    let open = stack.pop().expect("there are more");
                    end(builder, open, event.time, true, Status::Unset);
                }
                let open = stack.pop().expect("it was found");
                let failed = event.what == What::Fails;
                end(builder, open, event.time, false, if failed { Status::Error } else { Status::Unset });
            }
            What::Forks | What::Joins(_) => {}
        }
    }
    let last = trace.iter().map(|event| event.time).max().unwrap_or_default();
    while let Some(open) = stack.pop() {
        end(builder, open, last, true, Status::Unset);
    }
}

fn begin(
    builder: &mut Builder<'_>,
    event: &Event,
    caller: Option<&Open>,
    origin: Option<Origin>,
    host: Name,
    traces: &Traces<'_>,
    first: i32,
) -> Open {
    // The operation that another trace came from, if any.
    let above = origin
        .filter(|origin| caller.is_none() && origin.parent != event.trace)
        .and_then(|origin| Some((origin, traces.running(origin.parent, origin.order)?)));
    let class = caller.map(|open| open.span.service).or(above.map(|(_, (_, class))| class));
    let mut span = span(builder, traces.operations.get(&event.signature), host, class);
    (span.trace, span.id) = traces.id(builder, event.trace, event.order);
    span.parent = match (caller, above) {
        (Some(open), _) => open.span.id,
        (None, Some((origin, (order, _)))) => {
            span.remote = origin.remote;
            span.follows = !origin.remote && !traces.joined.contains(&event.trace);
            if origin.remote {
                span.kind = SpanKind::Server;
            }
            traces.id(builder, origin.parent, order).1
        }
        // The log begins in the middle of the trace.
        (None, None) if first > 0 => builder.spans.span_id("the caller before the log"),
        (None, None) => SpanId::NONE,
    };
    Open { start: event.time, signature: event.signature, span }
}

fn end(builder: &mut Builder<'_>, open: Open, time: i64, endless: bool, status: Status) {
    builder.open();
    builder.open.status = status;
    if endless {
        let place = builder.place(open.span.id);
        builder.report.count("operation without its end", || {
            Diagnostic::warning(codes::NO_SPAN_END, place, "the end of this operation is missing")
                .with_note("it is taken to end with the next one around it, or with its trace")
        });
    }
    builder.add(Span { endless, ..open.span }, Some(open.start), Some(time.max(open.start)));
}
