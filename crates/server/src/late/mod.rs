//! Traces that come in parts, each part after the one before was folded.
//!
//! A call is then in two sub-models: the caller asks somebody unknown in one, and in the other nobody asks the entry that answers. What was
//! folded stays so, since a sub-model is a sum. But spans of a few such calls are remembered until their other side comes; folded together, and
//! without it, they tell which unknown peer is which entry. That is kept, and with it the calls of a period find the entries that answered them.
//! As many as were recorded there, and no more: what was lost for good stays a call to somebody unknown.
//!
//! A caller may name whom it asks in the very words of the spans that come later. What is made up in their place is [apart](EntryKey::apart) from what
//! they tell, until calls were led to it.
//!
//! A span that asks may also come apart from the visit that it is a piece of. It was folded as a visit of its own then, and is found to be none in the same way.

mod join;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyelog::diagnostic::quantity::percent;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::{EntryIndex, EntryKey, EntryTotal, Interaction, SubModel};
use dyelog::model::codes;
use dyelog::trace::protobuf::{Fields, Value};

use crate::assemble::Batch;
use crate::fold::Folding;
use crate::spans::{put_spans, sound};
pub use join::join;
use waiting::rooted;
pub use waiting::{Identifiers, Linked, Waiting, apart};

/// How many calls of one kind are folded at a time.
const ENOUGH: usize = 4;

/// Spans by resource: a field of the message that holds spans, each.
type Spans = Vec<(Arc<[u8]>, Vec<u8>)>;

/// That calls of an entry to a peer which recorded nothing are calls to another entry. Where peer and callee are one, that it is no entry: what was
/// folded as its invocations are pieces of those of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Answer {
    /// Who asks.
    pub caller: EntryKey,
    /// Who seems to be asked.
    pub peer: EntryKey,
    /// Who answers.
    pub callee: EntryKey,
}

/// How often each was seen.
pub type Answers = BTreeMap<Answer, u64>;

/// What a batch tells of calls that were answered late, and of visits that came in pieces.
pub fn answers(folding: &Folding, batch: &Batch) -> Answers {
    // By resources and names.
    let mut kinds: BTreeMap<(bool, Spans), Vec<[&Spans; 2]>> = BTreeMap::new();
    for own in &batch.linked {
        let name = |(resource, field): &(Arc<[u8]>, Vec<u8>)| {
            let span = field_of(field).and_then(sound);
            (Arc::clone(resource), span.map(|span| span.name.to_vec()).unwrap_or_default())
        };
        let (is_piece, sides) = match own {
            Linked::Call { caller, answer } => (false, [caller, answer]),
            Linked::Piece { visit, piece } => (true, [visit, piece]),
        };
        let kind = sides.into_iter().flatten().map(name).collect();
        kinds.entry((is_piece, kind)).or_default().push(sides);
    }
    let mut answers = Answers::new();
    for ((is_piece, _), all) in kinds {
        let seen = all.len() as u64;
        let few = &all[..all.len().min(ENOUGH)];
        let both = folded(folding, few.iter().flat_map(|[first, second]| first.iter().chain(*second)));
        let alone: Spans = if is_piece {
            // What was folded without its visit was the first of what there was.
            few.iter().flat_map(|[_, piece]| *piece).map(|(own, span)| (Arc::clone(own), alone(span))).collect()
        } else {
            few.iter().flat_map(|[caller, _]| (*caller).clone()).collect()
        };
        let Some((without, with)) = folded(folding, alone.iter()).zip(both) else { continue };
        let found = if is_piece {
            piece(&without, &with).into_iter().map(|(visit, piece)| (visit, piece, piece)).collect()
        } else {
            differences(&without, &with)
        };
        for (caller, peer, callee) in found {
            *answers.entry(Answer { caller, peer, callee }).or_default() += seen;
        }
    }
    answers
}

/// What spans come to.
fn folded<'s>(folding: &Folding, spans: impl Iterator<Item = &'s (Arc<[u8]>, Vec<u8>)>) -> Option<SubModel> {
    // A caller may have made several of the calls.
    let spans: BTreeSet<&(Arc<[u8]>, Vec<u8>)> = spans.collect();
    let mut request = Vec::new();
    for (resource, span) in spans {
        put_spans(&mut request, resource, span);
    }
    folding.fold(request).map(|own| own.submodel)
}

/// A span without its parent.
fn alone(span: &[u8]) -> Vec<u8> {
    field_of(span).map(rooted).unwrap_or_default()
}

/// The visit that asks in the second what a visit that is a piece of it asks in the first, where it is one.
fn piece(without: &SubModel, with: &SubModel) -> Option<(EntryKey, EntryKey)> {
    let asking = |sub: &SubModel| -> Vec<EntryKey> {
        asked(sub).into_iter().filter(|(_, others)| !others.is_empty()).map(|(own, _)| own).collect()
    };
    match (&asking(with)[..], &asking(without)[..]) {
        ([visit], [piece]) if visit != piece => Some((*visit, *piece)),
        _ => None,
    }
}

fn field_of(bytes: &[u8]) -> Option<&[u8]> {
    match Fields::of(bytes).next() {
        Ok(Some((_, Value::Bytes(span)))) => Some(span),
        _ => None,
    }
}

/// By entry, how often it asks which others.
fn asked(sub: &SubModel) -> BTreeMap<EntryKey, BTreeMap<EntryKey, u64>> {
    let services = sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    services
        .map(|entry| {
            let own = counted_requests(entry).into_iter();
            (entry.key, own.map(|(to, count)| (sub.entry(to).key, count)).collect())
        })
        .collect()
}

/// Who asks whom less in the first, and whom more in the second.
fn differences(first: &SubModel, second: &SubModel) -> Vec<(EntryKey, EntryKey, EntryKey)> {
    let (before, after) = (asked(first), asked(second));
    let mut found = Vec::new();
    for (caller, before) in before {
        let Some(after) = after.get(&caller) else { continue };
        let count = |of: &BTreeMap<EntryKey, u64>, to| of.get(to).copied().unwrap_or(0);
        let less = before.keys().find(|to| count(after, to) < count(&before, to));
        let more = after.keys().filter(|to| count(after, to) > count(&before, to));
        if let Some(less) = less {
            found.extend(more.map(|callee| (caller, *less, *callee)));
        }
    }
    found
}

/// Takes the load out of the rest of traces: their operations were counted with the part that had the root. What they tell of work stays.
pub fn without_load(sub: &mut SubModel) {
    sub.scenarios.clear();
    sub.remove_entries(|entry| entry.interaction == Interaction::Customer);
}

/// How many operations there are whose beginning is not known.
pub fn headless(sub: &SubModel) -> u64 {
    sub.scenarios.values().map(|total| total.headless).sum()
}

/// How often an entry asks each other one.
fn counted_requests(entry: &EntryTotal) -> BTreeMap<EntryIndex, u64> {
    let mut asked: BTreeMap<EntryIndex, u64> = BTreeMap::new();
    for (to, count) in entry.requested() {
        *asked.entry(to).or_default() += count;
    }
    asked
}

/// Takes out what nobody calls: work of operations whose other parts never came. Says how much that is.
pub fn leave_out_unasked(sub: &mut SubModel) -> Option<Diagnostic> {
    let mut asked = vec![false; sub.entries().len()];
    let is_customer = |entry: &EntryTotal| entry.interaction == Interaction::Customer;
    let mut open: Vec<EntryIndex> =
        sub.entries().iter().filter(|own| is_customer(own)).filter_map(|own| sub.entry_of(own.key)).collect();
    while let Some(entry) = open.pop() {
        if !std::mem::replace(&mut asked[entry.index()], true) {
            open.extend(sub.entry(entry).requested().map(|(to, _)| to));
        }
    }
    let all: f64 = sub.entries().iter().filter(|own| !is_customer(own)).map(EntryTotal::own_time).sum();
    let lost: Vec<&EntryTotal> = sub
        .entries()
        .iter()
        .zip(&asked)
        .filter(|(own, asked)| !**asked && own.invocations > 0)
        .map(|(own, _)| own)
        .collect();
    if lost.is_empty() {
        return None;
    }
    let invocations: u64 = lost.iter().map(|own| own.invocations).sum();
    let part = lost.iter().map(|own| own.own_time()).sum::<f64>() / all.max(f64::MIN_POSITIVE);
    let message = format!(
        "{invocations} invocations came after the rest of their traces, and nothing tells who called them: they make no load, and {} of all work is not in the model",
        percent(part)
    );
    let mut finding = Diagnostic::warning(codes::FRAGMENTS, Place::Nowhere, message);
    for own in lost.iter().take(5) {
        let (task, service) = (sub.names.text(own.task), sub.names.text(own.service));
        finding = finding.with_note(format!("{} of `{service}` of `{task}`", own.invocations));
    }
    let lost: BTreeSet<EntryKey> = lost.iter().map(|own| own.key).collect();
    sub.remove_entries(|entry| lost.contains(&entry.key));
    Some(finding.with_hint("`--grace` of the server is how long it waits for the rest of a trace"))
}
