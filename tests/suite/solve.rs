//! The layered solver against closed forms, reference results and laws.

mod analytic;
mod chain;
mod closed_forms;
mod corpus;
pub mod forks;
mod hostile;
mod laws;
mod reference;
mod score;
mod simulation;
