//! Interactions recognised from messages as CSV, JSON and text. Scripts rely on the names of columns and keys.

use serde_json::{Value, json};

use crate::report::Look;
use crate::report::csv::Rows;
use crate::report::json::pretty;
use crate::report::table::Table;
use crate::same::{Occurrence, Record};
use crate::trace::TraceNames;

const COLUMNS: [&str; 5] = ["kind", "time", "client", "server", "via"];

/// A row each interaction, with a header. Tasks are written with the number of their execution occurrence, `name.eo`; a thread of a
/// task, but for the first, as `name(2).eo`. The time is that at which the request arrived.
pub fn csv(records: &[Record], names: &TraceNames) -> String {
    let mut rows = Rows::new(&COLUMNS);
    for record in records {
        let [kind, time, client, server, via] = words(record, names);
        rows.add(&[&kind, &time, &client, &server, &via]);
    }
    rows.finish()
}

/// `{"dyelog-interactions": 1, "interactions": […]}`: objects with the same names; `via` is a list, `end` the time at which the reply arrived, and
/// `template` the template that found it, `null` where the end of the trace did.
pub fn json(records: &[Record], names: &TraceNames) -> String {
    let list: Value = records
        .iter()
        .map(|record| {
            json!({
                "kind": record.kind.word(),
                "time": record.time.and_then(number),
                "end": record.end.and_then(number),
                "client": occurrence(record.client, names),
                "server": occurrence(record.server, names),
                "via": record.via.iter().map(|one| occurrence(*one, names)).collect::<Vec<_>>(),
                "cut_off": record.cut_off,
                "template": record.template.as_deref(),
            })
        })
        .collect();
    pretty(&json!({ "dyelog-interactions": 1, "interactions": list }))
}

/// A table, and how many there are of each kind.
pub fn text(records: &[Record], names: &TraceNames, look: impl Into<Look>) -> String {
    let look = look.into();
    let mut table = Table::new(&["KIND", ">TIME", "CLIENT", "SERVER", "VIA"]);
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    for record in records {
        *counts.entry(record.kind.word()).or_default() += 1;
        table.row(words(record, names).to_vec());
    }
    let mut sums = Table::new(&["KIND", ">INTERACTIONS"]);
    for (kind, count) in counts {
        sums.row(vec![kind.to_owned(), count.to_string()]);
    }
    format!("{}\n{}", table.render(look), sums.render(look))
}

fn words(record: &Record, names: &TraceNames) -> [String; 5] {
    let via: Vec<String> = record.via.iter().map(|one| occurrence(*one, names)).collect();
    let time = record.time.map(|time| time.to_string()).unwrap_or_default();
    [
        record.kind.word().to_owned(),
        time,
        occurrence(record.client, names),
        occurrence(record.server, names),
        via.join(">"),
    ]
}

/// `name.eo`.
pub(super) fn occurrence(one: Occurrence, names: &TraceNames) -> String {
    let task = names.task(one.task);
    let name = names.names.text(task.name);
    if task.instance == 1 {
        format!("{name}.{}", one.number)
    } else {
        format!("{name}({}).{}", task.instance, one.number)
    }
}

fn number(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
