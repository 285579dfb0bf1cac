//! What there is to know first.

use crate::lqn::sketch::Quantiles;
use crate::lqn::{Model, Scheduling};
use crate::model::Load;
use crate::report::html::bottleneck;
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{count, percent, rate, things, time};
use crate::report::html::{Report, quality, units};
use crate::report::markup::Markup;
use crate::report::results::exactness;
use crate::study::ScenarioResult;
use crate::study::headroom::by_occupancy;
use crate::study::outlook::Outlook;

/// One sentence under the title.
pub fn lead(report: &Report<'_>) -> String {
    let model = report.model;
    let tasks = model.tasks.iter().filter(|task| task.scheduling != Scheduling::Reference).count() as u64;
    let network = format!(
        "A layered queueing network of {} with {}",
        things(tasks, "task", "tasks"),
        things(services(model), "entry", "entries")
    );
    match report.made {
        Some(made) => {
            let scenarios = made.origins.scenarios.len() as u64;
            let operations = made.origins.scenarios.iter().map(|scenario| scenario.operations).sum();
            format!(
                "{network}, made from {} of {}, and what it predicts.",
                things(operations, "traced operation", "traced operations"),
                things(scenarios, "scenario", "scenarios")
            )
        }
        None => format!("{network}, and what it predicts."),
    }
}

fn services(model: &Model) -> u64 {
    let own = |entry: &&crate::lqn::Entry| model.tasks[entry.task.index()].scheduling != Scheduling::Reference;
    model.entries.iter().filter(own).count() as u64
}

/// Scenarios shown as cards.
const CARDS: usize = 6;

/// The summary.
pub fn write(report: &Report<'_>, html: &mut Markup) {
    convergence(report, html);
    html.open("dl", &[("class", "cards")]);
    let scenarios =
        report.made.map(|made| ScenarioResult::all(report.model, report.results, made.origins)).unwrap_or_default();
    for scenario in scenarios.iter().take(CARDS) {
        let saturated = report.results.convergence.saturated;
        let response = match scenario.response {
            None if saturated => "–".to_owned(),
            response => response.map_or_else(|| rate(scenario.throughput), time),
        };
        let about = match (scenario.response, scenario.origin.observed_response) {
            (None, _) if saturated => "no response: more arrives than is served".to_owned(),
            (Some(_), Some(traced)) => format!("predicted response; {} in the traces", time(traced)),
            (Some(_), None) => "predicted response".to_owned(),
            (None, _) => "throughput".to_owned(),
        };
        card(html, "", &scenario.origin.name, &response, &about);
    }
    if let Some(busiest) = by_occupancy(report.model, report.results).first() {
        card(
            html,
            bottleneck::class(busiest),
            &format!("Busiest: {}", bottleneck::what(report.model, busiest)),
            &percent(busiest.share),
            &bottleneck::of_how_many(busiest),
        );
    }
    if let Some(made) = report.made {
        let quality = made.quality;
        let (aside, (used, about)) = match quality::summed_up(made) {
            Some((used, aside)) => {
                let about = format!(
                    "used; {} set aside. They were summed up before: how many were restored is not known",
                    count(aside)
                );
                (aside, (count(used), about))
            }
            None => {
                let share = (quality.sound + quality.restored) as f64 / quality.operations.max(1) as f64;
                let used = if quality.set_aside == 0 { "all".to_owned() } else { percent(share) };
                let about = format!(
                    "of {} used; {} restored, {} set aside",
                    things(quality.operations, "operation", "operations"),
                    count(quality.restored),
                    count(quality.set_aside)
                );
                (quality.set_aside, (used, about))
            }
        };
        let (class, big) = (if aside > 0 { "high" } else { "" }, used);
        card(html, class, "Traced operations", &big, &about);
    }
    html.close();
    table(&scenarios, report.outlook, html);
}

fn card(html: &mut Markup, class: &str, term: &str, big: &str, small: &str) {
    let class = [("class", class)];
    html.open("div", if class[0].1.is_empty() { &[] } else { &class });
    html.open("dt", &[]).name(term).close();
    html.element("dd", &[("class", "big")], big);
    html.element("dd", &[("class", "small")], small);
    html.close();
}

fn convergence(report: &Report<'_>, html: &mut Markup) {
    let found = &report.results.convergence;
    let steps = things(u64::from(found.iterations), "iteration", "iterations");
    if found.converged {
        html.open("p", &[]).text(&format!("The {} solver converged after {steps} (", report.results.solver));
        html.name(&found.method).text(&format!("): {}.", exactness(found))).close();
    } else {
        html.open("div", &[("class", "say wrong"), ("role", "note")]).open("p", &[]);
        html.element("strong", &[], "The solver did not converge: these results are not to be relied on.");
        html.text(&format!(" It stopped after {steps} (")).name(&found.method);
        html.text(&format!("); the last change was {}.", units::percent(found.residual))).close().close();
    }
    if !report.results.caveats.is_empty() {
        html.open("div", &[("class", "say careful"), ("role", "note")]);
        html.element("p", &[], "What the solver left out or simplified:").open("ul", &[]);
        for caveat in report.results.caveats.iter().take(20) {
            html.element("li", &[], &caveat.chars().take(500).collect::<String>());
        }
        html.close().close();
    }
}

fn table(scenarios: &[ScenarioResult<'_>], outlook: &Outlook, html: &mut Markup) {
    let mut table = Table::new(
        "Scenarios",
        &[
            "Scenario",
            "Load",
            "The load is",
            ">Throughput",
            ">Predicted response",
            ">Traced response",
            ">Predicted p50, p95, p99",
            ">Traced p50, p95, p99",
        ],
    );
    for scenario in scenarios {
        let quantity = |value: Option<f64>| value.map_or(Cell::Blank, |value| Cell::Quantity(time(value), value));
        let own = outlook.loads.iter().find(|own| own.name == *scenario.origin.name);
        let predicted = own.map(|own| own.quantiles).unwrap_or_default();
        table.row(|| {
            vec![
                Cell::Name(scenario.origin.name.to_string()),
                Cell::Text(load(scenario.origin.load)),
                Cell::Text(format!("{:?}", scenario.origin.reason).to_lowercase()),
                Cell::Quantity(rate(scenario.throughput), scenario.throughput),
                quantity(scenario.response),
                quantity(scenario.origin.observed_response),
                quantiles(&predicted),
                quantiles(&scenario.origin.observed_quantiles),
            ]
        });
    }
    table.write(html);
}

/// Those that there are, in the order of the last.
fn quantiles(of: &Quantiles) -> Cell {
    let shown: Vec<String> = [of.p50, of.p95, of.p99].into_iter().flatten().map(time).collect();
    let last = of.p99.or(of.p95).or(of.p50);
    last.map_or(Cell::Blank, |last| Cell::Quantity(shown.join(", "), last))
}

fn load(load: Load) -> String {
    match load {
        Load::Closed { population, think_time } if think_time > 0.0 => {
            format!("{}, thinking {}", things(u64::from(population), "customer", "customers"), time(think_time))
        }
        Load::Closed { population, .. } => {
            format!("{} without think time", things(u64::from(population), "customer", "customers"))
        }
        Load::Open { rate: arrivals } => format!("{} arriving", rate(arrivals)),
    }
}
