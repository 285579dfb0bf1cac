//! Spans as a table.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Losses, Shown, lost, word_of};
use crate::retained::Status;
use crate::spans::model::Messaging;

const HEADER: &str =
    "trace_id,span_id,parent_span_id,service,instance,host,operation,kind,start_ns,end_ns,peer,status,cpu_time_s";

pub(super) fn begin(output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "{HEADER}")
}

pub(super) fn write(output: &mut dyn Write, own: Shown<'_>, losses: &mut Losses) -> io::Result<()> {
    for (place, span) in own.spans.spans.iter().enumerate() {
        lost(losses, "that the parent is remote", span.remote);
        lost(losses, "that the parent does not wait (FOLLOWS_FROM)", span.follows);
        lost(losses, "links", span.links > 0);
        lost(losses, "events", !own.events(place).is_empty());
        lost(losses, "routes", span.route.is_some());
        lost(losses, "what is done with messages", span.messaging != Messaging::None);
        lost(losses, "how operations were sampled", !span.weight.is_nan());
        lost(losses, "attributes", own.kept.is_some_and(|kept| !kept.attributes_of(place as u32).is_empty()));
        let known = usize::from(span.host.is_some()) + usize::from(span.instance.is_some());
        lost(losses, "attributes of resources", own.resource(place).len() > known);
        let parent = if span.parent.is_some() { own.spans.span_text(span.parent) } else { "".into() };
        let status = match own.status(place) {
            Status::Unset => "",
            other => other.label(),
        };
        let cpu = if span.cpu.is_nan() { String::new() } else { span.cpu.to_string() };
        let end = if span.endless { String::new() } else { span.end.to_string() };
        let fields = [
            &own.spans.trace_text(span.trace),
            &own.spans.span_text(span.id),
            &*parent,
            own.text(span.service),
            own.text(span.instance),
            own.text(span.host),
            own.text(span.name),
            word_of(span.kind).unwrap_or_default(),
            &span.start.to_string(),
            &end,
            own.text(span.peer),
            status,
            &cpu,
        ];
        let fields: Vec<Cow<'_, str>> = fields.into_iter().map(quoted).collect();
        writeln!(output, "{}", fields.join(","))?;
    }
    Ok(())
}

/// A field, in quotes where it needs them. A field cannot go over several lines.
fn quoted(field: &str) -> Cow<'_, str> {
    if !field.contains([',', '"', '\n', '\r']) && field.trim() == field && !field.starts_with('#') {
        return field.into();
    }
    format!("\"{}\"", field.replace('"', "\"\"").replace(['\n', '\r'], " ")).into()
}
