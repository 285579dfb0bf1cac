//! Golden traces, laws over random programs, and damage.

mod critical;
mod program;

use dyelog_callgraph::{
    Granularity, Graph, Input, Kind, Latency, NodeKind, Options, Profile, Target, analyse, convert, write,
};
use program::Truth;
use proptest::prelude::*;

fn profile(records: &str) -> Profile {
    analyse(vec![Input::new("records", records.as_bytes())], &Options::default()).expect("records")
}

fn graph(profile: &Profile) -> Graph {
    Graph::of(profile, &Granularity::default())
}

#[test]
fn figure_1_of_2002_to_the_digit() {
    let profile = profile(include_str!("../../../traces/calls/figure-1.jsonl"));
    let graph = graph(&profile);
    assert_eq!(graph.groups, ["A", "B", "C", "D"]);
    assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
    assert_eq!(graph.total(), [3_200_000, 2_700_000, 7_000_000, 7_800_000]);
    let node = |name: &str, kind: NodeKind| {
        graph.nodes.iter().find(|node| node.function == name && node.kind == kind).expect("the node")
    };
    assert_eq!(node("foo", NodeKind::Function).own, [3_200_000, 0, 0, 0]);
    assert_eq!(node("foo", NodeKind::Function).descendent, [0, 2_700_000, 7_000_000, 7_800_000]);
    assert_eq!(node("times", NodeKind::Function).own, [0, 2_700_000, 0, 0]);
    assert_eq!(node("what_to_say", NodeKind::Function).own, [0, 0, 3_000_000, 0]);
    assert_eq!(node("what_to_say", NodeKind::Function).descendent, [0, 0, 4_000_000, 0]);
    assert_eq!(node("what_to_say", NodeKind::Thread).own, [0, 0, 4_000_000, 0]);
    assert_eq!(node("what_to_say", NodeKind::Thread).invocations, 2);
    assert_eq!(node("say_it", NodeKind::Function).own, [0, 0, 0, 7_800_000]);
    assert_eq!(node("say_it", NodeKind::Function).invocations, 3);
    assert!(graph.arcs.iter().all(|arc| arc.primary));
    assert_eq!(graph.arcs.len(), 5);
}

#[test]
fn both_patterns_of_table_1_of_2003() {
    let options = Options { keep_calls: usize::MAX, ..Options::default() };
    let records = include_str!("../../../traces/calls/table-1.jsonl");
    let profile = analyse(vec![Input::new("records", records.as_bytes())], &options).expect("records");
    assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
    let calls = profile.calls.as_ref().expect("calls are kept");
    let parents = |chain: &str| {
        let calls =
            calls.calls().iter().enumerate().filter(|(_, call)| profile.tables().chain_text(call.chain) == chain);
        let above = |call: usize| profile.calls.as_ref().and_then(|calls| calls.parent(call));
        let name = |call: usize| profile.names(profile.calls.as_ref().expect("calls").calls()[call].key)[1].to_owned();
        calls.map(|(call, _)| (name(call), above(call).map(name))).collect::<Vec<_>>()
    };
    let [f, g, h] = ["F", "G", "H"].map(str::to_owned);
    assert_eq!(parents("sibling"), [(f.clone(), None), (g.clone(), None)]);
    assert_eq!(parents("parent-child"), [(f.clone(), None), (g.clone(), Some(f)), (h, Some(g))]);
}

#[test]
fn latency_without_probes_and_as_printed() {
    let records = include_str!("../../../traces/calls/table-1.jsonl");
    let mean = |latency: Latency, function: &str| {
        let options = Options { latency, ..Options::default() };
        let profile = analyse(vec![Input::new("records", records.as_bytes())], &options).expect("records");
        let graph = graph(&profile);
        let node = graph.nodes.iter().find(|node| node.function == function).expect("the node");
        (node.statistics.latency.count(), node.statistics.latency.mean())
    };
    // Probes come each 10 µs and take 1 µs. H: from 11 to 40, with two probes of its own inside.
    assert_eq!(mean(Latency::Net, "H"), (1, 27_000.0));
    assert_eq!(mean(Latency::Paper, "H"), (1, 29_000.0));
    // G: once alone as H, and once around H: from 11 to 80, with six probes inside, four of them of H.
    assert_eq!(mean(Latency::Net, "G"), (2, f64::midpoint(27_000.0, 63_000.0)));
    assert_eq!(mean(Latency::Paper, "G"), (2, f64::midpoint(29_000.0, 65_000.0)));
}

fn check(profile: &Profile, truth: &Truth) {
    assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
    let graph = graph(profile);
    let whole: i128 = graph.nodes[0].inclusive_once.iter().sum();
    let selves: i128 = graph.nodes.iter().flat_map(|node| &node.own).sum();
    assert_eq!(whole, selves, "what all nodes spent is what main spent in all");
    assert_eq!(whole, i128::from(truth.total()));
    for node in graph.nodes.iter().filter(|node| node.kind != NodeKind::Main) {
        let known =
            truth.nodes.get(&(node.function.clone(), node.kind == NodeKind::Thread)).copied().unwrap_or_default();
        let sum = |vector: &[i128]| i64::try_from(vector.iter().sum::<i128>()).expect("a small program");
        let found = (node.invocations, sum(&node.own), sum(&node.descendent), sum(&node.inclusive_once));
        assert_eq!(found, (known.invocations, known.own, known.descendent, known.inclusive_once), "{}", node.function);
    }
}

proptest! {
    #[test]
    fn no_time_is_lost_or_made(program in program::any(), shuffle in any::<u64>()) {
        let (mut lines, truth) = program.run();
        check(&profile(&lines.join("\n")), &truth);
        program::shuffle(&mut lines, shuffle);
        check(&profile(&lines.join("\n")), &truth);
    }

    #[test]
    fn a_small_window_is_enough_for_records_in_order(program in program::any(), window in 8..64usize) {
        let (lines, truth) = program.run();
        let options = Options { window, ..Options::default() };
        let text = lines.join("\n");
        let small = analyse(vec![Input::new("records", text.as_bytes())], &options).expect("records");
        check(&small, &truth);
        prop_assert_eq!(graph(&small), graph(&profile(&text)), "latencies are the same as well");
    }

    #[test]
    fn files_may_be_split_and_converted(program in program::any(), files in 1..4usize) {
        let (lines, truth) = program.run();
        let parts: Vec<String> = (0..files)
            .map(|file| lines.iter().skip(file).step_by(files).flat_map(|line| [line.as_str(), "\n"]).collect())
            .collect();
        let inputs = || parts.iter().map(|part| Input::new("part", part.as_bytes())).collect::<Vec<_>>();
        check(&analyse(inputs(), &Options::default()).expect("records"), &truth);
        let mut binary = Vec::new();
        convert(inputs(), Target::Binary, &mut binary).expect("records");
        check(&analyse(vec![Input::new("binary", &*binary)], &Options::default()).expect("records"), &truth);
        let mut text = Vec::new();
        convert(vec![Input::new("binary", &*binary)], Target::Lines, &mut text).expect("records");
        let mut again = Vec::new();
        convert(vec![Input::new("text", &*text)], Target::Binary, &mut again).expect("records");
        prop_assert_eq!(binary, again);
    }

    #[test]
    fn damage_is_named_and_stays_in_its_chain(
        program in program::any(), damaged in program::any(), kind in 0..4u8, at in any::<prop::sample::Index>(),
    ) {
        let (lines, truth) = program.run();
        let (mut broken, _) = damaged.named("x").run();
        let place = at.index(broken.len());
        match kind {
            0 => drop(broken.remove(place)),
            1 => { let line = broken[place].clone(); broken.push(line); }
            2 => { let line = broken[place].replace("\"cpu\":[", "\"cpu\":[1"); broken.push(line); }
            _ => {
                let other = (place + 1) % broken.len();
                let (one, two) = (program::event(&broken[place]).to_owned(), program::event(&broken[other]).to_owned());
                broken[place] = program::renumber(&broken[place], &two);
                broken[other] = program::renumber(&broken[other], &one);
                prop_assume!(one != two && program::chain(&broken[place]) == program::chain(&broken[other]));
            }
        }
        let whole = profile(&[lines, broken].concat().join("\n"));
        // Two records of one kind and one function that change places are a possible run as well.
        prop_assert!(kind == 3 || !whole.abnormal.is_empty());
        let graph = graph(&whole);
        for ((function, thread), known) in &truth.nodes {
            let node = graph.nodes.iter().find(|node| node.function == *function && (node.kind == NodeKind::Thread) == *thread);
            let node = node.expect("an undamaged chain keeps its nodes");
            prop_assert_eq!(node.own.iter().sum::<i128>(), i128::from(known.own));
            prop_assert_eq!(node.invocations, known.invocations);
        }
    }

    #[test]
    fn nothing_breaks_it(bytes in prop::collection::vec(any::<u8>(), 0..400), program in program::any(), at in any::<prop::sample::Index>()) {
        let _ = analyse(vec![Input::new("noise", &*bytes)], &Options::default());
        let (lines, _) = program.run();
        let mut binary = Vec::new();
        convert(vec![Input::new("text", lines.join("\n").as_bytes())], Target::Binary, &mut binary).expect("records");
        for byte in &bytes {
            let place = at.index(binary.len());
            binary[place] ^= byte;
        }
        let _ = analyse(vec![Input::new("noise", &*binary)], &Options::default());
    }
}

#[test]
fn a_million_deep() {
    let mut records = String::new();
    let depth = 1_000_000u32;
    let record = |event: u32, probe: &str| {
        format!(
            "{{\"chain\":\"c\",\"event\":{event},\"probe\":\"{probe}\",\"function\":\"f\",\"collocated\":true,\"cpu\":{event}}}\n"
        )
    };
    for event in 1..=depth {
        records.push_str(&record(event, "stub_start"));
    }
    for event in depth + 1..=2 * depth {
        records.push_str(&record(event, "stub_end"));
    }
    let profile = profile(&records);
    assert!(profile.abnormal.is_empty());
    let graph = graph(&profile);
    assert_eq!(graph.nodes[1].invocations, u64::from(depth));
    assert_eq!(graph.nodes[1].inclusive_once, graph.nodes[0].descendent);
    for text in [
        write::json(&profile, &graph, None),
        write::xml(&profile, &graph),
        write::csv(&profile, &graph),
        write::folded(&profile, true),
    ] {
        assert!(text.len() < 1 << 20, "what is deeper than any viewer shows is one frame");
    }
    assert!(!write::pprof(&profile, true).is_empty());
}

/// The records of a call of `function` from event `from` of a chain, whose function runs in a chain of its own.
fn remote_call(chain: &str, from: u32, function: &str) -> String {
    let record = |chain: &str, event: u32, probe: &str, at: u32| {
        format!(
            "{{\"chain\":\"{chain}\",\"event\":{event},\"probe\":\"{probe}\",\"function\":\"{function}\",\"wall\":{at},\"cpu\":{at}}}\n"
        )
    };
    let own = format!("{chain}.{from}");
    let (start, end) = (record(&own, 1, "skel_start", 5), record(&own, 2, "skel_end", 12));
    [record(chain, from, "stub_start", 0), start, end, record(chain, from + 1, "stub_end", 20)].concat()
}

/// A few records of a chain, and very many of other chains behind them.
fn long_ago(chain: &str) -> String {
    let others = (1..4000u32).map(|other| remote_call(&format!("{other:032x}"), 1, "g"));
    std::iter::once(remote_call(chain, 1, "f")).chain(others).collect()
}

#[test]
fn a_chain_goes_on_after_a_rest() {
    let options = Options { window: 16, ..Options::default() };
    for chain in ["c", "0123456789abcdef0123456789abcdef", "ABC0123456789abcdef0123456789abcdef"] {
        let text = [long_ago(chain), remote_call(chain, 3, "f")].concat();
        let rested = analyse(vec![Input::new("records", text.as_bytes())], &options).expect("records");
        assert!(rested.abnormal.is_empty(), "{:?}", rested.abnormal);
        assert_eq!(graph(&rested), graph(&profile(&text)));
        let mut binary = Vec::new();
        convert(vec![Input::new("text", text.as_bytes())], Target::Binary, &mut binary).expect("records");
        let rested = analyse(vec![Input::new("binary", &*binary)], &options).expect("records");
        assert!(rested.abnormal.is_empty(), "{:?}", rested.abnormal);
        assert_eq!(graph(&rested), graph(&profile(&text)));
    }
}

#[test]
fn what_comes_after_a_chain_is_over_is_named() {
    let options = Options { window: 16, ..Options::default() };
    let again = |from: &str, to: u32| {
        let call = remote_call("c", 1, "f");
        let line = call.lines().find(|line| line.contains(from)).expect("the call has it");
        program::renumber(line, &to.to_string())
    };
    for (line, kind) in [
        (again("stub_start", 1), Kind::Late),
        (again("skel_end", 2), Kind::Late),
        (again("skel_start", 3), Kind::SkelStart),
        (again("stub_start", 7), Kind::Lost),
    ] {
        let text = [long_ago("c"), line].concat();
        let profile = analyse(vec![Input::new("records", text.as_bytes())], &options).expect("records");
        assert!(profile.abnormal.iter().any(|damage| damage.kind == kind), "{kind:?}: {:?}", profile.abnormal);
        let graph = graph(&profile);
        let node = graph.nodes.iter().find(|node| node.function == "g").expect("other chains stay as they are");
        assert_eq!((node.invocations, node.own[0], node.statistics.latency.count()), (3999, 3999 * 7, 3999));
    }
}

/// Records that are made as they are read.
struct Made<I>(I, std::io::Cursor<Vec<u8>>);

impl<I: Iterator<Item = String>> std::io::Read for Made<I> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1.position() == self.1.get_ref().len() as u64 {
            self.1 = std::io::Cursor::new(self.0.by_ref().take(1000).collect::<String>().into_bytes());
        }
        self.1.read(buffer)
    }
}

#[test]
fn a_million_chains_that_stay_open_are_counted() {
    const CHAINS: u64 = 1_100_000;
    for (more, kind) in [("", Kind::Unfinished), (",\"oneway\":true,\"child\":\"x", Kind::LostChain)] {
        let lines = (0..CHAINS).flat_map(|chain| {
            let child = if more.is_empty() { String::new() } else { format!("{more}{chain}\"") };
            let record = |event: u32, probe: &str, more: &str| {
                format!(
                    "{{\"chain\":\"c{chain}\",\"event\":{event},\"probe\":\"{probe}\",\"function\":\"f\"{more},\"cpu\":7}}\n"
                )
            };
            let end = (!more.is_empty()).then(|| record(2, "stub_end", ""));
            [Some(record(1, "stub_start", &child)), end].into_iter().flatten()
        });
        let records = Made(lines, std::io::Cursor::default());
        let options = Options { window: 1 << 10, ..Options::default() };
        let profile = analyse(vec![Input::new("records", records)], &options).expect("records");
        let found: Vec<(Kind, u64)> = profile.abnormal.iter().map(|damage| (damage.kind, damage.count)).collect();
        assert_eq!(found, [(kind, CHAINS)]);
        assert_eq!(graph(&profile).nodes[1].invocations, CHAINS);
    }
}

#[test]
fn numbers_that_cannot_be_are_named() {
    let call = |event: &str, cpu: &str| {
        let record = |event: &str, probe: &str, cpu: &str| {
            format!(
                "{{\"chain\":\"c\",\"event\":{event},\"probe\":\"{probe}\",\"function\":\"f\",\"collocated\":true,\"cpu\":{cpu}}}\n"
            )
        };
        [record("1", "stub_start", "10"), record(event, "stub_end", cpu)].concat()
    };
    for (event, cpu, kind) in [
        ("18446744073709551615", "20", Kind::Unreadable),
        ("4294967296", "20", Kind::Unreadable),
        ("-2", "20", Kind::Unreadable),
        ("0", "20", Kind::Unreadable),
        ("4294967295", "20", Kind::Lost),
        ("2", "9223372036854775807", Kind::Unreadable),
        ("2", "5", Kind::NegativeTime),
        ("2", "[20,15]", Kind::ClockBackwards),
    ] {
        let profile = profile(&call(event, cpu));
        assert!(profile.abnormal.iter().any(|damage| damage.kind == kind), "{event} {cpu}: {:?}", profile.abnormal);
        assert!(graph(&profile).total().iter().all(|time| *time <= 10));
    }
}

#[test]
fn a_lost_record_is_named() {
    let table = include_str!("../../../traces/calls/table-1.jsonl");
    let without = |event: u32| {
        let lost = format!("\"chain\":\"sibling\",\"event\":{event},");
        table.lines().filter(|line| !line.contains(&lost)).collect::<Vec<_>>().join("\n")
    };
    for event in 1..=8 {
        let profile = profile(&without(event));
        let kinds: Vec<Kind> = profile.abnormal.iter().map(|damage| damage.kind).collect();
        assert!(kinds.contains(&Kind::Lost) || event == 8 && kinds.contains(&Kind::Unfinished), "{event}: {kinds:?}");
        let graph = graph(&profile);
        assert!(graph.nodes.iter().any(|node| node.function == "H" && node.invocations == 1));
    }
}

mod changes {
    use super::{graph, profile};
    use dyelog_callgraph::Granularity;
    use dyelog_callgraph::change::{Change, impact};

    #[test]
    fn a_reduction_reaches_all_callers() {
        let profile = profile(include_str!("../../../traces/calls/figure-1.jsonl"));
        let change =
            "// half of say_it\nreduction on processor group { D } by 50% to function { Demo::Speaker::* }; /* and */
            increase by 12.5% to thread of { Demo::Words::what_to_say };";
        let change = Change::parse("change", change).expect("two statements");
        let impact = impact(&profile, &change, &Granularity::default()).expect("known groups");
        assert_eq!(impact.before, graph(&profile));
        assert_eq!(impact.after.total(), [3_200_000, 2_700_000, 7_500_000, 3_900_000]);
        assert_eq!(impact.superposed(), impact.after);
        let reached: Vec<&str> =
            impact.deltas.iter().map(|delta| impact.before.nodes[delta.node].function.as_str()).collect();
        assert_eq!(reached, ["", "foo", "say_it", "what_to_say", "what_to_say"], "not times");
        assert_eq!(impact.arcs.len(), 4);
    }

    #[test]
    fn faults_have_places_and_come_together() {
        let text = "reducton by 10% to function { a };\nreduction by 110% to function { a };\nincrease by x% to function { a };";
        let faults = Change::parse("change", text).expect_err("three faults").0;
        assert_eq!(faults.len(), 3);
        let profile = profile(include_str!("../../../traces/calls/figure-1.jsonl"));
        let change =
            Change::parse("change", "increase on processor group { E } by 1% to function { foo }").expect("it parses");
        let faults = impact(&profile, &change, &Granularity::default()).expect_err("no group E").0;
        assert_eq!(faults[0].code.0, "G102");
        let change = Change::parse("change", "increase by 1% to function { Demo::ClassA::fo }").expect("it parses");
        let faults = impact(&profile, &change, &Granularity::default()).expect_err("no function fo").0;
        assert_eq!(
            (faults[0].code.0, &*faults[0].hints),
            ("G103", &["did you mean `Demo::ClassA::foo`?".to_owned()][..])
        );
    }
}
