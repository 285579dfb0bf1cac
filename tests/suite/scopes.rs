//! Relations belong to their file: what `export` and `use` show, and what two files of one name do to each other.

use std::ops::ControlFlow;
use std::sync::Arc;

use dyelog::datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog::datalog::check::check;
use dyelog::datalog::eval::{Evaluator, compile};
use dyelog::datalog::syntax::load;
use dyelog::datalog::value::Value;
use dyelog::diagnostic::{Diagnostics, Renderer, Sources};
use dyelog::tlc::{ReduceOptions, Rules};

use crate::tlc::reduce;

/// `one(1)`.
struct One;

impl BaseFacts for One {
    fn lookup(&self, _: BaseRelation, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        let row = [Value::from(1)];
        if pattern[0].is_none_or(|known| known == row[0]) {
            let _ = out(&row);
        }
    }

    fn estimate(&self, _: BaseRelation, _: u32) -> u64 {
        1
    }

    fn symbol(&self, _: &str) -> Option<Value> {
        None
    }
}

fn schema() -> BaseSchema {
    let mut schema = BaseSchema::new();
    schema.add("one", &[Type::Integer]);
    schema
}

fn resolver<'f>(files: &'f [(&str, &str)]) -> impl Fn(&str) -> Option<Arc<str>> + 'f {
    |name: &str| files.iter().find(|(known, _)| *known == name).map(|(_, text)| Arc::from(*text))
}

/// The values of a relation of one column; the first file is the main one.
fn values(files: &[(&str, &str)], relation: &str) -> Vec<i64> {
    let program = load(files[0].0, files[0].1, &resolver(files)).expect("the files can be read");
    let rules = compile(&program, &schema()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let relation = rules.relation(relation).expect("the relation is known");
    let rows = Evaluator::new(&rules, &One).query(relation, &[None]).expect("no limit is reached");
    rows.iter().map(|row| row[0].as_integer().expect("a number")).collect()
}

/// What the checks say.
fn checked(files: &[(&str, &str)]) -> String {
    let program = load(files[0].0, files[0].1, &resolver(files)).expect("the files can be read");
    let mut sources = Sources::new();
    for (name, text) in files {
        sources.insert((*name).into(), (*text).into());
    }
    Renderer { color: false }.render_all(&check(&program, &schema()), &sources)
}

#[test]
fn relations_of_two_files_with_one_name_never_meet() {
    let files = [
        ("main.dl", "use \"a.dl\"\nuse \"b.dl\"\nok(0).\nall(X) :- from_a(X).\nall(X) :- from_b(X).\nall(X) :- ok(X)."),
        ("a.dl", "ok(1).\nfrom_a(X) :- ok(X).\nexport from_a."),
        ("b.dl", "ok(2).\nok(X + 3) :- one(X).\nexport from_b.\nfrom_b(X) :- ok(X)."),
    ];
    assert_eq!(values(&files, "all"), [0, 1, 2, 4]);
    assert_eq!(values(&files, "ok"), [0]);
    assert_eq!(values(&files, "ok of b.dl"), [2, 4]);
    assert_eq!(checked(&files), "");
}

#[test]
fn what_is_exported_goes_one_use_far_unless_exported_again() {
    let (inner, main) = ("deep(7).\nexport deep.", "use \"middle.dl\"\nfound(X) :- deep(X).");
    let through = [("main.dl", main), ("middle.dl", "use \"inner.dl\"\nexport deep."), ("inner.dl", inner)];
    assert_eq!(values(&through, "found"), [7]);
    // Files may use each other in a circle, and bring a relation by two ways.
    let circle = [
        ("main.dl", "use \"middle.dl\"\nuse \"inner.dl\"\nfound(X) :- deep(X)."),
        ("middle.dl", "use \"inner.dl\"\nuse \"main.dl\"\nexport deep."),
        ("inner.dl", "use \"middle.dl\"\ndeep(7).\nexport deep."),
    ];
    assert_eq!(values(&circle, "found"), [7]);
    insta::assert_snapshot!(checked(&[("main.dl", main), ("middle.dl", "use \"inner.dl\"\nx(X) :- deep(X).\nexport x."), ("inner.dl", inner)]), @r#"
    error[R033]: `deep` of inner.dl is not known here
     --> main.dl:2:13
      |
    2 | found(X) :- deep(X).
      |             ^^^^
      |
     ::: inner.dl:1:1
      |
    1 | deep(7).
      | ---- defined here
      |
      = note: a file sees what the files that it uses export, and not what those use in turn
      = help: write `use "inner.dl"` here

    1 error
    "#);
}

#[test]
fn what_files_do_not_show_is_told_with_both_places() {
    insta::assert_snapshot!(checked(&[
        (
            "main.dl",
            "use \"a.dl\"\nuse \"b.dl\"\nr(X) :- hidden(X), shown(X), both(X), nothing(X).\nshown(1).\noutput hidden.\nexport r, missing, one.\nexport r."
        ),
        ("a.dl", "hidden(1).\nshown(2).\nboth(3).\nexport shown, both."),
        ("b.dl", "both(4).\nexport both."),
    ]), @r#"
    error[R033]: `hidden` is private to a.dl
     --> main.dl:3:9
      |
    3 | r(X) :- hidden(X), shown(X), both(X), nothing(X).
      |         ^^^^^^
      |
     ::: a.dl:1:1
      |
    1 | hidden(1).
      | ------ defined here
      |
      = note: a file sees what the files that it uses export, and not what those use in turn
      = help: write `export hidden.` there

    error[R034]: `both` means two relations here
     --> main.dl:3:30
      |
    1 | use "a.dl"
      |     ------ brought by this `use`
    2 | use "b.dl"
      |     ------ brought by this `use`
    3 | r(X) :- hidden(X), shown(X), both(X), nothing(X).
      |                              ^^^^
      |
     ::: a.dl:3:1
      |
    3 | both(3).
      | ---- defined here
      |
     ::: b.dl:1:1
      |
    1 | both(4).
      | ---- defined here
      |
      = note: relations of two files are never united
      = help: rename one of them, or drop one `export`

    error[R020]: no relation is called `nothing`
     --> main.dl:3:39
      |
    3 | r(X) :- hidden(X), shown(X), both(X), nothing(X).
      |                                       ^^^^^^^
      |
      = note: a relation is defined by rules of this file, exported by a used one, or one of the facts
      = help: write rules for it: `nothing(…) :- ….`

    error[R034]: `shown` means two relations here
     --> main.dl:4:1
      |
    1 | use "a.dl"
      |     ------ brought by this `use`
    ...
    4 | shown(1).
      | ^^^^^
      |
     ::: a.dl:2:1
      |
    2 | shown(2).
      | ----- defined here
      |
      = note: relations of two files are never united
      = help: rename the one of this file, or drop the `export` of the other

    error[R033]: `hidden` is private to a.dl
     --> main.dl:5:8
      |
    5 | output hidden.
      |        ^^^^^^
      |
     ::: a.dl:1:1
      |
    1 | hidden(1).
      | ------ defined here
      |
      = note: a file sees what the files that it uses export, and not what those use in turn
      = help: write `export hidden.` there

    error[R020]: no relation is called `missing`
     --> main.dl:6:11
      |
    6 | export r, missing, one.
      |           ^^^^^^^
      |
      = note: a relation is defined by rules of this file, exported by a used one, or one of the facts
      = help: write rules for it: `missing(…) :- ….`

    error[R020]: `one` is a relation of the facts
     --> main.dl:6:20
      |
    6 | export r, missing, one.
      |                    ^^^
      |
      = note: every file knows it
      = help: remove it here

    warning[R032]: a second `export r`
     --> main.dl:7:8
      |
    7 | export r.
      |        ^
      |
      = help: remove one of them

    7 errors, 1 warning
    "#);
}

#[test]
fn a_use_that_brings_nothing_is_told() {
    insta::assert_snapshot!(checked(&[
        ("main.dl", "use \"a.dl\"\nuse \"b.dl\"\nuse \"c.dl\"\nr(X) :- a(X).\noutput r.\nlost(X) :- r(X)."),
        ("a.dl", "a(1).\nunused(2).\nexport a."),
        ("b.dl", "b(1).\nexport b."),
        ("c.dl", "use \"d.dl\""),
        ("d.dl", "template t { order 1  match { e1 = Ac [j, k, m | i, v] } }"),
    ]), @r#"
    warning[R038]: this `use` brings nothing that is used
     --> main.dl:2:5
      |
    2 | use "b.dl"
      |     ^^^^^^
      |
      = note: the file has no template, and none of the relations that it exports is asked for here
      = help: remove it

    warning[R026]: nothing uses `lost`
     --> main.dl:6:1
      |
    6 | lost(X) :- r(X).
      | ^^^^
      |
      = note: a relation is used under `where`, by `output` and `export`, and by relations that are used
      = help: use it, remove it, or call it `_lost`

    2 warnings
    "#);
}

/// A template that takes the calls for which its file's relation `ok` holds.
fn template(name: &str, order: i8, activity: &str) -> Arc<str> {
    format!(
        "template {name} {{ order {order}  match {{ e1 = Ac [j, k, m | a, v] }}  where {{ ok(e1) }}  model {{ addActivity(E, e1) }} }}
ok(N) :- name(N, \"{activity}\").\n"
    )
    .into()
}

/// The templates ask the relations of their own file, though another file on the command line has one of the same name.
#[test]
fn templates_ask_the_relations_of_their_own_file() {
    let trace = "operation s run=1
s,1,1,Be | A,1
s,1,2,Ac | A,2 name=p
s,1,3,Ac | A,3 name=q
s,1,4,Ac | A,4 name=r
s,1,5,Ed | A,5
";
    let files = [(Arc::from("p.dl"), template("takes_p", -2, "p")), (Arc::from("q.dl"), template("takes_q", -1, "q"))];
    let rules = Rules::with_user_files(&files, &|_| None).unwrap_or_else(|Diagnostics(errors)| panic!("{errors:?}"));
    let reduction = reduce(trace, &rules, ReduceOptions::default());
    let mut rows: Vec<String> = reduction
        .matches
        .iter()
        .filter(|row| row.template.starts_with("takes") || &*row.template == "activity")
        .map(|row| format!("{} {}", row.node, row.template))
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, ["2 takes_p", "3 takes_q", "4 activity"]);
}
