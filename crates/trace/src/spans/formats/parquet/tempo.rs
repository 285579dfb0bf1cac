//! Blocks of Tempo (`vParquet3` to `vParquet5`): a row a trace, in it resources, scopes and spans.
//!
//! Attributes do not all stand in `Attrs`:
//!
//! - those that an operator asked for have columns of their own, `String01` …, whose names `meta.json` tells (`dedicatedColumns`), in the
//!   order of the slots of each scope and type;
//! - the name of the service, and in older blocks those of the cluster, namespace, pod and container, the method, URL and status of HTTP,
//!   have columns named after them.
//!
//! Values are optional in version 3 and lists in later ones; links are a message of protobuf in version 3.

use serde_json::Value;

use crate::codes;
use crate::parquet::{Datum, File, Malformed, Node, Part, View};
use crate::retained::Status;
use crate::spans::attributes::Attributes;
use crate::spans::builder::Builder;
use crate::spans::formats::otlp_proto::{kind, link, span_id, trace_id, wire};
use crate::spans::ids::TraceId;
use crate::spans::json::{Scalar, Shape};
use crate::spans::model::{Link, Span};
use crate::spans::sampling::of_trace_state;
use dyelog_diagnostic::names::Names;
use dyelog_diagnostic::{Diagnostic, Place};

/// The attributes in columns of their own, by their slots.
#[derive(Debug, Default)]
pub(super) struct Dedicated {
    resource: Vec<(String, String)>,
    span: Vec<(String, String)>,
}

impl Dedicated {
    /// As `meta.json` names them.
    pub fn of(meta: &Value) -> Self {
        let mut own = Self::default();
        let mut used: Vec<((String, &str), u32)> = Vec::new();
        for column in meta.get("dedicatedColumns").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| column.get(key).and_then(Value::as_str);
            let (scope, name) = (text("s").unwrap_or("span"), text("n").unwrap_or_default().to_owned());
            let slot = if text("t") == Some("int") { "Int" } else { "String" };
            let key = (scope.to_owned(), slot);
            let number = match used.iter_mut().find(|(known, _)| *known == key) {
                Some((_, number)) => {
                    *number += 1;
                    *number
                }
                None => {
                    used.push((key, 1));
                    1
                }
            };
            let slot = format!("{slot}{number:02}");
            match scope {
                "resource" => own.resource.push((slot, name)),
                "span" => own.span.push((slot, name)),
                _ => {}
            }
        }
        own
    }
}

/// Columns with the name of an attribute: of a resource, and of a span.
const OF_RESOURCE: [(&str, &str); 9] = [
    ("ServiceName", "service.name"),
    ("Cluster", "cluster"),
    ("Namespace", "namespace"),
    ("Pod", "pod"),
    ("Container", "container"),
    ("K8sClusterName", "k8s.cluster.name"),
    ("K8sNamespaceName", "k8s.namespace.name"),
    ("K8sPodName", "k8s.pod.name"),
    ("K8sContainerName", "k8s.container.name"),
];

const OF_SPAN: [(&str, &str); 3] =
    [("HttpMethod", "http.method"), ("HttpUrl", "http.url"), ("HttpStatusCode", "http.status_code")];

/// What Tempo computes from the rest, and what nobody asks for.
const LEFT_OUT: [&str; 7] =
    ["ServiceStats", "NestedSetLeft", "NestedSetRight", "ParentID", "ChildCount", "Scope", "TraceIDText"];

/// Reads a row group.
pub(super) fn group(
    builder: &mut Builder<'_>,
    parquet: &File<'_>,
    (group, part): (usize, Part<'_>),
    dedicated: Option<&Dedicated>,
) -> Result<(), Malformed> {
    let mut rows = parquet.rows(group, part, |path| !path.iter().any(|name| LEFT_OUT.contains(name)))?;
    while let Some(row) = rows.next()? {
        let row = View { field: &parquet.root, node: &row };
        let trace = row.get("TraceID").and_then(View::bytes).map(|bytes| trace_id(builder, bytes)).unwrap_or_default();
        for batch in row.get("rs").map(View::items).unwrap_or_default() {
            resource(builder, trace, batch, dedicated);
        }
        builder.hand_on();
    }
    Ok(())
}

fn resource(builder: &mut Builder<'_>, trace: TraceId, batch: View<'_>, dedicated: Option<&Dedicated>) {
    builder.resource.clear();
    if let Some(own) = batch.get("Resource") {
        let Builder { resource, scalar, names, .. } = &mut *builder;
        let slots = dedicated.map(|known| known.resource.as_slice());
        let unnamed = attributes(resource, scalar, names, own, &OF_RESOURCE, slots);
        tell_unnamed(builder, unnamed);
    }
    let mut signed = Span { trace, ..Span::default() };
    builder.resource_recorder().sign(&mut signed);
    let number = builder.keep_resource();
    let first = builder.spans.spans.len();
    for scope in batch.get("ss").map(View::items).unwrap_or_default() {
        for own in scope.get("Spans").map(View::items).unwrap_or_default() {
            span(builder, signed, own, dedicated);
        }
    }
    builder.belongs(first..builder.spans.spans.len(), number);
}

fn span(builder: &mut Builder<'_>, mut span: Span, own: View<'_>, dedicated: Option<&Dedicated>) {
    builder.open();
    let int = |name: &str| own.get(name).and_then(View::int);
    let bytes = |name: &str| own.get(name).and_then(View::bytes);
    let text = |name: &str| own.get(name).map(View::text).unwrap_or_default();
    let service = span.service;
    span.id = bytes("SpanID").map(|bytes| span_id(builder, bytes)).unwrap_or_default();
    span.parent = bytes("ParentSpanID").map(|bytes| span_id(builder, bytes)).unwrap_or_default();
    span.name = builder.names.intern(text("Name"));
    span.kind = kind(int("Kind").and_then(|kind| u64::try_from(kind).ok()).unwrap_or(0));
    if !text("TraceState").is_empty() {
        span.weight = of_trace_state(text("TraceState"), span.trace);
    }
    builder.open.status = match int("StatusCode") {
        Some(1) => Status::Ok,
        Some(2) => Status::Error,
        _ => Status::Unset,
    };
    let Builder { attributes: taken, scalar, names, .. } = &mut *builder;
    let unnamed = attributes(taken, scalar, names, own, &OF_SPAN, dedicated.map(|known| known.span.as_slice()));
    tell_unnamed(builder, unnamed);
    span.first_link = builder.spans.links.len() as u32;
    links(builder, own);
    span.links = builder.spans.links.len() as u32 - span.first_link;
    let start = int("StartTimeUnixNano").filter(|time| *time != 0);
    if builder.wanted().events {
        events(builder, own, start);
    }
    builder.apply_attributes(&mut span);
    if service.is_some() {
        span.service = service;
    }
    let end = start.zip(int("DurationNano")).map(|(start, duration)| start.saturating_add(duration));
    builder.finish(span, start, end);
}

/// Takes attributes, wherever they stand; gives how many stand in columns whose names are not known.
fn attributes(
    taken: &mut Attributes,
    scalar: &mut Scalar,
    names: &mut Names,
    own: View<'_>,
    columns: &[(&str, &str)],
    dedicated: Option<&[(String, String)]>,
) -> u64 {
    for attribute in own.get("Attrs").map(View::items).unwrap_or_default() {
        let key = attribute.get("Key").map(View::text).unwrap_or_default();
        let value = ["Value", "ValueInt", "ValueDouble", "ValueBool"].into_iter().find_map(|name| {
            let values = attribute.get(name)?.items();
            (!values.is_empty()).then_some(values)
        });
        let is_list = matches!(attribute.get("IsArray").map(|flag| flag.node), Some(Node::Value(Datum::Bool(true))));
        match value.as_deref() {
            Some([only]) if !is_list => set(scalar, *only),
            Some(_) => scalar.set_shape(Shape::Array),
            None => scalar.set_shape(Shape::Null),
        }
        taken.offer(key, scalar, names);
    }
    for (column, key) in columns {
        if let Some(value) = own.get(column) {
            set(scalar, value);
            taken.offer(key, scalar, names);
        }
    }
    let Some(slots) = own.get("DedicatedAttributes") else { return 0 };
    let mut unnamed = 0;
    for field in slots.field.fields() {
        let values = slots.get(&field.name).map(View::items).unwrap_or_default();
        match (dedicated.and_then(|known| known.iter().find(|(slot, _)| *slot == field.name)), values.as_slice()) {
            (_, []) => {}
            (Some((_, key)), values) => {
                match values {
                    [only] => set(scalar, *only),
                    _ => scalar.set_shape(Shape::Array),
                }
                taken.offer(key, scalar, names);
            }
            (None, _) => unnamed += 1,
        }
    }
    unnamed
}

fn set(scalar: &mut Scalar, value: View<'_>) {
    match value.node {
        Node::Value(Datum::Bool(truth)) => scalar.set_bool(*truth),
        Node::Value(Datum::Int(number)) => scalar.set_whole((*number).into()),
        Node::Value(Datum::Double(number)) => scalar.set_float(*number),
        Node::Value(Datum::Bytes(bytes)) => scalar.set_text(&String::from_utf8_lossy(bytes)),
        _ => scalar.set_shape(Shape::Null),
    }
}

fn tell_unnamed(builder: &mut Builder<'_>, times: u64) {
    for _ in 0..times {
        let place = Place::File { file: builder.file.clone() };
        builder.report.count("attribute in a column without a name", || {
            Diagnostic::warning(codes::DEDICATED, place, "an attribute stands in a column whose name is not known")
                .with_note("it was left out")
                .with_hint("read the folder with `meta.json`, which names such columns")
        });
    }
}

fn links(builder: &mut Builder<'_>, own: View<'_>) {
    let Some(links) = own.get("Links") else { return };
    if let Some(message) = links.bytes() {
        let mut fields = wire::Fields::of(message);
        // What cannot be read of them is counted as a value, and the span stays.
        loop {
            let next = fields.next().and_then(|field| match field {
                Some((1, value)) => link(builder, value.bytes()).map(|()| true),
                Some(_) => Ok(true),
                None => Ok(false),
            });
            match next {
                Ok(true) => {}
                Ok(false) => return,
                Err(wire::Malformed) => return builder.report.tally("link that cannot be read", 1),
            }
        }
    }
    for own in links.items() {
        let bytes = |name: &str| own.get(name).and_then(View::bytes);
        let trace = bytes("TraceID").map(|bytes| trace_id(builder, bytes)).unwrap_or_default();
        let span = bytes("SpanID").map(|bytes| span_id(builder, bytes)).unwrap_or_default();
        if span.is_some() {
            builder.spans.links.push(Link { trace, span });
        }
    }
}

fn events(builder: &mut Builder<'_>, own: View<'_>, start: Option<i64>) {
    for event in own.get("Events").map(View::items).unwrap_or_default() {
        let int = |name: &str| event.get(name).and_then(View::int);
        let since = || Some(start?.saturating_add(int("TimeSinceStartNano")?));
        builder.event.clear();
        let Builder { event: taken, scalar, names, .. } = &mut *builder;
        attributes(taken, scalar, names, event, &[], Some(&[]));
        let name = builder.names.intern(event.get("Name").map(View::text).unwrap_or_default());
        builder.close_event(name, int("TimeUnixNano").or_else(since));
    }
}
