//! What observers reported, row by row: a process and an interval.

use std::fmt;

use dyelog_observe::json;
use dyelog_observe::observation::{Observation, Process};

use super::database::{Database, Value};
use super::stretches::{CLOSE, Gathered, MOST_ROWS, Merged, merged};
use super::{Store, StoreError, compressed, decompressed_text, rows};

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

    /// The condition on rows whose middle lies from a time to another, and its values.
    fn condition(&self, from: i64, to: i64) -> (String, Vec<Value<'_>>) {
        let mut words =
            "start + (\"end\" - start) / 2 >= ?1 AND start + (\"end\" - start) / 2 < ?2 AND start < ?2".to_owned();
        let mut values = vec![Value::Number(from), Value::Number(to)];
        let mut is = |column: &str, value| {
            values.push(value);
            words.push_str(&format!(" AND {column} = ?{}", values.len()));
        };
        if let Some(application) = &self.application {
            is("application", application.as_str().into());
        }
        if let Some(host) = &self.host {
            is("host", host.as_str().into());
        }
        if let Some(process) = self.process {
            is("process", process.into());
        }
        (words, values)
    }
}

/// Adds two more values to those of a condition; gives how they are written.
fn with_ends(values: &mut Vec<Value<'_>>, from: i64, to: i64) -> (String, String) {
    values.extend([Value::Number(from), Value::Number(to)]);
    (format!("?{}", values.len() - 1), format!("?{}", values.len()))
}

impl Store {
    /// Adds groups of observations that came at a time, nanoseconds since 1970, all of them or nothing; says of each group how many were new.
    /// Nothing is added of a group in which one is of a time of which another one of its process tells a part. They are on disk when this returns.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn put_observations(
        &mut self,
        groups: &[Vec<Observation>],
        now: u64,
    ) -> Result<Vec<Result<u64, Overlap>>, StoreError> {
        let touched = i64::try_from(now).unwrap_or(i64::MAX);
        self.database.transaction(|database| {
            let mut new = Vec::with_capacity(groups.len());
            for group in groups {
                new.push(match added(database, group)? {
                    Ok(added) => {
                        let mut own = 0;
                        for observation in added {
                            own += insert(database, observation, touched, 0, &[])? as u64;
                        }
                        Ok(own)
                    }
                    Err(overlap) => Err(overlap),
                });
            }
            Ok(new)
        })
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
        self.database.each(&query, &values, &mut |row| take(unpacked(row.bytes(0)?)?))
    }

    /// The first interval of a process that begins at a time or later, and before another.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn first_observation(&self, which: &Which, after: i64, before: i64) -> Result<Option<Observation>, StoreError> {
        let (condition, mut values) = which.condition(i64::MIN, i64::MAX);
        let (after, before) = with_ends(&mut values, after, before);
        let query = format!(
            "SELECT content FROM observations WHERE {condition} AND start >= {after} AND start < {before}
             ORDER BY start, \"end\" LIMIT 1"
        );
        self.database.first(&query, &values, |row| unpacked(row.bytes(0)?))
    }

    /// Applications that were active in a period, by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn applications(&self, from: i64, to: i64) -> Result<Vec<String>, StoreError> {
        let all = Which::default();
        let (condition, values) = all.condition(from, to);
        let query = format!("SELECT DISTINCT application FROM observations WHERE {condition} ORDER BY application");
        self.database.all(&query, &values, |row| row.text(0).map(str::to_owned))
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
        self.database.all(&query, &values, |row| {
            let name = |at| row.text(at).map(Into::into);
            let (id, started) = (row.unsigned(3)?, row.number(4)?);
            Ok(Process { application: name(0)?, host: name(1)?, program: name(2)?, id, started })
        })
    }

    /// Deletes observations from a time to another, but for merged ones that go beyond; says how many.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete_observations(&mut self, which: &Which, from: i64, to: i64) -> Result<usize, StoreError> {
        let (condition, mut values) = which.condition(from, to);
        let (from, to) = with_ends(&mut values, from, to);
        let query = format!(
            "DELETE FROM observations WHERE {condition} AND (level = 0 OR start >= {from} AND \"end\" <= {to})"
        );
        self.database.transaction(|database| database.run(&query, &values))
    }

    /// Deletes all performance data, of observers and of traces.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        self.database.transaction(|database| {
            database.script(
                "DELETE FROM observations; DELETE FROM intervals; DELETE FROM exemplars; DELETE FROM answers;
                 DELETE FROM totals; DELETE FROM series; DELETE FROM asides; DELETE FROM sums; DELETE FROM uptimes;
                 DELETE FROM recent;",
            )
        })
    }
}

/// Two observations of one process that tell of one time, and would count it twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    process: Process,
    /// That of the report, and the other one, nanoseconds since 1970.
    times: [(i64, i64); 2],
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, times: [(from, to), (other_from, other_to)] } = self;
        write!(
            f,
            "the interval of process {} at {} from {from} to {to} ns overlaps another one, from {other_from} to {other_to} ns",
            process.id, process.host
        )
    }
}

/// Whether two times have so much in common that it is no matter of rounding.
pub(super) fn overlap(one: (i64, i64), other: (i64, i64)) -> bool {
    one.1.min(other.1).saturating_sub(one.0.max(other.0)) > CLOSE
}

/// Those of a group that no merged one has in it; or that one tells of a time of which another one does.
fn added<'o>(
    database: &dyn Database,
    group: &'o [Observation],
) -> Result<Result<Vec<&'o Observation>, Overlap>, StoreError> {
    let mut added = Vec::with_capacity(group.len());
    for observation in group {
        let other = match merged(database, observation)? {
            Merged::Within => continue,
            Merged::Overlaps(other) => Some(other),
            Merged::Apart => latest_before(database, observation)?,
        };
        let own = (observation.from, observation.to);
        if let Some(other) = other.filter(|other| *other != own && overlap(own, *other)) {
            return Ok(Err(Overlap { process: observation.process.clone(), times: [own, other] }));
        }
        added.push(observation);
    }
    // Within a group the same holds.
    let mut times: Vec<_> = added.iter().map(|own| (&own.process, (own.from, own.to))).collect();
    times.sort_unstable();
    times.dedup();
    for pair in times.windows(2) {
        let [(process, one), (other_process, other)] = pair else { continue };
        if process == other_process && overlap(*one, *other) {
            return Ok(Err(Overlap { process: (*process).clone(), times: [*other, *one] }));
        }
    }
    Ok(Ok(added))
}

/// The interval of a process, as it was reported, that begins last before another one ends. Since those that are stored lie apart, no other one overlaps that.
fn latest_before(database: &dyn Database, observation: &Observation) -> Result<Option<(i64, i64)>, StoreError> {
    let Process { application, host, program, id, started } = &observation.process;
    database.first(
        "SELECT start, \"end\" FROM observations WHERE host = ?1 AND process = ?2 AND start < ?3 AND application = ?4
         AND program = ?5 AND started = ?6 AND +level = 0 ORDER BY start DESC LIMIT 1",
        &[
            (&**host).into(),
            (*id).into(),
            observation.to.into(),
            (&**application).into(),
            (&**program).into(),
            (*started).into(),
        ],
        |row| Ok((row.number(0)?, row.number(1)?)),
    )
}

/// Adds an observation, if it is new; says how many were added.
pub(super) fn insert(
    database: &dyn Database,
    observation: &Observation,
    touched: i64,
    level: i64,
    ranges: &[u8],
) -> Result<usize, StoreError> {
    let Process { application, host, program, id, started } = &observation.process;
    let content = packed(observation);
    database.run(
        "INSERT INTO observations
         (application, host, program, process, started, start, \"end\", level, touched, ranges, content)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING",
        &[
            (&**application).into(),
            (&**host).into(),
            (&**program).into(),
            (*id).into(),
            (*started).into(),
            observation.from.into(),
            observation.to.into(),
            level.into(),
            touched.into(),
            ranges.into(),
            content.as_slice().into(),
        ],
    )
}

/// What the store keeps of an observation.
fn packed(observation: &Observation) -> Vec<u8> {
    compressed(json::write(std::slice::from_ref(observation)).as_bytes(), 1)
}

pub(super) fn unpacked(content: &[u8]) -> Result<Observation, StoreError> {
    let mut found = json::parse("the store", &decompressed_text(content)?)
        .map_err(|findings| StoreError::Damaged(findings.to_string()))?;
    found.pop().ok_or_else(|| StoreError::Damaged("an observation".to_owned()))
}
