//! What a change would come to.

use serde_json::{Value, json};

use crate::callgraph::change::{Changed, Delta, Impact};
use crate::callgraph::{Graph, NodeKind};
use crate::report::call_graph::{list, ms, sum};
use crate::report::json::pretty;
use crate::report::look::Look;
use crate::report::table::Table;

/// The whole by processor group before and after, then the functions that the change reaches.
pub fn text(impact: &Impact, look: Look) -> String {
    let mut table = Table::new(&["PROCESSOR GROUP", ">BEFORE (ms)", ">AFTER (ms)", ">CHANGE (ms)", ">CHANGE (%)"]);
    let totals = impact.before.total().iter().zip(impact.after.total());
    for (group, (before, after)) in impact.before.groups.iter().zip(totals) {
        table.row(row(group.clone(), *before, *after));
    }
    if impact.before.groups.len() > 1 {
        table.row(row("(all)".to_owned(), sum(impact.before.total()), sum(impact.after.total())));
    }
    let mut text = table.render(look);
    let mut deltas: Vec<&Delta> =
        impact.deltas.iter().filter(|delta| impact.before.nodes[delta.node].kind != NodeKind::Main).collect();
    let change = |changed: &Changed| sum(&changed.after) - sum(&changed.before);
    deltas.sort_by_key(|delta| (std::cmp::Reverse(change(&delta.inclusive_once).abs()), delta.node));
    let mut table = Table::new(&[
        "FUNCTION",
        ">SELF BEFORE (ms)",
        ">AFTER (ms)",
        ">CHANGE (ms)",
        ">CHANGE (%)",
        ">INCLUSIVE BEFORE (ms)",
        ">AFTER (ms)",
        ">CHANGE (%)",
    ]);
    for delta in deltas {
        let mut cells = row(impact.before.nodes[delta.node].label(), sum(&delta.own.before), sum(&delta.own.after));
        let (before, after) = (sum(&delta.inclusive_once.before), sum(&delta.inclusive_once.after));
        cells.extend([ms(before), ms(after), relative(before, after)]);
        table.row(cells);
    }
    if !table.is_empty() {
        text.push('\n');
        text.push_str(&table.render(look));
    }
    text
}

fn row(name: String, before: i128, after: i128) -> Vec<String> {
    vec![name, ms(before), ms(after), ms(after - before), relative(before, after)]
}

fn relative(before: i128, after: i128) -> String {
    if before == 0 { String::new() } else { format!("{:+.1}", 100.0 * (after - before) as f64 / before as f64) }
}

/// `{"dyelog-impact": 1, "groups", "before", "after", "nodes": [{"id", "kind", "interface", "function", "object", "self", "descendent",
/// "inclusive_once"}], "links": [{"from", "to", "count"}]}`: the CPU consumption delta graph (2002 §4). A vector is `{"before", "after",
/// "difference"}`, in nanoseconds by group; ids are those of `dyelog profile`.
pub fn json(impact: &Impact) -> String {
    let graph: &Graph = &impact.before;
    let vector = |changed: &Changed| {
        json!({
            "before": list(&changed.before),
            "after": list(&changed.after),
            "difference": list(&changed.difference()),
        })
    };
    let nodes = impact.deltas.iter().map(|delta| {
        let node = &graph.nodes[delta.node];
        json!({
            "id": delta.node,
            "kind": node.kind.name(),
            "interface": node.interface,
            "function": node.function,
            "object": node.object,
            "self": vector(&delta.own),
            "descendent": vector(&delta.descendent),
            "inclusive_once": vector(&delta.inclusive_once),
        })
    });
    let links = impact.arcs.iter().map(|arc| json!({ "from": arc.from, "to": arc.to, "count": arc.count }));
    pretty(&json!({
        "dyelog-impact": 1,
        "groups": graph.groups,
        "before": list(graph.total()),
        "after": list(impact.after.total()),
        "nodes": nodes.collect::<Vec<Value>>(),
        "links": links.collect::<Vec<Value>>(),
    }))
}
