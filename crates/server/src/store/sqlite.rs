//! The store in a file: SQLite, built in.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};

use super::StoreError;
use super::database::{Database, Row, Take, Value};

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same of those that health depends on: whoever has the file for longer is told, and waited for anew.
const SHORT: Duration = Duration::from_secs(2);

/// A connection to a file.
pub struct Sqlite(Connection);

impl Sqlite {
    /// Opens a file to write to, or makes one.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        private(path)?;
        let own = Self::with(Connection::open(path)?)?;
        own.0.pragma_update(None, "journal_mode", "WAL")?;
        own.0.pragma_update(None, "synchronous", "FULL")?;
        Ok(own)
    }

    /// Opens a file that is there.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::with(Connection::open_with_flags(path, flags)?)
    }

    /// The same for a thread that must not be silent for long.
    pub fn attended(path: &Path) -> Result<Self, StoreError> {
        let own = Self::open(path)?;
        own.0.busy_timeout(SHORT)?;
        Ok(own)
    }

    fn with(connection: Connection) -> Result<Self, StoreError> {
        connection.busy_timeout(PATIENCE)?;
        Ok(Self(connection))
    }
}

/// Makes the file where it is not there, for this user alone: traces are kept in it. What SQLite makes beside it is as private.
fn private(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::Damaged(format!("the file cannot be made: {error}")))
        }
        _ => Ok(()),
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Number(number) => ValueRef::Integer(number),
            Value::Real(number) => ValueRef::Real(number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(own: ValueRef<'_>) -> Result<Value<'_>, StoreError> {
    Ok(match own {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Number(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => {
            Value::Text(std::str::from_utf8(text).map_err(|error| StoreError::Damaged(error.to_string()))?)
        }
        ValueRef::Blob(bytes) => Value::Bytes(bytes),
    })
}

impl Database for Sqlite {
    fn script(&self, sql: &str) -> Result<(), StoreError> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn run(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, StoreError> {
        Ok(self.0.prepare(sql)?.execute(params_from_iter(values))?)
    }

    fn each(&self, sql: &str, values: &[Value<'_>], take: Take<'_>) -> Result<(), StoreError> {
        let mut statement = self.0.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            let values: Vec<Value<'_>> =
                (0..columns).map(|at| value(row.get_ref(at)?)).collect::<Result<_, StoreError>>()?;
            take(&Row(&values))?;
        }
        Ok(())
    }

    fn begin(&self) -> Result<(), StoreError> {
        self.script("BEGIN IMMEDIATE")
    }

    fn begin_view(&self) -> Result<(), StoreError> {
        self.script("BEGIN")
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.script("COMMIT")
    }

    fn roll_back(&self) {
        // SQLite itself does it after some faults; there is nothing to do then.
        let _ = self.script("ROLLBACK");
    }

    fn version(&self) -> Result<i64, StoreError> {
        Ok(self.0.pragma_query_value(None, "user_version", |row| row.get(0))?)
    }

    fn set_version(&self, version: i64) -> Result<(), StoreError> {
        Ok(self.0.pragma_update(None, "user_version", version)?)
    }

    fn migrate(&self, sql: &str) -> Result<(), StoreError> {
        self.script(sql)
    }

    fn remove(&self) -> Result<(), StoreError> {
        // The file goes with all that is in it.
        Ok(())
    }
}
