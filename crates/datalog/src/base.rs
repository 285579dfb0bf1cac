//! Base relations: what the world outside the rules knows. They are asked, never copied.

use std::ops::ControlFlow;

use indexmap::IndexMap;

use crate::value::Value;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A whole number.
    Integer,
    /// A number, whole or not.
    Number,
    /// A symbol.
    Symbol,
    /// A node of a graph: a number that is only compared for equality.
    Node,
    /// Another thing that facts are about, with its noun: `a span`. A number that is only compared for equality, and with
    /// things of the same noun.
    Entity(&'static str),
    /// Any of them.
    Any,
}

/// A base relation of a [`BaseSchema`], by its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaseRelation(pub u32);

/// The names and columns of base relations.
#[derive(Clone, Debug, Default)]
pub struct BaseSchema {
    relations: IndexMap<String, Vec<Type>>,
    closed: IndexMap<(BaseRelation, usize), &'static [&'static str]>,
    keys: IndexMap<BaseRelation, Vec<usize>>,
    column_names: IndexMap<BaseRelation, Vec<&'static str>>,
    offered: IndexMap<String, String>,
}

impl BaseSchema {
    /// No relations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a relation. Adding a name again replaces its columns.
    ///
    /// # Panics
    /// With more than [`crate::check::MAX_ARITY`] columns.
    pub fn add(&mut self, name: &str, columns: &[Type]) -> BaseRelation {
        assert!(columns.len() <= crate::check::MAX_ARITY, "a relation has at most 32 columns");
        let (index, _) = self.relations.insert_full(name.to_owned(), columns.to_vec());
        BaseRelation(index as u32)
    }

    /// Says that a column of symbols (the first is 0) has no other values than these.
    pub fn close(&mut self, relation: BaseRelation, column: usize, values: &'static [&'static str]) {
        self.closed.insert((relation, column), values);
    }

    /// The only values of a column, where they are known beforehand.
    pub fn values(&self, relation: BaseRelation, column: usize) -> Option<&'static [&'static str]> {
        self.closed.get(&(relation, column)).copied()
    }

    /// Says that a relation has at most one row for each value of a column (the first is 0).
    pub fn key(&mut self, relation: BaseRelation, column: usize) {
        self.keys.entry(relation).or_default().push(column);
    }

    /// The columns of which each value has at most one row.
    pub fn keys(&self, relation: BaseRelation) -> &[usize] {
        self.keys.get(&relation).map_or(&[], Vec::as_slice)
    }

    /// Says what the columns of a relation are called.
    pub fn name_columns(&mut self, relation: BaseRelation, names: Vec<&'static str>) {
        self.column_names.insert(relation, names);
    }

    /// The first relation with a column of that name, as `span(span, service, name)`.
    pub fn with_column(&self, name: &str) -> Option<String> {
        let (relation, columns) = self.column_names.iter().find(|(_, columns)| columns.contains(&name))?;
        Some(format!("{}({})", self.columns(*relation).0, columns.join(", ")))
    }

    /// Says that a relation is there for those that use a file.
    pub fn offer(&mut self, relation: &str, file: &str) {
        self.offered.insert(relation.to_owned(), file.to_owned());
    }

    /// The file to use for a relation.
    pub fn file_of(&self, relation: &str) -> Option<&str> {
        self.offered.get(relation).map(String::as_str)
    }

    /// The relations that files have for those that use them.
    pub fn offered(&self) -> impl Iterator<Item = &str> {
        self.offered.keys().map(String::as_str)
    }

    /// The relation of this name.
    pub fn get(&self, name: &str) -> Option<BaseRelation> {
        self.relations.get_index_of(name).map(|index| BaseRelation(index as u32))
    }

    /// A relation's name and columns.
    ///
    /// # Panics
    /// When the relation is of another schema.
    pub fn columns(&self, relation: BaseRelation) -> (&str, &[Type]) {
        let (name, columns) = self.relations.get_index(relation.0 as usize).expect("relations come from this schema");
        (name, columns)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.relations.keys().map(String::as_str)
    }
}

/// Answers to questions about base relations, for instance from a graph's adjacency. Answers must not change while an
/// [`crate::eval::Evaluator`] is in use, and their order should always be the same.
pub trait BaseFacts {
    /// Calls `out` with each row of the relation that agrees with the pattern, until it says `Break`.
    fn lookup(
        &self,
        relation: BaseRelation,
        pattern: &[Option<Value>],
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    );

    /// How many rows to expect of a look-up where the columns in the bit mask `bound` are known. The order of
    /// evaluation depends on it, results never do.
    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64;

    /// The symbol for a string, if any row can contain it.
    fn symbol(&self, text: &str) -> Option<Value>;
}
