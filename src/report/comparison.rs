//! What differs between two models or two sets of results, as text and JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::diagnostic::quantity::number;
use crate::report::Look;
use crate::report::json::pretty;
use crate::report::table::Table;
use crate::study::comparison::{Datum, Difference, What};

fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Number(value) => number(*value),
        Datum::Word(word) => word.clone(),
    }
}

fn machine(datum: &Datum) -> Value {
    match datum {
        Datum::Number(value) => json!(value),
        Datum::Word(word) => json!(word),
    }
}

/// Differences as tables for people, with a line of counts, and one that counts those which may be chance.
pub fn text(differences: &[Difference], within: usize, look: impl Into<Look>) -> String {
    let mut table = Table::new(&["", "WHAT", "NAME", "VALUE", ">BEFORE", ">AFTER", ">CHANGE"]);
    let mut counts = BTreeMap::<What, usize>::new();
    for difference in differences {
        *counts.entry(difference.what).or_default() += 1;
        let cell = |datum: &Option<Datum>| datum.as_ref().map(shown).unwrap_or_default();
        table.row(vec![
            difference.what.word().to_owned(),
            difference.kind.clone(),
            difference.name.clone(),
            difference.value.clone().unwrap_or_default(),
            cell(&difference.before),
            cell(&difference.after),
            share(difference).map(|share| format!("{:+.1} %", share * 100.0)).unwrap_or_default(),
        ]);
    }
    let by_chance = match within {
        0 => String::new(),
        1 => "1 difference within its interval\n".to_owned(),
        more => format!("{more} differences within their intervals\n"),
    };
    if differences.is_empty() {
        return if within == 0 {
            "no difference\n".to_owned()
        } else {
            format!("no difference beyond chance\n{by_chance}")
        };
    }
    let words: Vec<String> = counts.into_iter().map(|(what, count)| format!("{count} {}", what.word())).collect();
    format!("{}\n{}\n{by_chance}", table.render(look), words.join(", "))
}

/// By how much a number changed, in parts of what it was.
fn share(difference: &Difference) -> Option<f64> {
    match (&difference.before, &difference.after) {
        (Some(Datum::Number(before)), Some(Datum::Number(after))) if *before != 0.0 => Some((after - before) / before),
        _ => None,
    }
}

/// Differences as JSON, and after them those which may be chance.
pub fn json(differences: &[Difference], within: &[Difference]) -> String {
    let clear = differences.iter().map(|difference| (difference, false));
    let list: Value = clear
        .chain(within.iter().map(|difference| (difference, true)))
        .map(|(difference, is_within)| {
            let datum = |datum: &Option<Datum>| datum.as_ref().map(machine);
            json!({
                "what": difference.what.word(),
                "kind": difference.kind,
                "name": difference.name,
                "value": difference.value,
                "before": datum(&difference.before),
                "after": datum(&difference.after),
                "within_interval": is_within,
            })
        })
        .collect();
    pretty(&json!({ "dyelog-diff": 1, "differences": list }))
}
