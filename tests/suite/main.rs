//! Integration tests: one binary, a module a subject.

mod angio;
mod case_study;
mod cli;
mod datalog;
mod generator;
mod golden;
mod house;
mod lqn;
mod lqn_faults;
mod lqn_lint;
mod lqn_strategy;
mod model;
mod quality;
mod reference;
mod rule_format;
mod rule_texts;
mod rules;
mod solve;
mod spans;
mod support;
mod terminal;
mod tlc;
mod tlc_laws;
mod tlc_rules;
mod trace_cli;
