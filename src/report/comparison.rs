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

/// Differences as tables for people, with a line of counts.
pub fn text(differences: &[Difference], look: impl Into<Look>) -> String {
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
    if differences.is_empty() {
        return "no difference\n".to_owned();
    }
    let words: Vec<String> = counts.into_iter().map(|(what, count)| format!("{count} {}", what.word())).collect();
    format!("{}\n{}\n", table.render(look), words.join(", "))
}

/// By how much a number changed, in parts of what it was.
fn share(difference: &Difference) -> Option<f64> {
    match (&difference.before, &difference.after) {
        (Some(Datum::Number(before)), Some(Datum::Number(after))) if *before != 0.0 => Some((after - before) / before),
        _ => None,
    }
}

/// Differences as JSON.
pub fn json(differences: &[Difference]) -> String {
    let list: Value = differences
        .iter()
        .map(|difference| {
            let datum = |datum: &Option<Datum>| datum.as_ref().map(machine);
            json!({
                "what": difference.what.word(),
                "kind": difference.kind,
                "name": difference.name,
                "value": difference.value,
                "before": datum(&difference.before),
                "after": datum(&difference.after),
            })
        })
        .collect();
    pretty(&json!({ "dyelog-diff": 1, "differences": list }))
}
