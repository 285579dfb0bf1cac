//! Times of day and durations in text, and which numbers are times of our days.

/// From the year 2000 to 2100, in nanoseconds.
pub(crate) const OUR_DAYS: std::ops::Range<i64> = 946_684_800_000_000_000..4_102_444_800_000_000_000;

/// The unit, in nanoseconds, in which a number is a time of our days.
pub(crate) fn unit_of(number: f64) -> Option<i64> {
    let fits = |unit: &i64| OUR_DAYS.contains(&((number * *unit as f64) as i64));
    [1, 1_000, 1_000_000, 1_000_000_000].into_iter().find(fits)
}

/// Nanoseconds from the Unix epoch of `2026-02-15T21:16:43.988103188Z` and its kin with an offset (`+01:00`).
pub fn from_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(['T', 't', ' '])?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if date.next().is_some() || !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let clock = time.find(['Z', 'z', '+', '-']).map(|at| time.split_at(at));
    let (clock, zone) = clock.unwrap_or((time, "Z"));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let seconds = clock_seconds(clock, 3)? - offset(zone)?;
    (days(year, month, day) * 86_400 + seconds).checked_mul(1_000_000_000)?.checked_add(nanoseconds(fraction)?)
}

/// Nanoseconds of a duration as Go writes it: `1h2m3.5s`, `-12.5µs`, `350ms`. To the nearest one.
pub(crate) fn from_go_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let number = rest.find(|part: char| !part.is_ascii_digit() && part != '.')?;
        let (number, after) = rest.split_at(number);
        let unit = after.find(|part: char| part.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit);
        let nanoseconds = match unit {
            "h" => 3600e9,
            "m" => 60e9,
            "s" => 1e9,
            "ms" => 1e6,
            // The micro sign and the Greek letter.
            "\u{b5}s" | "\u{3bc}s" | "us" => 1e3,
            "ns" => 1.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * nanoseconds;
        rest = next;
    }
    // Two to the 53rd nanoseconds are 104 days; no clock is corrected by more.
    (!text.is_empty() && text != "-" && sum < 9e15).then(|| (sign * sum).round() as i64)
}

/// `HH:MM:SS` or `HH:MM` in seconds.
fn clock_seconds(text: &str, parts: usize) -> Option<i64> {
    let mut seconds = 0;
    let mut count = 0;
    for (part, (unit, limit)) in text.split(':').zip([(3600, 24), (60, 60), (1, 61)]) {
        let number: i64 = part.parse().ok()?;
        if !(0..limit).contains(&number) {
            return None;
        }
        seconds += number * unit;
        count += 1;
    }
    (count == parts).then_some(seconds)
}

fn offset(zone: &str) -> Option<i64> {
    match zone.as_bytes().first()? {
        b'Z' | b'z' => Some(0),
        b'+' => clock_seconds(&zone[1..], 2),
        _ => clock_seconds(&zone[1..], 2).map(|seconds| -seconds),
    }
}

fn nanoseconds(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(
        (0..9)
            .fold(0, |number, at| number * 10 + fraction.as_bytes().get(at).map_or(0, |digit| i64::from(digit - b'0'))),
    )
}

/// Days from the Unix epoch in the Gregorian calendar, counted in eras of 400 years that begin in March.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{from_go_duration, from_rfc3339};

    #[test]
    fn durations() {
        let cases = [
            ("0", 0),
            ("0s", 0),
            ("1ns", 1),
            ("350ms", 350_000_000),
            ("-12.5\u{b5}s", -12_500),
            ("12.345\u{3bc}s", 12_345),
            ("2.345us", 2_345),
            ("1h2m3.5s", 3_723_500_000_000),
            ("-1.234567891s", -1_234_567_891),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(from_go_duration(text), Some(nanoseconds), "{text}");
        }
        for wrong in ["", "-", "1", "ms", "1.2.3s", "1d", "s1", "99999999h", "--1s", "1 s"] {
            assert_eq!(from_go_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_of_day() {
        assert_eq!(from_rfc3339("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(from_rfc3339("2000-03-01T00:00:00.5Z"), Some(951_868_800_500_000_000));
        assert_eq!(from_rfc3339("2026-02-15T21:16:43.988103188Z"), Some(1_771_190_203_988_103_188));
        assert_eq!(from_rfc3339("2026-02-15T22:16:43.988103188+01:00"), Some(1_771_190_203_988_103_188));
        for wrong in ["", "2026-02-15", "2026-02-15T", "2026-13-15T00:00:00Z", "2026-02-15T25:00:00Z", "T", "a-b-cTd"] {
            assert_eq!(from_rfc3339(wrong), None, "{wrong}");
        }
    }
}
