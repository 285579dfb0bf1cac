//! Tests of `tlc`.
