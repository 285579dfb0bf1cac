//! The rule language below its meaning for traces: rule files, relations over integers and symbols, evaluation.
//!
//! This crate knows what a template looks like, but not what its nodes stand for: that is for `dyelog-templates` to say.
//!
//! # Example
//!
//! A program is loaded from text, checked, and asked about facts that the host program holds; how to give it facts is shown at
//! [`eval`].
//!
//! ```
//! use dyelog_datalog::base::{BaseSchema, Type};
//! use dyelog_datalog::eval::compile;
//! use dyelog_datalog::syntax::load;
//!
//! let mut schema = BaseSchema::new();
//! schema.add("calls", &[Type::Symbol, Type::Symbol]);
//!
//! let text = "reaches(X, Y) :- calls(X, Y).
//!             reaches(X, Z) :- reaches(X, Y), calls(Y, Z).
//!             cyclic(X)     :- reaches(X, X).";
//! let rules = compile(&load("calls.dl", text, &|_| None)?, &schema)?;
//! assert!(rules.relation("cyclic").is_some());
//!
//! // Each error has its place: here a head variable that no literal binds.
//! let faulty = load("faulty.dl", "lonely(X, Y) :- calls(X, X).", &|_| None)?;
//! let errors = compile(&faulty, &schema).expect_err("Y is unbound");
//! assert_eq!(errors.0[0].code.0, "R023");
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

pub mod allow;
pub mod ast;
pub mod base;
pub mod check;
pub mod codes;
pub mod eval;
pub mod event_template;
pub mod scope;
pub mod syntax;
pub mod value;
