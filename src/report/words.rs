//! Numbers and terms as text.

use crate::lqn::results::Caller;
use crate::lqn::{CallKind, Model, Multiplicity, Scheduling};

/// A number with four digits that count, such as `0.002763`, `12.5`, `1234`.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-6..15).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let digits = usize::try_from(3 - magnitude).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// How many servers.
pub fn multiplicity(multiplicity: Multiplicity) -> String {
    match multiplicity {
        Multiplicity::Finite(servers) => servers.to_string(),
        Multiplicity::Infinite => "infinite".to_owned(),
    }
}

/// An order of service.
pub fn scheduling(scheduling: Scheduling) -> &'static str {
    match scheduling {
        Scheduling::Fcfs => "FCFS",
        Scheduling::HeadOfLine => "head of line",
        Scheduling::PreemptivePriority => "pre-emptive",
        Scheduling::Delay => "delay",
        Scheduling::Random => "random",
        Scheduling::ProcessorSharing => "PS",
        Scheduling::CompletelyFair => "fair share",
        Scheduling::Reference => "reference",
        Scheduling::Burst => "burst",
        Scheduling::Polling => "polling",
        Scheduling::Semaphore => "semaphore",
        Scheduling::ReadWriteLock => "read-write lock",
    }
}

/// Kinds of calls, as the machine forms name them.
pub fn kind(kind: Option<CallKind>) -> &'static str {
    match kind {
        Some(CallKind::Synchronous) => "sync",
        Some(CallKind::Asynchronous) => "async",
        None => "forward",
    }
}

/// The name of the entry or activity that calls.
pub fn caller(model: &Model, caller: Caller) -> &str {
    match caller {
        Caller::Phase(entry, _) | Caller::Forward(entry) => &model.entries[entry.index()].name,
        Caller::Activity(activity) => &model.activities[activity.index()].name,
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_four_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.002_763_4, "0.002763"),
            (12.5, "12.5"),
            (1234.4, "1234"),
            (98765.0, "98765"),
            (-0.5, "-0.5"),
            (1e-9, "1.000e-9"),
            (3e20, "3.000e20"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
