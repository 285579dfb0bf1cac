//! The rule language below its meaning for traces: rule files, relations over integers and symbols, evaluation.
//!
//! This room knows what a template looks like, but not what its nodes stand for: that is [`crate::tlc`]'s.

pub mod ast;
pub mod base;
pub mod check;
pub mod codes;
pub mod eval;
pub mod scope;
pub mod syntax;
pub mod value;
