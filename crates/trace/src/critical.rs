//! What the response of an operation waits for.

use crate::SpanTree;
use crate::recorded::SpanKind;

/// A span is still waited for where it ends after its parent by no more than this part of its own time: it is often closed when the answer is on its
/// way. Ours, and that of second phases.
const LATE: i64 = 20;

impl SpanTree {
    /// The children of all spans, in the order of their begins.
    pub fn children(&self) -> Children {
        let mut from = vec![0u32; self.spans.len() + 1];
        for parent in self.spans.iter().filter_map(|span| span.parent) {
            from[parent as usize + 1] += 1;
        }
        for place in 1..from.len() {
            from[place] += from[place - 1];
        }
        let mut next = from.clone();
        let mut all = vec![0; from.last().copied().unwrap_or(0) as usize];
        // The spans come breadth first.
        for (place, span) in (0..).zip(&self.spans) {
            if let Some(parent) = span.parent {
                let free = &mut next[parent as usize];
                all[*free as usize] = place;
                *free += 1;
            }
        }
        // Corrected clocks may bring children into another order than that of the trace.
        if self.spans.iter().any(|span| span.shift != 0) {
            for place in 0..self.spans.len() {
                all[from[place] as usize..from[place + 1] as usize]
                    .sort_by_key(|child: &u32| self.spans[*child as usize].start);
            }
        }
        Children { from, all }
    }

    /// Whether the parent of a span waits for it: not where the trace says so (FOLLOWS_FROM, a consumer, what a producer causes), where it begins when the
    /// parent has ended, or where it ends after the parent does. A server may go on after its client has its answer; and where no kind tells what a span is,
    /// its parent waits for it as long as it runs.
    pub fn is_awaited(&self, span: u32) -> bool {
        let own = &self.spans[span as usize];
        let Some(parent) = own.parent.map(|parent| &self.spans[parent as usize]) else { return true };
        let answers = parent.kind == SpanKind::Client && own.kind == SpanKind::Server;
        let answers = answers || own.kind == SpanKind::Unspecified;
        let late = own.end.saturating_sub(parent.end);
        !own.follows
            && own.kind != SpanKind::Consumer
            && parent.kind != SpanKind::Producer
            && (answers || late <= own.end.saturating_sub(own.start) / LATE)
    }

    /// The critical path: which span the response waits for, from its end back to its begin. From the end of a span the path goes to the child that ends
    /// last, of those that the span waits for, and from the begin of that one to the child that ends last before it; between them it is the
    /// span's own. A child counts as far as it lies within its parent. Gives spans with stretches of time, latest first.
    ///
    /// Source: CRISP (Zhang et al., USENIX ATC 2022), §3; that only children count which are waited for is ours.
    pub fn critical_path(&self, children: &Children) -> Vec<(u32, i64, i64)> {
        let within = |span: u32, begin: i64, end: i64| {
            let awaited = children.of(span).iter().filter(|child| self.is_awaited(**child));
            let cut = awaited.map(|&child| {
                let own = &self.spans[child as usize];
                (own.start.max(begin), own.end.min(end), child)
            });
            let mut cut: Vec<_> = cut.filter(|(from, to, _)| from < to).collect();
            cut.sort_unstable_by_key(|(from, to, child)| (*to, *from, *child));
            cut
        };
        let (mut path, mut open) = (Vec::new(), Vec::new());
        if let Some(first) = self.spans.first() {
            open.push(Visit {
                span: 0,
                begin: first.start,
                at: first.end,
                children: within(0, first.start, first.end),
            });
        }
        while let Some(visit) = open.last_mut() {
            // A child that ends later than the path has come to runs beside it, and does not delay the response.
            while visit.children.last().is_some_and(|(_, to, _)| *to > visit.at) {
                visit.children.pop();
            }
            let taken = visit.children.pop();
            let end = taken.map_or(visit.begin, |(_, to, _)| to);
            if end < visit.at {
                path.push((visit.span, end, visit.at));
            }
            match taken {
                Some((from, to, child)) => {
                    visit.at = from;
                    let children = within(child, from, to);
                    open.push(Visit { span: child, begin: from, at: to, children });
                }
                None => drop(open.pop()),
            }
        }
        path
    }
}

/// The children of the spans of an operation.
#[derive(Clone, Debug)]
pub struct Children {
    /// Where those of each span begin in `all`.
    from: Vec<u32>,
    all: Vec<u32>,
}

impl Children {
    /// Those of a span.
    pub fn of(&self, span: u32) -> &[u32] {
        &self.all[self.from[span as usize] as usize..self.from[span as usize + 1] as usize]
    }
}

/// A span on the critical path.
struct Visit {
    span: u32,
    /// Where it begins, and where the path has come to.
    begin: i64,
    at: i64,
    /// The children that are left.
    children: Vec<(i64, i64, u32)>,
}
