//! Rule files: reading, recovery, printing.

use std::sync::Arc;

use dyelog::datalog::ast::{Output, Program, Statement, Template};
use dyelog::datalog::base::{BaseSchema, Type};
use dyelog::datalog::check::check;
use dyelog::datalog::syntax::{Item, load, parse_file, print, print_items};
use proptest::prelude::*;

use crate::rule_texts;
use dyelog::diagnostic::{Code, Diagnostic, Place, Renderer, Report, Sources};

const FORWARDING: &str = r#"
/// (iv) Forwarding: b forwards to t[1], … t[n].
/// The last one wakes a.
template forwarding {
  order 5
  longest
  expect "the last one wakes a"
  match {
    e1 = Ac       [j, k, m   | a, v ]
    e2 = Ac       [j, k, m+1 | b, w2] { name: "lookup" }
    e3 = Fk(q[1]) [j, k, m2  | b, w3]      // k3: b's own nested calls may have moved it
    repeat x in 1..n min 1 {
      f[x] = Be         [j, q[x], 1     | t[x], y[x]]
      g[x] = Fk(q[x+1]) [j, q[x], mm[x] | t[x], z[x]]
    }
    last = Be [j, q[n+1], 1 | a, v+1]
  }
  where { a != b, w3 > w2, !starts(other, e1), reach(a, b), !blocked(a, _), }
  model {
    S[0] := newEntry(R, b)   addRequest(E, S[0])   addActivity(E, e1)   addActivity(S[0], e2)   phase2(k, b, w3)
    for x in 1..n {
      S[x] := newEntry(F, t[x])   addRequest(S[x-1], S[x])
      addTrigger([j, q[x], 2 | t[x], y[x]+1], S[x])   phase2(q[x], t[x], z[x])
    }
    addTrigger([j, q[n+1], 2 | a, v+2], E)
  }
}

/// Who is reached.
reach(X, Z) :- reach(X, Y), edge(Y, Z), !blocked(Z).
reach(X, Y) :- edge(X, Y).
degree(X, n) :- edge(X, _), n = count { edge(X, Y) }, m = max (Y * 2) { edge(X, Y), Y != X }, n + m > -3, -X < 4.
blocked("never \"this\"").
"#;

fn parse(text: &str) -> (Vec<Item>, Vec<Diagnostic>) {
    parse_file(0, &Arc::from("test.dl"), text)
}

fn messages(text: &str) -> Vec<String> {
    parse(text).1.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
}

fn program(text: &str) -> Program {
    load("test.dl", text, &|_| None).expect("the text has no errors")
}

fn only_template(text: &str) -> Template {
    program(text).templates.pop().expect("the text has a template")
}

#[test]
fn reads_the_target_look() {
    let program = program(FORWARDING);
    let template = &program.templates[0];
    assert_eq!(template.doc, "(iv) Forwarding: b forwards to t[1], … t[n].\nThe last one wakes a.");
    assert_eq!(template.order.as_ref().map(|order| order.value), Some(5));
    assert!(template.longest);
    assert_eq!(template.items.len(), 5);
    assert_eq!(template.conditions.len(), 5);
    assert_eq!(template.statements.len(), 7);
    let Statement::For { body, .. } = &template.statements[5] else { panic!("the sixth statement is a loop") };
    assert_eq!(body.len(), 4);
    assert_eq!(program.rules.len(), 4);
    assert_eq!(program.rules[0].doc, "Who is reached.");
}

#[test]
fn printing_reads_back_as_the_same() {
    let (items, diagnostics) = parse(FORWARDING);
    assert_eq!(diagnostics, []);
    let printed = print_items(&items);
    let (again, diagnostics) = parse(&printed);
    assert_eq!(diagnostics, [], "{printed}");
    let (before, after) = (program(FORWARDING), program(&printed));
    assert_eq!(print(&before), print(&after), "{printed}");
    assert_eq!(items.len(), again.len());
    assert_eq!(printed, print_items(&again));
}

#[test]
fn spans_are_exact() {
    let template = only_template(FORWARDING);
    let text = |span: dyelog::datalog::ast::Span| &FORWARDING[span.range()];
    assert_eq!(text(template.name.span), "forwarding");
    assert_eq!(text(template.conditions[2].span), "!starts(other, e1)");
    assert_eq!(text(template.conditions[3].span), "reach(a, b)");
    assert!(text(template.span).starts_with("template forwarding {") && text(template.span).ends_with("E)\n  }\n}"));
}

#[test]
fn used_files_stand_where_they_are_used() {
    let resolver = |name: &str| match name {
        "a.dl" => Some(Arc::from("use \"b.dl\"\na(1).")),
        "b.dl" => Some(Arc::from("include \"a.dl\" use \"main.dl\"\nb(1).")),
        _ => None,
    };
    let program = load("main.dl", "first(1).\nuse \"a.dl\"\nuse \"b.dl\"\nlast(1).", &resolver).expect("all are there");
    let heads: Vec<&str> = program.rules.iter().map(|rule| &*rule.head.relation.value).collect();
    assert_eq!(heads, ["first", "b", "a", "last"]);
    let files: Vec<&str> = program.files.iter().map(|file| &*file.name).collect();
    assert_eq!(files, ["main.dl", "a.dl", "b.dl"]);
    let missing = load("main.dl", "use \"c.dl\"\nuse \"c.dl\"", &resolver).expect_err("one is missing");
    assert_eq!(missing.to_string(), "no rule file `c.dl` [R012]");
}

#[test]
fn an_error_hides_neither_the_one_before_nor_the_one_after() {
    assert_eq!(
        messages("p(X) :- q(X) r(X).\ns(X) :- t(X.\nu(1)\nv(1)."),
        [
            "R005 expected `,` or `.`, found `r`",
            "R005 expected `,` or `)`, found `.`",
            "R005 rule without its full stop",
        ]
    );
    assert_eq!(messages("templat a { match { } }\nb(1)."), ["R007 `templat` begins nothing"]);
    assert_eq!(
        messages("template a {\n  match {\n    e1 = Ax [j, k, m | a, v]\n  where { a = b }\n}\nb(1"),
        [
            "R006 the `{` of `match` is never closed",
            "R008 no node is of type `Ax`",
            "R006 the `(` of the arguments is never closed",
        ]
    );
}

const TEN_ERRORS: &str = r#"/// A file in which much is wrong.
template rpc {
  ordr 1
  match {
    e1 = Ac [j, k, m | a, v]
    e2 = Acc [j, k, m+1 | b, w]
    e3 = Fk(q) [j, k, m+2 | b w]
  }
  where { a != b, w > , reach(a, b) }
  model {
    S := newentry(R, b)
    addRequest(E S)   addActivity(E, e1)
  }
}
template second {
  match {
    e1 = Ac [j, k, m | a, v]
  where { v > 1 }
}

reach(X, Y) :- edge(X, Y)
reach(X, Z) :- reach(X, Y), edge(Y, Z).	ünused("größe, X).
tempate third { }
"#;

fn rendered(text: &str) -> String {
    let mut sources = Sources::new();
    sources.insert("test.dl".into(), text.into());
    Renderer { color: false }.render_all(&parse(text).1, &sources)
}

#[test]
fn a_file_with_ten_errors_reports_each_once() {
    insta::assert_snapshot!(rendered(TEN_ERRORS), @r#"
    error[R007]: no section of a template is called `ordr`
     --> test.dl:3:3
      |
    3 |   ordr 1
      |   ^^^^
      |
      = note: a template has `order`, `longest`, `match`, `where`, `model` and `expect`
      = help: did you mean `order`?

    error[R008]: no node is of type `Acc`
     --> test.dl:6:10
      |
    6 |     e2 = Acc [j, k, m+1 | b, w]
      |          ^^^
      |
      = note: the types are `Be` begin, `Ac` activity, `Ed` end, `Fk(k)` fork and `Jn(k)` join
      = help: did you mean `Ac`?

    error[R005]: expected `,` and the position in the task, found `w`
     --> test.dl:7:31
      |
    7 |     e3 = Fk(q) [j, k, m+2 | b w]
      |                               ^ expected `,` and the position in the task

    error[R005]: expected a term, found `,`
     --> test.dl:9:23
      |
    9 |   where { a != b, w > , reach(a, b) }
      |                       ^ expected a term

    error[R007]: `newentry` gives no entry
      --> test.dl:11:10
       |
    11 |     S := newentry(R, b)
       |          ^^^^^^^^
       |
       = note: what stands after `:=` is `newEntry(type, task)`
       = help: did you mean `newEntry`?

    error[R005]: expected `,` or `)`, found `S`
      --> test.dl:12:18
       |
    12 |     addRequest(E S)   addActivity(E, e1)
       |                  ^ expected `,` or `)`

    error[R006]: the `{` of `match` is never closed
      --> test.dl:16:9
       |
    16 |   match {
       |         ^
    17 |     e1 = Ac [j, k, m | a, v]
    18 |   where { v > 1 }
       |   ----- `}` expected before this
       |
       = help: add `}`

    error[R005]: rule without its full stop
      --> test.dl:21:25
       |
    21 | reach(X, Y) :- edge(X, Y)
       | -----------             ^ expected `,` or `.` after this
       | |
       | in the rule that begins here
       |
       = help: a rule ends with `.`

    error[R002]: string without its closing quote
      --> test.dl:22:48
       |
    22 | reach(X, Z) :- reach(X, Y), edge(Y, Z).    ünused("größe, X).
       |                                                   ^^^^^^^^^^^
       |
       = note: a string ends on the line it begins on; `\n` stands for a line break
       = help: add `"` at its end

    error[R007]: `tempate` begins nothing
      --> test.dl:23:1
       |
    23 | tempate third { }
       | ^^^^^^^
       |
       = note: a file holds `template name { … }`, `use "file"`, rules `head(…) :- body.`, `export name.` and `output name.`
       = help: did you mean `template`?

    10 errors
    "#);
}

#[test]
fn long_lines_are_cut_around_the_place() {
    let text = format!("ä(X) :- {}, b(X Y).\n", "b(\"ö\", X), ".repeat(100).trim_end_matches(", "));
    insta::assert_snapshot!(rendered(&text), @r#"
    error[R005]: expected `,` or `)`, found `Y`
     --> test.dl:1:1113
      |
     ::: 
    1 | …X), b("ö", X), b("ö", X), b("ö", X), b("ö", X), b("ö", X), b("ö", X), b(X Y).
      |                                                                            ^ expected `,` or `)`

    1 error
    "#);
}

#[test]
fn places_at_the_end_and_beyond_are_shown() {
    insta::assert_snapshot!(rendered("a(X) :-\n"), @r"
    error[R005]: expected a term, found the end of the file
     --> test.dl:2:1
      |
    2 |
      | ^ expected a term

    1 error
    ");
    let mut sources = Sources::new();
    sources.insert("a".into(), "ü\nx".into());
    for (start, end) in [(0, 0), (1, 1), (0, 9), (9, 4), (2, 3), (3, 3), (4, 4)] {
        let place = Place::Range { file: "a".into(), start, end };
        let diagnostic = Diagnostic::error(Code("R000"), place.clone(), "m").with_place(place, "l").with_label("here");
        let text = Renderer { color: true }.render(&diagnostic, &sources);
        assert!(text.contains("R000") && text.contains("here"), "{text}");
    }
    let line = Place::Line { file: "b\u{1b}[31m".into(), line: 7, column: 3 };
    let diagnostic = Diagnostic::warning(Code("T001"), line, "odd").with_label("this").with_note("why");
    insta::assert_snapshot!(Renderer { color: false }.render(&diagnostic, &sources), @r"
    warning[T001]: odd
    --> b�[31m:7:3
     = note: this
     = note: why
    ");
}

#[test]
fn json_tells_lines_and_columns() {
    let text = "// ü\n\ta(ü X).";
    let mut sources = Sources::new();
    sources.insert("test.dl".into(), text.into());
    let diagnostics = parse(text).1;
    insta::assert_json_snapshot!(Report::new(&diagnostics, &sources), @r#"
    {
      "dyelog-diagnostics": 1,
      "errors": 1,
      "warnings": 0,
      "notes": 0,
      "diagnostics": [
        {
          "severity": "error",
          "code": "R005",
          "message": "expected `,` or `)`, found `X`",
          "file": "test.dl",
          "line": 2,
          "column": 6,
          "start": 12,
          "end": 13,
          "label": "expected `,` or `)`"
        }
      ]
    }
    "#);
}

/// What the checks say about a text that can be read.
fn checked(text: &str) -> String {
    let mut schema = BaseSchema::new();
    schema.add("edge", &[Type::Node, Type::Node]);
    schema.add("name", &[Type::Node, Type::Symbol]);
    schema.add("place", &[Type::Node, Type::Integer]);
    let mut sources = Sources::new();
    sources.insert("test.dl".into(), text.into());
    Renderer { color: false }.render_all(&check(&program(text), &schema), &sources)
}

#[test]
fn what_is_sound_is_not_complained_about() {
    let text = r#"
reach(X, Y) :- edge(X, Y).
reach(X, Z) :- reach(X, Y), edge(Y, Z), !blocked(Z).
blocked(X) :- name(X, "never").
blocked(X) :- busy(X, N), N > 3, name(X, S), S != "always".
busy(X, N + 1) :- place(X, P), N = count { edge(X, _) }, P % 2 = 0.
last(M) :- M = max P { place(_, P) }.
pair(X, Y) :- place(X, P), Q = P + 1, place(Y, Q), R = Q * 2, R > 4, _unused = R.
template a {
  order 1
  match { e = Ac [j, k, m | i, v]  f = Ac [j, k, m+1 | b, w] }
  where { reach(e, f), busy(e, m), i != b, w > v, !pair(e, _), last(v) }
}
"#;
    assert_eq!(checked(text), "");
}

#[test]
fn names_and_columns_are_checked() {
    let text = "
reach(X, Y) :- edge(X, Y).
reach(X) :- edge(X, _).
far(X, Y) :- raech(X, Y), edge(X, Y, 1), starts(X, Y).
edge(X, X) :- reach(X, X).
count(X) :- edge(X, Y), edge(x[1], X), X = 4611686018427387904.
template a { order 1  where { nothing(m) } }
template a { where { far(m) } }
template b { order 1 }
";
    insta::assert_snapshot!(checked(text), @r"
    error[R021]: `reach` has 1 column here, but 2 columns elsewhere
     --> test.dl:3:1
      |
    2 | reach(X, Y) :- edge(X, Y).
      | ----------- defined here first
    3 | reach(X) :- edge(X, _).
      | ^^^^^^^^

    error[R020]: no relation is called `raech`
     --> test.dl:4:14
      |
    4 | far(X, Y) :- raech(X, Y), edge(X, Y, 1), starts(X, Y).
      |              ^^^^^
      |
      = note: a relation is defined by rules of this file, exported by a used one, or one of the facts
      = help: did you mean `reach`?

    error[R021]: `edge` has 2 columns, not 3
     --> test.dl:4:27
      |
    4 | far(X, Y) :- raech(X, Y), edge(X, Y, 1), starts(X, Y).
      |                           ^^^^^^^^^^^^^
      |
      = note: `edge` is a relation of the facts

    error[R020]: no relation is called `starts`
     --> test.dl:4:42
      |
    4 | far(X, Y) :- raech(X, Y), edge(X, Y, 1), starts(X, Y).
      |                                          ^^^^^^
      |
      = note: a relation is defined by rules of this file, exported by a used one, or one of the facts
      = help: `starts` exists in the form `!starts(template, node)` only, under `where`

    error[R029]: `edge` is a relation of the facts
     --> test.dl:5:1
      |
    5 | edge(X, X) :- reach(X, X).
      | ^^^^
      |
      = note: rules can use it, but not add to it
      = help: give the rule's relation another name

    warning[R026]: nothing uses `count`
     --> test.dl:6:1
      |
    6 | count(X) :- edge(X, Y), edge(x[1], X), X = 4611686018427387904.
      | ^^^^^
      |
      = note: a relation is used under `where`, by `output` and `export`, and by relations that are used
      = help: use it, remove it, or call it `_count`

    warning[R027]: variable `Y` occurs once
     --> test.dl:6:21
      |
    6 | count(X) :- edge(X, Y), edge(x[1], X), X = 4611686018427387904.
      |                     ^
      |
      = help: write `_` if its value does not matter, or `_Y`

    error[R031]: `x` with an index in a rule
     --> test.dl:6:30
      |
    6 | count(X) :- edge(X, Y), edge(x[1], X), X = 4611686018427387904.
      |                              ^^^^
      |
      = note: indices belong to `repeat` and `for` of templates

    error[R004]: number out of range
     --> test.dl:6:44
      |
    6 | count(X) :- edge(X, Y), edge(x[1], X), X = 4611686018427387904.
      |                                            ^^^^^^^^^^^^^^^^^^^
      |
      = note: numbers in rules lie between -2305843009213693952 and 2305843009213693951

    error[R020]: no relation is called `nothing`
     --> test.dl:7:31
      |
    7 | template a { order 1  where { nothing(m) } }
      |                               ^^^^^^^
      |
      = note: a relation is defined by rules of this file, exported by a used one, or one of the facts
      = help: write rules for it: `nothing(…) :- ….`

    error[R025]: a second template `a`
     --> test.dl:8:10
      |
    7 | template a { order 1  where { nothing(m) } }
      |          - the first one
    8 | template a { where { far(m) } }
      |          ^
      |
      = help: rename one of them

    warning[R028]: template `a` has no order
     --> test.dl:8:10
      |
    8 | template a { where { far(m) } }
      |          ^
      |
      = note: it is tried after all that have one
      = help: add `order 1`, or what fits

    error[R021]: `far` has 2 columns, not 1
     --> test.dl:8:22
      |
    4 | far(X, Y) :- raech(X, Y), edge(X, Y, 1), starts(X, Y).
      | --------- defined here
    ...
    8 | template a { where { far(m) } }
      |                      ^^^^^^

    10 errors, 3 warnings
    ");
}

#[test]
fn outputs_are_known_and_told_apart() {
    let sound = program("r(X, 1) :- edge(X, _).\noutput r(node, count), s.\ns(X) :- edge(X, _).");
    let columns = |output: &Output| {
        output.columns.as_ref().map(|columns| columns.iter().map(|column| column.value.to_string()).collect())
    };
    let outputs: Vec<(&str, Option<Vec<String>>)> =
        sound.outputs.iter().map(|output| (&*output.relation.value, columns(output))).collect();
    assert_eq!(outputs, [("r", Some(vec!["node".to_owned(), "count".to_owned()])), ("s", None)]);
    insta::assert_snapshot!(checked(
        "slow(X, 1) :- edge(X, _).\noutput slwo.\noutput slow(node).\noutput slow.\nlate(X, 2) :- edge(X, _).\noutput late(a, a)."
    ), @r"
    error[R020]: no relation is called `slwo`
     --> test.dl:2:8
      |
    2 | output slwo.
      |        ^^^^
      |
      = note: a relation is defined by rules of this file, exported by a used one, or one of the facts
      = help: did you mean `slow`?

    error[R021]: `slow` has 2 columns, but 1 is named here
     --> test.dl:3:8
      |
    3 | output slow(node).
      |        ^^^^^^^^^^
      |
      = help: name each column once, in its order

    error[R032]: a second `output slow`
     --> test.dl:4:8
      |
    3 | output slow(node).
      |        ---------- the first one
    4 | output slow.
      |        ^^^^
      |
      = help: keep one of them

    error[R032]: a second column `a`
     --> test.dl:6:16
      |
    6 | output late(a, a).
      |                ^
      |
      = note: a table's columns are told apart by their names
      = help: rename one of them

    4 errors
    ");
    insta::assert_snapshot!(rendered("output slow(X, 1).\nexport slow(X) :- edge(X, _).\noutput slow\nexport slow."), @r"
    error[R005]: expected the name of a column, found `1`
     --> test.dl:1:16
      |
    1 | output slow(X, 1).
      |                ^ expected the name of a column

    error[R005]: expected `,` or `.`, found `(`
     --> test.dl:2:12
      |
    2 | export slow(X) :- edge(X, _).
      |            ^ expected `,` or `.`
      |
      = note: `export` takes names of relations; their rules stand by themselves
      = help: write `export name.` in a line of its own

    error[R005]: declaration without its full stop
     --> test.dl:3:8
      |
    3 | output slow
      | ------ ^^^^ expected `,` or `.` after this
      | |
      | in the declaration that begins here

    3 errors
    ");
}

/// Each rule that turns any row into a greater one; and none that something may stop.
#[test]
fn recursion_that_never_ends_is_found() {
    let endless = [
        "n(X + 1) :- n(X).",
        "n(X - 1) :- n(X).",
        "n(X) :- n(X + 2).",
        "n(Y) :- n(X), Y = X + 1.",
        "n(Y) :- n(X), Z = X + 5, Z = Y + 2.",
        "n(X + 1) :- m(X). m(X) :- n(X).",
        "n(X + 3) :- m(X). m(X - 2) :- n(X).",
        "n(X + 1) :- n(X). m(X) :- n(X), place(X, _).",
        "n(X + 1) :- n(X), X > 0.",
        "n(X + 1) :- n(X), 0 <= X.",
        "n(X - 1) :- n(X), X < 5.",
        "n(Y) :- n(X), Y = X + 1, Y >= 1.",
        "n(Y) :- n(X), Y = X + 1, X < Y.",
    ];
    let pairs = [
        "p(X, Y + 1) :- p(X, Y).",
        "p(Y, X + 1) :- p(X, Y).",
        "p(X, Y + 1) :- p(X, Y), X < 8, edge(X, _).",
        "p(X + 1, Y) :- p(X, Y), X > Y.",
        "p(X + 2, Y + 2) :- p(X, Y), X < Y + 9.",
        "p(X + 1, S) :- p(X, S), X > 0, edge(S, _).",
    ];
    for (text, start) in endless.map(|text| (text, "n(0).")).into_iter().chain(pairs.map(|text| (text, "p(0, 0)."))) {
        let said = checked(&format!("{start}\n{text}"));
        assert!(said.contains("R035"), "{text}\n{said}");
    }
    let ending = [
        "n(X + 1) :- n(X), X < 8.",
        "n(X + 1) :- n(X), X != 8.",
        "n(X + 1) :- n(X), X < 8, X > 0.",
        "n(X - 1) :- n(X), X > 0.",
        "n(X + 1) :- n(X), X % 2 = 0.",
        "n(X + 1) :- n(X), place(_, X).",
        "n(X + 1) :- n(X), !place(_, X).",
        "n(Y) :- n(X), Y = X + 1, Y < 9.",
        "n(X + 1) :- m(X). m(X) :- n(X), place(_, X).",
        "n(X + 1) :- m(X). m(X - 1) :- n(X).",
        "n(X * 2) :- n(X).",
        "n(X / 2) :- n(X).",
        "n(X + 4611686018427387) :- n(X).",
        "n(X + 1) :- n(X), N = count { place(_, X) }, N > 0.",
    ];
    let pairs = [
        "p(0, Y + 1) :- p(1, Y).",
        "p(X + 1, X) :- p(X, X).",
        "p(Y, X + Y) :- p(X, Y).",
        "p(X + 1, 3) :- p(_, X).",
        "p(X + 1, Y) :- p(X, Y), X < Y.",
        "p(X + 2, Y + 1) :- p(X, Y), X < Y + 9.",
        "p(Y, X + 1) :- p(X, Y), X < Y + 5.",
    ];
    for (text, start) in ending.map(|text| (text, "n(0).")).into_iter().chain(pairs.map(|text| (text, "p(0, 0)."))) {
        let said = checked(&format!("{start}\n{text}"));
        assert!(!said.contains("error"), "{text}\n{said}");
    }
    let depth = "p(X, 0) :- edge(X, _).\np(Y, D + 1) :- p(X, D), edge(X, Y).";
    assert!(!checked(depth).contains("error"), "{}", checked(depth));
    insta::assert_snapshot!(checked("up(0).\nup(X + 1) :- down(X).\ndown(X) :- up(X)."), @r"
    error[R035]: this recursion of `up` never ends
     --> test.dl:2:1
      |
    2 | up(X + 1) :- down(X).
      | ^^^^^^^^^
      |
      = note: each row gives another one with a greater number in column 1, and nothing in the body stops that
      = help: bound the number, for instance by `X < 100`, or take it from a relation

    1 error
    ");
    insta::assert_snapshot!(checked("up(1).\nup(X + 1) :- up(X), X > 0."), @r"
    error[R035]: this recursion of `up` never ends
     --> test.dl:2:1
      |
    2 | up(X + 1) :- up(X), X > 0.
      | ^^^^^^^^^
      |
      = note: each row gives another one with a greater number in column 1, and nothing in the body stops that
      = note: `X > 0` bounds it on the other side only
      = help: bound the number, for instance by `X < 100`, or take it from a relation

    1 error
    ");
}

/// What is accepted must say something: bodies that never hold, literals that always do, rules that stand twice.
#[test]
fn what_is_said_in_vain_is_found() {
    let vain = [
        ("R036", "r(X) :- place(X, P), P < 3, P > 5."),
        ("R036", "r(X) :- place(X, P), P > 3, P < 4."),
        ("R036", "r(X) :- place(X, P), P < 3, Q = P + 1, Q > 4."),
        ("R036", "r(X) :- place(X, P), place(X, Q), P < Q, Q <= P."),
        ("R036", "r(X) :- place(X, P), P != P."),
        ("R036", "r(X) :- place(X, P), P = P + 1."),
        ("R036", "r(X) :- edge(X, _), \"a\" = \"b\"."),
        ("R036", "r(X) :- edge(X, _), 1 > 2."),
        ("R036", "r(X) :- name(X, S), S = \"a\", S = \"b\"."),
        ("R036", "r(X) :- name(X, S), S != \"a\", S = \"a\"."),
        ("R036", "r(X) :- edge(X, Y), !edge(X, Y)."),
        ("R036", "r(X) :- place(X, _P), !place(X, _)."),
        ("R036", "r(X) :- name(X, S), name(X, T), S = T, S = \"a\", T = \"b\"."),
        ("R036", "r(X) :- place(X, P), place(_, Q), P < Q, Q < P + 1."),
        ("R036", "r(X) :- place(X, P), Q = P / 0, Q > 1."),
        ("R036", "r(X, P % (2 - 2)) :- place(X, P)."),
        ("R036", "r(X) :- place(X, P), place(_, P / 0)."),
        ("R036", "r(X) :- place(X, P), P < 1e308 * 10."),
        ("R036", "r(X) :- place(X, P), P < 2305843009213693951 * 2 - 7."),
        ("R036", "r(P + 1e308 * (3 + 7)) :- place(_, P)."),
        ("R036", "r(X) :- place(X, P), place(_, Q), P - Q > 3, Q >= P."),
        ("R036", "r(X) :- edge(X, _), n = count { place(X, _) }, n < 0."),
        ("R036", "r(X) :- edge(X, _), n = count { place(X, P), P > 1, P < 1 }, n = 0."),
        ("R036", "r(X) :- r(Y), edge(X, Y)."),
        ("R037", "r(X) :- edge(X, Y), edge(Y, X).\nr(A) :- edge(A, B), edge(B, A)."),
        ("R037", "r(1).\nr(1)."),
        ("R039", "r(X) :- edge(X, _), r(X).\nr(X) :- edge(_, X)."),
        ("R039", "r(X) :- place(X, P), P = P."),
        ("R039", "r(X) :- place(X, P), P < P + 1."),
        ("R039", "r(X) :- edge(X, _), 1 < 2."),
        ("R039", "r(X) :- edge(X, Y), edge(Y, X), edge(X, Y)."),
        ("R039", "r(X) :- edge(X, Y), n = count { edge(X, Y) }, n > 0."),
        ("R039", "r(X, s) :- place(X, P), s = sum P { edge(X, _) }."),
        ("R039", "r(n) :- n = count { }."),
        ("R004", "r(X) :- place(X, P), P > 4611686018427387904."),
        ("R004", "r(P + 4611686018427387904) :- place(_, P)."),
        ("R022", "r(X) :- name(X, S), S < 1."),
        ("R023", "r(_) :- edge(_, _)."),
        ("R023", "r(X)."),
        ("R023", "m(M) :- M = max P { edge(_, _) }."),
        ("R023", "m(X, n) :- n = count { edge(X, _) }."),
        ("R029", "edge(X, Y) :- name(X, _), name(Y, _)."),
    ];
    for (code, text) in vain {
        let said = checked(text);
        assert!(said.contains(code), "{text}\n{said}");
        assert_eq!(said.matches("[R").count(), 1, "{text}\n{said}");
    }
    let sound = [
        "r(X) :- place(X, P), P > 3, P < 5.",
        "r(X) :- place(X, P), P >= 3, P <= 3.",
        "r(X) :- place(X, P), place(X, Q), P <= Q, Q <= P.",
        "r(X) :- edge(X, Y), !edge(Y, X).",
        "r(X) :- edge(X, _), edge(_, X).",
        "r(X, n) :- edge(X, _), n = count { edge(X, _) }.",
        "r(s) :- s = sum P { place(_, P) }.",
        "r(X) :- edge(X, _).\nr(X) :- edge(_, X).",
    ];
    for text in sound {
        assert_eq!(checked(text), "", "{text}");
    }
}

#[test]
fn unsafe_variables_are_found() {
    let text = "
a(X, Y) :- edge(X, _).
b(X) :- !edge(X, X).
c(X) :- edge(X, Y), Y < Z, !place(Y, W).
d(X) :- edge(X, _), N = count { edge(Y, Z), Y != Z, V > 1 }, N > 1.
e(X, N) :- N = count { edge(X, Y) }.
f(Y) :- X = Y + 1, Y = X - 1.
g(_) :- edge(X, X), _ = X.
h(X).
i(X) :- place(N, X * 2), place(N, 1).
";
    insta::assert_snapshot!(checked(text), @r"
    error[R023]: nothing gives `Y` a value
     --> test.dl:2:6
      |
    2 | a(X, Y) :- edge(X, _).
      |      ^
      |
      = note: all that the head names must be known from the body
      = help: add a relation that holds for `Y` to the body

    error[R023]: nothing gives `X` a value
     --> test.dl:3:3
      |
    3 | b(X) :- !edge(X, X).
      |   ^
      |
      = note: all that the head names must be known from the body
      = help: add a relation that holds for `X` to the body

    error[R022]: a node where a number belongs
     --> test.dl:4:21
      |
    4 | c(X) :- edge(X, Y), Y < Z, !place(Y, W).
      |                     ^---- this makes it a number
      |
      = note: column 2 of `edge` holds nodes

    error[R023]: nothing gives `Z` a value
     --> test.dl:4:25
      |
    4 | c(X) :- edge(X, Y), Y < Z, !place(Y, W).
      |                         ^
      |
      = note: comparisons and arithmetic need values
      = help: add a relation that holds for `Z` to the body

    error[R023]: nothing gives `W` a value
     --> test.dl:4:38
      |
    4 | c(X) :- edge(X, Y), Y < Z, !place(Y, W).
      |                                      ^
      |
      = note: what does not hold gives no values: they must be known from elsewhere
      = help: add a relation that holds for `W` to the body
      = help: or write `_`, if no value at all may do

    error[R023]: nothing gives `V` a value
     --> test.dl:5:53
      |
    5 | d(X) :- edge(X, _), N = count { edge(Y, Z), Y != Z, V > 1 }, N > 1.
      |                                                     ^
      |
      = note: comparisons and arithmetic need values
      = help: add a relation that holds for `V` to the body

    error[R023]: nothing gives `X` a value
     --> test.dl:6:29
      |
    6 | e(X, N) :- N = count { edge(X, Y) }.
      |                             ^
      |
      = note: a variable that an aggregate shares with its rule must be known outside the aggregate
      = help: add a relation that holds for `X` to the body

    error[R023]: nothing gives `Y` a value
     --> test.dl:7:3
      |
    7 | f(Y) :- X = Y + 1, Y = X - 1.
      |   ^
      |
      = note: all that the head names must be known from the body
      = help: add a relation that holds for `Y` to the body

    error[R023]: nothing gives `X` a value
     --> test.dl:7:9
      |
    7 | f(Y) :- X = Y + 1, Y = X - 1.
      |         ^
      |
      = note: comparisons and arithmetic need values
      = help: add a relation that holds for `X` to the body

    error[R023]: `_` has no value
     --> test.dl:8:3
      |
    8 | g(_) :- edge(X, X), _ = X.
      |   ^
      |
      = note: all that the head names must be known from the body

    error[R023]: `_` has no value
     --> test.dl:8:21
      |
    8 | g(_) :- edge(X, X), _ = X.
      |                     ^
      |
      = note: comparisons and arithmetic need values

    error[R023]: nothing gives `X` a value
     --> test.dl:9:3
      |
    9 | h(X).
      |   ^
      |
      = note: all that the head names must be known from the body
      = help: add a relation that holds for `X` to the body

    error[R023]: nothing gives `X` a value
      --> test.dl:10:3
       |
    10 | i(X) :- place(N, X * 2), place(N, 1).
       |   ^
       |
       = note: all that the head names must be known from the body
       = help: add a relation that holds for `X` to the body

    13 errors
    ");
}

#[test]
fn circles_through_negation_are_named() {
    let text = "
win(X) :- move(X, Y), !win(Y).
move(X, Y) :- edge(X, Y), odd(X).
odd(X) :- edge(_, X), n = count { other(X, _) }, n > 1.
other(X, Y) :- edge(X, Y), third(X).
third(X) :- odd(X).
";
    insta::assert_snapshot!(checked(text), @r"
    error[R024]: `win` depends on what does not hold of itself
     --> test.dl:2:24
      |
    2 | win(X) :- move(X, Y), !win(Y).
      |                        ^^^^^^
      |
      = note: `win` needs all of `win`
      = note: a negated or aggregated relation must be complete before the rule that uses it
      = help: break the circle, for instance by a relation that does not use its own result

    error[R024]: `odd` depends on what does not hold of itself
     --> test.dl:4:35
      |
    4 | odd(X) :- edge(_, X), n = count { other(X, _) }, n > 1.
      |                                   ^^^^^^^^^^^
      |
      = note: `odd` needs all of `other`, `other` needs `third`, `third` needs `odd`
      = note: a negated or aggregated relation must be complete before the rule that uses it
      = help: break the circle, for instance by a relation that does not use its own result

    2 errors
    ");
}

#[test]
fn types_are_inferred() {
    let text = r#"
a(X) :- name(X, S), S > 1.
b(X) :- edge(X, Y), place(X, Y).
c(X, Y) :- name(X, Y).
d(X) :- c(X, Y), place(X, Y).
e("text"). e(1).
template t {
  order 1
  match { e = Ac [j, k, m | i, v] }
  where { c(e, m), v != "x", place(v, m) }
}
"#;
    insta::assert_snapshot!(checked(text), @r#"
    warning[R026]: nothing uses `a`
     --> test.dl:2:1
      |
    2 | a(X) :- name(X, S), S > 1.
      | ^
      |
      = note: a relation is used under `where`, by `output` and `export`, and by relations that are used
      = help: use it, remove it, or call it `_a`

    error[R022]: a symbol where a number belongs
     --> test.dl:2:21
      |
    2 | a(X) :- name(X, S), S > 1.
      |                     ^---- this makes it a number
      |
      = note: column 2 of `name` holds symbols

    warning[R026]: nothing uses `b`
     --> test.dl:3:1
      |
    3 | b(X) :- edge(X, Y), place(X, Y).
      | ^
      |
      = note: a relation is used under `where`, by `output` and `export`, and by relations that are used
      = help: use it, remove it, or call it `_b`

    error[R022]: a node where a whole number belongs
     --> test.dl:3:30
      |
    3 | b(X) :- edge(X, Y), place(X, Y).
      |                              ^
      |
      = note: column 2 of `edge` holds nodes
      = note: column 2 of `place` holds whole numbers

    warning[R026]: nothing uses `d`
     --> test.dl:5:1
      |
    5 | d(X) :- c(X, Y), place(X, Y).
      | ^
      |
      = note: a relation is used under `where`, by `output` and `export`, and by relations that are used
      = help: use it, remove it, or call it `_d`

    error[R022]: a symbol where a whole number belongs
     --> test.dl:5:27
      |
    5 | d(X) :- c(X, Y), place(X, Y).
      |                           ^
      |
      = note: column 2 of `name` holds symbols
      = note: column 2 of `place` holds whole numbers

    warning[R026]: nothing uses `e`
     --> test.dl:6:1
      |
    6 | e("text"). e(1).
      | ^
      |
      = note: a relation is used under `where`, by `output` and `export`, and by relations that are used
      = help: use it, remove it, or call it `_e`

    error[R022]: a whole number where a symbol belongs
     --> test.dl:6:14
      |
    6 | e("text"). e(1).
      |   ------     ^
      |   |
      |   this makes it a symbol

    error[R022]: a symbol where a task node counter belongs
      --> test.dl:10:25
       |
     9 |   match { e = Ac [j, k, m | i, v] }
       |                                - this makes it a task node counter
    10 |   where { c(e, m), v != "x", place(v, m) }
       |                         ^^^

    5 errors, 4 warnings
    "#);
}

#[test]
fn nesting_is_limited() {
    let deep =
        |open: &str, close: &str, count: usize| format!("a(X) :- X = {}1{}.", open.repeat(count), close.repeat(count));
    assert_eq!(messages(&deep("(", ")", 60)), Vec::<String>::new());
    for text in [deep("(", ")", 100_000), deep("-(", ")", 100_000), deep("1+X*", "", 100_000)] {
        let found = messages(&text);
        assert_eq!(found, ["R009 arithmetic nested more than 64 deep"], "{}", &text[..40]);
    }
    let loops = format!("template a {{ model {{ {} {} }} }}", "for x in 1..n { ".repeat(100_000), "}".repeat(100_000));
    assert_eq!(messages(&loops)[0], "R009 `for` nested more than 64 deep");
}

#[test]
fn errors_beyond_a_hundred_are_not_shown() {
    let found = messages(&"nonsense here\n".repeat(50_000));
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "R014 more than 100 errors; the rest is not shown");
}

#[test]
fn truncation_at_any_byte_is_survived() {
    for end in 0..FORWARDING.len() {
        let text = String::from_utf8_lossy(&FORWARDING.as_bytes()[..end]).into_owned();
        let (items, diagnostics) = parse(&text);
        assert!(diagnostics.len() <= 2, "{end}: {diagnostics:?}");
        let _ = print_items(&items);
        let _ = rendered(&text);
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let _ = rendered(&text);
    }

    #[test]
    fn any_mixture_of_tokens_is_survived(words in prop::collection::vec(0..rule_texts::WORDS.len(), 0..120)) {
        let text: Vec<&str> = words.into_iter().map(|word| rule_texts::WORDS[word]).collect();
        let text = text.join(" ");
        let (items, diagnostics) = parse(&text);
        let _ = rendered(&text);
        if diagnostics.is_empty() {
            prop_assert_eq!(rule_texts::without_spans(&items), rule_texts::without_spans(&parse(&print_items(&items)).0));
            let _ = checked(&text.replace("use", "").replace("include", ""));
        }
    }

    #[test]
    fn printing_and_reading_is_the_identity(items in rule_texts::items()) {
        let text = print_items(&items);
        let (again, diagnostics) = parse(&text);
        prop_assert_eq!(diagnostics, vec![], "{}", text);
        prop_assert_eq!(rule_texts::without_spans(&items), rule_texts::without_spans(&again), "{}", text);
    }
}
