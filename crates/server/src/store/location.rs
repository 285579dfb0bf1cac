//! Where a store is: in a file, or in a database of PostgreSQL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Address;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a file of SQLite.
    File(PathBuf),
    /// In a database of PostgreSQL.
    Postgres(Address),
}

impl Location {
    /// The beginning of the names of the files beside it: its own, or the name of the database here.
    pub fn beside(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Postgres(address) => address.file_name().into(),
        }
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl FromStr for Location {
    type Err = String;

    /// A URL that begins with `postgresql:` or `postgres:`, or else the name of a file.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
            Some(rest) => Address::parse(rest).map(Self::Postgres),
            None => Ok(Self::File(text.into())),
        }
    }
}

/// Without the password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres(address) => write!(f, "{address}"),
        }
    }
}
