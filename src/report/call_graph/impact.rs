//! What a change would come to.

use serde_json::{Value, json};

use crate::callgraph::change::{Changed, Delta, Impact};
use crate::callgraph::{Graph, NodeKind};
use crate::diagnostic::quantity::number;
use crate::diagnostic::{Diagnostics, Severity};
use crate::report::call_graph::{list, ms, sum};
use crate::report::json::pretty;
use crate::report::look::Look;
use crate::report::table::Table;
use crate::study::impact::{Predicted, ScenarioImpact};

/// Responses and saturation of the scenarios, or why they are not known, the whole by processor group, then the functions that the change reaches.
pub fn text(impact: &Impact, scenarios: &[ScenarioImpact], unsolved: Option<&Diagnostics>, look: Look) -> String {
    let mut table = Table::new(&[
        "SCENARIO",
        ">RESPONSE BEFORE (ms)",
        ">AFTER (ms)",
        ">CHANGE (%)",
        ">MEASURED BEFORE (ms)",
        ">EXPECTED AFTER (ms)",
        ">SATURATION BEFORE (1/s)",
        ">AFTER (1/s)",
        "LIMIT BEFORE",
        "AFTER",
    ]);
    for scenario in scenarios {
        let (before, after) = (&scenario.before, &scenario.after);
        let shown =
            |value: Option<f64>, scale: f64| value.map_or_else(|| "none".to_owned(), |value| number(value * scale));
        let optional = |value: Option<f64>| value.map_or_else(String::new, |value| number(value * 1e3));
        let change = before.response.zip(after.response).filter(|(before, _)| *before > 0.0);
        table.row(vec![
            scenario.name.clone(),
            shown(before.response, 1e3),
            shown(after.response, 1e3),
            change.map_or_else(String::new, |(before, after)| format!("{:+.1}", 100.0 * (after / before - 1.0))),
            optional(scenario.measured.response.filter(|_| scenario.expected().is_some())),
            optional(scenario.expected()),
            shown(before.saturation, 1.0),
            shown(after.saturation, 1.0),
            before.limit.as_deref().unwrap_or_default().to_owned(),
            after.limit.as_deref().unwrap_or_default().to_owned(),
        ]);
    }
    let mut text = String::new();
    if !table.is_empty() {
        text.push_str(&table.render(look));
        text.push_str("load: that of `--config` or the records, else the throughput of before; saturation: the throughput that the busiest processor allows\n");
        if scenarios.iter().any(|scenario| scenario.expected().is_some()) {
            text.push_str("expected: what the records show at this load, changed by as much as the model's response\n");
        }
        text.push('\n');
    }
    if let Some(why) = unsolved {
        text.push_str(&format!("responses and saturation: not known, {}\n\n", reason(why)));
    }
    text.push_str(&processor_time(impact, look));
    text
}

/// Why models have no solution, in a line.
fn reason(why: &Diagnostics) -> String {
    let first = why.0.iter().find(|finding| finding.severity == Severity::Error).or(why.0.first());
    first.map_or_else(
        || "the model has no solution".to_owned(),
        |finding| format!("{} ({})", finding.message, finding.code),
    )
}

fn processor_time(impact: &Impact, look: Look) -> String {
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

/// `{"dyelog-impact": 1, "scenarios": [{"name", "before", "after"}], "groups", "before", "after", "nodes": [{"id", "kind", "interface", "function", "object", "self", "descendent",
/// "inclusive_once"}], "links": [{"from", "to", "count"}]}`: the CPU consumption delta graph (2002 §4). A vector is `{"before", "after",
/// "difference"}`, in nanoseconds by group; ids are those of `dyelog profile`. Of a scenario there are `throughput` and `saturation` (1/s),
/// `response` (seconds) and `limit`, the processor that saturates first; `measured` is what the records show of it, and `expected_response` their response
/// after the change, `null` where the load is another. `unsolved` is a list of `{"code", "message"}` where the model has no solution, and is `null` else.
pub fn json(impact: &Impact, scenarios: &[ScenarioImpact], unsolved: Option<&Diagnostics>) -> String {
    let figures = |figures: &Predicted| {
        json!({
            "throughput": figures.throughput,
            "response": figures.response,
            "saturation": figures.saturation,
            "limit": figures.limit.as_deref(),
        })
    };
    let scenarios = scenarios.iter().map(|scenario| {
        json!({
            "name": scenario.name,
            "before": figures(&scenario.before),
            "after": figures(&scenario.after),
            "measured": { "throughput": scenario.measured.throughput, "response": scenario.measured.response },
            "expected_response": scenario.expected(),
        })
    });
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
        "scenarios": scenarios.collect::<Vec<Value>>(),
        "unsolved": unsolved.map(|why| {
            let findings = why.0.iter().map(|finding| json!({ "code": finding.code.to_string(), "message": finding.message }));
            findings.collect::<Vec<Value>>()
        }),
        "groups": graph.groups,
        "before": list(graph.total()),
        "after": list(impact.after.total()),
        "nodes": nodes.collect::<Vec<Value>>(),
        "links": links.collect::<Vec<Value>>(),
    }))
}
