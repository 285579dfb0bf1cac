//! Which spans lie above which, decided by their order: no row is kept.

use std::ops::ControlFlow;

use crate::datalog::value::Value;
use crate::query::facts::{OperationFacts, TraceFacts};
use crate::query::tree::Tree;
use crate::trace::SpanTree;

impl TraceFacts<'_> {
    /// Which spans lie above which, by their order, without a row kept.
    pub(super) fn ancestors(&self, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        let orders = self.orders.get_or_init(|| self.trees().map(|(part, tree)| Ordered::of(part, tree)).collect());
        let number = |value: Value| value.as_integer().and_then(|number| u32::try_from(number).ok());
        for ordered in orders {
            // What is known and is no span of this tree has no row in it.
            let own = |value: Option<Value>| value.map(|value| number(value).and_then(|number| ordered.own(number)));
            let (above, below) = match (own(pattern[0]), own(pattern[1])) {
                (Some(None), _) | (_, Some(None)) => continue,
                (above, below) => (above.flatten(), below.flatten()),
            };
            let mut give =
                |above: u32, below: u32| out(&[Value::from(ordered.first + above), Value::from(ordered.first + below)]);
            let flow = match (above, below) {
                (Some(above), Some(below)) if ordered.is_above(above, below) => give(above, below),
                (Some(_), Some(_)) => ControlFlow::Continue(()),
                (Some(above), None) => ordered.below(above).try_for_each(|below| give(above, below)),
                (None, Some(below)) => ordered.above(below).try_for_each(|above| give(above, below)),
                (None, None) => (0..ordered.order.len() as u32)
                    .try_for_each(|below| ordered.above(below).try_for_each(|above| give(above, below))),
            };
            if flow.is_break() {
                return;
            }
        }
    }

    pub(super) fn estimate_ancestors(&self, bound: u32) -> u64 {
        /// Trees of calls are so deep, about.
        const DEPTH: u64 = 8;
        let spans = self.trees().map(|(_, tree)| tree.spans.len() as u64).sum::<u64>().max(1);
        match bound {
            0 => spans * DEPTH,
            3 => 1,
            _ => DEPTH,
        }
    }
}

/// A tree of spans in its order.
pub(super) struct Ordered<'a> {
    first: u32,
    tree: &'a SpanTree,
    order: Vec<(u32, u32)>,
    /// The spans in the order of their first numbers.
    by_pre: Vec<u32>,
}

impl<'a> Ordered<'a> {
    fn of(part: &OperationFacts<'_>, tree: &'a SpanTree) -> Self {
        let order = Tree::of(tree).order();
        let mut by_pre = vec![0; order.len()];
        for (span, (pre, _)) in (0..).zip(&order) {
            by_pre[*pre as usize - 1] = span;
        }
        Self { first: part.first_span, tree, order, by_pre }
    }

    /// The number within the tree; `None` where it is of another one.
    fn own(&self, number: u32) -> Option<u32> {
        let own = number.checked_sub(self.first)?;
        ((own as usize) < self.order.len()).then_some(own)
    }

    fn is_above(&self, above: u32, below: u32) -> bool {
        let (one, other) = (self.order[above as usize], self.order[below as usize]);
        one.0 < other.0 && one.1 > other.1
    }

    /// What lies below a span follows it, up to the first that does not.
    fn below(&self, above: u32) -> impl Iterator<Item = u32> {
        let next = self.order[above as usize].0 as usize;
        self.by_pre[next..].iter().copied().take_while(move |below| self.is_above(above, *below))
    }

    fn above(&self, below: u32) -> impl Iterator<Item = u32> {
        let parent = |span: u32| self.tree.spans[span as usize].parent;
        std::iter::successors(parent(below), move |span| parent(*span))
    }
}
