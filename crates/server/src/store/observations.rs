//! What observers reported, row by row: a process and an interval.

use dyelog_observe::json;
use dyelog_observe::observation::{Observation, Process};
use rusqlite::{Statement, ToSql, TransactionBehavior, params_from_iter};

use super::stretches::{Gathered, MERGED, MOST_ROWS, is_merged};
use super::{Store, StoreError, rows};

/// Processes that are listed at most.
const MOST_PROCESSES: usize = 1 << 16;

/// Which observations are meant; of what is not said, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Of that application.
    pub application: Option<String>,
    /// Of processes of that node.
    pub host: Option<String>,
    /// Of the process with that number at its node.
    pub process: Option<u64>,
}

impl Which {
    /// Whether a process is meant.
    pub fn is(&self, process: &Process) -> bool {
        self.application.as_deref().is_none_or(|own| own == &*process.application)
            && self.host.as_deref().is_none_or(|own| own == &*process.host)
            && self.process.is_none_or(|own| own == process.id)
    }

    /// The condition on rows from a time to another, and its values.
    fn condition(&self, from: i64, to: i64) -> (String, Vec<Box<dyn ToSql>>) {
        let mut words =
            "start + (\"end\" - start) / 2 >= ? AND start + (\"end\" - start) / 2 < ? AND start < ?".to_owned();
        let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(from), Box::new(to), Box::new(to)];
        if let Some(application) = &self.application {
            words.push_str(" AND application = ?");
            values.push(Box::new(application.clone()));
        }
        if let Some(host) = &self.host {
            words.push_str(" AND host = ?");
            values.push(Box::new(host.clone()));
        }
        if let Some(process) = self.process {
            words.push_str(" AND process = ?");
            values.push(Box::new(process.cast_signed()));
        }
        (words, values)
    }
}

impl Store {
    /// Adds groups of observations that came at a time, nanoseconds since 1970, all of them or nothing; says of each group how many were new.
    /// They are on disk when this returns.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn put_observations(&mut self, groups: &[Vec<Observation>], now: u64) -> Result<Vec<u64>, StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut new = Vec::with_capacity(groups.len());
        {
            let mut statement = transaction.prepare(
                "INSERT OR IGNORE INTO observations (application, host, program, process, started, start, \"end\", content, touched)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?;
            let mut merged = transaction.prepare(MERGED)?;
            for group in groups {
                let mut own = 0;
                for observation in group {
                    if !is_merged(&mut merged, observation)? {
                        own += insert(&mut statement, observation, now)? as u64;
                    }
                }
                new.push(own);
            }
        }
        transaction.commit()?;
        Ok(new)
    }

    /// Observations whose middle lies from a time to another, in the order of time. Where there are very many, those of a process that
    /// are next to each other are merged.
    ///
    /// # Errors
    /// When the store cannot be read, what it holds cannot, or there are more processes than observations can be read at once.
    pub fn observations(&self, which: &Which, from: i64, to: i64) -> Result<Vec<Observation>, StoreError> {
        let mut gathered = Gathered::new(MOST_ROWS);
        self.each_observation(which, (from, to), |observation| gathered.add(observation))?;
        gathered.finish()
    }

    /// The same as they are kept, as observers report them; `None` where nothing is there.
    ///
    /// # Errors
    /// When the store cannot be read, what it holds cannot, or there are more than can be read at once.
    pub fn reports(&self, from: u64, to: u64) -> Result<Option<String>, StoreError> {
        let mut found = Vec::new();
        self.each_observation(&Which::default(), rows::bounds(from, to), |observation| {
            if found.len() >= MOST_ROWS {
                return Err(StoreError::TooMany(MOST_ROWS));
            }
            found.push(observation);
            Ok(())
        })?;
        Ok((!found.is_empty()).then(|| json::write(&found)))
    }

    /// Gives observations whose middle lies from a time to another, in the order of time.
    fn each_observation(
        &self,
        which: &Which,
        (from, to): (i64, i64),
        mut take: impl FnMut(Observation) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (condition, values) = which.condition(from, to);
        let query = format!("SELECT content FROM observations WHERE {condition} ORDER BY start, \"end\"");
        let mut statement = self.connection.prepare(&query)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            take(unpacked(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?)?;
        }
        Ok(())
    }

    /// The first interval of a process that begins at a time or later, and before another.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn first_observation(&self, which: &Which, after: i64, before: i64) -> Result<Option<Observation>, StoreError> {
        let (condition, mut values) = which.condition(i64::MIN, i64::MAX);
        values.extend([Box::new(after) as Box<dyn ToSql>, Box::new(before)]);
        let query = format!(
            "SELECT content FROM observations WHERE {condition} AND start >= ? AND start < ? ORDER BY start, \"end\" LIMIT 1"
        );
        let mut statement = self.connection.prepare(&query)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        unpacked(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?).map(Some)
    }

    /// Applications that were active in a period, by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn applications(&self, from: i64, to: i64) -> Result<Vec<String>, StoreError> {
        let (condition, values) = Which::default().condition(from, to);
        let query = format!("SELECT DISTINCT application FROM observations WHERE {condition} ORDER BY application");
        let mut statement = self.connection.prepare(&query)?;
        let names = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Processes that reported in a period.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn processes(&self, which: &Which, from: i64, to: i64) -> Result<Vec<Process>, StoreError> {
        let (condition, values) = which.condition(from, to);
        let query = format!(
            "SELECT DISTINCT application, host, program, process, started FROM observations WHERE {condition}
             ORDER BY application, host, program, process, started LIMIT {MOST_PROCESSES}"
        );
        let mut statement = self.connection.prepare(&query)?;
        let processes = statement.query_map(params_from_iter(values), |row| {
            let name = |at| row.get::<_, String>(at).map(|name| name.as_str().into());
            let id = row.get::<_, i64>(3)?.cast_unsigned();
            Ok(Process { application: name(0)?, host: name(1)?, program: name(2)?, id, started: row.get(4)? })
        })?;
        Ok(processes.collect::<Result<_, _>>()?)
    }

    /// Deletes observations from a time to another, but for merged ones that go beyond; says how many.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete_observations(&mut self, which: &Which, from: i64, to: i64) -> Result<usize, StoreError> {
        let (condition, mut values) = which.condition(from, to);
        values.extend([Box::new(from) as Box<dyn ToSql>, Box::new(to)]);
        let query =
            format!("DELETE FROM observations WHERE {condition} AND (level = 0 OR start >= ? AND \"end\" <= ?)");
        Ok(self.connection.execute(&query, params_from_iter(values))?)
    }

    /// Deletes all performance data, of observers and of traces.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        transaction.execute_batch(
            "DELETE FROM observations; DELETE FROM intervals; DELETE FROM exemplars; DELETE FROM totals;",
        )?;
        Ok(transaction.commit()?)
    }
}

/// Adds an observation, if it is new; says how many were added.
fn insert(statement: &mut Statement<'_>, observation: &Observation, now: u64) -> Result<usize, StoreError> {
    let Process { application, host, program, id, started } = &observation.process;
    let names = (application.as_ref(), host.as_ref(), program.as_ref());
    let (times, touched) = ((observation.from, observation.to), i64::try_from(now).unwrap_or(i64::MAX));
    let content = packed(observation)?;
    Ok(statement.execute((names.0, names.1, names.2, id.cast_signed(), started, times.0, times.1, content, touched))?)
}

/// What the store keeps of an observation.
pub(super) fn packed(observation: &Observation) -> Result<Vec<u8>, StoreError> {
    zstd::encode_all(json::write(std::slice::from_ref(observation)).as_bytes(), 1)
        .map_err(|error| StoreError::Damaged(error.to_string()))
}

pub(super) fn unpacked(content: &[u8]) -> Result<Observation, StoreError> {
    let damaged = |what: String| StoreError::Damaged(what);
    let text = zstd::decode_all(content).map_err(|error| damaged(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
    let mut found = json::parse("the store", &text).map_err(|findings| damaged(findings.to_string()))?;
    found.pop().ok_or_else(|| damaged("an observation".to_owned()))
}
