//! Evaluation of Datalog rules over facts that are asked, not copied: recursion, stratified negation, arithmetic,
//! aggregates. A question computes only what it leads to, and answers are remembered.
//!
//! ```
//! use dyelog_datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
//! use dyelog_datalog::eval::{Evaluator, compile};
//! use dyelog_datalog::syntax::load;
//! use dyelog_datalog::value::Value;
//! use std::ops::ControlFlow;
//!
//! /// A ring of n nodes, never written down.
//! struct Ring(u32);
//!
//! impl BaseFacts for Ring {
//!     fn lookup(&self, _: BaseRelation, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
//!         for from in 0..self.0 {
//!             let row = [Value::from(from), Value::from((from + 1) % self.0)];
//!             let agrees = pattern.iter().zip(row).all(|(known, value)| known.is_none_or(|known| known == value));
//!             if agrees && out(&row).is_break() {
//!                 return;
//!             }
//!         }
//!     }
//!     fn estimate(&self, _: BaseRelation, bound: u32) -> u64 {
//!         if bound == 0 { u64::from(self.0) } else { 1 }
//!     }
//!     fn symbol(&self, _: &str) -> Option<Value> {
//!         None
//!     }
//! }
//!
//! let mut schema = BaseSchema::new();
//! schema.add("edge", &[Type::Node, Type::Node]);
//! let text = "reach(X, Y) :- edge(X, Y). reach(X, Z) :- reach(X, Y), edge(Y, Z).";
//! let program = load("reach.dl", text, &|_| None)?;
//! let rules = compile(&program, &schema)?;
//! let reach = rules.relation("reach").expect("the rules define it");
//! let ring = Ring(5);
//! let mut evaluator = Evaluator::new(&rules, &ring);
//! assert!(evaluator.holds(reach, &[Value::from(3), Value::from(3)])?);
//! assert_eq!(evaluator.query(reach, &[Some(Value::from(3)), None])?.len(), 5);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```
//!
//! # Whole relations
//! [`Evaluator::stream`] computes a relation whole, from the facts upwards, and hands on its rows as it finds them. That is
//! how a question is answered, too, that knows nothing; others are answered from what they know.
//!
//! # Arithmetic
//! Whole numbers lie within [`Value::MIN`](crate::value::Value::MIN) and
//! [`Value::MAX`](crate::value::Value::MAX); [`value`](crate::value) says what other numbers are. `/`
//! goes towards zero where both sides can only be whole, as far as rules and columns tell. What leaves the range, divides
//! by zero or calculates with symbols has no value, and a literal without a value does not hold: there is no row. `x = y + 1` and `p(x + 1)` are solved for
//! whichever side is unknown. Symbols are equal or not; `<` and its kin hold between numbers only.
//!
//! # Aggregates
//! `n = count { edge(X, Y) }` ranges over the distinct bindings of the variables that occur within its braces only (each
//! `_` in a positive atom is one); those that occur outside too must be bound there, and group. Over nothing, count and sum are
//! 0, and the others do not hold. Fractions are added in the order of their size, whole numbers exactly.
//!
//! # Best values
//! A `min` or `max` may range over relations that need its own rule. Such a relation keeps one row for each value of its
//! other columns, the best that its rules give; the checker sees to it that a better value never makes another one worse.
//! It is computed whole whatever is asked, in linear time where rows do not rest on each other in circles.

mod evaluator;
mod explain;
mod fractions;
mod invention;
mod number;
mod once;
mod plan;
mod profile;
mod program;
mod rows;
mod steps;
mod store;
mod whole;
mod why_not;

pub use evaluator::{Evaluator, Limits};
pub use explain::{Cause, Derivation, DerivationStep};
pub use number::calculated;
pub use profile::{LiteralProfile, Profile, RuleProfile, Watch};
pub use program::{CompiledRules, Relation, compile, compile_asked};
pub use why_not::{Attempt, Denied, Failure, Near, Pattern, WhyNot};
