//! Quantities with units, such as `2 ms`.

/// Units of time, with their length in seconds.
const TIMES: [(&str, f64); 9] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86400.0),
];

/// A time with its unit in seconds; a number alone means seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    // Read with its exponent a number is rounded once, and 24.74 ms is 0.02474.
    let shifted = |exponent: &str, factor: f64| {
        let written = text.trim().trim_end_matches(unit).trim_end();
        format!("{written}e-{exponent}").parse().unwrap_or(number / factor)
    };
    match unit {
        "" => Ok(number),
        "ns" => Ok(shifted("9", 1e9)),
        "us" | "µs" => Ok(shifted("6", 1e6)),
        "ms" => Ok(shifted("3", 1e3)),
        _ => length(unit)
            .map(|length| number * length)
            .ok_or_else(|| format!("`{unit}` is not a unit of time; units are ns, us, ms, s, min, h and d")),
    }
}

/// A rate such as `12/s` or `700/min` per second; a number alone means per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let Some(unit) = unit.strip_prefix("1/").or_else(|| unit.strip_prefix('/')) else {
        return if unit.is_empty() {
            Ok(number)
        } else {
            Err(format!("`{unit}` is not a unit of a rate; write such as `12/s` or `700/min`"))
        };
    };
    let unit = unit.trim();
    length(unit).map(|length| number / length).ok_or_else(|| format!("`{unit}` is not a unit of time"))
}

fn length(unit: &str) -> Option<f64> {
    TIMES.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length)
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = number_length(text.as_bytes());
    let number: f64 = text[..end].parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, text[end..].trim()))
}

/// How many bytes of the text are a number: digits, a point, an exponent.
fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = usize::from(text.first().is_some_and(|byte| matches!(byte, b'+' | b'-')));
    end += digits(end);
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(text.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::{rate, seconds};

    #[test]
    fn times() {
        for (text, value) in [
            ("2 ms", 0.002),
            ("24.74 ms", 0.02474),
            ("1e1 ms", 0.01),
            ("1.5s", 1.5),
            ("3", 3.0),
            (" 250us ", 0.00025),
            ("1e-3 s", 0.001),
            ("2 min", 120.0),
            ("7 µs", 7e-6),
            ("1 ns", 1e-9),
        ] {
            assert_eq!(seconds(text), Ok(value), "{text}");
        }
        for text in ["", "ms", "2 parsecs", "2 ms s", "1..2", "e5", "--1", "."] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates() {
        for (text, value) in [("12/s", 12.0), ("12 1/s", 12.0), ("120 / min", 2.0), ("0.5", 0.5), ("36/h", 0.01)] {
            assert_eq!(rate(text), Ok(value), "{text}");
        }
        for text in ["12 s", "12/", "/s", "1/parsec"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
