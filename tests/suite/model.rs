//! Tests of `model`.
