//! Numbers, times and shares as people read them in messages and tables.

use std::ops::Range;

/// A number with four significant digits, such as `0.002763`, `12.5`, `1234`.
pub fn number(value: f64) -> String {
    significant(value, 4, -6..15)
}

/// A number with so many significant digits. It has an exponent where its power of ten is not in `plain`.
pub fn significant(value: f64, digits: u8, plain: Range<i32>) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let behind = i32::from(digits) - 1;
    let magnitude = value.abs().log10().floor() as i32;
    if !plain.contains(&magnitude) {
        return format!("{value:.*e}", usize::from(digits.saturating_sub(1)));
    }
    let digits = usize::try_from(behind - magnitude).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A time given in seconds, with three significant digits in the unit that suits it: `12.3 s`, `2.16 ms`, `337 µs`, `80 ns`.
pub fn time(seconds: f64) -> String {
    let size = seconds.abs();
    // What a solver leaves of nothing.
    if size > 0.0 && size < 5e-10 {
        return "0 s".to_owned();
    }
    let (scale, unit) = match size {
        _ if size == 0.0 || !size.is_finite() => (1.0, "s"),
        _ if size < 1e-6 => (1e9, "ns"),
        _ if size < 1e-3 => (1e6, "µs"),
        _ if size < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{} {unit}", three(seconds * scale))
}

/// A time given in seconds, in milliseconds with three significant digits, so that latencies compare at a glance: `0.347 ms`.
pub fn milliseconds(seconds: f64) -> String {
    format!("{} ms", three(seconds * 1e3))
}

/// A time given in seconds as a number of milliseconds with four significant digits, for columns that have the unit in their heading:
/// `2.159`.
pub fn in_ms(seconds: f64) -> String {
    number(seconds * 1e3)
}

/// How people read values of a unit: the factor, and the unit that they have then. Times are in milliseconds, parts in per cent, all else is
/// as it was.
pub fn for_people(unit: &str) -> (f64, &str) {
    match unit {
        "s" => (1e3, "ms"),
        "part" => (100.0, "%"),
        other => (1.0, other),
    }
}

/// A share of one in per cent: `68 %`, and below ten per cent with three significant digits, `1.23 %`. A share that is no number
/// is a dash.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    format!("{} %", if share < 0.0995 { three(share * 100.0) } else { format!("{:.0}", share * 100.0) })
}

/// A count with its noun: `1 trace`, `2 traces`.
pub fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// A size of memory, rounded down: `512 B`, `20 kB`, `2000 MB`.
pub fn bytes(count: usize) -> String {
    if count < 10_000 {
        format!("{count} B")
    } else if count < 10_000_000 {
        format!("{} kB", count / 1000)
    } else {
        format!("{} MB", count / 1_000_000)
    }
}

/// Three significant digits.
fn three(value: f64) -> String {
    significant(value, 3, -10..15)
}

#[cfg(test)]
mod tests {
    use super::{counted, milliseconds, number, percent, time};

    #[test]
    fn numbers_have_four_significant_digits() {
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

    #[test]
    fn quantities_have_the_unit_that_suits_them() {
        for (seconds, text) in [(0.0, "0 s"), (0.002_159, "2.16 ms"), (0.000_336_7, "337 µs"), (12.34, "12.3 s")] {
            assert_eq!(time(seconds), text);
        }
        assert_eq!((milliseconds(0.000_346_8), milliseconds(0.04)), ("0.347 ms".into(), "40 ms".into()));
        assert_eq!((percent(0.677), percent(0.0123), percent(f64::NAN)), ("68 %".into(), "1.23 %".into(), "–".into()));
        assert_eq!((counted(1_u64, "trace"), counted(2_u64, "trace")), ("1 trace".into(), "2 traces".into()));
    }
}
