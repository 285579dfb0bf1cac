//! A recorder into memory, and what the analysis makes of its records.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyelog_callgraph::{Input, Options, Profile, analyse};
use dyelog_probe::{Form, Mode, Recorder, Summary};

/// A process has one recorder; tests take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that a recorder writes to.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was recorded, in both forms.
pub struct Recorded {
    pub summary: Summary,
    pub binary: Vec<u8>,
    pub lines: Vec<u8>,
}

/// Records what `act` does.
pub fn record<R>(mode: Mode, act: impl FnOnce() -> R) -> (R, Recorded) {
    let _alone = alone();
    let (binary, lines) = (Memory::default(), Memory::default());
    let recorder = Recorder::of("test")
        .processor("host")
        .mode(mode)
        .sink(Form::Binary, binary.clone())
        .sink(Form::Lines, lines.clone())
        .start()
        .expect("tests take turns");
    let result = act();
    let summary = recorder.finish();
    (result, Recorded { summary, binary: binary.bytes(), lines: lines.bytes() })
}

impl Recorded {
    /// The profile of the records; both forms must say the same.
    pub fn profile(&self) -> Profile {
        let [binary, lines] = [&self.binary, &self.lines].map(|bytes| profile(bytes));
        assert_eq!(tree(&binary), tree(&lines), "the binary form and JSON Lines differ");
        let totals = [&binary, &lines].map(|profile| (profile.contexts.total(), profile.abnormal.len()));
        assert_eq!(totals[0], totals[1]);
        binary
    }

    /// The calls by path, of records in which nothing is amiss.
    pub fn sound(&self) -> BTreeMap<String, u64> {
        let profile = self.profile();
        assert!(profile.abnormal.is_empty(), "{:?}\n{}", profile.abnormal, String::from_utf8_lossy(&self.lines));
        assert!(self.summary.is_clean(), "{}", self.summary);
        assert_eq!(self.summary.records, profile.reading.records * 2, "a record in each of two outputs");
        tree(&profile)
    }
}

pub fn profile(bytes: &[u8]) -> Profile {
    let options = Options { keep_calls: usize::MAX, ..Options::default() };
    analyse(vec![Input::new("records", bytes)], &options).expect("they are records")
}

/// How often each path of calls was taken.
pub fn tree(profile: &Profile) -> BTreeMap<String, u64> {
    let calls = profile.calls.as_ref().expect("they were asked for");
    let mut paths = BTreeMap::new();
    for number in 0..calls.calls().len() {
        let mut path = Vec::new();
        let mut at = Some(number);
        while let Some(call) = at {
            path.push(profile.label(calls.calls()[call].key, true));
            at = calls.parent(call);
        }
        path.reverse();
        *paths.entry(path.join(" > ")).or_default() += 1;
    }
    paths
}

/// Paths as a test writes them down.
pub fn paths(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
    list.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()
}

/// Uses the processor for a while.
pub fn work(rounds: u64) -> u64 {
    (0..rounds).fold(rounds, |hash, round| std::hint::black_box((hash ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}
