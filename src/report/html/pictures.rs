//! Pictures that the page holds.

use crate::diagnostic::Diagnostics;
use crate::report::draw::lqn::{self, LqnOptions};
use crate::report::draw::operation::{OperationOptions, OperationView};
use crate::report::draw::{self, Drawn};
use crate::report::html::Report;
use crate::report::html::units::count;
use crate::report::markup::Markup;
use crate::tlc::Rules;
use crate::tlc::recognise::recognise;
use crate::trace::{Toeg, TraceNames};

/// A picture of a trace, made by [`crate::report::draw`]. Its ids must be its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// The picture, as SVG.
    pub drawn: Drawn,
}

/// Larger pictures are left out, in bytes.
const LARGEST: usize = 250_000;

/// All pictures of traces together are held to this, in bytes.
const ALL: usize = 700_000;

/// Most tasks in the picture of the model.
const TASKS: usize = 60;

/// Most nodes in a picture of an operation.
const NODES: usize = 120;

/// Pictures of operations: the messages of each, and its graph with what the templates recognise.
///
/// # Errors
/// When the evaluation of a rule file's relations gives up.
pub fn operations(rules: &Rules, names: &TraceNames, samples: &[Toeg]) -> Result<Vec<Picture>, Diagnostics> {
    let mut pictures = Vec::new();
    for (number, toeg) in samples.iter().enumerate() {
        let (outcome, matches) = recognise(rules, names, toeg)?;
        let view = OperationView { toeg, names, outcome: &outcome, matches: &matches };
        let options = |kind: &str| OperationOptions { limit: NODES, id: format!("{kind}-{number}") };
        let scenario = names.names.text(toeg.operation().scenario);
        let messages = draw::msc::svg(&view, &options("messages"));
        pictures.push(Picture { title: format!("{scenario}: messages of one operation"), drawn: messages });
        let graph = draw::toeg::svg(&view, &options("graph"));
        pictures.push(Picture { title: format!("{scenario}: its events, and what was recognised"), drawn: graph });
    }
    Ok(pictures)
}

/// The model, coloured by what is busy.
pub fn model(report: &Report<'_>, html: &mut Markup) {
    let seconds = report.made.is_some();
    let options = LqnOptions { limit: TASKS, seconds, id: "lqn".to_owned(), ..LqnOptions::default() };
    let drawn = lqn::svg(report.model, Some(report.results), &options);
    write(html, "The model and how busy it is", &drawn, LARGEST);
    html.element(
        "p",
        &[],
        "Tasks are parallelograms with their entries, processors ellipses. A full arrowhead is a request that is waited for, an \
         open one a request that nobody waits for, a dashed line one that is passed on. In brackets stand demands by phase, in \
         parentheses mean numbers of requests.",
    );
}

/// Pictures of the traces.
pub fn traces(report: &Report<'_>, html: &mut Markup) {
    let mut room = ALL;
    for picture in report.pictures {
        write(html, &picture.title, &picture.drawn, LARGEST.min(room));
        room -= picture.drawn.text.len().min(room);
    }
}

fn write(html: &mut Markup, title: &str, drawn: &Drawn, most: usize) {
    html.open("figure", &[]).open("figcaption", &[]).name(title).close();
    if drawn.text.len() > most {
        let size = count(drawn.text.len() as u64 / 1000);
        let text = format!(
            "This picture is too large for a page ({size} kB). `dyelog draw` makes a file of it, or of a part."
        );
        html.element("p", &[], &text);
    } else {
        // What is not much wider than the page is made to fit; anything else would become too small to read, and scrolls.
        let class = if width(&drawn.text) <= FITS { "picture fits" } else { "picture" };
        html.open("div", &[("class", class), ("tabindex", "0"), ("role", "region"), ("aria-label", title)]);
        html.trusted(&drawn.text);
        html.close();
    }
    html.close();
}

/// The widest picture that is made to fit, in pixels.
const FITS: f64 = 1200.0;

/// The width of a picture by itself.
fn width(svg: &str) -> f64 {
    let after = svg.split_once(" width=\"").map(|(_, after)| after);
    after.and_then(|after| after.split('"').next()).and_then(|width| width.parse().ok()).unwrap_or(f64::INFINITY)
}
