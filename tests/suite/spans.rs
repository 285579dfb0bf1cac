//! Tests of `spans`.
