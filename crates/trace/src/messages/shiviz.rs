//! Logs with vector clocks, as `ShiViz` shows them.
//!
//! ```text
//! alice {"alice":2, "westDC":3}
//! GET /timeline
//! ```
//!
//! A clock stands anywhere in a line, as a JSON object of hosts and whole numbers; the host whose event it is stands before it.
//! Everything else is text. A clock that raises another host's entry received a message, from the event with that entry's
//! value; where several are raised, from those that do not lie in the past of another one. Clocks tell an order and no times. A
//! line `=== … ===` or a clock that starts again begins another execution.
//!
//! Hosts' events may stand in any order, so that an execution is read whole before its first event is given out.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::lines::{Line, Lines};
use crate::messages::table::digest;
use crate::messages::{Half, Raw, RawWhat, Source, at};
use crate::read::failed;
use crate::{ReadReport, TaskId, TraceNames, codes};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity};

/// The most numbers that the clocks of one execution may hold.
const MOST: usize = 1 << 25;

/// A log with vector clocks.
pub struct Shiviz<R> {
    file: Arc<str>,
    lines: Lines<R>,
    strict: bool,
    report: ReadReport,
    execution: Vec<Clocked>,
    held: usize,
    /// Hosts whose first event came already.
    begun: FxHashSet<TaskId>,
    executions: u64,
    out: VecDeque<Raw>,
    /// The clock that began the execution to come.
    carried: Option<Clocked>,
    ended: bool,
}

/// An event with its clock, by host.
#[derive(Clone, Debug, PartialEq)]
struct Clocked {
    host: TaskId,
    line: u32,
    clock: Vec<(TaskId, u64)>,
}

impl Clocked {
    fn of(&self, host: TaskId) -> u64 {
        self.clock.binary_search_by_key(&host, |(host, _)| *host).map_or(0, |place| self.clock[place].1)
    }

    fn own(&self) -> u64 {
        self.of(self.host)
    }
}

impl<R: Read> Shiviz<R> {
    /// A log.
    pub fn open(file: &str, input: R, strict: bool) -> Self {
        Self {
            file: file.into(),
            lines: Lines::new(input),
            strict,
            report: ReadReport::default(),
            execution: Vec::new(),
            held: 0,
            begun: FxHashSet::default(),
            executions: 0,
            out: VecDeque::new(),
            carried: None,
            ended: false,
        }
    }

    /// Reads on to the end of an execution.
    fn read_execution(&mut self, names: &mut TraceNames) -> Result<(), Diagnostics> {
        if let Some(first) = self.carried.take() {
            self.keep(first);
        }
        let mut line_before: Option<String> = None;
        loop {
            let number = self.lines.number().saturating_add(1);
            let line = self.lines.next().map_err(|error| failed(&self.file, &error))?;
            let Some(line) = line else {
                self.ended = true;
                return Ok(());
            };
            let Line::Text(bytes) = line else { continue };
            let text = String::from_utf8_lossy(bytes).into_owned();
            if text.starts_with("===") {
                if !self.execution.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let Some((before, after, clock)) = clock(&text) else {
                line_before = Some(text);
                continue;
            };
            match host(before, after, line_before.take().as_deref(), &clock).map(str::to_owned) {
                Some(host) => {
                    let mut event = event(&host, clock, names);
                    event.line = number;
                    if event.own() == 1 && self.begun.contains(&event.host) {
                        self.carried = Some(event);
                        return Ok(());
                    }
                    self.keep(event);
                }
                None => self.bad(number, "the clock has no host")?,
            }
            if self.held > MOST {
                let place = at(&self.file, number);
                let message = "the clocks of this execution are too many to be put in order";
                return Err(Diagnostic::error(codes::BAD_CLOCK, place, message).into());
            }
        }
    }

    fn keep(&mut self, event: Clocked) {
        if event.own() == 1 {
            self.begun.insert(event.host);
        }
        self.held += event.clock.len() + 4;
        self.execution.push(event);
    }

    fn bad(&mut self, line: u32, message: &str) -> Result<(), Diagnostics> {
        let finding = Diagnostic::warning(codes::BAD_CLOCK, at(&self.file, line), message);
        if self.strict {
            return Err(Diagnostic { severity: Severity::Error, ..finding }.into());
        }
        self.report.count("clock that cannot be used", || finding.with_note("this event was left out"));
        Ok(())
    }

    /// Finds the messages of the execution, in an order that agrees with the clocks.
    fn order(&mut self, names: &TraceNames) -> Result<(), Diagnostics> {
        let mut events = std::mem::take(&mut self.execution);
        self.held = 0;
        self.begun.clear();
        self.executions += 1;
        // A clock holds all that lies in its past, so that its sum is greater than theirs.
        let sum = |event: &Clocked| event.clock.iter().map(|(_, value)| u128::from(*value)).sum::<u128>();
        events.sort_by_cached_key(sum);
        let mut known: FxHashMap<(TaskId, u64), usize> = FxHashMap::default();
        let mut latest: FxHashMap<TaskId, usize> = FxHashMap::default();
        // What each event sends and receives, as numbers of messages.
        let mut sends: Vec<Vec<u64>> = vec![Vec::new(); events.len()];
        let mut receives: Vec<Vec<u64>> = vec![Vec::new(); events.len()];
        let mut next = 0;
        for (place, event) in events.iter().enumerate() {
            if known.insert((event.host, event.own()), place).is_some() {
                self.bad(event.line, "the host has another event with this clock")?;
                continue;
            }
            let before = latest.insert(event.host, place);
            let raised: Vec<(TaskId, u64)> = event
                .clock
                .iter()
                .copied()
                .filter(|(host, value)| {
                    *host != event.host && *value > before.map_or(0, |before| events[before].of(*host))
                })
                .collect();
            let senders: Vec<Option<usize>> = raised.iter().map(|sender| known.get(sender).copied()).collect();
            for (number, &(host, value)) in raised.iter().enumerate() {
                let sender = senders[number];
                let mut others = senders.iter().flatten().filter(|&&other| Some(other) != sender);
                if others.any(|&other| events[other].of(host) >= value) {
                    // It came through another one.
                    continue;
                }
                let Some(sender) = sender else {
                    let (file, from) = (&self.file, names.task_label(host));
                    self.report.count("reception without a sending", || {
                        let message = format!("this event knows of event {value} of `{from}`, which is not in the log");
                        Diagnostic::warning(codes::NO_SENDING, at(file, event.line), message)
                            .with_note("the message that told it was left out")
                    });
                    continue;
                };
                next += 1;
                sends[sender].push(next);
                receives[place].push(next);
            }
        }
        for ((event, sends), receives) in events.iter().zip(&sends).zip(&receives) {
            let mut half = |received, number: u64| {
                let id = digest(&format!("{} {number}", self.executions));
                let half = Half { received, task: event.host, peer: None, label: Name::NONE, id };
                self.out.push_back(Raw { time: f64::NAN, line: event.line, what: RawWhat::Half(half) });
            };
            for number in receives {
                half(true, *number);
            }
            for number in sends {
                half(false, *number);
            }
        }
        Ok(())
    }
}

impl<R: Read> Source for Shiviz<R> {
    fn next(&mut self, names: &mut TraceNames) -> Result<Option<Raw>, Diagnostics> {
        loop {
            if let Some(raw) = self.out.pop_front() {
                return Ok(Some(raw));
            }
            if self.ended {
                return Ok(None);
            }
            self.read_execution(names)?;
            self.order(names)?;
        }
    }

    fn report(&mut self) -> &mut ReadReport {
        &mut self.report
    }

    fn file(&self) -> &Arc<str> {
        &self.file
    }
}

/// The entries of a clock, by host.
type Entries = Vec<(String, u64)>;

/// The clock in a line: the text before it, that after it, and its entries. In a text of text, as model checkers print it, quotation marks
/// are escaped.
fn clock(line: &str) -> Option<(&str, &str, Entries)> {
    let mut from = 0;
    while let Some(start) = line[from..].find('{').map(|at| from + at) {
        if let Some(end) = line[start..].find('}').map(|end| start + end + 1)
            && let Some(clock) = entries(&line[start..end])
        {
            return Some((&line[..start], &line[end..], clock));
        }
        from = start + 1;
    }
    None
}

/// The entries of a JSON object of numbers.
fn entries(text: &str) -> Option<Entries> {
    // Most braces of a log are no clock.
    let map: std::collections::BTreeMap<String, u64> = match text[1..].trim_start().as_bytes() {
        [b'"', ..] => serde_json::from_str(text).ok()?,
        [b'\\', b'"', ..] => serde_json::from_str(&text.replace("\\\"", "\"")).ok()?,
        _ => return None,
    };
    (!map.is_empty()).then(|| map.into_iter().collect())
}

/// Whether a line holds a clock and the host that it belongs to.
pub(crate) fn is_clocked(line: &[u8]) -> bool {
    std::str::from_utf8(line)
        .is_ok_and(|line| clock(line).is_some_and(|(before, after, clock)| host(before, after, None, &clock).is_some()))
}

/// Whether a line holds a clock and before it the name of its host, as none but a log with clocks does.
pub(crate) fn names_its_host(line: &[u8]) -> bool {
    std::str::from_utf8(line)
        .is_ok_and(|line| clock(line).is_some_and(|(before, after, clock)| beside(before, after, &clock).is_some()))
}

/// The host that the text before a clock ends with.
fn named<'c>(before: &str, clock: &'c [(String, u64)]) -> Option<&'c str> {
    let before = before.trim_end_matches([' ', '\t', ']', ')', ':', '-', '|']);
    let hosts = clock.iter().map(|(host, _)| host.as_str());
    hosts.filter(|host| before.ends_with(host.trim_end_matches([']', ')']))).max_by_key(|host| host.len())
}

/// The host that stands next to its clock: before it, or as the first word after it.
fn beside<'c>(before: &str, after: &str, clock: &'c [(String, u64)]) -> Option<&'c str> {
    named(before, clock).or_else(|| {
        let first = after.split_whitespace().find_map(|word| Some(trimmed(word)).filter(|word| !word.is_empty()));
        clock.iter().map(|(host, _)| host.as_str()).find(|host| Some(trimmed(host)) == first)
    })
}

/// A word without what stands around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(|character: char| matches!(character, '[' | ']' | '(' | ')' | '"' | ':' | ',' | '-' | '|'))
}

/// What a line says of its host by name: `host=a`, or `/\ Host = "a"` in a state of a model checker.
fn told(text: &str) -> Option<&str> {
    let (_, rest) = text.match_indices(['h', 'H']).find_map(|(at, _)| {
        let begins = !text[..at].ends_with(char::is_alphanumeric);
        let word = text.get(at..at + 4).filter(|word| begins && word.eq_ignore_ascii_case("host"))?;
        Some((word, text[at + 4..].trim_start_matches(['"', ' ']).strip_prefix(['=', ':'])?))
    })?;
    rest.split_whitespace().next().map(trimmed).filter(|host| !host.is_empty())
}

/// The host whose clock this is: the one beside the clock, else the one that its line or the line before says by name, else the only one.
fn host<'c>(before: &str, after: &str, line_before: Option<&str>, clock: &'c [(String, u64)]) -> Option<&'c str> {
    let find = |word: &str| clock.iter().map(|(host, _)| host.as_str()).find(|host| trimmed(host) == word);
    let told = || [Some(before), Some(after), line_before].into_iter().flatten().find_map(|text| find(told(text)?));
    beside(before, after, clock).or_else(told).or(match clock {
        [(host, _)] => Some(host),
        _ => None,
    })
}

fn event(host: &str, clock: Entries, names: &mut TraceNames) -> Clocked {
    let host = names.intern_task(host, 1);
    let mut clock: Vec<(TaskId, u64)> = clock
        .into_iter()
        .filter(|(_, value)| *value > 0)
        .map(|(host, value)| (names.intern_task(&host, 1), value))
        .collect();
    clock.sort_unstable();
    Clocked { host, line: 0, clock }
}
