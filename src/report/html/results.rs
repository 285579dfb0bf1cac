//! Results of the solver.

use crate::diagnostic::quantity::number;
use crate::lqn::Scheduling;
use crate::lqn::results::Caller;
use crate::lqn::terms::{kind, multiplicity};
use crate::report::html::Report;
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{rate, time};
use crate::report::markup::Markup;
use crate::report::names;
use crate::report::results::only_sources;

/// Utilisations, throughputs and times.
pub fn write(report: &Report<'_>, html: &mut Markup) {
    processors(report, html);
    tasks(report, html);
    entries(report, html);
    activities(report, html);
    calls(report, html);
}

/// The places of values, the greatest first, equals in their order.
fn descending(values: impl Iterator<Item = f64>) -> Vec<usize> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*right].total_cmp(&values[*left]));
    order
}

fn of_capacity(busy: f64, servers: f64) -> Cell {
    if servers.is_finite() { Cell::Share(busy / servers) } else { Cell::Blank }
}

/// A time or a number of threads; a dash where there is no steady state: queues grow, and these with them.
fn steady(report: &Report<'_>, cell: Cell) -> Cell {
    match cell {
        Cell::Blank => Cell::Blank,
        _ if report.results.convergence.saturated => Cell::from("–"),
        cell => cell,
    }
}

fn seconds(value: f64) -> Cell {
    if value == 0.0 { Cell::Blank } else { Cell::Quantity(time(value), value) }
}

fn per_second(value: f64) -> Cell {
    Cell::Quantity(rate(value), value)
}

fn processors(report: &Report<'_>, html: &mut Markup) {
    let (model, results) = (report.model, &report.results.processors);
    let mut table = Table::new("Processors", &["Processor", ">Servers", ">Busy servers, on the mean", ">Busy"])
        .in_order("the busiest");
    let of_customers = only_sources(model);
    for place in descending(results.iter().map(|result| result.utilization)) {
        let Some(processor) = model.processors.get(place) else { continue };
        let utilization = results[place].utilization;
        // The processors of customers are there because the language asks for one.
        if of_customers[place] && utilization == 0.0 {
            continue;
        }
        table.row(|| {
            vec![
                Cell::Name(names::processor(model, place.into()).into_owned()),
                Cell::Text(multiplicity(processor.multiplicity)),
                Cell::Quantity(number(utilization), utilization),
                of_capacity(utilization, model.capacity(place.into())),
            ]
        });
    }
    table.write(html);
}

fn tasks(report: &Report<'_>, html: &mut Markup) {
    let (model, results) = (report.model, &report.results.tasks);
    let mut table =
        Table::new("Tasks", &["Task", "Processor", ">Threads", ">Throughput", ">Busy threads, on the mean", ">Busy"])
            .in_order("the busiest");
    for place in descending(results.iter().map(|result| result.utilization)) {
        let Some(task) = model.tasks.get(place) else { continue };
        let result = &results[place];
        let is_load = task.scheduling == Scheduling::Reference;
        table.row(|| {
            vec![
                Cell::Name(names::task(model, place.into()).into_owned()),
                if is_load {
                    Cell::from("customers")
                } else {
                    Cell::Name(model.processors[task.processor.index()].name.to_string())
                },
                Cell::Text(multiplicity(task.multiplicity)),
                per_second(result.throughput),
                steady(report, Cell::Quantity(number(result.utilization), result.utilization)),
                if is_load {
                    Cell::Blank
                } else {
                    steady(report, of_capacity(result.utilization, task.multiplicity.servers()))
                },
            ]
        });
    }
    table.write(html);
}

fn entries(report: &Report<'_>, html: &mut Markup) {
    let (model, results) = (report.model, &report.results.entries);
    let mut table = Table::new(
        "Entries: time from acceptance to reply, then after it",
        &[
            "Entry",
            "Task",
            ">Throughput",
            ">Until the reply",
            ">Phase 2",
            ">Phase 3",
            ">Open response",
            ">Busy threads",
        ],
    )
    .in_order("the busiest");
    for place in descending(results.iter().map(|result| result.utilization)) {
        let Some(entry) = model.entries.get(place) else { continue };
        let result = &results[place];
        table.row(|| {
            vec![
                Cell::Name(names::entry(model, place.into()).into_owned()),
                Cell::Name(names::task(model, entry.task).into_owned()),
                per_second(result.throughput),
                steady(report, seconds(result.service[0])),
                steady(report, seconds(result.service[1])),
                steady(report, seconds(result.service[2])),
                steady(report, result.open_response.map_or(Cell::Blank, seconds)),
                steady(report, Cell::Quantity(number(result.utilization), result.utilization)),
            ]
        });
    }
    table.write(html);
}

fn activities(report: &Report<'_>, html: &mut Markup) {
    let (model, results) = (report.model, &report.results.activities);
    let mut table = Table::new("Activities", &["Activity", "Task", ">Throughput", ">Time"]).in_order("the longest");
    for place in descending(results.iter().map(|result| result.service)) {
        let Some(activity) = model.activities.get(place) else { continue };
        let result = &results[place];
        table.row(|| {
            vec![
                Cell::Name(names::activity(model, place.into()).into_owned()),
                Cell::Name(names::task(model, activity.task).into_owned()),
                per_second(result.throughput),
                steady(report, Cell::Quantity(time(result.service), result.service)),
            ]
        });
    }
    table.write(html);
}

fn calls(report: &Report<'_>, html: &mut Markup) {
    let (model, calls) = (report.model, &report.results.calls);
    let mut table =
        Table::new("Waiting of requests until they are accepted", &["From", "To", "Kind", "Phase", ">Waiting"])
            .in_order("the longest");
    for place in descending(calls.iter().map(|call| call.waiting)) {
        let call = &calls[place];
        let phase = match call.from {
            Caller::Phase(_, phase) if phase > 1 => Cell::Text(phase.to_string()),
            _ => Cell::Blank,
        };
        table.row(|| {
            vec![
                Cell::Name(names::caller(model, call.from).into_owned()),
                Cell::Name(names::entry(model, call.to).into_owned()),
                Cell::from(kind(call.kind)),
                phase,
                steady(report, Cell::Quantity(time(call.waiting), call.waiting)),
            ]
        });
    }
    table.write(html);
}
