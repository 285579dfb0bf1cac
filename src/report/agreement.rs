//! How far templates and messages alone agree, as text and JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::diagnostic::quantity::number;
use crate::report::Look;
use crate::report::json::pretty;
use crate::report::table::Table;
use crate::study::agreement::{Agreement, Difference};

fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
    number((share * 1000.0).round() / 10.0)
}

/// For people.
pub fn text(agreement: &Agreement, look: impl Into<Look>) -> String {
    let mut text = format!(
        "operations compared: {}\nrequests: {}; found alike from the messages alone: {} ({} %)\n\
             and with each service as one sequential task: {} ({} %)\n",
        agreement.operations,
        agreement.requests,
        agreement.agreed,
        percent(agreement.agreed, agreement.requests),
        agreement.sequential,
        percent(agreement.sequential, agreement.requests)
    );
    if agreement.left_out > 0 {
        text += &format!("damaged operations left out: {}\n", agreement.left_out);
    }
    if agreement.invented > 0 {
        text += &format!("replies taken for requests without the dye: {}\n", agreement.invented);
    }
    let look = look.into();
    if !agreement.at_once.is_empty() {
        let mut table = Table::new(&["THE SENDER WAS SERVING", ">REQUESTS", ">FOUND ALIKE"]);
        // Where guesses go wrong there may be hundreds of numbers.
        let mut groups: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for (&at_once, (requests, agreed)) in &agreement.at_once {
            let group = if at_once < 8 {
                (at_once, at_once)
            } else {
                let first = 1 << at_once.ilog2();
                (first, first + (first - 1))
            };
            let group = groups.entry(group).or_default();
            *group = (group.0 + requests, group.1 + agreed);
        }
        for ((first, last), (requests, agreed)) in &groups {
            let serving = match first {
                0 => "none: a customer".to_owned(),
                1 => "1 request".to_owned(),
                _ if first == last => format!("{first} at once"),
                _ => format!("{first} to {last} at once"),
            };
            table.row(vec![serving, requests.to_string(), format!("{} %", percent(*agreed, *requests))]);
        }
        text += "\n";
        text += &table.render(look);
    }
    if !agreement.differences.is_empty() {
        let mut table = Table::new(&["BETWEEN", "WITH THE DYE", "WITHOUT IT", ">TIMES", ">SERVING AT ONCE"]);
        let mut rows: Vec<_> = agreement.differences.iter().collect();
        rows.sort_by(|left, right| right.1.times.cmp(&left.1.times).then(left.0.cmp(right.0)));
        for ((between, said, told), Difference { times, at_once }) in rows {
            let mean = number((*at_once as f64 / *times as f64 * 10.0).round() / 10.0);
            table.row(vec![between.clone(), said.clone(), told.clone(), times.to_string(), mean]);
        }
        text += "\n";
        text += &table.render(look);
    }
    text
}

/// For programs.
pub fn json(agreement: &Agreement) -> String {
    let differences: Value = agreement
        .differences
        .iter()
        .map(|((between, said, told), Difference { times, at_once })| {
            let mean = *at_once as f64 / *times as f64;
            json!({ "between": between, "tlc": said, "same": told, "times": times, "at_once": mean })
        })
        .collect();
    let at_once: Value = agreement
        .at_once
        .iter()
        .map(|(at_once, (requests, agreed))| json!({ "at_once": at_once, "requests": requests, "agreed": agreed }))
        .collect();
    pretty(&json!({
        "dyelog-comparison": 1,
        "operations": agreement.operations,
        "left_out": agreement.left_out,
        "requests": agreement.requests,
        "agreed": agreement.agreed,
        "share": agreement.share(),
        "sequential": agreement.sequential,
        "at_once": at_once,
        "invented": agreement.invented,
        "differences": differences,
    }))
}
