//! Whatever is read as spans gives a call graph that loses no time, or a reason.

#![no_main]

use dyelog::callgraph::{CriticalPaths, Granularity, Graph};
use dyelog::pipeline::{Input, Profiling, profile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &[u8]| {
    let mut profiling = Profiling::default();
    profiling.options.keep_calls = usize::MAX;
    let Ok(profiled) = profile(&[Input::new("fuzz", source)], &profiling, &mut ()) else { return };
    let graph = Graph::of(&profiled.profile, &Granularity::default());
    let own: i128 = graph.nodes.iter().flat_map(|node| &node.own).sum();
    assert_eq!(own, graph.nodes[0].inclusive_once.iter().sum::<i128>());
    let critical = CriticalPaths::of(&profiled.profile).expect("the calls were kept");
    let on_path: i128 = critical.on_path.values().map(|time| time.own + time.transit).sum();
    assert_eq!(on_path, critical.length);
});
