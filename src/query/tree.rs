//! What rules could not derive from a tree of spans in linear time: its order, and what of each span its children cover.

use crate::trace::{Children, SpanTree};

/// A tree of spans with its children side by side.
pub(super) struct Tree<'a> {
    pub(super) spans: &'a SpanTree,
    children: Children,
}

/// A stretch of time, in nanoseconds.
type Stretch = (i64, i64);

impl<'a> Tree<'a> {
    pub(super) fn of(spans: &'a SpanTree) -> Self {
        Self { spans, children: spans.children() }
    }

    pub(super) fn children(&self, span: u32) -> &[u32] {
        self.children.of(span)
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

    /// The critical path of the tree, as spans with stretches, latest first.
    pub(super) fn critical(&self) -> Vec<(u32, i64, i64)> {
        self.spans.critical_path(&self.children)
    }
}
