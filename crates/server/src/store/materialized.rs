//! Sums of stretches that stand in the database beside the intervals that they are of: a long period is read from them.
//!
//! What changes an interval removes the sums of the stretches that it lies in, in the same transaction. They are made anew when nothing has come to the stretch for a
//! while, and no shorter intervals are left that will be merged to some of it.

use std::collections::HashMap;

use super::database::{Database, Value};
use super::rows::{self, DOZEN, LEVELS, Level, QUIET, Unpacked, bounds};
use super::{StoreError, thin, unpacked};

/// Removes the sums of stretches that reach into a time, but for those longer than that.
pub fn remove(database: &dyn Database, (from, to): (u64, u64), longest: u64) -> Result<(), StoreError> {
    // The first conditions keep the search in a part of the index.
    let sql = "DELETE FROM sums WHERE length <= ?3 AND start > ?1 - ?3 AND start < ?2 AND start + length > ?1";
    let (from, to) = bounds(from, to);
    database.run(sql, &[from.into(), to.into(), bounds(longest, 0).0.into()])?;
    Ok(())
}

/// How many stays a sum keeps of an entry or a scenario at most.
const KEPT: usize = 512;

/// The sum of the intervals of a stretch, as it is kept.
pub fn thinned((mut submodel, merge): Unpacked) -> Unpacked {
    thin::keep(&mut submodel, KEPT);
    (submodel, merge)
}

/// A sum.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Its row.
    pub id: i64,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// The sums of stretches that lie in a period, by the begin and the length of the stretch.
pub fn list(database: &dyn Database, from: u64, to: u64) -> Result<HashMap<(u64, u64), Made>, StoreError> {
    let sql = "SELECT start, length, id, LENGTH(content) AS bytes FROM sums WHERE start >= ?1 AND start < ?2 AND start + length <= ?2 AND LENGTH(content) > 0";
    let (from, to) = bounds(from, to);
    let found = database.all(sql, &[from.into(), to.into()], |row| {
        let made = Made { id: row.number(2)?, bytes: row.unsigned(3)? };
        Ok(((row.unsigned(0)?, row.unsigned(1)?), made))
    })?;
    Ok(found.into_iter().collect())
}

/// Makes a sum that is missing; whether there was any.
pub fn make_one(database: &dyn Database, now: u64) -> Result<bool, StoreError> {
    let mut before = LEVELS[0];
    for (number, level) in LEVELS.iter().enumerate() {
        // Shorter intervals stay for so long before they are merged to one of these.
        let merged = if number == 0 { 0 } else { before.stays.saturating_add(level.length) };
        if let Some(begin) = missing(database, *level, now.saturating_sub(merged), now)? {
            make(database, *level, begin)?;
            return Ok(true);
        }
        before = *level;
    }
    Ok(false)
}

/// The first stretch of a level without a sum, of those that ended before a time.
fn missing(database: &dyn Database, level: Level, ended: u64, now: u64) -> Result<Option<u64>, StoreError> {
    let length = level.length.saturating_mul(DOZEN);
    let quiet = now.saturating_sub(QUIET);
    let last = ended.min(quiet).saturating_sub(length);
    let found = database.first(
        "SELECT begin FROM (
             SELECT start - start % ?1 AS begin, COUNT(*) AS parts, MAX(touched) AS last FROM intervals
             WHERE length > ?2 AND length <= ?3 AND start < ?4 + ?1 GROUP BY start - start % ?1
         ) AS found
         WHERE parts > 1 AND last < ?5 AND begin <= ?4 AND NOT EXISTS (SELECT 1 FROM sums WHERE sums.start = begin AND sums.length = ?1)
         ORDER BY begin LIMIT 1",
        &[
            length.into(),
            rows::longer_than(level).into(),
            level.length.into(),
            bounds(last, 0).0.into(),
            bounds(quiet, 0).0.into(),
        ],
        |row| row.unsigned(0),
    )?;
    Ok(found)
}

/// Makes the sum of a stretch. An empty one stands for intervals that cannot be merged: it is not tried again.
fn make(database: &dyn Database, level: Level, begin: u64) -> Result<(), StoreError> {
    let length = level.length.saturating_mul(DOZEN);
    let (first, end) = bounds(begin, begin.saturating_add(length));
    let meant: [Value<'_>; 4] = [first.into(), end.into(), rows::longer_than(level).into(), level.length.into()];
    let mut sum = None;
    let added = database.each(
        "SELECT content FROM intervals WHERE start >= ?1 AND start < ?2 AND length > ?3 AND length <= ?4 ORDER BY start, id",
        &meant,
        &mut |row| rows::add(&mut sum, unpacked(row.bytes(0)?)?),
    );
    let content = match added {
        Ok(()) => sum.map(thinned).map(|(submodel, merge)| thin::packed(&submodel, &merge)).unwrap_or_default(),
        // A question about that time gets the error.
        Err(StoreError::Damaged(_)) => Vec::new(),
        Err(other) => return Err(other),
    };
    database.run(
        "INSERT INTO sums (start, length, content) VALUES (?1, ?2, ?3)",
        &[begin.into(), length.into(), content.as_slice().into()],
    )?;
    Ok(())
}
