//! Queries: facts, scopes, the standard library against oracles, the pages of the book, the command line.

mod cli;
mod clocks;
mod constants;
mod hostile;
mod library;
mod messages;
mod on_call;
mod page;
mod parquet;

use std::ops::ControlFlow;

use dyelog::datalog::base::Type;
use dyelog::datalog::syntax;
use dyelog::diagnostic::Diagnostics;
use dyelog::query::{self, Answering, Cell, Question, Rows, Scope, Told};
use dyelog::report::answers::written;
use dyelog::tlc::Rules;
use dyelog::trace::quality::{Gate, Policy};
use dyelog::trace::{self, ReadOptions, TraceNames};

/// Rows as texts, with the names of their relations.
#[derive(Default)]
struct Collected(Vec<(usize, Vec<String>)>);

impl Rows for Collected {
    fn row(&mut self, relation: usize, _: Option<(&str, &str)>, cells: &[Cell<'_>]) -> ControlFlow<()> {
        self.0.push((relation, cells.iter().map(written).collect()));
        ControlFlow::Continue(())
    }
}

/// The rows of the first relation that is asked for, without scenario and run.
fn ask(rules: &str, trace: &[u8], scope: Scope) -> Result<(Vec<Vec<String>>, Told), Diagnostics> {
    let loaded = syntax::read("question.dl", rules, &query::standard::text);
    let question = Question::new(&loaded.program, loaded.diagnostics, 0, &[], scope)?;
    let (rules, mut rows, mut names) = (Rules::shipped(), Collected::default(), TraceNames::new());
    let mut answering = Answering::new(&question, &rules, &mut rows);
    let mut gate = Gate::new(Policy::default(), &mut answering);
    trace::read("trace", trace, &ReadOptions::default(), &mut names, &mut gate)?;
    gate.finish()?;
    let told = answering.finish(&names)?;
    Ok((rows.0.into_iter().filter(|(relation, _)| *relation == 0).map(|(_, row)| row).collect(), told))
}

/// The rows, one a line.
fn lines(rules: &str, trace: &str) -> Vec<String> {
    let (rows, _) = ask(rules, trace.as_bytes(), Scope::Operation).unwrap_or_else(|error| panic!("{rules}: {error}"));
    rows.into_iter().map(|row| row.join(" ")).collect()
}

const OTLP: &str = r#"{"resourceSpans":[{"resource":{"attributes":[
  {"key":"service.name","value":{"stringValue":"a"}},{"key":"zone","value":{"stringValue":"z1"}}]},
 "scopeSpans":[{"spans":[
  {"traceId":"0000000000000000000000000000000a","spanId":"000000000000000a","name":"root","kind":2,
   "startTimeUnixNano":"1000","endTimeUnixNano":"9000","status":{"code":2},
   "attributes":[{"key":"n","value":{"intValue":"7"}},{"key":"text","value":{"stringValue":"12"}},
    {"key":"zero","value":{"stringValue":"007"}},{"key":"half","value":{"doubleValue":0.5}},
    {"key":"whole","value":{"doubleValue":3.0}},{"key":"truth","value":{"boolValue":true}},
    {"key":"list","value":{"arrayValue":{"values":[]}}}],
   "events":[{"name":"exception","timeUnixNano":"2000","attributes":[{"key":"exception.type","value":{"stringValue":"Timeout"}}]},
    {"name":"later","timeUnixNano":"3000"}],
   "links":[{"traceId":"0000000000000000000000000000000b","spanId":"000000000000000c"}]},
  {"traceId":"0000000000000000000000000000000a","spanId":"000000000000000b","parentSpanId":"000000000000000a","name":"child",
   "startTimeUnixNano":"2000","endTimeUnixNano":"4000","attributes":[{"key":"error","value":{"boolValue":true}}]}]}]}]}"#;

const JAEGER: &str = r#"{"data":[{"traceID":"a","processes":{"p":{"serviceName":"a","tags":[{"key":"zone","value":"z1"}]}},"spans":[
  {"traceID":"a","spanID":"a","processID":"p","operationName":"root","startTime":1,"duration":8,"references":[],
   "tags":[{"key":"span.kind","value":"server"},{"key":"n","type":"int64","value":7},{"key":"text","value":"12"},
    {"key":"zero","value":"007"},{"key":"half","type":"float64","value":0.5},{"key":"whole","value":3.0},
    {"key":"truth","type":"bool","value":true},{"key":"otel.status_code","value":"ERROR"}],
   "logs":[{"timestamp":2,"fields":[{"key":"event","value":"exception"},{"key":"exception.type","value":"Timeout"}]},
    {"timestamp":3,"fields":[{"key":"event","value":"later"}]}]},
  {"traceID":"a","spanID":"b","processID":"p","operationName":"child","startTime":2,"duration":2,
   "references":[{"refType":"CHILD_OF","traceID":"a","spanID":"a"}],"tags":[{"key":"error","value":true}]}]}]}"#;

#[test]
fn attributes_are_the_same_in_otlp_and_jaeger() {
    for trace in [OTLP, JAEGER] {
        let attributes = lines(
            "q(Name, K, V) :- span(S, _, Name), attr(S, K, V), K != \"otel.status_code\", K != \"span.kind\".",
            trace,
        );
        let expected = [
            "child error true",
            "root half 0.5",
            "root n 7",
            "root text 12",
            "root truth true",
            "root whole 3",
            "root zero 007",
        ];
        assert_eq!(attributes, expected);
        assert_eq!(lines("q(V) :- attr(_, \"text\", V), V = 12.", trace), ["12"]);
        assert_eq!(lines("q(S, V) :- resource(S, \"zone\", V).", trace).len(), 2);
        assert_eq!(lines("q(Name, X) :- status(S, X), span(S, _, Name).", trace), ["child error", "root error"]);
        let events = lines("q(Name, T, K) :- event(E, _, Name, T), event_attr(E, K, \"Timeout\").", trace);
        assert_eq!(events, ["exception 2000 exception.type"]);
        assert_eq!(lines("q(D, T) :- root(S), duration(S, D), self_time(S, T).", trace), ["8000 6000"]);
    }
    assert_eq!(lines("q(T, I) :- link(_, T, I).", OTLP), ["000000000000000b 000000000000000c"]);
}

#[test]
fn only_the_attributes_that_rules_name_are_kept() {
    assert_eq!(lines("q(V) :- attr(_, \"n\", V).", OTLP), ["7"]);
    let (_, told) = ask("q(V) :- attr(_, \"nn\", V).", OTLP.as_bytes(), Scope::Operation).expect("it runs");
    let hints: Vec<&str> =
        told.findings.iter().filter_map(|finding| finding.hints.first()).map(|hint| &**hint).collect();
    assert_eq!(hints, ["did you mean `n`?"]);
}

#[test]
fn constants_are_looked_for_through_relations_and_comparisons() {
    let rules = "q(S) :- of(S, V), V = \"aa\". of(S, V) :- span(S, V, _).";
    let (_, told) = ask(rules, OTLP.as_bytes(), Scope::Operation).expect("it runs");
    let codes: Vec<&str> = told.findings.iter().map(|finding| finding.code.0).collect();
    assert_eq!(codes, ["Q003", "Q004"]);
    let (_, told) = ask("q(S) :- attr(S, \"n\", \"7\").", OTLP.as_bytes(), Scope::Operation).expect("it runs");
    assert_eq!(told.findings[0].code.0, "Q008");
}

/// What a column can hold is what evaluation gives it: `/` between whole numbers is whole.
#[test]
fn columns_are_whole_where_no_fraction_comes() {
    for (rules, kind) in [
        ("q(S, D / 1000000) :- duration(S, D).", Type::Integer),
        ("q(N, M) :- span(_, N, _), M = max D { span(S, N, _), duration(S, D) }.", Type::Integer),
        ("q(S, D / 2.0) :- duration(S, D).", Type::Number),
        ("q(N, M) :- span(_, N, _), M = mean D { span(S, N, _), duration(S, D) }.", Type::Number),
    ] {
        let program = syntax::read("question.dl", rules, &query::standard::text).program;
        let question = Question::new(&program, Vec::new(), 0, &[], Scope::Operation).expect("the rules are right");
        assert_eq!(question.asked[0].columns[1].kind, kind, "{rules}");
    }
}

#[test]
fn a_span_is_no_node() {
    let wrong = ask("q(S) :- span(S, _, _), name(S, _).", OTLP.as_bytes(), Scope::Operation).expect_err("types differ");
    assert!(wrong.to_string().contains("a span"), "{wrong}");
}

#[test]
fn scopes_differ_in_what_rules_see() {
    let other = OTLP.replace("00000a\"", "00001a\"").replace("00000b\"", "00001b\"");
    let both = format!("{}\n{}\n", OTLP.replace('\n', " "), other.replace('\n', " "));
    let count = "q(N) :- N = count { span(S, _, _) }.";
    let rows = |scope| ask(count, both.as_bytes(), scope).expect("it runs").0;
    assert_eq!(rows(Scope::Operation), [["2"], ["2"]]);
    assert_eq!(rows(Scope::Trace), [["4"]]);
    let names = "q(Run, Id) :- span_id(S, Id), span_operation(S, O), operation(O, _, Run), root(S).";
    let (rows, _) = ask(names, both.as_bytes(), Scope::Trace).expect("it runs");
    assert_eq!(rows.len(), 2);
    assert_ne!(rows[0], rows[1]);
}

#[test]
fn native_traces_have_nodes_with_times_and_matches_with_bindings() {
    let text = std::fs::read_to_string("traces/rpc.angio").expect("the trace is bundled");
    assert!(!lines("q(N, T) :- time(N, T).", &text).is_empty() || !text.contains("t="));
    let found = lines("q(T, N, V) :- match(M, T), match_node(M, \"e1\", N), match_value(M, \"b\", V).", &text);
    assert!(found.iter().any(|row| row.starts_with("basic_rpc ")), "{found:?}");
    let owners = lines("q(E, Task, N) :- owner(N, E), entry(E, Task, _, \"R\").", &text);
    assert!(!owners.is_empty() && owners.iter().all(|row| row.starts_with('E')), "{owners:?}");
    assert!(!lines("q(E, F) :- request(E, F).", &text).is_empty());
}

#[test]
fn damaged_operations_are_set_aside() {
    let text = std::fs::read("traces/lost-reply.angio").expect("the trace is bundled");
    let (rows, told) = ask("q(O) :- operation(O, _, _).", &text, Scope::Operation).expect("it runs");
    assert_eq!(rows.len() as u64, told.operations);
}

/// A value of an attribute may be any number; that it stands for a span is the author's word.
#[test]
fn numbers_that_are_no_spans_are_shown_as_numbers() {
    assert_eq!(lines("q(V) :- attr(_, \"n\", V), !span(V, _, _).", OTLP), ["7"]);
    assert_eq!(lines("q(V) :- attr(_, \"n\", V), !node_span(V, _).", OTLP).len(), 1);
}

/// Columns of one name get names that no other column has.
#[test]
fn columns_have_names_of_their_own() {
    let columns = |rules: &str| -> Vec<String> {
        let loaded = syntax::read("question.dl", rules, &query::standard::text);
        let question =
            Question::new(&loaded.program, loaded.diagnostics, 0, &[], Scope::Trace).expect("it can be asked");
        question.asked[0].columns.iter().map(|column| column.name.to_string()).collect()
    };
    assert_eq!(columns("q(X, X, Y) :- parent(X, Y)."), ["X", "X_2", "Y"]);
    assert_eq!(columns("q(X_3, X, X) :- span(X, X_3, _)."), ["X_3", "X", "X_4"]);
    assert_eq!(columns("q(X, X, X_2, 1) :- span(X, X_2, _)."), ["X", "X_3", "X_2", "column_4"]);
}
