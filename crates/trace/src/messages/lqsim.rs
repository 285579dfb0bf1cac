//! Event traces of `lqsim`, the simulator of the LQN tool suite, as `-t task=.*,processor=.*,events=.*` writes them.
//!
//! ```text
//!  0.10546   client   client( 4): Entry client -- Sending RNV to task server1, entry entry1
//!  0.10546   worker  server1( 7): Entry entry1 -- Received msg from task client, entry client (t=0.10546)
//! ```
//!
//! What the format lacks is found so. Times have six significant digits, so that the order is that of the lines. A reception names
//! the sender's entry and the printed time of sending, and no number; a message without a reply (`SNR`) has no reception at all: it
//! is received when a free task of its addressee begins its entry without another message. A reply names entries alone, and a worker
//! whose processor is busy receives it later than it was sent. So each worker keeps two calls: the one that it serves, even where others
//! forwarded it, and the one whose reply it waits for. A customer's cycle begins with its first phase or activity. Ends of parallel
//! branches look like their joins, so that branches count as work of the task one after another.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::lines::{Line, Lines};
use crate::messages::table::{digest, shown};
use crate::messages::threads::Threads;
use crate::messages::{Event, Half, Raw, RawWhat, Source, at};
use crate::read::failed;
use crate::{ReadReport, TaskId, TraceNames, codes};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity};

/// An event trace of `lqsim`.
pub struct Lqsim<R> {
    file: Arc<str>,
    lines: Lines<R>,
    strict: bool,
    report: ReadReport,
    threads: Threads,
    state: State,
}

/// What is known of the simulated tasks.
#[derive(Default)]
struct State {
    instances: FxHashMap<u64, Instance>,
    /// Requests that were not received yet, by their ends and the printed time: the message, and the call that it is of.
    underway: FxHashMap<u64, VecDeque<(u64, Option<u64>)>>,
    /// Sendings without reply that were not received yet, by addressee's task and entry.
    unanswered: FxHashMap<u64, VecDeque<u64>>,
    next: u64,
    out: VecDeque<RawWhat>,
    forks: bool,
}

/// A simulated task's thread of control.
#[derive(Clone, Copy)]
struct Instance {
    task: TaskId,
    /// It was woken, and it is not told by what.
    ready: bool,
    /// It waits for its own branches.
    forked: bool,
    /// It sent something since it was last known to run.
    sent: bool,
    /// The call that it answers.
    serves: Option<u64>,
    /// The call whose reply it waits for.
    waits: Option<u64>,
    /// The thread that forked it, where it is a branch.
    root: Option<u64>,
    /// The first activity of its cycle, where it is a customer.
    first: Option<Name>,
}

/// The parts of a line.
struct Words<'a> {
    time: f64,
    stamp: &'a str,
    kind: &'a str,
    task: &'a str,
    number: &'a str,
    text: &'a str,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (stamp, rest) = line.trim_start().split_once(' ')?;
        let time: f64 = stamp.parse().ok()?;
        let (kind, rest) = rest.trim_start().split_once(' ')?;
        let (before, text) = rest.split_once("): ")?;
        let (task, number) = before.rsplit_once('(')?;
        time.is_finite().then_some(Self {
            time,
            stamp,
            kind,
            task: task.trim(),
            number: number.trim(),
            text: text.trim_end(),
        })
    }
}

impl<R: Read> Lqsim<R> {
    /// A trace.
    pub fn open(file: &str, input: R, strict: bool) -> Self {
        Self {
            file: file.into(),
            lines: Lines::new(input),
            strict,
            report: ReadReport::default(),
            threads: Threads::default(),
            state: State::default(),
        }
    }
}

impl<R: Read> Source for Lqsim<R> {
    fn next(&mut self, names: &mut TraceNames) -> Result<Option<Raw>, Diagnostics> {
        let mut time = f64::NAN;
        loop {
            let number = self.lines.number();
            let following = number.saturating_add(1);
            if let Some(what) = self.state.out.pop_front() {
                return Ok(Some(Raw { time, line: number, what }));
            }
            let Some(line) = self.lines.next().map_err(|error| failed(&self.file, &error))? else { return Ok(None) };
            let text = match line {
                Line::Text(bytes) => std::str::from_utf8(bytes).unwrap_or("\u{fffd}"),
                Line::TooLong => "\u{fffd}",
            };
            if text.trim().is_empty() {
                continue;
            }
            if let Some(words) = Words::of(text)
                && self.state.take(&words, &mut self.threads, names)
            {
                time = words.time;
                continue;
            }
            let place = at(&self.file, following);
            let text = shown(text);
            let finding = Diagnostic::warning(codes::BAD_ROW, place, format!("`{text}` is no event of lqsim"));
            if self.strict {
                return Err(Diagnostic { severity: Severity::Error, ..finding }.into());
            }
            self.report.count("row that cannot be read", || finding.with_note("this line was left out"));
        }
    }

    fn report(&mut self) -> &mut ReadReport {
        if std::mem::take(&mut self.state.forks) {
            let place = at(&self.file, 0);
            self.report.count("task with parallel branches", || {
                let message = "tasks of this trace run branches in parallel";
                Diagnostic::new(Severity::Note, codes::PARALLEL, place, message)
                    .with_note("the trace does not tell where they join, so they count as if one came after the other")
            });
        }
        &mut self.report
    }

    fn file(&self) -> &Arc<str> {
        &self.file
    }
}

impl State {
    /// Takes in a line; gives whether it says what it should.
    fn take(&mut self, words: &Words<'_>, threads: &mut Threads, names: &mut TraceNames) -> bool {
        let key = digest_of(&[words.task, words.number]);
        if words.kind == "multi" {
            return true;
        }
        // A branch of a task works for the task, under a number of its own.
        let instance = *self.instances.entry(key).or_insert_with(|| Instance {
            task: threads.task(names, words.task, words.number),
            ready: false,
            forked: false,
            sent: false,
            serves: None,
            waits: None,
            root: None,
            first: None,
        });
        let task = instance.task;
        if let Some(text) = words.text.strip_prefix("Computing [") {
            let seconds: Option<f64> = text.strip_suffix(']').and_then(|text| text.parse().ok());
            if std::mem::take(&mut self.instance(key).sent) {
                self.out.push_back(RawWhat::Other(Event::Run(task)));
            }
            let Some(seconds) = seconds.filter(|seconds| (0.0..f64::INFINITY).contains(seconds)) else { return false };
            self.out.push_back(RawWhat::Other(Event::Compute(task, seconds)));
        } else if let Some(text) = words.text.strip_prefix("Entry ") {
            return text
                .split_once(" -- ")
                .and_then(|(entry, text)| self.message(key, words, entry, text, names))
                .is_some();
        } else if let Some(text) = words.text.strip_prefix("Start activity ") {
            self.start(key, words, text.trim_end_matches('.'), names);
        } else if words.text == "Ready." {
            let instance = self.instance(key);
            instance.ready = !std::mem::take(&mut instance.forked);
        } else if words.text == "Waiting." {
            if words.kind != "thread" && !self.instance(key).forked {
                self.out.push_back(RawWhat::Other(Event::Idle(task)));
            }
        } else if words.text.contains("--FORK--") {
            self.instance(key).forked = true;
            self.forks = true;
        } else if let Some(number) = words.text.strip_prefix("Thread ").and_then(|text| text.strip_suffix(" created."))
        {
            let branch = Instance { forked: false, root: Some(instance.root.unwrap_or(key)), ..instance };
            self.instances.insert(digest_of(&[words.task, number]), branch);
        }
        true
    }

    fn instance(&mut self, key: u64) -> &mut Instance {
        self.instances.get_mut(&key).expect("every line's instance is entered first")
    }

    /// The thread that a branch is one of, or itself.
    fn root(&mut self, key: u64) -> &mut Instance {
        let root = self.instance(key).root.unwrap_or(key);
        self.instance(root)
    }

    /// An identifier that no other message has.
    fn fresh(&mut self, kind: &str) -> u64 {
        self.next += 1;
        digest_of(&[kind, &self.next.to_string()])
    }

    /// Takes the request that was sent first between two ends.
    fn first_underway(&mut self, ends: u64) -> Option<(u64, Option<u64>)> {
        let queue = self.underway.get_mut(&ends)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.underway.remove(&ends);
        }
        first
    }

    /// Takes in what an entry sends or receives; `None` where that is cut short.
    fn message(&mut self, key: u64, words: &Words<'_>, entry: &str, text: &str, names: &mut TraceNames) -> Option<()> {
        let task = self.instance(key).task;
        let half = |received, label, id| RawWhat::Half(Half { received, task, peer: None, label, id });
        if let Some(to) = text.strip_prefix("Sending RNV to task ") {
            let to = address(to)?;
            self.instance(key).sent = true;
            let ends = digest_of(&["request", words.task, entry, to.0, to.1, words.stamp]);
            let call = self.fresh("request");
            self.instance(key).waits = Some(call);
            self.underway.entry(ends).or_default().push_back((call, Some(call)));
            self.out.push_back(half(false, names.names.intern(to.1), call));
        } else if let Some(to) = text.strip_prefix("Sending SNR to task ") {
            let to = address(to)?;
            self.instance(key).sent = true;
            let id = self.fresh("unanswered");
            self.unanswered.entry(digest_of(&[to.0, to.1])).or_default().push_back(id);
            self.out.push_back(half(false, names.names.intern(to.1), id));
        } else if let Some(rest) = text.strip_prefix("Message from task ") {
            let to = rest.split_once(" forwarded to task ").and_then(|(_, to)| address(to))?;
            self.instance(key).sent = true;
            let ends = digest_of(&["forward", words.task, entry, to.0, to.1, words.stamp]);
            let (id, call) = (self.fresh("forward"), self.root(key).serves);
            self.underway.entry(ends).or_default().push_back((id, call));
            self.out.push_back(half(false, names.names.intern(to.1), id));
        } else if let Some(rest) = text.strip_prefix("Received msg from task ") {
            let (from, rest) = rest.split_once(" (t=")?;
            let (stamp, rest) = rest.split_once(')')?;
            let (kind, from) = match rest.strip_prefix(", forwarded via task ") {
                Some(via) => ("forward", via),
                None => ("request", from),
            };
            let from = address(from)?;
            self.instance(key).ready = false;
            let ends = digest_of(&[kind, from.0, from.1, words.task, entry, stamp]);
            // Of what was sent before the trace begins nothing else is known.
            let (id, call) = self.first_underway(ends).unwrap_or((ends, None));
            self.root(key).serves = call;
            self.out.push_back(half(true, names.names.intern(entry), id));
        } else if let Some(to) = text.strip_prefix("Reply sent to task ") {
            let to = address(to)?;
            let ends = || digest_of(&["reply", words.task, entry, to.0, to.1, words.stamp]);
            let id = self.root(key).serves.map_or_else(ends, reply_to);
            self.out.push_back(half(false, Name::NONE, id));
        } else if let Some(from) = text.strip_prefix("Reply received from task ") {
            let from = address(from)?;
            self.instance(key).sent = false;
            let ends = || digest_of(&["reply", from.0, from.1, words.task, entry, words.stamp]);
            let id = self.instance(key).waits.take().map_or_else(ends, reply_to);
            self.out.push_back(half(true, Name::NONE, id));
        }
        Some(())
    }

    fn start(&mut self, key: u64, words: &Words<'_>, text: &str, names: &mut TraceNames) {
        let task = self.instance(key).task;
        let entry = text.strip_prefix("Entry ").and_then(|text| text.split_once(" - Ph "));
        if words.kind == "client" {
            match entry {
                Some((entry, "1")) => {
                    let entry = names.names.intern(entry);
                    self.out.push_back(RawWhat::Other(Event::Begin(task, entry)));
                }
                Some(_) => {}
                None => {
                    let name = names.names.intern(text);
                    if *self.instance(key).first.get_or_insert(name) == name {
                        self.out.push_back(RawWhat::Other(Event::Begin(task, name)));
                    }
                }
            }
            return;
        }
        let ready = std::mem::take(&mut self.instance(key).ready);
        if let (true, Some((entry, "1"))) = (ready, entry)
            && let Some(id) = self.unanswered.get_mut(&digest_of(&[words.task, entry])).and_then(VecDeque::pop_front)
        {
            let label = names.names.intern(entry);
            self.out.push_back(RawWhat::Half(Half { received: true, task, peer: None, label, id }));
        } else if std::mem::take(&mut self.instance(key).sent) {
            self.out.push_back(RawWhat::Other(Event::Run(task)));
        }
    }
}

/// The identifier of the reply to a call.
fn reply_to(call: u64) -> u64 {
    digest_of(&["reply", &call.to_string()])
}

/// `server1, entry entry1`.
fn address(text: &str) -> Option<(&str, &str)> {
    text.split_once(", entry ")
}

fn digest_of(parts: &[&str]) -> u64 {
    parts.iter().fold(0, |sum, part| digest(part) ^ u64::rotate_left(sum, 7).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        | 1 << 63
}
