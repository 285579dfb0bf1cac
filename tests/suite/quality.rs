//! Tests of `quality`.
