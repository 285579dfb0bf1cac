//! Whatever is read as probe records can be analysed and written in every form, and no time is lost on the way.

#![no_main]

use dyelog_callgraph::{CriticalPaths, Granularity, Graph, Input, Options, analyse, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &[u8]| {
    let Ok(profile) = analyse(vec![Input::new("fuzz", source)], &Options { keep_calls: usize::MAX, ..Options::default() }) else { return };
    let graph = Graph::of(&profile, &Granularity::default());
    let own: i128 = graph.nodes.iter().flat_map(|node| &node.own).sum();
    assert_eq!(own, graph.nodes[0].inclusive_once.iter().sum::<i128>());
    let critical = CriticalPaths::of(&profile).expect("the calls were kept");
    let on_path: i128 = critical.on_path.values().map(|time| time.own + time.transit).sum();
    assert_eq!(on_path, critical.length);
    let _ = (write::json(&profile, &graph, Some(&critical)), write::xml(&profile, &graph), write::csv(&profile, &graph));
    let _ = (write::folded(&profile, true), write::pprof(&profile, true));
});
