//! A few traces of each interval, kept whole, so that what a model says can be followed down to spans.

use std::collections::BTreeSet;

use dyelog::lqn::submodel::SubModel;

use super::database::Database;
use super::{StoreError, compressed};

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
pub fn write(database: &dyn Database, exemplars: &[Exemplar]) -> Result<(), StoreError> {
    for own in exemplars {
        let content = compressed(&own.request, 3);
        database.run(
            "INSERT INTO exemplars (start, trace, content) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            &[own.start.into(), own.trace.to_be_bytes().as_slice().into(), content.as_slice().into()],
        )?;
    }
    Ok(())
}

/// The exemplars that bear witness of a period's sub-model, as one request of OTLP.
pub fn read(database: &dyn Database, (from, to): (i64, i64), submodel: &SubModel) -> Result<Vec<u8>, StoreError> {
    let mut request = Vec::new();
    for trace in witnesses(submodel) {
        database.each(
            "SELECT content FROM exemplars WHERE trace = ?1 AND start >= ?2 AND start < ?3 ORDER BY start LIMIT 1",
            &[trace.to_be_bytes().as_slice().into(), from.into(), to.into()],
            &mut |row| {
                // Requests one after the other are one request.
                let content =
                    zstd::decode_all(row.bytes(0)?).map_err(|error| StoreError::Damaged(error.to_string()))?;
                request.extend(content);
                Ok(())
            },
        )?;
    }
    Ok(request)
}

/// Forgets the exemplars of intervals that no longer bear witness of what these were merged to.
pub fn thin(database: &dyn Database, (from, to): (i64, i64), submodel: &SubModel) -> Result<(), StoreError> {
    let kept: BTreeSet<Vec<u8>> = witnesses(submodel).into_iter().map(|trace| trace.to_be_bytes().to_vec()).collect();
    let found = database.all(
        "SELECT trace FROM exemplars WHERE start >= ?1 AND start < ?2",
        &[from.into(), to.into()],
        |row| Ok(row.bytes(0)?.to_vec()),
    )?;
    for trace in found.iter().filter(|trace| !kept.contains(*trace)) {
        database.run(
            "DELETE FROM exemplars WHERE trace = ?1 AND start >= ?2 AND start < ?3",
            &[trace.as_slice().into(), from.into(), to.into()],
        )?;
    }
    Ok(())
}

/// Deletes exemplars from a time to another.
pub fn delete(database: &dyn Database, (from, to): (i64, i64)) -> Result<(), StoreError> {
    database.run("DELETE FROM exemplars WHERE start >= ?1 AND start < ?2", &[from.into(), to.into()])?;
    Ok(())
}
