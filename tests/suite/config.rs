//! Configuration beyond single values: parameters, profiles, and settings without effect.

use dyelog::diagnostic::Severity;
use dyelog::lqn::submodel::{Interaction, RequestKind};
use dyelog::lqn::{Multiplicity, Scheduling};
use dyelog::model::config::{Dimension, Quantity};
use dyelog::model::{Configuration, DemandSource, Load, complete};
use proptest::prelude::*;

use crate::cli::{Folder, run};
use crate::model::{FIRST, Sub, has, phases, shop};

fn parse(text: &str) -> Configuration {
    let (configuration, findings) = Configuration::parse(&"t.toml".into(), text).expect(text);
    assert_eq!(findings, [], "{text}");
    configuration
}

#[test]
fn parameters_are_worked_out_when_asked_for() {
    let mut configuration = parse(
        "[parameters]\nrows = 20\npage = \"rows / 10\"\nseek = \"4 ms\"\n\
         [demand.activity]\nlookup = \"2 ms + 0.1 ms * rows\"\nread = \"max(seek, 1 ms) * page\"\nplain = \"3\"\n",
    );
    let demands = configuration.demands().expect("they are sound");
    assert_eq!(
        ["lookup", "read", "plain", "other"].map(|name| demands.of("t", name)),
        [Some(0.004), Some(0.008), Some(3.0), None]
    );
    configuration.set_parameter("rows", Quantity::number(100.0)).expect("there is such a parameter");
    let demands = configuration.demands().expect("they are sound");
    assert_eq!((demands.of("t", "lookup"), demands.of("t", "read")), (Some(0.012), Some(0.04)));
    assert_eq!(configuration.parameters().expect("they are sound")["page"], Quantity::number(10.0));
    let unknown = configuration.set_parameter("rwos", Quantity::number(1.0)).expect_err("there is no such parameter");
    assert_eq!((unknown.code.0, &unknown.hints[..]), ("M022", &["did you mean `rows`?".to_owned()][..]));
    let unit = configuration.set_parameter("seek", Quantity::number(1.0)).expect_err("it is a time");
    assert_eq!((unit.code.0, &*unit.message), ("M021", "parameter `seek` is a time, not a number"));
    assert_eq!(Quantity::seconds(1.0).dimension, Dimension::Time);
}

#[test]
fn a_value_from_outside_may_spoil_a_demand() {
    let mut configuration = parse("[parameters]\nn = 2\n[demand]\ndefault = \"1 ms * (n - 1)\"\n");
    configuration.set_parameter("n", Quantity::number(0.0)).expect("there is such a parameter");
    let errors = complete(&shop().0, &configuration).expect_err("a demand below zero");
    assert!(has(&errors.0, "M003", "negative"), "{errors:?}");
}

#[test]
fn long_chains_of_parameters_need_no_stack() {
    let mut text = String::from("[parameters]\np0 = 1\n");
    for number in 1..20_000 {
        text.push_str(&format!("p{number} = \"p{} + 0\"\n", number - 1));
    }
    text.push_str("[demand]\ndefault = \"1 s * p19999\"\n");
    assert_eq!(parse(&text).demands().expect("they are sound").of("t", ""), Some(1.0));
}

#[test]
fn warnings_of_what_has_no_effect() {
    let (_, findings) = Configuration::parse(&"t".into(), "[parameters]\nrows = 3\n").expect("it is usable");
    assert!(has(&findings, "M024", "nothing uses parameter `rows`"), "{findings:?}");
    let text = "[profile.p.scenario]\na = 3\nb = 1\n";
    let (_, findings) = Configuration::parse(&"t".into(), text).expect("it is usable");
    assert!(has(&findings, "M025", "add up to 4") && findings[0].severity == Severity::Note, "{findings:?}");

    let sub = shop();
    let (_, findings, _) = sub.complete("[task.web]\nprocessor = \"host\"\n");
    assert!(has(&findings, "M026", "`cache`, `db`, `log` have no processor"), "{findings:?}");
    let (_, findings, _) = sub.complete("[demand.activity]\nparse = \"1 ms\"\nwrite = \"1 ms\"\n");
    assert!(has(&findings, "M027", "the function of activity `parse` has no effect"), "{findings:?}");
    assert!(!has(&findings, "M027", "`write`"), "{findings:?}");
    let (_, findings, _) = sub.complete("[profile.p.scenario]\nbuy = 0.5\nbuys = 0.5\n");
    let near = findings.iter().find(|finding| finding.message.contains("`buys`")).expect("it is told of");
    assert_eq!((near.code.0, &near.hints[..]), ("M006", &["did you mean `buy`?".to_owned()][..]));
    let (_, findings, _) = sub.complete("[profile.buy]\npopulation = 1\n[profile.buy.scenario]\nsell = 1\n");
    assert!(has(&findings, "M005", "has the name of a scenario"), "{findings:?}");
    let (_, findings, _) = sub.complete("[demand.entry]\nqurey = \"1 ms\"\n");
    assert!(has(&findings, "M006", "no entry of the model is named `qurey`"), "{findings:?}");
}

#[test]
fn a_demand_of_an_entry_is_that_of_an_invocation() {
    let (model, findings, origins) =
        shop().complete("[demand.entry]\nquery = \"7 ms\"\n\"web.get\" = \"1 ms\"\nlog_1 = \"2 ms\"\n");
    assert_eq!(phases(&model, "query")[0].demand, 0.007);
    assert_eq!(phases(&model, "log_1")[0].demand, 0.002);
    assert!(!has(&findings, "M014", "`write`"), "nothing else is needed: {findings:?}");
    let query = model.entry_named("query").expect("it is there");
    assert_eq!(origins.entries[query.index()].sources, [DemandSource::Function]);
    assert_eq!(phases(&model, "web.get")[0].demand, 0.002, "what was measured counts first");
    assert!(has(&findings, "M027", "the demand of entry `web.get` has no effect"), "{findings:?}");
}

#[test]
fn what_was_not_measured_beside_what_was_counts_as_nothing_in_branches_too() {
    let (shop, config) = ("traces/shop.otlp.jsonl", "[demand]\ndefault = \"1 ms\"\n");
    let folder = Folder::new();
    let given = folder.file("default.toml", config);
    // Every service of that trace measured its CPU time, so nothing is left for a default to decide.
    let without = run(&["model", shop]);
    let with = run(&["model", shop, "--config", &given]);
    assert_eq!((without.code, with.code), (0, 0), "{}{}", without.err, with.err);
    assert_eq!(without.out, with.out);
}

#[test]
fn a_processor_named_like_another_is_told_of() {
    let near = |text: &str| {
        let (_, findings, _) = shop().complete(text);
        findings.into_iter().filter(|finding| finding.code.0 == "M029").collect::<Vec<_>>()
    };
    let typo = "[processor.shop-host]\nmultiplicity = 4\n[task.web]\nprocessor = \"shop-host\"\n[task.db]\nprocessor = \"shop-hots\"\n";
    let found = near(typo);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("`shop-hots`") && found[0].hints[0].contains("`shop-host`"), "{found:?}");
    // Without a table, the one that fewer tasks name.
    let found = near("[task]\nweb.processor = \"front\"\ncache.processor = \"front\"\ndb.processor = \"frnot\"\n");
    assert_eq!(found.len(), 1, "{found:?}");
    // Machines are numbered, and one with a table was meant.
    assert_eq!(
        near("[task.web]\nprocessor = \"host-1\"\n[task.db]\nprocessor = \"host-2\"\n[processor.host-1]\nspeed = 2\n"),
        []
    );
    assert_eq!(near(&format!("{typo}[processor.shop-hots]\nspeed = 2\n")), []);
}

#[test]
fn all_that_is_wrong_with_a_configuration_is_told_at_once() {
    let folder = Folder::new();
    let file = folder.file("wrong.toml", "[task.gatewya]\nthreads = 0\n[scenario.nobody]\nrate = \"3/s\"\n");
    let checked = run(&["config", "check", &file, "traces/shop.otlp.jsonl"]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    for words in ["[M003]", "[M006]", "`gatewya`", "did you mean `gateway`?", "`nobody`"] {
        assert!(checked.out.contains(words), "{words}: {}", checked.out);
    }
}

/// Two scenarios, of which 10 and 7 operations were seen, through one front end.
fn two() -> Sub {
    let mut sub = Sub::default();
    for (name, operations, requests) in [("browse", 10, 10), ("buy", 7, 21)] {
        let customer = sub.scenario(name, operations);
        let page = sub.entry("web", 1, Interaction::Rendezvous, name, requests);
        sub.request(customer, FIRST, RequestKind::Synchronous, page, requests);
        sub.activity(page, FIRST, name, requests, Some(0.001));
    }
    sub
}

#[test]
fn a_profile_is_one_customer_in_proportion() {
    let (model, _, origins) = two().complete(
        "[profile.shopping]\npopulation = 5\nthink_time = \"2 s\"\n[profile.shopping.scenario]\nbrowse = 0.6\nbuy = 0.4\n",
    );
    let customer = &model.tasks[0];
    assert_eq!((&*customer.name, customer.scheduling), ("Cu_shopping", Scheduling::Reference));
    assert_eq!((customer.multiplicity, customer.think_time), (Multiplicity::Finite(5), 2.0));
    let calls: Vec<f64> = phases(&model, "Cu_shopping")[0].calls.iter().map(|call| call.mean).collect();
    assert_eq!(calls, [0.6, 1.2]);
    assert_eq!(model.tasks.len(), 2, "the scenarios have no customers of their own");
    let members: Vec<(&str, f64)> = origins.scenarios[0].members.iter().map(|(name, part)| (&**name, *part)).collect();
    assert_eq!(members, [("browse", 0.6), ("buy", 0.4)]);
    let (open, _, origins) =
        two().complete("[profile.mix]\nrate = \"10/s\"\n[profile.mix.scenario]\nbrowse = 3\nbuy = 2\n");
    assert_eq!(origins.scenarios[0].load, Load::Open { rate: 10.0 });
    let rates: Vec<Option<f64>> = open.entries.iter().map(|entry| entry.open_arrival_rate).collect();
    assert_eq!(rates, [Some(6.0), Some(12.0)]);
}

#[test]
fn a_task_may_stand_for_the_customer() {
    let mut sub = Sub::default();
    let customer = sub.scenario("buy", 4);
    let shell = sub.entry("shell", 1, Interaction::Rendezvous, "", 4);
    let get = sub.entry("web", 1, Interaction::Rendezvous, "get", 12);
    sub.request(customer, FIRST, RequestKind::Synchronous, shell, 4);
    sub.request(shell, FIRST, RequestKind::Synchronous, get, 12);
    let text = "[scenario.buy]\ncustomer = \"shell\"\npopulation = 2\n";
    let (model, findings, _) = sub.complete(text);
    assert_eq!(phases(&model, "Cu_buy")[0].calls[0].mean, 3.0);
    assert!(model.task_named("shell").is_none());
    assert!(
        !findings.iter().any(|finding| finding.severity == Severity::Warning && finding.code.0 != "M013"),
        "{findings:?}"
    );
    let (_, findings, _) = sub.complete(&format!("{text}[task.shell]\nthreads = 3\n"));
    assert!(has(&findings, "M028", "`shell` is a customer"), "{findings:?}");
    let (_, findings, _) = sub.complete("[scenario.buy]\ncustomer = \"web\"\n");
    assert!(has(&findings, "M019", "`web` cannot stand for the customer"), "{findings:?}");
    let (_, findings, _) = sub.complete("[scenario.buy]\ncustomer = \"shel\"\n");
    assert!(has(&findings, "M006", "`shel`"), "{findings:?}");
    // Who is called by others as well is a service.
    let other = sub.scenario("sell", 1);
    sub.request(other, FIRST, RequestKind::Synchronous, shell, 1);
    sub.0.entry_mut(shell).invocations += 1;
    let (model, findings, _) = sub.complete(text);
    assert!(has(&findings, "M019", "`shell` cannot stand for the customer") && model.task_named("shell").is_some());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let _ = Configuration::parse(&"t".into(), &text);
    }

    #[test]
    fn any_arithmetic_is_survived(words in prop::collection::vec(
        prop::sample::select(vec!["1", "2 ms", "a", "b", "+", "-", "*", "/", "(", ")", "min(", "max(", ",", "0", "1e400", "s"]), 0..40)
    ) {
        let text = format!("[parameters]\na = 2\nb = \"a * 1 ms\"\n[demand]\ndefault = \"{}\"\n", words.join(" "));
        let _ = Configuration::parse(&"t".into(), &text);
    }
}
