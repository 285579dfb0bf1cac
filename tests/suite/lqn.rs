//! Tests of `lqn`.
