//! When the server took in what was sent to it: a row from a start to what it had folded last, so that a time without operations is told from one that nobody recorded.

use super::StoreError;
use super::database::Database;
use super::rows::bounds;
use crate::deployment::Times;

/// Those that are closer are one, nanoseconds: exporters send again what was refused for a minute, and the last 40 s before a stop may not be folded.
const CLOSE: u64 = 100_000_000_000;

/// Adds a time. One row is made of those that are close.
pub fn write(database: &dyn Database, (begin, end): (u64, u64)) -> Result<(), StoreError> {
    let (first, last) = bounds(begin.saturating_sub(CLOSE), end.saturating_add(CLOSE));
    let near = [first.into(), last.into()];
    let sql = "SELECT start, \"end\" FROM uptimes WHERE start <= ?2 AND \"end\" >= ?1";
    let mut there = database.all(sql, &near, |row| Ok((row.unsigned(0)?, row.unsigned(1)?)))?;
    if there.iter().any(|(start, stop)| *start <= begin && end <= *stop) {
        return Ok(());
    }
    database.run("DELETE FROM uptimes WHERE start <= ?2 AND \"end\" >= ?1", &near)?;
    there.push((begin, end));
    let begin = there.iter().map(|own| own.0).fold(begin, u64::min);
    let end = there.iter().map(|own| own.1).fold(end, u64::max);
    insert(database, (begin, end))
}

fn insert(database: &dyn Database, (begin, end): (u64, u64)) -> Result<(), StoreError> {
    let (begin, end) = bounds(begin, end);
    database.run("INSERT INTO uptimes (start, \"end\") VALUES (?1, ?2)", &[begin.into(), end.into()])?;
    Ok(())
}

/// The clock was ahead: what it showed then is no time yet.
pub fn set_back(database: &dyn Database, clock: u64) -> Result<(), StoreError> {
    delete(database, clock, u64::MAX)
}

/// Those of a period, in order and apart, cut at its ends.
pub fn read(database: &dyn Database, from: u64, to: u64) -> Result<Times, StoreError> {
    let (first, last) = bounds(from, to);
    let sql = "SELECT start, \"end\" FROM uptimes WHERE start < ?2 AND \"end\" > ?1 ORDER BY start";
    let found = database.all(sql, &[first.into(), last.into()], |row| Ok((row.unsigned(0)?, row.unsigned(1)?)))?;
    Ok(found.into_iter().map(|(begin, end): (u64, u64)| (begin.max(from), end.min(to))).collect())
}

/// Removes those of a period: of one that goes beyond, that part.
pub fn delete(database: &dyn Database, from: u64, to: u64) -> Result<(), StoreError> {
    let (first, last) = bounds(from, to);
    let within = [first.into(), last.into()];
    let sql = "SELECT start, \"end\" FROM uptimes WHERE start < ?2 AND \"end\" > ?1";
    let found = database.all(sql, &within, |row| Ok((row.unsigned(0)?, row.unsigned(1)?)))?;
    database.run("DELETE FROM uptimes WHERE start < ?2 AND \"end\" > ?1", &within)?;
    for (begin, end) in found {
        for rest in [(begin, from), (to, end)].into_iter().filter(|(begin, end)| begin < end) {
            insert(database, rest)?;
        }
    }
    Ok(())
}

/// Removes what is older than intervals are kept.
pub fn expire(database: &dyn Database, before: i64) -> Result<(), StoreError> {
    database.run("DELETE FROM uptimes WHERE \"end\" < ?1", &[before.into()])?;
    Ok(())
}
