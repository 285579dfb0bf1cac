//! Periods: how people write them, and what is said of them.

use std::collections::BTreeSet;

use dyelog::lqn::saved;
use dyelog::lqn::submodel::{EntryMerge, SubModel, Witness};
use dyelog::trace::spans::time::from_rfc3339;
use serde_json::{Value, json};

use crate::deployment;
use crate::recorded::told;
use crate::store::{Interval, LEVELS, LONGEST, Store, StoreError};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// A period, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its begin.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

impl Period {
    /// From two times as people write them; without one, the period has no such end. What begins so long ago ends now at the latest.
    ///
    /// # Errors
    /// What cannot be read, or that the end is not after the begin.
    pub fn parse(from: Option<&str>, to: Option<&str>, now: u64) -> Result<Self, String> {
        let is_relative = from.is_some_and(|text| text.trim().starts_with('-'));
        let from = from.map_or(Ok(0), |text| time(text, now))?;
        // What clocks that are ahead recorded is of no time ago.
        let open = if is_relative { now } else { u64::MAX };
        let to = to.map_or(Ok(open), |text| time(text, now))?;
        if from < to { Ok(Self { from, to }) } else { Err("the period does not end after it begins".to_owned()) }
    }
}

/// A time: RFC 3339, seconds since 1970, `now`, or so long ago (`-90s`, `-15m`, `-2h`, `-7d`).
fn time(text: &str, now: u64) -> Result<u64, String> {
    let text = text.trim();
    let wrong = || {
        format!(
            "`{text}` is no time: write 2026-02-15T21:16:00Z, seconds since 1970, `now`, or `-15m` for 15 minutes ago"
        )
    };
    if text == "now" {
        return Ok(now);
    }
    if let Some(ago) = text.strip_prefix('-') {
        let unit = ago.chars().last().ok_or_else(wrong)?;
        let length = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 24 * 3600,
            _ => return Err(wrong()),
        };
        let count: u64 = ago[..ago.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
        return Ok(now.saturating_sub(count.saturating_mul(length * SECOND)));
    }
    if let Ok(seconds) = text.parse::<f64>()
        && seconds.is_finite()
        && seconds >= 0.0
    {
        return Ok((seconds * SECOND as f64) as u64);
    }
    from_rfc3339(text).and_then(|time| u64::try_from(time).ok()).ok_or_else(wrong)
}

/// A time in RFC 3339, to the second.
pub fn written(time: u64) -> String {
    let seconds = time / SECOND;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // The civil calendar from days (H. Hinnant, days_from_civil and back): years begin in March, eras have 400 of them.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + year_of_era + era * 400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The intervals of a period that have anything, as JSON; times in RFC 3339, lengths in seconds. Of sub-models that were imported it is not known how many spans they
/// are made of. Warnings say what their models take for one.
///
/// # Errors
/// When the store cannot be read.
pub fn intervals_json(store: &Store, period: Period) -> Result<Value, StoreError> {
    let intervals = store.intervals(period.from, period.to)?;
    let warnings: Vec<String> =
        deployment::findings(&store.deployed(period.from, period.to)?).iter().map(told).collect();
    let one = |interval: &Interval| {
        json!({
            "start": written(interval.start),
            "seconds": interval.length / SECOND,
            "spans": Some(interval.spans).filter(|spans| *spans > 0),
            "bytes": interval.bytes,
        })
    };
    Ok(json!({ "intervals": intervals.iter().map(one).collect::<Vec<_>>(), "warnings": warnings }))
}

/// A saved sub-model that can be added to a store.
pub struct Imported {
    /// What it holds.
    pub submodel: SubModel,
    /// What tells its entries apart.
    pub merge: String,
    /// The begin of the interval in which all of its operations started, nanoseconds since 1970.
    pub start: u64,
    /// The length of that interval, nanoseconds.
    pub length: u64,
}

/// What becomes of a sub-model of which a store seems to hold some operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twice {
    /// It is not added.
    Refused,
    /// It is added, and they count twice.
    Counted,
}

/// What became of a sub-model that was to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in the store; what is to be warned of.
    Yes(Option<String>),
    /// It is not; why.
    No(String),
}

impl Imported {
    /// Adds it to a store.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn add_to(&self, store: &mut Store, now: u64, twice: Twice) -> Result<Added, StoreError> {
        let seen = self.seen_in(store)?;
        if let (Some(seen), Twice::Refused) = (&seen, twice) {
            return Ok(Added::No(format!(
                "{seen}
  hint: `period delete` removes the intervals of a period; `import --again` adds it all the same, and they count twice"
            )));
        }
        store.add_whole((self.start, self.length), now, &self.submodel, &self.merge)?;
        Ok(Added::Yes(seen.map(|seen| format!("{seen}: they count twice"))))
    }

    /// That a store has seen some of its operations, where it has.
    fn seen_in(&self, store: &Store) -> Result<Option<String>, StoreError> {
        let Some((there, _)) = store.period(self.start, self.start + self.length)? else { return Ok(None) };
        let known: BTreeSet<&Witness> = there.entries().iter().flat_map(|entry| &entry.witnesses).collect();
        let twice = self.submodel.entries().iter().flat_map(|entry| &entry.witnesses).find(|own| known.contains(own));
        Ok(twice.map(|Witness { scenario, run, .. }| {
            format!("the store seems to hold operations of it already, such as run `{run}` of `{scenario}`")
        }))
    }
}

/// Whether a text has observations of observers, and no sub-model.
pub fn is_reports(text: &str) -> bool {
    let members = text.trim_start().strip_prefix('{');
    members.is_some_and(|members| members.trim_start().starts_with("\"dyelog-observations\""))
}

/// Reads a saved sub-model that is to be added to a store.
///
/// # Errors
/// When it is none, when something else tells its entries apart than the server's, nothing in it has a time, or it is of too long a time.
pub fn imported(name: &str, text: &str) -> Result<Imported, String> {
    let (submodel, merge) = saved::parse(&name.into(), text)
        .map_err(|found| found.0.first().map_or_else(String::new, |finding| finding.message.clone()))?;
    let own = EntryMerge::Name.label();
    if merge != own {
        return Err(format!("its entries were made with `--merge {merge}`, those of the store with `--merge {own}`"));
    }
    let time = |start: Option<i64>| start.and_then(|start| u64::try_from(start).ok()).ok_or("nothing in it has a time");
    let scenarios = submodel.scenarios.values();
    let first = time(scenarios.clone().filter_map(|scenario| scenario.first_start).min())?;
    let last = time(scenarios.filter_map(|scenario| scenario.last_start.or(scenario.first_start)).max())?;
    let shortest = LEVELS[0].length;
    let start = first - first % shortest;
    let length = (last.max(first) - start + 1).div_ceil(shortest) * shortest;
    if length > LONGEST {
        let hours = length.div_ceil(3600 * SECOND);
        return Err(format!(
            "its operations started within {hours} hours, and an interval of a store is {} hours long at most
  hint: import an export of each day",
            LONGEST / (3600 * SECOND)
        ));
    }
    Ok(Imported { submodel, merge, start, length })
}

#[cfg(test)]
mod tests {
    use dyelog::trace::spans::time::from_rfc3339;

    use super::{Period, written};

    #[test]
    fn times_as_people_write_them() {
        let now = 1_700_000_000_000_000_000;
        let from = |text: &str| Period::parse(Some(text), None, now).map(|period| period.from);
        assert_eq!(from("2023-11-14T22:13:20Z"), Ok(now));
        assert_eq!(from("1700000000"), Ok(now));
        assert_eq!(from("-90s"), Ok(now - 90_000_000_000));
        assert_eq!(from("-2h"), from("-120m"));
        for wrong in ["", "-", "-h", "-1y", "yesterday", "-é", "NaN", "1e400"] {
            assert!(from(wrong).is_err(), "{wrong}");
        }
        let end = |from: Option<&str>| Period::parse(from, None, now).map(|period| period.to);
        assert_eq!([end(Some("-2m")), end(Some("1600000000")), end(None)], [Ok(now), Ok(u64::MAX), Ok(u64::MAX)]);
        assert_eq!(
            Period::parse(Some("now"), Some("-1s"), now),
            Err("the period does not end after it begins".to_owned())
        );
    }

    #[test]
    fn times_are_written_as_they_are_read() {
        for days in (0..40_000).step_by(7) {
            let time = (days * 86_400 + days % 86_400) * 1_000_000_000;
            assert_eq!(from_rfc3339(&written(time)), Some(time as i64), "{}", written(time));
        }
    }
}
