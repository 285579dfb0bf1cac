//! When the server took in what was sent to it: a row a run, from its start to what it folded last.
//!
//! They tell a time without operations from one that nobody recorded.

use super::StoreError;
use super::database::Database;
use super::rows::bounds;
use crate::deployment::Times;

/// Those that are closer are one, nanoseconds: exporters send again what was refused for a minute, and the last 40 s before a stop may not be folded.
const CLOSE: u64 = 100_000_000_000;

/// A time at which operations were taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uptime {
    /// Up to when it was written before; `None` where it begins.
    pub written: Option<u64>,
    /// Its begin, nanoseconds since 1970.
    pub begin: u64,
    /// Its end.
    pub end: u64,
}

/// Adds a time, or what it became longer by. One that begins is one with those that are close.
pub fn write(database: &dyn Database, Uptime { written, begin, end }: Uptime) -> Result<(), StoreError> {
    if let Some(written) = written {
        let (before, now) = bounds(written, end);
        let sql = "UPDATE uptimes SET \"end\" = ?2 WHERE \"end\" = ?1";
        let longer = database.run(sql, &[before.into(), now.into()])?;
        // What was deleted meanwhile does not come back.
        return if longer > 0 { Ok(()) } else { insert(database, (written, end)) };
    }
    let (first, last) = bounds(begin.saturating_sub(CLOSE), end.saturating_add(CLOSE));
    let near = [first.into(), last.into()];
    let sql = "SELECT start, \"end\" FROM uptimes WHERE start <= ?2 AND \"end\" >= ?1";
    let there = database.all(sql, &near, |row| Ok((row.unsigned(0)?, row.unsigned(1)?)))?;
    database.run("DELETE FROM uptimes WHERE start <= ?2 AND \"end\" >= ?1", &near)?;
    let begin = there.iter().map(|own: &(u64, u64)| own.0).fold(begin, u64::min);
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
    let found = reaching_into(database, from, to)?;
    Ok(found.into_iter().map(|(begin, end)| (begin.max(from), end.min(to))).collect())
}

/// Those of which anything lies in a period, in order.
fn reaching_into(database: &dyn Database, from: u64, to: u64) -> Result<Times, StoreError> {
    let (first, last) = bounds(from, to);
    let sql = "SELECT start, \"end\" FROM uptimes WHERE start < ?2 AND \"end\" > ?1 ORDER BY start";
    database.all(sql, &[first.into(), last.into()], |row| Ok((row.unsigned(0)?, row.unsigned(1)?)))
}

/// Removes those of a period: of one that goes beyond, that part.
pub fn delete(database: &dyn Database, from: u64, to: u64) -> Result<(), StoreError> {
    let found = reaching_into(database, from, to)?;
    let (first, last) = bounds(from, to);
    database.run("DELETE FROM uptimes WHERE start < ?2 AND \"end\" > ?1", &[first.into(), last.into()])?;
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
