//! What an editor waits for: a rule file of 2,000 lines, checked as it is typed.
//!
//! `cargo bench --bench authoring`. The bar is 50 ms.

use std::sync::Arc;

use divan::{Bencher, black_box};
use dyelog::authoring::{self, language::Read};

fn main() {
    divan::main();
}

/// Lines of the file, at least.
const LINES: usize = 2000;

/// Templates that differ by the service that they are about, and rules that they ask.
fn text() -> Arc<str> {
    let mut text = String::new();
    let mut number = 0;
    while text.lines().count() < LINES {
        number += 1;
        text.push_str(&format!(
            "/// Messages of service {number}, answered as the last act.\ntemplate asks_{number} {{\n  order -{number}\n  match {{\n    \
             e1 = Fk(k2) [j, k,  m    | a, v   ] {{ op: \"service {number}\" }}\n    e2 = Be     [j, k2, 1    | b, w2  ]\n    \
             e3 = Fk(k3) [j, k2, m2   | b, w3  ]\n    e4 = Ed     [j, k2, m2+1 | b, w3+1]\n    e5 = Be     [j, k3, 1    | a, u   ]\n    \
             e6 = Ed     [j, k3, 2    | a, u+1 ]\n  }}\n  where {{ a != b, w3 > w2, u > v, !after_{number}(e1, e6) }}\n  model {{\n    \
             S := newEntry(A, b)\n    addRequest(E, S)\n    addTrigger([j, k2, 2 | b, w2+1], S)\n  }}\n}}\n\n\
             after_{number}(X, Y) :- next_in_thread(X, Y), op(X, \"other {number}\").\n\n"
        ));
    }
    text.into()
}

#[divan::bench]
fn check_2000_lines(bencher: Bencher<'_, '_>) {
    let file = [("typed.dl".into(), text())];
    let checked = authoring::check(&file, &|_| None);
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    bencher.bench_local(|| authoring::check(black_box(&file), &|_| None).findings.len());
}

#[divan::bench]
fn complete_in_2000_lines(bencher: Bencher<'_, '_>) {
    let (name, text) = ("typed.dl".into(), text());
    let at = text.rfind("addRequest").expect("it stands there") + 4;
    bencher.bench_local(|| Read::new(black_box(&name), &text, &|_| None).proposals(at).len());
}
