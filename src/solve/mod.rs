//! Solvers: from a model to its results.
