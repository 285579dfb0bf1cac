//! Rates of operations of which only a part was kept.

use std::io::Read;

use dyelog::diagnostic::Diagnostic;
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::model::{Configuration, Load, complete};
use dyelog::tlc::{ReduceOptions, Reducer, Rules};
use dyelog::trace::{ReadOptions, TraceNames, read};

use crate::generator::Random;
use crate::servers::demand;
use crate::support::shared;
use crate::waits::{Span, exponential, operation};

/// One operation a second, each of one span with these attributes and this trace state.
fn operations(count: u64, attributes: &str, state: &str) -> String {
    (0..count).fold(String::new(), |text, number| {
        text + &format!(
                "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s\"}}}}]}},\
                 \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"ffffffffffffffffff{:014x}\",\"spanId\":\"00000000000000aa\",\"name\":\"go\",\
                 \"kind\":2,\"traceState\":\"{state}\",\"startTimeUnixNano\":\"1700000{number:03}000000001\",\
                 \"endTimeUnixNano\":\"1700000{number:03}001000001\",\"attributes\":[{attributes}]}}]}}]}}]}}\n",
                0xff_ffff_ffff_0000_u64 + number
            )
    })
}

fn reduced(text: &[u8], sampling: Option<f64>) -> SubModel {
    let rules = Rules::shipped();
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, ReduceOptions::default());
    let options = ReadOptions { sampling, ..ReadOptions::default() };
    read("t.json", text, &options, &mut names, &mut reducer).expect("it reads");
    reducer.finish(&names).expect("it reduces").submodel
}

/// The rate of the only scenario, and what is said of it.
fn rate(sub: &SubModel) -> (f64, Vec<Diagnostic>) {
    let (_, findings, origins) = complete(sub, &Configuration::default()).expect("there is something to model");
    (origins.scenarios[0].observed_rate.expect("there is a rate"), findings)
}

/// Whether a note has these words.
fn noted(findings: &[Diagnostic], words: &str) -> bool {
    findings.iter().any(|finding| finding.notes.iter().any(|note| note.contains(words)))
}

fn tag(key: &str, kind: &str, value: &str) -> String {
    format!("{{\"key\":\"{key}\",\"value\":{{\"{kind}\":{value}}}}}")
}

#[test]
fn a_recorded_weight_scales_the_rate() {
    let jaeger = |kind: &str, parameter: &str| {
        format!("{},{parameter}", tag("sampler.type", "stringValue", &format!("\"{kind}\"")))
    };
    let number = |value: &str| tag("sampler.param", "doubleValue", value);
    for (attributes, state, wanted) in [
        (jaeger("probabilistic", &number("0.25")), "", 4.0),
        (jaeger("probabilistic", &tag("sampler.param", "stringValue", "\"0.25\"")), "", 4.0),
        (jaeger("const", &tag("sampler.param", "boolValue", "true")), "", 1.0),
        (tag("X-SampleRatio", "doubleValue", "0.5"), "", 2.0),
        (tag("sampleRate", "intValue", "\"20\""), "", 20.0),
        (String::new(), "ot=th:c", 4.0),
        // A span's own attribute is trusted more.
        (tag("sampleRate", "intValue", "\"20\""), "ot=th:c", 20.0),
    ] {
        let sub = reduced(operations(101, &attributes, state).as_bytes(), None);
        let (rate, findings) = rate(&sub);
        assert!((rate - wanted).abs() < 1e-6, "{attributes} {state}: {rate}");
        assert!(!noted(&findings, "lower bounds"), "{findings:?}");
        assert_eq!(noted(&findings, "each of them stands for"), wanted > 1.0);
        let (again, _) = saved::parse(&"s.json".into(), &saved::write(&sub, "name")).expect("it was just written");
        assert_eq!(again.scenarios.values().next(), sub.scenarios.values().next());
    }
}

#[test]
fn what_is_asked_for_is_trusted_most_and_what_nobody_knows_is_told() {
    let recorded = operations(101, &tag("sampleRate", "intValue", "\"20\""), "");
    assert!((rate(&reduced(recorded.as_bytes(), Some(0.1))).0 - 10.0).abs() < 1e-6);
    let unknown = operations(101, "", "");
    assert!((rate(&reduced(unknown.as_bytes(), Some(0.1))).0 - 10.0).abs() < 1e-6);
    let (rate, findings) = rate(&reduced(unknown.as_bytes(), None));
    assert!((rate - 1.0).abs() < 1e-6);
    assert!(noted(&findings, "lower bounds"), "{findings:?}");
}

/// A sampler that limits rates tells no weight: how many more there were nobody knows, though trace identifiers fill their range. Requests that are counted, or a probability
/// that is given, tell it.
#[test]
fn a_recorded_sampler_without_a_probability_leaves_lower_bounds() {
    let jaeger = |kind: &str, parameter: &str| {
        tag("sampler.type", "stringValue", &format!("\"{kind}\""))
            + ","
            + &tag("sampler.param", "doubleValue", parameter)
    };
    let all = |_: &str, _: u128| true;
    let of = |sub: &SubModel| {
        let (_, findings, origins) = complete(sub, &Configuration::default()).expect("there is something to model");
        let own = &origins.scenarios[0];
        (own.observed_rate.expect("there is a rate"), own.is_least_rate, own.load, own.interarrival_cv2, findings)
    };
    for (attributes, words) in [
        (jaeger("ratelimiting", "2.5"), "(at most 2.5 traces a second of a process)"),
        (jaeger("adaptive", "7"), "that spans name without a probability"),
        (tag("sampling.policy", "stringValue", "\"rate_limiting\""), "that spans name without a probability"),
    ] {
        let sub = kept(1200, |_| "go", all, &attributes);
        let (again, _) = saved::parse(&"s.json".into(), &saved::write(&sub, "name")).expect("it was just written");
        assert_eq!(again.scenarios.values().next(), sub.scenarios.values().next());
        let (rate, is_least, load, cv2, findings) = of(&sub);
        assert!((rate - 10.0).abs() < 1e-6 && is_least && cv2.is_none(), "{rate} {cv2:?}");
        assert!(matches!(load, Load::Open { .. }), "{load:?}");
        assert!(noted(&findings, words) && noted(&findings, "lower bounds"), "{findings:?}");
        assert!(findings.iter().any(|own| own.code.0 == "M067"), "{findings:?}");
        assert!(!noted(&findings, "all operations are taken to be traced"), "{findings:?}");
    }
    let unrecorded = of(&kept(1200, |_| "go", all, ""));
    assert!(!unrecorded.1 && noted(&unrecorded.4, "all operations are taken to be traced"), "{unrecorded:?}");
    // A weight beside it tells more, wherever it stands.
    let weighed = operations(101, &jaeger("ratelimiting", "2"), "ot=th:c");
    assert!((rate(&reduced(weighed.as_bytes(), None)).0 - 4.0).abs() < 1e-6);
    let given = rate(&reduced(operations(101, &jaeger("ratelimiting", "2"), "").as_bytes(), Some(0.1)));
    assert!((given.0 - 10.0).abs() < 1e-6 && !noted(&given.1, "lower bounds"), "{given:?}");
}

/// Operations that stand for none tell demand and structure. Beside others they leave rates to these; by themselves they were as many at least.
#[test]
fn operations_that_stand_for_none_keep_their_demand() {
    let lower = tag("sampler.type", "stringValue", "\"lowerbound\"");
    for (attributes, state) in [(&*lower, ""), ("", "ot=p:63")] {
        let sub = reduced(operations(101, attributes, state).as_bytes(), None);
        let (model, findings, origins) = complete(&sub, &Configuration::default()).expect("there is a model");
        let own = &origins.scenarios[0];
        assert!((own.observed_rate.expect("there is a rate") - 1.0).abs() < 1e-6 && own.is_least_rate);
        assert!(noted(&findings, "lower bounds") && !noted(&findings, "stands for 0"), "{findings:?}");
        assert!((demand(&model) - 1e-3).abs() < 1e-5, "{}", demand(&model));
    }
    // One of three counts, and for two.
    let one =
        tag("sampler.type", "stringValue", "\"probabilistic\"") + "," + &tag("sampler.param", "doubleValue", "0.5");
    let (one, other) = (operations(120, &one, ""), operations(120, &lower, ""));
    let pairs = one.lines().zip(other.lines()).enumerate();
    let lines: Vec<&str> = pairs.map(|(number, (one, other))| if number % 3 == 0 { one } else { other }).collect();
    let mixed = lines.join("\n");
    let sub = reduced(mixed.as_bytes(), None);
    let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there is a model");
    assert!((origins.scenarios[0].observed_rate.expect("there is a rate") - 2.0 / 3.0).abs() < 0.01);
    assert!(!origins.scenarios[0].is_least_rate && noted(&findings, "by how they were sampled"), "{findings:?}");
}

/// Of two scenarios one was kept beside those that count: it has a lower bound, and the other its rate.
#[test]
fn a_scenario_that_stands_for_none_is_told_beside_others() {
    let (lower, all) =
        (tag("sampler.type", "stringValue", "\"lowerbound\""), tag("sampler.type", "stringValue", "\"const\""));
    let name = |number: u64| if number.is_multiple_of(4) { "often" } else { "seldom" };
    let text = lines(2000, name, |_, _| true, "TAGS");
    let tagged = |line: &str| line.replace("TAGS", if line.contains("\"seldom\"") { &lower } else { &all }) + "\n";
    let text: String = text.lines().map(tagged).collect();
    let (_, findings, origins) =
        complete(&reduced(text.as_bytes(), None), &Configuration::default()).expect("there is a model");
    let least: Vec<(&str, bool)> = origins.scenarios.iter().map(|own| (&*own.name, own.is_least_rate)).collect();
    assert_eq!(least, [("s often", false), ("s seldom", true)]);
    assert!(origins.scenarios.iter().all(|own| own.observed_rate.is_some_and(|rate| rate > 2.0)));
    let told = findings.iter().find(|own| own.code.0 == "M069").expect("it is told");
    assert!(told.notes.iter().any(|note| note.contains("of `s seldom` it is not known")), "{told:?}");
    assert!(!told.notes.iter().any(|note| note.contains("0 %")), "{told:?}");
}

/// Operations that a policy kept tell no rate, but for policies that draw at random; a part of them is counted.
#[test]
fn what_a_policy_kept_is_named() {
    let policy = |name: &str| tag("sampling.policy", "stringValue", &format!("\"{name}\""));
    let of = |text: &str| {
        let sub = reduced(text.as_bytes(), None);
        let (again, _) = saved::parse(&"s.json".into(), &saved::write(&sub, "name")).expect("it was just written");
        assert_eq!(again.scenarios.values().next(), sub.scenarios.values().next());
        let (_, findings) = rate(&sub);
        (sub.scenarios.values().next().expect("there is one").chosen, findings.iter().any(|own| own.code.0 == "M067"))
    };
    assert_eq!(of(&operations(101, &policy("errors-policy"), "")), (101, true));
    assert_eq!(of(&operations(101, &policy("Probabilistic 10"), "")), (0, false));
    // A collector names it in the scope.
    let scoped = operations(101, "", "").replace(
        "\"scopeSpans\":[{",
        "\"scopeSpans\":[{\"scope\":{\"attributes\":[{\"key\":\"tailsampling.policy\",\"value\":{\"stringValue\":\"slow\"}}]},",
    );
    let some: String = scoped
        .lines()
        .take(40)
        .chain(operations(101, "", "").lines().skip(40))
        .fold(String::new(), |all, line| all + line + "\n");
    assert_eq!((of(&scoped), of(&some)), ((101, true), (40, true)));
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn trace_identifiers_tell_what_tags_do_not() {
    let file = std::fs::File::open(shared("traces/jaeger/traceweaver/hotel-load25.json.gz")).expect("a file");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is compressed");
    let tagged = rate(&reduced(text.as_bytes(), None)).0;
    let (found, _) = rate(&reduced(text.replace("\"sampler.", "\"was.").as_bytes(), None));
    assert!((found / tagged - 1.0).abs() < 0.01, "{found} for {tagged}");
    let file = shared("traces/jaeger/traceweaver/media-load25.json.gz");
    let (media, _) = rate(&reduced(&std::fs::read(file).expect("a file"), None));
    assert!((media / 23.7 - 1.0).abs() < 0.01, "{media}");
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn the_hotel_has_the_rates_of_its_load() {
    for (load, wanted) in [("25", 24.2), ("50", 47.1), ("75", 67.7), ("100", 100.2)] {
        let file = shared(&format!("traces/jaeger/traceweaver/hotel-load{load}.json.gz"));
        let (rate, _) = rate(&reduced(&std::fs::read(file).expect("a file"), None));
        assert!((rate / wanted - 1.0).abs() < 0.01, "{rate} for {wanted}");
    }
}

/// An identifier that looks random.
fn id(number: u64) -> u128 {
    let mixed = |number: u64| {
        let own = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let own = (own ^ (own >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let own = (own ^ (own >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        own ^ (own >> 31)
    };
    (u128::from(mixed(2 * number)) << 64) | u128::from(mixed(2 * number + 1))
}

/// Operations of one service, ten a second, named by a function of their number, of which those are kept that another one of their trace identifier tells.
fn kept(count: u64, name: fn(u64) -> &'static str, keep: fn(&str, u128) -> bool, attributes: &str) -> SubModel {
    reduced(lines(count, name, keep, attributes).as_bytes(), None)
}

/// The spans of these operations, a line each.
fn lines(count: u64, name: fn(u64) -> &'static str, keep: fn(&str, u128) -> bool, attributes: &str) -> String {
    (0..count).filter(|number| keep(name(*number), id(*number))).fold(String::new(), |text, number| {
        let start = 1_700_000_000_000_000_001 + u128::from(number) * 100_000_000;
        let end = start + 1_000_000;
        text + &format!(
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"00000000000000aa\",\"name\":\"{}\",\
             \"kind\":2,\"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\",\"attributes\":[{attributes}]}}]}}]}}]}}\n",
            id(number),
            name(number)
        )
    })
}

/// Whether a ratio sampler keeps an identifier that decides by its lower half.
fn is_low(id: u128, part: f64) -> bool {
    ((id as u64) << 1) as f64 / 2_f64.powi(64) < part
}

/// The same operations a second of each scenario, by name.
fn rates(sub: &SubModel) -> (Vec<f64>, Vec<Diagnostic>) {
    let (_, findings, origins) = complete(sub, &Configuration::default()).expect("there is something to model");
    (origins.scenarios.iter().map(|own| own.observed_rate.expect("there is a rate")).collect(), findings)
}

fn often_or_seldom(number: u64) -> &'static str {
    if number % 100 == 7 { "seldom" } else { "often" }
}

/// One sampler decides on all that a service begins: what many operations tell of it holds for a few.
#[test]
fn one_sampler_is_settled_for_all_scenarios_of_a_service() {
    let sub = kept(8000, often_or_seldom, |_, id| is_low(id, 0.1), "");
    let (found, findings) = rates(&sub);
    let seldom = sub.scenarios.values().map(|own| own.operations).min().expect("there are two");
    assert!((3..10).contains(&seldom), "{seldom} are too few to tell it by themselves");
    let expected = seldom as f64 / 80.0;
    assert!((found[0] / 9.9 - 1.0).abs() < 0.15, "{found:?}");
    assert!((found[1] / (expected * 0.1 * 10.0) - 1.0).abs() < 0.15, "{found:?}");
    assert!(!findings.iter().any(|own| own.code.0 == "M069"), "{findings:?}");
}

/// Scenarios that were sampled in different ways keep their own weights, and that is told. Few operations beside them tell nothing.
#[test]
fn mixed_sampling_is_told() {
    let name = |number: u64| ["often", "often", "thinned", "thinned", "thinned"][(number % 5) as usize];
    let sub = kept(3000, name, |name, id| name == "often" || is_low(id, 0.1), "");
    let (found, findings) = rates(&sub);
    assert!((found[0] / 4.0 - 1.0).abs() < 0.05 && (found[1] / 6.0 - 1.0).abs() < 0.2, "{found:?}");
    let told = findings.iter().find(|own| own.code.0 == "M069").expect("it is told");
    assert!(told.notes.iter().any(|note| note.contains("were not traced")), "{told:?}");
    let name = |number: u64| match number % 1000 {
        7 => "few",
        number if number % 2 == 0 => "often",
        _ => "thinned",
    };
    let sub = kept(4000, name, |name, id| name != "thinned" || is_low(id, 0.1), "");
    let (_, findings) = rates(&sub);
    assert!(noted(&findings, "of `s few` it is not known"), "{findings:?}");
}

/// Identifiers that fill a smaller part of their range than a recorded probability show that more was left out later.
#[test]
fn a_recorded_weight_that_identifiers_contradict_is_put_right() {
    let half = tag("X-SampleRatio", "doubleValue", "0.5");
    let one = |_: u64| "one";
    let sub = kept(4000, one, |_, id| is_low(id, 0.5), &half);
    let (found, findings) = rates(&sub);
    assert!((found[0] / 10.0 - 1.0).abs() < 0.05 && noted(&findings, "by how they were sampled"), "{found:?}");
    // By the same number of the identifier, and by another one.
    let sub = kept(4000, one, |_, id| is_low(id, 0.5) && is_low(id, 0.1), &half);
    let (again, _) = saved::parse(&"s.json".into(), &saved::write(&sub, "name")).expect("it was just written");
    for sub in [sub, again] {
        let (found, findings) = rates(&sub);
        assert!((found[0] / 10.0 - 1.0).abs() < 0.1 && noted(&findings, "left out"), "{found:?}");
    }
    let sub = kept(8000, one, |_, id| is_low(id, 0.5) && is_low(id >> 65, 0.1), &half);
    let (found, findings) = rates(&sub);
    assert!((found[0] / 10.0 - 1.0).abs() < 0.15 && noted(&findings, "left out"), "{found:?}");
}

/// Slow operations that were all kept beside one of ten of the others are no random sample, and nothing says that all were traced.
#[test]
fn slow_ones_beside_a_part_of_the_others_are_told() {
    let text: String = (0..6000_u64).fold(String::new(), |text, number| {
        let time = 0.01 - 0.02 * ((id(number) >> 96) as f64 / 2_f64.powi(32)).max(1e-6).ln();
        if time < 0.04 && number % 10 != 0 {
            return text;
        }
        let start = 1_700_000_000_000_000_001 + u128::from(number) * 100_000_000;
        let end = start + (time * 1e9) as u128;
        text + &format!(
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"00000000000000aa\",\"name\":\"go\",\
             \"kind\":2,\"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\"}}]}}]}}]}}\n",
            id(number + 100_000)
        )
    });
    let (_, findings) = rates(&reduced(text.as_bytes(), None));
    assert!(findings.iter().any(|own| own.code.0 == "M067" && own.message.contains("40 ms")), "{findings:?}");
    assert!(!noted(&findings, "all operations are taken to be traced"), "{findings:?}");
}

/// Operations that gave up a call after half a second are many at a round number, and no sampler made them so.
#[test]
fn calls_that_are_given_up_after_a_time_are_no_sample() {
    let mut random = Random::new(5);
    let (mut text, mut now) = (String::new(), 0.0);
    for number in 0..8000 {
        now += exponential(&mut random, 0.01);
        let asked = now + exponential(&mut random, 0.006);
        let took = if number % 50 == 0 { 0.5 } else { 0.06 + exponential(&mut random, 0.05) };
        let end = asked + took + exponential(&mut random, 0.02);
        let of = |kind, id, parent, name, at| Span { service: "bff", kind, id, parent, name, at };
        operation(&mut text, number, &[of(2, 1, 0, "POST", (now, end)), of(3, 2, 1, "GET", (asked, asked + took))]);
    }
    let (_, findings) = rates(&reduced(text.as_bytes(), None));
    assert!(findings.iter().all(|own| own.code.0 != "M067"), "{findings:?}");
}

/// Names that differ in a number outside of a path are answered by the pattern to give; a few steps that are numbered are not.
#[test]
fn names_that_differ_in_a_number_are_told_with_their_pattern() {
    let told = |form: &dyn Fn(usize) -> String| {
        let lines = operations(60, "", "");
        let named = |(number, line): (usize, &str)| {
            line.replace("\"name\":\"go\"", &format!("\"name\":\"{}\"", form(number))) + "\n"
        };
        let text: String = lines.lines().enumerate().map(named).collect();
        let mut sub = reduced(text.as_bytes(), None);
        // The pipeline says so of spans.
        sub.concurrent = true;
        let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
        findings.into_iter().find(|finding| finding.code.0 == "M068")
    };
    let many = told(&|number| format!("Product.get-{number}")).expect("they differ in a number");
    assert!(many.hints[0].contains("`--group 'Product.get-*'`"), "{many:?}");
    assert_eq!(told(&|number| format!("step {}", number % 4)), None);
}

/// Operations of a file that ends too early: by time none of the same time is missing, else their identifiers tell how many are, or nothing does.
#[test]
fn operations_behind_the_end_of_a_file_are_told() {
    let count = 1000_u64;
    let document = |order: &dyn Fn(&mut Vec<u64>)| {
        let mut numbers: Vec<u64> = (0..count).collect();
        order(&mut numbers);
        let traces: Vec<String> = numbers.into_iter().map(|number| {
            let start = 1_700_000_000_000_000 + number * 100_000;
            format!(
                "{{\"traceID\":\"{0:032x}\",\"spans\":[{{\"traceID\":\"{0:032x}\",\"spanID\":\"00000000000000aa\",\"operationName\":\"go\",\"startTime\":{start},\
                 \"duration\":1000,\"tags\":[],\"processID\":\"p1\"}}],\"processes\":{{\"p1\":{{\"serviceName\":\"s\",\"tags\":[]}}}}}}",
                id(number)
            )
        }).collect();
        format!("{{\"data\":[{}]}}", traces.join(","))
    };
    let cut = |text: &str| text.as_bytes()[..text.len() * 7 / 10].to_vec();
    let by_time = document(&|_| ());
    let whole = rate(&reduced(by_time.as_bytes(), None)).0;
    let (found, findings) = rate(&reduced(&cut(&by_time), None));
    assert!(
        (found / whole - 1.0).abs() < 0.01 && !noted(&findings, "end too early"),
        "{found} for {whole}: {findings:?}"
    );
    let by_id = document(&|numbers| numbers.sort_by_key(|number| (id(*number) as u64) << 1));
    let (found, findings) = rate(&reduced(&cut(&by_id), None));
    assert!((found / whole - 1.0).abs() < 0.02, "{found} for {whole}: {findings:?}");
    assert!(noted(&findings, "files in the order of identifiers that end too early"), "{findings:?}");
    let in_no_order = document(&|numbers| numbers.sort_by_key(|number| number.wrapping_mul(7_919) % 1009));
    let sub = reduced(&cut(&in_no_order), None);
    let (found, findings) = rate(&sub);
    assert!((found / whole / 0.7 - 1.0).abs() < 0.02, "{found} for {whole}");
    assert!(noted(&findings, "the rate and all utilisations are lower bounds"), "{findings:?}");
    let again = saved::parse(&"t".into(), &saved::write(&sub, "task")).expect("it is a sub-model").0;
    assert_eq!(rate(&again).1, findings, "a saved sub-model tells the same");
    let whole = rate(&reduced(in_no_order.as_bytes(), None)).1;
    assert!(!noted(&whole, "too early"), "a whole file lacks nothing: {whole:?}");
    let given = rate(&reduced(&cut(&in_no_order), Some(0.7))).0;
    assert!((given / found - 1.0 / 0.7).abs() < 1e-3, "what is asked for goes before: {given}");
}
