//! Committed matches as CSV, JSON and text. Scripts rely on the names of columns and keys.

use serde_json::{Map, Value, json};

use crate::report::Look;
use crate::report::csv::Rows;
use crate::report::json::pretty;
use crate::report::table::Table;
use crate::tlc::{BoundTo, MatchRow};

const COLUMNS: [&str; 6] = ["scenario", "run", "thread", "node", "template", "entry"];

/// A row each match, with a header. Thread and node are those of the glue node; the entry is numbered within the operation,
/// `E0` being the customer's, and empty where the thread came to the node with no recognised request.
pub fn csv(matches: &[MatchRow]) -> String {
    let mut rows = Rows::new(&COLUMNS);
    for row in matches {
        let (thread, node) = (row.thread.to_string(), row.node.to_string());
        rows.add(&[&row.scenario, &row.run, &thread, &node, &row.template, &entry(row)]);
    }
    rows.finish()
}

/// `{"dyelog-matches": 1, "matches": […]}`: objects with the same names, and what each match binds where that was kept: `nodes` and `variables` by name.
pub fn json(matches: &[MatchRow]) -> String {
    let list: Value = matches
        .iter()
        .map(|row| {
            let mut object = json!({
                "scenario": &*row.scenario,
                "run": &*row.run,
                "thread": row.thread,
                "node": row.node,
                "template": &*row.template,
                "entry": row.entry.map(|entry| format!("E{entry}")),
            });
            if let Some(bindings) = &row.bindings {
                let nodes = bindings.nodes.iter();
                let nodes: Map<String, Value> = nodes
                    .map(|(name, thread, node)| (name.clone(), json!({ "thread": thread, "node": node })))
                    .collect();
                let variable = |value: &BoundTo| match value {
                    BoundTo::Number(number) => json!(number),
                    BoundTo::Text(text) => json!(text),
                };
                let variables = bindings.variables.iter();
                let variables: Map<String, Value> =
                    variables.map(|(name, value)| (name.clone(), variable(value))).collect();
                object["nodes"] = Value::Object(nodes);
                object["variables"] = Value::Object(variables);
            }
            object
        })
        .collect();
    pretty(&json!({ "dyelog-matches": 1, "matches": list }))
}

/// A table, and how often each template matched.
pub fn text(matches: &[MatchRow], look: impl Into<Look>) -> String {
    let look = look.into();
    let mut table = Table::new(&["SCENARIO", "RUN", ">THREAD", ">NODE", "TEMPLATE", "ENTRY"]);
    for row in matches {
        table.row(vec![
            row.scenario.to_string(),
            row.run.to_string(),
            row.thread.to_string(),
            row.node.to_string(),
            row.template.to_string(),
            entry(row),
        ]);
    }
    format!("{}\n{}", table.render(look), by_template(matches, look))
}

/// How often each template matched; nothing where none did.
pub fn by_template(matches: &[MatchRow], look: impl Into<Look>) -> String {
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    for row in matches {
        *counts.entry(&row.template).or_default() += 1;
    }
    let mut sums = Table::new(&["TEMPLATE", ">MATCHES"]);
    for (template, count) in counts {
        sums.row(vec![template.to_owned(), count.to_string()]);
    }
    sums.render(look.into())
}

fn entry(row: &MatchRow) -> String {
    row.entry.map(|entry| format!("E{entry}")).unwrap_or_default()
}
