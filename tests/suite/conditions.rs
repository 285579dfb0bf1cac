//! Conditions of templates mean what they say: as the same literals in a rule, asked with the same values.

mod choices;
mod laws;
mod naive;
mod sequences;

use std::sync::Arc;

use dyelog::datalog::syntax;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Severity};
use dyelog::tlc::Rules;
use dyelog::tlc::counters::TaskCounters;
use dyelog::tlc::explain::attempt::Trial;
use dyelog::tlc::matcher::{Match, Matcher, Starting, Symbols};
use dyelog::tlc::plan::MAX_SEQUENCES;
use dyelog::tlc::recognise::with_relations;
use dyelog::tlc::visits::Visits;
use dyelog::trace::{NodeId, Operation, ReadOptions, Toeg, TraceNames, read};

/// What is wrong, in the words of the checker.
pub fn errors(found: &[Diagnostic]) -> Vec<String> {
    let errors = found.iter().filter(|one| one.severity == Severity::Error);
    errors.map(|one| format!("{}: {}", one.code, one.message)).collect()
}

/// Where a template fits, all nodes being free: the glue node and how many rounds there are.
pub type Fits = Vec<(NodeId, u32)>;

/// The rules of a text alone, or what is wrong with it.
pub fn rules(text: &str) -> Result<Rules, Vec<Diagnostic>> {
    let program = syntax::load("case.dl", text, &|_| None).map_err(|Diagnostics(found)| found)?;
    Rules::of_program(program).map_err(|Diagnostics(found)| found)
}

/// Where the first template of some rules fits.
pub fn fits(rules: &Rules, names: &TraceNames, toeg: &Toeg) -> Fits {
    walks(rules, names, toeg).into_iter().map(|(node, [rounds, ..])| (node, rounds)).collect()
}

/// Where the first template of some rules fits, and how many rounds each sequence has, by the matcher and by the evaluator that explains:
/// they must agree.
pub fn walks(rules: &Rules, names: &TraceNames, toeg: &Toeg) -> Vec<(NodeId, [u32; MAX_SEQUENCES])> {
    walks_of(0, rules, names, toeg)
}

/// The same of the plan of that number: templates with alternatives have several.
pub fn walks_of(plan: usize, rules: &Rules, names: &TraceNames, toeg: &Toeg) -> Vec<(NodeId, [u32; MAX_SEQUENCES])> {
    let symbols = Symbols::of(rules.code(), names);
    with_relations(rules, names, toeg, |relations| {
        let budget = u64::MAX.into();
        let (program, visits) = (rules.code(), Visits::default());
        let matcher = Matcher {
            program,
            toeg,
            names,
            symbols: &symbols,
            relations,
            budget,
            visits,
            counters: TaskCounters::default(),
            starting: Starting::default(),
        };
        let trial = Trial::new(rules.plans(), toeg, names, relations, u64::MAX);
        let mut found = Match::default();
        let mut all = Vec::new();
        for node in 0..toeg.len() as NodeId {
            let fits = matcher.try_at(plan, node, None, &mut found);
            let fits = fits.then(|| (found.sequences, found.rounds.clone()));
            let attempt = trial.attempt(plan, node, &|_| false);
            let explained = attempt.failure.is_none().then_some((attempt.sequences, attempt.rounds));
            assert_eq!(fits, explained, "the two evaluators at node {node}");
            all.extend(fits.map(|(sequences, _)| (node, sequences.map(|walked| walked.count))));
        }
        all
    })
    .expect("the rules can be evaluated")
}

/// The operation of a text.
pub fn operation(text: &str) -> (TraceNames, Toeg) {
    struct Keep(Option<Operation>);
    impl dyelog::trace::Sink for Keep {
        fn operation(&mut self, _: &TraceNames, operation: Operation) -> std::ops::ControlFlow<()> {
            self.0 = Some(operation);
            std::ops::ControlFlow::Continue(())
        }
    }
    let (mut names, mut keep) = (TraceNames::new(), Keep(None));
    read("case.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut keep).expect("it can be read");
    let toeg = Toeg::build(keep.0.expect("it has an operation")).expect("it is sound");
    (names, toeg)
}

/// A calls B again and again, which passes each call on along a chain: C and D, C alone, D and C and C, C twice. The last of the
/// chain answers A.
fn trace() -> String {
    let (mut text, mut counters) = ("operation s run=1\n".to_owned(), std::collections::BTreeMap::<char, u32>::new());
    let mut thread = 1;
    let mut node = 0;
    let mut add = |thread: u32, kind: &str, task: char, name: &str| {
        node = if kind == "Be" { 1 } else { node + 1 };
        let counter = counters.entry(task).and_modify(|counter| *counter += 1).or_insert(1);
        let name = if name.is_empty() { String::new() } else { format!(" name={name}") };
        text.push_str(&format!("s,{thread},{node},{kind} | {task},{counter}{name}\n"));
    };
    add(1, "Be", 'A', "open");
    for (number, chain) in ["CD", "C", "DCC", "CC"].into_iter().enumerate() {
        add(thread, "Ac", 'A', "ask");
        add(thread, "Ac", 'B', if number == 1 { "ask" } else { "accept" });
        add(thread, &format!("Fk(s,{})", thread + 1), 'B', "");
        add(thread, "Ed", 'B', "");
        for task in chain.chars() {
            thread += 1;
            add(thread, "Be", task, if task == 'C' { "bank" } else { "shop" });
            add(thread, "Ac", task, if number == 2 { "work" } else { "look" });
            add(thread, &format!("Fk(s,{})", thread + 1), task, if number % 2 == 0 { "pass" } else { "" });
            add(thread, "Ed", task, "");
        }
        thread += 1;
        add(thread, "Be", 'A', "told");
        add(thread, "Ac", 'A', "work");
    }
    add(thread, "Ed", 'A', "");
    text
}

const PAIR: &str = "e1 = _ [j, k, m | a, v]  e2 = _ [j, k, m+1 | b, w]";
const ONE: &str = "e1 = _ [j, k, m | a, v]";
/// Walked backward: where the answer arrives is known.
const HOPS: &str = "e1 = Ac [j, k, m | a, v]  e2 = Fk(q[1]) [j, k, m+2 | b, w]
    repeat x in 1..n min 1 {
      f[x] = Be         [j, q[x], 1 | t[x], y[x]]
      g[x] = Fk(q[x+1]) [j, q[x], 3 | t[x], z[x]]
    }
    last = Be [j, q[n+1], 1 | a, v+1]";
/// Walked forward, from the node before it.
const STEPS: &str = "e1 = _ [j, k, m[1]-1 | a, v]
    repeat x in 1..n min 1 { g[x] = _ [j, k, m[x] | t[x], y[x]] }
    last = _ [j, k, m[n+1] | c, u]";
/// Walked backward, from the node after it.
const BACK: &str = "e1 = _ [j, k, m[n+1] | a, v]
    repeat x in 1..n min 1 { g[x] = _ [j, k, m[x] | t[x], y[x]] }
    last = _ [j, k, m[1]-1 | c, u]";

fn template(nodes: &str, conditions: &str) -> String {
    format!("template t {{ order 1 match {{ {nodes} }} where {{ {conditions} }} }}\n")
}

const HELP: &str = "
is_bank(\"C\"). is_bank(\"D\"). good(X) :- task(X, \"C\", _). good(X) :- task(X, \"A\", _).
p(2). p(3). p(4). step(X, Y) :- next_in_thread(X, Y). work(X) :- name(X, \"work\"). far(2, 4). kept(\"no such name\").
reach(X, Y) :- edge(X, Y). reach(X, Z) :- reach(X, Y), edge(Y, Z).
";

/// The nodes, the conditions, the same by a rule, the rule, and how many places there are.
#[rustfmt::skip]
const PAIRS: &[(&str, &str, &str, &str, usize)] = &[
    // What is open joins.
    (ONE, "forks(e1, Y), kind(Y, \"Be\")", "both(e1)", "both(X) :- forks(X, Y), kind(Y, \"Be\").", 12),
    (ONE, "forks(e1, Y), task(Y, \"C\", _)", "both(e1)", "both(X) :- forks(X, Y), task(Y, \"C\", _).", 6),
    (ONE, "forks(e1, Y), kind(Y, \"Ac\")", "both(e1)", "both(X) :- forks(X, Y), kind(Y, \"Ac\").", 0),
    (PAIR, "name(e1, s), name(e2, s)", "alike(e1, e2)", "alike(X, Y) :- name(X, S), name(Y, S).", 1),
    (ONE, "next_in_thread(Y, Y)", "loops(e1)", "loops(X) :- node(X), next_in_thread(Y, Y).", 0),
    (ONE, "next_in_thread(e1, e1)", "loops(e1)", "loops(X) :- next_in_thread(X, X).", 0),
    (ONE, "reach(e1, Y), name(Y, \"shop\")", "leads(e1)", "leads(X) :- reach(X, Y), name(Y, \"shop\").", 27),
    (ONE, "next_in_task(e1, Y), !work(Y)", "next(e1)", "next(X) :- next_in_task(X, Y), !work(Y).", 47),
    (ONE, "task(e1, _, V), V > 3", "late(e1)", "late(X) :- task(X, _, V), V > 3.", 46),
    (ONE, "task(Y, a, V), V = v+1, work(Y)", "after(e1)", "after(X) :- task(X, I, N), task(Y, I, V), V = N+1, work(Y).", 7),
    (ONE, "task(Y, I, _), I != a, far(v, V), V > 3, name(Y, \"shop\")", "apart(e1)",
        "apart(X) :- task(X, T, N), task(Y, I, _), I != T, far(N, V), V > 3, name(Y, \"shop\").", 3),
    // A negated literal is none at all.
    (ONE, "!forks(e1, _), work(e1)", "quiet(e1)", "quiet(X) :- work(X), !forks(X, _).", 7),
    (ONE, "!is_bank(a)", "other(e1)", "other(X) :- task(X, I, _), !is_bank(I).", 26),
    (ONE, "is_bank(a)", "bank(e1)", "bank(X) :- task(X, I, _), is_bank(I).", 32),
    // Arithmetic on what is bound.
    (ONE, "p(v*2)", "twice(e1)", "twice(X) :- task(X, _, V), p(V*2).", 8),
    (PAIR, "p(v-w)", "less(e1, e2)", "less(X, Y) :- task(X, _, V), task(Y, _, W), p(V-W).", 0),
    (PAIR, "p((v+w)/2)", "mean(e1, e2)", "mean(X, Y) :- task(X, _, V), task(Y, _, W), p((V+W)/2).", 9),
    (ONE, "!p(v*2)", "odd(e1)", "odd(X) :- task(X, _, V), !p(V*2).", 50),
    (ONE, "v*2305843009213693951 > 0", "big(e1)", "big(X) :- task(X, _, V), V*2305843009213693951 > 0.", 4),
    // A string that the trace does not know.
    (ONE, "kept(\"no such name\")", "keeps(e1)", "keeps(X) :- node(X), kept(\"no such name\").", 58),
    (ONE, "!kept(\"no such name\")", "keeps(e1)", "keeps(X) :- node(X), !kept(\"no such name\").", 0),
    // Threads that nothing ties to the nodes are sought.
    (ONE, "begins(K, a, 3), K > 0", "begun(e1)", "begun(X) :- task(X, I, _), begins(K, I, 3), K > 0.", 14),
    // Every round, by both spellings, in each direction.
    (HOPS, "good(g[x])", "every x { fine(g[x]) }", "fine(X) :- good(X).", 2),
    (HOPS, "every x { good(g[x]) }", "fine(g[x])", "fine(X) :- good(X).", 2),
    (HOPS, "some x { good(g[x]) }", "some x { fine(g[x]) }", "fine(X) :- good(X).", 4),
    (HOPS, "some x { is_bank(t[x]), name(f[x], \"shop\") }", "some x { fine(t[x], f[x]) }",
        "fine(I, X) :- is_bank(I), name(X, \"shop\").", 2),
    (HOPS, "name(f[1], \"bank\")", "fine(f[1])", "fine(X) :- name(X, \"bank\").", 3),
    (HOPS, "name(f[n], \"shop\")", "fine(f[n])", "fine(X) :- name(X, \"shop\").", 1),
    (HOPS, "t[x] = t[x+1]", "every x { alike(g[x], g[x+1]) }", "alike(X, Y) :- task(X, I, _), task(Y, I, _).", 2),
    (STEPS, "m[x+1] == m[x]+1, n = 2, y[x+1] == y[x]+1", "m[x+1] == m[x]+1, n = 2, every x { after(g[x], g[x+1]) }",
        "after(X, Y) :- task(X, _, V), task(Y, _, W), W = V+1.", 15),
    (HOPS, "t[x] != t[x+1]", "every x { apart(g[x], g[x+1]) }", "apart(X, Y) :- task(X, I, _), task(Y, J, _), I != J.", 2),
    (HOPS, "every x { forks(g[x], Y), name(Y, _) }", "begun(g[x])", "begun(X) :- forks(X, Y), name(Y, _).", 4),
    (HOPS, "n >= 2", "many(n)", "many(N) :- N = 2. many(N) :- N = 3.", 3),
    (HOPS, "y[1] == v-1", "one_less(f[1], v)", "one_less(X, V) :- task(X, _, Y), V = Y+1.", 1),
    (STEPS, "m[x+1] == m[x]+1, work(g[x])", "m[x+1] == m[x]+1, every x { job(g[x]) }", "job(X) :- name(X, \"work\").", 7),
    (STEPS, "m[x+1] == m[x]+1, some x { work(g[x]) }", "m[x+1] == m[x]+1, some x { job(g[x]) }", "job(X) :- name(X, \"work\").", 7),
    (STEPS, "m[x+1] == m[x]+1, some x { step(g[x], g[x+1]), work(g[x]) }",
        "m[x+1] == m[x]+1, some x { job(g[x], g[x+1]) }", "job(X, Y) :- step(X, Y), work(X).", 6),
    (STEPS, "m[x+1] == m[x]+1, t[x] != t[x+1], n = 2", "m[x+1] == m[x]+1, apart(g[x], g[x+1]), two(n)",
        "apart(X, Y) :- task(X, I, _), task(Y, J, _), I != J. two(2).", 4),
    (STEPS, "m[x+1] == m[x]+1, next_in_task(g[1], last)", "m[x+1] == m[x]+1, then(g[1], last)", "then(X, Y) :- next_in_task(X, Y).", 28),
    (STEPS, "m[x+1] == m[x]+1, some x { reach(g[x], last), u > y[x] }", "m[x+1] == m[x]+1, some x { late(g[x], last, u) }",
        "late(X, Y, U) :- reach(X, Y), task(X, _, V), task(_, _, U), U > V.", 32),
    (BACK, "m[x+1] == m[x]+1, work(g[1]), !work(g[n])", "m[x+1] == m[x]+1, job(g[1]), !job(g[n])", "job(X) :- name(X, \"work\").", 12),
    (BACK, "m[x+1] == m[x]+1, every x { c != t[x] }", "m[x+1] == m[x]+1, apart(c, t[x])", "apart(I, J) :- task(_, I, _), task(_, J, _), I != J.", 8),
];

#[test]
fn conditions_mean_what_the_same_rule_does() {
    let (names, toeg) = operation(&trace());
    let mut wrong = Vec::new();
    for (nodes, inline, explicit, rule, count) in PAIRS {
        let of = |conditions: &str| {
            let text = format!("{}{HELP}{rule}", template(nodes, conditions));
            rules(&text).map(|rules| fits(&rules, &names, &toeg)).map_err(|found| errors(&found))
        };
        let (inline_fits, explicit_fits) = (of(inline), of(explicit));
        if inline_fits != explicit_fits || inline_fits.as_ref().map(Vec::len) != Ok(*count) {
            let both = [inline_fits, explicit_fits].map(|fits| fits.map(|fits| (fits.len(), fits)));
            wrong.push(format!("{inline}: {:?}\n  {explicit}: {:?}\n  expected {count}", both[0], both[1]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The nodes, the conditions, and the codes of what is wrong.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &[&str])] = &[
    // A name that nothing binds.
    (PAIR, "is_bank(bb)", &["R058"]),
    (PAIR, "is_bank(_bb)", &["R058"]),
    (PAIR, "begins(k, bb, _)", &["R058"]),
    (PAIR, "is_bank(j)", &["R058"]),
    (PAIR, "p(v + ww)", &["R058"]),
    (PAIR, "v > ww", &["R058"]),
    // What has no value.
    (PAIR, "_ > 3", &["R023"]),
    (PAIR, "p(_ + 1)", &["R023"]),
    (PAIR, "v = _", &["R023"]),
    (PAIR, "!forks(Y, Z), !forks(Z, Y)", &["R023", "R023"]),
    (PAIR, "Y > Z, Z > Y", &["R023", "R023", "R084"]),
    (PAIR, "p(Y), Y > 4611686018427387904", &["R004"]),
    // Types.
    (PAIR, "a < b", &["R022", "R022"]),
    (PAIR, "\"x\" < a", &["R022", "R022"]),
    (PAIR, "a = 3", &["R022"]),
    (PAIR, "e1 > e2", &["R022", "R022"]),
    // Rounds.
    (HOPS, "good(g)", &["R057"]),
    (HOPS, "good(e1[x])", &["R057"]),
    (HOPS, "is_bank(a[x])", &["R058"]),
    (HOPS, "good(g[0])", &["R057"]),
    (HOPS, "good(g[n+2])", &["R057"]),
    (HOPS, "good(g[n+1])", &["R058"]),
    (HOPS, "good(h[x])", &["R058"]),
    (HOPS, "x > 1", &["R084"]),
    (HOPS, "x = 1, y[n] > 2, n > 1", &["R084"]),
    (HOPS, "some x { x < 1 }", &["R084"]),
    (HOPS, "!starts(other, x)", &["R058", "R074"]),
    (HOPS, "every y { good(g[x]) }", &["R057"]),
    (HOPS, "every x { good(e1) }", &["R057"]),
    (HOPS, "every x { }", &["R005"]),
    (HOPS, "every x { some x { good(g[x]) } }", &["R011"]),
    (HOPS, "every x { forks(g[x], Y) }, kind(Y, \"Be\")", &["R058"]),
    (HOPS, "some x { forks(g[x], Y) }, some x { kind(Y, \"Be\"), good(f[x]) }", &["R058"]),
    (ONE, "every x { good(e1) }", &["R057"]),
    (ONE, "good(e1[1])", &["R057"]),
    // Templates that cannot start.
    (ONE, "!starts(nosuch, e1)", &["R074"]),
    (PAIR, "!starts(nosuch, e2)", &["R074"]),
    (PAIR, "!starts(t, e2)", &["R074"]),
    (PAIR, "!starts(t, e3)", &["R058", "R074"]),
    // What can never hold.
    (PAIR, "v > w, v < w", &["R084"]),
    (PAIR, "v = v+1", &["R084"]),
    (PAIR, "v != v", &["R084"]),
    (PAIR, "a = b, a != b", &["R084"]),
    (PAIR, "\"x\" = \"y\"", &["R084"]),
    (PAIR, "e1 = e2", &["R084"]),
    (HOPS, "g[x] = e1", &["R084"]),
    (PAIR, "a = \"x\", a = \"y\"", &["R084"]),
    (PAIR, "v < 1", &["R084"]),
    (PAIR, "v > m+1, m > w, w = v", &["R084"]),
    (PAIR, "2 > 3", &["R084"]),
    (PAIR, "p(v), !p(v)", &["R084"]),
    (HOPS, "n < 1", &["R084"]),
    (HOPS, "every x { y[x] > z[x], z[x] > y[x] }", &["R084"]),
    (HOPS, "some x { y[x] > z[x], z[x] > y[x] }", &["R084"]),
    (PAIR, "v/0 = 1", &["R084"]),
    (PAIR, "p(v % (1 - 1))", &["R084"]),
    (PAIR, "!p(v/0)", &["R084"]),
    (PAIR, "v < 1e308 * 10", &["R084"]),
    (PAIR, "w > v, zz == w+1, v > zz", &["R084"]),
    (PAIR, "v > zz, zz == w+1, w > v", &["R084"]),
    (PAIR, "p(zz), v > zz, zz > w, v < w+1", &["R084"]),
    (PAIR, "p(zz), zz > 3, zz < 3", &["R084"]),
    (PAIR, "v - w > 2, w > v", &["R084"]),
    (PAIR, "v + 1 - w = 0, w < v", &["R084"]),
    (PAIR, "name(e1, s), s = \"x\", s = \"y\"", &["R084"]),
    (HOPS, "q[x] = q[x+1]", &["R084"]),
    (HOPS, "z[x] = y[x]", &["R084"]),
    (PAIR, "kind(e1, \"Be\"), kind(e1, \"Ac\")", &["R084"]),
    (PAIR, "v*2 = 3", &["R084"]),
    (PAIR, "v*2 = w*2 + 1", &["R084"]),
    (PAIR, "v + v = 3", &["R084"]),
    (PAIR, "name(e1, \"a\"), name(e1, \"b\")", &["R084"]),
    (PAIR, "name(e1, s), name(e2, z), s = z, s = \"a\", z = \"b\"", &["R084"]),
    (ONE, "task(e1, b, _), a != b", &["R084"]),
    (ONE, "kind(e1, X), X = \"Ac\", X = \"Be\"", &["R084"]),
    (HOPS, "kind(g[x], X), X = \"Be\"", &["R084"]),
    (PAIR, "next_in_thread(e1, X), X != e2", &["R084"]),
    (PAIR, "!edge(e1, _), next_in_thread(e1, X), edge(e1, X)", &["R084"]),
    (PAIR, "!task(e1, _, _)", &["R084"]),
    (HOPS, "y[1] > 3, every x { y[x] < 2 }", &["R084"]),
    (HOPS, "y[n] > 3, y[x] < 2", &["R084"]),
    (HOPS, "some x { y[x]*2 = 3 }", &["R084"]),
    (PAIR, "p(zz), zz > v, zz < v+1", &["R084"]),
    (HOPS, "kind(g[x], \"Ac\")", &["R084"]),
    (HOPS, "!kind(f[x], \"Be\")", &["R084"]),
    (PAIR, "!node(e2)", &["R084"]),
    (PAIR, "thread(e1, _, M), M > m", &["R084"]),
    (PAIR, "task(e1, _, v+1)", &["R084"]),
    // What is no value of the column.
    (PAIR, "kind(e1, \"Fork\")", &["R022"]),
    (PAIR, "!kind(e1, \"fk\")", &["R022"]),
    (PAIR, "kind(e1, S), S != \"Fork\"", &["R022"]),
    (HOPS, "every x { kind(g[x], \"Begin\") }", &["R022"]),
    // No node.
    (PAIR, "!starts(other, v)", &["R022", "R058", "R074"]),
    (HOPS, "!starts(other, g)", &["R057", "R074"]),
    (HOPS, "!starts(other, e1[1])", &["R057", "R074"]),
    (HOPS, "!starts(other, g[x]+1)", &["R011"]),
];

#[test]
fn what_a_condition_cannot_mean_is_refused() {
    let mut wrong = Vec::new();
    for (nodes, conditions, expected) in REFUSED {
        let text = format!("{}{HELP}", template(nodes, conditions));
        let found = rules(&text).err().unwrap_or_default();
        let errors: Vec<&str> =
            found.iter().filter(|one| one.severity == Severity::Error).map(|one| one.code.0).collect();
        if errors != *expected {
            wrong.push(format!("{conditions}: {errors:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What numbers with fractions allow is not refused, and neither is what may be another value.
#[test]
fn what_may_hold_is_not_refused() {
    for (nodes, conditions) in [
        (PAIR, "half(zz), zz > v, zz < v+1"),
        (PAIR, "half(zz), v > zz, zz > w, v < w+3"),
        (PAIR, "task(e1, b, _), a != b"),
        (PAIR, "task(e1, c, _), task(e2, c, _), a != b"),
        (PAIR, "begins(_, I, 1), I = a, I != b, task(e2, a, _)"),
        (HOPS, "y[1] > 3, y[n] < 2"),
        (HOPS, "some x { y[x] > 3 }, some x { y[x] < 2 }"),
        (PAIR, "p(v/1), v % 2 = 0"),
        (PAIR, "name(e1, s), s = a"),
        (PAIR, "v - w > 2, v > w"),
        (PAIR, "v*2 > w, v < w"),
        (PAIR, "kind(e1, \"Fk\"), kind(e2, S), S != \"Ed\""),
        (HOPS, "t[x] = t[x+1], y[x] < z[x]"),
    ] {
        let text = format!("{}{HELP}half(1.5).", template(nodes, conditions));
        assert!(rules(&text).is_ok(), "{conditions}: {:?}", rules(&text).err().map(|found| errors(&found)));
    }
}

/// Comparisons that hold whatever matches are warned of, and no others.
#[test]
fn what_always_holds_is_told() {
    let warned = |nodes: &str, condition: &str| {
        let text = format!("{}{HELP}", template(nodes, condition));
        let rules = rules(&text).unwrap_or_else(|found| panic!("{condition}: {:?}", errors(&found)));
        rules.warnings().iter().filter(|warning| warning.code.0 == "R039").count()
    };
    for (nodes, condition) in [
        (PAIR, "v >= 1"),
        (PAIR, "a = a"),
        (PAIR, "e1 != e2"),
        (PAIR, "v + 1 > v - 1"),
        (PAIR, "w > 0 - 5"),
        (HOPS, "n >= 1"),
        (HOPS, "every x { z[x] != y[x] }"),
        (HOPS, "q[x] != q[x+1]"),
    ] {
        assert_eq!(warned(nodes, condition), 1, "{condition}");
    }
    for (nodes, condition) in [
        (PAIR, "v > 1"),
        (PAIR, "v != w"),
        (PAIR, "a != b"),
        (HOPS, "n > 1"),
        (HOPS, "z[x] > y[x]"),
        (HOPS, "t[x] != a"),
    ] {
        assert_eq!(warned(nodes, condition), 0, "{condition}");
    }
}

/// A node of a round may be asked whether a template starts there.
#[test]
fn starts_asks_of_the_nodes_of_rounds() {
    let (names, toeg) = operation(&trace());
    let other = "template at_work { order 2 match { e1 = _ [j, k, m | a, v] { name: \"work\" } } where { v > 0 } }";
    for nodes in [STEPS, BACK] {
        for condition in [
            "?(g[x])",
            "every x { ?(g[x]) }",
            "some x { ?(g[x]) }",
            "?(g[1])",
            "?(g[n])",
            "every x { ?(g[x+1]) }",
            "?(e1)",
        ] {
            let of = |asked: &str| {
                let condition = format!("m[x+1] == m[x]+1, n = 2, {}", condition.replace("?(", asked));
                let text = format!("{}{other}\n{HELP}", template(nodes, &condition));
                let rules = rules(&text).unwrap_or_else(|found| panic!("{condition}: {:?}", errors(&found)));
                fits(&rules, &names, &toeg)
            };
            let (starts, work) = (of("!starts(at_work, "), of("!work("));
            assert_eq!(starts, work, "{condition}");
            assert!((1..56).contains(&starts.len()), "{condition}: {}", starts.len());
        }
    }
}

/// Templates may ask for each other up to a depth, and each is asked once at a node, however many ask.
#[test]
fn chains_of_starts_are_limited() {
    let chain = |length: usize| {
        let one = |number: usize| {
            let conditions = if number == length {
                "v > 1".to_owned()
            } else {
                format!("!starts(t{0}, e1), !starts(t{0}, e2)", number + 1)
            };
            template(PAIR, &conditions).replace("template t ", &format!("template t{number} "))
        };
        rules(&(0..=length).map(one).collect::<String>())
    };
    let (names, toeg) = operation(&trace());
    assert!(!fits(&chain(64).expect("it is not too deep"), &names, &toeg).is_empty());
    assert_eq!(chain(65).err().map(|found| errors(&found).len()), Some(1));
    assert_eq!(chain(20_000).err().map(|found| errors(&found).len()), Some(1));
}

/// An attribute of a pattern is one that the node has: what `name(e1, x)` says.
#[test]
fn attributes_are_those_that_nodes_have() {
    let (names, toeg) = operation(&trace());
    let count = |nodes: &str, conditions: &str| {
        let text = format!("{}{HELP}", template(nodes, conditions));
        let rules = rules(&text).unwrap_or_else(|found| panic!("{:?}", errors(&found)));
        fits(&rules, &names, &toeg).len()
    };
    let named = count(ONE, "name(e1, _)");
    assert!(named < count(ONE, ""));
    assert_eq!(count(&format!("{ONE} {{ name: x }}"), ""), named);
    assert_eq!(count(&format!("{ONE} {{ name: _ }}"), ""), named);
    assert_eq!(count(&format!("{ONE} {{ name: x, op: y }}"), ""), 0);
    let pair = PAIR.replace("a, v]", "a, v] { name: s }").replace("b, w]", "b, w] { name: s }");
    assert_eq!(count(&pair, ""), count(PAIR, "name(e1, s), name(e2, s)"));
    let steps = STEPS.replace("y[x]]", "y[x]] { name: s[x] }");
    let linked = "m[x+1] == m[x]+1, n = 2";
    assert_eq!(count(&steps, linked), count(STEPS, &format!("{linked}, every x {{ name(g[x], _) }}")));
}

/// A variable without an index that a round is the first to bind is the same in all of them.
#[test]
fn a_variable_without_an_index_is_the_same_in_all_rounds() {
    let (names, toeg) = operation(&trace());
    for (nodes, count) in [(HOPS, 4), (&HOPS.replace("t[x]", "s"), 2)] {
        let rules = rules(&template(nodes, "")).expect("it loads");
        assert_eq!(fits(&rules, &names, &toeg).len(), count, "{nodes}");
    }
}

/// What a node outside the sequence says of its first or last round, that round must have, whichever way it is walked.
#[test]
fn the_ends_of_a_sequence_are_what_is_said_of_them() {
    let (names, toeg) = operation(&trace());
    let count = |nodes: &str, conditions: &str| {
        let rules = rules(&template(nodes, conditions)).unwrap_or_else(|found| panic!("{:?}", errors(&found)));
        fits(&rules, &names, &toeg).len()
    };
    // From the fork to the thread on which A goes on: all of each chain, never a part of it.
    assert_eq!(count(HOPS, "n = 3"), 1);
    assert_eq!(count(HOPS, "n = 1"), 1);
    // The task of the last round is that of the node after it.
    for nodes in [STEPS, BACK] {
        let linked = "m[x+1] == m[x]+1, n = 2";
        let glue = nodes.replacen("| a, v", "| t[n], v", 1);
        assert_eq!(count(&glue, &format!("{linked}, v > 0")), count(nodes, &format!("{linked}, a = t[n]")));
        let last = nodes.replacen("| c, u", "| t[1], u", 1);
        assert_eq!(count(&last, linked), count(nodes, &format!("{linked}, c = t[1]")));
    }
}

/// What conditions become is nobody's relation: it shows in no list, and errors speak of the text.
#[test]
fn what_is_asked_together_is_no_relation_of_the_file() {
    let text = format!("{}{HELP}", template(ONE, "forks(e1, Y), kind(Y, \"Be\")"));
    let rules = rules(&text).expect("it loads");
    assert!(rules.program().rules.iter().all(|rule| !rule.head.relation.value.contains("template")));
    let plan = dyelog::report::plan::text(&rules.plans().iter().collect::<Vec<_>>(), rules.plans());
    assert!(plan.contains("ask that forks(e1, Y), kind(Y, \"Be\")"), "{plan}");
    let docs = dyelog::report::rule_docs::markdown(rules.program(), 0);
    assert!(!docs.contains("of template"), "{docs}");
    let _: Arc<str> = Arc::clone(&rules.plans()[0].name);
}

/// The literal that fails, with its values, and the rules that come nearest, one into another.
#[test]
fn the_literal_that_fails_is_named_with_the_nearest_rules() {
    let text = format!(
        "{}both(X) :- forks(X, Y), named(Y).\nnamed(Y) :- task(Y, _, V), V > 100.\nnamed(Y) :- name(Y, S), library(S).\n\
         library(\"codec\").\n",
        template(ONE, "kind(e1, \"Fk\"), both(e1)")
    );
    let rules = rules(&text).unwrap_or_else(|found| panic!("{:?}", errors(&found)));
    let mut said = Vec::new();
    crate::why_not::studied(&rules, "case.angio", trace().as_bytes(), |study, relations| {
        for node in [3, 4] {
            let answer = dyelog::tlc::explain::why_not(study, relations, 0, node);
            let found = dyelog::tlc::explain::nearest(study, &rules.plans()[0], &answer.tries[0].attempt);
            said.extend(found.into_iter().map(|near| {
                let names: Vec<&str> = near.bindings.iter().map(|(name, _)| &**name).collect();
                format!("{} of {}, {} with {}", near.passed, near.literals, near.fails, names.join(" "))
            }));
        }
    });
    assert_eq!(said, ["1 of 2, named(Y) with X Y", "1 of 2, V > 100 with V Y"]);
}

/// `begins` and `ends` tell instances of a task apart, whether they lead to a node or are asked.
#[test]
fn instances_of_a_task_are_told_apart_however_it_is_asked() {
    let text = "operation o run=1\no,1,1,Be | s,1\no,1,2,Ac | s,2\no,1,3,Ac | s,1 instance=2\no,1,4,Ac | s,2 instance=2\n\
                o,1,5,Ac | s,3\no,1,6,Ed | s,4\n";
    let (names, toeg) = operation(text);
    for (conditions, count) in [
        ("begins(k, a, _)", 4),
        ("thread(e1, K, _), begins(K, a, _)", 4),
        ("ends(k, a, _)", 4),
        ("thread(e1, K, _), ends(K, a, _)", 4),
        ("!begins(k, a, _)", 2),
        ("thread(e1, K, _), !begins(K, a, _)", 2),
        ("thread(e1, K, _), begins(K, a, _), task(e1, a, _)", 4),
        ("begins(k, \"s\", _)", 6),
        ("thread(e1, K, _), begins(K, \"s\", _)", 6),
        // A relation of the file sees names.
        ("named(e1)", 6),
    ] {
        let rules =
            format!("{}named(N) :- thread(N, K, _), task(N, T, _), begins(K, T, _).\n", template(ONE, conditions));
        let rules = rules_or_errors(&rules);
        assert_eq!(fits(&rules, &names, &toeg).len(), count, "{conditions}");
    }
}

fn rules_or_errors(text: &str) -> Rules {
    rules(text).unwrap_or_else(|found| panic!("{text}: {:?}", errors(&found)))
}
