//! The tables, version by version.

use super::StoreError;
use super::database::Database;

/// What makes each version of the one before; the first one of an empty database. Types are SQLite's: others have theirs for them.
const MIGRATIONS: [&str; 12] = [
    "
    CREATE TABLE progress (
        id INTEGER PRIMARY KEY CHECK (id = 0),
        position INTEGER NOT NULL,
        number INTEGER NOT NULL,
        low_position INTEGER NOT NULL,
        low_number INTEGER NOT NULL,
        clock INTEGER NOT NULL,
        open BLOB NOT NULL,
        counts TEXT NOT NULL
    );
    CREATE TABLE recent (number INTEGER PRIMARY KEY, digests BLOB NOT NULL);
    CREATE TABLE intervals (
        id INTEGER PRIMARY KEY,
        length INTEGER NOT NULL,
        start INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        spans INTEGER NOT NULL,
        content BLOB NOT NULL
    );
    CREATE INDEX intervals_by_start ON intervals (start, length);
    CREATE INDEX intervals_by_length ON intervals (length, start);
",
    "
    CREATE TABLE observations (
        start INTEGER NOT NULL,
        \"end\" INTEGER NOT NULL,
        application TEXT NOT NULL,
        host TEXT NOT NULL,
        program TEXT NOT NULL,
        process INTEGER NOT NULL,
        started INTEGER NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (start, \"end\", host, process, started, application, program)
    ) WITHOUT ROWID;
    CREATE INDEX observations_by_process ON observations (host, process, start);
",
    "
    CREATE TABLE series (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        time INTEGER NOT NULL,
        start INTEGER NOT NULL,
        raw REAL NOT NULL,
        total REAL NOT NULL
    );
    CREATE TABLE totals (
        series INTEGER NOT NULL,
        time INTEGER NOT NULL,
        total REAL NOT NULL,
        PRIMARY KEY (series, time)
    ) WITHOUT ROWID;
    CREATE INDEX totals_by_time ON totals (time);
",
    "
    CREATE TABLE exemplars (
        start INTEGER NOT NULL,
        trace BLOB NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (trace, start)
    ) WITHOUT ROWID;
    CREATE INDEX exemplars_by_start ON exemplars (start);
",
    "
    ALTER TABLE observations ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE observations ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE observations ADD COLUMN ranges BLOB NOT NULL DEFAULT X'';
    CREATE INDEX observations_by_level ON observations (level, start, touched);
    CREATE INDEX observations_merged ON observations (host, process, \"end\") WHERE level > 0;
",
    "
    CREATE TABLE answers (
        caller BLOB NOT NULL,
        peer BLOB NOT NULL,
        callee BLOB NOT NULL,
        seen INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        PRIMARY KEY (caller, peer, callee)
    ) WITHOUT ROWID;
",
    // From here on contents of intervals are packed; those that are JSON stay so. Earlier programs cannot read them.
    "UPDATE intervals SET length = length WHERE length < 0;",
    "
    CREATE TABLE asides (
        start INTEGER NOT NULL,
        length INTEGER NOT NULL,
        why INTEGER NOT NULL,
        spans INTEGER NOT NULL,
        PRIMARY KEY (start, length, why)
    ) WITHOUT ROWID;
",
    "
    CREATE TABLE sums (
        id INTEGER PRIMARY KEY,
        start INTEGER NOT NULL,
        length INTEGER NOT NULL,
        content BLOB NOT NULL
    );
    CREATE UNIQUE INDEX sums_by_start ON sums (start, length);
",
    // From here on nothing of what is packed is JSON: earlier programs cannot read it. Intervals stay as they were packed; sums are made anew, and long periods are read from them.
    "DELETE FROM sums;",
    "
    CREATE TABLE deployed (
        side INTEGER NOT NULL,
        service BLOB NOT NULL,
        name BLOB NOT NULL,
        start INTEGER NOT NULL,
        \"end\" INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        PRIMARY KEY (side, service, name, start)
    ) WITHOUT ROWID;
    CREATE INDEX deployed_by_end ON deployed (\"end\");
",
    "
    CREATE TABLE uptimes (start INTEGER NOT NULL PRIMARY KEY, \"end\" INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX uptimes_by_end ON uptimes (\"end\");
",
];

/// Brings a store to this program's version.
pub fn migrate(database: &dyn Database) -> Result<(), StoreError> {
    let version = check_not_newer(database)?;
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        database.transaction(|database| {
            // Another may have done it while this one waited for its turn.
            if check_not_newer(database)? == number {
                database.migrate(migration)?;
                database.set_version(number as i64 + 1)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Refuses a store that is not of this program's version.
pub fn check(database: &dyn Database) -> Result<(), StoreError> {
    match check_not_newer(database)? {
        version if version == MIGRATIONS.len() => Ok(()),
        0 => Err(StoreError::Damaged("it is no store".to_owned())),
        version => Err(StoreError::Damaged(format!("its schema is {version}: `dyelog-server` brings it up to date"))),
    }
}

fn check_not_newer(database: &dyn Database) -> Result<usize, StoreError> {
    let version = database.version()?;
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        _ => Err(StoreError::Newer(version)),
    }
}
