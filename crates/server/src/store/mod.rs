//! The store: sub-models by interval, and where the journal was read to, in SQLite or PostgreSQL.
//!
//! What a checkpoint brings, new sub-models, counts and the position in the journal, is one transaction. Sub-models of an interval
//! may lie in several parts; the model of a period is the merge of all parts in it.

mod answers;
mod asides;
mod database;
mod deployed;
pub mod exemplars;
mod location;
mod materialized;
mod observations;
mod postgres;
mod rows;
mod samples;
mod schema;
mod sqlite;
mod stretches;
mod sums;
mod thin;
mod uptimes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;
use std::sync::Arc;

use dyelog::diagnostic::Diagnostics;
use dyelog::lqn::digest::Digest;
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::model::rates_depend_on_observed;

use crate::aside::{Aside, Why};
use crate::counts::Counts;
use crate::deployment::{Deployed, Seen, Times};
use crate::late::{self, Answer, Answers};
use crate::meter::{SeriesKey, Standing};
use crate::metered::Metered;
use crate::parts::Glance;
use database::{Database, Value};
use exemplars::Exemplar;
pub use location::Location;
pub use observations::{Overlap, Which};
use postgres::Postgres;
pub use postgres::address::Address;
use rows::bounds;
pub use rows::{Interval, LEVELS, LONGEST, Level};
use rusqlite::ErrorCode;
use sqlite::Sqlite;
pub use sums::Sums;
pub use uptimes::Uptime;
use zstd::bulk::Decompressor;
use zstd::zstd_safe;

/// What is unpacked into memory of its size at once, bytes.
const LARGEST_AT_ONCE: usize = 16 << 20;

/// A store that is open.
pub struct Store {
    database: Box<dyn Database>,
    /// Up to when totals of metrics were thinned out.
    thinned: [u64; 3],
    /// What earlier questions came to.
    sums: Option<Arc<Sums>>,
}

/// Why a store does not do what it is asked to.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    /// Another process has the file.
    Locked,
    /// PostgreSQL says so, or cannot be reached.
    Postgres(String),
    /// Whether a transaction was kept cannot be told: the connection broke while it ended.
    Uncertain(String),
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
            Self::Locked => f.write_str("another process has locked it"),
            Self::Postgres(why) => write!(f, "{why}"),
            Self::Uncertain(why) => write!(f, "whether it was written cannot be told: {why}"),
            Self::Newer(version) => write!(f, "it was written by a later version of this program (schema {version})"),
            Self::TooMany(most) => write!(f, "the period has more than {most} observations"),
            Self::Damaged(what) => write!(f, "it is damaged: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            _ => Self::Sqlite(error),
        }
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
    /// Who was found to answer whom late.
    pub answers: &'c Answers,
    /// Spans that were set aside.
    pub aside: &'c Aside,
    /// Which services were seen in which deployments.
    pub deployed: &'c Seen,
    /// Since when operations were taken in, and up to when all of them are in sub-models, nanoseconds since 1970.
    pub uptime: Option<Uptime>,
    /// Totals of metrics.
    pub totals: &'c [(&'c SeriesKey, u64, f64, Standing)],
    /// Whether the clock had been ahead: what was written then counts as written now.
    pub set_back: bool,
}

impl Store {
    /// Opens a store in a file, or makes one, to write to.
    ///
    /// # Errors
    /// When it cannot be opened, or was written by a later version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::made(Box::new(Sqlite::open(path)?))
    }

    /// Opens a store in a file that is there, to read from.
    ///
    /// # Errors
    /// When it is not there, cannot be opened, or was written by a later version.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        Self::found(Box::new(Sqlite::read(path)?))
    }

    /// Opens a store wherever it is, or makes one, to write to.
    ///
    /// # Errors
    /// When it cannot be opened, or was written by a later version.
    pub fn open_at(location: &Location) -> Result<Self, StoreError> {
        match location {
            Location::File(path) => Self::open(path),
            Location::Postgres(address) => Self::made(Box::new(Postgres::open(address)?)),
        }
    }

    /// The same for the one that reads the journal: of a database there is one such at a time.
    ///
    /// # Errors
    /// As [`Store::open_at`], and when another has the store.
    pub fn claim(location: &Location) -> Result<Self, StoreError> {
        match location {
            // A lock file beside it does the same.
            Location::File(path) => Self::made(Box::new(Sqlite::attended(path)?)),
            Location::Postgres(address) => Self::made(Box::new(Postgres::claim(address)?)),
        }
    }

    /// Opens a store wherever it is, to write to by a thread that must not be silent for long.
    ///
    /// # Errors
    /// As [`Store::open_at`].
    pub fn attend(location: &Location) -> Result<Self, StoreError> {
        match location {
            Location::File(path) => Self::made(Box::new(Sqlite::attended(path)?)),
            Location::Postgres(_) => Self::open_at(location),
        }
    }

    /// Opens a store wherever it is, to read from.
    ///
    /// # Errors
    /// When it is not there, cannot be opened, or was written by a later version.
    pub fn read_at(location: &Location) -> Result<Self, StoreError> {
        match location {
            Location::File(path) => Self::read(path),
            Location::Postgres(address) => Self::found(Box::new(Postgres::read(address)?)),
        }
    }

    fn made(database: Box<dyn Database>) -> Result<Self, StoreError> {
        schema::migrate(&*database)?;
        Ok(Self { database, thinned: [0; 3], sums: None })
    }

    fn found(database: Box<dyn Database>) -> Result<Self, StoreError> {
        schema::check(&*database)?;
        Ok(Self { database, thinned: [0; 3], sums: None })
    }

    /// Remembers what questions come to, with others that ask the same store.
    #[must_use]
    pub fn remembering(self, sums: Arc<Sums>) -> Self {
        Self { sums: Some(sums), ..self }
    }

    /// Removes what a database holds of it; of a file nothing.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_tables(self) -> Result<(), StoreError> {
        self.database.remove()
    }

    /// Where the last checkpoint stood.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn progress(&self) -> Result<Progress, StoreError> {
        let found = self.database.first(
            "SELECT position, number, low_position, low_number, clock, open, counts FROM progress",
            &[],
            |row| {
                let counts =
                    serde_json::from_str(row.text(6)?).map_err(|error| StoreError::Damaged(error.to_string()))?;
                let open =
                    rows::numbers_of(row.bytes(5)?).ok_or_else(|| StoreError::Damaged("what was open".to_owned()))?;
                let number = |at| row.unsigned(at);
                let low = (number(2)?, number(3)?);
                Ok(Progress { position: number(0)?, number: number(1)?, low, open, clock: number(4)?, counts })
            },
        )?;
        Ok(found.unwrap_or_default())
    }

    /// The end of what was last recorded, by the clocks of those that recorded it; `None` where nothing is there.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn newest(&self) -> Result<Option<u64>, StoreError> {
        let last = |column: &str, table: &str| {
            let sql = format!("SELECT {column} FROM {table} ORDER BY start DESC LIMIT 1");
            self.database.first(&sql, &[], |row| row.unsigned(0))
        };
        Ok(last("start + length", "intervals")?.max(last("\"end\"", "observations")?))
    }

    /// Gives the rows of digests of spans, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn recent(&self, mut take: impl FnMut(i64, &[u8])) -> Result<(), StoreError> {
        self.database.each("SELECT number, digests FROM recent ORDER BY number", &[], &mut |row| {
            take(row.number(0)?, row.bytes(1)?);
            Ok(())
        })
    }

    /// Writes a checkpoint, all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn commit(&mut self, checkpoint: &Checkpoint<'_>) -> Result<(), StoreError> {
        let clock = checkpoint.progress.clock;
        self.database.transaction(|database| {
            for (start, submodel, spans) in checkpoint.submodels {
                let content = thin::packed(submodel, checkpoint.merge);
                rows::insert(database, (*start, LEVELS[0].length), clock, *spans, &content)?;
            }
            if let Some((number, digests)) = &checkpoint.recent {
                let row: [Value<'_>; 2] = [(*number).into(), digests.as_slice().into()];
                database.run("INSERT INTO recent (number, digests) VALUES (?1, ?2)", &row)?;
            }
            if let Some(expired) = checkpoint.expired {
                database.run("DELETE FROM recent WHERE number <= ?1", &[expired.into()])?;
            }
            exemplars::write(database, checkpoint.exemplars)?;
            answers::write(database, checkpoint.answers, clock)?;
            asides::write(database, checkpoint.aside)?;
            deployed::write(database, checkpoint.deployed, clock)?;
            samples::write(database, checkpoint.totals)?;
            if checkpoint.set_back {
                for table in ["intervals", "observations", "answers", "deployed"] {
                    let sql = format!("UPDATE {table} SET touched = ?1 WHERE touched > ?1");
                    database.run(&sql, &[clock.into()])?;
                }
                uptimes::set_back(database, clock)?;
            }
            if let Some(uptime) = checkpoint.uptime {
                uptimes::write(database, uptime)?;
            }
            write_progress(database, checkpoint.progress)
        })
    }

    /// The intervals from a time to another that have anything, in order; of an interval that goes beyond, all.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn intervals(&self, from: u64, to: u64) -> Result<Vec<Interval>, StoreError> {
        rows::list(&*self.database, from, to)
    }

    /// The sub-model of a period, and what tells its entries apart; `None` where nothing is there.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn period(&self, from: u64, to: u64) -> Result<Option<(SubModel, String)>, StoreError> {
        self.period_by_interval(from, to, |_| {})
    }

    /// The same, and gives what each interval that reaches into the period adds to a history, in the order of time.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn period_by_interval(
        &self,
        from: u64,
        to: u64,
        take: impl FnMut(&Glance),
    ) -> Result<Option<(SubModel, String)>, StoreError> {
        self.database.view(|database| {
            let answers = answers::read(database)?;
            let mut sum = sums::sum_up(database, self.sums.as_deref(), (from, to), &answers, take)?;
            if let Some((submodel, _)) = &mut sum {
                late::join(submodel, &answers);
                let observed = observed(database, from, to)?;
                submodel.observe(&observed.into_iter().map(|(from, to)| bounds(from, to)).collect::<Vec<_>>());
                // A sub-model that does without is that of the same spans in a file.
                if !rates_depend_on_observed(submodel) {
                    submodel.observed.clear();
                }
            }
            Ok(sum)
        })
    }

    /// The times of a period at which operations were taken in, whether any came or not: in order and apart. A period that has no begin or no end begins or ends with what is there,
    /// and of one that has neither nothing is known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn observed(&self, from: u64, to: u64) -> Result<Times, StoreError> {
        self.database.view(|database| observed(database, from, to))
    }

    /// A digest of all that answers about a period depend on: as long as it is the same, so are they. Periods that differ and have the same of it have the same answers.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn state(&self, from: u64, to: u64) -> Result<u128, StoreError> {
        /// The digests of states are a kind of their own.
        const STATE: u64 = 0x5354;
        self.database.view(|database| {
            let mut digest = sums::digest(database, (from, to), Digest::of(STATE))?;
            for (Answer { caller, peer, callee }, seen) in answers::read(database)? {
                digest = [caller, peer, callee].into_iter().fold(digest, Digest::key).word(seen);
            }
            for (why, spans) in asides::read(database, from, to)? {
                digest = digest.word(why.number()).word(spans);
            }
            for Deployed { side, service, name } in deployed::read(database, from, to)? {
                digest = digest.text(side.word()).text(&service).text(&name);
            }
            for (begin, end) in observed(database, from, to)? {
                digest = digest.word(begin).word(end);
            }
            let metered = self.metered(from, to)?;
            if let Some((first, last)) = metered.no_room {
                digest = digest.word(first).word(last);
            }
            for (key, totals) in &metered.series {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                digest = digest.word(hasher.finish()).word(totals.len() as u64);
                digest = totals.iter().fold(digest, |digest, (time, total)| digest.word(*time).word(total.to_bits()));
            }
            Ok(digest.finish().0)
        })
    }

    /// Traces that bear witness of the sub-model of a period, as a request of OTLP; `None` where nothing is there. Sub-models that were
    /// imported have none.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn exemplars(&self, from: u64, to: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((submodel, _)) = self.period(from, to)? else { return Ok(None) };
        // An interval may begin before the period.
        let first = from.saturating_sub(LONGEST);
        exemplars::read(&*self.database, rows::bounds(first, to), &submodel).map(Some)
    }

    /// The metrics of a period.
    ///
    /// # Errors
    /// When the store cannot be read, what it holds cannot, or there are more than can be read at once.
    pub fn metered(&self, from: u64, to: u64) -> Result<Metered, StoreError> {
        let mut metered = samples::read(&*self.database, from, to)?;
        metered.no_room = self.progress()?.counts.no_room.filter(|(first, last)| *first < to && from <= *last);
        Ok(metered)
    }

    /// How many spans of a period were set aside, by reason.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn set_aside(&self, from: u64, to: u64) -> Result<BTreeMap<Why, u64>, StoreError> {
        asides::read(&*self.database, from, to)
    }

    /// Which services were seen in which deployments in a period.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn deployed(&self, from: u64, to: u64) -> Result<BTreeSet<Deployed>, StoreError> {
        deployed::read(&*self.database, from, to)
    }

    /// Gives all series of metrics, and where they stand.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn standings(&self, take: impl FnMut(SeriesKey, Standing)) -> Result<(), StoreError> {
        samples::standings(&*self.database, take)
    }

    /// Deletes the intervals from a time to another, but for those that go beyond, and what metrics told of that time; says how many intervals.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete(&mut self, from: u64, to: u64) -> Result<usize, StoreError> {
        self.database.transaction(|database| {
            let (first, end) = rows::bounds(from, to);
            samples::delete(database, first, end)?;
            asides::delete(database, first, end)?;
            deployed::delete(database, from, to)?;
            uptimes::delete(database, from, to)?;
            rows::delete(database, from, to)
        })
    }

    /// Adds a sub-model from elsewhere to the interval of a time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, start: u64, now: u64, submodel: &SubModel, merge: &str) -> Result<(), StoreError> {
        self.add_whole((start, LEVELS[0].length), now, submodel, merge)
    }

    /// Adds one to an interval of that begin and length, which is [`LONGEST`] at most.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_whole(
        &mut self,
        (start, length): (u64, u64),
        now: u64,
        submodel: &SubModel,
        merge: &str,
    ) -> Result<(), StoreError> {
        let content = thin::packed(submodel, merge);
        self.database.transaction(|database| rows::insert(database, (start, length), now, 0, &content))
    }

    /// Merges intervals that are old enough to longer ones, and removes what is older than it is kept. Does a part of it at a time;
    /// says whether more is left.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn roll_up(&mut self, now: u64, retention: u64) -> Result<bool, StoreError> {
        let Self { database, thinned, .. } = self;
        // What is thinned out is so only once all of it is written.
        let mut done = *thinned;
        let more = database.transaction(|database| {
            let mut more = rows::roll_up(database, now, retention)?;
            let oldest = i64::try_from(now.saturating_sub(retention)).unwrap_or(i64::MAX);
            // A merged observation goes with its end, as an interval does; and what came a short while ago stays, however old it says that it is.
            let old = "DELETE FROM observations WHERE start < ?1 AND \"end\" < ?1 AND touched < ?1";
            database.run(old, &[oldest.into()])?;
            database.run("DELETE FROM answers WHERE touched < ?1", &[oldest.into()])?;
            more |= stretches::roll_up(database, now)?;
            samples::thin(database, now, retention, &mut done)?;
            asides::roll_up(database, now, retention)?;
            deployed::expire(database, oldest)?;
            uptimes::expire(database, oldest)?;
            Ok(more)
        })?;
        *thinned = done;
        Ok(more)
    }
}

/// See [`Store::observed`]. What an interval has that goes beyond the period is a part of its sub-model.
fn observed(database: &dyn Database, from: u64, to: u64) -> Result<Times, StoreError> {
    let Some((first, last)) = rows::extent(database, from, to)? else { return Ok(Times::new()) };
    match (from == 0, to > i64::MAX.cast_unsigned()) {
        (true, true) => Ok(Times::new()),
        (true, false) => uptimes::read(database, first, to.max(last)),
        (false, true) => uptimes::read(database, from.min(first), last),
        (false, false) => uptimes::read(database, from.min(first), to.max(last)),
    }
}

fn write_progress(database: &dyn Database, progress: &Progress) -> Result<(), StoreError> {
    let counts = serde_json::to_string(&progress.counts).expect("counts are plain");
    let open = rows::bytes_of(&progress.open);
    let Progress { position, number, low, clock, .. } = *progress;
    database.run(
        "INSERT INTO progress (id, position, number, low_position, low_number, clock, open, counts)
         VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (id) DO UPDATE SET position = ?1, number = ?2, low_position = ?3, low_number = ?4, clock = ?5, open = ?6, counts = ?7",
        &[
            position.into(),
            number.into(),
            low.0.into(),
            low.1.into(),
            clock.into(),
            open.as_slice().into(),
            counts.as_str().into(),
        ],
    )?;
    Ok(())
}

/// Bytes, compressed at once: the tables of the hard levels are as large as the input then, and else as the largest there may be.
fn compressed(bytes: &[u8], level: i32) -> Vec<u8> {
    zstd::bulk::compress(bytes, level).expect("memory takes all")
}

/// The bytes that were compressed.
fn decompressed(content: &[u8]) -> Result<Vec<u8>, StoreError> {
    thread_local! {
        /// Its tables are large, and made once.
        static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let damaged = |error: io::Error| StoreError::Damaged(error.to_string());
    let told = zstd_safe::get_frame_content_size(content).ok().flatten();
    // What says that it is larger than anything here is looked at as it comes.
    let Some(length) = told.and_then(|told| usize::try_from(told).ok()).filter(|told| *told <= LARGEST_AT_ONCE) else {
        return zstd::decode_all(content).map_err(damaged);
    };
    UNPACKER.with_borrow_mut(|unpacker| {
        if unpacker.is_none() {
            *unpacker = Some(Decompressor::new().map_err(damaged)?);
        }
        let unpacker = unpacker.as_mut().ok_or_else(|| StoreError::Damaged("there is no memory".to_owned()))?;
        unpacker.decompress(content, length).map_err(damaged)
    })
}

/// The text that was compressed.
fn decompressed_text(content: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(decompressed(content)?).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A sub-model as the store keeps it.
fn unpacked(content: &[u8]) -> Result<(SubModel, String), StoreError> {
    saved::unpack(&Arc::from("the store"), &decompressed(content)?).map_err(|Diagnostics(found)| {
        StoreError::Damaged(found.first().map_or_else(String::new, |finding| finding.message.clone()))
    })
}
