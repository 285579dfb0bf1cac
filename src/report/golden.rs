//! What became of golden traces, as text, JSON and JUnit XML.

use serde_json::{Value, json};

use crate::diagnostic::quantity::counted;
use crate::report::json::pretty;
use crate::study::golden::{Outcome, Tested, Verdict};

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Compared(verdict) if verdict.is_good() => "validated",
        Outcome::Compared(_) => "different",
        Outcome::New => "new",
        Outcome::Accepted => "accepted",
        Outcome::Failed(_) => "failed",
        Outcome::Orphaned => "missing",
        Outcome::Held => "held",
        Outcome::Broken(_) => "broken",
    }
}

/// Traces with what became of them, as text for people.
pub fn text(tested: &[Tested]) -> String {
    let mut text = String::new();
    for Tested { name: trace, outcome, .. } in tested {
        let detail = match outcome {
            Outcome::Compared(verdict) => verdict.summary(),
            Outcome::New => "no model of it is accepted yet".to_owned(),
            Outcome::Failed(_) => "no model can be made of it".to_owned(),
            Outcome::Accepted | Outcome::Held | Outcome::Broken(_) => String::new(),
            Outcome::Orphaned => "an accepted model whose trace is gone: delete it, or bring the trace back".to_owned(),
        };
        text.push_str(format!("{:<9}  {trace}  {detail}", word(outcome)).trim_end());
        text.push('\n');
        if let Outcome::Failed(reasons) | Outcome::Broken(reasons) = outcome {
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
    let count = |wanted: &str| tested.iter().filter(|one| word(&one.outcome) == wanted).count();
    let words: Vec<String> = ["validated", "different", "new", "accepted", "failed"]
        .into_iter()
        .map(|word| (count(word), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let missing = count(word(&Outcome::Orphaned));
    let cases = tested.iter().filter(|one| one.outcome.is_of_case()).count();
    let traces = tested.len() - missing - cases;
    let mut parts = Vec::new();
    if traces > 0 {
        parts.push(format!("{}: {}", counted(traces as u64, "trace"), words.join(", ")));
    }
    if cases > 0 {
        let (held, broken) = (count("held"), count("broken"));
        let broken = if broken > 0 { format!(", {broken} broken") } else { String::new() };
        parts.push(format!("{}: {held} held{broken}", counted(cases as u64, "case")));
    }
    if missing > 0 {
        parts.push(format!("{} whose trace is missing", counted(missing as u64, "accepted model")));
    }
    text.push_str(&format!("\n{}\n", parts.join("; ")));
    text
}

/// The same as JSON.
pub fn json(tested: &[Tested]) -> String {
    let cases: Vec<Value> = tested
        .iter()
        .filter(|one| one.outcome.is_of_case())
        .map(|one| {
            let reasons = if let Outcome::Broken(reasons) = &one.outcome { reasons } else { "" };
            json!({ "case": one.name, "outcome": word(&one.outcome), "reasons": reasons })
        })
        .collect();
    let list: Value = tested
        .iter()
        .filter(|one| !one.outcome.is_of_case())
        .map(|Tested { name: trace, outcome, .. }| {
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
    pretty(&json!({ "dyelog-test": 1, "traces": list, "cases": cases }))
}

/// The same in the XML that build servers read, with how long each took, in seconds.
pub fn junit(tested: &[Tested]) -> String {
    let failures = tested.iter().filter(|one| !one.outcome.is_good()).count();
    let seconds: f64 = tested.iter().map(|one| one.seconds).sum();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"dyelog\" tests=\"{}\" failures=\"{failures}\" \
         time=\"{seconds:.3}\">\n",
        tested.len()
    );
    for one in tested {
        let name = quick_xml::escape::escape(one.name.as_str());
        let case = format!("  <testcase name=\"{name}\" time=\"{:.3}\"", one.seconds);
        if one.outcome.is_good() {
            text.push_str(&format!("{case}/>\n"));
            continue;
        }
        let told = self::text(std::slice::from_ref(one));
        let told = told.split("\n\n").next().unwrap_or_default();
        text.push_str(&format!(
            "{case}><failure message=\"{}\">{}</failure></testcase>\n",
            word(&one.outcome),
            quick_xml::escape::escape(told)
        ));
    }
    text.push_str("</testsuite>\n");
    text
}
