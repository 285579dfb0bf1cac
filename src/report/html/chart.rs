//! Curves as SVG that can be read by eye, by mouse, by keyboard and as a table.

use crate::diagnostic::quantity::number;
use crate::report::html::units::{percent, rate, time};
use crate::report::html::writer::{Html, shortened};

/// What is measured along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Times in seconds.
    Time,
    /// Rates per second.
    Rate,
    /// Shares, 1 being all.
    Share,
    /// Plain numbers.
    Number,
}

impl Measure {
    /// A value in words.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Time => time(value),
            Self::Rate => rate(value),
            Self::Share => percent(value),
            Self::Number => number(value),
        }
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// One value a place on the horizontal axis; `None` where there is no result.
    pub values: Vec<Option<f64>>,
}

/// Curves over one horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it belongs to, such as the scenario whose load grows.
    pub group: String,
    /// Its title.
    pub title: String,
    /// What the horizontal axis is.
    pub horizontal: String,
    /// How values along it read.
    pub measure_x: Measure,
    /// What the vertical axis is.
    pub vertical: String,
    /// How values along it read.
    pub measure_y: Measure,
    /// Places on the horizontal axis, ascending.
    pub places: Vec<f64>,
    /// The curves.
    pub series: Vec<Series>,
    /// A place to mark, and why: today's load.
    pub mark: Option<(f64, String)>,
}

/// Most curves that one chart shows: as many as can be told apart.
pub const SERIES: usize = 6;

// Small enough that its words can be read on a telephone, where it is drawn at about this size.
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
const FLOOR: f64 = HEIGHT - BOTTOM;

/// A scale from values to coordinates.
struct Scale {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.least) / (self.most - self.least) * (self.to - self.from)
    }
}

impl Chart {
    /// Writes the chart with its legend and table.
    pub fn write(&self, html: &mut Html, identifier: &str) {
        let shown = &self.series[..self.series.len().min(SERIES)];
        html.open("figure", &[("class", "chart"), ("id", identifier)]);
        html.open("figcaption", &[]).name(&self.title).close();
        legend(html, shown);
        self.picture(html, shown);
        html.element("div", &[("class", "tip"), ("hidden", "")], "");
        self.table(html, shown);
        html.close();
    }

    fn picture(&self, html: &mut Html, shown: &[Series]) {
        let highest = shown.iter().flat_map(|series| series.values.iter().flatten()).fold(0.0_f64, |a, b| a.max(*b));
        let (first, last) = (self.places.first().copied().unwrap_or(0.0), self.places.last().copied().unwrap_or(1.0));
        let ticks_y = ticks(0.0, if highest > 0.0 { highest } else { 1.0 }, 5);
        let least = if first <= (last - first) * 0.2 { 0.0 } else { first };
        let x = Scale { least, most: if last > least { last } else { least + 1.0 }, from: LEFT, to: WIDTH - RIGHT };
        let top = ticks_y.last().copied().unwrap_or(1.0);
        let y = Scale { least: 0.0, most: top, from: FLOOR, to: TOP };
        let label = format!("{}, {}: {} over {}", shortened(&self.group), self.title, self.vertical, self.horizontal);
        let (top_y, floor_y) = (coordinate(TOP), coordinate(FLOOR));
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        html.open("svg", &[("viewBox", &view), ("role", "img"), ("aria-label", &label), ("class", "plot")]);
        self.axes(html, &x, &y, &ticks_y);
        if let Some((place, why)) = &self.mark {
            let at = coordinate(x.at(*place));
            html.void("line", &[("class", "mark"), ("x1", &at), ("x2", &at), ("y1", &top_y), ("y2", &floor_y)]);
            let near_end = x.at(*place) > WIDTH * 0.7;
            let anchor = if near_end { "end" } else { "start" };
            let beside = coordinate(x.at(*place) + if near_end { -5.0 } else { 5.0 });
            html.element(
                "text",
                &[("class", "why"), ("x", &beside), ("y", &coordinate(TOP + 10.0)), ("text-anchor", anchor)],
                why,
            );
        }
        for (number, series) in shown.iter().enumerate() {
            self.curve(html, &x, &y, number, series);
        }
        html.void("line", &[("class", "cross"), ("x1", "0"), ("x2", "0"), ("y1", &top_y), ("y2", &floor_y)]);
        html.close();
    }

    fn axes(&self, html: &mut Html, x: &Scale, y: &Scale, ticks_y: &[f64]) {
        let floor_y = coordinate(FLOOR);
        for &value in ticks_y {
            let at = coordinate(y.at(value));
            let right = coordinate(WIDTH - RIGHT);
            html.void(
                "line",
                &[("class", "grid"), ("x1", &coordinate(LEFT)), ("x2", &right), ("y1", &at), ("y2", &at)],
            );
            let below = coordinate(y.at(value) + 4.0);
            html.element(
                "text",
                &[("x", &coordinate(LEFT - 6.0)), ("y", &below), ("text-anchor", "end")],
                &self.measure_y.words(value),
            );
        }
        for value in ticks(x.least, x.most, 6).into_iter().filter(|value| *value <= x.most * 1.000_001) {
            let at = coordinate(x.at(value));
            html.void(
                "line",
                &[("class", "tick"), ("x1", &at), ("x2", &at), ("y1", &floor_y), ("y2", &coordinate(FLOOR + 5.0))],
            );
            html.element(
                "text",
                &[("x", &at), ("y", &coordinate(FLOOR + 19.0)), ("text-anchor", "middle")],
                &self.measure_x.words(value),
            );
        }
        html.void(
            "line",
            &[
                ("class", "axis"),
                ("x1", &coordinate(LEFT)),
                ("x2", &coordinate(WIDTH - RIGHT)),
                ("y1", &floor_y),
                ("y2", &floor_y),
            ],
        );
        let middle = coordinate((LEFT + WIDTH - RIGHT) / 2.0);
        html.element(
            "text",
            &[("class", "name"), ("x", &middle), ("y", &coordinate(HEIGHT - 6.0)), ("text-anchor", "middle")],
            &self.horizontal,
        );
    }

    fn curve(&self, html: &mut Html, x: &Scale, y: &Scale, number: usize, series: &Series) {
        let class = format!("series s{number}");
        html.open("g", &[("class", &class), ("data-name", &shortened(&series.name))]);
        let mut path = String::new();
        let mut drawing = false;
        for (place, value) in self.places.iter().zip(&series.values) {
            match value {
                Some(value) => {
                    let command = if drawing { 'L' } else { 'M' };
                    path.push_str(&format!("{command}{} {}", coordinate(x.at(*place)), coordinate(y.at(*value))));
                    drawing = true;
                }
                None => drawing = false,
            }
        }
        html.open("path", &[("d", &path)]).close();
        for (place, value) in self.places.iter().zip(&series.values) {
            let Some(value) = value else { continue };
            let (words_x, words_y) = (self.measure_x.words(*place), self.measure_y.words(*value));
            html.open(
                "circle",
                &[
                    ("cx", &coordinate(x.at(*place))),
                    ("cy", &coordinate(y.at(*value))),
                    ("r", "3"),
                    ("data-x", &format!("{}: {words_x}", self.horizontal)),
                    ("data-y", &words_y),
                ],
            );
            html.element("title", &[], &format!("{words_x}: {words_y}")).close();
        }
        html.close();
    }

    fn table(&self, html: &mut Html, shown: &[Series]) {
        html.open("details", &[]).element("summary", &[], "The values as a table");
        html.open(
            "div",
            &[("class", "frame"), ("tabindex", "0"), ("role", "region"), ("aria-label", "values of the curves")],
        );
        html.open("table", &[]);
        html.open("caption", &[]).name(&self.title).close();
        html.open("thead", &[]).open("tr", &[]);
        html.element("th", &[("scope", "col")], &self.horizontal);
        for series in shown {
            html.open("th", &[("scope", "col"), ("class", "n")]).name(&series.name).close();
        }
        html.close().close().open("tbody", &[]);
        for (row, place) in self.places.iter().enumerate() {
            html.open("tr", &[]).element("th", &[("scope", "row")], &self.measure_x.words(*place));
            for series in shown {
                let value = series.values.get(row).copied().flatten();
                let words = value.map_or_else(|| "–".to_owned(), |value| self.measure_y.words(value));
                html.element("td", &[("class", "n")], &words);
            }
            html.close();
        }
        html.close().close().close().close();
    }
}

fn legend(html: &mut Html, shown: &[Series]) {
    html.open("ul", &[("class", "legend")]);
    for (number, series) in shown.iter().enumerate() {
        html.open("li", &[("class", &format!("s{number}"))]);
        html.trusted("<svg viewBox=\"0 0 28 10\" width=\"28\" height=\"10\" aria-hidden=\"true\"><path d=\"M1 5H27\"></path></svg>");
        html.name(&series.name).close();
    }
    html.close();
}

/// A coordinate with a tenth of a pixel.
fn coordinate(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Round values from the first at or below `least` up to the first at or above `most`, about so many.
fn ticks(least: f64, most: f64, about: u32) -> Vec<f64> {
    let range = most - least;
    if !(range.is_finite() && range > 0.0) {
        return vec![least];
    }
    let rough = range / f64::from(about);
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|k| k * power).find(|step| *step >= rough * 0.999).unwrap_or(rough);
    let start = (least / step).ceil() as i64;
    let end = (most / step - 1e-9).ceil() as i64;
    (start..=end.max(start)).take(100).map(|k| k as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::{Chart, Measure, Series, ticks};
    use crate::report::html::writer::Html;

    #[test]
    fn a_curve_is_cut_where_there_is_no_steady_state() {
        let pieces = |values: [Option<f64>; 5]| -> Vec<usize> {
            let chart = Chart {
                group: "As arrivals grow".into(),
                title: "Response times".into(),
                horizontal: "arrivals".into(),
                measure_x: Measure::Rate,
                vertical: "response".into(),
                measure_y: Measure::Time,
                places: vec![1.0, 2.0, 3.0, 4.0, 5.0],
                series: vec![Series { name: "scenario".into(), values: values.to_vec() }],
                mark: None,
            };
            let mut html = Html::new();
            chart.write(&mut html, "chart");
            let text = html.finish();
            assert_eq!(text.matches("<circle").count(), values.iter().flatten().count(), "{text}");
            let curve = text.split("data-name").nth(1).and_then(|rest| rest.split("d=\"").nth(1)).expect("a curve");
            let path = curve.split('"').next().unwrap_or_default();
            path.split('M').skip(1).map(|piece| 1 + piece.matches('L').count()).collect()
        };
        let (one, none) = (Some(1.0), None);
        assert_eq!(pieces([one; 5]), [5]);
        assert_eq!(pieces([one, one, one, none, none]), [3]);
        assert_eq!(pieces([one, none, one, one, none]), [1, 2]);
    }

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks(0.0, 23.0, 5), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!(ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]);
        assert_eq!(ticks(3.0, 3.0, 5), [3.0]);
        assert!(ticks(0.0, f64::INFINITY, 5).len() == 1 && ticks(0.0, 1e-300, 5).len() < 12);
    }
}
