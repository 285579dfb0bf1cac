//! Any text is read or refused; what is read prints and is formatted to the same; what passes the checks can be asked, within limits.

#![no_main]

use std::ops::ControlFlow;

use dyelog::datalog::ast::Program;
use dyelog::datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog::datalog::check::check;
use dyelog::datalog::eval::{Evaluator, Limits, compile};
use dyelog::datalog::syntax::{self, Loaded, format, parse_file, print, print_items};
use dyelog::datalog::value::Value;
use dyelog::diagnostic::{Renderer, Severity, Sources};
use dyelog::model::{Configuration, complete};
use dyelog::tlc::rules::compile_all;
use dyelog::tlc::{ReduceOptions, Reducer, Rules};
use dyelog::trace::{ReadOptions, TraceNames, read};
use libfuzzer_sys::fuzz_target;

/// A ring of four nodes.
struct Ring;

impl BaseFacts for Ring {
    fn lookup(&self, _: BaseRelation, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        for from in 0..4u32 {
            let row = [Value::from(from), Value::from((from + 1) % 4)];
            let fits = pattern.iter().zip(row).all(|(known, value)| known.is_none_or(|known| known == value));
            if fits && out(&row).is_break() {
                return;
            }
        }
    }

    fn estimate(&self, _: BaseRelation, bound: u32) -> u64 {
        if bound == 0 { 4 } else { 1 }
    }

    fn symbol(&self, _: &str) -> Option<Value> {
        None
    }
}

/// A trace with a fork, a join, calls of both kinds and a message.
const TRACE: &str = include_str!("../../traces/nested-fork.angio");

/// What the checks of templates pass can be run.
fn templates(program: &Program) {
    let Ok(rules) = Rules::of_program(program.clone()) else { return };
    if rules.relations().is_some() {
        return; // asking has limits, but such that are too wide for here
    }
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, ReduceOptions::default());
    let _ = read("nested-fork.angio", TRACE.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer);
    let Ok(reduction) = reducer.finish(&names) else { return };
    let _ = complete(&reduction.submodel, &Configuration::default());
}

fuzz_target!(|text: &str| {
    let (items, diagnostics) = parse_file(0, &"fuzz.dl".into(), text);
    let mut sources = Sources::new();
    sources.insert("fuzz.dl".into(), text.into());
    let _ = Renderer { color: false }.render_all(&diagnostics, &sources);
    let printed = print_items(&items);
    if diagnostics.is_empty() {
        let (again, diagnostics) = parse_file(0, &"printed.dl".into(), &printed);
        assert!(diagnostics.is_empty(), "{diagnostics:?} in {printed}");
        assert_eq!(printed, print_items(&again));
    }
    if let Ok(tidy) = format(&"fuzz.dl".into(), text) {
        let (again, diagnostics) = parse_file(0, &"tidy.dl".into(), &tidy);
        assert!(diagnostics.is_empty(), "{diagnostics:?} in {tidy}");
        assert_eq!(printed, print_items(&again));
        assert_eq!(format(&"tidy.dl".into(), &tidy).ok().as_ref(), Some(&tidy));
    }
    let mut schema = BaseSchema::new();
    schema.add("edge", &[Type::Any, Type::Any]);
    // What could be read is checked, whatever is wrong with the rest.
    let Loaded { program, diagnostics } = syntax::read("fuzz.dl", text, &|_| None);
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        let (_, findings) = compile_all(&program);
        let _ = Renderer { color: false }.render_all(&findings, &sources);
        let _ = check(&program, &schema);
        return;
    }
    let _ = print(&program);
    templates(&program);
    let _ = Renderer { color: false }.render_all(&check(&program, &schema), &sources);
    let Ok(rules) = compile(&program, &schema) else { return };
    for rule in program.rules.iter().take(4) {
        let Some(relation) = rules.relation(&rule.head.relation.value) else { continue };
        let mut pattern = vec![None; rules.arity(relation)];
        let limits = Limits { rows: 2_000, steps: 20_000, ..Limits::default() };
        let all = Evaluator::with_limits(&rules, &Ring, limits).query(relation, &pattern);
        let Some(row) = all.ok().and_then(|rows| rows.into_iter().next()) else { continue };
        if let (Some(known), Some(value)) = (pattern.first_mut(), row.first()) {
            *known = Some(*value);
        }
        // What holds when everything is asked for holds when a part is.
        if let Ok(found) = Evaluator::with_limits(&rules, &Ring, limits).any(relation, &pattern) {
            assert!(found, "{row:?} of {}", rule.head.relation.value);
        }
    }
});
