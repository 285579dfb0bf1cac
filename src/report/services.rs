//! Operations of services and calls between services, as text and JSON.

use serde_json::{Value, json};

use crate::diagnostic::quantity;
use crate::report::Look;
use crate::report::table::Table;
use crate::study::services::{Latency, Services};

/// Two tables; empty where there are no spans.
pub fn text(services: &Services, look: Look) -> String {
    let period = services.period();
    let cells = |latency: &Latency| {
        let quantiles = latency.spread.quantiles();
        let time = |seconds: Option<f64>| seconds.map(quantity::milliseconds).unwrap_or_default();
        let failed = if latency.failed > 0 {
            quantity::percent(latency.failed as f64 / latency.count as f64)
        } else {
            String::new()
        };
        vec![
            latency.count.to_string(),
            period.map(|period| quantity::number(latency.weight / period)).unwrap_or_default(),
            quantity::milliseconds(latency.mean()),
            time(quantiles.p50),
            time(quantiles.p95),
            time(quantiles.p99),
            failed,
        ]
    };
    let figures = [">TRACED", ">PER SECOND", ">MEAN", ">MEDIAN", ">P95", ">P99", ">FAILED"];
    let mut operations = Table::new(&[&["SERVICE", "OPERATION"], &figures[..]].concat());
    for ((service, name), latency) in &services.operations {
        operations.row([vec![service.clone(), name.clone()], cells(latency)].concat());
    }
    let mut calls = Table::new(&[&["FROM", "TO", "CALL"], &figures[..]].concat());
    for ((from, to, name), latency) in &services.calls {
        calls.row([vec![from.clone(), to.clone(), name.clone()], cells(latency)].concat());
    }
    let mut text = String::new();
    for table in [operations, calls].into_iter().filter(|table| !table.is_empty()) {
        text.push('\n');
        text += &table.render(look);
    }
    text
}

/// The same as JSON: two lists, times in seconds.
pub fn json(services: &Services) -> Value {
    let period = services.period();
    let figures = |latency: &Latency| {
        let quantiles = latency.spread.quantiles();
        json!({
            "count": latency.count,
            "rate": period.map(|period| latency.weight / period),
            "mean": latency.mean(),
            "p50": quantiles.p50,
            "p95": quantiles.p95,
            "p99": quantiles.p99,
            "failed": latency.failed,
        })
    };
    let with = |latency: &Latency, names: Value| {
        let mut document = names;
        if let (Value::Object(own), Value::Object(more)) = (&mut document, figures(latency)) {
            own.extend(more);
        }
        document
    };
    let operations = services
        .operations
        .iter()
        .map(|((service, name), latency)| with(latency, json!({ "service": service, "operation": name })));
    let calls = services
        .calls
        .iter()
        .map(|((from, to, name), latency)| with(latency, json!({ "from": from, "to": to, "call": name })));
    json!({ "operations": operations.collect::<Vec<_>>(), "calls": calls.collect::<Vec<_>>() })
}
