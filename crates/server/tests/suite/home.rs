//! Where the stores of tests are: the same laws hold in all such places.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};

use dyelog_server::store::{Location, Store};
use tempfile::TempDir;

/// The URL of a database of PostgreSQL in which tests may make schemas.
const URL: &str = "DYELOG_POSTGRES";

/// A place for one store, gone with all that is in it when this goes.
pub struct Home {
    pub location: Location,
    pub folder: TempDir,
}

impl Home {
    pub fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { location: Location::File(folder.path().join("store.db")), folder }
    }

    /// A schema of its own.
    pub fn postgres() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let url = env::var(URL).expect("DYELOG_POSTGRES names a database: `.ci/postgres` makes one");
        let schema = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let location = format!("{url}{}schema={schema}", if url.contains('?') { '&' } else { '?' }).parse().unwrap();
        Self { location, folder: tempfile::tempdir().unwrap() }
    }

    pub fn open(&self) -> Store {
        Store::open_at(&self.location).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let (Location::Postgres(_), Ok(store)) = (&self.location, Store::open_at(&self.location)) {
            let _ = store.remove_tables();
        }
    }
}
