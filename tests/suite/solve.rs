//! The layered solver against closed forms, reference results and laws.

mod analytic;
mod corpus;
