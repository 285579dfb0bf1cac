//! When an entry makes its calls, as a file has it: labels in a list, and pairs of them by their places in it.

use serde::{Deserialize, Serialize};

use crate::saved::read::Reader;
use crate::saved::{MOST, MOST_SQUARES, MomentsShape, RequestWord};
use crate::submodel::{EntryIndex, EntryTotal, RequestTotal, Seconds, SubModel};
use crate::timing::{CallLabel, CallTotal, PairTotal};

/// Calls of one label. Sums of times are whole femtoseconds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallShape {
    phase: u8,
    kind: RequestWord,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    to: Option<u32>,
    ordinal: u32,
    invocations: u64,
    count: u64,
    squares: u64,
    duration: MomentsShape,
    start: String,
    share: String,
    lead: String,
    network: String,
}

/// Two labels, by their places in the list.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairShape {
    of: (u32, u32),
    both: u64,
    before: u64,
    after: u64,
    later: String,
    earlier: String,
}

/// The labels of an entry and their pairs, in an order that depends on nothing but what they are.
pub(super) fn shapes(sub: &SubModel, entry: &EntryTotal, numbers: &[u32]) -> (Vec<CallShape>, Vec<PairShape>) {
    let key = |label: &CallLabel| (label.phase, label.kind, label.to.map(|to| sub.entry(to).key), label.ordinal);
    let mut calls: Vec<(&CallLabel, &CallTotal)> = entry.calls.iter().collect();
    calls.sort_by_key(|(label, _)| key(label));
    let place = |label: &CallLabel| calls.partition_point(|(other, _)| key(other) < key(label)) as u32;
    let mut pairs: Vec<PairShape> = entry
        .pairs
        .iter()
        .map(|((left, right), pair)| PairShape {
            of: (place(left), place(right)),
            both: pair.both,
            before: pair.before,
            after: pair.after,
            later: pair.later.0.to_string(),
            earlier: pair.earlier.0.to_string(),
        })
        .collect();
    pairs.sort_by_key(|pair| pair.of);
    let call = |(label, call): &(&CallLabel, &CallTotal)| CallShape {
        phase: label.phase,
        kind: RequestWord::of(label.kind),
        to: label.to.map(|to| numbers[to.index()]),
        ordinal: label.ordinal,
        invocations: call.invocations,
        count: call.requests.count,
        squares: call.requests.squares,
        duration: MomentsShape::of(&call.duration),
        start: call.start.0.to_string(),
        share: call.share.0.to_string(),
        lead: call.lead.0.to_string(),
        network: call.network.0.to_string(),
    };
    (calls.iter().map(call).collect(), pairs)
}

impl Reader<'_> {
    fn seconds(&mut self, text: &str, item: &str) -> Seconds {
        let number: Option<i128> = text.parse().ok();
        if number.is_none() {
            self.wrong(item, format!("`{text}` is no whole number"));
        }
        Seconds(number.unwrap_or_default())
    }

    /// Calls and pairs of an entry.
    pub(super) fn timing(
        &mut self,
        entry: &mut EntryTotal,
        (calls, pairs): (&[CallShape], &[PairShape]),
        entries: &[Option<EntryIndex>],
        item: &str,
    ) {
        let mut labels = Vec::with_capacity(calls.len());
        for (place, shape) in calls.iter().enumerate() {
            let item = format!("{item}.calls[{place}]");
            let to = shape.to.and_then(|to| entries.get(to as usize).copied().flatten());
            if shape.to.is_some() && to.is_none() {
                self.wrong(&item, format!("there is no entry {} to call", shape.to.unwrap_or_default()));
            }
            if !(1..=3).contains(&shape.phase) {
                self.wrong(&item, "a phase is 1, 2 or 3".to_owned());
            }
            let label = CallLabel { phase: shape.phase, kind: shape.kind.kind(), to, ordinal: shape.ordinal };
            let requests = RequestTotal {
                count: self.count(shape.count, MOST, &item),
                squares: self.count(shape.squares, MOST_SQUARES, &item),
            };
            let call = CallTotal {
                invocations: self.count(shape.invocations, MOST, &item),
                requests,
                duration: self.moments(&shape.duration, &item),
                start: self.seconds(&shape.start, &item),
                share: self.seconds(&shape.share, &item),
                lead: self.seconds(&shape.lead, &item),
                network: self.seconds(&shape.network, &item),
            };
            if entry.calls.insert(label, call).is_some() {
                self.wrong(&item, "calls of this label are there twice".to_owned());
            }
            labels.push(label);
        }
        for (place, shape) in pairs.iter().enumerate() {
            let item = format!("{item}.pairs[{place}]");
            let (Some(&left), Some(&right)) = (labels.get(shape.of.0 as usize), labels.get(shape.of.1 as usize)) else {
                self.wrong(&item, "a pair is of two calls of the entry".to_owned());
                continue;
            };
            let pair = PairTotal {
                both: self.count(shape.both, MOST, &item),
                before: self.count(shape.before, MOST, &item),
                after: self.count(shape.after, MOST, &item),
                later: self.seconds(&shape.later, &item),
                earlier: self.seconds(&shape.earlier, &item),
            };
            if shape.of.0 >= shape.of.1 || pair.before.max(pair.after) > pair.both {
                self.wrong(&item, "a pair has the call that stands first in the list first, and is in order at most as often as it is seen".to_owned());
            }
            if entry.pairs.insert((left, right), pair).is_some() {
                self.wrong(&item, "this pair is there twice".to_owned());
            }
        }
    }
}
