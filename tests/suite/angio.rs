//! Tests of `angio`.
