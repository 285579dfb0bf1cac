//! What changed between two measured runs.

use serde_json::{Value, json};

use crate::callgraph::diff::{Breach, Difference, Estimate, Row, Run, Sample};
use crate::diagnostic::quantity::number;
use crate::report::json::pretty;
use crate::report::look::{Look, Tone};
use crate::report::table::{Cell, Table};

/// Functions by the change of the time they spend themselves for each operation, then the limits that were broken.
///
/// At most `lines` functions are shown; those whose change is within chance and below `least` of the whole are counted only.
pub fn text(
    difference: &Difference,
    breaches: &[(String, Vec<Breach>)],
    least: f64,
    lines: usize,
    look: Look,
) -> String {
    let mut text = String::new();
    let what = if difference.wall { "time by the clock on the wall" } else { "processor time" };
    let totals = [&difference.before, &difference.after].map(Run::total);
    text.push_str(&format!(
        "{what} an operation: {} ms, then {} ms ({}); {} operations, then {}\n",
        ms(totals[0]),
        ms(totals[1]),
        relative(totals[0], totals[1]),
        difference.before.operations,
        difference.after.operations
    ));
    text.push_str(&groups(difference));
    text.push('\n');
    let floor = least * totals[0].max(totals[1]);
    let counts = |row: &&Row| {
        let own = row.own();
        own.mean.abs() >= floor && own.mean != 0.0
            || row.before.is_none()
            || row.after.is_none()
            || own.mean.abs() > own.half_width()
    };
    let changed: Vec<&Row> = difference.rows.iter().filter(counts).collect();
    let mut table = Table::new(&[
        "FUNCTION",
        ">SELF BEFORE (ms)",
        ">AFTER (ms)",
        ">CHANGE (ms)",
        ">± 95% (ms)",
        ">CHANGE (%)",
        ">INCLUSIVE (ms)",
        ">CALLS BEFORE",
        ">AFTER",
        ">LATENCY (ms)",
        "",
    ]);
    for row in changed.iter().take(lines) {
        table.row(cells(row));
    }
    if !table.is_empty() {
        text.push_str("each figure is for one operation; INCLUSIVE and LATENCY are changes\n");
        text.push_str(&table.render(look));
    }
    let left = difference.rows.len() - changed.len().min(lines);
    if left > 0 {
        text.push_str(&format!("{left} more functions of {} with smaller changes\n", difference.rows.len()));
    }
    for (limit, breaches) in breaches {
        match breaches.len() {
            0 => text.push_str(&format!("{limit}: nothing\n")),
            count => text.push_str(&format!("{limit}: {count}\n")),
        }
        for breach in breaches {
            text.push_str(&format!("  {}  +{}%\n", breach.label, number(breach.percent)));
        }
    }
    text
}

fn groups(difference: &Difference) -> String {
    let mut names: Vec<&String> =
        difference.before.groups.iter().chain(&difference.after.groups).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    if names.len() < 2 {
        return String::new();
    }
    let of = |run: &Run, name: &str| run.groups.iter().find(|(known, _)| known == name).map_or(0.0, |(_, time)| *time);
    let words = names.into_iter().map(|name| {
        let (before, after) = (of(&difference.before, name), of(&difference.after, name));
        format!("{name} {} ms, then {} ms ({})", ms(before), ms(after), relative(before, after))
    });
    format!("by processor group: {}\n", words.collect::<Vec<_>>().join("; "))
}

fn cells(row: &Row) -> Vec<Cell> {
    let own = row.own();
    let of = |sample: Option<Sample>, value: fn(&Sample) -> f64| sample.map(|sample| value(&sample));
    let shown = |value: Option<f64>| value.map_or_else(String::new, ms);
    let own_time: fn(&Sample) -> f64 = |sample| sample.own.mean;
    let (before, after) = (of(row.before, own_time), of(row.after, own_time));
    let calls =
        [row.before, row.after].map(|sample| of(sample, |sample| sample.invocations).map_or_else(String::new, number));
    let [calls_before, calls_after] = calls;
    let state = match (row.before, row.after) {
        (None, _) => "new",
        (_, None) => "vanished",
        _ if own.mean.abs() <= own.half_width() && own.mean != 0.0 => "within chance",
        _ => "",
    };
    let sure = own.mean.abs() > own.half_width();
    let tone = if sure && own.mean > 0.0 { Tone::of_utilization(1.0) } else { Tone::Plain };
    let change = match (before, after) {
        (Some(before), Some(after)) => relative(before, after),
        _ => String::new(),
    };
    vec![
        row.label.clone().into(),
        shown(before).into(),
        shown(after).into(),
        Cell::toned(signed(own.mean), tone),
        ms(own.half_width()).into(),
        change.into(),
        signed(row.inclusive()).into(),
        calls_before.into(),
        calls_after.into(),
        row.latency().map_or_else(String::new, |latency| signed(latency.mean)).into(),
        state.into(),
    ]
}

fn ms(nanoseconds: f64) -> String {
    number(nanoseconds / 1e6)
}

fn signed(nanoseconds: f64) -> String {
    let text = ms(nanoseconds);
    if nanoseconds > 0.0 { format!("+{text}") } else { text }
}

/// The change in percent of the first.
fn relative(before: f64, after: f64) -> String {
    if before == 0.0 {
        return if after == 0.0 { "0%".to_owned() } else { "new".to_owned() };
    }
    format!("{:+.1}%", 100.0 * (after - before) / before)
}

/// `{"dyelog-profile-diff": 1, "measure", "before": run, "after": run, "functions": [{"name", "kind", "before", "after", "self_change",
/// "inclusive_change", "latency_change"}], "limits": [{"limit", "breaches": [{"name", "percent"}]}]}`. Times are nanoseconds for each operation
/// (latencies: for each invocation); a change has the half width of its 95 % interval; the percentage of what is new is `null`.
pub fn json(difference: &Difference, breaches: &[(String, Vec<Breach>)]) -> String {
    let run = |run: &Run| {
        let groups: serde_json::Map<String, Value> =
            run.groups.iter().map(|(name, time)| (name.clone(), (*time).into())).collect();
        json!({ "operations": run.operations, "total": run.total(), "groups": groups })
    };
    let estimate = |estimate: Estimate| json!({ "mean": estimate.mean, "half_width": estimate.half_width() });
    let sample = |sample: Option<Sample>| {
        sample.map(|sample| {
            json!({
                "invocations": sample.invocations,
                "self": estimate(sample.own),
                "inclusive": sample.inclusive,
                "latency": sample.latency.map(estimate),
            })
        })
    };
    let rows = difference.rows.iter().map(|row| {
        json!({
            "name": row.label,
            "kind": row.kind.name(),
            "before": sample(row.before),
            "after": sample(row.after),
            "self_change": estimate(row.own()),
            "inclusive_change": row.inclusive(),
            "latency_change": row.latency().map(estimate),
        })
    });
    let limits = breaches.iter().map(|(limit, breaches)| {
        let breaches: Vec<Value> = breaches
            .iter()
            .map(|breach| {
                let percent = Some(breach.percent).filter(|percent| percent.is_finite());
                json!({ "name": breach.label, "percent": percent })
            })
            .collect();
        json!({ "limit": limit, "breaches": breaches })
    });
    pretty(&json!({
        "dyelog-profile-diff": 1,
        "measure": if difference.wall { "wall" } else { "cpu" },
        "before": run(&difference.before),
        "after": run(&difference.after),
        "functions": rows.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
    }))
}
