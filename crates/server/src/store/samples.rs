//! Totals of metrics, by series and time.

use rusqlite::{Connection, params};

use super::StoreError;
use crate::meter::{SeriesKey, Standing};
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
pub fn write(connection: &Connection, fresh: &[(&SeriesKey, u64, f64, Standing)]) -> Result<(), StoreError> {
    let mut series = connection.prepare(
        "INSERT INTO series (key, time, start, raw, total) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (key) DO UPDATE SET time = ?2, start = ?3, raw = ?4, total = ?5 RETURNING id",
    )?;
    let mut totals = connection.prepare("INSERT OR REPLACE INTO totals (series, time, total) VALUES (?1, ?2, ?3)")?;
    let mut last: Option<(&SeriesKey, i64)> = None;
    for (key, time, total, standing) in fresh {
        let id = match last {
            Some((own, id)) if own == *key => id,
            _ => {
                let text = serde_json::to_string(key).expect("names are text");
                let own = (standing.time.cast_signed(), standing.start.cast_signed(), standing.raw, standing.total);
                series.query_row(params![text, own.0, own.1, own.2, own.3], |row| row.get(0))?
            }
        };
        last = Some((*key, id));
        totals.execute(params![id, time.cast_signed(), total])?;
    }
    Ok(())
}

/// Gives all series, and where they stand.
pub fn standings(connection: &Connection, mut take: impl FnMut(SeriesKey, Standing)) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT key, time, start, raw, total FROM series")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        let standing = Standing { time: number(1)?, start: number(2)?, raw: row.get(3)?, total: row.get(4)? };
        take(key(&row.get::<_, String>(0)?)?, standing);
    }
    Ok(())
}

/// The totals of a period.
pub fn read(connection: &Connection, from: u64, to: u64) -> Result<Metered, StoreError> {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let mut statement = connection.prepare(
        "SELECT key, totals.time, totals.total FROM totals JOIN series ON series.id = totals.series
         WHERE totals.time >= ?1 AND totals.time <= ?2 ORDER BY series, totals.time",
    )?;
    let mut rows = statement.query([signed(from.saturating_sub(BEYOND)), signed(to.saturating_add(BEYOND))])?;
    let mut series: Vec<(String, Totals)> = Vec::new();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        if count > MOST {
            return Err(StoreError::TooMany(MOST));
        }
        let name = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        let total = (row.get::<_, i64>(1)?.cast_unsigned(), row.get(2)?);
        match series.last_mut() {
            Some((own, totals)) if own == name => totals.push(total),
            _ => series.push((name.to_owned(), vec![total])),
        }
    }
    let series = series.into_iter().map(|(name, totals)| Ok((key(&name)?, totals)));
    Ok(Metered { series: series.collect::<Result<_, StoreError>>()? })
}

/// Keeps one total a stretch of what is old, the last; and nothing that is older than it is kept.
pub fn thin(
    connection: &Connection,
    now: u64,
    retention: u64,
    done: &mut [u64; THINNED.len()],
) -> Result<(), StoreError> {
    for ((age, stretch), done) in THINNED.iter().zip(done) {
        let before = now.saturating_sub(*age) / stretch * stretch;
        if before <= *done {
            continue;
        }
        connection.execute(
            "DELETE FROM totals WHERE time >= ?1 AND time < ?2 AND EXISTS (
                 SELECT 1 FROM totals AS later WHERE later.series = totals.series AND later.time > totals.time
                 AND later.time < (totals.time / ?3 + 1) * ?3)",
            [done.cast_signed(), before.cast_signed(), stretch.cast_signed()],
        )?;
        *done = before;
    }
    let oldest = now.saturating_sub(retention).cast_signed();
    connection.execute("DELETE FROM totals WHERE time < ?1", [oldest])?;
    connection.execute("DELETE FROM series WHERE time < ?1", [oldest])?;
    Ok(())
}

fn key(text: &str) -> Result<SeriesKey, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(error.to_string()))
}
