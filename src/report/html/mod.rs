//! A report of a model and its results as one page of HTML.
//!
//! [`page`] makes a document that needs nothing but itself: style, script and pictures are part of it, and its content
//! security policy forbids every request. It reads in light and dark, on paper, on a narrow screen, by keyboard, and without
//! scripts. It is bounded: of what is many the first are shown and the rest counted. The same input gives the same bytes.

mod bottleneck;
mod chart;
mod findings;
mod growth;
mod model;
mod origins;
mod pictures;
mod quality;
mod results;
mod summary;
pub(super) mod table;
pub(super) mod units;

pub use self::bottleneck::Limit;
pub use self::chart::{Chart, Measure, Series};
pub use self::growth::growth;
pub use self::pictures::{Picture, operations};

use crate::diagnostic::Diagnostic;
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::lqn::submodel::SubModel;
use crate::model::Origins;
use crate::report::markup::{Markup, shortened};
use crate::study::bottleneck::Bottlenecks;
use crate::study::outlook::Outlook;
use crate::trace::ReadReport;
use crate::trace::quality::QualityReport;

/// What a report tells.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// What it is about, such as the name of a trace.
    pub title: &'a str,
    /// A date to print, where one is wanted: the library knows none.
    pub date: Option<&'a str>,
    /// The files that the model was made of, and the configuration.
    pub inputs: &'a [String],
    /// The model.
    pub model: &'a Model,
    /// Its results.
    pub results: &'a Results,
    /// Quantiles of responses.
    pub outlook: &'a Outlook,
    /// What is known of its making, where it was made of traces.
    pub made: Option<Made<'a>>,
    /// Findings on the model: defaults that were taken, caveats.
    pub findings: &'a [Diagnostic],
    /// What gives way first when a scenario's load grows, by scenario.
    pub limits: &'a [Limit],
    /// What limits the model, and what comes next once that is relieved.
    pub bottlenecks: Option<&'a Bottlenecks>,
    /// Curves over load.
    pub charts: &'a [Chart],
    /// Pictures.
    pub pictures: &'a [Picture],
}

/// What is known of the making of a model of traces.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// Where its elements come from.
    pub origins: &'a Origins,
    /// The sums that its means were taken of.
    pub submodel: &'a SubModel,
    /// What the readers saw.
    pub reading: &'a ReadReport,
    /// Which operations were damaged.
    pub quality: &'a QualityReport,
    /// What matching left over.
    pub matching: &'a ReadReport,
    /// How many nodes the well-formed operations have, and how many of them a template consumed.
    pub nodes: (u64, u64),
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Nothing may be fetched from anywhere, this page's own server included.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// A part of the page: its anchor, its heading, and what writes it.
type Section = (&'static str, &'static str, fn(&Report<'_>, &mut Markup));

const SECTIONS: [Section; 8] = [
    ("summary", "Summary", summary::write),
    ("limits", "What gives way first", bottleneck::write),
    ("curves", "Growing load", curves),
    ("results", "Results", results::write),
    ("model", "The model", model::write),
    ("traces", "Pictures of the traces", pictures::traces),
    ("quality", "Data quality", quality::write),
    ("origins", "Where each number came from", origins::write),
];

/// The report as an HTML document.
pub fn page(report: &Report<'_>) -> String {
    let mut sections: Vec<(&str, &str, String)> = Vec::new();
    for (anchor, heading, write) in SECTIONS {
        let mut html = Markup::new();
        write(report, &mut html);
        let text = html.finish();
        if !text.is_empty() {
            sections.push((anchor, heading, text));
        }
    }
    let mut html = Markup::new();
    html.trusted("<!DOCTYPE html>\n");
    html.open("html", &[("lang", "en")]);
    head(report.title, STYLE, &mut html);
    html.open("body", &[]);
    html.element("a", &[("class", "skip"), ("href", "#content")], "Skip to the content");
    html.open("div", &[("class", "page")]);
    html.open("header", &[]);
    html.open("h1", &[]).name(report.title).close();
    html.element("p", &[("class", "lead")], &summary::lead(report));
    html.close();
    html.open("nav", &[("aria-label", "Parts of this report")]).open("ul", &[]);
    for (anchor, heading, _) in &sections {
        html.open("li", &[]).element("a", &[("href", &format!("#{anchor}"))], heading).close();
    }
    html.close().close();
    html.open("main", &[("id", "content"), ("tabindex", "-1")]);
    for (anchor, heading, text) in &sections {
        let label = format!("{anchor}-heading");
        html.open("section", &[("id", anchor), ("aria-labelledby", &label)]);
        html.element("h2", &[("id", &label)], heading);
        html.trusted(text);
        html.close();
    }
    html.close();
    footer(report, &mut html);
    html.close();
    html.open("script", &[]).trusted(SCRIPT).close();
    html.close().close();
    html.trusted("\n");
    html.finish()
}

/// The head of a page that fetches nothing.
pub(super) fn head(title: &str, style: &str, html: &mut Markup) {
    html.open("head", &[]);
    html.void("meta", &[("charset", "utf-8")]);
    html.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    html.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    html.void("meta", &[("name", "generator"), ("content", concat!("dyelog ", env!("CARGO_PKG_VERSION")))]);
    // An icon of its own, so that no browser looks for one.
    html.void("link", &[("rel", "icon"), ("href", "data:,")]);
    html.element("title", &[], &format!("{} – dyelog report", shortened(title)));
    html.open("style", &[]).trusted(style).close();
    html.close();
}

fn footer(report: &Report<'_>, html: &mut Markup) {
    html.open("footer", &[]).open("p", &[]);
    html.text(concat!("Made by dyelog ", env!("CARGO_PKG_VERSION")));
    if let Some(date) = report.date {
        html.text(", ").name(date);
    }
    html.text(
        ". Times are means in the steady state; a utilisation is the share of servers or threads that are busy. ",
    );
    html.text("This page is complete in itself and fetches nothing.");
    html.close();
    if !report.inputs.is_empty() {
        html.open("p", &[]).text("Made from ");
        for (place, input) in report.inputs.iter().take(20).enumerate() {
            html.text(if place > 0 { ", " } else { "" }).open("code", &[]).name(input).close();
        }
        if report.inputs.len() > 20 {
            html.text(&format!(" and {} more", report.inputs.len() - 20));
        }
        html.text(".").close();
    }
    html.close();
}

/// Most charts that a page has.
const CHARTS: usize = 24;

fn curves(report: &Report<'_>, html: &mut Markup) {
    if report.charts.is_empty() {
        return;
    }
    html.element(
        "p",
        &[],
        "What happens to each scenario when its own load grows while the others stay as they are. The dotted line is the \
         load of the model.",
    );
    html.element(
        "p",
        &[("class", "hint")],
        "Point at the curves, or focus them and use the arrow keys, to read values.",
    );
    let shown = &report.charts[..report.charts.len().min(CHARTS)];
    let mut number = 0;
    for group in shown.chunk_by(|left, right| left.group == right.group) {
        html.open("h3", &[]).name(&group[0].group).close();
        html.open("div", &[("class", "charts")]);
        for chart in group {
            number += 1;
            chart.write(html, &format!("chart-{number}"));
        }
        html.close();
    }
    if report.charts.len() > CHARTS {
        let hidden = report.charts.len() - CHARTS;
        html.element("p", &[], &format!("{hidden} more charts are not shown."));
    }
}
