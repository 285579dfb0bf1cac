//! Spans as the OpenTelemetry SDK for Go writes them to the standard output, one a line.

use serde::de::MapAccess;

use crate::spans::builder::Builder;
use crate::spans::formats::otlp::{AttributeList, LinkList, events, span_id, status, trace_id};
use crate::spans::json::{ArrayOf, Members, ObjectOf, ScalarInto, Shape, skip};
use crate::spans::model::{Span, SpanKind};
use crate::spans::time::from_rfc3339;

/// What is known of such a span; nothing, in a document of another form.
#[derive(Default)]
pub(crate) struct GoSpan {
    met: bool,
    span: Span,
    start: Option<i64>,
    end: Option<i64>,
}

impl GoSpan {
    /// Takes a member of the document.
    pub(crate) fn member<'de, A: MapAccess<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        key: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match key {
            "SpanContext" => {
                self.met = true;
                let mut context = Context { builder, ids: Span::default() };
                map.next_value_seed(ObjectOf(&mut context))?;
                (self.span.trace, self.span.id) = (context.ids.trace, context.ids.id);
            }
            "Parent" => {
                let mut context = Context { builder, ids: Span::default() };
                map.next_value_seed(ObjectOf(&mut context))?;
                self.span.parent = context.ids.id;
            }
            "Name" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.span.name = builder.intern_scalar();
            }
            "SpanKind" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.span.kind = builder.scalar.text().map_or(SpanKind::Unspecified, SpanKind::parse);
            }
            "StartTime" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.start = builder.scalar.text().and_then(from_rfc3339);
            }
            "EndTime" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.end = builder.scalar.text().and_then(from_rfc3339);
            }
            "Attributes" => {
                let mut list = AttributeList::new(&mut builder.attributes, &mut builder.scalar, builder.names);
                let shape = map.next_value_seed(ArrayOf(&mut list))?;
                builder.expect(Shape::Array, shape, "Attributes");
            }
            "Resource" => {
                let mut list = AttributeList::new(&mut builder.resource, &mut builder.scalar, builder.names);
                let shape = map.next_value_seed(ArrayOf(&mut list))?;
                builder.expect(Shape::Array, shape, "Resource");
            }
            "Status" => status(builder, map)?,
            "Events" if builder.wanted().events => events(builder, map)?,
            "Links" => {
                self.span.first_link = builder.spans.links.len() as u32;
                map.next_value_seed(ArrayOf(&mut LinkList { builder }))?;
                self.span.links = builder.spans.links.len() as u32 - self.span.first_link;
            }
            _ => skip(map)?,
        }
        Ok(())
    }

    /// The document ends.
    pub(crate) fn finish(&mut self, builder: &mut Builder<'_>) {
        if !std::mem::take(&mut self.met) {
            return;
        }
        let mut span = std::mem::take(&mut self.span);
        builder.resource_recorder().sign(&mut span);
        builder.apply_attributes(&mut span);
        let resource = builder.keep_resource();
        let before = builder.spans.spans.len();
        builder.finish(span, self.start.take(), self.end.take());
        builder.belongs(before..builder.spans.spans.len(), resource);
        builder.open();
        builder.resource.clear();
    }
}

struct Context<'r, 'n> {
    builder: &'r mut Builder<'n>,
    ids: Span,
}

impl Members for Context<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "TraceID" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.ids.trace = trace_id(self.builder);
            }
            "SpanID" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.ids.id = span_id(self.builder);
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}
