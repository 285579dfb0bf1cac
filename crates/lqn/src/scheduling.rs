//! The words of the languages for the order of service.

use crate::{Scheduling, SemaphoreRole};

/// Letters of the text language for processors.
pub(super) const PROCESSOR_LETTERS: [(&str, Scheduling); 7] = [
    ("f", Scheduling::Fcfs),
    ("h", Scheduling::HeadOfLine),
    ("p", Scheduling::PreemptivePriority),
    ("i", Scheduling::Delay),
    ("r", Scheduling::Random),
    ("s", Scheduling::ProcessorSharing),
    ("c", Scheduling::CompletelyFair),
];

/// Letters of the text language for tasks; where two mean the same, the first is written.
pub(super) const TASK_LETTERS: [(&str, Scheduling); 10] = [
    ("r", Scheduling::Reference),
    ("n", Scheduling::Fcfs),
    ("f", Scheduling::Fcfs),
    ("h", Scheduling::HeadOfLine),
    ("p", Scheduling::PreemptivePriority),
    ("i", Scheduling::Delay),
    ("b", Scheduling::Burst),
    ("P", Scheduling::Polling),
    ("S", Scheduling::Semaphore),
    ("W", Scheduling::ReadWriteLock),
];

/// Words of XML and JSON; where several mean the same, the first is written.
pub(super) const WORDS: [(&str, Scheduling); 17] = [
    ("fcfs", Scheduling::Fcfs),
    ("hol", Scheduling::HeadOfLine),
    ("pri", Scheduling::PreemptivePriority),
    ("inf", Scheduling::Delay),
    ("rand", Scheduling::Random),
    ("ps", Scheduling::ProcessorSharing),
    ("cfs", Scheduling::CompletelyFair),
    ("ref", Scheduling::Reference),
    ("burst", Scheduling::Burst),
    ("poll", Scheduling::Polling),
    ("semaphore", Scheduling::Semaphore),
    ("rwlock", Scheduling::ReadWriteLock),
    ("ppr", Scheduling::PreemptivePriority),
    ("pp", Scheduling::PreemptivePriority),
    ("fifo", Scheduling::Fcfs),
    ("delay", Scheduling::Delay),
    ("random", Scheduling::Random),
];

/// Letters of the text language for the roles of a lock's entries.
pub(super) const ROLE_LETTERS: [(&str, SemaphoreRole); 6] = [
    ("P", SemaphoreRole::Signal),
    ("V", SemaphoreRole::Wait),
    ("R", SemaphoreRole::ReadLock),
    ("U", SemaphoreRole::ReadUnlock),
    ("W", SemaphoreRole::WriteLock),
    ("X", SemaphoreRole::WriteUnlock),
];

/// Words of XML (in its attributes `semaphore` and `rwlock`) and JSON for the roles of a lock's entries.
pub(super) const ROLE_WORDS: [(&str, SemaphoreRole); 6] = [
    ("signal", SemaphoreRole::Signal),
    ("wait", SemaphoreRole::Wait),
    ("r-lock", SemaphoreRole::ReadLock),
    ("r-unlock", SemaphoreRole::ReadUnlock),
    ("w-lock", SemaphoreRole::WriteLock),
    ("w-unlock", SemaphoreRole::WriteUnlock),
];

/// What a word stands for in a table.
pub(super) fn meaning<T: Copy>(table: &[(&'static str, T)], word: &str) -> Option<T> {
    table.iter().find(|(own, _)| *own == word).map(|&(_, value)| value)
}

/// The word for a value in a table.
pub(super) fn word<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> Option<&'static str> {
    table.iter().find(|(_, own)| *own == value).map(|&(word, _)| word)
}
