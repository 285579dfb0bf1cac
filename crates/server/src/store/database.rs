//! What the store asks of a database: statements with values, rows, transactions.
//!
//! Statements are in the SQL that all databases here share; values are written `?1`, `?2` and so on. What differs is theirs to translate.

use super::StoreError;

/// A value of a statement, or of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'v> {
    /// Nothing.
    Null,
    /// A whole number.
    Number(i64),
    /// A number.
    Real(f64),
    /// Text.
    Text(&'v str),
    /// Bytes.
    Bytes(&'v [u8]),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// Databases have signed numbers alone: the bits stay.
impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number.cast_signed())
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(text)
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// A row that was found.
#[derive(Debug)]
pub struct Row<'r>(pub &'r [Value<'r>]);

impl<'r> Row<'r> {
    fn at(&self, column: usize) -> Value<'r> {
        self.0.get(column).copied().unwrap_or(Value::Null)
    }

    fn is_no(column: usize, what: &str) -> StoreError {
        StoreError::Damaged(format!("column {column} is no {what}"))
    }

    /// The whole number in a column.
    pub fn number(&self, column: usize) -> Result<i64, StoreError> {
        if let Value::Number(number) = self.at(column) { Ok(number) } else { Err(Self::is_no(column, "number")) }
    }

    /// The whole number in a column whose bits are those of an unsigned one.
    pub fn unsigned(&self, column: usize) -> Result<u64, StoreError> {
        self.number(column).map(i64::cast_unsigned)
    }

    /// The number in a column.
    pub fn real(&self, column: usize) -> Result<f64, StoreError> {
        match self.at(column) {
            Value::Real(number) => Ok(number),
            Value::Number(number) => Ok(number as f64),
            _ => Err(Self::is_no(column, "number")),
        }
    }

    /// The text in a column.
    pub fn text(&self, column: usize) -> Result<&'r str, StoreError> {
        if let Value::Text(text) = self.at(column) { Ok(text) } else { Err(Self::is_no(column, "text")) }
    }

    /// The bytes in a column.
    pub fn bytes(&self, column: usize) -> Result<&'r [u8], StoreError> {
        if let Value::Bytes(bytes) = self.at(column) { Ok(bytes) } else { Err(Self::is_no(column, "bytes")) }
    }
}

/// Takes the rows that a statement finds.
pub type Take<'t> = &'t mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>;

/// A connection to a database.
///
/// Rows are taken as they come: nothing else may be asked before the last one was taken.
pub trait Database: Send {
    /// Carries out several statements without values.
    fn script(&self, sql: &str) -> Result<(), StoreError>;
    /// Carries out a statement; says how many rows it changed.
    fn run(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, StoreError>;
    /// Gives the rows that a statement finds, in its order, until taking one fails.
    fn each(&self, sql: &str, values: &[Value<'_>], take: Take<'_>) -> Result<(), StoreError>;
    /// Begins a transaction that writes: no other begins before this one ends.
    fn begin(&self) -> Result<(), StoreError>;
    /// Begins a transaction that reads: all that it is asked is of one moment.
    fn begin_view(&self) -> Result<(), StoreError>;
    /// Ends it; all that it wrote is on disk then.
    fn commit(&self) -> Result<(), StoreError>;
    /// Ends it, with nothing of it kept.
    fn roll_back(&self);
    /// The version of the tables; 0 where there are none.
    fn version(&self) -> Result<i64, StoreError>;
    /// Writes the version of the tables.
    fn set_version(&self, version: i64) -> Result<(), StoreError>;
    /// Carries out what makes a version of the tables from the one before.
    fn migrate(&self, sql: &str) -> Result<(), StoreError>;
    /// Removes all tables, where no file holds them that can be removed.
    fn remove(&self) -> Result<(), StoreError>;
}

impl dyn Database + '_ {
    /// Carries something out as a whole, or not at all.
    pub fn transaction<T>(&self, act: impl FnOnce(&Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.begin()?;
        match act(self).and_then(|made| self.commit().map(|()| made)) {
            Ok(made) => Ok(made),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Reads what is there at one moment.
    pub fn view<T>(&self, read: impl FnOnce(&Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.begin_view()?;
        let found = read(self);
        // Nothing was written.
        self.roll_back();
        found
    }

    /// What the first row that a statement finds has; `None` where it finds none.
    pub fn first<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut found = None;
        self.each(sql, values, &mut |row| {
            if found.is_none() {
                found = Some(read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// What all rows have that a statement finds.
    pub fn all<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each(sql, values, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }
}
