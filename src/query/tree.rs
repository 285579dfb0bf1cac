//! What rules could not derive from a tree of spans in linear time: its order, and what of each span its children cover.

use crate::trace::SpanTree;

/// A tree of spans with its children side by side.
pub(super) struct Tree<'a> {
    pub(super) spans: &'a SpanTree,
    first: Vec<u32>,
    /// By parent, children in the order of their start.
    children: Vec<u32>,
}

/// A stretch of time, in nanoseconds.
type Stretch = (i64, i64);

impl<'a> Tree<'a> {
    pub(super) fn of(spans: &'a SpanTree) -> Self {
        let count = spans.spans.len();
        let mut first = vec![0_u32; count + 1];
        for span in &spans.spans {
            if let Some(parent) = span.parent {
                first[parent as usize + 1] += 1;
            }
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let mut children = vec![0_u32; first[count] as usize];
        // The spans come breadth first.
        for (at, span) in (0..).zip(&spans.spans) {
            if let Some(parent) = span.parent {
                let place = &mut next[parent as usize];
                children[*place as usize] = at;
                *place += 1;
            }
        }
        // Corrected clocks may bring children into another order than that of the trace.
        if spans.spans.iter().any(|span| span.shift != 0) {
            for span in 0..count {
                let own = &mut children[first[span] as usize..first[span + 1] as usize];
                own.sort_by_key(|child| spans.spans[*child as usize].start);
            }
        }
        Self { spans, first, children }
    }

    pub(super) fn children(&self, span: u32) -> &[u32] {
        let range = self.first[span as usize] as usize..self.first[span as usize + 1] as usize;
        &self.children[range]
    }

    fn len(&self) -> u32 {
        self.spans.spans.len() as u32
    }

    /// By span: its place before and behind what it caused, from 1.
    pub(super) fn order(&self) -> Vec<(u32, u32)> {
        let mut order = vec![(0, 0); self.len() as usize];
        let (mut pre, mut post) = (0, 0);
        let mut open: Vec<(u32, usize)> = Vec::new();
        for root in (0..self.len()).filter(|span| self.spans.spans[*span as usize].parent.is_none()) {
            open.push((root, 0));
            pre += 1;
            order[root as usize].0 = pre;
            while let Some((span, next)) = open.last_mut() {
                let (span, at) = (*span, *next);
                *next += 1;
                if let Some(&child) = self.children(span).get(at) {
                    pre += 1;
                    order[child as usize].0 = pre;
                    open.push((child, 0));
                } else {
                    post += 1;
                    order[span as usize].1 = post;
                    open.pop();
                }
            }
        }
        order
    }

    /// By span: how many spans lie above it.
    pub(super) fn depth(&self) -> Vec<u32> {
        let mut depth: Vec<u32> = Vec::with_capacity(self.spans.spans.len());
        for span in &self.spans.spans {
            depth.push(span.parent.map_or(0, |parent| depth[parent as usize] + 1));
        }
        depth
    }

    fn stretch(&self, span: u32) -> Stretch {
        let span = &self.spans.spans[span as usize];
        (span.start, span.end)
    }

    /// The stretches of a span in which no child ran, in the order of time. Children by another clock, or that their parent does
    /// not wait for, count as far as they lie within it.
    pub(super) fn gaps(&self, span: u32, mut found: impl FnMut(i64, i64)) {
        let (mut at, end) = self.stretch(span);
        for &child in self.children(span) {
            let (from, to) = self.stretch(child);
            if from.min(end) > at {
                found(at, from.min(end));
            }
            at = at.max(to);
        }
        if at < end {
            found(at, end);
        }
    }

    /// How long a span ran while no child did, and while at least one did.
    pub(super) fn own_and_covered(&self, span: u32) -> (i64, i64) {
        let mut own = 0;
        self.gaps(span, |from, to| own += to - from);
        let (from, to) = self.stretch(span);
        (own, to - from - own)
    }

    /// How many children ran at once at most. Those that only touch do not run at once.
    pub(super) fn concurrency(&self, span: u32) -> usize {
        let mut ends: Vec<i64> = self.children(span).iter().map(|child| self.stretch(*child).1).collect();
        ends.sort_unstable();
        let (mut running, mut most, mut ended) = (0_usize, 0, 0);
        for &child in self.children(span) {
            let (from, to) = self.stretch(child);
            while ended < ends.len() && ends[ended] <= from {
                ended += 1;
            }
            running += 1;
            // One without a duration has ended as it starts, and runs all the same.
            most = most.max(running.saturating_sub(ended).max(usize::from(to >= from)));
        }
        most
    }

    /// The critical path of the tree: which span the response waits for, from its end back to its start. From the end of a span the
    /// path goes to the child that ends last, and from the start of that one to the child that ends last before it; between
    /// them it is the span's own. A child counts as far as it lies within its parent: beyond that, the parent does not wait
    /// for it, or their clocks differ. Gives spans with stretches, latest first.
    ///
    /// Source: CRISP (Zhang et al., USENIX ATC 2022), §3.
    pub(super) fn critical(&self) -> Vec<(u32, i64, i64)> {
        let mut path = Vec::new();
        let mut open = Vec::new();
        if !self.spans.spans.is_empty() {
            let (from, to) = self.stretch(0);
            open.push(Visit { span: 0, begin: from, at: to, children: self.within(0, from, to) });
        }
        while let Some(visit) = open.last_mut() {
            // A child that ends later than the path has come to runs beside it, and does not delay the response.
            while visit.children.last().is_some_and(|(_, to, _)| *to > visit.at) {
                visit.children.pop();
            }
            let taken = visit.children.pop();
            let (child_end, child_start) = taken.map_or((visit.begin, 0), |(from, to, _)| (to, from));
            if child_end < visit.at {
                path.push((visit.span, child_end, visit.at));
            }
            match taken {
                Some((from, to, child)) => {
                    visit.at = child_start;
                    let children = self.within(child, from, to);
                    open.push(Visit { span: child, begin: from, at: to, children });
                }
                None => drop(open.pop()),
            }
        }
        path
    }

    /// The children of a span as far as they lie within a stretch, those that end last behind the others.
    fn within(&self, span: u32, begin: i64, end: i64) -> Vec<(i64, i64, u32)> {
        let cut = self.children(span).iter().map(|&child| {
            let (from, to) = self.stretch(child);
            (from.max(begin), to.min(end), child)
        });
        let mut cut: Vec<_> = cut.filter(|(from, to, _)| from < to).collect();
        cut.sort_unstable_by_key(|(from, to, child)| (*to, *from, *child));
        cut
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
