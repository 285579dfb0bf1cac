//! Intervals as rows.

use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::trace::protobuf::varint;
use rusqlite::{Connection, OptionalExtension, params};

use super::{StoreError, exemplars, thin, unpacked};
use crate::spans::put_number;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Intervals of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Their length, nanoseconds.
    pub length: u64,
    /// For how long they stay before they are merged to longer ones, nanoseconds.
    pub stays: u64,
    /// How many stays are kept of an entry.
    pub kept_stays: usize,
}

/// From short to long.
pub const LEVELS: [Level; 5] = [
    Level { length: 10 * SECOND, stays: 3600 * SECOND, kept_stays: usize::MAX },
    Level { length: 60 * SECOND, stays: 24 * 3600 * SECOND, kept_stays: 512 },
    Level { length: 600 * SECOND, stays: 7 * 24 * 3600 * SECOND, kept_stays: 128 },
    Level { length: 3600 * SECOND, stays: 30 * 24 * 3600 * SECOND, kept_stays: 32 },
    Level { length: 24 * 3600 * SECOND, stays: u64::MAX, kept_stays: 32 },
];

/// How long nothing must have come to an interval before its parts become one.
const QUIET: u64 = 30 * SECOND;

/// How many intervals are merged in one transaction.
const AT_ONCE: u32 = 16;

/// An interval that has anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its begin, nanoseconds since 1970.
    pub start: u64,
    /// Its length, nanoseconds.
    pub length: u64,
    /// How many spans are in it.
    pub spans: u64,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// What the store keeps of a sub-model.
pub fn packed(submodel: &SubModel, merge: &str) -> Vec<u8> {
    zstd::encode_all(saved::write(submodel, merge).as_bytes(), 3).expect("memory takes all")
}

/// Adds a part of an interval.
pub fn insert(
    connection: &Connection,
    level: Level,
    start: u64,
    touched: u64,
    spans: u64,
    content: &[u8],
) -> Result<(), StoreError> {
    connection
        .prepare("INSERT INTO intervals (length, start, touched, spans, content) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![
        level.length.cast_signed(),
        start.cast_signed(),
        touched.cast_signed(),
        spans.cast_signed(),
        content
    ])?;
    Ok(())
}

/// Which rows reach into a period. No interval is longer than the longest.
fn within() -> String {
    let longest = LEVELS[LEVELS.len() - 1].length;
    format!("start < ?2 AND start > ?1 - {longest} AND start + length > ?1")
}

pub fn bounds(from: u64, to: u64) -> (i64, i64) {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    (signed(from), signed(to))
}

/// The intervals that reach into a period.
pub fn list(connection: &Connection, from: u64, to: u64) -> Result<Vec<Interval>, StoreError> {
    let mut statement = connection.prepare(&format!(
        "SELECT start, length, SUM(spans), SUM(LENGTH(content)) FROM intervals WHERE {}
         GROUP BY start, length ORDER BY start, length",
        within()
    ))?;
    let rows = statement.query_map(bounds(from, to), |row| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(Interval { start: number(0)?, length: number(1)?, spans: number(2)?, bytes: number(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// All parts of all intervals that reach into a period, in one.
pub fn merged(connection: &Connection, from: u64, to: u64) -> Result<Option<(SubModel, String)>, StoreError> {
    let sql = format!("SELECT content FROM intervals WHERE {} ORDER BY start, length, id", within());
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(bounds(from, to))?;
    let mut sum: Option<(SubModel, String)> = None;
    while let Some(row) = rows.next()? {
        add(&mut sum, row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?;
    }
    Ok(sum)
}

fn add(sum: &mut Option<(SubModel, String)>, content: &[u8]) -> Result<(), StoreError> {
    let (submodel, merge) = unpacked(content)?;
    match sum {
        None => *sum = Some((submodel, merge)),
        Some((_, own)) if *own != merge => {
            return Err(StoreError::Damaged(format!("some intervals were merged by {own}, others by {merge}")));
        }
        Some((own, _)) => own.merge(&submodel),
    }
    Ok(())
}

/// Deletes the intervals that lie in a period.
pub fn delete(connection: &Connection, from: u64, to: u64) -> Result<usize, StoreError> {
    let sql = "DELETE FROM intervals WHERE start >= ?1 AND start < ?2 AND start + length <= ?2";
    let deleted = connection.execute(sql, bounds(from, to))?;
    // Those of an interval that goes beyond stay with it.
    let orphaned = "DELETE FROM exemplars WHERE start >= ?1 AND start < ?2 AND NOT EXISTS (
        SELECT 1 FROM intervals WHERE intervals.start <= exemplars.start AND intervals.start + length > exemplars.start)";
    connection.execute(orphaned, bounds(from, to))?;
    Ok(deleted)
}

/// Merges some of what is old enough; whether more is left.
pub fn roll_up(connection: &Connection, now: u64, retention: u64) -> Result<bool, StoreError> {
    let before = bounds(now.saturating_sub(retention), 0).0;
    connection.execute("DELETE FROM intervals WHERE start + length < ?1 AND touched < ?1", [before])?;
    exemplars::delete(connection, (i64::MIN, before.saturating_sub(LEVELS[LEVELS.len() - 1].length.cast_signed())))?;
    let mut left = AT_ONCE;
    while left > 0 && gather_one(connection, now)? {
        left -= 1;
    }
    for pair in LEVELS.windows(2) {
        while left > 0 && roll_up_one(connection, pair[0], pair[1], now)? {
            left -= 1;
        }
    }
    Ok(left == 0)
}

/// Merges the oldest intervals of a level that lie in one of the next; whether there was any.
fn roll_up_one(connection: &Connection, from: Level, to: Level, now: u64) -> Result<bool, StoreError> {
    let before = bounds(now.saturating_sub(from.stays), 0).0;
    let length = from.length.cast_signed();
    // What came a short while ago stays as it is, however old it says that it is.
    let oldest: Option<i64> = connection
        .query_row(
            "SELECT start FROM intervals WHERE length = ?1 AND start + length < ?2 AND touched < ?2
             ORDER BY start LIMIT 1",
            [length, before],
            |row| row.get(0),
        )
        .optional()?;
    let Some(oldest) = oldest else { return Ok(false) };
    join(connection, from, to, oldest.cast_unsigned() / to.length * to.length)
}

/// Makes one part of all parts of an interval to which nothing came for a while; whether there was any.
fn gather_one(connection: &Connection, now: u64) -> Result<bool, StoreError> {
    let before = bounds(now.saturating_sub(QUIET), 0).0;
    let level = LEVELS[0];
    let start: Option<i64> = connection
        .query_row(
            "SELECT start FROM intervals WHERE length = ?1 GROUP BY start
             HAVING COUNT(*) > 1 AND MAX(touched) < ?2 ORDER BY start LIMIT 1",
            [level.length.cast_signed(), before],
            |row| row.get(0),
        )
        .optional()?;
    start.map_or(Ok(false), |start| join(connection, level, level, start.cast_unsigned()))
}

/// Makes one interval of those of a level, or two, that lie in it.
fn join(connection: &Connection, from: Level, to: Level, start: u64) -> Result<bool, StoreError> {
    let length = from.length.cast_signed();
    let (first, end) = bounds(start, start + to.length);
    let mut sum: Option<(SubModel, String)> = None;
    let (mut touched, mut spans) = (0_i64, 0_i64);
    {
        let mut statement = connection.prepare(
            "SELECT touched, spans, content FROM intervals
             WHERE start >= ?1 AND start < ?2 AND (length = ?3 OR length = ?4) ORDER BY start, id",
        )?;
        let mut rows = statement.query(params![first, end, length, to.length.cast_signed()])?;
        while let Some(row) = rows.next()? {
            touched = touched.max(row.get(0)?);
            spans = spans.saturating_add(row.get(1)?);
            add(&mut sum, row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?)?;
        }
    }
    let Some((mut submodel, merge)) = sum else { return Ok(false) };
    thin::thin(&mut submodel, to.kept_stays);
    exemplars::thin(connection, (first, end), &submodel)?;
    connection.execute(
        "DELETE FROM intervals WHERE start >= ?1 AND start < ?2 AND (length = ?3 OR length = ?4)",
        params![first, end, length, to.length.cast_signed()],
    )?;
    let content = packed(&submodel, &merge);
    insert(connection, to, start, touched.cast_unsigned(), spans.cast_unsigned(), &content)?;
    Ok(true)
}

/// Numbers in order as bytes: the distances, each a number of variable length.
pub fn bytes_of(numbers: &[u64]) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::with_capacity(numbers.len()), 0);
    for number in numbers {
        put_number(&mut bytes, number - before);
        before = *number;
    }
    bytes
}

/// The numbers behind such bytes.
pub fn numbers_of(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let (mut numbers, mut before) = (Vec::new(), 0_u64);
    while !bytes.is_empty() {
        let (distance, rest) = varint(bytes)?;
        before = before.checked_add(distance)?;
        numbers.push(before);
        bytes = rest;
    }
    Some(numbers)
}
