//! The two halves of a message (2005 paper §3.1): by identifier, else first in, first out between two tasks.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::messages::{Half, MessageStep, Raw, RawWhat, StepSink, What, at};
use crate::{ReadReport, TaskId, TraceNames, codes};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place};

/// How many halves may wait for their other one.
const MOST: usize = 1 << 20;
/// How many events of one time are held against each other.
const MOST_AT_ONCE: usize = 1 << 8;

/// What to do about a half without the other one.
const OTHER_HALF: &str = "both halves must name the same `id`, or the same `message` and each other's task as `peer`; if another file has \
                          the other half, `--one-trace` reads files as one trace";

/// Finds the halves of messages, and gives out steps.
pub struct Pairing {
    files: Vec<Arc<str>>,
    /// Messages in transit and receptions without a sending yet, by what joins them.
    waiting: FxHashMap<Key, VecDeque<Waiting>>,
    /// The halves that wait in the order of arrival, some of which may be gone.
    order: VecDeque<(Key, u64)>,
    count: usize,
    next: u64,
    free: Vec<u32>,
    tokens: u32,
    /// Least time from sending to reception between clocks; for those of tasks since some was negative.
    skews: FxHashMap<(Clock, Clock), Skew>,
    /// The last time that is known, and all that was sent or received then.
    now: f64,
    at_once: FxHashSet<Row>,
}

/// All that a row says, but its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Row {
    Message(TaskId, TaskId, Name, u64),
    Half(bool, TaskId, Option<TaskId>, Name, u64),
}

/// What both halves have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Id(u64),
    Pair(TaskId, TaskId, Name),
    Label(Name),
    /// A whole message, with the times at its ends.
    Whole(TaskId, TaskId, Name, u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    half: Half,
    time: f64,
    file: u16,
    line: u32,
    token: u32,
}

/// What tells times: the machine that wrote a file, or a task among others in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Clock {
    File(u16),
    Task(TaskId),
}

/// The clocks at both ends of a message: tasks, and the files that tell of them.
fn clocks(from: (TaskId, u16), to: (TaskId, u16)) -> (Clock, Clock) {
    if from.1 == to.1 { (Clock::Task(from.0), Clock::Task(to.0)) } else { (Clock::File(from.1), Clock::File(to.1)) }
}

/// Times between sending and reception from one clock to another.
#[derive(Clone, Copy, Debug)]
struct Skew {
    least: f64,
    early: u64,
}

impl Pairing {
    /// For inputs of these names.
    pub fn new(files: Vec<Arc<str>>) -> Self {
        Self {
            files,
            waiting: FxHashMap::default(),
            order: VecDeque::new(),
            count: 0,
            next: 0,
            free: Vec::new(),
            tokens: 0,
            skews: FxHashMap::default(),
            now: f64::NAN,
            at_once: FxHashSet::default(),
        }
    }

    /// Takes an event; gives out the steps that are known with it.
    pub fn take(
        &mut self,
        names: &TraceNames,
        file: u16,
        raw: &Raw,
        report: &mut ReadReport,
        sink: &mut dyn StepSink,
    ) -> ControlFlow<()> {
        self.note_twice(file, raw, report);
        let mut give = |what| sink.step(names, &MessageStep { time: raw.time, file, line: raw.line, what });
        match raw.what {
            RawWhat::Other(event) => give(What::Other(event)),
            RawWhat::Message { from, to, label, sent } => {
                let took = raw.time - sent;
                let key = Key::Whole(from, to, label, sent.to_bits(), raw.time.to_bits());
                if let Some(waiting) = self.take_waiting(key, false) {
                    self.free.push(waiting.token);
                    return give(What::Receive { to, token: waiting.token, label, from, sent, took });
                }
                if sent > raw.time {
                    self.early(clocks((from, file), (to, file)), took);
                    return give(What::Message { from, to, label, sent: raw.time, took });
                }
                give(What::Message { from, to, label, sent, took })
            }
            RawWhat::Leaving { from, to, label, arrives } => {
                let key = Key::Whole(from, to, label, raw.time.to_bits(), arrives.to_bits());
                let half = Half { received: false, task: from, peer: Some(to), label, id: 0 };
                self.leaves(names, key, half, file, raw, report, sink)
            }
            RawWhat::Half(half) => {
                let key = key_of(&half);
                if half.received {
                    self.received(names, key, half, file, raw, sink)
                } else {
                    self.sent(names, key, half, file, raw, report, sink)
                }
            }
        }
    }

    /// Tells of what stands there twice, at one time.
    fn note_twice(&mut self, file: u16, raw: &Raw, report: &mut ReadReport) {
        let row = match raw.what {
            RawWhat::Message { from, to, label, sent } => Row::Message(from, to, label, sent.to_bits()),
            RawWhat::Half(Half { received, task, peer, label, id }) => Row::Half(received, task, peer, label, id),
            RawWhat::Leaving { .. } | RawWhat::Other(_) => return,
        };
        if raw.time != self.now {
            self.now = raw.time;
            self.at_once.clear();
        }
        if raw.time.is_nan() || self.at_once.len() >= MOST_AT_ONCE || self.at_once.insert(row) {
            return;
        }
        let place = self.place(file, raw.line);
        report.count("row that stands there twice", || {
            Diagnostic::warning(codes::TWICE, place, "a row before this one says the same, at the same time")
                .with_note("both count: with coarse clocks two messages may be alike; one that was only logged twice gets no reply")
                .with_hint("leave out what was logged twice, or record `id`, or finer times")
        });
    }

    fn received(
        &mut self,
        names: &TraceNames,
        key: Key,
        half: Half,
        file: u16,
        raw: &Raw,
        sink: &mut dyn StepSink,
    ) -> ControlFlow<()> {
        if let Some(waiting) = self.take_waiting(key, false) {
            self.free.push(waiting.token);
            self.delay(clocks((waiting.half.task, waiting.file), (half.task, file)), raw.time - waiting.time);
            let what = received(&waiting, &half, raw.time);
            return sink.step(names, &MessageStep { time: raw.time, file, line: raw.line, what });
        }
        self.wait(key, half, file, raw, 0);
        ControlFlow::Continue(())
    }

    #[expect(clippy::too_many_arguments, reason = "they are what a step is made of")]
    fn sent(
        &mut self,
        names: &TraceNames,
        key: Key,
        half: Half,
        file: u16,
        raw: &Raw,
        report: &mut ReadReport,
        sink: &mut dyn StepSink,
    ) -> ControlFlow<()> {
        // A reception that came before is that of this message if an identifier says so, or if it was at the same time or on
        // another machine: else it is one whose sending was not traced.
        while let Some(early) = self.take_waiting(key, true) {
            let same = half.id != 0 || early.time == raw.time || early.file != file;
            if !same {
                self.unmatched(&early, report);
                continue;
            }
            let took = early.time - raw.time;
            self.delay(clocks((half.task, file), (early.half.task, early.file)), took);
            let what = What::Message {
                from: half.task,
                to: early.half.task,
                label: label_of(&half, &early.half),
                sent: raw.time,
                took,
            };
            return sink.step(names, &MessageStep { time: raw.time, file: early.file, line: early.line, what });
        }
        self.leaves(names, key, half, file, raw, report, sink)
    }

    /// A message leaves whose reception is still to come.
    #[expect(clippy::too_many_arguments, reason = "they are what a step is made of")]
    fn leaves(
        &mut self,
        names: &TraceNames,
        key: Key,
        half: Half,
        file: u16,
        raw: &Raw,
        report: &mut ReadReport,
        sink: &mut dyn StepSink,
    ) -> ControlFlow<()> {
        let token = self.free.pop().unwrap_or_else(|| {
            self.tokens += 1;
            self.tokens - 1
        });
        self.wait(key, half, file, raw, token);
        sink.step(
            names,
            &MessageStep {
                time: raw.time,
                file,
                line: raw.line,
                what: What::Send { from: half.task, token, to: half.peer, label: half.label },
            },
        )?;
        while self.count > MOST {
            self.drop_oldest(names, report, sink)?;
        }
        ControlFlow::Continue(())
    }

    fn wait(&mut self, key: Key, half: Half, file: u16, raw: &Raw, token: u32) {
        let number = self.next;
        self.next += 1;
        self.count += 1;
        let waiting = Waiting { number, half, time: raw.time, file, line: raw.line, token };
        self.waiting.entry(key).or_default().push_back(waiting);
        self.order.push_back((key, number));
        // What is gone is left behind in the order; it must not outgrow what is there.
        if self.order.len() > 2 * self.count + 1024 {
            let waiting = &self.waiting;
            self.order.retain(|(key, number)| {
                waiting.get(key).is_some_and(|queue| queue.front().is_some_and(|first| first.number <= *number))
            });
        }
    }

    /// Takes the first half that waits under a key, of the one direction or the other.
    fn take_waiting(&mut self, key: Key, received: bool) -> Option<Waiting> {
        let queue = self.waiting.get_mut(&key)?;
        if queue.front()?.half.received != received {
            return None;
        }
        let waiting = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&key);
        }
        self.count -= 1;
        waiting
    }

    fn drop_oldest(&mut self, names: &TraceNames, report: &mut ReadReport, sink: &mut dyn StepSink) -> ControlFlow<()> {
        while let Some((key, number)) = self.order.pop_front() {
            let first = self.waiting.get(&key).and_then(|queue| queue.front());
            let Some(first) = first.copied().filter(|first| first.number == number) else { continue };
            self.take_waiting(key, first.half.received);
            return self.give_up(names, key, &first, report, sink);
        }
        ControlFlow::Continue(())
    }

    fn give_up(
        &mut self,
        names: &TraceNames,
        key: Key,
        waiting: &Waiting,
        report: &mut ReadReport,
        sink: &mut dyn StepSink,
    ) -> ControlFlow<()> {
        // A whole message arrives, if only after so many others that it counts as sent then.
        if !matches!(key, Key::Whole(..)) {
            self.unmatched(waiting, report);
        }
        if waiting.half.received {
            return ControlFlow::Continue(());
        }
        self.free.push(waiting.token);
        let what = What::Lost(waiting.token);
        sink.step(names, &MessageStep { time: waiting.time, file: waiting.file, line: waiting.line, what })
    }

    fn unmatched(&self, waiting: &Waiting, report: &mut ReadReport) {
        let place = self.place(waiting.file, waiting.line);
        if waiting.half.received {
            report.count("reception without a sending", || {
                Diagnostic::warning(
                    codes::NO_SENDING,
                    place,
                    "this message was received, but its sending was not recorded",
                )
                .with_note("it was left out")
                .with_hint(OTHER_HALF)
            });
        } else {
            report.count("sending without a reception", || {
                Diagnostic::warning(
                    codes::NO_RECEPTION,
                    place,
                    "this message was sent, but its reception was not recorded",
                )
                .with_note("it was left out; the last messages of a trace are often in transit when it ends")
                .with_hint(OTHER_HALF)
            });
        }
    }

    fn place(&self, file: u16, line: u32) -> Place {
        self.files.get(usize::from(file)).map_or(Place::Nowhere, |file| at(file, line))
    }

    /// Notes how long a message took.
    fn delay(&mut self, ends: (Clock, Clock), delay: f64) {
        if delay < 0.0 {
            self.early(ends, delay);
        } else if let Some(skew) = self.skews.get_mut(&ends) {
            skew.least = skew.least.min(delay);
        } else if matches!(ends.0, Clock::File(_)) || self.skews.contains_key(&(ends.1, ends.0)) {
            self.skews.insert(ends, Skew { least: delay, early: 0 });
        }
    }

    fn early(&mut self, ends: (Clock, Clock), delay: f64) {
        let skew = self.skews.entry(ends).or_insert(Skew { least: delay, early: 0 });
        skew.least = skew.least.min(delay);
        skew.early += 1;
    }

    /// Gives up what still waits, and tells of clocks that differ.
    pub fn finish(&mut self, names: &TraceNames, report: &mut ReadReport, sink: &mut dyn StepSink) -> ControlFlow<()> {
        let halves = self.waiting.drain().flat_map(|(key, queue)| queue.into_iter().map(move |waiting| (key, waiting)));
        let mut left: Vec<(Key, Waiting)> = halves.collect();
        left.sort_unstable_by_key(|(_, waiting)| waiting.number);
        self.order.clear();
        self.count = 0;
        self.tell_skews(names, report);
        for (key, waiting) in left {
            self.give_up(names, key, &waiting, report, sink)?;
        }
        ControlFlow::Continue(())
    }

    fn tell_skews(&self, names: &TraceNames, report: &mut ReadReport) {
        let mut skews: Vec<_> = self.skews.iter().filter(|(_, skew)| skew.early > 0).collect();
        let order = |clock: Clock| match clock {
            Clock::File(file) => (0, usize::from(file)),
            Clock::Task(task) => (1, task.index()),
        };
        skews.sort_unstable_by_key(|((from, to), _)| (order(*from), order(*to)));
        for (&(from, to), skew) in skews {
            let name = |clock: Clock| match clock {
                Clock::File(file) => self.files.get(usize::from(file)).map_or_else(String::new, ToString::to_string),
                Clock::Task(task) => names.task_label(task),
            };
            let (sender, receiver) = (name(from), name(to));
            let place = match from {
                Clock::File(file) => self.files.get(usize::from(file)),
                Clock::Task(_) => self.files.first(),
            };
            let place = place.map_or(Place::Nowhere, |file| Place::File { file: Arc::clone(file) });
            let ahead = -skew.least;
            let message = format!(
                "{} from `{sender}` to `{receiver}` {}, by up to {ahead:.9} s",
                if skew.early == 1 { "1 message".to_owned() } else { format!("{} messages", skew.early) },
                if skew.early == 1 { "was received before it was sent" } else { "were received before they were sent" },
            );
            let synchronise = "synchronise the clocks, or record identifiers of messages at both ends";
            let (note, hint) = match self.skews.get(&(to, from)).map(|back| back.least) {
                Some(back) if back < ahead => (
                    "no constant correction of the two clocks can put these messages and those in the other direction into \
                     causal order"
                        .to_owned(),
                    synchronise.to_owned(),
                ),
                Some(back) => (
                    format!(
                        "the clocks of the two differ: by these messages and those in the other direction, that of `{sender}` is \
                         ahead by {ahead:.9} to {back:.9} s; other messages between them may stand in the wrong order"
                    ),
                    format!(
                        "take as much off the times of `{sender}`, by `--clock '{sender}={:.9}'`, or {synchronise}",
                        -f64::midpoint(ahead, back)
                    ),
                ),
                None => (
                    "the clocks of the two differ; other messages between them may stand in the wrong order".to_owned(),
                    synchronise.to_owned(),
                ),
            };
            report.tally("message received before it was sent", skew.early);
            report.findings.push(
                Diagnostic::warning(codes::NOT_CAUSAL, place, message)
                    .with_note(note)
                    .with_note("such a message is taken to arrive when it is sent")
                    .with_hint(hint),
            );
        }
        report.trim();
    }
}

fn key_of(half: &Half) -> Key {
    if half.id != 0 {
        return Key::Id(half.id);
    }
    match half.peer {
        Some(peer) if half.received => Key::Pair(peer, half.task, half.label),
        Some(peer) => Key::Pair(half.task, peer, half.label),
        None => Key::Label(half.label),
    }
}

fn label_of(one: &Half, other: &Half) -> Name {
    if one.label.is_some() { one.label } else { other.label }
}

fn received(sent: &Waiting, half: &Half, time: f64) -> What {
    What::Receive {
        to: half.task,
        token: sent.token,
        label: label_of(&sent.half, half),
        from: sent.half.task,
        sent: sent.time,
        took: time - sent.time,
    }
}
