//! Times of measurements.

use crate::trace::spans::time::days;

/// A time in seconds: a number since 1970 in the unit that is given or that its size shows, or a date as RFC 3339 has it, with a blank for the `T` and
/// without a zone as well, which is UTC then.
pub fn seconds(text: &str, unit: Option<f64>) -> Option<f64> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Some(number * unit.unwrap_or_else(|| unit_of(number))),
        Ok(_) => None,
        Err(_) => date(text),
    }
}

/// The unit of a number since 1970, by its size.
pub fn unit_of(number: f64) -> f64 {
    match number.abs() {
        size if size >= 1e17 => 1e-9,
        size if size >= 1e14 => 1e-6,
        size if size >= 1e11 => 1e-3,
        _ => 1.0,
    }
}

fn date(text: &str) -> Option<f64> {
    let (day, clock) = text.split_once(['T', 't', ' '])?;
    let mut day = day.split('-');
    let (year, month, date): (i64, i64, i64) =
        (day.next()?.parse().ok()?, day.next()?.parse().ok()?, day.next()?.parse().ok()?);
    if day.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&date) || !(1900..=9999).contains(&year)
    {
        return None;
    }
    let (clock, offset) = zone(clock.trim())?;
    let mut parts = clock.split(':');
    let (hours, minutes): (f64, f64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds: f64 = parts.next().map_or(Some(0.0), |seconds| seconds.parse().ok())?;
    let clock = hours * 3600.0 + minutes * 60.0 + seconds;
    (0.0..=86_401.0).contains(&clock).then(|| days(year, month, date) as f64 * 86_400.0 + clock - offset)
}

/// A time of the day, and by how many seconds its zone is before UTC.
fn zone(clock: &str) -> Option<(&str, f64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0.0));
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0.0)) };
    let sign = if clock.as_bytes()[at] == b'-' { -1.0 } else { 1.0 };
    let digits = clock[at + 1..].replace(':', "");
    let number: f64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    let (hours, minutes) = ((number / 100.0).floor(), number % 100.0);
    Some((clock[..at].trim_end(), sign * (hours * 3600.0 + minutes * 60.0)))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn numbers_and_dates() {
        assert_eq!(seconds("1700000000", None), Some(1.7e9));
        assert_eq!(seconds("1700000000000", None), Some(1.7e9));
        assert_eq!(seconds("12.5", None), Some(12.5));
        assert_eq!(seconds("12500", Some(1e-3)), Some(12.5));
        assert_eq!(seconds("1970-01-02T00:00:01.5Z", None), Some(86_401.5));
        assert_eq!(seconds("2023-11-14 22:13:20", None), Some(1.7e9));
        assert_eq!(seconds("2023-11-14T23:13:20+01:00", None), Some(1.7e9));
        for wrong in ["", "nan", "yesterday", "2023-13-01 00:00:00", "2023-11-14", "2023-11-14T99:00:00Z"] {
            assert_eq!(seconds(wrong, None), None, "{wrong}");
        }
    }
}
