//! What was read, restored, set aside and left over, and why.

use crate::diagnostic::Diagnostic;
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{count, percent, things};
use crate::report::html::{Made, Report, findings};
use crate::report::markup::Markup;

/// The quality of the data.
pub fn write(report: &Report<'_>, html: &mut Markup) {
    if let Some(made) = report.made {
        figures(made, html);
        reasons("While reading: what was left out or changed", &made.reading.counted, html);
        damage(made, html);
        failures(report, made, html);
        reasons("While matching: what no template explains", &made.matching.counted, html);
        findings::write(html, "Findings while reading", &made.reading.findings);
        let damaged: Vec<Diagnostic> = made.quality.damaged.iter().map(|kept| kept.finding.clone()).collect();
        findings::write(html, "Damaged operations", &damaged);
        findings::write(html, "Findings while matching", &made.matching.findings);
    }
    findings::write(html, "About the model: choices and caveats", report.findings);
}

/// What failed or was tried once more, by scenario and by entry.
fn failures(report: &Report<'_>, made: Made<'_>, html: &mut Markup) {
    let mut table =
        Table::new("Failures and retries", &["What", "Name", ">Seen", ">Failed", "Part", ">Tried once more"]);
    let mut row = |what: &str, name: &str, seen: u64, failed: u64, again: Option<u64>| {
        if failed + again.unwrap_or(0) == 0 {
            return;
        }
        table.row(|| {
            vec![
                Cell::from(what),
                Cell::Name(name.to_owned()),
                Cell::Count(seen),
                Cell::Count(failed),
                Cell::Text(percent(failed as f64 / seen.max(1) as f64)),
                again.map_or(Cell::Blank, Cell::Count),
            ]
        });
    };
    for scenario in &made.origins.scenarios {
        row("scenario", &scenario.name, scenario.operations, scenario.failures, None);
    }
    for (entry, origin) in report.model.entries.iter().zip(&made.origins.entries) {
        if let Some(total) = made.submodel.entries().get(origin.total.index()) {
            row("entry", &entry.name, total.invocations, total.failures, Some(total.retries));
        }
    }
    table.write(html);
}

/// How many operations were used and set aside of traces that were summed up before; `None` where traces were read.
pub fn summed_up(made: Made<'_>) -> Option<(u64, u64)> {
    let used = || made.submodel.scenarios.values().map(|total| total.operations).sum();
    (made.quality.operations == 0 && made.reading.records == 0).then(|| (used(), made.submodel.set_aside))
}

fn figures(made: Made<'_>, html: &mut Markup) {
    let (reading, quality) = (made.reading, made.quality);
    if let Some((used, aside)) = summed_up(made) {
        let inferred: u64 = made.submodel.scenarios.values().map(|total| total.mended).sum();
        let text = format!(
            "The traces were summed up before: {} used, {} set aside, and {} inferred in place of lost ones. What else was read, restored and matched \
             is not known any more.",
            things(used, "operation", "operations"),
            count(aside),
            things(inferred, "span", "spans")
        );
        html.open("div", &[("class", "say")]).element("p", &[], &text).close();
        return;
    }
    let mut table = Table::new("What was read", &["What", ">How many", "Of it"]);
    let mut row = |what: &str, number: u64, rest: String| {
        table.row(|| {
            vec![Cell::from(what), Cell::Count(number), if rest.is_empty() { Cell::Blank } else { Cell::Text(rest) }]
        });
    };
    row("records: spans or lines", reading.records, String::new());
    row(
        "operations",
        quality.operations,
        format!(
            "{} sound, {} restored, {} set aside",
            count(quality.sound),
            count(quality.restored),
            count(quality.set_aside)
        ),
    );
    let aside = match quality.events_set_aside {
        0 => String::new(),
        events => format!("and {} set aside", count(events)),
    };
    row("events used", quality.events, aside);
    let (nodes, matched) = made.nodes;
    let share =
        if nodes == 0 { String::new() } else { format!("{} of those used", percent(matched as f64 / nodes as f64)) };
    row("events that a template explains", matched, share);
    table.write(html);
    let whole =
        quality.restored + quality.set_aside == 0 && reading.counted.is_empty() && made.matching.counted.is_empty();
    if whole && quality.operations > 0 {
        let operations = things(quality.operations, "operation", "operations");
        let text =
            format!("Nothing was left out: {operations} came through as they were, and every event is explained.");
        html.open("div", &[("class", "say")]).element("p", &[], &text).close();
    }
}

fn reasons(caption: &'static str, counted: &std::collections::BTreeMap<&'static str, u64>, html: &mut Markup) {
    let mut table = Table::new(caption, &["Reason", ">Times"]);
    for (reason, times) in counted {
        table.row(|| vec![Cell::from(*reason), Cell::Count(*times)]);
    }
    table.write(html);
}

fn damage(made: Made<'_>, html: &mut Markup) {
    let mut table = Table::new("Damage of operations", &["Code", "Finding", ">Findings", ">Operations"]);
    for (code, counted) in &made.quality.findings {
        table.row(|| {
            vec![
                Cell::from(*code),
                Cell::from(counted.what),
                Cell::Count(counted.findings),
                Cell::Count(counted.operations),
            ]
        });
    }
    table.write(html);
}
