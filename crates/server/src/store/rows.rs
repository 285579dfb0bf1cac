//! Intervals as rows.

use dyelog::lqn::submodel::SubModel;
use dyelog::trace::protobuf::varint;

use super::database::{Database, Value};
use super::{StoreError, exemplars, materialized, thin, unpacked};
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
    /// How many stays are kept of an entry at most.
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

/// The longest interval that there may be, nanoseconds: what is imported keeps its own length.
pub const LONGEST: u64 = 2 * LEVELS[LEVELS.len() - 1].length;

/// How many intervals of their length a stretch has.
pub const DOZEN: u64 = 12;

/// How long nothing must have come to an interval before its parts become one.
pub const QUIET: u64 = 30 * SECOND;

/// One transaction merges so many intervals. A put waits for it.
const AT_ONCE: u32 = 1;

/// An interval that has anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its begin, nanoseconds since 1970.
    pub start: u64,
    /// Its length, nanoseconds: that of a level, or of what was imported.
    pub length: u64,
    /// How many spans are in it.
    pub spans: u64,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// Adds a part of an interval of that begin and length.
pub fn insert(
    database: &dyn Database,
    (start, length): (u64, u64),
    touched: u64,
    spans: u64,
    content: &[u8],
) -> Result<(), StoreError> {
    database.run(
        "INSERT INTO intervals (length, start, touched, spans, content) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[length.into(), start.into(), touched.into(), spans.into(), content.into()],
    )?;
    let (_, longest) = stretch_of(start, length);
    materialized::remove(database, (start, start.saturating_add(length)), longest)
}

/// The begin and the length of the stretch that an interval of that begin and length is in.
pub fn stretch_of(start: u64, length: u64) -> (u64, u64) {
    let level = LEVELS.iter().find(|level| length <= level.length);
    let length = level.map_or(length, |level| level.length).saturating_mul(DOZEN);
    (start - start % length, length)
}

/// Which rows reach into a period.
pub fn within() -> String {
    format!("start < ?2 AND start > ?1 - {LONGEST} AND start + length > ?1")
}

/// Those longer than the level before, and as long as this one at most, are of a level: what was imported is of the shortest that is as long.
pub fn longer_than(level: Level) -> u64 {
    LEVELS.iter().rev().find(|own| own.length < level.length).map_or(0, |own| own.length)
}

pub fn bounds(from: u64, to: u64) -> (i64, i64) {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    (signed(from), signed(to))
}

/// The intervals that reach into a period.
pub fn list(database: &dyn Database, from: u64, to: u64) -> Result<Vec<Interval>, StoreError> {
    let sql = format!(
        "SELECT start, length, CAST(SUM(spans) AS BIGINT), SUM(LENGTH(content)) FROM intervals WHERE {}
         GROUP BY start, length ORDER BY start, length",
        within()
    );
    let (from, to) = bounds(from, to);
    database.all(&sql, &[from.into(), to.into()], |row| {
        let number = |at| row.unsigned(at);
        Ok(Interval { start: number(0)?, length: number(1)?, spans: number(2)?, bytes: number(3)? })
    })
}

/// When the first of them begins, and the last ends; `None` where there is none.
pub fn extent(database: &dyn Database, from: u64, to: u64) -> Result<Option<(u64, u64)>, StoreError> {
    let sql = format!("SELECT start, start + length FROM intervals WHERE {} ORDER BY ", within());
    let (from, to) = bounds(from, to);
    let one = |order: &str, at: usize| {
        database.first(&format!("{sql}{order} LIMIT 1"), &[from.into(), to.into()], |row| row.unsigned(at))
    };
    Ok(one("start", 0)?.zip(one("start + length DESC", 1)?))
}

/// A sub-model, and what tells its entries apart.
pub type Unpacked = (SubModel, String);

/// Adds a sub-model to a sum, or makes one of it.
pub fn add(sum: &mut Option<Unpacked>, (submodel, merge): Unpacked) -> Result<(), StoreError> {
    if let Some(sum) = sum {
        return add_to(sum, &submodel, &merge);
    }
    *sum = Some((submodel, merge));
    Ok(())
}

/// Merges a sub-model into a sum. Both must tell entries apart by the same rule.
pub fn add_to((sum, own): &mut (SubModel, String), submodel: &SubModel, merge: &str) -> Result<(), StoreError> {
    if own != merge {
        return Err(StoreError::Damaged(format!("some intervals were merged by {own}, others by {merge}")));
    }
    sum.merge(submodel);
    Ok(())
}

/// Deletes the intervals that lie in a period.
pub fn delete(database: &dyn Database, from: u64, to: u64) -> Result<usize, StoreError> {
    let sql = "DELETE FROM intervals WHERE start >= ?1 AND start < ?2 AND start + length <= ?2";
    let (first, end) = bounds(from, to);
    let ends: [Value<'_>; 2] = [first.into(), end.into()];
    let deleted = database.run(sql, &ends)?;
    // Intervals that were deleted may have gone beyond, as far as they were long.
    materialized::remove(database, (from, to), u64::MAX)?;
    // Those of an interval that goes beyond stay with it.
    let orphaned = "DELETE FROM exemplars WHERE start >= ?1 AND start < ?2 AND NOT EXISTS (
        SELECT 1 FROM intervals WHERE intervals.start <= exemplars.start AND intervals.start + length > exemplars.start)";
    database.run(orphaned, &ends)?;
    Ok(deleted)
}

/// Merges some of what is old enough; whether more is left.
pub fn roll_up(database: &dyn Database, now: u64, retention: u64) -> Result<bool, StoreError> {
    let before = bounds(now.saturating_sub(retention), 0).0;
    if database.run("DELETE FROM intervals WHERE start + length < ?1 AND touched < ?1", &[before.into()])? > 0 {
        materialized::remove(database, (0, before.cast_unsigned()), u64::MAX)?;
    }
    exemplars::delete(database, (i64::MIN, before.saturating_sub(LEVELS[LEVELS.len() - 1].length.cast_signed())))?;
    let mut left = AT_ONCE;
    while left > 0 && gather_one(database, now)? {
        left -= 1;
    }
    for pair in LEVELS.windows(2) {
        while left > 0 && roll_up_one(database, pair[0], pair[1], now)? {
            left -= 1;
        }
    }
    while left > 0 && materialized::make_one(database, now)? {
        left -= 1;
    }
    Ok(left == 0)
}

/// Merges the oldest intervals of a level that lie in one of the next; whether there was any.
fn roll_up_one(database: &dyn Database, from: Level, to: Level, now: u64) -> Result<bool, StoreError> {
    let before = bounds(now.saturating_sub(from.stays), 0).0;
    // What came a short while ago stays as it is, however old it says that it is.
    let oldest = database.first(
        "SELECT start FROM intervals WHERE length > ?1 AND length <= ?2 AND start + length < ?3 AND touched < ?3
         ORDER BY start LIMIT 1",
        &[longer_than(from).into(), from.length.into(), before.into()],
        |row| row.number(0),
    )?;
    let Some(oldest) = oldest else { return Ok(false) };
    join(database, from, to, oldest.cast_unsigned() / to.length * to.length)
}

/// Makes one part of all parts of an interval to which nothing came for a while; whether there was any.
fn gather_one(database: &dyn Database, now: u64) -> Result<bool, StoreError> {
    let before = bounds(now.saturating_sub(QUIET), 0).0;
    let level = LEVELS[0];
    let start = database.first(
        "SELECT start FROM intervals WHERE length = ?1 GROUP BY start
         HAVING COUNT(*) > 1 AND MAX(touched) < ?2 ORDER BY start LIMIT 1",
        &[level.length.into(), before.into()],
        |row| row.number(0),
    )?;
    start.map_or(Ok(false), |start| join(database, level, level, start.cast_unsigned()))
}

/// Makes one interval of those of a level, or two, that begin in it.
fn join(database: &dyn Database, from: Level, to: Level, start: u64) -> Result<bool, StoreError> {
    let (first, end) = bounds(start, start + to.length);
    let meant: [Value<'_>; 4] = [first.into(), end.into(), longer_than(from).into(), to.length.into()];
    let mut sum: Option<(SubModel, String)> = None;
    let (mut touched, mut spans) = (0_i64, 0_i64);
    database.each(
        "SELECT touched, spans, content FROM intervals
         WHERE start >= ?1 AND start < ?2 AND length > ?3 AND length <= ?4 ORDER BY start, id",
        &meant,
        &mut |row| {
            touched = touched.max(row.number(0)?);
            spans = spans.saturating_add(row.number(1)?);
            add(&mut sum, unpacked(row.bytes(2)?)?)
        },
    )?;
    let Some((mut submodel, merge)) = sum else { return Ok(false) };
    exemplars::thin(database, (first, end), &submodel)?;
    database.run("DELETE FROM intervals WHERE start >= ?1 AND start < ?2 AND length > ?3 AND length <= ?4", &meant)?;
    let is_past = to != LEVELS[0];
    let content =
        if is_past { thin::thinned(&mut submodel, &merge, to.kept_stays) } else { thin::packed(&submodel, &merge) };
    insert(database, (start, to.length), touched.cast_unsigned(), spans.cast_unsigned(), &content)?;
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
