//! Numbers and terms as text.

use std::ops::Range;

use crate::lqn::results::Caller;
use crate::lqn::{CallKind, Multiplicity, Scheduling};

/// A number with four digits that count, such as `0.002763`, `12.5`, `1234`.
pub fn number(value: f64) -> String {
    counting(value, 4, -6..15)
}

/// A number with so many digits that count; with an exponent where its magnitude is not one of these powers of ten.
pub(super) fn counting(value: f64, digits: u8, plain: Range<i32>) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let behind = i32::from(digits) - 1;
    let magnitude = value.abs().log10().floor() as i32;
    if !plain.contains(&magnitude) {
        return format!("{value:.*e}", usize::from(digits - 1));
    }
    let digits = usize::try_from(behind - magnitude).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// So many of something: `1 trace`, `2 traces`.
pub fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
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

/// The phase of a caller, where it is not the first.
pub fn later_phase(caller: Caller) -> Option<u8> {
    match caller {
        Caller::Phase(_, phase) if phase > 1 => Some(phase),
        _ => None,
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
