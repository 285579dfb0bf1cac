//! Where each number came from.

use crate::diagnostic::quantity::number;
use crate::lqn::submodel::{EntryTotal, Interaction, Witness};
use crate::lqn::{Body, EntryId, Work};
use crate::model::{DemandSource, EntryOrigin, LoadReason};
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{things, time};
use crate::report::html::{Made, Report};
use crate::report::markup::Markup;

/// Where demands, requests and loads came from.
pub fn write(report: &Report<'_>, html: &mut Markup) {
    let Some(made) = report.made else {
        return;
    };
    html.element(
        "p",
        &[],
        "Each demand comes from the first of these that is known: processor time measured on the events; resource functions \
         of the configuration; exclusive time, in which the task was not waiting for another, which includes what queueing \
         there was. Requests are counted. A delay is the time between the two halves of calls, on the network and at its ends, in which no \
         processor works; that of all activities is a sum, though some go on side by side. The last columns name an invocation that was seen, in the trace.",
    );
    demands(report, made, html);
    loads(made, html);
}

/// A source of demands in words.
fn source(source: DemandSource) -> &'static str {
    match source {
        DemandSource::None => "not known: zero",
        DemandSource::Cpu => "measured processor time",
        DemandSource::Function => "resource functions",
        DemandSource::Exclusive => "exclusive time",
    }
}

fn demands(report: &Report<'_>, made: Made<'_>, html: &mut Markup) {
    let mut table = Table::new(
        "Demands of entries",
        &[
            "Entry",
            ">Invoked",
            "Phase",
            ">Demand",
            ">Delay",
            "Comes from",
            ">Measured values",
            ">Variation",
            "Seen in",
            "At",
            "Run",
        ],
    );
    for (place, origin) in made.origins.entries.iter().enumerate().take(report.model.entries.len()) {
        if origin.interaction == Interaction::Customer {
            continue;
        }
        let total = made.submodel.entries().get(origin.total.index());
        let sources = distinct(&origin.sources);
        for (number, from) in sources.iter().enumerate() {
            table.row(|| row(report, EntryId::from(place), origin, total, (number, sources.len(), *from)));
        }
    }
    table.write(html);
    html.element("p", &[], "Variation: the squared coefficient of variation of the measured values.");
}

/// The sources by phase, or the one of all phases.
fn distinct(sources: &[DemandSource]) -> Vec<DemandSource> {
    if sources.is_empty() { vec![DemandSource::None] } else { sources.to_vec() }
}

fn row(
    report: &Report<'_>,
    id: EntryId,
    origin: &EntryOrigin,
    total: Option<&EntryTotal>,
    (number_of, phases, from): (usize, usize, DemandSource),
) -> Vec<Cell> {
    let entry = &report.model.entries[id.index()];
    let graph = matches!(entry.body, Body::Activities(_));
    let figures = |work: &Work| (work.demand, work.think_time);
    let (demand, delay): (f64, f64) = match &entry.body {
        Body::Phases(phases) => phases.get(number_of).map_or((0.0, 0.0), figures),
        Body::Activities(_) => report
            .made
            .map(|made| made.origins.activities.iter().zip(&report.model.activities))
            .into_iter()
            .flatten()
            .filter(|(activity, _)| activity.entry == id)
            .map(|(_, activity)| figures(&activity.work))
            .fold((0.0, 0.0), |(demand, delay), (more, longer)| (demand + more, delay + longer)),
    };
    let phase = u8::try_from(number_of + 1).unwrap_or(u8::MAX);
    let (values, variation) = measured(total, from, (!graph).then_some(phase));
    let witness = origin.witnesses.first();
    let seen = |words: fn(&Witness) -> String| witness.map_or(Cell::Blank, |witness| Cell::Name(words(witness)));
    vec![
        Cell::Name(entry.name.to_string()),
        Cell::Count(origin.invocations),
        if graph {
            Cell::from("all activities")
        } else if phases > 1 {
            Cell::Text(phase.to_string())
        } else {
            Cell::Blank
        },
        Cell::Quantity(time(demand), demand),
        if delay > 0.0 { Cell::Quantity(time(delay), delay) } else { Cell::Blank },
        Cell::from(source(from)),
        values.map_or(Cell::Blank, Cell::Count),
        variation.map_or(Cell::Blank, |variation| Cell::Quantity(number(variation), variation)),
        seen(|witness| witness.file.to_string()),
        seen(place),
        seen(|witness| witness.run.to_string()),
    ]
}

/// Where in its file an invocation was seen.
fn place(witness: &Witness) -> String {
    let line =
        !witness.item.is_empty() && witness.item.len() < 10 && witness.item.bytes().all(|byte| byte.is_ascii_digit());
    let item = if line { format!("line {}", witness.item) } else { format!("span {}", witness.item) };
    format!("{item}, thread {} node {}", witness.thread, witness.index)
}

/// How many values a demand is the mean of, and how they vary.
fn measured(total: Option<&EntryTotal>, from: DemandSource, phase: Option<u8>) -> (Option<u64>, Option<f64>) {
    let Some(total) = total else { return (None, None) };
    let work = || {
        total
            .work
            .iter()
            .filter(|(position, _)| phase.is_none_or(|phase| position.phase == phase))
            .map(|(_, work)| work)
    };
    let mut moments = crate::lqn::submodel::Moments::default();
    let mut parts = 0;
    let mut take = |part: &crate::lqn::submodel::Moments| {
        if part.count > 0 {
            moments.merge(part);
            parts += 1;
        }
    };
    match from {
        DemandSource::Cpu => work().flat_map(|work| work.activities.values()).for_each(|activity| take(&activity.cpu)),
        DemandSource::Exclusive => work().for_each(|work| take(&work.exclusive)),
        DemandSource::Function | DemandSource::None => return (None, None),
    }
    // Values of several activities are of different things: their common variation says nothing.
    (Some(moments.count), if parts == 1 { moments.cv2() } else { None })
}

fn loads(made: Made<'_>, html: &mut Markup) {
    let mut table = Table::new("Loads of scenarios", &["Scenario", "Load", "Comes from"]);
    for scenario in &made.origins.scenarios {
        table.row(|| {
            let operations = things(scenario.operations, "operation", "operations");
            let from = match scenario.reason {
                LoadReason::Configured => "the configuration".to_owned(),
                LoadReason::Observed => format!("the traces: starts of {operations}"),
                LoadReason::Assumed => format!("not known; {operations} are too few for a rate"),
            };
            vec![Cell::Name(scenario.name.to_string()), Cell::Text(scenario.load.to_string()), Cell::Text(from)]
        });
    }
    table.write(html);
}
