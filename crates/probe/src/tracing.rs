//! A layer for `tracing-subscriber`: each span is a collocated call, from when it is first entered to when it is closed.

use tracing_core::span::{Attributes, Id};
use tracing_core::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::function::Function;
use crate::future::{Activity, Before};

/// Spans as calls: the target of a span is the interface, its name the function. A span that comes and goes with a future has the processor time of
/// its polls.
///
/// The span around a span is the one that is entered, not the one named as its parent. Spans of futures that a task holds at once begin chains of their own,
/// and are counted in [`Summary::interleaved`](crate::Summary::interleaved).
///
/// ```
/// use dyelog_probe::SpanLayer;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(SpanLayer::default());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SpanLayer {
    most: Level,
}

impl Default for SpanLayer {
    /// Spans of the level `INFO` and above.
    fn default() -> Self {
        Self { most: Level::INFO }
    }
}

impl SpanLayer {
    /// Spans of this level and above.
    pub fn up_to(most: Level) -> Self {
        Self { most }
    }
}

/// A span that is a call, and what each of its entries found.
struct Span {
    activity: Activity,
    entered: Vec<Before>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        if *metadata.level() > self.most || crate::state::switch() == 0 {
            return;
        }
        if let Some(span) = context.span(id) {
            let function = Function::new(metadata.target(), metadata.name());
            span.extensions_mut().insert(Span { activity: Activity::call(&function), entered: Vec::new() });
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(Span { activity, entered }) = extensions.get_mut::<Span>() {
            // A span that is entered within itself goes on as it is.
            let before = if entered.is_empty() { activity.resume() } else { Before::Nothing };
            entered.push(before);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(Span { activity, entered }) = extensions.get_mut::<Span>()
            && let Some(before) = entered.pop()
            && entered.is_empty()
        {
            activity.suspend(before);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let taken = span.extensions_mut().remove::<Span>();
        if let Some(Span { mut activity, .. }) = taken
            && activity.has_begun()
        {
            let before = activity.resume();
            activity.finish(before, 0);
        }
    }
}
