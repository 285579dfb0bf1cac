//! When which services were seen in which deployments: a row each time that one was there, from its begin to its end.

use std::collections::BTreeSet;

use dyelog::trace::spans::DeploymentSide as Side;

use super::StoreError;
use super::database::{Database, Row, Value};
use super::rows::{LEVELS, bounds};
use crate::deployment::{Deployed, PAUSE, Seen, Times, join};

/// A time at which a service was there, and when the last of it was written.
type Stay = (u64, u64, u64);

/// Adds to what was seen before.
pub fn write(database: &dyn Database, seen: &Seen, clock: u64) -> Result<(), StoreError> {
    for (own, times) in seen.iter() {
        for (begin, end) in times {
            add(database, own, (begin, end, clock))?;
        }
    }
    Ok(())
}

/// Makes one row of those that are close to a time.
fn add(database: &dyn Database, own: &Deployed, (begin, end, clock): Stay) -> Result<(), StoreError> {
    /// What is written is written anew no more often, nanoseconds.
    const OFTEN: u64 = LEVELS[4].length;
    let (first, last) = bounds(begin.saturating_sub(PAUSE), end.saturating_add(PAUSE));
    let Deployed { side, service, name } = own;
    let key: [Value<'_>; 3] = [number(*side).into(), service.as_bytes().into(), name.as_bytes().into()];
    let of = "side = ?1 AND service = ?2 AND name = ?3";
    let sql = format!(
        "SELECT start, \"end\", touched FROM deployed WHERE {of} AND start <= ?5 AND \"end\" >= ?4 ORDER BY start"
    );
    let values = [&key[..], &[first.into(), last.into()]].concat();
    let stay = |row: &Row<'_>| Ok((row.unsigned(0)?, row.unsigned(1)?, row.unsigned(2)?));
    let there: Vec<Stay> = database.all(&sql, &values, stay)?;
    let is_known =
        |(start, stop, touched): &Stay| *start <= begin && end <= *stop && clock <= touched.saturating_add(OFTEN);
    if there.iter().any(is_known) {
        return Ok(());
    }
    let sql = format!("DELETE FROM deployed WHERE {of} AND start = ?4");
    for (start, ..) in &there {
        database.run(&sql, &[&key[..], &[(*start).into()]].concat())?;
    }
    let touched = there.iter().map(|own| own.2).fold(clock, u64::max);
    let mut all: Times = there.iter().map(|(start, stop, _)| (*start, *stop)).chain([(begin, end)]).collect();
    all.sort_unstable();
    let mut times = Times::new();
    for time in all {
        join(&mut times, time);
    }
    times.into_iter().try_for_each(|(begin, end)| insert(database, own, (begin, end, touched)))
}

fn insert(
    database: &dyn Database,
    Deployed { side, service, name }: &Deployed,
    (begin, end, touched): Stay,
) -> Result<(), StoreError> {
    database.run(
        "INSERT INTO deployed (side, service, name, start, \"end\", touched) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        &[
            number(*side).into(),
            service.as_bytes().into(),
            name.as_bytes().into(),
            begin.into(),
            end.into(),
            touched.into(),
        ],
    )?;
    Ok(())
}

/// Those of a period.
pub fn read(database: &dyn Database, from: u64, to: u64) -> Result<BTreeSet<Deployed>, StoreError> {
    let (from, to) = bounds(from, to);
    let sql = "SELECT DISTINCT side, service, name FROM deployed WHERE start < ?2 AND \"end\" > ?1";
    Ok(database.all(sql, &[from.into(), to.into()], deployed)?.into_iter().collect())
}

/// The number of a side in stores.
fn number(side: Side) -> u64 {
    match side {
        Side::Environment => 0,
        Side::Namespace => 1,
    }
}

/// The side of a number.
fn side(stored: u64) -> Option<Side> {
    Side::ALL.into_iter().find(|own| number(*own) == stored)
}

fn deployed(row: &Row<'_>) -> Result<Deployed, StoreError> {
    let damaged = || StoreError::Damaged("which deployments there were".to_owned());
    let text = |at| String::from_utf8(row.bytes(at)?.to_vec()).map_err(|_| damaged());
    Ok(Deployed { side: side(row.unsigned(0)?).ok_or_else(damaged)?, service: text(1)?, name: text(2)? })
}

/// Removes those of a period: of one that goes beyond, that part.
pub fn delete(database: &dyn Database, from: u64, to: u64) -> Result<(), StoreError> {
    let (first, last) = bounds(from, to);
    let sql = "SELECT side, service, name, start, \"end\", touched FROM deployed WHERE start < ?2 AND \"end\" > ?1";
    let of = |row: &Row<'_>| Ok((deployed(row)?, (row.unsigned(3)?, row.unsigned(4)?, row.unsigned(5)?)));
    let found: Vec<(Deployed, Stay)> = database.all(sql, &[first.into(), last.into()], of)?;
    database.run("DELETE FROM deployed WHERE start < ?2 AND \"end\" > ?1", &[first.into(), last.into()])?;
    for (own, (begin, end, touched)) in found {
        for (begin, end) in [(begin, from), (to, end)].into_iter().filter(|(begin, end)| begin < end) {
            insert(database, &own, (begin, end, touched))?;
        }
    }
    Ok(())
}

/// Removes what is older than it is kept. What came a short while ago stays, however old it says that it is.
pub fn expire(database: &dyn Database, before: i64) -> Result<(), StoreError> {
    database.run("DELETE FROM deployed WHERE \"end\" < ?1 AND touched < ?1", &[before.into()])?;
    Ok(())
}
