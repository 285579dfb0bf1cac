//! Curves as SVG that can be read by eye, by mouse, by keyboard and as a table.

use crate::diagnostic::quantity::number;
use crate::report::html::units::{percent, rate, time};
use crate::report::markup::{Markup, coordinate, polyline, shortened};
use crate::report::plot;
use crate::report::plot::axis::Axis;

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

/// An axis, and where its ends lie in the picture.
struct Scale {
    axis: Axis,
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        self.from + self.axis.part(value) * (self.to - self.from)
    }
}

impl Chart {
    /// Writes the chart with its legend and table.
    pub fn write(&self, html: &mut Markup, identifier: &str) {
        let shown = &self.series[..self.series.len().min(SERIES)];
        html.open("figure", &[("class", "chart"), ("id", identifier)]);
        html.open("figcaption", &[]).name(&self.title).close();
        legend(html, shown);
        self.picture(html, shown);
        html.element("div", &[("class", "tip"), ("hidden", "")], "");
        self.table(html, shown);
        html.close();
    }

    fn picture(&self, html: &mut Markup, shown: &[Series]) {
        let highest = shown.iter().flat_map(|series| series.values.iter().flatten()).fold(0.0_f64, |a, b| a.max(*b));
        let (first, last) = (self.places.first().copied().unwrap_or(0.0), self.places.last().copied().unwrap_or(1.0));
        let least = if first <= (last - first) * 0.2 { 0.0 } else { first };
        let most = if last > least { last } else { least + 1.0 };
        let x = Scale { axis: Axis::across(&plot::Scale::Linear, least, most), from: LEFT, to: WIDTH - RIGHT };
        let y = Scale { axis: Axis::upward(if highest > 0.0 { highest } else { 1.0 }), from: FLOOR, to: TOP };
        let label = format!("{}, {}: {} over {}", shortened(&self.group), self.title, self.vertical, self.horizontal);
        let (top_y, floor_y) = (coordinate(TOP), coordinate(FLOOR));
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        html.open("svg", &[("viewBox", &view), ("role", "img"), ("aria-label", &label), ("class", "plot")]);
        self.axes(html, &x, &y);
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

    fn axes(&self, html: &mut Markup, x: &Scale, y: &Scale) {
        let floor_y = coordinate(FLOOR);
        for &(value, _) in &y.axis.ticks {
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
        for &(value, _) in &x.axis.ticks {
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

    fn curve(&self, html: &mut Markup, x: &Scale, y: &Scale, number: usize, series: &Series) {
        let class = format!("series s{number}");
        html.open("g", &[("class", &class), ("data-name", &shortened(&series.name))]);
        let points = self.places.iter().zip(&series.values);
        let path = polyline(points.map(|(place, value)| Some((x.at(*place), y.at((*value)?)))));
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

    fn table(&self, html: &mut Markup, shown: &[Series]) {
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

fn legend(html: &mut Markup, shown: &[Series]) {
    html.open("ul", &[("class", "legend")]);
    for (number, series) in shown.iter().enumerate() {
        html.open("li", &[("class", &format!("s{number}"))]);
        html.trusted("<svg viewBox=\"0 0 28 10\" width=\"28\" height=\"10\" aria-hidden=\"true\"><path d=\"M1 5H27\"></path></svg>");
        html.name(&series.name).close();
    }
    html.close();
}

#[cfg(test)]
mod tests {
    use super::{Chart, Measure, Series};
    use crate::report::markup::Markup;

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
            let mut html = Markup::new();
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
}
