//! Critical paths as text.

use crate::callgraph::{CriticalPaths, Graph, OnPath, Profile, Stretch};
use crate::diagnostic::quantity::{counted, number};
use crate::report::call_graph::{Shown, ms, percent};
use crate::report::look::Look;
use crate::report::table::Table;

/// What the durations of all operations are made of, by function; then the path of the longest one. What is left out is counted.
pub fn text(profile: &Profile, graph: &Graph, paths: &CriticalPaths, shown: Shown, look: Look) -> String {
    if paths.operations == 0 {
        return "no critical path: the records have no times of the clock on the wall\n".to_owned();
    }
    let mean = paths.length as f64 / 1e6 / paths.operations as f64;
    let mut text = format!("critical paths of {}: {} ms each\n", counted(paths.operations, "operation"), number(mean));
    if paths.untimed > 0 {
        text.push_str(&format!("{} without, for want of times\n", counted(paths.untimed, "operation")));
    }
    text.push_str(&functions(graph, paths, shown, look));
    text.push_str(&longest(profile, paths, shown, look));
    text
}

fn functions(graph: &Graph, paths: &CriticalPaths, shown: Shown, look: Look) -> String {
    let whole = paths.length.max(1) as f64;
    let mut nodes: Vec<(usize, OnPath)> = paths.by_node(graph).into_iter().collect();
    let all = |time: &OnPath| time.own + time.transit;
    nodes.sort_by_key(|(node, time)| (std::cmp::Reverse(all(time)), *node));
    let large = |time: &OnPath| all(time) as f64 >= shown.least * whole;
    let kept = nodes.iter().take_while(|(_, time)| large(time)).count().min(shown.lines);
    let mut table = Table::new(&["FUNCTION", ">ON PATH (ms)", ">ON PATH (%)", ">IN TRANSIT (ms)", ">IN TRANSIT (%)"]);
    for (node, time) in &nodes[..kept] {
        let label = graph.nodes[*node].label();
        table.row(vec![label, ms(time.own), percent(time.own, whole), ms(time.transit), percent(time.transit, whole)]);
    }
    let mut text = table.render(look);
    let (left, time) = (nodes.len() - kept, nodes[kept..].iter().map(|(_, time)| all(time)).sum::<i128>());
    if left > 0 {
        let functions = counted(left as u64, "function");
        text.push_str(&format!("{functions} left out: {} ms on the paths, {}%\n", ms(time), percent(time, whole)));
    }
    text
}

fn longest(profile: &Profile, paths: &CriticalPaths, shown: Shown, look: Look) -> String {
    let (Some(calls), Some(first)) = (&profile.calls, paths.longest.first()) else { return String::new() };
    let chain = profile.tables().chain_text(calls.calls()[first.call].chain);
    let mut table = Table::new(&[">FROM (ms)", ">FOR (ms)", "FUNCTION", "ON"]);
    let length = |stretch: &Stretch| i128::from(stretch.end - stretch.begin);
    for stretch in paths.longest.iter().take(shown.lines) {
        let label = profile.label(calls.calls()[stretch.call].key, true);
        let place = calls.group(stretch.call).filter(|_| !stretch.transit);
        table.row(vec![
            ms(i128::from(stretch.begin)),
            ms(length(stretch)),
            if stretch.transit { format!("to or from {label}") } else { label },
            place.map_or_else(String::new, |group| profile.groups[group].clone()),
        ]);
    }
    let mut text = format!("\nthe longest operation, chain {chain}:\n{}", table.render(look));
    let left = &paths.longest[paths.longest.len().min(shown.lines)..];
    if !left.is_empty() {
        let time = ms(left.iter().map(length).sum());
        let stretches = if left.len() == 1 { "stretch" } else { "stretches" };
        text.push_str(&format!("… and {} more {stretches}: {time} ms\n", left.len()));
    }
    text
}
