//! Damage, by name: what does not fit the state machine, how often, and where it was met first.

use crate::record::{ChainId, Probe, Record, Tables};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $says:literal;)+) => {
        /// A kind of damage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// The name in JSON, such as `lost`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// What it means, in a few words.
            pub fn says(self) -> &'static str {
                match self {
                    $(Self::$kind => $says,)+
                }
            }
        }
    };
}

kinds! {
    /// Event numbers that are missing.
    Lost = "lost", "events of a chain are missing";
    /// A record beyond the window of reordering, whose place was passed.
    Late = "late", "a record comes after its place was passed";
    /// A record that stands there twice.
    Duplicate = "duplicate", "a record stands there twice";
    /// Two different records with one number in one chain.
    Conflict = "conflict", "two different records claim one place in a chain";
    /// A stub start where none can be.
    StubStart = "unexpected_stub_start", "a call starts where none can";
    /// A skeleton start where none can be.
    SkelStart = "unexpected_skel_start", "a skeleton starts without its stub";
    /// A skeleton end where none can be.
    SkelEnd = "unexpected_skel_end", "a skeleton ends that did not start";
    /// A stub end where none can be.
    StubEnd = "unexpected_stub_end", "a call ends out of place";
    /// A thread start where none can be.
    ThreadStart = "unexpected_thread_start", "a thread starts where none can";
    /// A thread end where none can be.
    ThreadEnd = "unexpected_thread_end", "a thread ends out of place";
    /// A call or a thread without an end.
    Unfinished = "unfinished", "a call or a thread has no end";
    /// A synchronous call whose function left no record.
    MissingSkeleton = "missing_skeleton", "the function of a call left no record";
    /// A one-way call whose function left no record.
    LostChain = "lost_chain", "the function of a one-way call left no record";
    /// A chain that begins with a skeleton, and has no recorded start.
    OrphanChain = "orphan_chain", "nobody started a chain that is no root";
    /// Two records that start the same chain.
    ChildTwice = "child_twice", "two records start the same chain";
    /// A one-way call that arrives at another function.
    Mismatched = "mismatched", "a call arrives at another function";
    /// More time passed in children than in the whole.
    NegativeTime = "negative_time", "children took longer than the whole";
    /// A probe that ends before it begins.
    ClockBackwards = "clock_backwards", "a probe ends before it begins";
    /// A call whose own time cannot be told.
    Unmeasured = "unmeasured", "the time of a call cannot be told";
    /// Times that sum to more than 292 years.
    Overflow = "overflow", "times sum to more than 292 years";
    /// Lines that are no records, and damages of binary files.
    Unreadable = "unreadable", "a line is not a record";
}

impl Kind {
    pub(crate) fn unexpected(probe: Probe) -> Self {
        match probe {
            Probe::StubStart => Self::StubStart,
            Probe::SkelStart => Self::SkelStart,
            Probe::SkelEnd => Self::SkelEnd,
            Probe::StubEnd => Self::StubEnd,
            Probe::ThreadStart => Self::ThreadStart,
            Probe::ThreadEnd => Self::ThreadEnd,
        }
    }
}

/// A record, by where it stands and by its number in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) file: u16,
    pub(crate) line: u32,
    pub(crate) event: u32,
    pub(crate) chain: ChainId,
}

impl Spot {
    pub(crate) const NOWHERE: Self = Self { file: u16::MAX, line: u32::MAX, event: 0, chain: ChainId::NONE };

    pub(crate) fn of(record: &Record) -> Self {
        Self { file: record.file, line: record.line, event: record.event, chain: record.chain }
    }
}

/// Where a kind of damage was met first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The number of the file, in the order in which files were given.
    pub file: usize,
    /// The line, or the number of the record in a binary file, from 1.
    pub line: u32,
    /// The chain.
    pub chain: String,
    /// The number of the record in the chain.
    pub event: u32,
}

/// A kind of damage that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abnormal {
    /// The kind.
    pub kind: Kind,
    /// How often.
    pub count: u64,
    /// Where it was met first, in the order of the files, if a record tells.
    pub first: Option<First>,
}

/// Counts by kind.
#[derive(Clone, Debug)]
pub(crate) struct Counts(Vec<(u64, Spot)>);

impl Default for Counts {
    fn default() -> Self {
        Self(vec![(0, Spot::NOWHERE); Kind::ALL.len()])
    }
}

impl Counts {
    pub(crate) fn add(&mut self, kind: Kind, count: u64, spot: Spot) {
        let (known, first) = &mut self.0[kind as usize];
        *known += count;
        *first = (*first).min(spot);
    }

    /// Whether a kind of damage was met first in this chain.
    pub(crate) fn name(&self, chain: ChainId) -> bool {
        self.0.iter().any(|(_, first)| first.chain == chain)
    }

    pub(crate) fn one(&mut self, kind: Kind, spot: Spot) {
        self.add(kind, 1, spot);
    }

    pub(crate) fn list(&self, tables: &Tables) -> Vec<Abnormal> {
        let met = Kind::ALL.iter().zip(&self.0).filter(|(_, (count, _))| *count > 0);
        met.map(|(kind, (count, spot))| {
            let first = (*spot != Spot::NOWHERE).then(|| First {
                file: usize::from(spot.file),
                line: spot.line,
                chain: tables.chain_text(spot.chain).to_owned(),
                event: spot.event,
            });
            Abnormal { kind: *kind, count: *count, first }
        })
        .collect()
    }
}
