//! A few traces of each interval, kept whole, so that what a model says can be followed down to spans.

use std::collections::BTreeSet;

use dyelog::lqn::submodel::SubModel;
use rusqlite::{Connection, params};

use super::StoreError;

/// A trace that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The begin of its interval, nanoseconds since 1970.
    pub start: u64,
    /// Its identifier.
    pub trace: u128,
    /// Its spans, as a request of OTLP.
    pub request: Vec<u8>,
}

/// The traces that bear witness of a sub-model's entries, one an entry.
pub fn witnesses(submodel: &SubModel) -> BTreeSet<u128> {
    let first = submodel.entries().iter().filter_map(|entry| entry.witnesses.first());
    first.filter_map(|witness| u128::from_str_radix(&witness.run, 16).ok()).collect()
}

/// Adds exemplars. Of a trace that came in parts the first is kept.
pub fn write(connection: &Connection, exemplars: &[Exemplar]) -> Result<(), StoreError> {
    let mut statement =
        connection.prepare("INSERT OR IGNORE INTO exemplars (start, trace, content) VALUES (?1, ?2, ?3)")?;
    for own in exemplars {
        let content = zstd::encode_all(&*own.request, 3).map_err(|error| StoreError::Damaged(error.to_string()))?;
        statement.execute(params![own.start.cast_signed(), own.trace.to_be_bytes(), content])?;
    }
    Ok(())
}

/// The exemplars that bear witness of a period's sub-model, as one request of OTLP.
pub fn read(connection: &Connection, (from, to): (i64, i64), submodel: &SubModel) -> Result<Vec<u8>, StoreError> {
    let mut statement =
        connection.prepare("SELECT content FROM exemplars WHERE trace = ?1 AND start >= ?2 AND start < ?3 LIMIT 1")?;
    let mut request = Vec::new();
    for trace in witnesses(submodel) {
        let mut rows = statement.query(params![trace.to_be_bytes(), from, to])?;
        if let Some(row) = rows.next()? {
            let content = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            // Requests one after the other are one request.
            request.extend(zstd::decode_all(content).map_err(|error| StoreError::Damaged(error.to_string()))?);
        }
    }
    Ok(request)
}

/// Forgets the exemplars of intervals that no longer bear witness of what these were merged to.
pub fn thin(connection: &Connection, (from, to): (i64, i64), submodel: &SubModel) -> Result<(), StoreError> {
    let kept = witnesses(submodel);
    let mut statement = connection.prepare("SELECT trace FROM exemplars WHERE start >= ?1 AND start < ?2")?;
    let found = statement.query_map([from, to], |row| row.get::<_, [u8; 16]>(0))?;
    let found: Vec<[u8; 16]> = found.collect::<Result<_, _>>()?;
    let mut delete = connection.prepare("DELETE FROM exemplars WHERE trace = ?1 AND start >= ?2 AND start < ?3")?;
    for trace in found.iter().filter(|trace| !kept.contains(&u128::from_be_bytes(**trace))) {
        delete.execute(params![trace, from, to])?;
    }
    Ok(())
}

/// Deletes exemplars from a time to another.
pub fn delete(connection: &Connection, (from, to): (i64, i64)) -> Result<(), StoreError> {
    connection.execute("DELETE FROM exemplars WHERE start >= ?1 AND start < ?2", [from, to])?;
    Ok(())
}
