//! Numbers as they stand in a picture: three digits that count.

use crate::diagnostic::quantity::significant;
use crate::lqn::{Body, Entry, Multiplicity, Work};

/// A number with three digits that count, such as `0.00276`, `12.5`, `1230`.
pub(super) fn short(value: f64) -> String {
    significant(value, 3, -5..7)
}

/// Means of requests as they stand at an arc: `(2)`, `(1, 0.5)`.
pub(super) fn means(means: &[f64]) -> String {
    format!("({})", list(means.iter().copied()))
}

fn list(values: impl Iterator<Item = f64>) -> String {
    values.map(short).collect::<Vec<_>>().join(", ")
}

/// Demands by phase as they stand in an entry: `[0.5, 1]`, or with a unit `[1.16, 1.74] ms`.
pub(super) fn demands(values: &[f64], seconds: bool) -> String {
    if !seconds {
        return format!("[{}]", list(values.iter().copied()));
    }
    let largest = values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let (scale, unit) = scale(largest);
    format!("[{}] {unit}", list(values.iter().map(|value| value * scale)))
}

/// A time, with a unit where it is in seconds.
pub(super) fn time(value: f64, seconds: bool) -> String {
    if !seconds {
        return short(value);
    }
    let (scale, unit) = scale(value);
    format!("{} {unit}", short(value * scale))
}

fn scale(seconds: f64) -> (f64, &'static str) {
    match seconds {
        _ if seconds >= 1.0 => (1.0, "s"),
        _ if seconds >= 1e-3 || seconds == 0.0 => (1e3, "ms"),
        _ => (1e6, "µs"),
    }
}

/// The demands of an entry, where it has phases of its own, and how long these are delayed.
pub(super) fn entry_demands(entry: &Entry, seconds: bool) -> Option<String> {
    let Body::Phases(phases) = &entry.body else { return None };
    let values: Vec<f64> = phases.iter().map(|work| work.demand).collect();
    let demands = demands(if values.is_empty() { &[0.0] } else { &values }, seconds);
    Some(demands + &delay(phases.iter().map(|work| work.think_time).sum(), seconds))
}

/// The demand of an activity, and how long it is delayed.
pub(super) fn activity_demand(work: &Work, seconds: bool) -> String {
    format!("[{}]{}", time(work.demand, seconds), delay(work.think_time, seconds))
}

/// Time in which no processor works; nothing where there is none.
fn delay(value: f64, seconds: bool) -> String {
    if value == 0.0 { String::new() } else { format!(" + {}", time(value, seconds)) }
}

/// A multiplicity in braces; nothing for one.
pub(super) fn braces(multiplicity: Multiplicity, replicas: u32) -> String {
    let servers = match multiplicity {
        Multiplicity::Finite(1) => String::new(),
        Multiplicity::Finite(count) => format!("{{{count}}}"),
        Multiplicity::Infinite => "{∞}".to_owned(),
    };
    let copies = if replicas > 1 { format!("×{replicas}") } else { String::new() };
    match (servers.is_empty(), copies.is_empty()) {
        (false, false) => format!("{servers} {copies}"),
        _ => servers + &copies,
    }
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", short((share * 1000.0).round() / 10.0))
}

#[cfg(test)]
mod tests {
    use super::{demands, means, percent, short, time};

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (0.002_763, "0.00276"),
            (1234.4, "1234"),
            (2e9, "2.00e9"),
            (99.96, "100"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(means(&[1.0, 0.5]), "(1, 0.5)");
        assert_eq!(demands(&[0.001_164, 0.001_739], true), "[1.16, 1.74] ms");
        assert_eq!(demands(&[0.1, 2.0], false), "[0.1, 2]");
        assert_eq!(time(3e-5, true), "30 µs");
        assert_eq!(percent(0.18215), "18.2%");
    }
}
