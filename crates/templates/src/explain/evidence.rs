//! From an element of the model down to the nodes that it was made of.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::driver::{ACTIVITY, EntryNumber, THEN_NEXT_PHASE, UNOWNED};
use crate::explain::Study;
use crate::summary::{EntryMerge, Places, Summary, exclusive, kind_of, on_the_way, own_pieces, pauses, request_phase};
use dyelog_lqn::submodel::{Branch, EntryKey, Position, RequestKind};
use dyelog_trace::NodeId;
use dyelog_trace::toeg::NONE;

/// What is asked about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Its invocations.
    Invocations,
    /// Its requests to the entries with these keys.
    Requests(FxHashSet<EntryKey>),
    /// Its work.
    Work,
}

/// A piece of evidence. Entries have their numbers within the operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Piece {
    /// An invocation.
    Invocation {
        /// The entry.
        entry: EntryNumber,
        /// The node that accepts it; the root for a customer.
        accepted_at: NodeId,
        /// The match that opened the entry; [`None`] for the first of the operation.
        opened_by: Option<usize>,
    },
    /// A request.
    Request {
        /// The node of the requester at which it is made.
        at: NodeId,
        /// The node that accepts it.
        accepted_at: NodeId,
        /// How it is made.
        kind: RequestKind,
        /// The match that it is part of.
        made_by: Option<usize>,
        /// Where in the entry.
        position: Position,
    },
    /// Measured CPU of an event.
    Cpu {
        /// The node.
        node: NodeId,
        /// Where in the entry.
        position: Position,
        /// Seconds.
        seconds: f64,
    },
    /// Time up to the next node, in which the task was not waiting.
    Exclusive {
        /// The node.
        node: NodeId,
        /// Where in the entry that time is.
        position: Position,
        /// Seconds.
        seconds: f64,
    },
    /// A synchronous call had network latency.
    Network {
        /// Where the caller goes on.
        node: NodeId,
        /// Where in the entry.
        position: Position,
        /// Seconds, there and back.
        seconds: f64,
    },
    /// Time that passed without work.
    Pause {
        /// The node before which it passed, or which says so itself.
        node: NodeId,
        /// Where in the entry.
        position: Position,
        /// Seconds.
        seconds: f64,
    },
    /// An activity.
    Activity {
        /// The node.
        node: NodeId,
        /// Where in the entry.
        position: Position,
    },
}

/// Finds the evidence for one entry, operation by operation. It keeps nothing but what tells entries apart.
#[derive(Debug)]
pub struct Finder {
    summary: Summary,
    keys: FxHashSet<EntryKey>,
    customer: bool,
    about: About,
}

impl Finder {
    /// For the entries with these keys, told apart in that way. A customer's invocations are those of the customer itself, even where
    /// other entries stand for it.
    pub fn new(merge: EntryMerge, keys: FxHashSet<EntryKey>, customer: bool, about: About) -> Self {
        Self { summary: Summary::new(merge), keys, customer, about }
    }

    /// Gives the evidence that an operation has.
    pub fn pieces(&mut self, study: &Study<'_>, give: &mut dyn FnMut(Piece)) {
        let keys = self.summary.keys(study.toeg, study.names, &study.outcome);
        let ours: Vec<bool> = keys.iter().map(|key| self.keys.contains(key)).collect();
        if !ours.contains(&true) {
            return;
        }
        match &self.about {
            About::Invocations => {
                let mine = (0..ours.len()).filter(|entry| ours[*entry]);
                for entry in mine.filter(|entry| !self.customer || study.outcome.entries[*entry].task.is_none()) {
                    let accepted_at = match study.outcome.entries[entry].accepted_at {
                        NONE => study.toeg.root(),
                        node => node,
                    };
                    let entry = entry as EntryNumber;
                    give(Piece::Invocation { entry, accepted_at, opened_by: study.opener(entry) });
                }
            }
            About::Requests(to) => requests(study, &ours, &keys, &self.places(study, &ours, &keys), to, give),
            About::Work => work(study, &ours, &self.places(study, &ours, &keys), give),
        }
    }

    fn places(&self, study: &Study<'_>, ours: &[bool], keys: &[EntryKey]) -> Places {
        let mut all = Places::default();
        for (entry, _) in ours.iter().enumerate().filter(|(_, ours)| **ours) {
            let own = self.summary.places(study.toeg, &study.outcome, keys, entry as EntryNumber);
            all.nodes.extend(own.nodes);
            all.requests.extend(own.requests);
        }
        all
    }
}

fn position(places: &Places, node: NodeId, phase: u8) -> Position {
    position_at(places.of(node), phase)
}

fn position_at(at: Option<(u32, Option<Branch>)>, phase: u8) -> Position {
    let (stage, branch) = at.unwrap_or_default();
    Position { stage, branch, phase }
}

fn requests(
    study: &Study<'_>,
    ours: &[bool],
    keys: &[EntryKey],
    places: &Places,
    to: &FxHashSet<EntryKey>,
    give: &mut dyn FnMut(Piece),
) {
    let outcome = &study.outcome;
    for (number, request) in (0..).zip(&outcome.requests) {
        let (from, called) = (request.from as usize, request.to as usize);
        if !ours.get(from).is_some_and(|ours| *ours) || !keys.get(called).is_some_and(|key| to.contains(key)) {
            continue;
        }
        let Some(kind) = kind_of(outcome, request.to) else { continue };
        let accepted_at = outcome.entries[called].accepted_at;
        // What a new entry passes on is passed on by the node before, in whatever task.
        let cause = |node: NodeId| match study.toeg.previous_in_thread(node) {
            NONE => study.toeg.thread_of(node).fork,
            previous => previous,
        };
        // A match notes all its requests at its glue node, also those that a later node of the requester sends: in a round of a
        // sequence, or a second call.
        let sent_by = if accepted_at == NONE { NONE } else { cause(accepted_at) };
        let is_ours = sent_by != NONE && outcome.owner[sent_by as usize] == request.from;
        let at = if request.at == NONE || is_ours { sent_by } else { request.at };
        let position = position_at(places.of_request(number, request.at), request_phase(outcome, request));
        give(Piece::Request { at, accepted_at, kind, made_by: study.opener(request.to), position });
    }
}

fn work(study: &Study<'_>, ours: &[bool], places: &Places, give: &mut dyn FnMut(Piece)) {
    let (toeg, outcome) = (study.toeg, &study.outcome);
    let mut by_entry: BTreeMap<EntryNumber, Vec<NodeId>> = BTreeMap::new();
    for node in 0..toeg.len() as NodeId {
        let owner = outcome.owner[node as usize];
        if owner < UNOWNED && ours.get(owner as usize).is_some_and(|ours| *ours) {
            by_entry.entry(owner).or_default().push(node);
        }
    }
    let mut measured = vec![false; ours.len()];
    for (&entry, nodes) in &by_entry {
        let Some(pieces) = own_pieces(toeg, outcome, entry, nodes) else { continue };
        measured[entry as usize] = true;
        for (node, phase, seconds) in pieces {
            give(Piece::Exclusive { node, position: position(places, node, phase), seconds });
        }
    }
    for node in 0..toeg.len() as NodeId {
        let owner = outcome.owner[node as usize];
        if owner >= UNOWNED || !ours.get(owner as usize).is_some_and(|ours| *ours) {
            continue;
        }
        let event = toeg.event(node);
        let (phase, flags) = (outcome.phase(node), outcome.flags[node as usize]);
        if flags & ACTIVITY != 0 {
            give(Piece::Activity { node, position: position(places, node, phase) });
        }
        if !event.cpu.is_nan() {
            give(Piece::Cpu { node, position: position(places, node, phase), seconds: event.cpu });
        }
        if !measured[owner as usize]
            && let Some(seconds) = exclusive(toeg, outcome, node)
        {
            let phase = if flags & THEN_NEXT_PHASE != 0 { (phase + 1).min(3) } else { phase };
            give(Piece::Exclusive { node, position: position(places, node, phase), seconds });
        }
        if let Some(seconds) = on_the_way(toeg, outcome, node) {
            give(Piece::Network { node, position: position(places, node, phase), seconds });
        }
        for seconds in pauses(toeg, outcome, node) {
            give(Piece::Pause { node, position: position(places, node, phase), seconds });
        }
    }
}
