//! Templates on events: what a rule file says of a state that changes while events come.
//!
//! A template of this kind is an event-condition-action rule. It names the event that it is asked at, what it looks up of the state,
//! which facts it asserts and retires, and what it records.

use crate::ast::{Atom, Condition, Ident, Index, Span, Spanned};

/// A template on an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventTemplate {
    /// Its name.
    pub name: Ident,
    /// Its doc comment, lines joined by newlines.
    pub doc: String,
    /// Its place in the order of trial; lower goes first, ties in the order of the text.
    pub order: Option<Spanned<i64>>,
    /// The event that it is asked at; `None` where it could not be read.
    pub event: Option<Event>,
    /// What it looks up, in the order of the text.
    pub lookups: Vec<Lookup>,
    /// Conditions.
    pub conditions: Vec<Spanned<Condition>>,
    /// Facts that come to hold.
    pub asserted: Vec<Asserted>,
    /// Records of interactions.
    pub records: Vec<Atom>,
    /// Facts that no longer hold.
    pub retired: Vec<Retired>,
    /// Whether something of it could not be read.
    pub damaged: bool,
    /// The whole text.
    pub span: Span,
}

/// `message(U, B)` after `on`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: Ident,
    /// Variables for what it tells; `_` is one that is not asked.
    pub parameters: Vec<Ident>,
    /// The whole text.
    pub span: Span,
}

/// What is looked up under `match`.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// `W = live(B)`: the one value that the state has there. Without one the template does not match.
    Value {
        /// The variable that holds it.
        variable: Ident,
        /// What is looked up.
        function: Atom,
    },
    /// `path P[1..n] from W to U`
    Path {
        /// Its name.
        name: Ident,
        /// The variable that holds how many there are on it, both ends counted.
        count: Ident,
        /// Where it begins.
        from: Ident,
        /// Where it ends.
        to: Ident,
        /// The whole text.
        span: Span,
    },
}

impl Lookup {
    /// The whole text.
    pub fn span(&self) -> Span {
        match self {
            Self::Value { variable, function } => variable.span.to(function.span),
            Self::Path { span, .. } => *span,
        }
    }
}

/// What comes to hold under `assert`.
#[derive(Clone, Debug, PartialEq)]
pub enum Asserted {
    /// `V = live(B)`: something new.
    New {
        /// The variable that holds it.
        variable: Ident,
        /// What it is from now on.
        function: Atom,
    },
    /// `arc(U, V)`
    Fact(Atom),
}

impl Asserted {
    /// The whole text.
    pub fn span(&self) -> Span {
        match self {
            Self::New { variable, function } => variable.span.to(function.span),
            Self::Fact(atom) => atom.span,
        }
    }
}

/// What no longer holds under `retire`.
#[derive(Clone, Debug, PartialEq)]
pub enum Retired {
    /// `arc(X, Y)`
    Fact(Atom),
    /// `P[2..n]`: in this order.
    Path {
        /// The path.
        name: Ident,
        /// The first.
        first: Spanned<Index>,
        /// The last.
        last: Spanned<Index>,
        /// The whole text.
        span: Span,
    },
}

impl Retired {
    /// The whole text.
    pub fn span(&self) -> Span {
        match self {
            Self::Fact(atom) => atom.span,
            Self::Path { span, .. } => *span,
        }
    }
}
