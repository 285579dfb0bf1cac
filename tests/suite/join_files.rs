//! Files of spans, made into sub-models each by itself: merged they are what all of them are at once, however the spans are split.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

use dyelog::diagnostic::Diagnostic;
use dyelog::lqn::saved;
use dyelog::pipeline::{self, Input, Options};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::submodel::run;

/// A span of OTLP as a document of its own.
#[derive(Clone, Debug)]
struct Line {
    trace: String,
    service: String,
    text: String,
}

/// The sub-model of texts as a file, which keeps up to so many spans, and what there was to say.
fn summed(name: &str, texts: &[String], most: usize) -> (String, Vec<Diagnostic>) {
    let inputs: Vec<Input> = texts.iter().map(|text| Input::new(name, text)).collect();
    let mut options = Options::default();
    options.keep_spans = Some(most);
    let mut findings = Vec::new();
    let summed = pipeline::submodel(&inputs, &options, &mut findings).unwrap_or_else(|found| panic!("{found}"));
    (summed.saved(), findings)
}

fn text_of<'l>(lines: impl IntoIterator<Item = &'l Line>) -> String {
    lines.into_iter().fold(String::new(), |text, line| text + &line.text + "\n")
}

/// The sub-model of all, and that of sub-models of the parts. Files have one name, since witnesses tell it.
fn both(lines: &[Line], part: impl Fn(usize, &Line) -> usize) -> (String, String) {
    let mut parts: BTreeMap<usize, Vec<&Line>> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        parts.entry(part(number, line)).or_default().push(line);
    }
    let saved: Vec<String> =
        parts.into_values().map(|lines| summed("t.jsonl", &[text_of(lines)], usize::MAX).0).collect();
    let whole = summed("t.jsonl", &[text_of(lines)], usize::MAX).0;
    // Merged two by two, and all at once.
    let mut sum = saved[0].clone();
    for other in &saved[1..] {
        sum = summed("s.json", &[other.clone(), sum], usize::MAX).0;
    }
    let at_once = summed("s.json", &saved, usize::MAX).0;
    assert_eq!(sum, at_once);
    (whole, at_once)
}

/// Requests of a front end on one host to a store on another, whose clock differs; both ask something that records no spans, the front end
/// also sends a message. Names have identifiers in them.
fn shop(seed: u64, count: u64, skew: i64, lost: u64, doubled: u64) -> Vec<Line> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut random = move |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut lines = Vec::new();
    for number in 0..count {
        let trace = format!("{:032x}", (u128::from(random(1 << 31)) << 90) | (u128::from(number) << 20) | 7);
        let begin = 1_700_000_000_000_000_000 + i64::try_from(number * 9_000_000 + random(5_000_000)).expect("small");
        let own = i64::try_from(1_000_000 + random(2_000_000)).expect("small");
        let there = begin + own + 100_000 + skew;
        let rows = [
            (1, 0, "front", "one", format!("GET /cart/{number}"), 2, begin, begin + 3 * own + 400_000),
            (2, 1, "front", "one", "find".to_owned(), 3, begin + own, begin + 2 * own + 200_000),
            (3, 2, "store", "two", format!("GET /item/{}", random(100)), 2, there, there + own),
            (4, 3, "store", "two", "select".to_owned(), 3, there + own / 4, there + own / 2),
            (5, 1, "front", "one", "render".to_owned(), 1, begin + 2 * own + 300_000, begin + 3 * own),
            (6, 1, "front", "one", "publish".to_owned(), 4, begin + 3 * own, begin + 3 * own + 50_000),
            (7, 6, "mail", "two", "publish".to_owned(), 5, begin + 3 * own + skew, begin + 5 * own + skew),
        ];
        for (id, parent, service, host, name, kind, start, end) in rows {
            if random(100) < lost {
                continue;
            }
            let parent = if parent == 0 { String::new() } else { format!("{:016x}", number * 16 + parent) };
            let text = json!({"resourceSpans": [{
                "resource": {"attributes": [
                    {"key": "service.name", "value": {"stringValue": service}},
                    {"key": "host.name", "value": {"stringValue": host}}]},
                "scopeSpans": [{"spans": [{
                    "traceId": trace, "spanId": format!("{:016x}", number * 16 + id), "parentSpanId": parent, "name": name,
                    "kind": kind, "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string()}]}]}]});
            let line = Line { trace: trace.clone(), service: service.to_owned(), text: text.to_string() };
            if random(100) < doubled {
                lines.push(line.clone());
            }
            lines.push(line);
        }
    }
    lines
}

/// A number that looks random, of a text.
fn hash(text: &str) -> usize {
    text.bytes().fold(7, |hash: usize, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) >> 3
}

/// Which file a line goes to, by its number.
type Split<'s> = &'s dyn Fn(usize, &Line) -> usize;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// With clocks that differ, spans that came twice or were lost, and names that are grouped.
#[test]
    fn merged_files_are_the_whole(
        seed in any::<u64>(), skew in -9_000_000..9_000_000_i64, lost in 0..8_u64, doubled in 0..8_u64, pieces in 2..7_usize
    ) {
        let lines = shop(seed, 40, skew, lost, doubled);
        let split: [Split<'_>; 4] = [
            &|_, line: &Line| hash(&line.trace) % 20,
            &|_, line: &Line| hash(&line.service),
            &|number, _| number * pieces / lines.len(),
            &|number, _| hash(&number.to_string()) % pieces,
        ];
        for split in split {
            let (whole, merged) = both(&lines, split);
            prop_assert_eq!(whole, merged);
        }
    }
}

/// Two halves that were recorded by clocks that differ in one of them only.
#[test]
fn clocks_are_compared_over_all_files() {
    let mut lines = shop(1, 60, 0, 0, 0);
    let skewed = shop(1, 60, -7_000_000, 0, 0);
    let half = lines.len() / 14 * 7;
    lines.splice(half.., skewed[half..].iter().cloned());
    let (whole, merged) = both(&lines, |number, _| usize::from(number >= half));
    assert_eq!(whole, merged);
}

/// What comes in two files counts once, and the file of both is that of one.
#[test]
fn what_comes_twice_counts_once() {
    let text = text_of(&shop(3, 30, 2_000_000, 3, 0));
    let (one, _) = summed("t.jsonl", &[text], usize::MAX);
    let (twice, findings) = summed("s.json", &[one.clone(), one.clone()], usize::MAX);
    assert_eq!(one, twice);
    assert_eq!(findings.iter().filter(|found| found.code.0 == "M034").count(), 0);
}

/// Sums without spans are those with spans.
#[test]
fn spans_are_left_out_where_none_are_wanted() {
    let text = text_of(&shop(3, 30, 2_000_000, 3, 0));
    let (kept, _) = summed("t.jsonl", std::slice::from_ref(&text), usize::MAX);
    let (plain, told) = summed("t.jsonl", &[text], 0);
    assert!(told.iter().all(|found| found.code.0 != "M053"), "{told:?}");
    assert_eq!(summed("s.json", std::slice::from_ref(&kept), 0).0, plain);
    let sums = |text: &str| {
        let (sub, merge) = saved::parse(&"s".into(), text).expect("it was written so");
        saved::write(&sub, &merge)
    };
    assert_eq!(sums(&kept), sums(&plain));
    // What is not kept is added to what is.
    let other = summed("u.jsonl", &[text_of(&shop(8, 9, 0, 0, 0))], usize::MAX).0;
    let (both, _) = summed("s.json", &[plain.clone(), other.clone()], usize::MAX);
    let mut sum = saved::parse(&"s".into(), &plain).expect("it was written so").0;
    sum.merge(&saved::parse(&"s".into(), &other).expect("it was written so").0);
    assert_eq!(sums(&both), saved::write(&sum, "name"));
}

/// Beyond the bound only what lacks spans is kept. What was summed up too early is told of, with about how many operations it is.
#[test]
fn beyond_the_bound_what_lacks_spans_waits() {
    let lines = shop(5, 200, 0, 0, 0);
    let of = |service: &'static str| {
        text_of(lines.iter().filter(move |line| (line.service == "front") == (service == "front")))
    };
    let cut = lines.len() / 14 * 7 + 3;
    let (first, second) = (text_of(&lines[..cut]), text_of(&lines[cut..]));
    let told = |findings: &[Diagnostic]| -> Vec<String> {
        findings.iter().filter(|found| found.code.0 == "M053").map(|found| found.message.clone()).collect()
    };
    let (front, notes) = summed("f.jsonl", &[of("front")], 700);
    assert_eq!(told(&notes), ["of 800 spans the sub-model keeps 0: operations that look whole are summed up for good"]);
    let (others, notes) = summed("o.jsonl", &[of("others")], 700);
    assert_eq!(told(&notes), Vec::<String>::new());
    let (_, warnings) = summed("s.json", &[front.clone(), others], 5000);
    assert_eq!(told(&warnings), ["`s.json` has more of about 200 of its operations, in spans that came later"]);
    let parsed =
        saved::parse_keeping(&"f".into(), &front).expect("it was written so").2.expect("it says what it has summed up");
    assert_eq!((parsed.spans, parsed.closed_traces.count), (0, 200));

    // The end of an operation whose beginning is in the other half.
    let (first, _) = summed("a.jsonl", &[first], 100);
    let (second, _) = summed("b.jsonl", &[second], 100);
    let kept = saved::parse_keeping(&"b".into(), &second).expect("it was written so").2.expect("fragments are kept");
    assert_eq!((kept.spans, kept.closed_traces.count), (4, 99));
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("a.json"), &first).expect("it can be written");
    fs::write(folder.path().join("b.json"), &second).expect("it can be written");
    let (code, _, words) = run(folder.path(), &["merge", "b.json", "a.json"]);
    assert!(
        code == 0 && words.contains("`b.json` has more of about 1 of its operations, in spans that came later"),
        "{words}"
    );
    // Twice the same: about as many as there are.
    fs::write(folder.path().join("c.json"), &first).expect("it can be written");
    let (code, _, words) = run(folder.path(), &["merge", "c.json", "a.json"]);
    assert!(
        code == 0 && words.contains("`c.json` has more of about 101 of its operations, summed up there, too"),
        "{words}"
    );
}

/// Each span of a file of OTLP as a document.
fn lines_of(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for document in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON")) {
        for resource in document["resourceSpans"].as_array().expect("a list") {
            let attributes = resource["resource"]["attributes"].as_array().expect("a list");
            let service = attributes.iter().find(|one| one["key"] == "service.name").expect("a service");
            let service = service["value"]["stringValue"].as_str().expect("a text");
            for span in resource["scopeSpans"]
                .as_array()
                .expect("a list")
                .iter()
                .flat_map(|scope| scope["spans"].as_array().expect("a list"))
            {
                let text =
                    json!({"resourceSpans": [{"resource": resource["resource"], "scopeSpans": [{"spans": [span]}]}]});
                let trace = span["traceId"].as_str().expect("a text").to_owned();
                lines.push(Line { trace, service: service.to_owned(), text: text.to_string() });
            }
        }
    }
    lines
}

/// The recording of the shop, split in the ways that exporters do.
#[test]
fn a_recording_in_files_is_the_recording() {
    let file = format!("{}/traces/shop.otlp.jsonl", env!("CARGO_MANIFEST_DIR"));
    let lines = lines_of(&fs::read_to_string(file).expect("it is bundled"));
    for split in [
        &|_: usize, line: &Line| hash(&line.trace) % 20,
        &|_: usize, line: &Line| hash(&line.service),
        &|number: usize, _: &Line| number * 5 / 2470,
    ] as [&dyn Fn(usize, &Line) -> usize; 3]
    {
        let (whole, merged) = both(&lines, split);
        assert!(whole == merged);
    }
}

/// From files to a model on the command line: exports of one service each.
#[test]
fn exports_of_single_services_make_one_model() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let lines = shop(9, 150, 3_000_000, 0, 0);
    fs::write(at.join("all.jsonl"), text_of(&lines)).expect("it can be written");
    let mut merge = vec!["merge".to_owned()];
    let mut model = vec!["model".to_owned(), "--format".to_owned(), "json".to_owned()];
    for service in ["front", "store", "mail"] {
        let (trace, file) = (format!("{service}.jsonl"), format!("{service}.json"));
        fs::write(at.join(&trace), text_of(lines.iter().filter(|line| line.service == service)))
            .expect("it can be written");
        assert_eq!(run(at, &["model", &trace, "--format", "submodel", "-o", &file]).0, 0);
        merge.push(file.clone());
        model.push(file);
    }
    let of = |arguments: &[String]| run(at, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let direct = run(at, &["model", "all.jsonl", "--format", "json"]).1;
    assert_eq!(of(&model).1, direct);
    merge.extend(["-o".to_owned(), "sum.json".to_owned()]);
    let (code, _, words) = of(&merge);
    assert!(code == 0 && !words.contains("lost"), "{words}");
    assert_eq!(run(at, &["model", "sum.json", "--format", "json"]).1, direct);
    // A sub-model and the traces of the others.
    let (code, mixed, _) = run(at, &["model", "front.json", "store.jsonl", "mail.jsonl", "--format", "json"]);
    assert_eq!((code, mixed), (0, direct));

    // Other ways to make operations of spans do not go together.
    fs::write(at.join("own.dl"), "// Nothing of its own.\n").expect("it can be written");
    let (code, _, words) = run(at, &["merge", "front.json", "store.json", "--rules", "own.dl"]);
    assert!(code == 2 && words.contains("recognised by other rules"), "{words}");
    assert_eq!(run(at, &["model", "mail.jsonl", "--group", "GET /*", "--format", "submodel", "-o", "other.json"]).0, 0);
    let (code, _, words) = run(at, &["merge", "front.json", "other.json"]);
    assert!(code == 2 && words.contains("other `--group` or `--sampling`"), "{words}");
    let (code, _, words) = run(at, &["model", "all.jsonl", "--keep-spans", "5"]);
    assert!(code == 2 && words.contains("`--keep-spans` is for sub-models"), "{words}");
}

/// A file that was changed by hand is refused.
#[test]
fn what_is_kept_is_checked() {
    let (text, _) = summed("t.jsonl", &[text_of(&shop(3, 5, 0, 0, 0))], usize::MAX);
    let mut document: Value = serde_json::from_str(&text).expect("it is JSON");
    let other = summed("u.jsonl", &[text_of(&shop(4, 5, 0, 0, 0))], usize::MAX).0;
    let merged = |document: &Value| {
        let inputs = [Input::new("s.json", document.to_string()), Input::new("o.json", &other)];
        pipeline::submodel(&inputs, &Options::default(), &mut Vec::new()).map(drop).map_err(|found| found.to_string())
    };
    assert_eq!(merged(&document), Ok(()));
    for (field, value, words) in [
        ("recording", json!("AAAA"), "cannot be read"),
        ("recording", json!("?"), "no base64"),
        ("version", json!(2), "version 2 of what is kept"),
        ("spans", json!(3), "cannot be read"),
        ("closed_least", json!([5, 4]), "not the least digests"),
    ] {
        let before = document["kept"][field].clone();
        document["kept"][field] = value;
        let told = merged(&document).expect_err("it is refused");
        assert!(told.contains(words), "{told}");
        if before.is_null() {
            document["kept"].as_object_mut().expect("an object").remove(field);
        } else {
            document["kept"][field] = before;
        }
    }
}

/// Recorded traces, split by service and by cuts of the file.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn shared_traces_in_files_are_the_whole() {
    for load in ["25", "100"] {
        let file = crate::support::shared(&format!("traces/jaeger/traceweaver/hotel-load{load}.json.gz"));
        let mut text = String::new();
        let bytes = fs::File::open(file).expect("it is there");
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("it is text");
        let whole = text;
        // Every span goes to one of four files, with its trace and processes.
        let parts = [0, 1, 2, 3].map(|part| {
            let mut document: Value = serde_json::from_str(&whole).expect("it is JSON");
            for trace in document["data"].as_array_mut().expect("a list") {
                let spans = trace["spans"].as_array_mut().expect("a list");
                spans.retain(|span| hash(span["processID"].as_str().expect("a text")) % 4 == part);
            }
            document
        });
        // Few services may leave a file without spans, which is no trace.
        let has_spans = |part: &&Value| {
            let traces = part["data"].as_array().expect("a list");
            traces.iter().any(|trace| trace["spans"].as_array().is_some_and(|spans| !spans.is_empty()))
        };
        let parts: Vec<String> = parts.iter().filter(has_spans).map(Value::to_string).collect();
        let saved: Vec<String> =
            parts.iter().map(|text| summed("t.json", std::slice::from_ref(text), usize::MAX).0).collect();
        assert!(summed("t.json", &[whole], usize::MAX).0 == summed("s.json", &saved, usize::MAX).0);
    }
}
