//! What became of golden traces, as text, JSON and JUnit XML.

use serde_json::{Value, json};

use crate::diagnostic::quantity::counted;
use crate::report::json::pretty;
use crate::study::golden::{Outcome, Verdict};

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Compared(verdict) if verdict.is_good() => "validated",
        Outcome::Compared(_) => "different",
        Outcome::New => "new",
        Outcome::Accepted => "accepted",
        Outcome::Failed(_) => "failed",
        Outcome::Orphaned => "missing",
    }
}

/// Traces with what became of them, as text for people.
pub fn text(outcomes: &[(String, Outcome)]) -> String {
    let mut text = String::new();
    for (trace, outcome) in outcomes {
        let detail = match outcome {
            Outcome::Compared(verdict) => verdict.summary(),
            Outcome::New => "no model of it is accepted yet".to_owned(),
            Outcome::Accepted => String::new(),
            Outcome::Failed(_) => "no model can be made of it".to_owned(),
            Outcome::Orphaned => "an accepted model whose trace is gone: delete it, or bring the trace back".to_owned(),
        };
        text.push_str(format!("{:<9}  {trace}  {detail}", word(outcome)).trim_end());
        text.push('\n');
        if let Outcome::Failed(reasons) = outcome {
            for line in reasons.lines().filter(|line| !line.is_empty()) {
                text.push_str(&format!("  {line}\n"));
            }
        }
        let Outcome::Compared(verdict) = outcome else { continue };
        for (word, lines) in [("noisy", &verdict.noisy), ("missing", &verdict.missing)] {
            for line in lines {
                text.push_str(&format!("  {word:<7}  {line}\n"));
            }
        }
        for (before, after) in &verdict.wrong {
            text.push_str(&format!("  wrong    {before}\n      now  {after}\n"));
        }
    }
    let count = |wanted: &str| outcomes.iter().filter(|(_, outcome)| word(outcome) == wanted).count();
    let words: Vec<String> = ["validated", "different", "new", "accepted", "failed"]
        .into_iter()
        .map(|word| (count(word), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let missing = count(word(&Outcome::Orphaned));
    let mut parts = Vec::new();
    if outcomes.len() > missing {
        parts.push(format!("{}: {}", counted((outcomes.len() - missing) as u64, "trace"), words.join(", ")));
    }
    if missing > 0 {
        parts.push(format!("{} whose trace is missing", counted(missing as u64, "accepted model")));
    }
    text.push_str(&format!("\n{}\n", parts.join("; ")));
    text
}

/// The same as JSON.
pub fn json(outcomes: &[(String, Outcome)]) -> String {
    let list: Value = outcomes
        .iter()
        .map(|(trace, outcome)| {
            let none = Verdict::default();
            let verdict = if let Outcome::Compared(verdict) = outcome { verdict } else { &none };
            let wrong: Vec<Value> =
                verdict.wrong.iter().map(|(before, after)| json!({ "accepted": before, "found": after })).collect();
            json!({
                "trace": trace,
                "outcome": word(outcome),
                "validated": verdict.validated,
                "noisy": verdict.noisy,
                "missing": verdict.missing,
                "wrong": wrong,
                "reasons": if let Outcome::Failed(reasons) = outcome { reasons } else { "" },
            })
        })
        .collect();
    pretty(&json!({ "dyelog-test": 1, "traces": list }))
}

/// The same in the XML that build servers read.
pub fn junit(outcomes: &[(String, Outcome)]) -> String {
    let failures = outcomes.iter().filter(|(_, outcome)| !outcome.is_good()).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"dyelog\" tests=\"{}\" failures=\"{failures}\">\n",
        outcomes.len()
    );
    for (trace, outcome) in outcomes {
        let name = quick_xml::escape::escape(trace.as_str());
        if outcome.is_good() {
            text.push_str(&format!("  <testcase name=\"{name}\"/>\n"));
            continue;
        }
        let one = [(trace.clone(), outcome.clone())];
        let told = self::text(&one);
        let told = told.split("\n\n").next().unwrap_or_default();
        text.push_str(&format!(
            "  <testcase name=\"{name}\"><failure message=\"{}\">{}</failure></testcase>\n",
            word(outcome),
            quick_xml::escape::escape(told)
        ));
    }
    text.push_str("</testsuite>\n");
    text
}
