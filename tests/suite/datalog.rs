//! Tests of `datalog`.
