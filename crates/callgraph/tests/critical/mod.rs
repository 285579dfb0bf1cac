//! Critical paths: of an operation whose times are known, and laws over random programs.

use dyelog_callgraph::{CriticalPaths, Input, Options, Profile, analyse};
use proptest::prelude::*;

use crate::program;

fn profile(records: &str) -> Profile {
    let options = Options { keep_calls: usize::MAX, ..Options::default() };
    analyse(vec![Input::new("records", records.as_bytes())], &options).expect("there are records")
}

/// The path of the longest operation as `function begin-end`, with `~` where it is on the way.
fn path(records: &str) -> Vec<String> {
    let profile = profile(records);
    assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
    let paths = CriticalPaths::of(&profile).expect("calls were kept");
    let calls = profile.calls.as_ref().expect("calls were kept");
    let words = paths.longest.iter().map(|stretch| {
        let name = profile.label(calls.calls()[stretch.call].key, false);
        format!("{}{name} {}-{}", if stretch.transit { "~" } else { "" }, stretch.begin, stretch.end)
    });
    words.collect()
}

/// Records of a line each: chain, event, probe, function, processor, time on the wall, and what else there is.
fn records(lines: &[&str]) -> String {
    let mut text = String::from("{\"calls\":1}\n");
    for line in lines {
        let [chain, event, probe, function, host, wall, more @ ..] = &line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let what = match *probe {
            "thread_start" | "thread_end" => format!("\"{probe}\":\"{function}\""),
            _ => format!("\"probe\":\"{probe}\",\"function\":\"{function}\""),
        };
        let more = [&[""][..], more].concat().join(",");
        text.push_str(&format!(
            "{{\"chain\":\"{chain}\",\"event\":{event},{what},\"processor\":\"{host}\",\"wall\":{wall}{more}}}\n"
        ));
    }
    text
}

#[test]
fn it_goes_through_the_branch_that_ends_last() {
    let with_thread_until = |end: u32| {
        path(&records(&[
            "c 1 stub_start A h 0",
            "c 2 skel_start A h 10",
            "c 3 thread_start t h 20 \"child\":\"t\"",
            &format!("t 1 thread_end t h {end}"),
            "c 4 stub_start B h 30",
            "c 5 skel_start B h 35",
            "c 6 skel_end B h 65",
            "c 7 stub_end B h 70",
            "c 8 skel_end A h 100",
            "c 9 stub_end A h 110",
        ]))
    };
    assert_eq!(with_thread_until(90), ["~A 0-10", "A 10-20", "threads of A 20-90", "A 90-100", "~A 100-110"]);
    let through_b = ["~A 0-10", "A 10-30", "~B 30-35", "B 35-65", "~B 65-70", "A 70-100", "~A 100-110"];
    assert_eq!(with_thread_until(60), through_b);
    // What outlives its caller is the end of the operation.
    assert_eq!(with_thread_until(500), ["~A 0-10", "A 10-20", "threads of A 20-500"]);
}

#[test]
fn a_one_way_call_that_ends_last_is_on_it() {
    let lines = [
        "c 1 stub_start A h 0",
        "c 2 skel_start A h 10",
        "c 3 stub_start B h 40 \"oneway\":true,\"child\":\"d\"",
        "c 4 stub_end B h 45",
        "d 1 skel_start B h 60",
        "d 2 skel_end B h 200",
        "c 5 skel_end A h 100",
        "c 6 stub_end A h 110",
    ];
    assert_eq!(path(&records(&lines)), ["~A 0-10", "A 10-60", "B 60-200"]);
}

#[test]
fn a_function_on_another_clock_lies_in_the_middle_of_its_call() {
    let lines =
        ["c 1 stub_start A h 0", "c 2 skel_start A g 1000010", "c 3 skel_end A g 1000090", "c 4 stub_end A h 100"];
    assert_eq!(path(&records(&lines)), ["~A 0-10", "A 10-90", "~A 90-100"]);
}

#[test]
fn without_times_on_the_wall_there_is_none() {
    let lines = ["c 1 stub_start A h 0", "c 2 skel_start A h 1", "c 3 skel_end A h 2", "c 4 stub_end A h 3"];
    let text = records(&lines).replace("wall", "cpu");
    let paths = CriticalPaths::of(&profile(&text)).expect("calls were kept");
    assert_eq!((paths.operations, paths.untimed, paths.longest.len()), (0, 1, 0));
}

#[test]
fn depth_needs_no_stack() {
    let mut text = String::from("{\"calls\":1}\n");
    let depth = 200_000;
    for event in 1..=2 * depth {
        let probe = if event <= depth { "stub_start" } else { "stub_end" };
        text.push_str(&format!(
            "{{\"chain\":\"c\",\"event\":{event},\"probe\":\"{probe}\",\"collocated\":true,\"function\":\"f\",\"wall\":{event}}}\n"
        ));
    }
    assert_eq!(CriticalPaths::of(&profile(&text)).expect("calls were kept").longest.len(), 2 * depth - 1);
}

proptest! {
    /// The clocks of these programs are as far apart as can be: each thread has its own.
    #[test]
    fn every_nanosecond_belongs_to_one_call(program in program::any(), shuffle in any::<u64>()) {
        let mut lines: Vec<String> = program.run().0.iter().map(|line| line.replace("\"cpu\"", "\"wall\"")).collect();
        let whole = profile(&lines.join("\n"));
        let paths = CriticalPaths::of(&whole).expect("calls were kept");
        prop_assert_eq!(paths.operations, whole.operations);
        prop_assert_eq!(paths.on_path.values().map(|time| time.own + time.transit).sum::<i128>(), paths.length);
        for (one, next) in paths.longest.iter().zip(paths.longest.iter().skip(1)) {
            prop_assert_eq!(one.end, next.begin);
        }
        prop_assert_eq!(paths.longest.first().map_or(0, |stretch| stretch.begin), 0);
        program::shuffle(&mut lines, shuffle);
        let shuffled = CriticalPaths::of(&profile(&lines.join("\n"))).expect("calls were kept");
        prop_assert_eq!(paths.length, shuffled.length);
        let places = |paths: &CriticalPaths| paths.longest.iter().map(|it| (it.begin, it.end, it.transit)).collect::<Vec<_>>();
        prop_assert_eq!(places(&paths), places(&shuffled));
    }
}
