//! The store: sub-models by interval, and where the journal was read to, in SQLite.
//!
//! What a checkpoint brings, new sub-models, counts and the position in the journal, is one transaction. Sub-models of an interval
//! may lie in several parts; the model of a period is the merge of all parts in it.

pub mod exemplars;
mod observations;
mod rows;
mod samples;
mod schema;
mod stretches;
mod thin;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dyelog::diagnostic::Diagnostics;
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};

use crate::counts::Counts;
use crate::meter::{SeriesKey, Standing};
use crate::metered::Metered;
use exemplars::Exemplar;
pub use observations::Which;
pub use rows::{Interval, LEVELS, Level};

/// A store that is open.
pub struct Store {
    connection: Connection,
    /// Up to when totals of metrics were thinned out.
    thinned: [u64; 3],
}

/// Why a store does not do what it is asked to.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    /// It was written by a later version.
    Newer(i64),
    /// More than so many rows are meant.
    TooMany(usize),
    /// What it holds is damaged.
    Damaged(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "{error}"),
            Self::Newer(version) => write!(f, "it was written by a later version of this program (schema {version})"),
            Self::TooMany(most) => write!(f, "the period has more than {most} observations"),
            Self::Damaged(what) => write!(f, "it is damaged: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// How far the journal was read, and what was open then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Where the next record begins.
    pub position: u64,
    /// How many spans came before it.
    pub number: u64,
    /// The first record of which a span was open, and the number of its first span.
    pub low: (u64, u64),
    /// The numbers of the spans that were open, in order.
    pub open: Vec<u64>,
    /// The time of receipt that was reached.
    pub clock: u64,
    /// The counts.
    pub counts: Counts,
}

/// What a checkpoint brings.
pub struct Checkpoint<'c> {
    /// Where it stands.
    pub progress: &'c Progress,
    /// By the begin of their interval: sub-models, and how many spans are in each.
    pub submodels: &'c [(u64, SubModel, u64)],
    /// Digests of spans: the row to be added.
    pub recent: Option<(i64, Vec<u8>)>,
    /// Digests of spans: rows to be removed, up to this one.
    pub expired: Option<i64>,
    /// What tells entries apart.
    pub merge: &'c str,
    /// Traces that are kept.
    pub exemplars: &'c [Exemplar],
    /// Totals of metrics.
    pub totals: &'c [(&'c SeriesKey, u64, f64, Standing)],
}

impl Store {
    /// Opens a store, or makes one, to write to.
    ///
    /// # Errors
    /// When it cannot be opened, or was written by a later version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let mut store = Self { connection, thinned: [0; 3] };
        schema::migrate(&mut store.connection)?;
        Ok(store)
    }

    /// Opens a store that is there, to read from.
    ///
    /// # Errors
    /// When it is not there, cannot be opened, or was written by a later version.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        schema::check(&connection)?;
        Ok(Self { connection, thinned: [0; 3] })
    }

    /// Where the last checkpoint stood.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn progress(&self) -> Result<Progress, StoreError> {
        let row = self.connection.query_row(
            "SELECT position, number, low_position, low_number, clock, open, counts FROM progress",
            [],
            |row| {
                let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
                let numbers = (number(0)?, number(1)?, number(2)?, number(3)?, number(4)?);
                Ok((numbers, row.get::<_, Vec<u8>>(5)?, row.get::<_, String>(6)?))
            },
        );
        let Some(((position, number, low_position, low_number, clock), open, counts)) = row.optional()? else {
            return Ok(Progress::default());
        };
        let counts = serde_json::from_str(&counts).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let open = rows::numbers_of(&open).ok_or_else(|| StoreError::Damaged("what was open".to_owned()))?;
        Ok(Progress { position, number, low: (low_position, low_number), open, clock, counts })
    }

    /// Gives the rows of digests of spans, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn recent(&self, mut take: impl FnMut(i64, &[u8])) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare("SELECT number, digests FROM recent ORDER BY number")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(row.get(0)?, row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?);
        }
        Ok(())
    }

    /// Writes a checkpoint, all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn commit(&mut self, checkpoint: &Checkpoint<'_>) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        for (start, submodel, spans) in checkpoint.submodels {
            let content = rows::packed(submodel, checkpoint.merge);
            rows::insert(&transaction, LEVELS[0], *start, checkpoint.progress.clock, *spans, &content)?;
        }
        if let Some((number, digests)) = &checkpoint.recent {
            transaction.execute("INSERT INTO recent (number, digests) VALUES (?1, ?2)", params![number, digests])?;
        }
        if let Some(expired) = checkpoint.expired {
            transaction.execute("DELETE FROM recent WHERE number <= ?1", [expired])?;
        }
        exemplars::write(&transaction, checkpoint.exemplars)?;
        samples::write(&transaction, checkpoint.totals)?;
        write_progress(&transaction, checkpoint.progress)?;
        Ok(transaction.commit()?)
    }

    /// The intervals from a time to another that have anything, in order; of an interval that goes beyond, all.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn intervals(&self, from: u64, to: u64) -> Result<Vec<Interval>, StoreError> {
        rows::list(&self.connection, from, to)
    }

    /// The sub-model of a period, and what tells its entries apart; `None` where nothing is there.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn period(&self, from: u64, to: u64) -> Result<Option<(SubModel, String)>, StoreError> {
        rows::merged(&self.connection, from, to)
    }

    /// Traces that bear witness of the sub-model of a period, as a request of OTLP; `None` where nothing is there. Sub-models that were
    /// imported have none.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn exemplars(&self, from: u64, to: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((submodel, _)) = self.period(from, to)? else { return Ok(None) };
        // An interval is as long as the longest at most, and may begin before the period.
        let first = from.saturating_sub(LEVELS[LEVELS.len() - 1].length);
        exemplars::read(&self.connection, rows::bounds(first, to), &submodel).map(Some)
    }

    /// The metrics of a period.
    ///
    /// # Errors
    /// When the store cannot be read, what it holds cannot, or there are more than can be read at once.
    pub fn metered(&self, from: u64, to: u64) -> Result<Metered, StoreError> {
        samples::read(&self.connection, from, to)
    }

    /// Gives all series of metrics, and where they stand.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn standings(&self, take: impl FnMut(SeriesKey, Standing)) -> Result<(), StoreError> {
        samples::standings(&self.connection, take)
    }

    /// Deletes the intervals from a time to another, but for those that go beyond; says how many.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete(&mut self, from: u64, to: u64) -> Result<usize, StoreError> {
        let transaction = self.connection.transaction()?;
        let deleted = rows::delete(&transaction, from, to)?;
        transaction.commit()?;
        Ok(deleted)
    }

    /// Adds a sub-model from elsewhere to the interval of a time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, start: u64, now: u64, submodel: &SubModel, merge: &str) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        rows::insert(&transaction, LEVELS[0], start, now, 0, &rows::packed(submodel, merge))?;
        Ok(transaction.commit()?)
    }

    /// Merges intervals that are old enough to longer ones, and removes what is older than it is kept. Does a part of it at a time;
    /// says whether more is left.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn roll_up(&mut self, now: u64, retention: u64) -> Result<bool, StoreError> {
        let transaction = self.connection.transaction()?;
        let mut more = rows::roll_up(&transaction, now, retention)?;
        let oldest = i64::try_from(now.saturating_sub(retention)).unwrap_or(i64::MAX);
        // A merged observation goes with its end, as an interval does.
        transaction.execute("DELETE FROM observations WHERE start < ?1 AND \"end\" < ?1", [oldest])?;
        more |= stretches::roll_up(&transaction, now)?;
        samples::thin(&transaction, now, retention, &mut self.thinned)?;
        transaction.commit()?;
        Ok(more)
    }
}

fn write_progress(transaction: &Transaction<'_>, progress: &Progress) -> Result<(), StoreError> {
    let counts = serde_json::to_string(&progress.counts).expect("counts are plain");
    let signed = u64::cast_signed;
    transaction.execute(
        "INSERT OR REPLACE INTO progress (id, position, number, low_position, low_number, clock, open, counts)
         VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            signed(progress.position),
            signed(progress.number),
            signed(progress.low.0),
            signed(progress.low.1),
            signed(progress.clock),
            rows::bytes_of(&progress.open),
            counts
        ],
    )?;
    Ok(())
}

/// A sub-model as the store keeps it.
fn unpacked(content: &[u8]) -> Result<(SubModel, String), StoreError> {
    let damaged = |what: String| StoreError::Damaged(what);
    let text = zstd::decode_all(content).map_err(|error| damaged(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
    saved::parse(&Arc::from("the store"), &text).map_err(|Diagnostics(found)| {
        damaged(found.first().map_or_else(String::new, |finding| finding.message.clone()))
    })
}
