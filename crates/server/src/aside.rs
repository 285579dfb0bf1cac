//! Spans that were set aside: of which time, and why.

use std::collections::BTreeMap;

use dyelog::diagnostic::quantity::counted;
use dyelog::diagnostic::{Code, Diagnostic, Place, Severity};
use dyelog::model::codes::FRAGMENTS;
use dyelog::trace::codes::{BAD_MESSAGE, DEPLOYMENTS, IMPOSSIBLE_TIME, LOST_RECORDS, NEGATIVE_DURATION};

use crate::store::LEVELS;

/// The most pairs of interval and reason in memory. A span beyond them counts in the interval of its arrival, so that hostile times take no more memory.
const MOST: usize = 4096;

/// Why a span is set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It ends before it begins.
    Backwards,
    /// It ends more than a day from now.
    Ahead,
    /// Its begin is no time at which anything can have happened.
    NoTime,
    /// The reduction cannot read it.
    Unread,
    /// It was open when its journal went.
    Lost,
    /// It is none, but an operation: its beginning came so late that what it had asked before was folded without it. It was not set aside.
    Halved,
    /// It names another environment than the one that is taken, or another namespace.
    Environment,
    /// Its service is one too many.
    Services,
}

impl Why {
    const ALL: [Self; 8] = [
        Self::Backwards,
        Self::Ahead,
        Self::NoTime,
        Self::Unread,
        Self::Lost,
        Self::Halved,
        Self::Environment,
        Self::Services,
    ];

    /// Its number in stores.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The one of a number.
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.number() == number)
    }

    fn code(self) -> Code {
        match self {
            Self::Backwards => NEGATIVE_DURATION,
            Self::Ahead | Self::NoTime => IMPOSSIBLE_TIME,
            Self::Unread => BAD_MESSAGE,
            Self::Lost | Self::Services => LOST_RECORDS,
            Self::Halved => FRAGMENTS,
            Self::Environment => DEPLOYMENTS,
        }
    }

    /// What they did, in words.
    fn words(self) -> &'static str {
        match self {
            Self::Backwards => "end before they begin",
            Self::Ahead => "end more than a day after they came",
            Self::NoTime => {
                "begin before 2000 or more than a day after they came: of unknown time, they came in this period"
            }
            Self::Unread => "cannot be read",
            Self::Lost => "were open when their journal went: of unknown time, that was found in this period",
            Self::Halved => "ended so long after what they had asked that this was folded without them",
            Self::Environment => "name another environment or namespace than the one that the server takes",
            Self::Services => "are of services beyond those that the server tells apart",
        }
    }
}

/// Numbers of spans by the begin of an interval, nanoseconds since 1970, and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aside(BTreeMap<(u64, Why), u64>);

impl Aside {
    /// Adds spans of a time; `came` is when they came, which stands for a time that nobody knows.
    pub fn add(&mut self, time: Option<u64>, came: u64, why: Why, spans: u64) {
        let begin = |time: u64| time / LEVELS[0].length * LEVELS[0].length;
        let key = (begin(time.unwrap_or(came)), why);
        let has_room = self.0.len() < MOST || self.0.contains_key(&key);
        let key = match why {
            _ if has_room => key,
            Why::Halved | Why::Environment | Why::Services => (begin(came), why),
            _ => (begin(came), Why::NoTime),
        };
        if spans > 0 {
            *self.0.entry(key).or_default() += spans;
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Why, u64)> + '_ {
        self.0.iter().map(|((start, why), spans)| (*start, *why, *spans))
    }

    /// All of that is in the store.
    pub fn stored(&mut self) {
        self.0.clear();
    }
}

/// What was set aside in a period, by reason, as warnings, as a note where it was to be, and how many of its operations may count twice, where the beginnings of so many are not known.
pub fn findings(spans: &BTreeMap<Why, u64>, headless: u64) -> Vec<Diagnostic> {
    let told = |(why, spans): (&Why, &u64)| {
        if *why == Why::Halved {
            return halved((*spans).min(headless), *why);
        }
        let message = format!("{} of this period were set aside: they {}", counted(*spans, "span"), why.words());
        if *why == Why::Environment {
            // That is what was asked for.
            return Some(Diagnostic::new(Severity::Note, why.code(), Place::Nowhere, message));
        }
        let note = "the model is without them: rates are lower by as many operations, and calls to them have nobody who answers";
        Some(Diagnostic::warning(why.code(), Place::Nowhere, message).with_note(note))
    };
    spans.iter().filter_map(told).collect()
}

/// That so many operations may count twice.
fn halved(operations: u64, why: Why) -> Option<Diagnostic> {
    let message = format!("{} of this period may count twice: they {}", counted(operations, "operation"), why.words());
    let finding = Diagnostic::warning(why.code(), Place::Nowhere, message)
        .with_note("what was folded then are operations whose beginning is not known, and it could not be put together with them")
        .with_hint("`--limit` of the server is how long it waits for the next span of a trace");
    (operations > 0).then_some(finding)
}
