//! Spans whose parent was lost, put back where only one place fits.
//!
//! The missing span is named by those that survived, so what it was can mostly be told:
//! - several spans of one service that call or work locally and name the same missing parent: it was a visit of their
//!   service, or a part of one. It belongs under the one call in the trace that is without a server half, or in the one visit
//!   of the same service, that was under way for at least half of their time;
//! - a server span alone: a call was lost. It belongs in the one visit that was under way for at least half of its time
//!   and whose service is seen calling this service elsewhere in the file.
//!
//! Spans many of whose like have lost their parents were called by something that records no spans. Where one call of the trace lies around them whose like
//! are never answered by a span, that call went there: the service that was called called them ([`silent`]). Else it is part of the operation that the trace
//! begins with, which does not wait for it as far as anybody knows, unless times show a visit that does ([`waited`]): these hang below the first span of the trace, if there is one alone, or below the one message of it that no span worked on: they
//! are part of that work, and may begin after the first span has ended.
//!
//! Work on a message whose sender was lost goes the same way, in the trace of the message.
//!
//! Where two places fit, nothing is guessed. Where none does, and several spans share the missing parent or one calls or works for it, it becomes the
//! root of an operation; a single span that serves becomes the root itself.

mod silent;
mod waited;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codes;
use crate::spans::assemble::{NAMELESS, NOBODY, UNKNOWN_SERVICE, Work};
use crate::spans::ids::SpanId;
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::Name;

/// How many pairs of a lost parent and a place for it are compared in one trace; a trace with more is too damaged to mend.
const MOST_PAIRS: usize = 1 << 20;

/// The spans that name one missing parent.
struct Fragment {
    parent: SpanId,
    members: Vec<u32>,
    start: i64,
    end: i64,
    /// The service that all members share, where they are all on the side that calls or works locally.
    local: Option<Name>,
}

fn is_orphan(work: &Work<'_>, index: u32) -> bool {
    work.parent[index as usize] == NOBODY && work.span(index).parent.is_some()
}

/// Whether the parent of any span is missing.
pub(super) fn any_orphans(work: &Work<'_>) -> bool {
    work.sorted.iter().any(|index| is_orphan(work, *index))
}

/// Finds a place for each span whose parent is missing.
pub(super) fn restore(work: &mut Work<'_>, callers: &Callers) {
    if !any_orphans(work) {
        return;
    }
    let mut added = Vec::new();
    let mut at = 0;
    while at < work.sorted.len() {
        let trace = work.span(work.sorted[at]).trace;
        let length = work.sorted[at..].partition_point(|index| work.span(*index).trace == trace);
        let members = at..at + length;
        if work.sorted[members.clone()].iter().any(|index| is_orphan(work, *index)) {
            restore_trace(work, members, callers, &mut added);
        }
        at += length;
    }
    work.add_sorted(added);
}

/// How torn traces are, where none has its first span.
#[derive(Debug, Default)]
pub(super) struct Torn {
    traces: usize,
    torn: usize,
}

impl Torn {
    /// Takes in whole traces, in which lost parents were restored.
    pub fn add(&mut self, work: &Work<'_>, callers: &Callers) {
        let is_uncalled = |top: &&u32| work.span(**top).lost || callers.are_mostly_lost(work.span(**top));
        for tops in tops_of_traces(work).filter(|tops| !tops.is_empty()) {
            self.traces += 1;
            self.torn += usize::from(tops.iter().filter(is_uncalled).count() > 1);
        }
    }

    /// Whether a service is missing that all operations begin with: some traces are in several pieces that hardly anything else calls.
    pub fn lack_a_service(&self) -> bool {
        /// In each so many traces there are several pieces at least.
        const FEW: usize = 20;
        self.torn * FEW > self.traces
    }
}

/// Whether any trace has its first span.
pub(super) fn any_first(work: &Work<'_>) -> bool {
    work.sorted.iter().any(|index| {
        let span = work.span(*index);
        work.parent[*index as usize] == NOBODY && !span.parent.is_some() && !span.lost && !span.unlinked
    })
}

/// Of each trace, the spans without a parent, but for those that work on messages of unknown senders.
fn tops_of_traces(work: &Work<'_>) -> impl Iterator<Item = Vec<u32>> {
    let is_top = |index: &u32| work.parent[*index as usize] == NOBODY && !work.span(*index).unlinked;
    let by_trace = work.sorted.chunk_by(|one, next| work.span(*one).trace == work.span(*next).trace);
    by_trace.map(move |spans| spans.iter().copied().filter(is_top).collect())
}

/// Where the service is missing that all operations begin with, the pieces of a trace are parts of one operation below it.
pub(super) fn join_rootless(work: &mut Work<'_>) {
    let mut added = Vec::new();
    let tops: Vec<Vec<u32>> = tops_of_traces(work).collect();
    for members in tops {
        // It may have been put there already.
        if members.len() > 1 || members.iter().any(|top| !work.span(*top).lost) {
            join(work, members, &mut added);
        }
    }
    work.add_sorted(added);
}

/// Puts a lost span above the pieces of a trace. It is under way for as long as any that its service may wait for.
fn join(work: &mut Work<'_>, members: Vec<u32>, added: &mut Vec<u32>) {
    let waited: Vec<u32> =
        members.iter().copied().filter(|member| work.span(*member).kind != SpanKind::Consumer).collect();
    let within = if waited.is_empty() { &members } else { &waited };
    let start = within.iter().map(|member| work.span(*member).start).min();
    let end = within.iter().map(|member| work.span(*member).end).max();
    let named = members.iter().map(|member| work.span(*member).parent).find(|parent| parent.is_some());
    let own = *work.span(members[0]);
    let (start, end) = (start.unwrap_or(own.start), end.unwrap_or(own.end));
    work.count("lost first span of a trace, put above its pieces", members[0], |at| {
        Diagnostic::warning(codes::LOST_PARENT, at, "this trace has lost its first spans, as all others have")
            .with_note(format!("its pieces are parts of one operation, which a service `{UNKNOWN_SERVICE}` begins"))
            .with_hint("see to the exporter of the service that operations begin with")
    });
    let fragment = Fragment { parent: named.unwrap_or(own.id), members, start, end, local: None };
    let parent = synthesize(work, &fragment, SpanKind::Server, added);
    for &member in &fragment.members {
        work.parent[member as usize] = parent;
    }
}

fn restore_trace(work: &mut Work<'_>, members: std::ops::Range<usize>, callers: &Callers, added: &mut Vec<u32>) {
    let spans: Vec<u32> = work.sorted[members].to_vec();
    let fragments = fragments(work, &spans);
    let first = first_span(work, &spans);
    let mut places = Places::new(work, &spans);
    let small = fragments.len().saturating_mul(spans.len()) <= MOST_PAIRS;
    // What is called by nobody knows whom.
    let mut unseen: FxHashSet<u32> = FxHashSet::default();
    for fragment in fragments {
        let call = if small { places.call_around(work, &fragment, callers) } else { None };
        if let Some(call) = call {
            places.attach_to_silent(work, &fragment, call, added);
            continue;
        }
        let place = if small { places.find(work, &fragment, callers) } else { None };
        let are_unseen = place.is_none() && callers.are_unseen(work, &fragment);
        let waited = if are_unseen && small { callers.waited(work, &spans, &fragment) } else { None };
        if let Some(place) = place {
            let reason = "lost parent, restored";
            work.count(reason, fragment.members[0], |at| {
                Diagnostic::warning(codes::LOST_PARENT, at, "the parent of this span was lost; only one place fits")
                    .with_note("it was put back there")
            });
            places.attach(work, &fragment, place, added);
        } else if let Some(caller) = waited.filter(|caller| places.is_whole(work, *caller)) {
            let (around, names) = (work.span(caller), &work.names);
            let told = [around.name, around.service].map(|name| names.text(name).escape_debug().to_string());
            work.count("parent that records no spans, called by a span around it", fragment.members[0], |at| {
                let [name, service] = told;
                Diagnostic::warning(codes::LOST_PARENT, at, "the parent of this span was lost, as that of most spans of its operation").with_note(format!(
                    "`{name}` of `{service}` waits for this span, since it takes longer by as much; the service in between records no spans, and its work looks like work of `{service}`"
                ))
            });
            for waits in [caller, waited::visit_of(work, caller)] {
                work.spans.spans[waits as usize].may_wait = true;
            }
            places.put_below(work, &fragment, caller, added);
        } else if let Some(caller) =
            first.filter(|_| are_unseen).and_then(|first| places.caller(work, first, &fragment))
        {
            work.count("parent that records no spans", fragment.members[0], |at| {
                Diagnostic::warning(codes::LOST_PARENT, at, "the parent of this span was lost, as that of most spans of its operation")
                    .with_note("what calls them records no spans: it counts as called by the first span of the trace, or as the work on its message, and nobody waits")
            });
            unseen.extend(&fragment.members);
            let top = places.put_below(work, &fragment, caller, added);
            work.spans.spans[top as usize].follows = true;
        } else if fragment.members.iter().all(|member| !work.span(*member).unlinked) {
            take_as_root(work, &fragment, callers, added);
        }
    }
    if !unseen.is_empty() {
        let may_wait: Vec<u32> = callers.may_wait(work, &spans).filter(|index| !unseen.contains(index)).collect();
        for index in may_wait {
            work.spans.spans[index as usize].may_wait = true;
        }
    }
    for index in spans.into_iter().filter(|index| work.parent[*index as usize] != NOBODY) {
        let span = &mut work.spans.spans[index as usize];
        if std::mem::take(&mut span.unlinked) {
            (span.follows, span.remote) = (true, true);
        }
    }
}

/// Makes an operation of what has lost its parent and found no place.
fn take_as_root(work: &mut Work<'_>, fragment: &Fragment, callers: &Callers, added: &mut Vec<u32>) {
    if fragment.members.len() > 1 || callers.is_part(work.span(fragment.members[0])) {
        work.count("lost parent, taken as a root", fragment.members[0], |at| {
            Diagnostic::warning(
                codes::LOST_PARENT,
                at,
                "the parent of this span, and of any others that name it, was lost",
            )
            .with_note("an operation was made with it as its root")
        });
        let parent = synthesize(work, fragment, SpanKind::Server, added);
        for &member in &fragment.members {
            work.parent[member as usize] = parent;
        }
    } else {
        work.count("lost parent, its child taken as a root", fragment.members[0], |at| {
            Diagnostic::warning(codes::LOST_PARENT, at, "the parent of this span was lost")
                .with_note("an operation was made of the span and what it caused")
        });
    }
}

/// Who is seen to call whom, and of which operations the callers are not seen.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// Which service is seen calling which.
    calls: FxHashSet<(Name, Name)>,
    /// How many spans of each operation there are, and how many of them have lost their parents.
    lost: FxHashMap<(Name, Name, SpanKind), (u64, u64)>,
    /// By service, how many missing parents of its own spans there are.
    torn: FxHashMap<Name, u64>,
    /// How many spans of each operation that served somebody unknown lie within calls to something that records no spans.
    around: silent::Around,
    /// Who waited for services of which neither calls nor spans were recorded.
    waited: waited::Waited,
    /// How many calls of each service there are by their name and peer, and how many of them were answered by a span.
    answered: FxHashMap<(Name, Name, Name), (u64, u64)>,
}

impl Callers {
    /// Takes in spans.
    pub fn add(&mut self, work: &Work<'_>) {
        self.add_answers(work);
        self.waited.add(work);
        let mut missing = FxHashSet::default();
        for &index in &work.sorted {
            let span = work.span(index);
            let parent = work.parent[index as usize];
            if parent != NOBODY && work.span(parent).service != span.service {
                self.calls.insert((work.span(parent).service, span.service));
            }
            if is_orphan(work, index) && !span.kind.serves() && missing.insert((span.trace, span.parent)) {
                *self.torn.entry(span.service).or_default() += 1;
            }
            let (all, orphans) = self.lost.entry((span.service, span.name, span.kind)).or_default();
            *all += 1;
            *orphans += u64::from(is_orphan(work, index));
        }
    }

    /// By service, how many of its visits were lost whose calls or local spans are left: a missing parent that several name is one.
    pub fn torn(&self) -> FxHashMap<Name, u64> {
        self.torn.clone()
    }

    /// By service, which part of its spans was lost. What its visits did names them: the parents that this lacks were its own, whatever others lost. Where that is too little
    /// to tell, it is the part of all spans.
    pub fn lost_by_service(&self) -> FxHashMap<Name, f64> {
        let mut sums: FxHashMap<Name, (u64, u64)> = FxHashMap::default();
        for ((service, _, kind), (all, orphans)) in &self.lost {
            if !kind.serves() {
                let sum = sums.entry(*service).or_default();
                *sum = (sum.0 + all, sum.1 + orphans);
            }
        }
        let general = self.lost_part();
        let part = |(all, orphans): (u64, u64)| {
            let (all, orphans) = (all.max(1) as f64, orphans as f64);
            // Of a number that follows Poisson's law, two standard deviations; of none, three (the rule of three).
            let most = orphans + 2.0 * orphans.sqrt() + 3.0;
            general.clamp(orphans / all, most / all)
        };
        sums.into_iter().map(|(service, sum)| (service, part(sum))).collect()
    }

    /// The part of all spans that have lost their parents.
    pub fn lost_part(&self) -> f64 {
        let (all, orphans) = self.lost.values().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
        orphans as f64 / all.max(1) as f64
    }

    /// Whether a span is known to be a part of a visit of its service, so that it is no visit itself, whatever it is called.
    fn is_part(&self, span: &Span) -> bool {
        !span.kind.serves() && !self.are_mostly_lost(span)
    }

    /// Whether most spans of an operation have lost their parents.
    fn are_mostly_lost(&self, span: &Span) -> bool {
        self.lost.get(&(span.service, span.name, span.kind)).is_some_and(|(all, orphans)| 2 * orphans > *all)
    }

    /// Whether what called a fragment records no spans.
    fn are_unseen(&self, work: &Work<'_>, fragment: &Fragment) -> bool {
        /// From fewer nothing follows.
        const ENOUGH: u64 = 10;
        let member = work.span(fragment.members[0]);
        let known = self.lost.get(&(member.service, member.name, member.kind));
        known.is_some_and(|(all, _)| *all >= ENOUGH) && self.are_mostly_lost(member)
    }
}

/// The span that a trace begins with, where only one has no parent.
fn first_span(work: &Work<'_>, spans: &[u32]) -> Option<u32> {
    let mut roots = spans.iter().filter(|index| !work.span(**index).parent.is_some());
    roots.next().copied().filter(|first| work.parent[*first as usize] == NOBODY && roots.next().is_none())
}

/// The lost parents of a trace, those with the longest time first, since others may belong below them.
fn fragments(work: &Work<'_>, spans: &[u32]) -> Vec<Fragment> {
    let mut orphans: Vec<u32> = spans.iter().copied().filter(|index| is_orphan(work, *index)).collect();
    // `spans` is sorted by identifier, and so stay the members of each fragment.
    let whose = |index: &u32| (work.span(*index).parent, work.span(*index).unlinked);
    orphans.sort_by_key(whose);
    let mut fragments: Vec<Fragment> = orphans
        .chunk_by(|a, b| whose(a) == whose(b))
        .map(|members| {
            let span = |index: &u32| *work.span(*index);
            let first = span(&members[0]);
            let local =
                members.iter().all(|member| !span(member).kind.serves() && span(member).service == first.service);
            Fragment {
                parent: first.parent,
                members: members.to_vec(),
                start: members.iter().map(|member| span(member).start).min().unwrap_or(first.start),
                end: members.iter().map(|member| span(member).end).max().unwrap_or(first.end),
                local: local.then_some(first.service),
            }
        })
        .collect();
    fragments.sort_by_key(|fragment| (fragment.start.saturating_sub(fragment.end), fragment.start, fragment.parent));
    fragments
}

/// Where a lost span may have been.
struct Places {
    /// Spans under which something may be put, with the root of their tree.
    spans: Vec<u32>,
    /// Calls that have a server half.
    answered: FxHashSet<u32>,
    /// Whether a span's tree is whole: its root is no orphan. By span.
    whole: FxHashMap<u32, bool>,
    /// What was put below calls to services that record no spans, by call.
    silent: FxHashMap<u32, u32>,
}

impl Places {
    fn new(work: &Work<'_>, spans: &[u32]) -> Self {
        let mut places = Self {
            spans: spans.to_vec(),
            answered: FxHashSet::default(),
            whole: FxHashMap::default(),
            silent: FxHashMap::default(),
        };
        for &index in spans {
            let parent = work.parent[index as usize];
            if parent != NOBODY && answers(work.span(index), work.span(parent)) {
                places.answered.insert(parent);
            }
        }
        places
    }

    /// Whether a span belongs to a tree whose root has no lost parent. Walks up once per span.
    fn is_whole(&mut self, work: &Work<'_>, index: u32) -> bool {
        let mut path = Vec::new();
        let mut at = index;
        let whole = loop {
            if let Some(&known) = self.whole.get(&at) {
                break known;
            }
            let parent = work.parent[at as usize];
            if parent == NOBODY {
                break !work.span(at).parent.is_some();
            }
            // A circle of parents ends where it began.
            self.whole.insert(at, false);
            path.push(at);
            at = parent;
        };
        for step in path {
            self.whole.insert(step, whole);
        }
        whole
    }

    fn find(&mut self, work: &Work<'_>, fragment: &Fragment, callers: &Callers) -> Option<u32> {
        let service = work.span(fragment.members[0]).service;
        let mut found = None;
        for at in 0..self.spans.len() {
            let index = self.spans[at];
            let span = work.span(index);
            if !covers(span, fragment) {
                continue;
            }
            let fits = match fragment.local {
                Some(service) if span.service != service => {
                    // A database that records no spans was not lost.
                    span.kind == SpanKind::Client && !self.answered.contains(&index) && !callers.is_silent(span)
                }
                Some(_) => span.kind.serves(),
                None => {
                    let serves = span.kind.serves() || work.parent[index as usize] == NOBODY;
                    fragment.members.len() == 1 && serves && callers.calls.contains(&(span.service, service))
                }
            };
            if fits && self.is_whole(work, index) && found.replace(index).is_some() {
                return None;
            }
        }
        found
    }

    /// The span of the trace that a fragment of unseen callers hangs below: the one message that no span worked on, else the first span, which other calls
    /// come within.
    fn caller(&self, work: &Work<'_>, first: u32, fragment: &Fragment) -> Option<u32> {
        let (begun, member) = (work.span(first), work.span(fragment.members[0]));
        if fragment.start < begun.start {
            return None;
        }
        let is_open = |index: &&u32| {
            let span = work.span(**index);
            span.sends_message() && span.start <= fragment.start && !self.answered.contains(*index)
        };
        let mut open = self.spans.iter().filter(is_open);
        let message = open.next().copied().filter(|_| open.next().is_none());
        message.or(Some(first).filter(|_| member.works_on_messages() || fragment.start <= begun.end))
    }

    /// Puts a fragment below a visit, by a span in place of the lost one where several spans name that. Gives the top of it.
    fn put_below(&mut self, work: &mut Work<'_>, fragment: &Fragment, visit: u32, added: &mut Vec<u32>) -> u32 {
        let top = match fragment.members[..] {
            [member] => member,
            _ => synthesize(work, fragment, SpanKind::Server, added),
        };
        for &member in fragment.members.iter().filter(|member| **member != top) {
            work.parent[member as usize] = top;
        }
        work.parent[top as usize] = visit;
        self.whole.retain(|_, whole| *whole);
        top
    }

    fn attach(&mut self, work: &mut Work<'_>, fragment: &Fragment, place: u32, added: &mut Vec<u32>) {
        let in_other_service = fragment.local.is_some_and(|service| service != work.span(place).service);
        let parent = if in_other_service {
            let parent = synthesize(work, fragment, SpanKind::Server, added);
            work.parent[parent as usize] = place;
            self.answered.insert(place);
            self.spans.push(parent);
            parent
        } else {
            place
        };
        for &member in &fragment.members {
            work.parent[member as usize] = parent;
        }
        // What was not whole may be so now.
        self.whole.retain(|_, whole| *whole);
    }
}

fn answers(child: &Span, parent: &Span) -> bool {
    parent.kind.calls() && (child.kind.serves() || child.service != parent.service)
}

/// Whether the span was under way for at least half of the fragment's time.
fn covers(span: &Span, fragment: &Fragment) -> bool {
    let common = span.end.min(fragment.end).saturating_sub(span.start.max(fragment.start));
    common >= 0 && common.saturating_mul(2) >= fragment.end.saturating_sub(fragment.start)
}

/// A span in place of the lost one.
fn synthesize(work: &mut Work<'_>, fragment: &Fragment, kind: SpanKind, added: &mut Vec<u32>) -> u32 {
    let first = *work.span(fragment.members[0]);
    let service = fragment.local.unwrap_or_else(|| work.names.intern(UNKNOWN_SERVICE));
    let local = |name| if fragment.local.is_some() { name } else { Name::NONE };
    let span = Span {
        file: first.file,
        trace: first.trace,
        id: fragment.parent,
        service,
        instance: local(first.instance),
        host: local(first.host),
        name: NAMELESS,
        start: fragment.start,
        end: fragment.end,
        kind,
        lost: true,
        ..Span::default()
    };
    let index = work.spans.spans.len() as u32;
    work.spans.spans.push(span);
    work.parent.push(NOBODY);
    added.push(index);
    index
}
