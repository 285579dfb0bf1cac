//! Rule files: reading, recovery, printing.

use std::sync::Arc;

use dyelog::datalog::ast::{Program, Statement, Template};
use dyelog::datalog::syntax::{Item, load, parse_file, print, print_items};
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
       = note: a file holds `template name { … }`, `use "file"` and rules `head(…) :- body.`
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
    insta::assert_snapshot!(rendered("a(X) :-\n"), @r#"
    error[R005]: expected a term, found the end of the file
     --> test.dl:2:1
      |
    2 |
      | ^ expected a term

    1 error
    "#);
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
    insta::assert_snapshot!(Renderer { color: false }.render(&diagnostic, &sources), @r#"
    warning[T001]: odd
    --> b�[31m:7:3
     = note: this
     = note: why
    "#);
}

#[test]
fn json_tells_lines_and_columns() {
    let text = "// ü\n\ta(ü X).";
    let mut sources = Sources::new();
    sources.insert("test.dl".into(), text.into());
    let diagnostics = parse(text).1;
    insta::assert_json_snapshot!(Report::new(&diagnostics, &sources), @r#"
    {
      "version": 1,
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
