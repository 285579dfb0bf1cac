//! Tests of `model`: sub-models built by hand, and what becomes of them.

use std::hash::{DefaultHasher, Hash, Hasher};

use dyelog::diagnostic::{Diagnostic, Severity};
use dyelog::lqn::submodel::{
    BlockTotal, Branch, BranchTotal, EntryIndex, EntryKey, Interaction, Position, RequestKind, ScenarioTotal, SubModel,
    Witness,
};
use dyelog::lqn::{Body, CallKind, Fork, Language, Model, Multiplicity, lint};
use dyelog::model::{Configuration, DemandSource, Load, LoadReason, Origins, complete};
use proptest::prelude::*;

/// A sub-model in the making.
#[derive(Default)]
pub struct Sub(pub SubModel);

pub const FIRST: Position = Position { stage: 0, branch: None, phase: 1 };
const SECOND: Position = Position { stage: 0, branch: None, phase: 2 };

impl Sub {
    pub fn scenario(&mut self, name: &str, operations: u64) -> EntryIndex {
        let interned = self.0.names.intern(name);
        let total = ScenarioTotal { operations, ..ScenarioTotal::default() };
        self.0.scenarios.entry(interned).or_default().merge(&total);
        self.entry(name, 1, Interaction::Customer, "", operations)
    }

    pub fn entry(
        &mut self,
        task: &str,
        instance: u32,
        kind: Interaction,
        service: &str,
        invocations: u64,
    ) -> EntryIndex {
        let mut hasher = DefaultHasher::new();
        (task, instance, kind, service).hash(&mut hasher);
        self.entry_with_key(task, instance, kind, service, invocations, hasher.finish())
    }

    fn entry_with_key(
        &mut self,
        task: &str,
        instance: u32,
        kind: Interaction,
        service: &str,
        invocations: u64,
        key: u64,
    ) -> EntryIndex {
        let (task, service) = (self.0.names.intern(task), self.0.names.intern(service));
        let entry = self.0.ensure_entry(EntryKey(u128::from(key)), task, instance, kind, service);
        self.0.entry_mut(entry).invocations += invocations;
        entry
    }

    pub fn visits(&mut self, entry: EntryIndex, at: Position, visits: u64) {
        self.0.entry_mut(entry).work.entry(at).or_default().visits += visits;
    }

    pub fn request(&mut self, entry: EntryIndex, at: Position, kind: RequestKind, to: EntryIndex, count: u64) {
        let work = self.0.entry_mut(entry).work.entry(at).or_default();
        work.requests.entry((kind, to)).or_default().count += count;
    }

    pub fn activity(&mut self, entry: EntryIndex, at: Position, name: &str, count: u64, cpu: Option<f64>) {
        let name = self.0.names.intern(name);
        let activity = self.0.entry_mut(entry).work.entry(at).or_default().activities.entry(name).or_default();
        activity.count += count;
        if let Some(seconds) = cpu {
            (0..count).for_each(|_| activity.cpu.add(seconds));
        }
    }

    pub fn exclusive(&mut self, entry: EntryIndex, at: Position, times: u64, seconds: f64) {
        let work = self.0.entry_mut(entry).work.entry(at).or_default();
        work.visits += times;
        (0..times).for_each(|_| work.exclusive.add(seconds));
    }

    pub fn complete(&self, configuration: &str) -> (Model, Vec<Diagnostic>, Origins) {
        let (configuration, _) = Configuration::parse(&"test.toml".into(), configuration).expect("it is sound");
        let completed = complete(&self.0, &configuration).expect("there are operations");
        let errors: Vec<Diagnostic> =
            lint::check(&completed.0).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert_eq!(errors, [], "every model is one that the languages allow");
        completed
    }
}

/// A web server that asks a database twice, logs after its reply and forwards a tenth of its requests.
pub fn shop() -> Sub {
    use Interaction::{Asynchronous, Forwarding, Rendezvous};
    use RequestKind::{Asynchronous as Send, Forward, Synchronous};
    let mut sub = Sub::default();
    let customer = sub.scenario("buy", 10);
    let get = sub.entry("web", 1, Rendezvous, "get", 10);
    let query = sub.entry("db", 1, Rendezvous, "query", 20);
    let log = sub.entry("log", 1, Asynchronous, "", 10);
    let other = sub.entry("cache", 1, Forwarding, "get", 1);
    sub.request(customer, FIRST, Synchronous, get, 10);
    sub.request(get, FIRST, Synchronous, query, 20);
    sub.request(get, FIRST, Forward, other, 1);
    sub.request(get, SECOND, Send, log, 10);
    sub.activity(get, FIRST, "parse", 10, Some(0.002));
    sub.activity(get, SECOND, "", 10, Some(0.001));
    sub.exclusive(query, FIRST, 20, 0.004);
    sub.activity(log, FIRST, "write", 30, None);
    sub
}

pub fn has(findings: &[Diagnostic], code: &str, words: &str) -> bool {
    findings.iter().any(|finding| finding.code.0 == code && finding.message.contains(words))
}

fn of<'m>(model: &'m Model, entry: &str) -> &'m dyelog::lqn::Entry {
    let id = model.entry_named(entry).unwrap_or_else(|| panic!("there is no entry {entry}"));
    &model.entries[id.index()]
}

pub fn phases<'m>(model: &'m Model, entry: &str) -> &'m [dyelog::lqn::Work] {
    match &of(model, entry).body {
        Body::Phases(phases) => phases,
        Body::Activities(_) => panic!("{entry} is a graph of activities"),
    }
}

#[test]
fn a_model_of_all_kinds_of_requests() {
    let (model, findings, origins) = shop().complete("[demand.activity]\nwrite = \"1 ms\"\n[defaults]\nthreads = 1");
    insta::assert_snapshot!(Language::Lqn.write(&model), @r#"
    G "operations traced: 10 of buy" 0.00001 50 -1

    P 5
      p Cu_buy i
      p cache s
      p db s
      p log s
      p web s
    -1

    T 5
      t Cu_buy r Cu_buy -1 Cu_buy
      t cache n "cache.get" -1 cache
      t db n query -1 db
      t log n log_1 -1 log
      t web n "web.get" -1 web
    -1

    E 5
    # ---------- Cu_buy ----------
      s Cu_buy 0 -1
      y Cu_buy "web.get" 1 -1
    # ---------- cache ----------
      s "cache.get" 0 -1
    # ---------- db ----------
      s query 0.004 -1
      c query 0 -1
    # ---------- log ----------
      s log_1 0.003 -1
    # ---------- web ----------
      s "web.get" 0.002 0.001 -1
      c "web.get" 0 0 -1
      y "web.get" query 2 -1
      z "web.get" log_1 0 1 -1
      F "web.get" "cache.get" 0.1 -1
    -1
    "#);
    assert!(has(&findings, "M009", "`web.get` forwards 1 of 10"), "{findings:?}");
    let sources: Vec<(&str, &[DemandSource])> =
        model.entries.iter().zip(&origins.entries).map(|(entry, origin)| (&*entry.name, &origin.sources[..])).collect();
    assert_eq!(
        sources,
        [
            ("Cu_buy", &[DemandSource::None][..]),
            ("cache.get", &[DemandSource::None]),
            ("query", &[DemandSource::Exclusive]),
            ("log_1", &[DemandSource::Function]),
            ("web.get", &[DemandSource::Cpu, DemandSource::Cpu]),
        ]
    );
}

#[test]
fn branches_become_a_graph_with_its_reply_after_the_first_phase() {
    let mut sub = Sub::default();
    let customer = sub.scenario("s", 10);
    let page = sub.entry("web", 1, Interaction::Rendezvous, "page", 10);
    let (left, right) =
        (sub.entry("l", 1, Interaction::Rendezvous, "", 10), sub.entry("r", 1, Interaction::Rendezvous, "", 10));
    sub.request(customer, FIRST, RequestKind::Synchronous, page, 10);
    let branch = |block, branch| Position { stage: 0, branch: Some(Branch { block, branch }), phase: 1 };
    for (stage, block, branches, times) in [(1, 7, 2, 10), (2, 3, 1, 4), (2, 5, 2, 1)] {
        let at = Position { stage, branch: None, phase: 1 };
        let branches = vec![BranchTotal { content: 0, own: false, awaited: times }; branches];
        sub.0.entry_mut(page).blocks.insert(block, BlockTotal { at, times, branches, ..BlockTotal::default() });
    }
    sub.activity(page, FIRST, "", 10, Some(0.001));
    for (number, to) in [(0, left), (1, right)] {
        sub.visits(page, branch(7, number), 10);
        sub.request(page, branch(7, number), RequestKind::Synchronous, to, 10);
    }
    // At the second stage one of two blocks, or none.
    for (block, branches, visits) in [(3, 1, 4), (5, 2, 1)] {
        for number in 0..branches {
            sub.visits(page, branch(block, number), visits);
            sub.activity(page, branch(block, number), "", visits, Some(0.01));
        }
    }
    sub.activity(page, Position { stage: 2, branch: None, phase: 2 }, "", 10, Some(0.003));
    let (model, _, origins) = sub.complete("[defaults]\nthreads = 1");
    insta::assert_snapshot!(Language::Lqn.write(&model), @r#"
    G "operations traced: 10 of s" 0.00001 50 -1

    P 4
      p Cu_s i
      p "l" s
      p "r" s
      p web s
    -1

    T 4
      t Cu_s r Cu_s -1 Cu_s
      t "l" n l_1 -1 "l"
      t "r" n r_1 -1 "r"
      t web n page -1 web
    -1

    E 4
    # ---------- Cu_s ----------
      s Cu_s 0 -1
      y Cu_s page 1 -1
    # ---------- l ----------
      s l_1 0 -1
    # ---------- r ----------
      s r_1 0 -1
    # ---------- web ----------
      A page "page.s0"
    -1

    A web
      s "page.s0" 0.001
      c "page.s0" 0
      s "page.s1" 0
      s "page.s2" 0
      s "page.s2p2" 0.003
      c "page.s2p2" 0
      s "page.b1.1" 0
      y "page.b1.1" l_1 1
      s "page.b1.2" 0
      y "page.b1.2" r_1 1
      s "page.b2x1.1" 0.01
      s "page.b2x2.1" 0.01
      s "page.b2x2.2" 0.01
      s "page.b2x2.fork" 0
      s "page.b2x2.join" 0
      s "page.b2.skip" 0
     :
      "page.s2"[page] -> "page.s2p2";
      "page.s0" -> "page.b1.1" & "page.b1.2";
      "page.b1.1" & "page.b1.2" -> "page.s1";
      "page.b2x2.fork" -> "page.b2x2.1" & "page.b2x2.2";
      "page.b2x2.1" & "page.b2x2.2" -> "page.b2x2.join";
      "page.s1" -> (0.4) "page.b2x1.1" + (0.1) "page.b2x2.fork" + (0.5) "page.b2.skip";
      "page.b2x1.1" + "page.b2x2.join" + "page.b2.skip" -> "page.s2"
    -1
    "#);
    assert_eq!(model.activities.len(), origins.activities.len());
    let (read, _) = Language::Lqn.parse("again", &Language::Lqn.write(&model)).expect("what is written can be read");
    assert_eq!(read.activities.len(), model.activities.len());
    // Work is kept: 4 visits of one branch and 1 of two, of 10 ms each, over 10 invocations.
    let forks: Vec<&Vec<(f64, _)>> = model.tasks[1]
        .precedences
        .iter()
        .chain(model.tasks.iter().flat_map(|task| &task.precedences))
        .filter_map(|precedence| match &precedence.fork {
            Some(Fork::Or(branches)) => Some(branches),
            _ => None,
        })
        .collect();
    assert_eq!(forks[0].iter().map(|(share, _)| *share).collect::<Vec<_>>(), [0.4, 0.1, 0.5]);
}

#[test]
fn further_instances_of_a_task_are_tasks_on_the_same_processor() {
    let mut sub = Sub::default();
    let customer = sub.scenario("s", 1);
    let outer = sub.entry("a", 1, Interaction::Rendezvous, "f", 1);
    let inner = sub.entry("a", 2, Interaction::Rendezvous, "f", 1);
    sub.request(customer, FIRST, RequestKind::Synchronous, outer, 1);
    sub.request(outer, FIRST, RequestKind::Synchronous, inner, 1);
    let (model, _, _) = sub.complete("[task.a]\nthreads = 3\nprocessor = \"cpu\"\n[processor.cpu]\nspeed = 2");
    let tasks: Vec<_> = model.tasks.iter().map(|task| (&*task.name, task.multiplicity)).collect();
    assert_eq!(
        tasks,
        [("Cu_s", Multiplicity::Finite(1)), ("a", Multiplicity::Finite(3)), ("a.2", Multiplicity::Finite(3)),]
    );
    assert_eq!(model.tasks[1].processor, model.tasks[2].processor);
    assert_eq!(model.processors[1].speed, 2.0);
    let names: Vec<&str> = model.entries.iter().map(|entry| &*entry.name).collect();
    assert_eq!(names, ["Cu_s", "a.f", "a.2.f"]);
}

#[test]
fn names_are_unique_whatever_services_are_called() {
    let mut sub = Sub::default();
    let customer = sub.scenario("s", 1);
    let mut key = 0;
    for (task, kind, service) in [
        ("a", Interaction::Rendezvous, "x"),
        ("a", Interaction::Rendezvous, "x"),
        ("a", Interaction::Asynchronous, "x"),
        ("b", Interaction::Rendezvous, "x_1"),
        ("b", Interaction::Rendezvous, "a.x_1"),
        ("b", Interaction::Rendezvous, ""),
        ("b", Interaction::Rendezvous, "b_1"),
        ("Cu_s", Interaction::Rendezvous, "Cu_s"),
        ("b.2", Interaction::Rendezvous, "y"),
    ] {
        key += 1;
        let entry = sub.entry_with_key(task, 1, kind, service, 1, key);
        sub.request(customer, FIRST, RequestKind::Synchronous, entry, 1);
    }
    let again = sub.entry("b", 2, Interaction::Rendezvous, "y", 1);
    sub.request(customer, FIRST, RequestKind::Synchronous, again, 1);
    let (model, _, _) = sub.complete("");
    let unique = |names: Vec<&str>| {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "{names:?}");
    };
    unique(model.entries.iter().map(|entry| &*entry.name).collect());
    unique(model.tasks.iter().map(|task| &*task.name).collect());
    unique(model.processors.iter().map(|processor| &*processor.name).collect());
}

#[test]
fn forwarding_never_adds_up_to_more_than_one() {
    let mut sub = Sub::default();
    let customer = sub.scenario("s", 4);
    let front = sub.entry("front", 1, Interaction::Rendezvous, "f", 4);
    let sent = sub.entry("queue", 1, Interaction::Asynchronous, "q", 4);
    let back: Vec<EntryIndex> =
        ["b", "c"].iter().map(|task| sub.entry(task, 1, Interaction::Forwarding, task, 3)).collect();
    sub.request(customer, FIRST, RequestKind::Synchronous, front, 4);
    sub.request(customer, FIRST, RequestKind::Asynchronous, sent, 4);
    for to in &back {
        sub.request(front, FIRST, RequestKind::Forward, *to, 3);
    }
    sub.request(sent, FIRST, RequestKind::Forward, back[0], 4);
    let (model, findings, _) = sub.complete("");
    let sum: f64 = of(&model, "f").forwarding.iter().map(|forwarding| forwarding.probability).sum();
    assert_eq!(sum, 1.0);
    assert!(has(&findings, "M008", "`f` forwards 6 times in 4"), "{findings:?}");
    // Nobody waits for what the queue passes on.
    assert!(of(&model, "q").forwarding.is_empty());
    assert_eq!(phases(&model, "q")[0].calls[0].kind, CallKind::Asynchronous);
    assert!(has(&findings, "M010", "`q`"), "{findings:?}");
}

/// A scenario of which so many operations started evenly within so many seconds, with work of so many seconds each.
fn timed(operations: u64, window: f64, work: f64) -> Sub {
    let mut sub = Sub::default();
    let customer = sub.scenario("s", operations);
    let name = sub.0.names.intern("s");
    let total = sub.0.scenarios.entry(name).or_default();
    total.first_start = Some(1_000_000_000_000);
    total.last_start = Some(1_000_000_000_000 + (window * 1e9) as i64);
    let entry = sub.entry("a", 1, Interaction::Rendezvous, "f", operations);
    sub.request(customer, FIRST, RequestKind::Synchronous, entry, operations);
    sub.exclusive(entry, FIRST, operations, work);
    sub
}

#[test]
fn the_load_is_the_configured_one_else_the_observed_one_else_one_customer() {
    let load = |sub: &Sub, configuration: &str| {
        let (model, findings, origins) = sub.complete(configuration);
        let arrivals = model.entries.iter().find_map(|entry| entry.open_arrival_rate);
        (origins.scenarios[0].load, origins.scenarios[0].reason, arrivals, findings)
    };
    let steady = timed(101, 10.0, 0.05);
    let (found, reason, arrivals, findings) = load(&steady, "");
    assert_eq!((found, reason, arrivals), (Load::Open { rate: 10.0 }, LoadReason::Observed, Some(10.0)));
    assert!(has(&findings, "M011", "open arrivals of 10/s"), "{findings:?}");
    // Half of a second each at ten a second is more than one processor has.
    let (found, reason, arrivals, findings) = load(&timed(101, 10.0, 0.5), "");
    assert_eq!((found, reason, arrivals), (Load::Open { rate: 10.0 }, LoadReason::Observed, Some(10.0)));
    assert!(has(&findings, "M012", "the observed open arrivals of 10/s, which the model cannot"), "{findings:?}");
    assert_eq!(findings[0].notes, ["processor `a` would be busy 500 % of the time"]);
    let (found, reason, ..) = load(&timed(101, 10.0, 0.5), "[processor.a]\nmultiplicity = 8");
    assert_eq!((found, reason), (Load::Open { rate: 10.0 }, LoadReason::Observed));
    let (found, reason, ..) = load(&timed(3, 10.0, 0.01), "");
    assert_eq!((found, reason), (Load::ALONE, LoadReason::Assumed));
    let (found, reason, ..) = load(&steady, "[scenario.s]\npopulation = 5\nthink_time = \"2 s\"");
    assert_eq!((found, reason), (Load::Closed { population: 5, think_time: 2.0 }, LoadReason::Configured));
    let (found, reason, arrivals, _) = load(&steady, "[scenario.s]\nrate = \"30/min\"");
    assert_eq!((found, reason, arrivals), (Load::Open { rate: 0.5 }, LoadReason::Configured, Some(0.5)));
}

/// A scenario whose operations started at these times, in seconds, with little work each.
fn started(starts: &[f64]) -> Sub {
    let mut sub = timed(starts.len() as u64, 0.0, 1e-6);
    start(&mut sub, "s", starts);
    sub
}

/// Lets the operations of a scenario start at these times, in seconds.
fn start(sub: &mut Sub, scenario: &str, starts: &[f64]) {
    let name = sub.0.names.intern(scenario);
    let total = sub.0.scenarios.entry(name).or_default();
    total.operations = starts.len() as u64;
    (total.first_start, total.last_start) = (None, None);
    for start in starts {
        let start = (start * 1e9) as i64;
        total.starts.add(start, None);
        total.first_start = Some(total.first_start.map_or(start, |first| first.min(start)));
        total.last_start = Some(total.last_start.map_or(start, |last| last.max(start)));
    }
}

/// So many starts, evenly within so many seconds.
fn recording(begin: f64, operations: u32, seconds: f64) -> impl Iterator<Item = f64> {
    (0..operations).map(move |number| begin + seconds * f64::from(number) / f64::from(operations - 1))
}

#[test]
fn the_time_between_recordings_is_no_part_of_a_rate() {
    let of = |starts: &[f64]| {
        let (_, findings, origins) = started(starts).complete("");
        let Load::Open { rate } = origins.scenarios[0].load else { panic!("{findings:?}") };
        (rate, findings)
    };
    // Two days, at 10 and at 20 a second, and a single operation in the night.
    let two: Vec<f64> = recording(0.0, 1001, 100.0).chain([40_000.0]).chain(recording(86_400.0, 1001, 50.0)).collect();
    let (rate, findings) = of(&two);
    assert!((rate - 2000.0 / 150.0).abs() < 1e-6, "{rate}: {findings:?}");
    assert!(has(&findings, "M033", "in 3 parts, and the 86300 s between them"), "{findings:?}");
    let told = findings.iter().find(|finding| finding.code.0 == "M033").expect("it is there");
    assert_eq!(
        told.notes,
        [
            "part 1 has 1001 operations in 100 s: 10/s",
            "part 2 has 1 operation at one time",
            "part 3 has 1001 operations in 50 s: 20/s",
            "all parts together: 13.33/s"
        ]
    );
    assert!(told.hints[0].contains("under `[scenario.s]`") && told.hints[0].contains("or 0.023"), "{told:?}");
    assert!(has(&findings, "M011", "13.33/s"), "{findings:?}");
    // A load that is configured needs no rate.
    let (_, findings, _) = started(&two).complete("[scenario.s]\nrate = 3");
    assert!(!has(&findings, "M033", ""), "{findings:?}");
    // Few operations at a time, or pauses as chance brings them, are how the operations come.
    let batches: Vec<f64> = (0..50).flat_map(|batch| recording(f64::from(batch) * 100.0, 5, 0.1)).collect();
    let uneven: Vec<f64> = recording(0.0, 100, 10.0).chain(recording(15.0, 100, 10.0)).collect();
    for (starts, seconds) in [(batches, 4900.1), (uneven, 25.0)] {
        let (rate, findings) = of(&starts);
        assert!((rate - (starts.len() - 1) as f64 / seconds).abs() < 1e-6, "{rate}");
        assert!(!has(&findings, "M033", ""), "{findings:?}");
    }
}

#[test]
fn while_another_scenario_goes_on_there_is_no_pause() {
    let jobs: Vec<f64> = (0..40).flat_map(|job| recording(f64::from(job) * 100.0, 60, 0.5)).collect();
    let rate_of = |others: &[f64]| {
        let mut sub = started(&jobs);
        start(&mut sub, "t", others);
        let (_, findings, origins) = sub.complete("");
        let Load::Open { rate } = origins.scenarios[0].load else { panic!("{findings:?}") };
        (rate, has(&findings, "M033", ""))
    };
    let steady: Vec<f64> = recording(0.0, 8001, 4000.0).collect();
    let (rate, told) = rate_of(&steady);
    assert!((rate - 2399.0 / 3900.5).abs() < 1e-6 && !told, "{rate}");
    // One that was there for a few of the pauses does not say that the recording went on in the others.
    let short: Vec<f64> = recording(0.0, 801, 400.0).collect();
    let (rate, told) = rate_of(&short);
    assert!(rate > 10.0 && told, "{rate}");
}

#[test]
fn copies_of_a_task_share_its_requests() {
    let mut sub = timed(101, 10.0, 0.05);
    let back = sub.entry("back", 1, Interaction::Rendezvous, "g", 202);
    let front = sub.entry("a", 1, Interaction::Rendezvous, "f", 0);
    sub.request(front, FIRST, RequestKind::Synchronous, back, 202);
    let (model, _, _) = sub.complete("[task.back]\nreplicas = 4\n[task.a]\nreplicas = 2\n[scenario.s]\nrate = 10");
    let (front, back) = (model.task_named("a").expect("it is there"), model.task_named("back").expect("it is there"));
    assert_eq!(model.tasks[front.index()].fan_out, [(back, 2)]);
    assert_eq!(phases(&model, "f")[0].calls[0].mean, 1.0);
    assert_eq!(of(&model, "f").open_arrival_rate, Some(5.0));
    assert_eq!(model.processors[model.tasks[back.index()].processor.index()].replicas, 4);
}

#[test]
fn settings_without_effect_are_told_with_what_may_have_been_meant() {
    let text = "[task.wed]\nthreads = 2\n[scenario.by]\nrate = 1\n[processor.dbs]\n[demand.activity]\nwrit = 1\n";
    let (_, findings, _) = shop().complete(text);
    for (name, meant) in [("wed", "web"), ("by", "buy"), ("dbs", "db"), ("writ", "write")] {
        let finding = findings
            .iter()
            .find(|finding| finding.code.0 == "M006" && finding.message.contains(&format!("`{name}`")))
            .unwrap_or_else(|| panic!("nothing is said of {name}: {findings:?}"));
        assert_eq!(finding.hints, [format!("did you mean `{meant}`?")]);
    }
}

#[test]
fn nothing_makes_no_model() {
    let errors = complete(&SubModel::new(), &Configuration::default()).expect_err("there is nothing");
    assert_eq!(errors.0[0].code.0, "M007");
}

#[test]
fn work_that_nobody_measured_is_told() {
    let mut sub = Sub::default();
    let customer = sub.scenario("s", 2);
    let entry = sub.entry("a", 1, Interaction::Rendezvous, "f", 2);
    sub.request(customer, FIRST, RequestKind::Synchronous, entry, 2);
    sub.activity(entry, FIRST, "x", 2, None);
    sub.activity(entry, FIRST, "y", 2, None);
    let (_, findings, _) = sub.complete("");
    assert!(has(&findings, "M013", "all demands are zero"), "{findings:?}");
    let (model, findings, _) = sub.complete("[demand.activity]\nx = \"3 ms\"");
    assert!(has(&findings, "M014", "`y` of task `a`"), "{findings:?}");
    assert_eq!(phases(&model, "f")[0].demand, 0.003);
    sub.activity(entry, FIRST, "x", 1, Some(0.5));
    let (model, findings, _) = sub.complete("");
    assert!(has(&findings, "M015", "1 of 3 events"), "{findings:?}");
    assert_eq!(phases(&model, "f")[0].demand, 0.25);
}

#[test]
fn the_most_special_resource_function_counts() {
    let text = "[demand]\ndefault = 1\n[demand.activity]\nx = 2\n[demand.task.a]\ndefault = 3\n[demand.task.b.activity]\nx = 4";
    let (configuration, _) = Configuration::parse(&"t".into(), text).expect("it is sound");
    for (task, activity, seconds) in
        [("c", "y", 1.0), ("c", "x", 2.0), ("a", "x", 2.0), ("a", "y", 3.0), ("b", "x", 4.0)]
    {
        let demands = configuration.demands().expect("they are sound");
        assert_eq!(demands.of(task, activity), Some(seconds), "{task} {activity}");
    }
    assert_eq!(Configuration::default().demands().expect("there are none").of("a", "x"), None);
}

#[test]
fn mistakes_in_a_configuration() {
    // Text, code, the place it points at, words of message, notes, label or hints.
    for (text, code, place, words) in [
        ("[task.a]\nthreads = \"many\"", "M002", "\"many\"", "a whole number or \"infinite\""),
        ("[task.a]\nthreads = 0", "M003", "0", "at least 1"),
        ("[task.a]\nthreads = 1.5", "M002", "1.5", "float"),
        ("[task.a]\npriority = 99999999999", "M003", "99999999999", "between"),
        ("[task]\na = 3", "M002", "3", "a table"),
        ("task = 3", "M002", "3", "a table"),
        ("[demand]\ndefault = \"2 parsecs\"", "M020", "parsecs", "`parsecs` is not a unit of time"),
        ("[demand]\ndefault = -1", "M003", "-1", "negative"),
        ("[demand]\ndefault = \"1 ms - 2 ms\"", "M003", "\"1 ms - 2 ms\"", "negative"),
        ("[demand]\ndefault = \"2 * 3\"", "M021", "\"2 * 3\"", "a demand is a time"),
        ("[demand]\ndefault = \"1 ms + 3\"", "M021", "1 ms + 3", "a time cannot be added to a number"),
        ("[demand]\ndefault = \"1 ms * (2 \"", "M020", "", "ends where `)` is expected"),
        ("[demand]\ndefault = \"1 ms * rwos\"\n[parameters]\nrows = 3", "M022", "rwos", "did you mean `rows`?"),
        ("[parameters]\na = \"b\"\nb = \"2 * c\"\nc = \"a + 1\"", "M023", "a", "`a` needs `b` needs `c` needs `a`"),
        ("[parameters]\n\"a b\" = 1", "M003", "\"a b\"", "names of parameters are letters"),
        ("[parameters]\na = \"1 / 0\"", "M003", "1 / 0", "divides by zero"),
        ("[profile.p]\npopulation = 3", "M025", "p", "has no scenario"),
        (
            "[profile.p]\nrate = 1\npopulation = 2\n[profile.p.scenario]\na = 1",
            "M005",
            "rate",
            "both a rate and a population",
        ),
        ("[profile.p.scenario]\na = -1", "M003", "-1", "not below zero"),
        ("[scenario.a]\nrate = 1\n[profile.p.scenario]\na = 1", "M005", "a", "has a load of its own"),
        ("[demand]\ndefault = nan", "M003", "nan", "finite"),
        ("[demand.activity]\nx = true", "M002", "true", "boolean"),
        ("[scenario.s]\nrate = 0", "M003", "0", "above zero"),
        ("[scenario.s]\nrate = 1\npopulation = 2", "M005", "rate", "both a rate and a population"),
        ("[processor.p]\nscheduling = \"pss\"", "M003", "\"pss\"", "did you mean `ps`?"),
        ("[processor.p]\nspeed = 0", "M003", "0", "above zero"),
        ("[task.a]\nscheduling = \"ps\"", "M003", "\"ps\"", "known for tasks"),
        ("[task.a\nthreads = 1", "M001", "", "not TOML"),
        ("[task.a]\nthreads = 1\nthreads = 2", "M001", "threads", "not TOML"),
    ] {
        let errors = Configuration::parse(&"t.toml".into(), text).expect_err(text).0;
        let said = |finding: &Diagnostic| {
            let all =
                [&[finding.message.clone(), finding.label.clone()], &finding.notes[..], &finding.hints[..]].concat();
            finding.code.0 == code && all.iter().any(|text| text.contains(words))
        };
        let finding = errors.iter().find(|finding| said(finding)).unwrap_or_else(|| panic!("{text}: {errors:?}"));
        if let dyelog::diagnostic::Place::Range { start, end, .. } = finding.place {
            assert!(place.is_empty() || &text[start..end] == place, "{text}: points at {:?}", &text[start..end]);
        } else {
            assert_eq!(place, "", "{text}: {:?}", finding.place);
        }
    }
}

#[test]
fn all_mistakes_of_a_configuration_are_told_at_once() {
    let text = "[task.a]\nthreads = \"x\"\nthread = 3\n[scenario.s]\nrate = -1\n[demand]\ndefault = \"1 mss\"\n";
    let errors = Configuration::parse(&"t.toml".into(), text).expect_err("it is wrong").0;
    let codes: Vec<&str> = errors.iter().map(|finding| finding.code.0).collect();
    assert_eq!(codes, ["M002", "M004", "M003", "M020"]);
    assert_eq!(errors[1].severity, Severity::Warning);
    assert_eq!(errors[1].hints, ["did you mean `threads`?"]);
}

#[test]
fn an_unknown_key_is_only_a_warning() {
    let (configuration, findings) =
        Configuration::parse(&"t.toml".into(), "[tsak.a]\n[task.a]\nthreads = 2\n").expect("it is usable");
    assert_eq!(configuration.tasks["a"].threads, Some(Multiplicity::Finite(2)));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].hints, ["did you mean `task`?"]);
}

/// What one operation adds to a sub-model: an entry with work and requests.
#[derive(Clone, Debug)]
pub struct Piece {
    task: u8,
    service: u8,
    second: bool,
    invocations: u64,
    demands: Vec<(u8, u32)>,
    functions: Vec<(u8, u64)>,
    requests: Vec<(u8, u64)>,
    run: u8,
}

pub fn piece() -> impl Strategy<Value = Piece> {
    (
        0..4_u8,
        0..3_u8,
        any::<bool>(),
        1..20_u64,
        prop::collection::vec((0..3_u8, 0..1_000_000_u32), 0..4),
        prop::collection::vec((0..3_u8, 1..5_u64), 0..4),
        prop::collection::vec((0..3_u8, 1..9_u64), 0..4),
        any::<u8>(),
    )
        .prop_map(|(task, service, second, invocations, demands, functions, requests, run)| Piece {
            task,
            service,
            second,
            invocations,
            demands,
            functions,
            requests,
            run,
        })
}

/// The sub-model of one piece. Tasks ask only those of greater number, so that there is no circle.
pub fn submodel_of(piece: &Piece) -> SubModel {
    let mut sub = Sub::default();
    let scenario = ["s", "t"][usize::from(piece.run % 2)];
    let customer = sub.scenario(scenario, piece.invocations);
    let (task, service) = (format!("task{}", piece.task), format!("op{}", piece.service));
    let entry = sub.entry(&task, 1, Interaction::Rendezvous, &service, piece.invocations);
    let witness = Witness {
        scenario: scenario.into(),
        run: piece.run.to_string().into(),
        thread: 1,
        index: 1,
        file: "f".into(),
        item: "1".into(),
    };
    sub.0.entry_mut(entry).add_witness(&witness);
    sub.request(customer, FIRST, RequestKind::Synchronous, entry, piece.invocations);
    let at = if piece.second { SECOND } else { FIRST };
    for (name, micros) in &piece.demands {
        sub.activity(entry, at, &format!("m{name}"), 1, Some(f64::from(*micros) * 1e-6));
    }
    for (name, count) in &piece.functions {
        sub.activity(entry, FIRST, &format!("f{name}"), *count, None);
    }
    for (to, count) in &piece.requests {
        let to = sub.entry(&format!("task{}", 4 + to), 1, Interaction::Rendezvous, "op", *count);
        sub.request(entry, at, RequestKind::Synchronous, to, *count);
    }
    sub.0
}

const FUNCTIONS: &str = "[demand.activity]\nf0 = 0.1\nf1 = \"0.7 ms\"\nf2 = \"3 us\"\n[defaults]\nthreads = 1\n";

fn bytes_of(sub: &SubModel) -> String {
    let (configuration, _) = Configuration::parse(&"t".into(), FUNCTIONS).expect("it is sound");
    let (model, findings, origins) = complete(sub, &configuration).expect("there are operations");
    format!("{}{findings:?}{:?}", Language::Lqn.write(&model), origins.scenarios)
}

pub fn merged(parts: &[SubModel]) -> SubModel {
    parts.iter().fold(SubModel::new(), |mut sum, part| {
        sum.merge(part);
        sum
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_order_of_merging_does_not_change_a_byte(
        (pieces, order) in prop::collection::vec(piece(), 1..8)
            .prop_flat_map(|pieces| {
                let order = Just((0..pieces.len()).collect::<Vec<_>>()).prop_shuffle();
                (Just(pieces), order)
            }),
        cut in 0..8_usize,
    ) {
        let parts: Vec<SubModel> = pieces.iter().map(submodel_of).collect();
        let shuffled: Vec<SubModel> = order.iter().map(|place| parts[*place].clone()).collect();
        let straight = bytes_of(&merged(&parts));
        let (left, right) = shuffled.split_at(cut.min(shuffled.len()));
        let grouped = merged(&[merged(left), SubModel::new(), merged(right)]);
        prop_assert_eq!(straight, bytes_of(&grouped));
    }

    #[test]
    fn means_keep_totals(pieces in prop::collection::vec(piece(), 1..8)) {
        let sub = merged(&pieces.iter().map(submodel_of).collect::<Vec<_>>());
        let (configuration, _) = Configuration::parse(&"t".into(), "").expect("it is sound");
        let (model, _, origins) = complete(&sub, &configuration).expect("there are operations");
        for (entry, origin) in model.entries.iter().zip(&origins.entries) {
            if origin.interaction == Interaction::Customer {
                continue;
            }
            let total = sub.entry(origin.total);
            let Body::Phases(phases) = &entry.body else { panic!("there are no branches") };
            for phase in 1..=3_u8 {
                let work = total.work.iter().filter(|(at, _)| at.phase == phase).map(|(_, work)| work);
                let cpu: f64 =
                    work.clone().flat_map(|work| work.activities.values()).map(|seen| seen.cpu.sum.as_f64()).sum();
                let requests: u64 = work.flat_map(|work| work.requests.values()).map(|seen| seen.count).sum();
                let per = total.invocations as f64;
                let (demand, calls) = phases.get(usize::from(phase) - 1).map_or((0.0, 0.0), |work| {
                    (work.demand * per, work.calls.iter().map(|call| call.mean * per).sum())
                });
                prop_assert!((demand - cpu).abs() <= 1e-9 * cpu.max(1e-9), "{} {}", demand, cpu);
                prop_assert!((calls - requests as f64).abs() <= 1e-9 * calls.max(1.0), "{} {}", calls, requests);
            }
        }
    }
}
