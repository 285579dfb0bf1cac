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

    /// A URL that begins with `postgresql://` or `postgres://`, or else the name of a file.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
            Some(rest) => Address::parse(rest).map(Self::Postgres),
            None if is_url(text) => {
                Err(format!("`{text}` is no store: write the name of a file, or `postgresql://USER@HOST/DATABASE`"))
            }
            None => Ok(Self::File(text.into())),
        }
    }
}

/// Whether a text is a URL of whatever scheme (RFC 3986, §3.1).
fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
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

#[cfg(test)]
mod tests {
    use super::Location;

    #[test]
    fn what_is_neither_a_file_nor_a_database_is_refused() {
        for wrong in ["ftp://x", "http://127.0.0.1:4318", "mysql://user@host/shop"] {
            let why = wrong.parse::<Location>().expect_err("it is no store");
            assert!(why.starts_with(&format!("`{wrong}` is no store")) && why.contains("postgresql://"), "{why}");
        }
        for file in ["shop.db", "/var/lib/shop.db", "./a://b"] {
            assert_eq!(file.parse(), Ok(Location::File(file.into())));
        }
    }
}
