//! From inputs to a solution: the way that every question takes.
//!
//! 1. [`submodel`] reads [`Input`]s of any format, told apart by their content, and sums them up: traces with a dye by templates, messages
//!    without one by SAME with threads guessed where services serve several requests, saved sub-models by merging.
//! 2. [`model()`] completes that with a configuration to a layered queueing network. An input that is a model already is taken as it is.
//! 3. [`Source::solve`] checks the model, solves it and holds the answer against what was traced.
//!
//! A [`Listener`] hears what there is to say on the way. How traces are read is said by [`Options`].

pub mod codes;
mod exchanges;
mod explained;
mod facts;
mod impact;
mod input;
mod kept;
mod listener;
mod messages;
mod nearest;
mod operations;
mod options;
mod profile;
mod reduce;
mod rule_findings;
mod solution;
mod source;
mod submodels;
mod utilisation;

pub use explained::SoughtMessage;
pub use facts::{AskedFact, Unnamed, parse_fact};
pub use impact::{Impact, impact};
pub use input::{HEAD, Input, Reader, read_text};
pub use listener::{Listener, Meter};
pub use messages::{First, Messages, Opened, check_clocks, open, open_one};
pub use nearest::{Best, FOLLOWED, Nearest, Verdict};
pub use operations::{read_operations, read_spans};
pub use options::{Analysis, EventRuleLoader, Keep, Options, Reading, RuleLoader};
pub use profile::{Profiled, Profiling, profile, unpacked};
pub use reduce::{Interactions, Reduced, SHOWN, Samples, count, reduce, tell_quality};
pub use rule_findings::{about_given, about_the_users, of_given};
pub use solution::Solution;
pub use source::{
    Given, Named, Questioned, Source, Summed, configuration, given, grouped, is_model, measured, model, model_of,
    steady_submodel, subjects, submodel, with_defaults,
};
pub use utilisation::{
    Exposed, Exposition, Measure, ValueUnit, cores_of, counter, counts_cores, exposition, measure, read_utilisation,
};
