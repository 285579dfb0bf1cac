//! Questions to traces: what rules derive from facts about operations, spans, matches and the sub-model.
//!
//! A [`Question`] is a rule file, or rules of the command line, and the relations that are asked for. [`Answering`] takes the
//! operations of a reader and gives out rows. What the facts are is listed by [`schema::described`].
//!
//! # Scopes
//! [`Scope::Operation`] answers for each operation by itself, so that memory is bounded by one operation and what is derived
//! from it. [`Scope::Trace`] keeps all operations, and answers once, over all of them. [`Scope::Messages`] does so for traces that
//! tell of messages, and not of operations.

pub mod answer;
pub mod codes;
mod constants;
mod dominators;
mod facts;
mod flow;
mod matched;
pub mod messages;
mod needed;
mod patterns;
pub mod question;
pub mod schema;
mod search;
pub mod standard;
mod table;
mod tree;

pub use answer::{Answering, Cell, Rows, Told, Work};
pub use facts::{Questioned, TraceFacts};
pub use messages::Exchanges;
pub use question::{Asked, Column, Question, Scope, check, tell_facts_of_questions};
