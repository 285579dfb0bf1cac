//! The driver: one step of the trace after the other (2005 paper §4.3, part B).

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::aggregation::{Accepted, Aggregated, Aggregation};
use crate::codes;
use crate::explain::{Aside, Is, Watch};
use crate::forest::{Arrival, End, Forest, Found, NO_TEMPLATE, NONE, Spent};
use crate::loss_inference::{LossInference, Origin, Verdict};
use crate::record::{Link, Occurrence, Record, RecordKind};
use crate::rules::{Chosen, Message, Rules, TemplateCount};
use crate::signatures::EntryMerge;
use crate::timing::{Timestamp, Timing, duration};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place, Severity};
use dyelog_lqn::submodel::SubModel;
use dyelog_trace::messages::{Event, MessageStep, StepSink, What};
use dyelog_trace::{ReadReport, TaskId, TraceNames};

/// How to analyse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What tells entries apart.
    pub merge: EntryMerge,
    /// Whether to keep a record for each interaction.
    pub records: bool,
    /// Whether to keep what each message turned out to be.
    pub links: bool,
    /// Whether to keep which message each one was sent for.
    pub causes: bool,
}

/// What an analysis comes to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Analysis {
    /// The sub-model.
    pub submodel: SubModel,
    /// The interactions in the order of finding, where they were asked for.
    pub records: Vec<Record>,
    /// What each message turned out to be, where that was asked for.
    pub links: Vec<Link>,
    /// For each message in the order of reception: the number in that order, from 1, of the message that its sender was serving; 0
    /// where it served none. Empty where this was not asked for.
    pub causes: Vec<u32>,
    /// Interactions by kind: synchronous, asynchronous, forwarded.
    pub counts: [u64; 3],
    /// Messages.
    pub messages: u64,
    /// How often each template was carried out, in the order of trial.
    pub templates: Vec<TemplateCount>,
    /// What there is to say.
    pub findings: ReadReport,
}

impl Analysis {
    /// Takes in what another trace came to (2005 paper §4.5).
    pub fn merge(&mut self, other: Self) {
        self.submodel.merge(&other.submodel);
        self.records.extend(other.records);
        self.links.extend(other.links);
        self.causes.extend(other.causes);
        for (own, other) in self.counts.iter_mut().zip(other.counts) {
            *own += other;
        }
        self.messages += other.messages;
        if self.templates.is_empty() {
            self.templates = other.templates;
        } else {
            // Those of the same rules.
            for (own, other) in self.templates.iter_mut().zip(&other.templates) {
                own.times += other.times;
            }
        }
        self.findings.merge(other.findings);
    }
}

/// How many occurrences and visits may be open at once, beside those that tasks need.
const MOST: usize = 1 << 20;

/// For how many pairs of tasks it is kept what they owe each other.
const MOST_OWED: usize = 1 << 16;

/// A message that arrives.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    sender: TaskId,
    /// The sender's node, or [`NONE`].
    from: u32,
    /// The node that it was in transit, where sending it was an event of its own.
    transit: Option<u32>,
    to: TaskId,
    label: Name,
    timing: Timing,
    /// What its sender had done, of a message that was not in transit.
    spent: Spent,
}

/// Which message a sender was serving, where that is asked for.
#[derive(Debug, Default)]
struct Causes {
    /// By visit, the number of the message that it serves.
    served: Vec<u32>,
    /// By token of a message in transit.
    on_way: Vec<u32>,
}

fn put(all: &mut Vec<u32>, place: usize, value: u32) {
    if all.len() <= place {
        all.resize(place + 1, 0);
    }
    all[place] = value;
}

/// The analysis of one stream of messages.
#[derive(Debug)]
pub struct Same {
    rules: Arc<Rules>,
    forest: Forest,
    aggregation: Aggregation,
    loss_inference: LossInference,
    options: Options,
    files: Vec<Arc<str>>,
    /// Nodes in transit by token.
    tokens: Vec<u32>,
    causes: Causes,
    /// How many requests to a task by another were given up, for which a reply may still come.
    owed: FxHashMap<(TaskId, TaskId), u64>,
    late: u64,
    /// Messages that no template matched.
    unmatched: u64,
    analysis: Analysis,
    limit: usize,
}

impl Same {
    /// An analysis of traces of these names.
    pub fn new(options: Options, files: Vec<Arc<str>>) -> Self {
        Self::with(Rules::shipped(), options, files)
    }

    /// An analysis by other rules.
    pub fn with(rules: Arc<Rules>, options: Options, files: Vec<Arc<str>>) -> Self {
        Self {
            rules,
            forest: Forest::default(),
            aggregation: Aggregation::new(options.merge, files.clone(), options.links),
            loss_inference: LossInference::default(),
            options,
            files,
            tokens: Vec::new(),
            causes: Causes::default(),
            owed: FxHashMap::default(),
            late: 0,
            unmatched: 0,
            analysis: Analysis::default(),
            limit: MOST,
        }
    }

    /// Watches what is made of a message.
    pub(crate) fn watch(&mut self, watch: Watch) {
        self.forest.watch = Some(Box::new(watch));
    }

    /// What was watched.
    pub(crate) fn unwatch(&mut self) -> Watch {
        self.forest.watch.take().map(|watch| *watch).unwrap_or_default()
    }

    /// Whether the message that comes next is the one that is studied.
    pub(crate) fn studies(&mut self, is_now: bool) {
        if let Some(watch) = self.forest.watch.as_deref_mut() {
            watch.is_now = is_now;
        }
    }

    /// How many messages were received.
    pub(crate) fn received(&self) -> u32 {
        self.message()
    }

    /// Tries all templates at a message, where one is studied.
    fn study(&mut self, names: &TraceNames, message: &Delivered) {
        let Delivered { from, transit, to, label, .. } = *message;
        let number = self.message();
        let sender = (from != NONE || transit.is_some()).then(|| self.forest.ends_of(from, transit, to)[0].0);
        if let Some(watch) = self.forest.watch.as_deref_mut() {
            watch.current = number;
            if watch.is_now {
                watch.from = sender.map(Is::Occurrence);
            }
        }
        if from == NONE {
            self.set_aside(Aside::Explained);
        } else {
            self.rules.study_message(&mut self.forest, from, to, names.names.text(label));
        }
    }

    /// Notes what becomes of the message that is studied.
    fn set_aside(&mut self, aside: Aside) {
        if let Some(watch) = self.forest.watch.as_deref_mut().filter(|watch| watch.is_now) {
            watch.aside = Some(aside);
        }
    }

    /// The node that a task sends from.
    fn sender(&mut self, task: TaskId) -> u32 {
        match self.forest.live(task) {
            NONE => {
                let visit = self.aggregation.for_root(task);
                self.forest.root(task, visit)
            }
            live => live,
        }
    }

    /// The number of the message that a node serves, 0 where it serves none or nobody asks.
    fn cause(&self, node: u32) -> u32 {
        let visit = if self.options.causes && node != NONE { self.forest.visit(node) } else { NONE };
        // What nobody asked for may stand in the place of a visit that was.
        let serves = visit != NONE && self.aggregation.asked_by(visit).0 != NONE;
        if serves { self.causes.served.get(visit as usize).copied().unwrap_or(0) } else { 0 }
    }

    /// The number of the message that was received last.
    fn message(&self) -> u32 {
        u32::try_from(self.analysis.messages).unwrap_or(0)
    }

    fn deliver(&mut self, names: &TraceNames, message: &Delivered, step: &MessageStep) {
        let Delivered { sender, from, to, label, timing, .. } = *message;
        self.analysis.messages += 1;
        let kind = self.loss_inference.kind(names.task(sender).name, names.task(to).name, label);
        if self.forest.watch.is_some() {
            self.study(names, message);
        }
        if from == NONE {
            self.arrive_explained(names, message, kind, step);
        } else {
            let name = if self.rules.asks_names() { names.names.text(label) } else { "" };
            let mut chosen = Chosen::default();
            if !self.chosen((from, to), name, kind, &mut chosen) {
                self.unmatched += 1;
                self.set_aside(Aside::Unmatched);
                self.lose(message.transit);
            } else if self.rules.is_reply(&chosen) {
                self.loss_inference.replies(kind);
                let begins = self.rules.begins(&chosen);
                let visit = if begins { self.accept(names, message, kind, step).0 } else { NONE };
                self.carry_out(&mut chosen, message, step, (visit, timing));
            } else if !self.rules.begins(&chosen) {
                self.carry_out(&mut chosen, message, step, (NONE, timing));
            } else if !self.is_stray(message, kind, step) {
                let begun = self.accept(names, message, kind, step);
                self.carry_out(&mut chosen, message, step, begun);
            }
        }
        self.aggregation.acts(names, to, timing.arrived);
    }

    /// Looks for the template for a message; whether there is one.
    fn chosen(&mut self, ends: (u32, TaskId), name: &str, kind: u32, chosen: &mut Chosen) -> bool {
        let matches = self.rules.at_message(&self.forest, ends, name, true, chosen);
        if matches && self.rules.is_reply(chosen) && self.had_changed_parts(kind, chosen) {
            self.set_aside(Aside::Request);
            return self.rules.at_message(&self.forest, ends, name, false, chosen);
        }
        matches
    }

    fn carry_out(
        &mut self,
        chosen: &mut Chosen,
        message: &Delivered,
        step: &MessageStep,
        (visit, timing): (u32, Timing),
    ) {
        let Delivered { from, transit, to, spent, .. } = *message;
        let arrival = Arrival { timing, line: step.line, number: self.message(), spent };
        let message = Message { from, transit, to, visit, arrival };
        self.rules.carry_out(&mut self.forest, chosen, &message);
    }

    /// Whether a message that is no reply is one to a request that is lost: then it changes nothing.
    fn is_stray(&mut self, message: &Delivered, kind: u32, step: &MessageStep) -> bool {
        let Delivered { from, transit, to, timing, .. } = *message;
        self.note_late(from, to);
        let is_stray = self.loss_inference.is_stray(kind, self.forest.is_busy(to));
        if is_stray {
            self.set_aside(Aside::Stray);
            self.loss_inference.strays(kind, Origin { file: step.file, line: step.line });
            self.ignore(from, transit, to, timing.arrived);
        }
        is_stray
    }

    /// A message begins a visit; gives it, and the times of the message.
    fn accept(&mut self, names: &TraceNames, message: &Delivered, kind: u32, step: &MessageStep) -> (u32, Timing) {
        let Delivered { to, label, timing, .. } = *message;
        self.loss_inference.asks(kind);
        let timing = Timing { took: self.aggregation.on_way(names, to, &timing), ..timing };
        let origin = Origin { file: step.file, line: step.line };
        let request = Accepted { kind, label, time: timing.arrived, origin };
        let visit = self.aggregation.accepts(names, to, request);
        if self.options.causes {
            let number = self.message();
            put(&mut self.causes.served, visit as usize, number);
        }
        (visit, timing)
    }

    /// A message arrives of which it was said in transit that nobody replies to it.
    fn arrive_explained(&mut self, names: &TraceNames, message: &Delivered, kind: u32, step: &MessageStep) {
        if self.is_stray(message, kind, step) {
            return;
        }
        let (visit, timing) = self.accept(names, message, kind, step);
        let Delivered { transit, to, spent, .. } = *message;
        let old = self.forest.live(to);
        let arrival = Arrival { timing, line: step.line, number: self.message(), spent };
        let node = self.forest.arrive(None, transit, to, visit, arrival);
        self.rules.changed(&mut self.forest, old);
        self.forest.found_orphan(node);
    }

    fn lose(&mut self, transit: Option<u32>) {
        if let Some(transit) = transit {
            let parent = self.forest.lose(transit);
            self.rules.changed(&mut self.forest, parent);
        }
    }

    /// Whether a message of a kind, for which a template for replies is chosen, is a request as always, and what it would reply to was a
    /// reply, of which the request is lost.
    fn had_changed_parts(&mut self, kind: u32, chosen: &Chosen) -> bool {
        if !self.loss_inference.seems_request(kind) {
            return false;
        }
        let server = self.rules.first_server(&self.forest, chosen);
        let request = server.map_or(NONE, |server| self.forest.visit(server));
        if request == NONE {
            return false;
        }
        let (request, origin) = self.aggregation.asked_by(request);
        let had = self.loss_inference.have_changed_parts(kind, request);
        if had {
            self.loss_inference.turns(request, origin);
        }
        had
    }

    /// A message replies to a request that is lost. By the paper it is asynchronous; here it changes nothing, and what both its ends were
    /// doing is not whole.
    fn ignore(&mut self, from: u32, transit: Option<u32>, to: TaskId, time: Timestamp) {
        let [from, to] = self.forest.ends_of(from, transit, to);
        self.lose(transit);
        self.record_unanswered(from.0, to.0, (time, self.message()), false, NO_TEMPLATE);
        self.aggregation.leave_out(from.1);
        self.aggregation.leave_out(to.1);
    }

    /// Notes a message out of nowhere from a task to one whose request to it was given up: a reply that comes too late, maybe.
    fn note_late(&mut self, from: u32, to: TaskId) {
        if self.owed.is_empty() || from == NONE || !self.forest.is_lone(from) {
            return;
        }
        if let Some(owed) = self.owed.get_mut(&(self.forest.task_of(from), to))
            && *owed > 0
        {
            *owed -= 1;
            self.late += 1;
        }
    }

    /// The name of a template, by its number.
    fn template(&self, number: u16) -> Option<Arc<str>> {
        self.rules.names().nth(usize::from(number)).map(Arc::clone)
    }

    fn record_unanswered(
        &mut self,
        client: Occurrence,
        server: Occurrence,
        (time, message): (Timestamp, u32),
        cut_off: bool,
        template: u16,
    ) {
        self.analysis.counts[RecordKind::Async as usize] += 1;
        if self.options.records {
            let (kind, via, time, end) = (RecordKind::Async, Vec::new(), time.known(), None);
            self.analysis.records.push(Record {
                kind,
                client,
                server,
                via,
                time,
                end,
                cut_off,
                messages: vec![message],
                template: self.template(template),
            });
        }
    }

    /// Takes in what the forest found.
    fn take_found(&mut self, names: &TraceNames) {
        let mut found = std::mem::take(&mut self.forest.found);
        let mut lost = Vec::new();
        for one in found.drain(..) {
            match one {
                Found::Cycle { from, count, reply, template } => {
                    let path = &self.forest.path[from..from + count];
                    let kind = if count == 2 { RecordKind::Sync } else { RecordKind::Forward };
                    self.analysis.counts[kind as usize] += 1;
                    if self.options.records {
                        self.analysis.records.push(Record {
                            kind,
                            client: path[0].occurrence,
                            server: path[count - 1].occurrence,
                            via: path[1..count - 1].iter().map(|end| end.occurrence).collect(),
                            time: path[1].timing.arrived.known(),
                            end: reply.timing.arrived.known(),
                            cut_off: false,
                            template: self.template(template),
                            // A cycle is found as the reply is received that closes it.
                            messages: path[1..].iter().map(|end| end.message).chain([self.message()]).collect(),
                        });
                    }
                    self.aggregation.answered(names, path, &reply);
                    for end in &self.forest.path[from + 1..from + count] {
                        if end.visit != NONE {
                            lost.extend(self.loss_inference.answered(self.aggregation.asked_by(end.visit).0));
                        }
                    }
                }
                Found::Async { from, to, cut_off, template } => {
                    let arrived = (to.timing.arrived, to.message);
                    self.record_unanswered(from.occurrence, to.occurrence, arrived, cut_off, template);
                    if !cut_off && self.owed.len() < MOST_OWED {
                        *self.owed.entry((to.occurrence.task, from.occurrence.task)).or_default() += 1;
                    }
                    self.unanswered(names, from, to, cut_off);
                }
                Found::Gone(visit) => self.aggregation.let_go(visit),
                Found::Held(visit) => self.aggregation.hold(visit),
            }
        }
        for (from, to) in lost {
            self.aggregation.lost(names, &from, &to);
            self.let_go(from, to);
        }
        self.forest.found = found;
        self.forest.path.clear();
        self.aggregation.take_complete(names);
    }

    /// Nobody replies to a message.
    fn unanswered(&mut self, names: &TraceNames, from: End, to: End, cut_off: bool) {
        if to.visit == NONE || cut_off && self.aggregation.ends_before(&from, &to) {
            return;
        }
        let (kind, origin) = self.aggregation.asked_by(to.visit);
        match self.loss_inference.unanswered(kind, origin, (from, to)) {
            Verdict::Asynchronous => self.aggregation.unanswered(names, &from, &to),
            Verdict::Lost => self.aggregation.lost(names, &from, &to),
            Verdict::Undecided => {
                for end in [from, to].into_iter().filter(|end| end.visit != NONE) {
                    self.aggregation.hold(end.visit);
                }
            }
        }
    }

    /// It is decided what became of a message, so that its ends need not be kept for that.
    fn let_go(&mut self, from: End, to: End) {
        for end in [from, to].into_iter().filter(|end| end.visit != NONE) {
            self.aggregation.let_go(end.visit);
        }
    }

    /// Decides what became of messages of which that is not known yet.
    fn decide(&mut self, names: &TraceNames) {
        for (from, to, lost) in self.loss_inference.undecided() {
            if lost {
                self.aggregation.lost(names, &from, &to);
            } else {
                self.aggregation.unanswered(names, &from, &to);
            }
            self.let_go(from, to);
        }
        self.aggregation.take_complete(names);
    }

    /// Keeps memory within bounds.
    fn prune(&mut self, names: &TraceNames) {
        let limit = self.limit + 4 * names.task_count();
        if self.forest.len() > limit || self.aggregation.open() > limit {
            if self.aggregation.open() > limit {
                self.aggregation.prune(names);
                self.aggregation.take_complete(names);
            }
            if self.forest.len() > limit / 2 {
                for node in self.forest.prune() {
                    self.rules.changed(&mut self.forest, node);
                }
                if self.forest.len() > limit / 2 {
                    // Templates that retire too little keep everything.
                    self.forest.finish();
                    self.tokens.fill(NONE);
                }
                self.take_found(names);
            }
            self.analysis.findings.count("interactions that never end", || {
                let message = format!("more than {limit} interactions were open at once");
                Diagnostic::warning(codes::GIVEN_UP, Place::Nowhere, message)
                    .with_note("to bound memory, those that had not ended count as asynchronous")
            });
        }
    }

    /// What all came to.
    pub fn finish(mut self, names: &TraceNames) -> Analysis {
        self.forest.finish();
        self.take_found(names);
        self.decide(names);
        let Aggregated { submodel, links, unfinished, alike } = self.aggregation.finish(names);
        let mut analysis = self.analysis;
        (analysis.submodel, analysis.links) = (submodel, links);
        analysis.templates = self.rules.counted(&self.forest.fired);
        if self.unmatched > 0 {
            let message = format!("no template matches {} messages", self.unmatched);
            analysis.findings.counted.insert("message that no template matches", self.unmatched);
            analysis.findings.findings.push(
                Diagnostic::warning(codes::UNMATCHED, Place::Nowhere, message)
                    .with_note("they begin nothing and are part of no interaction")
                    .with_hint("end with a template that has no condition, such as `request` of rules/same.dl"),
            );
        }
        self.loss_inference.tell(names, &self.files, &mut analysis.findings);
        if alike > 0 {
            analysis.findings.counted.insert("occurrence that is one of too many kinds", alike);
            analysis.findings.findings.push(
                Diagnostic::warning(codes::ALIKE, Place::Nowhere, "occurrences ask for others in too many different ways")
                    .with_note(format!(
                        "{alike} that came after the first such kinds are one entry for each request, to keep memory within bounds"
                    ))
                    .with_hint("name the messages if you can: entries are then told apart by name"),
            );
        }
        if self.late > 0 {
            let what =
                if self.late == 1 { "1 message looks".to_owned() } else { format!("{} messages look", self.late) };
            analysis.findings.counted.insert("reply that may have come too late", self.late);
            analysis.findings.findings.push(
                Diagnostic::new(
                    Severity::Note,
                    codes::LATE,
                    Place::Nowhere,
                    format!("{what} like a reply to a request that had been given up"),
                )
                .with_note("a task that sends again before its reply is not blocked, so its request was taken for asynchronous")
                .with_note("if tasks serve several requests at once, by threads that the trace does not name, the model is wrong")
                .with_hint("record the thread of each message, or have threads guessed: `--guess-threads`"),
            );
        }
        if unfinished > 0 {
            let what = if unfinished == 1 {
                "1 interaction was".to_owned()
            } else {
                format!("{unfinished} interactions were")
            };
            analysis.findings.counted.insert("interaction not complete at the end", unfinished);
            analysis.findings.findings.push(
                Diagnostic::new(
                    Severity::Note,
                    codes::UNFINISHED,
                    Place::Nowhere,
                    format!("{what} not complete when the trace ended"),
                )
                .with_note("requests of their kind were answered before, so the model leaves them out"),
            );
        }
        analysis
    }
}

impl StepSink for Same {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        let now = Timestamp::read(step.time);
        match step.what {
            What::Message { from, to, label, sent, took } => {
                let node = self.sender(from);
                let timing = Timing { sent: Timestamp::read(sent), arrived: now, took: duration(took) };
                self.aggregation.acts(names, from, timing.sent);
                let spent = self.aggregation.sends(self.forest.visit(node), timing.sent);
                if self.options.causes {
                    self.analysis.causes.push(self.cause(node));
                }
                let message = Delivered { sender: from, from: node, transit: None, to, label, timing, spent };
                self.deliver(names, &message, step);
            }
            What::Send { from, token, .. } => {
                let node = self.sender(from);
                self.aggregation.acts(names, from, now);
                let spent = self.aggregation.sends(self.forest.visit(node), now);
                let cause = self.cause(node);
                let transit = self.forest.send(node, spent);
                self.rules.changed(&mut self.forest, node);
                let place = token as usize;
                if self.tokens.len() <= place {
                    self.tokens.resize(place + 1, NONE);
                }
                self.tokens[place] = transit;
                if self.options.causes {
                    put(&mut self.causes.on_way, place, cause);
                }
            }
            What::Receive { to, token, label, from: sender, sent, took } => {
                let transit = std::mem::replace(&mut self.tokens[token as usize], NONE);
                if transit != NONE {
                    self.analysis.causes.extend(self.causes.on_way.get(token as usize));
                    let (from, spent) = (self.forest.sender(transit), Spent::default());
                    let timing = Timing { sent: Timestamp::read(sent), arrived: now, took: duration(took) };
                    let message = Delivered { sender, from, transit: Some(transit), to, label, timing, spent };
                    self.deliver(names, &message, step);
                }
            }
            What::Lost(token) => {
                let transit = std::mem::replace(&mut self.tokens[token as usize], NONE);
                self.lose((transit != NONE).then_some(transit));
            }
            What::Other(Event::Begin(task, label)) => {
                self.rules.idle(&mut self.forest, task);
                self.take_found(names);
                self.aggregation.begins(names, task, label, now, Origin { file: step.file, line: step.line });
            }
            What::Other(Event::Run(task)) => self.forest.running(task),
            What::Other(Event::Idle(task)) => {
                self.rules.idle(&mut self.forest, task);
                self.aggregation.acts(names, task, now);
                self.aggregation.idle(task, now);
            }
            What::Other(Event::Compute(task, seconds)) => {
                self.aggregation.computes(task, seconds);
                return ControlFlow::Continue(());
            }
        }
        self.take_found(names);
        self.prune(names);
        ControlFlow::Continue(())
    }
}
