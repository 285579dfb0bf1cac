//! How far two ways to recognise interactions agree on a trace that has a dye: by templates, which know the dye, and from its
//! messages alone. A measure of how far to trust the second where there is no dye.
//!
//! An interaction is a request: a message that an entry accepts. The two agree on it when both take it for a request, made in the
//! same way (synchronous, asynchronous or passed on), and from the same request that its sender was serving.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use crate::diagnostic::Diagnostics;
use crate::lqn::submodel::{Interaction, RequestKind};
use crate::same::threads::{Threaded, Threads};
use crate::same::{Link, Options, Same};
use crate::tlc::Rules;
use crate::tlc::recognise::recognise;
use crate::trace::messages::{MessageStep, StepSink, operations, read_all};
use crate::trace::toeg::NONE;
use crate::trace::{Operation, Sink, Toeg, TraceNames};

/// What one of the two says of a request: how it was made, and the message that its requester was serving.
type Said = (RequestKind, u32);

/// Gathers operations, to compare both ways on them.
pub struct Comparison<'r> {
    rules: &'r Rules,
    messages: operations::Messages,
    /// What the templates say of each message, and its sender and receiver.
    truth: FxHashMap<u32, (Said, String)>,
    failure: Option<Diagnostics>,
    operations: u64,
    left_out: u64,
}

/// How far both agree.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Agreement {
    /// Operations compared.
    pub operations: u64,
    /// Operations that are damaged.
    pub left_out: u64,
    /// Requests that the templates see.
    pub requests: u64,
    /// Of these, how many both see in the same way.
    pub agreed: u64,
    /// Of these, how many are seen in the same way where each service is taken for one sequential task.
    pub sequential: u64,
    /// Requests that only the messages alone suggest.
    pub invented: u64,
    /// By how many requests the sender was serving, 0 for customers: requests, and how many both see in the same way.
    pub at_once: BTreeMap<u32, (u64, u64)>,
    /// Where they differ: sender and receiver, what the templates say and what the messages alone.
    pub differences: BTreeMap<(String, String, String), Difference>,
}

/// Requests that are seen in different ways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// How many.
    pub times: u64,
    /// How many requests their senders were serving, added up.
    pub at_once: u64,
}

/// Recognises messages between services whose threads are guessed, and between services that are taken for sequential tasks.
struct Both {
    guessed: Threads<Same>,
    sequential: Same,
}

impl StepSink for Both {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        self.sequential.step(names, step)?;
        self.guessed.step(names, step)
    }
}

fn by_message(links: Vec<Link>) -> FxHashMap<u32, Said> {
    links.into_iter().map(|Link { message, kind, cause }| (message, (kind, cause))).collect()
}

impl<'r> Comparison<'r> {
    /// Nothing compared yet.
    pub fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            messages: operations::Messages::new(),
            truth: FxHashMap::default(),
            failure: None,
            operations: 0,
            left_out: 0,
        }
    }

    /// Recognises the messages without their dye, and compares.
    ///
    /// # Errors
    /// When rules could not be evaluated.
    pub fn finish(self, names: &mut TraceNames) -> Result<Agreement, Diagnostics> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let same = || Same::new(Options { links: true, ..Options::default() }, Vec::new());
        let mut both = Both { guessed: Threads::new(same(), TraceNames::new(), true), sequential: same() };
        if !self.messages.is_empty() {
            read_all(vec![Box::new(self.messages)], names, &mut both)?;
        }
        let sequential = by_message(both.sequential.finish(names).links);
        let Threaded { sink: same, names: threads, at_once, .. } = both.guessed.finish();
        let guesses = by_message(same.finish(&threads).links);
        let mut agreement = Agreement {
            operations: self.operations,
            left_out: self.left_out,
            requests: self.truth.len() as u64,
            ..Agreement::default()
        };
        for (message, (said, between)) in &self.truth {
            let guess = guesses.get(message);
            let at_once = at_once.get(message).copied().unwrap_or(0);
            let of_these = agreement.at_once.entry(at_once).or_default();
            of_these.0 += 1;
            agreement.sequential += u64::from(sequential.get(message) == Some(said));
            if guess == Some(said) {
                agreement.agreed += 1;
                of_these.1 += 1;
                continue;
            }
            let told = match guess {
                None => "a reply".to_owned(),
                Some((kind, _)) if *kind == said.0 => format!("{}, of another request", word(*kind)),
                Some((kind, _)) => word(*kind).to_owned(),
            };
            let difference = agreement.differences.entry((between.clone(), word(said.0).to_owned(), told)).or_default();
            difference.times += 1;
            difference.at_once += u64::from(at_once);
        }
        agreement.invented = guesses.keys().filter(|message| !self.truth.contains_key(message)).count() as u64;
        Ok(agreement)
    }

    /// What the templates say of the messages of an operation, which have numbers from `first` on.
    fn recognise(&mut self, names: &TraceNames, toeg: &Toeg, first: u32) -> Result<(), Diagnostics> {
        let (outcome, _) = recognise(self.rules, names, toeg)?;
        let events = &toeg.operation().events;
        // Nodes of the graph are the operation's events, sorted by thread and number.
        let mut numbers: FxHashMap<usize, u32> = FxHashMap::default();
        let mut senders: FxHashMap<usize, usize> = FxHashMap::default();
        for (place, edge) in operations::edges(names, events).iter().enumerate() {
            numbers.insert(edge.to, first + place as u32);
            senders.insert(edge.to, edge.from);
        }
        let message_of = |entry: usize| {
            let at = outcome.entries[entry].accepted_at;
            if at == NONE { None } else { numbers.get(&(at as usize)).copied() }
        };
        for request in &outcome.requests {
            let (from, to) = (request.from as usize, request.to as usize);
            if to >= outcome.entries.len() || from >= outcome.entries.len() {
                continue;
            }
            let Some(message) = message_of(to) else { continue };
            let kind = match outcome.entries[to].interaction {
                Interaction::Asynchronous => RequestKind::Asynchronous,
                Interaction::Forwarding => RequestKind::Forward,
                Interaction::Rendezvous | Interaction::Customer => RequestKind::Synchronous,
            };
            let cause = message_of(from).unwrap_or(0);
            let receiver = outcome.entries[to].accepted_at as usize;
            let name = |event: usize| names.task_name(events[event].task).to_owned();
            let between = match senders.get(&receiver) {
                Some(&sender) => format!("{} > {}", name(sender), name(receiver)),
                None => name(receiver),
            };
            self.truth.insert(message, ((kind, cause), between));
        }
        Ok(())
    }
}

impl Sink for Comparison<'_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let Ok(toeg) = Toeg::build(operation) else {
            self.left_out += 1;
            return ControlFlow::Continue(());
        };
        self.operations += 1;
        let first = self.messages.len() + 1;
        let operation = toeg.operation().clone();
        let taken = self.messages.operation(names, operation);
        match self.recognise(names, &toeg, first) {
            Ok(()) => taken,
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}

impl Agreement {
    /// The share of the requests on which both agree, 1 where there are none.
    pub fn share(&self) -> f64 {
        if self.requests == 0 { 1.0 } else { self.agreed as f64 / self.requests as f64 }
    }
}

fn word(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Synchronous => "sync",
        RequestKind::Asynchronous => "async",
        RequestKind::Forward => "forward",
    }
}
