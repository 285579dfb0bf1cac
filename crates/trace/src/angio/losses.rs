//! What operations have that the native forms do not hold.

use crate::{Extent, Operation, Origins, Replica};

/// What an operation loses when it is written in a native form. One that was read from a native form loses nothing.
pub fn losses(operation: &Operation) -> impl Iterator<Item = &'static str> {
    let spans = match &operation.origins {
        Origins::Lines => &[][..],
        Origins::Items(spans) => spans,
    };
    let all = [
        ("how operations were sampled", operation.weight.is_some() && !operation.weight_given),
        ("that the beginning was lost, or the sender of a message", operation.extent != Extent::Whole),
        ("which times are of spans, so that network latency and servers can be told", !spans.is_empty()),
        ("instances and machines", spans.iter().any(|span| span.replica != Replica::default())),
        ("failures and retries", spans.iter().any(|span| span.failed || span.retry)),
    ];
    all.into_iter().filter(|(_, is)| *is).map(|(what, _)| what)
}
