//! Totals of metrics, by series and time.

use super::StoreError;
use super::database::{Database, Value};
use crate::meter::{MOST_SERIES, SeriesKey, Standing};
use crate::metered::{Metered, Totals};

const SECOND: u64 = 1_000_000_000;
/// How far beyond the ends of a period totals are read.
const BEYOND: u64 = 1200 * SECOND;
/// Ages from which one total a stretch is kept, and the stretches; nanoseconds.
const THINNED: [(u64, u64); 3] =
    [(3600 * SECOND, 60 * SECOND), (24 * 3600 * SECOND, 600 * SECOND), (30 * 24 * 3600 * SECOND, 3600 * SECOND)];
/// Totals that are read for one question at most.
const MOST: usize = 1 << 20;

/// Writes totals, and where their series stand.
pub fn write(database: &dyn Database, fresh: &[(&SeriesKey, u64, f64, Standing)]) -> Result<(), StoreError> {
    let mut last: Option<(&SeriesKey, i64)> = None;
    for (key, time, total, standing) in fresh {
        let id = match last {
            Some((own, id)) if own == *key => id,
            _ => stand(database, key, standing)?,
        };
        last = Some((*key, id));
        database.run(
            "INSERT INTO totals (series, time, total) VALUES (?1, ?2, ?3)
             ON CONFLICT (series, time) DO UPDATE SET total = excluded.total",
            &[id.into(), (*time).into(), (*total).into()],
        )?;
    }
    Ok(())
}

/// Writes where a series stands; gives its number.
fn stand(database: &dyn Database, key: &SeriesKey, standing: &Standing) -> Result<i64, StoreError> {
    let text = serde_json::to_string(key).expect("names are text");
    let Standing { time, start, raw, total } = *standing;
    let id = database.first(
        "INSERT INTO series (key, time, start, raw, total) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (key) DO UPDATE SET time = ?2, start = ?3, raw = ?4, total = ?5 RETURNING id",
        &[text.as_str().into(), time.into(), start.into(), raw.into(), total.into()],
        |row| row.number(0),
    )?;
    id.ok_or_else(|| StoreError::Damaged("a series is gone while it is written".to_owned()))
}

/// Gives the series that had points last, and where they stand.
pub fn standings(database: &dyn Database, mut take: impl FnMut(SeriesKey, Standing)) -> Result<(), StoreError> {
    let sql = format!("SELECT key, time, start, raw, total FROM series ORDER BY time DESC, id LIMIT {MOST_SERIES}");
    database.each(&sql, &[], &mut |row| {
        let standing =
            Standing { time: row.unsigned(1)?, start: row.unsigned(2)?, raw: row.real(3)?, total: row.real(4)? };
        take(key(row.text(0)?)?, standing);
        Ok(())
    })
}

/// The totals of a period.
pub fn read(database: &dyn Database, from: u64, to: u64) -> Result<Metered, StoreError> {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let mut series: Vec<(String, Totals)> = Vec::new();
    let mut count = 0;
    database.each(
        "SELECT key, totals.time, totals.total FROM totals JOIN series ON series.id = totals.series
         WHERE totals.time >= ?1 AND totals.time <= ?2 ORDER BY totals.series, totals.time",
        &[signed(from.saturating_sub(BEYOND)).into(), signed(to.saturating_add(BEYOND)).into()],
        &mut |row| {
            count += 1;
            if count > MOST {
                return Err(StoreError::TooMany(MOST));
            }
            let (name, total) = (row.text(0)?, (row.unsigned(1)?, row.real(2)?));
            match series.last_mut() {
                Some((own, totals)) if own == name => totals.push(total),
                _ => series.push((name.to_owned(), vec![total])),
            }
            Ok(())
        },
    )?;
    let series = series.into_iter().map(|(name, totals)| Ok((key(&name)?, totals)));
    Ok(Metered { series: series.collect::<Result<_, StoreError>>()?, no_room: None })
}

/// Keeps one total a stretch of what is old, the last; and nothing that is older than it is kept.
pub fn thin(
    database: &dyn Database,
    now: u64,
    retention: u64,
    done: &mut [u64; THINNED.len()],
) -> Result<(), StoreError> {
    for ((age, stretch), done) in THINNED.iter().zip(done) {
        let before = now.saturating_sub(*age) / stretch * stretch;
        if before <= *done {
            continue;
        }
        database.run(
            "DELETE FROM totals WHERE time >= ?1 AND time < ?2 AND EXISTS (
                 SELECT 1 FROM totals AS later WHERE later.series = totals.series AND later.time > totals.time
                 AND later.time < (totals.time / ?3 + 1) * ?3)",
            &[(*done).into(), before.into(), (*stretch).into()],
        )?;
        *done = before;
    }
    let oldest: [Value<'_>; 1] = [now.saturating_sub(retention).into()];
    database.run("DELETE FROM totals WHERE time < ?1", &oldest)?;
    database.run("DELETE FROM series WHERE time < ?1", &oldest)?;
    Ok(())
}

/// Removes the totals from a time to another, and the series that have no others.
pub fn delete(database: &dyn Database, from: i64, to: i64) -> Result<(), StoreError> {
    let ends: [Value<'_>; 2] = [from.into(), to.into()];
    database.run("DELETE FROM totals WHERE time >= ?1 AND time < ?2", &ends)?;
    let empty = "DELETE FROM series WHERE time >= ?1 AND time < ?2
                 AND NOT EXISTS (SELECT 1 FROM totals WHERE totals.series = series.id)";
    database.run(empty, &ends)?;
    Ok(())
}

fn key(text: &str) -> Result<SeriesKey, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(error.to_string()))
}
