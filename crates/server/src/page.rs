//! The page at `/`: what arrives, what is busiest now, and where to go on.

use dyelog::report::markup::Markup;

use crate::answer::Held;
use crate::offenders::MOST;
use crate::service::Status;
use crate::store::Interval;

/// A processor, how many of its servers are busy, and how many it has.
pub type Busy = (String, f64, f64);

/// When an hour began, and what was held against what in it.
pub type Hour = (String, Vec<Held>);

/// What the page tells.
pub struct Page<'p> {
    /// What became of the spans.
    pub status: &'p Status,
    /// What does not work.
    pub fault: Option<&'p str>,
    /// The intervals of the last while.
    pub intervals: &'p [Interval],
    /// The busiest processors of the last while and the picture of its model; or why there is none, which is empty where nothing was recorded.
    pub lately: Result<(&'p [Busy], &'p str), &'p str>,
    /// Measured against predicted responses of the last while.
    pub held: &'p [Held],
    /// The same of whole hours, the last one first.
    pub hours: &'p [Hour],
}

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}td.n,th.n{text-align:right}\
.picture{overflow-x:auto}.picture svg{max-width:100%;height:auto}form{margin:.5rem 0}\
.fault{border-left:.3rem solid #c33;padding-left:.8rem}";

/// Nothing may be fetched from anywhere.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// How many processors are shown.
const SHOWN: usize = 10;

/// Periods that are linked: their name, and how a query says them.
const PERIODS: [(&str, &str); 4] = [("5 minutes", "-5m"), ("hour", "-1h"), ("day", "-1d"), ("30 days", "-30d")];

/// The page.
pub fn page(page: &Page<'_>) -> String {
    let mut html = Markup::new();
    html.trusted("<!DOCTYPE html>\n").open("html", &[("lang", "en")]).open("head", &[]);
    html.void("meta", &[("charset", "utf-8")]);
    html.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.element("title", &[], "dyelog server");
    html.open("style", &[]).trusted(STYLE).close().close();
    html.open("body", &[]).element("h1", &[], "What arrives");
    if let Some(fault) = page.fault {
        html.open("p", &[("class", "fault")]).text("Something does not work: ").name(fault).close();
    }
    arrivals(page, &mut html);
    for (service, (spans, name)) in &page.status.offending {
        html.open("p", &[("class", "fault")]).text("The service ").name(service);
        html.text(&format!(" has more than {MOST} names of operations: {spans} spans were grouped, the last one "));
        html.name(name).text(". Names should not have identifiers in them.").close();
    }
    html.element("h2", &[], "Busiest in the last 5 minutes");
    match page.lately {
        Err("") => {
            html.element("p", &[], "Nothing was recorded.");
        }
        Err(why) => {
            html.open("p", &[]).name(why).close();
        }
        Ok((processors, picture)) => {
            busiest(processors, &mut html);
            html.open("div", &[("class", "picture")]).trusted(picture).close();
        }
    }
    html.element("h2", &[], "Measured against predicted");
    let now = page.held.iter().map(|held| ("the last 5 minutes", held));
    let before = page.hours.iter().flat_map(|(from, held)| held.iter().map(move |held| (&**from, held)));
    agreement(now.chain(before), &mut html);
    html.element("h2", &[], "Periods");
    forms(&mut html);
    html.open("ul", &[]);
    for (name, from) in PERIODS {
        html.open("li", &[]).text(&format!("The last {name}: "));
        for (label, path) in [("report", "report"), ("model", "model"), ("results", "solution"), ("sub-model", "")] {
            let path = if path.is_empty() { String::new() } else { format!("/{path}") };
            html.element("a", &[("href", &format!("/v1/period{path}?from={from}"))], label).text(" ");
        }
        html.close();
    }
    html.close().close().close();
    html.finish()
}

fn arrivals(page: &Page<'_>, html: &mut Markup) {
    let counts = page.status.counts;
    let rows = [
        ("received", counts.received),
        ("folded into models", counts.folded),
        ("of open traces", counts.open),
        ("set aside", counts.set_aside),
        ("refused", counts.refused),
        ("duplicates", counts.duplicate),
        ("in the last 5 minutes", page.intervals.iter().map(|interval| interval.spans).sum()),
    ];
    html.open("table", &[]).open("tr", &[]).element("th", &[], "Spans").element("th", &[("class", "n")], "").close();
    for (name, count) in rows {
        html.open("tr", &[]).element("td", &[], name).element("td", &[("class", "n")], &count.to_string()).close();
    }
    html.close();
}

fn busiest(busiest: &[Busy], html: &mut Markup) {
    html.open("table", &[]).open("tr", &[]).element("th", &[], "Processor");
    html.element("th", &[("class", "n")], "busy servers").element("th", &[("class", "n")], "of").close();
    for (name, used, servers) in busiest.iter().take(SHOWN) {
        let servers = if servers.is_finite() { servers.to_string() } else { "any number".to_owned() };
        html.open("tr", &[]).open("td", &[]).name(name).close();
        html.element("td", &[("class", "n")], &format!("{used:.3}")).element("td", &[("class", "n")], &servers).close();
    }
    html.close();
    if busiest.len() > SHOWN {
        html.element("p", &[], &format!("and {} more", busiest.len() - SHOWN));
    }
}

/// Measured against predicted responses, of times that have names.
fn agreement<'h>(rows: impl Iterator<Item = (&'h str, &'h Held)>, html: &mut Markup) {
    html.open("table", &[]).open("tr", &[]);
    html.element("th", &[], "From").element("th", &[], "Scenario");
    for head in ["per second", "measured, ms", "predicted, ms", "off by"] {
        html.element("th", &[("class", "n")], head);
    }
    html.close();
    let milliseconds = |time: Option<f64>| time.map_or_else(|| "—".to_owned(), |time| format!("{:.3}", time * 1e3));
    for (from, Held { scenario, rate, measured, predicted }) in rows {
        let off = measured.zip(*predicted).filter(|(measured, _)| *measured > 0.0);
        let off = off.map(|(measured, predicted)| format!("{:+.1} %", 100.0 * (predicted / measured - 1.0)));
        html.open("tr", &[]).element("td", &[], from).open("td", &[]).name(scenario).close();
        let figures =
            [format!("{rate:.2}"), milliseconds(*measured), milliseconds(*predicted), off.unwrap_or_default()];
        for figure in figures {
            html.element("td", &[("class", "n")], &figure);
        }
        html.close();
    }
    html.close();
}

/// Any period, and any two.
fn forms(html: &mut Markup) {
    let field = |html: &mut Markup, name: &str, words: &str, value: &str| {
        html.open("label", &[]).text(words).text(" ");
        html.void("input", &[("name", name), ("value", value), ("size", "22"), ("required", "")]).close().text(" ");
    };
    html.open("form", &[("action", "/v1/period/report"), ("method", "get")]);
    field(html, "from", "From", "-1h");
    field(html, "to", "to", "now");
    html.element("button", &[], "Report").close();
    html.open("form", &[("action", "/v1/period/difference"), ("method", "get")]);
    field(html, "from", "From", "-2h");
    field(html, "to", "to", "-1h");
    field(html, "other_from", "against", "-1h");
    field(html, "other_to", "to", "now");
    html.element("button", &[], "Difference").close();
    html.element("p", &[], "Times are such as 2026-02-15T21:16:00Z, or -15m for 15 minutes ago.");
}

#[cfg(test)]
mod tests {
    use super::{Page, page};
    use crate::answer::Held;
    use crate::service::Status;

    #[test]
    fn names_are_escaped() {
        let busiest = [("<script>alert(1)</script>".to_owned(), 0.5, 1.0)];
        let held = [Held { scenario: "<b>".to_owned(), rate: 1.0, measured: Some(0.1), predicted: None }];
        let (status, lately) = (Status::default(), Ok((&busiest[..], "<svg></svg>")));
        let fault = Some("a & b");
        let text = page(&Page { status: &status, fault, intervals: &[], lately, held: &held, hours: &[] });
        assert!(!text.contains("<b>"));
        assert!(!text.contains("<script") && text.contains("&lt;script") && text.contains("a &amp; b"), "{text}");
    }
}
