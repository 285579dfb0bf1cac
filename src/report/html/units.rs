//! Quantities in words for people, with the unit that suits them.

use crate::diagnostic::quantity::number;
pub use crate::diagnostic::quantity::{percent, time};

/// A rate given per second.
pub fn rate(per_second: f64) -> String {
    format!("{} /s", number(per_second))
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
