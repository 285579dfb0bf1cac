//! Call graphs as text and JSON: where time goes, what changed between two runs, what a change would come to.
//!
//! Text has milliseconds and percentages; JSON has nanoseconds, as records have.

mod critical;
mod difference;
mod impact;
pub mod page;
mod tree;

pub use critical::text as critical_text;
pub use difference::{json as difference_json, text as difference_text};
pub use impact::{json as impact_json, text as impact_text};

use crate::callgraph::{Graph, Node, NodeKind, Profile};
use crate::diagnostic::quantity::{counted, number};
use crate::report::look::Look;
use crate::report::table::Table;

/// How much of a profile is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Functions and paths with a smaller share of the whole are left out, between 0 and 1.
    pub least: f64,
    /// At most so many lines in each of the two parts.
    pub lines: usize,
}

/// The whole, then functions by the time they spend themselves, then the paths of calls from the root. What is left out is counted.
pub fn text(profile: &Profile, graph: &Graph, shown: Shown, look: Look) -> String {
    let mut text = heading(profile, graph);
    text.push('\n');
    text.push_str(&functions(profile, graph, shown, look));
    text.push('\n');
    text.push_str(&tree::text(profile, shown));
    text.push_str(&damage(profile));
    text
}

/// What the time is.
fn measure(profile: &Profile) -> &'static str {
    if profile.wall { "time by the clock on the wall, waiting included" } else { "processor time" }
}

fn heading(profile: &Profile, graph: &Graph) -> String {
    let calls: u64 =
        graph.nodes.iter().filter(|node| node.kind == NodeKind::Function).map(|node| node.invocations).sum();
    let total: i128 = graph.total().iter().sum();
    let mut text = format!(
        "{} in {}: {} ms of {}",
        counted(calls, "call"),
        counted(profile.operations, "operation"),
        ms(total),
        measure(profile)
    );
    if profile.operations > 1 {
        text.push_str(&format!(", {} ms an operation", number(total as f64 / 1e6 / profile.operations as f64)));
    }
    text.push('\n');
    if profile.unattributed.iter().any(Option::is_some) {
        text.push_str(&by_group(profile, graph));
    } else if graph.groups.len() > 1 {
        text.push_str(&format!("by processor group: {}\n", vector(&graph.groups, graph.total())));
    }
    if profile.cancelled > 0 {
        text.push_str(&format!("{} cancelled\n", counted(profile.cancelled, "call")));
    }
    text
}

/// What functions spent by group, and what no function accounts for.
fn by_group(profile: &Profile, graph: &Graph) -> String {
    let mut table = Table::new(&["PROCESSOR GROUP", ">FUNCTIONS (ms)", ">UNATTRIBUTED (ms)", ">UNATTRIBUTED (%)"]);
    for ((group, own), left) in graph.groups.iter().zip(graph.total()).zip(&profile.unattributed) {
        let left = left.map(i128::from);
        let share = |left: i128| percent(left, (*own + left).max(1) as f64);
        let or_nothing = |cell: Option<String>| cell.unwrap_or_default();
        table.row(vec![group.clone(), ms(*own), or_nothing(left.map(ms)), or_nothing(left.map(share))]);
    }
    let probes: i128 = profile.probes.iter().copied().map(i128::from).sum();
    let what = if profile.wall {
        "unattributed: network latency of requests and replies".to_owned()
    } else if probes > 0 {
        format!("unattributed: processor time of stubs, skeletons and the runtime; {} ms of it of probes", ms(probes))
    } else {
        "unattributed: processor time of stubs, skeletons and the runtime".to_owned()
    };
    format!("\n{}{what}\n", table.render(usize::MAX))
}

fn functions(profile: &Profile, graph: &Graph, shown: Shown, look: Look) -> String {
    let total = whole(graph);
    let mut nodes: Vec<&Node> = graph.nodes.iter().filter(|node| node.kind != NodeKind::Main).collect();
    nodes.sort_by(|left, right| sum(&right.own).cmp(&sum(&left.own)).then_with(|| left.label().cmp(&right.label())));
    let counts = |node: &&Node| sum(&node.inclusive_once) as f64 >= shown.least * total || sum(&node.own) < 0;
    let kept: Vec<&Node> = nodes.iter().copied().filter(counts).take(shown.lines).collect();
    let several = graph.groups.len() > 1;
    let mut headings = vec!["FUNCTION", ">CALLS", ">SELF (ms)", ">SELF (%)", ">SELF EACH (ms)", ">± 95% (ms)"];
    headings.extend([">INCLUSIVE (ms)", ">INCLUSIVE (%)"]);
    headings.extend([">LATENCY (ms)", ">DEVIATION (ms)"]);
    if several {
        headings.push("SELF ON");
    }
    let mut table = Table::new(&headings);
    for node in &kept {
        let latency = &node.statistics.latency;
        let inclusive = sum(&node.inclusive_once);
        let known = latency.count() > 0;
        let latencies = [latency.mean(), latency.deviation()];
        let mut row =
            vec![node.label(), node.invocations.to_string(), ms(sum(&node.own)), percent(sum(&node.own), total)];
        let own = &node.statistics.time;
        let each = [(own.count() > 0).then(|| own.mean()), own.half_width()];
        row.extend(each.map(|time| time.map_or_else(String::new, |time| number(time / 1e6))));
        row.extend([ms(inclusive), percent(inclusive, total)]);
        row.extend(latencies.map(|value| if known { number(value / 1e6) } else { String::new() }));
        if several {
            row.push(places(&graph.groups, &node.own));
        }
        table.row(row);
    }
    let mut text = table.render(look);
    let left = nodes.len() - kept.len();
    if left > 0 {
        let kept: i128 = kept.iter().map(|node| sum(&node.own)).sum();
        let others = total as i128 - kept;
        text.push_str(&format!(
            "{} left out: {} ms of their own, {}%\n",
            counted(left as u64, "function"),
            ms(others),
            percent(others, total)
        ));
    }
    if !profile.wall && graph.nodes.iter().all(|node| node.statistics.latency.count() == 0) {
        text.push_str("no latencies: the records have no times of the clock on the wall\n");
    }
    text
}

/// What did not fit the state machine, by kind, with the first place of each.
fn damage(profile: &Profile) -> String {
    if profile.abnormal.is_empty() && profile.reading.odd.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["DAMAGE", ">TIMES", "FIRST"]);
    for damage in &profile.abnormal {
        let first = damage.first.as_ref().map_or_else(String::new, |first| {
            let file = profile.reading.files.get(first.file).map_or("", |file| file);
            format!("{file}:{}: event {} of chain {}", first.line, first.event, first.chain)
        });
        table.row(vec![damage.kind.says().to_owned(), damage.count.to_string(), first]);
    }
    for (reason, count) in &profile.reading.odd {
        table.row(vec![(*reason).to_owned(), count.to_string(), String::new()]);
    }
    format!("\n{}", table.render(usize::MAX))
}

/// All of a vector.
fn sum(vector: &[i128]) -> i128 {
    vector.iter().sum()
}

/// All that was spent, at least one nanosecond.
fn whole(graph: &Graph) -> f64 {
    sum(graph.total()).max(1) as f64
}

fn ms(nanoseconds: i128) -> String {
    number(nanoseconds as f64 / 1e6)
}

fn percent(part: i128, whole: f64) -> String {
    format!("{:.1}", 100.0 * part as f64 / whole)
}

/// A vector with the names of its coordinates; groups without time are left out.
fn vector(groups: &[String], values: &[i128]) -> String {
    let known = groups.iter().zip(values).filter(|(_, value)| **value != 0);
    let words: Vec<String> = known.map(|(group, value)| format!("{group} {} ms", ms(*value))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// Where time was spent: the group, or each with its share.
fn places(groups: &[String], values: &[i128]) -> String {
    let total = sum(values).max(1) as f64;
    let known: Vec<(&String, &i128)> = groups.iter().zip(values).filter(|(_, value)| **value != 0).collect();
    match &*known {
        [(group, _)] => (*group).clone(),
        several => {
            let words = several.iter().map(|(group, value)| format!("{group} {}%", percent(**value, total)));
            words.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A summary as JSON lists of nanoseconds.
fn list(values: &[i128]) -> serde_json::Value {
    // Sums of a run fit into 64 bits but under deep recursion; JSON has no larger whole numbers that all programs read.
    values
        .iter()
        .map(|value| i64::try_from(*value).map_or_else(|_| (*value as f64).into(), serde_json::Value::from))
        .collect()
}
