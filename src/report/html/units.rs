//! Quantities in words for people, with the unit that suits them.

use crate::diagnostic::quantity::{number, significant};

/// A time given in seconds.
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

/// A rate given per second.
pub fn rate(per_second: f64) -> String {
    format!("{} /s", number(per_second))
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    format!("{} %", if share < 0.0995 { three(share * 100.0) } else { format!("{:.0}", share * 100.0) })
}

/// A count with thin spaces between thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A number of things, with the noun in its form.
pub fn things(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Three digits that count.
fn three(value: f64) -> String {
    significant(value, 3, -10..15)
}

#[cfg(test)]
mod tests {
    use super::{count, percent, time};

    #[test]
    fn quantities_have_the_unit_that_suits_them() {
        for (seconds, text) in [(0.0, "0 s"), (0.002_159, "2.16 ms"), (0.000_336_7, "337 µs"), (12.34, "12.3 s")] {
            assert_eq!(time(seconds), text);
        }
        assert_eq!((percent(0.677), percent(0.0123), percent(f64::NAN)), ("68 %".into(), "1.23 %".into(), "–".into()));
        assert_eq!((count(1_234_567), count(12)), ("1\u{2009}234\u{2009}567".into(), "12".into()));
    }
}
