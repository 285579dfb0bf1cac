//! The extensions under `rules/ext/`: what their models predict is held against a simulation of the same behaviour.
//!
//! The simulation knows nothing of models. An operation is a set of steps, each on a processor or a delay, that begin when others have
//! ended: all of them, or so many. Processors share their time among the steps that are on them.

mod dirty;

use std::process::Command;

use dyelog::lqn::saved;
use dyelog::tlc::{ReduceOptions, Reduction, Rules};

use crate::generator::Random;
use crate::tlc::{bundled, engines_agree, reduce};

/// Where a step is: on the processor of that number, or a delay.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Processor(usize),
    Delay,
}

/// A step of an operation: where, its mean seconds (a negative number: exactly so many), after which steps, and of how many of these.
struct Step {
    on: On,
    mean: f64,
    after: Vec<usize>,
    enough: usize,
}

/// An operation in the making. Steps are named by their numbers.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn step(&mut self, on: On, milliseconds: f64, after: &[usize]) -> usize {
        self.some(on, milliseconds, after, after.len())
    }

    /// One that begins when so many of others have ended.
    fn some(&mut self, on: On, milliseconds: f64, after: &[usize], enough: usize) -> usize {
        self.0.push(Step { on, mean: milliseconds / 1e3, after: after.to_vec(), enough });
        self.0.len() - 1
    }
}

fn uniform(random: &mut Random) -> f64 {
    (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30)
}

/// A step that is under way: of which operation, where, and seconds of work that are left.
struct Running {
    operation: usize,
    step: usize,
    on: On,
    left: f64,
}

struct Operation {
    steps: Steps,
    /// The step with whose end it is answered.
    last: usize,
    begun: f64,
    ended: Vec<bool>,
    started: Vec<bool>,
    customer: bool,
}

/// The mean response, seconds, of customers who think for so many seconds on the mean and then begin an operation.
fn simulated(customers: usize, think: f64, make: &dyn Fn(&mut Random) -> (Steps, usize)) -> f64 {
    const OPERATIONS: usize = 40_000;
    let mut random = Random::new(20_261);
    let mut operations: Vec<Operation> = Vec::new();
    let mut running: Vec<Running> = Vec::new();
    let exponential = |random: &mut Random, mean: f64| -mean * uniform(random).ln();
    let pause = |random: &mut Random| Running {
        operation: usize::MAX,
        step: 0,
        on: On::Delay,
        left: exponential(random, think),
    };
    running.extend((0..customers).map(|_| pause(&mut random)));
    let (mut now, mut sum, mut count) = (0.0, 0.0, 0);
    while count < OPERATIONS {
        let speed = |on: On| match on {
            On::Delay => 1.0,
            on @ On::Processor(_) => 1.0 / running.iter().filter(|other| other.on == on).count() as f64,
        };
        let ends: Vec<f64> = running.iter().map(|one| one.left / speed(one.on)).collect();
        let (next, wait) = ends
            .iter()
            .copied()
            .enumerate()
            .min_by(|left, right| left.1.total_cmp(&right.1))
            .expect("customers think or have an operation under way");
        let speeds: Vec<f64> = running.iter().map(|one| speed(one.on)).collect();
        for (one, speed) in running.iter_mut().zip(speeds) {
            one.left -= wait * speed;
        }
        now += wait;
        let done = running.swap_remove(next);
        let at = if done.operation == usize::MAX {
            let (steps, last) = make(&mut random);
            let count = steps.0.len();
            let (ended, started) = (vec![false; count], vec![false; count]);
            operations.push(Operation { steps, last, begun: now, ended, started, customer: true });
            operations.len() - 1
        } else {
            operations[done.operation].ended[done.step] = true;
            done.operation
        };
        let operation = &mut operations[at];
        if operation.ended[operation.last] && std::mem::replace(&mut operation.customer, false) {
            sum += now - operation.begun;
            count += 1;
            running.push(pause(&mut random));
        }
        for (number, step) in operation.steps.0.iter().enumerate() {
            let before = step.after.iter().filter(|before| operation.ended[**before]).count();
            if before >= step.enough && !std::mem::replace(&mut operation.started[number], true) {
                let left = if step.mean < 0.0 { -step.mean } else { exponential(&mut random, step.mean) };
                running.push(Running { operation: at, step: number, on: step.on, left });
            }
        }
        if operation.started.iter().all(|started| *started) {
            operation.steps.0.clear();
        }
    }
    sum / f64::from(count as u32)
}

/// The mean response that the model of a trace predicts for so many customers.
fn predicted(trace: &str, rules: &str, customers: usize, think: f64, tasks: &[&str]) -> f64 {
    let threads: Vec<String> = tasks.iter().map(|task| format!("[task.{task}]\nthreads = \"infinite\"\n")).collect();
    let scenario = scenario_of(trace);
    let text = format!(
        "{}[scenario.{scenario}]\ncustomer = \"client\"\npopulation = {customers}\nthink_time = \"{} ms\"\n",
        threads.concat(),
        think * 1e3
    );
    let folder = tempfile::tempdir().expect("a folder can be made");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, text).expect("the folder is writable");
    let (trace, config) = (format!("traces/{trace}.angio"), config.to_str().expect("the path is text").to_owned());
    let mut arguments = vec!["solve", &trace, "--config", &config, "--format", "json"];
    if !rules.is_empty() {
        arguments.extend(["--rules", rules]);
    }
    let output = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the binary was built for this test");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{trace}: {words}");
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    results["scenarios"][0]["response"].as_f64().expect("the scenario has a response")
}

fn scenario_of(trace: &str) -> String {
    let text = bundled(&format!("{trace}.angio"));
    let line = text.lines().find_map(|line| line.strip_prefix("operation ")).expect("it has an operation");
    line.split(' ').next().unwrap_or_default().to_owned()
}

fn agrees(trace: &str, rules: &str, tasks: &[&str], customers: &[usize], make: &dyn Fn(&mut Random) -> (Steps, usize)) {
    for &customers in customers {
        let think = 0.04;
        let (simulated, predicted) =
            (simulated(customers, think, make), predicted(trace, rules, customers, think, tasks));
        let error = predicted / simulated - 1.0;
        println!("{trace}, {customers} customers: simulated {simulated:.5} s, predicted {predicted:.5} s, {error:+.3}");
        assert!(error.abs() < 0.05, "{trace}, {customers} customers: simulated {simulated}, predicted {predicted}");
    }
}

const WEB: On = On::Processor(0);

#[test]
fn futures() {
    agrees("future", "", &["web", "pricing"], &[1, 3], &|_| {
        let mut steps = Steps::default();
        let parse = steps.step(WEB, 4.0, &[]);
        let price = steps.step(On::Processor(1), 12.0, &[parse]);
        let layout = steps.step(WEB, 8.0, &[parse]);
        let render = steps.step(WEB, 3.0, &[price, layout]);
        (steps, render)
    });
}

#[test]
fn publications_that_wait_for_some() {
    agrees("publish", "ext/publish.dl", &["ledger", "copy1", "copy2", "copy3"], &[1, 3], &|_| {
        let mut steps = Steps::default();
        let check = steps.step(WEB, 2.0, &[]);
        let copies: Vec<usize> = (1..4).map(|copy| steps.step(On::Processor(copy), 8.0, &[check])).collect();
        let commit = steps.some(WEB, 1.0, &copies, 2);
        (steps, commit)
    });
}

#[test]
fn streams() {
    agrees("streaming", "ext/streaming.dl", &["web", "feed"], &[1, 3], &|random| {
        let mut steps = Steps::default();
        let parse = steps.step(WEB, 2.0, &[]);
        let (mut item, mut shown) = (parse, parse);
        for _ in 0..3 + random.below(2) {
            item = steps.step(On::Processor(1), 5.0, &[item]);
            shown = steps.step(WEB, 1.0, &[item, shown]);
        }
        (steps, shown)
    });
}

#[test]
fn circuit_breakers() {
    agrees("breaker", "ext/breaker.dl", &["shop", "pay"], &[1, 3], &|random| {
        let mut steps = Steps::default();
        let check = steps.step(WEB, 3.0, &[]);
        let instead = if random.below(2) == 0 {
            steps.step(On::Processor(1), 20.0, &[check])
        } else {
            steps.step(WEB, 6.0, &[check])
        };
        let answer = steps.step(WEB, 1.0, &[instead]);
        (steps, answer)
    });
}

#[test]
fn retries_after_timeouts() {
    let pay = On::Processor(1);
    agrees("retry", "ext/retry.dl", &["shop", "pay"], &[1, 3, 6], &|random| {
        let mut steps = Steps::default();
        let mut check = steps.step(WEB, 3.0, &[]);
        if random.below(4) == 0 {
            steps.step(pay, 40.0, &[check]);
            check = steps.step(On::Delay, -30.0, &[check]);
        }
        let charge = steps.step(pay, 10.0, &[check]);
        let confirm = steps.step(WEB, 1.0, &[charge]);
        (steps, confirm)
    });
}

/// The store that writes batches is asked for its space by other operations meanwhile.
#[test]
fn batches() {
    agrees("batch", "ext/batch.dl", &["gate", "left", "right", "store"], &[1, 3, 6], &|_| {
        const STORE: On = On::Processor(1);
        let mut steps = Steps::default();
        let check = steps.step(WEB, 2.0, &[]);
        let space = steps.step(STORE, 2.0, &[check]);
        let left = steps.step(On::Processor(2), 4.0, &[space]);
        let right = steps.step(On::Processor(3), 4.0, &[left]);
        steps.step(STORE, 4.0, &[left, right]);
        let answer = steps.step(WEB, 1.0, &[right]);
        (steps, answer)
    });
}

/// Customers meet each other at all processors, and the two tasks of an operation meet half-way.
#[test]
fn barriers() {
    agrees("barrier", "ext/barrier.dl", &["lead", "north", "south"], &[1, 3, 6], &|_| {
        let mut steps = Steps::default();
        let divide = steps.step(WEB, 2.0, &[]);
        let (north, south) = (On::Processor(1), On::Processor(2));
        let cells = [steps.step(north, 6.0, &[divide]), steps.step(south, 8.0, &[divide])];
        let updates = [steps.step(north, 6.0, &cells), steps.step(south, 6.0, &cells)];
        let merge = steps.step(WEB, 1.0, &updates);
        (steps, merge)
    });
}

fn reduced(text: &str, rules: &[&str]) -> Reduction {
    let files: Vec<_> = rules
        .iter()
        .map(|name| ((*name).into(), dyelog::tlc::rules::shipped_text(name).expect("it is shipped")))
        .collect();
    let rules = Rules::with_user_files(&files, &|_| None).expect("shipped files load");
    reduce(text, &rules, ReduceOptions::default())
}

fn templates(reduction: &Reduction) -> Vec<&str> {
    reduction.matches.iter().map(|row| &*row.template).collect()
}

/// All extensions at once take each trace as its own does, and leave nothing over.
#[test]
fn extensions_do_not_disturb_each_other() {
    let all =
        ["ext/publish.dl", "ext/streaming.dl", "ext/breaker.dl", "ext/retry.dl", "ext/batch.dl", "ext/barrier.dl"];
    for (trace, own) in [
        ("future", None),
        ("publish", Some(0)),
        ("streaming", Some(1)),
        ("breaker", Some(2)),
        ("retry", Some(3)),
        ("batch", Some(4)),
        ("barrier", Some(5)),
    ] {
        let text = bundled(&format!("{trace}.angio"));
        let own: Vec<&str> = own.map(|own| all[own]).into_iter().collect();
        let (alone, together) = (reduced(&text, &own), reduced(&text, &all));
        assert_eq!(templates(&alone), templates(&together), "{trace}");
        assert_eq!(together.processed, together.nodes, "{trace}");
        assert!(together.findings.counted.is_empty(), "{trace}: {:?}", together.findings.counted);
    }
}

/// What one visit asks and another one waits for is no future: the wait is in another entry.
#[test]
fn a_wait_in_another_visit_is_no_future() {
    let text = "operation s run=1
s,1,1,Be | c,1
s,1,2,Ac | c,2
s,1,3,Ac | a,1
s,1,4,Fk(s,2) | a,2
s,1,5,Ac | a,3
s,1,6,Ac | c,3
s,1,7,Ac | c,4
s,1,8,Ac | a,4
s,1,9,Jn(s,2) | a,5
s,1,10,Ac | a,6
s,1,11,Ac | c,5
s,1,12,Ed | c,6
s,2,1,Be | b,1
s,2,2,Ed | b,2
";
    engines_agree(text);
    let reduction = reduced(text, &[]);
    assert!(!templates(&reduction).contains(&"future"), "{:?}", templates(&reduction));
    assert_eq!(reduction.processed, reduction.nodes);
    let one = "operation s run=1
s,1,1,Be | c,1
s,1,2,Ac | c,2
s,1,3,Ac | a,1
s,1,4,Fk(s,2) | a,2
s,1,5,Ac | a,3
s,1,6,Jn(s,2) | a,4
s,1,7,Ac | a,5
s,1,8,Ac | c,3
s,1,9,Ed | c,4
s,2,1,Be | b,1
s,2,2,Ed | b,2
";
    engines_agree(one);
    assert!(templates(&reduced(one, &[])).contains(&"future"), "in one visit it is one");
}

/// A message without `op`, or of another one, is of no publication.
#[test]
fn what_is_sent_beside_a_publication_is_no_part_of_it() {
    let text = bundled("publish.angio");
    for other in ["", "op=get"] {
        let line = text.lines().find(|line| line.contains("copy3,1 ")).expect("it begins there");
        let text = text.replacen(line, &line.replace("op=put", other), 1);
        let reduction = reduced(&text, &["ext/publish.dl"]);
        let count = |name: &str| templates(&reduction).iter().filter(|template| **template == name).count();
        assert_eq!((count("future"), count("late_message"), count("asynchronous")), (6, 2, 1));
    }
}

/// Messages of which none is worked on, of several operations, or with something between them, are no batch.
#[test]
fn what_is_worked_on_one_by_one_is_no_batch() {
    let text = bundled("batch.angio");
    let (first, _) = text.split_once("operation record run=2").expect("it has two runs");
    let line = |begin: &str| first.lines().find(|line| line.starts_with(begin)).expect("it is there").to_owned();
    let (work, end, other) = (line("record,4,2,"), line("record,4,3,"), line("record,3,1,"));
    let without_work = first.replace(&format!("{work}\n"), "").replace(&end, "record,4,2,Ed | store,8 t=0.025");
    let of_another = first.replace(&other, &other.replace("op=write", "op=erase"));
    for (case, text, batches) in [("as it is", first, 1), ("no work", &without_work, 0), ("another", &of_another, 0)] {
        let reduction = reduced(text, &["ext/batch.dl"]);
        let of = |name: &str| templates(&reduction).iter().filter(|template| **template == name).count();
        assert_eq!((of("batch"), of("batched")), (batches, 2 * batches), "{case}");
        assert_eq!(of("asynchronous"), 3 - 3 * batches, "{case}");
        assert_eq!(reduction.processed, reduction.nodes, "{case}");
    }
}

/// Delays are kept in saved sub-models, and add up where they merge.
#[test]
fn delays_are_kept() {
    let reduction = reduced(&bundled("retry.angio"), &["ext/retry.dl"]);
    let text = saved::write(&reduction.submodel, "name");
    let (again, _) = saved::parse(&"saved.json".into(), &text).expect("it was just written");
    assert_eq!(saved::write(&again, "name"), text);
    let mut twice = again.clone();
    twice.merge(&again);
    let seconds = |sub: &dyelog::lqn::submodel::SubModel| -> f64 {
        sub.entries().iter().flat_map(|entry| entry.work.values()).map(|work| work.pauses.sum.as_f64()).sum()
    };
    assert_eq!((seconds(&again), seconds(&twice)), (0.03, 0.06));
}

/// One node begins or ends one branch, also where the branches are those of a sequence.
#[test]
fn a_node_begins_one_branch() {
    let text = |model: &str| {
        format!(
            "template t {{ order -1
  match {{
    e1 = Fk(p) [j, k, m[1]-1 | a, v]
    e2 = Be    [j, p, 1      | b, w]
    repeat x in 1..n min 1 {{
      f[x] = Fk(q[x]) [j, k, m[x] | a, u[x]]
      g[x] = Be       [j, q[x], 1 | t[x], y[x]]
    }}
    e3 = Jn(p) [j, k2, m2 | a, z]
  }}
  where {{ a != b, a != t[x], m[x+1] == m[x]+1, z > v, z > u[x] }}
  model {{
    S := newEntry(R, b)
    addTrigger([j, p, 2 | b, w+1], S)
    {model}
  }}
}}"
        )
    };
    let codes = |model: &str| -> Vec<&str> {
        match Rules::with_user_files(&[("t.dl".into(), text(model).into())], &|_| None) {
            Ok(_) => Vec::new(),
            Err(findings) => findings.0.iter().map(|finding| finding.code.0).collect(),
        }
    };
    let rounds = |model: &str| {
        format!("for x in 1..n {{ T[x] := newEntry(R, t[x])  {model}  addTrigger([j, q[x], 2 | t[x], y[x]+1], T[x]) }}")
    };
    let good = rounds("forkRequest(E, T[x], f[x])");
    assert_eq!(codes(&format!("awaitRequest(E, S, e1, e3) {good}")), [""; 0]);
    assert_eq!(codes(&format!("awaitRequest(E, S, e1, e1) {good}")), ["R085"]);
    assert_eq!(codes(&format!("awaitRequest(E, S, e1, e3) {}", rounds("forkRequest(E, T[x], e1)"))), ["R085"]);
    assert_eq!(codes(&format!("addAlternative(E, e1, e3) awaitRequest(E, S, e1, e3) {good}")), ["R085", "R085"]);
    assert_eq!(codes(&format!("forkRequest(E, S, e1) addRequest(E, S) {good}")), ["R081"]);
}

/// Conditions on the times of nodes, in nanoseconds.
#[test]
fn conditions_ask_for_times() {
    let slow = |least: u32| {
        let text = format!(
            "template slow {{ order -1
  match {{ e1 = Fk(q) [j, k, m | a, v]  e2 = Ac [j, k, m+1 | a, v+1]  e3 = Be [j, q, 1 | b, w] }}
  where {{ a != b, time(e1, t), time(e2, u), u - t > {least} }}
  model {{ S := newEntry(A, b)  addRequest(E, S)  addActivity(E, e2)  addTrigger([j, q, 2 | b, w+1], S) }}
}}"
        );
        let rules = Rules::with_user_files(&[("t.dl".into(), text.into())], &|_| None).expect("the template loads");
        let reduction = reduce(&bundled("retry.angio"), &rules, ReduceOptions::default());
        templates(&reduction).iter().filter(|template| **template == "slow").count()
    };
    assert_eq!((slow(29_000_000), slow(31_000_000)), (1, 0));
}

/// A circuit breaker as one template with two alternatives.
const BREAKER: &str = "template breaker {
  order -6
  match {
    {
      e1 = Ac [j, k,  m    | a, v  ] { name: \"closed\" }
      e2 = Ac [j, k,  m+1  | b, w2 ]
      e3 = Ac [j, k3, m2   | b, w3 ]
      e4 = Ac [j, k3, m2+1 | a, v+1]
    } or {
      e1 = Ac [j, k, m   | a, v  ] { name: \"open\" }
      e5 = Ac [j, k, m+1 | a, v+1]
      e6 = Ac [j, k, m+2 | a, v+2] { name: \"answered\" }
    }
  }
  where { a != b, w3 > w2 }
  model {
    S := newEntry(R, b)
    awaitRequest(E, S, e1, e4)
    addAlternative(E, e1, e6)
    addActivity(E, e1)  addActivity(E, e4)  addActivity(E, e5)  addActivity(E, e6)
    addActivity(S, e2)  addActivity(S, e3)
  }
}
";

fn codes_of(text: &str) -> Vec<&'static str> {
    match Rules::with_user_files(&[("t.dl".into(), text.into())], &|_| None) {
        Ok(rules) => rules.warnings().iter().map(|finding| finding.code.0).collect(),
        Err(findings) => findings.0.iter().map(|finding| finding.code.0).collect(),
    }
}

fn reduced_by(text: &str, rules: &str) -> Reduction {
    let rules = Rules::with_user_files(&[("t.dl".into(), rules.into())], &|_| None).expect("the template loads");
    reduce(text, &rules, ReduceOptions::default())
}

/// The same model as by two templates: `awaitRequest` is left out where no entry is opened, `addAlternative` where e6 is missing.
#[test]
fn alternatives_are_templates() {
    let text = bundled("breaker.angio");
    let two = reduced(&text, &["ext/breaker.dl"]);
    assert_eq!(codes_of(BREAKER), [""; 0]);
    let one = reduced_by(&text, BREAKER);
    assert_eq!(saved::write(&one.submodel, "name"), saved::write(&two.submodel, "name"));
    assert_eq!(templates(&one).iter().filter(|name| **name == "breaker").count(), 4);
}

const OPTIONAL: &str = "template t { order -1
  match {
    e1 = Ac [j, k, m | a, v] { name: \"look\" }
    optional { e2 = Ac [j, k, m+1 | a, v+1] { name: \"miss\" } }
  }
  where { CONDITION }
  model { addActivity(E, e1)  addActivity(E, e2) }
}";

/// What may be missing is matched where it is there, and conditions on it hold where it is not.
#[test]
fn optional_nodes_may_be_missing() {
    let text = |second: &str| {
        format!(
            "operation s run=1\ns,1,1,Be | c,1\ns,1,2,Ac | c,2 name=look\ns,1,3,Ac | c,3 name={second}\ns,1,4,Ed | c,4\n"
        )
    };
    let matched = |second: &str, condition: &str| {
        let reduction = reduced_by(&text(second), &OPTIONAL.replace("CONDITION", condition));
        let by = |name: &str| templates(&reduction).iter().filter(|template| **template == name).count();
        (by("t"), by("activity"))
    };
    assert_eq!(matched("miss", "v > 0"), (1, 0));
    assert_eq!(matched("other", "v > 0"), (1, 1));
    // Where the condition on the optional node fails, the template matches without it.
    assert_eq!(matched("miss", "op(e2, \"put\")"), (1, 1));
    // Conditions that only test what such a condition bound are left out with it.
    assert_eq!(matched("miss", "kind(e1, s), kind(e2, t), s = t"), (1, 0));
    assert_eq!(matched("miss", "name(e1, s), name(e2, t), s != t"), (1, 0));
    assert_eq!(matched("other", "name(e1, s), name(e2, t), s != t"), (1, 1));
    // A condition on what is always there holds in any case.
    assert_eq!(matched("miss", "v > 9"), (0, 2));
}

/// Entries that are numbered from below zero, or far off, take no memory and end nothing.
#[test]
fn entries_are_numbered_within_bounds() {
    let multicast = dyelog::tlc::rules::shipped_text("ext/multicast.dl").expect("it is shipped");
    let made = "S[x] := newEntry(A, u[x])\n";
    let numbered = |index: &str| multicast.replace(made, &format!("{made}T[{index}] := newEntry(A, u[x])\n"));
    assert_eq!(codes_of(&numbered("x+1000000000000")), ["R057"]);
    for index in ["x+1000", "x-1", "x-2", "x-1000"] {
        let reduction = reduced_by(&bundled("multicast.angio"), &numbered(index));
        assert!(templates(&reduction).contains(&"multicast"), "{index}");
    }
}

/// What cannot mean anything with alternatives is refused.
#[test]
fn alternatives_are_checked() {
    let codes = |items: &str, model: &str| -> Vec<&str> {
        codes_of(&format!(
            "template t {{ order -1 match {{ e1 = Ac [j, k, m | a, v] {items} }} where {{ v > 1 }} model {{ addActivity(E, e1) {model} }} }}"
        ))
    };
    let (hit, miss) =
        ("b = Ac [j, k, m+1 | a, v+1] { name: \"hit\" }", "c = Ac [j, k, m+1 | a, v+1] { name: \"miss\" }");
    let either = format!("{{ {hit} }} or {{ {miss} }}");
    assert_eq!(codes(&either, ""), [""; 0]);
    assert_eq!(codes(&either, "addActivity(E, b) addActivity(E, c)"), [""; 0]);
    assert_eq!(codes(&either, "addBranch(E, b, c)"), ["R086"]);
    assert_eq!(codes(&either, "addActivity(E, d)"), ["R058"]);
    assert_eq!(codes(&format!("{{ {hit} }}"), ""), ["R005"]);
    assert_eq!(codes(&format!("optional {{ {hit} }} or {{ {miss} }}"), ""), ["R005"]);
    assert_eq!(codes("optional { }", ""), ["R005"]);
    // Two of 2: four combinations; five of them are too many.
    let optional = |number: u32| format!("optional {{ b{number} = Ac [j, k, m+{number} | a, v+{number}] }}");
    assert_eq!(codes(&(1..5).map(optional).collect::<String>(), ""), [""; 0]);
    assert_eq!(codes(&(1..6).map(optional).collect::<String>(), ""), ["R087"]);
    // An alternative that another one leaves nothing to.
    assert_eq!(codes(&format!("{{ b = Ac [j, k, m+1 | a, v+1] }} or {{ {hit} }}"), ""), ["R073"]);
    // A node that only an optional one leads to.
    let behind = "optional { b = Fk(q) [j, k, m+1 | a, v+1] } c = Be [j, q, 1 | b2, w]";
    assert!(codes(behind, "").contains(&"R050"), "{:?}", codes(behind, ""));
    let repeated = "repeat x in 1..n min 1 { { g[x] = Ac [j, k, y[x] | a, _] } or { h[x] = Ac [j, k, y[x] | a, _] } }";
    assert!(codes(repeated, "").contains(&"R011"), "{:?}", codes(repeated, ""));
}

/// A barrier that no model says is told of, and changes nothing.
#[test]
fn barriers_that_no_model_says_are_told() {
    let text = bundled("barrier.angio");
    let (first, _) = text.split_once("operation step run=2").expect("it has two runs");
    let parts = |text: &str| {
        let reduction = reduced(text, &["ext/barrier.dl"]);
        assert_eq!(reduction.processed, reduction.nodes);
        let of = |name: &str| templates(&reduction).iter().filter(|template| **template == name).count();
        (of("barrier"), reduction.submodel.entries().len(), reduction.findings.counted.len())
    };
    // Customer, client, lead, and two entries each of north and south.
    assert_eq!(parts(first), (2, 7, 0));
    // North does not wait.
    let one_waits = first.replace("step,2,4,Jn(step,5)", "step,2,4,Ac        ");
    assert_eq!(parts(&one_waits).0, 0);
    // Nobody waits for the two at all: still one after the other.
    let asynchronous = first.replace("Jn(step,2)", "Ac        ").replace("Jn(step,3)", "Ac        ");
    assert_eq!(parts(&asynchronous), (2, 7, 0));
    // Only one is waited for.
    assert_eq!(parts(&first.replace("Jn(step,3)", "Ac        ")), (2, 7, 0));
}

/// One operation of lead, who asks north and south; these meet so many times. South waits so many times less.
fn meetings(times: usize, fewer: usize) -> String {
    let mut text = "operation s run=1
s,1,1,Be | client,1
s,1,2,Ac | client,2
s,1,3,Ac | lead,1 op=step
s,1,4,Fk(s,2) | lead,2
s,1,5,Fk(s,3) | lead,3
s,1,6,Jn(s,2) | lead,4
s,1,7,Jn(s,3) | lead,5
s,1,8,Ac | lead,6
s,1,9,Ac | client,3
s,1,10,Ed | client,4
"
    .to_owned();
    let says = |time: usize, who: usize| 4 + 2 * time + who;
    for (who, task) in ["north", "south"].into_iter().enumerate() {
        let (thread, mut counter) = (who + 2, 1);
        let (mut own, mut others) = (format!("s,{thread},1,Be | {task},1\n"), String::new());
        let mut position = 1;
        for time in 0..times {
            own.push_str(&format!("s,{thread},{},Ac | {task},{} cpu=0.001\n", position + 1, counter + 1));
            own.push_str(&format!("s,{thread},{},Fk(s,{}) | {task},{}\n", position + 2, says(time, who), counter + 2));
            others.push_str(&format!("s,{},1,Be | {task},{}\n", says(time, who), counter + 3));
            others.push_str(&format!("s,{},2,Ed | {task},{}\n", says(time, who), counter + 4));
            let waits = who == 0 || time + fewer < times;
            let kind = if waits { format!("Jn(s,{})", says(time, 1 - who)) } else { "Ac".to_owned() };
            own.push_str(&format!("s,{thread},{},{kind} | {task},{}\n", position + 3, counter + 5));
            (position, counter) = (position + 3, counter + 5);
        }
        own.push_str(&format!("s,{thread},{},Ac | {task},{} cpu=0.001\n", position + 1, counter + 1));
        own.push_str(&format!("s,{thread},{},Ed | {task},{}\n", position + 2, counter + 2));
        text.push_str(&own);
        text.push_str(&others);
    }
    text
}

/// Each part of a visit is an entry of its own. A thousand barriers are no trouble, and visits that do not meet each time are told of.
#[test]
fn visits_meet_again_and_again() {
    let parts = |text: &str| {
        let reduction = reduced(text, &["ext/barrier.dl"]);
        assert_eq!(reduction.processed, reduction.nodes);
        (reduction.submodel.entries().len(), reduction.findings.counted.len())
    };
    // Customer, client, lead, and what north and south do between barriers.
    assert_eq!(parts(&meetings(1, 0)), (7, 0));
    assert_eq!(parts(&meetings(3, 0)), (11, 0));
    // They meet twice, and the third time only north waits.
    // That wait is in no model.
    assert_eq!(parts(&meetings(3, 1)), (9, 1));
    assert_eq!(parts(&meetings(1000, 0)), (2005, 0));
    // Of two that different visits asked for, the model cannot say that they meet.
    let asked = "operation s run=1
s,1,1,Be | client,1
s,1,2,Fk(s,3) | client,2
s,1,3,Ac | client,3
s,1,4,Ac | lead,1 op=step
s,1,5,Fk(s,2) | lead,2
s,1,6,Jn(s,2) | lead,3
s,1,7,Ac | lead,4
s,1,8,Ac | client,4
s,1,9,Jn(s,3) | client,5
s,1,10,Ed | client,6
";
    let met = meetings(1, 0);
    let (_, visits) = met.split_at(met.find("s,2,1,").expect("north has a visit"));
    assert_eq!(parts(&format!("{asked}{visits}")), (5, 1));
}

/// A request that is sent once more, to another task, when the answer to the first one takes too long.
const HEDGE: &str = "operation get run=1
get,1,1,Be | client,1 op=get t=0 cpu=0.001
get,1,2,Fk(get,2) | client,2 t=0.001
get,1,3,Fk(get,3) | client,3 t=0.051
get,1,4,Jn(get,2) | client,4 t=0.061 cpu=0.002
get,1,5,Ed | client,5 t=0.063
get,2,1,Be | store1,1 op=read t=0.001 cpu=0.06
get,2,2,Ed | store1,2 t=0.061
get,3,1,Be | store2,1 op=read t=0.051 cpu=0.03
get,3,2,Ed | store2,2 t=0.081
";

/// A delay between two forks in a row is on the visit's own branch: the first branch does not wait for it.
#[test]
fn a_delay_between_forks_holds_up_the_later_one_alone() {
    let rules = "template hedge { order -1
  match {
    e1 = Fk(q) [j, k, m   | a, v  ]
    e2 = Be    [j, q, 1   | b, w  ]
    e3 = Fk(r) [j, k, m+1 | a, v+1]
    e4 = Be    [j, r, 1   | c, y  ]
    e5 = Jn(q) [j, k, m+2 | a, v+2]
  }
  where { a != b, a != c, b != c }
  model {
    S := newEntry(R, b)  awaitRequest(E, S, e1, e5)  addTrigger([j, q, 2 | b, w+1], S)
    addDelay(E, e3)
    T := newEntry(R, c)  forkRequest(E, T, e3)  addTrigger([j, r, 2 | c, y+1], T)
  }
}";
    assert_eq!(codes_of(rules), [""; 0]);
    let reduction = reduced_by(HEDGE, rules);
    let entries = reduction.submodel.entries().iter();
    let work = entries.flat_map(|entry| &entry.work).filter(|(_, work)| work.pauses.sum.as_f64() > 0.0);
    let delays: Vec<(i64, bool)> =
        work.map(|(at, work)| ((work.pauses.sum.as_f64() * 1e6).round() as i64, at.branch.is_some())).collect();
    assert_eq!(delays, [(50_000, true)]);
    // The join waits for the first request; the second one is a block of the other branch.
    let blocks: Vec<usize> =
        reduction.submodel.entries().iter().map(|entry| entry.blocks.len()).filter(|blocks| *blocks > 0).collect();
    assert_eq!(blocks, [2]);
}

/// A node behind a sequence names the thread of its last or first round, from whichever end the rounds are walked.
#[test]
fn nodes_behind_a_sequence_name_its_ends() {
    let trace = "operation get run=1
get,1,1,Be | client,1 op=get
get,1,2,Fk(get,2) | client,2
get,1,3,Fk(get,3) | client,3
get,1,4,Ed | client,4
get,2,1,Be | left,1 op=read
get,2,2,Ac | left,2
get,2,3,Ed | left,3
get,3,1,Be | right,1 op=read
get,3,2,Ed | right,2
";
    let rules = |last: &str, end: &str| {
        format!(
            "template t {{ order -1
  longest
  match {{
    e1 = Be [j, k, 1 | a, v]
    repeat x in 1..n min 1 {{
      f[x] = Fk(q[x]) [j, k, m[x] | a, u[x]]
      g[x] = Be [j, q[x], 1 | b[x], w[x]]
    }}
    {last}
    c = Ed [j, {end}, h | d, y]
  }}
  where {{ m[1] == 2, m[x+1] == m[x]+1 }}
  model {{
    for x in 1..n {{ S[x] := newEntry(A, b[x])  addRequest(E, S[x]) }}
    T := newEntry(A, d)  addRequest(E, T)
  }}
}}"
        )
    };
    let ends = |last: &str, end: &str| {
        let reduction = reduced_by(trace, &rules(last, end));
        templates(&reduction).iter().filter(|template| **template == "t").count()
    };
    for last in ["", "z = Ed [j, k, m[n+1] | a, o]"] {
        for end in ["q[n]", "q[1]"] {
            let codes: Vec<&str> = codes_of(&rules(last, end)).into_iter().filter(|code| *code == "R050").collect();
            assert_eq!(codes, [""; 0], "{last} {end}");
            assert_eq!(ends(last, end), 1, "{last} {end}");
        }
    }
}

/// What operations say of rounds that there are not would be left out in silence.
#[test]
fn operations_name_rounds_that_there_are() {
    let of = |statement: &str| {
        codes_of(&format!(
            "template t {{ order -1
  match {{
    e1 = Ac [j, k, m | a, v] {{ name: \"glue\" }}
    repeat x in 1..n min 1 {{ f[x] = Ac [j, k, p[x] | a, u[x]] }}
  }}
  where {{ p[1] == m+1, p[x+1] == p[x]+1 }}
  model {{ {statement} }}
}}"
        ))
    };
    for good in [
        "for x in 1..n { addDelay(E, f[x]) }",
        "for x in 2..n { addDelay(E, f[x-1]) }",
        "addDelay(E, f[1])",
        "addDelay(E, f[n])",
    ] {
        assert_eq!(of(good), [""; 0], "{good}");
    }
    // Errors, and warnings where fewer rounds match, too.
    for bad in [
        "for x in 1..n { addDelay(E, f[x+1]) }",
        "for x in 1..n { addActivity(E, f[x-1]) }",
        "addDelay(E, f)",
        "addDelay(E, f[0])",
        "addDelay(E, f[n+1])",
        "addDelay(E, f[2])",
        "addDelay(E, f[n-1])",
    ] {
        assert_eq!(of(bad), ["R057"], "{bad}");
    }
}
