//! What loading rule files takes: `cargo bench -p dyelog-templates --bench loading`.

use divan::{Bencher, black_box};
use dyelog_datalog::syntax::load;
use dyelog_templates::Rules;
use dyelog_templates::rules::shipped_text;

fn main() {
    divan::main();
}

/// From text to plans: what every run of the program pays first.
#[divan::bench]
fn loading_the_nine_templates(bencher: Bencher) {
    let text = shipped_text("tlc.dl").expect("it ships");
    bencher.bench(|| {
        let program = load("tlc.dl", black_box(&text), &|_| None).expect("the shipped file loads");
        Rules::of_program(program).expect("it is sound")
    });
}

/// The same of all files that are loaded by default.
#[divan::bench]
fn loading_the_shipped_rules(bencher: Bencher) {
    bencher.bench(Rules::shipped);
}
