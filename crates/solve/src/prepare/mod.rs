//! From a model to what solvers work on, and from what they found to results.

pub(crate) mod assemble;
pub(crate) mod caveats;
pub(crate) mod check;
pub(crate) mod plan;
pub(crate) mod replicas;
