//! Coverage of traces by templates, as text and JSON.

use serde_json::{Value, json};

use crate::diagnostic::quantity::counted;
use crate::report::explain::view::{place_json, place_words};
use crate::report::json::pretty;
use crate::report::look::{Look, Tone};
use crate::report::table::{Cell, Table};
use crate::same::rules::TemplateCount;
use crate::tlc::Rules;
use crate::tlc::explain::Coverage;

/// Coverage of one file.
#[derive(Clone, Debug, Default)]
pub struct FileCoverage {
    /// The file, as the user gave its name.
    pub file: String,
    /// What the templates did with it.
    pub coverage: Coverage,
}

/// The templates in their order, with the numbers of their plans.
fn ordered(rules: &Rules) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rules.plans().len()).filter(|plan| rules.first_of(*plan) == *plan).collect();
    order.sort_by_key(|number| rules.plans()[*number].order);
    order
}

/// Templates that never fired, those of the user's files apart.
fn idle(rules: &Rules, all: &Coverage) -> (Vec<String>, Vec<String>) {
    let fired = |number: usize| all.templates.get(number).is_some_and(|count| count.matches > 0);
    let idle = ordered(rules).into_iter().filter(|number| !fired(*number));
    let (own, shipped): (Vec<usize>, Vec<usize>) = idle.partition(|number| rules.is_of_user(*number));
    let names = |numbers: Vec<usize>| numbers.iter().map(|number| rules.plans()[*number].name.to_string()).collect();
    (names(own), names(shipped))
}

/// Whether there is a finding: a node that no template took, or a template of the user that never fired.
pub fn is_finding(rules: &Rules, all: &Coverage) -> bool {
    all.unprocessed > 0 || !idle(rules, all).0.is_empty()
}

/// Tables for people.
pub fn text(rules: &Rules, files: &[FileCoverage], all: &Coverage, look: Look) -> String {
    let mut table = Table::new(&["TEMPLATE", ">ORDER", ">MATCHES", ">NODES", ">OF ALL (%)"]);
    let share = |nodes: u64| format!("{:.1}", 100.0 * nodes as f64 / all.nodes.max(1) as f64);
    for number in ordered(rules) {
        let count = all.templates.get(number).copied().unwrap_or_default();
        let plan = &rules.plans()[number];
        if count.matches > 0 {
            table.row(vec![
                plan.name.to_string(),
                plan.order.to_string(),
                count.matches.to_string(),
                count.nodes.to_string(),
                share(count.nodes),
            ]);
        }
    }
    if all.unprocessed > 0 {
        let tone = |text: String| Cell::toned(text, Tone::Alarm);
        let row = ["no template".to_owned(), String::new(), String::new()].into_iter();
        table.row(row.chain([all.unprocessed.to_string(), share(all.unprocessed)]).map(tone).collect());
    }
    let mut text = if table.is_empty() { String::new() } else { table.render(look) };
    let (own, shipped) = idle(rules, all);
    for (names, whose) in [(own, "of your files"), (shipped, "of the shipped files")] {
        if !names.is_empty() {
            text.push_str(&format!("never fired, {whose}: {}\n", names.join(", ")));
        }
    }
    if files.len() > 1 {
        let mut table = Table::new(&["FILE", ">OPERATIONS", ">NODES", ">UNPROCESSED"]);
        for file in files {
            let of = &file.coverage;
            let tone = if of.unprocessed > 0 { Tone::Alarm } else { Tone::Plain };
            table.row(vec![
                Cell::from(file.file.as_str()),
                Cell::from(of.operations.to_string()),
                Cell::from(of.nodes.to_string()),
                Cell::toned(of.unprocessed.to_string(), tone),
            ]);
        }
        text.push('\n');
        text.push_str(&table.render(look));
    }
    let operations = counted(all.operations, "operation");
    let nodes = counted(all.nodes, "node");
    text.push_str(&format!("\n{} of {nodes} of {operations} processed\n", all.nodes - all.unprocessed));
    if all.shown.is_empty() {
        return text;
    }
    let mut table = Table::new(&["UNPROCESSED", "RUN", "KIND", "TASK", "WHERE"]);
    for node in &all.shown {
        table.row(vec![
            node.stamp.clone(),
            node.run.clone(),
            node.kind.to_owned(),
            node.task.clone(),
            place_words(&node.place),
        ]);
    }
    text.push('\n');
    text.push_str(&table.render(look));
    let hidden = all.unprocessed - all.shown.len() as u64;
    if hidden > 0 {
        text.push_str(&format!("and {hidden} more; `--all` shows them\n"));
    }
    text
}

/// One JSON document, ending in a newline: `{"dyelog-coverage": 1, "all": {"operations", "nodes", "unprocessed", "templates":
/// [{"template", "order", "matches", "nodes"}]}, "never_fired", "files": [the same with "file"], "unprocessed": [{"node",
/// "run", "kind", "task", "place"}]}`.
pub fn json(rules: &Rules, files: &[FileCoverage], all: &Coverage) -> String {
    let figures = |of: &Coverage| {
        let templates = ordered(rules).into_iter().map(|number| {
            let (plan, count) = (&rules.plans()[number], of.templates.get(number).copied().unwrap_or_default());
            json!({
                "template": &*plan.name,
                "order": plan.order,
                "matches": count.matches,
                "nodes": count.nodes,
            })
        });
        json!({
            "operations": of.operations,
            "nodes": of.nodes,
            "unprocessed": of.unprocessed,
            "templates": templates.collect::<Value>(),
        })
    };
    let by_file = files.iter().map(|file| {
        let mut figures = figures(&file.coverage);
        figures["file"] = json!(file.file);
        figures
    });
    let unprocessed = all.shown.iter().map(|node| {
        json!({
            "node": node.stamp,
            "run": node.run,
            "kind": node.kind,
            "task": node.task,
            "place": place_json(&node.place),
        })
    });
    let (own, shipped) = idle(rules, all);
    let idle = [own, shipped].concat();
    pretty(&json!({
        "dyelog-coverage": 1,
        "all": figures(all),
        "never_fired": idle,
        "files": by_file.collect::<Value>(),
        "unprocessed": unprocessed.collect::<Value>(),
    }))
}

/// A table of templates on events.
pub fn events_text(templates: &[TemplateCount], look: Look) -> String {
    let mut table = Table::new(&["TEMPLATE", "EVENT", ">TIMES"]);
    for one in templates.iter().filter(|one| one.times > 0) {
        table.row(vec![one.name.to_string(), one.event.to_owned(), one.times.to_string()]);
    }
    let mut text = if table.is_empty() { String::new() } else { table.render(look) };
    for (is_shipped, whose) in [(false, "of your files"), (true, "of the shipped files")] {
        let idle = templates.iter().filter(|one| one.times == 0 && one.is_shipped == is_shipped);
        let names: Vec<&str> = idle.map(|one| &*one.name).collect();
        if !names.is_empty() {
            text.push_str(&format!("never fired, {whose}: {}\n", names.join(", ")));
        }
    }
    text
}

/// One JSON document, ending in a newline: `{"dyelog-coverage": 1, "templates": [{"template", "event", "times"}], "never_fired"}`.
pub fn events_json(templates: &[TemplateCount]) -> String {
    let list = templates.iter().map(|one| json!({ "template": &*one.name, "event": one.event, "times": one.times }));
    let idle: Vec<&str> = templates.iter().filter(|one| one.times == 0).map(|one| &*one.name).collect();
    pretty(&json!({ "dyelog-coverage": 1, "templates": list.collect::<Value>(), "never_fired": idle }))
}
