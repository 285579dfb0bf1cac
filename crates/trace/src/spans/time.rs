//! Times of day in text.

/// Nanoseconds from the Unix epoch of `2026-02-15T21:16:43.988103188Z` and its kin with an offset (`+01:00`).
pub(crate) fn from_rfc3339(text: &str) -> Option<i64> {
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
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::from_rfc3339;

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
