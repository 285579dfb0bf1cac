//! The one style of rule files.

use std::sync::Arc;

use dyelog::datalog::syntax::{self, TokenKind, parse_file, print_items, tokens};
use proptest::prelude::*;

use crate::rule_texts;

fn formatted(text: &str) -> String {
    syntax::format(&Arc::from("test.dl"), text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// Comments without the white space at their ends, in order.
fn comments(text: &str) -> Vec<&str> {
    let comment = |kind| matches!(kind, TokenKind::Comment | TokenKind::Doc);
    let found = tokens(text).into_iter().filter(|token| comment(token.kind));
    found.map(|token| text[token.start as usize..token.end as usize].trim_end()).collect()
}

/// What the file says, without the places.
fn meaning(text: &str) -> String {
    let (items, errors) = parse_file(0, &Arc::from("test.dl"), text);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    rule_texts::without_spans(&items)
}

/// What must hold of every file.
fn assert_lawful(text: &str) {
    let once = formatted(text);
    assert_eq!(meaning(&once), meaning(text), "it says something else:\n{text}\n---\n{once}");
    assert_eq!(comments(&once), comments(text), "comments were lost:\n{text}\n---\n{once}");
    assert_eq!(formatted(&once), once, "it is not stable:\n{text}");
    assert!(once.lines().all(|line| line == line.trim_end()), "white space at the end of a line:\n{once}");
    assert!(!once.contains("\n\n\n"), "two empty lines:\n{once}");
}

#[test]
fn white_space_is_put_right_and_comments_stay() {
    let text = r#"

// About the file.


// More.
/// Doc.
template  t{ order -1 longest   // behind

   // before
   expect "x"
 match{ e1=Ac[j,k,m|a,v] e2 = Fk(q[1])[j,k , m + 1|  b,w2]{name:"x"} // behind a node
   // above a node
   e3 = Be // inside
    [j, q[1], 1 | b, w]
   repeat x in 1..n min 1 { f[x]=Be[j,q[x],1|t[x],y[x]]
   g[x] = Fk(q[ x + 1 ]) [j, q[x], mm[x] | t[x], z[x]] }
   last = _ [_, q[n+1], 1 | a, -1]
 // at the end
 }
 where{a!=b,!starts(other,e1),
   reach ( a,b ) , !blocked(a,_) , }
 model { S[0]:=newEntry(R,b) addRequest(E,S[0])
   for x in 1..n { addActivity(E, f[x]) addActivity(E, g[x])}


   addTrigger([j, q[n+1], 2|a,v+2 ],E)
 }
}
/// A rule.
reach(X,Z):-reach(X,Y),edge(Y,Z),
   n=count{edge(X,Y)},m=max(Y*2){edge(X,Y)},n+m > - 3,-X<4 , Y+1*2 = Y - Z.
p("a").
use"other.dl" // last
"#;
    let expected = r#"// About the file.

// More.
/// Doc.
template t {
  order -1
  longest  // behind

  // before
  expect "x"
  match {
    e1 = Ac       [j, k, m   | a, v ]
    e2 = Fk(q[1]) [j, k, m+1 | b, w2] { name: "x" }  // behind a node
    // above a node
    e3 = Be  // inside
        [j, q[1], 1 | b, w]
    repeat x in 1..n min 1 {
      f[x] = Be         [j, q[x], 1     | t[x], y[x]]
      g[x] = Fk(q[x+1]) [j, q[x], mm[x] | t[x], z[x]]
    }
    last = _ [_, q[n+1], 1 | a, -1]
    // at the end
  }
  where {
    a != b, !starts(other, e1),
    reach(a, b), !blocked(a, _)
  }
  model {
    S[0] := newEntry(R, b)  addRequest(E, S[0])
    for x in 1..n { addActivity(E, f[x])  addActivity(E, g[x]) }

    addTrigger([j, q[n+1], 2 | a, v+2], E)
  }
}

/// A rule.
reach(X, Z) :- reach(X, Y), edge(Y, Z),
  n = count { edge(X, Y) }, m = max (Y * 2) { edge(X, Y) }, n + m > -3, -X < 4, Y + 1 * 2 = Y - Z.
p("a").
use "other.dl"  // last
"#;
    assert_eq!(formatted(text), expected);
    assert_lawful(text);
}

#[test]
fn what_does_not_fit_on_a_line_is_broken_where_it_can_be() {
    let conditions = (0..30).map(|n| format!("relation{n}(a, b)")).collect::<Vec<_>>().join(", ");
    let statements = (0..9).map(|n| format!("addActivity(E, node{n})")).collect::<Vec<_>>().join(" ");
    let text = format!(
        "template t {{ where {{ {conditions} }} model {{ {statements} }} }}\nreach(X, Y) :- {}.\n",
        conditions.replace("a, b", "X, Y")
    );
    let once = formatted(&text);
    assert!(once.lines().all(|line| line.chars().count() <= 120), "{once}");
    assert!(once.lines().count() > 15, "{once}");
    assert_lawful(&text);
}

#[test]
fn short_blocks_may_stand_on_one_line() {
    let text = "template t {\n  match { e1 = Ed [j, k, m | a, v] }\n  where { a != b }\n  model {}\n}\n";
    assert_eq!(formatted(text), text);
    assert_eq!(formatted(""), "");
    assert_eq!(formatted("\u{feff} \r\n// only a comment\r\n"), "// only a comment\n");
    assert_eq!(formatted("template t{}"), "template t {}\n");
    assert_eq!(formatted("template t{ // nothing yet\n}"), "template t {  // nothing yet\n}\n");
}

#[test]
fn a_broken_file_has_no_style() {
    let errors = syntax::format(&Arc::from("test.dl"), "template t { order }").expect_err("a number is missing");
    assert_eq!(errors[0].code.0, "R005");
}

#[test]
fn the_shipped_files_are_in_the_one_style() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("rules"), root.join("examples")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("a folder entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "dl") {
                let text = std::fs::read_to_string(&path).expect("a rule file is text");
                assert_eq!(formatted(&text), text, "{}: run `dyelog rules fmt`", path.display());
                assert_lawful(&text);
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "only {seen} rule files were found");
}

/// A file as it says, with white space and comments between its tokens as the choices say.
fn littered(text: &str, choices: &[u8]) -> String {
    let mut out = String::new();
    for (number, token) in tokens(text).into_iter().enumerate() {
        let choice = choices[number % choices.len()];
        match choice {
            0..=99 => out.push(' '),
            100..=119 => out.push('\n'),
            120..=129 => out.push_str("\n\n\n  "),
            130..=139 => out.push_str(&format!(" // comment {number}  \n")),
            140..=149 => out.push_str(&format!("\n  // comment {number}\n\n")),
            150..=154 => out.push_str(&format!("\n\n/// doc {number}\t\r\n// more\n")),
            _ => out.push_str("  \t"),
        }
        let end = token.end as usize;
        out.push_str(&text[token.start as usize..end]);
        if token.kind == TokenKind::Doc {
            out.push('\n');
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_file_keeps_its_meaning_and_its_comments(
        items in rule_texts::items(),
        choices in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let text = littered(&print_items(&items), &choices);
        assert_lawful(&text);
        assert_lawful(&print_items(&items));
    }
}
