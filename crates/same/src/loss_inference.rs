//! What is missing in a trace, as far as messages of the same kind tell: requests, and replies, that are lost.
//!
//! The paper needs complete traces (2005, §7). Where one message is lost, part B goes on all the same: a request without its reply is
//! asynchronous, and a reply without its request is a request, which the next request answers, so that the two have changed parts
//! from there on. Nothing in the trees can tell that; what messages of the same kind were before can. A kind is who sends it, who receives
//! it, and what it says. What it says tells requests and replies apart, unless both say the same.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::codes;
use crate::forest::{End, NONE};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place};
use dyelog_trace::messages::at;
use dyelog_trace::{ReadReport, TraceNames};

/// Of so many messages that are alike, one may be an exception; of fewer, both ways are ways of the system.
const RARE: u64 = 10;
/// So many messages that say what others do not are all of their kind: a request, or a reply.
const ENOUGH: u64 = 3;
/// How many requests without a reply wait for the verdict on their kind.
const MOST_UNDECIDED: usize = 16;
/// How many kinds are told apart.
const MOST: usize = 1 << 16;
/// How often in a row a message without a name must be a request, though it was always a reply, for that to be an error: one may be what
/// the server asks its client.
const IN_A_ROW: u32 = 3;

/// A place in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, by position.
    pub file: u16,
    /// The line.
    pub line: u32,
}

/// Messages of a kind.
#[derive(Debug)]
struct Kind {
    from: Name,
    to: Name,
    label: Name,
    /// Whether it says what messages in the other direction do not say.
    named: bool,
    /// How many were requests, and replies.
    asked: u64,
    replied: u64,
    /// How many of the last ones were requests.
    in_a_row: u32,
    /// How many requests were answered or not; and those of which it is not decided whether they are lost.
    answered: u64,
    unanswered: u64,
    lost: u64,
    undecided: Vec<(End, End)>,
    first_unanswered: Option<Origin>,
    /// Replies to nothing.
    stray: u64,
    first_stray: Option<Origin>,
    /// How often they were requests until it was clear that these and their replies had changed parts.
    turned: u64,
}

/// What to do with requests without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are asynchronous.
    Asynchronous,
    /// They are lost, or their replies are.
    Lost,
    /// It is not known yet.
    Undecided,
}

/// What was seen of messages by kind.
#[derive(Debug, Default)]
pub struct LossInference {
    numbers: FxHashMap<(Name, Name, Name), u32>,
    kinds: Vec<Kind>,
}

impl LossInference {
    /// The number of a kind, by the names of tasks and of the message; [`NONE`] where there are too many.
    #[inline]
    pub fn kind(&mut self, from: Name, to: Name, label: Name) -> u32 {
        if let Some(&number) = self.numbers.get(&(from, to, label)) {
            return number;
        }
        if self.kinds.len() >= MOST {
            return NONE;
        }
        let number = self.kinds.len() as u32;
        let back = self.numbers.get(&(to, from, label)).copied();
        if let Some(back) = back.and_then(|back| self.known_mut(back)) {
            back.named = false;
        }
        self.numbers.insert((from, to, label), number);
        self.kinds.push(Kind {
            from,
            to,
            label,
            named: label.is_some() && back.is_none(),
            asked: 0,
            replied: 0,
            in_a_row: 0,
            answered: 0,
            unanswered: 0,
            lost: 0,
            undecided: Vec::new(),
            first_unanswered: None,
            stray: 0,
            first_stray: None,
            turned: 0,
        });
        number
    }

    fn known(&self, kind: u32) -> Option<&Kind> {
        self.kinds.get(kind as usize)
    }

    fn known_mut(&mut self, kind: u32) -> Option<&mut Kind> {
        self.kinds.get_mut(kind as usize)
    }

    /// Whether messages of a kind that are no replies are replies all the same, of which the request is lost. Without a name they may be
    /// something else, unless who receives them is `busy` and can take up nothing.
    pub fn is_stray(&self, kind: u32, busy: bool) -> bool {
        self.known(kind).is_some_and(|kind| (busy || kind.named) && kind.seems_reply())
    }

    /// Whether a message that is a reply to another one, as these stand in the trees, is a request, and the other one was a reply.
    pub fn have_changed_parts(&self, reply: u32, request: u32) -> bool {
        let (Some(reply), Some(request)) = (self.known(reply), self.known(request)) else { return false };
        let enough = if request.named { 1 } else { IN_A_ROW };
        reply.seems_request() && request.seems_reply() && request.in_a_row >= enough
    }

    /// Whether messages of a kind are requests and no replies, so far.
    #[inline]
    pub fn seems_request(&self, kind: u32) -> bool {
        self.known(kind).is_some_and(Kind::seems_request)
    }

    /// A message is a request.
    #[inline]
    pub fn asks(&mut self, kind: u32) {
        if let Some(kind) = self.known_mut(kind) {
            kind.asked += 1;
            kind.in_a_row = kind.in_a_row.saturating_add(1);
        }
    }

    /// A message is a reply.
    #[inline]
    pub fn replies(&mut self, kind: u32) {
        if let Some(kind) = self.known_mut(kind) {
            kind.replied += 1;
            kind.in_a_row = 0;
        }
    }

    /// Messages of a kind, the last of which began at a place, and their replies had changed parts, and do so no longer.
    pub fn turns(&mut self, kind: u32, origin: Origin) {
        if let Some(kind) = self.known_mut(kind) {
            kind.turned += 1;
            kind.in_a_row = 0;
            kind.first_stray.get_or_insert(origin);
        }
    }

    /// A message is a reply to a request that is lost.
    pub fn strays(&mut self, kind: u32, origin: Origin) {
        if let Some(kind) = self.known_mut(kind) {
            kind.stray += 1;
            kind.in_a_row = 0;
            kind.first_stray.get_or_insert(origin);
        }
    }

    /// A request was answered. Gives those without a reply that are lost, as is known now.
    #[inline]
    pub fn answered(&mut self, kind: u32) -> Vec<(End, End)> {
        let Some(kind) = self.known_mut(kind) else { return Vec::new() };
        kind.answered += 1;
        if kind.undecided.is_empty() || !kind.is_rarely_unanswered() {
            return Vec::new();
        }
        kind.lost += kind.undecided.len() as u64;
        std::mem::take(&mut kind.undecided)
    }

    /// Nobody replies to a request. Those that are undecided are kept.
    pub fn unanswered(&mut self, kind: u32, origin: Origin, (from, to): (End, End)) -> Verdict {
        let Some(kind) = self.known_mut(kind) else { return Verdict::Asynchronous };
        if kind.named && kind.seems_reply() {
            kind.stray += 1;
            kind.first_stray.get_or_insert(origin);
            return Verdict::Lost;
        }
        kind.unanswered += 1;
        kind.first_unanswered.get_or_insert(origin);
        if kind.named && kind.is_rarely_unanswered() {
            kind.lost += 1;
            return Verdict::Lost;
        }
        if !kind.named || kind.unanswered > MOST_UNDECIDED as u64 {
            return Verdict::Asynchronous;
        }
        kind.undecided.push((from, to));
        Verdict::Undecided
    }

    /// All that is not decided yet, and whether it is lost after all: replies that came before it was known that they are.
    pub fn undecided(&mut self) -> Vec<(End, End, bool)> {
        let mut left = Vec::new();
        for kind in &mut self.kinds {
            let stray = kind.seems_reply();
            if stray {
                let count = kind.undecided.len() as u64;
                kind.stray += count;
                kind.unanswered -= count;
            }
            left.extend(std::mem::take(&mut kind.undecided).into_iter().map(|(from, to)| (from, to, stray)));
        }
        left
    }

    /// Tells of what is missing.
    pub fn tell(&self, names: &TraceNames, files: &[Arc<str>], report: &mut ReadReport) {
        let mut order: Vec<&Kind> =
            self.kinds.iter().filter(|kind| kind.stray + kind.turned + kind.unanswered > 0).collect();
        order.sort_by_key(|kind| [kind.from, kind.to, kind.label].map(|name| names.names.text(name)));
        let place = |origin: Option<Origin>| {
            let file = origin.and_then(|at| Some((files.get(usize::from(at.file))?, at.line)));
            file.map_or(Place::Nowhere, |(file, line)| at(file, line))
        };
        for kind in order {
            let label = names.names.text(kind.label);
            let named = if label.is_empty() { String::new() } else { format!(" `{label}`") };
            let between = format!("from `{}` to `{}`", names.names.text(kind.from), names.names.text(kind.to));
            if kind.is_rarely_unanswered() || kind.lost > 0 {
                let all = kind.answered + kind.unanswered;
                let message = format!("{} of {all} messages{named} {between} have no reply", kind.unanswered);
                *report.counted.entry("message without the reply that others of its kind have").or_default() +=
                    kind.unanswered;
                let finding = Diagnostic::warning(codes::UNANSWERED, place(kind.first_unanswered), message)
                    .with_note("the others have one: these messages or their replies may be lost");
                report.findings.push(
                    if kind.lost > 0 {
                        finding.with_note(format!("the model leaves out {} of them and their callers", kind.lost))
                    } else {
                        finding.with_note("the model takes them for asynchronous; their receivers have no work there")
                    }
                    .with_hint("see whether messages are missing there, and leave out operations that are not whole"),
                );
            }
            let missing = kind.stray + kind.turned;
            if missing > 0 {
                let all = kind.stray + kind.asked + kind.replied;
                let message = format!("{missing} of {all} messages{named} {between} reply to nothing");
                *report.counted.entry("reply without a request").or_default() += missing;
                let mut finding = Diagnostic::warning(codes::STRAY, place(kind.first_stray), message)
                    .with_note("the others are replies: what these reply to may be lost");
                if kind.stray > 0 {
                    finding = finding.with_note(format!(
                        "the model leaves out {} of them and what their senders and receivers were doing",
                        kind.stray
                    ));
                }
                if kind.turned > 0 {
                    finding = finding.with_note(format!(
                        "after {} of them requests were taken for replies until that was clear: the model has these as well",
                        kind.turned
                    ));
                }
                report.findings.push(
                    finding.with_hint(
                        "see whether messages are missing there, and leave out operations that are not whole",
                    ),
                );
            }
        }
        report.trim();
    }
}

impl Kind {
    fn seems_reply(&self) -> bool {
        self.are_rare(self.asked, self.replied)
    }

    fn seems_request(&self) -> bool {
        self.are_rare(self.replied, self.asked)
    }

    fn are_rare(&self, some: u64, others: u64) -> bool {
        let enough = if self.named { ENOUGH } else { RARE };
        others >= RARE.saturating_mul(some).saturating_add(enough)
    }

    fn is_rarely_unanswered(&self) -> bool {
        self.unanswered > 0 && self.answered >= RARE.saturating_mul(self.unanswered)
    }
}
