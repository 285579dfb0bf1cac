//! How many spans were set aside, by interval and reason.

use std::collections::BTreeMap;

use super::StoreError;
use super::database::{Database, Value};
use super::rows::{LEVELS, bounds};
use crate::aside::{Aside, Why};

/// Adds to what was counted before.
pub fn write(database: &dyn Database, aside: &Aside) -> Result<(), StoreError> {
    for (start, why, spans) in aside.iter() {
        database.run(
            "INSERT INTO asides (start, length, why, spans) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (start, length, why) DO UPDATE SET spans = asides.spans + excluded.spans",
            &[start.into(), LEVELS[0].length.into(), why.number().into(), spans.into()],
        )?;
    }
    Ok(())
}

/// Those of the intervals that reach into a period.
pub fn read(database: &dyn Database, from: u64, to: u64) -> Result<BTreeMap<Why, u64>, StoreError> {
    let (from, to) = bounds(from, to);
    let mut found = BTreeMap::new();
    database.each(
        "SELECT why, CAST(SUM(spans) AS BIGINT) FROM asides WHERE start < ?2 AND start + length > ?1 GROUP BY why",
        &[from.into(), to.into()],
        &mut |row| {
            let why =
                Why::of(row.unsigned(0)?).ok_or_else(|| StoreError::Damaged("why spans were set aside".to_owned()))?;
            found.insert(why, row.unsigned(1)?);
            Ok(())
        },
    )?;
    Ok(found)
}

/// Merges what is old to longer intervals, and removes what is older than it is kept.
pub fn roll_up(database: &dyn Database, now: u64, retention: u64) -> Result<(), StoreError> {
    database
        .run("DELETE FROM asides WHERE start + length < ?1", &[bounds(now.saturating_sub(retention), 0).0.into()])?;
    for pair in LEVELS.windows(2) {
        let before = bounds(now.saturating_sub(pair[0].stays), 0).0;
        let old: [Value<'_>; 3] = [pair[0].length.into(), before.into(), pair[1].length.into()];
        database.run(
            "INSERT INTO asides (start, length, why, spans)
             SELECT start / ?3 * ?3, ?3, why, CAST(SUM(spans) AS BIGINT) FROM asides
             WHERE length = ?1 AND start + length < ?2 GROUP BY start / ?3, why
             ON CONFLICT (start, length, why) DO UPDATE SET spans = asides.spans + excluded.spans",
            &old,
        )?;
        database.run("DELETE FROM asides WHERE length = ?1 AND start + length < ?2", &old[..2])?;
    }
    Ok(())
}

/// Removes those of the intervals that lie in a period.
pub fn delete(database: &dyn Database, from: i64, to: i64) -> Result<(), StoreError> {
    database.run("DELETE FROM asides WHERE start >= ?1 AND start + length <= ?2", &[from.into(), to.into()])?;
    Ok(())
}
