//! The page at `/`: what arrives, what is busiest now, and where to go on.

use dyelog::report::markup::Markup;

use crate::service::Status;
use crate::store::Interval;

/// What the page tells.
pub struct Page<'p> {
    /// What became of the spans.
    pub status: &'p Status,
    /// What does not work.
    pub fault: Option<&'p str>,
    /// The intervals of the last while.
    pub intervals: &'p [Interval],
    /// The busiest processors of the last while, with busy servers and servers; or why they are not known.
    pub busiest: Result<&'p [(String, f64, f64)], &'p str>,
}

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}td.n,th.n{text-align:right}\
.fault{border-left:.3rem solid #c33;padding-left:.8rem}";

/// Nothing may be fetched from anywhere.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
    html.element("h2", &[], "Busiest in the last 5 minutes");
    busiest(page, &mut html);
    html.element("h2", &[], "Periods");
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

fn busiest(page: &Page<'_>, html: &mut Markup) {
    let busiest = match page.busiest {
        Ok([]) => {
            html.element("p", &[], "Nothing was recorded.");
            return;
        }
        Ok(busiest) => busiest,
        Err(why) => {
            html.open("p", &[]).name(why).close();
            return;
        }
    };
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

#[cfg(test)]
mod tests {
    use super::{Page, page};
    use crate::service::Status;

    #[test]
    fn names_are_escaped() {
        let busiest = [("<script>alert(1)</script>".to_owned(), 0.5, 1.0)];
        let text =
            page(&Page { status: &Status::default(), fault: Some("a & b"), intervals: &[], busiest: Ok(&busiest) });
        assert!(!text.contains("<script") && text.contains("&lt;script") && text.contains("a &amp; b"), "{text}");
    }
}
