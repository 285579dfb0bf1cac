//! What the checker refuses because it can never hold, and that it refuses nothing that may.

use dyelog::datalog::check::check;
use dyelog::datalog::codes;
use dyelog::query::schema;
use dyelog::tlc::facts;
use proptest::prelude::*;

use crate::conditions::{errors, rules};
use crate::datalog::{Lists, program};

/// Whether a rule with that body is said never to hold. `n` has two whole numbers, `w` a whole number and any number.
fn is_refused(body: &str) -> bool {
    let facts = Lists::default().edges("n", []).numbers("w", &[]);
    let found = check(&program(&format!("r(x, y) :- n(x, y), {body}.")), &facts.schema);
    found.iter().any(|finding| finding.code == codes::NEVER)
}

#[test]
fn bodies_that_never_hold_are_told() {
    for body in [
        "x * 0 = 1",
        "x % 2 = 3",
        "x % 4 > 3",
        "x / 2 = 0.5",
        "x > 1.5, x < 1.9",
        "x > 1, x < 3, x != 2",
        "x = y, x != y",
        "2 * x = 2 * y + 1",
        "x > 3, z = x + 2, z < 5",
        "c = count { n(x, _) }, c < 0",
        "c = count { n(x, _) }, c * 2 < 0",
        "x = 2, y = 3, x * y > 6",
        "w(x, z), z > 1.5, z < 1.2",
    ] {
        assert!(is_refused(body), "{body}");
    }
    for body in [
        "x * 0 = 0",
        "x % 2 = 1",
        "x % 2 = 0 - 1",
        "x / 2 = 1",
        "x > 1.5, x < 2.1",
        "x > 1, x < 4, x != 2",
        "2 * x = 2 * y + 2",
        "w(x, z), z / 2 = 0.5",
        "w(x, z), z > 1.5, z < 1.9",
        "w(x, z), 2 * z = 2 * y + 1",
        "w(x, z), q = z / 2, q = 0.25",
        "x * 1000000007 > 9000000000000000000",
    ] {
        assert!(!is_refused(body), "{body}");
    }
}

/// Facts with one row for a value: two atoms about it speak of one row.
#[test]
fn one_row_cannot_be_two() {
    let refused = |rule: &str| {
        let found = check(&program(rule), schema::schema());
        let told = found.iter().find(|finding| finding.code == codes::NEVER);
        told.map(|finding| finding.notes.join(" "))
    };
    assert_eq!(
        refused("r(N) :- task(N, A, _), task(N, B, _), A != B.").as_deref(),
        Some("`task` has at most one row for `N`")
    );
    for rule in [
        "r(N) :- kind(N, \"Ac\"), kind(N, \"Be\").",
        "r(N) :- thread(N, K, M), thread(N, K, M + 1).",
        "r(X) :- next_in_thread(X, Y), next_in_thread(X, Z), Y != Z.",
        "r(S) :- span(S, \"a\", _), span(S, \"b\", _).",
        "r(S) :- duration(S, D), duration(S, E), D < E.",
    ] {
        assert!(refused(rule).is_some(), "{rule}");
    }
    for rule in [
        "r(N, M) :- task(N, A, _), task(M, B, _), A != B.",
        "r(F) :- joins(F, X), joins(F, Y), X != Y.",
        "r(S) :- attr(S, \"k\", V), attr(S, \"k\", W), V != W.",
        "r(X) :- edge(X, Y), edge(X, Z), Y != Z.",
    ] {
        assert!(refused(rule).is_none(), "{rule}");
    }
}

/// Kinds of nodes that go through relations of the file.
#[test]
fn slips_are_found_through_helper_relations() {
    let told = |text: &str| -> Vec<String> {
        let found = check(&program(text), facts::schema());
        found.into_iter().filter(|one| one.code == codes::TYPE).map(|one| one.message).collect()
    };
    let helper = "is(X, K) :- kind(X, K).\nof(K, X) :- is(X, K).\n";
    assert_eq!(told(&format!("{helper}r(X) :- is(X, \"AC\").")), ["\"AC\" is no value of column 2 of `is`"]);
    assert_eq!(told(&format!("{helper}r(X) :- of(K, X), K != \"Ak\".")), ["\"Ak\" is no value of column 1 of `of`"]);
    assert_eq!(told(&format!("{helper}r(X) :- is(X, \"Ac\").")), [""; 0]);
    // Rules of its own may have other values.
    let more = "is(X, K) :- kind(X, K).\nis(X, \"other\") :- node(X).\n";
    assert_eq!(told(&format!("{more}r(X) :- is(X, \"other\").")), [""; 0]);
    assert_eq!(told(&format!("{more}r(X) :- is(X, \"othr\").")).len(), 1);
    let open = "is(X, K) :- kind(X, K).\nis(X, S) :- name(X, S).\n";
    assert_eq!(told(&format!("{open}r(X) :- is(X, \"AC\").")), [""; 0]);
    let round = "is(X, K) :- kind(X, K).\nis(Y, K) :- is(X, K), edge(X, Y).\n";
    assert_eq!(told(&format!("{round}r(X) :- is(X, \"AC\").")).len(), 1);
}

#[test]
fn templates_that_can_never_match_are_refused() {
    let nodes = "e1 = Ac [j, k, m | a, v]  e2 = Ac [j, k, m+1 | b, w]";
    let refused = |conditions: &str| {
        let text = format!("template t {{ order 1 match {{ {nodes} }} where {{ {conditions} }} }}\nis(\"x\").\n");
        match rules(&text) {
            Ok(_) => false,
            Err(found) => {
                assert!(errors(&found).iter().all(|error| error.starts_with("R084")), "{conditions}: {found:?}");
                true
            }
        }
    };
    for conditions in [
        "v * 0 = 1",
        "v % 2 = 3",
        "v / 2 = 0.5",
        "v > 1.5, v < 1.9",
        "v < 0.5",
        "v = 2.5",
        "v * w < 0",
        "task(e1, c, _), is(c), a != c",
        "a != c, task(e1, c, _), is(c)",
        "task(e1, \"x\", _), a = \"y\"",
        "task(e1, \"x\", _), task(e1, \"y\", _)",
    ] {
        assert!(refused(conditions), "{conditions}");
    }
    for conditions in [
        "v * w = 6",
        "v % 2 = 1",
        "v > 1.5, v < 2.5",
        "v != 2.5, v != 2.25",
        // Instances of one task have one name.
        "task(e1, b, _), a != b",
        "task(e1, c, _), is(c), b != c",
        "task(e1, \"x\", _), b = \"y\"",
    ] {
        assert!(!refused(conditions), "{conditions}");
    }
}

/// Arithmetic over `x`, `y`, whole, and `z`, any number.
#[derive(Clone, Debug)]
enum Expression {
    Variable(usize),
    Number(i64),
    Half(i64),
    Of(Box<Expression>, char, Box<Expression>),
}

impl Expression {
    fn text(&self) -> String {
        match self {
            Self::Variable(place) => ["x", "y", "z"][*place].to_owned(),
            Self::Number(number) if *number < 0 => format!("(0 - {})", -number),
            Self::Number(number) => number.to_string(),
            Self::Half(number) if *number < 0 => format!("(0 - {:?})", *number as f64 / -2.0),
            Self::Half(number) => format!("{:?}", *number as f64 / 2.0),
            Self::Of(left, operator, right) => format!("({} {operator} {})", left.text(), right.text()),
        }
    }

    /// Whether it can only be whole, so that `/` goes towards zero.
    fn is_whole(&self) -> bool {
        match self {
            Self::Variable(place) => *place < 2,
            Self::Number(_) => true,
            Self::Half(_) => false,
            Self::Of(left, _, right) => left.is_whole() && right.is_whole(),
        }
    }

    fn value(&self, values: [f64; 3]) -> Option<f64> {
        Some(match self {
            Self::Variable(place) => values[*place],
            Self::Number(number) => *number as f64,
            Self::Half(number) => *number as f64 / 2.0,
            Self::Of(left, operator, right) => {
                let (one, other) = (left.value(values)?, right.value(values)?);
                match operator {
                    '+' => one + other,
                    '-' => one - other,
                    '*' => one * other,
                    _ if other == 0.0 => return None,
                    '/' if self.is_whole() => (one / other).trunc(),
                    '/' => one / other,
                    _ => one % other,
                }
            }
        })
    }
}

fn expression() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        4 => (0..3usize).prop_map(Expression::Variable),
        2 => (-6..7i64).prop_map(Expression::Number),
        1 => (-9..10i64).prop_map(Expression::Half),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let operator = prop::sample::select(vec!['+', '-', '*', '/', '%']);
        (inner.clone(), operator, inner)
            .prop_map(|(left, operator, right)| Expression::Of(Box::new(left), operator, Box::new(right)))
    })
}

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

proptest! {
    /// What is refused holds for no numbers, by trying them.
    #[test]
    fn what_is_refused_never_holds(
        comparisons in prop::collection::vec((expression(), 0..6usize, expression()), 1..5),
    ) {
        let texts: Vec<String> = comparisons
            .iter()
            .map(|(left, comparison, right)| format!("{} {} {}", left.text(), COMPARISONS[*comparison], right.text()))
            .collect();
        let body = format!("w(x, z), {}", texts.join(", "));
        if !is_refused(&body) {
            return Ok(());
        }
        let holds = |values: [f64; 3]| {
            comparisons.iter().all(|(left, comparison, right)| {
                let (Some(left), Some(right)) = (left.value(values), right.value(values)) else { return false };
                [left == right, left != right, left < right, left <= right, left > right, left >= right][*comparison]
            })
        };
        for x in -12..13 {
            for y in -12..13 {
                for z in -24..25 {
                    let values = [f64::from(x), f64::from(y), f64::from(z) / 2.0];
                    prop_assert!(!holds(values), "{} holds for {:?}", body, values);
                }
            }
        }
    }
}
