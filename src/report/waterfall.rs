//! One operation on its axis of time: for the terminal, and as SVG.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthChar as _;

use crate::diagnostic::quantity;
use crate::report::json;
use crate::report::markup::{Markup, coordinate, shortened};
use crate::report::{Look, Tone};
use crate::study::waterfall::{Row, Waterfall};

/// How wide the bars of a text are, and the names before them, where the look does not bound them.
const BARS: usize = 60;
const NAMES: usize = 48;

/// How many marks an axis has at most.
const MARKS: usize = 5;

/// Names are set in no more than so many steps.
const DEEPEST: u32 = 12;

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn time(nanoseconds: i64) -> String {
    quantity::time(seconds(nanoseconds))
}

fn label(row: &Row) -> String {
    let flag = if row.failed { " ✗" } else { "" };
    format!("{}{} {}{flag}", "  ".repeat(row.depth.min(DEEPEST) as usize), row.service, row.name)
}

fn title(waterfall: &Waterfall) -> String {
    format!("{}, run {}: {}", waterfall.scenario, waterfall.run, time(waterfall.response))
}

/// The rows that are shown: the first so many, in their order.
fn shown(waterfall: &Waterfall, most: usize) -> &[Row] {
    &waterfall.rows[..waterfall.rows.len().min(most)]
}

/// Round times for the marks of an axis.
fn marks(end: i64) -> Vec<i64> {
    let least = (end / MARKS as i64).max(1);
    let power = 10i64.pow(least.ilog10());
    let step = [1, 2, 5, 10].into_iter().map(|times| times * power).find(|step| *step >= least).unwrap_or(least);
    (0..=end / step).map(|number| number * step).collect()
}

/// The text of a waterfall, at most so many spans. `█` is what the response waited for, `─` other work, `┄` work that no parent waits for.
pub fn text(waterfall: &Waterfall, most: usize, look: Look) -> String {
    let rows = shown(waterfall, most);
    let widest = rows.iter().map(|row| width(&label(row))).max().unwrap_or(0);
    let (names, bars) = if look.width == usize::MAX {
        (widest.min(NAMES), BARS)
    } else {
        let names = widest.min(NAMES).min(look.width / 2);
        (names, look.width.saturating_sub(names + 24).clamp(10, 200))
    };
    let mut lines = vec![look.paint(Tone::Heading, &title(waterfall)), String::new()];
    lines.push(format!("{}  {}", " ".repeat(names), axis(waterfall.end, bars)));
    for row in rows {
        let critical = row.critical_time();
        let critical = if critical > 0 { format!(", {} critical", time(critical)) } else { String::new() };
        let name = fitted(&label(row), names);
        lines.push(format!("{name}  {}  {}{critical}", bar(row, waterfall.end, bars), time(row.end - row.start)));
    }
    if waterfall.rows.len() > rows.len() {
        lines.push(format!("… {} more", quantity::counted((waterfall.rows.len() - rows.len()) as u64, "span")));
    }
    lines.push(String::new());
    lines.push("█ the response waits for it   ─ other work   ┄ no parent waits for it   ✗ failed".to_owned());
    let mut text = String::new();
    for line in lines {
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn width(text: &str) -> usize {
    text.chars().map(|letter| letter.width().unwrap_or(0)).sum()
}

/// A text in just so many columns.
fn fitted(text: &str, columns: usize) -> String {
    let (mut fitted, mut used) = (String::new(), 0);
    let cut = width(text) > columns;
    let room = columns.saturating_sub(usize::from(cut));
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        let own = letter.width().unwrap_or(0);
        if used + own > room {
            break;
        }
        fitted.push(letter);
        used += own;
    }
    if cut {
        fitted.push('…');
        used += 1;
    }
    fitted + &" ".repeat(columns.saturating_sub(used))
}

fn axis(end: i64, bars: usize) -> String {
    let mut line: Vec<char> = Vec::new();
    for mark in marks(end) {
        let at = place(mark, end, bars);
        let text = time(mark);
        if line.len() <= at && at + text.chars().count() <= bars + 8 {
            line.resize(at, ' ');
            line.extend(text.chars());
            line.push(' ');
        }
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}

/// The column of a time.
fn place(time: i64, end: i64, bars: usize) -> usize {
    (i128::from(time.max(0)) * bars as i128 / i128::from(end.max(1))) as usize
}

fn bar(row: &Row, end: i64, bars: usize) -> String {
    let mut line = vec![' '; bars];
    let mut draw = |from: i64, to: i64, sign: char| {
        let first = place(from, end, bars).min(bars - 1);
        let last = place(to, end, bars).clamp(first + 1, bars);
        line[first..last].fill(sign);
    };
    draw(row.start, row.end, if row.awaited { '─' } else { '┄' });
    for (from, to) in &row.critical {
        draw(*from, *to, '█');
    }
    line.into_iter().collect()
}

/// Measures of the picture, in pixels.
const ROW: f64 = 20.0;
const LEFT: f64 = 340.0;
const AXIS: f64 = 760.0;
const TOP: f64 = 64.0;

/// The style of the picture.
const STYLE: &str = "text{font-family:system-ui,\"Segoe UI\",Helvetica,Arial,\"DejaVu Sans\",sans-serif;font-size:12px;fill:#1f2933;white-space:pre}\
.head{font-size:15px;font-weight:600}.dim{fill:#52606d}.grid{stroke:#d5dbe1}.span{fill:#cfdeec;stroke:#2f4858}.alone{fill:#fff;stroke:#2f4858;stroke-dasharray:3 2}\
.critical{fill:#c2410c}.odd{fill:#f4f6f8}.failed{fill:#9b2226}";

/// The waterfall as SVG, at most so many spans.
pub fn svg(waterfall: &Waterfall, most: usize) -> String {
    let rows = shown(waterfall, most);
    let more = waterfall.rows.len() - rows.len();
    let height = TOP + ROW * (rows.len() + 2 + usize::from(more > 0)) as f64;
    let width = LEFT + AXIS + 110.0;
    let mut out = Markup::new();
    let at = coordinate;
    let size = format!("0 0 {} {}", at(width), at(height));
    out.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("viewBox", &size),
            ("width", &at(width)),
            ("height", &at(height)),
            ("role", "img"),
        ],
    );
    out.element("title", &[], &title(waterfall));
    out.element("style", &[], STYLE);
    out.void("rect", &[("width", &at(width)), ("height", &at(height)), ("fill", "#fff")]);
    out.element("text", &[("x", "12"), ("y", "24"), ("class", "head")], &title(waterfall));
    let x = |time: i64| LEFT + AXIS * (time.max(0) as f64 / waterfall.end.max(1) as f64);
    for mark in marks(waterfall.end) {
        let (line, foot) = (at(x(mark)), at(TOP + ROW * rows.len() as f64));
        out.void("line", &[("class", "grid"), ("x1", &line), ("x2", &line), ("y1", &at(TOP - 6.0)), ("y2", &foot)]);
        out.element("text", &[("class", "dim"), ("x", &line), ("y", &at(TOP - 12.0))], &time(mark));
    }
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        if number % 2 == 1 {
            out.void("rect", &[("class", "odd"), ("y", &at(y)), ("width", &at(LEFT - 8.0)), ("height", &at(ROW))]);
        }
        let indent = at(12.0 + 12.0 * f64::from(row.depth.min(DEEPEST)));
        let name = format!("{} {}", row.service, row.name);
        let class = if row.failed { "failed" } else { "" };
        out.open("text", &[("x", &indent), ("y", &at(y + 14.0)), ("class", class)]);
        out.text(fitted(&name, 44usize.saturating_sub(2 * row.depth.min(DEEPEST) as usize)).trim_end()).close();
        out.open("g", &[]);
        out.element(
            "title",
            &[],
            &format!("{}\n{} from {}", shortened(&name), time(row.end - row.start), time(row.start)),
        );
        let mut block = |class: &str, from: i64, to: i64, inset: f64| {
            let width = at((x(to) - x(from)).max(1.0));
            let (left, top, tall) = (at(x(from)), at(y + inset), at(ROW - 2.0 * inset));
            out.void("rect", &[("class", class), ("x", &left), ("y", &top), ("width", &width), ("height", &tall)]);
        };
        block(if row.awaited { "span" } else { "alone" }, row.start, row.end, 3.0);
        for (from, to) in &row.critical {
            block("critical", *from, *to, 7.0);
        }
        out.close();
        out.element(
            "text",
            &[("class", "dim"), ("x", &at(x(row.end) + 5.0)), ("y", &at(y + 14.0))],
            &time(row.end - row.start),
        );
    }
    let mut foot = TOP + ROW * (rows.len() as f64 + 1.0);
    if more > 0 {
        out.element(
            "text",
            &[("class", "dim"), ("x", "12"), ("y", &at(foot))],
            &format!("… {} more", quantity::counted(more as u64, "span")),
        );
        foot += ROW;
    }
    let legend = "filled: the response waits for it; framed with dashes: no parent waits for it";
    out.element("text", &[("class", "dim"), ("x", "12"), ("y", &at(foot))], legend);
    out.close();
    out.finish()
}

/// The waterfall as JSON, at most so many spans; times in seconds from the begin of the operation.
pub fn json(waterfall: &Waterfall, most: usize) -> String {
    let rows = shown(waterfall, most).iter().map(|row| {
        let critical: Vec<Value> =
            row.critical.iter().map(|(from, to)| json!([seconds(*from), seconds(*to)])).collect();
        json!({
            "depth": row.depth,
            "service": row.service,
            "name": row.name,
            "kind": row.kind.label(),
            "start": seconds(row.start),
            "end": seconds(row.end),
            "awaited": row.awaited,
            "failed": row.failed,
            "critical": critical,
        })
    });
    let document = json!({
        "dyelog-waterfall": 1,
        "scenario": waterfall.scenario,
        "run": waterfall.run,
        "response": seconds(waterfall.response),
        "end": seconds(waterfall.end),
        "spans_left_out": waterfall.rows.len().saturating_sub(most),
        "spans": rows.collect::<Vec<_>>(),
    });
    json::pretty(&document)
}
